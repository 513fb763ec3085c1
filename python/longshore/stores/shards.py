"""Folders of one `.npy` a rank, and groups of them, as stores that are read and written chunk by chunk.

A group is a folder that has a folder of shards for each of its arrays and a folder for each of its groups; an array
without dimensions, which nobody can deal to ranks, is a `.npy` file there.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import replace

from .._arrays import whole_layout
from .._core import Layout
from .._words import short
from ..errors import ArgumentError, LongshoreError, StoreError
from . import layout_json
from .array import ArrayFacts, GroupFacts, LinkFacts, StoreReader, Tree
from .boxes import FileArray
from .dense import (
    DenseReader,
    DenseStoreWriter,
    DenseWriter,
    OneFile,
    Pieces,
    ShardFiles,
    SharedFiles,
    facts_of_npy,
    is_npy,
    losses_of_npy,
    losses_of_tree,
    make_npy,
    nodes_of,
    only_array,
    remove_file,
)
from .npy import npy_header
from .object_places import is_url, without_password
from .own_files import STORES_ROOTS
from .publish import sync_folder
from .random_access import entries_in, exists_in, fingerprint_of, joined
from .shard_folders import SINGLE, is_group
from .store import ShardStore, destination_layout, open_store, shard_names, write_layout_json
from .team import Alone
from .writeback import wait_for_each

_MOST_DEPTH = 64
_LAYOUT = re.compile(r"\s*\((?P<words>.*)\)\s*on\s+(?P<grid>[^,]*)(?P<options>,.*)?", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"(?:[^,(]|\([^)]*\))+")
_OTHERS = re.compile(r".*\.safetensors(\.index\.json)?")


# -- layouts of a group's arrays --------------------------------------------------------------------------------------


def layout_for(to: Layout | str | None, shape: tuple[int, ...], *, of_group: bool) -> Layout | None:
    """The layout of an array that goes to shards. Of a group's array, None where it has no dimensions; where it has
    more than a layout's text, the others are whole, and where it has fewer, the first words are its own, and the grid's
    extents of distributed dimensions that it lacks hold copies."""
    if not of_group:
        return destination_layout(to, shape, False)
    return destination_layout(_fitted(to, len(shape)), shape, False) if shape else None


def _fitted(to: Layout | str | None, dimensions: int) -> Layout | str | None:
    found = _LAYOUT.fullmatch(to) if isinstance(to, str) else None
    if found is None:
        return to
    words = [word.strip() for word in _WORD.findall(found["words"])]
    distributed = [d for d, word in enumerate(words) if word != "*"]
    grid, at = [extent.strip() for extent in found["grid"].split("x")], 0
    for place, extent in enumerate(grid):
        if not extent.upper().startswith("REPLICATED"):
            if at < len(distributed) and distributed[at] >= dimensions:
                grid[place] = f"REPLICATED({extent})"
            at += 1
    words = words[:dimensions] + ["*"] * (dimensions - len(words))
    return f"({', '.join(words)}) on {'x'.join(grid)}{found['options'] or ''}"


class Members:
    """The arrays that a group is to have."""

    def __init__(self) -> None:
        self._arrays: set[str] = set()
        self._groups: set[str] = set()

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return bool(self._arrays)

    def add(self, name: str, shape: tuple[int, ...], to: Layout | str) -> None:
        """Raises ArgumentError and LayoutError, which name the array, where it cannot be among them."""
        words = name.split("/")
        own, above = {name, _place_of(name, shape)}, {"/".join(words[:k]) for k in range(1, len(words))}
        if own & self._arrays or own & self._groups or above & self._arrays:
            raise ArgumentError(f"{name} cannot be in a folder where another array or group has its name; rename it")
        self._arrays |= own
        self._groups |= above
        try:
            layout_for(to, shape, of_group=True)
        except LongshoreError as error:
            raise type(error)(
                f"the layout does not fit {name}, of shape {shape}, which can be moved by itself: {error}"
            ) from None


def _place_of(name: str, shape: tuple[int, ...]) -> str:
    """Where below a group's folder an array is. Raises ArgumentError for what no folder can be called."""
    *groups, own = name.split("/")
    words = [*groups, own if shape else own + SINGLE]
    if len(words) > _MOST_DEPTH:
        raise ArgumentError(f"{short(name)} lies deeper than {_MOST_DEPTH} groups, which is all that are read again")
    for word in words:
        try:
            layout_json.check_shard_name(word)
        except StoreError as error:
            raise ArgumentError(f"no array can be {short(name)} in a folder of shards: {error}") from None
        if word.startswith(".") or word in STORES_ROOTS or _OTHERS.fullmatch(word):
            raise ArgumentError(
                f"no array can be {short(name)} in a folder of shards: {short(word)} means another thing"
            )
    return "/".join(words)


# -- reading ----------------------------------------------------------------------------------------------------------


class ShardsReader(StoreReader):
    """A folder of one `.npy` a rank with a `layout.json`, or a group of such folders."""

    format = "shards"

    def __init__(self, path: str) -> None:
        self.path = without_password(path)
        self.layouts: dict[str, Layout] = {}
        """Which rank's file holds which elements, by the arrays' paths."""
        self._arrays: dict[str, tuple[ArrayFacts, Pieces]] = {}
        self._files = SharedFiles()
        self._paths: list[str] = []
        self.tree: Tree = self._open_group(path, "", 0) if is_group(path) else self._open_array(path, "")

    def _open_array(self, folder: str, name: str) -> ArrayFacts:
        store = open_store(folder)
        assert isinstance(store, ShardStore)
        facts = ArrayFacts(
            store.shape,
            store.dtype,
            order=store.order,
            stored_bytes=sum(math.prod(array.shape) * array.itemsize for array in store.arrays),
        )
        self.layouts[name] = store.layout
        self._arrays[name] = facts, ShardFiles(store.layout, store.arrays)
        self._paths += [joined(folder, layout_json.NAME), *(array.path for array in store.arrays)]
        return facts

    def _open_group(self, folder: str, prefix: str, depth: int) -> GroupFacts:
        if depth > _MOST_DEPTH:
            raise StoreError(f"{without_password(folder)} lies deeper in {self.path} than groups of shards do")
        if not is_url(folder):  # there folders have no times
            self._paths.append(folder)
        children: dict[str, ArrayFacts | GroupFacts | LinkFacts] = {}
        for entry in entries_in(folder):
            name = entry.name
            if entry.is_link:
                raise StoreError(f"{entry.place} is a symbolic link; in a group of shards it must be the folder itself")
            if entry.is_folder:
                if exists_in(entry.place, layout_json.NAME):
                    children[name] = self._open_array(entry.place, prefix + name)
                else:
                    children[name] = self._open_group(entry.place, f"{prefix}{name}/", depth + 1)
            elif name.endswith(SINGLE):
                own = name.removesuffix(SINGLE)
                if own in children:
                    raise StoreError(f"{without_password(folder)} has two arrays or groups with the name {own!r}")
                children[own] = self._open_single(entry.place, prefix + own)
        if not children:
            raise StoreError(
                f"{without_password(folder)} holds no {layout_json.NAME} and no folder that has one, as those beside "
                "it do"
            )
        return GroupFacts(children)

    def _open_single(self, path: str, name: str) -> ArrayFacts:
        header = npy_header(path)
        if header.shape:
            raise StoreError(
                f"{without_password(path)} has the shape {header.shape}; beside folders of shards a .npy file has one "
                "element without dimensions"
            )
        facts = ArrayFacts((), header.dtype, stored_bytes=header.data_bytes)
        array = FileArray(path, header.data_offset, (), "C", header.dtype.itemsize, header.told)
        self._arrays[name] = facts, OneFile(array)
        self._paths.append(path)
        return facts

    def array(self, path: str = "") -> DenseReader:
        if isinstance(self.tree, ArrayFacts):
            only_array(path, self.path)
        elif path not in self._arrays:
            raise ArgumentError(f"{self.path} has no array {short(path)}")
        where = f"{self.path}/{path}" if path else self.path
        return DenseReader(where, *self._arrays[path], self._files)

    def fingerprint(self) -> str:
        return fingerprint_of(self._paths)

    def close(self) -> None:
        self._files.close()


# -- writing ----------------------------------------------------------------------------------------------------------


class ShardsWriter(DenseStoreWriter):
    """A folder of one `.npy` a rank, or a group of such folders. `to`: the layout, or its text, which a group's arrays
    have as `layout_for` says; None: one rank that has everything."""

    format = "shards"
    folder = True

    def __init__(self, place: str, to: Layout | str | None = None, *, resume: bool = False) -> None:
        self._place, self._to, self._resume = place, to, resume
        self._files = SharedFiles()
        self._arrays: dict[str, tuple[ArrayFacts, Pieces]] = {}
        self._stores: list[ShardStore] = []
        self._unsynced = {place}

    @staticmethod
    def holds(facts: ArrayFacts) -> bool:
        return is_npy(facts)

    @staticmethod
    def losses(tree: Tree) -> list[str]:
        found = list(losses_of_tree(tree, losses_of_npy))
        for name, node in nodes_of(tree):
            if isinstance(node, GroupFacts) and next(node.arrays(), None) is None:
                found.append(f"the group {name}, which has no arrays" if name else "a group that has no arrays")
        return found

    def create(self, tree: Tree) -> None:
        of_group = isinstance(tree, GroupFacts)
        for name, node in nodes_of(tree):
            if not isinstance(node, ArrayFacts) or (of_group and not is_npy(node)):
                continue
            facts = facts_of_npy(name, node)
            if not facts.shape and not of_group:
                raise ArgumentError(
                    "a single element without dimensions cannot be dealt to ranks; write it to a .npy file"
                )
            to = whole_layout(facts.shape, facts.order) if self._to is None and facts.shape else self._to
            self._create(name, facts, layout_for(to, facts.shape, of_group=of_group))
        if not self._arrays:
            raise ArgumentError(f"{self._place} would have no array: there is none that shards can hold")

    def _create(self, name: str, facts: ArrayFacts, layout: Layout | None) -> None:
        """The files of an array."""
        assert facts.dtype is not None
        path = os.path.join(self._place, _place_of(name, facts.shape)) if name else self._place
        folder = path if layout is not None else os.path.dirname(path)
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise StoreError(error.errno, f"cannot make {folder}: {error.strerror}") from None
        while folder not in self._unsynced:
            self._unsynced.add(folder)
            folder = os.path.dirname(folder)
        if layout is None:
            files = [make_npy(path, facts, "C", resume=self._resume)]
            self._arrays[name] = replace(facts, order="C"), OneFile(files[0])
        else:
            finished = os.path.join(path, layout_json.NAME)
            if self._resume and os.path.lexists(finished):
                remove_file(finished)  # a run was killed between finishing the folder and publishing it
            files = [
                make_npy(
                    os.path.join(path, shard),
                    replace(facts, shape=layout.local_shape(rank)),
                    layout.order,
                    resume=self._resume,
                )
                for rank, shard in zip(layout.ranks, shard_names(layout))
            ]
            self._arrays[name] = replace(facts, order=layout.order), ShardFiles(layout, files)
            self._stores.append(ShardStore(path, files, facts.dtype, layout, Alone()))
        self._files.changed(file.path for file in files)

    def array(self, path: str = "") -> DenseWriter:
        if path not in self._arrays:
            only_array(path, self._place)
        where = os.path.join(self._place, path) if path else self._place
        return DenseWriter(where, *self._arrays[path], self._files)

    def sync(self) -> None:
        super().sync()
        wait_for_each(sync_folder, self._unsynced)
        self._unsynced.clear()

    def finish(self) -> None:
        """What says how arrays are dealt is the last to come: without it a folder is none of shards."""
        self.sync()
        wait_for_each(write_layout_json, self._stores)
        wait_for_each(sync_folder, [store.path for store in self._stores])
        self.close()
