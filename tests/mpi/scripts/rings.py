"""Arrays that nobody else can see, beyond the cache: what goes through rings, and what is copied along with it.

mpiexec -n P python run_checks.py rings
"""

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check

ROWS, COLUMNS = 1024, 512 * P  # 4 MiB of doubles on each rank
GRID = f"{P}x1" if P % 2 else f"{P // 2}x2"
ACROSS = f"1x{P}" if P % 2 else f"2x{P // 2}"
# Their parts interleave: along rows, in irregular blocks, on grids; they lie in long rows; or across each other.
CASES = [
    (f"(*, CYCLIC) on {P}", f"(*, BLOCK) on {P}", (0, 1)),
    (f"(*, CYCLIC(3)) on {P}", f"(*, CYCLIC(5)) on {P}", (0, 1)),
    (f"(CYCLIC(32), CYCLIC(32)) on {ACROSS}", f"(CYCLIC(100), CYCLIC(100)) on {GRID}", (0, 1)),
    (f"(CYCLIC(32), CYCLIC(32)) on 1x{P}", f"(CYCLIC(100), CYCLIC(100)) on {P}x1", (0, 1)),
    (f"(BLOCK, *) on {P}", f"(*, BLOCK) on {P}", (0, 1)),
    (f"(BLOCK, *) on {P}", f"(BLOCK, *) on {P}", (1, 0)),
]


def arrays(source, destination, axes, dtype="f8"):
    whole = np.arange(ROWS * COLUMNS, dtype=dtype).reshape(ROWS, COLUMNS)
    src = ls.Layout(source, whole.shape)
    dst = ls.Layout(destination, whole.transpose(axes).shape)
    return src, dst, whole[src.indices(ME)].copy(), whole.transpose(axes)[dst.indices(ME)]


@check
def deliver_what_messages_do():
    for source, destination, axes in CASES:
        for dtype in ("f8", "f4"):
            src, dst, a, expected = arrays(source, destination, axes, dtype)
            plan = ls.plan(src, dst, dtype, axes=axes)
            for node, words in (("ring", "rings"), ("messages", "MPI messages")):
                b = np.zeros(expected.shape, dtype)
                mover = plan.bind(a, b, comm=WORLD, node=node)
                for at_once in (True, False):
                    b[...] = -1
                    if at_once:
                        mover()
                    else:
                        mover.start()
                        mover.wait()
                    assert np.array_equal(b, expected), (source, destination, node)
                assert P == 1 or words in mover.path, mover.path


def anywhere(shape, dtype, offset):
    """An array that begins so many bytes behind a cache line, and bytes on either side of it that stay as they are."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.full(count + 256, 0xA5, "u1")
    first = -raw.ctypes.data % 64 + 64 + offset
    return raw, raw[first : first + count].view(dtype).reshape(shape)


@check
def wherever_lines_begin():
    # Ranks tell each other where; fields of one rank may begin at different places, and then no tile ends with a line.
    for source, destination, axes in CASES[-2:]:
        for offsets in ([16], [8 * ME % 64], [16, 16], [0, 24 + ME]):
            fields = []
            for k, offset in enumerate(offsets):
                src, dst, a, expected = arrays(source, destination, axes, ("f8", "f4")[k % 2])
                raw, b = anywhere(expected.shape, expected.dtype, offset // 4 * 4)
                fields.append((ls.plan(src, dst, expected.dtype, axes=axes), a, b, expected, raw))
            mover = ls.bind_together(*(field[:3] for field in fields), comm=WORLD, node="ring")
            for _, _, b, expected, raw in fields:
                before = raw.copy()
                mover()
                assert np.array_equal(b, expected), (source, destination, offsets)
                b[...] = before[b.ctypes.data - raw.ctypes.data :][: b.nbytes].view(b.dtype).reshape(b.shape)
                assert np.array_equal(raw, before), (source, destination, offsets)


@check
def tell_what_has_arrived():
    for source, destination, axes in CASES[:3]:
        src, dst, a, expected = arrays(source, destination, axes)
        b = np.full(expected.shape, -1.0)
        mover = ls.plan(src, dst, "f8").bind(a, b, comm=WORLD, node="ring")
        for _ in range(2):
            b[...] = -1
            mover.start()
            count = 0
            for arrival in mover.arrivals():
                where = arrival.index
                assert np.array_equal(b[where], expected[where]), arrival
                count += b[where].size
            assert count == b.size


@check
def move_again_and_again():
    """So often that packets have been written in every way."""
    src, dst, a, expected = arrays(*CASES[0])
    b = np.zeros(expected.shape)
    mover = ls.plan(src, dst, "f8").bind(a, b, comm=WORLD, node="ring")
    for k in range(12):
        a += 1
        mover()
        assert np.array_equal(b, expected + k + 1)


@check
def do_not_wait_for_who_has_not_started():
    """Packets of several are taken in step, but not by who would wait for ever."""
    src, dst, a, expected = arrays(*CASES[0])
    b = np.full(expected.shape, -1.0)
    mover = ls.plan(src, dst, "f8").bind(a, b, comm=WORLD, node="ring")
    for _ in range(2):
        b[...] = -1
        WORLD.Barrier()
        if ME > 0:
            WORLD.recv(source=0)
        mover.start()
        if ME == 0:
            arrivals = mover.arrivals()
            for rank in range(P - 1, 0, -1):
                WORLD.send(None, rank)
                arrival = next(each for each in arrivals if each.rank == rank)
                assert np.array_equal(b[arrival.index], expected[arrival.index]), arrival
        mover.wait()
        assert np.array_equal(b, expected)
