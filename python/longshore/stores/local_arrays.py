"""Arrays over ranks, loaded from stores of any format and saved to them: `load` and `save`.

A store's chunk grid is cut into windows of whole chunks, and a window into a piece of whole chunks for each process.
Every process reads and decodes its own piece, and one plan carries the pieces to where the ranks want them; saving goes
the other way. So each chunk is read or written once, by one process, however the array lies over the ranks. What lies
in a file in long runs as a rank has it is read by that rank, to where it belongs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from .. import _core, _mpi
from .._api import empty, plan
from .._arrays import check_unmasked
from .._core import Layout
from .._mistakes import check, flag
from .._words import short, size_in_bytes
from .._xarray import XArray
from ..errors import ArgumentError, ArgumentTypeError, DTypeError, LayoutError, ShapeError, StoreError
from . import blocks, memory, places
from .array import ArrayFacts, ArrayReader, ArrayWriter, Grid, GroupFacts, Index, Tree, together, without_holes
from .chunk_windows import ChunkWindow, Cut
from .chunk_words import NO_CHUNKS, Chunks, extents_of, parse_chunks
from .collect import Collector, Put
from .do_all import do_all
from .makers import maker_of, temporary_array
from .moved_array import check_has, check_names, check_without
from .publish import Publication
from .publish_url import publication_of
from .rows import Point, has_rows, rows_of
from .team import MpiTeam, Team, team_of
from .worker_threads import WorkerThreads
from .zarr_types import bare_dtype, bare_element


def load(
    source: Any,
    destination: Layout | str | XArray,
    *,
    comm: Any = None,
    threads: int | None = None,
    max_mem: int | str | None = None,
    **options: Any,
) -> Any:
    """Loads an array of a store at a path or a URL, of any format that `open` knows, as a layout has it over the ranks.

    With an mpi4py communicator (collective) the result is this rank's local array, None where the layout gives it
    nothing; without one it has an array for each of the layout's ranks, in their order. Elements of a type that NumPy
    has not (bfloat16, float8) are ml_dtypes' where that is installed, else bytes. The only tensor of a safetensors file
    needs no name. The layout may be a text, such
    as "(BLOCK, *) on 4", and no `ld=`. Or `destination` is an XArray whose blocks' bounding region has the array's
    shape: its blocks are filled, without their ghost cells, and nothing is returned. From a plain file, or with any of
    the further options of `bind` (`dataset`, `offset`, `domain`, `ghost`, ...), it is loaded by that.

    Every chunk is read and decoded once, on `threads` threads of one process (None: as many as there are for each).
    `max_mem`: bytes (or "256MiB") that a process may take beside its local arrays.

    Raises ArgumentError, ShapeError, DTypeError, LayoutError, StoreError and MemoryLimitError, with `comm` on every
    rank alike, and DisagreementError where ranks ask for different things.

    >>> import numpy as np
    >>> np.save("a.npy", np.arange(12.0).reshape(4, 3))
    >>> load("a.npy", "(CYCLIC, *) on 2")[1][:, 0]
    array([3., 9.])
    """
    team = _team(comm)
    by_bind = isinstance(destination, XArray) and bool(options or _is_of_bind(source))
    team.same(f"loading {'by bind' if by_bind else 'chunk by chunk'}")
    if by_bind and isinstance(destination, XArray):
        return blocks.bind(source, destination, comm=comm, threads=threads, max_mem=max_mem, **options)()
    with contextlib.ExitStack() as held:

        def prepare() -> tuple[ArrayReader, _Side, Cut, int]:
            _no_options(options)
            workers, limit = _limits(threads, max_mem, team)
            place = places.parse_place(source, destination=False)
            store = places.open_reader(place)
            held.callback(store.close)
            path, facts = _only_array(store.tree, place)
            side = _loaded(destination, facts, team, place.text)
            reader = store.array(path)
            beside = reader.held_bytes + workers * reader.thread_bytes
            return reader, side, Cut(reader.grid, side.dtype.itemsize, team.size, limit, beside), workers

        reader, side, cut, workers = team.together(prepare)
        team.same(f"loading {reader.where} as {side}, {cut}")
        fill = _filled(reader.facts)
        with WorkerThreads(workers, "longshore-load") as pool:
            if (rows := side.rows(reader)) is not None:
                team.together(lambda: do_all(pool, lambda box: reader.read_into(*box), rows, 2 * workers))
            for window in cut.windows() if rows is None else ():
                piece = np.empty(window.extents_of(team.rank), reader.facts.dtype)

                def read(indices: list[Index], window: ChunkWindow = window, piece: np.ndarray = piece) -> None:
                    for index, stored in zip(indices, reader.read_each(indices)):
                        place = window.within(index, reader.grid, team.rank)
                        piece[place] = fill if stored is None else reader.decode(index, stored)

                def read_all(window: ChunkWindow = window, read: Callable[[list[Index]], None] = read) -> None:
                    do_all(pool, read, together(reader, window.indices(reader.grid, team.rank)), 2 * workers)

                team.together(read_all)
                side.take(window, piece.view(side.dtype))
        team.together(reader.check)
    return side.result()


def save(
    source: Any,
    layout: Any,
    destination: Any = None,
    *,
    comm: Any = None,
    chunks: Chunks | None = None,
    shards: Chunks | None = None,
    codecs: Sequence[str] | None = None,
    zarr_format: int | None = None,
    names: Sequence[str] | None = None,
    attributes: Mapping[str, Any] | None = None,
    force: bool = False,
    threads: int | None = None,
    max_mem: int | str | None = None,
    **options: Any,
) -> None:
    """Saves an array that lies over ranks as a layout has it to a store of any format, whole or not at all.

    `source` is what `load` gives: this rank's local array with an mpi4py communicator (collective; None where the
    layout gives it nothing), else an array for each of the layout's ranks. Or an XArray, which needs no layout,
    `save(u, destination)`: saved is what its blocks own of their bounding region, and every point must belong to one
    block. To a plain file, or with any of the further options of `bind`, it is saved by that.

    `chunks`, `shards`, `codecs`, `zarr_format`, `force`, `threads` and `max_mem` are `move`'s; `names` are those of the
    dimensions, `attributes` the array's. A folder of shards has the layout itself. Zarr is written by all processes,
    each whole chunks, or shards; other formats, and what goes to a URL, by the first, to which the others send what
    they have encoded.
    `move` says how an output appears at a URL.

    Raises ArgumentError, ShapeError, DTypeError, LayoutError, StoreError and MemoryLimitError, with `comm` on every
    rank alike, and DisagreementError where ranks ask for different things; then nothing has been published.

    >>> import numpy as np
    >>> rows = Layout("(BLOCK, *) on 2", (4, 3))
    >>> save([np.zeros((2, 3)), np.ones((2, 3))], rows, "b.npy")
    >>> np.load("b.npy")[:, 0]
    array([0., 0., 1., 1.])
    """
    if destination is None:
        layout, destination = None, layout
    team = _team(comm)
    of_blocks = isinstance(source, XArray)
    with_words = any(word is not None for word in (chunks, shards, codecs, zarr_format, names, attributes))
    by_bind = of_blocks and not with_words and bool(options or _is_of_bind(destination))
    team.same(f"saving {'an XArray' if of_blocks else 'local arrays'} {'by bind' if by_bind else 'chunk by chunk'}")
    if by_bind:
        return blocks.bind(source, destination, comm=comm, force=force, threads=threads, max_mem=max_mem, **options)()
    dtypes = _dtypes(source, team)
    with contextlib.ExitStack() as held:

        def prepare() -> tuple[Any, ArrayFacts, Any, Publication, _Side, Cut, int, int]:
            _no_options(options)
            workers, limit = _limits(threads, max_mem, team)
            flag(force, "force")
            check("zarr_format", zarr_format, "int | None")
            if zarr_format not in (None, 2, 3):
                raise ArgumentError(f"zarr_format is {zarr_format}; it can be 2 or 3")
            side = _saved(source, layout, dtypes, team)
            place = places.parse_place(destination, destination=True, to=layout)
            to = layout if place.format == "shards" else None
            if place.format == "shards" and to is None:
                raise ArgumentError(f"{place.text} is a folder of shards, and XArrays have no layout; name a file")
            maker = maker_of(place, to, zarr_format)
            check_has(maker, chunks, shards)
            if parse_chunks(chunks) == NO_CHUNKS:
                check_without(maker, codecs, place.text)
            facts = _wanted(side, place.text, chunks, shards, codecs, names, attributes)
            asked = tuple(codecs) if codecs is not None else None
            facts = maker.fit(facts, False, asked)
            lost = maker.losses(facts)
            if lost:
                raise StoreError(
                    f"{maker.words} cannot hold {'; '.join(lost[:8])}; leave it out, or name another format"
                )
            grid = maker.grid(facts)
            whole = Grid(grid.shape, facts.shards) if facts.shards is not None else grid
            writers = team.size if place.format == "zarr" and not place.is_url else 1
            cut = Cut(whole, side.dtype.itemsize, team.size if facts.codecs else writers, limit)
            publication = publication_of(place, folder=maker.folder, force=force)
            publication.check()
            publication.check_space(facts.nbytes if not facts.codecs else 0)
            return (place, maker), facts, grid, publication, side, cut, writers, workers

        (place, maker), facts, grid, publication, side, cut, writers, workers = team.together(prepare)
        words = [
            maker.words,
            getattr(maker, "zarr_format", ""),
            cut,
            facts.chunks,
            facts.shards,
            facts.codecs,
            facts.names,
        ]
        of_attributes = hashlib.sha256(repr(sorted(facts.attributes.items())).encode()).hexdigest()[:16]
        told = ", ".join(map(str, words))
        team.same(f"saving {side} to {publication.called}, {told} (digest of attributes {of_attributes})")
        held.enter_context(publication)

        def begin() -> str:
            publication.remove_stale()
            return publication.create()

        hidden = team.first(begin)
        tree: Tree = facts
        for name in reversed([word for word in place.created.split("/") if word]):
            tree = GroupFacts({name: tree})

        def open_writer(resume: bool) -> Any:
            writer = maker.open(hidden, resume)
            held.callback(writer.close)
            writer.create(tree)
            return writer

        writer: Any = team.together(lambda: open_writer(False) if team.rank == 0 else None)
        if writers > 1:
            writer = team.together(lambda: open_writer(True) if team.rank > 0 else writer)

        def open_target() -> ArrayWriter | None:
            if writer is not None:
                return writer.array(place.created)
            return held.enter_context(temporary_array(maker, facts)) if cut.writers > 1 else None

        target: ArrayWriter | None = team.together(open_target)

        def write(index: Index, stored: Any) -> None:
            assert target is not None
            target.write(index, stored)

        collector = held.enter_context(Collector(team, write)) if writers < cut.writers else None
        fill = _filled(facts)
        with WorkerThreads(workers, "longshore-save") as pool:
            for window in cut.windows():
                piece = np.empty(window.extents_of(team.rank), side.dtype)
                side.give(window, piece)
                piece = piece.view(facts.dtype)

                def encode(index: Index, window: ChunkWindow = window, piece: np.ndarray = piece) -> Any:
                    assert target is not None
                    own = piece[window.within(index, grid, team.rank)]
                    if own.shape != grid.chunks:
                        whole = np.full(grid.chunks, fill, piece.dtype)
                        whole[tuple(map(slice, own.shape))] = own
                        own = whole
                    stored = without_holes(np.ascontiguousarray(own))
                    return target.encode(index, stored, at_once=collector is None)

                def work(put: Put, window: ChunkWindow = window, encode: Any = encode) -> None:
                    mine = window.indices(grid, team.rank)
                    do_all(pool, lambda index: put(index, encode(index)), mine, 2 * workers)

                team.together(lambda: work(write) if collector is None else collector.run(work))

        if writers > 1:
            team.together(lambda: writer.sync() if team.rank > 0 else None)

        def end() -> None:
            writer.finish()
            publication.publish()
            maker.published()

        team.first(end)


# -- how the array lies over the ranks --------------------------------------------------------------------------------


class _Side(Protocol):
    """The ranks' arrays, from which pieces of windows are made, or that are filled from them."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def rows(self, reader: ArrayReader) -> Iterator[tuple[Point, np.ndarray]] | None:
        """Where all that this process wants lies in the reader's file in long runs, and here as it does there: where
        boxes begin that are read at once, and the arrays to read them into. Else None, on every process."""

    def take(self, window: ChunkWindow, piece: np.ndarray) -> None:
        """Collective. Brings the window's elements here, from each process's piece."""

    def give(self, window: ChunkWindow, piece: np.ndarray) -> None:
        """Collective. Brings the window's elements to each process's piece."""

    def result(self) -> Any:
        """What has been loaded, for the caller."""


class _LocalArrays:
    """Arrays of a layout's ranks: of this process's rank with a communicator, else of all."""

    def __init__(self, layout: Layout, dtype: np.dtype, arrays: dict[int, np.ndarray], team: Team) -> None:
        self.shape, self.dtype = layout.shape, dtype
        self._layout, self._arrays, self._team = layout, arrays, team
        # To the engine an element is its bytes, so that any type of fixed size moves.
        self._raw = np.dtype((np.void, dtype.itemsize))

    def __str__(self) -> str:
        return f"{self.dtype} in {self._layout}"

    def rows(self, reader: ArrayReader) -> Iterator[tuple[Point, np.ndarray]] | None:
        if not has_rows(self._layout, reader):
            return None
        return (
            (first, array[index].view(reader.facts.dtype or self.dtype))
            for rank, array in self._arrays.items()
            for first, index in rows_of(self._layout, rank, self.dtype.itemsize)
        )

    def take(self, window: ChunkWindow, piece: np.ndarray) -> None:
        parts = self._parts(window)
        layout = self._layout.window(window.lower, window.upper)
        self._carry(
            window.layout, layout, {self._team.rank: piece}, {rank: dense for rank, (_, dense) in parts.items()}
        )
        for own, dense in parts.values():
            if own is not dense:
                own[...] = dense

    def give(self, window: ChunkWindow, piece: np.ndarray) -> None:
        parts = self._parts(window)
        for own, dense in parts.values():
            if own is not dense:
                dense[...] = own
        layout = self._layout.window(window.lower, window.upper)
        self._carry(
            layout, window.layout, {rank: dense for rank, (_, dense) in parts.items()}, {self._team.rank: piece}
        )

    def _parts(self, window: ChunkWindow) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Of each rank here what it has of a window: in its array, and dense."""
        layout, order = self._layout.window(window.lower, window.upper), self._layout.order
        parts = {}
        for rank, array in self._arrays.items():
            shape = layout.local_shape(rank)
            start = self._layout.local_start(rank, window.lower)
            own = array[tuple(slice(a, a + n) for a, n in zip(start, shape))]
            dense = own.flags.c_contiguous if order == "C" else own.flags.f_contiguous
            parts[rank] = own, own if dense else np.empty(shape, self.dtype, order=order)
        return parts

    def _carry(
        self, source: Layout, target: Layout, sources: dict[int, np.ndarray], targets: dict[int, np.ndarray]
    ) -> None:
        made = plan(source, target, self._raw)
        sides = []
        for layout, arrays in ((source, sources), (target, targets)):
            has = {rank: array.view(self._raw) for rank, array in arrays.items() if rank in layout.ranks}
            sides.append(next(iter(has.values()), None) if self._team.comm is not None else has)
        made.bind(*sides, **_ways(self._team))()

    def result(self) -> Any:
        return list(self._arrays.values()) if self._team.comm is None else next(iter(self._arrays.values()), None)


class _Blocks:
    """The blocks of an XArray."""

    def __init__(self, array: XArray, team: Team) -> None:
        region = array.blocks.bounding
        self.shape, self.dtype = region.shape, array.dtype
        self._array, self._team, self._origin = array, team, region.lower

    def __str__(self) -> str:
        return f"{self.dtype} on {self._array.blocks} (digest {self._array.blocks.digest:x})"

    def rows(self, reader: ArrayReader) -> None:
        return None

    def take(self, window: ChunkWindow, piece: np.ndarray) -> None:
        pieces, own = self._pieces(window, piece)
        made = _core.BlockPlan.copy_between(pieces, self._array.blocks, rank=self._array.rank)
        made.bind(own, self._array, **_ways(self._team))()

    def give(self, window: ChunkWindow, piece: np.ndarray) -> None:
        pieces, own = self._pieces(window, piece)
        made = _core.BlockPlan.copy_between(self._array.blocks, pieces, rank=self._array.rank)
        made.bind(self._array, own, **_ways(self._team))()

    def _pieces(self, window: ChunkWindow, piece: np.ndarray) -> tuple[_core.FloorPlan, list[np.ndarray]]:
        """Every process's piece as a block, and this one's in memory."""
        regions, ranks = [], []
        for process in range(window.processes):
            lower, upper = window.box(process)
            if all(a < b for a, b in zip(lower, upper)):
                regions.append(
                    _core.Region(*([o + x for o, x in zip(self._origin, corner)] for corner in (lower, upper)))
                )
                ranks.append(process)
        return _core.FloorPlan(regions, ranks), [piece] if self._team.rank in ranks else []

    def result(self) -> None:
        return None


def _ways(team: Team) -> dict[str, Any]:
    return {} if team.comm is None else {"comm": team.comm, "preallocate": False}


def _loaded(over: Any, facts: ArrayFacts, team: Team, where: str) -> _Side:
    """New arrays of a layout's ranks, or the XArray that is filled."""
    shape, stored = facts.shape, facts.dtype
    if stored is None or stored.hasobject:
        raise DTypeError(f"{where} has elements of a type that cannot be moved")
    dtype = bare_dtype(facts.type_name) or stored
    if isinstance(over, XArray):
        side = _Blocks(_of_team(over, team), team)
        if shape != side.shape:
            raise ShapeError(f"the blocks' bounding region has shape {side.shape}, {where} has {shape}")
        if side.dtype not in (dtype, stored):
            raise DTypeError(f"{where} has elements of dtype {dtype}, the XArray has {side.dtype}")
        return side
    if not isinstance(over, (Layout, str)):
        raise ArgumentError(f"{where} is loaded as a Layout, its text or an XArray has it, not {type(over).__name__}")
    layout = over if isinstance(over, Layout) else Layout(over, shape)
    if layout.shape != shape:
        raise ShapeError(f"the layout has shape {layout.shape}, {where} has {shape}")
    return _LocalArrays(layout, dtype, {rank: empty(layout, dtype, rank=rank) for rank in _ranks(layout, team)}, team)


def _dtypes(source: Any, team: Team) -> set[np.dtype]:
    """Collective. Of all ranks' arrays."""
    if isinstance(source, XArray):
        return {source.dtype}
    told = team.together(lambda: {array.dtype for array in _given(source, team).values()})
    return set().union(*team.comm.allgather(told)) if team.comm is not None else told


def _given(source: Any, team: Team) -> dict[Any, np.ndarray]:
    """The local arrays that the caller has here, by rank; those of a sequence by their place in it."""
    if team.comm is not None and not isinstance(source, Mapping):
        source = {team.rank: source}
    if not isinstance(source, Iterable):
        raise ArgumentTypeError(f"the source is {short(source)}; give an XArray, or one array for each of the ranks")
    items = source.items() if isinstance(source, Mapping) else enumerate(source)
    given = {rank: array for rank, array in items if array is not None}
    for array in given.values():
        check_unmasked(array)
    return {rank: np.asarray(array) for rank, array in given.items()}


def _saved(source: Any, layout: Any, dtypes: set[np.dtype], team: Team) -> _Side:
    """The arrays that the caller has."""
    if isinstance(source, XArray):
        if layout is not None:
            raise ArgumentError("an XArray knows its blocks: give no layout with it")
        blocks.check_cover(source, source.blocks.bounding)
        return _Blocks(_of_team(source, team), team)
    if not isinstance(layout, Layout):
        raise ArgumentError(
            f"local arrays are saved with their Layout, which knows the whole shape, not with {type(layout).__name__}"
        )
    arrays, ranks = _given(source, team), _ranks(layout, team)
    if team.comm is None and not isinstance(source, Mapping):  # in the order of the layout's ranks
        arrays = {ranks[k] if k < len(ranks) else f"number {k}": array for k, array in arrays.items()}
    if len(arrays) != len(ranks):
        raise ArgumentError(f"{layout} has {len(ranks)} arrays here, and {len(arrays)} are given")
    if missing := [rank for rank in ranks if rank not in arrays]:
        raise ArgumentError(f"there is no array of rank {missing[0]} of {layout}, but of {short(list(arrays))}")
    if len(dtypes) != 1 or next(iter(dtypes)).hasobject:
        raise DTypeError(
            f"the ranks' arrays have the dtypes {sorted(map(str, dtypes))}; they must have one, of no objects"
        )
    for rank, array in arrays.items():
        if array.shape != layout.local_shape(rank):
            raise ShapeError(
                f"rank {rank}'s array has shape {array.shape}, {layout} gives it {layout.local_shape(rank)}"
            )
    return _LocalArrays(layout, next(iter(dtypes)), {rank: arrays[rank] for rank in ranks}, team)


def _ranks(layout: Layout, team: Team) -> list[int]:
    """The ranks of a layout whose arrays are here."""
    if layout.ld:
        raise LayoutError("ld= pads arrays in memory, and a window of one is not where the layout says: leave it out")
    if team.comm is not None and layout.world_size > team.size:
        raise ArgumentError(f"{layout} is for {layout.world_size} ranks, the communicator has {team.size}")
    return [rank for rank in layout.ranks if team.comm is None or rank == team.rank]


def _of_team(array: XArray, team: Team) -> XArray:
    if (array.rank is None) != (team.comm is None):
        raise ArgumentError("an XArray of one rank is loaded and saved with the comm= it was made with, others without")
    return array


def _team(comm: Any) -> Team:
    """All processes of a communicator, be it of one, else this process."""
    if comm is None:
        return team_of(None)
    _mpi.open_comm(comm)
    return MpiTeam(comm)


def _is_of_bind(place: Any) -> bool:
    """Whether an XArray goes to or comes from this by `bind`: a plain file with one array, or a dataset told apart."""
    if not isinstance(place, (str, os.PathLike)):
        return False
    text = os.fspath(place)
    if not isinstance(text, str) or "::" in text or "://" in text or os.path.isdir(text):
        return False
    _, within, format = places.by_name(text.rstrip("/"))
    return not within and format in (None, "npy", "hdf5")


def _no_options(options: Mapping[str, Any]) -> None:
    if options:
        raise ArgumentError(f"{', '.join(options)}: not for arrays of layouts, and with XArrays not beside chunks")


def _limits(threads: int | None, max_mem: int | str | None, team: Team) -> tuple[int, int | None]:
    check("threads", threads, "int | None")
    if threads is not None and threads < 1:
        raise ArgumentError(f"threads is {threads}; it must be at least 1")
    each = min(16, max(1, memory.usable_processors() // team.size)) if threads is None else threads
    return each, None if max_mem is None else size_in_bytes(max_mem)


# -- small helpers ----------------------------------------------------------------------------------------------------


def _filled(facts: ArrayFacts) -> np.generic:
    """The element of chunks that are not there."""
    assert facts.dtype is not None
    return np.frombuffer(facts.fill or bytes(facts.dtype.itemsize), facts.dtype)[0]


def _only_array(tree: Tree, place: places.Place) -> tuple[str, ArrayFacts]:
    """The array that is meant, and its path: of a checkpoint also its only tensor, which has a name in any case."""
    if isinstance(tree, ArrayFacts):
        return "", tree
    arrays = list(tree.arrays())
    if len(arrays) == 1 and place.format == "safetensors":
        return arrays[0]
    names = ", ".join([name for name, _ in arrays[:8]])
    there = f"name one of its arrays: {names}{', ...' if len(arrays) > 8 else ''}" if arrays else "it has no array"
    raise ArgumentError(f"{place.text} is a group; {there}")


def _wanted(
    side: _Side,
    where: str,
    chunks: Chunks | None,
    shards: Chunks | None,
    codecs: Sequence[str] | None,
    names: Sequence[str] | None,
    attributes: Mapping[str, Any] | None,
) -> ArrayFacts:
    """What is to be made of the array."""
    shape = side.shape
    if isinstance(codecs, str):
        raise ArgumentError(f"codecs is the text {codecs!r}; give a sequence of texts")
    check("names", names, "Sequence[str] | None")
    if attributes is not None and not isinstance(attributes, Mapping):
        raise ArgumentTypeError(f"attributes must be a mapping of names to values, not {type(attributes).__name__}")
    for name in attributes or ():
        if not isinstance(name, str):
            raise ArgumentTypeError(f"an attribute is called {short(name)}; its name must be text")
    if names is not None and len(tuple(names)) != len(shape):
        raise ArgumentError(f"{len(tuple(names))} names are given, the array has {len(shape)} dimensions")
    named = None if names is None else tuple(names)
    check_names(named or (), "the array has no", chunks, shards)
    wanted = extents_of(chunks, shape, named, where, None)
    element = bare_element(side.dtype)
    return ArrayFacts(
        shape,
        element.dtype,
        chunks=None if wanted is None else tuple(max(1, min(c, n)) for c, n in zip(wanted, shape)),
        shards=extents_of(shards, shape, named, where, None),
        names=named,
        attributes=dict(attributes or {}),
        type_name=element.name,
    )
