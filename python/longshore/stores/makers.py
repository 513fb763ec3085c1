"""What each format makes of an array that is to be written: its chunks and codecs, known before anything is made, and
the writer of a hidden output."""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._core import Layout
from ..errors import ArgumentError, NotInstalledError, StoreError
from .array import ArrayFacts, ArrayWriter, Grid, GroupFacts, StoreWriter, Tree
from .boxes import FileArray
from .chunk_words import Chunks
from .places import Place

if TYPE_CHECKING:
    from .dense import Pieces

_CHUNK_BYTES = 4 << 20


_NO_COMPRESSION = {"shuffle", "bitshuffle", "fletcher32", "crc32", "crc32c", "adler32", "delta", "astype", "transpose"}
"""Codecs that leave of a byte about a byte."""


@dataclass(frozen=True)
class Wanted:
    """What a destination is to be like. None: as the source is, where the format can be so."""

    chunks: Chunks | None = None
    shards: Chunks | None = None
    codecs: tuple[str, ...] | None = None
    to: Any = None
    zarr_format: int | None = None
    axes: tuple[int, ...] | None = None
    lossy: bool = False


class Maker:
    """Makes stores of one format. This one: formats that have chunks of their own."""

    words = ""
    """The format's name for people."""
    module, writer = "", ""
    folder = False
    has_chunks = True
    has_shards = False
    needs_chunks = True
    """Whether elements cannot lie one after the other."""
    whole_chunks = True
    """Whether a chunk at an array's end is stored whole."""
    copies_without_codecs = 1
    """How often a chunk is copied that no codec encodes."""
    has_orders = False
    """Whether elements of a chunk may lie in Fortran's order."""
    outlives_kills = True
    """Whether chunks that a killed process has written are there without a `sync` after them."""
    why = ""
    """Of an error: why a Zarr store has the format that it has, where nobody has said it."""
    compressed: tuple[str, ...] = ()
    """Codecs of an array that was compressed, with codecs that are not this format's."""

    def __init__(self, place: Place, to: Any, zarr_format: int | None) -> None:
        self.place, self.to = place, to
        if to is not None:
            raise ArgumentError(f"{place.text}: --to is for folders of shards; {self.words} has chunks, say --chunks")
        if zarr_format is not None and place.format != "zarr":
            raise ArgumentError(f"{place.text}: --zarr-format is for Zarr, and this is {self.words}")

    def losses(self, tree: Tree) -> list[str]:
        """What of a tree the format cannot hold."""
        return self._writer().losses(tree)

    def holds(self, facts: ArrayFacts, path: str) -> bool:
        """Whether the format can hold an array with its elements. `path`: where it is in the group that is moved."""
        return self._writer().holds(facts)

    def fit(self, facts: ArrayFacts, same_format: bool, asked: tuple[str, ...] | None, path: str = "") -> ArrayFacts:
        """What is to be made of an array: chunks where it has none, and codecs. `asked`: what the caller wants; `path`:
        where it is in the group that is moved, if one is."""
        if facts.shape == ():
            return replace(facts, chunks=None if self.folder is False else (), shards=None, codecs=asked or ())
        chunks = facts.chunks or default_chunks(facts.shape, facts.dtype.itemsize if facts.dtype is not None else 1)
        shards = facts.shards if self.has_shards else None
        if asked is not None:
            codecs = asked
        elif same_format:
            codecs = facts.codecs
        else:
            codecs = self.compressed if facts.codecs else ()
        return replace(facts, chunks=chunks, shards=shards, codecs=codecs)

    def grid(self, facts: ArrayFacts) -> Grid:
        """The chunks that the writer will take."""
        return Grid(facts.shape, facts.chunks or ())

    def pieces(self, facts: ArrayFacts) -> Pieces | None:
        """How elements lie in files, where any box of them can be written; None where chunks are."""
        return None

    def encode_bytes(self, facts: ArrayFacts, grid: Grid) -> int:
        """What a thread holds beside a chunk while it encodes that: what one codec has made, from which the next one
        makes something, and that."""
        assert facts.dtype is not None
        chunk = math.prod(grid.chunks) * facts.dtype.itemsize
        turned = len(facts.shape) > 1 and facts.order == "F" and self.has_orders
        copies = max(self.copies_without_codecs, len(facts.codecs)) + turned
        return min(2, copies) * (chunk + chunk // 8)

    def has_one_writer(self, facts: ArrayFacts) -> bool:
        """Whether only the process that makes the output can write chunks of an array."""
        return False

    def expected_bytes(
        self, facts: ArrayFacts, grid: Grid, source_bytes: int | None, ratio: float | None
    ) -> int | None:
        """What the chunks of an array will take; None: not known. `source_bytes`: what the source's take, if that is
        known; `ratio`: bytes that codecs leave of a byte of elements, if that is."""
        assert facts.dtype is not None
        whole = math.prod(c * t for c, t in zip(grid.counts, grid.chunks)) * facts.dtype.itemsize
        if not facts.codecs:
            return whole if self.whole_chunks and facts.chunks is not None else facts.nbytes
        if ratio is not None:
            # What lies beyond an array in its last chunks is all alike, of which compression leaves next to nothing.
            compressed = any(codec.partition(":")[0] not in _NO_COMPRESSION for codec in facts.codecs)
            return int((facts.nbytes if compressed else whole) * ratio)
        return None if source_bytes is None else min(source_bytes, facts.nbytes)

    def open(self, place: str, resume: bool) -> StoreWriter:
        """The writer of a hidden output."""
        return self._writer()(place, resume=resume)

    def published(self) -> None:
        """Called when the output has appeared."""

    def _writer(self) -> Any:
        return getattr(importlib.import_module(f".{self.module}", __package__), self.writer)


def _zarr_installed() -> str:
    """The version of the zarr that is installed; "" without one."""
    from importlib import metadata

    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version("zarr")
    return ""


def _usual_zarr_format() -> int:
    """3; 2 where the zarr that is installed, such as the last one for Python 3.10, reads no other."""
    return 2 if _zarr_installed().startswith("2.") else 3


def _format_of_store(root: str) -> int | None:
    """The format of a Zarr store in a folder; None where there is none."""
    if os.path.lexists(os.path.join(root, "zarr.json")):
        return 3
    return 2 if any(os.path.lexists(os.path.join(root, name)) for name in (".zgroup", ".zmetadata")) else None


def _check_consolidation(place: Place) -> None:
    """Raises NotInstalledError where a store has its metadata in one place, and the zarr that is installed cannot bring
    them up to date when something is added."""
    if not _consolidated(place.path):
        return
    version, told = _zarr_installed(), f"{place.path} has its metadata in one place, and to bring them up to date needs"
    if not version:
        raise NotInstalledError(f"{told} zarr: pip install 'longshore[zarr]'")
    if version.startswith("2.") and _format_of_store(place.path) == 3:
        raise NotInstalledError(f"{told} zarr 3, for Python 3.11 and newer: pip install 'zarr>=3' (here is {version})")


def _array_around(path: str) -> str | None:
    """The folder of a Zarr array that a place lies in, if it does."""
    for folder in Path(os.path.abspath(path)).parents:
        if os.path.exists(folder / ".zarray"):  # also where the system takes no such name
            return str(folder)
        try:
            node = json.loads((folder / "zarr.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(node, dict) and node.get("node_type") == "array":
            return str(folder)
    return None


class ZarrMaker(Maker):
    words, module, writer = "Zarr", "zarr_writer", "ZarrWriter"
    folder, compressed = True, ("zstd:3",)
    copies_without_codecs, has_orders = 0, True

    def __init__(self, place: Place, to: Any, zarr_format: int | None) -> None:
        super().__init__(place, to, zarr_format)
        is_added = not place.is_url and place.publish_path not in ("", place.path)
        if zarr_format is None:  # as the store is that it goes into, which would not find it otherwise
            zarr_format = _format_of_store(place.path) if is_added else None
        if zarr_format is None and (zarr_format := _usual_zarr_format()) == 2:
            self.why = f", as zarr {_zarr_installed()} reads no other; say zarr_format 3, or install zarr 3 (for Python"
            self.why += " 3.11 and newer): pip install 'zarr>=3'"
        self.zarr_format = zarr_format
        if not place.is_url and (array := _array_around(place.publish_path)) is not None:
            raise StoreError(f"{place.text} lies inside the array {array}; Zarr has arrays in groups alone")
        if is_added:
            _check_consolidation(place)
        self.has_shards = self.zarr_format == 3

    def fit(self, facts: ArrayFacts, same_format: bool, asked: tuple[str, ...] | None, path: str = "") -> ArrayFacts:
        if facts.chunks is None and facts.shards and self.has_shards and facts.dtype is not None:
            from .zarr_build import chunk_of_shards

            facts = replace(facts, chunks=chunk_of_shards(facts.shards, facts.dtype.itemsize))
        return super().fit(facts, same_format, asked, path)

    def losses(self, tree: Tree) -> list[str]:
        return self._writer().losses(tree, self.zarr_format)

    def holds(self, facts: ArrayFacts, path: str) -> bool:
        return self._writer().holds(facts, self.zarr_format, path)

    def open(self, place: str, resume: bool) -> StoreWriter:
        return self._writer()(place, zarr_format=self.zarr_format)  # which goes on with what is there

    def published(self) -> None:
        """Has the store that the output now lies in tell of it, where that keeps its metadata in one place."""
        root = self.place.path
        if self.place.publish_path == root or not _consolidated(root):
            return
        import zarr

        zarr.consolidate_metadata(root)


class Hdf5Maker(Maker):
    words, module, writer = "HDF5", "hdf5_writer", "Hdf5Writer"
    compressed, needs_chunks = ("shuffle", "gzip:4"), False
    outlives_kills = False  # the library keeps the index of chunks in memory

    def holds(self, facts: ArrayFacts, path: str) -> bool:
        return super().holds(facts, path) or self._writer().copies_as_is(facts)

    def fit(self, facts: ArrayFacts, same_format: bool, asked: tuple[str, ...] | None, path: str = "") -> ArrayFacts:
        contiguous = facts.chunks is None and not asked and not facts.unlimited
        fitted = super().fit(facts, same_format, asked, path)
        return replace(fitted, chunks=None, codecs=()) if contiguous else fitted

    def grid(self, facts: ArrayFacts) -> Grid:
        from .hdf5_writer import grid_of

        return grid_of(facts, self.place.text)

    def pieces(self, facts: ArrayFacts) -> Pieces | None:
        from .hdf5_writer import is_chunked

        return None if is_chunked(facts) else _in_one_file(facts, "C")

    def has_one_writer(self, facts: ArrayFacts) -> bool:
        from .hdf5_writer import is_chunked

        return is_chunked(facts)

    def open(self, place: str, resume: bool) -> StoreWriter:
        return self._writer()(place, resume=resume, **self._of_addition())

    def _of_addition(self) -> dict[str, Any]:
        return {"added": self.place.created} if self.place.is_added else {}


class NetcdfMaker(Hdf5Maker):
    words, module, writer = "NetCDF", "netcdf", "NetcdfWriter"

    def __init__(self, place: Place, to: Any, zarr_format: int | None) -> None:
        super().__init__(place, to, zarr_format)
        self._dimensions: dict[str, Any] = {}
        if place.is_added:
            from .netcdf import dimensions_of

            self._dimensions = dimensions_of(place.path, place.created)

    def fit(self, facts: ArrayFacts, same_format: bool, asked: tuple[str, ...] | None, path: str = "") -> ArrayFacts:
        if self.place.is_added and not path:  # it may grow where the dimensions that the file has may
            from .netcdf import matching

            known = matching(self._dimensions, self.place.created, facts)
            grows = (k.unlimited if k is not None else d in facts.unlimited for d, k in enumerate(known))
            facts = replace(facts, unlimited=tuple(d for d, may_grow in enumerate(grows) if may_grow))
        return super().fit(facts, same_format, asked, path)

    def _of_addition(self) -> dict[str, Any]:
        return {**super()._of_addition(), "dimensions": self._dimensions}


class _FilesMaker(Maker):
    """Formats that have elements one after the other, in files: chunks are only what is written at once."""

    has_chunks = needs_chunks = whole_chunks = False

    def fit(self, facts: ArrayFacts, same_format: bool, asked: tuple[str, ...] | None, path: str = "") -> ArrayFacts:
        if asked:
            raise ArgumentError(
                f"{self.place.text}: {self.words} holds elements as they are, without {', '.join(asked)}"
            )
        return replace(facts, chunks=None, shards=None, codecs=())

    def grid(self, facts: ArrayFacts) -> Grid:
        from .dense import chunk_extents

        assert facts.dtype is not None
        return Grid(facts.shape, chunk_extents(self.pieces(facts), facts.dtype.itemsize))

    def pieces(self, facts: ArrayFacts) -> Pieces:
        return _in_one_file(facts, self._order(facts))

    def _order(self, facts: ArrayFacts) -> str:
        return facts.order


class NpyMaker(_FilesMaker):
    words, module, writer = "a .npy file", "dense", "NpyWriter"

    def __init__(self, place: Place, to: Any, zarr_format: int | None) -> None:
        super().__init__(place, None, zarr_format)
        self.to = to

    def _order(self, facts: ArrayFacts) -> str:
        from .store import destination_layout

        return facts.order if self.to is None else destination_layout(self.to, facts.shape, True).order

    def open(self, place: str, resume: bool) -> StoreWriter:
        return self._writer()(place, self.to, resume=resume)


class ShardsMaker(_FilesMaker):
    words, module, writer = "a folder of shards", "shards", "ShardsWriter"
    folder = True

    def __init__(self, place: Place, to: Any, zarr_format: int | None) -> None:
        super().__init__(place, None, zarr_format)
        from .shards import Members

        self.to, self._members = to, Members()
        if to is None:
            raise ArgumentError(
                f"{place.text} is a folder of shards, which needs a layout: say it with --to, for example --to "
                '"(BLOCK, *) on 4"; for another format give it a name that ends in .zarr, .h5, .nc or .npy'
            )

    def fit(self, facts: ArrayFacts, same_format: bool, asked: tuple[str, ...] | None, path: str = "") -> ArrayFacts:
        if path:
            self._members.add(path, facts.shape, self.to)
        return super().fit(facts, same_format, asked, path)

    def _layout(self, facts: ArrayFacts) -> Layout | None:
        from .shards import layout_for

        return layout_for(self.to, facts.shape, of_group=self._members.any)

    def expected_bytes(
        self, facts: ArrayFacts, grid: Grid, source_bytes: int | None, ratio: float | None
    ) -> int | None:
        layout = self._layout(facts)
        return facts.nbytes * (1 if layout is None else layout.replicas)

    def pieces(self, facts: ArrayFacts) -> Pieces:
        from .dense import ShardFiles

        layout = self._layout(facts)
        if layout is None:
            return super().pieces(facts)
        assert facts.dtype is not None
        itemsize = facts.dtype.itemsize
        files = [FileArray("", 0, layout.local_shape(rank), layout.order, itemsize) for rank in layout.ranks]
        return ShardFiles(layout, files)

    def open(self, place: str, resume: bool) -> StoreWriter:
        return self._writer()(place, self.to, resume=resume)


class SafetensorsMaker(_FilesMaker):
    words, module = "safetensors", "safetensors"

    def __init__(self, place: Place, to: Any, zarr_format: int | None) -> None:
        super().__init__(place, to, zarr_format)
        self.folder = not place.path.endswith(".safetensors")
        self.writer = "SafetensorsFolderWriter" if self.folder else "SafetensorsFileWriter"

    def _order(self, facts: ArrayFacts) -> str:
        return "C"

    def open(self, place: str, resume: bool) -> StoreWriter:
        return self._writer()(place, self.place.inner, resume=resume)


_MAKERS: dict[str, type[Maker]] = {
    "zarr": ZarrMaker,
    "hdf5": Hdf5Maker,
    "netcdf": NetcdfMaker,
    "npy": NpyMaker,
    "shards": ShardsMaker,
    "safetensors": SafetensorsMaker,
}


def _in_one_file(facts: ArrayFacts, order: str) -> Pieces:
    from .dense import OneFile

    assert facts.dtype is not None
    return OneFile(FileArray("", 0, facts.shape, order, facts.dtype.itemsize))


def maker_of(place: Place, to: Any, zarr_format: int | None) -> Maker:
    """The maker of a destination's format. Raises ArgumentError where what is asked for is not the format's."""
    return _MAKERS[place.format](place, to, zarr_format)


@contextlib.contextmanager
def temporary_array(maker: Maker, facts: ArrayFacts) -> Iterator[ArrayWriter]:
    """The writer of such an array in a temporary store of the maker's format: it encodes as the destination's does.
    Raises StoreError where no temporary folder can be written."""
    place, name = maker.place, "array"
    plain = replace(facts, attributes={}, names=None, unlimited=(), stored_bytes=None)
    with contextlib.ExitStack() as held:
        try:
            folder = held.enter_context(tempfile.TemporaryDirectory(prefix="longshore-array-"))
            path = os.path.join(folder, "store")
            if maker.folder:
                os.mkdir(path)
            else:
                open(path, "xb").close()
        except OSError as error:
            where = f"a temporary folder in {tempfile.gettempdir()}"
            raise StoreError(error.errno, f"{where} cannot be written: {error.strerror}") from None
        there = replace(place, path=path, inner="", publish_path=path, created="", is_added=False)
        own = maker_of(there, None, getattr(maker, "zarr_format", None))
        writer = held.enter_context(contextlib.closing(own.open(path, resume=False)))
        writer.create(GroupFacts({name: plain}))
        yield writer.array(name)


def default_chunks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Chunks of some megabytes, of an array that has none: whole in the last dimensions, where that is not too much."""
    room = max(1, _CHUNK_BYTES // max(1, itemsize))
    chunks = [1] * len(shape)
    for d in reversed(range(len(shape))):
        pieces = -(-max(1, shape[d]) // room)
        chunks[d] = -(-max(1, shape[d]) // pieces)
        room = max(1, room // chunks[d])
    return tuple(chunks) if math.prod(shape) else tuple(max(1, min(n, 1024)) for n in shape)


def _consolidated(root: str) -> bool:
    """Whether a Zarr store has the metadata of all that it holds in one place."""
    if os.path.lexists(os.path.join(root, ".zmetadata")):
        return True
    try:
        with open(os.path.join(root, "zarr.json"), "rb") as file:
            return bool(json.load(file).get("consolidated_metadata"))
    except (OSError, ValueError, AttributeError):
        return False
