"""Much work for a pool of threads, a bounded part of it under way at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, wait
from typing import Any, TypeVar

T = TypeVar("T")


def do_all(pool: Executor, work: Callable[[T], Any], items: Iterable[T], ahead: int) -> None:
    """Has the pool do the work on every item, with so many under way. Nothing is under way any more at the end, be it
    an error."""
    begun: deque[Future[Any]] = deque()
    try:
        for item in items:
            if len(begun) >= ahead:
                begun.popleft().result()
            begun.append(pool.submit(work, item))
        while begun:
            begun.popleft().result()
    finally:
        for task in begun:
            task.cancel()
        wait(begun)
