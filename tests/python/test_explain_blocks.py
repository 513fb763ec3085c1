"""What `explain` says about plans between blocks: the facts against motions counted one by one, and the words."""

import json

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore import BlockPlan, FloorPlan, Region, regions
from longshore._explain_blocks import describe

DOMAIN = Region((-2, 0), (7, 11))


@st.composite
def plans(draw):
    def blocks():
        pieces = regions.split_to_size(DOMAIN, draw(st.integers(2, 6)))
        return FloorPlan(pieces, [draw(st.integers(0, 4)) for _ in pieces])

    kind, rank = draw(st.integers(0, 3)), draw(st.none() | st.integers(0, 4))
    if kind == 0:
        return BlockPlan.halo(blocks(), draw(st.integers(0, 2)), domain=DOMAIN, periodic=draw(st.booleans()), rank=rank)
    if kind == 1:
        return BlockPlan.copy_between(blocks(), blocks(), rank=rank)
    plan = BlockPlan(blocks(), blocks()) if kind == 2 else BlockPlan.copy_between(blocks(), blocks()).reverse()
    for _ in range(draw(st.integers(0, 3))):
        point = Region((0, 0), (1, draw(st.integers(1, 5))))
        k, j = (draw(st.integers(0, len(side) - 1)) for side in (plan.destination, plan.source))
        plan.copy(point, k, point, j)
    return plan


@given(plans(), st.sampled_from([None, "f8", "u1"]))
@settings(max_examples=150, deadline=None)
def test_facts(plan, dtype):
    size = np.dtype(dtype).itemsize if dtype else 1
    pairs, motions = {}, {}
    for motion in plan.motions():
        pair = plan.source.owner(motion.source), plan.destination.owner(motion.destination)
        pairs[pair] = pairs.get(pair, 0) + motion.points * size
        motions[pair] = motions.get(pair, 0) + 1
    if plan.rank is None:
        told = describe(plan, dtype=dtype)
        away = {pair: n for pair, n in pairs.items() if pair[0] != pair[1]}
        assert told["view"] == "all" and told["unit"] == ("bytes" if dtype else "points")
        assert told["motions"] == sum(motions.values()) and told["moved"] == sum(pairs.values())
        assert told["messages"] == len(away) and told["stays_local"] == told["moved"] - sum(away.values())
        assert (told["largest_message"] or {"amount": None})["amount"] == max(away.values(), default=None)
        ranks = {*plan.source.owners.tolist(), *plan.destination.owners.tolist()}
        peers = [len({a + b - r for a, b in away if r in (a, b)}) for r in ranks]
        assert told["neighbours"] == [min(peers), max(peers)]
        if away:
            both = [sum(n for pair, n in away.items() if r in pair) for r in ranks]
            assert told["busiest"]["sends"] + told["busiest"]["receives"] == max(both)
            matrix = told["matrix"]
            cells = np.zeros((5, 5), int)
            cells[np.ix_(matrix["source_ranks"], matrix["destination_ranks"])] = matrix[told["unit"]]
            assert {pair: n for pair, n in np.ndenumerate(cells) if n} == pairs
    for rank in range(plan.world_size) if plan.rank is None else [plan.rank] if plan.rank < plan.world_size else []:
        told = describe(plan, rank, dtype)
        assert told["view"] == "one rank" and told["rank"] == rank
        assert told["sends"] == {b: n for (a, b), n in pairs.items() if a == rank != b}
        assert told["receives"] == {a: n for (a, b), n in pairs.items() if b == rank != a}
        assert told["stays_local"] == pairs.get((rank, rank), 0)
        assert told["motions"] == sum(n for pair, n in motions.items() if rank in pair)
        assert plan.rank is None or describe(plan, None, dtype) == told
        json.dumps(told)


def test_phases_are_told_of_halos_with_corners():
    cubes = FloorPlan(regions.split_evenly((16, 16, 16), 2), [0, 0, 0, 0, 1, 1, 1, 1])
    told = [
        (BlockPlan.halo(cubes, 3), "phases           3: a dimension at a time, where it goes within one array"),
        (BlockPlan.halo(cubes, 1), "phases           1: too few cells lie beyond edges and corners"),
        (
            BlockPlan.halo(FloorPlan(list(cubes)[:7], range(7)), 3),
            "phases           1: its blocks are no lattice, cut all the way through along each dimension",
        ),
        (BlockPlan.halo(cubes, 3, corners=False), None),
        (BlockPlan.copy_between(cubes, cubes), None),
    ]
    for plan, words in told:
        lines = [line for line in plan.explain(rank=0).splitlines() if line.startswith("phases")]
        assert lines == ([words] if words else [])


def test_words():
    blocks = FloorPlan.even((8, 6), 4)
    text = BlockPlan.halo(blocks, 1, corners=False).explain(dtype="float64")
    text, _, costs = text.partition("\n\npredicted on ")
    assert costs.startswith("    no machine in particular, for rank ") and "threads" in costs
    lines = text.splitlines()
    assert lines[:3] == [
        "a halo, width 1, no corners",
        "blocks           4 of 2 dimensions, 48 points, on 4 ranks, 1 each",
        "motions          8, 224 B",
    ]
    assert lines[4] == "bytes from rank (row) to rank (column); [what stays on its rank]"
    assert [line.split() for line in lines[6:8]] == [
        ["0", "·", "32", "24", "·", "56"],
        ["1", "32", "·", "·", "24", "56"],
    ]
    assert lines[-5:] == [
        "messages         8, 224 B in all",
        "stays local      0 B (0 %)",
        "largest message  32 B, rank 0 to rank 1",
        "neighbours       2 for every rank",
        "busiest          rank 0 sends 56 B and receives 56 B",
    ]
    assert not any(line != line.rstrip() for line in lines)
    points = BlockPlan.halo(blocks, 1, corners=False).explain()
    assert "points from rank (row)" in points and "8, 28 points in all" in points and " B" not in points


@pytest.mark.parametrize(
    "make, words",
    [
        (
            lambda b: BlockPlan.halo(b, (1, 2), 1, domain=(8, 6), periodic=(False, True)),
            "a halo, width (1, 2) below, 1 above, corners; periodic in dimension 1 of [0:8, 0:6]",
        ),
        (lambda b: BlockPlan.halo(b, 1).reverse(), "a halo, reversed, width 1, corners"),
        (lambda b: BlockPlan.copy_between(b, FloorPlan.even((8, 6), 2)), "a copy between floor plans"),
        (
            lambda b: BlockPlan.transpose(b, FloorPlan.even((6, 8), 2)),
            "a copy between floor plans; axes permuted to 1, 0",
        ),
        (lambda b: BlockPlan(b, b), "motions by hand"),
    ],
)
def test_what_kind_of_plan_it_is(make, words):
    plan = make(FloorPlan.even((8, 6), 4))
    assert plan.explain().splitlines()[0] == words
    plan.copy(Region((0, 0), (1, 1)), 0, Region((0, 0), (1, 1)), 0)
    by_hand = "" if words == "motions by hand" else "; 1 motion by hand"
    assert plan.explain().splitlines()[0] == words + by_hand
    assert ("from  " in plan.explain()) == (plan.source != plan.destination)


def test_many_ranks_and_none():
    blocks = FloorPlan.even((100, 100), 100)
    text = BlockPlan.halo(blocks, 1).explain(dtype="f4")
    assert "rank (row)" not in text and "neighbours       3 to 8 for a rank" in text
    peers = BlockPlan.broadcast_rows(blocks, 0, 50).explain(0)
    assert "to 9 ranks" in peers and ", …\n" in peers
    nothing = FloorPlan([], [])
    assert "messages         0, 0 points in all" in BlockPlan(nothing, nothing).explain()


def test_mistakes():
    plan = BlockPlan.halo(FloorPlan.even((8, 6), 4), 1)
    with pytest.raises(ls.ArgumentError, match=r"rank 4 takes no part; the ranks of this plan lie in \[0, 4\)"):
        plan.explain(4)
    with pytest.raises(ls.ArgumentError, match="the plan holds the motions of rank 1, not those of rank 2"):
        BlockPlan.halo(FloorPlan.even((8, 6), 4), 1, rank=1).explain(2)
    with pytest.raises(ls.DTypeError):
        plan.explain(dtype=object)
    with pytest.raises(ls.ArgumentTypeError, match="rank is 'x'"):
        plan.explain("x")
