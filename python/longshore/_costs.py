"""What the model says that a plan will take, as `explain` tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._words import bytes_of, seconds_of
from .errors import LongshoreError

if TYPE_CHECKING:
    from ._api import MotionPlan
    from ._core import BlockPlan

_COSTED_RANKS = 64  # of which the slowest is looked for


def costs(
    plan: MotionPlan | BlockPlan, rank: int | None, ranks_per_node: int | None = None, **asked: Any
) -> dict[str, Any]:
    """What each way takes, by the model, on this machine's profile: between processes, of one node or so many a node,
    of `rank` or the slowest of all, and on the threads of one process where all ranks' motions are known. `asked`: what
    the arrays of a plan between blocks are, and `work`, as `model.predict` takes them. `missing`: why something is not
    predicted, such as ways between processes on a profile that was made without any."""
    from . import model, tune

    few = plan.world_size <= _COSTED_RANKS
    jobs: list[dict[str, Any]] = [{"rank": rank if rank is not None or few else 0, "ranks_per_node": ranks_per_node}]
    if few and rank is None and ranks_per_node is None:
        jobs.append({"threads": 0})
    predictions, missing, profile = [], [], None
    try:
        profile = tune.profile()
    except (OSError, LongshoreError) as error:
        missing.append(str(error))
    for job in jobs if profile is not None and plan.world_size else []:
        try:
            predictions.append(model.predict(plan, profile, **job, **asked))
        except LongshoreError as error:
            missing.append(str(error))
    return {
        "machine": profile and profile.machine,
        "coarse": profile is not None and profile.coarse,
        "rank": next((told.rank for told in predictions if told.best.way != "threads"), None),
        "ranks_per_node": ranks_per_node,
        "work_seconds_per_byte": asked.get("work"),
        "missing": missing,
        "ways": [
            {
                "way": cost.way,
                "seconds": cost.seconds,
                "expression": str(cost.expression),
                "megabytes_per_second": cost.expression_megabytes_per_second,
                "bottleneck": cost.bottleneck,
                "extra_bytes": cost.extra_bytes,
            }
            for prediction in predictions
            for cost in prediction.ways
        ],
    }


_WAY_WORDS = {
    "direct": "straight copies, memory that ranks share",
    "ring": "rings, any memory",
    "messages": "a message a peer",
    "collective": "one collective",
    "threads": "in one process, on its threads",
    "gets": "one access to a window for all",
    "strips": "strips from a window, beside the work on them",
}


def print_costs(print_: Callable[..., None], told: dict[str, Any] | None) -> None:
    """Prints what each way takes, the fastest first, and what of it takes the most."""
    if told is None or not (told["ways"] or told["missing"]):
        return
    print_()
    for why in told["missing"]:
        print_(f"not predicted    {why}")
    if not told["ways"]:
        return
    whose = "" if told["rank"] is None else f", for rank {told['rank']}"
    if told["ranks_per_node"] is not None:
        whose += f", {told['ranks_per_node']} ranks a node"
    if told["work_seconds_per_byte"] is not None:
        whose += f", with work of {told['work_seconds_per_byte'] * 1e9:.3g} ns a byte on what arrives"
    print_(f"predicted on     {'no machine in particular' if told['coarse'] else told['machine']}{whose}")
    for cost in told["ways"]:
        print_(f"  {seconds_of(cost['seconds']):>8}  {_WAY_WORDS[cost['way']]}")
        if not cost["bottleneck"]:
            continue  # there is nothing to move
        rate = f"{cost['megabytes_per_second'] / 1e3:.3g} GB/s"
        most = "" if cost["bottleneck"] == cost["expression"] else f", most of it {cost['bottleneck']}"
        extra = f"; {bytes_of(cost['extra_bytes'])} of buffers" if cost["extra_bytes"] else ""
        print_(f"            {cost['expression']}, {rate}{most}{extra}")
    if told["coarse"]:
        print_("  (a coarse guess; `longshore calibrate` measures this machine)")
