"""The way to the mpi engine: which of its modules fits the MPI that mpi4py runs on, and the communicator's handle for
it.

Two MPI libraries in one process would answer with rank -1 and no error, so the module's view of a communicator is
compared with mpi4py's before it is used.
"""

from __future__ import annotations

import ast
import atexit
import ctypes
import functools
import importlib
import operator
import sys
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from . import _arrays, _core
from .errors import (
    ArgumentError,
    DisagreementError,
    LongshoreError,
    MemoryLimitError,
    NotInstalledError,
    TransportError,
)

T = TypeVar("T")

_SONAMES = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40", "abi": "libmpi_abi.so.1"}


def _mpi4py(what: str = "comm=") -> ModuleType:
    if (loaded := sys.modules.get("mpi4py.MPI")) is not None:  # an import statement takes ten times as long
        return loaded
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise NotInstalledError(
            f"{what} needs mpi4py, which cannot be imported ({error}); pip install 'longshore[mpi]'"
        ) from None
    return MPI


def _check_running(MPI: ModuleType) -> None:
    if not MPI.Is_initialized():
        raise ArgumentError("MPI is not initialised: call MPI.Init() before")
    if MPI.Is_finalized():
        raise ArgumentError("MPI is finalised already")


def _bits(thing: Any) -> int:
    """The handle, an int or a pointer, that lies in an object of mpi4py's."""
    return thing.handle & 2**64 - 1


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


def open_comm(comm: Any) -> tuple[ModuleType, int]:
    """The module for a communicator of mpi4py's, and the communicator's handle as bits."""
    MPI = _mpi4py()
    if not isinstance(comm, MPI.Comm):
        raise ArgumentError(f"comm must be a communicator of mpi4py, not {type(comm).__name__}")
    _check_running(MPI)
    if comm == MPI.COMM_NULL:
        raise ArgumentError("the communicator is COMM_NULL")
    module = _module(MPI)
    bits = _bits(comm)
    seen, expected = module.comm_facts(bits), (comm.Get_rank(), comm.Get_size())
    if seen != expected:
        raise TransportError(
            f"mpi4py says rank {expected[0]} of {expected[1]}, Longshore's module {module.__name__} says "
            f"rank {seen[0]} of {seen[1]}: there are two MPI libraries in this process"
        )
    return module, bits


def rank_in(comm: Any) -> int:
    """This process's rank in what must be a communicator of mpi4py. Not collective."""
    open_comm(comm)
    return comm.Get_rank()


def _attempt(work: Callable[..., T], *given: Any) -> tuple[T | None, str | None, str]:
    """What `work` makes of what it is given, or the class and the words of the error that it ended with."""
    try:
        return work(*given), None, ""
    except LongshoreError as error:
        return None, type(error).__name__, str(error)
    except MemoryError as error:
        return None, MemoryLimitError.__name__, f"not enough memory: {error}"
    except Exception as error:
        return None, ArgumentError.__name__, f"{type(error).__name__}: {error}"


def together(comm: Any, work: Callable[[], T]) -> T:
    """Runs `work` on every rank; an exception on one becomes an error on all. Collective."""
    module, handle = open_comm(comm)
    result, *failure = _attempt(work)
    module.agree(handle, *failure)
    return result  # type: ignore[return-value]  # agree() raises where there is none


def texts_of(comm: Any, work: Callable[[], str]) -> list[str]:
    """What `work` returns on every rank, by rank; an exception on one becomes an error on all. Collective."""
    module, handle = open_comm(comm)
    mine, *failure = _attempt(work)
    texts = module.gather_words(handle, mine or "", *failure)
    return texts * comm.Get_size() if len(texts) == 1 else texts


def kept_with(comm: Any, make: Callable[[Any], T]) -> T:
    """What is kept with a communicator of mpi4py's under `make`, which makes it of the communicator where there is
    nothing; it is gone with the communicator. Not collective."""
    _check_running(_mpi4py())  # else MPI would end the process
    key = _attribute_key(make)
    try:
        kept = comm.Get_attr(key)
    except Exception:
        open_comm(comm)  # says what is wrong with it
        raise
    if kept is None:
        kept = make(comm)
        comm.Set_attr(key, kept)
    return kept


@functools.lru_cache
def _attribute_key(_: Any) -> int:
    return _mpi4py().Comm.Create_keyval()


def common_dtype(comm: Any, local_dtype: Callable[[], np.dtype | None]) -> np.dtype:
    """The element type that all ranks which know one agree on. Collective."""
    return common_dtypes(comm, lambda: [local_dtype()])[0]


def common_dtypes(
    comm: Any, local_dtypes: Callable[[], Sequence[np.dtype | None]], default: np.dtype | None = None
) -> list[np.dtype]:
    """The same of several things; `default` for those of which no rank knows. Collective."""
    module, handle = open_comm(comm)

    def text() -> str:
        return "\n".join(
            "" if dtype is None else repr(np.lib.format.dtype_to_descr(_arrays.fixed_dtype(dtype)))
            for dtype in local_dtypes()
        )

    mine, *failure = _attempt(text)
    texts = module.gather_words(handle, mine or "", *failure)
    if len(texts) == 1:  # all say the same
        return [_known(_dtype(what), default) for what in texts[0].split("\n")]
    said = [words.split("\n") for words in texts]
    if len({len(words) for words in said}) > 1:
        raise DisagreementError(f"ranks move {' or '.join(str(n) for n in sorted({len(w) for w in said}))} fields")
    return [_known(_agreed([words[k] for words in said]), default) for k in range(len(said[0]))]


def _known(dtype: np.dtype | None, default: np.dtype | None) -> np.dtype:
    if (known := dtype or default) is None:
        raise ArgumentError("no rank has an array to move: nobody knows the element type")
    return known


def _agreed(texts: Sequence[str]) -> np.dtype | None:
    ranks: dict[str, list[int]] = {}
    for rank, what in enumerate(texts):
        if what:
            ranks.setdefault(what, []).append(rank)
    if len(ranks) > 1:
        told = "; ".join(
            f"{np.dtype(_descr(what))} on rank{'s' if len(who) > 1 else ''} {_few(who)}" for what, who in ranks.items()
        )
        raise DisagreementError(f"ranks have arrays of different dtypes: {told}")
    return _dtype(next(iter(ranks), ""))


@functools.lru_cache(256)  # of texts, which say everything
def _dtype(text: str) -> np.dtype | None:
    return np.lib.format.descr_to_dtype(_descr(text)) if text else None


def _descr(text: str) -> Any:
    return ast.literal_eval(text)


def _few(ranks: list[int]) -> str:
    return ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")


def bind(
    comm: Any,
    prepare: Callable[[list[np.dtype] | None], tuple[list[_core.Field], dict[str, Any]] | None],
    local_dtypes: Callable[[], Sequence[np.dtype | None]],
    default: np.dtype | None,
) -> _core.Mover:
    """A mover over MPI of the fields that `prepare` gives, with its options. Collective.

    `prepare` gives None on a rank that does not know their element types. Only then all tell each other what they know,
    and it is called once more, with that; `default` stands for what nobody knows."""
    module, handle = open_comm(comm)

    def attempt(told: list[np.dtype] | None) -> _core.Mover | None:
        made, failure, words = _attempt(prepare, told)
        if made is None and failure is None:
            return module.postpone_bind(handle)
        fields, options = made if made is not None else ([], {})
        return module.bind(handle, fields, failure, words, **options)

    mover = attempt(None)
    if mover is None:
        mover = attempt(common_dtypes(comm, local_dtypes, default))
    assert mover is not None  # now everybody knows
    return _told(mover, comm)


def _told(mover: _core.Mover, comm: Any) -> _core.Mover:
    """The mover; a warning where this rank is the one that keeps memory from being shared."""
    if mover.obstacle.startswith(f"rank {comm.Get_rank()}: "):
        warnings.warn(f"memory is not shared as it might be, so data moves more slowly: {mover.obstacle}", stacklevel=6)
    return mover


def open_window(
    comm: Any, pieces: int, arrays: dict[int, np.ndarray], dtype: np.dtype, node: str, progress: str, what: str
) -> _core.OpenWindow:
    """A window of so many arrays, of which these are here; `what` is compared. Collective."""
    module, handle = open_comm(comm)
    _stop_threads_before_finalize(module)
    mine, *failure = _attempt(lambda: _core.Parts(arrays))
    element = f"{dtype} {what}".strip()
    return module.open_window(
        handle, pieces, mine or _core.Parts({}), dtype.itemsize, node, progress, element, *failure
    )


@functools.cache
def _stop_threads_before_finalize(module: ModuleType) -> None:
    """Also where windows are still open: MPI must not be finalised while a thread is in it, and MPICH ends the process
    where one is. Either the program does that, or mpi4py at exit, after all that is registered here."""
    atexit.register(module.stop_progress_threads)
    MPI = _mpi4py("a window")
    finalize = MPI.Finalize

    @functools.wraps(finalize)
    def stop_threads_and_finalize() -> None:
        module.stop_progress_threads()
        finalize()

    MPI.Finalize = stop_threads_and_finalize  # type: ignore[attr-defined]


def make_grids(blocks: _core.FloorPlan, comm: Any, itemsize: int, ghost: tuple[Any, ...], order: str) -> _core.Grids:
    """The storage of this rank's blocks, where other ranks of its node can reach it. Not collective."""
    module, handle = open_comm(comm)
    return module.make_grids(blocks, handle, itemsize, ghost, order)


def array_memory(size: int, comm: Any) -> np.ndarray | None:
    """Bytes that the other ranks of this node can reach, where the machine allows it. None where there are none. Not
    collective."""
    module, handle = open_comm(comm)
    return None if comm.Get_size() == 1 else np.frombuffer(module.array_memory(handle, size), np.uint8)


def _open_datatypes(function: str) -> tuple[ModuleType, ModuleType]:
    """mpi4py's MPI, running, and the module for it."""
    MPI = _mpi4py(function)
    _check_running(MPI)
    return MPI, open_comm(MPI.COMM_SELF)[0]


def _datatype_bits(MPI: ModuleType, datatype: Any, name: str) -> int:
    if not isinstance(datatype, MPI.Datatype):
        raise ArgumentError(f"{name} must be a datatype of mpi4py, not {type(datatype).__name__}")
    return _bits(datatype)


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
        module, of = open_comm(parent)
        return module.rank_map_of_group(_bits(comm_or_group), of)
    module, comm = open_comm(comm_or_group)
    # A parent that is none is an error of all: the module sees to that.
    return module.rank_map_of_comm(comm, _bits(parent if isinstance(parent, MPI.Comm) else MPI.COMM_NULL))


def to_group(map: _core.RankMap, parent: Any) -> Any:
    """`longshore.ranks.to_group`."""
    module, comm = open_comm(parent)
    MPI = _mpi4py()
    return _object_of(MPI, MPI.Group(), module.to_group(map, comm))


def create_comm(map: _core.RankMap, parent: Any, tag: int) -> Any:
    """`longshore.ranks.create_comm`."""
    module, comm = open_comm(parent)
    MPI = _mpi4py()
    return _object_of(MPI, MPI.Intracomm(), module.create_communicator(map, comm, operator.index(tag)))


def split_ranks(parent: Any, colour: int, key: int) -> _core.RankMap:
    """`longshore.ranks.split_ranks`."""
    module, comm = open_comm(parent)
    return module.split_ranks(comm, number_or_none(colour), number_or_none(key))


def number_or_none(value: Any, bits: int = 64) -> int | None:
    """An integer of so many bits. None of what is none: the modules make an error of all ranks of it."""
    try:
        number = operator.index(value)
    except TypeError:
        return None
    return number if -(1 << bits - 1) < number < 1 << bits - 1 else None


def node_aware_order(comm: Any) -> _core.RankMap:
    """`longshore.ranks.node_aware_order`."""
    module, handle = open_comm(comm)
    return module.node_aware_order(handle)
