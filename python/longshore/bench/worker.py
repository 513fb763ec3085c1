"""The part of `longshore bench redistribute` that runs on every rank: `python -m longshore.bench.worker SPEC.json`.

Without mpiexec (a specification with "mpi": false) it runs the contenders that need one process only.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from .cases import Case, make_case
from .contenders import CONTENDERS, Contender, Context, Missing, Prepared, WrongResult
from .contenders.scalapack import mapped_mpi_libraries
from .harness import nap_barrier, on_cores, summary, timed, without_collector

_SMALL_BYTES = 1 << 20  # every rank's part of a 64² or 256² case, not of a 1024² one


class Recorder:
    """The root's result file and its note of what is being done; silent on the other ranks."""

    def __init__(self, folder: Path, is_root: bool) -> None:
        self._folder, self._is_root = folder, is_root
        self.result: dict[str, Any] = {"rows": [], "missing": [], "done": []}

    def step(self, words: str) -> None:
        self._write("step", words)

    def save(self) -> None:
        self._write("result.json", json.dumps(self.result))

    def _write(self, name: str, text: str) -> None:
        if not self._is_root:
            return
        beside = self._folder / (name + ".new")
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, self._folder / name)


class Bench:
    def __init__(self, context: Context, cores: set[int], recorder: Recorder) -> None:
        self._context, self._cores, self._recorder = context, cores, recorder

    def _agree(self, why: str) -> str:
        """The first rank's reason, on every rank; empty where all are well. Collective."""
        if self._context.comm is None:
            return why
        return next((w for w in self._context.comm.allgather(why) if w), "")

    def prepare(self, contender: Contender, case: Case) -> Prepared | str:
        """The contender ready to be timed and verified once, or why it is missing. Collective."""
        context, why, prepared = self._context, "", None
        if contender.needs_mpi and context.comm is None:
            return "needs MPI"
        try:
            # Threads that are started now keep the cores that are allowed now.
            with on_cores(None if contender.needs_mpi else self._cores):
                prepared = contender.prepare(context, case)
        except Missing as error:
            why = str(error)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        why = self._agree(why)
        if why or prepared is None:
            if prepared is not None:
                prepared.close()
            return why
        why = self._verify(contender, prepared)
        if why:
            prepared.close()
            return why
        return prepared

    def _verify(self, contender: Contender, prepared: Prepared) -> str:
        why = ""
        for part in prepared.arrays.destinations:
            part.array.fill(float("nan"))
        try:
            self.once(prepared)
            prepared.verify(contender.name)
        except WrongResult as error:
            why = f"WRONG RESULT: {error}"
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        return self._agree(why)

    def once(self, prepared: Prepared) -> float:
        """One repetition: owners rewrite, all meet, run. This rank's seconds. Collective."""
        comm = self._context.comm
        if not prepared.root_only:
            self._warm(prepared)
            prepared.rewrite_sources()
            return timed(comm, prepared.run)
        seconds = 0.0
        nap_barrier(comm)
        if self._context.is_root:
            with on_cores(self._cores):
                self._warm(prepared)
                prepared.rewrite_sources()
                seconds = timed(None, prepared.run)
        nap_barrier(comm)
        return seconds

    @staticmethod
    def _warm(prepared: Prepared) -> None:
        """Runs small cases once untimed: their microseconds would else be those of waking up after the last one."""
        if max((part.array.nbytes for part in prepared.arrays.sources), default=0) <= _SMALL_BYTES:
            prepared.rewrite_sources()
            prepared.run()

    def case(self, case: Case, contenders: list[Contender], repeats: int, skip: dict[str, str]) -> None:
        recorder, ready = self._recorder, {}
        for contender in contenders:
            if not contender.applies(case):
                continue
            why = skip.get(f"{case.name}/{contender.name}", "")
            if not why:
                recorder.step(f"{case.name}/{contender.name}/first run")
                prepared = self.prepare(contender, case)
                if isinstance(prepared, Prepared):
                    ready[contender] = prepared
                    continue
                why = prepared
            recorder.result["missing"].append({"contender": contender.name, "case": case.key, "n": case.n, "why": why})
        mine: dict[Contender, list[float]] = {c: [] for c in ready}
        with without_collector():
            for k in range(repeats):
                for contender, prepared in ready.items():
                    if case.n >= 1024:  # naming each step of a small case would disturb it
                        recorder.step(f"{case.name}/{contender.name}/{k + 1} of {repeats}")
                    mine[contender].append(self.once(prepared))
        for contender, prepared in ready.items():
            recorder.step(f"{case.name}/{contender.name}/last look")
            why = self._verify(contender, prepared)
            if why:
                recorder.result["missing"].append(
                    {"contender": contender.name, "case": case.key, "n": case.n, "why": why}
                )
            else:
                recorder.result["rows"].append(self._row(case, contender, prepared, mine[contender]))
            prepared.close()
        self._context.forget_arrays()
        recorder.result["done"].append(case.name)
        recorder.save()

    def _row(self, case: Case, contender: Contender, prepared: Prepared, seconds: list[float]) -> dict[str, Any]:
        comm = self._context.comm
        slowest = seconds if comm is None else [max(s) for s in zip(*comm.allgather(seconds))]
        return {
            "case": case.key,
            "n": case.n,
            "shape": list(case.shape),
            "dtype": "float64",
            "from": case.source.text,
            "to": case.destination.text,
            "axes": list(case.axes),
            "contender": contender.name,
            **summary(slowest),
            "payload_bytes": case.payload_bytes,
            "ranks": self._context.ranks,
            "processes": 1 if prepared.root_only else self._context.ranks,
            "threads": prepared.threads,
            "detail": prepared.detail,
            "verified": True,
        }


def _bind(comm: Any) -> set[int]:
    """Gives each rank a core of its own where mpiexec has not. Returns all cores of all ranks. Collective."""
    if not hasattr(os, "sched_getaffinity"):
        return set()
    mine = os.sched_getaffinity(0)
    if comm is None:
        return mine
    everyone: list[set[int]] = comm.allgather(mine)
    union = set().union(*everyone)
    distinct = len(union) == sum(len(cores) for cores in everyone)
    if not distinct and all(cores == union for cores in everyone) and len(union) >= comm.size:
        os.sched_setaffinity(0, {sorted(union)[comm.rank]})
    return union


def _communicator(spec: dict[str, Any]) -> tuple[Any, str]:
    if not spec["mpi"]:
        return None, ""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.size != spec["ranks"]:
        raise RuntimeError(
            f"error: mpiexec started {spec['ranks']} processes, and each sees {comm.size}: "
            f"mpi4py has loaded another MPI ({MPI.Get_library_version().splitlines()[0].strip()})"
        )
    vendor = MPI.get_vendor()[0].lower()
    return comm, "openmpi" if "open mpi" in vendor else "mpich"


def _describe(comm: Any, family: str) -> dict[str, Any]:
    import mpi4py
    from mpi4py import MPI

    lines = [x.strip() for x in MPI.Get_library_version().replace("\x00", "").splitlines() if x.strip()]
    # Open MPI's line goes on with who built it, and where: no host's name belongs into a result.
    words = " ".join(lines[0].split(", package:")[0].replace("Version:", "").split())
    return {
        "library": words,
        "family": family,
        "mpi4py": mpi4py.__version__,
        "standard": ".".join(str(x) for x in MPI.Get_version()),
        "mapped": mapped_mpi_libraries(),
    }


def main(arguments: list[str]) -> int:
    spec_file = Path(arguments[0])
    spec = json.loads(spec_file.read_text(encoding="utf-8"))
    comm, family = _communicator(spec)
    rank = 0 if comm is None else comm.rank
    recorder = Recorder(spec_file.parent, rank == 0)
    context = Context(comm, spec["ranks"], rank, family)
    bench = Bench(context, _bind(comm), recorder)
    if comm is not None:
        recorder.result["mpi"] = _describe(comm, family)
    chosen = [c for c in CONTENDERS if c.name in spec["contenders"]]
    for key, n, repeats in spec["cases"]:
        bench.case(make_case(key, n, spec["ranks"]), chosen, repeats, spec.get("skip", {}))
    recorder.result["finished"] = True
    recorder.save()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        if "mpi4py.MPI" in sys.modules and sys.modules["mpi4py.MPI"].Is_initialized():
            sys.modules["mpi4py.MPI"].COMM_WORLD.Abort(1)
        sys.exit(1)
