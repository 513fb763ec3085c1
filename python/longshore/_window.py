"""One-sided access: `Window`, arrays that ranks lay open to each other, and `Section`, what is got from them or put
there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from . import _arrays, _core, _mpi
from ._mistakes import count, one_of
from ._sections import PieceSection, Section
from ._whole import IncomingBlocks, IncomingSection, WholeSection
from ._words import short
from ._xarray import XArray
from .errors import ArgumentError, ArgumentTypeError, DTypeError, LocalArrayError, ShapeError


class Window:
    """Arrays that ranks lay open to each other: any rank gets and puts sections of any of them, while the owner does
    something else (get, nbget and sync of Iancu, Husbands & Chen, "Message strip mining heuristics for high speed
    networks", section 2).

    `arrays` with an mpi4py communicator: this rank's NumPy array, of any shape and strides, or None; `window[r]` is the
    Section of rank r's. With `layout`, the arrays are the local arrays of a Layout, `window[r]` that of its rank r, and
    `window.whole` is the array that they are parts of, by its global indices. Of an XArray, `window[k]` is block k with
    its ghost cells and `window.whole` the domain without them. Without `comm`, all arrays are in this process: a list,
    a mapping by layout rank, or an XArray.

    Opening is collective with `comm`, and so are `fence()` and `close()` (a `with` statement closes); getting and
    putting are not. Between two fences what one rank puts no other may get or put, nor its owner touch.

    Memory that ranks of a node have in common (`ls.empty(layout, dtype, comm=comm)`, `XArray(..., comm=comm)`) is
    reached directly, other memory of this node by the kernel, which copies between processes where it is allowed to,
    and the rest through MPI's one-sided calls: with "messages" for `node` everything is. `progress`: who
    sees to what others ask for while this rank computes: MPI's own "calls", or a "thread", which needs
    MPI_THREAD_MULTIPLE and is what "auto" takes where it is needed and allowed. `window.progress` says in words what it
    came to.

    Raises ArgumentError, ShapeError, LocalArrayError, DTypeError, on all ranks what is wrong on one, and
    DisagreementError where ranks have other dtypes, layouts or options.

    >>> window = Window([np.arange(4.0), np.arange(10.0, 16.0)])
    >>> window[1][1:4].get()
    array([11., 12., 13.])
    >>> window[0][::2].put([7, 8])
    >>> window[0].get()
    array([7., 1., 8., 3.])
    """

    def __init__(
        self,
        arrays: Any,
        *,
        comm: Any = None,
        layout: _core.Layout | None = None,
        node: str = "auto",
        progress: str = "auto",
    ) -> None:
        self._layout = layout
        self._schedules: dict[Any, _core.StripSchedule] = {}  # of strips, that loops over this window have settled on
        self._blocks = arrays if isinstance(arrays, XArray) else None
        if comm is None:
            for name, value in (("node", node), ("progress", progress)):
                if value != "auto":
                    raise ArgumentError(f"{name}= is for ranks that are processes; it needs comm=")
            given = self._given(arrays, None)
            dtypes = {array.dtype for array in given.values()}
            if len(dtypes) > 1:
                raise DTypeError(f"the arrays have different dtypes: {', '.join(sorted(map(str, dtypes)))}")
            if not given or sorted(given) != list(range(len(given))):
                raise ArgumentError(f"without comm= every array of 0, 1, ... must be here; there are {sorted(given)}")
            self.dtype = _arrays.fixed_dtype(dtypes.pop())
            """The elements' dtype."""
            ordered = {k: given[k] for k in range(len(given))}
            self._window = _core.open_window(_core.Parts(ordered), self.dtype.itemsize)
            self._rank = None
            return
        self._rank = _mpi.rank_in(comm)

        def mine() -> np.dtype | None:
            dtypes = {array.dtype for array in self._given(arrays, comm).values()}
            if len(dtypes) > 1:
                raise DTypeError(f"this rank's arrays have different dtypes: {', '.join(sorted(map(str, dtypes)))}")
            one_of(node, "node", ("auto", "messages"))
            one_of(progress, "progress", ("auto", "calls", "thread"))
            return dtypes.pop() if dtypes else None

        self.dtype = _mpi.common_dtype(comm, mine)
        what = "" if layout is None else str(layout)
        self._window = _mpi.open_window(
            comm, self._pieces(comm), self._given(arrays, comm), self.dtype, node, progress, what
        )

    def _pieces(self, comm: Any) -> int:
        if self._blocks is not None:
            return len(self._blocks)
        return comm.Get_size() if self._layout is None else max(self._layout.world_size, 1)

    def _given(self, arrays: Any, comm: Any) -> dict[int, np.ndarray]:
        """The arrays that this process has, by number."""
        if self._blocks is not None:
            if self._layout is not None:
                raise ArgumentError("an XArray has blocks; leave layout= out")
            return {k: np.asarray(grid) for k, grid in self._blocks.items()}
        if self._layout is not None and not isinstance(self._layout, _core.Layout):
            raise ArgumentTypeError(f"layout is {short(self._layout)}; it must be a Layout")
        if comm is not None:
            rank = comm.Get_rank()
            owned = None if self._layout is None else self._layout.local_size(rank)
            if arrays is None:
                if owned:
                    raise ArgumentError(f"rank {rank} owns {owned} elements of {self._layout}, and brings no array")
                return {}
            if isinstance(arrays, (Mapping, list, tuple)):
                raise ArgumentError("with comm= every rank brings one array, or None")
            given = {rank: _arrays.as_array(arrays)}
            if owned == 0 and given[rank].size == 0:  # it may take no part in the layout at all
                return {}
        elif self._layout is not None:
            given = _arrays.by_rank(arrays, self._layout.ranks, "window's")
        elif isinstance(arrays, np.ndarray) or not isinstance(arrays, Sequence):
            raise ArgumentError(f"arrays is one {type(arrays).__name__}; give a list, or comm= where each rank has one")
        else:
            given = dict(enumerate(map(_arrays.as_array, arrays)))
        if self._layout is not None:
            for rank, array in given.items():
                _check_local(array, self._layout, rank)
        return given

    def __len__(self) -> int:
        """Arrays, here and elsewhere."""
        return len(self._window)

    def __getitem__(self, number: int) -> Section:
        """The Section of a whole array: that of a rank, or of a block. Raises ArgumentError where there is none."""
        return PieceSection(self, count(number, "the number of an array"))

    @property
    def whole(self) -> Section:
        """The array that layout or blocks are of, by its global indices, counted from the first that blocks have:
        slices of any step, single indices, None, and one list of indices or mask in one dimension. Where owners have
        what these select neither evenly nor in one stretch, the section keeps 24 bytes for each stretch of it. Raises
        ArgumentError where the arrays are parts of nothing."""
        if self._blocks is not None:
            domain = self._blocks.blocks.bounding
            return WholeSection(self, list(map(range, domain.lower, domain.upper)), range(len(domain.lower)))
        if self._layout is None:
            raise ArgumentError("the arrays of this window are parts of nothing; open it with layout=, or of an XArray")
        shape = self._layout.shape
        return WholeSection(self, list(map(range, shape)), range(len(shape)))

    def incoming(
        self, plan: _core.MotionPlan | _core.BlockPlan, rank: int | None = None, *, block: int | None = None
    ) -> Section:
        """What a plan from this window's layout or blocks brings to a rank, this one unless told.

        Of a MotionPlan, a Section in the shape of the local array, or where its order is F in that of the array's
        transpose, so that strips follow its memory. Of a BlockPlan, one of shape (points,): motion after motion as
        `plan.receives(rank)` has them, the points of each in the order of its destination region (the last dimension
        fastest), or as they are listed. With `block`, a Section in the shape of that block of the destination, all of
        which the plan must bring, whoever owns it. Points that are listed take 16 bytes each to ask for.

        Not collective. Raises ArgumentError for a plan from another layout or other blocks, and what `plan.receives`
        raises; when it is asked for, ArgumentError where the plan reads beyond ghost cells, leaves gaps in a block or
        brings an element of it twice."""
        if not isinstance(plan, (_core.MotionPlan, _core.BlockPlan)):
            raise ArgumentTypeError(f"a plan must be a MotionPlan or a BlockPlan, not {type(plan).__name__}")
        if isinstance(plan, _core.BlockPlan):
            if self._blocks is None or plan.source != self._blocks.blocks:
                raise ArgumentError(
                    "the plan is from other blocks than this window's; open it of an XArray over plan.source"
                )
            if block is not None:
                return self._incoming_to(plan, count(block, "block"), rank)
        elif block is not None:
            raise ArgumentError("block= is for plans between blocks; a rank has one array of a layout")
        elif self._layout is None or plan.source != self._layout:
            raise ArgumentError(f"the plan is from {plan.source}, the window's arrays are of {self._layout}")
        if rank is None:
            if self._rank is None:
                raise ArgumentError("without comm= this process is no rank of its own; give rank=")
            rank = self._rank
        if isinstance(plan, _core.BlockPlan):
            return IncomingBlocks(self, plan.receives(count(rank, "rank")), None)
        return IncomingSection(self, plan, count(rank, "rank"))

    def _incoming_to(self, plan: _core.BlockPlan, block: int, rank: int | None) -> Section:
        if rank is not None:
            raise ArgumentError("rank= and block= both say for whom; give one of them")
        blocks = plan.destination
        if not 0 <= block < len(blocks):
            raise ArgumentError(f"there is no block {block} in a plan to {len(blocks)} blocks; the first is number 0")
        motions = [each for each in plan.receives(blocks.owner(block)) if each.destination == block]
        return IncomingBlocks(self, motions, blocks[block])

    def fence(self) -> None:
        """All that was put before is there when this returns, on all ranks. Collective. Raises TransportError."""
        self._window.fence()

    def close(self) -> None:
        """Ends all access; what is under way is completed first. Collective; a second call does nothing."""
        self._window.close()

    @property
    def is_open(self) -> bool:
        """False after close()."""
        return self._window.is_open

    @property
    def progress(self) -> str:
        """How accesses get on while nobody here calls this library, in words."""
        return self._window.progress

    def __enter__(self) -> Window:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:  # where one rank fails, the others do not come to close
            self.close()

    def __repr__(self) -> str:
        state = "" if self.is_open else ", closed"
        return f"<longshore.Window: {len(self)} arrays of {self.dtype}{state}>"


def _check_local(array: np.ndarray, layout: _core.Layout, rank: int) -> None:
    shape = layout.local_shape(rank)
    if array.shape != shape:
        raise ShapeError(f"rank {rank}: the array has shape {array.shape}, the layout {layout} gives this rank {shape}")
    if array.size == 0:
        return
    for d, wanted in enumerate(layout.local_strides(rank, array.itemsize)):
        if shape[d] > 1 and array.strides[d] != wanted:
            raise LocalArrayError(
                f"rank {rank}: the array has a stride of {array.strides[d]} bytes in dimension {d}, the layout "
                f"{layout} wants {wanted}; make it contiguous, or say the order it has in the layout"
            )
