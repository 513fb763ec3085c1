"""`longshore bench assembly`: packing messages and unpacking them, beside plain loops, NumPy and MPI_Pack.

Dinda and O'Hallaron's measurement (section 5.2) on this machine, and today's applications' messages: the payload rate
of assembly (source to dense message) and of disassembly (message to destination), on one thread. What runs in C++ is
timed there, so that Python's calls do not count. Besides, what making a relation and encoding it costs, and how small
it gets: the paper's figure of sizes.
"""

import statistics
from dataclasses import dataclass
from functools import lru_cache, partial

import longshore as ls
import numpy as np
from longshore.explain import bytes_of

from ..machine import clocked, grouped, row_of_calls, without_collector
from ..protocol import Bench, BenchError, Contender, choose
from ..report import Table, bars, duration, pivot, plain, rate, ratio, sheet
from . import packers
from .contenders import HAND, INDEXING, MEMCPY, NAIVE, SYMBOLS, VIEWS, Arena, Preparer, applies, ours
from .packers import PACKERS, Asking
from .patterns import DIRECTIONS, KINDS, REDISTRIBUTIONS, layouts, make_pattern, redistribution

_LARGE_BYTES = 32 << 20
_ENCODED = ("aapair", "aablk", "dmrle", "dmrlec")  # the paper's own
_N, _HUGE, _NODES = 1024, 1 << 20, 4
_SAMPLE_SECONDS = 1e-3  # of calls that are timed from Python
_NOISE = 0.05  # two runs of the same loop differ by that
_BLOCKS = ("wrf-x", "lu-y", "milc-x", "lammps", "specfem-cm")  # 12 to 48 bytes
_FOLDING = tuple(f"longshore {kind}" for kind in ("aablk", "dmrle", "dmrlec", "huffman", "lz", "nest"))
_VERDICTS = {"met": "green", "nearly met": "yellow", "NOT MET": "red"}
_SHADES = ("#555555", "#aaaaaa", "#b07aa1", "#76b7b2", "#59a14f", "#e1902b", "#edc948")
_COLOURS = dict(zip((HAND, NAIVE, SYMBOLS, INDEXING, VIEWS, *PACKERS), _SHADES))

_pattern = lru_cache(maxsize=1)(make_pattern)


@dataclass(frozen=True)
class Case:
    """A message in one direction."""

    key: str
    n: int
    direction: str

    name = property(lambda self: f"{self.key} {self.n} {self.direction}")
    pattern = property(lambda self: _pattern(self.key, self.n))
    needed_bytes = property(lambda self: (1 + len(PACKERS)) * Arena.needed_bytes(self.pattern))

    def facts(self):
        of, group = self.pattern, KINDS[self.key].group
        facts = {"case": self.name, "pattern": self.key, "n": self.n, "group": group, "direction": self.direction}
        return {**facts, "element_bytes": of.element, "payload_bytes": of.payload_bytes, "array_bytes": of.array_bytes}


class Assembly(Bench):
    name, Case = "assembly", Case
    shuffled, always = True, (MEMCPY, HAND)

    def __init__(self, quick=False, *, mpi_pythons=(), **options):
        super().__init__(quick, **options)
        self._mpi_pythons, self._children, self._absent, self._entered = tuple(mpi_pythons), {}, [], (None, None)

    def names(self):
        return [MEMCPY, HAND, NAIVE, *map(ours, ls.encoding_kinds()), SYMBOLS, INDEXING, VIEWS, *PACKERS]

    def wanted(self, given):
        cases = []
        for key in choose("case", given, list(KINDS)):
            usual = KINDS[key].quick if self.quick else KINDS[key].sizes
            if given is not None:
                usual = usual or KINDS[key].sizes[:1]
            for n in usual if self.sizes is None else self.sizes:
                if n < 2 or (key in REDISTRIBUTIONS and n % 16):
                    raise BenchError(f"sizes are at least 2, and for R1 to R4 multiples of 16, not {n} for {key}")
                cases += [Case(key, n, direction) for direction in DIRECTIONS]
        return cases

    def rounds(self, case):
        return self.repeats or ((3, 9) if case.pattern.array_bytes > _LARGE_BYTES else (7, 41))[not self.quick]

    def contenders(self):
        if any(name in PACKERS for name in self.chosen):
            self._children, absent = packers.start(self._mpi_pythons)
            self._absent = [m for m in absent if m["contender"] in self.chosen]
        return self.of_names([name for name in self.chosen if name in self._children or name not in PACKERS])

    def of_names(self, names):
        return [
            Contender(name, partial(self._prepare, name), False, lambda case, name=name: applies(name, case.pattern))
            for name in names
        ]

    def _prepare(self, name, context, case):
        if self._entered[0] is not case.pattern:  # both directions share an arena and who prepares its contenders
            self._entered = (None, None)  # before the next one's memory is taken
            self._entered = case.pattern, Preparer(Arena(case.pattern))
        preparer = self._entered[1]
        if name not in PACKERS:
            return preparer.prepare(name, case.direction).settle()
        self._children[name].ask("case", key=case.key, n=case.n)
        return Asking(self._children[name], preparer.arena, case.direction)

    def rows(self, context, case, ready, samples):
        rows = super().rows(context, case, ready, samples)
        for row in rows:
            row["passes"] = ready[row["contender"]].passes
            for field, peers in (("hand_ratio", (HAND,)), ("naive_ratio", (NAIVE,)), ("mpi_ratio", PACKERS)):
                row[field], row[f"{field}_high"] = _ratio(samples, peers, row["contender"])
        return rows

    def beside(self, step):
        """Rows without payload: encoding a list of pairs, and a relation from two layouts, small and huge."""
        step("encoding/pairs")
        rows, repeats = [], self.repeats or (5 if self.quick else 21)

        def add(case, n, contender, pairs, call):
            passes = max(1, int(_SAMPLE_SECONDS / max(clocked(call), 1e-7)))
            seconds = [clocked(call, passes) for _ in range(repeats)]
            rates = {"pairs": pairs, "pairs_per_second": pairs / statistics.median(seconds)}
            rows.append(row_of_calls({"case": f"{case} {n}", "n": n}, contender, seconds, **rates))

        with without_collector():
            for key in REDISTRIBUTIONS:
                pairs = redistribution(key, _N).pairs()
                make = partial(ls.AddressRelation.from_pairs, pairs, np.float64)
                add(f"relation from pairs {key}", _N, "longshore from_pairs", len(pairs), make)
                for kind in _ENCODED:
                    add(f"encode {key}", _N, ours(kind), len(pairs), partial(ls.encode, make(), kind))
            for key in REDISTRIBUTIONS:
                for n in (_N, _HUGE):
                    source, destination = layouts(key, n)
                    make = partial(ls.AddressRelation.from_layouts, source, 0, destination, 0, np.float64)
                    add(f"relation from layouts {key}", n, "longshore from_layouts", make().elements, make)
        return rows, self._absent

    def finish(self, result):
        result["machine"]["mpi"] = "; ".join(packer.library for packer in self._children.values()) or None
        for row in result["rows"]:
            row.setdefault("table", self.kernels[0])
        aims = judge([row for row in result["rows"] if row["table"] == self.kernels[0]])
        for kernels in (name for name in self.kernels[1:] if name != "plain"):  # which is there to compare with
            of = judge([row for row in result["rows"] if row["table"] == kernels])
            aims += [{**aim, "aim": f"{kernels} kernels: {aim['aim']}"} for aim in of if aim["met"] is not None]
        result |= {"sizes": list(_sizes()), "aims": aims}

    def close(self):
        for packer in self._children.values():
            packer.close()

    def tables(self, result):
        over = ratio("hand_ratio", " ({:.2f})")
        for (title, direction, kernels), rows in _by_table(result["rows"]).items():
            cases = list(grouped(rows, "case").values())
            columns = {f"{of[0]['pattern']}\n{of[0]['n']}\n{bytes_of(of[0]['payload_bytes'])}": of for of in cases}
            title = f"{title}, {direction}, {kernels} kernels: GB/s (× hand-written loop)"
            table = pivot(title, result["contenders"], columns, lambda row: f"{rate(row):.3g}{over(row)}")
            table.lines.append(["(middling spread)", *map(_spread, cases)])
            if any(bound := [KINDS[of[0]["pattern"]].is_bound(direction, of[0]["n"]) for of in cases]):
                table.lines.append(["(nothing to win)", *("memory" if b else "" for b in bound)])
            yield table
        both = lambda size: f"{size['encoded_bytes_to_all']} ({size['encoded_bytes']})"  # noqa: E731
        title = "bytes encoded at 1024², node 0 to all nodes (to node 0)"
        yield _by_key(title, "encoding", grouped(result["sizes"], "kind"), lambda size: size["case"], both)
        key = lambda row: row["case"].split()[-2]  # noqa: E731
        rows = [row for row in result["rows"] if row["case"].startswith(("encode ", "relation from pairs "))]
        title, rated = "encoding 65,536 pairs of 1024²: million pairs a second", grouped(rows, "contender")
        yield _by_key(title, "from a list of pairs", rated, key, lambda row: f"{row['pairs_per_second'] / 1e6:.3g}")
        rows = [row for row in result["rows"] if row["case"].startswith("relation from layouts ")]
        by_key = {k: [row for row in rows if key(row) == k] for k in dict.fromkeys(map(key, rows))}
        extents, timed = (lambda row: f"{row['n']} x {row['n']}"), (lambda row: duration(row["seconds_median"]))
        yield _by_key("a relation from two layouts", "longshore from_layouts", by_key, extents, timed)
        yield "Aims", "bold"
        for aim in result["aims"]:
            verdict, words = _verdict(aim)
            yield f"  {verdict}: {words}", _VERDICTS.get(verdict, "dim")

    def figure(self, result):
        """Assembly left, disassembly right; a group of bars a case, a bar a contender. Below all, the sizes."""
        from matplotlib import colormaps

        rows = [row for row in result["rows"] if row["table"] == self.kernels[0]]
        there = {row["contender"] for row in rows if row["payload_bytes"]} - {MEMCPY}
        names = [name for name in result["contenders"] if name in there]
        encodings = [name for name in names if name.startswith("longshore") and name not in _COLOURS]
        shades = {n: colormaps["Blues"](0.35 + 0.6 * k / max(1, len(encodings) - 1)) for k, n in enumerate(encodings)}
        by_table = {(title, direction): of for (title, direction, _), of in _by_table(rows).items()}
        titles = list(dict.fromkeys(title for title, _ in by_table))
        figure, panels = sheet(result, len(titles) + 1, 2, 17, 3.4 * len(titles) + 4.4)
        for pair, title in zip(panels, titles):
            for panel, direction in zip(pair, DIRECTIONS):
                rows = by_table.get((title, direction), [])
                plain(panel, f"{title}, {direction}", y="GB/s")
                _throughput(panel, rows, names, {**_COLOURS, **shades})
            # The same scale on both sides; applications are too different for a linear one.
            top, size = max(panel.get_ylim()[1] for panel in pair), max((row["size"] for row in rows), default=0)
            for panel in pair:
                panel.set_yscale("linear" if size else "log")
                panel.set_ylim(0 if size else 0.05, top)
        _size_chart(panels[-1][0], result["sizes"])
        panels[-1][1].axis("off")
        handles, labels = panels[0][0].get_legend_handles_labels()
        panels[-1][1].legend(handles, labels, loc="center", fontsize=8, ncols=2, frameon=False)
        return figure


def _ratio(samples, peers, name):
    """How many times faster than the fastest of some peers: the median round, and what a quarter of them exceed."""
    there = [samples[peer] for peer in peers if peer in samples]
    if not there:
        return None, None
    best = min(there, key=statistics.median)
    each = sorted(b / s for b, s in zip(best, samples[name]))
    return statistics.median(each), each[3 * len(each) // 4]


def _sizes():
    """Bytes of every encoding of the relations of node 0 to all nodes, and to itself."""
    for key in REDISTRIBUTIONS:
        relations = [redistribution(key, _N, (0, node)) for node in range(_NODES)]
        for kind in ls.encoding_kinds():
            try:
                each = [ls.encode(relation, kind).encoded_bytes for relation in relations]
            except ls.ArgumentError:  # a library that this machine has not; the contender of that kind tells it
                continue
            facts = {"case": key, "n": _N, "kind": kind, "pairs": relations[0].elements}
            yield {**facts, "encoded_bytes": each[0], "encoded_bytes_to_all": sum(each)}


def judge(rows):
    """Every aim: in words, what was wanted, the least that was measured and where, and who fell short.

    `met` is None where nothing was measured. By medians over the rounds; `beyond_memcpy` counts those in which a memory
    copy of as many bytes falls short too, `beyond_noise` those of the others that fall short even by the round at the
    upper quartile.
    """
    copies = {r["case"]: r for r in rows if r["contender"] == MEMCPY}
    moves = [{**r, "copy": copies.get(r["case"], {})} for r in rows if r["payload_bytes"]]
    folding = [r for r in moves if r["contender"] in _FOLDING and r["pattern"] in REDISTRIBUTIONS]
    large, small = [r for r in folding if r["n"] >= 1024], [r for r in folding if r["n"] == 128]
    turned = [r for r in large if (r["pattern"], r["direction"]) == ("R4", "disassembly")]
    # What a user gets: the relation compiled as it is, and the encoding that is chosen where none is named.
    usual = [r for r in moves if r["contender"] == "longshore nest" or r.get("automatic")]
    blocks, ascending, fft = ([r for r in usual if r["pattern"] in of] for of in (_BLOCKS, ("sorted-list",), ("fft",)))
    encoded = [{**r, "rate": r["pairs_per_second"] / 1e6} for r in rows if r["case"].startswith("encode ")]
    both, huge = "nest and automatic", "a relation from two layouts at 2^20 x 2^20"
    return [
        _least("R1 to R4 from 1024² on, encodings that fold: times the hand-written loop", 0.95, large, "hand_ratio"),
        _least("R4 disassembly from 1024² on, encodings that fold: times the naive loop", 3.0, turned, "naive_ratio"),
        _least("R1 to R4 at 128², encodings that fold: times the loop of fixed length", 0.9, small, "hand_ratio"),
        _least(f"blocks of 12 to 48 bytes, {both}: times the hand-written loop", 0.95, blocks, "hand_ratio"),
        _least(f"ascending lists, {both}: times a plain loop", 1.2, ascending, "hand_ratio"),
        _least(f"everything, {both}: times the faster MPI, less noise", 1 - _NOISE, usual, "mpi_ratio"),
        _least(f"transposes (FFT), {both}: times the faster MPI", 3.0, fft, "mpi_ratio"),
        _least("encoding pairs, in millions a second", 100.0, encoded, "rate"),
        _least(f"{huge}: as fast as at 1024², within a fifth", 0.8, _layout_costs(rows), "rate"),
    ]


def _least(aim, wanted, rows, field):
    there = [r for r in rows if r.get(field) is not None]
    worst = min(there, key=lambda r: r[field], default=None)
    short = [r for r in there if r[field] < wanted]
    possible = [r for r in short if r.get("copy", {}).get(field, wanted) >= wanted]
    return {
        "aim": aim,
        "wanted": wanted,
        "reached": None if worst is None else worst[field],
        "where": "" if worst is None else f"{worst['case']}, {worst['contender']}",
        "measured": len(there),
        "short": [f"{r['case']}, {r['contender']}: {r[field]:.3g}" for r in short],
        "beyond_memcpy": len(short) - len(possible),
        "beyond_noise": sum(r.get(f"{field}_high", r[field]) < wanted for r in possible),
        "met": None if worst is None else not short,
    }


def _layout_costs(rows):
    found, case = {r["case"]: r for r in rows}, "relation from layouts {} {}".format
    for key in REDISTRIBUTIONS:
        small, large = (found.get(case(key, n)) for n in (1024, 1 << 20))
        if small and large:
            yield {**large, "rate": small["seconds_median"] / large["seconds_median"]}


def _by_table(rows):
    """Rows by group, direction and kernels, the paper's redistributions by size too, with the title of each."""
    moves = [row for row in rows if row["payload_bytes"]]
    sized = [{**row, "size": row["n"] if row["group"] == "redistributions" else 0} for row in moves]
    for row in sized:
        row["title"] = row["group"] + (f" of {row['size']}² doubles" if row["size"] else "")
    return grouped(sized, "title", "direction", "table")


def _by_key(title, corner, lines, key, words):
    headings = dict.fromkeys(key(row) for rows in lines.values() for row in rows)
    return Table(title, [corner, *headings], [[name, *map(words, rows)] for name, rows in lines.items()])


def _spread(rows):
    """How far the farthest repetition is from the median, for the middling contender."""
    off = [max(r["seconds_max"] / r["seconds_median"] - 1, 1 - r["seconds_min"] / r["seconds_median"]) for r in rows]
    return f"±{statistics.median(off):.0%}"


def _verdict(aim):
    if aim["met"] is None:
        return "not measured", aim["aim"]
    words = f"{aim['aim']}: wanted {aim['wanted']:.3g}, reached {aim['reached']:.3g} ({aim['where']})"
    if aim["short"]:
        words += f"; short in {len(aim['short'])} of {aim['measured']}, in {aim['beyond_noise']} beyond the noise"
    if aim["beyond_memcpy"]:
        words += f", in {aim['beyond_memcpy']} where a memory copy falls short too"
    return "met" if aim["met"] else "NOT MET" if aim["beyond_noise"] else "nearly met", words


def _throughput(panel, rows, names, colours):
    cases = grouped(rows, "case")
    place = {case: at for at, case in enumerate(cases)}
    for k, name in enumerate(names):
        of = {place[row["case"]]: row for row in rows if row["contender"] == name}
        ends = [[row["payload_bytes"] / row[f"seconds_{end}"] / 1e9 for row in of.values()] for end in ("max", "min")]
        rates = {at: rate(row) for at, row in of.items()}
        low_high = [[abs(end - middle) for end, middle in zip(each, rates.values())] for each in ends]
        bars(panel, k, len(names), rates, name, colours[name], yerr=low_high, error_kw={"lw": 0.4, "ecolor": "#333333"})
    for row in rows:
        if row["contender"] == MEMCPY:
            at, copy, red = place[row["case"]], rate(row), "#c0392b"
            panel.hlines(copy, at - 0.47, at + 0.47, color=red, lw=1)
            panel.text(at + 0.47, copy, f"memcpy {copy:.3g}", fontsize=6, ha="right", va="bottom", color=red)
    first = [of[0] for of in cases.values()]
    labels = [row["pattern"] + ("" if row["size"] else f"\n{row['n']}") for row in first]
    panel.set_xticks(range(len(cases)), labels, fontsize=7)


def _size_chart(panel, sizes):
    from matplotlib import colormaps

    cases, kinds = list(dict.fromkeys(size["case"] for size in sizes)), grouped(sizes, "kind")
    for k, (kind, found) in enumerate(kinds.items()):
        values = {cases.index(size["case"]): size["encoded_bytes_to_all"] for size in found}
        bars(panel, k, len(kinds), values, kind, colormaps["tab10"](k))
    plain(panel, "sizes of the encodings", y="bytes, node 0 to all, 1024²")
    panel.set_yscale("log")
    panel.set_xticks(range(len(cases)), cases, fontsize=7)
    panel.set_ylim(top=panel.get_ylim()[1] * 30)  # room for the legend
    panel.legend(fontsize=7, ncols=len(kinds), frameon=False, loc="upper center")
