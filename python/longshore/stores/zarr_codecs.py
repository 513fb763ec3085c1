"""What Zarr's metadata say of codecs, read into pipelines.

Format 2 names codecs of numcodecs: filters, and a compressor behind them. Format 3 has a list of codecs of its own, of
which one makes bytes of an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._words import short
from ..errors import StoreError
from .zarr_fill import fill_bytes
from .zarr_filters import BY_NAME, FILTERS, NUMBERS, Permute, Swap, Unknown
from .zarr_pipeline import Options, Pipeline, Stage, Step, first_stage
from .zarr_shards import ShardIndex, ShardStep, shard_counts
from .zarr_types import Element, byte_order

_MAX_CODECS = 32
_MAX_SHARDING = 3
SHARDING = "sharding_indexed"
CORE = ("gzip", "zstd", "blosc", "crc32c")
"""Codecs of numcodecs that format 3 has under their own names."""
PREFIX = "numcodecs."
DEFAULT_INDEX_CODECS = ({"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"})


@dataclass(frozen=True)
class Sharding:
    """How chunks lie in shards, where they can be read one by one."""

    chunk: tuple[int, ...]
    codecs: list[Any]
    """As the document has them."""
    index: ShardIndex
    index_codecs: list[Any]


def extents_of(node: Any, what: str, dimensions: int | None = None) -> tuple[int, ...]:
    """Extents of chunks, which are positive."""
    if not isinstance(node, list) or (dimensions is not None and len(node) != dimensions):
        raise StoreError(f"its {what} is {short(node)}, not a list of {dimensions} extents")
    for extent in node:
        if type(extent) is not int or not 0 < extent < 2**63:
            raise StoreError(f"its {what} is {short(node)}; every extent must lie in [1, 2^63)")
    return tuple(node)


def pipeline_v2(dtype: np.dtype, chunk: Sequence[int], order: str, filters: Any, compressor: Any) -> Pipeline:
    """Of a `.zarray`."""
    if filters is not None and not isinstance(filters, list):
        raise StoreError(f'"filters" is {short(filters)}, not a list of codecs')
    codecs = [*(filters or ()), *(() if compressor is None else (compressor,))]
    _check_count(codecs)
    axes = tuple(range(len(chunk)))[:: -1 if order == "F" else 1]
    stored = tuple(chunk[axis] for axis in axes)
    stage = first_stage(dtype, stored)
    steps: list[Step] = []
    for codec in codecs:
        if not isinstance(codec, dict) or not isinstance(codec.get("id"), str):
            raise StoreError(f"{short(codec)} is no codec")
        given = {key: value for key, value in codec.items() if key != "id"}
        steps.append(_step(codec["id"], given, stage))
        stage = steps[-1].after
    return Pipeline(dtype, chunk, axes, steps)


def sharding_of(codecs: Any, shard: Sequence[int]) -> Sharding | None:
    """Of a `zarr.json`, where sharding is its only codec, so that chunks can be read from shards one by one."""
    if not isinstance(codecs, list) or len(codecs) != 1:
        return None
    name, given = named(codecs[0])
    return _sharding(given, shard) if name == SHARDING else None


def pipeline_v3(element: Element, chunk: Sequence[int], codecs: Any, fill: Any, depth: int = 0) -> Pipeline:
    """Of a `zarr.json`, or of what is in its shards. `fill` is the document's fill value."""
    assert element.dtype is not None
    if depth > _MAX_SHARDING:
        raise StoreError(f"its shards nest deeper than {_MAX_SHARDING}")
    if not isinstance(codecs, list):
        raise StoreError(f'"codecs" is {short(codecs)}, not a list')
    _check_count(codecs)
    dtype = element.dtype
    stage = first_stage(dtype, chunk)
    axes = tuple(range(len(chunk)))
    steps: list[Step] = []
    is_array = True
    for codec in codecs:
        name, given = named(codec)
        step: Step
        if is_array and name == "transpose":
            assert stage.shape is not None
            order = _order(given, len(stage.shape))
            if steps:
                step = Permute(name, stage, order)
            else:
                axes = tuple(axes[i] for i in order)
                stage = replace(stage, shape=tuple(chunk[axis] for axis in axes))
                continue
        elif is_array and name in ("bytes", "endian"):
            is_array = False
            stage = replace(stage, shape=None)
            wanted = _endian(name, given, element, stage)
            there = "little" if element.name else byte_order(stage.dtype)
            if not wanted or wanted == there:
                continue
            if not steps and not element.name:
                dtype = dtype.newbyteorder("<" if wanted == "little" else ">")
                stage = replace(stage, dtype=dtype)
                continue
            step = Swap(name, stage)
        elif is_array and name == SHARDING:
            is_array = False
            assert stage.shape is not None
            sharding = _sharding(given, stage.shape)
            inner = pipeline_v3(Element(stage.dtype, element.name), sharding.chunk, sharding.codecs, fill, depth + 1)
            if not steps:
                dtype = inner.dtype
            filling = fill_bytes(fill, Element(inner.dtype, element.name))
            step = ShardStep(name, stage, inner, sharding.index, filling or bytes(inner.dtype.itemsize))
        else:
            step = _step_v3(name, given, stage)
            if is_array and name.removeprefix(PREFIX) not in FILTERS:
                is_array = False
                if name.removeprefix(PREFIX) not in NUMBERS and not isinstance(step, Unknown):
                    raise StoreError(f'the codec {name} comes before one that makes bytes, as "bytes" does')
        steps.append(step)
        stage = step.after
    if is_array:
        raise StoreError('none of its codecs makes bytes of the array, as "bytes" does')
    return Pipeline(dtype, chunk, axes, steps)


def named(codec: Any) -> tuple[str, dict[str, Any]]:
    """Name and configuration of an entry of format 3."""
    if isinstance(codec, str):
        return codec, {}
    if not isinstance(codec, dict) or not isinstance(codec.get("name"), str):
        raise StoreError(f"{short(codec)} is no codec")
    given = codec.get("configuration", {})
    if not isinstance(given, dict):
        raise StoreError(f"the configuration of the codec {short(codec['name'])} is {short(given)}, not an object")
    return codec["name"], given


def _step_v3(name: str, given: dict[str, Any], stage: Stage) -> Step:
    plain = name.removeprefix(PREFIX)
    if (name in CORE or name.startswith(PREFIX)) and plain in BY_NAME:
        if name.startswith(PREFIX) and given.get("id") == plain:
            given = {key: value for key, value in given.items() if key != "id"}
        if plain == "shuffle" and given.get("elementsize") is None:
            given = {**given, "elementsize": stage.dtype.itemsize}
        return _step(plain, given, stage)
    return Unknown(short(name)[1:-1], stage)


def _step(name: str, given: dict[str, Any], stage: Stage) -> Step:
    make = BY_NAME.get(name)
    if make is None:
        return Unknown(short(name)[1:-1], stage)
    options = Options(name, given)
    step = make(name, stage, options)
    options.finish()
    return step


def _sharding(given: dict[str, Any], shard: Sequence[int]) -> Sharding:
    chunk = extents_of(given.get("chunk_shape"), "chunk shape in shards", len(shard))
    counts = shard_counts(shard, chunk)
    location = given.get("index_location", "end")
    if location not in ("start", "end"):
        raise StoreError(f"the index of its shards is at {short(location)}, which is neither start nor end")
    index_codecs = given.get("index_codecs", list(DEFAULT_INDEX_CODECS))
    number = Element(np.dtype("<u8"))
    index = ShardIndex(counts, pipeline_v3(number, (*counts, 2), index_codecs, 0, _MAX_SHARDING), location == "end")
    codecs = given.get("codecs")
    if not isinstance(codecs, list):
        raise StoreError(f"the codecs of its shards are {short(codecs)}, not a list")
    for key in given:
        if key not in ("chunk_shape", "codecs", "index_codecs", "index_location"):
            raise StoreError(f"the codec {SHARDING} has the unknown option {short(key)}")
    return Sharding(chunk, codecs, index, index_codecs)


def _order(given: dict[str, Any], dimensions: int) -> tuple[int, ...]:
    order = given.get("order")
    if order in ("C", "F"):  # so drafts of format 3 had it
        order = list(range(dimensions))[:: -1 if order == "F" else 1]
    if not isinstance(order, list) or any(type(axis) is not int for axis in order):
        raise StoreError(f"the codec transpose has the order {short(order)}, which is no list of dimensions")
    if sorted(order) != list(range(dimensions)):
        raise StoreError(f"the codec transpose has the order {short(order)}, which is none of {dimensions} dimensions")
    return tuple(order)


def _endian(name: str, given: dict[str, Any], element: Element, stage: Stage) -> str:
    """The byte order that a document asks for; "" where it does not matter."""
    endian = given.get("endian")
    if endian not in (None, "little", "big"):
        raise StoreError(f"the codec {name} has the byte order {short(endian)}, which is neither little nor big")
    if element.is_struct:
        return endian or "little"
    multi = byte_order(stage.dtype) != "" or (element.name and stage.dtype.itemsize > 1)
    if multi and endian is None:
        raise StoreError(f"the codec {name} does not say the byte order of elements of {stage.dtype}")
    return endian or "" if multi else ""


def _check_count(codecs: Sequence[Any]) -> None:
    if len(codecs) > _MAX_CODECS:
        raise StoreError(f"it has {len(codecs)} codecs; at most {_MAX_CODECS} are supported")
