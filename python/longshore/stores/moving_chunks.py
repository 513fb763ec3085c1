"""Moves between stores of any format: one array, or a group with all that is in it.

Every array goes from its chunk grid to another one by a `RechunkPlan`, one array after the other, into a hidden output
that appears under its name when everything is on the disk. A journal beside it knows what is finished, so that a run
can go on where one was killed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import ArgumentError, MemoryLimitError, StoreError
from . import dense, memory, places
from .array import (
    ArrayFacts,
    ArrayWriter,
    Grid,
    GroupFacts,
    SharedTarget,
    StoreReader,
    StoreWriter,
    Tree,
)
from .journal import Finished, JobName, Journal, read_journal
from .kept_work import KeptWork, remove_work
from .makers import Maker, Wanted, maker_of, temporary_array
from .move_report import ArrayReport, StoreMoveReport
from .moved_array import MovedArray, wanted_tree, what_is_held, with_facts
from .moving import Watcher
from .publish import add_to, is_full, refuse_overlap
from .publish_url import publication_of, refuse_url_overlap
from .read_back import ReadBack, drop_lost
from .rechunk import Counts, Rechunk
from .rechunk_executor import (
    EncodedTarget,
    Record,
    SourceArray,
    names_between,
    read_back_by_tasks,
    rechunk_by_tasks,
    remove_between,
)
from .rechunk_passes import plan_passes
from .rechunk_plan import RechunkPlan, plan_rechunk
from .rechunk_shared import SharedRechunk
from .samples import take_samples
from .scatter import Planned, in_boxes_of_source
from .source_pieces import skipped_by
from .team import Alone, Team

_METADATA_BYTES = 1 << 20
_KEPT = "what has been written stays: make room, and go on with --resume (in Python resume=True)"
_NOT_KEPT = "run it with --resume (in Python resume=True) to keep what has been written when the disk is full"
_COLLECTED = 3  # chunks that wait to be sent, or are, beside those that are encoded


def move_chunks(
    source: Any,
    destination: Any,
    wanted: Wanted,
    *,
    max_mem: int,
    threads: int,
    team: Team | None = None,
    verify: bool = False,
    force: bool = False,
    resume: bool = False,
    dry_run: bool = False,
    executor: Executor | None = None,
    watcher: Watcher | None = None,
) -> StoreMoveReport:
    """Moves what `source` names, an array or a group, to where `destination` says. `move` has the words for the user.
    Collective over the team; `max_mem` and `threads` are each process's, or each task's of the executor."""
    watcher = Watcher() if watcher is None else watcher
    team = Alone() if team is None else team
    memory.reset_peak()
    idle = memory.resident_bytes()
    began = time.perf_counter()
    with team.together(
        lambda: _Job(
            source, destination, wanted, max_mem, threads, team, force, resume, dry_run, verify, executor, watcher
        )
    ) as job:
        team.same(f"moving {job.wish}, {'' if verify else 'not '}verified")
        told = job.report
        if dry_run:
            told = job.sample()
        else:
            job.carry(watcher, verify)
        told.seconds = time.perf_counter() - began - told.verify_seconds
    told.peak_memory_bytes = team.max(max(0, memory.peak_resident_bytes() - idle))
    return told


class _Job:
    """One move from check to publication. Everything is refused in the constructor, before anything is written."""

    def __init__(
        self,
        source: Any,
        destination: Any,
        wanted: Wanted,
        max_mem: int,
        threads: int,
        team: Team,
        force: bool,
        resume: bool,
        dry_run: bool,
        verify: bool,
        executor: Executor | None,
        watcher: Watcher,
    ) -> None:
        self.wanted, self.max_mem, self.threads, self.resume, self.force = wanted, max_mem, threads, resume, force
        self.team, self.executor = team, executor
        self.finished: dict[int, Finished] = {}
        """What a killed run has left, by the numbers that the journal has for arrays."""
        self._held = contextlib.ExitStack()
        with contextlib.ExitStack() as held:
            self.source = places.parse_place(source, destination=False)
            self.destination = places.parse_place(destination, destination=True, to=wanted.to, source=self.source)
            self.reader: StoreReader = places.open_reader(self.source)
            held.callback(self.reader.close)
            # Taken before anything is read, by the process that compares it in the end.
            self.fingerprint = "" if dry_run or team.rank > 0 else self.reader.fingerprint()
            self.maker: Maker = maker_of(self.destination, wanted.to, wanted.zarr_format)
            if self.source.is_url and self.destination.is_url:
                refuse_url_overlap(self.source, self.destination, self.reader.files)
            elif not self.source.is_url and not self.destination.is_url:
                refuse_overlap(self.source.path, self.destination.publish_path, self.reader.files)
            self.publication = publication_of(
                self.destination, folder=self.maker.folder, force=force, verify=verify, watcher=watcher
            )
            self.publication.resumes = resume
            self.publication.check()
            together = self.destination.format == "zarr" and not self.destination.is_url
            self.writers = team.size if together else 1
            """How many processes, from the first on, write."""
            if executor is not None and team.size > 1:
                raise ArgumentError("a move is shared by the processes of comm= or by an executor, not by both")
            self.tree, self.arrays = wanted_tree(self.reader, self.maker, wanted, self.source.text)
            lost = self.maker.losses(self.tree)
            if lost and not wanted.lossy:
                raise StoreError(
                    f"{self.maker.words} cannot hold {'; '.join(lost[:8])}{'; ...' if len(lost) > 8 else ''}. "
                    "Leave that behind with --lossy (in Python lossy=True), or choose another format"
                )
            if lost:
                self.tree, self.arrays = what_is_held(self.tree, self.arrays, self.maker, self.source.text)
            self.plans = self._planned()
            if team.rank == 0:  # what killed runs have left is locked while it is looked at
                self._check_space()
            self.report = self._told(lost, dry_run)
            self._held = held.pop_all()

    def __enter__(self) -> _Job:
        return self

    def __exit__(self, *exception: object) -> None:
        self._held.close()

    # -- plans ------------------------------------------------------------------------------------------------------

    def _planned(self, ratios: Sequence[float | None] | None = None) -> list[RechunkPlan]:
        """A plan for each array, whose chunks it settles. `ratios`: bytes that are stored for a byte of elements, where
        codecs are, if they are known."""
        plans = []
        for array, ratio in zip(self.arrays, ratios or itertools.repeat(None)):
            facts = array.facts = replace(array.facts, boxes=None)
            assert facts.dtype is not None
            plan_for = functools.partial(self._plan, array, ratio)
            array.grid = self.maker.grid(facts)
            try:
                planned = plan_for(array.grid)
            except MemoryLimitError as error:
                raise MemoryLimitError(f"{array.reader.where}: {error}") from None
            if (pieces := self.maker.pieces(facts)) is not None and not array.reader.addressable:
                # Of larger boxes an executor's workers would have too few.
                most = dense.CHUNK_BYTES if self._by_tasks(array) else self.max_mem
                planned = in_boxes_of_source(planned, pieces, array.source_grid, most, plan_for)
                array.grid = planned[0].target
                array.facts = replace(facts, boxes=array.grid.chunks)
            plan, array.passes = planned
            plans.append(plan)
        self.tree = with_facts(self.tree, self.arrays)
        return plans

    def _plan(self, array: MovedArray, ratio: float | None, grid: Grid) -> Planned:
        """The way to such chunks."""
        facts = array.facts
        assert facts.dtype is not None
        shared = self._is_shared(array)
        files = facts.shards if shared or self._by_tasks(array) else None
        target = grid if files is None else Grid(grid.shape, files)
        chunk_bytes = math.prod(grid.chunks) * facts.dtype.itemsize
        on_the_way = _COLLECTED * chunk_bytes if self.writers < self._writers_of(array) else 0
        how: dict[str, Any] = {
            "threads": self.threads,
            "stored_bytes": array.stored_bytes,
            "target_bytes": self.maker.expected_bytes(facts, grid, array.stored_bytes, ratio),
            "addressable": array.reader.addressable,
            "raw": not array.reader.facts.codecs and array.reader.facts.dtype == facts.dtype,
            "beside": 32 * math.prod(grid.counts) + _METADATA_BYTES + on_the_way + array.reader.held_bytes,
            "thread_bytes": array.reader.thread_bytes + array.converted_bytes,
            "encode_bytes": self.maker.encode_bytes(facts, grid),
        }
        if self._by_tasks(array):
            how["handed_back"] = self.maker.has_one_writer(facts)
            return plan_passes(array.source_grid, grid, target, facts.dtype.itemsize, self.max_mem, **how)
        how |= {"processes": self.team.size if shared else 1, "writers": self._writers_of(array)}
        return plan_rechunk(array.source_grid, target, facts.dtype.itemsize, self.max_mem, **how), ()

    def _is_shared(self, array: MovedArray) -> bool:
        """Whether all processes move an array; what is a single element or nothing the first one moves."""
        return self.team.size > 1 and math.prod(array.facts.shape) > 1

    def _writers_of(self, array: MovedArray) -> int:
        """How many processes, from the first on, encode chunks of an array."""
        return self.team.size if array.facts.codecs else self.writers

    def _by_tasks(self, array: MovedArray) -> bool:
        """Whether an executor's workers move an array; of one element or nothing they are spared."""
        return self.executor is not None and math.prod(array.facts.shape) > 1

    def sample(self) -> StoreMoveReport:
        """Collective. What the move would take, from samples of it, which the first process takes."""
        team, maker, folder = self.team, self.maker, self.publication.parent
        samples = team.first(lambda: take_samples(maker, self.max_mem, self.arrays, self.plans, folder))
        self.plans = self._planned(samples.ratios)
        report = self._told(self.report.lost, True)
        each = min(self.threads, max(1, memory.usable_processors() // team.size))
        report.seconds_by_phase, seconds = samples.expected(self.plans, each * team.size)
        if self.executor is None and not self.destination.is_url:  # how many workers there are, nobody can tell
            report.seconds_predicted = seconds
        return report

    def _check_space(self, more: int = 0) -> None:
        spilled = max((plan.spilled_bytes // 2 for plan in self.plans), default=0)
        self.publication.check_space(sum(plan.written_bytes for plan in self.plans) + spilled + more)

    def _told(self, lost: list[str], dry_run: bool) -> StoreMoveReport:
        told = [
            ArrayReport(
                array.path,
                array.facts.shape,
                str(array.facts.dtype) if not array.facts.type_name else array.facts.type_name,
                array.reader.grid.chunks,
                array.grid.chunks,
                array.facts.codecs,
                array.facts.nbytes,
                plan,
            )
            for array, plan in zip(self.arrays, self.plans)
        ]
        words = ("read", "written", "spilled")
        predicted = {f"bytes_{word}": sum(getattr(plan, f"{word}_bytes") for plan in self.plans) for word in words}
        predicted["bytes_copied"] = self.publication.beside_bytes
        return StoreMoveReport(
            self.source.text,
            self.destination.text,
            self.reader.format,
            self.maker.words,
            told,
            self.max_mem,
            self.threads,
            predicted | {"memory_bytes": max((plan.memory_bytes for plan in self.plans), default=0)},
            dry_run,
            floor_bytes=sum(plan.floor_bytes for plan in self.plans),
            array_bytes=sum(array.array_bytes for array in told),
            lost=lost,
            made_in=self.publication.parent if self.destination.is_url else "",
        )

    @property
    def wish(self) -> str:
        """What is to be done, equal on processes that are asked for the same."""
        facts = [(a.path, a.axes, a.facts.shape, str(a.facts.dtype), a.facts.codecs) for a in self.arrays]
        plans = [(plan.source, plan.target, plan.boxes, plan.threads) for plan in self.plans]
        made = (getattr(self.maker, "zarr_format", None), self.report.lost)
        digest = hashlib.sha256(repr((facts, plans, made)).encode()).hexdigest()[:16]
        words = {"resume": self.resume, "dry_run": self.report.dry_run, "force": self.force}
        given = "".join(f" {word}=True" for word, value in words.items() if value)
        return f"{self.source.text} to {self.publication.called}{given} (digest of formats, chunks and memory {digest})"

    def _name(self) -> JobName:
        """Which move this is: equal for two runs of which the second can go on where the first was killed."""
        place = self.source.path if self.source.is_url else os.path.abspath(self.source.path)
        parts: list[Any] = [place, self.source.inner, self.destination.publish_path]
        parts += [self.destination.created, self.fingerprint, self.maker.words, self.publication.base]
        for array, plan in zip(self.arrays, self.plans):
            parts += [array.path, array.axes, array.facts.shape, str(array.facts.dtype)]
            parts += [array.facts.shards, array.facts.codecs, plan.itemsize]
            parts += [array.grid.chunks if array.facts.boxes is None else None]
        boxes = [array.grid.chunks for array in self.arrays if array.facts.boxes is not None]
        whole, without_boxes = (
            hashlib.sha256(repr(told).encode()).hexdigest()[:32] for told in ([*parts, boxes], parts)
        )
        return JobName(whole, without_boxes, self.max_mem)

    # -- doing it ---------------------------------------------------------------------------------------------------

    def carry(self, watcher: Watcher, verify: bool) -> None:
        """Collective. Moves everything and publishes it."""
        publication, team = self.publication, self.team
        with publication, contextlib.ExitStack() as held:
            writer = self._open(held)
            self.report.removed_partials = team.broadcast(publication.stale_removed)
            self.report.bytes_copied = team.broadcast(publication.copied_bytes)
            watcher.phase("moving", self.report.array_bytes)
            journal: Journal | None = None
            try:
                journal = team.together(lambda: self._begin_journal(writer, held))
                for number, array in enumerate(self.arrays):
                    with contextlib.ExitStack() as of_array:
                        self._move(number, array, self.plans[number], writer, journal, watcher, of_array)
                team.together(lambda: self._copy_others(writer))
                if verify:
                    self._verify(writer, watcher)
                watcher.phase("bringing to the disk", 0)
                began = time.perf_counter()
                team.together(lambda: writer.sync() if writer is not None and team.rank > 0 else None)
                team.together(lambda: writer.finish() if writer is not None and team.rank == 0 else None)
                self.report.sync_seconds += time.perf_counter() - began
                team.together(lambda: publication.publish() if team.rank == 0 else None)
            except BaseException as error:
                if self.resume:
                    with contextlib.suppress(StoreError):
                        if journal is not None and not self.maker.outlives_kills:
                            journal.sync()
                    held.close()
                    publication.keep()
                if is_full(error):
                    add_to(error, _KEPT if self.resume else _NOT_KEPT)
                raise
            if journal is not None:
                journal.remove()
                if publication.partial is not None:
                    remove_work(publication.work)
                self.maker.published()
        self.report.sum_up([(array.counts, array.digests) for array in self.arrays])

    def _begin_journal(self, writer: StoreWriter | None, held: contextlib.ExitStack) -> Journal | None:
        """The first process's, of what all have finished."""
        if writer is None or self.team.rank > 0:
            return None
        sync = writer.sync if self.writers == 1 and self.executor is None else writer.sync_of_all
        journal = Journal(self.publication.journal, self._name(), sync)
        held.callback(journal.close)
        for number, finished in self.finished.items():
            for chunk in np.flatnonzero(finished.done).tolist():
                journal.add(number, chunk, int(finished.digests[chunk]))
        return journal

    def _open(self, held: contextlib.ExitStack) -> StoreWriter | None:
        """Collective. The writer of the hidden output, which the first process makes; None where a process has none."""
        team = self.team
        writer: StoreWriter | None = team.together(lambda: self._begin(held) if team.rank == 0 else None)
        if self.writers > 1:
            place = team.broadcast(self.publication.partial)

            def join() -> StoreWriter:
                joined = self.maker.open(place, resume=True)
                held.callback(joined.close)
                joined.create(self._placed())
                return joined

            writer = team.together(lambda: writer if team.rank == 0 else join())
        self.finished = team.broadcast(self.finished)
        return writer

    def _begin(self, held: contextlib.ExitStack) -> StoreWriter:
        """The writer of the hidden output: of what a killed run has left, or of a new one."""
        publication = self.publication
        if self.resume:
            place = publication.adopt()
            if place is not None:
                counts, only_synced = [math.prod(a.grid.counts) for a in self.arrays], not self.maker.outlives_kills
                # After all arrays come the temporary stores of those that go in two passes.
                counts += [sum(math.prod(p.target.counts) for p in array.passes[:-1]) for array in self.arrays]
                try:
                    finished = read_journal(publication.journal, self._name(), counts, only_synced=only_synced)
                except StoreError:
                    publication.keep()  # it is not this move's to remove
                    raise
                if finished is not None:
                    writer = self.maker.open(place, resume=True)
                    held.callback(writer.close)
                    writer.create(self._placed())
                    for array, plan, of_array in zip(self.arrays, self.plans, finished):
                        if not self.maker.outlives_kills and of_array.done.any():
                            drop_lost(of_array, writer.array(self._to(array)), array.reader, plan.threads)
                    self.finished = dict(enumerate(finished))
                    names, work = names_between([array.passes for array in self.arrays]), publication.work
                    remove_between(work, names.values())
                    for number in [k for k, name in names.items() if not os.path.isdir(os.path.join(work, name))]:
                        del self.finished[len(self.arrays) + number]
                    return writer
                publication.discard()
        publication.remove_stale()
        place = publication.create()
        writer = self.maker.open(place, resume=False)
        held.callback(writer.close)
        writer.create(self._placed())
        return writer

    def _placed(self) -> Tree:
        """The tree as the destination's file or folder has it: what is moved may be somewhere within."""
        tree = self.tree
        for name in reversed([word for word in self.destination.created.split("/") if word]):
            tree = GroupFacts({name: tree})
        return tree

    def _to(self, array: MovedArray) -> str:
        return "/".join(word for word in (self.destination.created, array.path) if word)

    def _move(
        self,
        number: int,
        array: MovedArray,
        plan: RechunkPlan,
        writer: StoreWriter | None,
        journal: Journal | None,
        watcher: Watcher,
        held: contextlib.ExitStack,
    ) -> None:
        """Collective. One array."""
        target = self.team.together(lambda: self._target(array, writer, held))

        def advance(elements: int) -> None:
            watcher.advance(elements * plan.itemsize)

        record = self._record(number, array.grid, journal, advance)
        array.digests = record.digests
        if record.done is not None:
            self.report.arrays[number].resumed_chunks = int(record.done.sum())
        if 0 in array.facts.shape:
            return
        if self._by_tasks(array):
            array.counts = self._run_tasks(number, array, writer, record, journal)
        elif self._is_shared(array):
            writers = self._writers_of(array)
            job = SharedRechunk(
                *(plan, array, target, self.team, writers),
                collects=self.writers < writers,
                written=record.written,
                done=record.done,
            )
            array.counts = job.run()
        else:

            def alone() -> tuple[Counts, np.ndarray]:
                assert target is not None
                scratch, kept = os.path.dirname(self.publication.destination), self._kept(number, plan, record)
                one = Rechunk(
                    *(plan, array.reader, target, array.axes, scratch),
                    written=record.written,
                    done=record.done,
                    kept=kept,
                )
                counts = one.run()
                if kept is not None:
                    kept.remove()
                return counts, record.digests

            array.counts, array.digests = self.team.first(alone)
        array.reader.close()

    def _kept(self, number: int, plan: RechunkPlan, record: Record) -> KeptWork | None:
        """Where an array's work outlives a kill, if another run is to go on with it and there is something to do."""
        if not self.resume or (record.done is not None and record.done.all()):
            return None
        with contextlib.suppress(OSError):  # or no room: what is under way at a kill will be done again
            self._check_space(plan.memory_bytes)
            return KeptWork(self.publication.work, number, plan)
        return None

    def _run_tasks(
        self, number: int, array: MovedArray, writer: StoreWriter | None, record: Record, journal: Journal | None
    ) -> Counts:
        """One array, by the executor's workers."""
        assert self.executor is not None and writer is not None
        target, work = self._shared(array, writer), self.publication.work
        records = [
            self._record(len(self.arrays) + number, one.target, journal, lambda _: None) for one in array.passes[:-1]
        ]
        passes = [one.passes for one in self.arrays]
        counts = rechunk_by_tasks(
            self.executor,
            array.passes,
            SourceArray.of(self.source, array.path, array.reader),
            target,
            array.axes,
            [*records, record],
            between=os.path.join(work, names_between(passes).get(number, "")),
            zarr_format=getattr(self.maker, "zarr_format", 2),
            write=writer.array(self._to(array)).write,
            max_mem=self.max_mem,
        )
        remove_between(work, names_between(passes, number + 1).values())
        return counts

    def _shared(self, array: MovedArray, writer: StoreWriter) -> SharedTarget:
        """Where an executor's workers find an array."""
        facts = replace(array.facts, attributes={}, names=None)
        shared = writer.shared(self._to(array), facts)
        place = replace(self.destination, is_added=False)
        return EncodedTarget(place, writer.array(self._to(array)).where, facts) if shared is None else shared

    def _record(self, number: int, grid: Grid, journal: Journal | None, advance: Callable[[int], None]) -> Record:
        """What is known of the chunks of an array that has this number in the journal, and who is told of them."""
        add = None if journal is None else functools.partial(journal.add, number)
        return Record.of(grid, self.finished.pop(number, None), add, advance)

    def _target(self, array: MovedArray, writer: StoreWriter | None, held: contextlib.ExitStack) -> ArrayWriter | None:
        """Where an array's chunks go, or what encodes them as long as `held` is open; None where this process does
        neither."""
        if writer is not None:
            target = writer.array(self._to(array))
        elif self._is_shared(array) and self._writers_of(array) > 1:
            target = held.enter_context(temporary_array(self.maker, array.facts))
        else:
            return None
        if target.grid != array.grid:
            raise StoreError(
                f"{target.where} was planned in chunks of {array.grid.chunks}, and is made in chunks of "
                f"{target.grid.chunks}"
            )
        return target

    def _copy_others(self, writer: StoreWriter | None) -> None:
        """What no mover can hold, within one format, by the first process, which then looks whether the source is what
        it was."""
        if self.team.rank > 0:
            return
        tree = self.tree
        for path, facts in [("", tree)] if isinstance(tree, ArrayFacts) else tree.arrays():
            if facts.dtype is not None:
                continue
            copy = getattr(writer, "copy_as_is", None)
            if copy is not None:  # else it is among the losses
                copy("/".join(word for word in (self.destination.created, path) if word), self.reader, path)
        if self.reader.fingerprint() != self.fingerprint:
            raise StoreError(f"{self.source.text} has been changed while it was read; nothing was published")

    def _verify(self, writer: StoreWriter | None, watcher: Watcher) -> None:
        """Collective. Reads back every chunk and compares its digest with that of what the source held."""
        began = time.perf_counter()
        watcher.phase("verifying", self.report.array_bytes)

        def compare_all() -> None:
            if writer is None:
                return
            writer.sync()
            for array, plan in zip(self.arrays, self.plans):
                if 0 not in array.facts.shape:
                    target, skipped = writer.array(self._to(array)), skipped_by(array.reader)
                    shared = self._shared(array, writer) if self._by_tasks(array) else None
                    if self.executor is None or shared is None or isinstance(shared, EncodedTarget):
                        compare = ReadBack(target, skipped, array.digests, watcher.advance)
                        mine = itertools.islice(target.grid.indices(), self.team.rank, None, self.writers)
                        compare.all(mine, plan.threads)
                    else:
                        last, found = array.passes[-1], array.digests
                        how = last, shared, found, skipped, self.max_mem, watcher.advance
                        read_back_by_tasks(self.executor, *how)

        self.team.together(compare_all)
        self.report.verified, self.report.verify_seconds = True, time.perf_counter() - began
