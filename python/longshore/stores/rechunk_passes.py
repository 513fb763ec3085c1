"""How the tasks of an executor bring an array from one chunk grid to another: in one pass, or by way of a temporary
store whose chunks both the source and the target can be cut into, where reading the source again and again takes more
bytes than that."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from .array import Grid
from .rechunk_plan import RechunkPlan, Ways, too_little

_SHARES = (2, 3, 4, 8)  # of the memory, what a box may take that chunks of the temporary store are made of
_LEAST_BOXES = 8  # so that there are several tasks, however much memory there is
SHARES = 2  # of the memory, where chunks are handed back: one is the tasks', one has what was handed back
_RESULTS = 8  # how many such results the other share is to have room for
_FILE_BYTES = 128 << 10  # moved in the time in which a chunk of the temporary store is made, opened again and removed


def plan_passes(
    source: Grid,
    target: Grid,
    whole: Grid,
    itemsize: int,
    max_mem: int,
    *,
    threads: int,
    stored_bytes: int | None,
    target_bytes: int | None,
    addressable: bool,
    raw: bool,
    beside: int,
    thread_bytes: int = 0,
    encode_bytes: int | None = None,
    handed_back: bool = False,
) -> tuple[RechunkPlan, tuple[RechunkPlan, ...]]:
    """The plan of each pass, of which there are one or two, and before them what both do together. A task writes whole
    chunks of `whole`: the target's, or boxes of them that lie in one file. The other arguments and the errors are those
    of `plan_rechunk`; `max_mem` is each task's, and `handed_back` says that it returns the chunks that it has
    encoded."""
    of_source = addressable, raw, thread_bytes
    ways = Ways(source, target, itemsize, stored_bytes, target_bytes, *of_source, encode_bytes)
    share, most, one = max_mem, None, 0
    if handed_back:
        share, one = max_mem // SHARES, result_bytes(target, itemsize)
        most = max(1, share // _RESULTS // one)
    least = (SHARES if handed_back else 1) * (beside + one + ways.least())
    beside += one * (most or 0)
    room = share - beside
    while (direct := ways.tasks(room, threads, whole, most)) is None:
        if threads == 1:
            raise too_little(source, target, max_mem, least)
        threads = max(1, threads // 2)
    direct = replace(direct, memory_bytes=direct.memory_bytes + beside, least_bytes=least)
    best, least_cost = direct, direct.total_bytes
    passes: tuple[RechunkPlan, ...] = (direct,)
    if direct.total_bytes <= ways.read_once + ways.written + 2 * ways.bytes:
        return best, passes
    for between in _between(source, whole, itemsize, room):
        stored = math.prod(n * c for n, c in zip(between.counts, between.chunks)) * itemsize
        first = Ways(source, between, itemsize, stored_bytes, stored, *of_source).tasks(room, threads, between)
        then_ways = Ways(between, target, itemsize, stored, target_bytes, False, True, 0, encode_bytes)
        then = then_ways.tasks(room, threads, whole, most)
        if first is None or then is None:
            continue
        then = replace(then, memory_bytes=then.memory_bytes + one * (most or 0))
        cost = first.total_bytes + then.total_bytes + math.prod(between.counts) * _FILE_BYTES
        if cost >= least_cost:
            continue
        passes, least_cost = (first, then), cost
        best = replace(
            direct,
            way="two passes",
            boxes=(first.boxes[0], then.boxes[0]),
            slots=max(first.slots, then.slots),
            read_bytes=first.read_bytes,
            spilled_bytes=first.written_bytes + then.read_bytes,
            memory_bytes=max(beside + first.memory_bytes, beside - one * (most or 0) + then.memory_bytes),
        )
    return best, passes


def result_bytes(target: Grid, itemsize: int) -> int:
    """What a chunk that a task hands back takes, encoded, where codecs gain nothing: the chunk, and its pickle."""
    size = math.prod(target.chunks) * itemsize
    return 2 * (size + size // 8)


def results_at_once(plan: RechunkPlan, max_mem: int) -> int:
    """How many tasks that hand chunks back may be under way."""
    return max(1, max_mem // SHARES // (math.prod(plan.boxes[-1]) * result_bytes(plan.target, plan.itemsize)))


def _between(source: Grid, whole: Grid, itemsize: int, room: int) -> Iterator[Grid]:
    """Grids of a temporary store: what a box of source chunks and one of target chunks have in common, where both are
    as large as memory allows (Rechunker's way: Abernathey and others, 2020)."""
    rank = range(len(source.shape))
    found = set()
    boxes = -(-math.prod(source.shape) // _LEAST_BOXES)
    for share in _SHARES:
        elements = min(boxes, room // share // itemsize)
        for one in (rank, reversed(rank)):
            read = _grown(source, elements, tuple(one))
            for other in (rank, reversed(rank)):
                written = _grown(whole, elements, tuple(other))
                chunks = tuple(map(min, read, written))
                if chunks not in found:
                    found.add(chunks)
                    yield Grid(source.shape, chunks)


def _grown(grid: Grid, elements: int, dimensions: Sequence[int]) -> list[int]:
    """Extents of a box of whole chunks with no more than so many elements, if one chunk has no more: long in the first
    of these dimensions, then in the next."""
    box = [min(chunk, extent) for chunk, extent in zip(grid.chunks, grid.shape)]
    for d in dimensions:
        box[d] = min(grid.shape[d], box[d] * max(1, elements // math.prod(box)))
    return box
