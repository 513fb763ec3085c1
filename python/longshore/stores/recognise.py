"""Which format something has: by its name, by the first bytes of a file, and by what is in a folder, on a disk or at a
URL."""

from __future__ import annotations

import os
import struct

from ..errors import StoreError
from .layout_json import NAME as LAYOUT_JSON
from .npy import MAGIC as NPY_MAGIC
from .object_places import without_query
from .random_access import RandomAccess, entries_in, exists_in, lists_folders, open_file
from .safetensors_header import INDEX, INDEX_SUFFIX, MAX_HEADER_BYTES, SUFFIX
from .shard_folders import is_group

GROUPS_IN_FILES = ("hdf5", "netcdf")
KNOWN = "a Zarr store, an HDF5, NetCDF-4, safetensors or .npy file, or a folder of shards or of safetensors files"
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
_OF_FILES = ("safetensors", "npy", *GROUPS_IN_FILES)
_ZARR_FILES = ("zarr.json", ".zarray", ".zgroup", ".zmetadata")
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_START_BYTES = 16


def suffix_of(name: str) -> str | None:
    """The format that a name's end says."""
    name = without_query(name)
    return "safetensors" if name.endswith(INDEX_SUFFIX) else _SUFFIXES.get(os.path.splitext(name)[1].lower())


def is_named_as_file(name: str) -> bool:
    """Whether a name is that of a file of one of the formats."""
    return suffix_of(name) in _OF_FILES


def recognise(path: str) -> str | None:
    """The format of what is at a path, by its content; None where that is none we know. Raises StoreError for what has
    to be converted first, and for what is no plain file."""
    return recognise_folder(path) if os.path.isdir(path) else recognise_file(path)


def recognise_folder(folder: str) -> str | None:
    """The format of a folder; None where it is none that we know."""
    if is_zarr(folder):
        return "zarr"
    if exists_in(folder, LAYOUT_JSON):
        return "shards"
    if not lists_folders(folder):
        return "safetensors" if any(exists_in(folder, name) for name in (INDEX, "model" + SUFFIX)) else None
    if any(entry.name.endswith((SUFFIX, INDEX_SUFFIX)) for entry in entries_in(folder)):
        return "safetensors"
    return "shards" if is_group(folder) else None


def recognise_file(place: str) -> str | None:
    """The format of a file; None where it is none that we know."""
    if without_query(place).endswith(INDEX_SUFFIX):
        return "safetensors"
    with open_file(place) as file:
        size = file.size()
        start = file.start(_START_BYTES)
        if start[:6] == NPY_MAGIC:
            return "npy"
        if len(start) >= 9 and start[8:9] == b"{":
            (length,) = struct.unpack("<Q", start[:8])
            if length <= min(size - 8, MAX_HEADER_BYTES):
                return "safetensors"
        if _is_hdf5(file, start):
            from .netcdf import is_netcdf

            return "netcdf" if is_netcdf(place) else "hdf5"
    if start[:3] == b"CDF" and start[3:4] in (b"\x01", b"\x02", b"\x05"):
        raise StoreError(f"{file.name} is a classic NetCDF file; convert it first: nccopy -k nc4 {file.name} new.nc")
    if start[:4] == b"PK\x03\x04":
        raise StoreError(f"{file.name} is a ZIP archive; take the stores out of it first")
    return suffix_of(place) if is_named_as_file(place) else None  # a damaged one


def _is_hdf5(file: RandomAccess, start: bytes) -> bool:
    """Whether a file is one of HDF5. What says so may follow a block of the user's, of 512 bytes or a power of two
    times that."""
    if start[:8] == _HDF5_MAGIC:
        return True
    size = file.size()
    return any(file.read(8, 512 << k) == _HDF5_MAGIC for k in range(55) if (512 << k) + 8 <= size)


def is_zarr(folder: str) -> bool:
    """Whether a folder is a group or an array of a Zarr store."""
    return any(exists_in(folder, name) for name in _ZARR_FILES)


def zarr_root(path: str) -> tuple[str, str]:
    """The outermost group that a folder of a Zarr store lies in, and the folder's path in that."""
    here, inner = path.rstrip("/") or "/", ""
    while True:
        parent, name = os.path.split(here)
        if name in ("", ".", "..") or not is_zarr(parent or "."):
            return here, inner
        here, inner = parent or ".", f"{name}/{inner}" if inner else name
