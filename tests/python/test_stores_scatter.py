"""Arrays whose elements lie in files as they are, written in boxes of the source's chunks where that moves less."""

import contextlib
import math
import os
from concurrent.futures import ThreadPoolExecutor

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore.errors import ArgumentError, MemoryLimitError, StoreError
from longshore.stores import dense, moving_chunks, rechunk_plan, scatter
from longshore.stores.array import Grid
from longshore.stores.boxes import FileArray
from longshore.stores.dense import OneFile
from longshore.stores.rechunk_plan import plan_rechunk

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_small(monkeypatch):
    """Has plans count next to nothing beside chunks, so that small arrays need more than one pass."""
    for module, name, value in (
        (rechunk_plan, "_BASE_BYTES", 0),
        (rechunk_plan, "_THREAD_BYTES", 0),
        (rechunk_plan, "_CHUNK_BYTES", 0),
        (rechunk_plan, "PIECE_BYTES", 512),
        (moving_chunks, "_METADATA_BYTES", 0),
        (scatter, "PAGE_BYTES", 16),
        (scatter, "_LONG_BYTES", 256),
        (dense, "CHUNK_BYTES", 2048),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.fixture
def small(monkeypatch):
    make_small(monkeypatch)


def usual(shape, chunks, itemsize, max_mem, order="C"):
    """The plan in boxes as they suit one file, and how it is made for others."""
    pieces, source = OneFile(FileArray("", 0, shape, order, itemsize)), Grid(shape, chunks)

    def plan(grid):
        return plan_rechunk(source, grid, itemsize, max_mem, threads=2, stored_bytes=math.prod(shape) * itemsize), ()

    return plan(Grid(shape, dense.chunk_extents(pieces, itemsize))), pieces, source, max_mem, plan


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_a_plan_moves(order):
    """Blocks into rows: where a row of blocks is more than there is room for, blocks are written where they belong."""
    shape, chunks, itemsize = (20000, 20000), (1000, 1000), 8
    given = usual(shape, chunks, itemsize, 64_000_000, order)
    plan, _ = scatter.in_boxes_of_source(*given)
    assert given[0][0].way == "spill" and given[0][0].total_bytes > 3.5 * math.prod(shape) * itemsize
    assert plan.way == "scatter" and plan.total_bytes == 2 * math.prod(shape) * itemsize
    assert plan.memory_bytes <= 64_000_000
    long = plan.target.chunks[1 if order == "C" else 0]
    assert long > 1000 and long % 1000 == 0, "runs are longer where there is room"
    assert plan.others[0].way == "spill" and plan.others[0].fits
    roomy = usual(shape, chunks, itemsize, 1_000_000_000, order)
    assert scatter.in_boxes_of_source(*roomy) is roomy[0]


def test_short_runs_are_not_written_one_by_one():
    """Series into maps: runs of 32 bytes would have each page written again and again."""
    given = usual((8760, 181, 360), (8760, 8, 8), 4, 40_000_000)
    plan, _ = scatter.in_boxes_of_source(*given)
    assert plan.way == "spill"
    assert plan.others[0].way == "scatter" and plan.others[0].total_bytes > plan.total_bytes


@pytest.mark.parametrize("shape", [(), (0,), (5, 0), (1,), (1, 1)])
def test_next_to_nothing(shape):
    given = usual(shape, tuple(max(1, n) for n in shape), 8, 64_000_000)
    assert scatter.in_boxes_of_source(*given) is given[0]


def test_many_dimensions_are_planned_at_once():
    given = usual((3, 700, 90, 4, 80), (1, 64, 64, 1, 64), 4, 40_000_000)
    plan, _ = scatter.in_boxes_of_source(*given)
    assert plan.total_bytes <= given[0][0].total_bytes


TARGETS = ["out.npy", "out.safetensors", "out.h5::/x", "out.h5", "shards"]


def moved(destination):
    """The array that lies there, by the libraries that others read it with."""
    if destination == "out.npy":
        return np.load(destination)
    if destination == "shards":
        ls.move("shards", "back.npy", force=True)
        return np.load("back.npy")
    if destination == "out.safetensors":
        from safetensors.numpy import load_file

        return next(iter(load_file(destination).values()))
    with h5py.File("out.h5") as file:
        found = file["x"]
        assert found.chunks is None
        return found[...]


def make_source(array, chunks, source="in.h5"):
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=array, chunks=chunks)


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_every_element_arrives(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("scatter")
    shape = tuple(data.draw(st.lists(st.integers(1, 13), min_size=1, max_size=4), "shape"))
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    axes = tuple(data.draw(st.permutations(range(len(shape)))))
    array = np.random.default_rng(3).integers(0, 200, shape).astype(data.draw(st.sampled_from(["u1", "<f4", "<i8"])))
    destination = data.draw(st.sampled_from(["out.npy", "out.safetensors", "out.h5::/x", "shards"]))
    options = {"verify": True, "axes": axes, "threads": data.draw(st.integers(1, 3))}
    if destination == "shards":
        dealt, stars = data.draw(st.sampled_from(["BLOCK", "CYCLIC", "CYCLIC(2)"])), ", *" * (len(shape) - 1)
        options["to"] = f"({dealt}{stars}) on 2, order={data.draw(st.sampled_from('CF'))}"
    if destination == "out.npy" and data.draw(st.booleans()):
        options["to"] = f"({', '.join('*' * len(shape))}) on 1, order=F"
    if destination == "out.h5::/x":
        options["chunks"] = "none"
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        make_small(patched)
        patched.setattr(dense, "CHUNK_BYTES", 64)
        make_source(array, chunks)
        for room in data.draw(st.lists(st.integers(1, 9000), min_size=1, max_size=2)):
            try:
                ls.move("in.h5::/x", destination, max_mem=room, force=True, **options)
            except MemoryLimitError:
                continue
            np.testing.assert_array_equal(moved(destination), array.transpose(axes))


@pytest.mark.parametrize("destination", ["out.npy", "out.safetensors", "out.h5::/x", "shards"])
@pytest.mark.parametrize("executor", [False, True], ids=["alone", "executor"])
def test_it_is_done_so(here, small, destination, executor):
    """The plan is taken, by an executor's threads too, and what was planned is what was read and written."""
    array = np.arange(120 * 512, dtype="<i4").reshape(120, 512)
    make_source(array, (20, 32))
    options = {"to": "(BLOCK, *) on 4"} if destination == "shards" else {}
    if destination.startswith("out.h5"):
        options["chunks"] = "none"
    with ThreadPoolExecutor(2) if executor else contextlib.nullcontext() as pool:
        told = ls.move("in.h5::/x", destination, max_mem=24000, threads=1, verify=True, executor=pool, **options)
    plan = told.arrays[0].plan
    assert plan.target.chunks[0] == 20 and plan.target.chunks[1] % 32 == 0
    assert plan.way == ("tasks" if executor else "scatter")
    assert (told.bytes_read, told.bytes_written, told.bytes_spilled) == (array.nbytes, array.nbytes, 0)
    np.testing.assert_array_equal(moved(destination), array)


def test_a_killed_run_goes_on(here, small, monkeypatch):
    array = np.arange(120 * 512, dtype="<i4").reshape(120, 512)
    make_source(array, (20, 32))
    options = {"max_mem": 24000, "threads": 1, "resume": True}
    write, left = dense.DenseWriter.write, iter(range(7))

    def failing(self, index, stored):
        next(left)
        return write(self, index, stored)

    with monkeypatch.context() as patched:
        patched.setattr(dense.DenseWriter, "write", failing)
        with pytest.raises((StopIteration, RuntimeError)):
            ls.move("in.h5::/x", "out.npy", **options)
    with pytest.raises(StoreError, match="give --max-mem 24000 again to go on, or run without --resume"):
        ls.move("in.h5::/x", "out.npy", **{**options, "max_mem": "1MiB"})
    told = ls.move("in.h5::/x", "out.npy", verify=True, **options)
    assert told.arrays[0].resumed_chunks == 7 and told.bytes_written < array.nbytes
    np.testing.assert_array_equal(np.load("out.npy"), array)


def test_memory_that_is_held(here):
    """At full size: cubes of an image stack into planes, within a ceiling that holds no row of cubes."""
    shape, chunks = (64, 512, 2048), (64, 64, 64)
    if hasattr(zarr, "create_array"):
        group = zarr.create_array("in.zarr", shape=shape, chunks=chunks, dtype="u2", compressors=None)
    else:
        group = zarr.create(shape, store="in.zarr", chunks=chunks, dtype="u2", compressor=None)
    array = (np.arange(math.prod(shape), dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(16)).astype("u2")
    group[...] = array.reshape(shape)
    told = ls.move("in.zarr", "out.npy", max_mem="80 MB", threads=2)
    plan = told.arrays[0].plan
    assert plan.way == "scatter" and told.bytes_spilled == 0
    assert told.peak_memory_bytes < 80_000_000 + 64_000_000
    np.testing.assert_array_equal(np.load("out.npy").reshape(-1), array)


# -- elements one after the other, where HDF5 could have chunks -------------------------------------------------------


def test_chunks_are_left_out(here):
    make_source(np.arange(48.0).reshape(6, 8), (3, 4))
    told = ls.move("in.h5::/x", "out.h5::/x", chunks="none")
    assert told.arrays[0].codecs == ()
    with h5py.File("out.h5") as file:
        assert file["x"].chunks is None and file["x"][5, 7] == 47


@pytest.mark.parametrize(
    "destination, options, words",
    [
        ("out.zarr", {}, "in.h5::/x cannot be without chunks: Zarr has chunks; say their extents"),
        ("out.h5", {"codecs": ["gzip:4"]}, "codecs need chunks"),
        ("out.nc::/grows", {"source": "in.h5::/grows"}, "dimension 0 may grow, which needs chunks"),
    ],
)
def test_chunks_that_cannot_be_left_out(here, destination, options, words):
    make_source(np.arange(48.0).reshape(6, 8), (3, 4))
    with h5py.File("in.h5", "a") as file:
        file.create_dataset("grows", (6, 8), "f4", maxshape=(None, 8), chunks=(3, 4))
    with pytest.raises(ArgumentError, match=words):
        ls.move(options.pop("source", "in.h5::/x"), destination, chunks="none", **options)
    assert sorted(os.listdir()) == ["in.h5"]


# -- names of tensors that have slashes -------------------------------------------------------------------------------


@pytest.mark.parametrize("destination", ["out.h5", "out.zarr", "out.safetensors", "shards"])
def test_slashes_in_names_are_groups(here, destination):
    from safetensors.numpy import load_file, save_file

    tensors = {"a/b": np.arange(6, dtype="f4"), "a/c/d": np.ones((2, 2)), "e": np.zeros(3, "i4")}
    save_file(tensors, "in.safetensors")
    ls.move("in.safetensors", destination, verify=True, **({"to": "(BLOCK) on 2"} if destination == "shards" else {}))
    ls.move(destination, "back.safetensors")
    back = load_file("back.safetensors")
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(back[name], tensor)
    if destination == "out.h5":
        with h5py.File("out.h5") as file:
            assert isinstance(file["a"], h5py.Group) and file["a/c/d"].shape == (2, 2)


def test_a_tensor_that_would_be_a_group(here):
    from safetensors.numpy import save_file

    save_file({"a": np.ones(2), "a/b": np.ones(3)}, "in.safetensors")
    with pytest.raises(StoreError, match="in.safetensors has 'a' and 'a/b'; an array cannot be a group, too"):
        ls.move("in.safetensors", "out.h5")
    assert sorted(os.listdir()) == ["in.safetensors"]


def test_extents_may_be_an_array(here):
    make_source(np.arange(48.0).reshape(6, 8), (3, 4))
    told = ls.move("in.h5::/x", "out.zarr", chunks=np.array([2, 8]))
    assert told.arrays[0].to_chunks == (2, 8)
    assert ls.plan_move((6, 8), "f8", (3, 4), np.array([2, 8])).way == "sweep"
