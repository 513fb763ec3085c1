"""Element types as Zarr writes them: its two formats' names for them, and NumPy's."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._words import short
from ..errors import StoreError
from .npy import parse_descr

_PLAIN = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
BARE = {
    "bfloat16": 2,
    **dict.fromkeys(("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"), 1),
    **dict.fromkeys(("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
    **dict.fromkeys(("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int2", "int4", "uint2", "uint4"), 1),
}
"""Types that NumPy has no name for, held as bytes, and how many bytes an element takes."""
_OTHER_NAMES = {
    **{"bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2", "f8_e8m0": "float8_e8m0fnu"},
    **{"f8_e4m3fnuz": "float8_e4m3fnuz", "f8_e5m2fnuz": "float8_e5m2fnuz"},
}
_VARIABLE = ("string", "bytes", "variable_length_bytes", "variable_length_utf8", "json")
_UNITS = ("generic", "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
_TIME = {"numpy.datetime64": "M8", "numpy.timedelta64": "m8"}
_TIME_OF = re.compile(r"[<>|=]?[mM]8(?:\[(\d*)([A-Za-z]+)\])?")
_MAX_ITEM_BYTES = 1 << 30
_MAX_FIELDS = 4096


@dataclass(frozen=True)
class Element:
    """An element type."""

    dtype: np.dtype | None
    """None: of variable length, objects, or unknown."""
    name: str = ""
    """The format's own, where NumPy has none."""

    @property
    def is_struct(self) -> bool:
        return self.dtype is not None and self.dtype.names is not None


def bare_name(name: str) -> str:
    """The name in `BARE` of a type that another format may have called otherwise ("BF16"); "" where it has none."""
    name = _OTHER_NAMES.get(name.lower(), name)
    return name if name in BARE else ""


def bare_element(dtype: np.dtype) -> Element:
    """A dtype as stores have it: one that ml_dtypes has brought to NumPy is bytes and a name."""
    return (
        Element(np.dtype(f"V{dtype.itemsize}"), dtype.name) if dtype.type.__module__ == "ml_dtypes" else Element(dtype)
    )


def bare_dtype(name: str) -> np.dtype | None:
    """What ml_dtypes has for a type of `BARE`, whichever format has named it; None where that has nothing for it or is
    not installed."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    found = getattr(ml_dtypes, bare_name(name) or "-", None)
    return None if found is None else np.dtype(found)


def element_v2(node: Any) -> Element:
    """From a `.zarray`."""
    if isinstance(node, str) and node in BARE:
        return Element(np.dtype(f"V{BARE[node]}"), node)
    if _has_objects(node):
        return Element(None, "object" if isinstance(node, str) else "structured with objects")
    dtype = parse_descr(node)
    if dtype.itemsize > _MAX_ITEM_BYTES:
        raise StoreError(f"its elements have {dtype.itemsize} bytes; at most {_MAX_ITEM_BYTES} are supported")
    return Element(dtype)


def element_v3(node: Any, depth: int = 0) -> Element:
    """From a `zarr.json`, in little-endian order, which the codecs may change."""
    if isinstance(node, str):
        return _named(node)
    if not isinstance(node, dict) or not isinstance(node.get("name"), str):
        raise StoreError(f'"data_type" is {short(node)}, which names no type')
    name, given = node["name"], node.get("configuration", {})
    if not isinstance(given, dict):
        raise StoreError(f"the configuration of the type {short(name)} is {short(given)}, not an object")
    if name in _TIME:
        unit, factor = given.get("unit"), given.get("scale_factor", 1)
        unit = "us" if unit == "μs" else unit
        if unit not in _UNITS or type(factor) is not int or not 1 <= factor < 2**31:
            raise StoreError(f"{short(given)} is no unit of time")
        return Element(np.dtype(f"<{_TIME[name]}" + ("" if unit == "generic" else f"[{factor}{unit}]")))
    if name in ("null_terminated_bytes", "raw_bytes", "fixed_length_utf32"):
        length = given.get("length_bytes")
        if type(length) is not int or not 0 < length <= _MAX_ITEM_BYTES:
            raise StoreError(f"{short(length)} is no number of bytes of an element")
        if name == "fixed_length_utf32":
            if length % 4:
                raise StoreError(f"{length} bytes are no whole number of UTF-32 characters")
            return Element(np.dtype(f"<U{length // 4}"))
        return Element(np.dtype(f"{'S' if name == 'null_terminated_bytes' else 'V'}{length}"))
    if name in ("structured", "struct"):
        return _struct(given.get("fields"), depth)
    return _named(name)


def type_v2(dtype: np.dtype, name: str = "") -> Any:
    """For a `.zarray`, of a dtype as `packed` gives it."""
    return bare_name(name) or (_descr(dtype) if dtype.names else dtype.str)


def type_v3(dtype: np.dtype, name: str = "") -> Any:
    """For a `zarr.json`. Raises ValueError where Zarr 3 has no name for the type."""
    if bare_name(name):
        return bare_name(name)
    if dtype.names is not None:
        fields = []
        for field in dtype.names:
            if dtype[field].subdtype is not None:
                raise ValueError(f"the field {field!r} is an array")
            fields.append([field, type_v3(dtype[field])])
        return {"name": "structured", "configuration": {"fields": fields}}
    if dtype.kind in "mM":
        match = _TIME_OF.fullmatch(dtype.str)
        factor, unit = (match.group(1), match.group(2)) if match else ("", None)
        given = {"unit": unit or "generic", "scale_factor": int(factor or 1)}
        return {"name": f"numpy.{'datetime64' if dtype.kind == 'M' else 'timedelta64'}", "configuration": given}
    if dtype.kind in "SUV":
        names = {"S": "null_terminated_bytes", "U": "fixed_length_utf32", "V": "raw_bytes"}
        return {"name": names[dtype.kind], "configuration": {"length_bytes": dtype.itemsize}}
    if dtype.name in _PLAIN:
        return dtype.name
    raise ValueError(f"Zarr 3 has no type {dtype}")


def packed(dtype: np.dtype, little: bool) -> np.dtype:
    """A structured dtype as Zarr can say it, without holes between the fields and without titles, and with `little`
    in little-endian order; any other as it is."""
    if dtype.names is None:
        return dtype.newbyteorder("<") if little else dtype
    fields: list[Any] = []
    for name in dtype.names:
        field = dtype[name]
        if field.subdtype is not None:
            base, shape = field.subdtype
            fields.append((name, packed(base, little), shape))
        else:
            fields.append((name, packed(field, little)))
    return np.dtype(fields)


def byte_order(dtype: np.dtype) -> str:
    """ "little", "big", or "" where it does not matter."""
    order = dtype.byteorder
    if dtype.names is not None or order == "|":
        return ""
    if order == "=":
        return sys.byteorder
    return "little" if order == "<" else "big"


def _named(name: str) -> Element:
    if name in _PLAIN:
        return Element(np.dtype(name).newbyteorder("<"))
    if name in BARE:
        return Element(np.dtype(f"V{BARE[name]}"), name)
    raw = re.fullmatch(r"r(\d{1,10})", name)
    if raw:
        bits = int(raw.group(1))
        if bits == 0 or bits % 8 or bits // 8 > _MAX_ITEM_BYTES:
            raise StoreError(f"the type {name} is no whole number of bytes that is supported")
        return Element(np.dtype(f"V{bits // 8}"))
    if name in _VARIABLE:
        return Element(None, name)
    return Element(None, short(name)[1:-1])


def _struct(fields: Any, depth: int) -> Element:
    if depth > 16:
        raise StoreError("the element type nests deeper than 16")
    if not isinstance(fields, list) or not 0 < len(fields) <= _MAX_FIELDS:
        raise StoreError(f"{short(fields)} is no list of fields")
    parts = []
    for field in fields:
        if isinstance(field, dict):
            field = [field.get("name"), field.get("data_type")]
        if not isinstance(field, list) or len(field) != 2 or not isinstance(field[0], str):
            raise StoreError(f"{short(field)} is no field: [name, type] is one")
        element = element_v3(field[1], depth + 1)
        if element.dtype is None:
            return Element(None, f"structured with {element.name}")
        parts.append((field[0], element.dtype))
    try:
        dtype = np.dtype(parts)
    except (ValueError, TypeError) as error:
        raise StoreError(f"NumPy does not accept its element type: {error}") from None
    if dtype.itemsize > _MAX_ITEM_BYTES:
        raise StoreError(f"its elements have {dtype.itemsize} bytes; at most {_MAX_ITEM_BYTES} are supported")
    return Element(dtype)


def _descr(dtype: np.dtype) -> list[list[Any]]:
    assert dtype.names is not None
    fields = []
    for name in dtype.names:
        base, shape = dtype[name].subdtype or (dtype[name], None)
        node = _descr(base) if base.names else base.str
        fields.append([name, node] if shape is None else [name, node, list(shape)])
    return fields


def _has_objects(node: Any, depth: int = 0) -> bool:
    if isinstance(node, str):
        return node.lstrip("<>|=").startswith("O")
    if depth > 32 or not isinstance(node, list):
        return False
    return any(
        isinstance(field, list) and len(field) > 1 and _has_objects(field[1], depth + 1) for field in node[:_MAX_FIELDS]
    )
