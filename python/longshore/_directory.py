"""Plans of which each rank knows only what it needs itself, and the directory of who owns which number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _arrays, _core, _mpi
from ._mistakes import check
from .errors import ArgumentError, LocalArrayError, ShapeError

if TYPE_CHECKING:
    from mpi4py import MPI
    from numpy.typing import ArrayLike


class Directory:
    """Who owns which global number, kept by all ranks together: for meshes and graphs whose vertices are owned as a
    partitioner says.

    `owned` are the numbers that this rank owns, an integer array of shape (n,), in the order of its local array: entry
    i is local place i. Any numbers from 0 to 2**63 - 1, in any order. Every rank keeps a share of the entries, which a
    hash picks, 24 bytes each; nobody holds all of them. Collective over `comm`, a communicator of mpi4py, as are the
    methods: every rank calls them, with an empty array where it owns or needs nothing. Let go of it before you free the
    communicator.

    What is wrong on one rank is the same error on all ranks: ArgumentError where a number is negative, or owned twice,
    by one rank or by two; DTypeError for arrays of no integers, ShapeError for those of other dimensions than one.

    >>> from mpi4py import MPI
    >>> directory = Directory([70, 10, 2**62], comm=MPI.COMM_SELF)
    >>> ranks, places = directory.find([10, 5, 2**62])
    >>> ranks.tolist(), places.tolist()
    ([0, -1, 0], [1, -1, 2])
    """

    def __init__(self, owned: ArrayLike, *, comm: MPI.Comm) -> None:
        module, handle = _mpi.open_comm(comm)
        self._comm, self._who = comm, f"rank {comm.Get_rank()} of {comm.Get_size()}"
        self._kept = module.Directory(handle, _mpi.together(comm, lambda: _numbers(owned, "owned")))

    def find(self, numbers: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Who owns these numbers, in their order: the ranks, and the places in those ranks' `owned`, two int64 arrays
        of shape (n,). -1, both, where nobody does. Any integers, in any order, repeated ones too. Collective."""
        return self._kept.find(_mpi.together(self._comm, lambda: _numbers(numbers, "numbers")))

    def gather_points(self, needed: ArrayLike) -> _core.BlockPlan:
        """The plan that fetches ghosts: numbers that this rank needs and others own, an integer array of shape (n,).

        Both floor plans of the plan have one block a rank, [0, owned + needed): first what it owns, at its local
        places, then what it needs, in the order in which it is listed. A number may be listed several times and comes
        as often. The plan is this rank's share, with the whole plan's digest; `bind` it with the same `comm`.
        Reversed, with reduce="add", it adds what was worked out for ghosts to their owners'. Collective. Raises
        ArgumentError, on all ranks, where one needs a number that nobody owns, or one that it owns itself.

        >>> directory = Directory([7, 40, 3], comm=comm)  # doctest: +SKIP
        >>> plan = directory.gather_points([12, 9])  # doctest: +SKIP
        >>> u = XArray(plan.source, float, comm=comm)  # doctest: +SKIP
        >>> u[comm.rank][:3] = values_of_mine  # doctest: +SKIP
        >>> plan.bind(u, comm=comm)()  # then u[comm.rank][3:] has the values of 12 and 9  # doctest: +SKIP
        """
        return self._kept.gather_points(_mpi.together(self._comm, lambda: _numbers(needed, "needed")))

    def __len__(self) -> int:
        """How many numbers this rank owns."""
        return self._kept.owned

    @property
    def workspace_bytes(self) -> int:
        """Bytes of memory that this rank's share takes."""
        return self._kept.workspace_bytes

    def __repr__(self) -> str:
        return f"<longshore.Directory: {self._who} owns {len(self)} numbers>"


def gather_points(blocks: _core.FloorPlan, needed: Any, comm: Any, rank: int | None) -> _core.BlockPlan:
    """`BlockPlan.gather_points` with a communicator."""
    if comm is None:
        return _core.BlockPlan.gather_points(blocks, needed, rank=rank)
    module, handle = _mpi.open_comm(comm)

    def checked() -> list[np.ndarray]:
        _check_blocks(blocks, "blocks", rank, comm)
        own = len(blocks.owned_by(comm.Get_rank()))
        if own == 1 and not _several(needed):
            return [_numbers(needed, "needed")]
        if not hasattr(needed, "__iter__"):
            raise ArgumentError(f"needed is {type(needed).__name__}; give an array for each block that this rank owns")
        lists = [_numbers(some, f"needed[{i}]") for i, some in enumerate(needed)]
        if len(lists) != own:
            raise ShapeError(f"{len(lists)} lists of vertices for the {own} blocks that this rank owns")
        return lists

    return module.gather_points(blocks, _mpi.together(comm, checked), handle)


def gather_indices(layout: _core.Layout, indices: Any, comm: Any) -> _core.BlockPlan:
    """What `BlockPlan.gather_indices` does."""
    module, handle = _mpi.open_comm(comm)

    def checked() -> tuple[_core.Layout, np.ndarray]:
        if not isinstance(layout, _core.Layout):
            raise ArgumentError(f"layout is {type(layout).__name__}; it must be a Layout")
        return layout, _rows(indices, layout.shape)

    return module.gather_indices(*_mpi.together(comm, checked), handle)


def take(local: Any, layout: _core.Layout, indices: ArrayLike, *, comm: MPI.Comm) -> np.ndarray:
    """Any elements of a distributed array, for each rank its own: numpy.take, where nobody has the whole array.

    `local` is this rank's local array of `layout`, None where it has none; `indices` are those that this rank wants:
    integers of shape (n, d) for an array of d dimensions, or (n,), in row-major order of the whole array. Any order,
    repeated ones too. Returns a new array of shape (n,). For more than once, bind `BlockPlan.gather_indices`.
    Collective over `comm`, a communicator of mpi4py. What is wrong on one rank is the same error on all: ArgumentError
    for an index outside the array, DTypeError for indices that are no integers, ShapeError for a wrong local array,
    LocalArrayError for none on a rank that owns elements.

    >>> from mpi4py import MPI
    >>> layout = Layout("(BLOCK, *) on 1", (3, 4))
    >>> take(np.arange(12).reshape(3, 4), layout, [11, 0, 7], comm=MPI.COMM_SELF)
    array([11,  0,  7])
    """
    plan = gather_indices(layout, indices, comm)
    me = comm.Get_rank()

    def dtype_here() -> np.dtype | None:
        if local is not None:
            return _arrays.as_array(local).dtype
        if owned := math.prod(plan.source[me].shape):
            raise LocalArrayError(f"there is no local array here, where {layout} has {owned} elements")
        return None

    dtype = _mpi.common_dtype(comm, dtype_here)
    shape = plan.destination[me].shape
    taken = np.empty(shape, dtype)
    plan.bind([np.empty(plan.source[me].shape, dtype) if local is None else local], [taken], comm=comm)()
    return taken.reshape(-1)


def copy_between(source: _core.FloorPlan, wanted: Any, comm: Any, domain: Any, periodic: Any, rank: Any) -> Any:
    """`BlockPlan.copy_between` with a communicator."""
    if comm is None:
        return _core.BlockPlan.copy_between(source, wanted, domain=domain, periodic=periodic, rank=rank)
    module, handle = _mpi.open_comm(comm)

    def checked() -> tuple[_core.FloorPlan, list[_core.Region], int, Any, Any]:
        _check_blocks(source, "source", rank, comm)
        regions = [wanted] if isinstance(wanted, _core.Region) else wanted
        if isinstance(wanted, _core.FloorPlan):
            raise ArgumentError("destination is a FloorPlan; with comm= it is this rank's own regions")
        check("destination", regions, "Sequence[Region]")
        # What is periodic makes sense, or this says why not.
        _core.BlockPlan.copy_between(source, _core.FloorPlan([], []), domain=domain, periodic=periodic)
        return source, list(regions), handle, domain, periodic

    return module.copy_between(*_mpi.together(comm, checked))


def _check_blocks(blocks: Any, name: str, rank: Any, comm: Any) -> None:
    if not isinstance(blocks, _core.FloorPlan):
        raise ArgumentError(f"{name} is {type(blocks).__name__}; it must be a FloorPlan")
    if rank is not None and rank != comm.Get_rank():
        raise ArgumentError(f"rank is {rank!r}; with comm= the plan is that of this process, {comm.Get_rank()}")


def _rows(indices: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Indices of an array, one after the other; flat ones are taken apart."""
    size = int(np.prod(shape, dtype=object))
    if len(shape) == 1 and np.ndim(indices) == 2 and np.shape(indices)[1] == 1:
        indices = np.reshape(indices, -1)
    if np.ndim(indices) == 2 or len(shape) == 1:
        return _arrays.index_array(indices, "indices", len(shape))[0].astype(np.int64, copy=False).reshape(-1)
    flat = _numbers(indices, "indices")
    outside = (flat < 0) | (flat >= size)
    if outside.any():
        first = int(np.argmax(outside))
        raise ArgumentError(f"indices[{first}] is {flat[first]}, outside [0, {size}): the array has shape {shape}")
    return np.stack(np.unravel_index(flat, shape), axis=1).astype(np.int64, copy=False).reshape(-1)


def _several(needed: Any) -> bool:
    """Whether these are several lists, and not the numbers of one."""
    if isinstance(needed, np.ndarray):
        return needed.ndim == 2
    return isinstance(needed, (list, tuple)) and len(needed) > 0 and np.ndim(needed[0]) > 0


def _numbers(values: Any, name: str) -> np.ndarray:
    return _arrays.index_array(values, name, 1)[0].astype(np.int64, copy=False)
