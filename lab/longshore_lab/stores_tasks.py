"""The standard work of `longshore bench stores`: arrays, their chunks before and after, and what their elements are.

Elements are a formula of where they lie, smooth with noise in the low bits, so that zstd gives about 2×: a source is
written piece by piece, and what a contender has written is compared without reading the source again.
"""

import json
import math
import os
import random
import shutil
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from .protocol import BenchError, Missing, WrongResult
from .stores_peers import DATASET, GZIP_LEVEL, create_zarr, regions

LONGSHORE, LIMITED, COPY = "longshore", "longshore in a cgroup", "copy of the files"
ALLOWED_BYTES = 64_000_000  # beyond the ceiling, for what libraries hold themselves
CEILINGS = (128, 256, 512, 1000)  # MB, at full scale
_PIECE_BYTES = 8 << 20  # of a source that is written at once
_LOOKED_AT_BYTES = 64 << 20  # of what was written, in chunks by chance; all of it where it is not more
_LEAST_CHUNKS = 8  # looked at, however large they are
_SEED = 16


@dataclass(frozen=True)
class Task:
    """One array and the chunks that it is wanted in."""

    key: str
    words: str
    shape: tuple
    chunks: tuple
    target: tuple
    dtype: str
    full_bytes: int = 0  # of the array at full scale
    format: str = "zarr2"  # or "zarr3", "hdf5", "netcdf"
    codecs: tuple = ("raw", "zstd")
    shards: tuple | None = None  # of the destination

    nbytes = property(lambda self: math.prod(self.shape) * np.dtype(self.dtype).itemsize)

    def ceiling(self, megabytes):
        """So many bytes that V over the ceiling is what it is at full scale."""
        return round(megabytes * 1e6 * self.nbytes / (self.full_bytes or self.nbytes))

    @property
    def suffix(self):
        return {"hdf5": ".h5", "netcdf": ".nc"}.get(self.format, ".zarr")

    @cached_property
    def _waves(self):
        """For each dimension, the values along it; an element is the sum of those where it lies."""
        chance = np.random.default_rng([_SEED, len(self.shape)])
        waves = []
        for extent in self.shape:
            place = np.arange(extent) / max(extent, 64)
            phases, turns = chance.random(3), (1, 3, 7)
            waves.append(sum(np.sin(2 * np.pi * (turn * place + phase)) / turn for turn, phase in zip(turns, phases)))
        return waves

    def values(self, region):
        """The elements of a region, slices with a beginning and an end."""
        d, dtype = len(self.shape), np.dtype(self.dtype)
        smooth, index = np.zeros((1,) * d), np.zeros((1,) * d, np.uint64)
        step = 1
        for k in reversed(range(d)):
            along = [-1 if j == k else 1 for j in range(d)]
            smooth = smooth + self._waves[k][region[k]].reshape(along)
            places = np.arange(region[k].start, region[k].stop, dtype=np.uint64) * np.uint64(step)
            index = index + places.reshape(along)
            step *= self.shape[k]
        noise = index * np.uint64(0x9E3779B97F4A7C15)  # numbers that differ in a bit get bits by chance
        noise ^= noise >> np.uint64(32)
        noise *= np.uint64(0xD6E8FEB86659FD93)
        if dtype.kind == "f":
            # Sixteenth parts of small numbers have zeros in their low bits.
            bits = 6 if dtype.itemsize == 4 else 20
            fraction = np.round(smooth * 64) + (noise >> np.uint64(64 - bits)) / 2.0 ** (bits - 4)
            return (280 + fraction / 64).astype(dtype)
        bits = 2 if dtype.itemsize == 2 else 10
        counts = np.round(smooth * 50) + 500
        return (counts.astype(dtype) << dtype.type(bits)) + (noise >> np.uint64(64 - bits)).astype(dtype)


def tasks(scale):
    """All tasks by key, with about `scale` of the full arrays' bytes: what has to be held at once, for one pass over
    an array, shrinks with it as the ceilings do."""
    if not 0 < scale <= 1:
        raise BenchError(f"the scale is {scale:g}; it must be above 0 and at most 1, which is the study's sizes")
    full, scaled = _tasks(1.0), _tasks(scale)
    return {key: replace(task, full_bytes=full[key].nbytes) for key, task in scaled.items()}


def _tasks(scale):
    def near(n, of=1, least=1):
        """About n, a multiple of something."""
        return max(least, round(n / of)) * of

    hours = near(8760 * scale, least=8)
    maps = {"shape": (hours, 181, 360), "chunks": (1, 181, 360), "target": (hours, 8, 8), "dtype": "<f4"}
    wide = near(32 * scale ** (1 / 3), least=2)
    side = near(1024 * scale ** (1 / 3), wide)
    block = near(1000 * scale**0.5, least=4)
    plane = near(2048 * scale**0.5, 64)
    planes = {"shape": (512, plane, plane), "chunks": (1, plane, plane), "target": (64, 64, 64), "dtype": "<u2"}
    shard = (128, near(plane / 4, 64), near(plane / 4, 64))
    rows, columns = near(67186 * scale**0.5), near(3720 * scale**0.5, 10)
    every = (
        Task("A", "maps of each hour to series of each place (ERA5)", **maps),
        Task("B", "pencils to pencils", (side,) * 3, (side, wide, wide), (wide, wide, side), "<f4"),
        Task("C", "blocks to blocks, where nothing divides", (20 * block,) * 2, (block,) * 2, (block - 1,) * 2, "<f8"),
        Task(
            *("D", "columns of HDF5 (HDFGroup/hdf5#6458)"),
            *((rows, columns), (2000, 1), (rows, 10), "<u4"),
            format="hdf5",
            codecs=("gzip",),
        ),
        Task("F", "image planes to cubes", **planes),
        Task("netcdf", "A in NetCDF-4, every variable", **maps, format="netcdf", codecs=("raw", "gzip")),
        Task("shards", "F into shards of Zarr 3", **planes, format="zarr3", shards=shard),
    )
    return {task.key: task for task in every}


def tiny(task):
    """The same kind of work on next to nothing: what a tool takes for it is what it takes to be there."""
    d = len(task.shape)
    shards = None if task.shards is None else (4,) * d
    return replace(task, shape=(4,) * d, chunks=(1,) + (4,) * (d - 1), target=(4,) + (2,) * (d - 1), shards=shards)


# --- sources


def make_source(task, codec, path):
    """Writes the array of a task, piece by piece."""
    path = str(path)
    if task.format == "hdf5":
        import h5py

        with h5py.File(path, "w") as file:
            _fill(task, file.create_dataset(DATASET, task.shape, task.dtype, chunks=task.chunks, **_gzip(codec)))
    elif task.format == "netcdf":
        _make_netcdf(task, codec, path)
    else:
        zarr_format = 2 if task.format == "zarr2" else 3
        _fill(task, create_zarr(path, task.shape, task.chunks, task.dtype, codec, zarr_format))


def _gzip(codec):
    return {"compression": "gzip", "compression_opts": GZIP_LEVEL} if codec == "gzip" else {}


def _make_netcdf(task, codec, path):
    """A variable with coordinates, attributes and a dimension that may grow."""
    import netCDF4

    with netCDF4.Dataset(path, "w") as file:
        file.setncatts({"title": "maps of each hour", "Conventions": "CF-1.8"})
        for name, extent in zip(("time", "lat", "lon"), task.shape):
            file.createDimension(name, None if name == "time" else extent)
            of = file.createVariable(name, "f8", (name,), chunksizes=(min(extent, 512),))
            of.units = {"time": "hours since 2020-01-01", "lat": "degrees_north", "lon": "degrees_east"}[name]
            of[:] = np.arange(extent) - {"lat": 90.0, "lon": 180.0}.get(name, 0.0)
        zlib = {"zlib": True, "complevel": GZIP_LEVEL} if codec == "gzip" else {}
        of = file.createVariable(
            "t2m", task.dtype, ("time", "lat", "lon"), chunksizes=task.chunks, fill_value=-999.0, **zlib
        )
        of.setncatts({"units": "K", "long_name": "temperature at 2 m", "valid_range": np.array([150, 350], "f4")})
        _fill(task, of)


def _fill(task, array):
    piece = list(task.chunks)
    for k in reversed(range(len(piece))):
        while piece[k] < task.shape[k] and 2 * math.prod(piece) * np.dtype(task.dtype).itemsize <= _PIECE_BYTES:
            piece[k] *= 2
    for region in regions(task.shape, piece):
        array[region] = task.values(region)


def stored_bytes(path):
    """Of a file, or of all files in a folder."""
    path = Path(path)
    files = (place for place in path.rglob("*") if place.is_file()) if path.is_dir() else [path]
    return sum(os.path.getsize(place) for place in files)


# --- what was written


def check_destination(task, codec, path):
    """Raises WrongResult unless an array with the right chunks, codec and elements is there. Of large ones, chunks by
    chance are compared, the first and the last always."""
    if not os.path.exists(path):
        raise WrongResult(f"nothing is at {Path(path).name}")
    if task.format in ("hdf5", "netcdf"):
        import h5py

        with h5py.File(path, "r") as file:
            array = file[DATASET if task.format == "hdf5" else "t2m"]
            _same("codec", "raw" if array.compression is None else array.compression, codec)
            _compare(task, array, array.chunks)
        return
    import zarr

    array = zarr.open(str(path), mode="r")
    if not hasattr(array, "shape"):
        raise WrongResult(f"{Path(path).name} is a group")
    _same("codec", zarr_codec(path), codec)
    shards = getattr(array, "shards", None)
    _compare(task, array, array.chunks)
    if task.shards is not None:
        _same("extents of shards", tuple(shards or ()), task.shards)
        _compare_by_tensorstore(task, path)


def _compare_by_tensorstore(task, path):
    """Reads shards by another library too, where it is installed."""
    try:
        import tensorstore as ts
    except ImportError:
        return
    _compare(task, ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}).result(), task.target)


def zarr_codec(path):
    """ "raw", or the name of what compresses the chunks of an array of Zarr 2 or 3."""
    place = Path(path)
    if (place / ".zarray").exists():
        compressor = json.loads((place / ".zarray").read_text())["compressor"]
        return "raw" if compressor is None else compressor["id"]
    codecs = json.loads((place / "zarr.json").read_text())["codecs"]
    if codecs[0]["name"] == "sharding_indexed":
        codecs = codecs[0]["configuration"]["codecs"]
    return next((codec["name"] for codec in codecs if codec["name"] not in ("bytes", "crc32c", "transpose")), "raw")


def _same(what, found, wanted):
    if found != wanted:
        raise WrongResult(f"{what}: {found!r} where {wanted!r} was asked for")


def _compare(task, array, chunks):
    _same("extents of chunks", tuple(chunks or ()), task.target)
    _same("shape", tuple(array.shape), task.shape)
    _same("dtype", _dtype(array), np.dtype(task.dtype))
    for region in sample(task):
        found, expected = np.asarray(array[region]), task.values(region)
        if not np.array_equal(found, expected):
            at = tuple(map(int, np.argwhere(found != expected)[0]))
            where = ", ".join(str(part.start + k) for part, k in zip(region, at))
            raise WrongResult(f"element ({where}) is {found[at]} where {expected[at]} belongs")


def _dtype(array):
    return np.dtype(getattr(array.dtype, "numpy_dtype", array.dtype))  # tensorstore has dtypes of its own


def sample(task):
    """Regions of chunks of the target to look at: the first, the last, and others by chance."""
    counts = [-(-extent // chunk) for extent, chunk in zip(task.shape, task.target)]
    total, chunk_bytes = math.prod(counts), math.prod(task.target) * np.dtype(task.dtype).itemsize
    n = min(total, max(_LEAST_CHUNKS, _LOOKED_AT_BYTES // chunk_bytes))
    for number in sorted({0, total - 1, *random.Random(_SEED).sample(range(total), n)}):
        index = np.unravel_index(number, counts)
        starts = [int(i) * chunk for i, chunk in zip(index, task.target)]
        yield tuple(
            slice(first, min(first + chunk, extent)) for first, chunk, extent in zip(starts, task.target, task.shape)
        )


def needs(task):
    """Raises Missing where what makes the source, or looks at the destination, is not installed."""
    wanted = {"hdf5": ("h5py",), "netcdf": ("netCDF4", "h5py")}.get(task.format, ("zarr",))
    for name in wanted:
        try:
            __import__(name)
        except ImportError:
            raise Missing(f"the source is made by {name}: pip install {name}") from None
    if task.format == "zarr3":
        import zarr

        if int(zarr.__version__.split(".")[0]) < 3:
            raise Missing(f"Zarr 3 wants a later zarr-python than {zarr.__version__}: pip install 'zarr>=3'")


# --- what every case does


def longshore_move(source, destination, *options):
    return [sys.executable, "-m", "longshore.cli", "move", str(source), str(destination), "--json", *map(str, options)]


def drop_caches():
    """Brings everything to the disk, and lets go of what was read from it. Whether that is allowed here."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except OSError:
        return False
    return True


def remove(path):
    """A file or a folder with all that is in it."""
    if Path(path).is_dir():
        shutil.rmtree(path)
    else:
        Path(path).unlink(missing_ok=True)
