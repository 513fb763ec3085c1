"""HDF5 files as destinations: made by the library, filled with chunks that were encoded outside it.

The library makes groups, attributes and datasets, and keeps the index of chunks; each chunk comes to it as it is to be
stored. Elements of contiguous datasets do not pass through it at all: they are written where it says that they belong.
One process writes a file.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import ArgumentError, NotInstalledError, StoreError
from .array import ArrayFacts, ArrayWriter, Grid, GroupFacts, LinkFacts, StoreWriter, Tree
from .boxes import FileArray, sync_file
from .dense import DenseTarget, DenseWriter, OneFile, SharedFiles, chunk_extents, nodes_of
from .hdf5_additions import find_room
from .hdf5_array_writers import ChunkWriter
from .hdf5_chunks import ChunkTable, allocated_end, rows_of
from .hdf5_copies import Names, copy_elements, copy_object, copy_odd_attributes, copy_references
from .hdf5_files import OpenFile, address_shift
from .hdf5_filters import (
    Pipeline,
    filters_from,
    filters_of,
    need_plugin,
    replace_plugins,
    set_filters,
)
from .hdf5_reader import NAMED_TYPE, NO_ELEMENTS, Hdf5Reader
from .hdf5_values import (
    attribute_form,
    bound_metadata,
    fill_of,
    h5py_module,
    labelled,
    library_lock,
    reserved,
    set_fill,
    told,
    type_for,
    type_of,
    unheld,
    write_attribute,
)
from .links import resolved, soft_links_to
from .random_access import LocalFile

_MOST_CHUNK_BYTES = (1 << 32) - 1
_CHUNK_BYTES = 1 << 20  # where nobody has said how large: what the library's cache has room for
_MODES = ("w", "r+")


def grid_of(facts: ArrayFacts, where: str = "the array") -> Grid:
    """The chunks that HDF5 will store an array in, cut to its extents; of a contiguous one, what is written at once.
    Raises ArgumentError where there can be none such."""
    itemsize = facts.dtype.itemsize if facts.dtype is not None else 1
    shape = facts.shape
    if not is_chunked(facts):
        return Grid(shape, chunk_extents(OneFile(FileArray("", 0, shape, "C", itemsize)), itemsize))
    chunks = facts.chunks
    if chunks is None:
        chunks = rows_of(shape, itemsize, _CHUNK_BYTES).chunks
    if len(chunks) != len(shape) or min(chunks) < 1:
        raise ArgumentError(f"chunks {'x'.join(map(str, chunks))} do not fit {where}, whose shape is {shape}")
    cut = tuple([c if d in facts.unlimited else min(c, n) for d, (c, n) in enumerate(zip(chunks, shape))])
    nbytes = math.prod(cut) * itemsize
    if nbytes > _MOST_CHUNK_BYTES:
        raise ArgumentError(
            f"chunks {'x'.join(map(str, cut))} of {where} have {nbytes} bytes; HDF5 has chunks of less than 4 GiB"
        )
    return Grid(shape, cut)


def is_chunked(facts: ArrayFacts) -> bool:
    """Whether an array is stored in chunks, which HDF5 needs for codecs and for dimensions that may grow. What has no
    elements and cannot grow has none."""
    can_grow = all(n or d in facts.unlimited for d, n in enumerate(facts.shape))
    wanted = facts.chunks is not None or facts.codecs or facts.unlimited
    return bool(wanted and facts.shape and can_grow)


def group_of(path: str) -> str:
    """The group that holds what is at a path."""
    return path.rpartition("/")[0]


class Hdf5Writer(StoreWriter):
    """An HDF5 file that is being made, or one that something is added to: `added` says where that is to be."""

    format = "HDF5"
    folder = False

    def __init__(self, path: str | os.PathLike, *, resume: bool = False, added: str | None = None) -> None:
        self.path, self._resume, self._added = os.fspath(path), resume, added
        h5py = h5py_module()
        self.lock = library_lock()
        self._fd = -1
        self._files = SharedFiles()  # for elements that do not pass through the library
        again = "; it cannot be gone on with: start again without --resume" if resume else ""
        is_there = resume or added is not None
        with told(f"cannot {'open' if is_there else 'make'} {self.path}{again}"):
            # Whoever publishes the file holds a lock on it. Objects keep the order in which they are made.
            self._file = h5py.File(
                self.path, _MODES[is_there], locking=False, libver=("v108", "latest"), rdcc_nbytes=0, track_order=True
            )
            bound_metadata(self._file.id)
            self._fd = os.dup(self._file.id.get_vfd_handle())
            self._shift = address_shift(self._file)
        self._tree: GroupFacts = GroupFacts()
        self._arrays: dict[str, ArrayFacts] = {}
        self._links: list[tuple[str, str]] = []
        self._references: list[tuple[Any, str, Names, Hdf5Reader]] = []

    # -- what can be held ---------------------------------------------------------------------------------------------

    @staticmethod
    def losses(tree: Tree) -> list[str]:
        h5py_module()
        return [*_losses(tree, ""), *_losses_of_names(tree)]

    @staticmethod
    def copies_as_is(facts: ArrayFacts) -> bool:
        """Whether `copy_as_is` can copy an array that no mover can hold, from another HDF5 file."""
        words = ("region reference", "other files")
        return facts.dtype is None and "hdf5.type" in facts.own and not any(word in facts.type_name for word in words)

    # -- making it ----------------------------------------------------------------------------------------------------

    def create(self, tree: Tree) -> None:
        if isinstance(tree, ArrayFacts):
            raise ArgumentError(
                f"{self.path} is an HDF5 file, in which an array has a name; say which, as in {self.path}::/NAME"
            )
        self._tree = tree
        self._plan(tree, "")
        for path, facts in self._arrays.items():
            if facts.dtype is not None and self.holds(facts):
                grid_of(facts, self._said(path))
                filters_from(facts.codecs, facts.dtype.itemsize, 0)
        if self._resume:
            self._check()
            return
        if self._added is not None:
            with told(f"HDF5 cannot hold {self._said(self._added)}"):
                find_room(self._file, self.present_path(self._added), self.path).clear()
        self.make_group(self._file, tree, "")
        if self._added is not None:
            # Now, since it changes scales that are there: a kill while chunks are written leaves them whole.
            with told(f"cannot attach scales to {self._said(self._added)}"):
                self.attach_scales()
        self.sync()

    def _plan(self, group: GroupFacts, prefix: str) -> None:
        """Notes the arrays, and the links that are made when everything that they may lead to is there."""
        for name, child in group.children.items():
            path = prefix + name
            if isinstance(child, ArrayFacts):
                self._arrays[path] = child
            elif isinstance(child, GroupFacts):
                self._plan(child, path + "/")
            elif child.kind == "hard":
                self._links.append((path, resolved(prefix, child.target)))

    @staticmethod
    def holds(facts: ArrayFacts) -> bool:
        """Whether there is an HDF5 type for an array's elements."""
        return _type_loss(facts) is None

    def make_group(self, group: Any, facts: GroupFacts, prefix: str) -> None:
        """Makes what a group holds, in order. What HDF5 cannot hold is left out."""
        import h5py

        self.write_attributes(group, facts, self._said(prefix))
        for name, child in facts.children.items():
            path = prefix + name
            with told(f"HDF5 cannot hold {self._said(path)}"):
                if isinstance(child, GroupFacts):
                    self.make_group(self._group_at(path), child, path + "/")
                elif isinstance(child, ArrayFacts):
                    if "hdf5.committed" in child.own:
                        self._committed_type(child, prefix)
                    if self.holds(child) or self._can_be_made_empty(child):
                        self._make_array(group, path, child)
                elif child.kind == "hard":
                    self._link(path, resolved(prefix, child.target))
                elif child.kind == "soft":
                    group[name] = h5py.SoftLink(child.target)
                elif child.kind == "external" and "::" in child.target:
                    filename, _, inner = child.target.rpartition("::")
                    group[name] = h5py.ExternalLink(filename, inner)

    def _link(self, path: str, target: str) -> None:
        """Gives what is at `target`, if it is there, another name."""
        if path not in self._file and (not target or target in self._file):
            self._group_at(group_of(path))[path.rpartition("/")[2]] = self._file["/" + target]

    def _can_be_made_empty(self, facts: ArrayFacts) -> bool:
        """Whether a dataset that will be copied as it is can be made now, in its place among the others. Else the
        library copies all of it: those with filters that are not known."""
        if not self.copies_as_is(facts) or facts.type_name == NAMED_TYPE:
            return False
        with contextlib.suppress(ArgumentError, NotInstalledError):
            for filter in filters_from(facts.codecs, 1, 1):
                need_plugin(filter.id)
            return True
        return False

    def _group_at(self, path: str) -> Any:
        """A group, made if it is not there."""
        group = self._file
        for name in path.split("/") if path else []:
            group = group[name] if name in group else group.create_group(name, track_order=True)
        return group

    def _committed_type(self, facts: ArrayFacts, prefix: str) -> Any:
        """The type that has a name of its own in the file, made if it is not there; None where none can be."""
        import h5py

        path = resolved(prefix, facts.own["hdf5.committed"])
        if path not in self._file and path not in self._arrays_with_elements():
            type_id = h5py.h5t.decode(facts.own["hdf5.type"])
            parent, _, name = path.rpartition("/")
            type_id.commit(self._group_at(parent).id, name.encode("utf-8", "surrogateescape"))
        found = self._file.get(path)
        is_that = isinstance(found, h5py.Datatype) and found.id.equal(h5py.h5t.decode(facts.own["hdf5.type"]))
        return found.id if is_that else None

    def _arrays_with_elements(self) -> set[str]:
        return {path for path, facts in self._arrays.items() if facts.dtype is not None}

    def write_attributes(self, owner: Any, facts: ArrayFacts | GroupFacts, where: str) -> None:
        """Writes those attributes that HDF5 can hold."""
        kept = reserved(facts)
        for name, value in facts.attributes.items():
            if name in kept:
                continue
            with contextlib.suppress(TypeError, ValueError):  # which are among the losses
                attribute_form(self.attribute(value))
                with told(f"cannot write attribute {name!r} of {where}"):
                    write_attribute(owner, name, self.attribute(value))

    def attribute(self, value: Any) -> Any:
        """An attribute's value as this format has it."""
        return value

    def type_for(self, path: str, facts: ArrayFacts) -> Any:
        """The HDF5 type for an array's elements."""
        from h5py import h5t

        type_id = type_for(facts) if facts.dtype is not None else h5t.decode(facts.own["hdf5.type"])
        if "hdf5.committed" in facts.own and type_of(type_id)[0] == facts.dtype:
            return self._committed_type(facts, group_of(path)) or type_id
        return type_id

    def stored_path(self, path: str) -> str:
        """Where in the file an array of the tree is."""
        return path

    def present_path(self, path: str) -> str:
        """Where in the file that something is added to an array of that name is, if there is one."""
        return path

    def _make_array(self, group: Any, path: str, facts: ArrayFacts) -> None:
        from h5py import h5d, h5p, h5s, h5t

        type_id, plist = self.type_for(path, facts), h5p.create(h5p.DATASET_CREATE)
        itemsize = facts.dtype.itemsize if facts.dtype is not None else type_id.get_size()
        plist.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
        plist.set_obj_track_times(False)
        fill = facts.fill if facts.own.get("hdf5.fill", "user") == "user" else None
        if fill is not None:
            set_fill(plist, type_id, fill)
        if is_chunked(facts):
            chunks = grid_of(facts, self._said(path)).chunks
            plist.set_chunk(chunks)
            set_filters(plist, filters_from(facts.codecs, itemsize, math.prod(chunks) * itemsize))
        elif facts.dtype is not None:
            plist.set_layout(h5d.CONTIGUOUS)
            plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)  # so that it is known where the elements belong
            if fill is not None:
                plist.set_fill_time(h5d.FILL_TIME_NEVER)
        space = h5s.create_simple(facts.shape, _most(facts)) if facts.shape else h5s.create(h5s.SCALAR)
        if facts.type_name == NO_ELEMENTS:
            space = h5s.create(h5s.NULL)
        name = self.stored_path(path).rpartition("/")[2].encode("utf-8", "surrogateescape")
        links = h5p.create(h5p.LINK_CREATE)
        links.set_char_encoding(h5t.CSET_UTF8)
        try:
            dataset = h5d.create(group.id, name, type_id, space, plist, links)
        except ValueError:
            if not facts.codecs or not replace_plugins():
                raise
            dataset = h5d.create(group.id, name, type_id, space, plist, links)
        if fill is not None and (made := fill_of(dataset.get_create_plist(), type_id)) != fill:
            said = f"the fill value 0x{fill.hex()}: the HDF5 library made 0x{made.hex()} of it"
            raise StoreError(f"{self._said(path)} cannot have {said}")
        if not is_chunked(facts) and facts.nbytes:
            self._reserve(dataset, facts, path)
        self._describe(path, facts)

    def _describe(self, path: str, facts: ArrayFacts) -> None:
        """Writes the attributes of an array and names its dimensions."""
        dataset = self._file[self.stored_path(path)]
        self.write_attributes(dataset, facts, self._said(path))
        labels = facts.own.get("hdf5.labels", facts.names)
        if labelled(labels):
            for d, label in enumerate(labels):
                if label:
                    dataset.dims[d].label = label

    def _reserve(self, dataset: Any, facts: ArrayFacts, path: str) -> None:
        """Has the file system find room now rather than in the middle of the move."""
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(self._fd, dataset.get_offset(), facts.nbytes)
            except OSError as error:
                said = f"cannot make {self._said(path)} of {facts.nbytes} bytes: {error.strerror}"
                raise StoreError(error.errno, said) from None

    def _said(self, path: str) -> str:
        return f"{self.path}::/{path.rstrip('/')}"

    # -- going on -----------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Whether the file that a killed run has left is the one that would be made now, and one in which nothing that
        is allocated comes upon chunks that are there: the library writes the index of chunks before it writes where
        what is allocated ends, and may have been killed between."""
        end = min(allocated_end(self._fd, self._file.userblock_size), os.fstat(self._fd).st_size)
        file = OpenFile(LocalFile(self.path, self._fd), end, self._shift)
        again = f"cannot go on with {self.path}, start again without --resume"
        for path, facts in self._arrays.items():
            if facts.dtype is None or not self.holds(facts):
                continue
            where = self._said(path)
            with told(f"{again}: {where} is damaged"):
                found = self._file.get(self.stored_path(path))
                wanted = (facts.shape, grid_of(facts).chunks if is_chunked(facts) else None, type_for(facts).dtype)
                is_that = found is not None and (found.shape, found.chunks, found.dtype) == wanted
                if is_that and not is_chunked(facts) and facts.nbytes:
                    is_that = (found.id.get_offset() or 0) + facts.nbytes <= os.fstat(self._fd).st_size
            if not is_that:
                raise StoreError(f"{again}: {where} is not as it is to be")
            if is_chunked(facts):
                grid = grid_of(facts)
                chunk_bytes = math.prod(grid.chunks) * facts.dtype.itemsize
                try:
                    ChunkTable(
                        found.id, grid, file, Pipeline(filters_of(found.id.get_create_plist()), chunk_bytes), where
                    )
                except StoreError as error:
                    raise StoreError(f"{again}: {error}") from None

    # -- arrays -------------------------------------------------------------------------------------------------------

    def array(self, path: str = "") -> ArrayWriter:
        facts = self._arrays.get(path)
        if facts is None or facts.dtype is None or not self.holds(facts):
            raise StoreError(f"{self._said(path)} is not among the arrays that were made")
        with told(f"cannot open {self._said(path)}"):
            dataset = self._file[self.stored_path(path)].id
        if is_chunked(facts):
            file = OpenFile(LocalFile(self.path, self._fd), os.fstat(self._fd).st_size, self._shift)
            return ChunkWriter(file, dataset, facts, grid_of(facts), self._said(path))
        elements = FileArray(self.path, dataset.get_offset() or 0, facts.shape, "C", facts.dtype.itemsize)
        return DenseWriter(self._said(path), facts, OneFile(elements), self._files)

    def shared(self, path: str, facts: ArrayFacts) -> DenseTarget | None:
        target = self.array(path)
        return target.shared() if isinstance(target, DenseWriter) else None

    # -- what no mover can hold ---------------------------------------------------------------------------------------

    def copy_as_is(self, path: str, reader: Any, source: str | None = None) -> None:
        """Copies an array of elements that no mover can hold from another HDF5 file, chunk by chunk. `source`: where
        it is in the tree of `reader`, if not at the same path. Raises StoreError where that cannot be done."""
        facts = self._arrays.get(path)
        source = path if source is None else source
        if facts is None or not isinstance(reader, Hdf5Reader) or not self.copies_as_is(facts):
            what = facts.type_name if facts is not None else "nothing"
            raise StoreError(f"{self._said(path)} cannot be copied as it is: it has {what}")
        to = self.stored_path(path)
        group, name = group_of(to), to.rpartition("/")[2]
        with reader.library_reads(), self.lock, told(f"cannot copy {reader.said(source)} as it is"):
            found = reader.opened(reader.stored_path(source))
            if name not in self._group_at(group):
                copy_object(found, self._group_at(group), name)
                self._describe(path, facts)
            elif facts.type_name == "object reference":
                names = Names(reader.stored_path(""), path.removesuffix(source).strip("/"), self.stored_path)
                self._references.append((found, to, names, reader))
            elif facts.type_name != NAMED_TYPE:
                copy_elements(found, self._file[to])

    def copy_odd_attributes(self, reader: Any, prefix: str = "") -> list[str]:
        """Copies the attributes that the tree of another HDF5 file does not have, those that are references above all,
        once everything is made and copied that they may refer to. Returns what could not be copied. `prefix`: the
        group that has what `reader` reads."""
        if not isinstance(reader, Hdf5Reader):
            return []
        with reader.library_reads(), self.lock, told(f"cannot copy attributes to {self.path}"):
            return copy_odd_attributes(reader, self._file, Names(reader.stored_path(""), prefix, self.stored_path))

    # -- bringing it to an end ----------------------------------------------------------------------------------------

    def sync(self) -> None:
        if self._fd < 0:
            return  # finished, and on the disk
        with told(f"cannot bring {self.path} to the disk"):
            with self.lock:
                self._file.flush()
            os.fsync(self._fd)

    def finish(self) -> None:
        with contextlib.ExitStack() as held:
            for reads in {reader: reader.library_reads() for *_, reader in self._references}.values():
                held.enter_context(reads)
            held.enter_context(self.lock)
            held.enter_context(told(f"cannot finish {self.path}"))
            self.attach_scales()
            for path, target in self._links:
                self._link(path, target)
            for source, to, names, _ in self._references:
                copy_references(source, self._file, to, names)
            self._file.flush()
        self.close()
        sync_file(self.path)

    def attach_scales(self) -> None:
        """Makes the dimension scales that the source had, and attaches them."""
        for path, facts in self._arrays.items():
            if "hdf5.scale" in facts.own and path in self._file:
                self._make_scale(path, facts.own["hdf5.scale"])
        for path, facts in self._arrays.items():
            for d, scales in enumerate(facts.own.get("hdf5.scales", ()) if path in self._file else ()):
                for said in scales:
                    scale = resolved(group_of(path), said)
                    of_scale = self._arrays.get(scale)
                    if of_scale is not None and "hdf5.scale" in of_scale.own and scale in self._file and scale != path:
                        self._attach(path, d, scale)

    def _make_scale(self, path: str, name: str) -> None:
        from h5py import h5ds

        dataset = self._file[path]
        if not h5ds.is_scale(dataset.id):
            h5ds.set_scale(dataset.id, name.encode("utf-8", "surrogateescape"))

    def _attach(self, path: str, dimension: int, scale: str) -> None:
        from h5py import h5ds

        dataset, of_dimension = self._file[path].id, self._file[scale].id
        if not h5ds.is_attached(dataset, of_dimension, dimension):
            h5ds.attach_scale(dataset, of_dimension, dimension)

    def close(self) -> None:
        self._files.close()
        with told(f"cannot close {self.path}"):
            self._file.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _most(facts: ArrayFacts) -> tuple[int, ...]:
    """How far each dimension may grow."""
    from h5py import h5s

    most = facts.own.get("hdf5.maxshape")
    if not is_chunked(facts):
        return facts.shape
    if not isinstance(most, tuple) or len(most) != len(facts.shape):
        most = tuple(None if d in facts.unlimited else n for d, n in enumerate(facts.shape))
    return tuple(h5s.UNLIMITED if m is None else max(m, n) for m, n in zip(most, facts.shape))


def _type_loss(facts: ArrayFacts) -> str | None:
    """Why HDF5 cannot hold an array's elements; None where it can."""
    try:
        type_for(facts)
    except TypeError:
        return f"of type {facts.type_name or facts.dtype}"
    return None


def _losses(tree: Any, path: str) -> Iterator[str]:
    said = path or "the file"
    if isinstance(tree, LinkFacts):
        if tree.kind not in ("soft", "external", "hard"):
            yield f"the link {path}, which leads to {tree.target}, {tree.kind} of what is moved"
        return
    yield from unheld(tree.attributes, said, reserved(tree))
    if isinstance(tree, ArrayFacts):
        if _is_lost(tree):
            yield f"the elements of {path or 'the array'}, {_type_loss(tree)}"
        return
    for name in _lost_dimensions(tree):
        yield f"the dimension {name} of {said}, which no array has"
    for name, child in tree.children.items():
        yield from _losses(child, f"{path}/{name}" if path else name)


def _losses_of_names(tree: Tree) -> Iterator[str]:
    """Further names of arrays that are left behind, links to them, and dimensions that have these as scales."""
    nodes = dict(nodes_of(tree))
    left = {path for path, facts in nodes.items() if isinstance(facts, ArrayFacts) and _is_lost(facts)}
    for path, end in soft_links_to(tree, left).items():
        yield f"the soft link {path}, which leads to {end}"
    for path, node in nodes.items():
        group = group_of(path)
        if isinstance(node, LinkFacts) and node.kind == "hard" and resolved(group, node.target) in left:
            yield f"the hard link {path}, another name of {resolved(group, node.target)}"
        if isinstance(node, ArrayFacts) and path not in left:
            for d, scales in enumerate(node.own.get("hdf5.scales", ())):
                for scale in left.intersection(resolved(group, said) for said in scales):
                    yield f"the scale {scale} of dimension {d} of {path}"


def _is_lost(facts: ArrayFacts) -> bool:
    return _type_loss(facts) is not None and not Hdf5Writer.copies_as_is(facts)


def _lost_dimensions(group: GroupFacts) -> Sequence[str]:
    used = {name for _, facts in group.arrays() for name in facts.names or ()}
    return [name for name in group.dimensions if name not in used]
