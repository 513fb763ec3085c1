"""Elements with holes between their fields (`align=True`), what lies in the holes being no part of an element."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import longshore as ls
import numpy as np
import pytest
from launch import families, launch

pytest.importorskip("zarr")
h5py = pytest.importorskip("h5py")

INNER = np.dtype([("x", "u1"), ("y", "f4", (2,))], align=True)
TYPES = [
    np.dtype([("a", "i1"), ("b", "f8")], align=True),
    np.dtype([("b", "f8"), ("a", "?")], align=True),
    np.dtype([("a", ">i2"), ("in", INNER)], align=True),
    np.dtype({"names": ["a", "b"], "formats": ["u2", "u1"], "offsets": [1, 5], "itemsize": 9}),
]


def elements(dtype, shape=(50, 41)):
    """Any values, and any bytes in the holes."""
    raw = np.random.default_rng(1).integers(0, 2, (*shape, dtype.itemsize), np.uint8)
    return raw.reshape(-1).view(dtype).reshape(shape)


def same(a, b):
    """By fields, for NumPy compares some types with holes not at all."""
    if a.dtype.names is None:
        return np.array_equal(a, b)
    return a.dtype.names == b.dtype.names and all(same(a[name], b[name]) for name in a.dtype.names)


def made(folder, kind, array):
    """A store of an array."""
    if kind == "npy":
        np.save(folder / "a.npy", array)
        return folder / "a.npy"
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("u", data=array, chunks=None if kind == "contiguous" else (20, 20))
    return f"{folder / 'a.h5'}::/u"


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("source", ["npy", "contiguous", "chunked"])
def test_every_format_is_verified(tmp_path, source, dtype):
    array, digests = elements(dtype), set()
    place = made(tmp_path, source, array)
    targets = ["two.zarr/u", "b.h5::/u", "b.npy"]
    if dtype is not TYPES[2]:  # Zarr 3 has no fields that are arrays
        targets.append("three.zarr/u")
    for target in targets:
        chunks = {} if target == "b.npy" or target == place else {"chunks": (7, 9)}
        if "zarr" in target:
            chunks["zarr_format"] = 2 if "two" in target else 3
        if source == "npy" and target == "b.npy":
            continue
        digests.add(ls.move(place, tmp_path / target, verify=True, **chunks).digest)
        with ls.open(tmp_path / target) as moved:
            assert same(moved.read(), array)
    assert len(digests) == 1


def test_the_same_elements_have_the_same_digest(tmp_path):
    first = elements(TYPES[0])
    other = np.zeros(first.shape, first.dtype)
    for name in first.dtype.names:
        other[name] = first[name]
    assert first.tobytes() != other.tobytes()
    digests = []
    for name, array in (("a", first), ("b", other)):
        np.save(tmp_path / f"{name}.npy", array)
        digests.append(ls.move(tmp_path / f"{name}.npy", tmp_path / f"{name}.zarr/u").digest)
    assert digests[0] == digests[1]


def test_by_an_executor_and_with_chunks_that_are_missing(tmp_path):
    dtype, shape = TYPES[0], (40, 60)
    array = np.full(shape, np.frombuffer(bytes(range(1, 17)), dtype)[0], dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        stored = file.create_dataset("u", shape, dtype, chunks=(10, 10), fillvalue=array[0, 0])
        stored[5:12, 3:14] = array[5:12, 3:14] = elements(dtype, (7, 11))
    source = f"{tmp_path / 'a.h5'}::/u"
    for number, (target, executor) in enumerate(itertools.product(("zarr/u", "h5::/u"), (False, True))):
        with ThreadPoolExecutor(2) as pool:
            told = ls.move(
                source,
                tmp_path / f"{number}.{target}",
                chunks=(8, 12),
                verify=True,
                executor=pool if executor else None,
            )
        assert told.verified and told.chunks < 25
        with ls.open(tmp_path / f"{number}.{target}") as moved:
            assert same(moved.read(), array)


@pytest.mark.parametrize("target", ["a.npy", "a.h5::/u"])
def test_arrays_that_are_saved_have_nothing_in_their_holes(tmp_path, target):
    """What was in this process's memory is nobody's business."""
    array, layout = elements(TYPES[0]), ls.Layout("(BLOCK, BLOCK) on 2x2", (50, 41))
    parts = [array[layout.indices(rank)] for rank in layout.ranks]
    ls.save(parts, layout, tmp_path / target, **({} if target == "a.npy" else {"chunks": (7, 9)}))
    with ls.open(tmp_path / target) as saved:
        assert same(saved.read(), array)
    if target == "a.npy":
        raw = [np.load(tmp_path / target).tobytes()]
    else:
        with h5py.File(tmp_path / "a.h5") as file:
            u = file["u"].id
            raw = [u.read_direct_chunk(u.get_chunk_info(k).chunk_offset)[1] for k in range(u.get_num_chunks())]
    assert not any(np.frombuffer(part, np.uint8).reshape(-1, 16)[:, 1:8].any() for part in raw)


@pytest.mark.skipif(not families(), reason="no mpiexec beside a Python with mpi4py")
def test_shared_by_the_processes_of_a_job(tmp_path):
    array = elements(TYPES[0])
    np.save(tmp_path / "a.npy", array)
    for target in ("b.zarr/u", "b.h5::/u"):
        words = ["move", tmp_path / "a.npy", tmp_path / target, "--chunks", "7x9", "--verify", "--json"]
        done = launch(families()[0], 2, "longshore.cli", *words, timeout=100)
        assert done.returncode == 0, done.stderr
        with ls.open(tmp_path / target) as moved:
            assert same(moved.read(), array)
