"""What a redistribution took beside what the model said that it would: what `redistribute(report=)` and `longshore move
--report` tell."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from . import _core, _mpi
from ._mistakes import check
from ._words import seconds_of
from .errors import LongshoreError

_WAYS = {"straight": "direct", "rings": "ring", "MPI messages": "messages"}  # by what a mover's path says of them
_WORDS = {
    "threads": "threads of one process",
    "direct": "straight copies",
    "ring": "rings of shared memory",
    "messages": "MPI messages",
}


@dataclass(frozen=True)
class TimeReport:
    """What a redistribution took, beside what was predicted of it: the slowest rank's."""

    way: str  #: "threads", or which between processes most bytes take: "direct", "ring" or "messages"
    bytes: int  #: written into destinations, those of all ranks
    seconds_measured: float
    seconds_predicted: float | None  #: None where there is no prediction
    coarse: bool  #: predicted from a profile that was not measured
    missing: str  #: why there is no prediction

    @property
    def megabytes_per_second(self) -> float:
        """10^6 of these bytes a second, measured."""
        return self.bytes / 1e6 / self.seconds_measured if self.seconds_measured else 0.0

    @property
    def error(self) -> float | None:
        """Predicted seconds beyond the measured ones, as a part of these: -0.1 is a tenth too few."""
        known = self.seconds_predicted is not None and self.seconds_measured > 0
        return self.seconds_predicted / self.seconds_measured - 1 if known else None  # type: ignore[operator]

    def as_dict(self) -> dict[str, Any]:
        """The fields and what follows from them, as JSON can hold it."""
        return {**asdict(self), "megabytes_per_second": self.megabytes_per_second, "error": self.error}

    def __str__(self) -> str:
        took = f"{seconds_of(self.seconds_measured)} measured, {self.megabytes_per_second / 1e3:.3g} GB/s"
        if self.seconds_predicted is None:
            return f"{took} ({_WORDS[self.way]}); not predicted: {self.missing}"
        off = "" if self.error is None else f" ({self.error:+.0%})"
        coarse = ", a coarse guess: `longshore calibrate` measures this machine" if self.coarse else ""
        return f"{took}; {seconds_of(self.seconds_predicted)} predicted{off} for {_WORDS[self.way]}{coarse}"


Report = bool | Callable[[TimeReport], Any] | None


def check_kind(report: Report) -> None:
    """Raises ArgumentTypeError for what is neither a flag nor can be called."""
    if not callable(report):
        check("report", report, "bool | None")


def move(mover: _core.Mover, plan: _core.MotionPlan, comm: Any, threads: int | None, report: Report) -> None:
    """Moves, and where a report is wanted gives it to whom it is for. Collective then, with `comm`."""
    if report is None:
        mover()
        return
    told = timed(mover, plan, comm, threads)
    if callable(report):
        report(told)
    elif comm is None or comm.Get_rank() == 0:
        print(told)


class Guess(NamedTuple):
    """What is predicted to take time."""

    seconds: float | None = 0.0
    coarse: bool = False
    missing: str = ""  #: why there are no seconds

    def then(self, other: Guess) -> Guess:
        """This, and the other after it."""
        known = self.seconds is not None and other.seconds is not None
        total = self.seconds + other.seconds if known else None  # type: ignore[operator]
        return Guess(total, self.coarse or other.coarse, self.missing or other.missing)


def predicted(plan: _core.MotionPlan, way: str, **job: Any) -> Guess:
    """What a way takes, by the model on this machine's profile."""
    from . import model, tune

    try:
        told = model.predict(plan, tune.profile(), **job)
    except (OSError, LongshoreError) as error:
        return Guess(None, False, str(error))
    seconds = next((cost.seconds for cost in told.ways if cost.way == way), None)
    return Guess(seconds, told.coarse, "" if seconds is not None else f"the profile lacks {_WORDS[way]}")


def way_of(mover: _core.Mover) -> tuple[int, str]:
    """Which way between processes most bytes take here, and how many that are."""
    carried = {"direct": 0, "ring": 0, "messages": 0}
    for line in mover.path.splitlines():
        for words, way in _WAYS.items():
            if match := re.match(rf"(\d+) bytes .*{words}", line):
                carried[way] += int(match[1])
    return max((count, way) for way, count in carried.items()) if any(carried.values()) else (0, "direct")


def timed(mover: _core.Mover, plan: _core.MotionPlan, comm: Any, threads: int | None) -> TimeReport:
    """Moves, and tells what that took. Collective with `comm`; what goes wrong on one rank is raised on all."""
    total = plan.itemsize * plan.destination.size * plan.destination.replicas

    def seconds() -> float:
        began = time.perf_counter()
        mover()
        return time.perf_counter() - began

    if comm is None:
        return TimeReport("threads", total, seconds(), *predicted(plan, "threads", threads=threads or 0))
    took, *failure = _mpi._attempt(seconds)
    each = ranks_per_node(comm, *failure)
    return of_all(comm, way_of(mover), total, took or 0.0, lambda way: share_of(plan, way, comm.Get_rank(), each))


def share_of(plan: _core.MotionPlan, way: str, rank: int, each: int | None) -> Guess:
    """What is predicted of one rank of a job with so many ranks a node."""
    if each is None:
        return Guess(None, False, "the ranks of a node do not follow each other")
    # Who takes no part takes no time.
    return Guess() if rank >= plan.world_size else predicted(plan, way, rank=rank, ranks_per_node=each)


def ranks_per_node(comm: Any, *failure: Any) -> int | None:
    """How many consecutive ranks share a node, 0 where all do, None where they do not lie so. Collective."""
    import platform  # which takes a while

    hosts = _gathered(comm, platform.node(), *failure)
    if len(hosts) == 1:
        return 0
    each = next(rank for rank, host in enumerate(hosts) if host != hosts[0])
    nodes = [set(hosts[first : first + each]) for first in range(0, len(hosts), each)]
    return each if all(len(node) == 1 for node in nodes) and len(set(hosts)) == len(nodes) else None


def of_all(
    comm: Any, carried: tuple[int, str], total: int, seconds: float, price: Callable[[str], Guess]
) -> TimeReport:
    """Of the slowest rank, and of the way that most bytes take. Collective."""
    mine, *failure = _mpi._attempt(lambda: [*carried, seconds, *price(carried[1])])
    told = [json.loads(words) for words in _gathered(comm, json.dumps(mine), *failure)]
    _, _, measured, guesses, coarse, missing = zip(*told)
    most = None if None in guesses else max(guesses)
    way = max(told, key=lambda of: of[0])[1]
    return TimeReport(way, total, max(measured), most, any(coarse), next(filter(None, missing), ""))


def _gathered(comm: Any, words: str, *failure: Any) -> list[str]:
    module, handle = _mpi.open_comm(comm)
    return module.gather_words(handle, words, *(failure or (None, "")))
