"""What can go wrong, one class a kind. Messages name the rank, the dimension, the index and the bound where there are
any."""

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "DTypeError",
    "DeadlockError",
    "DisagreementError",
    "LayoutError",
    "LocalArrayError",
    "LongshoreError",
    "MemoryLimitError",
    "NotInstalledError",
    "ShapeError",
    "SizeOverflowError",
    "StoreError",
    "TransportError",
    "VerificationError",
]


class LongshoreError(Exception):
    """Everything that Longshore raises on purpose."""

    def __str__(self) -> str:
        """Names come from files, too, and a traceback is for a terminal."""
        from ._words import printable

        return printable(super().__str__(), keep="\n")


class ArgumentError(LongshoreError, ValueError):
    """An argument outside its range."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of another kind than is wanted. A TypeError too, as Python's own functions raise it."""


class LayoutError(LongshoreError, ValueError):
    """A layout that cannot be read or does not hold together. The caret in the message is under the place."""


class ShapeError(LongshoreError, ValueError):
    """Extents that disagree."""


class DTypeError(LongshoreError, TypeError):
    """Element types that disagree, or that cannot be computed with."""


class LocalArrayError(LongshoreError, ValueError):
    """A local array with the wrong order or strides, that overlaps another, or that cannot be written."""


class MemoryLimitError(LongshoreError, MemoryError):
    """A move that cannot be done within the memory allowed; nothing has been moved."""


class NotInstalledError(LongshoreError, ImportError):
    """What was asked for needs something that is not installed."""


class SizeOverflowError(LongshoreError, OverflowError):
    """A size, count or offset that does not fit in 64 bits."""


class DisagreementError(LongshoreError, RuntimeError):
    """Ranks were given different things. Raised on every rank; nothing has been moved."""


class TransportError(LongshoreError, RuntimeError):
    """The engine under the move failed."""


class DeadlockError(LongshoreError, RuntimeError):
    """Ranks wait for each other, or for one that has gone. The message says who waits for whom."""


class StoreError(LongshoreError, OSError):
    """A file or folder that cannot be read or written as asked."""


class VerificationError(StoreError):
    """What was written, read back, does not hold what it was made of."""
