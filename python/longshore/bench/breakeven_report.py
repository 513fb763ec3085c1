"""How `longshore bench breakeven` shows its result: the paper's two tables in one for each case, and its two figures."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from ..explain import bytes_of
from .report import Screen, html_table, machine_words

_WAYS = ("counted", "fitted")


def print_result(screen: Screen, result: Mapping[str, Any]) -> None:
    from rich.text import Text

    screen.print(Text(f"longshore {result['version']}: {machine_words(result)}", style="dim"))
    for table in result["tables"]:
        screen.print(_table(result, table, screen.width))
        for line in _lines(table):
            screen.print(Text("  " + line))
        screen.print(Text("  " + _verdict(table), style="bold"))
        screen.print("")
    for note in result["notes"]:
        screen.print(Text(note, style="dim"))
    for m in result["missing"]:
        screen.print(Text(f"missing: {', '.join(m['cases'])}: {m['why']}", style="yellow"))


def html_tables(result: Mapping[str, Any]) -> str:
    parts = []
    for table in result["tables"]:
        parts.append(f"<h2>{html.escape(_title(result, table))}</h2>")
        parts.append(
            html_table((heading.replace("\n", " ").strip() for heading in _HEADINGS), map(_cells, table["points"]))
        )
        parts += [f"<p>{html.escape(line)}</p>" for line in (*_lines(table), _verdict(table))]
    parts += [f"<p>{html.escape(note)}</p>" for note in result["notes"]]
    parts += [
        f"<p>missing: {html.escape(', '.join(m['cases']))}: {html.escape(m['why'])}</p>" for m in result["missing"]
    ]
    return "\n".join(parts)


# --- words -----------------------------------------------------------------------------------------------------------

_HEADINGS = (
    "n_g",
    "break-even\nactual",
    "predicted\n(counted)",
    "predicted\n(fitted)",
    "speedup\nactual",
    "\nquartiles",
    "predicted\n(counted)",
    "predicted\n(fitted)",
)
_QUARTILES = 5  # that column is left out where the terminal is narrow
_WIDE = 90


def _table(result: Mapping[str, Any], table: Mapping[str, Any], width: int) -> Any:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=Text(_title(result, table)), title_justify="left", box=SIMPLE)
    columns = [k for k in range(len(_HEADINGS)) if width >= _WIDE or k != _QUARTILES]
    for k in columns:
        shown.add_column(_HEADINGS[k], justify="right", no_wrap=True)
    for point in table["points"]:
        cells = _cells(point)
        shown.add_row(*(cells[k] for k in columns))
    return shown


def _cells(point: Mapping[str, Any]) -> tuple[str, ...]:
    uses, speedup = point["break_even"], point["speedup"]
    return (
        str(point["n_g"]),
        *(_uses(uses[way]) for way in ("actual", *_WAYS)),
        f"{speedup['actual']:.2f}",
        " … ".join(f"{quartile:.2f}" for quartile in speedup["actual_quartiles"]),
        *(f"{speedup[way]:.2f}" for way in _WAYS),
    )


def _uses(uses: int | None) -> str:
    """The paper's dash stands for no number of uses."""
    return "-" if uses is None else f"{uses:,}" if uses < 10**6 else f"{uses:.0e}"


def _title(result: Mapping[str, Any], table: Mapping[str, Any]) -> str:
    held = bytes_of(table["working_set_bytes"])
    where = _where(table["working_set_bytes"], result["machine"]["caches"])
    return f"{table['case']} instructions, {table['n']:,} words ({held}{where})"


def _where(size: int, caches: Mapping[str, str]) -> str:
    """The first cache that holds so many bytes, or that none does."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    known = False
    for name, text in sorted(caches.items()):
        found = re.fullmatch(r"(\d+)([KMG])", text)
        if found is None or name.endswith("i"):
            continue
        known = True
        if size <= int(found[1]) * units[found[2]]:
            return f", fits {name.removesuffix('d')}"
    return ", beyond the caches" if known else ""


def _lines(table: Mapping[str, Any]) -> list[str]:
    rates = table["rates"]
    giga = {name: rates[field] / 1e9 for name, field in _RATE_FIELDS.items()}
    instructions, *words = (f"{name} {value:.3g}" for name, value in giga.items())
    costs = []
    for way in _WAYS:
        told = ", ".join(f"{name} {value:.3g}" for name, value in table["costs"][way].items())
        at = f" at n_g {table['fitted_n_g']}" if way == "fitted" else ""
        costs.append(f"{way}{at}: {told}")
    last, first = table["threshold"]["actual"]
    if first is None:
        actual = f"above {last}"
    elif last is None:
        actual = f"below {first}"
    else:
        actual = f"between {last} and {first}"
    predicted = ", ".join(f"{table['threshold'][way]:.1f} ({way})" for way in _WAYS)
    return [
        f"threshold: actual {actual}, predicted {predicted}",
        f"{instructions} G/s; {', '.join(words)} Gword/s",
        "; ".join(costs),
    ]


_RATE_FIELDS = {
    "r_i": "instructions_per_second",
    "r_rc": "read_words_per_second",
    "r_rr": "random_read_words_per_second",
    "r_wc": "write_words_per_second",
    "r_wr": "random_write_words_per_second",
}


def _verdict(table: Mapping[str, Any]) -> str:
    """How far the model's speedups are from the measured ones, in one sentence."""
    told = []
    for way in _WAYS:
        # What the fit was made at is no prediction of it.
        points = [p for p in table["points"] if way == "counted" or p["n_g"] != table["fitted_n_g"]]
        off = [p["speedup"][way] / p["speedup"]["actual"] - 1 for p in points]
        if off:
            told.append(f"{min(off):+.0%} to {max(off):+.0%} ({way})")
    return f"The predicted speedups differ from the actual ones by {', '.join(told)}."


# --- the figure ------------------------------------------------------------------------------------------------------


def figure(result: Mapping[str, Any]) -> Any:
    """A row a case: break-even and speedup over n_g, measured points and predicted lines."""
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, NullFormatter

    tables = result["tables"]
    drawn, panels = pyplot.subplots(
        max(1, len(tables)), 2, figsize=(10, 3.2 * max(1, len(tables)) + 0.4), squeeze=False, sharex="row"
    )
    for (left, right), table in zip(panels, tables):
        _panel(left, table, "break_even")
        _panel(right, table, "speedup")
        left.set_title(_title(result, table), fontsize=9, loc="left")
        left.set_yscale("log")
        left.yaxis.set_major_formatter(FuncFormatter(lambda uses, _: f"{uses:,.0f}"))
        left.yaxis.set_minor_formatter(NullFormatter())
        left.set_ylim(bottom=1)
        left.set_ylabel("break-even, uses", fontsize=8)
        right.set_ylabel("speedup", fontsize=8)
        right.axhline(1.0, color="#333333", lw=0.7)
        right.legend(fontsize=7, frameon=False)
    drawn.suptitle(machine_words(result), fontsize=7, x=0.01, ha="left", color="#555555")
    drawn.tight_layout(rect=(0, 0, 1, 0.99))
    return drawn


def _panel(panel: Any, table: Mapping[str, Any], what: str) -> None:
    points = [(p["n_g"], p[what]) for p in table["points"]]
    for way, line, colour in (("counted", "--", "#d9a441"), ("fitted", "-", "#9a9a9a")):
        known = [(n_g, values[way]) for n_g, values in points if values[way] is not None]
        panel.plot(*(zip(*known) if known else ((), ())), line, color=colour, lw=1.2, label=f"predicted ({way})")
    known = [(n_g, values) for n_g, values in points if values["actual"] is not None]
    places, actual = [n_g for n_g, _ in known], [values["actual"] for _, values in known]
    spread = None
    if what == "speedup":
        # The ratio of two medians may lie outside the quartiles of the rounds' ratios.
        spread = [
            [max(0.0, v["actual"] - v["actual_quartiles"][0]) for _, v in known],
            [max(0.0, v["actual_quartiles"][1] - v["actual"]) for _, v in known],
        ]
    panel.errorbar(places, actual, yerr=spread, fmt="o", ms=4, color="#1f6fb4", elinewidth=0.7, label="measured")
    panel.set_xlabel("n_g, instructions a tuple", fontsize=8)
    panel.tick_params(labelsize=7)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
