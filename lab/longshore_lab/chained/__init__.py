"""`longshore bench chained`: the communication of the copy-transfer model's application kernels, and its access
patterns, chained against packed, in the form of the paper's tables 5 and 6 and figures 7 and 8.

Chained is one copy from the source array to the place in the destination; a mover that stages anything is refused.
Packed is gathered into a message, sent and scattered. Owners rewrite what they send before every repetition, all of the
destination is looked at, and all take turns.
"""

import os
from dataclasses import dataclass

from ..machine import grouped, set_ratios
from ..protocol import Bench, BenchError
from ..report import Table, bars, median, plain, ratio, sheet, spread
from .contenders import CHAINED, CONTENDERS, PACKED, PUT, RING
from .steps import KERNELS, PATTERNS

SIZES = {"transpose": 1024, "fem": 30_000, "sor": 256} | dict.fromkeys(PATTERNS, 1 << 17)
QUICK_SIZES = SIZES | {"fem": 3000} | dict.fromkeys(PATTERNS, 1 << 14)


@dataclass(frozen=True)
class ChainedCase:
    """A kernel's step, n as in its title, or an access pattern, n words from each rank to the next."""

    key: str
    n: int
    ranks: int = 2

    name = property(lambda self: f"{self.key} {self.n}")
    brief = property(lambda self: self.key in ("fem", "sor"))

    @property
    def needed_bytes(self):
        """Of all arrays, MPI's window and messages; of making the mesh."""
        words = {"transpose": 16 * self.n**2, "sor": 8 * self.n**2, "fem": 1000 * self.n}
        return words.get(self.key, 256 * self.ranks * self.n) * 8

    def facts(self):
        title = KERNELS.get(self.key, self.key).format(n=self.n)
        dtype = "complex128" if self.key == "transpose" else "float64"
        return {"case": self.key, "n": self.n, "title": title, "dtype": dtype, "kernel": self.key in KERNELS}


class Chained(Bench):
    name = "chained"
    mpi, shuffled, Case, everybody = True, True, ChainedCase, CONTENDERS

    def every_case(self):
        if self.ranks < 2:
            raise BenchError("a transfer takes two ranks")
        sizes = QUICK_SIZES if self.quick else SIZES
        return [ChainedCase(key, n, self.ranks) for key, n in sizes.items()]

    def rounds(self, case):
        usual = (41, 201) if case.brief else (7, 101)
        return self.repeats or usual[not self.quick]

    def notes(self):
        cores = len(os.sched_getaffinity(0))
        few = f"{self.ranks} ranks on {cores} cores: they take turns, and wait for each other's turns."
        return super().notes() + ([few] if self.ranks > cores else [])

    def finish(self, result):
        set_ratios(result["rows"], "chained_ratio", [CHAINED])
        for row in result["rows"]:
            for of, seconds in (("rate", "seconds_median"), ("rate_predicted", "seconds_predicted")):
                if row.get(seconds):
                    row[of] = row["payload_bytes"] / row["ranks"] / row[seconds] / 1e6  # MB/s of a rank

    def tables(self, result):
        for words, groups in _parts(result):
            predicted = any("rate_predicted" in row for rows in groups.values() for row in rows)
            model = ("model",) if predicted else ()
            headings = [words, "packed", *model, "chained", *model, "chained / packed", "packed by"]
            lines = []
            for rows in groups.values():
                packed, chained = best(rows, PACKED), best(rows, [CHAINED])
                line = [rows[0]["case"], *_rates(packed, predicted), *_rates(chained, predicted)]
                gain = f"{chained['rate'] / packed['rate']:.2f}" if packed and chained else ""
                lines.append([*line, gain, packed["contender"] if packed else ""])
            title = f"{words}, MB/s of a rank, {result['rows'][0]['ranks']} ranks"
            yield Table(title, headings, lines, left=("packed by",))
        columns = {"contender": "contender", "MB/s": lambda row: _rates(row, False)[0], "median": median}
        columns |= {"spread": spread, "× chained": ratio("chained_ratio"), "how": "detail"}
        for rows in grouped(result["rows"], "title").values():
            yield Table.of(rows[0]["title"], rows, columns, optional=("spread",), words="how")

    def figure(self, result):
        """Throughput by access pattern and by kernel: packed on the left, chained on the right; lines across are
        predictions."""
        parts = list(_parts(result))
        figure, panels = sheet(result, len(parts), 2, 11, 3.2 * max(1, len(parts)) + 0.4, sharey="row")
        sides = (("packed", PACKED), ("chained, and the ring", (CHAINED, RING, PUT)))
        for (words, groups), row in zip(parts, panels):
            for panel, (side, names) in zip(row, sides):
                plain(panel, f"{words}, {side}", y="MB/s of a rank" if panel is row[0] else "")
                for k, name in enumerate(names):
                    of = {at: r for at, rows in enumerate(groups.values()) for r in rows if r["contender"] == name}
                    colour = ("#1f6fb4", "#7fb0d8", "#d9a441")[k]
                    bars(panel, k, len(names), {at: r["rate"] for at, r in of.items()}, name, colour)
                    for at, r in of.items():
                        if "rate_predicted" in r:
                            panel.plot(at - 0.43 + (k + 0.5) * 0.86 / len(names), r["rate_predicted"], "k_", ms=12)
                panel.set_xticks(range(len(groups)), groups, fontsize=8)
                panel.legend(fontsize=6.5, frameon=False)
            row[0].set_ylim(bottom=0)
        return figure


def best(rows, names):
    """The fastest of those contenders' rows, None where there is none."""
    return min((row for row in rows if row["contender"] in names), key=lambda row: row["seconds_median"], default=None)


def _parts(result):
    """The access patterns, then the kernels: words, and the rows by case."""
    for words, kernel in (("access patterns", False), ("kernels", True)):
        if rows := [row for row in result["rows"] if row["kernel"] == kernel]:
            yield words, grouped(rows, "case")


def _rates(row, predicted):
    fields = ("rate", "rate_predicted") if predicted else ("rate",)
    return [f"{row[of]:.0f}" if row and of in row else "" for of in fields]
