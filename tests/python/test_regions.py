"""Regions and floor plans as Python has them."""

import pickle

import longshore as ls
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from longshore import FloorPlan, Region, regions


def boxes(dims, reach=6):
    point = st.tuples(*[st.integers(-reach, reach)] * dims)
    extent = st.tuples(*[st.integers(0, 5)] * dims)
    return st.builds(lambda lower, shape: Region(lower, tuple(a + b for a, b in zip(lower, shape))), point, extent)


def mask(listed, dims, reach=16):
    """The points of regions as a NumPy array."""
    all_of_it = Region((-reach,) * dims, (reach,) * dims)
    array = np.zeros(all_of_it.shape, int)
    for region in listed:
        array[(region & all_of_it).slices(all_of_it)] += 1
    return array


@given(st.lists(boxes(2), max_size=6), st.lists(boxes(2), max_size=6))
def test_lists_are_sets_of_points(a, b):
    united = mask(regions.unite(a), 2)
    np.testing.assert_array_equal(united, mask(a, 2) > 0)
    rest = mask(regions.subtract(regions.unite(a), b), 2)
    np.testing.assert_array_equal(rest, (mask(a, 2) > 0) & (mask(b, 2) == 0))
    index = regions.RegionIndex(a)
    for region in b:
        assert index.find(region) == [k for k, other in enumerate(a) if other.overlaps(region)]


@given(boxes(3), st.integers(0, 3))
def test_the_halo_is_faces_edges_and_corners(region, width):
    sides = [region.side(d, width) for d in regions.directions(3)]
    np.testing.assert_array_equal(mask(sides, 3), mask(region.grow(width).subtract(region), 3))


def test_a_region_is_a_value():
    box = Region((0, -1), (4, 5))
    assert (box.lower, box.upper, box.shape, box.size, box.ndim) == ((0, -1), (4, 5), (4, 6), 24, 2)
    assert repr(box) == "Region((0, -1), (4, 5))" and str(box) == "[0:4, -1:5]"
    assert eval(repr(Region(3, 7))) == Region((3,), (7,)) == Region.of_shape(4).shift(3)
    assert pickle.loads(pickle.dumps(box)) == box and hash(pickle.loads(pickle.dumps(box))) == hash(box)
    assert (
        Region((0, 0), (0, 9)) == Region((5, 5), (2, 1)) and len({Region((0, 0), (0, 9)), Region((5, 5), (2, 1))}) == 1
    )
    assert (3, 4) in box and (4, 4) not in box and not Region((0,), (0,)) and box
    assert box.grow(1, (0, -2)) == Region((-1, -2), (4, 3))
    assert box.coarsen((2, 3)).refine((2, 3)) == Region((0, -3), (4, 6))
    assert [box.point_at(k, "F") for k in range(3)] == [(0, -1), (1, -1), (2, -1)] and box.offset_of((1, -1)) == 6
    assert box != "a box" and box & box == box
    cube = Region((0, 10, 20), (1, 12, 23))
    for axes in (None, (2, 0, 1), (-1, -3, 1)):
        assert cube.transpose(axes).shape == np.empty(cube.shape).transpose(axes).shape
    assert cube.transpose((2, 0, 1)) == Region((20, 0, 10), (23, 1, 12)) and cube.transpose().transpose() == cube
    with pytest.raises(ls.ArgumentError, match="axes entry 1 is 0, given twice"):
        cube.transpose((0, 0, 1))
    with pytest.raises(ls.ArgumentError, match="axes has 2 entries, there are 3 dimensions"):
        cube.transpose((0, 1))
    array = np.arange(24).reshape(box.shape)
    assert array[Region((1, 0), (2, 2)).slices(box)].tolist() == [[7, 8]]


def test_mistakes_are_told():
    with pytest.raises(ls.ShapeError, match="2 and of 1 dimensions"):
        Region((0, 0), (1, 1)) & Region(0, 1)
    with pytest.raises(ls.ShapeError, match="extent -1"):
        Region.of_shape(-1)
    with pytest.raises(ls.SizeOverflowError, match="64 bits"):
        Region(0, 2**62).grow(2**62)
    with pytest.raises(ls.ArgumentError, match=r"\[0:9\] is not within \[0:4\]"):
        Region(0, 9).slices(Region(0, 4))
    with pytest.raises(ls.ArgumentError, match="hilbert"):
        regions.order_along([Region(0, 1)], "peano")
    with pytest.raises(ls.ArgumentError, match="knapsack"):
        FloorPlan.balanced([Region(0, 1)], 2, balance="luck")
    with pytest.raises(ls.ShapeError, match="1 owners for 2 regions"):
        FloorPlan([Region(0, 1), Region(1, 2)], [0])
    with pytest.raises(ls.ArgumentError, match="no region 5"):
        FloorPlan.even(Region(0, 4), 2).owner(5)
    with pytest.raises(ls.MemoryLimitError, match="CYCLIC"):
        FloorPlan.of_layout(ls.Layout("(CYCLIC) on 2", 1000), most=100)


@pytest.mark.parametrize("wrong", ["ab", (1, 2.5), {3: 4}])
def test_what_is_no_point_is_told(wrong):
    for make in (
        lambda: Region(wrong, 3),
        lambda: Region(0, 4).grow(wrong),
        lambda: wrong in Region(0, 4),
        lambda: ls.Layout("(*)", wrong),
    ):
        with pytest.raises(TypeError, match="integer or a sequence of integers"):
            make()
    for wide in (2**64, (1, -(2**63) - 1)):
        with pytest.raises(ls.SizeOverflowError, match="64 bits"):
            Region(0, 4).shift(wide)
    with pytest.raises(TypeError):
        _ = Region(0, 4) in Region(0, 4)
    for balance in ("hilbert", "knapsack"):
        for weights in ([], [1, 2]):
            with pytest.raises(ls.ShapeError, match="weights for 1 regions"):
                FloorPlan.balanced([Region(0, 4)], 2, weights, balance)
    assert Region(np.array([1, 2]), (np.int64(3), np.int32(4))).shape == (2, 2)


def test_floor_plans():
    plan = FloorPlan.even(Region.of_shape((8, 6)), 4)
    assert len(plan) == 4 and plan.size == 48 and plan.world_size == 4 and plan.ndim == 2
    assert list(plan) == plan.regions and plan[-1] == Region((4, 3), (8, 6))
    assert plan.bounds.shape == (4, 2, 2) and plan.owners.tolist() == [0, 1, 2, 3]
    assert FloorPlan(plan.bounds, plan.owners) == plan == FloorPlan(plan.regions, range(4))
    assert pickle.loads(pickle.dumps(plan)) == plan and hash(plan) == hash(FloorPlan.even(Region.of_shape((8, 6)), 4))
    assert plan.grow(1)[0] == Region((-1, -1), (5, 4)) and plan.with_owners([0, 0, 1, 1]).owned_by(1) == [2, 3]
    assert plan.refine(2).coarsen(2) == plan and plan.bounding == Region.of_shape((8, 6))
    assert "[0:4, 0:3] on 0" in repr(plan)
    layout = ls.Layout("(BLOCK, CYCLIC(2)) on 2x2", (5, 7))
    owned = FloorPlan.of_layout(layout)
    for region, owner in zip(owned, owned.owners):
        assert {layout.owner(region.point_at(k)) for k in range(region.size)} == {owner}
    assert owned.size == 35


def test_regions_of_a_floor_plan_as_tuples_and_as_an_array():
    wanted = FloorPlan([Region((-1, 2), (3, 4)), Region((5, 2), (5, 9))], [3, 0])
    pairs = [((-1, 2), (3, 4)), ((5, 2), (5, 9))]
    bounds = np.array(pairs)
    wide = np.zeros((4, 2, 6), np.int16)[::2, :, 1::3]
    wide[...] = bounds
    for regions_given in (
        pairs,
        tuple(pairs),
        bounds.tolist(),
        [pairs[0], Region(*pairs[1])],
        [tuple(map(np.array, pair)) for pair in pairs],
        [*bounds],
        bounds,
        bounds.astype(np.int32, order="F"),
        wide,
    ):
        for owners in ([3, 0], np.array([3, 0], np.int32)):
            assert FloorPlan(regions_given, owners) == wanted
    assert FloorPlan(iter(pairs), [3, 0]) == wanted
    assert FloorPlan([(0, 5), (5, 9)], [0, 1]).regions == [Region(0, 5), Region(5, 9)]
    assert FloorPlan((bounds + 1).astype(np.uint64), [3, 0]).bounds.tolist() == (bounds + 1).tolist()
    assert FloorPlan(np.zeros((0, 2, 3), int), []) == FloorPlan([], [])
    for bounds, kind, words in (
        (np.array([[[0.5], [4.9]]]), ls.DTypeError, "regions has dtype float64"),
        (np.array([[[0], [2**63 + 4]]], np.uint64), ls.SizeOverflowError, "does not fit in 64 bits"),
        (np.zeros((1, 3, 2), int), ls.ShapeError, r"regions has shape \(1, 3, 2\)"),
        (np.zeros((1, 2), int), ls.ShapeError, r"regions has shape \(1, 2\)"),
        ([(0, 4), (1, 2, 3)], ls.ArgumentTypeError, r"regions\[1\] is \(1, 2, 3\); regions must be Regions, pairs"),
        ([(0, "x")], ls.ArgumentTypeError, r"regions\[0\] is \(0, 'x'\); regions must be Regions, pairs"),
        ([7], ls.ArgumentTypeError, r"regions\[0\] is 7"),
        ("ab", ls.ArgumentTypeError, "regions is 'ab'; it must be a sequence"),
        (7, ls.ArgumentTypeError, "regions is 7; it must be a sequence"),
        ([((0, 0), (1,))], ls.ShapeError, r"regions\[0\] is \(\(0, 0\), \(1,\)\): "),
        ([(0, 2**70)], ls.SizeOverflowError, r"regions\[0\] is .* does not fit in 64 bits"),
    ):
        with pytest.raises(kind, match=words):
            FloorPlan(bounds, [0])
    with pytest.raises(ls.ShapeError, match="1 owners for 2 regions"):
        FloorPlan([(0, 5), (5, 9)], [0])


@pytest.mark.parametrize("balance, worst", [("hilbert", 1.2), ("morton", 1.2), ("knapsack", 1.02)])
def test_balance(balance, worst):
    blocks = regions.split_to_size(Region.of_shape((64, 64, 64)), (8, 8, 16))
    weights = np.random.default_rng(5).integers(1, 100, len(blocks))
    plan = FloorPlan.balanced(blocks, 6, weights.tolist(), balance)
    loads = np.bincount(plan.owners, weights, minlength=6)
    assert loads.max() <= worst * weights.sum() / 6
    assert regions.process_grid(6, (64, 64, 64)) == (3, 2, 1)
