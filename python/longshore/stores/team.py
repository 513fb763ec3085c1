"""The processes that share a move: this one alone, or all of an MPI job. They agree on every error before they go
on."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from .. import errors
from .worker_threads import in_words

T = TypeVar("T")

_SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS")
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")


class TeamError(RuntimeError):
    """A surprise on one process, of which all processes have heard: none waits for another."""


class Team(ABC):
    """Who shares a move, and what all teams do with their `agree` and `broadcast`, which are collective."""

    rank: int
    size: int
    comm: Any
    engine: str

    @abstractmethod
    def agree(self, error: BaseException | None = None) -> None:
        """If any process has an error, the first one's is raised on every process."""

    @abstractmethod
    def broadcast(self, value: Any = None) -> Any:
        """The first process's value."""

    @abstractmethod
    def sum(self, value: int) -> int:
        """Of all processes' values."""

    @abstractmethod
    def max(self, value: Any) -> Any:
        """Of all processes' values."""

    def abort(self, code: int) -> None:  # noqa: B027, a team of one has nobody to end
        """Ends all processes; not collective."""

    def together(self, work: Callable[[], T]) -> T:
        """Collective. Every process does its work and gets its result; what goes wrong on one is raised on all."""
        result: Any = None
        error = None
        try:
            result = work()
        except Exception as caught:
            error = in_words(caught)
        self.agree(error)
        return result

    def same(self, request: str) -> None:
        """Collective. Raises DisagreementError where a process asks for something else than the first one."""
        first = self.broadcast(request)
        self.agree(
            None if first == request else errors.DisagreementError(f"rank {self.rank} is {request}; rank 0 is {first}")
        )

    def first(self, work: Callable[[], T]) -> T:
        """Collective. The first process does the work, all get its result or its error."""
        return self.broadcast(self.together(lambda: work() if self.rank == 0 else None))


class Alone(Team):
    """A team of one: nothing to agree on."""

    rank, size, comm, engine = 0, 1, None, "threads"

    def agree(self, error: BaseException | None = None) -> None:
        if error is not None:
            raise error

    def broadcast(self, value: Any = None) -> Any:
        return value

    def sum(self, value: int) -> int:
        return value

    def max(self, value: Any) -> Any:
        return value


class MpiTeam(Team):
    """All processes of an MPI job."""

    engine = "mpi"

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        self.comm = comm
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._max, self._sum = MPI.MAX, MPI.SUM

    def agree(self, error: BaseException | None = None) -> None:
        if not self.comm.allreduce(0 if error is None else 1, op=self._max):
            return
        told = self.comm.allgather(None if error is None else _describe(error))
        first = next(entry for entry in told if entry is not None)
        raise _rebuild(*first) from None

    def broadcast(self, value: Any = None) -> Any:
        return self.comm.bcast(value, root=0)

    def sum(self, value: int) -> int:
        return self.comm.allreduce(value, op=self._sum)

    def max(self, value: Any) -> Any:
        return self.comm.allreduce(value, op=self._max)

    def abort(self, code: int) -> None:
        self.comm.Abort(code)


def launched_size() -> int | None:
    """How many processes the launcher says it started; None where only MPI itself knows; 1 without a launcher."""
    for name in _SIZE_VARIABLES[:2]:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None if "PMIX_RANK" in os.environ else 1


def launched_rank() -> int:
    for name in _RANK_VARIABLES:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def is_launched() -> bool:
    """Whether a launcher has started this process, be it alone."""
    return any(name in os.environ for name in (*_SIZE_VARIABLES, *_RANK_VARIABLES))


def team_of(comm: Any) -> Team:
    """The team of a communicator of mpi4py's; without one this process alone, if it is not one of several."""
    if comm is None:
        size = _job_size()
        if size > 1:
            raise errors.ArgumentError(
                f"this is one of {size} processes of an MPI job, and each would move everything; give "
                "comm=MPI.COMM_WORLD to share the work, or comm=MPI.COMM_SELF where this process is to do it"
            )
        return Alone()
    from .. import _mpi

    _mpi.open_comm(comm)
    return MpiTeam(comm) if comm.Get_size() > 1 else Alone()


def _job_size() -> int:
    """How many processes the job of this one has."""
    MPI = sys.modules.get("mpi4py.MPI")
    if MPI is not None and MPI.Is_initialized() and not MPI.Is_finalized():
        return MPI.COMM_WORLD.Get_size()
    size = launched_size()
    return find_team().size if size is None else size


def find_team() -> Team:
    """The team this process was started in. Imports mpi4py only under a launcher of more than one process."""
    size = launched_size()
    if size == 1:
        return Alone()
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise errors.TransportError(
            f"this was started as one of {size or 'several'} processes, but mpi4py cannot be imported ({error}); "
            "install it beside longshore, or run without mpiexec"
        ) from None
    comm = MPI.COMM_WORLD
    if size is not None and comm.Get_size() != size:
        raise errors.TransportError(
            f"the launcher started {size} processes, but mpi4py's MPI "
            f"({MPI.Get_library_version().splitlines()[0].strip()}) sees {comm.Get_size()}: "
            "mpiexec and mpi4py belong to different MPI libraries"
        )
    return MpiTeam(comm) if comm.Get_size() > 1 else Alone()


def _describe(error: BaseException) -> tuple[str, str, int | None, str | None]:
    if isinstance(error, (errors.LongshoreError, OSError, MemoryError)):
        return type(error).__name__, str(error), getattr(error, "errno", None), getattr(error, "strerror", None)
    return "", f"{type(error).__name__}: {error}", None, None


def _rebuild(name: str, text: str, code: int | None, words: str | None) -> BaseException:
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        return kind(code, words) if code is not None and issubclass(kind, OSError) else kind(text)
    if code is not None:
        return OSError(code, words)
    return MemoryError(text) if name == "MemoryError" else TeamError(text)
