"""Executors that watch, run again or lose their tasks, and moves that go in several tasks and passes."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from concurrent.futures import Executor, Future, ProcessPoolExecutor

import numpy as np
from longshore.stores.rechunk_executor import ReadBackTask
from longshore.stores.rechunk_plan import Ways
from zarr_stores import make

MIB = 1 << 20


class Watched(Executor):
    """Runs each task at once, when it is submitted, as it comes out of a pickle, and again. `fail` may stop it."""

    def __init__(self, fail=lambda number, task: None):
        self.tasks, self.pickles, self._fail = [], [], fail

    def submit(self, task, /, *args, **kwargs):
        assert not args and not kwargs
        number = len(self.tasks)
        self.tasks.append(task)
        self.pickles.append(len(pickle.dumps(task)))
        future = Future()
        try:
            self._fail(number, task)
            copy = pickle.loads(pickle.dumps(task))
            first, again = copy(), copy()
            if isinstance(copy, ReadBackTask):
                assert first == again
            else:
                assert sorted(first.chunks) == sorted(again.chunks) and first.counts == again.counts
                assert sorted(map(repr, first.encoded)) == sorted(map(repr, again.encoded))
            future.set_result(pickle.loads(pickle.dumps(again)))
        except Exception as error:
            future.set_exception(error)
        return future

    @property
    def moving(self):
        """Of its tasks those that move something."""
        return [task for task in self.tasks if not isinstance(task, ReadBackTask)]


def files(folder):
    """What lies below a folder: each file's bytes by its path, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def some(shape, dtype="f4", gaps=True):
    """Elements of which some regions are 0, the fill value."""
    random = np.random.default_rng(len(shape))
    array = random.integers(0, 100, shape).astype(dtype)
    if gaps:
        array[tuple(slice(n // 2) for n in shape)] = 0
    return array


def maps(folder, name="maps.zarr"):
    """16 MiB of maps, of which series are made in two passes where there is little memory."""
    array = some((64, 256, 256))
    make(folder / name, array, (1, 256, 256), fill_value=0, compressor=None)
    return array


SERIES = {"chunks": (64, 16, 16), "max_mem": 13 * MIB}


def in_two_passes(told):
    return told.arrays[0].plan.way == "two passes"


def small_windows(monkeypatch, passes):
    """Has small arrays go in many tasks, and in as many passes as there are to be."""
    monkeypatch.setattr("longshore.stores.rechunk_plan._TASK_BYTES", 0)
    monkeypatch.setattr("longshore.stores.rechunk_plan._WORKERS", 1 << 30)
    monkeypatch.setattr("longshore.stores.rechunk_plan._NEAR", 1e9)
    monkeypatch.setattr("longshore.stores.rechunk_passes._FILE_BYTES", -MIB if passes == 2 else MIB)
    monkeypatch.setattr(Ways, "read_once", property(lambda ways: ways.bytes, lambda ways, value: None), raising=False)


def processes(number):
    return ProcessPoolExecutor(number, multiprocessing.get_context("fork"))


class Killing(Executor):
    """A pool of processes of which one kills itself instead of running a task."""

    def __init__(self, pool, number):
        self._pool, self._left = pool, number

    def submit(self, task, /, *args, **kwargs):
        self._left -= 1
        if self._left == 0:
            return self._pool.submit(signal.raise_signal, signal.SIGKILL)
        return self._pool.submit(task)

    def shutdown(self, wait=True, *, cancel_futures=False):
        self._pool.shutdown(wait, cancel_futures=cancel_futures)
