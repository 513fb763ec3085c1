"""The rows of an array that lie in its file in one piece, and in a rank's local array as well."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .._core import Layout
from .array import ArrayReader

Point = tuple[int, ...]

LEAST_BYTES = 64 << 10
"""Of what a rank has of a file in one piece, on average: less is read with what lies beside it, by one process."""
MOST_BYTES = 4 << 20
"""Of what is read at once."""


def has_rows(layout: Layout, reader: ArrayReader) -> bool:
    """Whether all that a rank has of an array are long rows of its file. The same for every rank."""
    facts, shape = reader.facts, layout.shape
    if not reader.addressable or math.prod(shape) < 2 or facts.order != layout.order or layout.replicas > 1:
        return False
    if any(dim.coordinates > 1 for d, dim in enumerate(layout.distributions) if d != _slowest(layout)):
        return False
    assert facts.dtype is not None
    return _row_bytes(layout, facts.dtype.itemsize) * layout.distributions[_slowest(layout)].block >= LEAST_BYTES


def rows_of(layout: Layout, rank: int, itemsize: int) -> Iterator[tuple[Point, tuple[slice, ...]]]:
    """Where rows of a rank, some that follow each other, begin in the whole array, and which part of the local one they
    are."""
    owned, slowest, local = layout.owned(rank), _slowest(layout), 0
    most = max(1, MOST_BYTES // _row_bytes(layout, itemsize))
    for first, length, count, stride in owned[slowest]:
        for k in range(count):
            for done in range(0, length, most):
                there, here = [0] * len(owned), [slice(None)] * len(owned)
                there[slowest] = first + k * stride + done
                here[slowest] = slice(local + done, local + min(done + most, length))
                yield tuple(there), tuple(here)
            local += length


def _slowest(layout: Layout) -> int:
    return 0 if layout.order == "C" else len(layout.shape) - 1


def _row_bytes(layout: Layout, itemsize: int) -> int:
    return math.prod(layout.shape) // layout.shape[_slowest(layout)] * itemsize
