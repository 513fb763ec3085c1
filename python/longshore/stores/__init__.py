"""Stores: arrays on disk, in `.npy` files, folders of one `.npy` a rank with a `layout.json`, Zarr, HDF5, NetCDF-4 and
safetensors, and moves between them that stay within a memory ceiling and publish atomically. And XArrays, saved to
files and loaded from them."""

from ..errors import VerificationError
from .blocks import FileMover, bind
from .local_arrays import load, save
from .move_report import MoveReport, StoreMoveReport
from .moving import move
from .opened import open
from .planning import plan_move
from .rechunk_plan import RechunkPlan
from .store import open_store

__all__ = [
    "FileMover",
    "MoveReport",
    "RechunkPlan",
    "StoreMoveReport",
    "VerificationError",
    "bind",
    "load",
    "move",
    "open",
    "open_store",
    "plan_move",
    "save",
]
