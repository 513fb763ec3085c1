"""A whole array dealt to the blocks of an XArray, and brought back: what `scatter` and `gather` do with one."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arrays
from ._core import BlockPlan, FloorPlan
from ._xarray import XArray
from .errors import ArgumentError, DTypeError, ShapeError


def scatter(array: Any, to: XArray, comm: Any, root: int) -> XArray:
    """Every block's points of the whole array of rank `root`."""

    def prepare() -> tuple[list[np.ndarray], FloorPlan]:
        whole = _whole_at(root, to, comm)
        return ([_checked(array, to, "the array")] if _is_root(comm, root) else []), whole

    source, whole = _together(comm, prepare)
    BlockPlan.copy_between(whole, to.blocks).bind(source, to, comm=comm)()
    return to


def gather(of: XArray, layout: Any, out: Any, comm: Any, root: int) -> np.ndarray | None:
    """Every block's points in one array, at rank `root`; elsewhere None."""

    def prepare() -> tuple[list[np.ndarray], FloorPlan]:
        if layout is not None:
            raise ArgumentError("an XArray has its own floor plan; leave layout out")
        whole = _whole_at(root, of, comm)
        if not _is_root(comm, root):
            return [], whole
        return [np.zeros(whole[0].shape, of.dtype, of.order) if out is None else _checked(out, of, "out")], whole

    target, whole = _together(comm, prepare)
    BlockPlan.copy_between(of.blocks, whole).bind(of, target, comm=comm)()
    return None if not target else target[0] if out is None else out


def _together(comm: Any, prepare: Any) -> tuple[list[np.ndarray], FloorPlan]:
    if comm is None:
        return prepare()
    from . import _mpi

    return _mpi.together(comm, prepare)


def _is_root(comm: Any, root: int) -> bool:
    return comm is None or comm.Get_rank() == root


def _whole_at(root: int, x: XArray, comm: Any) -> FloorPlan:
    """One block of all points, at a rank of a communicator."""
    if comm is None:
        if x.rank is not None:
            raise ArgumentError(f"the XArray has the blocks of rank {x.rank} alone; give comm= that it was made with")
        return FloorPlan([x.blocks.bounding], [0])
    return FloorPlan([x.blocks.bounding], [_arrays.root_in(root, comm)])


def _checked(array: Any, x: XArray, name: str) -> np.ndarray:
    """A whole array of the XArray's dtype, over the region that contains all of its blocks."""
    array = _arrays.as_array(array)
    region = x.blocks.bounding
    if region.empty and array.size == 0 and array.ndim == region.ndim:
        array = array.reshape(region.shape)  # empty regions are all equal, whatever their shape
    if array.shape != region.shape:
        raise ShapeError(f"{name} has shape {array.shape}, the blocks lie in {region}, of shape {region.shape}")
    if array.dtype != x.dtype:
        raise DTypeError(f"{name} has dtype {array.dtype}, the XArray {x.dtype}")
    return array
