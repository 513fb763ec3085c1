"""What is in the JSON of a machine profile."""

from __future__ import annotations

from typing import Any

from .._json import Wrong, check_of
from .._words import short
from ..errors import ArgumentError

_MOST = 1e18  # what is measured is less, and what is calculated from it stays a number


def _number(value: Any) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) <= _MOST:
        raise Wrong(f"is {short(value)}; it must be a number within {_MOST:.0e}")


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
    "cached_bytes?": int,
}
_TRIAL = {"copies": str, "seconds": _number, "seconds_low": _number, "seconds_high": _number, "chosen": bool}
KERNEL_PROFILE = KERNEL_NUMBERS | {
    "cpu": str,
    "kernels": str,
    "measured": str,
    "chosen_by?": str,  # "probe", where it was one at first use
    "trials": [KERNEL_NUMBERS | _TRIAL],
}
_SAMPLE = {"bytes": int, "seconds": _number, "seconds_low?": _number, "seconds_high?": _number, "noisy?": bool}
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
    "seconds?": _number,
    "copies": [
        {
            "transfer": str,
            "word_bytes": int,
            "loops": str,
            "working_bytes": (int, type(None)),
            "at_once": int,
            "from_another": bool,
            "megabytes_per_second": _number,
            "megabytes_per_second_low": _number,
            "megabytes_per_second_high": _number,
            "noisy": bool,
        }
    ],
    "memory_load_seconds_per_byte?": _number,
    "calls": {f"{name}_seconds": _number for name in CALLS},
    "exchanges": [{"way": str, "pair": str, "samples": [_SAMPLE], "transfer_seconds": _number}],
    "loggp": [
        {
            "pair": str,
            "L_seconds": _number,
            "o_s_seconds": _number,
            "o_r_seconds": _number,
            "g_seconds": _number,
            "G_seconds_per_byte": _number,
        }
    ],
}

_check = check_of(PROFILE)
_check_kernels = check_of(KERNEL_PROFILE)


def check(facts: Any, where: str, kernels: bool = False) -> None:
    """Raises ArgumentError that says where the facts of a profile are not what they should be, or those of its
    `kernel_profile`."""
    try:
        (_check_kernels if kernels else _check)(facts)
    except Wrong as wrong:
        raise ArgumentError(f"{where}{wrong.place()} {wrong}") from None
