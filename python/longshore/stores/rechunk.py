"""Carries out a `RechunkPlan`: source chunks are read, decoded and copied to buffers of target chunks by several
threads; whichever thread brings the last element of a chunk checks it against its digest, encodes it and writes it."""

from __future__ import annotations

import math
import os
import tempfile
import threading
from array import array as compact_list
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .. import _core
from ..errors import StoreError, VerificationError
from .array import ArrayReader, ArrayWriter, Grid, Index
from .kept_work import KeptBuffers, KeptPieces, KeptWork
from .phases import PhaseClock, add_seconds
from .rechunk_plan import PIECE_BYTES, Box, RechunkPlan, split
from .source_pieces import Piece, SourcePieces, leaves_out, loaded
from .worker_threads import WorkerThreads

_DONE = 1 << 62  # what a chunk lacks that must not become complete
_WRAP = (1 << 64) - 1
_TASK_BYTES = 1 << 20  # what a thread is given at a time, if pieces are small
_TASK_PIECES = 64


@dataclass
class Counts:
    """What a move of one array has done."""

    read_bytes: int = 0
    written_bytes: int = 0
    spilled_bytes: int = 0
    chunks: int = 0
    """Written; those that are missing aside."""
    digest: int = 0
    """Of all elements that are not the fill value, whatever the order they came in."""
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    """By phase, added up over threads."""

    def add(self, other: Counts) -> None:
        """What another process, or another pass, has done of the same array."""
        self.read_bytes += other.read_bytes
        self.written_bytes += other.written_bytes
        self.spilled_bytes += other.spilled_bytes
        self.chunks += other.chunks
        self.digest = self.digest + other.digest & _WRAP
        add_seconds(self.seconds, other.seconds)


class _Sink(Protocol):
    """Where pieces go: a box of target chunks."""

    def prepare(self, piece: Piece) -> bool:
        """Called for one piece after the other, in order, before any is taken. False: it has nothing for this."""

    def take(self, piece: Piece, elements: np.ndarray | None) -> None:
        """Called by any thread."""


class Rechunk:
    """One array on its way from a reader to a writer."""

    def __init__(
        self,
        plan: RechunkPlan,
        reader: ArrayReader,
        writer: ArrayWriter,
        axes: Sequence[int],
        scratch: str,
        *,
        written: Callable[[Index, int, int], None] | None = None,
        done: np.ndarray | None = None,
        kept: KeptWork | None = None,
    ) -> None:
        """`axes`: dimension d of the target is dimension axes[d] of the source. `scratch`: a folder for files without a
        name. `written(index, digest, elements)` is called once a chunk has been written, by any thread. `done`: for
        each chunk of the target whether it is there already. `kept`: where what is not written yet outlives this
        process, and what a killed one has left."""
        self.plan, self.writer, self.scratch = plan, writer, scratch
        self.phase = PhaseClock()
        self.counts = Counts(seconds=self.phase.seconds)
        self._tell, self.done = written, done
        self._lock = threading.Lock()
        self._failure: BaseException | None = None
        self._changed = threading.Condition(self._lock)
        self._under_way = threading.Semaphore(plan.threads)
        self._pool: WorkerThreads | None = None
        self._waiting: list[tuple[Piece, list[_Sink]]] = []
        self._begun: list[Future[None]] = []
        self._working = 0  # of these, how many have not ended
        self.dtype = np.dtype((np.void, plan.itemsize))
        self.chunk_bytes = math.prod(plan.target.chunks) * plan.itemsize
        self.kept = kept
        self.memory = self._buffers()
        assert writer.facts.dtype is not None
        self.dtype_written = writer.facts.dtype
        self.source = SourcePieces(
            plan, reader, axes, self.dtype_written, lambda size: self.count(read=size), self.phase
        )
        self.filler = np.frombuffer(self.source.fill, np.uint8)
        padding = writer.facts.fill
        self.padding = np.frombuffer(padding if padding is not None else bytes(plan.itemsize), self.dtype)
        self.skipped = self.source.skipped
        self.leaves_out = leaves_out(reader, writer)

    def _buffers(self) -> np.ndarray:
        size = self.plan.slots * self.chunk_bytes
        if self.kept is not None:
            try:
                return self.kept.memory(size)
            except OSError:  # the disk has no room: what is under way when this is killed will be done again
                self.kept.remove()
                self.kept = None
        return np.empty(size, np.uint8)

    def run(self, panels: Iterable[Box] | None = None) -> Counts:
        """Everything, to the last chunk; or these of the plan's panels. To be called once."""
        try:
            with WorkerThreads(self.plan.threads, "longshore-chunks") as pool:
                for panel in self.plan.panels() if panels is None else panels:
                    low, high = corners(self.plan.target, panel)
                    self.pieces = math.prod(map(len, self.plan.source.over(low, high)))
                    self._carry(pool, panel, 1, self.source.over(low, high))
        finally:
            self.memory = np.empty(0, np.uint8)  # this object may wait for the garbage collector, its buffers must not
        return self.counts

    # -- steps ------------------------------------------------------------------------------------------------------

    def _carry(self, pool: WorkerThreads, box: Box, level: int, pieces: Iterator[Piece]) -> None:
        """Brings the pieces of a box to its chunks, by way of scratch files where the plan says so."""
        if level == len(self.plan.boxes):
            whole = _Held(self, box, level)
            self._deal(pool, pieces, [whole])
            whole.check()
            return
        parts = list(split(box, self.plan.boxes[level], self.plan.order))
        last = level + 1 == len(self.plan.boxes)
        held = [_Held(self, parts[0], level)] if last else []
        scratch = [_Scratch(self, part, level) for part in parts[len(held) :]]
        try:
            self._deal(pool, pieces, [*held, *scratch])
            for sink in held:
                sink.check()
            held.clear()
            for file in scratch:
                self._carry(pool, file.box, level + 1, file.pieces())
                file.remove()
        finally:
            for file in scratch:
                file.close()

    def _deal(self, pool: WorkerThreads, pieces: Iterator[Piece], sinks: Sequence[_Sink]) -> None:
        """Gives every piece to the sinks that it has something for; returns when all have it. Small pieces go to the
        threads together."""
        self._pool, size = pool, 0
        for piece in pieces:
            wanted = [sink for sink in sinks if sink.prepare(piece)]
            if self._failure is not None:
                break
            if not wanted:
                continue
            self._waiting.append((piece, wanted))
            size += math.prod(piece.extents) * self.plan.itemsize
            if size >= _TASK_BYTES or len(self._waiting) == _TASK_PIECES:
                self.begin_waiting()
                size = 0
        self.begin_waiting()
        while self._begun:  # a task has added those that it began when it ends
            self._begun.pop(0).result()
        if self._failure is not None:
            raise self._failure

    def begin_waiting(self) -> None:
        """Has a thread take the pieces that wait to be taken."""
        if not self._waiting:
            return
        assert self._pool is not None
        self._under_way.acquire()
        self._submit(self._bring, self._waiting)
        self._waiting = []

    def _submit(self, work: Callable[[Any], None], on: Any) -> None:
        """Has a thread do this; what goes wrong ends the move."""

        def guarded() -> None:
            try:
                work(on)
            except BaseException as error:
                self._fail(error)
            finally:
                with self._lock:
                    self._working -= 1
                    self._changed.notify_all()

        assert self._pool is not None
        with self._lock:
            self._working += 1
        task = self._pool.submit(guarded)
        with self._lock:
            self._begun = [one for one in self._begun if not one.done()] + [task]

    def _bring(self, pieces: list[tuple[Piece, list[_Sink]]]) -> None:
        try:
            elements_of = loaded([piece for piece, _ in pieces])
            for piece, sinks in pieces:
                if self._failure is not None:
                    break
                elements = next(elements_of)
                for sink in sinks:
                    sink.take(piece, elements)
        finally:
            self._under_way.release()

    def share_out(self, finish: Callable[[int], None], chunks: Sequence[int]) -> None:
        """Has all threads finish chunks that have become complete at once, the calling one the first of them: to encode
        them takes longer than to read what completed them."""
        each = max(-(-len(chunks) // (4 * self.plan.threads)), -(-_TASK_BYTES // max(1, self.chunk_bytes)))

        def some(begin: int) -> None:
            for chunk in chunks[begin : begin + each]:
                if self._failure is not None:
                    break
                finish(chunk)

        for begin in range(each, len(chunks), each):
            self._submit(some, begin)
        some(0)

    def _fail(self, error: BaseException) -> None:
        """Has everybody end who is at work."""
        with self._lock:
            self._failure = self._failure or error
            self._changed.notify_all()

    # -- what is shared -----------------------------------------------------------------------------------------------

    def count(self, read: int = 0, written: int = 0, spilled: int = 0, chunks: int = 0, digest: int = 0) -> None:
        with self._lock:
            counts = self.counts
            counts.read_bytes += read
            counts.written_bytes += written
            counts.spilled_bytes += spilled
            counts.chunks += chunks
            counts.digest = counts.digest + digest & _WRAP

    def wait_for_one(self, slots: list[int]) -> bool:
        """Until there is a buffer that can be used; False where something has gone wrong."""
        with self._lock:
            while self._failure is None and not slots and self._working:
                self._changed.wait()
            if self._failure is None and not slots:
                self._failure = self.unfinished()
            return self._failure is None

    def unfinished(self) -> VerificationError:
        """For chunks that are not complete when all has come."""
        kept = "" if self.kept is None else "; what a killed run has left is at fault, so start again without --resume"
        return VerificationError(f"{self.writer.where}: chunks lack elements{kept}; nothing was published")

    def free(self, slots: list[int], slot: int) -> None:
        """A buffer can be used again."""
        with self._lock:
            slots.append(slot)
            self._changed.notify_all()

    def finished(self, index: Index, digest: int, chunk: np.ndarray | None) -> None:
        """A chunk has all its elements; None: it is missing, and stays so."""
        elements = math.prod(self.plan.target.extents(index))
        written = 0
        if chunk is not None:
            with self.phase("encoding"):
                stored = self.writer.encode(index, chunk, at_once=True)
            with self.phase("writing"):
                written = self.writer.write(index, stored)
        self.count(written=written, chunks=chunk is not None, digest=digest)
        if self._tell is not None:
            self._tell(index, digest, elements)


class _Held:
    """A box whose chunks are held from their first element to their last."""

    def __init__(self, job: Rechunk, box: Box, level: int) -> None:
        self._job, self.box = job, box
        target, itemsize = job.plan.target, job.plan.itemsize
        self._grid = target
        self._first, last = box
        self._counts = tuple(b - a for a, b in zip(self._first, last))
        self._slots = np.full(self._counts, -1, np.int64)
        self._missing = np.ones(self._counts, np.int64)
        self._edge = np.zeros(self._counts, np.bool_)
        for d, (a, b, t, n) in enumerate(zip(self._first, last, target.chunks, target.shape)):
            extents = np.minimum(t, n - np.arange(a, b, dtype=np.int64) * t)
            shape = [1] * len(self._counts)
            shape[d] = b - a
            self._missing *= extents.reshape(shape)
            self._edge |= (extents < t).reshape(shape)
        self._done = None if job.done is None else job.done[tuple(slice(a, b) for a, b in zip(*box))]
        if self._done is not None:
            self._missing[self._done] = _DONE
        self._came = np.zeros(self._counts, np.bool_)
        self._digests = np.zeros(self._counts, np.uint64)
        self._free = [k * job.chunk_bytes for k in reversed(range(job.plan.slots))]
        self._kept: KeptBuffers | None = None
        if job.kept is not None and not (self._done is not None and self._done.all()):
            chunks = math.prod(self._counts)
            self._kept = job.kept.buffers(level, box, chunks, job.plan.slots, job.pieces)
            self._go_on(self._kept)
        self._strides = dense_strides(target.chunks, itemsize)
        self._buffers = _core.ChunkBuffers(
            target.shape,
            target.chunks,
            self._first,
            self._counts,
            itemsize,
            job.skipped,
            job.memory.ctypes.data,
            self._slots.ctypes.data,
            self._missing.ctypes.data,
            self._digests.ctypes.data,
        )

    def _go_on(self, kept: KeptBuffers) -> None:
        """Chunks have the buffers again that they had when the run before this one was killed."""
        done = np.zeros(self._counts, np.bool_) if self._done is None else self._done
        kept.go_on(done.reshape(-1))
        self._came[...] = kept.came().reshape(self._counts)
        slots = kept.slots().reshape(self._counts)
        self._slots[...] = np.where(slots < 0, -1, slots * self._job.chunk_bytes)
        taken = set(self._slots[self._slots >= 0].tolist())
        self._free = [slot for slot in self._free if slot not in taken]

    def _chunks(self, piece: Piece) -> tuple[slice, ...] | None:
        """Those of the box's that a piece has something for."""
        found = []
        for a, e, t, first, count in zip(piece.start, piece.extents, self._grid.chunks, self._first, self._counts):
            low, high = max(a // t - first, 0), min(-(-(a + e) // t) - first, count)
            if low >= high:
                return None
            found.append(slice(low, high))
        return tuple(found)

    def prepare(self, piece: Piece) -> bool:
        """Gives each chunk that begins with this piece a buffer, and waits for one where there is none."""
        chunks = self._chunks(piece)
        if chunks is None:
            return False
        if self._kept is not None and self._kept.holds(piece.number):
            self._job.share_out(self._finish, self._buffers.count(piece.start, piece.extents))
            return False
        begins = (self._slots[chunks] < 0) & (self._missing[chunks] > 0)
        if self._done is not None:
            if self._done[chunks].all():
                return False
            begins &= ~self._done[chunks]
        if not begins.any():
            return True
        offset = [part.start for part in chunks]
        for place in np.argwhere(begins).tolist():
            at = tuple(i + o for i, o in zip(place, offset))
            if not self._free:
                self._job.begin_waiting()  # buffers may be free only when these have been taken
            if not self._job.wait_for_one(self._free):
                return False
            slot = self._free.pop()
            if self._edge[at]:
                self._job.memory[slot : slot + self._job.chunk_bytes].view(self._job.dtype)[:] = self._job.padding
            self._slots[at] = slot
            if self._kept is not None:
                self._kept.begins(int(np.ravel_multi_index(at, self._counts)), slot // self._job.chunk_bytes)
        return True

    def take(self, piece: Piece, elements: np.ndarray | None) -> None:
        job = self._job
        address, strides = job.filler.ctypes.data, (0,) * len(piece.start)
        if elements is not None:
            chunks = self._chunks(piece)
            assert chunks is not None
            if self._kept is not None:
                self._kept.comes(np.ravel_multi_index(np.ogrid[chunks], self._counts))
            self._came[chunks] = True
            address, strides = address_of(elements), elements.strides
        with job.phase("copying"):
            complete = self._buffers.scatter(address, piece.start, piece.extents, strides)
        if self._kept is not None:
            self._kept.copied(piece.number)
        job.share_out(self._finish, complete)

    def check(self) -> None:
        """Raises VerificationError where a chunk is not complete when everything has come."""
        lacking = self._missing if self._done is None else self._missing[~self._done]
        if lacking.any():
            raise self._job.unfinished()

    def _finish(self, number: int) -> None:
        job, at = self._job, tuple(int(i) for i in np.unravel_index(number, self._counts))
        slot, digest = int(self._slots[at]), int(self._digests[at])
        index = tuple(a + i for a, i in zip(self._first, at))
        chunk = None
        if self._came[at] or not job.leaves_out:
            held = job.memory[slot : slot + job.chunk_bytes]
            start, extents = self._grid.start(index), self._grid.extents(index)
            with job.phase("copying"):
                found = _core.element_digest(
                    held.ctypes.data, start, extents, self._strides, self._grid.shape, job.plan.itemsize, job.skipped
                )
            if found != digest:
                raise VerificationError(
                    f"{job.writer.where}: chunk {index} does not hold what was copied to it; memory or the disk of the "
                    "scratch files is at fault; nothing was published"
                )
            chunk = held.view(job.dtype_written).reshape(self._grid.chunks)
        job.finished(index, digest, chunk)
        job.free(self._free, slot)


class _Scratch:
    """A box whose elements wait in a file for their turn."""

    def __init__(self, job: Rechunk, box: Box, level: int) -> None:
        self._job, self.box = job, box
        self._low, self._high = corners(job.plan.target, box)
        self._kept: KeptPieces | None = None
        self._lock = threading.Lock()
        self._waiting = bytearray()
        self._unrecorded: list[tuple[int, ...]] = []
        self._end = 0
        self._numbers = compact_list("q")
        self._places = compact_list("q")  # in the file; -1: the fill value, nowhere
        self._boxes = compact_list("q")  # start and extents of each piece
        self._came: np.ndarray | None = None
        self._file = self._open(level)

    def _open(self, level: int) -> int | None:
        job = self._job
        if job.kept is None:
            try:
                return os.open(job.scratch, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
            except OSError:  # a file system that has none without a name
                file, name = tempfile.mkstemp(prefix=".longshore-scratch-", dir=job.scratch)
                os.unlink(name)
                return file
        self._kept = job.kept.scratch(level, self.box, job.pieces)
        found = self._kept.found(self._low, self._high, job.plan.itemsize)
        if len(found):
            self._numbers.frombytes(found[:, 0].tobytes())
            self._boxes.frombytes(found[:, 1:-1].tobytes())
            self._places.frombytes(found[:, -1].tobytes())
            last = found[found[:, -1].argmax()]
            if last[-1] >= 0:
                self._end = int(last[-1]) + math.prod(last[1 + len(self._low) : -1].tolist()) * job.plan.itemsize
            self._came = np.zeros(job.pieces, np.bool_)
            self._came[found[:, 0]] = True
        try:
            return self._kept.open()
        except OSError as error:
            raise StoreError(error.errno, f"cannot write {self._kept.path}: {error.strerror}") from None

    def _part(self, piece: Piece) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        start = tuple(max(a, s) for a, s in zip(self._low, piece.start))
        end = tuple(min(b, s + e) for b, s, e in zip(self._high, piece.start, piece.extents))
        return None if any(a >= b for a, b in zip(start, end)) else (start, tuple(b - a for a, b in zip(start, end)))

    def prepare(self, piece: Piece) -> bool:
        if self._job.done is not None and self._job.done[tuple(slice(a, b) for a, b in zip(*self.box))].all():
            return False
        if self._came is not None and self._came[piece.number]:
            return False
        return self._part(piece) is not None

    def take(self, piece: Piece, elements: np.ndarray | None) -> None:
        with self._job.phase("spilling"):
            self._append(piece, elements)

    def _append(self, piece: Piece, elements: np.ndarray | None) -> None:
        part = self._part(piece)
        assert part is not None and self._file is not None
        start, extents = part
        data: np.ndarray | None = None
        if elements is not None:
            own = tuple(slice(a - s, a - s + e) for a, s, e in zip(start, piece.start, extents))
            data = np.ascontiguousarray(elements[own]).reshape(-1).view(np.uint8)
        with self._lock:
            self._numbers.append(piece.number)
            self._boxes.extend(start + extents)
            self._places.append(-1 if data is None else self._end)
            if self._kept is not None:
                self._unrecorded.append((piece.number, *start, *extents, self._places[-1]))
            if data is None:
                return
            self._end += len(data)
            if len(self._waiting) + len(data) <= PIECE_BYTES:
                self._waiting += data.data
                return
            whole = [memoryview(bytes(self._waiting)), data.data]
            place = self._end - sum(map(len, whole))
            self._waiting.clear()
            self._job.count(spilled=self._end - place)
            self._write(whole, place)

    def _write(self, views: list[memoryview], place: int) -> None:
        assert self._file is not None
        try:
            for view in views:
                done = 0
                while done < len(view):
                    done += os.pwrite(self._file, view[done : done + (1 << 30)], place + done)
                place += done
            if self._kept is not None:
                self._kept.add(self._unrecorded)
                self._unrecorded = []
        except OSError as error:
            raise StoreError(
                error.errno, f"cannot write scratch files in {self._job.scratch}: {error.strerror}"
            ) from None

    def pieces(self) -> Iterator[Piece]:
        """What has come, in the order in which the source was visited."""
        with self._lock:
            whole = [memoryview(bytes(self._waiting))]
            self._job.count(spilled=len(whole[0]))
            self._write(whole, self._end - len(whole[0]))
            self._waiting = bytearray()
        n = len(self._low)
        for k in np.argsort(np.frombuffer(self._numbers, np.int64), kind="stable").tolist():
            box = tuple(self._boxes[2 * n * k : 2 * n * (k + 1)])
            yield Piece(self._numbers[k], box[:n], box[n:], self._loader(self._places[k], box[n:]))

    def _loader(self, place: int, extents: tuple[int, ...]) -> Callable[[], np.ndarray | None]:
        def load() -> np.ndarray | None:
            assert self._file is not None
            if place < 0:
                return None
            data = np.empty(extents, self._job.dtype_written)
            with self._job.phase("spilling"):
                self._read(data.reshape(-1).view(np.uint8).data, place)
            return data

        return load

    def _read(self, view: memoryview, place: int) -> None:
        assert self._file is not None
        done = 0
        while done < len(view):
            part = os.preadv(self._file, (view[done : done + (1 << 30)],), place + done)
            if part == 0:
                raise StoreError(f"a scratch file in {self._job.scratch} has become shorter")
            done += part
        self._job.count(spilled=len(view))

    def remove(self) -> None:
        """What is in it has been carried on."""
        self.close()
        if self._kept is not None:
            self._kept.remove()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def corners(grid: Grid, box: Box) -> Box:
    """The elements of a box of chunks."""
    low = tuple(a * t for a, t in zip(box[0], grid.chunks))
    return low, tuple(min(b * t, n) for b, t, n in zip(box[1], grid.chunks, grid.shape))


def dense_strides(extents: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """In bytes, in C order."""
    strides = []
    for extent in reversed(extents):
        strides.append(itemsize)
        itemsize *= extent
    return tuple(reversed(strides))


def address_of(elements: np.ndarray) -> int:
    """Of the first element, whatever the type."""
    return elements.__array_interface__["data"][0]


def box_digest(elements: np.ndarray, start: Sequence[int], shape: Sequence[int], skipped: bytes | None) -> int:
    """Of the elements of a box that begins there, in an array of this shape."""
    itemsize = elements.dtype.itemsize
    return _core.element_digest(address_of(elements), start, elements.shape, elements.strides, shape, itemsize, skipped)
