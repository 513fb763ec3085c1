"""What is in the JSON of a machine profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._words import short
from ..errors import ArgumentError

# The names of CallTimes in the core, in its order.
CALLS = ("start", "transfer", "wake", "leaf", "row", "block_transfer")
# What `_core.choose_kernel_profile` takes; null: never.
KERNEL_NUMBERS = {
    "rows": int,
    "burst_bytes": int,
    "stagger_bytes": int,
    "paged_bytes": (int, type(None)),
    "string_bytes": (int, type(None)),
    "merged_rows": int,
    "expands": bool,
    # Profiles that were measured before there were these have the usual ones.
    "ahead_bytes?": int,
    "tile_lines?": int,
    "tiled_from?": (int, type(None)),
    "merged_bytes?": int,
}
_TRIAL = {"copies": str, "seconds": float, "seconds_low": float, "seconds_high": float, "chosen": bool}
KERNEL_PROFILE = KERNEL_NUMBERS | {
    "cpu": str,
    "kernels": str,
    "measured": str,
    "chosen_by?": str,  # "probe", where it was one at first use
    "trials": [KERNEL_NUMBERS | _TRIAL],
}
# A dict's keys and a list's items; keys that end in "?" may be absent.
_SAMPLE = {"bytes": int, "seconds": float, "seconds_low?": float, "seconds_high?": float, "noisy?": bool}
PROFILE = {
    "machine": str,
    "coarse": bool,
    "processor?": str,
    "cores?": int,
    "kernels?": str,
    "kernel_profile?": KERNEL_PROFILE,
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
    "memory_load_seconds_per_byte?": float,
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


_MOST = 1e18  # what is measured is less, and what is calculated from it stays a number


class _Wrong(Exception):
    """What is wrong with a value, and from the inside out where it is."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.path: list[str] = []


Check = Callable[[Any], None]
_WORDS = {int: "an integer", str: "a text", bool: "true or false", type(None): "null"}


def _check_of(shape: Any) -> Check:
    """What raises _Wrong where a value is not of this shape. Numbers have some size, texts are one line; a float may be
    an int."""
    if isinstance(shape, dict):
        return _object([(key.removesuffix("?"), key[-1] == "?", _check_of(inner)) for key, inner in shape.items()])
    if isinstance(shape, list):
        return _list(_check_of(shape[0]))
    if shape is float:
        return _number
    kinds = shape if isinstance(shape, tuple) else (shape,)

    def plain(value: Any) -> None:
        if type(value) not in kinds:
            raise _Wrong(f"is {short(value)}; it must be {' or '.join(_WORDS[kind] for kind in kinds)}")
        if type(value) is str and not value.isprintable():
            raise _Wrong(f"is {short(value)}; a terminal cannot have it as it is")

    return plain


def _number(value: Any) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) <= _MOST:
        raise _Wrong(f"is {short(value)}; it must be a number within {_MOST:.0e}")


def _object(fields: list[tuple[str, bool, Check]]) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, dict):
            raise _Wrong(f"is {short(value)}; it must be an object")
        for key, optional, inner in fields:
            if key not in value:
                if optional:
                    continue
                raise _Wrong(f"has no {key!r}")
            try:
                inner(value[key])
            except _Wrong as wrong:
                wrong.path.append(f": {key}")
                raise

    return check


def _list(inner: Check) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, list):
            raise _Wrong(f"is {short(value)}; it must be a list")
        for k, item in enumerate(value):
            try:
                inner(item)
            except _Wrong as wrong:
                wrong.path.append(f"[{k}]")
                raise

    return check


_check = _check_of(PROFILE)
_check_kernels = _check_of(KERNEL_PROFILE)


def check(facts: Any, where: str, kernels: bool = False) -> None:
    """Raises ArgumentError that says where the facts of a profile are not what they should be, or those of its
    `kernel_profile`."""
    try:
        (_check_kernels if kernels else _check)(facts)
    except _Wrong as wrong:
        raise ArgumentError(f"{where}{''.join(reversed(wrong.path))} {wrong}") from None
