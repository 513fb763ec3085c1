"""How copy kernels go about what they copy: measured by `calibrate` or probed at first use, kept for each model of CPU,
and chosen when Longshore is imported."""

from __future__ import annotations

import json
import warnings
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .. import _core
from .._words import printable
from ..errors import LongshoreError
from ._facts import KERNEL_NUMBERS, check

NUMBERS = tuple(name.removesuffix("?") for name in KERNEL_NUMBERS)


def measure(threads: int, quick: bool) -> dict[str, Any]:
    """The `kernel_profile` of a machine profile, measured with so many threads at once in a second or so."""
    profile, trials = _core.measure_kernels(threads, 0.5 if quick else 2.0)
    return {
        **profile,
        "cpu": _core.cpu_name(),
        "kernels": _core.kernels_name(),
        "measured": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "trials": trials,
    }


def choose(kept: str, whole: bool) -> None:
    """Has this process's kernels go by the profile in a file, which is a kernel profile or a `whole` machine profile,
    where it is of this model of CPU. What cannot be used is told, and left alone."""
    from . import is_profile

    try:
        content = Path(kept).read_bytes()
        if whole and not is_profile(content):
            return  # whoever asks for it is told
        facts = json.loads(content)
        if whole and (facts := facts.get("kernel_profile")) is None:
            return
        check(facts, "the kernel profile", kernels=True)
        if (facts["cpu"], facts["kernels"]) == (_core.cpu_name(), _core.kernels_name()):
            by = f"{chosen_by(facts)}, kept in {printable(kept)}"
            _core.choose_kernel_profile({name: facts[name] for name in NUMBERS if name in facts}, by)
    except (OSError, LongshoreError, ValueError, TypeError, OverflowError, RecursionError) as error:
        warnings.warn(f"{kept} is not used: {error}", RuntimeWarning, stacklevel=2)


def chosen_by(facts: dict[str, Any]) -> str:
    """Who found out the numbers of a profile, and when."""
    who = "probed at first use" if facts.get("chosen_by") == "probe" else "measured by longshore calibrate"
    return f"{who} on {facts['measured']}"


def words(facts: dict[str, Any]) -> str:
    """The numbers of a profile, for people."""
    if facts["rows"] == 1:
        rows = "long rows one by one"
    else:
        rows = (
            f"{facts['rows']} long rows side by side, {facts['burst_bytes']} bytes of each by turns, "
            f"{facts['stagger_bytes']} bytes ahead of each other"
        )
    long = [f"from {facts['paged_bytes']:,} bytes on by pages"] if facts["paged_bytes"] is not None else []
    long += [f"from {facts['string_bytes']:,} bytes on by rep movsb"] if facts["string_bytes"] is not None else []
    short = "expanded" if facts["expands"] else "staged"
    each = f", {facts['merged_bytes']} bytes of each by turns" if facts.get("merged_bytes", 64) != 64 else ""
    merged = f"{facts['merged_rows']} rows of several sources at a time{each}, short runs {short}"
    further = [f"long runs read {facts['ahead_bytes']} bytes ahead"] if "ahead_bytes" in facts else []
    if "tile_lines" in facts:
        tiled = facts.get("tiled_from")
        which = f" of elements from {tiled} bytes on" if tiled is not None and tiled > 1 else ""
        bursts = f", those{which} whose rows are a multiple of 512 bytes apart 256 bytes of a row at a time"
        further += [f"transposes in tiles {facts['tile_lines']} lines wide{bursts if tiled is not None else ''}"]
    if facts.get("cached_bytes"):
        further += [f"moves of up to {facts['cached_bytes']:,} bytes by ordinary stores"]
    return "; ".join([rows, f"runs {' and '.join(long)}" if long else "runs line by line", merged, *further])
