"""Moves between stores of any format: `longshore move` and `ls.stores.move`, against the formats' own libraries."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import longshore as ls
import numpy as np
import pytest
from longshore.errors import ArgumentError, MemoryLimitError, StoreError, VerificationError
from longshore.stores import journal, moving_chunks, publish
from longshore.stores.array import ArrayFacts
from longshore.stores.kept_work import KeptWork
from longshore.stores.zarr_reader import ZarrReader
from zarr_stores import write

zarr = pytest.importorskip("zarr")
h5py = pytest.importorskip("h5py")
zarr_3 = pytest.mark.skipif(int(zarr.__version__.split(".")[0]) < 3, reason="zarr 2 knows no Zarr 3")

SHAPE, CHUNKS = (24, 30, 17), (1, 30, 17)


def maps(dtype="f4"):
    return np.random.default_rng(1).normal(size=SHAPE).astype(dtype)


def make_zarr(path, array, chunks=CHUNKS, name="t2m", **more):
    group = zarr.open_group(str(path), mode="w")
    if int(zarr.__version__.split(".")[0]) >= 3:
        made = group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=chunks, **more)
    else:
        made = group.create_dataset(name, shape=array.shape, dtype=array.dtype, chunks=chunks, **more)
    made[...] = array
    made.attrs["units"] = "K"
    group.attrs["title"] = "maps"
    return group


def make_hdf5(path, array, chunks=CHUNKS, name="fields/u", **more):
    with h5py.File(path, "w") as file:
        made = file.create_dataset(name, data=array, chunks=chunks, **more)
        made.attrs["units"] = "m/s"


def run(*words, **more):
    return subprocess.run(
        [sys.executable, "-m", "longshore.cli", "move", *map(str, words)], capture_output=True, text=True, **more
    )


def test_zarr_to_zarr(tmp_path):
    array = maps()
    make_zarr(tmp_path / "era5.zarr", array)
    told = ls.stores.move(
        tmp_path / "era5.zarr/t2m", tmp_path / "series.zarr/t2m", chunks="24x8x8", max_mem="128MiB", verify=True
    )
    made = zarr.open_group(str(tmp_path / "series.zarr"), mode="r")["t2m"]
    assert (made[...] == array).all() and tuple(made.chunks) == (24, 8, 8)
    assert dict(made.attrs) == {"units": "K"}
    assert told.verified and told.digest and told.arrays[0].plan.way == "sweep"
    assert sorted(os.listdir(tmp_path)) == ["era5.zarr", "series.zarr"]


def test_a_whole_group_with_all_that_it_says(tmp_path):
    array = maps()
    group = make_zarr(tmp_path / "a.zarr", array, fill_value=np.nan)
    inner = group.create_group("inner")
    inner.attrs["depth"] = [1, 2]
    if hasattr(inner, "create_array"):
        other = inner.create_array("n", shape=(100,), dtype="i8", chunks=(7,), fill_value=-1)
    else:
        other = inner.create_dataset("n", shape=(100,), dtype="i8", chunks=(7,), fill_value=-1)
    other[:50] = np.arange(50)
    told = ls.stores.move(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=None, codecs=[])
    made = zarr.open_group(str(tmp_path / "b.zarr"), mode="r")
    assert dict(made.attrs) == {"title": "maps"} and dict(made["inner"].attrs) == {"depth": [1, 2]}
    assert (made["t2m"][...] == array).all() and np.isnan(made["t2m"].fill_value)
    assert (made["inner/n"][...] == other[...]).all() and made["inner/n"].fill_value == -1
    assert len(told.arrays) == 2
    digest = told.digest
    assert ls.stores.move(tmp_path / "b.zarr", tmp_path / "c.zarr", codecs=["zstd:3"]).digest == digest


@pytest.mark.parametrize("dtype", ["f4", ">f8", "i2", "u1"])
def test_there_and_back_through_every_format(tmp_path, dtype):
    array = maps("f8").astype(dtype)
    make_hdf5(tmp_path / "run.h5", array, compression="gzip", shuffle=True)
    steps = [
        (f"{tmp_path}/run.h5::/fields/u", f"{tmp_path}/a.zarr/u", {"chunks": (5, 7, 17)}),
        (f"{tmp_path}/a.zarr/u", f"{tmp_path}/b.npy", {"lossy": True}),
        (f"{tmp_path}/b.npy", f"{tmp_path}/c.h5::/x/y", {"chunks": (24, 1, 17), "codecs": ["shuffle", "gzip:4"]}),
        (f"{tmp_path}/c.h5::/x/y", f"{tmp_path}/shards", {"to": "(CYCLIC(5), BLOCK, *) on 2x3"}),
        (f"{tmp_path}/shards", f"{tmp_path}/d.safetensors::w", {"lossy": True}),
        (f"{tmp_path}/d.safetensors::w", f"{tmp_path}/e.zarr/w", {"chunks": "24x2x2", "zarr_format": 2}),
        (f"{tmp_path}/e.zarr/w", f"{tmp_path}/f.nc::w", {"chunks": "8x8x8"}),
        (f"{tmp_path}/f.nc::w", f"{tmp_path}/last.npy", {"lossy": True}),
    ]
    for source, destination, options in steps:
        ls.stores.move(source, destination, verify=True, max_mem="64MiB", **options)
    last = np.load(tmp_path / "last.npy")
    assert last.dtype == array.dtype.newbyteorder("<" if last.dtype.byteorder != ">" else ">")
    assert (last == array).all()
    with h5py.File(tmp_path / "c.h5") as file:
        made = file["x/y"]
        assert (made[...] == array).all() and made.chunks == (24, 1, 17) and made.compression == "gzip" and made.shuffle


@zarr_3
def test_shards(tmp_path):
    array = maps()
    make_zarr(tmp_path / "a.zarr", array)
    ls.stores.move(
        tmp_path / "a.zarr/t2m",
        tmp_path / "b.zarr/t2m",
        chunks=(4, 5, 6),
        shards=(12, 15, 18),
        codecs=["zstd:1"],
        verify=True,
    )
    made = zarr.open_group(str(tmp_path / "b.zarr"), mode="r")["t2m"]
    assert (made[...] == array).all() and tuple(made.chunks) == (4, 5, 6) and tuple(made.shards) == (12, 15, 18)
    ls.stores.move(tmp_path / "b.zarr/t2m", tmp_path / "c.npy", lossy=True)
    assert (np.load(tmp_path / "c.npy") == array).all()


@zarr_3
@pytest.mark.parametrize(
    ("shape", "source", "words", "chunks", "shards"),
    [
        ((7,), {"chunks": (8,), "shards": (16,)}, {}, (8,), (16,)),
        ((7, 5), {"chunks": (8, 2), "shards": (16, 4)}, {"axes": (1, 0)}, (2, 8), (4, 16)),
        ((7,), {"chunks": (7,)}, {"chunks": (8,), "shards": (16,)}, (8,), (16,)),
        ((7,), {"chunks": (8,)}, {"shards": (7,)}, (7,), (7,)),
        ((7,), {"chunks": (8,), "shards": (16,)}, {"chunks": (8,)}, (7,), None),
        ((7,), {"chunks": (8,), "shards": (16,)}, {"zarr_format": 2}, (7,), None),
    ],
    ids=["as it is", "turned", "asked for", "shards within the array", "without shards", "a format without shards"],
)
def test_shards_of_chunks_that_reach_beyond_the_array(tmp_path, shape, source, words, chunks, shards):
    array = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    zarr.create_array(str(tmp_path / "a.zarr"), shape=shape, dtype="i4", **source)[...] = array
    ls.move(tmp_path / "a.zarr", tmp_path / "b.zarr", verify=True, **words)
    made = zarr.open_array(str(tmp_path / "b.zarr"), mode="r")
    assert (made[...] == array.transpose(words.get("axes"))).all()
    assert (made.chunks, made.shards) == (chunks, shards)


def test_axes_and_names_of_dimensions(tmp_path):
    array = maps()
    make_zarr(tmp_path / "a.zarr", array)
    ls.stores.move(tmp_path / "a.zarr/t2m", tmp_path / "b.zarr/t2m", axes=(2, 0, 1), chunks=(17, 3, 3))
    assert (zarr.open_group(str(tmp_path / "b.zarr"), mode="r")["t2m"][...] == array.transpose(2, 0, 1)).all()


def test_netcdf_is_what_xarray_reads(tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    data = xarray.Dataset(
        {"t2m": (("time", "lat", "lon"), maps(), {"units": "K"}), "mean": (("lat",), np.arange(30.0))},
        {"time": np.arange(24), "lat": np.linspace(-90, 90, 30), "lon": np.arange(17.0)},
        {"title": "a model"},
    )
    data.to_netcdf(tmp_path / "model.nc", encoding={"t2m": {"zlib": True, "chunksizes": (1, 30, 17)}})
    made = run(tmp_path / "model.nc", tmp_path / "out.nc", "--chunks", "time=24,lat=5", "--json")
    assert made.returncode == 0, made.stderr
    with xarray.open_dataset(tmp_path / "out.nc") as out:
        xarray.testing.assert_identical(out.load(), data)
    with h5py.File(tmp_path / "out.nc") as file:
        assert file["t2m"].chunks == (24, 5, 17)
    made = run(tmp_path / "model.nc", tmp_path / "out.zarr", "--chunks", "time=24,lat=5", "--zarr-format", "2")
    assert made.returncode == 0, made.stderr
    with xarray.open_zarr(tmp_path / "out.zarr") as out:
        xarray.testing.assert_equal(out.load(), data)
        assert out["t2m"].attrs["units"] == "K" and out.attrs["title"] == "a model"


@pytest.mark.parametrize(
    ("words", "compression"), [({"codecs": ["gzip:1"]}, "gzip"), ({"codecs": []}, None), ({"chunks": (3,)}, "lzf")]
)
def test_other_codecs_or_chunks_take_nothing_else_of_hdf5_away(tmp_path, words, compression):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        colours = h5py.enum_dtype({"red": 0, "green": 3}, "i1")
        made = file.create_dataset("u", data=[0, 3, 0, 3], dtype=colours, chunks=(2,), maxshape=(9,), compression="lzf")
        file["t"] = np.arange(4.0)
        file["t"].make_scale("time")
        made.dims[0].attach_scale(file["t"])
    ls.move(tmp_path / "a.h5", tmp_path / "b.h5", **words)
    with h5py.File(tmp_path / "b.h5") as file:
        made = file["u"]
        assert made.maxshape == (9,) and list(made.dims[0].keys()) == ["time"] and made.dims[0][0] == file["t"]
        assert h5py.check_enum_dtype(made.dtype) == {"red": 0, "green": 3} and made[...].tolist() == [0, 3, 0, 3]
        assert made.compression == compression


@pytest.mark.parametrize("words", [{"codecs": ["gzip:1"]}, {"chunks": (3,)}], ids=str)
def test_other_codecs_or_chunks_take_no_enum_of_netcdf_away(tmp_path, words):
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 5)
        colours = file.createEnumType(np.uint8, "colours", {"red": 0, "green": 3})
        file.createVariable("u", colours, ("x",), fill_value=0)[:] = 3
    ls.move(tmp_path / "a.nc", tmp_path / "b.nc", **words)
    with netcdf.Dataset(tmp_path / "b.nc") as file:
        made = file["u"]
        assert made.datatype.enum_dict == {"red": 0, "green": 3} and made[...].tolist() == [3] * 5
        assert made.filters()["zlib"] == ("codecs" in words)


@pytest.mark.parametrize("zarr_format", [2, pytest.param(3, marks=zarr_3)])
def test_other_codecs_take_the_keys_of_chunks_not_away(tmp_path, zarr_format):
    facts = ArrayFacts((4, 4), np.dtype("i4"), chunks=(2, 2), codecs=("zstd:1",))
    keys = {"zarr.separator": "/"} if zarr_format == 2 else {"zarr.chunk_key_encoding": {"name": "v2"}}
    write(tmp_path / "a.zarr", replace(facts, own=keys), {"": np.ones((4, 4), "i4")}, zarr_format)
    ls.move(tmp_path / "a.zarr", tmp_path / "b.zarr", codecs=["gzip:1"], zarr_format=zarr_format, verify=True)
    made = ZarrReader(str(tmp_path / "b.zarr")).tree
    assert made.codecs == ("gzip:1",) and made.own.items() >= keys.items()


def test_a_dry_run_writes_nothing_and_says_what_the_run_does(tmp_path):
    make_zarr(tmp_path / "a.zarr", maps(), chunks=(5, 7, 17))
    words = (tmp_path / "a.zarr/t2m", tmp_path / "b.zarr/t2m", "--chunks", "24x6x17", "--codec", "none", "--json")
    planned = run(*words, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert sorted(os.listdir(tmp_path)) == ["a.zarr"]
    done = run(*words)
    assert done.returncode == 0, done.stderr
    told, predicted = json.loads(done.stdout), json.loads(planned.stdout)["predicted"]
    for what in ("read", "written", "spilled"):
        assert abs(told[f"bytes_{what}"] - predicted[f"bytes_{what}"]) <= 0.03 * predicted[f"bytes_{what}"]
    plain = run(*words[:-1], "--dry-run", "--force")
    assert "would move" in plain.stdout and "of the least there is" in plain.stdout


@pytest.mark.parametrize(
    ("destination", "options", "error", "words"),
    [
        ("b.zarr/t2m", {"chunks": "0x1x1"}, ArgumentError, r"lie in \[1"),
        ("b.zarr/t2m", {"chunks": "4x4"}, ArgumentError, "2 dimensions"),
        ("b.zarr/t2m", {"chunks": "4xfour"}, ArgumentError, "four"),
        ("b.zarr/t2m", {"codecs": ["lzma-turbo:9"]}, ArgumentError, "lzma-turbo"),
        ("b.zarr/t2m", {"max_mem": "1KiB"}, MemoryLimitError, "at least"),
        ("b.zarr/t2m", {"zarr_format": 4}, ArgumentError, "2 or 3"),
        ("b.zarr/t2m", {"axes": (0, 0, 1)}, ArgumentError, "permutation"),
        ("b.safetensors", {"codecs": ["zstd:3"]}, ArgumentError, "zstd:3"),
        ("b", {}, ArgumentError, "--to"),
        ("http://localhost:1/b.zarr", {}, ArgumentError, "over HTTP"),
        ("nowhere/b.zarr", {}, StoreError, "does not exist"),
        ("a.zarr", {}, StoreError, "source itself"),
        ("a.zarr/inside.zarr", {"chunks": "4x4x4"}, StoreError, "inside the source|exists"),
        ("there.zarr", {"chunks": "4x4x4"}, StoreError, "exists"),
    ],
)
def test_mistakes_leave_nothing_behind(tmp_path, destination, options, error, words):
    make_zarr(tmp_path / "a.zarr", maps())
    make_zarr(tmp_path / "there.zarr", maps())
    before = sorted(os.listdir(tmp_path))
    source = tmp_path / ("a.zarr" if destination.startswith("a.zarr") else "a.zarr/t2m")
    with pytest.raises(error, match=words):
        ls.stores.move(source, destination if "://" in destination else tmp_path / destination, **options)
    assert sorted(os.listdir(tmp_path)) == before


def test_what_a_format_cannot_hold_is_named(tmp_path):
    make_zarr(tmp_path / "a.zarr", maps())
    with pytest.raises(StoreError, match="attribute.*units|units.*--lossy"):
        ls.stores.move(tmp_path / "a.zarr/t2m", tmp_path / "b.npy")
    told = ls.stores.move(tmp_path / "a.zarr/t2m", tmp_path / "b.npy", lossy=True)
    assert told.lost and (np.load(tmp_path / "b.npy") == maps()).all()


def test_force_replaces_a_store_and_nothing_else(tmp_path):
    make_zarr(tmp_path / "a.zarr", maps())
    make_zarr(tmp_path / "b.zarr", maps("f8"), name="old")
    ls.stores.move(tmp_path / "a.zarr", tmp_path / "b.zarr", force=True)
    assert list(zarr.open_group(str(tmp_path / "b.zarr"), mode="r")) == ["t2m"]
    (tmp_path / "b.zarr/notes.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"notes\.txt"):
        ls.stores.move(tmp_path / "a.zarr", tmp_path / "b.zarr", force=True)
    assert (tmp_path / "b.zarr/notes.txt").read_text() == "mine"


@pytest.mark.parametrize("consolidated", [False, True])
def test_an_array_comes_into_a_store_that_is_there(tmp_path, consolidated):
    make_zarr(tmp_path / "a.zarr", maps())
    make_zarr(tmp_path / "b.zarr", maps("f8"), name="old")
    if consolidated:
        zarr.consolidate_metadata(str(tmp_path / "b.zarr"))
    ls.stores.move(tmp_path / "a.zarr/t2m", tmp_path / "b.zarr/t2m", chunks="24x8x8")
    made = zarr.open_group(str(tmp_path / "b.zarr"), mode="r")
    assert sorted(made) == ["old", "t2m"] and (made["t2m"][...] == maps()).all()
    assert (made["old"][...] == maps("f8")).all()
    with pytest.raises(StoreError, match="exists already"):
        ls.stores.move(tmp_path / "a.zarr/t2m", tmp_path / "b.zarr/t2m")
    ls.stores.move(tmp_path / "a.zarr/t2m", tmp_path / "b.zarr/t2m", chunks="1x1x17", force=True)
    made = zarr.open_group(str(tmp_path / "b.zarr"), mode="r")
    assert made["t2m"].chunks == (1, 1, 17) and (made["old"][...] == maps("f8")).all()


def chunk_files(folder):
    return sorted(
        os.path.join(where, name)
        for where, _, names in os.walk(folder)
        for name in names
        if not name.startswith(".z") and name != "zarr.json"
    )


def test_flipped_bits_are_found(tmp_path):
    options = {"compressors": [{"name": "zstd", "configuration": {"level": 1, "checksum": True}}]}
    if int(zarr.__version__.split(".")[0]) < 3:
        pytest.skip("zarr 2 has no checksums of this kind")
    make_zarr(tmp_path / "a.zarr", maps(), **options)
    files = chunk_files(tmp_path / "a.zarr/t2m")
    random = np.random.default_rng(3)
    for n in range(20):
        path = files[random.integers(len(files))]
        whole = bytearray(open(path, "rb").read())
        bit = int(random.integers(8 * len(whole)))
        whole[bit // 8] ^= 1 << bit % 8
        kept = open(path, "rb").read()
        open(path, "wb").write(whole)
        with pytest.raises((StoreError, VerificationError), match=r"chunk"):
            ls.stores.move(tmp_path / "a.zarr/t2m", tmp_path / f"b{n}.npy", lossy=True)
        assert not os.path.exists(tmp_path / f"b{n}.npy")
        open(path, "wb").write(kept)


def test_with_zarr_2_stores_are_written_that_it_reads(tmp_path, monkeypatch):
    make_zarr(tmp_path / "a.zarr", maps())
    monkeypatch.setattr("importlib.metadata.version", lambda name: {"zarr": "2.18.7"}[name])
    ls.stores.move(tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert (tmp_path / "b.zarr/t2m/.zarray").exists()
    ls.stores.move(tmp_path / "a.zarr", tmp_path / "c.zarr", zarr_format=3)
    assert (tmp_path / "c.zarr/t2m/zarr.json").exists()


def test_truncated_chunks_are_found(tmp_path):
    make_zarr(tmp_path / "a.zarr", maps())
    path = chunk_files(tmp_path / "a.zarr/t2m")[5]
    os.truncate(path, os.path.getsize(path) // 2)
    with pytest.raises(StoreError, match="chunk"):
        ls.stores.move(tmp_path / "a.zarr/t2m", tmp_path / "b.zarr/t2m", chunks="24x8x8")
    assert sorted(os.listdir(tmp_path)) == ["a.zarr"]


def killed_when_it_has_written(words, chunks):
    """Runs a move until its journal has so many records more than before; returns whether it was killed before it
    ended."""
    folder = words[1].parent
    before = journal_bytes(folder)
    return killed_when(words, lambda: journal_bytes(folder) >= before + 28 * chunks)


def killed_when(words, ready):
    """Runs a move until then; returns whether it was killed before it ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "longshore.cli", "move", *map(str, words)], stderr=subprocess.DEVNULL
    )
    while process.poll() is None and not ready():
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def journal_bytes(folder):
    sizes = [0]
    for path in folder.glob(".*.journal"):
        with contextlib.suppress(FileNotFoundError):
            sizes.append(path.stat().st_size)
    return max(sizes)


def test_a_killed_run_is_gone_on_with(tmp_path):
    array = np.random.default_rng(2).integers(0, 1 << 30, (512, 256, 64), dtype=np.int32)
    make_zarr(tmp_path / "a.zarr", array, chunks=(8, 64, 64))
    destination = tmp_path / "b.zarr"
    words = [tmp_path / "a.zarr", destination, "--chunks", "16x32x64", "--max-mem", "64MiB", "--threads", 1, "--resume"]
    words += ["--codec", "none"]
    kills = [killed_when_it_has_written(words, 40) for _ in range(3)]
    assert kills[0] and not destination.exists()
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["chunks"] + told["resumed_chunks"] == 32 * 8 and told["resumed_chunks"] >= 30
    assert (zarr.open_group(str(destination), mode="r")["t2m"][...] == array).all()
    assert sorted(os.listdir(tmp_path)) == ["a.zarr", "b.zarr"]


def test_a_killed_run_that_holds_and_spills_has_read_nothing_in_vain(tmp_path):
    array = np.random.default_rng(2).integers(0, 1 << 30, (1024, 256, 64), dtype=np.int32)
    make_zarr(tmp_path / "a.zarr", array, chunks=(4, 256, 64))
    destination = tmp_path / "b.zarr"
    words = [tmp_path / "a.zarr", destination, "--chunks", "1024x8x8", "--max-mem", "40MiB", "--threads", 1, "--resume"]
    words += ["--codec", "none"]

    def recorded():
        sizes = [0]
        for path in tmp_path.glob(".*.work/*.records"):
            with contextlib.suppress(FileNotFoundError):
                sizes.append(path.stat().st_size)
        return max(sizes)

    assert killed_when(words, lambda: recorded() > 3_000) and not destination.exists()
    had = recorded()
    assert killed_when(words, lambda: recorded() > min(had + 4_000, 16_000))
    assert killed_when_it_has_written(words, 100)
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["predicted"]["bytes_spilled"] and told["resumed_chunks"] >= 90
    assert told["bytes_read"] < array.nbytes / 8
    assert (zarr.open_group(str(destination), mode="r")["t2m"][...] == array).all()
    assert sorted(os.listdir(tmp_path)) == ["a.zarr", "b.zarr"]


def test_where_the_disk_has_no_room_for_it_nothing_is_kept(tmp_path, monkeypatch):
    make_zarr(tmp_path / "a.zarr", maps())
    asked = []

    def room(self, needed):
        asked.append(needed)
        if len(asked) == 2:
            raise StoreError("full")

    monkeypatch.setattr(publish.Publication, "check_space", room)
    monkeypatch.setattr(moving_chunks, "KeptWork", lambda *_: pytest.fail("there is no room"))
    ls.stores.move(tmp_path / "a.zarr/t2m", tmp_path / "b.zarr/t2m", chunks="24x8x8", resume=True)
    assert len(asked) == 2 and asked[1] > asked[0] > 0
    assert (zarr.open_group(str(tmp_path / "b.zarr"), mode="r")["t2m"][...] == maps()).all()


def test_what_a_killed_run_has_kept_goes_with_its_output(tmp_path):
    make_zarr(tmp_path / "a.zarr", maps())
    hidden = tmp_path / ".b.zarr.longshore-partial-0123456789abcdef"
    for name in (hidden.name, ".b.zarr.longshore-partial-0000000000000000"):
        work = tmp_path / f"{name}.work"
        work.mkdir()
        (work / "memory").write_bytes(b"x")
    hidden.mkdir()
    (hidden / "zarr.json").write_text("{}")
    ls.stores.move(tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert sorted(os.listdir(tmp_path)) == ["a.zarr", "b.zarr"]


def test_what_a_link_leads_to_is_not_taken_for_what_a_killed_run_has_kept(tmp_path):
    make_zarr(tmp_path / "a.zarr", maps())
    (tmp_path / "own").mkdir()
    (tmp_path / "own/memory").write_text("the user's")
    hidden = tmp_path / ".b.zarr.longshore-partial-0123456789abcdef"
    os.symlink(tmp_path / "own", f"{hidden}.work")
    ls.stores.move(tmp_path / "a.zarr", tmp_path / "b.zarr")
    plan = ls.plan_move((8, 8), "f4", (1, 8), (8, 1), max_mem="64MB")
    with pytest.raises(OSError, match="symbolic link"):
        KeptWork(f"{hidden}.work", 0, plan)
    assert [path.name for path in (tmp_path / "own").iterdir()] == ["memory"]


@pytest.mark.parametrize("codec", ["none", "gzip:1"])
def test_a_killed_run_into_hdf5_loses_no_chunk_of_which_the_library_had_not_written_where_it_lies(tmp_path, codec):
    array = np.random.default_rng(2).integers(0, 1 << 30, (128, 256, 64), dtype=np.int32)
    make_zarr(tmp_path / "a.zarr", array, chunks=(8, 64, 64))
    destination = tmp_path / "b.h5"
    words = [tmp_path / "a.zarr", destination, "--chunks", "16x32x64", "--max-mem", "64MiB", "--threads", 1, "--resume"]
    words += ["--codec", codec]
    assert killed_when_it_has_written(words, 20) and not destination.exists()
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["chunks"] + told["resumed_chunks"] == 8 * 8
    with h5py.File(destination) as file:
        assert (file["t2m"][...] == array).all()


def test_a_killed_run_leaves_nothing_that_the_next_one_keeps(tmp_path):
    make_zarr(tmp_path / "a.zarr", maps())
    hidden = tmp_path / ".b.zarr.longshore-partial-0123456789abcdef"
    hidden.mkdir()
    (hidden / "zarr.json").write_text("{}")
    (tmp_path / (hidden.name + ".journal")).write_text("{}")
    (tmp_path / ".b.zarr.longshore-partial-0000000000000000.journal").write_text("of an output that has appeared")
    told = ls.stores.move(tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert told.removed_partials == [hidden.name]
    assert sorted(os.listdir(tmp_path)) == ["a.zarr", "b.zarr"]


def test_a_journal_of_another_job_is_refused(tmp_path):
    make_zarr(tmp_path / "a.zarr", maps())
    hidden = tmp_path / ".b.zarr.longshore-partial-0123456789abcdef"
    hidden.mkdir()
    head = {"longshore": "journal", "version": 1, "job": "another", "start": ""}
    (tmp_path / (hidden.name + ".journal")).write_text(json.dumps(head) + "\n")
    with pytest.raises(StoreError, match="belongs to another move"):
        ls.stores.move(tmp_path / "a.zarr", tmp_path / "b.zarr", resume=True)
    assert hidden.exists()


@pytest.mark.parametrize("sharded", [False, True])
def test_what_was_read_of_chunks_that_were_rewritten_since_is_not_gone_on_with(tmp_path, monkeypatch, sharded):
    if sharded and int(zarr.__version__.split(".")[0]) < 3:
        pytest.skip("zarr 2 knows no shards")
    group = make_zarr(tmp_path / "a.zarr", maps(), **({"shards": (4, 30, 17)} if sharded else {}))
    add, count = journal.Journal.add, itertools.count()

    def stop(self, *words):
        if next(count) == 9:
            raise StoreError("stopped")
        add(self, *words)

    monkeypatch.setattr(journal.Journal, "add", stop)
    words = {"chunks": (2, 30, 17), "threads": 1, "resume": True}
    with pytest.raises(StoreError, match="stopped"):
        ls.move(tmp_path / "a.zarr/t2m", tmp_path / "b.zarr/t2m", **words)
    group["t2m"][:12] = -1
    with pytest.raises(StoreError, match="belongs to another move.*the source has changed"):
        ls.move(tmp_path / "a.zarr/t2m", tmp_path / "b.zarr/t2m", **words)
    ls.move(tmp_path / "a.zarr/t2m", tmp_path / "b.zarr/t2m", **{**words, "resume": False}, verify=True)
    assert (zarr.open_group(str(tmp_path / "b.zarr"), mode="r")["t2m"][...] == group["t2m"][...]).all()
    assert sorted(os.listdir(tmp_path)) == ["a.zarr", "b.zarr"]


def test_a_dry_run_does_not_look_at_every_chunk_for_changes(tmp_path, monkeypatch):
    make_zarr(tmp_path / "a.zarr", maps())
    monkeypatch.setattr(ZarrReader, "fingerprint", lambda _: pytest.fail("nothing will have been read"))
    ls.move(tmp_path / "a.zarr", tmp_path / "b.zarr", dry_run=True)


def test_a_source_is_read_by_url(tmp_path):
    pytest.importorskip("fsspec")
    import fsspec

    make_zarr(tmp_path / "a.zarr", maps())
    memory = fsspec.filesystem("memory")
    for path in (tmp_path / "a.zarr").rglob("*"):
        if path.is_file():
            memory.pipe(f"/formats/a.zarr/{path.relative_to(tmp_path / 'a.zarr')}", path.read_bytes())
    ls.stores.move("memory://formats/a.zarr/t2m", tmp_path / "b.zarr/t2m", chunks="24x8x8", verify=True)
    assert (zarr.open_group(str(tmp_path / "b.zarr"), mode="r")["t2m"][...] == maps()).all()


@pytest.mark.parametrize("changed", ["metadata", "a chunk"])
def test_a_source_that_changes_meanwhile_is_noticed(tmp_path, monkeypatch, changed):
    group = make_zarr(tmp_path / "a.zarr", maps())
    carried = moving_chunks._Job._copy_others

    def change(self, writer):
        if changed == "a chunk":
            group["t2m"][3] = 0
        else:
            group["t2m"].attrs["units"] = "C"
        carried(self, writer)

    monkeypatch.setattr(moving_chunks._Job, "_copy_others", change)
    with pytest.raises(StoreError, match="changed while it was read"):
        ls.stores.move(tmp_path / "a.zarr/t2m", tmp_path / "b.zarr/t2m", chunks="24x8x8")
    assert sorted(os.listdir(tmp_path)) == ["a.zarr"]


def test_empty_arrays_and_single_elements(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["scalar"] = 3.5
        file.create_dataset("none", (0, 4), "f4", chunks=(1, 4), maxshape=(None, 4))
        file["one"] = np.arange(1)
    ls.stores.move(tmp_path / "a.h5", tmp_path / "b.zarr", verify=True)
    made = zarr.open_group(str(tmp_path / "b.zarr"), mode="r")
    assert made["scalar"][()] == 3.5 and made["none"].shape == (0, 4) and made["one"][...].tolist() == [0]
    ls.stores.move(tmp_path / "b.zarr", tmp_path / "c.h5", lossy=True)
    with h5py.File(tmp_path / "c.h5") as file:
        assert file["scalar"][()] == 3.5 and file["none"].shape == (0, 4) and file["one"][...].tolist() == [0]
