"""Places of stores, as people type them: "era5.zarr/t2m", "run.h5::/fields/u", "shards/".

A source is recognised by what is there, a destination by its name.
"""

from __future__ import annotations

import importlib
import os
import struct
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from .._words import short
from ..errors import ArgumentError, StoreError
from .array import StoreReader
from .boxes import open_plain
from .keys import is_url, without_password
from .layout_json import NAME as LAYOUT_JSON
from .npy import MAGIC as NPY_MAGIC
from .publish import file_name
from .safetensors_header import INDEX_SUFFIX, MAX_HEADER_BYTES, SUFFIX
from .shard_folders import is_group

_READERS = {
    "zarr": ("zarr_reader", "ZarrReader"),
    "hdf5": ("hdf5_reader", "Hdf5Reader"),
    "netcdf": ("netcdf", "NetcdfReader"),
    "safetensors": ("safetensors", "SafetensorsReader"),
    "npy": ("dense", "NpyReader"),
    "shards": ("shards", "ShardsReader"),
}
FORMATS = tuple(_READERS)
"""What a place's `format` can be."""
_SUFFIXES = {
    ".zarr": "zarr",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".he5": "hdf5",
    ".nc": "netcdf",
    ".nc4": "netcdf",
    ".netcdf": "netcdf",
    ".npy": "npy",
    SUFFIX: "safetensors",
}
_ONE_ARRAY = ("npy", "shards")
_GROUPS_IN_FILES = ("hdf5", "netcdf")
_ZARR_FILES = ("zarr.json", ".zarray", ".zgroup", ".zmetadata")
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_KNOWN = "a Zarr store, an HDF5, NetCDF-4, safetensors or .npy file, or a folder of shards or of safetensors files"


@dataclass(frozen=True)
class Place:
    """Where a store is, and what of it is meant."""

    text: str
    """For messages: as it was typed, but for passwords."""
    path: str
    """The file, the folder or the URL of the whole store."""
    inner: str
    """The array or group in it, "a/b"; "" for all of it."""
    format: str
    """One of FORMATS."""
    publish_path: str = ""
    """Of a destination: what is to appear. A Zarr store that is there already gets a new folder below it."""
    created: str = ""
    """Of a destination: where in that the array or group is."""
    is_added: bool = False
    """Of a destination: whether `path` is a file that is there, and keeps what it holds."""

    @property
    def is_url(self) -> bool:
        """Whether `path` is a URL."""
        return is_url(self.path)


def parse_place(
    text: Any, *, destination: bool, format: str | None = None, to: Any = None, source: Place | None = None
) -> Place:
    """The place that a path, a URL or an object of zarr, h5py or xarray means. `format`: that, whatever is there. Of a
    destination, `to` is a layout of a folder of shards, and `source` where its arrays come from: without `to`, a folder
    whose name does not say what it is becomes one of safetensors if the source is that. Raises ArgumentError and
    StoreError."""
    if format is not None and format not in FORMATS:
        raise ArgumentError(f"format is {short(format)}; it can be {', '.join(FORMATS)}")
    if not isinstance(text, (str, os.PathLike)):
        from .objects import path_of

        if destination:
            raise ArgumentError(f"a destination is named by a path or a URL, not by a {type(text).__name__}")
        text = path_of(text)
    name = file_name(text)
    if not name:
        raise ArgumentError("the path is empty")
    path, inner = _split(name)
    if path.startswith("file://"):
        parts = urlsplit(path)
        if parts.netloc not in ("", "localhost"):
            raise ArgumentError(f"{name} is a file of another machine, {parts.netloc}")
        path = unquote(parts.path)
    if is_url(path):
        if destination:
            return _destination_of_url(without_password(name), path, inner, format, to, source)
        return _of_url(without_password(name), path, inner, format)
    if destination:
        return _destination(name, path, inner, format, to, source)
    return _source(name, path, inner, format)


def open_reader(place: Place) -> StoreReader:
    """What is at a place, opened. Raises StoreError, and NotInstalledError where its library is not there."""
    module, name = _READERS[place.format]
    reader = getattr(importlib.import_module(f".{module}", __package__), name)
    opened: StoreReader = reader(place.path) if place.format in _ONE_ARRAY else reader(place.path, place.inner)
    return opened


def _split(name: str) -> tuple[str, str]:
    """ "run.h5::/fields/u" at the colons, unless there is a file of that name."""
    path, colons, inner = name.rpartition("::")
    if not colons or not path or (not is_url(name) and os.path.lexists(name)):
        return name, ""
    return path, inner


def _words_of(inner: str) -> list[str]:
    words = [word for word in inner.split("/") if word]
    for word in (".", ".."):
        if word in words:
            raise ArgumentError(f"{short(inner)} is no path within a store, for it has the name {word}")
    return words


def _within(text: str, format: str, *inner: str) -> str:
    """A path within a store, put together."""
    if format == "safetensors":  # where names may have slashes anywhere
        return "/".join(word for word in inner if word)
    words = [word for part in inner for word in _words_of(part)]
    if words and format in _ONE_ARRAY:
        raise ArgumentError(f"{text}: that store is one array without a name; there is no {'/'.join(words)!r} in it")
    return "/".join(words)


def _suffix(name: str) -> str | None:
    """The format that a name's end says."""
    if name.endswith(INDEX_SUFFIX):
        return "safetensors"
    return _SUFFIXES.get(os.path.splitext(name)[1].lower())


def _of_url(text: str, url: str, inner: str, format: str | None) -> Place:
    """A URL is a Zarr store's: what is there cannot be looked at without asking, and other formats are not read so."""
    scheme, _, rest = url.partition("://")
    words = rest.rstrip("/").split("/")
    cut = next((k + 1 for k, word in enumerate(words) if word.lower().endswith(".zarr")), len(words))
    found = format or _suffix(words[cut - 1]) or "zarr"
    if found != "zarr":
        raise ArgumentError(f"{text}: by URL only Zarr stores are read; copy the file to a disk first")
    root = f"{scheme}://{'/'.join(words[:cut])}"
    inner = _within(text, "zarr", "/".join(words[cut:]), inner)
    return Place(text, root, inner, "zarr", root, inner)


# -- sources ----------------------------------------------------------------------------------------------------------


def _source(text: str, path: str, inner: str, format: str | None) -> Place:
    if inner and format in (None, "shards") and not is_zarr(path) and is_group(path):
        path, inner = os.path.join(path, *_words_of(inner)), ""  # an array of a group of shards is a store itself
    there, missing = _existing(path)
    if format is None:
        format = recognise(there)
    if missing and (format is None or format in _ONE_ARRAY):
        raise StoreError(f"{path} does not exist")
    if format is None:
        raise StoreError(f"{there} is not {_KNOWN}, or an unfinished one")
    if format == "zarr":
        there, within = zarr_root(there)
        return Place(text, there, _within(text, format, within, missing, inner), format)
    return Place(text, there, _within(text, format, missing, inner), format)


def _existing(path: str) -> tuple[str, str]:
    """The part of a path that is there, and what follows: names in a store, perhaps."""
    here, missing = path.rstrip("/") or "/", ""
    while not os.path.lexists(here):
        here, name = os.path.split(here)
        here = here.rstrip("/") or ("/" if here else "")
        if not here or name in (".", ".."):
            raise StoreError(f"{path} does not exist")
        missing = f"{name}/{missing}" if missing else name
    return here, missing


def recognise(path: str) -> str | None:
    """The format of what is at a path, by its content; None where that is none we know. Raises StoreError for what has
    to be converted first, and for what is no plain file."""
    if os.path.isdir(path):
        if is_zarr(path):
            return "zarr"
        if os.path.lexists(os.path.join(path, LAYOUT_JSON)):
            return "shards"
        try:
            with os.scandir(path) as entries:
                of_tensors = any(entry.name.endswith((SUFFIX, INDEX_SUFFIX)) for entry in entries)
        except OSError as error:
            raise StoreError(error.errno, f"cannot look into {path}: {error.strerror}") from None
        if of_tensors:
            return "safetensors"
        return "shards" if is_group(path) else None
    if path.endswith(INDEX_SUFFIX):
        return "safetensors"
    fd = open_plain(path)
    try:
        size = os.fstat(fd).st_size
        start = os.pread(fd, 16, 0)
        if start[:6] == NPY_MAGIC:
            return "npy"
        # The superblock may follow a block of the user's, of 512 bytes or a power of two times that.
        places = [0, *(512 << k for k in range(55) if 512 << k < size)]
        if any(os.pread(fd, 8, place) == _HDF5_MAGIC for place in places):
            from .netcdf import is_netcdf

            return "netcdf" if is_netcdf(path) else "hdf5"
    except OSError as error:
        raise StoreError(error.errno, f"cannot read {path}: {error.strerror}") from None
    finally:
        os.close(fd)
    if start[:3] == b"CDF" and start[3:4] in (b"\x01", b"\x02", b"\x05"):
        raise StoreError(f"{path} is a classic NetCDF file; convert it first: nccopy -k nc4 {path} new.nc")
    if start[:4] == b"PK\x03\x04":
        raise StoreError(f"{path} is a ZIP archive; take the stores out of it first")
    if len(start) >= 9 and start[8:9] == b"{":
        (length,) = struct.unpack("<Q", start[:8])
        if length <= min(size - 8, MAX_HEADER_BYTES):
            return "safetensors"
    return _suffix(path) if _suffix(path) in ("safetensors", "npy", *_GROUPS_IN_FILES) else None  # a damaged one


def is_zarr(path: str) -> bool:
    """Whether a folder is a group or an array of a Zarr store."""
    return any(os.path.lexists(os.path.join(path, name)) for name in _ZARR_FILES)


def zarr_root(path: str) -> tuple[str, str]:
    """The outermost group that a folder of a Zarr store lies in, and the folder's path in that."""
    here, inner = path.rstrip("/") or "/", ""
    while True:
        parent, name = os.path.split(here)
        if name in ("", ".", "..") or not is_zarr(parent or "."):
            return here, inner
        here, inner = parent or ".", f"{name}/{inner}" if inner else name


# -- destinations -----------------------------------------------------------------------------------------------------


def _destination(text: str, path: str, inner: str, format: str | None, to: Any, source: Place | None) -> Place:
    path = path.rstrip("/") or "/"
    root, within, found = by_name(path)
    if format is not None and format != found:
        root, within, found = path, "", format
    if found is None and os.path.isfile(path) and inner:
        found = recognise(path)
    if found is None and to is None and is_zarr(os.path.dirname(path) or "."):
        root, within = zarr_root(os.path.dirname(path) or ".")
        within, found = f"{within}/{os.path.basename(path)}", "zarr"
    if found is None and inner:
        raise ArgumentError(f"{text}: the name {os.path.basename(path)} does not say which format {path} is to have")
    if found is None:
        found = "safetensors" if source is not None and source.format == "safetensors" and to is None else "shards"
    if root.endswith(INDEX_SUFFIX):
        raise ArgumentError(f"{text}: name the folder; its index comes with it")
    inner = _within(text, found, within, inner)
    if found == "zarr":
        return _below_zarr(text, root, inner)
    created = inner if found in _GROUPS_IN_FILES else ""
    is_added = bool(created) and os.path.lexists(root)
    if is_added and format is None:
        found = recognise(root) or found
        if found not in _GROUPS_IN_FILES:
            raise StoreError(f"{root} is there and is no HDF5 file, so that nothing can be added to it")
    return Place(text, root, inner, found, root, created, is_added)


def _destination_of_url(text: str, url: str, inner: str, format: str | None, to: Any, source: Place | None) -> Place:
    """What a URL's name says is to appear there, as a whole; a name that says nothing is a Zarr store's, unless `to` or
    the source is for something else."""
    scheme, _, rest = url.partition("://")
    words = rest.rstrip("/").split("/")
    cut, found = len(words), format or _suffix(words[-1])
    for k, word in enumerate(words[:-1]):
        if _suffix(word) in ("zarr", *_GROUPS_IN_FILES) and format in (None, _suffix(word)):
            cut, found = k + 1, _suffix(word)
            break
    if words[-1].endswith(INDEX_SUFFIX):
        raise ArgumentError(f"{text}: name the folder; its index comes with it")
    if found is None:
        of_tensors = source is not None and source.format == "safetensors"
        found = "shards" if to is not None else "safetensors" if of_tensors else "zarr"
    root = f"{scheme}://{'/'.join(words[:cut])}"
    inner = _within(text, found, "/".join(words[cut:]), inner)
    return Place(text, root, inner, found, root, inner if found in ("zarr", *_GROUPS_IN_FILES) else "")


def by_name(path: str) -> tuple[str, str, str | None]:
    """The file or folder of a path that is named as a store is, what follows in it, and its format."""
    words = path.split("/")
    for k, word in enumerate(words):
        format, root = _suffix(word), "/".join(words[: k + 1])
        last = k + 1 == len(words)
        if format == "zarr" and not last and os.path.isdir(root) and not is_zarr(root):
            continue  # a folder of stores
        if format == "zarr" or (format in _GROUPS_IN_FILES and not os.path.isdir(root)) or (format and last):
            return root, "/".join(words[k + 1 :]), format
    return path, "", None


def _below_zarr(text: str, root: str, inner: str) -> Place:
    """A Zarr store that is not there yet appears whole; one that is gets the first folder that it lacks."""
    words = inner.split("/") if inner else []
    if not is_zarr(root):
        return Place(text, root, inner, "zarr", root, inner)
    path = root
    for k, word in enumerate(words):
        path = os.path.join(path, word)
        if not os.path.lexists(path):
            return Place(text, root, inner, "zarr", path, "/".join(words[k + 1 :]))
    return Place(text, root, inner, "zarr", path, "")
