"""In which boxes an array is written whose elements lie in files as they are.

Any boxes will do there, so they can be those that the source comes in: each source chunk, or a few that lie side by
side, is then written where it belongs, and nothing has to be held or spilled until whole rows of the file are there.
What that costs are pages of the file that are written in several turns, where runs are short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from ..errors import MemoryLimitError
from .array import Grid
from .dense import Pieces
from .rechunk_plan import PAGE_BYTES, OtherWay, RechunkPlan

_LONG_BYTES = 1 << 20  # of a run: longer ones gain nothing
Planned = tuple[RechunkPlan, tuple[RechunkPlan, ...]]
"""The plan of an array, and those of an executor's passes."""


def in_boxes_of_source(
    usual: Planned, pieces: Pieces, source: Grid, most_bytes: int, plan: Callable[[Grid], Planned]
) -> Planned:
    """The best of `usual`, the plan whose boxes suit the files, and of those with boxes of source chunks, which `plan`
    makes for a grid: one chunk, or several with no more than `most_bytes`. A page that a box has only a part of counts
    as moved once more."""
    if 0 in source.shape or (not usual[0].spilled_bytes and usual[0].boxes[0] == usual[0].target.counts):
        return usual  # all is read and written once
    best, cost, lost = usual, usual[0].total_bytes, None
    for grid, run_bytes in _boxes(pieces, source, usual[0].itemsize, most_bytes):
        try:
            found, passes = plan(grid)
        except MemoryLimitError:
            break  # and so it is with larger boxes
        moved = found.total_bytes + math.ceil(found.written_bytes * PAGE_BYTES / run_bytes)
        if moved < cost:
            way = "scatter" if found.way == "sweep" else found.way
            best, cost = (replace(found, way=way), passes), moved
        elif lost is None or moved < lost.total_bytes:
            lost = OtherWay("scatter", moved, found.memory_bytes, True)
    if best is not usual:
        lost = OtherWay(usual[0].way, usual[0].total_bytes, usual[0].memory_bytes, True)
    if lost is None:
        return best
    return replace(best[0], others=(lost, *usual[0].others)), best[1]


def _boxes(pieces: Pieces, source: Grid, itemsize: int, most_bytes: int) -> Iterator[tuple[Grid, int]]:
    """Boxes of source chunks, and how many bytes of each follow one another in a file: first of one chunk, then of more
    and more of them along the files' fastest dimensions."""
    shape, blocks = source.shape, pieces.blocks()
    axes = range(len(shape)) if pieces.order == "F" else range(len(shape) - 1, -1, -1)  # from the fastest
    chunk = [max(1, min(c, n)) for c, n in zip(source.chunks, shape)]
    box = list(chunk)
    for d in axes:
        while True:
            if math.prod(box) * itemsize > most_bytes and box != chunk:
                return
            run = itemsize
            for e in axes:
                run *= min(box[e], blocks[e])
                if box[e] < blocks[e]:
                    break
            yield Grid(shape, tuple(box)), run
            if run >= _LONG_BYTES:
                return
            if box[d] == shape[d]:
                break
            box[d] = min(shape[d], 2 * box[d])
