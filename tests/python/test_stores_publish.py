"""Atomic publication: whole or not at all, nothing of others taken away."""

import fcntl
import os

import pytest
from longshore.errors import StoreError
from longshore.stores import publish
from longshore.stores.publish import Publication, refuse_overlap


def build(place, folder, words):
    with open(os.path.join(place, "layout.json") if folder else place, "w") as file:
        file.write(words)


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
    if folder:
        target.mkdir()
        (target / "rank-00007.npy").write_text("old")
        (target / "layout.json").write_text("old")
    else:
        target.write_text("old")
    with Publication(target, folder=folder, force=True) as publication:
        publication.check()
        build(publication.create(), folder, "new")
        assert contents(target, folder) == "old"
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
