"""Plans between blocks, carried out by NumPy, against arrays of the whole domain."""

import doctest
import pickle

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
        assert motion.source_points is None and motion.destination_points is None
        to = taken[motion.destination][
            motion.destination_region.slices(plan.destination[motion.destination].grow(width))
        ]
        from_ = given[motion.source][motion.source_region.slices(plan.source[motion.source].grow(width))]
        to[...] = from_.ravel().reshape(to.shape)


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(1, 3), st.booleans(), st.integers(0, 10**6))
def test_periodic_halo_is_numpy_pad(ranks, width, by_hilbert, seed):
    shape = (9, 7, 8)
    domain = Region.of_shape(shape)
    whole = np.random.default_rng(seed).random(shape)
    blocks = (
        FloorPlan.balanced(regions.split_to_size(domain, 4), ranks) if by_hilbert else FloorPlan.even(domain, ranks)
    )
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
    rows, tiles = (
        FloorPlan.even(Region.of_shape(shape), 5),
        FloorPlan.of_layout(ls.Layout("(CYCLIC(3), BLOCK) on 2x2", shape)),
    )
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
    assert (
        str(whole).startswith("12 motions: block 1 [0:4, 3:4] -> block 0 [0:4, 3:4]; ") and whole.workspace_bytes < 1000
    )
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
    assert whole.world_size == mine.world_size == 4
    with pytest.raises(ls.ArgumentError, match="rank -1 is negative"):
        BlockPlan.halo(blocks, 1, rank=-1)


def test_movers_go_again_and_again_and_two_at_a_time():
    shape = (40, 30)
    rows, tiles = (
        FloorPlan.even(Region.of_shape(shape), 3),
        FloorPlan.balanced(regions.split_to_size(Region.of_shape(shape), 9), 4),
    )
    there = BlockPlan.copy_between(rows, tiles)
    a, b = rows.empty(np.complex64, order="F"), tiles.empty(np.complex64, ghost=(1, 2))
    c = rows.empty(np.complex64)
    go, back = (
        there.bind(a, b, destination_ghost=(1, 2)),
        there.reverse().bind(b, c, ghost=(1, 2), destination_ghost=0, threads=2),
    )
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
        assert "threads engine" in go.path and go.moved_bytes == whole.nbytes
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
    u, own = ls.XArray(blocks, float, 1), blocks.empty(float)
    copy = (BlockPlan.copy_between(blocks, blocks), ls.XArray(blocks, float))
    ls.bind_together((halo, u), (*copy, own))()
    own[2] = u[2][1:-1, 1:-1]
    with pytest.raises(ls.LocalArrayError, match="array of block 2 and the destination array of block 2 share memory"):
        ls.bind_together((halo, u), (*copy, own))
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
        halo.bind(blocks.empty("S3", ghost=1), ghost=1, reduce="add")
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
    assert (
        type(plain) is np.ndarray and type(u[0][1:]) is np.ndarray and float(u[0].sum()) == u[0].view(np.ndarray).sum()
    )
    for wrong, words in (
        ((4, 9), r"index 9 in dimension 1 is outside the grid's \[-2, 5\)"),
        ((0, 0, 0), "3 indices for 2"),
        ((slice(-3, 1), 0), "index -3 in dimension 0"),
        ((slice(3, 1, -1), 0), "go upwards"),
    ):
        with pytest.raises(ls.ArgumentError, match=words):
            u[0].at[wrong]
    one = ls.XArray(blocks, float, rank=2)
    assert one.owned == [2]
    with pytest.raises(ls.ArgumentError, match="block 1 belongs to rank 1; the array of rank 2"):
        one[1]
    with pytest.raises(ls.DTypeError, match="objects"):
        ls.XArray(blocks, object)


@pytest.mark.parametrize("order", ["C", "F"])
def test_ghost_cells_a_side(order):
    blocks, widths = FloorPlan.even(Region.of_shape((12, 9)), 6), ((1, 2), (0, 1))
    u = ls.XArray(blocks, float, ghost=widths, order=order)
    assert u.ghost == widths and ls.XArray(blocks, float, ghost=((2, 2), (0, 1))).ghost == (2, (0, 1))
    assert u[3].region == blocks.grow(widths)[3] == blocks[3].grow((1, 0), (2, 1)) and u[3].block == blocks[3]
    whole = np.random.default_rng(1).random((12, 9))
    ls.scatter(whole, u)
    BlockPlan.halo(blocks, (1, 0), (2, 1)).bind(u)()
    own = blocks.empty(float, ghost=widths)
    for k, grid in u.items():
        inside = grid.region & Region.of_shape((12, 9))
        np.testing.assert_array_equal(grid.on(inside), whole[inside.slices(blocks.bounding)])
        own[k][...] = -1
        own[k][blocks[k].slices(grid.region)] = grid.interior
    BlockPlan.halo(blocks, (1, 0), (2, 1)).bind(own, ghost=widths)()
    np.testing.assert_array_equal(own[2][:-2, 1:], np.asarray(u[2])[:-2, 1:])
    with pytest.raises(ls.ArgumentError, match="more ghost cells"):
        BlockPlan.halo(blocks, 1).bind(u)
    with pytest.raises(ls.ArgumentError, match=r"dimension 1 has 3 numbers; give one, or \(below, above\)"):
        BlockPlan.halo(blocks, 1).bind(own, ghost=(1, (1, 2, 3)))


def test_plans_into_ghost_cells_are_bound_to_arrays_that_have_them():
    whole = np.random.default_rng(1).random((12, 9))
    rows, tiles = FloorPlan.even(Region.of_shape((12, 9)), 3), FloorPlan.even(Region.of_shape((12, 9)), 4)
    u, v = ls.XArray(rows, float), ls.XArray(tiles, float, ghost=(2, (1, 3)))
    ls.scatter(whole, u)
    plan = BlockPlan.copy_between(rows, tiles.grow((2, 1)))
    plan.bind(u, v)()
    for k, grid in v.items():
        inside = tiles[k].grow((2, 1)) & rows.bounding
        np.testing.assert_array_equal(grid.on(inside), whole[inside.slices(rows.bounding)])
        assert np.count_nonzero(np.asarray(grid)) == inside.size  # and nothing else
    back = ls.XArray(rows, float)
    plan.reverse().bind(v, back, reduce="max")()
    for a, b in zip(u, back):
        np.testing.assert_array_equal(a, b)
    for less in (ls.XArray(tiles, float, ghost=1), ls.XArray(tiles.with_owners([0] * 4), float, ghost=2)):
        with pytest.raises(ls.ShapeError, match="the destination array has other blocks than the plan"):
            plan.bind(u, less)


def test_ghost_cells_are_added_to_their_owners():
    domain = Region.of_shape((9, 7))
    blocks = FloorPlan.balanced(regions.split_to_size(domain, 3), 2)
    u = ls.XArray(blocks, float, ghost=1)
    for grid in u:
        grid[...] = 1
    back = BlockPlan.halo(blocks, 1, domain=domain, periodic=(True, True)).reverse()
    back.bind(u, reduce="add", proxy=True)()
    whole = np.zeros((9, 7))
    for k, grid in u.items():
        whole[blocks[k].slices(domain)] = grid.interior
    cover = np.zeros((9, 7))
    for region in blocks:
        cover[np.ix_(*(np.arange(lo - 1, hi + 1) % n for lo, hi, n in zip(region.lower, region.upper, (9, 7))))] += 1
    np.testing.assert_array_equal(whole, cover)


def test_periodic_images_come_from_the_other_side():
    whole = np.arange(54.0).reshape(9, 6)
    domain = Region.of_shape(whole.shape)
    rows = FloorPlan.even(domain, 3)
    windows = FloorPlan([Region((-4, 2), (3, 5)), Region((7, 4), (20, 9))], [0, 1])
    plan = BlockPlan.copy_between(rows, windows, periodic=(True, True))
    assert plan == BlockPlan.copy_between(rows, windows, domain=domain, periodic=(True, True))
    have, want = arrays(rows, 0, whole), windows.empty(float)
    plan.bind(have, want)()
    for region, array in zip(windows, want):
        picked = np.ix_(*(np.arange(lo, hi) % n for lo, hi, n in zip(region.lower, region.upper, whole.shape)))
        np.testing.assert_array_equal(array, whole[picked])
    with pytest.raises(ls.ArgumentError, match=r"block 2 .* not within the periodic domain \[0:8, 0:6\]"):
        BlockPlan.copy_between(rows, windows, domain=Region.of_shape((8, 6)), periodic=(True, False))


def test_meshes_of_two_levels():
    whole = np.random.default_rng(2).random((12, 8))
    domain = Region.of_shape(whole.shape)
    coarse = FloorPlan.even(domain, 3)
    fine = FloorPlan([Region((4, 4), (12, 8)), Region((4, 8), (10, 14)), Region((20, 0), (24, 4))], [0, 1, 2])
    down = BlockPlan.coarsen_fine(fine, coarse, 2)
    assert down.source == fine.coarsen(2) and down.destination == coarse
    have, want = arrays(down.source, 0, np.zeros_like(whole)[:, :]), arrays(coarse, 0, whole)
    for region, array in zip(down.source, have):
        array[...] = -whole[region.slices(domain)]
    down.bind(have, want)()
    covered = np.zeros(whole.shape, bool)
    for region in down.source:
        covered[region.slices(domain)] = True
    for region, array in zip(coarse, want):
        np.testing.assert_array_equal(array, np.where(covered, -whole, whole)[region.slices(domain)])
    up = BlockPlan.refine_coarse(coarse, fine, 2, 1, periodic=(True, False), rank=None)
    assert up.destination == fine.coarsen(2).grow(1)
    have, want = arrays(coarse, 0, whole), up.destination.empty(float)
    for array in want:
        array[...] = -1
    up.bind(have, want)()
    outside = np.pad(np.pad(whole, ((1, 1), (0, 0)), mode="wrap"), ((0, 0), (1, 1)), constant_values=-1)
    for region, array in zip(up.destination, want):
        np.testing.assert_array_equal(array, outside[region.slices(domain.grow(1))])
    periodic = BlockPlan.coarsen_fine(fine, coarse, 2, periodic=(True, False))
    assert (
        periodic == BlockPlan.refine_coarse(coarse, fine, 2, periodic=(True, False)).reverse()
        and periodic.source == down.source
    )
    across = FloorPlan([Region((-4, 0), (2, 6))], [0])
    moved = [
        sum(points for *_, points in BlockPlan.coarsen_fine(across, coarse, 2, periodic=p).volumes())
        for p in (None, (True, False))
    ]
    assert moved == [3, 9]
    with pytest.raises(ls.ArgumentError, match="width -1 in dimension 0 is negative"):
        BlockPlan.refine_coarse(coarse, fine, 2, -1)
    with pytest.raises(ls.ArgumentError, match=r"two motions write the points \[0:1, 2:3\]"):
        BlockPlan.coarsen_fine(
            FloorPlan([Region((0, 0), (2, 5)), Region((0, 5), (2, 8))], [0, 1]), coarse, 2
        ).check_races()


def test_summa():
    n, width, parts = 12, 3, FloorPlan.even(Region.of_shape((12, 12)), 4)
    a, b = np.random.default_rng(3).random((2, n, n))
    blocks_a, blocks_b, product = arrays(parts, 0, a), arrays(parts, 0, b), arrays(parts, 0, 0 * a)
    for k in range(0, n, width):
        columns, rows = BlockPlan.broadcast_columns(parts, k, k + width), BlockPlan.broadcast_rows(parts, k, k + width)
        assert rows == BlockPlan.broadcast(parts, 0, k, k + width) and rows.destination == parts.with_range(
            0, k, k + width
        )
        panels_a, panels_b = columns.destination.empty(float), rows.destination.empty(float)
        columns.bind(blocks_a, panels_a)()
        rows.bind(blocks_b, panels_b)()
        for c, x, y in zip(product, panels_a, panels_b):
            c += x @ y
    for region, c in zip(parts, product):
        np.testing.assert_allclose(c, (a @ b)[region.slices(parts.bounding)])
    for wrong in ((9, 13), (-1, 2), (5, 4)):
        with pytest.raises(ls.ArgumentError, match="is no panel of blocks of"):
            BlockPlan.broadcast_rows(parts, *wrong)
    with pytest.raises(ls.ArgumentError, match="no dimension 2"):
        BlockPlan.broadcast(parts, 2, 0, 1)
    with pytest.raises(ls.ArgumentError, match=r"no block has \[6:7, 0:6\] of the panel \[5:7, 0:6\]"):
        BlockPlan.broadcast_rows(FloorPlan([parts[0], Region((8, 0), (12, 12))], [0, 1]), 5, 7)


@settings(deadline=None)
@given(st.permutations(range(3)), st.integers(1, 6), st.integers(1, 6), st.sampled_from("CF"), st.booleans())
def test_transposes_are_numpys(axes, ranks, others, order, back):
    whole = np.random.default_rng(ranks).random((7, 5, 6)).astype(np.float32)
    turned = whole.transpose(axes)
    there, here = (
        FloorPlan.even(Region.of_shape(whole.shape), ranks),
        FloorPlan.even(Region.of_shape(turned.shape), others),
    )
    plan = BlockPlan.transpose(there, here, axes)
    if back:
        plan, whole, turned, there, here = plan.reverse(), turned, whole, here, there
        axes = [axes.index(d) for d in range(3)]
    assert plan.axes == tuple(axes) and plan.source == there and plan.destination == here
    have = [whole[region.slices(there.bounding)].copy(order) for region in there]
    want = here.empty(np.float32, order=order)
    plan.bind(have, want)()
    for region, array in zip(here, want):
        np.testing.assert_array_equal(array, turned[region.slices(here.bounding)])


def test_points_are_paired_in_the_order_of_the_arrays():
    here, there = (FloorPlan([Region.of_shape(shape)], [0]) for shape in ((3, 2), (2, 3)))
    plan = BlockPlan(here, there)
    plan.copy(there[0], 0, here[0], 0)
    values = np.arange(6.0).reshape(3, 2)

    def moved(source, destination, visit=None, **more):
        u, v = (
            ls.XArray(blocks, float, order=order) if order else blocks.empty(float)
            for blocks, order in ((here, source), (there, destination))
        )
        u[0][...] = values
        plan.bind(u, v, visit=visit, **more)()
        if source and destination and ls.finegrain.available():
            w = ls.XArray(there, float, order=destination)
            ls.finegrain.move(plan, u, w, visit=visit)
            np.testing.assert_array_equal(w[0], v[0])
        return "F" if v[0][0, 1] == 4 else "C"

    assert [moved(a, b) for a, b in ("CC", "FF", "CF", "FC", ("", ""), ("", "F"), ("C", ""))] == list("CFCCCCC")
    assert [moved(a, b, visit) for a, b in ("CC", "FF", ("", "")) for visit in "CF"] == list("CFCFCF")
    with pytest.raises(ls.ArgumentError, match="visit is 'Z'; it can be 'C' or 'F'"):
        moved("C", "C", "Z")


def test_axes_of_plans_and_floor_plans():
    blocks = FloorPlan.even(Region.of_shape((8, 6)), 4)
    assert blocks.transpose((1, 0))[1] == Region((3, 0), (6, 4))
    assert BlockPlan(blocks, blocks).axes is None
    plan = BlockPlan(blocks, blocks, axes=(-1, 0))
    assert plan.axes == (1, 0)
    plan.copy(Region((4, 0), (6, 3)), 2, Region((0, 0), (3, 2)), 0)
    a, b = blocks.empty(int), blocks.empty(int)
    for array in (*a, *b):
        array[...] = np.arange(12).reshape(4, 3)
    plan.bind(a, b)()
    np.testing.assert_array_equal(b[2][:2], a[0][:3, :2].T)
    np.testing.assert_array_equal(b[2][2:], a[0][2:])
    with pytest.raises(ls.ShapeError, match="with axes"):
        plan.copy(Region((4, 0), (7, 2)), 2, Region((0, 0), (3, 2)), 0)
    with pytest.raises(ls.ArgumentError, match="given twice"):
        BlockPlan.transpose(blocks, blocks, (1, 1))
    with pytest.raises(ls.ArgumentError, match=r"axes entry 0 is 2, outside \[-2, 2\)"):
        blocks.transpose((2, 0))
    # None reverses the dimensions, as NumPy's does; none at all are an error there, and here.
    assert blocks.transpose() == blocks.transpose(None) == blocks.transpose((1, 0))
    assert BlockPlan.transpose(blocks, blocks.transpose()) == BlockPlan.transpose(blocks, blocks.transpose(), (1, 0))
    for make in (
        lambda: blocks.transpose(()),
        lambda: BlockPlan.transpose(blocks, blocks, ()),
        lambda: BlockPlan(blocks, blocks, ()),
        lambda: blocks[0].transpose(()),
    ):
        with pytest.raises(ls.ArgumentError, match="axes has 0 entries, there are 2 dimensions"):
            make()


def test_lists_of_points():
    blocks = FloorPlan.even(Region.of_shape((8, 6)), 2)
    whole = np.random.default_rng(8).random((8, 6))
    plan = BlockPlan(blocks, blocks)
    to, from_ = np.array([[7, 5], [4, 0], [5, 5]], np.int32), np.array([[0, 0], [3, 5], [0, 0]])
    plan.copy_points(to, 1, from_, 0)
    plan.copy_points([], 0, [], 1)
    (motion,) = plan.motions()
    assert str(motion) == "3 points of block 0 [0:4, 0:6] -> block 1 [4:8, 0:6]" and motion.points == 3
    np.testing.assert_array_equal(motion.destination_points, to)
    np.testing.assert_array_equal(motion.source_points, from_)
    assert plan.volumes() == [(0, 1, 1, 3)]
    have, want = arrays(blocks, 0, whole), arrays(blocks, 0, 0 * whole)
    plan.bind(have, want)()
    expected = np.zeros((8, 6))
    expected[tuple(to.T)] = whole[tuple(from_.T)]
    np.testing.assert_array_equal(np.concatenate(want), expected)
    with pytest.raises(ls.ArgumentError, match=r"writes twice the points \[0:1, 0:1\] of block 0"):
        plan.reverse().bind(want, have)
    plan.reverse().bind(want, have, reduce="add")()
    assert have[0][0, 0] == 3 * whole[0, 0]
    line = FloorPlan.even(Region.of_shape(10), 1)
    turn = BlockPlan(line, line)
    turn.copy_points(range(10), 0, np.arange(10)[::-1], 0)
    assert turn.motions()[0].source_points.tolist() == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    out = np.zeros(10)
    turn.bind([np.arange(10.0)], [out])()
    assert out.tolist() == list(range(9, -1, -1))
    with pytest.raises(ls.ArgumentError, match="a motion reads and writes"):
        turn.bind([out])
    for wrong, error, words in (
        ((to, 1, from_[:2], 0), ls.ShapeError, "2 points of block 0 do not go to 3 points of block 1"),
        ((to, 9, from_, 0), ls.ArgumentError, "no destination block 9"),
        ((to[:, 0], 1, from_, 0), ls.ShapeError, r"destination_points has shape \(3,\), not \(n, 2\)"),
        ((to, 1, from_ + 0.5, 0), ls.DTypeError, "source_points has dtype float64"),
    ):
        with pytest.raises(error, match=words):
            plan.copy_points(*wrong)


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(0, 10**6))
def test_finite_element_halos(ranks, seed):
    """Edges of a random graph, each worked on by the owner of its
    first vertex: sums over edges as if there were one array."""
    random = np.random.default_rng(seed)
    n = 40
    edges = random.integers(0, n, (70, 2))
    mesh = FloorPlan.even(Region.of_shape(n), ranks)
    owner = np.concatenate([np.full(region.shape, k) for k, region in enumerate(mesh)])
    mine = [edges[owner[edges[:, 0]] == k] for k in range(ranks)]
    needed = [np.setdiff1d(e, np.arange(*r.lower, *r.upper)) for e, r in zip(mine, mesh)]
    plan = BlockPlan.gather_points(mesh, needed)
    u, sums = ls.XArray(plan.source, float), ls.XArray(plan.source, float)
    values = random.random(n)
    for k in range(ranks):
        u[k].on(mesh[k])[...] = values[mesh[k].slices(mesh.bounding)]
    plan.bind(u)()
    for k in range(ranks):
        local = {v: i for i, v in enumerate([*range(*mesh[k].lower, *mesh[k].upper), *needed[k]])}
        for a, b in mine[k]:
            sums[k][local[a]] += u[k][local[b]]
            sums[k][local[b]] += u[k][local[a]]
    plan.reverse().bind(sums, reduce="add")()
    expected = np.zeros(n)
    np.add.at(expected, edges[:, 0], values[edges[:, 1]])
    np.add.at(expected, edges[:, 1], values[edges[:, 0]])
    np.testing.assert_allclose(np.concatenate([sums[k].on(mesh[k]) for k in range(ranks)]), expected)


def test_finite_element_docstring():
    example = doctest.DocTestParser().get_doctest(BlockPlan.gather_points.__doc__, vars(ls), "gather_points", None, 0)
    assert doctest.DocTestRunner().run(example) == (0, 6)


def test_finite_element_mistakes():
    mesh = FloorPlan.even(Region.of_shape(12), 3)
    with pytest.raises(ls.ArgumentError, match=r"block 1 \(rank 1\) needs 12, which no block owns"):
        BlockPlan.gather_points(mesh, [[], [12], []])
    with pytest.raises(ls.ShapeError, match="2 lists of vertices for 3 blocks"):
        BlockPlan.gather_points(mesh, [[], []])
    with pytest.raises(ls.DTypeError, match=r"needed\[1\] has dtype float64"):
        BlockPlan.gather_points(mesh, [[], [1.5], []])


def test_one_plan_after_the_other():
    shape = (9, 8)
    whole = np.random.default_rng(5).random(shape)
    rows, tiles = FloorPlan.even(Region.of_shape(shape), 3), FloorPlan.even(Region.of_shape(shape[::-1]), 4)
    middle = FloorPlan.balanced(regions.split_to_size(Region.of_shape(shape), 4), 2)
    both = BlockPlan.copy_between(rows, middle).compose(BlockPlan.transpose(middle, tiles, (1, 0)))
    assert both.axes == (1, 0) and both.source == rows and both.destination == tiles
    want = tiles.empty(float)
    both.bind(arrays(rows, 0, whole), want)()
    for region, array in zip(tiles, want):
        np.testing.assert_array_equal(array, whole.T[region.slices(tiles.bounding)])
    with pytest.raises(ls.ArgumentError, match="begins with other blocks"):
        both.compose(both)
    with pytest.raises(ls.ArgumentError, match="rank 1's"):
        BlockPlan.copy_between(rows, middle, rank=1).compose(BlockPlan.copy_between(middle, rows))


def test_plans_travel():
    blocks, line = FloorPlan.even(Region.of_shape((8, 6)), 4), FloorPlan.even(Region.of_shape(30), 3)
    turned = BlockPlan.transpose(blocks, blocks.transpose((1, 0)), (1, 0))
    turned.copy(Region((0, 4), (3, 8)), 2, Region((4, 0), (8, 3)), 2)
    for plan in (
        BlockPlan.halo(blocks, (1, 0), 2, periodic=(True, False), corners=False, rank=1),
        BlockPlan.copy_between(blocks, blocks.grow(1), periodic=(True, True)).reverse(),
        BlockPlan.gather_points(line, [[10, 29], [], [5]]),
        turned,
    ):
        again = pickle.loads(pickle.dumps(plan))
        assert again == plan == BlockPlan.from_bytes(plan.to_bytes()) and again.digest == plan.digest
        assert again.motions() == plan.motions() and again.rank == plan.rank
        data = plan.to_bytes()
        with pytest.raises(ls.ArgumentError, match="the stored plan has a wrong checksum"):
            BlockPlan.from_bytes(data[:9] + bytes([data[9] ^ 1]) + data[10:])
    with pytest.raises(ls.ArgumentError, match="more than 5 pairs of neighbours"):
        BlockPlan.from_bytes(BlockPlan.halo(blocks, 1).to_bytes(), most_pairs=5)
    with pytest.raises(ls.ArgumentError, match="the stored plan has 4 regions, more than the 3"):
        BlockPlan.from_bytes(BlockPlan.halo(blocks, 1).to_bytes(), most_pairs=3)
    with pytest.raises(ls.ArgumentError, match="the stored floor plan has 4 regions, more than the 3"):
        FloorPlan.from_bytes(blocks.to_bytes(), most_regions=3)
    assert FloorPlan.from_bytes(blocks.to_bytes(), most_regions=4) == blocks
    assert pickle.loads(pickle.dumps(blocks)) == blocks == FloorPlan.from_bytes(blocks.to_bytes())
    with pytest.raises(ls.ArgumentError, match="the stored floor plan does not begin with LSFP"):
        FloorPlan.from_bytes(turned.to_bytes())
