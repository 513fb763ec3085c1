"""Benchmarks of Longshore: `longshore bench NAME` on the command line, `BENCHES[NAME].run(...)` in Python.

Every bench takes `quick`, `json` and `plot`, prints tables and returns what it writes as JSON.
"""

from .apps import Apps
from .assembly import Assembly
from .breakeven import Breakeven
from .chained import Chained
from .communicators import Communicators
from .fields import Fields
from .first_call import FirstCall
from .halo import Halo
from .machine import machine
from .prediction import Model
from .protocol import Bench, BenchError
from .ranks import Ranks
from .redistribute import Redistribute
from .stores import Stores
from .strips import Strips

_EVERY = (
    *(Redistribute, FirstCall, Halo, Fields, Chained, Strips, Apps, Assembly, Breakeven, Model, Ranks, Communicators),
    Stores,
)
BENCHES = {bench.name: bench for bench in _EVERY}

__all__ = ["BENCHES", "Bench", "BenchError", "machine"]
