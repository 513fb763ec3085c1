"""`longshore bench halo`: filling ghost cells, beside memory copies, hand-packed MPI, MPI_Neighbor_alltoallw and
PETSc's DMDA.

PETSc has a run of its own, for its Python and its MPI are others. Every rank rewrites all of its own cells before every
repetition, and all ghost cells are compared with what their global indices say. Where a peer can do the same in several
ways, it is the fastest of them that takes part.
"""

from dataclasses import dataclass
from functools import partial

import longshore as ls
from longshore.explain import bytes_of

from ..machine import available_memory, clocked, grouped, moved, row_of_calls, set_ratios, without_collector
from ..protocol import Bench, BenchError, Contender, Ready, WrongResult, module_of_mpi, quickest
from ..report import Table, median, pivot, ratio, ratio_sheet, spread
from . import petsc

_ARRAYS = 3  # of a rank: in ordinary memory, in shared memory, and the copies' own

COPY, MEMCPY = "copy, ghost cells", "copy, contiguous"
LONGSHORE, PROXY, ANY_MEMORY = "longshore mpi", "longshore mpi, proxy", "longshore mpi (any memory)"
PHASES, AT_ONCE = "longshore mpi, in phases", "longshore mpi, at once"  # the first chooses one of these
PACKED, NEIGHBOURS = "hand-packed", "MPI Neighbor_alltoallw"
NAMES = (COPY, MEMCPY, LONGSHORE, PHASES, AT_ONCE, PROXY, ANY_MEMORY, PACKED, NEIGHBOURS, *petsc.PETSC)
BIND = "longshore bind"


loops = partial(module_of_mpi, "_halo")  # of this process's MPI


@dataclass(frozen=True)
class HaloCase:
    """Ranks side by side along one axis, each with n³ doubles in one box or in 64, periodic in all dimensions."""

    points: int  # of the stencil: 27 wants corners, 7 does not
    width: int
    boxes: int  # of a rank, along each dimension
    axis: str
    n: int
    ranks: int = 2
    binds: bool = False  # what is timed is planning and binding; nothing is exchanged

    name = property(lambda self: f"{self.key} {self.n}")
    stencil = property(lambda self: f"{self.points}-point, width {self.width}")
    # Twice: ghost cells, buffers, what the peers hold. Who binds has room where who exchanges has.
    needed_bytes = property(lambda self: 0 if self.binds else 2 * _ARRAYS * 8 * self.n**3 * self.ranks)

    @property
    def key(self):
        if self.binds:
            return f"plan and bind {self.boxes**3} boxes a rank"
        return f"{self.points}-point-{self.width}-{self.boxes**3}-{self.axis}"

    @property
    def payload_bytes(self):
        """Bytes of all ghost cells that the stencil wants."""
        n = self.n // self.boxes
        ghosts = (n + 2 * self.width) ** 3 - n**3 if self.points == 27 else 6 * n * n * self.width
        return 8 * ghosts * self.boxes**3 * self.ranks

    def facts(self):
        boxes = f"one box of {self.n}³" if self.boxes == 1 else f"{self.boxes**3} boxes of {self.n // self.boxes}³"
        arrangement = f"{boxes} a rank, {self.ranks} rank{'s' if self.ranks > 1 else ''} along {self.axis}"
        payload = {"payload_bytes": 0 if self.binds else self.payload_bytes, "dtype": "float64", "ranks": self.ranks}
        return {"case": self.key, "n": self.n, "stencil": self.stencil, "arrangement": arrangement, **payload}


def every_case(n, ranks):
    of = [(points, width, boxes, axis) for boxes in (1, 4) for axis in "xz" for points in (27, 7) for width in (1, 3)]
    return [HaloCase(*facts, n, ranks) for facts in of]


def boxes_of(context, case, kind):
    """Boxes in "ordinary" memory or in "shared" memory, or "own" ones: a periodic world of this rank alone."""

    def make():
        module, ranks = loops(), 1 if kind == "own" else context.ranks
        problem = module.Problem.of(ranks, "xyz".index(case.axis), case.n, case.boxes, case.width, case.points == 27)
        if kind == "shared":
            return module.Boxes.shared(problem, context.comm.handle)
        return module.Boxes(problem, 0 if kind == "own" else context.rank)

    return context.once(kind, make)


class Exchange(Ready):
    """An exchange bound to boxes. Ghost cells must be right after it; not after the copy that leaves them alone."""

    def __init__(self, boxes, exchange, detail="", threads=1, verifies=True):
        self.run, self.refresh, self.spoil, self.detail = exchange.run, boxes.fill, boxes.spoil, detail
        self.threads, self._wrong = threads, boxes.check if verifies else str

    def close(self):
        self.run = None  # MPI's objects go before MPI does

    def check(self):
        if wrong := self._wrong():
            raise WrongResult(wrong)


def _ways(module):
    for sweeps in (False, True):
        for apart in (False, True):
            how = "a dimension at a time" if sweeps else "all at once"
            yield f"{how}, a message a {'direction' if apart else 'peer'}", module.Way(sweeps, apart)


def _hand_packed(context, case, kind="ordinary", comm=None):
    module, boxes = loops(), boxes_of(context, case, kind)
    comm = (comm or context.comm).handle
    options = [(words, Exchange(boxes, module.hand_packed(boxes, comm, way))) for words, way in _ways(module)]
    return quickest(context, options, trials=3)


def _neighbours(context, case):
    module, boxes, options = loops(), boxes_of(context, case, "ordinary"), []
    for persistent in (False, True) if module.has_persistent_collectives() else (False,):
        for words, way in _ways(module):
            exchange = module.neighbor_alltoallw(boxes, context.comm.handle, way, persistent)
            options.append((words + (", persistent" if persistent else ""), Exchange(boxes, exchange)))
    return quickest(context, options, trials=3)


def _copy_of_ghosts(context, case):
    """What memory allows: nothing goes to another rank."""
    from mpi4py import MPI

    best = _hand_packed(context, case, "own", MPI.COMM_SELF)
    best.detail = f"from the rank's own memory, {best.detail}"
    return best


def _memcpy(context, case):
    boxes = boxes_of(context, case, "own")
    return Exchange(boxes, loops().plain_copy(boxes), "memcpy of as many bytes", verifies=False)


def _longshore(context, case, kind, proxy=False, phases=None):
    boxes = boxes_of(context, case, kind)
    mover = loops().longshore_mover(boxes, context.comm.handle, proxy, phases)
    how = "; ".join(filter(None, map(str.strip, mover.describe().splitlines())))
    return Exchange(boxes, mover, how, threads=2 if proxy else 1)


class Binding(Ready):
    """What it takes to plan this rank's halo and to bind it."""

    def __init__(self, context, case):
        self.run = partial(loops().longshore_mover, boxes_of(context, case, "shared"), context.comm.handle, False)
        self.detail = f"{case.n // case.boxes}³ each, {case.stencil}, collective"


_PREPARE = {
    COPY: _copy_of_ghosts,
    MEMCPY: _memcpy,
    LONGSHORE: partial(_longshore, kind="shared"),
    PHASES: partial(_longshore, kind="shared", phases=True),
    AT_ONCE: partial(_longshore, kind="shared", phases=False),
    PROXY: partial(_longshore, kind="shared", proxy=True),
    ANY_MEMORY: partial(_longshore, kind="ordinary"),
    PACKED: _hand_packed,
    NEIGHBOURS: _neighbours,
}


def _applies(name, case):
    return not case.binds and (name not in (PHASES, AT_ONCE) or case.points == 27)


CONTENDERS = (
    *(Contender(name, prepare, applies=partial(_applies, name)) for name, prepare in _PREPARE.items()),
    Contender(BIND, Binding, applies=lambda case: case.binds),
)


CELLS, QUICK_CELLS = 256, 128  # of a rank, along each dimension
_BINDS = (1, 4, 16)  # boxes along each dimension
_EXTENT = 16  # of a box whose plan alone is timed, along each dimension
# Of those: boxes along each dimension, ranks, repetitions at most; the last is not for --quick.
_PLANS = ((16, 2, 99), (100, 1000, 3))


class Halo(Bench):
    name, named = "halo", NAMES
    mpi, shuffled, Case, everybody = True, True, HaloCase, CONTENDERS
    always, usual_rounds = (COPY, MEMCPY), (5, 15)

    def every_case(self):
        sizes = self.sizes if self.sizes is not None else [QUICK_CELLS if self.quick else CELLS]
        for n in sizes:
            if n < 12 or n % 4 or n * self.ranks > 2048:
                raise BenchError(f"sizes are multiples of 4, at least 12, at most 2048 for all ranks together, not {n}")
        return [case for n in sizes for case in every_case(n, self.ranks)]

    def wanted(self, given):
        cases = super().wanted(given)
        there = available_memory()
        n = max((case.n for case in cases if case.needed_bytes <= there), default=1)
        return cases + [HaloCase(27, 1, boxes, "x", n, self.ranks, True) for boxes in _BINDS if n % boxes == 0]

    def contenders(self):
        return [contender for contender in self.everybody if contender.name in (*self.chosen, BIND)]

    def beside(self, step):
        cases = [case for case in self.cases if not case.binds]
        rows, lacking = petsc.measure(cases, self.chosen, self.rounds(None), self.stall_seconds[not self.quick], step)
        step("planning/by itself")
        most = self.repeats or (5 if self.quick else 11)
        plans = _PLANS[:1] if self.quick else _PLANS
        return rows + [_planning_row(across, ranks, min(most, k)) for across, ranks, k in plans], lacking

    def finish(self, result):
        for row in result["rows"]:
            row.setdefault("table", self.kernels[0])
        set_ratios([row for row in result["rows"] if row["contender"] != "longshore plan"], "copy_ratio", [COPY])

    def tables(self, result):
        over = ratio("copy_ratio", " ({:.2f})")
        for (arrangement, kernels), rows in grouped(moved(result), "arrangement", "table").items():
            stencils = grouped(rows, "stencil").items()
            columns = {f"{words}\n{bytes_of(of[0]['payload_bytes'])}": of for words, of in stencils}
            title = f"{arrangement}, {kernels} kernels (× {COPY})"
            yield pivot(title, result["contenders"], columns, lambda row: median(row) + over(row))
        plans = [row for row in result["rows"] if not row["payload_bytes"]]
        size = lambda row: bytes_of(row["plan_bytes"]) if "plan_bytes" in row else ""  # noqa: E731
        columns = {"one rank's motions": "case", "median": median, "plan": size, "spread": spread, "of": "detail"}
        yield Table.of("planning by itself", plans, columns, optional=("spread",), words="of")

    def figure(self, result):
        """A row an arrangement, a column a stencil: multiples of one copy of the ghost cells, shorter is better."""
        rows = [row for row in moved(result) if row["table"] == self.kernels[0]]
        panels = {words: grouped(same, "stencil") for words, same in grouped(rows, "arrangement").items()}
        return ratio_sheet(result, panels, result["contenders"], f"multiples of {COPY!r}")


def _planning_row(across, ranks, repeats):
    """One rank's plan among many boxes. Metadata only, no MPI, no data."""
    domain, plans = ls.Region.of_shape((across * _EXTENT,) * 3), []
    blocks = ls.FloorPlan.balanced(ls.regions.split_evenly(domain, across), ranks)

    def make():
        plans[:] = [ls.BlockPlan.halo(blocks, 1, domain=domain, periodic=(True,) * 3, rank=ranks // 2)]

    with without_collector():
        seconds = [clocked(make) for _ in range(repeats)]
    of = {"ranks": ranks, "plan_bytes": plans[0].workspace_bytes, "floor_plan_bytes": blocks.workspace_bytes}
    detail = f"{_EXTENT}³ each, 27-point, width 1, one of {ranks} ranks"
    facts = {"case": f"plan {across**3} boxes", "n": across * _EXTENT}
    return row_of_calls(facts, "longshore plan", seconds, **of, detail=detail)
