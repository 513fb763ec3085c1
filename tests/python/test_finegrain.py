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
    with pytest.raises(ls.errors.ArgumentError, match="the source is list; give an XArray"):
        finegrain.move(plan, [np.zeros((6, 6))] * 4)
    with pytest.raises(ls.errors.ArgumentError, match="blocks of rank 2 alone"):
        finegrain.move(plan, XArray(blocks, "float64", ghost=1, rank=2))
    with pytest.raises(ls.errors.DTypeError, match="destination has dtype float32, the source has float64"):
        finegrain.move(plan, array, XArray(blocks, "float32", ghost=1))
    with pytest.raises(ls.errors.ArgumentError, match="seed is -1"):
        finegrain.move(plan, array, seed=-1)
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
