"""What the library wants to reach in `longshore bench assembly`, and whether it has, from the rows of one run."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping

from .encoding_rates import REDISTRIBUTIONS

_NOISE = 0.05  # two runs of the same loop differ by that
_BLOCKS = ("wrf-x", "lu-y", "milc-x", "lammps", "specfem-cm")  # 12 to 48 bytes
_SYMBOLWISE = ", symbol by symbol"

Row = Mapping[str, Any]


def judge(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Every aim: in words, what was wanted, the least that was measured and where, and whether it was met (None: not measured)."""
    rows = list(rows)
    mine = [r for r in rows if r["contender"].startswith("longshore ") and not r["contender"].endswith(_SYMBOLWISE)]
    moved = [r for r in mine if r["payload_bytes"]]
    compact = [r for r in moved if r["pattern"] in REDISTRIBUTIONS and r["contender"] != "longshore aapair"]
    nests = [r for r in moved if r["contender"] == "longshore nest"]

    def of(given: list[Row], patterns: Iterable[str], test: Callable[[Row], bool] = lambda r: True) -> list[Row]:
        return [r for r in given if r["pattern"] in patterns and test(r)]

    encoded = [{**r, "rate": r["pairs_per_second"] / 1e6} for r in rows if r["case"].startswith("encode ")]
    huge = _layout_cost(rows)
    return [
        _least("R1 to R4 from 1024² on, every compact encoding: times the hand-written loop", 0.95,
               of(compact, REDISTRIBUTIONS, lambda r: r["n"] >= 1024), "hand_ratio"),
        _least("R4 disassembly from 1024² on, every compact encoding: times the naive loop", 3.0,
               of(compact, ("R4",), lambda r: r["n"] >= 1024 and r["direction"] == "disassembly"), "naive_ratio"),
        _least("R1 to R4 at 128², every compact encoding: times the loop of fixed length", 0.9,
               of(compact, REDISTRIBUTIONS, lambda r: r["n"] == 128), "hand_ratio"),
        _least("blocks of 12 to 48 bytes, nest: times the hand-written loop", 0.95, of(nests, _BLOCKS), "hand_ratio"),
        _least("ascending lists, nest: times a plain loop", 1.2, of(nests, ("sorted-list",)), "hand_ratio"),
        _least("everything, nest: times the faster MPI_Pack or MPI_Unpack, less noise", 1 - _NOISE, nests, "mpi_ratio"),
        _least("transposes (FFT), nest, both directions: times the faster MPI", 3.0, of(nests, ("fft",)), "mpi_ratio"),
        _least("encoding pairs, in millions a second", 100.0, encoded, "rate"),
        {"aim": "a relation from two layouts of 2^20 x 2^20: times the cost at 1024², at most", "wanted": 1 + 4 * _NOISE,
         "reached": huge, "where": "R1 to R4, the worst", "short": [], "met": None if huge is None else huge <= 1 + 4 * _NOISE},
    ]


def _least(aim: str, wanted: float, rows: list[Row], field: str) -> dict[str, Any]:
    there = [r for r in rows if r.get(field) is not None]
    worst = min(there, key=lambda r: r[field], default=None)
    short = [f"{r['case']} {r['contender'].removeprefix('longshore ')} {r[field]:.3g}" for r in there if r[field] < wanted]
    return {
        "aim": aim,
        "wanted": wanted,
        "reached": None if worst is None else worst[field],
        "where": "" if worst is None else f"{worst['case']}, {worst['contender']}",
        "measured": len(there),
        "short": short,
        "met": None if worst is None else not short,
    }


def _layout_cost(rows: list[Row]) -> float | None:
    found = {r["case"]: r["seconds_median"] for r in rows}
    case = "relation from layouts {} {}".format
    ratios = [found[case(key, 1 << 20)] / found[case(key, 1024)] for key in REDISTRIBUTIONS if case(key, 1024) in found]
    return max(ratios, default=None)
