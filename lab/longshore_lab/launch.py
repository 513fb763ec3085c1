"""Programs of their own for what is timed: a child under mpiexec that keeps its results in a file."""

import contextlib
import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from longshore import TransportError
from longshore.tune import launcher as launchers
from longshore.tune.launcher import Launcher, child_environment

from .protocol import BenchError, missing

__all__ = ["ChildEnd", "Launcher", "child_environment", "find_launcher", "find_mpi", "last_words", "run_child"]


def find_launcher(mpiexec=None):
    """The mpiexec that was named, else this environment's own, else the one on the path."""
    try:
        return launchers.find_launcher(mpiexec)
    except TransportError as error:
        raise BenchError(str(error)) from None


def find_mpi(mpiexec):
    """The launcher and what MPI it starts, from a trial run; or why there is no MPI, an error where one was named."""
    try:
        if importlib.util.find_spec("mpi4py") is None:
            raise BenchError("mpi4py is not installed (pip install 'longshore[mpi]')")
        launcher = find_launcher(mpiexec)
        return launcher, _mpi_of(launcher), ""
    except BenchError as error:
        if mpiexec is not None:
            raise
        return None, {}, str(error)


@functools.cache
def _mpi_of(launcher):
    """What MPI it starts, from a trial run."""
    trial = run_child({"bench": None, "mpi": True, "ranks": 2}, launcher=launcher, ranks=2, stall_seconds=30.0)
    if trial.trouble is not None:
        raise BenchError(f"a trial run under mpiexec {trial.trouble}")
    return trial.result["mpi"]


@contextlib.contextmanager
def scalapack_environment(mpi):
    """Lets a ScaLAPACK that asks for Debian's libmpich.so.12 find the MPICH of that ABI that mpi4py has loaded."""
    loaded = [p for p in mpi.get("mapped", []) if os.path.basename(p).startswith("libmpi.so.12")]
    if mpi.get("family") != "mpich" or not loaded:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="longshore-bench-") as folder:
        os.symlink(loaded[0], Path(folder) / "libmpich.so.12")
        yield {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))}


class ChildEnd(NamedTuple):
    """How a child ended: its result file, the step it was at, and why it stopped short (None where it did not)."""

    result: dict
    step: str
    trouble: str


def run_child(spec, *, launcher=None, ranks=1, env=None, stall_seconds=180.0, on_step=None, program=None):
    """Runs a program with SPEC as its argument under mpiexec (alone without a launcher) and brings its results back.

    The child (longshore_lab.run, where no program is named) writes result.json as it goes and names what it is doing in
    step, both beside its specification: what was measured before a crash is kept, and the culprit is known.
    """
    with tempfile.TemporaryDirectory(prefix="longshore-bench-") as folder:
        place = Path(folder)
        (place / "spec.json").write_text(json.dumps(spec))
        words = [] if launcher is None else launcher.arguments(ranks)
        words += [*(program or (sys.executable, "-m", "longshore_lab.run")), str(place / "spec.json")]
        with (place / "output").open("wb") as output:
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(words, **streams, env=child_environment(env), start_new_session=True)
            try:
                step, stalled = _watch(process, place / "step", stall_seconds, on_step)
            finally:
                launchers.end(process)
        result, trouble = {}, None
        with contextlib.suppress(OSError, ValueError):
            result = json.loads((place / "result.json").read_text())
        if stalled:
            trouble = f"made no progress for {stall_seconds:.0f} s and was ended"
        elif process.returncode != 0 or not result.get("finished"):
            trouble = f"ended with code {process.returncode}: {last_words(place / 'output')}"
        return ChildEnd(result, step, trouble)


def run_until_done(start, cases, names):
    """(rows, missing) of every case: children anew without the culprit when a contender takes one down.

    `start` runs one with the names of the cases and contenders that are left; its steps are CASE/CONTENDER/WORDS."""
    rows, lacking, left, names = [], [], list(cases), list(names)
    while left and names:
        end = start(left, names)
        rows += end.result.get("rows", [])
        lacking += end.result.get("missing", [])
        left = [case for case in left if case not in end.result.get("done", [])]
        if end.trouble is None:
            break
        parts = end.step.split("/")
        culprit = parts[1] if len(parts) == 3 and parts[1] in names else None
        lacking.append(missing(culprit or "all", f"the run {end.trouble}", *left))
        if culprit is None:
            break
        names.remove(culprit)
    return rows, lacking


def _watch(process, step_file, stall_seconds, on_step):
    """The last step, and whether it took too long."""
    step, since = "", time.monotonic()
    while True:
        running = process.poll() is None
        with contextlib.suppress(OSError):
            now = step_file.read_text()
            if now and now != step:
                step, since = now, time.monotonic()
                if on_step is not None:
                    on_step(step)
        if not running or time.monotonic() - since > stall_seconds:
            return step, running
        time.sleep(0.05)


def last_words(output):
    with contextlib.suppress(OSError):
        return launchers.last_words(output.read_text(errors="replace"))
    return "no output"
