"""Arguments of the wrong kind: errors name the argument, what was given and what is wanted."""

import inspect
import re

import longshore as ls
import numpy as np
import pytest
from longshore import ArgumentError, BlockPlan, FloorPlan, Layout, Region, SizeOverflowError
from longshore.errors import ArgumentTypeError

ROWS = Layout("(BLOCK, *) on 2", (6, 4))
PARTS = ls.scatter(np.zeros((6, 4)), ROWS)
BLOCKS = FloorPlan.even((6, 4), 2)
A_DOMAIN = "must be a Region, an integer, a sequence of integers or None"

MISTAKES = [
    (lambda: Layout(), "text is missing"),
    (lambda: Layout("(BLOCK, *) on 2"), "shape is missing; it must be an integer or a sequence of integers"),
    (lambda: Layout(ranks=4), "ranks is 4; it must be a sequence of integers, a RankMap or None"),
    (lambda: Layout("(BLOCK, *) on 2", (6, 4), rank=3), "Layout has no argument 'rank'; it has text, shape"),
    (lambda: Layout("(BLOCK, *) on 2", (6, "4")), r"shape\[1\] is '4'"),
    (lambda: ls.plan("(BLOCK, *) on 2", "(*, BLOCK) on 2", "f8"), r"source is a text, .* give Layout\('\(BLOCK"),
    (lambda: ls.plan(ROWS, 3, "f8"), "destination is 3; it must be a Layout"),
    (lambda: ls.gather(PARTS, "(BLOCK, *) on 2"), "layout is a text, which says no shape"),
    (lambda: ls.empty("(BLOCK, *) on 2", "f8"), "layout is a text, which says no shape"),
    (lambda: ls.XArray((6, 4), "f8"), r"blocks is \(6, 4\); it must be a FloorPlan"),
    (lambda: FloorPlan.even("x", 2), "domain is 'x'; it must be a Region, an integer or a sequence of integers"),
    (
        lambda: FloorPlan([(1, 2, 3)], [0]),
        r"regions\[0\] is \(1, 2, 3\); regions must be Regions, pairs \(lower, upper",
    ),
    (lambda: FloorPlan([], [], 1, 2), "FloorPlan takes 2 arguments, not 4: regions, owners"),
    (lambda: BlockPlan.halo(ROWS, 1), "blocks is Layout.*; it must be a FloorPlan"),
    (lambda: BlockPlan.halo(BLOCKS, 1, domain=(6, "x")), rf"domain\[1\] is 'x'; domain {A_DOMAIN}"),
    (lambda: BlockPlan.halo(BLOCKS, 1, domain="x"), f"domain is 'x'; it {A_DOMAIN}"),
    (lambda: Region((0, 0)), "upper is missing"),
    (lambda: ROWS.owner(), "index is missing"),
    (lambda: ROWS.owner("a"), "index is 'a'"),
]


@pytest.mark.parametrize("mistake, words", MISTAKES, ids=[words for _, words in MISTAKES])
def test_which_argument_it_is(mistake, words):
    with pytest.raises(ArgumentTypeError, match=words) as told:
        mistake()
    assert isinstance(told.value, (ArgumentError, TypeError)) and "incompatible function" not in str(told.value)


def test_an_empty_array_is_of_a_communicators_rank_or_of_another():
    with pytest.raises(ArgumentError, match="give comm= .*, or rank= .*, not both"):
        ls.empty(ROWS, "f8", comm=object(), rank=1)


def test_options_of_movers_are_shown_and_no_others_taken():
    _, _, *options = inspect.signature(ls.MotionPlan.bind).parameters
    shown = re.findall(r"(\w+): ", ls.BlockPlan.bind.__doc__.partition("\n")[0])
    assert set(shown) == {*options, "visit", "phases", "ghost", "destination_ghost", "source", "destination"}
    together = set(inspect.signature(ls.bind_together).parameters)
    assert set(options) - together == {"destination", "alpha", "beta", "conjugate", "reduce"}
    for bind in (ls.plan(ROWS, ROWS, "f8").bind, BlockPlan.halo(BLOCKS, 1).bind):
        with pytest.raises(ArgumentTypeError, match="bind has no option 'speed'; it has alpha, .*max_mem"):
            bind(PARTS, PARTS, speed=3)
    with pytest.raises(ArgumentTypeError, match="bind has no option 'alpha'; it has threads"):
        ls.bind_together(alpha=3)
    field = (ls.plan(ROWS, ROWS, "f8"), PARTS, [part.copy() for part in PARTS])
    ls.bind_together(field)()
    for options, error in (({"max_mem": 1}, ls.MemoryLimitError), ({"threads": -1}, ls.ArgumentError)):
        with pytest.raises(error):
            ls.bind_together(field, **options)
    for name in ("placement", "node", "aggregate", "packet_bytes", "preallocate", "exchange"):
        with pytest.raises(ls.ArgumentError, match=f"{name}= is for messages"):
            ls.bind_together(field, **{name: "auto"})
    for name in ("proxy", "checked"):
        with pytest.raises(ls.ArgumentError, match=name):
            ls.bind_together(field, **{name: "yes"})


def test_numbers_that_are_too_large():
    with pytest.raises(SizeOverflowError, match=r"upper\[1\] is 118.* does not fit in 64 bits"):
        Region((0, 0), (1, 2**70))


def test_a_shape_is_a_domain_and_one_flag_is_for_all_dimensions():
    domain = Region.of_shape((6, 4))
    assert FloorPlan.even((6, 4), 2) == FloorPlan.even(domain, 2)
    told = BlockPlan.halo(BLOCKS, 1, domain=domain, periodic=(True, True))
    assert BlockPlan.halo(BLOCKS, 1, domain=(6, 4), periodic=True).to_bytes() == told.to_bytes()
    assert FloorPlan.even(domain, 2, periodic=True) == FloorPlan.even(domain, 2, periodic=(True, True))
    for no_flags in (3, (True, 2)):
        with pytest.raises(ArgumentError, match=r"a flag is [23]; it must be True or False, one for each dimension"):
            BlockPlan.halo(BLOCKS, 1, domain=domain, periodic=no_flags)


def test_the_text_of_a_layout_where_the_shape_is_known():
    array = np.arange(24.0).reshape(6, 4)
    parts = ls.scatter(array, "(BLOCK, *) on 2")
    columns = ls.redistribute(parts, ROWS, "(*, CYCLIC) on 2")
    np.testing.assert_array_equal(columns[1], array[:, 1::2])
    turned = ls.plan(ROWS, "(BLOCK, *) on 4", "f8", axes=(1, 0))
    assert turned.destination == Layout("(BLOCK, *) on 4", (4, 6))
    assert ls.plan("(BLOCK, *) on 2", turned.destination, "f8", axes=(1, 0)).source == ROWS


def test_gather_advises_what_there_is():
    with pytest.raises(ArgumentError, match=r"gather\(local, layout, comm=comm\)"):
        ls.gather(PARTS[0], ROWS)
