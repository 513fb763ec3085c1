"""How a bench shows its result: a table in the terminal, a JSON file, a plot."""

from __future__ import annotations

import contextlib
import html
import io
import json as json_module
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .harness import BenchError

Path_ = str | os.PathLike[str]
PLOT_SUFFIXES = (".png", ".svg", ".html")


def check_outputs(json: Path_ | None, plot: Path_ | None) -> None:
    """Finds out before minutes are spent measuring whether the results can be written."""
    for target in (json, plot):
        if target is not None and not Path(target).absolute().parent.is_dir():
            raise BenchError(f"no such folder: {Path(target).parent}")
        if target is not None and Path(target).is_dir():
            raise BenchError(f"is a folder: {target}")
    if plot is None:
        return
    if Path(plot).suffix.lower() not in PLOT_SUFFIXES:
        raise BenchError(f"a plot is written as {', '.join(PLOT_SUFFIXES)}, not {Path(plot).name!r}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise BenchError("--plot needs matplotlib (pip install matplotlib)") from None


def write(result: Mapping[str, Any], json: Path_ | None, plot: Path_ | None, titles: Mapping[str, str]) -> None:
    write_files(result, json, plot, lambda: _figure(result, titles), lambda: _tables(result))


def write_files(
    result: Mapping[str, Any],
    json: Path_ | None,
    plot: Path_ | None,
    figure: Callable[[], Any],
    tables: Callable[[], str],
) -> None:
    """Writes the JSON and the plot that were asked for: `figure`
    draws with matplotlib, `tables` is what a page has below it."""
    if json is not None:
        _write_whole(json, (json_module.dumps(result, indent=2) + "\n").encode("utf-8"))
    if plot is not None:
        suffix = Path(plot).suffix.lower()
        if suffix == ".html":
            picture = _drawn(figure, "svg").decode("utf-8")
            _write_whole(plot, _page(result, picture[picture.index("<svg") :], tables()).encode("utf-8"))
        else:
            _write_whole(plot, _drawn(figure, suffix[1:]))


def _write_whole(target: Path_, content: bytes) -> None:
    beside = Path(str(target) + ".part")
    beside.write_bytes(content)
    os.replace(beside, target)


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale or unit == "µs":
            value = seconds / scale
            return f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}"
    raise AssertionError


def _groups(result: Mapping[str, Any]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The rows that move data, by case and size, in the order of the result."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in result["rows"]:
        if row["payload_bytes"] > 0:
            groups.setdefault((row["case"], row["n"]), []).append(row)
    return groups


def machine_words(result: Mapping[str, Any]) -> str:
    m = result["machine"]
    caches = ", ".join(f"{k} {v}" for k, v in m["caches"].items())
    return (
        f"{m['cpu']}, {m['usable_cores']} cores ({caches}), {m['system']} {m['kernel']}, Python {m['python']}, "
        f"NumPy {m['numpy']}, {m['mpi'] or 'no MPI'}"
    )


class Screen:
    """The terminal, through rich. Progress shows only where somebody watches."""

    def __init__(self, console: Any = None) -> None:
        from rich.console import Console

        self._console = console if console is not None else Console()

    @property
    def width(self) -> int:
        return int(self._console.width)

    def print(self, what: Any) -> None:
        self._console.print(what)

    @contextlib.contextmanager
    def working(self) -> Iterator[Callable[[str], None]]:
        if not self._console.is_terminal:
            yield lambda step: None
            return
        with self._console.status("starting") as status:
            yield lambda step: status.update(step.replace("/", ", "))

    def print_result(self, result: Mapping[str, Any], titles: Mapping[str, str]) -> None:
        from rich.text import Text

        self._console.print(Text(f"longshore {result['version']}: {machine_words(result)}", style="dim"))
        for (key, n), rows in _groups(result).items():
            first = rows[0]
            turn = ", transposed" if first["axes"] != sorted(first["axes"]) else ""
            narrow, wide = self._console.width < 72, self._console.width >= 120
            table = _table(
                f"{titles.get(key, key)}, {n} × {n} doubles\n{first['from']} → {first['to']}{turn}",
                "contender",
                ("median", "× copy") if narrow else ("median", "spread", "GB/s", "× copy"),
                "how" if wide else None,
            )
            for row in rows:
                ratio = row.get("copy_ratio")
                rate = row["payload_bytes"] / row["seconds_median"] / 1e9
                numbers = [duration(row["seconds_median"]), _spread(row), f"{rate:.2f}"]
                numbers = (numbers[:1] if narrow else numbers) + ["" if ratio is None else f"{ratio:.2f}"]
                cells = [Text(row["contender"]), *numbers, _cut(_how(row), self._console.width)]
                ours = row["contender"].startswith("longshore")
                table.add_row(*cells[: len(table.columns)], style="bold" if ours else None)
            absent = [m for m in result["missing"] if f"{key} {n}" in m["cases"] or not m["cases"]]
            names = [m["contender"] for m in absent if m["contender"] != "longshore plan"]
            if names:
                table.caption = Text(f"missing (see below): {', '.join(names)}")
            self._console.print(table)
        self._print_plans(result)
        for m in result["missing"]:
            self._console.print(Text(f"missing: {m['contender']}{_where(m['cases'])}: {m['why']}", style="yellow"))

    def _print_plans(self, result: Mapping[str, Any]) -> None:
        from rich.text import Text

        plans = [r for r in result["rows"] if r["payload_bytes"] == 0]
        if not plans:
            return
        wide = "of" if self._console.width >= 120 else None
        table = _table("planning by itself (one rank's motions)", "plan", ("median", "spread", "peak"), wide)
        for row in plans:
            peak = row.get("peak_bytes")
            cells = [
                Text(row["case"].removeprefix("planning ")),
                duration(row["seconds_median"]),
                _spread(row),
                "" if peak is None else f"{peak / 1e6:.1f} MB",
                _cut(f"{' × '.join(map(str, row['shape']))}, {row['detail']}", self._console.width),
            ]
            table.add_row(*cells[: len(table.columns)])
        self._console.print(table)
        for note in result.get("notes", ()):
            self._console.print(Text(note, style="dim"))


_WIDTHS = {"spread": 19, "GB/s": 5, "× copy": 6}
_NUMBERS_WIDTH = 88  # contender and numbers with their padding; what is left of the terminal is for words


def _table(title: str, first: str, numbers: tuple[str, ...], last: str | None) -> Any:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", caption_justify="left", box=SIMPLE)
    # The numbers are what the table is for: only the words give way where the terminal is narrow, and rich would have
    # every column give way.
    table.add_column(first, no_wrap=first != "plan", min_width=25 if first != "plan" else None, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True, min_width=_WIDTHS.get(heading, 7))
    if last is not None:
        table.add_column(last, style="dim", no_wrap=True, overflow="ellipsis")
    return table


def _cut(words: str, console_width: int) -> Any:
    from rich.text import Text

    room = max(10, console_width - _NUMBERS_WIDTH)
    return Text(words if len(words) <= room else words[: room - 1] + "…")


def _spread(row: Mapping[str, Any]) -> str:
    return f"{duration(row['seconds_min'])} … {duration(row['seconds_max'])}"


def _how(row: Mapping[str, Any]) -> str:
    kind = f"{row['processes']} process{'es' if row['processes'] > 1 else ''}"
    if row["threads"] > 1:
        kind += f", {row['threads']} threads"
    return f"{kind}; {row['detail']}" if row["detail"] else kind


def _where(cases: list[str]) -> str:
    if not cases or len(cases) > 3:
        return ""
    return f" ({', '.join(cases)})"


# --- plots -----------------------------------------------------------------------------------------------------------

_OURS, _COPY, _PEER = "#1f6fb4", "#9a9a9a", "#d9a441"


def _drawn(figure: Callable[[], Any], form: str) -> bytes:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn, out = figure(), io.BytesIO()
    # No date and fixed ids: the same result gives the same file.
    with matplotlib.rc_context({"svg.hashsalt": "longshore"}):
        drawn.savefig(out, format=form, dpi=120, metadata={"Date": None} if form == "svg" else None)
    pyplot.close(drawn)
    return out.getvalue()


def _figure(result: Mapping[str, Any], titles: Mapping[str, str]) -> Any:
    """One panel a case and size: multiples of the best memory copy, shorter is better."""
    from matplotlib import pyplot

    groups = _groups(result)
    keys = list(dict.fromkeys(k for k, _ in groups))
    sizes = sorted({n for _, n in groups})
    names = list(dict.fromkeys(r["contender"] for rows in groups.values() for r in rows))
    names += [m["contender"] for m in result["missing"] if m["contender"] not in (*names, "longshore plan", "all")]
    names = list(dict.fromkeys(names))
    every = [f"{key} {n}" for key, n in groups]
    missing = {(m["contender"], case) for m in result["missing"] for case in m["cases"] or every}
    down, across = max(1, len(keys)), max(1, len(sizes))
    figure, panels = pyplot.subplots(
        down, across, figsize=(5.2 * across + 1.5, 0.27 * len(names) * down + 0.9 * down + 0.6), squeeze=False
    )
    for y, key in enumerate(keys):
        for x, n in enumerate(sizes):
            panel = panels[y][x]
            absent = {name for name, case in missing if case == f"{key} {n}"}
            ratio_panel(panel, groups.get((key, n), []), names, absent, show_names=x == 0)
            panel.set_title(f"{titles.get(key, key)}, {n}²", fontsize=9, loc="left")
    for x in range(across):
        panels[-1][x].set_xlabel("multiples of the best memory copy", fontsize=8)
    figure.suptitle(machine_words(result), fontsize=7, x=0.01, ha="left", color="#555555")
    figure.tight_layout(rect=(0, 0, 1, 0.99))
    return figure


def ratio_panel(panel: Any, rows: list[dict[str, Any]], names: list[str], absent: set[str], show_names: bool) -> None:
    """The bars of one case: every contender's multiple of a memory copy."""
    by_name = {r["contender"]: r for r in rows if r.get("copy_ratio")}
    for at, name in enumerate(names):
        row = by_name.get(name)
        if row is None:
            words = " missing" if name in absent else " not for this case"
            panel.text(1.0, at, words, va="center", fontsize=7, color="#999999")
            continue
        ratio, copy = row["copy_ratio"], row["seconds_median"] / row["copy_ratio"]
        colour = _OURS if name.startswith("longshore") else _COPY if name.startswith("copy") else _PEER
        spread = [[ratio - row["seconds_min"] / copy], [row["seconds_max"] / copy - ratio]]
        panel.barh(at, ratio, color=colour, height=0.7, xerr=spread, error_kw={"lw": 0.7, "ecolor": "#444444"})
        panel.text(ratio, at, f" {ratio:.2f}", va="bottom", fontsize=6.5)
    panel.axvline(1.0, color="#333333", lw=0.7)
    panel.set_xscale("log")
    panel.set_yticks(range(len(names)), names if show_names else [""] * len(names), fontsize=7)
    panel.tick_params(axis="x", labelsize=7)
    panel.set_ylim(len(names) - 0.5, -0.5)  # the first on top
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def _tables(result: Mapping[str, Any]) -> str:
    lines = []
    for row in result["rows"]:
        ratio = row.get("copy_ratio")
        cells = (
            row["case"],
            str(row["n"]),
            row["contender"],
            *(duration(row[f"seconds_{k}"]) for k in ("median", "min", "max")),
            "" if ratio is None else f"{ratio:.2f}",
            row["detail"],
        )
        lines.append(cells)
    absent = "".join(
        f"<li>{html.escape(m['contender'])}{html.escape(_where(m['cases']))}: {html.escape(m['why'])}</li>"
        for m in result["missing"]
    )
    heads = ("case", "n", "contender", "median", "least", "most", "× copy", "how")
    return f"""{html_table(heads, lines)}
<h2>Missing</h2><ul>{absent or "<li>nothing</li>"}</ul>"""


def html_table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{html.escape(h)}</th>" for h in heads)
    body = ("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n" + "\n".join(body) + "\n</tbody></table>"


def _page(result: Mapping[str, Any], picture: str, tables: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>longshore bench {html.escape(result["bench"])}</title>
<style>body{{font:14px sans-serif;margin:2em;max-width:90em}}svg{{max-width:100%;height:auto}}
td,th{{padding:.1em .8em;text-align:left;border-bottom:1px solid #ddd}}</style></head><body>
<h1>longshore bench {html.escape(result["bench"])}</h1>
<p>Version {html.escape(result["version"])}. {html.escape(machine_words(result))}.</p>
{picture}
{tables}
</body></html>
"""
