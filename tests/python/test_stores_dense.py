"""Stores of elements as they are: `.npy` files and folders of shards, read and written by chunk and by box."""

import errno
import itertools
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor

import longshore as ls
import numpy as np
import pytest
from dense_layout import DenseLayout, selector
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore.errors import ArgumentError, LongshoreError, StoreError
from longshore.stores import dense, layout_json, shards
from longshore.stores.array import ArrayFacts, GroupFacts
from longshore.stores.boxes import FileArray
from longshore.stores.store import open_store, shard_names
from strategies import DTYPES, distinct, layouts, same

EXTENTS = st.sampled_from([0, 1, 2, 5, 7, 13, 16])


def owned(layout, process):
    """What to index the whole array with to get what a process owns, said without the core."""
    twin, zeros = DenseLayout.of(layout), [0] * layout.ndim
    return selector(twin.owned(process, zeros, layout.shape), zeros)


def save_shards(folder, layout, full):
    os.makedirs(folder, exist_ok=True)
    names = [f"part{k}.npy" for k in range(layout.rank_count)]
    for process, name in enumerate(names):
        part = np.empty(full[owned(layout, process)].shape, full.dtype, order=layout.order)
        part[...] = full[owned(layout, process)]
        np.save(os.path.join(folder, name), part)
    raw = layout_json.encode_layout_json(layout, full.shape, full.dtype, layout.order, names)
    with open(os.path.join(folder, layout_json.NAME), "wb") as file:
        file.write(raw)


@st.composite
def boxes(draw, shape):
    lo = [draw(st.integers(0, n)) for n in shape]
    return lo, [draw(st.integers(0, n - a)) for n, a in zip(shape, lo)]


def cut(full, start, extents):
    """A box of an array, as an array even where it has no dimensions."""
    return full[(..., *[slice(a, a + n) for a, n in zip(start, extents)])]


def put_together(array):
    """An array from its chunks."""
    out = np.full(array.facts.shape, 0, array.facts.dtype)
    for index in array.grid.indices():
        start, extents = array.grid.start(index), array.grid.extents(index)
        chunk = array.decode(index, array.read(index))
        assert chunk.shape == extents and chunk.dtype == array.facts.dtype
        out[tuple(slice(a, a + n) for a, n in zip(start, extents))] = chunk
    return out


def padded(full, grid, index):
    """A chunk as `encode` takes it, what lies beyond the array's end being garbage."""
    chunk = np.frombuffer(b"\xaa" * int(np.prod(grid.chunks)) * full.itemsize, full.dtype).reshape(grid.chunks).copy()
    start, extents = grid.start(index), grid.extents(index)
    chunk[tuple(slice(n) for n in extents)] = cut(full, start, extents)
    return chunk


def write_all(writer, full):
    array = writer.array()
    written = 0
    for index in array.grid.indices():
        chunk = padded(full, array.grid, index)
        stored = array.encode(index, chunk)
        chunk.reshape(-1).view("u1")[...] = 0x55  # whoever gave it uses the memory again
        written += array.write(index, stored)
    for index in array.grid.indices():
        start, extents = array.grid.start(index), array.grid.extents(index)
        assert same(array.read(index), cut(full, start, extents))
    return written


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(dense, "CHUNK_BYTES", 200)


@st.composite
def dealt(draw):
    shape = tuple(draw(st.lists(EXTENTS, min_size=1, max_size=3)))
    return draw(layouts(shape)), draw(DTYPES), draw(boxes(shape))


@settings(max_examples=120, deadline=None)
@given(dealt())
def test_any_box_of_shards_is_read(case):
    layout, dtype, (lo, extents) = case
    full = distinct(layout.shape, dtype)
    with tempfile.TemporaryDirectory() as folder:
        save_shards(folder, layout, full)
        reader = shards.ShardsReader(folder)
        assert reader.layouts[""] == layout and reader.tree.shape == layout.shape and reader.tree.dtype == full.dtype
        assert reader.tree.stored_bytes == sum(full[owned(layout, k)].nbytes for k in range(layout.rank_count))
        array = reader.array()
        assert array.addressable and not array.sparse
        assert same(array.read_box(lo, extents), cut(full, lo, extents))
        assert same(put_together(array), full)
        reader.close()


@settings(max_examples=120, deadline=None)
@given(dealt())
def test_shards_are_written_chunk_by_chunk(case):
    layout, dtype, (lo, extents) = case
    full = distinct(layout.shape, dtype)
    with tempfile.TemporaryDirectory() as folder:
        writer = shards.ShardsWriter(folder, layout)
        writer.create(ArrayFacts(full.shape, full.dtype))
        assert writer.array().facts.order == layout.order
        assert write_all(writer, full) == full.nbytes * layout.replicas
        writer.finish()
        assert open_store(folder).layout == layout
        for process, name in enumerate(shard_names(layout)):
            assert same(np.load(os.path.join(folder, name)), full[owned(layout, process)])
        # Any box over it, of other elements.
        box = tuple(slice(a, a + n) for a, n in zip(lo, extents))
        full[box] = full[box][tuple(slice(None, None, -1) for _ in box)].copy()
        assert writer.array().write_box(lo, full[box]) == full[box].nbytes * layout.replicas
        writer.close()
        for process, name in enumerate(shard_names(layout)):
            assert same(np.load(os.path.join(folder, name)), full[owned(layout, process)])


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(), (0,), (1,), (70,), (5, 0, 3), (7, 11), (9, 8, 7), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", [">f8", "S3", "i2,f4", "?"])
def test_npy_both_ways(tmp_path, shape, order, dtype):
    full = distinct(shape, dtype)
    np.save(tmp_path / "a.npy", np.asarray(full, order=order))
    reader = dense.NpyReader(str(tmp_path / "a.npy"))
    array = reader.array()
    assert reader.tree.order == (order if sum(n != 1 for n in shape) > 1 and full.size else "C")
    assert same(put_together(array), full)
    if full.size:
        start, extents = [n // 3 for n in shape], [n - n // 3 for n in shape]
        assert same(array.read_box(start, extents), cut(full, start, extents))
    to = None if not shape else ls.Layout(f"({', '.join('*' * len(shape))}) on 1, order={order}", shape)
    writer = dense.NpyWriter(str(tmp_path / "b.npy"), to)
    writer.create(reader.tree)
    assert write_all(writer, full) == full.nbytes
    writer.finish()
    again = np.load(tmp_path / "b.npy")
    assert same(again, full) and (again.flags.f_contiguous if order == "F" else again.flags.c_contiguous)


def test_an_array_keeps_its_order_without_a_layout(tmp_path):
    full = distinct((7, 5), "f8")
    for name, writer in (("a.npy", dense.NpyWriter), ("s", shards.ShardsWriter)):
        if writer.folder:
            os.mkdir(tmp_path / name)
        made = writer(str(tmp_path / name))
        made.create(ArrayFacts((7, 5), full.dtype, order="F"))
        write_all(made, full)
        made.finish()
    assert np.load(tmp_path / "a.npy").flags.f_contiguous
    assert open_store(tmp_path / "s").layout == ls.Layout("(*, *) on 1, order=F", (7, 5))


CHUNKS = [
    # shape, layout, of elements of 8 bytes, 25 of them in a chunk
    ((100, 4), "(*, *) on 1", (5, 4)),  # a divisor of 100, and not 6
    ((100, 5), "(*, *) on 1", (5, 5)),
    ((4, 100), "(*, *) on 1, order=F", (4, 5)),
    ((3, 100), "(*, *) on 1", (1, 25)),
    ((8, 8), "(BLOCK, BLOCK) on 2x2", (4, 4)),
    ((8, 40), "(BLOCK, BLOCK) on 2x4", (2, 10)),
    ((8, 8), "(CYCLIC, CYCLIC) on 2x2", (2, 8)),
    ((100,), "(BLOCK) on 10", (20,)),  # two ranks' blocks
    ((9, 2), "(GEN_BLOCK(5, 4), *) on 2", (9, 2)),
    ((0, 7), "(BLOCK, *) on 3", (1, 7)),
]


@pytest.mark.parametrize(("shape", "text", "chunks"), CHUNKS)
def test_chunks_suit_the_files(shape, text, chunks):
    layout = ls.Layout(text, shape)
    arrays = [FileArray(f"{r}", 0, layout.local_shape(r), layout.order, 8) for r in layout.ranks]
    pieces = dense.ShardFiles(layout, arrays)
    assert dense.chunk_extents(pieces, 8) == chunks


@settings(max_examples=150, deadline=None)
@given(st.lists(EXTENTS, min_size=1, max_size=4).flatmap(lambda shape: layouts(tuple(shape))))
def test_a_chunk_is_contiguous_in_each_file_and_bounded(layout):
    arrays = [FileArray(f"{r}", 0, layout.local_shape(r), layout.order, 8) for r in layout.ranks]
    pieces = dense.ShardFiles(layout, arrays)
    grid = dense.Grid(layout.shape, dense.chunk_extents(pieces, 8))
    assert np.prod(grid.chunks) * 8 <= dense.CHUNK_BYTES and min(grid.chunks) >= 1
    for index in itertools.islice(grid.indices(), 50):
        for part in pieces.parts(grid.start(index), grid.extents(index)):
            assert all(box.runs == 1 for box in part.boxes)


def test_a_huge_extent_is_cut_at_once():
    pieces = dense.OneFile(FileArray("a", 0, (2**62 - 57,), "C", 1))
    (chunk,) = dense.chunk_extents(pieces, 1)
    assert 100 <= chunk <= 200
    assert dense.chunk_extents(dense.OneFile(FileArray("a", 0, (3,), "C", 10**6)), 10**6) == (1,)


def test_several_threads(tmp_path):
    layout = ls.Layout("(CYCLIC(3), BLOCK) on 5x10", (60, 50))
    full = distinct(layout.shape, "f8")
    writer = shards.ShardsWriter(str(tmp_path), layout)
    writer.create(ArrayFacts(full.shape, full.dtype))
    array = writer.array()

    def put(index):
        array.write(index, array.encode(index, padded(full, array.grid, index)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, array.grid.indices()))
    writer.finish()
    reader = shards.ShardsReader(str(tmp_path))
    told = reader.array()
    wanted = {i: cut(full, told.grid.start(i), told.grid.extents(i)) for i in told.grid.indices()}
    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(wanted, pool.map(told.read, wanted)))
    assert all(same(found[i], wanted[i]) for i in wanted)
    assert len(reader._files._free) <= 8
    before = len(os.listdir("/proc/self/fd"))
    reader.close()
    assert len(os.listdir("/proc/self/fd")) < before


def test_what_cannot_be_held_is_told():
    facts = ArrayFacts(
        (3,), np.dtype("f4"), fill=b"\0\0\xc0\x7f", names=("x",), attributes={"units": "K"}, unlimited=(0,)
    )
    words = " ".join(dense.NpyWriter.losses(facts))
    for word in ("units", "dimension names", "fill value", "may grow"):
        assert word in words
    assert dense.NpyWriter.losses(ArrayFacts((3,), np.dtype("f4"), fill=bytes(4), names=(None,))) == []
    assert "one array" in dense.NpyWriter.losses(GroupFacts({"a": facts}))[0]
    assert "BF16" in dense.NpyWriter.losses(ArrayFacts((3,), np.dtype("V2"), type_name="BF16"))[0]
    assert "vlen" in dense.NpyWriter.losses(ArrayFacts((3,), None, type_name="vlen string"))[0]


REFUSED = [
    (GroupFacts({}), None, ArgumentError, "group"),
    (ArrayFacts((3,), None, type_name="vlen"), None, StoreError, "vlen"),
    (ArrayFacts((3,), np.dtype("f4"), codecs=("zstd:3",)), None, ArgumentError, "zstd:3"),
    (ArrayFacts((3,), np.dtype("f4")), "(BLOCK) on 2", ArgumentError, "one rank"),
    (ArrayFacts((3,), np.dtype("f4")), "(*, *) on 1", LongshoreError, "dimension"),
]


@pytest.mark.parametrize(("tree", "to", "error", "words"), REFUSED)
def test_what_cannot_be_made_is_refused(tmp_path, tree, to, error, words):
    with pytest.raises(error, match=words):
        dense.NpyWriter(str(tmp_path / "a.npy"), to).create(tree)
    assert not os.listdir(tmp_path)


def test_names_within_one_array_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(ArgumentError, match="'x'"):
        dense.NpyReader(str(tmp_path / "a.npy")).array("x")
    with pytest.raises(ArgumentError, match="npy"):
        shards.ShardsWriter(str(tmp_path)).create(ArrayFacts((), np.dtype("f4")))


def test_a_store_that_was_left_is_gone_on_with(tmp_path):
    layout, full = ls.Layout("(BLOCK) on 3", (100,)), distinct((100,), "f8")
    facts, place = ArrayFacts(full.shape, full.dtype), str(tmp_path)
    left = shards.ShardsWriter(place, layout)
    left.create(facts)
    write_all(left, full)
    left.finish()  # and then killed: the folder is finished, and not published
    with open(tmp_path / "rank-00002.npy", "r+b") as file:
        file.truncate(40)  # as if it had been killed while the file was made
    again = shards.ShardsWriter(place, layout, resume=True)
    again.create(facts)
    assert not (tmp_path / layout_json.NAME).exists()
    array = again.array()
    assert same(np.load(tmp_path / "rank-00000.npy"), full[:34])
    assert not np.load(tmp_path / "rank-00002.npy").any()
    last = [index for index in array.grid.indices() if array.grid.start(index)[0] + array.grid.chunks[0] > 68]
    for index in last:
        array.write(index, array.encode(index, padded(full, array.grid, index)))
    again.finish()
    found = shards.ShardsReader(place).array()
    assert same(put_together(found), full)
    # Without resume a single file, which is there and empty, is made anew.
    (tmp_path / "a.npy").write_bytes(b"x" * 10_000)
    fresh = dense.NpyWriter(str(tmp_path / "a.npy"))
    fresh.create(facts)
    assert not np.load(tmp_path / "a.npy").any()


def test_mistakes_of_files_name_the_chunk(tmp_path, monkeypatch):
    full = distinct((100,), "f8")
    np.save(tmp_path / "a.npy", full)
    reader = dense.NpyReader(str(tmp_path / "a.npy"))
    array, before = reader.array(), reader.fingerprint()
    assert reader.fingerprint() == before
    os.truncate(tmp_path / "a.npy", 500)
    assert reader.fingerprint() != before
    with pytest.raises(StoreError, match=r"chunk \(3,\) of .*a\.npy: .*changed"):
        array.read((3,))
    with pytest.raises(StoreError, match=r"extents \(9,\) at \(90,\)"):
        array.read_box((90,), (9,))
    (tmp_path / "a.npy").unlink()
    with pytest.raises(StoreError, match="a.npy"):
        reader.fingerprint()

    writer = dense.NpyWriter(str(tmp_path / "b.npy"))
    writer.create(ArrayFacts(full.shape, full.dtype))
    target = writer.array()
    stored = target.encode((2,), padded(full, target.grid, (2,)))

    def full_disk(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full_disk)
    with pytest.raises(StoreError, match=r"chunk \(2,\) of .*b\.npy: .*No space") as caught:
        target.write((2,), stored)
    assert caught.value.errno == errno.ENOSPC


def test_hostile_folders_are_refused(tmp_path):
    layout, full = ls.Layout("(BLOCK) on 2", (10,)), distinct((10,), "f8")
    save_shards(tmp_path, layout, full)
    os.rename(tmp_path / "part1.npy", tmp_path / "elsewhere.npy")
    with pytest.raises(StoreError, match="part1.npy is missing"):
        shards.ShardsReader(str(tmp_path))
    os.symlink(tmp_path / "elsewhere.npy", tmp_path / "part1.npy")
    with pytest.raises(StoreError, match="symbolic link"):
        shards.ShardsReader(str(tmp_path))
    os.unlink(tmp_path / "part1.npy")
    os.mkfifo(tmp_path / "part1.npy")
    with pytest.raises(StoreError, match="part1.npy"):
        shards.ShardsReader(str(tmp_path))
    with pytest.raises(StoreError, match="part1.npy"):
        dense.NpyReader(str(tmp_path / "part1.npy"))
