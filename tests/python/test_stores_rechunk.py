"""Arrays from chunk grid to chunk grid: plans, and that carrying them out brings every element to its place."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import threading

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore.errors import ArgumentError, DTypeError, MemoryLimitError, VerificationError
from longshore.stores import rechunk
from longshore.stores.array import ArrayFacts, ArrayReader, ArrayWriter, Grid
from longshore.stores.chunk_windows import window_over
from longshore.stores.kept_work import KeptWork
from longshore.stores.rechunk import Rechunk, corners
from longshore.stores.rechunk_plan import Ways, dealt_dimension, plan_rechunk

MIB = 1 << 20


class MemoryReader(ArrayReader):
    """An array in memory, cut into chunks."""

    where = "source"

    def __init__(self, array, chunks, missing=(), fill=None, addressable=False):
        self.array_ = array
        self.facts = ArrayFacts(array.shape, array.dtype, chunks, fill=fill)
        self.grid = Grid(array.shape, chunks)
        self.missing, self.sparse = set(missing), fill is not None
        self.addressable = addressable

    def box(self, start, extents):
        return self.array_[tuple(slice(a, a + e) for a, e in zip(start, extents))]

    def read(self, index):
        if index in self.missing:
            return None
        return np.ascontiguousarray(self.box(self.grid.start(index), self.grid.extents(index))).tobytes()

    def decode(self, index, stored):
        return np.frombuffer(stored, self.array_.dtype).reshape(self.grid.extents(index))

    def read_box(self, start, extents):
        return self.box(start, extents).copy()


class MemoryWriter(ArrayWriter):
    """Chunks in memory, each as it was given."""

    where = "destination"

    def __init__(self, shape, dtype, chunks, fill=None, sparse=False):
        self.facts = ArrayFacts(shape, dtype, chunks, fill=fill)
        self.grid = Grid(shape, chunks)
        self.sparse = sparse
        self.chunks = {}
        self._lock = threading.Lock()

    def encode(self, index, chunk, *, at_once=False):
        assert chunk.shape == self.grid.chunks and chunk.flags.c_contiguous and chunk.dtype == self.facts.dtype
        return chunk.tobytes()

    def write(self, index, stored):
        with self._lock:
            assert index not in self.chunks, "written twice"
            self.chunks[index] = stored
        return len(stored)

    def read(self, index):
        if index not in self.chunks:
            return None
        whole = np.frombuffer(self.chunks[index], self.facts.dtype).reshape(self.grid.chunks)
        return whole[tuple(map(slice, self.grid.extents(index)))]

    def array(self, missing=0):
        whole = np.empty(self.grid.shape, self.facts.dtype)
        for index in self.grid.indices():
            found = self.read(index)
            box = tuple(slice(a, a + e) for a, e in zip(self.grid.start(index), self.grid.extents(index)))
            whole[box] = missing if found is None else found
        return whole


def some(shape, dtype):
    n = math.prod(shape) * np.dtype(dtype).itemsize
    return np.random.default_rng(n).integers(0, 256, n, dtype=np.uint8).view(dtype).reshape(shape)


def planned(reader, writer, axes, max_mem, threads=2):
    source = Grid(*(tuple(x[a] for a in axes) for x in (reader.grid.shape, reader.grid.chunks)))
    return plan_rechunk(
        source, writer.grid, writer.facts.dtype.itemsize, max_mem, threads=threads, addressable=reader.addressable
    )


@st.composite
def moves(draw):
    n = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, 12)) for _ in range(n))
    source = tuple(draw(st.integers(1, extent + 1)) for extent in shape)
    axes = tuple(draw(st.permutations(range(n))))
    target = tuple(draw(st.integers(1, shape[a] + 1)) for a in axes)
    dtype = draw(st.sampled_from(["u1", "<i2", ">f4", "<f8", "c16", "V3", "V24"]))
    return shape, source, target, axes, dtype


def with_slots(plan, writer, room):
    """A plan for so few chunks at once that small arrays need every way there is."""
    ways = Ways(plan.source, plan.target, plan.itemsize, None, None, False)
    ways.piece_bytes = 0
    fixed = ways.fixed(plan.threads)
    return ways.best(fixed + room * (ways.target_chunk + 32), plan.threads)


@settings(max_examples=60, deadline=None)
@given(moves(), st.integers(1, 40), st.booleans(), st.data())
def test_every_element_comes_to_its_place(tmp_path_factory, move, room, addressable, data):
    shape, source, target, axes, dtype = move
    array = some(shape, dtype)
    wanted = array.transpose(axes)
    reader = MemoryReader(array, source, addressable=addressable)
    writer = MemoryWriter(wanted.shape, array.dtype, target)
    plan = planned(reader, writer, axes, 1 << 30)
    assert plan.way == "sweep"
    few = with_slots(plan, writer, room)
    counts = Rechunk(few or plan, reader, writer, axes, str(tmp_path_factory.getbasetemp())).run()
    assert writer.array().tobytes() == wanted.tobytes()
    assert counts.chunks == math.prod(writer.grid.counts)
    assert counts.written_bytes == counts.chunks * math.prod(target) * array.dtype.itemsize
    if few is not None and not addressable:
        assert counts.read_bytes >= array.nbytes and counts.spilled_bytes <= few.spilled_bytes


@settings(max_examples=40, deadline=None)
@given(moves(), st.integers(1, 40), st.data())
def test_chunks_that_are_missing_stay_missing(tmp_path_factory, move, room, data):
    shape, source, target, axes, dtype = move
    array = some(shape, dtype)
    fill = bytes(range(1, array.dtype.itemsize + 1))
    grid = Grid(shape, source)
    missing = data.draw(st.sets(st.sampled_from(list(grid.indices()))))
    for index in missing:
        box = tuple(slice(a, a + e) for a, e in zip(grid.start(index), grid.extents(index)))
        array[box] = np.frombuffer(fill, array.dtype)[0]
    reader = MemoryReader(array, source, missing, fill)
    sparse = data.draw(st.booleans())
    writer = MemoryWriter(tuple(shape[a] for a in axes), array.dtype, target, fill, sparse)
    plan = planned(reader, writer, axes, 1 << 30)
    plan = with_slots(plan, writer, room) or plan
    Rechunk(plan, reader, writer, axes, str(tmp_path_factory.getbasetemp())).run()
    assert writer.array(np.frombuffer(fill, array.dtype)[0]).tobytes() == array.transpose(axes).tobytes()
    there = np.zeros(shape, bool)
    for index in set(grid.indices()) - missing:
        there[tuple(slice(a, a + e) for a, e in zip(grid.start(index), grid.extents(index)))] = True
    there = there.transpose(axes)
    for index in writer.grid.indices():
        box = tuple(slice(a, a + e) for a, e in zip(writer.grid.start(index), writer.grid.extents(index)))
        assert (index in writer.chunks) == (bool(there[box].any()) or not sparse)


@settings(max_examples=40, deadline=None)
@given(moves(), st.integers(1, 40), st.data())
def test_what_is_there_already_is_not_made_again(tmp_path_factory, move, room, data):
    shape, source, target, axes, dtype = move
    array = some(shape, dtype)
    reader = MemoryReader(array, source)
    folder = str(tmp_path_factory.getbasetemp())
    whole = MemoryWriter(tuple(shape[a] for a in axes), array.dtype, target)
    plan = planned(reader, whole, axes, 1 << 30)
    plan = with_slots(plan, whole, room) or plan
    digests = {}
    Rechunk(plan, reader, whole, axes, folder, written=lambda index, digest, _: digests.update({index: digest})).run()
    done = np.array([data.draw(st.booleans()) for _ in range(math.prod(whole.grid.counts))]).reshape(whole.grid.counts)
    rest = MemoryWriter(whole.grid.shape, array.dtype, target)
    counts = Rechunk(
        plan,
        reader,
        rest,
        axes,
        folder,
        written=lambda index, digest, _: digests[index] == digest or pytest.fail(f"chunk {index}"),
        done=done,
    ).run()
    assert set(rest.chunks) == {index for index in whole.grid.indices() if not done[index]}
    assert all(rest.chunks[index] == whole.chunks[index] for index in rest.chunks)
    if done.all():
        assert counts.read_bytes == 0


class Killed(BaseException):
    """What ends a run in the middle of something."""


@settings(max_examples=80, deadline=None)
@given(
    moves(),
    st.integers(1, 40),
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(0, 80), max_size=4),
    st.integers(0, 99),
    st.none() | st.integers(0, 1 << 16),
)
def test_what_a_killed_run_had_read_need_not_be_read_again(
    tmp_path_factory, move, room, addressable, sparse, kills, piece_bytes, spoilt
):
    shape, source, target, axes, dtype = move
    array, folder = some(shape, dtype), tmp_path_factory.mktemp("kept")
    fill = bytes(array.dtype.itemsize) if sparse else None
    missing = list(Grid(shape, source).indices())[::3] if sparse and not addressable else []
    for index in missing:
        box = tuple(
            slice(a, a + e) for a, e in zip(Grid(shape, source).start(index), Grid(shape, source).extents(index))
        )
        array[box] = np.zeros((), array.dtype)
    left, reads, taken = [10**9], [0], {}

    def step():
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    class Reader(MemoryReader):
        def read(self, index):
            step()
            reads[0] += 1
            return super().read(index)

        def read_box(self, start, extents):
            step()
            reads[0] += 1
            return super().read_box(start, extents)

    class Writer(MemoryWriter):
        def encode(self, index, chunk, *, at_once=False):
            step()
            return super().encode(index, chunk)

    def written(index, digest, elements):
        step()
        taken[index] = digest

    def run(plan, kept):
        writer = Writer(tuple(shape[a] for a in axes), array.dtype, target, fill, sparse)
        writer.chunks.update({index: chunks[index] for index in taken if index in chunks})
        done = np.zeros(writer.grid.counts, bool)
        for index in taken:
            done[index] = True
        try:
            Rechunk(plan, reader, writer, axes, str(folder), written=written, done=done, kept=kept).run()
        finally:
            chunks.update(writer.chunks)
        return writer

    chunks = {}
    reader = Reader(array, source, missing, fill, addressable)
    whole = MemoryWriter(tuple(shape[a] for a in axes), array.dtype, target, fill, sparse)
    plan = planned(reader, whole, axes, 1 << 30, threads=1)
    plan = dataclasses.replace(with_slots(plan, whole, room) or plan, threads=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rechunk, "PIECE_BYTES", piece_bytes)
        nothing = np.zeros((), array.dtype)
        expected = run(plan, None).array(nothing)
        undisturbed, reads[0] = reads[0], 0
        chunks.clear()
        taken.clear()
        killed = 0
        for after in kills:
            left[0] = after
            with contextlib.suppress(Killed):
                run(plan, KeptWork(str(folder / "work"), 0, plan))
                continue
            killed += 1
            tables = sorted(
                path for path in (folder / "work").iterdir() if path.name.endswith("records") or "held" in path.name
            )
            if spoilt is not None and tables:
                path = tables[spoilt % len(tables)]
                whole = bytearray(path.read_bytes())
                if whole:
                    whole[spoilt // 7 % len(whole)] ^= 1 << spoilt % 8
                    path.write_bytes(whole)
        left[0] = 10**9
        writer = run(plan, KeptWork(str(folder / "work"), 0, plan))
    assert writer.array(nothing).tobytes() == expected.tobytes() == array.transpose(axes).tobytes()
    assert set(writer.chunks) == set(chunks) and len(taken) == math.prod(writer.grid.counts)
    if piece_bytes == 0 and spoilt is None:
        assert reads[0] <= undisturbed + killed  # the piece that was on its way


def held_by_hand(source, target, order):
    """Target chunks that have begun and are not complete, at most: counted."""
    missing = {index: math.prod(target.extents(index)) for index in target.indices()}
    begun, most = set(), 0
    for corner in itertools.product(*[range(source.counts[d]) for d in order]):
        index = [0] * len(order)
        for d, at in zip(order, corner):
            index[d] = at
        start, extents = source.start(index), source.extents(index)
        touched = list(itertools.product(*target.over(start, [a + e for a, e in zip(start, extents)])))
        begun.update(touched)
        most = max(most, len(begun))
        for chunk in touched:
            low, size = target.start(chunk), target.extents(chunk)
            missing[chunk] -= math.prod(min(a + e, b + f) - max(a, b) for a, e, b, f in zip(start, extents, low, size))
            if not missing[chunk]:
                begun.remove(chunk)
    return most


@settings(max_examples=60, deadline=None)
@given(moves())
def test_what_is_held_at_once_is_never_more_than_planned(move):
    shape, chunks, target, _, _ = move
    source, target = Grid(shape, chunks), Grid(shape, tuple(min(t, n + 1) for t, n in zip(target, shape)))
    if len(target.chunks) != len(shape):
        return
    ways = Ways(source, target, 8, None, None, False)
    order, slots = ways._order(target.counts)
    assert held_by_hand(source, target, order) <= slots


def test_plans_of_the_studys_tasks():
    def cost(shape, source, target, itemsize, ceiling):
        plan = plan_rechunk(Grid(shape, source), Grid(shape, target), itemsize, ceiling, threads=2)
        assert plan.memory_bytes <= ceiling
        return plan.total_bytes / (math.prod(shape) * itemsize), plan

    maps = (8760, 181, 360), (1, 181, 360), (8760, 8, 8), 4
    assert cost(*maps, 1000 * 10**6)[0] <= 3.4
    assert cost(*maps, 4 << 30)[0] == 2
    assert cost((1024,) * 3, (1024, 32, 32), (32, 32, 1024), 4, 256 * 10**6)[0] <= 2.02
    assert cost((20000,) * 2, (1000,) * 2, (999,) * 2, 8, 512 * 10**6)[0] <= 2.02
    assert cost((67186, 3720), (2000, 1), (67186, 10), 4, 128 * 10**6)[0] <= 2.02
    assert cost((512, 2048, 2048), (1, 2048, 2048), (64, 64, 64), 2, 512 << 20)[0] <= 2.3
    floor = cost(*maps, 256 << 20)[1]
    assert floor.way == "spill" and floor.floor_bytes <= floor.total_bytes


def test_half_the_threads_where_all_of_them_would_spill():
    """What they hold is then worth more as room for chunks."""
    grids = Grid((1024,) * 3, (1024, 32, 32)), Grid((1024,) * 3, (32, 32, 1024))
    size, chunk = 4 << 30, 4 << 20
    held = {"thread_bytes": chunk, "encode_bytes": 2 * chunk}
    plan = plan_rechunk(*grids, 4, 256 * 10**6, threads=16, **held)
    assert plan.threads == 8 and plan.total_bytes < 2.2 * size and plan.memory_bytes <= 256 * 10**6
    assert plan_rechunk(*grids, 4, 512 * 10**6, threads=16, **held).threads == 16  # where nothing is spilled


@settings(max_examples=60, deadline=None)
@given(moves(), st.integers(1, 40))
def test_the_ways_that_lose_move_more_or_do_not_fit(move, room):
    shape, chunks, target, _, _ = move
    source, target = Grid(shape, chunks), Grid(shape, tuple(min(t, n + 1) for t, n in zip(target, shape)))
    ways = Ways(source, target, 8, None, None, False)
    ways.piece_bytes = 0
    most = ways.fixed(1) + room * (ways.target_chunk + 32)
    plan = ways.best(most, 1)
    others = {} if plan is None else {other.way: other for other in ways.others(most, 1, plan)}
    assert plan is None or plan.way not in others
    assert all(other.total_bytes >= plan.total_bytes for other in others.values() if other.fits)
    if plan is not None and plan.way != "sweep":
        assert not others["sweep"].fits and others["sweep"].memory_bytes > most
        told = str(dataclasses.replace(plan, others=tuple(others.values())))
        assert "sweep would need" in told


@settings(max_examples=60, deadline=None)
@given(moves(), st.integers(2, 5), st.booleans(), st.integers(0, 4000))
def test_windows_that_processes_share_cover_all_and_fit(move, processes, one_writes, more):
    shape, chunks, target, _, _ = move
    source, target = Grid(shape, chunks), Grid(shape, tuple(min(t, n + 1) for t, n in zip(target, shape)))
    writers = 1 if one_writes else processes
    ways = Ways(source, target, 8, None, None, False)
    ceiling = ways.least_of_windows(processes, writers) + more
    plan = plan_rechunk(source, target, 8, ceiling, processes=processes, writers=writers)
    assert plan.way == "windows" and plan.memory_bytes <= ceiling
    extents = [min(b * t, n) for b, t, n in zip(plan.boxes[0], target.chunks, shape)]
    seen = [np.zeros(shape, int), np.zeros(shape, int)]
    for panel in plan.panels():
        low, high = corners(target, panel)
        held = [0] * processes
        for side, (grid, among) in enumerate(((source, processes), (target, writers))):
            window = window_over(grid, low, high, dealt_dimension(grid, extents), among)
            for process in range(window.processes):
                first, last = window.box(process)
                box = tuple(slice(max(a, f), min(b, z)) for a, f, b, z in zip(low, first, high, last))
                seen[side][box] += 1
                held[process] += 8 * seen[side][box].size
        assert ways.fixed(plan.threads) + max(held) <= ceiling
    assert (seen[0] == 1).all() and (seen[1] == 1).all()


def test_a_ceiling_that_nothing_fits_names_the_least():
    grid = Grid((4096, 4096), (4096, 4096)), Grid((4096, 4096), (512, 512))
    with pytest.raises(MemoryLimitError, match=r"needs at least (\d+) MiB") as caught:
        plan_rechunk(*grid, 8, 16 * MIB)
    least = int(str(caught.value).split("at least ")[1].split()[0]) * MIB
    assert plan_rechunk(*grid, 8, least).memory_bytes <= least
    with pytest.raises(MemoryLimitError):
        plan_rechunk(*grid, 8, least - MIB)
    with pytest.raises(MemoryLimitError, match=f"within 1000 B: it needs at least {least // MIB + 3} MiB"):
        plan_rechunk(*grid, 8, 1000, beside=3 * MIB)
    assert plan_rechunk(*grid, 8, least + 3 * MIB, beside=3 * MIB).memory_bytes <= least + 3 * MIB


def test_more_boxes_than_files_go_in_steps(tmp_path):
    array = some((8, 128), "u1")
    reader, writer = MemoryReader(array, (1, 128)), MemoryWriter(array.shape, array.dtype, (8, 1))
    ways = Ways(reader.grid, writer.grid, 1, None, None, False)
    steps = ways._steps((1, 128), (1, 1), 16)
    assert steps == [(1, 128), (1, 16), (1, 1)]
    plan = dataclasses.replace(planned(reader, writer, (0, 1), 1 << 30), way="spill", boxes=tuple(steps), slots=1)
    counts = Rechunk(plan, reader, writer, (0, 1), str(tmp_path)).run()
    assert (writer.array() == array).all()
    assert counts.spilled_bytes == ways._spilled(steps) == 2 * 8 * (128 + 128 - 8)


def test_an_error_of_a_thread_ends_the_move(tmp_path):
    array = some((64, 64), "u1")

    class Broken(MemoryReader):
        def decode(self, index, stored):
            if index == (7, 0):
                raise OSError("this chunk is broken")
            return super().decode(index, stored)

    writer = MemoryWriter(array.shape, array.dtype, (64, 1))
    reader = Broken(array, (1, 64))
    with pytest.raises(OSError, match="this chunk is broken"):
        Rechunk(planned(reader, writer, (0, 1), 1 << 30), reader, writer, (0, 1), str(tmp_path)).run()
    assert not writer.chunks


def test_a_chunk_that_changes_in_memory_is_noticed(tmp_path):
    array = some((8, 8), "u1")

    class Spoilt(Rechunk):
        def count(self, **what):
            super().count(**what)
            if self.counts.read_bytes == 64:
                self.memory[3] ^= 1

    reader, writer = MemoryReader(array, (1, 8)), MemoryWriter(array.shape, array.dtype, (8, 8))
    with pytest.raises(VerificationError, match="does not hold what was copied"):
        Spoilt(planned(reader, writer, (0, 1), 1 << 30, 1), reader, writer, (0, 1), str(tmp_path)).run()


# --- plans from shapes alone


def test_a_plan_of_shapes_is_that_of_the_move():
    told = ls.plan_move((93504, 721, 1440), "f4", (24, 721, 1440), "93504x10x10", max_mem="1GiB", threads=2)
    source, target = Grid(told.source.shape, (24, 721, 1440)), Grid(told.source.shape, (93504, 10, 10))
    assert told == plan_rechunk(source, target, 4, 1 << 30, threads=2)
    assert told.memory_bytes <= 1 << 30 and told.read_bytes >= 4 * 93504 * 721 * 1440
    assert ls.plan_move((0, 3), "f4", (1, 1), (1, 1)).total_bytes == 0
    less = ls.plan_move((64, 64), "f8", (1, 64), (64, 1), stored_bytes=100, to_stored_bytes=200)
    assert (less.read_bytes, less.written_bytes) == (100, 200)


@pytest.mark.parametrize(
    "kind, words, arguments",
    [
        (ArgumentError, "chunks 3x3 have 2 dimensions", ((10,), "f4", (3, 3), (2,))),
        (ArgumentError, "name dimensions", ((10,), "f4", "t=3", (2,))),
        (ArgumentError, "none that an array can have", ((-1,), "f4", (3,), (2,))),
        (ArgumentError, "none that an array can have", ((1 << 62, 4), "f4", (3, 3), (2, 2))),
        (ArgumentError, "not int", ((10,), "f4", 5, (2,))),
        (ArgumentError, "shape is 5", (5, "f4", (3,), (2,))),
        (DTypeError, "objects", ((10,), "O", (3,), (2,))),
        (MemoryLimitError, "at least", ((1 << 20,), "f8", (1 << 20,), (9,))),
    ],
)
def test_mistakes_in_a_plan_of_shapes(kind, words, arguments):
    with pytest.raises(kind, match=words):
        ls.plan_move(*arguments, max_mem="4MiB")
