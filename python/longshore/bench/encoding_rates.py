"""What making a relation and encoding it costs, and how small it gets: the paper's figure of sizes. No data is moved."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .harness import summary, without_collector
from .patterns import layouts, redistribution

REDISTRIBUTIONS = ("R1", "R2", "R3", "R4")
ENCODED = ("aapair", "aablk", "dmrle", "dmrlec")  # the paper's own
_N = 1024
_NODES = 4
_SAMPLE_SECONDS = 1e-3


def measure(repeats: int) -> list[dict[str, Any]]:
    """Rows without payload: encoding a list of pairs, and a relation from two layouts, small and huge."""
    rows = []
    with without_collector():
        for key in REDISTRIBUTIONS:
            rows += _encoding(key, repeats)
        for key in REDISTRIBUTIONS:
            rows += [_from_layouts(key, n, repeats) for n in (_N, 1 << 20)]
    return rows


def sizes(kinds: list[str]) -> list[dict[str, Any]]:
    """Bytes of every encoding of the relations of node 0 to all nodes, and to itself."""
    import longshore as ls

    told = []
    for key in REDISTRIBUTIONS:
        relations = [redistribution(key, _N, (0, node)) for node in range(_NODES)]
        for kind in kinds:
            try:
                each = [ls.encode(relation, kind).encoded_bytes for relation in relations]
            except ls.ArgumentError:  # a library that this machine has not; the contender of that kind tells it
                continue
            told.append(
                {
                    "case": key,
                    "n": _N,
                    "kind": kind,
                    "pairs": relations[0].elements,
                    "encoded_bytes": each[0],
                    "encoded_bytes_to_all": sum(each),
                }
            )
    return told


def _encoding(key: str, repeats: int) -> list[dict[str, Any]]:
    import longshore as ls

    pairs = redistribution(key, _N).pairs()
    relation = ls.AddressRelation.from_pairs(pairs, np.float64)
    rows = [
        _row(
            f"relation from pairs {key} {_N}",
            _N,
            "longshore from_pairs",
            repeats,
            len(pairs),
            lambda: ls.AddressRelation.from_pairs(pairs, np.float64),
        )
    ]
    for kind in ENCODED:
        rows.append(
            _row(
                f"encode {key} {_N}",
                _N,
                f"longshore {kind}",
                repeats,
                len(pairs),
                lambda k=kind: ls.encode(relation, k),
            )
        )
    return rows


def _from_layouts(key: str, n: int, repeats: int) -> dict[str, Any]:
    import longshore as ls

    source, destination = layouts(key, n)
    make = lambda: ls.AddressRelation.from_layouts(source, 0, destination, 0, np.float64)  # noqa: E731
    return _row(f"relation from layouts {key} {n}", n, "longshore from_layouts", repeats, make().elements, make)


def _row(case: str, n: int, contender: str, repeats: int, pairs: int, run: Callable[[], Any]) -> dict[str, Any]:
    start = time.perf_counter()
    run()
    passes = max(1, int(_SAMPLE_SECONDS / max(time.perf_counter() - start, 1e-7)))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(passes):
            run()
        seconds.append((time.perf_counter() - start) / passes)
    return {
        "case": case,
        "n": n,
        "contender": contender,
        **summary(seconds),
        "payload_bytes": 0,
        "ranks": 1,
        "processes": 1,
        "threads": 1,
        "pairs": pairs,
        "pairs_per_second": pairs / statistics.median(seconds),
    }
