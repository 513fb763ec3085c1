"""Plans carried out by thousands of ranks that take turns, against the threads engine."""

import os

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore import BlockPlan, FloorPlan, Region, XArray, finegrain, regions

needs_engine = pytest.mark.skipif(not finegrain.available(), reason="this build has no Boost.Context")


def test_ci_has_the_engine():
    assert finegrain.available() or os.environ.get("CI") != "true"


def filled(blocks, ghost, seed, dtype="float64"):
    array = XArray(blocks, dtype, ghost=ghost)
    random = np.random.default_rng(seed)
    for grid in array:
        grid[...] = random.integers(0, 100, grid.shape)
    return array


def assert_equal(a, b):
    for one, other in zip(a, b):
        np.testing.assert_array_equal(one, other)


@needs_engine
@settings(deadline=None, max_examples=30)
@given(
    st.integers(1, 12),
    st.integers(0, 2),
    st.integers(0, 2**64 - 1),
    st.sampled_from(["float64", "int16", "complex128"]),
)
def test_halos_are_those_of_threads(ranks, width, seed, dtype):
    domain = Region.of_shape((9, 7, 8))
    blocks = FloorPlan.balanced(regions.split_to_size(domain, 4), ranks)
    plan = BlockPlan.halo(blocks, width, domain=domain, periodic=(True, False, True))
    array, expected = (filled(blocks, width, seed, dtype) for _ in range(2))
    plan.bind(expected)()
    told = finegrain.move(plan, array, seed=seed)
    assert_equal(array, expected)
    assert told["ranks"] == plan.source.world_size
    assert told["bytes"] == sum(points for *_, points in plan.volumes()) * array.dtype.itemsize


@needs_engine
@pytest.mark.parametrize("reduce", [None, "add", "max"])
@pytest.mark.parametrize("checked", [False, True])
def test_between_floor_plans_and_back(reduce, checked):
    shape = (24, 20)
    rows, tiles = (
        FloorPlan.even(Region.of_shape(shape), 6),
        FloorPlan.of_layout(ls.Layout("(CYCLIC(3), BLOCK) on 2x4", shape)),
    )
    plan = BlockPlan.copy_between(rows, tiles)
    source, destination, expected = filled(rows, 1, 1), filled(tiles, 0, 2), filled(tiles, 0, 2)
    plan.bind(source, expected, reduce=reduce)()
    told = finegrain.move(plan, source, destination, seed=3, reduce=reduce, checked=checked)
    assert_equal(destination, expected)
    assert told["ranks"] == told["stacks"] == 8
    assert told["switches"] > 8


@needs_engine
def test_ten_thousand_ranks():
    domain = Region.of_shape((400, 100))
    blocks = FloorPlan.even(domain, 10000)
    plan = BlockPlan.halo(blocks, 1, domain=domain, periodic=(True, True))
    array, expected = filled(blocks, 1, 5), filled(blocks, 1, 5)
    plan.bind(expected)()
    told = finegrain.move(plan, array)
    assert_equal(array, expected)
    assert told["ranks"] == told["stacks"] == 10000
    assert told["bind_s"] > 0 and told["move_s"] > 0


@needs_engine
@pytest.mark.parametrize("seed", [0, 1, 7])
def test_bound_once_and_moved_often(seed):
    blocks = FloorPlan.even(Region.of_shape((30, 20)), 40)
    plan = BlockPlan.halo(blocks, 1)
    array, expected = filled(blocks, 1, 5), filled(blocks, 1, 5)
    mover = plan.bind(expected, reduce="add")
    for _ in range(3):
        mover()
    told = finegrain.move(plan, array, seed=seed, reduce="add", rounds=3, stack_bytes="32KiB", max_mem="1MiB")
    assert_equal(array, expected)
    assert told["bytes"] == 3 * sum(points for *_, points in plan.volumes()) * 8
    # The clocks are read as soon as all have bound and all have moved, whoever has the first turn.
    assert 0 < told["bind_s"] < 10 and 0 < told["move_s"] < 10
    assert finegrain.move(plan, array, rounds=0)["bytes"] == 0


def test_says_what_is_wrong():
    blocks = FloorPlan.even(Region.of_shape((8, 8)), 4)
    plan = BlockPlan.halo(blocks, 1)
    array = XArray(blocks, "float64", ghost=1)
    with pytest.raises(ls.errors.ArgumentError, match="the sources are int; give an XArray"):
        finegrain.move(plan, 7)
    with pytest.raises(ls.errors.ArgumentError, match="blocks of rank 2 alone"):
        finegrain.move(plan, XArray(blocks, "float64", ghost=1, rank=2))
    with pytest.raises(ls.errors.DTypeError, match="destination has dtype float32, the source has float64"):
        finegrain.move(plan, array, XArray(blocks, "float32", ghost=1))
    with pytest.raises(ls.errors.ArgumentError, match="seed is -1"):
        finegrain.move(plan, array, seed=-1)
    for ranks in (0, -1):
        with pytest.raises(ls.errors.ArgumentError, match=f"ranks is {ranks}; it must be at least 1, or None"):
            finegrain.move(plan, array, ranks=ranks)
    with pytest.raises(ls.errors.ArgumentError, match="rounds is -1"):
        finegrain.move(plan, array, rounds=-1)
    with pytest.raises(ls.errors.ArgumentError, match="stack_bytes '7 bananas' is not a size"):
        finegrain.move(plan, array, stack_bytes="7 bananas")
    if not finegrain.available():
        with pytest.raises(ls.errors.ArgumentError, match="Boost.Context"):
            finegrain.move(plan, array)
        return
    with pytest.raises(ls.errors.ArgumentError, match="stacks of 100 bytes"):
        finegrain.move(plan, array, stack_bytes=100)
    with pytest.raises(ls.errors.MemoryLimitError, match="max_mem allows 10;"):
        finegrain.move(plan, array, max_mem=10)
    with pytest.raises(ls.errors.ArgumentError, match="not within the storage of (source|destination) block"):
        finegrain.move(plan, XArray(blocks, "float64"))
    with pytest.raises(
        ls.errors.ArgumentError, match="rank 0: the plan is rank 1's|the plan is rank 1's, this is rank 0"
    ):
        finegrain.move(BlockPlan.halo(blocks, 1, rank=1), array)
    with pytest.raises(ls.errors.DTypeError, match="cannot compute with dtype"):
        finegrain.move(plan, XArray(blocks, "S3", ghost=1), reduce="add")


def test_plans_between_layouts_say_what_is_wrong():
    rows, columns = ls.Layout("(BLOCK, *) on 4", (8, 12)), ls.Layout("(*, CYCLIC) on 3", (8, 12))
    plan, whole = ls.plan(rows, columns, float), np.arange(96.0).reshape(8, 12)
    u, v = ls.scatter(whole, rows), ls.empty(columns, float)
    with pytest.raises(ls.errors.ArgumentError, match="3 source arrays for a layout of 4 ranks"):
        finegrain.move(plan, u[:3], v)
    with pytest.raises(ls.errors.ArgumentError, match="ghost= is for plans between blocks"):
        finegrain.move(plan, u, v, ghost=1)
    with pytest.raises(ls.errors.DTypeError, match="rank 2: the source array has dtype float32"):
        finegrain.move(plan, [*u[:2], u[2].astype("float32"), u[3]], v)
    with pytest.raises(ls.errors.ArgumentError, match="reduce='add' with alpha"):
        finegrain.move(plan, u, v, reduce="add", alpha=2)
    with pytest.raises(ls.errors.ArgumentError, match="placement is 'round'"):
        finegrain.move(plan, u, v, placement="round")
    with pytest.raises(ls.errors.ArgumentError, match="ranks is -1"):
        finegrain.move(plan, u, v, ranks=-1)
    with pytest.raises(ls.errors.ArgumentTypeError, match="a plan must be a MotionPlan or a BlockPlan, not Layout"):
        finegrain.move(rows, u, v)
    with pytest.raises(ls.errors.ArgumentError, match="field 1 has no option 'threads'"):
        finegrain.move_together((plan, u, v), (plan, u, v, {"threads": 2}))
    if not finegrain.available():
        return
    with pytest.raises(ls.errors.ShapeError, match=r"rank 1: the source array has shape \(3, 12\)"):
        finegrain.move(plan, [u[0], np.zeros((3, 12)), *u[2:]], v)
    with pytest.raises(ls.errors.ArgumentError, match="needs 4 ranks, the world has 2"):
        finegrain.move(plan, u, v, ranks=2)
    with pytest.raises(ls.errors.LocalArrayError, match="destination array of rank [01] .*share memory"):
        finegrain.move(plan, u, [v[0], v[0], v[2]])
    with pytest.raises(ls.errors.LocalArrayError, match="share memory"):
        finegrain.move_together((plan, u, v), (plan, u, v))
    with pytest.raises(ls.errors.LocalArrayError, match="rank 2: .*read-only"):
        frozen = [np.array(part) for part in v]
        frozen[2].flags.writeable = False
        finegrain.move(plan, u, frozen)


@needs_engine
@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["(BLOCK, *) on 5", "(CYCLIC(2), BLOCK) on 2x3", "(*, CYCLIC) on 7", "(BLOCK, BLOCK) on 3x2"]),
    st.sampled_from(["(*, BLOCK) on 4", "(CYCLIC, CYCLIC(3)) on 2x2", "(*, *) on REPLICATED(3)"]),
    st.sampled_from(
        [{}, {"reduce": "add"}, {"reduce": "max"}, {"alpha": 2.0, "beta": -1.0}, {"alpha": 1j, "conjugate": True}]
    ),
    st.booleans(),
    st.one_of(st.none(), st.integers(1, 9)),
    st.integers(0, 2**64 - 1),
)
def test_layouts_are_those_of_threads(there, here, options, checked, ranks, seed):
    source, destination = ls.Layout(there, (14, 11)), ls.Layout(here, (14, 11))
    dtype = complex if "conjugate" in options else float
    plan, whole = ls.plan(source, destination, dtype), np.arange(154.0).reshape(14, 11).astype(dtype)
    u, v, expected = (ls.scatter(f * whole, layout) for f, layout in ((1, source), (3, destination), (3, destination)))
    plan.bind(u, expected, **options)()
    told = finegrain.move(
        plan, u, v, **options, checked=checked, ranks=ranks, placement="wrap" if ranks else None, seed=seed
    )
    assert_equal(v, expected)
    assert told["ranks"] == (ranks or plan.world_size)
    assert told["bytes"] == sum(part.nbytes for part in v)


@needs_engine
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("ranks", [None, 11, 4])
def test_several_fields_of_layouts_and_blocks(checked, ranks):
    rows, columns = ls.Layout("(BLOCK, *) on 6", (18, 20)), ls.Layout("(*, CYCLIC(2)) on 5", (18, 20))
    blocks = FloorPlan.even(Region.of_shape((18, 20)), 6)
    halo, copy = BlockPlan.halo(blocks, 1), BlockPlan.copy_between(blocks, FloorPlan.of_layout(rows))
    turn = ls.plan(rows, columns, "int32")
    whole = np.arange(360).reshape(18, 20)

    def fields():
        return (
            (
                turn,
                ls.scatter(whole.astype("int32"), rows),
                ls.scatter(whole.astype("int32"), columns),
                {"reduce": "add"},
            ),
            (halo, filled(blocks, 1, 5)),
            (copy, filled(blocks, 0, 6), [np.ones((3, 20)) for _ in range(6)], {"alpha": 3, "beta": 2}),
        )

    expected, mine = fields(), fields()
    mover = ls.bind_together(*expected)
    mover(), mover()
    told = finegrain.move_together(
        *mine, checked=checked, ranks=ranks, placement="wrap" if ranks == 4 else None, rounds=2, seed=5
    )
    assert_equal(mine[0][2], expected[0][2])
    assert_equal(mine[1][1], expected[1][1])
    assert_equal(mine[2][2], expected[2][2])
    assert told["bytes"] == 2 * mover.moved_bytes
    # Of one plan, as tuples.
    u, w = (tuple(filled(blocks, 1, seed) for seed in (1, 2)) for _ in range(2))
    halo.bind(u)()
    finegrain.move(halo, w)
    for one, other in zip(u, w):
        assert_equal(one, other)


@needs_engine
def test_arrays_of_ones_own_one_a_block():
    blocks = FloorPlan.even(Region.of_shape((12, 10)), 6)
    plan = BlockPlan.halo(blocks, 1)
    random = np.random.default_rng(3)
    # With strides of their own: the ranks read straight from them.
    arrays = [random.random((2 * n + 3, m))[1 : 2 * n + 1 : 2] for n, m in (r.grow(1).shape for r in blocks)]
    expected = [np.array(array) for array in arrays]
    plan.bind(expected, ghost=1)()
    finegrain.move(plan, arrays, ghost=1)
    assert_equal(arrays, expected)
