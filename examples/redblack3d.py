"""Redblack3D: seven-point Gauss-Seidel on red and black points, in NumPy, with halos by Longshore (the Data Mover,
section 3.1).

    python examples/redblack3d.py [--size N] [--iterations N] [--blocks N]
    mpiexec -n 2 python examples/redblack3d.py [--size N] [--iterations N]

Solves Poisson's equation on a cube whose boundary is given. Under mpiexec every rank has one block; otherwise all
blocks are in this process, and the same lines move the ghost cells between them. At the end every point is compared,
bit by bit, with the same iterations on one block.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from typing import Any

import longshore as ls
import numpy as np


def exact(region: ls.Region, n: int) -> np.ndarray:
    """The solution x²y + y²z + z²x at the points of a region; the cube's boundary is at -1 and n."""
    x, y, z = np.ix_(*((np.arange(low, high) + 1.0) / (n + 1) for low, high in zip(region.lower, region.upper)))
    return x**2 * y + y**2 * z + z**2 * x


def scaled_source(region: ls.Region, n: int) -> np.ndarray:
    """h² times the Laplacian of the solution."""
    x, y, z = np.ix_(*((np.arange(low, high) + 1.0) / (n + 1) for low, high in zip(region.lower, region.upper)))
    return 2 * (x + y + z) / (n + 1) ** 2


def sweep(u: ls.Grid, source: np.ndarray, colour: int) -> None:
    """One colour's points of a block, from the neighbours that the other colour has."""
    values = np.asarray(u)
    inner = [extent - 2 for extent in values.shape]
    for i, j in itertools.product((0, 1), repeat=2):
        k = (colour + sum(u.block.lower) + i + j) % 2  # where the rows (i, j) have their first point of the colour
        places = [slice(first, extent, 2) for first, extent in zip((i, j, k), inner)]

        def neighbours(dimension: int, by: int) -> np.ndarray:
            shift = [1 + by * (d == dimension) for d in range(3)]
            return values[tuple(slice(p.start + s, p.stop + s, 2) for p, s in zip(places, shift))]

        total = sum(neighbours(d, by) for d in range(3) for by in (-1, 1)) - source[tuple(places)]
        neighbours(0, 0)[...] = total / 6


def solve(blocks: ls.FloorPlan, n: int, iterations: int, comm: Any = None) -> tuple[ls.XArray, float]:
    """The solution after so many iterations, and the seconds that they took. Collective, with a communicator."""
    u = ls.XArray(blocks, float, ghost=1, comm=comm)
    sources = {k: scaled_source(grid.block, n) for k, grid in u.items()}
    for _, grid in u.items():
        np.asarray(grid)[...] = exact(grid.region, n)  # the boundary; what lies inside comes from other blocks
        grid.interior[...] = 0
    halo = ls.BlockPlan.halo(blocks, 1, corners=False).bind(u, comm=comm)
    if comm is not None:
        comm.Barrier()
    begin = time.perf_counter()
    for _ in range(iterations):
        for colour in (0, 1):
            halo()
            for k, grid in u.items():
                sweep(grid, sources[k], colour)
    return u, time.perf_counter() - begin


def communicator() -> Any:
    """MPI's, where mpiexec started this; None for a process by itself."""
    try:
        from mpi4py import MPI
    except ImportError:
        return None
    return MPI.COMM_WORLD if MPI.COMM_WORLD.size > 1 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=64, help="points in each dimension (default: 64)")
    parser.add_argument("--iterations", type=int, default=20, help="red and black sweeps (default: 20)")
    parser.add_argument("--blocks", type=int, default=4, help="blocks of a process by itself (default: 4)")
    options = parser.parse_args()
    n, comm = options.size, communicator()

    cube = ls.Region.of_shape((n, n, n))
    blocks = ls.FloorPlan.even(cube, comm.size if comm else options.blocks)
    u, seconds = solve(blocks, n, options.iterations, comm)
    alone, _ = solve(ls.FloorPlan([cube], [0]), n, options.iterations)
    same = all(np.array_equal(grid.interior, alone[0].on(grid.block)) for _, grid in u.items())
    if comm is not None:
        same = comm.allreduce(int(same)) == comm.size
    if comm is None or comm.rank == 0:
        error = np.abs(alone[0].interior - exact(cube, n)).max()
        where = f"{len(blocks)} blocks on {comm.size} ranks" if comm else f"{len(blocks)} blocks in one process"
        print(f"{n}³ points, {where}, {options.iterations} iterations: {seconds:.3f} s, {error:.2g} from the solution.")
        print("As one block has it, bit by bit." if same else "NOT what one block has.")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
