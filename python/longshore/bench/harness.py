"""What every bench needs: the machine in words, statistics, interleaved timing, and a child under mpiexec."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ArgumentError

STALL_SECONDS = 180.0
_POLL_SECONDS = 0.05
_NAP_SECONDS = 0.0003


class BenchError(ArgumentError):
    """The bench cannot run as asked."""


# --- the machine -----------------------------------------------------------------------------------------------------


def machine(mpi_library: str | None = None) -> dict[str, Any]:
    """Describes the machine and the software that matter to a timing. Names no host, no user and no path."""
    import numpy

    described: dict[str, Any] = {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "caches": _caches(),
        "memory_bytes": _memory("MemTotal"),
        "system": platform.system(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "mpi": mpi_library,
    }
    return described


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    found: dict[str, str] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        with contextlib.suppress(OSError):
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            found[f"L{level}{'' if kind == 'Unified' else kind[0].lower()}"] = size
    return found


def _memory(field: str) -> int | None:
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return None


def available_memory() -> int | None:
    return _memory("MemAvailable")


def version() -> str:
    """Longshore's version, or `unknown` in a checkout that is not installed."""
    from importlib import metadata

    try:
        return metadata.version("longshore")
    except metadata.PackageNotFoundError:
        return "unknown"


# --- statistics and timing -------------------------------------------------------------------------------------------


def summary(seconds: list[float]) -> dict[str, Any]:
    return {
        "seconds_median": statistics.median(seconds),
        "seconds_min": min(seconds),
        "seconds_max": max(seconds),
        "repeats": len(seconds),
    }


def nap_barrier(comm: Any) -> None:
    """A barrier whose waiting ranks sleep, so that one rank may use every core meanwhile. Collective."""
    if comm is None:
        return
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(_NAP_SECONDS)


@contextlib.contextmanager
def on_cores(cores: set[int] | None) -> Iterator[None]:
    """Lets the calling thread, and the threads it starts, run on other cores for a while."""
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    was = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def timed(comm: Any, run: Callable[[], Any]) -> float:
    """Barrier, start, run, stop: this rank's seconds. The caller takes the maximum over the ranks. Collective."""
    if comm is not None:
        comm.Barrier()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


# --- a child under mpiexec -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Launcher:
    """An mpiexec and the words it understands."""

    command: tuple[str, ...]
    family: str  # "openmpi", "hydra" or "unknown"

    def arguments(self, ranks: int) -> list[str]:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        words = [*self.command, "-n", str(ranks)]
        if self.family == "openmpi":
            words += ["--bind-to", "core"] if ranks <= cores else ["--bind-to", "none", "--oversubscribe"]
        elif self.family == "hydra" and ranks <= cores:
            words += ["-bind-to", "core"]
        return words


def find_launcher(mpiexec: str | None = None) -> Launcher:
    """The mpiexec that was named, else this environment's own, else the one on the path."""
    if mpiexec is not None:
        found = shutil.which(mpiexec)
        if found is None:
            raise BenchError(f"no such mpiexec: {mpiexec}")
    else:
        beside = Path(sys.executable).with_name("mpiexec")
        found = str(beside) if os.access(beside, os.X_OK) else shutil.which("mpiexec")
        if found is None:
            raise BenchError("no mpiexec in this environment (pip install longshore[mpi] brings one)")
    try:
        told = subprocess.run(
            [found, "--version"], capture_output=True, text=True, timeout=30, env=child_environment(), check=False
        )
        words = (told.stdout + told.stderr).lower()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"mpiexec does not run: {error}") from None
    if "open mpi" in words or "openrte" in words or "openmpi" in words or "prrte" in words or "prterun" in words:
        return Launcher((found,), "openmpi")
    return Launcher((found,), "hydra" if "hydra" in words or "intel" in words else "unknown")


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    env = dict(os.environ)
    env.setdefault("OMP_NUM_THREADS", "1")  # a peer's BLAS must not start threads on the other rank's core
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # containers; Open MPI refuses root without these
        for name in ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"):
            env[name] = env[name + "_CONFIRM"] = "1"
    env.update(extra or {})
    return env


@dataclass
class ChildEnd:
    """How a child ended: its result file, the step it was at, and why it stopped short (None where it did not)."""

    result: dict[str, Any]
    step: str
    trouble: str | None


def run_child(
    module: str,
    spec: Mapping[str, Any],
    *,
    launcher: Launcher | None,
    ranks: int = 1,
    extra_env: Mapping[str, str] | None = None,
    stall_seconds: float = STALL_SECONDS,
    on_step: Callable[[str], None] | None = None,
    program: Sequence[str] = (),
) -> ChildEnd:
    """Runs `python -m module SPEC` under mpiexec (alone without a launcher) and brings its results back.

    `program`: the words to run in place of `python -m module`, for what needs another interpreter.

    The child writes `result.json` as it goes and names what it is doing in `step`, both in the folder of its
    specification: what was measured before a crash is kept, and the culprit is known.
    """
    with tempfile.TemporaryDirectory(prefix="longshore-bench-") as folder:
        place = Path(folder)
        (place / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        words = launcher.arguments(ranks) if launcher is not None else []
        words += [*(program or (sys.executable, "-m", module)), str(place / "spec.json")]
        with (place / "output").open("wb") as output:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=child_environment(extra_env),
                start_new_session=True,
            )
            try:
                step, stalled = _watch(process, place / "step", stall_seconds, on_step)
            finally:
                _end(process)
        result: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            result = json.loads((place / "result.json").read_text(encoding="utf-8"))
        trouble = None
        if stalled:
            trouble = f"made no progress for {stall_seconds:.0f} s and was ended"
        elif process.returncode != 0 or not result.get("finished"):
            trouble = f"ended with code {process.returncode}: {last_words(place / 'output')}"
        return ChildEnd(result, step, trouble)


def run_until_done(
    start: Callable[[list[str], list[str]], ChildEnd], cases: Sequence[str], names: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of every case, and what is missing: children anew
    without the culprit whenever a contender takes one down.

    `start` runs one child with the names of the cases and of the
    contenders that are left. Its steps are CASE/CONTENDER/WORDS."""
    rows: list[dict[str, Any]] = []
    missing: list[dict[str, Any]] = []
    left, names = list(cases), list(names)
    while left and names:
        end = start(left, names)
        rows += end.result.get("rows", [])
        for m in end.result.get("missing", []):
            missing.append({"contender": m["contender"], "why": m["why"], "cases": [f"{m['case']} {m['n']}"]})
        done = set(end.result.get("done", []))
        left = [case for case in left if case not in done]
        if end.trouble is None:
            break
        parts = end.step.split("/")
        culprit = parts[1] if len(parts) == 3 and parts[1] in names else None
        missing.append({"contender": culprit or "all", "why": f"the run {end.trouble}", "cases": left})
        if culprit is None:
            break
        names.remove(culprit)
    return rows, missing


def _watch(
    process: subprocess.Popen[bytes], step_file: Path, stall_seconds: float, on_step: Callable[[str], None] | None
) -> tuple[str, bool]:
    step, since = "", time.monotonic()
    while True:
        running = process.poll() is None
        with contextlib.suppress(OSError):
            now = step_file.read_text(encoding="utf-8")
            if now and now != step:
                step, since = now, time.monotonic()
                if on_step is not None:
                    on_step(step)
        if not running:
            return step, False
        if time.monotonic() - since > stall_seconds:
            return step, True
        time.sleep(_POLL_SECONDS)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole group of the child, which is a session of its own."""
    for sign, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 10.0)):
        if process.poll() is not None and sign == signal.SIGTERM:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def last_words(output: Path) -> str:
    with contextlib.suppress(OSError):
        lines = [x.strip() for x in output.read_text(encoding="utf-8", errors="replace").splitlines() if x.strip()]
        telling = [x for x in lines if "Error" in x or "error" in x or "signal" in x.lower()]
        return (telling or lines or ["no output"])[-1][:300]
    return "no output"
