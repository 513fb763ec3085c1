"""Zarr stores, formats 2 and 3, read chunk by chunk."""

from __future__ import annotations

import hashlib
import math
import os
import random
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from ..errors import ArgumentError, StoreError
from .array import ArrayReader, Index, StoreReader
from .keys import Keys, LocalKeys, open_keys
from .object_places import refused
from .zarr_meta import ArrayMeta, key_below
from .zarr_shards import check_entry
from .zarr_tree import GroupNode, TreeReader, facts_of

_INDEX_CACHE_BYTES = 8 << 20
_MOST_OF_UNKNOWN = 1 << 30  # bytes of a chunk whose elements nobody here can size
_MOST_FILES = 200_000
_SAMPLE = 1000


class ZarrReader(StoreReader):
    """A Zarr store in a folder or below a URL, or a group or an array in one."""

    def __init__(self, place: str, inner: str = "") -> None:
        inner = inner.strip("/")
        self._keys = open_keys(place)
        try:
            self.path = self._keys.where(inner)
            self._inner = inner
            reader = TreeReader(self._keys)
            self._node = reader.read(inner)
            self._documents = reader.documents
            self.format = f"Zarr {self._node.zarr_format}"
            self._left = _MOST_FILES
            self.tree = facts_of(self._node, self._stored_bytes)
        except BaseException:
            self._keys.close()
            raise
        self._indices = _IndexCache()

    def array(self, path: str = "") -> ZarrArrayReader:
        node: Any = self._node
        for part in path.split("/") if path else ():
            node = node.children.get(part) if isinstance(node, GroupNode) else None
        if not isinstance(node, ArrayMeta):
            raise ArgumentError(f"{self.path} has no array {path!r}" if path else f"{self.path} is no array")
        return ZarrArrayReader(self._keys, key_below(self._inner, path) if path else self._inner, node, self._indices)

    def fingerprint(self) -> str:
        """Of a folder it differs once any file below what is read has been written again, added or removed: metadata,
        chunks and shards, also those that a reader has not come to yet. Inode, size and times are compared, and no
        bytes: what is written again in place within one tick of the file system's clock, and keeps its size, is not
        seen. Of a URL only the metadata documents are looked at, so that chunks that are written again there are not
        seen."""
        digest = hashlib.sha256()
        for key in self._documents:
            digest.update(f"{key}\0{self._keys.stamp(key)}\0".encode())
        if isinstance(self._keys, LocalKeys):
            digest.update(_stamp_of_files(self._keys, self._inner))
        return digest.hexdigest()

    def close(self) -> None:
        self._keys.close()

    def _stored_bytes(self, path: str, meta: ArrayMeta) -> int | None:
        """What the files of an array take: counted, or where there are very many estimated from a sample of them."""
        if not isinstance(self._keys, LocalKeys):
            return None
        below = key_below(self._inner, path) if path else self._inner
        total = 0
        if self._left > 0:
            for _, entry in self._keys.files(below):
                if entry.name not in ("zarr.json", ".zarray", ".zattrs"):
                    total += entry.stat(follow_symlinks=False).st_size
                    self._left -= 1
                    if self._left <= 0:
                        break
            else:
                return total
        files = meta.files
        if not math.prod(files.counts):
            return 0
        chance = random.Random(0)  # the same every time
        for _ in range(_SAMPLE):
            index = tuple(chance.randrange(count) for count in files.counts)
            total += self._keys.size(key_below(below, meta.key(index))) or 0
        return total * math.prod(files.counts) // _SAMPLE


def _stamp_of_files(keys: LocalKeys, below: str) -> bytes:
    """Something that differs once a file below a key has been written again, added or removed. The files are summed up
    in any order, so that none of them is kept in memory."""
    total = 0
    for key, entry in keys.files(below):
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # it has been removed since its folder was listed
        except OSError as error:
            raise refused("look at", keys.where(key), error) from None
        said = f"{key}\0{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        total += int.from_bytes(hashlib.blake2b(os.fsencode(said), digest_size=32).digest(), "little")
    return (total % (1 << 256)).to_bytes(32, "little")


class ZarrArrayReader(ArrayReader):
    """An array of a Zarr store."""

    sparse = True

    def __init__(self, keys: Keys, path: str, meta: ArrayMeta, indices: _IndexCache | None = None) -> None:
        self.where = keys.where(path)
        self.facts = meta.facts()
        self.grid = meta.grid
        self._keys = keys
        self._path = path
        self._meta = meta
        self._indices = indices or _IndexCache()
        try:
            if meta.pipeline is not None:
                meta.pipeline.ready()
            if meta.index is not None:
                meta.index.ready()
        except StoreError as error:
            raise StoreError(f"{self.where} cannot be read: {error}") from None

    def read(self, index: Index) -> bytes | None:
        meta = self._meta
        most = _MOST_OF_UNKNOWN if meta.pipeline is None else meta.pipeline.most
        try:
            if meta.index is None:
                return self._keys.get(self._key(index), most)
            shard = self._key(index)
            entries = self._entries(shard)
            if entries is None:
                return None
            offset, length = (int(number) for number in entries.table[meta.index.slot(index)])
            if not check_entry(offset, length, entries.file_size, most):
                return None
            return self._keys.get_range(shard, offset, length)
        except StoreError as error:
            raise self._about(index, "read", error) from None

    def decode(self, index: Index, stored: Any) -> np.ndarray:
        if self._meta.pipeline is None:
            raise StoreError(f"{self.where} has elements of the type {self.facts.type_name!r}, which cannot be moved")
        try:
            chunk = self._meta.pipeline.decode(stored)
        except StoreError as error:
            raise self._about(index, "decoded", error) from None
        extents = self.grid.extents(index)
        return chunk if extents == chunk.shape else chunk[tuple(map(slice, extents))]

    def _key(self, index: Index) -> str:
        """The key of the file that a chunk lies in."""
        shards = self._meta.index
        return key_below(self._path, self._meta.key(index if shards is None else shards.shard(index)))

    def _about(self, index: Index, what: str, error: StoreError) -> StoreError:
        text = f"{self.where}: chunk {list(index)}, in {self._key(index)}, cannot be {what}: {error.strerror or error}"
        return StoreError(text) if error.errno is None else StoreError(error.errno, text)

    def _entries(self, shard: str) -> _Entries | None:
        entries = self._indices.get(shard)
        if entries is None:
            shards = self._meta.index
            assert shards is not None
            size = self._keys.size(shard)
            if size is None:
                return None
            raw = self._keys.get_range(shard, shards.start(size), shards.size)
            if raw is None:
                return None
            try:
                entries = _Entries(shards.decode(raw), size)
            except StoreError as error:
                raise StoreError(f"the index of its shard is damaged: {error}") from None
            self._indices.put(shard, entries)
        return entries


class _Entries:
    """The index of a shard."""

    def __init__(self, table: np.ndarray, file_size: int) -> None:
        self.table = table
        self.file_size = file_size


class _IndexCache:
    """The indices of the shards that were read last, in a bounded number of bytes."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, _Entries] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, shard: str) -> _Entries | None:
        with self._lock:
            entries = self._held.get(shard)
            if entries is not None:
                self._held.move_to_end(shard)
            return entries

    def put(self, shard: str, entries: _Entries) -> None:
        with self._lock:
            if shard in self._held:
                return
            self._held[shard] = entries
            self._bytes += entries.table.nbytes
            while self._bytes > _INDEX_CACHE_BYTES and len(self._held) > 1:
                self._bytes -= self._held.popitem(last=False)[1].table.nbytes
