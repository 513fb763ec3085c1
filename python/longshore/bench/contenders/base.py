"""What a contender is: something that can be prepared once for a case and then run again and again."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..cases import Case

VERIFY_ROWS = 32  # so many rows of a big array stay in cache while they are compared


class Missing(Exception):
    """Raised while preparing: the contender cannot run here. The text says why, for the reader of the table."""


class WrongResult(Exception):
    """Raised by verification: a contender that is wrong is never timed."""


class Part:
    """One rank's local array, with the salt by which its owner has changed it since it was filled."""

    def __init__(self, case: Case, rank: int, array: np.ndarray, is_source: bool) -> None:
        self.case, self.rank, self.array, self.salt = case, rank, array, 0.0
        if is_source:
            for k in range(0, array.shape[0], VERIFY_ROWS):
                array[k : k + VERIFY_ROWS] = case.source_values(rank, slice(k, k + VERIFY_ROWS))
        else:
            array.fill(np.nan)

    def rewrite(self) -> None:
        """The owner writes every element anew: otherwise a peer may read lines it still has in its own cache."""
        np.add(self.array, 1.0, out=self.array)
        self.salt += 1.0

    def check(self, salt: float, who: str) -> None:
        for k in range(0, self.array.shape[0], VERIFY_ROWS):
            expected = self.case.destination_values(self.rank, slice(k, k + VERIFY_ROWS))
            expected += salt
            got = self.array[k : k + VERIFY_ROWS]
            if not np.array_equal(got, expected):
                bad = tuple(int(x) for x in np.argwhere(got != expected)[0])
                raise WrongResult(
                    f"{who}: rank {self.rank}, local element {(bad[0] + k, *bad[1:])}: "
                    f"{got[bad]!r} where {expected[bad]!r} belongs"
                )


@dataclass
class Arrays:
    """The source and destination parts that this process holds for one contender (or for several)."""

    sources: list[Part]
    destinations: list[Part]

    @classmethod
    def make(cls, case: Case, ranks: list[int], allocate: Callable[[str, int, tuple[int, ...]], np.ndarray]) -> Arrays:
        return cls(
            [Part(case, r, allocate("source", r, case.source.local_shape(r)), True) for r in ranks],
            [Part(case, r, allocate("destination", r, case.destination.local_shape(r)), False) for r in ranks],
        )


def ordinary(side: str, rank: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.empty(shape, dtype=np.float64)


@dataclass
class Context:
    """What contenders are prepared with. `comm` is None in a run without MPI."""

    comm: Any
    ranks: int
    rank: int
    mpi_family: str = ""
    _shared: dict[str, Arrays] = field(default_factory=dict)
    _pool: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)

    def _pooled(self, side: str, rank: int, shape: tuple[int, ...]) -> np.ndarray:
        """Memory of the last case over again: the first touch of half a gigabyte takes longer than all its moves."""
        size = math.prod(shape)
        memory = self._pool.get((side, rank))
        if memory is None or memory.size < size:
            memory = self._pool[side, rank] = np.empty(size + size // 16, dtype=np.float64)
        return memory[:size].reshape(shape)

    @property
    def is_root(self) -> bool:
        return self.rank == 0

    def local_arrays(self, case: Case) -> Arrays:
        """This rank's ordinary NumPy arrays, shared by all contenders that take any array."""
        if "local" not in self._shared:
            self._shared["local"] = Arrays.make(case, [self.rank], self._pooled)
        return self._shared["local"]

    def all_arrays(self, case: Case) -> Arrays:
        """Every rank's arrays in this one process, shared by the contenders that need no MPI; empty off the root."""
        if "all" not in self._shared:
            ranks = list(range(self.ranks)) if self.is_root else []
            self._shared["all"] = Arrays.make(case, ranks, lambda side, *rest: self._pooled("all " + side, *rest))
        return self._shared["all"]

    def forget_arrays(self) -> None:
        self._shared.clear()


@dataclass
class Prepared:
    """A contender bound to its arrays. `run` is the timed part and nothing else."""

    run: Callable[[], Any]
    arrays: Arrays
    root_only: bool = False  # the other ranks sleep meanwhile, and the root may use all their cores
    threads: int = 1
    detail: str = ""
    check: Callable[[], None] | None = None  # in place of the owner formula, for the memory copies
    close: Callable[[], Any] = lambda: None

    def rewrite_sources(self) -> None:
        for part in self.arrays.sources:
            part.rewrite()

    def verify(self, who: str) -> None:
        if self.check is not None:
            self.check()
            return
        for part in self.arrays.destinations:
            part.check(self.arrays.sources[0].salt, who)


class Contender:
    """Base of all contenders; `prepare` is collective over the ranks and may raise `Missing`."""

    name = ""
    needs_mpi = True

    def applies(self, case: Case) -> bool:
        return True

    def prepare(self, context: Context, case: Case) -> Prepared:
        raise NotImplementedError


def strided_pieces(
    case: Case, source_rank: int, destination_rank: int, source: np.ndarray | None, destination: np.ndarray | None
) -> Iterator[tuple[np.ndarray | None, np.ndarray | None, tuple[int, ...]]]:
    """NumPy views of what goes from one rank to another, both in the source's order of dimensions.

    Yields (source view, destination view, shape); a side whose array is None (it lies on another rank) gives None.
    """
    folds = case.folds(source_rank, destination_rank)
    for combination in itertools.product(*folds):
        shape = tuple(x for f in combination for x in (f.count, f.length))
        views: list[np.ndarray | None] = []
        for array, which in ((source, 0), (destination, 1)):
            if array is None:
                views.append(None)
                continue
            start: list[int] = [0] * array.ndim
            strides: list[int] = []
            for d, f in enumerate(combination):
                dim = d if which == 0 else case.axes.index(d)
                start[dim] = f.source if which == 0 else f.destination
                step = f.source_step if which == 0 else f.destination_step
                strides += [step * array.strides[dim], array.strides[dim]]
            origin = array[tuple(slice(s, None) for s in start)]
            view = np.lib.stride_tricks.as_strided(origin, shape=shape, strides=strides)
            views.append(view)
        yield views[0], views[1], shape


def fastest(
    context: Context, case: Case, options: list[tuple[str, Callable[[], Any]]]
) -> tuple[str, Callable[[], Any]]:
    """Tries each way of doing the same thing and keeps the one whose slowest rank is fastest. Collective."""
    if len(options) == 1:
        return options[0]
    trials = 20 if case.n <= 256 else 2
    costs = []
    for _, run in options:
        best = float("inf")
        for _ in range(trials + 1):  # the first also warms up
            if context.comm is not None:
                context.comm.Barrier()
            start = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - start)
        costs.append(best if context.comm is None else max(context.comm.allgather(best)))
    return options[costs.index(min(costs))]
