"""What planning costs by itself: building a plan and listing one rank's motions. Metadata only, no MPI, no data."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from .harness import summary, without_collector

COSTA_NOTE = "COSTA plans anew at every call: 15 s for 1x1-cyclic to block at 4096x4096 in our study."

# name, shape, from, to, axes, the rank whose motions are listed
PLANS: tuple[tuple[str, tuple[int, int], str, str, tuple[int, int], int], ...] = (
    ("rows to columns", (8192, 8192), "(BLOCK, *) on 2", "(*, BLOCK) on 2", (0, 1), 0),
    (
        "block-cyclic",
        (8192, 8192),
        "(CYCLIC(32), CYCLIC(32)) on 1x2",
        "(CYCLIC(100), CYCLIC(100)) on 2x1",
        (0, 1),
        0,
    ),
    ("1x1-cyclic to block", (4096, 4096), "(CYCLIC, CYCLIC) on 2x1", "(BLOCK, BLOCK) on 1x2", (0, 1), 0),
    (
        "1 of 1,048,576 ranks, cyclic 64 to 100",
        (1 << 20, 1 << 20),
        "(CYCLIC(64), CYCLIC(64)) on 1024x1024",
        "(CYCLIC(100), CYCLIC(100)) on 1024x1024",
        (0, 1),
        524289,
    ),
    (
        "1 of 1,048,576 ranks, rows to blocks",
        (1 << 20, 1 << 20),
        "(BLOCK, *) on 1048576",
        "(BLOCK, BLOCK) on 1024x1024",
        (0, 1),
        524289,
    ),
)


def measure(repeats: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The planning rows, and what is missing of them."""
    try:
        import longshore as ls

        ls.plan  # noqa: B018 (a checkout that is not built imports as an empty package)
    except (ImportError, AttributeError) as error:
        return [], [{"contender": "longshore plan", "why": f"longshore is not built here ({error})", "cases": []}]
    rows, missing = [], []
    for name, shape, source, destination, axes, rank in PLANS:
        try:
            rows.append(_row(ls, name, shape, source, destination, axes, rank, repeats))
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            missing.append({"contender": "longshore plan", "why": why, "cases": [f"planning {name}"]})
    return rows, missing


def _row(
    ls: Any,
    name: str,
    shape: tuple[int, int],
    source: str,
    destination: str,
    axes: tuple[int, int],
    rank: int,
    repeats: int,
) -> dict[str, Any]:
    def once() -> int:
        from_ = ls.Layout(source, shape=shape)
        to = ls.Layout(destination, shape=tuple(shape[a] for a in axes))
        plan = ls.plan(from_, to, "float64", axes=None if axes == (0, 1) else axes)
        sends, receives = plan.sends(rank), plan.receives(rank)
        return len(sends) + len(receives)

    before = _reset_peak()
    motions = once()
    after = _resident("VmHWM")
    seconds = []
    with without_collector():
        for _ in range(repeats):
            start = time.perf_counter()
            once()
            seconds.append(time.perf_counter() - start)
    return {
        "case": f"planning {name}",
        "n": shape[0],
        "shape": list(shape),
        "dtype": "float64",
        "from": source,
        "to": destination,
        "axes": list(axes),
        "contender": "longshore plan",
        **summary(seconds),
        "payload_bytes": 0,
        "ranks": ls.Layout(source, shape=shape).rank_count,
        "processes": 1,
        "threads": 1,
        "detail": f"rank {rank}: {motions} motions",
        "peak_bytes": None if before is None or after is None else max(0, after - before),
    }


def _reset_peak() -> int | None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return _resident("VmHWM")
    return None


def _resident(field: str) -> int | None:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return None
