"""Carries out the passes of `rechunk_passes` with an executor's workers: threads, processes, or those of a cluster.

A task moves one panel of a plan. It is a value that can be pickled: it opens source and target by their paths, and
writes whole chunks, the same bytes however often it runs, so that one whose worker was killed may be run again, even
beside the first attempt. What it has written is on the disk when it says so. Where only one process can write, tasks
hand back chunks that they have encoded, and the calling process writes them.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import os
import shutil
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import LongshoreError, StoreError, TransportError, VerificationError
from . import places
from .array import ArrayFacts, ArrayReader, ArrayWriter, Grid, Index, SharedTarget
from .journal import Finished
from .kept_work import BETWEEN
from .makers import maker_of, temporary_array
from .phases import PhaseClock, add_seconds
from .places import Place
from .read_back import ReadBack
from .rechunk import Counts, Rechunk
from .rechunk_passes import SHARES, results_at_once
from .rechunk_plan import Box, RechunkPlan
from .source_pieces import stored_size
from .zarr_writer import ZarrTarget, ZarrWriter

_UNDER_WAY = 256  # tasks that an executor has at once
_GONE = BETWEEN + "gone-"
_REMOVALS = 10


@dataclass(frozen=True)
class SourceArray:
    """Where a worker finds an array that it reads, and what that must be."""

    place: Place
    path: str
    grid: Grid
    dtype: np.dtype
    fill: bytes | None
    sparse: bool

    @staticmethod
    def of(place: Place, path: str, reader: ArrayReader) -> SourceArray:
        """An array of a place's store, which this process has opened. Its path holds in every folder."""
        assert reader.facts.dtype is not None
        here = place if place.is_url else replace(place, path=os.path.abspath(place.path))
        return SourceArray(here, path, reader.grid, reader.facts.dtype, reader.facts.fill, reader.sparse)

    @contextlib.contextmanager
    def open(self) -> Iterator[ArrayReader]:
        with contextlib.ExitStack() as held:
            store = held.enter_context(contextlib.closing(places.open_reader(self.place)))
            array = held.enter_context(contextlib.closing(store.array(self.path)))
            if array.grid != self.grid:
                import socket

                raise StoreError(
                    f"{array.where} has chunks of {array.grid.chunks} in {array.grid.shape} on {socket.gethostname()}, "
                    f"not of {self.grid.chunks} in {self.grid.shape}: it has been changed, or workers have something "
                    "else under this path"
                )
            # A temporary store stands for the source, whose types and gaps it cannot tell as they were.
            array.facts = replace(array.facts, dtype=self.dtype, fill=self.fill)
            array.sparse = self.sparse
            yield array


@dataclass(frozen=True)
class EncodedTarget:
    """An array of which only the calling process writes chunks. Workers hand them back as they are to be stored."""

    place: Place
    """The destination, of which its format counts."""
    where: str
    facts: ArrayFacts

    @contextlib.contextmanager
    def open(self) -> Iterator[ArrayWriter]:
        with temporary_array(maker_of(self.place, None, None), self.facts) as encoder:
            yield _Encoded(encoder)


class _Encoded(ArrayWriter):
    """Keeps the chunks of an array that another process writes."""

    def __init__(self, encoder: ArrayWriter) -> None:
        self._encoder = encoder
        self.where, self.facts, self.grid, self.sparse = encoder.where, encoder.facts, encoder.grid, encoder.sparse
        self.chunks: list[tuple[Index, Any]] = []

    def encode(self, index: Index, chunk: np.ndarray, *, at_once: bool = False) -> Any:
        return self._encoder.encode(index, chunk)

    def write(self, index: Index, stored: Any) -> int:
        self.chunks.append((index, stored))
        return stored_size(stored)

    def read(self, index: Index) -> np.ndarray | None:
        return None


class _Room:
    """What the tasks of this process hold, of the memory that they may hold together."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._held, self._changed = 0, threading.Condition()

    @contextlib.contextmanager
    def take(self, size: int, most: int) -> Iterator[None]:
        """So many bytes, once the others leave so much of `most`; a task that is alone does not wait."""
        with self._changed:
            self._changed.wait_for(lambda: self._held == 0 or self._held + size <= most)
            self._held += size
        try:
            yield
        finally:
            with self._changed:
                self._held -= size
                self._changed.notify_all()


_room = _Room()
os.register_at_fork(after_in_child=_room.reset)  # a child has none of its parent's tasks


@dataclass(frozen=True)
class WindowTask:
    """Moves one panel of a plan. Runs in any process that sees the files."""

    source: SourceArray
    target: SharedTarget
    axes: tuple[int, ...]
    plan: RechunkPlan
    panel: Box
    done: np.ndarray | None
    """For each of the panel's chunks whether it is there already; None: none is."""
    max_mem: int
    """Bytes that all tasks of a process may hold."""

    def __call__(self) -> WindowDone:
        told: list[tuple[Index, int, int]] = []
        done = None
        if self.done is not None:
            done = np.zeros(self.plan.target.counts, np.bool_)
            done[_slices(self.panel)] = self.done
        room = _room.take(self.plan.memory_bytes, self.max_mem)
        with room, self.source.open() as reader, self.target.open() as writer:
            job = Rechunk(self.plan, reader, writer, self.axes, "", written=lambda *one: told.append(one), done=done)
            counts = job.run([self.panel])
            return WindowDone(counts, told, writer.chunks if isinstance(writer, _Encoded) else [])

    def __str__(self) -> str:
        return f"the task for {_chunks(self.plan, self.panel)}"


@dataclass(frozen=True)
class WindowDone:
    """What a task has done."""

    counts: Counts
    chunks: list[tuple[Index, int, int]]
    """Index, digest and elements of each chunk that it has written, or knows to be missing."""
    encoded: list[tuple[Index, Any]]
    """Chunks that the calling process is to write."""


@dataclass(frozen=True)
class ReadBackTask:
    """Reads the chunks of one panel of a plan's target, and compares them with their digests. Returns their bytes."""

    target: SharedTarget
    plan: RechunkPlan
    panel: Box
    digests: np.ndarray
    """Of the panel's chunks."""
    skipped: bytes | None
    """The element that adds nothing to digests."""
    max_mem: int
    """Bytes that all tasks of a process may hold."""

    def __call__(self) -> int:
        digests = np.zeros(self.plan.target.counts, np.uint64)
        digests[_slices(self.panel)] = self.digests
        compared: list[int] = []
        with _room.take(self.plan.memory_bytes, self.max_mem), self.target.open() as writer:
            compare = ReadBack(writer, self.skipped, digests.reshape(-1), compared.append)
            compare.all(itertools.product(*map(range, *self.panel)), self.plan.threads)
        return sum(compared)

    def __str__(self) -> str:
        return f"reading back {_chunks(self.plan, self.panel)}"


@dataclass(frozen=True)
class Record:
    """What is known of the chunks of an array that is written."""

    done: np.ndarray | None
    """Which of them are there already."""
    digests: np.ndarray
    """Of all chunks, in C order."""
    written: Callable[[Index, int, int], None]
    """Is told of each chunk; keeps its digest."""

    @staticmethod
    def of(
        grid: Grid,
        finished: Finished | None,
        add: Callable[[int, int], None] | None,
        advance: Callable[[int], None],
    ) -> Record:
        """Of an array with these chunks, of which a killed run has `finished` some. `add` is told the number and the
        digest of each further one, and `advance` its elements."""
        counts = grid.counts
        digests, done = np.zeros(math.prod(counts), np.uint64), None
        if finished is not None:
            done = finished.done.reshape(counts)
            digests[finished.done] = finished.digests[finished.done]

        def written(index: Index, digest: int, elements: int) -> None:
            chunk = int(np.ravel_multi_index(index, counts)) if counts else 0
            digests[chunk] = digest
            if add is not None:
                add(chunk, digest)
            advance(elements)

        return Record(done, digests, written)


def rechunk_by_tasks(
    executor: Executor,
    passes: Sequence[RechunkPlan],
    source: SourceArray,
    target: SharedTarget,
    axes: tuple[int, ...],
    records: Sequence[Record],
    *,
    between: str,
    zarr_format: int,
    write: Callable[[Index, Any], int],
    max_mem: int,
) -> Counts:
    """Moves an array in these passes, and returns what all workers together have read and written. `records`: what is
    known of each pass's target; `between`: the folder of the temporary store of two passes, and `zarr_format` its
    format; `write`: writes a chunk that a worker has encoded; `max_mem`: what a process may hold. Raises what a task
    has raised, and TransportError where workers are lost; what has been written stays. The temporary store stays too,
    until `remove_between`."""
    counts, last = Counts(), records[-1]
    if last.done is not None and last.done.all():
        return counts
    most = _UNDER_WAY
    if isinstance(target, EncodedTarget):
        most, max_mem = min(most, results_at_once(passes[-1], max_mem)), max_mem // SHARES
    if len(passes) == 1:
        return _carry(executor, passes[0], source, target, axes, last, max_mem, write, most)
    grid = passes[0].target
    facts = replace(target.facts, chunks=grid.chunks, shards=None, codecs=(), own={}, unlimited=(), order="C")
    os.makedirs(between, exist_ok=True)
    with contextlib.closing(ZarrWriter(between, zarr_format)) as store:
        store.create(facts)
    temporary = ZarrTarget(between, "", zarr_format, facts)
    came = _carry(executor, passes[0], source, temporary, axes, records[0], max_mem, write, _UNDER_WAY)
    place = Place(between, between, "", "zarr")
    then = SourceArray(place, "", grid, source.dtype, source.fill, source.sparse)
    went = _carry(executor, passes[1], then, target, tuple(range(len(axes))), last, max_mem, write, most)
    if int(records[0].digests.sum(dtype=np.uint64)) != int(last.digests.sum(dtype=np.uint64)):
        raise VerificationError(
            f"{source.place.text}: the temporary store between the two passes does not hold what was written to it; "
            "memory or its disk is at fault; nothing was published"
        )
    counts = Counts(came.read_bytes, went.written_bytes, came.written_bytes + went.read_bytes, went.chunks, went.digest)
    for one in (came, went):
        add_seconds(counts.seconds, one.seconds)
    return counts


def read_back_by_tasks(
    executor: Executor,
    plan: RechunkPlan,
    target: SharedTarget,
    digests: np.ndarray,
    skipped: bytes | None,
    max_mem: int,
    advance: Callable[[int], None],
) -> None:
    """Compares all chunks of an array with their digests (in C order), panel by panel of the plan that wrote them.
    `advance` is told the bytes that were compared. Raises VerificationError where one differs."""
    found = digests.reshape(plan.target.counts)
    tasks = (ReadBackTask(target, plan, panel, found[_slices(panel)], skipped, max_mem) for panel in plan.panels())
    _run(executor, tasks, advance, target, _UNDER_WAY)


def names_between(arrays: Sequence[Sequence[RechunkPlan]], first: int = 0) -> dict[int, str]:
    """The names that the temporary stores of arrays, from this one on, have beside the hidden output, by the numbers of
    those that go in two passes. With other chunks a name is another, so that what a killed run has left is known."""
    names = {}
    for number, passes in enumerate(arrays):
        if number >= first and len(passes) == 2:
            chunks = repr(passes[0].target.chunks).encode()
            names[number] = f"{BETWEEN}{number}-{hashlib.sha256(chunks).hexdigest()[:16]}"
    return names


def remove_between(folder: str, keep: Collection[str] = ()) -> None:
    """Removes the temporary stores that lie in a folder, but for those of these names, and the folder if it is empty.
    What a killed run has not removed in full is no temporary store any more: it gets another name first."""
    if not os.path.isdir(folder):
        return
    for _ in range(_REMOVALS):  # an attempt that an executor has given up may still be writing
        names = [name for name in os.listdir(folder) if name.startswith(BETWEEN) and name not in keep]
        if not names:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
            return
        for name in names:
            path = os.path.join(folder, name)
            if not name.startswith(_GONE):
                path = os.path.join(folder, _GONE + name)
                with contextlib.suppress(OSError):
                    os.rename(os.path.join(folder, name), path)
            shutil.rmtree(path, ignore_errors=True)
    raise StoreError(f"the temporary store {os.path.join(folder, names[0])} cannot be removed; nothing was published")


def _carry(
    executor: Executor,
    plan: RechunkPlan,
    source: SourceArray,
    target: SharedTarget,
    axes: tuple[int, ...],
    record: Record,
    max_mem: int,
    write: Callable[[Index, Any], int],
    most: int,
) -> Counts:
    """One pass: its panels that are not there yet, each by a task, so many at once."""
    counts, phase = Counts(), PhaseClock()

    def tasks() -> Iterator[WindowTask]:
        for panel in plan.panels():
            done = None if record.done is None else record.done[_slices(panel)]
            if done is None or not done.all():
                some = done if done is not None and done.any() else None
                yield WindowTask(source, target, axes, plan, panel, some, max_mem)

    def take(came: WindowDone) -> None:
        counts.add(came.counts)
        with phase("writing"):
            for index, stored in came.encoded:
                write(index, stored)
        for index, digest, elements in came.chunks:
            record.written(index, digest, elements)

    _run(executor, tasks(), take, target, most)
    add_seconds(counts.seconds, phase.seconds)
    return counts


def _run(
    executor: Executor,
    tasks: Iterator[Callable[[], Any]],
    take: Callable[[Any], None],
    target: SharedTarget,
    most: int,
) -> None:
    """Has an executor run tasks, no more than `most` at once, and takes what each has done. After an error those that
    run are waited for, and what they have done is taken too; then the first error is raised."""
    under_way: dict[Future[Any], Callable[[], Any]] = {}
    failure: LongshoreError | None = None

    def helps() -> bool:
        """One of the executor's own threads would wait for ever, were there no other: it runs what nobody has begun.
        That it is one is known once it has submitted something, for who starts it holds the lock of `submit` until the
        executor has noted it."""
        return threading.current_thread() in getattr(executor, "_threads", ())

    try:
        while True:
            while failure is None and len(under_way) < most and (task := next(tasks, None)) is not None:
                try:
                    under_way[executor.submit(task)] = task
                except Exception as error:
                    failure = _failure(task, target, error)
            if not under_way:
                break
            own = next((future for future in under_way if helps() and future.cancel()), None)
            ended = wait(under_way, return_when=FIRST_COMPLETED).done if own is None else {own}
            for future in ended:
                task = under_way.pop(future)
                try:
                    done = task() if future is own else future.result()
                except Exception as error:
                    failure = failure or _failure(task, target, error)
                else:
                    take(done)
            if failure is not None:
                under_way = {future: task for future, task in under_way.items() if not future.cancel()}
    finally:
        wait([future for future in under_way if not future.cancel()])
    if failure is not None:
        if isinstance(failure.__cause__, BrokenExecutor):
            executor.shutdown()  # it runs nothing more; workers that it is ending may still write
        raise failure


def _failure(task: object, target: SharedTarget, error: Exception) -> LongshoreError:
    """An error that says which task of which array it comes from."""
    which = f"{target.where}: {task} failed"
    if isinstance(error, OSError) and error.errno is not None:
        failure: LongshoreError = StoreError(error.errno, f"{which}: {error.strerror}")
    elif isinstance(error, LongshoreError):
        failure = type(error)(f"{which}: {error}")
    elif isinstance(error, (BrokenExecutor, CancelledError)):
        failure = TransportError(
            f"{which}, for the executor has lost it: a worker was killed, or the executor was shut down "
            f"({type(error).__name__}: {error}); nothing was published. Run it again with a new executor, with "
            "resume=True if this run had that, to go on where it was"
        )
    else:
        failure = TransportError(f"{which} on the executor: {type(error).__name__}: {error}; nothing was published")
    failure.__cause__ = error
    return failure


def _chunks(plan: RechunkPlan, panel: Box) -> str:
    return f"chunks {panel[0]} to {panel[1]} of {plan.target.chunks}"


def _slices(box: Box) -> tuple[slice, ...]:
    return tuple(map(slice, *box))
