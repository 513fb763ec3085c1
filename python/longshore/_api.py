"""Describe, plan, move: the functions and classes of `import longshore`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _again, _arrays, _bind, _core, _json, _report, _whole_blocks
from ._core import AddressRelation, Encoding, Layout, Motion, Mover, PutSender
from ._mistakes import check, flag
from ._options import BindOptions, FieldOptions, OnceOptions, takes
from ._report import TimeReport
from ._words import short
from ._xarray import XArray
from .errors import (
    ArgumentError,
    ArgumentTypeError,
    DisagreementError,
    DTypeError,
    LayoutError,
    LocalArrayError,
    LongshoreError,
    ShapeError,
)

if TYPE_CHECKING:
    from ._options import Unpack

__all__ = [
    "AddressRelation",
    "Layout",
    "Motion",
    "MotionPlan",
    "Mover",
    "empty",
    "from_mpi_datatype",
    "gather",
    "plan",
    "put_message",
    "redistribute",
    "relation_of_views",
    "scatter",
    "to_mpi_datatype",
]


_SIDE = {"layout": str, "shape": [int]}
_check_plan = _json.check_of({"source": _SIDE, "destination": _SIDE, "dtype": object, "axes": [int]})


class MotionPlan(_core.MotionPlan):
    """What moves from whom to whom to bring an array from one layout to another.

    A value: immutable, comparable, hashable, picklable, and it travels as JSON. Built by `plan`; building it needs no
    communicator and costs nothing, for motions are derived when they are asked for. Not collective.

    Attributes: source, destination (Layout); dtype; itemsize (bytes); axes, where destination dimension d is source
    dimension axes[d], as in numpy.transpose; world_size."""

    def __init__(
        self, source: Layout | str, destination: Layout | str, dtype: Any, axes: Sequence[int] | None = None
    ) -> None:
        self.dtype = _arrays.fixed_dtype(dtype)
        # The text of a layout says no shape, but the other layout has one.
        if isinstance(destination, str) and isinstance(source, Layout):
            destination = Layout(destination, _permuted(source.shape, axes))
        elif isinstance(source, str) and isinstance(destination, Layout):
            source = Layout(source, _permuted(destination.shape, axes, back=True))
        super().__init__(_layout(source, "source"), _layout(destination, "destination"), self.dtype.itemsize, axes)

    def relation(self, source: int, destination: int) -> AddressRelation | None:
        """The pairs of byte offsets that go from one rank's local array to another's, or None if nothing does."""
        for motion in self.sends(source):
            if motion.destination == destination:
                return self.relation_of(motion)
        return None

    def explain(self, rank: int | None = None) -> str:
        """The move in plain words: both layouts drawn, who sends how much to whom, how memory is read and written."""
        from . import explain

        return explain.render(self) if rank is None else explain.render(self, rank=rank)

    @takes(BindOptions)
    def bind(self, source: Any, destination: Any, *, comm: Any = None, **options: Unpack[BindOptions]) -> Mover:
        """Ties the plan to memory: a Mover with start(), test() and wait(), to be used again and again.

        Without `comm`, `source` and `destination` hold one array for each rank of their layouts (a sequence in the
        order of `layout.ranks`, or a mapping from rank) and the threads engine moves them on `threads` threads
        (default: as many as the process may use). With an mpi4py communicator the call is collective, rank r of the
        communicator gives its own local arrays (None where it owns nothing), and the mpi engine moves them.

        Several fields at once: `source` and `destination` are tuples of such sides, equally long. They are bound with
        one agreement and moved by one start and wait, with one message a peer. (Without `comm` a tuple of arrays is one
        field, an array for each rank.) `bind_together` does the same for different plans.

        Arrays are NumPy's, or anything with a buffer or DLPack; they must have the layout's local shape, order and
        dtype, and are kept alive by the mover. What is done where it writes: destination = beta * destination + alpha *
        op(source), where op conjugates if `conjugate`; or, with `reduce` ("add", "min", "max", ...), destination =
        destination op source. `max_mem`: bytes (or "64MiB") the move may take beyond its arrays on this rank:
        with threads, which need no buffers, for the copy programs; under MPI for buffers (the programs come on
        top: some KiB a peer, some hundred where parts interleave). `proxy`: a thread of the mover's own carries the
        move out while the caller computes. `checked`: sums tell in wait() where a source was written too early
        (LocalArrayError) or something else has arrived than was sent (TransportError); twice the work and more.

        With `comm`: `threads`: so many of this rank share its copies within the node (default: 1; ranks may differ).
        `placement="wrap"`: layout rank r lives in process r % size, and processes give mappings from
        layout rank. How messages travel: `node`, the way within a node: "auto", "direct", "ring" or "messages";
        `aggregate`: one message for each pair of ranks (False: one a motion); `packet_bytes`: in packets no larger than
        that, few of them in flight; `preallocate`: buffers live as long as the mover (False: from start to wait);
        `exchange`: "auto", "p2p", "neighborhood" or "alltoall".

        Raises, on every rank alike and before anything moves: ShapeError, DTypeError, LocalArrayError,
        MemoryLimitError, DisagreementError, ArgumentError."""
        return _bind.bind_plan(self, source, destination, comm, options, FieldOptions)

    def to_json(self) -> str:
        """The plan as JSON text: a format name, a version, the
        two layouts with their shapes, the dtype and the axes."""
        return json.dumps(
            {
                "format": "longshore-plan",
                "version": 1,
                "source": {"layout": str(self.source), "shape": list(self.source.shape)},
                "destination": {"layout": str(self.destination), "shape": list(self.destination.shape)},
                "dtype": np.lib.format.dtype_to_descr(self.dtype),
                "axes": list(self.axes),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> MotionPlan:
        """The plan that to_json() wrote. Raises LayoutError for text that is not one."""
        data = _json.read(text, "a plan", "longshore-plan", _check_plan, LayoutError)
        source, destination = (Layout(data[side]["layout"], data[side]["shape"]) for side in ("source", "destination"))
        try:
            dtype = np.lib.format.descr_to_dtype(_as_descr(data["dtype"]))
        except Exception:  # NumPy has no one kind of error for it
            raise LayoutError(
                f"not a plan: dtype is {short(data['dtype'])}; it must be as numpy.lib.format.dtype_to_descr tells it"
            ) from None
        return cls(source, destination, dtype, data["axes"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MotionPlan) and super().__eq__(other) and self.dtype == other.dtype

    __hash__ = _core.MotionPlan.__hash__

    def __repr__(self) -> str:
        return f"<longshore.MotionPlan: {self}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return MotionPlan, (self.source, self.destination, self.dtype, tuple(self.axes))


def plan(source: Layout | str, destination: Layout | str, dtype: Any, axes: Sequence[int] | None = None) -> MotionPlan:
    """The plan that brings an array of `dtype` elements from one layout to the other, of which one may be a text.

    `axes` permutes dimensions as numpy.transpose does: destination.shape[d] ==
    source.shape[axes[d]]. Raises ShapeError naming the dimension where the layouts disagree,
    DTypeError for elements that are not plain bytes. Not collective."""
    return MotionPlan(source, destination, dtype, axes)


def scatter(array: Any, layout: Layout | str | XArray, *, comm: Any = None, root: int = 0) -> Any:
    """Deals a whole array to a layout, or to the blocks of an XArray.

    Without `comm`: one new local array for each of the layout's ranks, in the order of `layout.ranks`. With an mpi4py
    communicator (collective): `array` is the whole array of rank `root` and is not looked at elsewhere; the result is
    this rank's new local array (None where it owns nothing). The layout is a text where the shape is the array's, so
    not with `comm`.

    An XArray is filled and returned. The array is then over the smallest region that contains all of its blocks
    (`blocks.bounding`), and of its dtype; every block gets its points, and ghost cells stay as they are. Give the
    `comm` that the XArray was made with.

    Raises ShapeError where the array has another shape than the layout or that region, DTypeError where it has another
    dtype than the XArray, ArgumentError for a root outside the communicator, DisagreementError where ranks give
    different layouts, XArrays or roots, and what `redistribute` raises."""
    _same_kind(layout, comm, root)
    if isinstance(layout, XArray):
        return _whole_blocks.scatter(array, layout, comm, root)
    if comm is not None:
        from . import _mpi

        def prepare() -> tuple[np.ndarray | None, Layout]:
            to = _layout(layout, "layout")
            whole = _whole_at(root, to, comm)
            return (np.ascontiguousarray(_shaped(array, to)) if comm.Get_rank() == root else None), whole

        source, whole = _mpi.together(comm, prepare)
        return redistribute(source, whole, layout, comm=comm)
    array = _arrays.as_array(array)
    layout = _layout(layout, "layout", array.shape)
    array, whole = _whole(_shaped(array, layout), layout.shape)
    parts = empty(layout, array.dtype)
    plan(whole, layout, array.dtype).bind([array], parts)()
    return parts


def gather(
    parts: Any, layout: Layout | str | None = None, out: np.ndarray | None = None, *, comm: Any = None, root: int = 0
) -> Any:
    """The whole array again, of local arrays as a layout has them, or of an XArray.

    Without `comm`: `parts` has one local array for each rank of the layout (a sequence or a mapping from rank). With an
    mpi4py communicator (collective): `parts` is this rank's local array (None where it owns nothing), and the whole
    array is rank `root`'s; the others get None, and their `out` is not looked at. `out` receives the result instead of
    new memory.

    An XArray knows its blocks: leave `layout` out. The whole array is over the smallest region that contains all of
    them; points that no block has are 0, or stay as they are in `out`. Blocks that overlap are an ArgumentError, for
    nobody could say whose value counts.

    Raises ArgumentError, ShapeError and DTypeError, DisagreementError as `scatter` does, and what `redistribute`
    raises."""
    _same_kind(parts, comm, root)
    if isinstance(parts, XArray):
        return _whole_blocks.gather(parts, layout, out, comm, root)
    if comm is not None:
        from . import _mpi

        def prepare() -> tuple[np.ndarray | None, Layout, Layout]:
            whole = _whole_at(root, from_ := _layout(layout, "layout"), comm)
            return (_shaped(out, whole, "out") if out is not None and comm.Get_rank() == root else None), from_, whole

        target, from_, whole = _mpi.together(comm, prepare)
        return redistribute(parts, from_, whole, out=target, comm=comm)
    layout = _layout(layout, "layout")
    arrays = _arrays.by_rank(
        parts, layout.ranks, "source", "where each process of an MPI job has one, gather(local, layout, comm=comm)"
    )
    if not arrays:
        raise ArgumentError(f"no source array for rank {layout.ranks[0]} of the layout {layout}")
    dtype = next(iter(arrays.values())).dtype
    if out is None:
        out = np.empty(layout.shape, dtype, order=layout.order)
    target, whole = _whole(_shaped(out, layout, "out"), layout.shape, copy=False)
    plan(layout, whole, dtype).bind(arrays, [target])()
    return out


def redistribute(
    source: Any,
    source_layout: Layout | str,
    destination_layout: Layout | str,
    *,
    axes: Sequence[int] | None = None,
    out: Any = None,
    comm: Any = None,
    alpha: Any = None,
    beta: Any = None,
    conjugate: bool = False,
    reduce: str | None = None,
    threads: int | None = None,
    max_mem: int | str | None = None,
    report: bool | Callable[[TimeReport], Any] | None = None,
    again: bool = True,
) -> Any:
    """Moves an array from one layout to another, once: plan, bind,
    start, wait. For repeated moves keep the Mover of `bind`.

    Without `comm`: `source` and the result hold one array for each rank of their layouts. With an mpi4py communicator
    (collective): this rank's local array (None where it owns nothing), and the result is this rank's new local array
    (None where it owns nothing). `out` receives the result instead of new memory. One of the layouts may be a text. The
    other arguments and the errors are MotionPlan.bind's.

    `again`: a call with `out` and no options, on the same places in memory as one before, takes the mover that that one
    has bound, and little longer than the bound move: with `comm` where all ranks are on one node, without it where
    all arrays have 256 KiB at most. The last eight movers are kept, as long as they hold 16 MiB at most, with the
    communicator or by the thread, without the arrays. False: neither taken nor kept.

    `report`: tells what the move took beside what `model.predict` says that it takes on this machine's profile, a
    `TimeReport` of the slowest rank. True: rank 0 prints it; else it is called with it. All ranks ask for one or none
    does, which is a DisagreementError. Memory that is written for the first time, as a result without `out` is, takes
    longer than predicted.

    >>> src, dst = Layout("(BLOCK, *) on 2", (4, 4)), Layout("(*, CYCLIC) on 2", (4, 4))
    >>> parts = scatter(np.arange(16).reshape(4, 4), src)
    >>> redistribute(parts, src, dst)[1]
    array([[ 1,  3],
           [ 5,  7],
           [ 9, 11],
           [13, 15]])
    """
    usual = alpha is None and beta is None and conjugate is False and reduce is None
    usual = usual and threads is None and max_mem is None and report is None
    asked = report is not None and report is not False
    own: FieldOptions = {}
    ways: OnceOptions = {}
    if not usual:
        own = {"alpha": alpha, "beta": beta, "conjugate": conjugate, "reduce": reduce}
        ways = {"threads": threads, "max_mem": max_mem}

    def prepare(dtype: np.dtype, rank: int | None) -> tuple[MotionPlan, Any]:
        if again is not True:
            flag(again, "again")
        if asked:
            _report.check_kind(report)
        made = plan(source_layout, destination_layout, dtype, axes)
        if out is not None:
            return made, out
        for name, value in (("beta", beta), ("reduce", reduce)):
            if value is not None:
                raise ArgumentError(f"{name} needs out=: there is no old destination to keep a part of")
        nothing = rank is not None and made.destination.local_size(rank) == 0
        return made, None if nothing else empty(made.destination, made.dtype, rank=rank)

    kept = _again.kept_with(comm)
    key = None
    if usual and again is True:
        key = _again.key_of(comm, source, source_layout, destination_layout, axes, out)
    if kept.move(key, source, out):
        return out

    if comm is None:
        motion_plan, result = prepare(_dtype_of(source), None)
        mover = _bind.bind_plan(motion_plan, source, result, None, {**own, **ways}, FieldOptions)
        _report.move(mover, motion_plan, None, threads, report if asked else None)
        kept.keep(key, mover)
        return result

    def local_dtype() -> np.dtype | None:
        array = source if source is not None else out
        return None if array is None else _arrays.as_array(array).dtype

    made: list[tuple[MotionPlan, Any]] = []

    def sides(dtype: np.dtype) -> tuple[MotionPlan, Any, Any]:
        made[:] = [prepare(dtype, comm.Get_rank())]
        motion_plan, result = made[0]
        return motion_plan, source, result

    # A rank that owns nothing need not know the element type: the others tell it. What fails is told to all as well.
    mover = _bind.bind_when_made(local_dtype, sides, comm, own, {**ways, "report": True} if asked else ways)
    _report.move(mover, made[0][0], comm, threads, report if asked else None)
    kept.keep(key, mover)
    return made[0][1]


def empty(layout: Layout, dtype: Any, *, comm: Any = None, rank: int | None = None) -> Any:
    """Uninitialised local arrays as a layout wants them, where the engine moves them fastest.

    With an mpi4py communicator: this rank's local array, in memory that ranks of the same node can share (each
    call allocates for itself; not collective). With `rank`: that rank's array in ordinary memory. With
    neither: a list, one array for each rank of the layout. Raises ArgumentError where both are given."""
    dtype = _arrays.fixed_dtype(dtype)
    layout = _layout(layout, "layout")
    if comm is not None and rank is not None:
        raise ArgumentError(
            "comm= has its own rank; give comm= for this rank's array, or rank= for one in ordinary memory, not both"
        )
    if comm is not None:
        from . import _mpi

        rank = _mpi.rank_in(comm)
        bytes_ = layout.allocated_size(rank) * dtype.itemsize
        return _arrays.empty_local(layout, rank, dtype, _mpi.array_memory(bytes_, comm) if bytes_ else None)
    if rank is not None:
        return _arrays.empty_local(layout, rank, dtype)
    return [_arrays.empty_local(layout, r, dtype) for r in layout.ranks]


def put_message(relation: AddressRelation | Encoding, source: Any, kind: str = "auto") -> np.ndarray:
    """Put (section 2), once: the data and where it goes, as bytes
    for `deliver_put`. For many messages keep a `PutSender`."""
    return PutSender(relation, kind)(source)


def relation_of_views(
    source: Any, source_view: np.ndarray, destination: Any, destination_view: np.ndarray, *, reduce: str | None = None
) -> AddressRelation:
    """The relation that does destination_view[...] = source_view
    between two arrays, for other arrays of the same layout too.

    The views are any slices, transposes, flips or broadcasts of the two arrays (for a destination: none that visits an
    element twice, unless `reduce` names a combining operation). Elements go in the order of the views' indices. Raises
    ShapeError, DTypeError, LocalArrayError where a view reaches beyond its array.

    >>> image = np.zeros((4, 6))
    >>> turned = np.empty((6, 4))
    >>> turn = relation_of_views(image, np.rot90(image), turned, turned)
    >>> turn.move(image, turned) is turned
    True
    """
    source_view, destination_view = _arrays.as_array(source_view), _arrays.as_array(destination_view)
    if source_view.shape != destination_view.shape:
        raise ShapeError(f"the source's view has shape {source_view.shape}, the destination's {destination_view.shape}")
    if source_view.dtype != destination_view.dtype:
        raise DTypeError(f"the source's view has dtype {source_view.dtype}, the destination's {destination_view.dtype}")
    offsets: list[int] = []
    for base, view, name in ((source, source_view, "source"), (destination, destination_view, "destination")):
        _, base_address, base_low, base_high, *_ = _arrays.memory(base)
        _, address, low, high, *_ = _arrays.memory(view)
        offset = address - base_address
        if view.size and not (base_low <= offset + low and offset + high <= base_high):
            raise LocalArrayError(
                f"the {name}'s view touches bytes [{offset + low}, {offset + high}) of its array, which has "
                f"[{base_low}, {base_high})"
            )
        offsets.append(offset if view.size else 0)
    from_, to = offsets
    return AddressRelation.strided(
        source_view.shape, source_view.strides, destination_view.strides, source_view.dtype, from_, to, reduce=reduce
    )


def _encoding_from_bytes(content: bytes) -> Encoding:
    """What unpickling calls: the extension's own functions have no names that pickle finds."""
    return Encoding.from_bytes(content)


def from_mpi_datatype(
    datatype: Any, count: int = 1, destination: Any = None, destination_count: int = 1
) -> AddressRelation:
    """The address relation of an MPI datatype of mpi4py's, derived or not, committed or not. Not collective.

    Without `destination`: from a buffer of `count` elements of the datatype to the dense message that MPI_Pack makes of
    it, offsets in bytes from the buffer's address, in the order of the typemap. With `destination`: from the buffer
    that is sent as `count` elements of `datatype` to the one that receives as `destination_count` of `destination`;
    `move()` does the communication within one process. Elements are the basic ones where these are of one size, else
    the largest size that all are multiples of. Regular datatypes cost the same at any number of elements.

    Raises ArgumentError (no mpi4py; MPI is not running; DATATYPE_NULL; a negative count; a destination
    that overlaps itself), ShapeError where source and destination have not equally many bytes,
    SizeOverflowError for offsets beyond 2^60, MemoryLimitError where irregular content is repeated so that
    it would have to be listed, and is too long for that."""
    from . import _mpi

    return _mpi.from_mpi_datatype(datatype, count, destination, destination_count)


def to_mpi_datatype(relation: AddressRelation, side: str = "source") -> Any:
    """One side of an address relation, "source" or "destination",
    as a committed mpi4py datatype; Free() it. Not collective.

    One element of it, at the address of the array's first byte, is that side of the relation in message order: sending
    an array with the source's datatype and receiving another with the destination's moves the relation. Its extent is
    not meant for counts above 1. Its basic elements are unsigned integers or bytes, whatever the array's are: it moves
    bits, between machines that are alike. Loops become vectors, lists become indexed datatypes; numbers beyond int are
    made with MPI-4's large counts or of nested datatypes.

    Raises ArgumentError (no mpi4py; MPI is not running; an unknown side; the destination of a relation with `reduce`,
    which no datatype can say), TransportError with MPI's words where MPI cannot make it."""
    from . import _mpi

    return _mpi.to_mpi_datatype(relation, side)


def _relation_from_bytes(content: bytes) -> AddressRelation:
    return Encoding.from_bytes(content).decode()


def _layout(layout: Any, name: str, shape: Sequence[int] | None = None) -> Layout:
    """A layout, also from its text where the shape of the array is known."""
    if isinstance(layout, Layout):
        return layout
    if not isinstance(layout, str):
        check(name, layout, "Layout")
    if shape is None:
        raise ArgumentTypeError(f"{name} is a text, which says no shape; give Layout({short(layout)}, shape)")
    return Layout(layout, shape)


def _same_kind(given: Any, comm: Any, root: Any) -> None:
    """Raises where some ranks of a communicator give an XArray and others none, or other roots. Collective."""
    if comm is None:
        return
    from . import _mpi

    module, handle = _mpi.open_comm(comm)
    kind = "an XArray" if isinstance(given, XArray) else "no XArray"
    said = module.gather_words(handle, f"{kind}\n{_root_in_words(root, comm)}", None, "")
    kinds, roots = zip(*(words.split("\n") for words in said))
    for rank, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise DisagreementError(f"rank 0 gives {kinds[0]}, rank {rank} {kind}")
    for rank, root in enumerate(roots if all(roots) else ()):
        if root != roots[0]:
            raise DisagreementError(f"root: rank 0 has {roots[0]}, rank {rank} has {root}")


def _root_in_words(root: Any, comm: Any) -> str:
    """A root's number, nothing for what is none: that is told of in its own words."""
    try:
        return str(_arrays.root_in(root, comm))
    except LongshoreError:
        return ""


def _permuted(shape: tuple[int, ...], axes: Sequence[int] | None, *, back: bool = False) -> tuple[int, ...]:
    """A shape with its dimensions permuted as numpy.transpose does, or back again; as it is for axes that are no
    permutation, which the plan refuses."""
    check("axes", axes, "Sequence[int] | None")
    if axes is None or sorted(a % len(shape) for a in axes) != list(range(len(shape))):
        return shape
    extents = dict(zip([a % len(shape) for a in axes], shape))
    return tuple(extents[d] for d in range(len(shape))) if back else tuple(shape[a] for a in axes)


def _dtype_of(source: Any) -> np.dtype:
    parts = list(source.values()) if isinstance(source, Mapping) else source
    if isinstance(parts, np.ndarray) or not isinstance(parts, Sequence) or not parts:
        raise ArgumentError(f"without comm= give one source array for each rank, got {type(source).__name__}")
    return _arrays.as_array(parts[0]).dtype


def _shaped(array: Any, layout: Layout, name: str = "the array") -> np.ndarray:
    """An array that has a layout's shape."""
    array = _arrays.as_array(array)
    if array.shape != layout.shape:
        raise ShapeError(f"{name} has shape {array.shape}, the layout {layout.shape}")
    return array


def _whole_at(root: int, layout: Layout, comm: Any) -> Layout:
    """The layout that has everything at one rank of a communicator."""
    return Layout(_arrays.whole_text(layout.ndim), layout.shape, ranks=[_arrays.root_in(root, comm)])


def _whole(array: np.ndarray, shape: tuple[int, ...], *, copy: bool = True) -> tuple[np.ndarray, Layout]:
    """An array as the single part of a layout that keeps it whole."""
    if not shape:
        raise ShapeError("an array without dimensions has nothing to distribute; reshape it to (1,)")
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return array, _arrays.whole_layout(shape, "C" if array.flags.c_contiguous else "F")
    if not copy:
        raise ArgumentError("out must be contiguous, in C or Fortran order")
    return np.ascontiguousarray(array), _arrays.whole_layout(shape)


def _as_descr(value: Any) -> Any:
    """NumPy's dtype description, whose pairs JSON turned into lists."""
    if isinstance(value, list):
        return [
            tuple(tuple(x) if isinstance(x, list) and i == 2 else _as_descr(x) for i, x in enumerate(field))
            for field in value
        ]
    return value
