"""`longshore bench communicators`: chapter 6 of the thesis, rank maps inside a running system.

A world of fibers in one process creates the fourteen communicators of table 6.1, sends messages between members at
random and gathers, with each representation and strategy in turn, beside the array of 32-bit ranks that MPI libraries
keep. Every message and every gathered number is compared with what was sent."""

import statistics
from typing import NamedTuple

import longshore as ls
import numpy as np
from longshore import RankMap

from . import _loops
from .machine import available_memory, clocked, grouped, set_ratios, summary
from .protocol import Bench, BenchError, choose, missing
from .report import Table, duration, sheet

WORLD, LEAST_WORLD = 200_000, 200
# Section 6.6: on 40 processes, each of which keeps a map of its own of each of 8 communicators.
PROCESSES, COMMUNICATORS = 40, 8
# What the thesis's hybrid strategy saved there, in MiB: 18 bits instead of 32 of 100,000 permuted ranks are 53.4.
_FIRST_SAVED_MIB = (121.295, 2.118, 7.159, 113.207, 72.518, 39.966, 26.015)
THESIS_SAVED_MIB = (*_FIRST_SAVED_MIB, 4.756, 55.300, 5.328, 10.668, 53.393, 5.328, 53.393)

ARRAY = "int array"
# The thesis's names for its own: Opt-Cano is packed, Delta is gap.
_SETS = ("gap", "bitmap", "bdd", "stride")
_STRATEGIES = ("thesis hybrid", "longshore hybrid", "longshore time", "longshore space")
CONTENDERS = (ARRAY, "packed", "bwt", *_SETS, "wavelet", *_STRATEGIES)
OPERATIONS = {
    "create": "time to create the communicator (table 6.2)",
    "messages": "time of point-to-point messages (table 6.3)",
    "gathers": "time of gathers (table 6.4)",
}
_GATHERS = 10
_MESSAGE_BYTES, _GATHERED_BYTES = 24, 8
_SLOW_SECONDS = 1e-5  # a question; who takes longer is used once
_RANK_BYTES = 12_000  # of a fiber
_CANNOT = "∞"


class Experiment(NamedTuple):
    """A communicator: its number in the table, the class of the thesis, and its members in their order."""

    number: int
    group: str
    words: str
    members: np.ndarray

    needed_bytes = 0  # looked at for the whole world
    key = property(lambda self: str(self.number))
    name = property(lambda self: f"experiment {self.number}: {self.words}")


def mesh_of(world):
    """Six extents, the first the slowest, whose face [0,*,*,0,*,*] has a twentieth of the ranks: 4 x 10 x 10 x 5 x 10 x
    10."""
    side = 1
    while 20 * (side + 1) ** 4 <= world:
        side += 1
    return (4, side, side, 5, side, side)


def experiments(world=WORLD):
    """The fourteen communicators of table 6.1 for a world of any size; the same ones each time.

    In a world of 200,000 ranks they have the sizes of the table, but for experiment 6: of 200,000 ranks, 40,000 are
    multiples of 5, and the table says 40,001. In other worlds counts and lengths are in proportion.
    """

    def part(count):
        return max(1, count * world // WORLD)

    def random(number):
        return np.random.default_rng([2011, number])

    def drawn(number, count):
        return random(number).choice(world, part(count), replace=False)

    def permuted_ranges(number, length):
        """Ten of them, a tenth of the world apart."""
        return np.concatenate([world // 10 * k + random(number * 10 + k).permutation(part(length)) for k in range(10)])

    mesh, ranks, length, first = mesh_of(world), np.arange(world), part(100), part(11453)
    face = np.arange(np.prod(mesh)).reshape(mesh)[0, :, :, 0]
    table = (
        ("I", "even ranks", ranks[::2]),
        ("I", f"81 x + {first}, x > 0", ranks[first + 81 :: 81]),
        ("I", f"face [0,*,*,0,*,*] of a mesh of {' x '.join(map(str, mesh))}", face),
        ("I", f"every other range of {length}", ranks[ranks // length % 2 == 0]),
        *(("II", f"multiples of {k}", ranks[::k]) for k in (3, 5, 7)),
        *(("III", f"{part(n):,} at random, in order", np.sort(drawn(k, n))) for k, n in ((8, 5000), (9, 50_000))),
        *(
            ("IV", f"{part(n):,} at random, permuted", drawn(k, n))
            for k, n in ((10, 10_000), (11, 20_000), (12, 100_000))
        ),
        ("V", f"10 ranges of {part(1000):,}, each permuted", permuted_ranges(13, 1000)),
        ("V", f"10 ranges of {part(10_000):,}, each permuted", permuted_ranges(14, 10_000)),
    )
    flat = [np.ascontiguousarray(members.reshape(-1), dtype=np.int64) for _, _, members in table]
    return [Experiment(k, *words, members) for k, ((*words, _), members) in enumerate(zip(table, flat), 1)]


def make(contender, members, world):
    """The communicator's map as a contender keeps it. Raises ArgumentError, saying why, where it cannot."""
    if contender == ARRAY:
        return _loops.rank_array_map(members, world)
    if contender == "thesis hybrid":
        return RankMap(members, world, modules="thesis")
    if contender.startswith("longshore "):
        return RankMap(members, world, strategy=contender.removeprefix("longshore "))
    if contender in _SETS and np.any(np.diff(members) < 0):
        of_set = RankMap(np.sort(members), world, module=contender)
        return RankMap.child(of_set, RankMap(np.argsort(np.argsort(members)), len(members), module="wavelet"))
    return RankMap(members, world, module=contender)


class Communicators(Bench):
    name, named = "communicators", CONTENDERS
    usual_rounds = (1, 3)

    def __init__(self, quick=False, *, ranks=None, **options):
        world = ranks if ranks is not None else WORLD // 10 if quick else WORLD
        if world < LEAST_WORLD:
            raise BenchError(f"a world of {world} ranks; the communicators need {LEAST_WORLD} at least")
        if (there := available_memory()) < (need := world * _RANK_BYTES):
            told = f"{world:,} ranks take {need / 1e9:.1f} GB, and {there / 1e9:.1f} are free"
            raise BenchError(f"{told}: give fewer --ranks")
        if not ls.finegrain.available():
            raise BenchError("this Longshore has no finegrain engine: it was made without Boost.Context")
        super().__init__(quick, ranks=world, **options)
        self.messages, self._saved = 1000 if quick else 10_000, []

    def wanted(self, given):
        table = {one.key: one for one in experiments(self.ranks)}
        return [table[key] for key in choose("experiment", given, list(table), f"1 to {len(table)}")]

    def measure(self, context, case, contenders, rounds):
        """The engine itself lets the maps take turns in one world."""
        n, random, maps, built, lacking = len(case.members), np.random.default_rng([6, case.number]), {}, {}, []
        asked, senders, receivers = (random.integers(0, n, count) for count in (16, self.messages, self.messages))
        for name in self.chosen:
            build = lambda name=name: maps.update({name: make(name, case.members, self.ranks)})  # noqa: E731
            try:
                built[name] = [clocked(build) for _ in range(rounds)]
            except ls.ArgumentError as error:
                why = str(error).removeprefix("none of the representations can hold the map: ")
                lacking.append(missing(name, why, f"experiment {case.key}"))
        slow = {name for name, of in maps.items() if clocked(lambda of=of: of.world_rank(asked)) / 16 > _SLOW_SECONDS}
        repeats = [1 if name in slow else rounds for name in maps]
        times = _loops.communicator_seconds(case.members, list(maps.values()), repeats, senders, receivers, _GATHERS)
        payload = dict(zip(OPERATIONS, (0, self.messages * _MESSAGE_BYTES, _GATHERS * n * _GATHERED_BYTES)))
        rows = []
        for (name, of), seconds in zip(maps.items(), times):
            seconds["create"] = [a + b for a, b in zip(built[name], seconds["create"])]
            for operation in OPERATIONS:
                what = {"experiment": case.number, "operation": operation, "n": n, "contender": name}
                where = {"ranks": self.ranks, "processes": 1, "threads": 1, "payload_bytes": payload[operation]}
                told = {"representation": of.representation, "map_bytes": of.bytes, "detail": case.words}
                case_name = f"{case.number} {operation}"
                rows.append({"case": case_name, **what, **summary(seconds[operation]), **where, **told})
            kept = {"experiment": case.number, "contender": name, "map_bytes": of.bytes, "array_bytes": 4 * n}
            saved = {"saved_bytes": (4 * n - of.bytes) * PROCESSES * COMMUNICATORS}
            self._saved.append({**kept, "processes": PROCESSES, "communicators": COMMUNICATORS, **saved})
        return rows, lacking

    def finish(self, result):
        set_ratios(result["rows"], "array_ratio", [ARRAY])
        result |= {"ranks": self.ranks, "messages": self.messages, "gathers": _GATHERS, "saved": self._saved}
        facts = ((one.number, one.group, one.words, len(one.members)) for one in self.cases)
        result["experiments"] = [dict(zip(("experiment", "class", "words", "n"), of)) for of in facts]

    def tables(self, result):
        """Tables 6.1 to 6.4 of the thesis, and the list of section 6.6: a line an experiment, a column a contender."""
        names, told = result["contenders"], result["experiments"]

        def table(title, rows, names, words):
            found, lines = {(row["experiment"], row["contender"]): row for row in rows}, []
            for one in told:
                of = (found.get((one["experiment"], name)) for name in names)
                lines.append([str(one["experiment"]), *(_CANNOT if what is None else words(what) for what in of)])
            return Table(title, ["", *(name.replace(" ", "\n", 1) for name in names)], lines)

        lines = [(str(one["experiment"]), one["class"], f"{one['n']:,}", one["words"]) for one in told]
        yield Table("communicators (table 6.1)", ("", "class", "members", "which"), lines, left=("which",))
        for operation, rows in grouped(result["rows"], "operation").items():
            words = lambda row: f"{duration(row['seconds_median'])}\n×{row['array_ratio']:.3g}"  # noqa: E731
            times = table(OPERATIONS[operation], rows, names, words)
            # Over the experiments that a contender can hold.
            ratios = [[row["array_ratio"] for row in rows if row["contender"] == name] for name in names]
            means = [f"×{statistics.geometric_mean(of):.3g}" if of else _CANNOT for of in ratios]
            times.lines.append(["mean", *means])
            yield times
        yield table("bytes of the map", result["saved"], names, lambda one: f"{one['map_bytes']:,}")
        kept = [name for name in names if name in _STRATEGIES]
        title = f"MiB saved, {COMMUNICATORS} communicators, {PROCESSES} processes (6.6)"
        spared = table(title, result["saved"], kept, lambda one: f"{one['saved_bytes'] / 2**20:.3f}")
        printed = {k: f"{mib:.3f}" for k, mib in enumerate(THESIS_SAVED_MIB, 1)} if result["ranks"] == WORLD else {}
        spared.headings[1:] = [*(["printed\nthere"] if printed else []), *spared.headings[1:], "whole\narray"]
        for line, one in zip(spared.lines, told):
            whole = f"{4 * one['n'] * PROCESSES * COMMUNICATORS / 2**20:.3f}"
            line[1:] = [*([printed[one["experiment"]]] if printed else []), *line[1:], whole]
        yield spared

    def figure(self, result):
        """Figures 6.1 to 6.3 of the thesis, as multiples of the int array's time."""
        figure, (panels,) = sheet(result, 1, len(OPERATIONS), 6 * len(OPERATIONS), 5)
        for panel, (operation, title) in zip(panels, OPERATIONS.items()):
            for name, rows in grouped(result["rows"], "contender").items():
                points = [(row["experiment"], row["array_ratio"]) for row in rows if row["operation"] == operation]
                panel.semilogy(*zip(*points), "o" if name.startswith("longshore") else ".", label=name)
            panel.set_title(title)
            panel.set_xticks([one["experiment"] for one in result["experiments"]])
            panel.set_xlabel("experiment")
        panels[0].set_ylabel("time over that of the int array")
        panels[-1].legend(fontsize="x-small")
        return figure
