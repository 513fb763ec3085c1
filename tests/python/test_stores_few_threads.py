"""Moves where the system lets a process start few threads, or none."""

import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import wait
from types import SimpleNamespace

import longshore as ls
import numpy as np
import pytest
import zarr
from longshore.stores.collect import Collector
from longshore.stores.do_all import do_all
from longshore.stores.worker_threads import NO_THREAD, WorkerThreads

# As a user who may have one process; root may have any number. What is imported late, root alone may be able to read.
NO_THREADS = """
import os, resource
import longshore as ls, numpy as np
values = np.arange(96 * 64, dtype="i4").reshape(96, 64)
np.save("a.npy", values)
for name in ("warm.zarr/x", "warm.h5::x"):
    ls.move("a.npy", name, chunks="16x64", codecs=["zstd:1"] if "zarr" in name else ["gzip:1"], verify=True)
    ls.load(name, "(BLOCK, *) on 2"), ls.open(name).read()
ls.move("a.npy", "warm", "(BLOCK, *) on 2", verify=True), ls.move("warm.h5::x", "warm2", "(BLOCK, *) on 2")
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
import threading
try:
    threading.Thread(target=print).start()
except RuntimeError:
    print("none")
ls.move("a.npy", "b.zarr/x", chunks="16x16", codecs=["zstd:1"], threads=4, verify=True)
ls.move("b.zarr/x", "c.h5::x", chunks="32x8", codecs=["shuffle", "gzip:1"], threads=4, verify=True)
ls.move("c.h5::x", "d", "(BLOCK, *) on 3", threads=4, verify=True)
ls.move("d", "e.npy", threads=4, verify=True)
print((np.load("e.npy") == values).all(), (ls.open("b.zarr/x").read() == values).all())
parts = ls.load("c.h5::x", "(BLOCK, *) on 2", threads=4)
print((np.concatenate(parts) == values).all())
"""


def test_a_move_where_no_thread_can_be_started():
    with tempfile.TemporaryDirectory() as folder:  # in which that user can write
        os.chmod(folder, 0o777)
        words = [sys.executable, "-c", NO_THREADS]
        done = subprocess.run(words, capture_output=True, text=True, cwd=folder, timeout=120)
    assert done.stdout.splitlines() == ["none", "True True", "True"] and done.stderr == ""


@pytest.fixture(params=[0, 1, 2])
def few(request, monkeypatch):
    """So many threads can be started in a pool, at most."""
    started, start = [], threading.Thread.start

    def start_few(self):
        if self.name.startswith("longshore"):
            if len(started) >= request.param:
                raise RuntimeError(NO_THREAD)
            started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", start_few)
    return request.param


def test_all_that_is_submitted_is_done_once(few):
    for _ in range(2):
        done = []
        with WorkerThreads(4, "longshore-test") as pool:
            tasks = [pool.submit(done.append, number) for number in range(100)]
            wait(tasks, timeout=30)
            assert list(pool.map(lambda number: 2 * number, range(5))) == [0, 2, 4, 6, 8]
            with pytest.raises(ZeroDivisionError):
                pool.submit(lambda: 1 // 0).result()
            do_all(pool, done.append, range(100, 200), 8)
        assert sorted(done) == list(range(200))


class Comm:
    """Of a team whose process is alone with this."""

    def __init__(self):
        self.sent = []

    def send(self, what, to):
        self.sent.append((what, to))

    def iprobe(self):
        return True

    def recv(self):
        return self.sent.pop(0)[0] if self.sent else None


@pytest.mark.parametrize("rank", [0, 1])
def test_who_collects_chunks_needs_no_thread(rank, monkeypatch):
    def none_left(*_):
        raise RuntimeError(NO_THREAD)

    monkeypatch.setattr(threading.Thread, "start", none_left)
    written = []
    collector = Collector(SimpleNamespace(rank=rank, size=2), lambda *chunk: written.append(chunk))
    collector._comm = Comm()
    collector.run(lambda put: [put((number,), b"chunk") for number in range(3)])
    chunks = [((number,), b"chunk") for number in range(3)]
    assert written == chunks if rank == 0 else collector._comm.sent == [*((chunk, 0) for chunk in chunks), (None, 0)]
    with pytest.raises(ZeroDivisionError):
        collector.run(lambda put: 1 // 0)


def test_moves_with_few_threads(few, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = np.arange(96 * 64, dtype="i4").reshape(96, 64)
    np.save("a.npy", values)
    ls.move("a.npy", "b.zarr/x", chunks="16x16", threads=4, verify=True)
    ls.move("b.zarr/x", "c.npy", threads=4, verify=True, max_mem="64MiB")
    assert (np.load("c.npy") == values).all() and (zarr.open_array("b.zarr/x")[...] == values).all()
    assert (ls.open("b.zarr/x").read() == values).all()


def test_what_needs_a_thread_says_so(tmp_path, monkeypatch):
    """The library that gathers a store's metadata starts one."""
    monkeypatch.chdir(tmp_path)
    zarr.open_group("a.zarr", mode="w")
    zarr.consolidate_metadata("a.zarr")
    parts = ls.scatter(np.arange(12.0).reshape(4, 3), "(BLOCK, *) on 2")

    def none_left(*_):
        raise RuntimeError(NO_THREAD)

    monkeypatch.setattr(zarr, "consolidate_metadata", none_left)
    with pytest.raises(ls.TransportError, match="no thread can be started; allow this user more of them .ulimit -u"):
        ls.save(parts, ls.Layout("(BLOCK, *) on 2", (4, 3)), "a.zarr/x", threads=4)


def test_a_mover_of_files_whose_proxy_cannot_be_started(few, tmp_path):
    values = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "a.npy", values)
    loaded = ls.XArray(ls.FloorPlan([ls.Region((0, 0), (4, 3))], [0]), "float64")
    mover = ls.stores.bind(tmp_path / "a.npy", loaded, proxy=True)
    mover.start()
    mover.wait()
    assert (np.asarray(loaded[0]) == values).all()
