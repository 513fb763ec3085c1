"""One-sided access: `Window`, arrays that ranks lay open to each other, and `Section`, what is got from them or put
there."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from . import _arrays, _core, _mpi
from ._mistakes import count, one_of
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
        return _PieceSection(self, count(number, "the number of an array"))

    @property
    def whole(self) -> Section:
        """The array that layout or blocks are of, by its global indices: slices of it, upwards and without gaps, and
        single indices. Raises ArgumentError where the arrays are parts of nothing."""
        if self._blocks is not None:
            domain = self._blocks.blocks.bounding
            return _BoxSection(self, list(domain.lower), list(domain.upper), [True] * len(domain.lower))
        if self._layout is None:
            raise ArgumentError("the arrays of this window are parts of nothing; open it with layout=, or of an XArray")
        shape = list(self._layout.shape)
        return _BoxSection(self, [0] * len(shape), shape, [True] * len(shape))

    def incoming(self, plan: _core.MotionPlan, rank: int | None = None) -> Section:
        """What a plan from this window's layout brings to a rank, this one unless told: a Section in the shape of the
        local array, or where its order is F in that of the array's transpose, so that strips follow its memory. Raises
        ArgumentError for a plan from another layout."""
        if not isinstance(plan, _core.MotionPlan):
            raise ArgumentTypeError(f"a plan must be a MotionPlan, not {type(plan).__name__}")
        if self._layout is None or plan.source != self._layout:
            raise ArgumentError(f"the plan is from {plan.source}, the window's arrays are of {self._layout}")
        if rank is None:
            if self._rank is None:
                raise ArgumentError("without comm= this process is no rank of its own; give rank=")
            rank = self._rank
        return _IncomingSection(self, plan, count(rank, "rank"))

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


class Section:
    """Elements of a window's arrays: what is got and put. `section[...]` is a part of it, as NumPy's indexing makes one
    (slices, integers, None of NumPy's newaxis; for a whole array also one array of indices in one dimension). A value
    that moves nothing until asked. Made by `window[number]`, `window.whole` and `window.incoming(plan)`."""

    shape: tuple[int, ...]
    """Of what get() returns."""

    def __init__(self, window: Window, shape: Sequence[int]) -> None:
        self.window = window
        """The window that it is of."""
        self.shape = tuple(shape)
        self._made: _core.SectionOfWindow | None = None
        self._schedules: dict[Any, _core.StripSchedule] = {}  # of strips, that loops over it have settled on
        self._settled: dict[Any, tuple[Any, _core.StripSchedule]] = {}  # with which communicator's other ranks, too

    @property
    def dtype(self) -> np.dtype:
        """The elements' dtype."""
        return self.window.dtype

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        """The extent of the first dimension."""
        if not self.shape:
            raise TypeError("a section of one element has no length")
        return self.shape[0]

    def __getitem__(self, key: Any) -> Section:
        raise NotImplementedError

    def _parts(self) -> list[tuple[int, _core.AddressRelation]]:
        raise NotImplementedError

    @property
    def core(self) -> _core.SectionOfWindow:
        """What the engine takes; made once."""
        if self._made is None:
            self._made = _core.SectionOfWindow(self.window._window, self.size, self._parts())
        return self._made

    def get(self, out: np.ndarray | None = None) -> Any:
        """The elements: a new array, or `out`, C-contiguous and of this shape and dtype. Of one element without
        dimensions, a NumPy scalar. Raises ArgumentError where the window is closed, TransportError where the owner has
        ended. Not collective."""
        into = self._into(out)
        self.core.get(0, into.size, _address(into))
        return into[()] if out is None and not self.shape else into

    def nbget(self, out: np.ndarray | None = None) -> Handle:
        """Begins to get the elements; `handle.wait()` returns the array, which must not be touched before."""
        into = self._into(out)
        return Handle(self.core.nbget(0, into.size, _address(into)), into)

    def put(self, values: Any) -> None:
        """Writes values of this shape, or which NumPy broadcasts to it, to where the elements are. When it returns they
        are in the owners' memory; whoever reads them needs a fence before. Raises what get() raises, LocalArrayError
        where an array is read-only, and DTypeError for values that NumPy does not convert to this dtype."""
        try:
            given = np.asarray(values, self.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise DTypeError(f"{short(values)} cannot be elements of {self.dtype}: {error}") from None
        try:
            filled = np.broadcast_to(given, self.shape)
        except ValueError:
            raise ShapeError(f"values of shape {given.shape} do not fill a section of shape {self.shape}") from None
        self.nbput(filled).wait()

    def nbput(self, values: Any) -> Handle:
        """Begins to write. An array of this shape and dtype, C-contiguous, is read where it lies, and must not be
        written before `handle.wait()` has returned; anything else is copied."""
        given = _arrays.as_array(values) if not isinstance(values, (int, float, complex)) else np.asarray(values)
        if given.shape != self.shape:
            raise ShapeError(f"the values have shape {given.shape}, the section {self.shape}")
        if given.dtype != self.dtype:
            raise DTypeError(f"the values have dtype {given.dtype}, the window's arrays {self.dtype}")
        dense = np.ascontiguousarray(given).reshape(self.shape)
        return Handle(self.core.nbput(0, self.size, _address(dense)), dense)

    def _into(self, out: Any) -> np.ndarray:
        """The array that elements go to."""
        if out is None:
            return np.empty(self.shape, self.dtype)
        out = _arrays.as_array(out)
        if out.shape != self.shape:
            raise ShapeError(f"out has shape {out.shape}, the section {self.shape}")
        if out.dtype != self.dtype:
            raise DTypeError(f"out has dtype {out.dtype}, the window's arrays {self.dtype}")
        if not out.flags.c_contiguous:
            raise LocalArrayError("out is not C-contiguous; get into a new array and copy")
        if not out.flags.writeable:
            raise LocalArrayError("out is read-only")
        return out

    def __repr__(self) -> str:
        return f"<longshore.Section: shape {self.shape} of {self.dtype}>"


class Handle:
    """A get or put under way (the paper's handle; `wait` is its sync). Used by one thread at a time. Waits when it
    goes."""

    def __init__(self, access: _core.Access, array: np.ndarray) -> None:
        self._access, self._array = access, array

    def test(self) -> bool:
        """Makes progress; True when it is complete."""
        return self._access.test()

    def wait(self) -> np.ndarray:
        """Completes it; returns the array that was got or put. Raises TransportError where the owner has ended."""
        self._access.wait()
        return self._array

    def __del__(self) -> None:
        # Before the array goes, which it may still read or write.
        if hasattr(self, "_access"):
            del self._access


def _index(key: Any) -> Any:
    """One index of a section: what NumPy makes a view by, which reads nothing, or an array of indices."""
    if key is None or key is Ellipsis or isinstance(key, slice):
        return key
    try:
        if isinstance(key, (list, range, np.ndarray)) and np.ndim(key):
            return np.asarray(key)
        if not isinstance(key, bool):
            return operator.index(key)
    except (TypeError, ValueError):  # nor is a list of lists of different lengths an array
        pass
    raise ArgumentTypeError(f"{short(key)} is no index of a section: take slices, integers, None, ..., or one list")


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


class _PieceSection(Section):
    """Of one array: a view of it, or the elements of a list of places."""

    def __init__(self, window: Window, number: int, view: np.ndarray | None = None) -> None:
        if view is None:
            _, shape, strides, _ = window._window.piece(number)
            # Where elements lie relative to the first, by NumPy's own arithmetic: nobody looks at this memory.
            view = np.lib.stride_tricks.as_strided(_nowhere(window.dtype), shape, strides)
        super().__init__(window, view.shape)
        self._number, self._view = number, view

    def __getitem__(self, key: Any) -> Section:
        keys = tuple(map(_index, key if isinstance(key, tuple) else (key,)))
        listed = [k for k, each in enumerate(keys) if isinstance(each, np.ndarray)]
        if not listed:
            if not any(each is Ellipsis for each in keys):
                keys = (*keys, ...)  # a view in any case: without it NumPy would look at the memory of one element
            try:
                return _PieceSection(self.window, self._number, self._view[keys])
            except (IndexError, TypeError, ValueError) as error:
                raise ArgumentError(f"{error}, in a section of shape {self.shape}") from None
        if len(listed) > 1:
            raise ArgumentError("one dimension of a section can have a list of indices, not several")
        (k,) = listed
        others = tuple(slice(None) if j == k else each for j, each in enumerate(keys))
        if any(each is None or each is Ellipsis for each in keys[:k]):
            raise ArgumentError("a list of indices comes before None and ... in the indices of a section")
        d = sum(isinstance(each, slice) for each in others[:k])
        return _ListedSection(self.window, self._number, self[others]._view, d, keys[k])  # type: ignore[attr-defined]

    def _parts(self) -> list[tuple[int, _core.AddressRelation]]:
        dense = _dense_strides(self.shape, self.dtype.itemsize)
        offset = _place(self._view) if self._view.size else 0
        return [
            (self._number, _core.AddressRelation.strided(self.shape, self._view.strides, dense, self.dtype, offset))
        ]


class _ListedSection(Section):
    """Of one array, with a list of indices in one dimension."""

    def __init__(self, window: Window, number: int, view: np.ndarray, dim: int, indices: np.ndarray) -> None:
        extent = view.shape[dim]
        if indices.dtype == bool:
            if indices.shape != (extent,):
                raise ArgumentError(f"a mask of shape {indices.shape} for a dimension of {extent}")
            indices = np.flatnonzero(indices)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise ArgumentError(f"a list of indices is one-dimensional and of integers, not {short(indices)}")
        indices = indices.astype(np.int64)
        if outside := indices[(indices < -extent) | (indices >= extent)][:1].tolist():
            raise ArgumentError(f"index {outside[0]} is outside dimension {dim}, which has {extent}")
        super().__init__(window, (*view.shape[:dim], len(indices), *view.shape[dim + 1 :]))
        self._number, self._view, self._dim, self._indices = number, view, dim, indices % max(extent, 1)

    def __getitem__(self, key: Any) -> Section:
        raise ArgumentError("a section with a list of indices has no parts of its own; index the list")

    def _parts(self) -> list[tuple[int, _core.AddressRelation]]:
        places = np.full((), _place(self._view), np.int64)
        for d, (extent, stride) in enumerate(zip(self._view.shape, self._view.strides)):
            along = (self._indices if d == self._dim else np.arange(extent, dtype=np.int64)) * stride
            places = places[..., None] + along
        to = np.arange(self.size, dtype=np.int64) * self.dtype.itemsize
        pairs = np.stack([places.ravel(), to], axis=1)
        return [(self._number, _core.AddressRelation.from_pairs(pairs, self.dtype))]


class _GlobalSection(Section):
    """Of elements of the array that layout or blocks are of."""

    def nbput(self, values: Any) -> Handle:
        layout = self.window._layout
        if layout is not None and layout.replicas > 1:
            raise ArgumentError(
                f"{layout} has {layout.replicas} copies of each element, and a put would change one: put to "
                f"window[rank] of each"
            )
        return super().nbput(values)


class _BoxSection(_GlobalSection):
    """A box of global indices, of as many owners as have something of it."""

    def __init__(self, window: Window, lower: list[int], upper: list[int], kept: list[bool]) -> None:
        super().__init__(window, [b - a for a, b, keep in zip(lower, upper, kept) if keep])
        self._lower, self._upper, self._kept = lower, upper, kept

    def __getitem__(self, key: Any) -> Section:
        keys = list(map(_index, key if isinstance(key, tuple) else (key,)))
        dims = [d for d, keep in enumerate(self._kept) if keep]
        if dots := [k for k, each in enumerate(keys) if each is Ellipsis]:
            keys[dots[0] : dots[0] + 1] = [slice(None)] * (len(dims) - len(keys) + 1)
        if len(keys) > len(dims):
            raise ArgumentError(f"{len(keys)} indices for a section of {len(dims)} dimensions")
        lower, upper, kept = list(self._lower), list(self._upper), list(self._kept)
        for d, each in zip(dims, keys):
            low, extent = self._lower[d], self._upper[d] - self._lower[d]
            if isinstance(each, slice):
                if each.step not in (None, 1):
                    raise ArgumentError(
                        f"step {each.step} in dimension {d}: what several ranks have is got without gaps"
                    )
                first, last, _ = each.indices(extent)
                lower[d], upper[d] = low + first, low + max(first, last)
                continue
            if not isinstance(each, int):
                raise ArgumentTypeError(f"{short(each)} in dimension {d}; take slices and integers")
            index = each
            if not -extent <= index < extent:
                raise ArgumentError(f"index {index} is outside dimension {d}, which has {extent}")
            lower[d] = low + index % extent
            upper[d], kept[d] = lower[d] + 1, False
        return _BoxSection(self.window, lower, upper, kept)

    def _parts(self) -> list[tuple[int, _core.AddressRelation]]:
        if self.size == 0:
            return []
        if self.window._layout is not None:
            return _core.parts_of_box(self.window._layout, self._lower, self._upper, self.dtype.itemsize)
        blocks = self.window._blocks
        assert blocks is not None
        dense = _dense_strides([b - a for a, b in zip(self._lower, self._upper)], self.dtype.itemsize)
        bounds, corners = blocks.blocks.bounds, blocks.blocks.grow(blocks.ghost).bounds[:, 0]
        first, last = np.maximum(bounds[:, 0], self._lower), np.minimum(bounds[:, 1], self._upper)
        parts, there = [], 0
        for k in np.flatnonzero((first < last).all(axis=1)).tolist():
            strides = self.window._window.piece(k)[2]
            shape = (last[k] - first[k]).tolist()
            from_, to = int((first[k] - corners[k]) @ strides), int((first[k] - self._lower) @ dense)
            parts.append((k, _core.AddressRelation.strided(shape, strides, dense, self.dtype, from_, to)))
            there += math.prod(shape)
        if there != self.size:
            raise ArgumentError(
                f"the blocks have {there} elements in the box from {tuple(self._lower)} to {tuple(self._upper)}, which "
                f"has {self.size}: they leave gaps, or overlap"
            )
        return parts


class _IncomingSection(_GlobalSection):
    """What a plan brings to a rank."""

    def __init__(self, window: Window, plan: _core.MotionPlan, rank: int) -> None:
        shape = plan.destination.local_shape(rank)
        super().__init__(window, shape if plan.destination.order == "C" else shape[::-1])
        self._plan, self._rank = plan, rank

    def __getitem__(self, key: Any) -> Section:
        raise ArgumentError("what a plan brings has no parts of its own; take window.whole for those")

    def _parts(self) -> list[tuple[int, _core.AddressRelation]]:
        return _core.incoming_parts(self._plan, self._rank)


def _dense_strides(shape: Sequence[int], itemsize: int) -> list[int]:
    strides = [itemsize]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * max(extent, 1))
    return strides[::-1][len(strides) - len(shape) :]


def _place(view: np.ndarray) -> int:
    """Where the view's first element lies, in bytes from the first of the array."""
    return _address(view) - _address(_NOWHERE)


_NOWHERE = np.empty(64, np.uint8)


def _nowhere(dtype: np.dtype) -> np.ndarray:
    """An array that views are made over, to see where elements would lie."""
    return _NOWHERE[:0].view(dtype) if dtype.itemsize > 64 else _NOWHERE[: dtype.itemsize].view(dtype)
