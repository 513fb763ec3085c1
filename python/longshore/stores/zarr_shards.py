"""Shards of Zarr 3: several chunks in one file, and an index that says where each of them lies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import StoreError
from .zarr_pipeline import Pipeline, Stage, Step

MISSING = 2**64 - 1
_MAX_CHUNKS = 1 << 22


class ShardIndex:
    """The index of the shards of an array: where it lies and how it is encoded."""

    def __init__(self, counts: Sequence[int], pipeline: Pipeline, at_end: bool) -> None:
        self.counts = tuple(counts)
        """How many chunks a shard has in each dimension."""
        self.chunks = math.prod(self.counts)
        if not pipeline.exact:
            raise StoreError("its shard index is compressed, so nobody knows where it starts")
        self._pipeline = pipeline
        self.size = pipeline.most
        """Of the encoded index, in bytes."""
        self.at_end = at_end

    def start(self, file_size: int) -> int:
        """Where the index starts in a shard."""
        if file_size < self.size:
            raise StoreError(f"it has {file_size} bytes, its index alone has {self.size}")
        return file_size - self.size if self.at_end else 0

    def decode(self, raw: Any) -> np.ndarray:
        """Offset and length of every chunk."""
        return self._pipeline.decode(raw).reshape(-1, 2)

    def encode(self, entries: np.ndarray) -> Any:
        return self._pipeline.encode(entries.reshape((*self.counts, 2)))

    def ready(self) -> None:
        self._pipeline.ready()

    def slot(self, index: Sequence[int]) -> int:
        """The number in its shard of a chunk of the array's grid."""
        slot = 0
        for number, count in zip(index, self.counts):
            slot = slot * count + number % count
        return slot

    def shard(self, index: Sequence[int]) -> tuple[int, ...]:
        """Which shard a chunk lies in."""
        return tuple(number // count for number, count in zip(index, self.counts))


def shard_counts(shard: Sequence[int], chunk: Sequence[int]) -> tuple[int, ...]:
    """How many chunks a shard has in each dimension. Raises StoreError where they do not fit."""
    if len(shard) != len(chunk) or any(extent % part for extent, part in zip(shard, chunk)):
        raise StoreError(f"its shards of {list(shard)} are no whole number of chunks of {list(chunk)}")
    counts = tuple(extent // part for extent, part in zip(shard, chunk))
    if math.prod(counts) > _MAX_CHUNKS:
        raise StoreError(f"its shards have {math.prod(counts)} chunks each; at most {_MAX_CHUNKS} are supported")
    return counts


def check_entry(offset: int, length: int, file_size: int, most: int) -> bool:
    """Whether a chunk is there. Raises StoreError where it cannot lie there."""
    if offset == MISSING and length == MISSING:
        return False
    if offset + length > file_size:
        raise StoreError(
            f"its shard index says that it has {length} bytes from byte {offset} on; the shard has {file_size}"
        )
    if length > most:
        raise StoreError(f"its shard index says that it has {length} bytes; at most {most} can be right")
    return True


class ShardStep(Step):
    """The sharding codec inside a chunk: of a shard in a shard, or of shards that are compressed as a whole."""

    word = "sharding"

    def __init__(self, name: str, before: Stage, inner: Pipeline, index: ShardIndex, fill: bytes) -> None:
        most = index.size + index.chunks * inner.most
        super().__init__(name, before, before.bytes_of(most, False))
        self._inner = inner
        self._index = index
        self._fill = np.frombuffer(fill, inner.dtype)[0]

    def ready(self) -> None:
        self._inner.ready()
        self._index.ready()

    def _places(self) -> list[tuple[slice, ...]]:
        places = itertools.product(*map(range, self._index.counts))
        return [tuple(slice(i * n, (i + 1) * n) for i, n in zip(at, self._inner.shape)) for at in places]

    def encode(self, data: np.ndarray) -> np.ndarray:
        shard = data.view(self._inner.dtype).reshape(self.before.shape)
        entries = np.full((self._index.chunks, 2), MISSING, "<u8")
        pieces: list[Any] = []
        offset = 0 if self._index.at_end else self._index.size
        for slot, place in enumerate(self._places()):
            piece = memoryview(self._inner.encode(shard[place])).cast("B")
            entries[slot] = offset, len(piece)
            offset += len(piece)
            pieces.append(piece)
        pieces.insert(len(pieces) if self._index.at_end else 0, self._index.encode(entries))
        return np.frombuffer(b"".join(pieces), "u1")

    def decode(self, data: np.ndarray) -> np.ndarray:
        start = self._index.start(len(data))
        entries = self._index.decode(data[start : start + self._index.size])
        assert self.before.shape is not None
        shard = np.full(self.before.shape, self._fill, self._inner.dtype)
        for slot, place in enumerate(self._places()):
            offset, length = (int(number) for number in entries[slot])
            if check_entry(offset, length, len(data), self._inner.most):
                shard[place] = self._inner.decode(data[offset : offset + length])
        return shard
