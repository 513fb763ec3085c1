"""`Mover.arrivals`: each piece once, complete, in NumPy's terms. Over MPI see tests/mpi/scripts/arrivals.py."""

import longshore as ls
import numpy as np
import pytest
from longshore import BlockPlan, FloorPlan, Region

TEXTS = ["(BLOCK, *) on 3", "(*, CYCLIC) on 2", "(CYCLIC(2), CYCLIC(3)) on 2x2", "(GEN_BLOCK(1, 0, 10), BLOCK) on 3x2"]


@pytest.mark.parametrize("source", TEXTS)
@pytest.mark.parametrize("target", TEXTS)
@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 2}, {"proxy": True}, {"checked": True}], ids=str)
def test_of_layouts(source, target, options):
    whole = np.arange(99.0).reshape(11, 9)
    source, target = ls.Layout(source, whole.shape), ls.Layout(target, whole.shape)
    out = [array * 0 - 1 for array in ls.scatter(whole, target)]
    mover = ls.plan(source, target, float).bind(ls.scatter(whole, source), out, **options)
    for _ in range(2):
        seen = [np.zeros(array.shape, int) for array in out]
        for array in out:
            array[...] = -1
        mover.start()
        for arrival in mover.arrivals():
            local, at = out[arrival.destination_rank], arrival.index
            assert np.array_equal(local[at], whole[arrival.global_index])
            assert source.owner([int(i.min()) for i in np.nonzero(np.isin(whole, local[at]))]) == arrival.rank
            seen[arrival.destination_rank][at] += 1
        assert all((one == 1).all() for one in seen)
        mover.wait()


def test_of_blocks_and_several_fields():
    blocks = FloorPlan.even(Region.of_shape((6, 8)), 4)
    u, v = ls.XArray(blocks, int, 1), ls.XArray(blocks, int)
    for k, grid in [*u.items(), *v.items()]:
        grid[...] = k
    listed = BlockPlan(blocks, blocks)
    listed.copy_points([(0, 0), (2, 3)], 0, [(5, 7), (4, 6)], 3)
    mover = ls.bind_together((BlockPlan.halo(blocks, 1), u), (listed, v))
    mover.start()
    arrivals = list(mover.arrivals())
    halo = [arrival for arrival in arrivals if arrival.field == 0]
    assert len(halo) == len(BlockPlan.halo(blocks, 1).motions())
    for arrival in halo:
        assert (u[arrival.block].on(arrival.region) == arrival.rank).all() and arrival.points is None
        assert arrival.index is arrival.global_index is None
    (points,) = [arrival for arrival in arrivals if arrival.field == 1]
    assert (points.block, points.rank, points.destination_rank) == (0, 3, 0)
    assert points.points.tolist() == [[0, 0], [2, 3]] and points.region == Region((0, 0), (3, 4))
    assert repr(points) == "<longshore.Arrival from rank 3: block 0 [0:3, 0:4], 2 points, field 1>"


def test_a_loop_may_be_left_and_taken_up_again():
    rows, columns = ls.Layout("(BLOCK, *) on 3", (9, 9)), ls.Layout("(*, BLOCK) on 3", (9, 9))
    out = ls.empty(columns, float)
    mover = ls.plan(rows, columns, float).bind(ls.scatter(np.ones((9, 9)), rows), out, threads=1)
    with pytest.raises(ls.ArgumentError, match="no move has been started"):
        next(mover.arrivals())
    mover.start()
    first = next(mover.arrivals())
    assert repr(first) == "<longshore.Arrival from rank 0 to rank 0: 9 elements>"
    with pytest.raises(ls.ArgumentError, match="started already"):
        mover.start()
    second = next(mover.arrivals())
    assert (first.rank, first.destination_rank) != (second.rank, second.destination_rank)
    assert len(list(mover.arrivals())) == 7 and mover.test()
    mover.wait()
    with pytest.raises(ls.ArgumentError, match="no move has been started"):
        next(mover.arrivals())
    mover.start()
    next(mover.arrivals())
    mover.wait()
    assert all((array == 1).all() for array in out)
