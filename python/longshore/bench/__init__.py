"""Benchmarks that ship with the library: `longshore bench NAME` on the command line.

Every bench takes `quick`, `json` and `plot`, prints a table and returns what it writes as JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .harness import BenchError, machine


@dataclass(frozen=True)
class Bench:
    """A bench's one-line description and the function that runs it."""

    description: str
    run: Callable[..., dict[str, Any]]


def _redistribute(*args: Any, **options: Any) -> dict[str, Any]:
    from . import redistribute

    return redistribute.run(*args, **options)


def _halo(*args: Any, **options: Any) -> dict[str, Any]:
    from . import halo

    return halo.run(*args, **options)


def _apps(*args: Any, **options: Any) -> dict[str, Any]:
    from . import apps

    return apps.run(*args, **options)


def _breakeven(*args: Any, **options: Any) -> dict[str, Any]:
    from . import breakeven

    return breakeven.run(*args, **options)


def _assembly(*args: Any, **options: Any) -> dict[str, Any]:
    from . import assembly

    return assembly.run(*args, **options)


def _ranks(*args: Any, **options: Any) -> dict[str, Any]:
    from . import ranks

    return ranks.run(*args, **options)


def _communicators(*args: Any, **options: Any) -> dict[str, Any]:
    from . import communicators

    return communicators.run(*args, **options)


BENCHES: dict[str, Bench] = {
    "redistribute": Bench(
        "time redistributions beside memory copies, MPI Alltoallw, hand-packed messages, ScaLAPACK and NumPy",
        _redistribute,
    ),
    "halo": Bench(
        "time filling ghost cells beside memory copies, hand-packed MPI, MPI_Neighbor_alltoallw and PETSc's DMDA",
        _halo,
    ),
    "apps": Bench(
        "time whole applications (Redblack3D, NAS-MG, NAS-FT, SUMMA) beside their hand-written MPI twins",
        _apps,
    ),
    "assembly": Bench(
        "time packing messages and unpacking them beside plain loops, NumPy and MPI_Pack",
        _assembly,
    ),
    "breakeven": Bench(
        "time decoding a stored address relation beside recomputing it, and what the model predicts",
        _breakeven,
    ),
    "ranks": Bench(
        "time rank maps and count their bytes on the thesis's classes of groups, by representation and strategy",
        _ranks,
    ),
    "communicators": Bench(
        "time creating, messages and gathers of the thesis's communicators of 200,000 ranks, by representation and strategy",
        _communicators,
    ),
}

__all__ = ["BENCHES", "Bench", "BenchError", "machine"]
