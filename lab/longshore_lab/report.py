"""How a bench shows its result: tables in the terminal, a JSON file, a plot, a page with both; and what all figures
share."""

import contextlib
import importlib.util
import io
import json as json_module
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from longshore.tune import write_whole
from rich.box import SIMPLE
from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

from .protocol import BenchError

PLOT_SUFFIXES = (".png", ".svg", ".html")
_LEAST_WORDS = 12  # columns of the terminal; a column of words that gets fewer is left out
_PADDING, _EDGES = 3, 1  # of a column, of a table


@dataclass
class Table:
    """What is shown of some rows. A narrow terminal gets it without its optional columns, or in parts that fit."""

    title: str
    headings: Sequence
    lines: Sequence
    optional: Sequence = ()  # headings of columns that are left out first, one after the other
    words: str = "\0"  # the heading of a column of words, which is cut to the room that is left
    left: Sequence = ()  # headings of columns that are no numbers, besides the first
    below: str = ""

    @classmethod
    def of(cls, title, rows, columns, **options):
        """`columns`: headings, and the fields or the functions that make the words of a row."""
        words = [of if callable(of) else lambda row, of=of: str(row[of]) for of in columns.values()]
        return cls(title, list(columns), [[of(row) for of in words] for row in rows], **options)

    def parts(self, width):
        """The columns of each part, and the room that is left for words."""
        widths = []
        for k, heading in enumerate(self.headings):
            words = [line for cell in (heading, *(line[k] for line in self.lines)) for line in cell.split("\n")]
            widths.append(max(map(cell_len, words)) + _PADDING)
        shown = [k for k, heading in enumerate(self.headings) if heading != self.words]
        for heading in self.optional:
            if sum(widths[k] for k in shown) + _EDGES > width:
                shown.remove(list(self.headings).index(heading))
        while shown:
            part, used = shown[:2], _EDGES + sum(widths[k] for k in shown[:2])  # the first column stands in every part
            while len(part) < len(shown) and used + widths[shown[len(part)]] <= width:
                used += widths[shown[len(part)]]
                part.append(shown[len(part)])
            yield part, width - used - _PADDING
            shown = [shown[0], *shown[len(part) :]] if len(part) < len(shown) else []

    def rich(self, width):
        of_words = [k for k, heading in enumerate(self.headings) if heading == self.words]
        for part, room in self.parts(width):
            below = {"caption": Text(self.below), "caption_justify": "left"} if self.below else {}
            shown = RichTable(title=Text(self.title), title_justify="left", **below, box=SIMPLE)
            columns = [*part, *(of_words if room >= _LEAST_WORDS else ())]
            for k in columns:
                left = k == 0 or self.headings[k] in (self.words, *self.left)
                shown.add_column(Text(self.headings[k]), justify="left" if left else "right", no_wrap=True)
            for line in self.lines:
                cells = (line[k] if k in part or len(line[k]) <= room else line[k][: room - 1] + "…" for k in columns)
                shown.add_row(*map(Text, cells), style="bold" if line[0].startswith("longshore") else None)
            yield shown

    def html(self):
        def row(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{escape(cell.replace(chr(10), ' '))}</{tag}>" for cell in cells) + "</tr>"

        head, body = row(self.headings, "th"), "\n".join(row(line, "td") for line in self.lines)
        return f"<h2>{escape(self.title)}</h2><table><thead>{head}</thead><tbody>\n{body}\n</tbody></table>"


def pivot(title, names, columns, words):
    """A line for each contender that has a row, a column for each list of rows; `words` makes those of a row."""
    lines = []
    for name in names:
        of = [next((row for row in rows if row["contender"] == name), None) for rows in columns.values()]
        if any(of):
            lines.append([name, *("" if row is None else words(row) for row in of)])
    return Table(title, ["contender", *columns], lines)


def duration(seconds):
    unit, scale = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if seconds >= s), ("µs", 1e-6))
    value = seconds / scale
    return f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}"


def median(row):
    return duration(row["seconds_median"])


def spread(row):
    return f"{duration(row['seconds_min'])} … {duration(row['seconds_max'])}"


def rate(row):
    """Gigabytes a second."""
    return row["payload_bytes"] / row["seconds_median"] / 1e9


def ratio(field, form="{:.2f}"):
    """A function that makes the words of a row's ratio, where it has one."""
    return lambda row: "" if row[field] is None else form.format(row[field])


def machine_words(result):
    m = result["machine"]
    caches = ", ".join(f"{k} {v}" for k, v in m["caches"].items())
    software = f"{m['system']} {m['kernel']}, Python {m['python']}, NumPy {m['numpy']}, {m['mpi'] or 'no MPI'}"
    return f"{m['cpu']}, {m['usable_cores']} cores ({caches}), {software}"


def missing_words(result):
    """Who is missing where, and why."""
    for m in result["missing"]:
        where = ", ".join(m["cases"]) if len(m["cases"]) <= 3 else f"{len(m['cases'])} cases"
        yield f"{m['contender']}{f' ({where})' if where else ''}: {m['why']}"


def every_row(bench, result):
    """All rows, with the columns that the bench names: fields in seconds, ratios, counts or words."""

    def cell(row, field):
        value = row.get(field)
        if value is None or isinstance(value, str):
            return value or ""
        if "seconds" in field:
            return f"{value * 1e9:.0f} ns" if value < 1e-6 else duration(value)
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    seconds = {"median": "seconds_median", "least": "seconds_min", "most": "seconds_max"}
    columns = {"case": "case", "n": "n", "contender": "contender", **seconds, **bench.columns}
    lines = [[cell(row, field) for field in columns.values()] for row in result["rows"]]
    return Table("every row", list(columns), lines)


@contextlib.contextmanager
def working(console):
    """A function that tells the step; progress shows only where somebody watches."""
    if not console.is_terminal:
        yield lambda step: None
        return
    with console.status("starting") as status:
        yield lambda step: status.update(step.replace("/", ", "))


def show(console, bench, result):
    """The bench's tables and lines (words, style), its notes, and who is missing."""
    console.print(Text(f"longshore {result['version']}: {machine_words(result)}", style="dim"))
    for what in bench.tables(result):
        for shown in what.rich(console.width) if isinstance(what, Table) else [Text(*what)]:
            console.print(shown)
    lines = [(note, "dim") for note in result["notes"]]
    for line in (*lines, *((f"missing: {line}", "yellow") for line in missing_words(result))):
        console.print(Text(*line))


def check_outputs(json, plot):
    """Finds out before minutes are spent measuring whether the results can be written."""
    for target in filter(None, (json, plot)):
        if not Path(target).absolute().parent.is_dir():
            raise BenchError(f"no such folder: {Path(target).parent}")
        if Path(target).is_dir():
            raise BenchError(f"is a folder: {target}")
    if plot is None:
        return
    if Path(plot).suffix.lower() not in PLOT_SUFFIXES:
        raise BenchError(f"a plot is written as {', '.join(PLOT_SUFFIXES)}, not {Path(plot).name!r}")
    if importlib.util.find_spec("matplotlib") is None:
        raise BenchError("--plot needs matplotlib (pip install matplotlib)")


def write(bench, result, json, plot):
    """Writes the JSON and the plot that were asked for."""
    if json is not None:
        write_whole(Path(json), (json_module.dumps(result, indent=2) + "\n").encode())
    if plot is not None:
        form = Path(plot).suffix.lower()[1:]
        drawn = _drawn(bench.figure(result), "svg" if form == "html" else form)
        write_whole(Path(plot), _page(bench, result, drawn.decode()).encode() if form == "html" else drawn)


def _drawn(figure, form):
    import matplotlib

    out = io.BytesIO()
    # No date and fixed ids: the same result gives the same file.
    with matplotlib.rc_context({"svg.hashsalt": "longshore"}):
        figure.savefig(out, format=form, dpi=120, metadata={"Date": None} if form == "svg" else None)
    return out.getvalue()


def _page(bench, result, picture):
    every = [every_row(bench, result)] if bench.columns else []
    shown = (*bench.tables(result), *every, *((note,) for note in result["notes"]))
    parts = [what.html() if isinstance(what, Table) else f"<p>{escape(what[0])}</p>" for what in shown]
    absent = "".join(f"<li>{escape(line)}</li>" for line in missing_words(result)) or "<li>nothing</li>"
    title = f"longshore bench {escape(result['bench'])}"
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body{{font:14px sans-serif;margin:2em;max-width:90em}}svg{{max-width:100%;height:auto}}
td,th{{padding:.1em .8em;text-align:left;border-bottom:1px solid #ddd}}</style></head><body>
<h1>{title}</h1>
<p>Version {escape(result["version"])}. {escape(machine_words(result))}.</p>
{picture[picture.index("<svg") :]}
{chr(10).join(parts)}
<h2>Missing</h2><ul>{absent}</ul>
</body></html>
"""


OURS, COPY, PEER = "#1f6fb4", "#9a9a9a", "#d9a441"


def sheet(result, down, across, width, height, **options):
    """A figure and its panels, at least one, of so many inches all together; the machine stands above it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(machine_words(result), fontsize=7, x=0.01, ha="left", color="#555555")
    return figure, figure.subplots(max(1, down), max(1, across), squeeze=False, **options)


def plain(panel, title="", x="", y=""):
    """A panel without a frame, in small letters."""
    panel.set_title(title, fontsize=9, loc="left")
    panel.set_xlabel(x, fontsize=8)
    panel.set_ylabel(y, fontsize=8)
    panel.tick_params(which="both", labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)


def ratio_sheet(result, panels, names, x):
    """A row and a column of panels for each key: bars of every contender's `copy_ratio`, shorter is better."""
    columns = list(dict.fromkeys(key for row in panels.values() for key in row))
    height = (0.26 * len(names) + 0.9) * max(1, len(panels)) + 0.6
    figure, grid = sheet(result, len(panels), len(columns), 4.6 * max(1, len(columns)) + 1.6, height)
    for y, (down, row) in enumerate(panels.items()):
        for k, across in enumerate(columns):
            rows = row.get(across, [])
            cases = {f"{r['case']} {r['n']}" for r in rows}
            absent = {m["contender"] for m in result["missing"] if not m["cases"] or cases & set(m["cases"])}
            plain(grid[y][k], f"{down}\n{across}" if k == 0 else f"\n{across}", x if y == len(panels) - 1 else "")
            _ratios(grid[y][k], rows, names, absent, k == 0)
    return figure


def _ratios(panel, rows, names, absent, named):
    by_name = {row["contender"]: row for row in rows if row.get("copy_ratio")}
    for at, name in enumerate(names):
        if name not in by_name:
            words = " missing" if name in absent else " not for this case"
            panel.text(1.0, at, words, va="center", fontsize=7, color="#999999")
            continue
        row = by_name[name]
        ratio, copy = row["copy_ratio"], row["seconds_median"] / row["copy_ratio"]
        colour = OURS if name.startswith("longshore") else COPY if name.startswith("copy") else PEER
        low_high = [[ratio - row["seconds_min"] / copy], [row["seconds_max"] / copy - ratio]]
        panel.barh(at, ratio, color=colour, height=0.7, xerr=low_high, error_kw={"lw": 0.7, "ecolor": "#444444"})
        panel.text(ratio, at, f" {ratio:.2f}", va="bottom", fontsize=6.5)
    panel.axvline(1.0, color="#333333", lw=0.7)
    panel.set_xscale("log")
    panel.set_yticks(range(len(names)), names if named else [""] * len(names), fontsize=7)
    panel.set_ylim(len(names) - 0.5, -0.5)  # the first on top


def bars(panel, k, of, values, label, colour, **options):
    """The k-th bar of so many, side by side, at each place of `values`."""
    width = 0.86 / max(1, of)
    places = [at - 0.43 + (k + 0.5) * width for at in values]
    panel.bar(places, list(values.values()), width, label=label, color=colour, **options)
