"""What a run has read and not yet written, kept in files beside its hidden output: a run that goes on after a kill need
not read it again.

What a killed process has written to files is still in them, and so is what it stored in memory that is mapped from
them. The buffers of chunks therefore lie in a mapped file, with a table of what has come to them, and pieces that wait
in scratch files have a record each. What makes something count is stored last: a flag once a piece has been copied to
all buffers, a record once a piece is in its file. After the system itself went down nothing counts, for nothing brings
these files to the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import shutil
import stat
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from .journal import start_of_system
from .rechunk_plan import Box, RechunkPlan

_VERSION = 1
_HEAD, _MEMORY = "head", "memory"
_LONGEST_HEAD = 1 << 12
BETWEEN = ".longshore-between-"
"""What the names of temporary stores in such a folder begin with."""
_REMOVALS = 10


class KeptWork:
    """The folder of one array's work."""

    def __init__(self, folder: str, number: int, plan: RechunkPlan) -> None:
        """Takes over what lies there if it is of this array, this plan and this start of the system; begins anew
        otherwise. Raises OSError where the folder cannot be made."""
        self.folder = folder
        digest = hashlib.sha256(repr(plan).encode()).hexdigest()
        head = {"longshore": "work", "version": _VERSION, "array": number, "plan": digest, "start": start_of_system()}
        words = json.dumps(head)
        if not head["start"] or self._head() != words:
            _clear(folder)
            if os.path.islink(folder):
                raise OSError(f"{folder} is a symbolic link, and not ours")
            os.makedirs(folder, 0o700, exist_ok=True)
            Path(folder, _HEAD).write_text(words)

    def _head(self) -> str:
        try:
            if os.path.islink(self.folder):
                return ""
            with _opened(os.path.join(self.folder, _HEAD), os.O_RDONLY) as fd:
                return os.read(fd, _LONGEST_HEAD).decode(errors="replace")
        except OSError:
            return ""

    def memory(self, size: int) -> np.ndarray:
        """So many bytes, which hold what the killed run had in them. Raises OSError where the disk has no room."""
        return self.mapped(_MEMORY, size)

    def mapped(self, name: str, size: int) -> np.ndarray:
        """A file of so many bytes, as it is; of zeros where it has another size."""
        with _opened(os.path.join(self.folder, name), os.O_RDWR | os.O_CREAT) as fd:
            if os.fstat(fd).st_size != size:
                os.ftruncate(fd, 0)
                if size:
                    os.posix_fallocate(fd, 0, size)  # a page that found no room when it is stored to would be a signal
            return np.frombuffer(mmap.mmap(fd, size), np.uint8) if size else np.empty(0, np.uint8)

    def buffers(self, level: int, box: Box, chunks: int, slots: int, pieces: int) -> KeptBuffers:
        """The table of a box whose chunks are held, of which there is one at a time."""
        name = f"held-{_name(level, box)}"
        for other in os.listdir(self.folder):
            if other.startswith("held-") and other != name:
                os.unlink(os.path.join(self.folder, other))
        return KeptBuffers(self.mapped(name, KeptBuffers.size(chunks, slots, pieces)), chunks, slots, pieces)

    def scratch(self, level: int, box: Box, pieces: int) -> KeptPieces:
        """The scratch file of a box."""
        return KeptPieces(os.path.join(self.folder, f"scratch-{_name(level, box)}"), len(box[0]), pieces)

    def remove(self) -> None:
        _clear(self.folder)


class KeptBuffers:
    """Which chunks of a box have which buffers, and which pieces have come to them.

    Chunks are numbered in C order, and so are buffers and pieces. What is said of a number is said by a mark that only
    that number has, so that a byte that has changed on the disk is noticed."""

    def __init__(self, memory: np.ndarray, chunks: int, slots: int, pieces: int) -> None:
        words, marks = memory[: 8 * (chunks + slots)].view(np.int64), memory[8 * (chunks + slots) :].view(np.uint32)
        self._slots, self._owners = words[:chunks], words[chunks:]  # counted from 1; 0: none
        self._came, self._begun, self._copied = np.split(marks, [chunks, 2 * chunks])
        self._marks, self._piece_marks = _marks(chunks), _marks(pieces)

    @staticmethod
    def size(chunks: int, slots: int, pieces: int) -> int:
        """Of the table, in bytes."""
        return 8 * (chunks + slots) + 4 * (2 * chunks + pieces)

    def go_on(self, done: np.ndarray) -> None:
        """Has the table say what still holds, now that those chunks are written: nothing, where it contradicts itself
        or them."""
        slots, owners = self._slots, self._owners
        sane = bool(((slots >= 0) & (slots <= len(owners))).all() and ((owners >= 0) & (owners <= len(slots))).all())
        if sane:
            slots[done] = 0
            begun, owned = np.flatnonzero(slots), owners[owners > 0] - 1
            # A chunk that counted as written and does not any more has lost its buffer, and pieces that came to it.
            lost = (self._begun == self._marks) & ~done
            sane = bool((owners[slots[begun] - 1] == begun + 1).all() and (done[owned] | (slots[owned] > 0)).all())
            marked = ((self._came, self._marks), (self._begun, self._marks), (self._copied, self._piece_marks))
            sane = sane and not lost.any() and all(((one == 0) | (one == marks)).all() for one, marks in marked)
        if not sane:
            for table in (slots, owners, self._came, self._copied):
                table[:] = 0
        self._begun[:] = np.where(done, self._marks, 0)

    def slots(self) -> np.ndarray:
        """Of each chunk its buffer; -1: it has none."""
        return self._slots - 1

    def came(self) -> np.ndarray:
        """Of each chunk whether anything else than the fill value has come to it."""
        return self._came == self._marks

    def begins(self, chunk: int, slot: int) -> None:
        """A chunk has a buffer, from now on its own."""
        self._owners[slot] = chunk + 1
        self._slots[chunk] = slot + 1

    def comes(self, chunks: np.ndarray) -> None:
        """Something else than the fill value is about to come to chunks."""
        self._came[chunks] = self._marks[chunks]

    def holds(self, piece: int) -> bool:
        """Whether a piece has been copied to all that it has something for."""
        return bool(self._copied[piece])

    def copied(self, piece: int) -> None:
        """A piece has been copied to all that it has something for."""
        self._copied[piece] = self._piece_marks[piece]


class KeptPieces:
    """A file of pieces, and a record of each beside it: number, box, and where it lies."""

    def __init__(self, path: str, dimensions: int, pieces: int) -> None:
        self.path, self._records = path, f"{path}.records"
        self._record = np.dtype([("piece", "<i8", (2 * dimensions + 2,)), ("checksum", "<u4")])
        self._pieces = pieces

    def open(self) -> int:
        """The file's descriptor. Whoever calls closes it."""
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def found(self, low: Sequence[int], high: Sequence[int], itemsize: int) -> np.ndarray:
        """What the killed run has put into the file of a box of elements: rows of number, start, extents and place (-1:
        the fill value, nowhere). What comes after a record that is not whole does not count."""
        n = len(low)
        try:
            with _opened(self._records, os.O_RDWR) as fd:
                size = os.path.getsize(self.path)
                with open(fd, "rb", closefd=False) as file:
                    raw = file.read(self._record.itemsize * self._pieces)
                records = np.frombuffer(raw, self._record, len(raw) // self._record.itemsize)
                rows = records["piece"]
                sums = [zlib.crc32(row.tobytes()) for row in rows]
                number, start, extents, place = np.split(rows, [1, 1 + n, 1 + 2 * n], axis=1)
                sane = (records["checksum"] == np.array(sums, np.uint32)) & (place[:, 0] >= -1)
                sane &= (number[:, 0] >= 0) & (number[:, 0] < self._pieces)
                sane &= ((start >= low) & (extents >= 1) & (extents <= np.array(high) - start)).all(axis=1)
                sane &= place[:, 0] <= size - np.where(place[:, 0] < 0, 0, extents.prod(axis=1) * itemsize)
                count = len(rows) if sane.all() else int(sane.argmin())
                os.ftruncate(fd, count * self._record.itemsize)
                return rows[:count]
        except OSError:
            return np.empty((0, 2 * n + 2), np.int64)

    def add(self, rows: Sequence[Sequence[int]]) -> None:
        """Records of pieces whose elements are in the file."""
        if not rows:
            return
        records = np.empty(len(rows), self._record)
        records["piece"] = rows
        records["checksum"] = [zlib.crc32(row.tobytes()) for row in records["piece"]]
        fd = os.open(self._records, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, records.tobytes())
        finally:
            os.close(fd)

    def remove(self) -> None:
        for path in (self.path, self._records):
            with contextlib.suppress(OSError):
                os.unlink(path)


def remove_work(folder: str) -> None:
    """Removes such a folder with what such a folder has in it, if it is there. What a link leads to is not ours."""
    for _ in range(_REMOVALS):  # an attempt that an executor has given up may still be writing
        if not os.path.isdir(folder) or os.path.islink(folder):
            return
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                if name.startswith(BETWEEN):
                    shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        _clear(folder)


def _clear(folder: str) -> None:
    """Removes what one array's work is, and the folder if there is nothing else in it."""
    if os.path.islink(folder):
        return
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if name in (_HEAD, _MEMORY) or name.startswith(("held-", "scratch-")):
                os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def _marks(count: int) -> np.ndarray:
    """One for each of so many numbers, and none is 0."""
    return (np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B1)).astype(np.uint32) | np.uint32(1 << 31)


def _name(level: int, box: Box) -> str:
    return hashlib.sha256(repr((level, box)).encode()).hexdigest()[:24]


@contextlib.contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(f"{path} is not a plain file")
        yield fd
    finally:
        os.close(fd)
