"""What a move hands over piece by piece, while it is under way: never before it is there, never twice, and all of it.

mpiexec -n P python run_checks.py "arrivals.of_fields(40)" "arrivals.of_every_kind(40)" arrivals
"""

import random
import sys
import time
from collections import Counter

import block_kinds
import longshore as ls
import numpy as np
import phases
from checks import ME, WORLD, P, check, raises
from fields import BlockField, LayoutField, draw_ways
from longshore import BlockPlan, FloorPlan
from ways import WAYS

POISON = -77


def begun(mover, draw):
    """The arrivals of a move that this rank begins late, sometimes looking elsewhere or leaving the loop."""
    time.sleep(draw.choice([0, 0, 0.002]))
    mover.start()
    if draw.random() < 0.2:
        mover.test()
    for arrival in mover.arrivals():
        yield arrival
        if draw.random() < 0.1:
            break
    if draw.random() < 0.1:
        mover.test()
    yield from mover.arrivals()
    assert mover.test()
    mover.wait()


class OfLayout:
    """Checks the pieces of one field between layouts."""

    def __init__(self, plan, target, expected):
        self.plan, self.target, self.expected = plan, target, expected
        self.marks = None if target is None else np.zeros(target.shape, int)
        shape = plan.destination.shape
        self.numbers = dict(
            zip(plan.destination.ranks, ls.scatter(np.arange(np.prod(shape)).reshape(shape), plan.destination))
        )
        self.owners = np.zeros(plan.source.shape, int)
        for rank in plan.source.ranks:
            self.owners[plan.source.indices(rank)] = rank

    def arrived(self, arrival):
        assert arrival.block is arrival.region is arrival.points is None and arrival.destination_rank == ME
        at = arrival.index
        assert np.array_equal(self.target[at], self.expected[at]), (arrival, self.plan)
        assert not self.marks[at].any() and self.marks[at].size, arrival
        self.marks[at] += 1
        whole = np.arange(self.owners.size).reshape(self.plan.destination.shape)[arrival.global_index]
        assert np.array_equal(whole, self.numbers[ME][at]), arrival
        assert (self.owners[arrival.global_index] == arrival.rank).all(), arrival

    def ended(self):
        assert self.marks is None or (self.marks == 1).all(), self.plan


class OfBlocks:
    """Checks the pieces of one field between blocks."""

    def __init__(self, plans, target, expected):
        self.target, self.expected = dict(target), dict(expected)
        self.wanted = Counter(
            piece(plan.source.owner(m.source), m.destination, m.destination_region, m.destination_points)
            for plan in plans
            for m in plan.motions()
            if plan.destination.owner(m.destination) == ME
        )

    def arrived(self, arrival):
        assert arrival.index is arrival.global_index is None and arrival.destination_rank == ME
        this = piece(arrival.rank, arrival.block, arrival.region, arrival.points)
        assert self.wanted[this] > 0, arrival
        self.wanted[this] -= 1
        found, expected = self.target[arrival.block], self.expected[arrival.block]
        region, at = found.region, ...
        if arrival.points is None:
            at = arrival.region.slices(region)
        else:
            at = tuple((np.reshape(arrival.points, (-1, region.ndim)) - region.lower).T)
        assert np.array_equal(np.asarray(found)[at], np.asarray(expected)[at]), arrival

    def ended(self):
        assert not any(self.wanted.values()), self.wanted


def piece(rank, block, region, points):
    return rank, block, region.lower, region.upper, None if points is None else points.tobytes()


def of_field(field):
    if isinstance(field, LayoutField):
        return OfLayout(field.plan, field.target, field.expected())
    return OfBlocks([field.plan], field.target.items(), field.expected().items())


@check
def of_fields(cases):
    """Several fields together, of layouts and of blocks, that copy, scale and reduce."""
    draw, own = random.Random(P + 7), random.Random(ME)
    for number in range(cases):
        fields = [draw.choice([LayoutField, BlockField])(draw, 10 * number + k) for k in range(draw.randint(1, 3))]
        ways = draw_ways(draw)
        try:
            mover = ls.bind_together(*((field.plan, *field.sides(), field.own) for field in fields), comm=WORLD, **ways)
            for _ in range(3):
                for field in fields:
                    field.fill()
                checks = [of_field(field) for field in fields]
                WORLD.Barrier()
                for arrival in begun(mover, own):
                    checks[arrival.field].arrived(arrival)
                for one in checks:
                    one.ended()
                for field in fields:
                    field.check()
                WORLD.Barrier()
        except BaseException:
            print(f"rank {ME}: case {number}: {ways} {[(f.plan, f.own) for f in fields]}", file=sys.stderr)
            raise


@check
def of_every_kind(trials):
    """Transposes, copies, lists of points and compositions, and sums where several meet."""
    drawn, own = np.random.default_rng(17), random.Random(ME)
    for trial in range(trials):
        kind = block_kinds.KINDS[trial % len(block_kinds.KINDS)]
        whole = kind(drawn)(None)
        way = WAYS[drawn.integers(len(WAYS))]
        try:
            whole.check_races()
            adding = bool(drawn.integers(2))
        except ls.ArgumentError:
            adding = True
        u, v = (ls.XArray(blocks, "i8", comm=WORLD) for blocks in (whole.source, whole.destination))
        alone = [ls.XArray(blocks, "i8") for blocks in (whole.source, whole.destination)]
        reduce = "add" if adding else None
        mover = whole.bind(u, v, comm=WORLD, reduce=reduce, **way)
        for salt in range(3):
            for array in (u, alone[0]):
                for k, grid in array.items():
                    grid[...] = salt + 1000 * k + 1 + np.arange(grid.size).reshape(grid.shape)
            for array in (v, alone[1]):
                for _, grid in array.items():
                    grid[...] = POISON
            whole.bind(*alone, reduce=reduce)()
            one = OfBlocks([whole], v.items(), alone[1].items())
            WORLD.Barrier()
            try:
                for arrival in begun(mover, own):
                    assert arrival.field == 0
                    one.arrived(arrival)
                one.ended()
            except BaseException:
                print(f"rank {ME}: trial {trial} {kind.__name__} {way} {adding=}", file=sys.stderr)
                raise
            WORLD.Barrier()


@check
def of_phases(trials):
    """Halos dimension by dimension."""
    drawn, own = np.random.default_rng(5), random.Random(ME)
    trial = 0
    while trial < trials:
        dims = int(drawn.integers(2, 4))
        blocks, order = phases.random_lattice(drawn, dims), "CF"[drawn.integers(2)]
        plan = BlockPlan.halo(blocks, 1, domain=blocks.bounding, periodic=[bool(drawn.integers(2))] * dims)
        if plan.phases_obstacle:
            continue
        trial += 1
        way = phases._WAYS[drawn.integers(len(phases._WAYS))]
        u, v = (ls.XArray(blocks, float, 1, order=order, comm=WORLD) for _ in range(2))
        alone = [ls.XArray(blocks, float, 1, order=order) for _ in range(2)]
        mover = plan.bind((u, v), comm=WORLD, phases=True, **way)
        for salt in (0.5, 0.25):
            for array in (u, v, *alone):
                phases.fill(array, salt)
            plan.bind(tuple(alone))()
            checks = [
                OfBlocks(plan.phases(order), array.items(), filled.items()) for array, filled in zip((u, v), alone)
            ]
            WORLD.Barrier()
            for arrival in begun(mover, own):
                checks[arrival.field].arrived(arrival)
            for one in checks:
                one.ended()
            WORLD.Barrier()


def transposed(way, shared=False):
    """Rows to columns: a mover, the columns here and what they are to become."""
    rows, columns = ls.Layout(f"(BLOCK, *) on {P}", (8 * P, 5 * P)), ls.Layout(f"(*, BLOCK) on {P}", (8 * P, 5 * P))
    whole = np.arange(40.0 * P * P).reshape(rows.shape)
    source, target = (
        ls.empty(layout, float, comm=WORLD) if shared else ls.empty(layout, float, rank=ME)
        for layout in (rows, columns)
    )
    source[...], target[...] = ls.scatter(whole, rows)[ME], POISON
    return ls.plan(rows, columns, float).bind(source, target, comm=WORLD, **way), target, ls.scatter(whole, columns)[ME]


@check
def before_others_have_started():
    """What a rank has for itself, and then what others bring one after the other, while the rest has not even begun."""
    for way, shared in (
        ({}, True), ({"node": "ring"}, False), ({"node": "messages", "exchange": "p2p"}, False),
        ({"node": "messages", "packet_bytes": 64}, False), ({"node": "messages", "aggregate": False}, True),
    ):  # fmt: skip
        mover, target, expected = transposed(way, shared)
        for _ in range(2):
            target[...] = POISON
            WORLD.Barrier()
            if ME > 0:
                WORLD.recv(source=0)
                mover.start()
                mover.wait()
            else:
                mover.start()
                arrivals = mover.arrivals()
                for rank in (0, *range(P - 1, 0, -1)):
                    if rank > 0:
                        WORLD.send(None, rank)
                    arrival = next(arrivals)
                    assert arrival.rank == rank, (arrival, rank, way)
                    assert np.array_equal(target[arrival.index], expected[arrival.index]), (arrival, way)
                assert list(arrivals) == []
                mover.wait()
            assert np.array_equal(target, expected), way
            WORLD.Barrier()


@check
def at_the_end():
    """A proxy, a checked move and a collective say nothing before all is there, and then everything."""
    for way in ({"proxy": True}, {"checked": True}, {"node": "messages", "exchange": "alltoall"}):
        mover, target, expected = transposed(way, "node" not in way)
        mover.start()
        arrived = [
            arrival.rank
            for arrival in mover.arrivals()
            if np.array_equal(target[arrival.index], expected[arrival.index])
        ]
        assert sorted(arrived) == list(range(P)), (arrived, way)
        mover.wait()


@check
def from_a_rank_that_gives_up():
    """What it has written over meanwhile is never handed over."""
    if P == 1:
        return
    blocks = FloorPlan([ls.Region((k << 20,), (k + 1 << 20,)) for k in range(4)], [1] * 4)
    sink = blocks.with_owners([0] * 4)
    u, v = (ls.XArray(one, float, comm=WORLD) for one in (blocks, sink))
    for k, grid in u.items():
        grid[...] = k + 1
    mover = BlockPlan.copy_between(blocks, sink).bind(u, v, comm=WORLD)
    if ME == 1:
        mover.start()
        del mover
        for _, grid in u.items():
            grid[...] = POISON
        WORLD.send(None, 0)
    elif ME == 0:
        WORLD.recv(source=1)
        mover.start()

        def look():
            for arrival in mover.arrivals():
                assert (v[arrival.block] == arrival.block + 1).all(), arrival

        raises(ls.TransportError, look, "rank 1 has given up")
    WORLD.Barrier()


@check
def mistakes():
    mover, target, expected = transposed({})
    raises(ls.ArgumentError, lambda: list(mover.arrivals()), "no move has been started")
    mover.start()
    first = next(mover.arrivals())
    rest = list(mover.arrivals())
    assert sorted([first.rank, *(one.rank for one in rest)]) == list(range(P))
    assert list(mover.arrivals()) == []
    mover.wait()
    raises(ls.ArgumentError, lambda: next(mover.arrivals()), "no move has been started")
    mover.start()
    next(mover.arrivals())
    mover.wait()  # who leaves the loop
    assert np.array_equal(target, expected)
    mover.start()
    while not mover.test():
        pass
    assert len(list(mover.arrivals())) == P  # all are there
    mover()
    raises(ls.ArgumentError, lambda: next(mover.arrivals()), "no move has been started")
    nothing = ls.bind_together(comm=WORLD)
    nothing.start()
    assert list(nothing.arrivals()) == []
    nothing.wait()


@check
def of_several_ranks():
    """placement="wrap": a process has the blocks and the parts of several ranks."""
    ranks = P + 2
    rows, columns = ls.Layout(f"(BLOCK, *) on {ranks}", (30, 40)), ls.Layout(f"(*, CYCLIC(3)) on {ranks}", (30, 40))
    whole = np.arange(1200.0).reshape(30, 40)
    mine = range(ME, ranks, P)
    source = {r: ls.scatter(whole, rows)[r] for r in mine}
    target = {r: ls.empty(columns, float, rank=r) for r in mine}
    mover = ls.plan(rows, columns, float).bind(source, target, comm=WORLD, placement="wrap")
    for _ in range(2):
        seen = {r: np.zeros(target[r].shape, int) for r in mine}
        mover.start()
        for arrival in mover.arrivals():
            seen[arrival.destination_rank][arrival.index] += 1
            assert np.array_equal(target[arrival.destination_rank][arrival.index], whole[arrival.global_index])
        assert all((one == 1).all() for one in seen.values())
        WORLD.Barrier()
