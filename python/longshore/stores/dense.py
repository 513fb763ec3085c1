"""Arrays whose elements lie in files as they are, read and written chunk by chunk, and the store of one such file, a
`.npy`.

`DenseReader` and `DenseWriter` move boxes of any array that is made of files of elements; `shards` and `safetensors`
use them too.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from .._core import Layout
from .._words import short
from ..errors import ArgumentError, StoreError
from . import writeback
from .array import (
    ArrayFacts,
    ArrayReader,
    ArrayWriter,
    Grid,
    GroupFacts,
    Index,
    LinkFacts,
    StoreReader,
    StoreWriter,
    Tree,
)
from .boxes import Box, FileArray, Files, create_array_file, must_see, sync_file
from .npy import descr_of, encode_header, npy_header, value_names
from .object_places import is_url, without_password
from .random_access import fingerprint_of, held_by_reads, open_plain
from .store import destination_layout

CHUNK_BYTES = 4 << 20
"""About what is read or written at once where a store itself has no chunks."""
_FILES_AT_ONCE = 32  # open descriptors a thread
_DIVISORS_TRIED = 1024


class SharedFiles:
    """Files that several threads read and write at once. Each call takes a `Files` of its own from those that are free,
    so there are as many as calls have run at the same time."""

    def __init__(self) -> None:
        self._free: list[Files] = []
        self._unsynced: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def _files(self) -> Iterator[Files]:
        with self._lock:
            files = self._free.pop() if self._free else Files(limit=_FILES_AT_ONCE)
        try:
            yield files
        finally:
            with self._lock:
                self._free.append(files)

    def read(self, box: Box, part: np.ndarray) -> None:
        """Reads a box into an array that is contiguous in the order of the box's file."""
        with self._files() as files:
            files.read([(box, _bytes_of(part, box.array.order))])

    def write(self, work: Sequence[tuple[Box, np.ndarray]]) -> int:
        """Writes boxes from arrays that are contiguous in the order of their files, and returns how many bytes."""
        self.changed(box.array.path for box, _ in work)
        with self._files() as files:
            files.write([(box, _bytes_of(part, box.array.order)) for box, part in work])
        return sum(part.nbytes for _, part in work)

    def changed(self, paths: Iterable[str]) -> None:
        """Says that these files have something that the disk may not have."""
        with self._lock:
            self._unsynced.update(paths)

    def sync(self) -> None:
        """Brings to the disk what has been written since the last time."""
        with self._lock:
            paths, self._unsynced = self._unsynced, set()
        try:
            writeback.wait_for_each(sync_file, paths)
        except BaseException:
            self.changed(paths)
            raise

    def check(self) -> None:
        """Raises StoreError where a file that was read, and no call uses at the moment, is known to be another one."""
        with self._lock:
            free = list(self._free)
        for files in free:
            files.check()

    def close(self) -> None:
        """Closes the files that no call uses at the moment."""
        with self._lock:
            free, self._free = self._free, []
        for files in free:
            files.close()


def _bytes_of(part: np.ndarray, order: Any) -> memoryview:
    return part.reshape(-1, order=order).view(np.uint8).data


@dataclass(frozen=True)
class Part:
    """What one file has of a box of an array; files that hold the same elements are one part."""

    boxes: tuple[Box, ...]
    shape: tuple[int, ...]
    indices: tuple[Any, ...] | None
    """What to index the box with to reach the part's elements; None where it is the whole box."""


class Pieces(Protocol):
    """Where the elements of an array lie, in one file or several."""

    shape: tuple[int, ...]
    order: str
    arrays: list[FileArray]

    def parts(self, start: Sequence[int], extents: Sequence[int]) -> Iterator[Part]:
        """The parts that a box, which is not empty, is put together from."""

    def blocks(self) -> Sequence[int]:
        """The extents of the boxes that one file has, where all are alike; else of the whole array."""


class OneFile:
    """An array whose elements lie in one file, one after the other."""

    def __init__(self, array: FileArray) -> None:
        self.arrays, self.shape, self.order = [array], array.shape, array.order

    def parts(self, start: Sequence[int], extents: Sequence[int]) -> Iterator[Part]:
        yield Part((Box(self.arrays[0], start, extents),), tuple(extents), None)

    def blocks(self) -> Sequence[int]:
        return self.shape


class ShardFiles:
    """An array that a layout deals to ranks, each of which has a file for its own."""

    def __init__(self, layout: Layout, arrays: list[FileArray]) -> None:
        self.arrays, self.layout, self.shape = arrays, layout, layout.shape
        self.order: str = layout.order
        # Ranks are found by what they own in each dimension, so that a box costs the sum of the grid's extents to look
        # up and not their product. Ranks that own the same in all dimensions hold copies of each other.
        numbers: list[dict[Any, int]] = [{} for _ in layout.shape]
        self._examples: list[list[int]] = [[] for _ in layout.shape]
        self._holders: dict[tuple[int, ...], list[tuple[int, FileArray]]] = {}
        for rank, array in zip(layout.ranks, arrays):
            if 0 in array.shape:
                continue
            place = []
            for known, examples, runs in zip(numbers, self._examples, layout.owned(rank)):
                place.append(known.setdefault(tuple(runs), len(known)))
                if len(known) > len(examples):
                    examples.append(rank)
            self._holders.setdefault(tuple(place), []).append((rank, array))

    def __reduce__(self) -> tuple[Any, ...]:
        return ShardFiles, (self.layout, self.arrays)

    def parts(self, start: Sequence[int], extents: Sequence[int]) -> Iterator[Part]:
        window = self.layout.window(start, [a + n for a, n in zip(start, extents)])
        owning = [
            [number for number, rank in enumerate(examples) if window.local_shape(rank)[d]]
            for d, examples in enumerate(self._examples)
        ]
        for place in itertools.product(*owning):
            holders = self._holders[place]
            rank = holders[0][0]
            shape, first = window.local_shape(rank), self.layout.local_start(rank, start)
            boxes = tuple(Box(array, first, shape) for _, array in holders)
            yield Part(boxes, shape, None if shape == tuple(extents) else window.indices(rank))

    def blocks(self) -> Sequence[int]:
        return [
            dim.block if dim.kind == "BLOCK" and dim.coordinates > 1 and dim.origin == 0 else dim.extent
            for dim in self.layout.distributions
        ]


def chunk_extents(pieces: Pieces, itemsize: int) -> tuple[int, ...]:
    """Extents of chunks of about CHUNK_BYTES that lie contiguously in the files of an array: they keep within the block
    of one file, or have whole blocks."""
    shape, blocks, order = pieces.shape, pieces.blocks(), pieces.order
    room = max(1, CHUNK_BYTES // itemsize)
    axes = range(len(shape)) if order == "F" else range(len(shape) - 1, -1, -1)  # from the fastest
    chunks = [1] * len(shape)
    for d in axes:
        whole = max(1, min(shape[d], blocks[d]))
        chunks[d] = whole if whole <= room else _piece_of(whole, room)
        room //= chunks[d]
        if chunks[d] < whole:
            return tuple(chunks)
    for d in axes:  # there is room for several blocks
        needed = -(-max(1, shape[d]) // chunks[d])
        taken = min(needed, room)
        chunks[d] = min(chunks[d] * taken, max(1, shape[d]))
        room //= taken
        if taken < needed:
            break
    return tuple(chunks)


def _piece_of(extent: int, room: int) -> int:
    """At most `room` of an extent that is larger: a divisor of it if one is not much smaller, else an equal part."""
    fewest = -(-extent // room)
    for pieces in range(fewest, min(2 * fewest, fewest + _DIVISORS_TRIED) + 1):
        if extent % pieces == 0:
            return extent // pieces
    return -(-extent // fewest)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Adds to a StoreError which chunk or box of which array it is about."""
    try:
        yield
    except StoreError as error:
        if error.errno is None:
            raise StoreError(f"{what}: {error}") from None
        raise StoreError(error.errno, f"{what}: {error.strerror}") from None


class DenseReader(ArrayReader):
    """An array whose elements lie in files as they are. Its chunks are ours alone: any box can be read."""

    addressable = True

    def __init__(self, where: str, facts: ArrayFacts, pieces: Pieces, files: SharedFiles) -> None:
        assert facts.dtype is not None
        self.where, self.facts = where, facts
        self._dtype, self._pieces, self._files = facts.dtype, pieces, files
        self.grid = Grid(pieces.shape, chunk_extents(pieces, self._dtype.itemsize))
        if any(is_url(array.path) for array in pieces.arrays[:1]):
            self.thread_bytes = held_by_reads(math.prod(self.grid.chunks) * self._dtype.itemsize)

    def read(self, index: Index) -> np.ndarray:
        with _told(f"chunk {index} of {self.where}"):
            return self._box(self.grid.start(index), self.grid.extents(index))

    def decode(self, index: Index, stored: np.ndarray) -> np.ndarray:
        return stored

    def read_box(self, start: Sequence[int], extents: Sequence[int]) -> np.ndarray:
        with _told(f"the box of extents {tuple(extents)} at {tuple(start)} of {self.where}"):
            return self._box(start, extents)

    def read_into(self, start: Sequence[int], out: np.ndarray) -> None:
        with _told(f"the box of extents {out.shape} at {tuple(start)} of {self.where}"):
            read_pieces_into(self._pieces, self._files, start, out)

    def _box(self, start: Sequence[int], extents: Sequence[int]) -> np.ndarray:
        return read_pieces(self._pieces, self._dtype, self._files, start, extents)

    def check(self) -> None:
        self._files.check()


def read_pieces(
    pieces: Pieces, dtype: np.dtype, files: SharedFiles, start: Sequence[int], extents: Sequence[int]
) -> np.ndarray:
    """A box of an array, put together from the files that have something of it."""
    order: Any = pieces.order
    box = np.empty(extents, dtype, order=order)
    read_pieces_into(pieces, files, start, box)
    return box


def read_pieces_into(pieces: Pieces, files: SharedFiles, start: Sequence[int], out: np.ndarray) -> None:
    """The same, to an array in any strides."""
    order: Any = pieces.order
    if out.size == 0:
        return
    dense = out.flags.c_contiguous if order == "C" else out.flags.f_contiguous
    for part in pieces.parts(start, out.shape):
        if part.indices is None and dense:
            files.read(part.boxes[0], out)
            continue
        elements = np.empty(part.shape, out.dtype, order=order)
        files.read(part.boxes[0], elements)
        out[... if part.indices is None else part.indices] = elements


Encoded = list[tuple[Box, np.ndarray]]


class DenseWriter(ArrayWriter):
    """An array whose elements are put into files as they are."""

    addressable = True
    """Whether `write_box` writes any box."""

    def __init__(
        self, where: str, facts: ArrayFacts, pieces: Pieces, files: SharedFiles, stored: np.dtype | None = None
    ) -> None:
        assert facts.dtype is not None
        self.where, self.facts = where, facts
        self._dtype, self._pieces, self._files = facts.dtype, pieces, files
        self._stored = facts.dtype if stored is None else stored  # differs at most in the order of bytes
        self.grid = Grid(pieces.shape, facts.boxes or chunk_extents(pieces, self._dtype.itemsize))

    def encode(self, index: Index, chunk: np.ndarray, *, at_once: bool = False) -> Encoded:
        extents = self.grid.extents(index)
        return self._encode(self.grid.start(index), chunk[tuple(slice(n) for n in extents)], at_once)

    def _encode(self, start: Sequence[int], box: np.ndarray, at_once: bool) -> Encoded:
        """What goes into each file, in that file's order."""
        encoded: Encoded = []
        order: Any = self._pieces.order
        if box.size == 0:
            return encoded
        stored = self._stored
        if stored.names is not None:  # of elements with fields NumPy would leave out what lies between them
            stored = np.dtype((np.void, stored.itemsize))
            box = box.view(stored)
        for part in self._pieces.parts(start, box.shape):
            own = box if part.indices is None else box[part.indices]
            elements = np.asarray(own, stored, order=order) if at_once else np.array(own, stored, order=order)
            encoded += [(to, elements) for to in part.boxes]
        return encoded

    def write(self, index: Index, stored: Encoded) -> int:
        with _told(f"chunk {index} of {self.where}"):
            return self._files.write(stored)

    def write_box(self, start: Sequence[int], box: np.ndarray) -> int:
        """Writes any box, elements of `facts.dtype` in any strides, and returns how many bytes that took."""
        with _told(f"the box of extents {box.shape} at {tuple(start)} of {self.where}"):
            return self._files.write(self._encode(start, box, at_once=True))

    def read(self, index: Index) -> np.ndarray:
        """A chunk as it is in the files now; zeros where none was written."""
        with _told(f"chunk {index} of {self.where}"):
            start, extents = self.grid.start(index), self.grid.extents(index)
            return read_pieces(self._pieces, self._stored, self._files, start, extents).astype(self._dtype, copy=False)

    def shared(self) -> DenseTarget:
        return DenseTarget(self.where, replace(self.facts, attributes={}, own={}), self._pieces, self._stored)


@dataclass(frozen=True)
class DenseTarget:
    """An array whose files have been made, for another process that writes some of their elements."""

    where: str
    facts: ArrayFacts
    pieces: Pieces
    stored: np.dtype

    @contextmanager
    def open(self) -> Iterator[DenseWriter]:
        must_see(self.pieces.arrays[0].path)
        files = SharedFiles()
        with closing(files):
            yield DenseWriter(self.where, self.facts, self.pieces, files, self.stored)
            files.sync()


class DenseStoreWriter(StoreWriter):
    """A store of such arrays, in files that any process may write."""

    _files: SharedFiles

    @abstractmethod
    def array(self, path: str = "") -> DenseWriter: ...

    def shared(self, path: str, facts: ArrayFacts) -> DenseTarget:
        return self.array(path).shared()

    def sync(self) -> None:
        self._files.sync()

    def finish(self) -> None:
        self.sync()
        self.close()

    def close(self) -> None:
        self._files.close()


# -- stores of one array ----------------------------------------------------------------------------------------------


def only_array(path: str, where: str) -> None:
    """Refuses a path within a store that is one array without names."""
    if path:
        raise ArgumentError(f"{where} holds one array without a name; there is no {path!r} in it")


class NpyReader(StoreReader):
    """One `.npy` file, at a path or a URL."""

    format = ".npy"

    def __init__(self, path: str) -> None:
        self.path, self._place = without_password(path), path
        header = npy_header(path)
        array = FileArray(path, header.data_offset, header.shape, header.order, header.dtype.itemsize, header.told)
        self.tree: ArrayFacts = ArrayFacts(
            header.shape, header.dtype, order=header.order, stored_bytes=header.data_bytes
        )
        self._pieces, self._files = OneFile(array), SharedFiles()

    def array(self, path: str = "") -> DenseReader:
        only_array(path, self.path)
        return DenseReader(self.path, self.tree, self._pieces, self._files)

    def fingerprint(self) -> str:
        return fingerprint_of([self._place])

    def close(self) -> None:
        self._files.close()


def nodes_of(node: Tree | LinkFacts, name: str = "") -> Iterator[tuple[str, Tree | LinkFacts]]:
    """A tree's groups, links and arrays, with their paths ("a/b"); "" for the tree itself."""
    yield name, node
    if isinstance(node, GroupFacts):
        for child, below in node.children.items():
            yield from nodes_of(below, f"{name}/{child}" if name else child)


def losses_of_tree(
    tree: Tree,
    of_array: Callable[[str, ArrayFacts], Iterator[str]],
    is_attribute: Callable[[str, Any], bool] = lambda key, value: False,
) -> Iterator[str]:
    """What files of bare elements cannot hold of a tree. `of_array`: what of an array with a path; `is_attribute`:
    whether they can have an attribute of the whole."""
    for name, node in nodes_of(tree):
        if isinstance(node, ArrayFacts):
            yield from of_array(name, node)
        elif not isinstance(node, GroupFacts):
            yield f"the {node.kind} link {name} to {node.target}"
        elif name and node.attributes:
            yield f"the attributes of the group {name}"
        else:
            for key, value in node.attributes.items():
                if not is_attribute(key, value):
                    yield f"the attribute {key}, which is {short(value)}"


def losses_of(name: str, facts: ArrayFacts, *, attributes: bool = True) -> Iterator[str]:
    """What no file of bare elements can hold of an array; `attributes`: those too."""
    of = f"of {name}" if name else "of the array"
    if attributes and facts.attributes:
        yield f"the attributes {of} ({', '.join(map(str, itertools.islice(facts.attributes, 8)))})"
    if facts.names and any(facts.names):
        yield f"the dimension names {of}"
    if facts.dtype is not None:
        yield from losses_of_values(facts.dtype, of)
    if facts.fill is not None and any(facts.fill):
        yield f"the fill value {of}"
    for d in facts.unlimited:
        yield f"that dimension {d} {of} may grow"


def losses_of_values(dtype: np.dtype, of: str) -> Iterator[str]:
    """What is lost of an enum where its values are held as integers."""
    if names := value_names(dtype):
        yield f"the names of the values {of} ({', '.join(names[:8])}{', ...' if len(names) > 8 else ''})"


def is_npy(facts: ArrayFacts) -> bool:
    """Whether a `.npy` file can hold an array's elements."""
    if facts.dtype is None:
        return False
    try:
        descr_of(facts.dtype)
    except StoreError:
        return False
    return True


def losses_of_npy(name: str, facts: ArrayFacts) -> Iterator[str]:
    """What `.npy` files cannot hold of an array."""
    if facts.dtype is None or not is_npy(facts):
        yield f"the elements of {name or 'the array'}, of type {facts.type_name or facts.dtype or 'unknown'}"
        return
    yield from losses_of(name, facts)
    own = facts.type_name or (facts.dtype.name if facts.dtype.isbuiltin == 2 else "")
    if own and facts.dtype.kind == "V" and facts.dtype.names is None:
        of = f" of {name}" if name else ""
        yield f"the name of the element type {own}{of}: elements become {facts.dtype.itemsize} bytes each"


def facts_of_npy(name: str, facts: ArrayFacts) -> ArrayFacts:
    """An array as `.npy` files can hold it. Types that other packages have brought to NumPy (bfloat16) become the bytes
    that they are. Raises StoreError for elements that none can hold, and ArgumentError for codecs."""
    if facts.dtype is None:
        raise StoreError(f"elements of type {facts.type_name or 'unknown'} cannot be held in a .npy file")
    no_codecs(name, facts, "a .npy file")
    plain = facts.dtype if facts.dtype.isbuiltin != 2 else np.dtype((np.void, facts.dtype.itemsize))
    return replace(facts, dtype=plain)


def no_codecs(name: str, facts: ArrayFacts, what: str) -> None:
    """Refuses codecs for a store that holds elements as they are."""
    if facts.codecs:
        raise ArgumentError(
            f"{what} holds elements as they are and cannot hold {name or 'the array'} encoded with "
            f"{', '.join(facts.codecs)}; leave the codecs out"
        )


def make_file(path: str, header: bytes, data_bytes: int, *, resume: bool) -> None:
    """Makes a file with a header and room for its data. With `resume` one that a killed run has made with the same
    header is kept as it is; one that it had not finished making holds no data yet and is made anew."""
    size = len(header) + data_bytes
    if os.path.lexists(path):
        try:
            fd = open_plain(path, follow_links=False)
            try:
                made = os.fstat(fd).st_size == size and os.pread(fd, len(header), 0) == header
            finally:
                os.close(fd)
            if resume and made:
                return
            os.truncate(path, 0)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(error.errno, f"cannot make {path}: {error.strerror}") from None
        create_array_file(path, header, data_bytes, exclusive=False)
    else:
        create_array_file(path, header, data_bytes)


def remove_file(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        raise StoreError(error.errno, f"cannot remove {path}: {error.strerror}") from None


class NpyWriter(DenseStoreWriter):
    """One `.npy` file. `to`: a layout of one rank, whose order the file has; None: the array's own order."""

    format = ".npy"
    folder = False

    def __init__(self, place: str, to: Layout | str | None = None, *, resume: bool = False) -> None:
        self._place, self._to, self._resume = place, to, resume
        self._files = SharedFiles()
        self._made: tuple[ArrayFacts, Pieces] | None = None

    @staticmethod
    def holds(facts: ArrayFacts) -> bool:
        return is_npy(facts)

    @staticmethod
    def losses(tree: Tree) -> list[str]:
        if isinstance(tree, ArrayFacts):
            return list(losses_of_npy("", tree))
        return [f"a group ({', '.join(itertools.islice((name for name, _ in tree.arrays()), 8))}): name one array"]

    def create(self, tree: Tree) -> None:
        if not isinstance(tree, ArrayFacts):
            raise ArgumentError(f"{self._place} can hold one array, not a group; name one of its arrays")
        facts = facts_of_npy("", tree)
        order = facts.order if self._to is None else destination_layout(self._to, facts.shape, True).order
        file = make_npy(self._place, facts, order, resume=self._resume)
        self._files.changed([self._place])
        self._made = replace(facts, order=order), OneFile(file)

    def array(self, path: str = "") -> DenseWriter:
        only_array(path, self._place)
        assert self._made is not None  # `create` comes first
        return DenseWriter(self._place, *self._made, self._files)


def make_npy(path: str, facts: ArrayFacts, order: str, *, resume: bool) -> FileArray:
    """Makes a `.npy` file with room for an array, as `make_file` does."""
    assert facts.dtype is not None
    header = encode_header(facts.shape, facts.dtype, order)
    make_file(path, header, facts.nbytes, resume=resume)
    return FileArray(path, len(header), facts.shape, order, facts.dtype.itemsize)
