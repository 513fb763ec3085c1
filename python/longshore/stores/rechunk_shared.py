"""Carries out a `RechunkPlan` in windows that the processes of an MPI job share: each reads and decodes its share of a
window's source chunks, one exchange brings the elements to the processes that write, and these encode."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from .. import _core
from ..errors import VerificationError
from .array import ArrayFacts, ArrayReader, ArrayWriter, Grid, Index
from .chunk_windows import ChunkWindow, window_over
from .collect import Collector, Put
from .do_all import do_all
from .phases import PhaseClock
from .rechunk import Counts, box_digest, corners
from .rechunk_plan import Box, RechunkPlan, dealt_dimension
from .source_pieces import Piece, SourcePieces, leaves_out, loaded
from .team import Team
from .worker_threads import WorkerThreads

_WRAP = (1 << 64) - 1


class ArrayOnItsWay(Protocol):
    """An array that is moved: its source, and what the target is to be."""

    reader: ArrayReader
    facts: ArrayFacts
    grid: Grid
    axes: tuple[int, ...]


class SharedRechunk:
    """One array on its way from a reader, which every process has, to the writers of the first `writers` processes."""

    def __init__(
        self,
        plan: RechunkPlan,
        array: ArrayOnItsWay,
        writer: ArrayWriter | None,
        team: Team,
        writers: int,
        *,
        collects: bool,
        written: Callable[[Index, int, int], None],
        done: np.ndarray | None,
    ) -> None:
        """`collects`: the `writers` encode their chunks, and the first process writes those of all. `plan.target` may
        have larger chunks than `array.grid`, of whole ones: what only one process may write. `written` is called on
        every process for each chunk that any has written. `done` is `Rechunk`'s, the same on all."""
        facts, reader = array.facts, array.reader
        assert facts.dtype is not None
        self._plan, self._writer, self._grid, self._dtype = plan, writer, array.grid, facts.dtype
        self._team, self._writers, self._tell, self._done = team, writers, written, done
        self._raw = np.dtype((np.void, plan.itemsize))  # to the engine an element is its bytes
        # Of elements with fields NumPy would copy these alone, and not what lies between them.
        self._copied = self._dtype if self._dtype.names is None else self._raw
        self._collector = Collector(team, self._put) if collects else None
        self._lock = threading.Lock()
        self._phase = PhaseClock()
        self._counts = Counts(seconds=self._phase.seconds)
        self._source = SourcePieces(plan, reader, array.axes, self._dtype, self._count_read, self._phase)
        self._filler = np.frombuffer(self._source.fill, self._copied)[0]
        padding = facts.fill if facts.fill is not None else bytes(plan.itemsize)
        self._padding = np.frombuffer(padding, self._copied)[0]
        self._sparse = reader.sparse
        self._leaves_out = writer is not None and leaves_out(reader, writer)

    def run(self) -> Counts:
        """Collective. Everything, to the last chunk; what all processes together have read and written."""
        with contextlib.ExitStack() as held:
            pool = held.enter_context(WorkerThreads(self._plan.threads, "longshore-chunks"))
            if self._collector is not None:
                held.enter_context(self._collector)
            for panel in self._plan.panels():
                low, high = corners(self._plan.target, panel)
                if self._done is None or not self._done[tuple(map(slice, *self._chunks(low, high)))].all():
                    self._carry(pool, low, high)
        counts = Counts()
        for of_process in self._team.comm.allgather(self._counts):
            counts.add(of_process)
        return counts

    def _chunks(self, low: Sequence[int], high: Sequence[int]) -> Box:
        ranges = self._grid.over(low, high)
        return tuple(r.start for r in ranges), tuple(r.stop for r in ranges)

    def _carry(self, pool: WorkerThreads, low: tuple[int, ...], high: tuple[int, ...]) -> None:
        """Collective. One window."""
        plan, team = self._plan, self._team
        extents = [
            min(p * t, n) for p, t, n in zip(plan.boxes[0], plan.target.chunks, plan.target.shape)
        ]  # of the largest window
        sides = [
            window_over(grid, low, high, dealt_dimension(grid, extents), processes)
            for grid, processes in ((plan.source, team.size), (plan.target, self._writers))
        ]
        boxes = [[_within(side.box(rank), low, high) for rank in range(side.processes)] for side in sides]
        came = _Came(self._grid, low, high)
        given, piece = self._gather(pool, boxes, came)
        if self._sparse:
            came.join(team)
        told: list[tuple[Index, int]] = []

        def write(put: Put) -> None:
            if piece is not None:
                self._write(pool, sides[1], piece, came, told, put)

        collector = self._collector
        team.together(lambda: write(self._put) if collector is None else collector.run(write))
        everyone = team.comm.allgather((given, told))
        if sum(source - sum(digest for _, digest in chunks) for source, chunks in everyone) & _WRAP:
            raise VerificationError(
                f"the window from {low} to {high} does not hold what was read for it after the exchange; memory or the "
                "network is at fault; nothing was published"
            )

        def tell() -> None:
            for _, chunks in everyone:
                for index, digest in chunks:
                    if self._done is None or not self._done[index]:
                        self._tell(index, digest, math.prod(self._grid.extents(index)))

        team.together(tell)

    def _gather(self, pool: WorkerThreads, boxes: list[list[Box | None]], came: _Came) -> tuple[int, np.ndarray | None]:
        """Collective. Reads this process's elements of the source, and brings all to where they are written: the digest
        of what was read, and this process's elements of the target, dense; None where it has none. `boxes`: of each
        side each process's."""
        team = self._team
        own, to = (of_side[team.rank] if team.rank < len(of_side) else None for of_side in boxes)
        held, piece = team.together(lambda: (self._room(own), self._room(to)))

        def read() -> int:
            if own is None or held is None:
                return 0
            self._read(pool, own, held, came)
            with self._phase("copying"):
                return self._digest(held, own[0])

        digest = team.together(read)
        with self._phase("exchanging"):
            self._exchange(boxes, held, piece)
        return digest, piece

    def _room(self, box: Box | None) -> np.ndarray | None:
        """An array for a box's elements."""
        return None if box is None else np.empty([b - a for a, b in zip(*box)], self._copied)

    def _read(self, pool: WorkerThreads, box: Box, held: np.ndarray, came: _Came) -> None:
        """Reads a box of the source, and notes for which chunks of the target there was something."""
        low, high = box

        def load(pieces: list[Piece]) -> None:
            for piece, elements in zip(pieces, loaded(pieces)):
                take(piece, elements)

        def take(piece: Piece, elements: np.ndarray | None) -> None:
            start = [max(a, s) for a, s in zip(low, piece.start)]
            end = [min(b, s + e) for b, s, e in zip(high, piece.start, piece.extents)]
            there = tuple(slice(s - a, e - a) for s, e, a in zip(start, end, low))
            own = tuple(slice(s - a, e - a) for s, e, a in zip(start, end, piece.start))
            with self._phase("copying"):
                held[there] = self._filler if elements is None else elements[own].view(self._copied)
            if elements is not None:
                came.note(start, end)

        do_all(pool, load, self._source.together(low, high), 2 * self._plan.threads)

    def _exchange(self, boxes: list[list[Box | None]], held: np.ndarray | None, piece: np.ndarray | None) -> None:
        """Collective. Brings the elements from where they were read to where they are written."""
        sides: list[Any] = []
        for of_side in boxes:
            has = [(process, box) for process, box in enumerate(of_side) if box is not None]
            sides.append(_core.FloorPlan([_core.Region(*box) for _, box in has], [process for process, _ in has]))
        arrays = [[] if array is None else [array.view(self._raw)] for array in (held, piece)]
        made = _core.BlockPlan.copy_between(*sides, rank=self._team.rank)
        made.bind(*arrays, comm=self._team.comm, preallocate=False)()

    def _write(
        self,
        pool: WorkerThreads,
        window: ChunkWindow,
        piece: np.ndarray,
        came: _Came,
        told: list[tuple[Index, int]],
        put: Put,
    ) -> None:
        """Encodes the chunks of a piece, and gives them to whoever writes; their digests go to `told`, those of chunks
        that were there too."""
        grid, writer, rank = self._grid, self._writer, self._team.rank
        assert writer is not None

        def write(index: Index) -> None:
            own = piece[window.within(index, grid, rank)]
            with self._phase("copying"):
                digest = self._digest(own, grid.start(index))
            with self._lock:
                told.append((index, digest))
            if self._done is not None and self._done[index]:
                return
            leave_out = self._leaves_out and index not in came
            if not leave_out:
                if own.shape != grid.chunks:
                    whole = np.full(grid.chunks, self._padding, self._copied)
                    whole[tuple(map(slice, own.shape))] = own
                    own = whole
                with self._phase("encoding"):
                    chunk = np.ascontiguousarray(own).view(self._dtype)
                    stored = writer.encode(index, chunk, at_once=self._collector is None)
                put(index, stored)
            with self._lock:
                self._counts.chunks += not leave_out
                self._counts.digest = self._counts.digest + digest & _WRAP

        do_all(pool, write, window.indices(grid, rank), 2 * self._plan.threads)

    def _put(self, index: Index, stored: Any) -> None:
        """Writes a chunk."""
        assert self._writer is not None
        with self._phase("writing"):
            written = self._writer.write(index, stored)
        with self._lock:
            self._counts.written_bytes += written

    def _digest(self, elements: np.ndarray, start: Sequence[int]) -> int:
        return box_digest(elements, start, self._grid.shape, self._source.skipped)

    def _count_read(self, size: int) -> None:
        with self._lock:
            self._counts.read_bytes += size


class _Came:
    """Of the chunks that have something of a box of elements, those for which the source has any; the others may stay
    missing."""

    def __init__(self, grid: Grid, low: Sequence[int], high: Sequence[int]) -> None:
        self._grid, ranges = grid, grid.over(low, high)
        self._first = tuple(r.start for r in ranges)
        self._flags = np.zeros([len(r) for r in ranges], np.bool_)

    def note(self, low: Sequence[int], high: Sequence[int]) -> None:
        """There is something of a box of elements. May be called from several threads at once."""
        ranges = self._grid.over(low, high)
        self._flags[tuple(slice(r.start - f, r.stop - f) for r, f in zip(ranges, self._first))] = True

    def join(self, team: Team) -> None:
        """Collective. What any process has noted, all have."""
        self._flags = np.logical_or.reduce(team.comm.allgather(self._flags))

    def __contains__(self, index: Index) -> bool:
        return bool(self._flags[tuple(i - f for i, f in zip(index, self._first))])


def _within(box: Box, low: Sequence[int], high: Sequence[int]) -> Box | None:
    """What two boxes have in common; None where that is nothing."""
    start = tuple(map(max, box[0], low))
    end = tuple(map(min, box[1], high))
    return (start, end) if all(a < b for a, b in zip(start, end)) else None
