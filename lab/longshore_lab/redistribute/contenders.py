"""Everyone who takes part in `longshore bench redistribute`, in the order in which they are shown, and their arrays."""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import longshore as ls
import numpy as np

from .. import _loops
from ..protocol import Contender, Missing, Ready, WrongResult, quickest
from . import peers
from .cases import strided_pieces

COPIES = ("temporal", "non-temporal", "rep movsb", "prefetched")
COPY_NAMES = tuple(f"copy, {how}" for how in COPIES)
_COPY_SHIFT = 264  # doubles; see memory_copy
_VERIFY_ROWS = 32  # so many rows of a big array stay in cache while they are compared


class Part:
    """One rank's local array, with the salt by which its owner has changed it since it was filled."""

    def __init__(self, case, rank, array, is_source):
        self.case, self.rank, self.array, self.salt = case, rank, array, 0.0
        if is_source:
            for rows in self._rows():
                array[rows] = case.source_values(rank, rows)
        else:
            array.fill(np.nan)

    def _rows(self):
        return (slice(k, k + _VERIFY_ROWS) for k in range(0, self.array.shape[0], _VERIFY_ROWS))

    def rewrite(self):
        np.add(self.array, 1.0, out=self.array)
        self.salt += 1.0

    def check(self, salt):
        for rows in self._rows():
            got, expected = self.array[rows], self.case.destination_values(self.rank, rows) + salt
            if not np.array_equal(got, expected):
                i, j = (int(x) for x in np.argwhere(got != expected)[0])
                where = f"rank {self.rank}, local element {(rows.start + i, j)}"
                raise WrongResult(f"{where}: {got[i, j]!r} where {expected[i, j]!r} belongs")


class Arrays(NamedTuple):
    """The source and destination parts that this process holds for one contender (or for several)."""

    sources: list
    destinations: list

    @classmethod
    def make(cls, case, ranks, allocate):
        def parts(side, of):
            return [Part(case, r, allocate(side, r, of.local_shape(r)), side == "source") for r in ranks]

        return cls(parts("source", case.source), parts("destination", case.destination))

    def mine(self):
        return self.sources[0].array, self.destinations[0].array


def _pooled(context, case, whose, ranks):
    """In memory of the last case over again: the first touch of half a gigabyte takes longer than all its moves."""

    def allocate(side, rank, shape):
        key, size = (whose, side, rank), math.prod(shape)
        if key not in context.pool or context.pool[key].size < size:
            context.pool[key] = np.empty(size + size // 16, dtype=np.float64)
        return context.pool[key][:size].reshape(shape)

    return context.once(whose, lambda: Arrays.make(case, ranks, allocate))


def local_arrays(context, case):
    """This rank's ordinary NumPy arrays, shared by all contenders that take any array."""
    return _pooled(context, case, "local", [context.rank])


def all_arrays(context, case):
    """Every rank's arrays in this one process, shared by the contenders that need no MPI; empty off the root."""
    return _pooled(context, case, "all", range(context.ranks) if context.rank == 0 else [])


class Move(Ready):
    """A contender bound to its arrays. `check` stands in place of the owner formula, for the memory copies."""

    def __init__(self, run, arrays, detail="", *, alone=False, threads=1, check=None, close=None):
        self.run, self.arrays, self.detail, self.alone, self.threads = run, arrays, detail, alone, threads
        self.check, self.close = check or self.check, close or self.close
        for part in arrays.sources[:1]:
            self.most_bytes = part.case.most_bytes

    def refresh(self):
        for part in self.arrays.sources:
            part.rewrite()

    def spoil(self):
        for part in self.arrays.destinations:
            part.array.fill(np.nan)

    def check(self):
        for part in self.arrays.destinations:
            part.check(self.arrays.sources[0].salt)


def memory_copy(context, case, how):
    """The yardstick: each rank copies its own source bytes once, all ranks at the same time.

    The destinations lie 2112 bytes further in their pages than the sources: where they lie alike, loads wait for the
    stores under way to the same place of a page, and whoever is compared with the copy looks good. Each kind of copy
    has destinations of its own, as all contenders have: what several write by turns stays in the last cache."""
    arrays = (all_arrays if context.comm is None else local_arrays)(context, case)
    sources = [part.array.reshape(-1) for part in arrays.sources]
    room = context.once(f"copies, {how}", lambda: [np.zeros(s.size + _COPY_SHIFT + 512) for s in sources])
    offset = [(s.ctypes.data - r.ctypes.data) // 8 % 512 + _COPY_SHIFT for s, r in zip(sources, room)]
    pairs = [(r[at % 512 :][: s.size], s) for r, s, at in zip(room, sources, offset)]
    copies = [partial(_loops.copy_bytes, d.ctypes.data, s.ctypes.data, s.nbytes, how) for d, s in pairs]

    def check():
        if not all(np.array_equal(d, s) for d, s in pairs):
            raise WrongResult("the copy differs from its source")

    if context.comm is not None:
        return Move(copies[0], arrays, check=check)
    pool = ThreadPoolExecutor(len(copies))
    run = lambda: [pending.result() for pending in [pool.submit(copy) for copy in copies]]  # noqa: E731
    return Move(run, arrays, alone=True, threads=len(copies), check=check, close=pool.shutdown)


def plan_of(case):
    source = ls.Layout(case.source.text, shape=case.shape)
    destination = ls.Layout(case.destination.text, shape=tuple(case.shape[a] for a in case.axes))
    return ls.plan(source, destination, "float64", axes=case.axes if case.transposed else None)


def bound(mover, arrays, **more):
    return Move(mover, arrays, "; ".join(filter(None, map(str.strip, str(mover.path).splitlines()))), **more)


def longshore_threads(context, case):
    arrays, how = all_arrays(context, case), {"alone": True, "threads": context.ranks}
    if context.rank != 0:
        return Move(lambda: None, arrays, **how)
    parts = ([part.array for part in side] for side in arrays)
    return bound(plan_of(case).bind(*parts, threads=context.ranks), arrays, **how)


def longshore_mpi(context, case):
    plan = plan_of(case)

    def empty(side, rank, shape):
        return ls.empty(getattr(plan, side), "float64", comm=context.comm)

    arrays = Arrays.make(case, [context.rank], empty)
    return bound(plan.bind(*arrays.mine(), comm=context.comm), arrays)


def longshore_mpi_shared(context, case):
    """Arrays that NumPy has allocated, in memory which the node shares."""
    with ls.share_numpy_memory():
        arrays = Arrays.make(case, [context.rank], lambda side, rank, shape: np.empty(shape))
    return bound(plan_of(case).bind(*arrays.mine(), comm=context.comm), arrays)


def longshore_mpi_any(context, case):
    arrays = local_arrays(context, case)
    return bound(plan_of(case).bind(*arrays.mine(), comm=context.comm), arrays)


def _fastest(ways, context, case):
    """What is fastest here of a peer's ways of doing the same."""
    arrays, held = local_arrays(context, case), []
    options = [(words, Move(run, arrays)) for words, run in ways(context, case, *arrays.mine(), held)]
    best = quickest(context, options, 20 if case.n <= 256 else 3)
    best.close = lambda: [handle.Free() for handle in reversed(held)]
    return best


def calling(prepare, context, case):
    """A peer that is called in one way: what is called, its name, and what frees it."""
    arrays = local_arrays(context, case)
    call, detail, close = prepare(context, case, *arrays.mine())
    return Move(call, arrays, detail, close=close)


def mpi4py_fft(context, case, source, destination):
    """Its pencils know even blocks in whole dimensions only, so they take one case."""
    try:
        from mpi4py_fft.pencil import Pencil, Subcomm
    except ImportError as error:
        raise Missing(f"not importable ({error})") from None
    rows = Pencil(Subcomm(context.comm, [0, 1]), case.shape, axis=1)
    columns = rows.pencil(0)
    if tuple(rows.subshape) != source.shape or tuple(columns.subshape) != destination.shape:
        raise Missing("its blocks are not HPF's blocks at this size")
    transfer = rows.transfer(columns, source.dtype)
    return lambda: transfer.forward(source, destination), "", transfer.destroy


def numpy_copy(context, case):
    """NumPy by itself: one process, one thread, strided slices copied from part to part."""
    arrays, pieces = all_arrays(context, case), []
    for s in arrays.sources:
        for d in arrays.destinations:
            views = strided_pieces(case, s.rank, d.rank, s.array, d.array)
            pieces += [(d_view, s_view) for s_view, d_view, _ in views]
    return Move(partial(peers.copy_all, pieces), arrays, f"{len(pieces)} strided copies", alone=True)


CONTENDERS = (
    *(Contender(f"copy, {how}", partial(memory_copy, how=how), needs_mpi=False) for how in COPIES),
    Contender("longshore threads", longshore_threads, needs_mpi=False),
    Contender("longshore mpi", longshore_mpi),
    Contender("longshore mpi (numpy, shared)", longshore_mpi_shared),
    Contender("longshore mpi (any array)", longshore_mpi_any),
    Contender("MPI Alltoallw", partial(_fastest, peers.alltoallw)),
    Contender("hand-packed isend", partial(_fastest, peers.hand_packed)),
    Contender("ScaLAPACK", partial(calling, peers.scalapack)),
    Contender("COSTA", partial(calling, peers.costa)),
    Contender("mpi4py-fft", partial(calling, mpi4py_fft), applies=lambda case: case.key == "rows-to-columns"),
    Contender("numpy", numpy_copy, needs_mpi=False),
)
