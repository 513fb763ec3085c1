"""Out-of-core moves between stores: window by window through memory, published at the end, within a memory ceiling.

For each window of the index space: read the source shards' sub-boxes, redistribute them in memory with the engine that
the team stands for, write the destination's sub-boxes. The destination appears by one rename after everything is on the
disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, _report
from .._api import plan
from .._core import Layout
from .._mistakes import check, flag
from .._report import TimeReport
from .._words import size_in_bytes
from ..errors import ArgumentError, DTypeError, MemoryLimitError, StoreError, VerificationError
from . import memory
from .boxes import Files, Work
from .layout_json import NAME as LAYOUT_JSON
from .move_report import MoveReport
from .publish import Publication, file_name, refuse_overlap
from .random_access import fingerprint_of
from .store import (
    Store,
    destination_layout,
    finish_store,
    is_file_name,
    make_store,
    of_other_formats,
    open_store,
    write_layout_json,
)
from .team import Team, team_of
from .windows import Side, choose_window, count_motions, count_windows, each_window

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from .chunk_words import Chunks

_ALIGNMENT = 64
# What a move holds beside its windows: measured in tests/python/test_cli_memory.py, with room to spare.
_BASE_BYTES = {"threads": 6 << 20, "mpi": 12 << 20}
_PART_BYTES = 4 << 10  # Python's objects and the plan's, a part
_MOTION_BYTES = 2 << 10  # a bound motion
_THREAD_BYTES = 512 << 10  # a helper's stack and the allocator's arena
_SMALLEST_WINDOW_BYTES = 64 << 10
_LARGEST_VERIFY_BYTES = 16 << 20


class Watcher:
    """Who looks at a move's progress. This one does nothing with it."""

    def begin(self, report: MoveReport) -> None:
        pass

    def phase(self, name: str, total_bytes: int) -> None:
        pass

    def advance(self, done_bytes: int) -> None:
        pass


Moved = Any
"""A `MoveReport` or a `StoreMoveReport`: the formats of both ends say which, and programs know those."""


def move(
    source: str | os.PathLike,
    destination: str | os.PathLike,
    to: Layout | str | None = None,
    *,
    axes: Sequence[int] | None = None,
    chunks: Chunks | None = None,
    shards: Chunks | None = None,
    codecs: Sequence[str] | None = None,
    zarr_format: int | None = None,
    max_mem: int | str | None = None,
    verify: bool = False,
    threads: int | None = None,
    force: bool = False,
    resume: bool = False,
    dry_run: bool = False,
    lossy: bool = False,
    report: bool = False,
    executor: Executor | None = None,
    comm: Any = None,
    team: Team | None = None,
    watcher: Watcher | None = None,
) -> Moved:
    """Moves the array of one store into another, or a group with all that is in it, whole or not at all, and tells what
    that took in a `MoveReport`.

    A store is a `.npy` file, or a folder of one `.npy` a rank with a `layout.json`; a destination whose name ends in
    .npy is a file and gathers everything, any other a folder. `to`: the layout of the destination's folder, a `Layout`
    or its text. `axes` permutes the dimensions as `numpy.transpose` does. `max_mem`: bytes (or "256MiB") that this
    process may take for it. `verify`: reads both back and compares them before the destination appears. `threads`: None
    is as many as the process may use. `force` replaces a file, or a folder of shards in which there is nothing else.
    `report`: tells beside what was measured what `model.predict` says of the copies from layout to layout, window by
    window; what the files take is measured, not predicted.

    Where an end is of another format, "era5.zarr/t2m", "run.h5::/fields/u", "model.nc", "x.safetensors::weight", arrays
    go chunk by chunk: `chunks` and `shards` (Zarr 3) are extents, (8760, 8, 8), "8760x8x8", or by the names of
    dimensions, "time=8760,lat=8"; with chunks "none" elements lie one after the other (HDF5, NetCDF). `codecs` are
    words in the order in which they are applied, ("shuffle", "zstd:3"), () for none; `zarr_format` is 2 or 3. What is
    not said stays as it is in the source. A group goes with `to` to a folder of shards for each array: words of `to`,
    as text, are those of an array's first dimensions, further ones are whole, and what an array has no dimension for
    holds copies. `dry_run` tells what would be done and writes nothing. `resume` goes on where a killed run has been,
    and keeps what there is if this one fails. What the destination's format cannot hold is refused, or with `lossy`
    left behind and told. What is named within an HDF5 or NetCDF file that is there is added to it: in a copy, which
    takes its place if nobody has changed it or has it open for writing; `force` replaces a dataset that is there, and
    nothing else. Then a `StoreMoveReport` is what comes back, and `report` is not for it. A source of any format may be
    a URL, of which ranges of bytes are read. A destination at a URL (not http://) is uploaded from a temporary copy
    (TMPDIR): `verify` reads both back, and a folder that `force` replaces is lost if the upload fails.

    With `executor`, any of `concurrent.futures` such as Dask's `client.get_executor()`, its workers do the work, in
    tasks that may run anywhere and again: an array goes box by box, or through a temporary store beside the hidden
    output where that moves fewer bytes. `max_mem` is then what all tasks hold that run in one process at once (one that
    does not fit beside the others waits for them), and `threads` is each task's (None is 1). Workers must see source
    and destination, or for a URL the temporary files, under the same paths. They write themselves, but for chunks of
    HDF5 and NetCDF, which they hand back encoded: half of `max_mem` is for those. A worker that is lost costs what it
    was doing where the executor starts that again, as Dask does; else it is a TransportError, and `resume` goes on.
    This process plans, gathers digests and publishes; the report has its peak memory.

    With an mpi4py communicator the call is collective and all ranks share the work. Without one this process does it
    alone. Of a job of several processes that is refused: they would all do the same move, and a move that takes the job
    to be meant would wait for ever where one rank alone asks for it. Give `comm=MPI.COMM_WORLD` to share it, or
    `comm=MPI.COMM_SELF` to have this process do it.

    Raises ArgumentError, ShapeError, LayoutError, StoreError, MemoryLimitError and VerificationError, with `comm` on
    every rank alike, and DisagreementError where ranks ask for different moves; then nothing has been published.

    >>> import numpy as np
    >>> np.save("a.npy", np.arange(12.0).reshape(4, 3))
    >>> report = move("a.npy", "shards", "(CYCLIC, *) on 2", max_mem="64MiB")
    >>> np.load("shards/rank-00001.npy")[:, 0]
    array([3., 9.])
    """
    watcher = Watcher() if watcher is None else watcher
    team = team_of(comm) if team is None else team
    words = chunks, shards, codecs, zarr_format, executor
    asked = resume or dry_run or lossy or any(word is not None for word in words)
    by_chunks = team.together(lambda: asked or of_other_formats(source, destination))
    team.same(f"moving {'chunk by chunk' if by_chunks else 'part by part'}")
    if by_chunks:
        from .move_words import move_between_formats

        return move_between_formats(
            source,
            destination,
            to=to,
            axes=axes,
            chunks=chunks,
            shards=shards,
            codecs=codecs,
            zarr_format=zarr_format,
            max_mem=max_mem,
            verify=verify,
            threads=threads,
            force=force,
            resume=resume,
            dry_run=dry_run,
            lossy=lossy,
            report=report,
            executor=executor,
            team=team,
            watcher=watcher,
        )
    memory.reset_peak()
    idle = memory.resident_bytes()
    began = time.perf_counter()

    def prepare() -> tuple[str, str, int, int]:
        check("source", source, "str | PathLike")
        check("destination", destination, "str | PathLike")
        check("to", to, "Layout | str | None")
        check("axes", axes, "Sequence[int] | None")
        check("threads", threads, "int | None")
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads is {threads}; it must be at least 1")
        for name, value in (("verify", verify), ("force", force), ("report", report)):
            flag(value, name)
        ceiling = memory.default_ceiling(team.size) if max_mem is None else size_in_bytes(max_mem)
        return file_name(source), file_name(destination), ceiling, threads or _threads(team)

    source, destination, ceiling, threads_here = team.together(prepare)
    # Machines, and what a process may have of one, may differ: all plan for the least memory and the most threads.
    ceiling, threads_here = -team.max(-ceiling), team.max(threads_here)
    team.same(
        f"moving {source} to {destination} ({to=}, {axes=}, {max_mem=}, {verify=}, {threads=}, {force=}, {report=})"
    )
    job = _Job(source, destination, to, axes, ceiling, threads_here, force, team)
    told = job.report
    with job.publication:
        told.removed_partials = team.broadcast(job.publication.stale_removed)
        watcher.begin(told)
        job.create()
        job.carry(watcher, verify, report)
        if verify:
            started = time.perf_counter()
            team.first(job.refuse_changed)
            job.verify(watcher)
            told.verified, told.verify_seconds = True, time.perf_counter() - started
        job.publish()
    told.seconds = time.perf_counter() - began - told.verify_seconds
    told.peak_memory_bytes = team.max(max(0, memory.peak_resident_bytes() - idle))
    return told


class _Job:
    """One move from check to publication. Everything is refused
    here, in the constructor, before anything is written."""

    def __init__(
        self,
        source: str,
        destination: str,
        to: Layout | str | None,
        axes: Sequence[int] | None,
        max_mem: int,
        threads: int,
        force: bool,
        team: Team,
    ) -> None:
        self.team, self.threads = team, threads
        as_file = is_file_name(destination)
        self.publication = Publication(destination, folder=not as_file, force=force)
        team.first(lambda: self._check_places(source, destination))
        self.source = open_store(source, team)
        self._source_files = [array.path for array in self.source.arrays]
        if self.source.kind == "folder":
            self._source_files.append(os.path.join(source, LAYOUT_JSON))
        self._fingerprint = team.first(lambda: fingerprint_of(self._source_files))
        self._check_axes(axes)
        shape = tuple(self.source.shape[a] for a in self.axes)
        if to is None and not as_file:
            raise ArgumentError(
                "a folder of shards needs a layout: say it with --to, for example --to "
                f'"({", ".join(["BLOCK"] + ["*"] * (len(shape) - 1))}) on 4"'
            )
        self.layout = destination_layout(to, shape, as_file)
        self.dtype = self.source.dtype
        if self.dtype.hasobject:
            raise DTypeError("arrays of Python objects cannot be moved")
        self.as_file = as_file
        # To the engine an element is its bytes, so any fixed-size type moves, of either byte order.
        self.raw = np.dtype((np.void, self.dtype.itemsize))
        self.plan = plan(self.source.layout, self.layout, self.raw, axes=list(self.axes))
        self.total = self.dtype.itemsize * self.layout.size
        self.written = self.total * self.layout.replicas
        messages, local = self._predict()
        self.report = MoveReport(
            source,
            destination,
            str(self.source.layout),
            str(self.layout),
            self.source.shape,
            str(self.dtype),
            team.engine,
            team.size,
            threads,
            self.total,
            self.written,
            local,
            messages,
        )
        self.report.max_mem_bytes = max_mem
        team.first(self._check_space)
        self._choose_window(max_mem)
        team.first(self.publication.remove_stale)

    def _check_places(self, source: str, destination: str) -> None:
        refuse_overlap(source, destination)
        self.publication.check()

    def _check_axes(self, axes: Sequence[int] | None) -> None:
        n = len(self.source.shape)
        self.axes = tuple(range(n)) if axes is None else tuple(axes)
        if sorted(self.axes) != list(range(n)):
            raise ArgumentError(f"axes {','.join(map(str, self.axes))} is no permutation of the array's {n} dimensions")

    def _predict(self) -> tuple[int, int] | tuple[None, None]:
        """Messages and the bytes that stay with their rank; None
        where the plan has too many motions to count them all."""
        messages, local = 0, 0
        source = self.source.layout
        if source.rank_count * self.layout.rank_count > 1 << 20:
            return None, None
        for rank in source.ranks:
            for motion in self.plan.sends(rank):
                if motion.source == motion.destination:
                    local += motion.elements * self.dtype.itemsize
                else:
                    messages += 1
        return messages, local

    def _choose_window(self, max_mem: int) -> None:
        """The window that fits the ceiling together with everything
        else a move holds; refused if even a small one does not."""
        source, to, itemsize, size = self.source.layout, self.layout, self.dtype.itemsize, self.team.size
        self.sides = Side.of(source), Side.of(to, self.axes)
        parts = -(-source.rank_count // size) + -(-to.rank_count // size)
        fixed = _BASE_BYTES[self.team.engine] + parts * _PART_BYTES + (self.threads - 1) * _THREAD_BYTES
        copies = source.replicas + to.replicas
        # Under MPI the engine's own buffers come on top: half as much as the window, bounded by the engine's max_mem.
        buffers = 3 if self.team.engine == "mpi" else 2
        smallest = max(itemsize, min(_SMALLEST_WINDOW_BYTES, self.total))
        self.arenas = _Arena(), _Arena()
        budget = max((max_mem - fixed) * 2 // (buffers * copies), smallest)
        while True:
            self.window = choose_window(self.source.shape, itemsize, *self.sides, budget)
            volume = itemsize
            for extent in self.window:
                volume *= extent
            held = volume * copies
            # A motion has a part on each side, and the engine may hold `workspace` beside the window.
            motions = count_motions(self.window, *self.sides) // size * _MOTION_BYTES
            need = fixed + held * buffers // 2 + motions
            if need <= max_mem:
                self.workspace = max_mem - fixed - held
                need = fixed + held + self._workspace_of_a_window()
                if need <= max_mem:
                    break
            if budget <= smallest:
                least = -(-need // (1 << 20))
                raise MemoryLimitError(
                    f"this move cannot be done within {max_mem / (1 << 20):g} MiB: it needs at least {least} MiB "
                    f"for {source.rank_count} source and {to.rank_count} destination parts; allow --max-mem {least}MiB"
                )
            budget = max(smallest, min(budget, volume) * 2 // 3)
        self.verify_bytes = min((max_mem - fixed) // 6, _LARGEST_VERIFY_BYTES)
        self.report.window_shape = self.window
        self.report.windows = count_windows(self.source.shape, self.window)

    def _workspace_of_a_window(self) -> int:
        """What the engine holds when it is bound to the first window: known before anything is written. Collective."""
        for lo, hi in each_window(self.source.shape, self.window, self._order()):
            target = make_store("", self.as_file, self.layout, self.dtype, self.team, create=False)
            window = self._open_window(target, lo, hi)
            try:
                mover = self.bind(window)
            except MemoryLimitError:
                return self.workspace + (1 << 20)
            return self.team.max(mover.workspace_bytes)
        return 0

    def _check_space(self) -> None:
        self.publication.check_space(self.written + 4096 * (1 if self.as_file else self.layout.rank_count + 1))

    # -- doing it ---------------------------------------------------------------------------------------------------

    def create(self) -> None:
        place = self.team.first(self.publication.create)
        self.target = make_store(place, self.as_file, self.layout, self.dtype, self.team)

    def bind(self, window: _Window) -> _core.Mover:
        """The engine, bound to a window's parts. Collective."""
        made = plan(window.source_layout, window.target_layout, self.raw, axes=list(self.axes))
        if self.team.engine == "mpi":
            return made.bind(
                window.sources, window.targets, comm=self.team.comm, placement="wrap", max_mem=self.workspace
            )
        return made.bind(window.sources, window.targets, threads=self.threads)

    def _order(self) -> tuple[int, ...]:
        return tuple(reversed(self.sides[1].fastest_first))

    def _open_window(self, target: Store, lo: Sequence[int], hi: Sequence[int]) -> _Window:
        source_layout, boxes, shapes = self.source.window(lo, hi)
        to_lo, to_hi = [lo[a] for a in self.axes], [hi[a] for a in self.axes]
        target_layout, target_boxes, target_shapes = target.window(to_lo, to_hi)
        sources, source_bytes = self.arenas[0].carve(shapes, self.source.order, self.raw)
        targets, target_bytes = self.arenas[1].carve(target_shapes, target.order, self.raw)
        return _Window(
            source_layout,
            target_layout,
            sources,
            targets,
            [(boxes[rank], source_bytes[rank]) for rank in boxes],
            [(target_boxes[rank], target_bytes[rank]) for rank in target_boxes],
        )

    def carry(self, watcher: Watcher, verify: bool, report: bool) -> None:
        """Moves everything, window by window, and brings it to the
        disk; out of the page cache too if it will be verified."""
        timing = _Timing(self) if report else None
        watcher.phase("moving", self.written)
        error: BaseException | None = None
        key: Any = None
        mover: _core.Mover | None = None
        with Files(self.threads) as files:
            for lo, hi in each_window(self.source.shape, self.window, self._order()):
                try:
                    if error is None:
                        window = self._open_window(self.target, lo, hi)
                        began = time.perf_counter()
                        files.read(window.reads)
                        self.report.read_seconds += time.perf_counter() - began
                except Exception as caught:
                    error = caught
                self.team.agree(error)
                # Windows that look alike, in the same memory, need no new mover. All processes decide alike.
                looks = window.source_layout, window.target_layout, self.arenas[0].version, self.arenas[1].version
                if mover is None or self.team.max(looks != key):
                    mover = None  # its memory goes before the next one's comes
                    mover, key = self.bind(window), looks
                    if timing is not None:
                        timing.price(window, mover)
                began = time.perf_counter()
                mover()
                if timing is not None:
                    timing.add(time.perf_counter() - began)
                self.report.moved_bytes += mover.moved_bytes
                try:
                    began = time.perf_counter()
                    files.write(window.writes)
                    self.report.write_seconds += time.perf_counter() - began
                except Exception as caught:
                    error = caught  # the others hear of it before the next window
                done = self.layout.replicas * self.dtype.itemsize
                for a, b in zip(lo, hi):
                    done *= b - a
                watcher.advance(done)
        self.team.agree(error)
        if timing is not None:
            self.report.report = timing.told()
        self.report.read_seconds = self.team.max(self.report.read_seconds)
        self.report.write_seconds = self.team.max(self.report.write_seconds)
        self.report.moved_bytes = self.team.sum(self.report.moved_bytes)
        if self.report.moved_bytes != self.written:
            raise VerificationError(
                f"{self.report.moved_bytes} bytes were moved where {self.written} were predicted; nothing was published"
            )
        watcher.phase("bringing to the disk", 0)
        started = time.perf_counter()
        finish_store(self.target, self.team, forget=verify)
        self.report.sync_seconds = time.perf_counter() - started

    def verify(self, watcher: Watcher) -> None:
        """Reads both stores back and compares them, with NumPy and
        the indices that the layouts' ranks own: no engine, no plan."""
        watcher.phase("verifying", self.written)
        window = choose_window(self.source.shape, self.dtype.itemsize, *self.sides, self.verify_bytes)

        def compare() -> None:
            with Files(self.threads) as files:
                for n, (lo, hi) in enumerate(each_window(self.source.shape, window, self._order())):
                    if n % self.team.size == self.team.rank:
                        self._verify_window(files, self.arenas, lo, hi)
                    watcher.advance(self.written // max(1, count_windows(self.source.shape, window)))

        self.team.together(compare)

    def _verify_window(
        self, files: Files, arenas: tuple[_Arena, _Arena], lo: tuple[int, ...], hi: tuple[int, ...]
    ) -> None:
        raw = self.raw
        whole = arenas[0].carve({0: tuple(b - a for a, b in zip(lo, hi))}, "C", raw)[0][0]
        there = self.source.layout.window(lo, hi)
        for rank, box, shape in self.source.boxes(lo, hi):
            part, view = arenas[1].carve({0: shape}, self.source.order, raw)
            files.read([(box, view[0])])
            whole[there.indices(rank)] = part[0]
        permuted = whole.transpose(self.axes)
        to_lo, to_hi = [lo[a] for a in self.axes], [hi[a] for a in self.axes]
        there = self.layout.window(to_lo, to_hi)
        for rank, box, shape in self.target.boxes(to_lo, to_hi):
            part, view = arenas[1].carve({0: shape}, self.target.order, raw)
            files.read([(box, view[0])])
            wanted = permuted[there.indices(rank)]
            if wanted.shape != shape:
                raise VerificationError(f"{box.array.path}: the layout's window does not have shape {shape}")
            if not _same_bytes(part[0], wanted):
                raise VerificationError(
                    f"verification failed: {os.path.basename(box.array.path)} differs from the source within "
                    f"the indices [{', '.join(map(str, to_lo))}] to [{', '.join(map(str, to_hi))}]; nothing was "
                    "published"
                )

    def publish(self) -> None:
        def finish() -> None:
            if self.target.kind == "folder":
                write_layout_json(self.target)
            self.refuse_changed()
            self.publication.publish()

        self.team.first(finish)

    def refuse_changed(self) -> None:
        """The first process's: raises StoreError where the source is not what it was."""
        if fingerprint_of(self._source_files) != self._fingerprint:
            raise StoreError(f"{self.report.source} has been changed while it was read; nothing was published")


class _Timing:
    """What the copies of all windows take here, and what was predicted of them. Its making and `told` are
    collective."""

    def __init__(self, job: _Job) -> None:
        self._job, self._seconds, self._carried = job, 0.0, (0, "direct")
        self._predicted = self._of_one = _report.Guess()  # of the windows so far, and of one as they are now
        self._each = None if job.team.comm is None else _report.ranks_per_node(job.team.comm)

    def price(self, window: _Window, mover: _core.Mover) -> None:
        """Predicts what this window takes, and those that look like it."""
        job = self._job
        made = plan(window.source_layout, window.target_layout, job.raw, axes=list(job.axes))
        if job.team.comm is None:
            self._of_one = _report.predicted(made, "threads", threads=job.threads)
            return
        self._carried = max(self._carried, _report.way_of(mover))
        if made.world_size > job.team.size:
            why = f"{made.world_size} ranks of the layouts share {job.team.size} processes"
            self._of_one = _report.Guess(None, False, why)
        else:
            self._of_one = _report.share_of(made, _report.way_of(mover)[1], job.team.rank, self._each)

    def add(self, seconds: float) -> None:
        """A window was moved."""
        self._seconds += seconds
        self._predicted = self._predicted.then(self._of_one)

    def told(self) -> TimeReport:
        job = self._job
        if job.team.comm is None:
            return TimeReport("threads", job.written, self._seconds, *self._predicted)
        return _report.of_all(job.team.comm, self._carried, job.written, self._seconds, lambda _: self._predicted)


@dataclass
class _Window:
    """One window's layouts, its parts in memory, and where they are in the files: pairs of `Box` and bytes."""

    source_layout: Layout
    target_layout: Layout
    sources: dict[int, np.ndarray]
    targets: dict[int, np.ndarray]
    reads: list[Work]
    writes: list[Work]


class _Arena:
    """One buffer, used again for every window: parts are carved
    from its start, so only what is used becomes resident."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)
        self.version = 0  # changes when the memory does

    def carve(
        self, shapes: Mapping[int, tuple[int, ...]], order: Any, dtype: np.dtype
    ) -> tuple[dict[int, np.ndarray], dict[int, memoryview]]:
        """Arrays of these shapes and memoryviews of their bytes, both by key."""
        places: dict[int, tuple[int, int]] = {}
        end = 0
        for key, shape in shapes.items():
            size = dtype.itemsize
            for extent in shape:
                size *= extent
            places[key] = end, end + size
            end += -(-size // _ALIGNMENT) * _ALIGNMENT
        if end > len(self._bytes):
            self._bytes = np.empty(0, np.uint8)  # the old memory goes before the new one comes
            self._bytes = np.empty(end, np.uint8)
            self.version += 1
        view = self._bytes.data
        arrays: dict[int, np.ndarray] = {}
        views: dict[int, memoryview] = {}
        for key, (start, stop) in places.items():
            views[key] = view[start:stop]
            arrays[key] = self._bytes[start:stop].view(dtype).reshape(shapes[key], order=order)
        return arrays, views


def _threads(team: Team) -> int:
    """As many as this process may use, of the processors that it shares with its team."""
    return min(16, max(1, memory.usable_processors() // team.size))


def _same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of raw bytes are equal, in pieces so that no large temporary is made. Shapes are equal."""
    if a.size == 0:
        return True
    itemsize = a.dtype.itemsize
    rows = max(1, (1 << 20) // (a[0].size * itemsize))
    for first in range(0, a.shape[0], rows):
        x, y = (np.ascontiguousarray(side[first : first + rows]).reshape(-1).view(np.uint8) for side in (a, b))
        if not np.array_equal(x, y):
            return False
    return True
