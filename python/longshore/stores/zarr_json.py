"""The JSON documents of Zarr stores: read from an untrusted hand, and written; and attributes as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._words import short
from ..errors import StoreError

MAX_JSON_BYTES = 16 << 20
_MAX_DEPTH = 64
_MAX_DIGITS = 400


def parse_json(raw: bytes) -> dict[str, Any]:
    """A JSON object. Raises StoreError with the reason; the caller knows the document's name."""
    if len(raw) > MAX_JSON_BYTES:
        raise StoreError(f"it has {len(raw)} bytes; at most {MAX_JSON_BYTES} are read")
    try:
        # NaN and Infinity, which are no JSON, are let through: zarr-python writes them in attributes.
        values = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise StoreError(f"it is not UTF-8: byte {error.start} cannot be read") from None
    except RecursionError:
        raise StoreError(f"it nests deeper than {_MAX_DEPTH}") from None
    except json.JSONDecodeError as error:
        raise StoreError(f"it is not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    if not isinstance(values, dict):
        raise StoreError("it is not a JSON object")
    _check_values(values)
    return values


def dump_json(document: Mapping[str, Any]) -> bytes:
    """The bytes of a document, without white space, so that the metadata of many arrays stay small."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=True).encode()


def attributes_of(values: Any, what: str = '"attributes"') -> dict[str, Any]:
    """Attributes from a document."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise StoreError(f"{what} must be an object, not {short(values)}")
    return values


def json_attribute(value: Any) -> Any:
    """An attribute as JSON has it. Raises ValueError where JSON has nothing for it."""
    if isinstance(value, np.ndarray):
        _check_kind(value.dtype)
        return json_attribute(value.tolist())
    if isinstance(value, np.generic):
        _check_kind(value.dtype)
        return float(value) if isinstance(value, np.longdouble) else json_attribute(value.item())
    if isinstance(value, bytes):
        return value.decode("utf-8")  # UnicodeDecodeError is a ValueError
    if isinstance(value, str):
        value.encode("utf-8")  # the same of lone surrogates
        return value
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [json_attribute(item) for item in value]
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("a key that is not text")
        return {key: json_attribute(item) for key, item in value.items()}
    raise ValueError(f"a {type(value).__name__}")


def json_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as JSON has them, without those that it has nothing for."""
    held = {}
    for name, value in values.items():
        try:
            held[name] = json_attribute(value)
        except ValueError:
            continue
    return held


def lost_attributes(values: Mapping[str, Any]) -> list[str]:
    """The names of those that JSON has nothing for."""
    return [name for name in values if name not in json_attributes({name: values[name]})]


def _check_kind(dtype: np.dtype) -> None:
    if dtype.kind not in "biufSUO":
        raise ValueError(f"NumPy's {dtype}")


def _check_values(document: dict[str, Any]) -> None:
    """Refuses what nests too deeply, and text that UTF-8 cannot hold."""
    waiting: list[tuple[Any, int]] = [(document, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            _check_text(value)
        elif isinstance(value, (dict, list)):
            if depth > _MAX_DEPTH:
                raise StoreError(f"it nests deeper than {_MAX_DEPTH}")
            if isinstance(value, dict):
                for key in value:
                    _check_text(key)
                value = value.values()
            waiting.extend((item, depth + 1) for item in value)


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise StoreError(f"it holds text that UTF-8 cannot hold: {short(text)}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise StoreError(f"the key {short(key)} appears twice")
            seen.add(key)
    return values


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise StoreError(f"it holds a number of {len(text)} digits")
    return int(text)
