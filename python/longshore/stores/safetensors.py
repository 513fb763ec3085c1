"""safetensors: a file of named tensors, or a folder of such files with an index, read and written natively."""

from __future__ import annotations

import difflib
import itertools
import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._words import short, size_in_bytes
from ..errors import ArgumentError, StoreError
from .array import ArrayFacts, GroupFacts, StoreReader, Tree
from .boxes import FileArray
from .dense import (
    DenseReader,
    DenseStoreWriter,
    DenseWriter,
    OneFile,
    SharedFiles,
    losses_of,
    losses_of_tree,
    make_file,
    no_codecs,
    nodes_of,
    remove_file,
)
from .object_places import is_url, without_password, without_query
from .publish import sync_folder
from .random_access import fingerprint_of, is_file, joined, open_file
from .safetensors_header import (
    BYTE_TYPES,
    FIELDS,
    INDEX,
    INDEX_SUFFIX,
    MAX_HEADER_BYTES,
    METADATA,
    NUMPY_TYPES,
    SUFFIX,
    SUFFIXES,
    TYPES,
    find_index,
    member_path,
    parse_index,
    read_header,
)

FILE_BYTES = "5 GB"
"""How large the files of a folder become."""
_TYPE_OF_NUMPY = {np.dtype(code): name for name, code in NUMPY_TYPES.items()}
_TYPE_OF_NAME = {name: name for name in BYTE_TYPES} | {other: name for name, (_, other) in BYTE_TYPES.items()}


# -- reading -----------------------------------------------------------------------------------------------------------


class SafetensorsReader(StoreReader):
    """A safetensors file, a folder with an index (or with one file), or the index itself; `inner`: one tensor of it."""

    format = "safetensors"

    def __init__(self, path: str, inner: str = "") -> None:
        self.path, self._inner, self._files = without_password(path), inner, SharedFiles()
        self._tensors: dict[str, tuple[ArrayFacts, FileArray]] = {}
        self.files = self._paths = list[str]()
        attributes: Mapping[str, Any]
        # A web server may have something for a folder's own name as well, so names in it are looked for first.
        may_be_folder = not without_query(path).endswith(SUFFIXES) if is_url(path) else os.path.isdir(path)
        found = find_index(path) if may_be_folder else None
        if found is not None:
            folder, name, file = path, found, member_path(path, found)
        elif may_be_folder and not (is_url(path) and is_file(path)):
            raise StoreError(f"{self.path} holds no safetensors file and no index of any")
        else:
            folder, name, file = *_split(path), path
        attributes = self._open_index(folder, name) if name.endswith(INDEX_SUFFIX) else self._open_file(file)
        self.tree: Tree
        if inner:
            self.tree = self._find(inner)[0]
        else:
            self.tree = GroupFacts({name: facts for name, (facts, _) in self._tensors.items()}, attributes)

    def _open_file(self, path: str, wanted: set[str] | None = None) -> dict[str, str]:
        """Takes in the tensors of a file, which must be those that its index says; returns its metadata."""
        self._paths.append(path)
        data, tensors, metadata, told = read_header(path)
        said = without_password(path)
        if wanted is not None:
            found = {tensor.name for tensor in tensors}
            for missing in sorted(wanted - found)[:1]:
                raise StoreError(f"{said} does not hold the tensor {short(missing)}, though its index says so")
            for more in sorted(found - wanted)[:1]:
                raise StoreError(f"{said} holds the tensor {short(more)}, of which its index does not say so")
        for tensor in tensors:
            facts = tensor.facts()
            itemsize = 1 if facts.dtype is None else facts.dtype.itemsize
            array = FileArray(path, data + tensor.start, tensor.shape, "C", itemsize, told)
            self._tensors[tensor.name] = facts, array
        return metadata

    def _open_index(self, folder: str, name: str) -> dict[str, Any]:
        path = joined(folder, name)
        self._paths.append(path)
        with open_file(path) as file:
            if file.size() > MAX_HEADER_BYTES:
                raise StoreError(f"{file.name} is larger than {MAX_HEADER_BYTES} bytes")
            raw = file.start(MAX_HEADER_BYTES)
        try:
            files, told = parse_index(raw)
        except StoreError as error:
            raise StoreError(f"{file.name} cannot be used: {error}") from None
        by_file: dict[str, set[str]] = {}
        for tensor, member in files.items():
            by_file.setdefault(member, set()).add(tensor)
        said = {member: self._open_file(member_path(folder, member), wanted) for member, wanted in by_file.items()}
        return _merged({**said, name: {key: value for key, value in told.items() if key != "total_size"}})

    def _find(self, name: str) -> tuple[ArrayFacts, FileArray]:
        found = self._tensors.get(name)
        if found is None:
            close = difflib.get_close_matches(name, list(itertools.islice(self._tensors, 2000)), 1)
            hint = f"; is it {close[0]!r}?" if close else f"; it has {len(self._tensors)} others"
            raise ArgumentError(f"{self.path} holds no tensor {short(name)}{hint}")
        return found

    def array(self, path: str = "") -> DenseReader:
        if self._inner and path:
            raise ArgumentError(f"{self._inner!r} is one tensor; there is no {path!r} in it")
        facts, array = self._find(self._inner or path)
        where = f"{self.path}::{self._inner or path}"
        if facts.dtype is None:
            raise StoreError(f"{where} has elements of type {facts.type_name}, which share bytes and cannot be moved")
        return DenseReader(where, facts, OneFile(array), self._files)

    def fingerprint(self) -> str:
        return fingerprint_of(self._paths)

    def close(self) -> None:
        self._files.close()


def _split(place: str) -> tuple[str, str]:
    """The folder of a file, and the file's name in it."""
    if not is_url(place):
        return os.path.split(place)
    path = without_query(place)
    folder, _, name = path.rpartition("/")
    return folder + place[len(path) :], name


def _merged(said: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What several files say; where they differ, what each of them does."""
    merged: dict[str, Any] = {}
    for key in dict.fromkeys(itertools.chain.from_iterable(said.values())):
        values = {file: told[key] for file, told in said.items() if key in told}
        first = next(iter(values.values()))
        merged[key] = first if all(value == first for value in values.values()) else values
    return merged


# -- writing -----------------------------------------------------------------------------------------------------------


def _type_of(facts: ArrayFacts) -> str | None:
    """The format's type for an array's elements."""
    if facts.dtype is None:
        return None
    for word in (facts.type_name, facts.dtype.name):
        name = _TYPE_OF_NAME.get(word)
        if name is not None and TYPES[name].itemsize == facts.dtype.itemsize:
            return name
    return _TYPE_OF_NUMPY.get(facts.dtype.newbyteorder("<"))


def _losses(tree: Tree, is_attribute: Callable[[str, Any], bool]) -> list[str]:
    def of_array(name: str, facts: ArrayFacts) -> Iterator[str]:
        if _type_of(facts) is not None:
            yield from losses_of(name, facts)
        else:
            yield f"the elements of {name or 'the array'}, of type {facts.type_name or facts.dtype}"

    return list(losses_of_tree(tree, of_array, is_attribute))


def _is_text(key: str, value: Any) -> bool:
    return isinstance(value, str) and _is_json(key, value)


def _is_json(key: str, value: Any) -> bool:
    """Whether an index can have an attribute; the sum of all sizes is its own."""
    try:
        json.dumps({key: value}, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return key != "total_size"


def _itemsize(facts: ArrayFacts) -> int:
    assert facts.dtype is not None
    return facts.dtype.itemsize


def _attributes(tree: Tree, is_attribute: Callable[[str, Any], bool]) -> dict[str, Any]:
    attributes = tree.attributes if isinstance(tree, GroupFacts) else {}
    return {key: value for key, value in attributes.items() if is_attribute(key, value)}


class _Planned(NamedTuple):
    name: str
    type_name: str
    facts: ArrayFacts


class _SafetensorsWriter(DenseStoreWriter):
    """What the writers of one file and of a folder share. `inner`: what a single array is called."""

    format = "safetensors"

    def __init__(self, place: str, inner: str = "", *, resume: bool = False) -> None:
        self._place, self._inner, self._resume = place, inner, resume
        self._files = SharedFiles()
        self._tensors: dict[str, tuple[ArrayFacts, FileArray]] = {}
        self._single = False

    @staticmethod
    def holds(facts: ArrayFacts) -> bool:
        return _type_of(facts) is not None

    def _plan(self, tree: Tree) -> list[_Planned]:
        """The tensors that a tree becomes."""
        self._single = isinstance(tree, ArrayFacts)
        if self._inner and not self._single:
            raise ArgumentError(f"{self._inner!r} is the name of one tensor and cannot hold a group")
        planned: dict[str, _Planned] = {}
        for name, node in nodes_of(tree):
            if not isinstance(node, ArrayFacts) or (type_name := _type_of(node)) is None:
                continue
            name = name or self._inner or "array"
            no_codecs(name, node, "safetensors")
            if name == METADATA:
                raise ArgumentError(f"no tensor can be called {METADATA}; rename the array")
            if name in planned:
                raise ArgumentError(f"two arrays would both become the tensor {name!r}")
            try:
                name.encode()
            except UnicodeEncodeError:
                raise ArgumentError(f"no tensor can be called {short(name)}, which is no text in Unicode") from None
            planned[name] = _Planned(name, type_name, node)
        return list(planned.values())

    def _make(self, path: str, tensors: Iterable[_Planned], metadata: Mapping[str, str]) -> None:
        """A file with its header, and with room for its tensors: those of larger elements first, so that all are
        aligned."""
        header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
        places: list[tuple[_Planned, int]] = []
        end = 0
        for tensor in sorted(tensors, key=lambda tensor: -TYPES[tensor.type_name].itemsize):
            start, end = end, end + tensor.facts.nbytes
            offsets = [start, end]
            header[tensor.name] = dict(zip(FIELDS, (tensor.type_name, list(tensor.facts.shape), offsets)))
            places.append((tensor, start))
        raw = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        raw += b" " * (-len(raw) % 8)
        if len(raw) > MAX_HEADER_BYTES:
            raise StoreError(
                f"the header of {path} would take {len(raw)} bytes, the format allows {MAX_HEADER_BYTES}; write fewer "
                "arrays or attributes"
            )
        make_file(path, struct.pack("<Q", len(raw)) + raw, end, resume=self._resume)
        self._files.changed([path])
        for tensor, start in places:
            array = FileArray(path, 8 + len(raw) + start, tensor.facts.shape, "C", _itemsize(tensor.facts))
            self._tensors[tensor.name] = tensor.facts, array

    def array(self, path: str = "") -> DenseWriter:
        name = self._inner or path or ("array" if self._single else "")
        if name not in self._tensors:
            raise ArgumentError(f"{self._place} has no tensor {short(name)}")
        facts, array = self._tensors[name]
        assert facts.dtype is not None
        stored = facts.dtype.newbyteorder("<")
        return DenseWriter(f"{self._place}::{name}", facts, OneFile(array), self._files, stored)


class SafetensorsFileWriter(_SafetensorsWriter):
    """One safetensors file."""

    folder = False

    @staticmethod
    def losses(tree: Tree) -> list[str]:
        return _losses(tree, _is_text)

    def create(self, tree: Tree) -> None:
        self._make(self._place, self._plan(tree), _attributes(tree, _is_text))


class SafetensorsFolderWriter(_SafetensorsWriter):
    """A folder of safetensors files with an index. A tensor lies in one file; a new one begins where the next tensor
    would make a file larger than `file_bytes`."""

    folder = True

    def __init__(
        self, place: str, inner: str = "", *, resume: bool = False, file_bytes: int | str = FILE_BYTES
    ) -> None:
        super().__init__(place, inner, resume=resume)
        self._file_bytes = size_in_bytes(file_bytes, "file_bytes")
        self._index = b""
        self._folder_synced = False

    @staticmethod
    def losses(tree: Tree) -> list[str]:
        return _losses(tree, _is_json)

    def create(self, tree: Tree) -> None:
        planned = self._plan(tree)
        files = list(_dealt(planned, self._file_bytes))
        texts = _attributes(tree, _is_text) if files else {}  # every file has them
        others = {key: value for key, value in _attributes(tree, _is_json).items() if key not in texts}
        names = [f"model-{k + 1:05d}-of-{len(files):05d}{SUFFIX}" for k in range(len(files))]
        if self._resume and os.path.lexists(os.path.join(self._place, INDEX)):
            remove_file(os.path.join(self._place, INDEX))  # killed between finishing the folder and publishing it
        for name, tensors in zip(names, files):
            self._make(os.path.join(self._place, name), tensors, texts)
        index = {
            "metadata": {"total_size": sum(tensor.facts.nbytes for tensor in planned), **others},
            "weight_map": {tensor.name: name for name, tensors in zip(names, files) for tensor in tensors},
        }
        self._index = (json.dumps(index, ensure_ascii=False, indent=2) + "\n").encode()

    def sync(self) -> None:
        super().sync()
        if not self._folder_synced:
            sync_folder(self._place)
            self._folder_synced = True

    def finish(self) -> None:
        """The index is the last to come: without it the folder is no checkpoint."""
        self.sync()
        path = os.path.join(self._place, INDEX)
        try:
            with open(path, "xb") as file:
                file.write(self._index)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(error.errno, f"cannot write {path}: {error.strerror}") from None
        self.close()


def _dealt(tensors: Sequence[_Planned], limit: int) -> Iterator[list[_Planned]]:
    """Tensors for one file after the other."""
    file: list[_Planned] = []
    size = 0
    for tensor in tensors:
        if file and size + tensor.facts.nbytes > limit:
            yield file
            file, size = [], 0
        file.append(tensor)
        size += tensor.facts.nbytes
    if file:
        yield file
