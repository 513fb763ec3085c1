"""Threads that share work, as many as the system lets this process have: where it lets it have none, whoever gives the
work does it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ..errors import TransportError

NO_THREAD = "can't start new thread"
"""What Python says then, in a RuntimeError."""


def in_words(error: BaseException) -> BaseException:
    """An error as users are told of it: what Python says where no thread can be started becomes what one may do."""
    if not isinstance(error, RuntimeError) or str(error) != NO_THREAD:
        return error
    return TransportError(
        "no thread can be started; allow this user more of them (ulimit -u, or the container's limit of processes)"
    )


class WorkerThreads(ThreadPoolExecutor):
    """A pool of threads in which all that is submitted is done, be it by fewer threads than were asked for, or by the
    thread that submits it, at once."""

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, name)
        self._is_served, self._is_alone = False, False

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        task = _Task(lambda: work(*given, **named))
        if not self._is_alone:
            try:
                super().submit(task)
                self._is_served = True
            except RuntimeError as error:  # a task waits for a thread even so, and those that there are take it
                if str(error) != NO_THREAD:
                    raise
                self._is_alone = not self._is_served
        if self._is_alone:
            task()
        return task.future


class _Task:
    """What is to be done once, by whoever comes to it first."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.future: Future[Any] = Future()
        self._work: Callable[[], Any] | None = work
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            work, self._work = self._work, None
        if work is None or not self.future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)
