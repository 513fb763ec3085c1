"""How `longshore bench apps` shows its result: a table, and bars of total and communication time (the Data Mover, figure 6)."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any

from .report import Screen, duration, html_table, machine_words

Row = Mapping[str, Any]
_HEADINGS = ["variant", "total", "spread", "communication", "× twin", "lines"]


def _tables(result: Mapping[str, Any]) -> Iterable[tuple[str, list[list[str]]]]:
    groups: dict[str, list[Row]] = {}
    for row in result["rows"]:
        groups.setdefault(row["case"], []).append(row)
    for rows in groups.values():
        first = rows[0]
        title = f"{first['title']}, {first['ranks']} ranks: {first['verification']}"
        yield (
            title,
            [
                [
                    row["contender"],
                    duration(row["seconds_median"]),
                    f"{duration(row['seconds_min'])} … {duration(row['seconds_max'])}",
                    duration(row["communication_seconds_median"]),
                    "" if row["twin_ratio"] is None else f"{row['twin_ratio']:.2f}",
                    str(row["lines"]),
                ]
                for row in rows
            ],
        )


def _missing(result: Mapping[str, Any]) -> list[str]:
    return [
        f"{m['contender']}{' (' + ', '.join(m['cases']) + ')' if m['cases'] else ''}: {m['why']}"
        for m in result["missing"]
    ]


_NOTE = (
    "Total and communication: the slowest rank's, medians. Communication is what the caller waits for; what goes on beside computing is not "
    "in it. Lines: of communication code, neither blank nor comment; both of Longshore's variants are one file."
)


def print_result(screen: Screen, result: Mapping[str, Any]) -> None:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    screen.print(Text(f"longshore {result['version']}: {machine_words(result)}", style="dim"))
    for title, lines in _tables(result):
        table = Table(title=Text(title), title_justify="left", box=SIMPLE)
        for k, heading in enumerate(_HEADINGS):
            table.add_column(heading, justify="left" if k == 0 else "right", no_wrap=True)
        for line in lines:
            table.add_row(*(Text(cell) for cell in line), style="bold" if line[0].startswith("longshore") else None)
        screen.print(table)
    screen.print(Text(_NOTE, style="dim"))
    for line in _missing(result):
        screen.print(Text(f"missing: {line}", style="yellow"))


def html_tables(result: Mapping[str, Any]) -> str:
    parts = []
    for title, lines in _tables(result):
        parts += [f"<h2>{html.escape(title)}</h2>", html_table(_HEADINGS, lines)]
    absent = "".join(f"<li>{html.escape(line)}</li>" for line in _missing(result))
    return "\n".join(
        [*parts, f"<p>{html.escape(_NOTE)}</p>", f"<h2>Missing</h2><ul>{absent or '<li>nothing</li>'}</ul>"]
    )


def figure(result: Mapping[str, Any]) -> Any:
    """Total time of every variant with its part of communication, in seconds, a panel an application."""
    from matplotlib import pyplot

    groups: dict[str, list[Row]] = {}
    for row in result["rows"]:
        groups.setdefault(row["case"], []).append(row)
    drawn, panels = pyplot.subplots(
        1, max(1, len(groups)), figsize=(3.1 * max(1, len(groups)) + 0.6, 3.6), squeeze=False
    )
    for panel, rows in zip(panels[0], groups.values()):
        for at, row in enumerate(rows):
            total, communication = (
                row["seconds_median"],
                min(row["communication_seconds_median"], row["seconds_median"]),
            )
            colour = "#1f5fa8" if row["contender"].startswith("longshore") else "#9a9a9a"
            panel.bar(at, total - communication, color=colour, width=0.7)
            panel.bar(
                at, communication, bottom=total - communication, color="white", edgecolor=colour, hatch="///", width=0.7
            )
            low, high = total - row["seconds_min"], row["seconds_max"] - total
            panel.errorbar(at, total, yerr=[[max(low, 0)], [max(high, 0)]], color="black", linewidth=0.8, capsize=2)
        panel.set_xticks(range(len(rows)), [row["contender"].replace(" ", "\n") for row in rows], fontsize=7)
        panel.set_title(rows[0]["title"], fontsize=8, loc="left")
        panel.tick_params(axis="y", labelsize=7)
        panel.set_ylim(bottom=0)
    panels[0][0].set_ylabel("seconds (hatched: communication)", fontsize=8)
    drawn.suptitle(machine_words(result), fontsize=6, x=0.01, ha="left", color="#555555")
    drawn.tight_layout(rect=(0, 0, 1, 0.97))
    return drawn
