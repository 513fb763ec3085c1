"""A store: an array on disk in some layout. One `.npy` file, or a folder of one `.npy` a rank with a `layout.json`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._arrays import whole_layout
from .._core import Layout
from ..errors import ArgumentError, LayoutError, ShapeError, StoreError
from . import layout_json
from .boxes import Box, FileArray, create_array_file, sync_file
from .npy import encode_header, npy_header
from .object_places import is_url, without_password
from .random_access import joined
from .shard_folders import is_group
from .team import Alone, Team

Window = tuple[Layout, dict[int, Box], dict[int, tuple[int, ...]]]
"""The layout of a window and this process's parts of it, by rank: boxes of files, and local shapes."""

_OTHER_NAMES = re.compile(r"\.(zarr|h5|hdf5|he5|nc|nc4|netcdf|safetensors)(/|$)|\.safetensors\.index\.json$")
_OTHER_ROOTS = ("zarr.json", ".zgroup", ".zarray")


def is_file_name(path: str | os.PathLike) -> bool:
    """Whether a destination's name says that it is one `.npy` file rather than a folder."""
    return os.fspath(path).endswith(".npy")


def of_other_formats(source: Any, destination: Any) -> bool:
    """Whether an end of a move is something else than a `.npy` file or a folder of shards, by its name or by what is
    there; a source may also be an object of zarr, h5py or xarray."""
    if not isinstance(source, (str, os.PathLike)):
        return type(source).__module__.partition(".")[0] in ("zarr", "h5py", "xarray")
    names = [os.fspath(end) for end in (source, destination) if isinstance(end, (str, os.PathLike))]
    if any("::" in name or "://" in name or _OTHER_NAMES.search(name) for name in names if isinstance(name, str)):
        return True
    return os.path.isdir(source) and (
        any(name in _OTHER_ROOTS or name.endswith(".safetensors") for name in os.listdir(source)) or is_group(source)
    )


class FileStore:
    """One `.npy` file. Any process can reach any part of it, so a team splits each window among its processes."""

    kind = "file"

    def __init__(self, path: str, array: FileArray, dtype: np.dtype, layout: Layout, team: Team) -> None:
        self.path, self.dtype, self.layout, self.order = path, dtype, layout, array.order
        self.shape = layout.shape
        self.arrays = [array]
        self._team = team

    def owner(self, part: int) -> int:
        """The process of the team that answers for a file."""
        return 0

    def window(self, lo: Sequence[int], hi: Sequence[int]) -> Window:
        extents = tuple(b - a for a, b in zip(lo, hi))
        size = self._team.size
        slowest_first = range(len(extents)) if self.order == "C" else reversed(range(len(extents)))
        split = next((d for d in slowest_first if extents[d] > 1), 0)
        if size == 1:
            layout = whole_layout(extents, self.order)
        else:
            words = ", ".join("BLOCK" if d == split else "*" for d in range(len(extents)))
            layout = Layout(f"({words}) on {size}, order={self.order}", extents)
        block = -(-extents[split] // size)
        first = min(self._team.rank * block, extents[split])
        last = min(first + block, extents[split])
        start = list(lo)
        start[split] += first
        shape = list(extents)
        shape[split] = last - first
        return layout, {self._team.rank: Box(self.arrays[0], start, shape)}, {self._team.rank: tuple(shape)}

    def boxes(self, lo: Sequence[int], hi: Sequence[int]) -> Iterator[tuple[int, Box, tuple[int, ...]]]:
        """All parts of a window, for a reader of everything: (rank, Box, shape)."""
        shape = tuple(b - a for a, b in zip(lo, hi))
        yield 0, Box(self.arrays[0], lo, shape), shape


class ShardStore:
    """A folder of shards. Process p of the team holds the shards of the ranks r with r % size == p."""

    kind = "folder"

    def __init__(self, path: str, arrays: list[FileArray], dtype: np.dtype, layout: Layout, team: Team) -> None:
        self.path, self.dtype, self.layout, self.order = path, dtype, layout, layout.order
        self.shape = layout.shape
        self.arrays = arrays  # as the layout has its ranks
        self._team = team
        self._ranks = layout.ranks
        self._mine = [(rank, array) for rank, array in zip(self._ranks, arrays) if rank % team.size == team.rank]

    def owner(self, part: int) -> int:
        """The process of the team that answers for a file."""
        return self._ranks[part] % self._team.size

    def window(self, lo: Sequence[int], hi: Sequence[int]) -> Window:
        layout = self.layout.window(lo, hi)
        boxes, shapes = {}, {}
        for rank, array in self._mine:
            shapes[rank] = shape = layout.local_shape(rank)
            boxes[rank] = Box(array, self.layout.local_start(rank, lo), shape)
        return layout, boxes, shapes

    def boxes(self, lo: Sequence[int], hi: Sequence[int]) -> Iterator[tuple[int, Box, tuple[int, ...]]]:
        """All parts of a window, for a reader of everything: (rank, Box, shape)."""
        window = self.layout.window(lo, hi)
        for rank, array in zip(self._ranks, self.arrays):
            shape = window.local_shape(rank)
            if 0 not in shape:
                yield rank, Box(array, self.layout.local_start(rank, lo), shape), shape


Store = FileStore | ShardStore


def open_store(path: str | os.PathLike, team: Team | None = None) -> Store:
    """Opens and checks a store: `layout`, `shape`, `dtype` and `order` say what is in it. Collective over the team,
    where there is one; what is wrong is said on every process. Raises StoreError."""
    path = os.fspath(path)
    team = Alone() if team is None else team

    def read_layout() -> bytes | None:
        if not is_url(path) and not os.path.lexists(path):
            raise StoreError(f"{path} does not exist")
        # At a URL it is a folder: there a web server may have something for a folder's own name as well.
        return layout_json.read_bounded(path) if is_url(path) or os.path.isdir(path) else None

    raw = team.first(read_layout)
    return team.together(lambda: _open_file(path, team) if raw is None else _open_folder(path, raw, team))


def _open_file(path: str, team: Team) -> FileStore:
    header = npy_header(path)
    if not header.shape:
        raise StoreError(f"{path} holds a single element without dimensions; there is nothing to distribute")
    array = FileArray(path, header.data_offset, header.shape, header.order, header.dtype.itemsize, header.told)
    return FileStore(path, array, header.dtype, whole_layout(header.shape, header.order), team)


def _open_folder(path: str, raw: bytes, team: Team) -> ShardStore:
    told = layout_json.parse_layout_json(raw, without_password(joined(path, layout_json.NAME)))
    arrays = [
        _open_shard(joined(path, name), rank, told, check=rank % team.size == team.rank)
        for rank, name in zip(told.layout.ranks, told.shards)
    ]
    return ShardStore(path, arrays, told.dtype, told.layout, team)


def _open_shard(path: str, rank: int, told: layout_json.ShardFolder, check: bool) -> FileArray:
    """Every process reads every header (another process's shard is read again by `--verify`), each judges its own."""
    header = npy_header(path, follow_links=False)
    if check:
        said = without_password(path)
        wanted = told.layout.local_shape(rank)
        if header.shape != wanted:
            raise StoreError(
                f"{said} has shape {header.shape}, but rank {rank} of the layout {told.layout} holds {wanted}"
            )
        if header.dtype != told.dtype:
            raise StoreError(f"{said} has element type {header.dtype}, but {layout_json.NAME} says {told.dtype}")
        both = sum(extent != 1 for extent in wanted) <= 1 or 0 in wanted
        if header.order != told.layout.order and not both:
            raise StoreError(f"{said} is in {header.order} order, but the layout is in {told.layout.order} order")
    return FileArray(path, header.data_offset, header.shape, told.layout.order, header.dtype.itemsize, header.told)


def shard_names(layout: Layout) -> list[str]:
    """The files of a folder of shards, of one width so that they sort by rank."""
    width = max(5, len(str(layout.world_size - 1)))
    return [f"rank-{rank:0{width}d}.npy" for rank in layout.ranks]


def destination_layout(to: Layout | str | None, shape: tuple[int, ...], as_file: bool) -> Layout:
    """The layout of a destination, checked for what a store can be."""
    if isinstance(to, Layout):
        if to.shape != shape:
            raise ShapeError(f"the layout to= has shape {to.shape}, the array that is moved to it {shape}")
        layout = to
    else:
        layout = whole_layout(shape) if to is None else Layout(to, shape)
    if as_file and layout.rank_count != 1:
        raise ArgumentError(
            f"a .npy file holds the array of one rank, but {layout} has {layout.rank_count}; "
            "name a folder (without .npy), or leave the layout out to gather everything"
        )
    if layout.ld:
        raise LayoutError("ld= pads arrays in memory; the files of a store have no padding: leave it out")
    return layout


def make_store(place: str, as_file: bool, layout: Layout, dtype: np.dtype, team: Team, *, create: bool = True) -> Store:
    """Collective. A destination's store at `place` (hidden as yet): its files, with room for all data, if `create`."""

    def make() -> Store:
        if as_file:
            array = _create(place, layout.shape, layout.order, dtype, create and team.rank == 0, False)
            return FileStore(place, array, dtype, layout, team)
        arrays = []
        for rank, name in zip(layout.ranks, shard_names(layout)):
            mine = create and rank % team.size == team.rank
            arrays.append(_create(os.path.join(place, name), layout.local_shape(rank), layout.order, dtype, mine, True))
        return ShardStore(place, arrays, dtype, layout, team)

    return team.together(make)


def _create(path: str, shape: tuple[int, ...], order: str, dtype: np.dtype, mine: bool, exclusive: bool) -> FileArray:
    header = encode_header(shape, dtype, order)
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    if mine:
        create_array_file(path, header, size, exclusive=exclusive)
    return FileArray(path, len(header), shape, order, dtype.itemsize)


def finish_store(store: Store, team: Team, *, forget: bool = False) -> None:
    """Collective. Brings a created store's files to the disk."""

    def sync() -> None:
        for part, array in enumerate(store.arrays):
            if store.owner(part) == team.rank:
                sync_file(array.path, forget=forget)

    team.together(sync)


def write_layout_json(store: Store) -> None:
    """The last file of a folder of shards; without it the folder is not one."""
    raw = layout_json.encode_layout_json(store.layout, store.shape, store.dtype, store.order, shard_names(store.layout))
    path = os.path.join(store.path, layout_json.NAME)
    try:
        with open(path, "xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(error.errno, f"cannot write {path}: {error.strerror}") from None
