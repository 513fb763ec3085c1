"""`longshore bench redistribute`: Longshore beside memory copies, MPI, ScaLAPACK, COSTA, mpi4py-fft and NumPy.

All contenders of a case take turns within each round of one run, sources are rewritten by their owners before every
repetition, and each result is checked against the owner formula before and after it is timed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import planning, report
from .cases import CASE_TITLES
from .contenders import CONTENDERS, COPY_NAMES
from .harness import BenchError, ChildEnd, Launcher, available_memory, find_launcher, machine, run_child, version

SIZES = (64, 1024, 8192)
QUICK_SIZES = (64, 1024)
# Arrays of every kind (local, shared, all in one process), messages, and what the peers allocate inside.
_MEMORY_PER_PAYLOAD = 12
_WORKER = "longshore.bench.worker"


def _repeats(n: int, quick: bool) -> int:
    for limit, thorough, brief in ((128, 201, 41), (2048, 31, 7)):
        if n <= limit:
            return brief if quick else thorough
    return 3 if quick else 7


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
    """Runs the bench, prints its table, writes what was asked for and returns what `json` holds.

    `mpiexec` names the launcher (default: this environment's own). `cases`, `sizes` (of n × n doubles), `repeats` and
    `contenders` narrow it down; memory copies always take part, as every ratio is to the better of them.
    """
    keys = list(cases) if cases is not None else list(CASE_TITLES)
    extents = sorted(sizes) if sizes is not None else list(QUICK_SIZES if quick else SIZES)
    names = [c.name for c in CONTENDERS]
    chosen = names if contenders is None else [n for n in names if n in {*contenders, *COPY_NAMES}]
    _check(keys, extents, repeats, ranks, contenders, names)
    report.check_outputs(json, plot)
    screen = report.Screen(console)

    plans, missing = planning.measure(5 if quick else 21)
    launcher, mpi, why = _launcher(mpiexec)
    if launcher is None:
        without = [c.name for c in CONTENDERS if c.needs_mpi and c.name in chosen]
        missing += [{"contender": name, "why": why, "cases": []} for name in without]
        chosen = [c.name for c in CONTENDERS if not c.needs_mpi and c.name in chosen]
    wanted = []
    for n in extents:
        need, there = _MEMORY_PER_PAYLOAD * 8 * n * n, available_memory()
        if there is not None and need > there:
            why = f"needs {need / 1e9:.1f} GB of memory, and {there / 1e9:.1f} GB are free"
            missing.append({"contender": "all", "why": why, "cases": [f"{k} {n}" for k in keys]})
        else:
            wanted += [(k, n, repeats or _repeats(n, quick)) for k in keys]
    with screen.working() as on_step, tempfile.TemporaryDirectory(prefix="longshore-bench-") as folder:
        env = _alias_environment(mpi, Path(folder))
        rows, left_out = _measure(launcher, env, ranks, wanted, chosen, 25.0 if quick else 180.0, on_step)
    result = {
        "bench": "redistribute",
        "version": version(),
        "quick": quick,
        "machine": machine(mpi.get("library")),
        "mpi": {k: v for k, v in mpi.items() if k != "mapped"} or None,
        "rows": _with_ratios(rows) + plans,
        "missing": _grouped(missing + left_out),
        "notes": [planning.COSTA_NOTE],
    }
    screen.print_result(result, CASE_TITLES)
    report.write(result, json, plot, CASE_TITLES)
    return result


def _check(
    keys: list[str],
    sizes: list[int],
    repeats: int | None,
    ranks: int,
    contenders: Iterable[str] | None,
    names: list[str],
) -> None:
    for key in keys:
        if key not in CASE_TITLES:
            raise BenchError(f"no case {key!r}: there are {', '.join(CASE_TITLES)}")
    for name in contenders or ():
        if name not in names:
            raise BenchError(f"no contender {name!r}: there are {', '.join(names)}")
    if any(n < 1 for n in sizes):
        raise BenchError("sizes must be positive")
    if repeats is not None and repeats < 1:
        raise BenchError("repeats must be positive")
    if ranks < 1:
        raise BenchError("ranks must be positive")


def _launcher(mpiexec: str | None) -> tuple[Launcher | None, dict[str, Any], str]:
    """The launcher and what MPI it starts, or why there is no MPI."""
    try:
        import mpi4py  # noqa: F401
    except ImportError:
        if mpiexec is not None:
            raise BenchError("--mpiexec needs mpi4py (pip install longshore[mpi])") from None
        return None, {}, "mpi4py is not installed (pip install longshore[mpi])"
    try:
        launcher = find_launcher(mpiexec)
    except BenchError as error:
        if mpiexec is not None:
            raise
        return None, {}, str(error)
    spec = {"mpi": True, "ranks": 2, "cases": [], "contenders": []}
    end = run_child(_WORKER, spec, launcher=launcher, ranks=2, stall_seconds=30.0)
    if end.trouble is not None:
        if mpiexec is not None:
            raise BenchError(f"a trial run under {mpiexec} {end.trouble}")
        return None, {}, f"a trial run under mpiexec {end.trouble}"
    return launcher, end.result["mpi"], ""


def _alias_environment(mpi: dict[str, Any], folder: Path) -> dict[str, str]:
    """Lets a ScaLAPACK that asks for Debian's `libmpich.so.12` find the MPICH that mpi4py has loaded.

    Both names mean the same ABI; the loader recognises the file behind the link as the one already in the process.
    """
    loaded = [p for p in mpi.get("mapped", []) if os.path.basename(p).startswith("libmpi.so.12")]
    if mpi.get("family") != "mpich" or not loaded:
        return {}
    os.symlink(loaded[0], folder / "libmpich.so.12")
    inherited = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": str(folder) + (os.pathsep + inherited if inherited else "")}


def _measure(
    launcher: Launcher | None,
    env: dict[str, str],
    ranks: int,
    wanted: list[tuple[str, int, int]],
    names: list[str],
    stall_seconds: float,
    on_step: Any,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Runs every case, starting the ranks anew without the culprit whenever a contender takes them down."""
    rows: list[dict[str, Any]] = []
    missing: list[dict[str, Any]] = []
    names, left = list(names), list(wanted)
    while left and names:
        spec = {"mpi": launcher is not None, "ranks": ranks, "cases": left, "contenders": names}
        end = run_child(
            _WORKER, spec, launcher=launcher, ranks=ranks, extra_env=env, stall_seconds=stall_seconds, on_step=on_step
        )
        rows += end.result.get("rows", [])
        for m in end.result.get("missing", []):
            missing.append({"contender": m["contender"], "why": m["why"], "cases": [f"{m['case']} {m['n']}"]})
        done = set(end.result.get("done", []))
        left = [w for w in left if f"{w[0]} {w[1]}" not in done]
        if end.trouble is None:
            break
        culprit = _culprit(end, names)
        on = [f"{k} {n}" for k, n, _ in left]
        if culprit is None:
            missing.append({"contender": "all", "why": f"the run {end.trouble}", "cases": on})
            break
        names.remove(culprit)
        missing.append({"contender": culprit, "why": f"the run {end.trouble}", "cases": on})
    return rows, missing


def _culprit(end: ChildEnd, names: list[str]) -> str | None:
    parts = end.step.split("/")
    return parts[1] if len(parts) == 3 and parts[1] in names else None


def _with_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    best: dict[tuple[str, int], float] = {}
    for row in rows:
        if row["contender"] in COPY_NAMES:
            key = (row["case"], row["n"])
            best[key] = min(best.get(key, float("inf")), row["seconds_median"])
    for row in rows:
        copy = best.get((row["case"], row["n"]))
        row["copy_ratio"] = None if not copy else row["seconds_median"] / copy
    return rows


def _grouped(missing: list[dict[str, Any]]) -> list[dict[str, Any]]:
    grouped: dict[tuple[str, str], list[str]] = {}
    for m in missing:
        grouped.setdefault((m["contender"], m["why"]), []).extend(m["cases"])
    return [{"contender": c, "why": w, "cases": cases} for (c, w), cases in grouped.items()]
