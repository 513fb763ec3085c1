"""Brings chunks from the processes that have encoded them to the first one, which alone can write them: an HDF5 file
has one writer, and encoding takes far longer than writing."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from .array import Index
from .team import Team
from .worker_threads import WorkerThreads

Put = Callable[[Index, Any], None]
"""Takes an encoded chunk. May be called from several threads at once."""

_PAUSE_S = 0.0005  # between two looks for a chunk: a process that waits leaves its processor to threads that encode


class Collector:
    """Use as a context manager, all processes together."""

    def __init__(self, team: Team, write: Put) -> None:
        """`write` is the first process's."""
        self._team, self._write = team, write

    def __enter__(self) -> Collector:
        self._comm = self._team.comm.Dup()  # nobody else's messages come here
        _take_out_what_was_left(self._comm)
        return self

    def __exit__(self, *exception: object) -> None:
        self._comm.Free()

    def run(self, work: Callable[[Put], None]) -> None:
        """Collective. Every process does its work in a thread of its own, and gives what it has encoded to the function
        that this gets. Raises what a process's own work has raised, or its writing, once all have ended."""
        if self._team.rank == 0:
            self._receive(work)
        else:
            self._send(work)

    def _receive(self, work: Callable[[Put], None]) -> None:
        failures: list[BaseException] = []
        with WorkerThreads(1, "longshore-encode") as threads:
            threads.submit(_guarded, lambda: work(self._write), failures)
            self._write_others(failures)
        if failures:
            raise failures[0]

    def _write_others(self, failures: list[BaseException]) -> None:
        """Writes what the others send, to the last of it."""
        others = self._team.size - 1
        while others:
            if not self._comm.iprobe():
                time.sleep(_PAUSE_S)
                continue
            chunk = self._comm.recv()
            if chunk is None:
                others -= 1
            elif not failures:
                _guarded(lambda: self._write(*chunk), failures)

    def _send(self, work: Callable[[Put], None]) -> None:
        failures: list[BaseException] = []
        lock = threading.Lock()
        waiting: queue.Queue[tuple[Index, Any] | None] = queue.Queue(maxsize=1)

        def encode() -> None:
            _guarded(lambda: work(lambda index, stored: waiting.put((index, stored))), failures)
            waiting.put(None)

        def send(index: Index, stored: Any) -> None:
            with lock:
                self._comm.send((index, stored), 0)

        try:
            threading.Thread(target=encode, daemon=True).start()
        except RuntimeError:  # this one does the work, too
            _guarded(lambda: work(send), failures)
            waiting.put(None)
        while (chunk := waiting.get()) is not None:
            self._comm.send(chunk, 0)
        self._comm.send(None, 0)
        if failures:
            raise failures[0]


def _take_out_what_was_left(comm: Any) -> None:
    """Collective. MPICH gives a new communicator the context of one that was freed, and with it the messages that
    nobody has received there."""
    from mpi4py import MPI

    comm.barrier()  # what is on its way comes meanwhile
    while (message := comm.Improbe(status=(status := MPI.Status()))) is not None:
        message.Recv([bytearray(status.Get_count(MPI.BYTE)), MPI.BYTE])
    comm.barrier()


def _guarded(work: Callable[[], None], failures: list[BaseException]) -> None:
    try:
        work()
    except BaseException as error:
        failures.append(error)
