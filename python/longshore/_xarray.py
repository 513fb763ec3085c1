"""Distributed arrays of grids: `XArray`, and `Grid`, a NumPy view with global indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _arrays, _core
from .errors import ArgumentError


class Grid(np.ndarray):
    """A block's elements over `region`, ghost cells included: a NumPy array that knows its place in the domain.

    NumPy's own indices count from the array's corner; `grid.at[...]` takes global ones, `grid.on(region)` a Region, and
    `grid.interior` is the block without its ghost cells. All of these are views. Slices and results of arithmetic are
    ordinary arrays again. (The Data Mover, section 2.)

    >>> u = XArray(FloorPlan.even(Region.of_shape((8, 8)), 4), "float64", ghost=1)
    >>> u[3].region
    Region([3:9, 3:9])
    >>> u[3].at[4, 4:6] = 1, 2  # the global points (4, 4) and (4, 5)
    >>> u[3].interior[0, :2]
    array([1., 2.])
    """

    region: _core.Region | None
    """The points that there are elements for; None where an array was made of a grid."""
    block: _core.Region | None
    """The region of the block itself, without ghost cells."""

    def __array_finalize__(self, obj: Any) -> None:
        same = getattr(obj, "shape", None) == self.shape and getattr(obj, "region", None) is not None
        self.region = obj.region if same else None
        self.block = obj.block if same else None

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def _placed(self) -> _core.Region:
        if self.region is None:
            raise ArgumentError(
                "this array was made of a grid and has no place in the domain; take the XArray's own grid"
            )
        return self.region

    @property
    def at(self) -> _Global:
        """Elements by global indices: integers, slices and an ellipsis,
        `grid.at[-1, 4:9]`. Negative indices mean what they say."""
        return _Global(np.asarray(self), self._placed())

    def on(self, region: _core.Region) -> np.ndarray:
        """A view of the elements of a region. Raises ArgumentError where it reaches beyond the grid."""
        return np.asarray(self)[region.slices(self._placed())]

    @property
    def interior(self) -> np.ndarray:
        """A view of the block without its ghost cells."""
        self._placed()
        return self.on(self.block)


class _Global:
    """What `Grid.at` gives: an array with the indices of its domain."""

    def __init__(self, array: np.ndarray, region: _core.Region) -> None:
        self._array, self._region = array, region

    def _local(self, key: Any) -> tuple[Any, ...]:
        lower, upper = self._region.lower, self._region.upper
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in keys:
            where = keys.index(Ellipsis)
            keys[where : where + 1] = [slice(None)] * (len(lower) - len(keys) + 1)
        keys += [slice(None)] * (len(lower) - len(keys))
        if len(keys) != len(lower):
            raise ArgumentError(f"{len(keys)} indices for {len(lower)} dimensions")
        return tuple(self._one(d, k, lower[d], upper[d]) for d, k in enumerate(keys))

    def _one(self, d: int, key: Any, lower: int, upper: int) -> Any:
        def inside(index: int, last: int) -> int:
            if not lower <= index <= last:
                raise ArgumentError(f"index {index} in dimension {d} is outside the grid's [{lower}, {upper})")
            return index - lower

        if not isinstance(key, slice):
            return inside(key.__index__(), upper - 1)
        if key.step is not None and key.step <= 0:
            raise ArgumentError(f"step {key.step} in dimension {d}: global slices go upwards")
        first = lower if key.start is None else key.start.__index__()
        last = upper if key.stop is None else key.stop.__index__()
        return slice(inside(first, upper), inside(max(first, last), upper), key.step)

    def __getitem__(self, key: Any) -> Any:
        return self._array[self._local(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[self._local(key)] = value


class _Bytes:
    """The memory of a grid, kept alive by NumPy as an array's base."""

    def __init__(self, owner: Any, address: int, size: int) -> None:
        self._owner = owner
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address, False)}


class XArray(Sequence):
    """A distributed array: one grid over each block of a floor plan, grown by ghost cells (the Data Mover, section 2).

    Without `comm` every block has storage in this process (with `rank`, that rank's blocks alone) and plans move it on
    the threads engine. With an mpi4py communicator block owners are its ranks, and only this rank's blocks have
    storage, where the ranks of the same node can reach it: a plan bound to XArrays moves between them with a single
    copy. Elements are zero at first. `ghost`: ghost cells on both sides, one number for all dimensions or one each.
    Making one is not collective. Raises ArgumentError, ShapeError, DTypeError.

    `x[k]` is the Grid of block k; `x.items()` goes over those that have storage here.

    >>> blocks = FloorPlan.even(Region.of_shape((6, 6)), 4)
    >>> u = XArray(blocks, "float64", ghost=1)
    >>> for k, grid in u.items():
    ...     grid.interior[...] = k
    >>> BlockPlan.halo(blocks, 1).bind(u)()
    >>> u[0].at[2, 3], u[0].at[3, 3]
    (1.0, 3.0)
    """

    def __init__(
        self,
        blocks: _core.FloorPlan,
        dtype: Any,
        ghost: int | Sequence[int] = 0,
        *,
        order: str = "C",
        comm: Any = None,
        rank: int | None = None,
    ) -> None:
        self.dtype = _arrays.fixed_dtype(dtype)
        """The elements' dtype."""
        self.blocks = blocks
        """The floor plan."""
        self.ghost = tuple([ghost] * blocks.ndim if isinstance(ghost, (int, np.integer)) else ghost)
        """Ghost cells on both sides, a dimension each."""
        self.order = order
        """The memory order of every grid."""
        if comm is not None:
            from . import _mpi

            self._grids = _mpi.make_grids(blocks, comm, self.dtype.itemsize, self.ghost, order)
        else:
            self._grids = _core.Grids.make(blocks, rank, self.dtype.itemsize, self.ghost, order)
        self._views = {k: self._view(k) for k in self._grids.owned}

    def _view(self, block: int) -> Grid:
        region = self._grids.region(block)
        size = region.size * self.dtype.itemsize
        if size:
            memory = np.asarray(_Bytes(self._grids, self._grids.address(block), size)).view(self.dtype)
        else:
            memory = np.empty(0, self.dtype)
        grid = memory.reshape(region.shape, order=self.order).view(Grid)
        grid.region, grid.block = region, self.blocks[block]
        return grid

    @property
    def owned(self) -> list[int]:
        """The blocks that have storage here, ascending."""
        return list(self._views)

    @property
    def rank(self) -> int | None:
        """Whose blocks have storage here; None: everybody's."""
        return self._grids.rank

    def __len__(self) -> int:
        """Blocks, here and elsewhere."""
        return len(self.blocks)

    def __getitem__(self, block: int) -> Grid:
        """The Grid of a block. Raises ArgumentError where it has no storage here, naming its owner."""
        view = self._views.get(block)
        if view is None:
            self._grids.region(block)  # raises
        return view

    def __iter__(self) -> Iterator[Grid]:
        """The Grids that have storage here."""
        return iter(self._views.values())

    def items(self) -> Iterator[tuple[int, Grid]]:
        """(block, Grid) of those that have storage here."""
        return iter(self._views.items())

    def __repr__(self) -> str:
        whose = "" if self.rank is None else f", rank {self.rank}'s {len(self._views)}"
        return f"<longshore.XArray: {len(self)} blocks{whose} of {self.dtype}, ghost cells {self.ghost}>"
