"""PETSc's DMDA for `longshore bench halo`: in a run of its own, with the interpreter and the MPI that petsc4py is
installed for.

This module finds them. What runs there is `petsc_child.py`, a program that needs neither Longshore nor mpi4py.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from ..launch import child_environment, find_launcher, run_child
from ..machine import summary
from ..protocol import BenchError, missing

PETSC = ("PETSc DMDA globalToLocal", "PETSc DMDA localToLocal")
_CHILD = Path(__file__).with_name("petsc_child.py")
_DEBIAN = "/usr/lib/petscdir"  # petsc4py lies beside the PETSc that it is built for
_TRIAL_SECONDS = 30.0


def measure(cases, names, repeats, stall_seconds, on_step):
    """(rows, missing) of those among `names` that are PETSc's. DMDA has one box a rank."""
    names = [name for name in PETSC if name in names]
    by_name = {case.name: case for case in cases if case.boxes == 1}
    if not names or not by_name:
        return [], []
    ranks = next(iter(by_name.values())).ranks
    on_step("PETSc/looking for it")
    found = _find(ranks)
    if isinstance(found, str):
        return [], [missing(name, found) for name in names]
    *place, where = found
    described = [{**asdict(case), "name": name} for name, case in by_name.items()]
    end = _run(*place, ranks, repeats, names, described, stall_seconds, on_step)
    how = {
        "processes": ranks,
        "threads": 1,
        "detail": f"in a run of its own: {where}",
        "own_run": True,
        "verified": True,
    }
    rows = [
        {**by_name[row["case"]].facts(), "contender": row["contender"], **summary(row["seconds"]), **how}
        for row in end.result.get("rows", [])
    ]
    lacking = list(end.result.get("missing", []))
    if end.trouble is not None:
        left = [name for name in by_name if name not in end.result.get("done", [])]
        lacking += [missing(name, f"the run {end.trouble}", *left) for name in names]
    return rows, lacking


def _run(python, env, launcher, ranks, repeats=0, names=(), cases=(), stall_seconds=_TRIAL_SECONDS, on_step=None):
    spec = {"ranks": ranks, "repeats": repeats, "contenders": list(names), "cases": list(cases)}
    how = {"launcher": launcher, "ranks": ranks, "env": env, "stall_seconds": stall_seconds, "on_step": on_step}
    return run_child(spec, program=(python, str(_CHILD)), **how)


def _find(ranks):
    """The interpreter, what it needs in the environment, the launcher and the libraries; or why there is no PETSc."""
    why = "petsc4py is not installed (Debian: python3-petsc4py)"
    for python, env in _interpreters():
        for mpiexec in _launchers(python):
            try:
                launcher = find_launcher(mpiexec)
            except BenchError:
                continue
            end = _run(python, env, launcher, ranks)
            if end.trouble is None:
                return python, env, launcher, end.result["libraries"]
            why = f"petsc4py is installed, but its run {end.trouble}"
    return why


def _interpreters():
    """Interpreters that can import petsc4py, and what they need in the environment for it."""
    pythons = [sys.executable, shutil.which("python3"), shutil.which("python3", path="/usr/bin:/usr/local/bin")]
    settings = [{}, *({"PETSC_DIR": str(place)} for place in sorted(Path(_DEBIAN).glob("*/*")) if place.is_dir())]
    for python in dict.fromkeys(filter(None, pythons)):
        for env in settings:
            trial = [python, "-c", "from petsc4py import PETSc"]
            try:
                done = subprocess.run(trial, capture_output=True, env=child_environment(env), timeout=_TRIAL_SECONDS)
            except (OSError, subprocess.TimeoutExpired):
                continue
            if done.returncode == 0:
                yield python, env


def _launchers(python):
    """The one beside the interpreter, then those by Debian's names and the one on the path."""
    beside = str(Path(python).with_name("mpiexec"))
    names = [beside if os.access(beside, os.X_OK) else None, "mpiexec.openmpi", "mpiexec.mpich", "mpiexec"]
    return list(filter(None, dict.fromkeys(shutil.which(name) for name in names if name)))
