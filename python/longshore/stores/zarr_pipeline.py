"""A chunk's way through codecs, there and back, with bounds: what every codec may take and give is known beforehand, so
that no chunk decodes to more than it should."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._words import short
from ..errors import LongshoreError, StoreError

MAX_CHUNK_BYTES = 1 << 40
_SLACK = 1 << 16


@dataclass(frozen=True)
class Stage:
    """What lies between two codecs."""

    most: int
    """How many bytes it has, at most."""
    exact: bool
    """Whether it always has that many."""
    dtype: np.dtype
    """What a codec that looks at elements takes it for."""
    shape: tuple[int, ...] | None = None
    """Extents, as long as it is an array."""

    def bytes_of(self, most: int, exact: bool) -> Stage:
        """The stage behind a codec that gives bytes."""
        return Stage(most, exact, np.dtype("u1"))

    def compressed(self) -> Stage:
        """The stage behind a compressor, which may make what does not compress a little longer."""
        return self.bytes_of(self.most + self.most // 4 + _SLACK, False)

    def typed(self, dtype: np.dtype) -> Stage:
        """The stage behind a codec that gives an element of another type for each."""
        return replace(self, most=self.most // self.dtype.itemsize * dtype.itemsize, dtype=dtype)

    def check(self, size: int) -> None:
        if size > self.most or (self.exact and size != self.most):
            bound = "" if self.exact else "at most "
            raise StoreError(f"it has {size} bytes where {bound}{self.most} belong")


class Step(ABC):
    """One codec of a pipeline. All methods may be called from several threads at once."""

    word = ""
    """For `ArrayFacts.codecs`; "" where that does not tell of it."""
    most_input = MAX_CHUNK_BYTES
    """How many bytes it can encode."""

    def __init__(self, name: str, before: Stage, after: Stage) -> None:
        self.name = name
        self.before = before
        """What it encodes."""
        self.after = after
        """What it makes of that."""

    def ready(self) -> None:  # noqa: B027
        """Makes what it needs. Raises NotInstalledError, or StoreError where nobody has such a codec."""

    @abstractmethod
    def encode(self, data: np.ndarray) -> Any:
        """Of contiguous bytes."""

    @abstractmethod
    def decode(self, data: np.ndarray) -> Any:
        """Of contiguous bytes, as many as `after` lets through. It gives no more than `before` lets through, or raises
        any error."""


class Pipeline:
    """All codecs of a chunk, those applied first first."""

    def __init__(self, dtype: np.dtype, shape: Sequence[int], axes: Sequence[int], steps: Sequence[Step]) -> None:
        self.dtype = dtype
        self.shape = tuple(shape)
        self.axes = tuple(axes)
        """The order in which the dimensions lie, slowest first."""
        self.steps = tuple(steps)
        self._stored_shape = tuple(self.shape[axis] for axis in self.axes)
        self._back = tuple(np.argsort(self.axes)) if self.axes else ()
        last = self.steps[-1].after if self.steps else first_stage(dtype, shape)
        self.most = last.most
        """How many bytes a stored chunk has, at most."""
        self.exact = last.exact
        """Whether every stored chunk has that many."""

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(step.word for step in self.steps if step.word)

    @property
    def most_input(self) -> int:
        """How many bytes a chunk may have so that all codecs can encode it."""
        return min((step.most_input for step in self.steps), default=MAX_CHUNK_BYTES)

    def ready(self) -> None:
        for step in self.steps:
            step.ready()

    def decode(self, stored: Any) -> np.ndarray:
        """The elements of a stored chunk. Raises StoreError with the reason; the caller knows which chunk it is."""
        data = _flat(stored)
        for step in reversed(self.steps):
            step.after.check(data.nbytes)
            data = _through(step, step.decode, data)
            step.before.check(data.nbytes)
        if not self.steps:
            first_stage(self.dtype, self.shape).check(data.nbytes)
        return data.view(self.dtype).reshape(self._stored_shape).transpose(self._back)

    def encode(self, chunk: np.ndarray) -> Any:
        """The bytes of a chunk of `dtype` and `shape`: an object with a buffer."""
        data = _flat(np.ascontiguousarray(chunk.transpose(self.axes)))
        for step in self.steps:
            data = _through(step, step.encode, data)
        return data


def first_stage(dtype: np.dtype, shape: Sequence[int]) -> Stage:
    """What the first codec gets. Raises StoreError where that is more than can be held."""
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    if size > MAX_CHUNK_BYTES:
        raise StoreError(f"its chunks have {size} bytes; at most {MAX_CHUNK_BYTES} are supported")
    return Stage(size, True, dtype, tuple(shape))


class Options:
    """What a document says of a codec, taken out one by one and checked."""

    def __init__(self, codec: str, given: Mapping[str, Any]) -> None:
        self.codec = codec
        self._left = dict(given)

    def take(self, name: str, default: Any = None) -> Any:
        return self._left.pop(name, default)

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int:
        value = self.take(name, default)
        if type(value) is not int or not low <= value <= high:
            raise self.wrong(name, value)
        return value

    def number(self, name: str) -> int | float:
        value = self.take(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e300:
            raise self.wrong(name, value)
        return value

    def flag(self, name: str) -> bool:
        value = self.take(name, False)
        if not isinstance(value, bool):
            raise self.wrong(name, value)
        return value

    def choice(self, name: str, among: Sequence[Any], default: Any = None) -> Any:
        value = self.take(name, default)
        if not isinstance(value, (str, int)) or isinstance(value, bool) or value not in among:
            raise self.wrong(name, value)
        return value

    def wrong(self, name: str, value: Any) -> StoreError:
        return StoreError(f"the codec {self.codec} has {short(value)} for {name}, which cannot be")

    def finish(self) -> None:
        """Refuses what has not been taken: who does not know an option does not know how to decode."""
        for name in self._left:
            raise StoreError(f"the codec {self.codec} has the unknown option {short(name)}")


def _flat(data: Any) -> np.ndarray:
    if isinstance(data, np.ndarray):
        if not data.flags.c_contiguous:
            data = np.ascontiguousarray(data)
        return data.reshape(-1).view("u1")
    return np.frombuffer(data, "u1")


def _through(step: Step, action: Callable[[np.ndarray], Any], data: np.ndarray) -> np.ndarray:
    try:
        return _flat(action(data))
    except LongshoreError:
        raise
    except MemoryError:
        raise StoreError(f"there is not enough memory for the codec {step.name}") from None
    except Exception as error:  # every library under a codec has its own errors
        first = (str(error).splitlines() or [""])[0]
        raise StoreError(f"the codec {step.name} fails: {first[:200] or type(error).__name__}") from None
