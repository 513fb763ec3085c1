"""ScaLAPACK's `pdgemr2d` and `pdtran` by ctypes, where a shared library for the MPI in use can be loaded.

ScaLAPACK is column-major: a C-order array is the transposed column-major matrix in the same memory, so rows and columns
of every descriptor and of the process grid are swapped here, and nothing is transposed in memory.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from typing import Any

import numpy as np

from ..cases import Side
from .base import Case, Contender, Context, Missing, Prepared

# Debian builds one library a family; a plain libscalapack may belong to either and is tried last.
_NAMES = {"openmpi": ("scalapack-openmpi", "scalapack"), "mpich": ("scalapack-mpich", "scalapack")}


def mapped_mpi_libraries() -> list[str]:
    """The MPI libraries in this process: with two of them every answer is wrong, so that is looked at."""
    found = set()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").split(None, 5)[-1]
            base = os.path.basename(path)
            if base.startswith(("libmpi.so", "libmpich.so", "libmpi_abi.so")):
                found.add(os.path.realpath(path))
    return sorted(found)


def _load(names: tuple[str, ...], needed: tuple[str, ...]) -> ctypes.CDLL:
    tried = []
    for name in names:
        soname = ctypes.util.find_library(name)
        if soname is None:
            tried.append(f"no lib{name}.so")
            continue
        before = mapped_mpi_libraries()
        try:
            library = ctypes.CDLL(soname)
        except OSError as error:
            tried.append(str(error))
            continue
        added = [os.path.basename(p) for p in mapped_mpi_libraries() if p not in before]
        if added:
            raise Missing(f"{soname} belongs to another MPI library ({', '.join(added)}) than mpi4py's")
        if all(hasattr(library, symbol) for symbol in needed):
            return library
        tried.append(f"{soname} lacks {needed[0]}")
    raise Missing("; ".join(tried))


def _communicator(comm: Any) -> Any:
    from mpi4py import MPI

    wide = MPI._sizeof(MPI.Comm) == ctypes.sizeof(ctypes.c_void_p)
    kind = ctypes.c_void_p if wide else ctypes.c_int
    return kind.from_address(MPI._addressof(comm))


class _Grid:
    """A BLACS grid for one layout. BLACS contexts are never freed by force: they are few and end with the process."""

    def __init__(self, library: ctypes.CDLL, comm: Any, rows: int, columns: int) -> None:
        self._library = library
        handle = library.Csys2blacs_handle(_communicator(comm))
        self.context = ctypes.c_int(handle)
        # Row-major ranks of our grid are column-major ranks of the swapped one.
        library.Cblacs_gridinit(ctypes.byref(self.context), b"C", rows, columns)

    def close(self) -> None:
        self._library.Cblacs_gridexit(self.context)


def _descriptor(grid: _Grid, side: Side, rank: int) -> Any:
    slow, fast = side.spreads
    leading = max(1, side.local_shape(rank)[1])
    return (ctypes.c_int * 9)(1, grid.context.value, fast.extent, slow.extent, fast.block, slow.block, 0, 0, leading)


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class ScaLapack(Contender):
    name = "ScaLAPACK"

    def prepare(self, context: Context, case: Case) -> Prepared:
        library = _load(_NAMES.get(context.mpi_family, ("scalapack",)), ("Cpdgemr2d", "pdtran_", "Csys2blacs_handle"))
        return _prepare(library, context, case, "Cpdgemr2d", "pdtran_")


class Costa(Contender):
    """COSTA through its ScaLAPACK words, where its library with prefixed names is installed."""

    name = "COSTA"

    def prepare(self, context: Context, case: Case) -> Prepared:
        costa = _load(("costa_prefixed_scalapack",), ("costa_pdgemr2d", "costa_pdtran"))
        blacs = _load(_NAMES.get(context.mpi_family, ("scalapack",)), ("Csys2blacs_handle",))
        return _prepare(blacs, context, case, "costa_pdgemr2d", "costa_pdtran", costa)


def _prepare(
    blacs: ctypes.CDLL, context: Context, case: Case, gemr2d: str, tran: str, library: ctypes.CDLL | None = None
) -> Prepared:
    library = library or blacs
    arrays, n = context.local_arrays(case), case.n
    source, destination = (arrays.sources[0].array, arrays.destinations[0].array)
    grids = []
    for side in (case.source, case.destination):
        slow, fast = side.spreads
        grids.append(_Grid(blacs, context.comm, fast.procs, slow.procs))
    from_, to = _pointer(source), _pointer(destination)
    size, one = ctypes.c_int(n), ctypes.c_int(1)
    if case.transposed:
        # pdtran wants both matrices on one grid, and row blocks of one as column blocks of the other.
        grids[1].close()
        grids[1] = grids[0]
        block = case.source.spreads[0].block
        descriptors = []
        for side in (case.source, case.destination):
            made = _descriptor(grids[0], side, context.rank)
            made[4] = made[5] = block
            descriptors.append(made)
        alpha, beta = ctypes.c_double(1.0), ctypes.c_double(0.0)
        by = ctypes.byref
        arguments: list[Any] = [by(size), by(size), by(alpha), from_, by(one), by(one), descriptors[0]]
        arguments += [by(beta), to, by(one), by(one), descriptors[1]]
        call, detail = getattr(library, tran), tran.rstrip("_")
    else:
        descriptors = [_descriptor(g, s, context.rank) for g, s in zip(grids, (case.source, case.destination))]
        arguments = [size, size, from_, one, one, descriptors[0], to, one, one, descriptors[1], grids[0].context]
        if gemr2d != "Cpdgemr2d":  # Fortran's way: everything by reference
            arguments = [ctypes.byref(a) if isinstance(a, ctypes.c_int) else a for a in arguments]
        call, detail = getattr(library, gemr2d), gemr2d.lstrip("C")
    call.restype = None

    def close() -> None:
        for grid in {id(g): g for g in grids}.values():
            grid.close()

    return Prepared(lambda: call(*arguments), arrays, detail=detail, close=close)
