"""How `longshore bench assembly` shows its result: tables of rates, the paper's charts of throughput and of sizes, and the aims."""

from __future__ import annotations

import html
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from ..explain import bytes_of
from .assembly_contenders import HAND, INDEXING, MEMCPY, NAIVE, SYMBOLS, VIEWS
from .packers import PACKERS
from .patterns import DIRECTIONS, KINDS
from .report import Screen, duration, html_table, machine_words

_NAME_WIDTH, _CELL_WIDTH = 39, 15


def print_result(screen: Screen, result: Mapping[str, Any]) -> None:
    from rich.text import Text

    screen.print(Text(f"longshore {result['version']}: {machine_words(result)}", style="dim"))
    across = max(1, (screen.width - _NAME_WIDTH) // _CELL_WIDTH)
    for title, columns in _tables(result, across):
        screen.print(_rich_table(title, *_rates(columns, result["contenders"]), bold="longshore"))
    for title, headings, lines in (_sizes(result), _encoding(result), _making(result)):
        if lines:
            screen.print(_rich_table(title, headings, lines))
    screen.print(Text("Aims", style="bold"))
    for aim in result["aims"]:
        verdict, words = _verdict(aim)
        screen.print(Text(f"  {verdict}: {words}", style=_VERDICTS.get(verdict, "dim")))
    for note in result["notes"]:
        screen.print(Text(note, style="dim"))
    for m in result["missing"]:
        where = (
            f" ({', '.join(m['cases'])})"
            if 0 < len(m["cases"]) <= 3
            else f" ({len(m['cases'])} cases)"
            if m["cases"]
            else ""
        )
        screen.print(Text(f"missing: {m['contender']}{where}: {m['why']}", style="yellow"))


def html_tables(result: Mapping[str, Any]) -> str:
    parts = ["<h2>Aims</h2><ul>"]
    parts += [f"<li>{html.escape(': '.join(_verdict(aim)))}</li>" for aim in result["aims"]] + ["</ul>"]
    for title, columns in _tables(result, 8):
        parts += [f"<h2>{html.escape(title)}</h2>", html_table(*_rates(columns, result["contenders"]))]
    for title, headings, lines in (_sizes(result), _encoding(result), _making(result)):
        if lines:
            parts += [f"<h2>{html.escape(title)}</h2>", html_table(headings, lines)]
    parts += ["<h2>Every row</h2>", html_table(_HEADINGS, map(_whole_row, _moved(result)))]
    parts += [f"<p>{html.escape(note)}</p>" for note in result["notes"]]
    absent = "".join(
        f"<li>{html.escape(m['contender'])} ({html.escape(', '.join(m['cases']) or 'everywhere')}): {html.escape(m['why'])}</li>"
        for m in result["missing"]
    )
    parts.append(f"<h2>Missing</h2><ul>{absent or '<li>nothing</li>'}</ul>")
    return "\n".join(parts)


# --- tables ----------------------------------------------------------------------------------------------------------

Column = list[Mapping[str, Any]]  # the rows of one case


def _moved(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [row for row in result["rows"] if row["payload_bytes"]]


def _tables(result: Mapping[str, Any], across: int) -> list[tuple[str, list[Column]]]:
    """Tables of at most so many cases each: one group and direction, the paper's redistributions by size."""
    cases: dict[tuple[Any, ...], dict[str, Column]] = {}
    for row in _moved(result):
        size = row["n"] if row["group"] == "redistributions" else 0
        cases.setdefault((row["group"], size, row["direction"]), {}).setdefault(row["case"], []).append(row)
    tables = []
    for (group, size, direction), columns in cases.items():
        title = f"{group}{f' of {size}² doubles' if size else ''}, {direction}: GB/s (× hand-written loop)"
        every = list(columns.values())
        tables += [(title, every[k : k + across]) for k in range(0, len(every), across)]
    # Assembly, then disassembly, of a group and size.
    return tables


def _rate(row: Mapping[str, Any]) -> float:
    return row["payload_bytes"] / row["seconds_median"] / 1e9


def _rates(columns: list[Column], contenders: list[str]) -> tuple[list[str], list[list[str]]]:
    headings = ["contender"]
    for column in columns:
        headings.append(f"{column[0]['pattern']}\n{column[0]['n']}\n{bytes_of(column[0]['payload_bytes'])}")
    there = {row["contender"] for column in columns for row in column}
    lines = []
    for name in (name for name in contenders if name in there):
        cells = [name]
        for column in columns:
            row = next((r for r in column if r["contender"] == name), None)
            if row is None:
                cells.append("")
            elif row["hand_ratio"] is None:
                cells.append(f"{_rate(row):.3g}")
            else:
                cells.append(f"{_rate(row):.3g} ({row['hand_ratio']:.2f})")
        lines.append(cells)
    lines.append(["(middling spread)", *(_spread(column) for column in columns)])
    bound = [KINDS[c[0]["pattern"]].is_bound(c[0]["direction"], c[0]["n"]) for c in columns]
    if any(bound):
        lines.append(["(nothing to win)", *("memory" if b else "" for b in bound)])
    return headings, lines


def _spread(column: Column) -> str:
    """How far the farthest repetition is from the median, for the middling contender."""
    off = [max(r["seconds_max"] / r["seconds_median"] - 1, 1 - r["seconds_min"] / r["seconds_median"]) for r in column]
    return f"±{statistics.median(off):.0%}"


def _sizes(result: Mapping[str, Any]) -> tuple[str, list[str], list[list[str]]]:
    kinds, cases = (list(dict.fromkeys(s[field] for s in result["sizes"])) for field in ("kind", "case"))
    lines = []
    for kind in kinds:
        found = {s["case"]: s for s in result["sizes"] if s["kind"] == kind}
        told = [(found[c]["encoded_bytes_to_all"], found[c]["encoded_bytes"]) for c in cases]
        lines.append([kind, *(f"{to_all} ({to_itself})" for to_all, to_itself in told)])
    return "bytes encoded at 1024², node 0 to all nodes (to node 0)", ["encoding", *cases], lines


def _encoding(result: Mapping[str, Any]) -> tuple[str, list[str], list[list[str]]]:
    rows = [r for r in result["rows"] if r["case"].startswith(("encode ", "relation from pairs "))]
    keys = list(dict.fromkeys(r["case"].split()[-2] for r in rows))
    lines = []
    for name in dict.fromkeys(r["contender"] for r in rows):
        rates = {r["case"].split()[-2]: r["pairs_per_second"] / 1e6 for r in rows if r["contender"] == name}
        lines.append([name, *(f"{rates[key]:.3g}" for key in keys)])
    return "encoding 65,536 pairs of 1024²: million pairs a second", ["from a list of pairs", *keys], lines


def _making(result: Mapping[str, Any]) -> tuple[str, list[str], list[list[str]]]:
    rows = [r for r in result["rows"] if r["case"].startswith("relation from layouts ")]
    extents = list(dict.fromkeys(r["n"] for r in rows))
    lines = []
    for key in dict.fromkeys(r["case"].split()[-2] for r in rows):
        times = {r["n"]: duration(r["seconds_median"]) for r in rows if r["case"].split()[-2] == key}
        lines.append([key, *(times[n] for n in extents)])
    return "a relation from two layouts", ["longshore from_layouts", *(f"{n} x {n}" for n in extents)], lines


def _rich_table(title: str, headings: Iterable[str], lines: Iterable[Iterable[str]], bold: str = "\0") -> Any:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=SIMPLE)
    for k, heading in enumerate(headings):
        table.add_column(Text(heading), justify="right" if k else "left", no_wrap=True)
    for line in lines:
        cells = [Text(cell) for cell in line]
        table.add_row(*cells, style="bold" if cells[0].plain.startswith(bold) else None)
    return table


_VERDICTS = {"met": "green", "nearly met": "yellow", "NOT MET": "red"}


def _verdict(aim: Mapping[str, Any]) -> tuple[str, str]:
    if aim["met"] is None:
        return "not measured", aim["aim"]
    words = f"{aim['aim']}: wanted {aim['wanted']:.3g}, reached {aim['reached']:.3g} ({aim['where']})"
    if aim["short"]:
        words += f"; short in {len(aim['short'])} of {aim['measured']}, in {aim['beyond_noise']} beyond the noise"
    if aim["beyond_memcpy"]:
        words += f", in {aim['beyond_memcpy']} where a memory copy falls short too"
    return "met" if aim["met"] else "NOT MET" if aim["beyond_noise"] else "nearly met", words


_HEADINGS = (
    "case",
    "contender",
    "median",
    "least",
    "most",
    "GB/s",
    "× hand-written",
    "× MPI",
    "encoded bytes",
    "workspace bytes",
    "compiled in",
    "how",
)


def _whole_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    def told(field: str, form: Any) -> str:
        return "" if row.get(field) is None else form(row[field])

    return (
        row["case"],
        row["contender"],
        *(_brief(row[f"seconds_{k}"]) for k in ("median", "min", "max")),
        f"{_rate(row):.3g}",
        told("hand_ratio", "{:.2f}".format),
        told("mpi_ratio", "{:.2f}".format),
        told("encoded_bytes", str),
        told("workspace_bytes", str),
        told("compile_seconds", _brief),
        row["detail"],
    )


def _brief(seconds: float) -> str:
    return f"{seconds * 1e9:.0f} ns" if seconds < 1e-6 else duration(seconds)


# --- charts ----------------------------------------------------------------------------------------------------------

_COLOURS = dict(
    zip(
        (HAND, NAIVE, SYMBOLS, INDEXING, VIEWS, *PACKERS),
        ("#555555", "#aaaaaa", "#b07aa1", "#76b7b2", "#59a14f", "#e1902b", "#edc948"),
    )
)


def _colour(name: str, encodings: list[str]) -> Any:
    if name in _COLOURS:
        return _COLOURS[name]
    from matplotlib import colormaps

    return colormaps["Blues"](0.35 + 0.6 * encodings.index(name) / max(1, len(encodings) - 1))


def figure(result: Mapping[str, Any]) -> Any:
    """Assembly left, disassembly right; a group of bars a redistribution, a bar an encoding. Below all, the sizes."""
    from matplotlib import pyplot

    rows = _moved(result)
    there = {r["contender"] for r in rows} - {MEMCPY}
    names = [n for n in result["contenders"] if n in there]
    encodings = [n for n in names if n.startswith("longshore") and n not in _COLOURS]
    groups: dict[tuple[str, int], dict[str, dict[str, Column]]] = {}
    for row in rows:
        key = (row["group"], row["n"] if row["group"] == "redistributions" else 0)
        label = row["pattern"] if key[1] else f"{row['pattern']}\n{row['n']}"
        groups.setdefault(key, {}).setdefault(row["direction"], {}).setdefault(label, []).append(row)
    down = len(groups) + 1
    drawn, panels = pyplot.subplots(down, 2, figsize=(17, 3.4 * down + 1), squeeze=False)
    for y, ((group, size), directions) in enumerate(groups.items()):
        for x, direction in enumerate(DIRECTIONS):
            _throughput(panels[y][x], directions.get(direction, {}), names, encodings)
            panels[y][x].set_title(
                f"{group}{f' of {size}² doubles' if size else ''}, {direction}", fontsize=9, loc="left"
            )
        # The same scale on both sides, so that they can be compared; applications are too different for a linear one.
        top = max(panel.get_ylim()[1] for panel in panels[y])
        for panel in panels[y]:
            if not size:
                panel.set_yscale("log")
            panel.set_ylim(0 if size else 0.05, top)
    _size_chart(panels[-1][0], result["sizes"])
    panels[-1][1].axis("off")
    handles, labels = panels[0][0].get_legend_handles_labels()
    panels[-1][1].legend(handles, labels, loc="center", fontsize=8, ncols=2, frameon=False)
    drawn.suptitle(machine_words(result), fontsize=7, x=0.01, ha="left", color="#555555")
    drawn.tight_layout(rect=(0, 0, 1, 0.99))
    return drawn


def _throughput(panel: Any, cases: Mapping[str, Column], names: list[str], encodings: list[str]) -> None:
    width = 0.86 / max(1, len(names))
    for k, name in enumerate(names):
        places, rates, low, high = [], [], [], []
        for at, column in enumerate(cases.values()):
            for row in column:
                if row["contender"] == name:
                    rate = _rate(row)
                    places.append(at - 0.43 + (k + 0.5) * width)
                    rates.append(rate)
                    low.append(rate - row["payload_bytes"] / row["seconds_max"] / 1e9)
                    high.append(row["payload_bytes"] / row["seconds_min"] / 1e9 - rate)
        spread = {"yerr": [low, high], "error_kw": {"lw": 0.4, "ecolor": "#333333"}}
        panel.bar(places, rates, width, label=name, color=_colour(name, encodings), **spread)
    for at, column in enumerate(cases.values()):
        for row in column:
            if row["contender"] == MEMCPY:
                panel.hlines(_rate(row), at - 0.47, at + 0.47, color="#c0392b", lw=1)
                panel.text(
                    at + 0.47,
                    _rate(row),
                    f"memcpy {_rate(row):.3g}",
                    fontsize=6,
                    ha="right",
                    va="bottom",
                    color="#c0392b",
                )
    panel.set_xticks(range(len(cases)), list(cases), fontsize=7)
    panel.set_ylabel("GB/s", fontsize=8)
    panel.tick_params(axis="y", labelsize=7)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def _size_chart(panel: Any, sizes: list[Mapping[str, Any]]) -> None:
    kinds, cases = (list(dict.fromkeys(s[field] for s in sizes)) for field in ("kind", "case"))
    from matplotlib import colormaps

    width = 0.86 / max(1, len(kinds))
    for k, kind in enumerate(kinds):
        found = {s["case"]: s["encoded_bytes_to_all"] for s in sizes if s["kind"] == kind}
        places = [at - 0.43 + (k + 0.5) * width for at, c in enumerate(cases) if c in found]
        panel.bar(places, [found[c] for c in cases if c in found], width, label=kind, color=colormaps["tab10"](k))
    panel.set_yscale("log")
    panel.set_xticks(range(len(cases)), cases, fontsize=7)
    panel.set_ylabel("bytes, node 0 to all, 1024²", fontsize=8)
    panel.set_ylim(top=panel.get_ylim()[1] * 30)  # room for the legend
    panel.legend(fontsize=7, ncols=len(kinds), frameon=False, loc="upper center")
    panel.set_title("sizes of the encodings", fontsize=9, loc="left")
