"""Several fields moved together, and every option with every kind of plan, against the threads engine, which has each
field's arrays of all ranks in every process and moves them one by one.

mpiexec -n P python run_checks.py "fields.together(40)"
"""

import random
import sys

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check, raises_everywhere
from longshore import BlockPlan, FloorPlan, Region, regions

LAYOUTS = ["(BLOCK, *) on {p}", "(*, BLOCK) on {p}", "(CYCLIC, *) on {p}", "(*, CYCLIC(3)) on {p}", "(*, *) on 1"]
DTYPES = ["float64", "float32", "complex128", "int64", "int16", "uint8"]


def numbers(stamp, shape, dtype):
    return np.random.default_rng(stamp).integers(0, 9, shape).astype(dtype)


def draw_update(draw, dtype, blocks):
    """Options of a field; a plan between blocks that overlap within themselves has none that reads what it writes."""
    kind = draw.choice(["copy", "copy", "scale", "reduce"])
    if kind == "scale":
        return {"alpha": draw.choice([2, 3]), "beta": draw.choice([None, 1, 2])}
    if kind == "reduce":
        return {"reduce": draw.choice(["add", "multiply"] if dtype.kind == "c" else ["add", "max", "min"])}
    return {}


class LayoutField:
    def __init__(self, draw, number):
        shape = (draw.choice([1, 5, 24, 97]), draw.choice([1, 7, 33, 64]))
        source, target = (
            ls.Layout(draw.choice(LAYOUTS).format(p=draw.randint(1, P)), shape, order=draw.choice("CF"))
            for _ in range(2)
        )
        self.dtype = np.dtype(draw.choice(DTYPES))
        self.plan = ls.plan(source, target, self.dtype)
        self.own = draw_update(draw, self.dtype, False)
        self.whole, self.old = numbers(number, shape, self.dtype), numbers(number + 1, shape, self.dtype)
        shared = draw.random() < 0.5
        self.source, self.target = (
            ls.empty(layout, self.dtype, comm=WORLD) if shared else ls.empty(layout, self.dtype, rank=ME)
            for layout in (source, target)
        )

    def sides(self):
        return self.source, self.target

    def expected(self):
        parts, old = ls.scatter(self.whole, self.plan.source), ls.scatter(self.old, self.plan.destination)
        self.plan.bind(parts, old, **self.own)()
        return dict(zip(self.plan.destination.ranks, old)).get(ME)

    def fill(self):
        for array, layout, whole in (
            (self.source, self.plan.source, self.whole),
            (self.target, self.plan.destination, self.old),
        ):
            mine = dict(zip(layout.ranks, ls.scatter(whole, layout))).get(ME)
            if mine is not None:
                array[...] = mine

    def check(self):
        expected = self.expected()
        assert expected is None or np.array_equal(self.target, expected), (self.plan, self.own)


class BlockField:
    def __init__(self, draw, number):
        domain = Region((0, 0), (draw.choice([4, 13, 30]), draw.choice([5, 11, 24])))
        pieces = regions.split_to_size(domain, draw.randint(3, 7))
        blocks = FloorPlan(pieces, [draw.randrange(P) for _ in pieces])
        self.dtype = np.dtype(draw.choice(DTYPES))
        self.ghost = draw.randint(1, 2)
        self.order = draw.choice("CF")
        self.halo = draw.random() < 0.6
        if self.halo:
            self.plan = BlockPlan.halo(blocks, self.ghost)
            other = blocks
        else:
            other = FloorPlan.even(domain, P)
            self.plan = BlockPlan.copy_between(blocks, other)
        self.own = draw_update(draw, self.dtype, True)
        self.number = number
        shared = draw.random() < 0.7
        where = {"comm": WORLD} if shared else {"rank": ME}
        self.source = ls.XArray(blocks, self.dtype, self.ghost, order=self.order, **where)
        self.target = self.source
        if not self.halo:
            self.target = ls.XArray(other, self.dtype, self.ghost, order=self.order, **where)

    def sides(self):
        return self.source, None if self.halo else self.target

    def fill_array(self, array, stamp):
        for k, grid in array.items():
            grid[...] = numbers(stamp * 1000 + k, grid.shape, self.dtype)

    def fill(self):
        self.fill_array(self.source, self.number)
        if not self.halo:
            self.fill_array(self.target, self.number + 1)

    def expected(self):
        source = ls.XArray(self.plan.source, self.dtype, self.ghost, order=self.order)
        target = source
        self.fill_array(source, self.number)
        if not self.halo:
            target = ls.XArray(self.plan.destination, self.dtype, self.ghost, order=self.order)
            self.fill_array(target, self.number + 1)
        self.plan.bind(source, None if self.halo else target, **self.own)()
        return target

    def check(self):
        expected = dict(self.expected().items())
        for k, grid in self.target.items():
            assert np.array_equal(grid, expected[k]), (self.plan, self.own, k)


def draw_ways(draw):
    ways = {
        "node": draw.choice(["auto", "auto", "direct", "ring", "messages"]),
        "aggregate": draw.random() < 0.8,
        "preallocate": draw.random() < 0.8,
        "checked": draw.random() < 0.3,
        "proxy": draw.random() < 0.2,
        "exchange": draw.choice(["auto", "auto", "p2p", "neighborhood", "alltoall"]),
        "packet_bytes": draw.choice([0, 0, 64, 4096]),
        "max_mem": draw.choice([None, None, "64KiB"]),
    }
    from mpi4py import MPI

    if ways["node"] == "messages" and MPI.Query_thread() != MPI.THREAD_MULTIPLE:
        ways["proxy"] = False
    return ways


@check
def together(cases):
    draw = random.Random(P)
    for number in range(cases):
        fields = [draw.choice([LayoutField, BlockField])(draw, 10 * number + k) for k in range(draw.randint(1, 4))]
        ways = draw_ways(draw)
        try:
            mover = ls.bind_together(*((field.plan, *field.sides(), field.own) for field in fields), comm=WORLD, **ways)
            for _ in range(2):
                for field in fields:
                    field.fill()
                WORLD.Barrier()
                mover()
                for field in fields:
                    field.check()
                WORLD.Barrier()
        except BaseException:
            print(f"rank {ME}: case {number}: {ways} {[(f.plan, f.own) for f in fields]}", file=sys.stderr)
            raise


@check
def of_one_plan():
    """Several arrays of one plan, most of them alike, some elsewhere or in another order: each as if it were alone."""
    draw = random.Random(P + 1)
    for number in range(12):
        first = BlockField(draw, 100 * number)
        fields = [first]
        for k in range(1, draw.randint(2, 5)):
            other = BlockField(draw, 100 * number + 10 * k)
            other.plan, other.halo, other.own = first.plan, first.halo, draw.choice([first.own, {}])
            other.ghost = first.ghost + draw.choice([0, 0, 0, 1])
            other.dtype, other.order = first.dtype, first.order if draw.random() < 0.8 else draw.choice("CF")
            where = {"comm": WORLD} if draw.random() < 0.7 else {"rank": ME}
            other.source, other.target = (
                ls.XArray(blocks, other.dtype, other.ghost, order=other.order, **where)
                for blocks in (first.plan.source, first.plan.destination)
            )
            if other.halo:
                other.target = other.source
            fields.append(other)
        ways = draw_ways(draw)
        mover = ls.bind_together(*((field.plan, *field.sides(), field.own) for field in fields), comm=WORLD, **ways)
        for _ in range(2):
            for field in fields:
                field.fill()
            WORLD.Barrier()
            mover()
            for field in fields:
                field.check()
            WORLD.Barrier()


@check
def one_message_a_peer():
    """Three fields through MPI are as many messages as one: what goes between two ranks is joined."""
    if P == 1:
        return
    rows, columns = ls.Layout(f"(BLOCK, *) on {P}", (12, 16)), ls.Layout(f"(*, BLOCK) on {P}", (12, 16))
    plan = ls.plan(rows, columns, float)
    wholes = [np.arange(192.0).reshape(12, 16) + 1000 * k for k in range(3)]
    sources = tuple(ls.scatter(whole, rows)[ME] for whole in wholes)
    targets = tuple(ls.empty(columns, float, rank=ME) for _ in wholes)
    for node in ("auto", "ring", "messages"):
        for target in targets:
            target[...] = -1
        mover = plan.bind(sources, targets, comm=WORLD, node=node)
        pairs = ((plan, *sides) for sides in zip(sources, targets))
        assert mover.path == ls.bind_together(*pairs, comm=WORLD, node=node).path, node
        assert ("MPI messages" in mover.path) == (node == "messages"), mover.path
        mover()
        assert mover.moved_bytes == 3 * targets[0].nbytes
        for whole, target in zip(wholes, targets):
            assert np.array_equal(target, ls.scatter(whole, columns)[ME]), node


@check
def none():
    mover = ls.bind_together(comm=WORLD)
    mover()
    assert mover.moved_bytes == 0


@check
def refusals():
    rows, columns = ls.Layout(f"(BLOCK, *) on {P}", (8, 8)), ls.Layout(f"(*, BLOCK) on {P}", (8, 8))
    plan = ls.plan(rows, columns, float)
    a, b = ls.empty(rows, float, rank=ME), ls.empty(columns, float, rank=ME)
    c, d = ls.empty(rows, float, rank=ME), ls.empty(columns, float, rank=ME)
    refused = raises_everywhere
    if ls.Layout("(BLOCK, *) on 1", (8, 8)).ranks and P > 1:
        # One rank alone brings other fields, another order of them, or fields that share memory.
        own = (a,) if ME == 1 else (a, c)
        refused(ls.LongshoreError, lambda: plan.bind(own, (b, d)[: len(own)], comm=WORLD), "field")
        where = b if ME == 1 else d
        refused(ls.LocalArrayError, lambda: plan.bind((a, c), (b, where), comm=WORLD), "share memory")
        how = {"reduce": "add"} if ME == 1 else {"reduce": "max"}
        refused(ls.DisagreementError, lambda: ls.bind_together((plan, a, b), (plan, c, d, how), comm=WORLD), "field 1")
    refused(ls.ArgumentError, lambda: plan.bind((a, c), b, comm=WORLD), "2 fields")
    refused(ls.ArgumentError, lambda: plan.bind(a, b, alpha=2, reduce="add", comm=WORLD), "one or the other")
    refused(ls.ArgumentError, lambda: ls.bind_together((plan, a, b, {"speed": 3}), comm=WORLD), "no option 'speed'")
    refused(ls.ArgumentError, lambda: ls.bind_together(3, comm=WORLD), "field 0")
    refused(ls.ArgumentError, lambda: ls.bind_together((plan, a, b, [1]), comm=WORLD), "field 0 ends with list")


@check
def blocks_of_several_ranks():
    """placement="wrap" of plans between blocks: a process has the blocks of all ranks that are its own modulo P."""
    domain = Region((0, 0), (20, 9))
    ranks = P + 2
    pieces = regions.split_to_size(domain, 4)
    blocks = FloorPlan(pieces, [k % ranks for k in range(len(pieces))])
    plan = BlockPlan.halo(blocks, 1)
    mine = {r: ls.XArray(blocks, float, 1, rank=r) for r in range(ME, ranks, P)}
    whole = ls.XArray(blocks, float, 1)
    for arrays in (*mine.values(), whole):
        for k, grid in arrays.items():
            grid[...] = k
    plan.bind(whole)()
    plan.bind(mine, comm=WORLD, placement="wrap")()
    expected = dict(whole.items())
    for arrays in mine.values():
        for k, grid in arrays.items():
            assert np.array_equal(grid, expected[k]), k
    if P == 2:
        wrong = mine if ME == 0 else {1: mine[1]}
        raises_everywhere(
            ls.ArgumentError, lambda: plan.bind(wrong, comm=WORLD, placement="wrap"), "needs those of rank 3"
        )
