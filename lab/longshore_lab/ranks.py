"""`longshore bench ranks`: rank maps on the thesis's classes A to E and on groups that programs make, in a world of
2^20.

Each map is made in every representation that can hold it, and by every strategy: bytes with all indexes, SELECT (of
questions that wait for each other, or not, or in order), RANK, analysis and building; beside the array of 32-bit ranks
that MPI libraries keep, sets of sdsl-lite and of CRoaring, and the information-theoretic bound.
"""

import math
import statistics
import time
from functools import partial
from typing import NamedTuple

import numpy as np
from longshore import RankMap, rank_modules

from . import _loops
from .machine import clocked, grouped, summary
from .protocol import Bench, choose, missing
from .report import Table, sheet

WORLD = 1 << 20
CLASSES = {
    "A": "random members",
    "B": "strides",
    "C": "ranges of random length, ascending",
    "D": "unions of faces of a binary cube",
    "E": "ranges in descending order",
}
# What the aims call nested loops, beside B.
_MESHES = ("box of a mesh", "sub-mesh", "matrix row", "matrix column", "block-cyclic grid")
NESTED = (*_MESHES, "transpose", "node-local", "leaders in a stride")
# Nothing in these is to be found but chance; all other maps are structured, whether their structure is found or not.
_CHANCE = ("random 10k", "random 500k", "random graph", "random permutation", "leaders of shuffled nodes")
_QUESTIONS = 1 << 17  # of each repeat, other ones each time: no cache has seen them
_QUICK_QUESTIONS = 1 << 15
_FEW = 64  # asked first, to see how many can be asked
_MOST_SECONDS = 0.02  # of the questions of one repeat
_MOST_READ_SECONDS = 1.0  # what would take longer in order is not read
_SLOW_NS = 1000  # what answers more slowly gets no hash
STRATEGIES = HYBRID, TIME, _, THESIS = "longshore hybrid", "longshore time", "longshore space", "thesis hybrid"
# The thesis switched Range/Stride off for its class B (section 5.2.2), as there is nothing else to see with it.
_WITHOUT_STRIDE = "thesis hybrid, no stride"
_PEERS = {"sdsl-lite": "libsdsl-dev", "CRoaring": "libroaring-dev"}
# Building these takes a second of a large map, whatever the machine: `quick` leaves them out there.
_SLOW_TO_BUILD, _QUICK_MEMBERS = ("bwt", "wavelet"), 1 << 17


def contender(module):
    """A representation's name in rows: ours begin with "longshore", those that only the thesis has with "thesis"."""
    return f"{'longshore' if module in rank_modules('standard') else 'thesis'} {module}"


def bound_bytes(case):
    """What no representation of all such maps can go below: log2 of the number of sets, or of lists, of as many
    members."""
    n, of = len(case.members), math.lgamma  # of n + 1: the logarithm of n factorial
    bits = (of(WORLD + 1) - of(WORLD - n + 1) - (of(n + 1) if case.ascending else 0)) / math.log(2)
    return max(bits, 1) / 8


def _peers_module():
    """Other libraries' sets, or None; and those that are not there, with the reason."""
    try:
        from . import _peers
    except ImportError as error:
        return None, {name: f"not built here ({error}); Debian: {package}" for name, package in _PEERS.items()}
    absent = {name: package for name, package in _PEERS.items() if name not in _peers.peers()}
    return _peers, {name: f"not found when this was built; Debian: {package}" for name, package in absent.items()}


class Ranks(Bench):
    name = "ranks"
    usual_rounds = (2, 5)

    def __init__(self, quick=False, *, maps=None, **options):
        self._maps = maps if maps is not None else 1 if quick else 1000
        super().__init__(quick, **options)
        self.questions, self._repeats = _QUICK_QUESTIONS if quick else _QUESTIONS, self.rounds(None)
        self._random, self._groups = np.random.default_rng(1), {}
        self._peers, self._absent = _peers_module()

    def wanted(self, given):
        names = choose("case", given, sorted({*CLASSES, "named", *(case.name for case in named_maps())}))
        for letter in filter(names.__contains__, CLASSES):  # a thousand maps of a million members: one at a time
            yield from class_maps(letter, self._maps)
        yield from (case for case in named_maps() if case.name in names or "named" in names)

    def measure(self, context, case, contenders, rounds):
        """A row for each representation that can hold the map, for each strategy, the array and the sets of others."""
        n, members, rows = len(case.members), case.members, []
        asked = [self._random.integers(0, n, self.questions) for _ in range(rounds)]
        common = {"case": case.group, "name": case.name, "n": n, "bound_bytes": bound_bytes(case)}

        def add(name, row, **facts):
            rows.append({**common, "contender": name, **facts, **row})

        array = partial(_loops.rank_array_seconds, members.astype(np.int32))
        add("int array", self._asked(array, None, members, asked), representation="int array", bytes=4 * n)
        for estimate in RankMap(members, WORLD).explain(modules="all").rows:
            module = estimate["module"]
            if not estimate["possible"]:
                if "needs the library" in estimate["note"]:
                    self._absent[module] = estimate["note"]
            elif not (self.quick and n > _QUICK_MEMBERS and module in _SLOW_TO_BUILD):
                estimated = {"estimated_bytes": estimate["bytes"], "estimated_ns": estimate["select_ns"]}
                add(contender(module), self._of_map(members, asked, {"module": module}), module=module, **estimated)
        analysis = self._best_ns(partial(_loops.rank_analysis_seconds, members, WORLD), n)
        for name in (*STRATEGIES, _WITHOUT_STRIDE) if case.group == "B" else STRATEGIES:
            how = {"modules": "thesis"} if name == THESIS else {"strategy": name.removeprefix("longshore ")}
            if name == _WITHOUT_STRIDE:
                how = {"modules": ",".join(module for module in rank_modules("thesis") if module != "stride")}
            add(name, self._of_map(members, asked, how), analysis_ns=analysis)
        for name in self._peers.peers() if self._peers is not None and case.ascending else ():
            start = time.perf_counter()
            peer = self._peers.make(name, members)
            ns = (time.perf_counter() - start) * 1e9
            row = self._asked(peer.select_seconds, peer.rank_seconds, members, asked)
            add(name, row, representation=name, bytes=peer.bytes, build_ns=ns / n)
        return rows, []

    def _of_map(self, members, asked, how):
        start = time.perf_counter()
        of = RankMap(members, WORLD, **how)
        ns = (time.perf_counter() - start) * 1e9
        n, is_bwt = len(members), of.representation == "bwt"  # which answers by itself, and gets no index
        hashed = of if is_bwt else of.with_lookup("hash")
        rank = partial(_loops.rank_rank_seconds, of) if hashed.lookup == "none" and not is_bwt else None
        row = {"representation": of.representation, "bytes": of.bytes, "build_ns": ns / n}
        row |= self._asked(partial(_loops.rank_select_seconds, of), rank, members, asked)
        # In order, the block of a bwt is at hand; nothing else is faster than a few times what it takes at random.
        if row["select_ns"] * 1e-9 * n < _MOST_READ_SECONDS or is_bwt:
            row["read_ns"] = self._best_ns(partial(_loops.rank_read_seconds, of), n)
        if hashed.lookup == "hash" and row["select_ns"] < _SLOW_NS:
            questions = [members[at] for at in asked]
            row["hashed_bytes"] = hashed.bytes
            row["hashed_rank_ns"] = _ask_ns(partial(_loops.rank_rank_seconds, hashed), questions, "independent")
        return row

    def _asked(self, select, rank, members, asked):
        """What questions to a map take: `select` and `rank` get questions and how they follow one another."""
        taken, n = _ask(select, asked, "independent")
        row = {**summary(taken), "questions": n, "payload_bytes": 8 * n, "ranks": WORLD, "threads": 1}
        row |= {"select_ns": min(taken) * 1e9 / n, "select_dependent_ns": _ask_ns(select, asked, "dependent")}
        if rank is not None:
            row["rank_ns"] = _ask_ns(rank, [members[at] for at in asked], "independent")
        return row

    def _best_ns(self, seconds, questions):
        return min(seconds() for _ in range(self._repeats)) * 1e9 / max(questions, 1)

    def beside(self, step):
        """The algebra on two random halves of the world, nanoseconds a member of both; and translation of single ranks
        into a list of everybody, one after the other."""
        step("groups/operations")
        half, random = WORLD // 2, self._random
        sets = [np.sort(random.choice(WORLD, half, replace=False)) for _ in range(2)]
        a, b = (RankMap(members, WORLD) for members in sets)
        copy, permuted = RankMap(sets[0], WORLD), RankMap(random.permutation(sets[0]), WORLD)
        everybody = RankMap(random.permutation(WORLD), WORLD).with_lookup("hash")
        asked = [random.integers(0, WORLD, self.questions) for _ in range(self._repeats)]
        even, colours = np.arange(0, half, 2), np.arange(half) % 64
        operations = {
            "union, MPI's order": (a.union, b, WORLD),
            "intersection": (a.intersection, b, WORLD),
            "difference": (a.difference, b, WORLD),
            "union as sets": (a.__or__, b, WORLD),
            "incl of every other one": (a.incl, even, half),
            "excl of every other one": (a.excl, even, half),
            "compare, equal": (a.compare, copy, half),
            "compare, permuted": (a.compare, permuted, half),
            "translate all": (a.translate, b, half),
            "split into 64": (a.by_colour, colours, half),
        }
        times = {name: self._best_ns(partial(clocked, partial(*call)), n) for name, (*call, n) in operations.items()}
        self._groups = {
            "union_ns": self._best_ns(partial(_loops.rank_union_seconds, a, b), WORLD),
            "translate_one_ns": _ask_ns(partial(_loops.rank_rank_seconds, everybody), asked, "dependent"),
            "operations_ns": times,
        }
        return [], [missing(name, why, "all") for name, why in self._absent.items()]

    def finish(self, result):
        del result["contenders"]
        result |= {"world": WORLD, "groups": self._groups, "aims": aims(result["rows"], self._groups)}

    def tables(self, result):
        """A table for each class in the form of the thesis's figures, one for each named map, and the aims."""
        classes = {letter: f"class {letter}: {words}" for letter, words in CLASSES.items()}
        titles = [
            {**row, "title": classes.get(row["case"], f"{row['name']}, {row['n']:,} members")} for row in result["rows"]
        ]
        headings = ("", "maps", "bytes", "of bound", "SELECT ns", "dependent", "in order", "RANK ns", "build ns")
        for title, rows in grouped(titles, "title").items():
            yield Table(title, headings, [_line(*of) for of in grouped(rows, "contender").items()])
        groups = result["groups"]
        lines = [(name, f"{ns:.1f}") for name, ns in groups["operations_ns"].items()]
        lines.append(("translate a rank into a list of everybody, after another", f"{groups['translate_one_ns']:.0f}"))
        yield Table("group operations on halves of the world by chance", ("", "ns a member"), lines)
        columns = {"aim": "aim", "limit": lambda aim: f"{aim['limit']:g} {aim['unit']}".strip()}
        columns |= {"reached": lambda aim: f"{aim['reached']:.3g}", "": lambda aim: "met" if aim["met"] else "missed"}
        yield Table.of("aims", result["aims"], {**columns, "at": "worst"}, words="at")

    def figure(self, result):
        """A row of panels for each class, as the thesis has them (figures 5.1 to 5.19): bytes, SELECT at random, and in
        order, of each map, by number; the maps with names side by side in a row of their own."""
        from matplotlib import colormaps

        panels = (("bytes", "bytes"), ("select_ns", "SELECT at random, ns"), ("read_ns", "SELECT in order, ns"))
        cases = grouped(sorted(result["rows"], key=lambda row: row["case"]), "case")
        contenders = list(dict.fromkeys(row["contender"] for row in result["rows"]))
        figure, grid = sheet(result, len(cases), len(panels), 6 * len(panels), 4 * max(len(cases), 1))
        for axes, (case, of_case) in zip(grid, cases.items()):
            place = {name: k for k, name in enumerate(dict.fromkeys(row["name"] for row in of_case))}
            for axis, (key, label) in zip(axes, panels):
                for name, rows in grouped(of_case, "contender").items():
                    points = [(place[row["name"]], row[key]) for row in rows if key in row]
                    marker, size = ("o", 3) if name.startswith("longshore") else ("x", 4)
                    style = {"markersize": size, "color": colormaps["tab20"](contenders.index(name) % 20)}
                    axis.plot(*zip(*points), marker, label=name, **style) if points else None
                axis.set_yscale("log")
                axis.set_title(f"class {case}: {CLASSES[case]}" if case in CLASSES else case)
                axis.set_ylabel(label)
                if case in CLASSES:
                    axis.set_xlabel("map")
                    axis.xaxis.get_major_locator().set_params(integer=True)
                else:
                    axis.set_xticks(list(place.values()), list(place), rotation=60, ha="right", fontsize="x-small")
            # Every contender has a SELECT time.
            handles, labels = axes[1].get_legend_handles_labels()
            axes[-1].legend(handles, labels, fontsize="xx-small", ncols=2, loc="upper left", bbox_to_anchor=(1, 1))
        return figure


def _ask(seconds, asked, how):
    """Seconds of each repeat, `seconds(questions, how)` of other questions each, and how many there is time for."""
    few = asked[0][:_FEW]
    few_ns = seconds(few, how) * 1e9 / len(few)
    n = min(len(asked[0]), max(_FEW, int(_MOST_SECONDS * 1e9 / max(few_ns, 0.1))))
    return [seconds(questions[:n], how) for questions in asked], n


def _ask_ns(seconds, asked, how):
    taken, n = _ask(seconds, asked, how)
    return min(taken) * 1e9 / n


def _line(name, rows):
    """Medians over the maps."""

    def median(key, form="{:.1f}"):
        values = [row[key] for row in rows if key in row]
        return form.format(statistics.median(values)) if values else ""

    taken = {row["representation"] for row in rows} - {name}
    over = statistics.median(row["bytes"] / row["bound_bytes"] for row in rows)
    times = (median("select_ns"), median("select_dependent_ns"), median("read_ns", "{:.2f}"))
    rank = median("rank_ns") or median("hashed_rank_ns", "{:.1f} hashed")
    name = f"{name} ({', '.join(sorted(taken))})" if taken else name
    return name, str(len(rows)), median("bytes", "{:,.0f}"), f"{over:.3g}", *times, rank, median("build_ns")


def aims(rows, groups):
    """What was hoped for, and what is there: each with the worst map, so that a reader can look at it."""
    maps, out = {}, []
    for row in rows:
        maps.setdefault(row["name"], {})[row["contender"]] = row
    letters = {row["name"]: row["case"] for row in rows}
    strides = {name for name, letter in letters.items() if letter == "B"}

    def aim(what, limit, found, unit="", at_least=False):
        if found:
            value, where = (min if at_least else max)(found)
            met = value >= limit if at_least else value <= limit
            out.append({"aim": what, "limit": limit, "reached": value, "unit": unit, "worst": where, "met": met})

    def excess(what, limit, test):
        """Bytes of the hybrid strategy's map over those of the smallest representation."""
        least = {
            name: min(row["bytes"] for row in maps[name].values() if "module" in row) for name in filter(test, maps)
        }
        over = [(maps[name][HYBRID]["bytes"] / of, name) for name, of in least.items()]
        aim(f"hybrid bytes over the smallest module, {what}", limit, over)

    def median(what, limit, who, field, least=0):
        """The middle map of those that have the field."""
        there = [(of[who], name) for name, of in maps.items() if field in of.get(who, ())]
        values = sorted((row[field], name) for row, name in there if row["n"] >= least)
        what = f"{what}, median of maps{f' of {least:,} and more' if least else ''}"
        aim(what, limit, values[len(values) // 2 :][:1], "ns")

    chance = ("random graph", "leaders of shuffled nodes", "random permutation")
    structured = {name for name in maps if is_structured(letters[name], name)}
    excess("structured maps but strides", 1.1, lambda name: name in structured - strides)
    excess("strides (class B)", 1.1, lambda name: name in strides)
    excess("random sets", 1.25, lambda name: letters[name] == "A" or name in ("random 10k", "random 500k"))
    excess("lists by chance", 1.25, lambda name: name in chance)
    nested = [(maps[name][HYBRID], name) for name in maps if name in NESTED or name in strides]
    aim("bytes of nested loops", 200, [(row["bytes"], name) for row, name in nested], "bytes")
    aim("SELECT of nested loops", 10, [(row["select_ns"], name) for row, name in nested], "ns")
    fano, bits = ("elias-fano", "Elias-Fano", 20, 40), ("bitmap512", "bitmap", 20, 40)
    for module, words, *limits in (fano, bits, ("runs", "runs", 75, 75)):
        median(f"SELECT of {words}", limits[0], contender(module), "select_ns")
        median(f"dependent SELECT of {words}", limits[1], contender(module), "select_dependent_ns")
    slower = sorted((of[TIME]["select_ns"] / of["int array"]["select_ns"], name) for name, of in maps.items())
    aim("time strategy over the int array, median", 2, slower[len(slower) // 2 :][:1])
    aim("time strategy over the int array, 90th percentile", 3, slower[int(0.9 * (len(slower) - 1)) :][:1])
    for module, words, limit in (("bitmap512", "a bitmap", 10), ("elias-fano", "Elias-Fano", 40)):
        median(f"RANK of members in {words}", limit, contender(module), "rank_ns")
    median("RANK of members of lists, hashed", 40, HYBRID, "hashed_rank_ns")
    without = "without the search for ranks that come twice"
    median(f"analysis a member ({without})", 1.5, HYBRID, "analysis_ns", 100_000)
    aim("union of two half-million-member maps, a member", 15, [(groups["union_ns"], "random halves")], "ns")
    if maps:
        mean = statistics.geometric_mean
        less = mean(of[THESIS]["bytes"] / of[HYBRID]["bytes"] for of in maps.values())
        slower = mean(of[HYBRID]["select_ns"] / of[THESIS]["select_ns"] for of in maps.values())
        aim("bytes of the thesis's hybrid over ours, geometric mean", 10, [(less, "all maps")], at_least=True)
        aim("SELECT of ours over the thesis's hybrid, geometric mean", 1, [(slower, "all maps")])
    return out


class RankCase(NamedTuple):
    """A class's map, or one with a name."""

    group: str
    name: str
    members: np.ndarray

    needed_bytes = 0  # next to nothing
    ascending = property(lambda self: bool(np.all(np.diff(self.members) > 0)))


def is_structured(group, name):
    return group != "A" and name not in _CHANCE


def class_maps(letter, count, seed=2011):
    """Maps of one of the thesis's classes (section 5.2); for a seed the same, however many are asked for."""
    make = {
        "A": lambda random: np.sort(random.choice(WORLD, int(random.integers(1, WORLD)), replace=False)),
        "B": _stride,
        "C": lambda random: np.concatenate(_some_ranges(random, 10000)),
        "D": _faces,
        "E": lambda random: np.concatenate(_some_ranges(random, 200)[::-1]),
    }[letter]
    for k in range(count):
        members = make(np.random.default_rng([seed, ord(letter), k]))
        yield RankCase(letter, f"{letter}{k}", np.ascontiguousarray(members, dtype=np.int64))


def _stride(random):
    first, last = np.sort(random.choice(WORLD, 2, replace=False))
    return np.arange(first, last + 1, int(random.integers(1, max(2, (last - first) // 2))))


def _some_ranges(random, most):
    """So many disjoint ranges at most, ascending: begin and end alternate."""
    cuts = np.sort(random.choice(WORLD + 1, 2 * int(random.integers(1, most)), replace=False))
    return [np.arange(first, last) for first, last in cuts.reshape(-1, 2)]


def _faces(random):
    members, ranks = np.zeros(WORLD, dtype=bool), np.arange(WORLD)
    for _ in range(int(random.integers(1, 13))):
        bits = random.choice(20, int(random.integers(2, 8)), replace=False)
        mask = int(sum(1 << int(bit) for bit in bits))
        members |= (ranks & mask) == (int(random.integers(WORLD)) & mask)
    return np.flatnonzero(members)


def named_maps():
    """Groups that programs make of 2^20 processes."""
    random, grid = np.random.default_rng(7), np.arange(WORLD)
    matrix, mesh, nodes = grid.reshape(1024, 1024), grid.reshape(64, 128, 128), grid.reshape(-1, 64)
    cyclic = grid.reshape(64, 16, 64, 16)[1::4, :, 2::4, :].reshape(-1)
    everybody = random.permutation(WORLD)
    x, y = random.random((2, WORLD))
    near = np.sort(random.choice(WORLD, 5243, replace=False))
    near = near[np.argsort(np.hypot(x[near] - x[0], y[near] - y[0]))]
    for name, members in (
        ("matrix row", matrix[1022]),
        ("matrix column", matrix[:, 1]),
        ("sub-mesh", mesh[:, 0, :]),
        ("box of a mesh", mesh[5:55, 20:77, 10:100]),
        ("block-cyclic grid", cyclic),
        ("transpose", matrix[:1000].T),
        ("node-local", nodes[777]),
        ("leaders in a stride", nodes[:, 0]),
        ("leaders of shuffled nodes", random.permutation(nodes[:, 0])),
        ("shuffled nodes", random.permutation(nodes)),
        ("100 failed nodes", np.delete(nodes, random.choice(len(nodes), 100, replace=False), axis=0)),
        ("10 failed ranks", np.delete(grid, random.choice(WORLD, 10, replace=False))),
        ("random graph", near),
        ("Morton order", _morton()),
        ("Hilbert order", _hilbert()),
        ("random 10k", np.sort(random.choice(WORLD, 10_000, replace=False))),
        ("random 500k", np.sort(random.choice(WORLD, 500_000, replace=False))),
        ("random permutation", everybody),
    ):
        yield RankCase("named", name, np.ascontiguousarray(members.reshape(-1), dtype=np.int64))


def _morton():
    index, row, column = np.arange(WORLD), 0, 0
    for bit in range(10):
        column |= (index >> (2 * bit) & 1) << bit
        row |= (index >> (2 * bit + 1) & 1) << bit
    return row * 1024 + column


def _hilbert():
    rest, side = np.arange(WORLD), 1
    row, column = np.zeros_like(rest), np.zeros_like(rest)
    while side < 1024:
        down = (rest >> 1) & 1
        right = (rest ^ down) & 1
        turned = right == 0
        flipped = turned & (down == 1)
        row, column = np.where(flipped, side - 1 - row, row), np.where(flipped, side - 1 - column, column)
        row, column = np.where(turned, column, row), np.where(turned, row, column)
        row, column = row + side * down, column + side * right
        rest, side = rest >> 2, side * 2
    return row * 1024 + column
