"""The plain twin of the core's index arithmetic: a layout's text read again, and who owns what said with NumPy alone.

Nothing here calls the core: the tests compare the engines, the layouts and what is made of them with it, so a mistake
in the core's closed forms cannot hide in a check that uses the same forms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

_TOKEN = re.compile(r"\s*((?i:x(?=\s*\d|\s*replicated))|[A-Za-z_]+|\d+|\S)")


@dataclass(frozen=True)
class DenseDimension:
    """How one array dimension is dealt: cell t = index + origin
    of the template, in blocks, to the coordinates in turn."""

    kind: str  # "*", "BLOCK", "CYCLIC" or "GEN_BLOCK"
    extent: int
    coordinates: int = 1
    block: int = 0
    source: int = 0
    origin: int = 0
    sizes: tuple = ()

    def boundaries(self, limit):
        """The starts of the first `limit` runs of indices that
        one coordinate owns, and whether that was all of them."""
        if self.extent == 0:
            return [], True
        if self.kind == "*" or self.coordinates == 1:
            return [0], True
        starts = []
        if self.kind == "GEN_BLOCK":
            position = 0
            for size in self.sizes:
                if size:
                    if len(starts) == limit:
                        return starts, False
                    starts.append(position)
                position += size
            return starts, True
        position = 0
        while position < self.extent:
            if len(starts) == limit:
                return starts, False
            starts.append(position)
            position = ((position + self.origin) // self.block + 1) * self.block - self.origin
        return starts, True

    def owner(self, index):
        """The coordinate that owns an index (an integer or an integer array)."""
        if self.kind == "*":
            return index * 0
        if self.kind == "GEN_BLOCK":
            return np.searchsorted(np.cumsum(np.array(self.sizes, dtype=np.int64)), index, side="right")
        return ((index + self.origin) // self.block + self.source) % self.coordinates

    def owned(self, coordinate, lo, hi):
        """The indices in [lo, hi) that a coordinate owns, ascending:
        a slice where they are evenly spaced, else an array."""
        if self.kind == "*" or self.coordinates == 1:
            return slice(lo, hi)
        if self.kind == "GEN_BLOCK":
            first = sum(self.sizes[:coordinate])
            return slice(min(max(lo, first), hi), max(lo, min(hi, first + self.sizes[coordinate])))
        dealt = (coordinate - self.source) % self.coordinates  # the first block of this coordinate
        if self.kind == "BLOCK":
            first = dealt * self.block - self.origin
            start = min(max(lo, first), hi)
            return slice(start, max(start, min(hi, first + self.block)))
        if self.block == 1:
            start = lo + (dealt - lo - self.origin) % self.coordinates
            return slice(min(start, hi), hi, self.coordinates)
        indices = np.arange(lo, hi, dtype=np.int64)
        return indices[self.owner(indices) == coordinate]

    def count_below(self, coordinate, index):
        """How many indices below `index` a coordinate owns."""
        if self.kind == "*" or self.coordinates == 1:
            return index
        if self.kind == "GEN_BLOCK":
            first = sum(self.sizes[:coordinate])
            return min(max(index - first, 0), self.sizes[coordinate])

        def below(cell):  # template cells below `cell` that the coordinate owns
            dealt = (coordinate - self.source) % self.coordinates
            block, inside = divmod(cell, self.block)
            cycles, place = divmod(block, self.coordinates)
            return (cycles + (place > dealt)) * self.block + (inside if place == dealt else 0)

        return below(index + self.origin) - below(self.origin)


@dataclass(frozen=True)
class DenseLayout:
    """A layout as its canonical text says it. Reads what
    `str(Layout)` prints; the core has refused everything wrong."""

    shape: tuple
    dimensions: tuple
    extents: tuple  # of the process grid
    replicated: tuple
    order: str = "C"
    rank_order: str = "C"
    ranks: tuple = ()  # of processes; none: 0, 1, ...
    ld: int = 0
    replicas: int = field(default=1)
    processes: int = field(default=1)

    @classmethod
    def parse(cls, text, shape):
        tokens, place = [], 0
        while match := _TOKEN.match(text, place):
            tokens.append(match.group(1))
            place = match.end()
        tokens.append("")
        at = 0

        def take(*wanted):
            nonlocal at
            token = tokens[at]
            if wanted and token.upper() not in wanted:
                raise ValueError(f"{text!r}: {token!r} where one of {wanted} belongs")
            at += 1
            return token

        def integer():
            return int(take())

        def integers(between):
            values = [integer()]
            while tokens[at].upper() == between:
                take()
                values.append(integer())
            return values

        take("(")
        dists = []
        while True:
            kind = take().upper()
            numbers = []
            if tokens[at] == "(":
                take("(")
                numbers = integers(",")
                take(")")
            dists.append((kind, numbers))
            if take(",", ")") == ")":
                break
        take("ON")
        extents, replicated = [], []
        while True:
            if tokens[at].upper() == "REPLICATED":
                take()
                take("(")
                extents.append(integer())
                replicated.append(True)
                take(")")
            else:
                extents.append(integer())
                replicated.append(False)
            if tokens[at].upper() != "X":
                break
            take("X")
        options = {}
        while tokens[at]:
            take(",")
            key = take().lower()
            take("=")
            if key in ("order", "rank_order"):
                options[key] = take().upper()
            elif key == "ranks" and tokens[at] == "[":
                take("[")
                options["ranks"] = tuple(integers(","))
                take("]")
            elif key == "ranks":
                options["ranks"] = range(*integers(":"))
            elif key in ("source", "origin"):
                options[key] = integers("X")
            elif key == "ld":
                options["ld"] = integer()
            else:
                raise ValueError(f"{text!r}: unknown option {key!r}")
        source, origin = options.pop("source", None), options.pop("origin", None)
        free = [extent for extent, copies in zip(extents, replicated) if not copies]
        shape = tuple(int(n) for n in shape)
        dimensions, used = [], 0
        for d, (kind, numbers) in enumerate(dists):
            start = origin[d] if origin else 0
            if kind == "*":
                dimensions.append(DenseDimension("*", shape[d]))
                continue
            coordinates = free[used]
            first = source[used] if source else 0
            used += 1
            if kind == "GEN_BLOCK":
                dimensions.append(DenseDimension(kind, shape[d], coordinates, 0, first, start, tuple(numbers)))
                continue
            default = 1 if kind == "CYCLIC" else -(-(shape[d] + start) // coordinates)
            block = max(numbers[0] if numbers else default, 1)
            dimensions.append(DenseDimension(kind, shape[d], coordinates, block, first, start))
        replicas = processes = 1
        for extent, copies in zip(extents, replicated):
            processes *= extent
            replicas *= extent if copies else 1
        return cls(
            shape,
            tuple(dimensions),
            tuple(extents),
            tuple(replicated),
            replicas=replicas,
            processes=processes,
            **options,
        )

    @classmethod
    def of(cls, layout):
        return cls.parse(str(layout), layout.shape)

    def rank_of_process(self, process):
        return self.ranks[process] if self.ranks else process

    def coordinates(self, process):
        """The owner coordinate along every array dimension of a process (its number in the grid)."""
        grid = [0] * len(self.extents)
        order = range(len(self.extents)) if self.rank_order == "F" else reversed(range(len(self.extents)))
        for g in order:
            process, grid[g] = divmod(process, self.extents[g])
        free = iter([c for c, copies in zip(grid, self.replicated) if not copies])
        return tuple(0 if dim.kind == "*" else next(free) for dim in self.dimensions)

    def process_at(self, coordinates):
        """The process, in the first replica, with these owner coordinates (one per array dimension)."""
        free = iter([c for c, dim in zip(coordinates, self.dimensions) if dim.kind != "*"])
        grid = [0 if copies else next(free, 0) for copies in self.replicated]
        order = range(len(grid)) if self.rank_order == "C" else reversed(range(len(grid)))
        process = 0
        for g in order:
            process = process * self.extents[g] + grid[g]
        return process

    def owned(self, process, lo, hi):
        """Per dimension, the global indices of [lo, hi) that a process owns."""
        return [dim.owned(c, a, b) for dim, c, a, b in zip(self.dimensions, self.coordinates(process), lo, hi)]

    def local_start(self, process, lo):
        return tuple(dim.count_below(c, a) for dim, c, a in zip(self.dimensions, self.coordinates(process), lo))


def count(indices):
    """The number of indices that `DenseDimension.owned` gave."""
    if isinstance(indices, slice):
        return len(range(indices.start, indices.stop, indices.step or 1))
    return len(indices)


def selector(owned, lo):
    """What to index a window's array with to reach these global
    indices: plain slices where possible, else an open mesh."""
    moved = []
    for indices, low in zip(owned, lo):
        if isinstance(indices, slice):
            moved.append(slice(indices.start - low, indices.stop - low, indices.step))
        else:
            moved.append(indices - low)
    arrays = sum(not isinstance(indices, slice) for indices in moved)
    if arrays <= 1:  # NumPy keeps the dimension in its place when only one index is an array
        return tuple(moved)
    return np.ix_(*[np.arange(s.start, s.stop, s.step or 1) if isinstance(s, slice) else s for s in moved])
