"""`longshore bench ranks`: rank maps on the thesis's classes A to E and on groups that programs make, in a world of 2^20.

Each map is made in every representation that can hold it, and by every strategy. Measured are bytes with all indexes, SELECT at
random (independent questions, and dependent ones, each of which waits for the answer before) and in order, RANK, and what it takes
to analyse and to build; beside them stand the plain array of 32-bit ranks that MPI libraries keep, the sets of sdsl-lite and of
CRoaring where this was built with them, and the information-theoretic bound.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._core import RankMap, rank_modules
from . import ranks_report, report
from .harness import BenchError, machine, version, without_collector
from .ranks_cases import CLASSES, NESTED, WORLD, RankCase, class_maps, is_structured, named_maps

_QUESTIONS = 1 << 17  # of each repeat, other ones each time: no cache has seen them
_QUICK_QUESTIONS = 1 << 15
_FEW = 64  # asked first, to see how many can be asked
_MOST_SECONDS = 0.02  # of the questions of one repeat
_MOST_READ_SECONDS = 1.0  # what would take longer in order is not read
STRATEGIES = ("longshore hybrid", "longshore time", "longshore space", "thesis hybrid")
_HYBRID = STRATEGIES[0]
# The thesis switched Range/Stride off for its class B (section 5.2.2), as there is nothing else to see with it.
_WITHOUT_STRIDE = "thesis hybrid, no stride"
_PEERS = {"sdsl-lite": "libsdsl-dev", "CRoaring": "libroaring-dev"}
# Building these takes a second of a large map, whatever the machine: `quick` leaves them out there.
_SLOW_TO_BUILD, _QUICK_MEMBERS = ("bwt", "wavelet"), 1 << 17


def contender(module: str) -> str:
    """A representation's name in the rows: ours begin with
    "longshore", those that only the thesis has with "thesis"."""
    return f"{'longshore' if module in rank_modules('standard') else 'thesis'} {module}"


def run(
    quick: bool = False,
    json: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
    *,
    cases: Iterable[str] | None = None,
    maps: int | None = None,
    repeats: int | None = None,
    console: Any = None,
) -> dict[str, Any]:
    """Runs the bench, prints its tables, writes what was asked for and returns what `json` holds.

    `cases` (classes "A" to "E", names of maps, or "named" for all of those), `maps` of each class and `repeats` of each
    timing, the best of which counts, narrow it down."""
    loops = _loops_module()
    report.check_outputs(json, plot)
    wanted = None if cases is None else set(cases)
    named = list(named_maps())
    known = {*CLASSES, "named", *(case.name for case in named)}
    if wanted is not None and not wanted <= known:
        raise BenchError(f"there is no case {sorted(wanted - known)[0]!r}; there are {', '.join(sorted(known))}")
    count = maps if maps is not None else 1 if quick else 1000
    bench = _Bench(loops, repeats or (2 if quick else 5), quick)
    screen = report.Screen(console)
    rows: list[dict[str, Any]] = []
    with screen.working() as on_step, without_collector():
        for letter in CLASSES:
            if wanted is None or letter in wanted:
                for case in class_maps(letter, count):
                    on_step(f"{letter}/{case.name} of {count}")
                    rows += bench.measure(case)
        for case in named:
            if wanted is None or case.name in wanted or "named" in wanted:
                on_step(f"named/{case.name}")
                rows += bench.measure(case)
        on_step("group operations")
        groups = bench.groups()
    result = {
        "bench": "ranks",
        "version": version(),
        "quick": quick,
        "machine": machine(),
        "world": WORLD,
        "rows": rows,
        "groups": groups,
        "aims": aims(rows, groups),
        "missing": [{"contender": name, "why": why, "cases": ["all"]} for name, why in bench.missing.items()],
        "notes": [
            "Times are nanoseconds a question, the best of the repeats; bytes are those of one map with all its indexes.",
            "seconds_median and its like are of a repeat's questions at random, payload_bytes their answers'.",
            f"Each repeat asks {bench.questions:,} questions that were not asked before, fewer of what is slow; what would take "
            f"more than {_MOST_READ_SECONDS:g} s in order is not read. Building is timed once a map, analysis and checks and all.",
            "Bytes of CRoaring are those of its stored form, as it counts them itself.",
            *(
                [f"Quick: no {' and no '.join(_SLOW_TO_BUILD)} of more than {_QUICK_MEMBERS:,} members."]
                if quick
                else []
            ),
        ],
    }
    ranks_report.print_result(screen, result)
    report.write_files(
        result, json, plot, lambda: ranks_report.figure(result), lambda: ranks_report.html_tables(result)
    )
    return result


def _loops_module() -> Any:
    try:
        from .. import _bench
    except ImportError as error:
        raise BenchError(f"the loops of this bench are not built here ({error})") from None
    return _bench


def bound_bytes(case: RankCase) -> float:
    """What no representation of all such maps can go below: log2
    of the number of sets, or of lists, of as many members."""
    n = len(case.members)
    bits = _log2_factorial(WORLD) - _log2_factorial(WORLD - n)
    if np.all(np.diff(case.members) > 0):
        bits -= _log2_factorial(n)
    return max(bits, 1) / 8


def _log2_factorial(n: int) -> float:
    return math.lgamma(n + 1) / math.log(2)


def _peers_module(missing: dict[str, str]) -> Any:
    """Other libraries' sets, or None; those that are not there are named with the reason."""
    try:
        from .. import _peers
    except ImportError as error:
        missing.update({name: f"not built here ({error}); Debian: {package}" for name, package in _PEERS.items()})
        return None
    there = _peers.peers()
    absent = {name: package for name, package in _PEERS.items() if name not in there}
    missing.update({name: f"not found when this was built; Debian: {package}" for name, package in absent.items()})
    return _peers


class _Bench:
    def __init__(self, loops: Any, repeats: int, quick: bool):
        self.loops, self.repeats, self.quick = loops, repeats, quick
        self.questions = _QUICK_QUESTIONS if quick else _QUESTIONS
        self.random = np.random.default_rng(1)
        self.missing: dict[str, str] = {}
        self.peers = _peers_module(self.missing)

    def best_ns(self, seconds: Any, questions: int, *arguments: Any) -> float:
        return min(seconds(*arguments) for _ in range(self.repeats)) * 1e9 / max(questions, 1)

    def asked(self, seconds: Any, asked: list[np.ndarray], how: str) -> tuple[list[float], int]:
        """Seconds of each repeat, `seconds(questions, how)` of other
        questions each time, and how many: what there is time for."""
        few_ns = seconds(asked[0][:_FEW], how) * 1e9 / len(asked[0][:_FEW])
        n = min(len(asked[0]), max(_FEW, int(_MOST_SECONDS * 1e9 / max(few_ns, 0.1))))
        return [seconds(questions[:n], how) for questions in asked], n

    def asked_ns(self, seconds: Any, asked: list[np.ndarray], how: str) -> float:
        taken, n = self.asked(seconds, asked, how)
        return min(taken) * 1e9 / n

    def select_and_rank(
        self, row: dict[str, Any], select: Any, rank: Any, case: RankCase, asked: list[np.ndarray]
    ) -> None:
        taken, n = self.asked(select, asked, "independent")
        row |= {
            "seconds_median": statistics.median(taken),
            "seconds_min": min(taken),
            "seconds_max": max(taken),
            "repeats": self.repeats,
            "questions": n,
            "payload_bytes": 8 * n,
            "ranks": WORLD,
            "threads": 1,
        }
        row["select_ns"] = min(taken) * 1e9 / n
        row["select_dependent_ns"] = self.asked_ns(select, asked, "dependent")
        if rank is not None:
            row["rank_ns"] = self.asked_ns(rank, [case.members[positions] for positions in asked], "independent")

    def measure(self, case: RankCase) -> list[dict[str, Any]]:
        """A row for each representation that can hold the map, for
        each strategy, for the array and for the sets of others."""
        n = len(case.members)
        asked = [self.random.integers(0, n, self.questions) for _ in range(self.repeats)]
        array = case.members.astype(np.int32)
        common = {"case": case.group, "name": case.name, "n": n, "bound_bytes": bound_bytes(case)}
        analysis = self.best_ns(self.loops.rank_analysis_seconds, n, case.members, WORLD)
        rows = [{**common, "contender": "int array", "representation": "int array", "bytes": 4 * n}]
        self.select_and_rank(rows[0], lambda *q: self.loops.rank_array_seconds(array, *q), None, case, asked)
        explained = RankMap(case.members, WORLD).explain(modules="all").rows
        estimates = {row["module"]: row for row in explained}
        for module in rank_modules("all"):
            estimate = estimates[module]
            if not estimate["possible"]:
                if "needs the library" in estimate["note"]:
                    self.missing[module] = estimate["note"]
                continue
            if self.quick and n > _QUICK_MEMBERS and module in _SLOW_TO_BUILD:
                continue
            rows.append(
                {
                    **common,
                    "contender": contender(module),
                    "module": module,
                    "estimated_bytes": estimate["bytes"],
                    "estimated_ns": estimate["select_ns"],
                    **self.of_map(case, asked, {"module": module}),
                }
            )
        hybrids = [*STRATEGIES, _WITHOUT_STRIDE] if case.group == "B" else STRATEGIES
        for name in hybrids:
            if name == _WITHOUT_STRIDE:
                how = {"modules": ",".join(module for module in rank_modules("thesis") if module != "stride")}
            elif name.startswith("thesis"):
                how = {"modules": "thesis"}
            else:
                how = {"strategy": name.removeprefix("longshore ")}
            rows.append({**common, "contender": name, "analysis_ns": analysis, **self.of_map(case, asked, how)})
        if self.peers is not None and bool(np.all(np.diff(case.members) > 0)):
            for name in self.peers.peers():
                start = time.perf_counter()
                peer = self.peers.make(name, case.members)
                build_ns = (time.perf_counter() - start) * 1e9 / n
                rows.append(
                    {**common, "contender": name, "representation": name, "bytes": peer.bytes, "build_ns": build_ns}
                )
                self.select_and_rank(rows[-1], peer.select_seconds, peer.rank_seconds, case, asked)
        return rows

    def of_map(self, case: RankCase, asked: list[np.ndarray], how: dict[str, Any]) -> dict[str, Any]:
        n = len(case.members)
        start = time.perf_counter()
        rank_map = RankMap(case.members, WORLD, **how)
        build_ns = (time.perf_counter() - start) * 1e9 / n
        row: dict[str, Any] = {"representation": rank_map.representation, "bytes": rank_map.bytes, "build_ns": build_ns}
        slow_ns = 1000
        loops = self.loops
        # What answers by itself gets no index.
        hashed = rank_map.with_lookup("hash") if rank_map.representation != "bwt" else rank_map
        has_rank = hashed.lookup == "none" and rank_map.representation != "bwt"
        self.select_and_rank(
            row,
            lambda *q: loops.rank_select_seconds(rank_map, *q),
            (lambda *q: loops.rank_rank_seconds(rank_map, *q)) if has_rank else None,
            case,
            asked,
        )
        # In order, the block of a bwt is at hand; nothing else is faster than a few times what it takes at random.
        if row["select_ns"] * 1e-9 * n < _MOST_READ_SECONDS or rank_map.representation == "bwt":
            row["read_ns"] = self.best_ns(loops.rank_read_seconds, n, rank_map)
        if hashed.lookup == "hash" and row["select_ns"] < slow_ns:
            row["hashed_bytes"] = hashed.bytes
            row["hashed_rank_ns"] = self.asked_ns(
                lambda *q: loops.rank_rank_seconds(hashed, *q),
                [case.members[positions] for positions in asked],
                "independent",
            )
        return row

    def groups(self) -> dict[str, Any]:
        """The algebra on two random halves of the world, nanoseconds a member of both; and translation of single ranks
        into a list of everybody, one after the other."""
        half = WORLD // 2
        sets = [np.sort(self.random.choice(WORLD, half, replace=False)) for _ in range(2)]
        a, b = (RankMap(members, WORLD) for members in sets)
        copy, permuted = RankMap(sets[0], WORLD), RankMap(self.random.permutation(sets[0]), WORLD)
        everybody = RankMap(self.random.permutation(WORLD), WORLD).with_lookup("hash")
        asked = [self.random.integers(0, WORLD, self.questions) for _ in range(self.repeats)]
        even, colours = np.arange(0, half, 2), np.arange(half) % 64
        operations = {
            "union, MPI's order": (lambda: a.union(b), WORLD),
            "intersection": (lambda: a.intersection(b), WORLD),
            "difference": (lambda: a.difference(b), WORLD),
            "union as sets": (lambda: a | b, WORLD),
            "incl of every other one": (lambda: a.incl(even), half),
            "excl of every other one": (lambda: a.excl(even), half),
            "compare, equal": (lambda: a.compare(copy), half),
            "compare, permuted": (lambda: a.compare(permuted), half),
            "translate all": (lambda: a.translate(b), half),
            "split into 64": (lambda: a.split(colours), half),
        }
        return {
            "union_ns": self.best_ns(self.loops.rank_union_seconds, WORLD, a, b),
            "translate_one_ns": self.asked_ns(
                lambda *q: self.loops.rank_rank_seconds(everybody, *q), asked, "dependent"
            ),
            "operations_ns": {name: self.best_ns(_seconds, n, call) for name, (call, n) in operations.items()},
        }


def _seconds(call: Any) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def aims(rows: list[dict[str, Any]], groups: dict[str, Any]) -> list[dict[str, Any]]:
    """What was hoped for, and what is there: each with the worst map, so that a reader can look at it."""
    by_name: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_name.setdefault(row["name"], {})[row["contender"]] = row
    out: list[dict[str, Any]] = []

    def aim(what: str, limit: float, found: list[tuple[float, str]], unit: str = "", at_least: bool = False) -> None:
        if not found:
            return
        value, where = (min if at_least else max)(found)
        out.append(
            {
                "aim": what,
                "limit": limit,
                "reached": value,
                "unit": unit,
                "worst": where,
                "met": value >= limit if at_least else value <= limit,
            }
        )

    def excess(name: str) -> tuple[float, str]:
        contenders = by_name[name]
        smallest = min(row["bytes"] for row in contenders.values() if "module" in row)
        return contenders[_HYBRID]["bytes"] / smallest, name

    groups_of = {row["name"]: row["case"] for row in rows}
    structured = [name for name in by_name if is_structured(groups_of[name], name)]
    nested = [name for name in by_name if name in NESTED or groups_of[name] == "B"]
    aim(
        "hybrid bytes over the smallest module, structured maps but strides",
        1.1,
        [excess(name) for name in structured if groups_of[name] != "B"],
    )
    aim(
        "hybrid bytes over the smallest module, strides (class B)",
        1.1,
        [excess(name) for name in structured if groups_of[name] == "B"],
    )
    aim(
        "hybrid bytes over the smallest module, random sets",
        1.25,
        [excess(name) for name in by_name if groups_of[name] == "A" or name in ("random 10k", "random 500k")],
    )
    aim(
        "hybrid bytes over the smallest module, lists by chance",
        1.25,
        [
            excess(name)
            for name in by_name
            if name in ("random graph", "leaders of shuffled nodes", "random permutation")
        ],
    )
    aim("bytes of nested loops", 200, [(by_name[name][_HYBRID]["bytes"], name) for name in nested], "bytes")
    aim("SELECT of nested loops", 10, [(by_name[name][_HYBRID]["select_ns"], name) for name in nested], "ns")
    for module, words, independent, dependent in (
        ("elias-fano", "Elias-Fano", 20, 40),
        ("bitmap512", "bitmap", 20, 40),
        ("runs", "runs", 75, 75),
    ):
        there = [(by_name[name][contender(module)], name) for name in by_name if contender(module) in by_name[name]]
        aim(f"SELECT of {words}, median of maps", independent, _median(there, "select_ns"), "ns")
        aim(f"dependent SELECT of {words}, median of maps", dependent, _median(there, "select_dependent_ns"), "ns")
    slower = sorted(
        (c["longshore time"]["select_ns"] / c["int array"]["select_ns"], name) for name, c in by_name.items()
    )
    if slower:
        aim("time strategy over the int array, median", 2, [slower[len(slower) // 2]])
        aim("time strategy over the int array, 90th percentile", 3, [slower[int(0.9 * (len(slower) - 1))]])
    for module, words, limit in (("bitmap512", "a bitmap", 10), ("elias-fano", "Elias-Fano", 40)):
        there = [
            (c[contender(module)], name) for name, c in by_name.items() if "rank_ns" in c.get(contender(module), {})
        ]
        aim(f"RANK of members in {words}, median of maps", limit, _median(there, "rank_ns"), "ns")
    aim(
        "RANK of members of lists, hashed, median of maps",
        40,
        _median(
            [(c[_HYBRID], name) for name, c in by_name.items() if "hashed_rank_ns" in c[_HYBRID]], "hashed_rank_ns"
        ),
        "ns",
    )
    aim(
        "analysis a member (without the search for ranks that come twice), median of maps of 100,000 and more",
        1.5,
        _median([(c[_HYBRID], name) for name, c in by_name.items() if c[_HYBRID]["n"] >= 100_000], "analysis_ns"),
        "ns",
    )
    aim("union of two half-million-member maps, a member", 15, [(groups["union_ns"], "random halves")], "ns")
    if by_name:
        ratio = [c["thesis hybrid"]["bytes"] / c[_HYBRID]["bytes"] for c in by_name.values()]
        time = [c[_HYBRID]["select_ns"] / c["thesis hybrid"]["select_ns"] for c in by_name.values()]
        aim(
            "bytes of the thesis's hybrid over ours, geometric mean",
            10,
            [(geometric_mean(ratio), "all maps")],
            at_least=True,
        )
        aim("SELECT of ours over the thesis's hybrid, geometric mean", 1, [(geometric_mean(time), "all maps")])
    return out


def _median(rows: list[tuple[dict[str, Any], str]], key: str) -> list[tuple[float, str]]:
    values = sorted((row[key], name) for row, name in rows)
    return [values[len(values) // 2]] if values else []
