"""What `longshore bench halo` exchanges: its cases, and the names of those who take part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CELLS, QUICK_CELLS = 256, 128  # of a rank, along each dimension
AXES = "xyz"

COPY, MEMCPY = "copy, ghost cells", "copy, contiguous"
LONGSHORE, PROXY, ANY_MEMORY = "longshore mpi", "longshore mpi, proxy", "longshore mpi (any memory)"
PACKED, NEIGHBOURS = "hand-packed", "MPI Neighbor_alltoallw"
PETSC = ("PETSc DMDA globalToLocal", "PETSc DMDA localToLocal")
NAMES = (COPY, MEMCPY, LONGSHORE, PROXY, ANY_MEMORY, PACKED, NEIGHBOURS, *PETSC)


@dataclass(frozen=True)
class HaloCase:
    """Ranks side by side along one axis, each with n³ doubles in one box or in 64, periodic in all dimensions."""

    points: int  # of the stencil: 27 wants corners, 7 does not
    width: int
    boxes: int  # of a rank, along each dimension
    axis: str
    n: int = CELLS
    ranks: int = 2

    @property
    def key(self) -> str:
        return f"{self.points}-point-{self.width}-{self.boxes**3}-{self.axis}"

    @property
    def name(self) -> str:
        return f"{self.key} {self.n}"

    @property
    def stencil(self) -> str:
        return f"{self.points}-point, width {self.width}"

    @property
    def arrangement(self) -> str:
        boxes = f"one box of {self.n}³" if self.boxes == 1 else f"{self.boxes**3} boxes of {self.n // self.boxes}³"
        return f"{boxes} a rank, {self.ranks} rank{'s' if self.ranks > 1 else ''} along {self.axis}"

    @property
    def payload_bytes(self) -> int:
        """Bytes of all ghost cells that the stencil wants."""
        n = self.n // self.boxes
        ghosts = (n + 2 * self.width) ** 3 - n**3 if self.points == 27 else 6 * n * n * self.width
        return 8 * ghosts * self.boxes**3 * self.ranks

    def facts(self) -> dict[str, Any]:
        """What a row says of its case."""
        return {
            "case": self.key,
            "n": self.n,
            "stencil": self.stencil,
            "arrangement": self.arrangement,
            "dtype": "float64",
            "payload_bytes": self.payload_bytes,
            "ranks": self.ranks,
        }


def every_case(n: int, ranks: int) -> list[HaloCase]:
    return [
        HaloCase(points, width, boxes, axis, n, ranks)
        for boxes in (1, 4)
        for axis in "xz"
        for points in (27, 7)
        for width in (1, 3)
    ]
