"""What xarray keeps in the attributes of Zarr arrays: names of dimensions, and values that mean that one is missing.

Zarr 2 has no place for the names, so that they are the attribute `_ARRAY_DIMENSIONS`; and its fill value means that an
element is missing. In Zarr 3 the names have their place; the fill value is only what chunks hold that are not there,
and the attribute `_FillValue` says what means missing, a floating-point number as base64. In `ArrayFacts` names are
`names`, and `_FillValue` is a number, as NetCDF has it.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from .zarr_types import Element

NAMES = "_ARRAY_DIMENSIONS"
MISSING = "_FillValue"


def take_names(attributes: dict[str, Any], dimensions: int) -> tuple[str | None, ...] | None:
    """Takes the names of dimensions out of the attributes, where they are in order."""
    names = attributes.get(NAMES)
    if not isinstance(names, list) or len(names) != dimensions or not all(isinstance(name, str) for name in names):
        return None
    del attributes[NAMES]
    return tuple(names)


def missing_of_format_2(attributes: dict[str, Any], element: Element, fill: bytes | None) -> None:
    """Says in the attributes of an array with names that its fill value means missing."""
    dtype = element.dtype
    if fill is not None and dtype is not None and dtype.kind in "biuf" and MISSING not in attributes:
        attributes[MISSING] = np.frombuffer(fill, dtype)[0]


def fill_of_format_2(attributes: Mapping[str, Any], dtype: np.dtype, fill: bytes | None) -> bytes | None:
    """The fill value of an array with names: what `_FillValue` says. Where nobody says what means missing, the zero
    that Zarr 3 and HDF5 have by default must not be there, or every zero would."""
    missing = _missing(attributes, dtype)
    if missing is not None:
        return missing
    return None if fill is not None and not any(fill) else fill


def missing_to_format_2(attributes: dict[str, Any], dtype: np.dtype) -> None:
    """Takes `_FillValue` out of the attributes of an array with names, whose fill value says it."""
    if _missing(attributes, dtype) is not None:
        del attributes[MISSING]


def missing_of_format_3(attributes: dict[str, Any], element: Element) -> None:
    """Makes a number of `_FillValue`, where it is written as xarray writes it."""
    value = attributes.get(MISSING)
    if element.dtype is None or element.dtype.kind != "f" or not isinstance(value, str):
        return
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return
    if len(raw) == 8:
        attributes[MISSING] = struct.unpack("<d", raw)[0]


def missing_to_format_3(attributes: dict[str, Any], dtype: np.dtype) -> None:
    """Writes `_FillValue` as xarray does."""
    said = _number(attributes)
    if said is not None and dtype.kind == "f":
        attributes[MISSING] = base64.b64encode(struct.pack("<d", float(said[0]))).decode()


def _missing(attributes: Mapping[str, Any], dtype: np.dtype) -> bytes | None:
    """The element that means missing; None where there is none, or it is no element of this type."""
    said = _number(attributes)
    if said is None or dtype.kind not in "biuf":
        return None
    with np.errstate(all="ignore"):
        element = said.astype(dtype)
    return element.tobytes() if dtype.kind == "f" or element == said else None


def _number(attributes: Mapping[str, Any]) -> np.ndarray | None:
    """What `_FillValue` says, as an array of one number, as HDF5 may have it."""
    said = np.asarray(attributes.get(MISSING))
    return said.reshape(1) if said.size == 1 and said.dtype.kind in "biuf" else None
