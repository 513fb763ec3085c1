"""`longshore bench fields`: three fields bound together, beside a mover a field: three started together and waited for,
or one after the other.

All take the same arrays, in memory that the node's ranks share, on every path within a node. Every owner rewrites its
part of every field before every repetition, and all fields are checked, each against numbers of its own.
"""

import math
from dataclasses import dataclass
from functools import partial

import longshore as ls

from .boxes import HaloField, halo_of
from .machine import grouped
from .protocol import Bench, BenchError, Contender, Ready, quickest
from .redistribute import peers
from .redistribute.cases import Case
from .redistribute.contenders import Arrays, Move, plan_of
from .report import Table, bars, duration, median, plain, ratio, sheet, spread

TITLES = {
    "halo": "three halos, {boxes} boxes of {extent}³, width 1, periodic",
    "columns": "block rows → block columns, three of {n} × {n}",
    "transpose": "block transpose, three of {n} × {n}",
    "mixed": "a halo of {boxes} boxes of {extent}³, block rows → block columns and a block transpose of {n} × {n}",
}
_KINDS = {"halo": ("halo",) * 3, "columns": ("rows-to-columns",) * 3, "transpose": ("transpose",) * 3}
_KINDS["mixed"] = ("halo", "rows-to-columns", "transpose")
SIZES, QUICK_SIZES = (64, 4096), (64, 1024)
_BOXES = (2, 2, 2)  # of a rank
TOGETHER, AT_ONCE, ONE_BY_ONE = WAYS = ("longshore together", "longshore at once", "longshore one by one")
NODES = ("auto", "ring", "messages")
ALLTOALLW = "MPI Alltoallw, one by one"


@dataclass(frozen=True)
class FieldsCase:
    """Three fields of one kind, or one of each: n × n arrays, and boxes whose extent is the root of n."""

    key: str
    n: int
    ranks: int = 2

    name = property(lambda self: f"{self.key} {self.n}")
    brief = property(lambda self: self.n < 1024)
    extent = property(lambda self: math.isqrt(self.n))
    boxes = property(lambda self: math.prod(_BOXES) * self.ranks)
    kinds = property(lambda self: _KINDS[self.key])
    needed_bytes = property(lambda self: 6 * max(self._bytes("halo", 2), self._bytes("transpose", 2)))
    payload_bytes = property(lambda self: sum(map(self._bytes, self.kinds)))

    def _bytes(self, kind, most=0):
        """That a field moves; or, with `most`, that its arrays may have, buffers included."""
        if kind != "halo":
            return (most or 1) * 8 * self.n**2
        grown = (self.extent + 2) ** 3
        return 8 * self.boxes * (most * grown if most else grown - self.extent**3)

    def facts(self):
        title = TITLES[self.key].format(n=self.n, boxes=self.boxes, extent=self.extent)
        payload = {"payload_bytes": self.payload_bytes, "dtype": "float64", "ranks": self.ranks}
        return {"case": self.key, "n": self.n, "title": f"{title}, {self.ranks} processes", **payload}


class LayoutField(Move):
    """A field between layouts, with numbers of its own."""

    def __init__(self, context, case, salt):
        plan = plan_of(case)

        def empty(side, rank, shape):
            return ls.empty(getattr(plan, side), "float64", comm=context.comm)

        arrays = Arrays.make(case, [context.rank], empty)
        super().__init__(None, arrays)
        self.case, self.spec = case, (plan, *arrays.mine())
        for part in arrays.sources:
            part.array += salt
            part.salt = salt


class Threefold(Ready):
    """Three fields and a way to move them."""

    def __init__(self, fields, run, brief, detail="", close=None):
        self._fields, self.run, self._brief, self.detail = fields, run, brief, detail
        self.close = close or self.close

    def refresh(self):
        for field in self._fields:
            field.refresh()

    def spoil(self):
        for field in self._fields:
            field.spoil()

    def check(self):
        for field in self._fields:
            field.check()

    def sample(self, context):
        # Microseconds would else be those of waking up after the last one.
        if self._brief:
            self.refresh()
            self.run()
        return super().sample(context)


def _fields(context, case):
    def make():
        fields = []
        for k, kind in enumerate(case.kinds):
            salt = float(k << 32)
            if kind == "halo":
                fields.append(HaloField(context, context.once("halo", partial(_halo, context, case)), salt))
            else:
                fields.append(LayoutField(context, Case(kind, case.n, case.ranks), salt))
        return fields

    return context.once("fields", make)


def _halo(context, case):
    x, y, z = _BOXES
    return halo_of(context, (x * context.ranks, y, z), case.extent)


def _movers(context, case, node):
    """A mover a field."""
    fields, how = _fields(context, case), {"comm": context.comm, "node": node}
    return context.once(node, lambda: [plan.bind(*sides, **how) for plan, *sides in (f.spec for f in fields)])


def _together(context, case, node):
    """Fields of one plan are bound by it, those of several by `bind_together`."""
    fields, how = _fields(context, case), {"comm": context.comm, "node": node}
    if case.key == "mixed":
        mover = ls.bind_together(*(field.spec for field in fields), **how)
    else:
        plan = fields[0].spec[0]
        mover = plan.bind(*zip(*(field.spec[1:] for field in fields)), **how)
    detail = "; ".join(filter(None, map(str.strip, str(mover.path).splitlines())))
    return Threefold(fields, mover, case.brief, detail)


def _at_once(context, case, node):
    movers = _movers(context, case, node)

    def run():
        for mover in movers:
            mover.start()
        for mover in movers:
            mover.wait()

    return Threefold(_fields(context, case), run, case.brief, "all are started, then waited for")


def _one_by_one(context, case, node):
    run = partial(_each, _movers(context, case, node))
    return Threefold(_fields(context, case), run, case.brief, "each moves when the one before has arrived")


def _each(calls):
    for call in calls:
        call()


def _alltoallw(context, case):
    """Three calls with ready types, in the fastest of their ways."""
    fields, held = _fields(context, case), []
    ways = zip(*(peers.alltoallw(context, field.case, *field.arrays.mine(), held) for field in fields))
    options = [(of[0][0], Threefold(fields, partial(_each, [call for _, call in of]), case.brief)) for of in ways]
    best = quickest(context, options, 20 if case.brief else 3)
    best.close = lambda: [handle.Free() for handle in reversed(held)]
    return best


def name_of(way, node):
    return way if node == "auto" else f"{way} ({node})"


CONTENDERS = (
    *(
        Contender(name_of(way, node), partial(prepare, node=node))
        for node in NODES
        for way, prepare in zip(WAYS, (_together, _at_once, _one_by_one))
    ),
    Contender(ALLTOALLW, _alltoallw, applies=lambda case: "halo" not in case.kinds),
)


class Fields(Bench):
    name = "fields"
    mpi, shuffled, Case, everybody = True, True, FieldsCase, CONTENDERS

    def every_case(self):
        sizes = self.sizes if self.sizes is not None else QUICK_SIZES if self.quick else SIZES
        if any(n < 1 for n in sizes):
            raise BenchError("sizes must be positive")
        return [FieldsCase(key, n, self.ranks) for n in sizes for key in TITLES]

    def rounds(self, case):
        usual = (41, 201) if case.n <= 128 else (7, 31) if case.n <= 2048 else (3, 9)
        return self.repeats or usual[not self.quick]

    def finish(self, result):
        for rows in _groups(result).values():
            medians = {row["contender"]: row["seconds_median"] for row in rows}
            together = {node: medians.get(name_of(TOGETHER, node)) for node in NODES}
            for row in rows:
                node = next((n for n in NODES[1:] if row["contender"].endswith(f"({n})")), "auto")
                best = together[node]
                if row["contender"] == ALLTOALLW:
                    best = min(filter(None, together.values()), default=None)
                row["together_ratio"] = row["seconds_median"] / best if best else None

    def tables(self, result):
        columns = {"contender": "contender", "median": median, "spread": spread}
        columns |= {"× together": ratio("together_ratio"), "how": "detail"}
        for rows in _groups(result).values():
            yield Table.of(rows[0]["title"], rows, columns, optional=("spread",), words="how")

    def figure(self, result):
        """A panel a case: bars of the three ways on every path, and MPI's."""
        groups = _groups(result)
        figure, panels = sheet(result, -(-len(groups) // 2), 2, 12, 2.6 * max(1, -(-len(groups) // 2)) + 0.6)
        for panel, rows in zip(panels.flat, groups.values()):
            plain(panel, rows[0]["title"], y="seconds")
            medians = {row["contender"]: row["seconds_median"] for row in rows}
            for k, (way, colour) in enumerate(zip(WAYS, ("#1f6fb4", "#7fb0d8", "#c3d9ec"))):
                of = {at: medians.get(name_of(way, node), 0.0) for at, node in enumerate(NODES)}
                bars(panel, k, len(WAYS), of, way, colour)
            if ALLTOALLW in medians:
                panel.axhline(medians[ALLTOALLW], color="#d9a441", lw=1.0, label=ALLTOALLW)
                panel.text(0, medians[ALLTOALLW], duration(medians[ALLTOALLW]), fontsize=6.5, va="bottom")
            panel.set_xticks(range(len(NODES)), NODES, fontsize=7)
            panel.set_ylim(bottom=0)
        panels.flat[0].legend(fontsize=6.5, frameon=False)
        for panel in panels.flat[len(groups) :]:
            panel.set_axis_off()
        return figure


def _groups(result):
    return grouped(result["rows"], "case", "n")
