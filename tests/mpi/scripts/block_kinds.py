"""Plans of every kind under MPI, every way of moving them, against the motions carried out one by one in every process.

mpiexec -n P python run_checks.py "block_kinds.every_kind(40)"
"""

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check
from longshore import BlockPlan, FloorPlan, Region, regions
from ways import WAYS


def random_region(random, dims):
    lower = random.integers(-4, 5, dims)
    return Region(tuple(lower.tolist()), tuple((lower + random.integers(3, 12, dims)).tolist()))


def random_blocks(random, domain):
    if random.integers(3) == 0:
        return FloorPlan.even(domain, int(random.integers(1, P + 1)))
    pieces = regions.split_to_size(domain, int(random.integers(2, 7)))
    return FloorPlan(pieces, random.integers(0, P, len(pieces)).tolist())


def transposes(random):
    domain = random_region(random, int(random.integers(2, 4)))
    axes = random.permutation(domain.ndim).tolist()
    turned = Region(tuple(domain.lower[a] for a in axes), tuple(domain.upper[a] for a in axes))
    source, destination = random_blocks(random, domain), random_blocks(random, turned)
    return lambda mine: BlockPlan.transpose(source, destination, axes, rank=mine)


def periodic_copies(random):
    domain = random_region(random, int(random.integers(1, 4)))
    source, around = random_blocks(random, domain), random_blocks(random, domain.grow(int(random.integers(0, 4))))
    return lambda mine: BlockPlan.copy_between(source, around, domain=domain, periodic=[True] * domain.ndim, rank=mine)


def meshes(random):
    blocks = random_blocks(random, Region((0,), (int(random.integers(1, 400)),)))
    points = blocks.bounding.size
    needed = [random.integers(0, points, random.integers(0, 60)) for _ in range(len(blocks))]
    back = bool(random.integers(2))

    def make(mine):
        plan = BlockPlan.gather_points(blocks, needed, rank=mine)
        return plan.reverse() if back else plan

    return make


def lists(random):
    """By hand: listed points and boxes of any shape; every block is written by boxes alone or by lists."""
    dims = int(random.integers(1, 4))
    source, destination = (
        random_blocks(random, random_region(random, dims)),
        random_blocks(random, random_region(random, dims)),
    )
    plan = BlockPlan(source, destination)
    for k, region in enumerate(destination):
        points = np.stack(np.unravel_index(random.permutation(region.size), region.shape), axis=-1) + region.lower
        for some in np.array_split(points, random.integers(1, 4)):
            j = int(random.integers(len(source)))
            if len(some) and source[j].size:
                where = random.integers(source[j].lower, source[j].upper, (len(some), dims))
                plan.copy_points(some[:, 0] if dims == 1 else some, k, where[:, 0] if dims == 1 else where, j)
    return lambda mine: plan


def composed(random):
    domain = random_region(random, 2)
    one, two, three = (random_blocks(random, region) for region in (domain, domain.grow(1), domain))
    plan = BlockPlan.copy_between(one, two).compose(BlockPlan.transpose(two, three, (0, 1)))
    return lambda mine: plan


def carry_out(plan, sources, destinations, adding):
    for motion in plan.motions():
        from_, to = sources[motion.source], destinations[motion.destination]
        if motion.source_points is not None:
            at, there = (
                tuple((np.reshape(points, (motion.points, -1)) - region.lower).T)
                for points, region in (
                    (motion.destination_points, plan.destination[motion.destination]),
                    (motion.source_points, plan.source[motion.source]),
                )
            )
            (np.add.at if adding else np.ndarray.__setitem__)(to, at, from_[there])
            continue
        part = from_[motion.source_region.slices(plan.source[motion.source])]
        if motion.axes is not None:
            part = part.transpose(motion.axes)
        into = to[motion.destination_region.slices(plan.destination[motion.destination])]
        part = part.reshape(-1, order="F").reshape(into.shape, order="F")
        into[...] = into + part if adding else part


KINDS = [transposes, periodic_copies, meshes, lists, composed]


@check
def every_kind(trials):
    random = np.random.default_rng(11)  # the same on all ranks
    moved = {kind.__name__: 0 for kind in KINDS}
    for trial in range(trials):
        kind = KINDS[trial % len(KINDS)]
        make = kind(random)
        whole = make(None)
        way = WAYS[random.integers(len(WAYS))]
        order, dtype = "CF"[random.integers(2)], ["f8", "i4", "c16"][random.integers(3)]
        try:
            whole.check_races()
            adding = bool(random.integers(2))
        except ls.ArgumentError:  # vertices that several ghosts stand for
            adding = True
        plan = make(ME if random.integers(2) else None)
        arrays = [
            ls.XArray(blocks, dtype, order=order, comm=WORLD)
            if random.integers(3)
            else [np.zeros(blocks[k].shape, dtype, order=order) for k in blocks.owned_by(ME)]
            for blocks in (whole.source, whole.destination)
        ]
        loose = {"ghost": 0} if not isinstance(arrays[0], ls.XArray) else {}
        if not isinstance(arrays[1], ls.XArray):
            loose["destination_ghost"] = 0
        move = plan.bind(*arrays, comm=WORLD, reduce="add" if adding else None, visit=order, **loose, **way)
        for salt in range(2):
            sources = [
                salt + 1000 * k + np.arange(region.size, dtype=dtype).reshape(region.shape)
                for k, region in enumerate(whole.source)
            ]
            destinations = [np.full(region.shape, -k, dtype) for k, region in enumerate(whole.destination)]
            for array, values in zip(arrays, (sources, destinations)):
                blocks = whole.source if values is sources else whole.destination
                mine = array.items() if isinstance(array, ls.XArray) else zip(blocks.owned_by(ME), array)
                for k, grid in mine:
                    grid[...] = values[k]
            WORLD.Barrier()
            move()
            carry_out(whole, sources, destinations, adding)
            mine = (
                arrays[1].items()
                if isinstance(arrays[1], ls.XArray)
                else zip(whole.destination.owned_by(ME), arrays[1])
            )
            for k, grid in mine:
                np.testing.assert_array_equal(
                    np.asarray(grid), destinations[k], err_msg=f"trial {trial} {kind.__name__} block {k} {way}"
                )
            WORLD.Barrier()
        moved[kind.__name__] += sum(points for *_, points in whole.volumes())

    assert trials < 25 or all(moved.values()), moved
