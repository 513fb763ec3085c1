"""`longshore.share_numpy_memory`."""

from __future__ import annotations

import importlib
import warnings
from types import TracebackType
from typing import Any

import numpy as np

from . import _again, _mpi
from ._words import size_in_bytes
from .errors import TransportError


class SharedNumpyMemory:
    """What `share_numpy_memory` has switched on, until `close()` or the end of a `with` block."""

    def __init__(self, switch: Any) -> None:
        self._switch = switch

    def close(self) -> None:
        """Gives NumPy the handler back that was there before. Arrays that have been made meanwhile live on; what is
        free goes back to the machine. Once is enough. Raises ArgumentError where another handler was switched on since,
        and in another thread or context than the one that switched it on."""
        if self._switch is not None:
            self._switch.close()
            self._switch = None
            _again.let_go()

    def __enter__(self) -> SharedNumpyMemory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def share_numpy_memory(*, at_least: Any = "64KiB", keep: Any = "256MiB") -> SharedNumpyMemory:
    """From now on NumPy's new arrays lie in memory that the ranks of a node share, as those of `empty(layout, comm=)`
    do: what np.zeros, arithmetic, copy() and all other code makes of them moves between processes with one copy.

    With `with` for a block, or as a switch until `close()`::

        with ls.share_numpy_memory():
            a = np.sin(x) + 1  # ordinary code
            b = ls.redistribute(a, src, dst, comm=comm)

    `at_least`: smaller blocks of data stay in NumPy's ordinary memory. `keep`: so much of what is freed the process
    keeps for its next arrays, which then need not be touched for the first time; the rest goes back to the machine.
    Both are bytes, words such as "1MiB", or None: all blocks, and nothing. What `keep` says last counts for the
    process. New blocks have huge pages at once, unless they are large beside what the machine has left. Arrays keep
    their memory as long as they and movers bound to them live, also when it is off again, and after MPI has ended;
    those that were there before stay where they are.

    NumPy has its handler in a context variable: this thread (or task) sees it, and what runs in a copy of its context,
    as asyncio.to_thread does. Threads that start with a context of their own, as most do, switch it on for themselves;
    all have one memory and one file descriptor. It may be nested, and is closed in the opposite order.

    A child of os.fork or multiprocessing has its parent's arrays as ever: each holds what it held, and what one writes
    the other does not see. For that arrays that are there when a process forks become its private memory, which costs a
    copy of them, once, and are from then on moved as any private array is; those that a mover is bound to stay shared,
    and each child gets a copy. So a process had better fork before it has large arrays.

    Needs mpi4py, for within one process nothing has to be shared, but no communicator. Not collective. Where the
    machine forbids such memory a warning says why, and arrays are ordinary; where it has no more of it, such an array
    is ordinary, and `Mover.obstacle` says so. What no machine has is NumPy's MemoryError as ever. Raises ArgumentError
    without mpi4py or for what is no size.
    """
    least, kept = size_in_bytes(at_least, "at_least"), size_in_bytes(keep, "keep")
    module = _mpi._module(_mpi._mpi4py("share_numpy_memory()"))
    numpy = importlib.import_module("numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "numpy.core")
    try:
        return SharedNumpyMemory(module.NumpyMemory(numpy.multiarray._ARRAY_API, least, kept))
    except TransportError as error:
        warnings.warn(f"NumPy's memory is not shared, so data moves more slowly: {error}", stacklevel=2)
        return SharedNumpyMemory(None)
