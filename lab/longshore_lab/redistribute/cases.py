"""The redistributions that are timed, and a plain owner formula that knows nothing of the library.

Everything here is written out with NumPy index lists: it is the independent witness against which every contender's
result is checked, and it gives the peers' contenders the strided pieces from which they build their messages.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..protocol import choose

# Arrays of every kind (local, shared, shared by NumPy, all in one process), messages, and what peers allocate inside.
_MEMORY_PER_PAYLOAD = 15

CASE_TITLES = {
    "rows-to-columns": "row block to column block",
    "block-cyclic": "block-cyclic 32 on 1xP to block-cyclic 100 on Px1",
    "cyclic-to-block": "cyclic to block, fastest dimension",
    "cyclic-rows-to-block": "cyclic to block, rows",
    "transpose": "block transpose",
    "irregular-blocks": "blocks of 3 to blocks of 5, fastest dimension",
}


class Spread(NamedTuple):
    """One dimension dealt out in blocks of `block` indices to `procs` grid coordinates in turn."""

    extent: int
    procs: int
    block: int

    def indices(self, coordinate):
        """The global indices of one grid coordinate, in the order in which they lie in memory."""
        every = np.arange(self.extent, dtype=np.int64)
        return every[(every // self.block) % self.procs == coordinate]


class Side(NamedTuple):
    """A layout of the bench: its text for Longshore, and one `Spread` a dimension on a row-major grid."""

    text: str
    spreads: tuple

    def indices(self, rank):
        coordinates = np.unravel_index(rank, tuple(spread.procs for spread in self.spreads))
        return tuple(spread.indices(c) for spread, c in zip(self.spreads, coordinates))

    def local_shape(self, rank):
        return tuple(len(i) for i in self.indices(rank))


class Fold(NamedTuple):
    """`count` runs of `length` indices each of one dimension; (first index, step) on both sides."""

    count: int
    length: int
    source: tuple
    destination: tuple


@dataclass(frozen=True)
class Case:
    """One redistribution of an n × n array of doubles on so many ranks."""

    key: str
    n: int
    ranks: int = 2

    def __post_init__(self):
        choose("case", [self.key], list(CASE_TITLES))

    name = property(lambda self: f"{self.key} {self.n}")
    brief = property(lambda self: self.n < 1024)
    shape = property(lambda self: (self.n, self.n))
    transposed = property(lambda self: self.key == "transpose")
    axes = property(lambda self: (1, 0) if self.transposed else (0, 1))
    source = property(lambda self: self.sides[0])
    destination = property(lambda self: self.sides[1])
    needed_bytes = property(lambda self: _MEMORY_PER_PAYLOAD * 8 * self.n * self.n)

    @cached_property
    def most_bytes(self):
        """Of the source of any rank."""
        return 8 * max(math.prod(self.source.local_shape(rank)) for rank in range(self.ranks))

    @cached_property
    def sides(self):
        n, p = self.n, self.ranks
        whole, block, cyclic = Spread(n, 1, n), Spread(n, p, max(1, -(-n // p))), Spread(n, p, 1)
        rows, columns = Side(f"(BLOCK, *) on {p}", (block, whole)), Side(f"(*, BLOCK) on {p}", (whole, block))
        return {
            "rows-to-columns": (rows, columns),
            "block-cyclic": (
                Side(f"(CYCLIC(32), CYCLIC(32)) on 1x{p}", (Spread(n, 1, 32), Spread(n, p, 32))),
                Side(f"(CYCLIC(100), CYCLIC(100)) on {p}x1", (Spread(n, p, 100), Spread(n, 1, 100))),
            ),
            "cyclic-to-block": (Side(f"(*, CYCLIC) on {p}", (whole, cyclic)), columns),
            "cyclic-rows-to-block": (Side(f"(CYCLIC, *) on {p}", (cyclic, whole)), rows),
            "transpose": (rows, rows),
            "irregular-blocks": (
                Side(f"(*, CYCLIC(3)) on {p}", (whole, Spread(n, p, 3))),
                Side(f"(*, CYCLIC(5)) on {p}", (whole, Spread(n, p, 5))),
            ),
        }[self.key]

    def facts(self):
        texts = {"from": self.source.text, "to": self.destination.text}
        payload = {"payload_bytes": 8 * self.n * self.n, "dtype": "float64"}
        return {"case": self.key, "n": self.n, "shape": list(self.shape), **texts, "axes": list(self.axes), **payload}

    def folds(self, source_rank, destination_rank):
        """What goes from one rank to another, one list of folds a dimension of the source."""
        source, destination = self.source.indices(source_rank), self.destination.indices(destination_rank)
        return tuple(_fold(source[d], destination[self.axes.index(d)]) for d in range(len(self.axes)))

    def source_values(self, rank, rows=slice(None)):
        """What the source array of a rank holds: global element (i, j) is i·n + j, exact in a double."""
        i, j = self.source.indices(rank)
        return np.add.outer(i[rows] * float(self.n), j.astype(np.float64))

    def destination_values(self, rank, rows=slice(None)):
        """What the destination array of a rank must hold afterwards, by the owner formula."""
        a, b = self.destination.indices(rank)
        of_row, of_column = (1.0, float(self.n)) if self.transposed else (float(self.n), 1.0)
        return np.add.outer(a[rows] * of_row, b * of_column)


def _fold(source, destination):
    _, at_source, at_destination = np.intersect1d(source, destination, assume_unique=True, return_indices=True)
    if len(at_source) == 0:
        return []
    together = (np.diff(at_source) == 1) & (np.diff(at_destination) == 1)
    starts = np.concatenate(([0], np.flatnonzero(~together) + 1))
    lengths = np.diff(np.concatenate((starts, [len(at_source)])))
    runs = [(int(at_source[s]), int(at_destination[s]), int(k)) for s, k in zip(starts, lengths)]
    folds, k = [], 0
    while k < len(runs):
        s, d, length = runs[k]
        count, s_step, d_step = 1, length, length
        if k + 1 < len(runs) and runs[k + 1][2] == length:
            s_step, d_step = runs[k + 1][0] - s, runs[k + 1][1] - d
            while k + count < len(runs) and runs[k + count] == (s + count * s_step, d + count * d_step, length):
                count += 1
        folds.append(Fold(count, length, (s, s_step), (d, d_step)))
        k += count
    return folds


def strided_pieces(case, source_rank, destination_rank, source, destination):
    """NumPy views of what goes from one rank to another, both in the source's order of dimensions.

    Yields (source view, destination view, shape); a side whose array is None (it lies on another rank) gives None.
    """

    def view(array, dims, places, shape):
        if array is None:
            return None
        start, strides = [0] * array.ndim, []
        for dim, (at, step) in zip(dims, places):
            start[dim] = at
            strides += [step * array.strides[dim], array.strides[dim]]
        return np.lib.stride_tricks.as_strided(array[tuple(slice(s, None) for s in start)], shape, strides)

    turned = [case.axes.index(d) for d in range(len(case.axes))]
    for folds in itertools.product(*case.folds(source_rank, destination_rank)):
        shape = tuple(extent for f in folds for extent in (f.count, f.length))
        from_ = view(source, range(len(folds)), [f.source for f in folds], shape)
        yield from_, view(destination, turned, [f.destination for f in folds], shape), shape
