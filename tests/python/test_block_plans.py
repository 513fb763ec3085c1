"""Plans between blocks, carried out by NumPy, against arrays of the whole domain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longshore as ls
from longshore import BlockPlan, FloorPlan, Region, regions


def arrays(plan, width, fill):
    """An array for each block, with ghost cells of -1; the block's own points are filled from the domain's array."""
    found = []
    for region in plan:
        grown = region.grow(width)
        array = np.full(grown.shape, -1.0)
        array[region.slices(grown)] = fill[region.slices(plan.bounding)]
        found.append(array)
    return found


def carry_out(plan, width, given, taken):
    for motion in plan.motions():
        to = taken[motion.destination][motion.destination_region.slices(plan.destination[motion.destination].grow(width))]
        from_ = given[motion.source][motion.source_region.slices(plan.source[motion.source].grow(width))]
        to[...] = from_.ravel(order="F").reshape(to.shape, order="F")


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(1, 3), st.booleans(), st.integers(0, 10**6))
def test_periodic_halo_is_numpy_pad(ranks, width, by_hilbert, seed):
    shape = (9, 7, 8)
    domain = Region.of_shape(shape)
    whole = np.random.default_rng(seed).random(shape)
    blocks = FloorPlan.balanced(regions.split_to_size(domain, 4), ranks) if by_hilbert else FloorPlan.even(domain, ranks)
    plan = BlockPlan.halo(blocks, width, domain=domain, periodic=(True, True, True))
    plan.check_races()
    have, moved = arrays(blocks, width, whole), arrays(blocks, width, whole)
    carry_out(plan, width, have, have)
    plan.bind(moved, ghost=width)()
    for a, b in zip(have, moved):
        np.testing.assert_array_equal(a, b)
    padded = np.pad(whole, width, mode="wrap")
    for region, array in zip(blocks, have):
        np.testing.assert_array_equal(array, padded[region.grow(width).slices(domain.grow(width))])


def test_there_and_back():
    shape = (12, 10)
    whole = np.arange(120.0).reshape(shape)
    rows, tiles = FloorPlan.even(Region.of_shape(shape), 5), FloorPlan.of_layout(ls.Layout("(CYCLIC(3), BLOCK) on 2x2", shape))
    plan = BlockPlan.copy_between(rows, tiles)
    have, want = arrays(rows, 0, whole), arrays(tiles, 0, 0 * whole)
    carry_out(plan, 0, have, want)
    for region, array in zip(tiles, want):
        np.testing.assert_array_equal(array, whole[region.slices(tiles.bounding)])
    back = arrays(rows, 0, 0 * whole)
    carry_out(plan.reverse(), 0, want, back)
    for a, b in zip(have, back):
        np.testing.assert_array_equal(a, b)
    assert plan.reverse().reverse() == plan != plan.reverse()
    assert sum(points for *_, points in plan.volumes()) == 120


def test_a_plan_is_a_value():
    blocks = FloorPlan.even(Region.of_shape((8, 6)), 4)
    whole, mine = BlockPlan.halo(blocks, 1), BlockPlan.halo(blocks, 1, rank=2)
    assert mine.digest == whole.digest and mine.rank == 2 and whole.rank is None
    assert mine.receives(2) == whole.receives(2) and mine.sends(2) == whole.sends(2)
    assert str(whole).startswith("12 motions: block 1 [0:4, 3:4] -> block 0 [0:4, 3:4]; ") and whole.workspace_bytes < 1000
    assert len(BlockPlan.halo(blocks, 1, corners=False).motions()) == 8
    assert len(BlockPlan.halo(blocks, (1, 0), 0).motions()) == 2
    assert len({*whole.motions(), *mine.motions()}) == 12
    with pytest.raises(TypeError, match="unhashable"):
        hash(whole)
    hand = BlockPlan(blocks, blocks)
    hand.copy(Region((0, 3), (4, 4)), 0, Region((0, 3), (2, 5)), 1)
    (motion,) = hand.motions()
    assert (motion.source, motion.destination, motion.source_region) == (1, 0, Region((0, 3), (2, 5)))
    assert hand.source == hand.destination == blocks and hand != whole


def test_movers_go_again_and_again_and_two_at_a_time():
    shape = (40, 30)
    rows, tiles = FloorPlan.even(Region.of_shape(shape), 3), FloorPlan.balanced(regions.split_to_size(Region.of_shape(shape), 9), 4)
    there = BlockPlan.copy_between(rows, tiles)
    a, b = rows.empty(np.complex64, order="F"), tiles.empty(np.complex64, ghost=(1, 2))
    c = rows.empty(np.complex64)
    go, back = there.bind(a, b, destination_ghost=(1, 2)), there.reverse().bind(b, c, ghost=(1, 2), destination_ghost=0, threads=2)
    halo = BlockPlan.halo(tiles, (1, 2)).bind(b, ghost=(1, 2))
    for step in range(3):
        whole = np.random.default_rng(step).random(shape).astype(np.complex64)
        for region, array in zip(rows, a):
            array[...] = whole[region.slices(rows.bounding)]
        go()
        halo.start()
        back.start()  # reads what the halo does not write
        halo.wait()
        back.wait()
        assert halo.test() and "threads engine" in go.path and go.moved_bytes == whole.nbytes
        for x, y in zip(a, c):
            np.testing.assert_array_equal(x, y)
        for region, array in zip(tiles, b):
            around = region.grow((1, 2))
            seen = around & rows.bounding
            np.testing.assert_array_equal(array[seen.slices(around)], whole[seen.slices(rows.bounding)])


def test_wrong_arrays_are_told():
    blocks = FloorPlan.even(Region.of_shape((8, 6)), 4)
    halo, good = BlockPlan.halo(blocks, 1), blocks.empty(float, ghost=1)
    with pytest.raises(ls.ArgumentError, match="more ghost cells"):
        halo.bind(blocks.empty(float))
    with pytest.raises(ls.ShapeError, match=r"source array of block 0 has shape \(6, 5\), .* has \(4, 3\)"):
        halo.bind(good)
    with pytest.raises(ls.DTypeError, match="source array of block 2 has dtype float32, not float64"):
        halo.bind([*good[:2], good[2].astype(np.float32), good[3]], ghost=1)
    with pytest.raises(ls.LocalArrayError, match="block 0 and the .* block 1 share memory"):
        halo.bind([good[0], good[0], *good[2:]], ghost=1)
    with pytest.raises(ls.ArgumentError, match="one array a block"):
        halo.bind(good[0], ghost=1)
    with pytest.raises(ls.ArgumentError, match="order"):
        blocks.empty(float, order="Z")
    frozen = [array.copy() for array in good]
    frozen[3].flags.writeable = False
    with pytest.raises(ls.LocalArrayError, match="block 3 is read-only"):
        halo.bind(frozen, ghost=1)
    halo.bind(frozen, good, ghost=1)
    with pytest.raises(ls.ArgumentError, match="3 source arrays for 4 blocks"):
        halo.bind(good[:3], ghost=1)
    with pytest.raises(ls.ArgumentError, match="node= is for messages"):
        halo.bind(good, ghost=1, node="ring")
    with pytest.raises(ls.DTypeError, match="add.*cannot compute with"):
        halo.bind(blocks.empty("S3", ghost=1), ghost=1, combine="add")
    assert BlockPlan(FloorPlan([], []), FloorPlan([], [])).bind([])() is None


def test_mistakes_are_told():
    blocks = FloorPlan.even(Region.of_shape((8, 6)), 4)
    plan, cell = BlockPlan(blocks, blocks), Region((0, 0), (1, 1))
    with pytest.raises(ls.ArgumentError, match="no source block 9; the floor plan has 4"):
        plan.copy(cell, 0, cell, 9)
    with pytest.raises(ls.ShapeError, match="2 points do not fill 1"):
        plan.copy(cell, 0, Region((0, 0), (1, 2)), 1)
    with pytest.raises(ls.ArgumentError, match="rank 1's"):
        BlockPlan.halo(blocks, 1, rank=1).sends(0)
    with pytest.raises(ls.ArgumentError, match="-2 in dimension 0 is negative"):
        BlockPlan.halo(blocks, -2)
    plan.copy(cell, 3, cell, 0)
    plan.copy(cell, 3, cell, 1)
    with pytest.raises(ls.ArgumentError, match=r"write the points \[0:1, 0:1\] of block 3 \(rank 3\)"):
        plan.check_races()


def test_xarrays_are_numpy_with_global_indices():
    blocks = FloorPlan.even(Region.of_shape((8, 6)), 4)
    u = ls.XArray(blocks, "int32", ghost=(1, 2), order="F")
    assert len(u) == 4 and u.owned == [0, 1, 2, 3] and u.rank is None and u.ghost == (1, 2)
    assert u[3].region == Region((3, 1), (9, 8)) and u[3].shape == (6, 7) and u[3].flags.f_contiguous
    for k, grid in u.items():
        assert isinstance(grid, ls.Grid) and not grid.any()
        grid.interior[...] = k + 1
        grid.at[blocks[k].lower] = 10 * k
    assert u[3].at[4, 3] == 30 and u[3][1, 2] == 30 and u[3].on(Region((4, 3), (5, 4))) == 30
    BlockPlan.halo(blocks, (1, 2)).bind(u)()
    assert u[0].at[4, 3] == 30 and u[0].at[2:4, 3:].tolist() == [[2, 2], [2, 2]]
    u[0].at[..., -2] = 5
    assert (u[0][:, 0] == 5).all()
    plain = u[0] + 1
    assert type(plain) is np.ndarray and type(u[0][1:]) is np.ndarray and float(u[0].sum()) == u[0].view(np.ndarray).sum()
    for wrong, words in (((4, 9), r"index 9 in dimension 1 is outside the grid's \[-2, 5\)"), ((0, 0, 0), "3 indices for 2"),
                         ((slice(-3, 1), 0), "index -3 in dimension 0"), ((slice(3, 1, -1), 0), "go upwards")):
        with pytest.raises(ls.ArgumentError, match=words):
            u[0].at[wrong]
    one = ls.XArray(blocks, float, rank=2)
    assert one.owned == [2]
    with pytest.raises(ls.ArgumentError, match="block 1 belongs to rank 1; the array of rank 2"):
        one[1]
    with pytest.raises(ls.DTypeError, match="objects"):
        ls.XArray(blocks, object)


def test_ghost_cells_are_added_to_their_owners():
    domain = Region.of_shape((9, 7))
    blocks = FloorPlan.balanced(regions.split_to_size(domain, 3), 2)
    u = ls.XArray(blocks, float, ghost=1)
    for grid in u:
        grid[...] = 1
    back = BlockPlan.halo(blocks, 1, domain=domain, periodic=(True, True)).reverse()
    back.bind(u, combine="add", proxy=True)()
    whole = np.zeros((9, 7))
    for k, grid in u.items():
        whole[blocks[k].slices(domain)] = grid.interior
    cover = np.zeros((9, 7))
    for region in blocks:
        cover[np.ix_(*(np.arange(lo - 1, hi + 1) % n for lo, hi, n in zip(region.lower, region.upper, (9, 7))))] += 1
    np.testing.assert_array_equal(whole, cover)
