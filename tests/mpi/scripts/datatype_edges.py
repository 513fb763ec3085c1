"""Datatypes at the edges: huge ones, what is refused, what is freed, and both sides in a real message.

mpiexec -n 2 python run_checks.py datatype_edges
"""

import time

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check, raises
from mpi4py import MPI

D = MPI.DOUBLE


def refuses(error, words, function, *args):
    raises(error, lambda: function(*args), words)


def fastest(function, repeats=20):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


@check
def huge():
    cases = {
        "vector": D.Create_vector(10**9, 2, 3),
        "nested": D.Create_contiguous(2**20).Create_vector(2**13, 1, 2),
        "records": MPI.Datatype.Create_struct([1, 1, 1], [0, 4, 8], [MPI.CHAR, MPI.INT, D]).Create_contiguous(10**9),
        "subarray": D.Create_subarray([2**16] * 3, [2**11] * 3, [5, 6, 7]),
        "darray": D.Create_darray(64, 21, [40001] * 3, [MPI.DISTRIBUTE_CYCLIC] * 3, [7, 3, 5], [4] * 3),
    }
    if MPI.Get_version() >= (4, 0):
        cases["large count"] = D.Create_vector(2**33, 1, 2)
    for name, datatype in cases.items():
        relation = ls.from_mpi_datatype(datatype)
        assert relation.elements * relation.element_bytes >= 2**33, name
        made = ls.to_mpi_datatype(relation)
        assert made.Get_size() == relation.bytes, name
        assert repr(ls.from_mpi_datatype(made)) == repr(relation), name
        made.Free()
        # Microseconds, were it not for what else this machine does: no time for a single element in a million.
        seconds = fastest(lambda: ls.from_mpi_datatype(datatype))
        assert seconds < 5e-3, (name, seconds)
        datatype.Free()

    # More than an int on the way out, too.
    relation = ls.AddressRelation.strided((2**33,), (16,), (8,), 8)
    made = ls.to_mpi_datatype(relation)
    assert made.Get_size() == 2**36 and ls.from_mpi_datatype(made) == relation
    made.Free()
    one = ls.AddressRelation.from_segments([(5, 2**33)])
    made = ls.to_mpi_datatype(one)
    assert made.Get_size() == 2**33 and ls.from_mpi_datatype(made) == one
    made.Free()

    twos, threes = D.Create_vector(3 * 10**8, 2, 3), D.Create_vector(2 * 10**8, 3, 4)
    both = ls.from_mpi_datatype(twos, 1, threes)
    assert both[6 * 10**8 - 1] == (24 * (3 * 10**8 - 1) + 8, 32 * (2 * 10**8 - 1) + 16)
    assert fastest(lambda: ls.from_mpi_datatype(twos, 1, threes)) < 5e-3


@check
def mistakes():
    refuses(ls.ArgumentError, "DATATYPE_NULL", ls.from_mpi_datatype, MPI.DATATYPE_NULL)
    refuses(ls.ArgumentError, "not int", ls.from_mpi_datatype, 7)
    refuses(ls.ArgumentError, "destination must be a datatype", ls.from_mpi_datatype, D, 1, "f8")
    refuses(ls.ArgumentError, "-1", ls.from_mpi_datatype, D, -1)
    refuses(ls.ShapeError, "8 bytes of data, the destination datatype 24", ls.from_mpi_datatype, D, 1, D, 3)
    refuses(ls.ArgumentError, "write the same bytes", ls.from_mpi_datatype, D, 2, D.Create_hvector(2, 1, 4))
    refuses(ls.SizeOverflowError, "2^6", ls.from_mpi_datatype, D.Create_hvector(2, 1, 2**61 - 1))
    refuses(ls.SizeOverflowError, "", ls.from_mpi_datatype, D.Create_contiguous(2**30), 2**40)
    refuses(TypeError, "", ls.from_mpi_datatype, D, 1.5)
    relation = ls.AddressRelation.from_indices([0, 1], [3, 3], "f8", reduce="add")
    refuses(ls.ArgumentError, "combined", ls.to_mpi_datatype, relation, "destination")
    refuses(ls.ArgumentError, "'middle'", ls.to_mpi_datatype, relation, "middle")
    refuses(ls.ArgumentError, "not list", ls.to_mpi_datatype, [1])
    assert ls.to_mpi_datatype(relation).Get_size() == 16
    assert ls.to_mpi_datatype(ls.AddressRelation.from_indices([], [], "f8")).Get_size() == 0
    assert ls.from_mpi_datatype(D, 0).elements == 0


@check
def sizes():
    assert ls.from_mpi_datatype(D.Create_vector(3, 2, 5)).element_bytes == 8
    assert ls.from_mpi_datatype(MPI.C_DOUBLE_COMPLEX, 4).element_bytes == 16
    assert ls.from_mpi_datatype(MPI.Datatype.Create_struct([1, 1], [0, 8], [D, MPI.INT])).element_bytes == 4
    assert ls.from_mpi_datatype(D, 3, MPI.FLOAT, 6).element_bytes == 4
    # Not committed, and the datatype is still the caller's.
    datatype = D.Create_vector(2, 1, 3)
    relation = ls.from_mpi_datatype(datatype)
    datatype.Free()
    assert relation.pairs().tolist() == [[0, 0], [24, 8]]


@check
def nothing_is_kept():
    """Datatypes that were looked at or given back leave nothing behind."""

    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    inner = MPI.Datatype.Create_struct([1, 2], [0, 8], [D, MPI.INT.Create_vector(3, 1, 2)])
    datatype = inner.Create_indexed([2, 1], [5, 0]).Create_vector(3, 1, 2)
    relation = ls.from_mpi_datatype(datatype)

    def often(n):
        for _ in range(n):
            ls.from_mpi_datatype(datatype)
            ls.to_mpi_datatype(relation).Free()

    often(3000)
    before = resident()
    often(12000)
    grown = resident() - before
    assert grown < 1 << 20, grown  # less than a hundred bytes a time


@check
def message():
    """A real message: sent with one side, received with the other."""
    source = ls.Layout("(CYCLIC(3), BLOCK) on 2x1", (13, 8))
    target = ls.Layout("(BLOCK, CYCLIC(2)) on 1x2", (8, 13))
    for dtype in ("f8", "u1", "S3"):
        relation = ls.AddressRelation.from_layouts(source, 0, target, 1, dtype, (1, 0))
        send, receive = ls.to_mpi_datatype(relation), ls.to_mpi_datatype(relation, "destination")
        array = np.random.default_rng(1).integers(0, 256, relation.source_extent[1], dtype=np.uint8)
        expected, result = np.zeros((2, relation.destination_extent[1]), np.uint8)
        relation.move(array, expected)
        last, first = P - 1, 0
        request = WORLD.Isend([array, 1, send], last, 5) if ME == first else MPI.REQUEST_NULL
        if ME == last:
            WORLD.Recv([result, 1, receive], first, 5)
            assert np.array_equal(result, expected), dtype
        request.Wait()
        send.Free(), receive.Free()
