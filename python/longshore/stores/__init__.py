"""Stores: arrays on disk, as one `.npy` file or as a folder of one `.npy` a rank with a `layout.json`, and moves
between them that stay within a memory ceiling and publish atomically. And XArrays, saved to files and loaded from
them."""

from ..errors import VerificationError
from .blocks import FileMover, bind, load, save
from .moving import MoveReport, move
from .store import open_store

__all__ = ["FileMover", "MoveReport", "VerificationError", "bind", "load", "move", "open_store", "save"]
