"""The communication steps that are timed: those of the kernels (`apps/kernels`), and single access patterns. For each
the plan, and beside it, from NumPy alone, what goes from whom to whom and what must be in the arrays afterwards."""

import importlib
from dataclasses import dataclass
from typing import NamedTuple

import longshore as ls
import numpy as np

from ..protocol import Missing

KERNELS = {"transpose": "transpose of a 2-D FFT, {n} × {n}, complex", "fem": "ghosts of an FEM mesh, {n} vertices"}
KERNELS["sor"] = "overlap of SOR, {n} × {n}"
PATTERNS = ("1Q1", "1Q16", "16Q1", "1Q64", "64Q1", "16Q64", "ωQω")


@dataclass(frozen=True)
class Places:
    """Elements of an array in the order of a message: nested loops, or a list of all of them. Counted in elements."""

    first: int = 0
    extents: tuple = ()
    strides: tuple = ()
    listed: np.ndarray | None = None

    @classmethod
    def of(cls, view, array):
        """Those of a view of this array."""
        size, at = array.itemsize, view.__array_interface__["data"][0] - array.__array_interface__["data"][0]
        return cls(at // size, view.shape, tuple(stride // size for stride in view.strides))

    @property
    def size(self):
        return int(np.prod(self.extents)) if self.listed is None else len(self.listed)

    def indices(self):
        if self.listed is not None:
            return self.listed
        grids = np.ix_(*(np.arange(n) * stride for n, stride in zip(self.extents, self.strides)))
        return (self.first + sum(grids)).ravel()

    def dense(self):
        """The same elements in a message."""
        extents = self.extents or (self.size,)
        return Places(0, extents, tuple(int(np.prod(extents[k + 1 :])) for k in range(len(extents))))

    def turned(self):
        """The loops the other way round."""
        return Places(self.first, self.extents[::-1], self.strides[::-1], self.listed)

    def view(self, array):
        """Of an array of one dimension; None for a list."""
        if self.listed is not None:
            return None
        return np.lib.stride_tricks.as_strided(
            array[self.first :], self.extents, [stride * array.itemsize for stride in self.strides]
        )


class Sides(NamedTuple):
    """What each element of an array is, by number: NaN for those that are not this rank's or that nothing comes to."""

    source: np.ndarray
    destination: np.ndarray


@dataclass
class Step:
    """One rank's part: the plan, the arrays to bind it to (one that is both, or two), and the same in NumPy's words."""

    plan: object
    arrays: tuple
    own: Places  # what its owner rewrites
    numbers: Sides
    sends: dict  # by rank
    receives: dict
    stays: tuple = ()  # or the places on both sides of what does not leave its rank

    def __post_init__(self):
        for places in (self.sends, self.receives):
            for peer in [peer for peer, at in places.items() if not at.size]:
                del places[peer]

    def flat(self):
        """Source and destination as arrays of one dimension."""
        both = [np.asarray(_block(array)).reshape(-1) for array in self.arrays]
        return both[0], both[-1]


def _block(array):
    return next(iter(array), np.empty(0)) if isinstance(array, ls.XArray) else array


def step_of(context, case):
    """The step of a case on this rank. Collective."""
    return context.once("step", lambda: _MAKE.get(case.key, _pattern)(context.comm, case))


def _kernel(name):
    """One of the programs of apps/kernels."""
    try:
        return importlib.import_module(f"longshore_lab.kernels.{name}")
    except ImportError as error:
        raise Missing(f"{error} (pip install 'longshore-lab[mesh]' brings SciPy and METIS)") from None


def _transpose(comm, case):
    transform = _kernel("fft2d").Transform(case.n, comm)
    n, rows, columns = case.n, transform.rows, transform.columns
    block = -(-n // comm.size)
    bands = [slice(min(n, r * block), min(n, (r + 1) * block)) for r in range(comm.size)]
    mine = np.arange(n)[bands[comm.rank]]
    numbers = Sides(np.add.outer(n * mine, np.arange(n)), np.add.outer(mine, n * np.arange(n)))
    sends = {r: Places.of(rows[:, band], rows) for r, band in enumerate(bands)}
    receives = {r: Places.of(columns[:, band].T, columns) for r, band in enumerate(bands)}
    stays = sends.pop(comm.rank), receives.pop(comm.rank)
    return Step(transform.plan, (rows, columns), Places.of(rows, rows), numbers, sends, receives, stays)


def _fem(comm, case):
    fem = _kernel("fem")
    part = fem.deal(fem.valley(case.n) if comm.rank == 0 else None, comm)
    solver = fem.Solver(part, comm)
    sends, receives, own = {}, {}, len(part.owned)
    for r, (owned, needed) in enumerate(comm.allgather((part.owned, part.needed))):
        sends[r] = Places(listed=np.flatnonzero(np.isin(part.owned, needed)))
        receives[r] = Places(listed=own + np.flatnonzero(np.isin(part.needed, owned)))
    every = np.concatenate([part.owned, part.needed])
    numbers = Sides(np.where(np.arange(len(every)) < own, every, np.nan), every)
    return Step(solver.plan, (solver.field,), Places(0, (own,), (1,)), numbers, sends, receives)


def _sor(comm, case):
    solver = _kernel("sor").Relaxation(case.n, comm)
    grid, n, sends, receives = np.asarray(solver.grid), case.n, {}, {}
    every = np.full((n + 2, n + 2), np.nan)
    every[1:-1, 1:-1] = np.arange(n * n).reshape(n, n)
    after = every[solver.first : solver.first + len(grid)]
    before = after.copy()
    before[[0, -1]] = np.nan
    for r, inside, ghosts in ((comm.rank - 1, 1, 0), (comm.rank + 1, -2, -1)):
        if 0 <= r < comm.size:
            sends[r], receives[r] = (Places.of(grid[row, 1:-1], grid) for row in (inside, ghosts))
    own = Places.of(grid[1:-1, 1:-1], grid)
    return Step(solver.plan, (solver.field,), own, Sides(before, after), sends, receives)


def _pattern(comm, case):
    """xQy: each rank sends n elements to the next one, x apart in its memory and y apart in that one's."""
    n, ranks, me = case.n, comm.size, comm.rank
    sides = [2 if x == "ω" else int(x) for x in case.key.split("Q")]  # of so many places, one is sent; ω: any
    listed = "ω" in case.key
    shape = [(n * x,) if listed else (n, x) for x in sides]
    floors = [
        ls.FloorPlan([((r * s[0], 0)[: len(s)], ((r + 1) * s[0], *s[1:])) for r in range(ranks)], range(ranks))
        for s in shape
    ]
    plan = ls.BlockPlan(*floors)

    def places(rank, side):
        """An array of the message's places in a block."""
        if listed:
            return np.random.default_rng((rank, side)).permutation(n * sides[side])[:n]
        return np.arange(n) * sides[side]

    def column(rank):
        return ls.Region((rank * n, 0), ((rank + 1) * n, 1))

    for r in range(ranks):
        to = (r + 1) % ranks
        if listed:
            plan.copy_points(places(to, 1) + to * 2 * n, to, places(r, 0) + r * 2 * n, r)
        else:
            plan.copy(column(to), to, column(r), r)
    numbers = Sides(*(np.full(s, np.nan) for s in shape))
    numbers.source.reshape(-1)[places(me, 0)] = me * n + np.arange(n)
    numbers.destination.reshape(-1)[places(me, 1)] = (me - 1) % ranks * n + np.arange(n)
    mine = [Places(listed=places(me, k)) if listed else Places(0, (n,), (x,)) for k, x in enumerate(sides)]
    arrays = tuple(ls.XArray(floor, float, comm=comm) for floor in floors)
    return Step(plan, arrays, mine[0], numbers, {(me + 1) % ranks: mine[0]}, {(me - 1) % ranks: mine[1]})


_MAKE = {"transpose": _transpose, "fem": _fem, "sor": _sor}
