"""Rank maps of process grids, as people write them (`0:1048576:64`, `grid 128x128x64 [:, :, 5]`, a list, a file), of
MPI's groups and communicators, and in orders in which neighbours are near."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from . import _mpi
from ._core import (
    RankExplanation,
    RankMap,
    explain_ranks,
    hilbert_order,
    node_order,
    placed_order,
    rank_modules,
    split_keys,
    tiled_order,
)
from ._mistakes import check
from ._words import short
from .errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = [
    "RankExplanation",
    "RankMap",
    "create_comm",
    "explain_ranks",
    "grid_section",
    "hilbert_order",
    "members_of",
    "node_aware_order",
    "node_order",
    "placed_order",
    "rank_map_of",
    "rank_modules",
    "split_keys",
    "split_ranks",
    "tiled_order",
    "to_group",
]


def grid_section(shape: Sequence[int], section: Sequence[int | slice] = (), *, world: int | None = None) -> RankMap:
    """The ranks of part of a process grid whose last dimension is the fastest: an index or a slice a
    dimension, `:` for those left out. Members are in the order of the section, so that slices with
    negative steps go backwards. A closed form, never enumerated.

    >>> grid_section((128, 128, 64), (slice(None), slice(None), 5)).representation
    'stride'
    """
    check("shape", shape, "Sequence[int]")
    if not isinstance(section, Sequence):
        raise ArgumentTypeError(f"section is {short(section)}; it must be a sequence of integers and slices")
    if len(section) > len(shape):
        raise ArgumentError(f"the section has {len(section)} dimensions, the grid {len(shape)}")
    if any(extent < 1 for extent in shape):
        raise ArgumentError(f"extents of a grid are at least 1, not {'x'.join(map(str, shape))}")
    base, axes, stride = 0, [], 1
    picked = [*section, *[slice(None)] * (len(shape) - len(section))]
    for dimension in reversed(range(len(shape))):
        extent, pick = shape[dimension], picked[dimension]
        if isinstance(pick, slice):
            try:
                indices = range(extent)[pick]
            except (TypeError, ValueError) as error:
                kind = ArgumentTypeError if isinstance(error, TypeError) else ArgumentError
                raise kind(f"{error}, in dimension {dimension} of the grid") from None
            base += (indices[0] if len(indices) else 0) * stride
            axes.append((len(indices), indices.step * stride))
        else:
            check(f"the index of dimension {dimension}", pick, "int")
            index = pick + extent if pick < 0 else pick
            if not 0 <= index < extent:
                raise ArgumentError(f"index {pick} of dimension {dimension} is outside [0, {extent})")
            base += index * stride
        stride *= extent
    return RankMap.nest(base, axes, stride if world is None else world)


def members_of(text: str, world: int | None = None) -> tuple[range | np.ndarray | RankMap, int]:
    """The members that a text says, as a range, an array or a
    map, and the size of their world, if `world` does not say it.

    A range `first:last:step` (its last rank is not a member; without a world, it is its
    end), a grid and a section of it, ranks with commas or blanks between them, or the name
    of a file: an array of NumPy's (.npy), or ranks as text."""
    text = text.strip()
    if match := re.fullmatch(r"(-?\d*)\s*:\s*(-?\d*)\s*(?::\s*(-?\d*))?", text):
        first, last, step = (int(word) if word else None for word in match.groups())
        among = _range(first, last, step, world)
        return among, world if world is not None else max(among.stop, among.start + 1)
    if match := re.fullmatch(r"grid\s+(\d+(?:\s*x\s*\d+)*)\s*(?:\[(.*)\])?", text):
        shape = [int(extent) for extent in match.group(1).split("x")]
        picks = [_pick(word) for word in match.group(2).split(",")] if match.group(2) and match.group(2).strip() else []
        section = grid_section(shape, picks, world=world)
        return section, section.world
    if re.fullmatch(r"[-\d\s,]*", text) and not os.path.exists(text):
        members = _integers(text, "the list")
    elif os.path.exists(text):
        members = _file(text)
    else:
        raise ArgumentError(f"{text!r} is no range (0:64:2), grid (grid 8x8 [:, 3]), list (3, 1, 4) or file")
    if members.size and world is None:
        world = int(members.max()) + 1
    return members, world or 0


def rank_map_of(members: MPI.Comm | MPI.Group, comm: MPI.Comm) -> RankMap:
    """Which ranks of `comm` the processes of another communicator are; collective over that one. Or the members of a
    group, which is not collective, and for small groups only: MPI tells by comparing each member with each rank."""
    return _mpi.rank_map_of(members, comm)


def _given(map: RankMap) -> RankMap:
    if not isinstance(map, RankMap):
        raise ArgumentError(f"map is a {type(map).__name__}; it must be a RankMap: RankMap(members, world)")
    return map


def to_group(map: RankMap, comm: MPI.Comm) -> MPI.Group:
    """The group of a map's members, which are ranks of `comm`. Free it with Free(). Not collective."""
    return _mpi.to_group(_given(map), comm)


def create_comm(map: RankMap, comm: MPI.Comm, tag: int = 0) -> MPI.Comm:
    """A communicator of a map's members, which are ranks of `comm`. Collective over the members only; others get
    COMM_NULL. Free it with Free(). The tag tells apart those that several threads make at a time."""
    return _mpi.create_comm(_given(map), comm, tag)


def split_ranks(comm: MPI.Comm, colour: int, key: int = 0) -> RankMap:
    """What comm.Split(colour, key) would number, with no communicator made: the ranks of this colour by key and then
    by rank, nobody where the colour is negative. Collective over `comm`."""
    return _mpi.split_ranks(comm, colour, key)


def node_aware_order(comm: MPI.Comm) -> RankMap:
    """The ranks of a communicator grouped by the node that they run on, nodes by their lowest rank. Collective."""
    return _mpi.node_aware_order(comm)


def _range(first: int | None, last: int | None, step: int | None, world: int | None) -> range:
    step = 1 if step is None else step
    if step == 0:
        raise ArgumentError("the step of a range is not 0")
    if last is None and step > 0:
        if world is None:
            raise ArgumentError("a range without an end needs the size of the world")
        last = world
    if first is None and step < 0:
        if world is None:
            raise ArgumentError("a range that goes down from the end needs the size of the world")
        first = world - 1
    return range(0 if first is None else first, -1 if last is None else last, step)


def _pick(word: str) -> int | slice:
    if not re.fullmatch(r"\s*(-?\d+)?\s*(:\s*(-?\d+)?\s*){0,2}", word) or not word.strip():
        raise ArgumentError(f"{word.strip()!r} is no index and no slice, such as 5 or 2:8")
    parts = [int(part) if part.strip() else None for part in word.split(":")]
    return slice(*parts) if len(parts) > 1 else parts[0] or 0


def _integers(text: str, where: str) -> np.ndarray:
    words = text.replace(",", " ").split()
    try:
        return np.array([int(word) for word in words], dtype=np.int64)
    except (ValueError, OverflowError):
        wrong = next(word for word in words if not re.fullmatch(r"-?\d{1,18}", word))
        raise ArgumentError(f"{wrong[:40]!r} in {where} is no rank") from None


def _file(name: str) -> np.ndarray:
    with open(name, "rb") as file:
        if file.read(6) == b"\x93NUMPY":
            file.seek(0)
            try:
                array = np.load(file, allow_pickle=False)
            except (ValueError, EOFError) as error:
                raise ArgumentError(f"{name} cannot be read: {error}") from None
            if array.dtype.kind not in "iu":
                raise ArgumentError(f"{name} has elements of {array.dtype}, not integers")
            return np.ascontiguousarray(array.reshape(-1), dtype=np.int64)
    with open(name, encoding="utf-8", errors="replace") as file:
        return _integers(file.read(), name)
