"""What a move between two chunk grids would cost, from the grids alone: no store need be there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _arrays
from .._mistakes import check
from .._words import size_in_bytes
from ..errors import ArgumentError
from . import memory
from .array import Grid
from .boxes import FileArray
from .chunk_words import NO_CHUNKS, Chunks, extents_of
from .dense import OneFile, chunk_extents
from .rechunk_plan import RechunkPlan, plan_rechunk
from .scatter import Planned, in_boxes_of_source


def plan_move(
    shape: Sequence[int],
    dtype: Any,
    chunks: Chunks,
    to_chunks: Chunks,
    *,
    max_mem: int | str | None = None,
    threads: int | None = None,
    stored_bytes: int | None = None,
    to_stored_bytes: int | None = None,
) -> RechunkPlan:
    """The way in which `move` takes an array of this shape from chunks to other chunks within `max_mem` bytes (or
    "1GiB"), and what that reads, writes, spills and holds, in bytes. Nothing is read; what a store's own array would
    take tells `move(..., dry_run=True)`.

    `chunks` and `to_chunks` are (8760, 8, 8) or "8760x8x8"; `to_chunks="none"`: elements lie one after the other, in C
    order, as in a `.npy`. `stored_bytes` and `to_stored_bytes`: what all chunks take
    as they are stored, where they are compressed (None: as many as the elements do). `threads` and `max_mem` are as
    `move` has them. Raises ArgumentError, and MemoryLimitError with the least that would do.

    >>> told = plan_move((8760, 721, 1440), "f4", (1, 721, 1440), (8760, 8, 8), max_mem="1GiB", threads=2)
    >>> told.way, round(told.total_bytes / told.floor_bytes, 2)
    ('spill', 1.33)
    >>> plan_move((20000, 20000), "f8", (1000, 1000), "none", max_mem="64MiB", threads=2).way
    'scatter'
    """
    check("shape", shape, "Sequence[int]")
    check("threads", threads, "int | None")
    check("stored_bytes", stored_bytes, "int | None")
    check("to_stored_bytes", to_stored_bytes, "int | None")
    element = _arrays.fixed_dtype(dtype)
    extents = tuple(map(int, shape))
    if any(extent < 0 for extent in extents) or math.prod(extents) * element.itemsize >= 1 << 63:
        raise ArgumentError(f"the shape {extents} of {element} is none that an array can have")
    if threads is not None and threads < 1:
        raise ArgumentError(f"threads is {threads}; it must be at least 1")

    def grid(words: Chunks) -> Grid:
        found = extents_of(words, extents, None, "the array", None)
        if found is None:
            raise ArgumentError(f"chunks {words!r} name dimensions; of an array without names say extents, as in 64x64")
        return Grid(extents, tuple(max(1, min(chunk, extent)) for chunk, extent in zip(found, extents)))

    source, ceiling = grid(chunks), memory.default_ceiling() if max_mem is None else size_in_bytes(max_mem)

    def plan(target: Grid) -> Planned:
        how: dict[str, Any] = {"threads": threads or min(16, memory.usable_processors())}
        how |= {"stored_bytes": stored_bytes, "target_bytes": to_stored_bytes}
        return plan_rechunk(source, target, element.itemsize, ceiling, **how), ()

    if not isinstance(to_chunks, str) or to_chunks != NO_CHUNKS:
        return plan(grid(to_chunks))[0]
    file = OneFile(FileArray("", 0, extents, "C", element.itemsize))
    usual = plan(Grid(extents, chunk_extents(file, element.itemsize)))
    return in_boxes_of_source(usual, file, source, ceiling, plan)[0]
