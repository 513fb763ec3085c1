"""The launch itself."""

import os

from checks import WORLD, check
from mpi4py import MPI


@check
def as_asked():
    """As many ranks as asked, of the MPI asked for."""
    family, ranks = os.environ["LONGSHORE_LAUNCHED"].split()
    assert WORLD.allreduce(1) == int(ranks)
    assert MPI.Get_library_version().split()[0] == {"mpich": "MPICH", "openmpi": "Open"}[family]
