"""A module that sees another communicator than mpi4py does is refused, and importing longshore imports no MPI."""

import sys

import longshore as ls

assert not [name for name in sys.modules if "mpi4py" in name or name.startswith("longshore._mpi_")], (
    "an MPI was imported"
)
with open("/proc/self/maps") as maps:
    assert "libmpi" not in maps.read(), "an MPI library was loaded"

from longshore import _mpi  # noqa: E402
from mpi4py import MPI  # noqa: E402

comm = MPI.COMM_WORLD
layout = ls.Layout(f"(BLOCK) on {comm.size}", (10,))
array = ls.empty(layout, "f8", comm=comm)

# A stand-in for the wrong module: what MPI_Comm_rank answers in a library that was never initialised.
right = _mpi._module(MPI)


class Wrong:
    __name__ = "longshore._mpi_wrong"

    @staticmethod
    def comm_facts(bits):
        return (-1, 1)


_mpi._module = lambda MPI: Wrong
try:
    ls.plan(layout, layout, "f8").bind(array, array.copy(), comm=comm)
except ls.TransportError as error:
    assert "two MPI libraries" in str(error)
else:
    raise AssertionError("taken")

# A family for which there is no module.
import importlib  # noqa: E402

importlib.reload(_mpi)
_mpi._SONAMES["none"] = "libmpi_none.so"
_mpi._family = lambda MPI: "none"
try:
    ls.plan(layout, layout, "f8").bind(array, array.copy(), comm=comm)
except ls.TransportError as error:
    assert "built without" in str(error)
else:
    raise AssertionError("taken")
if comm.rank == 0:
    print("refused")
