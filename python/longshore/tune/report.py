"""A machine profile for people: `render` says it in words and tables, `draw` draws the copy-transfer model's figure 4
(Stricker & Gross): throughput against stride, for strided loads (nC1) and strided stores (1Cn)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._kernels import kept_path
from .._words import bytes_of, count_of, printable

if TYPE_CHECKING:
    from . import MachineProfile

PLOT_SUFFIXES = (".png", ".svg", ".html")
_INDEXED = "w"
_SIDES = {"strided loads": "{}C1", "strided stores": "1C{}"}


def summary(profile: MachineProfile) -> list[str]:
    """What was measured, where, when and how well, a line each."""
    facts = profile.facts
    about = [facts["processor"]] if "processor" in facts else []
    about += [count_of(facts["cores"], "core")] if "cores" in facts else []
    about += [f"{facts['kernels']} kernels"] if "kernels" in facts else []
    about += [f"{level} {bytes_of(size)}" for level, size in facts.get("caches_bytes", {}).items()]
    lines = [profile.machine + (f": {', '.join(about)}" if about else "")]
    if profile.coarse:
        return lines + ["coarse: nothing was measured; longshore calibrate measures this machine"]
    times = [f"on {facts['measured']}"] if "measured" in facts else []
    times += [f"in {facts['seconds']:.0f} s"] if "seconds" in facts else []
    times += [f"by longshore {facts['longshore']}"] if "longshore" in facts else []
    copies, noisy = facts["copies"], sum(one["noisy"] for one in facts["copies"])
    samples = [sample for one in facts["exchanges"] for sample in one["samples"]]
    loud = sum(sample.get("noisy", False) for sample in samples)
    lines += [f"measured {', '.join(times)}"] if times else []
    lines.append(f"copies: {len(copies):,}, {noisy:,} of them noisy (the middle half spread by over a quarter)")
    if samples:
        ways = ", ".join(dict.fromkeys(f"{one['way']} ({one['pair']})" for one in facts["exchanges"]))
        lines.append(f"exchanges: {len(samples):,}, {loud:,} of them noisy: {ways}" + _mpi(facts))
    else:
        lines.append("exchanges between processes: none; longshore calibrate measures them with mpi4py and its mpiexec")
    return lines


def render(profile: MachineProfile) -> str:
    """The whole profile in words and tables."""
    lines = summary(profile)
    for side, transfer in _SIDES.items():
        curves = _curves(profile, transfer)
        strides = sorted({stride for curve in curves.values() for stride in curve if stride != _INDEXED}, key=int)
        columns = [*strides, _INDEXED]
        rows = [["touched", "", "", *strides, "listed"]]
        for situation, curve in curves.items():
            rows.append([*_situation(*situation), *(_rate(curve[n]) if n in curve else "" for n in columns)])
        lines += ["", f"{side} by words of 8 bytes apart, GB/s (~ noisy)", *_table(rows, left=3)]
    for pair in dict.fromkeys(one["pair"] for one in profile.facts["exchanges"]):
        ways = [one for one in profile.facts["exchanges"] if one["pair"] == pair]
        sizes = sorted({sample["bytes"] for one in ways for sample in one["samples"]})
        rows = [["", *map(bytes_of, sizes)]]
        for one in ways:
            told = {sample["bytes"]: _time(sample) for sample in one["samples"]}
            rows.append([one["way"], *(told.get(size, "") for size in sizes)])
        title = f"two processes, {pair}, send each other so many bytes at the same time, or get them: us (~ noisy)"
        lines += ["", title, *_table(rows, left=1)]
    if profile.facts["loggp"]:
        rows = [["", "L us", "o_s us", "o_r us", "g us", "G ns/byte"]]
        for one in profile.facts["loggp"]:
            micro = [f"{one[f'{name}_seconds'] * 1e6:.2f}" for name in ("L", "o_s", "o_r", "g")]
            rows.append([one["pair"], *micro, f"{one['G_seconds_per_byte'] * 1e9:.3f}"])
        lines += ["", "LogGP of MPI's messages", *_table(rows, left=1)]
    lines += ["", *_kernels(profile.facts)]
    calls = profile.facts["calls"]
    lines += [
        "",
        f"a move in one process: {calls['start_seconds'] * 1e6:.2f} us to start, "
        f"{calls['transfer_seconds'] * 1e9:.0f} ns a transfer, {calls['wake_seconds'] * 1e6:.1f} us to wake threads; "
        f"kernels: {calls['leaf_seconds'] * 1e9:.0f} ns a call, {calls['row_seconds'] * 1e9:.1f} ns a loop",
    ]
    if load := profile.facts.get("memory_load_seconds_per_byte"):
        lines.append(f"loading what caches do not hold, one core: {load * 1e9:.3f} ns a byte, {1e-9 / load:.1f} GB/s")
    return "\n".join(lines) + "\n"


def _kernels(facts: dict[str, Any]) -> list[str]:
    """How copy kernels go about it, who says so, and what was tried."""
    from .. import _core
    from .kernels import NUMBERS, words

    here = f"copy kernels here ({_core.kernels_name()}, {_core.cpu_name()})"
    if _core.kernels_await_probe():
        lines = [
            f"{here}: not chosen yet",
            "  probed at first use, in at most 50 ms, which is when a process first moves some megabytes; longshore "
            "calibrate measures them better",
        ]
    else:
        used, by = _core.kernel_choice()
        lines = [f"{here}: {words(used)}", f"  {by}"]
        if by.endswith(f", kept in {printable(kept_path())}"):
            lines.append(
                "  longshore calibrate measures them anew; where that file is deleted, what is built in for this CPU "
                "counts, or a probe at first use"
            )
    measured = facts.get("kernel_profile")
    if measured is None:
        return lines
    lines += [f"copy kernels by this profile ({measured['kernels']}, {measured['cpu']}): {words(measured)}"]
    rows = [["", *(name.replace("_", " ") for name in NUMBERS), "us", ""]]
    for trial in measured["trials"]:
        numbers = ("never" if trial.get(name, "") is None else str(trial.get(name, "")).lower() for name in NUMBERS)
        rows.append([trial["copies"], *numbers, f"{trial['seconds'] * 1e6:.0f}", "chosen" if trial["chosen"] else ""])
    return lines + _table(rows, left=1)


def draw(profile: MachineProfile, path: Path) -> bytes:
    """What a file of this name holds: PNG, SVG, or a page of HTML with the drawing and the words. Needs matplotlib."""
    import matplotlib
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    panels = figure.subplots(1, 3)
    panels[1].sharey(panels[0])
    figure.suptitle(_title(profile), fontsize=8, x=0.01, ha="left")
    sizes = list(dict.fromkeys(one["working_bytes"] for one in profile.facts["copies"]))
    colours = {size: colormaps["viridis"](0.9 * k / max(1, len(sizes) - 1)) for k, size in enumerate(sizes)}
    for panel, (side, transfer) in zip(panels, _SIDES.items()):
        for (size, at_once, from_another), curve in _curves(profile, transfer).items():
            points = sorted((int(n), one["megabytes_per_second"]) for n, one in curve.items() if n != _INDEXED)
            if from_another or not points:
                continue
            alone, label = at_once == 1, " ".join(_situation(size, at_once, False)[:2])
            panel.plot(*zip(*points), ".-" if alone else ".--", color=colours[size], label=label, lw=1)
        _axes(panel, f"{side}, {transfer.format('n')}", "words of 8 bytes apart")
    for one in profile.facts["exchanges"]:
        points = [(s["bytes"], s["bytes"] / s["seconds"] / 1e6) for s in one["samples"] if s["seconds"] > 0]
        if points:
            panels[2].plot(*zip(*points), ".-", label=f"{one['way']}, {one['pair']}", lw=1)
    _axes(panels[2], "exchanges of two processes, each way", "bytes")
    out, form = io.BytesIO(), path.suffix.lower()[1:]
    picture = "png" if form == "png" else "svg"
    with matplotlib.rc_context({"svg.hashsalt": "longshore"}):  # no date and fixed ids: one profile, one file
        figure.savefig(out, format=picture, dpi=120, metadata={"Date": None} if picture == "svg" else None)
    return _page(profile, out.getvalue().decode()).encode() if form == "html" else out.getvalue()


def _curves(profile: MachineProfile, transfer: str) -> dict[tuple[int | None, int, bool], dict[str, dict[str, Any]]]:
    """The entries of the copies of words of 8 bytes in rows, also of strides that find few sets of a cache, by
    situation (bytes, threads, from another) and stride."""
    found: dict[tuple[int | None, int, bool], dict[str, dict[str, Any]]] = {}
    before, after = transfer.split("{}")
    for one in profile.facts["copies"]:
        name = one["transfer"]
        stride = name[len(before) : len(name) - len(after)]
        plain = name == transfer.format(stride) and (stride == _INDEXED or (stride.isdecimal() and stride != "0"))
        if plain and one["word_bytes"] == 8 and one["loops"] in ("rows", "aliased"):
            found.setdefault((one["working_bytes"], one["at_once"], one["from_another"]), {})[stride] = one
    ends = {key: (key[1], key[2], key[0] is None, key[0] or 0) for key in found}
    return dict(sorted(found.items(), key=lambda each: ends[each[0]]))


def _situation(size: int | None, at_once: int, from_another: bool) -> list[str]:
    where = "memory" if size is None else bytes_of(size)
    return [where, "alone" if at_once == 1 else f"{at_once} at once", "of another core" if from_another else ""]


def _rate(one: dict[str, Any]) -> str:
    return f"{one['megabytes_per_second'] / 1e3:.1f}{'~' if one['noisy'] else ' '}"


def _time(sample: dict[str, Any]) -> str:
    return f"{sample['seconds'] * 1e6:.1f}{'~' if sample.get('noisy') else ' '}"


def _table(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Columns of one width each, the first ones to the left."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [c.ljust(w) if k < left else c.rstrip().rjust(w) for k, (c, w) in enumerate(zip(row, widths))]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def _mpi(facts: dict[str, Any]) -> str:
    return f"; {facts['mpi']}" if "mpi" in facts else ""


def _title(profile: MachineProfile) -> str:
    return "; ".join(summary(profile)[: 2 if profile.coarse else 1]).replace("$", r"\$")


def _axes(panel: Any, title: str, x: str) -> None:
    panel.set_title(title, fontsize=9, loc="left")
    panel.set_xlabel(x, fontsize=8)
    panel.set_ylabel("MB/s", fontsize=8)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.tick_params(which="both", labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)
    if panel.lines:
        panel.legend(fontsize=6, frameon=False)
    else:
        panel.text(0.5, 0.5, "not measured", ha="center", transform=panel.transAxes, fontsize=8, color="#777777")


def _page(profile: MachineProfile, picture: str) -> str:
    title = escape(f"machine profile of {profile.machine}")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body{{font:14px sans-serif;margin:2em}}svg{{max-width:100%;height:auto}}</style></head><body>
<h1>{title}</h1>
{picture[picture.index("<svg") :]}
<pre>{escape(render(profile))}</pre>
</body></html>
"""
