"""What moves take beyond the bytes that they copy: in one process, and between two processes in every way there is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._api import empty, plan
from .._core import BlockPlan, FloorPlan, Layout, Region
from .._window import Window
from .._xarray import XArray
from .copies import NOISY, CopyCase, Situation, entry

_SIZES = tuple(1 << k for k in (0, 6, 9, 12, 14, 16, 18, 20, 22, 24))
_MANY, _PIECE = 256, 64  # transfers of so many bytes, to see what each takes
_MANY_RANKS = 16
_JOINT_BYTES = 8 << 20
_ASLEEP_BYTES = 4 << 20  # that are written in some hundred microseconds
_MEANWHILE_BYTES = 256 << 10  # that a program touches between two moves: code and plans leave the nearest cache
_WAYS: dict[str, dict[str, Any]] = {
    "direct": {"node": "direct"},
    "ring": {"node": "ring"},
    "messages": {"node": "messages", "exchange": "p2p"},
    "collective": {"node": "messages", "exchange": "alltoall"},
}


class Clock:
    """Times calls one by one. Before each the sources are written anew by those who own them, as programs do, and under
    MPI all ranks meet; of each call the slowest rank's time counts."""

    def __init__(self, comm: Any = None, samples: int = 60, seconds: float = 0.1) -> None:
        self.comm, self.samples, self.seconds = comm, samples, seconds

    def __call__(self, move: Callable[[], object], sources: Sequence[np.ndarray] = ()) -> list[float]:
        """Seconds, ascending. Collective."""
        taken: list[float] = []
        begin = time.perf_counter()
        for k in range(self.samples + 2):
            for source in sources:
                source.fill(k & 1)
            if self.comm is not None:
                self.comm.Barrier()
            start = time.perf_counter()
            move()
            taken.append(time.perf_counter() - start)
            late = time.perf_counter() - begin > self.seconds and k >= 6
            if late if self.comm is None else k % 8 == 7 and max(self.comm.allgather(late)):
                break
        if self.comm is not None:
            taken = [max(each) for each in zip(*self.comm.allgather(taken))]
        return sorted(taken[2:])


def median(samples: list[float]) -> float:
    return samples[len(samples) // 2]


def noisy(samples: list[float]) -> bool:
    """Whether the middle half is spread by more than a quarter of the median."""
    return samples[-1 - len(samples) // 4] - samples[len(samples) // 4] > NOISY * median(samples)


Bound = tuple[Callable[[], object], list[np.ndarray]]  # a mover and its sources


def _own_copies(ranks: int, elements: int, threads: int = 1, meanwhile_bytes: int = _MEANWHILE_BYTES) -> Bound:
    """In this process, rows to columns of a matrix of doubles: a transfer for each two of so many ranks."""
    shape = (ranks, ranks * elements)
    rows, columns = Layout(f"(BLOCK, *) on {ranks}", shape), Layout(f"(*, BLOCK) on {ranks}", shape)
    sources = [np.zeros(rows.local_shape(rank)) for rank in rows.ranks]
    meanwhile = np.zeros(meanwhile_bytes // 8)
    mover = plan(rows, columns, "float64").bind(sources, empty(columns, "float64"), threads=threads)
    return mover, [*sources, meanwhile]


def _own_pieces(pieces: int) -> Bound:
    """In this process, so many transfers of one double within a block, which have their programs in common."""
    blocks = FloorPlan([Region([0], [2 * pieces])], [0])
    moves = BlockPlan(blocks, blocks)
    for k in range(pieces):
        piece = Region([2 * k], [2 * k + 1])
        moves.copy(piece, 0, piece, 0)
    source, meanwhile = XArray(blocks, "float64"), np.zeros(_MEANWHILE_BYTES, np.uint8)
    return moves.bind(source, XArray(blocks, "float64"), threads=1), [*source, meanwhile]


def measure_calls(threads: int) -> dict[str, float]:
    """Of a move within one process: its start, each of its transfers beyond the first, until threads are at work."""
    clock = Clock(samples=1000)
    one, many = (median(clock(*_own_copies(n, 1))) for n in (1, _MANY_RANKS))
    told = {
        "start_seconds": one,
        "transfer_seconds": max(0.0, many - one) / (_MANY_RANKS**2 - 1),
        "wake_seconds": 0.0,
    }
    one, many = (median(clock(*_own_pieces(n))) for n in (1, _MANY))
    told["block_transfer_seconds"] = max(0.0, many - one) / (_MANY - 1)
    if threads > 1:
        # The least that threads share: with the caller alone it is over before others are at work. Between two moves
        # they have the time to fall asleep.
        alone, shared = (median(clock(*_own_copies(1, 1 << 15, n, _ASLEEP_BYTES))) for n in (1, threads))
        told["wake_seconds"] = max(0.0, (threads * shared - alone) / (threads - 1))  # until then the caller is alone
    return told


def measure_joint(threads: int, quick: bool) -> list[dict[str, Any]]:
    """Copies of short runs that take turns in the cache lines of a large array, of all ranks together: entries as
    `copies.measure` makes them, contiguous on the ranks' side."""
    told = []
    for at_once in sorted({1, threads}):
        clock = Clock(samples=5 if quick else 15, seconds=0.1)
        for word, block in ((4, 1), (8, 1), (8, 8)) if quick else ((4, 1), (8, 1), (8, 2), (8, 8), (8, 64)):
            for ranks in (2,) if quick else (2, 8):
                shape = (_JOINT_BYTES // (word * 8192), 8192)
                dealt = Layout(f"(*, CYCLIC({block})) on {ranks}", shape)
                whole = Layout("(*, BLOCK) on 1", shape)
                strided = f"{ranks * block}[{block}]" if block > 1 else str(ranks)
                for source, destination in ((dealt, whole), (whole, dealt)):
                    arrays = [np.zeros(source.local_shape(rank), f"f{word}") for rank in source.ranks]
                    moves = plan(source, destination, f"f{word}")
                    seconds = clock(moves.bind(arrays, empty(destination, f"f{word}"), threads=at_once), arrays)
                    case = CopyCase(*(("1", strided) if source == dealt else (strided, "1")), word, "joint")
                    rates = [_JOINT_BYTES / each / at_once / 1e6 for each in reversed(seconds)]
                    told.append(entry(Situation(None, at_once, False), case, rates))
    return told


def _exchange(comm: Any, total: int, pieces: int, ways: dict[str, Any]) -> Bound:
    """The first two ranks send each other so many bytes, in so many transfers."""
    step = 1 if pieces == 1 else 2  # apart, or they would be one
    sides = [Region([k * step * total], [(k + 1) * step * total]) for k in range(2)]
    source, destination = FloorPlan(sides, [0, 1]), FloorPlan(sides, [1, 0])
    moves, size = BlockPlan(source, destination), total // pieces
    for k, side in enumerate(sides):
        for n in range(pieces):
            first = side.lower[0] + step * n * size
            piece = Region([first], [first + size])
            moves.copy(piece, k, piece, k)
    where = {"comm": comm} if ways["node"] == "direct" else {"rank": comm.Get_rank()}
    arrays = [XArray(blocks, "uint8", **where) for blocks in (source, destination)]
    meanwhile = np.zeros(_MEANWHILE_BYTES, np.uint8)
    return moves.bind(*arrays, comm=comm, **ways), [*arrays[0], meanwhile]


def _gets(comm: Any, total: int, pieces: int) -> Bound:
    """The first two ranks get so many bytes from each other, in so many pieces, out of ordinary memory."""
    size = total // pieces
    array = np.zeros((pieces, size if pieces == 1 else 2 * size), np.uint8)  # apart, or they would be one
    section = Window(array, comm=comm)[1 - comm.Get_rank()][:, :size]
    out, meanwhile = np.empty(section.shape, np.uint8), np.zeros(_MEANWHILE_BYTES, np.uint8)
    return lambda: section.get(out=out), [array, meanwhile]


def measure_exchanges(comm: Any, pair: str, quick: bool, step: Callable[[float], None]) -> list[dict[str, Any]]:
    """Of two processes that send each other so many contiguous bytes at the same time, or get them: an entry a way.
    Collective."""
    clock, told = Clock(comm, 20 if quick else 100, 0.02 if quick else 0.15), []
    for at, way in enumerate(ways := [*_WAYS, "gets"]):
        options = _WAYS.get(way)
        if pair == "other node" and options is not None and options["node"] != "messages":
            continue

        def bound(size: int, pieces: int, options: dict[str, Any] | None = options) -> Bound:
            return _gets(comm, size, pieces) if options is None else _exchange(comm, size, pieces, options)

        samples = []
        for k, size in enumerate(_SIZES):
            seconds = clock(*bound(size, 1))
            quarter = len(seconds) // 4
            samples.append(
                {
                    "bytes": size,
                    "seconds": median(seconds),
                    "seconds_low": seconds[quarter],
                    "seconds_high": seconds[-1 - quarter],
                    "noisy": noisy(seconds),
                }
            )
            step((at + k / len(_SIZES)) / len(ways))
        one, many = (median(clock(*bound(_MANY * _PIECE, n))) for n in (1, _MANY))
        each = max(0.0, many - one) / (_MANY - 1)
        told.append({"way": way, "pair": pair, "samples": samples, "transfer_seconds": each})
    return told


def measure_loggp(comm: Any, pair: str) -> dict[str, Any]:
    """LogGP between the first two ranks of an mpi4py communicator: L, o_s, o_r, g in seconds, G in seconds a byte.

    The standard method: a message of one byte there and back is 2 (L + o_s + o_r); the overheads are what MPI_Isend and
    a receive of what has arrived take the caller; g is the time a message of a long train takes, G the slope over large
    messages, of a transfer there and back. Calls are mpi4py's, whose own time is part of the overheads; L is what they
    leave of half a round trip, which may be nothing within a node. Collective over the two ranks."""
    peer, first = 1 - comm.Get_rank(), comm.Get_rank() == 0

    def there_and_back(n: int) -> Callable[[], None]:
        data = np.zeros(n, np.uint8)

        def call() -> None:
            if first:
                comm.Send(data, peer)
                comm.Recv(data, peer)
            else:
                comm.Recv(data, peer)
                comm.Send(data, peer)

        return call

    clock = Clock(comm, 300)
    round_trip = {n: median(clock(there_and_back(n))) for n in (1, 1 << 20, 1 << 22)}
    small, train = np.zeros(1, np.uint8), 100

    def trains(patient: bool) -> tuple[float, float, float]:
        """Of a message: until it is sent, received, and until the train is over, which the last answer tells."""
        samples = []
        for _ in range(21):
            comm.Barrier()
            if first:
                begin = time.perf_counter()
                requests = [comm.Isend(small, peer) for _ in range(train)]
                sent = time.perf_counter() - begin
                for request in requests:
                    request.Wait()
                comm.Recv(small, peer)
                samples.append((sent / train, 0.0, (time.perf_counter() - begin) / train))
            else:
                if patient:
                    time.sleep(0.0005)  # until all has arrived
                begin = time.perf_counter()
                for _ in range(train):
                    comm.Recv(small, peer)
                samples.append((0.0, (time.perf_counter() - begin) / train, 0.0))
                comm.Send(small, peer)
        mine = [median(sorted(column)) for column in zip(*samples)]
        o_s, o_r, over = (max(each) for each in zip(*comm.allgather(mine)))
        return o_s, o_r, over

    o_s, o_r, _ = trains(patient=True)
    g = trains(patient=False)[2]
    return {
        "pair": pair,
        "L_seconds": max(0.0, round_trip[1] / 2 - o_s - o_r),
        "o_s_seconds": o_s,
        "o_r_seconds": o_r,
        "g_seconds": g,
        "G_seconds_per_byte": (round_trip[1 << 22] - round_trip[1 << 20]) / 2 / ((1 << 22) - (1 << 20)),
    }
