"""Runs Python under mpiexec, with each MPI that is there; every MPI test uses it.

    from launch import families, launch

    @pytest.mark.parametrize("family", families())
    def test_something(family):
        done = launch(family, 4, "tests/mpi/programs/something.py", "--an-option")
        assert done.returncode == 0, done.stderr

The lines of several ranks may come out mixed within a line: let one rank print, or let each write a file of its own.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

RANKS = (1, 2, 3, 4, 7, 8)

# There are more ranks than processors: who waits lets others work. As root, too, Open MPI wants to be asked nicely, and
# it looks for fabrics a whole second at each start.
_ENV = {
    "mpich": {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"},
    "openmpi": {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_btl": "^ofi",
        "OMPI_MCA_mtl": "^ofi",
        "OMPI_MCA_osc": "^ucx",  # which says with each window that it cannot be used here
    },
}


@functools.cache
def interpreters() -> dict[str, Path]:
    """The Python interpreter of each MPI family: this one's environment, and $LONGSHORE_OPENMPI_PYTHON's."""
    candidates = {"mpich": sys.executable, "openmpi": os.environ.get("LONGSHORE_OPENMPI_PYTHON", "")}
    found = {}
    for family, text in candidates.items():
        python = Path(text)
        if text and python.exists() and (python.parent / "mpiexec").exists():
            found[family] = python
    return found


def families() -> list[str]:
    """The MPI families that can be launched here, for parametrisation."""
    return list(interpreters())


def launch(
    family: str,
    ranks: int,
    program: str | os.PathLike,
    *args: object,
    timeout: float = 60,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess:
    """Runs a Python program (a path ending in .py, or a module's name) on so many ranks.

    Returns what it printed; a run that outlives `timeout` seconds is killed with all its ranks and raises
    `subprocess.TimeoutExpired`, which carries the output so far.
    """
    return run(mpiexec(family, ranks, program, *args), family, timeout, env)


def mpiexec(family: str, ranks: int, program: str | os.PathLike, *args: object) -> list:
    """The command that runs a Python program on so many ranks."""
    python = interpreters()[family]
    what = [program] if str(program).endswith(".py") else ["-m", program]
    return [python.parent / "mpiexec", "-n", ranks, python, *what, *args]


def run(
    command: list, family: str, timeout: float = 60, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess:
    """Runs any command in a family's environment, in a process group of its own, within a time limit."""
    process = start(command, family, env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end(process)
        stdout, stderr = process.communicate()
        raise subprocess.TimeoutExpired(process.args, timeout, stdout, stderr) from None
    except BaseException:
        end(process)
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def start(command: list, family: str, env: dict[str, str] | None = None, **streams) -> subprocess.Popen:
    """Starts any command in a family's environment, in a process group of its own; `end` ends it."""
    python = interpreters()[family]
    # One interpreter's variables would mislead another's MPI.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_", "PRTE_", "PMI_", "HYDRA_"))}
    environment = {
        **inherited,
        "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "OMP_NUM_THREADS": "1",
        "PYTHONFAULTHANDLER": "1",
        "UCX_LOG_LEVEL": "fatal",  # its words about networks that are not there go to the program's output
        **_ENV[family],
        **(env or {}),
    }
    return subprocess.Popen(
        [str(word) for word in command],
        env=environment,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
        **streams,
    )


def end(process: subprocess.Popen) -> None:
    """Ends mpiexec and its ranks. A launcher asked politely takes ranks in other process groups with it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=3)
