"""Windows: the boxes of the index space through which an out-of-core move goes, chosen for long runs in both stores."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

_ENOUGH_BYTES = 8 << 20  # larger windows leave the processor's caches: half as fast at 32 MiB
_LONG_RUN_BYTES = 256 << 10


@dataclass(frozen=True)
class Side:
    """What one store asks of a window: its dimensions (as source
    dimensions) from the fastest, and how they are dealt."""

    fastest_first: tuple
    coordinates: tuple  # per source dimension
    block: tuple  # per source dimension; the extent where one coordinate owns everything
    replicas: int = 1
    general: tuple = ()  # dimensions whose blocks differ in size

    def seams(self, d, extent):
        """At most how often the owner changes along `extent` indices of a dimension."""
        if self.coordinates[d] == 1:
            return 0
        return self.coordinates[d] if d in self.general else -(-extent // self.block[d])

    @classmethod
    def of(cls, dense, axes=None):
        """The side of a `DenseLayout`; `axes` maps its dimensions to the source's."""
        n = len(dense.shape)
        axes = list(range(n)) if axes is None else list(axes)
        fastest = range(n) if dense.order == "F" else reversed(range(n))
        coordinates, block = [1] * n, [1] * n
        for d, dim in enumerate(dense.dimensions):
            coordinates[axes[d]] = dim.coordinates
            size = max(dim.sizes, default=0) if dim.kind == "GEN_BLOCK" else dim.block
            block[axes[d]] = max(size if dim.coordinates > 1 else dim.extent, 1)
        general = tuple(axes[d] for d, dim in enumerate(dense.dimensions) if dim.kind == "GEN_BLOCK")
        return cls(tuple(axes[d] for d in fastest), tuple(coordinates), tuple(block), dense.replicas, general)

    def run(self, shape, window):
        """Elements that lie contiguously in a shard's part of the window, estimated."""
        run = 1
        for d in self.fastest_first:
            whole = window[d] >= shape[d]
            run *= max(min(window[d], self.block[d]), -(-window[d] // self.coordinates[d]))
            if not whole:
                break
        return run


def choose_window(shape, itemsize, source, destination, budget_bytes, enough_bytes=_ENOUGH_BYTES):
    """The extents of the window: grown from one element on the side whose runs are shorter, within the budget.

    `budget_bytes` bounds the window's own bytes (one copy). Stops early when the window is large and its runs are long.
    """
    n = len(shape)
    budget = max(1, budget_bytes // itemsize)
    window = [min(1, extent) for extent in shape]
    if 0 in shape:
        return tuple(shape)
    volume = 1
    while True:
        runs = [(side.run(shape, window) * itemsize, side) for side in (source, destination)]
        if volume * itemsize >= enough_bytes and min(run for run, _ in runs) >= _LONG_RUN_BYTES:
            break
        for _, side in sorted(runs, key=lambda pair: pair[0]):
            d = next((d for d in side.fastest_first if window[d] < shape[d]), None)
            if d is None:
                continue
            others = volume // window[d]
            wider = min(2 * window[d], shape[d], budget // others)
            if wider > window[d]:
                window[d] = wider
                volume = others * wider
                break
        else:
            break
    # Windows of nearly equal size: as many as before, none a sliver.
    for d in range(n):
        pieces = -(-shape[d] // window[d])
        window[d] = -(-shape[d] // pieces)
    return tuple(window)


def count_motions(window, source, destination):
    """At most how many motions a window has: in each dimension a new pair of owners begins at a seam of either side."""
    motions = source.replicas * destination.replicas
    for d, extent in enumerate(window):
        pairs = source.coordinates[d] * destination.coordinates[d]
        motions *= min(extent, pairs, source.seams(d, extent) + destination.seams(d, extent) + 1)
    return motions


def count_windows(shape, window):
    pieces = 1
    for extent, step in zip(shape, window):
        pieces *= -(-extent // step) if extent else 0
    return pieces


def each_window(shape, window, slowest_first):
    """(lo, hi) of every window, in an order that goes through the destination's files forwards."""
    if 0 in shape:
        return
    for corner in itertools.product(*[range(0, shape[d], window[d]) for d in slowest_first]):
        lo = [0] * len(shape)
        for d, start in zip(slowest_first, corner):
            lo[d] = start
        yield tuple(lo), tuple(min(a + step, extent) for a, step, extent in zip(lo, window, shape))
