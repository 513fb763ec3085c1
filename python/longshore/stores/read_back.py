"""Compares chunks that were written, read from the store again, with the digests of what they were made of."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..errors import VerificationError
from .array import ArrayReader, ArrayWriter, Index
from .do_all import do_all
from .rechunk import box_digest
from .source_pieces import skipped_by


class ReadBack:
    """One array's chunks. May be called from several threads at once."""

    def __init__(
        self, target: ArrayWriter, source: ArrayReader, digests: np.ndarray, advance: Callable[[int], None]
    ) -> None:
        """`digests`: of all chunks, in C order. `advance` is told the bytes of each chunk that has been compared."""
        self._target, self._digests, self._advance, self._skipped = target, digests, advance, skipped_by(source)

    def __call__(self, index: Index) -> None:
        target, grid = self._target, self._target.grid
        found = target.read(index)
        digest = 0
        if found is not None:
            digest = box_digest(found, grid.start(index), grid.shape, self._skipped)
        if digest != int(self._digests[np.ravel_multi_index(index, grid.counts) if grid.counts else 0]):
            raise VerificationError(
                f"verification failed: chunk {index} of {target.where} does not hold what the source has; nothing was "
                "published"
            )
        assert target.facts.dtype is not None
        self._advance(math.prod(grid.extents(index)) * target.facts.dtype.itemsize)

    def all(self, threads: int, rank: int, processes: int) -> None:
        """This process's share of the chunks, of so many processes, by so many threads."""
        mine = itertools.islice(self._target.grid.indices(), rank, None, processes)
        with ThreadPoolExecutor(threads, "longshore-verify") as pool:
            do_all(pool, self, mine, 2 * threads)
