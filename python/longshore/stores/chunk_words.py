"""Extents of chunks, as people write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError

Chunks = str | Sequence[int] | Mapping[str, int]
"""Extents of chunks: for every array ("8760x8x8", (8760, 8, 8)), or by the names of dimensions ("time=8760,lat=8")."""
NO_CHUNKS = "none"
"""What a destination's chunks are where elements are to lie one after the other."""


def parse_chunks(text: Chunks | None) -> tuple[int, ...] | dict[str, int] | str | None:
    """Extents from words: "8760x8x8" or "time=8760,lat=8"; tuples, mappings and "none" as they are. Raises
    ArgumentError."""
    if text is None or (isinstance(text, str) and text == NO_CHUNKS):
        return text
    if isinstance(text, Mapping):
        return {str(name): _extent(value, text) for name, value in text.items()}
    if not isinstance(text, Iterable):
        raise ArgumentTypeError(
            f"chunks are extents, such as (64, 64), '64x64' or {{'time': 8760}}, not {type(text).__name__}"
        )
    if not isinstance(text, str):
        return tuple(_extent(value, text) for value in text)
    if "=" in text:
        found: dict[str, int] = {}
        for word in text.split(","):
            name, _, value = word.partition("=")
            if not name.strip() or name.strip() in found:
                raise ArgumentError(f"chunks {text!r}: write each dimension's name once, as in time=8760,lat=8,lon=8")
            found[name.strip()] = _extent(value.strip(), text)
        return found
    return tuple(_extent(word.strip(), text) for word in text.replace(",", "x").split("x"))


def _extent(value: Any, whole: Any) -> int:
    try:
        extent = int(value) if isinstance(value, str) else value.__index__()
    except (ValueError, AttributeError):
        raise ArgumentError(
            f"chunks {whole!r}: {value!r} is no extent; write 8760x8x8, or time=8760,lat=8,lon=8"
        ) from None
    if not 1 <= extent < 1 << 62:
        raise ArgumentError(f"chunks {whole!r}: an extent is {extent}; it must lie in [1, 2^62)")
    return extent


def extents_of(
    wanted: Chunks | None,
    shape: tuple[int, ...],
    names: tuple[str | None, ...] | None,
    where: str,
    otherwise: tuple[int, ...] | None,
) -> tuple[int, ...] | None:
    """The extents of one array's chunks, or shards; None where it is to have none. `otherwise`: where nothing is asked
    for."""
    parsed = parse_chunks(wanted)
    if parsed is None:
        return otherwise
    if isinstance(parsed, str):
        return None
    if isinstance(parsed, dict):
        known = names or ()
        if not any(name in parsed for name in known):
            return otherwise
        own = otherwise or shape
        return tuple(parsed.get(name or "", max(1, o)) for name, o in zip(known, own))
    if len(parsed) != len(shape):
        if not shape:
            return otherwise
        raise ArgumentError(
            f"chunks {'x'.join(map(str, parsed))} have {len(parsed)} dimensions, {where} has {len(shape)}; where "
            "arrays differ, say them by name, such as time=8760,lat=8,lon=8"
        )
    return parsed
