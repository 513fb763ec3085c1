"""Plans between blocks, bound to XArrays and to NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arrays, _core
from ._mistakes import count, flag, one_of
from ._words import size_in_bytes
from ._xarray import XArray
from .errors import ArgumentError, DTypeError


def _dtype_of(side: Any) -> np.dtype | None:
    if isinstance(side, XArray):
        return side.dtype
    return next((array.dtype for array in side or ()), None)


def _arrays_of(side: Any, name: str) -> Any:
    if side is None or isinstance(side, XArray):
        return side
    if isinstance(side, np.ndarray) or not hasattr(side, "__iter__"):
        raise ArgumentError(f"the {name}s are {type(side).__name__}; give an XArray or a sequence of one array a block")
    return [_arrays.as_array(array) for array in side]


def _grids(
    side: Any,
    blocks: _core.FloorPlan,
    rank: int | None,
    dtype: np.dtype,
    ghost: Any,
    written: bool,
    order: str,
    name: str,
) -> _core.Grids:
    if isinstance(side, XArray):
        if ghost is not None:
            raise ArgumentError(
                f"the {name} is an XArray, which knows its ghost cells; ghost= is for arrays of your own"
            )
        if side.dtype != dtype:
            raise DTypeError(f"the {name} has dtype {side.dtype}, the source has {dtype}")
        return side._grids
    owned = range(len(blocks)) if rank is None else blocks.owned_by(rank)
    for k, array in zip(owned, side):
        if array.dtype != dtype:
            raise DTypeError(f"the {name} array of block {k} has dtype {array.dtype}, not {dtype}")
    arrays = [_arrays.local_array(array) for array in side]
    return _core.Grids.over(blocks, rank, dtype.itemsize, ghost or 0, arrays, name, written, order)


def bind(
    plan: _core.BlockPlan,
    sources: Any,
    destinations: Any,
    *,
    comm: Any = None,
    ghost: int | Sequence[int] | None = None,
    destination_ghost: int | Sequence[int] | None = None,
    combine: str | None = None,
    threads: int | None = None,
    max_mem: int | str | None = None,
    proxy: bool = False,
    checked: bool = False,
    order: str = "F",
    node: str | None = None,
    aggregate: bool | None = None,
    packet_bytes: int | None = None,
    preallocate: bool | None = None,
    exchange: str | None = None,
) -> _core.Mover:
    """What `BlockPlan.bind` does."""
    messages: dict[str, Any] = {
        "node": node,
        "aggregate": aggregate,
        "packet_bytes": packet_bytes,
        "preallocate": preallocate,
        "exchange": exchange,
    }

    def known_dtype() -> np.dtype | None:
        return _dtype_of(_arrays_of(sources, "source")) or _dtype_of(_arrays_of(destinations, "destination"))

    def prepare(dtype: np.dtype, rank: int | None) -> tuple[_core.Grids, _core.Grids, np.dtype, dict[str, Any]]:
        given, taken = _arrays_of(sources, "source"), _arrays_of(destinations, "destination")
        if given is None:
            raise ArgumentError("the sources are None; give an XArray or a sequence of one array a block")
        _arrays.fixed_dtype(dtype)
        visit = one_of(order, "order", ("C", "F"))
        from_ = _grids(given, plan.source, rank, dtype, ghost, taken is None, visit, "source")
        to = from_
        if taken is not None:
            own_ghost = None if isinstance(taken, XArray) else ghost if destination_ghost is None else destination_ghost
            to = _grids(taken, plan.destination, rank, dtype, own_ghost, True, visit, "destination")
        if combine is not None and not isinstance(combine, str):
            raise ArgumentError(f'combine is {combine!r}; it names an operation, such as "add", or is None')
        options = {
            "type": _arrays.element_type(dtype, combine),
            "combine": combine or "",
            "max_mem": size_in_bytes(max_mem),
            "proxy": flag(proxy, "proxy"),
            "checked": flag(checked, "checked"),
            "order": visit,
        }
        return from_, to, dtype, options

    if comm is None:
        unused = [name for name, value in messages.items() if value is not None]
        if unused:
            raise ArgumentError(f"{unused[0]}= is for messages between processes; it needs comm=")
        from_, to, _, options = prepare(known_dtype() or np.dtype(np.uint8), None)
        return _core.bind_grids_threads(plan, from_, to, threads=count(threads or 0, "threads"), **options)
    from . import _mpi

    dtype = _mpi.common_dtype(comm, known_dtype, np.dtype(np.uint8))

    def prepare_rank() -> tuple[_core.Grids, _core.Grids, np.dtype, dict[str, Any]]:
        if threads is not None:
            raise ArgumentError("threads= is for the threads engine; with comm= every rank moves its own part")
        return prepare(dtype, comm.Get_rank())

    return _mpi.bind_blocks(plan, comm, prepare_rank, **messages)


def empty(plan: _core.FloorPlan, dtype: Any, ghost: int | Sequence[int], order: Any) -> list[np.ndarray]:
    """What `FloorPlan.empty` does."""
    dtype = _arrays.fixed_dtype(dtype)
    if order not in ("C", "F"):
        raise ArgumentError(f'order is "{order}"; it must be "C" or "F"')
    return [np.empty(region.grow(ghost).shape, dtype, order) for region in plan]
