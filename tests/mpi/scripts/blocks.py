"""Halos and copies between random floor plans under MPI, every way of moving them, against formulas of the indices.

mpiexec -n P python run_checks.py "blocks.halos_and_copies(40)" blocks
"""

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check, raises, raises_everywhere
from longshore import BlockPlan, FloorPlan, Region, regions
from ways import WAYS


def values(region, domain, salt):
    """A number for every point of a region, periodic in the domain."""
    axes = [
        (np.arange(lo, hi) - a) % (b - a)
        for lo, hi, a, b in zip(region.lower, region.upper, domain.lower, domain.upper)
    ]
    return salt + sum(np.meshgrid(*(axis * 1000.0**d for d, axis in enumerate(axes)), indexing="ij"))


def random_blocks(random, domain):
    kind = random.integers(4)
    if kind == 0:
        return FloorPlan.even(domain, int(random.integers(1, P + 1)))
    pieces = regions.split_to_size(domain, int(random.integers(2, 6)))
    if kind == 1:
        return FloorPlan.balanced(pieces, P)
    return FloorPlan(pieces, random.integers(0, P, len(pieces)).tolist())


def shared_view(random, shape):
    """An array in memory that ranks share, with any strides: a view of a larger one."""
    dims = len(shape)
    axes, steps = random.permutation(dims), random.integers(1, 3, dims)
    whole = [int(shape[d] * step + 1) for d, step in zip(axes, steps)]
    layout = ls.Layout(f"({', '.join('*' * dims)}) on 1", whole, ranks=[ME])
    array = ls.empty(layout, float, comm=WORLD)
    array = array[tuple(slice(1, 1 + shape[d] * step, step) for d, step in zip(axes, steps))]
    if random.integers(2):
        array = array[::-1]
    return array.transpose(np.argsort(axes))


KINDS = ["private", "xarray", "views", "views and xarrays"]


def arrays_of(blocks, ghost, order, kind, trial):
    """This rank's arrays, what to say of them, and whether the others of the node can see everybody's."""
    if kind == "xarray" or (kind == "views and xarrays" and ME % 2):
        return ls.XArray(blocks, float, ghost, order=order if kind == "xarray" else "C", comm=WORLD), {}
    shapes = [blocks.grow(ghost)[k].shape for k in blocks.owned_by(ME)]
    if kind == "private":
        return [np.zeros(shape, order=order) for shape in shapes], {"ghost": ghost}
    random = np.random.default_rng([trial, ME])
    return [shared_view(random, shape) for shape in shapes], {"ghost": ghost}


def grids(array, blocks):
    return array.items() if isinstance(array, ls.XArray) else zip(blocks.owned_by(ME), array)


@check
def halos_and_copies(trials):
    random = np.random.default_rng(7)  # the same on all ranks
    for trial in range(trials):
        dims = int(random.integers(1, 4))
        domain = Region(tuple(random.integers(-3, 3, dims).tolist()), tuple(random.integers(4, 14, dims).tolist()))
        width, order, kind = int(random.integers(1, 4)), "CF"[random.integers(2)], KINDS[random.integers(3)]
        blocks = random_blocks(random, domain)
        way = WAYS[random.integers(len(WAYS))]
        periodic = [bool(flag) for flag in random.integers(0, 2, dims)]
        mine = ME if random.integers(2) else None

        wide = tuple((width + int(random.integers(2)), width + int(random.integers(2))) for _ in range(dims))
        stored = blocks.grow(wide)
        u, ghosts = arrays_of(blocks, wide, order, kind, trial)
        halo = BlockPlan.halo(blocks, width, domain=domain, periodic=periodic, rank=mine).bind(
            u, comm=WORLD, **ghosts, **way
        )
        others = random_blocks(random, domain)
        other_kind = KINDS[random.integers(3 if kind == "xarray" else 4)]
        into = int(random.integers(3))  # ghost cells of the destination that are written, too
        with_ghosts = others.grow(into)
        if other_kind == "xarray":
            v, to_ghosts = arrays_of(others, into, order, other_kind, trial)
        else:
            v, to_ghosts = arrays_of(with_ghosts, 0, order, other_kind, trial)
        to_ghosts = {"destination_ghost": 0} if to_ghosts else {}
        copy = BlockPlan.copy_between(blocks, with_ghosts, rank=mine).bind(
            u, v, comm=WORLD, **ghosts, **to_ghosts, **way
        )
        for mover, kinds in ((halo, {kind}), (copy, {kind, other_kind})):
            if kinds != {"private"}:
                assert mover.obstacle == "", mover.path
                assert way != {"node": "direct"} or "ring" not in mover.path, mover.path
            elif mover.obstacle:
                assert way.get("node", "auto") == "auto" and "private memory" in mover.obstacle, mover.obstacle
        for salt in (0.5, 0.25):
            for k, grid in grids(u, blocks):
                grid[...] = -1
                np.asarray(grid)[blocks[k].slices(stored[k])] = values(blocks[k], domain, salt)
            WORLD.Barrier()
            halo.start()
            while salt == 0.25 and not halo.test():
                pass
            halo.wait()
            copy()
            for k, grid in grids(u, blocks):
                region = blocks[k].grow(width)
                want = values(region, domain, salt)
                for d in range(dims):
                    if not periodic[d]:
                        at = np.arange(region.lower[d], region.upper[d])
                        outside = (at < domain.lower[d]) | (at >= domain.upper[d])
                        want[tuple(outside if e == d else slice(None) for e in range(dims))] = -1
                np.testing.assert_array_equal(
                    np.asarray(grid)[region.slices(stored[k])],
                    want,
                    err_msg=f"trial {trial} halo of block {k} {way} {order}",
                )
            for k, grid in grids(v, others):
                inside = with_ghosts[k] & domain
                np.testing.assert_array_equal(
                    np.asarray(grid)[inside.slices(with_ghosts[k])],
                    values(inside, domain, salt),
                    err_msg=f"trial {trial} copy {way}",
                )


def rows_of_ranks():
    """Four rows a rank, with a ghost cell all around."""
    blocks = FloorPlan.even(Region.of_shape((4 * P, 6)), P)
    return blocks, ls.XArray(blocks, float, 1, comm=WORLD), BlockPlan.halo(blocks, 1)


@check
def refusals():
    """What is wrong is told on every rank, before anything moves."""
    blocks, u, halo = rows_of_ranks()
    raises(
        ls.ArgumentError,
        lambda: ls.XArray(blocks.with_owners([P] * P), float, comm=WORLD),
        f"has blocks on rank {P}",
    )
    raises(ls.ArgumentError, lambda: halo.bind(u, comm=WORLD, exchange="mail"), "exchange is 'mail'")
    if P > 1:
        raises(ls.ArgumentError, lambda: BlockPlan.halo(blocks, 2).bind(u, comm=WORLD), "more ghost cells")
        raises(
            ls.DisagreementError,
            lambda: BlockPlan.halo(blocks, int(ME == 1)).bind(u, comm=WORLD),
            "given different things",
        )
        other = BlockPlan.halo(blocks, 1, rank=0)
        raises(ls.ArgumentError, lambda: other.bind(u, comm=WORLD), "the plan is rank 0's, this is rank")
        one_bad = ls.XArray(blocks, "float32" if ME == 0 else float, 1, comm=WORLD)
        raises(ls.DisagreementError, lambda: halo.bind(one_bad, comm=WORLD), "elements of 8 bytes (float64)")


@check
def two_in_flight_and_reductions():
    blocks, u, halo = rows_of_ranks()
    v = ls.XArray(blocks, float, 1, comm=WORLD)
    by_rows = all(region.shape == (4, 6) for region in blocks)
    for way in WAYS:
        movers = [halo.bind(x, comm=WORLD, **way) for x in (u, v)]
        for salt, x in enumerate((u, v)):
            x[ME].interior[...] = values(blocks[ME], blocks.bounding, salt)
        WORLD.Barrier()
        for mover in movers:
            mover.start()
        for mover in reversed(movers) if ME % 2 else movers:  # each rank pushes both of them on
            mover.wait()
        for salt, x in enumerate((u, v)):
            for motion in halo.receives(ME):
                want = values(motion.source_region, blocks.bounding, salt)
                np.testing.assert_array_equal(x[ME].on(motion.destination_region), want)
        u[ME][...] = 1
        WORLD.Barrier()
        halo.reverse().bind(u, comm=WORLD, reduce="add", **way)()
        rows = blocks[ME].lower[0] + np.arange(4)
        want = 1 + np.isin(rows, [r - 1 for r in range(4, 4 * P, 4)] + list(range(4, 4 * P, 4)))
        if by_rows:
            np.testing.assert_array_equal(u[ME].interior, np.broadcast_to(want[:, None], (4, 6)))
        u[ME][...] = 0
        WORLD.Barrier()


@check
def checked_mode():
    """The safety-checking mode finds a source that is written too early."""
    _, u, halo = rows_of_ranks()
    u[ME][...] = 0
    WORLD.Barrier()
    checked = halo.bind(u, comm=WORLD, checked=True)
    checked()
    WORLD.Barrier()
    checked.start()
    u[ME].interior[...] += 1
    if P > 1:
        raises(ls.LocalArrayError, checked.wait, "was written between start() and wait()")
    else:
        checked.wait()
    WORLD.Barrier()


@check
def whole_arrays():
    """What one rank has whole is dealt to blocks and comes back; one rank's mistake is told to all."""
    domain = Region((-2, 3), (5 + 2 * P, 14))
    whole = values(domain, domain, 0.5)
    last = P - 1
    pieces = regions.split_to_size(domain, 4)
    blocks = FloorPlan(pieces, [k % P for k in range(len(pieces))])
    for root in {0, last}:
        for plan in (blocks, blocks.with_owners([last] * len(pieces)), FloorPlan([domain], [0])):
            for full, order in ((whole, "C"), (np.asfortranarray(whole), "F"), (whole[::-1], "C")):
                u = ls.XArray(plan, float, 1, order=order, comm=WORLD)
                assert ls.scatter(full if ME == root else None, u, comm=WORLD, root=root) is u
                for k, grid in u.items():
                    np.testing.assert_array_equal(grid.interior, full[plan[k].slices(domain)])
                    assert np.count_nonzero(grid) == plan[k].size
                for out in (None, np.empty(domain.shape)):
                    again = ls.gather(u, out=out, comm=WORLD, root=root)
                    assert ME == root or again is None
                    if ME == root:
                        assert out is None or again is out
                        np.testing.assert_array_equal(again, full)
    u = ls.XArray(blocks, float, comm=WORLD)
    layout = ls.Layout(f"(BLOCK, *) on {P}", domain.shape)
    raises_everywhere(ls.ArgumentError, lambda: ls.scatter(whole, u, comm=WORLD, root=P), f"root is {P}")
    raises_everywhere(ls.ArgumentError, lambda: ls.gather(u, comm=WORLD, root=-1), "root is -1")
    for who in range(P):
        whose = [f"rank {who}"] if P > 1 else []
        for wrong, kind, words in (
            (whole[1:], ls.ShapeError, "the array has shape"),
            (whole.astype("f4"), ls.DTypeError, "the array has dtype float32"),
            (None, ls.ArgumentError, "expected an array"),
        ):
            given = wrong if ME == who else whole
            raises_everywhere(kind, lambda: ls.scatter(given, u, comm=WORLD, root=who), words, *whose)
        short = np.empty(3) if ME == who else None
        raises_everywhere(ls.ShapeError, lambda: ls.gather(u, out=short, comm=WORLD, root=who), "out has shape (3,)")
        raises_everywhere(
            ls.ArgumentError,
            lambda: ls.gather(u, layout if ME == who else None, comm=WORLD),
            "leave layout out",
            *whose,
        )
        if P > 1:
            other = layout if ME == who else u
            words = "an XArray", f"rank {who or 1} "
            raises_everywhere(ls.DisagreementError, lambda: ls.scatter(whole, other, comm=WORLD), *words)
            raises_everywhere(ls.DisagreementError, lambda: ls.gather(other, comm=WORLD), "an XArray")
            raises_everywhere(ls.DisagreementError, lambda: ls.scatter(whole, u, comm=WORLD, root=int(ME == who)))
    np.testing.assert_array_equal([np.count_nonzero(grid) for grid in u], [0] * len(u.owned))
