"""Everyone who takes part, in the order in which they run within a round."""

from __future__ import annotations

from .alltoallw import Alltoallw
from .base import Contender, Context, Missing, Prepared, WrongResult
from .copies import MemoryCopy
from .longshore_movers import LongshoreMpi, LongshoreThreads
from .mpi4py_fft import Mpi4pyFft
from .numpy_copy import NumpyCopy
from .packed import HandPacked
from .scalapack import Costa, ScaLapack

COPY_NAMES = ("copy, temporal", "copy, non-temporal")

CONTENDERS: tuple[Contender, ...] = (
    MemoryCopy(COPY_NAMES[0], streaming=False),
    MemoryCopy(COPY_NAMES[1], streaming=True),
    LongshoreThreads(),
    LongshoreMpi("longshore mpi", own_arrays=True),
    LongshoreMpi("longshore mpi (any array)", own_arrays=False),
    Alltoallw(),
    HandPacked(),
    ScaLapack(),
    Costa(),
    Mpi4pyFft(),
    NumpyCopy(),
)

__all__ = ["CONTENDERS", "COPY_NAMES", "Contender", "Context", "Missing", "Prepared", "WrongResult"]
