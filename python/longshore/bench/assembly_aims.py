"""What the library wants to reach in `longshore bench assembly`, and whether it has, from the rows of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .assembly_contenders import MEMCPY
from .encoding_rates import REDISTRIBUTIONS

_NOISE = 0.05  # two runs of the same loop differ by that
_BLOCKS = ("wrf-x", "lu-y", "milc-x", "lammps", "specfem-cm")  # 12 to 48 bytes
_FOLDING = tuple(f"longshore {kind}" for kind in ("aablk", "dmrle", "dmrlec", "huffman", "lz", "nest"))

Row = Mapping[str, Any]


def judge(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Every aim: in words, what was wanted, the least that was measured and where, and who fell short.

    `met` is None where nothing was measured. By medians over the rounds; `beyond_memcpy` counts
    those in which a memory copy of as many bytes falls short too, `beyond_noise` those of the others
    that fall short even by the round at the upper quartile."""
    rows = list(rows)
    moved = [r for r in rows if r["payload_bytes"]]
    copies = {r["case"]: r for r in moved if r["contender"] == MEMCPY}
    moved = [{**r, "copy": copies.get(r["case"], {})} for r in moved]
    folding = [r for r in moved if r["contender"] in _FOLDING and r["pattern"] in REDISTRIBUTIONS]
    # What a user gets: the relation compiled as it is, and the encoding that is chosen where none is named.
    usual = [r for r in moved if r["contender"] == "longshore nest" or r.get("automatic")]

    def of(given: list[Row], patterns: Iterable[str], test: Callable[[Row], bool] = lambda r: True) -> list[Row]:
        return [r for r in given if r["pattern"] in patterns and test(r)]

    encoded = [{**r, "rate": r["pairs_per_second"] / 1e6} for r in rows if r["case"].startswith("encode ")]
    dearer = _layout_costs(rows)
    return [
        _least(
            "R1 to R4 from 1024² on, encodings that fold: times the hand-written loop",
            0.95,
            of(folding, REDISTRIBUTIONS, lambda r: r["n"] >= 1024),
            "hand_ratio",
        ),
        _least(
            "R4 disassembly from 1024² on, encodings that fold: times the naive loop",
            3.0,
            of(folding, ("R4",), lambda r: r["n"] >= 1024 and r["direction"] == "disassembly"),
            "naive_ratio",
        ),
        _least(
            "R1 to R4 at 128², encodings that fold: times the loop of fixed length",
            0.9,
            of(folding, REDISTRIBUTIONS, lambda r: r["n"] == 128),
            "hand_ratio",
        ),
        _least(
            "blocks of 12 to 48 bytes, nest and automatic: times the hand-written loop",
            0.95,
            of(usual, _BLOCKS),
            "hand_ratio",
        ),
        _least(
            "ascending lists, nest and automatic: times a plain loop", 1.2, of(usual, ("sorted-list",)), "hand_ratio"
        ),
        _least("everything, nest and automatic: times the faster MPI, less noise", 1 - _NOISE, usual, "mpi_ratio"),
        _least("transposes (FFT), nest and automatic: times the faster MPI", 3.0, of(usual, ("fft",)), "mpi_ratio"),
        _least("encoding pairs, in millions a second", 100.0, encoded, "rate"),
        _least("a relation from two layouts at 2^20 x 2^20: as fast as at 1024², within a fifth", 0.8, dearer, "rate"),
    ]


def _least(aim: str, wanted: float, rows: list[Row], field: str) -> dict[str, Any]:
    there = [r for r in rows if r.get(field) is not None]
    worst = min(there, key=lambda r: r[field], default=None)
    short = [r for r in there if r[field] < wanted]
    possible = [r for r in short if r.get("copy", {}).get(field, wanted) >= wanted]
    return {
        "aim": aim,
        "wanted": wanted,
        "reached": None if worst is None else worst[field],
        "where": "" if worst is None else f"{worst['case']}, {worst['contender']}",
        "measured": len(there),
        "short": [f"{r['case']}, {r['contender']}: {r[field]:.3g}" for r in short],
        "beyond_memcpy": len(short) - len(possible),
        "beyond_noise": sum(r.get(f"{field}_high", r[field]) < wanted for r in possible),
        "met": None if worst is None else not short,
    }


def _layout_costs(rows: list[Row]) -> list[Row]:
    found = {r["case"]: r for r in rows}
    case = "relation from layouts {} {}".format
    pairs = [(found.get(case(key, 1024)), found.get(case(key, 1 << 20))) for key in REDISTRIBUTIONS]
    return [
        {**large, "rate": small["seconds_median"] / large["seconds_median"]}
        for small, large in pairs
        if small and large
    ]
