"""What stores say of their arrays, and how chunks come from them and go to them: all that a move knows of a format.

A format is a module with a reader and a writer. A reader tells what a file or folder holds (`StoreReader.tree`), and
hands out an `ArrayReader` for each array, which brings chunks; a writer makes what a tree of the same kind describes
and hands out an `ArrayWriter` for each array, which takes chunks. What lies between is `rechunk`'s.
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

Index = tuple[int, ...]
"""Which chunk of a grid: its number in each dimension."""


@dataclass(frozen=True)
class ArrayFacts:
    """What a store says of an array, in words that no format owns. With a source it is what is there, with a
    destination what is wanted."""

    shape: tuple[int, ...]
    dtype: np.dtype | None
    """None: elements that no mover can hold (of variable length, objects); `type_name` says what they are."""
    chunks: tuple[int, ...] | None = None
    """Extents of what is stored (or, in a shard, encoded) at once; None: one after the other, as in a `.npy`."""
    shards: tuple[int, ...] | None = None
    """Extents of what lies in one file, where that holds several chunks (Zarr 3)."""
    boxes: tuple[int, ...] | None = None
    """Extents of what is written at once where `chunks` is None; None: as it suits the file."""
    codecs: tuple[str, ...] = ()
    """As `--codec` has them, what is applied first first: ("shuffle", "zstd:3")."""
    fill: bytes | None = None
    """One element's bytes as `dtype` has them, for chunks that are not there; None: the store does not say."""
    names: tuple[str | None, ...] | None = None
    """Of the dimensions."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Values are JSON's, or NumPy arrays and scalars."""
    order: str = "C"
    unlimited: tuple[int, ...] = ()
    """Dimensions that may grow."""
    type_name: str = ""
    """The format's own name of the element type, where NumPy has none for it ("bfloat16") or cannot hold it."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """What only a destination of the same format can use, by names that start with the format's: ("zarr.filters")."""
    stored_bytes: int | None = None
    """What its chunks take as they are stored, all together, if that was easy to find out."""

    @property
    def nbytes(self) -> int:
        """Of all its elements, decoded."""
        return math.prod(self.shape) * (self.dtype.itemsize if self.dtype is not None else 0)


@dataclass(frozen=True)
class LinkFacts:
    """A name that leads elsewhere: told, and kept within one format."""

    kind: str
    """"soft", "external", "reference" or as the format calls it."""
    target: str


@dataclass(frozen=True)
class GroupFacts:
    """A group of arrays and groups, or a whole file."""

    children: Mapping[str, ArrayFacts | GroupFacts | LinkFacts] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dimensions: Mapping[str, tuple[int, bool]] = field(default_factory=dict)
    """NetCDF: extents of the dimensions that it defines, and whether they may grow."""

    def arrays(self, prefix: str = "") -> Iterator[tuple[str, ArrayFacts]]:
        """Every array below, with its path ("a/b")."""
        for name, child in self.children.items():
            if isinstance(child, ArrayFacts):
                yield prefix + name, child
            elif isinstance(child, GroupFacts):
                yield from child.arrays(f"{prefix}{name}/")


Tree = GroupFacts | ArrayFacts
"""What a place in a store is: a group, or one array, whose path is then ""."""


@dataclass(frozen=True)
class Grid:
    """How an array is cut into chunks."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """How many chunks there are in each dimension."""
        return tuple(-(-extent // chunk) for extent, chunk in zip(self.shape, self.chunks))

    def start(self, index: Sequence[int]) -> tuple[int, ...]:
        return tuple(i * chunk for i, chunk in zip(index, self.chunks))

    def extents(self, index: Sequence[int]) -> tuple[int, ...]:
        """Of one chunk, those at the end cut off where the array ends."""
        return tuple(min(chunk, extent - i * chunk) for i, chunk, extent in zip(index, self.chunks, self.shape))

    def over(self, lo: Sequence[int], hi: Sequence[int]) -> tuple[range, ...]:
        """The chunks, a range a dimension, that have something of a box."""
        return tuple(range(a // chunk, -(-b // chunk)) for a, b, chunk in zip(lo, hi, self.chunks))

    def indices(self) -> Iterator[Index]:
        """Every chunk, the last dimension fastest."""
        return itertools.product(*map(range, self.counts))


class ArrayReader(ABC):
    """An open array of a store. All methods may be called from several threads at once."""

    where: str
    """For messages: "era5.zarr/t2m"."""
    facts: ArrayFacts
    grid: Grid
    """What `read` gives at once. Of an array that can be addressed, a grid that suits its store."""
    addressable: bool = False
    """Whether `read_box` reads any box for what it takes: elements lie in the file as they are."""
    sparse: bool = False
    """Whether chunks may be missing."""
    joins: bool = False
    """Whether `read_each` asks for several chunks at once, so that it pays to give it several."""
    held_bytes: int = 0
    """What it holds beside chunks, for all threads together."""
    thread_bytes: int = 0
    """What each thread that reads holds beside a chunk."""

    @abstractmethod
    def read(self, index: Index) -> Any:
        """A chunk's bytes as they are stored (whatever `decode` takes: bytes, or bytes and a filter mask); None where
        it is missing. Raises StoreError, which names the chunk."""

    def read_each(self, indices: Sequence[Index]) -> Iterator[Any]:
        """What `read` gives, of several chunks. A reader that `joins` may hold all of them at once."""
        return map(self.read, indices)

    @abstractmethod
    def decode(self, index: Index, stored: Any) -> np.ndarray:
        """The elements of a chunk that `read` gave, of `facts.dtype` and of `grid.extents(index)`, in any strides.
        Raises StoreError, which names the chunk, where its bytes are not what they should be."""

    def read_box(self, start: Sequence[int], extents: Sequence[int]) -> np.ndarray:
        """Any box; where `addressable`."""
        raise NotImplementedError

    def read_into(self, start: Sequence[int], out: np.ndarray) -> None:
        """Fills an array of `facts.dtype`, in any strides, with the box of its shape; where `addressable`."""
        out[...] = self.read_box(start, out.shape)

    def check(self) -> None:  # noqa: B027, of most every read is checked
        """Raises StoreError where what has been read is known to be another file, or to have been written again, since
        the store was opened."""

    def close(self) -> None:  # noqa: B027, most have nothing of their own to close
        """Lets go of what the array alone holds open."""


def without_holes(elements: np.ndarray) -> np.ndarray:
    """Elements with zeros between their fields, where a compiler would leave room (`align=True`): what lies there is no
    part of an element, and not every format keeps it."""
    mask = _bytes_of_fields(elements.dtype)
    if mask.all():
        return elements
    plain = np.ascontiguousarray(elements).reshape(-1).view(np.uint8).reshape(-1, len(mask)) & mask
    return plain.reshape(-1).view(elements.dtype).reshape(elements.shape)


@functools.lru_cache(64)
def _bytes_of_fields(dtype: np.dtype) -> np.ndarray:
    """Of an element's bytes 255 for each that a field has, and 0 for the others."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.tile(_bytes_of_fields(base), math.prod(shape))
    if dtype.fields is None:
        return np.full(dtype.itemsize, 255, np.uint8)
    mask = np.zeros(dtype.itemsize, np.uint8)
    for part, offset, *_ in dtype.fields.values():
        mask[offset : offset + part.itemsize] |= _bytes_of_fields(part)
    return mask


_TOGETHER_BYTES, _TOGETHER = 1 << 20, 64
Chunk = TypeVar("Chunk")


def together(reader: ArrayReader, chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    """What there is of chunks, in lists of as many as a thread is to read at once: one, or about a megabyte of elements
    where the reader `joins` them."""
    assert reader.facts.dtype is not None
    chunk_bytes = math.prod(reader.grid.chunks) * reader.facts.dtype.itemsize
    many = max(1, min(_TOGETHER, _TOGETHER_BYTES // max(1, chunk_bytes))) if reader.joins else 1
    left = iter(chunks)
    while batch := list(itertools.islice(left, many)):
        yield batch


class StoreReader(ABC):
    """An open file or folder, or a part of one (a group, one array)."""

    format: str
    """For people: "Zarr 3", "HDF5"."""
    path: str
    tree: Tree
    files: Sequence[str] = ()
    """Paths or URLs of files that are read and need not lie below the place that was opened."""

    @abstractmethod
    def array(self, path: str = "") -> ArrayReader:
        """The array at a path of the tree ("a/b"); "" where the tree is an array."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Something that differs once what is read has been changed: names, sizes and times of all files that are read,
        as far as their place can tell."""

    def close(self) -> None:  # noqa: B027
        """Closes what is open."""


class ArrayWriter(ABC):
    """An array of a store that is being made. All methods may be called from several threads at once."""

    where: str
    facts: ArrayFacts
    grid: Grid
    """What `write` takes at once. Of an array that can be addressed, a grid that suits its store."""
    sparse: bool = False
    """Whether a chunk that is never written reads as `facts.fill`."""

    @abstractmethod
    def encode(self, index: Index, chunk: np.ndarray, *, at_once: bool = False) -> Any:
        """What `write` takes for a chunk: its elements encoded. `chunk` has the extents `grid.chunks`, dense, in C
        order, of `facts.dtype`; beyond the array's end it holds the fill value. It is not used after the return, unless
        what is returned is written `at_once`, before the chunk's memory is used for something else."""

    @abstractmethod
    def write(self, index: Index, stored: Any) -> int:
        """Puts a chunk where it belongs, and returns how many bytes that took. A chunk may be written again, the same
        bytes, after a kill."""

    @abstractmethod
    def read(self, index: Index) -> np.ndarray | None:
        """A chunk that was written, from the store and decoded, of `grid.extents(index)`; None where none was."""

    def sync(self, index: Index) -> None:  # noqa: B027
        """Brings a chunk that was written to the disk, where each has a file of its own; `StoreWriter.sync` does all
        others."""


class SharedTarget(Protocol):
    """An array of a store that is being made, for other processes that write chunks of it: a value that can be
    pickled."""

    @property
    def where(self) -> str:
        """For messages."""

    @property
    def facts(self) -> ArrayFacts:
        """What its chunks are; attributes and names are of no account."""

    def open(self) -> AbstractContextManager[ArrayWriter]:
        """What has been written is on the disk in the end. Raises StoreError where the files are not there."""


class StoreWriter(ABC):
    """A file or folder that is being made, under a hidden name that a `Publication` has made (an empty file, or an
    empty folder); with `resume` one that a killed run has left there."""

    format: str
    folder: bool
    """Whether a folder is made."""

    @staticmethod
    @abstractmethod
    def losses(tree: Tree) -> list[str]:
        """What of a tree this format cannot hold, a phrase each, naming it: "the dimension names of a/b". Arrays that
        cannot be moved (`dtype` None) are among them."""

    @staticmethod
    def holds(facts: ArrayFacts) -> bool:
        """Whether the format has a type for an array's elements."""
        return facts.dtype is not None

    @abstractmethod
    def create(self, tree: Tree) -> None:
        """Makes groups, arrays, attributes: everything but chunks. Where something cannot be held, it is left out."""

    @abstractmethod
    def array(self, path: str = "") -> ArrayWriter:
        """The array at a path of the tree that was made."""

    def shared(self, path: str, facts: ArrayFacts) -> SharedTarget | None:
        """The array at a path, made of these facts, for other processes; None where only this one can write it."""
        return None

    def sync(self) -> None:  # noqa: B027
        """Brings to the disk what has been written, so that a journal may say so."""

    def sync_of_all(self) -> None:
        """Like `sync`, with what other processes have written, where several may."""
        self.sync()

    @abstractmethod
    def finish(self) -> None:
        """Everything has been written: brings it to the disk and closes it."""

    def close(self) -> None:  # noqa: B027
        """Closes what is open, finished or not."""
