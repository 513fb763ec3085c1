"""Arrays that NumPy has allocated while `ls.share_numpy_memory()` was on."""

import contextvars
import gc
import multiprocessing
import os
import resource
import threading
import tracemalloc
import warnings

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check, raises
from longshore import _mpi
from memory import descriptors, shared_pages

ROWS, COLUMNS = (ls.Layout(f"({dims}) on {P}", (64 * P, 640)) for dims in ("BLOCK, *", "*, BLOCK"))
MEBIBYTE = 1 << 17  # of doubles


def is_shared(array):
    """Whether it lies in a mapping that other processes can have, too."""
    address = array.ctypes.data
    with open("/proc/self/maps") as maps:
        for line in maps:
            begin, end = (int(number, 16) for number in line.split()[0].split("-"))
            if begin <= address < end:
                return "/memfd:longshore" in line and line.split()[1] == "rw-s"
    raise AssertionError("it lies nowhere")


def values(layout, factor=1.0):
    whole = np.arange(layout.size, dtype=float).reshape(layout.shape) * factor
    return ls.scatter(whole, layout)[ME]


def moved(a, b, straight=True):
    """Moves between two arrays of this process and compares; the mover."""
    b[...] = -1
    mover = ls.plan(ROWS, COLUMNS, "f8").bind(a, b, comm=WORLD)
    mover()
    np.testing.assert_array_equal(b, values(COLUMNS, 2))
    if P > 1:
        assert ("straight" in mover.path and "ring" not in mover.path) == straight, mover.path
        assert (mover.obstacle == "") == straight, mover.obstacle
    WORLD.Barrier()  # nobody writes what another still reads
    return mover


def ways_to_make(layout):
    """What ordinary code does to get an array of the local shape that holds twice the values."""
    given = values(layout)
    empty, zeros = np.empty(given.shape), np.zeros(given.shape)
    assert not zeros.any()
    empty[...], zeros[...] = 2 * given, 2 * given
    inside = np.zeros(given.size + 5)[3:-2].reshape(given.shape)
    inside[...] = empty
    grown = np.zeros(3)
    grown.resize(given.size, refcheck=False)
    grown[...] = empty.ravel()
    listed = np.fromiter(iter(empty.ravel()), float).reshape(given.shape)
    yield from (given + given, empty.copy(), empty, zeros, inside, grown.reshape(given.shape), listed)


@check
def ordinary_code_moves_straight():
    private = [2 * values(ROWS), np.empty(COLUMNS.local_shape(ME))]
    with ls.share_numpy_memory(at_least="1 KiB"):
        results = np.empty(COLUMNS.local_shape(ME))
        for a, b in zip(ways_to_make(ROWS), ways_to_make(COLUMNS)):
            assert is_shared(a) and is_shared(b)
            moved(a, b), moved(a, private[1]), moved(private[0], b)
        ls.plan(ROWS, COLUMNS, "f8").bind(a, results, comm=WORLD, node="messages")()  # the plain twin
        outcome = ls.redistribute(a, ROWS, COLUMNS, comm=WORLD)
    np.testing.assert_array_equal(outcome, results)
    assert is_shared(outcome)
    told = moved(*private, straight=False).obstacle
    assert P == 1 or "share_numpy_memory" in told, told


@check
def what_is_switched_on_is_switched_off():
    assert not is_shared(np.zeros(MEBIBYTE))
    switch = ls.share_numpy_memory()
    a, small = np.ones(MEBIBYTE), np.ones(1000)
    assert is_shared(a) and not is_shared(small)
    switch.close(), switch.close()
    b = np.ones(MEBIBYTE)
    assert not is_shared(b)
    view = a[5:-5].reshape(2, -1)
    del a
    view += 1
    assert is_shared(view) and (view == 2).all()
    try:
        with ls.share_numpy_memory():
            raise KeyError
    except KeyError:
        pass
    assert not is_shared(np.ones(MEBIBYTE))
    # One in the other: what the inner one leaves is the outer one's.
    with ls.share_numpy_memory(at_least="512 KiB") as outer:
        with ls.share_numpy_memory(at_least="1 MiB"):
            assert is_shared(np.ones(MEBIBYTE)) and is_shared(np.ones(MEBIBYTE // 2))
            assert not is_shared(np.ones(MEBIBYTE // 4))
            raises(ls.ArgumentError, outer.close, "the last one first")
        assert is_shared(np.ones(MEBIBYTE // 2))
        seen, context = [], contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(lambda: seen.append(is_shared(np.ones(MEBIBYTE))),))
        thread.start(), thread.join()
        assert seen == [True]
    for wrong in ({"at_least": "much"}, {"keep": -1}):
        raises(ls.ArgumentError, lambda: ls.share_numpy_memory(**wrong), next(iter(wrong)))


@check
def resized_arrays():
    """The block of an array that is resized under a mover is nobody else's as long as that lives."""
    with ls.share_numpy_memory():
        a = np.arange(float(MEBIBYTE))
        for size in (MEBIBYTE + 1, 4 * MEBIBYTE, 100, 20, 3 * MEBIBYTE):
            known = min(a.size, size, 20)
            a.resize(size, refcheck=False)
            assert (a[:known] == np.arange(known)).all() and is_shared(a) == (size > 10_000)
        a, b = 2 * values(ROWS), np.empty(COLUMNS.local_shape(ME))
        mover = moved(a, b)
        place = a.ctypes.data
        a.resize((a.shape[0] * 9, a.shape[1]), refcheck=False)
        raises(ls.LocalArrayError, mover, "was resized")
        others = [np.empty(ROWS.local_shape(ME)) for _ in range(3)]
        if P > 1:
            assert place not in [other.ctypes.data for other in others]
        del mover
        gc.collect()
        assert place in [other.ctypes.data for other in [*others, *(np.empty(ROWS.local_shape(ME)) for _ in range(3))]]
    WORLD.Barrier()


def in_a_child(work):
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return child


def are_well(*children):
    return {os.waitpid(child, 0)[1] for child in children} == {0}


@check
def forked_children():
    with ls.share_numpy_memory():
        free, kept = np.full(3 * MEBIBYTE, 4.0), np.zeros(MEBIBYTE)
        untouched = np.zeros(40 * MEBIBYTE)
        bound, to = 2 * values(ROWS), np.empty(COLUMNS.local_shape(ME))
        mover = moved(bound, to)
        ready, done = os.pipe()

        def child():
            os.read(ready, 1)  # until the parent has written, too
            well = (free == 4).all() and not kept.any() and not untouched.any() and (bound == 2 * values(ROWS)).all()
            free[...], kept[...], untouched[::1000], bound[...] = -1, -1, -1, -1
            more = np.ones(MEBIBYTE)  # ordinary memory
            well = well and not is_shared(more) and (more.sum() == MEBIBYTE)
            with ls.share_numpy_memory():
                return well and is_shared(np.ones(MEBIBYTE))

        children = [in_a_child(child)]
        free += 1
        more = np.full(3 * MEBIBYTE, 7.0)  # nothing that a child may see
        children.append(in_a_child(lambda: (free == 5).all() and (more == 7).all() and child() is not None))
        bound *= 1
        more = None
        free[0], kept[0], untouched[0] = 9, 9, 9
        os.write(done, b"ab")
        assert are_well(*children)
        os.close(ready), os.close(done)
        assert free[0] == 9 and (free[1:] == 5).all() and kept[0] == 9 and not kept[1:].any()
        assert untouched[0] == 9 and not untouched[1:].any()
        assert is_shared(bound) == (P > 1) and not is_shared(free)
        mover()
        np.testing.assert_array_equal(to, values(COLUMNS, 2))
        # What was not bound is moved as any private array is, and this is told.
        a, b = (np.empty(side.local_shape(ME)) for side in (ROWS, COLUMNS))
        a[...] = 2 * values(ROWS)
        assert are_well(in_a_child(lambda: (a == 2 * values(ROWS)).all()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert P == 1 or "forked since" in moved(a, b, straight=False).obstacle
        process = multiprocessing.get_context("fork").Process(target=lambda: os._exit(int(free[1] != 5)))
        process.start(), process.join()
        assert process.exitcode == 0
        moved(2 * values(ROWS), np.empty(COLUMNS.local_shape(ME)))
    del mover
    WORLD.Barrier()


@check
def a_fork_beside_a_thread_that_writes():
    """It goes on writing while its memory becomes private."""
    with ls.share_numpy_memory():
        counts, stop = np.zeros(2 * MEBIBYTE), threading.Event()

    def count():
        while not stop.is_set():
            np.add(counts, 1, out=counts)
            rounds.append(1)

    rounds = []
    thread = threading.Thread(target=count)
    thread.start()
    while len(rounds) < 3:
        pass
    children = [in_a_child(lambda: True) for _ in range(3)]
    assert are_well(*children)
    stop.set(), thread.join()
    assert (counts == len(rounds)).all()


@check
def threads_have_one_memory():
    before = descriptors()
    failures = []

    def work(seed):
        draw = np.random.default_rng(seed)
        with ls.share_numpy_memory(at_least="16 KiB", keep="4 MiB"):
            arrays = []
            for step in range(150):
                size = int(2 ** draw.uniform(10, 18))
                arrays.append((np.full(size, seed + step, float), seed + step) if step % 2 else (np.zeros(size), 0))
                if draw.random() < 0.2:
                    array, value = arrays[-1]
                    array.resize(int(2 ** draw.uniform(10, 19)), refcheck=False)
                    if array.size > size and array[size:].any():
                        failures.append("a resized array begins with what was there before")
                    array[...] = value
                if len(arrays) > 8:
                    array, value = arrays.pop(int(draw.integers(8)))
                    if not (array == value).all():
                        failures.append((seed, step))
            others.extend(arrays)

    others = []
    threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert all((array == value).all() for array, value in others) and descriptors() <= before + 1
    others.clear()
    assert descriptors() == before


def mappings():
    with open("/proc/self/maps") as maps:
        return sum(1 for _ in maps)


@check
def ten_thousand_arrays_leave_nothing():
    def some(count):
        with ls.share_numpy_memory(at_least="4 KiB", keep="1 MiB"):
            arrays = [np.empty(512 + 64 * (k % 15)) for k in range(count)]
            assert is_shared(arrays[0]) and is_shared(arrays[-1])
            while arrays:
                arrays.pop(len(arrays) // 2)
                arrays[: len(arrays) // 100] = []
            return descriptors(), mappings(), shared_pages()

    some(100)
    gc.collect()
    before = descriptors(), mappings(), shared_pages()
    files, maps, held = some(10_000)
    assert files <= before[0] + 1 and maps <= before[1] + 3, (before, files, maps)
    assert held <= before[2] + (3 << 20), (before, held)
    gc.collect()
    after = descriptors(), mappings(), shared_pages()
    assert after[0] <= before[0] and after[1] <= before[1] + 3 and after[2] <= before[2], (before, after)


@check
def what_is_freed_goes_back():
    with ls.share_numpy_memory(keep=None):
        gc.collect()  # arrays of checks before this one, and what the process kept of them
    base = shared_pages()
    with ls.share_numpy_memory(keep="16 MiB"):
        arrays = [np.ones(4 * MEBIBYTE) for _ in range(20)]
        now, held = shared_pages(), sum(a.nbytes for a in arrays)
        assert now >= base + held - (1 << 20), (base, now, held)  # something else of the process may go meanwhile
        kept = arrays.pop()
        arrays.clear()
        assert shared_pages() <= base + kept.nbytes + (18 << 20)
        again = np.zeros(4 * MEBIBYTE)
        assert not again.any()
    assert shared_pages() <= base + kept.nbytes + again.nbytes + (1 << 20)
    del again
    assert shared_pages() <= base + kept.nbytes + (1 << 20) and (kept == 1).all()
    # What is not touched takes nothing, however large.
    with ls.share_numpy_memory():
        huge = np.zeros(os.sysconf("SC_PHYS_PAGES") // 2 * os.sysconf("SC_PAGE_SIZE"), np.uint8)
        huge[huge.size // 2] = 1
        assert is_shared(huge)
        assert shared_pages() < base + kept.nbytes + (64 << 20)


@check
def what_cannot_be_shared_is_told():
    assert _mpi.together(WORLD, int) == 0
    ls.share_numpy_memory().close()  # has imported what it needs, which no file could be opened for below
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            with ls.share_numpy_memory():
                a = np.ones(MEBIBYTE)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert len(told) == 1 and "Too many open files" in str(told[0].message) and not is_shared(a)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, hard))
    try:
        with ls.share_numpy_memory():
            many = [np.full(MEBIBYTE, 3.0) for _ in range(20)]
            assert is_shared(many[0]) and not is_shared(many[-1])
            many[-1].resize(2 * MEBIBYTE, refcheck=False)
            a, b = 2 * values(ROWS), np.empty(COLUMNS.local_shape(ME))
            assert not is_shared(a)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                assert P == 1 or "ulimit -f" in moved(a, b, straight=False).obstacle
            assert P == 1 or "ulimit -f" in str(told[0].message)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (many[0] == 3).all() and (many[-1][:MEBIBYTE] == 3).all()


@check
def what_no_machine_has_is_an_error_as_ever():
    with ls.share_numpy_memory():
        a = np.ones(MEBIBYTE)
        for make in (np.empty, np.zeros):
            raises(MemoryError, lambda: make(1 << 62, np.uint8))
        raises(MemoryError, lambda: a.resize(1 << 59, refcheck=False))
        assert a.size == MEBIBYTE and (a == 1).all()


@check
def traced_memory_is_that_of_arrays():
    tracemalloc.start()
    try:
        with ls.share_numpy_memory():
            before = tracemalloc.get_traced_memory()[0]
            a = np.zeros(4 * MEBIBYTE)
            assert a.nbytes <= tracemalloc.get_traced_memory()[0] - before < a.nbytes + 100_000
            del a
            assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()


OUTLIVING = []


@check
def arrays_and_movers_outlive_mpi():
    """They are there when the job ends, and it ends well."""
    with ls.share_numpy_memory():
        a, b = 2 * values(ROWS), np.empty(COLUMNS.local_shape(ME))
        OUTLIVING.extend((a[1:], b, moved(a, b)))
