"""Poisson's equation on a square by red-black successive over-relaxation, with the rows on the ranks: before the points
of a colour are relaxed, each rank gets the rows beside its own.

    mpiexec -n 2 python apps/kernels/sor.py [--size N] [--sweeps K]
"""

import argparse
import math
import sys

import longshore as ls
import numpy as np


def relax(u, load, colour, first=0):
    """One colour of a grid whose border, one point wide, is left alone. Its first row inside is row `first` of the
    square, and points are red (0) or black (1) as a chessboard's are."""
    factor = 2 / (1 + math.sin(math.pi / (u.shape[1] - 1)))
    for i in (1, 2):
        j = 1 + (i + first + colour + 1) % 2
        rows, columns = slice(i, -1, 2), slice(j, -1, 2)
        around = u[i - 1 : -2 : 2, columns] + u[i + 1 :: 2, columns] + u[rows, j - 1 : -2 : 2] + u[rows, j + 1 :: 2]
        u[rows, columns] += factor * ((around + load[rows, columns]) / 4 - u[rows, columns])


class Relaxation:
    """The solver of n x n points. `grid` has this rank's rows, and the border: zeros, or rows of others. Collective."""

    def __init__(self, n, comm):
        bands = ls.regions.split_evenly(ls.Region.of_shape((n, n)), (comm.size, 1))
        self.blocks = ls.FloorPlan(bands, range(comm.size))
        self.plan = ls.BlockPlan.halo(self.blocks, 1, corners=False)
        self.field = ls.XArray(self.blocks, float, ghost=1, comm=comm)
        self.grid = self.field[comm.rank]
        self.first = self.blocks[comm.rank].lower[0]
        self._fill = self.plan.bind(self.field, comm=comm)

    def sweep(self, load):
        """Relaxes all points; `load` has the grid's shape. Collective."""
        for colour in (0, 1):
            self._fill()
            relax(self.grid, load, colour, self.first)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--size", type=int, default=256, help="rows and columns (default: 256)")
    parser.add_argument("--sweeps", type=int, default=800, help="over all points (default: 800)")
    given = parser.parse_args()
    from mpi4py import MPI

    comm, right = MPI.COMM_WORLD, None
    load = np.random.default_rng(0).standard_normal((given.size + 2, given.size + 2))
    solver = Relaxation(given.size, comm)
    mine = load[solver.first : solver.first + solver.grid.shape[0]]
    for _ in range(given.sweeps):
        solver.sweep(mine)
    found = ls.gather(solver.field, comm=comm)
    if comm.rank == 0:
        serial = np.zeros_like(load)
        for _ in range(given.sweeps):
            for colour in (0, 1):
                relax(serial, load, colour)
        right = np.array_equal(found, serial[1:-1, 1:-1])
        inside = serial[1:-1, 1:-1]
        around = serial[:-2, 1:-1] + serial[2:, 1:-1] + serial[1:-1, :-2] + serial[1:-1, 2:]
        residual = abs(around + load[1:-1, 1:-1] - 4 * inside).max()
        words = "bit for bit the serial solution: right" if right else "not the serial solution: WRONG"
        print(f"SOR of {given.size} x {given.size} on {comm.size} ranks: residual {residual:.1e}, {words}")
    return 0 if comm.bcast(right) else 1


if __name__ == "__main__":
    sys.exit(main())
