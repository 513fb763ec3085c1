"""`longshore bench breakeven`: does it pay to store an address relation, or is it faster to recompute it on the fly?

Dinda and O'Hallaron's experiment on this machine: a put message is assembled by the identity relation, from its stored AAPAIR
encoding ("longshore decode") or while each tuple is computed in n_g integer instructions ("recompute"). The loops are C++, scalar,
with the instructions that they are counted with. Beside what is measured stands what the model (longshore.model) makes of this
machine's rates, which are measured with the same kind of instruction, over the same memory, in turn with the loops. It is asked
twice, as in the paper's tables:

- counted: n_ac, n_au and n_o are the loops' instructions besides making the tuple and reaching memory. A true prediction.
- fitted: n_ac, n_au and n_o are such that the model is right about the three loops at the least n_g. It predicts the others.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import model
from . import breakeven_report, report
from .harness import BenchError, available_memory, machine, summary, version, without_collector

# A dependent instruction waits for the one before, an independent one only for a free slot.
KINDS = ("dependent", "independent")
SIZES = (512, 1 << 23)  # words: in the first cache of most machines, beyond the last one of most
N_G = (*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64)
QUICK_N_G = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_WORD_BYTES = 8
_WORDS_PER_WORD = 5  # of memory for each word of a message: itself, its tuple, the message's two
# Small messages are assembled so often that a sample has so many words:
# long for the clock, and mostly over before another process gets its turn.
_WORDS_A_SAMPLE = 1 << 14
_QUICK_SECONDS_A_CASE = 6.0  # after which no other round begins
_ISSUE_PASSES = 200  # of 1024 instructions
DECODE, ENCODE, RECOMPUTE = "longshore decode", "longshore encode", "recompute"


def run(
    quick: bool = False,
    json: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
    *,
    cases: Iterable[str] | None = None,
    sizes: Iterable[int] | None = None,
    instructions: Iterable[int] | None = None,
    repeats: int | None = None,
    console: Any = None,
) -> dict[str, Any]:
    """Runs the bench, prints its tables, writes what was asked for and returns what `json` holds.

    `cases` (of "dependent" and "independent" instructions), `sizes` (words of a
    message, powers of two), `instructions` (the n_g) and `repeats` narrow it down."""
    loops = _loops_module()
    kinds = list(KINDS if cases is None else dict.fromkeys(cases))
    words = sorted(set(SIZES if sizes is None else sizes))
    n_g = sorted(set((QUICK_N_G if quick else N_G) if instructions is None else instructions))
    _check(kinds, words, n_g, repeats, loops.most_instructions)
    report.check_outputs(json, plot)
    screen = report.Screen(console)
    rows: list[dict[str, Any]] = []
    tables: list[dict[str, Any]] = []
    missing: list[dict[str, Any]] = []
    with screen.working() as on_step, without_collector():
        for n in words:
            need, there = _working_set(n), available_memory()
            if there is not None and 2 * need > there:
                why = f"needs {need / 1e9:.1f} GB of memory, and {there / 1e9:.1f} GB are free"
                missing += [{"contender": "all", "why": why, "cases": [f"{kind} {n}" for kind in kinds]}]
                continue
            memory = loops.AssemblyLoops(n)
            for kind in kinds:
                on_step(f"{kind}/{n} words/first run")
                _verify(loops, kind, n_g, memory)
                case = _Case(loops, memory, kind, n)
                rounds, begun = repeats or _rounds(n, quick), time.perf_counter()
                for k in range(rounds):
                    if quick and repeats is None and k > 0 and time.perf_counter() - begun > _QUICK_SECONDS_A_CASE:
                        break
                    on_step(f"{kind}/{n} words/{k + 1} of {rounds}")
                    case.round(n_g)
                case_rows, table = case.result()
                rows += case_rows
                tables.append(table)
            del memory
    result = {
        "bench": "breakeven",
        "version": version(),
        "quick": quick,
        "machine": machine(),
        "rows": rows,
        "tables": tables,
        "missing": missing,
        "notes": [_NOTE],
    }
    breakeven_report.print_result(screen, result)
    report.write_files(
        result, json, plot, lambda: breakeven_report.figure(result), lambda: breakeven_report.html_tables(result)
    )
    return result


_NOTE = (
    "The model adds up instructions and memory accesses, which a processor that issues several at once overlaps; and it has the "
    "source read at random (r_rr), where the identity relation reads it in order."
)


def _loops_module() -> Any:
    try:
        from .. import _bench
    except ImportError as error:
        raise BenchError(f"the loops of this bench are not built here ({error})") from None
    return _bench


def _check(kinds: list[str], words: list[int], n_g: list[int], repeats: int | None, most: int) -> None:
    for kind in kinds:
        if kind not in KINDS:
            raise BenchError(f"no case {kind!r}: there are {', '.join(KINDS)}")
    for n in words:
        if n < 4 or n & (n - 1):
            raise BenchError(f"sizes are powers of two, at least 4, not {n}")
    if not all(1 <= g <= most for g in n_g):
        raise BenchError(f"there are loops for 1 to {most} instructions a tuple, not {n_g}")
    if not (kinds and words and n_g):
        raise BenchError("nothing to measure")
    if repeats is not None and repeats < 1:
        raise BenchError("repeats must be positive")


def _working_set(n: int) -> int:
    return _WORDS_PER_WORD * _WORD_BYTES * n


def _passes(n: int) -> int:
    return max(1, _WORDS_A_SAMPLE // n)


def _rounds(n: int, quick: bool) -> int:
    if _passes(n) > 1:
        return 41 if quick else 101
    return 3 if quick else 7


def _verify(loops: Any, kind: str, n_g: list[int], memory: Any) -> None:
    """Every loop does what it is timed for: all n_g on a few words, the least on the memory that is timed."""
    few = loops.AssemblyLoops(64)
    for loop_memory, instructions in (*((few, g) for g in n_g), (memory, n_g[0])):
        loop_memory.clear()
        loop_memory.recompute(kind, instructions, 1)
        _expect(loop_memory.message, 1 << 32, f"recompute, {kind}, n_g {instructions}")
        loop_memory.clear()
        loop_memory.encode(kind, instructions, 1)
        _expect(loop_memory.pairs, 0, f"encode, {kind}, n_g {instructions}")
        loop_memory.decode(1)
        _expect(loop_memory.message, 1 << 32, "decode")


def _expect(written: np.ndarray, second: int, what: str) -> None:
    places = np.arange(len(written), dtype=np.int64)
    if not (np.array_equal(written[:, 0], places) and np.array_equal(written[:, 1], places + second)):
        raise BenchError(f"WRONG RESULT: {what}")


class _Case:
    """One kind of instructions and one size: its samples, and what the model makes of them."""

    def __init__(self, loops: Any, memory: Any, kind: str, n: int) -> None:
        self._kind, self._n = kind, n
        passes = _passes(n)
        self._time_rate: dict[str, Callable[[], float]] = {
            "instructions_per_second": lambda: loops.issue_seconds(kind, _ISSUE_PASSES),
            "read_words_per_second": lambda: memory.read(passes),
            "random_read_words_per_second": lambda: memory.random_read(passes),
            "write_words_per_second": lambda: memory.write(passes),
            "random_write_words_per_second": lambda: memory.random_write(passes),
        }
        self._time: dict[str, Callable[[int], float]] = {
            ENCODE: lambda n_g: memory.encode(kind, n_g, passes),
            DECODE: lambda n_g: memory.decode(passes),
            RECOMPUTE: lambda n_g: memory.recompute(kind, n_g, passes),
        }
        self._counted = model.LoopCosts(
            decode_instructions=loops.decode_overhead,
            recompute_instructions=loops.recompute_overhead,
            encode_instructions=loops.encode_overhead,
        )
        self._rate_samples: dict[str, list[float]] = {name: [] for name in self._time_rate}
        self._samples: dict[int, dict[str, list[float]]] = {}

    def round(self, n_g: list[int]) -> None:
        """Every rate and every loop once, in turn."""
        for name, time_rate in self._time_rate.items():
            self._rate_samples[name].append(time_rate())
        for instructions in n_g:
            samples = self._samples.setdefault(instructions, {name: [] for name in self._time})
            for name, time_loop in self._time.items():
                samples[name].append(time_loop(instructions))

    def result(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The rows of every loop, and the table of break-even and speedup."""
        rates = model.MachineRates(**{name: 1 / statistics.median(s) for name, s in self._rate_samples.items()})
        timed = {g: {name: summary(s) for name, s in samples.items()} for g, samples in self._samples.items()}
        least = min(timed)
        costs = {"counted": self._counted, "fitted": self._fit(rates, least, timed[least])}
        rows = []
        for g, loops in timed.items():
            predicted = {way: self._predict(rates, c, g) for way, c in costs.items()}
            for name in (DECODE, ENCODE, RECOMPUTE):
                rows.append(self._row(g, name, loops[name], predicted["counted"][name], predicted["fitted"][name]))
        points = [_point(rates, costs, g, timed[g], self._samples[g]) for g in timed]
        table = {
            "case": self._kind,
            "n": self._n,
            "working_set_bytes": _working_set(self._n),
            "rates": {name: getattr(rates, name) for name in self._rate_samples},
            "costs": {way: _costs(c) for way, c in costs.items()},
            "fitted_n_g": least,
            "threshold": {
                "actual": _measured_threshold(points),
                **{way: model.threshold_instructions(rates, c) for way, c in costs.items()},
            },
            "points": points,
        }
        return rows, table

    def _fit(self, rates: model.MachineRates, n_g: int, timed: dict[str, dict[str, Any]]) -> model.LoopCosts:
        """The costs with which the model is right about the loops at this n_g."""
        none = model.LoopCosts(decode_instructions=0, recompute_instructions=0, encode_instructions=0)
        without = self._predict(rates, none, n_g)
        each = rates.instructions_per_second / self._n
        spent = {name: (timed[name]["seconds_median"] - without[name]) * each for name in timed}
        return model.LoopCosts(
            decode_instructions=spent[DECODE],
            recompute_instructions=spent[RECOMPUTE],
            encode_instructions=spent[ENCODE],
        )

    def _predict(self, rates: model.MachineRates, costs: model.LoopCosts, n_g: int) -> dict[str, float]:
        return {
            DECODE: model.assembly_seconds(rates, costs, self._n),
            ENCODE: model.encode_seconds(rates, costs, n_g, self._n),
            RECOMPUTE: model.recompute_seconds(rates, costs, n_g, self._n),
        }

    def _row(self, n_g: int, contender: str, timed: dict[str, Any], counted: float, fitted: float) -> dict[str, Any]:
        return {
            "case": self._kind,
            "n": self._n,
            "n_g": n_g,
            "contender": contender,
            **timed,
            "seconds_predicted": counted,
            "seconds_predicted_fitted": fitted,
            "payload_bytes": _WORD_BYTES * self._n,
            "ranks": 1,
            "processes": 1,
            "threads": 1,
            "verified": True,
        }


def _costs(costs: model.LoopCosts) -> dict[str, float]:
    return {"n_ac": costs.decode_instructions, "n_au": costs.recompute_instructions, "n_o": costs.encode_instructions}


def _point(
    rates: model.MachineRates,
    costs: dict[str, model.LoopCosts],
    n_g: int,
    timed: dict[str, dict[str, Any]],
    samples: dict[str, list[float]],
) -> dict[str, Any]:
    """Break-even and speedup at one n_g, from the medians; the quartiles of the speedup are those of the rounds."""
    decode, encode, recompute = (timed[name]["seconds_median"] for name in (DECODE, ENCODE, RECOMPUTE))
    each = [r / d for r, d in zip(samples[RECOMPUTE], samples[DECODE])]
    low, _, high = statistics.quantiles(each, method="inclusive") if len(each) > 1 else each * 3
    return {
        "n_g": n_g,
        "break_even": {
            "actual": math.ceil(encode / (recompute - decode)) if recompute > decode else None,
            **{way: model.break_even_uses(rates, c, n_g) for way, c in costs.items()},
        },
        "speedup": {
            "actual": recompute / decode,
            "actual_quartiles": [low, high],
            **{way: model.assembly_speedup(rates, c, n_g) for way, c in costs.items()},
        },
    }


def _measured_threshold(points: list[dict[str, Any]]) -> list[int | None]:
    """The last measured n_g at which decoding does not win and the
    first from which it always does; None where there is none."""
    losing = [p["n_g"] for p in points if p["break_even"]["actual"] is None]
    last = max(losing, default=None)
    winning = [p["n_g"] for p in points if last is None or p["n_g"] > last]
    return [last, min(winning, default=None)]
