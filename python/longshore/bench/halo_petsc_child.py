"""PETSc's part of `longshore bench halo`, on every rank: `python halo_petsc_child.py SPEC.json`.

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
        split, n, width = "xyz".index(case["axis"]), case["n"], case["width"]
        kinds = PETSc.DMDA.StencilType
        self.sizes, grid = [n] * 3, [1] * 3
        self.sizes[split], grid[split] = n * COMM.size, COMM.size
        self.corners = case["points"] == 27
        self.da = PETSc.DMDA().create(
            dim=3,
            dof=1,
            sizes=self.sizes,
            proc_sizes=grid,
            boundary_type=(PETSc.DM.BoundaryType.PERIODIC,) * 3,
            stencil_type=kinds.BOX if self.corners else kinds.STAR,
            stencil_width=width,
            comm=COMM,
        )
        own, grown = self.da.getRanges(), self.da.getGhostRanges()
        self.own, self.fills = own, 0
        self.whole, self.part = self.da.createGlobalVec(), self.da.createLocalVec()
        # PETSc's x is the fastest index.
        self.owned = self.whole.getArray().reshape([e - s for s, e in own], order="F")
        self.cells = self.part.getArray().reshape([e - s for s, e in grown], order="F")
        self.inside = self.cells[tuple(slice(s - g, e - g) for (s, e), (g, _) in zip(own, grown))]
        self.places = [np.arange(s, e) for s, e in grown]

    def destroy(self):
        for thing in (self.whole, self.part, self.da):
            thing.destroy()

    def values(self, x, y, z):
        """Every cell's own, and others after every fill."""
        return x + 2048.0 * (y + 2048.0 * (z + 2048.0 * self.fills))

    def fill(self, whole):
        self.fills += 1
        axes = [np.arange(s, e) for s, e in self.own]
        target = self.owned if whole else self.inside
        plane = np.asfortranarray(self.values(axes[0][:, None], axes[1][None, :], 0))
        for k, z in enumerate(axes[2]):
            np.add(plane, 2048.0 * 2048.0 * z, out=target[:, :, k])

    def spoil(self):
        self.cells.fill(np.nan)

    def wrong(self):
        """How many cells of this rank are not what they must be."""
        beyond = [(at < s) | (at >= e) for at, (s, e) in zip(self.places, self.own)]
        x, y, z = (at % n for at, n in zip(self.places, self.sizes))
        count = 0
        for k in range(len(z)):
            expected = self.values(x[:, None], y[None, :], z[k])
            different = self.cells[:, :, k] != expected
            if not self.corners:
                outside = beyond[0][:, None].astype(int) + beyond[1][None, :] + beyond[2][k]
                different &= outside <= 1
            count += int(different.sum())
        return count

    def way(self, contender):
        """What is timed, and whether cells are owned by the global vector then."""
        if contender.endswith("globalToLocal"):
            return lambda: self.da.globalToLocal(self.whole, self.part), True
        return lambda: self.da.localToLocal(self.part, self.part), False


class Everywhere:
    """Numbers of all ranks brought together."""

    def __init__(self):
        self.vector = PETSc.Vec().createMPI((1, None), comm=COMM)

    def largest(self, value):
        self.vector.getArray()[0] = value
        self.vector.assemble()
        return float(self.vector.max()[1])


def timed(run):
    COMM.barrier()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def libraries():
    """PETSc and the MPI library that this process has loaded."""
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if "/libmpi" in line and "/libmpi_" not in line}
    words = []
    for path in sorted(loaded):
        text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
        ctypes.CDLL(path).MPI_Get_library_version(text, ctypes.byref(length))
        # The rest of the line says who built it, and where.
        words.append(
            " ".join(text.value.decode().splitlines()[0].split(", package:")[0].replace("Version:", "").split())
        )
    return f"PETSc {'.'.join(map(str, PETSc.Sys.getVersion()))}, {', '.join(words)}"


def measure(case, spec, result, step):
    halo, everywhere = Halo(case), Everywhere()
    ways = {name: halo.way(name) for name in spec["contenders"]}

    def verified(name):
        run, whole = ways[name]
        halo.spoil()
        halo.fill(whole)
        run()
        return everywhere.largest(halo.wrong()) == 0

    right = {name: verified(name) for name in ways}
    seconds = {name: [] for name in ways if right[name]}
    for k in range(spec["repeats"]):
        for name in seconds:
            step(f"{case['name']}/{name}/{k + 1} of {spec['repeats']}")
            run, whole = ways[name]
            halo.fill(whole)
            seconds[name].append(everywhere.largest(timed(run)))
    for name in ways:
        if right[name] and verified(name):
            result["rows"].append({"case": case["name"], "contender": name, "seconds": seconds[name]})
        else:
            result["missing"].append({"case": case["name"], "contender": name, "why": "WRONG RESULT"})
    result["done"].append(case["name"])
    halo.destroy()


def main(path):
    spec = json.loads(Path(path).read_text())
    if COMM.size != spec["ranks"]:
        sys.exit(f"error: {spec['ranks']} processes were started, and each sees {COMM.size}: petsc4py has another MPI")

    def write(name, text):
        if COMM.rank == 0:
            beside = Path(path).with_name(name + ".new")
            beside.write_text(text)
            os.replace(beside, Path(path).with_name(name))

    cores = sorted(os.sched_getaffinity(0))
    if len(cores) >= COMM.size > 1:  # mpiexec has not bound the ranks
        os.sched_setaffinity(0, {cores[COMM.rank]})
    result = {"libraries": libraries(), "rows": [], "missing": [], "done": []}
    gc.disable()
    for case in spec["cases"]:
        measure(case, spec, result, lambda words: write("step", words))
        write("result.json", json.dumps(result))
    result["finished"] = True
    write("result.json", json.dumps(result))


main(sys.argv[1])
