"""Programs of their own for what is timed: a child under mpiexec that keeps its results in a file, and the launcher for
it."""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from .protocol import BenchError, missing


class Launcher(NamedTuple):
    """An mpiexec and the words it understands."""

    command: tuple
    family: str  # "openmpi", "hydra" or "unknown"

    def arguments(self, ranks):
        fits, words = ranks <= len(os.sched_getaffinity(0)), [*self.command, "-n", str(ranks)]
        if self.family == "openmpi":
            return [*words, *(["--bind-to", "core"] if fits else ["--bind-to", "none", "--oversubscribe"])]
        return [*words, "-bind-to", "core"] if self.family == "hydra" and fits else words


def find_launcher(mpiexec=None):
    """The mpiexec that was named, else this environment's own, else the one on the path."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = shutil.which(mpiexec or (beside if os.access(beside, os.X_OK) else "mpiexec"))
    if found is None:
        own = "no mpiexec in this environment (pip install 'longshore[mpi]' brings one)"
        raise BenchError(own if mpiexec is None else f"no such mpiexec: {mpiexec}")
    try:
        told = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, env=child_environment())
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"mpiexec does not run: {error}") from None
    words = (told.stdout + told.stderr).lower()
    families = {"openmpi": ("open mpi", "openrte", "openmpi", "prrte", "prterun"), "hydra": ("hydra", "intel")}
    there = (family for family, names in families.items() if any(name in words for name in names))
    return Launcher((found,), next(there, "unknown"))


def find_mpi(mpiexec):
    """The launcher and what MPI it starts, from a trial run; or why there is no MPI, an error where one was named."""
    try:
        if importlib.util.find_spec("mpi4py") is None:
            raise BenchError("mpi4py is not installed (pip install 'longshore[mpi]')")
        launcher = find_launcher(mpiexec)
        end = run_child({"bench": None, "mpi": True, "ranks": 2}, launcher=launcher, ranks=2, stall_seconds=30.0)
        if end.trouble is not None:
            raise BenchError(f"a trial run under mpiexec {end.trouble}")
        return launcher, end.result["mpi"], ""
    except BenchError as error:
        if mpiexec is not None:
            raise
        return None, {}, str(error)


def child_environment(extra=None):
    env = {"OMP_NUM_THREADS": "1", **os.environ}  # a peer's BLAS must not start threads on the other rank's core
    if os.geteuid() == 0:  # containers; Open MPI refuses root without these
        for name in ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"):
            env[name] = env[name + "_CONFIRM"] = "1"
    return {**env, **(extra or {})}


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
                _end(process)
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


def _end(process):
    """Ends the whole group of the child, which is a session of its own."""
    for sign, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 10.0)):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)


def last_words(output):
    lines = []
    with contextlib.suppress(OSError):
        lines = [line.strip() for line in output.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() or "signal" in line.lower()]
    return (telling or lines or ["no output"])[-1][:300]
