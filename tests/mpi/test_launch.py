"""The launcher itself: as many ranks as asked, on the MPI asked for, and never longer than allowed."""

import subprocess
import time
from pathlib import Path

import pytest
from launch import families, launch

COUNTS_RANKS = """
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(1)
if world.rank == 0:
    print(total, MPI.Get_library_version().split()[0])
"""

HANGS = """
import os, pathlib, sys, time
from mpi4py import MPI
(pathlib.Path(sys.argv[1]) / str(os.getpid())).touch()
if MPI.COMM_WORLD.rank == 0:
    MPI.COMM_WORLD.recv(source=1)  # never sent
time.sleep(600)
"""


@pytest.fixture
def program(tmp_path):
    def write(text):
        (tmp_path / "program.py").write_text(text)
        return tmp_path / "program.py"

    return write


# At other numbers of ranks, a check of scripts/launched.py.
@pytest.mark.parametrize("family", families())
def test_as_many_ranks_as_asked(family, program):
    done = launch(family, 3, program(COUNTS_RANKS))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3", {"mpich": "MPICH", "openmpi": "Open"}[family]]


@pytest.mark.parametrize("family", families())
def test_a_hang_ends_at_the_time_limit_and_takes_its_ranks_along(family, program, tmp_path):
    pids = tmp_path / "pids"
    pids.mkdir()
    for limit in (3, 8, 60):  # a busy machine may take long to start three ranks
        with pytest.raises(subprocess.TimeoutExpired):
            launch(family, 3, program(HANGS), pids, timeout=limit)
        ranks = [path.name for path in pids.iterdir()]
        if len(ranks) >= 3:
            break
    assert len(ranks) >= 3
    deadline = time.monotonic() + 60
    while alive := [pid for pid in ranks if running(pid)]:
        assert time.monotonic() < deadline, f"still running: {alive}"
        time.sleep(0.1)


def running(pid):
    """Whether a process is there and has not ended (a zombie has)."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_failing_rank_fails_the_run(program):
    for family in families():
        assert launch(family, 2, program("import mpi4py.MPI, sys; sys.exit(3)")).returncode != 0


AFTER_MPI = """
import longshore as ls, numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
layout = ls.Layout("(BLOCK, *) on 1", (4, 4))
if world.rank == 0:
    MPI.Finalize()
    for call in (ls.redistribute, ls.empty):
        try:
            call(*((np.ones((4, 4)), layout, layout) if call is ls.redistribute else (layout, float)), comm=world)
        except ls.ArgumentError as error:
            print(error)
"""


@pytest.mark.parametrize("family", families())
def test_a_call_after_mpi_is_an_error_and_not_the_end(family, program):
    done = launch(family, 1, program(AFTER_MPI))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["MPI is finalised already"] * 2


MOVES_AFTER_MPI = """
import sys
import longshore as ls, numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
rows, columns = (ls.Layout(text, (4, 4)) for text in ("(BLOCK, *) on 2", "(*, BLOCK) on 2"))
move = ls.plan(rows, columns, float).bind(np.ones((2, 4)), np.zeros((4, 2)), comm=world, **eval(f"dict({sys.argv[1]})"))
move()
MPI.Finalize()
try:
    move()
except ls.ArgumentError as error:
    sys.stdout.write(f"{error}\\n")
"""


@pytest.mark.parametrize("family", families())
@pytest.mark.parametrize(
    "way", ["node='messages'", "node='messages', exchange='alltoall'", "node='messages', proxy=True"]
)
def test_messages_of_a_mover_after_mpi_are_an_error_and_not_the_end(family, program, way):
    done = launch(family, 2, program(MOVES_AFTER_MPI), way)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["MPI is finalised already"] * 2


# What goes through memory that processes have in common needs no MPI, and what was under way may have come before.
WITHOUT_MPI = {
    *(f"mover: {way}" for way in ("automatic", "rings", "under way")),
    *(f"window, here: {call}" for call in ("get", "put", "nbget", "handle", "strips")),
}


@pytest.mark.parametrize("family", families())
def test_whatever_is_called_after_mpi_says_so(family, tmp_path):
    done = launch(family, 2, Path(__file__).parent / "scripts" / "after_mpi.py", tmp_path)
    told = [(tmp_path / str(rank)).read_text().splitlines() for rank in range(2)]
    assert done.returncode == 0, (done.stderr, [lines[-1:] for lines in told])
    for lines in told:
        assert lines.pop() == "that is all" and len(lines) > 60
        for name, said in (line.rsplit(": ", 1) for line in lines):
            assert said == "MPI is finalised already" or (said == "done" and name in WITHOUT_MPI), (name, said)


ANOTHER_BUILD = """
import sys
from mpi4py import MPI
import longshore as ls, numpy as np
from longshore import _core
known = _core.build_identity
for other in ("0123456789abcdef", None):
    if other is None:
        del _core.build_identity
    else:
        _core.build_identity = other
    try:
        ls.empty(ls.Layout("(BLOCK) on 1", (4,)), float, comm=MPI.COMM_WORLD)
    except ls.TransportError as error:
        print(error)
_core.build_identity = known
print(ls.empty(ls.Layout("(BLOCK) on 1", (4,)), float, comm=MPI.COMM_WORLD).size)
"""


@pytest.mark.parametrize("family", families())
def test_a_module_of_another_build_is_refused(family, program):
    done = launch(family, 1, program(ANOTHER_BUILD))
    assert done.returncode == 0, done.stderr
    other, unknown, right = done.stdout.splitlines()
    for words, build in ((other, "0123456789abcdef"), (unknown, "unknown")):
        assert f"longshore._mpi_{family} is of build " in words and f"longshore._core of build {build}: " in words
        assert "install Longshore anew" in words
    assert right == "4"


INTERRUPTED = """
import os, sys
if int(os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"]) == 1:
    from mpi4py import MPI  # waits for the other one
    sys.exit()
def interrupt(*_):
    raise KeyboardInterrupt
if sys.argv[1] == "importing":
    import importlib.abc, longshore
    class Finder(importlib.abc.MetaPathFinder):
        find_spec = interrupt
    sys.meta_path.insert(0, Finder())
    from longshore import cli
else:
    from longshore import cli
    cli.command.invoke = interrupt
    cli.main(["info", "a.npy"])
"""


@pytest.mark.parametrize("family", families())
@pytest.mark.parametrize("moment", ["importing", "beginning"])
def test_an_interrupt_before_mpi_begins_ends_the_job(family, program, moment):
    assert launch(family, 2, program(INTERRUPTED), moment).returncode != 0  # not one that has to be killed
