"""Plans between blocks, bound to NumPy arrays."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from . import _arrays, _core
from .errors import ArgumentError, DTypeError


def _blocks(arrays: Any, name: str) -> list[np.ndarray]:
    if isinstance(arrays, np.ndarray) or not hasattr(arrays, "__iter__"):
        raise ArgumentError(f"the {name}s are {type(arrays).__name__}; give a sequence of one array a block")
    return [_arrays.as_array(array) for array in arrays]


def bind(
    plan: _core.BlockPlan,
    sources: Sequence[Any],
    destinations: Sequence[Any] | None,
    ghost: int | Sequence[int],
    destination_ghost: int | Sequence[int] | None,
    threads: int | None,
    order: str,
) -> _core.Mover:
    """What `BlockPlan.bind` does."""
    given = _blocks(sources, "source")
    taken = None if destinations is None else _blocks(destinations, "destination")
    dtype = next((array.dtype for array in given), np.dtype(np.uint8))
    _arrays.fixed_dtype(dtype)
    for name, arrays in (("source", given), ("destination", taken or [])):
        for k, array in enumerate(arrays):
            if array.dtype != dtype:
                raise DTypeError(f"the {name} array of block {k} has dtype {array.dtype}, source block 0 has {dtype}")
    return _core.bind_block_threads(
        plan,
        dtype.itemsize,
        [_arrays.local_array(array) for array in given],
        ghost,
        None if taken is None else [_arrays.local_array(array) for array in taken],
        ghost if destination_ghost is None else destination_ghost,
        threads or 0,
        order,
    )


def empty(plan: _core.FloorPlan, dtype: Any, ghost: int | Sequence[int], order: str) -> list[np.ndarray]:
    """What `FloorPlan.empty` does."""
    dtype = _arrays.fixed_dtype(dtype)
    if order not in ("C", "F"):
        raise ArgumentError(f'order is "{order}"; it must be "C" or "F"')
    return [np.empty(region.grow(ghost).shape, dtype, order) for region in plan]
