"""What is written again, replaced or removed after it was opened, or while it is moved, is noticed."""

import itertools
import os
import pathlib
import shutil

import fsspec
import h5py
import longshore as ls
import numpy as np
import pytest
from longshore.errors import StoreError
from longshore.stores import moving_chunks
from longshore.stores.array import ArrayFacts
from s3_server import empty_bucket
from store_files import dense_stores, tensors_file
from zarr_stores import ZARR_3, needs_zarr_3, write, zarr

CHANGED = "has been changed while it was read"
VALUES = np.arange(64 * 48, dtype="f4").reshape(64, 48)
LATER = 10**9
"""Nanoseconds: files that are written within a tick of the file system's clock have one time."""
FORMATS = ["a.npy", "x.safetensors", "a.h5", "plain.h5", "small.h5", "a.nc", "two.zarr", "three.zarr", "shards.zarr"]


def make(name, values):
    """A file or folder with an array, and what is to be opened."""
    if name.endswith(".npy"):
        np.save(name, values)
        return name
    if name.endswith(".safetensors"):
        tensors_file(pathlib.Path(name), w=values)
        return f"{name}::w"
    if name.endswith((".h5", ".nc")):
        with h5py.File(name, "w") as file:
            file.create_dataset("x", data=values, chunks=(16, 16) if name in ("a.h5", "a.nc") else None)
            if name == "small.h5":
                del file["x"]
                plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                plist.set_layout(h5py.h5d.COMPACT)
                file.create_dataset("x", data=values[:4], dcpl=plist)
        return f"{name}::x"
    if not ZARR_3:
        shards = (32, 48) if name == "shards.zarr" else None
        facts = ArrayFacts(values.shape, values.dtype, chunks=(16, 16), shards=shards)
        write(pathlib.Path(name, "x"), facts, {"": values}, 2 if name == "two.zarr" else 3)
        group = {".zgroup": '{"zarr_format":2}', "zarr.json": '{"zarr_format":3,"node_type":"group"}'}
        document = ".zgroup" if name == "two.zarr" else "zarr.json"  # which tells nothing of the array
        pathlib.Path(name, document).write_text(group[document])
        return f"{name}/x"
    shards = {"shards": (32, 48)} if name == "shards.zarr" else {}
    group = zarr.open_group(name, mode="w", zarr_format=2 if name == "two.zarr" else 3)
    group.create_array("x", shape=values.shape, dtype=values.dtype, chunks=(16, 16), **shards)[...] = values
    return f"{name}/x"


def file_of(name):
    """A file that has elements of the array."""
    inner = {"two.zarr": "x/0.0", "three.zarr": "x/c/0/0", "shards.zarr": "x/c/0/0"}
    return os.path.join(name, inner[name]) if name in inner else name


def rewritten(path):
    """The same bytes, written again in place."""
    status = os.stat(path)
    with open(path, "r+b") as file:
        start = file.read(1)
        file.seek(0)
        file.write(start)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + LATER))


def replaced(path):
    """Another file of the same size, whose time is the same."""
    status = os.stat(path)
    shutil.copy(path, f"{path}.new")
    os.utime(f"{path}.new", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(f"{path}.new", path)


def longer(path):
    status = os.stat(path)
    with open(path, "ab") as file:
        file.write(b"more")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("change", [rewritten, replaced, longer, os.remove])
@pytest.mark.parametrize("before", ["nothing was read", "all was read"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_changes_after_it_was_opened(name, before, change):
    with ls.open(make(name, VALUES)) as array:
        if before == "all was read":
            assert (array.read() == VALUES[: array.shape[0]]).all()
        change(file_of(name))
        with pytest.raises(StoreError, match=f"{CHANGED}|is missing|cannot open"):
            array.read()


@pytest.mark.parametrize("name", ["two.zarr", "three.zarr"])
def test_a_chunk_that_comes_or_goes_after_the_store_was_opened(name):
    inner = make(name, VALUES)
    os.rename(file_of(name), "aside")
    with ls.open(inner) as array:
        assert not array.read()[:16, :16].any()
        os.rename("aside", file_of(name))
        assert (array[16:] == VALUES[16:]).all()
        with pytest.raises(StoreError, match=CHANGED):
            array.read()


@needs_zarr_3
def test_what_tells_of_an_array_is_looked_at_again():
    """Its shape may be another one."""
    inner = make("three.zarr", VALUES)
    with ls.open(inner) as array:
        zarr.open_array(inner).resize((128, 48))
        with pytest.raises(StoreError, match=CHANGED):
            array.read()


def test_shards_that_change_after_they_were_opened(tmp_path):
    dense_stores(tmp_path)
    with ls.open("shards") as array:
        replaced("shards/1.npy")
        assert array[:3].tolist() == [0, 1, 2]
        with pytest.raises(StoreError, match=f"1.npy {CHANGED}"):
            array.read()


def test_hard_links_and_other_names_are_no_change():
    with ls.open(make("a.npy", VALUES)) as array, ls.open(make("three.zarr", VALUES)) as chunked:
        os.link("a.npy", "b.npy")
        os.link("three.zarr/x/c/0/0", "chunk")
        assert (array.read() == VALUES).all() and (chunked.read() == VALUES).all()


@pytest.mark.parametrize("change", [rewritten, replaced])
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_changes_while_it_is_moved(name, change, monkeypatch):
    inner, carried = make(name, VALUES), moving_chunks._Job._copy_others

    def then(self, writer):
        change(file_of(name))
        carried(self, writer)

    monkeypatch.setattr(moving_chunks._Job, "_copy_others", then)
    with pytest.raises(StoreError, match=f"{CHANGED}|has been changed"):
        ls.move(inner, "out.zarr/x")
    assert not os.path.exists("out.zarr")


def test_a_file_that_changes_before_its_first_chunk_is_read(monkeypatch):
    """The whole of it is not read first."""
    make("a.npy", VALUES)
    planned = moving_chunks._Job._planned

    def then(self, *ratios):
        replaced("a.npy")
        return planned(self, *ratios)

    monkeypatch.setattr(moving_chunks._Job, "_planned", then)
    with pytest.raises(StoreError, match=CHANGED):
        ls.move("a.npy", "out.zarr")
    assert not os.path.exists("out.zarr")


numbers = itertools.count()


@pytest.fixture(params=["memory", "s3"])
def bucket(request):
    if request.param == "memory":
        fs = fsspec.filesystem("memory")
        yield "memory://changed", fs
        fs.rm("/changed", recursive=True)
        return
    import s3fs

    with empty_bucket(f"changed-{next(numbers)}") as url:
        yield url, s3fs.S3FileSystem(skip_instance_cache=True)


def uploaded(name, url, fs):
    """The same as `make`, at a URL."""
    inner = make(name, VALUES)
    fs.put(name, f"{url}/{name}", recursive=os.path.isdir(name))
    return f"{url}/{inner}"


def written_again(fs, url, name):
    place = f"{url}/{file_of(name)}"
    raw = fs.cat_file(place)
    fs.pipe_file(place, raw[:-1] + bytes([raw[-1] ^ 1]))


@pytest.mark.parametrize("before", ["nothing was read", "some was read"])
@pytest.mark.parametrize("name", ["a.npy", "x.safetensors", "a.h5", "plain.h5"])
def test_an_object_that_changes_after_it_was_opened(bucket, name, before):
    url, fs = bucket
    with ls.open(uploaded(name, url, fs)) as array:
        if before == "some was read":
            assert (array[:4] == VALUES[:4]).all()
        written_again(fs, url, name)
        with pytest.raises(StoreError, match=CHANGED):
            array.read()


@pytest.mark.parametrize("name", ["two.zarr", "three.zarr"])
def test_what_tells_of_an_array_at_a_url_is_looked_at_again(bucket, name):
    url, fs = bucket
    inner = uploaded(name, url, fs)
    document = f"{url}/{name}/x/{'.zarray' if name == 'two.zarr' else 'zarr.json'}"
    with ls.open(inner) as array:
        fs.pipe_file(document, fs.cat_file(document) + b" ")
        with pytest.raises(StoreError, match=CHANGED):
            array.read()


@pytest.mark.parametrize("name", ["a.npy", "x.safetensors", "a.h5", "two.zarr", "shards.zarr"])
def test_an_object_that_changes_while_it_is_moved(bucket, name, monkeypatch):
    url, fs = bucket
    inner, carried = uploaded(name, url, fs), moving_chunks._Job._copy_others

    def then(self, writer):
        written_again(fs, url, name)
        carried(self, writer)

    monkeypatch.setattr(moving_chunks._Job, "_copy_others", then)
    with pytest.raises(StoreError, match="has been changed"):
        ls.move(inner, "out.zarr/x")
    assert not os.path.exists("out.zarr")
