"""The header of a `.npy` file, read from an untrusted hand and written: format versions 1, 2 and 3, any fixed-size
dtype.

NumPy's own reader evaluates the header with `ast.literal_eval`, whose depth is bounded only by the C stack, and maps
mistakes to many kinds of error. This one knows the few things a header may hold and says what is wrong in one sentence.
"""

from __future__ import annotations

import ast
import os
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._words import short
from ..errors import StoreError
from .random_access import RandomAccess, open_file, open_local

MAGIC = b"\x93NUMPY"
MAX_HEADER_BYTES = 1 << 20
MAX_DIMENSIONS = 32
MAX_INDEX = 2**63 - 1
_MAX_DEPTH = 24
_MAX_FIELDS = 4096
_TYPE = re.compile(r"[<>|=]?([biufcSUVmM])(\d{1,18})(\[[A-Za-z0-9/]{1,32}\])?\Z|[<>|=]?[?]\Z")
_TOKEN = re.compile(
    r"""[
    \t\r\n]*(?:(?P<string>[bu]?'(?:[^'\\]|\\.)*'|[bu]?"(?:[^"\\]|\\.)*")|(?P<number>-?\d+)L?|(?P<name>[A-Za-z]+)"""
    r"""|(?P<sign>[(){}\[\]:,]))""",
    re.DOTALL,
)


@dataclass(frozen=True)
class NpyHeader:
    shape: tuple[int, ...]
    dtype: np.dtype
    order: str  # "C" or "F"
    data_offset: int
    told: str = ""  # what tells the file from one that takes its place

    @property
    def data_bytes(self) -> int:
        size = self.dtype.itemsize
        for extent in self.shape:
            size *= extent
        return size


def parse_descr(descr: Any) -> np.dtype:
    """A dtype from a header's `descr`: a string, or a list of
    (name, descr[, shape]). Refuses objects and zero bytes."""
    fields = 0

    def build(node: Any, depth: int) -> Any:
        nonlocal fields
        if depth > _MAX_DEPTH:
            raise StoreError(f"the element type nests deeper than {_MAX_DEPTH}")
        if isinstance(node, str):
            if node.lstrip("<>|=").startswith("O"):
                raise StoreError(
                    "it holds Python objects, which have no fixed size and may run code when they are read"
                )
            if not _TYPE.match(node):
                raise StoreError(f"{short(node)} is no element type of fixed size")
            return node
        if not isinstance(node, (list, tuple)):
            raise StoreError(f"{short(node)} is no element type")
        if isinstance(node, tuple):  # a base type and its own shape
            if len(node) != 2:
                raise StoreError(f"{short(node)} is no element type")
            return np.dtype((build(node[0], depth + 1), subshape(node[1])))
        if not node:
            raise StoreError("the element type has no fields")
        parts = []
        for entry in node:
            fields += 1
            if fields > _MAX_FIELDS:
                raise StoreError(f"the element type has more than {_MAX_FIELDS} fields")
            if not isinstance(entry, (list, tuple)) or len(entry) not in (2, 3):
                raise StoreError(f"{short(entry)} is no field: (name, type) or (name, type, shape) is one")
            name = entry[0]
            if isinstance(name, (list, tuple)):
                if len(name) != 2 or not all(isinstance(part, str) for part in name):
                    raise StoreError(f"{short(name)} is no field name")
                name = tuple(name)
            elif not isinstance(name, str):
                raise StoreError(f"{short(name)} is no field name")
            part = (name, build(entry[1], depth + 1))
            parts.append(part + (subshape(entry[2]),) if len(entry) == 3 else part)
        return parts

    def subshape(node: Any) -> tuple[int, ...]:
        extents = node if isinstance(node, (list, tuple)) else [node]
        if len(extents) > MAX_DIMENSIONS:
            raise StoreError("a field has too many dimensions")
        for extent in extents:
            if type(extent) is not int or not 0 <= extent < 2**31:
                raise StoreError(f"{short(extent)} is no extent of a field")
        return tuple(extents)

    try:
        dtype = np.lib.format.descr_to_dtype(build(descr, 0))
    except StoreError:
        raise
    except Exception as error:  # NumPy refuses in many ways: clashing names, sizes beyond int, unknown units
        raise StoreError(f"NumPy does not accept its element type: {_first_line(error)}") from None
    if dtype.hasobject:
        raise StoreError("it holds Python objects, which have no fixed size and may run code when they are read")
    if dtype.itemsize == 0:
        raise StoreError("its elements have no bytes: there is nothing to move")
    return dtype


def descr_of(dtype: np.dtype) -> Any:
    """A header's `descr` of a dtype. Raises StoreError where there is none, for fields that lie in another order than
    they are named in."""
    try:
        return np.lib.format.dtype_to_descr(without_metadata(dtype))
    except ValueError as error:
        raise StoreError(f"a .npy file has no words for the element type {dtype}: {_first_line(error)}") from None


def without_metadata(dtype: np.dtype) -> np.dtype:
    """Without what h5py, above all, notes in a dtype: names of an enum's values, the encoding of texts."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((without_metadata(base), shape))
    if dtype.fields is None:
        return dtype if dtype.metadata is None else np.dtype(dtype.str)
    fields = [dtype.fields[name] for name in dtype.names or ()]
    return np.dtype(
        {
            "names": list(dtype.names or ()),
            "formats": [without_metadata(field[0]) for field in fields],
            "offsets": [field[1] for field in fields],
            "titles": [field[2] if len(field) > 2 else None for field in fields],
            "itemsize": dtype.itemsize,
        }
    )


def value_names(dtype: np.dtype) -> list[str]:
    """The names that an enum's values have, in a dtype as h5py has it, or in one of its fields."""
    if dtype.subdtype is not None:
        return value_names(dtype.subdtype[0])
    if dtype.fields is not None:
        return [name for field in dtype.fields.values() for name in value_names(field[0])]
    notes: Mapping[str, Any] = dtype.metadata or {}
    values = notes.get("enum") or {}
    return sorted(values, key=values.__getitem__)


def check_shape(shape: Any, itemsize: int) -> tuple[int, ...]:
    """A tuple of extents from an untrusted list; refuses what 64 bits cannot count."""
    if not isinstance(shape, (list, tuple)):
        raise StoreError(f"its shape is {short(shape)}, not a list of extents")
    if len(shape) > MAX_DIMENSIONS:
        raise StoreError(f"it has {len(shape)} dimensions; at most {MAX_DIMENSIONS} are supported")
    size = itemsize
    empty = False
    for d, extent in enumerate(shape):
        if type(extent) is not int:
            raise StoreError(f"extent {d} of its shape is {short(extent)}, not an integer")
        if not 0 <= extent <= MAX_INDEX:
            raise StoreError(f"extent {d} of its shape is {short(extent)}; it must lie in [0, 2^63)")
        empty = empty or extent == 0
        size *= extent or 1
    if size > MAX_INDEX and not empty:
        raise StoreError("its shape has more bytes than 64 bits can count")
    return tuple(shape)


def read_header(file: RandomAccess) -> NpyHeader:
    """The header of an open `.npy` file. Raises StoreError with the reason; the caller knows the file's name."""
    size = file.size()
    start = file.start(12)
    if len(start) < 10 or start[:6] != MAGIC:
        if start[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):
            raise StoreError("it is a Python pickle, which may run code when it is read")
        if start[:4] == b"PK\x03\x04":
            raise StoreError(
                "it is a .npz archive; take the array you want out of it first, with numpy.load and numpy.save"
            )
        raise StoreError("it does not start as a .npy file does" if start else "it is empty")
    major = start[6]
    if (major, start[7]) not in ((1, 0), (2, 0), (3, 0)):
        raise StoreError(f".npy format version {start[6]}.{start[7]} is unknown; 1.0, 2.0 and 3.0 are supported")
    prefix = 10 if major == 1 else 12
    if len(start) < prefix:
        raise StoreError("it ends inside its header")
    (length,) = struct.unpack("<H", start[8:10]) if major == 1 else struct.unpack("<I", start[8:12])
    if length > MAX_HEADER_BYTES:
        raise StoreError(f"its header claims {length} bytes; at most {MAX_HEADER_BYTES} are read")
    if prefix + length > size:
        raise StoreError("it ends inside its header")
    raw = file.read(length, prefix)
    try:
        text = raw.decode("utf-8" if major == 3 else "latin-1")
    except UnicodeDecodeError:
        raise StoreError("its header is not UTF-8") from None
    values = _parse_literal(text)
    if not isinstance(values, dict) or set(values) != {"descr", "fortran_order", "shape"}:
        raise StoreError("its header must say descr, fortran_order and shape, and nothing else")
    if type(values["fortran_order"]) is not bool:
        raise StoreError(f"fortran_order is {short(values['fortran_order'])}, not True or False")
    dtype = parse_descr(values["descr"])
    shape = check_shape(values["shape"], dtype.itemsize)
    return NpyHeader(shape, dtype, "F" if values["fortran_order"] else "C", prefix + length, file.told)


def npy_header(place: str | os.PathLike, *, follow_links: bool = True) -> NpyHeader:
    """The header of the `.npy` file at a path or a URL, checked."""
    with open_file(place, follow_links=follow_links) as file:
        return _checked(file)


def open_npy(path: str | os.PathLike, *, follow_links: bool = True) -> tuple[int, NpyHeader]:
    """Opens a `.npy` file of a disk for reading and checks it: (descriptor, header)."""
    name = os.fspath(path)
    file = open_local(name, follow_links=follow_links)
    try:
        return file.fd, _checked(file)
    except BaseException:
        file.close()
        raise


def _checked(file: RandomAccess) -> NpyHeader:
    """The header of an open file, whose size must be what it promises."""
    try:
        header = read_header(file)
        expected = header.data_offset + header.data_bytes
        size = file.size()
        if size < expected:
            raise StoreError(f"it is truncated: its header promises {expected} bytes, the file has {size}")
        if size > expected:
            raise StoreError(f"{size - expected} bytes follow the array; a file that holds one array has none")
    except StoreError as error:
        if error.errno is not None:
            raise
        raise StoreError(f"{file.name} cannot be used: {error}") from None
    except OSError as error:
        raise StoreError(error.errno, f"cannot read {file.name}: {error.strerror}") from None
    return header


def encode_header(shape: Sequence[int], dtype: np.dtype, order: str) -> bytes:
    """The bytes of a header, padded so that the data starts at a multiple of 64."""
    descr = descr_of(dtype)
    text = f"{{'descr': {descr!r}, 'fortran_order': {order == 'F'}, 'shape': {tuple(int(n) for n in shape)!r}, }}"
    try:
        raw, version = text.encode("latin-1"), 1
    except UnicodeEncodeError:
        raw, version = text.encode("utf-8"), 3
    if version == 1 and len(raw) + 64 + 10 > 0xFFFF:
        version = 2
    prefix = 10 if version == 1 else 12
    raw += b" " * (-(prefix + len(raw) + 1) % 64) + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(raw))
    return MAGIC + bytes([version, 0]) + length + raw


def _parse_literal(text: str) -> Any:
    """A Python literal of dicts, lists, tuples, strings, integers
    and booleans; bounded in depth, nothing else accepted."""
    place = 0

    def token() -> tuple[str | None, str]:
        nonlocal place
        match = _TOKEN.match(text, place)
        if not match:
            return "end", ""
        place = match.end()
        return match.lastgroup, match.group(match.lastgroup or 0)

    def peek() -> str | None:
        match = _TOKEN.match(text, place)
        return match.group("sign") if match else None

    def value(depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise StoreError(f"its header nests deeper than {_MAX_DEPTH}")
        kind, word = token()
        if kind == "string":
            try:
                read = ast.literal_eval(word)
            except (ValueError, SyntaxError):
                raise StoreError("its header has a string that cannot be read") from None
            return read.decode("latin-1") if isinstance(read, bytes) else read
        if kind == "number":
            if len(word) > 20:
                raise StoreError(f"its header has a number of {len(word)} digits")
            return int(word)
        if kind == "name" and word in ("True", "False"):
            return word == "True"
        if kind == "sign" and word in "([":
            return sequence(depth, ")" if word == "(" else "]")
        if kind == "sign" and word == "{":
            return mapping(depth)
        raise StoreError(
            "its header cannot be read" if kind == "end" else f"its header has {short(word)} where a value belongs"
        )

    def sequence(depth: int, closing: str) -> Any:
        items: list[Any] = []
        commas = 0
        while peek() != closing:
            items.append(value(depth + 1))
            if peek() != ",":
                break
            token()
            commas += 1
        if token()[1] != closing:
            raise StoreError("its header has a bracket that is not closed")
        if closing == "]":
            return items
        return items[0] if len(items) == 1 and not commas else tuple(items)

    def mapping(depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while peek() != "}":
            key = value(depth + 1)
            if not isinstance(key, str) or token()[1] != ":":
                raise StoreError("its header cannot be read")
            if key in items:
                raise StoreError(f"its header says {short(key)} twice")
            items[key] = value(depth + 1)
            if peek() != ",":
                break
            token()
        if token()[1] != "}":
            raise StoreError("its header has a bracket that is not closed")
        return items

    result = value(0)
    if text[place:].strip(" \t\r\n"):
        raise StoreError("its header goes on after its end")
    return result


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
