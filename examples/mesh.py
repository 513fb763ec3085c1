"""A mesh of triangles whose vertices are numbered in no order: each rank finds who owns the ghosts of its triangles.

    mpiexec -n 8 python examples/mesh.py [--side N]

Every rank has the triangles of a strip, knows the numbers of their vertices and no more, and owns some of these
vertices. `ls.Directory` finds the owners of the others, and the plan goes both ways: a field at the vertices is
brought to the ghosts, and what triangles have worked out for ghosts is added to their owners'. The result is compared
with what is known of it; then the time and the memory that planning took are told.
"""

from __future__ import annotations

import argparse
import sys
import time

import longshore as ls
import numpy as np


def peak(start: bool = False) -> int:
    """The most memory that this process has had since the last start, in bytes; at a start, what it has."""
    if start:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    with open("/proc/self/status") as file:
        told = dict(line.split(":", 1) for line in file)
    return int(told["VmRSS" if start else "VmHWM"].split()[0]) << 10


def numbers(rows: np.ndarray, columns: np.ndarray, side: int) -> np.ndarray:
    """As a mesher may number vertices: no two alike, neighbours far apart, and some beyond 2^62."""
    return ((rows * side + columns) * 0x9E3779B97F4A7C15 & 0x7FFFFFFFFFFFFFFF).astype(np.int64)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=1000, help="vertices in a row, and rows (default: 1000)")
    side = parser.parse_args().side
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    first, last = side * comm.rank // comm.size, side * (comm.rank + 1) // comm.size
    along = np.arange(side, dtype=np.uint64)
    rows, columns = np.meshgrid(along[first:last], along, indexing="ij")
    owned = np.random.default_rng(comm.rank).permutation(numbers(rows, columns, side).ravel())

    # Two triangles a square; those above this rank's rows have vertices of the next rank.
    rows, columns = (x[: max(0, min(last, side - 1) - first), :-1].ravel() for x in (rows, columns))
    corners = [numbers(rows + np.uint64(up), columns + np.uint64(right), side) for up in (0, 1) for right in (0, 1)]
    triangles = np.concatenate([np.stack([corners[k] for k in three], axis=1) for three in ((0, 1, 3), (0, 3, 2))])

    comm.Barrier()
    before, begin = peak(start=True), time.perf_counter()
    needed = np.setdiff1d(triangles, owned)
    directory = ls.Directory(owned, comm=comm)
    plan = directory.gather_points(needed)
    seconds, taken = time.perf_counter() - begin, peak() - before

    # In this rank's arrays: first its own vertices, then the ghosts.
    everything = np.concatenate([owned, needed])
    order = np.argsort(everything)
    local = order[np.searchsorted(everything, triangles, sorter=order)]
    field, sums = ls.XArray(plan.source, float, comm=comm), ls.XArray(plan.source, float, comm=comm)
    fill, add = plan.bind(field, comm=comm), plan.reverse().bind(sums, comm=comm, reduce="add")
    mine = field[comm.rank]
    mine[: len(owned)] = np.cos(owned % 1000)
    fill()
    right = np.array_equal(mine, np.cos(everything % 1000))
    # A third of every triangle's area to each corner: with one square as unit, the sum is the area of the mesh.
    np.add.at(sums[comm.rank], local.ravel(), 1 / 6)
    add()
    area = comm.allreduce(float(sums[comm.rank][: len(owned)].sum()))
    right = comm.allreduce(right, MPI.LAND) and np.isclose(area, (side - 1) ** 2)

    told = comm.gather((len(owned), len(needed), taken, seconds))
    if comm.rank == 0:
        own, ghosts, taken, seconds = (max(column) for column in zip(*told))
        print(f"{side * side} vertices on {comm.size} ranks; a rank owns {own} at most and needs {ghosts}")
        print(f"planned in {seconds:.3f} s, with {taken / 2**20:.1f} MiB more on the rank that took most")
        print("Every ghost has its owner's value, and the area is right." if right else "WRONG")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
