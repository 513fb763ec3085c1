"""Has the disk begin with what has been written, so that less of it is left to be waited for at the end."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

LEAST_BYTES = 256 << 10
"""Of what is written at once: smaller parts of a file are left to the system, which may bring several at a time."""
_BEGIN = 2  # SYNC_FILE_RANGE_WRITE


def begin(fd: int, offset: int, count: int) -> None:
    """The bytes of a file from `offset` on have been written and will hardly be written again. Waits for nothing, and
    promises nothing: whoever needs them on the disk brings them there."""
    function = _sync_file_range()
    if function is not None and count >= LEAST_BYTES:
        function(fd, offset, count, _BEGIN)


@functools.cache
def _sync_file_range() -> Any:
    """Linux's; None where there is none."""
    try:
        function = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return function
