"""Redistributions that are done again and again: the mover that a call has bound is kept, with the communicator or by
the thread, and moves when the same call comes again.

What is the same is where the arrays lie and how, and what is to be done; the arrays themselves are not kept, so that
others may be there by then. To bind takes ten times as long as to move a few kilobytes, and half as long as to move
some megabytes, which leave nothing of it in the caches.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core, _mpi
from ._arrays import has_mask
from ._core import Layout

_MOST_BYTES_HERE = 256 << 10  # of all arrays in one process: movers of more have threads of their own
_MOST_ARRAYS = 64  # in one process
_MOST_MOVERS = 8
_MOST_HELD = 16 << 20  # bytes that movers hold: programs, rings, NumPy's shared memory
_broken: list[Any] = []
"""Movers that failed in a move, and their arrays: others may still read or write there."""


class KeptMovers:
    """Those of one communicator, or of a thread, by what they move; the one that was used last is the last."""

    def __init__(self, comm: Any = None) -> None:
        self._open = None if comm is None else _mpi.open_comm(comm)
        self._movers: OrderedDict[Any, tuple[_core.Mover, int]] = OrderedDict()  # and the bytes that each holds

    def move(self, key: Any, *arrays: Any) -> bool:
        """Moves where a mover is kept for what is asked for; with a communicator, collective, where all processes have
        kept the same."""
        mover, _ = self._movers.get(key, (None, 0))
        if self._open is not None:
            module, handle = self._open
            if not module.all_bring(handle, mover):
                return False
        if mover is None:
            return False
        try:
            mover()
        except BaseException:
            _broken.append((self._movers.pop(key)[0], arrays))
            raise
        self._movers.move_to_end(key)
        return True

    def keep(self, key: Any, mover: _core.Mover) -> None:
        """Keeps a mover that has moved, but not what it has moved."""
        held = None if key is None else mover.leave_memory()
        if held is None or held > _MOST_HELD:
            return
        self._movers[key] = mover, held
        self._movers.move_to_end(key)
        while len(self._movers) > _MOST_MOVERS or sum(held for _, held in self._movers.values()) > _MOST_HELD:
            self._movers.popitem(last=False)

    def clear(self) -> None:
        self._movers.clear()


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.movers = KeptMovers()


_of_thread = _OfThread()


_of_communicators: weakref.WeakSet[KeptMovers] = weakref.WeakSet()


def _of_a_communicator(comm: Any) -> KeptMovers:
    made = KeptMovers(comm)
    _of_communicators.add(made)
    return made


def kept_with(comm: Any) -> KeptMovers:
    """Those that are kept with a communicator, and go with it; None: those of this thread."""
    return _of_thread.movers if comm is None else _mpi.kept_with(comm, _of_a_communicator)


def let_go() -> None:
    """Lets go of what is kept with communicators: it holds the memory that it has shown to other processes. Not
    collective; where others still have theirs, all bind again."""
    for kept in _of_communicators:
        kept.clear()


def key_of(
    comm: Any, source: Any, source_layout: Any, destination_layout: Any, axes: Sequence[int] | None, out: Any
) -> Any:
    """What tells a call from others whose mover is another one; None for one whose mover is not to be kept. Mistakes in
    what is given are not found here."""
    try:
        own, to = _side(comm, source, source_layout), _side(comm, out, destination_layout)
        if own is None or to is None or (comm is None and own[0] + to[0] > _MOST_BYTES_HERE):
            return None
        return source_layout, destination_layout, axes if axes is None else tuple(axes), own, to
    except Exception:  # binding says what is wrong, to all
        return None


def _side(comm: Any, side: Any, layout: Any) -> tuple[Any, ...] | None:
    """Bytes, element type and place of the arrays of a side; None where that is not easily told."""
    if comm is None:
        if type(side) not in (list, tuple) or len(side) > _MOST_ARRAYS or not isinstance(layout, (Layout, str)):
            return None
        if not all(isinstance(array, np.ndarray) and not has_mask(array) for array in side):
            return None
        kinds = tuple(array.dtype for array in side)
        return sum(array.nbytes for array in side), kinds, tuple(map(_core.place_of, side))
    if isinstance(side, np.ndarray) and not has_mask(side) and isinstance(layout, (Layout, str)):
        return side.nbytes, side.dtype, _core.place_of(side)
    if side is None and isinstance(layout, Layout) and layout.local_size(comm.Get_rank()) == 0:
        return 0, None, None
    return None
