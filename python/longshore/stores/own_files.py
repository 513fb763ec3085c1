"""What tells the files of a store from those of others, which no run may remove."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from ..errors import StoreError
from .safetensors_header import INDEX, INDEX_SUFFIX, parse_index

STORES_ROOTS = ("zarr.json", ".zgroup", ".zarray")
"""The documents that make a folder a group or an array of Zarr's."""
LONGEST_DOCUMENT = 100_000_000
_BEING_WRITTEN = re.compile(r"\.(.+)\.[0-9a-f]{16}\.partial")
_MOUNTS = "/proc/self/mountinfo"
_ESCAPED = re.compile(rb"\\([0-7]{3})")  # as spaces in paths are there
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")


class _Node(NamedTuple):
    """What the documents of a folder of a Zarr store say."""

    documents: set[str]
    is_group: bool
    chunks: list[tuple[str, str, list[int]]]
    """Of an array: what the keys of chunks begin with, what separates their numbers, and how many there are."""


class OwnFiles:
    """Which files are those of the Zarr store, or of the checkpoint, in a folder or at a URL: what it says of itself
    tells. Names are those below it, with "/"."""

    def __init__(self, names: Collection[str], read: Callable[[str], bytes | None]) -> None:
        """`names`: what there is, right in it at least. `read` has what a file holds; None where there is none."""
        self._read = read
        self._nodes: dict[str, _Node] = {}
        self._of_zarr = any(name in STORES_ROOTS for name in names)
        indices = sorted(name for name in names if "/" not in name and name.endswith(INDEX_SUFFIX))
        self._others: set[str] = set()
        for index in [INDEX] if INDEX in indices else indices if len(indices) == 1 and not self._of_zarr else []:
            with contextlib.suppress(StoreError):
                self._others = {index, *parse_index(read(index) or b"")[0].values()}

    def has(self, name: str) -> bool:
        """Whether a file is one of the store's."""
        if not self._of_zarr:
            return name in self._others
        node, (*folders, base) = self._node(""), name.split("/")
        base = found[1] if (found := _BEING_WRITTEN.fullmatch(base)) else base
        for depth in range(1, len(folders) + 1):
            if not node.is_group:
                return _is_chunk("/".join([*folders[depth - 1 :], base]), node)
            node = self._node("/".join(folders[:depth]))
        return base in node.documents or _is_chunk(base, node)

    def _node(self, folder: str) -> _Node:
        if folder not in self._nodes:
            told = {name: self._document(f"{folder}/{name}".lstrip("/")) for name in STORES_ROOTS}
            v3, group, array = (told[name] for name in STORES_ROOTS)
            is_group = group is not None or (v3 is not None and v3.get("node_type") == "group")
            documents = {name for name, document in told.items() if document is not None}
            if group is not None or array is not None:
                documents.add(".zattrs")
            if group is not None:
                documents.add(".zmetadata")
            chunks = [] if array is None else _chunks_of(array, "", array.get("dimension_separator", "."), ("chunks",))
            if v3 is not None and v3.get("node_type") == "array":
                how = v3.get("chunk_key_encoding")
                how = {"name": how} if isinstance(how, str) else how if isinstance(how, dict) else {}
                how = {**how, **_object(how.get("configuration"))}
                prefix, usual = ("", ".") if how.get("name") == "v2" else ("c", "/")
                if how.get("name") in ("default", "v2"):
                    regular = ("chunk_grid", "configuration", "chunk_shape")
                    chunks += _chunks_of(v3, prefix, how.get("separator", usual), regular)
            self._nodes[folder] = _Node(documents, is_group, chunks)
        return self._nodes[folder]

    def _document(self, name: str) -> dict[str, Any] | None:
        try:
            document = json.loads(self._read(name) or b"")
        except (ValueError, RecursionError):
            return None
        if name.endswith("zarr.json"):
            return document if _object(document).get("node_type") in ("array", "group") else None
        return document if _object(document).get("zarr_format") == 2 else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _chunks_of(
    array: dict[str, Any], prefix: str, separator: Any, where: tuple[str, ...]
) -> list[tuple[str, str, list[int]]]:
    """What chunks an array has, by the document that says so; [] where it says nothing that can be true."""
    shape, extents = array.get("shape"), array.get(where[0])
    for word in where[1:]:
        extents = _object(extents).get(word)
    if separator not in (".", "/") or not isinstance(shape, list) or not isinstance(extents, list):
        return []
    sane = all(type(n) is int and n >= 0 for n in [*shape, *extents]) and len(shape) == len(extents)
    return [(prefix, separator, [-(-n // max(1, k)) for n, k in zip(shape, extents)])] if sane else []


def _is_chunk(name: str, node: _Node) -> bool:
    """Whether an array has a chunk of this key, or a shard that is being written beside its index."""
    name = name.removesuffix(".index")
    for prefix, separator, counts in node.chunks:
        words = name.split(separator)
        if not counts:
            if name == (prefix or "0"):
                return True
            continue
        if prefix and words.pop(0) != prefix:
            continue
        if len(words) == len(counts) and all(_NUMBER.fullmatch(w) and int(w) < n for w, n in zip(words, counts)):
            return True
    return False


def read_document(path: str) -> bytes | None:
    """What a plain file holds that is not too large; None where there is none."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            return file.read() if stat.S_ISREG(status.st_mode) and status.st_size <= LONGEST_DOCUMENT else None
    except OSError:
        return None


def mounted(path: str) -> Iterator[str]:
    """Where in a folder something is mounted: other file systems, or files and folders from elsewhere in the same one,
    which the system lists."""
    root = os.path.realpath(path)
    yield from (place[len(root) + 1 :] for place in _mount_points() if place.startswith(root.rstrip("/") + "/"))
    system = os.lstat(path).st_dev
    for folder, folders, _ in os.walk(path):
        for name in folders:
            if os.lstat(os.path.join(folder, name)).st_dev != system:
                yield os.path.relpath(os.path.join(folder, name), path)


def _mount_points() -> list[str]:
    """Where anything is mounted that this process can reach; [] where the system does not list it."""
    try:
        with open(_MOUNTS, "rb") as file:
            places = [line.split(b" ")[4] for line in file]
    except (OSError, IndexError):
        return []
    plain = (_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), place) for place in places)
    return [os.fsdecode(place) for place in plain]


def bytes_on_disk(path: str) -> int:
    """What a file takes, or a folder with all that is in it."""
    found = [path, *(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)]
    total = 0
    for each in found:
        with contextlib.suppress(OSError):
            total += 512 * os.lstat(each).st_blocks
    return total
