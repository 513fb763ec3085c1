"""Longshore moves the data of distributed arrays from the layout it is in to the layout it is wanted in."""

from typing import TYPE_CHECKING, Any

from . import _kernels, finegrain, model, ranks, regions
from ._api import (
    AddressRelation,
    Layout,
    Motion,
    MotionPlan,
    Mover,
    empty,
    from_mpi_datatype,
    gather,
    plan,
    put_message,
    redistribute,
    relation_of_views,
    scatter,
    to_mpi_datatype,
)
from ._bind import bind_together
from ._cache import CachedRelation, CacheEntry, CacheStatistics, FlushUnit, RelationCache
from ._core import (
    Arrival,
    Assembler,
    BlockMotion,
    BlockPlan,
    Disassembler,
    Encoding,
    FloorPlan,
    PutSender,
    RankExplanation,
    RankMap,
    Region,
    RelationProgram,
    answer_get,
    deliver_put,
    encode,
    encoding_kinds,
    explain_ranks,
    get_request,
    rank_modules,
    receiver_half,
    sender_half,
)
from ._core import version as __version__
from ._directory import Directory, take
from ._mpi import mpi_family
from ._numpy_memory import SharedNumpyMemory, share_numpy_memory
from ._relabel import Relabelling, relabel
from ._report import TimeReport
from ._sections import Handle, Section
from ._strips import Strip, strips
from ._virtual_comm import VirtualComm
from ._window import Window
from ._xarray import Grid, XArray
from .errors import (
    ArgumentError,
    ArgumentTypeError,
    DeadlockError,
    DisagreementError,
    DTypeError,
    LayoutError,
    LocalArrayError,
    LongshoreError,
    MemoryLimitError,
    NotInstalledError,
    ShapeError,
    SizeOverflowError,
    StoreError,
    TransportError,
)

if TYPE_CHECKING:
    from . import stores
    from .stores import load, move, open, plan_move, save

__all__ = [
    "AddressRelation",
    "ArgumentError",
    "ArgumentTypeError",
    "Arrival",
    "Assembler",
    "BlockMotion",
    "BlockPlan",
    "CacheEntry",
    "CacheStatistics",
    "CachedRelation",
    "DTypeError",
    "DeadlockError",
    "Directory",
    "DisagreementError",
    "Disassembler",
    "Encoding",
    "FloorPlan",
    "FlushUnit",
    "Grid",
    "Handle",
    "Layout",
    "LayoutError",
    "LocalArrayError",
    "LongshoreError",
    "MemoryLimitError",
    "Motion",
    "MotionPlan",
    "Mover",
    "NotInstalledError",
    "PutSender",
    "RankExplanation",
    "RankMap",
    "Region",
    "Relabelling",
    "RelationCache",
    "RelationProgram",
    "Section",
    "ShapeError",
    "SharedNumpyMemory",
    "SizeOverflowError",
    "StoreError",
    "Strip",
    "TimeReport",
    "TransportError",
    "VirtualComm",
    "Window",
    "XArray",
    "__version__",
    "answer_get",
    "bind_together",
    "deliver_put",
    "empty",
    "encode",
    "encoding_kinds",
    "explain_ranks",
    "finegrain",
    "from_mpi_datatype",
    "gather",
    "get_request",
    "load",
    "model",
    "move",
    "mpi_family",
    "open",
    "plan",
    "plan_move",
    "put_message",
    "rank_modules",
    "ranks",
    "receiver_half",
    "redistribute",
    "regions",
    "relabel",
    "relation_of_views",
    "save",
    "scatter",
    "sender_half",
    "share_numpy_memory",
    "stores",
    "strips",
    "take",
    "to_mpi_datatype",
    "tune",
]


_kernels.choose_kept()


def __getattr__(name: str) -> Any:
    """`stores` and `tune` are imported when they are first used: with what they need they take long."""
    import importlib

    if name in ("stores", "tune"):
        return importlib.import_module(f"longshore.{name}")
    if name in ("load", "move", "open", "plan_move", "save"):
        return getattr(importlib.import_module("longshore.stores"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
