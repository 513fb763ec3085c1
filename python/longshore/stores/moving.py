"""Out-of-core moves between stores: window by window through memory, published at the end, within a memory ceiling.

For each window of the index space: read the source shards' sub-boxes, redistribute them in memory with the engine that the
team stands for, write the destination's sub-boxes. The destination appears by one rename after everything is on the disk.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

import numpy as np

from .. import errors
from ..errors import ArgumentError, DTypeError, MemoryLimitError
from . import memory
from .boxes import Files
from .dense import DenseLayout, count, selector
from .publish import Publication, refuse_overlap
from .store import destination_layout, finish_store, is_file_name, make_store, open_store, write_layout_json
from .team import Alone
from .windows import Side, choose_window, count_motions, count_windows, each_window

_ALIGNMENT = 64
# What a move holds beside its windows: measured in tests/python/test_cli_memory.py, with room to spare.
_BASE_BYTES = {"threads": 6 << 20, "mpi": 12 << 20}
_PART_BYTES = 4 << 10  # Python's objects and the plan's, a part
_MOTION_BYTES = 2 << 10  # a bound motion
_THREAD_BYTES = 512 << 10  # a helper's stack and the allocator's arena
_SMALLEST_WINDOW_BYTES = 64 << 10
_LARGEST_VERIFY_BYTES = 16 << 20


class VerificationError(errors.StoreError):
    """The destination read back does not hold what the source holds."""


@dataclass
class MoveReport:
    """What a move did. Bytes are counted in destination elements written, replicas included."""

    source: str
    destination: str
    source_layout: str
    destination_layout: str
    shape: tuple
    dtype: str
    engine: str
    processes: int
    threads: int
    array_bytes: int
    predicted_bytes: int
    predicted_local_bytes: int | None
    predicted_messages: int | None
    moved_bytes: int = 0
    windows: int = 0
    window_shape: tuple = ()
    seconds: float = 0.0
    sync_seconds: float = 0.0
    verified: bool = False
    verify_seconds: float = 0.0
    max_mem_bytes: int = 0
    peak_memory_bytes: int = 0
    removed_partials: list = field(default_factory=list)

    def as_dict(self):
        return {key: list(value) if isinstance(value, tuple) else value for key, value in self.__dict__.items()}


class Quiet:
    """Progress nobody looks at. A watcher has these methods."""

    def begin(self, report):
        pass

    def phase(self, name, total_bytes):
        pass

    def advance(self, done_bytes):
        pass


def move(
    source,
    destination,
    to=None,
    *,
    axes=None,
    max_mem=None,
    verify=False,
    threads=None,
    force=False,
    team=None,
    watcher=None,
):
    """Moves the array of one store into another. Collective over the team. Returns a `MoveReport`.

    `source` is a `.npy` file or a folder of shards; `destination` likewise, named by its ending. `to` is the layout of
    the destination's folder; a `.npy` file gathers everything. `axes` permutes the dimensions as `numpy.transpose`
    does. `max_mem` bounds this process's resident memory, in bytes, above what it is when the move begins."""
    team = Alone() if team is None else team
    watcher = Quiet() if watcher is None else watcher
    memory.reset_peak()
    idle = memory.resident_bytes()
    began = time.perf_counter()
    source, destination = os.fspath(source), os.fspath(destination)
    if max_mem is None:
        max_mem = memory.default_ceiling(team.size)
    if threads is None:
        threads = min(16, max(1, memory.usable_processors() // (1 if team.size == 1 else team.size)))
    job = _Job(source, destination, to, axes, max_mem, threads, force, team)
    report = job.report
    with job.publication:
        report.removed_partials = team.broadcast(job.publication.stale_removed)
        watcher.begin(report)
        job.create()
        job.carry(watcher, verify)
        if verify:
            started = time.perf_counter()
            job.verify(watcher)
            report.verified, report.verify_seconds = True, time.perf_counter() - started
        job.publish()
    report.seconds = time.perf_counter() - began - report.verify_seconds
    report.peak_memory_bytes = team.max(max(0, memory.peak_resident_bytes() - idle))
    return report


class _Job:
    """One move from check to publication. Everything is refused
    here, in the constructor, before anything is written."""

    def __init__(self, source, destination, to, axes, max_mem, threads, force, team):
        from .. import plan

        self.team, self.threads = team, threads
        as_file = is_file_name(destination)
        self.publication = Publication(destination, folder=not as_file, force=force)
        team.first(lambda: (refuse_overlap(source, destination), self.publication.check()))
        self.source = open_store(source, team)
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
        dense = DenseLayout.of(self.layout)
        self.total = self.dtype.itemsize
        for extent in shape:
            self.total *= extent
        self.written = self.total * dense.replicas
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
        self._choose_window(max_mem, dense)
        team.first(self.publication.remove_stale)

    def _check_axes(self, axes):
        n = len(self.source.shape)
        self.axes = tuple(range(n)) if axes is None else tuple(axes)
        if sorted(self.axes) != list(range(n)):
            raise ArgumentError(f"axes {','.join(map(str, self.axes))} is no permutation of the array's {n} dimensions")

    def _predict(self):
        """Messages and the bytes that stay with their rank; None
        where the plan has too many motions to count them all."""
        messages, local = 0, 0
        ranks = self.source.dense.processes
        if ranks * self.layout.rank_count > 1 << 20:
            return None, None
        for p in range(ranks):
            for motion in self.plan.sends(self.source.dense.rank_of_process(p)):
                if motion.source == motion.destination:
                    local += motion.elements * self.dtype.itemsize
                else:
                    messages += 1
        return messages, local

    def _choose_window(self, max_mem, dense):
        """The window that fits the ceiling together with everything
        else a move holds; refused if even a small one does not."""
        source_dense, itemsize, size = self.source.dense, self.dtype.itemsize, self.team.size
        self.sides = Side.of(source_dense), Side.of(dense, self.axes)
        parts = -(-source_dense.processes // size) + -(-dense.processes // size)
        fixed = _BASE_BYTES[self.team.engine] + parts * _PART_BYTES + (self.threads - 1) * _THREAD_BYTES
        copies = source_dense.replicas + dense.replicas
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
                    f"for {source_dense.processes} source and {dense.processes} destination parts; allow --max-mem {least}MiB"
                )
            budget = max(smallest, min(budget, volume) * 2 // 3)
        self.verify_bytes = min((max_mem - fixed) // 6, _LARGEST_VERIFY_BYTES)
        self.report.window_shape = self.window
        self.report.windows = count_windows(self.source.shape, self.window)

    def _workspace_of_a_window(self):
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

    def _check_space(self):
        self.publication.check_space(self.written + 4096 * (1 if self.as_file else self.layout.rank_count + 1))

    # -- doing it ---------------------------------------------------------------------------------------------------

    def create(self):
        place = self.team.first(self.publication.create)
        self.target = make_store(place, self.as_file, self.layout, self.dtype, self.team)

    def bind(self, window):
        """The engine, bound to a window's parts. Collective."""
        from .. import plan

        made = plan(window.source_layout, window.target_layout, self.raw, axes=list(self.axes))
        if self.team.engine == "mpi":
            return made.bind(
                window.sources, window.targets, comm=self.team.comm, placement="wrap", max_mem=self.workspace
            )
        return made.bind(window.sources, window.targets, threads=self.threads)

    def _order(self):
        return tuple(reversed(self.sides[1].fastest_first))

    def _open_window(self, target, lo, hi):
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

    def carry(self, watcher, verify):
        """Moves everything, window by window, and brings it to the
        disk; out of the page cache too if it will be verified."""
        watcher.phase("moving", self.written)
        error = key = mover = None
        with Files(self.threads) as files:
            for lo, hi in each_window(self.source.shape, self.window, self._order()):
                try:
                    if error is None:
                        window = self._open_window(self.target, lo, hi)
                        files.read(window.reads)
                except Exception as caught:
                    error = caught
                self.team.agree(error)
                # Windows that look alike, in the same memory, need no new mover. All processes decide alike.
                looks = window.source_layout, window.target_layout, self.arenas[0].version, self.arenas[1].version
                if self.team.max(looks != key):
                    mover = None  # its memory goes before the next one's comes
                    mover, key = self.bind(window), looks
                mover()
                self.report.moved_bytes += mover.moved_bytes
                try:
                    files.write(window.writes)
                except Exception as caught:
                    error = caught  # the others hear of it before the next window
                done = self.target.dense.replicas * self.dtype.itemsize
                for a, b in zip(lo, hi):
                    done *= b - a
                watcher.advance(done)
        self.team.agree(error)
        self.report.moved_bytes = self.team.sum(self.report.moved_bytes)
        if self.report.moved_bytes != self.written:
            raise VerificationError(
                f"{self.report.moved_bytes} bytes were moved where {self.written} were predicted; nothing was published"
            )
        watcher.phase("bringing to the disk", 0)
        started = time.perf_counter()
        finish_store(self.target, self.team, forget=verify)
        self.report.sync_seconds = time.perf_counter() - started

    def verify(self, watcher):
        """Reads both stores back and compares them, with NumPy
        and the plain twin of the layouts: no engine, no plan."""
        watcher.phase("verifying", self.written)
        window = choose_window(
            self.source.shape, self.dtype.itemsize, *self.sides, self.verify_bytes, _LARGEST_VERIFY_BYTES
        )

        def compare():
            with Files(self.threads) as files:
                for n, (lo, hi) in enumerate(each_window(self.source.shape, window, self._order())):
                    if n % self.team.size == self.team.rank:
                        self._verify_window(files, self.arenas, lo, hi)
                    watcher.advance(self.written // max(1, count_windows(self.source.shape, window)))

        self.team.together(compare)

    def _verify_window(self, files, arenas, lo, hi):
        raw = self.raw
        whole, _ = arenas[0].carve({0: tuple(b - a for a, b in zip(lo, hi))}, "C", raw)
        whole = whole[0]
        for p, box, shape in self.source.boxes(lo, hi):
            part, view = arenas[1].carve({0: shape}, self.source.order, raw)
            files.read([(box, view[0])])
            owned = self.source.dense.owned(p, lo, hi)
            whole[selector(owned, lo)] = part[0]
        permuted = whole.transpose(self.axes)
        to_lo, to_hi = [lo[a] for a in self.axes], [hi[a] for a in self.axes]
        for p, box, shape in self.target.boxes(to_lo, to_hi):
            part, view = arenas[1].carve({0: shape}, self.target.order, raw)
            files.read([(box, view[0])])
            owned = self.target.dense.owned(p, to_lo, to_hi)
            if tuple(count(indices) for indices in owned) != shape:
                raise VerificationError(f"{box.array.path}: the layout's window does not have shape {shape}")
            if not _same_bytes(part[0], permuted[selector(owned, to_lo)]):
                raise VerificationError(
                    f"verification failed: {os.path.basename(box.array.path)} differs from the source within the indices "
                    f"[{', '.join(map(str, to_lo))}] to [{', '.join(map(str, to_hi))}]; nothing was published"
                )

    def publish(self):
        def finish():
            if self.target.kind == "folder":
                write_layout_json(self.target)
            self.publication.publish()

        self.team.first(finish)


@dataclass
class _Window:
    """One window's layouts, its parts in memory, and where they are in the files: pairs of `Box` and bytes."""

    source_layout: object
    target_layout: object
    sources: dict
    targets: dict
    reads: list
    writes: list


class _Arena:
    """One buffer, used again for every window: parts are carved
    from its start, so only what is used becomes resident."""

    def __init__(self):
        self._bytes = np.empty(0, np.uint8)
        self.version = 0  # changes when the memory does

    def carve(self, shapes, order, dtype):
        """Arrays of these shapes and memoryviews of their bytes, both by key."""
        places, end = {}, 0
        for key, shape in shapes.items():
            size = dtype.itemsize
            for extent in shape:
                size *= extent
            places[key] = end, end + size
            end += -(-size // _ALIGNMENT) * _ALIGNMENT
        if end > len(self._bytes):
            self._bytes = None
            self._bytes = np.empty(end, np.uint8)
            self.version += 1
        view = memoryview(self._bytes)
        arrays, views = {}, {}
        for key, (start, stop) in places.items():
            views[key] = view[start:stop]
            arrays[key] = self._bytes[start:stop].view(dtype).reshape(shapes[key], order=order)
        return arrays, views


def _same_bytes(a, b):
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
