"""How `longshore bench communicators` shows its result: tables 6.2 to 6.4 of the thesis, and the list of section 6.6."""

from __future__ import annotations

import html
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from .communicators_cases import COMMUNICATORS, PROCESSES, THESIS_SAVED_MIB, WORLD
from .report import Screen, duration, html_table, machine_words

_TITLES = {
    "create": "time to create the communicator (table 6.2)",
    "messages": "time of point-to-point messages (table 6.3)",
    "gathers": "time of gathers (table 6.4)",
}
_CANNOT = "∞"
_COLUMN_WIDTH = 11

_Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]


def _tables(result: Mapping[str, Any]) -> Iterator[_Table]:
    """Title, headings and lines of each: a line for each experiment, a column for each contender."""
    names = result["contenders"]
    times = {(row["operation"], row["experiment"], row["contender"]): row for row in result["rows"]}
    saved = {(one["experiment"], one["contender"]): one for one in result["saved"]}
    numbers = [one["experiment"] for one in result["experiments"]]

    def table(title: str, cell: Any) -> _Table:
        return title, ("", *names), [(str(k), *(cell(k, name) for name in names)) for k in numbers]

    def seconds(operation: str, number: int, name: str) -> str:
        row = times.get((operation, number, name))
        return _CANNOT if row is None else f"{duration(row['seconds_median'])}\n×{row['array_ratio']:.3g}"

    def mean(operation: str, name: str) -> str:
        """Over the experiments that a contender can hold."""
        ratios = [times[operation, k, name]["array_ratio"] for k in numbers if (operation, k, name) in times]
        return f"×{statistics.geometric_mean(ratios):.3g}" if ratios else _CANNOT

    yield (
        "communicators (table 6.1)",
        ("", "class", "members", ""),
        [(str(one["experiment"]), one["class"], f"{one['n']:,}", one["words"]) for one in result["experiments"]],
    )
    for operation, title in _TITLES.items():
        timed = table(title, lambda number, name, operation=operation: seconds(operation, number, name))
        timed[2].append(("mean", *(mean(operation, name) for name in names)))
        yield timed
    yield table(
        "bytes of the map", lambda k, name: f"{saved[k, name]['map_bytes']:,}" if (k, name) in saved else _CANNOT
    )
    yield _saved(result, names, saved)


def _saved(result: Mapping[str, Any], names: list[str], saved: Mapping[tuple[int, str], Mapping[str, Any]]) -> _Table:
    kept = [name for name in names if name.endswith("hybrid") or name.startswith("longshore")]
    in_thesis = result["ranks"] == WORLD
    lines = []
    for one in result["experiments"]:
        k = one["experiment"]
        lines.append(
            (
                str(k),
                *([f"{THESIS_SAVED_MIB[k - 1]:.3f}"] if in_thesis else []),
                *(f"{saved[k, name]['saved_bytes'] / 2**20:.3f}" if (k, name) in saved else _CANNOT for name in kept),
                f"{saved[k, names[0]]['array_bytes'] * PROCESSES * COMMUNICATORS / 2**20:.3f}",
            )
        )
    title = f"MiB saved, {COMMUNICATORS} communicators, {PROCESSES} processes (6.6)"
    return title, ("", *(["printed there"] if in_thesis else []), *kept, "whole array"), lines


def print_result(screen: Screen, result: Mapping[str, Any]) -> None:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    screen.print(Text(f"longshore {result['version']}: {machine_words(result)}", style="dim"))
    across = max(1, screen.width // _COLUMN_WIDTH - 1)
    for title, headings, lines in _tables(result):
        for first in range(1, len(headings), across):  # one below the other where the terminal is narrow
            table = Table(
                title=title, title_justify="left", title_style="bold", box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0)
            )
            some = (0, *range(first, min(first + across, len(headings))))
            for k in some:
                words = k > 0 and not headings[k]
                table.add_column(
                    Text(headings[k].replace(" ", "\n", 1)), justify="left" if words else "right", no_wrap=not words
                )
            for line in lines:
                table.add_row(*(Text(line[k]) for k in some))
            screen.print(table)
    for note in result["notes"]:
        screen.print(Text(note, style="dim"))
    for m in result["missing"]:
        screen.print(Text(f"missing: {m['contender']} ({', '.join(m['cases'])}): {m['why']}", style="yellow"))


def html_tables(result: Mapping[str, Any]) -> str:
    parts = []
    for title, headings, lines in _tables(result):
        cells = [tuple(cell.replace("\n", " ") for cell in line) for line in lines]
        parts += [f"<h2>{html.escape(title)}</h2>", html_table(headings, cells)]
    parts += [f"<p>{html.escape(note)}</p>" for note in result["notes"]]
    parts += [
        f"<p>missing: {html.escape(m['contender'])} ({', '.join(m['cases'])}): {html.escape(m['why'])}</p>"
        for m in result["missing"]
    ]
    return "\n".join(parts)


def figure(result: Mapping[str, Any]) -> Any:
    """Figures 6.1 to 6.3 of the thesis, as multiples of the int array's time."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(6 * len(_TITLES), 5), layout="constrained")
    for panel, (operation, title) in zip(drawn.subplots(1, len(_TITLES)), _TITLES.items()):
        for name in result["contenders"]:
            rows = [row for row in result["rows"] if row["operation"] == operation and row["contender"] == name]
            mark = "o" if name.startswith("longshore") else "."
            panel.semilogy([row["experiment"] for row in rows], [row["array_ratio"] for row in rows], mark, label=name)
        panel.set_title(title)
        panel.set_xticks([one["experiment"] for one in result["experiments"]])
        panel.set_xlabel("experiment")
    drawn.axes[0].set_ylabel("time over that of the int array")
    drawn.axes[-1].legend(fontsize="x-small")
    return drawn
