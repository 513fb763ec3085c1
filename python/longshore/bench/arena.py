"""The memory of `longshore bench assembly`: a source, a message and a destination that no contender can be right in by accident.

All arrays begin on a cache line, at different places of a page: what it costs where lines are cut in two would else be luck.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from .patterns import DIRECTIONS, Pattern

_WORD = np.dtype(np.uint32)
_UNTOUCHED = 0xA5A5A5A5
_CACHED_BYTES = 8 << 20  # arrays up to here are timed in several passes, larger ones once after each rewriting
_BYTES_A_SAMPLE = 2 << 20
_LINE_BYTES, _PAGE_BYTES = 64, 4096
_NAP_SECONDS = 1e-4


class Arena:
    """One pattern's arrays. Every 32-bit word of an input is
    another one, and is another one again after each `refresh`."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.source = _words(pattern.source.array_bytes, 0)
        self.message = _words(pattern.payload_bytes, 5)
        self.destination = _words(pattern.destination.array_bytes, 11)

    @staticmethod
    def needed_bytes(pattern: Pattern) -> int:
        """The arrays, the index lists, and what a check holds for a moment."""
        arrays = pattern.source.array_bytes + 2 * pattern.destination.array_bytes + 3 * pattern.payload_bytes
        return arrays + 4 * 8 * (pattern.payload_bytes // pattern.element)

    def ends(self, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """(to, from)."""
        if direction == "assembly":
            return self.message, self.source
        return self.destination, self.message

    def array(self, direction: str) -> np.ndarray:
        """The array that is not the message."""
        return self.source if direction == "assembly" else self.destination

    def addresses(self, direction: str) -> tuple[int, int]:
        to, from_ = self.ends(direction)
        return to.ctypes.data, from_.ctypes.data

    @cached_property
    def _indices(self) -> dict[str, np.ndarray]:
        source = self.pattern.source.indices(self.pattern.element)
        alike = self.pattern.source is self.pattern.destination
        return dict(
            zip(DIRECTIONS, (source, source if alike else self.pattern.destination.indices(self.pattern.element)))
        )

    def indices(self, direction: str) -> np.ndarray:
        """The element of the array that each element of the message is."""
        return self._indices[direction]

    @property
    def passes(self) -> int:
        """How often a sample runs: so often that the clock does
        not count, once where the arrays are beyond the cache."""
        if self.pattern.array_bytes > _CACHED_BYTES:
            return 1
        return max(1, _BYTES_A_SAMPLE // self.pattern.payload_bytes)

    def fastest(self, options: Sequence[Callable[[int], float]], direction: str) -> int:
        """Which of several ways of doing the same is the fastest."""
        least = [float("inf")] * len(options)
        rounds = 1 if len(options) == 1 else 3 if self.passes == 1 else 9
        for _ in range(rounds):
            for k, seconds in enumerate(options):
                self.refresh(direction)
                least[k] = min(least[k], seconds(max(1, self.passes // 4)))
        return least.index(min(least))

    def refresh(self, direction: str) -> None:
        """The owner writes every word of the input anew and touches every word of the output.

        Ends with a nap: on a machine with other work, who has just woken
        is let run for a while, who has written for long is not."""
        to, from_ = self.ends(direction)
        np.add(from_, 1, out=from_)
        to.fill(_UNTOUCHED)
        time.sleep(_NAP_SECONDS)

    def wrong(self, direction: str, words: int | None = None) -> str:
        """Empty if the output is right after `refresh` and a run,
        else what is not. `words`: of the output, for a plain copy."""
        to, from_ = self.ends(direction)
        if words is not None:
            expected, to = from_[:words], to[:words]
        elif direction == "assembly":
            expected = self._elements(from_)[self.indices(direction)].ravel()
        else:
            expected = np.full_like(to, _UNTOUCHED)
            self._elements(expected)[self.indices(direction)] = self._elements(from_)
        if np.array_equal(to, expected):
            return ""
        bad = int(np.flatnonzero(to != expected)[0])
        return f"WRONG RESULT: word {bad} is {int(to[bad]):#x} where {int(expected[bad]):#x} belongs"

    def _elements(self, array: np.ndarray) -> np.ndarray:
        return array.reshape(-1, self.pattern.element // _WORD.itemsize)


def _words(nbytes: int, line: int) -> np.ndarray:
    """Numbered words from that cache line of a page on."""
    memory = np.empty(nbytes + 2 * _PAGE_BYTES, np.uint8)
    start = -memory.ctypes.data % _PAGE_BYTES + line * _LINE_BYTES
    words = memory[start : start + nbytes].view(_WORD)
    words[:] = np.arange(len(words), dtype=_WORD)
    return words
