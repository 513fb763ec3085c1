"""The redistributions that are timed, and a plain owner formula that knows nothing of the library.

Everything here is written out with NumPy index lists: it is the independent witness against which every contender's
result is checked, and it gives the peers' contenders the strided pieces from which they build their messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

ITEM_BYTES = 8


@dataclass(frozen=True)
class Spread:
    """One dimension dealt out in blocks of `block` indices to `procs` grid coordinates in turn."""

    extent: int
    procs: int
    block: int

    def indices(self, coordinate: int) -> np.ndarray:
        """The global indices of one grid coordinate, in the order in which they lie in memory."""
        every = np.arange(self.extent, dtype=np.int64)
        return every[(every // self.block) % self.procs == coordinate]


@dataclass(frozen=True)
class Side:
    """A layout of the bench: its text for Longshore, and one `Spread` a dimension on a row-major grid."""

    text: str
    spreads: tuple[Spread, ...]

    def coordinates(self, rank: int) -> tuple[int, ...]:
        found: list[int] = []
        for spread in reversed(self.spreads):
            found.append(rank % spread.procs)
            rank //= spread.procs
        return tuple(reversed(found))

    def indices(self, rank: int) -> tuple[np.ndarray, ...]:
        return tuple(s.indices(c) for s, c in zip(self.spreads, self.coordinates(rank)))

    def local_shape(self, rank: int) -> tuple[int, ...]:
        return tuple(len(i) for i in self.indices(rank))


class Fold(NamedTuple):
    """`count` runs of `length` indices each, at equal steps on both sides (all in indices of one dimension)."""

    count: int
    length: int
    source: int
    source_step: int
    destination: int
    destination_step: int


@dataclass(frozen=True)
class Case:
    """One redistribution of an n × n array of doubles."""

    key: str
    title: str
    n: int
    source: Side
    destination: Side
    axes: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.key} {self.n}"

    @property
    def shape(self) -> tuple[int, int]:
        return (self.n, self.n)

    @property
    def transposed(self) -> bool:
        return self.axes != tuple(range(len(self.axes)))

    @property
    def payload_bytes(self) -> int:
        return self.n * self.n * ITEM_BYTES

    def folds(self, source_rank: int, destination_rank: int) -> tuple[list[Fold], ...]:
        """What goes from one rank to another, one list of folds a dimension of the source."""
        source = self.source.indices(source_rank)
        destination = self.destination.indices(destination_rank)
        return tuple(_fold(source[d], destination[self.axes.index(d)]) for d in range(len(self.axes)))

    def source_values(self, rank: int, rows: slice = slice(None)) -> np.ndarray:
        """What the source array of a rank holds: global element (i, j) is i·n + j, exact in a double."""
        i, j = self.source.indices(rank)
        return np.add.outer(i[rows] * float(self.n), j.astype(np.float64))

    def destination_values(self, rank: int, rows: slice = slice(None)) -> np.ndarray:
        """What the destination array of a rank must hold afterwards, by the owner formula."""
        a, b = self.destination.indices(rank)
        of_row, of_column = (1.0, float(self.n)) if self.transposed else (float(self.n), 1.0)
        return np.add.outer(a[rows] * of_row, b * of_column)


def _fold(source: np.ndarray, destination: np.ndarray) -> list[Fold]:
    _, at_source, at_destination = np.intersect1d(source, destination, assume_unique=True, return_indices=True)
    if len(at_source) == 0:
        return []
    together = (np.diff(at_source) == 1) & (np.diff(at_destination) == 1)
    starts = np.concatenate(([0], np.flatnonzero(~together) + 1))
    lengths = np.diff(np.concatenate((starts, [len(at_source)])))
    runs = [(int(at_source[s]), int(at_destination[s]), int(k)) for s, k in zip(starts, lengths)]
    folds: list[Fold] = []
    k = 0
    while k < len(runs):
        s, d, length = runs[k]
        count, s_step, d_step = 1, length, length
        if k + 1 < len(runs) and runs[k + 1][2] == length:
            s_step, d_step = runs[k + 1][0] - s, runs[k + 1][1] - d
            while k + count < len(runs) and runs[k + count] == (s + count * s_step, d + count * d_step, length):
                count += 1
        folds.append(Fold(count, length, s, s_step, d, d_step))
        k += count
    return folds


def _block(extent: int, procs: int) -> Spread:
    return Spread(extent, procs, max(1, -(-extent // procs)))


def _whole(extent: int) -> Spread:
    return Spread(extent, 1, max(1, extent))


CASE_TITLES = {
    "rows-to-columns": "row block to column block",
    "block-cyclic": "block-cyclic 32 on 1xP to block-cyclic 100 on Px1",
    "cyclic-to-block": "cyclic to block, fastest dimension",
    "cyclic-rows-to-block": "cyclic to block, rows",
    "transpose": "block transpose",
}


def make_case(key: str, n: int, ranks: int = 2) -> Case:
    """The case of that name for an n × n array on so many ranks."""
    p, axes = ranks, (0, 1)
    rows = Side(f"(BLOCK, *) on {p}", (_block(n, p), _whole(n)))
    columns = Side(f"(*, BLOCK) on {p}", (_whole(n), _block(n, p)))
    if key == "rows-to-columns":
        source, destination = rows, columns
    elif key == "block-cyclic":
        source = Side(f"(CYCLIC(32), CYCLIC(32)) on 1x{p}", (Spread(n, 1, 32), Spread(n, p, 32)))
        destination = Side(f"(CYCLIC(100), CYCLIC(100)) on {p}x1", (Spread(n, p, 100), Spread(n, 1, 100)))
    elif key == "cyclic-to-block":
        source, destination = Side(f"(*, CYCLIC) on {p}", (_whole(n), Spread(n, p, 1))), columns
    elif key == "cyclic-rows-to-block":
        source, destination = Side(f"(CYCLIC, *) on {p}", (Spread(n, p, 1), _whole(n))), rows
    elif key == "transpose":
        source, destination, axes = rows, rows, (1, 0)
    else:
        raise ValueError(f"no such case: {key!r} (there are {', '.join(CASE_TITLES)})")
    return Case(key, CASE_TITLES[key], n, source, destination, axes)
