"""Sub-boxes of arrays in files: read and written with few, large system calls into buffers that the caller holds.

No memory maps: their resident pages would count against the caller's memory ceiling. The page cache does not.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import StoreError
from . import writeback
from .object_places import is_url
from .random_access import LocalFile, RandomAccess, RemoteFile
from .worker_threads import WorkerThreads

_PIECE_BYTES = 4 << 20  # what one thread takes at a time
_OFFSETS_AT_ONCE = 2048
_MAX_CALL_BYTES = 1 << 30  # Linux moves at most 2^31 - 4096 bytes a call


def must_see(path: str) -> None:
    """Raises StoreError where a worker does not find what it is to write."""
    if not os.path.exists(path):
        import socket

        raise StoreError(
            f"{path} is not there on {socket.gethostname()}: every worker must see the destination's folder under the "
            "same path"
        )


@dataclass(frozen=True)
class FileArray:
    """A dense array in a file: where its data starts and how it lies there."""

    path: str
    """Or, of one that is only read, a URL."""
    data_offset: int
    shape: tuple[int, ...]
    order: str
    itemsize: int
    told: str = field(default="", compare=False)
    """Of one that is read: what tells it from a file that takes its place, and from what it becomes when it is
    written again; "" for any."""


class Box:
    """A sub-box of a `FileArray` as runs of contiguous bytes: `runs` of `run_bytes` each, offsets on demand."""

    __slots__ = ("_base", "_outer", "_strides", "array", "run_bytes", "runs")

    def __init__(self, array: FileArray, start: Sequence[int], shape: Sequence[int]) -> None:
        self.array = array
        axes = list(range(len(array.shape)))
        if array.order == "F":
            axes.reverse()
        stride = run = array.itemsize
        outer: list[int] = []
        strides: list[int] = []
        base, contiguous = array.data_offset, True
        for d in reversed(axes):  # from the fastest
            base += start[d] * stride
            if contiguous:
                run *= shape[d]
                contiguous = shape[d] == array.shape[d]
            elif shape[d] != 1:
                outer.append(shape[d])
                strides.append(stride)
            stride *= array.shape[d]
        outer.reverse()
        strides.reverse()
        self.run_bytes, self._base, self._outer, self._strides = run, base, outer, strides
        self.runs = 1
        for extent in outer:
            self.runs *= extent
        if run == 0:
            self.runs = 0

    @property
    def nbytes(self) -> int:
        return self.runs * self.run_bytes

    def offsets(self, first: int, last: int) -> list[int]:
        """The file offsets of the runs [first, last), in the order of the buffer."""
        positions: np.ndarray = np.arange(first, last, dtype=np.int64)
        offsets = np.full(last - first, self._base, dtype=np.int64)
        for extent, stride in zip(reversed(self._outer), reversed(self._strides)):
            positions, index = np.divmod(positions, extent)
            offsets += index * stride
        return offsets.tolist()


Work = tuple[Box, memoryview]
"""A box of a file, and the bytes that it goes to or comes from."""
_Opened = tuple[RandomAccess, Box, memoryview]
_Move = Callable[[RandomAccess, list[int], memoryview], None]
"""Of a file, offsets and bytes: runs of equal size."""


class Files:
    """Open descriptors of many files, the oldest closed first, and the threads that read and write them."""

    def __init__(self, threads: int = 1, limit: int = 512) -> None:
        self.threads = max(1, threads)
        self._limit = limit
        self._open: OrderedDict[tuple[str, bool], RandomAccess] = OrderedDict()
        self._pool: WorkerThreads | None = None

    def hold(self, path: str, fd: int, told: str = "") -> None:
        """Takes over a descriptor for reading that was opened and checked, so that what was checked is what is read.
        `told`: what the file told of itself then."""
        self._open[path, False] = LocalFile(path, fd, told)

    def file(self, array: FileArray, writing: bool) -> RandomAccess:
        path = array.path
        key = (path, writing)
        file = self._open.get(key)
        if file is not None:
            self._open.move_to_end(key)
            return file
        if len(self._open) >= self._limit:
            self._open.popitem(last=False)[1].close()
        if is_url(path):
            file = RemoteFile(path, array.told)
        else:
            try:
                fd = os.open(path, (os.O_RDWR if writing else os.O_RDONLY) | os.O_CLOEXEC)
            except OSError as error:
                raise StoreError(error.errno, f"cannot open {path}: {error.strerror}") from None
            file = LocalFile(path, fd, "" if writing else array.told)
            try:
                file.check()
            except BaseException:
                file.close()
                raise
        self._open[key] = file
        return file

    def check(self) -> None:
        """Raises StoreError where a file that has been read is known to be another one by now."""
        for file in self._open.values():
            file.check()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        while self._open:
            self._open.popitem()[1].close()

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def read(self, work: Iterable[Work]) -> None:
        """Reads (Box, memoryview of bytes) pairs."""
        self._transfer(work, False)

    def write(self, work: Iterable[Work]) -> None:
        self._transfer(work, True)

    def _transfer(self, work: Iterable[Work], writing: bool) -> None:
        batch: list[_Opened] = []
        batch_bytes = 0
        for box, view in work:
            if not box.runs:
                continue
            # A descriptor may be closed when many more are opened, so a batch holds fewer files than may be open.
            if len(batch) >= self._limit // 2:
                self._run(batch, batch_bytes, writing)
                batch, batch_bytes = [], 0
            batch.append((self.file(box.array, writing), box, view))
            batch_bytes += box.nbytes
        if batch:
            self._run(batch, batch_bytes, writing)

    def _run(self, batch: list[_Opened], batch_bytes: int, writing: bool) -> None:
        move: _Move = _write_runs if writing else _read_runs
        if self.threads == 1 or batch_bytes <= _PIECE_BYTES // 4:
            for file, box, view in batch:
                _each_run(move, file, box, view, 0, box.runs)
            return
        pieces = _pieces(batch)
        lock = threading.Lock()
        stop = threading.Event()

        def drain() -> None:
            while not stop.is_set():
                with lock:
                    piece = next(pieces, None)
                if piece is None:
                    return
                try:
                    piece(move)
                except BaseException:
                    stop.set()
                    raise

        if self._pool is None:
            self._pool = WorkerThreads(self.threads - 1, "longshore-files")
        helpers = [self._pool.submit(drain) for _ in range(self.threads - 1)]
        try:
            drain()
        finally:
            errors = [helper.exception() for helper in helpers]
        for error in errors:
            if error is not None:
                raise error


def _pieces(batch: list[_Opened]) -> Iterator[Callable[[_Move], None]]:
    """Cuts boxes into pieces for the threads: ranges of runs, or parts of one long run."""
    for file, box, view in batch:
        if box.run_bytes >= 2 * _PIECE_BYTES:
            for run in range(box.runs):
                (offset,) = box.offsets(run, run + 1)
                place = run * box.run_bytes
                for start in range(0, box.run_bytes, _PIECE_BYTES):
                    stop = min(start + _PIECE_BYTES, box.run_bytes)
                    part = view[place + start : place + stop]
                    yield functools.partial(_one_part, file=file, offset=offset + start, view=part)
        else:
            step = max(1, _PIECE_BYTES // box.run_bytes)
            for first in range(0, box.runs, step):
                last = min(first + step, box.runs)
                yield functools.partial(_each_run, file=file, box=box, view=view, first=first, last=last)


def _one_part(move: _Move, file: RandomAccess, offset: int, view: memoryview) -> None:
    move(file, [offset], view)


def _each_run(move: _Move, file: RandomAccess, box: Box, view: memoryview, first: int, last: int) -> None:
    for start in range(first, last, _OFFSETS_AT_ONCE):
        stop = min(start + _OFFSETS_AT_ONCE, last)
        move(file, box.offsets(start, stop), view[start * box.run_bytes : stop * box.run_bytes])


def _read_runs(file: RandomAccess, offsets: list[int], view: memoryview) -> None:
    file.read_runs(offsets, view)


def _write_runs(file: RandomAccess, offsets: list[int], view: memoryview) -> None:
    assert isinstance(file, LocalFile)
    size = len(view) // len(offsets)
    place, fd = 0, file.fd
    try:
        for offset in offsets:
            stop = place + size
            done = os.pwrite(fd, view[place:stop], offset)
            while done < size:
                done += os.pwrite(fd, view[place + done : min(stop, place + done + _MAX_CALL_BYTES)], offset + done)
            place = stop
        if offsets[-1] - offsets[0] == len(view) - size:  # one after the other
            writeback.begin(fd, offsets[0], len(view))
    except OSError as error:
        raise StoreError(error.errno, f"cannot write {file.name}: {error.strerror}") from None


def create_array_file(path: str, header: bytes, data_bytes: int, *, exclusive: bool = True) -> None:
    """A file with its header and room for its data, found lacking now rather than in the middle of the move."""
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if exclusive else 0)
    try:
        fd = os.open(path, flags, 0o666)
        try:
            if hasattr(os, "posix_fallocate") and data_bytes:
                os.posix_fallocate(fd, 0, len(header) + data_bytes)
            else:
                os.ftruncate(fd, len(header) + data_bytes)
            done = 0
            while done < len(header):
                done += os.pwrite(fd, header[done:], done)
        finally:
            os.close(fd)
    except OSError as error:
        raise StoreError(
            error.errno, f"cannot make {path} of {len(header) + data_bytes} bytes: {error.strerror}"
        ) from None


def sync_file(path: str, *, forget: bool = False) -> None:
    """Brings a file to the disk. `forget` drops it from the page cache, so that the next read comes from the disk."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
            if forget and hasattr(os, "posix_fadvise"):
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
    except OSError as error:
        raise StoreError(error.errno, f"cannot bring {path} to the disk: {error.strerror}") from None
