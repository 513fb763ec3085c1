"""What two processes of this machine take to exchange data, measured by one that was started alone: in a job of its own
under mpiexec.

    mpiexec -n 2 python -m longshore.tune.launched FILE [quick]

is that job; its first rank writes what it found into FILE.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from ..errors import TransportError
from ..stores.team import is_launched
from . import MachineProfile, _add_exchanges
from .launcher import find_launcher, last_words, run

LIMIT_S = 180.0  # some ten seconds, where nothing else runs


def add_exchanges(profile: MachineProfile, quick: bool = False) -> MachineProfile:
    """The profile with what two processes of this machine take to exchange data in every way there is, as `calibrate`
    measures it under mpiexec. Not collective: starts `mpiexec -n 2`, the one beside this Python or on the path. Raises
    TransportError that says why it cannot, after three minutes at the latest; a process of an MPI job starts none."""
    if is_launched():
        raise TransportError("this process is one of an MPI job, which starts no other")
    if importlib.util.find_spec("mpi4py") is None:
        raise TransportError("mpi4py is not installed (pip install 'longshore[mpi]')")
    launcher, begin = find_launcher(), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="longshore-calibrate-") as folder:
        file = Path(folder) / "found.json"
        words = [*launcher.arguments(2), sys.executable, "-m", __name__, str(file), *(["quick"] if quick else [])]
        code, said = run(words, LIMIT_S)
        if code != 0 or not file.exists():
            raise TransportError(f"{launcher.command[0]} -n 2 ended with code {code}: {last_words(said)}")
        found = json.loads(file.read_text())
    seconds = profile.facts.get("seconds", 0) + time.perf_counter() - begin
    return MachineProfile(profile.facts | found | {"seconds": round(seconds, 1)})


def _work(file: str, quick: bool) -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.Get_size() != 2:
        library = MPI.Get_library_version().splitlines()[0].strip()
        raise TransportError(f"error: mpi4py's MPI ({library}) is not that of the launcher: it sees no second process")
    first = comm.Get_rank() == 0
    facts: dict[str, Any] = {"exchanges": [], "loggp": []} if first else {}
    _add_exchanges(facts, comm, quick, lambda what, part: None)
    if first:
        Path(file).write_text(json.dumps(facts))


if __name__ == "__main__":
    try:
        _work(sys.argv[1], "quick" in sys.argv[2:])
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        mpi = sys.modules.get("mpi4py.MPI")
        if mpi is not None:
            mpi.COMM_WORLD.Abort(1)
        os._exit(1)
