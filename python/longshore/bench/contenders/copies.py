"""The yardstick: each rank copies its own source bytes once, all ranks at the same time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .base import Case, Contender, Context, Missing, Prepared, WrongResult


def _numpy_copy(destination: np.ndarray, source: np.ndarray) -> Callable[[], None]:
    to, size, out_of = destination.ctypes.data, source.nbytes, source.ctypes.data
    move = ctypes.memmove  # memcpy for what does not overlap; releases the GIL
    return lambda: move(to, out_of, size)


def _library_copy(streaming: bool) -> Callable[[np.ndarray, np.ndarray], Callable[[], None]]:
    try:
        from longshore._core import copy_bytes
    except ImportError as error:
        raise Missing(f"longshore._core.copy_bytes is not there ({error})") from None

    def make(destination: np.ndarray, source: np.ndarray) -> Callable[[], None]:
        to, size, out_of = destination.ctypes.data, source.nbytes, source.ctypes.data
        return lambda: copy_bytes(to, out_of, size, streaming)

    return make


class MemoryCopy(Contender):
    needs_mpi = False

    def __init__(self, name: str, streaming: bool) -> None:
        self.name, self._streaming = name, streaming

    def prepare(self, context: Context, case: Case) -> Prepared:
        try:
            maker = _library_copy(self._streaming)
        except Missing:
            if self._streaming:
                raise
            maker = _numpy_copy
        arrays = context.all_arrays(case) if context.comm is None else context.local_arrays(case)
        pairs = [(_fitted(d.array, s.array), s.array) for s, d in zip(arrays.sources, arrays.destinations)]
        copies = [maker(d, s) for d, s in pairs]

        def check() -> None:
            for d, s in pairs:
                if not np.array_equal(d, s.reshape(-1)):
                    raise WrongResult(f"{self.name}: the copy differs from its source")

        if context.comm is not None:
            return Prepared(copies[0], arrays, check=check)
        pool = ThreadPoolExecutor(len(copies))

        def run() -> None:
            for pending in [pool.submit(copy) for copy in copies]:
                pending.result()

        return Prepared(run, arrays, root_only=True, threads=len(copies), check=check, close=pool.shutdown)


def _fitted(destination: np.ndarray, source: np.ndarray) -> np.ndarray:
    """The destination's memory, or other memory where a rank's two parts differ in size."""
    if destination.size >= source.size:
        return destination.reshape(-1)[: source.size]
    return np.zeros(source.size, dtype=source.dtype)
