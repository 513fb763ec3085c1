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
from .chunk_words import Chunks, extents_of
from .rechunk_plan import RechunkPlan, plan_rechunk


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

    `chunks` and `to_chunks` are (8760, 8, 8) or "8760x8x8". `stored_bytes` and `to_stored_bytes`: what all chunks take
    as they are stored, where they are compressed (None: as many as the elements do). `threads` and `max_mem` are as
    `move` has them. Raises ArgumentError, and MemoryLimitError with the least that would do.

    >>> told = plan_move((8760, 721, 1440), "f4", (1, 721, 1440), (8760, 8, 8), max_mem="1GiB", threads=2)
    >>> told.way, round(told.total_bytes / told.floor_bytes, 2)
    ('spill', 1.33)
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

    return plan_rechunk(
        grid(chunks),
        grid(to_chunks),
        element.itemsize,
        memory.default_ceiling() if max_mem is None else size_in_bytes(max_mem),
        threads=threads or min(16, memory.usable_processors()),
        stored_bytes=stored_bytes,
        target_bytes=to_stored_bytes,
    )
