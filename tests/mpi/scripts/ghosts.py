"""Plans of which each rank knows only what it needs itself, against those made from everybody's lists.

mpiexec -n P python run_checks.py ghosts
"""

import ctypes
import gc

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check, raises, raises_everywhere
from longshore import BlockPlan, Directory, FloorPlan, Region

BIG = 2**63 - 1


def ranges(random, vertices, blocks):
    """Blocks of one dimension in any order, of any owners, some of them empty."""
    cuts = np.sort(random.integers(0, vertices + 1, blocks - 1)).tolist()
    regions = [Region((a,), (b,)) for a, b in zip([0, *cuts], [*cuts, vertices])]
    order = random.permutation(blocks)
    return FloorPlan([regions[k] for k in order], random.integers(0, P, blocks).tolist())


def same_as_from_all_lists(blocks, needed):
    """Of two ways to plan, the one by messages; bound and moved."""
    own = blocks.owned_by(ME)
    plan = BlockPlan.gather_points(blocks, [needed[k] for k in own], comm=WORLD)
    twin = BlockPlan.gather_points(blocks, needed, rank=ME)
    whole = BlockPlan.gather_points(blocks, needed)
    assert plan == twin and plan.digest == twin.digest == whole.digest, (plan, twin)
    assert plan.rank == ME and plan.motions() == twin.motions()
    assert plan.reverse() == twin.reverse() and plan.reverse().digest == whole.reverse().digest
    assert plan.sends(ME) == whole.sends(ME) and plan.receives(ME) == whole.receives(ME)
    assert BlockPlan.from_bytes(plan.to_bytes()) == plan

    u = ls.XArray(plan.source, float, comm=WORLD)
    for k in own:
        u[k].on(blocks[k])[...] = np.arange(*blocks[k].lower, *blocks[k].upper) * 3.0
    plan.bind(u, comm=WORLD)()
    for k in own:
        np.testing.assert_array_equal(u[k][blocks[k].size :], np.asarray(needed[k]) * 3.0)
    sums = ls.XArray(plan.source, float, comm=WORLD)
    for k in own:
        sums[k][blocks[k].size :] = 1
    plan.reverse().bind(sums, comm=WORLD, reduce="add")()
    counts = np.bincount(np.concatenate(needed).astype(int), minlength=blocks.bounding.upper[0])
    for k in own:
        np.testing.assert_array_equal(sums[k].on(blocks[k]), counts[blocks[k].lower[0] : blocks[k].upper[0]])
    return plan


@check
def ranges_of_vertices():
    random = np.random.default_rng(7)
    for trial in range(25):
        vertices = int(random.choice([1, 2, 7, 97, 1009]))
        blocks = ranges(random, vertices, int(random.integers(1, 2 * P + 2)))
        needed = [random.integers(0, vertices, random.integers(0, 60)) for _ in blocks]
        if trial % 3 == 0:
            needed = [some if k % 2 else some[:0] for k, some in enumerate(needed)]
        same_as_from_all_lists(blocks, needed)


@check
def ranges_at_the_edges():
    none = FloorPlan([], [])
    assert BlockPlan.gather_points(none, [], comm=WORLD) == BlockPlan.gather_points(none, [], rank=ME)
    even = FloorPlan.even(Region.of_shape(23 * P), P)
    everything = np.arange(23 * P)
    same_as_from_all_lists(even, [[]] * P)  # nothing needed
    same_as_from_all_lists(even, [[5]] + [[]] * (P - 1))  # one vertex by one rank
    same_as_from_all_lists(even, [everything[::-1]] * P)  # all by all, their own too, backwards
    same_as_from_all_lists(even, [np.repeat(everything[-5:], 3)] * P)  # one vertex several times
    same_as_from_all_lists(FloorPlan.even(Region.of_shape(1), P), [[0, 0]] * P)  # more ranks than vertices
    same_as_from_all_lists(even.with_owners([P - 1] * P), [[k] for k in range(P)])  # all on one rank
    # A rank of one block may give the numbers alone, as any integers.
    mine = np.array([22, 0], np.uint8)
    plan = BlockPlan.gather_points(even, mine, comm=WORLD, rank=ME)
    assert plan == BlockPlan.gather_points(even, [mine] * P, rank=ME)
    assert plan == BlockPlan.gather_points(even, mine.tolist(), comm=WORLD)
    assert BlockPlan.gather_points(even, [mine] * P, comm=None) == BlockPlan.gather_points(even, [mine] * P)
    # Vertices far out.
    far = FloorPlan([Region((-BIG,), (-BIG + 2,)), Region((BIG - 9,), (BIG - 5,))], [0, P - 1])
    lists = [[BIG - 6, BIG - 9], [-BIG + 1]]
    plan = BlockPlan.gather_points(far, [lists[k] for k in far.owned_by(ME)], comm=WORLD)
    assert plan == BlockPlan.gather_points(far, lists, rank=ME)


def numbering(random, count, spread):
    """Numbers that ranks own, of which some are near 2^63, and what each rank needs of others."""
    numbers = random.permutation(spread)[:count] if spread < 10**6 else random.integers(0, spread, count)
    numbers = np.unique(np.concatenate([numbers, [BIG, BIG - 1, BIG - 64][: count // 3]]).astype(np.int64))
    owner = random.integers(0, P, numbers.size)
    owned = [random.permutation(numbers[owner == r]) for r in range(P)]
    needed = []
    for r in range(P):
        others = numbers[owner != r]
        needed.append(random.choice(others, random.integers(0, 80)) if others.size else others)
    return owned, needed


def planned(owned, needed):
    """A plan from the directory: bound and moved, there and back."""
    owned, needed = ([np.asarray(some, np.int64) for some in side] for side in (owned, needed))
    values = {int(n): float(n % 9973) for some in owned for n in some}
    directory = Directory(owned[ME], comm=WORLD)
    assert len(directory) == len(owned[ME]) and directory.workspace_bytes >= 0
    plan = directory.gather_points(needed[ME])
    assert plan.rank == ME and len(plan.source) == P and plan.source == plan.destination
    n = len(owned[ME])
    assert plan.source[ME] == Region((0,), (n + len(needed[ME]),))
    # The twin: vertices owned in ranges, numbered in the order of ranks and their places.
    first = np.cumsum([0] + [len(some) for some in owned])
    vertex = {int(number): first[r] + i for r, some in enumerate(owned) for i, number in enumerate(some)}
    blocks = FloorPlan([Region((a,), (b,)) for a, b in zip(first.tolist(), first[1:].tolist())], range(P))
    twin = BlockPlan.gather_points(blocks, [[vertex[int(x)] for x in some] for some in needed], rank=ME)
    assert len(plan.motions()) == len(twin.motions())
    for m, t in zip(plan.motions(), twin.motions()):
        assert (m.source, m.destination) == (t.source, t.destination)
        np.testing.assert_array_equal(m.source_points, t.source_points - first[m.source])
        np.testing.assert_array_equal(m.destination_points, t.destination_points - first[m.destination])
    assert plan.volumes() == twin.volumes()

    u = ls.XArray(plan.source, float, comm=WORLD)
    u[ME][:n] = [values[int(x)] for x in owned[ME]]
    plan.bind(u, comm=WORLD)()
    assert u[ME][n:].tolist() == [values[int(x)] for x in needed[ME]]
    sums = [np.concatenate([np.zeros(n), np.ones(len(needed[ME]))])]
    plan.reverse().bind(sums, comm=WORLD, reduce="add")()
    wanted = np.concatenate(needed)
    assert sums[0][:n].tolist() == [float((wanted == x).sum()) for x in owned[ME]]

    ranks, places = directory.find(np.concatenate([*needed, np.array([-1, -BIG - 1])]))
    assert ranks.dtype == places.dtype == np.int64 and ranks.shape == places.shape
    for number, rank, place in zip(wanted, ranks, places):
        assert owned[rank][place] == number
    assert ranks[-2:].tolist() == places[-2:].tolist() == [-1, -1]


@check
def owned_as_they_please():
    random = np.random.default_rng(11)
    for _ in range(12):
        planned(*numbering(random, int(random.choice([1, 2, 7, 31, 101, 499])), int(random.choice([600, BIG]))))


@check
def directories_at_the_edges():
    empty = [np.zeros(0, np.int64)] * P
    planned(empty, empty)  # nobody owns or needs anything
    planned([[BIG]] + empty[1:], [[]] + [[BIG, BIG]] * (P - 1))  # more ranks than numbers
    owned = [np.arange(r, 13 * P, P) for r in range(P)]  # steps of the number of ranks
    planned(owned, empty)
    planned(owned, [np.setdiff1d(np.arange(13 * P), some)[::-1] for some in owned])  # everything, by everybody
    planned([np.arange(17) if r == P - 1 else [] for r in range(P)], [[]] * (P - 1) + [[]])
    everywhere = Directory([], comm=WORLD).find([])
    assert [a.tolist() for a in everywhere] == [[], []]


@check
def several_plans_of_one_directory():
    directory = Directory(np.arange(5) + 5 * ME, comm=WORLD)
    plans = [directory.gather_points([(5 * (ME + 1) + k) % (5 * P)] if P > 1 else []) for k in range(3)]
    movers, arrays = [], []
    for plan in plans:
        u = ls.XArray(plan.source, np.int64, comm=WORLD)
        u[ME][:5] = np.arange(5) + 5 * ME
        arrays.append(u)
        movers.append(plan.bind(u, comm=WORLD))
    for mover in movers:
        mover.start()
    for mover in movers if ME % 2 else movers[::-1]:
        mover.wait()
    if P > 1:
        assert [u[ME][5] for u in arrays] == [(5 * (ME + 1) + k) % (5 * P) for k in range(3)]


@check
def another_communicator():
    half = WORLD.Split(ME % 2, -ME)
    directory = Directory([10 * half.rank], comm=half)
    ranks, _ = directory.find(np.arange(half.size) * 10)
    assert ranks.tolist() == list(range(half.size))
    half.Free()
    for call in (directory.find, directory.gather_points):
        raises(ls.ArgumentError, lambda call=call: call([]), "COMM_NULL")


def each(call, right, mistakes):
    """One mistake after the other, of each rank in turn: the same error everywhere, which names the rank."""
    for kind, wrong, *words in mistakes:
        for who in range(P):
            text = raises_everywhere(kind, lambda: call(wrong(who) if ME == who else right), *words, within_s=20)
            assert P == 1 or f"rank {who}" in text, text
            assert f"rank {who}: rank {who}" not in text, text


@check
def mistakes_of_one_rank():
    even = FloorPlan.even(Region.of_shape(4 * P), P)
    owned = np.arange(4) + 4 * ME
    directory = Directory(owned, comm=WORLD)

    def plan(needed):
        BlockPlan.gather_points(even, needed, comm=WORLD)

    each(
        plan,
        [],
        [
            (ls.ArgumentError, lambda who: [4 * P], f"needs {4 * P}, which no block owns"),
            (ls.ArgumentError, lambda who: [0, -3], "needs -3, which no block owns"),
            (ls.DTypeError, lambda who: [1.5], "needed has dtype float64"),
            (ls.ShapeError, lambda who: [[1], [2]], "2 lists of vertices for the 1 block"),
            (ls.ShapeError, lambda who: np.zeros((1, 1, 1), int), "shape"),
            (ls.DTypeError, lambda who: None, "needed has dtype object"),
            (ls.SizeOverflowError, lambda who: np.array([2**63], np.uint64), "does not fit"),
        ],
    )
    each(
        lambda blocks: BlockPlan.gather_points(blocks, [], comm=WORLD),
        even,
        [
            (ls.ArgumentError, lambda who: None, "must be a FloorPlan"),
            (ls.ArgumentError, lambda who: Region.of_shape(4), "must be a FloorPlan"),
        ],
    )
    each(
        lambda rank: BlockPlan.gather_points(even, [], comm=WORLD, rank=rank),
        None,
        [(ls.ArgumentError, lambda who: who + 1, "with comm= the plan is that of this process")],
    )
    flat = FloorPlan.even(Region.of_shape((4, 4)), P)
    raises_everywhere(ls.ShapeError, lambda: BlockPlan.gather_points(flat, [], comm=WORLD), "ranges of vertices")
    both = FloorPlan([Region((0,), (4,)), Region((3,), (6,))], [0, P - 1])
    raises_everywhere(
        ls.ArgumentError,
        lambda: BlockPlan.gather_points(both, [[]] * len(both.owned_by(ME)), comm=WORLD),
        "blocks 0 and 1 both own 3",
    )
    beyond = FloorPlan([Region((0,), (4,))], [P])
    raises_everywhere(
        ls.ArgumentError, lambda: BlockPlan.gather_points(beyond, [], comm=WORLD), f"block 0 belongs to rank {P}"
    )
    if P > 1:
        each(
            lambda blocks: BlockPlan.gather_points(blocks, [], comm=WORLD),
            even,
            [(ls.DisagreementError, lambda who: FloorPlan.even(Region.of_shape(4 * P + 1), P), "blocks")],
        )

    def own(numbers):
        Directory(numbers, comm=WORLD)

    each(
        own,
        [],
        [
            (ls.ArgumentError, lambda who: [3, -7], "owned[1] is -7", "not negative"),
            (ls.ArgumentError, lambda who: [9, 5, BIG, BIG], f"{BIG} is owned twice", "(owned[2])", "(owned[3])"),
            (ls.DTypeError, lambda who: ["a"], "owned has dtype"),
            (ls.ShapeError, lambda who: [[1]], "owned has shape (1, 1)"),
        ],
    )
    if P > 1:
        raises_everywhere(
            ls.ArgumentError,
            lambda: own([100, ME] if ME == P - 1 else [ME, 100] if ME == 0 else [ME]),
            f"number 100 is owned twice, by rank 0 (owned[1]) and by rank {P - 1} (owned[0])",
        )
    numbers = [
        (ls.DTypeError, lambda who: [0.5], "has dtype float64"),
        (ls.ShapeError, lambda who: 7, "has shape ()"),
    ]
    each(directory.find, [], numbers)
    each(
        directory.gather_points,
        [],
        [
            *numbers,
            (ls.ArgumentError, lambda who: [4 * P], f"needed[0] is {4 * P}, which no rank owns"),
            (ls.ArgumentError, lambda who: [-1], "needed[0] is -1, which no rank owns"),
            (ls.ArgumentError, lambda who: [4 * who + 2], "which this rank owns itself, at place 2"),
        ],
    )
    planned([np.arange(4) + 4 * r for r in range(P)], [[]] * P)  # all goes on


def layouts(shape):
    """Of arrays of two dimensions, one for each way of dealing them."""
    texts = [
        f"(BLOCK, *) on {P}",
        f"(CYCLIC(2), *) on {P}, order=F",
        f"(*, CYCLIC) on {P}",
        f"(BLOCK, *) on 1, ranks={P - 1}:{P}",
    ]
    texts.append(f"(GEN_BLOCK({', '.join([str(shape[0])] + ['0'] * (P - 1))}), *) on {P}")
    if P % 2 == 0:
        texts += [f"(CYCLIC(3), BLOCK) on {P // 2}x2, ld=64", f"(BLOCK, *) on {P // 2}xREPLICATED(2)"]
    return [ls.Layout(text, shape) for text in texts]


@check
def index_lists():
    random = np.random.default_rng(3 + ME)
    for shape in ((1, 1), (7, 13)):
        whole = np.arange(np.prod(shape)).reshape(shape) * 1.5
        for layout in layouts(shape):
            local = ls.empty(layout, float, rank=ME) if ME in layout.ranks else None
            if local is not None:
                for place in np.ndindex(local.shape):
                    local[place] = whole[tuple(layout.local_to_global(ME, place))]
            for n in (0, 31) if ME % 2 else (31, 1):
                flat = random.integers(0, whole.size, n)
                got = ls.take(local, layout, flat, comm=WORLD)
                assert got.shape == (n,) and got.tolist() == whole.ravel()[flat].tolist()
                rows = np.stack(np.unravel_index(flat, shape), axis=1)
                plan = BlockPlan.gather_indices(layout, rows, comm=WORLD)
                assert plan == BlockPlan.gather_indices(layout, flat, comm=WORLD) and plan.rank == ME
                out = ls.XArray(plan.destination, float, comm=WORLD)
                source = np.empty(plan.source[ME].shape) if local is None else local
                plan.bind([source], out, comm=WORLD)()
                assert out[ME].ravel().tolist() == whole[tuple(rows.T)].tolist()
                if layout.replicas == 1:  # how often each element is wanted, back where it is
                    out[ME][...] = 1
                    counts = [np.zeros(plan.source[ME].shape)]
                    plan.reverse().bind(out, counts, comm=WORLD, reduce="add")()
                    wanted = np.bincount(np.concatenate(WORLD.allgather(flat)).astype(int), minlength=whole.size)
                    for place in np.ndindex(counts[0].shape):
                        assert counts[0][place] == wanted.reshape(shape)[tuple(layout.local_to_global(ME, place))]
    line = ls.Layout(f"(CYCLIC(5)) on {P}", (103,))
    local = np.array([line.local_to_global(ME, (k,))[0] for k in range(line.local_shape(ME)[0])])
    assert ls.take(local, line, np.arange(103)[::-1], comm=WORLD).tolist() == list(range(103))[::-1]
    assert ls.take(local, line, [[5], [5]], comm=WORLD).tolist() == [5, 5]


@check
def wanted_boxes():
    random = np.random.default_rng(17)
    domain = Region.of_shape((23, 9))
    whole = np.arange(domain.size, dtype=float).reshape(domain.shape)
    for trial in range(12):
        blocks = FloorPlan.even(domain, int(random.integers(1, P + 1)))
        how = {"domain": domain, "periodic": (True, False)} if trial % 2 else {}
        wanted = []
        for _ in range(P):
            lower = random.integers(-5, 20, (random.integers(0, 4), 2)) % (18, 7)
            wanted.append([Region(tuple(a), tuple(b)) for a, b in zip(lower.tolist(), (lower + (7, 2)).tolist())])
        if trial == 0:
            wanted = [[]] * P
        plan = BlockPlan.copy_between(blocks, wanted[ME], comm=WORLD, **how)
        everybodys = FloorPlan([box for some in wanted for box in some], [r for r in range(P) for _ in wanted[r]])
        assert plan == BlockPlan.copy_between(blocks, everybodys, rank=ME, **how)
        u, v = ls.XArray(blocks, float, comm=WORLD), ls.XArray(plan.destination, float, comm=WORLD)
        for k, grid in u.items():
            grid[...] = whole[blocks[k].slices(domain)]
        plan.bind(u, v, comm=WORLD)()
        for grid in v:
            rows, columns = (np.arange(a, b) for a, b in zip(grid.region.lower, grid.region.upper))
            inside = whole.take(rows, axis=0, mode="wrap" if how else "clip").take(columns, axis=1)
            if how or rows[-1] < 23:
                np.testing.assert_array_equal(np.asarray(grid), inside)
    one = Region((0, 0), (3, 3))
    blocks = FloorPlan.even(domain, P)
    assert BlockPlan.copy_between(blocks, one, comm=WORLD) == BlockPlan.copy_between(blocks, [one], comm=WORLD)
    assert BlockPlan.copy_between(blocks, blocks, comm=None, rank=ME) == BlockPlan.copy_between(blocks, blocks, rank=ME)


@check
def mistakes_about_lists_and_boxes():
    layout, local = ls.Layout(f"(BLOCK, *) on {P}", (2 * P, 3)), np.zeros((2, 3))
    each(
        lambda indices: ls.take(local, layout, indices, comm=WORLD),
        [],
        [
            (ls.ArgumentError, lambda who: [0, 6 * P], f"indices[1] is {6 * P}, outside [0, {6 * P})"),
            (ls.ArgumentError, lambda who: [-1], "indices[0] is -1"),
            (ls.ArgumentError, lambda who: [[0, 0], [1, 3]], "indices[1] is 3 in dimension 1, outside [0, 3)"),
            (ls.ShapeError, lambda who: [[1, 2, 3]], "indices has shape (1, 3)"),
            (ls.DTypeError, lambda who: [0.5], "indices has dtype float64"),
        ],
    )
    each(
        lambda layout: BlockPlan.gather_indices(layout, [], comm=WORLD),
        layout,
        [(ls.ArgumentError, lambda who: "(BLOCK)", "layout is str; it must be a Layout")],
    )
    each(
        lambda local: ls.take(local, layout, [], comm=WORLD),
        local,
        [
            (ls.LongshoreError, lambda who: np.zeros((3, 3)), "(3, 3)"),
            (ls.LongshoreError, lambda who: 7, ""),
            (ls.LocalArrayError, lambda who: None, "has 6 elements"),
        ],
    )
    large = ls.Layout(f"(BLOCK, *) on {P + 1}", (2 * P, 3))
    raises_everywhere(
        ls.ArgumentError, lambda: BlockPlan.gather_indices(large, [], comm=WORLD), f"the layout is for {P + 1} ranks"
    )
    blocks = FloorPlan.even(Region.of_shape((2 * P, 3)), P)
    each(
        lambda regions: BlockPlan.copy_between(blocks, regions, comm=WORLD),
        [],
        [
            (ls.LongshoreError, lambda who: [1], "destination[0] is 1"),
            (ls.LongshoreError, lambda who: None, "destination is None"),
            (ls.ArgumentError, lambda who: blocks, "destination is a FloorPlan"),
            (ls.ShapeError, lambda who: Region.of_shape(3), "of 2 and of 1 dimensions"),
        ],
    )
    each(
        lambda periodic: BlockPlan.copy_between(blocks, [], comm=WORLD, periodic=periodic),
        None,
        [(ls.LongshoreError, lambda who: (True,), "dimensions")],
    )
    if P > 1:
        each(
            lambda layout: BlockPlan.gather_indices(layout, [], comm=WORLD),
            layout,
            [(ls.DisagreementError, lambda who: ls.Layout(f"(CYCLIC, *) on {P}", (2 * P, 3)), "layout")],
        )
        each(
            lambda blocks: BlockPlan.copy_between(blocks, [], comm=WORLD),
            blocks,
            [(ls.DisagreementError, lambda who: FloorPlan.even(Region.of_shape((2 * P, 4)), P), "blocks")],
        )
    assert ls.take(local, layout, [1], comm=WORLD).tolist() == [0]  # all goes on


def most_taken(work):
    """Of any rank: the bytes that this takes while it runs, and what it returns."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew

    def told(name):
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))

    WORLD.Barrier()
    before = told("VmRSS")
    result = work()
    return WORLD.allreduce(told("VmHWM") - before, max), result


@check
def memory_is_that_of_what_a_rank_needs():
    own, vertices = 125_000, 125_000 * P  # 10^6 on 8 ranks
    random = np.random.default_rng(ME)
    numbers = np.random.default_rng(5).permutation(vertices) * (BIG // vertices)
    owned = numbers[own * ME : own * (ME + 1)].copy()
    for needs in (1000, own):
        places = random.permutation(vertices - own if P > 1 else 0)[:needs]
        places[places >= own * ME] += own
        needed, slack = numbers[places], 4 << 20  # of which MPI's own buffers
        mesh = FloorPlan.even(Region.of_shape(vertices), P)
        lists = WORLD.allgather(places)
        most_taken(lambda: BlockPlan.gather_points(mesh, places, comm=WORLD))  # MPI makes what it keeps
        taken, plan = most_taken(lambda: BlockPlan.gather_points(mesh, places, comm=WORLD))
        assert taken < 110 * needs + slack, (needs, taken)
        assert plan == BlockPlan.gather_points(mesh, lists, rank=ME)
        taken, directory = most_taken(lambda: Directory(owned, comm=WORLD))
        assert taken < 80 * own + slack, (needs, taken)
        assert directory.workspace_bytes < 30 * own
        taken, plan = most_taken(lambda: directory.gather_points(needed))
        assert taken < 130 * needs + slack, (needs, taken)
        assert plan.workspace_bytes < 20 * (len(needed) + own)
