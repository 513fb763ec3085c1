"""What a move between chunk grids is expected to take: a few boxes of each array are read, copied, encoded and written
to a temporary folder, and what that took is taken for as much of the rest. Of what reading, decoding and encoding took
it is the median: the first chunks are slow, with folders that are read and libraries that are loaded.

Nothing appears at the destination. How fast its disk is tells a file without a name that is written there.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .array import ArrayFacts, Grid, Index
from .makers import Maker, temporary_array
from .moved_array import MovedArray
from .phases import PhaseClock, add_seconds
from .rechunk import box_digest
from .rechunk_plan import RechunkPlan
from .source_pieces import Piece, SourcePieces, stored_size

_BOXES = 5  # of an array
_BOX_BYTES = 8 << 20  # of one box, and
_SHARE = 1 / 4  # of the memory that all may take together
_PIECES = 64  # source chunks of a box, and
_PIECES_BYTES = 32 << 20  # what they have together; but one, whatever it has
_SECONDS = 1.0  # after which no further box is begun
_DISK_BYTES = 32 << 20
_DISK_PIECE = 1 << 20


@dataclass
class Sample:
    """What boxes of one array, or of several, took, and how much that was."""

    seconds: dict[str, float] = field(default_factory=dict)
    """By phase, of one thread."""
    boxes: int = 0
    read: int = 0
    """Bytes of the source, as they are stored."""
    decoded: int = 0
    """Bytes of the elements that these are."""
    copied: int = 0
    """Bytes of elements."""
    encoded: int = 0
    """Bytes of elements; of chunks that are missing too."""
    stored: int = 0
    """Bytes of what was written for those."""
    written: int = 0
    """Chunks."""

    def add(self, other: Sample) -> None:
        """Boxes of another array."""
        add_seconds(self.seconds, other.seconds)
        for name in ("boxes", "read", "decoded", "copied", "encoded", "stored", "written"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def ratio(self) -> float | None:
        """Bytes that are stored for a byte of elements; None: unknown."""
        return self.stored / self.encoded if self.encoded else None

    def seconds_of(self, plan: RechunkPlan) -> dict[str, float]:
        """What a whole array is expected to take by phase, of one thread. A phase of which nothing was seen is left
        out."""
        elements = math.prod(plan.source.shape) * plan.itemsize
        again = plan.read_bytes / self.read * self.decoded if self.read else elements
        amounts = {
            "reading": (plan.read_bytes, self.read),
            "decoding": (again, self.decoded),
            "copying": (elements, self.copied),
            "encoding": (elements, self.encoded),
            "writing": (math.prod(plan.target.counts), self.written),
        }
        return {
            phase: self.seconds[phase] * whole / seen
            for phase, (whole, seen) in amounts.items()
            if seen and phase in self.seconds
        }


@dataclass(frozen=True)
class Disk:
    """Seconds a byte takes."""

    kept: float
    """Until the disk has it."""
    passed_on: float
    """Written to a file and read from it, of which the disk need not have anything in between."""

    @staticmethod
    def of(folder: str) -> Disk | None:
        """As a file without a name in that folder tells; None where there can be none."""
        data = memoryview(np.random.default_rng(0).bytes(_DISK_PIECE))
        try:
            fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            began = time.perf_counter()
            for at in range(0, _DISK_BYTES, _DISK_PIECE):
                os.pwrite(fd, data, at)
            back = bytearray(_DISK_PIECE)
            for at in range(0, _DISK_BYTES, _DISK_PIECE):
                os.preadv(fd, (back,), at)
            passed_on = time.perf_counter() - began
            os.fdatasync(fd)
            return Disk((time.perf_counter() - began) / _DISK_BYTES, passed_on / (2 * _DISK_BYTES))
        except OSError:
            return None
        finally:
            os.close(fd)


class _Sampler:
    """Takes samples of arrays, one array after the other, for a second or so."""

    def __init__(self, maker: Maker, max_mem: int) -> None:
        """`maker`: of the destination's format."""
        self._maker, self._box_bytes = maker, min(_BOX_BYTES, int(max_mem * _SHARE) // _BOXES)
        self._until = time.monotonic() + _SECONDS
        self.total = Sample()
        """Of all arrays so far."""

    def take(self, array: MovedArray, plan: RechunkPlan) -> Sample:
        """A sample of an array; of no box where the time is over."""
        reader, facts, grid = array.reader, array.facts, array.grid
        clock = PhaseClock()
        sample = Sample(clock.seconds)
        assert facts.dtype is not None
        boxes: list[np.ndarray] = []
        pieces: list[tuple[float, float, int, int]] = []

        def count(size: int) -> None:
            sample.read += size

        source = SourcePieces(plan, reader, array.axes, facts.dtype, count, clock)
        for number, index in enumerate(_spread(grid)):
            if time.monotonic() >= self._until:
                break
            low, high = _within(grid, index, plan.source, plan.itemsize, self._box_bytes, number / (_BOXES - 1))
            box = self._box(source, low, high, facts, sample, clock, pieces)
            sample.boxes += 1
            if box is None and reader.sparse:  # it stays missing
                sample.encoded += math.prod(b - a for a, b in zip(low, high)) * plan.itemsize
            elif box is not None and facts.chunks is not None:
                boxes.append(box)
        for phase, seconds, size, total in (("reading", 0, 2, sample.read), ("decoding", 1, 3, sample.decoded)):
            rates = [piece[seconds] / piece[size] for piece in pieces if piece[size]]
            if rates and phase in clock.seconds:
                clock.seconds[phase] = statistics.median(rates) * total
        if boxes:
            self._write(boxes, facts, sample, clock)
        self.total.add(sample)
        return sample

    def _box(
        self,
        source: SourcePieces,
        low: Index,
        high: Index,
        facts: ArrayFacts,
        sample: Sample,
        clock: PhaseClock,
        pieces: list[tuple[float, float, int, int]],
    ) -> np.ndarray | None:
        """The elements of a box; None where all of them are missing. `pieces` gets for each source chunk the seconds of
        reading and of decoding, and the bytes of both."""
        assert facts.dtype is not None
        box, came = np.empty([b - a for a, b in zip(low, high)], facts.dtype), False
        for piece in source.over(low, high):
            before = _state(clock, sample)
            elements = piece.load()
            start = [max(a, s) for a, s in zip(low, piece.start)]
            end = [min(b, s + e) for b, s, e in zip(high, piece.start, piece.extents)]
            to = tuple(slice(s - a, e - a) for s, e, a in zip(start, end, low))
            box[to] = _part(piece, elements, start, end, source.fill, facts.dtype)
            if elements is not None:
                came = True
                with clock("copying"):  # to their chunks, and the digests of what came and of what goes
                    copy = np.array(elements, order="C")
                    for _ in range(2):
                        box_digest(copy, piece.start, facts.shape, source.skipped)
                sample.copied += elements.nbytes
                sample.decoded += elements.nbytes
            pieces.append(tuple(b - a for a, b in zip(before, _state(clock, sample))))  # type: ignore[arg-type]
        return box if came else None

    def _write(self, boxes: Sequence[np.ndarray], facts: ArrayFacts, sample: Sample, clock: PhaseClock) -> None:
        """Encodes boxes and writes them to a temporary folder, as chunks of an array: those with the most elements, if
        not all have as many."""
        extents = max((box.shape for box in boxes), key=math.prod)
        boxes = [box for box in boxes if box.shape == extents]
        chunks = replace(facts, shape=(*extents[:-1], extents[-1] * len(boxes)), chunks=extents, shards=None)
        encoding, writing = [], []
        with temporary_array(self._maker, chunks) as array:
            for number, box in enumerate(boxes):
                index = (*(0,) * (box.ndim - 1), number)
                began = time.perf_counter()
                encoded = array.encode(index, box)
                encoding.append(time.perf_counter() - began)
                sample.stored += stored_size(encoded)
                sample.encoded += box.nbytes
                began = time.perf_counter()
                array.write(index, encoded)
                writing.append(time.perf_counter() - began)
                sample.written += 1
        clock.seconds["encoding"] = statistics.median(encoding) * len(boxes)
        clock.seconds["writing"] = min(writing) * len(boxes)  # the first has made folders


def _state(clock: PhaseClock, sample: Sample) -> tuple[float, float, int, int]:
    return clock.seconds.get("reading", 0.0), clock.seconds.get("decoding", 0.0), sample.read, sample.decoded


def _spread(grid: Grid) -> list[Index]:
    """Some chunks, far from each other in every dimension."""
    found: list[Index] = []
    for k in range(_BOXES):
        # Multiples of the square roots of primes, less what is whole, are spread evenly, and in two dimensions are not
        # multiples of one another.
        parts = [((k + 0.5) * math.sqrt(prime)) % 1.0 for prime in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)]
        index = tuple(int(parts[d % len(parts)] * count) for d, count in enumerate(grid.counts))
        if index not in found:
            found.append(index)
    return found


def _within(grid: Grid, index: Index, source: Grid, itemsize: int, most: int, shift: float) -> tuple[Index, Index]:
    """A box in a chunk of the target that takes no more than so many bytes, of few source chunks. `shift`: from 0, at
    the chunk's beginning, to 1, at its end."""
    first, extents = grid.start(index), grid.extents(index)
    box = list(extents)
    piece_bytes = math.prod(map(min, source.chunks, source.shape)) * itemsize
    while True:
        low = tuple(a + int((e - b) * shift) for a, e, b in zip(first, extents, box))
        high = tuple(a + b for a, b in zip(low, box))
        pieces = [len(r) for r in source.over(low, high)]
        number = math.prod(pieces)
        few = number == 1 or (number <= _PIECES and number * piece_bytes <= _PIECES_BYTES)
        if (few and math.prod(box) * itemsize <= most) or math.prod(box) == 1:
            return low, high
        d = max(range(len(box)), key=lambda d: (0 if few else pieces[d], box[d]))
        box[d] = -(-box[d] // 2) if box[d] > 1 else 1


def _part(
    piece: Piece, elements: np.ndarray | None, start: Sequence[int], end: Sequence[int], fill: bytes, dtype: np.dtype
) -> np.ndarray:
    """What a piece has of a box of elements."""
    if elements is None:
        return np.frombuffer(fill, dtype)[0]
    return elements[tuple(slice(s - a, e - a) for s, e, a in zip(start, end, piece.start))]


@dataclass(frozen=True)
class Samples:
    """What samples of several arrays tell of all of each."""

    of_arrays: Sequence[Sample]
    total: Sample
    """Of all arrays, for those of which there is no sample."""
    disk: Disk | None

    @property
    def ratios(self) -> list[float | None]:
        """For each array the bytes that are stored for a byte of its elements, where that is known."""
        return [one.ratio if one.boxes else self.total.ratio for one in self.of_arrays]

    def expected(self, plans: Sequence[RechunkPlan], threads: int) -> tuple[dict[str, float], float | None]:
        """What the arrays are expected to take by phase, of one thread, and how long that is with so many threads that
        run at once; None where the disk could not be tried."""
        by_phase: dict[str, float] = {}
        for plan, sample in zip(plans, self.of_arrays):
            told = (sample if sample.boxes else self.total).seconds_of(plan)
            if self.disk is not None:
                told["spilling"] = plan.spilled_bytes * self.disk.passed_on
                of_chunks = math.prod(plan.target.counts) * sample.stored / max(1, sample.written)
                rest = max(0.0, plan.written_bytes - of_chunks)  # boxes may be parts of chunks
                told["writing"] = told.get("writing", 0.0) + rest * self.disk.passed_on
            add_seconds(by_phase, told)
        if self.disk is None:
            return by_phase, None
        on_disk = sum(plan.written_bytes for plan in plans) * self.disk.kept
        return by_phase, max(sum(by_phase.values()) / threads, on_disk)


def take_samples(
    maker: Maker, max_mem: int, arrays: Sequence[MovedArray], plans: Sequence[RechunkPlan], folder: str
) -> Samples:
    """Takes samples of arrays, the largest first, as long as there is time. `folder`: where the destination will be.
    Raises StoreError where the source cannot be read, or the temporary folder not be written."""
    sampler = _Sampler(maker, max_mem)
    samples = [Sample() for _ in arrays]
    for number in sorted(range(len(arrays)), key=lambda number: -arrays[number].facts.nbytes):
        if math.prod(arrays[number].facts.shape) > 1:
            samples[number] = sampler.take(arrays[number], plans[number])
    return Samples(samples, sampler.total, Disk.of(folder))
