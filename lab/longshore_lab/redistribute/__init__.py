"""`longshore bench redistribute`: Longshore beside memory copies, MPI, ScaLAPACK, COSTA, mpi4py-fft and NumPy.

Sources are rewritten by their owners before every repetition, and results are checked against the owner formula.
"""

import longshore as ls

from ..machine import clocked, grouped, moved, peak_memory, row_of_calls, set_ratios, without_collector
from ..protocol import Bench, BenchError, missing, words_of
from ..report import Table, median, rate, ratio, ratio_sheet, spread
from .cases import CASE_TITLES, Case
from .contenders import CONTENDERS, COPY_NAMES

SIZES, QUICK_SIZES = (64, 1024, 8192), (64, 1024)
_CYCLIC = "(CYCLIC({0}), CYCLIC({0})) on {1}".format
_MANY, _GIANT, _RANK = "1 of 1,048,576 ranks", 1 << 20, 524289
# Planning by itself: name, extent, from, to, the rank whose motions are listed.
_PLANS = (
    ("rows to columns", 8192, "(BLOCK, *) on 2", "(*, BLOCK) on 2", 0),
    ("block-cyclic", 8192, _CYCLIC(32, "1x2"), _CYCLIC(100, "2x1"), 0),
    ("1x1-cyclic to block", 4096, "(CYCLIC, CYCLIC) on 2x1", "(BLOCK, BLOCK) on 1x2", 0),
    (f"{_MANY}, cyclic 64 to 100", _GIANT, _CYCLIC(64, "1024x1024"), _CYCLIC(100, "1024x1024"), _RANK),
    (f"{_MANY}, rows to blocks", _GIANT, "(BLOCK, *) on 1048576", "(BLOCK, BLOCK) on 1024x1024", _RANK),
)


class Redistribute(Bench):
    name = "redistribute"
    mpi, shuffled, Case, everybody, always = True, True, Case, CONTENDERS, COPY_NAMES

    def every_case(self):
        sizes = self.sizes if self.sizes is not None else QUICK_SIZES if self.quick else SIZES
        if any(n < 1 for n in sizes):
            raise BenchError("sizes must be positive")
        return [Case(key, n, self.ranks) for n in sizes for key in CASE_TITLES]

    def rounds(self, case):
        usual = (41, 201) if case.n <= 128 else (7, 31) if case.n <= 2048 else (3, 7)
        return self.repeats or usual[not self.quick]

    def beside(self, step):
        """Building a plan and listing one rank's motions. Metadata only, no MPI, no data."""
        rows, lacking = [], []
        for name, *plan in _PLANS:
            step(f"planning/{name}")
            try:
                rows.append(_planning_row(f"planning {name}", *plan, repeats=5 if self.quick else 21))
            except Exception as error:
                lacking.append(missing("longshore plan", words_of(error), f"planning {name}"))
        return rows, lacking

    def finish(self, result):
        set_ratios(moved(result), "copy_ratio", COPY_NAMES)

    def tables(self, result):
        columns = {"contender": "contender", "median": median, "spread": spread}
        columns |= {"GB/s": lambda row: f"{rate(row):.2f}", "× copy": ratio("copy_ratio"), "how": _how}
        for (key, n, kernels), rows in grouped(moved(result), "case", "n", "table").items():
            first = rows[0]
            turn = ", transposed" if first["axes"] != sorted(first["axes"]) else ""
            title = f"{CASE_TITLES[key]}, {n} × {n} doubles, {kernels} kernels\n{first['from']} → {first['to']}{turn}"
            absent = [m["contender"] for m in result["missing"] if f"{key} {n}" in m["cases"] or not m["cases"]]
            below = f"missing (see below): {', '.join(absent)}" if absent else ""
            yield Table.of(title, rows, columns, optional=("spread", "GB/s"), words="how", below=below)
        plans = [row for row in result["rows"] if not row["payload_bytes"]]
        columns = {
            "plan": lambda row: row["case"].removeprefix("planning "),
            "median": median,
            "spread": spread,
            "peak": lambda row: f"{row['peak_bytes'] / 1e6:.1f} MB",
            "of": lambda row: f"{' × '.join(map(str, row['shape']))}, {row['detail']}",
        }
        title = "planning by itself (one rank's motions)"
        yield Table.of(title, plans, columns, optional=("spread",), words="of")

    def figure(self, result):
        """One panel a case and size: multiples of the best memory copy, shorter is better."""
        groups, panels = grouped(moved(result), "case", "n", "table"), {}
        for key, n, kernels in sorted(groups, key=lambda of: of[1]):
            size = f"{n}²" + (f", {kernels}" if len(self.kernels) > 1 else "")
            panels.setdefault(CASE_TITLES[key], {})[size] = groups[key, n, kernels]
        names = [row["contender"] for row in (*moved(result), *result["missing"])]
        names = [name for name in dict.fromkeys(names) if name not in ("longshore plan", "all")]
        return ratio_sheet(result, panels, names, "multiples of the best memory copy")


def _how(row):
    kind = f"{row['processes']} process{'es' if row['processes'] > 1 else ''}"
    kind += f", {row['threads']} threads" if row["threads"] > 1 else ""
    return f"{kind}; {row['detail']}" if row["detail"] else kind


def _planning_row(case, n, source, destination, rank, repeats):
    def once():
        plan = ls.plan(ls.Layout(source, shape=(n, n)), ls.Layout(destination, shape=(n, n)), "float64")
        return len(plan.sends(rank)) + len(plan.receives(rank))

    before, motions, after = peak_memory(reset=True), once(), peak_memory()
    with without_collector():
        seconds = [clocked(once) for _ in range(repeats)]
    return row_of_calls(
        {"case": case, "n": n, "shape": [n, n], "from": source, "to": destination, "axes": [0, 1]},
        "longshore plan",
        seconds,
        dtype="float64",
        ranks=ls.Layout(source, shape=(n, n)).rank_count,
        detail=f"rank {rank}: {motions} motions",
        peak_bytes=max(0, after - before),
    )
