"""Windows, sections and strips where all arrays are in this process, against NumPy; and what is found about strips."""

import json
import random
import threading
import warnings

import longshore as ls
import numpy as np
import pytest
from longshore.tune import strips as kept


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """Where the choices of this test are kept."""
    monkeypatch.setenv("LONGSHORE_PROFILE", str(tmp_path / "machine.json"))
    return tmp_path / "machine.strips.json"


ARRAYS = [
    np.arange(24.0).reshape(4, 6),
    np.arange(100.0, 160.0).reshape(3, 4, 5)[:, ::-1],
    np.arange(200.0, 230.0)[::3],
    np.asfortranarray(np.arange(300.0, 312.0).reshape(3, 4)),
    np.empty((0, 3)),
    np.array(7.0),
]


def random_slice(draw, extent):
    ends = [draw.choice([None, *range(-extent - 1, extent + 2)]) for _ in range(2)]
    return slice(*ends, draw.choice([None, 1, 2, 3, -1, -2]))


def test_sections_are_what_numpy_has():
    draw = random.Random(5)
    window = ls.Window(ARRAYS)
    for _ in range(500):
        k = draw.randrange(len(ARRAYS))
        keys = []
        for extent in ARRAYS[k].shape[: draw.randrange(ARRAYS[k].ndim + 1)]:
            keys.append(
                draw.randrange(-extent, extent) if extent and draw.random() < 0.3 else random_slice(draw, extent)
            )
        if draw.random() < 0.2:
            keys.append(...)
        if draw.random() < 0.2:
            keys.insert(0, None)
        expected, section = ARRAYS[k][tuple(keys)], window[k][tuple(keys)]
        if len(section.shape) > 1 and draw.random() < 0.5:  # a section of a section
            more = (random_slice(draw, section.shape[0]), ..., random_slice(draw, section.shape[-1]))
            expected, section = expected[more], section[more]
        got = section.get()
        assert section.shape == np.shape(got) == expected.shape
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(window[0][:, [5, 0, -1]].get(), ARRAYS[0][:, [5, 0, -1]])
    np.testing.assert_array_equal(window[1][1:, 2][[1, 0, 1]].get(), ARRAYS[1][1:, 2][[1, 0, 1]])
    np.testing.assert_array_equal(window[0][ARRAYS[0][:, 0] > 6, 2:4].get(), ARRAYS[0][ARRAYS[0][:, 0] > 6, 2:4])
    np.testing.assert_array_equal(window[0][:, range(5, 0, -2)].get(), ARRAYS[0][:, range(5, 0, -2)])
    np.testing.assert_array_equal(window[0][np.array(3), np.int8(-1)].get(), ARRAYS[0][3, -1])


def test_puts_are_what_numpy_assigns():
    draw = random.Random(6)
    for _ in range(200):
        mine, theirs = np.zeros((5, 7), "i4"), np.zeros((5, 7), "i4")
        window = ls.Window([mine])
        key = (random_slice(draw, 5), random_slice(draw, 7))
        shape = theirs[key].shape
        values = np.arange(1, 1 + np.prod(shape), dtype="i4").reshape(shape)
        theirs[key] = values
        if draw.random() < 0.5:
            window[0][key].put(values)
        else:
            handle = window[0][key].nbput(np.asfortranarray(values))
            assert handle.test() and handle.wait().shape == shape
        window.fence()
        np.testing.assert_array_equal(mine, theirs)
    window[0].put(3)
    assert (mine == 3).all()
    with pytest.raises(ls.ArgumentError, match="destination"):
        window[0][[1, 1]].put(0)


def test_what_is_under_way_at_a_fence_is_what_was_there_before_it():
    mine = np.arange(5)
    with ls.Window([mine]) as window:
        before, closed = window[0].nbget(), None
        window.fence()
        mine += 10
        assert before.wait().tolist() == [0, 1, 2, 3, 4]
        closed = window[0].nbget()
    mine += 10
    assert closed.wait().tolist() == [10, 11, 12, 13, 14]


def some_key(draw, shape):
    """Slices, integers, None and ..., and perhaps one list or mask."""
    keys, listed = [], draw.randrange(2 * len(shape))
    for d, extent in enumerate(shape[: draw.randrange(len(shape) + 1)]):
        if d == listed:
            keys.append(np.array([draw.randrange(-extent, extent) for _ in range(draw.randrange(6))], np.int64))
            if draw.random() < 0.3:
                keys[-1] = np.array([draw.random() < 0.5 for _ in range(extent)])
        else:
            keys.append(draw.randrange(-extent, extent) if draw.random() < 0.3 else random_slice(draw, extent))
    for extra in (None, ...):
        if draw.random() < 0.2:
            keys.insert(draw.randrange(len(keys) + 1) if extra is None else len(keys), extra)
    return tuple(keys)


@pytest.mark.parametrize(
    "text", ["(BLOCK, *) on 3", "(CYCLIC(2), CYCLIC(3)) on 2x2", "(*, BLOCK) on 5, order=F", "(CYCLIC, *) on 2, ld=14"]
)
def test_global_indices_of_a_layout(text):
    layout = ls.Layout(text, (7, 11))
    whole = np.arange(77, dtype="i2").reshape(7, 11)
    parts = ls.scatter(whole, layout)
    window = ls.Window(parts, layout=layout)
    for key in ((), 3, (slice(2, 6), slice(1, 10)), (..., -1), (slice(None), slice(4, 5)), (slice(5, 5),), (6, 10)):
        np.testing.assert_array_equal(window.whole[key].get(), whole[key])
    np.testing.assert_array_equal(window.whole[1:6][2:, 3].get(), whole[1:6][2:, 3])
    window.whole[2:5, 3:9].put(-1)
    whole[2:5, 3:9] = -1
    np.testing.assert_array_equal(ls.gather(parts, layout), whole)
    draw = random.Random(text)
    for _ in range(200):
        key = some_key(draw, whole.shape)
        section, expected = window.whole[key], whole[key]
        if section.shape and draw.random() < 0.3:  # a section of a section
            more = (random_slice(draw, section.shape[0]), ..., None)
            section, expected = section[more], expected[more]
        assert section.shape == expected.shape, key
        np.testing.assert_array_equal(section.get(), expected, str(key))
    window.whole[::-3, [7, 0, 4]].put(np.arange(9).reshape(3, 3))
    whole[::-3][:, [7, 0, 4]] = 0
    whole[np.ix_([6, 3, 0], [7, 0, 4])] = np.arange(9).reshape(3, 3)
    np.testing.assert_array_equal(ls.gather(parts, layout), whole)
    strips = [strip.data.copy() for strip in ls.strips(window.whole[6:0:-2, 1::3], "fixed(2)")]
    np.testing.assert_array_equal(np.concatenate(strips), whole[6:0:-2, 1::3])
    plan = ls.plan(layout, ls.Layout("(*, CYCLIC) on 3", (7, 11)), "i2")
    for rank in range(3):
        np.testing.assert_array_equal(window.incoming(plan, rank).get(), whole[:, rank::3])


def test_global_indices_of_blocks():
    blocks = ls.FloorPlan.even(ls.Region((2, 3), (12, 13)), 4)
    x = ls.XArray(blocks, "f8", ghost=(1, (0, 2)))
    whole = np.arange(100.0).reshape(10, 10)
    for _, grid in x.items():
        lower, upper = grid.block.lower, grid.block.upper
        grid.interior[...] = whole[lower[0] - 2 : upper[0] - 2, lower[1] - 3 : upper[1] - 3]
    window = ls.Window(x)
    for key in ((), 4, (slice(3, 8), slice(2, 9)), (0, 0)):
        np.testing.assert_array_equal(window.whole[key].get(), whole[key])
    draw = random.Random(9)
    for _ in range(200):
        key = some_key(draw, whole.shape)
        np.testing.assert_array_equal(window.whole[key].get(), whole[key], str(key))
    np.testing.assert_array_equal(window[3].get(), np.asarray(x[3]))
    gaps = ls.Window(ls.XArray(ls.FloorPlan([ls.Region(0, 3), ls.Region(5, 8)], [0, 0]), "f8"))
    assert gaps.whole[5:7].get().tolist() == [0, 0]
    assert gaps.whole[[0, 7, 6, 0]].shape == (4,) and gaps.whole[[0, 7, 6, 0]].get().tolist() == [0] * 4
    with pytest.raises(ls.ArgumentError, match="5 elements in the box .* 7 are asked for: they leave gaps"):
        gaps.whole[1:].get()


def filled(blocks, ghost):
    """An XArray whose elements are their places in the domain of the blocks."""
    x = ls.XArray(blocks, "i8", ghost=ghost)
    extents = blocks.bounding.shape
    for _, grid in x.items():
        at = np.ix_(*map(range, grid.block.lower, grid.block.upper))
        grid.interior[...] = sum(each * int(np.prod(extents[d + 1 :])) for d, each in enumerate(at))
    return x


def by_hand(blocks):
    """Regions of other shapes, regions and lists of points between the same blocks."""
    plan = ls.BlockPlan(blocks, blocks)
    plan.copy(ls.Region((0, 4), (2, 7)), 1, ls.Region((0, 0), (3, 2)), 0)
    plan.copy_points([[7, 6], [5, 4]], 3, [[1, 2], [0, 3]], 0)
    return plan


SOME_BLOCKS = ls.FloorPlan.even(ls.Region.of_shape((8, 8)), 4)
OTHER_BLOCKS = ls.FloorPlan.even(ls.Region.of_shape((8, 8)), 3).with_owners([2, 0, 2])
MESH = ls.FloorPlan.even(ls.Region.of_shape(12), 3)
BLOCK_PLANS = {
    "halo": ls.BlockPlan.halo(SOME_BLOCKS, 1),
    "periodic": ls.BlockPlan.halo(SOME_BLOCKS, 1, domain=ls.Region.of_shape((8, 8)), periodic=True),
    "between": ls.BlockPlan.copy_between(SOME_BLOCKS, OTHER_BLOCKS),
    "transposed": ls.BlockPlan.transpose(SOME_BLOCKS, OTHER_BLOCKS),
    "points": ls.BlockPlan.gather_points(MESH, [[4, 8, 5], [3, 11], []]),
    "by hand": by_hand(SOME_BLOCKS),
}


@pytest.mark.parametrize("name", BLOCK_PLANS)
def test_what_a_plan_between_blocks_brings_is_what_its_mover_brings(name):
    plan = BLOCK_PLANS[name]
    source = filled(plan.source, 1)
    window = ls.Window(source)
    brought = [window.incoming(plan, rank) for rank in range(plan.world_size)]
    got = [section.get() for section in brought]  # before the mover changes anything
    rows = [[strip.data.copy() for strip in ls.strips(each, "fixed(3, 2)")] for each in brought]
    target = source if plan.source == plan.destination else ls.XArray(plan.destination, "i8", ghost=1)
    plan.bind(*({id(each): each for each in (source, target)}.values()))()
    for rank, (section, values) in enumerate(zip(brought, got)):
        expected = [np.empty(0, "i8")]
        for motion in plan.receives(rank):
            grid, points = target[motion.destination], motion.destination_points
            if points is None:
                expected.append(grid.on(motion.destination_region).ravel())
            else:
                expected.append(np.array([grid.at[tuple(np.atleast_1d(point).tolist())] for point in points]))
        assert section.shape == (sum(map(len, expected)),)
        np.testing.assert_array_equal(values, np.concatenate(expected))
        np.testing.assert_array_equal(np.concatenate([values[:0], *rows[rank]]), values)


@pytest.mark.parametrize("name", ["between", "transposed"])
def test_blocks_that_a_plan_brings_whole_come_in_their_shape(name):
    plan, source = BLOCK_PLANS[name], filled(SOME_BLOCKS, (0, 2))
    window, target = ls.Window(source), ls.XArray(OTHER_BLOCKS, "i8")
    plan.bind(source, target)()
    for k, grid in target.items():
        section = window.incoming(plan, block=k)
        assert section.shape == grid.block.shape
        np.testing.assert_array_equal(section.get(), grid.interior)
        rows = [strip.data.copy() for strip in ls.strips(section, "fixed(2)")]
        np.testing.assert_array_equal(np.concatenate(rows), grid.interior)
        shuffled = ls.BlockPlan(SOME_BLOCKS, OTHER_BLOCKS)  # point by point, in an order of its own
        for motion in plan.receives(OTHER_BLOCKS.owner(k)):
            if motion.destination == k and motion.axes is None:
                for d in np.random.default_rng(k).permutation(motion.points).tolist():
                    to, from_ = motion.destination_region.point_at(d), motion.source_region.point_at(d)
                    shuffled.copy_points([to], k, [from_], motion.source)
        if name == "between":
            np.testing.assert_array_equal(window.incoming(shuffled, block=k).get(), grid.interior)


def test_blocks_that_a_plan_does_not_bring_whole_are_refused():
    window = ls.Window(filled(SOME_BLOCKS, 1))
    with pytest.raises(ls.ArgumentError, match="reaches beyond the block .* leave block= out"):
        window.incoming(BLOCK_PLANS["halo"], block=0).get()
    plan = by_hand(SOME_BLOCKS)
    with pytest.raises(ls.ArgumentError, match=r"element \(0, 7\) of the block .* not; leave block= out"):
        window.incoming(plan, block=1).get()
    plan.copy(ls.Region((0, 4), (4, 8)), 1, ls.Region((4, 0), (8, 4)), 2)
    with pytest.raises(ls.ArgumentError, match=r"element \(0, 4\) of the block .* more than once; leave block= out"):
        window.incoming(plan, block=1).get()
    beyond = ls.BlockPlan(SOME_BLOCKS, SOME_BLOCKS)
    beyond.copy(ls.Region((0, 4), (1, 5)), 1, ls.Region((5, 0), (6, 1)), 0)  # two rows beyond block 0
    with pytest.raises(ls.ArgumentError, match=r"source block 0, \[-1:5, -1:5\]; give it more ghost cells"):
        window.incoming(beyond, 1).get()
    other = ls.Window(ls.XArray(OTHER_BLOCKS, "i8"))
    with pytest.raises(ls.ArgumentError, match="from other blocks than this window's"):
        other.incoming(plan, 0)


@pytest.mark.parametrize(
    "schedule", ["small", "vectorized", "fixed(3, 2)", "variable(1, 0.5)", ls.model.StripSchedule.fixed(2)]
)
@pytest.mark.parametrize("k", range(5))
def test_strips_are_rows_in_their_order(schedule, k):
    section, at = ls.Window(ARRAYS)[k], 0
    for strip in ls.strips(section, schedule):
        assert strip.first == at
        np.testing.assert_array_equal(strip.data, ARRAYS[k][strip.first : strip.last])
        at = strip.last
    assert at == len(ARRAYS[k])


def test_rows_without_elements_are_gone_over(profile):
    window = ls.Window([np.empty((3, 0)), np.empty((3, 0, 4)), np.empty((0, 4))])
    for schedule in "small", "vectorized", "fixed(2)", "variable(1, 0.5)", "auto":
        for section in window[0], window[1], window[1][1:]:
            spans = [(strip.first, strip.last, strip.data.shape) for strip in ls.strips(section, schedule)]
            assert spans == [(0, len(section), section.shape)]
        assert list(ls.strips(window[2], schedule)) == []


def test_a_pattern_may_have_any_name(profile):
    window = ls.Window([np.arange(10.0)])
    for pattern in "", "sum, seen", 'Größe\n\t"':
        for _ in range(400):
            assert sum(float(strip.data.sum()) for strip in ls.strips(window[0], pattern=pattern)) == 45
    assert {each["pattern"] for each in kept.load(profile)} == {", seen", "sum, seen, seen", 'Größe\n\t", seen'}


def test_a_search_ends_and_is_kept(profile):
    window = ls.Window([np.arange(50_000.0)])
    for _loops in range(300):
        assert sum(float(strip.data.sum()) for strip in ls.strips(window[0], pattern="sum")) == 1_249_975_000
        if profile.exists():
            break
    assert 5 < _loops < 280
    (choice,) = kept.load(profile)
    assert choice["pattern"] == "sum, seen" and choice["rows"] == 32_768 and choice["row_bytes"] == 8
    kept._tuner.cache_clear()  # as another program would begin
    tuner = kept.tuner()
    assert tuner.settled("sum, seen", 40_000, 8) and tuner.schedule("sum, seen", 40_000, 8) == choice["schedule"]
    assert not tuner.settled("sum, seen", 4_000, 8)
    # What others have written meanwhile stays.
    told = json.loads(profile.read_bytes())
    told["choices"].append({**told["choices"][0], "pattern": "theirs"})
    profile.write_text(json.dumps(told))
    tuner.keep()
    assert {each["pattern"] for each in kept.load(profile)} == {"sum, seen", "theirs"}


def test_without_a_pattern_the_place_of_the_call_counts(profile):
    window = ls.Window([np.arange(5000.0)])
    for _ in range(400):
        for _strip in ls.strips(window[0]):
            pass
    assert [each["pattern"].rpartition("/")[2].split(":")[0] for each in kept.load(profile)] == ["test_windows.py"]


def stored(**changes):
    """A file of one choice, which is sound but for the changes."""
    choice = {"pattern": "p", "rows": 8, "row_bytes": 8, "schedule": "small", "seconds": 1, "vectorized_seconds": 1}
    return json.dumps({"format": "longshore strip choices", "version": 1, "choices": [choice | changes]})


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"format": "something else", "version": 1}',
        '{"format": "longshore strip choices", "version": 1, "choices": 7}',
        '{"format": "longshore strip choices", "version": 1, "choices": [{"pattern": "p"}]}',
        stored(rows=float("inf")),
        stored(rows=2**70),
        stored(rows=-1),
        stored(row_bytes=0),
        stored(schedule="fixed(0)"),
        stored(seconds=float("nan")),
        stored(pattern="\ud800"),
        "[" * 100_000,
    ],
)
def test_a_file_that_holds_something_else_is_a_warning(profile, content):
    profile.write_text(content)
    with pytest.warns(UserWarning, match="not used"):
        assert sum(strip.data.sum() for strip in ls.strips(ls.Window([np.ones(10)])[0])) == 10
    if content:
        with pytest.raises(ls.ArgumentError, match="no choices of strips"):
            kept.tuner().keep()
    assert profile.read_text() == content


def test_choices_that_cannot_be_kept_are_a_warning(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LONGSHORE_PROFILE", str(tmp_path / "file" / "machine.json"))
    window = ls.Window([np.ones(3000)])
    with pytest.warns(UserWarning, match="not kept"):
        for _ in range(400):
            assert sum(strip.data.sum() for strip in ls.strips(window[0], pattern="p")) == 3000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(strip.data.sum() for strip in ls.strips(window[0], pattern="p")) == 3000


def test_mistakes():
    window = ls.Window([np.arange(4.0), np.arange(6.0)])
    twice = ls.Layout("(BLOCK, *) on 2xreplicated(2)", (4, 2))
    gathered = ls.plan(twice, ls.Layout("(*, *) on 1", (4, 2)), "f8")
    copies = ls.Window([np.ones((2, 2)) for _ in range(4)], layout=twice)
    assert (copies.whole.get() == 1).all()
    halves = ls.FloorPlan.even(4, 2)
    blocks, to_blocks = ls.Window(ls.XArray(halves, "f8")), ls.BlockPlan.copy_between(halves, halves)
    for bad, kind, words in [
        (lambda: ls.Window(np.arange(3)), ls.ArgumentError, "one ndarray"),
        (lambda: ls.Window([np.arange(3), np.arange(3.0)]), ls.DTypeError, "float64, int64"),
        (lambda: ls.Window([]), ls.ArgumentError, "every array"),
        (lambda: ls.Window([np.array([None])]), ls.DTypeError, "object"),
        (lambda: ls.Window([np.arange(3)], node="messages"), ls.ArgumentError, "needs comm="),
        (lambda: ls.Window([np.arange(3)], layout="x"), ls.ArgumentTypeError, "Layout"),
        (lambda: ls.Window([np.ones(3), np.ones(1)], layout=ls.Layout("(BLOCK) on 2", 5)), ls.ShapeError, "rank 1"),
        (
            lambda: ls.Window([np.ones((2, 4))[:, ::2], np.ones((2, 2))], layout=ls.Layout("(BLOCK, *) on 2", (4, 2))),
            ls.LocalArrayError,
            "rank 0: .* stride of 32",
        ),
        (lambda: ls.Window(ls.XArray(ls.FloorPlan.even(4, 2), "f8", rank=1)), ls.ArgumentError, "0, 1, ..."),
        (lambda: window.whole, ls.ArgumentError, "parts of nothing"),
        (lambda: window.incoming(3), ls.ArgumentTypeError, "MotionPlan"),
        (lambda: copies.whole[[0, 1], [0, 1]], ls.ArgumentError, "can have a list of indices, not several"),
        (lambda: copies.whole[..., ...], ls.ArgumentError, "one ..., not several"),
        (lambda: copies.whole[0, 0, 0], ls.ArgumentError, "3 indices for a section of 2 dimensions"),
        (lambda: copies.whole[:, 2], ls.ArgumentError, "index 2 is outside dimension 1, which has 2"),
        (lambda: copies.whole[[-5]], ls.ArgumentError, "index -5 is outside dimension 0, which has 4"),
        (lambda: copies.whole[::0], ls.ArgumentError, "zero, in dimension 0"),
        (lambda: copies.whole[:, [True]], ls.ArgumentError, "a mask of shape (1,) for dimension 1, which has 2"),
        (lambda: copies.whole[::2].put(1), ls.ArgumentError, "2 copies of each element"),
        (lambda: copies.incoming(gathered, 0, block=1), ls.ArgumentError, "plans between blocks"),
        (lambda: copies.incoming(to_blocks, 0), ls.ArgumentError, "XArray over plan.source"),
        (lambda: blocks.incoming(gathered, 0), ls.ArgumentError, "the plan is from"),
        (lambda: blocks.incoming(to_blocks), ls.ArgumentError, "give rank="),
        (lambda: blocks.incoming(to_blocks, 0, block=0), ls.ArgumentError, "give one of them"),
        (lambda: blocks.incoming(to_blocks, block=2), ls.ArgumentError, "no block 2 in a plan to 2 blocks"),
        (lambda: blocks.incoming(to_blocks, 0)[0], ls.ArgumentError, "no parts of its own"),
        (lambda: window[2], ls.ArgumentError, "no array 2"),
        (lambda: window[-1], ls.ArgumentError, "-1"),
        (lambda: window["a"], ls.ArgumentTypeError, "integer"),
        (lambda: window[0][4], ls.ArgumentError, "out of bounds"),
        (lambda: window[0][0, 0], ls.ArgumentError, "2 indices for a section of 1 dimensions"),
        (lambda: window[0][[4]], ls.ArgumentError, "index 4 is outside dimension 0, which has 4"),
        (lambda: window[0][[0.5]], ls.ArgumentError, "of integers"),
        (lambda: window[0][True], ls.ArgumentTypeError, "True is no index"),
        (lambda: window[0][np.array(True)], ls.ArgumentTypeError, "no index"),
        (lambda: window[0][np.bool_(False)], ls.ArgumentTypeError, "no index"),
        (lambda: window[0][0.0], ls.ArgumentTypeError, "no index"),
        (lambda: window[0][[[0], [1, 2]]], ls.ArgumentTypeError, "no index"),
        (lambda: copies.whole.put(1), ls.ArgumentError, "2 copies of each element"),
        (lambda: copies.incoming(gathered, 0).put(1), ls.ArgumentError, "2 copies"),
        (lambda: window[0][[True]], ls.ArgumentError, "a mask of shape"),
        (lambda: window[0].get(np.empty(5)), ls.ShapeError, "(5,)"),
        (lambda: window[0].get(np.empty(4, "f4")), ls.DTypeError, "float32"),
        (lambda: window[0].get(np.empty(8)[::2]), ls.LocalArrayError, "C-contiguous"),
        (lambda: window[0].put([1, 2]), ls.ShapeError, "do not fill"),
        (lambda: window[0].put("x"), ls.DTypeError, "'x' cannot be elements of float64"),
        (lambda: window[0].put([[1], [1, 2]]), ls.DTypeError, "cannot be elements of float64"),
        (lambda: window[0].put(1j), ls.DTypeError, "1j cannot be"),
        (lambda: ls.Window([np.ones(4, "u1")])[0].put(300), ls.DTypeError, "300 cannot be elements of uint8"),
        (lambda: ls.strips(window), ls.ArgumentTypeError, "a Section"),
        (lambda: ls.strips(window[0][0], "small"), ls.ArgumentError, "get"),
        (lambda: ls.strips(window[0], 7), ls.ArgumentTypeError, "StripSchedule"),
        (lambda: ls.strips(window[0], "fixed(0)"), ls.ArgumentError, "fixed"),
        (lambda: ls.strips(window[0], pattern=7), ls.ArgumentTypeError, "text"),
    ]:
        with pytest.raises(kind, match=words.replace("(", r"\(").replace(")", r"\)")):
            bad()
    fixed = np.arange(3)
    fixed.flags.writeable = False
    with pytest.raises(ls.LocalArrayError, match="read-only"):
        ls.Window([fixed])[0].put(1)
    window.close()
    window.close()
    for use in (window[0].get, lambda: window[0].put(1), lambda: list(ls.strips(window[0], "small"))):
        with pytest.raises(ls.ArgumentError, match="closed"):
            use()
    assert "closed" in repr(window)


def test_threads_share_a_window():
    arrays = [np.arange(2000.0) + 10_000 * k for k in range(4)]
    window, failures = ls.Window(arrays), []

    def work(k):
        try:
            for turn in range(50):
                other = arrays[(k + turn) % 4]
                np.testing.assert_array_equal(window[(k + turn) % 4][turn:].get(), other[turn:])
                total = sum(strip.data.sum() for strip in ls.strips(window[k], "fixed(100, 2)"))
                assert total == arrays[k].sum()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
