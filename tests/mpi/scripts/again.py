"""Calls of `redistribute` that come again: the mover that the call before has bound moves, where all ranks have it.

mpiexec -n P python run_checks.py again
"""

import contextlib
import sys
import weakref

import longshore as ls
import numpy as np
from checks import ME, ONE_NODE, WORLD, P, check, raises_everywhere
from longshore import _again, _bind
from mpi4py import MPI

SHAPES = [(12, 18), (P, 5), (1, 1), (7, 3 * P + 1), (0, 4)]
TEXTS = [f"(BLOCK, *) on {P}", f"(*, CYCLIC(2)) on {P}", f"(CYCLIC, *) on {P}", f"(*, *) on 1, ranks=[{P - 1}]"]


@contextlib.contextmanager
def binds():
    """How many calls have bound a mover, in a list of one number."""
    counted, bind = [0], _bind.bind_when_made

    def counting(*arguments):
        counted[0] += 1
        return bind(*arguments)

    _bind.bind_when_made = counting
    try:
        yield counted
    finally:
        _bind.bind_when_made = bind


def whole(shape, turn, dtype="f8"):
    return (np.arange(int(np.prod(shape))).reshape(shape) * 7 + turn).astype(dtype)


def part(layout, array):
    return ls.scatter(array, layout)[list(layout.ranks).index(ME)] if ME in layout.ranks else None


def right(layout, array, out):
    expected = part(layout, array)
    if expected is None or out is None:
        return (expected is None or expected.size == 0) and (out is None or out.size == 0)
    return np.array_equal(out, expected)


def made(layout, dtype="f8", shared=False):
    if ME not in layout.ranks:
        return np.zeros((0,) * len(layout.shape), dtype)
    return ls.empty(layout, dtype, comm=WORLD) if shared else np.zeros(layout.local_shape(ME), dtype, layout.order)


@check
def the_same_arrays():
    for shared in (False, True):
        src, dst = (ls.Layout(text, (12, 18)) for text in TEXTS[:2])
        a, b = made(src, shared=shared), made(dst, shared=shared)
        with binds() as bound:
            for turn in range(5):
                a[...] = part(src, whole((12, 18), turn))
                told = ls.redistribute(a, ls.Layout(TEXTS[0], (12, 18)), TEXTS[1], out=b, comm=WORLD)
                assert told is b and right(dst, whole((12, 18), turn), b)
        assert bound == [1 if ONE_NODE else 5]
        with binds() as bound:
            for _ in range(2):
                ls.redistribute(a, src, TEXTS[1], out=b, comm=WORLD, again=False)
        assert bound == [2]


@check
def others_in_their_place():
    """Arrays come and go, in the same places more often than not, of other types, shapes and layouts; every call is
    right. Who has none on some ranks takes part."""
    chance = np.random.default_rng(5)  # alike on all ranks
    with binds() as bound:
        for turn in range(300):
            shape = SHAPES[chance.integers(len(SHAPES))]
            src, dst = (ls.Layout(TEXTS[chance.integers(len(TEXTS))], shape) for _ in range(2))
            dtype, shared = ("f8", "i4", "c16")[chance.integers(3)], bool(chance.integers(2))
            values = whole(shape, turn, dtype)
            for again in range(chance.integers(1, 4)):
                own, to = (layout.local_size(ME) > 0 or layout.size == 0 for layout in (src, dst))
                a = made(src, dtype, shared) if own else None
                b = made(dst, dtype, shared) if to else None
                if own and ME in src.ranks:
                    a[...] = part(src, values)
                ls.redistribute(a, src, dst, out=b, comm=WORLD)
                assert right(dst, values, b), (turn, again, str(src), str(dst), dtype)
    assert bound[0] <= 900


@check
def where_one_rank_has_other_arrays():
    src, dst = (ls.Layout(text, (12, 18)) for text in TEXTS[:2])
    a, b, others = made(src), made(dst), []
    for turn in range(6):
        if ME == turn % P:  # this one has new arrays, in places of their own
            others.append((a, b))
            a, b = made(src), made(dst)
        a[...] = part(src, whole((12, 18), turn))
        b[...] = 0
        with binds() as bound:
            ls.redistribute(a, src, dst, out=b, comm=WORLD)
        assert bound == [1] and right(dst, whole((12, 18), turn), b)


@check
def mistakes_on_one_rank():
    src, dst = (ls.Layout(text, (12, 18)) for text in TEXTS[:2])
    a, b = made(src), made(dst)
    a[...] = part(src, whole((12, 18), 1))
    last = P - 1

    def again(**more):
        given = {"source": a, "source_layout": src, "destination_layout": dst, "out": b, **(more if ME == last else {})}
        ls.redistribute(*[given[name] for name in list(given)[:3]], out=given["out"], comm=WORLD)

    again()
    again()
    raises_everywhere(ls.DTypeError, lambda: again(out=b.astype("i4")))
    raises_everywhere(ls.ShapeError, lambda: again(out=np.zeros((1, 1))))
    raises_everywhere(ls.LongshoreError, lambda: again(source_layout=3))
    raises_everywhere(ls.LongshoreError, lambda: again(out="no array"))
    raises_everywhere(ls.LongshoreError, lambda: again(destination_layout=ls.Layout(TEXTS[1], (18, 12))))
    if ME == last:
        b.flags.writeable = False
    raises_everywhere(ls.LocalArrayError, again)
    b.flags.writeable = True
    for turn in (2, 3):
        a[...] = part(src, whole((12, 18), turn))
        again()
        assert right(dst, whole((12, 18), turn), b)


@check
def arrays_are_not_held():
    src, dst = (ls.Layout(text, (12, 18)) for text in TEXTS[:2])
    for shared in (False, True):
        a, b = made(src, shared=shared), made(dst, shared=shared)
        before = sys.getrefcount(a), sys.getrefcount(b)
        for _ in range(3):
            ls.redistribute(a, src, dst, out=b, comm=WORLD)
        assert (sys.getrefcount(a), sys.getrefcount(b)) == before
        gone = weakref.ref(a)
        del a, b
        assert gone() is None


def shared_pages():
    """Bytes of shared memory that this process has mapped and touched."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssShmem"))


@check
def of_megabytes():
    """Arrays of any size: those that are private, and those in shared memory, which goes when its arrays go."""
    shape = 64 * P, 16384  # 8 MiB a rank
    src, dst = (ls.Layout(text, shape) for text in TEXTS[:2])
    for shared in (False, True):
        a, b = made(src, shared=shared), made(dst, shared=shared)
        with binds() as bound:
            for turn in range(3):
                a[...] = part(src, whole(shape, turn))
                ls.redistribute(a, src, dst, out=b, comm=WORLD)
                assert right(dst, whole(shape, turn), b)
        assert bound == [1 if ONE_NODE else 3]
        held = [held for _, held in _again.kept_with(WORLD)._movers.values()]
        assert sum(held) <= _again._MOST_HELD
        if shared:
            before = shared_pages()
            del a, b
            assert P == 1 or shared_pages() <= before - (8 << 20)


@check
def where_the_memory_of_one_rank_went():
    """Shared arrays that went, and came in the same places or in others, are bound anew by all."""
    src, dst = (ls.Layout(text, (12, 18)) for text in TEXTS[:2])
    a, b = made(src, shared=True), made(dst, shared=True)
    for turn in range(4):
        if ME == turn % P:
            a = b = None
            a, b = made(src, shared=True), made(dst, shared=True)
        a[...] = part(src, whole((12, 18), turn))
        with binds() as bound:
            for _ in range(2):
                b[...] = 0
                ls.redistribute(a, src, dst, out=b, comm=WORLD)
                assert right(dst, whole((12, 18), turn), b)
        assert bound == [1 if ONE_NODE else 2] or P == 1  # alone, its memory is ordinary


@check
def what_is_held_has_a_ceiling():
    """NumPy's shared memory has nobody else to hold it: only as much is kept as there is room for."""
    with ls.share_numpy_memory(at_least=None) if ONE_NODE else contextlib.nullcontext():
        for columns in (1 << 15, 1 << 16, 1 << 17, 3 << 17):  # 1, 2, 4 and 12 MiB a rank and side
            shape = 4 * P, columns
            src, dst = (ls.Layout(text, shape) for text in TEXTS[:2])
            a, b = made(src), made(dst)
            for turn in range(2):
                a[...] = part(src, whole(shape, turn))
                ls.redistribute(a, src, dst, out=b, comm=WORLD)
                assert right(dst, whole(shape, turn), b)
            kept = _again.kept_with(WORLD)._movers
            assert sum(held for _, held in kept.values()) <= _again._MOST_HELD
            assert P == 1 or not ONE_NODE or (list(kept)[-1][0] == src) == (columns < 3 << 17)


@check
def beside_other_movers():
    src, dst = (ls.Layout(text, (12, 18)) for text in TEXTS[:2])
    a, b, c, d = made(src), made(dst), made(src, shared=True), made(dst, shared=True)
    bound = ls.plan(src, dst, "f8").bind(c, d, comm=WORLD)
    for turn in range(4):
        a[...], c[...] = part(src, whole((12, 18), turn)), part(src, whole((12, 18), turn + 50))
        bound.start()
        ls.redistribute(a, src, dst, out=b, comm=WORLD)
        bound.wait()
        assert right(dst, whole((12, 18), turn), b) and right(dst, whole((12, 18), turn + 50), d)
    # Back and forth between the same two arrays, with axes and without.
    square = ls.Layout(TEXTS[0], (12, 12)), ls.Layout(TEXTS[1], (12, 12))
    x, y = made(square[0]), made(square[1])
    for turn in range(3):
        x[...] = part(square[0], whole((12, 12), turn))
        ls.redistribute(x, *square, out=y, comm=WORLD)
        ls.redistribute(y, square[1], square[0], out=x, comm=WORLD, axes=(1, 0))
        assert right(square[0], whole((12, 12), turn).T, x)
        ls.redistribute(x, *square, out=y, comm=WORLD, axes=[1, 0])
        assert right(square[1], whole((12, 12), turn), y)


@check
def communicators_take_theirs_along():
    src, dst = (ls.Layout(text, (12, 18)) for text in TEXTS[:2])
    a, b = made(src), made(dst)
    a[...] = part(src, whole((12, 18), 9))
    for _ in range(30):
        comm = WORLD.Dup()
        for _ in range(2):
            b[...] = 0
            ls.redistribute(a, src, dst, out=b, comm=comm)
            assert right(dst, whole((12, 18), 9), b)
        comm.Free()
    with binds() as bound:  # more of them than are kept
        for turn in range(3):
            for k in range(1, 12):
                src, dst = (ls.Layout(text, (12, k)) for text in TEXTS[:2])
                values = whole((12, k), turn)
                if k > len(held):
                    held.append((made(src), made(dst)))
                x, y = held[k - 1]
                x[...] = part(src, values)
                ls.redistribute(x, src, dst, out=y, comm=WORLD)
                assert right(dst, values, y)
    assert bound == [33]
    held.clear()


held = []


@check
def in_shared_numpy_memory():
    with ls.share_numpy_memory(at_least=None) if ONE_NODE else contextlib.nullcontext():
        src, dst = (ls.Layout(text, (64, 66)) for text in TEXTS[:2])
        for turn in range(40):
            a, b = made(src), made(dst)
            for _ in range(2):
                a[...] = part(src, whole((64, 66), turn))
                ls.redistribute(a, src, dst, out=b, comm=WORLD)
                assert right(dst, whole((64, 66), turn), b)
            if turn % 3 == 0:
                a.resize((a.shape[0], a.shape[1]))
    # What is kept holds nothing of such memory once it is switched off; who asks again binds.
    assert not ONE_NODE or not _again.kept_with(WORLD)._movers
    with binds() as bound:
        ls.redistribute(a, src, dst, out=b, comm=WORLD)
    assert bound == [1] and right(dst, whole((64, 66), turn), b)


@check
def what_did_not_end_is_not_taken_again():
    """A mover that fails in a move is kept, with its arrays, but moves no more."""
    src, dst = (ls.Layout(text, (12, 18)) for text in TEXTS[:2])
    a, b = made(src), made(dst)
    comm = WORLD.Dup()
    ls.redistribute(a, src, dst, out=b, comm=comm)
    kept = _again.kept_with(comm)
    if ONE_NODE:
        (key,) = kept._movers

        class Failing:
            def __call__(self):
                raise MPI.Exception(MPI.ERR_OTHER)

        (mover, held), kept._movers[key] = kept._movers[key], (Failing(), 0)
        assert held >= mover.workspace_bytes > 0
        try:  # as the same mover, which fails
            module = _again._mpi.open_comm(comm)[0]
            given = module.all_bring
            module.all_bring = lambda handle, one: given(handle, mover)
            with contextlib.suppress(MPI.Exception):
                ls.redistribute(a, src, dst, out=b, comm=comm)
        finally:
            module.all_bring = given
        assert not kept._movers and _again._broken.pop()[1][0] is a
    a[...] = part(src, whole((12, 18), 4))
    ls.redistribute(a, src, dst, out=b, comm=comm)
    assert right(dst, whole((12, 18), 4), b)
    comm.Free()
