"""`longshore bench breakeven`: does it pay to store an address relation, or is it faster to recompute it on the fly?

Dinda and O'Hallaron's experiment: a put message is assembled by the identity relation, from its stored AAPAIR encoding
("longshore decode") or while each tuple is computed in n_g integer instructions ("recompute"). The loops are scalar
C++ with the instructions that they are counted with. Beside them stands what longshore.model makes of this machine's
rates, measured with the same instructions over the same memory, in turn with the loops. It is asked twice:

- counted: n_ac, n_au and n_o are the loops' instructions besides making the tuple and reaching memory: a prediction.
- fitted: they are such that the model is right about the three loops at the least n_g; it predicts the others."""

import math
import re
import statistics
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from longshore import model
from longshore.explain import bytes_of

from . import _loops
from .machine import summary
from .protocol import Bench, BenchError, choose, take_turns
from .report import OURS, Table, plain, sheet

# A dependent instruction waits for the one before, an independent one only for a free slot.
KINDS = ("dependent", "independent")
SIZES = (512, 1 << 23)  # words: in the first cache of most machines, beyond the last one of most
N_G = (*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64)
QUICK_N_G = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_WORD_BYTES = 8
_WORDS_PER_WORD = 5  # of memory for each word of a message: itself, its tuple, the message's two
# Of small messages a sample has so many: long for the clock, and mostly over before another process gets its turn.
_WORDS_A_SAMPLE = 1 << 14
_QUICK_SECONDS_A_CASE = 6.0  # after which no other round begins
_ISSUE_PASSES = 200  # of 1024 instructions
DECODE, ENCODE, RECOMPUTE = LOOPS = "longshore decode", "longshore encode", "recompute"
_WORD_RATES = {"r_rc": "read", "r_rr": "random_read", "r_wc": "write", "r_wr": "random_write"}
_RATES = {"r_i": "instructions_per_second", **{r: f"{of}_words_per_second" for r, of in _WORD_RATES.items()}}
_WAYS = ("counted", "fitted")


class Case(NamedTuple):
    """One kind of instructions and one size."""

    key: str
    n: int

    name = property(lambda self: f"{self.key} {self.n}")
    working_set = property(lambda self: _WORDS_PER_WORD * _WORD_BYTES * self.n)
    needed_bytes = property(lambda self: 2 * self.working_set)
    passes = property(lambda self: max(1, _WORDS_A_SAMPLE // self.n))


class Breakeven(Bench):
    name, named = "breakeven", LOOPS

    def __init__(self, quick=False, *, instructions=None, **options):
        """`instructions`: the n_g."""
        self.n_g = sorted(set((QUICK_N_G if quick else N_G) if instructions is None else instructions))
        most = _loops.most_instructions
        if not all(1 <= g <= most for g in self.n_g):
            raise BenchError(f"there are loops for 1 to {most} instructions a tuple, not {self.n_g}")
        super().__init__(quick, **options)
        if not (self.cases and self.n_g):
            raise BenchError("nothing to measure")
        self._tables, self._memory = [], (0, None)

    def wanted(self, given):
        sizes = SIZES if self.sizes is None else self.sizes
        if wrong := [n for n in sizes if n < 4 or n & (n - 1)]:
            raise BenchError(f"sizes are powers of two, at least 4, not {wrong[0]}")
        return [Case(kind, n) for n in sizes for kind in choose("case", given, KINDS)]

    def rounds(self, case):
        return self.repeats or ((41, 101) if case.passes > 1 else (3, 7))[not self.quick]

    def measure(self, context, case, contenders, rounds):
        """Every rate and every loop once a round, in turn."""
        if self._memory[0] != case.n:
            self._memory = (0, None)  # before the next one's is taken
            self._memory = case.n, _loops.AssemblyLoops(case.n)
        memory, kind, passes = self._memory[1], case.key, case.passes
        _verify(_loops, kind, self.n_g, memory)
        loops = {"r_i": partial(_loops.issue_seconds, kind, _ISSUE_PASSES)}
        loops |= {r: partial(getattr(memory, of), passes) for r, of in _WORD_RATES.items()}
        for g in self.n_g:
            loops[g, ENCODE] = partial(memory.encode, kind, g, passes)
            loops[g, DECODE] = partial(memory.decode, passes)
            loops[g, RECOMPUTE] = partial(memory.recompute, kind, g, passes)
        timers = {name: SimpleNamespace(sample=lambda context, loop=loop: loop()) for name, loop in loops.items()}
        limit = _QUICK_SECONDS_A_CASE if self.quick and self.repeats is None else math.inf
        samples, _ = take_turns(context, timers, rounds, seconds=limit)
        rows, table = results(case, self.n_g, samples)
        self._tables.append(table)
        return rows, []

    def finish(self, result):
        result["tables"] = self._tables

    def tables(self, result):
        """The paper's two tables in one for each case."""
        for table in result["tables"]:
            yield Table(_title(result, table), _HEADINGS, list(map(_cells, table["points"])), ("\nquartiles",))
            yield from ((f"  {line}", "") for line in _lines(table))
            yield f"  {_verdict(table)}\n", "bold"

    def figure(self, result):
        """A row a case: break-even and speedup over n_g, measured points and predicted lines."""
        down = max(1, len(result["tables"]))
        figure, panels = sheet(result, down, 2, 10, 3.2 * down + 0.4, sharex="row")
        for (left, right), table in zip(panels, result["tables"]):
            plain(left, _title(result, table), "n_g, instructions a tuple", "break-even, uses")
            plain(right, "", "n_g, instructions a tuple", "speedup")
            _panel(left, table, "break_even")
            _panel(right, table, "speedup")
            left.set_yscale("log")
            left.yaxis.set_major_formatter(lambda uses, _: f"{uses:,.0f}")
            left.yaxis.set_minor_formatter(lambda uses, _: "")
            left.set_ylim(bottom=1)
            right.axhline(1.0, color="#333333", lw=0.7)
            right.legend(fontsize=7, frameon=False)
        return figure


def _verify(loops, kind, n_g, memory):
    """Every loop does what it is timed for: all n_g on a few words, the least on the memory that is timed."""

    def expect(written, second, what):
        places = np.arange(len(written), dtype=np.int64)
        if not (np.array_equal(written[:, 0], places) and np.array_equal(written[:, 1], places + second)):
            raise BenchError(f"WRONG RESULT: {what}")

    few = loops.AssemblyLoops(64)
    for loop_memory, instructions in (*((few, g) for g in n_g), (memory, n_g[0])):
        loop_memory.clear()
        loop_memory.recompute(kind, instructions, 1)
        expect(loop_memory.message, 1 << 32, f"recompute, {kind}, n_g {instructions}")
        loop_memory.clear()
        loop_memory.encode(kind, instructions, 1)
        expect(loop_memory.pairs, 0, f"encode, {kind}, n_g {instructions}")
        loop_memory.decode(1)
        expect(loop_memory.message, 1 << 32, "decode")


def results(case, n_g, samples):
    """The rows of every loop, and the table of break-even and speedup."""
    rates = model.MachineRates(**{field: 1 / statistics.median(samples[r]) for r, field in _RATES.items()})
    timed = {(g, name): summary(samples[g, name]) for g in n_g for name in LOOPS}

    def predicted(costs, g):
        encode, recompute = (of(rates, costs, g, case.n) for of in (model.encode_seconds, model.recompute_seconds))
        return {DECODE: model.assembly_seconds(rates, costs, case.n), ENCODE: encode, RECOMPUTE: recompute}

    def spent(name):
        """Instructions of a loop with which the model is right about it at the least n_g."""
        without = predicted(_costs(0, 0, 0), n_g[0])[name]
        return (timed[n_g[0], name]["seconds_median"] - without) * rates.instructions_per_second / case.n

    counted = _costs(_loops.decode_overhead, _loops.recompute_overhead, _loops.encode_overhead)
    costs = {"counted": counted, "fitted": _costs(spent(DECODE), spent(RECOMPUTE), spent(ENCODE))}
    rows = []
    for (g, name), of in timed.items():
        counted, fitted = (predicted(costs[way], g)[name] for way in _WAYS)
        said = {"seconds_predicted": counted, "seconds_predicted_fitted": fitted}
        how = {"payload_bytes": _WORD_BYTES * case.n, "ranks": 1, "processes": 1, "threads": 1, "verified": True}
        rows.append({"case": case.key, "n": case.n, "n_g": g, "contender": name, **of, **said, **how})
    points = [_point(rates, costs, g, timed, samples) for g in n_g]
    threshold = {way: model.threshold_instructions(rates, c) for way, c in costs.items()}
    names = {"n_ac": "decode_instructions", "n_au": "recompute_instructions", "n_o": "encode_instructions"}
    told = {way: {name: getattr(c, field) for name, field in names.items()} for way, c in costs.items()}
    table = {"case": case.key, "n": case.n, "working_set_bytes": case.working_set, "costs": told, "fitted_n_g": n_g[0]}
    table["rates"] = {field: getattr(rates, field) for field in _RATES.values()}
    return rows, {**table, "threshold": {"actual": _measured_threshold(points), **threshold}, "points": points}


def _costs(decode, recompute, encode):
    return model.LoopCosts(decode_instructions=decode, recompute_instructions=recompute, encode_instructions=encode)


def _point(rates, costs, n_g, timed, samples):
    """Break-even and speedup at one n_g, from the medians; the quartiles of the speedup are those of the rounds."""
    decode, encode, recompute = (timed[n_g, name]["seconds_median"] for name in LOOPS)
    each = [r / d for r, d in zip(samples[n_g, RECOMPUTE], samples[n_g, DECODE])]
    low, _, high = statistics.quantiles(each, method="inclusive") if len(each) > 1 else each * 3
    uses = {"actual": math.ceil(encode / (recompute - decode)) if recompute > decode else None}
    speedup = {"actual": recompute / decode, "actual_quartiles": [low, high]}
    for way, c in costs.items():
        uses[way], speedup[way] = model.break_even_uses(rates, c, n_g), model.assembly_speedup(rates, c, n_g)
    return {"n_g": n_g, "break_even": uses, "speedup": speedup}


def _measured_threshold(points):
    """The last n_g at which decoding does not win, the first from which it always does; None where there is none."""
    last = max((p["n_g"] for p in points if p["break_even"]["actual"] is None), default=None)
    return [last, min((p["n_g"] for p in points if last is None or p["n_g"] > last), default=None)]


_PREDICTED = ("predicted\n(counted)", "predicted\n(fitted)")
_HEADINGS = ("n_g", "break-even\nactual", *_PREDICTED, "speedup\nactual", "\nquartiles", *_PREDICTED)


def _cells(point):
    def uses(count):  # the paper's dash stands for no number of uses
        return "-" if count is None else f"{count:,}" if count < 10**6 else f"{count:.0e}"

    speedup = point["speedup"]
    quartiles = " … ".join(f"{quartile:.2f}" for quartile in speedup["actual_quartiles"])
    times = [f"{speedup[way]:.2f}" for way in ("actual", *_WAYS)]
    return (str(point["n_g"]), *map(uses, point["break_even"].values()), times[0], quartiles, *times[1:])


def _title(result, table):
    held = table["working_set_bytes"]
    where = _where(held, result["machine"]["caches"])
    return f"{table['case']} instructions, {table['n']:,} words ({bytes_of(held)}{where})"


def _where(size, caches):
    """The first cache that holds so many bytes, or that none does."""
    known = False
    for name, text in sorted(caches.items()):
        found = re.fullmatch(r"(\d+)([KMG])", text)
        if found is not None and not name.endswith("i"):
            known = True
            if size <= int(found[1]) << {"K": 10, "M": 20, "G": 30}[found[2]]:
                return f", fits {name.removesuffix('d')}"
    return ", beyond the caches" if known else ""


def _lines(table):
    instructions, *words = (f"{name} {table['rates'][field] / 1e9:.3g}" for name, field in _RATES.items())
    said = [", ".join(f"{name} {value:.3g}" for name, value in table["costs"][way].items()) for way in _WAYS]
    last, first = table["threshold"]["actual"]
    actual = f"above {last}" if first is None else f"below {first}" if last is None else f"between {last} and {first}"
    predicted = ", ".join(f"{table['threshold'][way]:.1f} ({way})" for way in _WAYS)
    yield f"threshold: actual {actual}, predicted {predicted}"
    yield f"{instructions} G/s; {', '.join(words)} Gword/s"
    yield f"counted: {said[0]}; fitted at n_g {table['fitted_n_g']}: {said[1]}"


def _verdict(table):
    """How far the model's speedups are from the measured ones, in one sentence."""
    told, fitted = [], table["fitted_n_g"]  # what the fit was made at is no prediction of it
    for way in _WAYS:
        points = [p["speedup"] for p in table["points"] if way == "counted" or p["n_g"] != fitted]
        off = [speedup[way] / speedup["actual"] - 1 for speedup in points]
        told += [f"{min(off):+.0%} to {max(off):+.0%} ({way})"] if off else []
    return f"The predicted speedups differ from the actual ones by {', '.join(told)}."


def _panel(panel, table, what):
    points = {p["n_g"]: p[what] for p in table["points"]}

    def known(way):
        return {n_g: values[way] for n_g, values in points.items() if values[way] is not None}

    for way, line, colour in (("counted", "--", "#d9a441"), ("fitted", "-", "#9a9a9a")):
        of = known(way)
        panel.plot(list(of), list(of.values()), line, color=colour, lw=1.2, label=f"predicted ({way})")
    actual, spread = known("actual"), None
    if what == "speedup":
        # The ratio of two medians may lie outside the quartiles of the rounds' ratios.
        quartiles = [(points[g]["actual"], *points[g]["actual_quartiles"]) for g in actual]
        spread = [[max(0.0, a - low) for a, low, _ in quartiles], [max(0.0, high - a) for a, _, high in quartiles]]
    style = {"fmt": "o", "ms": 4, "color": OURS, "elinewidth": 0.7, "label": "measured"}
    panel.errorbar(list(actual), list(actual.values()), yerr=spread, **style)
