"""What is in the JSON of a machine profile."""

from __future__ import annotations

import sys
from typing import Any

from .._words import short
from ..errors import ArgumentError

# The names of CallTimes in the core, in its order.
CALLS = ("start", "transfer", "wake", "leaf", "row", "block_transfer")
# A dict's keys and a list's items; keys that end in "?" may be absent.
_SAMPLE = {"bytes": int, "seconds": float, "seconds_low?": float, "seconds_high?": float, "noisy?": bool}
PROFILE = {
    "machine": str,
    "coarse": bool,
    "processor?": str,
    "cores?": int,
    "kernels?": str,
    "caches_bytes?": {"L1?": int, "L2?": int, "L3?": int, "L4?": int},
    "longshore?": str,
    "mpi?": str,
    "measured?": str,
    "seconds?": float,
    "copies": [
        {
            "transfer": str,
            "word_bytes": int,
            "loops": str,
            "working_bytes": (int, type(None)),
            "at_once": int,
            "from_another": bool,
            "megabytes_per_second": float,
            "megabytes_per_second_low": float,
            "megabytes_per_second_high": float,
            "noisy": bool,
        }
    ],
    "calls": {f"{name}_seconds": float for name in CALLS},
    "exchanges": [{"way": str, "pair": str, "samples": [_SAMPLE], "transfer_seconds": float}],
    "loggp": [
        {
            "pair": str,
            "L_seconds": float,
            "o_s_seconds": float,
            "o_r_seconds": float,
            "g_seconds": float,
            "G_seconds_per_byte": float,
        }
    ],
}


def check(value: Any, shape: Any, where: str) -> None:
    """Raises ArgumentError that says where a value is not of this shape. Numbers are finite; a float may be an int."""
    if isinstance(shape, dict):
        _expect(isinstance(value, dict), value, "an object", where)
        for name, inner in shape.items():
            key = name.removesuffix("?")
            if key in value:
                check(value[key], inner, f"{where}: {key}")
            elif key == name:
                raise ArgumentError(f"{where} has no {key!r}")
    elif isinstance(shape, list):
        _expect(isinstance(value, list), value, "a list", where)
        for k, item in enumerate(value):
            check(item, shape[0], f"{where}[{k}]")
    elif shape is float:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        _expect(number and abs(value) <= sys.float_info.max, value, "a finite number", where)
    else:
        kinds = shape if isinstance(shape, tuple) else (shape,)
        _expect(type(value) in kinds, value, " or ".join(_WORDS[kind] for kind in kinds), where)


_WORDS = {int: "an integer", str: "a text", bool: "true or false", type(None): "null"}


def _expect(fine: bool, value: Any, wanted: str, where: str) -> None:
    if not fine:
        raise ArgumentError(f"{where} is {short(value)}; it must be {wanted}")
