"""Plans bound to memory: what `bind` of plans between layouts and between blocks and `bind_together` do."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _arrays, _core, _mpi
from ._mistakes import at_least_one, count, flag, one_of
from ._options import (
    BlockBindOptions,
    BlockFieldOptions,
    MoverOptions,
    OnceOptions,
    check_names,
    of_field_and_mover,
    takes,
)
from ._words import size_in_bytes
from ._xarray import XArray
from .errors import ArgumentError, ArgumentTypeError, DTypeError, LongshoreError

if TYPE_CHECKING:
    from ._options import Unpack

_FLAGS = ("proxy", "checked", "report")
_OF_MESSAGES = ("placement", "node", "aggregate", "packet_bytes", "preallocate", "exchange")
_ASKED_ABOVE_BYTES = 8 << 20  # of both sides together
_NODES = ("auto", "direct", "ring", "messages")
_EXCHANGES = {"auto": "automatic", "p2p": "point_to_point", "neighborhood": "neighborhood", "alltoall": "all_to_all"}


class _Spec(NamedTuple):
    """A plan, the two sides of one field and what is done where it writes."""

    plan: Any
    source: Any
    destination: Any
    own: BlockFieldOptions


def bind_plan(
    plan: Any, source: Any, destination: Any, comm: Any, options: Mapping[str, Any], of_field: Any
) -> _core.Mover:
    """What `MotionPlan.bind` and `BlockPlan.bind` do. `of_field`: the options that are a field's, not the mover's."""
    own, ways = of_field_and_mover(options, of_field)
    return _bind(comm, lambda _: specs_of_plan(plan, source, destination, comm, own), ways, kinds=(of_field,))


def specs_of_plan(plan: Any, source: Any, destination: Any, comm: Any, own: Any) -> list[_Spec]:
    """The fields of one plan, with the same options."""
    return [_Spec(plan, *pair, own) for pair in _pairs(plan, source, destination, comm)]


def bind_when_made(
    dtype: Callable[[], np.dtype | None], sides: Callable[[np.dtype], Any], comm: Any, own: Any, ways: Any
) -> _core.Mover:
    """A mover over MPI of the plan, the source and the destination that `sides` makes of an element type: that which
    `dtype` finds here, or where it finds none, that of the other ranks. Both may raise on one rank."""

    def specs(told: list[np.dtype] | None) -> list[_Spec] | None:
        if (known := told[0] if told else dtype()) is None:
            return None
        plan, source, destination = sides(known)
        return [_Spec(plan, source, destination, own)]

    return _bind(comm, specs, ways, lambda: [dtype()], (OnceOptions,))


def bind_blocks(
    plan: _core.BlockPlan,
    source: Any,
    destination: Any = None,
    *,
    comm: Any = None,
    **options: Unpack[BlockBindOptions],
) -> _core.Mover:
    """What `BlockPlan.bind` does."""
    return bind_plan(plan, source, destination, comm, options, BlockFieldOptions)


@takes(MoverOptions)
def bind_together(*fields: tuple[Any, ...], comm: Any = None, **options: Unpack[MoverOptions]) -> _core.Mover:
    """One Mover for several plans, between layouts and between blocks, of whatever shapes and dtypes: they are started
    and waited for at once, and what goes to one process is one message, of fields above 1 MiB one each. Collective with
    `comm`.

    Each field is (plan, source, destination), (plan, source) for an endogenous copy of blocks, and may end with a
    mapping of its own `alpha`, `beta`, `conjugate`, `reduce`, `visit`, `phases`, `ghost` and `destination_ghost`. What
    these and the options of all mean, and what is raised, is told with `MotionPlan.bind` and `BlockPlan.bind`.

    >>> rows, columns = Layout("(BLOCK, *) on 2", (4, 4)), Layout("(*, BLOCK) on 2", (4, 4))
    >>> blocks = FloorPlan.even(Region.of_shape((4, 4)), 2)
    >>> u, v, w = scatter(np.eye(4), rows), empty(columns, float), XArray(blocks, "int32", ghost=1)
    >>> mover = bind_together((plan(rows, columns, float), u, v), (BlockPlan.halo(blocks, 1), w))
    >>> mover()
    >>> v[1][2:].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    return _bind(comm, lambda _: list(specs_of_fields(fields, comm)), options)


def specs_of_fields(fields: tuple[Any, ...], comm: Any) -> Iterator[_Spec]:
    """What `bind_together` is given, field by field."""
    for k, field in enumerate(fields):
        if not isinstance(field, (tuple, list)) or not 2 <= len(field) <= 4:
            raise ArgumentError(f"field {k} is not (plan, source, destination)")
        plan, source, *rest = field
        own: Any = rest.pop() if rest and _is_options(rest[-1], len(rest), plan) else {}
        if len(rest) > 1:
            raise ArgumentError(
                f"field {k} ends with {type(rest[1]).__name__}; behind the destination its options may follow"
            )
        known = BlockFieldOptions.__annotations__
        if unknown := sorted(set(own) - set(known)):
            raise ArgumentError(f"field {k} has no option {unknown[0]!r}; it can have {', '.join(known)}")
        for pair in _pairs(plan, source, rest[0] if rest else None, comm):
            yield _Spec(plan, *pair, own)


def everybodys_fields(specs: list[_Spec]) -> list[_core.EverybodysField]:
    """Fields with the arrays of all ranks, of which each rank of a world takes its own."""
    return [_field(spec, None, False, _known_or_bytes(spec), _core.EverybodysField) for spec in specs]


def empty(
    plan: _core.FloorPlan, dtype: Any, ghost: int | Sequence[int | tuple[int, int]], order: Any
) -> list[np.ndarray]:
    """What `FloorPlan.empty` does."""
    dtype = _arrays.fixed_dtype(dtype)
    if order not in ("C", "F"):
        raise ArgumentError(f'order is "{order}"; it must be "C" or "F"')
    return [np.empty(region.shape, dtype, order) for region in plan.grow(ghost)]


def _is_options(value: Any, rest: int, plan: Any) -> bool:
    """Whether the last thing of a field is its options: mappings may also be arrays by rank."""
    names = isinstance(value, Mapping) and all(isinstance(name, str) for name in value)
    return names and (rest == 2 or isinstance(plan, _core.BlockPlan))


def _several(side: Any, plan: Any, comm: Any) -> bool:
    """A tuple is several fields, unless it is one array for each rank or block."""
    if not isinstance(side, tuple) or not side:
        return False
    if all(isinstance(one, (XArray, list, tuple, Mapping)) for one in side):
        return True
    return comm is not None and isinstance(plan, _core.MotionPlan)


def _pairs(plan: Any, source: Any, destination: Any, comm: Any) -> list[tuple[Any, Any]]:
    """The two sides of each field."""
    if not isinstance(plan, (_core.MotionPlan, _core.BlockPlan)):
        raise ArgumentTypeError(f"a plan must be a MotionPlan or a BlockPlan, not {type(plan).__name__}")
    if not _several(source, plan, comm):
        return [(source, destination)]
    if destination is None:
        return [(one, None) for one in source]
    if not isinstance(destination, tuple) or len(destination) != len(source):
        given = len(destination) if isinstance(destination, tuple) else type(destination).__name__
        raise ArgumentError(f"{len(source)} fields of sources, but of destinations {given}; give a tuple of as many")
    return list(zip(source, destination))


def _bind(
    comm: Any,
    specs: Callable[[list[np.dtype] | None], list[_Spec] | None],
    options: Mapping[str, Any],
    dtypes: Callable[[], list[np.dtype | None]] | None = None,
    kinds: tuple[Any, ...] = (),
) -> _core.Mover:
    """A mover of the fields that `specs` describes. Where nobody has told what their elements are (None) it may be None
    itself; then `dtypes` is what this rank has to say about that, and everybody's is told to all. `kinds`: what options
    may be beside those of a mover."""

    if comm is None:
        given = _given(options, kinds, comm)
        fields = [_field(spec, None, False, _known_or_bytes(spec)) for spec in specs(None) or ()]
        return _core.bind_threads(fields, **given)

    def prepare(told: list[np.dtype] | None) -> tuple[list[Any], dict[str, Any]] | None:
        given = _given(options, kinds, comm)
        if (described := specs(told)) is None:
            return None
        fields = []
        # A rank that brings no arrays to a plan between blocks need not know the element type: the others tell it.
        for k, spec in enumerate(described):
            if (dtype := told[k] if told else _known_dtype(spec)) is None:
                return None
            fields.append(_field(spec, comm.Get_rank(), given.get("placement") == "wrap", dtype))
        by_default = given.get("node", "auto") == "auto" and given.get("placement") != "wrap"
        if by_default and (seconds := _expected(described, comm.Get_rank())):
            given["expected"] = seconds
        return fields, given

    def known() -> list[np.dtype | None]:
        return [_known_dtype(spec) for spec in specs(None) or ()]

    return _mpi.bind(comm, prepare, dtypes or known, None if dtypes else np.dtype(np.uint8))


def _given(options: Mapping[str, Any], kinds: tuple[Any, ...], comm: Any) -> dict[str, Any]:
    """Options that are not what they are by default, as the engines take them."""
    if not options:
        return {}
    check_names(options, *kinds, MoverOptions)
    given = {name: value for name, value in options.items() if value is not (False if name in _FLAGS else None)}
    if comm is None and (messages := [name for name in _OF_MESSAGES if name in given]):
        raise ArgumentError(f"{messages[0]}= is for messages between processes; it needs comm=")
    return {name: _option(name, value) for name, value in given.items()}


def _expected(specs: list[_Spec], rank: int) -> tuple[float, ...] | None:
    """What each way takes within a node, in seconds, where this machine was calibrated and a rank's parts are so large
    that asking the model costs next to nothing beside the move. Blocks go by rule: see docs/performance.md."""
    bytes_ = 0
    for spec in specs:
        if not isinstance(spec.plan, _core.MotionPlan) or rank >= spec.plan.world_size:
            return None
        bytes_ += spec.plan.local_bytes(rank)
    if bytes_ <= _ASKED_ABOVE_BYTES:
        return None
    from . import model, tune

    try:
        profile = tune.measured_profile()
        if profile is None or not any(one["pair"] == "same node" for one in profile.facts["exchanges"]):
            return None
        costs = [model.predict(spec.plan, profile, rank=rank).ways for spec in specs]
    except (OSError, LongshoreError) as error:
        warnings.warn(f"ways are chosen without this machine's profile: {error}", stacklevel=9)
        return None
    told = [{cost.way: cost.seconds for cost in ways} for ways in costs]
    return tuple(sum(ways.get(way, 0.0) for ways in told) for way in ("direct", "ring", "messages"))


def _option(name: str, value: Any) -> Any:
    """One of a mover, as the engines take it."""
    if name == "threads":
        return at_least_one(value, name)
    if name == "max_mem":
        return size_in_bytes(value)
    if name == "packet_bytes":
        return size_in_bytes(value or None, name)
    if name == "placement":
        return one_of(value, name, ("direct", "wrap"))
    if name == "node":
        return one_of(value, name, _NODES)
    if name == "exchange":
        return _EXCHANGES[one_of(value, name, _EXCHANGES)]
    return flag(value, name)


def _known_dtype(spec: _Spec) -> np.dtype | None:
    if isinstance(spec.plan, _core.MotionPlan):
        return spec.plan.dtype  # type: ignore[attr-defined]  # Python's own plans have one
    for side, name in ((spec.source, "source"), (spec.destination, "destination")):
        for one in side.values() if isinstance(side, Mapping) else [side]:
            if one is None:
                continue
            if isinstance(one, XArray):
                return one.dtype
            for array in _arrays_of(one, name):
                return array.dtype
    return None


def _known_or_bytes(spec: _Spec) -> np.dtype:
    return _known_dtype(spec) or np.dtype(np.uint8)


def _field(spec: _Spec, rank: int | None, wrap: bool, dtype: np.dtype, kind: Any = _core.Field) -> Any:
    own = spec.own
    update = _update(dtype, own) if own else _core.Update()
    element = _name(dtype)
    if isinstance(spec.plan, _core.MotionPlan):
        for name in ("ghost", "destination_ghost", "phases") if own else ():
            if own.get(name) is not None:
                raise ArgumentError(f"{name}= is for plans between blocks; local arrays of layouts have no ghost cells")
        source = _parts(spec.source, spec.plan.source, dtype, rank, "source")
        destination = _parts(spec.destination, spec.plan.destination, dtype, rank, "destination")
        return kind(spec.plan, source, destination, update, element)
    _arrays.fixed_dtype(dtype)
    visit = None if own.get("visit") is None else one_of(own.get("visit"), "visit", ("C", "F"))
    phases = None if own.get("phases") is None else flag(own.get("phases"), "phases")
    blocks = (*_grids_of_sides(spec, rank, wrap, dtype, visit or "C"), update, element, visit)
    if kind is _core.Field:
        return kind(spec.plan, *blocks, phases)
    if phases:
        raise ArgumentError("ranks of the finegrain engine are copied for all at once, not in phases")
    return kind(spec.plan, *blocks)


def _update(dtype: np.dtype, own: BlockFieldOptions) -> _core.Update:
    conjugate = flag(own.get("conjugate", False), "conjugate")
    return _arrays.update(dtype, own.get("alpha"), own.get("beta"), conjugate, own.get("reduce"))


@functools.lru_cache(256)  # NumPy takes several microseconds to put one together
def _name(dtype: np.dtype) -> str:
    return str(dtype)


# --- local arrays of layouts


def _parts(side: Any, layout: _core.Layout, dtype: np.dtype, rank: int | None, what: str) -> _core.Parts:
    if rank is None:
        ranks = layout.ranks
        arrays = _arrays.by_rank(side, ranks, what)
        if isinstance(side, Mapping):
            if missing := sorted(set(ranks) - arrays.keys()):
                raise ArgumentError(f"no {what} array for rank {missing[0]} of the layout {layout}")
            if surplus := sorted(arrays.keys() - set(ranks)):
                raise ArgumentError(f"a {what} array for rank {surplus[0]}, which is not in the layout {layout}")
    elif isinstance(side, Mapping):
        arrays = {count(r, "a layout rank"): _arrays.as_array(a) for r, a in side.items()}
    elif side is None:
        arrays = {rank: np.empty(layout.local_shape(rank), dtype)} if layout.local_size(rank) == 0 else {}
    else:
        arrays = {rank: _arrays.as_array(side)}
    _arrays.check_dtype(arrays, dtype, what)
    return _core.Parts(arrays)


# --- arrays of blocks


def _arrays_of(side: Any, name: str) -> Any:
    if isinstance(side, np.ndarray) or not hasattr(side, "__iter__"):
        raise ArgumentError(f"the {name}s are {type(side).__name__}; give an XArray or a sequence of one array a block")
    return [_arrays.as_array(array) for array in side]


def _grids_of_sides(spec: _Spec, rank: int | None, wrap: bool, dtype: np.dtype, order: str) -> tuple[Any, Any]:
    if spec.source is None:
        raise ArgumentError("the sources are None; give an XArray or a sequence of one array a block")

    def grids(side: Any, blocks: _core.FloorPlan, ghost: Any, written: bool, name: str) -> list[_core.Grids]:
        if wrap and isinstance(side, Mapping):
            return [
                _grids(one, blocks, count(r, "a rank"), dtype, ghost, written, order, name) for r, one in side.items()
            ]
        return [_grids(side, blocks, rank, dtype, ghost, written, order, name)]

    ghost, destination_ghost = spec.own.get("ghost"), spec.own.get("destination_ghost")
    source = grids(spec.source, spec.plan.source, ghost, spec.destination is None, "source")
    if spec.destination is None:
        return source, source
    if destination_ghost is None and not isinstance(spec.destination, XArray):
        destination_ghost = ghost
    return source, grids(spec.destination, spec.plan.destination, destination_ghost, True, "destination")


def _grids(
    side: Any,
    blocks: _core.FloorPlan,
    rank: int | None,
    dtype: np.dtype,
    ghost: Any,
    written: bool,
    order: str,
    name: str,
) -> _core.Grids:
    if isinstance(side, XArray):
        if ghost is not None:
            raise ArgumentError(
                f"the {name} is an XArray, which knows its ghost cells; ghost= is for arrays of your own"
            )
        if side.dtype != dtype:
            raise DTypeError(f"the {name} has dtype {side.dtype}, the source has {dtype}")
        return side._grids
    given = _arrays_of(side, name)
    owned = range(len(blocks)) if rank is None else blocks.owned_by(rank)
    for k, array in zip(owned, given):
        if array.dtype != dtype:
            raise DTypeError(f"the {name} array of block {k} has dtype {array.dtype}, not {dtype}")
    arrays = [_arrays.local_array(array) for array in given]
    return _core.Grids.over(blocks, rank, dtype.itemsize, ghost or 0, arrays, name, written, order)
