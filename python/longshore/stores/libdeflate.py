"""libdeflate, where the system has it: what zlib and gzip do, for whole chunks, in a fraction of the time.

It is called without Python's lock, so that threads use all processors. Whoever gets None asks zlib instead, which also
has the words for what is wrong with a stream.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

import numpy as np

_NAMES = ("libdeflate.so.0", "libdeflate.so", "libdeflate.0.dylib", "libdeflate.dylib")
_LEVELS = range(1, 10)  # those that zlib has too
_DEFAULT = 6
_MOST_FOR_A_BYTE = 1032  # of a stream: two bits for 258 bytes


def compress(data: Any, level: int, gzip: bool = False) -> np.ndarray | None:
    """Contiguous bytes as one zlib stream, or one gzip member; -1 is zlib's own choice of a level. None where there is
    no libdeflate, or not for this."""
    library, level = _library(), _DEFAULT if level == -1 else level
    view = memoryview(data).cast("B")
    if library is None or level not in _LEVELS or not view.nbytes:
        return None
    compressor = _own(library, level)
    if compressor is None:
        return None
    kind = "gzip" if gzip else "zlib"
    plain = np.frombuffer(view, np.uint8)
    room = np.empty(getattr(library, f"libdeflate_{kind}_compress_bound")(compressor, plain.size), np.uint8)
    function = getattr(library, f"libdeflate_{kind}_compress")
    size = function(compressor, plain.ctypes.data, plain.size, room.ctypes.data, room.size)
    if not size:
        return None
    made = room[:size]  # of which no copy is held beside it, where not much would be gained
    return made if 2 * size > room.size else made.copy()


def decompress(data: Any, most: int, gzip: bool = False) -> np.ndarray | None:
    """What one zlib stream, or one gzip member, decompresses to, which is no more than `most` bytes. None where there
    is no libdeflate, where the data are not that and nothing else, or where they are damaged."""
    library, view = _library(), memoryview(data).cast("B")
    if library is None or not view.nbytes or not most:
        return None
    decompressor = _own(library, None)
    if decompressor is None:
        return None
    stored = np.frombuffer(view, np.uint8)
    plain = np.empty(min(most, _MOST_FOR_A_BYTE * stored.size), np.uint8)
    used, made = ctypes.c_size_t(), ctypes.c_size_t()
    function = getattr(library, f"libdeflate_{'gzip' if gzip else 'zlib'}_decompress_ex")
    failed = function(
        decompressor,
        stored.ctypes.data,
        stored.size,
        plain.ctypes.data,
        plain.size,
        ctypes.byref(used),
        ctypes.byref(made),
    )
    if failed or used.value != stored.size:
        return None
    return plain if made.value == plain.size else plain[: made.value].copy()


@functools.lru_cache(maxsize=1)
def _library() -> Any:
    """With the types of its functions; None where it is not there."""
    for name in _NAMES:
        try:
            library = ctypes.CDLL(name)
            size, pointer = ctypes.c_size_t, ctypes.c_void_p
            buffers = [pointer, pointer, size, pointer, size]
            types: dict[str, tuple[Any, list[Any]]] = {
                "alloc_compressor": (pointer, [ctypes.c_int]),
                "alloc_decompressor": (pointer, []),
                "free_compressor": (None, [pointer]),
                "free_decompressor": (None, [pointer]),
            }
            for kind in ("zlib", "gzip"):
                types[f"{kind}_compress_bound"] = (size, [pointer, size])
                types[f"{kind}_compress"] = (size, buffers)
                types[f"{kind}_decompress_ex"] = (ctypes.c_int, [*buffers, ctypes.POINTER(size), ctypes.POINTER(size)])
            for function, (result, arguments) in types.items():
                found = getattr(library, f"libdeflate_{function}")
                found.restype, found.argtypes = result, arguments
        except (OSError, AttributeError):
            continue
        return library
    return None


class _Owned(threading.local):
    """A thread's compressors, by their levels, and its decompressor, whose level is None: none may be used by two
    threads at once."""

    def __init__(self) -> None:
        self.of_levels: dict[int | None, _Allocated] = {}


class _Allocated:
    """What libdeflate has allocated; it is freed with the thread that has it."""

    def __init__(self, library: Any, level: int | None) -> None:
        kind = "decompressor" if level is None else "compressor"
        self._free = getattr(library, f"libdeflate_free_{kind}")
        allocate = getattr(library, f"libdeflate_alloc_{kind}")
        self.address: int | None = allocate() if level is None else allocate(level)

    def __del__(self) -> None:
        if self.address is not None:
            self._free(self.address)


_owned = _Owned()


def _own(library: Any, level: int | None) -> int | None:
    """The calling thread's compressor of a level, or its decompressor."""
    found = _owned.of_levels.get(level)
    if found is None:
        found = _owned.of_levels[level] = _Allocated(library, level)
    return found.address
