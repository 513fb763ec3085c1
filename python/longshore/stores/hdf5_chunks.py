"""The arrays of an open HDF5 file, read outside the HDF5 library: where their chunks lie is asked once, the bytes are
read beside it, and filters are undone by whichever thread wants a chunk.

What only the library can decode is read through it, on one thread at a time.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import StoreError
from .array import ArrayFacts, ArrayReader, Grid, Index
from .boxes import Box, FileArray
from .hdf5_files import OpenFile, library_reads
from .hdf5_filters import DamagedError, Pipeline, filters_of
from .hdf5_values import library_lock, told
from .random_access import Part

_BATCH = 1 << 16
PIECE_BYTES = 4 << 20
"""What a contiguous dataset is read in."""


class ChunkTable:
    """Where the chunks of a dataset lie in its file: compact arrays, sorted by the chunks' places in the grid."""

    def __init__(self, dataset: Any, grid: Grid, file: OpenFile, pipeline: Pipeline, where: str) -> None:
        self._grid, self._file, self._where = grid, file, where
        self._strides = [math.prod(grid.counts[d + 1 :]) for d in range(len(grid.counts))]
        batches: tuple[list[np.ndarray], ...] = ([], [], [], [])
        corners, offsets, sizes, masks = array("Q"), array("Q"), array("Q"), array("L")

        def flush() -> None:
            for whole, part in zip(batches, self._batch(corners, offsets, sizes, masks)):
                whole.append(part)
            for column in (corners, offsets, sizes, masks):
                del column[:]

        def add(chunk: Any) -> None:
            if chunk.byte_offset is None:
                return
            corners.extend(chunk.chunk_offset)
            offsets.append(chunk.byte_offset + file.shift)
            sizes.append(chunk.size)
            masks.append(chunk.filter_mask)
            if len(sizes) >= _BATCH:
                flush()

        with library_reads(file.file), library_lock(), told(f"cannot read where the chunks of {where} lie"):
            self._before = _counted_before(dataset, grid.chunks, where)
            _tell_chunks(dataset, add)
        flush()
        place, self.offset, self.size, mask = (_joined(column) for column in batches)
        if (place[1:] < place[:-1]).any():
            order = np.argsort(place, kind="stable")
            place, self.offset, self.size, mask = place[order], self.offset[order], self.size[order], mask[order]
        self.mask = mask if mask.any() else None
        if (place[1:] == place[:-1]).any():
            raise StoreError(f"{where} has a chunk twice; its file is damaged")
        dense = place.size == math.prod(grid.counts) and bool((place == np.arange(place.size)).all())
        self.place = None if dense else place
        self._check(place, pipeline)
        if not (self.size >> 32).any():
            self.size = self.size.astype(np.uint32)

    def _batch(self, corners: array, offsets: array, sizes: array, masks: array) -> tuple[np.ndarray, ...]:
        """Chunks as arrays. Those outside the dataset's extents, which an array that shrank leaves behind, drop out."""
        corner = np.array(corners, np.uint64).reshape(len(sizes), len(self._strides))
        chunk = np.array(self._grid.chunks, np.uint64)
        if (corner % chunk).any():
            raise StoreError(f"{self._where} has a chunk that does not lie on its grid; its file is damaged")
        number = corner // chunk
        if self._before is not None:
            number = _put_right(number, self._before)
        inside = (number < np.array(self._grid.counts, np.uint64)).all(axis=1)
        place = number[inside].astype(np.int64) @ np.array(self._strides, np.int64)
        largest = 2**63 - 1
        if any(value > largest for value in (max(offsets, default=0), max(sizes, default=0))):
            raise StoreError(f"{self._where} has a chunk beyond 2^63 bytes; its file is damaged")
        offset, size = (np.array(column, np.int64)[inside] for column in (offsets, sizes))
        return place, offset, size, np.array(masks, np.uint32)[inside]

    def _check(self, place: np.ndarray, pipeline: Pipeline) -> None:
        beyond = (self.size > self._file.size) | (self.offset > self._file.size - self.size)
        absurd = self.size > pipeline.most_stored if pipeline.filters else self.size != pipeline.chunk_bytes
        for wrong, says in ((beyond, f"ends behind the end of the file, which has {self._file.size} bytes"),
                            (absurd, f"cannot be: decoded it has {pipeline.chunk_bytes} bytes")):  # fmt: skip
            if wrong.any():
                first = int(np.flatnonzero(wrong)[0])
                index = tuple(int(n) for n in np.unravel_index(int(place[first]), self._grid.counts))
                raise StoreError(
                    f"{self._where}: chunk {index}, {int(self.size[first])} bytes at offset {int(self.offset[first])}, "
                    f"{says}; the file is truncated or damaged"
                )

    def find(self, index: Index) -> tuple[int, int, int] | None:
        """A chunk's offset in the file, its size there and its mask of filters that were left out."""
        place = sum(i * stride for i, stride in zip(index, self._strides))
        row = place
        if self.place is not None:
            row = int(np.searchsorted(self.place, place))
            if row >= self.place.size or int(self.place[row]) != place:
                return None
        return int(self.offset[row]), int(self.size[row]), 0 if self.mask is None else int(self.mask[row])

    def masks(self) -> list[int]:
        """Every mask that some chunk has."""
        if self.mask is None:
            return [0] if self.size.size else []
        return [int(mask) for mask in np.unique(self.mask)]

    def edge_sizes(self, shape: Sequence[int]) -> np.ndarray:
        """What those chunks take of which a part lies outside the array."""
        place = np.arange(self.size.size) if self.place is None else self.place
        edge = np.zeros(place.size, bool)
        for extent, chunk, count, stride in zip(shape, self._grid.chunks, self._grid.counts, self._strides):
            if extent % chunk:
                edge |= place // stride % count == extent // chunk
        return self.size[edge]


def _tell_chunks(dataset: Any, tell: Callable[[Any], Any]) -> None:
    """Calls `tell` with what the library says of each chunk of a dataset, until it returns anything but None."""
    if hasattr(dataset, "chunk_iter"):
        dataset.chunk_iter(tell)
        return
    for number in range(dataset.get_num_chunks()):
        if tell(dataset.get_chunk_info(number)) is not None:
            return


def _counted_before(dataset: Any, chunks: Sequence[int], where: str) -> list[int] | None:
    """For a dataset of whose chunks the library tells wrong places: what `_put_right` needs, how many chunks there are
    room for along each dimension before the unlimited one. None where it tells the right places.

    Where one dimension is unlimited and is not the first, newer files list the chunks in an extensible array as if that
    dimension were the first. The library (2.0 still) finds a chunk by that rule, but tells of all as if the dimensions
    were in their order. Since an unlimited dimension has no end, it then tells of none beyond the first place of the
    dimensions before it. Older files have their chunks in a tree, which says the places itself, so that the two are
    told apart by where the library finds a chunk."""
    from h5py import h5s

    most = dataset.get_space().get_simple_extent_dims(True)
    if most.count(h5s.UNLIMITED) != 1:
        return None
    unlimited = most.index(h5s.UNLIMITED)
    before = [-(-extent // chunk) for extent, chunk in zip(most[:unlimited], chunks)]
    if math.prod(before) <= 1:
        return None
    last: tuple[int, ...] | None = None

    def look(chunk: Any) -> bool | None:
        nonlocal last
        if any(chunk.chunk_offset[:unlimited]):
            last = None
            return True
        if last is None or chunk.chunk_offset[unlimited] > last[unlimited]:
            last = chunk.chunk_offset
        return None

    _tell_chunks(dataset, look)
    # Of chunks that are told wrong, the right places are nearer to the beginning of the unlimited dimension: none of
    # them is where the last one is said to be.
    if last is None or not last[unlimited] or _has_chunk(dataset, last):
        return None
    number = np.array([last], np.uint64) // np.array(chunks, np.uint64)
    right = _put_right(number, before)[0].tolist()
    if not _has_chunk(dataset, tuple(n * chunk for n, chunk in zip(right, chunks))):
        raise StoreError(f"the HDF5 library does not find the chunk of {where} that it tells of at {last}")
    return before


def _has_chunk(dataset: Any, corner: tuple[int, ...]) -> bool:
    """Whether the library finds a chunk at a place."""
    try:
        dataset.read_direct_chunk(corner)
    except (OSError, RuntimeError, ValueError):
        return False
    return True


def _put_right(number: np.ndarray, before: Sequence[int]) -> np.ndarray:
    """The places of chunks in their grid, a row each, given the places that the library tells as `_counted_before` says
    it: all their numbers along the dimensions before the unlimited one are in that of the unlimited one."""
    right, rest = number.copy(), number[:, len(before)]
    for d in reversed(range(len(before))):
        rest, right[:, d] = np.divmod(rest, np.uint64(before[d]))
    right[:, len(before)] = rest
    return right


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Arrays as one, the parts let go of."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


class ChunkedReader(ArrayReader):
    """A chunked dataset. The facts' shape may be larger than the dataset, as NetCDF has arrays that did not grow with
    an unlimited dimension; what is not there has the fill value."""

    sparse = True

    def __init__(self, file: OpenFile, dataset: Any, facts: ArrayFacts, where: str) -> None:
        assert facts.dtype is not None
        self.where, self.facts, self._file, self._dataset = where, facts, file, dataset
        plist = dataset.get_create_plist()
        chunks = tuple(int(n) for n in plist.get_chunk())
        self.grid = Grid(facts.shape, chunks)
        self._held = tuple(int(n) for n in dataset.shape)
        self._pipeline = Pipeline(filters_of(plist), math.prod(chunks) * facts.dtype.itemsize)
        self._table = ChunkTable(dataset, self.grid, file, self._pipeline, where)
        not_own = [mask for mask in self._table.masks() if not self._pipeline.own(mask)]
        for mask in not_own:
            self._pipeline.need_plugins(mask)
        self._plain_edges = self._edges_may_be_plain()
        self.joins = file.file.joins
        # The library decodes one chunk at a time: it holds what it reads and what it makes of that.
        by_library = 2 * self._pipeline.chunk_bytes if not_own else 0
        self.held_bytes = file.held_bytes() + by_library
        self.thread_bytes = file.thread_bytes(self._pipeline.chunk_bytes) + self._pipeline.between_bytes

    def _edges_may_be_plain(self) -> bool:
        """Whether chunks at the edge may be stored without filters and without a mask that says so, an option of HDF5
        1.10 that h5py does not tell: all of them then take as much as their elements."""
        if not self._pipeline.filters:
            return False
        sizes = self._table.edge_sizes(self._held)
        return bool(sizes.size and (sizes == self._pipeline.chunk_bytes).all())

    def _said(self, index: Index) -> str:
        return f"{self.where}: chunk {index}"

    def read(self, index: Index) -> Any:
        found = self._table.find(index)
        if found is None:
            return None
        offset, size, mask = found
        if self._is_library_s(index, size, mask):
            return np.broadcast_to(np.uint8(0), size), None  # as many bytes, which the library will read
        return self._file.read(size, offset, self._said(index)), mask

    def read_each(self, indices: Sequence[Index]) -> Iterator[Any]:
        return self._read_together(indices) if self.joins else super().read_each(indices)

    def _read_together(self, indices: Sequence[Index]) -> Iterator[Any]:
        parts: list[Part] = []
        masks: dict[Index, int] = {}
        for index in indices:
            found = self._table.find(index)
            if found is not None and not self._is_library_s(index, *found[1:]):
                parts.append((found[1], found[0], self._said(index)))
                masks[index] = found[2]
        read = self._file.read_parts(parts)
        for index in indices:
            yield (next(read), masks[index]) if index in masks else self.read(index)

    def _is_library_s(self, index: Index, size: int, mask: int) -> bool:
        if not self._pipeline.own(mask):
            return True
        if not self._plain_edges or mask or size != self._pipeline.chunk_bytes:
            return False
        return any((i + 1) * chunk > held for i, chunk, held in zip(index, self.grid.chunks, self._held))

    def decode(self, index: Index, stored: Any) -> np.ndarray:
        data, mask = stored
        start, extents = self.grid.start(index), self.grid.extents(index)
        held = tuple(max(0, min(n, h - s)) for n, h, s in zip(extents, self._held, start))
        if mask is None:
            with library_reads(self._file.file):
                chunk = read_by_library(self._dataset, start, held, self.facts.dtype, self._said(index))
        else:
            plain = decoded(self._pipeline, data, mask, self._said(index))
            chunk = np.frombuffer(plain, self.facts.dtype).reshape(self.grid.chunks)
            chunk = chunk[tuple(map(slice, held))]
        return chunk if held == extents else self._filled_up(chunk, extents)

    def check(self) -> None:
        self._file.check()

    def _filled_up(self, chunk: np.ndarray, extents: tuple[int, ...]) -> np.ndarray:
        plain = as_bytes(chunk)
        whole = np.empty(extents, plain.dtype)
        whole[...] = np.frombuffer(self.facts.fill or bytes(chunk.itemsize), plain.dtype)
        whole[tuple(map(slice, chunk.shape))] = plain
        return whole.view(chunk.dtype)


def decoded(pipeline: Pipeline, data: Any, mask: int, said: str) -> Any:
    """A chunk's elements as bytes. Raises StoreError, which names the chunk as `said`."""
    try:
        return pipeline.decode(data, mask)
    except DamagedError as error:
        raise StoreError(f"{said} is damaged: {error}") from None


def read_by_library(
    dataset: Any, start: tuple[int, ...], extents: tuple[int, ...], dtype: np.dtype | None, said: str
) -> np.ndarray:
    """A box of a dataset, decoded by the HDF5 library, one box at a time."""
    from h5py import h5s

    part = np.empty(extents, dtype)
    if part.size:
        with library_lock(), told(f"{said} cannot be read by the HDF5 library"):
            space = dataset.get_space()
            space.select_hyperslab(start, extents)
            dataset.read(h5s.create_simple(extents), space, part.reshape(-1).view(np.uint8), dataset.get_type())
    return part


class ContiguousReader(ArrayReader):
    """A dataset whose elements lie in the file one after the other."""

    addressable = True

    def __init__(self, file: OpenFile, dataset: Any, facts: ArrayFacts, where: str) -> None:
        assert facts.dtype is not None
        self.where, self.facts, self._file = where, facts, file
        self.grid = rows_of(facts.shape, facts.dtype.itemsize)
        from h5py import h5d

        with told(f"cannot read where {where} lies"):
            is_there = dataset.get_space_status() != h5d.SPACE_STATUS_NOT_ALLOCATED
            # Behind a user block, one that nothing has been written to has an offset too, which means nothing.
            offset = dataset.get_offset() if is_there else None
        self.sparse = offset is None
        self.addressable = not self.sparse
        if offset is not None and facts.nbytes > file.size - offset:
            raise StoreError(
                f"{where}, {facts.nbytes} bytes at offset {offset}, ends behind the end of the file, which has "
                f"{file.size} bytes; the file is truncated or damaged"
            )
        self.held_bytes, self.thread_bytes = file.held_bytes(), file.thread_bytes(PIECE_BYTES)
        self._array = FileArray(file.path, offset or 0, facts.shape, "C", facts.dtype.itemsize)

    def read(self, index: Index) -> Any:
        if self.sparse:
            return None
        return self._bytes(self.grid.start(index), self.grid.extents(index))

    def decode(self, index: Index, stored: Any) -> np.ndarray:
        return np.frombuffer(stored, self.facts.dtype).reshape(self.grid.extents(index))

    def read_box(self, start: Sequence[int], extents: Sequence[int]) -> np.ndarray:
        return np.frombuffer(self._bytes(start, extents), self.facts.dtype).reshape(extents)

    def check(self) -> None:
        self._file.check()

    def _bytes(self, start: Sequence[int], extents: Sequence[int]) -> Any:
        box = Box(self._array, start, extents)
        if box.runs == 1:
            return self._file.read(box.run_bytes, box.offsets(0, 1)[0], self.where)
        data = bytearray(box.nbytes)
        for first in range(0, box.runs, _BATCH):
            last = min(first + _BATCH, box.runs)
            part = memoryview(data)[first * box.run_bytes : last * box.run_bytes]
            self._file.read_runs(box.offsets(first, last), part)
        return data


class CompactReader(ArrayReader):
    """A dataset that lies in the file's metadata: 64 KiB at most, read at once."""

    def __init__(self, file: OpenFile, dataset: Any, facts: ArrayFacts, where: str) -> None:
        from h5py import h5s

        self.where, self.facts, self._file = where, facts, file
        self.grid = Grid(facts.shape, tuple(max(1, n) for n in facts.shape))
        if facts.nbytes > 1 << 16:
            raise StoreError(f"{where} is said to be compact, but has {facts.nbytes} bytes; its file is damaged")
        self._elements = np.empty(facts.shape, facts.dtype)
        if self._elements.size:
            with told(f"cannot read {where}"):
                flat = self._elements.reshape(-1).view(np.uint8)
                dataset.read(h5s.ALL, h5s.ALL, flat, dataset.get_type())

    def read(self, index: Index) -> Any:
        return self._elements.reshape(-1).view(np.uint8).data

    def decode(self, index: Index, stored: Any) -> np.ndarray:
        return np.frombuffer(stored, self.facts.dtype).reshape(self.facts.shape)

    def check(self) -> None:
        self._file.check()


def as_bytes(elements: np.ndarray) -> np.ndarray:
    """The same elements, each nothing but its bytes: NumPy copies those of fields without what lies between them."""
    return elements.view(f"V{elements.itemsize}")


def allocated_end(fd: int, start: int) -> int:
    """Where what an HDF5 file has given away ends, as its superblock, `start` bytes into the file, has it on the disk.
    What is allocated next lies there, even if chunks of a killed process do already."""
    superblock = os.pread(fd, 96, start)
    version = superblock[8]
    width, first = (superblock[13], 24 + 4 * version) if version < 2 else (superblock[9], 12)
    return int.from_bytes(superblock[first + 2 * width : first + 3 * width], "little")


def rows_of(shape: Sequence[int], itemsize: int, most: int = PIECE_BYTES) -> Grid:
    """A grid for an array that lies one element after the other: whole trailing dimensions, so many bytes at most."""
    chunks = [1] * len(shape)
    room = max(1, most // itemsize)
    for d in reversed(range(len(shape))):
        chunks[d] = max(1, min(shape[d], room))
        room //= chunks[d]
        if chunks[d] < shape[d]:
            break
    return Grid(tuple(shape), tuple(chunks))
