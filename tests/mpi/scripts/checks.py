"""What the scripts of checks have in common.

A check is a function marked with `@check`, collective over all ranks of the job. `run_checks.py` runs many of them in
one job, so a check leaves the process as it found it: limits, folders and functions that it replaces for a while are
put back.
"""

import contextlib
import os
import tempfile
import time

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
P, ME = WORLD.size, WORLD.rank
CHECKS = {}


def nodes_of(comm):
    """Of each rank, the lowest rank that is on its node."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    first = node.allreduce(comm.rank, MPI.MIN)
    node.Free()
    return comm.allgather(first)


NODES = nodes_of(WORLD)
ONE_NODE = not any(NODES)


def check(f):
    """Marks a check, which takes numbers or nothing. `shared_jobs.py` finds it by this word in the script's text."""
    CHECKS[f"{f.__module__}.{f.__name__}"] = f
    return f


def raises(kind, work, *words):
    """The text of the error, which has these words."""
    try:
        work()
    except kind as error:
        text = str(error)
    else:
        raise AssertionError(f"no {kind.__name__} about {words}")
    for word in words:
        assert word in text, (word, text)
    return text


def raises_everywhere(kind, work, *words, comm=WORLD, within_s=60):
    """All ranks must see the same error, soon."""
    begin = time.monotonic()
    text = raises(kind, work, *words)
    assert time.monotonic() - begin < within_s, "the error took too long"
    texts = comm.allgather(text)
    assert len(set(texts)) == 1, texts
    return text


@contextlib.contextmanager
def new_folder():
    """Collective. All ranks are in a new empty folder, which goes afterwards; that of a killed job stays in TMPDIR."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() if ME == 0 else contextlib.nullcontext() as folder:
        os.chdir(WORLD.bcast(folder))
        try:
            yield
            WORLD.Barrier()
        finally:
            os.chdir(before)
