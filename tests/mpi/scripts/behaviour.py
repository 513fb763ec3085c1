"""What the mpi engine does besides moving data: disagreement, wrong input, lifetimes, movers in flight.

mpiexec -n P python run_checks.py behaviour
"""

import contextlib
import gc
import io
import os
import resource

import longshore as ls
import numpy as np
from checks import ME, ONE_NODE, WORLD, P, check, raises_everywhere
from longshore import _mpi
from mpi4py import MPI

SHAPE = (56, 18)  # every rank owns some of it, at any of the tested numbers of ranks


def layouts(p=P, shape=SHAPE):
    return ls.Layout(f"(BLOCK, *) on {p}", shape), ls.Layout(f"(*, CYCLIC(2)) on {p}", shape)


def arrays(src, dst, dtype="f8", comm=WORLD, shared=False):
    how = {"comm": comm} if shared else {"rank": comm.rank}
    a, b = ls.empty(src, dtype, **how), ls.empty(dst, dtype, **how)
    a[...] = np.arange(src.size).reshape(src.shape)[_owned(src, comm.rank)]
    b[...] = 0
    return a, b


def _owned(layout, rank):
    """The rectangle of (BLOCK, *) or the columns of (*, CYCLIC(2)) that a rank owns."""
    n, m = layout.shape
    p = layout.rank_count
    if "BLOCK" in str(layout).split(",")[0]:
        b = -(-n // p)
        return np.ix_(np.arange(min(rank * b, n), min((rank + 1) * b, n)), np.arange(m))
    return np.ix_(np.arange(n), np.flatnonzero((np.arange(m) // 2) % p == rank))


def right(layout, array, comm=WORLD, factor=1):
    return np.array_equal(array, factor * np.arange(layout.size).reshape(layout.shape)[_owned(layout, comm.rank)])


@check
def disagreements():
    if P == 1:
        return
    last = P - 1
    src, dst = layouts()
    a, b = arrays(src, dst)
    other = ls.Layout(f"(*, CYCLIC) on {P}", SHAPE) if ME == last else dst
    c = np.empty(other.local_shape(ME))
    text = raises_everywhere(
        ls.DisagreementError, lambda: ls.plan(src, other, "f8").bind(a, c, comm=WORLD), f"rank {last}"
    )
    assert "CYCLIC(2)" in text
    # Elements of the same size that are not the same.
    kind = np.dtype("i8" if ME == last else "f8")
    raises_everywhere(
        ls.DisagreementError, lambda: ls.plan(src, dst, kind).bind(a.view(kind), b.view(kind), comm=WORLD), "int64"
    )
    # Another shape, on one rank only.
    shape = (SHAPE[0] + 1, SHAPE[1]) if ME == last else SHAPE
    s, d = layouts(shape=shape)
    x, y = arrays(s, d)
    raises_everywhere(ls.DisagreementError, lambda: ls.plan(s, d, "f8").bind(x, y, comm=WORLD), "57x18")
    # alpha on one rank only, and another path.
    raises_everywhere(
        ls.DisagreementError, lambda: ls.plan(src, dst, "f8").bind(a, b, comm=WORLD, alpha=2 if ME == last else None)
    )
    raises_everywhere(
        ls.DisagreementError,
        lambda: ls.plan(src, dst, "f8").bind(a, b, comm=WORLD, node="ring" if ME == last else "auto"),
    )
    assert not b.any(), "data was touched"
    ls.plan(src, dst, "f8").bind(a, b, comm=WORLD)()
    assert right(dst, b)


@check
def reports():
    """What a move took beside what was predicted: the same on every rank that asks, and all ask or none does."""
    src, dst = layouts()
    a, b = arrays(src, dst)
    told, out = [], io.StringIO()
    with contextlib.redirect_stdout(out):
        ls.redistribute(a, src, dst, out=b, comm=WORLD, report=True if ME == 0 else told.append)
        ls.redistribute(a, src, dst, out=b, comm=WORLD, report=told.append)
        ls.redistribute(a, src, dst, out=b, comm=WORLD, report=False)
    assert right(dst, b)
    assert out.getvalue().count("predicted") == (ME == 0)
    last = told[-1]
    assert len(told) == (1 if ME == 0 else 2) and WORLD.allgather(last) == [last] * P
    assert (
        last.bytes == b.itemsize * dst.size and last.seconds_measured > 0 and last.way in ("direct", "ring", "messages")
    )
    if last.seconds_predicted is not None:  # a coarse profile has all ways
        plan = ls.plan(src, dst, "f8")
        of_ranks = [ls.model.predict(plan, rank=r).ways for r in range(P)]
        of_way = [cost.seconds for ways in of_ranks for cost in ways if cost.way == last.way]
        assert last.coarse and last.missing == ""
        assert P == 1 or min(of_way) <= last.seconds_predicted
    for who in range(P):
        mine = ME == who
        raises_everywhere(
            ls.ArgumentError,
            lambda: ls.redistribute(a, src, dst, out=b, comm=WORLD, report="yes" if mine else True),
            "report is 'yes'",
        )
        if P > 1:
            raises_everywhere(
                ls.DisagreementError,
                lambda: ls.redistribute(a, src, dst, out=b, comm=WORLD, report=True if mine else None),
                "report",
            )


@check
def wrong_arrays():
    src, dst = layouts()
    plan = ls.plan(src, dst, "f8")
    a, b = arrays(src, dst)
    last = P - 1

    def bad(wrong, fine):
        return wrong() if ME == last else fine

    raises_everywhere(
        ls.LongshoreError, lambda: plan.bind(bad(lambda: np.empty((3, 3)), a), b, comm=WORLD), f"rank {last}"
    )
    raises_everywhere(ls.LongshoreError, lambda: plan.bind(bad(lambda: np.asfortranarray(a), a), b, comm=WORLD))
    raises_everywhere(ls.LongshoreError, lambda: plan.bind(bad(lambda: a.astype("f4"), a), b, comm=WORLD))
    raises_everywhere(ls.LongshoreError, lambda: plan.bind(bad(lambda: None, a), b, comm=WORLD))
    raises_everywhere(ls.LongshoreError, lambda: plan.bind(bad(lambda: "words", a), b, comm=WORLD))
    frozen = b.copy()
    frozen.flags.writeable = False
    raises_everywhere(ls.LocalArrayError, lambda: plan.bind(a, bad(lambda: frozen, b), comm=WORLD), "read-only")
    flat = np.zeros(a.size + b.size)
    over = flat[: a.size].reshape(a.shape), flat[a.size - 1 : a.size - 1 + b.size].reshape(b.shape)
    raises_everywhere(
        ls.LocalArrayError, lambda: plan.bind(bad(lambda: over[0], a), bad(lambda: over[1], b), comm=WORLD)
    )
    raises_everywhere(ls.ArgumentError, lambda: plan.bind(a, b, comm=WORLD, node="teleport"))
    raises_everywhere(ls.ArgumentError, lambda: plan.bind(a, b, comm=WORLD, max_mem=bad(lambda: "lots", None)), "lots")
    raises_everywhere(
        ls.ArgumentError, lambda: ls.redistribute(a, src, dst, comm=WORLD, beta=bad(lambda: 2, None)), "out="
    )
    assert not b.any(), "data was touched"


@check
def wrong_ranks():
    src, dst = layouts(P + 1)
    raises_everywhere(
        ls.ArgumentError,
        lambda: ls.plan(src, dst, "f8").bind(None, None, comm=WORLD),
        f"needs {P + 1} ranks",
        f"has {P}",
    )


@check
def wrong_communicators():
    src, dst = layouts()
    a, b = arrays(src, dst)
    plan = ls.plan(src, dst, "f8")
    for comm in (MPI.COMM_NULL, "world"):
        try:
            plan.bind(a, b, comm=comm)
        except (ls.LongshoreError, AttributeError, MPI.Exception):
            continue
        raise AssertionError(f"{comm} was taken for a communicator")
    if P > 1:
        half = WORLD.Split(ME % 2, ME)
        inter = half.Create_intercomm(0, WORLD, 1 - ME % 2, 5)
        try:
            plan.bind(a, b, comm=inter)
        except ls.ArgumentError as error:
            assert "inter" in str(error)
        else:
            raise AssertionError("an inter-communicator was taken")
        inter.Free()
        half.Free()


@check
def memory_limits():
    if P == 1:
        return
    src, dst = layouts()
    a, b = arrays(src, dst)
    plan = ls.plan(src, dst, "f8")
    text = raises_everywhere(
        ls.MemoryLimitError, lambda: plan.bind(a, b, comm=WORLD, max_mem=15, node="messages"), "16"
    )
    assert "15" in text
    for limit in (16, 40, 100, 1000, 10**6):
        for node in ("messages", "ring", "auto"):
            b[...] = 0
            # The smallest that any rank gives counts.
            mover = plan.bind(a, b, comm=WORLD, max_mem=limit + ME, node=node)
            assert mover.staging_bytes <= limit, (mover.staging_bytes, limit, mover.path)
            mover()
            assert right(dst, b)
    if not ONE_NODE:
        return
    # Shared arrays need no staging at all.
    a, b = arrays(src, dst, shared=True)
    mover = plan.bind(a, b, comm=WORLD, max_mem=1)
    mover()
    assert right(dst, b) and mover.staging_bytes == 0


@check
def movers_in_flight():
    src, dst = layouts()
    plan = ls.plan(src, dst, "f8")
    back = ls.plan(dst, src, "f8")
    for node in ("auto", "ring", "messages"):
        for shared in (False, True):
            a, b = arrays(src, dst, shared=shared)
            c, d = arrays(src, dst, shared=shared)
            e, f = arrays(dst, src, shared=shared)
            one, two, three = (
                plan.bind(a, b, comm=WORLD, node=node),
                plan.bind(c, d, comm=WORLD, node=node),
                back.bind(e, f, comm=WORLD, node=node),
            )
            for k in range(1, 4):
                a[...] *= k
                # Started and finished in different orders on different ranks.
                for mover in (one, two, three) if ME % 2 else (three, two, one):
                    mover.start()
                pending = [two, one, three] if ME % 3 else [three, one, two]
                while k % 2 and pending:
                    pending = [m for m in pending if not m.test()]
                # Or every rank waits for another one first: each must push all of them on.
                for mover in pending or (one, two, three):
                    mover.wait()
                assert right(dst, b, factor=[1, 1, 2, 6][k]) and right(dst, d) and right(src, f), (node, shared, k)


@check
def several_threads_a_rank():
    """Each rank has another number of them; they share its copies, and the result is the same."""
    shape = (800, 400)  # large enough for helpers on every rank
    src, dst = layouts(shape=shape)
    plan = ls.plan(src, dst, "f8")
    threads = 1 + (ME + 1) % 3
    for node in ("auto", "direct", "ring", "messages"):
        for shared in (False, True):
            a, b = arrays(src, dst, shared=shared)
            c, d = arrays(src, dst, shared=shared)
            one = plan.bind(a, b, comm=WORLD, node=node, threads=threads)
            two = plan.bind(c, d, comm=WORLD, node=node, threads=threads, proxy=node == "direct")
            if node == "direct" and shared and ONE_NODE:
                said = [line for line in one.path.splitlines() if line.startswith("copies by")]
                assert said == ([] if threads == 1 else [f"copies by {threads} threads"]), one.path
            for k in range(1, 4):
                a[...] *= k
                b[...] = d[...] = 0
                WORLD.Barrier()  # nobody writes here before
                one.start(), two.start()
                while k == 2 and not one.test():
                    pass
                two.wait(), one.wait()
                assert right(dst, b, factor=[1, 1, 2, 6][k]) and right(dst, d), (node, shared, k)
            if node == "direct":
                one.start()
                one = None  # destroyed while threads copy
                WORLD.Barrier()
    # In the plan's order there is one.
    blocks = ls.FloorPlan.even(ls.Region.of_shape(shape), P)
    u, v = ls.XArray(blocks, float, comm=WORLD), ls.XArray(blocks, float, comm=WORLD)
    for k in u.owned:
        u[k][...], v[k][...] = 1, 2
    ls.BlockPlan.copy_between(blocks, blocks).bind(u, v, comm=WORLD, reduce="add", threads=2)()
    assert all((v[k] == 3).all() for k in v.owned)


@check
def started_twice():
    src, dst = layouts()
    a, b = arrays(src, dst)
    mover = ls.plan(src, dst, "f8").bind(a, b, comm=WORLD)

    def refused(step, words):
        try:
            step()
        except ls.ArgumentError as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"not refused: {words}")

    refused(mover.wait, "wait() without start()")
    refused(mover.test, "test() without start()")
    mover.start()
    refused(mover.start, "has been started already")
    mover.wait()
    refused(mover.wait, "wait() without start()")
    assert right(dst, b)


@check
def beside_other_messages():
    """The user's own messages, with any tag, do not get mixed up with ours, and our waiting lets theirs proceed."""
    src, dst = layouts()
    a, b = arrays(src, dst)
    for node in ("auto", "messages"):
        mover = ls.plan(src, dst, "f8").bind(a, b, comm=WORLD, node=node)
        for tag in range(3):
            b[...] = 0
            theirs, mine = np.zeros(200_000), np.full(200_000, float(ME))
            sending = WORLD.Isend(mine, (ME + 1) % P, tag)
            if ME % 2:  # some receive before the move and some after it: a big message needs the sender's help
                WORLD.Recv(theirs, (ME - 1) % P, tag)
                mover()
            else:
                receiving = WORLD.Irecv(theirs, (ME - 1) % P, tag)
                mover()
                receiving.Wait()
            sending.Wait()
            assert right(dst, b) and (theirs == (ME - 1) % P).all()


@check
def fewer_and_other_ranks():
    if P < 2:
        return
    for text in (f"(BLOCK, *) on 1, ranks=[{P - 1}]", f"(BLOCK, *) on {P - 1}", f"(BLOCK, *) on {P - 1}, ranks=1:{P}"):
        src = ls.Layout(f"(*, CYCLIC(2)) on {P}", SHAPE)
        dst = ls.Layout(text, SHAPE)
        a = np.empty(src.local_shape(ME))
        a[...] = np.arange(src.size).reshape(SHAPE)[_owned(src, ME)]
        mine = ME in list(dst.ranks)
        for shared in (False, True):
            b = ls.empty(dst, "f8", comm=WORLD if shared else None, rank=None if shared else ME) if mine else None
            ls.plan(src, dst, "f8").bind(a, b, comm=WORLD)()
            if mine:
                place = list(dst.ranks).index(ME)
                rows = -(-SHAPE[0] // dst.rank_count)
                assert np.array_equal(b, np.arange(src.size).reshape(SHAPE)[place * rows : (place + 1) * rows])


@check
def one_line_redistribute():
    src, dst = layouts()
    a, _ = arrays(src, dst)
    assert right(dst, ls.redistribute(a, src, dst, comm=WORLD))
    out = np.empty(dst.local_shape(ME))
    ls.redistribute(a, src, dst, comm=WORLD, out=out, alpha=3.0)
    assert right(dst, out, factor=3)
    whole = ls.redistribute(a, src, f"(*, *) on 1, ranks={P - 1}:{P}", comm=WORLD)  # as gather advises
    assert whole is None if ME < P - 1 else (whole == np.arange(src.size).reshape(SHAPE)).all()


def _resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@check
def nothing_leaks():
    src, dst = layouts()
    plan = ls.plan(src, dst, "f8")
    count = {1: 2000, 2: 1000, 3: 150}.get(P, 60)  # binding is slow where ranks outnumber processors

    def rounds(n):
        for i in range(n):
            a, b = arrays(src, dst, shared=i % 2 == 0)
            mover = plan.bind(a, b, comm=WORLD, node=("auto", "ring", "messages")[i % 3])
            if i % 5 == 0:
                mover()
        del mover, a, b
        gc.collect()

    rounds(30)
    fds, memory = len(os.listdir("/proc/self/fd")), _resident()
    rounds(count)
    assert len(os.listdir("/proc/self/fd")) <= fds + 2, (fds, os.listdir("/proc/self/fd"))
    assert _resident() < memory + (20 << 20), (memory, _resident())
    # MPICH has about 2,000 communicators: those that we keep must go with the user's.
    for _ in range(100):
        comm = WORLD.Dup()
        a, b = arrays(src, dst)
        plan.bind(a, b, comm=comm)()
        comm.Free()
    # Nothing with a name is left in shared memory.
    assert not [name for name in os.listdir("/dev/shm") if "longshore" in name]


@check
def machine_forbids_sharing():
    """One rank cannot open anything any more: the node falls back to messages, silently, on all ranks."""
    if P == 1:
        return
    src, dst = layouts()
    plan = ls.plan(src, dst, "f8")
    for shared in (False, True):
        a, b = arrays(src, dst, shared=shared)
        plan.bind(a, b, comm=WORLD, node="messages")()  # MPI has opened what it needs
        comm = WORLD.Dup()  # which movers have no memory with yet
        _mpi.together(comm, int)
        b[...] = 0
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if ME == P - 1:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            assert ls.empty(src, "f8", comm=WORLD).shape == a.shape  # ordinary memory instead
            mover = plan.bind(a, b, comm=comm)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        mover()
        assert right(dst, b)
        assert "MPI messages" in mover.path, mover.path
        del mover
        comm.Free()


@check
def communicator_freed_first():
    src, dst = layouts()
    a, b = arrays(src, dst)
    comm = WORLD.Dup()
    mover = ls.plan(src, dst, "f8").bind(a, b, comm=comm, node="messages")
    mover()
    comm.Free()
    if P > 1:
        try:
            mover()
        except ls.ArgumentError as error:
            assert "freed" in str(error)
        else:
            raise AssertionError("a move over a freed communicator")


@check
def destroyed_in_flight():
    """Not a correct program, but it must not crash: this goes last of all scripts."""
    comm = WORLD.Dup()
    src, dst = layouts()
    for node in ("auto", "messages"):
        a, b = arrays(src, dst, comm=comm)
        mover = ls.plan(src, dst, "f8").bind(a, b, comm=comm, node=node)
        mover.start()
        del mover
        gc.collect()
        WORLD.Barrier()


@check
def scattered_and_gathered():
    """What one rank has whole goes to all ranks and comes back, whoever it is; it is told what is wrong with it."""
    whole = np.arange(56.0 * 18).reshape(SHAPE)
    last = P - 1
    for root in {0, last}:
        for layout in (*layouts(), ls.Layout("(*, BLOCK) on 1, order=F", SHAPE, ranks=[last])):
            for given in (whole, np.asfortranarray(whole), whole[::-1]):
                local = ls.scatter(given if ME == root else None, layout, comm=WORLD, root=root)
                assert (local is None) == (layout.local_size(ME) == 0)
                for out in (None, np.empty(SHAPE)):
                    again = ls.gather(local, layout, out, comm=WORLD, root=root)
                    assert ME == root or again is None
                    if ME == root:
                        assert out is None or again is out
                        np.testing.assert_array_equal(again, given)
    layout = layouts()[0]
    local = ls.scatter(whole, layout, comm=WORLD)
    short = np.empty((3, 18)) if ME == last else whole
    raises_everywhere(ls.ShapeError, lambda: ls.scatter(short, layout, comm=WORLD, root=last), "(3, 18)", "(56, 18)")
    raises_everywhere(ls.ShapeError, lambda: ls.gather(local, layout, short, comm=WORLD, root=last), "out has shape")
    raises_everywhere(ls.ArgumentError, lambda: ls.scatter(whole, layout, comm=WORLD, root=P), f"root is {P}")
    raises_everywhere(ls.ArgumentError, lambda: ls.gather(local, layout, comm=WORLD, root=-1), "root is -1")
    raises_everywhere(ls.ArgumentError, lambda: ls.gather(local, str(layout), comm=WORLD), "says no shape")
    if P > 1:
        words = f"root: rank 0 has 0, rank {last} has 1"
        mine = int(ME == last)
        raises_everywhere(ls.DisagreementError, lambda: ls.gather(local, layout, comm=WORLD, root=mine), words)
        raises_everywhere(ls.DisagreementError, lambda: ls.scatter(whole, layout, comm=WORLD, root=mine), words)
