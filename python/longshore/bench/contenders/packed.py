"""What a careful user writes by hand: pack with NumPy, Irecv and Isend, own part copied directly, unpack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .base import Case, Contender, Context, Prepared, fastest, strided_pieces

Copy = tuple[np.ndarray, np.ndarray]


class HandPacked(Contender):
    name = "hand-packed isend"

    def prepare(self, context: Context, case: Case) -> Prepared:
        arrays = context.local_arrays(case)
        # A transpose may turn while packing or while unpacking, untiled or in tiles: keep what is fastest here.
        orders = (False, True) if case.transposed else (False,)
        tiles = (0, 64, 256) if case.transposed and case.n > 256 else (0,)
        options = [
            (_describe(in_destination_order, tile), _exchange(context, case, in_destination_order, tile))
            for in_destination_order in orders
            for tile in tiles
        ]
        detail, run = fastest(context, case, options)
        return Prepared(run, arrays, detail=detail)


def _describe(in_destination_order: bool, tile: int) -> str:
    words = "turned while packing" if in_destination_order else "in source order"
    return words + (f", tiles of {tile}" if tile else "")


def _exchange(context: Context, case: Case, in_destination_order: bool, tile: int) -> Callable[[], Any]:
    from mpi4py import MPI

    comm, me, arrays = context.comm, context.rank, context.local_arrays(case)
    source, destination = arrays.sources[0].array, arrays.destinations[0].array
    own = [(d, s) for s, d, _ in strided_pieces(case, me, me, source, destination)]
    out: list[tuple[int, np.ndarray, list[Copy]]] = []
    into: list[tuple[int, np.ndarray, list[Copy]]] = []
    for peer in range(context.ranks):
        if peer == me:
            continue
        for box, sending in ((out, True), (into, False)):
            if sending:
                pieces = list(strided_pieces(case, me, peer, source, None))
            else:
                pieces = list(strided_pieces(case, peer, me, None, destination))
            total = sum(int(np.prod(shape)) for _, _, shape in pieces)
            if total == 0:
                continue
            buffer, at, copies = np.zeros(total), 0, []
            for s_view, d_view, shape in pieces:
                size = int(np.prod(shape))
                message = buffer[at : at + size]
                if in_destination_order:  # the message holds the piece as the destination counts it
                    (n0, k0, n1, k1) = shape
                    view = message.reshape(n1, k1, n0, k0).transpose(2, 3, 0, 1)
                else:
                    view = message.reshape(shape)
                at += size
                copies.append((view, s_view) if sending else (d_view, view))
            box.append((peer, buffer, copies))
    own = _tiled(own, tile)
    out = [(peer, buffer, _tiled(copies, tile)) for peer, buffer, copies in out]
    into = [(peer, buffer, _tiled(copies, tile)) for peer, buffer, copies in into]

    def run() -> None:
        receiving = [comm.Irecv([buffer, MPI.DOUBLE], peer, 7) for peer, buffer, _ in into]
        sending = []
        for peer, buffer, copies in out:
            for to, out_of in copies:
                np.copyto(to, out_of)
            sending.append(comm.Isend([buffer, MPI.DOUBLE], peer, 7))
        for to, out_of in own:
            np.copyto(to, out_of)
        for request, (_, _, copies) in zip(receiving, into):
            request.Wait()
            for to, out_of in copies:
                np.copyto(to, out_of)
        MPI.Request.Waitall(sending)

    return run


def _tiled(copies: list[Copy], tile: int) -> list[Copy]:
    """Cuts copies between differently ordered sides into square tiles that stay in cache."""
    if tile == 0:
        return copies
    cut: list[Copy] = []
    for to, out_of in copies:
        to2, out2 = np.squeeze(to), np.squeeze(out_of)
        if to2.ndim != 2 or (to2.strides[0] > to2.strides[1]) == (out2.strides[0] > out2.strides[1]):
            cut.append((to, out_of))
            continue
        for i in range(0, to2.shape[0], tile):
            for j in range(0, to2.shape[1], tile):
                cut.append((to2[i : i + tile, j : j + tile], out2[i : i + tile, j : j + tile]))
    return cut
