"""PETSc's part of `longshore bench halo`, on every rank: `python petsc_child.py SPEC.json`.

A program of its own: the interpreter that has petsc4py need not have Longshore or mpi4py.
"""

import ctypes
import gc
import json
import os
import sys
import time
from pathlib import Path

import petsc4py

petsc4py.init(sys.argv[:1])
import numpy as np  # noqa: E402
from petsc4py import PETSc  # noqa: E402

COMM = PETSc.COMM_WORLD


class Halo:
    """A distributed array of PETSc's, and what belongs into it."""

    def __init__(self, case):
        split, n, self.corners, self.fills = "xyz".index(case["axis"]), case["n"], case["points"] == 27, 0
        self.sizes, grid = [n] * 3, [1] * 3
        self.sizes[split], grid[split] = n * COMM.size, COMM.size
        stencil = PETSc.DMDA.StencilType.BOX if self.corners else PETSc.DMDA.StencilType.STAR
        periodic = {"boundary_type": (PETSc.DM.BoundaryType.PERIODIC,) * 3, "comm": COMM}
        how = {"stencil_type": stencil, "stencil_width": case["width"], **periodic}
        self.da = PETSc.DMDA().create(dim=3, dof=1, sizes=self.sizes, proc_sizes=grid, **how)
        self.own, grown = self.da.getRanges(), self.da.getGhostRanges()
        self.whole, self.part = self.da.createGlobalVec(), self.da.createLocalVec()
        # PETSc's x is the fastest index.
        self.owned = self.whole.getArray().reshape([e - s for s, e in self.own], order="F")
        self.cells = self.part.getArray().reshape([e - s for s, e in grown], order="F")
        self.inside = self.cells[tuple(slice(s - g, e - g) for (s, e), (g, _) in zip(self.own, grown))]
        self.places = [np.arange(s, e) for s, e in grown]
        self.ways = {  # what is timed, and whose cells are written anew before
            "globalToLocal": (lambda: self.da.globalToLocal(self.whole, self.part), self.owned),
            "localToLocal": (lambda: self.da.localToLocal(self.part, self.part), self.inside),
        }

    def values(self, x, y, z):
        """Every cell's own, and others after every fill."""
        return x + 2048.0 * (y + 2048.0 * (z + 2048.0 * self.fills))

    def fill(self, target):
        self.fills += 1
        x, y, z = (np.arange(s, e) for s, e in self.own)
        plane = np.asfortranarray(self.values(x[:, None], y[None, :], 0))
        for k, height in enumerate(z):
            np.add(plane, 2048.0 * 2048.0 * height, out=target[:, :, k])

    def wrong(self):
        """How many cells of this rank are not what they must be."""
        beyond = [((at < s) | (at >= e)).astype(int) for at, (s, e) in zip(self.places, self.own)]
        (x, y, z), count = (at % n for at, n in zip(self.places, self.sizes)), 0
        for k in range(len(z)):
            different = self.cells[:, :, k] != self.values(x[:, None], y[None, :], z[k])
            if not self.corners:
                different &= beyond[0][:, None] + beyond[1][None, :] + beyond[2][k] <= 1
            count += int(different.sum())
        return count


def libraries():
    """PETSc and the MPI library that this process has loaded."""
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if "/libmpi" in line and "/libmpi_" not in line}
    words = [f"PETSc {'.'.join(map(str, PETSc.Sys.getVersion()))}"]
    for path in sorted(loaded):
        text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
        ctypes.CDLL(path).MPI_Get_library_version(text, ctypes.byref(length))
        first = text.value.decode().splitlines()[0].split(", package:")[0]  # the rest says who built it, and where
        words.append(" ".join(first.replace("Version:", "").split()))
    return ", ".join(words)


def measure(case, spec, result, step):
    halo, numbers = Halo(case), PETSc.Vec().createMPI((1, None), comm=COMM)

    def largest(value):
        """Of all ranks' numbers, by a vector with one of each."""
        numbers.getArray()[0] = value
        numbers.assemble()
        return float(numbers.max()[1])

    def sample(name):
        run, target = halo.ways[name.split()[-1]]
        halo.fill(target)
        COMM.barrier()
        start = time.perf_counter()
        run()
        return largest(time.perf_counter() - start)

    def verified(name):
        halo.cells.fill(np.nan)
        sample(name)
        return largest(halo.wrong()) == 0

    seconds = {name: [] for name in spec["contenders"] if verified(name)}
    for k in range(spec["repeats"]):
        for name in seconds:
            step(f"{case['name']}/{name}/{k + 1} of {spec['repeats']}")
            seconds[name].append(sample(name))
    for name in spec["contenders"]:
        if name in seconds and verified(name):
            result["rows"].append({"case": case["name"], "contender": name, "seconds": seconds[name]})
        else:
            result["missing"].append({"contender": name, "why": "WRONG RESULT", "cases": [case["name"]]})
    result["done"].append(case["name"])
    for thing in (halo.whole, halo.part, halo.da):
        thing.destroy()


def main(path):
    spec = json.loads(Path(path).read_text())
    if COMM.size != spec["ranks"]:
        sys.exit(f"error: {spec['ranks']} processes were started, and each sees {COMM.size}: petsc4py has another MPI")

    def write(name, text):
        if COMM.rank == 0:
            beside = Path(path).with_name(name + ".new")
            beside.write_text(text)
            os.replace(beside, Path(path).with_name(name))

    cores, result = sorted(os.sched_getaffinity(0)), {"libraries": libraries(), "rows": [], "missing": [], "done": []}
    if len(cores) >= COMM.size > 1:  # mpiexec has not bound the ranks
        os.sched_setaffinity(0, {cores[COMM.rank]})
    gc.disable()
    for case in spec["cases"]:
        measure(case, spec, result, lambda words: write("step", words))
        write("result.json", json.dumps(result))
    write("result.json", json.dumps({**result, "finished": True}))


main(sys.argv[1])
