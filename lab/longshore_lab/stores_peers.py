"""The peers of `longshore bench stores`, each as a user of it would write it: `PYTHON stores_peers.py NAME JOB.json`.

This file is run as a program, by this interpreter or by another one that has what a peer needs (rechunker wants zarr
before 3, and we have a later one), so that it imports nothing of ours. `PYTHON stores_peers.py --versions` says what an
interpreter has.

A job is a JSON object: source, destination, shape, dtype, source_chunks, chunks, shards, codec ("raw", "zstd", "gzip"),
ceiling (bytes, for those who take one), threads, scratch (an empty folder).
"""

import itertools
import json
import math
import os
import sys
from dataclasses import dataclass

DATASET = "fields/u"  # in an HDF5 file
ZSTD_LEVEL, GZIP_LEVEL = 3, 4


@dataclass(frozen=True)
class Peer:
    """What a peer needs: distributions, with the major version that is too new where there is one."""

    needs: dict
    install: str
    formats: tuple = ("zarr2",)
    has_ceiling: bool = True
    slow_to_start: bool = False  # `--quick` leaves it out


PEERS = {
    "rechunker": Peer({"rechunker": None, "zarr": 3}, "pip install rechunker 'zarr<3'"),
    "cubed": Peer({"cubed": None, "zarr": 3}, "pip install cubed 'zarr<3'", slow_to_start=True),
    "dask, p2p": Peer(
        {"dask": None, "distributed": None, "zarr": None},
        "pip install 'dask[array,distributed]' zarr",
        slow_to_start=True,
    ),
    "dask": Peer({"dask": None, "zarr": None}, "pip install 'dask[array]' zarr", has_ceiling=False, slow_to_start=True),
    "zarr-python": Peer({"zarr": None}, "pip install zarr", ("zarr2", "zarr3")),
    "tensorstore": Peer({"tensorstore": None}, "pip install tensorstore", ("zarr2", "zarr3")),
    "h5py, tuned cache": Peer({"h5py": None}, "pip install h5py", ("hdf5",)),
}


def lacking(peer, versions):
    """What of a peer's needs these versions of distributions do not meet, in words; empty where nothing is lacking."""
    absent = []
    for name, too_new in peer.needs.items():
        if name not in versions:
            absent.append(f"no {name}")
        elif too_new is not None and int(versions[name].split(".")[0]) >= too_new:
            absent.append(f"{name} {versions[name]} is too new, it wants one before {too_new}")
    return ", ".join(absent)


def versions():
    """The versions of the distributions that peers need and that are installed here."""
    from importlib import metadata

    found = {}
    for name in sorted({name for peer in PEERS.values() for name in peer.needs}):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


# --- regions that fit in memory


def source_bytes(shape, source_chunks, region, itemsize):
    """What is decoded if an array is read region by region, every chunk that a region meets being read whole."""
    total = itemsize
    for extent, chunk, step in zip(shape, source_chunks, region):
        ends = ((first, min(first + step, extent)) for first in range(0, extent, step))
        total *= sum((-(-last // chunk) - first // chunk) * chunk for first, last in ends)
    return total


def region_within(job, most_bytes):
    """Whole chunks of the target that fit together in so many bytes, so that as little as possible is read twice; of
    those that read the same, the smallest. One chunk where not even that fits."""
    shape, chunks, itemsize = job["shape"], job["shards"] or job["chunks"], _itemsize(job)
    choices = []
    for extent, chunk in zip(shape, chunks):
        whole = -(-extent // chunk)
        steps = {1 << k for k in range(whole.bit_length())} | {-(-whole // parts) for parts in range(1, 33)}
        choices.append(sorted(min(step * chunk, extent) for step in steps))
    best = None
    for region in itertools.product(*choices):
        held = math.prod(region) * itemsize
        if held <= most_bytes:
            cost = source_bytes(shape, job["source_chunks"], region, itemsize), held
            best = min(best, (cost, region)) if best else (cost, region)
    return best[1] if best else tuple(min(chunk, extent) for chunk, extent in zip(chunks, shape))


def regions(shape, region):
    """Slices, region by region."""
    for corner in itertools.product(*(range(0, extent, step) for extent, step in zip(shape, region))):
        yield tuple(slice(at, min(at + step, extent)) for at, step, extent in zip(corner, region, shape))


def _itemsize(job):
    return int(job["dtype"][2:])


# --- Zarr


def create_zarr(path, shape, chunks, dtype, codec, zarr_format=2, shards=None, **more):
    """An empty array, by whatever zarr-python is here. Chunks are compressed by zstd, or raw."""
    import zarr

    if int(zarr.__version__.split(".")[0]) < 3:
        from numcodecs import Zstd

        compressor = Zstd(ZSTD_LEVEL) if codec == "zstd" else None
        return zarr.open(
            str(path), mode="w", shape=shape, chunks=chunks, dtype=dtype, compressor=compressor, fill_value=0, **more
        )
    if zarr_format == 2:
        from numcodecs import Zstd

        compressors = Zstd(ZSTD_LEVEL) if codec == "zstd" else None
    else:
        from zarr.codecs import ZstdCodec

        compressors = ZstdCodec(level=ZSTD_LEVEL) if codec == "zstd" else None
    how = {"shape": shape, "chunks": chunks, "dtype": dtype, "fill_value": 0, "shards": shards, **more}
    return zarr.create_array(store=str(path), zarr_format=zarr_format, compressors=compressors, filters=None, **how)


def _zarr_format(job):
    return 2 if os.path.exists(os.path.join(job["source"], ".zarray")) else 3


def _target(job):
    shards = tuple(job["shards"]) if job["shards"] else None
    of = tuple(job["shape"]), tuple(job["chunks"]), job["dtype"], job["codec"]
    return create_zarr(job["destination"], *of, _zarr_format(job), shards)


def _zarr_python(job):
    """Region by region; half of the memory is left to what zarr-python decodes and encodes meanwhile."""
    import zarr

    source, target = zarr.open(job["source"], mode="r"), _target(job)
    for region in regions(job["shape"], region_within(job, job["ceiling"] // 2)):
        target[region] = source[region]


def _tensorstore(job):
    """Region by region: it has no limit of its own for copies. A third of the memory is for a region, as it holds that
    twice, decoded and on its way to a file."""
    import tensorstore as ts

    zarr_format = _zarr_format(job)
    threads = {"data_copy_concurrency": {"limit": job["threads"]}}

    def at(path, **more):
        driver = "zarr" if zarr_format == 2 else "zarr3"
        return ts.open(
            {"driver": driver, "kvstore": {"driver": "file", "path": path}, "context": threads, **more}
        ).result()

    source = at(job["source"])
    target = at(job["destination"], create=True, metadata=_tensorstore_metadata(job, zarr_format))
    for region in regions(job["shape"], region_within(job, job["ceiling"] // 3)):
        target[region].write(source[region].read().result()).result()


def _tensorstore_metadata(job, zarr_format):
    zstd, raw = {"id": "zstd", "level": ZSTD_LEVEL}, job["codec"] == "raw"
    if zarr_format == 2:
        of = {"shape": job["shape"], "chunks": job["chunks"], "dtype": job["dtype"], "fill_value": 0}
        return {**of, "compressor": None if raw else zstd, "filters": None, "order": "C", "dimension_separator": "."}
    import numpy as np

    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    codecs += [] if raw else [{"name": "zstd", "configuration": {"level": ZSTD_LEVEL}}]
    outer = job["chunks"]
    if job["shards"]:
        inside = {"chunk_shape": job["chunks"], "codecs": codecs}
        codecs, outer = [{"name": "sharding_indexed", "configuration": inside}], job["shards"]
    grid = {"name": "regular", "configuration": {"chunk_shape": outer}}
    of = {"shape": job["shape"], "data_type": np.dtype(job["dtype"]).name, "fill_value": 0}
    return {**of, "chunk_grid": grid, "codecs": codecs}


def _rechunker(job):
    """`max_mem` is a task's, and there is a task a thread. What lies between has the source's codec."""
    import dask
    import zarr
    from numcodecs import Zstd
    from rechunker import rechunk

    options = {"compressor": Zstd(ZSTD_LEVEL) if job["codec"] == "zstd" else None}
    source, most = zarr.open(job["source"], mode="r"), job["ceiling"] // job["threads"]
    stores = {"target_store": job["destination"], "temp_store": os.path.join(job["scratch"], "between.zarr")}
    how = {"target_options": options, "temp_options": options}
    plan = rechunk(source, target_chunks=tuple(job["chunks"]), max_mem=most, **stores, **how)
    with dask.config.set(scheduler="threads", num_workers=job["threads"]):
        plan.execute()


def _cubed(job):
    """`allowed_mem` is a task's, and there is a task a thread; what the process holds anyway is not counted. Names a
    codec for what lies between as zarr-python 2 has them, so that it wants that."""
    import cubed

    codec = {"id": "zstd", "level": ZSTD_LEVEL} if job["codec"] == "zstd" else None
    spec = cubed.Spec(
        work_dir=job["scratch"],
        allowed_mem=job["ceiling"] // job["threads"],
        reserved_mem=0,
        executor_name="threads",
        executor_options={"max_workers": job["threads"]},
        zarr_compressor=codec,
    )
    array = cubed.from_zarr(job["source"], spec=spec).rechunk(tuple(job["chunks"]))
    cubed.store([array], [_target(job)])


def _dask_array(job, method):
    import dask.array as da

    array = da.from_zarr(job["source"]).rechunk(tuple(job["chunks"]), method=method)
    da.store(array, _target(job), lock=False)  # each of its chunks is one of the target's: they need no lock


def _dask(job):
    import dask

    with dask.config.set(scheduler="threads", num_workers=job["threads"]):
        _dask_array(job, "tasks")


def _dask_p2p(job):
    """One worker process with all threads, so that the limit is one. What it holds before it begins is not counted: it
    neither pauses nor is killed for that, and p2p's own buffers, which is where its memory goes, share the ceiling."""
    import dask
    from distributed import Client, LocalCluster

    settings = {f"distributed.worker.memory.{what}": False for what in ("target", "spill", "pause", "terminate")}
    settings |= {f"distributed.p2p.{what}.buffer": job["ceiling"] // 4 for what in ("comm", "storage")}
    where = {"local_directory": job["scratch"], "dashboard_address": None}
    workers = {"n_workers": 1, "threads_per_worker": job["threads"]}
    with dask.config.set(settings), LocalCluster(**workers, **where) as cluster, Client(cluster):
        _dask_array(job, "p2p")


# --- HDF5


def _h5py(job):
    """Region by region, half of the memory for it, a quarter for each cache of chunks."""
    import h5py

    cache = {"rdcc_nbytes": job["ceiling"] // 4, "rdcc_w0": 1.0}
    cache["rdcc_nslots"] = _prime_from(100 * max(1, cache["rdcc_nbytes"] // (math.prod(job["source_chunks"]) * 4)))
    gzip = {"compression": "gzip", "compression_opts": GZIP_LEVEL} if job["codec"] == "gzip" else {}
    with h5py.File(job["source"], "r", **cache) as source, h5py.File(job["destination"], "w", **cache) as target:
        of, shape = source[DATASET], tuple(job["shape"])
        to = target.create_dataset(DATASET, shape, job["dtype"], chunks=tuple(job["chunks"]), **gzip)
        for region in regions(shape, region_within(job, job["ceiling"] // 2)):
            to[region] = of[region]


def _prime_from(n):
    """The first prime number from n on, at most about a million."""
    n = min(n, 1 << 20)
    while any(n % k == 0 for k in range(2, math.isqrt(n) + 1)):
        n += 1
    return n


_RUN = {
    "rechunker": _rechunker,
    "cubed": _cubed,
    "dask, p2p": _dask_p2p,
    "dask": _dask,
    "zarr-python": _zarr_python,
    "tensorstore": _tensorstore,
    "h5py, tuned cache": _h5py,
}


def _main(words):
    # The folder of this file has modules of ours, whose names others have too.
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != os.path.dirname(os.path.abspath(__file__))]
    if words == ["--versions"]:
        print(json.dumps(versions()))
        return
    name, job = words
    with open(job, encoding="utf-8") as file:
        _RUN[name](json.load(file))


if __name__ == "__main__":
    _main(sys.argv[1:])
