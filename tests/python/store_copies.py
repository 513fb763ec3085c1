"""Files of arrays, made and copied chunk by chunk through readers and writers of stores, for tests of their formats."""

from dataclasses import replace

import numpy as np
from longshore.stores.array import ArrayFacts, GroupFacts, LinkFacts
from longshore.stores.hdf5_reader import Hdf5Reader
from longshore.stores.hdf5_writer import Hdf5Writer

RANDOM = np.random.default_rng(16)


def box(grid, index):
    return tuple(slice(s, s + n) for s, n in zip(grid.start(index), grid.extents(index)))


def bare(array):
    """Elements as bytes, for NumPy compares and copies those of fields without their padding."""
    return array.view(f"V{array.itemsize}")


def elements(reader, path):
    """All elements of an array of a reader, chunk by chunk."""
    array = reader.array(path)
    facts = array.facts
    whole = np.empty(facts.shape, f"V{facts.dtype.itemsize}")
    whole[...] = np.frombuffer(facts.fill or bytes(facts.dtype.itemsize), whole.dtype)
    for index in array.grid.indices():
        stored = array.read(index)
        assert stored is not None or array.sparse
        if stored is not None:
            chunk = array.decode(index, stored)
            assert chunk.dtype == facts.dtype and chunk.shape == array.grid.extents(index)
            whole[box(array.grid, index)] = bare(np.ascontiguousarray(chunk))
    return whole.view(facts.dtype)


def encoded_bytes(stored):
    """Of what a writer's `encode` gave."""
    if isinstance(stored, list):  # a part a file
        return sum(part.nbytes for _, part in stored)
    return memoryview(stored[0] if isinstance(stored, tuple) else stored).nbytes


def put(array, whole, only=None):
    """Writes all chunks of a writer's array, or those that `only` says."""
    for index in array.grid.indices():
        if only is None or only(index):
            chunk = np.zeros(array.grid.chunks, f"V{whole.itemsize}")
            chunk[tuple(map(slice, array.grid.extents(index)))] = bare(whole)[box(array.grid, index)]
            stored = array.encode(index, chunk.view(whole.dtype))
            chunk[...] = b"\xee" * whole.itemsize  # the caller may use its memory again
            assert array.write(index, stored) == encoded_bytes(stored)


def changed(tree, change):
    if isinstance(tree, ArrayFacts):
        return change(tree)
    if isinstance(tree, LinkFacts):
        return tree
    return replace(tree, children={name: changed(child, change) for name, child in tree.children.items()})


def copy(source, target, change=lambda facts: facts, read=Hdf5Reader, write=Hdf5Writer, losses=()):
    """A whole file to another one, as a move does it."""
    reader = read(source)
    tree = changed(reader.tree, change)
    assert write.losses(tree) == list(losses)
    open(target, "wb").close()
    writer = write(target)
    writer.create(tree)
    for path, facts in tree.arrays():
        if facts.dtype is None:
            writer.copy_as_is(path, reader)
        elif writer.holds(facts):
            whole, array = elements(reader, path), writer.array(path)
            put(array, whole)
            for index in array.grid.indices():
                assert (bare(array.read(index)) == bare(whole)[box(array.grid, index)]).all()
    assert writer.copy_odd_attributes(reader) == []
    writer.finish()
    reader.close()


def make(facts, whole=None, path="a.h5", write=Hdf5Writer, only=None):
    """A file of one array, `x`."""
    open(path, "wb").close()
    writer = write(path)
    writer.create(GroupFacts({"x": facts}))
    if whole is not None:
        put(writer.array("x"), whole, only)
    writer.finish()
