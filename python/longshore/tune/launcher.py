"""Programs under mpiexec, started from one that is not: the launcher that goes with this Python, the words it
understands, and an end for what hangs."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import ArgumentError, TransportError

_VERSION_LIMIT_S = 30.0
_RANKS_PER_CORE = 64
_FAMILIES = {"openmpi": ("open mpi", "openrte", "openmpi", "prrte", "prterun"), "hydra": ("hydra", "intel")}


class Launcher(NamedTuple):
    """An mpiexec and the words it understands."""

    command: tuple[str, ...]
    family: str  # "openmpi", "hydra" or "unknown"

    def arguments(self, ranks: int) -> list[str]:
        """The command up to the program: each rank has a core of its own where there are as many. Raises ArgumentError
        where there are so few that the machine would stand still."""
        cores = len(os.sched_getaffinity(0))
        if ranks > _RANKS_PER_CORE * cores:
            raise ArgumentError(f"{ranks} processes on {cores} processors; at most {_RANKS_PER_CORE * cores} run here")
        fits, words = ranks <= cores, [*self.command, "-n", str(ranks)]
        if self.family == "openmpi":
            return [*words, *(["--bind-to", "core"] if fits else ["--bind-to", "none", "--oversubscribe"])]
        return [*words, "-bind-to", "core"] if self.family == "hydra" and fits else words


def find_launcher(mpiexec: str | os.PathLike[str] | None = None) -> Launcher:
    """The mpiexec that was named, else the one beside this Python, else the one on the path. Raises TransportError
    where there is none, and where it does not run."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = shutil.which(mpiexec or (beside if os.access(beside, os.X_OK) else "mpiexec"))
    if found is None:
        own = "no mpiexec in this environment (pip install 'longshore[mpi]' brings one)"
        raise TransportError(own if mpiexec is None else f"no such mpiexec: {mpiexec}")
    return Launcher((found,), _family(found))


@functools.cache
def _family(mpiexec: str) -> str:
    _, said = run([mpiexec, "--version"], _VERSION_LIMIT_S)
    told = said.lower()
    return next((family for family, names in _FAMILIES.items() if any(name in told for name in names)), "unknown")


def run(words: Sequence[str], limit_s: float) -> tuple[int, str]:
    """Runs a command that is a session of its own; its exit code and what it said. Raises TransportError where it
    cannot be started, or takes longer, and ends it then with all that it has started."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=child_environment(),
                start_new_session=True,
            )
        except OSError as error:
            raise TransportError(f"{words[0]} does not run: {error}") from None
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise TransportError(f"{words[0]} took more than {limit_s:.0f} s and was ended") from None
        finally:
            end(process)
        output.seek(0)
        return process.returncode, output.read().decode(errors="replace")


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment, with what ranks need that share a machine."""
    env = {"OMP_NUM_THREADS": "1", **os.environ}  # a peer's BLAS must not start threads on the other rank's core
    if os.geteuid() == 0:  # containers; Open MPI refuses root without these
        for name in ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"):
            env[name] = env[name + "_CONFIRM"] = "1"
    return {**env, **(extra or {})}


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that is a session of its own, and what it has started. A launcher that is asked politely takes
    its ranks along; of one that is not done with that in time, what it has started is ended as well, which has groups
    of its own."""
    for sign, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 10.0)):
        if process.poll() is None:
            if sign == signal.SIGKILL:
                _end_all_below(process.pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)


def _end_all_below(pid: int) -> None:
    """Kills what a process has started, and what that has started. All are stopped first, so that none starts more."""
    stopped: list[int] = []
    while found := [each for each in _all_below(pid) if each not in stopped]:
        for each in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGSTOP)
        stopped += found
    for each in stopped:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGKILL)


def _all_below(pid: int) -> list[int]:
    """The processes that have this one as a parent, or as a parent's parent and so on; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            parent = int(entry.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found[1:]


def last_words(said: str) -> str:
    """The last line that tells of an error, else the last one."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() or "signal" in line.lower()]
    return (telling or lines or ["no output"])[-1][:300]
