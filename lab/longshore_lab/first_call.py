"""`longshore bench first-call`: what one call costs from nothing, beside the parts that it is made of and those peers
that plan at every call.

What is timed makes everything that it needs: of layouts made anew before each repetition, a plan, its movers, their
agreement and their buffers. Every result is checked, also of what only plans and binds: it is moved with, untimed.
"""

import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property, partial

import longshore as ls
import numpy as np

from .boxes import HaloField, halo_of, halo_plan
from .launch import child_environment
from .machine import grouped, row_of_calls, set_ratios
from .protocol import Bench, BenchError, Contender, Missing, Ready, missing, words_of
from .redistribute import peers
from .redistribute.cases import Case, strided_pieces
from .redistribute.contenders import Arrays, Move, bound, calling, local_arrays, plan_of
from .report import OURS, PEER, Table, duration, median, plain, ratio, sheet, spread

MPI, THREADS, HALO = "redistribute", "in-process", "halo"
_IMPORT = "import"
TITLES = {
    MPI: "block rows → block columns, {n} × {n} doubles, {ranks} processes",
    THREADS: "block rows → block columns, {n} × {n} doubles, {ranks} ranks in one process",
    HALO: "halo of {boxes:,} boxes of 16³, width 1, periodic, {ranks} processes",
    _IMPORT: "importing, in a new process",
}
SIZES, QUICK_SIZES = {MPI: (64, 256, 1024, 4096), THREADS: (64, 1024)}, {MPI: (64, 256, 1024), THREADS: (64, 1024)}
BOXES, QUICK_BOXES = 16, 8  # along each dimension
_EXTENT, _FIELDS, _RANKS_OF_THREADS = 16, 8, 4
_ALLOWED_SECONDS = 1e-4  # of one call, beyond those of a move that was bound before

ONE, PLAN, BIND, MOVE = "longshore one call", "longshore plan", "longshore bind", "longshore bound move"
AGAIN = "longshore one call again"
ANY, OF_THREADS = " (any array)", " (threads)"  # behind these
NEW_COMMUNICATOR = "longshore one call (new comm)"  # of any array
ANEW, READY = "MPI Alltoallw, types anew", "MPI Alltoallw, types ready"
HALO_PLAN, HALO_BIND, HALO_MOVE = "longshore halo plan", "longshore halo bind", "longshore halo bound move"
HALO_TOGETHER = f"longshore halo bind, {_FIELDS} fields"
IMPORTS = {
    "numpy import": ("", "numpy"),
    "longshore import": ("", "longshore"),
    "longshore import (NumPy is there)": ("import numpy", "longshore"),
}


@dataclass(frozen=True)
class FirstCase:
    """An n × n redistribution under MPI or in one process, or the halo of n × n × n boxes."""

    key: str
    n: int
    ranks: int

    name = property(lambda self: f"{self.key} {self.n}")
    brief = property(lambda self: self.key != HALO and self.n < 1024)

    @cached_property
    def moving(self):
        return Case("rows-to-columns", self.n, self.ranks)

    @property
    def needed_bytes(self):
        whole = (_EXTENT + 2) ** 3 * 8 * self.n**3
        return 2 * (_FIELDS + 1) * whole if self.key == HALO else 2 * self.moving.needed_bytes

    @property
    def payload_bytes(self):
        ghosts = ((_EXTENT + 2) ** 3 - _EXTENT**3) * self.n**3
        return 8 * (ghosts if self.key == HALO else self.n**2)

    def facts(self):
        title = TITLES[self.key].format(n=self.n, ranks=self.ranks, boxes=self.n**3)
        payload = {"payload_bytes": self.payload_bytes, "dtype": "float64", "ranks": self.ranks}
        return {"case": self.key, "n": self.n, "title": title, **payload}


# --- between layouts


class Anew(Move):
    """A call on what is made anew, untimed, before every repetition. What it gives is let go of untimed, too; before
    the result is looked at, `settle` does with it what is left to do."""

    def __init__(self, arrays, make, call, settle=None, **more):
        super().__init__(self._once, arrays, **more)
        self._make, self._call, self._settle, self._given, self._left = make, call, settle, None, None
        if settle is not None:
            self.facts = {"payload_bytes": 0}

    def refresh(self):
        self._left = None
        super().refresh()
        self._given = self._make()

    def _once(self):
        self._left = self._call(self._given)

    def check(self):
        if self._settle is not None:
            self._settle(self._left)
        super().check()


def _layouts(case):
    """Made anew from their texts, so that nothing is known of them from last time."""
    return [ls.Layout(side.text, shape=case.shape) for side in (case.source, case.destination)]


def _one_call(arrays, case, source, out, again=False, **where):
    def call(layouts):
        ls.redistribute(source, *layouts, out=out, again=again, **where)

    return Anew(arrays, partial(_layouts, case), call)


def _one_call_again(arrays, case, source, out, **where):
    """With the mover that the call before has bound, where one was kept."""
    return _one_call(arrays, case, source, out, True, **where)


def _plan(arrays, case, *parts, **where):
    move = lambda plan: plan.bind(*parts, **where)()  # noqa: E731
    return Anew(arrays, partial(_layouts, case), lambda layouts: ls.plan(*layouts, "float64"), move)


def _bind(arrays, case, *parts, **where):
    bind = lambda plan: plan.bind(*parts, **where)  # noqa: E731
    return Anew(arrays, partial(plan_of, case), bind, lambda mover: mover())


def _move(arrays, case, *parts, **where):
    return bound(plan_of(case).bind(*parts, **where), arrays)


def _numpy(arrays, case, *parts):
    pieces = []
    for s in arrays.sources:
        for d in arrays.destinations:
            views = strided_pieces(case, s.rank, d.rank, s.array, d.array)
            pieces += [(d_view, s_view) for s_view, d_view, _ in views]
    return Move(partial(peers.copy_all, pieces), arrays, f"{len(pieces)} strided copies")


def _under_mpi(context, case, what, shared):
    """With this rank's ordinary arrays, or in memory that the ranks of a node share."""

    def empty(side, rank, shape):
        layout = getattr(plan_of(case.moving), side)
        return ls.empty(layout, "float64", comm=context.comm)

    if shared:
        arrays = context.once("shared", lambda: Arrays.make(case.moving, [context.rank], empty))
    else:
        arrays = local_arrays(context, case.moving)
    return what(arrays, case.moving, *arrays.mine(), comm=context.comm)


def _in_process(context, case, what):
    """With all ranks' arrays in the first process, on its threads; the other processes sleep."""

    def make():
        ranks = range(case.ranks) if context.rank == 0 else []
        return Arrays.make(case.moving, ranks, lambda side, rank, shape: np.zeros(shape))

    arrays = context.once("threads", make)
    if context.rank != 0:
        return Move(lambda: None, arrays, alone=True)
    ready = what(arrays, case.moving, *([part.array for part in side] for side in arrays))
    ready.alone = True
    ready.threads = len(context.cores) if what in (_one_call, _one_call_again, _bind, _move) else 1
    return ready


def _on_a_new_communicator(context, case):
    """The first call on a communicator also makes the library's own duplicate of it, and what its ranks share."""
    arrays, held = local_arrays(context, case.moving), []
    source, out = arrays.mine()

    def free():
        while held:
            held.pop().Free()

    def make():
        free()
        held.append(context.comm.Dup())
        return _layouts(case.moving)

    def call(layouts):
        ls.redistribute(source, *layouts, comm=held[0], out=out, again=False)

    return Anew(arrays, make, call, close=free)


def _alltoallw(context, case, anew):
    """As a user of mpi4py writes it, with a subarray a peer."""
    from mpi4py import MPI as mpi

    arrays = local_arrays(context, case.moving)
    source, destination = arrays.mine()
    width = -(-case.n // case.ranks)
    parts = [(lower, min(width, case.n - lower)) for lower in range(0, case.n, width)]
    if len(parts) < case.ranks:
        raise Missing("MPI has no subarrays of nothing, and a rank owns nothing at this size")
    counts = [1] * case.ranks, [0] * case.ranks

    def types():
        make = mpi.DOUBLE.Create_subarray
        send = [make(source.shape, (source.shape[0], count), (0, lower)).Commit() for lower, count in parts]
        receive = [
            make(destination.shape, (count, destination.shape[1]), (lower, 0)).Commit() for lower, count in parts
        ]
        return send, receive

    def exchange(send, receive):
        context.comm.Alltoallw([source, counts, send], [destination, counts, receive])

    def free(send, receive):
        for one in (*send, *receive):
            one.Free()

    def once():
        made = types()
        exchange(*made)
        free(*made)

    if anew:
        return Move(once, arrays)
    ready = types()
    return Move(partial(exchange, *ready), arrays, close=partial(free, *ready))


def _library(prepare, context, case):
    return calling(prepare, context, case.moving)


# --- a halo


class HaloCall(Ready):
    """What is timed gives something that fills, once `settle` has made a mover of it, the fields' ghost cells."""

    def __init__(self, fields, call, settle, moves=False):
        self._fields, self._call, self._settle, self._left = fields, call, settle, None
        if not moves:
            self.facts = {"payload_bytes": 0}

    def refresh(self):
        self._left = None
        for field in self._fields:
            field.refresh()

    def spoil(self):
        for field in self._fields:
            field.spoil()

    def run(self):
        self._left = self._call()

    def check(self):
        self._settle(self._left)
        for field in self._fields:
            field.check()


def _fields(context, case):
    plan = context.once("plan", lambda: halo_of(context, (case.n,) * 3, _EXTENT))
    return context.once("fields", lambda: [HaloField(context, plan, float(k << 32)) for k in range(_FIELDS)])


def _halo_plan(context, case):
    fields = _fields(context, case)[:1]
    blocks, domain = fields[0].plan.source, ls.Region.of_shape((case.n * _EXTENT,) * 3)
    settle = lambda plan: plan.bind(fields[0].array, comm=context.comm)()  # noqa: E731
    return HaloCall(fields, lambda: halo_plan(blocks, domain, context.rank), settle)


def _halo_bind(context, case, count):
    fields = _fields(context, case)[:count]
    arrays = tuple(field.array for field in fields) if count > 1 else fields[0].array
    return HaloCall(fields, partial(fields[0].plan.bind, arrays, comm=context.comm), lambda mover: mover())


def _halo_move(context, case):
    fields = _fields(context, case)[:1]
    return HaloCall(fields, fields[0].plan.bind(fields[0].array, comm=context.comm), lambda nothing: None, moves=True)


# --- everybody


def _of(key, name, prepare, **more):
    return Contender(name, prepare, applies=lambda case: case.key == key, **more)


def _of_threads(name, what):
    return _of(THREADS, name, partial(_in_process, what=what), needs_mpi=False)


CONTENDERS = (
    *(
        _of(MPI, name + words, partial(_under_mpi, what=what, shared=not words))
        for words in ("", ANY)
        for name, what in ((ONE, _one_call), (AGAIN, _one_call_again), (BIND, _bind), (MOVE, _move))
    ),
    _of(MPI, NEW_COMMUNICATOR, _on_a_new_communicator),
    _of(MPI, ANEW, partial(_alltoallw, anew=True)),
    _of(MPI, READY, partial(_alltoallw, anew=False)),
    _of(MPI, "ScaLAPACK", partial(_library, peers.scalapack)),
    _of(MPI, "COSTA", partial(_library, peers.costa)),
    _of_threads(ONE + OF_THREADS, _one_call),
    _of_threads(AGAIN + OF_THREADS, _one_call_again),
    _of_threads(PLAN + OF_THREADS, _plan),
    _of_threads(BIND + OF_THREADS, _bind),
    _of_threads(MOVE + OF_THREADS, _move),
    _of_threads("numpy", _numpy),
    _of(HALO, HALO_PLAN, _halo_plan),
    _of(HALO, HALO_BIND, partial(_halo_bind, count=1)),
    _of(HALO, HALO_TOGETHER, partial(_halo_bind, count=_FIELDS)),
    _of(HALO, HALO_MOVE, _halo_move),
)


def _bound_of(row):
    """The bound move that a row stands beside: of the same memory, or of arrays as its own are."""
    if row["case"] == THREADS:
        return MOVE + OF_THREADS
    return MOVE if row["contender"] in (ONE, AGAIN, BIND, MOVE) else MOVE + ANY


class FirstCall(Bench):
    name = "first-call"
    mpi, shuffled, Case, everybody = True, True, FirstCase, CONTENDERS
    named = (*(contender.name for contender in CONTENDERS), *IMPORTS)

    def __init__(self, quick=False, *, boxes=None, **options):
        """`boxes`: of the halo, along each dimension."""
        self.boxes = boxes or (QUICK_BOXES if quick else BOXES)
        super().__init__(quick, **options)

    def every_case(self):
        sizes = QUICK_SIZES if self.quick else SIZES
        if self.sizes is not None:
            sizes = dict.fromkeys(sizes, self.sizes)
        if any(n < 1 for of in sizes.values() for n in of):
            raise BenchError("sizes must be positive")
        if self.boxes < 2:
            raise BenchError("boxes must be 2 at least along each dimension")
        ranks = {MPI: self.ranks, THREADS: _RANKS_OF_THREADS}
        cases = [FirstCase(key, n, ranks[key]) for key, of in sizes.items() for n in of]
        return [*cases, FirstCase(HALO, self.boxes, self.ranks)]

    def rounds(self, case):
        usual = (3, 9) if case.key == HALO else (21, 201) if case.n <= 256 else (7, 41) if case.n <= 2048 else (3, 11)
        return self.repeats or usual[not self.quick]

    def beside(self, step):
        """Importing in processes of their own, in turns."""
        seconds, lacking = {name: [] for name in IMPORTS if name in self.chosen}, []
        rounds = self.repeats or (3 if self.quick else 21)
        for k in range(rounds + 1):
            for name in list(seconds):
                step(f"{_IMPORT}/{name}/{k} of {rounds}")
                try:
                    seconds[name].append(_importing(*IMPORTS[name]))
                except Exception as error:
                    del seconds[name]
                    lacking.append(missing(name, words_of(error), _IMPORT))
        facts = {"case": _IMPORT, "n": 0, "title": TITLES[_IMPORT]}
        # The first time, what was not in memory is read from disk, or not: that is no repetition.
        return [row_of_calls(facts, name, of[1:], detail="a new process") for name, of in seconds.items()], lacking

    def finish(self, result):
        for rows in _groups(result).values():
            medians = {row["contender"]: row["seconds_median"] for row in rows}
            for row in rows if rows[0]["case"] in (MPI, THREADS) else ():
                move = medians.get(_bound_of(row))
                row["bound_ratio"] = row["seconds_median"] / (move + _ALLOWED_SECONDS) if move else None
        for case, field, to in ((HALO, "bind_ratio", HALO_BIND), (_IMPORT, "numpy_ratio", "numpy import")):
            set_ratios([row for row in result["rows"] if row["case"] == case], field, [to])

    def tables(self, result):
        over = {HALO: ("× one bind", "bind_ratio"), _IMPORT: ("× NumPy", "numpy_ratio")}
        for (case, _), rows in _groups(result).items():
            heading, field = over.get(case, ("× (bound\n+ 100 µs)", "bound_ratio"))
            columns = {"contender": "contender", "median": median, "spread": spread, heading: ratio(field)}
            yield Table.of(rows[0]["title"], rows, {**columns, "how": "detail"}, optional=("spread",), words="how")

    def figure(self, result):
        """A panel a case: medians, from the least to the most, shorter is better."""
        groups = _groups(result)
        most = max(map(len, groups.values()), default=1)
        down = -(-len(groups) // 2)
        figure, panels = sheet(result, down, 2, 13, (0.22 * most + 0.9) * max(1, down) + 0.6)
        for panel, rows in zip(panels.flat, groups.values()):
            plain(panel, rows[0]["title"].replace(", ", "\n", 1), "seconds")
            for at, row in enumerate(rows):
                middle, ends = row["seconds_median"], (row["seconds_min"], row["seconds_max"])
                low_high = [[max(0.0, middle - ends[0])], [max(0.0, ends[1] - middle)]]
                colour = OURS if row["contender"].startswith("longshore") else PEER
                panel.barh(at, middle, color=colour, height=0.7, xerr=low_high, error_kw={"lw": 0.7})
                panel.text(middle, at, f" {duration(middle)}", va="bottom", fontsize=6.5)
            panel.set_xscale("log")
            panel.xaxis.set_minor_formatter("")
            panel.set_yticks(range(len(rows)), [row["contender"] for row in rows], fontsize=7)
            panel.set_ylim(len(rows) - 0.5, -0.5)  # the first on top
        for panel in panels.flat[len(groups) :]:
            panel.set_axis_off()
        return figure


def _groups(result):
    return grouped(result["rows"], "case", "n")


def _importing(before, module):
    """Seconds of an import alone, in a process that has just begun."""
    program = f"{before}\nimport time\nbegun = time.perf_counter()\nimport {module}\nprint(time.perf_counter() - begun)"
    how = {"capture_output": True, "text": True, "timeout": 120, "env": child_environment(), "check": False}
    done = subprocess.run([sys.executable, "-c", program], **how)
    if done.returncode != 0:
        raise Missing(f"cannot be imported: {done.stderr.strip().splitlines()[-1]}")
    return float(done.stdout)
