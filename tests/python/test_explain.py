"""What `explain` says about plans: the facts against a dense count, the words, the drawings."""

import json
import math
import time

import longshore as ls
import numpy as np
import pytest
from dense_layout import DenseLayout, selector
from longshore.explain import bytes_of, describe, pattern_words, render


def plan(shape, source, destination, axes=None, dtype="float64"):
    permuted = shape if axes is None else [shape[a] for a in axes]
    return ls.plan(ls.Layout(source, shape), ls.Layout(destination, permuted), dtype, axes)


def owners(text, shape):
    """The rank that holds each element, in the first replica."""
    dense = DenseLayout.parse(text, shape)
    array = np.full(shape, -1)
    zeros = (0,) * len(shape)
    for p in reversed(range(dense.processes)):
        array[selector(dense.owned(p, zeros, shape), zeros)] = dense.rank_of_process(p)
    return array


PLANS = [
    ((16, 12), "(BLOCK, *) on 4", "(CYCLIC(3), CYCLIC(2)) on 2x2", None),
    ((9, 5, 4), "(BLOCK, *, CYCLIC) on 2x3", "(*, BLOCK, *) on 7", (2, 0, 1)),
    ((10,), "(GEN_BLOCK(1, 0, 9)) on 3", "(CYCLIC) on 12", None),
    ((10, 3), "(BLOCK, *) on 2, ranks=3:5", "(*, CYCLIC) on 3, ranks=[4,9,0]", None),
]


@pytest.mark.parametrize("shape, source, destination, axes", PLANS)
def test_facts(shape, source, destination, axes):
    told = describe(plan(shape, source, destination, axes))
    permuted = tuple(shape if axes is None else [shape[a] for a in axes])
    pairs = np.stack(
        [owners(source, shape).transpose(axes or range(len(shape))).ravel(), owners(destination, permuted).ravel()]
    )
    (kinds, counts) = np.unique(pairs, axis=1, return_counts=True)
    away = kinds[0] != kinds[1]
    assert told["view"] == "all"
    assert told["messages"] == away.sum()
    assert told["message_bytes"] == 8 * counts[away].sum()
    assert told["local_bytes"] == 8 * counts[~away].sum()
    assert told["largest_message"]["bytes"] == 8 * counts[away].max()
    matrix = told["matrix"]
    for (r, c), n in zip(kinds.T, counts):
        assert matrix["bytes"][matrix["source_ranks"].index(r)][matrix["destination_ranks"].index(c)] == 8 * n
    assert np.sum(matrix["bytes"]) == told["array_bytes"]
    assert sum(group["bytes"] for group in told["access"]) == told["array_bytes"]
    json.dumps(told)


def test_one_rank_agrees_with_all():
    made = plan((16, 12), "(BLOCK, *) on 4", "(CYCLIC(3), CYCLIC(2)) on 2x2")
    all_, one = describe(made), describe(made, rank=2)
    row = all_["matrix"]["bytes"][2]
    assert one["view"] == "one rank" and one["bytes_sent"] == sum(row) - row[2] and one["local_bytes"] == row[2]
    assert one["messages_sent"] == sum(n > 0 for n in row) - 1
    assert one["bytes_received"] == sum(line[2] for line in all_["matrix"]["bytes"]) - row[2]
    assert "rank 2 alone" in render(made, rank=2) == made.explain(rank=2)
    with pytest.raises(ls.ArgumentError):
        describe(made, rank=4)


@pytest.mark.parametrize(
    "asked, said",
    [
        ({"work": math.nan}, "work is nan; it must be finite and not negative"),
        ({"work": math.inf}, "work is inf; it must be finite"),
        ({"work": -1e-12}, "work is -1e-12; it must be finite and not negative"),
        ({"work": 10**400}, "work is 1000"),
        ({"work": "1"}, "work is '1'; it must be a number"),
        ({"ranks_per_node": -1}, "ranks_per_node is -1; it must be at least 0"),
        ({"ranks_per_node": 2.5}, "ranks_per_node is 2.5; it must be an integer"),
        ({"rank": "x"}, "rank is 'x'; it must be an integer"),
        ({"rank": 1.5}, "rank is 1.5; it must be an integer"),
    ],
)
@pytest.mark.parametrize("n", [64, 2**20])  # of which the larger is told by bounds, without costs
def test_what_nobody_can_compute_with_is_refused(asked, said, n):
    made = plan((n, n), f"(BLOCK, *) on {n}", f"(*, BLOCK) on {n}")
    for ask in (describe, render):
        with pytest.raises(ls.ArgumentError, match=said):
            ask(made, **asked)


def test_large_plans_are_not_listed():
    n = 2**20
    told = describe(plan((n, n), "(CYCLIC(64), CYCLIC(64)) on 1024x1024", "(BLOCK, BLOCK) on 1024x1024"))
    assert told["view"] == "one rank" and told["messages_sent"] == 255 and told["bytes_sent"] == 255 * 32768
    told = describe(plan((n, n), "(BLOCK, *) on 1048576", "(*, BLOCK) on 1048576"))
    assert told["view"] == "bounds" and told["messages_sent"] == n and told["bytes_sent"] == 8 * n
    huge = 2**62
    for layouts in (("(BLOCK) on 8", "(CYCLIC(1000)) on 8"), ("(CYCLIC) on 8", "(BLOCK) on 8")):
        told = describe(plan((huge,), *layouts, dtype="u1"))
        assert told["view"] == "all" and told["message_bytes"] + told["local_bytes"] == huge


def test_blocks_that_have_no_common_divisor_are_not_listed():
    begin, size = time.process_time(), 10**13
    told = describe(plan((size,), "(CYCLIC(1000003)) on 64", "(CYCLIC(999983)) on 63", dtype="u1"))
    assert told["message_bytes"] + told["local_bytes"] == size
    assert all("mostly runs of" in one["source_words"] for one in told["access"])
    rank = ls.model.predict(plan((size,), "(CYCLIC(1000003)) on 64", "(CYCLIC(999983)) on 63", dtype="u1"))
    assert rank.best.seconds > 1
    assert time.process_time() - begin < 20  # it would be minutes, and gigabytes


def test_replicas_count():
    told = describe(plan((8, 8), "(BLOCK, *) on 2", "(BLOCK, *) on 2xREPLICATED(3)"))
    assert told["moved_bytes"] == 3 * told["array_bytes"] == told["message_bytes"] + told["local_bytes"]


def test_drawing():
    text = render(plan((8192, 8192), "(BLOCK, *) on 4", "(CYCLIC(64), CYCLIC(64)) on 2x2"))
    assert text == plan((8192, 8192), "(BLOCK, *) on 4", "(CYCLIC(64), CYCLIC(64)) on 2x2").explain()
    lines = text.splitlines()
    assert lines[0] == "array 8,192 x 8,192 of float64, 512 MiB"
    assert lines[2].split("   ")[0] == "from  (BLOCK, *) on 4"
    assert " ".join(lines[4].split()) == "0 0 0 0 0 0 0 0 0 0 0 1 0 1 0 1 0 1 …"
    assert " ".join(lines[6].split()) == "2048 1 1 1 1 1 1 1 1 128 0 1 0 1 0 1 0 1 …"
    assert " ".join(lines[11].split()) == "3 3 3 3 3 3 3 3 448 2 3 2 3 2 3 2 3 …"
    assert all(len(line) <= 100 for line in lines) and not any(line != line.rstrip() for line in lines)


@pytest.mark.parametrize("width", [40, 80, 100, 200])
@pytest.mark.parametrize("colour", [False, True])
def test_every_width(width, colour):
    for case in [
        *PLANS,
        ((3, 0), "(BLOCK, *) on 2", "(*, *) on 1", None),
        ((1,), "(BLOCK) on 3", "(*) on 1", None),
        ((2,) * 8, f"({'BLOCK, ' * 7}*) on 2x2x2x2x2x2x2", f"({'*, ' * 7}CYCLIC) on 2", None),
        ((100, 100), "(BLOCK, *) on 40", "(*, BLOCK) on 50", None),
    ]:
        text = render(plan(*case), width=width, colour=colour)
        assert ("\x1b[" in text) == colour
        assert "messages" in text and "extra memory" in text


def test_elided_matrix_keeps_its_totals():
    text = render(plan((100, 100), "(BLOCK, *) on 40", "(*, BLOCK) on 50"))
    assert "…" in text and text.splitlines()[-1] and "78.1" in text  # KiB in all


def test_words():
    def words(block, loops, regular=True):
        return pattern_words({"block_bytes": block, "loops": loops, "regular": regular}, 8)

    assert words(1 << 20, []) == "contiguous, 1 MiB"
    assert words(8, [(64, 32)]) == "single elements strided by 4, 64 times"
    assert words(512, [(64, 1024)]) == "runs of 512 B, one every 1 KiB, 64 times"
    assert (
        words(8, [(2, 16), (3, 4096)]) == "single elements strided by 2, 2 times; that every 4 KiB, 3 times (2 levels)"
    )
    assert words(512, [(64, 1024)], False).startswith("mostly")
    assert [bytes_of(n) for n in (0, 17, 1024, 1536, 2**29, 2**63)] == [
        "0 B",
        "17 B",
        "1 KiB",
        "1.5 KiB",
        "512 MiB",
        "8,388,608 TiB",
    ]
