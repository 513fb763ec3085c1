"""What the metadata documents of a Zarr array say, checked: everything that reading and writing its chunks needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._words import short
from ..errors import StoreError
from .array import ArrayFacts, Grid, Index
from .npy import check_shape, without_metadata
from .zarr_codecs import extents_of, named, pipeline_v2, pipeline_v3, sharding_of
from .zarr_fill import fill_bytes
from .zarr_json import attributes_of
from .zarr_pipeline import Pipeline
from .zarr_shards import ShardIndex
from .zarr_types import Element, element_v2, element_v3
from .zarr_xarray import NAMES, missing_of_format_2, missing_of_format_3, take_names

_KEYS_V3 = (
    *("zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"),
    *("attributes", "dimension_names", "storage_transformers"),
)


@dataclass(frozen=True)
class ArrayMeta:
    """An array of a Zarr store."""

    zarr_format: int
    shape: tuple[int, ...]
    element: Element
    file: tuple[int, ...]
    """Extents of what lies in one file: a chunk, or a shard."""
    chunk: tuple[int, ...]
    """Extents of what is read and written at once."""
    pipeline: Pipeline | None
    """Of a chunk; None where the elements are of a type that cannot be moved."""
    index: ShardIndex | None
    """Where files are shards."""
    fill: bytes | None
    prefix: str
    """What the keys of chunks start with: "c", or nothing."""
    separator: str
    names: tuple[str | None, ...] | None
    attributes: dict[str, Any]
    order: str
    own: dict[str, Any]

    @property
    def grid(self) -> Grid:
        return Grid(self.shape, self.chunk)

    @property
    def files(self) -> Grid:
        """The grid of the files."""
        return Grid(self.shape, self.file)

    def key(self, index: Index) -> str:
        """The key of a file, below the array."""
        words = [*([self.prefix] if self.prefix else ()), *map(str, index)]
        return self.separator.join(words) or "0"

    def facts(self, stored_bytes: int | None = None) -> ArrayFacts:
        return ArrayFacts(
            shape=self.shape,
            dtype=self.element.dtype,
            chunks=self.chunk,
            shards=self.file if self.index is not None else None,
            codecs=self.pipeline.words if self.pipeline is not None else (),
            fill=self.fill,
            names=self.names,
            attributes=self.attributes,
            order=self.order,
            type_name=self.element.name,
            own=self.own,
            stored_bytes=stored_bytes,
        )


def array_v2(zarray: dict[str, Any], zattrs: dict[str, Any] | None) -> ArrayMeta:
    """From a `.zarray`, and from the `.zattrs` beside it."""
    _check_format(zarray, 2)
    _need(zarray, "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters")
    element = element_v2(zarray["dtype"])
    shape = check_shape(zarray["shape"], element.dtype.itemsize if element.dtype is not None else 1)
    chunks = zarray["chunks"]
    if isinstance(chunks, list) and len(chunks) == len(shape):
        chunks = [1 if chunk == 0 == extent else chunk for chunk, extent in zip(chunks, shape)]
    chunk = extents_of(chunks, "chunk shape", len(shape))
    order = zarray["order"]
    if order not in ("C", "F"):
        raise StoreError(f'"order" is {short(order)}, which is neither C nor F')
    separator = _separator(zarray.get("dimension_separator", "."))
    attributes = dict(attributes_of(zattrs, "its .zattrs"))
    own = {"zarr.format": 2, "zarr.separator": separator}
    pipeline = None
    if element.dtype is None:
        own["zarr.document"] = zarray
    else:
        filters, compressor = zarray["filters"], zarray["compressor"]
        pipeline = pipeline_v2(element.dtype, chunk, order, filters, compressor)
        own |= {"zarr.filters": filters, "zarr.compressor": compressor, "zarr.dtype": dtype_text(element.dtype)}
    fill = fill_bytes(zarray["fill_value"], element)
    names = take_names(attributes, len(shape))
    if names is not None:
        missing_of_format_2(attributes, element, fill)
    return ArrayMeta(
        zarr_format=2,
        shape=shape,
        element=element,
        file=chunk,
        chunk=chunk,
        pipeline=pipeline,
        index=None,
        fill=fill,
        prefix="",
        separator=separator,
        names=names,
        attributes=attributes,
        order=order,
        own=own,
    )


def array_v3(document: dict[str, Any]) -> ArrayMeta:
    """From a `zarr.json`."""
    _check_format(document, 3)
    if document.get("node_type") != "array":
        raise StoreError(f'"node_type" is {short(document.get("node_type"))}, not "array"')
    _need(document, "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs")
    for key, value in document.items():
        if key not in _KEYS_V3 and not (isinstance(value, dict) and value.get("must_understand") is False):
            raise StoreError(f"it has {short(key)}, which must be understood and is not")
    if document.get("storage_transformers"):
        raise StoreError("it has storage transformers, which are not supported")
    element = element_v3(document["data_type"])
    shape = check_shape(document["shape"], element.dtype.itemsize if element.dtype is not None else 1)
    grid, given = named(document["chunk_grid"])
    if grid != "regular":
        raise StoreError(f"its chunk grid is {short(grid)}; only regular ones are supported")
    chunks = given.get("chunk_shape")
    if isinstance(chunks, list) and len(chunks) == len(shape):
        chunks = [1 if chunk == 0 == extent else chunk for chunk, extent in zip(chunks, shape)]
    file = extents_of(chunks, "chunk shape", len(shape))
    prefix, separator = _key_encoding(document["chunk_key_encoding"])
    attributes = dict(attributes_of(document.get("attributes")))
    names = _names(document.get("dimension_names"), len(shape))
    if names is None or attributes.get(NAMES) == list(names):
        names = take_names(attributes, len(shape)) or names
    own: dict[str, Any] = {"zarr.format": 3, "zarr.chunk_key_encoding": document["chunk_key_encoding"]}
    chunk, order = file, "C"
    pipeline, index = None, None
    if element.dtype is None:
        own["zarr.document"] = document
    else:
        fill = document["fill_value"]
        if fill is None:
            raise StoreError("its fill value is null")
        codecs = document["codecs"]
        sharding = sharding_of(codecs, file)
        if sharding is not None:
            chunk, codecs, index = sharding.chunk, sharding.codecs, sharding.index
            own["zarr.index_codecs"] = sharding.index_codecs
            own["zarr.index_location"] = "end" if index.at_end else "start"
        pipeline = pipeline_v3(element, chunk, codecs, fill)
        own |= {"zarr.codecs": codecs, "zarr.dtype": dtype_text(pipeline.dtype)}
        element = Element(pipeline.dtype, element.name)
        backwards = pipeline.axes == tuple(range(len(shape)))[::-1]
        order = "F" if len(shape) > 1 and backwards else "C"
        missing_of_format_3(attributes, element)
    return ArrayMeta(
        zarr_format=3,
        shape=shape,
        element=element,
        file=file,
        chunk=chunk,
        pipeline=pipeline,
        index=index,
        fill=fill_bytes(document["fill_value"], element),
        prefix=prefix,
        separator=separator,
        names=names,
        attributes=attributes,
        order=order,
        own=own,
    )


def group_v3(document: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a group, from a `zarr.json`."""
    _check_format(document, 3)
    if document.get("node_type") != "group":
        raise StoreError(f'"node_type" is {short(document.get("node_type"))}, neither "array" nor "group"')
    return attributes_of(document.get("attributes"))


def group_v2(zgroup: dict[str, Any], zattrs: dict[str, Any] | None) -> dict[str, Any]:
    """The attributes of a group, from a `.zgroup` and the `.zattrs` beside it."""
    _check_format(zgroup, 2)
    return attributes_of(zattrs, "its .zattrs")


def _check_format(document: dict[str, Any], wanted: int) -> None:
    found = document.get("zarr_format")
    if type(found) is not int or found != wanted:
        raise StoreError(f'"zarr_format" is {short(found)}, not {wanted}')


def _need(document: dict[str, Any], *keys: str) -> None:
    for key in keys:
        if key not in document:
            raise StoreError(f'"{key}" is missing')


def _separator(node: Any) -> str:
    if node not in (".", "/"):
        raise StoreError(f"the separator in its keys is {short(node)}, which is neither . nor /")
    return node


def _key_encoding(node: Any) -> tuple[str, str]:
    name, given = named(node)
    if name not in ("default", "v2"):
        raise StoreError(f"its chunk key encoding is {short(name)}, which is neither default nor v2")
    if isinstance(node, dict) and "separator" in node:  # so zarr-python takes it too
        given = {"separator": node["separator"], **given}
    return (
        ("c", _separator(given.get("separator", "/")))
        if name == "default"
        else (
            "",
            _separator(given.get("separator", ".")),
        )
    )


def _names(node: Any, dimensions: int) -> tuple[str | None, ...] | None:
    if node is None:
        return None
    if not isinstance(node, list) or len(node) != dimensions:
        raise StoreError(f"its dimension names are {short(node)}, not a list of {dimensions}")
    if not all(name is None or isinstance(name, str) for name in node):
        raise StoreError(f"its dimension names are {short(node)}; each must be text, or null")
    return tuple(node)


def dtype_text(dtype: np.dtype) -> str:
    """A dtype in words that differ for all that differ, metadata aside."""
    return str(np.lib.format.dtype_to_descr(without_metadata(dtype)))


def key_below(path: str, key: str) -> str:
    """A key below a node."""
    return f"{path}/{key}" if path else key
