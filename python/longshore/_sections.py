"""Sections: the elements of a window's arrays that are got and put, and accesses that are under way."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _arrays, _core
from ._words import short
from .errors import ArgumentError, ArgumentTypeError, DTypeError, LocalArrayError, ShapeError

if TYPE_CHECKING:
    from ._window import Window


class Section:
    """Elements of a window's arrays: what is got and put. `section[...]` is a part of it, as NumPy's indexing makes one
    (slices, integers, None, `...`, and a list of indices or a mask of one dimension, which comes where NumPy has it). A
    value that moves nothing until asked. Made by `window[number]`, `window.whole` and `window.incoming(plan)`."""

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
        dimensions, a NumPy scalar. Pages that the process has not had before may take the system several times as long
        to give as elements of the same node take to come: loops that keep what they get do well to give `out`. Raises
        ArgumentError where the window is closed, TransportError where the owner has ended. Not collective."""
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
        _arrays.check_unmasked(values)
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


def index_of(key: Any) -> Any:
    """One index of a section: what NumPy makes a view by, which reads nothing, or an array of indices."""
    if key is None or key is Ellipsis or isinstance(key, slice):
        return key
    try:
        if isinstance(key, (list, range, np.ndarray)) and np.ndim(key):
            return np.asarray(key)
        if not isinstance(key, (bool, np.bool_)):  # NumPy before 2.3 takes its own for integers
            return operator.index(key)
    except (TypeError, ValueError):  # nor is a list of lists of different lengths an array
        pass
    raise ArgumentTypeError(f"{short(key)} is no index of a section: take slices, integers, None, ..., or one list")


def keys_of(key: Any, ndim: int) -> tuple[list[Any], int | None, bool]:
    """The indices of a section of so many dimensions: None for a new dimension, and for each that there is a slice, an
    integer or an array of indices; where among them the array is; and whether its dimension becomes the section's
    first. That is NumPy's rule: an integer beside an array is an array, too, and where something else stands between
    these, if only a `...` of no dimensions, there is no one place that they have."""
    keys = list(map(index_of, key if isinstance(key, tuple) else (key,)))
    arrays = [k for k, each in enumerate(keys) if isinstance(each, (int, np.ndarray))]
    apart = len(arrays) > 0 and len(arrays) <= arrays[-1] - arrays[0]
    taken = sum(each is not None and each is not Ellipsis for each in keys)
    if taken > ndim:
        raise ArgumentError(f"{taken} indices for a section of {ndim} dimensions")
    dots = [k for k, each in enumerate(keys) if each is Ellipsis]
    if len(dots) > 1:
        raise ArgumentError("the indices of a section can have one ..., not several")
    at = dots[0] if dots else len(keys)
    keys[at : at + 1] = [slice(None)] * (ndim - taken)
    listed = [k for k, each in enumerate(keys) if isinstance(each, np.ndarray)]
    if len(listed) > 1:
        raise ArgumentError("one dimension of a section can have a list of indices, not several")
    return (keys, listed[0], apart) if listed else (keys, None, False)


def listed_indices(indices: np.ndarray, dim: int, extent: int) -> np.ndarray:
    """What a list of indices of a dimension, or a mask of it, selects: indices in [0, extent), int64. Raises
    ArgumentError where it is neither, or one is outside."""
    if indices.dtype == bool:
        if indices.shape != (extent,):
            raise ArgumentError(f"a mask of shape {indices.shape} for dimension {dim}, which has {extent}")
        indices = np.flatnonzero(indices)
    if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
        raise ArgumentError(f"a list of indices is one-dimensional and of integers, not {short(indices)}")
    if outside := indices[(indices < -extent) | (indices >= extent)][:1].tolist():
        raise ArgumentError(f"index {outside[0]} is outside dimension {dim}, which has {extent}")
    return indices.astype(np.int64) % max(extent, 1)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


class PieceSection(Section):
    """Of one array: a view of it, or the elements of a list of places."""

    def __init__(self, window: Window, number: int, view: np.ndarray | None = None) -> None:
        if view is None:
            _, shape, strides, _ = window._window.piece(number)
            # Where elements lie relative to the first, by NumPy's own arithmetic: nobody looks at this memory.
            view = np.lib.stride_tricks.as_strided(_nowhere(window.dtype), shape, strides)
        super().__init__(window, view.shape)
        self._number, self._view = number, view

    def __getitem__(self, key: Any) -> Section:
        keys, k, to_front = keys_of(key, len(self.shape))
        views = [slice(None) if isinstance(each, np.ndarray) else each for each in keys]
        views.append(...)  # a view in any case: without it NumPy would look at the memory of one element
        try:
            view = self._view[tuple(views)]
        except (IndexError, TypeError, ValueError) as error:
            raise ArgumentError(f"{error}, in a section of shape {self.shape}") from None
        if k is None:
            return PieceSection(self.window, self._number, view)
        dim = sum(each is not None for each in keys[:k])
        indices = listed_indices(keys[k], dim, self.shape[dim])
        place = sum(not isinstance(each, int) for each in keys[:k])
        if to_front:
            view, place = np.moveaxis(view, place, 0), 0
        return _ListedSection(self.window, self._number, view, place, indices)

    def _parts(self) -> list[tuple[int, _core.AddressRelation]]:
        dense = dense_strides(self.shape, self.dtype.itemsize)
        offset = _place(self._view) if self._view.size else 0
        return [
            (self._number, _core.AddressRelation.strided(self.shape, self._view.strides, dense, self.dtype, offset))
        ]


class _ListedSection(Section):
    """Of one array, with a list of indices in one dimension of a view."""

    def __init__(self, window: Window, number: int, view: np.ndarray, dim: int, indices: np.ndarray) -> None:
        super().__init__(window, (*view.shape[:dim], len(indices), *view.shape[dim + 1 :]))
        self._number, self._view, self._dim, self._indices = number, view, dim, indices

    def __getitem__(self, key: Any) -> Section:
        raise ArgumentError("a section with a list of indices has no parts of its own; index the list")

    def _parts(self) -> list[tuple[int, _core.AddressRelation]]:
        places: np.ndarray = np.full((), _place(self._view), np.int64)
        for d, (extent, stride) in enumerate(zip(self._view.shape, self._view.strides)):
            along = (self._indices if d == self._dim else np.arange(extent, dtype=np.int64)) * stride
            places = places[..., None] + along
        to = np.arange(self.size, dtype=np.int64) * self.dtype.itemsize
        pairs = np.stack([places.ravel(), to], axis=1)
        return [(self._number, _core.AddressRelation.from_pairs(pairs, self.dtype))]


def dense_strides(shape: Sequence[int], itemsize: int) -> list[int]:
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
