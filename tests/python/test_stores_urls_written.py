"""Stores written to URLs: in fsspec's memory, and on an S3 server of this machine."""

import itertools
import json
import os
import signal
import subprocess
import sys

import longshore as ls
import numpy as np
import pytest
from longshore.errors import ArgumentError, LongshoreError, NotInstalledError, StoreError, VerificationError
from s3_server import empty_bucket

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("zarr")
pytest.importorskip("h5py")

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """A folder of temporary files of each test's own, empty again at its end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert [name for _, folders, files in os.walk(folder) for name in files + folders if "upload-" in name] == []


@pytest.fixture
def source(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(60.0).reshape(10, 6))
    return tmp_path / "a.npy"


@pytest.fixture
def base():
    return f"memory://written-{next(_numbers)}"


def keys(url):
    fs, root = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    return {key[len(root) + 1 :] for key in fs.find(root)}


def fetched(url, folder, name):
    """A copy on the disk of what lies at a URL."""
    fs, root = fsspec.core.url_to_fs(url)
    target = folder / f"fetched-{next(_numbers)}-{name}"
    for key in fs.find(root):
        path = target if key == root else target / key[len(root) + 1 :]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(fs.cat_file(key))
    return target


def put(url, data=b"mine"):
    fsspec.core.url_to_fs(url)[0].pipe_file(fsspec.core.url_to_fs(url)[1], data)


FORMATS = [
    ("a.npy", "a.npy", {}),
    ("a.h5::u", "a.h5", {}),
    ("a.nc::u", "a.nc", {}),
    ("a.safetensors::u", "a.safetensors", {}),
    ("shards", "shards", {"to": "(BLOCK, *) on 3"}),
    ("a.zarr", "a.zarr", {"chunks": (4, 4)}),
    ("a.zarr/g/u", "a.zarr", {"chunks": (4, 4), "zarr_format": 2}),
    ("a.zarr", "a.zarr", {"chunks": (2, 3), "shards": (4, 6), "zarr_format": 3}),
]


@pytest.mark.parametrize(("name", "root", "words"), FORMATS)
def test_every_format_is_uploaded_whole(source, base, tmp_path, name, root, words):
    if ".safetensors" in name:
        pytest.importorskip("safetensors")
    told = ls.move(source, f"{base}/{name}", verify=True, **words)
    assert told.verified and told.bytes_written > 0
    assert ".longshore-upload" not in keys(f"{base}/{root}")
    copy = str(fetched(f"{base}/{root}", tmp_path, root)) + name[len(root) :]
    ls.move(copy, tmp_path / "back.npy", dry_run=False, resume=False, lossy=True)
    np.testing.assert_array_equal(np.load(tmp_path / "back.npy"), np.load(source))
    if root == "a.zarr":
        with ls.open(f"{base}/{name}") as opened:
            np.testing.assert_array_equal(opened.read(), np.load(source))


def test_a_dry_run_says_where_it_would_be_made_and_writes_nothing(source, base, temporary):
    told = ls.move(source, f"{base}/a.zarr", dry_run=True)
    assert told.made_in.startswith(str(temporary))
    assert keys(base) == set()


def test_local_arrays_are_saved_to_urls(base):
    layout = ls.Layout("(BLOCK, *) on 2", (4, 3))
    ls.save([np.zeros((2, 3)), np.ones((2, 3))], layout, f"{base}/b.zarr", chunks=(3, 2))
    with ls.open(f"{base}/b.zarr") as opened:
        assert opened.read()[:, 0].tolist() == [0, 0, 1, 1]


def test_what_exists_is_replaced_with_force_only_and_neighbours_stay(source, base):
    neighbours = (f"{base}/a.zarrx/zarr.json", f"{base}/a.zar", f"{base}/a.zarr.bak/c/0")
    for neighbour in neighbours:
        put(neighbour)
    ls.move(source, f"{base}/a.zarr", chunks=(2, 2), zarr_format=3)
    before = keys(f"{base}/a.zarr")
    with pytest.raises(StoreError, match="exists already"):
        ls.move(source, f"{base}/a.zarr", chunks=(5, 6), zarr_format=3)
    assert keys(f"{base}/a.zarr") == before
    ls.move(source, f"{base}/a.zarr", chunks=(5, 6), zarr_format=3, force=True)
    assert keys(f"{base}/a.zarr") == {"zarr.json", "c/0/0", "c/1/0"}
    for neighbour in neighbours:
        fs, path = fsspec.core.url_to_fs(neighbour)
        assert fs.cat_file(path) == b"mine"


def test_the_source_is_never_touched(source, base):
    ls.move(source, f"{base}/a.npy")
    ls.move(source, f"{base}/a.zarr", chunks=(2, 2), zarr_format=3)
    ls.move(source, f"{base}/c/model-00001-of-00001.safetensors")
    fs, root = fsspec.core.url_to_fs(f"{base}/c")
    index = b'{"weight_map": {"array": "model-00001-of-00001.safetensors"}}'
    fs.pipe_file(f"{root}/model.safetensors.index.json", index)
    before = {key: fs.cat_file(key) for key in fs.find(fs._strip_protocol(base))}
    other = base.replace("memory://", "memory:///")  # another name of the same place
    for moved, to in [
        (f"{base}/a.npy", f"{other}/a.npy"),
        (f"{other}/a.npy", f"{base}/a.npy"),
        (f"{base}/a.zarr", f"{other}/a.zarr/"),
        (f"{base}/a.zarr", f"{other}/a.zarr/c/0/0.npy"),
        (f"{base}/c/model.safetensors.index.json", f"{other}/c/model-00001-of-00001.safetensors"),
    ]:
        with pytest.raises(StoreError, match="is the source itself, lies inside it or holds it"):
            ls.move(moved, to, force=True)
    assert {key: fs.cat_file(key) for key in fs.find(fs._strip_protocol(base))} == before
    ls.move(f"{base}/a.npy", f"{other}/b.npy")


@pytest.mark.parametrize("name", ["a.zarr/notes.txt", "a.zarr/c/notes.txt"])
def test_what_is_no_store_is_not_replaced(source, base, name):
    ls.move(source, f"{base}/a.zarr")
    put(f"{base}/{name}")
    before = keys(base)
    with pytest.raises(StoreError, match=r"notes\.txt"):
        ls.move(source, f"{base}/a.zarr", force=True)
    assert keys(base) == before


def test_folders_and_files_do_not_replace_each_other_nor_shards_foreign_files(source, base):
    put(f"{base}/a.zarr")
    put(f"{base}/b.npy/zarr.json")
    with pytest.raises(StoreError, match="not replaced by a folder"):
        ls.move(source, f"{base}/a.zarr", force=True)
    with pytest.raises(StoreError, match="not replaced by an object"):
        ls.move(source, f"{base}/b.npy", force=True)
    ls.move(source, f"{base}/shards", "(BLOCK, *) on 3")
    ls.move(source, f"{base}/shards", "(BLOCK, *) on 2", force=True)
    assert len(keys(f"{base}/shards")) == 3
    put(f"{base}/shards/rank-00099.npy")
    with pytest.raises(StoreError, match="rank-00099"):
        ls.move(source, f"{base}/shards", "(BLOCK, *) on 2", force=True)


def test_an_array_is_not_put_into_a_store_that_is_there(source, base):
    ls.move(source, f"{base}/a.zarr/u")
    before = keys(base)
    with pytest.raises(StoreError, match="what else it holds would be lost"):
        ls.move(source, f"{base}/a.zarr/v", force=True)
    assert keys(base) == before


@pytest.fixture
def failing(monkeypatch):
    """Has uploads to fsspec's memory fail after so many."""
    from fsspec.implementations.memory import MemoryFileSystem

    plain = MemoryFileSystem.put_file

    def fail_after(count):
        counter = itertools.count()

        def put_file(self, *arguments, **options):
            if next(counter) >= count:
                raise OSError("the line was cut")
            return plain(self, *arguments, **options)

        monkeypatch.setattr(MemoryFileSystem, "put_file", put_file)
        return lambda: monkeypatch.setattr(MemoryFileSystem, "put_file", plain)

    return fail_after


@pytest.mark.parametrize("count", [0, 1, 5, 15])
@pytest.mark.parametrize("words", [{"zarr_format": 2}, {"zarr_format": 3}])
def test_a_failed_upload_leaves_nothing(source, base, failing, count, words):
    put(f"{base}/a.zarrx/0")
    failing(count)
    with pytest.raises(StoreError, match="the line was cut"):
        ls.move(source, f"{base}/a.zarr", chunks=(2, 2), **words)
    assert keys(base) == {"a.zarrx/0"}


def test_a_failed_replacement_can_be_replaced(source, base, failing):
    ls.move(source, f"{base}/a.zarr", chunks=(2, 2), zarr_format=3)
    mend = failing(2)
    with pytest.raises(StoreError, match="the line was cut"):
        ls.move(source, f"{base}/a.zarr", chunks=(5, 6), zarr_format=3, force=True)
    with pytest.raises(LongshoreError):
        ls.open(f"{base}/a.zarr")
    mend()
    with pytest.raises(StoreError, match="unfinished upload"):
        ls.move(source, f"{base}/a.zarr", chunks=(5, 6), zarr_format=3)
    ls.move(source, f"{base}/a.zarr", chunks=(5, 6), zarr_format=3, force=True)
    assert keys(f"{base}/a.zarr") == {"zarr.json", "c/0/0", "c/1/0"}


def test_a_file_that_could_not_be_replaced_is_still_there(source, base, failing):
    put(f"{base}/a.npy", b"before")
    failing(0)
    with pytest.raises(StoreError, match="the line was cut"):
        ls.move(source, f"{base}/a.npy", force=True)
    fs, path = fsspec.core.url_to_fs(f"{base}/a.npy")
    assert fs.cat_file(path) == b"before"


@pytest.mark.parametrize(
    ("change", "verify", "error"),
    [
        (lambda data: data[:-1], False, StoreError),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), True, VerificationError),
    ],
)
@pytest.mark.parametrize("replaces", [False, True])
def test_what_arrived_otherwise_is_noticed_and_deleted(source, base, monkeypatch, change, verify, error, replaces):
    if replaces:
        put(f"{base}/a.npy", b"before")
    from fsspec.implementations.memory import MemoryFileSystem

    def put_file(self, local, key, **options):
        with open(local, "rb") as file:
            self.pipe_file(key, change(file.read()))

    monkeypatch.setattr(MemoryFileSystem, "put_file", put_file)
    with pytest.raises(error):
        ls.move(source, f"{base}/a.npy", verify=verify, force=replaces)
    assert keys(base) == set()


def test_a_resumed_move_goes_on_with_what_was_made_here(source, base, monkeypatch):
    """All chunks but four fail, and a second run makes only those."""
    from longshore.stores.zarr_writer import ZarrArrayWriter

    plain, counter = ZarrArrayWriter.write, itertools.count()

    def write(self, index, stored):
        if next(counter) >= 4:
            raise StoreError("the disk went away")
        return plain(self, index, stored)

    monkeypatch.setattr(ZarrArrayWriter, "write", write)
    with pytest.raises(StoreError, match="went away"):
        ls.move(source, f"{base}/a.zarr", chunks=(2, 2), resume=True, threads=1)
    assert keys(base) == set()
    monkeypatch.setattr(ZarrArrayWriter, "write", plain)
    told = ls.move(source, f"{base}/a.zarr", chunks=(2, 2), resume=True, threads=1)
    assert told.resumed_chunks == 4
    with ls.open(f"{base}/a.zarr") as opened:
        np.testing.assert_array_equal(opened.read(), np.load(source))


@pytest.mark.parametrize(("name", "root", "words"), [f for f in FORMATS if f[0] not in ("a.npy", "shards")])
def test_a_resumed_move_uploads_what_a_failed_upload_has_left(source, base, tmp_path, failing, name, root, words):
    if ".safetensors" in name:
        pytest.importorskip("safetensors")
    mend = failing(0)
    with pytest.raises(StoreError, match="the line was cut"):
        ls.move(source, f"{base}/{name}", resume=True, **words)
    assert keys(base) == set()
    mend()
    told = ls.move(source, f"{base}/{name}", resume=True, **words)
    assert told.resumed_chunks > 0 and told.bytes_read == 0
    copy = str(fetched(f"{base}/{root}", tmp_path, root)) + name[len(root) :]
    ls.move(copy, tmp_path / "back.npy", lossy=True)
    np.testing.assert_array_equal(np.load(tmp_path / "back.npy"), np.load(source))


def test_places_that_cannot_be_written_are_refused(source, base, monkeypatch):
    from fsspec.registry import known_implementations

    missing = {"class": "nonesuch_library.FileSystem", "err": "Install nonesuch_library"}
    monkeypatch.setitem(known_implementations, "nonesuch", missing)
    with pytest.raises(ArgumentError, match="over HTTP"):
        ls.move(source, "http://127.0.0.1:1/a.zarr")
    with pytest.raises(NotInstalledError, match=r"nonesuch_library.*pip install"):
        ls.move(source, "nonesuch://a/b.zarr")
    ls.move(source, f"{base}/a.zarr")
    for name in ("a.zarr", "a.zarr/b.zarr"):
        with pytest.raises(StoreError, match="source itself, lies inside it"):
            ls.move(f"{base}/a.zarr", f"{base}/{name}", force=True)


def test_passwords_are_in_no_message(source):
    with pytest.raises(LongshoreError) as caught:
        ls.move(source, "https://me:secret@127.0.0.1:1/a.zarr")
    assert "me@127.0.0.1" in str(caught.value) and "secret" not in str(caught.value)


@pytest.fixture(scope="module")
def bucket():
    with empty_bucket("longshore-tests") as url:
        yield url


def test_an_s3_server_takes_folders_and_files(source, bucket, tmp_path):
    put(f"{bucket}/d/a.zarrx")
    for chunks in ((2, 2), (5, 6)):
        ls.move(source, f"{bucket}/d/a.zarr", chunks=chunks, zarr_format=3, verify=True, force=True)
    assert keys(f"{bucket}/d") == {"a.zarr/zarr.json", "a.zarr/c/0/0", "a.zarr/c/1/0", "a.zarrx"}
    with ls.open(f"{bucket}/d/a.zarr") as opened:
        np.testing.assert_array_equal(opened.read(), np.load(source))
    with pytest.raises(StoreError, match="exists already"):
        ls.move(source, f"{bucket}/d/a.zarr")
    ls.move(source, f"{bucket}/d/b.npy", verify=True)
    np.testing.assert_array_equal(np.load(fetched(f"{bucket}/d/b.npy", tmp_path, "b.npy")), np.load(source))


KILLED = """
import itertools, json, os, signal, sys, tempfile
import longshore as ls
from s3fs import S3FileSystem

plain, counter = S3FileSystem.put_file, itertools.count()

def put_file(self, *arguments, **options):
    if next(counter) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(self, *arguments, **options)

S3FileSystem.put_file = put_file
source, destination, words, tempfile.tempdir = json.loads(sys.argv[1])
ls.move(source, destination, **words)
"""


def killed(source, destination, temporary, **words):
    """An upload that is killed when three objects have arrived, or are about to."""
    told = json.dumps([str(source), destination, words, str(temporary)])
    assert subprocess.run([sys.executable, "-c", KILLED, told]).returncode == -signal.SIGKILL


@pytest.mark.parametrize("name", ["killed.zarr", "within.zarr/g/u"])
def test_a_killed_upload_is_gone_on_with(source, bucket, temporary, name):
    url, words = f"{bucket}/{name}", {"chunks": (2, 2)}
    root = f"{bucket}/{name.partition('/')[0]}"
    killed(source, url, temporary, **words)
    assert ".longshore-upload" in keys(root)
    if "/" not in name:
        with pytest.raises(StoreError, match="unfinished upload.*go on with it with --resume.*or replace it with"):
            ls.move(source, url, **words)
    told = ls.move(source, url, resume=True, verify=True, **words)
    assert told.resumed_chunks == 15 and ".longshore-upload" not in keys(root)
    with ls.open(url) as opened:
        np.testing.assert_array_equal(opened.read(), np.load(source))


def test_a_killed_upload_of_another_move_or_with_more_in_it_is_not_gone_on_with(source, bucket, temporary):
    url = f"{bucket}/other.zarr"
    killed(source, url, temporary, chunks=(2, 2))
    put(f"{url}/c/7/7")
    with pytest.raises(StoreError, match="other.zarr/c/7/7 has appeared meanwhile; it is not replaced"):
        ls.move(source, url, resume=True, chunks=(2, 2))
    put(f"{url}/.longshore-upload", b"../../etc/passwd")
    with pytest.raises(StoreError, match="holds an unfinished upload of this or another run; name another place"):
        ls.move(source, url, resume=True, chunks=(2, 2))
    assert ls.move(source, url, resume=True, force=True, chunks=(2, 2)).resumed_chunks == 15
    assert "c/7/7" not in keys(url)


def test_a_bucket_that_is_not_there_is_told(source, bucket):
    with pytest.raises(StoreError, match="s3://nonesuch-bucket"):
        ls.move(source, "s3://nonesuch-bucket/a.npy")
    with pytest.raises(ArgumentError, match="whole bucket"):
        ls.move(source, "s3://longshore-tests", "(BLOCK, *) on 2")
