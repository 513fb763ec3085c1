"""The HDF5 library reads files at URLs through Python while it holds its lock: garbage, forks, the end of a process."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from longshore.stores.hdf5_files import library_reads
from longshore.stores.random_access import LocalFile, RemoteFile, open_plain
from web_server import serving

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
h5py = pytest.importorskip("h5py")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of files, with one whose chunks the library itself decodes."""
    folder = tmp_path_factory.mktemp("sources")
    array = np.random.default_rng(1).integers(0, 50, (40, 30)).astype("f4")
    np.save(folder / "a.npy", array)
    with h5py.File(folder / "run.h5", "w") as file:
        file.create_dataset("g/chunked", data=array, chunks=(16, 8), compression="gzip")
        file["g/plain"] = array
    with h5py.File(folder / "by-library.h5", "w") as file:
        file.create_dataset("u", data=array, chunks=(16, 8), scaleoffset=2)
    return folder


@pytest.fixture(scope="module")
def web(made):
    with serving(made) as (url, _):
        yield url


def test_no_garbage_is_collected_while_the_library_reads_a_url(made):
    fsspec.filesystem("memory").pipe_file("/read-runs/a", b"a")
    remote, local = RemoteFile("memory://read-runs/a"), LocalFile("a.npy", open_plain(made / "a.npy"))
    assert gc.isenabled()
    with library_reads(remote):
        assert not gc.isenabled()
        with library_reads(remote), library_reads(local):
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with local, library_reads(local):
        assert gc.isenabled()
    gc.disable()
    try:
        with library_reads(remote):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_process_that_is_forked_meanwhile_collects_garbage():
    fsspec.filesystem("memory").pipe_file("/read-runs/a", b"a")
    remote, begun, end = RemoteFile("memory://read-runs/a"), threading.Event(), threading.Event()

    def read():
        with library_reads(remote):
            begun.set()
            end.wait()

    thread = threading.Thread(target=read)
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        fine = gc.isenabled()
        with library_reads(remote):
            fine = fine and not gc.isenabled()
        os._exit(0 if fine and gc.isenabled() else 1)
    end.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0 and gc.isenabled()


LITTER = """
import asyncio, gc, sys, threading, time
import h5py, longshore as ls
from fsspec.asyn import get_loop

url, path = sys.argv[1:]
gc.set_threshold(500, 2, 2)

def litter():
    with h5py.File(path, "r") as file:
        while True:
            for name in file["g"]:
                cycle = [file["g"].get(name, getlink=True), file["g/plain"]]
                cycle.append(cycle)
            time.sleep(0.001)

async def sweep():
    while True:
        lists = [[[]] for _ in range(3000)]
        await asyncio.sleep(0.0005)

asyncio.run_coroutine_threadsafe(sweep(), get_loop())
for _ in range(2):
    threading.Thread(target=litter, daemon=True).start()
for _ in range(8):
    with ls.open(url) as opened:
        opened.read()
print("done", flush=True)
os._exit(0)
"""


def test_garbage_with_objects_of_h5py_does_not_stop_reading(web, made):
    """fsspec's thread collects garbage all the time, with datasets in it."""
    words = [sys.executable, "-c", "import os" + LITTER, f"{web}/by-library.h5::u", str(made / "run.h5")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "done\n", done.stderr


def test_a_process_ends_with_files_open(web):
    code = f"import longshore as ls; opened = ls.open('{web}/run.h5::g/chunked'); print(opened.read().sum())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
