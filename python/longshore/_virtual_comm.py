"""`VirtualComm`: a communicator that is a rank map over another one, in mpi4py's words."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import _mpi
from ._core import RankMap
from .errors import ArgumentError

if TYPE_CHECKING:
    from mpi4py import MPI

_COLLECTIVES = frozenset(
    [
        "Allgather",
        "Allgatherv",
        "Allreduce",
        "Alltoall",
        "Alltoallv",
        "Alltoallw",
        "Barrier",
        "Bcast",
        "Exscan",
        "Gather",
        "Gatherv",
        "Reduce",
        "Reduce_scatter",
        "Reduce_scatter_block",
        "Scan",
        "Scatter",
        "Scatterv",
        "allgather",
        "allreduce",
        "alltoall",
        "barrier",
        "bcast",
        "exscan",
        "gather",
        "reduce",
        "scan",
        "scatter",
    ]
)


class VirtualComm:
    """Members of a communicator that send to each other by their
    position in a `RankMap`: no MPI communicator is made for them.

    `VirtualComm.over(comm)` duplicates a communicator; `sub`, `create` and `split` make others of its members,
    which send on that one duplicate. Messages are told apart by a `context` in the high bits of the tag; 0 is
    everybody's. A process cannot have two of one context at a time. `split` finds a context that is free at all
    members. `sub` and `create` send nothing: they take the one given, or work one out from the map, and where
    that is in use at this process it is an ArgumentError here alone, with the others waiting. Where there are
    more than a few at a process, pass contexts that differ by construction; those below half of `contexts` are
    taken unasked only when no others are left. So do for receives from any source: these may meet the message of
    a sender that is no member and whose own virtual communicator has the same context, which raises
    DisagreementError. There is no such sender where all are made by `split`. Let go of the last one everywhere at
    about the same point, or call Free(), and receive what is under way before.

    Sending and receiving is as in mpi4py, by pickle (send) or from buffers (Send), but that a receive names its tag
    (default 0), at most `tag_ub`. Wait for one from any source by itself: MPI.Request.Waitall knows MPI's ranks only.
    Collectives go through `comm`, an MPI communicator that is made when one is called for the first time; vc.Bcast is
    vc.comm.Bcast. Who is no member has rank None, and can ask but neither send nor receive."""

    def __init__(self, core: Any, MPI: ModuleType) -> None:
        """For internal use: see `over`."""
        self._kept = core
        self._MPI = MPI
        self._traffic = _mpi._object_of(MPI, MPI.Intracomm(), core.traffic)
        self._comm: Any = None

    @classmethod
    def over(cls, comm: MPI.Comm) -> VirtualComm:
        """Everybody in `comm`. Collective."""
        module, bits = _mpi.open_comm(comm)
        return cls(module.VirtualComm.over(bits), _mpi._mpi4py())

    def sub(self, positions: RankMap | Any, *, context: int | None = None) -> VirtualComm:
        """A context in use is an error of this process alone. The members at these positions: a map of a world of
        `size`, or anything that one is made of. Not collective."""
        if not isinstance(positions, RankMap):
            positions = RankMap(positions, self.size)
        return VirtualComm(self._core.sub(positions, context), self._MPI)

    def create(self, ranks: RankMap, *, context: int | None = None) -> VirtualComm:
        """A context in use is an error of this process alone. These ranks of the communicator that all began with. Not
        collective."""
        return VirtualComm(self._core.create(ranks, context), self._MPI)

    def split(self, colour: int, key: int = 0, *, context: int | None = None) -> VirtualComm:
        """As Split of mpi4py; of nobody where the colour is negative. Collective over the members, as
        its errors are: of all where a colour, a key or a context is no integer, of a colour's members
        where contexts differ or are in use at one of them."""
        core, number = self._core, _mpi.number_or_none
        wanted = None if context is None else number(context, 32)
        usable = context is None or wanted is not None  # else an error of all, as of a colour that is no number
        return VirtualComm(core.split(number(colour) if usable else None, number(key), wanted), self._MPI)

    def Free(self) -> None:
        """Gives the context back, and with the last user the communicators. Do so on all members."""
        self._kept = self._comm = None

    @property
    def map(self) -> RankMap:
        """Which ranks of the communicator that all began with the members are."""
        return self._core.map

    @property
    def rank(self) -> int | None:
        """This process's position, or None."""
        return self._core.rank

    @property
    def size(self) -> int:
        """How many members there are."""
        return self._core.size

    @property
    def context(self) -> int:
        """What keeps messages apart from those of others."""
        return self._core.context

    @property
    def contexts(self) -> int:
        """How many contexts there are."""
        return self._core.contexts

    @property
    def tag_ub(self) -> int:
        """The largest tag."""
        return self._core.tag_ub

    def Get_rank(self) -> int | None:
        """`rank`."""
        return self.rank

    def Get_size(self) -> int:
        """`size`."""
        return self.size

    def peer(self, rank: int) -> int:
        """The rank of a member in the communicator that all began with."""
        return self._core.peer(rank)

    def position(self, parent_rank: int) -> int | None:
        """Where a rank of that communicator is among the members, or None."""
        return self._core.position(parent_rank)

    @property
    def comm(self) -> MPI.Intracomm:
        """An MPI communicator of the members. Collective over them the first time; it goes with the last who has it."""
        _mpi._check_running(self._MPI)
        if self._comm is None:
            self._comm = _mpi._object_of(self._MPI, _lasting_class(self._MPI)(), self._core.comm())
            self._comm.core = self._core
        return self._comm

    def __getattr__(self, name: str) -> Any:
        if name in _COLLECTIVES:
            return getattr(self.comm, name)
        raise AttributeError(f"a VirtualComm has no {name!r}")

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Sends any object, pickled, to the member at position `dest`; it may wait until that receives. Raises
        ArgumentError where nobody is at `dest`, the tag is negative or above `tag_ub`, or this process is no member;
        to MPI.PROC_NULL nothing is sent. Not collective."""
        self._traffic.send(obj, self._to(dest), self._tag(tag))

    def isend(self, obj: Any, dest: int, tag: int = 0) -> MPI.Request:
        """`send` without waiting: the request is done when the object has gone. Raises what `send` raises. Not
        collective."""
        return self._traffic.isend(obj, self._to(dest), self._tag(tag))

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        """`send` from a buffer, such as an array, without pickling; counts are in the buffer's elements, as in
        mpi4py. Raises what `send` raises. Not collective."""
        self._traffic.Send(buf, self._to(dest), self._tag(tag))

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> MPI.Request:
        """`Send` without waiting: leave the buffer as it is until the request is done. Raises what `send` raises. Not
        collective."""
        return self._traffic.Isend(buf, self._to(dest), self._tag(tag))

    def recv(self, buf: Any = None, source: int | None = None, tag: int = 0, status: MPI.Status | None = None) -> Any:
        """The object that the member at position `source` sent with this tag (None: any member; never any tag); `buf`
        is memory for the pickled bytes, and the status names the member and the tag. Raises ArgumentError as `send`
        does, DisagreementError for a message from any source whose sender is no member. Not collective."""
        status = self._status(status)
        message = self._traffic.recv(buf, self._from(source), self._tag(tag), status)
        self._tell(status, source, tag)
        return message

    def Recv(self, buf: Any, source: int | None = None, tag: int = 0, status: MPI.Status | None = None) -> None:
        """`recv` into a buffer, of what was sent from one: it has room for all of the message. Raises what `recv`
        raises, and what mpi4py raises for a message that is too long. Not collective."""
        status = self._status(status)
        self._traffic.Recv(buf, self._from(source), self._tag(tag), status)
        self._tell(status, source, tag)

    def irecv(self, buf: Any = None, source: int | None = None, tag: int = 0) -> MPI.Request:
        """`recv` without waiting: the request's wait() or test() has the object. They raise what `recv` raises of a
        sender, this what it raises of its arguments. Not collective."""
        return self._incoming(self._traffic.irecv(buf, self._from(source), self._tag(tag)), source, tag)

    def Irecv(self, buf: Any, source: int | None = None, tag: int = 0) -> MPI.Request:
        """`Recv` without waiting: the buffer has the message when the request's Wait() or Test() says so. They raise
        what `Recv` raises of a message, this what it raises of its arguments. Not collective."""
        return self._incoming(self._traffic.Irecv(buf, self._from(source), self._tag(tag)), source, tag)

    def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int | None = None,
        recvtag: int = 0,
        status: MPI.Status | None = None,
    ) -> Any:
        """`send` to one member and `recv` from another at once, so that a ring of members does not stop; returns the
        object that has come, and the status is of that. Raises what the two raise. Not collective."""
        status = self._status(status)
        message = self._traffic.sendrecv(
            sendobj, self._to(dest), self._tag(sendtag), recvbuf, self._from(source), self._tag(recvtag), status
        )
        self._tell(status, source, recvtag)
        return message

    def Sendrecv(
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int | None = None,
        recvtag: int = 0,
        status: MPI.Status | None = None,
    ) -> None:
        """`Send` to one member and `Recv` from another at once, of two buffers that share no memory; the status is of
        what has come. Raises what the two raise. Not collective."""
        status = self._status(status)
        self._traffic.Sendrecv(
            sendbuf, self._to(dest), self._tag(sendtag), recvbuf, self._from(source), self._tag(recvtag), status
        )
        self._tell(status, source, recvtag)

    def __repr__(self) -> str:
        if self._kept is None:
            return "<longshore.VirtualComm, released>"
        return f"<longshore.VirtualComm: rank {self.rank} of {self.size}, context {self.context}>"

    @property
    def _core(self) -> Any:
        if self._kept is None:
            raise ArgumentError("this virtual communicator was released with Free()")
        return self._kept

    def _tag(self, tag: int) -> int:
        return self._core.wire_tag(tag)

    def _to(self, dest: int) -> int:
        return dest if dest == self._MPI.PROC_NULL else self._core.peer(dest)

    def _from(self, source: int | None) -> int:
        return self._MPI.ANY_SOURCE if source is None or source == self._MPI.ANY_SOURCE else self._to(source)

    def _status(self, status: MPI.Status | None) -> MPI.Status:
        return self._MPI.Status() if status is None else status

    def _tell(self, status: MPI.Status, source: int | None, tag: int) -> None:
        """Puts the member and the tag into a status where MPI has
        put a rank of the duplicate and a tag with the context."""
        sender = status.Get_source()
        # Of PROC_NULL, of a request that was complete before, of one cancelled: none of a message.
        if sender in (self._MPI.PROC_NULL, self._MPI.ANY_SOURCE) or status.Is_cancelled():
            return
        if source is None or source == self._MPI.ANY_SOURCE:
            source = self._core.position(sender)
            if source is None:
                self._core.stray(sender)
        status.Set_source(source)
        status.Set_tag(tag)

    def _incoming(self, request: MPI.Request, source: int | None, tag: int) -> MPI.Request:
        incoming = _incoming_class(self._MPI)(request)
        incoming.status = self._status
        incoming.tell = functools.partial(self._tell, source=source, tag=tag)
        return incoming


@functools.cache  # a class of mpi4py's, which may not be there
def _lasting_class(MPI: Any) -> type:
    class Lasting(MPI.Intracomm):
        """A communicator that lives as long as it is in use, in a method of its own too: it keeps whose it is."""

        core: Any = None  # none in those that are made of it

        def Free(self) -> None:
            if self.core is not None:
                raise ArgumentError("this communicator is a VirtualComm's and goes with it: free that")
            super().Free()

    return Lasting


@functools.cache  # a class of mpi4py's, which may not be there
def _incoming_class(MPI: Any) -> type:
    class Incoming(MPI.Request):
        """A receive whose status names the member that it came from, where it is waited for or tested by itself."""

        status: Any
        tell: Any

        def Wait(self, status: Any = None) -> bool:
            _mpi._check_running(MPI)
            status = self.status(status)
            done = super().Wait(status)
            self.tell(status)
            return done

        def wait(self, status: Any = None) -> Any:
            _mpi._check_running(MPI)
            status = self.status(status)
            message = super().wait(status)
            self.tell(status)
            return message

        def Test(self, status: Any = None) -> bool:
            _mpi._check_running(MPI)
            status = self.status(status)
            done = super().Test(status)
            if done:
                self.tell(status)
            return done

        def test(self, status: Any = None) -> tuple[bool, Any]:
            _mpi._check_running(MPI)
            status = self.status(status)
            done, message = super().test(status)
            if done:
                self.tell(status)
            return done, message

    return Incoming
