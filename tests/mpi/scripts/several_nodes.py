"""What goes between nodes and what stays within them; and what MPI's messages alone carry, seen where it can be: in the
counters of a node's link.

test_nodes.py starts this on nodes of its own making (lab/longshore_lab/nodes.py); with ranks that only claim to be on
several nodes, there is no link to look at.
"""

import itertools
import os
import time

import longshore as ls
import numpy as np
from checks import ME, NODES, WORLD, P, check, raises, raises_everywhere
from longshore import BlockPlan, FloorPlan, Region
from longshore._core import node_volume

LINK = "ls0"
MOST_BYTES = 1.08  # that leave a node for each byte of payload
SHAPE = (1024, 3072)  # of doubles: 24 MiB


def sent():
    """What has left this node by its link; None where there is none."""
    with open("/proc/net/dev") as lines:
        return next((int(line.split()[9]) for line in lines if line.split()[0] == f"{LINK}:"), None)


@check
def as_asked():
    """As many ranks on each node as asked, each node with processes, memory and a host name of its own."""
    counts = [int(n) for n in os.environ["LONGSHORE_LAUNCHED"].split()[1].split("+")]
    assert [NODES.count(first) for first in sorted(set(NODES))] == counts, NODES
    assert sorted(NODES) == NODES
    if sent() is not None:
        for own in (os.uname().nodename, os.stat("/proc/self/ns/pid").st_ino, os.stat("/dev/shm").st_dev):
            told = WORLD.allgather(own)
            assert [told.index(other) for other in told] == NODES, told


def payload(plan):
    """For each node, by its lowest rank: the bytes that its ranks have for ranks of other nodes."""
    out = dict.fromkeys(NODES, 0)
    for rank in range(P):
        for motion in plan.sends(rank):
            if NODES[rank] != NODES[motion.destination]:
                out[NODES[rank]] += motion.elements * plan.itemsize
    return out


def in_messages(mover):
    """What this rank sends in MPI messages, by the mover's own words."""
    return sum(int(line.split()[0]) for line in mover.path.splitlines() if "sent in MPI messages" in line)


def on_the_link(move, expected, words, least=8 << 20):
    """A move of so many bytes between nodes has them on the links, and little else."""
    WORLD.Barrier()
    before = sent()
    WORLD.Barrier()
    move()
    WORLD.Barrier()
    told = WORLD.allgather(None if before is None else sent() - before)
    assert sum(expected.values()) >= least, (words, expected)
    for first, count in expected.items():
        if told[first] is not None:
            # Who sends next to nothing still acknowledges what comes.
            assert count <= told[first] <= MOST_BYTES * max(count, 1 << 18), (words, first, count, told[first])


def plans():
    """Contiguous, cyclic and transposed."""
    rows = ls.Layout(f"(BLOCK, *) on {P}", SHAPE)
    backwards = ", ".join(map(str, reversed(range(P))))
    cuts = [*[64] * (P - 1), SHAPE[0] - 64 * (P - 1)]
    yield "blocks", ls.plan(rows, ls.Layout(f"(BLOCK, *) on {P}, ranks=[{backwards}]", SHAPE), "f8")
    yield "gen_block", ls.plan(rows, ls.Layout(f"(GEN_BLOCK({', '.join(map(str, cuts))}), *) on {P}", SHAPE), "f8")
    yield "cyclic", ls.plan(rows, ls.Layout(f"(CYCLIC, *) on {P}", SHAPE), "f8")
    yield "columns", ls.plan(rows, ls.Layout(f"(*, CYCLIC(3)) on {P}", SHAPE), "f8")
    yield "transposed", ls.plan(rows, ls.Layout(f"(BLOCK, *) on {P}", SHAPE[::-1]), "f8", (1, 0))
    most = ls.Layout(f"(CYCLIC(7), BLOCK) on {P - 1}x1, ranks=1:{P}", SHAPE)  # not on rank 0
    yield "unequal grids", ls.plan(rows, most, "f8")


@check
def payload_is_what_the_links_carry():
    whole = np.arange(np.prod(SHAPE), dtype="f8").reshape(SHAPE)
    for k, (words, plan) in enumerate(plans()):
        expected = payload(plan)
        for node, first in enumerate(expected):
            if NODES.count(first) == P / len(expected):  # the model knows nodes of equal numbers of ranks
                volume = node_volume(plan, node, P // len(expected))
                assert volume["bytes_out"] == expected[first], (words, volume, expected)
        shared = {"comm": WORLD} if k % 2 else {"rank": ME}
        source = ls.empty(plan.source, "f8", **shared)
        source[...] = whole[plan.source.indices(ME)]
        target = ls.empty(plan.destination, "f8", **shared) if ME in plan.destination.ranks else None
        mover = plan.bind(source, target, comm=WORLD)
        told = dict.fromkeys(NODES, 0)
        for rank, count in enumerate(WORLD.allgather(in_messages(mover))):
            told[NODES[rank]] += count
        assert told == expected, (words, told, expected)
        on_the_link(mover, expected, words)
        if target is not None:
            moved = whole.T if words == "transposed" else whole
            np.testing.assert_array_equal(target, moved[plan.destination.indices(ME)], err_msg=words)


@check
def strips_take_the_link():
    """A loop over what a rank of another node has, while that does something else."""
    n = 1 << 18
    mine = np.arange(float(n)) + ME
    peers = [next(r % P for r in range(rank + 1, rank + P) if NODES[r % P] != NODES[rank]) for rank in range(P)]
    expected = dict.fromkeys(NODES, 0)
    for peer in peers:
        expected[NODES[peer]] += mine.nbytes
    for schedule in ("vectorized", "fixed(32768, 2)", "variable(4096, 0.5)"):
        with ls.Window(mine, comm=WORLD) as window:
            window.fence()

            def add_up():
                total = sum(float(strip.data.sum()) for strip in ls.strips(window[peers[ME]], schedule))
                assert total == np.arange(float(n)).sum() + n * peers[ME], schedule

            on_the_link(add_up, expected, schedule, P * mine.nbytes)
            window.fence()


WAYS = [
    {"max_mem": "1 MiB"}, {"exchange": "alltoall"}, {"exchange": "neighborhood"}, {"exchange": "p2p"},
    {"packet_bytes": 1 << 16}, {"proxy": True},
]  # fmt: skip


@check
def payload_of_blocks():
    """Two fields of large blocks, copied to other blocks in every way."""
    domain = Region.of_shape((1024, 1024))
    numbers = np.arange(domain.size, dtype=float).reshape(domain.shape)
    edges = [domain.shape[0] * rank // P for rank in range(P + 1)]
    spans = list(itertools.pairwise(edges))
    rows = FloorPlan([Region((a, 0), (b, 1024)) for a, b in spans], range(P))
    columns = FloorPlan([Region((0, a), (1024, b)) for a, b in spans], range(P))
    expected = dict.fromkeys(NODES, 0)
    for a in range(P):
        elsewhere = [columns[b] for b in range(P) if NODES[a] != NODES[b]]
        expected[NODES[a]] += 2 * 8 * sum((rows[a] & block).size for block in elsewhere)
    sources, targets = (tuple(ls.XArray(side, float, 1, comm=WORLD) for _ in range(2)) for side in (rows, columns))
    for salt, way in enumerate(WAYS):
        for array in sources:
            array[ME].interior[...] = salt + numbers[rows[ME].slices(domain)]
        mover = BlockPlan.copy_between(rows, columns).bind(sources, targets, comm=WORLD, **way)
        on_the_link(mover, expected, way, least=4 << 20)
        for array in targets:
            want = salt + numbers[columns[ME].slices(domain)]
            np.testing.assert_array_equal(array[ME].interior, want, err_msg=str(way))


@check
def shared_arrays_stay_within_their_nodes():
    """Between arrays that a node's ranks share there are no messages, and none of another node's is looked at."""
    rows, columns = ls.Layout(f"(BLOCK, *) on {P}", (8 * P, 64 * P)), ls.Layout(f"(*, BLOCK) on {P}", (8 * P, 64 * P))
    plan = ls.plan(rows, columns, "f8")
    a, b = ls.empty(rows, "f8", comm=WORLD), ls.empty(columns, "f8", comm=WORLD)
    a[...] = ME
    alone = NODES.count(NODES[ME]) == 1
    for node, words in (("auto", "straight"), ("direct", "straight"), ("ring", "rings"), ("messages", "messages")):
        b[...] = -1
        mover = plan.bind(a, b, comm=WORLD, node=node)
        assert (words in mover.path) != (alone and words != "messages"), (node, mover.path)
        assert "sent in MPI messages" in mover.path
        elsewhere = sum(n.elements * 8 for n in plan.sends(ME) if NODES[n.destination] != NODES[ME])
        if node != "messages":
            assert in_messages(mover) == elsewhere, mover.path
        mover()
        assert (b == np.repeat(np.arange(P), 8)[:, None]).all(), node


@check
def ranks_of_different_nodes_disagree():
    """The last rank, alone on its node or with others there, is given something else: all ranks hear who and what."""
    rows, columns = ls.Layout(f"(BLOCK, *) on {P}", (4 * P, 6)), ls.Layout(f"(*, CYCLIC(2)) on {P}", (4 * P, 6))
    other = ls.Layout(f"(*, CYCLIC) on {P}", (4 * P, 6))
    for odd in (0, P - 1):
        target = other if ME == odd else columns
        a, b = ls.empty(rows, "f8", comm=WORLD), ls.empty(target, "f8", comm=WORLD)
        refused = lambda **options: ls.plan(rows, target, "f8").bind(a, b, comm=WORLD, **options)  # noqa: E731
        raises_everywhere(ls.DisagreementError, refused, f"rank {odd} has {other}", f"have {columns}", within_s=20)
        target = columns
        b = ls.empty(columns, "f8", comm=WORLD)
        for name, value in (("alpha", 2.0), ("node", "ring"), ("reduce", "add")):
            given = {name: value} if ME == odd else {}
            raises_everywhere(ls.DisagreementError, lambda: refused(**given), f"rank {odd} ", within_s=20)
        given = {"max_mem": -1} if ME == odd else {}
        raises_everywhere(ls.ArgumentError, lambda: refused(**given), f"rank {odd}", within_s=20)
    ls.plan(rows, columns, "f8").bind(a, b, comm=WORLD)()


@check
def a_move_that_fails_on_one_rank():
    """All who wait for it hear of it, on other nodes too; movers beside it are none the worse."""
    rows, columns = (ls.Layout(f"({dims}) on {P}", (64 * P, 64 * P)) for dims in ("BLOCK, *", "*, BLOCK"))
    plan = ls.plan(rows, columns, "f8")
    good, to = np.full(rows.local_shape(ME), float(ME)), np.empty(columns.local_shape(ME))
    beside = plan.bind(good, to, comm=WORLD)
    for k, way in enumerate(({"checked": True}, {"max_mem": "4 KiB"}, {"exchange": "alltoall"})):
        who = (0, P - 1)[k % 2]
        source, target = good.copy(), np.empty(columns.local_shape(ME))
        mover = plan.bind(source, target, comm=WORLD, **way)
        mover()
        begin = time.monotonic()
        if ME == who:
            source.resize((1, 1), refcheck=False)
            raises(ls.LocalArrayError, mover, "was resized")
        else:
            raises(ls.TransportError, mover, "has given up this move")
        assert time.monotonic() - begin < 20, way
        to[...] = -1
        beside()
        assert (to == np.repeat(np.arange(P), 64)[:, None]).all(), way
