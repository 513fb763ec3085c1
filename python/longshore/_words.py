"""Values in words: sizes of memory, as they are written wherever one is taken or told, in Python and on the command
line."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any

from .errors import ArgumentError

_UNITS = {"": 1, "b": 1}
_UNITS |= {letter: 2**power for letter, power in zip("kmgt", (10, 20, 30, 40))}
_UNITS |= {f"{letter}ib": 2**power for letter, power in zip("kmgt", (10, 20, 30, 40))}
_UNITS |= {f"{letter}b": 10**power for letter, power in zip("kmgt", (3, 6, 9, 12))}
_SIZE = re.compile(r"\s*((?:\d[\d_]{0,29}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE]\+?\d{1,2})?)\s*([A-Za-z]{0,3})\s*")


def size_in_bytes(value: Any, name: str = "max_mem") -> int:
    """Bytes from a number or from words: "4096", "256MiB", "1.5 GB" (powers of 1000), "64k" (powers of 1024, as in
    KiB). 0 for None. Raises ArgumentError naming the argument."""
    if value is None:
        return 0
    said = f"{name} {short(value)}".lstrip()
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        unit = _UNITS.get(match.group(2).lower()) if match else None
        if match is None or unit is None:
            raise ArgumentError(f"{said} is not a size; write bytes, or a number with KiB, MiB or GiB, such as 256MiB")
        from decimal import Decimal  # here, for it takes a while

        size = int(Decimal(match.group(1)) * unit)
    elif _is_number(value):
        size = int(value)
    else:
        raise ArgumentError(f"{said} is not a size; give a number of bytes, or words such as 256MiB")
    if not 0 < size < 2**63:
        bound = "at least one byte" if size <= 0 else "less than 2^63 bytes"
        raise ArgumentError(f"{said} is not a usable size; it must be {bound}")
    return size


def _is_number(value: Any) -> bool:
    if isinstance(value, numbers.Integral):
        return not isinstance(value, bool)
    return isinstance(value, numbers.Real) and math.isfinite(value)


def bytes_of(n: float) -> str:
    """A number of bytes for people: "512 MiB", "1.5 KiB", "17 B"."""
    n = int(n)
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if abs(n) >= 1 << power:
            if power == 40 and n >= 1 << 50:
                return f"{n / (1 << power):,.0f} {unit}"
            value = f"{n / (1 << power):.1f}"
            return f"{value.removesuffix('.0')} {unit}"
    return f"{n} B"


def count_of(n: int, word: str) -> str:
    """ "1 message", "1,024 messages"."""
    return f"{n:,} {word}" + ("" if n == 1 else "s")


def seconds_of(seconds: float) -> str:
    """A time for people: "1.25 s", "38.1 µs"."""
    for unit, of in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= of:
            return f"{seconds / of:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def short(value: Any) -> str:
    """A value's repr, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def printable(text: Any, keep: str = "") -> str:
    """Text of a file as a terminal may have it: control characters, but those of `keep`, are told and not sent."""
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in str(text))
