"""`relabel`: against all permutations of few ranks, counted motion by motion on the plan that each gives."""

import itertools
import json
import subprocess
import sys

import longshore as ls
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from longshore import tune
from longshore._relabel import worthwhile
from longshore.explain import describe, render
from strategies import redistributions

COARSE = tune.coarse_profile()


def on(layout, ranks):
    return ls.Layout(str(layout), layout.shape, ranks=ranks)


def messages(plan):
    """(source, destination, bytes) of all motions."""
    for rank in plan.source.ranks:
        for motion in plan.sends(rank):
            yield motion.source, motion.destination, motion.elements * plan.itemsize


def between(plan, each):
    """Bytes between nodes of so many ranks."""
    return sum(n for a, b, n in messages(plan) if a // each != b // each)


def nanoseconds(pair, n):
    """Of a message, in the fastest way that was measured."""
    told = []
    for one in COARSE.facts["exchanges"]:
        if one["pair"] == pair and one["way"] != "collective":
            sizes, seconds = ([sample[key] for sample in one["samples"]] for key in ("bytes", "seconds"))
            told.append(np.interp(n, sizes, seconds) if n <= sizes[-1] else seconds[-1] * n / sizes[-1])
    return round(1e9 * min(told))


def cost(plan, each):
    """What counts: bytes, or with so many ranks a node the time of all messages."""
    if each is None:
        return between(plan, 1)
    return sum(
        nanoseconds("same node" if a // each == b // each else "other node", n) for a, b, n in messages(plan) if a != b
    )


def fewest_changes(source, destination, dtype, axes, among, each):
    """The least cost of all choices of ranks, and how few processes have to change theirs for it."""
    found = []
    for ranks in itertools.permutations(among, destination.rank_count):
        changes = sum(a != b for a, b in zip(ranks, destination.ranks))
        found.append((cost(ls.plan(source, on(destination, ranks), dtype, axes), each), changes))
    return min(found)


def check(source, destination, axes, among=None, each=None, dtype="i4"):
    profile = None if each is None else COARSE
    told = ls.relabel(source, destination, dtype, axes, ranks=among, ranks_per_node=each, profile=profile)
    before, after = (ls.plan(source, to, dtype, axes) for to in (destination, told.layout))
    among = destination.ranks if among is None else among
    assert set(told.layout.ranks) <= set(among) and on(told.layout, destination.ranks) == destination
    changes = sum(a != b for a, b in zip(told.layout.ranks, destination.ranks))
    least, fewest = fewest_changes(source, destination, dtype, axes, among, each)
    if each is None:
        assert (cost(after, each), changes) == (least, fewest)
    else:  # each message is rounded on its own
        assert cost(after, each) <= least + 2 * len(list(messages(after)))
    assert (told.bytes_before, told.bytes_after) == (between(before, 1), between(after, 1))
    nodes = (0, 0) if each is None else (between(before, each), between(after, each))
    assert (told.node_bytes_before, told.node_bytes_after) == nodes
    return told


@settings(deadline=None)
@given(redistributions(max_ndim=3), st.sampled_from([None, None, 1, 2, 3]))
def test_no_permutation_is_better(given_, each):
    source, destination, axes = given_
    assume(destination.rank_count <= 4)
    check(source, destination, axes, each=each)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(redistributions(max_ndim=3), st.sampled_from([None, None, 1, 2, 3]))
def test_no_permutation_of_six_ranks_is_better(given_, each):
    source, destination, axes = given_
    assume(destination.rank_count <= 6)
    check(source, destination, axes, each=each)


@settings(deadline=None)
@given(redistributions(max_ndim=2), st.permutations(range(6)), st.sampled_from([None, 2]))
def test_no_choice_of_ranks_is_better(given_, among, each):
    source, destination, axes = given_
    assume(destination.rank_count <= 3)
    check(source, destination, axes, among=among[: 1 + max(3, len(among) // 2)], each=each)


CASES = [
    ("(BLOCK, *) on 6", "(CYCLIC, *) on 6"),
    ("(BLOCK, BLOCK) on 2x3", "(BLOCK, BLOCK) on 3x2, rank_order=F"),
    ("(BLOCK, *) on 2", "(BLOCK, *) on 6, source=3"),  # more ranks than the source has
    ("(BLOCK, *) on 6", "(*, BLOCK) on 2"),
    ("(BLOCK, *) on 3, ranks=4:7", "(BLOCK, *) on 3"),  # that take no part
    ("(BLOCK, *) on REPLICATED(2)x3", "(BLOCK, *) on 6, source=4"),
    ("(BLOCK, *) on 3", "(CYCLIC, *) on 2xREPLICATED(3)"),
    ("(GEN_BLOCK(0, 12, 0), *) on 3", "(*, GEN_BLOCK(0, 0, 8)) on 3"),
    ("(BLOCK, *) on 6, ranks=[5,3,1,0,2,4]", "(BLOCK, *) on 6"),
    ("(*, *) on 1", "(*, *) on 1, ranks=3:4"),
]


@pytest.mark.parametrize("source, destination", CASES)
@pytest.mark.parametrize("each", [None, 2])
def test_six_ranks(source, destination, each):
    check(ls.Layout(source, (12, 8)), ls.Layout(destination, (12, 8)), None, each=each)


def test_arrays_without_elements():
    source, destination = ls.Layout("(BLOCK, *) on 3", (0, 8)), ls.Layout("(CYCLIC, *) on 3, ranks=[2,0,1]", (0, 8))
    told = check(source, destination, None)
    assert told.layout == destination and told.bytes_before == told.bytes_after == 0


def test_names_are_kept_where_nothing_is_saved():
    rows, columns = ls.Layout("(BLOCK, *) on 4", (8, 8)), ls.Layout("(*, BLOCK) on 4", (8, 8))
    told = ls.relabel(rows, columns, "f8")
    assert told.layout is not rows and told.layout == columns and told.bytes_after == told.bytes_before
    # Of four that could change two save something.
    swapped = ls.Layout("(GEN_BLOCK(2, 2, 2, 2), *) on 4, ranks=[1,0,2,3]", (8, 8))
    assert ls.relabel(rows, swapped, "f8").layout.ranks == (0, 1, 2, 3)
    other = ls.Layout("(*, BLOCK) on 5, ranks=[4,1,2,3,0]", (8, 8))  # the last process has nothing
    assert ls.relabel(rows, other, "f8").layout.ranks == (0, 1, 2, 3, 4)


def test_numbers_beyond_exact_floats():
    n = 2**60 // 8
    source, destination = (ls.Layout(f"(BLOCK) on 4, source={k}", (n,)) for k in (0, 3))
    told = ls.relabel(source, destination, "f8")
    assert told.layout.ranks == (1, 2, 3, 0) and told.bytes_before == 2**60 and told.bytes_after == 0


def test_a_thousand_ranks():
    shape = (2048, 2048)
    source = ls.Layout("(BLOCK, BLOCK) on 32x32", shape)
    turned = ls.relabel(source, ls.Layout("(BLOCK, BLOCK) on 32x32, source=5x7", shape), "f8")
    assert turned.bytes_before == 8 * 2048**2 and turned.bytes_after == 0
    nodes = ls.relabel(source, ls.Layout("(BLOCK, BLOCK) on 64x16", shape), "f8", ranks_per_node=32, profile=COARSE)
    assert nodes.bytes_after <= nodes.bytes_before and nodes.node_bytes_after == 0
    dense = ls.relabel(ls.Layout("(BLOCK, *) on 1024", shape), ls.Layout("(*, BLOCK) on 1024", shape), "f8")
    assert dense.bytes_after == dense.bytes_before == 8 * 2048**2 * 1023 // 1024


def test_mistakes(monkeypatch):
    four = ls.Layout("(BLOCK) on 4", (8,))
    for wrong, error in (
        ({"ranks": [0, 1, 2]}, "ranks has 3 of them, the destination 4 processes"),
        ({"ranks": [0, 1, 2, -1]}, "rank is -1"),
        ({"ranks": [0, 1, 1, 2, 3]}, "rank 1 twice"),
        ({"ranks": "0123"}, "ranks"),
        ({"ranks": range(20_000)}, "20,000 ranks"),
        ({"ranks_per_node": -1}, "ranks_per_node is -1"),
        ({"ranks_per_node": 2.5}, "ranks_per_node"),
        ({"profile": "mine"}, "profile must be a tune.MachineProfile"),
    ):
        with pytest.raises(ls.LongshoreError, match=error):
            ls.relabel(four, four, "f8", **wrong)
    alone = tune.MachineProfile({**COARSE.facts, "exchanges": []})
    with pytest.raises(ls.ArgumentError, match="same node"):
        ls.relabel(four, four, "f8", profile=alone)
    with pytest.raises(ls.ShapeError):
        ls.relabel(four, ls.Layout("(BLOCK) on 4", (9,)), "f8")
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ls.NotInstalledError, match=r"pip install longshore\[relabel\]"):
        ls.relabel(four, four, "f8")


ROWS, TURNED = "(BLOCK, *) on 4", "(BLOCK, *) on 4, source=1"


def test_explain_says_what_would_be_saved(monkeypatch):
    made = ls.plan(ls.Layout(ROWS, (100, 100)), ls.Layout(TURNED, (100, 100)), "f8")
    assert describe(made)["relabelling"] == {"message_bytes": 0, "ranks": [3, 0, 1, 2]}
    assert "save 78.1 KiB of messages: ranks=[3,0,1,2]" in render(made)
    for nothing in (describe(made, rank=1), describe(ls.plan(made.source, made.source, "f8"))):
        assert nothing["relabelling"] is None
    many = ls.plan(ls.Layout("(BLOCK) on 65", (650,)), ls.Layout("(BLOCK) on 65, source=1", (650,)), "f8")
    assert describe(many)["relabelling"] is None and worthwhile(many).bytes_after == 0
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert "pip install longshore[relabel]" in render(made)


def longshore(*words, before="pass"):
    code = f"import sys; {before}; from longshore.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)


def test_command_line():
    words = ["explain", "--shape", "100x100", "--from", ROWS, "--to", TURNED]
    told = longshore(*words, "--relabel", "--json")
    assert told.returncode == 0, told.stderr
    facts = json.loads(told.stdout)
    assert facts["message_bytes"] == 0 and facts["relabelling"] is None
    assert facts["destination"]["layout"].endswith("ranks=[3,0,1,2]")
    missing = longshore(*words, "--relabel", before="sys.modules['scipy.optimize'] = None")
    assert missing.returncode == 5 and "pip install longshore[relabel]" in missing.stderr
