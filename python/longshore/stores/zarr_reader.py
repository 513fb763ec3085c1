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
from .array import ArrayReader, Index, LinkFacts, StoreReader
from .keys import Keys, LocalKeys, UrlKeys, open_keys
from .known_files import KnownFiles
from .object_places import changed, refused
from .zarr_json import MAX_JSON_BYTES
from .zarr_meta import ArrayMeta, key_below
from .zarr_shards import check_entry
from .zarr_tree import GroupNode, Node, TreeReader, digest_of, facts_of

_INDEX_CACHE_BYTES = 8 << 20
_MOST_OF_UNKNOWN = 1 << 30  # bytes of a chunk whose elements nobody here can size
_MOST_FILES = 200_000
_MOST_LISTED = 20_000
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
            self._known: dict[str, KnownFiles] = {}
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
        below = key_below(self._inner, path) if path else self._inner
        found = ZarrArrayReader(self._keys, below, node, self._indices, self._known.get(below))
        own = {key: digest for key, digest in self._documents.items() if key in _documents_of(below)}
        above = (key for key in self._documents if below.startswith("".join(key.rpartition("/")[:2])))
        found.documents = own or {key: self._documents[key] for key in above}
        return found

    def fingerprint(self) -> str:
        """Of a folder it differs once any file below what is read has been written again, added or removed: metadata,
        chunks and shards, also those that a reader has not come to yet. Inode, size and times are compared, and no
        bytes: what is written again in place within one tick of the file system's clock, and keeps its size, is not
        seen. Below a URL it is the same of what its server lists, where that is not more than some ten thousand files;
        else, and where a server lists nothing, only the metadata documents are looked at."""
        digest = hashlib.sha256()
        for key in self._documents:
            digest.update(f"{key}\0{self._keys.stamp(key)}\0".encode())
        if isinstance(self._keys, LocalKeys):
            digest.update(_stamp_of_files(self._keys, self._inner))
        elif isinstance(self._keys, UrlKeys) and _most_files(self._node) <= _MOST_LISTED:
            for key, stamp in sorted(self._keys.stamps(self._inner).items()):
                digest.update(f"{key}\0{stamp}\0".encode(errors="replace"))
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
            known = KnownFiles()
            for key, entry in self._keys.files(below):
                status = entry.stat(follow_symlinks=False)
                known.note(key, status)
                if entry.name not in ("zarr.json", ".zarray", ".zattrs"):
                    total += status.st_size
                    self._left -= 1
                    if self._left <= 0:
                        break
            else:
                self._known[below] = known.noted()
                return total
        files = meta.files
        if not math.prod(files.counts):
            return 0
        chance = random.Random(0)  # the same every time
        for _ in range(_SAMPLE):
            index = tuple(chance.randrange(count) for count in files.counts)
            total += self._keys.size(key_below(below, meta.key(index))) or 0
        return total * math.prod(files.counts) // _SAMPLE


def _most_files(node: Node | LinkFacts) -> int:
    """How many files of chunks or shards there can be."""
    if isinstance(node, GroupNode):
        return sum(map(_most_files, node.children.values()))
    return math.prod(node.files.counts) if isinstance(node, ArrayMeta) else 0


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

    def __init__(
        self,
        keys: Keys,
        path: str,
        meta: ArrayMeta,
        indices: _IndexCache | None = None,
        known: KnownFiles | None = None,
    ) -> None:
        """`known`: what the array's files were when the store was opened."""
        self.where = keys.where(path)
        self.facts = meta.facts()
        self.grid = meta.grid
        self._store = keys
        self._keys = keys.of_known(known) if known is not None and isinstance(keys, LocalKeys) else keys
        self.held_bytes = 0 if known is None else known.nbytes
        self.thread_bytes = _between(meta)
        self.documents: dict[str, bytes] = {}
        """What tells of the array, and digests of what that held when the store was opened."""
        self._own = [key for key in _documents_of(path) if known is not None and known.has(key)]
        self._checked = False
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

    def check(self) -> None:
        """Of a folder whose files were noted every chunk has been looked at, and what tells of the array is now. At a
        URL that is looked at once, for it takes a request; chunks that are written again there are not seen."""
        if isinstance(self._keys, LocalKeys):
            for key in self._own:
                self._keys.check(key)
        if not self._checked:
            for key, digest in self.documents.items():
                document = self._store.get(key, MAX_JSON_BYTES)
                if document is None or digest_of(document) != digest:
                    raise changed(self._store.where(key))
            self._checked = True

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


def _between(meta: ArrayMeta) -> int:
    """What a thread holds beside a chunk, stored and decoded, while it decodes that: what one codec has left to the
    next."""
    if meta.pipeline is None or meta.element.dtype is None:
        return 0
    most = 2 if meta.pipeline.words else 1  # without words it is told as one that is stored as it is
    return math.prod(meta.chunk) * meta.element.dtype.itemsize if len(meta.pipeline.steps) >= most else 0


def _documents_of(path: str) -> tuple[str, str]:
    """The keys of what may tell of an array."""
    return key_below(path, "zarr.json"), key_below(path, ".zarray")


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
