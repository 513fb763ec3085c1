"""Plans over thousands of ranks, carried out for real in this process: every rank has a stack of its own and they take
turns.

What a rank under MPI would do, each of them does: it binds the plan, starts its move and waits for the ranks it reads
from. Whose turn it is follows from a seed, so that a run can be repeated exactly. Ranks' own programs are written in
C++ (`longshore/engines/finegrain.hpp`); from Python, plans run on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _bind, _core
from ._mistakes import at_least_one, flag, one_of
from ._words import size_in_bytes
from ._xarray import XArray
from .errors import ArgumentError

__all__ = ["available", "move", "move_together"]


def available() -> bool:
    """Whether this build has the engine: it needs Boost.Context."""
    return _core.finegrain_available()


def move(
    plan: Any,
    source: Any,
    destination: Any = None,
    *,
    ghost: int | Sequence[int | tuple[int, int]] | None = None,
    destination_ghost: int | Sequence[int | tuple[int, int]] | None = None,
    visit: str | None = None,
    alpha: Any = None,
    beta: Any = None,
    conjugate: bool = False,
    reduce: str | None = None,
    max_mem: int | str | None = None,
    checked: bool = False,
    placement: str | None = None,
    ranks: int | None = None,
    seed: int = 0,
    rounds: int = 1,
    stack_bytes: int | str = "64KiB",
) -> dict[str, Any]:
    """Carries out a plan between layouts or between blocks, each rank of it for itself, and tells what that took.

    Plan, `source` and `destination` are those of `MotionPlan.bind` and `BlockPlan.bind` without `comm`: one array for
    each rank of a layout, an XArray with storage for all blocks or one array a block; without a destination the source
    is the destination too, as in a halo update. So are `ghost` to `checked`, tuples of several fields, and what is
    raised; an error names the rank, DeadlockError who waits for whom. `max_mem`: what a rank may hold beside its
    arrays.

    `ranks`: of how many ranks the world is; None: as many as the plan names. With `placement="wrap"` it may have fewer:
    what belongs to rank r of the plan is held by rank r % ranks. `seed`: whose turn it is; 0 for one after the other.
    `rounds`: how often the plan is carried out; it is bound once. `stack_bytes`: a rank's stack, of which memory is
    taken for what is touched. Raises ArgumentError in builds without Boost.Context.

    The answer has `ranks`, `bytes` (written, in all rounds), `switches` (turns), `stacks` (in use at one time), and how
    long binding and moving took, `bind_s` and `move_s`.

    >>> blocks = FloorPlan.even(Region.of_shape((30, 40)), 600)
    >>> u = XArray(blocks, "float64", ghost=1)
    >>> for k, grid in u.items():
    ...     grid.interior[...] = k
    >>> told = finegrain.move(BlockPlan.halo(blocks, 1), u, seed=7)
    >>> told["ranks"], told["stacks"], told["bytes"] == sum(8 * n for _, _, _, n in BlockPlan.halo(blocks, 1).volumes())
    (600, 600, True)
    >>> rows, columns = Layout("(BLOCK, *) on 50", (100, 50)), Layout("(*, BLOCK) on 50", (100, 50))
    >>> v = empty(columns, float)
    >>> finegrain.move(plan(rows, columns, float), scatter(np.ones((100, 50)), rows), v)["bytes"]
    40000
    """
    own = {"alpha": alpha, "beta": beta, "conjugate": conjugate, "reduce": reduce, "visit": visit}
    own.update(ghost=ghost, destination_ghost=destination_ghost)
    specs = _bind.specs_of_plan(plan, source, destination, None, own)
    return _move(specs, max_mem, checked, placement, ranks, seed, rounds, stack_bytes)


def move_together(
    *fields: tuple[Any, ...],
    max_mem: int | str | None = None,
    checked: bool = False,
    placement: str | None = None,
    ranks: int | None = None,
    seed: int = 0,
    rounds: int = 1,
    stack_bytes: int | str = "64KiB",
) -> dict[str, Any]:
    """The same for several plans at once: every rank binds all of them with one mover. Each field is as
    `bind_together` has it without `comm`: (plan, source, destination), or (plan, source), and options of its own."""
    specs = list(_bind.specs_of_fields(fields, None))
    return _move(specs, max_mem, checked, placement, ranks, seed, rounds, stack_bytes)


def _move(
    specs: Any,
    max_mem: Any,
    checked: Any,
    placement: Any,
    ranks: Any,
    seed: int,
    rounds: int,
    stack_bytes: Any,
) -> dict[str, Any]:
    for spec in specs:
        for array, name in ((spec.source, "source"), (spec.destination, "destination")):
            if isinstance(array, XArray) and array.rank is not None:
                raise ArgumentError(
                    f"the {name} has storage for the blocks of rank {array.rank} alone; give an XArray of all blocks"
                )
    if not 0 <= seed < 2**64:
        raise ArgumentError(f"seed is {seed}; it must be 0 or more and fit in 64 bits")
    if rounds < 0:
        raise ArgumentError(f"rounds is {rounds}; it must be 0 or more")
    return _core.finegrain_move(
        _bind.everybodys_fields(specs),
        None if ranks is None else at_least_one(ranks, "ranks"),
        one_of(placement or "direct", "placement", ("direct", "wrap")) == "wrap",
        flag(checked, "checked"),
        seed,
        rounds,
        size_in_bytes(stack_bytes, "stack_bytes"),
        size_in_bytes(max_mem),
    )
