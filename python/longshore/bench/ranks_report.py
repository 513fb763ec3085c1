"""How `longshore bench ranks` shows its result: a table for each class in the form of the thesis's figures, and the aims."""

from __future__ import annotations

import html
import statistics
from collections.abc import Mapping
from typing import Any

from .ranks_cases import CLASSES
from .report import Screen, html_table, machine_words

_HEADINGS = ("", "maps", "bytes", "of bound", "SELECT ns", "dependent", "in order", "RANK ns", "build ns")
_OPERATION_HEADINGS = ("", "ns a member")
_AIM_HEADINGS = ("aim", "limit", "reached", "", "at")


def _groups(result: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Rows by class; each named map is its own."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in result["rows"]:
        title = (
            f"class {row['case']}: {CLASSES[row['case']]}"
            if row["case"] in CLASSES
            else f"{row['name']}, {row['n']:,} members"
        )
        groups.setdefault(title, []).append(row)
    return groups


def _lines(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Medians over the maps, a line for each contender."""
    contenders: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        contenders.setdefault(row["contender"], []).append(row)
    return [_line(name, of) for name, of in contenders.items()]


def _line(name: str, rows: list[dict[str, Any]]) -> tuple[str, ...]:
    def median(key: str, form: str = "{:.1f}") -> str:
        values = [row[key] for row in rows if key in row]
        return form.format(statistics.median(values)) if values else ""

    taken = {row["representation"] for row in rows} - {name}
    title = f"{name} ({', '.join(sorted(taken))})" if taken else name
    over = statistics.median(row["bytes"] / row["bound_bytes"] for row in rows)
    rank = median("rank_ns") or (
        median("hashed_rank_ns") + " hashed" if any("hashed_rank_ns" in row for row in rows) else ""
    )
    return (
        title,
        str(len(rows)),
        median("bytes", "{:,.0f}"),
        f"{over:.3g}",
        median("select_ns"),
        median("select_dependent_ns"),
        median("read_ns", "{:.2f}"),
        rank,
        median("build_ns"),
    )


def _aims(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            aim["aim"],
            f"{aim['limit']:g} {aim['unit']}".strip(),
            f"{aim['reached']:.3g}",
            "met" if aim["met"] else "missed",
            aim["worst"],
        )
        for aim in result["aims"]
    ]


def _operations(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    groups = result["groups"]
    return [
        *((name, f"{ns:.1f}") for name, ns in groups["operations_ns"].items()),
        ("translate a rank into a list of everybody, after another", f"{groups['translate_one_ns']:.0f}"),
    ]


def print_result(screen: Screen, result: Mapping[str, Any]) -> None:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    def show(title: str, headings: tuple[str, ...], lines: list[tuple[str, ...]]) -> None:
        table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE, pad_edge=False)
        for k, heading in enumerate(headings):
            table.add_column(heading, justify="left" if k == 0 else "right", overflow="fold")
        for line in lines:
            table.add_row(*line)
        screen.print(table)

    screen.print(Text(f"longshore {result['version']}: {machine_words(result)}", style="dim"))
    for title, rows in _groups(result).items():
        show(title, _HEADINGS, _lines(rows))
    show("group operations on halves of the world by chance", _OPERATION_HEADINGS, _operations(result))
    show("aims", _AIM_HEADINGS, _aims(result))
    for note in result["notes"]:
        screen.print(Text(note, style="dim"))
    for m in result["missing"]:
        screen.print(Text(f"missing: {m['contender']}: {m['why']}", style="yellow"))


def html_tables(result: Mapping[str, Any]) -> str:
    parts = []
    for title, rows in _groups(result).items():
        parts += [f"<h2>{html.escape(title)}</h2>", html_table(_HEADINGS, _lines(rows))]
    parts += ["<h2>group operations</h2>", html_table(_OPERATION_HEADINGS, _operations(result))]
    parts += ["<h2>aims</h2>", html_table(_AIM_HEADINGS, _aims(result))]
    parts += [f"<p>missing: {html.escape(m['contender'])}: {html.escape(m['why'])}</p>" for m in result["missing"]]
    return "\n".join(parts)


def figure(result: Mapping[str, Any]) -> Any:
    """A row of panels for each class, as the thesis has them (figures 5.1 to 5.19): bytes, SELECT at random, and in
    order, of each map, by number; the maps with names side by side in a row of their own."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    panels = (("bytes", "bytes"), ("select_ns", "SELECT at random, ns"), ("read_ns", "SELECT in order, ns"))
    cases = sorted({row["case"] for row in result["rows"]})
    contenders = list(dict.fromkeys(row["contender"] for row in result["rows"]))
    drawn = Figure(figsize=(6 * len(panels), 4 * max(len(cases), 1)), layout="constrained")
    grid = drawn.subplots(max(len(cases), 1), len(panels), squeeze=False)
    for axes, case in zip(grid, cases):
        of_case = [row for row in result["rows"] if row["case"] == case]
        names = list(dict.fromkeys(row["name"] for row in of_case))
        place = {name: k for k, name in enumerate(names)}
        for axis, (key, label) in zip(axes, panels):
            for k, name in enumerate(contenders):
                rows = [row for row in of_case if row["contender"] == name and key in row]
                if rows:
                    marker, size = ("o", 3) if name.startswith("longshore") else ("x", 4)
                    axis.plot(
                        [place[row["name"]] for row in rows],
                        [row[key] for row in rows],
                        marker,
                        label=name,
                        markersize=size,
                        color=colormaps["tab20"](k % 20),
                    )
            axis.set_yscale("log")
            axis.set_title(f"class {case}: {CLASSES[case]}" if case in CLASSES else case)
            axis.set_ylabel(label)
            if case in CLASSES:
                axis.set_xlabel("map")
                axis.xaxis.get_major_locator().set_params(integer=True)
            else:
                axis.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize="x-small")
        # Every contender has a SELECT time.
        handles, labels = axes[1].get_legend_handles_labels()
        axes[-1].legend(handles, labels, fontsize="xx-small", ncols=2, loc="upper left", bbox_to_anchor=(1, 1))
    return drawn
