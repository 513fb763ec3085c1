"""Stores: arrays on disk, as one `.npy` file or as a folder of one `.npy` a rank with a `layout.json`, and moves between
them that stay within a memory ceiling and publish atomically."""

from .moving import MoveReport, VerificationError, move
from .store import open_store

__all__ = ["MoveReport", "VerificationError", "move", "open_store"]
