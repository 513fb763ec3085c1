"""Places of stores, as people type them: "era5.zarr/t2m", "run.h5::/fields/u", "shards/".

A source is recognised by what is there, a destination by its name.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from .._words import short
from ..errors import ArgumentError, StoreError
from .array import StoreReader
from .layout_json import NAME as LAYOUT_JSON
from .object_places import below, is_http, is_url, without_password, without_query
from .publish import file_name
from .random_access import exists_in, is_file
from .recognise import (
    GROUPS_IN_FILES,
    KNOWN,
    is_named_as_file,
    is_zarr,
    recognise,
    recognise_file,
    recognise_folder,
    suffix_of,
    zarr_root,
)
from .safetensors_header import INDEX_SUFFIX
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
_ONE_ARRAY = ("npy", "shards")


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
    path, inner = _split(name)
    if path.startswith("file://"):
        parts = urlsplit(path)
        if parts.netloc not in ("", "localhost"):
            raise ArgumentError(f"{name} is a file of another machine, {parts.netloc}")
        path = unquote(parts.path)
    if is_url(path):
        if destination:
            return _in_unicode(_destination_of_url(without_password(name), path, inner, format, to, source))
        return _of_url(without_password(name), path, inner, format)
    if destination:
        return _in_unicode(_destination(name, path, inner, format, to, source))
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


def _in_unicode(place: Place) -> Place:
    """A place where names within the store are text, which files and folders need not be called by."""
    try:
        place.inner.encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"nothing within a store can be called {place.inner!r}, which is no Unicode text") from None
    return place


def _within(text: str, format: str, *inner: str) -> str:
    """A path within a store, put together."""
    if format == "safetensors":  # where names may have slashes anywhere
        return "/".join(word for word in inner if word)
    words = [word for part in inner for word in _words_of(part)]
    if words and format in _ONE_ARRAY:
        raise ArgumentError(f"{text}: that store is one array without a name; there is no {'/'.join(words)!r} in it")
    return "/".join(words)


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
        raise StoreError(f"{there} is not {KNOWN}, or an unfinished one")
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


# -- sources at URLs ---------------------------------------------------------------------------------------------------


def _of_url(text: str, url: str, inner: str, format: str | None) -> Place:
    """A source at a URL. What is named as a Zarr store is one, without asking; else what is there says what it is."""
    base = without_query(url)
    scheme, _, rest = base.partition("://")
    words = rest.rstrip("/").split("/")

    def root(cut: int) -> str:
        return f"{scheme}://{'/'.join(words[:cut])}{url[len(base) :]}"

    of_zarr = next((k + 1 for k, word in enumerate(words) if word.lower().endswith(".zarr")), 0)
    if format == "zarr" or (format is None and of_zarr):
        cut, found = of_zarr or len(words), "zarr"
    else:
        within = [k for k in range(len(words) - 1, 0, -1) if is_named_as_file(words[k - 1])]
        cut, found = _look_at_url(root, [len(words), *within], format)
    path = root(cut)
    if found == "shards" and inner and not exists_in(path, LAYOUT_JSON):
        path, inner = below(path, "/".join(_words_of(inner))), ""  # an array of a group of shards is a store itself
    inner = _within(text, found, "/".join(words[cut:]), inner)
    return Place(text, path, inner, found, path, inner)


def _look_at_url(root: Callable[[int], str], cuts: list[int], format: str | None) -> tuple[int, str]:
    """Which of the first names of a URL are a store, and its format: the first of `cuts` at which there is a file, or
    else the folder at the first of them, which is a Zarr store's where nothing says otherwise."""
    unknown: StoreError | None = None
    for cut in cuts:
        try:
            if not is_file(root(cut)):
                continue
            found = format or recognise_file(root(cut))
            if found is not None:
                return cut, found
            unknown = unknown or StoreError(f"{without_password(root(cut))} is not {KNOWN}, or an unfinished one")
        except StoreError as error:
            if not is_http(root(cut)):
                raise
            unknown = unknown or error  # of a folder, a web server may tell anything
    try:
        folder = format or recognise_folder(root(cuts[0]))
    except StoreError as error:
        raise unknown or error from None
    if folder is None and unknown is not None:
        raise unknown
    if folder is None and is_named_as_file(root(cuts[0])):
        raise StoreError(f"{without_password(root(cuts[0]))} does not exist")
    return cuts[0], folder or "zarr"


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
    created = inner if found in GROUPS_IN_FILES else ""
    is_added = bool(created) and os.path.lexists(root)
    if is_added and format is None:
        found = recognise(root) or found
        if found not in GROUPS_IN_FILES:
            raise StoreError(f"{root} is there and is no HDF5 file, so that nothing can be added to it")
    return Place(text, root, inner, found, root, created, is_added)


def _destination_of_url(text: str, url: str, inner: str, format: str | None, to: Any, source: Place | None) -> Place:
    """What a URL's name says is to appear there, as a whole; a name that says nothing is a Zarr store's, unless `to` or
    the source is for something else."""
    scheme, _, rest = url.partition("://")
    words = rest.rstrip("/").split("/")
    cut, found = len(words), format or suffix_of(words[-1])
    for k, word in enumerate(words[:-1]):
        if suffix_of(word) in ("zarr", *GROUPS_IN_FILES) and format in (None, suffix_of(word)):
            cut, found = k + 1, suffix_of(word)
            break
    if words[-1].endswith(INDEX_SUFFIX):
        raise ArgumentError(f"{text}: name the folder; its index comes with it")
    if found is None:
        of_tensors = source is not None and source.format == "safetensors"
        found = "shards" if to is not None else "safetensors" if of_tensors else "zarr"
    root = f"{scheme}://{'/'.join(words[:cut])}"
    inner = _within(text, found, "/".join(words[cut:]), inner)
    return Place(text, root, inner, found, root, inner if found in ("zarr", *GROUPS_IN_FILES) else "")


def by_name(path: str) -> tuple[str, str, str | None]:
    """The file or folder of a path that is named as a store is, what follows in it, and its format."""
    words = path.split("/")
    for k, word in enumerate(words):
        format, root = suffix_of(word), "/".join(words[: k + 1])
        last = k + 1 == len(words)
        if format == "zarr" and not last and os.path.isdir(root) and not is_zarr(root):
            continue  # a folder of stores
        if format == "zarr" or (format in GROUPS_IN_FILES and not os.path.isdir(root)) or (format and last):
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
