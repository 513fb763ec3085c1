"""The part of `longshore bench apps` that runs on every rank: `python -m longshore.bench.apps_worker SPEC.json`."""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import traceback
from pathlib import Path
from typing import Any

from .. import _mpi
from .harness import summary, without_collector
from .worker import Recorder, _bind, _communicator, _describe


def app_rows(module: Any, comm: Any, spec: dict[str, Any], app: dict[str, Any], recorder: Recorder) -> None:
    """Every contender of one application in turn, round by round. Collective."""
    _, world = _mpi._open(comm)
    problem = (app["name"], app["problem_class"], app["size"], app["panel"], app["iterations"])
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in spec["contenders"]}
    wrong: dict[str, str] = {}
    for turn in range(spec["rounds"] + 1):  # the first one warms up
        for name, variant in spec["contenders"].items():
            if name in wrong:
                continue
            recorder.step(f"{app['title']}/{name}/{turn} of {spec['rounds']}")
            comm.Barrier()
            with without_collector():
                result = module.run(world, *problem, variant)
            if not result["verified"]:
                wrong[name] = f"WRONG RESULT: {result['verification']}: error {result['error']}"
            elif turn:
                runs[name].append(result)
    for name, results in runs.items():
        if name in wrong:
            recorder.result["missing"].append(
                {"contender": name, "case": app["name"], "n": app["size"], "why": wrong[name]}
            )
            continue
        lines = module.lines()[app["name"]]
        payload = comm.allreduce(results[0]["payload_bytes"])
        recorder.result["rows"].append(
            {
                "case": app["name"],
                "title": app["title"],
                "contender": name,
                **summary([result["total_s"] for result in results]),
                "communication_seconds_median": statistics.median(result["communication_s"] for result in results),
                "payload_bytes": payload,
                "ranks": comm.size,
                "threads": 1,
                "flops": results[0]["flops"],
                "lines": lines[1] if spec["contenders"][name] == "twin" else lines[0],
                "verification": results[0]["verification"],
                "error": results[0]["error"],
                "tolerance": results[0]["tolerance"],
            }
        )
    recorder.result["done"].append(app["name"])
    recorder.save()


def main(arguments: list[str]) -> int:
    spec_file = Path(arguments[0])
    spec = json.loads(spec_file.read_text(encoding="utf-8"))
    comm, family = _communicator(spec)
    recorder = Recorder(spec_file.parent, comm.rank == 0)
    recorder.result["mpi"] = _describe(comm, family)
    _bind(comm)
    try:
        module = importlib.import_module(f"longshore._apps_{family}")
        why = ""
    except ImportError as error:
        module, why = None, f"this Longshore was built without its applications for {family} ({error})"
    for app in spec["apps"]:
        absent = why or module.missing(app["name"])
        if absent:
            recorder.result["missing"].append(
                {"contender": "all", "case": app["name"], "n": app["size"], "why": absent}
            )
            recorder.result["done"].append(app["name"])
            continue
        app_rows(module, comm, spec, app, recorder)
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
