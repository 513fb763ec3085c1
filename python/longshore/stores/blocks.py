"""Moves between XArrays and files: `bind`.

A file's array is cut into pieces as it lies in the file, and every rank gets some pieces that follow each other. Window
by window, each rank has one piece in memory: one plan between the XArray's blocks and the pieces of a window carries
the elements, and every rank moves its own piece from or to the file in one go. So the file sees a few large accesses,
however the blocks are shaped, and memory for a window is all that it takes. (Collective I/O in two phases, scheduled;
the Data Mover, section 4.)
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core, _mpi, regions
from .._mistakes import check, flag
from .._words import size_in_bytes
from .._xarray import XArray
from ..errors import ArgumentError, MemoryLimitError, StoreError
from .ends import ElementsEnd, Hdf5End, end_of
from .memory import usable_processors
from .publish import Publication, file_name
from .team import Alone, MpiTeam, Team

_PIECE_BYTES = 8 << 20  # enough for a file to be fast, and it stays in a cache


@dataclass(frozen=True)
class _Window:
    """A piece for each rank, and the mover between them and the blocks."""

    mover: _core.Mover
    start: tuple[int, ...] = ()
    """Where this rank's piece begins in the file."""
    part: np.ndarray | None = None
    """This rank's piece in memory, if it has one."""


class _Flight:
    """One move from start() to wait(): what is open for it, and its steps."""

    def __init__(
        self,
        windows: list[_Window],
        file: Any,
        publication: Publication | None,
        proxy: bool,
        held: contextlib.ExitStack,
    ) -> None:
        self._windows, self._file, self._held = windows, file, held
        self.publication = publication
        """Of what is written; None: it is read."""
        self.failure: BaseException | None = None
        """What went wrong on this rank."""
        self._patient = False
        self._steps = self._carry_out()
        self._thread = threading.Thread(target=self._run, name="longshore-file-mover") if proxy else None
        if self._thread is not None:
            try:
                self._thread.start()
            except RuntimeError:  # wait() does the work, or test() a step at a time
                self._thread = None

    def _carry_out(self) -> Generator[bool, None, None]:
        """A step at a time. After a failure nothing is read or written
        any more, but the other ranks still get their windows."""
        try:
            for window in self._windows:
                if self.publication is None:
                    self._transfer(window)
                window.mover.start()
                while not self._patient and not window.mover.test():
                    yield False
                window.mover.wait()
                if self.publication is not None:
                    self._transfer(window)
                yield False
            if self._file is not None and self.failure is None:
                self._file.finish()
        except BaseException as error:
            self.failure = self.failure or error
            if not isinstance(error, Exception):
                raise

    def _transfer(self, window: _Window) -> None:
        if window.part is not None and self.failure is None:
            try:
                self._file.transfer(window.start, window.part)
            except Exception as error:
                self.failure = error

    def _run(self) -> None:
        self._patient = True
        for _ in self._steps:
            pass

    def test(self) -> bool:
        return next(self._steps, True) if self._thread is None else not self._thread.is_alive()

    def finish(self) -> None:
        self._run() if self._thread is None else self._thread.join()

    def close(self) -> None:
        """Lets go of everything; what was not published is gone."""
        if self._thread is not None:
            self._thread.join()
        self._steps.close()
        self._held.close()


class FileMover:
    """A move between an XArray and a file, to be carried out again and again: start(), wait().

    start() opens the file, or makes it under a hidden name. Then a thread of its own does the work (`proxy`), or test()
    does a bit at a time and wait() the rest; until then a source XArray must not be written, a destination not be
    touched. What was written takes its place in wait(), whole and on the disk, or not at all. A file that is read must
    not be replaced or changed meanwhile. With a communicator start() and wait() are collective, and an error of one
    rank is raised on all; what a destination holds after an error is undefined."""

    def __init__(
        self,
        end: ElementsEnd | Hdf5End,
        order: str,
        windows: list[_Window],
        team: Team,
        writing: bool,
        proxy: bool,
        force: bool,
    ) -> None:
        self._end, self._order, self._windows, self._team = end, order, windows, team
        self._writing, self._proxy, self._force = writing, proxy, force
        self._flight: _Flight | None = None

    def __del__(self) -> None:
        if self._flight is not None:
            self._flight.close()

    def start(self) -> None:
        """Begins the move. Raises StoreError where the file cannot be
        read or made, or is there already and `force` not given."""
        if self._flight is not None:
            raise ArgumentError("this move has been started already: wait() for it first")
        publication, open_file = None, self._reopen
        with contextlib.ExitStack() as held:
            if self._writing:
                publication = held.enter_context(Publication(self._end.path, folder=False, force=self._force))
                place = self._team.first(lambda: self._make(publication))
                part_here = any(window.part is not None for window in self._windows)
                open_file = (lambda: self._end.write(place)) if part_here else (lambda: None)
            file = self._team.together(open_file)
            if file is not None:
                held.callback(file.close)
            self._flight = _Flight(self._windows, file, publication, self._proxy, held.pop_all())

    def _make(self, publication: Publication) -> str:
        publication.check()
        publication.remove_stale()
        publication.check_space(self._end.bytes)
        place = publication.create()
        publication.based_on = self._end.make(place)
        return place

    def _reopen(self) -> Any:
        file = self._end.read()
        if file.order != self._order:
            file.close()
            raise StoreError(
                f"{self._end.path} is in {file.order} order; it was in {self._order} order when the mover was bound"
            )
        return file

    def test(self) -> bool:
        """Makes some progress; True when nothing is left but for
        wait() to publish the file. ArgumentError before start()."""
        return self._started("test").test()

    def wait(self) -> None:
        """Completes the move that start() began."""
        flight, self._flight = self._started("wait"), None
        try:
            flight.finish()
            self._team.agree(flight.failure)
            if flight.publication is not None:
                self._team.first(flight.publication.publish)
        finally:
            flight.close()

    def _started(self, what: str) -> _Flight:
        if self._flight is None:
            raise ArgumentError(f"{what}() without start(): no move has been started")
        return self._flight

    def __call__(self) -> None:
        """start() and wait()."""
        self.start()
        self.wait()

    @property
    def workspace_bytes(self) -> int:
        """Bytes this mover holds beyond the XArray."""
        largest = max((window.part.nbytes for window in self._windows if window.part is not None), default=0)
        return largest + sum(window.mover.workspace_bytes for window in self._windows)

    @property
    def moved_bytes(self) -> int:
        """Bytes that one move writes here: into the file, or into the XArray's blocks."""
        return sum(window.mover.moved_bytes for window in self._windows)

    @property
    def path(self) -> str:
        """Which way the data takes, in words."""
        text = f"{'to' if self._writing else 'from'} {self._end.path} in {len(self._windows)} windows"
        return text + (f"; the first: {self._windows[0].mover.path}" if self._windows else "")

    def __repr__(self) -> str:
        return f"<longshore.FileMover: {self.path}>"


def bind(
    source: XArray | str | os.PathLike,
    destination: XArray | str | os.PathLike,
    *,
    comm: Any = None,
    dataset: str | None = None,
    offset: int | None = None,
    order: str | None = None,
    domain: _core.Region | None = None,
    ghost: bool = False,
    proxy: bool = False,
    force: bool = False,
    threads: int | None = None,
    max_mem: int | str | None = None,
) -> FileMover:
    """Ties an XArray to a file that it is saved to, or loaded from: a mover with start(), test() and wait().

    One of the two is an XArray; the other names a file that holds one array over the region `domain` (None: the blocks'
    bounding region). A file whose name ends in .npy is that; one in .h5 or .hdf5 is HDF5, through h5py, and `dataset`
    names the dataset in it; with `offset` it is raw bytes, and the elements begin there. `order`: how the elements of a
    raw or of a written file lie, "C" (None) or "F".

    Saved is what the blocks own, without ghost cells: every point of the domain must belong to one block. The file is
    new, and zero before the offset; it replaces another only with `force`. In an HDF5 file that is replaced only the
    dataset is new: everything else is copied from the old one, which must stay as it is until wait(). Loaded is what
    the blocks have of the domain, with ghost=True their ghost cells too; all else keeps what it holds. dtypes must be
    the same.

    With an mpi4py communicator the call is collective, the XArray must be made with it, and all ranks read and
    write side by side (HDF5 is written by rank 0, to which the others send). Without one, `threads` (None: as many
    as the process may use) share the work. `proxy`: a thread of the mover's own does it while the caller computes
    (wait() does it where no thread can be started); with `comm` MPI must have been initialised with
    MPI_THREAD_MULTIPLE, as mpi4py does. `max_mem`: bytes (or "64MiB") that a rank may take for it; None is about
    10 MiB.

    Raises ArgumentError, ShapeError, DTypeError, StoreError and MemoryLimitError, with `comm` on every rank alike, and
    DisagreementError where ranks ask for different things.

    >>> blocks = FloorPlan.even(Region.of_shape((6, 4)), 3)
    >>> u = XArray(blocks, "float64", ghost=1)
    >>> mover = stores.bind(u, path, force=True)
    >>> mover.start(); mover.wait()  # as often as one likes
    >>> np.load(path).shape
    (6, 4)
    """
    team: Team = Alone()
    if comm is not None:
        _mpi.open_comm(comm)
        team = MpiTeam(comm)
    writing = isinstance(source, XArray)

    def prepare() -> tuple[XArray, _core.Region, ElementsEnd | Hdf5End, str, tuple[int, ...], int]:
        for what, value in (("ghost", ghost), ("proxy", proxy), ("force", force)):
            flag(value, what)
        check("domain", domain, "Region | None")
        check("offset", offset, "int | None")
        check("dataset", dataset, "str | None")
        check("threads", threads, "int | None")
        array, name = (source, destination) if writing else (destination, source)
        if not isinstance(array, XArray) or not isinstance(name, (str, os.PathLike)):
            raise ArgumentError(
                "one of source and destination is an XArray, the other the name of a file; these are "
                f"{type(source).__name__} and {type(destination).__name__}"
            )
        if (array.rank is None) != (comm is None):
            raise ArgumentError(
                "the XArray has the blocks of "
                + (
                    "all ranks; make it with comm=, too"
                    if comm is not None
                    else f"rank {array.rank} alone; give the comm= it was made with"
                )
            )
        if comm is not None and threads is not None:
            raise ArgumentError("threads= is for the threads engine; with comm= every rank moves its own part")
        if comm is not None and proxy:
            from mpi4py import MPI

            if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
                raise ArgumentError(
                    "a proxy calls MPI beside this thread: initialise MPI with MPI_THREAD_MULTIPLE, or bind without it"
                )
        if writing and ghost:
            raise ArgumentError("ghost= is for loading; ghost cells are not saved")
        if force and not writing:
            raise ArgumentError("force= is for saving")
        where = array.blocks.bounding if domain is None else domain
        workers = 1 if comm is not None else threads or min(16, usable_processors())
        end = end_of(
            os.path.abspath(file_name(name)),
            where.shape,
            array.dtype,
            workers,
            order=order,
            offset=offset,
            dataset=dataset,
        )
        if writing:
            check_cover(array, where)
            Publication(end.path, folder=False, force=force).check()
            return array, where, end, order or "C", (1,) * where.ndim, size_in_bytes(max_mem)
        file = end.read()
        file.close()
        return array, where, end, file.order, file.grain, size_in_bytes(max_mem)

    array, where, end, file_order, grain, limit = team.together(prepare)
    team.same(
        f"{'saving to' if writing else 'loading from'} {end.path} over {where} ({offset=}, {dataset=}, {order=}, "
        f"{ghost=}, {proxy=}, {force=}, {max_mem=}) {array.dtype} on {array.blocks} (digest {array.blocks.digest:x})"
    )

    blocks = array.blocks.grow(array.ghost) if ghost else array.blocks
    ranks = min(team.size, end.writers or team.size) if writing else team.size
    pieces = _cut(blocks, where, grain, file_order, array.dtype.itemsize, ranks, limit // 2 or _PIECE_BYTES)
    ways: dict[str, Any] = (
        {"threads": threads} if comm is None else {"comm": comm, "preallocate": False, "max_mem": limit // 2 or None}
    )
    # The order in which memory is written: all regions agree in shape.
    ways["visit"] = file_order if writing else array.order
    windows = _bind_windows(pieces, ranks, blocks, array, where, file_order, writing, ways)
    mover = FileMover(end, file_order, windows, team, writing, proxy, force)
    needed = team.max(mover.workspace_bytes)
    if 0 < limit < needed:
        raise MemoryLimitError(
            f"this move needs {needed} bytes beyond its array, max_mem allows {limit}; allow at least that much"
        )
    return mover


def check_cover(array: XArray, domain: _core.Region) -> None:
    """Raises ArgumentError where two blocks, one of them here,
    have the same point of the domain, or no block has one."""
    blocks = array.blocks
    index = regions.RegionIndex(blocks.regions)
    for k in array.owned:
        for other in index.find(blocks[k] & domain):
            if other != k:
                raise ArgumentError(
                    f"blocks {min(k, other)} and {max(k, other)} both have the points "
                    f"{blocks[k] & blocks[other] & domain}; a file has room for one of them"
                )
    if sum((region & domain).size for region in blocks) != domain.size:
        for hole in regions.subtract([domain], blocks.regions)[:1]:
            raise ArgumentError(f"no block has the points {hole} of the domain {domain}; say with domain= what to save")


def _cut(
    blocks: _core.FloorPlan,
    domain: _core.Region,
    grain: tuple[int, ...],
    order: str,
    itemsize: int,
    ranks: int,
    piece_bytes: int,
) -> list[_core.Region]:
    """The part of the domain that there are blocks for, in pieces as they follow each other in the file.

    Pieces are whole grains, of at most so many bytes (but one grain) and small enough that every rank gets one, and as
    long as can be in the file's fastest dimensions."""
    region = domain & blocks.bounding
    if region.empty:
        return []
    lower = [lo + (first - lo) // g * g for lo, first, g in zip(domain.lower, region.lower, grain)]
    points = max(1, min(piece_bytes // itemsize, -(-region.size // ranks)))
    extents = list(grain)
    for d in range(region.ndim) if order == "F" else reversed(range(region.ndim)):
        wanted = -(-(region.upper[d] - lower[d]) // grain[d])
        extents[d] *= max(1, min(wanted, points // math.prod(extents)))
    cuts = [list(range(lo + extent, last, extent)) for lo, last, extent in zip(lower, region.upper, extents)]
    index = regions.RegionIndex(blocks.regions)
    pieces = [piece for piece in regions.split_at(region, cuts) if index.find(piece)]
    return sorted(pieces, key=lambda piece: piece.lower if order == "C" else piece.lower[::-1])


def _bind_windows(
    pieces: list[_core.Region],
    ranks: int,
    blocks: _core.FloorPlan,
    array: XArray,
    domain: _core.Region,
    order: Any,
    writing: bool,
    ways: dict[str, Any],
) -> list[_Window]:
    """Movers between the array and the pieces, of which each
    rank gets an equal share, one after the other. Collective."""
    rank = array.rank
    shares = [pieces[len(pieces) * r // ranks : len(pieces) * (r + 1) // ranks] for r in range(ranks)]
    memory = np.empty(max((piece.size for piece in pieces), default=0), array.dtype)
    windows = []
    for turn in range(max(map(len, shares))):
        present = [(r, share[turn]) for r, share in enumerate(shares) if turn < len(share)]
        plan_of_pieces = _core.FloorPlan([piece for _, piece in present], [r for r, _ in present])
        own = [piece for r, piece in present if rank in (None, r)]
        parts = [memory[: piece.size].reshape(piece.shape, order=order) for piece in own]
        there = (plan_of_pieces, blocks) if not writing else (blocks, plan_of_pieces)
        plan = _core.BlockPlan.copy_between(*there, rank=rank)
        mover = plan.bind(array, parts, **ways) if writing else plan.bind(parts, array, **ways)
        start = tuple(first - lo for first, lo in zip(own[0].lower, domain.lower)) if own else ()
        windows.append(_Window(mover, start, parts[0] if parts else None))
    return windows
