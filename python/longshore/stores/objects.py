"""Open arrays and files of zarr, h5py and xarray, taken where a path is: which file they come from."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NoReturn

from .._words import short
from ..errors import ArgumentError, ArgumentTypeError


def path_of(thing: Any) -> str:
    """The path of an array, group or file of zarr or h5py, or of a Dataset or DataArray that xarray has opened from a
    file. Raises ArgumentError where there is no file behind it, and ArgumentTypeError for anything else."""
    library = next((name for kind in type(thing).__mro__ if (name := kind.__module__.split(".")[0]) in _LIBRARIES), "")
    if library not in _LIBRARIES:
        raise ArgumentTypeError(
            f"a store is named by a path, a URL, or an object of zarr, h5py or xarray, not by {short(thing)}"
        )
    return _LIBRARIES[library](thing)


def _joined(root: str, inner: str) -> str:
    inner = inner.strip("/")
    return f"{root}::{inner}" if inner else root


def _no_file(thing: Any, why: str) -> NoReturn:
    raise ArgumentError(f"this {type(thing).__name__} {why}; name its store by a path or a URL")


def _of_zarr(thing: Any) -> str:
    store = getattr(thing, "store", None)
    if store is None or not hasattr(thing, "path"):
        _no_file(thing, "is no array or group of zarr")
    files = getattr(store, "fs", None)
    if files is not None:  # a store of fsspec's; for files without coroutines zarr has a wrapper
        files = getattr(files, "sync_fs", files)
        return _joined(files.unstrip_protocol(store.path), thing.path)
    root = getattr(store, "root", None) or getattr(store, "path", None)
    if not isinstance(root, (str, os.PathLike)) or not os.path.isdir(root):
        _no_file(thing, f"lies in a {type(store).__name__}, which is no folder")
    return _joined(os.fspath(root), thing.path)


def _of_h5py(thing: Any) -> str:
    if not thing:
        _no_file(thing, "belongs to a file that has been closed")
    if not hasattr(thing, "file") or thing.name is None:
        _no_file(thing, "has no name in its file")
    file = thing.file
    if not isinstance(file.filename, str) or not os.path.isfile(file.filename):
        _no_file(thing, "lies in memory or in several files")
    if file.mode != "r":
        file.flush()  # what was written is read from the file
    return _joined(file.filename, thing.name)


def _of_xarray(thing: Any) -> str:
    if hasattr(thing, "data_vars"):
        return _of_dataset(thing)
    if not hasattr(thing, "variable") or thing.name is None:
        _no_file(thing, "does not know its name")
    array = _array_of(thing, thing.name, thing.variable)
    source = thing.variable.encoding.get("source")
    if isinstance(source, str):
        return _joined(source, str(thing.name))
    array = getattr(array, "_array", None)  # xarray's variables know the array of zarr that they read, but no file
    if type(array).__module__.split(".")[0] != "zarr":
        _no_file(thing, "does not say which file it was opened from")
    return _of_zarr(array)


def _of_dataset(thing: Any) -> str:
    source = thing.encoding.get("source")
    if not isinstance(source, str):
        _no_file(thing, "does not say which file it was opened from")
    for name, variable in thing.variables.items():
        if name not in thing.indexes:  # xarray loads those
            _array_of(thing, name, variable)
    _check_variables(thing, source, thing.variables)
    return _joined(source, "")


def _array_of(thing: Any, name: Any, variable: Any) -> Any:
    """What a variable reads its values from, all of them as they are in the file. xarray wraps that in objects of its
    own, one in another, some of which know a part that was selected."""
    wrapped = getattr(variable, "_data", None)
    while (inner := getattr(wrapped, "array", None)) is not None:
        for key in getattr(getattr(wrapped, "key", None), "tuple", ()):
            if not isinstance(key, slice) or key != slice(None):
                _no_file(thing, f"is a part of what its file holds, or in another order: {name}")
        wrapped = inner
    if not any(kind.__name__ == "BackendArray" for kind in type(wrapped).__mro__):
        _no_file(thing, f"has values in memory that may not be those of a file: {name}")
    return wrapped


def _check_variables(thing: Any, source: str, variables: Iterable[Any]) -> None:
    """A Dataset of a file's group, or of some of its variables, does not say so: they are compared."""
    from .array import ArrayFacts, GroupFacts
    from .places import open_reader, parse_place

    reader = open_reader(parse_place(source, destination=False))
    try:
        children = reader.tree.children if isinstance(reader.tree, GroupFacts) else {}
        stored = {name for name, child in children.items() if isinstance(child, ArrayFacts)}
    finally:
        reader.close()
    ours = {str(name) for name in variables}
    if not ours <= stored or not stored - ours <= {str(name) for name in thing.dims}:
        names = ", ".join(sorted((ours ^ stored) - {str(name) for name in thing.dims})[:4])
        _no_file(thing, f"has not the variables that {source} holds (they differ in {names})")


_LIBRARIES = {"zarr": _of_zarr, "h5py": _of_h5py, "xarray": _of_xarray}
