"""How what has been written comes to the disk: begun with early, so that less of it is left to be waited for at the
end, and then for many files at once."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from .worker_threads import WorkerThreads

T = TypeVar("T")

LEAST_BYTES = 256 << 10
"""Of what is written at once: smaller parts of a file are left to the system, which may bring several at a time."""
_BEGIN = 2  # SYNC_FILE_RANGE_WRITE
_THREADS = 8  # that wait for the disk


def begin(fd: int, offset: int, count: int) -> None:
    """The bytes of a file from `offset` on have been written and will hardly be written again. Waits for nothing, and
    promises nothing: whoever needs them on the disk brings them there."""
    function = _sync_file_range()
    if function is not None and count >= LEAST_BYTES:
        function(fd, offset, count, _BEGIN)


def wait_for_each(sync: Callable[[T], None], files: Collection[T]) -> None:
    """Calls `sync`, which brings a file or a folder to the disk, for each of these. Several wait at the same time: a
    file system brings to the disk at once what all who wait have changed. Raises what one of them has raised."""
    if len(files) == 1:
        sync(*files)
        return
    with WorkerThreads(_THREADS, "longshore-sync") as pool:
        for _ in pool.map(sync, files):
            pass


@functools.cache
def _sync_file_range() -> Any:
    """Linux's; None where there is none."""
    try:
        function = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return function
