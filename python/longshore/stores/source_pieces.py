"""What a source has for a box of an array, piece by piece, in the order of a plan and turned as the target is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import StoreError
from .array import ArrayFacts, ArrayReader, ArrayWriter, Index, together, without_holes
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
    source: SourcePieces | None = None
    """Of a chunk that several are read with at once, whose it is."""
    index: Index = ()
    """Which chunk of the source that is."""


def loaded(pieces: Sequence[Piece]) -> Iterator[np.ndarray | None]:
    """What pieces hold, one after the other. Chunks of a reader that `joins` are read together."""
    source = pieces[0].source if pieces else None
    return (piece.load() for piece in pieces) if source is None else source.load_each(pieces)


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
        self.fill = fill_of(reader.facts)
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
            own, load = self._own(index), self._loader(tuple(index), start, extents)
            yield Piece(number, start, extents, load, self if self._reader.joins else None, own)

    def together(self, low: Sequence[int], high: Sequence[int]) -> Iterator[list[Piece]]:
        """The same, in lists of as many as a thread is to load at once."""
        return together(self._reader, self.over(low, high))

    def load_each(self, pieces: Sequence[Piece]) -> Iterator[np.ndarray | None]:
        """The elements of chunks that are read together."""
        read = self._reader.read_each([piece.index for piece in pieces])
        for piece in pieces:
            with self._phase("reading"):
                stored = next(read)
            yield self._decoded(piece.index, stored, self._own(piece.extents))

    def _loader(
        self, index: Index, start: tuple[int, ...], extents: tuple[int, ...]
    ) -> Callable[[], np.ndarray | None]:
        own_index, own_start, own_extents = self._own(index), self._own(start), self._own(extents)
        reader = self._reader

        def load() -> np.ndarray | None:
            if not reader.addressable:
                with self._phase("reading"):
                    stored = reader.read(own_index)
                return self._decoded(own_index, stored, own_extents)
            with self._phase("reading"):
                elements = reader.read_box(own_start, own_extents)
            self._count(elements.nbytes)
            return self._turned(own_index, elements, own_extents)

        return load

    def _decoded(self, index: Index, stored: Any, extents: tuple[int, ...]) -> np.ndarray | None:
        """A chunk that was read. Index and extents are the source's."""
        if stored is None:
            return None
        self._count(stored_size(stored))
        with self._phase("decoding"):
            elements = self._reader.decode(index, stored)
        return self._turned(index, elements, extents)

    def _turned(self, index: Index, elements: np.ndarray, extents: tuple[int, ...]) -> np.ndarray:
        if elements.shape != extents:
            raise StoreError(f"{self._reader.where}: chunk {index} has shape {elements.shape}, not {extents}")
        if elements.dtype != self._dtype:
            elements = elements.astype(self._dtype)  # the other byte order
        return without_holes(elements).transpose(self._axes)

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
    return fill_of(reader.facts) if reader.sparse else None


def leaves_out(reader: ArrayReader, writer: ArrayWriter) -> bool:
    """Whether what is missing in the source can stay missing."""
    fill = writer.facts.fill
    return reader.sparse and writer.sparse and fill is not None and fill_of(writer.facts) == fill_of(reader.facts)


def fill_of(facts: ArrayFacts) -> bytes:
    """The element of chunks that are not there."""
    assert facts.dtype is not None
    if facts.fill is None:
        return bytes(facts.dtype.itemsize)
    return without_holes(np.frombuffer(facts.fill, facts.dtype)).tobytes()
