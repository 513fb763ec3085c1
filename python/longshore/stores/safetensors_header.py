"""What safetensors files say of themselves: headers and indices, read from an untrusted hand.

A file is eight bytes that say how long its header is, the header (a JSON object of names, element types, shapes and
offsets), and the tensors' bytes, little-endian and in C order, one after the other without a hole. An index
(`model.safetensors.index.json`) says which file of its folder holds which tensor.
"""

from __future__ import annotations

import itertools
import json
import os
import struct
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .._words import short
from ..errors import StoreError
from .array import ArrayFacts
from .layout_json import check_shard_name
from .npy import check_shape
from .object_places import is_url, without_password
from .random_access import entries_in, exists_in, joined, lists_folders, open_file

SUFFIX = ".safetensors"
INDEX_SUFFIX = ".safetensors.index.json"
SUFFIXES = (SUFFIX, INDEX_SUFFIX)
INDEX = "model" + INDEX_SUFFIX
MAX_HEADER_BYTES = 100_000_000  # as the format has it
MAX_TENSORS = 1 << 19  # of a file, and of all files of an index; what they are told as takes about 1 KB each
METADATA = "__metadata__"
FIELDS = ("dtype", "shape", "data_offsets")
_MAX_OBJECTS = 16

NUMPY_TYPES = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
    "U16": "<u2",
    "I16": "<i2",
    "F16": "<f2",
    "U32": "<u4",
    "I32": "<i4",
    "F32": "<f4",
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
    "C64": "<c8",
}
BYTE_TYPES = {
    "BF16": ("V2", "bfloat16"),
    "F8_E4M3": ("V1", "float8_e4m3fn"),
    "F8_E5M2": ("V1", "float8_e5m2"),
    "F8_E8M0": ("V1", "float8_e8m0fnu"),
    "F8_E4M3FNUZ": ("V1", "float8_e4m3fnuz"),
    "F8_E5M2FNUZ": ("V1", "float8_e5m2fnuz"),
}
"""Types that NumPy does not have: their bytes, and what other formats (and ml_dtypes) call them."""
_BIT_TYPES = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
"""Types whose elements share bytes, and their bits: told, and not moved."""
TYPES = {name: np.dtype(code) for name, code in NUMPY_TYPES.items()} | {
    name: np.dtype(code) for name, (code, _) in BYTE_TYPES.items()
}


class _Entry(NamedTuple):
    """What a header says of a tensor, not checked yet."""

    dtype: Any
    shape: Any
    data_offsets: Any


class Tensor(NamedTuple):
    """A tensor of a file: what it is, and where its bytes begin, counted from the end of the header."""

    name: str
    type_name: str
    shape: tuple[int, ...]
    start: int
    nbytes: int

    def facts(self) -> ArrayFacts:
        dtype = TYPES.get(self.type_name)
        plain = self.type_name in NUMPY_TYPES
        return ArrayFacts(self.shape, dtype, type_name="" if plain else self.type_name, stored_bytes=self.nbytes)


# -- what files say of themselves -------------------------------------------------------------------------------------


def read_header(path: str) -> tuple[int, list[Tensor], dict[str, str], str]:
    """What a file holds: where its data begins, its tensors in the order they lie in, and its metadata; and what tells
    it, at a URL, from a file that takes its place. Raises StoreError for everything that the format forbids."""
    file = open_file(path)
    try:
        size = file.size()
        start = file.start(8)
        if len(start) < 8:
            raise StoreError("it is too short for a safetensors file")
        (length,) = struct.unpack("<Q", start)
        if length > MAX_HEADER_BYTES:
            raise StoreError(f"its header claims {length} bytes; at most {MAX_HEADER_BYTES} are allowed")
        if length > size - 8:
            raise StoreError(f"it is truncated: its header claims {length} bytes, the file has {size}")
        raw = file.read(length, 8)
        tensors, metadata = _parse_header(raw, size - 8 - length)
    except StoreError as error:
        if error.errno is not None:
            raise
        raise StoreError(f"{file.name} cannot be used: {error}") from None
    except OSError as error:
        raise StoreError(error.errno, f"cannot read {file.name}: {error.strerror}") from None
    finally:
        file.close()
    return 8 + length, tensors, metadata, file.told


def _parse_header(raw: bytes | bytearray, data_bytes: int) -> tuple[list[Tensor], dict[str, str]]:
    if raw[:1] != b"{":
        raise StoreError("its header does not begin with a brace as JSON objects do")
    objects = 0

    def entry_or_object(pairs: list[tuple[str, Any]]) -> Any:
        nonlocal objects
        if len(pairs) == len(FIELDS) and {key for key, _ in pairs} == set(FIELDS):
            return _Entry(**dict(pairs))
        # Nothing else is an object but the header and its metadata, so little is kept of a header that has more.
        objects += 1
        if objects > _MAX_OBJECTS:
            raise StoreError(f"its header has many objects of other names than {', '.join(FIELDS)}")
        return _unique(pairs)

    header = _as_object(_load(raw, entry_or_object, fractions=False))
    if header is None:
        raise StoreError("its header must be a JSON object")
    metadata = _as_object(header.pop(METADATA, {}))
    if metadata is None or not all(isinstance(value, str) for value in metadata.values()):
        raise StoreError(f'"{METADATA}" must be an object of texts')
    for key in itertools.chain(metadata, metadata.values()):
        _check_text(key, "its metadata")
    tensors = [_tensor(name, entry) for name, entry in header.items()]
    tensors.sort(key=lambda tensor: (tensor.start, tensor.nbytes))
    end = 0
    for tensor in tensors:
        if tensor.start != end:
            what = "overlaps the one before" if tensor.start < end else f"leaves {tensor.start - end} bytes before it"
            raise StoreError(
                f"the tensor {short(tensor.name)} {what}: it begins at byte {tensor.start} of the data, not at {end}"
            )
        end += tensor.nbytes
    if end != data_bytes:
        what = "it is truncated" if end > data_bytes else "bytes follow its tensors"
        raise StoreError(f"{what}: its tensors have {end} bytes, the file has {data_bytes} after the header")
    return tensors, metadata


def _tensor(name: str, entry: Any) -> Tensor:
    _check_text(name, "the name of a tensor")
    if not isinstance(entry, _Entry):
        raise StoreError(f"the tensor {short(name)} is {short(entry)}, not an object of {', '.join(FIELDS)}")
    what = f"the tensor {short(name)}"
    known = isinstance(entry.dtype, str) and (entry.dtype in TYPES or entry.dtype in _BIT_TYPES)
    if not known:
        raise StoreError(f"{what} has elements of type {short(entry.dtype)}; known are {', '.join(TYPES)}")
    bits = _BIT_TYPES[entry.dtype] if entry.dtype in _BIT_TYPES else 8 * TYPES[entry.dtype].itemsize
    try:
        shape = check_shape(entry.shape, -(-bits // 8))
    except StoreError as error:
        raise StoreError(f"{what}: {error}") from None
    offsets = entry.data_offsets
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(offset) is int for offset in offsets):
        raise StoreError(f"{what} has offsets {short(offsets)}, which must be two integers")
    start, end = offsets
    total = bits
    for extent in shape:
        total *= extent
    if not 0 <= start <= end < 2**63:
        raise StoreError(f"{what} has offsets {start} to {end}, which are no range of bytes")
    if total % 8 or end - start != total // 8:
        raise StoreError(
            f"{what} has {end - start} bytes by its offsets; {entry.dtype} of shape {short(shape)} takes {total / 8:g}"
        )
    return Tensor(name, entry.dtype, shape, start, end - start)


def _load(raw: bytes | bytearray, hook: Callable[[list[tuple[str, Any]]], Any], *, fractions: bool) -> Any:
    """JSON from an untrusted hand. What it may have of everything bounds the memory that reading it takes."""
    if raw.count(b'"') > 12 * MAX_TENSORS or raw.count(b",") > 8 * MAX_TENSORS:
        raise StoreError(f"it says more than can be said of {MAX_TENSORS} tensors, which is as many as are read")
    try:
        return json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=hook,
            parse_int=_integer,
            parse_float=float if fractions else _no_number,
            parse_constant=_no_number,
        )
    except UnicodeDecodeError as error:
        raise StoreError(f"it is not UTF-8: byte {error.start} cannot be read") from None
    except RecursionError:
        raise StoreError("it nests too deeply") from None
    except json.JSONDecodeError as error:
        raise StoreError(f"it is not JSON: {error.msg} at character {error.pos}") from None


def _integer(text: str) -> int:
    if len(text) > 20:
        raise StoreError(f"it has a number of {len(text)} digits")
    return int(text)


def _no_number(text: str) -> NoReturn:
    raise StoreError(f"it has {short(text)} where an integer belongs")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise StoreError(f"the name {short(key)} appears twice")
            seen.add(key)
    if len(values) > MAX_TENSORS + 1:
        raise StoreError(f"an object has {len(values)} names; at most {MAX_TENSORS} are read")
    return values


def _as_object(value: Any) -> dict[str, Any] | None:
    """An object, though its names may be those of a tensor's fields."""
    if isinstance(value, _Entry):
        return value._asdict()
    return value if isinstance(value, dict) else None


def _check_text(text: str, what: str) -> None:
    """JSON can say halves of characters, which no file name and no UTF-8 can."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise StoreError(f"{what} has {short(text)}, which is no text in Unicode") from None


def parse_index(raw: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """The file of every tensor, and what else an index says."""
    index = _load(raw, _unique, fractions=True)
    if not isinstance(index, dict) or not isinstance(index.get("weight_map"), dict):
        raise StoreError('it must be a JSON object with a "weight_map" of tensors and files')
    for name, file in index["weight_map"].items():
        _check_text(name, "the name of a tensor")
        if not isinstance(file, str):
            raise StoreError(f"it has {short(file)} for the file of {short(name)}")
    for file in sorted(set(index["weight_map"].values())):
        check_shard_name(file)
    metadata = index.get("metadata", {})
    if not isinstance(metadata, dict):
        raise StoreError(f'its "metadata" is {short(metadata)}, not an object')
    return index["weight_map"], metadata


def find_index(folder: str) -> str | None:
    """The index of a folder, or its only safetensors file; None where there is neither. Raises StoreError where there
    are several."""
    if not lists_folders(folder):
        return next((name for name in (INDEX, "model" + SUFFIX) if exists_in(folder, name)), None)
    names = [entry.name for entry in entries_in(folder)]
    for suffix in (INDEX_SUFFIX, SUFFIX):
        found = [name for name in names if name.endswith(suffix)]
        if suffix == INDEX_SUFFIX and INDEX in found:
            return INDEX
        if len(found) > 1:
            what = "indices" if suffix == INDEX_SUFFIX else "safetensors files and no index"
            raise StoreError(
                f"{without_password(folder)} holds several {what} ({', '.join(found[:4])}, ...); name the one that is "
                "meant"
            )
        if found:
            return found[0]
    return None


def member_path(folder: str, name: str) -> str:
    """The place of a file that an index names. A symbolic link may lead to where the Hugging Face hub's cache keeps the
    files of a snapshot, and nowhere else out of the folder."""
    path = joined(folder, name)
    if is_url(folder):
        return path
    root = os.path.realpath(folder)
    allowed = [root]
    if os.path.basename(os.path.dirname(root)) == "snapshots":
        allowed.append(os.path.join(os.path.dirname(os.path.dirname(root)), "blobs"))
    real = os.path.realpath(path)
    if not any(real.startswith(place + os.sep) for place in allowed):
        raise StoreError(f"{path} cannot be used: it is a symbolic link to {real}, out of its folder")
    return path
