"""Plans over thousands of ranks, carried out for real in this process: every rank has a stack of its own and they take
turns.

What a rank under MPI would do, each of them does: it binds the plan, starts its move and waits for the ranks it reads
from. Whose turn it is follows from a seed, so that a run can be repeated exactly. Ranks' own programs are written in
C++ (`longshore/engines/finegrain.hpp`); from Python, plans between blocks run on them.
"""

from __future__ import annotations

from typing import Any

from . import _arrays, _core
from ._words import size_in_bytes
from ._xarray import XArray
from .errors import ArgumentError, DTypeError

__all__ = ["available", "move"]


def available() -> bool:
    """Whether this build has the engine: it needs Boost.Context."""
    return _core.finegrain_available()


def move(
    plan: _core.BlockPlan,
    source: XArray,
    destination: XArray | None = None,
    *,
    seed: int = 0,
    reduce: str | None = None,
    visit: str | None = None,
    checked: bool = False,
    rounds: int = 1,
    stack_bytes: int | str = "64KiB",
    max_mem: int | str | None = None,
) -> dict[str, Any]:
    """Carries out a plan between blocks, each rank of it for itself, and tells what that took.

    `source` and `destination` are XArrays with storage for all blocks; without a destination the source is the
    destination too, as in a halo update. `seed`: whose turn it is; 0 for one after the other. `rounds`: how
    often the plan is carried out; it is bound once. `stack_bytes`: a rank's stack, of which memory is taken for
    what is touched. `max_mem`: what a rank may hold beyond its arrays. `reduce`, `visit` and `checked` are
    those of `BlockPlan.bind`, and so is what is raised; an error names the rank, DeadlockError who waits for
    whom. Raises ArgumentError in builds without Boost.Context.

    The answer has `ranks`, `bytes` (written, in all rounds), `switches` (turns), `stacks` (in use at one time), and how
    long binding and moving took, `bind_s` and `move_s`.

    >>> blocks = FloorPlan.even(Region.of_shape((30, 40)), 600)
    >>> u = XArray(blocks, "float64", ghost=1)
    >>> for k, grid in u.items():
    ...     grid.interior[...] = k
    >>> told = finegrain.move(BlockPlan.halo(blocks, 1), u, seed=7)
    >>> told["ranks"], told["stacks"], told["bytes"] == sum(8 * n for _, _, _, n in BlockPlan.halo(blocks, 1).volumes())
    (600, 600, True)
    """
    destination = source if destination is None else destination
    for array, name in ((source, "source"), (destination, "destination")):
        if not isinstance(array, XArray):
            raise ArgumentError(f"the {name} is {type(array).__name__}; give an XArray of all blocks")
        if array.rank is not None:
            raise ArgumentError(
                f"the {name} has storage for the blocks of rank {array.rank} alone; give an XArray of all blocks"
            )
        if array.dtype != source.dtype:
            raise DTypeError(f"the {name} has dtype {array.dtype}, the source has {source.dtype}")
    if not 0 <= seed < 2**64:
        raise ArgumentError(f"seed is {seed}; it must be 0 or more and fit in 64 bits")
    if rounds < 0:
        raise ArgumentError(f"rounds is {rounds}; it must be 0 or more")
    kind = _arrays.element_type(source.dtype, reduce)
    return _core.finegrain_move(
        plan,
        source._grids,
        destination._grids,
        kind,
        reduce or "",
        visit,
        checked,
        seed,
        rounds,
        size_in_bytes(stack_bytes, "stack_bytes"),
        size_in_bytes(max_mem),
    )
