"""Windows: the boxes of the index space through which an out-of-core move goes, chosen so that the move is soon done.

Large windows have long runs in the files and few parts to open; but their memory is cleared by the system when it is
first used, and lies beyond the processor's caches. What that costs was measured, and the cheapest window is taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .._core import Layout

# Nanoseconds, on one core; only what they are to each other matters.
_RUN_NS = 2_000  # to read or write a run of bytes, however long
_FRESH_BYTE_NS = 0.7  # a byte of memory that was not used before
_FAR_BYTE_NS = 0.1  # a byte that passes through memory rather than a cache
_CACHE_BYTES = 16 << 20  # that may be expected
_WINDOW_NS = 200_000
_PART_NS = 20_000  # a shard's part of a window
_MOTION_NS = 10_000  # between two parts, where a window looks different from the one before


@dataclass(frozen=True)
class Side:
    """What one store asks of a window: its dimensions (as source
    dimensions) from the fastest, and how they are dealt."""

    layout: Layout
    axes: tuple[int, ...]  # the source's dimension that each of its own is
    fastest_first: tuple[int, ...]
    coordinates: tuple[int, ...]  # per source dimension
    block: tuple[int, ...]  # per source dimension; the extent where one coordinate owns everything
    general: tuple[int, ...]  # dimensions whose blocks differ in size

    @classmethod
    def of(cls, layout: Layout, axes: Sequence[int] | None = None) -> Side:
        """The side of a layout; `axes` maps its dimensions to the source's."""
        n = layout.ndim
        axes = tuple(range(n) if axes is None else axes)
        fastest = range(n) if layout.order == "F" else reversed(range(n))
        coordinates, block, general = [1] * n, [1] * n, []
        for d, dim in zip(axes, layout.distributions):
            coordinates[d] = dim.coordinates
            block[d] = max(dim.block or dim.largest_count if dim.coordinates > 1 else dim.extent, 1)
            if dim.kind == "GEN_BLOCK":
                general.append(d)
        return cls(layout, axes, tuple(axes[d] for d in fastest), tuple(coordinates), tuple(block), tuple(general))

    def seams(self, d: int, extent: int) -> int:
        """At most how often the owner changes along `extent` indices of a dimension."""
        if self.coordinates[d] == 1:
            return 0
        return self.coordinates[d] if d in self.general else -(-extent // self.block[d])

    def run(self, shape: Sequence[int], window: Sequence[int]) -> int:
        """Elements that lie contiguously in a shard's part of the window, estimated."""
        run = 1
        for d in self.fastest_first:
            whole = window[d] >= shape[d]
            run *= max(min(window[d], self.block[d]), -(-window[d] // self.coordinates[d]))
            if not whole:
                break
        return run

    def alike(self, d: int, step: int) -> bool:
        """Whether a window's layout is that of the one before it along a dimension, whose extent is twice `step` at
        least."""
        own = self.axes.index(d)

        def look(first: int) -> Layout:
            lower, upper = [0] * self.layout.ndim, list(self.layout.shape)
            lower[own], upper[own] = first, first + step
            return self.layout.window(lower, upper)

        return look(0) == look(step)


def choose_window(
    shape: Sequence[int], itemsize: int, source: Side, destination: Side, budget_bytes: int
) -> tuple[int, ...]:
    """The extents of the window with which a move is soonest done, of those that `budget_bytes` has room for.

    The budget bounds the window's own bytes (one copy). Looked at are windows that grow from one element, always on the
    side whose runs are shorter.
    """
    if 0 in shape:
        return tuple(shape)
    return min(
        _growing(shape, itemsize, source, destination, budget_bytes),
        key=lambda window: _nanoseconds(shape, itemsize, source, destination, window),
    )


def _growing(
    shape: Sequence[int], itemsize: int, source: Side, destination: Side, budget_bytes: int
) -> Iterator[tuple[int, ...]]:
    budget = max(1, budget_bytes // itemsize)
    window = [1] * len(shape)
    while True:
        # Windows of nearly equal size: as many as there must be, none a sliver.
        yield tuple(-(-extent // -(-extent // step)) for extent, step in zip(shape, window))
        volume = math.prod(window)
        for side in sorted((source, destination), key=lambda side: side.run(shape, window)):
            d = next((d for d in side.fastest_first if window[d] < shape[d]), None)
            if d is None:
                return
            others = volume // window[d]
            wider = min(2 * window[d], shape[d], budget // others)
            if wider > window[d]:
                window[d] = wider
                break
        else:
            return


def _nanoseconds(shape: Sequence[int], itemsize: int, source: Side, destination: Side, window: Sequence[int]) -> float:
    """What a move in such windows takes beyond the copying itself, which is the same for all of them."""
    sides = (source, destination)
    total, windows = math.prod(shape), count_windows(shape, window)
    runs = sum(side.layout.replicas * total / side.run(shape, window) for side in sides)
    fresh = sum(side.layout.replicas for side in sides) * math.prod(window) * itemsize
    parts = sum(side.layout.rank_count for side in sides)
    return (
        runs * _RUN_NS
        + fresh * _FRESH_BYTE_NS
        + (total * itemsize * _FAR_BYTE_NS if fresh > _CACHE_BYTES else 0)
        + windows * (_WINDOW_NS + parts * _PART_NS)
        + _changes(shape, source, destination, window) * count_motions(window, source, destination) * _MOTION_NS
    )


def _changes(shape: Sequence[int], source: Side, destination: Side, window: Sequence[int]) -> int:
    """How many windows look different from the one before, the last ones along a dimension aside."""
    changes = 1
    windows = 1
    for d in reversed(destination.fastest_first):
        windows *= -(-shape[d] // window[d])
        several = 2 * window[d] <= shape[d]
        if several and not (source.alike(d, window[d]) and destination.alike(d, window[d])):
            changes = windows
    return changes


def count_motions(window: Sequence[int], source: Side, destination: Side) -> int:
    """At most how many motions a window has: in each dimension a new pair of owners begins at a seam of either side."""
    motions = source.layout.replicas * destination.layout.replicas
    for d, extent in enumerate(window):
        pairs = source.coordinates[d] * destination.coordinates[d]
        motions *= min(extent, pairs, source.seams(d, extent) + destination.seams(d, extent) + 1)
    return motions


def count_windows(shape: Sequence[int], window: Sequence[int]) -> int:
    """How many windows there are."""
    pieces = 1
    for extent, step in zip(shape, window):
        pieces *= -(-extent // step) if extent else 0
    return pieces


def each_window(
    shape: Sequence[int], window: Sequence[int], slowest_first: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(lo, hi) of every window, in an order that goes through the destination's files forwards."""
    if 0 in shape:
        return
    for corner in itertools.product(*[range(0, shape[d], window[d]) for d in slowest_first]):
        lo = [0] * len(shape)
        for d, start in zip(slowest_first, corner):
            lo[d] = start
        yield tuple(lo), tuple(min(a + step, extent) for a, step, extent in zip(lo, window, shape))
