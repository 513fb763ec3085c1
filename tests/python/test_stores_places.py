"""Places as people type them, what is recognised there, and `longshore.open` and `longshore info` on them."""

import json
import os
import socket
import tracemalloc

import longshore as ls
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore.cli import info as info_module
from longshore.cli.info import info
from longshore.errors import ArgumentError, ArgumentTypeError, LongshoreError, StoreError
from longshore.stores import places
from longshore.stores.array import ArrayFacts, ArrayReader, Grid, GroupFacts, LinkFacts, StoreReader
from longshore.stores.dense import NpyReader, ShardsReader
from longshore.stores.layout_json import encode_layout_json
from longshore.stores.opened import StoredArray, StoredGroup
from longshore.stores.opened import open as ls_open
from longshore.stores.places import parse_place
from longshore.stores.safetensors import SafetensorsReader
from strategies import distinct, same


def touch(path, content=b""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def tensors_file(path, **tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        header[name] = {
            "dtype": "F4",
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        header[name]["dtype"] = {"f": "F32", "i": "I64"}[array.dtype.kind]
        data += array.tobytes()
    raw = json.dumps(header).encode()
    return touch(path, len(raw).to_bytes(8, "little") + raw + data)


HDF5 = b"\x89HDF\r\n\x1a\n"


@pytest.fixture
def stores(tmp_path, monkeypatch):
    """A folder of every kind of store, as far as they are recognised."""
    monkeypatch.chdir(tmp_path)
    for path in ("era5.zarr/.zgroup", "era5.zarr/g/.zgroup", "era5.zarr/g/t2m/.zarray", "plain3/zarr.json"):
        touch(tmp_path / path)
    touch(tmp_path / "plain3" / "u" / "zarr.json")
    touch(tmp_path / "stores.zarr" / "a.zarr" / "zarr.json")
    touch(tmp_path / "run.h5", HDF5 + bytes(100))
    touch(tmp_path / "behind.dat", bytes(2048) + HDF5)
    touch(tmp_path / "model.nc", HDF5 + bytes(100))
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(3, 4))
    np.save(tmp_path / "a::b.npy", np.arange(3))
    os.rename(tmp_path / "a::b.npy", tmp_path / "a::b")
    (tmp_path / "shards").mkdir()
    layout = ls.Layout("(BLOCK) on 2", (5,))
    (tmp_path / "shards" / "layout.json").write_bytes(
        encode_layout_json(layout, (5,), np.dtype("i4"), "C", ["0.npy", "1.npy"])
    )
    for k, part in enumerate((np.arange(3, dtype="i4"), np.arange(3, 5, dtype="i4"))):
        np.save(tmp_path / "shards" / f"{k}.npy", part)
    x, y = np.arange(6, dtype="f4").reshape(2, 3), np.arange(4, dtype="i8")
    tensors_file(tmp_path / "x.safetensors", **{"layer.0.weight": x, "a/b": y})
    tensors_file(tmp_path / "checkpoint" / "model-1.safetensors", x=x)
    touch(
        tmp_path / "checkpoint" / "model.safetensors.index.json",
        json.dumps({"metadata": {}, "weight_map": {"x": "model-1.safetensors"}}).encode(),
    )
    tensors_file(tmp_path / "weights", w=x)  # no suffix
    (tmp_path / "nothing").mkdir()
    touch(tmp_path / "text.txt", b"hello, world, this is text")
    return tmp_path


SOURCES = [
    # typed, path, inner, format
    ("era5.zarr", "era5.zarr", "", "zarr"),
    ("era5.zarr/", "era5.zarr", "", "zarr"),
    ("era5.zarr/g/t2m", "era5.zarr", "g/t2m", "zarr"),
    ("era5.zarr::g/t2m", "era5.zarr", "g/t2m", "zarr"),
    ("era5.zarr/g::/t2m/", "era5.zarr", "g/t2m", "zarr"),
    ("era5.zarr/g/none/x", "era5.zarr", "g/none/x", "zarr"),
    ("./era5.zarr/g", "./era5.zarr", "g", "zarr"),
    ("nothing/../era5.zarr/g", "nothing/../era5.zarr", "g", "zarr"),
    ("plain3/u", "plain3", "u", "zarr"),
    ("stores.zarr/a.zarr/u", "stores.zarr/a.zarr", "u", "zarr"),
    ("run.h5", "run.h5", "", "hdf5"),
    ("run.h5::/fields/u", "run.h5", "fields/u", "hdf5"),
    ("run.h5/fields/u", "run.h5", "fields/u", "hdf5"),
    ("run.h5::", "run.h5", "", "hdf5"),
    ("behind.dat::u", "behind.dat", "u", "hdf5"),
    ("model.nc", "model.nc", "", "netcdf"),
    ("model.nc::t2m", "model.nc", "t2m", "netcdf"),
    ("a.npy", "a.npy", "", "npy"),
    ("a::b", "a::b", "", "npy"),
    ("shards", "shards", "", "shards"),
    ("shards///", "shards", "", "shards"),
    ("checkpoint/", "checkpoint", "", "safetensors"),
    ("checkpoint::x", "checkpoint", "x", "safetensors"),
    ("checkpoint/x", "checkpoint", "x", "safetensors"),
    ("checkpoint/model.safetensors.index.json", "checkpoint/model.safetensors.index.json", "", "safetensors"),
    ("checkpoint/model-1.safetensors", "checkpoint/model-1.safetensors", "", "safetensors"),
    ("x.safetensors::layer.0.weight", "x.safetensors", "layer.0.weight", "safetensors"),
    ("x.safetensors::a/b", "x.safetensors", "a/b", "safetensors"),
    ("x.safetensors/a/b", "x.safetensors", "a/b", "safetensors"),
    ("weights", "weights", "", "safetensors"),
    ("s3://bucket/dir/a.zarr/t2m", "s3://bucket/dir/a.zarr", "t2m", "zarr"),
    ("s3://bucket/a.zarr::g/t2m", "s3://bucket/a.zarr", "g/t2m", "zarr"),
    ("memory://store", "memory://store", "", "zarr"),
    ("http://localhost:1/a.zarr/", "http://localhost:1/a.zarr", "", "zarr"),
]


@pytest.mark.parametrize(("typed", "path", "inner", "format"), SOURCES)
def test_sources(stores, typed, path, inner, format):
    place = parse_place(typed, destination=False)
    assert (place.text, place.path, place.inner, place.format) == (typed, path, inner, format)
    assert place.is_url == ("://" in typed)


def test_sources_by_other_names(stores):
    here = os.getcwd()
    place = parse_place(f"file://{here}/era5.zarr/g", destination=False)
    assert (place.path, place.inner, place.is_url) == (f"{here}/era5.zarr", "g", False)
    assert parse_place(stores / "a.npy", destination=False).format == "npy"
    os.chdir("era5.zarr/g")
    assert parse_place("t2m", destination=False).path == "."
    assert parse_place("t2m", destination=False).inner == "t2m"
    os.chdir(stores)
    os.symlink("era5.zarr", "link")
    assert parse_place("link/g", destination=False).path == "link"
    # What is said goes before what is there.
    assert parse_place("text.txt", destination=False, format="npy").format == "npy"


BAD_SOURCES = [
    ("none", "none does not exist"),
    ("none/a::b", "none/a does not exist"),
    ("nothing", "nothing is not a Zarr store"),
    ("nothing/a", "nothing/a does not exist"),
    ("text.txt", "text.txt is not a Zarr store"),
    ("text.txt::x", "text.txt is not"),
    ("a.npy::x", "one array without a name.*'x'"),
    ("a.npy/x", "does not exist"),
    ("shards::x", "one array without a name"),
    ("run.h5::a/../b", "it has the name .."),
    ("era5.zarr/none/../../x", "does not exist"),
    ("classic.nc", "nccopy"),
    ("archive.zip", "ZIP"),
    ("fifo", "not a plain file"),
    ("socket", "socket"),
    ("s3://bucket/run.h5", "copy the file"),
    ("file://elsewhere/a.npy", "another machine"),
    ("", "empty"),
    ("a\0b", "file name"),
    ("::x", "does not exist"),
    ("/none/" * 2000, "does not exist|cannot"),
]


@pytest.mark.parametrize(("typed", "words"), BAD_SOURCES)
def test_bad_sources(stores, typed, words):
    touch(stores / "classic.nc", b"CDF\x01" + bytes(30))
    touch(stores / "archive.zip", b"PK\x03\x04" + bytes(30))
    os.mkfifo(stores / "fifo")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("socket")
    with listening, pytest.raises(LongshoreError, match=words):
        parse_place(typed, destination=False)


DESTINATIONS = [
    # typed, path, inner, format, publish_path, created
    ("new.zarr", "new.zarr", "", "zarr", "new.zarr", ""),
    ("new.zarr/t2m", "new.zarr", "t2m", "zarr", "new.zarr", "t2m"),
    ("new.zarr::a/b", "new.zarr", "a/b", "zarr", "new.zarr", "a/b"),
    ("era5.zarr", "era5.zarr", "", "zarr", "era5.zarr", ""),
    ("era5.zarr/t2m", "era5.zarr", "t2m", "zarr", "era5.zarr/t2m", ""),
    ("era5.zarr/g/a/b/c", "era5.zarr", "g/a/b/c", "zarr", "era5.zarr/g/a", "b/c"),
    ("era5.zarr/g/t2m", "era5.zarr", "g/t2m", "zarr", "era5.zarr/g/t2m", ""),
    ("stores.zarr/b.zarr", "stores.zarr/b.zarr", "", "zarr", "stores.zarr/b.zarr", ""),
    ("plain3/v", "plain3", "v", "zarr", "plain3/v", ""),
    ("plain3/u/v", "plain3", "u/v", "zarr", "plain3/u/v", ""),
    ("new.h5", "new.h5", "", "hdf5", "new.h5", ""),
    ("new.HDF5::/fields/u", "new.HDF5", "fields/u", "hdf5", "new.HDF5", "fields/u"),
    ("new.he5/fields/u", "new.he5", "fields/u", "hdf5", "new.he5", "fields/u"),
    ("behind.dat::u", "behind.dat", "u", "hdf5", "behind.dat", "u"),
    ("new.nc", "new.nc", "", "netcdf", "new.nc", ""),
    ("new.nc4::t2m", "new.nc4", "t2m", "netcdf", "new.nc4", "t2m"),
    ("b.npy", "b.npy", "", "npy", "b.npy", ""),
    ("y.safetensors::a.b/c", "y.safetensors", "a.b/c", "safetensors", "y.safetensors", ""),
    ("out/", "out", "", "shards", "out", ""),
    ("nothing/b.h5/x", "nothing/b.h5", "x", "hdf5", "nothing/b.h5", "x"),
    ("s3://b/a.zarr/t2m", "s3://b/a.zarr", "t2m", "zarr", "s3://b/a.zarr", "t2m"),
]


@pytest.mark.parametrize(("typed", "path", "inner", "format", "publish_path", "created"), DESTINATIONS)
def test_destinations(stores, typed, path, inner, format, publish_path, created):
    place = parse_place(typed, destination=True)
    assert (place.path, place.inner, place.format) == (path, inner, format)
    assert (place.publish_path, place.created) == (publish_path, created)


def test_destinations_that_depend(stores):
    checkpoint = parse_place("checkpoint", destination=False)
    assert parse_place("out", destination=True, source=checkpoint).format == "safetensors"
    assert parse_place("out", destination=True, source=checkpoint, to="(BLOCK) on 2").format == "shards"
    assert parse_place("plain3/v", destination=True, to="(BLOCK) on 2").format == "shards"
    place = parse_place("out::a", destination=True, format="zarr")
    assert (place.path, place.inner, place.created, place.format) == ("out", "a", "a", "zarr")
    assert parse_place("out.h5", destination=True, format="shards").format == "shards"


BAD_DESTINATIONS = [
    ("out::x", "does not say which format"),
    ("b.npy::x", "one array"),
    ("new.h5::../x", "the name .."),
    ("model.safetensors.index.json", "name the folder"),
    ("s3://b/a.nc", "copy the file"),
    ("", "empty"),
]


@pytest.mark.parametrize(("typed", "words"), BAD_DESTINATIONS)
def test_bad_destinations(stores, typed, words):
    with pytest.raises(ArgumentError, match=words):
        parse_place(typed, destination=True)


def test_bad_arguments(stores):
    with pytest.raises(ArgumentError, match="format is 'tar'"):
        parse_place("a.npy", destination=False, format="tar")
    for thing in (3, None, b"a.npy".join, np.arange(3)):
        with pytest.raises(ArgumentTypeError, match="path, a URL"):
            parse_place(thing, destination=False)
    with pytest.raises(ArgumentError, match="destination is named by"):
        parse_place(3, destination=True)


def test_readers_of_places(stores):
    for typed, kind in (("a.npy", NpyReader), ("shards", ShardsReader), ("x.safetensors", SafetensorsReader)):
        reader = places.open_reader(parse_place(typed, destination=False))
        assert type(reader) is kind
        reader.close()
    reader = places.open_reader(parse_place("x.safetensors::layer.0.weight", destination=False))
    assert reader.tree.shape == (2, 3)


# -- objects of other libraries ---------------------------------------------------------------------------------------


def test_objects_of_h5py(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = str(tmp_path / "a.h5")
    with h5py.File(path, "w") as file:
        file["g/u"] = np.arange(5)
        for thing, inner in ((file, ""), (file["g"], "g"), (file["g/u"], "g/u")):
            place = parse_place(thing, destination=False)
            assert (place.path, place.inner, place.format) == (path, inner, "hdf5")
        held = file["g/u"]
    for thing, words in ((held, "closed"), (file, "closed")):
        with pytest.raises(ArgumentError, match=words):
            parse_place(thing, destination=False)
    with h5py.File("in memory.h5", "w", driver="core", backing_store=False) as file:
        file["u"] = 1
        for thing in (file, file["u"]):
            with pytest.raises(ArgumentError, match="memory"):
                parse_place(thing, destination=False)
        anonymous = file.create_dataset(None, data=1)
        with pytest.raises(ArgumentError, match="no name"):
            parse_place(anonymous, destination=False)


def test_a_netcdf_file_is_known_by_what_it_says(tmp_path):
    h5py = pytest.importorskip("h5py")
    for name, attribute, format in (("a.h5", "_NCProperties", "netcdf"), ("b.h5", "other", "hdf5")):
        with h5py.File(tmp_path / name, "w") as file:
            file.attrs[attribute] = "version=2"
        assert parse_place(tmp_path / name, destination=False).format == format


def test_objects_of_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(str(tmp_path / "a"), mode="w")
    group = root.create_group("g")
    made = group.create_array if hasattr(group, "create_array") else group.create_dataset
    array = made("u", shape=(4,), dtype="f4")
    for thing, inner in ((root, ""), (group, "g"), (array, "g/u")):
        place = parse_place(thing, destination=False)
        assert (place.path, place.inner, place.format) == (str(tmp_path / "a"), inner, "zarr")
    with pytest.raises(ArgumentError, match="no folder"):
        parse_place(zarr.open_group({}, mode="w"), destination=False)


def test_objects_of_zarr_by_url():
    zarr = pytest.importorskip("zarr", "3")
    pytest.importorskip("fsspec")
    root = zarr.open_group("memory://longshore-places/a.zarr", mode="w")
    array = root.create_array("u", shape=(4,), dtype="f4")
    place = parse_place(array, destination=False)
    assert place.is_url and place.path.endswith("longshore-places/a.zarr") and place.inner == "u"
    assert place.path.startswith("memory://")


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf", "zarr"])
def test_objects_of_xarray(tmp_path, engine):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    path = str(tmp_path / "a")
    made = xarray.Dataset({"t": (("y", "x"), np.zeros((3, 4))), "s": ((), 1.0)}, {"x": np.arange(4.0)})
    if engine == "zarr":
        made.to_zarr(path, consolidated=False)
    else:
        made.to_netcdf(path + ".nc", engine=engine)
        os.rename(path + ".nc", path)
    with xarray.open_dataset(path, engine=engine) as dataset:
        format = "zarr" if engine == "zarr" else "netcdf"
        for thing, inner in ((dataset, ""), (dataset["t"], "t"), (dataset["s"], "s")):
            place = parse_place(thing, destination=False)
            assert (place.path, place.inner, place.format) == (path, inner, format)
        for part in (dataset["t"][1:], dataset["t"][::-1], dataset["t"].T, dataset["t"][[2, 1, 0]], dataset.isel(y=0)):
            with pytest.raises(ArgumentError, match="is a part of"):
                parse_place(part, destination=False)
        with pytest.raises(ArgumentError, match="has not the variables .* differ in s"):
            parse_place(dataset[["t"]], destination=False)
        with pytest.raises(ArgumentError, match="does not know its name"):
            parse_place(dataset["t"].variable, destination=False)
        changed = dataset["t"].load()
        for thing in (made, made["t"], dataset["t"] * 2, changed):
            with pytest.raises(ArgumentError, match="in memory|which file"):
                parse_place(thing, destination=False)


# -- opened -----------------------------------------------------------------------------------------------------------


class Chunked(ArrayReader):
    """An array in chunks, in memory, some of which may be missing; it notes what is read."""

    def __init__(self, full, chunks, *, missing=(), fill=None, addressable=False):
        self.where, self.sparse, self.addressable = "memory/x", bool(missing), addressable
        self.facts = ArrayFacts(full.shape, full.dtype, chunks, codecs=("shuffle", "zstd:3"), fill=fill)
        self.grid, self._full, self._missing = Grid(full.shape, chunks), full, set(missing)
        self.read_chunks = []

    def read(self, index):
        self.read_chunks.append(index)
        return None if index in self._missing else index

    def decode(self, index, stored):
        return self._box(self.grid.start(index), self.grid.extents(index))

    def read_box(self, start, extents):
        assert all(0 <= a and n > 0 and a + n <= m for a, n, m in zip(start, extents, self._full.shape))
        self.read_chunks.append(tuple(a // c for a, c in zip(start, self.grid.chunks)))
        return self._box(start, extents)

    def _box(self, start, extents):
        return self._full[(..., *[slice(a, a + n) for a, n in zip(start, extents)])]


class Memory(StoreReader):
    """A store of such arrays."""

    format, path = "Memory", "memory"

    def __init__(self, tree, **arrays):
        self.tree, self.closed, self._arrays = tree, 0, arrays

    def array(self, path=""):
        return self._arrays[path.replace("/", "_") or "x"]

    def fingerprint(self):
        return ""

    def close(self):
        self.closed += 1


def opened(reader):
    return StoredArray(Memory(reader.facts, x=reader), "memory/x", "", reader.facts, True)


@st.composite
def keys(draw, shape):
    def one(n):
        if n and draw(st.integers(0, 2)) == 0:
            return draw(st.integers(-n, n - 1))
        ends = st.one_of(st.none(), st.integers(-n - 3, n + 3))
        step = draw(st.sampled_from([None, None, 1, 2, 3, 7, -1, -2, -5]))
        return slice(draw(ends), draw(ends), step)

    key = [one(n) for n in shape[: draw(st.integers(0, len(shape)))]]
    if draw(st.booleans()):
        after = draw(st.integers(0, len(key)))
        key[after:] = [Ellipsis, *[one(n) for n in shape[len(shape) - len(key[after:]) :]]]
    return key[0] if len(key) == 1 and draw(st.booleans()) else tuple(key)


@st.composite
def readings(draw):
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 3, 8, 13]), max_size=3)))
    return shape, [draw(st.integers(1, 6)) for _ in shape], draw(keys(shape)), draw(st.booleans())


@settings(max_examples=400, deadline=None)
@given(readings())
def test_read_is_numpys_slicing(case):
    shape, chunks, key, addressable = case
    full = distinct(shape, "i4")
    reader = Chunked(full, tuple(chunks), addressable=addressable)
    array, wanted = opened(reader), full[key]
    found = array.read(key)
    read_once = sorted(reader.read_chunks)
    assert isinstance(found, np.ndarray) and same(found, np.asarray(wanted))
    assert type(array[key]) is type(wanted) and np.array_equal(array[key], wanted)
    # No chunk without anything of it, and none twice.
    marked = np.zeros(shape, bool)
    marked[key] = True
    needed = {
        index
        for index in reader.grid.indices()
        if marked[tuple(slice(a, a + n) for a, n in zip(reader.grid.start(index), reader.grid.extents(index)))].any()
    }
    assert read_once == sorted(needed)


def test_read_regions():
    full = distinct((9, 7), "f8")
    array = opened(Chunked(full, (4, 3)))
    assert same(array.read(ls.Region((2, 3), (9, 5))), full[2:9, 3:5])
    assert same(array.read(), full) and same(np.asarray(array), full) and same(array.read(...), full)
    assert array.read(ls.Region((5, 5), (5, 7))).shape == (0, 2)
    assert [row[0] for row in array] == full[:, 0].tolist() and len(array) == 9
    assert np.asarray(array, "f4").dtype == np.float32
    with pytest.raises(IndexError, match=r"\[2, 10\) in dimension 0 lies beyond \[0, 9\) of memory/x"):
        array.read(ls.Region((2, 0), (10, 7)))
    with pytest.raises(IndexError, match="region of 1 dimensions"):
        array.read(ls.Region((2,), (3,)))
    with pytest.raises(ArgumentError, match="copy"):
        np.asarray(array, copy=False)


BAD_KEYS = [
    (9, IndexError, "index 9 is out of bounds for dimension 0 with extent 9"),
    ((0, -8), IndexError, "index -8 is out of bounds for dimension 1 with extent 7"),
    ((0, 0, 0), IndexError, "too many indices.* 2 dimensions, 3"),
    ((..., ...), IndexError, "single ellipsis"),
    (slice(0, 9, 0), ValueError, "step of the slice in dimension 0 is 0"),
    (slice(0, 9.5), TypeError, "dimension 0"),
    ("a", TypeError, "index in dimension 0 is 'a'"),
    (True, TypeError, "True"),
    ((0, None), TypeError, "index in dimension 1 is None"),
    ([0, 1], TypeError, "dimension 0"),
    (0.5, TypeError, "0.5"),
]


@pytest.mark.parametrize(("key", "error", "words"), BAD_KEYS)
def test_bad_indices(key, error, words):
    array = opened(Chunked(distinct((9, 7), "f8"), (4, 3)))
    with pytest.raises(error, match=words) as caught:
        array.read(key)
    assert isinstance(caught.value, ArgumentError)


def test_missing_chunks_are_the_fill_value():
    full = distinct((9, 7), ">f4")
    reader = Chunked(full, (4, 3), missing=[(1, 1), (2, 2)], fill=np.array(np.nan, ">f4").tobytes())
    array = opened(reader)
    wanted = full.copy()
    wanted[4:8, 3:6] = wanted[8:, 6:] = np.nan
    assert np.array_equal(array.read(), wanted, equal_nan=True)
    assert np.array_equal(array[::-3, 1::2], wanted[::-3, 1::2], equal_nan=True)
    assert np.isnan(array.fill) and array.chunks == (4, 3) and array.codecs == ("shuffle", "zstd:3")
    none = opened(Chunked(full, (4, 3), missing=[(0, 0)]))
    assert none.fill is None and not none[:4, :3].any()


def test_an_error_in_a_thread_comes_out():
    class Bad(Chunked):
        def decode(self, index, stored):
            if index == (1, 1):
                raise StoreError("chunk (1, 1) of memory/x cannot be decoded")
            return super().decode(index, stored)

    with pytest.raises(StoreError, match=r"chunk \(1, 1\)"):
        opened(Bad(distinct((9, 7), "f8"), (4, 3))).read()


def test_what_is_held_in_memory_is_bounded():
    """A strided read of an array that is larger than what may be held."""

    class Large(Chunked):
        def decode(self, index, stored):
            return np.full(self.grid.extents(index), index[0], "f8")

    reader = Large(np.broadcast_to(np.float64(0), (1 << 30, 2)), (1 << 13, 2))
    tracemalloc.start()
    found = opened(reader).read((slice(None, None, 1 << 22), 0))
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
    assert np.array_equal(found, np.arange(256) * 512) and len(reader.read_chunks) == 256


def test_open_arrays(stores):
    with ls_open("a.npy") as array:
        assert (
            array.shape == (3, 4)
            and array.dtype == np.float64
            and (array.ndim, array.size, array.nbytes) == (2, 12, 96)
        )
        assert array.chunks is None and array.shards is None and array.codecs == () and array.fill is None
        assert array.layout == ls.Layout("(*, *) on 1", (3, 4)) and array.names is None and dict(array.attributes) == {}
        assert same(array[1:, ::2], np.arange(12.0).reshape(3, 4)[1:, ::2])
    with ls_open("shards") as array:
        assert array.layout == ls.Layout("(BLOCK) on 2", (5,)) and array[3] == 3 and array.format == "shards"
    np.save("f.npy", np.asfortranarray(np.ones((2, 3))))
    np.save("one.npy", np.array(3.5))
    assert ls_open("f.npy").layout == ls.Layout("(*, *) on 1, order=F", (2, 3))
    one = ls_open("one.npy")
    assert one.layout is None and one[()] == 3.5 and one.read().shape == ()
    for mistake in (len, iter):
        with pytest.raises(TypeError, match="no dimensions"):
            list(mistake(one)) if mistake is iter else mistake(one)
    with pytest.raises(StoreError, match="none does not exist"):
        ls_open("none")


def test_open_groups(stores):
    with ls_open("x.safetensors") as group:
        assert list(group) == ["layer.0.weight", "a/b"] and len(group) == 2 and "a/b" in group and "a" not in group
        assert same(group["a/b"].read(), np.arange(4)) and group["a/b"].where == "x.safetensors/a/b"
        with pytest.raises(KeyError, match="is it 'layer.0.weight'") as caught:
            group["layer.0.weights"]
        assert isinstance(caught.value, ArgumentError) and not str(caught.value).startswith(("'", '"'))
        with pytest.raises(TypeError, match="text"):
            group[0]


def zarr_store(path, full):
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(str(path), mode="w")
    made = root.create_array if hasattr(root, "create_array") else root.create_dataset
    made("u", shape=full.shape, chunks=(4, 3), dtype=full.dtype, fill_value=7)[:] = full
    root.attrs["title"] = "a store"


def hdf5_store(path, full):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=full, chunks=(4, 3), compression="gzip", fillvalue=7)
        file.attrs["title"] = "a store"


def netcdf_store(path, full):
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(path, "w") as file:
        file.title = "a store"
        for name, extent in zip("yx", full.shape):
            file.createDimension(name, extent)
        file.createVariable("u", full.dtype, ("y", "x"), chunksizes=(4, 3), fill_value=7)[:] = full


STORES = {"a.zarr": zarr_store, "b": zarr_store, "a.h5": hdf5_store, "c": hdf5_store, "a.nc": netcdf_store}


@pytest.mark.parametrize("name", STORES)
def test_open_stores_of_other_libraries(tmp_path, monkeypatch, name):
    """What zarr, h5py and netCDF4 have written is recognised and read, with and without a name that says what it is."""
    monkeypatch.chdir(tmp_path)
    full = distinct((9, 7), "i4")
    STORES[name](tmp_path / name, full)
    with ls_open(name) as group:
        assert list(group) == ["u"] and group.attributes["title"] == "a store"
        array = group["u"]
        assert array.chunks == (4, 3) and array.fill == 7 and array.layout == ls.Layout("(*, *) on 1", (9, 7))
        assert same(array[::-2, 2:6], full[::-2, 2:6])
    for typed in (f"{name}/u", f"{name}::u", f"{name}::/u"):
        with ls_open(typed) as array:
            assert same(array.read(), full)
    for typed in (f"{name}/v", f"{name}::u/v"):
        with pytest.raises(LongshoreError, match="v"):
            ls_open(typed)
    told = json.loads(CliRunner().invoke(info, [name, "--json"], catch_exceptions=False).stdout)
    (array,) = told["arrays"]
    assert array["chunks"] == [4, 3] and array["fill"] == 7 and array["memory_bytes"] == full.nbytes
    assert 0 < told["stored_bytes"] < 4096 and told["attributes"] == 1


def nested():
    u = Chunked(distinct((9, 7), "f8"), (4, 3))
    odd = ArrayFacts((3,), None, type_name="variable \x1b[31mtext")
    inner = GroupFacts({"u": u.facts, "a/b": u.facts}, {"k": 1})
    tree = GroupFacts(
        {"g": GroupFacts({"h": inner}, {}), "odd": odd, "link": LinkFacts("soft", "/g"), "u": u.facts},
        {"title": "x"},
        {"time": (9, True)},
    )
    return Memory(tree, u=u, g_h_u=u, g_h_a_b=u)


def test_groups_are_mappings():
    store = nested()
    with StoredGroup(store, "memory", "", store.tree, True) as group:
        assert list(group) == ["g", "odd", "u"] and len(group) == 3 and dict(group.attributes) == {"title": "x"}
        assert list(group.links) == ["link"] and group.dimensions == {"time": (9, True)}
        for path in ("g/h/u", "/g/h/u/", "g/h/a/b"):
            assert group[path].shape == (9, 7) and path in group
        assert group["g"]["h"]["u"].where == "memory/g/h/u" == group["g/h"]["u"].where
        assert same(group["g"]["h/a/b"].read(), distinct((9, 7), "f8"))
        for name in ("g/x", "h", "u/x", "", "link/x", "link"):
            assert name not in group
        with pytest.raises(KeyError, match="soft link to /g"):
            group["link/h"]
        with pytest.raises(StoreError, match="text, which are not read"):
            group["odd"].read()
        group["g"].close()
        assert store.closed == 0
    assert store.closed == 1


# -- info -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def call(stores):
    def call(*words):
        done = CliRunner().invoke(info, list(words), catch_exceptions=False)
        assert done.exit_code == 0
        return done.stdout

    return call


def test_info_of_an_array(call):
    told = json.loads(call("shards/", "--json"))
    (array,) = told["arrays"]
    assert told["kind"] == "array" and told["format"] == "shards" and told["path"] == "shards/"
    assert array == {
        "name": "",
        "shape": [5],
        "dtype": "int32",
        "type_name": None,
        "movable": True,
        "order": "C",
        "chunks": None,
        "shards": None,
        "codecs": [],
        "layout": "(BLOCK) on 2",
        "names": None,
        "unlimited": [],
        "fill": None,
        "attributes": 0,
        "stored_bytes": 20,
        "memory_bytes": 20,
    }
    assert told["stored_bytes"] == told["memory_bytes"] == 20
    said = call("a.npy")
    assert "a.npy: an array (.npy)" in said and "3 x 4" in said and "float64" in said and "96 B" in said


def test_info_of_a_group(call):
    told = json.loads(call("x.safetensors", "--json"))
    assert [array["name"] for array in told["arrays"]] == ["layer.0.weight", "a/b"]
    assert told["kind"] == "group" and told["stored_bytes"] == 24 + 32 and told["links"] == []
    lines = call("x.safetensors").splitlines()
    assert "2 arrays" in lines[0] and len(lines) == 4
    assert lines[1].split() == ["array", "shape", "type", "stored", "in", "memory"]
    assert lines[2].split() == ["layer.0.weight", "2", "x", "3", "float32", "24", "B", "24", "B"]
    one = json.loads(call("x.safetensors::a/b", "--json"))
    assert one["kind"] == "array" and one["arrays"][0]["shape"] == [4]


def test_info_tells_of_links_and_of_what_cannot_be_moved(call, monkeypatch):
    monkeypatch.setattr(places, "open_reader", lambda place: nested())
    monkeypatch.setattr("longshore.stores.opened.open_reader", lambda place: nested())
    told = json.loads(call("a.npy", "--json"))
    assert told["links"] == [{"name": "link", "kind": "soft", "target": "/g"}]
    assert {"name": "g/h", "attributes": 1} in told["groups"] and told["stored_bytes"] is None
    assert told["dimensions"] == {"time": {"extent": 9, "unlimited": True}}
    by_name = {array["name"]: array for array in told["arrays"]}
    assert set(by_name) == {"g/h/u", "g/h/a/b", "odd", "u"}
    assert by_name["odd"]["movable"] is False and by_name["odd"]["dtype"] is by_name["odd"]["memory_bytes"] is None
    assert by_name["u"]["chunks"] == [4, 3] and by_name["u"]["codecs"] == ["shuffle", "zstd:3"]
    said = call("a.npy")
    assert "link link: soft, to /g" in said and "not movable" in said and "dimension time: 9, unlimited" in said
    assert "\x1b" not in said and "group g/h: 1 attribute" in said and "shuffle, zstd:3" in said


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.float32(1.5), 1.5),
        (np.float64("nan"), "nan"),
        (np.float64("-inf"), "-inf"),
        (np.int8(-3), -3),
        (np.bool_(True), True),
        (np.complex64(1 + 2j), "(1+2j)"),
        (np.bytes_(b"a\xff"), "aÿ"),
        (np.datetime64("2000-01-01"), "2000-01-01"),
        (np.frombuffer(b"\x01\x02", "V2")[0], "0x0102"),
        (np.zeros(1, "i2,f4")[0], "(0, 0.0)"),
        (np.longdouble(0.5), "0.5"),
    ],
)
def test_fill_values_in_json(value, told):
    assert info_module._plain_value(value) == told
    json.dumps(info_module._plain_value(value), allow_nan=False)


def test_info_of_many_arrays_is_cut(stores, call):
    tensors_file(stores / "many.safetensors", **{f"t{k}": np.zeros(1, "f4") for k in range(300)})
    lines = call("many.safetensors").splitlines()
    assert len(lines) == 203 and "100 more" in lines[-1]
    assert len(json.loads(call("many.safetensors", "--json"))["arrays"]) == 300
