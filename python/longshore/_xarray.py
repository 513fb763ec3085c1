"""Distributed arrays of grids: `XArray`, and `Grid`, a NumPy view with global indices."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _arrays, _core
from ._mistakes import check
from ._words import short
from .errors import ArgumentError, ArgumentTypeError, ShapeError


class Grid(np.ndarray):
    """A block's elements over `region`, ghost cells included: a NumPy array that knows its place in the domain.

    NumPy's own indices count from the array's corner; `grid.at[...]` takes global ones, `grid.on(region)` a Region, and
    `grid.interior` is the block without its ghost cells. All of these are views. A grid's transposes and copies are
    grids, with the region that they are of; slices and results of arithmetic are ordinary arrays again. (The Data
    Mover, section 2.)

    >>> u = XArray(FloorPlan.even(Region.of_shape((8, 8)), 4), "float64", ghost=1)
    >>> u[3].region
    Region([3:9, 3:9])
    >>> u[3].at[4, 4:6] = 1, 2  # the global points (4, 4) and (4, 5)
    >>> u[3].interior[0, :2]
    array([1., 2.])
    >>> u[3].T.at[4:6, 4]
    array([1., 2.])
    """

    region: _core.Region | None
    """The points that there are elements for; None where an array was made of a grid in a way that loses them."""
    block: _core.Region | None
    """The region of the block itself, without ghost cells."""

    def __array_finalize__(self, obj: Any) -> None:
        # Whether an index of the new array means the same cannot be seen from its shape: who knows says so, with
        # _place.
        self.region = self.block = None

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        if array is self:  # arithmetic in place
            return self
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def _place(self, made: Any, axes: Sequence[int] | None = None) -> Any:
        """An array that was made of this one, of all of its elements, with dimensions permuted: told where it lies."""
        if isinstance(made, Grid) and self.block is not None and self.region is not None:
            made.region = self.region if axes is None else self.region.transpose(axes)
            made.block = self.block if axes is None else self.block.transpose(axes)
        return made

    def transpose(self, *axes: Any) -> Grid:
        """As NumPy's; the region is permuted alike."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], (int, np.integer)) else axes or None
        order = (
            range(self.ndim)[::-1] if order is None else [operator.index(axis) % max(self.ndim, 1) for axis in order]
        )
        return self._place(super().transpose(*axes), tuple(order))

    @property
    def T(self) -> Grid:
        """transpose()."""
        return self.transpose()

    @property
    def mT(self) -> Grid:
        """The last two dimensions exchanged."""
        if self.ndim < 2:
            raise ValueError(f"mT exchanges the last two dimensions; this grid has {self.ndim}")
        return self.swapaxes(-2, -1)

    def swapaxes(self, axis1: Any, axis2: Any) -> Grid:
        """As NumPy's; the region is permuted alike."""
        order = list(range(self.ndim))
        order[axis1], order[axis2] = order[axis2], order[axis1]
        return self.transpose(order)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """As NumPy's; an element type of another size loses the region."""
        made = super().view(*args, **kwargs)
        return self._place(made) if made.shape == self.shape else made

    @property
    def real(self) -> Grid:
        """The real parts, over the same region."""
        return self._place(super().real)

    @real.setter
    def real(self, value: Any) -> None:
        np.asarray(self).real = value

    @property
    def imag(self) -> Grid:
        """The imaginary parts, over the same region."""
        return self._place(super().imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        np.asarray(self).imag = value

    def copy(self, order: Any = "C") -> Grid:
        """A grid of its own memory, over the same region."""
        return self._place(super().copy(order))

    def astype(self, *args: Any, **kwargs: Any) -> Any:
        """A grid of another element type, over the same region."""
        return self._place(super().astype(*args, **kwargs))

    def __copy__(self) -> Grid:
        return self._place(super().__copy__())

    def __deepcopy__(self, memo: Any) -> Grid:
        return self._place(super().__deepcopy__(memo))

    def __reduce__(self) -> tuple[Any, ...]:
        return _grid_of, (np.asarray(self), self.region, self.block)

    def _placed(self) -> _core.Region:
        if self.region is None or self.region.shape != self.shape:
            raise ArgumentError(
                "this array was made of a grid and has no place in the domain: take `at`, `on` or `interior` of "
                "the XArray's own grid first, or index this array from its corner as NumPy does"
            )
        return self.region

    @property
    def at(self) -> _Global:
        """Elements by global indices: integers, slices and an ellipsis,
        `grid.at[-1, 4:9]`. Negative indices mean what they say."""
        return _Global(np.asarray(self), self._placed())

    def on(self, region: _core.Region) -> np.ndarray:
        """A view of the elements of a region. Raises ArgumentError where it reaches beyond the grid."""
        check("region", region, "Region")
        return np.asarray(self)[region.slices(self._placed())]

    @property
    def interior(self) -> np.ndarray:
        """A view of the block without its ghost cells."""
        self._placed()
        assert self.block is not None
        return self.on(self.block)


def _grid_of(array: np.ndarray, region: _core.Region | None, block: _core.Region | None) -> Grid:
    """An array as the grid of a region."""
    grid = array.view(Grid)
    grid.region, grid.block = region, block
    return grid


class _Global:
    """What `Grid.at` gives: an array with the indices of its domain."""

    def __init__(self, array: np.ndarray, region: _core.Region) -> None:
        self._array, self._region = array, region

    def _local(self, key: Any) -> tuple[Any, ...]:
        lower, upper = self._region.lower, self._region.upper
        keys = list(key) if isinstance(key, tuple) else [key]
        if dots := [k for k, each in enumerate(keys) if each is Ellipsis]:
            if len(dots) > 1:
                raise ArgumentError("more than one ellipsis")
            keys[dots[0] : dots[0] + 1] = [slice(None)] * (len(lower) - len(keys) + 1)
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
            if type(key) is not int:
                check(f"the index in dimension {d}", key, "int")
            return inside(operator.index(key), upper - 1)
        for end in (key.start, key.stop, key.step):
            if end is not None and type(end) is not int:
                check(f"an end or the step of the slice in dimension {d}", end, "int")
        if key.step is not None and key.step <= 0:
            raise ArgumentError(f"step {key.step} in dimension {d}: global slices go upwards")
        first = lower if key.start is None else operator.index(key.start)
        last = upper if key.stop is None else operator.index(key.stop)
        return slice(inside(first, upper), inside(max(first, last), upper), key.step)

    def __getitem__(self, key: Any) -> Any:
        return self._array[self._local(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[self._local(key)] = value


def _is_several(value: Any) -> bool:
    return isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _ghost_width(dim: int, width: Any) -> int | tuple[int, int]:
    """The ghost cells of a dimension: those of both sides, or a pair where they differ."""
    try:
        below, above = map(operator.index, width if _is_several(width) else [width] * 2)
        return below if below == above else (below, above)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"ghost is {short(width)} in dimension {dim}; it must be an integer or a pair (below, above)"
        ) from None


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
    copy. Elements are zero at first. `ghost`: ghost cells, one number for all dimensions, or for each
    one number for both sides or a pair (below, above).
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
        ghost: int | Sequence[int | tuple[int, int]] = 0,
        *,
        order: str = "C",
        comm: Any = None,
        rank: int | None = None,
    ) -> None:
        check("blocks", blocks, "FloorPlan")
        check("order", order, "str")
        check("rank", rank, "int | None")
        self.dtype = _arrays.fixed_dtype(dtype)
        """The elements' dtype."""
        self.blocks = blocks
        """The floor plan."""
        widths: Any = ghost if _is_several(ghost) else [ghost] * blocks.ndim
        self.ghost = tuple(_ghost_width(d, width) for d, width in enumerate(widths))
        """Ghost cells, for each dimension the number on both sides, or a pair (below, above) where these differ."""
        if len(self.ghost) != blocks.ndim:
            raise ShapeError(f"ghost has {len(self.ghost)} numbers; the blocks have {blocks.ndim} dimensions")
        if rank is not None and (comm is not None or rank < 0):
            raise ArgumentError(
                "with comm= an XArray has this rank's blocks; leave rank= out" if rank >= 0 else f"rank is {rank}"
            )
        self.order: Any = order
        """The memory order of every grid."""
        self._comm = comm
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
        return _grid_of(memory.reshape(region.shape, order=self.order), region, self.blocks[block])

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

    def __getitem__(self, block: int) -> Grid:  # type: ignore[override]
        """The Grid of a block. Raises ArgumentError where it has no storage here, naming its owner."""
        if type(block) is not int:
            check("block", block, "int")
        if block not in self._views:
            self._grids.region(block)  # raises
        return self._views[block]

    def __iter__(self) -> Iterator[Grid]:
        """The Grids that have storage here."""
        return iter(self._views.values())

    def items(self) -> Iterator[tuple[int, Grid]]:
        """(block, Grid) of those that have storage here."""
        return iter(self._views.items())

    def __contains__(self, grid: object) -> bool:
        """Whether it is one of the Grids that have storage here; another array of the same elements is not."""
        return any(each is grid for each in self)

    def index(self, grid: Any, start: int = 0, stop: int | None = None) -> int:
        """The block, among those from start to stop, whose Grid this is. Raises ValueError where it is nobody's."""
        among = range(len(self))[start:stop]
        for k, each in self.items():
            if each is grid and k in among:
                return k
        raise ValueError(f"{short(grid)} is no grid of this XArray, or of no block in {among}")

    def count(self, grid: Any) -> int:
        """1 for a Grid that has storage here, 0 for anything else."""
        return int(grid in self)

    def __copy__(self) -> XArray:
        """The same memory once more."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: Any) -> XArray:
        """An array of memory of its own over the same blocks, with the same elements. Not collective."""
        rank = self.rank if self._comm is None else None
        made = XArray(self.blocks, self.dtype, self.ghost, order=self.order, comm=self._comm, rank=rank)
        for k, grid in self.items():
            np.copyto(made[k], grid)
        return made

    def __reduce__(self) -> Any:
        raise TypeError(
            "an XArray cannot be pickled, for its memory is of this process or node: write it with longshore.save, or "
            "pickle its blocks and the grids of its items()"
        )

    def __repr__(self) -> str:
        whose = "" if self.rank is None else f", rank {self.rank}'s {len(self._views)}"
        return f"<longshore.XArray: {len(self)} blocks{whose} of {self.dtype}, ghost cells {self.ghost}>"
