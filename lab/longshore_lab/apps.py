"""`longshore bench apps`: whole applications on Longshore beside their overlapped versions and hand-written twins.

As in the Data Mover's figure 6: total time and the part of it that is communication. All variants share their kernels,
and every run verifies its result."""

import statistics
from dataclasses import dataclass
from functools import partial

from .machine import grouped, set_ratios
from .protocol import Bench, Contender, Missing, Ready, WrongResult, module_of_mpi
from .report import Table, duration, median, plain, ratio, sheet, spread

TWIN = "hand-written MPI"
VARIANTS = {"longshore": "longshore", "longshore overlapped": "overlapped", TWIN: "twin"}


@dataclass(frozen=True)
class App:
    """One application and its problem."""

    key: str
    title: str
    problem_class: str = "S"
    size: int = 0
    panel: int = 0
    iterations: int = 0

    needed_bytes = 0
    name = property(lambda self: self.key)

    def facts(self):
        return {"case": self.key, "title": self.title}


def _problems(cube, iterations, letter, rows, panel):
    return (
        App("redblack3d", f"Redblack3D {cube}³, {iterations} iterations", size=cube, iterations=iterations),
        *(App(key, f"NAS-{key.upper()} class {letter}", letter) for key in ("mg", "ft")),
        App("summa", f"SUMMA {rows}²", size=rows, panel=panel),
    )


QUICK, THOROUGH = _problems(96, 10, "W", 768, 96), _problems(256, 20, "A", 2048, 128)


class Running(Ready):
    """An application in one of its variants, which times and verifies itself."""

    def __init__(self, context, app, variant, parts=1):
        module = module_of_mpi("_apps")
        if absent := module.missing(app.key):
            raise Missing(absent)
        problem = (app.key, app.problem_class, app.size, app.panel, app.iterations)
        self._once = partial(module.run, context.comm.handle, *problem, variant, parts)
        self.runs, self.lines = [], module.lines()[app.key][variant == "twin"]

    def sample(self, context):
        context.comm.Barrier()
        run = self._once()
        if not run["verified"]:
            raise WrongResult(f"{run['verification']}: error {run['error']}")
        self.runs.append(run)
        return run["total_s"]

    def verify(self, context):
        return "" if self.runs else super().verify(context)  # the first run also warms up; the others verify themselves


class Apps(Bench):
    name = "apps"
    mpi, thing, Case, stall_seconds = True, "application", App, (120.0, 120.0)
    everybody = tuple(Contender(name, partial(Running, variant=variant)) for name, variant in VARIANTS.items())

    def every_case(self):
        return QUICK if self.quick else THOROUGH

    def rows(self, context, case, ready, samples):
        rows = super().rows(context, case, ready, samples)
        for row, one in zip(rows, ready.values()):
            first = one.runs[0]
            row["communication_seconds_median"] = statistics.median(run["communication_s"] for run in one.runs[1:])
            row["payload_bytes"] = context.comm.allreduce(first["payload_bytes"])
            row |= {
                "lines": one.lines,
                **{name: first[name] for name in ("flops", "verification", "error", "tolerance")},
            }
        return rows

    def finish(self, result):
        set_ratios(result["rows"], "twin_ratio", [TWIN])

    def tables(self, result):
        communication = lambda row: duration(row["communication_seconds_median"])  # noqa: E731
        columns = {"variant": "contender", "total": median, "spread": spread, "communication": communication}
        columns |= {"× twin": ratio("twin_ratio"), "lines": "lines"}
        for rows in grouped(result["rows"], "case").values():
            title = f"{rows[0]['title']}, {rows[0]['ranks']} ranks: {rows[0]['verification']}"
            yield Table.of(title, rows, columns)

    def figure(self, result):
        """Total time of every variant with its part of communication, in seconds, a panel an application."""
        groups = grouped(result["rows"], "case")
        figure, (panels,) = sheet(result, 1, len(groups), 3.1 * max(1, len(groups)) + 0.6, 3.6)
        for panel, rows in zip(panels, groups.values()):
            plain(panel, rows[0]["title"], y="seconds (hatched: communication)" if panel is panels[0] else "")
            for at, row in enumerate(rows):
                total = row["seconds_median"]
                communication = min(row["communication_seconds_median"], total)
                colour = "#1f5fa8" if row["contender"].startswith("longshore") else "#9a9a9a"
                panel.bar(at, total - communication, color=colour, width=0.7)
                hatched = {"color": "white", "edgecolor": colour, "hatch": "///"}
                panel.bar(at, communication, bottom=total - communication, width=0.7, **hatched)
                low_high = [[total - row["seconds_min"]], [row["seconds_max"] - total]]
                panel.errorbar(at, total, yerr=low_high, color="black", linewidth=0.8, capsize=2)
            panel.set_xticks(range(len(rows)), [row["contender"].replace(" ", "\n") for row in rows], fontsize=7)
            panel.set_ylim(bottom=0)
        return figure
