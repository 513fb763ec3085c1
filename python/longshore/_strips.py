"""Loops over remote elements, strip by strip: the next strips are under way while one is worked on."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from . import _core, _mpi
from ._sections import Section
from ._words import short
from .errors import ArgumentError, ArgumentTypeError, DisagreementError

_MOST_KNOWN = 1024


@dataclass
class Strip:
    """Elements that have come: `data`, rows [first, last) of a section, of shape (last - first, ...). It is what the
    loop may touch, until it asks for the next strip."""

    __slots__ = {  # a dict, whose texts help() shows
        "data": "The elements of these rows, in memory that further strips are put into: copy what is to last.",
        "first": "The first row, counted from the section's first (elements, where it has one dimension).",
        "last": "One behind the last row.",
    }

    data: np.ndarray
    first: int
    last: int


def strips(
    source: Section, schedule: str | _core.StripSchedule = "auto", *, pattern: str | None = None, comm: Any = None
) -> Iterator[Strip]:
    """Goes over the rows of a section (elements, where it has one dimension) in strips, so that the next strips are
    under way while one is worked on (Iancu, Husbands & Chen, "Message strip mining heuristics for high speed
    networks", section 2).

    `schedule` counts rows: "small", one by one; "vectorized", all in one transfer; "fixed(S, U)"; "variable(S0, f,
    U)", as `model.StripSchedule` reads it. U strips are under way while one is worked on, and the buffer has room for
    U + 1. With "auto" the first eighty loops of a pattern, 200 where they take less than 2 ms, try what the model holds
    for best and what lies near it, and all later ones take the best of these, or one transfer where strips do not pay;
    it is kept beside the machine profile, so that later runs need no search. The pattern is the place of the call in
    the program and from where the rows come, or `pattern` and that; loops over so many and over less than twice as many
    rows are alike.

    Ranks that go over sections at the same time disturb each other where each tries schedules of its own. With
    `comm` and a `pattern` they try the same ones together: a loop counts as long as it takes the slowest rank, and all
    keep to one schedule, which is found for the rank with most rows. A rank that gets nothing goes over an empty
    section.

    Not collective without `comm`; with it collective, though once a pattern's schedule is settled nobody waits for
    anybody. Raises what `section.get` raises, with `comm` on all ranks what one rank's words are refused for, and
    DisagreementError where patterns differ.

    >>> from longshore import Window
    >>> window = Window([np.arange(10), np.arange(100, 110)])
    >>> [(strip.first, int(strip.data.sum())) for strip in strips(window[1], "fixed(4, 2)")]
    [(0, 406), (4, 422), (8, 217)]
    """
    if comm is not None:
        if schedule == "auto" and isinstance(pattern, str) and isinstance(source, Section):
            settled = source._settled.get(pattern)
            if settled is not None and settled[0] is comm:
                return _in_strips(source, _reader(source, settled[1]))
        return _in_strips_together(source, schedule, pattern, comm)
    _check(source)
    if schedule == "auto":
        where: Any = pattern
        if pattern is None:
            caller = sys._getframe(1)
            where = (caller.f_code, caller.f_lineno)
        else:
            _check_pattern(pattern)
        # What loops over this section, or over others of its window, have settled on is found again without any words.
        found = source._schedules.get(where)
        if found is None:
            known = (where, source.core.reach, *source.shape)
            found = source.window._schedules.get(known)
            if found is not None and len(source._schedules) < _MOST_KNOWN:
                source._schedules[where] = found
        if found is None:
            words = f"{where[0].co_filename}:{where[1]}" if pattern is None else pattern
            return _in_strips_tried(source, f"{words}, {source.core.reach}", known)
        return _in_strips(source, _reader(source, found))
    if not isinstance(schedule, _core.StripSchedule):
        if not isinstance(schedule, str):
            raise ArgumentTypeError(f"schedule is {short(schedule)}; it is a StripSchedule or text")
        schedule = _core.StripSchedule(schedule)
    return _in_strips(source, _reader(source, schedule))


def _check(source: Any) -> None:
    if not isinstance(source, Section):
        raise ArgumentTypeError(f"strips are of a Section of a window, not of {short(source)}")
    if not source.shape:
        raise ArgumentError("a section of one element has no strips; get() it")


def _check_pattern(pattern: Any) -> None:
    if not isinstance(pattern, str):
        raise ArgumentTypeError(f"pattern is {short(pattern)}; it is text")


def _row(source: Section) -> int:
    return math.prod(source.shape[1:])


def _reader(source: Section, schedule: _core.StripSchedule) -> _core.StripReader:
    return _core.StripReader(source.core, schedule, max(_row(source), 1))


def _in_strips(source: Section, reader: _core.StripReader) -> Iterator[Strip]:
    row, rest, dtype = _row(source), source.shape[1:], source.dtype
    if row == 0 and len(source) > 0:  # rows without elements, which nobody is asked for: all at once
        yield Strip(np.empty(source.shape, dtype), 0, len(source))
    memory = np.frombuffer(cast(Any, reader), np.uint8)
    while (come := reader.next()) is not None:
        first, last, place = come
        data = memory[place : place + (last - first) * dtype.itemsize].view(dtype)
        yield Strip(data.reshape(-1, *rest) if rest else data, first // row, last // row)


def _tuned(source: Section, pattern: str) -> tuple[str, int, int]:
    """The loop, as the tuner knows it."""
    return pattern, len(source), max(_row(source), 1) * source.dtype.itemsize


def _in_strips_tried(source: Section, pattern: str, known: Any) -> Iterator[Strip]:
    from .tune import strips as kept

    loop, tuner = _tuned(source, pattern), kept.tuner()
    searching = not tuner.settled(*loop)
    schedule = tuner.schedule(*loop)
    begin = time.perf_counter()
    reader = _reader(source, schedule)
    yield from _in_strips(source, reader)
    if searching:  # of loops that go to their end
        tuner.record(*loop, schedule, time.perf_counter() - begin, reader.communication_seconds)
        schedule = tuner.schedule(*loop)
        if tuner.settled(*loop):
            kept.warn(tuner)
    if tuner.settled(*loop):
        if len(source.window._schedules) == _MOST_KNOWN:  # of loops that are never alike
            source.window._schedules.clear()
        source.window._schedules[known] = schedule


@dataclass(slots=True)
class _Common:
    """What the ranks of a communicator have found of a pattern together: the schedule, once it is settled; before that
    what the last loop took this rank."""

    settled: str | None = None
    last: tuple[str, float, float] | None = None  # schedule, seconds, of these of communication


def _patterns(_: Any) -> dict[str, _Common]:
    return {}


def _in_strips_together(source: Section, schedule: Any, pattern: Any, comm: Any) -> Iterator[Strip]:
    kept = _mpi.kept_with(comm, _patterns)
    common = kept.get(pattern) if isinstance(pattern, str) else None
    if common is not None and common.settled is not None and schedule == "auto":
        _check(source)
        return _in_strips(source, _reader(source, _remembered(source, pattern, comm, common.settled)))

    def mine() -> str:
        _check(source)
        if schedule != "auto":
            raise ArgumentError(f"comm is for schedule='auto', which ranks find together, not for {short(schedule)}")
        if pattern is None:
            raise ArgumentError("where ranks find a schedule together, pattern= names the loop, on all ranks alike")
        _check_pattern(pattern)
        last = common and common.last
        return json.dumps([pattern, len(source), last])

    said = _mpi.texts_of(comm, mine)
    told = [json.loads(text) for text in said]
    patterns = {one[0]: rank for rank, one in reversed([*enumerate(told)])}
    if len(patterns) > 1:
        some = " and ".join(f"{short(name)} on rank {rank}" for name, rank in [*patterns.items()][:2])
        raise DisagreementError(f"ranks go over strips of different patterns together: {some}")
    leader = max(range(len(told)), key=lambda rank: told[rank][1])
    lasts = [one[2] for one in told]

    def proposal() -> str:
        if comm.Get_rank() != leader:
            return ""
        from .tune import strips as known

        loop, tuner = _tuned(source, f"{pattern}, {source.core.reach}, together"), known.tuner()
        tried = None if None in lasts else {last[0] for last in lasts}
        if searched := tried is not None and len(tried) == 1 and not tuner.settled(*loop):
            words, seconds, communication = max(lasts, key=lambda last: last[1])
            tuner.record(*loop, _core.StripSchedule(words), seconds, communication)
        found, settled = tuner.schedule(*loop), tuner.settled(*loop)
        if searched and settled:
            known.warn(tuner)
        return json.dumps([str(found), settled])

    words, settled = json.loads(_mpi.texts_of(comm, proposal)[leader])
    if settled:
        kept[pattern] = _Common(words)
        return _in_strips(source, _reader(source, _remembered(source, pattern, comm, words)))
    common = kept[pattern] = _Common()
    return _in_strips_clocked(source, _reader(source, _core.StripSchedule(words)), common, words)


def _remembered(source: Section, pattern: str, comm: Any, words: str) -> _core.StripSchedule:
    """The schedule that is settled for good, found at once when the same section is gone over again."""
    found = _core.StripSchedule(words)
    if len(source._settled) < _MOST_KNOWN:
        source._settled[pattern] = comm, found
    return found


def _in_strips_clocked(source: Section, reader: _core.StripReader, common: _Common, schedule: str) -> Iterator[Strip]:
    begin = time.perf_counter()
    yield from _in_strips(source, reader)
    common.last = schedule, time.perf_counter() - begin, reader.communication_seconds
