"""The messages that `longshore bench assembly` packs and unpacks, and a plain description of where their elements lie.

A pattern says in loops and lists, which know nothing of the library, which bytes of an array are a message: from that
come the indices against which every contender is checked, the loops that one writes by hand, NumPy's views and MPI's
datatypes. The relation is made beside it, from layouts or strides or index lists as a user makes it.

The first four are Dinda and O'Hallaron's representative redistributions (section 3.3), node 0 to node 0 of four. The
others are modelled after the applications of the DDTBench suite (Schneider, Gerstenberger, Hoefler).
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import longshore as ls
import numpy as np

from ..protocol import choose

DIRECTIONS = ("assembly", "disassembly")


class Nest(NamedTuple):
    """Blocks of contiguous bytes in loops of (count, stride in bytes), the outermost first."""

    block: int
    loops: tuple = ()
    start: int = 0

    @property
    def nbytes(self):
        return self.block * math.prod(count for count, _ in self.loops)

    def merged(self):
        """The same bytes in the same order in the fewest loops and the longest blocks."""
        block, kept = self.block, []
        for count, stride in reversed([loop for loop in self.loops if loop[0] > 1]):
            if not kept and stride == block:
                block *= count
            elif kept and stride == kept[0][0] * kept[0][1]:
                kept[0] = (kept[0][0] * count, kept[0][1])
            else:
                kept.insert(0, (count, stride))
        return Nest(block, tuple(kept), self.start)

    def offsets(self):
        """The byte offset of every block, in the order of the message."""
        at = np.array([self.start], dtype=np.int64)
        for count, stride in self.loops:
            at = np.add.outer(at, np.arange(count, dtype=np.int64) * stride).ravel()
        return at

    def relation(self, element):
        shape = [*(count for count, _ in self.loops), self.block // element]
        strides = [*(stride for _, stride in self.loops), element]
        return ls.AddressRelation.strided(shape, strides, strides, element, self.start, self.start)


class Places(NamedTuple):
    """Blocks of contiguous bytes at listed places, counted in blocks."""

    block: int
    places: np.ndarray
    start: int = 0

    @property
    def nbytes(self):
        return self.block * len(self.places)

    def merged(self):
        return self

    def offsets(self):
        return self.places.astype(np.int64) * self.block

    def relation(self, element):
        return ls.AddressRelation.from_indices(self.places, self.places, self.block)


class Side(NamedTuple):
    """An array and the pieces of it that are a message, one after the other."""

    array_bytes: int
    pieces: tuple

    @classmethod
    def of(cls, array_bytes, *pieces):
        return cls(array_bytes, tuple(piece.merged() for piece in pieces))

    @property
    def listed(self):
        return isinstance(self.pieces[0], Places)

    def starts(self):
        """Where each piece begins in the message, in bytes."""
        return list(itertools.accumulate((piece.nbytes for piece in self.pieces[:-1]), initial=0))

    def indices(self, element):
        """The index of every element of the message in the array, in elements of so many bytes."""
        within = (np.arange(piece.block // element, dtype=np.int64) for piece in self.pieces)
        return np.concatenate([np.add.outer(p.offsets() // element, w).ravel() for p, w in zip(self.pieces, within)])


@dataclass(frozen=True)
class Pattern:
    """One kind of message at one size."""

    key: str
    n: int
    element: int  # bytes of what the application calls an element
    source: Side
    destination: Side
    relation: Callable  # makes the longshore.AddressRelation

    name = property(lambda self: f"{self.key} {self.n}")
    payload_bytes = property(lambda self: sum(piece.nbytes for piece in self.source.pieces))
    array_bytes = property(lambda self: max(self.source.array_bytes, self.destination.array_bytes))

    def side(self, direction):
        return self.source if direction == "assembly" else self.destination


_LAYOUTS = {
    "R1": (("(BLOCK, *) on 4", "F"), ("(*, BLOCK) on 4", "F")),
    "R2": (("(BLOCK, *) on 4", "F"), ("(CYCLIC, *) on 4", "F")),
    "R3": (("(CYCLIC, *) on 4", "F"), ("(BLOCK, *) on 4", "F")),
    "R4": (("(*, CYCLIC) on 4", "F"), ("(CYCLIC, *) on 4", "C")),
}
REDISTRIBUTIONS = tuple(_LAYOUTS)


def layouts(key, n):
    """The two layouts of a redistribution of n × n doubles."""
    return [ls.Layout(text, (n, n), order=order) for text, order in _LAYOUTS[key]]


def redistribution(key, n, ranks=(0, 0)):
    """The paper's address relation between two nodes, in its order: source addresses first."""
    source, destination = layouts(key, n)
    return ls.AddressRelation.from_layouts(source, ranks[0], destination, ranks[1], np.float64).sorted("source")


def _redistributed(key, extent):
    if extent % 16:
        raise ValueError(f"{key} deals out n × n doubles in sixteenths: n is a multiple of 16, not {extent}")
    n, r, local = extent // 4, extent // 16, 2 * extent * extent
    # (i, j) run over these extents, i faster; source and destination strides in doubles.
    (i_count, j_count), *strides = {
        "R1": ((n, n), (1, n), (1, extent)),
        "R2": ((r, extent), (4, n), (1, n)),
        "R3": ((r, extent), (1, n), (4, n)),
        "R4": ((n, n), (4, extent), (extent, 4)),
    }[key]
    sides = (Side.of(local, Nest(8, ((j_count, 8 * j), (i_count, 8 * i)))) for i, j in strides)
    return Pattern(key, extent, 8, *sides, lambda: redistribution(key, extent))


def _alike(key, n, element, array_bytes, *pieces):
    side = Side.of(array_bytes, *pieces)
    concatenate = ls.AddressRelation.concatenate
    return Pattern(key, n, element, side, side, lambda: concatenate([piece.relation(element) for piece in pieces]))


def _wrf(key, n):
    """Four 3-D fields and a 2-D one of floats with three points of halo, (x, z, y), x fastest: 3 rows in x or in y."""
    halo, levels, row = 3, max(1, n // 4), 4 * (n + 6)
    each, pieces = row * levels * (n + 6), []
    for start, height in [(k * each, levels) for k in range(4)] + [(4 * each, 1)]:
        block, count = (4 * halo, n) if key == "wrf-x" else (4 * n, halo)
        loops = ((count, row * height), (height, row))
        pieces.append(Nest(block, loops, start + halo * row * height + 4 * halo))
    return _alike(key, n, 4, 4 * each + row * (n + 6), *pieces)


def _lu(key, n):
    """u(5, n + 4, n + 4, n) of doubles: x sends rows of 5n doubles of a plane, y 5 doubles of every row."""
    row, plane = 40 * (n + 4), 40 * (n + 4) * (n + 4)
    block, loops = (40 * n, ((n, plane),)) if key == "lu-x" else (40, ((n, plane), (n, row)))
    return _alike(key, n, 8, plane * n, Nest(block, loops, 2 * row + 80))


def _mg(key, n):
    """A face of (n + 2)³ doubles, x fastest."""
    row, plane = 8 * (n + 2), 8 * (n + 2) * (n + 2)
    faces = {"mg-x": (8, ((n, plane), (n, row))), "mg-y": (8 * n, ((n, plane),)), "mg-z": (8 * n, ((n, row),))}
    return _alike(key, n, 8, plane * (n + 2), Nest(*faces[key], plane + row + 8))


def _milc(key, n):
    """A face of n⁴ su3 vectors, three complex doubles each, x fastest."""
    x, y, z, t = (48 * n**k for k in range(4))
    strides = {"milc-x": (t, z, y), "milc-y": (t, z, x), "milc-z": (t, y, x)}[key]
    return _alike(key, n, 16, t * n, Nest(48, tuple((n, stride) for stride in strides)))


def _fft(key, n):
    """The columns of n × n complex doubles, one after the other."""
    return _alike(key, n, 16, 16 * n * n, Nest(16, ((n, 16), (n, 16 * n))))


def _random(n):
    return np.random.default_rng(20240229 + n)


def _listed(key, n, block, of, places):
    return _alike(key, n, block, block * of, Places(block, np.ascontiguousarray(places, np.int32)))


def _lammps(key, n):
    """The positions (x, y, z) of n of 10 n atoms, in ascending order."""
    return _listed(key, n, 24, 10 * n, np.sort(_random(n).choice(10 * n, n, replace=False)))


def _specfem(key, n):
    """n of 20 n points of a mesh, numbered element by element: ascending faces of 25, each in an order of its own."""
    random = _random(n)
    places = np.sort(random.choice(20 * n, n, replace=False))
    for at in range(0, n, 25):
        random.shuffle(places[at : at + 25])
    return _listed(key, n, 4 if key == "specfem-oc" else 12, 20 * n, places)


def _sorted_list(key, n):
    """Ascending indices with gaps of 1 to 4."""
    return _listed(key, n, 8, 4 * n + 1, np.cumsum(_random(n).integers(1, 5, n)))


def _random_list(key, n):
    """n different indices below 8 n in any order."""
    return _listed(key, n, 8, 8 * n, _random(n).permutation(8 * n)[:n])


@dataclass(frozen=True)
class Kind:
    """A kind of message: in words, its table, how it is made, its sizes, and from which size on nothing can be won in a
    direction.

    There every loop touches the same cache lines, one or two elements each, and waits for them.
    """

    title: str
    group: str
    make: Callable
    sizes: tuple
    quick: tuple
    bound: dict = field(default_factory=dict)

    def is_bound(self, direction, n):
        return n >= self.bound.get(direction, n + 1)


_R, _R_QUICK, _S, _L, _A = (128, 1024, 2048, 8192), (128, 1024), "stencils", "lists", "assembly"
_T = "lattices and transposes"
KINDS = {
    "R1": Kind("(BLOCK,*) to (*,BLOCK)", "redistributions", _redistributed, _R, _R_QUICK),
    "R2": Kind("(BLOCK,*) to (CYCLIC,*)", "redistributions", _redistributed, _R, _R_QUICK, {_A: 1024}),
    "R3": Kind("(CYCLIC,*) to (BLOCK,*)", "redistributions", _redistributed, _R, _R_QUICK),
    "R4": Kind("(*,CYCLIC) to (CYCLIC,*), transposed", "redistributions", _redistributed, _R, _R_QUICK, {_A: 1024}),
    "wrf-x": Kind("WRF, halo in x: 12-byte runs of five arrays", _S, _wrf, (40, 256), (40,)),
    "wrf-y": Kind("WRF, halo in y: rows of five arrays", _S, _wrf, (40, 256), (40,)),
    "lu-x": Kind("NAS LU, rows of 5n doubles", _S, _lu, (33, 102), ()),
    "lu-y": Kind("NAS LU, 40-byte blocks", _S, _lu, (33, 102), (33,)),
    "mg-x": Kind("NAS MG, face in x: single doubles", _S, _mg, (32, 256), (32,), {_A: 256}),
    "mg-y": Kind("NAS MG, face in y: rows", _S, _mg, (32, 256), ()),
    "mg-z": Kind("NAS MG, face in z: rows", _S, _mg, (32, 256), ()),
    "milc-x": Kind("MILC, face in x: 48-byte blocks", _T, _milc, (8, 32), (8,)),
    "milc-y": Kind("MILC, face in y: rows", _T, _milc, (8, 32), ()),
    "milc-z": Kind("MILC, face in z: planes", _T, _milc, (8, 32), ()),
    "fft": Kind("FFT, transpose of complex doubles", _T, _fft, (64, 256, 1024), (64, 256)),
    "lammps": Kind("LAMMPS, ascending list of 24-byte blocks", _L, _lammps, (1000, 200_000), (1000,)),
    "specfem-oc": Kind("SPECFEM3D oc, list of floats", _L, _specfem, (3000, 300_000), (3000,)),
    "specfem-cm": Kind("SPECFEM3D cm, list of 12-byte blocks", _L, _specfem, (3000, 300_000), (3000,)),
    "sorted-list": Kind(
        "ascending list of doubles, gaps of 1 to 4", _L, _sorted_list, (1000, 4000, 4_000_000), (1000,)
    ),
    "random-list": Kind(
        "random list of doubles", _L, _random_list, (4000, 4 << 20), (4000,), dict.fromkeys(DIRECTIONS, 1 << 20)
    ),
}


def make_pattern(key, n):
    """The pattern of that name at that size. Raises ValueError where there is none."""
    choose("case", [key], list(KINDS))
    if n < 2:
        raise ValueError(f"{key} needs a size of at least 2, not {n}")
    return KINDS[key].make(key, n)
