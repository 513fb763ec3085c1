"""Moves by the workers of an executor: the same stores as without one, whatever becomes of the workers."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import longshore as ls
import numpy as np
import pytest
from executors import SERIES, Killing, Watched, files, in_two_passes, maps, processes, small_windows, some
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore.errors import (
    ArgumentTypeError,
    MemoryLimitError,
    StoreError,
    TransportError,
    VerificationError,
)
from longshore.stores.array import Grid
from longshore.stores.rechunk import Rechunk
from longshore.stores.rechunk_passes import plan_passes
from zarr_stores import FORMATS, make, needs_zarr_3, zarr

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@st.composite
def moves(draw):
    """At most six chunks along a dimension: each is a file, three times."""
    n = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 17)) for _ in range(n))
    axes = tuple(draw(st.permutations(range(n))))
    return {
        "shape": shape,
        "axes": axes,
        "source": tuple(draw(st.integers(-(-extent // 6), extent)) for extent in shape),
        "chunks": tuple(draw(st.integers(-(-shape[a] // 6), shape[a])) for a in axes),
        "dtype": draw(st.sampled_from(["u1", "<i2", ">f4", "<f8", "c16"])),
        "codecs": draw(st.sampled_from([(), ("zstd:1",), ("shuffle", "gzip:1")])),
        "zarr_format": draw(st.sampled_from(FORMATS)),
        "passes": draw(st.integers(1, 2)),
    }


@settings(max_examples=40, deadline=None)
@given(moves())
def test_an_executor_makes_what_a_plain_move_makes(tmp_path_factory, move):
    with pytest.MonkeyPatch.context() as monkeypatch:
        here = tmp_path_factory.mktemp("move")
        monkeypatch.chdir(here)
        array = some(move["shape"], move["dtype"])
        make(here / "a.zarr", array, move["source"], fill_value=0)
        words = {word: move[word] for word in ("axes", "chunks", "codecs", "zarr_format")}
        plain = ls.move("a.zarr", "plain.zarr", **words)
        small_windows(monkeypatch, move["passes"])
        executor = Watched()
        told = ls.move("a.zarr", "b.zarr", **words, executor=executor, verify=True)
        assert files(here / "b.zarr") == files(here / "plain.zarr")
        assert (told.digest, told.chunks) == (plain.digest, plain.chunks)
        assert sorted(os.listdir()) == ["a.zarr", "b.zarr", "plain.zarr"]


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, processes])
@pytest.mark.parametrize("codecs", [(), ("zstd:1",)])
def test_pools_of_threads_and_processes(here, pool, codecs):
    maps(here)
    ls.move("maps.zarr", "plain.zarr", **SERIES, codecs=codecs)
    with pool(2) as executor:
        told = ls.move("maps.zarr", "series.zarr", **SERIES, codecs=codecs, executor=executor, verify=True)
    assert in_two_passes(told) and told.bytes_spilled > 0
    assert files(here / "series.zarr") == files(here / "plain.zarr")


@needs_zarr_3
def test_a_group_goes_into_shards(here):
    group = zarr.open_group("a.zarr", mode="w", zarr_format=3, attributes={"title": "two arrays"})
    one, other = some((40, 30)), some((7, 50, 20), "i2")
    for name, array, chunks in (("one", one, (40, 1)), ("deep/other", other, (7, 5, 20))):
        made = group.create_array(name, shape=array.shape, chunks=chunks, dtype=array.dtype, attributes={"of": name})
        made[...] = array
    group.create_array("single", shape=(), dtype="f8")[...] = 3.5
    with processes(2) as executor:
        told = ls.move("a.zarr", "b.zarr", executor=executor, verify=True)
        ls.move("a.zarr/one", "one.zarr", chunks=(4, 4), shards=(16, 8), executor=executor, verify=True)
    assert told.verified and len(told.arrays) == 3
    made = zarr.open_group("b.zarr", mode="r")
    assert dict(made.attrs) == {"title": "two arrays"} and made["deep/other"].attrs["of"] == "deep/other"
    assert (made["one"][...] == one).all() and (made["deep/other"][...] == other).all() and made["single"][()] == 3.5
    sharded = zarr.open_array("one.zarr", mode="r")
    assert sharded.shards == (16, 8) and (sharded[...] == one).all()
    assert not list((here / "one.zarr").rglob("*.index"))


@pytest.mark.parametrize("source", ["a.npy", "a.h5::/u"])
def test_sources_of_other_formats(here, source):
    array = some((60, 50))
    if source == "a.npy":
        np.save("a.npy", array)
    else:
        with pytest.importorskip("h5py").File("a.h5", "w") as file:
            file.create_dataset("u", data=array, chunks=(7, 50), compression="gzip")
    with processes(2) as executor:
        ls.move(source, "b.zarr", chunks=(60, 3), executor=executor, verify=True)
    assert (zarr.open_array("b.zarr", mode="r")[...] == array).all()


def test_tasks_of_one_process_share_the_ceiling(here, monkeypatch):
    maps(here)
    lock, under_way, most, run = threading.Lock(), [], [], Rechunk.run

    def watched(job, panels):
        with lock:
            under_way.append(job.plan.memory_bytes)
            most.append(sum(under_way))
        time.sleep(0.02)  # so that another task comes to stand beside this one, if it may
        try:
            return run(job, panels)
        finally:
            with lock:
                under_way.remove(job.plan.memory_bytes)

    monkeypatch.setattr(Rechunk, "run", watched)
    with ThreadPoolExecutor(4) as executor:
        ls.move("maps.zarr", "series.zarr", **SERIES, executor=executor)
    assert max(most) <= SERIES["max_mem"]
    assert len(most) > 4


def test_what_a_task_held_is_free_when_the_next_begins(here):
    maps(here)
    gc.disable()
    tracemalloc.start()
    try:
        with ThreadPoolExecutor(1) as executor:
            told = ls.move("maps.zarr", "series.zarr", **SERIES, executor=executor)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.enable()
    assert in_two_passes(told) and peak < SERIES["max_mem"]


def test_a_task_is_small_and_says_what_it_does(here):
    maps(here)
    executor = Watched()
    ls.move("maps.zarr", "series.zarr", **SERIES, executor=executor)
    assert len(executor.tasks) > 4 and max(executor.pickles) < 10_000
    assert str(executor.tasks[0]).startswith("the task for chunks (0, 0, 0) to ")
    with pytest.raises(StoreError, match="is not there on .*: every worker must see the destination's folder"):
        executor.tasks[0]()


def test_a_worker_with_another_source_under_the_path_is_told(here):
    maps(here)

    def other(number, task):
        if number == 2:
            shutil.rmtree("maps.zarr")
            make(here / "maps.zarr", some((64, 256, 128)), (1, 256, 128), fill_value=0)

    with pytest.raises(StoreError, match=r"chunks of \(1, 256, 128\) in \(64, 256, 128\) on .*, not of"):
        ls.move("maps.zarr", "series.zarr", **SERIES, executor=Watched(other))
    assert os.listdir() == ["maps.zarr"]


def test_a_source_that_changes_meanwhile(here):
    maps(here)

    def touch(number, task):
        if number == 2:
            os.utime("maps.zarr/.zarray")

    with pytest.raises(StoreError, match="maps.zarr has been changed while it was read; nothing was published"):
        ls.move("maps.zarr", "series.zarr", **SERIES, executor=Watched(touch))
    assert os.listdir() == ["maps.zarr"]


def test_a_flipped_bit_of_the_temporary_store(here):
    maps(here)
    seen = []

    def flip(number, task):
        if ".longshore-between-" in task.source.place.path and not seen:
            chunk = max(files_below(task.source.place.path), key=os.path.getsize)
            seen.append(chunk)
            with open(chunk, "r+b") as file:
                file.seek(-1, os.SEEK_END)
                last = file.read(1)[0]
                file.seek(-1, os.SEEK_END)
                file.write(bytes([last ^ 1]))

    with pytest.raises(VerificationError, match="temporary store between the two passes does not hold"):
        ls.move("maps.zarr", "series.zarr", **SERIES, executor=Watched(flip))
    assert seen and os.listdir() == ["maps.zarr"]


def files_below(folder):
    return [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]


@pytest.mark.parametrize("resume", [False, True])
def test_a_killed_worker_is_told_and_nothing_is_published(here, resume):
    array = maps(here)
    with (
        processes(2) as pool,
        pytest.raises(TransportError, match="a worker was killed, or the executor was shut down"),
    ):
        ls.move("maps.zarr", "series.zarr", **SERIES, executor=Killing(pool, 4), resume=resume)
    assert not os.path.exists("series.zarr")
    assert (len(os.listdir()) > 1) == resume
    with processes(2) as pool:
        ls.move("maps.zarr", "series.zarr", **SERIES, executor=pool, resume=resume, verify=True)
    assert (zarr.open_array("series.zarr", mode="r")[...] == array).all()
    assert sorted(os.listdir()) == ["maps.zarr", "series.zarr"]


def fails_at(last):
    def fail(number, task):
        if number == last:
            raise RuntimeError("the machine has been switched off")

    return fail


def stopped(last, **words):
    executor = Watched(fails_at(last))
    with pytest.raises(TransportError, match="on the executor: RuntimeError: the machine has been switched off"):
        ls.move("maps.zarr", "series.zarr", **{**SERIES, **words}, executor=executor, resume=True)
    return executor


@pytest.mark.parametrize("words", [{}, {"max_mem": 12 * MIB}, {"max_mem": 64 * MIB}])
@pytest.mark.parametrize("again", ["tasks", "plain"])
def test_a_stopped_move_goes_on_with_other_words(here, words, again):
    array = maps(here)
    whole = Watched()
    ls.move("maps.zarr", "whole.zarr", **SERIES, executor=whole)
    total = len(whole.tasks)
    stopped(total - 2)
    executor = Watched()
    more = {"executor": executor} if again == "tasks" else {}
    told = ls.move("maps.zarr", "series.zarr", **{**SERIES, **words}, **more, resume=True, verify=True)
    assert told.resumed_chunks > 0
    if again == "tasks" and not words:
        assert len(executor.moving) == 1
    assert (zarr.open_array("series.zarr", mode="r")[...] == array).all()
    assert files(here / "series.zarr") == files(here / "whole.zarr")
    assert sorted(os.listdir()) == ["maps.zarr", "series.zarr", "whole.zarr"]


def test_a_temporary_store_that_is_gone_is_made_again(here):
    array = maps(here)
    whole = Watched()
    ls.move("maps.zarr", "whole.zarr", **SERIES, executor=whole)
    stopped(len(whole.tasks) - 2)
    shutil.rmtree(next(here.glob(".series.zarr*/.longshore-between-*")))
    stopped(3)  # part of it is there again, and what the first run knew of it counts no more
    ls.move("maps.zarr", "series.zarr", **SERIES, executor=Watched(), resume=True, verify=True)
    assert (zarr.open_array("series.zarr", mode="r")[...] == array).all()


def test_an_executor_that_is_shut_down(here):
    maps(here)
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(TransportError, match="cannot schedule new futures after shutdown; nothing was published"):
        ls.move("maps.zarr", "series.zarr", **SERIES, executor=executor)
    assert os.listdir() == ["maps.zarr"]


def test_what_an_executor_is_not_for(here):
    maps(here)
    with ThreadPoolExecutor(1) as executor, pytest.raises(MemoryLimitError, match="needs at least"):
        ls.move("maps.zarr", "series.zarr", chunks=(64, 256, 256), max_mem=MIB, executor=executor)
    with pytest.raises(ArgumentTypeError, match="executor must be a concurrent.futures.Executor, not int"):
        ls.move("maps.zarr", "series.zarr", executor=2)
    assert os.listdir() == ["maps.zarr"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_passes_keep_the_ceiling_and_read_whole_chunks(data):
    shape = data.draw(st.tuples(st.integers(64, 3000), st.integers(64, 3000)))
    source, target = (Grid(shape, data.draw(st.tuples(*(st.integers(8, n) for n in shape)))) for _ in "12")
    most = data.draw(st.integers(4, 256)) * MIB
    try:
        plan, passes = plan_passes(
            source,
            target,
            target,
            8,
            most,
            threads=2,
            stored_bytes=None,
            target_bytes=None,
            addressable=False,
            raw=False,
            beside=0,
        )
    except MemoryLimitError as error:
        assert str(error).count("needs at least") == 1
        return
    assert plan.memory_bytes <= most and all(one.memory_bytes <= most for one in passes)
    assert passes[-1].target == target and passes[0].source == source
    if len(passes) == 2:
        assert passes[0].target == passes[1].source
    for one in passes:
        seen = np.zeros(one.target.counts, np.int64)
        for low, high in one.panels():
            seen[tuple(map(slice, low, high))] += 1
        assert (seen == 1).all()


def test_a_cluster_whose_workers_are_killed(here):
    """Dask starts tasks again whose worker has gone."""
    distributed = pytest.importorskip("distributed")
    array = maps(here)
    words = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**words) as cluster, distributed.Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        killed = []

        class Kills(ls.stores.moving.Watcher):
            def advance(self, count):
                if not killed:
                    killed.append(pids[0])
                    os.kill(pids[0], signal.SIGKILL)

        told = ls.move(
            "maps.zarr", "series.zarr", **SERIES, executor=client.get_executor(), verify=True, watcher=Kills()
        )
    assert killed and in_two_passes(told)
    assert (zarr.open_array("series.zarr", mode="r")[...] == array).all()


WORKERS_THAT_MOVE = """
import sys
from concurrent.futures import ThreadPoolExecutor
import longshore as ls

workers, target, resume = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "True"

def move(number, pool):
    words = {"chunks": (5, 4), "codecs": ["gzip:1"], "verify": True, "resume": resume}
    return ls.move("a.npy", f"{number}.{target}", executor=pool, **words).verified

with ThreadPoolExecutor(workers) as pool:
    print(all([future.result() for future in [pool.submit(move, number, pool) for number in range(3)]]))
"""


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("target", ["zarr/u", "h5::/u"])
def test_workers_that_ask_for_a_move_do_what_nobody_else_does(here, target, workers, resume):
    """Or the only thread of an executor would wait for itself."""
    array = some((17, 23), "<f8")
    np.save("a.npy", array)
    words = [sys.executable, "-c", WORKERS_THAT_MOVE, str(workers), target, str(resume)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and done.stdout == "True\n", done.stderr
    for number in range(3):
        with ls.open(f"{number}.{target}") as moved:
            np.testing.assert_array_equal(moved.read(), array)


class _SlowSet(set[threading.Thread]):
    def add(self, thread: threading.Thread) -> None:
        time.sleep(0.3)
        super().add(thread)


def test_a_worker_that_the_executor_has_not_noted_yet_does_not_wait_for_itself(here):
    np.save("a.npy", some((17, 23), "<f8"))
    with ThreadPoolExecutor(1) as pool:
        pool._threads = _SlowSet()  # its thread runs before it is there
        future = pool.submit(lambda: ls.move("a.npy", "b.zarr", chunks=(5, 4), executor=pool))
        future.result(timeout=100)
    np.testing.assert_array_equal(ls.open("b.zarr").read(), np.load("a.npy"))


def test_a_worker_tells_what_its_own_task_has_raised(here, monkeypatch):
    np.save("a.npy", some((17, 23), "<f8"))
    monkeypatch.setattr("longshore.stores.zarr_writer.ZarrArrayWriter.write", lambda *_: 1 / 0)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: ls.move("a.npy", "b.zarr", chunks=(5, 4), executor=pool))
        with pytest.raises(TransportError, match="failed on the executor: ZeroDivisionError"):
            future.result(timeout=100)
    assert os.listdir() == ["a.npy"]
