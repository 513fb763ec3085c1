"""Windows of an array's chunks, through which it is loaded to ranks and saved from them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .._arrays import whole_layout
from .._core import Layout
from ..errors import MemoryLimitError
from .array import Grid, Index

_SHARES = 4  # a piece, the ranks' parts of a window, and as much again for what the engine and the codecs hold
_PIECE_BYTES = 64 << 20  # larger ones win nothing


@dataclass(frozen=True)
class ChunkWindow:
    """A box of whole chunks, and how it is cut along one dimension into a piece for each process."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    dimension: int
    step: int
    processes: int

    @property
    def layout(self) -> Layout:
        """Of the pieces."""
        extents = tuple(b - a for a, b in zip(self.lower, self.upper))
        if self.processes == 1:
            return whole_layout(extents)
        words = (f"BLOCK({self.step})" if d == self.dimension else "*" for d in range(len(extents)))
        return Layout(f"({', '.join(words)}) on {self.processes}", extents)

    def box(self, process: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The piece of a process."""
        lower, upper = list(self.lower), list(self.upper)
        if self.processes == 1:
            return (self.lower, self.upper) if process == 0 else (self.lower, self.lower)
        d = self.dimension
        lower[d] = min(self.lower[d] + process * self.step, self.upper[d])
        upper[d] = min(lower[d] + self.step, self.upper[d])
        return tuple(lower), tuple(upper)

    def extents_of(self, process: int) -> tuple[int, ...]:
        lower, upper = self.box(process)
        return tuple(b - a for a, b in zip(lower, upper))

    def indices(self, grid: Grid, process: int) -> Iterator[Index]:
        """The chunks of a process's piece."""
        lower, upper = self.box(process)
        if process < self.processes and all(a < b for a, b in zip(lower, upper)):
            yield from itertools.product(*grid.over(lower, upper))

    def within(self, index: Index, grid: Grid, process: int) -> tuple[slice, ...]:
        """Where a chunk lies in a process's piece."""
        lower, _ = self.box(process)
        return tuple(slice(s - a, s - a + n) for s, a, n in zip(grid.start(index), lower, grid.extents(index)))


def window_over(grid: Grid, lower: Sequence[int], upper: Sequence[int], dimension: int, processes: int) -> ChunkWindow:
    """The chunks that have something of a box, dealt to so many processes along one dimension."""
    ranges = grid.over(lower, upper)
    if not ranges:
        return ChunkWindow((), (), 0, 1, 1)
    step = -(-len(ranges[dimension]) // processes) * grid.chunks[dimension]
    first = tuple(r.start * chunk for r, chunk in zip(ranges, grid.chunks))
    last = tuple(min(r.stop * chunk, extent) for r, chunk, extent in zip(ranges, grid.chunks, grid.shape))
    return ChunkWindow(first, last, dimension, step, processes)


class Cut:
    """How an array is cut into windows: whole chunks, long in the last dimensions, a piece for each process."""

    def __init__(self, grid: Grid, itemsize: int, writers: int, limit: int | None, beside: int = 0) -> None:
        """`limit`: bytes that a process may take, of which so many are taken by what reads."""
        self.writers = writers
        self._grid = grid
        chunk_bytes = max(1, math.prod(grid.chunks)) * itemsize
        room = _PIECE_BYTES if limit is None else (limit - beside) // _SHARES
        if limit is not None and chunk_bytes > room:
            least = beside + _SHARES * chunk_bytes
            raise MemoryLimitError(
                f"one chunk has {chunk_bytes} bytes, and to move it takes {least}; max_mem allows {limit}: allow at "
                f"least {least}"
            )
        wanted = max(1, room // chunk_bytes) * writers
        self._counts = [1] * len(grid.shape)
        for d, count in reversed(list(enumerate(grid.counts))):
            self._counts[d] = max(1, min(count, wanted))
            wanted //= self._counts[d]

    def __str__(self) -> str:
        return f"{self._counts} of {self._grid}, {self.writers}"

    def windows(self) -> Iterator[ChunkWindow]:
        grid, counts = self._grid, self._counts
        if 0 in grid.shape:
            return
        for first in itertools.product(*(range(0, n, c) for n, c in zip(grid.counts, counts))):
            last = [min(n, f + c) for n, f, c in zip(grid.counts, first, counts)]
            lower = tuple(f * c for f, c in zip(first, grid.chunks))
            upper = tuple(min(extent, n * c) for extent, n, c in zip(grid.shape, last, grid.chunks))
            held = [b - a for a, b in zip(first, last)]
            yield window_over(grid, lower, upper, max(range(len(held)), key=held.__getitem__, default=0), self.writers)
