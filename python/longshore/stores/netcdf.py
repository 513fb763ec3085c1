"""NetCDF-4 files, which are HDF5 files with conventions: dimensions that arrays share, and what stands for them.

A dimension is a dimension scale: the coordinate variable of its name, or else a dataset without elements that says of
itself that it is no variable. Each variable is attached to the scales of its dimensions. (NetCDF-4 file format,
https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html)
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import LongshoreError, StoreError
from .array import ArrayFacts, GroupFacts, LinkFacts, Tree
from .hdf5_files import check_path, library_reads, open_hdf5
from .hdf5_reader import NAMED_TYPE, Entry, Hdf5Reader
from .hdf5_values import Text, h5py_module, labelled, reserved, scale_name, told, unheld, write_attribute
from .hdf5_writer import Hdf5Writer, group_of
from .links import resolved
from .object_places import is_url, without_query
from .random_access import open_file

_SUFFIXES = (".nc", ".nc4", ".netcdf")
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable."
_NO_COORDINATE = "_nc4_non_coord_"
_NUMBER, _NUMBERS, _PROVENANCE = "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties"
_HIDDEN = frozenset({_NUMBER, _NUMBERS, _PROVENANCE, "_nc3_strict"})
_NOT_SHOWN = frozenset({"CLASS", "NAME"})
_NAME = re.compile(r"[^\W][^/\x00-\x1f\x7f]*(?<! )", re.UNICODE)
_KINDS = {"i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (4, 8), "S": (1,)}
_UNLIMITED_CHUNK = 1024


def is_netcdf(path: str | os.PathLike) -> bool:
    """Whether a file, which may be at a URL, is a NetCDF file, or by its name is to be one."""
    name = os.fspath(path)
    if without_query(name).lower().endswith(_SUFFIXES):
        return True
    if not is_url(name) and not os.path.isfile(name):
        return False
    try:
        with open_file(name) as start:
            if start.start(3) == b"CDF":
                return True
        file, data = open_hdf5(name)
        with library_reads(data), data, told(name), file:
            return _PROVENANCE in file.attrs
    except LongshoreError:
        return False


def stored_variable(file: Any, path: str) -> str:
    """Where in an open file a variable is; if there is none, where it would be beside a dimension of its name."""
    h5py, (group, _, name) = h5py_module(), path.rpartition("/")
    other = f"{group}/{_NO_COORDINATE}{name}".strip("/")
    found = file.get(path)
    return other if other in file or (isinstance(found, h5py.Dataset) and _is_no_variable(found)) else path


def _is_no_variable(dataset: Any) -> bool:
    """Whether a dataset only stands for a dimension."""
    from h5py import h5ds

    return bool(h5ds.is_scale(dataset.id)) and scale_name(dataset).startswith(_NO_VARIABLE[:-1])


def dimensions_of(path: str, replaced: str) -> dict[str, Dimension]:
    """The dimensions of a file to which something is added, by their paths. `replaced`: a variable that goes."""
    reader = NetcdfReader(path)
    reader.close()
    return {d.path: d for d in reader.dimensions() if d.path != replaced or not d.variable}


def matching(dimensions: Mapping[str, Dimension], path: str, facts: ArrayFacts) -> list[Dimension | None]:
    """For each dimension of an array that is added at `path`, the one of its name that the file has, in its group or in
    the nearest one around it. Raises StoreError where the two have not the same extent."""
    found: list[Dimension | None] = []
    for extent, name in zip(facts.shape, facts.names or [None] * len(facts.shape)):
        around, known = path, None
        while name and around and known is None:
            around = group_of(around)
            known = dimensions.get(f"{around}/{name}".strip("/"))
        if known is not None and known.length != extent:
            raise StoreError(
                f"{path} cannot be added: it has {extent} indices in its dimension {name}, and the dimension "
                f"{known.path} of the file has {known.length}; name another file"
            )
        found.append(known)
    return found


@dataclass
class Dimension:
    """A dimension of a file that is read or made."""

    path: str
    """Its group and name."""
    length: int
    unlimited: bool
    number: int
    variable: bool
    """Whether there is a coordinate variable."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class NetcdfReader(Hdf5Reader):
    """A NetCDF-4 file, or a group or variable in it."""

    format = "NetCDF-4"
    hidden = Hdf5Reader.hidden | _HIDDEN

    def _prepare(self) -> None:
        """Finds the dimensions, and which of them each variable has."""
        self._dimensions: dict[str, Dimension] = {}
        self._of_array: dict[str, tuple[str | None, ...]] = {}
        self._renamed: dict[str, str] = {}
        for path in self.scales.values():
            with told(f"cannot read the dimension {self.said(path)}"):
                self._dimensions[path] = self._dimension(path, len(self._dimensions))
        numbers = {dimension.number: path for path, dimension in self._dimensions.items()}
        for entry in self.entries():
            if entry.kind == "array":
                with told(f"cannot read the dimensions of {self.said(entry.path)}"):
                    self._note_dimensions(entry.path, numbers)

        if self._top.path in self._dimensions and not self._dimensions[self._top.path].variable:
            raise StoreError(
                f"{self.said(self._top.path)} is a dimension without a variable, so that it has no elements"
            )

    def _find(self, inner: str) -> Any:
        other = f"{group_of(inner)}/{_NO_COORDINATE}{inner.rpartition('/')[2]}"
        check_path(self._file, self._place, other)
        return super()._find(other if other in self._file else inner)

    def _dimension(self, path: str, count: int) -> Dimension:
        dataset = self.opened(path)
        number = int(np.ravel(dataset.attrs[_NUMBER])[0]) if _NUMBER in dataset.attrs else count
        said = f"{group_of(path)}/{path.rpartition('/')[2].removeprefix(_NO_COORDINATE)}".strip("/")
        if not dataset.shape:
            raise StoreError("it has no extent")
        return Dimension(said, int(dataset.shape[0]), dataset.maxshape[0] is None, number, not _is_no_variable(dataset))

    def _note_dimensions(self, path: str, numbers: Mapping[int, str]) -> None:
        dataset = self.opened(path)
        shape = dataset.shape or ()
        found: list[str | None] = [scales[0] if scales else None for scales in self.attached(dataset)]
        if path in self._dimensions and shape:  # a coordinate variable, which is not attached to itself
            coordinates = np.ravel(dataset.attrs[_NUMBERS]).tolist() if _NUMBERS in dataset.attrs else []
            found = [numbers.get(int(number)) for number in coordinates] if len(coordinates) == len(shape) else found
            found[0] = path
        self._of_array[path] = tuple(found)
        for scale, extent in zip(found, shape):
            dimension = self._dimensions[scale] if scale is not None else None
            if dimension is not None and dimension.unlimited:
                dimension.length = max(dimension.length, int(extent))

    def _children(self, entry: Entry) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for name, child in entry.children.items():
            if (
                isinstance(child, Entry)
                and child.path in self._dimensions
                and not self._dimensions[child.path].variable
            ):
                continue
            if name.startswith(_NO_COORDINATE) and isinstance(child, Entry):
                name = name.removeprefix(_NO_COORDINATE)
                top = self._top.path
                self._renamed[f"{entry.path}/{name}"[len(top) :].strip("/")] = child.path[len(top) :].strip("/")
            shown[name] = child
        return super()._children(replace(entry, children=shown))

    def _group_facts(self, entry: Entry, attributes: Mapping[str, Any]) -> GroupFacts:
        dimensions = [d for d in self._dimensions.values() if group_of(d.path) == entry.path]
        facts = GroupFacts(self._children(entry), attributes)
        if entry is self._top:  # what lies within may have dimensions of the groups around it
            own = {dimension.name for dimension in dimensions}
            used = {name for _, array in facts.arrays() for name in array.names or ()} - own
            every = self.dimensions()
            around = [f"{entry.path}/".startswith(f"{group_of(d.path)}/") or not group_of(d.path) for d in every]
            dimensions += [d for d, is_around in zip(every, around) if is_around and d.name in used - own]
        dimensions.sort(key=lambda dimension: dimension.number)
        return replace(facts, dimensions={d.name: (d.length, d.unlimited) for d in dimensions})

    def dimensions(self) -> list[Dimension]:
        """Of all the file."""
        return list(self._dimensions.values())

    def attributes(self, owner: Any, path: str) -> dict[str, Any]:
        """NetCDF knows no scalars: what has one value is one."""
        found = super().attributes(owner, path)
        for name, value in found.items():
            one = isinstance(value, np.ndarray) and value.shape == (1,) and not value.dtype.metadata
            if one or (isinstance(value, list) and len(value) == 1):
                found[name] = value[0]
        return found

    def _array_facts(self, entry: Entry, dataset: Any) -> ArrayFacts:
        facts = super()._array_facts(entry, dataset)
        if "hdf5.committed" not in facts.own:
            named = self._named_type(entry, dataset)
            facts = replace(facts, own={**facts.own, **named})
        said = facts.attributes.get("_FillValue")
        if facts.dtype is not None and isinstance(said, np.generic) and said.dtype == facts.dtype:
            return replace(facts, fill=said.tobytes())
        return facts

    def _named_type(self, entry: Entry, dataset: Any) -> dict[str, Any]:
        """The type of the user's that a variable has: the NetCDF library finds it by being equal."""
        type_id = dataset.id.get_type()
        for named in self.entries():
            if named.kind == "type" and self.opened(named.path).id.equal(type_id):
                return {"hdf5.committed": self.relative(named.path, group_of(entry.path))}
        return {}

    def _shape(self, entry: Entry, dataset: Any) -> tuple[int, ...]:
        """As long as the dimensions are: a variable need not have grown with an unlimited one."""
        shape = super()._shape(entry, dataset)
        found = [self._dimensions.get(path or "") for path in self._of_array[entry.path]]
        return tuple(max(n, d.length) if d is not None and d.unlimited else n for n, d in zip(shape, found))

    def _names(self, entry: Entry, dataset: Any) -> tuple[tuple[str | None, ...] | None, dict[str, Any]]:
        _, own = super()._names(entry, dataset)
        group = group_of(entry.path)
        found = [self._dimensions[path] if path is not None else None for path in self._of_array[entry.path]]
        names = tuple(dimension.name if dimension is not None else None for dimension in found)
        if labelled(names):
            said = (self.relative(dimension.path, group) if dimension is not None else None for dimension in found)
            own["netcdf.dimensions"] = tuple(said)
        return (names if labelled(names) else None), own

    def stored_path(self, path: str) -> str:
        return super().stored_path(self._renamed.get(path, path))


class _Dimensions:
    """The dimensions of a tree that is to be written, and those of each of its arrays. `existing`: those of the file
    that the tree is added to, at `added`; what is added as a group brings its own."""

    def __init__(self, tree: Tree, existing: Mapping[str, Dimension] | None = None, added: str = "") -> None:
        existing = existing or {}
        node: Any = tree
        for word in filter(None, added.split("/")):
            node = node.children[word] if isinstance(node, GroupFacts) else node
        self._top = added if isinstance(node, GroupFacts) else ""
        self.existing = {} if self._top else existing
        self.all = {path: replace(dimension) for path, dimension in self.existing.items()}
        self._numbers = itertools.count(1 + max((dimension.number for dimension in existing.values()), default=-1))
        self.of_array: dict[str, tuple[str, ...]] = {}
        self.renamed: list[str] = []
        """What could not have the name that it had, a phrase each."""
        if isinstance(tree, GroupFacts):
            self._define(tree, "")
            self._assign(tree, "", dict(_arrays_of(tree)))

    def _define(self, group: GroupFacts, prefix: str) -> None:
        for name, (length, unlimited) in group.dimensions.items():
            self._add(prefix + name, length, unlimited)
        for name, child in group.children.items():
            if isinstance(child, GroupFacts):
                self._define(child, f"{prefix}{name}/")

    def _add(self, path: str, length: int, unlimited: bool) -> Dimension:
        self.all[path] = Dimension(path, length, unlimited, next(self._numbers), False)
        return self.all[path]

    def _assign(self, tree: GroupFacts, prefix: str, arrays: Mapping[str, ArrayFacts]) -> None:
        fixed = set(self.all)
        for path, facts in arrays.items():
            found: list[str] = []
            for d, known in enumerate(matching(self.existing, path, facts)):
                dimension = self.all[known.path] if known is not None else self._of(path, facts, d, found)
                if d not in facts.unlimited and dimension.path not in fixed:
                    dimension.unlimited = False  # it may grow where all arrays that have it may
                found.append(dimension.path)
            self.of_array[path] = tuple(found)
        for path, facts in arrays.items():
            coordinate = self.all.get(path)
            if coordinate is not None and facts.shape and self.of_array[path][0] == path:
                coordinate.variable = True

    def _of(self, path: str, facts: ArrayFacts, d: int, before: list[str]) -> Dimension:
        """The dimension that an array has there: the source's own, or the nearest of its name and length, or a new
        one."""
        length, unlimited, group = facts.shape[d], d in facts.unlimited, group_of(path)
        said = facts.own.get("netcdf.dimensions")
        if isinstance(said, tuple) and len(said) == len(facts.shape) and said[d]:
            known = self.all.get(resolved(group, said[d]))
            if known is not None and known.length == length:
                return known
        name = facts.names[d] if facts.names is not None else None
        if not name or not _NAME.fullmatch(name):
            if name:
                self.renamed.append(f"the dimension name {name!r} of {path}")
            return self._unnamed(length, unlimited, before)
        around = group
        while True:
            known = self.all.get(f"{around}/{name}".strip("/"))
            if known is not None and known.length == length:
                return known
            if not around:
                break
            around = group_of(around)
        new = f"{group}/{name}".strip("/")
        if new in self.all:
            other = self.all[new].length
            self.renamed.append(
                f"the dimension name {name} of {path}, which has {length} indices there and {other} elsewhere"
            )
            new = f"{new}_{length}"
        return self.all[new] if new in self.all else self._add(new, length, unlimited)

    def _unnamed(self, length: int, unlimited: bool, before: list[str]) -> Dimension:
        """A dimension that has no name, shared as the NetCDF library would."""
        number = 0
        while True:
            path = f"{self._top}/phony_dim_{number}".strip("/")
            known = self.all.get(path)
            if known is None:
                return self._add(path, length, unlimited)
            if (known.length, known.unlimited) == (length, unlimited) and path not in before:
                return known
            number += 1


class NetcdfWriter(Hdf5Writer):
    """A NetCDF-4 file that is being made, or one with these dimensions that something is added to."""

    format = "NetCDF-4"

    def __init__(
        self,
        path: str | os.PathLike,
        *,
        resume: bool = False,
        added: str | None = None,
        dimensions: Mapping[str, Dimension] | None = None,
    ) -> None:
        super().__init__(path, resume=resume, added=added)
        self._existing = dimensions

    @staticmethod
    def losses(tree: Tree) -> list[str]:
        h5py_module()
        return [*_losses(tree, ""), *_Dimensions(tree).renamed]

    def create(self, tree: Tree) -> None:
        self._dimensions = _Dimensions(tree, self._existing, self._added or "")
        freed: dict[str, list[tuple[str, int]]] = {}
        for path, dimension in self._dimensions.existing.items():
            if self._dimensions.all[path].variable and not dimension.variable and not self._resume:
                with told(f"cannot make {self._said(path)} the variable of its dimension"):
                    freed[path] = self._without_scale(path)
        super().create(self._agreed(tree, "") if isinstance(tree, GroupFacts) else tree)
        for path, users in freed.items():
            with told(f"cannot make {self._said(path)} the variable of its dimension"):
                self._make_scale(path, path.rpartition("/")[2])
                for user, d in users:
                    self._attach(user, d, path)
        if freed:
            self.sync()

    def _without_scale(self, path: str) -> list[tuple[str, int]]:
        """Takes away what stands for a dimension, since a variable of its name will. Returns the variables that it was
        attached to, and at which of their dimensions."""
        from h5py import h5ds

        scale = self._file[path]
        users = [(self._file[to].name.strip("/"), int(d)) for to, d in scale.attrs.get("REFERENCE_LIST", ())]
        for user, d in users:
            h5ds.detach_scale(self._file[user].id, scale.id, d)
        del self._file[path]
        return users

    def _agreed(self, group: GroupFacts, prefix: str) -> GroupFacts:
        """A tree as NetCDF has it."""
        children: dict[str, Any] = {}
        for name, child in group.children.items():
            if isinstance(child, GroupFacts):
                children[name] = self._agreed(child, f"{prefix}{name}/")
            elif isinstance(child, ArrayFacts):
                children[name] = self._variable(prefix + name, child)
        return replace(group, children=children, attributes=_kept(group))

    def _variable(self, path: str, facts: ArrayFacts) -> ArrayFacts:
        found = [self._dimensions.all[name] for name in self._dimensions.of_array.get(path, ())]
        own = {key: value for key, value in facts.own.items() if not key.startswith(("hdf5.scale", "hdf5.maxshape"))}
        own |= {"hdf5.labels": None}
        unlimited = tuple(d for d, dimension in enumerate(found) if dimension.unlimited)
        attributes = _kept(facts)
        dtype, fill = facts.dtype, facts.fill
        if dtype is not None and dtype.kind == "b":  # as xarray has them
            dtype, own = np.dtype("i1"), {key: value for key, value in own.items() if key != "hdf5.type"}
            attributes["dtype"] = "bool"
        if dtype is not None and "_FillValue" in attributes:
            value = _fill_of(facts)
            if value is None:
                del attributes["_FillValue"]
            else:
                fill, own["hdf5.fill"] = value.astype(dtype).tobytes(), "user"
                if dtype.kind != "S":
                    attributes["_FillValue"] = value.astype(dtype)
        return replace(facts, dtype=dtype, fill=fill, attributes=attributes, unlimited=unlimited, own=own)

    @staticmethod
    def holds(facts: ArrayFacts) -> bool:
        return _has_type(facts) and Hdf5Writer.holds(facts)

    def make_group(self, group: Any, facts: GroupFacts, prefix: str) -> None:
        if not prefix and self._added is None:
            h5py = h5py_module()
            said = f"version=2,hdf5={h5py.version.hdf5_version},h5py={h5py.version.version}"
            write_attribute(group, _PROVENANCE, Text.of(said, "fixed"))
        for dimension in self._dimensions.all.values():
            is_made = not dimension.variable and dimension.path not in self._dimensions.existing
            if is_made and group_of(dimension.path) == prefix.rstrip("/"):
                with told(f"cannot make the dimension {self._said(dimension.path)}"):
                    self._make_dimension(group, dimension)
        super().make_group(group, facts, prefix)

    def _make_dimension(self, group: Any, dimension: Dimension) -> None:
        """A scale that stands for a dimension without a variable."""
        from h5py import h5ds

        dataset = group.create_dataset(
            dimension.name,
            (dimension.length,),
            ">f4",
            maxshape=(None if dimension.unlimited else dimension.length,),
            chunks=(_UNLIMITED_CHUNK,) if dimension.unlimited else None,
            track_order=True,
        )
        h5ds.set_scale(dataset.id, f"{_NO_VARIABLE}{dimension.length:10d}".encode())
        dataset.attrs[_NUMBER] = np.int32(dimension.number)

    def present_path(self, path: str) -> str:
        return stored_variable(self._file, path)

    def stored_path(self, path: str) -> str:
        """An array that has the name of a dimension, but is not its variable, is called otherwise in the file."""
        dimension = self._dimensions.all.get(path)
        if dimension is None or dimension.variable or path not in self._dimensions.of_array:
            return path
        return f"{group_of(path)}/{_NO_COORDINATE}{dimension.name}".strip("/")

    def attribute(self, value: Any) -> Any:
        return _attribute(value)

    def attach_scales(self) -> None:
        for path, names in self._dimensions.of_array.items():
            stored = self.stored_path(path)
            if stored in self._file and path in self._dimensions.all and self._dimensions.all[path].variable:
                self._make_scale(stored, path.rpartition("/")[2])
                attributes = self._file[stored].attrs
                attributes[_NUMBER] = np.int32(self._dimensions.all[path].number)
                if len(names) > 1:
                    numbers = [self._dimensions.all[name].number for name in names]
                    attributes[_NUMBERS] = np.array(numbers, np.int32)
        for path, names in self._dimensions.of_array.items():
            stored = self.stored_path(path)
            if stored in self._file and not (path in names[:1] and self._dimensions.all[path].variable):
                for d, name in enumerate(names):
                    if name in self._file:
                        self._attach(stored, d, name)


def _arrays_of(group: GroupFacts, prefix: str = "") -> Iterator[tuple[str, ArrayFacts]]:
    """Every array that will be in the file, and where."""
    for path, facts in group.arrays(prefix):
        if facts.type_name != NAMED_TYPE and (_has_type(facts) or Hdf5Writer.copies_as_is(facts)):
            yield path, facts


def _has_type(facts: ArrayFacts) -> bool:
    """Whether NetCDF has a type for an array's elements: a plain one, or one that the source has named."""
    dtype = facts.dtype
    if dtype is None:
        return False
    if "hdf5.committed" in facts.own:
        return True
    plain = not facts.type_name and "enum" not in (dtype.metadata or {})
    return plain and (dtype.kind == "b" or dtype.itemsize in _KINDS.get(dtype.kind, ()))


def _reserved(facts: ArrayFacts | GroupFacts) -> set[str]:
    """The names of attributes that NetCDF has for itself, and of those of an array that is not HDF5's what its library
    does not show."""
    hidden = _HIDDEN if isinstance(facts, GroupFacts) or "hdf5.type" in facts.own else _HIDDEN | _NOT_SHOWN
    return reserved(facts) | (facts.attributes.keys() & hidden)


def _kept(facts: ArrayFacts | GroupFacts) -> dict[str, Any]:
    left_out = _reserved(facts)
    return {name: value for name, value in facts.attributes.items() if name not in left_out}


def _attribute(value: Any) -> Any:
    """An attribute as NetCDF has it: texts of plain characters with a fixed length, numbers in a row. Raises TypeError
    where it has nothing for it."""
    if isinstance(value, Text):
        return value
    if isinstance(value, str):
        return Text.of(value, "null" if not value else "fixed" if value.isascii() else "variable")
    if isinstance(value, (list, tuple)) and any(isinstance(part, str) for part in value):
        return value
    if value is None or isinstance(value, dict):
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # a list of lists of several lengths, which is among the losses
        return value
    if array.dtype.kind == "S" and array.ndim == 0:
        return value
    if array.dtype.kind == "U":
        return array.tolist()
    if array.dtype.kind == "b":
        array = array.astype(np.int8)
    if not array.size:
        return h5py_module().Empty(array.dtype)
    return array.reshape(-1)


def _fill_of(facts: ArrayFacts) -> Any:
    """What an array's attribute `_FillValue` says, as one element; None where that is no value of its type."""
    value, dtype = facts.attributes["_FillValue"], facts.dtype
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        if dtype is None:
            return value
        if isinstance(value, str):
            # A character; or a number, as xarray has those of Zarr 3.
            raw = value.encode() if dtype.kind == "S" else np.frombuffer(base64.b64decode(value, validate=True), "<f8")
            value = np.array(raw)
        array = np.asarray(value)
        if array.size == 1:
            element = array.reshape(1).astype(dtype)
            kept = np.isclose(element, array, equal_nan=True) if dtype.kind == "f" else element == array.reshape(1)
            return element if bool(np.all(kept)) else None
    return None


def _losses(tree: Any, path: str) -> Iterator[str]:
    said = path or "the file"
    if isinstance(tree, LinkFacts):
        yield f"the {tree.kind} link {path}, which leads to {tree.target}"
        return
    name = path.rpartition("/")[2]
    if path and not _NAME.fullmatch(name):
        yield f"the name {name!r} (a NetCDF name begins with a letter, a digit or an underscore)"
    yield from _lost_attributes(tree, said)
    if isinstance(tree, ArrayFacts):
        if tree.type_name != NAMED_TYPE and not _has_type(tree) and not Hdf5Writer.copies_as_is(tree):
            yield f"the elements of {path or 'the array'}, of type {tree.type_name or tree.dtype}"
        return
    for name, child in tree.children.items():
        yield from _losses(child, f"{path}/{name}" if path else name)


def _lost_attributes(tree: ArrayFacts | GroupFacts, said: str) -> Iterator[str]:
    if isinstance(tree, ArrayFacts) and "_FillValue" in tree.attributes and _fill_of(tree) is None:
        yield f"the attribute '_FillValue' of {said}, which is no value of its type {tree.dtype}"
    attributes = {name: _attribute(value) for name, value in tree.attributes.items()}
    yield from unheld(attributes, said, _reserved(tree))
    for name, value in attributes.items():
        was = tree.attributes[name]
        if isinstance(was, np.ndarray) and was.ndim > 1:
            yield f"the shape of the attribute {name!r} of {said}"
        kept = isinstance(value, np.ndarray) and not value.dtype.metadata and value.dtype.names is None
        if kept and value.dtype.kind != "O" and value.dtype.itemsize not in _KINDS.get(value.dtype.kind, (0,)):
            yield f"the attribute {name!r} of {said} (values of dtype {value.dtype})"
