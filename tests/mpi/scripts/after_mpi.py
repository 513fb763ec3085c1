"""Whatever there is when MPI is finalised says so when it is called afterwards, or does without. The process goes on.

Each rank writes a file, RANK in the folder that is given: what was called, and what it said."""

import sys
from pathlib import Path

import longshore as ls
import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
ME, P = WORLD.rank, WORLD.size
PEER = (ME + 1) % P
ROWS, COLUMNS = ls.Layout(f"(BLOCK, *) on {P}", (4 * P, 4)), ls.Layout(f"(*, CYCLIC) on {P}", (4 * P, 4))
PLAN = ls.plan(ROWS, COLUMNS, float)
SOURCE, DESTINATION = np.ones(ROWS.local_shape(ME)), np.zeros(COLUMNS.local_shape(ME))
CALLS = {}
TRIES = 50  # what looks for other moves that are under way does so now and then


def movers():
    ways = {
        "automatic": {},
        "rings": {"node": "ring"},
        "messages": {"node": "messages"},
        "collective": {"node": "messages", "exchange": "alltoall"},
        "proxy": {"node": "messages", "proxy": True},
        "checked": {"checked": True},
    }
    for name, way in ways.items():
        source, destination = ls.empty(ROWS, float, comm=WORLD), ls.empty(COLUMNS, float, comm=WORLD)
        mover = PLAN.bind(source, destination, comm=WORLD, **way)
        mover()
        CALLS[f"mover: {name}"] = lambda mover=mover: [mover() for _ in range(TRIES)]
    under_way = PLAN.bind(SOURCE, DESTINATION, comm=WORLD, node="messages")
    under_way.start()
    CALLS["mover: under way"] = under_way.wait
    blocks = ls.FloorPlan.balanced(ls.regions.split_to_size(ls.Region.of_shape((16, 16)), 8), ranks=P)
    grids = ls.XArray(blocks, float, ghost=1, comm=WORLD)
    halo = ls.BlockPlan.halo(blocks, 1).bind(grids, comm=WORLD, node="messages")
    CALLS["halo"] = halo
    CALLS["gather of blocks"] = lambda: ls.gather(grids, comm=WORLD)


def windows():
    mine = np.arange(9.0)
    for name, way in {
        "here": {},
        "thread": {"node": "messages"},
        "calls": {"node": "messages", "progress": "calls"},
    }.items():
        window = ls.Window(mine, comm=WORLD, **way)
        handle, strips = window[PEER].nbget(), iter(ls.strips(window[PEER], "fixed(2)"))
        next(strips)
        calls = {
            f"window, {name}: handle": handle.wait,
            f"window, {name}: strips": lambda strips=strips: list(strips),
            f"window, {name}: get": window[PEER].get,
            f"window, {name}: put": lambda window=window: window[PEER].put(mine),
            f"window, {name}: nbget": window[PEER].nbget,
            f"window, {name}: fence": window.fence,
            f"window, {name}: close": window.close,
        }
        CALLS.update(calls)


def virtual_communicators():
    everybody = ls.VirtualComm.over(WORLD)
    for name, virtual in {"all": everybody, "some": everybody.split(ME % 2)}.items():
        virtual.allreduce(1)
        request, got = virtual.Irecv(np.zeros(1), source=0, tag=7), np.zeros(1)
        one = {
            "send": lambda of: of.send(1, 0),
            "Send": lambda of: of.Send(got, 0),
            "isend": lambda of: of.isend(1, 0),
            "Isend": lambda of: of.Isend(got, 0),
            "recv": lambda of: of.recv(source=0),
            "Recv": lambda of: of.Recv(got),
            "irecv": lambda of: of.irecv(source=0),
            "Irecv": lambda of: of.Irecv(got),
            "sendrecv": lambda of: of.sendrecv(1, 0),
            "Sendrecv": lambda of: of.Sendrecv(got, 0, recvbuf=np.zeros(1)),
            "split": lambda of: of.split(0),
            "allreduce": lambda of: of.allreduce(1),
            "comm": lambda of: of.comm,
            "Test": lambda _, request=request: request.Test(),
            "wait": lambda _, request=request: request.wait(),
        }
        for call, f in one.items():
            CALLS[f"virtual communicator of {name}: {call}"] = lambda f=f, virtual=virtual: f(virtual)


def everything_else():
    directory, map = ls.Directory([ME], comm=WORLD), ls.RankMap([0], P)
    group, datatype = WORLD.Get_group(), MPI.INT.Create_vector(3, 1, 2)
    relation = ls.AddressRelation.from_indices(range(4), range(4), np.dtype(float))
    ls.redistribute(SOURCE, ROWS, COLUMNS, out=DESTINATION, comm=WORLD)
    CALLS.update(
        {
            "Directory": lambda: ls.Directory([ME], comm=WORLD),
            "find": lambda: directory.find([0]),
            "gather_points": lambda: directory.gather_points([0]),
            "take": lambda: ls.take(SOURCE, ROWS, [1], comm=WORLD),
            "redistribute": lambda: ls.redistribute(SOURCE, ROWS, COLUMNS, out=DESTINATION, comm=WORLD),
            "gather": lambda: ls.gather(SOURCE, ROWS, comm=WORLD),
            "scatter": lambda: ls.scatter(np.ones(ROWS.shape), ROWS, comm=WORLD),
            "empty": lambda: ls.empty(ROWS, float, comm=WORLD),
            "bind": lambda: PLAN.bind(SOURCE, DESTINATION, comm=WORLD),
            "bind_together": lambda: ls.bind_together((PLAN, SOURCE, DESTINATION), comm=WORLD),
            "Window": lambda: ls.Window(SOURCE, comm=WORLD),
            "VirtualComm": lambda: ls.VirtualComm.over(WORLD),
            "rank_map_of": lambda: ls.ranks.rank_map_of(WORLD, WORLD),
            "rank_map_of group": lambda: ls.ranks.rank_map_of(group, WORLD),
            "to_group": lambda: ls.ranks.to_group(map, WORLD),
            "create_comm": lambda: ls.ranks.create_comm(map, WORLD),
            "split_ranks": lambda: ls.ranks.split_ranks(WORLD, 0),
            "node_aware_order": lambda: ls.ranks.node_aware_order(WORLD),
            "from_mpi_datatype": lambda: ls.from_mpi_datatype(datatype),
            "to_mpi_datatype": lambda: ls.to_mpi_datatype(relation),
            "calibrate": lambda: ls.tune.calibrate(WORLD, quick=True),
            "save": lambda: ls.save("a.npy", SOURCE, ROWS, comm=WORLD),
            "load": lambda: ls.load("a.npy", ROWS, comm=WORLD),
            "move": lambda: ls.move("a.npy", "b.npy", comm=WORLD),
        }
    )


for prepare in (movers, windows, virtual_communicators, everything_else):
    prepare()
MPI.Finalize()
with (Path(sys.argv[1]) / str(ME)).open("w") as said:
    for name, call in CALLS.items():
        print(name, end=": ", file=said, flush=True)
        try:
            call()
            print("done", file=said)
        except ls.LongshoreError as error:
            print(error, file=said)
    print("that is all", file=said)
