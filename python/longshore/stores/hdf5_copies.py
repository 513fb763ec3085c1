"""What goes from one HDF5 file to another as it is, for no mover can hold it: elements of variable length, references,
and attributes of such.

The library copies elements from file to file. References say where in a file something lies, so that those of another
file must be made anew, from the names of what they refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .array import Grid
from .hdf5_chunks import PIECE_BYTES, rows_of
from .hdf5_reader import Hdf5Reader, OddAttribute

_ELEMENTS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Names:
    """How names of one file become those of another."""

    top: str
    """The group of the source that is copied."""
    prefix: str
    """The group that it becomes."""
    stored: Callable[[str], str]
    """Where the destination has what is at a path of the tree."""

    def new(self, name: str) -> str:
        """The path in the destination of what has this name in the source."""
        path = name.strip("/")
        if self.top and f"{path}/".startswith(f"{self.top}/"):
            path = path[len(self.top) :].strip("/")
        return "/" + self.stored("/".join(word for word in (self.prefix, path) if word))


def copy_object(source: Any, group: Any, name: str) -> None:
    """Copies a dataset into a group where it is not made yet, attributes aside."""
    source.file.copy(source, group, name=name, without_attrs=True)


def copy_elements(source: Any, target: Any) -> None:
    """Copies the elements of a dataset of elements of variable length to another one of the same shape and type."""
    for box, extents in _boxes(source):
        part = np.empty(extents, source.dtype)
        source.read_direct(part, source_sel=box)
        target.write_direct(part, dest_sel=box)


def _boxes(source: Any) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Selections and their extents, of a bounded number of elements, whole chunks where there are chunks."""
    if source.shape is None:
        return
    grid = (
        Grid(source.shape, source.chunks) if source.chunks else rows_of(source.shape, PIECE_BYTES // _ELEMENTS_AT_ONCE)
    )
    for index in grid.indices():
        start, extents = grid.start(index), grid.extents(index)
        yield tuple(slice(s, s + n) for s, n in zip(start, extents)), extents


def copy_references(source: Any, file: Any, to: str, names: Names) -> None:
    """Fills a dataset of references with those to what has the names in `file` that the source's have."""
    target = file[to]
    for box, _ in _boxes(source):
        target[box] = _translated(source[box], source.file, file, names)


def _translated(references: Any, source: Any, file: Any, names: Names) -> Any:
    """References of one file as those of another. What they refer to and is not there becomes the null reference."""
    import h5py

    def one(reference: Any) -> Any:
        if not reference:
            return h5py.Reference()
        name = names.new(source[reference].name)
        return file[name].ref if name == "/" or name in file else h5py.Reference()

    if isinstance(references, h5py.Reference):
        return one(references)
    made = np.empty(references.shape, h5py.ref_dtype)
    made.reshape(-1)[:] = [one(reference) for reference in references.reshape(-1)]
    return made


def copy_odd_attributes(reader: Hdf5Reader, file: Any, names: Names) -> list[str]:
    """Copies attributes that are references or of variable length. Returns those that could not be."""
    left = []
    for odd in reader.odd_attributes:
        to = file.get(names.new(odd.path))
        if to is None or not _copied(reader, odd, to, file, names):
            left.append(str(odd))
    return left


def _copied(reader: Hdf5Reader, odd: OddAttribute, to: Any, file: Any, names: Names) -> bool:
    import h5py

    source = reader.opened(odd.path)
    try:
        value = source.attrs[odd.name]
        dtype = h5py.h5a.open(source.id, odd.name.encode("utf-8", "surrogateescape")).dtype
        if h5py.check_ref_dtype(dtype) is h5py.Reference:
            value = _translated(value, source.file, file, names)
        elif h5py.check_vlen_dtype(dtype) is None:
            return False
        to.attrs.create(odd.name, value, dtype=dtype)
    except (TypeError, ValueError, KeyError, OSError, RuntimeError):
        return False
    return True
