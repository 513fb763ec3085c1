"""Loops over remote elements, strip by strip: the next strips are under way while one is worked on."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from . import _core
from ._window import Section
from ._words import short
from .errors import ArgumentError, ArgumentTypeError

_MOST_KNOWN = 1024


@dataclass(slots=True)
class Strip:
    """Elements that have come: `data`, rows [first, last) of a section, of shape (last - first, ...). It is what the
    loop may touch, until it asks for the next strip."""

    data: np.ndarray
    first: int
    last: int


def strips(
    source: Section, schedule: str | _core.StripSchedule = "auto", *, pattern: str | None = None
) -> Iterator[Strip]:
    """Goes over the rows of a section (elements, where it has one dimension) in strips, so that the next strips are
    under way while one is worked on (Iancu, Husbands & Chen, "Message strip mining heuristics for high speed
    networks", section 2).

    `schedule` counts rows: "small", one by one; "vectorized", all in one transfer; "fixed(S, U)"; "variable(S0, f,
    U)", as `model.StripSchedule` reads it. U strips are under way while one is worked on, and the buffer has room for
    U + 1. With "auto" the first eighty loops of a pattern try what the model holds for best and what lies near it, and
    all later ones take the best of these, or one transfer where strips do not pay; it is kept beside the machine
    profile, so that later runs need no search. The pattern is the place of the call in the program and from where the
    rows come, or `pattern` and that; loops over so many and over less than twice as many rows are alike.

    Not collective. Raises what `section.get` raises.

    >>> from longshore import Window
    >>> window = Window([np.arange(10), np.arange(100, 110)])
    >>> [(strip.first, int(strip.data.sum())) for strip in strips(window[1], "fixed(4, 2)")]
    [(0, 406), (4, 422), (8, 217)]
    """
    if not isinstance(source, Section):
        raise ArgumentTypeError(f"strips are of a Section of a window, not of {short(source)}")
    if not source.shape:
        raise ArgumentError("a section of one element has no strips; get() it")
    if schedule == "auto":
        where: Any = pattern
        if pattern is None:
            caller = sys._getframe(1)
            where = (caller.f_code, caller.f_lineno)
        elif not isinstance(pattern, str):
            raise ArgumentTypeError(f"pattern is {short(pattern)}; it is text")
        # What loops over this section, or over others of its window, have settled on is found again without any words.
        found = source._schedules.get(where)
        if found is None:
            known = (where, source.core.reach, *source.shape)
            found = source.window._schedules.get(known)
            if found is not None and len(source._schedules) < _MOST_KNOWN:
                source._schedules[where] = found
        if found is None:
            words = pattern or f"{where[0].co_filename}:{where[1]}"
            return _in_strips_tried(source, f"{words}, {source.core.reach}", known)
        return _in_strips(source, _reader(source, found))
    if not isinstance(schedule, _core.StripSchedule):
        if not isinstance(schedule, str):
            raise ArgumentTypeError(f"schedule is {short(schedule)}; it is a StripSchedule or text")
        schedule = _core.StripSchedule(schedule)
    return _in_strips(source, _reader(source, schedule))


def _row(source: Section) -> int:
    return math.prod(source.shape[1:])


def _reader(source: Section, schedule: _core.StripSchedule) -> _core.StripReader:
    return _core.StripReader(source.core, schedule, max(_row(source), 1))


def _in_strips(source: Section, reader: _core.StripReader) -> Iterator[Strip]:
    row, rest, dtype = _row(source), source.shape[1:], source.dtype
    memory = np.frombuffer(cast(Any, reader), np.uint8)
    while (come := reader.next()) is not None:
        first, last, place = come
        data = memory[place : place + (last - first) * dtype.itemsize].view(dtype)
        yield Strip(data.reshape(-1, *rest) if rest else data, first // row, last // row)


def _in_strips_tried(source: Section, pattern: str, known: Any) -> Iterator[Strip]:
    from .tune import strips as kept

    loop = (pattern, len(source), max(_row(source), 1) * source.dtype.itemsize)
    tuner = kept.tuner()
    searching = not tuner.settled(*loop)
    schedule = tuner.schedule(*loop)
    begin = time.perf_counter()
    reader = _reader(source, schedule)
    yield from _in_strips(source, reader)
    if searching:  # of loops that go to their end
        tuner.record(*loop, schedule, time.perf_counter() - begin, reader.communication_seconds)
        schedule = tuner.schedule(*loop)
        if tuner.settled(*loop):
            kept.keep(tuner)
    if tuner.settled(*loop):
        if len(source.window._schedules) == _MOST_KNOWN:  # of loops that are never alike
            source.window._schedules.clear()
        source.window._schedules[known] = schedule
