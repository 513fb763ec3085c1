"""Who takes part in `longshore bench chained`: chained, from the source array to the place in the destination in one
copy; packed, through messages; and the ring between the two. All move between the same arrays, but for MPI_Put's."""

from functools import partial

import longshore as ls
import numpy as np
from longshore import model, tune

from ..protocol import Contender, Missing, Ready, WrongResult, quickest
from ..redistribute.peers import copy_all, tiled
from .steps import step_of

CHAINED, RING, MESSAGES = "longshore chained", "longshore ring", "longshore packed"
HAND, TYPES, PUT = "hand-packed MPI", "MPI datatypes", "MPI Put, datatypes"
PACKED = MESSAGES, HAND, TYPES
_COPIES = {"NumPy": {}, "Longshore's kernels": {"kernels": True}}  # packing by hand
_TURNING = {"NumPy, tiles of 64": {"tile": 64}, "NumPy, tiles of 256": {"tile": 256}} | _COPIES


class Exchange(Ready):
    """A way to carry a step out, bound to memory: every element is its number and the salt of so many rewritings."""

    def __init__(self, context, case, run, detail="", memory=None, close=None):
        self.step, self.run, self.detail, self.close = step_of(context, case), run, detail, close or self.close
        self._source, self._destination = memory or self.step.flat()
        self._own, self._salt = self.step.own.view(self._source), 0.0
        self._mine = self.step.own.indices() if self._own is None else None
        received = sum(places.size for places in (*self.step.receives.values(), *self.step.stays[1:]))
        self.facts = {"payload_bytes": context.comm.allreduce(received * self._source.itemsize)}
        self.most_bytes = max(context.comm.allgather(self._source.nbytes))

    def refresh(self):
        self._salt += 1.0
        if self._own is None:
            self._source[self._mine] += 1.0
        else:
            np.add(self._own, 1.0, out=self._own)

    def spoil(self):
        self._destination.fill(np.nan)
        self._source[...] = self.step.numbers.source.reshape(-1)
        self._salt = 0.0

    def check(self):
        """All of the destination: what was not to be written is as it was."""
        expected = self.step.numbers.destination.reshape(-1) + self._salt
        if not np.array_equal(self._destination, expected, equal_nan=True):
            wrong = (self._destination != expected) & ~(np.isnan(self._destination) & np.isnan(expected))
            at = int(np.argmax(wrong))
            raise WrongResult(f"element {at}: {self._destination[at]} where {expected[at]} belongs")


def staged(path, staging_bytes):
    """What of a mover's data goes through a buffer, in words; empty where nothing does."""
    through = [line for line in path.splitlines() if "rings" in line or "MPI messages" in line]
    return "; ".join(through) or (f"{staging_bytes} bytes of buffers" if staging_bytes else "")


def longshore(context, case, node):
    step = step_of(context, case)
    mover = step.plan.bind(*step.arrays, comm=context.comm, node=node)
    wanted = {"direct": "straight", "ring": "rings", "messages": "MPI messages"}[node]
    if node == "direct" and (why := staged(mover.path, mover.staging_bytes)):
        raise Missing(f"not chained: {why}")
    if step.receives and not any(wanted in line for line in mover.path.splitlines()):
        raise Missing(f"nothing goes that way: {mover.path}")
    exchange = Exchange(context, case, mover, "; ".join(mover.path.splitlines()))
    exchange.facts |= _predicted(context, step, node)
    return exchange


def _predicted(context, step, way):
    """What the model says of the slowest rank, where this machine was calibrated. Collective."""
    profile = tune.profile()
    if context.agree("there is none" if profile.coarse else ""):
        return {}
    array = step.arrays[0]
    blocks = {"dtype": array.dtype, "ghost": array.ghost} if isinstance(array, ls.XArray) else {}
    told = model.predict(step.plan, profile, rank=context.rank, **blocks)
    mine = next((cost for cost in told.ways if cost.way == way), None)
    seconds = context.comm.allgather(mine and mine.seconds)
    return {} if None in seconds else {"seconds_predicted": max(seconds), "expression": str(mine.expression)}


def _program(source, destination, dtype):
    """Longshore's kernels between two places."""
    if source.listed is not None or destination.listed is not None:
        return ls.AddressRelation.from_indices(source.indices(), destination.indices(), dtype).program()
    strides = ([stride * dtype.itemsize for stride in places.strides] for places in (source, destination))
    starts = (places.first * dtype.itemsize for places in (source, destination))
    return ls.AddressRelation.strided(source.extents, *strides, dtype, *starts).program()


def _copier(source, of, destination, to, tile=0, kernels=False):
    """What copies the elements of one array, in these places, to those of another; one side of a list is a message."""
    views = destination.view(to), source.view(of)
    if kernels or views[0] is views[1]:
        return partial(_program(source, destination, of.dtype), of, to)
    if views[1] is None:
        return partial(np.take, of, source.listed, out=to, mode="clip")  # by the other modes through a buffer
    if views[0] is None:
        return partial(np.put, to, destination.listed, of)
    return partial(copy_all, tiled([views], tile))


def _move(sending, receiving, stay):
    """Messages by persistent requests, each with what is done before it goes or after it has come."""
    for request, _ in receiving:
        request.Start()
    for request, pack in sending:
        pack()
        request.Start()
    stay()
    for request, unpack in receiving:
        request.Wait()
        unpack()
    for request, _ in sending:
        request.Wait()


def _nothing():
    pass


def _orders(step):
    """A message is in the order of the source, or of the destination where that is another one."""
    yield "", lambda places: places
    if any(len(places.extents) > 1 for places in step.sends.values()):
        yield ", turned by the sender", type(step.own).turned


def _fastest(context, case, ways, memory=None):
    """What is fastest here of several ways (words, run) of doing the same; `held` is freed with it."""
    held = []
    options = [(words, Exchange(context, case, run, memory=memory)) for words, run in ways(held)]
    best = quickest(context, options, 20 if case.brief else 3)
    best.close = lambda: [handle.Free() for handle in reversed(held)]
    return best


def hand_packed(context, case):
    step = step_of(context, case)
    source, destination = step.flat()

    def requests(held, sends, turned, **how):
        for peer, places in (step.sends if sends else step.receives).items():
            places, buffer = turned(places), np.zeros(places.size, source.dtype)
            message = places.dense(), buffer
            held.append((context.comm.Send_init if sends else context.comm.Recv_init)(buffer, peer))
            copy = _copier(places, source, *message, **how) if sends else _copier(*message, places, destination, **how)
            yield held[-1], copy

    def ways(held):
        for order, turned in _orders(step):
            for words, how in (_TURNING if order else _COPIES).items():
                sending, receiving = (list(requests(held, sends, turned, **how)) for sends in (True, False))
                yield words + order, partial(_move, sending, receiving, _staying(step, source, destination, **how))

    return _fastest(context, case, ways)


def _staying(step, source, destination, **how):
    """What copies the elements that stay with their rank."""
    if not step.stays:
        return _nothing
    of, to = step.stays
    return _copier(of, source, to, destination, **how)


def _datatype(places, dtype, held):
    """Of elements in these places, counted from the first of loops, or from the begin of an array for a list."""
    from mpi4py import MPI

    built, dense = {"d": MPI.DOUBLE, "D": MPI.C_DOUBLE_COMPLEX}[dtype.char], 1
    if places.listed is not None:
        held.append(built.Create_indexed_block(1, places.listed.tolist()))
    for extent, stride in zip(reversed(places.extents), reversed(places.strides)):
        if stride == dense:
            held.append(built.Create_contiguous(extent))
        else:
            held.append(built.Create_hvector(extent, 1, stride * dtype.itemsize))
        built, dense = held[-1], dense * extent if stride == dense else -1
    return held[-1].Commit()


def datatypes(context, case):
    step = step_of(context, case)
    source, destination = step.flat()

    def requests(held, turned, array, side, make):
        for peer, places in side.items():
            kind = _datatype(turned(places), array.dtype, held)
            held.append(make([array[places.first :], 1, kind], peer))
            yield held[-1], _nothing

    def ways(held):
        for order, turned in _orders(step):
            sending = list(requests(held, turned, source, step.sends, context.comm.Send_init))
            receiving = list(requests(held, turned, destination, step.receives, context.comm.Recv_init))
            stay = _staying(step, source, destination, kernels=True)
            yield "persistent" + order, partial(_move, sending, receiving, stay)

    return _fastest(context, case, ways)


def put(context, case):
    """Each rank writes into windows on the destinations, in memory that MPI has allocated."""
    from mpi4py import MPI

    step, comm = step_of(context, case), context.comm
    source, destination = step.flat()
    window = MPI.Win.Allocate(destination.nbytes, destination.itemsize, comm=comm)
    there = np.frombuffer(window.tomemory(), destination.dtype)
    source = there if len(step.arrays) == 1 else source
    targets = comm.alltoall([step.receives.get(peer) for peer in range(context.ranks)])
    origins, reached = (comm.Get_group().Incl(list(side)) for side in (step.receives, step.sends))

    def ways(held):
        held.append(window)
        for order, turned in _orders(step):
            calls = []
            for peer, places in step.sends.items():
                to = targets[peer]
                kinds = [_datatype(turned(side), source.dtype, held) for side in (places, to)]
                calls.append(partial(window.Put, [source[places.first :], 1, kinds[0]], peer, [to.first, 1, kinds[1]]))
            calls.append(_staying(step, source, there, kernels=True))
            yield "fences" + order, partial(_fenced, window, calls)
            yield "post, start" + order, partial(_posted, window, origins, reached, calls)

    return _fastest(context, case, ways, (source, there))


def _fenced(window, calls):
    window.Fence()
    for call in calls:
        call()
    window.Fence()


def _posted(window, origins, reached, calls):
    window.Post(origins)
    window.Start(reached)
    for call in calls:
        call()
    window.Complete()
    window.Wait()


CONTENDERS = (
    *(
        Contender(name, partial(longshore, node=node))
        for name, node in ((CHAINED, "direct"), (RING, "ring"), (MESSAGES, "messages"))
    ),
    Contender(HAND, hand_packed),
    Contender(TYPES, datatypes),
    Contender(PUT, put),
)
