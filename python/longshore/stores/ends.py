"""Files as ends of a move between blocks: one dense array as a `.npy` file, as raw bytes, or as a dataset of an HDF5
file.

An end opens its file for reading, with all that the file says about itself checked, or makes it anew. What it opens
moves boxes between the file and arrays in memory. (The Data Mover, section 4: movers between disk and memory.)
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from .._words import short
from ..errors import ArgumentError, DTypeError, LongshoreError, ShapeError, StoreError
from .boxes import Box, FileArray, Files, create_array_file, sync_file
from .hdf5_additions import copy_file, find_room, reading
from .npy import MAX_INDEX, encode_header, open_npy
from .random_access import open_plain, told_by


class ElementsFile:
    """An open file that holds its elements one after the other."""

    def __init__(self, array: FileArray, files: Files, writing: bool) -> None:
        self._array, self._files, self._writing = array, files, writing
        self.order: Any = array.order
        """Which dimension is the fastest in the file: the last ("C") or the first ("F")."""
        self.grain = (1,) * len(array.shape)
        """Boxes of whole multiples of these extents are read without reading anything twice."""

    def transfer(self, start: tuple[int, ...], part: np.ndarray) -> None:
        """A box of the file into `part`, or `part` into the file. `part` is dense and in the file's order."""
        view = part.reshape(-1, order=self.order).view(np.uint8).data
        work = [(Box(self._array, start, part.shape), view)]
        self._files.write(work) if self._writing else self._files.read(work)

    def finish(self) -> None:
        """Brings what was written to the disk."""
        self.close()
        if self._writing:
            sync_file(self._array.path)

    def close(self) -> None:
        self._files.close()


class ElementsEnd:
    """A `.npy` file or, where an offset is given, raw bytes: any number of processes write it side by side."""

    writers: int | None = None
    """How many processes may have it open for writing; None: all of them."""

    def __init__(
        self, path: str, shape: tuple[int, ...], dtype: np.dtype, threads: int, order: str, offset: int | None
    ) -> None:
        if offset is None and not path.endswith(".npy"):
            raise ArgumentError(
                f"the name {path} does not say what is in the file: .npy, .h5 and .hdf5 do; for raw bytes say with "
                "offset= where the elements begin"
            )
        self.path, self._shape, self._dtype, self._threads = path, shape, dtype, threads
        self._header = encode_header(shape, dtype, order) if offset is None else b""
        self._array = FileArray(path, len(self._header) if offset is None else offset, shape, order, dtype.itemsize)
        self._raw = offset is not None
        self.bytes = self._array.data_offset + math.prod(shape) * dtype.itemsize
        """What the file takes, written."""
        if not 0 <= self._array.data_offset <= self.bytes <= MAX_INDEX:
            raise ArgumentError(f"offset is {offset}; the file must begin at 0 at the earliest and end before 2^63")

    def read(self) -> ElementsFile:
        """Opens and checks the file. Raises StoreError, ShapeError and DTypeError."""
        array, dtype = self._array, self._dtype
        if self._raw:
            fd = open_plain(self.path)
            told = told_by(fd, self.path)
        else:
            fd, header = open_npy(self.path)
            told = header.told
            array, dtype = (
                replace(array, data_offset=header.data_offset, shape=header.shape, order=header.order),
                header.dtype,
            )
        files = Files(self._threads)
        files.hold(self.path, fd, told)
        try:
            _check(self.path, array.shape, dtype, self._shape, self._dtype)
            size = os.fstat(fd).st_size
            if self._raw and size < self.bytes:
                raise StoreError(
                    f"{self.path} has {size} bytes; an array of shape {self._shape} and dtype {dtype} that begins at "
                    f"{array.data_offset} ends at {self.bytes}"
                )
        except BaseException:
            files.close()
            raise
        return ElementsFile(array, files, False)

    def make(self, place: str) -> os.stat_result | None:
        """Makes the file, with room for everything. One process does. Returns what the file was that it is made of, if
        any."""
        create_array_file(place, self._header, self.bytes - len(self._header), exclusive=False)
        return None

    def write(self, place: str) -> ElementsFile:
        """Opens what `make` made."""
        return ElementsFile(replace(self._array, path=place), Files(self._threads), True)


class Hdf5File:
    """A dataset of an open HDF5 file."""

    order = "C"

    def __init__(self, path: str, file: Any, dataset: Any, writing: bool) -> None:
        self._path, self._file, self._dataset, self._writing = path, file, dataset, writing
        self.grain = dataset.chunks or (1,) * len(dataset.shape)

    def transfer(self, start: tuple[int, ...], part: np.ndarray) -> None:
        box = tuple(slice(first, first + extent) for first, extent in zip(start, part.shape))
        with _told(f"cannot {'write' if self._writing else 'read'} {self._path}"):
            if self._writing:
                self._dataset.write_direct(part, dest_sel=box)
            else:
                self._dataset.read_direct(part, source_sel=box)

    def finish(self) -> None:
        """Brings what was written to the disk."""
        with _told(f"cannot finish {self._path}"):
            self.close()
        if self._writing:
            sync_file(self._path)

    def close(self) -> None:
        self._file.close()


class Hdf5End:
    """A dataset of an HDF5 file, through h5py without MPI: many processes may read it, one writes it.

    Written to a file that is there already, it takes the place of the dataset of its name, and everything else that the
    file holds is kept: a copy of the file is what is written."""

    writers = 1

    def __init__(self, path: str, shape: tuple[int, ...], dtype: np.dtype, dataset: str | None) -> None:
        if not isinstance(dataset, str) or not dataset.strip("/"):
            raise ArgumentError(f"say with dataset= which dataset of {path} it is")
        if "\0" in dataset or {".", ".."} & set(dataset.split("/")):
            raise ArgumentError(f"dataset {short(dataset)} is no name of a dataset")
        self.path, self._shape, self._dtype, self._dataset = path, shape, dtype, dataset
        try:
            import h5py
        except ImportError as error:
            raise ArgumentError(f"{path} is an HDF5 file, which needs h5py ({error}); pip install h5py") from None
        self._h5py = h5py

    def read(self) -> Hdf5File:
        name = f"{self.path}: {self._dataset}"
        os.close(open_plain(self.path))
        with _told(f"cannot open {self.path}"):
            file = self._h5py.File(self.path, "r")
        try:
            with _told(f"cannot read {name}"):
                found = file.get(self._dataset)
                if not isinstance(found, self._h5py.Dataset):
                    raise StoreError(f"{self.path} has no dataset {self._dataset!r}; at its top are {sorted(file)[:8]}")
                # What the file only points at would be read from places that nobody named.
                if found.is_virtual or found.external or not os.path.samefile(found.file.filename, self.path):
                    raise StoreError(f"the elements of {name} lie in other files; name one of those")
                if found.shape is None:
                    raise StoreError(f"{name} has neither a shape nor elements")
                _check(name, found.shape, found.dtype, self._shape, self._dtype)
                return Hdf5File(self.path, file, found, False)
        except BaseException:
            file.close()
            raise

    @property
    def bytes(self) -> int:
        """What the file takes, written: what it takes now, and the dataset."""
        there = os.path.getsize(self.path) if os.path.isfile(self.path) else 0
        return there + math.prod(self._shape) * self._dtype.itemsize

    def make(self, place: str) -> os.stat_result | None:
        before = self._copy(place) if os.path.lexists(self.path) else None
        with self._writable(place, "w" if before is None else "r+") as file:
            self._clear(file)
            with _told(f"HDF5 cannot hold {self._dataset!r} of dtype {self._dtype}"):
                early = self._h5py.h5p.create(self._h5py.h5p.DATASET_CREATE)
                early.set_alloc_time(self._h5py.h5d.ALLOC_TIME_EARLY)  # now, in the room that the old one has left
                file.create_dataset(self._dataset, self._shape, self._dtype, dcpl=early)
        return before

    def _copy(self, place: str) -> os.stat_result:
        """Copies the file, while nobody who uses HDF5 can write it."""
        with reading(self.path):
            before = os.stat(self.path)
            copy_file(self.path, place)
        return before

    def _clear(self, file: Any) -> None:
        """Takes the dataset of its name away. What a link leads to in another file is not touched, and nothing but a
        dataset is taken away."""
        with _told(f"HDF5 cannot hold {self._dataset!r}"):
            find_room(file, self._dataset, self.path).clear()

    def write(self, place: str) -> Hdf5File:
        file = self._writable(place, "r+")
        return Hdf5File(place, file, file[self._dataset], True)

    def _writable(self, place: str, mode: str) -> Any:
        with _told(f"cannot write {self.path}"):
            return self._h5py.File(place, mode, locking=False)  # its publisher has a lock on the hidden file


def end_of(
    path: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
    threads: int,
    *,
    order: str | None,
    offset: int | None,
    dataset: str | None,
) -> ElementsEnd | Hdf5End:
    """The end that a file's name and the caller's words mean, for
    an array of this shape and dtype. Raises ArgumentError."""
    if order not in (None, "C", "F"):
        raise ArgumentError(f'order is {order!r}; it must be "C" or "F"')
    if dataset is None and (offset is not None or not path.endswith((".h5", ".hdf5"))):
        return ElementsEnd(path, shape, dtype, threads, order or "C", offset)
    if offset is not None or order == "F":
        raise ArgumentError(f"{path} is taken for an HDF5 file, where elements have no offset= and are in C order")
    return Hdf5End(path, shape, dtype, dataset)


def _check(
    what: str, shape: tuple[int, ...], dtype: np.dtype, wanted_shape: tuple[int, ...], wanted_dtype: np.dtype
) -> None:
    if len(shape) != len(wanted_shape):
        raise ShapeError(f"{what} has {len(shape)} dimensions, the domain has {len(wanted_shape)}")
    for d, (extent, wanted) in enumerate(zip(shape, wanted_shape)):
        if extent != wanted:
            raise ShapeError(
                f"{what} has {extent} indices in dimension {d}, the domain has {wanted}; say with domain= which "
                "region the file holds"
            )
    if dtype != wanted_dtype:
        raise DTypeError(
            f"{what} has elements of dtype {dtype}, the XArray has {wanted_dtype}; make an XArray of that dtype"
        )


@contextmanager
def _told(what: str) -> Iterator[None]:
    """h5py has many kinds of errors, of many lines: each becomes a StoreError of one."""
    try:
        yield
    except LongshoreError:
        raise
    except Exception as error:
        raise StoreError(f"{what}: {(str(error).splitlines() or [type(error).__name__])[0][:200]}") from None
