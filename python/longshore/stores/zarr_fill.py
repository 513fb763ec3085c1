"""Fill values: one element's bytes, and JSON of Zarr's two formats for them."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import numpy as np

from .._words import short
from ..errors import NotInstalledError, StoreError
from .zarr_types import Element, bare_dtype

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NAT = -(2**63)


def fill_bytes(value: Any, element: Element) -> bytes | None:
    """The bytes of a fill value from a document; None where it says that there is none. Raises StoreError where it is
    no value of the type."""
    if value is None or element.dtype is None:
        return None
    try:
        if element.name:
            return _bare_bytes(value, element)
        with np.errstate(all="ignore"):
            return _scalar(value, element.dtype).tobytes()
    except StoreError:
        raise
    except (ValueError, TypeError, OverflowError, binascii.Error):
        what = element.name or str(element.dtype)[:60]
        raise StoreError(f"its fill value {short(value)} is no value of the type {what}") from None


def fill_json(fill: bytes, element: Element, zarr_format: int) -> Any:
    """What a document says for a fill value."""
    dtype = element.dtype
    assert dtype is not None
    if element.name:
        return _bare_json(fill, element, zarr_format)
    scalar = np.frombuffer(fill, dtype)[0]
    if dtype.kind == "b":
        return bool(scalar)
    if dtype.kind in "iu":
        return int(scalar)
    if dtype.kind == "f":
        return _float_json(scalar, zarr_format)
    if dtype.kind == "c":
        return [_float_json(scalar.real, zarr_format), _float_json(scalar.imag, zarr_format)]
    if dtype.kind in "mM":
        return int(np.frombuffer(fill, f"{dtype.str[0]}i8")[0])
    if dtype.kind == "U":
        return str(scalar)
    if dtype.kind == "S":
        return base64.b64encode(bytes(scalar)).decode()
    return base64.b64encode(fill).decode()


def _scalar(value: Any, dtype: np.dtype) -> Any:
    """A NumPy array of no dimensions."""
    kind = dtype.kind
    if kind == "b":
        if value not in (True, False):
            raise ValueError
        return np.array(bool(value), dtype)
    if kind in "iu":
        if isinstance(value, (bool, str)) or int(value) != value:
            raise ValueError
        number = int(value)
        bounds = np.iinfo(dtype)
        if not bounds.min <= number <= bounds.max:
            raise ValueError
        return np.array(number, dtype)
    if kind == "f":
        return _float(value, dtype)
    if kind == "c":
        real, imaginary = value if isinstance(value, list) else (value, 0.0)
        part = np.dtype(f"{dtype.str[0]}f{dtype.itemsize // 2}")
        return np.frombuffer(_float(real, part).tobytes() + _float(imaginary, part).tobytes(), dtype).reshape(())
    if kind in "mM":
        number = _NAT if value == "NaT" else value
        if type(number) is not int or not -(2**63) <= number < 2**63:
            raise ValueError
        return np.array(number, "i8").astype(f"{dtype.str[0]}i8").view(dtype)
    if value == 0 and not isinstance(value, (bool, str)):
        return np.zeros((), dtype)  # so older versions of zarr-python write it for all of what follows
    if kind == "U":
        if not isinstance(value, str) or len(value) > dtype.itemsize // 4:
            raise ValueError
        return np.array(value, dtype)
    if dtype.names is not None and isinstance(value, dict):
        return _struct(value, dtype)
    raw = bytes(value) if isinstance(value, list) else base64.b64decode(value, validate=True)
    if len(raw) > dtype.itemsize or (kind == "V" and len(raw) != dtype.itemsize):
        raise ValueError
    return np.frombuffer(raw.ljust(dtype.itemsize, b"\0"), dtype).reshape(())


def _struct(value: dict[str, Any], dtype: np.dtype) -> np.ndarray:
    result = np.zeros((), dtype)
    assert dtype.names is not None
    for name, part in value.items():
        if name not in dtype.names:
            raise ValueError
        result[name] = _scalar(part, dtype[name])
    return result


def _float(value: Any, dtype: np.dtype) -> np.ndarray:
    if isinstance(value, str):
        if value.startswith("0x"):
            raw = bytes.fromhex(value[2:])
            if len(raw) != dtype.itemsize:
                raise ValueError
            return np.frombuffer(raw, dtype.newbyteorder(">")).reshape(()).astype(dtype, copy=False)
        if value not in _WORDS:
            raise ValueError
        return np.array(_WORDS[value], dtype)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError
    return np.array(float(value), dtype)


def _float_json(scalar: Any, zarr_format: int) -> Any:
    if np.isnan(scalar):
        dtype = scalar.dtype
        usual = np.array(math.nan, dtype).tobytes() == scalar.tobytes()
        if usual or zarr_format == 2 or dtype.itemsize > 8:
            return "NaN"
        return "0x" + np.array(scalar).astype(dtype.newbyteorder(">")).tobytes().hex()
    if np.isinf(scalar):
        return "Infinity" if scalar > 0 else "-Infinity"
    return float(scalar)


def _bare_bytes(value: Any, element: Element) -> bytes:
    """Of a type that NumPy has no name for."""
    assert element.dtype is not None
    size = element.dtype.itemsize
    if isinstance(value, str) and value.startswith("0x"):
        raw = bytes.fromhex(value[2:])
        if len(raw) != size:
            raise ValueError
        return raw[::-1]  # it is written from the highest byte on
    number = _WORDS.get(value, value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise ValueError
    if number == 0 and math.copysign(1, number) > 0:
        return bytes(size)
    with np.errstate(all="ignore"):
        return np.array(float(number)).astype(_bare_dtype(element.name)).tobytes()


def _bare_json(fill: bytes, element: Element, zarr_format: int) -> Any:
    if not any(fill):
        return 0 if "int" in element.name else 0.0
    if zarr_format == 3 and "int" not in element.name:
        return "0x" + fill[::-1].hex()
    number = float(np.frombuffer(fill, _bare_dtype(element.name))[0])
    if "int" in element.name:
        return int(number)
    return _float_json(np.float64(number), zarr_format)


def _bare_dtype(name: str) -> np.dtype:
    found = bare_dtype(name)
    if found is None:
        raise NotInstalledError(f"a fill value of the type {name} needs ml_dtypes: pip install ml_dtypes")
    return found
