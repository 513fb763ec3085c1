"""How fast this machine copies: the copy-transfer model's xCy (Stricker & Gross, section 3.2) in every situation.

Each pattern is carried out by the programs that movers use: `rows`, words or blocks in loops that both sides follow, or
`tiles`, where source and destination run across each other as in a transpose; lists (`w`) are dense, or `sparse`, with
a cache line for each word; `aliased` are rows whose strides are multiples of 512 bytes, which find few sets of a cache.
Words are of 4, 8 or 16 bytes; strides and blocks count words.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .._core import AddressRelation, CopyTimer
from ..stores.memory import available_bytes

_STRIDES = (2, 3, 4, 8, 16, 72, 264, 1032, 4104)
_ALIASED = (64, 256, 1024, 4096)  # that find few sets of a cache
_BLOCKS = (2, 4, 8, 64, 1024)
_TRANSPOSED = (16, 64, 1024, 4096)
_APART = (2, 4)  # words, where columns become what lies apart
_LINE, _COLD_BYTES, _STREAMED_BYTES = 64, 2 << 20, 3 << 20
_QUICK_BYTES = 128 << 20  # of an array, though a third-level cache may hold it
NOISY = 0.25  # the middle half of what was measured is spread by more of its median


@dataclass(frozen=True)
class CopyCase:
    """A pattern on each side ("1", "64", "64[4]", "w"), with words of so many bytes."""

    read: str
    write: str
    word_bytes: int = 8
    loops: str = "rows"


@dataclass(frozen=True)
class Situation:
    """What a table of copies holds for: so many bytes touched on one side (None: more than caches hold), so many
    threads at once, and whether another core has written the source."""

    working_bytes: int | None
    at_once: int
    from_another: bool


def cases(quick: bool = False) -> Iterator[CopyCase]:
    """Contiguous, strided and in blocks, on one side and on both; words of 4 bytes; transposed; listed."""
    yield CopyCase("1", "1")
    for loops, strides in (("rows", _STRIDES), ("aliased", _ALIASED)):
        singles = [str(n) for n in (strides[::3] if quick else strides)]
        few = _BLOCKS[:2] if loops == "aliased" else _BLOCKS[::3] if quick else _BLOCKS
        blocks = [f"{n}[{b}]" for b in few for n in _strides(b, loops)]
        for pattern in (*singles, *blocks):
            yield CopyCase(pattern, "1", 8, loops)
            yield CopyCase("1", pattern, 8, loops)
            yield CopyCase(pattern, pattern, 8, loops)
        for pattern in singles[::2]:
            yield CopyCase(pattern, "1", 4, loops)
            yield CopyCase("1", pattern, 4, loops)
    for word in (4, 8, 16):
        yield CopyCase("1", "1", word, "tiles")
        for n in map(str, _TRANSPOSED):
            yield CopyCase(n, "1", word, "tiles")
            yield CopyCase("1", n, word, "tiles")
        for n in map(str, _TRANSPOSED[1::2] if word < 16 and not quick else ()):
            for apart in map(str, _APART):
                yield CopyCase(n, apart, word, "tiles")
                yield CopyCase(apart, n, word, "tiles")
    for word in (4, 8):
        for read, write in (("1", "1"), ("w", "1"), ("1", "w"), ("w", "w")):
            if (read, word) != ("1", 8) or write != "1":
                yield CopyCase(read, write, word)
            if read != write:
                yield CopyCase(read, write, word, "sparse")


def _strides(block: int, loops: str) -> list[int]:
    """Blocks with gaps as long as they are, a cache line further on, and far apart."""
    if loops == "aliased":
        return list(_ALIASED)
    return sorted({2 * block + (8 if block >= 32 else 0), block + 16, *(n for n in _STRIDES[-3::2] if n >= 2 * block)})


def situations(threads: int) -> list[Situation]:
    """Sizes in every cache and beyond, alone and all at once."""
    caches = cache_bytes()
    l1, l2 = caches.get("L1", 32 << 10), caches.get("L2", 512 << 10)
    found = []
    for at_once in sorted({1, threads}):
        for another in (False, True) if threads > 1 else (False,):
            found += [Situation(size, at_once, another) for size in (l1 // 4, l2 // 8, l2 // 2)]
        found += [Situation(4 * l2, at_once, False), Situation(None, at_once, False)]
    return found


def cache_bytes() -> dict[str, int]:
    """The sizes of the first core's data caches by level, "L1" to "L3", where the system tells them."""
    found: dict[str, int] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            if kind in ("Data", "Unified"):
                found[f"L{level}"] = int(size.rstrip("KM")) << {"K": 10, "M": 20}.get(size[-1], 0)
        except (OSError, ValueError):
            continue
    return found


@cache
def relation(case: CopyCase, touched_bytes: int, most_bytes: int) -> AddressRelation:
    """The case between two arrays of `most_bytes` at most: the side that touches more touches so many bytes."""
    word = case.word_bytes
    if "w" in (case.read, case.write):
        apart = _LINE if case.loops == "sparse" else word
        n = max(min(touched_bytes, most_bytes) // apart, 16)
        straight, listed = np.arange(n), np.random.default_rng(n).permutation(n) * (apart // word)
        other = np.roll(listed[::-1], n // 3) if case.read == case.write else listed
        pairs = (listed if case.read == "w" else straight, other if case.write == "w" else straight)
        return AddressRelation.from_indices(*pairs, word)
    (read, read_block), (write, write_block) = _pattern(case.read), _pattern(case.write)
    if case.loops == "tiles" and read != write:
        n, apart = max(read, write), min(read, write)
        rows = max(touched_bytes // (word * n * apart), 2)
        # One side has rows of n words, the other one their transpose.
        strided, dense = (word, n * word), (rows * word * apart, word * apart)
        source, destination = (strided, dense) if read > 1 else (dense, strided)
        return AddressRelation.strided((n, rows), source, destination, word)
    block, stride = max(read_block, write_block), max(read, write)
    lines = stride * word if stride * word <= _LINE else -(-block * word // _LINE) * _LINE
    n = max(min(touched_bytes // lines, most_bytes // (stride * word)), 2)
    steps = [(side if side > 1 else block) * word for side in (read, write)]
    return AddressRelation.strided((n, block), (steps[0], word), (steps[1], word), word)


def _pattern(text: str) -> tuple[int, int]:
    stride, _, block = text.partition("[")
    return int(stride), int(block.rstrip("]")) if block else 1


def measure(threads: int, quick: bool, step: Callable[[float], None]) -> list[dict[str, Any]]:
    """An entry for each case in each situation. `step` is told which part of the work is done."""
    every = situations(threads)
    largest = max(situation.working_bytes or _COLD_BYTES for situation in every)
    most = min(2 * cache_bytes().get("L3", 32 << 20) // threads, (available_bytes() or 1 << 30) // (8 * threads))
    most = max(min(most, _QUICK_BYTES) if quick else most, 2 * largest)
    timer, rounds = CopyTimer(threads, most), 1 if quick else 3
    todo = [(situation, case) for situation in every for case in cases(quick)]
    rates: dict[tuple[Situation, CopyCase], list[float]] = {each: [] for each in todo}
    for k in range(rounds):  # apart in time, so that a noisy while does not meet one entry alone
        for at, (situation, case) in enumerate(random.Random(k).sample(todo, len(todo))):
            touched = situation.working_bytes or _COLD_BYTES
            made = relation(case, touched, max(most // 8, touched))
            seconds = timer.time(
                made,
                situation.at_once,
                cold=situation.working_bytes is None,
                writer="another" if situation.from_another else "itself" if situation.working_bytes else "nobody",
                streaming=situation.working_bytes is None or touched >= _STREAMED_BYTES,
                samples=9,
                seconds=0.001 if quick else 0.004,
            )
            rates[situation, case] += [len(made) * case.word_bytes / s / 1e6 for s in seconds]
            if at % 64 == 0:
                step((k + at / len(todo)) / rounds)
    relation.cache_clear()
    return [entry(situation, case, sorted(each)) for (situation, case), each in rates.items()]


def measure_load(quick: bool = False) -> float:
    """Seconds a byte that one core takes to load doubles from memory and to add them up: the inverse memory bandwidth
    of Iancu, Husbands & Chen, "Message strip mining heuristics for high speed networks" (section 4, table 2)."""
    beyond_caches = 8 * cache_bytes().get("L3", 32 << 20)  # of twice as much a cache may still hold a part
    size = max(min(beyond_caches, (available_bytes() or 1 << 30) // 8, 1 << 30), _COLD_BYTES)
    values, samples = np.ones(size // 8), []
    for _ in range(5 if quick else 15):
        begin = time.perf_counter()
        values.sum()
        samples.append((time.perf_counter() - begin) / values.nbytes)
    return sorted(samples)[len(samples) // 2]


def measure_loops() -> dict[str, float]:
    """Of a kernel's call and of its innermost loop, beyond the bytes: what makes many small loops slow."""
    timer = CopyTimer(1, 1 << 20)

    def seconds(rows: int, words: int) -> float:
        """Of each of many calls with so many rows of so many words, every second word of the source."""
        n = 1024 // (rows * words)
        strides = (n * rows * words * 128, rows * words * 64, words * 32, 16)  # no two loops are one
        dense = (n * rows * words * 8, rows * words * 8, words * 8, 8)
        samples = sorted(timer.time(AddressRelation.strided((2, n, rows, words), strides, dense, 8), seconds=0.02))
        return samples[len(samples) // 2] / (2 * n)

    short, long, many = seconds(2, 2), seconds(2, 16), seconds(16, 2)
    word = max(0.0, long - short) / 28
    row = max(0.0, (many - short) / 14 - 2 * word)
    return {"leaf_seconds": max(0.0, short - 2 * row - 4 * word), "row_seconds": row}


def entry(situation: Situation, case: CopyCase, rates: list[float]) -> dict[str, Any]:
    middle = rates[len(rates) // 2]
    low, high = rates[len(rates) // 4], rates[-1 - len(rates) // 4]
    return {
        "transfer": f"{case.read}C{case.write}",
        "word_bytes": case.word_bytes,
        "loops": case.loops,
        "working_bytes": situation.working_bytes,
        "at_once": situation.at_once,
        "from_another": situation.from_another,
        "megabytes_per_second": round(middle, 2),
        "megabytes_per_second_low": round(low, 2),
        "megabytes_per_second_high": round(high, 2),
        "noisy": high - low > NOISY * middle,
    }
