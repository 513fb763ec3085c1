"""Ranks that are killed while others wait for them: those hear of it within seconds, whatever they wait in.

    mpiexec -n 16 python dying.py FOLDER

Ranks 0 and 1 wait; of the others, one a way, each is killed in its turn. The launcher would end everybody then, so
what it starts is a process that stays, and the rank its child. Nobody calls MPI_Finalize, which would wait for the
dead. A file FOLDER/WAY-RANK has what each rank that waited was told.
"""

import os
import signal
import sys
import time
import traceback
from pathlib import Path

folder = Path(sys.argv[1])
if child := os.fork():
    status = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # it stays a zombie, which has ended too
    if status.si_code == os.CLD_KILLED:
        while not (folder / "done").exists():
            time.sleep(0.05)
        os._exit(0)
    (folder / "done").touch()
    os._exit(status.si_status)

import longshore as ls  # noqa: E402
import numpy as np  # noqa: E402
from longshore import BlockPlan, FloorPlan, Region  # noqa: E402
from mpi4py import MPI  # noqa: E402

SECONDS = 15  # on a busy machine
SHAPE = (18, 40)
WAITING, VICTIM = (0, 1), 2  # of the three of a way


def halo(comm, **options):
    blocks = FloorPlan.even(Region.of_shape(SHAPE), 3)
    u = ls.XArray(blocks, float, 1, comm=comm)
    return BlockPlan.halo(blocks, 1, periodic=(True, True)).bind(u, comm=comm, **options)


def transpose(comm, node, shared):
    rows, columns = ls.Layout("(BLOCK, *) on 3", SHAPE), ls.Layout("(*, BLOCK) on 3", SHAPE)
    how = {"comm": comm} if shared else {"rank": comm.rank}
    a, b = ls.empty(rows, "f8", **how), ls.empty(columns, "f8", **how)
    return ls.plan(rows, columns, "f8").bind(a, b, comm=comm, node=node)


def ghosts(comm):
    plan = ls.Directory([comm.rank, comm.rank + 10], comm=comm).gather_points([(comm.rank + 1) % 3])
    return plan.bind(ls.XArray(plan.source, float, comm=comm), comm=comm)


def test_again_and_again(mover):
    mover.start()
    while not mover.test():
        pass


def start_and_wait(mover):
    mover.start()
    mover.wait()


def move(mover):
    mover()


def take_arrivals(mover):
    mover.start()
    for _ in mover.arrivals():
        pass


def window(comm):
    """Over memory of its owner's alone, of which all have got something."""
    opened = ls.Window(np.arange(1000.0) + comm.rank, comm=comm)
    opened.__class__ = CalledWindow
    return opened


class CalledWindow(ls.Window):
    def __call__(self):
        assert self[VICTIM].get()[0] == VICTIM


def get_again_and_again(window):
    while True:
        window()


# How a mover is bound, and what is called of it.
WAYS = {
    "binding": (halo, None),
    "planning": (ghosts, None),
    "direct": (lambda comm: transpose(comm, "auto", True), start_and_wait),
    "tested": (lambda comm: transpose(comm, "auto", True), test_again_and_again),
    "ring": (lambda comm: transpose(comm, "ring", False), move),
    "messages": (lambda comm: transpose(comm, "messages", False), start_and_wait),
    "packets": (lambda comm: halo(comm, node="messages", packet_bytes=64), move),
    "blocks": (halo, move),
    "arrivals": (halo, take_arrivals),
    "checked": (lambda comm: halo(comm, checked=True), move),
    "proxy": (lambda comm: halo(comm, proxy=True), start_and_wait),
    "getting": (window, get_again_and_again),
    "fence": (window, lambda window: window.fence()),
    "alltoall": (lambda comm: halo(comm, node="messages", exchange="alltoall"), move),
}


def wait_for(path):
    while not path.exists():
        time.sleep(0.02)  # without MPI, which would take the processor


def carry_out(way, comm):
    bind, call = WAYS[way]
    mover = bind(comm)
    mover()
    comm.Barrier()
    if comm.rank == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    try:
        call(mover) if call else bind(comm)
    except ls.TransportError as error:
        text, took = str(error), time.monotonic() - begin
    else:
        raise AssertionError("no error")
    assert took < SECONDS, (took, text)
    written = folder / f"{way}-{comm.rank} being written"
    written.write_text(f"{took:.1f} s, {text}")
    written.rename(folder / f"{way}-{comm.rank}")
    if comm.rank == 0:
        wait_for(folder / f"{way}-1")


def main():
    rank = MPI.COMM_WORLD.rank
    everybody = MPI.COMM_WORLD.Get_group()
    for k, way in enumerate(WAYS):
        if rank not in (*WAITING, VICTIM + k):
            continue
        if rank == 0:
            (folder / f"{way}-begins").touch()
        wait_for(folder / f"{way}-begins")
        comm = MPI.COMM_WORLD.Create_group(everybody.Incl([*WAITING, VICTIM + k]), k)
        carry_out(way, comm)
    if rank == 1:
        wait_for(folder / f"{list(WAYS)[-1]}-0")


try:
    main()
except BaseException:
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)
os._exit(0)
