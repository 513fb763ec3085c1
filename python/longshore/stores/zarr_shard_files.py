"""Shards that are being written: chunks are appended in whatever order they come, and the index lies in a file beside
until all are there, so that a shard needs no memory and a killed run is gone on with.

The index of the unfinished shard "c/0/1" is the file "c/0/1.index": two 64-bit numbers for each chunk, offset and
length, or 2^64 - 1 twice where the chunk has not come yet. It is made before the shard, and a chunk's entry is written
after the chunk, so that it never tells of what is not there. A shard without such a file is finished.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from .keys import LocalKeys, write_all
from .zarr_shards import MISSING, ShardIndex, check_entry

_SIDE = ".index"
_ENTRY_BYTES = 16


class ShardFiles:
    """The shards of an array. `write` and `read` may be called from several threads and processes at once."""

    def __init__(self, keys: LocalKeys, path: str, index: ShardIndex) -> None:
        self._keys = keys
        self._path = path
        self._index = index
        self._table_bytes = index.chunks * _ENTRY_BYTES
        self._lock = threading.Lock()

    def write(self, shard: str, slot: int, data: Any) -> int:
        """Puts a chunk into a shard, in its old place if it is there already and has as many bytes."""
        view = memoryview(data).cast("B")
        with contextlib.ExitStack() as opened:
            side = self._open(opened, side_key(shard), make=True)
            with self._locked(side):
                if os.fstat(side).st_size != self._table_bytes:
                    self._make_side(shard, side)
                body = self._open(opened, shard, make=True)
                offset, length = self._entry(side, slot)
                if offset == MISSING or length != len(view):
                    offset = os.fstat(body).st_size
                    if not self._index.at_end:
                        offset = max(offset, self._index.size)
                    os.ftruncate(body, offset + len(view))  # so that the next chunk is put behind
            write_all(body, view, offset)
            write_all(side, np.array([offset, len(view)], "<u8").data.cast("B"), slot * _ENTRY_BYTES)
        return len(view)

    def read(self, shard: str, slot: int, most: int) -> bytes | None:
        """A chunk of an unfinished shard; None where it has not come yet."""
        with contextlib.ExitStack() as opened:
            side = self._open(opened, side_key(shard), make=False)
            body = self._open(opened, shard, make=False)
            if side < 0 or body < 0:
                return None
            offset, length = self._entry(side, slot)
            if not check_entry(offset, length, os.fstat(body).st_size, most):
                return None
        return self._keys.get_range(shard, offset, length)

    def is_unfinished(self, shard: str) -> bool:
        return self._keys.exists(side_key(shard))

    def close(self) -> None:
        """Puts the index into every unfinished shard."""
        for shard in self._unfinished():
            with contextlib.ExitStack() as opened:
                side = self._open(opened, side_key(shard), make=False)
                body = self._open(opened, shard, make=False)
                if body >= 0 and os.fstat(side).st_size == self._table_bytes:  # else it was not begun
                    self._close(side, body)

    def forget(self) -> None:
        """Removes the indices beside shards that are closed and on the disk."""
        for shard in self._unfinished():
            self._keys.remove(side_key(shard))

    def _unfinished(self) -> list[str]:
        return [key.removesuffix(_SIDE) for key, entry in self._keys.files(self._path) if entry.name.endswith(_SIDE)]

    def _close(self, side: int, body: int) -> None:
        table = np.frombuffer(os.pread(side, self._table_bytes, 0), "<u8").reshape(-1, 2)
        there = table[table[:, 0] != MISSING]
        end = int((there[:, 0] + there[:, 1]).max()) if len(there) else 0
        if not self._index.at_end:
            end = max(end, self._index.size)
        index = memoryview(self._index.encode(table)).cast("B")
        write_all(body, index, end if self._index.at_end else 0)
        os.ftruncate(body, end + len(index) if self._index.at_end else end)

    def _make_side(self, shard: str, side: int) -> None:
        """Makes the index beside a new shard, or beside one that is finished and gets a chunk again."""
        size = self._keys.size(shard)
        if size is None:
            table: np.ndarray = np.full((self._index.chunks, 2), MISSING, "<u8")
        else:
            raw = self._keys.get_range(shard, self._index.start(size), self._index.size)
            table = np.ascontiguousarray(self._index.decode(raw).astype("<u8"))
        write_all(side, table.data.cast("B"), 0)

    def _entry(self, side: int, slot: int) -> tuple[int, int]:
        raw = os.pread(side, _ENTRY_BYTES, slot * _ENTRY_BYTES)
        if len(raw) != _ENTRY_BYTES:
            return MISSING, MISSING
        offset, length = np.frombuffer(raw, "<u8")
        return int(offset), int(length)

    def _open(self, opened: contextlib.ExitStack, key: str, make: bool) -> int:
        """A descriptor; -1 where there is no such file."""
        fd = self._keys.open_for_writing(key, make)
        if fd is None:
            return -1
        opened.callback(os.close, fd)
        return fd

    @contextlib.contextmanager
    def _locked(self, side: int) -> Iterator[None]:
        """Alone with a shard, among threads, and among processes where the file system has locks."""
        with self._lock:
            with contextlib.suppress(OSError):
                fcntl.flock(side, fcntl.LOCK_EX)
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    fcntl.flock(side, fcntl.LOCK_UN)


def side_key(shard: str) -> str:
    """The key of the index beside an unfinished shard."""
    return shard + _SIDE
