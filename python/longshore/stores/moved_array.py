"""The arrays on their way from store to store: where each comes from, and what is to be made of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import ArgumentError, StoreError
from .array import ArrayFacts, ArrayReader, Grid, GroupFacts, LinkFacts, StoreReader, Tree
from .chunk_words import NO_CHUNKS, Chunks, extents_of, parse_chunks
from .links import soft_links_to
from .makers import Maker, Wanted
from .rechunk import Counts
from .rechunk_plan import RechunkPlan

_OF_CODECS = ("zarr.codecs", "zarr.filters", "zarr.compressor", "zarr.dtype")
"""What `ArrayFacts.own` says of codecs, and of the type that they are for."""

_OF_DIMENSIONS = ("hdf5.maxshape", "hdf5.scales", "hdf5.labels", "netcdf.dimensions")
"""What it has an item of for each dimension."""


@dataclass
class MovedArray:
    """Where it comes from, what is to be made of it, and what has been."""

    path: str
    """In both trees."""
    facts: ArrayFacts
    """Of the target."""
    reader: ArrayReader
    grid: Grid
    """The target's chunks."""
    axes: tuple[int, ...]
    """The target's dimensions, as numbers of the source's."""
    stored_bytes: int | None
    """Of the source's chunks."""
    digests: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))
    """Of the target's chunks, in C order."""
    passes: tuple[RechunkPlan, ...] = ()
    """Of an executor's tasks, where these move it."""
    counts: Counts = field(default_factory=Counts)

    @property
    def converted_bytes(self) -> int:
        """What a thread holds beside a decoded chunk of the source whose bytes are to lie in another order."""
        dtype = self.reader.facts.dtype
        return 0 if dtype in (None, self.facts.dtype) else math.prod(self.reader.grid.chunks) * dtype.itemsize

    @property
    def source_grid(self) -> Grid:
        """In the target's order of dimensions."""
        own = self.reader.grid
        return Grid(tuple(own.shape[a] for a in self.axes), tuple(own.chunks[a] for a in self.axes))


def wanted_tree(reader: StoreReader, maker: Maker, wanted: Wanted, text: str) -> tuple[Tree, list[MovedArray]]:
    """The destination's tree: the source's, with the chunks and codecs that are wanted; and the arrays that a mover can
    move. `text`: the source, for messages."""
    arrays: list[MovedArray] = []

    def of_tree(tree: Tree, path: str) -> Tree:
        if isinstance(tree, ArrayFacts):
            if tree.dtype is not None:  # else it is copied as it is, or among the losses
                arrays.append(_wanted_array(reader, maker, wanted, tree, path, f"{text}{'/' + path if path else ''}"))
                return arrays[-1].facts
            return tree
        prefix = f"{path}/" if path else ""
        if "" in tree.children:
            raise StoreError(f"{text}{'/' + path if path else ''} has something without a name; rename that first")
        children: dict[str, Any] = {
            name: child if isinstance(child, LinkFacts) else of_tree(child, prefix + name)
            for name, child in tree.children.items()
        }
        return replace(tree, children=_nested(children, text))

    tree = of_tree(reader.tree, "")
    _check_used(reader.tree, maker, wanted, text)
    return tree, arrays


def _check_used(tree: Tree, maker: Maker, wanted: Wanted, text: str) -> None:
    """Raises ArgumentError where something is wanted that no array of the source or not the format of the target has:
    else a misspelt name would be found out once everything has been written."""
    check_has(maker, wanted.chunks, wanted.shards)
    arrays = [tree] if isinstance(tree, ArrayFacts) else [facts for _, facts in tree.arrays()]
    if wanted.axes is not None and arrays and all(len(facts.shape) != len(wanted.axes) for facts in arrays):
        axes = ",".join(map(str, wanted.axes))
        raise ArgumentError(f"axes {axes}: no array of {text} has {len(wanted.axes)} dimensions")
    known = list(dict.fromkeys(name for facts in arrays for name in facts.names or () if name))
    check_names(known, f"no array of {text} has a", wanted.chunks, wanted.shards)


def check_has(maker: Maker, chunks: Chunks | None, shards: Chunks | None) -> None:
    """Raises ArgumentError where chunks or shards are wanted that a format does not have."""
    target = maker.place.text
    if parse_chunks(shards) not in (None, NO_CHUNKS) and not maker.has_shards:
        found = maker.words.replace("Zarr", "Zarr 2")
        raise ArgumentError(f"{target}: shards are for Zarr 3, and this is {found}{maker.why}")
    if parse_chunks(chunks) not in (None, NO_CHUNKS) and not maker.has_chunks:
        raise ArgumentError(f"{target}: {maker.words} holds elements as they are, without chunks")


def check_names(known: Sequence[str], none: str, *wanted: Chunks | None) -> None:
    """Raises ArgumentError where chunks are wanted by the name of a dimension that is not `known`. `none`: that
    there is no such one."""
    for parsed in map(parse_chunks, wanted):
        for name in parsed if isinstance(parsed, dict) else ():
            if name not in known:
                there = f"there are {', '.join(known)}" if known else "its dimensions have no names"
                raise ArgumentError(f"{none} dimension {name!r}; {there}")


def check_without(maker: Maker, codecs: Sequence[str] | None, where: str) -> None:
    """Raises ArgumentError where an array cannot be without chunks."""
    if maker.needs_chunks or codecs:
        why = f"{maker.words} has chunks" if maker.needs_chunks else "codecs need chunks"
        raise ArgumentError(f"{where} cannot be without chunks: {why}; say their extents")


def what_is_held(tree: Tree, arrays: list[MovedArray], maker: Maker, text: str) -> tuple[Tree, list[MovedArray]]:
    """The destination's tree and the arrays that are moved, without the arrays that the format cannot hold, and without
    links to them. `text`: the source, for messages. Raises StoreError where the source has arrays, and none of them
    would be left."""
    found = [("", tree)] if isinstance(tree, ArrayFacts) else tree.arrays()
    left = {path for path, facts in found if not maker.holds(facts, path)}
    dangling = soft_links_to(tree, left)

    def of_group(group: GroupFacts, prefix: str) -> GroupFacts:
        children: dict[str, Any] = {}
        for name, child in group.children.items():
            if isinstance(child, GroupFacts):
                children[name] = of_group(child, f"{prefix}{name}/")
            elif prefix + name not in left and prefix + name not in dangling:
                children[name] = child
        return replace(group, children=children)

    if isinstance(tree, ArrayFacts):
        is_left = not left
        held: Tree = tree
    else:
        held = of_group(tree, "")
        is_left = next(held.arrays(), None) is not None or next(tree.arrays(), None) is None
    if not is_left:
        raise StoreError(
            f"{maker.words} can hold no array of {text}, so that no array would be left; choose another format"
        )
    return held, [array for array in arrays if maker.holds(array.facts, array.path)]


def with_facts(tree: Tree, arrays: list[MovedArray]) -> Tree:
    """The tree with what is now to be made of these arrays."""
    found = {array.path: array.facts for array in arrays}

    def of_tree(tree: Tree, path: str) -> Tree:
        if isinstance(tree, ArrayFacts):
            return found.get(path, tree)
        prefix = f"{path}/" if path else ""
        return replace(
            tree,
            children={
                name: child if isinstance(child, LinkFacts) else of_tree(child, prefix + name)
                for name, child in tree.children.items()
            },
        )

    return of_tree(tree, "")


def _nested(children: dict[str, Any], text: str) -> dict[str, Any]:
    """With groups for the slashes in names, which are letters as others to safetensors."""
    if not any("/" in name for name in children):
        return children
    nested = {name: child for name, child in children.items() if "/" not in name}
    below: dict[str, dict[str, Any]] = {}
    for name, child in children.items():
        first, slash, rest = name.partition("/")
        if slash:
            below.setdefault(first, {})[rest] = child
    for name, inner in below.items():
        group = nested.get(name, GroupFacts())
        if not isinstance(group, GroupFacts):
            raise StoreError(
                f"{text} has {name!r} and {name + '/' + next(iter(inner))!r}; an array cannot be a group, too"
            )
        nested[name] = replace(group, children={**group.children, **inner})
    return {
        name: replace(child, children=_nested(dict(child.children), text)) if isinstance(child, GroupFacts) else child
        for name, child in nested.items()
    }


def _wanted_array(
    reader: StoreReader, maker: Maker, wanted: Wanted, facts: ArrayFacts, path: str, where: str
) -> MovedArray:
    axes = tuple(range(len(facts.shape))) if wanted.axes is None else wanted.axes
    if sorted(axes) != list(range(len(facts.shape))):
        if isinstance(reader.tree, ArrayFacts):
            raise ArgumentError(
                f"axes {','.join(map(str, axes))} is no permutation of the {len(facts.shape)} dimensions of {where}"
            )
        axes = tuple(range(len(facts.shape)))
    turned = tuple(facts.shape[a] for a in axes)
    names = None if facts.names is None else tuple(facts.names[a] for a in axes)
    moved = axes != tuple(range(len(axes)))
    own = None if facts.chunks is None else tuple(facts.chunks[a] for a in axes)
    if wanted.chunks == NO_CHUNKS:
        check_without(maker, wanted.codecs, where)
        if facts.unlimited:
            why = f"dimension {axes.index(facts.unlimited[0])} may grow, which needs chunks"
            raise ArgumentError(f"{where} cannot be without chunks: {why}; say their extents")
    chunks = extents_of(wanted.chunks, turned, names, where, own)
    shards = extents_of(wanted.shards, turned, names, where, None)
    if wanted.shards is wanted.chunks is None and facts.shards is not None:
        shards = tuple(facts.shards[a] for a in axes)
    if chunks is not None:
        chunks = _cut(chunks, turned, shards if maker.has_shards else None)
    same = reader.format.split()[0] == maker.words.split()[0]
    turned_facts = replace(
        facts,
        shape=turned,
        names=names,
        chunks=chunks,
        shards=shards,
        unlimited=tuple(sorted(axes.index(d) for d in facts.unlimited)),
        order="C" if moved else facts.order,
        stored_bytes=None,
    )
    new = maker.fit(turned_facts, same, wanted.codecs, path)
    own_facts = {key: _turned(value, axes) if key in _OF_DIMENSIONS else value for key, value in new.own.items()}
    if new.codecs != facts.codecs:
        own_facts = {key: value for key, value in own_facts.items() if key not in _OF_CODECS}
    new = replace(new, own=own_facts)
    return MovedArray(path, new, reader.array(path), Grid((), ()), axes, facts.stored_bytes)


def _turned(items: Any, axes: tuple[int, ...]) -> Any:
    """What dimensions have, in the target's order of these."""
    return tuple(items[axis] for axis in axes) if isinstance(items, tuple) and len(items) == len(axes) else items


def _cut(chunks: tuple[int, ...], shape: tuple[int, ...], shards: tuple[int, ...] | None) -> tuple[int, ...]:
    """Chunks that reach no further than the array, except in shards that are a whole number of those that do."""
    if shards is None or len(shards) != len(chunks):
        return tuple(max(1, min(chunk, extent)) for chunk, extent in zip(chunks, shape))
    return tuple(
        max(1, min(chunk, extent)) if shard % chunk else chunk for chunk, extent, shard in zip(chunks, shape, shards)
    )
