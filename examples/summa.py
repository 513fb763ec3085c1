"""SUMMA: C = A B on a grid of blocks, in NumPy, with panels broadcast by Longshore (van de Geijn and Watts; the Data
Mover, section 3.4).

    python examples/summa.py [--size N] [--panel N] [--blocks N]
    mpiexec -n 4 python examples/summa.py [--size N] [--panel N]

Step by step, every block gets a panel of columns of A from its row of blocks and a panel of rows of B from its column,
while the product of the last two is computed. Under mpiexec every rank has one block of each matrix; otherwise all are
in this process.
"""

from __future__ import annotations

import argparse
import sys
import time

import longshore as ls
import numpy as np
from redblack3d import communicator


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=512, help="rows and columns of the matrices (default: 512)")
    parser.add_argument("--panel", type=int, default=64, help="columns and rows of a step (default: 64)")
    parser.add_argument("--blocks", type=int, default=4, help="blocks of a process by itself (default: 4)")
    options = parser.parse_args()
    n, width, comm = options.size, options.panel, communicator()

    square = ls.Region.of_shape((n, n))
    blocks = ls.FloorPlan.even(square, comm.size if comm else options.blocks)
    a, b, c = (ls.XArray(blocks, float, comm=comm) for _ in range(3))
    rows, columns = np.ogrid[:n, :n]
    whole = {"a": np.cos(3.0 * rows + columns), "b": np.sin(rows - 2.0 * columns)}
    for k, block in a.items():
        block[...] = whole["a"][block.region.slices(square)]
        b[k][...] = whole["b"][block.region.slices(square)]

    # A step has a panel of each and a mover that fills it; all are made before the first one moves.
    steps = []
    for first in range(0, n, width):
        last = min(first + width, n)
        step = []
        for matrix, plan in (
            (a, ls.BlockPlan.broadcast_columns(blocks, first, last)),
            (b, ls.BlockPlan.broadcast_rows(blocks, first, last)),
        ):
            panel = ls.XArray(plan.destination, float, comm=comm)
            step.append((panel, plan.bind(matrix, panel, comm=comm)))
        steps.append(step)

    def start(step: int) -> None:
        for _, mover in steps[step] if step < len(steps) else ():
            mover.start()

    if comm is not None:
        comm.Barrier()
    begin = time.perf_counter()
    start(0)
    for k, step in enumerate(steps):
        for _, mover in step:
            mover.wait()
        start(k + 1)  # is on its way while this one is computed
        (columns_of_a, _), (rows_of_b, _) = step
        for j, block in c.items():
            block += np.asarray(columns_of_a[j]) @ np.asarray(rows_of_b[j])
    seconds = time.perf_counter() - begin

    right = all(np.allclose(block, (whole["a"] @ whole["b"])[block.region.slices(square)]) for _, block in c.items())
    if comm is not None:
        right = comm.allreduce(int(right)) == comm.size
    if comm is None or comm.rank == 0:
        where = f"{len(blocks)} blocks on {comm.size} ranks" if comm else f"{len(blocks)} blocks in one process"
        print(f"{n} x {n}, {where}, {len(steps)} steps: {seconds:.3f} s, {2e-9 * n**3 / seconds:.3g} Gflop/s.")
        print("As NumPy has it." if right else "NOT what NumPy has.")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
