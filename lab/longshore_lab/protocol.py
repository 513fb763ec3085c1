"""What a bench is: cases, contenders that take turns at them, and what is shown of their rows.

A bench is a class derived from `Bench`. Its cases are measured in this process, or, where it is `mpi`, in a child under
mpiexec that does the same on every rank. Within a case every contender is prepared and checked, then all of them take
turns, and at the end each is checked once more: who is wrong gets no row, and is named as missing with the reason.
"""

import importlib
import json
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import longshore as ls
from longshore._core import kernel_choice, kernel_tables, kernels_name
from longshore.tune.kernels import words as words_of_kernels

from .machine import nap_barrier, on_cores, summary, without_collector

SMALL_BYTES = 1 << 20  # every rank's part of 64² or 256² doubles on a few ranks, not of 1024²
_WORDS = json.loads(Path(__file__).with_name("benches.json").read_text(encoding="utf-8"))


class BenchError(ls.ArgumentError):
    """The bench cannot run as asked."""


class Missing(Exception):
    """The contender cannot take part. The text says why, for the reader of the table."""


class WrongResult(Missing):
    """A contender that is wrong is never timed."""

    def __init__(self, what):
        super().__init__(f"WRONG RESULT: {what}")


def words_of(error):
    return str(error) if isinstance(error, Missing) else f"{type(error).__name__}: {error}"


def missing(contender, why, *cases):
    """The entry of a result for who is missing at these cases, at all of them where none is named."""
    return {"contender": contender, "why": why, "cases": list(cases)}


def module_of_mpi(name):
    """The laboratory's module of that name for this process's MPI. Raises Missing where it was not built."""
    try:
        return importlib.import_module(f"longshore_lab.{name}_{ls.mpi_family()}")
    except ImportError as error:
        raise Missing(f"what this bench times is not built here ({error})") from None


def choose(thing, given, known, there=""):
    """Those of the known names that were asked for, all where nobody asked. BenchError for other names."""
    wanted = list(known if given is None else dict.fromkeys(given))
    for name in wanted:
        if name not in known:
            raise BenchError(f"there is no {thing} {name!r}; there are {there or ', '.join(known)}")
    return wanted


@dataclass
class Context:
    """What contenders are prepared with: the ranks that take part, and what they share. Without MPI `comm` is None."""

    comm: Any = None
    ranks: int = 1
    rank: int = 0
    family: str = ""  # of the MPI
    cores: set = field(default_factory=set)  # of all ranks
    step: Callable = lambda words: None  # takes CASE/CONTENDER/WORDS
    shared: dict = field(default_factory=dict)  # by the contenders of a case
    pool: dict = field(default_factory=dict)  # memory that outlives a case

    def once(self, key, make):
        return self.shared[key] if key in self.shared else self.shared.setdefault(key, make())

    def agree(self, why):
        """The first rank's reason, on every rank; empty where all are well. Collective."""
        return why if self.comm is None else next((w for w in self.comm.allgather(why) if w), "")

    def slowest(self, seconds):
        """The slowest rank's seconds of each repetition. Collective."""
        return seconds if self.comm is None else [max(each) for each in zip(*self.comm.allgather(seconds))]


class Ready:
    """A contender bound to a case: what is timed (`run`) and what goes on around it."""

    threads = 1
    alone = False  # only the first rank works; the others sleep, and it may use all their cores
    detail = ""
    facts = MappingProxyType({})  # for its row
    most_bytes = math.inf  # that a rank moves, the same number on all ranks

    def refresh(self):
        """Its owner writes every source anew: who reads must not find in a cache what was there before."""

    def spoil(self):
        """Nothing is left in what `run` writes."""

    def check(self):
        """Raises WrongResult unless `run` wrote what it should."""

    def close(self):
        """Lets go of what it holds."""

    def sample(self, context):
        """One repetition: owners rewrite, all meet, run. This rank's seconds. Collective."""
        if self.alone and context.comm is not None:
            return sample_alone(context, self.sample)
        # Small moves run once untimed: their microseconds would else be those of waking up after the last one.
        if self.most_bytes <= SMALL_BYTES:
            self.refresh()
            self.run()
        self.refresh()
        if context.comm is not None:
            context.comm.Barrier()
        start = time.perf_counter()
        self.run()
        return time.perf_counter() - start

    def verify(self, context):
        """Why one repetition's result is not right, on every rank; empty where it is. Collective."""
        why = ""
        try:
            self.spoil()
            self.sample(context)
            self.check()
        except Exception as error:
            why = words_of(error)
        return context.agree(why)


def sample_alone(context, sample):
    """The seconds of a sample that the first rank takes by itself, on all cores, while the others sleep. Collective."""
    nap_barrier(context.comm)
    with on_cores(context.cores if context.rank == 0 else None):
        seconds = sample(Context()) if context.rank == 0 else 0.0
    nap_barrier(context.comm)
    return seconds


@dataclass(frozen=True)
class Contender:
    """Somebody who takes part. `prepare(context, case)` makes a Ready; it is collective, and may raise Missing."""

    name: str
    prepare: Callable
    needs_mpi: bool = True
    applies: Callable = lambda case: True

    def enter(self, context, case):
        """A Ready that is checked, or in words why there is none, on all ranks alike. Collective."""
        if self.needs_mpi and context.comm is None:
            return "needs MPI"
        why, ready = "", None
        try:
            # Threads that are started now keep the cores that are allowed now.
            with on_cores(None if self.needs_mpi else context.cores):
                ready = self.prepare(context, case)
        except Exception as error:
            why = words_of(error)
        why = context.agree(why) or ready.verify(context)
        if why and ready is not None:
            ready.close()
        return why or ready


def quickest(context, options, trials):
    """Of several ways (words, Ready) of doing the same, the one whose slowest rank is fastest. Collective."""
    ways = list(options)
    least = [math.inf] * len(ways)
    for _ in range(trials if len(ways) > 1 else 0):
        for k, (_, ready) in enumerate(ways):
            least[k] = min(least[k], ready.sample(context))
    slowest = context.slowest(least)
    words, best = ways.pop(slowest.index(min(slowest)))
    for _, other in ways:
        other.close()
    best.detail = words
    return best


def take_turns(context, ready, rounds, words="", shuffled=False, seconds=math.inf, seed=""):
    """The samples of each by name, and who dropped out with the reason. After so many seconds no other round begins.

    Shuffled, everybody has other neighbours each time, and others by another seed: who always follows the same one is
    always late alike."""
    samples, lost = {name: [] for name in ready}, {}
    order, chance, begun = list(ready), random.Random(f"{seed} {rounds}"), time.perf_counter()
    with without_collector():
        for k in range(rounds):
            if k > 0 and time.perf_counter() - begun > seconds:
                break
            for name in chance.sample(order, len(order)) if shuffled else order:
                if words:
                    context.step(f"{words}/{name}/{k + 1} of {rounds}")
                try:
                    if name not in lost:
                        samples[name].append(ready[name].sample(context))
                except Missing as error:
                    lost[name] = str(error)
    return samples, lost


class Bench:
    """Base of all benches. Derived ones say what there is; options that many take are looked at here.

    Cases have `key` (what --case names), `name`, `needed_bytes` and `facts()`; those of an `mpi` bench are dataclasses.
    """

    name = ""  # by which benches.json has what it says in words
    mpi = shuffled = False
    usual_rounds, stall_seconds = (3, 7), (25.0, 180.0)  # quick, thorough
    thing = "case"
    everybody = named = ()  # contenders, and their names where others are not among them
    always = ()  # names of those that take part whoever is chosen

    def __init__(
        self, quick=False, *, mpiexec=None, ranks=2, cases=None, sizes=None, contenders=None, repeats=None, tables=False
    ):
        self.quick, self.mpiexec, self.ranks, self.repeats = quick, mpiexec, ranks, repeats
        # Copy kernels; with the first of them everybody is measured, with the others who depends on them.
        own = kernels_name()
        self.kernels = [own] + [name for name in reversed(kernel_tables()) if tables and name != own]
        self.sizes = None if sizes is None else sorted(set(sizes))
        if ranks < 1 or (repeats is not None and repeats < 1):
            raise BenchError("ranks and repeats must be positive")
        chosen = {*choose("contender", contenders, self.names()), *self.always}
        self.chosen = [name for name in self.names() if name in chosen]
        self.cases = self.wanted(None if cases is None else list(cases))

    def __init_subclass__(cls):
        """Description, options with what the command line says of them, and columns of a page's table of all rows."""
        cls.words = _WORDS[cls.name]
        cls.description, cls.options, cls.columns = (
            cls.words.get(of, {}) for of in ("description", "options", "columns")
        )

    def notes(self):
        notes = self.words["notes"] + (self.words.get("notes_of_quick", []) if self.quick else [])
        profile, by = kernel_choice()
        streams = f"Copy kernels stream like this ({by}): {words_of_kernels(profile)}."
        return [note.format_map(vars(self)) for note in notes] + [streams]

    @classmethod
    def run(cls, *args, **options):
        """Runs the bench with its options, prints its tables, writes what was asked for, returns what `json` holds."""
        from .run import run

        return run(cls, *args, **options)

    def names(self):
        return self.named or [contender.name for contender in self.everybody]

    def wanted(self, given):
        """The cases of these keys, all where none are given."""
        every = self.every_case()
        keys = choose(self.thing, given, list(dict.fromkeys(case.key for case in every)))
        return [case for case in every if case.key in keys]

    def contenders(self):
        return [contender for contender in self.everybody if contender.name in self.chosen]

    def of_names(self, names):
        return [contender for contender in self.everybody if contender.name in names]

    def of_kernels(self, names):
        """Those of these names who are measured with every set of copy kernels."""
        return [name for name in names if name.startswith("longshore") or name in self.always]

    def rounds(self, case):
        return self.repeats or self.usual_rounds[not self.quick]

    def measure(self, context, case, contenders, rounds):
        """The rows of a case, and who is missing. Collective."""
        ready, lacking = {}, {}
        for contender in (contender for contender in contenders if contender.applies(case)):
            context.step(f"{case.name}/{contender.name}/first run")
            found = contender.enter(context, case)
            (lacking if isinstance(found, str) else ready)[contender.name] = found
        words = "" if getattr(case, "brief", False) else case.name  # naming each step of a brief case would disturb it
        seed = getattr(case, "seed", "")
        samples, lost = take_turns(context, ready, rounds, words, self.shuffled, seed=seed)
        for name, one in ready.items():
            context.step(f"{case.name}/{name}/last look")
            if why := lost.get(name) or one.verify(context):
                lacking[name] = why
        right = {name: one for name, one in ready.items() if name not in lacking}
        rows = self.rows(context, case, right, {name: context.slowest(samples[name]) for name in right})
        for one in ready.values():
            one.close()
        context.shared.clear()
        return rows, [missing(name, why, case.name) for name, why in lacking.items()]

    def rows(self, context, case, ready, samples):
        """The rows of those who were right. Collective."""
        rows = []
        for name, one in ready.items():
            where = {"ranks": context.ranks, "processes": 1 if one.alone else context.ranks, "threads": one.threads}
            told = {
                "contender": name,
                "table": kernels_name(),
                **summary(samples[name]),
                "detail": one.detail,
                "verified": True,
            }
            rows.append({**where, **case.facts(), **told, **one.facts})
        return rows

    def beside(self, step):
        """(rows, missing) of what is measured in this process besides."""
        return [], []

    def finish(self, result):
        """Puts into a result what follows from its rows."""

    def close(self):
        """Lets go of what it holds."""
