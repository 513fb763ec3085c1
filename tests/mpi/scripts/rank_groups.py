"""Rank maps with MPI's groups and communicators, and virtual communicators, on communicators of several sizes at once.

A world of 8 is cut into pieces, and every piece compares with what mpi4py says of its own.

    mpiexec -n 8 python run_checks.py rank_groups
"""

import functools

import longshore as ls
import numpy as np
from checks import WORLD, check
from longshore import RankMap, _mpi
from mpi4py import MPI


@functools.cache
def pieces():
    """The piece that this rank is in, for each way of cutting the world."""
    return [
        WORLD.Split(int(np.searchsorted(np.cumsum(sizes), WORLD.rank, "right")), WORLD.rank)
        for sizes in ((8,), (7, 1), (4, 3, 1), (2, 2, 4))
    ]


def on_every_piece(f):
    @functools.wraps(f)
    def on_pieces():
        for comm in pieces():
            f(comm, np.random.default_rng(comm.size))

    return on_pieces


def random_maps(rng, size):
    """The same on all ranks: everybody, nobody, strides either way, sets and lists of each size."""
    yield RankMap.whole(size)
    yield RankMap([], size)
    yield RankMap(range(size - 1, -1, -1), size)
    yield RankMap(range(size % 2, size, 2), size)
    for module in ("array", "packed", "auto"):
        kind = {} if module == "auto" else {"module": module}
        yield RankMap(rng.permutation(size), size, **kind)
        yield RankMap(rng.permutation(size)[: rng.integers(1, size + 1)], size, **kind)


def error_of(work):
    try:
        work()
    except ls.LongshoreError as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("no error")


@check
@on_every_piece
def groups(comm, rng):
    everybody = comm.Get_group()
    for members in random_maps(rng, comm.size):
        group = ls.ranks.to_group(members, comm)
        translated = group.Translate_ranks(list(range(len(members))), everybody)
        assert list(translated) == list(members), (list(translated), list(members))
        assert ls.ranks.rank_map_of(group, comm) == members
        made = ls.ranks.create_comm(members, comm)
        if comm.rank not in members:
            assert made == MPI.COMM_NULL
        else:
            assert (made.rank, made.size) == (members.rank(comm.rank), len(members))
            found = ls.ranks.rank_map_of(made, comm)
            assert found == members and found.world == comm.size
            made.Free()
        if group != MPI.GROUP_EMPTY:
            group.Free()
    everybody.Free()


@check
@on_every_piece
def splits(comm, rng):
    everybody = ls.VirtualComm.over(comm)
    for colours in (1, 3):
        # Each rank has its own; some take part in nothing.
        colour = rng.integers(-1, colours, comm.size).tolist()[comm.rank]
        key, again = (
            rng.integers(-2, 3, comm.size).tolist()[comm.rank],
            rng.integers(0, 2, comm.size).tolist()[comm.rank],
        )
        real = comm.Split(colour if colour >= 0 else MPI.UNDEFINED, key)
        members = ls.ranks.split_ranks(comm, colour, key)
        part = everybody.split(colour, key, context=3)
        assert part.map == members and members.world == comm.size
        assert (real == MPI.COMM_NULL) == (colour < 0)
        if colour < 0:
            assert part.rank is None and len(members) == 0
            continue
        assert ls.ranks.rank_map_of(real, comm) == members
        assert (part.rank, part.size) == (real.rank, real.size)
        # Again, of the part.
        half, real_half = part.split(again, -real.rank, context=4), real.Split(again, -real.rank)
        assert list(half.map) == real_half.allgather(comm.rank)
        assert half.allreduce(comm.rank) == sum(half.map)
        for comms in (real, real_half, half, part):
            comms.Free()


@check
@on_every_piece
def orders(comm, rng):
    order = RankMap(rng.permutation(comm.size), comm.size)
    renumbered = comm.Split(0, int(ls.ranks.split_keys(order)[comm.rank]))
    assert ls.ranks.rank_map_of(renumbered, comm) == order
    renumbered.Free()
    node = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    number = node.allreduce(comm.rank, MPI.MIN)
    node.Free()
    nodes = comm.allgather(number)
    assert list(ls.ranks.node_aware_order(comm)) == sorted(range(comm.size), key=lambda w: (nodes.index(nodes[w]), w))


@check
@on_every_piece
def messages(comm, rng):
    """Two virtual communicators of the same processes in two orders,
    equal tags at the same time, received the other way round."""
    whole = ls.VirtualComm.over(comm)
    a = whole.sub(range(comm.size - 1, -1, -1), context=1)
    b = whole.create(RankMap(rng.permutation(comm.size), comm.size), context=2)
    sizes = (0, 1, 100_000)
    leaving = []
    for vc in (a, b):
        for to in range(vc.size):
            for size in sizes:
                leaving.append(vc.Isend(np.full(size, 10 * vc.context + vc.rank, "i4"), to, 7))
            leaving.append(vc.isend((vc.context, vc.rank, to), to, vc.tag_ub))
    status = MPI.Status()
    for vc in (b, a):
        for source in reversed(range(vc.size)):
            for size in sizes:
                got = np.zeros(100_000, "i4")
                if size == 1:  # by request
                    vc.Irecv(got, source, 7).Wait(status)
                else:
                    vc.Recv(got, source, 7, status)
                assert (got[:size] == 10 * vc.context + source).all()
                assert (status.Get_source(), status.Get_tag(), status.Get_count(MPI.INT)) == (source, 7, size)
        # From anybody: each comes once, and the status tells from whom.
        heard = set()
        for k in range(vc.size):
            message = (
                vc.irecv(None, None, vc.tag_ub).wait(status)
                if k % 2
                else vc.recv(None, MPI.ANY_SOURCE, vc.tag_ub, status)
            )
            assert message == (vc.context, status.Get_source(), vc.rank)
            heard.add(status.Get_source())
        assert heard == set(range(vc.size))
    MPI.Request.Waitall(leaving)
    got = np.empty(1, "i4")
    a.Sendrecv(np.array([a.rank], "i4"), (a.rank + 1) % a.size, 3, got, (a.rank - 1) % a.size, 3, status)
    assert got[0] == status.Get_source() == (a.rank - 1) % a.size
    assert b.sendrecv(b.rank, (b.rank + 1) % b.size, source=(b.rank - 1) % b.size) == (b.rank - 1) % b.size
    a.send("nobody", MPI.PROC_NULL)
    assert [a.peer(i) for i in range(a.size)] == list(a.map) and a.position(comm.rank) == a.rank
    # Collectives: a communicator in the map's order.
    assert a.comm.rank == a.rank and a.allgather(comm.rank) == list(a.map)
    total = np.empty(1)
    b.Allreduce(np.array([comm.rank + 1.0]), total)
    assert total[0] == comm.size * (comm.size + 1) / 2


@check
@on_every_piece
def members_only(comm, _):
    first = ls.VirtualComm.over(comm).sub([0], context=9)
    assert list(first.map) == [0] and first.peer(0) == 0
    if comm.rank == 0:
        assert first.sendrecv("alone", 0, source=0) == "alone"
        return
    assert first.rank is None
    for work in (lambda: first.send(1, 0), lambda: first.recv(None, 0), lambda: first.comm, lambda: first.split(0)):
        assert f"rank {comm.rank} is none of the 1 members" in error_of(work)


@check
@on_every_piece
def clashes(comm, _):
    whole = ls.VirtualComm.over(comm)
    assert whole.context == 0 and whole.contexts >= 32 and whole.tag_ub >= 1022
    assert "context 0 already" in error_of(lambda: whole.sub(range(comm.size)))
    for wrong in (-1, whole.contexts):
        assert f"context {wrong} is outside [0," in error_of(lambda: whole.sub([0], context=wrong))
    if comm.size == 1:
        return
    backwards = list(range(comm.size - 1, -1, -1))
    one = whole.sub(backwards)
    assert set(comm.allgather(one.context)) == {one.context} and one.context > 0
    # The same members in another form have the same context; with one of its own they are apart.
    same = RankMap(backwards, comm.size, module="array")
    assert f"context {one.context} already" in error_of(lambda: whole.create(same))
    other = whole.create(same, context=one.context % (whole.contexts - 1) + 1)
    neighbour, before = (one.rank + 1) % one.size, (one.rank - 1) % one.size
    requests = [vc.isend(text, neighbour) for vc, text in ((one, "one"), (other, "other"))]
    assert (other.recv(None, before), one.recv(None, before)) == ("other", "one")
    MPI.Request.waitall(requests)
    # What is released is free again.
    context = one.context
    one.Free()
    assert "released" in error_of(lambda: one.size)
    assert whole.create(same).context == context


@check
@on_every_piece
def agreed_contexts(comm, _):
    """What a split cannot have at one member it does not have at any, and says so at all."""
    whole = ls.VirtualComm.over(comm)
    colour = comm.rank % 2
    part = whole.split(colour)
    members, context, contexts = part.map, part.context, part.contexts
    unasked = contexts - contexts // 2
    assert context >= contexts // 2
    part.Free()
    # The first has the context in use that the split would take, and the last the one that comes after.
    offers = [(context - contexts // 2 + k) % unasked + contexts // 2 for k in range(3)]
    mine = [taken for taken, rank in zip(offers, (members[0], members[-1]), strict=False) if rank == comm.rank]
    alone = [whole.create(RankMap([comm.rank], comm.size), context=taken) for taken in mine]
    part, other = whole.split(colour), whole.split(colour, -comm.rank)
    assert part.map == members and part.context == offers[2]
    neighbour, before = (part.rank + 1) % part.size, (part.rank - 1) % part.size
    assert part.sendrecv("part", neighbour, source=before) == "part"
    assert len({part.context, other.context, *(vc.context for vc in alone)}) == 2 + len(alone)
    assert set(other.allgather(other.context)) == {other.context}
    # One given is the same at all, in range and free.
    clash = error_of(lambda: whole.split(colour, context=offers[0]))
    assert f"rank {members[0]} has a virtual communicator with context {offers[0]} already" in clash
    outside = error_of(lambda: whole.split(colour, context=contexts))
    assert f"context {contexts} is outside" in outside
    assert set(part.allgather((clash, outside))) == {(clash, outside)}
    last = comm.rank == comm.size - 1
    for here, there in ((5, 6), (5, None), (5, -1), (None, contexts)) if comm.size > 1 else ():
        differ = error_of(lambda: whole.split(0, context=there if last else here))
        assert differ.startswith("DisagreementError") and f"rank {comm.size - 1} was given" in differ
        assert set(comm.allgather(differ)) == {differ}
    # A wrong argument of one is an error of all.
    for work in (
        lambda: whole.split("red" if last else 0),
        lambda: whole.split(0, 0.5 if last else 0),
        lambda: whole.split(0, context="blue" if last else 7),
        lambda: whole.split(2**63 if last else 0),
        lambda: ls.ranks.split_ranks(comm, None if last else 0),
        lambda: ls.ranks.split_ranks(comm, 0, -(2**63) if last else 0),
    ):
        said = error_of(work)
        assert f"rank {comm.size - 1} gave a colour, a key or a context that is no" in said, said
    if comm.size == 3:
        in_use, one = {vc.context for vc in (part, other, *alone)}, RankMap([1], 3)
        everything = [whole._core.create(one, k) for k in range(1, contexts) if comm.rank == 1 and k not in in_use]
        assert "rank 1 has no context free" in error_of(lambda: whole.split(0))
        del everything[:1]
        assert whole.split(0).context == 1
        del everything[contexts // 2 - 2 :]  # those below the half are taken when the others are in use
        assert whole.split(0).context >= contexts // 2


@check
@on_every_piece
def strays(comm, _):
    """A receive from any source that meets the message of a sender that is no member, on another's context."""
    if comm.size < 3:
        return
    whole = ls.VirtualComm.over(comm)
    if comm.rank == 0:
        sender = whole.create(RankMap([0, 1], comm.size), context=5)
        for tag in range(7):
            sender.send("stray", 1, tag)
    elif comm.rank == 1:
        receiver = whole.create(RankMap([1, 2], comm.size), context=5)

        def tested():
            request = receiver.irecv(tag=3)
            while not request.test()[0]:
                pass

        status = MPI.Status()
        for work in (
            lambda: receiver.recv(),
            lambda: receiver.recv(None, MPI.ANY_SOURCE, 1, status),
            lambda: receiver.irecv(tag=2).wait(),
            tested,
            lambda: receiver.Recv(bytearray(100), tag=4),
            lambda: receiver.Irecv(bytearray(100), tag=5).Wait(),
            lambda: receiver.sendrecv("self", 0, 8, None, None, 6),
        ):
            said = error_of(work)
            assert (
                said.startswith("DisagreementError: rank 1 received")
                and "a message of rank 0, which is none of the 2" in said
            )
        assert receiver.recv(tag=8) == "self"
        again = receiver.irecv(tag=9)
        receiver.send("on", 0, 9)
        assert (again.wait(status), status.Get_source()) == ("on", 0)
        assert again.wait(status) is None  # it was complete
    comm.Barrier()


@check
@on_every_piece
def kept_communicators(comm, _):
    """A communicator lives as long as it is in use, and no longer."""
    whole = ls.VirtualComm.over(comm)
    backwards = RankMap(range(comm.size - 1, -1, -1), comm.size)
    assert whole.split(0).allreduce(1) == comm.size
    assert ls.VirtualComm.over(comm).bcast(comm.rank, 0) == 0
    made = whole.create(backwards, context=11).comm
    assert made.allgather(comm.rank) == list(backwards)
    assert "context 11 already" in error_of(lambda: whole.create(backwards, context=11))
    assert "goes with it" in error_of(made.Free)
    copy = made.Dup()
    del made
    assert whole.create(backwards, context=11).context == 11
    assert copy.allgather(comm.rank) == list(backwards)
    copy.Free()


@check
@on_every_piece
def mistakes(comm, _):
    whole = ls.VirtualComm.over(comm)
    for tag in (-1, MPI.ANY_TAG, whole.tag_ub + 1):
        assert "a receive names its tag" in error_of(lambda: whole.recv(None, 0, tag))
        assert f"tag {tag} is outside" in error_of(lambda: whole.send(None, 0, tag))
    assert str(comm.size) in error_of(lambda: whole.send(None, comm.size))
    larger = RankMap([0], comm.size + 1)
    for work in (
        lambda: whole.sub(larger),
        lambda: whole.create(larger),
        lambda: ls.ranks.to_group(larger, comm),
        lambda: ls.ranks.create_comm(larger, comm),
    ):
        assert f"a world of {comm.size + 1} ranks" in error_of(work)
    # What one process gives is an error of all, in the same words.
    last = comm.size - 1
    for wrong in (MPI.COMM_NULL, None):
        said = error_of(lambda: ls.ranks.rank_map_of(comm, wrong if comm.rank == last else comm))
        assert f"rank {last} of the communicator gave a parent" in said and set(comm.allgather(said)) == {said}
    if WORLD.size > comm.size > 1:
        said = error_of(lambda: ls.ranks.rank_map_of(comm, WORLD if comm.rank == last else comm))
        assert said.startswith("DisagreementError") and set(comm.allgather(said)) == {said}
    group = WORLD.Get_group()
    if WORLD.size > comm.size:
        assert "ranks of the parent" in error_of(lambda: ls.ranks.rank_map_of(group, comm))
    module, bits = _mpi.open_comm(WORLD)
    said = error_of(lambda: module.rank_map_of_group(_mpi._bits(group), bits, WORLD.size**2 - 1))
    assert "give a communicator of the group instead" in said
    assert module.rank_map_of_group(_mpi._bits(group), bits, WORLD.size**2) == RankMap.whole(WORLD.size)
    group.Free()


@check
@on_every_piece
def large_messages(comm, _):
    """More bytes than an int counts are one element of a datatype:
    here of small ones, received where there is more room."""
    module, _ = _mpi.open_comm(comm)
    for bytes, room, block in ((1000, 1003, 16), (999, 2000, 1000), (64, 64, 8)):
        sent, got = np.arange(bytes).astype("u1"), np.zeros(room, "u1")
        types = [_mpi._object_of(MPI, MPI.Datatype(), module.byte_type(n, block)) for n in (bytes, room)]
        assert [t.Get_size() for t in types] == [bytes, room] and types[0].Get_extent() == (0, bytes)
        status = MPI.Status()
        comm.Sendrecv([sent, 1, types[0]], comm.rank, 0, [got, 1, types[1]], comm.rank, 0, status)
        assert (got[:bytes] == sent).all() and not got[bytes:].any()
        assert status.Get_elements(MPI.BYTE) == bytes
        for datatype in types:
            datatype.Free()


@check
def freed_under_virtual_communicators():
    """Virtual communicators outlive the communicator that they are over, and MPI_Finalize: no harm is done."""
    for comm in pieces():
        KEPT.append(ls.VirtualComm.over(comm).sub([0], context=9))
        comm.Free()
    pieces.cache_clear()


KEPT = []
