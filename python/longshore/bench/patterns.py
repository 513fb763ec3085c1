"""The messages that `longshore bench assembly` packs and unpacks, and a plain description of where their elements lie.

A pattern says in loops and lists, which know nothing of the library, which bytes of an array are a message: from that come the
index lists against which every contender is checked, the loops that one writes by hand, NumPy's views and MPI's datatypes. The
relation that Longshore executes is made beside it, from layouts or strides or index lists as a user makes it.

The first four are Dinda and O'Hallaron's representative redistributions (section 3.3), node 0 to node 0 of four. The others are
modelled after the applications of the DDTBench suite (Schneider, Gerstenberger, Hoefler).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

DIRECTIONS = ("assembly", "disassembly")


@dataclass(frozen=True)
class Nest:
    """Blocks of contiguous bytes in loops of (count, stride in bytes), the outermost first."""

    block: int
    loops: tuple[tuple[int, int], ...] = ()
    start: int = 0

    @property
    def blocks(self) -> int:
        return int(np.prod([count for count, _ in self.loops], dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.block * self.blocks

    @property
    def end(self) -> int:
        return self.start + self.block + sum((count - 1) * stride for count, stride in self.loops)

    def merged(self) -> Nest:
        """The same bytes in the same order in the fewest loops and the longest blocks."""
        block, loops = self.block, [(count, stride) for count, stride in self.loops if count > 1]
        kept: list[tuple[int, int]] = []
        for count, stride in reversed(loops):
            if not kept and stride == block:
                block *= count
            elif kept and stride == kept[0][0] * kept[0][1]:
                kept[0] = (kept[0][0] * count, kept[0][1])
            else:
                kept.insert(0, (count, stride))
        return Nest(block, tuple(kept), self.start)

    def offsets(self) -> np.ndarray:
        """The byte offset of every block, in the order of the message."""
        at = np.array([self.start], dtype=np.int64)
        for count, stride in self.loops:
            at = np.add.outer(at, np.arange(count, dtype=np.int64) * stride).ravel()
        return at


@dataclass(frozen=True, eq=False)
class Places:
    """Blocks of contiguous bytes at listed places, counted in blocks."""

    block: int
    places: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.block * len(self.places)

    @property
    def end(self) -> int:
        return (int(self.places.max()) + 1) * self.block

    def merged(self) -> Places:
        return self

    def offsets(self) -> np.ndarray:
        return self.places.astype(np.int64) * self.block


Piece = Union[Nest, Places]


@dataclass(frozen=True)
class Side:
    """An array and the pieces of it that are a message, one after the other."""

    array_bytes: int
    pieces: tuple[Piece, ...]

    @classmethod
    def of(cls, array_bytes: int, *pieces: Piece) -> Side:
        assert all(piece.end <= array_bytes for piece in pieces)
        return cls(array_bytes, tuple(piece.merged() for piece in pieces))

    def indices(self, element: int) -> np.ndarray:
        """The index of every element of the message in the array, in elements of so many bytes."""
        parts = []
        for piece in self.pieces:
            within = np.arange(piece.block // element, dtype=np.int64)
            parts.append(np.add.outer(piece.offsets() // element, within).ravel())
        return np.concatenate(parts)


@dataclass(frozen=True)
class Pattern:
    """One kind of message at one size."""

    key: str
    n: int
    element: int  # bytes of what the application calls an element
    source: Side
    destination: Side
    relation: Callable[[], Any]  # the longshore.AddressRelation

    @property
    def name(self) -> str:
        return f"{self.key} {self.n}"

    @property
    def group(self) -> str:
        return KINDS[self.key].group

    @property
    def payload_bytes(self) -> int:
        return sum(piece.nbytes for piece in self.source.pieces)

    @property
    def array_bytes(self) -> int:
        return max(self.source.array_bytes, self.destination.array_bytes)

    def side(self, direction: str) -> Side:
        return self.source if direction == "assembly" else self.destination


# --- the paper's redistributions -------------------------------------------------------------------------------------

_LAYOUTS = {
    "R1": (("(BLOCK, *) on 4", "F"), ("(*, BLOCK) on 4", "F")),
    "R2": (("(BLOCK, *) on 4", "F"), ("(CYCLIC, *) on 4", "F")),
    "R3": (("(CYCLIC, *) on 4", "F"), ("(BLOCK, *) on 4", "F")),
    "R4": (("(*, CYCLIC) on 4", "F"), ("(CYCLIC, *) on 4", "C")),
}


def layouts(key: str, n: int) -> tuple[Any, Any]:
    """The two layouts of a redistribution of n × n doubles."""
    import longshore as ls

    source, destination = (ls.Layout(text, (n, n), order=order) for text, order in _LAYOUTS[key])
    return source, destination


def redistribution(key: str, n: int, ranks: tuple[int, int] = (0, 0)) -> Any:
    """The paper's address relation between two nodes, in its order: source addresses first."""
    import longshore as ls

    source, destination = layouts(key, n)
    return ls.AddressRelation.from_layouts(source, ranks[0], destination, ranks[1], np.float64).sorted("source_first")


def _redistributed(key: str, extent: int) -> Pattern:
    if extent % 16:
        raise ValueError(f"{key} deals out n × n doubles in sixteenths: n is a multiple of 16, not {extent}")
    n, r = extent // 4, extent // 16
    # (i, j) run over these extents, i faster; source and destination strides in doubles.
    (i_count, j_count), (s_i, s_j), (d_i, d_j) = {
        "R1": ((n, n), (1, n), (1, extent)),
        "R2": ((r, extent), (4, n), (1, n)),
        "R3": ((r, extent), (1, n), (4, n)),
        "R4": ((n, n), (4, extent), (extent, 4)),
    }[key]
    local = 8 * n * extent
    source = Nest(8, ((j_count, 8 * s_j), (i_count, 8 * s_i)))
    destination = Nest(8, ((j_count, 8 * d_j), (i_count, 8 * d_i)))
    return Pattern(
        key, extent, 8, Side.of(local, source), Side.of(local, destination), lambda: redistribution(key, extent)
    )


# --- applications: the message is the same part of the array on both sides --------------------------------------------


def _alike(key: str, n: int, element: int, array_bytes: int, *pieces: Piece) -> Pattern:
    side = Side.of(array_bytes, *pieces)

    def relation() -> Any:
        import longshore as ls

        return ls.AddressRelation.concatenate([_relation(piece, element) for piece in pieces])

    return Pattern(key, n, element, side, side, relation)


def _relation(piece: Piece, element: int) -> Any:
    import longshore as ls

    if isinstance(piece, Places):
        return ls.AddressRelation.from_indices(piece.places, piece.places, piece.block)
    shape = [*(count for count, _ in piece.loops), piece.block // element]
    strides = [*(stride for _, stride in piece.loops), element]
    return ls.AddressRelation.strided(shape, strides, strides, element, piece.start, piece.start)


def _wrf(key: str, n: int) -> Pattern:
    """Four 3-D fields and a 2-D one of floats with three points
    of halo, (x, z, y) with x fastest: 3 rows in x or in y."""
    halo, levels, across = 3, max(1, n // 4), n + 6
    fields, each = [], 4 * across * levels * across
    for start, height in [(k * each, levels) for k in range(4)] + [(4 * each, 1)]:
        row = 4 * across
        first = start + halo * row * height
        if key == "wrf-x":
            fields.append(Nest(4 * halo, ((n, row * height), (height, row)), first + 4 * halo))
        else:
            fields.append(Nest(4 * n, ((halo, row * height), (height, row)), first + 4 * halo))
    return _alike(key, n, 4, 4 * each + 4 * across * across, *fields)


def _lu(key: str, n: int) -> Pattern:
    """u(5, n + 4, n + 4, n) of doubles: x sends rows of 5n doubles of a plane, y 5 doubles of every row."""
    across = n + 4
    row, plane = 40 * across, 40 * across * across
    first = 2 * row + 80
    face = Nest(40 * n, ((n, plane),), first) if key == "lu-x" else Nest(40, ((n, plane), (n, row)), first)
    return _alike(key, n, 8, plane * n, face)


def _mg(key: str, n: int) -> Pattern:
    """A face of (n + 2)³ doubles, x fastest."""
    across = n + 2
    row, plane = 8 * across, 8 * across * across
    first = plane + row + 8
    face = {
        "mg-x": Nest(8, ((n, plane), (n, row)), first),
        "mg-y": Nest(8 * n, ((n, plane),), first),
        "mg-z": Nest(8 * n, ((n, row),), first),
    }[key]
    return _alike(key, n, 8, plane * across, face)


def _milc(key: str, n: int) -> Pattern:
    """A face of n⁴ su3 vectors, three complex doubles each, x fastest."""
    x, y, z, t = (48 * n**k for k in range(4))
    face = {
        "milc-x": Nest(48, ((n, t), (n, z), (n, y))),
        "milc-y": Nest(48, ((n, t), (n, z), (n, x))),
        "milc-z": Nest(48, ((n, t), (n, y), (n, x))),
    }[key]
    return _alike(key, n, 16, t * n, face)


def _fft(key: str, n: int) -> Pattern:
    """The columns of n × n complex doubles, one after the other."""
    return _alike(key, n, 16, 16 * n * n, Nest(16, ((n, 16), (n, 16 * n))))


def _random(n: int) -> np.random.Generator:
    return np.random.default_rng(20240229 + n)


def _listed(key: str, n: int, block: int, of: int, places: np.ndarray) -> Pattern:
    return _alike(key, n, block, block * of, Places(block, np.ascontiguousarray(places, np.int32)))


def _lammps(key: str, n: int) -> Pattern:
    """The positions (x, y, z) of n of 10 n atoms, in ascending order."""
    return _listed(key, n, 24, 10 * n, np.sort(_random(n).choice(10 * n, n, replace=False)))


def _specfem(key: str, n: int) -> Pattern:
    """n points of a mesh of 20 n, numbered element by element:
    ascending faces of 25 points, each in an order of its own."""
    random = _random(n)
    places = np.sort(random.choice(20 * n, n, replace=False))
    for at in range(0, n, 25):
        random.shuffle(places[at : at + 25])
    return _listed(key, n, 4 if key == "specfem-oc" else 12, 20 * n, places)


def _sorted_list(key: str, n: int) -> Pattern:
    """Ascending indices with gaps of 1 to 4."""
    places = np.cumsum(_random(n).integers(1, 5, n))
    return _listed(key, n, 8, 4 * n + 1, places)


def _random_list(key: str, n: int) -> Pattern:
    """n different indices below 8 n in any order."""
    return _listed(key, n, 8, 8 * n, _random(n).permutation(8 * n)[:n])


# --- all of them -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of message: in words, its table, how it is made, its sizes, and from which size on nothing can be won in a
    direction: every loop touches the same cache lines, one or two elements each, and waits for them."""

    title: str
    group: str
    make: Callable[[str, int], Pattern]
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    bound: Mapping[str, int] = field(default_factory=dict)

    def is_bound(self, direction: str, n: int) -> bool:
        return n >= self.bound.get(direction, n + 1)


_R, _R_QUICK = (128, 1024, 2048, 8192), (128, 1024)
KINDS: dict[str, Kind] = {
    "R1": Kind("(BLOCK,*) to (*,BLOCK)", "redistributions", _redistributed, _R, _R_QUICK),
    "R2": Kind("(BLOCK,*) to (CYCLIC,*)", "redistributions", _redistributed, _R, _R_QUICK, {"assembly": 1024}),
    "R3": Kind("(CYCLIC,*) to (BLOCK,*)", "redistributions", _redistributed, _R, _R_QUICK),
    "R4": Kind(
        "(*,CYCLIC) to (CYCLIC,*), transposed", "redistributions", _redistributed, _R, _R_QUICK, {"assembly": 1024}
    ),
    "wrf-x": Kind("WRF, halo in x: 12-byte runs of five arrays", "stencils", _wrf, (40, 256), (40,)),
    "wrf-y": Kind("WRF, halo in y: rows of five arrays", "stencils", _wrf, (40, 256), (40,)),
    "lu-x": Kind("NAS LU, rows of 5n doubles", "stencils", _lu, (33, 102), ()),
    "lu-y": Kind("NAS LU, 40-byte blocks", "stencils", _lu, (33, 102), (33,)),
    "mg-x": Kind("NAS MG, face in x: single doubles", "stencils", _mg, (32, 256), (32,), {"assembly": 256}),
    "mg-y": Kind("NAS MG, face in y: rows", "stencils", _mg, (32, 256), ()),
    "mg-z": Kind("NAS MG, face in z: rows", "stencils", _mg, (32, 256), ()),
    "milc-x": Kind("MILC, face in x: 48-byte blocks", "lattices and transposes", _milc, (8, 32), (8,)),
    "milc-y": Kind("MILC, face in y: rows", "lattices and transposes", _milc, (8, 32), ()),
    "milc-z": Kind("MILC, face in z: planes", "lattices and transposes", _milc, (8, 32), ()),
    "fft": Kind("FFT, transpose of complex doubles", "lattices and transposes", _fft, (64, 256, 1024), (64, 256)),
    "lammps": Kind("LAMMPS, ascending list of 24-byte blocks", "lists", _lammps, (1000, 200_000), (1000,)),
    "specfem-oc": Kind("SPECFEM3D oc, list of floats", "lists", _specfem, (3000, 300_000), (3000,)),
    "specfem-cm": Kind("SPECFEM3D cm, list of 12-byte blocks", "lists", _specfem, (3000, 300_000), (3000,)),
    "sorted-list": Kind(
        "ascending list of doubles, gaps of 1 to 4", "lists", _sorted_list, (1000, 4000, 4_000_000), (1000,)
    ),
    "random-list": Kind(
        "random list of doubles",
        "lists",
        _random_list,
        (4000, 4 << 20),
        (4000,),
        {"assembly": 1 << 20, "disassembly": 1 << 20},
    ),
}


def make_pattern(key: str, n: int) -> Pattern:
    """The pattern of that name at that size. Raises ValueError where there is none."""
    if key not in KINDS:
        raise ValueError(f"no case {key!r}: there are {', '.join(KINDS)}")
    if n < 2:
        raise ValueError(f"{key} needs a size of at least 2, not {n}")
    return KINDS[key].make(key, n)


def dense_loops(nest: Nest) -> list[tuple[int, int, int]]:
    """The loops of a nest as (count, stride in the array, stride in the message)."""
    loops, stride = [], nest.block
    for count, array_stride in reversed(nest.loops):
        loops.insert(0, (count, array_stride, stride))
        stride *= count
    return loops


def message_starts(pieces: Iterable[Piece]) -> list[int]:
    """Where each piece begins in the message, in bytes."""
    starts, at = [], 0
    for piece in pieces:
        starts.append(at)
        at += piece.nbytes
    return starts
