"""A store: an array on disk in some layout. One `.npy` file, or a folder of one `.npy` a rank with a `layout.json`."""

from __future__ import annotations

import os

from ..errors import ArgumentError, LayoutError, StoreError
from . import layout_json
from .boxes import Box, FileArray, create_array_file, sync_file
from .dense import DenseLayout
from .npy import encode_header, open_npy


def is_file_name(path):
    """Whether a destination's name says that it is one `.npy` file rather than a folder."""
    return os.fspath(path).endswith(".npy")


class FileStore:
    """One `.npy` file. Any process can reach any part of it, so a team splits each window among its processes."""

    kind = "file"

    def __init__(self, path, array, dtype, layout, team):
        self.path, self.dtype, self.layout, self.order = path, dtype, layout, array.order
        self.shape = tuple(layout.shape)
        self.dense = DenseLayout.of(layout)
        self._array = array
        self._team = team

    @property
    def arrays(self):
        return [self._array]

    def window(self, lo, hi):
        """The layout of a window and this process's parts of it: (Layout, {rank: Box}, {rank: local shape})."""
        extents = tuple(b - a for a, b in zip(lo, hi))
        size = self._team.size
        slowest_first = range(len(extents)) if self.order == "C" else reversed(range(len(extents)))
        split = next((d for d in slowest_first if extents[d] > 1), 0)
        if size == 1:
            layout = _layout(_whole_text(len(extents), self.order), extents)
        else:
            words = ", ".join("BLOCK" if d == split else "*" for d in range(len(extents)))
            layout = _layout(f"({words}) on {size}, order={self.order}", extents)
        block = -(-extents[split] // size)
        first = min(self._team.rank * block, extents[split])
        last = min(first + block, extents[split])
        start = list(lo)
        start[split] += first
        shape = list(extents)
        shape[split] = last - first
        return layout, {self._team.rank: Box(self._array, start, shape)}, {self._team.rank: tuple(shape)}

    def boxes(self, lo, hi):
        """All parts of a window, for a reader of everything: (process of `dense`, Box, shape)."""
        shape = tuple(b - a for a, b in zip(lo, hi))
        yield 0, Box(self._array, lo, shape), shape


class ShardStore:
    """A folder of shards. Process p of the team holds the shards of the ranks r with r % size == p."""

    kind = "folder"

    def __init__(self, path, arrays, dtype, layout, team):
        self.path, self.dtype, self.layout, self.order = path, dtype, layout, layout.order
        self.shape = tuple(layout.shape)
        self.dense = DenseLayout.of(layout)
        self.arrays = arrays  # by process of the grid
        self._ranks = [self.dense.rank_of_process(p) for p in range(self.dense.processes)]
        self._mine = [p for p, rank in enumerate(self._ranks) if rank % team.size == team.rank]

    def window(self, lo, hi):
        layout = self.layout.window(lo, hi)
        boxes, shapes = {}, {}
        for p in self._mine:
            rank = self._ranks[p]
            shapes[rank] = shape = tuple(layout.local_shape(rank))
            boxes[rank] = Box(self.arrays[p], self.layout.local_start(rank, lo), shape)
        return layout, boxes, shapes

    def boxes(self, lo, hi):
        for p, array in enumerate(self.arrays):
            coordinates = self.dense.coordinates(p)
            start = [dim.count_below(c, a) for dim, c, a in zip(self.dense.dimensions, coordinates, lo)]
            stop = [dim.count_below(c, b) for dim, c, b in zip(self.dense.dimensions, coordinates, hi)]
            shape = tuple(b - a for a, b in zip(start, stop))
            if 0 not in shape:
                yield p, Box(array, start, shape), shape


def open_store(path, team):
    """Collective over the team. Opens and checks a store; what is wrong with it is said on every process."""
    path = os.fspath(path)

    def read_layout():
        if not os.path.lexists(path):
            raise StoreError(f"{path} does not exist")
        return layout_json._read_bounded(os.path.join(path, layout_json.NAME)) if os.path.isdir(path) else None

    raw = team.first(read_layout)
    return team.together(lambda: _open_file(path, team) if raw is None else _open_folder(path, raw, team))


def _open_file(path, team):
    fd, header = open_npy(path)
    os.close(fd)
    if not header.shape:
        raise StoreError(f"{path} holds a single element without dimensions; there is nothing to distribute")
    layout = _layout(_whole_text(len(header.shape), header.order), header.shape)
    array = FileArray(path, header.data_offset, header.shape, header.order, header.dtype.itemsize)
    return FileStore(path, array, header.dtype, layout, team)


def _open_folder(path, raw, team):
    told = layout_json.parse_layout_json(raw, os.path.join(path, layout_json.NAME), _layout)
    dense = DenseLayout.of(told.layout)
    arrays = []
    for p, name in enumerate(told.shards):
        rank = dense.rank_of_process(p)
        array = _open_shard(os.path.join(path, name), rank, told, check=rank % team.size == team.rank)
        arrays.append(array)
    return ShardStore(path, arrays, told.dtype, told.layout, team)


def _open_shard(path, rank, told, check):
    """Every process reads every header (another process's shard is read again by `--verify`), each judges its own."""
    fd, header = open_npy(path, follow_links=False)
    os.close(fd)
    if check:
        wanted = tuple(told.layout.local_shape(rank))
        if header.shape != wanted:
            raise StoreError(
                f"{path} has shape {header.shape}, but rank {rank} of the layout {told.layout} holds {wanted}"
            )
        if header.dtype != told.dtype:
            raise StoreError(f"{path} has element type {header.dtype}, but {layout_json.NAME} says {told.dtype}")
        both = sum(extent != 1 for extent in wanted) <= 1 or 0 in wanted
        if header.order != told.layout.order and not both:
            raise StoreError(f"{path} is in {header.order} order, but the layout is in {told.layout.order} order")
    return FileArray(path, header.data_offset, header.shape, told.layout.order, header.dtype.itemsize)


def shard_names(dense):
    """The files of a folder of shards, of one width so that they sort by rank."""
    ranks = [dense.rank_of_process(p) for p in range(dense.processes)]
    width = max(5, len(str(max(ranks, default=0))))
    return [f"rank-{rank:0{width}d}.npy" for rank in ranks]


def destination_layout(text, shape, as_file):
    """The layout that `--to` says, checked for what a store can be."""
    layout = _layout(text if text is not None else _whole_text(len(shape), "C"), shape)
    if as_file and layout.rank_count != 1:
        raise ArgumentError(
            f"a .npy file holds the array of one rank, but {layout} has {layout.rank_count}; "
            "name a folder (without .npy), or leave the layout out to gather everything"
        )
    if getattr(layout, "ld", None):
        raise LayoutError("ld= pads arrays in memory; the files of a store have no padding: leave it out")
    return layout


def make_store(place, as_file, layout, dtype, team, *, create=True):
    """Collective. A destination's store at `place` (hidden as yet): its files, with room for all data, if `create`."""

    def make():
        dense = DenseLayout.of(layout)
        if as_file:
            array = _create(place, tuple(layout.shape), layout.order, dtype, create and team.rank == 0, False)
            return FileStore(place, array, dtype, layout, team)
        arrays = []
        for p, name in enumerate(shard_names(dense)):
            rank = dense.rank_of_process(p)
            mine = create and rank % team.size == team.rank
            shape = tuple(layout.local_shape(rank))
            arrays.append(_create(os.path.join(place, name), shape, layout.order, dtype, mine, True))
        return ShardStore(place, arrays, dtype, layout, team)

    return team.together(make)


def _create(path, shape, order, dtype, mine, exclusive):
    header = encode_header(shape, dtype, order)
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    if mine:
        create_array_file(path, header, size, exclusive=exclusive)
    return FileArray(path, len(header), shape, order, dtype.itemsize)


def finish_store(store, team, *, forget=False):
    """Collective. Brings a created store's files to the disk and,
    for a folder, writes its `layout.json`, the last file."""

    def sync():
        for p, array in enumerate(store.arrays):
            owner = store.dense.rank_of_process(p) % team.size if store.kind == "folder" else 0
            if owner == team.rank:
                sync_file(array.path, forget=forget)

    team.together(sync)


def write_layout_json(store):
    """The last file of a folder of shards; without it the folder is not one."""
    raw = layout_json.encode_layout_json(store.layout, store.shape, store.dtype, store.order, shard_names(store.dense))
    path = os.path.join(store.path, layout_json.NAME)
    try:
        with open(path, "xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(error.errno, f"cannot write {path}: {error.strerror}") from None


def _whole_text(dimensions, order):
    return f"({', '.join('*' * dimensions)}) on 1, order={order}"


def _layout(text, shape):
    from .. import Layout

    return Layout(text, shape)
