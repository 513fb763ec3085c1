"""What a plan between blocks will do, said before it is done: `BlockPlan.explain`. Nothing here looks at elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _arrays
from ._core import BlockPlan, FloorPlan
from ._costs import costs, print_costs
from ._mistakes import check
from ._words import bytes_of, count_of
from .errors import ArgumentError
from .explain import MATRIX_RANKS, print_matrix, printed, share

if TYPE_CHECKING:
    from rich.console import Console

_PEERS_SHOWN = 8


def describe(plan: BlockPlan, rank: int | None = None, dtype: Any = None) -> dict[str, Any]:
    """The facts of a plan as a dict of numbers, lists and words. Amounts are counted in `unit`: "bytes" where the dtype
    of the elements is given, else "points". `view` says whose motions these are: of "all" ranks, or of "one rank"."""
    check("rank", rank, "int | None")
    size = 1 if dtype is None else _arrays.fixed_dtype(dtype).itemsize
    rank = plan.rank if rank is None else rank
    if rank is not None:
        if not 0 <= rank < plan.world_size:
            raise ArgumentError(f"rank {rank} takes no part; the ranks of this plan lie in [0, {plan.world_size})")
        if plan.rank not in (None, rank):
            raise ArgumentError(f"the plan holds the motions of rank {plan.rank}, not those of rank {rank}")
    volumes = [(a, b, n, points * size) for a, b, n, points in plan.volumes() if rank is None or rank in (a, b)]
    told: dict[str, Any] = {
        "plan": _kind(plan),
        "view": "all" if rank is None else "one rank",
        "unit": "points" if dtype is None else "bytes",
        "source": _describe_blocks(plan.source),
        "destination": _describe_blocks(plan.destination),
        "same_blocks": plan.source == plan.destination,
        "motions": sum(n for _, _, n, _ in volumes),
        "moved": sum(amount for *_, amount in volumes),
        "phases": _phases(plan),
        "stays_local": sum(amount for a, b, _, amount in volumes if a == b),
    }
    away = {(a, b): amount for a, b, _, amount in volumes if a != b}
    largest = max(away, key=lambda pair: away[pair], default=None)
    told["largest_message"] = largest and {
        "source": largest[0],
        "destination": largest[1],
        "amount": away[largest],
    }
    told["costs"] = None if dtype is None else costs(plan, rank, dtype=dtype)
    if rank is None:
        return told | _describe_all(plan, volumes, away, told["unit"])
    return told | {
        "rank": rank,
        "blocks": [len(side.owned_by(rank)) for side in (plan.source, plan.destination)],
        "sends": {b: amount for (a, b), amount in away.items() if a == rank},
        "receives": {a: amount for (a, b), amount in away.items() if b == rank},
    }


def render(plan: BlockPlan, rank: int | None = None, dtype: Any = None) -> str:
    """The same facts for people."""
    told = describe(plan, rank, dtype)
    return printed(lambda console, print_: _print_to(console, print_, told))


def _kind(plan: BlockPlan) -> str:
    """What a plan is: "a halo, width 1, no corners; periodic in dimension 0 of [0:4, 0:4]"."""
    facts: dict[str, list[str]] = {}
    for name, value in plan.facts:
        facts.setdefault(name, []).append(value)
    words = ", ".join(facts["plan"] + facts.get("halo", []))
    if (periodic := facts.get("periodic", ["no dimensions"])[0]) != "no dimensions":
        words += f"; periodic in {periodic if ',' in periodic else periodic.replace('dimensions', 'dimension')}"
        words += f" of {facts['domain'][0]}"
    if (axes := facts["axes"][0]) != "none":
        words += f"; axes permuted to {axes}"
    by_hand = int(facts["motions by hand"][0])
    return words + (f"; {count_of(by_hand, 'motion')} by hand" if by_hand and words != "motions by hand" else "")


def _phases(plan: BlockPlan) -> dict[str, Any] | None:
    """In how many phases a halo with corners goes by itself, within one array, and why in no more; of others None."""
    if ("halo", "corners") not in plan.facts:
        return None
    if not (why := plan.phases_obstacle) and not plan.phases_pay:
        why = "too few cells lie beyond edges and corners"
    return {"count": 1 if why else len(plan.phases()), "why": why}


def _describe_blocks(blocks: FloorPlan) -> dict[str, Any]:
    ranks, counts = np.unique(blocks.owners, return_counts=True)
    return {
        "blocks": len(blocks),
        "dimensions": blocks.ndim,
        "points": blocks.size,
        "ranks": ranks.size,
        "blocks_each": [int(counts.min(initial=len(blocks))), int(counts.max(initial=0))],
    }


def _describe_all(
    plan: BlockPlan, volumes: list[tuple[int, int, int, int]], away: dict[tuple[int, int], int], unit: str
) -> dict[str, Any]:
    rows, columns = (sorted(set(side.owners.tolist())) for side in (plan.source, plan.destination))
    peers: dict[int, set[int]] = {rank: set() for rank in {*rows, *columns}}
    out, into = dict.fromkeys(peers, 0), dict.fromkeys(peers, 0)
    for (a, b), amount in away.items():
        peers[a].add(b)
        peers[b].add(a)
        out[a] += amount
        into[b] += amount
    counts = [len(others) for others in peers.values()]
    busiest = max(sorted(peers), key=lambda rank: out[rank] + into[rank], default=-1)
    matrix = None
    if away and max(len(rows), len(columns)) <= MATRIX_RANKS:
        cells = {(a, b): amount for a, b, _, amount in volumes}
        matrix = {
            "source_ranks": rows,
            "destination_ranks": columns,
            unit: [[cells.get((a, b), 0) for b in columns] for a in rows],
        }
    return {
        "messages": len(away),
        "neighbours": [min(counts, default=0), max(counts, default=0)],
        "busiest": None if not away else {"rank": busiest, "sends": out[busiest], "receives": into[busiest]},
        "matrix": matrix,
    }


def _print_to(console: Console, print_: Callable[..., None], told: dict[str, Any]) -> None:
    def amount(n: int) -> str:
        return bytes_of(n) if told["unit"] == "bytes" else count_of(n, "point")

    def peers(of: dict[int, int]) -> str:
        shown = ", ".join(f"{rank}: {amount(n)}" for rank, n in list(of.items())[:_PEERS_SHOWN])
        return shown + (", …" if len(of) > _PEERS_SHOWN else "")

    print_(told["plan"])
    if told["same_blocks"]:
        print_(f"blocks           {_blocks(told['source'])}")
    else:
        print_(f"from             {_blocks(told['source'])}")
        print_(f"to               {_blocks(told['destination'])}")
    if told["view"] == "one rank":
        source, destination = (count_of(n, "block") for n in told["blocks"])
        owned = source if told["same_blocks"] else f"{source} of the sources, {destination} of the destinations"
        print_(f"the view of rank {told['rank']} alone, which owns {owned}:")
    print_(f"motions          {told['motions']:,}, {amount(told['moved'])}")
    if phases := told["phases"]:
        why = phases["why"] or "a dimension at a time, where it goes within one array"
        print_(f"phases           {phases['count']}: {why}")
    if told["view"] == "all":
        if told["matrix"] is not None:
            print_()
            print_matrix(console, print_, told["matrix"], told["unit"])
            print_()
        sent = told["moved"] - told["stays_local"]
        print_(f"messages         {told['messages']:,}, {amount(sent)} in all")
    else:
        for word, of in ("sends", told["sends"]), ("receives", told["receives"]):
            way = "to" if word == "sends" else "from"
            print_(f"{word:<16} {amount(sum(of.values()))}, {way} {count_of(len(of), 'rank')}")
            if of:
                print_(f"  {way:<14} {peers(of)}")
    print_(f"stays local      {amount(told['stays_local'])}" + share(told["stays_local"], told["moved"]))
    if largest := told["largest_message"]:
        print_(
            f"largest message  {amount(largest['amount'])}, rank {largest['source']} to rank {largest['destination']}"
        )
    if told["view"] == "all":
        few, many = told["neighbours"]
        print_("neighbours       " + (f"{few:,} for every rank" if few == many else f"{few:,} to {many:,} for a rank"))
        if busiest := told["busiest"]:
            print_(
                f"busiest          rank {busiest['rank']} sends {amount(busiest['sends'])} and receives "
                f"{amount(busiest['receives'])}"
            )
    print_costs(print_, told["costs"])


def _blocks(side: dict[str, Any]) -> str:
    """512 blocks of 3 dimensions in words."""
    few, many = side["blocks_each"]
    each = "" if many == 0 else f", {few:,} each" if few == many else f", {few:,} to {many:,} each"
    return (
        f"{side['blocks']:,} of {count_of(side['dimensions'], 'dimension')}, {count_of(side['points'], 'point')}, "
        f"on {count_of(side['ranks'], 'rank')}{each}"
    )
