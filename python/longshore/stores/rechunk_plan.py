"""How an array gets from one chunk grid to another within a memory ceiling: the ways there are, and what each costs.

Source chunks are visited one after the other; what each has for a chunk of the target is copied to a buffer of that
chunk, which is written as soon as nothing is missing. What has to be held at once are the chunks that have begun and
are not complete, and that depends on the order of visiting. Where it is more than there is room for, the target is cut
into boxes: each box reads the sources that it needs (`panels`: what lies across a seam is read again), or all read them
together, the first box is held, and what the others need is put into scratch files and comes from there later (`spill`,
as a hybrid hash join does: Shapiro, "Join processing in database systems with large main memories", 1986). Where the
target is none that has chunks of its own, `scatter.py` chooses which it is to be taken for.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._words import bytes_of
from ..errors import MemoryLimitError
from .array import Grid

PIECE_BYTES = 256 << 10
"""What is collected for a scratch file before it is written."""
_BASE_BYTES = 8 << 20  # Python's objects, the pool
_THREAD_BYTES = 1 << 20  # a thread's stack and the allocator's arena
_CHUNK_BYTES = 32  # the tables' of a chunk that a box has
_EXCHANGE_BYTES = 32 << 20  # what the engine holds between processes
PAGE_BYTES = 4096
_TRIED_AXES = 6  # of which all orders of visiting are looked at
_LOOKED_AT = 1 << 16  # slabs of a dimension; further ones look like these, as good as always
_MOST_SCRATCH = 256  # files open at once
_WORKERS = 16  # of an executor, which need not say how many it has
_TASK_BYTES = 16 << 20  # moved in the time in which a worker gets a task and opens the stores
_WORTH_HALF = 0.75  # times the bytes, for which half the threads do
_NEAR = 1.5  # times the bytes that must be moved, where that gives more workers something to do

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""From which chunk of the target to which: (first, last), the last not included."""


class OtherWay(NamedTuple):
    """A way that was not taken, and why: it moves more, or it needs more memory than there may be."""

    way: str
    total_bytes: int
    memory_bytes: int
    fits: bool

    def __str__(self) -> str:
        why = f"move {bytes_of(self.total_bytes)}" if self.fits else f"need {bytes_of(self.memory_bytes)} of memory"
        return f"{self.way} would {why}"


@dataclass(frozen=True)
class RechunkPlan:
    """One array's way from grid to grid: a value. Bytes are those of files, but for `memory_bytes`."""

    source: Grid
    target: Grid
    itemsize: int
    way: str
    """"sweep": all in one pass; "scatter": so, too, in boxes of the source's chunks, which are written where they
    belong; "panels": box by box, each reading what it needs; "spill": through scratch files; "windows": box by box,
    shared by processes; "tasks": box by box, each by a worker of an executor; "two passes": such tasks into a temporary
    store, and from there."""
    order: tuple[int, ...]
    """Of the dimensions in which source chunks are visited, the slowest first."""
    boxes: tuple[tuple[int, ...], ...]
    """Extents in target chunks: of a panel, then of what that is cut into, and so on; what the last has is held at
    once."""
    slots: int
    """Chunks of the target held at once, at most."""
    threads: int
    read_bytes: int
    written_bytes: int
    spilled_bytes: int
    """Written to scratch files, and read from there once more: half of it each."""
    floor_bytes: int
    """No way can do with less at this ceiling."""
    memory_bytes: int
    """Held at once, at most."""
    least_bytes: int
    """The ceiling that the least demanding way needs."""
    others: tuple[OtherWay, ...] = ()
    """The ways that lose; none where all is read and written once, which nothing can beat."""

    @property
    def total_bytes(self) -> int:
        """Of everything that goes to files or comes from them."""
        return self.read_bytes + self.written_bytes + self.spilled_bytes

    @property
    def passes(self) -> int:
        """How often an element is read and written, at most."""
        return len(self.boxes)

    def panels(self) -> Iterator[Box]:
        """The boxes that read the source, one after the other."""
        zero = (0,) * len(self.target.shape)
        return split((zero, self.target.counts), self.boxes[0], self.order)

    def __str__(self) -> str:
        over = self.total_bytes / self.floor_bytes if self.floor_bytes else 1.0
        spilled = f", {bytes_of(self.spilled_bytes)} to scratch files and back" if self.spilled_bytes else ""
        return (
            f"{self.way}: {bytes_of(self.read_bytes)} read, {bytes_of(self.written_bytes)} written{spilled}, "
            f"{over:.2f} of the least there is; {bytes_of(self.memory_bytes)} of memory"
            + (f" ({'; '.join(map(str, self.others))})" if self.others else "")
        )


def split(box: Box, extents: Sequence[int], order: Sequence[int]) -> Iterator[Box]:
    """A box cut into boxes of these extents, the dimensions of `order` slowest first."""
    first, last = box
    for corner in itertools.product(*[range(first[d], last[d], extents[d]) for d in order]):
        lo = [0] * len(first)
        for d, at in zip(order, corner):
            lo[d] = at
        yield tuple(lo), tuple(min(a + e, b) for a, e, b in zip(lo, extents, last))


def plan_rechunk(
    source: Grid,
    target: Grid,
    itemsize: int,
    max_mem: int,
    *,
    threads: int = 1,
    stored_bytes: int | None = None,
    target_bytes: int | None = None,
    addressable: bool = False,
    raw: bool = False,
    processes: int = 1,
    writers: int = 1,
    beside: int = 0,
    thread_bytes: int = 0,
    encode_bytes: int | None = None,
) -> RechunkPlan:
    """The way that moves the fewest bytes within `max_mem`, by fewer threads where it needs what these would hold. Both
    grids have the same dimensions. By several processes, of which so many write, it is done in windows; `max_mem` is
    then each one's. `beside`: bytes of it that are taken, `thread_bytes`: what each thread that reads holds beside its
    chunk, stored and decoded, `encode_bytes`: what each that writes does beside its (None: as much, and a little more).

    `stored_bytes`: what the source takes as it is stored, `target_bytes`: what the target is expected to take (None:
    the elements' bytes). `addressable`: any box of the source can be read by itself. `raw`: its chunks are stored as
    they are in memory, so that they need not be held decoded, too. Raises MemoryLimitError, which says the least that
    would do."""
    ways = Ways(source, target, itemsize, stored_bytes, target_bytes, addressable, raw, thread_bytes, encode_bytes)
    room, alone = max_mem - beside, processes == 1
    least = beside + (ways.least() if alone else ways.least_of_windows(processes, writers))
    counts = (threads >> halved for halved in range(threads.bit_length()))
    plans = (ways.best(room, n) if alone else ways.windows(room, n, processes, writers) for n in counts)
    fitting = (plan for plan in plans if plan is not None)
    if (plan := next(fitting, None)) is None:
        raise too_little(source, target, max_mem, least)
    for fewer in itertools.islice(fitting, 2 if alone and plan.way != "sweep" else 0):
        plan = fewer if fewer.total_bytes < _WORTH_HALF * plan.total_bytes else plan
    others = ways.others(room, plan.threads, plan) if alone else ()
    return replace(plan, memory_bytes=plan.memory_bytes + beside, least_bytes=least, others=others)


def too_little(source: Grid, target: Grid, max_mem: int, least: int) -> MemoryLimitError:
    """Says that a ceiling does not do, and the least that would."""
    return MemoryLimitError(
        f"chunks of {'x'.join(map(str, source.chunks))} to chunks of {'x'.join(map(str, target.chunks))} "
        f"cannot be had within {bytes_of(max_mem)}: it needs at least {-(-least >> 20)} MiB, for one chunk of "
        f"each, decoded, and as it is stored; allow --max-mem {-(-least >> 20)}MiB"
    )


class Ways:
    """What one array's ways from grid to grid need and cost."""

    def __init__(
        self,
        source: Grid,
        target: Grid,
        itemsize: int,
        stored_bytes: int | None,
        target_bytes: int | None,
        addressable: bool,
        raw: bool = False,
        thread_bytes: int = 0,
        encode_bytes: int | None = None,
    ) -> None:
        self.source, self.target, self.itemsize, self.addressable = source, target, itemsize, addressable
        self.raw, self.thread_bytes = raw, thread_bytes
        self.elements = math.prod(source.shape)
        self.bytes = self.elements * itemsize
        self.read_once = self.bytes if stored_bytes is None else stored_bytes
        self.written = self.bytes if target_bytes is None else target_bytes
        self.source_chunk = math.prod(map(min, source.chunks, source.shape)) * itemsize
        self.target_chunk = math.prod(target.chunks) * itemsize
        self.encode_bytes = self.target_chunk + self.target_chunk // 8 if encode_bytes is None else encode_bytes
        self.axes = [d for d in range(len(source.shape)) if source.counts[d] > 1 or target.counts[d] > 1]
        self.piece_bytes = PIECE_BYTES
        self._patterns = [_patterns(n, s, t) for n, s, t in zip(source.shape, source.chunks, target.chunks)]

    def fixed(self, threads: int) -> int:
        """Held beside the target's chunks: what is read and decoded, or encoded."""
        half = 2 if self.raw else 1  # of it goes to a scratch file
        read = self.source_chunk + self.source_chunk // half + self.thread_bytes
        one = max(read, self.source_chunk + self.encode_bytes)  # what completes a chunk is held while that is encoded
        return _BASE_BYTES + threads * (one + _THREAD_BYTES)

    def least(self) -> int:
        """The ceiling at which something can be done: a target chunk at a time."""
        return self.fixed(1) + self.target_chunk + _CHUNK_BYTES

    def best(self, max_mem: int, threads: int) -> RechunkPlan | None:
        """None where nothing fits."""
        room = max_mem - self.fixed(threads)
        found: RechunkPlan | None = None
        for panel in self._panels():
            read = self._read(panel)
            if found is not None and read + self.written >= found.total_bytes:
                continue
            order, slots = self._order(panel)
            way = "sweep" if panel == self.target.counts else "panels"
            boxes, spilled = [panel], 0
            if not self._fits(panel, slots, room):
                cut = self._cut(panel, room)
                if cut is None:
                    continue
                boxes, spilled = cut
                order, slots = self._order(boxes[-1])
                way = "spill"
            if found is None or read + self.written + spilled < found.total_bytes:
                slots = self._more(boxes, slots, room, threads)
                memory = max_mem - room + slots * self.target_chunk + math.prod(boxes[-1]) * _CHUNK_BYTES
                found = RechunkPlan(
                    source=self.source,
                    target=self.target,
                    itemsize=self.itemsize,
                    way=way,
                    order=order,
                    boxes=tuple(boxes),
                    slots=slots,
                    threads=threads,
                    read_bytes=read,
                    written_bytes=self.written,
                    spilled_bytes=spilled,
                    floor_bytes=self.floor(max_mem),
                    memory_bytes=memory,
                    least_bytes=0,
                )
        return found

    def others(self, max_mem: int, threads: int, taken: RechunkPlan) -> tuple[OtherWay, ...]:
        """What the ways that `best` has not taken would move and hold, the best of each."""
        if taken.way == "sweep" or not self.elements:
            return ()
        whole, fixed = self.target.counts, self.fixed(threads)
        found = []

        def add(way: str, panel: tuple[int, ...], spilled: int, held: tuple[int, ...]) -> None:
            memory = fixed + self._slots(held) * self.target_chunk + math.prod(held) * _CHUNK_BYTES
            found.append(OtherWay(way, self._read(panel) + self.written + spilled, memory, memory <= max_mem))

        add("sweep", whole, 0, whole)
        if taken.way != "panels":
            panels = sorted((panel for panel in self._panels() if panel != whole), key=self._read)
            fits = (panel for panel in panels if self._fits(panel, self._slots(panel), max_mem - fixed))
            for panel in itertools.islice(itertools.chain(fits, panels[-1:]), 1):
                add("panels", panel, 0, panel)
        elif (cut := self._cut(whole, max_mem - fixed)) is not None:
            add("spill", whole, cut[1], cut[0][-1])
        return tuple(found)

    def windows(self, max_mem: int, threads: int, processes: int, writers: int) -> RechunkPlan | None:
        """Windows of which each process reads a share of the source's chunks, and each that writes gets a share of the
        target's; None where none fits. Sources are read again where they lie in two windows."""
        found: RechunkPlan | None = None
        for panel in itertools.chain(self._panels(), [(1,) * len(self.target.shape)]):
            memory = self.fixed(threads) + self._of_window(panel, processes, writers)
            read = self._read(panel)
            if memory > max_mem or (found is not None and read >= found.read_bytes):
                continue
            found = RechunkPlan(
                source=self.source,
                target=self.target,
                itemsize=self.itemsize,
                way="windows",
                order=tuple(range(len(panel))),
                boxes=(tuple(panel),),
                slots=0,
                threads=threads,
                read_bytes=read,
                written_bytes=self.written,
                spilled_bytes=0,
                floor_bytes=self.floor(max_mem * processes),
                memory_bytes=memory,
                least_bytes=0,
            )
        return found

    def tasks(self, max_mem: int, threads: int, whole: Grid, most: int | None = None) -> RechunkPlan | None:
        """Panels that are moved by themselves, each within `max_mem` and without scratch files: of those that move
        about the fewest bytes the ones that several workers are expected to have done first; None where none fits. A
        panel has whole chunks of `whole`, a grid of the target's chunks or of boxes of them, and no more than `most`
        of the target's if it has several."""
        room, counts = max_mem - self.fixed(threads), self.target.counts
        times = [w // t for w, t in zip(whole.chunks, self.target.chunks)]
        ours = self.read_once, self.written, self.addressable, self.raw, self.thread_bytes, self.encode_bytes
        coarse = Ways(self.source, whole, self.itemsize, *ours)
        panels = {
            tuple(min(p * k, n) for p, k, n in zip(panel, times, counts))
            for panel in itertools.chain(coarse._panels(), [(1,) * len(times)])
            if most is None or math.prod(panel) <= max(1, most)
        }
        fits = functools.cache(lambda panel: self._fits(panel, self._slots(panel), room))
        moved = {panel: self._read(panel) + self.written for panel in panels}
        by_bytes = sorted(panels, key=lambda panel: (moved[panel], panel))
        least = next((moved[panel] for panel in by_bytes if fits(panel)), None)
        if least is None:
            return None

        def expected(panel: tuple[int, ...]) -> float:
            number = math.prod(-(-n // p) for n, p in zip(counts, panel))
            rounds = -(-number // _WORKERS) + 1 / 4  # now and then a worker is killed, and its task is run again
            return (moved[panel] + number * _TASK_BYTES) / number * rounds

        near = sorted((p for p in by_bytes if moved[p] <= _NEAR * least), key=expected)
        panel = next(p for p in near if fits(p))
        order, slots = self._order(panel)
        slots = self._more([panel], slots, room, threads)
        return RechunkPlan(
            source=self.source,
            target=self.target,
            itemsize=self.itemsize,
            way="tasks",
            order=order,
            boxes=(panel,),
            slots=slots,
            threads=threads,
            read_bytes=self._read(panel),
            written_bytes=self.written,
            spilled_bytes=0,
            floor_bytes=self.floor(max_mem),
            memory_bytes=max_mem - room + slots * self.target_chunk + math.prod(panel) * _CHUNK_BYTES,
            least_bytes=0,
        )

    def least_of_windows(self, processes: int, writers: int) -> int:
        """The ceiling at which a window of one chunk can be moved."""
        return self.fixed(1) + self._of_window((1,) * len(self.target.shape), processes, writers)

    def _of_window(self, panel: Sequence[int], processes: int, writers: int) -> int:
        """What a process holds of a window: its pieces of the source and of the target, and what carries them."""
        extents = [min(p * t, n) for p, t, n in zip(panel, self.target.chunks, self.target.shape)]
        pieces = []
        for grid, among in ((self.source, processes), (self.target, writers)):
            counts = _counts_over(grid, extents)
            own = list(extents)
            d = dealt_dimension(grid, extents)
            own[d] = min(own[d], -(-counts[d] // among) * grid.chunks[d])
            pieces.append(math.prod(own) * self.itemsize)
        return sum(pieces) + min(sum(pieces), _EXCHANGE_BYTES)

    def _more(self, boxes: Sequence[tuple[int, ...]], slots: int, room: int, threads: int) -> int:
        """Buffers of which some are filled while others are encoded, where there is room for more than must be."""
        box, buffers = math.prod(boxes[-1]), 0
        if len(boxes) > 1:
            buffers = math.prod(-(-whole // part) for whole, part in zip(boxes[-2], boxes[-1])) * self.piece_bytes
        most = (room - box * _CHUNK_BYTES - buffers) // self.target_chunk
        return max(slots, min(box, slots + 2 * threads, most))

    def floor(self, max_mem: int) -> int:
        """What is stored has to be read and written once. Where no target chunk is complete before everything has been
        read, in whatever order, all but what memory holds has to be moved once more (Aggarwal & Vitter, CACM 31(9),
        1988)."""
        all_at_once = self._slots(self.target.counts) >= math.prod(self.target.counts)
        again = max(0, self.bytes - max_mem) if all_at_once else 0
        return self.read_once + self.written + again

    def _fits(self, box: Sequence[int], slots: int, room: int) -> bool:
        return slots * self.target_chunk + math.prod(box) * _CHUNK_BYTES <= room

    def _panels(self) -> Iterator[tuple[int, ...]]:
        """Boxes to be looked at, in target chunks, the whole first: along each dimension halves, quarters and so on,
        whose seams are those of source chunks where there are any such."""
        steps = []
        for d, count in enumerate(self.target.counts):
            s, t = self.source.chunks[d], self.target.chunks[d]
            aligned = math.lcm(s, t) // t
            found = [max(1, count)]
            while found[-1] > 1 and len(found) < 8:
                half = -(-found[-1] // 2)
                found.append(half // aligned * aligned if half >= aligned else half)
            if found[-1] > 1:
                found.append(1)
            steps.append(found)
        yield from itertools.islice(itertools.product(*steps), 4096)

    def _read(self, panel: Sequence[int]) -> int:
        """Bytes read where each panel reads all source chunks that it has something of."""
        factor, run = 1.0, self.itemsize
        whole = True
        for d in reversed(range(len(panel))):
            n, s, t = self.source.shape[d], self.source.chunks[d], self.target.chunks[d]
            width = panel[d] * t
            if self.addressable:
                run *= min(n, width) if whole else 1
                whole = whole and width >= n
            elif width < n:
                factor *= _read_again(n, s, width)
        if self.addressable and not whole:
            factor *= 1 + PAGE_BYTES / max(run, 1)  # a page is read where two bytes of it are wanted
        return int(self.read_once * factor)

    def _order(self, box: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """The order of visiting that holds the fewest target chunks of a box of so many, the first of those that do,
        and how many that is."""
        rest = [d for d in range(len(box)) if d not in self.axes]
        least = self._least(box)
        most = held = least(self.axes)
        order: list[int] = []
        above: list[Callable[[int], int]] = []  # what is held by the dimensions chosen so far, the fastest first
        left = list(self.axes)
        while left:
            for d in left if len(self.axes) <= _TRIED_AXES else left[:1]:
                faster = [e for e in left if e != d]
                held = functools.reduce(lambda below, of: of(below), above, self._held(d, faster, box, least(faster)))
                if held <= most:
                    break
            order.append(d)
            above.insert(0, functools.partial(self._held, d, faster, box))
            left = faster
        return (*rest, *order), max(1, held)

    def _least(self, box: Sequence[int]) -> Callable[[Sequence[int]], int]:
        """For any of the dimensions, in ascending order, what visiting them in the best order holds of a box. More that
        is held of the faster ones never makes less in all, so the best order of some has the best of all but one."""

        @functools.cache
        def least(axes: tuple[int, ...]) -> int:
            if not axes:
                return 1
            slowest = axes if len(self.axes) <= _TRIED_AXES else axes[:1]
            return min(
                self._held(d, faster, box, least(faster))
                for d in slowest
                for faster in [tuple(e for e in axes if e != d)]
            )

        return lambda axes: least(tuple(axes))

    def _held(self, d: int, faster: Sequence[int], box: Sequence[int], below: int) -> int:
        """Target chunks of a box that have begun and are not complete, at most, where the slowest dimension is `d` and
        the faster ones hold `below`.

        A source chunk is a slab along the slowest dimension. Of the rows of target chunks that it touches, some were
        begun before and are completed in it, some are begun and not completed: while it is visited, the ones go as the
        others come. Rows that begin and end within it are held only as far as the faster dimensions need it."""
        across = math.prod(box[e] for e in faster)
        most = 0
        for whole, part, rows in self._patterns[d]:
            most = max(most, min(whole * across + part * below, min(box[d], rows) * across))
        return most

    def _slots(self, box: Sequence[int]) -> int:
        """Target chunks of a box that are held at once in the best order."""
        return max(1, self._least(box)(self.axes))

    def _cut(self, panel: tuple[int, ...], room: int) -> tuple[list[tuple[int, ...]], int] | None:
        """A panel cut into boxes, the first of which is held while what the others need goes to scratch files; and what
        these take, written and read. In several steps where there would be too many files."""
        found: tuple[list[tuple[int, ...]], int] | None = None
        for cut_first in itertools.permutations(self.axes, min(2, len(self.axes))):
            for files in (_MOST_SCRATCH, 16):
                boxes = self._boxes(panel, cut_first, room, files)
                if boxes is not None:
                    spilled = self._spilled(boxes)
                    if found is None or spilled < found[1]:
                        found = boxes, spilled
                    break
        return found

    def _boxes(
        self, panel: tuple[int, ...], cut_first: tuple[int, ...], room: int, files: int
    ) -> list[tuple[int, ...]] | None:
        """The largest box that fits beside the buffers of the others' files, cut along one dimension, then another."""
        for many in (1, 4, 16, 64, 256):
            if many > files:
                break
            left = room - many * self.piece_bytes
            box = list(panel)
            for d in cut_first:
                low, high = 1, box[d]
                while low < high:  # the longest that fits
                    middle = -(-(low + high) // 2)
                    box[d] = middle
                    if self._fits(box, self._slots(box), left):
                        low = middle
                    else:
                        high = middle - 1
                box[d] = low
                if self._fits(box, self._slots(box), left):
                    break
            else:
                continue
            needed = math.prod(-(-p // b) for p, b in zip(panel, box)) - 1
            if needed <= many:
                return [panel, tuple(box)]
            if many == files:
                return self._steps(panel, tuple(box), files)
        return None

    def _steps(self, panel: tuple[int, ...], box: tuple[int, ...], files: int) -> list[tuple[int, ...]] | None:
        """Boxes within boxes, no more than `files` of each in the next."""
        steps = [box]
        while True:
            larger = list(steps[0])
            room = files
            for d in reversed(range(len(panel))):
                times = min(room, -(-panel[d] // larger[d]))
                larger[d] = min(panel[d], larger[d] * times)
                room //= max(1, times)
            if tuple(larger) == panel:
                return [panel, *steps]
            if tuple(larger) == steps[0]:
                return None
            steps.insert(0, tuple(larger))

    def _spilled(self, boxes: Sequence[tuple[int, ...]]) -> int:
        """At every step but the last all goes to scratch files; at the last, all but the first box of each."""
        total = 2 * self.bytes * (len(boxes) - 2)
        for low, high in _cover(self.target, boxes[-2]):
            first = tuple(min(a + b, c) for a, b, c in zip(low, boxes[-1], high))
            whole, held = self._size(low, high), self._size(low, first)
            total += 2 * (whole - held)
        return total

    def _size(self, low: Sequence[int], high: Sequence[int]) -> int:
        bounds = zip(low, high, self.target.chunks, self.target.shape)
        return math.prod(min(b * t, n) - a * t for a, b, t, n in bounds) * self.itemsize


def dealt_dimension(grid: Grid, extents: Sequence[int]) -> int:
    """The dimension along which the chunks of a box of so many indices are dealt to processes: that with the most."""
    counts = _counts_over(grid, extents)
    return max(range(len(counts)), key=counts.__getitem__)


def _counts_over(grid: Grid, extents: Sequence[int]) -> list[int]:
    """How many chunks a box of so many indices has something of in each dimension, at most."""
    return [min(count, (e - 1) // c + 2) for count, e, c in zip(grid.counts, extents, grid.chunks)]


def _cover(target: Grid, box: tuple[int, ...]) -> Iterator[Box]:
    zero = (0,) * len(box)
    return split((zero, target.counts), box, range(len(box)))


@functools.lru_cache(maxsize=256)
def _patterns(n: int, s: int, t: int) -> tuple[tuple[int, int, int], ...]:
    """The ways in which a slab of `s` indices of `n` meets rows of `t`: how many rows are held whole meanwhile, how
    many are held as far as faster dimensions need it, and how many there are. Rows that it goes through were begun
    before it and are not complete after it; others end in it, start in it, or lie within it. What is less than another
    in all three is left out."""
    if n == 0:
        return ((0, 0, 0),)
    slabs = -(-n // s)
    period = math.lcm(s, t) // s
    looked = np.array(sorted({*range(min(slabs, period, _LOOKED_AT)), *range(max(0, slabs - 2), slabs)}), np.int64)
    low = looked * s
    high = np.minimum(low + s, n)
    first, last = low // t, (high - 1) // t
    rows = last - first + 1
    before = first * t < low
    after = np.minimum((last + 1) * t, n) > high
    one = rows == 1
    through = (one & before & after).astype(np.int64)
    ending = (before & ~(one & after)).astype(np.int64)
    starting = (after & ~(one & before)).astype(np.int64)
    inside = rows - through - ending - starting
    held = np.stack([through + np.maximum(ending, starting), ending + starting + inside, rows], 1)
    found = sorted(set(map(tuple, held.tolist())), reverse=True)  # what may be less than another comes after it
    kept: list[tuple[int, int, int]] = []
    for whole, part, all_ in found:
        if not any(whole <= a and part <= b and all_ <= c for a, b, c in kept):
            kept.append((whole, part, all_))
    return tuple(kept)


@functools.lru_cache(maxsize=1024)
def _read_again(n: int, s: int, width: int) -> float:
    """How often the indices of a dimension are read where panels of `width` indices read slabs of `s`, on average."""
    panels = -(-n // width)
    at = np.arange(min(panels, _LOOKED_AT), dtype=np.int64)
    low = at * width
    high = np.minimum(low + width, n)
    read = np.minimum(-(-high // s) * s, n) - low // s * s
    covered = high[-1]
    return float(read.sum()) / float(covered)
