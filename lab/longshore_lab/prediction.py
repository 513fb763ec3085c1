"""`longshore bench model`: what the model predicts of plans that it was not calibrated on, beside what they take.

The plans are drawn from a seed, anew each time, so that nothing can be tuned to them: layouts, block and element sizes,
halos and lists of elements, between processes in every way and between ranks in one process. Every result is checked.
"""

import random
import time
from dataclasses import dataclass
from functools import cached_property, partial

import longshore as ls
import numpy as np
from longshore import model, tune

from .machine import grouped
from .protocol import Bench, Contender, Ready, WrongResult
from .report import PEER, Table, duration, median, plain, ratio, sheet

LAYOUTS, HALOS, LISTS, THREADS = KINDS = ("layouts", "halos", "lists", "in-process")
ITSELF = "longshore"
WAYS = {
    ITSELF: {},  # as movers choose themselves
    "longshore direct": {"node": "direct"},
    "longshore ring": {"node": "ring"},
    "longshore messages": {"node": "messages", "exchange": "p2p"},
    "longshore collective": {"node": "messages", "exchange": "alltoall"},
}
IN_THREADS = "longshore threads"
_NEAR = 1.1  # a choice is right that takes no more than so many times what the best way takes
_WORST = 8  # rows that are shown of each kind


@dataclass(frozen=True)
class ModelCase:
    """One plan, drawn from a seed."""

    key: str
    number: int
    seed: int
    ranks: int = 2
    quick: bool = False  # calibrates in less time

    name = property(lambda self: f"{self.key} {self.number}")
    brief = True
    needed_bytes = 512 << 20

    @cached_property
    def _drawn(self):
        draw = random.Random(f"{self.seed} {self.key} {self.number}")
        ranks = draw.choice([2, 3, 4, 8]) if self.key == THREADS else self.ranks
        dtype = draw.choice(["float32", "float64", "complex128", "int16"])
        if self.key == HALOS:
            across, extent = draw.choice([(2, 1, 1), (2, 2, 2), (4, 2, 1)]), draw.choice([8, 16, 31, 64])
            return ranks, dtype, (across, extent, draw.choice([1, 2, 3]))
        if self.key == LISTS:
            return ranks, dtype, (draw.choice([100, 3000, 100_000, 1_000_000]), draw.choice([0.02, 0.2, 1.0]))
        shape = tuple(round(2 ** draw.uniform(5, 11.5)) for _ in range(draw.choice([1, 2, 2, 2, 3])))
        while np.prod(shape) > 1 << 22:
            shape = tuple(-(-n // 2) for n in shape)
        axes = draw.sample(range(len(shape)), len(shape)) if draw.random() < 0.4 else list(range(len(shape)))
        texts = [_layout(draw, len(shape), ranks) for _ in range(2)]
        return ranks, dtype, (shape, axes, *texts)

    @cached_property
    def plan(self):
        """The plan of all ranks, or this rank's of one whose lists only it knows."""
        ranks, dtype, drawn = self._drawn
        if self.key == HALOS:
            across, extent, width = drawn
            domain = ls.Region.of_shape([n * extent * (ranks if d == 0 else 1) for d, n in enumerate(across)])
            pieces = ls.regions.split_evenly(domain, [n * (ranks if d == 0 else 1) for d, n in enumerate(across)])
            return ls.BlockPlan.halo(ls.FloorPlan.balanced(pieces, ranks), width, domain=domain, periodic=True)
        if self.key == LISTS:
            return None
        shape, axes, source, destination = drawn
        permuted = tuple(shape[a] for a in axes)
        return ls.plan(ls.Layout(source, shape), ls.Layout(destination, permuted), dtype, axes=axes)

    def facts(self):
        _, dtype, drawn = self._drawn
        if self.key == HALOS:
            title = "{} boxes a rank of {}³, width {}".format(int(np.prod(drawn[0])), *drawn[1:])
        elif self.key == LISTS:
            title = f"{drawn[1]:.0%} of {drawn[0]:,} elements, at random"
        else:
            shape, axes, source, destination = drawn
            turned = "" if axes == sorted(axes) else f", axes {', '.join(map(str, axes))}"
            title = f"{'×'.join(map(str, shape))}: {source} → {destination}{turned}"
        return {
            "case": self.key,
            "number": self.number,
            "seed": self.seed,
            "title": f"{title}, {dtype}",
            "dtype": dtype,
        }


def _layout(draw, dims, ranks):
    """A layout's text, on a grid of one or two of the dimensions."""
    dealt = [
        draw.choice(["BLOCK", "BLOCK", "CYCLIC", f"CYCLIC({draw.choice([2, 5, 8, 32, 64, 100])})"]) for _ in range(dims)
    ]
    whole = draw.sample(range(dims), dims - 1)
    if dims > 1 and ranks in (4, 8) and draw.random() < 0.4:
        whole, grid = whole[1:], f"2x{ranks // 2}"
    else:
        grid = str(ranks)
    return f"({', '.join('*' if d in whole else what for d, what in enumerate(dealt))}) on {grid}"


# --- what is moved


class Moving(Ready):
    """A bound plan with its prediction. `sources` are rewritten by `rewrite`, `look` compares what has arrived."""

    def __init__(self, mover, rewrite, spoil, look, predicted, **more):
        self.run, self.refresh, self.spoil, self.check = mover, rewrite, spoil, look
        self.facts = {"seconds_predicted": predicted.seconds, "expression": str(predicted.expression)}
        self.facts |= {"bottleneck": predicted.bottleneck, "payload_bytes": mover.moved_bytes}
        self.most_bytes = mover.moved_bytes
        for name, value in more.items():
            setattr(self, name, value)


class LocalParts:
    """Arrays of a layout plan, whose elements are their places in the whole array and a salt."""

    def __init__(self, plan, sources, destinations):
        self._plan, self._sources, self._destinations, self._salt = plan, sources, destinations, 0
        whole = np.arange(int(np.prod(plan.source.shape))).reshape(plan.source.shape)
        self._values = [self._cut(whole, plan.source, rank) for rank in sources]
        self._expected = [self._cut(whole.transpose(plan.axes), plan.destination, rank) for rank in destinations]
        self.rewrite()

    def _cut(self, whole, layout, rank):
        return (whole[layout.indices(rank)] % 30_000).astype(self._plan.dtype)

    def rewrite(self):
        self._salt = (self._salt + 1) % 1000
        for array, values in zip(self._sources.values(), self._values):
            np.add(values, values.dtype.type(self._salt), out=array)

    def spoil(self):
        for array in self._destinations.values():
            array.fill(-1)

    def look(self):
        for (rank, array), values in zip(self._destinations.items(), self._expected):
            if not np.array_equal(array, values + values.dtype.type(self._salt)):
                raise WrongResult(f"rank {rank}'s part is not what it should be")


def _profile(context, quick, way=None):
    """This machine's, measured once for all cases unless it has been calibrated before, with the way between processes
    that is asked for. Collective."""
    if "profile" not in context.pool:
        context.pool |= {"profile": tune.profile(), "calibrated_first": ""}
    known = context.pool["profile"]
    if not context.pool["calibrated_first"]:
        lacks = way is not None and way not in {one["way"] for one in known.facts["exchanges"]}
        why = "This machine was not calibrated" if known.coarse else "Its profile said nothing of exchanges" * lacks
        if why := context.agree(why):
            context.step("calibrating/the machine/some forty seconds")
            known = tune.calibrate(context.comm, quick=quick)
            context.pool |= {"profile": known, "calibrated_first": why}
    return known


def _predicted(context, case, plan, way, **more):
    """Of one way, of the slowest rank."""
    chosen = way == ITSELF
    prediction = model.predict(plan, _profile(context, case.quick, "direct" if chosen else way), **more)
    return prediction.best if chosen else next(cost for cost in prediction.ways if cost.way == way)


def _enter(context, case, name):
    moving = _in_process(context, case) if name == IN_THREADS else _between_processes(context, case, name)
    moving.facts["calibrated_first"] = context.pool["calibrated_first"]
    if context.comm is not None:  # ranks move unequal parts, and run equally often
        moving.most_bytes = max(context.comm.allgather(moving.most_bytes))
    return moving


def _between_processes(context, case, name):
    way, options = name.removeprefix("longshore "), WAYS[name]
    comm = context.comm
    if case.key == LAYOUTS:
        plan = case.plan
        sides = []
        for layout in (plan.source, plan.destination):
            shared = way in (ITSELF, "direct")
            sides.append(
                ls.empty(layout, plan.dtype, comm=comm)
                if shared
                else np.zeros(layout.local_shape(comm.rank), plan.dtype)
            )
        parts = LocalParts(plan, {comm.rank: sides[0]}, {comm.rank: sides[1]})
        mover, predicted = plan.bind(*sides, comm=comm, **options), _predicted(context, case, plan, way)
        return Moving(mover, parts.rewrite, parts.spoil, parts.look, predicted)
    return (_halo if case.key == HALOS else _list)(context, case, way, options)


def _halo(context, case, way, options):
    plan, (_, dtype, (_, _, width)) = case.plan, case._drawn
    where = {"comm": context.comm} if way in (ITSELF, "direct") else {"rank": context.rank}
    array = ls.XArray(plan.source, dtype, ghost=width, **where)
    extents = plan.source.bounding.shape
    salt = [0]

    def values(region):
        """By the formula of the domain: beyond its end it begins again."""
        found = np.zeros((1,) * len(extents))
        for d, (lower, upper, extent) in enumerate(zip(region.lower, region.upper, extents)):
            at = np.arange(lower, upper) % extent
            found = found * 7 + at.reshape([-1 if k == d else 1 for k in range(len(extents))])
        return (found % 1000 + salt[0]).astype(dtype)

    unsalted = [(grid.interior, values(grid.block)) for _, grid in array.items()]

    def rewrite():
        salt[0] = (salt[0] + 1) % 1000
        for interior, without in unsalted:
            np.add(without, without.dtype.type(salt[0]), out=interior)

    def spoil():
        for _, grid in array.items():
            np.asarray(grid).fill(-1)

    def look():
        for _, grid in array.items():
            if not np.array_equal(np.asarray(grid), values(grid.region)):
                raise WrongResult(f"the grid over {grid.region} is not what it should be")

    mover = plan.bind(array, comm=context.comm, **options)
    return Moving(mover, rewrite, spoil, look, _predicted(context, case, plan, way, dtype=dtype, ghost=width))


def _list(context, case, way, options):
    """Each rank needs some of the other ranks' elements, in any order: a part of all, drawn at random."""
    _, dtype, (size, part) = case._drawn
    comm, ranks = context.comm, context.ranks
    draw = np.random.default_rng([case.seed % (1 << 32), case.number, comm.rank])
    needed = draw.permutation(size)[: max(1, int(size * part / ranks))]
    owned = ls.FloorPlan.even(ls.Region.of_shape((size,)), ranks)
    plan = ls.BlockPlan.gather_points(owned, needed, comm=comm)
    where = {"comm": comm} if way in (ITSELF, "direct") else {"rank": comm.rank}
    array, salt = ls.XArray(plan.source, dtype, **where), [0]
    lower, upper = owned[comm.rank].lower[0], owned[comm.rank].upper[0]
    mine, ghosts = array[comm.rank][: upper - lower], array[comm.rank][upper - lower :]  # what others own lies behind
    unsalted = (np.arange(lower, upper) % 30_000).astype(dtype)

    def rewrite():
        salt[0] = (salt[0] + 1) % 1000
        np.add(unsalted, unsalted.dtype.type(salt[0]), out=mine)

    def spoil():
        ghosts[...] = -1

    def look():
        if not np.array_equal(ghosts, (needed % 30_000 + salt[0]).astype(dtype)):
            raise WrongResult("a listed element is not what it should be")

    mover = plan.bind(array, comm=comm, **options)
    predicted = _predicted(context, case, plan, way, dtype=dtype, rank=comm.rank)
    slowest = max(comm.allgather(predicted.seconds))
    moving = Moving(mover, rewrite, spoil, look, predicted)
    moving.facts["seconds_predicted"] = slowest
    return moving


def _in_process(context, case):
    plan, threads = case.plan, len(context.cores)
    profile = _profile(context, case.quick)
    if context.rank != 0:
        nothing = LocalParts(plan, {}, {})
        return Moving(
            _Idle(),
            nothing.rewrite,
            nothing.spoil,
            nothing.look,
            model.predict(plan, profile, threads=threads).best,
            alone=True,
        )
    sides = [
        {rank: np.zeros(layout.local_shape(rank), plan.dtype) for rank in layout.ranks}
        for layout in (plan.source, plan.destination)
    ]
    parts = LocalParts(plan, *sides)
    mover = plan.bind(*sides, threads=threads)
    predicted = model.predict(plan, profile, threads=threads).best
    return Moving(mover, parts.rewrite, parts.spoil, parts.look, predicted, alone=True, threads=threads)


class _Idle:
    moved_bytes = 0

    def __call__(self):
        """Another process moves."""


CONTENDERS = (
    *(Contender(name, partial(_enter, name=name), applies=lambda case: case.key != THREADS) for name in WAYS),
    Contender(IN_THREADS, partial(_enter, name=IN_THREADS), applies=lambda case: case.key == THREADS),
)


class Model(Bench):
    name = "model"
    mpi, shuffled, Case, everybody = True, True, ModelCase, CONTENDERS
    thing, stall_seconds = "kind", (60.0, 180.0)

    def __init__(self, quick=False, *, seed=None, plans=None, **options):
        self.seed = int(time.time()) if seed is None else seed
        self.plans = plans or (3 if quick else 25)
        super().__init__(quick, **options)

    def every_case(self):
        return [ModelCase(key, n, self.seed, self.ranks, self.quick) for key in KINDS for n in range(self.plans)]

    def rounds(self, case):
        return self.repeats or (15 if self.quick else 41)

    def finish(self, result):
        for row in result["rows"]:
            row["predicted_ratio"] = row["seconds_predicted"] / row["seconds_median"]
        result["summary"] = {key: _summary(rows) for key, rows in grouped(result["rows"], "case").items()}
        result["summary"]["all"] = _summary(result["rows"])
        if why := next(filter(None, (row["calibrated_first"] for row in result["rows"])), ""):
            result["notes"].append(f"{why}: the machine was calibrated first.")

    def tables(self, result):
        predicted = lambda row: duration(row["seconds_predicted"])  # noqa: E731
        percent = lambda name: lambda row: "" if row[name] is None else f"{row[name]:.0%}"  # noqa: E731
        rows = [{"kind": " ".join(np.atleast_1d(kind)), **of} for kind, of in result["summary"].items()]
        columns = {"plans": "kind", "timed": "rows", "median error": percent("median_error")}
        columns |= {"9 of 10 within": percent("error_90"), "choice right": percent("right_choices")}
        columns["movers' own"] = percent("right_movers")
        yield Table.of("What was predicted, beside what was measured", rows, columns)
        columns = {"plan": "title", "way": "contender", "measured": median, "predicted": predicted}
        columns |= {"predicted ÷\nmeasured": ratio("predicted_ratio"), "expression": "expression"}
        for rows in grouped(result["rows"], "case").values():
            worst = sorted(rows, key=lambda row: -_error(row))[:_WORST]
            yield Table.of(f"{rows[0]['case']}: those that were missed by most", worst, columns, words="plan")

    def figure(self, result):
        """Predicted against measured seconds, a panel a kind: on the line a prediction is right."""
        groups = grouped(result["rows"], "case")
        figure, panels = sheet(result, -(-len(groups) // 2), 2, 10, 4.2 * max(1, -(-len(groups) // 2)) + 0.6)
        for panel, rows in zip(panels.flat, groups.values()):
            plain(panel, rows[0]["case"], "seconds measured", "seconds predicted")
            for name, of in grouped(rows, "contender").items():
                xy = [(row["seconds_median"], row["seconds_predicted"]) for row in of]
                panel.scatter(*zip(*xy), s=12, label=str(np.atleast_1d(name)[0]))
            ends = [f(row[k] for row in rows for k in ("seconds_median", "seconds_predicted")) for f in (min, max)]
            panel.plot(ends, ends, color=PEER, lw=0.8)
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.legend(fontsize=6.5, frameon=False)
        for panel in panels.flat[len(groups) :]:
            panel.set_axis_off()
        return figure


def _error(row):
    return abs(row["predicted_ratio"] - 1)


def _summary(rows):
    """Errors relative to what was measured, and of plans that were carried out in several ways, how often that way is
    within a tenth of the best one which was predicted to be the best, and which movers choose themselves."""
    errors = sorted(map(_error, rows))
    right, taken = [], []
    for of in grouped(rows, "case", "number").values():
        ways = [row for row in of if row["contender"] != ITSELF]
        if len(ways) > 1:
            good = _NEAR * min(row["seconds_median"] for row in of)
            right.append(min(ways, key=lambda row: row["seconds_predicted"])["seconds_median"] <= good)
            taken += [row["seconds_median"] <= good for row in of if row["contender"] == ITSELF]
    share = lambda found: sum(found) / len(found) if found else None  # noqa: E731
    return {
        "rows": len(rows),
        "median_error": errors[len(errors) // 2] if errors else None,
        "error_90": errors[len(errors) * 9 // 10] if errors else None,
        "right_choices": share(right),
        "right_movers": share(taken),
    }
