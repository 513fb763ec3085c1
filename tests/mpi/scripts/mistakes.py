"""A mistake of one rank alone: every rank hears of it, within seconds, and none waits for another. Every collective of
the package, every argument, each rank in turn.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check, raises, raises_everywhere
from longshore import BlockPlan, FloorPlan, Region, VirtualComm, ranks

SHAPE = (4 * P, 6)
SECONDS = 20  # on a busy machine; a hang has no end


class Nothing:
    """Of no use for anything."""

    def __repr__(self):
        return "Nothing()"


NOTHING = Nothing()


def each_rank(kind, call, mistakes, *, right, raw=False):
    """`call(value)` everywhere with the right value, but with a mistake on one rank. `raw`: the error may be a
    binding's.
    """
    for value, *words in mistakes:
        for who in range(P):
            given = value if ME == who else right
            text = raises_everywhere(
                kind, lambda: call(given() if callable(given) else given), *words, within_s=SECONDS
            )
            assert f"rank {who}: rank {who}" not in text, text
            if P > 1:
                assert f"rank {who}" in text, (who, text)
            assert raw or "incompatible function arguments" not in text, text


def blocks_and_array(**how):
    blocks = FloorPlan.even(Region.of_shape(SHAPE), P)
    return blocks, ls.XArray(blocks, float, 1, comm=WORLD, **how)


@check
def binding_blocks():
    blocks, u = blocks_and_array()
    v = ls.XArray(blocks, float, 1, comm=WORLD)
    other = ls.XArray(FloorPlan.even(Region.of_shape((4 * P, 8)), P), float, 1, comm=WORLD)
    thin = ls.XArray(blocks, float, 0, comm=WORLD)
    all_blocks = ls.XArray(blocks, float, 1)  # of no rank
    own = [np.zeros(blocks[k].grow(1).shape) for k in blocks.owned_by(ME)]
    frozen = [array.copy() for array in own]
    for array in frozen:
        array.flags.writeable = False
    halo = BlockPlan.halo(blocks, 1)

    def refused(mistakes, right=None):
        each_rank(ls.LongshoreError, lambda value: halo.bind(u, comm=WORLD, **{name: value}), mistakes, right=right)

    lists = [
        (NOTHING,),
        ("words",),
        (5,),
        ([NOTHING],),
        ([np.zeros((2, 2))],),
        ([],),
        (frozen,),
        ({},),
        (np.zeros((6, 8)),),
    ]
    arrays = [(other,), (all_blocks,), *([(thin, "ghost")] if P > 1 else [])]
    each_rank(ls.LongshoreError, lambda value: halo.bind(value, comm=WORLD), [(None,), *lists, *arrays], right=u)
    each_rank(ls.LongshoreError, lambda value: halo.bind(value, ghost=1, comm=WORLD), [(None,), *lists], right=own)
    each_rank(ls.LongshoreError, lambda value: halo.bind(u, value, comm=WORLD), [*lists, *arrays], right=v)
    for name in ("ghost", "destination_ghost"):
        values = [("x",), (-1,), (3,), ((1,),), (NOTHING,), ((1, 2, 3),), (1 << 70,)]
        how = {} if name == "ghost" else {"ghost": 1}
        each_rank(
            ls.LongshoreError,
            lambda value: halo.bind(own, [array.copy() for array in own], comm=WORLD, **how, **{name: value}),
            values,
            right=1,
        )
    each_rank(
        ls.ArgumentError, lambda value: halo.bind(u, comm=WORLD, ghost=value), [(1, "knows its ghost")], right=None
    )

    name = "reduce"
    refused([("sum", "sum"), (3, "reduce"), (b"add",), (NOTHING,)])
    refused([("sum", "sum"), (3, "reduce")], right="add")
    name = "threads"
    refused([(-1, "threads is -1"), (0, "threads is 0; it must be at least 1"), ("x",), (NOTHING,), (1.5,)])
    name = "max_mem"
    refused([("lots", "lots"), (-1,), (0,), ([],), (NOTHING,), (float("nan"),), (1 << 70,)])
    for name in ("proxy", "checked"):
        refused([("yes", name), (3, name), (None, name), (NOTHING, name)], right=False)
    for name in ("aggregate", "preallocate"):
        refused([("yes", name), (3, name), (NOTHING, name)])
    name = "visit"
    refused([("X", "visit"), (3, "visit"), (NOTHING, "visit")])
    name = "node"
    refused([("teleport", "teleport"), (3, "node"), (NOTHING, "node")])
    name = "packet_bytes"
    refused([("x", name), (-1, name), (1 << 70, name), (1.5, name), (NOTHING, name)])
    name = "exchange"
    refused([("mail", "mail"), (3, name), (NOTHING, name)])
    halo.bind(u, comm=WORLD)()


@check
def binding_blocks_otherwise():
    """What is right by itself, but not what the others have been given."""
    if P == 1:
        return
    blocks, u = blocks_and_array()
    v = ls.XArray(blocks, float, 1, comm=WORLD)
    halo = BlockPlan.halo(blocks, 1)

    def differ(call, mistakes, right):
        each_rank(ls.DisagreementError, call, mistakes, right=right)

    differ(lambda value: halo.bind(u, comm=WORLD, reduce=value), [("add",)], None)
    differ(lambda value: halo.bind(u, comm=WORLD, checked=value), [(True,)], False)
    differ(lambda value: halo.bind(u, comm=WORLD, visit=value), [("F",)], None)
    differ(lambda value: halo.bind(u, comm=WORLD, node=value), [("ring",)], "auto")
    differ(lambda value: halo.bind(u, comm=WORLD, aggregate=value), [(False,)], True)
    differ(lambda value: halo.bind(u, comm=WORLD, packet_bytes=value), [(64,)], 0)
    differ(lambda value: halo.bind(u, comm=WORLD, preallocate=value), [(False,)], None)
    differ(lambda value: halo.bind(u, comm=WORLD, exchange=value), [("p2p",)], None)
    differ(lambda value: halo.bind(u, value, comm=WORLD), [(v,)], None)
    differ(lambda value: halo.bind(value, comm=WORLD), [(ls.XArray(blocks, "i8", 1, comm=WORLD), "int64")], u)
    differ(lambda value: halo.bind(value, comm=WORLD), [(ls.XArray(blocks, float, 1, order="F", comm=WORLD),)], u)
    into, grown = BlockPlan.copy_between(blocks, blocks.grow(1)), ls.XArray(blocks.grow(1), float, 1, comm=WORLD)
    differ(lambda value: into.bind(u, value, comm=WORLD), [(grown,)], v)  # both have what the plan writes
    plans = [BlockPlan.halo(blocks, 0), BlockPlan.halo(blocks, 1, corners=False), BlockPlan(blocks, blocks)]
    plans += [BlockPlan.halo(blocks, 1, periodic=(True, False)), BlockPlan.copy_between(blocks, blocks), halo.reverse()]
    differ(lambda plan: plan.bind(u, v, comm=WORLD, reduce="add"), [(plan,) for plan in plans], halo)


@check
def binding_layouts():
    rows, columns = ls.Layout(f"(BLOCK, *) on {P}", SHAPE), ls.Layout(f"(*, CYCLIC(2)) on {P}", SHAPE)
    plan = ls.plan(rows, columns, "f8")
    a, b = ls.empty(rows, "f8", rank=ME), ls.empty(columns, "f8", rank=ME)
    frozen = b.copy()
    frozen.flags.writeable = False
    arrays = [("words",), (NOTHING,), (5,), ([NOTHING],), (np.zeros((2, 2)),), (np.zeros(3, object),), ({"x": a},)]
    arrays += [({1 << 70: a},), ({-1: a},), ({ME: NOTHING},), ({ME: a, P + ME: a},), ({},)]
    each_rank(
        ls.LongshoreError, lambda value: plan.bind(value, b, comm=WORLD), [*arrays, (None,), (a.view("i8"),)], right=a
    )
    if all(columns.local_size(rank) for rank in range(P)):
        each_rank(
            ls.LongshoreError, lambda value: plan.bind(a, value, comm=WORLD), [*arrays, (None,), (frozen,)], right=b
        )

    def refused(mistakes, right=None):
        each_rank(ls.LongshoreError, lambda value: plan.bind(a, b, comm=WORLD, **{name: value}), mistakes, right=right)

    name = "max_mem"
    refused([("lots", "lots"), (-1,), (0,), ([],), (NOTHING,), (1 << 70,)])
    for name in ("alpha", "beta"):
        refused([("x",), ([1, 2], name), (1j, name), (NOTHING,)], right=1.0)
    name = "conjugate"
    refused([("yes", name), (3, name), (NOTHING, name)], right=False)
    name = "placement"
    refused([("mail", "mail"), (3, name), (NOTHING, name)])
    name = "node"
    refused([("teleport", "teleport"), (3, name), (NOTHING, name)], right="auto")
    if P > 1:
        differ = [("alpha", 2.0, None), ("beta", 1.0, None), ("node", "ring", "auto")]
        for name, value, right in differ:
            each_rank(
                ls.DisagreementError,
                lambda value: plan.bind(a, b, comm=WORLD, **{name: value}),
                [(value,)],
                right=right,
            )
        alpha = 2.0 if ME == 0 else None
        text = raises_everywhere(ls.DisagreementError, lambda: plan.bind(a, b, comm=WORLD, alpha=alpha), "alpha: ")
        assert "beta" not in text, text
        others = [ls.plan(rows, columns, "i8"), ls.plan(rows, rows, "f8"), ls.plan(columns, rows, "f8")]
        others += [ls.plan(ls.Layout(f"(BLOCK, *) on {P}, order=F", SHAPE), columns, "f8")]
        stays = [
            ls.plan(layout, layout, "f8") for layout in (rows, columns, ls.Layout(f"(BLOCK, *) on {P}", SHAPE[::-1]))
        ]
        for right, wrong in ((plan, others), (stays[0], stays[1:])):
            each_rank(
                ls.LongshoreError,
                lambda plan: plan.bind(
                    *(ls.empty(side, plan.dtype, rank=ME) for side in (plan.source, plan.destination)), comm=WORLD
                ),
                [(other,) for other in wrong],
                right=right,
            )
    each_rank(ls.ArgumentError, lambda more: plan.bind(a, b, comm=WORLD, **more), [({"speed": 1}, "speed")], right={})
    each_rank(
        ls.ArgumentError, lambda more: ls.bind_together((plan, a, b), comm=WORLD, **more), [({"speed": 1},)], right={}
    )
    plan.bind(a, b, comm=WORLD)()


@check
def redistributing():
    rows, columns = ls.Layout(f"(BLOCK, *) on {P}", SHAPE), ls.Layout(f"(*, CYCLIC(2)) on {P}", SHAPE)
    a, out = ls.empty(rows, "f8", rank=ME), ls.empty(columns, "f8", rank=ME)
    a[...] = ME
    given = {"source": a, "source_layout": rows, "destination_layout": columns, "axes": None, "out": None}
    given |= {"alpha": None, "beta": None, "conjugate": False, "max_mem": None}
    large = ls.Layout(f"(BLOCK, *) on {P}", (4 * P, 7))
    wrong = {
        "source": [(NOTHING,), ("words",), (np.zeros((1, 1)),), (np.zeros(2, object),)],
        "source_layout": [(None,), (NOTHING,), (large,), (ls.Layout(f"(BLOCK, *) on {P + 1}", SHAPE),)],
        "destination_layout": [(None,), (NOTHING,), (large,), (ls.Layout(f"(BLOCK, *) on {P + 1}", SHAPE),)],
        "axes": [((0, 0),), (NOTHING,), ((1,),), ("x",)],
        "out": [(NOTHING,), ("words",), (np.zeros((1, 1)),), (np.zeros_like(out, "f4"),)],
        "alpha": [("x",), (1j,), (NOTHING,)],
        "beta": [(2.0, "out="), ("x",)],
        "conjugate": [("yes",), (3,)],
        "max_mem": [("lots",), (-1,), (NOTHING,)],
    }
    for name, mistakes in wrong.items():
        each_rank(
            ls.LongshoreError,
            lambda value: ls.redistribute(comm=WORLD, **(given | {name: value})),
            mistakes,
            right=given[name],
            raw=True,
        )
    ls.redistribute(comm=WORLD, **given)


@check
def element_types_that_some_do_not_know():
    """Who owns nothing has no array that would tell it what an element is, and asks the others."""
    one, rows = ls.Layout("(*, *) on 1", SHAPE), ls.Layout(f"(BLOCK, *) on {P}", SHAPE)
    whole = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)
    for dtype in ("f4", "i2", np.dtype([("a", "<i4"), ("b", "<f8")])):
        dealt = ls.redistribute(whole.astype(dtype) if ME == 0 else None, one, rows, comm=WORLD)
        assert dealt.dtype == dtype, dealt.dtype
        back = ls.redistribute(dealt, rows, one, comm=WORLD)
        assert (back is None) == (ME > 0) and (ME > 0 or np.array_equal(back, whole.astype(dtype))), (dtype, back)
    raises_everywhere(
        ls.ArgumentError, lambda: ls.redistribute(None, one, rows, comm=WORLD), "nobody knows", within_s=SECONDS
    )
    if P == 1:
        return
    # Some know and some ask, one of those who know does not bind, or not that.
    for wrong in ({"max_mem": "lots"}, {"axes": (0, 0)}, {"destination_layout": "(x"}):
        given = {"source_layout": one, "destination_layout": rows} | (wrong if ME == 0 else {})
        raises_everywhere(
            ls.LongshoreError,
            lambda: ls.redistribute(whole if ME == 0 else None, comm=WORLD, **given),
            "rank 0",
            within_s=SECONDS,
        )
    two = ls.Layout("(BLOCK, *) on 2", SHAPE)
    raises_everywhere(
        ls.DisagreementError,
        lambda: ls.redistribute(
            np.zeros(two.local_shape(ME), "f4" if ME else "f8") if ME < 2 else None, two, rows, comm=WORLD
        ),
        "float64",
        within_s=SECONDS,
    )
    dealt = ls.redistribute(whole if ME == 0 else None, one, rows, comm=WORLD)
    assert np.array_equal(dealt, whole[4 * ME : 4 * ME + 4]), dealt


@check
def given_up_and_gone():
    """Who lets go of a mover, and then of its communicator, leaves a word that the others still find."""
    if P == 1:
        return
    rows, columns = ls.Layout(f"(BLOCK, *) on {P}", SHAPE), ls.Layout(f"(*, CYCLIC(2)) on {P}", SHAPE)
    for node in ("auto", "direct", "ring"):
        comm = WORLD.Dup()
        a, b = ls.empty(rows, "f8", rank=ME), ls.empty(columns, "f8", rank=ME)
        mover = ls.plan(rows, columns, "f8").bind(a, b, comm=comm, node=node)
        mover()
        WORLD.Barrier()
        if ME == P - 1:
            del mover
            comm.Free()
            WORLD.Barrier()
        else:
            time.sleep(0.3)
            raises(ls.TransportError, mover, f"rank {P - 1} has given up this move")
            del mover
            WORLD.Barrier()
            comm.Free()


@check
def stopped_or_slow_is_not_dead():
    if P == 1:
        return
    rows, columns = ls.Layout(f"(BLOCK, *) on {P}", SHAPE), ls.Layout(f"(*, CYCLIC(2)) on {P}", SHAPE)
    plan = ls.plan(rows, columns, "f8")
    for node, stop in (("auto", True), ("messages", False)):
        a, b = ls.empty(rows, "f8", comm=WORLD), ls.empty(columns, "f8", comm=WORLD)
        a[...] = ME
        mover = plan.bind(a, b, comm=WORLD, node=node)
        WORLD.Barrier()
        begin = time.monotonic()
        if ME == 1 and stop:
            subprocess.Popen(["sh", "-c", f"sleep 3; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)
        elif ME == 1:
            time.sleep(3)
        mover()
        assert time.monotonic() - begin > 2
        assert (b == np.repeat(np.arange(P), 4)[:, None]).all()


@check
def two_threads():
    """Whoever uses a mover that another thread is waiting with is refused; who waits gets what it waits for."""
    blocks, u = blocks_and_array()
    for how in ({}, {"node": "messages"}, {"proxy": True}, {"checked": True}, {"proxy": True, "checked": True}):
        mover = BlockPlan.halo(blocks, 1).bind(u, comm=WORLD, **how)
        mover()
        WORLD.Barrier()
        if P > 1 and ME == 1:
            WORLD.recv(source=0)  # which has to wait until then
        mover.start()
        refused = []

        def call(what):
            try:
                what()
            except ls.ArgumentError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=call, args=[what]) for what in (mover.wait, mover.wait, mover.test)]
        for thread in threads:
            thread.start()
        if P > 1 and ME == 0:
            begin = time.monotonic()
            while not refused and time.monotonic() - begin < 5:
                time.sleep(0.01)
            WORLD.send(None, 1)
        for thread in threads:
            thread.join()
        if P > 1 and ME == 0:
            assert any("another thread is in" in words for words in refused), refused
        with contextlib.suppress(ls.ArgumentError):
            mover.wait()  # if all have been refused
        WORLD.Barrier()


@check
def gone_before_it_is_asked():
    """A mover that is destroyed in the middle of a move: the others hear of it."""
    if P == 1:
        return
    blocks, u = blocks_and_array()
    for who in range(P):
        mover = BlockPlan.halo(blocks, 1).bind(u, comm=WORLD)
        mover()
        if ME == who:
            mover = None
            WORLD.Barrier()
            continue
        WORLD.Barrier()
        waits = abs(ME - who) == 1
        try:
            if waits:
                mover()
        except ls.TransportError as error:
            assert f"rank {who} has given up this move" in str(error), error
        else:
            assert not waits
    WORLD.Barrier()


def dropped_by_rank_0(node, shared):
    """A mover that brings half of rank 0's array to rank 1, where rank 0 has started and dropped it, with the array."""
    n = 1 << 20
    whole, halves = ls.Layout(f"(CYCLIC({n})) on 2", (n,)), ls.Layout(f"(CYCLIC({n // 2})) on 2", (n,))
    source, target = (ls.empty(side, "f8", **({"comm": WORLD} if shared else {"rank": ME})) for side in (whole, halves))
    if ME == 0:
        source[:] = 7
    mover = ls.plan(whole, halves, "f8").bind(source, target, comm=WORLD, node=node)
    WORLD.Barrier()
    if ME == 0:
        mover.start()
        mover = source = None
    WORLD.Barrier()
    return mover, target


@check
def arrays_of_a_mover_that_was_dropped():
    """Who reads them hears that they are gone, and what MPI sends of them stays until it is sent."""
    if P != 2:
        return
    mover, _ = dropped_by_rank_0("auto", shared=True)
    if ME == 1:
        raises(ls.TransportError, mover, "rank 0 has given up this move")
    WORLD.Barrier()
    mover, target = dropped_by_rank_0("messages", shared=False)
    if ME == 1:
        mover()
        assert (target == 7).all()
    WORLD.Barrier()


@check
def an_array_that_is_not_what_it_was():
    """The rank whose array it is hears that, and who waits for it hears of it, while the mover is there."""
    if P != 2:
        return
    rows, columns = ls.Layout("(BLOCK, *) on 2", SHAPE), ls.Layout("(*, BLOCK) on 2", SHAPE)
    for node in ("auto", "messages"):
        source, target = np.zeros(rows.local_shape(ME)), np.zeros(columns.local_shape(ME))
        mover = ls.plan(rows, columns, "f8").bind(source, target, comm=WORLD, node=node)
        mover()
        if ME == 0:
            source.resize((1, 1), refcheck=False)
            raises(ls.LocalArrayError, mover, "was resized")
        else:
            raises(ls.TransportError, mover, "rank 0 has given up this move")
            raises(ls.ArgumentError, mover, "bind the mover anew")
        WORLD.Barrier()


@check
def not_collective():
    """Whoever makes a mistake hears of it; nobody else has to be there."""
    if ME == P - 1:
        blocks = FloorPlan.even(Region.of_shape(SHAPE), P)
        rows = ls.Layout(f"(BLOCK, *) on {P}", SHAPE)
        for call in (
            lambda: ls.XArray(blocks, object, comm=WORLD),
            lambda: ls.XArray(blocks, float, -1, comm=WORLD),
            lambda: ls.XArray(blocks.with_owners([P] * P), float, comm=WORLD),
            lambda: ls.XArray(blocks, float, comm="world"),
            lambda: ls.empty(rows, object, comm=WORLD),
            lambda: ls.empty(rows, float, comm="world"),
            lambda: BlockPlan.halo(blocks, 1).bind([], comm="world"),
        ):
            try:
                call()
            except ls.LongshoreError:
                continue
            raise AssertionError("no error")


@check
def virtual_communicators():
    numbers = [(NOTHING,), ("x",), (1.5,), (None,), (1 << 70,)]
    each_rank(ls.LongshoreError, lambda value: ranks.split_ranks(WORLD, value, 0), numbers, right=0)
    each_rank(ls.LongshoreError, lambda value: ranks.split_ranks(WORLD, 0, value), numbers, right=0)
    everybody = VirtualComm.over(WORLD)
    each_rank(ls.LongshoreError, lambda value: everybody.split(value), numbers, right=0)
    each_rank(ls.LongshoreError, lambda value: everybody.split(0, value), numbers, right=0)
    contexts = [(NOTHING,), ("x",), (1 << 70,), (1 << 31,), (-1, "context"), (everybody.contexts, "context")]
    contexts += [(0, "context")] if P == 1 else [(0, "context"), (8, "context")]
    each_rank(ls.LongshoreError, lambda value: everybody.split(0, context=value), contexts, right=7)
    each_rank(
        ls.LongshoreError, lambda value: ranks.rank_map_of(WORLD, value), [(NOTHING,), (None,), ("x",)], right=WORLD
    )
    everybody.Free()
