"""Longshore moves the data of distributed arrays from the layout it is in to the layout it is wanted in."""

from . import model
from ._api import AddressRelation, Layout, Motion, MotionPlan, Mover, empty, gather, plan, redistribute, scatter
from ._core import Assembler, Disassembler, Encoding, RelationProgram, __version__, encode, encoding_kinds
from .errors import (
    ArgumentError,
    DisagreementError,
    DTypeError,
    LayoutError,
    LocalArrayError,
    LongshoreError,
    MemoryLimitError,
    ShapeError,
    SizeOverflowError,
    StoreError,
    TransportError,
)

__all__ = [
    "AddressRelation",
    "ArgumentError",
    "Assembler",
    "DTypeError",
    "DisagreementError",
    "Disassembler",
    "Encoding",
    "Layout",
    "LayoutError",
    "LocalArrayError",
    "LongshoreError",
    "MemoryLimitError",
    "Motion",
    "MotionPlan",
    "Mover",
    "RelationProgram",
    "ShapeError",
    "SizeOverflowError",
    "StoreError",
    "TransportError",
    "__version__",
    "empty",
    "encode",
    "encoding_kinds",
    "gather",
    "model",
    "plan",
    "redistribute",
    "scatter",
]
