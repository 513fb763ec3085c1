"""`longshore bench halo`: filling ghost cells, beside memory copies, hand-packed MPI, MPI_Neighbor_alltoallw and PETSc's DMDA.

All contenders of a case take turns within each round of one run (PETSc where it can: its Python and its MPI are others, so it has a
run of its own); every rank rewrites all of its own cells before every repetition, and all ghost cells are compared with what their
global indices say before and after a contender is timed. Where a peer can do the same in several ways, it is the fastest of them
that takes part.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from . import halo_planning, halo_report, report
from .halo_cases import CELLS, COPY, MEMCPY, NAMES, PETSC, QUICK_CELLS, HaloCase, every_case
from .halo_petsc import measure as measure_petsc
from .harness import (
    BenchError,
    ChildEnd,
    Launcher,
    available_memory,
    machine,
    run_child,
    run_until_done,
    version,
)
from .redistribute import _grouped, _launcher

_WORKER = "longshore.bench.halo_worker"
_BINDS = (1, 4, 16)  # boxes along each dimension
_ARRAYS = 3  # of a rank: in ordinary memory, in shared memory, and the copies' own


def run(
    quick: bool = False,
    json: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
    *,
    mpiexec: str | None = None,
    cases: Iterable[str] | None = None,
    sizes: Iterable[int] | None = None,
    repeats: int | None = None,
    ranks: int = 2,
    contenders: Iterable[str] | None = None,
    console: Any = None,
) -> dict[str, Any]:
    """Runs the bench, prints its tables, writes what was asked for and returns what `json` holds.

    `mpiexec` names the launcher (default: this environment's own). `cases`, `sizes` (n³ cells a rank), `repeats` and
    `contenders` narrow it down; the copies always take part."""
    chosen = list(NAMES) if contenders is None else [n for n in NAMES if n in {*contenders, COPY, MEMCPY}]
    extents = sorted({QUICK_CELLS if quick else CELLS} if sizes is None else set(sizes))
    wanted = _wanted(extents, ranks, cases)
    _check(repeats, ranks, contenders)
    report.check_outputs(json, plot)
    screen = report.Screen(console)
    rounds, stall = repeats or (5 if quick else 15), 25.0 if quick else 180.0

    launcher, mpi, why = _launcher(mpiexec)
    missing: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    wanted, too_large = _fitting(wanted)
    missing += too_large
    with screen.working() as on_step:
        if launcher is None:
            missing += [{"contender": name, "why": why, "cases": []} for name in chosen if name not in PETSC]
        else:
            rows, missing_here = _measure(launcher, wanted, chosen, rounds, stall, on_step)
            missing += missing_here
        found, absent = measure_petsc(wanted, chosen, rounds, stall, on_step)
        on_step("planning/by itself")
        plans, unplanned = halo_planning.measure(quick, repeats or (5 if quick else 11))
    result = {
        "bench": "halo",
        "version": version(),
        "quick": quick,
        "machine": machine(mpi.get("library")),
        "mpi": {k: v for k, v in mpi.items() if k != "mapped"} or None,
        "contenders": chosen,
        "rows": _with_ratios(rows + found) + plans,
        "missing": _grouped(missing + absent + unplanned),
        "notes": [_NOTE],
    }
    halo_report.print_result(screen, result)
    report.write_files(result, json, plot, lambda: halo_report.figure(result), lambda: halo_report.html_tables(result))
    return result


_NOTE = (
    f"× is the time over that of {COPY!r}: each rank writes as many ghost cells from its own memory, where they lie. {MEMCPY!r} is a "
    "memcpy of as many bytes from one place to another, which no exchange can be where ghost cells are apart."
)


def _wanted(sizes: list[int], ranks: int, keys: Iterable[str] | None) -> list[HaloCase]:
    if ranks < 1:
        raise BenchError("ranks must be positive")
    wanted = [case for n in sizes for case in every_case(n, ranks)]
    if keys is not None:
        there = list(dict.fromkeys(case.key for case in wanted))
        for key in keys:
            if key not in there:
                raise BenchError(f"no case {key!r}: there are {', '.join(there)}")
        wanted = [case for case in wanted if case.key in set(keys)]
    for n in sizes:
        if n < 12 or n % 4 or n * ranks > 2048:
            raise BenchError(f"sizes are multiples of 4, at least 12, and at most 2048 for all ranks together, not {n}")
    return wanted


def _check(repeats: int | None, ranks: int, contenders: Iterable[str] | None) -> None:
    for name in contenders or ():
        if name not in NAMES:
            raise BenchError(f"no contender {name!r}: there are {', '.join(NAMES)}")
    if repeats is not None and repeats < 1:
        raise BenchError("repeats must be positive")


def _fitting(wanted: list[HaloCase]) -> tuple[list[HaloCase], list[dict[str, Any]]]:
    """The cases that there is memory for, and the others as missing."""
    there, fitting, missing = available_memory(), [], []
    for case in wanted:
        need = 2 * _ARRAYS * 8 * case.n**3 * case.ranks  # twice: ghost cells, buffers, what the peers hold
        if there is not None and need > there:
            why = f"needs {need / 1e9:.1f} GB of memory, and {there / 1e9:.1f} GB are free"
            missing.append({"contender": "all", "why": why, "cases": [case.name]})
        else:
            fitting.append(case)
    return fitting, missing


def _measure(
    launcher: Launcher,
    wanted: list[HaloCase],
    names: list[str],
    rounds: int,
    stall: float,
    on_step: Callable[[str], None],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    by_name = {case.name: case for case in wanted}
    if not wanted:
        return [], []
    ranks = wanted[0].ranks
    binds = [asdict(HaloCase(27, 1, boxes, "x", wanted[-1].n, ranks)) for boxes in _BINDS if wanted[-1].n % boxes == 0]

    def start(left: list[str], names: list[str]) -> ChildEnd:
        cases = [asdict(by_name[name]) for name in left]
        spec = {"mpi": True, "ranks": ranks, "repeats": rounds, "cases": cases, "contenders": names, "binds": binds}
        return run_child(_WORKER, spec, launcher=launcher, ranks=ranks, stall_seconds=stall, on_step=on_step)

    return run_until_done(start, list(by_name), [name for name in names if name not in PETSC])


def _with_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    copies = {(row["case"], row["n"]): row["seconds_median"] for row in rows if row["contender"] == COPY}
    for row in rows:
        copy = copies.get((row["case"], row["n"]))
        row["copy_ratio"] = None if copy is None or not row["payload_bytes"] else row["seconds_median"] / copy
    return rows
