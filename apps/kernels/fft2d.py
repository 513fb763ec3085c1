"""A two-dimensional complex FFT, rows on ranks: FFTs of the rows, a transpose, FFTs of the columns, and back.

mpiexec -n 2 python apps/kernels/fft2d.py [--size N]
"""

import argparse
import sys

import longshore as ls
import numpy as np


class Transform:
    """The FFT of an n x n array. `rows` are this rank's rows of it, `columns` those of the transposed one.
    Collective."""

    def __init__(self, n, comm):
        self.layout = ls.Layout(f"(BLOCK, *) on {comm.size}", (n, n))
        self.plan = ls.plan(self.layout, self.layout, complex, axes=(1, 0))
        self.rows, self.columns = (ls.empty(self.layout, complex, comm=comm) for _ in range(2))
        self._turn = self.plan.bind(self.rows, self.columns, comm=comm)
        self._turn_back = self.plan.bind(self.columns, self.rows, comm=comm)

    def __call__(self):
        """Transforms what is in `rows`. Collective."""
        for array, turn in ((self.rows, self._turn), (self.columns, self._turn_back)):
            array[...] = np.fft.fft(array)
            turn()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1024, help="rows and columns (default: 1024)")
    n = parser.parse_args().size
    from mpi4py import MPI

    comm, whole, error = MPI.COMM_WORLD, None, None
    if comm.rank == 0:
        whole = np.random.default_rng(0).standard_normal((n, 2 * n)).view(complex)
    transform = Transform(n, comm)
    transform.rows[...] = ls.scatter(whole, transform.layout, comm=comm)
    transform()
    found = ls.gather(transform.rows, transform.layout, comm=comm)
    if comm.rank == 0:
        error = float(abs(found - np.fft.fft2(whole)).max()) / n
    right = comm.bcast(error) < 1e-12
    if comm.rank == 0:
        print(f"FFT of {n} x {n} on {comm.size} ranks: {error:.1e} from the serial one:", "right" if right else "WRONG")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
