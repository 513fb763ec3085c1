"""What planning halos costs by itself: one rank's plan among many boxes. Metadata only, no MPI, no data."""

from __future__ import annotations

import time
from typing import Any

from .harness import summary, without_collector

_EXTENT = 16  # of a box, along each dimension

# Boxes along each dimension, ranks, repetitions at most; the last is not for --quick.
_PLANS = ((16, 2, 99), (100, 1000, 3))


def measure(quick: bool, repeats: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The planning rows, and what is missing of them."""
    try:
        import longshore as ls

        ls.BlockPlan  # noqa: B018 (a checkout that is not built imports as an empty package)
    except (ImportError, AttributeError) as error:
        return [], [{"contender": "longshore plan", "why": f"longshore is not built here ({error})", "cases": []}]
    plans = _PLANS[:1] if quick else _PLANS
    return [_row(ls, across, ranks, min(most, repeats)) for across, ranks, most in plans], []


def _row(ls: Any, across: int, ranks: int, repeats: int) -> dict[str, Any]:
    domain = ls.Region.of_shape((across * _EXTENT,) * 3)
    blocks = ls.FloorPlan.balanced(ls.regions.split_evenly(domain, across), ranks)
    seconds = []
    with without_collector():
        for _ in range(repeats):
            start = time.perf_counter()
            plan = ls.BlockPlan.halo(blocks, 1, domain=domain, periodic=(True,) * 3, rank=ranks // 2)
            seconds.append(time.perf_counter() - start)
    return {
        "case": f"plan {across**3} boxes",
        "n": across * _EXTENT,
        "contender": "longshore plan",
        **summary(seconds),
        "payload_bytes": 0,
        "plan_bytes": plan.workspace_bytes,
        "floor_plan_bytes": blocks.workspace_bytes,
        "ranks": ranks,
        "processes": 1,
        "threads": 1,
        "detail": f"{_EXTENT}³ each, 27-point, width 1, one of {ranks} ranks",
    }
