"""Runs applications on the communicator's ranks, in these variants; each verifies its own result."""

import importlib
import sys

import longshore as ls
from mpi4py import MPI

module = importlib.import_module(f"longshore_lab._apps_{ls.mpi_family()}")
world = MPI.COMM_WORLD.handle
variants, *problems = sys.argv[1:]

for words in problems:  # NAME:CLASS, or NAME:SIZE:PANEL or ITERATIONS
    name, *rest = words.split(":")
    if absent := module.missing(name):
        if MPI.COMM_WORLD.rank == 0:
            print(f"{name} missing: {absent}")
        continue
    problem = (rest[0], 0, 0, 0) if rest[0].isalpha() else ("S", int(rest[0]), int(rest[1]), int(rest[1]))
    for variant in variants.split(","):
        variant, _, parts = variant.partition("/")
        result = module.run(world, name, *problem, variant, int(parts or 1))
        assert result["verified"], (words, variant, result)
        assert 0 <= result["error"] <= result["tolerance"], (words, variant, result)
        assert result["payload_bytes"] > 0 or MPI.COMM_WORLD.size == 1, (words, variant, result)
    if MPI.COMM_WORLD.rank == 0:
        print(f"{words} verified", flush=True)

try:
    module.run(world, "mg", "Z", 0, 0, 0, "longshore")
except Exception as error:
    assert "Z" in str(error), error
else:
    raise AssertionError("class Z was not refused")
try:
    module.run(world, "redblack3d", "S", 8, 0, 1, "windows")
except Exception as error:
    assert "redblack3d has no variant windows" in str(error), error
else:
    raise AssertionError("an application without windows was run with them")
if MPI.COMM_WORLD.rank == 0:
    print("all done")
