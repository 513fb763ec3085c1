"""MPI's own answer: one `Alltoallw` with derived datatypes, built once, as regular as the case allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .base import Case, Contender, Context, Prepared, fastest


class Alltoallw(Contender):
    name = "MPI Alltoallw"

    def prepare(self, context: Context, case: Case) -> Prepared:
        arrays = context.local_arrays(case)
        held: list[Any] = []
        options: list[tuple[str, Callable[[], Any]]] = []
        # A transpose may be turned by the sender's types or by the receiver's: keep the faster.
        for in_destination_order in (False, True) if case.transposed else (False,):
            described = "turned by the sender's types" if in_destination_order else "in source order"
            send = _message(context, case, True, in_destination_order, held)
            receive = _message(context, case, False, in_destination_order, held)
            options.append((described, _plain(context.comm, send, receive)))
            persistent = _persistent(context.comm, send, receive, held)
            if persistent is not None:
                options.append((described + ", persistent", persistent))
        detail, run = fastest(context, case, options)

        def close() -> None:
            for handle in reversed(held):
                handle.Free()

        return Prepared(run, arrays, detail=detail, close=close)


def _plain(comm: Any, send: list[Any], receive: list[Any]) -> Callable[[], Any]:
    return lambda: comm.Alltoallw(send, receive)


def _persistent(comm: Any, send: list[Any], receive: list[Any], held: list[Any]) -> Callable[[], Any] | None:
    """MPI 4's persistent form where the library has it. Every rank's library is the same, so all have it or none."""
    from mpi4py import MPI

    try:
        request = comm.Alltoallw_init(send, receive)
    except (NotImplementedError, AttributeError, MPI.Exception):
        return None
    held.append(request)

    def run() -> None:
        request.Start()
        request.Wait()

    return run


def _message(context: Context, case: Case, sending: bool, in_destination_order: bool, held: list[Any]) -> list[Any]:
    arrays, me = context.local_arrays(case), context.rank
    array = (arrays.sources if sending else arrays.destinations)[0].array
    counts, displacements, types = [], [], []
    for peer in range(context.ranks):
        folds = case.folds(me, peer) if sending else case.folds(peer, me)
        built, start = _datatype(case, array, folds, sending, in_destination_order, held)
        counts.append(0 if built is None else 1)
        displacements.append(start)
        types.append(_byte() if built is None else built)
    return [array, (counts, displacements), types]


def _byte() -> Any:
    from mpi4py import MPI

    return MPI.BYTE


def _datatype(
    case: Case, array: np.ndarray, folds: Any, sending: bool, in_destination_order: bool, held: list[Any]
) -> tuple[Any, int]:
    """One datatype for one peer's part: a vector a dimension, nested from the innermost of the message outwards."""
    from mpi4py import MPI

    if any(not dimension for dimension in folds):
        return None, 0
    order = list(case.axes) if in_destination_order else list(range(len(folds)))
    built, extent, start = MPI.DOUBLE, array.itemsize, 0
    for d in reversed(order):
        stride = array.strides[d if sending else case.axes.index(d)]
        if extent != stride:
            built = built.Create_resized(0, stride)
            held.append(built)
        level = []
        for f in folds[d]:
            at, step = (f.source, f.source_step) if sending else (f.destination, f.destination_step)
            if f.count == 1:
                made = built.Create_contiguous(f.length)
            else:
                made = built.Create_hvector(f.count, f.length, step * stride)
            held.append(made)
            level.append((at * stride, made))
        if len(level) == 1:
            offset, built = level[0]
            start += offset
        else:
            built = MPI.Datatype.Create_struct([1] * len(level), [o for o, _ in level], [t for _, t in level])
            held.append(built)
        extent = -1  # whatever it is, an outer dimension sets its own
    built.Commit()
    return built, start
