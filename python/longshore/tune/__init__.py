"""What this machine takes to move data, measured: `calibrate` makes a `MachineProfile`, on which `model.predict` prices
plans.

>>> from longshore import tune
>>> profile = tune.coarse_profile()  # of no machine in particular; tune.calibrate() measures this one in a minute
>>> profile.coarse
True
"""

from __future__ import annotations

import json
import os
import platform
import stat
import time
from collections.abc import Callable
from datetime import datetime, timezone
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NoReturn

from .. import _core, _kernels, _mpi
from .._kernels import kept_path
from .._mistakes import count
from .._words import short
from ..errors import ArgumentError
from ._facts import CALLS, check

FORMAT, VERSION = "longshore machine profile", 1
ENVIRONMENT = _kernels.ENVIRONMENT


class MachineProfile:
    """What was measured on a machine, as `facts`: what JSON can hold, units in the keys. A value.

    `copies` has an entry for each basic transfer xCy in each situation: `transfer`, `word_bytes`, `loops` ("rows",
    "tiles", "joint", "aliased", "sparse"), `working_bytes` touched on one side (null: more than caches hold), `at_once`
    threads, whether the source was written `from_another` core, `megabytes_per_second` (10^6 bytes; median, and `_low`
    and `_high`, a quarter from either end) and whether it was `noisy`. `calls` has what moves in one process take
    beyond copying, `memory_load_seconds_per_byte` what it takes one core to load what caches do not hold (the inverse
    memory bandwidth of Iancu, Husbands & Chen; profiles of before lack it), `exchanges` what two processes take that
    send each other `bytes` at the same time, an entry a way and pair of processes, `loggp` L, o_s, o_r, g and G of a
    pair. Raises ArgumentError that says what is wrong with the facts.
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        if not isinstance(facts, dict) or facts.get("format") != FORMAT:
            raise ArgumentError(f'this is no {FORMAT}; one has "format": "{FORMAT}"')
        if facts.get("version") != VERSION:
            raise ArgumentError(
                f"this profile is of version {short(facts.get('version'))}, not {VERSION}; calibrate again"
            )
        check(facts, "this profile")
        self.facts = facts
        _ = self.core  # it is looked at now

    def __reduce__(self) -> tuple[Any, ...]:
        return MachineProfile, (self.facts,)

    coarse = property(lambda self: self.facts["coarse"], doc="Whether nothing was measured here.")
    machine = property(lambda self: self.facts["machine"], doc="The name of the machine.")

    @cached_property
    def core(self) -> _core.MachineProfile:
        """The numbers, as the model takes them."""
        tables: dict[tuple[int, str, int | None, int, bool], dict[str, float]] = {}
        for one in self.facts["copies"]:
            key = (one["word_bytes"], one["loops"], one["working_bytes"], one["at_once"], one["from_another"])
            tables.setdefault(key, {})[one["transfer"]] = one["megabytes_per_second"]
        exchanges = [
            (one["way"], one["pair"], [(s["bytes"], s["seconds"]) for s in one["samples"]], one["transfer_seconds"])
            for one in self.facts["exchanges"]
        ]
        if self.facts.get("memory_load_seconds_per_byte", 0) < 0:
            raise ArgumentError("this profile: memory_load_seconds_per_byte is negative; it must not be")
        calls = [self.facts["calls"][f"{name}_seconds"] for name in CALLS]
        try:
            copies = [(*key, _core.ThroughputTable(self.machine, rates)) for key, rates in tables.items()]
            return _core.MachineProfile(self.machine, self.coarse, copies, exchanges, calls)
        except TypeError:
            raise ArgumentError("this profile has an integer that is too large, or text that is not Unicode") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MachineProfile) and self.facts == other.facts

    def __repr__(self) -> str:
        noisy = sum(one["noisy"] for one in self.facts["copies"])
        measured = "coarse" if self.coarse else f"{len(self.facts['copies'])} copies, {noisy} of them noisy"
        ways = sorted({f"{one['way']} ({one['pair']})" for one in self.facts["exchanges"]})
        return f"MachineProfile({self.machine!r}: {measured}; {', '.join(ways) or 'no exchanges'})"

    def to_json(self) -> str:
        return json.dumps(self.facts, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> MachineProfile:
        """Raises ArgumentError where the text is no profile."""
        try:
            return cls(json.loads(text, parse_constant=_no_number))
        except ArgumentError:
            raise
        except (ValueError, RecursionError) as error:
            raise ArgumentError(f"this is no profile: {error}") from None

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Writes it to a file, whole or not at all; by default where `profile` looks for it, and then also how copy
        kernels are best on this model of CPU, for all machines that share the folder. Returns the path."""
        target = Path(path) if path is not None else profile_path()
        if path is None:
            kept_status(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, self.to_json().encode())
        if path is None and not os.environ.get(ENVIRONMENT) and "kernel_profile" in self.facts:
            kept = Path(kept_path())
            kept.parent.mkdir(exist_ok=True)
            write_whole(kept, (json.dumps(self.facts["kernel_profile"], indent=1) + "\n").encode())
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MachineProfile:
        """Raises OSError where there is no such file, ArgumentError that names it where it is no profile."""
        try:
            return cls.from_json(Path(path).read_bytes())
        except ArgumentError as error:
            raise ArgumentError(f"{path}: {error}") from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def is_profile(content: bytes) -> bool:
    """Whether this is a machine profile, of whatever version."""
    try:
        facts = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(facts, dict) and facts.get("format") == FORMAT


def write_whole(target: Path, content: bytes) -> None:
    """Writes a file, whole or not at all. What is there and is no file, a pipe or a terminal, is written to."""
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    target = target.resolve()
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def profile_path() -> Path:
    """Where this machine's profile is kept: what LONGSHORE_PROFILE says, or the user's configuration, a file a host."""
    return Path(_core.machine_profile_path())


def kept_status(path: Path) -> os.stat_result | None:
    """Of the file that this machine's profile is, None where there is none yet. Raises ArgumentError where there is
    something else, which would not end, or wait for somebody who writes."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ArgumentError(
            f"{path} is not a plain file, and cannot be this machine's profile; have {ENVIRONMENT} name one"
        )
    return found


def profile() -> MachineProfile:
    """This machine's, where it was calibrated, else `coarse_profile()`. Raises ArgumentError where what is kept is no
    profile, or no file."""
    path = profile_path()
    return MachineProfile.load(path) if kept_status(path) is not None else coarse_profile()


def measured_profile() -> MachineProfile | None:
    """This machine's, where it was calibrated, not to be changed: it is read once, and again when its file has changed.
    Raises as `profile` does."""
    path = profile_path()
    try:
        now = kept_status(path)
    except OSError:
        return None
    if now is None:
        return None
    known = _read(path, now.st_mtime_ns, now.st_size)
    return None if known.coarse else known


@lru_cache(1)
def _read(path: Path, modified: int, size: int) -> MachineProfile:
    return MachineProfile.load(path)


def coarse_profile() -> MachineProfile:
    """Of no machine in particular: what processors of our time take, within a factor of three or so. Good for telling
    ways apart that differ by much."""
    return MachineProfile.load(Path(__file__).with_name("coarse.json"))


def calibrate(
    comm: Any = None,
    *,
    quick: bool = False,
    threads: int | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> MachineProfile:
    """Measures this machine: copies in every situation and what calls take, and with a communicator what its first two
    ranks take to exchange data, in every way and for each kind of pair that there is. Some forty seconds, `quick` a
    quarter of it and coarser. Collective with `comm`, every rank of which gets the same profile, and of an error on one
    of them; nothing else should run meanwhile.

    `threads`: how many copy at once where all do, by default as many as this process may use, and with `comm` those of
    its node. `progress` is told what is being measured and which part of it is done, on the first rank.
    """
    from ..stores.team import Alone, MpiTeam

    if comm is not None:
        _mpi.open_comm(comm)
    team = Alone() if comm is None or comm.Get_size() == 1 else MpiTeam(comm)
    tell = progress if progress is not None and team.rank == 0 else lambda what, part: None
    begin = time.perf_counter()
    facts: dict[str, Any] = {}
    error = None
    mine = os.sched_getaffinity(0)
    hosts = [(platform.node(), mine)] if team.comm is None else team.comm.allgather((platform.node(), mine))
    if team.rank == 0:
        try:  # launchers give each rank cores of its own; what all do at once is measured on all of them
            os.sched_setaffinity(0, mine.union(*(cores for host, cores in hosts if host == hosts[0][0])))
            facts = _alone(threads, quick, tell)
        except Exception as caught:
            error = caught
        finally:
            os.sched_setaffinity(0, mine)
    if team.comm is not None:
        _meet_asleep(team.comm)
    team.agree(error)
    if team.comm is not None:
        _add_exchanges(facts, team.comm, quick, tell)
    facts["seconds"] = round(time.perf_counter() - begin, 1)
    return MachineProfile(team.broadcast(facts))


def _alone(threads: int | None, quick: bool, tell: Callable[[str, float], None]) -> dict[str, Any]:
    """What one process finds out."""
    from . import kernels
    from .copies import cache_bytes, measure, measure_load, measure_loops
    from .exchanges import measure_calls, measure_joint

    at_once = (0 if threads is None else count(threads, "threads")) or len(os.sched_getaffinity(0))
    return {
        "format": FORMAT,
        "version": VERSION,
        "machine": platform.node() or "machine",
        "coarse": False,
        "processor": _processor(),
        "cores": at_once,
        "kernels": _core.kernels_name(),
        "kernel_profile": kernels.measure(at_once, quick),
        "caches_bytes": cache_bytes(),
        "longshore": _core.version,
        "measured": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "copies": measure(at_once, quick, lambda part: tell("copies", part)) + measure_joint(at_once, quick),
        "memory_load_seconds_per_byte": measure_load(quick),
        "calls": measure_calls(at_once) | measure_loops(),
        "exchanges": [],
        "loggp": [],
    }


def _add_exchanges(facts: dict[str, Any], comm: Any, quick: bool, tell: Callable[[str, float], None]) -> None:
    """To the first rank's facts. Collective."""
    from .exchanges import measure_exchanges, measure_loggp

    for pair, two in _pairs(comm):
        if two is not None:
            exchanges = measure_exchanges(two, pair, quick, lambda part: tell(f"exchanges, {pair}", part))
            loggp = measure_loggp(two, pair)
            if facts:
                facts["exchanges"] += exchanges
                facts["loggp"].append(loggp)
            two.Free()
    _meet_asleep(comm)  # those of no pair wait
    if facts:
        facts["mpi"] = _library()


def _meet_asleep(comm: Any) -> None:
    """A barrier in which those who wait leave their cores to the others."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(0.005)


def _pairs(comm: Any) -> list[tuple[str, Any]]:
    """The first rank and the first other one of its node, and of another; None for who is neither. Collective."""
    hosts = comm.allgather(platform.node())
    found = []
    for pair, same in (("same node", True), ("other node", False)):
        other = next((r for r in range(1, len(hosts)) if (hosts[r] == hosts[0]) == same), None)
        if other is not None:
            mine = comm.Get_rank() in (0, other)
            two = comm.Split(0 if mine else 1, comm.Get_rank())
            if not mine:
                two.Free()
            found.append((pair, two if mine else None))
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _library() -> str:
    from mpi4py import MPI

    first = " ".join(MPI.Get_library_version().splitlines()[0].split())
    return first.partition(", package")[0]
