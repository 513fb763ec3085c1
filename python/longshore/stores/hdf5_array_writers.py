"""The chunked arrays of an HDF5 file that is being made: chunks are encoded by whichever thread has one, and come to
the library as they are to be stored."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from .array import ArrayFacts, ArrayWriter, Grid, Index
from .hdf5_chunks import ChunkTable, decoded, read_by_library
from .hdf5_files import OpenFile
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

    def encode(self, index: Index, chunk: np.ndarray, *, at_once: bool = False) -> Any:
        flat = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8)
        if self._library is not None:
            with told(f"{self.where}: chunk {index} cannot be encoded"):
                return self._library.encode(flat)
        stored = self._pipeline.encode(flat)
        return (flat.copy() if stored is flat and not at_once else stored), 0

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
                file = replace(self._file, size=self._file.file.size())
                self._table = ChunkTable(self._dataset, self.grid, file, self._pipeline, self.where)
            found = self._table.find(index)
        if found is None:
            return None
        offset, size, mask = found
        return self._file.read(size, offset, said), mask
