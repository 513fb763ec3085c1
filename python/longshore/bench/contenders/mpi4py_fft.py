"""mpi4py-fft's pencils: they know even blocks in whole dimensions only, so they take one case."""

from __future__ import annotations

from .base import Case, Contender, Context, Missing, Prepared


class Mpi4pyFft(Contender):
    name = "mpi4py-fft"

    def applies(self, case: Case) -> bool:
        return case.key == "rows-to-columns"

    def prepare(self, context: Context, case: Case) -> Prepared:
        try:
            from mpi4py_fft.pencil import Pencil, Subcomm
        except ImportError as error:
            raise Missing(f"not importable ({error})") from None
        arrays = context.local_arrays(case)
        source, destination = arrays.sources[0].array, arrays.destinations[0].array
        rows = Pencil(Subcomm(context.comm, [0, 1]), case.shape, axis=1)
        columns = rows.pencil(0)
        if tuple(rows.subshape) != source.shape or tuple(columns.subshape) != destination.shape:
            raise Missing("its blocks are not HPF's blocks at this size")
        transfer = rows.transfer(columns, source.dtype)
        return Prepared(lambda: transfer.forward(source, destination), arrays, close=transfer.destroy)
