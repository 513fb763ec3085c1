"""One-sided access between processes: sections of every kind got and put, by shared memory and by MPI, and what goes
wrong."""

import contextlib
import ctypes
import os
import random
import resource
import time
from pathlib import Path

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check, new_folder, raises, raises_everywhere
from longshore import tune
from mpi4py import MPI

NODES = ("auto", "messages")


def array_of(rank, seed, shared=False):
    """A rank's array, as everybody can make it: some shape, dtype and strides; of some ranks it has no elements."""
    draw = random.Random(seed)
    dtype = np.dtype(draw.choice(["f8", "i4", "u1", "c16"]))  # of all ranks alike
    draw = random.Random(1000 * seed + rank)
    shape = tuple(draw.randrange(0 if draw.random() < 0.1 else 1, 9) for _ in range(draw.randrange(1, 4)))
    size = int(np.prod(shape))
    values = (np.arange(size) + 100 * rank + seed).astype(dtype).reshape(shape)
    if shared:
        layout = ls.Layout(f"({', '.join('*' * len(shape))}) on 1, ranks=[{rank}]", shape)
        if size == 0 or rank != ME:
            return values
        made = ls.empty(layout, dtype, comm=WORLD)
    else:
        order = draw.choice(["C", "F", "strided", "backwards"])
        if order == "strided":
            made = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
        elif order == "backwards":
            made = np.zeros(shape, dtype)[::-1]
        else:
            made = np.zeros(shape, dtype, order=order)
    made[...] = values
    return made


def some_index(draw, shape):
    """What NumPy's indexing and a section's have in common."""
    keys, listed = [], False
    for extent in shape[: draw.randrange(len(shape) + 1)]:
        kind = draw.randrange(4)
        if kind == 0 and extent:
            keys.append(draw.randrange(-extent, extent))
        elif kind == 1 and not listed and not any(isinstance(key, int) for key in keys):
            listed = True
            keys.append([draw.randrange(extent) for _ in range(draw.randrange(5))] if extent else [])
        else:
            a, b = sorted(draw.randrange(extent + 1) for _ in range(2))
            keys.append(slice(a, b, draw.choice([None, 1, 2, 3])) if draw.random() < 0.7 else slice(None, None, -1))
    if listed:  # NumPy moves what is listed to the front where an integer comes between
        keys = [slice(key, key + 1) if isinstance(key, int) and key != -1 else key for key in keys]
        keys = [slice(None) if isinstance(key, int) else key for key in keys]
        keys = [np.array(key, np.int64) if isinstance(key, list) else key for key in keys]
    return tuple(keys)


@check
def sections(trials):
    """Gets of any section of any rank, several at once, against NumPy's own."""
    for seed in range(trials):
        _sections(seed)


def _sections(seed):
    for node in NODES:
        for shared in (False, True):
            mine = array_of(ME, seed, shared)
            with ls.Window(mine, comm=WORLD, node=node) as window:
                draw = random.Random(77 * seed + ME)
                expected, handles = [], []
                for _ in range(8):
                    rank = draw.randrange(P)
                    whole = array_of(rank, seed)
                    key = some_index(draw, whole.shape)
                    section = window[rank][key] if key else window[rank]
                    expected.append(whole[key] if key else whole)
                    assert section.shape == np.shape(expected[-1]), (key, whole.shape)
                    handles.append(section.nbget())
                for handle, values in zip(reversed(handles), reversed(expected)):
                    if draw.random() < 0.3:
                        while not handle.test():
                            pass
                    got = handle.wait()
                    assert got.dtype == mine.dtype
                    np.testing.assert_array_equal(got, values)
                window.fence()


@check
def puts(trials):
    """Everybody puts into its own columns of everybody's array."""
    for seed in range(trials):
        _puts(seed)


def _puts(seed):
    for node in NODES:
        for shared in (False, True):
            layout = ls.Layout(f"(*, *) on 1, ranks=[{ME}]", (5, 3 * P))
            mine = ls.empty(layout, "i8", comm=WORLD) if shared else np.empty((5, 3 * P), "i8")
            mine[...] = -1
            with ls.Window(mine, comm=WORLD, node=node) as window:
                window.fence()
                handles = []
                for rank in range(P):
                    values = np.arange(15).reshape(5, 3) + 100 * ME + 10_000 * rank + seed
                    section = window[rank][:, ME::P]
                    if (rank + ME) % 2:
                        section.put(values)
                    else:
                        handles.append(section.nbput(values))
                for handle in handles:
                    handle.wait()
                window.fence()
                for rank in range(P):
                    expected = np.arange(15).reshape(5, 3) + 100 * rank + 10_000 * ME + seed
                    np.testing.assert_array_equal(mine[:, rank::P], expected)
                    # What others have put into a third one's array.
                    there = window[rank][:, ME::P].get()
                    np.testing.assert_array_equal(there, np.arange(15).reshape(5, 3) + 100 * ME + 10_000 * rank + seed)
                window.fence()


@check
def global_indices():
    """Boxes of layouts and of blocks, of as many owners as have something of them."""
    shape = (13, 4 * P + 3)
    whole = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    for text in (f"(BLOCK, *) on {P}", f"(*, CYCLIC(2)) on {P}", f"(CYCLIC(3), *) on {P}, order=F"):
        layout = ls.Layout(text, shape)
        for node in NODES:
            mine = ls.empty(layout, "f4", comm=WORLD)
            mine[...] = whole[layout.indices(ME)]
            with ls.Window(mine, comm=WORLD, layout=layout, node=node) as window:
                for key in ((), slice(2, 9), (slice(1, 12), slice(3, 2 * P + 4)), (4, slice(1, None)), (-1, 2), (0,)):
                    np.testing.assert_array_equal(window.whole[key].get(), whole[key])
                window.fence()
                if ME == P - 1:
                    window.whole[3:5, 1:6].put(-whole[3:5, 1:6])
                window.fence()
                np.testing.assert_array_equal(window.whole[3, 1:6].get(), -whole[3, 1:6])
                raises(ls.ArgumentError, lambda: window.whole[20], "index 20 is outside dimension 0")
                for key in (slice(None, None, 2), (slice(9, 2, -3), slice(1, None, 2)), (slice(1, 9), [5, 0, -1, 5])):
                    np.testing.assert_array_equal(window.whole[key].get(), window.whole.get()[key])
                window.fence()
    blocks = ls.FloorPlan.even(ls.Region.of_shape(shape), 3 * P).with_owners([(2 * k) % P for k in range(3 * P)])
    for node in NODES:
        x = ls.XArray(blocks, "f4", ghost=1, comm=WORLD)
        for _, grid in x.items():
            grid.interior[...] = whole[grid.block.slices(ls.Region.of_shape(shape))]
        with ls.Window(x, comm=WORLD, node=node) as window:
            for key in ((), slice(2, 9), (slice(1, 12), slice(3, 2 * P + 4)), (4, slice(1, None)), (-1, 2)):
                np.testing.assert_array_equal(window.whole[key].get(), whole[key])
                np.testing.assert_array_equal(window.whole[::-2, [3, 0, -1]].get(), whole[::-2, [3, 0, -1]])
            k = ME % len(blocks)
            grown = window[k].get()
            np.testing.assert_array_equal(grown[1:-1, 1:-1], whole[blocks[k].slices(ls.Region.of_shape(shape))])
            window.fence()


@check
def strips_of_all_kinds():
    """Strips against the whole, by every schedule; those of a plan's incoming data against the plan."""
    mine = np.arange(3000.0) + 10_000 * ME
    peer = (ME + 1) % P
    for node in NODES:
        with ls.Window(mine, comm=WORLD, node=node) as window:
            for schedule in ("vectorized", "fixed(256)", "fixed(100, 3)", "variable(16, 0.45, 2)", "auto"):
                for section in (window[peer], window[peer][5::3], window[peer][:50]):
                    expected, at = section.get(), 0
                    for strip in ls.strips(section, schedule):
                        assert strip.first == at and strip.last == at + len(strip.data)
                        np.testing.assert_array_equal(strip.data, expected[strip.first : strip.last])
                        at = strip.last
                    assert at == len(section)
            assert [float(s.data[0]) for s in ls.strips(window[peer][7:11], "small")] == [
                10_000 * peer + k for k in range(7, 11)
            ]
            next(ls.strips(window[peer], "fixed(10, 4)"))  # what is under way then ends in peace
            window.fence()
        shape = (40, 6 * P)
        whole = np.arange(np.prod(shape), dtype="i4").reshape(shape)
        source = ls.Layout(f"(CYCLIC(3), *) on {P}", shape)
        for order in "CF":
            plan = ls.plan(source, ls.Layout(f"(*, CYCLIC(2)) on {P}, order={order}", shape), "i4")
            local = ls.empty(source, "i4", comm=WORLD)
            local[...] = whole[source.indices(ME)]
            with ls.Window(local, comm=WORLD, layout=source, node=node) as window:
                expected = whole[plan.destination.indices(ME)]
                expected = expected if order == "C" else expected.T
                rows = [strip.data.copy() for strip in ls.strips(window.incoming(plan), "fixed(3, 2)")]
                np.testing.assert_array_equal(np.concatenate(rows), expected)
                window.fence()
    _strips_between_blocks()


def _strips_between_blocks():
    """What a halo and a copy between blocks bring this rank, against NumPy."""
    domain = ls.Region.of_shape((12, 5 * P))
    blocks = ls.FloorPlan.even(domain, 2 * P).with_owners([(k + 1) % P for k in range(2 * P)])
    others = ls.FloorPlan.even(domain, 3 * P).with_owners([(2 * k) % P for k in range(3 * P)])
    whole = np.arange(domain.size, dtype="f4").reshape(domain.shape)
    plans = [ls.BlockPlan.halo(blocks, 1, rank=ME), ls.BlockPlan.copy_between(blocks, others)]
    for node in NODES:
        x = ls.XArray(blocks, "f4", ghost=1, comm=WORLD)
        for _, grid in x.items():
            grid.interior[...] = whole[grid.block.slices(domain)]
        with ls.Window(x, comm=WORLD, node=node) as window:
            for plan in plans:
                regions = [motion.destination_region for motion in plan.receives(ME)]
                expected = [whole[region.slices(domain)].ravel() for region in regions]
                for schedule in ("fixed(7, 2)", "variable(4, 0.5)", "auto"):
                    got = [strip.data.copy() for strip in ls.strips(window.incoming(plan), schedule)]
                    np.testing.assert_array_equal(
                        np.concatenate([*got, whole[0, :0]]), np.concatenate([*expected, whole[0, :0]])
                    )
            for k in others.owned_by(ME):
                rows = [strip.data.copy() for strip in ls.strips(window.incoming(plans[1], block=k), "fixed(2)")]
                np.testing.assert_array_equal(np.concatenate(rows), whole[others[k].slices(domain)])
            mine = int(blocks.owned_by(ME)[0])
            raises(ls.ArgumentError, lambda: window.incoming(plans[0], block=mine).get(), "leave block= out")
            window.fence()


@check
def an_owner_that_sleeps_does_not_make_large_accesses_slow():
    """Its thread for progress is told of each piece; where it guessed, it rested a pause for each after some gets, and
    all later ones took a hundred times as long. One later one that does not is enough, whatever else goes on here."""
    mine = np.arange(float(1 << 19)) + ME
    with ls.Window(mine, comm=WORLD, node="messages") as window:
        if P == 2 and window.progress.startswith("a thread"):
            seconds = []
            if ME == 0:
                out = np.empty_like(mine)
                for k in range(600):
                    begin = time.perf_counter()
                    window[1].get(out=None if k % 2 else out)
                    seconds.append(time.perf_counter() - begin)
                    if k >= 50 and seconds[-1] < 20 * min(seconds):
                        break
                else:
                    raise AssertionError(seconds[::20])
                assert (out == mine + 1).all()
            done = WORLD.Ibarrier()
            while not done.Test():
                time.sleep(0.001)
        window.fence()


@check
def what_was_left_in_a_freed_communicator_is_nobodys():
    """MPICH gives new communicators the contexts of freed ones, and the messages there that nobody has received. With
    Open MPI they have arrived before the communicators are freed: those that come later upset its numbering of the
    messages in the next communicator, some of which it then never delivers, also without this library."""
    if P == 1:
        return
    peer, mine = (ME + 1) % P, np.arange(300.0) + ME
    left = [WORLD.Dup() for _ in range(6)]
    sent = [comm.Isend(mine[:3], peer, tag) for comm in left for tag in range(12)]
    WORLD.barrier()
    MPI.Request.Waitall(sent)
    for comm in left:
        while "Open MPI" in MPI.Get_library_version() and not comm.Iprobe((ME - 1) % P, 11):
            pass
        comm.Free()
    with ls.Window(mine, comm=WORLD, node="messages") as window:
        for _ in range(8):
            assert (window[peer][5::3].get() == (mine - ME + peer)[5::3]).all()
        window.fence()
    comm, rows, columns = WORLD.Dup(), *(ls.Layout(f"({dims}) on {P}", (6, 6)) for dims in ("BLOCK, *", "*, BLOCK"))
    whole = np.arange(36.0).reshape(6, 6)
    for exchange in ("p2p", "alltoall"):
        moved = np.zeros(columns.local_shape(ME))
        way = {"node": "messages", "exchange": exchange}
        ls.plan(rows, columns, float).bind(whole[rows.indices(ME)].copy(), moved, comm=comm, **way)()
        assert (moved == whole[columns.indices(ME)]).all()
    virtual = ls.VirtualComm.over(WORLD)
    assert virtual.sendrecv(ME, peer, source=(ME - 1) % P) == (ME - 1) % P
    comm.Free()


@check
def strips_that_ranks_find_together():
    """All try the same schedules and settle on one, also where a rank leaves a loop early or has nothing to get."""
    rows = 20_000
    mine = np.arange(float(rows)) + 1000 * ME
    with new_folder(), ls.Window(mine, comm=WORLD, node="messages") as window, kept_in("machine.json"):
        for idle in (False, True)[:P]:
            section = window[(ME + 1) % P][: 0 if idle and ME == 0 else rows]
            expected, pattern, comm = section.get(), f"together, {idle}", WORLD.Dup()
            for k in range(400):
                sizes = []
                for strip in ls.strips(section, pattern=pattern, comm=comm):
                    np.testing.assert_array_equal(strip.data, expected[strip.first : strip.last])
                    sizes.append(strip.last - strip.first)
                    if k == 5 and ME == P - 1:
                        break
                assert k == 5 or sum(sizes) == len(section)
                told = [one for one in WORLD.allgather(sizes) if sum(one) == rows]
                assert all(one == told[0] for one in told), told
                if k > 20 and any(name.startswith(pattern) for name in kept_patterns("machine.strips.json")):
                    break
            else:
                raise AssertionError("nothing was settled")
            if ME == 0:  # nobody waits for anybody
                assert sum(len(s.data) for s in ls.strips(section, pattern=pattern, comm=comm)) == len(section)
            if P > 1:
                unlike = f"of rank {ME}"
                raises_everywhere(
                    ls.DisagreementError, lambda: ls.strips(section, pattern=unlike, comm=comm), "different patterns"
                )
            comm.Free()
        last = ME == P - 1
        for kind, words, text in (
            (ls.ArgumentError, lambda: ls.strips(section, comm=WORLD), "pattern= names the loop"),
            (ls.ArgumentError, lambda: ls.strips(section, "vectorized", pattern="x", comm=WORLD), "schedule='auto'"),
            (ls.ArgumentError, lambda: ls.strips(mine, pattern="x", comm=WORLD), "a Section"),
            (ls.ArgumentError, lambda: ls.strips(section, pattern=7, comm=WORLD), "is text"),
            (ls.ArgumentError, lambda: ls.strips(section, pattern=["x"], comm=WORLD), "is text"),
        ):
            right = lambda: ls.strips(section, pattern="x", comm=WORLD)  # noqa: E731
            raises_everywhere(kind, words if last else right, text, f"rank {P - 1}" if P > 1 else "")
        window.fence()


@contextlib.contextmanager
def kept_in(path):
    """What is found about this machine meanwhile."""
    before = os.environ.get(tune.ENVIRONMENT)
    os.environ[tune.ENVIRONMENT] = path
    try:
        yield
    finally:
        os.environ.pop(tune.ENVIRONMENT)
        if before is not None:
            os.environ[tune.ENVIRONMENT] = before


def kept_patterns(path):
    """That have been settled on. Collective."""
    return WORLD.bcast(
        [one["pattern"] for one in tune.strips.load(Path(path))] if ME == 0 and os.path.exists(path) else []
    )


@check
def owners_need_not_take_part():
    """With a thread for progress, a rank is got from while it does not call MPI: rank 0 looks only for a file that the
    others write when they have what they want, so that a get which waited for it would end after the check's time."""
    mine = np.arange(200_000.0) + ME
    with new_folder(), ls.Window(mine, comm=WORLD, node="messages", progress="thread") as window:
        window.fence()
        if ME == 0:
            while len(list(Path().glob("rank * has all"))) < P - 1:
                time.sleep(0.01)
        else:
            np.testing.assert_array_equal(window[0].get(), np.arange(200_000.0))
            assert "thread" in window.progress
            Path(f"rank {ME} has all").touch()
        window.fence()


@contextlib.contextmanager
def no_more_threads():
    """As a user who may have one process, but for files; root may have any number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    users = os.getresuid()
    if users[1] == 0:
        os.setresuid(65534, 65534, 0)
        ctypes.CDLL(None).setfsuid(0)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
        os.setresuid(*users)


@check
def a_thread_that_one_rank_cannot_have():
    """All ranks say which rank that is, or do without it; afterwards they have what they ask for."""
    mine, last = np.arange(9.0) + ME, P - 1
    got = np.arange(9.0) + (ME + 1) % P

    def opened(progress, limited=True):
        with no_more_threads() if limited and ME == last > 0 else contextlib.nullcontext():
            return ls.Window(mine, comm=WORLD, node="messages", progress=progress)

    if P > 1:
        text = raises_everywhere(ls.TransportError, lambda: opened("thread"), f"rank {last}: ", "ulimit -u")
        assert "progress of a window" in text and 'progress="calls"' in text, text
    for progress, limited in (("auto", True), ("thread", False)):
        with opened(progress, limited) as window:
            np.testing.assert_array_equal(window[(ME + 1) % P].get(), got)
            if P > 1:
                assert ("ulimit -u" in window.progress) == (limited and ME == last), window.progress


@check
def one_closes_what_others_go_on_with():
    """They are told, and still have it."""
    for node in ("auto", "messages"):
        mine = np.arange(10.0) + ME
        with ls.Window(mine, comm=WORLD, node=node) as window:
            for who in range(P if P > 1 else 0):
                text = raises_everywhere(ls.DisagreementError, window.close if ME == who else window.fence, "close()")
                assert "fence()" in text and f"rank {who}" in text, text
                assert window.is_open
                np.testing.assert_array_equal(window[(ME + 1) % P].get(), np.arange(10.0) + (ME + 1) % P)
                window.fence()
        assert not window.is_open


@check
def values_that_lie_in_the_window():
    """Are copied as NumPy copies what overlaps, on its own array and, through a list, on several."""
    for node in ("auto", "messages"):
        mine = np.arange(12.0)
        with ls.Window(mine, comm=WORLD, node=node) as window:
            section = window[ME]
            section[::-1].put(mine)
            np.testing.assert_array_equal(mine, np.arange(12.0)[::-1])
            section[::-1].get(out=mine)
            np.testing.assert_array_equal(mine, np.arange(12.0))
            section[::-1].nbget(out=mine).wait()
            np.testing.assert_array_equal(mine, np.arange(12.0)[::-1])
            section[[11, *range(11)]].put(mine)
            np.testing.assert_array_equal(mine, np.roll(np.arange(12.0)[::-1], -1))
            section[1:].put(mine[:-1])
            np.testing.assert_array_equal(mine, [10, *range(10, 0, -1), 0])
            window.fence()


@check
def words_that_nobody_waits_for():
    """Who gives a move up tells the others, of whom some have all they need: MPI keeps the word, and goes on."""
    rows, columns = (ls.Layout(f"({kind}) on {P}", (4 * P, 4 * P)) for kind in ("BLOCK, *", "*, BLOCK"))
    mover = ls.plan(rows, columns, "f8").bind(
        ls.empty(rows, "f8", rank=ME), ls.empty(columns, "f8", rank=ME), comm=WORLD, node="messages"
    )
    mover.start()
    if ME == P - 1:
        del mover
    else:
        with contextlib.suppress(ls.TransportError):
            mover.wait()
    WORLD.Barrier()
    owners_need_not_take_part()


@check
def mistakes_of_one_rank():
    """Each is an error of all, or of the one that makes it; afterwards everything works."""
    mine = np.arange(4.0)
    last = ME == P - 1
    if P > 1:
        raises_everywhere(
            ls.DisagreementError,
            lambda: ls.Window(mine.astype("i4") if last else mine, comm=WORLD),
            "different dtypes",
        )
        raises_everywhere(
            ls.DisagreementError,
            lambda: ls.Window(mine, comm=WORLD, node="messages" if last else "auto"),
            "node",
        )
    raises_everywhere(
        ls.ArgumentError, lambda: ls.Window([mine] if last else mine, comm=WORLD), "every rank brings one array"
    )
    raises_everywhere(ls.ArgumentError, lambda: ls.Window(None, comm=WORLD), "element type")
    layout = ls.Layout(f"(BLOCK) on {P}", (4 * P,))
    raises_everywhere(
        ls.ShapeError,
        lambda: ls.Window(mine[:3] if last else mine, comm=WORLD, layout=layout),
        f"rank {P - 1}",
        "(3,)",
    )
    raises_everywhere(
        ls.ArgumentError, lambda: ls.Window(None if last else mine, comm=WORLD, layout=layout), "brings no array"
    )
    few = ls.Layout("(*) on 1", (4,))  # all others take no part
    with ls.Window(mine if ME == 0 else np.empty(0) if last else None, comm=WORLD, layout=few) as window:
        np.testing.assert_array_equal(window.whole[1:].get(), [1, 2, 3])
        window.fence()
    for node in NODES:
        with ls.Window(None if last and P > 1 else mine, comm=WORLD, node=node) as window:
            if P > 1:
                raises(ls.ArgumentError, lambda: window[P - 1].get(), f"laid open array {P - 1}")
            raises(ls.ArgumentError, lambda: window[P], f"array {P}")
            raises(ls.ArgumentError, lambda: window[0][4], "out of bounds")
            raises(ls.ShapeError, lambda: window[0].get(np.empty(3)), "(3,)", "(4,)")
            raises(ls.DTypeError, lambda: window[0].nbput(np.zeros(4, "f4")), "float32")
            np.testing.assert_array_equal(window[0].get(), np.arange(4.0))
            window.fence()
        window.close()
        raises(ls.ArgumentError, window[0].get, "closed")
    fixed = mine.copy()
    fixed.flags.writeable = False
    for node in NODES:
        with ls.Window(fixed, comm=WORLD, node=node) as window:
            raises(ls.LocalArrayError, lambda: window[(ME + 1) % P].put(0.0), "read-only")
            window.fence()


@check
def large_accesses_go_in_pieces():
    """Several at once, of everything from everybody and in any order of waiting, of arrays that lie in many ways."""
    # Without threads for progress, Open MPI takes all memory where several ranks have so many strided gets under way.
    ways = ("thread",) if P > 2 and "Open MPI" in MPI.Get_library_version() else ("thread", "calls")
    shape, others = (260, 300), [(ME + k) % P for k in range(1, P)]
    for order in ("C", "F", "backwards"):
        mine = np.zeros(shape)[::-1] if order == "backwards" else np.zeros(shape, order=order)
        for progress in ways:
            value = 1000.0 * ME + np.arange(np.prod(shape)).reshape(shape)
            mine[...] = value
            with ls.Window(mine, comm=WORLD, node="messages", progress=progress) as window:
                window.fence()
                keys = [np.s_[:], np.s_[::2, 3:], np.s_[[7, 250, *range(40)], 5:], np.s_[100:101]]
                handles = [(rank, key, window[rank][key].nbget()) for rank in others for key in keys]
                random.Random(ME).shuffle(handles)
                for rank, key, handle in handles:
                    np.testing.assert_array_equal(handle.wait(), value[key] + 1000.0 * (rank - ME))
                for rank in others:
                    window[rank][:].nbget()  # dropped
                window.fence()
                if others:  # each writes the right part of its neighbour's, and gets the left one meanwhile
                    puts = [
                        window[others[0]][half, 150:].nbput(value[half, 150:]) for half in (np.s_[:130], np.s_[130:])
                    ]
                    left = window[others[0]][:, :150].get()
                    for put in reversed(puts):
                        put.wait()
                    np.testing.assert_array_equal(left, value[:, :150] + 1000.0 * (others[0] - ME))
                window.fence()
                before = ME if not others else (ME - 1) % P
                np.testing.assert_array_equal(mine[:, 150:], value[:, 150:] + 1000.0 * (before - ME))


@check
def handles_that_are_dropped():
    """A handle that nobody waits for completes before its array goes; a window that is closed completes the rest."""
    mine = np.arange(100_000.0) + ME
    for node in NODES:
        window = ls.Window(mine, comm=WORLD, node=node)
        for _ in range(20):
            window[(ME + 1) % P].nbget()
        out = np.empty(100_000)
        handle = window[(ME + 1) % P].nbget(out)
        window.close()
        if node == "messages" and P > 1:
            handle.wait()
            np.testing.assert_array_equal(out, np.arange(100_000.0) + (ME + 1) % P)
