"""Zarr stores, formats 2 and 3, written chunk by chunk."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import ArgumentError, StoreError
from .array import ArrayFacts, ArrayWriter, GroupFacts, Index, StoreWriter, Tree, without_holes
from .boxes import must_see
from .keys import Keys, LocalKeys, open_keys
from .zarr_build import array_document, can_hold, is_name, losses_of
from .zarr_json import dump_json, json_attributes
from .zarr_meta import ArrayMeta, key_below
from .zarr_reader import ZarrArrayReader
from .zarr_shard_files import ShardFiles, side_key

_MOST_PENDING = 512


class ZarrWriter(StoreWriter):
    """A Zarr store that is being made in a folder, or below a URL. `create` must be called in every process that
    writes, and again to go on where a killed run was; `finish` in one, once all have written."""

    folder = True

    def __init__(self, place: str, zarr_format: int = 3) -> None:
        if zarr_format not in (2, 3):
            raise ArgumentError(f"the Zarr format {zarr_format!r} is neither 2 nor 3")
        self._place, self._zarr_format = place, zarr_format
        self.format = f"Zarr {zarr_format}"
        self._keys = open_keys(place)
        self._arrays: dict[str, ZarrArrayWriter] = {}
        self._documents: dict[str, dict[str, Any]] = {}
        self._is_group = False
        self._pending = _Pending(self._keys)

    @staticmethod
    def losses(tree: Tree, zarr_format: int = 3) -> list[str]:
        return losses_of(tree, zarr_format)

    @staticmethod
    def holds(facts: ArrayFacts, zarr_format: int = 3, path: str = "") -> bool:
        """Whether an array can be made with its elements. `path`: its own, of names that must be keys."""
        names = path.split("/") if path else []
        return facts.dtype is not None and can_hold(facts, zarr_format) and all(map(is_name, names))

    def create(self, tree: Tree) -> None:
        self._is_group = isinstance(tree, GroupFacts)
        self._make(tree, "")
        for key, document in self._documents.items():
            # Below a URL nothing can be renamed, so the root's document comes last: without it there is no store.
            if "/" in key or isinstance(self._keys, LocalKeys):
                self._put(key, document)

    def array(self, path: str = "") -> ZarrArrayWriter:
        try:
            return self._arrays[path]
        except KeyError:
            raise ArgumentError(f"{self._keys.name} has no array {path!r} that was made") from None

    def join(self, path: str, facts: ArrayFacts) -> ZarrArrayWriter:
        """An array that `create` has made in another process, as these facts say, for a process that writes some of its
        chunks and nothing else."""
        meta = array_document(facts, self._zarr_format, self._keys.where(path))[2]
        return ZarrArrayWriter(self._keys, path, meta, facts.dtype, self._pending.add)

    def shared(self, path: str, facts: ArrayFacts) -> ZarrTarget | None:
        return ZarrTarget(self._place, path, self._zarr_format, facts) if isinstance(self._keys, LocalKeys) else None

    def sync(self) -> None:
        self._pending.sync()

    def sync_of_all(self) -> None:
        if isinstance(self._keys, LocalKeys):
            self._keys.sync_all()

    def finish(self) -> None:
        shards = [array.shards for array in self._arrays.values() if array.shards is not None]
        for files in shards:
            files.close()
        if not isinstance(self._keys, LocalKeys):
            for key, document in self._documents.items():
                self._put(key, document)
        if self._is_group:
            self._put(*self._consolidated())
        if isinstance(self._keys, LocalKeys):
            self._keys.remove_partial()
            self._keys.sync_all()
            for files in shards:
                files.forget()
            if shards:
                self._keys.sync_all()
        self.close()

    def close(self) -> None:
        self._keys.close()

    def _make(self, tree: Tree, path: str) -> None:
        if isinstance(tree, ArrayFacts):
            self._make_array(tree, path)
            return
        attributes = json_attributes(tree.attributes)
        if self._zarr_format == 2:
            self._documents[key_below(path, ".zgroup")] = {"zarr_format": 2}
            self._add_attributes(path, attributes)
        else:
            document: dict[str, Any] = {"zarr_format": 3, "node_type": "group"}
            if attributes:
                document["attributes"] = attributes
            self._documents[key_below(path, "zarr.json")] = document
        for name, child in tree.children.items():
            if isinstance(child, (ArrayFacts, GroupFacts)) and is_name(name):
                self._make(child, key_below(path, name))

    def _make_array(self, facts: ArrayFacts, path: str) -> None:
        if not can_hold(facts, self._zarr_format):
            return
        document, attributes, meta = array_document(facts, self._zarr_format, self._keys.where(path))
        if self._zarr_format == 2:
            self._documents[key_below(path, ".zarray")] = document
            self._add_attributes(path, attributes)
        else:
            self._documents[key_below(path, "zarr.json")] = document
        self._arrays[path] = ZarrArrayWriter(self._keys, path, meta, facts.dtype, self._pending.add)

    def _add_attributes(self, path: str, attributes: Mapping[str, Any]) -> None:
        if attributes:
            self._documents[key_below(path, ".zattrs")] = dict(attributes)

    def _put(self, key: str, document: Mapping[str, Any]) -> None:
        """Writes a document, unless it is there as it should be."""
        raw = dump_json(document)
        if self._keys.get(key, 1 << 30) != raw:
            self._keys.put(key, raw)
            self._pending.add(key)

    def _consolidated(self) -> tuple[str, dict[str, Any]]:
        """All documents in one."""
        documents = dict(sorted(self._documents.items(), key=lambda item: (item[0].count("/"), item[0])))
        if self._zarr_format == 2:
            return ".zmetadata", {"zarr_consolidated_format": 1, "metadata": documents}
        root = documents.pop("zarr.json")
        entries = {key.removesuffix("/zarr.json"): document for key, document in documents.items()}
        consolidated = {"kind": "inline", "must_understand": False, "metadata": entries}
        return "zarr.json", {**root, "consolidated_metadata": consolidated}


@dataclass(frozen=True)
class ZarrTarget:
    """An array of a Zarr store in a folder, which has been made, for another process that writes chunks of it."""

    folder: str
    path: str
    zarr_format: int
    facts: ArrayFacts

    @property
    def where(self) -> str:
        return os.path.join(self.folder, self.path) if self.path else self.folder

    @contextmanager
    def open(self) -> Iterator[ArrayWriter]:
        must_see(self.folder)
        with closing(ZarrWriter(self.folder, self.zarr_format)) as store:
            yield store.join(self.path, self.facts)
            store.sync()


class ZarrArrayWriter(ArrayWriter):
    """An array of a Zarr store that is being made."""

    sparse = True

    def __init__(
        self, keys: Keys, path: str, meta: ArrayMeta, dtype: np.dtype | None, written: Callable[[str], None]
    ) -> None:
        self.where = keys.where(path)
        self._meta = meta
        self._stored_dtype = meta.element.dtype
        fill = meta.fill
        if dtype is not None and dtype != self._stored_dtype and fill is not None:
            fill = without_holes(np.frombuffer(fill, self._stored_dtype).astype(dtype)).tobytes()
        self.facts = replace(meta.facts(), dtype=dtype, fill=fill)
        self.grid = meta.grid
        self._keys = keys
        self._path = path
        self._written = written
        self.shards: ShardFiles | None = None
        if meta.pipeline is not None:
            meta.pipeline.ready()
        if meta.index is not None:
            meta.index.ready()
            if not isinstance(keys, LocalKeys):
                raise ArgumentError(f"{self.where} cannot be written in shards: below a URL nothing can be appended")
            self.shards = ShardFiles(keys, path, meta.index)

    def encode(self, index: Index, chunk: np.ndarray, *, at_once: bool = False) -> Any:
        if self._meta.pipeline is None:
            raise StoreError(f"{self.where} has elements of the type {self.facts.type_name!r}, which cannot be moved")
        stored = chunk if chunk.dtype == self._stored_dtype else chunk.astype(self._stored_dtype)
        try:
            encoded = self._meta.pipeline.encode(stored)
        except StoreError as error:
            raise StoreError(f"{self.where}: chunk {list(index)} cannot be encoded: {error}") from None
        return encoded if at_once or not np.may_share_memory(encoded, chunk) else encoded.copy()

    def write(self, index: Index, stored: Any) -> int:
        shard, slot = self._shard(index)
        if self.shards is None:
            size = self._keys.put(shard, stored)
            self._written(shard)
            return size
        try:
            size = self.shards.write(shard, slot, stored)
        except OSError as error:
            text = f"cannot write chunk {list(index)} of {self.where}: {error.strerror or error}"
            raise StoreError(text) if error.errno is None else StoreError(error.errno, text) from None
        self._written(shard)
        self._written(side_key(shard))
        return size

    def read(self, index: Index) -> np.ndarray | None:
        shard, slot = self._shard(index)
        reader = ZarrArrayReader(self._keys, self._path, self._meta)
        if self.shards is not None and self.shards.is_unfinished(shard):
            assert self._meta.pipeline is not None
            stored = self.shards.read(shard, slot, self._meta.pipeline.most)
        else:
            stored = reader.read(index)
        if stored is None:
            return None
        chunk = reader.decode(index, stored)
        return chunk if chunk.dtype == self.facts.dtype else without_holes(chunk.astype(self.facts.dtype))

    def sync(self, index: Index) -> None:
        if self.shards is None and isinstance(self._keys, LocalKeys):
            self._keys.sync([self._shard(index)[0]])

    def _shard(self, index: Index) -> tuple[str, int]:
        """The key of the file that a chunk lies in, and its number there."""
        shards = self._meta.index
        if shards is None:
            return key_below(self._path, self._meta.key(index)), 0
        return key_below(self._path, self._meta.key(shards.shard(index))), shards.slot(index)


class _Pending:
    """What has been written and may not be on the disk yet: some keys by name, or, where they are many, everything."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._names: set[str] = set()
        self._many = False
        self._lock = threading.Lock()

    def add(self, key: str) -> None:
        with self._lock:
            if len(self._names) < _MOST_PENDING:
                self._names.add(key)
            else:
                self._many = True

    def sync(self) -> None:
        if not isinstance(self._keys, LocalKeys):
            return
        with self._lock:
            names, many = self._names, self._many
            self._names, self._many = set(), False
        try:
            if many:
                self._keys.sync_all()
            elif names:
                self._keys.sync(names)
        except BaseException:
            with self._lock:
                self._many = True
            raise
