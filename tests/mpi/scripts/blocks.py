"""Halos and copies between random floor plans under MPI, every way of moving them, against formulas of the global index."""

import sys

import longshore as ls
import numpy as np
from longshore import BlockPlan, FloorPlan, Region, regions
from mpi4py import MPI
from ways import WAYS

comm = MPI.COMM_WORLD
ranks, rank, trials = comm.size, comm.rank, int(sys.argv[1])
random = np.random.default_rng(7)  # the same on all ranks


def values(region, domain, salt):
    """A number for every point of a region, periodic in the domain."""
    axes = [
        (np.arange(lo, hi) - a) % (b - a)
        for lo, hi, a, b in zip(region.lower, region.upper, domain.lower, domain.upper)
    ]
    return salt + sum(np.meshgrid(*(axis * 1000.0**d for d, axis in enumerate(axes)), indexing="ij"))


def random_blocks(domain):
    kind = random.integers(4)
    if kind == 0:
        return FloorPlan.even(domain, int(random.integers(1, ranks + 1)))
    pieces = regions.split_to_size(domain, int(random.integers(2, 6)))
    if kind == 1:
        return FloorPlan.balanced(pieces, ranks)
    return FloorPlan(pieces, random.integers(0, ranks, len(pieces)).tolist())


def arrays_of(blocks, ghost, order, shared):
    if shared:
        return ls.XArray(blocks, float, ghost, order=order, comm=comm), {}
    own = [
        np.zeros(blocks[k].grow(ghost).shape, order=random_order)
        for k in blocks.owned_by(rank)
        for random_order in order
    ]
    return own, {"ghost": ghost}


def grids(array, blocks):
    return array.items() if isinstance(array, ls.XArray) else zip(blocks.owned_by(rank), array)


for trial in range(trials):
    dims = int(random.integers(1, 4))
    domain = Region(tuple(random.integers(-3, 3, dims).tolist()), tuple(random.integers(4, 14, dims).tolist()))
    width, order, shared = int(random.integers(1, 4)), "CF"[random.integers(2)], bool(random.integers(3))
    blocks = random_blocks(domain)
    way = WAYS[random.integers(len(WAYS))]
    periodic = [bool(flag) for flag in random.integers(0, 2, dims)]
    mine = rank if random.integers(2) else None

    u, ghosts = arrays_of(blocks, width, order, shared)
    halo = BlockPlan.halo(blocks, width, domain=domain, periodic=periodic, rank=mine).bind(
        u, comm=comm, **ghosts, **way
    )
    others = random_blocks(domain)
    v, to_ghosts = arrays_of(others, 0, order, bool(random.integers(2)))
    from_ghosts = {"ghost": width} if not shared else {}
    if not shared or to_ghosts:
        to_ghosts = {"destination_ghost": 0} if to_ghosts else {}
    copy = BlockPlan.copy_between(blocks, others, rank=mine).bind(u, v, comm=comm, **from_ghosts, **to_ghosts, **way)
    for salt in (0.5, 0.25):
        for k, grid in grids(u, blocks):
            grid[...] = -1
            np.asarray(grid)[blocks[k].slices(blocks[k].grow(width))] = values(blocks[k], domain, salt)
        comm.Barrier()
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
                np.asarray(grid), want, err_msg=f"trial {trial} halo of block {k} {way} {order}"
            )
        for k, grid in grids(v, others):
            np.testing.assert_array_equal(
                np.asarray(grid), values(others[k], domain, salt), err_msg=f"trial {trial} copy {way}"
            )


def refused(kind, words, work):
    try:
        work()
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"not refused: {words}")


# What is wrong is told on every rank, before anything moves.
blocks = FloorPlan.even(Region.of_shape((4 * ranks, 6)), ranks)
u = ls.XArray(blocks, float, 1, comm=comm)
halo = BlockPlan.halo(blocks, 1)
refused(
    ls.ArgumentError,
    f"has blocks on rank {ranks}",
    lambda: ls.XArray(blocks.with_owners([ranks] * ranks), float, comm=comm),
)
refused(ls.ArgumentError, "exchange is 'mail'", lambda: halo.bind(u, comm=comm, exchange="mail"))
refused(
    ls.ArgumentError, "more ghost cells", lambda: BlockPlan.halo(blocks, 2).bind(u, comm=comm)
) if ranks > 1 else None
if ranks > 1:
    refused(
        ls.DisagreementError,
        "given different things",
        lambda: BlockPlan.halo(blocks, int(rank == 1)).bind(u, comm=comm),
    )
    other = BlockPlan.halo(blocks, 1, rank=0)
    refused(ls.ArgumentError, "the plan is rank 0's, this is rank", lambda: other.bind(u, comm=comm))
    one_bad = ls.XArray(blocks, "float32" if rank == 0 else float, 1, comm=comm)
    refused(ls.DisagreementError, "arrays of different dtypes", lambda: halo.bind(one_bad, comm=comm))

# Two movers in flight, one that is given up, and a reduction.
v, w = ls.XArray(blocks, float, 1, comm=comm), ls.XArray(blocks, float, 1, comm=comm)
by_rows = all(region.shape == (4, 6) for region in blocks)
for way in WAYS:
    movers = [halo.bind(x, comm=comm, **way) for x in (u, v)]
    for salt, x in enumerate((u, v)):
        x[rank].interior[...] = values(blocks[rank], blocks.bounding, salt)
    comm.Barrier()
    for mover in movers:
        mover.start()
    for mover in reversed(movers) if rank % 2 else movers:  # each rank pushes both of them on
        mover.wait()
    for salt, x in enumerate((u, v)):
        for motion in halo.receives(rank):
            want = values(motion.source_region, blocks.bounding, salt)
            np.testing.assert_array_equal(x[rank].on(motion.destination_region), want)
    u[rank][...] = 1
    comm.Barrier()
    halo.reverse().bind(u, comm=comm, combine="add", **way)()
    rows = blocks[rank].lower[0] + np.arange(4)
    want = 1 + np.isin(rows, [r - 1 for r in range(4, 4 * ranks, 4)] + list(range(4, 4 * ranks, 4)))
    if by_rows:
        np.testing.assert_array_equal(u[rank].interior, np.broadcast_to(want[:, None], (4, 6)))
    u[rank][...] = 0
    comm.Barrier()
# The safety-checking mode finds a source that is written too early.
checked = halo.bind(u, comm=comm, checked=True)
checked()
comm.Barrier()
checked.start()
u[rank].interior[...] += 1
if ranks > 1:
    refused(ls.LocalArrayError, "were written between start() and wait()", checked.wait)
else:
    checked.wait()
comm.Barrier()
if rank == 0:
    print(f"{trials} trials moved")
