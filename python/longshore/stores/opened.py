"""Stores opened for reading from Python: arrays that are read by regions or slices, and groups of them."""

from __future__ import annotations

import difflib
import itertools
import math
import operator
import threading
from collections.abc import Iterator, Mapping
from types import EllipsisType
from typing import Any

import numpy as np

from .._arrays import whole_layout
from .._core import Layout, Region
from .._mistakes import check
from .._words import printable, short
from ..errors import ArgumentError, ArgumentTypeError, StoreError
from . import memory
from .array import ArrayFacts, ArrayReader, GroupFacts, Index, LinkFacts, StoreReader, Tree, together
from .places import open_reader, parse_place
from .worker_threads import WorkerThreads
from .zarr_types import bare_dtype

_MOST_THREADS = 8

Key = int | slice | EllipsisType
Where = Region | Key | tuple[Key, ...] | None
"""What of an array is wanted: a Region, what NumPy's basic slicing takes, or None for everything."""


Stored = Any
"""A `StoredArray` or a `StoredGroup`. What is there says which, and programs know that: they need not ask each time."""


class OutOfBoundsError(ArgumentError, IndexError):
    """An index or a region beyond an array. An IndexError too, as NumPy raises it."""


class NoSuchNameError(ArgumentError, KeyError):
    """A name that a group does not have. A KeyError too, as mappings raise it."""

    def __str__(self) -> str:  # a KeyError's would put the message into quotes
        return printable(Exception.__str__(self), keep="\n")


class _Opened:
    """What arrays and groups share: the open store, which the first of them closes."""

    def __init__(self, store: StoreReader, where: str, path: str, owner: bool) -> None:
        self._store, self._path, self._owner = store, path, owner
        self.where = where
        """For messages: "era5.zarr/t2m"."""
        self.format = store.format
        """The format's name for people: "Zarr 3", "HDF5"."""

    def close(self) -> None:
        """Closes the store, where this is what `open` returned; what was taken out of that closes with it."""
        if self._owner:
            self._store.close()


class StoredArray(_Opened):
    """An array of an open store. `read` gives any part of it as a NumPy array; only chunks that have something of that
    are read and decoded."""

    def __init__(self, store: StoreReader, where: str, path: str, facts: ArrayFacts, owner: bool) -> None:
        super().__init__(store, where, path, owner)
        self._facts = facts
        self._reader: ArrayReader | None = None
        self._lock = threading.Lock()

    @property
    def facts(self) -> ArrayFacts:
        """All that the store says of it."""
        return self._facts

    @property
    def shape(self) -> tuple[int, ...]:
        return self._facts.shape

    @property
    def ndim(self) -> int:
        return len(self._facts.shape)

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self._facts.shape)

    @property
    def nbytes(self) -> int:
        """Of all its elements in memory."""
        return self._facts.nbytes

    @property
    def dtype(self) -> np.dtype:
        """The elements' type. Those that NumPy has no type for (bfloat16, float8) are ml_dtypes' where that is
        installed, else bytes, and `type_name` says what they are. Raises StoreError where they have no fixed size."""
        if self._facts.dtype is None:
            kind = self._facts.type_name or "a kind that is not known"
            raise StoreError(f"{self.where} has elements of {kind}, which are not read here: they have no fixed size")
        return bare_dtype(self._facts.type_name) or self._facts.dtype

    @property
    def type_name(self) -> str:
        """The format's own name of the element type, where NumPy has none: "BF16"."""
        return self._facts.type_name

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Extents of what is stored, and encoded, at once; None where elements lie one after the other."""
        return self._facts.chunks

    @property
    def shards(self) -> tuple[int, ...] | None:
        """Extents of what lies in one file, where that holds several chunks."""
        return self._facts.shards

    @property
    def codecs(self) -> tuple[str, ...]:
        """What encodes a chunk, the first first: ("shuffle", "zstd:3")."""
        return self._facts.codecs

    @property
    def fill(self) -> Any:
        """The element that stands for those of chunks that are missing; None where the store says none."""
        if self._facts.fill is None:
            return None
        return np.frombuffer(self._facts.fill, self.dtype, 1)[0]

    @property
    def names(self) -> tuple[str | None, ...] | None:
        """Of the dimensions."""
        return self._facts.names

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self._facts.attributes

    @property
    def layout(self) -> Layout | None:
        """The layout of a folder of shards; of any other store that of one rank which has everything. None for an array
        without dimensions, which has no layout."""
        told: Layout | None = getattr(self._store, "layouts", {}).get(self._path)
        if told is not None or not self.shape:
            return told
        return whole_layout(self.shape, self._facts.order)

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentTypeError(f"{self.where} has no dimensions, and so no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        kind = self._facts.type_name or self._facts.dtype
        return printable(f"<longshore.stores.StoredArray {self.where}: {kind} of shape {self.shape}>")

    def __enter__(self) -> StoredArray:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ArgumentError(f"{self.where} lies in a file: there is no array of it without a copy")
        return self.read().astype(self.dtype if dtype is None else dtype, copy=False)

    def __getitem__(self, key: Where) -> Any:
        """As `read`; a scalar where every index is an integer and none an ellipsis, as NumPy has it."""
        wanted: Any = (key,) if key is None else key  # None is another dimension for NumPy, and no index here
        found = self.read(wanted)
        if found.ndim or key is Ellipsis or (isinstance(key, tuple) and any(each is Ellipsis for each in key)):
            return found
        return found[()]

    def read(self, where: Where = None) -> np.ndarray:
        """A part of the array: a Region, integers, slices and an ellipsis as NumPy takes them, or everything. Beside
        the result no more than a chunk a thread is held in memory. Raises IndexError (an ArgumentError) for what lies
        beyond the array, and StoreError."""
        picks, dropped = self._picks(where)
        dtype = self.dtype
        out = np.empty([len(pick) for pick in picks], self._facts.dtype)
        if out.size:
            reader = self._open_reader()
            self._read_into(reader, out, [pick if pick.step > 0 else pick[::-1] for pick in picks])
            reader.check()
        # With the ellipsis what is left of no dimension is an array, too, and no scalar.
        turned: tuple[Any, ...] = (Ellipsis, *(slice(None, None, -1 if pick.step < 0 else 1) for pick in picks))
        rest: tuple[Any, ...] = (Ellipsis, *(0 if each else slice(None) for each in dropped))
        return out.view(dtype)[turned][rest]

    # -- what is wanted ---------------------------------------------------------------------------------------------

    def _picks(self, where: Where) -> tuple[list[range], list[bool]]:
        """The indices that are wanted of every dimension, and whether that is dropped."""
        if isinstance(where, Region):
            if where.ndim != self.ndim:
                raise OutOfBoundsError(f"a region of {where.ndim} dimensions, where {self.where} has {self.ndim}")
            for d, (low, high, extent) in enumerate(zip(where.lower, where.upper, self.shape)):
                if not where.empty and not 0 <= low <= high <= extent:
                    raise OutOfBoundsError(
                        f"the region's [{low}, {high}) in dimension {d} lies beyond [0, {extent}) of {self.where}"
                    )
            if where.empty:
                return [range(0, max(0, b - a)) for a, b in zip(where.lower, where.upper)], [False] * self.ndim
            return [range(a, b) for a, b in zip(where.lower, where.upper)], [False] * self.ndim
        keys: list[Any] = [Ellipsis] if where is None else list(where) if isinstance(where, tuple) else [where]
        dots = [k for k, key in enumerate(keys) if key is Ellipsis]
        if len(dots) > 1:
            raise OutOfBoundsError("an index can have a single ellipsis ('...')")
        if len(keys) - len(dots) > self.ndim:
            raise OutOfBoundsError(
                f"too many indices: {self.where} has {self.ndim} dimensions, {len(keys) - len(dots)} were indexed"
            )
        at = dots[0] if dots else len(keys)
        keys[at : at + len(dots)] = [slice(None)] * (self.ndim - len(keys) + len(dots))
        picks, dropped = [], []
        for d, (key, extent) in enumerate(zip(keys, self.shape)):
            picks.append(self._pick(d, key, extent))
            dropped.append(not isinstance(key, slice))
        return picks, dropped

    def _pick(self, d: int, key: Any, extent: int) -> range:
        if isinstance(key, slice):
            for end in (key.start, key.stop, key.step):
                if end is not None and type(end) is not int:
                    check(f"an end or the step of the slice in dimension {d}", end, "int")
            if key.step is not None and operator.index(key.step) == 0:
                raise ArgumentError(f"the step of the slice in dimension {d} is 0")
            return range(*key.indices(extent))
        try:
            index = None if isinstance(key, (bool, np.bool_)) else operator.index(key)
        except TypeError:  # arrays have `__index__` too, and few of them are an index
            index = None
        if index is None:
            raise ArgumentTypeError(
                f"the index in dimension {d} is {short(key)}; it must be an integer, a slice or an ellipsis"
            )
        if not -extent <= index < extent:
            raise OutOfBoundsError(
                f"index {index} is out of bounds for dimension {d} with extent {extent} of {self.where}"
            )
        return range(index % extent, index % extent + 1)

    # -- reading ----------------------------------------------------------------------------------------------------

    def _open_reader(self) -> ArrayReader:
        with self._lock:
            if self._reader is None:
                self._reader = self._store.array(self._path)
            return self._reader

    def _read_into(self, reader: ArrayReader, out: np.ndarray, picks: list[range]) -> None:
        """Reads ascending indices of every dimension, none of them without any."""
        grid = reader.grid
        numbers = [_numbers(pick, chunk) for pick, chunk in zip(picks, grid.chunks)]
        many = math.prod(len(each) for each in numbers)
        todo = together(reader, itertools.product(*numbers))
        threads = min(_MOST_THREADS, memory.usable_processors(), many)
        if threads <= 1:
            for indices in todo:
                _read_chunks(reader, indices, out, picks)
            return
        lock, stop = threading.Lock(), threading.Event()

        def drain() -> None:
            while not stop.is_set():
                with lock:
                    indices = next(todo, None)
                if indices is None:
                    return
                try:
                    _read_chunks(reader, indices, out, picks)
                except BaseException:
                    stop.set()
                    raise

        with WorkerThreads(threads, "longshore-read") as pool:
            for task in [pool.submit(drain) for _ in range(threads)]:
                task.result()


def _numbers(pick: range, chunk: int) -> range | list[int]:
    """The chunks of a dimension that have some of these indices."""
    if pick.step <= chunk:
        return range(pick[0] // chunk, pick[-1] // chunk + 1)
    return [index // chunk for index in pick]


def _read_chunks(reader: ArrayReader, indices: list[Index], out: np.ndarray, picks: list[range]) -> None:
    """What is wanted of chunks that are read together, into its place of the result."""
    read = None if reader.addressable else reader.read_each(indices)
    for index in indices:
        _read_chunk(reader, index, read, out, picks)


def _read_chunk(
    reader: ArrayReader, index: Index, read: Iterator[Any] | None, out: np.ndarray, picks: list[range]
) -> None:
    """What is wanted of one chunk. `read`: brings it as it is stored; None: any box can be read."""
    start, extents = reader.grid.start(index), reader.grid.extents(index)
    into, within, first, wanted = [], [], [], []
    for low, extent, pick in zip(start, extents, picks):
        # The picked indices from the chunk's first to its last.
        begin = max(0, -(-(low - pick.start) // pick.step))
        end = min(len(pick), -(-(low + extent - pick.start) // pick.step))
        into.append(slice(begin, end))
        first.append(pick[begin])
        wanted.append(pick[end - 1] + 1 - pick[begin])
        within.append(slice(pick[begin] - low, pick[end - 1] + 1 - low, pick.step))
    if read is None:
        box = reader.read_box(first, wanted)
        out[tuple(into)] = box[tuple(slice(None, None, pick.step) for pick in picks)]
        return
    stored = next(read)
    if stored is not None:
        out[tuple(into)] = reader.decode(index, stored)[tuple(within)]
        return
    assert reader.facts.dtype is not None
    fill = reader.facts.fill if reader.facts.fill is not None else bytes(reader.facts.dtype.itemsize)
    out[tuple(into)] = np.frombuffer(fill, reader.facts.dtype, 1)[0]


class StoredGroup(_Opened, Mapping[str, Stored]):
    """A group of an open store, as a mapping of names to arrays and groups; names further below may be given at once,
    `store["a/b"]`."""

    def __init__(self, store: StoreReader, where: str, path: str, facts: GroupFacts, owner: bool) -> None:
        super().__init__(store, where, path, owner)
        self._facts = facts

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self._facts.attributes

    @property
    def dimensions(self) -> Mapping[str, tuple[int, bool]]:
        """NetCDF: extents of the dimensions that it defines, and whether they may grow."""
        return self._facts.dimensions

    @property
    def links(self) -> dict[str, LinkFacts]:
        """Names that lead elsewhere, which are not among the names of the mapping."""
        return {name: child for name, child in self._facts.children.items() if isinstance(child, LinkFacts)}

    def __iter__(self) -> Iterator[str]:
        return (name for name, child in self._facts.children.items() if not isinstance(child, LinkFacts))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> Stored:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"a name in a group is text, not {short(name)}")
        found = _below(self._facts, name)
        if isinstance(found, LinkFacts):
            raise NoSuchNameError(f"{self.where}: {name!r} is a {found.kind} link to {found.target}; name that")
        if found is None:
            close = difflib.get_close_matches(name, list(itertools.islice(self, 1000)), 1)
            raise NoSuchNameError(
                f"{self.where} has no array or group {short(name)}" + (f"; is it {close[0]!r}?" if close else "")
            )
        path, node = found
        whole = f"{self._path}/{path}" if self._path else path
        return _opened(self._store, f"{self.where}/{path}", whole, node, False)

    def __repr__(self) -> str:
        return printable(f"<longshore.stores.StoredGroup {self.where}: {', '.join(itertools.islice(self, 8))}>")

    def __enter__(self) -> StoredGroup:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _below(group: GroupFacts, name: str) -> tuple[str, Tree] | LinkFacts | None:
    """What a group has under a name, which may be one with slashes or several with slashes between them."""
    for path in (name, name.strip("/")):
        found = group.children.get(path)
        if isinstance(found, LinkFacts):
            return found
        if found is not None:
            return path, found
    words = name.strip("/").split("/")
    for cut in range(1, len(words)):
        first = "/".join(words[:cut])
        child = group.children.get(first)
        if isinstance(child, LinkFacts):
            return child
        if isinstance(child, GroupFacts):
            below = _below(child, "/".join(words[cut:]))
            if isinstance(below, tuple):
                return f"{first}/{below[0]}", below[1]
            if below is not None:
                return below
    return None


def _opened(store: StoreReader, where: str, path: str, tree: Tree, owner: bool) -> Stored:
    if isinstance(tree, ArrayFacts):
        return StoredArray(store, where, path, tree, owner)
    return StoredGroup(store, where, path, tree, owner)


def open(path: Any, *, format: str | None = None) -> Stored:
    """Opens a store for reading: a Zarr store, an HDF5, NetCDF-4, safetensors or `.npy` file, a folder of shards or of
    safetensors files with an index; or one array or group of it.

    `path`: a path, a URL ("s3://bucket/run.h5::/fields/u"), or an open object of zarr, h5py or xarray; "era5.zarr/t2m",
    "run.h5::/fields/u". Of what lies at a URL ranges of bytes are read as they are wanted. What is there says which
    format it is, unless `format` does ("zarr", "hdf5", "netcdf", "safetensors", "npy", "shards"). A StoredArray is read
    by `read` or by slices, a StoredGroup is a mapping of names to arrays and groups. Use as a context manager, or call
    `close`. Raises ArgumentError, StoreError, and NotInstalledError where the format's library is missing.

    >>> import numpy as np
    >>> np.save("a.npy", np.arange(12.0).reshape(4, 3))
    >>> with open("a.npy") as array:
    ...     array.shape, array[1:3, 0], array.read(Region((0, 1), (1, 3)))
    ((4, 3), array([3., 6.]), array([[1., 2.]]))
    """
    place = parse_place(path, destination=False, format=format)
    store = open_reader(place)
    return _opened(store, place.text, "", store.tree, True)
