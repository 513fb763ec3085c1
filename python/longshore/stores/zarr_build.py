"""The metadata documents of a Zarr array that is to be made, from what is wanted of it; and what they cannot hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._words import short
from ..errors import ArgumentError, StoreError
from .array import ArrayFacts, LinkFacts, Tree
from .dense import losses_of_values
from .keys import parts_of
from .zarr_codecs import DEFAULT_INDEX_CODECS, SHARDING, pipeline_v2, pipeline_v3
from .zarr_fill import fill_bytes, fill_json
from .zarr_json import json_attributes, lost_attributes
from .zarr_meta import ArrayMeta, array_v2, array_v3, dtype_text
from .zarr_types import BARE, Element, bare_name, byte_order, packed, type_v2, type_v3
from .zarr_words import configs_of, configs_of_v2, configs_of_v3, format_2, format_3
from .zarr_xarray import NAMES, fill_of_format_2, missing_to_format_2, missing_to_format_3

_CHUNK_BYTES = 4 << 20
_ROOT = "the root"
_RESERVED = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


def suitable_chunk(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """A chunk shape of at most 4 MiB: whole trailing dimensions, and as much as fits of the one before them."""
    left = max(1, _CHUNK_BYTES // max(1, itemsize))
    chunk: list[int] = []
    for extent in reversed(shape):
        extent = max(1, extent)
        pieces = -(-extent // min(extent, left))
        chunk.append(-(-extent // pieces))
        left = left // chunk[-1] if pieces == 1 else 1
    return tuple(reversed(chunk))


def stored_element(facts: ArrayFacts, zarr_format: int) -> Element:
    """The element type as it is stored: without holes between fields, and with fields in little-endian order, where the
    format has no others."""
    assert facts.dtype is not None
    name = bare_name(facts.type_name)
    if name and facts.dtype == np.dtype(f"V{BARE[name]}"):
        return Element(facts.dtype, name)
    return Element(packed(facts.dtype, little=zarr_format == 3) if facts.dtype.names else facts.dtype)


def stored_fill(facts: ArrayFacts, element: Element) -> bytes | None:
    """The fill value's bytes in the element type as it is stored."""
    assert facts.dtype is not None and element.dtype is not None
    if facts.fill is None or facts.dtype == element.dtype:
        return facts.fill
    return np.frombuffer(facts.fill, facts.dtype).astype(element.dtype).tobytes()


def can_copy(facts: ArrayFacts, zarr_format: int) -> bool:
    """Whether an array whose elements cannot be moved can be made, so that its chunks may be copied as they are
    stored."""
    return facts.dtype is None and facts.own.get("zarr.format") == zarr_format and "zarr.document" in facts.own


def array_document(facts: ArrayFacts, zarr_format: int, where: str) -> tuple[dict[str, Any], dict[str, Any], ArrayMeta]:
    """The document of an array (`.zarray` or `zarr.json`), its attributes for a `.zattrs`, and what both say. Raises
    ArgumentError, naming the array, where what is wanted cannot be."""
    try:
        if facts.dtype is None:
            document = dict(facts.own["zarr.document"])
        elif zarr_format == 2:
            document = _document_2(facts)
        else:
            document = _document_3(facts)
        attributes = _attributes(facts, zarr_format)
        if zarr_format == 2:
            meta = array_v2(document, attributes)
        else:
            document.pop("attributes", None)
            if attributes:
                document["attributes"] = attributes
            meta = array_v3(document)
    except (ArgumentError, StoreError, ValueError) as error:
        raise ArgumentError(f"{where} cannot be made as Zarr {zarr_format}: {error}") from None
    if meta.pipeline is not None:
        size = meta.pipeline.dtype.itemsize
        for extent in meta.chunk:
            size *= extent
        if size > meta.pipeline.most_input:
            raise ArgumentError(
                f"{where} cannot be made: its chunks have {size} bytes, its codecs ({', '.join(meta.pipeline.words)}) "
                f"take at most {meta.pipeline.most_input}"
            )
    return document, attributes, meta


def losses_of(tree: Tree, zarr_format: int) -> list[str]:
    """What a Zarr store cannot hold of a tree, a phrase each."""
    return _losses(tree, zarr_format, "")


def can_hold(facts: ArrayFacts, zarr_format: int) -> bool:
    """Whether an array can be made at all."""
    if facts.dtype is None:
        return can_copy(facts, zarr_format)
    return zarr_format == 2 or not _type_lost(facts)


def is_name(name: str) -> bool:
    """Whether a group or an array may be called so."""
    try:
        name.encode()  # metadata in one place has names as text
        return len(parts_of(name)) == 1 and name not in _RESERVED
    except (StoreError, UnicodeEncodeError):
        return False


def _document_2(facts: ArrayFacts) -> dict[str, Any]:
    if facts.shards is not None:
        raise ArgumentError("shards need Zarr 3")
    element = stored_element(facts, 2)
    assert element.dtype is not None
    chunk = _chunk(facts)
    order = _order(facts)
    own = _own_pipeline(facts, element, chunk, 2)
    if facts.dtype is not None and _all_named(facts):
        facts = replace(facts, fill=fill_of_format_2(facts.attributes, facts.dtype, facts.fill))
    fill = stored_fill(facts, element)
    return {
        "zarr_format": 2,
        "shape": list(facts.shape),
        "chunks": list(chunk),
        "dtype": type_v2(element.dtype, element.name),
        "order": order,
        "fill_value": None if fill is None else fill_json(fill, element, 2),
        **(own if own is not None else format_2(configs_of(facts.codecs, element.dtype.itemsize))),
        "dimension_separator": facts.own.get("zarr.separator", "."),
    }


def _document_3(facts: ArrayFacts) -> dict[str, Any]:
    element = stored_element(facts, 3)
    dtype = element.dtype
    assert dtype is not None
    chunk = _chunk(facts)
    file = chunk if facts.shards is None else tuple(facts.shards)
    fill = stored_fill(facts, element)
    fill_value = fill_json(bytes(dtype.itemsize) if fill is None else fill, element, 3)
    own = _own_pipeline(facts, element, chunk, 3)
    if own is not None:
        codecs = own["codecs"]
    else:
        codecs = format_3(configs_of(facts.codecs, dtype.itemsize), _endian(element), dtype.itemsize)
        if _order(facts) == "F" and len(facts.shape) > 1:
            axes = list(range(len(facts.shape)))[::-1]
            codecs.insert(0, {"name": "transpose", "configuration": {"order": axes}})
    if facts.shards is not None:
        codecs = [
            {
                "name": SHARDING,
                "configuration": {
                    "chunk_shape": list(chunk),
                    "codecs": codecs,
                    "index_codecs": facts.own.get("zarr.index_codecs", list(DEFAULT_INDEX_CODECS)),
                    "index_location": facts.own.get("zarr.index_location", "end"),
                },
            }
        ]
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(facts.shape),
        "data_type": type_v3(dtype, element.name),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(file)}},
        "chunk_key_encoding": facts.own.get("zarr.chunk_key_encoding", {"name": "default"}),
        "fill_value": fill_value,
        "codecs": codecs,
    }
    if facts.names is not None:
        document["dimension_names"] = list(facts.names)
    return document


def _own_pipeline(
    facts: ArrayFacts, element: Element, chunk: tuple[int, ...], zarr_format: int
) -> dict[str, Any] | None:
    """The codecs that a source in Zarr has, where just these are wanted; None where others are."""
    own = facts.own
    dtype = element.dtype
    assert dtype is not None
    if own.get("zarr.dtype") != dtype_text(dtype):
        return None
    fill = facts.fill if facts.fill is not None else bytes(dtype.itemsize)
    try:
        if own["zarr.format"] == 2:
            filters, compressor = own["zarr.filters"], own["zarr.compressor"]
            pipeline = pipeline_v2(dtype, chunk, facts.order, filters, compressor)
            configs: list[dict[str, Any]] | None = configs_of_v2(filters, compressor)
        else:
            pipeline = pipeline_v3(element, chunk, own["zarr.codecs"], fill_json(fill, element, 3))
            configs = configs_of_v3(own["zarr.codecs"])
            if len(chunk) > 1 and (facts.order == "F") != (pipeline.axes == tuple(range(len(chunk)))[::-1]):
                return None
    except StoreError:
        return None
    if pipeline.words != tuple(facts.codecs):
        return None
    if own["zarr.format"] == zarr_format:
        return {"codecs": own["zarr.codecs"]} if zarr_format == 3 else {"filters": filters, "compressor": compressor}
    if configs is None:
        return None
    if zarr_format == 2:
        return format_2(configs)
    if _order(facts) == "F" and len(facts.shape) > 1:
        return None
    return {"codecs": format_3(configs, _endian(element), dtype.itemsize)}


def _endian(element: Element) -> str:
    assert element.dtype is not None
    if element.name:
        return "little" if element.dtype.itemsize > 1 else ""
    return byte_order(element.dtype)


def _order(facts: ArrayFacts) -> str:
    if facts.order not in ("C", "F"):
        raise ArgumentError(f"the order {short(facts.order)} is neither C nor F")
    return facts.order


def _chunk(facts: ArrayFacts) -> tuple[int, ...]:
    """The chunk shape that is wanted, or a suitable one."""
    assert facts.dtype is not None
    for what, extents in (("chunks", facts.chunks), ("shards", facts.shards)):
        if extents is not None and (len(extents) != len(facts.shape) or any(extent < 1 for extent in extents)):
            raise ArgumentError(
                f"the {what} {'x'.join(map(str, extents))} do not fit an array of {len(facts.shape)} dimensions; give "
                "an extent of at least 1 for each"
            )
    if facts.chunks is not None:
        chunk = tuple(facts.chunks)
        if facts.shards is not None and any(shard % part for shard, part in zip(facts.shards, chunk)):
            raise ArgumentError(
                f"the shards {facts.shards} are no whole number of chunks {chunk} in each dimension; say chunks that "
                "divide them"
            )
        return chunk
    if facts.shards is None:
        return suitable_chunk(facts.shape, facts.dtype.itemsize)
    return chunk_of_shards(facts.shards, facts.dtype.itemsize)


def chunk_of_shards(shards: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """A suitable chunk shape of which shards have a whole number."""
    return tuple(_largest_divisor(shard, part) for shard, part in zip(shards, suitable_chunk(shards, itemsize)))


def _largest_divisor(number: int, most: int) -> int:
    small = (n for n in range(1, int(number**0.5) + 1) if number % n == 0)
    return max(d for n in small for d in (n, number // n) if d <= most)


def _attributes(facts: ArrayFacts, zarr_format: int) -> dict[str, Any]:
    attributes = json_attributes(facts.attributes)
    if facts.dtype is not None and zarr_format == 3:
        missing_to_format_3(attributes, facts.dtype)
    if zarr_format == 2 and _all_named(facts):
        if facts.dtype is not None:
            missing_to_format_2(attributes, facts.dtype)
        attributes[NAMES] = list(facts.names or ())
    return attributes


def _all_named(facts: ArrayFacts) -> bool:
    return facts.names is not None and all(name is not None for name in facts.names)


def _losses(tree: Tree, zarr_format: int, path: str) -> list[str]:
    called = path or _ROOT
    lost = [f"the attribute {name!r} of {called}" for name in lost_attributes(tree.attributes)]
    if isinstance(tree, ArrayFacts):
        return lost + _losses_of_array(tree, zarr_format, called)
    for name, child in tree.children.items():
        below = f"{path}/{name}" if path else name
        if isinstance(child, LinkFacts):
            lost.append(f"the {child.kind} link {below} to {child.target}")
        elif not is_name(name):
            what = "array" if isinstance(child, ArrayFacts) else "group"
            lost.append(f"the {what} {below}, whose name cannot be a key")
        else:
            lost += _losses(child, zarr_format, below)
    used = {name for _, array in tree.arrays() for name in array.names or ()}
    lost += [f"the dimension {name!r} of {called}, which no array has" for name in tree.dimensions if name not in used]
    return lost


def _type_lost(facts: ArrayFacts) -> str:
    """Why Zarr 3 cannot hold the elements of an array; "" where it can."""
    element = stored_element(facts, 3)
    assert element.dtype is not None
    try:
        type_v3(element.dtype, element.name)
    except ValueError as error:
        return str(error)
    return ""


def _losses_of_array(facts: ArrayFacts, zarr_format: int, called: str) -> list[str]:
    array = "the array" if called == _ROOT else f"the array {called}"
    if facts.dtype is None:
        return [f"{array}, whose elements are of the type {facts.type_name}"]
    element = stored_element(facts, zarr_format)
    assert element.dtype is not None
    lost = list(losses_of_values(facts.dtype, f"of {called}"))
    if zarr_format == 3 and _type_lost(facts):
        return [f"{array}, for {_type_lost(facts)}"]
    if facts.type_name and not element.name:
        lost.append(f"the type {facts.type_name} of {called}")
    fill = stored_fill(facts, element)
    if fill is not None and fill_bytes(fill_json(fill, element, zarr_format), element) != fill:
        lost.append(f"the fill value of {called}")
    if zarr_format == 2 and facts.names is not None and not _all_named(facts) and any(facts.names):
        lost.append(f"the dimension names of {called}")
    return lost
