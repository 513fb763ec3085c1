"""Places as people type them, and what is recognised there."""

import json
import os
import socket

import numpy as np
import pytest
from longshore.errors import ArgumentError, ArgumentTypeError, LongshoreError
from longshore.stores import places
from longshore.stores.dense import NpyReader
from longshore.stores.places import parse_place
from longshore.stores.safetensors import SafetensorsReader
from longshore.stores.shards import ShardsReader
from store_files import dense_stores, tensors_file, touch

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
    dense_stores(tmp_path)
    np.save(tmp_path / "a::b.npy", np.arange(3))
    os.rename(tmp_path / "a::b.npy", tmp_path / "a::b")
    x = np.arange(6, dtype="f4").reshape(2, 3)
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
    ("s3://b/a.nc/t2m", "s3://b/a.nc", "t2m", "netcdf", "s3://b/a.nc", "t2m"),
    ("s3://b/a.npy", "s3://b/a.npy", "", "npy", "s3://b/a.npy", ""),
    ("s3://b/out/", "s3://b/out", "", "zarr", "s3://b/out", ""),
    ("s3://b/x.zarr/g/u", "s3://b/x.zarr", "g/u", "zarr", "s3://b/x.zarr", "g/u"),
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
    ("new.zarr/\udcff", "nothing within a store can be called '\\\\udcff', which is no Unicode text"),
    ("new.h5::a/\udcff", "nothing within a store can be called"),
    ("out::x", "does not say which format"),
    ("b.npy::x", "one array"),
    ("new.h5::../x", "the name .."),
    ("model.safetensors.index.json", "name the folder"),
    ("s3://b/out/model.safetensors.index.json", "name the folder"),
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
    options = {"consolidated": False} if engine == "zarr" else {}
    with xarray.open_dataset(path, engine=engine, **options) as dataset:
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
