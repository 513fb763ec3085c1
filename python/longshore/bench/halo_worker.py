"""The part of `longshore bench halo` that runs on every rank: `python -m longshore.bench.halo_worker SPEC.json`."""

from __future__ import annotations

import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from .contenders import Contender, Missing, Prepared
from .halo_cases import HaloCase
from .halo_contenders import HALO_CONTENDERS, Exchange, HaloContext
from .harness import summary, without_collector
from .worker import Bench, Recorder, _bind, _communicator, _describe


class HaloBench(Bench):
    """Its cases are long enough to need no warming up, and spoil ghost cells in place of destinations."""

    @staticmethod
    def _warm(prepared: Prepared) -> None:
        pass

    def prepare(self, contender: Contender, case: HaloCase) -> Prepared | str:
        prepared = super().prepare(contender, case)
        if isinstance(prepared, Exchange):
            prepared.step = f"{case.name}/{contender.name}/in turn"
        return prepared

    def once(self, prepared: Prepared) -> float:
        assert isinstance(prepared, Exchange)
        if prepared.step:  # writing it is long forgotten when the owners have rewritten their cells
            self._recorder.step(prepared.step)
        return super().once(prepared)

    def _verify(self, contender: Contender, prepared: Prepared) -> str:
        assert isinstance(prepared, Exchange)
        prepared.spoil()
        return super()._verify(contender, prepared)

    def _row(self, case: HaloCase, contender: Contender, prepared: Prepared, seconds: list[float]) -> dict[str, Any]:
        return {
            **case.facts(),
            "contender": contender.name,
            **_slowest(self._context.comm, seconds),
            "processes": self._context.ranks,
            "threads": prepared.threads,
            "detail": prepared.detail,
            "verified": True,
        }


def _slowest(comm: Any, seconds: list[float]) -> dict[str, Any]:
    return summary([max(each) for each in zip(*comm.allgather(seconds))])


def bind_row(context: HaloContext, case: HaloCase, repeats: int) -> dict[str, Any]:
    """What it takes to plan this rank's halo and to bind it. Collective."""
    boxes, seconds = context.boxes(case, "shared"), []
    with without_collector():
        for _ in range(repeats):
            context.comm.Barrier()
            start = time.perf_counter()
            context.module.longshore_mover(boxes, context.world, False)
            seconds.append(time.perf_counter() - start)
    context.forget_arrays()
    return {
        **case.facts(),
        "case": f"plan and bind {case.boxes**3} boxes a rank",
        "contender": "longshore bind",
        **_slowest(context.comm, seconds),
        "payload_bytes": 0,
        "processes": context.ranks,
        "threads": 1,
        "detail": f"{case.n // case.boxes}³ each, {case.stencil}, collective",
    }


def main(arguments: list[str]) -> int:
    spec_file = Path(arguments[0])
    spec = json.loads(spec_file.read_text(encoding="utf-8"))
    comm, family = _communicator(spec)
    recorder = Recorder(spec_file.parent, comm.rank == 0)
    recorder.result["mpi"] = _describe(comm, family)
    context = HaloContext(comm, spec["ranks"], comm.rank, family)
    bench = HaloBench(context, _bind(comm), recorder)
    chosen = [c for c in HALO_CONTENDERS if c.name in spec["contenders"]]
    for facts in spec["cases"]:
        bench.case(HaloCase(**facts), chosen, spec["repeats"], {})
    for facts in spec["binds"]:
        case = HaloCase(**facts)
        recorder.step(f"{case.name}/bind")
        try:
            recorder.result["rows"].append(bind_row(context, case, spec["repeats"]))
        except Missing as error:
            recorder.result["missing"].append(
                {"contender": "longshore bind", "case": case.key, "n": case.n, "why": str(error)}
            )
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
