"""Moves by the workers of an executor to stores of every format: files that all write, and files that one writes."""

from __future__ import annotations

import gc
import os
import threading
import tracemalloc
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path

import longshore as ls
import numpy as np
import pytest
from executors import MIB, SERIES, Killing, Watched, files, in_two_passes, maps, processes, small_windows, some
from longshore.errors import ArgumentError, MemoryLimitError, StoreError, TransportError, VerificationError
from longshore.stores import dense
from longshore.stores.array import Grid
from longshore.stores.rechunk_executor import EncodedTarget
from longshore.stores.rechunk_passes import plan_passes, results_at_once
from zarr_stores import make

h5py = pytest.importorskip("h5py")

LITTLE = {"b.npy": {"axes": (1, 2, 0), "max_mem": 13 * MIB}, "b": {"to": "(*, BLOCK, *) on 3", "max_mem": 13 * MIB}}
LITTLE["b.h5::/u"] = {"chunks": (64, 16, 16), "codecs": ("gzip:1",), "max_mem": 24 * MIB}
"""Destinations of `maps`, and words with which these are made in several tasks."""
DESTINATIONS = {
    "npy": ("b.npy", {}),
    "fortran": ("b.npy", {"to": "(*, *, *) on 1, order=F"}),
    "shards": ("b", {"to": "(BLOCK, CYCLIC(2), *) on 2xREPLICATED(2)x3"}),
    "safetensors": ("b.safetensors::u", {}),
    "checkpoint": ("b", {}),
    "contiguous": ("b.h5::/g/u", {}),
    "hdf5": ("b.h5::/g/u", {"chunks": (3, 5, 4), "codecs": ("shuffle", "gzip:1")}),
    "netcdf": ("b.nc::/u", {"chunks": (3, 5, 4), "codecs": ("gzip:1",)}),
}
ONE_WRITER = ("hdf5", "netcdf")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dense, "CHUNK_BYTES", 1 << 18)
    return tmp_path


def source_for(kind, folder, array, chunks=(4, 3, 7)):
    """A source from which a destination of this kind comes by itself: of safetensors, contiguous, or in chunks."""
    if kind == "checkpoint":
        ls.move(folder / "a.npy", folder / "a.safetensors::u")
        return "a.safetensors"
    if kind == "contiguous":
        return "a.npy"
    make(folder / "a.zarr", array, chunks, fill_value=0)
    return "a.zarr"


def held(path):
    """What a destination holds: the bytes of its files, or of an HDF5 file, which are others each time, its array."""
    name = path.partition("::")[0]
    if name.endswith((".h5", ".nc")):
        with ls.open(path) as array:
            return array.read().tobytes(), array.shape, array.dtype, array.chunks, array.codecs
    return files(Path(path)) if os.path.isdir(name) else open(name, "rb").read()


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("kind", DESTINATIONS)
def test_an_executor_makes_what_a_plain_move_makes(here, monkeypatch, kind, passes):
    monkeypatch.setattr(dense, "CHUNK_BYTES", 300)
    array = some((13, 11, 10))
    np.save("a.npy", array)
    source, (destination, words) = source_for(kind, here, array), DESTINATIONS[kind]
    if kind not in ("checkpoint", "contiguous"):
        words = {**words, "axes": (2, 0, 1)}
    plain = ls.move(source, destination.replace("b", "plain", 1), **words)
    small_windows(monkeypatch, passes)
    executor = Watched()
    told = ls.move(source, destination, **words, executor=executor, verify=True)
    assert held(destination) == held(destination.replace("b", "plain", 1))
    assert (told.digest, told.chunks, told.bytes_written) == (plain.digest, plain.chunks, plain.bytes_written)
    assert told.verified
    if kind != "contiguous":  # a single box of it is as much
        assert len(executor.moving) > 1
        assert (len(executor.tasks) > len(executor.moving)) == (kind not in ONE_WRITER)
    assert not [name for name in os.listdir() if "partial" in name]


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, processes])
@pytest.mark.parametrize("kind", DESTINATIONS)
def test_pools_of_threads_and_processes(here, pool, kind):
    array = some((64, 100, 70))
    np.save("a.npy", array)
    source, (destination, words) = source_for(kind, here, array, (16, 50, 35)), DESTINATIONS[kind]
    if "chunks" in words:
        words = {**words, "chunks": (10, 40, 35)}
    with pool(2) as executor:
        told = ls.move(source, destination, **words, executor=executor, verify=True)
    assert told.verified
    with ls.open(destination if kind != "checkpoint" else "b/u") as found:
        assert (found.read() == array).all()


def test_a_contiguous_dataset(here):
    array = maps(here)
    np.save("maps.npy", array)
    executor = Watched()
    ls.move("maps.npy", "b.h5::/u", axes=(1, 2, 0), max_mem=32 * MIB, executor=executor, verify=True)
    assert len(executor.moving) > 1 and len(executor.tasks) > len(executor.moving)
    with h5py.File("b.h5") as file:
        assert file["u"].chunks is None and (file["u"][...] == array.transpose(1, 2, 0)).all()


def test_two_passes_into_a_file(here):
    array = maps(here)
    words = {"axes": (1, 2, 0), "max_mem": SERIES["max_mem"]}
    with processes(2) as executor:
        told = ls.move("maps.zarr", "series.npy", **words, executor=executor, verify=True)
    assert in_two_passes(told) and told.bytes_spilled > 0
    assert (np.load("series.npy") == array.transpose(1, 2, 0)).all()
    assert sorted(os.listdir()) == ["maps.zarr", "series.npy"]


def test_a_group_goes_to_shards(here):
    random = np.random.default_rng(3)
    with h5py.File("a.h5", "w") as file:
        arrays = {"w": random.normal(size=(300, 50)), "g/b": np.arange(70.0), "step": np.array(3)}
        for name, array in arrays.items():
            file[name] = array
    with processes(2) as executor:
        told = ls.move("a.h5", "b", "(BLOCK, *) on 3", executor=executor, verify=True)
    assert told.verified
    with ls.open("b") as group:
        assert all((group[name].read() == array).all() for name, array in arrays.items())


def test_a_dataset_comes_into_a_file_that_is_there(here):
    array = maps(here)
    with h5py.File("b.h5", "w") as file:
        file["mine"] = np.arange(5)
    with processes(2) as executor:
        ls.move("maps.zarr", "b.h5::/new/u", **LITTLE["b.h5::/u"], executor=executor, verify=True)
    with h5py.File("b.h5") as file:
        assert (file["new/u"][...] == array).all() and file["new/u"].compression == "gzip"
        assert (file["mine"][...] == np.arange(5)).all()


@pytest.mark.parametrize("destination", LITTLE)
@pytest.mark.parametrize("resume", [False, True])
def test_a_killed_worker_is_told_and_the_next_run_goes_on(here, destination, resume):
    array = maps(here)
    words = LITTLE[destination]
    with processes(2) as pool, pytest.raises(TransportError, match="a worker was killed"):
        ls.move("maps.zarr", destination, **words, executor=Killing(pool, 4), resume=resume)
    assert (len(os.listdir()) > 1) == resume and not os.path.exists(destination.partition("::")[0])
    with processes(2) as pool:
        ls.move("maps.zarr", destination, **words, executor=pool, resume=resume, verify=True)
    with ls.open(destination) as found:
        assert (found.read() == (array.transpose(1, 2, 0) if destination == "b.npy" else array)).all()
    assert sorted(os.listdir()) == sorted([destination.partition("::")[0], "maps.zarr"])


@pytest.mark.parametrize("destination", LITTLE)
def test_a_stopped_run_is_gone_on_with(here, destination):
    array = maps(here)
    more = LITTLE[destination]
    whole = Watched()
    ls.move("maps.zarr", destination.replace("b", "whole", 1), **more, executor=whole)

    def fail(number, task):
        if number == len(whole.tasks) - 2:
            raise RuntimeError("the machine has been switched off")

    with pytest.raises(TransportError, match="switched off"):
        ls.move("maps.zarr", destination, **more, executor=Watched(fail), resume=True)
    executor = Watched()
    told = ls.move("maps.zarr", destination, **more, executor=executor, resume=True, verify=True)
    assert told.resumed_chunks > 0 and len(executor.moving) <= 2
    with ls.open(destination) as found:
        assert (found.read() == (array.transpose(1, 2, 0) if destination == "b.npy" else array)).all()
    assert len(os.listdir()) == 3


class Slow(Executor):
    """Runs tasks when nothing more is given to it for a moment, and knows how many waited at most."""

    def __init__(self):
        self.most, self._waiting, self._lock, self._timer = 0, [], threading.Lock(), None

    def submit(self, task, /, *args, **kwargs):
        future = Future()
        with self._lock:
            self._waiting.append((future, task))
            self.most = max(self.most, len(self._waiting))
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(0.05, self._run)
            self._timer.start()
        return future

    def _run(self):
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for future, task in waiting:
            try:
                future.set_result(task())
            except Exception as error:
                future.set_exception(error)


def test_what_is_handed_back_keeps_the_ceiling(here):
    array = np.random.default_rng(0).normal(size=(64, 256, 256)).astype("f4")  # which no codec makes smaller
    make(here / "maps.zarr", array, (1, 256, 256), fill_value=0, compressor=None)
    words = {"chunks": (64, 32, 32), "codecs": ("gzip:1",), "max_mem": 32 * MIB}
    executor = Slow()
    gc.collect()
    tracemalloc.start()
    try:
        told = ls.move("maps.zarr", "b.h5::/u", **words, executor=executor)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < words["max_mem"] and told.predicted["memory_bytes"] <= words["max_mem"] // 2
    assert 1 < executor.most < 64
    with ls.open("b.h5::/u") as found:
        assert (found.read() == array).all()


def test_the_least_that_would_do_is_told(here):
    maps(here)
    with ThreadPoolExecutor(1) as executor:
        words = {"chunks": (64, 128, 128), "codecs": ("gzip:1",), "executor": executor}
        with pytest.raises(MemoryLimitError, match=r"allow --max-mem (\d+)MiB") as caught:
            ls.move("maps.zarr", "b.h5::/u", **words, max_mem="20MiB")
        least = str(caught.value).rpartition(" ")[2]
        ls.move("maps.zarr", "b.h5::/u", **words, max_mem=least)
    source, target = Grid((64, 256, 256), (1, 256, 256)), Grid((64, 256, 256), (64, 128, 128))
    how = {"threads": 1, "stored_bytes": None, "target_bytes": None, "addressable": False, "raw": False, "beside": 0}
    plan, passes = plan_passes(source, target, target, 4, 1 << 30, **how, handed_back=True)
    assert results_at_once(passes[-1], 1 << 30) >= 8 and plan.memory_bytes <= 1 << 29


def test_a_flipped_bit_is_found_by_the_workers(here):
    maps(here)

    def flip(number, task):
        if not seen and number and not hasattr(task, "source"):
            (path,) = here.glob(".b.npy*[0-9a-f]")
            seen.append(path)
            with open(path, "r+b") as file:
                file.seek(-1, os.SEEK_END)
                last = file.read(1)[0]
                file.seek(-1, os.SEEK_END)
                file.write(bytes([last ^ 1]))

    seen = []
    with pytest.raises(VerificationError, match=r"reading back chunks .*verification failed: chunk .* of .*b.npy"):
        ls.move("maps.zarr", "b.npy", executor=Watched(flip), verify=True)
    assert seen and os.listdir() == ["maps.zarr"]


def test_tasks_are_small_and_say_what_they_lack(here):
    maps(here)
    words = {**LITTLE, "b.safetensors::u": {"max_mem": 13 * MIB}}
    for destination, more in words.items():
        executor = Watched()
        ls.move("maps.zarr", destination, **{**more, "max_mem": 96 * MIB}, executor=executor)
        assert max(executor.pickles) < 10_000
        assert isinstance(executor.moving[-1].target, EncodedTarget) == (destination == "b.h5::/u")
        if destination != "b.h5::/u":
            with pytest.raises(StoreError, match="is not there on .*: every worker must see the destination's folder"):
                executor.moving[-1]()


@pytest.mark.parametrize("name", ["b.zarr", "b.npy", "b.h5/u", "b"])
def test_at_a_url(here, tmp_path_factory, monkeypatch, name):
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("temporary")))
    array = maps(here)
    url, fs = f"memory://by-an-executor-{name.replace('/', '-')}/{name}", fsspec.filesystem("memory")
    more = SERIES if name == "b.zarr" else {**LITTLE[name.replace("h5/u", "h5::/u")], "axes": None}
    with processes(2) as executor:
        told = ls.move("maps.zarr", url, **more, executor=executor, verify=True)
    assert told.verified
    top = url.partition("://")[2].partition("/u")[0]
    fs.get(f"/{top}", str(here / name.partition("/")[0]), recursive=True)
    with ls.open(name.replace("h5/u", "h5::/u")) as found:
        assert (found.read() == array).all()


def test_processes_and_an_executor_do_not_share_a_move(here):
    maps(here)

    class Two(ls.stores.team.Alone):
        size = 2

    with ThreadPoolExecutor(1) as executor, pytest.raises(ArgumentError, match="or by an executor, not by both"):
        ls.move("maps.zarr", "b.npy", executor=executor, team=Two())
