"""What a source has for a box of an array, piece by piece, in the order of a plan and turned as the target is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import StoreError
from .array import ArrayReader, Index
from .phases import Phase
from .rechunk_plan import RechunkPlan


@dataclass(frozen=True)
class Piece:
    """Some elements of the array: a source chunk, or what one has for a box."""

    number: int
    """In the order of visiting."""
    start: tuple[int, ...]
    extents: tuple[int, ...]
    load: Callable[[], np.ndarray | None]
    """None: all of it is the fill value."""


class SourcePieces:
    """A reader's chunks, as elements of the target."""

    def __init__(
        self,
        plan: RechunkPlan,
        reader: ArrayReader,
        axes: Sequence[int],
        dtype: np.dtype,
        count: Callable[[int], None],
        phase: Phase,
    ) -> None:
        """`axes`: dimension d of the target is dimension axes[d] of the source. `count` is told the bytes of each read,
        `phase` what goes on, by any thread."""
        self._plan, self._reader, self._axes, self._dtype = plan, reader, tuple(axes), dtype
        self._count, self._phase = count, phase
        self.fill = reader.facts.fill if reader.facts.fill is not None else bytes(plan.itemsize)
        """What a chunk that is not there holds."""
        self.skipped = skipped_by(reader)

    def over(self, low: Sequence[int], high: Sequence[int]) -> Iterator[Piece]:
        """The source chunks that have something of a box of elements, in the plan's order. Of a source that can be
        addressed, no more than that is read."""
        source, order = self._plan.source, self._plan.order
        ranges = source.over(low, high)
        for number, corner in enumerate(itertools.product(*[ranges[d] for d in order])):
            index = [0] * len(order)
            for d, at in zip(order, corner):
                index[d] = at
            start, extents = source.start(index), source.extents(index)
            if self._reader.addressable:
                end = tuple(min(s + e, b) for s, e, b in zip(start, extents, high))
                start = tuple(max(s, a) for s, a in zip(start, low))
                extents = tuple(b - a for a, b in zip(start, end))
            yield Piece(number, start, extents, self._loader(tuple(index), start, extents))

    def _loader(
        self, index: Index, start: tuple[int, ...], extents: tuple[int, ...]
    ) -> Callable[[], np.ndarray | None]:
        own_index, own_start, own_extents = self._own(index), self._own(start), self._own(extents)
        reader = self._reader

        def load() -> np.ndarray | None:
            if reader.addressable:
                with self._phase("reading"):
                    elements = reader.read_box(own_start, own_extents)
                self._count(elements.nbytes)
            else:
                with self._phase("reading"):
                    stored = reader.read(own_index)
                if stored is None:
                    return None
                self._count(stored_size(stored))
                with self._phase("decoding"):
                    elements = reader.decode(own_index, stored)
            if elements.shape != own_extents:
                raise StoreError(f"{reader.where}: chunk {own_index} has shape {elements.shape}, not {own_extents}")
            if elements.dtype != self._dtype:
                elements = elements.astype(self._dtype)  # the other byte order
            return elements.transpose(self._axes)

        return load

    def _own(self, of_target: Sequence[int]) -> tuple[int, ...]:
        """Numbers of the target's dimensions, for those of the source."""
        turned = [0] * len(self._axes)
        for d, axis in enumerate(self._axes):
            turned[axis] = of_target[d]
        return tuple(turned)


def stored_size(stored: Any) -> int:
    """Of what a reader's `read` gave: bytes, or bytes first and more beside them."""
    return memoryview(stored[0] if isinstance(stored, tuple) else stored).nbytes


def skipped_by(reader: ArrayReader) -> bytes | None:
    """The element that adds nothing to digests: that of chunks that are missing, where any may be."""
    if not reader.sparse:
        return None
    assert reader.facts.dtype is not None
    return reader.facts.fill if reader.facts.fill is not None else bytes(reader.facts.dtype.itemsize)
