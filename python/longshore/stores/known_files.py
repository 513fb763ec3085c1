"""What the files of a folder were when a store was opened, so that what has been changed since is noticed."""

from __future__ import annotations

import bisect
import os
from array import array

import numpy as np

_MASK = (1 << 64) - 1


class KnownFiles:
    """Names, sizes, times and inodes of many files, as two numbers of 64 bits a file. Numbers of two files may be equal
    by chance: then a change is not noticed, and never is one noticed that there was not."""

    def __init__(self) -> None:
        self._names, self._files = array("Q"), array("Q")

    @property
    def nbytes(self) -> int:
        return self._names.itemsize * len(self._names) + self._files.itemsize * len(self._files)

    def note(self, key: str, status: os.stat_result) -> None:
        """Takes in a file, before `noted`."""
        self._names.append(hash(key) & _MASK)
        self._files.append(_number(key, status))

    def noted(self) -> KnownFiles:
        """All files have been taken in."""
        for numbers in (self._names, self._files):
            if numbers:
                np.frombuffer(numbers, np.uint64).sort()
        return self

    def has(self, key: str) -> bool:
        """Whether a file was there."""
        return _has(self._names, hash(key) & _MASK)

    def is_as_it_was(self, key: str, status: os.stat_result | None) -> bool:
        """Whether a file is one of them, unchanged; or, where it is not there, whether it was not there then."""
        if status is None:
            return not self.has(key)
        return _has(self._files, _number(key, status))


def _number(key: str, status: os.stat_result) -> int:
    return hash((key, status.st_ino, status.st_size, status.st_mtime_ns)) & _MASK


def _has(numbers: array[int], number: int) -> bool:
    place = bisect.bisect_left(numbers, number)  # faster than NumPy's, for a single one
    return place < len(numbers) and numbers[place] == number
