"""Zarr stores for tests: made by zarr-python, and read and written whole through Longshore's readers and writers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from longshore.stores.zarr_reader import ZarrReader
from longshore.stores.zarr_writer import ZarrWriter

zarr = pytest.importorskip("zarr")
ZARR_3 = int(zarr.__version__.split(".")[0]) >= 3
FORMATS = (2, 3) if ZARR_3 else (2,)
needs_zarr_3 = pytest.mark.skipif(not ZARR_3, reason="zarr 2 knows no Zarr 3")
warnings.filterwarnings("ignore", module="zarr")


def make(path, array, chunks, zarr_format=2, **more):
    """An array made by zarr-python. `filters` and `compressor` are numcodecs' in format 2."""
    if not ZARR_3:
        made = zarr.open_array(str(path), mode="w", shape=array.shape, chunks=chunks, dtype=array.dtype, **more)
    else:
        if zarr_format == 2 and "compressor" in more:
            more["compressors"] = more.pop("compressor")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = zarr.create_array(
                str(path), shape=array.shape, chunks=chunks, dtype=array.dtype, zarr_format=zarr_format, **more
            )
    made[...] = array
    return made


def opened(path, inner=""):
    """An array or a group as zarr-python has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store = zarr.open(str(path), mode="r")
        return store[inner] if inner else store


def values(array):
    """All elements of an array of zarr-python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return array[...]


def whole(reader, path=""):
    """All elements of an array, chunk by chunk."""
    array = reader.array(path)
    facts = array.facts
    out = np.zeros(facts.shape, facts.dtype)
    if facts.fill is not None and facts.dtype.itemsize:
        out[...] = np.frombuffer(facts.fill, facts.dtype)[0]
    for index in array.grid.indices():
        stored = array.read(index)
        if stored is not None:
            chunk = array.decode(index, stored)
            assert chunk.shape == array.grid.extents(index)
            out[_place(array.grid, index)] = chunk
    return out


def read(path, inner=""):
    """Facts and elements of an array at a path."""
    reader = ZarrReader(str(path), inner)
    try:
        return reader.tree, whole(reader)
    finally:
        reader.close()


def write(path, tree, arrays, zarr_format=3, order=None):
    """Makes a store of a tree, with the elements of its arrays by their paths."""
    path.mkdir(parents=True, exist_ok=True)
    writer = ZarrWriter(str(path), zarr_format=zarr_format)
    writer.create(tree)
    for name, array in arrays.items():
        write_array(writer.array(name), array, order)
    writer.finish()


def write_array(writer, array, order=None):
    """Writes all chunks of an array, in a random order where `order` is a random number generator."""
    indices = list(writer.grid.indices())
    if order is not None:
        order.shuffle(indices)
    for index in indices:
        write_chunk(writer, array, tuple(index))


def write_chunk(writer, array, index):
    chunk = np.zeros(writer.grid.chunks, writer.facts.dtype)
    if writer.facts.fill is not None:
        chunk[...] = np.frombuffer(writer.facts.fill, writer.facts.dtype)[0]
    part = array[_place(writer.grid, index)].astype(writer.facts.dtype)
    chunk[tuple(slice(0, n) for n in part.shape)] = part
    stored = writer.encode(index, chunk)
    chunk.view("u1")[...] = 0xA5  # what is encoded must not depend on it any longer
    assert writer.write(index, stored) == memoryview(stored).nbytes
    again = writer.read(index)
    assert again.dtype == writer.facts.dtype and again.tobytes() == part.tobytes()


def _place(grid, index):
    return tuple(slice(a, a + n) for a, n in zip(grid.start(index), grid.extents(index)))


def sample(dtype, shape=(10, 7)):
    """Elements of any type."""
    dtype = np.dtype(dtype)
    random = np.random.default_rng(4)
    if dtype.names is not None:
        array = np.zeros(shape, dtype)
        for name in dtype.names:
            array[name] = sample(dtype[name].base, shape + dtype[name].shape)
        return array
    if dtype.kind == "V":
        return np.frombuffer(random.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    numbers = random.integers(0, 100, shape)
    if dtype.kind in "mM":
        return numbers.astype("i8").astype(dtype)
    return (numbers / 7 if dtype.kind in "fc" else numbers).astype(dtype)


def same(left, right):
    """Whether two arrays have the same elements, of types that may differ in byte order."""
    return left.shape == right.shape and (left == right).all()
