"""Compares chunks that were written, read from the store again, with the digests of what they were made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from ..errors import StoreError, VerificationError
from .array import ArrayReader, ArrayWriter, Grid, Index
from .do_all import do_all
from .journal import Finished
from .rechunk import box_digest
from .source_pieces import skipped_by
from .worker_threads import WorkerThreads


class ReadBack:
    """One array's chunks. May be called from several threads at once."""

    def __init__(
        self, target: ArrayWriter, skipped: bytes | None, digests: np.ndarray, advance: Callable[[int], None]
    ) -> None:
        """`skipped`: the element that adds nothing to digests; `digests`: of all chunks, in C order. `advance` is told
        the bytes of each chunk that has been compared."""
        self._target, self._digests, self._advance, self._skipped = target, digests, advance, skipped

    def __call__(self, index: Index) -> None:
        target, grid = self._target, self._target.grid
        if not self.agrees(index):
            raise VerificationError(
                f"verification failed: chunk {index} of {target.where} does not hold what the source has; nothing was "
                "published"
            )
        assert target.facts.dtype is not None
        self._advance(math.prod(grid.extents(index)) * target.facts.dtype.itemsize)

    def all(self, indices: Iterable[Index], threads: int) -> None:
        """These chunks, by so many threads."""
        with WorkerThreads(threads, "longshore-verify") as pool:
            do_all(pool, self, indices, 2 * threads)

    def agrees(self, index: Index) -> bool:
        """Whether a chunk has its digest, which is 0 for one that is missing."""
        grid, digest = self._target.grid, 0
        found = self._target.read(index)
        if found is not None:
            digest = box_digest(found, grid.start(index), grid.shape, self._skipped)
        return digest == int(self._digests[_number(index, grid)])


def drop_lost(finished: Finished, target: ArrayWriter, source: ArrayReader, threads: int) -> None:
    """Has those chunks count as not finished that the store does not hold as they were written. A library that keeps an
    index of chunks in memory may be killed while it writes that to the file, where some are then not found."""
    grid, compared = target.grid, ReadBack(target, skipped_by(source), finished.digests, lambda done: None)

    def look(index: Index) -> None:
        try:
            agrees = compared.agrees(index)
        except StoreError:
            agrees = False
        if not agrees:
            finished.done[_number(index, grid)] = False

    with WorkerThreads(threads, "longshore-resume") as pool:
        do_all(pool, look, (index for index in grid.indices() if finished.done[_number(index, grid)]), 2 * threads)


def _number(index: Index, grid: Grid) -> int:
    """Of a chunk, in C order."""
    return int(np.ravel_multi_index(index, grid.counts)) if grid.counts else 0
