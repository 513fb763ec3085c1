"""The way to the mpi engine: which of its modules fits the MPI that mpi4py runs on, and the communicator's handle for
it.

Two MPI libraries in one process would answer with rank -1 and no error, so the module's view of a communicator is
compared with mpi4py's before it is used.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import importlib
import operator
import sys
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from . import _arrays, _core
from ._mistakes import count, flag, one_of
from .errors import ArgumentError, DisagreementError, LongshoreError, MemoryLimitError, TransportError

T = TypeVar("T")

_SONAMES = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40", "abi": "libmpi_abi.so.1"}


def _mpi4py(what: str = "comm=") -> ModuleType:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ArgumentError(
            f"{what} needs mpi4py, which cannot be imported ({error}); pip install 'longshore[mpi]'"
        ) from None
    return MPI


def _check_running(MPI: ModuleType) -> None:
    if not MPI.Is_initialized():
        raise ArgumentError("MPI is not initialised: call MPI.Init() before")
    if MPI.Is_finalized():
        raise ArgumentError("MPI is finalised already")


def _bits(MPI: ModuleType, thing: Any) -> int:
    """The handle, an int or a pointer, that lies in an object of mpi4py's."""
    return int.from_bytes(ctypes.string_at(MPI._addressof(thing), MPI._sizeof(thing)).ljust(8, b"\0"), sys.byteorder)


def _family(MPI: ModuleType) -> str:
    """The MPI family that mpi4py is linked with: what an MPI_Comm
    is there, and which libraries this process has loaded."""
    handle_bytes = MPI._sizeof(MPI.Comm)
    if handle_bytes == 4:
        return "mpich"  # an int: MPICH and what shares its ABI
    try:
        with open("/proc/self/maps") as maps:
            loaded = maps.read()
    except OSError:
        loaded = ""
    if "/libmpi_abi.so" in loaded:
        return "abi"
    if "/libmpi.so.40" in loaded or "Open MPI" in MPI.Get_library_version():
        return "openmpi"
    raise TransportError(
        f"Longshore has no module for this MPI: {MPI.Get_library_version().splitlines()[0].strip()!r}; it knows "
        "MPICH's ABI (libmpi.so.12), Open MPI's (libmpi.so.40) and the standard one (libmpi_abi.so.1)"
    )


def mpi_family() -> str:
    """The MPI family that mpi4py runs on in this process: "mpich", "openmpi" or "abi", the standard one.

    For extension modules that, like the engine's own, are built once for each family (`longshore::mpi_<family>` of the
    CMake package): of two MPI libraries in one process both are wrong. Not collective. Raises ArgumentError without
    mpi4py, TransportError for an MPI that is none of these.
    """
    return _family(_mpi4py("mpi_family()"))


@functools.cache  # a process has one MPI: what was found stays true, and finding it takes a while
def _module(MPI: ModuleType) -> ModuleType:
    family = _family(MPI)
    try:
        return importlib.import_module(f"longshore._mpi_{family}")
    except ModuleNotFoundError:
        raise TransportError(
            f"this Longshore was built without its module for {family} ({_SONAMES[family]}), which mpi4py runs on; "
            f"build it where the headers of that MPI are"
        ) from None
    except ImportError as error:
        raise TransportError(f"the module for {family} cannot be loaded: {error}") from None


def _open(comm: Any) -> tuple[ModuleType, int]:
    """The module for a communicator of mpi4py's, and the communicator's handle as bits."""
    MPI = _mpi4py()
    if not isinstance(comm, MPI.Comm):
        raise ArgumentError(f"comm must be a communicator of mpi4py, not {type(comm).__name__}")
    _check_running(MPI)
    if comm == MPI.COMM_NULL:
        raise ArgumentError("the communicator is COMM_NULL")
    module = _module(MPI)
    bits = _bits(MPI, comm)
    seen, expected = module.comm_facts(bits), (comm.Get_rank(), comm.Get_size())
    if seen != expected:
        raise TransportError(
            f"mpi4py says rank {expected[0]} of {expected[1]}, Longshore's module {module.__name__} says "
            f"rank {seen[0]} of {seen[1]}: there are two MPI libraries in this process"
        )
    return module, bits


def rank_in(comm: Any) -> int:
    """This process's rank in what must be a communicator of mpi4py. Not collective."""
    _open(comm)
    return comm.Get_rank()


def together(comm: Any, work: Callable[[], T]) -> T:
    """Runs `work` on every rank; an exception on one becomes an error on all. Collective."""
    module, handle = _open(comm)
    try:
        result = work()
    except LongshoreError as error:
        module.agree(handle, type(error).__name__, str(error))
        raise  # not reached: agree() raises
    except MemoryError as error:
        module.agree(handle, MemoryLimitError.__name__, f"not enough memory: {error}")
        raise
    except Exception as error:
        module.agree(handle, ArgumentError.__name__, f"{type(error).__name__}: {error}")
        raise
    module.agree(handle, None, "")
    return result


def common_dtype(comm: Any, local_dtype: Callable[[], np.dtype | None], default: np.dtype | None = None) -> np.dtype:
    """The element type that all ranks which know one agree on. Collective."""

    def text() -> str:
        dtype = local_dtype()
        return "" if dtype is None else repr(np.lib.format.dtype_to_descr(_arrays.fixed_dtype(dtype)))

    mine = together(comm, text)
    module, handle = _open(comm)
    texts = module.gather_texts(handle, mine)
    ranks: dict[str, list[int]] = {}
    for rank, what in enumerate(texts):
        if what:
            ranks.setdefault(what, []).append(rank)
    if not ranks:
        if default is not None:
            return default
        raise ArgumentError("no rank has an array to move: nobody knows the element type")
    if len(ranks) > 1:
        told = "; ".join(
            f"{np.dtype(_descr(what))} on rank{'s' if len(who) > 1 else ''} {_few(who)}" for what, who in ranks.items()
        )
        raise DisagreementError(f"ranks have arrays of different dtypes: {told}")
    return np.lib.format.descr_to_dtype(_descr(next(iter(ranks))))


def _descr(text: str) -> Any:
    return ast.literal_eval(text)


def _few(ranks: list[int]) -> str:
    return ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")


def bind(
    plan: _core.MotionPlan,
    comm: Any,
    prepare: Callable[[], tuple[Mapping[int, np.ndarray], Mapping[int, np.ndarray], _core.Combine, int]],
    placement: str | None,
    node: str | None,
) -> _core.Mover:
    """A mover over MPI for this process's arrays, by layout rank. `prepare` gives source and destination arrays,
    the combination and the bytes allowed. Collective."""
    module, handle = _open(comm)

    def checked() -> tuple[list[Any], list[Any], Any]:
        sources, destinations, combine, max_mem = prepare()
        dtype = getattr(plan, "dtype", None)
        options = module.Options(
            combine,
            count(max_mem, "max_mem"),
            one_of(placement or "direct", "placement", ("direct", "wrap")),
            one_of(node or "auto", "node", _NODES),
            "" if dtype is None else str(np.lib.format.dtype_to_descr(dtype)),
        )
        return _parts(sources, module), _parts(destinations, module), options

    return _told(module.bind(plan, handle, *together(comm, checked)), comm)


def _told(mover: _core.Mover, comm: Any) -> _core.Mover:
    """The mover; a warning where this rank is the one that keeps memory from being shared."""
    if mover.obstacle.startswith(f"rank {comm.Get_rank()}: "):
        warnings.warn(f"memory is not shared as it might be, so data moves more slowly: {mover.obstacle}", stacklevel=4)
    return mover


def make_grids(blocks: _core.FloorPlan, comm: Any, itemsize: int, ghost: tuple[int, ...], order: str) -> _core.Grids:
    """The storage of this rank's blocks, where other ranks of its node can reach it. Not collective."""
    module, handle = _open(comm)
    return module.make_grids(blocks, handle, itemsize, ghost, order)


_NODES = ("auto", "direct", "ring", "messages")
_EXCHANGES = {"auto": "automatic", "p2p": "point_to_point", "neighborhood": "neighborhood", "alltoall": "all_to_all"}


def bind_blocks(
    plan: _core.BlockPlan,
    comm: Any,
    prepare: Callable[[], tuple[_core.Grids, _core.Grids, np.dtype, Mapping[str, Any]]],
    *,
    node: str | None,
    aggregate: bool | None,
    packet_bytes: int | None,
    preallocate: bool | None,
    exchange: str | None,
) -> _core.Mover:
    """A mover over MPI for a plan between blocks. `prepare` gives the grids, what their elements are, and
    those options that the threads engine has too. Collective."""
    module, handle = _open(comm)

    def checked() -> tuple[_core.Grids, _core.Grids, Any]:
        source, destination, dtype, options = prepare()
        return (
            source,
            destination,
            module.ExchangeOptions(
                **options,
                node=one_of(node or "auto", "node", _NODES),
                aggregate=flag(True if aggregate is None else aggregate, "aggregate"),
                packet_bytes=count(packet_bytes or 0, "packet_bytes"),
                preallocate=flag(True if preallocate is None else preallocate, "preallocate"),
                exchange=_EXCHANGES[one_of(exchange or "auto", "exchange", _EXCHANGES)],
                element=str(np.lib.format.dtype_to_descr(dtype)),
            ),
        )

    return _told(module.bind_blocks(plan, handle, *together(comm, checked)), comm)


def _parts(arrays: Mapping[int, np.ndarray], module: ModuleType) -> list[Any]:
    return [
        module.Part(count(rank, "a layout rank"), _arrays.local_array(a), _memory(a, module))
        for rank, a in arrays.items()
    ]


def _memory(array: Any, module: ModuleType) -> Any:
    """The Memory that an array lies in, if it was made here: the end of its chain of bases."""
    while array is not None:
        if isinstance(array, module.Memory):
            return array
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return None


def array_memory(size: int, comm: Any) -> np.ndarray | None:
    """Bytes that the other ranks of this node can reach, where the machine allows it. None where there are none. Not
    collective."""
    module, handle = _open(comm)
    return None if comm.Get_size() == 1 else np.frombuffer(module.array_memory(handle, size), np.uint8)


def _open_datatypes(function: str) -> tuple[ModuleType, ModuleType]:
    """mpi4py's MPI, running, and the module for it."""
    MPI = _mpi4py(function)
    _check_running(MPI)
    return MPI, _open(MPI.COMM_SELF)[0]


def _datatype_bits(MPI: ModuleType, datatype: Any, name: str) -> int:
    if not isinstance(datatype, MPI.Datatype):
        raise ArgumentError(f"{name} must be a datatype of mpi4py, not {type(datatype).__name__}")
    return _bits(MPI, datatype)


def _object_of(MPI: ModuleType, thing: Any, bits: int) -> Any:
    """An empty object of mpi4py's with this handle in it."""
    handle = bits.to_bytes(8, sys.byteorder)[: MPI._sizeof(thing)]
    ctypes.memmove(MPI._addressof(thing), handle, len(handle))
    return thing


def from_mpi_datatype(datatype: Any, count: int, destination: Any, destination_count: int) -> _core.AddressRelation:
    """`longshore.from_mpi_datatype`."""
    MPI, module = _open_datatypes("from_mpi_datatype")
    source = _datatype_bits(MPI, datatype, "datatype")
    if destination is None:
        return module.from_datatype(source, operator.index(count))
    to = _datatype_bits(MPI, destination, "destination")
    return module.from_datatypes(source, operator.index(count), to, operator.index(destination_count))


def to_mpi_datatype(relation: _core.AddressRelation, side: str) -> Any:
    """`longshore.to_mpi_datatype`."""
    MPI, module = _open_datatypes("to_mpi_datatype")
    if not isinstance(relation, _core.AddressRelation):
        raise ArgumentError(f"relation must be an AddressRelation, not {type(relation).__name__}")
    return _object_of(MPI, MPI.Datatype(), module.to_datatype(relation, side))


def rank_map_of(comm_or_group: Any, parent: Any) -> _core.RankMap:
    """`longshore.ranks.rank_map_of`."""
    MPI = _mpi4py("rank_map_of")
    if isinstance(comm_or_group, MPI.Group):
        module, of = _open(parent)
        return module.rank_map_of_group(_bits(MPI, comm_or_group), of)
    module, comm = _open(comm_or_group)
    # A parent that is none is an error of all: the module sees to that.
    return module.rank_map_of_comm(comm, _bits(MPI, parent if isinstance(parent, MPI.Comm) else MPI.COMM_NULL))


def to_group(map: _core.RankMap, parent: Any) -> Any:
    """`longshore.ranks.to_group`."""
    module, comm = _open(parent)
    MPI = _mpi4py()
    return _object_of(MPI, MPI.Group(), module.to_group(map, comm))


def create_comm(map: _core.RankMap, parent: Any, tag: int) -> Any:
    """`longshore.ranks.create_comm`."""
    module, comm = _open(parent)
    MPI = _mpi4py()
    return _object_of(MPI, MPI.Intracomm(), module.create_communicator(map, comm, operator.index(tag)))


def split(parent: Any, colour: int, key: int) -> _core.RankMap:
    """`longshore.ranks.split`."""
    module, comm = _open(parent)
    return module.split(comm, number_or_none(colour), number_or_none(key))


def number_or_none(value: Any, bits: int = 64) -> int | None:
    """An integer of so many bits. None of what is none: the modules make an error of all ranks of it."""
    try:
        number = operator.index(value)
    except TypeError:
        return None
    return number if -(1 << bits - 1) < number < 1 << bits - 1 else None


def node_aware_order(comm: Any) -> _core.RankMap:
    """`longshore.ranks.node_aware_order`."""
    module, handle = _open(comm)
    return module.node_aware_order(handle)
