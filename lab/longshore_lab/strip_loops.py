"""What `longshore bench strips` times: loops over another rank's elements, the networks that these come through, and
what messages take there by LogGP."""

import atexit
import itertools
import math
import os
import tempfile
import time
from pathlib import Path

import longshore as ls
import numpy as np
from longshore import model, tune
from longshore.tune.strips import tuner as tuner_of_strips

from .machine import clocked
from .protocol import Missing, Ready, WrongResult

SEEN, KERNEL, MESSAGES, LINK = NETWORKS = ("seen", "kernel", "messages", "link")
NETWORK_WORDS = {SEEN: "memory that all see", KERNEL: "the kernel's copies between processes"}
NETWORK_WORDS |= {MESSAGES: "MPI on one node", LINK: "MPI over a link of {rate}"}
ONE_TO_ONE, ALL_TO_ONE, ALL_TO_ALL = PATTERNS = ("one-to-one", "all-to-one", "all-to-all")
REDUCTION, VECTOR, EVEN = LOOPS = ("reduction", "vector", "even")
LARGEST = 1 << 20  # doubles of a rank, usually
SPARE = 4096  # further ones: sections begin at one of the first so many
_VALUES = 1000  # elements are below, so that sums are exact
INTERFACE = "ls0"  # a node's end of the link
_BLOCK = 4096  # doubles that a loop works on at once: else NumPy would go through memory three times
_SCALE, _SHIFT = 2.0, 3.0
_PROBES, _UNDER_WAY = 64, 64
SEARCH_LOOPS = 300  # at most; of a loop of one element none is ever settled


def partner_of(pattern, rank, ranks):
    """Whose elements a rank gets, or None."""
    if pattern == ALL_TO_ALL:
        return (rank + 1) % ranks
    if pattern == ONE_TO_ONE:
        return 1 if rank == 0 else None
    return ranks - 1 if rank < ranks - 1 else None


# --- networks


def lay_open(context, network, shape):
    """An array of each rank and a window that reaches them by that network. Collective; raises Missing where it does
    not."""
    if network == SEEN:
        text = f"({'*, ' * (len(shape) - 1)}BLOCK) on {context.ranks}"
        mine = ls.empty(ls.Layout(text, (*shape[:-1], shape[-1] * context.ranks)), "float64", comm=context.comm)
    else:
        mine = np.zeros(shape)
    through_mpi = network in (MESSAGES, LINK)
    how = {"node": "messages", "progress": "thread"} if through_mpi else {}
    window = ls.Window(mine, comm=context.comm, **how)
    atexit.register(window.close)  # MPI is finalised after that
    reach = window[(context.rank + 1) % context.ranks].core.reach
    wrong = (reach == "seen") != (network == SEEN) or window.progress.startswith("all") == through_mpi
    if why := context.agree(f"the other rank's array is not reached so: {reach}, {window.progress}" if wrong else ""):
        raise Missing(why)
    return mine, window


class Network:
    """An array of each rank, laid open to the others, and what its messages take. Collective; rank 0 measures."""

    def __init__(self, context, name, size):
        self.rank, self._salt, self._seed = context.rank, 0, None
        self.draw(0, size)
        self.mine, self.window = lay_open(context, name, (size,))
        space = np.zeros(size)
        large = min(self._large_get(context.comm, space) for _ in range(5))
        self.overheads = context.comm.bcast(self._measured(space, large) if self.rank == 0 else None)
        self.copied = name in (SEEN, KERNEL)  # by whoever waits, and not while somebody computes
        self.loggp = model.LogGP(**self.overheads)

    def draw(self, seed, size):
        """Draws the values that elements have but for a number that is the same for all."""
        if seed != self._seed:
            values = np.random.default_rng(seed).integers(0, _VALUES, size)
            self._seed, self._base = seed, values.astype(float)

    def rewrite(self, n, first=0):
        """Every owner writes n elements from the first on anew. Collective."""
        here, self._salt = slice(first, first + n), (self._salt + 1) % 1000
        np.add(self._base[here], self._salt + 7 * self.rank, out=self.mine[here])
        self.window.fence()

    def expected(self, owner, n, first=0):
        return self._base[first : first + n] + (self._salt + 7 * owner)

    def _large_get(self, comm, space):
        """The first rank's seconds, of what its owner has just written. Collective."""
        self.rewrite(len(space))
        comm.Barrier()
        seconds = clocked(lambda: self.window[1].get(out=space)) if self.rank == 0 else 0.0
        comm.Barrier()
        return seconds

    def _measured(self, space, large):
        """LogGP: `o`, what issuing a get takes, `g`, how far apart many small ones are, `L` from one alone, `G` from a
        large one. What a strip takes besides, in a process that has everything, is a part of `o`."""
        section, address = self.window[1], space.ctypes.data
        issuing = []
        for _ in range(5):
            begun = time.perf_counter()
            under_way = [section.core.nbget(k, k + 1, address + 8 * k) for k in range(_UNDER_WAY)]
            issuing.append((time.perf_counter() - begun) / _UNDER_WAY)
            for one in under_way:
                one.wait()
        here = ls.Window([self.mine])[0]
        probes = f"fixed(1, {_UNDER_WAY})"
        strip = min(clocked(lambda: _drain(here[: 8 * _PROBES], "fixed(1, 1)")) for _ in range(5)) / (8 * _PROBES)
        apart = min(clocked(lambda: _drain(section[: 8 * _PROBES], probes)) for _ in range(5)) / (8 * _PROBES)
        alone = min(clocked(lambda: section[:1].get()) for _ in range(_PROBES))
        o = min(issuing)
        L = max(0.0, (alone - o) / 2)
        G = max(0.0, large - o - 2 * L) / space.nbytes
        return {"L": L, "o_s": o, "o_r": strip, "g": max(0.0, apart - strip), "G": G}

    def predicted(self, schedule, n, computing):
        """Seconds of a loop whose body takes `computing` seconds a byte."""
        if self.copied:
            quick = model.LogGP(**(self.overheads | {"G": 0.0}))
            return model.strip_cost(schedule, n, quick, compute=computing, memory=self.loggp.G, rolling=True).seconds
        return model.strip_cost(schedule, n, self.loggp, compute=computing, link="shared", rolling=True).seconds


def _drain(section, schedule):
    for _ in ls.strips(section, schedule):
        pass


def private_profile(context):
    """What is found about strips here is no user's, and what was found before would spare the search."""
    if "folder" not in context.pool:
        context.pool["folder"] = tempfile.TemporaryDirectory(prefix="longshore-bench-")
        os.environ[tune.ENVIRONMENT] = str(Path(context.pool["folder"].name) / "profile.json")


def network_of(context, case):
    private_profile(context)
    size = max(case.n, LARGEST) + SPARE
    key = (case.network, size)
    if key not in context.pool:
        context.pool[key] = Network(context, case.network, size)
    context.pool[key].draw(case.seed, size)
    return context.pool[key]


# --- loops


class Reduction:
    """accum += strip.sum(), so many times over."""

    def __init__(self, n, passes=1):
        self._passes, self.total = passes, 0.0

    def spoil(self):
        self.total = 0.0

    begin = spoil

    def __call__(self, data, first):
        for low in range(0, len(data), _BLOCK):
            block = data[low : low + _BLOCK]
            for _ in range(self._passes):
                self.total += block.sum()

    def check(self, elements):
        right = float(elements.sum()) * self._passes
        if self.total != right:
            raise WrongResult(f"the sum is {self.total}, and should be {right}")


class Vector:
    """a[i] = b[i] + s * r[i] + t, so many times over: three operations an element."""

    def __init__(self, n, passes=1):
        self._passes, self.a, self.b = passes, np.zeros(n), np.arange(float(n)) % 100

    def begin(self):
        """Nothing is left from last time that is not overwritten."""

    def spoil(self):
        self.a.fill(np.nan)

    def __call__(self, data, first):
        for low in range(0, len(data), _BLOCK):
            block = data[low : low + _BLOCK]
            here = slice(first + low, first + low + len(block))
            a, b = self.a[here], self.b[here]
            for _ in range(self._passes):
                np.multiply(block, _SCALE, out=a)
                a += b
                a += _SHIFT

    def check(self, elements):
        if wrong := np.flatnonzero(self.a != self.b + _SCALE * elements + _SHIFT)[:1].tolist():
            raise WrongResult(f"element {wrong[0]} is {self.a[wrong[0]]}")


def body_of(context, case, network):
    """A loop's body, the same one for all: how its arrays happen to lie is worth a tenth. That of `even` computes
    as long as its elements travel. Collective."""
    if case.loop != EVEN:
        return context.once("body", lambda: (Reduction if case.loop == REDUCTION else Vector)(case.n))

    def passes():
        probe, data = Vector(_BLOCK), np.ones(_BLOCK)
        once = min(clocked(lambda: probe(data, 0), 50) for _ in range(5)) / data.nbytes
        return context.comm.bcast(max(1, round(network.loggp.G / once)))

    return context.once("body", lambda: Vector(case.n, passes()))


def computing_seconds(body, schedule, n):
    """Seconds a byte of the body alone, on strips that lie where those of the schedule would; of many strips, the first
    ones."""
    depth = schedule.depth + 1
    spans = list(itertools.islice(schedule.strips(n), 2000))
    slots = [np.ones(max(last - first for first, last in spans)) for _ in range(min(depth, len(spans)))]

    def once():
        body.begin()
        for k, (first, last) in enumerate(spans):
            body(slots[k % len(slots)][: last - first], first)

    return min(clocked(once) for _ in range(3)) / (8 * spans[-1][1])


# --- what takes part


class Getting(Ready):
    """A loop over another rank's elements: `loop(section)` gets them and works on them. Ranks that get nothing,
    and those that have all, wait in MPI_Barrier and see to what they are asked for there."""

    def __init__(self, context, case, loop, body=None):
        self.network = network_of(context, case)
        self.case, self._loop = case, loop
        self.owner = partner_of(case.pattern, context.rank, context.ranks)
        self.section = None if self.owner is None else self.network.window[self.owner][case.first : case.first + case.n]
        self.body = body or body_of(context, case, self.network)
        self.facts, self.link_bytes = {"schedule": "", "strip_size": None}, []

    def refresh(self):
        self.network.rewrite(self.case.n, self.case.first)

    def expected(self):
        """The elements that this rank gets."""
        return self.network.expected(self.owner, self.case.n, self.case.first)

    def spoil(self):
        self.body.spoil()

    def run(self):
        if self.section is not None:
            self.body.begin()
            self._loop(self.section)

    def check(self):
        if self.section is not None:
            self.body.check(self.expected())
            if self.case.network == LINK and self.link_bytes[-1] < self.case.payload_bytes:
                raise WrongResult(f"{self.link_bytes[-1]} of {self.case.payload_bytes} bytes came over the link")

    def sample(self, context):
        # Small loops run once untimed: their microseconds would else be those of waking up after the last one.
        for _ in range(2 if self.case.brief else 1):
            self.refresh()
            before = self._bytes()
            context.comm.Barrier()
            begun = time.perf_counter()
            self.run()
            seconds = time.perf_counter() - begun if self.section is not None else 0.0
            context.comm.Barrier()  # nobody writes its elements anew before all have got them
            self.link_bytes.append(self._bytes() - before)
        return seconds

    def _bytes(self):
        """That have come through the link so far."""
        if self.case.network != LINK:
            return 0
        lines = Path("/proc/self/net/dev").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.split()[0] == f"{INTERFACE}:")

    def predict(self, schedule):
        """What the model says of it, and what of it is computing."""
        computing = computing_seconds(self.body, schedule, self.case.n)
        self.facts |= {
            "schedule": str(schedule),
            "strips": schedule.count(self.case.n),
            "strip_size": schedule.size if schedule.depth else None,
            "depth": schedule.depth,
            "growth": schedule.growth,
            "seconds_predicted": self.network.predicted(schedule, self.case.n, computing),
        }


def in_strips(context, case, schedule):
    """The loop with a schedule, or with "auto": then its search is over when this returns."""
    pattern = f"bench {case.name}"
    # Ranks that all go over strips at once try the same ones.
    together = {"comm": context.comm} if schedule == "auto" and case.pattern == ALL_TO_ALL else {}

    def loop(section):
        body = ready.body
        for strip in ls.strips(section, schedule, pattern=pattern, **together):
            body(strip.data, strip.first)

    ready = Getting(context, case, loop)
    if schedule != "auto":
        schedule = model.StripSchedule(schedule)
        if schedule.kind == "small":
            _refuse_long(context, ready)
        ready.predict(schedule)
    else:
        _search(context, ready, pattern, together=bool(together))
    ready.detail = ready.facts["schedule"]
    return ready


_LONG_SECONDS = 0.1


def _refuse_long(context, ready):
    """Collective."""
    few, why = 64, ""
    if ready.section is not None:
        seconds = clocked(lambda: _drain(ready.section[:few], "small")) * ready.case.n / few
        if seconds > _LONG_SECONDS:
            why = f"element by element takes some {seconds:.1g} s, too long to be repeated"
    if why := context.agree(why):
        raise Missing(why)


def _loop(section, pattern, together):
    """As the tuner knows it, that of rank 0 where ranks search together."""
    words = f"{pattern}, {section.core.reach}{', together' if together else ''}"
    return words, len(section), 8 * max(1, math.prod(section.shape[1:]))


def _search(context, ready, pattern, together):
    """Runs the loop until its schedule is settled on every rank. Collective."""
    loops, section = 0, ready.section
    searches = section is not None and not (together and context.rank > 0)

    def searching():
        return "searching" if searches and not tuner_of_strips().settled(*_loop(section, pattern, together)) else ""

    while loops < SEARCH_LOOPS and context.agree(searching()):
        ready.sample(context)
        loops += 1
    ready.facts["search_loops"] = loops
    found = tuner_of_strips().schedule(*_loop(section, pattern, together)) if searches else None
    if together:
        found = model.StripSchedule(context.comm.bcast(found and str(found)))
    if found is not None:
        ready.predict(found)


class Kept:
    """In place of a body, for who computes nothing: where the elements arrive."""

    def __init__(self, n):
        self.data = np.zeros(n)

    def begin(self):
        """Nothing."""

    def spoil(self):
        self.data.fill(np.nan)

    def check(self, elements):
        if not np.array_equal(self.data, elements):
            raise WrongResult("what was got is not what was there")


def got_only(context, case):
    kept = Kept(case.n)
    return Getting(context, case, lambda section: section.get(out=kept.data), kept)


class Computing(Getting):
    """The body alone, on elements that are here."""

    def __init__(self, context, case):
        super().__init__(context, case, lambda section: self.body(self._here, 0))
        self._here = np.zeros(case.n)

    def refresh(self):
        super().refresh()
        if self.owner is not None:
            self._here[:] = self.expected()

    def check(self):
        if self.section is not None:
            self.body.check(self._here)


class Beside(Computing):
    """The body on elements that are here while as many come from the other rank, which nothing waits for: what this
    machine overlaps where nothing depends on anything."""

    def __init__(self, context, case):
        super().__init__(context, case)
        self._loop, self._kept = self._both, Kept(case.n)

    def _both(self, section):
        coming = section.nbget(out=self._kept.data)
        self.body(self._here, 0)
        coming.wait()

    def spoil(self):
        super().spoil()
        self._kept.spoil()

    def check(self):
        super().check()
        if self.section is not None:
            self._kept.check(self.expected())


class Rget(Getting):
    """One MPI_Rget as a user of mpi4py writes it, into a buffer that is kept, then the body. Longshore's threads for
    progress see to it, too."""

    def __init__(self, context, case):
        from mpi4py import MPI

        super().__init__(context, case, self._get)
        self._buffer, self._there = np.zeros(case.n), (case.first, case.n)
        self._window = MPI.Win.Create(self.network.mine, 8, comm=context.comm)
        self._window.Lock_all()

    def refresh(self):
        super().refresh()
        self._window.Sync()

    def _get(self, section):
        self._window.Rget(self._buffer, self.owner, self._there).Wait()
        self.body(self._buffer, 0)

    def close(self):
        self._window.Unlock_all()
        self._window.Free()


# --- interference


class Interfered(Ready):
    """Rank 1 computes on its own elements, in order or by indices, alone or while rank 0 gets them over and over."""

    def __init__(self, context, case, indirect, others):
        self.network, self.case, self._others = network_of(context, case), case, others
        here = slice(case.first, case.first + case.n)
        self._mine, self._rank, self._passes = self.network.mine[here], context.rank, case.passes
        draw = np.random.default_rng([case.seed, case.n])
        self._indices = draw.integers(0, case.n, case.n) if indirect else None
        self._gathered, self._buffer, self._total = np.zeros(case.n), np.zeros(case.n), math.nan
        self._section = self.network.window[1][here] if context.rank == 0 else None
        self._got = 0
        self.facts = {"payload_bytes": 8 * case.n * case.passes}

    def refresh(self):
        self.network.rewrite(self.case.n, self.case.first)

    def spoil(self):
        self._total, self._got = math.nan, 0
        self._buffer.fill(np.nan)

    def _compute(self):
        self._total = 0.0
        for _ in range(self._passes):
            data = self._mine
            if self._indices is not None:
                data = self._mine.take(self._indices, out=self._gathered, mode="clip")
            self._total += data.sum()

    def check(self):
        elements = self.network.expected(1, self.case.n, self.case.first)
        if self._rank == 1:
            right = self._passes * float((elements if self._indices is None else elements[self._indices]).sum())
            if self._total != right:
                raise WrongResult(f"the sum is {self._total}, and should be {right}")
        elif self._got and not np.array_equal(self._buffer, elements):
            raise WrongResult("what was got is not what was there")

    def sample(self, context):
        comm, seconds = context.comm, 0.0
        self.refresh()
        comm.Barrier()
        if context.rank == 1:
            begun = time.perf_counter()
            self._compute()
            seconds = time.perf_counter() - begun
        elif context.rank == 0 and self._others:
            all_done, begun, gets = comm.Ibarrier(), time.perf_counter(), 0
            while not all_done.Test():
                self._section.get(out=self._buffer)
                gets += 1
            self._got = gets * self._buffer.nbytes
            self.facts["got_rate"] = self._got / (time.perf_counter() - begun)
            return seconds
        comm.Ibarrier().Wait()
        return seconds


# --- parameters


class LargeGet(Getting):
    """The get that G is found from."""

    def __init__(self, context, case):
        kept = Kept(case.n)
        super().__init__(context, case, lambda section: section.get(out=kept.data), kept)
        self.facts |= {"loggp": self.network.overheads, "progress": self.network.window.progress}


class VectorReduction(Ready):
    """The sum of what a rank has: the least that can be computed with elements."""

    def __init__(self, context, case):
        self.network, self.case, self._rank, self._total = network_of(context, case), case, context.rank, math.nan
        self._here = slice(case.first, case.first + case.n)
        self.facts = {}

    def refresh(self):
        self.network.rewrite(self.case.n, self.case.first)

    def spoil(self):
        self._total = math.nan

    def run(self):
        self._total = float(self.network.mine[self._here].sum())

    def check(self):
        if self._total != float(self.network.expected(self._rank, self.case.n, self.case.first).sum()):
            raise WrongResult(f"the sum is {self._total}")
