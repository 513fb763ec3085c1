"""On which ranks the processes of a layout would best be: what `relabel` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._api import MotionPlan, plan
from ._core import Layout
from ._mistakes import check, count
from .errors import ArgumentError, NotInstalledError
from .model import _given_or_own

if TYPE_CHECKING:
    from .tune import MachineProfile

_MOST_RANKS = 1 << 14  # whose costs take 2 GiB, and more while they are compared


@dataclass(frozen=True)
class Relabelling:
    """A destination layout with its processes on other ranks, and what these save."""

    layout: Layout  #: the destination itself where no other ranks are better
    bytes_before: int  #: between ranks, in the layout that was given
    bytes_after: int
    node_bytes_before: int  #: of them between nodes; without `ranks_per_node` there is one node
    node_bytes_after: int


def relabel(
    source: Layout | str,
    destination: Layout | str,
    dtype: Any,
    axes: Sequence[int] | None = None,
    *,
    ranks: Sequence[int] | None = None,
    ranks_per_node: int | None = None,
    profile: MachineProfile | None = None,
) -> Relabelling:
    """The destination layout with its processes on those ranks on which least has to be sent to them: the same parts,
    owned by others. Layouts, `dtype` and `axes` are `plan`'s. Moves nothing; needs no communicator; not collective.

    Which process is on which rank is the best of all permutations of the layout's ranks, or choices of `ranks`, by the
    bytes that leave their rank (Kabić et al., COSTA, 2021); where several are as good, that which changes the fewest
    ranks, so that a layout that is the best already is returned as it is. With `ranks_per_node` consecutive ranks share
    a node, and what counts is the time that messages take within a node and between nodes, whole nanoseconds on the
    profile, which is this machine's, `tune.profile()`, unless told; so it does with a `profile` alone, on one node.
    The sum over all ranks counts, not the slowest. Sources stay where they are, so this is a linear assignment problem,
    which SciPy solves: with n ranks in memory of n² and time of n³ at most; 1,024 take about a second.

    Raises ArgumentError for `ranks` that are too few, for more than 16,384 of them and where the profile lacks what
    messages take, NotInstalledError without SciPy (pip install longshore[relabel]), and what `plan` raises.

    >>> rows = Layout("(BLOCK, *) on 4", (1024, 1024))
    >>> better = relabel(rows, Layout("(BLOCK, *) on 4, source=1", (1024, 1024)), "float64")
    >>> better.layout.ranks, better.bytes_before, better.bytes_after
    ((1, 2, 3, 0), 8388608, 0)
    """
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        raise NotInstalledError("finding better ranks needs SciPy: pip install longshore[relabel]") from None

    made = plan(source, destination, dtype, axes)
    check("ranks", ranks, "Sequence[int] | None")
    if (most := max(made.destination.rank_count, 0 if ranks is None else len(ranks))) > _MOST_RANKS:
        raise ArgumentError(f"{most:,} ranks are too many to find better ones among; {_MOST_RANKS:,} can be compared")
    own, each = made.destination.ranks, 0 if ranks_per_node is None else count(ranks_per_node, "ranks_per_node")
    among = own if ranks is None else tuple(count(rank, "a rank") for rank in ranks)
    if len(among) < len(own):
        raise ArgumentError(f"ranks has {len(among)} of them, the destination {len(own)} processes")
    if len(set(among)) < len(among):
        twice = next(rank for k, rank in enumerate(among) if rank in among[:k])
        raise ArgumentError(f"ranks has rank {twice} twice")
    core = _given_or_own(profile).core if each or profile is not None else None
    costs = _core.placement_costs(made, among, core, each)
    stays = np.equal.outer(own, among)
    # In steps of what all differ by, so that a rank that is kept weighs less than any difference.
    spare = costs - costs.min(axis=1, keepdims=True)
    steps = spare // max(np.gcd.reduce(spare.ravel()), 1)
    rows, columns = linear_sum_assignment(steps * (len(own) + 1.0) - stays)
    better = made
    if stays.sum() < len(own) or sum(spare[rows, columns].tolist()) < sum(spare[stays].tolist()):
        chosen = [among[column] for column in columns]
        layout = Layout(str(made.destination), made.destination.shape, ranks=chosen)
        better = MotionPlan(made.source, layout, made.dtype, made.axes)
    before = _between(made, 1), _between(made, each)
    after = before if better is made else (_between(better, 1), _between(better, each))
    return Relabelling(better.destination, before[0], after[0], before[1], after[1])


def worthwhile(plan: MotionPlan) -> Relabelling | None:
    """What other ranks would save in bytes between ranks; None where it is nothing, which as a rule needs no solver."""
    costs = _core.placement_costs(plan, plan.destination.ranks)
    if (costs.diagonal() == costs.min(axis=1)).all():
        return None  # every process is where it has the most
    found = relabel(plan.source, plan.destination, plan.dtype, plan.axes)
    return found if found.bytes_after < found.bytes_before else None


def _between(plan: MotionPlan, ranks_per_node: int) -> int:
    """Bytes that leave nodes of so many consecutive ranks; 0: there is one."""
    nodes = {rank // ranks_per_node for rank in plan.source.ranks} if ranks_per_node else ()
    return sum(_core.node_volume(plan, node, ranks_per_node)["bytes_out"] for node in nodes)
