"""`longshore bench strips`: loops over another rank's elements in strips, beside one transfer, a loop element by
element, and what the model predicts (Iancu, Husbands & Chen, "Message strip mining heuristics for high speed
networks").

Their networks are here: memory of one node that all its ranks see, memory that the kernel copies between processes, MPI
on one node, and with `link` MPI over TCP between nodes of their own, which a link of that rate joins. Only the last is
slower than memory.
"""

import math
import random
import re
import statistics
import time
from dataclasses import asdict, dataclass
from functools import partial

from . import launch
from .apps import App, Running
from .machine import grouped, set_ratios
from .protocol import Bench, BenchError, Contender, choose, missing
from .report import PEER, Table, duration, plain, ratio, sheet
from .strip_loops import (
    ALL_TO_ALL,
    ALL_TO_ONE,
    EVEN,
    KERNEL,
    LARGEST,
    LINK,
    LOOPS,
    NETWORK_WORDS,
    NETWORKS,
    ONE_TO_ONE,
    PATTERNS,
    SEEN,
    SPARE,
    Beside,
    Computing,
    Interfered,
    LargeGet,
    Rget,
    VectorReduction,
    got_only,
    in_strips,
)

PARAMETERS, INTERFERENCE, MG = "parameters", "interference", "mg"
MG_CLASSES = {32: "S", 256: "A"}  # NAS's names for meshes of so many points in each dimension
SIZES, QUICK_SIZES = tuple(1 << k for k in range(8, 21, 2)), (1 << 14,)
LINK_SIZES, QUICK_LINK_SIZES = (1 << 14, 1 << 17, 1 << 20), (1 << 16,)
PARTS, QUICK_PARTS = tuple(1 << k for k in range(1, 9)), (4, 32)  # N / S
DEPTHS, GROWTHS = (1, 2, 4), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
QUICK_DEPTHS, QUICK_GROWTHS = (1, 2), (0.3,)
VARIABLE_DEPTHS = (1, 2)
_FIRST_OF = 256  # of N is S0
SMALL, VECTORIZED, AUTO = ("longshore small", "longshore vectorized", "longshore auto")
AGAIN = "longshore vectorized, again"  # tells how far two of the same are apart
GET_ONLY, COMPUTE_ONLY, RGET = "longshore get, nothing computed", "nothing got, computed", "MPI_Rget, then computed"
BESIDE = "longshore get, beside other computing"  # what can overlap at all
LARGE_GET, SUM = "longshore get", "vector reduction"
MOVERS, GOT_WHOLE = "longshore movers", "longshore windows, whole"
GOT_IN_PARTS = {2: "longshore windows, halves", 4: "longshore windows, quarters", 8: "longshore windows, eighths"}
_WITHIN, _BEHIND = 1.1, 1.05
_HIDEABLE = 0.1  # of the time of `vectorized`
_RATE = re.compile(r"(?=[\d.]*[1-9])\d{1,15}(\.\d{1,15})?([kmgt]i?)?(bit|bps)?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class StripsCase:
    """Loops over n doubles of another rank; or what a network's parameters and its interference are found with. What
    else there is of it is drawn from the seed."""

    loop: str
    pattern: str
    network: str
    n: int
    ranks: int = 2
    quick: bool = False
    rate: str = ""
    seed: int = 0

    key = property(lambda self: f"{self.loop}-{self.pattern}-{self.network}")
    name = property(lambda self: f"{self.key} {self.n}, seed {self.seed}")
    first = property(lambda self: random.Random(self.name).randrange(SPARE))  # of a rank's doubles, of a section
    brief = property(lambda self: self.n <= 1 << 14)
    payload_bytes = property(lambda self: 8 * self.n)
    least = property(lambda self: 128 if self.network == LINK else 16)  # doubles of a strip
    passes = property(lambda self: max(1, (1 << (20 if self.quick else 23)) // self.n))  # of interference
    is_loop = property(lambda self: self.loop in LOOPS)

    @property
    def needed_bytes(self):
        return 30 * (self.n + 4) ** 3 if self.loop == MG else 100 * max(self.n, LARGEST) * self.ranks

    def facts(self):
        where = NETWORK_WORDS[self.network].format(rate=self.rate)
        told = {
            "loop": self.loop,
            "pattern": self.pattern,
            "network": self.network,
            "title": f"{self.pattern}, {where}",
        }
        return {
            "case": self.key,
            "n": self.n,
            "seed": self.seed,
            **told,
            "payload_bytes": self.payload_bytes,
            "dtype": "float64",
        }


def _fixed_name(parts, depth):
    return f"longshore fixed(N/{parts}, {depth})"


def _variable_name(growth, depth):
    return f"longshore variable({growth}, {depth})"


def _fixed(context, case, parts, depth):
    return in_strips(context, case, f"fixed({case.n // parts}, {depth})")


def _variable(context, case, growth, depth):
    return in_strips(context, case, f"variable({max(case.least, case.n // _FIRST_OF)}, {growth}, {depth})")


def _mg(context, case, variant, parts=1):
    return Running(context, App("mg", "NAS-MG", MG_CLASSES[case.n]), variant, parts)


def _divides(case, parts, depth):
    wanted = not case.quick or (parts in QUICK_PARTS and depth in QUICK_DEPTHS)
    return case.is_loop and wanted and case.n // parts >= case.least


def _grows(case, growth):
    return case.is_loop and (not case.quick or growth in QUICK_GROWTHS) and case.n >= 4 * case.least


def _of_loops(name, prepare):
    return Contender(name, prepare, applies=lambda case: case.is_loop)


def _interfered(words, indirect, others):
    name = f"{words}, {'the other gets' if others else 'alone'}"
    prepare = partial(Interfered, indirect=indirect, others=others)
    return Contender(name, prepare, applies=lambda case: case.loop == INTERFERENCE)


CONTENDERS = (
    _of_loops(VECTORIZED, partial(in_strips, schedule="vectorized")),
    _of_loops(SMALL, partial(in_strips, schedule="small")),
    *(
        Contender(
            _fixed_name(parts, depth),
            partial(_fixed, parts=parts, depth=depth),
            applies=partial(_divides, parts=parts, depth=depth),
        )
        for depth in DEPTHS
        for parts in PARTS
    ),
    *(
        Contender(
            _variable_name(growth, depth),
            partial(_variable, growth=growth, depth=depth),
            applies=partial(_grows, growth=growth),
        )
        for depth in VARIABLE_DEPTHS
        for growth in GROWTHS
    ),
    _of_loops(AUTO, partial(in_strips, schedule="auto")),
    _of_loops(AGAIN, partial(in_strips, schedule="vectorized")),
    _of_loops(GET_ONLY, got_only),
    _of_loops(COMPUTE_ONLY, Computing),
    Contender(BESIDE, Beside, applies=lambda case: case.loop == EVEN),
    Contender(RGET, Rget, applies=lambda case: case.is_loop and case.network not in (SEEN, KERNEL)),
    Contender(LARGE_GET, LargeGet, applies=lambda case: case.loop == PARAMETERS),
    Contender(SUM, VectorReduction, applies=lambda case: case.loop == PARAMETERS),
    *(
        Contender(name, partial(_mg, variant="windows", parts=parts), applies=lambda case: case.loop == MG)
        for parts, name in {1: GOT_WHOLE, **GOT_IN_PARTS}.items()
    ),
    Contender(MOVERS, partial(_mg, variant="longshore"), applies=lambda case: case.loop == MG),
    *(
        _interfered(words, indirect, others)
        for words, indirect in (("stride one", False), ("indirect", True))
        for others in (False, True)
    ),
)


def _searched(row):
    """Whether a row is of the exhaustive search."""
    name = row["contender"]
    return name in (VECTORIZED, SMALL) or "fixed(" in name or "variable(" in name


class Strips(Bench):
    name = "strips"
    mpi, shuffled, Case, everybody = True, True, StripsCase, CONTENDERS
    always = (VECTORIZED, GET_ONLY, COMPUTE_ONLY, BESIDE)
    stall_seconds = (60.0, 180.0)

    def __init__(self, quick=False, *, link=None, seed=None, seeds=None, **options):
        """`link`: the rate of a link between nodes of one rank each, as tc writes it, such as "1gbit". `seed`: the
        first of so many `seeds` that cases are drawn from."""
        if link is not None and not _RATE.fullmatch(link):  # else it would be found when all other cases are done
            raise BenchError(f"the link's rate is {link!r}; write it as tc does, such as 1gbit or 200mbit")
        self.link, self._over_link = link, []
        self.seed, self.seed_count = int(time.time()) if seed is None else seed, 1 if seeds is None else seeds
        if self.seed < 0 or self.seed_count < 1:
            raise BenchError("the seed must not be negative, and seeds must be positive")
        self.seeds = [self.seed + k for k in range(self.seed_count)]
        self.seed_words = _seed_words(self.seeds)
        if options.get("ranks", 2) < 2:
            raise BenchError("strips are got from another rank: ranks must be 2 at least")
        super().__init__(quick, **options)

    def every_case(self):
        if any(n < 1 for n in self.sizes or ()):
            raise BenchError("sizes must be positive")
        usual = {LINK: QUICK_LINK_SIZES if self.quick else LINK_SIZES}
        cases = []
        for network in NETWORKS if self.link else NETWORKS[:-1]:
            make = partial(StripsCase, network=network, ranks=self.ranks, quick=self.quick, rate=self.link or "")
            large = max(self.sizes) if self.sizes else LARGEST >> (2 if self.quick else 0)
            cases.append(make(PARAMETERS, ONE_TO_ONE, n=large, seed=self.seed))
            cases += [make(INTERFERENCE, ONE_TO_ONE, n=large, seed=seed) for seed in self.seeds]
            if network in (SEEN, LINK):  # what an application of one rank a node, or of one node, has
                n = min(MG_CLASSES) if self.quick else max(MG_CLASSES)
                cases.append(make(MG, ALL_TO_ALL, n=n, seed=self.seed))
            for loop in LOOPS if network == LINK else LOOPS[:2]:
                for pattern in PATTERNS:
                    if pattern == ALL_TO_ONE and self.ranks == 2:
                        continue  # that is one-to-one
                    sizes = self.sizes or usual.get(network, QUICK_SIZES if self.quick else SIZES)
                    cases += [make(loop, pattern, n=n, seed=seed) for n in sizes for seed in self.seeds]
        return cases

    def wanted(self, given):
        """Keys, or a part of them: a loop, a pattern, a network."""
        every = self.every_case()
        parts = [(case, {case.key, case.loop, case.pattern, case.network}) for case in every]
        words = [PARAMETERS, INTERFERENCE, MG, *LOOPS, *PATTERNS, *NETWORKS]
        known = dict.fromkeys([*words, *(case.key for case in every)])
        chosen = set(choose(self.thing, given, known, f"{', '.join(words)}, and several of them joined by hyphens"))
        cases = [case for case, of in parts if of & chosen]
        if not cases:
            raise BenchError(f"there is no case {', '.join(given)} here; over a link there are some with --link RATE")
        self._over_link = [case for case in cases if case.network == LINK]
        return [case for case in cases if case.network != LINK]

    def rounds(self, case):
        if not case.is_loop:
            return self.repeats or (3 if self.quick else 5 if case.loop == MG else 15)
        if case.network == LINK:
            usual = (3, 9) if case.n > 1 << 18 else (5, 21) if case.n > 1 << 15 else (5, 75)  # bursts are chance
        else:
            usual = (5, 31) if case.n > 1 << 18 else (7, 101)
        return self.repeats or usual[not self.quick]

    def beside(self, step):
        """The cases over the link, on nodes that are made for them."""
        if not self._over_link:
            return [], []
        from .nodes import CannotMakeNodes, Nodes

        cases = {case.name: case for case in self._over_link}
        names = [contender.name for contender in self.contenders()]
        try:
            with Nodes(self.ranks, rate=self.link) as nodes:
                launcher = nodes.launcher([1] * self.ranks, self.mpiexec)

                def start(left, contenders):
                    told = [(asdict(cases[name]), self.rounds(cases[name])) for name in left]
                    spec = {"bench": self.name, "mpi": True, "ranks": self.ranks, "cases": told}
                    how = {"launcher": launcher, "ranks": self.ranks, "on_step": step}
                    how["stall_seconds"] = self.stall_seconds[not self.quick]
                    return launch.run_child(spec | {"contenders": [*contenders]}, **how)

                return launch.run_until_done(start, list(cases), names)
        except (CannotMakeNodes, BenchError) as error:
            return [], [missing("all", f"no nodes can be made here: {error}", *cases)]

    def rows(self, context, case, ready, samples):
        """Also the medians of every second repetition and of the others: who is best by some of many noisy ones is
        compared by the rest."""
        for name, one in ready.items():
            one.facts = {
                **one.facts,
                "halves": [statistics.median(samples[name][k::2] or samples[name]) for k in (0, 1)],
            }
            if case.loop == MG:
                times = [run["communication_s"] for run in one.runs[1:] or one.runs]
                one.facts["communication_seconds_median"] = statistics.median(times)
                one.facts["payload_bytes"] = context.comm.allreduce(one.runs[0]["payload_bytes"])
            if case.network == LINK and case.is_loop and one.section is not None:
                one.facts["link_ratio"] = statistics.median(one.link_bytes) / case.payload_bytes
        return super().rows(context, case, ready, samples)

    # --- what follows from the rows

    def finish(self, result):
        set_ratios(result["rows"], "vectorized_ratio", [VECTORIZED])
        for row in result["rows"]:
            if row.get("seconds_predicted"):
                row["predicted_ratio"] = row["seconds_predicted"] / row["seconds_median"]
        loops = [_of_case(rows) for rows in _groups(result).values() if rows[0]["loop"] in LOOPS]
        result["loops"] = [one for one in loops if one]
        result["networks"] = [_of_network(rows) for rows in grouped(_kept(result, PARAMETERS), "network").values()]
        result["mg"] = [_of_mg(rows) for rows in grouped(_kept(result, MG), "network").values()]
        result["interference"] = _of_interference(_kept(result, INTERFERENCE))
        result["summary"] = {
            network: _summary(of, [row for row in result["rows"] if network in ("all", row["network"])])
            for network, of in [*grouped(result["loops"], "network").items(), ("all", result["loops"])]
        }

    def tables(self, result):
        seeds = {"seed": "seed"} if len(_seeds(result["rows"])) > 1 else {}
        for title, rows in grouped(result["loops"], "title").items():
            words = ratio("small")
            columns = {"loop": "loop", "N": lambda row: f"{row['n']:,}", **seeds}
            columns |= {"vectorized": lambda row: duration(row["vectorized_seconds"]), "small": words}
            for kind in ("fixed", "variable", "auto"):
                columns[f"× {kind}"] = ratio(kind)
                columns[f"{kind} is"] = lambda row, kind=kind: row[f"{kind}_schedule"]
            columns |= {
                "auto ÷\nbest": ratio("auto_best"),
                "get\nalone": ratio("get"),
                "computing\nalone": ratio("computing"),
            }
            columns["MPI_Rget"] = ratio("rget")
            columns["predicted ÷\nmeasured"] = ratio("predicted")
            left = [f"{kind} is" for kind in ("fixed", "variable", "auto")]
            yield Table.of(f"{title}: times over those of vectorized", rows, columns, left=left)
        if rows := [{**one, **one["overlap"]} for one in result["loops"] if one["network"] == LINK and one["overlap"]]:
            percent = lambda field: lambda row: "" if row[field] is None else f"{row[field]:.0%}"  # noqa: E731
            seconds = lambda field: lambda row: duration(row[f"{field}_seconds"])  # noqa: E731
            columns = {
                "loop": lambda row: f"{row['loop']}, {row['pattern']}",
                "N": lambda row: f"{row['n']:,}",
                **seeds,
            }
            columns |= {name: seconds(name) for name in ("get", "computing", "vectorized", "best")}
            columns |= {"is": "best_schedule", "best ÷ (max\n+ one strip)": ratio("over_ideal")}
            columns |= {"overlap gained": percent("share"), "by auto": percent("auto_share")}
            columns["of what other\ncomputing hides"] = percent("here_share")
            columns["link bytes ÷\npayload"] = ratio("link_ratio", "{:.3f}")
            yield Table.of("What overlaps on the link, least times", rows, columns, left=["is"])
        if result["networks"]:
            micro = lambda field: lambda row: f"{row[field] * 1e6:.3g}"  # noqa: E731
            columns = {"network": "network", **{f"{name}, µs": micro(name) for name in ("o", "L", "g")}}
            columns |= {"inverse network\nbandwidth, µs/KB": micro("network_kilobyte")}
            columns |= {"inverse memory\nbandwidth, µs/KB": micro("memory_kilobyte")}
            columns |= {"memory ÷\nnetwork": lambda row: f"{row['ratio']:.0%}"}
            yield Table.of("What a network takes (LogGP), beside memory", result["networks"], columns)
        if rows := [one for one in result["mg"] if one]:
            columns = {"network": "network", "mesh": lambda row: f"{row['n']}³"}
            columns |= {name: lambda row, name=name: duration(row[name]) for name in ("total", "movers", "whole")}
            columns |= {"in strips": lambda row: duration(row["strips"]), "× faster": ratio("speedup"), "are": "best"}
            title = (
                "NAS-MG with movers, and what of it is communication: with them, and with windows, whole and in strips"
            )
            yield Table.of(title, rows, columns, left=["mesh", "are"])
        if rows := result["interference"]:
            columns = {"loop": "loop", "network": "network", **seeds, "alone": lambda row: duration(row["alone"])}
            columns |= {"while the other gets": lambda row: duration(row["others"])}
            columns |= {
                "slowdown": lambda row: f"{row['slowdown']:+.0%}",
                "got, GB/s": lambda row: f"{row['rate']:.2f}",
            }
            yield Table.of("A loop on what another rank keeps getting", rows, columns, left=["network"])
        for network, of in result["summary"].items():
            if of["searched"]:
                yield (f"{network}: {_told(of)}", "bold")

    def figure(self, result):
        """Figure 8, of the largest N: times over those of vectorized by the strips' size, a line for each U, and beside
        them strips that grow; and figure 7: the three best decompositions N / S at each N. Of the first seed."""
        first = min(_seeds(result["rows"]), default=0)
        groups = grouped([row for row in result["rows"] if row["loop"] in LOOPS and row["seed"] == first], "case")
        figure, panels = sheet(result, len(groups), 3, 13, 2.7 * max(1, len(groups)) + 0.6)
        for line, rows in zip(panels, groups.values()):
            n = max(row["n"] for row in rows)
            large = [row for row in rows if row["n"] == n and row["vectorized_ratio"]]
            title = f"{rows[0]['loop']}, {rows[0]['title']}"
            plain(line[0], f"{title}\nN = {n:,}", "doubles of a strip", "time ÷ vectorized")
            plain(line[1], "\nstrips that grow", "f")
            for panel, kind, x in ((line[0], "fixed(", "strip_size"), (line[1], "variable(", "growth")):
                for depth, of in grouped([r for r in large if kind in r["contender"]], "depth").items():
                    xy = sorted((row[x], row["vectorized_ratio"]) for row in of)
                    panel.plot(*zip(*xy), marker="o", ms=3, lw=1, label=f"U = {depth}")
                for row in large:
                    if row["contender"] == AUTO:
                        panel.axhline(row["vectorized_ratio"], color="#333333", lw=0.8, ls=":", label="auto")
                panel.axhline(1.0, color=PEER, lw=0.8)
                if panel.get_legend_handles_labels()[0]:
                    panel.legend(fontsize=6.5, frameon=False)
            line[0].set_xscale("log", base=2)
            plain(line[2], "\nbest decompositions", "N", "N / S")
            for size, of in grouped([row for row in rows if "fixed(" in row["contender"]], "n").items():
                best = sorted(of, key=lambda row: row["seconds_median"])[:3]
                for k, row in enumerate(best):
                    line[2].scatter(size, row["strips"], s=34 - 10 * k, color=("#1f6fb4", "#7fb0d8", "#c3d9ec")[k])
            line[2].set_xscale("log", base=2)
            line[2].set_yscale("log", base=2)
        if not groups:
            for panel in panels.flat:
                panel.set_axis_off()
        return figure


def _groups(result):
    return grouped(result["rows"], "case", "n", "seed")


def _seeds(rows):
    return sorted({row["seed"] for row in rows})


def _seed_words(seeds):
    """For a sentence: of one seed, or of several that follow each other."""
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} and the {len(seeds) - 1} after it"


def _kept(result, loop):
    return [row for row in result["rows"] if row["loop"] == loop]


def _of_case(rows):
    """What one case comes to; None where nothing stands beside `vectorized`."""
    by_name = {row["contender"]: row for row in rows}
    if VECTORIZED not in by_name:
        return None
    whole, auto = by_name[VECTORIZED]["seconds_median"], by_name.get(AUTO)
    searched = [row for row in rows if _searched(row)]
    # Whoever is best in one half of the repetitions is timed by the other one, both ways round.
    timed_best = [min(searched, key=lambda row: row["halves"][k])["halves"][1 - k] for k in (0, 1)]
    best = min(searched, key=lambda row: row["seconds_median"])
    over = lambda name: by_name[name]["seconds_median"] / whole if name in by_name else None  # noqa: E731
    told = {name: rows[0][name] for name in ("case", "loop", "pattern", "network", "title", "n", "seed")}
    told |= {"vectorized_seconds": whole, "best_seconds": sum(timed_best) / 2, "best_schedule": best["schedule"]}
    for kind in ("fixed", "variable"):
        of = [row for row in searched if f"{kind}(" in row["contender"]]
        least = min(of, key=lambda row: row["seconds_median"], default=None)
        told[kind] = least and least["seconds_median"] / whole
        told[f"{kind}_schedule"] = least["schedule"] if least else ""
    told |= {"small": over(SMALL), "get": over(GET_ONLY), "computing": over(COMPUTE_ONLY), "rget": over(RGET)}
    told |= {"again": over(AGAIN), "auto": over(AUTO), "auto_schedule": auto["schedule"] if auto else ""}
    told["auto_best"] = auto and sum(auto["halves"]) / sum(timed_best)
    errors = [row["predicted_ratio"] for row in searched if row.get("predicted_ratio")]
    told["predicted"] = statistics.median(errors) if errors else None
    told["overlap"] = _overlap(by_name, searched, told["n"])
    return told


def _overlap(by_name, searched, n):
    """How near the best comes to max(communication, computation) and one strip, and what part of the time that can be
    hidden is hidden; of least times, as a link does not hurry. None where hardly anything can be hidden."""
    least = {name: row["seconds_min"] for name, row in by_name.items()}
    if GET_ONLY not in least or COMPUTE_ONLY not in least:
        return None
    got, computed, whole = (least[name] for name in (GET_ONLY, COMPUTE_ONLY, VECTORIZED))
    ideal, possible = max(got, computed), whole - max(got, computed)
    if min(possible, got, computed) < _HIDEABLE * whole:
        return None
    best = min(searched, key=lambda row: row["seconds_min"])
    strip = (best["strip_size"] or n) / n * min(got, computed)
    told = {"get_seconds": got, "computing_seconds": computed, "vectorized_seconds": whole}
    told |= {"best_seconds": best["seconds_min"], "best_schedule": best["schedule"]}
    told |= {"over_ideal": best["seconds_min"] / (ideal + strip), "share": (whole - best["seconds_min"]) / possible}
    told["auto_share"] = (whole - least[AUTO]) / possible if AUTO in least else None
    # Messages take processors, too: of what is hidden where the computing needs nothing of what comes.
    here = whole - least[BESIDE] if BESIDE in least else 0.0
    told["here_share"] = (whole - least[AUTO]) / here if AUTO in least and here > 0 else None
    return told | {"link_ratio": best.get("link_ratio")}


def _of_network(rows):
    """Table 2's line, of a network whose large get and vector reduction were timed."""
    by_name = {row["contender"]: row for row in rows}
    seconds = {
        name: by_name[name]["seconds_median"] / row_bytes * 1024
        for name in (LARGE_GET, SUM)
        if (row_bytes := by_name.get(name, {}).get("payload_bytes"))
    }
    loggp = by_name.get(LARGE_GET, {}).get("loggp", dict.fromkeys(("o_s", "o_r", "L", "g", "G"), math.nan))
    network, memory = seconds.get(LARGE_GET, math.nan), seconds.get(SUM, math.nan)
    told = {"network": rows[0]["title"].split(", ", 1)[1], "o": loggp["o_s"] + loggp["o_r"], "L": loggp["L"]}
    told |= {"g": loggp["g"], "G": loggp["G"], "progress": by_name.get(LARGE_GET, {}).get("progress", "")}
    return told | {"network_kilobyte": network, "memory_kilobyte": memory, "ratio": memory / network}


def _of_mg(rows):
    """Table 3's line; None where not all were timed."""
    seconds = {row["contender"]: row["communication_seconds_median"] for row in rows}
    total = next((row["seconds_median"] for row in rows if row["contender"] == MOVERS), None)
    in_parts = [name for name in GOT_IN_PARTS.values() if name in seconds]
    if GOT_WHOLE not in seconds or MOVERS not in seconds or not in_parts:
        return None
    best = min(in_parts, key=seconds.get)
    told = {"network": rows[0]["title"].split(", ", 1)[1], "n": rows[0]["n"], "total": total}
    told |= {"movers": seconds[MOVERS], "whole": seconds[GOT_WHOLE], "strips": seconds[best]}
    return told | {"best": best.split(", ")[1], "speedup": seconds[GOT_WHOLE] / seconds[best]}


def _of_interference(rows):
    told = []
    for of in grouped(rows, "network", "seed").values():
        by_name = {row["contender"]: row for row in of}
        for loop in ("stride one", "indirect"):
            pair = [by_name.get(f"{loop}, {words}") for words in ("alone", "the other gets")]
            if all(pair):
                alone, others = (row["seconds_median"] for row in pair)
                times = {"alone": alone, "others": others, "slowdown": others / alone - 1}
                where = {"loop": loop, "network": of[0]["title"].split(", ", 1)[1], "seed": of[0]["seed"]}
                told.append({**where, **times, "rate": pair[1].get("got_rate", 0.0) / 1e9})
    return told


def _summary(loops, rows):
    """How `auto` compares with the best that was measured, over all seeds and sizes, and the model with what was
    measured."""
    tuned = [one for one in loops if one["auto"] is not None]
    worst = max(tuned, key=lambda one: one["auto"], default=None)
    errors = sorted(abs(row["predicted_ratio"] - 1) for row in rows if row.get("predicted_ratio") and _searched(row))
    return {
        "searched": len(tuned),
        "seeds": _seeds(tuned),
        "sizes": sorted({one["n"] for one in tuned}),
        "within": sum(one["auto_best"] <= _WITHIN for one in tuned),
        "worst_best": max((one["auto_best"] for one in tuned), default=None),
        "worst_vectorized": worst and worst["auto"],
        "worst_case": worst and f"{worst['case']} {worst['n']}, seed {worst['seed']}",
        "behind": sum(one["auto"] > _BEHIND for one in tuned),
        "behind_whole": sum(one["auto"] > _BEHIND and one["auto_schedule"] == "vectorized" for one in tuned),
        "again_behind": sum((one["again"] or 0) > _BEHIND for one in tuned),
        "worst_again": max((one["again"] or 0 for one in tuned), default=None),
        "median_error": errors[len(errors) // 2] if errors else None,
    }


def _counted(values, word):
    return f"{len(values)} {word}{'s' * (len(values) > 1)}"


def _told(of):
    error = "" if of["median_error"] is None else f" Predictions are off by {of['median_error']:.0%} (median)."
    best = f"within {_WITHIN - 1:.0%} of the best measured in {of['within']} of {of['searched']} cases"
    behind = f"more than {_BEHIND - 1:.0%} behind vectorized in {of['behind']}"
    most = [f"at most {of[f'worst_{name}']:.2f} times it" for name in ("best", "vectorized")]
    over = f"over {_counted(of['seeds'], 'seed')} and {_counted(of['sizes'], 'size')}"
    told = f"{over} auto is {best} ({most[0]}), and {behind} ({most[1]}, {of['worst_case']})"
    if of["behind_whole"]:
        told += f", of which it had taken vectorized itself in {of['behind_whole']}"
    if of["worst_again"]:
        told += f"; vectorized timed once more is in {of['again_behind']} (at most {of['worst_again']:.2f} times it)"
    return f"{told}.{error}"
