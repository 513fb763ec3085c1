"""`longshore bench assembly`: packing messages and unpacking them, beside plain loops, NumPy and MPI_Pack.

Dinda and O'Hallaron's measurement (section 5.2) on this machine, and today's applications' messages: the payload rate of assembly
(source to dense message) and of disassembly (message to destination), on one thread. All contenders of a case take turns within
each round of one run, in another order each round; inputs are rewritten and outputs touched before every repetition; every
result is checked before and after it is timed. What runs in C++ is timed there, so that Python's calls do not count.
"""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import assembly_report, encoding_rates, packers, report
from .arena import Arena
from .assembly_aims import judge
from .assembly_contenders import (
    HAND,
    INDEXING,
    MEMCPY,
    NAIVE,
    SYMBOLS,
    VIEWS,
    Missing,
    Prepared,
    Preparer,
    applies,
    ours,
)
from .harness import BenchError, available_memory, machine, summary, version, without_collector
from .packers import PACKERS, Packer, PackerError
from .patterns import DIRECTIONS, KINDS, Pattern, make_pattern

_SLOW_SECONDS = (
    5e-4  # a sample of several passes is over by then: what else runs on the machine cuts few of them in two
)
_LARGE_BYTES = 32 << 20


def run(
    quick: bool = False,
    json: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
    *,
    cases: Iterable[str] | None = None,
    sizes: Iterable[int] | None = None,
    repeats: int | None = None,
    contenders: Iterable[str] | None = None,
    mpi_pythons: Iterable[str] = (),
    console: Any = None,
) -> dict[str, Any]:
    """Runs the bench, prints its tables, writes what was asked for and returns what `json` holds.

    `cases`, `sizes` (each case at each of them, in what the case counts: extents, or entries of a list), `repeats` and
    `contenders` narrow it down; memcpy and the hand-written loop always take part. `mpi_pythons` are interpreters of
    environments with an MPI, besides this one; without any, those of the environments beside this one."""
    kinds = _kinds()
    names = [MEMCPY, HAND, NAIVE, *map(ours, kinds), SYMBOLS, INDEXING, VIEWS, *PACKERS]
    chosen = names if contenders is None else [n for n in names if n in {*contenders, MEMCPY, HAND}]
    wanted = list(_wanted(quick, cases, sizes))
    _check(repeats, contenders, names)
    report.check_outputs(json, plot)
    screen = report.Screen(console)
    rows: list[dict[str, Any]] = []
    missing: list[dict[str, Any]] = []
    children: dict[str, Packer] = {}
    try:
        if any(name in PACKERS for name in chosen):
            children, without = packers.start(mpi_pythons)
            missing += [m for m in without if m["contender"] in chosen]
        libraries = [packer.library for packer in children.values()]
        with screen.working() as on_step, without_collector():
            for key, n in wanted:
                on_step(f"{key} {n}/preparing")
                pattern = make_pattern(key, n)
                if (why := _too_large(pattern, children)) is not None:
                    missing.append({"contender": "all", "why": why, "cases": [pattern.name]})
                    continue
                case = _Case(pattern, chosen, children)
                for direction in DIRECTIONS:
                    rounds = repeats or _repeats(pattern, quick)
                    found, absent = case.measure(direction, rounds, lambda w: on_step(f"{pattern.name}/{w}"))
                    rows += found
                    missing += absent
            on_step("encoding/pairs")
            rows += encoding_rates.measure(repeats or (5 if quick else 21))
    finally:
        for packer in children.values():
            packer.close()
    result = {
        "bench": "assembly",
        "version": version(),
        "quick": quick,
        "machine": machine("; ".join(libraries) or None),
        "contenders": chosen,
        "rows": rows,
        "sizes": encoding_rates.sizes(kinds),
        "aims": judge(rows),
        "missing": _grouped(missing),
        "notes": [_NOTE],
    }
    assembly_report.print_result(screen, result)
    report.write_files(
        result, json, plot, lambda: assembly_report.figure(result), lambda: assembly_report.html_tables(result)
    )
    return result


_NOTE = (
    "Ratios are medians over the rounds, each round's hand-written loop over the same round's contender: above 1 is faster than "
    "the hand-written loop, which is the best of plain loops in every order, compiled for every instruction set that this CPU has. "
    "Nothing to win: every loop touches the same cache lines, one or two elements in each, and waits for the memory."
)


def _kinds() -> list[str]:
    try:
        import longshore as ls

        from .. import _bench  # noqa: F401

        return list(ls.encoding_kinds())
    except (ImportError, AttributeError) as error:
        raise BenchError(f"the loops of this bench are not built here ({error})") from None


def _wanted(quick: bool, cases: Iterable[str] | None, sizes: Iterable[int] | None) -> Iterator[tuple[str, int]]:
    for key in KINDS if cases is None else dict.fromkeys(cases):
        if key not in KINDS:
            raise BenchError(f"no case {key!r}: there are {', '.join(KINDS)}")
        usual = KINDS[key].quick if quick else KINDS[key].sizes
        if quick and not usual and cases is not None:
            usual = KINDS[key].sizes[:1]
        for n in usual if sizes is None else sorted(set(sizes)):
            if n < 2 or (key in encoding_rates.REDISTRIBUTIONS and n % 16):
                raise BenchError(f"sizes are at least 2, and for R1 to R4 multiples of 16, not {n} for {key}")
            yield key, n


def _check(repeats: int | None, contenders: Iterable[str] | None, names: list[str]) -> None:
    for name in contenders or ():
        if name not in names:
            raise BenchError(f"no contender {name!r}: there are {', '.join(names)}")
    if repeats is not None and repeats < 1:
        raise BenchError("repeats must be positive")


def _repeats(pattern: Pattern, quick: bool) -> int:
    if pattern.array_bytes > _LARGE_BYTES:
        return 3 if quick else 9
    return 7 if quick else 41


def _too_large(pattern: Pattern, children: dict[str, Packer]) -> str | None:
    need, there = (1 + len(children)) * Arena.needed_bytes(pattern), available_memory()
    if there is None or need <= there:
        return None
    return f"needs {need / 1e9:.1f} GB of memory, and {there / 1e9:.1f} GB are free"


class _Case:
    """One pattern with everybody who packs it."""

    def __init__(self, pattern: Pattern, names: list[str], children: dict[str, Packer]) -> None:
        self._pattern, self._names, self._children = pattern, names, children
        self._arena = Arena(pattern)
        self._preparer = Preparer(self._arena)
        self._lost: dict[str, str] = {}
        for name, packer in children.items():
            try:
                packer.ask({"do": "case", "key": pattern.key, "n": pattern.n})
            except PackerError as error:
                self._lost[name] = str(error)

    def measure(
        self, direction: str, repeats: int, on_step: Callable[[str], None]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """(rows, who is missing and why), all contenders interleaved."""
        entries: dict[str, _Entry] = {}
        absent: dict[str, str] = {}
        for name in self._names:
            if not applies(name, self._pattern) or (name in PACKERS and name not in self._children):
                continue
            on_step(f"{direction}, {name}")
            try:
                entries[name] = self._enter(name, direction)
            except (Missing, PackerError) as error:
                absent[name] = str(error)
            except Exception as error:
                absent[name] = f"{type(error).__name__}: {error}"
        samples: dict[str, list[float]] = {name: [] for name in entries}
        order, shuffled = list(entries), random.Random(repeats)
        for k in range(repeats):
            on_step(f"{direction}, {k + 1} of {repeats}")
            # Each time with other neighbours: who always follows the same one is always late for the same reason.
            for name in shuffled.sample(order, len(order)):
                if name in absent:
                    continue
                try:
                    samples[name].append(entries[name].sample())
                except PackerError as error:
                    absent[name] = str(error)
        for name in order:
            if name not in absent and (wrong := entries[name].wrong()):
                absent[name] = wrong
        timed = {name: samples[name] for name in order if name not in absent}
        rows = [self._row(name, direction, entries[name], timed) for name in timed]
        missing = [
            {"contender": name, "why": why, "cases": [f"{self._pattern.name} {direction}"]}
            for name, why in absent.items()
        ]
        return rows, missing

    def _enter(self, name: str, direction: str) -> _Entry:
        if name in PACKERS:
            if name in self._lost:
                raise PackerError(self._lost[name])
            return _ChildEntry(self._children[name], self._arena, direction)
        return _OwnEntry(self._preparer.prepare(name, direction), self._arena, direction)

    def _row(self, name: str, direction: str, entry: _Entry, timed: dict[str, list[float]]) -> dict[str, Any]:
        pattern = self._pattern
        return {
            "case": f"{pattern.name} {direction}",
            "pattern": pattern.key,
            "n": pattern.n,
            "group": pattern.group,
            "direction": direction,
            "contender": name,
            **summary(timed[name]),
            "payload_bytes": pattern.payload_bytes,
            "array_bytes": pattern.array_bytes,
            "element_bytes": pattern.element,
            "passes": entry.passes,
            "ranks": 1,
            "processes": 1,
            "threads": 1,
            **_ratios("hand_ratio", timed, (HAND,), name),
            **_ratios("naive_ratio", timed, (NAIVE,), name),
            **_ratios("mpi_ratio", timed, PACKERS, name),
            "detail": entry.detail,
            "verified": True,
            **entry.facts,
        }


def _ratios(field: str, timed: dict[str, list[float]], peers: Iterable[str], name: str) -> dict[str, float | None]:
    """How many times faster than the fastest of some peers: the
    median over the rounds, and what a quarter of them exceed."""
    there = [timed[peer] for peer in peers if peer in timed]
    if not there:
        return {field: None, f"{field}_high": None}
    best = min(there, key=statistics.median)
    each = sorted(b / s for b, s in zip(best, timed[name]))
    return {field: statistics.median(each), f"{field}_high": each[3 * len(each) // 4]}


class _Entry:
    """A contender at one case: its samples and its checks."""

    detail = ""
    passes = 1
    facts: dict[str, Any] = {}

    def sample(self) -> float:
        raise NotImplementedError

    def wrong(self) -> str:
        raise NotImplementedError


def _passes(arena: Arena, seconds: float) -> int:
    return max(1, min(arena.passes, int(_SLOW_SECONDS / max(seconds, 1e-9))))


class _OwnEntry(_Entry):
    """In this process, on the arrays that it shares with its like."""

    def __init__(self, prepared: Prepared, arena: Arena, direction: str) -> None:
        self._prepared, self._arena, self._direction = prepared, arena, direction
        self.detail, self.facts = prepared.detail, prepared.facts
        if wrong := self.wrong():
            raise Missing(wrong)
        self.passes = _passes(arena, prepared.seconds(1))

    def sample(self) -> float:
        self._arena.refresh(self._direction)
        if self._arena.passes > 1:
            self._prepared.seconds(1)  # in the cache and awake, as all the passes but one are
        return self._prepared.seconds(self.passes)

    def wrong(self) -> str:
        self._arena.refresh(self._direction)
        self._prepared.seconds(1)
        return self._arena.wrong(self._direction, self._prepared.words)


class _ChildEntry(_Entry):
    """In a child, on arrays of its own."""

    def __init__(self, packer: Packer, arena: Arena, direction: str) -> None:
        self._packer, self._warm, self._direction = packer, arena.passes > 1, direction
        self.detail = packer.ask({"do": "prepare", "direction": direction})["detail"]
        if wrong := self.wrong():
            raise Missing(wrong)
        self.passes = _passes(arena, self.sample())

    def sample(self) -> float:
        told = self._packer.ask({"do": "time", "direction": self._direction, "warm": self._warm, "passes": self.passes})
        return float(told["seconds"])

    def wrong(self) -> str:
        try:
            self._packer.ask({"do": "check", "direction": self._direction})
        except PackerError as error:
            return str(error)
        return ""


def _grouped(missing: list[dict[str, Any]]) -> list[dict[str, Any]]:
    grouped: dict[tuple[str, str], list[str]] = {}
    for m in missing:
        grouped.setdefault((m["contender"], m["why"]), []).extend(m["cases"])
    return [{"contender": c, "why": w, "cases": cases} for (c, w), cases in grouped.items()]
