"""One array on its way from store to store."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .array import ArrayFacts, ArrayReader, Grid
from .rechunk import Counts
from .rechunk_plan import RechunkPlan


@dataclass
class MovedArray:
    """Where it comes from, what is to be made of it, and what has been."""

    path: str
    to_path: str
    facts: ArrayFacts
    """Of the target."""
    reader: ArrayReader
    grid: Grid
    """The target's chunks."""
    axes: tuple[int, ...]
    """The target's dimensions, as numbers of the source's."""
    stored_bytes: int | None
    """Of the source's chunks."""
    digests: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))
    """Of the target's chunks, in C order."""
    passes: tuple[RechunkPlan, ...] = ()
    """Of an executor's tasks, where these move it."""
    counts: Counts = field(default_factory=Counts)

    @property
    def source_grid(self) -> Grid:
        """In the target's order of dimensions."""
        own = self.reader.grid
        return Grid(tuple(own.shape[a] for a in self.axes), tuple(own.chunks[a] for a in self.axes))
