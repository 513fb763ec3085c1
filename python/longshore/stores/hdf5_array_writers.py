"""The arrays of an HDF5 file that is being made: chunks are encoded by whichever thread has one, and come to the
library as they are to be stored; elements of contiguous arrays do not come to it at all."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import StoreError
from .array import ArrayFacts, ArrayWriter, Grid, Index
from .boxes import must_see
from .hdf5_chunks import ChunkTable, OpenFile, as_bytes, decoded, read_by_library, rows_of
from .hdf5_filters import Library, Pipeline, filters_from, filters_of
from .hdf5_values import library_lock, told

_MOST_NEW = 1 << 16


class ChunkWriter(ArrayWriter):
    """A chunked dataset that is being made."""

    sparse = True

    def __init__(self, file: OpenFile, dataset: Any, facts: ArrayFacts, grid: Grid, where: str) -> None:
        assert facts.dtype is not None
        self.where, self.facts, self.grid = where, facts, grid
        self._file, self._dataset, self._lock = file, dataset, library_lock()
        chunk_bytes = math.prod(grid.chunks) * facts.dtype.itemsize
        self._pipeline = Pipeline(filters_of(dataset.get_create_plist()), chunk_bytes)
        self._library: Library | None = None
        if not self._pipeline.own():
            wanted = filters_from(facts.codecs, facts.dtype.itemsize, chunk_bytes)
            self._library = Library(dataset.get_type(), wanted, grid.chunks)
        # To find one chunk the library looks through all: where they lie is asked once, when the first is read, and
        # those that have been written since are kept beside it, with their masks of filters that were left out, which
        # the library forgets of the chunk that was written last.
        self._table: ChunkTable | None = None
        self._new: dict[Index, int] = {}

    def encode(self, index: Index, chunk: np.ndarray) -> Any:
        flat = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8)
        if self._library is not None:
            with told(f"{self.where}: chunk {index} cannot be encoded"):
                return self._library.encode(flat)
        stored = self._pipeline.encode(flat)
        # The caller may use the chunk's memory again.
        return (flat.copy() if stored is flat else stored), 0

    def write(self, index: Index, stored: Any) -> int:
        data, mask = stored
        with self._lock, told(f"{self.where}: chunk {index} cannot be written"):
            self._dataset.write_direct_chunk(self.grid.start(index), data, mask)
            if self._table is not None:
                self._new[index] = mask
                if len(self._new) > _MOST_NEW:
                    self._table = None
                    self._new.clear()
        return len(data)

    def read(self, index: Index) -> np.ndarray | None:
        said = f"{self.where}: chunk {index}"
        found = self._stored(index, said)
        if found is None:
            return None
        data, mask = found
        extents = self.grid.extents(index)
        if not self._pipeline.own(mask):
            return read_by_library(self._dataset, self.grid.start(index), extents, self.facts.dtype, said)
        plain = decoded(self._pipeline, data, mask, said)
        return np.frombuffer(plain, self.facts.dtype).reshape(self.grid.chunks)[tuple(map(slice, extents))]

    def _stored(self, index: Index, said: str) -> tuple[Any, int] | None:
        """A chunk's bytes in the file, and its mask of filters that were left out; None where there is none."""
        with self._lock, told(f"{said} cannot be found"):
            if index in self._new:
                return self._dataset.read_direct_chunk(self.grid.start(index))[1], self._new[index]
            if self._table is None:
                file = replace(self._file, size=os.fstat(self._file.fd).st_size)
                self._table = ChunkTable(self._dataset, self.grid, file, self._pipeline, self.where)
            found = self._table.find(index)
        if found is None:
            return None
        offset, size, mask = found
        return self._file.read(size, offset, said), mask


class ContiguousWriter(ArrayWriter):
    """A contiguous dataset that is being made: its place in the file is there, its elements are written to it."""

    def __init__(self, file: OpenFile, offset: int | None, facts: ArrayFacts, where: str) -> None:
        assert facts.dtype is not None
        self.where, self.facts, self._file, self._offset = where, facts, file, offset or 0
        self.grid = rows_of(facts.shape, facts.dtype.itemsize)

    def _place(self, index: Index) -> tuple[int, int]:
        """Where a chunk begins in the file, and its bytes, which follow each other."""
        assert self.facts.dtype is not None
        itemsize, first, stride = self.facts.dtype.itemsize, 0, 1
        for start, extent in zip(reversed(self.grid.start(index)), reversed(self.facts.shape)):
            first += start * stride
            stride *= extent
        return self._offset + first * itemsize, math.prod(self.grid.extents(index)) * itemsize

    def encode(self, index: Index, chunk: np.ndarray) -> Any:
        own = as_bytes(chunk)[tuple(map(slice, self.grid.extents(index)))]
        return np.array(own, order="C", copy=True).reshape(-1).view(np.uint8)

    def write(self, index: Index, stored: Any) -> int:
        view, (place, _) = memoryview(stored), self._place(index)
        done = 0
        try:
            while done < len(view):
                done += os.pwrite(self._file.fd, view[done : done + (1 << 30)], place + done)
        except OSError as error:
            said = f"{self.where}: chunk {index} cannot be written: {error.strerror}"
            raise StoreError(error.errno, said) from None
        return len(view)

    def read(self, index: Index) -> np.ndarray | None:
        place, count = self._place(index)
        data = self._file.read(count, place, f"{self.where}: chunk {index}")
        return np.frombuffer(data, self.facts.dtype).reshape(self.grid.extents(index))

    def shared(self) -> ContiguousTarget:
        return ContiguousTarget(self._file.path, self._offset, replace(self.facts, attributes={}, own={}), self.where)


@dataclass(frozen=True)
class ContiguousTarget:
    """A contiguous dataset that has been made, for another process that writes some of its elements to the file."""

    path: str
    offset: int
    facts: ArrayFacts
    where: str

    @contextmanager
    def open(self) -> Iterator[ContiguousWriter]:
        must_see(self.path)
        try:
            with open(self.path, "r+b", buffering=0) as file:
                there = OpenFile(self.path, file.fileno(), os.fstat(file.fileno()).st_size)
                yield ContiguousWriter(there, self.offset, self.facts, self.where)
                os.fsync(file.fileno())
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(error.errno, f"cannot write {self.path}: {error.strerror}") from None
