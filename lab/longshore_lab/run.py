"""Carries a bench out: its cases here or in children under mpiexec, then the tables and the files.

The children are this module too: `python -m longshore_lab.run SPEC.json`, on every rank.
"""

import json as json_module
import os
import sys
import traceback
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from rich.console import Console

from . import launch, report
from .machine import available_memory, describe_mpi, machine, without_collector
from .protocol import Context, missing


def run(kind, quick=False, json=None, plot=None, *, console=None, **options):
    """Runs a bench with its options, prints its tables, writes what was asked for and returns what `json` holds."""
    bench, console = kind(quick, **options), console or Console()
    report.check_outputs(json, plot)
    try:
        with report.working(console) as step:
            mpi, rows, lacking = (_under_mpi if bench.mpi else _here)(bench, step)
            others, absent = bench.beside(step)
    finally:
        bench.close()
    result = {
        "bench": bench.name,
        "version": metadata.version("longshore"),
        "quick": quick,
        "machine": machine(mpi.get("library")),
        "contenders": bench.chosen,
        "rows": rows + others,
        "missing": together(lacking + absent),
        "notes": bench.notes(),
    }
    if bench.mpi:
        result["mpi"] = {name: what for name, what in mpi.items() if name != "mapped"} or None
    bench.finish(result)
    report.show(console, bench, result)
    report.write(bench, result, json, plot)
    return result


def together(lacking):
    """One entry a contender and reason, with all its cases."""
    cases = {}
    for m in lacking:
        cases.setdefault((m["contender"], m["why"]), []).extend(m["cases"])
    return [missing(*key, *of) for key, of in cases.items()]


def too_large(case):
    """The case as missing, in a list, where there is no memory for it."""
    need, there = case.needed_bytes, available_memory()
    why = f"needs {need / 1e9:.1f} GB of memory, and {there / 1e9:.1f} GB are free"
    return [missing("all", why, case.name)] if need > there else []


def _here(bench, step):
    rows, lacking, context, contenders = [], [], Context(step=step), bench.contenders()
    with without_collector():
        for case in bench.cases:
            step(f"{case.name}/preparing")
            absent = too_large(case)
            found = ([], absent) if absent else bench.measure(context, case, contenders, bench.rounds(case))
            rows += found[0]
            lacking += found[1]
    cases = {case.name: case for case in bench.cases if not too_large(case)} if len(bench.kernels) > 1 else {}
    for kernels in bench.kernels[1:]:  # which a process chooses once
        found, absent = _in_children(bench, kernels, cases, bench.of_kernels([c.name for c in contenders]), step)
        rows, lacking = rows + found, lacking + absent
    return {}, rows, lacking


def _in_children(bench, kernels, cases, names, step, launcher=None, env=None):
    """(rows, missing) of cases with one set of copy kernels, in processes of their own."""

    def start(left, names):
        what = {"cases": [(asdict(cases[name]), bench.rounds(cases[name])) for name in left], "contenders": [*names]}
        ranks = bench.ranks if bench.mpi else 1
        spec = {"bench": bench.name, "mpi": launcher is not None, "ranks": ranks, **what}
        how = {"launcher": launcher, "ranks": ranks, "env": {**(env or {}), "LONGSHORE_KERNELS": kernels}}
        return launch.run_child(spec, **how, on_step=step, stall_seconds=bench.stall_seconds[not bench.quick])

    return launch.run_until_done(start, list(cases), names)


def _under_mpi(bench, step):
    """What MPI there is, and what was measured with it; without one, those who need none."""
    launcher, mpi, why = launch.find_mpi(bench.mpiexec)
    contenders, lacking = bench.contenders(), []
    if launcher is None:
        lacking = [missing(c.name, why) for c in contenders if c.needs_mpi and c.name in bench.chosen]
        contenders = [c for c in contenders if not c.needs_mpi]
    absent = {case.name: too_large(case) for case in bench.cases}
    cases = {case.name: case for case in bench.cases if not absent[case.name]}
    lacking += [m for found in absent.values() for m in found]
    with launch.scalapack_environment(mpi) as env:
        rows, names = [], [contender.name for contender in contenders]
        for kernels in bench.kernels:
            found, absent = _in_children(bench, kernels, cases, names, step, launcher, env)
            rows, lacking = rows + found, lacking + absent
            names = bench.of_kernels(names)
    return mpi, rows, lacking


def _bind(comm):
    """Gives each rank a core of its own where mpiexec has not. Returns all cores of all ranks. Collective."""
    everyone = [os.sched_getaffinity(0)] if comm is None else comm.allgather(os.sched_getaffinity(0))
    union = set().union(*everyone)
    if len(union) >= len(everyone) > 1 and all(cores == union for cores in everyone):
        os.sched_setaffinity(0, {sorted(union)[comm.rank]})
    return union


def _work(file):
    """The part of a bench that runs on every rank, and alone for contenders that need one process only."""
    spec, comm, rank = json_module.loads(Path(file).read_text()), None, 0
    result = {"rows": [], "missing": [], "done": []}

    def write(name, text):
        if rank == 0:
            beside = Path(file).with_name(name + ".new")
            beside.write_text(text)
            os.replace(beside, Path(file).with_name(name))

    if spec["mpi"]:
        from mpi4py import MPI

        comm, result["mpi"] = MPI.COMM_WORLD, describe_mpi()
        rank, size = comm.rank, comm.size
        if size != spec["ranks"]:
            other = f"mpi4py has loaded another MPI ({result['mpi']['library']})"
            raise RuntimeError(f"error: mpiexec started {spec['ranks']} processes, and each sees {size}: {other}")
    if spec["bench"] is not None:
        from . import BENCHES

        family, bench = result.get("mpi", {}).get("family", ""), BENCHES[spec["bench"]]()
        context = Context(comm, spec["ranks"], rank, family, _bind(comm), lambda words: write("step", words))
        contenders = bench.of_names(spec["contenders"])
        for facts, rounds in spec["cases"]:
            case = bench.Case(**facts)
            rows, missing = bench.measure(context, case, contenders, rounds)
            result["rows"] += rows
            result["missing"] += missing
            result["done"].append(case.name)
            write("result.json", json_module.dumps(result))
    write("result.json", json_module.dumps({**result, "finished": True}))


if __name__ == "__main__":
    try:
        _work(sys.argv[1])
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        if "mpi4py.MPI" in sys.modules and sys.modules["mpi4py.MPI"].Is_initialized():
            sys.modules["mpi4py.MPI"].COMM_WORLD.Abort(1)
        sys.exit(1)
