"""How long threads are in each phase of a move between chunk grids."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

PHASES = ("reading", "decoding", "copying", "spilling", "exchanging", "encoding", "writing")
"""Copying includes digests; spilling is to scratch files and back, exchanging between processes."""

Phase = Callable[[str], AbstractContextManager[None]]


class PhaseClock:
    """Seconds by phase, added up over threads, each of which says when it is in one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """The time that the block takes counts for the phase. Blocks do not lie in one another."""
        began = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - began
            with self._lock:
                self.seconds[phase] = self.seconds.get(phase, 0.0) + took


def add_seconds(total: dict[str, float], more: Mapping[str, float]) -> None:
    """Adds seconds by phase to others."""
    for phase, seconds in more.items():
        total[phase] = total.get(phase, 0.0) + seconds


def seconds_told(by_phase: Mapping[str, float]) -> str:
    """Seconds by phase in words, in the order in which an element goes through them."""
    return ", ".join(f"{phase} {by_phase[phase]:.2f} s" for phase in PHASES if by_phase.get(phase, 0.0) >= 0.005)
