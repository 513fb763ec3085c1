"""Atomic publication: whole or not at all, nothing of others taken away."""

import fcntl
import os

import numpy as np
import pytest
from longshore import Layout
from longshore.errors import StoreError
from longshore.stores import publish
from longshore.stores.layout_json import encode_layout_json
from longshore.stores.publish import Publication, refuse_overlap


def build(place, folder, words):
    with open(os.path.join(place, "layout.json") if folder else place, "w") as file:
        file.write(words)


def a_store(path, *shards):
    """A folder of shards, of whatever its layout.json names. Returns what that says."""
    layout = Layout(f"(CYCLIC) on {len(shards)}", 4)
    words = encode_layout_json(layout, (4,), np.dtype("f8"), "C", shards).decode()
    path.mkdir()
    (path / "layout.json").write_text(words)
    for shard in shards:
        (path / shard).write_text(f"elements of {shard}")
    return words


def everything(folder):
    """All that there is in a folder, links as where they lead to."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[path.name] = os.readlink(path)
        else:
            found[path.name] = path.read_text() if path.is_file() else None
    return found


def contents(path, folder):
    return (path / "layout.json").read_text() if folder else path.read_text()


@pytest.fixture(params=[False, True], ids=["file", "folder"])
def folder(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["renameat2", "plain"])
def flags(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(publish, "rename_with_flags", lambda *_: False)


def test_appears_at_once(tmp_path, folder, flags):
    target = tmp_path / "x"
    with Publication(target, folder=folder) as publication:
        publication.check()
        build(publication.create(), folder, "new")
        assert not target.exists() and len(os.listdir(tmp_path)) == 1
        publication.publish()
    assert os.listdir(tmp_path) == ["x"] and contents(target, folder) == "new"


def test_discarded_leaves_nothing(tmp_path, folder):
    with pytest.raises(RuntimeError), Publication(tmp_path / "x", folder=folder) as publication:
        build(publication.create(), folder, "new")
        raise RuntimeError
    assert os.listdir(tmp_path) == []


def test_existing_is_refused(tmp_path, folder):
    target = tmp_path / "x"
    target.mkdir() if folder else target.write_text("old")
    with pytest.raises(StoreError, match="exists already"):
        Publication(target, folder=folder).check()


def test_appeared_meanwhile_is_not_replaced(tmp_path, folder, flags):
    target = tmp_path / "x"
    with pytest.raises(StoreError, match="appeared meanwhile"), Publication(target, folder=folder) as publication:
        publication.check()
        build(publication.create(), folder, "new")
        target.mkdir() if folder else target.write_text("old")
        if folder:
            (target / "layout.json").write_text("old")
        publication.publish()
    assert contents(target, folder) == "old" and os.listdir(tmp_path) == ["x"]


def test_force_replaces(tmp_path, folder, flags):
    target = tmp_path / "x"
    old = "old"
    if folder:
        old = a_store(target, "rank-00007.npy", "some name.dat")
    else:
        target.write_text(old)
    with Publication(target, folder=folder, force=True) as publication:
        publication.check()
        build(publication.create(), folder, "new")
        assert contents(target, folder) == old
        publication.publish()
    assert os.listdir(tmp_path) == ["x"] and contents(target, folder) == "new"
    if folder:
        assert os.listdir(target) == ["layout.json"]


def test_force_replaces_only_stores(tmp_path):
    home = tmp_path / "home"
    (home / "letters").mkdir(parents=True)
    with pytest.raises(StoreError, match="which is no shard"):
        Publication(home, folder=True, force=True).check()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("dear")
    with pytest.raises(StoreError, match="diary.txt"):
        Publication(tmp_path / "notes", folder=True, force=True).check()
    (tmp_path / "arrays").mkdir()
    (tmp_path / "arrays" / "precious.npy").write_text("dear")
    with pytest.raises(StoreError, match=r"holds 'precious.npy', which is no shard, for there is no layout.json"):
        Publication(tmp_path / "arrays", folder=True, force=True).check()
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match=r"with no layout.json"):
        Publication(tmp_path / "empty", folder=True, force=True).check()
    with pytest.raises(StoreError, match="is a folder"):
        Publication(home, folder=False, force=True).check()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is a file"):
        Publication(tmp_path / "file", folder=True, force=True).check()
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(StoreError, match="plain file"):
        Publication(tmp_path / "fifo", folder=False, force=True).check()
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(StoreError, match="symbolic link"):
        Publication(tmp_path / "link", folder=False, force=True).check()
    with pytest.raises(StoreError, match="does not exist"):
        Publication(tmp_path / "none" / "x", folder=True).check()
    with pytest.raises(StoreError, match="too long"):
        Publication(tmp_path / ("x" * 250), folder=True).check()


IN_THE_WAY = {
    "another array": (lambda d: (d / "precious.npy").write_text("mine"), "'precious.npy'"),
    "a shard of another layout": (lambda d: (d / "rank-00002.npy").write_text("mine"), "'rank-00002.npy'"),
    "a hidden file": (lambda d: (d / ".notes").write_text("mine"), "'.notes'"),
    "a folder": (lambda d: (d / "deep" / "er").mkdir(parents=True), "'deep'"),
    "a link": (lambda d: (d / "a link").symlink_to("../elsewhere"), "'a link'"),
    "a link for a shard": (
        lambda d: ((d / "rank-00000.npy").unlink(), (d / "rank-00000.npy").symlink_to("../elsewhere")),
        "'rank-00000.npy', which is not a plain file",
    ),
    "a folder for a shard": (
        lambda d: ((d / "rank-00001.npy").unlink(), (d / "rank-00001.npy").mkdir()),
        "'rank-00001.npy', which is not a plain file",
    ),
}


@pytest.mark.parametrize("late", [False, True], ids=["before", "meanwhile"])
@pytest.mark.parametrize("place, words", IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_force_takes_nothing_else_away(tmp_path, flags, late, place, words):
    (tmp_path / "elsewhere").write_text("mine")
    target = tmp_path / "x"
    a_store(target, "rank-00000.npy", "rank-00001.npy")
    if not late:
        place(target)
        before = everything(tmp_path)
        with pytest.raises(StoreError, match=words):
            Publication(target, folder=True, force=True).check()
    else:
        with Publication(target, folder=True, force=True) as publication:
            publication.check()
            build(publication.create(), True, "new")
            place(target)
            before = everything(target)
            with pytest.raises(StoreError, match=words):
                publication.publish()
        before |= {"elsewhere": "mine", "x": None}
    assert everything(tmp_path) == before


@pytest.mark.parametrize("has_exchange", [True, False], ids=["renameat2", "plain"])
def test_what_comes_in_at_the_last_moment_is_kept(tmp_path, monkeypatch, has_exchange):
    target = tmp_path / "x"
    a_store(target, "rank-00000.npy")
    plain, there = publish._check_replaceable, []

    def slip_in(path, *rest):
        found = plain(path, *rest)
        if not there:  # looked at for the last time before the new folder takes the place
            (target / "mine.txt").write_text("mine")
            there.append(everything(target))
        return found

    with Publication(target, folder=True, force=True) as publication:
        publication.check()
        build(publication.create(), True, "new")
        monkeypatch.setattr(publish, "_check_replaceable", slip_in)
        if not has_exchange:
            monkeypatch.setattr(publish, "rename_with_flags", lambda *_: False)
        with pytest.raises(StoreError, match="x holds 'mine.txt'"):
            publication.publish()
    assert os.listdir(tmp_path) == ["x"] and everything(target) == there[0]


@pytest.mark.parametrize(
    "words, said",
    [
        ("{", "it is not JSON"),
        ("[]", "must be a JSON object"),
        ("[" * 100_000, "nests too deeply"),
        (lambda text: text.replace("rank-00000.npy", "../precious.npy"), "no plain file name"),
        (lambda text: text.replace("rank-00000.npy", "/etc/passwd"), "no plain file name"),
        (lambda text: text.replace("rank-00000.npy", ".."), "no plain file name"),
        (lambda text: text.replace("longshore-shards", "something else"), "format"),
        (lambda text: text.replace(" on 2", " on 3"), "names 2 shards"),
    ],
)
def test_force_believes_no_layout_json_blindly(tmp_path, words, said):
    (tmp_path / "precious.npy").write_text("mine")
    text = a_store(tmp_path / "x", "rank-00000.npy", "rank-00001.npy")
    (tmp_path / "x" / "layout.json").write_text(words if isinstance(words, str) else words(text))
    before = everything(tmp_path)
    with pytest.raises(StoreError, match=said):
        Publication(tmp_path / "x", folder=True, force=True).check()
    assert everything(tmp_path) == before


def test_force_follows_no_link_to_a_layout_json(tmp_path):
    a_store(tmp_path / "other", "rank-00000.npy")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "layout.json").symlink_to("../other/layout.json")
    (tmp_path / "x" / "rank-00000.npy").write_text("mine")
    with pytest.raises(StoreError, match="symbolic link"):
        Publication(tmp_path / "x", folder=True, force=True).check()


def test_a_store_with_shards_missing_may_be_replaced(tmp_path, flags):
    a_store(tmp_path / "x", "rank-00000.npy", "rank-00001.npy")
    (tmp_path / "x" / "rank-00001.npy").unlink()
    with Publication(tmp_path / "x", folder=True, force=True) as publication:
        publication.check()
        build(publication.create(), True, "new")
        publication.publish()
    assert everything(tmp_path) == {"x": None, "layout.json": "new"}


def test_a_file_that_was_changed_meanwhile_is_not_replaced(tmp_path):
    target = tmp_path / "x"
    target.write_text("old")
    changed = pytest.raises(StoreError, match="changed meanwhile")
    with changed, Publication(target, folder=False, force=True) as publication:
        publication.based_on = os.stat(target)
        build(publication.create(), False, "made of the old one")
        target.write_text("newer")
        publication.publish()
    assert everything(tmp_path) == {"x": "newer"}


def test_killed_between_two_renames(tmp_path):
    """Where folders cannot change places in one step, the old one lies aside for a moment."""
    partial = tmp_path / ".x.longshore-partial-0123456789abcdef"
    a_store(partial, "rank-00000.npy")
    a_store(tmp_path / f"{partial.name}-old", "rank-00000.npy", "rank-00001.npy")
    old = everything(tmp_path / f"{partial.name}-old")
    again = Publication(tmp_path / "x", folder=True, force=True)
    again.check()
    assert everything(tmp_path / "x") == old
    again.remove_stale()
    assert again.stale_removed == [partial.name] and os.listdir(tmp_path) == ["x"]


def test_stale_folders_with_something_else_in_them_are_left(tmp_path):
    stale = tmp_path / ".x.longshore-partial-0123456789abcdef"
    a_store(stale, "rank-00000.npy", "some name.dat")
    (stale / "mine.txt").write_text("mine")
    before = everything(tmp_path)
    publication = Publication(tmp_path / "x", folder=True)
    publication.remove_stale()
    assert publication.stale_removed == [] and everything(tmp_path) == before
    (stale / "mine.txt").unlink()
    publication.remove_stale()
    assert publication.stale_removed == [stale.name] and os.listdir(tmp_path) == []


def test_stale_is_removed_and_living_is_not(tmp_path, folder):
    target = tmp_path / "x"
    living = Publication(target, folder=folder)
    build(living.create(), folder, "alive")
    stale = tmp_path / ".x.longshore-partial-0123456789abcdef"
    stale.mkdir() if folder else stale.write_text("dead")
    other = tmp_path / ".y.longshore-partial-0123456789abcdef"
    other.write_text("not ours")
    second = Publication(target, folder=folder)
    second.remove_stale()
    assert second.stale_removed == [stale.name]
    assert sorted(os.listdir(tmp_path)) == sorted([os.path.basename(living.partial), other.name])
    living.publish()
    assert contents(target, folder) == "alive"


def test_file_systems_without_locks(tmp_path, folder, monkeypatch):
    def refuse(*_):
        raise OSError(95, "not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with Publication(tmp_path / "x", folder=folder) as publication:
        build(publication.create(), folder, "new")
        Publication(tmp_path / "x", folder=folder).remove_stale()
        publication.publish()
    assert contents(tmp_path / "x", folder) == "new"


def test_source_is_never_touched(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (tmp_path / "alias").symlink_to("source")
    for bad, words in [
        ("source", "source itself"),
        ("alias", "source itself"),
        ("source/x.npy", "inside the source"),
        ("alias/y", "inside the source"),
        (".", "holds the source"),
    ]:
        with pytest.raises(StoreError, match=words):
            refuse_overlap(source, tmp_path / bad)
    refuse_overlap(source, tmp_path / "source2")
    with pytest.raises(StoreError, match="does not exist"):
        refuse_overlap(tmp_path / "none", tmp_path / "x")
    (tmp_path / "files").mkdir()
    (tmp_path / "files/member").write_text("elements")
    (tmp_path / "link").symlink_to("files/member")
    for bad in ("files/member", "link", "files"):
        refuse_overlap(source, tmp_path / bad)
        with pytest.raises(StoreError, match="source itself|holds the source"):
            refuse_overlap(source, tmp_path / bad, [tmp_path / "link"])
