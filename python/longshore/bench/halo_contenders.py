"""The contenders of `longshore bench halo` that run under this environment's MPI: what is timed is C++ (`_halo_<family>`)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .contenders import Contender, Context, Missing, Prepared, WrongResult
from .contenders.base import Arrays
from .halo_cases import ANY_MEMORY, AXES, COPY, LONGSHORE, MEMCPY, NEIGHBOURS, PACKED, PROXY, HaloCase
from .harness import timed

_TRIALS = 3  # of each way in which a peer can do the same


class HaloContext(Context):
    """The module and the communicators for it, and boxes that contenders share."""

    def __init__(self, comm: Any, ranks: int, rank: int, mpi_family: str) -> None:
        super().__init__(comm, ranks, rank, mpi_family)
        self._boxes: dict[str, Any] = {}

    @property
    def module(self) -> Any:
        from mpi4py import MPI

        from .. import _mpi

        try:
            return importlib.import_module(f"longshore._halo_{_mpi._family(MPI)}")
        except ImportError as error:
            raise Missing(f"the loops of this bench are not built here ({error})") from None

    @property
    def world(self) -> int:
        return self._bits(self.comm)

    @property
    def alone(self) -> int:
        from mpi4py import MPI

        return self._bits(MPI.COMM_SELF)

    @staticmethod
    def _bits(comm: Any) -> int:
        from mpi4py import MPI

        from .. import _mpi

        return _mpi._bits(MPI, comm)

    def boxes(self, case: HaloCase, kind: str) -> Any:
        """Boxes in "ordinary" memory or in "shared" memory, or "own" ones: a periodic world of this rank alone."""
        if kind not in self._boxes:
            module, ranks = self.module, 1 if kind == "own" else self.ranks
            problem = module.Problem.of(ranks, AXES.index(case.axis), case.n, case.boxes, case.width, case.points == 27)
            if kind == "shared":
                self._boxes[kind] = module.Boxes.shared(problem, self.world)
            else:
                self._boxes[kind] = module.Boxes(problem, 0 if kind == "own" else self.rank)
        return self._boxes[kind]

    def forget_arrays(self) -> None:
        super().forget_arrays()
        self._boxes.clear()


class Exchange(Prepared):
    """An exchange bound to boxes. Ghost cells must be right after
    it; `verifies` is False for the copy that leaves them alone."""

    def __init__(self, boxes: Any, exchange: Any, detail: str = "", verifies: bool = True) -> None:
        super().__init__(exchange.run, Arrays([], []), detail=detail, close=self._let_go)
        self._boxes, self._verifies, self.step = boxes, verifies, ""

    def _let_go(self) -> None:
        self.run = lambda: None  # MPI's objects go before MPI does

    def rewrite_sources(self) -> None:
        self._boxes.fill()

    def spoil(self) -> None:
        self._boxes.spoil()

    def verify(self, who: str) -> None:
        wrong = self._boxes.check() if self._verifies else ""
        if wrong:
            raise WrongResult(f"{who}: {wrong}")


class MemoryCopy(Contender):
    """What memory allows: nothing goes to another rank."""

    def __init__(self, name: str) -> None:
        self.name = name

    def prepare(self, context: HaloContext, case: HaloCase) -> Prepared:
        boxes = context.boxes(case, "own")
        if self.name == MEMCPY:
            return Exchange(boxes, context.module.plain_copy(boxes), "memcpy of as many bytes", verifies=False)
        return _quickest(context, boxes, _packed(context, boxes, context.alone), "from the rank's own memory, ")


class Longshore(Contender):
    def __init__(self, name: str, kind: str, proxy: bool) -> None:
        self.name, self._kind, self._proxy = name, kind, proxy

    def prepare(self, context: HaloContext, case: HaloCase) -> Prepared:
        boxes = context.boxes(case, self._kind)
        mover = context.module.longshore_mover(boxes, context.world, self._proxy)
        described = "; ".join(line.strip() for line in mover.describe().splitlines() if line.strip())
        prepared = Exchange(boxes, mover, described)
        prepared.threads = 2 if self._proxy else 1
        return prepared


class HandPacked(Contender):
    name = PACKED

    def prepare(self, context: HaloContext, case: HaloCase) -> Prepared:
        boxes = context.boxes(case, "ordinary")
        return _quickest(context, boxes, _packed(context, boxes, context.world))


class NeighborAlltoallw(Contender):
    name = NEIGHBOURS

    def prepare(self, context: HaloContext, case: HaloCase) -> Prepared:
        module, boxes = context.module, context.boxes(case, "ordinary")
        options = []
        for persistent in (False, True) if module.has_persistent_collectives() else (False,):
            for words, way in _ways(module):
                words += ", persistent" if persistent else ""
                options.append((words, _later(module.neighbor_alltoallw, boxes, context.world, way, persistent)))
        return _quickest(context, boxes, options)


HALO_CONTENDERS: tuple[Contender, ...] = (
    MemoryCopy(COPY),
    MemoryCopy(MEMCPY),
    Longshore(LONGSHORE, "shared", proxy=False),
    Longshore(PROXY, "shared", proxy=True),
    Longshore(ANY_MEMORY, "ordinary", proxy=False),
    HandPacked(),
    NeighborAlltoallw(),
)

Option = tuple[str, Callable[[], Any]]


def _later(make: Callable[..., Any], *given: Any) -> Callable[[], Any]:
    return lambda: make(*given)


def _ways(module: Any) -> list[tuple[str, Any]]:
    return [
        (
            f"{'a dimension at a time' if sweeps else 'all at once'}, a message a {'direction' if by_direction else 'peer'}",
            module.Way(sweeps, by_direction),
        )
        for sweeps in (False, True)
        for by_direction in (False, True)
    ]


def _packed(context: HaloContext, boxes: Any, comm: int) -> list[Option]:
    module = context.module
    return [(words, _later(module.hand_packed, boxes, comm, way)) for words, way in _ways(module)]


def _quickest(context: HaloContext, boxes: Any, options: list[Option], prefix: str = "") -> Exchange:
    """Each way of doing the same, of which the one whose slowest rank is fastest stays. Collective."""
    best: tuple[float, str, Any] | None = None
    for words, make in options:
        exchange, seconds = make(), []
        for _ in range(_TRIALS):
            boxes.fill()
            seconds.append(timed(context.comm, exchange.run))
        slowest = max(context.comm.allgather(min(seconds)))
        if best is None or slowest < best[0]:
            best = slowest, words, exchange
        del exchange  # on every rank at once: what it holds of MPI is freed together
    assert best is not None
    return Exchange(boxes, best[2], prefix + best[1])
