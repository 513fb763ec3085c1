"""PETSc's DMDA for `longshore bench halo`: in a run of its own, with the interpreter and the MPI that petsc4py is installed for.

This module finds them. What runs there is `halo_petsc_child.py`, a program that needs neither Longshore nor mpi4py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .halo_cases import PETSC, HaloCase
from .harness import BenchError, Launcher, child_environment, find_launcher, run_child, summary

_CHILD = Path(__file__).with_name("halo_petsc_child.py")
_DEBIAN = "/usr/lib/petscdir"  # petsc4py lies beside the PETSc that it is built for
_TRIAL_SECONDS = 30.0


def measure(
    cases: Sequence[HaloCase], names: Sequence[str], repeats: int, stall_seconds: float, on_step: Callable[[str], None]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of those among `names` that are PETSc's, and what is missing of them. DMDA has one box a rank."""
    names = [name for name in PETSC if name in names]
    cases = [case for case in cases if case.boxes == 1]
    if not names or not cases:
        return [], []

    def missing(why: str, left: Sequence[HaloCase]) -> list[dict[str, Any]]:
        return [{"contender": name, "why": why, "cases": [case.name for case in left]} for name in names]

    on_step("PETSc/looking for it")
    found = _find(cases[0].ranks)
    if isinstance(found, str):
        return [], missing(found, [])
    python, env, launcher, where = found
    spec = {
        "ranks": cases[0].ranks,
        "repeats": repeats,
        "contenders": names,
        "cases": [_described(case) for case in cases],
    }
    end = run_child(
        "",
        spec,
        launcher=launcher,
        ranks=cases[0].ranks,
        extra_env=env,
        stall_seconds=stall_seconds,
        on_step=on_step,
        program=(python, str(_CHILD)),
    )
    by_name = {case.name: case for case in cases}
    rows = [
        {
            **by_name[row["case"]].facts(),
            "contender": row["contender"],
            **summary(row["seconds"]),
            "processes": cases[0].ranks,
            "threads": 1,
            "detail": f"in a run of its own: {where}",
            "own_run": True,
            "verified": True,
        }
        for row in end.result.get("rows", [])
    ]
    wrong = [
        {"contender": m["contender"], "why": m["why"], "cases": [m["case"]]} for m in end.result.get("missing", [])
    ]
    if end.trouble is not None:
        done = set(end.result.get("done", []))
        wrong += missing(f"the run {end.trouble}", [case for case in cases if case.name not in done])
    return rows, wrong


def _described(case: HaloCase) -> dict[str, Any]:
    return {**asdict(case), "name": case.name}


def _find(ranks: int) -> tuple[str, dict[str, str], Launcher, str] | str:
    """The interpreter, what its environment needs, the launcher
    and the libraries in words; or why there is no PETSc."""
    why = "petsc4py is not installed (Debian: python3-petsc4py)"
    for python, env in _interpreters():
        for mpiexec in _launchers(python):
            try:
                launcher = find_launcher(mpiexec)
            except BenchError:
                continue
            spec = {"ranks": ranks, "repeats": 0, "contenders": [], "cases": []}
            end = run_child(
                "",
                spec,
                launcher=launcher,
                ranks=ranks,
                extra_env=env,
                stall_seconds=_TRIAL_SECONDS,
                program=(python, str(_CHILD)),
            )
            if end.trouble is None:
                return python, env, launcher, end.result["libraries"]
            why = f"petsc4py is installed, but its run {end.trouble}"
    return why


def _interpreters() -> Iterator[tuple[str, dict[str, str]]]:
    """Interpreters that can import petsc4py."""
    pythons = [sys.executable, shutil.which("python3"), shutil.which("python3", path="/usr/bin:/usr/local/bin")]
    settings: list[dict[str, str]] = [{}]
    settings += [{"PETSC_DIR": str(place)} for place in sorted(Path(_DEBIAN).glob("*/*")) if place.is_dir()]
    for python in dict.fromkeys(filter(None, pythons)):
        for env in settings:
            trial = [python, "-c", "from petsc4py import PETSc"]
            try:
                done = subprocess.run(
                    trial, capture_output=True, env=child_environment(env), timeout=_TRIAL_SECONDS, check=False
                )
            except (OSError, subprocess.TimeoutExpired):
                continue
            if done.returncode == 0:
                yield python, env


def _launchers(python: str) -> list[str]:
    """The one beside the interpreter, then those by Debian's names and the one on the path."""
    beside = str(Path(python).with_name("mpiexec"))
    names = [beside if os.access(beside, os.X_OK) else None, "mpiexec.openmpi", "mpiexec.mpich", "mpiexec"]
    return [found for found in dict.fromkeys(shutil.which(name) for name in names if name) if found is not None]
