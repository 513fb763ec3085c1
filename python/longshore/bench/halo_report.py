"""How `longshore bench halo` shows its result: a table for every arrangement of boxes, one for planning, and a chart of all cases."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any

from ..explain import bytes_of
from .halo_cases import COPY
from .report import Screen, duration, html_table, machine_words, ratio_panel

Row = Mapping[str, Any]
Table = tuple[str, list[str], list[list[str]]]  # title, headings, lines

_NAME_WIDTH, _CELL_WIDTH, _WIDE = 30, 19, 120


def print_result(screen: Screen, result: Mapping[str, Any]) -> None:
    from rich.text import Text

    screen.print(Text(f"longshore {result['version']}: {machine_words(result)}", style="dim"))
    across = max(1, (screen.width - _NAME_WIDTH) // _CELL_WIDTH)
    for table in (*_exchanges(result, across), *_plans(result, wide=screen.width >= _WIDE)):
        screen.print(_rich_table(*table))
    for note in result["notes"]:
        screen.print(Text(note, style="dim"))
    for line in _missing(result):
        screen.print(Text(f"missing: {line}", style="yellow"))


def html_tables(result: Mapping[str, Any]) -> str:
    parts = []
    for title, headings, lines in (*_exchanges(result, 8), *_plans(result, wide=True), _every_row(result)):
        parts += [f"<h2>{html.escape(title)}</h2>", html_table((h.replace("\n", " ") for h in headings), lines)]
    parts += [f"<p>{html.escape(note)}</p>" for note in result["notes"]]
    absent = "".join(f"<li>{html.escape(line)}</li>" for line in _missing(result))
    return "\n".join([*parts, f"<h2>Missing</h2><ul>{absent or '<li>nothing</li>'}</ul>"])


def _moved(result: Mapping[str, Any]) -> list[Row]:
    return [row for row in result["rows"] if row["payload_bytes"]]


def _arranged(result: Mapping[str, Any]) -> dict[str, dict[str, list[Row]]]:
    """Rows by arrangement of the boxes, then by stencil."""
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in _moved(result):
        groups.setdefault(row["arrangement"], {}).setdefault(row["stencil"], []).append(row)
    return groups


def _exchanges(result: Mapping[str, Any], across: int) -> Iterable[Table]:
    for arrangement, stencils in _arranged(result).items():
        columns = list(stencils.items())
        for k in range(0, len(columns), across):
            shown = columns[k : k + across]
            headings = [f"{words}\n{bytes_of(rows[0]['payload_bytes'])}" for words, rows in shown]
            there = {row["contender"] for _, rows in shown for row in rows}
            names = [name for name in result["contenders"] if name in there]
            lines = [[name, *(_cell(rows, name) for _, rows in shown)] for name in names]
            yield f"{arrangement} (× {COPY})", ["contender", *headings], lines


def _cell(rows: list[Row], name: str) -> str:
    row = next((row for row in rows if row["contender"] == name), None)
    if row is None:
        return ""
    ratio = row["copy_ratio"]
    return duration(row["seconds_median"]) + ("" if ratio is None else f" ({ratio:.2f})")


def _plans(result: Mapping[str, Any], wide: bool) -> list[Table]:
    lines = []
    for row in result["rows"]:
        if row["payload_bytes"]:
            continue
        size = row.get("plan_bytes")
        words = [f"{duration(row['seconds_min'])} … {duration(row['seconds_max'])}", row["detail"]] if wide else []
        lines.append([row["case"], duration(row["seconds_median"]), "" if size is None else bytes_of(size), *words])
    headings = ["one rank's motions", "median", "plan", *(("spread", "of") if wide else ())]
    return [("planning by itself", headings, lines)] if lines else []


def _every_row(result: Mapping[str, Any]) -> Table:
    lines = [
        [
            row["arrangement"],
            row["stencil"],
            row["contender"],
            *(duration(row[f"seconds_{k}"]) for k in ("median", "min", "max")),
            "" if row["copy_ratio"] is None else f"{row['copy_ratio']:.2f}",
            row["detail"],
        ]
        for row in _moved(result)
    ]
    return "every row", ["boxes", "stencil", "contender", "median", "least", "most", "× copy", "how"], lines


def _missing(result: Mapping[str, Any]) -> list[str]:
    lines = []
    for m in result["missing"]:
        where = (
            f" ({', '.join(m['cases'])})"
            if 0 < len(m["cases"]) <= 3
            else f" ({len(m['cases'])} cases)"
            if m["cases"]
            else ""
        )
        lines.append(f"{m['contender']}{where}: {m['why']}")
    return lines


def _rich_table(title: str, headings: list[str], lines: list[list[str]]) -> Any:
    from rich.box import SIMPLE
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(title=Text(title), title_justify="left", box=SIMPLE)
    for k, heading in enumerate(headings):
        table.add_column(heading, justify="left" if k == 0 or heading == "of" else "right", no_wrap=True)
    for line in lines:
        table.add_row(*(Text(cell) for cell in line), style="bold" if line[0].startswith("longshore") else None)
    return table


def figure(result: Mapping[str, Any]) -> Any:
    """A row an arrangement, a column a stencil: multiples of one copy of the ghost cells, shorter is better."""
    from matplotlib import pyplot

    groups = _arranged(result)
    stencils = list(dict.fromkeys(words for group in groups.values() for words in group))
    names = list(result["contenders"])
    down, across = max(1, len(groups)), max(1, len(stencils))
    drawn, panels = pyplot.subplots(
        down, across, figsize=(3.6 * across + 1.8, (0.25 * len(names) + 0.7) * down + 0.6), squeeze=False
    )
    for y, (arrangement, group) in enumerate(groups.items()):
        for x, words in enumerate(stencils):
            rows = [dict(row) for row in group.get(words, [])]
            cases = {f"{row['case']} {row['n']}" for row in rows}
            absent = {m["contender"] for m in result["missing"] if not m["cases"] or cases & set(m["cases"])}
            ratio_panel(panels[y][x], rows, names, absent, show_names=x == 0)
            panels[y][x].set_title(f"{arrangement}\n{words}" if x == 0 else f"\n{words}", fontsize=8, loc="left")
    for panel in panels[-1]:
        panel.set_xlabel(f"multiples of {COPY!r}", fontsize=8)
    drawn.suptitle(machine_words(result), fontsize=7, x=0.01, ha="left", color="#555555")
    drawn.tight_layout(rect=(0, 0, 1, 0.99))
    return drawn
