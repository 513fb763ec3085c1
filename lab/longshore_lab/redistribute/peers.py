"""The peers of `longshore bench redistribute`: MPI's Alltoallw, messages packed by hand, and ScaLAPACK and COSTA by
ctypes."""

import ctypes
import ctypes.util
import os
from functools import partial

import numpy as np

from ..machine import mapped_mpi_libraries
from ..protocol import Missing
from .cases import strided_pieces


def copy_all(copies):
    for to, out_of in copies:
        np.copyto(to, out_of)


def alltoallw(context, case, source, destination, held):
    """The ways (words, call) of calling it. What has to be freed goes into `held`."""
    from mpi4py import MPI

    # A transpose may be turned by the sender's types or by the receiver's.
    for turned in (False, True) if case.transposed else (False,):
        words = "turned by the sender's types" if turned else "in source order"
        send = _types(context, case, source, True, turned, held)
        receive = _types(context, case, destination, False, turned, held)
        yield words, partial(context.comm.Alltoallw, send, receive)
        try:  # MPI 4's persistent form: every rank's library is the same, so all have it or none
            request = context.comm.Alltoallw_init(send, receive)
        except (NotImplementedError, AttributeError, MPI.Exception):
            continue
        held.append(request)
        yield words + ", persistent", lambda request=request: (request.Start(), request.Wait())


def _types(context, case, array, sending, turned, held):
    """A buffer as Alltoallw takes it."""
    from mpi4py import MPI

    counts, displacements, types = [], [], []
    for peer in range(context.ranks):
        folds = case.folds(context.rank, peer) if sending else case.folds(peer, context.rank)
        built, start = (None, 0) if not all(folds) else _datatype(case, array, folds, sending, turned, held)
        counts.append(0 if built is None else 1)
        displacements.append(start)
        types.append(MPI.BYTE if built is None else built)
    return [array, (counts, displacements), types]


def _datatype(case, array, folds, sending, turned, held):
    """One datatype for one peer's part: a vector a dimension, nested from the innermost of the message outwards."""
    from mpi4py import MPI

    def keep(made):
        held.append(made)
        return made

    built, extent, start = MPI.DOUBLE, array.itemsize, 0
    for d in reversed(list(case.axes) if turned else range(len(folds))):
        stride = array.strides[d if sending else case.axes.index(d)]
        if extent != stride:
            built = keep(built.Create_resized(0, stride))
        places, level = [], []
        for f in folds[d]:
            at, step = f.source if sending else f.destination
            places.append(at * stride)
            one = f.count == 1
            made = built.Create_contiguous(f.length) if one else built.Create_hvector(f.count, f.length, step * stride)
            level.append(keep(made))
        if len(level) == 1:
            built, start = level[0], start + places[0]
        else:
            built = keep(MPI.Datatype.Create_struct([1] * len(level), places, level))
        extent = -1  # whatever it is, an outer dimension sets its own
    built.Commit()
    return built, start


def hand_packed(context, case, source, destination, held):
    """Its ways (words, call): a transpose may turn while packing or while unpacking, untiled or in tiles."""
    own = [(d, s) for s, d, _ in strided_pieces(case, context.rank, context.rank, source, destination)]
    for turned in (False, True) if case.transposed else (False,):
        for tile in (0, 64, 256) if case.transposed and case.n > 256 else (0,):
            words = ("turned while packing" if turned else "in source order") + (f", tiles of {tile}" if tile else "")
            out = _messages(context, case, source, True, turned, tile)
            into = _messages(context, case, destination, False, turned, tile)
            yield words, partial(_exchange, context.comm, out, tiled(own, tile), into)


def _exchange(comm, out, own, into):
    from mpi4py import MPI

    receiving = [comm.Irecv([buffer, MPI.DOUBLE], peer, 7) for peer, buffer, _ in into]
    sending = []
    for peer, buffer, copies in out:
        copy_all(copies)
        sending.append(comm.Isend([buffer, MPI.DOUBLE], peer, 7))
    copy_all(own)
    for request, (_, _, copies) in zip(receiving, into):
        request.Wait()
        copy_all(copies)
    MPI.Request.Waitall(sending)


def _messages(context, case, array, sending, turned, tile):
    """(peer, buffer, copies into it or out of it) of every peer that there is something for."""
    me, found = context.rank, []
    for peer in range(context.ranks):
        ends = (me, peer, array, None) if sending else (peer, me, None, array)
        pieces = [] if peer == me else list(strided_pieces(case, *ends))
        buffer, at, copies = np.zeros(sum(int(np.prod(shape)) for _, _, shape in pieces)), 0, []
        for s_view, d_view, shape in pieces:
            message = buffer[at : at + int(np.prod(shape))]
            at += message.size
            if turned:  # the message holds the piece as the destination counts it
                n0, k0, n1, k1 = shape
                view = message.reshape(n1, k1, n0, k0).transpose(2, 3, 0, 1)
            else:
                view = message.reshape(shape)
            copies.append((view, s_view) if sending else (d_view, view))
        if buffer.size:
            found.append((peer, buffer, tiled(copies, tile)))
    return found


def tiled(copies, tile):
    """Cuts copies between differently ordered sides into square tiles that stay in cache."""
    cut = []
    for to, out_of in copies:
        to2, out2 = np.squeeze(to), np.squeeze(out_of)
        if tile == 0 or to2.ndim != 2 or (to2.strides[0] > to2.strides[1]) == (out2.strides[0] > out2.strides[1]):
            cut.append((to, out_of))
            continue
        for i in range(0, to2.shape[0], tile):
            for j in range(0, to2.shape[1], tile):
                cut.append((to2[i : i + tile, j : j + tile], out2[i : i + tile, j : j + tile]))
    return cut


# --- ScaLAPACK's pdgemr2d and pdtran, where a shared library for the MPI in use can be loaded; COSTA's too ------------
#
# It is column-major: a C-order array is the transposed column-major matrix in the same memory, so rows and columns of
# every descriptor and of the process grid are swapped here, and nothing is transposed in memory.

# Debian builds one library a family; a plain libscalapack may belong to either and is tried last.
_NAMES = {"openmpi": ("scalapack-openmpi", "scalapack"), "mpich": ("scalapack-mpich", "scalapack")}


def _load(names, needed):
    tried = []
    for name in names:
        soname, before = ctypes.util.find_library(name), mapped_mpi_libraries()
        try:
            library = None if soname is None else ctypes.CDLL(soname)
        except OSError as error:
            tried.append(str(error))
            continue
        if added := [os.path.basename(path) for path in mapped_mpi_libraries() if path not in before]:
            raise Missing(f"{soname} belongs to another MPI library ({', '.join(added)}) than mpi4py's")
        if library is not None and all(hasattr(library, symbol) for symbol in needed):
            return library
        tried.append(f"no lib{name}.so" if library is None else f"{soname} lacks {needed[0]}")
    raise Missing("; ".join(tried))


class _Grid:
    """A BLACS grid for one layout. BLACS contexts are never freed by force: they are few and end with the process."""

    def __init__(self, library, comm, side):
        from mpi4py import MPI

        kind = ctypes.c_void_p if MPI._sizeof(MPI.Comm) == ctypes.sizeof(ctypes.c_void_p) else ctypes.c_int
        self.slow, self.fast = side.spreads
        self.context = ctypes.c_int(library.Csys2blacs_handle(kind.from_address(MPI._addressof(comm))))
        self.close = partial(library.Cblacs_gridexit, self.context)
        # Row-major ranks of our grid are column-major ranks of the swapped one.
        library.Cblacs_gridinit(ctypes.byref(self.context), b"C", self.fast.procs, self.slow.procs)

    def descriptor(self, side, rank):
        slow, fast = side.spreads
        leading = max(1, side.local_shape(rank)[1])
        return (ctypes.c_int * 9)(
            1, self.context.value, fast.extent, slow.extent, fast.block, slow.block, 0, 0, leading
        )


def scalapack(context, case, source, destination):
    library = _load(_NAMES.get(context.family, ("scalapack",)), ("Cpdgemr2d", "pdtran_", "Csys2blacs_handle"))
    return _call(library, library, context, case, source, destination, "Cpdgemr2d", "pdtran_")


def costa(context, case, source, destination):
    """COSTA through its ScaLAPACK words, where its library with prefixed names is installed."""
    library = _load(("costa_prefixed_scalapack",), ("costa_pdgemr2d", "costa_pdtran"))
    blacs = _load(_NAMES.get(context.family, ("scalapack",)), ("Csys2blacs_handle",))
    return _call(library, blacs, context, case, source, destination, "costa_pdgemr2d", "costa_pdtran")


def _call(library, blacs, context, case, source, destination, gemr2d, tran):
    by, sides = ctypes.byref, (case.source, case.destination)
    from_, to = (ctypes.c_void_p(array.ctypes.data) for array in (source, destination))
    size, one = ctypes.c_int(case.n), ctypes.c_int(1)
    if case.transposed:
        # pdtran wants both matrices on one grid, and row blocks of one as column blocks of the other.
        grids = [_Grid(blacs, context.comm, case.source)]
        left, right = (grids[0].descriptor(side, context.rank) for side in sides)
        for made in (left, right):
            made[4] = made[5] = grids[0].slow.block
        name, alpha, beta = tran, ctypes.c_double(1.0), ctypes.c_double(0.0)
        arguments = [
            by(size),
            by(size),
            by(alpha),
            from_,
            by(one),
            by(one),
            left,
            by(beta),
            to,
            by(one),
            by(one),
            right,
        ]
    else:
        grids = [_Grid(blacs, context.comm, side) for side in sides]
        left, right = (grid.descriptor(side, context.rank) for grid, side in zip(grids, sides))
        name, arguments = gemr2d, [size, size, from_, one, one, left, to, one, one, right, grids[0].context]
        if gemr2d != "Cpdgemr2d":  # Fortran's way: everything by reference
            arguments = [by(a) if isinstance(a, ctypes.c_int) else a for a in arguments]
    call = getattr(library, name)
    call.restype = None
    return partial(call, *arguments), name.rstrip("_").removeprefix("C"), lambda: [grid.close() for grid in grids]
