"""What --force may take away, and what is left, locked or counted when a run has ended."""

import errno
import fcntl
import itertools
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import longshore as ls
import numpy as np
import pytest
from longshore.errors import StoreError
from longshore.stores import moving, own_files, publish
from longshore.stores.publish import Publication
from longshore.stores.zarr_writer import ZarrArrayWriter

_numbers = itertools.count()
HIDDEN = ".b.zarr.longshore-partial-0123456789abcdef"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(60.0).reshape(10, 6))
    return tmp_path


def put(path, words="mine"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words)


def checkpoint(folder):
    np.save("x.npy", np.arange(4.0))
    ls.move("x.npy", "one.safetensors::x")
    folder.mkdir()
    os.rename("one.safetensors", folder / "model-00001-of-00001.safetensors")
    put(folder / "model.safetensors.index.json", '{"weight_map": {"x": "model-00001-of-00001.safetensors"}}')


WORDS = {
    "v3": {"chunks": (4, 4), "zarr_format": 3},
    "v3 in shards": {"chunks": (2, 3), "shards": (4, 6), "zarr_format": 3},
    "v2": {"chunks": (4, 4), "zarr_format": 2},
}
OTHERS = ["model.safetensors", "2024", "notes/1.5", "c/9/9", "c/9", "0.0.0", "9.0", "c/00/0", "c/9/0/0"]
OTHERS += [".x.0123456789abcdef.partial", "g/zarr.json", "model.safetensors.index.json", "x.npy", "sub/layout.json"]


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("other", OTHERS)
def test_force_takes_nothing_that_is_not_the_arrays(here, words, other):
    ls.move("a.npy", "b.zarr", **words)
    put(here / "b.zarr" / other)
    with pytest.raises(StoreError, match=f"holds '{other}'.*move that away first"):
        ls.move("a.npy", "b.zarr", force=True)
    assert (here / "b.zarr" / other).read_text() == "mine"
    os.unlink(here / "b.zarr" / other)
    ls.move("a.npy", "b.zarr", force=True)
    assert sorted(os.listdir()) == ["a.npy", "b.zarr"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_force_takes_nothing_that_is_not_the_groups(here, zarr_format):
    if zarr_format == 3:
        pytest.importorskip("zarr", "3", reason="zarr 2 brings no metadata of Zarr 3 up to date")
    words = {"chunks": (4, 4), "zarr_format": zarr_format}
    for other in ("c/0/0", "0.0", "h/0.0", "g/c/0/0", "g/1", "g/u/zattrs", "g/u/more/zarr.json", "h/.zattrs"):
        ls.move("a.npy", "b.zarr/g/u", **words, force=True)
        put(here / "b.zarr" / other, json.dumps({"zarr_format": 3, "node_type": "group"}))
        with pytest.raises(StoreError, match=f"holds '{other}'"):
            Publication("b.zarr", folder=True, force=True).check()
        os.unlink(here / "b.zarr" / other)


def test_force_replaces_stores_of_zarr_python(here):
    zarr = pytest.importorskip("zarr")
    if int(zarr.__version__.split(".")[0]) < 3:
        pytest.skip("zarr 2 makes these otherwise")
    ways = [
        (2, {"name": "v2", "separator": "/"}),
        (2, {"name": "v2", "separator": "."}),
        (3, {"name": "default", "separator": "/"}),
        (3, {"name": "default", "separator": "."}),
        (3, {"name": "v2", "separator": "/"}),
    ]
    for number, (zarr_format, keys) in enumerate(ways):
        group = zarr.open_group(f"z{number}", mode="w", zarr_format=zarr_format, attributes={"title": "a"})
        group.create_array("g/u", shape=(5, 4), chunks=(2, 3), dtype="f8", chunk_key_encoding=keys)[...] = 1
        group.create_array("s", shape=(), dtype="f8", chunk_key_encoding=keys)[...] = 1
        zarr.consolidate_metadata(f"z{number}")
        os.rename(f"z{number}", "z.zarr")
        ls.move("a.npy", "z.zarr", force=True, chunks=(4, 4))
        with ls.open("z.zarr") as opened:
            assert (opened.read() == np.load("a.npy")).all()
        shutil.rmtree("z.zarr")


def test_force_takes_nothing_that_is_not_the_checkpoints(here):
    checkpoint(here / "c")
    for other in ("7", "adapter.safetensors", "other.safetensors.index.json", "sub/model-00001-of-00001.safetensors"):
        put(here / "c" / other)
        with pytest.raises(StoreError, match=f"holds '{other}'"):
            Publication("c", folder=True, force=True).check()
        assert (here / "c" / other).read_text() == "mine"
        os.unlink(here / "c" / other)
    Publication("c", folder=True, force=True).check()


@pytest.mark.parametrize("other", [*OTHERS[:9], "x.npy", "sub/layout.json"])
def test_force_takes_nothing_that_is_not_the_stores_at_a_url(here, monkeypatch, other):
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setattr("tempfile.tempdir", str(here))
    url = f"memory://publish-more-{next(_numbers)}/b.zarr"
    ls.move("a.npy", url, chunks=(4, 4), zarr_format=3)
    fs, root = fsspec.core.url_to_fs(url)
    fs.pipe_file(f"{root}/{other}", b"mine")
    with pytest.raises(StoreError, match=f"holds '{other}'"):
        ls.move("a.npy", url, force=True)
    assert fs.cat_file(f"{root}/{other}") == b"mine"
    fs.rm_file(f"{root}/{other}")
    ls.move("a.npy", url, chunks=(5, 6), zarr_format=3, force=True)
    assert {key[len(root) + 1 :] for key in fs.find(root)} == {"zarr.json", "c/0/0", "c/1/0"}


@pytest.mark.parametrize("kind", ["store", "shards"])
def test_what_is_mounted_in_a_store_is_not_taken_away(here, monkeypatch, kind):
    if kind == "store":
        ls.move("a.npy", "b.zarr/u", chunks=(4, 4))
        os.rename("b.zarr", "b")
        ls.move("a.npy", "c.zarr/u", chunks=(4, 4))
        os.rename("c.zarr/u", "b/sub")
    else:
        os.mkdir("b")
        ls.move("a.npy", "b/sub", "(BLOCK, *) on 2")
    plain = os.lstat

    def lstat(path, *rest, **words):
        status = plain(path, *rest, **words)
        if not os.fspath(path).endswith("/sub"):
            return status
        return os.stat_result((*status[:2], status.st_dev + 1, *status[3:]))

    monkeypatch.setattr(os, "lstat", lstat)
    with pytest.raises(StoreError, match="holds 'sub', where something else is mounted"):
        Publication("b", folder=True, force=True).check()
    os.rename("b", HIDDEN)
    publication = Publication("b.zarr", folder=True)
    publication.remove_stale()
    assert publication.stale_removed == [] and os.listdir(f"{HIDDEN}/sub")
    monkeypatch.undo()
    os.chdir(here)
    publication.remove_stale()
    assert publication.stale_removed == [HIDDEN] and not os.path.exists(HIDDEN)


BIND = """
set -e
mount --bind mine "$1"
"$2" -c "from longshore.cli import main; import sys; main(sys.argv[1:])" move a.npy b.zarr --chunks 5x6 --force
"""


@pytest.mark.parametrize("place", ["b.zarr/c", "b.zarr/a name", "b.zarr/c/0/0"])
def test_what_is_mounted_from_the_same_file_system_is_not_taken_away(here, place):
    """Its files may be called as those of the store are."""
    ls.move("a.npy", "b.zarr", chunks=(4, 4))
    mine = here / "mine" if os.path.isfile(place) else here / "mine/0/1"
    put(mine)
    if mine.name == "1":
        os.makedirs(place, exist_ok=True)
    words = ["unshare", "--mount", "sh", "-c", BIND, "sh", place, sys.executable]
    if subprocess.run([*words[:2], "true"], capture_output=True).returncode:
        pytest.skip("this user may mount nothing")
    done = subprocess.run(words, capture_output=True, text=True)
    inner = os.path.relpath(place, "b.zarr")
    assert done.returncode == 2 and f"holds {inner!r}, where something else is mounted" in done.stderr
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("target", ["b.zarr", "b.h5::/u", "b.safetensors", "url"])
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "executor"])
def test_a_disk_that_becomes_full_is_told_with_what_stays(here, monkeypatch, target, shared):
    """Hours may have gone by, and what they have brought need not be lost."""
    if target == "url":
        pytest.importorskip("fsspec")
        monkeypatch.setattr("tempfile.tempdir", str(here))
        target = f"memory://publish-more-{next(_numbers)}/b.zarr"
    writer = {"b.h5::/u": "hdf5_array_writers.ChunkWriter", "b.safetensors": "dense.DenseWriter"}.get(target)
    name = f"longshore.stores.{writer or 'zarr_writer.ZarrArrayWriter'}.write"
    chunks = {} if "safe" in target else {"chunks": (4, 4), "codecs": ["gzip:1"]}

    def full(*_):
        raise StoreError(errno.ENOSPC, f"cannot write c/0/0: {os.strerror(errno.ENOSPC)}")

    for words, said in (
        ({}, r"No space left.*; run it with --resume \(in Python resume=True\) to keep"),
        ({"resume": True}, r"No space left.*; what has been written stays: make room, and go on with --resume"),
    ):
        with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patch:
            patch.setattr(name, full)
            with pytest.raises(StoreError, match=said) as caught:
                ls.move("a.npy", target, executor=pool if shared else None, **chunks, **words)
            assert caught.value.errno == errno.ENOSPC and str(caught.value).count("resume=True") == 1
            assert ("TMPDIR" in str(caught.value)) == ("://" in target)
    assert ls.move("a.npy", target, resume=True, **chunks).removed_partials == []
    with ls.open(target) as moved:
        found = moved.read() if isinstance(moved, ls.stores.opened.StoredArray) else moved["array"].read()
    np.testing.assert_array_equal(found, np.load("a.npy"))


def _wait(begun, done):
    begun.set()
    done.wait(30)


def test_a_forked_process_keeps_no_lock(here):
    context = multiprocessing.get_context("fork")
    begun, done = context.Event(), context.Event()
    with Publication(here / "b", folder=False) as publication:
        publication.create()
        child = context.Process(target=_wait, args=(begun, done))
        child.start()
        assert begun.wait(30)
        publication.publish()
    try:
        with open("b", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        done.set()
        child.join()


def test_kept_work_goes_when_workers_end_the_move(here, monkeypatch):
    """A plain run is stopped, and one with an executor goes on."""
    plain, counter = ZarrArrayWriter.write, itertools.count()

    def write(self, index, stored):
        if next(counter) >= 2:
            raise StoreError("the disk went away")
        return plain(self, index, stored)

    monkeypatch.setattr(ZarrArrayWriter, "write", write)
    with pytest.raises(StoreError, match="went away"):
        ls.move("a.npy", "b.zarr", chunks=(2, 2), resume=True, threads=1)
    monkeypatch.setattr(ZarrArrayWriter, "write", plain)
    assert any(name.endswith(".work") for name in os.listdir())
    with ThreadPoolExecutor(1) as pool:
        ls.move("a.npy", "b.zarr", chunks=(2, 2), resume=True, executor=pool)
    assert sorted(os.listdir()) == ["a.npy", "b.zarr"]


@pytest.mark.parametrize("resumes", [False, True])
def test_what_a_killed_run_has_left_counts_as_free(here, monkeypatch, resumes):
    put(here / HIDDEN / "zarr.json", "x" * (1 << 20))
    if resumes:
        put(here / f"{HIDDEN}.journal", "")
    put(here / ".other.longshore-partial-0123456789abcdef" / "zarr.json", "x" * (4 << 20))
    free = os.statvfs(here)
    full = os.statvfs_result((free.f_bsize, 4096, free.f_blocks, 1, 1, *free[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    publication = Publication("b.zarr", folder=True)
    publication.resumes = resumes
    publication.check_space(1 << 20)
    with pytest.raises(StoreError, match="is full"):
        publication.check_space(3 << 20)
    if resumes:
        publication.adopt()
        publication.check_space(1 << 20)
        publication.keep()
    lock = publish._open_locked(str(here / HIDDEN))
    with pytest.raises(StoreError, match="is full"):  # somebody is writing it
        publication.check_space(1 << 20)
    os.close(lock)


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize(
    ("source", "destination", "to"),
    [("a.npy", "b.npy", None), ("a.npy", "b", "(*, BLOCK) on 2"), ("s", "b.npy", None)],
)
def test_a_source_that_changes_meanwhile_is_not_published(here, verify, source, destination, to):
    ls.move("a.npy", "s", "(BLOCK, *) on 2")

    class Changes(moving.Watcher):
        def advance(self, count):
            for path in ["a.npy"] if source == "a.npy" else ["s/rank-00000.npy"]:
                array = np.load(path, mmap_mode="r+")
                array[:] = -1
                array.flush()
                os.utime(path, ns=(1, 1))

    with pytest.raises(StoreError, match=f"{source} has been changed while it was read; nothing was published"):
        ls.move(source, destination, to, watcher=Changes(), verify=verify)
    assert sorted(os.listdir()) == ["a.npy", "s"]


@pytest.mark.parametrize("code", [[errno.ENOSPC], []], ids=["number", "words"])
def test_a_full_disk_of_temporary_files_is_named(here, monkeypatch, code):
    pytest.importorskip("fsspec")
    monkeypatch.setattr("tempfile.tempdir", str(here))

    def write(self, index, stored):
        raise StoreError(*code, f"cannot write a chunk of {self.where}: No space left on device")

    monkeypatch.setattr(ZarrArrayWriter, "write", write)
    for words in ({}, {"resume": True}):
        with pytest.raises(StoreError, match="No space left.*set TMPDIR to a larger disk") as caught:
            ls.move("a.npy", f"memory://publish-more-{next(_numbers)}/b.zarr", chunks=(4, 4), **words)
        assert caught.value.errno == (code[0] if code else None) and str(caught.value).count("TMPDIR") == 1


def test_chunks_by_what_documents_say():
    def own(documents, **more):
        return own_files.OwnFiles([*documents, *more], lambda name: documents.get(name))

    array = {"zarr_format": 2, "shape": [4], "chunks": [2]}
    files = own({".zarray": json.dumps(array).encode()})
    assert files.has("1") and files.has(".zattrs") and files.has(".1.0123456789abcdef.partial")
    assert not any(map(files.has, ("2", "01", "1.0", "0/1", "zarr.json", ".zgroup", ".zmetadata", "", "/", "0/")))
    for broken in (b"{", b"[]", b"[" * 100_000, b'{"zarr_format": 2, "shape": [4], "chunks": 7}', b"\xff"):
        assert not own({".zarray": broken}).has("0")
