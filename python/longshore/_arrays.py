"""Arrays at the boundary: anything with a buffer or DLPack becomes a NumPy view, and a scalar becomes an element's
bytes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.exceptions import ComplexWarning

from . import _core
from ._mistakes import count
from ._words import short
from .errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, SizeOverflowError

_LINE_BYTES = 64
_ELEMENT_TYPES = {
    np.dtype(name): getattr(_core.ElementType, name)
    for name in [
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
}


def fixed_dtype(dtype: Any) -> np.dtype:
    """The NumPy dtype, if its elements are plain bytes of a fixed size."""
    try:
        dtype = np.dtype(dtype)
    except TypeError as error:
        raise DTypeError(f"{dtype!r} is not a NumPy dtype: {error}") from None
    if dtype.hasobject:
        raise DTypeError(f"dtype {dtype} holds Python objects, which are addresses of this process and cannot be moved")
    if dtype.itemsize == 0:
        raise DTypeError(f"dtype {dtype} has elements of 0 bytes; give it a size, as in 'S8'")
    return dtype


def as_array(value: Any) -> np.ndarray:
    """A NumPy view of an array, a buffer or a DLPack capsule's owner; never a copy. Raises ArgumentError where an array
    has a mask."""
    if isinstance(value, np.ndarray):
        check_unmasked(value)
        return value
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        raise ArgumentError(f"expected an array, a buffer or a DLPack tensor, got {type(value).__name__}") from None


def has_mask(value: Any) -> bool:
    """Whether NumPy keeps elsewhere which elements of an array count."""
    if type(value) is np.ndarray or not isinstance(value, np.ndarray):  # nearly all: `np.ma` takes long to import
        return False
    return isinstance(value, np.ma.MaskedArray) and value.mask is not np.ma.nomask


def check_unmasked(value: Any) -> None:
    """Raises ArgumentError where an array has a mask, which its elements would leave behind."""
    if has_mask(value):
        raise ArgumentError(
            "an array has a mask, which does not move with its elements; give its .filled(), with a value in place of "
            "what is masked, or its .data, to move what lies under the mask"
        )


def local_array(array: np.ndarray) -> _core.LocalArray:
    """What the engines need to know of an array. They keep it alive."""
    return _core.LocalArray(array)


def index_array(values: Any, name: str, columns: int) -> tuple[np.ndarray, int, int, bool]:
    """Integers as relations take them, (n,) or (n, columns): the
    array, its address, its rows, and whether it has 32 bits."""
    check_unmasked(values)
    array = np.asarray(values)
    if array.size == 0 and array.dtype == np.float64:  # what NumPy makes of an empty list
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise DTypeError(f"{name} has dtype {array.dtype}; offsets and indices are integers")
    if (columns == 1 and array.ndim != 1) or (
        columns > 1 and array.size and (array.ndim != 2 or array.shape[1] != columns)
    ):
        wanted = "(n,)" if columns == 1 else f"(n, {columns})"
        raise ShapeError(f"{name} has shape {array.shape}, not {wanted}")
    narrow = array.dtype.itemsize < 4 or array.dtype == np.int32
    if array.dtype.itemsize == 8 and array.dtype.kind == "u" and array.size and int(array.max()) >> 63:
        raise SizeOverflowError(f"{name} holds {int(array.max())}, which does not fit in 64 bits with a sign")
    array = np.ascontiguousarray(array, np.int32 if narrow else np.int64)
    return array, array.__array_interface__["data"][0], array.size // columns, narrow


def regions_or_bounds(values: Any) -> list[_core.Region] | np.ndarray:
    """Regions as a FloorPlan takes them: a list of Regions and of pairs (lower, upper), or an integer array of shape
    (regions, 2, dimensions), which becomes one of int64."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        if values.ndim != 3 or values.shape[1] != 2:
            raise ShapeError(f"regions has shape {values.shape}; bounds have the shape (regions, 2, dimensions)")
        flat, *_ = index_array(values.ravel(), "regions", 1)
        return np.ascontiguousarray(flat.reshape(values.shape), np.int64)
    wanted = "Regions, pairs (lower, upper), or an integer array of shape (regions, 2, dimensions)"
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise ArgumentTypeError(f"regions is {short(values)}; it must be a sequence of {wanted}")
    made = []
    for k, each in enumerate(values):
        if not isinstance(each, _core.Region):
            try:
                lower, upper = each
                each = _core.Region(lower, upper)
            except (ShapeError, SizeOverflowError) as error:
                raise type(error)(f"regions[{k}] is {short(each)}: {error}") from None
            except (TypeError, ValueError):
                raise ArgumentTypeError(f"regions[{k}] is {short(each)}; regions must be {wanted}") from None
        made.append(each)
    return made


def relation_element(dtype: Any, reduce: str | None) -> tuple[int, _core.ElementType]:
    """Bytes of a relation's elements and what they are computed as, from a dtype or a number of bytes."""
    if isinstance(dtype, (int, np.integer)) and not isinstance(dtype, bool):
        if reduce is not None:
            raise DTypeError(f"reduce={reduce!r} needs a dtype to compute with, not {dtype} bytes")
        if not -(2**63) <= int(dtype) < 2**63:
            raise SizeOverflowError(f"an element of {dtype} bytes does not fit in 64 bits")
        return int(dtype), _core.ElementType.bytes
    if dtype is None:
        raise DTypeError(f"reduce={reduce!r} needs a dtype to compute with")
    dtype = fixed_dtype(dtype)
    return dtype.itemsize, _ELEMENT_TYPES.get(dtype, _core.ElementType.bytes)


def element_type(dtype: np.dtype, reduce: str | None) -> _core.ElementType:
    """What a motion that reduces computes with; any dtype can be copied."""
    if reduce is not None and not isinstance(reduce, str):
        raise ArgumentError(f'reduce is {reduce!r}; it names an operation, such as "add", or is None')
    kind = _ELEMENT_TYPES.get(dtype, _core.ElementType.bytes)
    if reduce is not None and kind == _core.ElementType.bytes:
        raise DTypeError(f"reduce={reduce!r} cannot compute with dtype {dtype}")
    return kind


def memory(value: Any) -> tuple[np.ndarray, int, int, int, bool, bool]:
    """An array, its first element's address, the bytes before and behind that it
    owns (relative), whether it may be written and whether it lies in one piece."""
    array = as_array(value)
    reach = [(n - 1) * stride for n, stride in zip(array.shape, array.strides)]
    low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach) + array.itemsize
    if array.size == 0:
        low = high = 0
    whole = array.flags.c_contiguous or array.flags.f_contiguous
    return array, array.__array_interface__["data"][0], low, high, array.flags.writeable, whole


def empty_message(source: Any, elements: int, element_bytes: int) -> np.ndarray:
    """A new dense message: of the source's dtype where that is what the relation moves, else of bytes."""
    dtype = as_array(source).dtype
    if dtype.itemsize == element_bytes:
        return np.empty(elements, dtype)
    return np.empty(elements * element_bytes, np.uint8)


def empty_bytes(size: int) -> np.ndarray:
    """New bytes for a message."""
    return np.empty(size, np.uint8)


def by_rank(parts: Any, ranks: Sequence[int], what: str, otherwise: str = "") -> dict[int, np.ndarray]:
    """Arrays by layout rank, from a mapping or from a sequence in the order of the layout's ranks. `otherwise`: what to
    do with one array alone."""
    if isinstance(parts, Mapping):
        return {int(rank): as_array(part) for rank, part in parts.items()}
    if isinstance(parts, np.ndarray) or not isinstance(parts, Sequence):
        raise ArgumentError(
            f"the {what} is one {type(parts).__name__}; give one array for each of the {len(ranks)} ranks, or "
            + (otherwise or "comm= where each process has one")
        )
    if len(parts) != len(ranks):
        raise ArgumentError(f"{len(parts)} {what} arrays for a layout of {len(ranks)} ranks")
    return {rank: as_array(part) for rank, part in zip(ranks, parts)}


def check_dtype(arrays: Mapping[int, np.ndarray], dtype: np.dtype, what: str) -> None:
    """Raises DTypeError naming the first rank whose array has other elements."""
    for rank, array in arrays.items():
        if array.dtype != dtype:
            raise DTypeError(f"rank {rank}: the {what} array has dtype {array.dtype}, the plan moves {dtype}")


def update(dtype: np.dtype, alpha: Any, beta: Any, conjugate: bool, reduce: str | None) -> _core.Update:
    """What a move of elements of a dtype does where it writes; alpha and beta of None mean 1 and 0."""
    scales = alpha is not None or beta is not None or conjugate
    if reduce is not None:
        kind = element_type(dtype, reduce)
        if scales:
            raise ArgumentError(f"reduce={reduce!r} with alpha, beta or conjugate: a move does one or the other")
        return _core.Update(kind, reduce)
    if not scales:
        return _core.Update()
    kind = _ELEMENT_TYPES.get(dtype, _core.ElementType.bytes)
    if kind == _core.ElementType.bytes:
        raise DTypeError(
            f"alpha, beta and conjugate need a number that this machine computes with; dtype {dtype} can only be copied"
        )

    def scalar(value: Any, default: int, name: str) -> bytes:
        given = np.asarray(default if value is None else value)
        if given.ndim:
            raise ArgumentError(f"{name} has shape {given.shape}; it must be one number")
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ComplexWarning)
            try:
                converted = given.astype(dtype)
            except (TypeError, ValueError, OverflowError):
                raise ArgumentError(f"{name} is {short(value)}; it must be a number of dtype {dtype}") from None
        if not np.can_cast(given.dtype, dtype, "same_kind") and converted != given:
            raise DTypeError(f"{name} = {given} does not fit in dtype {dtype}")
        return converted.tobytes()

    return _core.Update(kind, scalar(alpha, 1, "alpha"), scalar(beta, 0, "beta"), bool(conjugate))


def _aligned(size: int) -> np.ndarray:
    """Bytes that begin a cache line: NumPy's do not, and whole lines are written fastest."""
    memory = np.empty(size + _LINE_BYTES, np.uint8)
    start = -memory.ctypes.data % _LINE_BYTES
    return memory[start : start + size]


def whole_layout(shape: Sequence[int], order: str = "C") -> _core.Layout:
    """The layout of one rank that has everything."""
    return _core.Layout(f"{whole_text(len(shape))}, order={order}", shape)


def whole_text(ndim: int) -> str:
    """The text of such a layout."""
    return f"({', '.join('*' * ndim)}) on 1"


def root_in(root: Any, comm: Any) -> int:
    """A root that is a rank of a communicator."""
    if (rank := count(root, "root")) >= comm.Get_size():
        raise ArgumentError(f"root is {rank}; the communicator has ranks 0 to {comm.Get_size() - 1}")
    return rank


def empty_local(layout: _core.Layout, rank: int, dtype: np.dtype, memory: Any = None) -> np.ndarray:
    """A rank's uninitialised local array as the layout wants it, in given memory (a flat uint8 array) or new."""
    shape = layout.local_shape(rank)
    count = layout.allocated_size(rank)
    if layout.local_size(rank) == 0:
        return np.empty(shape, dtype, order=layout.order)
    flat = (_aligned(count * dtype.itemsize) if memory is None else memory[: count * dtype.itemsize]).view(dtype)
    fastest = -1 if layout.order == "C" else 0
    allocated = list(shape)
    if layout.ld:
        allocated[fastest] = layout.ld
    whole = flat.reshape(allocated, order=layout.order)
    return whole[..., : shape[-1]] if layout.order == "C" else whole[: shape[0]]
