"""What a move has finished, kept beside its hidden output, so that another run can go on where one was killed.

A journal is a line of JSON, which says which move it belongs to and under which start of the system it was written, and
then records of one size: a chunk that has been written with its digest, or a mark that everything before it is on the
disk. What a killed process has written is still there, so after a kill every record counts; after the system itself
went down, and of a format whose library writes where chunks lie only when it is told to, those before the last mark do.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import StoreError

_RECORD = np.dtype([("array", "<i8"), ("chunk", "<i8"), ("digest", "<u8"), ("checksum", "<u4")])
_CHECKED = _RECORD.itemsize - 4  # the bytes that the checksum is of
_MARK = -1
_VERSION = 1
_LONGEST_LINE = 1 << 16
_LEAST_PAUSE_S = 1.0
_PAUSE_OF_SYNC = 20  # so many times what bringing everything to the disk takes goes by before it is done again


@dataclass(frozen=True)
class JobName:
    """Which move a journal belongs to."""

    whole: str
    """Equal for two runs of which one can go on where the other was killed."""
    without_boxes: str
    """Equal where only the boxes differ in which files without chunks are written, which the ceiling bounds."""
    max_mem: int


class Journal:
    """The journal of a move that goes on. Its methods may be called from several threads."""

    def __init__(self, path: str, job: JobName, sync: Callable[[], None]) -> None:
        """Begins a journal. `job`: which move it is; `sync`: brings to the disk what has been written."""
        self.path, self._sync = path, sync
        self._lock, self._syncing = threading.Lock(), threading.Lock()
        head = json.dumps(
            {
                "longshore": "journal",
                "version": _VERSION,
                "job": job.whole,
                "without_boxes": job.without_boxes,
                "max_mem": job.max_mem,
                "start": start_of_system(),
            }
        )
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            os.write(self._file, head.encode() + b"\n")
        except OSError as error:
            raise StoreError(error.errno, f"cannot write {path}: {error.strerror}") from None
        self._next = time.monotonic() + _LEAST_PAUSE_S

    def add(self, array: int, chunk: int, digest: int) -> None:
        """A chunk has been written."""
        self._write(array, chunk, digest)
        if time.monotonic() < self._next or not self._syncing.acquire(blocking=False):
            return
        try:
            began = time.monotonic()
            self.sync()
            now = time.monotonic()
            self._next = now + max(_LEAST_PAUSE_S, _PAUSE_OF_SYNC * (now - began))
        finally:
            self._syncing.release()

    def sync(self) -> None:
        """Brings to the disk what has been written, and says so."""
        with self._lock:  # what is being written meanwhile is not what the mark is about
            end = os.lseek(self._file, 0, os.SEEK_CUR)
        self._sync()
        self._write(_MARK, end, 0)
        os.fsync(self._file)

    def _write(self, array: int, chunk: int, digest: int) -> None:
        record = struct.pack("<qqQ", array, chunk, digest)
        try:
            with self._lock:
                os.write(self._file, record + struct.pack("<I", zlib.crc32(record)))
        except OSError as error:
            raise StoreError(error.errno, f"cannot write {self.path}: {error.strerror}") from None

    def close(self) -> None:
        os.close(self._file)

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)


@dataclass
class Finished:
    """Chunks of one array that a killed run has written."""

    done: np.ndarray
    """For each chunk, in C order, whether it is there."""
    digests: np.ndarray


def read_journal(path: str, job: JobName, counts: list[int], *, only_synced: bool = False) -> list[Finished] | None:
    """What a killed run has finished of each array, of so many chunks; None where there is no journal that can be read.
    `only_synced`: what it had brought to the disk. Raises StoreError where the journal is that of another move."""
    try:
        with open(path, "rb") as file:
            line = file.readline(_LONGEST_LINE)
            raw = file.read(_RECORD.itemsize * (4 * sum(counts) + 1024))
    except OSError:
        return None
    try:
        head = json.loads(line)
        readable = head["longshore"] == "journal" and head["version"] == _VERSION
    except (ValueError, TypeError, KeyError):
        return None
    if not readable:
        return None
    if head.get("job") != job.whole:
        before = head.get("max_mem")
        if head.get("without_boxes") == job.without_boxes and isinstance(before, int) and before != job.max_mem:
            raise StoreError(
                f"{path} is that of a run with --max-mem {before}, and in which boxes files without chunks are written "
                f"depends on it; give --max-mem {before} again to go on, or run without --resume to begin anew"
            )
        raise StoreError(
            f"{path} belongs to another move: source, destination, chunks or codecs are not the same, or the source "
            "has changed, or files without chunks were to be written with other --threads or processes; run without "
            "--resume to begin anew"
        )
    records = np.frombuffer(raw, _RECORD, len(raw) // _RECORD.itemsize)
    whole = [zlib.crc32(raw[at : at + _CHECKED]) for at in range(0, records.nbytes, _RECORD.itemsize)]
    counted = records["checksum"] == np.array(whole, np.uint32)
    if only_synced or head.get("start") != start_of_system():
        marks = records["chunk"][counted & (records["array"] == _MARK)]
        counted[(int(marks.max()) - len(line)) // _RECORD.itemsize if len(marks) else 0 :] = False
    found = []
    for number, count in enumerate(counts):
        own = records[counted & (records["array"] == number) & (records["chunk"] >= 0) & (records["chunk"] < count)]
        finished = Finished(np.zeros(count, np.bool_), np.zeros(count, np.uint64))
        finished.done[own["chunk"]] = True
        finished.digests[own["chunk"]] = own["digest"]
        found.append(finished)
    return found


def start_of_system() -> str:
    """Another text each time the system starts; "" where it does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
