"""The processes that share a move: this one alone, or all of an MPI job. They agree on every error before they go on."""

from __future__ import annotations

import os

from .. import errors

_SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS")
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")


class TeamError(RuntimeError):
    """A surprise on one process, of which all processes have heard: none waits for another."""


class Team:
    """What all teams do with their `agree` and `broadcast`."""

    def together(self, work):
        """Collective. Every process does its work and gets its result; what goes wrong on one is raised on all."""
        error = result = None
        try:
            result = work()
        except Exception as caught:
            error = caught
        self.agree(error)
        return result

    def first(self, work):
        """Collective. The first process does the work, all get its result or its error."""
        return self.broadcast(self.together(work if self.rank == 0 else lambda: None))


class Alone(Team):
    """A team of one: nothing to agree on."""

    rank, size, comm, engine = 0, 1, None, "threads"

    def agree(self, error=None):
        if error is not None:
            raise error

    def broadcast(self, value=None):
        return value

    def sum(self, value):
        return value

    def max(self, value):
        return value

    def abort(self, code):
        pass


class MpiTeam(Team):
    """All processes of an MPI job."""

    engine = "mpi"

    def __init__(self, comm):
        from mpi4py import MPI

        self.comm = comm
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._max, self._sum = MPI.MAX, MPI.SUM

    def agree(self, error=None):
        """Collective. If any process has an error, the first one's is raised on every process."""
        if not self.comm.allreduce(0 if error is None else 1, op=self._max):
            return
        told = self.comm.allgather(None if error is None else _describe(error))
        first = next(entry for entry in told if entry is not None)
        raise _rebuild(*first) from None

    def broadcast(self, value=None):
        return self.comm.bcast(value, root=0)

    def sum(self, value):
        return self.comm.allreduce(value, op=self._sum)

    def max(self, value):
        return self.comm.allreduce(value, op=self._max)

    def abort(self, code):
        self.comm.Abort(code)


def launched_size():
    """How many processes the launcher says it started; None where only MPI itself knows; 1 without a launcher."""
    for name in _SIZE_VARIABLES[:2]:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None if "PMIX_RANK" in os.environ else 1


def launched_rank():
    for name in _RANK_VARIABLES:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def find_team():
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
            f"the launcher started {size} processes, but mpi4py's MPI ({MPI.Get_library_version().splitlines()[0].strip()}) "
            f"sees {comm.Get_size()}: mpiexec and mpi4py belong to different MPI libraries"
        )
    return MpiTeam(comm) if comm.Get_size() > 1 else Alone()


def _describe(error):
    if isinstance(error, (errors.LongshoreError, OSError, MemoryError)):
        return type(error).__name__, str(error), getattr(error, "errno", None), getattr(error, "strerror", None)
    return "", f"{type(error).__name__}: {error}", None, None


def _rebuild(name, text, code, words):
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        return kind(code, words) if code is not None and issubclass(kind, OSError) else kind(text)
    if code is not None:
        return OSError(code, words)
    return MemoryError(text) if name == "MemoryError" else TeamError(text)
