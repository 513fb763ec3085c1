"""What arrays and movers take of a machine: descriptors and memory."""

import ctypes
import gc
import os
import resource
import sys
import warnings

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check
from longshore import BlockPlan, FloorPlan, Region, _mpi

LIBC = ctypes.CDLL("libc.so.6")


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def shared_files():
    """The bytes of each file that this process's arrays lie in, by descriptor."""
    held = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("/memfd:longshore"):
                held[name] = os.stat(f"/proc/self/fd/{name}").st_blocks * 512
        except FileNotFoundError:  # the listing's own
            pass
    return held


def shared_pages():
    """The bytes of all of them."""
    return sum(shared_files().values())


def layouts(shape=(8 * P, 6)):
    return ls.Layout(f"(BLOCK, *) on {P}", shape), ls.Layout(f"(*, CYCLIC(2)) on {P}", shape)


def moved(a, b, rows, columns, comm=WORLD):
    """Moves between two arrays, and says which way."""
    a[...] = ME + 1
    mover = ls.plan(rows, columns, a.dtype).bind(a, b, comm=comm)
    mover()
    assert (b == np.repeat(np.arange(P) + 1, rows.shape[0] // P)[:, None]).all()
    return mover


@check
def ten_thousand_arrays():
    rows, columns = layouts()
    first = ls.empty(rows, "f8", comm=WORLD), ls.empty(columns, "f8", comm=WORLD)
    moved(*first, rows, columns)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = descriptors()
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + 40, hard))
    try:
        arrays = [ls.empty(side, "f8", comm=WORLD) for _ in range(4500) for side in (rows, columns)]
        blocks = FloorPlan.even(Region.of_shape((8 * P, 6)), P)
        xarrays = [ls.XArray(blocks, float, 1, comm=WORLD) for _ in range(1000)]
        assert descriptors() <= before + 1, (before, descriptors())
        for a, b in (arrays[:2], arrays[-2:], first):
            mover = moved(a, b, rows, columns)
            assert P == 1 or "straight" in mover.path, mover.path
            assert mover.obstacle == ""
        for u in (xarrays[0], xarrays[-1]):
            mover = BlockPlan.halo(blocks, 1).bind(u, comm=WORLD, node="direct")
            mover()
            assert P == 1 or "straight" in mover.path, mover.path
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@check
def arrays_are_known_by_where_they_lie():
    """Whoever made them for whatever plan: rings are for arrays that lie in nobody's memory but their owner's."""
    rows, columns = (ls.Layout(f"({dims}) on {P}", (8 * P, 64)) for dims in ("BLOCK, *", "*, BLOCK"))

    def boxes(side):
        owned = [side.indices(rank) for rank in range(P)]
        return FloorPlan([Region([s.start for s in box], [s.stop for s in box]) for box in owned], range(P))

    blocks, others = boxes(rows), boxes(columns)
    full = np.arange(8.0 * P * 64).reshape(8 * P, 64)

    def part(side):
        return full[side.indices(ME)]

    def larger(side):
        """A part of an array that was made for something else."""
        whole = ls.empty(ls.Layout("(*) on 1", side.local_size(ME) + 5, ranks=[ME]), "f8", comm=WORLD)
        return np.asarray(memoryview(whole))[3:-2].reshape(side.local_shape(ME))

    def of_layout(side):
        return ls.empty(side, "f8", comm=WORLD)

    def of_blocks(side):
        return ls.XArray(blocks if side is rows else others, "f8", comm=WORLD)[ME]

    def private(side):
        return np.empty(side.local_shape(ME))

    shared = [of_layout, of_blocks, larger]
    for one, other in [(a, b) for a in shared for b in (*shared, private)] + [(private, of_blocks), (private, private)]:
        for plan in (ls.plan(rows, columns, "f8"), BlockPlan.copy_between(blocks, others)):
            a, b = one(rows), other(columns)
            a[...], b[...] = part(rows), -1
            sides = ([a], [b]) if isinstance(plan, BlockPlan) else (a, b)
            mover = plan.bind(*sides, comm=WORLD)
            mover()
            np.testing.assert_array_equal(b, part(columns))
            if P > 1 and one is other is private:
                assert "array of rank" in mover.obstacle and "is private memory" in mover.obstacle, mover.obstacle
                assert mover.obstacle in mover.path and "ls.empty(" in mover.obstacle, mover.path
            elif P > 1:
                assert mover.obstacle == "" and "straight" in mover.path and "ring" not in mover.path, mover.path
            WORLD.Barrier()  # nobody writes what another still reads


@check
def memory_is_given_back():
    rows, columns = layouts((P << 9, 1 << 10))
    before = shared_files()  # other files, with NumPy's arrays in one of them, which come and go as they like
    comm = WORLD.Dup()

    def held():
        return sum(pages for file, pages in shared_files().items() if file not in before)

    arrays = [ls.empty(side, "f8", comm=comm) for _ in range(4) for side in (rows, columns)]
    if P > 1:
        assert held() >= sum(a.nbytes for a in arrays), held()
        moved(*arrays[:2], rows, columns, comm)
    WORLD.Barrier()
    del arrays
    gc.collect()
    WORLD.Barrier()
    assert held() <= 1 << 20, held()
    comm.Free()


@check
def a_communicator_gives_its_descriptor_back():
    rows, columns = layouts()
    moved(ls.empty(rows, "f8", comm=WORLD), ls.empty(columns, "f8", comm=WORLD), rows, columns)
    before = descriptors()
    for _ in range(20):
        comm = WORLD.Dup()
        a, b = ls.empty(rows, "f8", comm=comm), ls.empty(columns, "f8", comm=comm)
        mover = moved(a, b, rows, columns, comm)
        del mover
        comm.Free()
        a[...] = 7  # an array outlives its communicator
        del a, b
        gc.collect()
    assert descriptors() <= before + 1, (before, descriptors())


@check
def what_keeps_memory_from_being_shared_is_told():
    if P == 1:
        return
    rows, columns = layouts()
    comm = WORLD.Dup()  # with no descriptor yet
    _mpi.together(comm, int)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if ME == 1:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            a, b = ls.empty(rows, "f8", comm=comm), ls.empty(columns, "f8", comm=comm)
            u = ls.XArray(FloorPlan.even(Region.of_shape((8 * P, 6)), P), float, 1, comm=comm)
            mover = ls.plan(rows, columns, "f8").bind(a, b, comm=comm)
            blocks_mover = BlockPlan.halo(u.blocks, 1).bind(u, comm=comm)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    for one in (mover, blocks_mover):
        one()
        assert one.obstacle.startswith("rank 1: ") and "Too many open files" in one.obstacle, one.obstacle
        assert one.obstacle in one.path and "MPI messages" in one.path, one.path
    assert (len(told) == 2) == (ME == 1), [str(warning.message) for warning in told]
    # Enough descriptors by now, but those arrays stay where they are.
    mover = moved(a, b, rows, columns, comm)
    assert (ME == 1) == ("ordinary memory: memfd_create" in mover.path), mover.path
    del mover, one, blocks_mover
    comm.Free()


@check
def a_limit_on_files():
    """`ulimit -f` counts shared memory as files: a signal would end the process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    rows, columns = layouts((256 * P, 512))
    comm = WORLD.Dup()
    resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 20, hard))
    try:
        arrays = [ls.empty(side, "f8", comm=comm) for _ in range(20) for side in (rows, columns)]  # of 1 MiB each
        large = ls.empty(ls.Layout(f"(BLOCK, *) on {P}", (1 << 12, 1 << 12)), "f8", comm=comm)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    large[...] = 1
    for a, b in (arrays[:2], arrays[-2:]):
        mover = moved(a, b, rows, columns, comm)
        assert P == 1 or "straight" in mover.path, mover.path
    del mover
    comm.Free()


@check
def a_forked_child_lets_go():
    """What a child inherits is its parent's: nothing is given back, and nothing is given away twice."""
    rows, columns = layouts((256 * P, 512))
    arrays = [ls.empty(rows, "f8", comm=WORLD), ls.empty(columns, "f8", comm=WORLD)]
    arrays[0][...] = 5
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            arrays.clear()
            gc.collect()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert (arrays[0] == 5).all()
    WORLD.Barrier()
    moved(*arrays, rows, columns)


class Mallinfo(ctypes.Structure):
    """Of glibc: bytes in use are `uordblks` of its arenas and `hblkhd` of mappings of their own."""

    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = [(name, ctypes.c_size_t) for name in _names]


def held():
    """Bytes that all ranks have of the heap and in segments, which are shared by those who map them."""
    gc.collect()
    WORLD.Barrier()
    mine, ours = heap_in_use(), False
    with open("/proc/self/smaps") as file:
        for line in file:
            if line[0] in "0123456789abcdef":
                ours = "/memfd:longshore" in line
            elif ours and line.startswith("Pss:"):
                mine += int(line.split()[1]) << 10
    total = WORLD.allreduce(mine)
    WORLD.Barrier()
    return total


def movers_of_all_kinds():
    """By name: how to bind one, and how many of them make the rest that memory is used for too little to matter."""
    rows, columns = ls.Layout(f"(BLOCK, *) on {P}", (1200, 1200)), ls.Layout(f"(*, CYCLIC(3)) on {P}", (1200, 1200))
    both = ls.plan(rows, columns, "f8")
    shared = [ls.empty(side, "f8", comm=WORLD) for side in (rows, columns)]
    own = [ls.empty(side, "f8", rank=ME) for side in (rows, columns)]
    pieces = ls.regions.split_evenly(Region.of_shape((96, 96)), (24, 24))
    many = FloorPlan(pieces, [k % P for k in range(len(pieces))])
    u = ls.XArray(many, float, 2, comm=WORLD)
    halo = BlockPlan.halo(many, 2)
    mesh = FloorPlan.even(Region.of_shape(30000 * P), P)
    ghosts = np.random.default_rng(5).integers(0, 30000 * P, (P, 20000))
    points = BlockPlan.gather_points(
        mesh, [np.setdiff1d(g, np.arange(30000) + 30000 * k) for k, g in enumerate(ghosts)]
    )
    w = ls.XArray(points.source, float, comm=WORLD)
    square = FloorPlan.even(Region.of_shape((600 * P, 300)), P)
    other = FloorPlan(ls.regions.split_evenly(Region.of_shape((600 * P, 300)), (1, P)), list(range(P)))
    x, y = ls.XArray(square, float, comm=WORLD), ls.XArray(other, float, comm=WORLD)
    across = BlockPlan.copy_between(square, other)
    kinds = {"layouts, shared": (20, lambda: both.bind(*shared, comm=WORLD))}
    for node in ("ring", "messages"):
        kinds[f"layouts, {node}"] = 5, lambda node=node: both.bind(*own, comm=WORLD, node=node)
        kinds[f"halo, {node}"] = 20, lambda node=node: halo.bind(u, comm=WORLD, node=node)
        kinds[f"points, {node}"] = 5, lambda node=node: points.bind(w, comm=WORLD, node=node)
        kinds[f"across, {node}"] = 5, lambda node=node: across.bind(x, y, comm=WORLD, node=node)
    kinds["layouts, packets"] = 20, lambda: both.bind(*own, comm=WORLD, node="messages", max_mem=200_000)
    kinds["halo, packets"] = 20, lambda: halo.bind(u, comm=WORLD, node="messages", packet_bytes=4096)
    kinds["points, packets"] = 5, lambda: points.bind(w, comm=WORLD, node="messages", packet_bytes=4096)
    kinds["halo"] = 20, lambda: halo.bind(u, comm=WORLD)
    kinds["halo, checked"] = 20, lambda: halo.bind(u, comm=WORLD, checked=True)
    kinds["halo, collective"] = 20, lambda: halo.bind(u, comm=WORLD, node="messages", exchange="neighborhood")
    return kinds


@check
def workspace_is_what_is_held():
    for name, (count, bind) in movers_of_all_kinds().items():
        for _ in range(2):  # the first time, MPI and Python want more for whatever they keep
            movers = mover = None
            before = held()
            movers = [bind() for _ in range(count)]
            for mover in movers:
                mover()
            taken = held() - before
        said = WORLD.allreduce(sum(mover.workspace_bytes for mover in movers))
        # Rings are the communicator's: the next movers have them again. What they lie in is up to an eighth longer.
        rings = 1.15 * WORLD.allreduce(sum(mover.staging_bytes for mover in movers if "rings" in mover.path))
        assert all(mover.staging_bytes <= mover.workspace_bytes for mover in movers)
        del movers, mover
        slack = P << 19  # programs for parts that interleave count a thread's room, which it has while it runs
        assert said - rings < 1.1 * taken + slack and taken < 1.1 * said + slack, (name, taken, said, rings)


def heap_in_use():
    LIBC.mallinfo2.restype = Mallinfo
    heap = LIBC.mallinfo2()
    return heap.uordblks + heap.hblkhd


def footprint():
    """What this process holds: bytes of its heap, resident bytes, descriptors, mappings."""
    gc.collect()
    WORLD.Barrier()
    heap = heap_in_use()
    LIBC.malloc_trim(0)
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * resource.getpagesize()
    with open("/proc/self/maps") as file:
        return heap, resident, descriptors(), sum(1 for _ in file)


def binds_of_all_kinds():
    """By name: what makes a mover, moves with it once and lets go of it."""
    rows, columns = layouts((24 * P, 18))
    both = ls.plan(rows, columns, "f8")
    own, shared = ([ls.empty(side, "f8", **how) for side in (rows, columns)] for how in ({"rank": ME}, {"comm": WORLD}))
    own[0][...] = shared[0][...] = ME
    domain = Region.of_shape((12, 12, 12))
    blocks = FloorPlan.balanced(ls.regions.split_evenly(domain, 2), P)
    fields = tuple(ls.XArray(blocks, float, 1, comm=WORLD) for _ in range(3))
    elsewhere = ls.XArray(blocks, float, 1, rank=ME)

    def plan_halo():
        return BlockPlan.halo(blocks, 1, domain=domain, periodic=True, rank=ME)

    halo = plan_halo()

    def new_arrays():
        return [ls.empty(side, "f8", comm=WORLD) for side in (rows, columns)]

    return {
        "private arrays": lambda: both.bind(*own, comm=WORLD)(),
        "shared arrays": lambda: both.bind(*shared, comm=WORLD)(),
        "new shared arrays": lambda: both.bind(*new_arrays(), comm=WORLD)(),
        "messages": lambda: both.bind(*own, comm=WORLD, node="messages")(),
        "one call": lambda: ls.redistribute(own[0], rows, columns, comm=WORLD, out=own[1]),
        "one call, a new array": lambda: ls.redistribute(shared[0], rows, columns, comm=WORLD),
        "a halo": lambda: halo.bind(fields[0], comm=WORLD)(),
        "a halo, planned anew": lambda: plan_halo().bind(fields[0], comm=WORLD)(),
        "a halo of ordinary memory": lambda: halo.bind(elsewhere, comm=WORLD)(),
        "three fields": lambda: halo.bind(fields, comm=WORLD)(),
    }


@check
def binds_leave_nothing_behind(binds):
    """So many binds and moves in all, of every kind equally many. What leaves something behind does so every time: MPI
    and Python sometimes keep more memory from then on, once."""
    kinds, rounds = binds_of_all_kinds(), 3
    each = binds // len(kinds) // rounds
    # UCX, which MPICH may use, notes in some 150 bytes every munmap() of the process, whoever unmaps.
    with open("/proc/self/maps") as maps:
        noted = 6 * 152 * each if "/libucm" in maps.read() else 0
    for name, once in kinds.items():
        for _ in range(50):
            once()
        held = [footprint()]
        for _ in range(rounds):
            for _ in range(each):
                once()
            held.append(footprint())
        heap, resident, files, mappings = (min(np.diff(of)) for of in zip(*held))
        assert heap <= 64 << 10 and resident <= (64 << 10) + noted, (name, held)
        assert files <= 0 and mappings <= 2, (name, held)
