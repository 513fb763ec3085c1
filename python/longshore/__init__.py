"""Longshore moves the data of distributed arrays from the layout it is in to the layout it is wanted in."""

from . import model
from ._api import AddressRelation, Layout, Motion, MotionPlan, Mover, empty, gather, plan, redistribute, scatter
from ._core import __version__
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
    "DTypeError",
    "DisagreementError",
    "Layout",
    "LayoutError",
    "LocalArrayError",
    "LongshoreError",
    "MemoryLimitError",
    "Motion",
    "MotionPlan",
    "Mover",
    "ShapeError",
    "SizeOverflowError",
    "StoreError",
    "TransportError",
    "__version__",
    "empty",
    "gather",
    "model",
    "plan",
    "redistribute",
    "scatter",
]
