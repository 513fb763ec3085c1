"""Halos dimension by dimension under MPI, every way of moving them, against the same halos all at once.

mpiexec -n P python run_checks.py "phases.same_as_at_once(40)" phases
"""

import itertools

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check, raises_everywhere
from longshore import BlockPlan, FloorPlan, Region
from ways import WAYS

_WAYS = [way for way in WAYS if not way.get("checked")]


def random_lattice(random, dims):
    """Blocks of one cell and more, in any order, on some of the ranks or on all."""
    cuts = [np.cumsum([0, *random.integers(1, 5, random.integers(1, 4))]) - 2 for _ in range(dims)]
    cells = itertools.product(*(itertools.pairwise(at) for at in cuts))
    regions = [Region(tuple(int(a) for a, _ in cell), tuple(int(b) for _, b in cell)) for cell in cells]
    order = random.permutation(len(regions))
    return FloorPlan([regions[k] for k in order], random.integers(0, random.integers(1, P + 1), len(regions)).tolist())


def fill(u, salt):
    for _, grid in u.items():
        np.asarray(grid)[...] = np.nan
        grid.interior[...] = (
            salt + np.arange(grid.interior.size).reshape(grid.interior.shape) + 1000.0 * grid.region.lower[0]
        )


@check
def same_as_at_once(trials):
    """Also where ranks wait for two of them in different orders, and where several fields are bound together."""
    random = np.random.default_rng(3)  # the same on all ranks
    trial = 0
    while trial < trials:
        dims = int(random.integers(2, 5))
        blocks, order = random_lattice(random, dims), "CF"[random.integers(2)]
        below, above = (random.integers(0, 4 if dims < 4 else 2, dims).tolist() for _ in range(2))
        periodic = [bool(flag) for flag in random.integers(0, 2, dims)]
        plan = BlockPlan.halo(blocks, below, above, domain=blocks.bounding, periodic=periodic, rank=ME)
        if plan.phases_obstacle:
            continue
        trial += 1
        ghost = [max(pair) for pair in zip(below, above)]
        way = _WAYS[random.integers(len(_WAYS))]
        arrays = [ls.XArray(blocks, float, ghost, order=order, comm=WORLD) for _ in range(4)]
        u, v, w, expected = arrays
        movers = [plan.bind((u, v), comm=WORLD, phases=True, **way), plan.bind(w, comm=WORLD, phases=True, **way)]
        assert f"in {len(plan.phases(order))} phases" in movers[0].path, movers[0].path
        at_once = plan.bind(expected, comm=WORLD, phases=False, **way)
        for salt in (0.5, 0.25):
            for array in arrays:
                fill(array, salt)
            WORLD.Barrier()
            for mover in movers:
                mover.start()
            while salt == 0.25 and not movers[0].test():
                pass
            for mover in reversed(movers) if ME % 2 else movers:  # each rank pushes both of them on
                mover.wait()
            at_once()
            for array in (u, v, w):
                for (k, found), (_, wanted) in zip(array.items(), expected.items()):
                    words = f"trial {trial} block {k} {way} {order} {below} {above} {periodic} {blocks}"
                    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted), err_msg=words)


def cube():
    """Enough cells beyond edges and corners that phases are chosen."""
    blocks = FloorPlan.balanced(ls.regions.split_evenly(Region.of_shape((16, 16, 16)), 4), P)
    return blocks, [ls.XArray(blocks, float, 2, comm=WORLD) for _ in range(2)]


@check
def are_chosen():
    blocks, (u, v) = cube()
    halo = BlockPlan.halo(blocks, 2, rank=ME)
    phases = "in 3 phases"
    assert halo.phases_pay and phases in halo.bind(u, comm=WORLD).path
    at_once = [
        (halo, (u, v), {}), (halo, (u,), {"phases": False}), (halo, (u,), {"checked": True}),
        (halo, (u,), {"max_mem": "1 MiB" if ME == P - 1 else None}), (halo, (u,), {"alpha": 2.0}),
        (halo.reverse(), (u,), {"reduce": "add"}), (BlockPlan.halo(blocks, 2, corners=False), (u,), {}),
    ]  # fmt: skip
    for plan, sides, options in at_once:
        assert phases not in plan.bind(*sides, comm=WORLD, **options).path, options
    assert phases in halo.bind(u, comm=WORLD, phases=True, max_mem="1 MiB").path
    rows = ls.Layout(f"(BLOCK, *) on {P}", (4 * P, 4))
    local = ls.empty(rows, float, comm=WORLD)
    together = ls.bind_together((halo, u), (ls.plan(rows, rows, float), local, local.copy()), comm=WORLD)
    assert phases in together.path


@check
def some_ranks_have_a_bound():
    """One field goes in phases on all ranks, another by itself only where there is no bound: all carry it out alike."""
    blocks, (u, v) = cube()
    expected = ls.XArray(blocks, float, 2, comm=WORLD)
    halo = BlockPlan.halo(blocks, 2, rank=ME)
    for bound, node in itertools.product(range(P), ("auto", "ring", "messages")):
        fields = [(halo, u, {"phases": True}), (halo, v)]
        fields = fields if bound % 2 else fields[::-1]
        both = ls.bind_together(*fields, comm=WORLD, node=node, max_mem="8 MiB" if ME == bound else None)
        for array in (u, v, expected):
            fill(array, bound)
        WORLD.Barrier()
        both()
        halo.bind(expected, comm=WORLD, phases=False)()
        for array in (u, v):
            for (k, found), (_, wanted) in zip(array.items(), expected.items()):
                np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted), err_msg=f"block {k}")


@check
def refusals():
    blocks, (u, v) = cube()
    halo = BlockPlan.halo(blocks, 2)
    lacking = BlockPlan.halo(FloorPlan(list(blocks)[1:], blocks.owners[1:]), 2)
    for plan, sides, options, why in (
        (halo, (u, v), {}, "different arrays"),
        (halo, (u,), {"checked": True}, "checked"),
        (halo, (u,), {"alpha": 2.0}, "more than copy"),
        (halo.reverse(), (u,), {}, "it is reversed"),
        (lacking, (ls.XArray(lacking.source, float, 2, comm=WORLD),), {}, "no lattice"),
    ):
        raises_everywhere(ls.ArgumentError, lambda: plan.bind(*sides, comm=WORLD, phases=True, **options), why)
    if P > 1:
        raises_everywhere(ls.DisagreementError, lambda: halo.bind(u, comm=WORLD, phases=ME == 0 or None), "phases")
