"""`longshore bench apps`: whole applications on Longshore beside their hand-written twins and their overlapped versions.

As in the Data Mover's section 3 (figure 6): Redblack3D, NAS-MG, NAS-FT and SUMMA, total time and the part of it that is communication.
All variants share their kernels and take turns within each round of one run, and every run verifies its result.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from . import apps_report, report
from .harness import BenchError, ChildEnd, machine, run_child, run_until_done, version
from .redistribute import _grouped, _launcher

_WORKER = "longshore.bench.apps_worker"
TWIN = "hand-written MPI"
VARIANTS = {"longshore": "longshore", "longshore overlapped": "overlapped", TWIN: "twin"}


@dataclass(frozen=True)
class App:
    """One application and its problem."""

    name: str
    title: str
    problem_class: str = "S"
    size: int = 0
    panel: int = 0
    iterations: int = 0


THOROUGH = (
    App("redblack3d", "Redblack3D 256³, 20 iterations", size=256, iterations=20),
    App("mg", "NAS-MG class A", "A"),
    App("ft", "NAS-FT class A", "A"),
    App("summa", "SUMMA 2048²", size=2048, panel=128),
)
QUICK = (
    App("redblack3d", "Redblack3D 96³, 10 iterations", size=96, iterations=10),
    App("mg", "NAS-MG class W", "W"),
    App("ft", "NAS-FT class W", "W"),
    App("summa", "SUMMA 768²", size=768, panel=96),
)


def run(
    quick: bool = False,
    json: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
    *,
    mpiexec: str | None = None,
    cases: Iterable[str] | None = None,
    repeats: int | None = None,
    ranks: int = 2,
    console: Any = None,
) -> dict[str, Any]:
    """Runs the bench, prints its table, writes what was asked for and returns what `json` holds.

    `mpiexec` names the launcher (default: this environment's own). `cases`: only these applications.
    """
    chosen = {app.name: app for app in (QUICK if quick else THOROUGH)}
    for name in cases or ():
        if name not in chosen:
            raise BenchError(f"no application {name!r}: there are {', '.join(chosen)}")
    if cases is not None and (wanted := set(cases)):
        chosen = {name: app for name, app in chosen.items() if name in wanted}
    if ranks < 1 or (repeats is not None and repeats < 1):
        raise BenchError("ranks and repeats must be positive")
    report.check_outputs(json, plot)
    screen = report.Screen(console)
    rounds = repeats or (3 if quick else 7)

    launcher, mpi, why = _launcher(mpiexec)
    rows: list[dict[str, Any]] = []
    missing: list[dict[str, Any]] = []
    with screen.working() as on_step:
        if launcher is None:
            missing += [{"contender": name, "why": why, "cases": []} for name in VARIANTS]
        else:

            def start(left: list[str], names: list[str]) -> ChildEnd:
                spec = {
                    "mpi": True,
                    "ranks": ranks,
                    "rounds": rounds,
                    "contenders": {n: VARIANTS[n] for n in names},
                    "apps": [asdict(chosen[name]) for name in left],
                }
                return run_child(_WORKER, spec, launcher=launcher, ranks=ranks, stall_seconds=120.0, on_step=on_step)

            rows, missing = run_until_done(start, list(chosen), list(VARIANTS))
    result = {
        "bench": "apps",
        "version": version(),
        "quick": quick,
        "machine": machine(mpi.get("library")),
        "mpi": {k: v for k, v in mpi.items() if k != "mapped"} or None,
        "rows": _with_ratios(rows),
        "missing": _grouped(missing),
    }
    apps_report.print_result(screen, result)
    report.write_files(result, json, plot, lambda: apps_report.figure(result), lambda: apps_report.html_tables(result))
    return result


def _with_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    twins = {row["case"]: row["seconds_median"] for row in rows if row["contender"] == TWIN}
    for row in rows:
        twin = twins.get(row["case"])
        row["twin_ratio"] = None if not twin else row["seconds_median"] / twin
    return rows
