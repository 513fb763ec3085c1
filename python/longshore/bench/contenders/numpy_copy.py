"""NumPy by itself: one process, one thread, strided slices copied from part to part."""

from __future__ import annotations

import numpy as np

from .base import Case, Contender, Context, Prepared, strided_pieces


class NumpyCopy(Contender):
    name = "numpy"
    needs_mpi = False

    def prepare(self, context: Context, case: Case) -> Prepared:
        arrays = context.all_arrays(case)
        pieces = [
            (d_view, s_view)
            for s in arrays.sources
            for d in arrays.destinations
            for s_view, d_view, _ in strided_pieces(case, s.rank, d.rank, s.array, d.array)
        ]

        def run() -> None:
            for d_view, s_view in pieces:
                np.copyto(d_view, s_view)

        return Prepared(run, arrays, root_only=True, detail=f"{len(pieces)} strided copies")
