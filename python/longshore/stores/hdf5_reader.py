"""HDF5 files as stores: what they hold as a tree, and readers of their arrays.

A file comes from anywhere: links that lead in circles, arrays larger than their file, elements in other files and
types of variable length are told, refused or cut short here, before anything is moved.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._words import short
from ..errors import StoreError
from .array import ArrayFacts, ArrayReader, GroupFacts, LinkFacts, StoreReader, Tree
from .hdf5_chunks import ChunkedReader, CompactReader, ContiguousReader
from .hdf5_files import OpenFile, address_shift, check_path, library_reads, open_hdf5
from .hdf5_filters import filters_of, words_of
from .hdf5_values import (
    OF_SCALES,
    OddError,
    fill_of,
    is_vlen_text,
    labelled,
    read_attribute,
    references_of,
    scale_name,
    told,
    type_of,
)
from .npy import check_shape
from .object_places import is_url, without_password
from .random_access import fingerprint_of

_MAX_DEPTH = 64
_MAX_ELEMENT = 1 << 16
_Key = tuple[Any, Any]
NAMED_TYPE, NO_ELEMENTS = "named HDF5 type", "no elements (a null dataspace)"
"""What `type_name` says of what is an element type itself, and of what has a type but not even a shape."""


@dataclass
class Entry:
    """An object of the file, where it was first met."""

    path: str
    """From the root, without a slash in front; "" is the root."""
    kind: str
    """ "group", "array" or "type"."""
    children: dict[str, Entry | LinkFacts] = field(default_factory=dict)


@dataclass(frozen=True)
class OddAttribute:
    """An attribute that the tree does not have, for neither NumPy nor JSON has anything for its value."""

    path: str
    name: str
    why: str

    def __str__(self) -> str:
        return f"the attribute {self.name!r} of {self.path or 'the file'} ({self.why})"


class Hdf5Reader(StoreReader):
    """An HDF5 file at a path or a URL, or a group or array in it."""

    format = "HDF5"
    hidden = OF_SCALES
    """Attributes that are not the user's but the format's."""

    def __init__(self, path: str | os.PathLike, inner: str = "") -> None:
        self._place = os.fspath(path)
        self.path = without_password(self._place)
        self._file, self._bytes = open_hdf5(self._place)
        try:
            with self.library_reads():
                self._look(inner)
        except BaseException:
            self.close()
            raise

    def _look(self, inner: str) -> None:
        """Finds out what the file holds, and what is asked for of it."""
        with told(f"cannot open {self.path}"):
            self._open = OpenFile(self._bytes, self._bytes.size(), address_shift(self._file))
        self.odd_attributes: list[OddAttribute] = []
        """What the tree leaves out."""
        self.scales: dict[_Key, str] = {}
        """Where the dimension scales are."""
        self._keys: dict[_Key, Entry] = {}
        # What is asked for comes first, so that it has what other groups hold too.
        found = self._find(inner)
        with told(f"cannot read {self.path}"):
            self._top = self._note(found, found.name.strip("/"))
        root = self._keys.setdefault(_key(self._file.id), Entry("", "group"))
        if self._top.kind == "group":
            self._scan(found, self._top, 0)
        if root is not self._top:
            self._scan(self._file, root, 0)
        self._prepare()
        self.tree: Tree = self._facts(self._top)

    # -- what there is ------------------------------------------------------------------------------------------------

    def _scan(self, group: Any, entry: Entry, depth: int) -> None:
        """Notes all objects below a group, each once."""
        import h5py

        if depth > _MAX_DEPTH:
            raise StoreError(f"{self.path} has groups in groups deeper than {_MAX_DEPTH}; at {short(entry.path)}")
        where = self.said(entry.path)
        with told(f"cannot read the group {where}"):
            names = list(group)
        for name in names:
            path = f"{entry.path}/{name}" if entry.path else name
            with told(f"cannot read {self.said(path)}"):
                link = group.get(name, getlink=True)
                if isinstance(link, h5py.SoftLink):
                    entry.children[name] = LinkFacts("soft", link.path)
                    continue
                if isinstance(link, h5py.ExternalLink):
                    entry.children[name] = LinkFacts("external", f"{link.filename}::{link.path}")
                    continue
                found = group[name]
                key = _key(found.id)
                if key in self._keys:
                    entry.children[name] = LinkFacts("hard", "/" + self._keys[key].path)
                    continue
                child = entry.children[name] = self._note(found, path)
            if child.kind == "group":
                self._scan(found, child, depth + 1)

    def _note(self, found: Any, path: str) -> Entry:
        """The entry of an object that is met for the first time."""
        from h5py import h5ds

        key, entry = _key(found.id), Entry(path, _kind_of(found))
        self._keys[key] = entry
        if entry.kind == "array" and h5ds.is_scale(found.id):
            self.scales[key] = path
        return entry

    def _prepare(self) -> None:
        """Looks at what the scan has found, before facts are made of it."""

    def _find(self, inner: str) -> Any:
        """What the user's path leads to, through soft links too."""
        with told(f"{self.path} has no {inner!r}"):
            check_path(self._file, self._place, inner)
            found = self._file[inner or "/"]
        if not is_url(self._place) and not os.path.samefile(found.file.filename, self.path):
            other = found.file.filename
            found.file.close()
            raise StoreError(f"{inner} of {self.path} leads to another file, {other}; name that")
        if _kind_of(found) == "type":
            raise StoreError(f"{inner} of {self.path} is neither a group nor an array")
        return found

    def said(self, path: str) -> str:
        """What messages call an object."""
        return f"{self.path}::/{path}"

    def entries(self) -> Iterator[Entry]:
        """All objects of the file."""
        return iter(self._keys.values())

    def opened(self, path: str) -> Any:
        """An object of the file, as h5py has it."""
        with told(f"cannot open {self.said(path)}"):
            return self._file["/" + path]

    # -- facts --------------------------------------------------------------------------------------------------------

    def _facts(self, entry: Entry) -> Any:
        opened = self.opened(entry.path)
        with told(f"cannot read {self.said(entry.path)}"):
            if entry.kind == "type":
                own = {"hdf5.type": opened.id.encode(), "hdf5.committed": entry.path.rpartition("/")[2]}
                return ArrayFacts((), None, type_name=NAMED_TYPE, own=own)
            if entry.kind == "array":
                return self._array_facts(entry, opened)
            attributes = self.attributes(opened, entry.path)
        return self._group_facts(entry, attributes)

    def _group_facts(self, entry: Entry, attributes: Mapping[str, Any]) -> GroupFacts:
        return GroupFacts(self._children(entry), attributes)

    def _children(self, entry: Entry) -> dict[str, Any]:
        children: dict[str, Any] = {}
        for name, child in entry.children.items():
            if isinstance(child, Entry):
                children[name] = self._facts(child)
            elif child.kind == "hard":
                children[name] = self._link(entry, child)
            else:
                children[name] = child
        return children

    def _link(self, group: Entry, link: LinkFacts) -> LinkFacts:
        """A hard link, its target said from its group."""
        top, target = self._top.path, link.target.strip("/")
        inside = not top or f"{target}/".startswith(f"{top}/")
        return LinkFacts("hard", self.relative(target, group.path)) if inside else LinkFacts("outside", link.target)

    @staticmethod
    def relative(path: str, group: str) -> str:
        """A path of the file as it is said from a group, so that it holds wherever both are copied to."""
        return posixpath.relpath("/" + path, "/" + group)

    def attributes(self, owner: Any, path: str) -> dict[str, Any]:
        """The attributes of an object that are the user's."""
        found = {}
        for name in owner.attrs:
            if name in self.hidden:
                continue
            try:
                found[name] = read_attribute(owner, name, self.said(path), self._open.size)
            except OddError as error:
                self.odd_attributes.append(OddAttribute(path, name, str(error)))
        if "CLASS" in found and str(found["CLASS"]) == "DIMENSION_SCALE":
            found.pop("CLASS"), found.pop("NAME", None)
        return found

    def _array_facts(self, entry: Entry, dataset: Any) -> ArrayFacts:
        from h5py import h5d, h5ds

        type_id, plist = dataset.id.get_type(), dataset.id.get_create_plist()
        where = self.said(entry.path)
        if type_id.get_size() > max(_MAX_ELEMENT, self._open.size):
            raise StoreError(f"{where} has elements of {type_id.get_size()} bytes; the file has {self._open.size}")
        dtype, type_name = type_of(type_id)
        own: dict[str, Any] = {"hdf5.type": type_id.encode()}
        if type_id.committed():
            named = self._keys.get(_key(type_id))
            own |= {"hdf5.committed": self.relative(named.path, _group_of(entry.path))} if named is not None else {}
        if dataset.shape is None:
            dtype, type_name = None, NO_ELEMENTS
        elif plist.get_layout() == h5d.VIRTUAL or plist.get_external_count():
            dtype, type_name = None, "elements that lie in other files"
        shape = self._shape(entry, dataset)
        try:
            shape = check_shape(list(shape), type_id.get_size())
        except StoreError as error:
            raise StoreError(f"{where} cannot be used: {error}") from None
        chunked = plist.get_layout() == h5d.CHUNKED
        maxshape = tuple(dataset.maxshape or ())
        fill, own["hdf5.fill"] = _fill_of(plist, dtype, type_id)
        names, more = self._names(entry, dataset)
        own |= more
        if any(extent not in (None, n) for extent, n in zip(maxshape, dataset.shape or ())):
            own["hdf5.maxshape"] = maxshape
        if h5ds.is_scale(dataset.id):
            own["hdf5.scale"] = scale_name(dataset)
        return ArrayFacts(
            shape,
            dtype,
            chunks=tuple(int(n) for n in plist.get_chunk()) if chunked else None,
            codecs=words_of(filters_of(plist)),
            fill=fill,
            names=names,
            attributes=self.attributes(dataset, entry.path),
            unlimited=tuple(d for d, extent in enumerate(maxshape) if extent is None),
            type_name=type_name,
            own=own,
            stored_bytes=_stored_bytes(dataset) if dtype is not None else None,
        )

    def _shape(self, entry: Entry, dataset: Any) -> tuple[int, ...]:
        return tuple(int(n) for n in dataset.shape or ())

    def _names(self, entry: Entry, dataset: Any) -> tuple[tuple[str | None, ...] | None, dict[str, Any]]:
        """The names of the dimensions, by label or by scale, and what is needed to make both again."""
        labels: list[str | None] = [None] * len(dataset.shape or ())
        if is_vlen_text(dataset, "DIMENSION_LABELS", (len(labels),)):  # else the library would crash
            labels = [dataset.dims[d].label or None for d in range(len(labels))]
        attached = self.attached(dataset)
        names = list(labels)
        for d, scales in enumerate(attached):
            for path in scales:
                names[d] = names[d] or scale_name(self.opened(path)) or path.rpartition("/")[2]
        own: dict[str, Any] = {}
        if any(attached):
            group = _group_of(entry.path)
            own["hdf5.scales"] = tuple(tuple(self.relative(path, group) for path in scales) for scales in attached)
            own["hdf5.labels"] = tuple(labels)
        return (tuple(names) if labelled(names) else None), own

    def attached(self, dataset: Any) -> tuple[tuple[str, ...], ...]:
        """The paths of the scales of each dimension."""
        # Without the library's functions for scales, which crash where the attribute is not as they write it.
        found = references_of(dataset, "DIMENSION_LIST", len(dataset.shape or ()))
        paths = ([self.scales.get(_key(scale)) for scale in of_dimension] for of_dimension in found)
        return tuple(tuple(path for path in of_dimension if path is not None) for of_dimension in paths)

    # -- arrays -------------------------------------------------------------------------------------------------------

    def array(self, path: str = "") -> ArrayReader:
        """The array at a path of the tree. Raises StoreError where its elements cannot be read."""
        facts = _at(self.tree, path)
        where = self.said("/".join(word for word in (self._top.path, path) if word))
        if not isinstance(facts, ArrayFacts):
            raise StoreError(f"{where} is no array")
        if facts.dtype is None:
            raise StoreError(f"{where} cannot be read: it has {facts.type_name}")
        from h5py import h5d

        self._open.check()
        with self.library_reads():
            dataset = self.opened(self.stored_path(path)).id
            layout = dataset.get_create_plist().get_layout()
            if layout == h5d.CHUNKED:
                return ChunkedReader(self._open, dataset, facts, where)
            if layout == h5d.COMPACT:
                return CompactReader(self._open, dataset, facts, where)
            return ContiguousReader(self._open, dataset, facts, where)

    def library_reads(self) -> AbstractContextManager[None]:
        """Whoever lets the library read objects of this file, does so within this."""
        return library_reads(self._bytes)

    def stored_path(self, path: str) -> str:
        """Where in the file the object at a path of the tree is."""
        return "/".join(word for word in (self._top.path, path) if word)

    def fingerprint(self) -> str:
        return fingerprint_of([self._place if is_url(self._place) else os.path.abspath(self._place)])

    def close(self) -> None:
        with told(f"cannot close {self.path}"):
            self._file.close()
        self._bytes.close()


def _kind_of(found: Any) -> str:
    import h5py

    return {h5py.Group: "group", h5py.File: "group", h5py.Dataset: "array"}.get(type(found), "type")


def _key(object_id: Any) -> _Key:
    """Equal for two ids of one object."""
    from h5py import h5g

    info = h5g.get_objinfo(object_id)
    return tuple(info.fileno), tuple(info.objno)


def _stored_bytes(dataset: Any) -> int | None:
    """What an array's chunks take; None where their index is damaged, which is told when the array is opened."""
    try:
        return int(dataset.id.get_storage_size())
    except (OSError, RuntimeError, ValueError):
        return None


def _fill_of(plist: Any, dtype: np.dtype | None, type_id: Any) -> tuple[bytes | None, str]:
    """The bytes of the fill value, and who has said it: nobody ("undefined"), HDF5 ("default") or the user."""
    from h5py import h5d

    defined = plist.fill_value_defined()
    if dtype is None or defined == h5d.FILL_VALUE_UNDEFINED:
        return None, "undefined"
    if defined == h5d.FILL_VALUE_DEFAULT:
        return bytes(dtype.itemsize), "default"
    return fill_of(plist, type_id), "user"


def _group_of(path: str) -> str:
    return path.rpartition("/")[0]


def _at(tree: Tree, path: str) -> Any:
    """What is at a path of a tree, through hard links too; None where nothing is."""
    found: Any = tree
    words = path.split("/") if path else []
    for place, word in enumerate(words):
        found = found.children.get(word) if isinstance(found, GroupFacts) else None
        if isinstance(found, LinkFacts) and found.kind == "hard":  # which lead to groups and arrays, and not to links
            found = _at(tree, _joined(words[:place], found.target))
    return found


def _joined(group: list[str], path: str) -> str:
    """A path that is said from a group, as said from the top."""
    return posixpath.normpath("/" + "/".join([*group, path])).strip("/")
