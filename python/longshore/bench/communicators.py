"""`longshore bench communicators`: chapter 6 of the thesis, rank maps inside a running system.

A world of fibers in one process creates the fourteen communicators of table 6.1, sends 10,000 messages between members at random
and gathers ten times, with each representation and strategy in turn. Beside them stands the plain array of 32-bit ranks that MPI
libraries keep. Every message and every gathered number is compared with what was sent.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._core import RankMap, finegrain_available
from ..errors import ArgumentError
from . import communicators_report, report
from .communicators_cases import COMMUNICATORS, LEAST_WORLD, PROCESSES, WORLD, Experiment, experiments
from .harness import BenchError, available_memory, machine, summary, version, without_collector

ARRAY = "int array"
# The thesis's names for its own: Opt-Cano is packed, Delta is gap.
_SETS = ("gap", "bitmap", "bdd", "stride")
CONTENDERS = [
    ARRAY,
    "packed",
    "bwt",
    *_SETS,
    "wavelet",
    "thesis hybrid",
    "longshore hybrid",
    "longshore time",
    "longshore space",
]
OPERATIONS = ("create", "messages", "gathers")
_GATHERS = 10
_MESSAGE_BYTES, _GATHERED_BYTES = 24, 8
_SLOW_SECONDS = 1e-5  # a question; who takes longer is used once
_RANK_BYTES = 12_000  # of a fiber


def run(
    quick: bool = False,
    json: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
    *,
    ranks: int | None = None,
    cases: Iterable[str] | None = None,
    repeats: int | None = None,
    console: Any = None,
) -> dict[str, Any]:
    """Runs the bench, prints its tables, writes what was asked for and returns what `json` holds.

    `ranks` of the world, `cases` (numbers of experiments, as words) and `repeats` of each timing narrow it down.
    """
    loops = _loops_module()
    report.check_outputs(json, plot)
    world = ranks if ranks is not None else WORLD // 10 if quick else WORLD
    if world < LEAST_WORLD:
        raise BenchError(f"a world of {world} ranks; the communicators need {LEAST_WORLD} at least")
    there = available_memory()
    if there is not None and there < world * _RANK_BYTES:
        needed = world * _RANK_BYTES
        raise BenchError(
            f"{world:,} ranks take {needed / 1e9:.1f} GB, and {there / 1e9:.1f} are free: give fewer --ranks"
        )
    table = {str(one.number): one for one in experiments(world)}
    wanted = list(table) if cases is None else list(dict.fromkeys(cases))
    if unknown := [case for case in wanted if case not in table]:
        raise BenchError(f"there is no experiment {unknown[0]!r}; there are 1 to {len(table)}")
    messages = 1000 if quick else 10_000
    bench = _Bench(loops, world, messages, repeats or (1 if quick else 3))
    screen = report.Screen(console)
    with screen.working() as on_step, without_collector():
        for case in wanted:
            on_step(f"experiment {case}: {table[case].words}")
            bench.measure(table[case])
    result = {
        "bench": "communicators",
        "version": version(),
        "quick": quick,
        "machine": machine(),
        "ranks": world,
        "messages": messages,
        "gathers": _GATHERS,
        "contenders": CONTENDERS,
        "experiments": [
            {"experiment": one.number, "class": one.group, "words": one.words, "n": len(one.members)}
            for one in (table[case] for case in wanted)
        ],
        "rows": bench.rows,
        "saved": bench.saved,
        "missing": bench.missing,
        "notes": [
            f"One process, one thread, a world of {world:,} fibers for each experiment; representations take turns in it. "
            "Seconds are from when the first member begins until the last has finished; creating includes making the map from the "
            "list, once, as members of a process share it. The array is filled unchecked; all others check the list and are "
            "analysed.",
            f"{messages:,} messages between members at random, and a barrier; {_GATHERS} gathers of {_GATHERED_BYTES} bytes a "
            "member by member 0. Medians, and below them what they are of the array's; at the end geometric means of that.",
            "Of a permuted communicator, gap, bitmap, bdd and stride hold the set and a wavelet tree the order, as in the thesis.",
            f"What takes more than {_SLOW_SECONDS * 1e6:.0f} µs a question at random (bwt, bdd of many paths) is measured once.",
        ],
    }
    communicators_report.print_result(screen, result)
    report.write_files(
        result,
        json,
        plot,
        lambda: communicators_report.figure(result),
        lambda: communicators_report.html_tables(result),
    )
    return result


def _loops_module() -> Any:
    try:
        from .. import _bench
    except ImportError as error:
        raise BenchError(f"the loops of this bench are not built here ({error})") from None
    if not finegrain_available():
        raise BenchError("this build has no finegrain engine: it was made without Boost.Context")
    return _bench


def make(contender: str, members: np.ndarray, world: int, loops: Any) -> RankMap:
    """The communicator's map as a contender keeps it. Raises ArgumentError, saying why, where it cannot."""
    if contender == ARRAY:
        return loops.rank_array_map(members, world)
    if contender == "thesis hybrid":
        return RankMap(members, world, modules="thesis")
    if contender.startswith("longshore "):
        return RankMap(members, world, strategy=contender.removeprefix("longshore "))
    if contender in _SETS and np.any(np.diff(members) < 0):
        of_set = RankMap(np.sort(members), world, module=contender)
        return RankMap.child(of_set, RankMap(np.argsort(np.argsort(members)), len(members), module="wavelet"))
    return RankMap(members, world, module=contender)


class _Bench:
    def __init__(self, loops: Any, world: int, messages: int, repeats: int):
        self.loops, self.world, self.messages, self.repeats = loops, world, messages, repeats
        self.rows: list[dict[str, Any]] = []
        self.saved: list[dict[str, Any]] = []
        self.missing: list[dict[str, Any]] = []

    def measure(self, one: Experiment) -> None:
        random = np.random.default_rng([6, one.number])
        n = len(one.members)
        asked, senders, receivers = (random.integers(0, n, count) for count in (16, self.messages, self.messages))
        maps: dict[str, RankMap] = {}
        built: dict[str, list[float]] = {}
        for contender in CONTENDERS:
            try:
                built[contender], maps[contender] = self.build(
                    lambda: make(contender, one.members, self.world, self.loops)
                )
            except ArgumentError as error:
                self.miss(contender, str(error), one)
        repeats = {
            name: 1 if _seconds_of_a_question(of, asked) > _SLOW_SECONDS else self.repeats for name, of in maps.items()
        }
        times = self.loops.communicator_seconds(
            one.members, list(maps.values()), list(repeats.values()), senders, receivers, _GATHERS
        )
        seconds = dict(zip(maps, times))
        for name in maps:
            seconds[name]["create"] = [a + b for a, b in zip(built[name], seconds[name]["create"])]
        payload = dict(zip(OPERATIONS, (0, self.messages * _MESSAGE_BYTES, _GATHERS * n * _GATHERED_BYTES)))
        for operation in OPERATIONS:
            array = statistics.median(seconds[ARRAY][operation])
            for name, of in maps.items():
                row = summary(seconds[name][operation])
                self.rows.append(
                    {
                        "case": f"{one.number} {operation}",
                        "experiment": one.number,
                        "operation": operation,
                        "n": n,
                        "contender": name,
                        **row,
                        "array_ratio": row["seconds_median"] / array,
                        "payload_bytes": payload[operation],
                        "ranks": self.world,
                        "processes": 1,
                        "threads": 1,
                        "representation": of.representation,
                        "map_bytes": of.bytes,
                        "detail": one.words,
                    }
                )
        for name, of in maps.items():
            less = 4 * n - of.bytes
            self.saved.append(
                {
                    "experiment": one.number,
                    "contender": name,
                    "map_bytes": of.bytes,
                    "array_bytes": 4 * n,
                    "processes": PROCESSES,
                    "communicators": COMMUNICATORS,
                    "saved_bytes": less * PROCESSES * COMMUNICATORS,
                }
            )

    def build(self, made: Callable[[], RankMap]) -> tuple[list[float], RankMap]:
        """How long making the map takes, and the map."""
        seconds = []
        for _ in range(self.repeats):
            start = time.perf_counter()
            of = made()
            seconds.append(time.perf_counter() - start)
        return seconds, of

    def miss(self, contender: str, why: str, one: Experiment) -> None:
        why = why.removeprefix("none of the representations can hold the map: ")
        known = next((m for m in self.missing if (m["contender"], m["why"]) == (contender, why)), None)
        if known is None:
            known = {"contender": contender, "why": why, "cases": []}
            self.missing.append(known)
        known["cases"].append(f"experiment {one.number}")


def _seconds_of_a_question(of: RankMap, asked: np.ndarray) -> float:
    start = time.perf_counter()
    of.world_rank(asked)
    return (time.perf_counter() - start) / len(asked)
