"""`longshore move` under mpiexec: what a job prints, its exit code, its memory.

What each rank says, and the bytes that come out at other numbers of ranks, are checks of tests/mpi/scripts/moves.py.
"""

import json
import os

import numpy as np
import pytest
from launch import families, interpreters, launch

pytestmark = pytest.mark.skipif(not families(), reason="no mpiexec beside a Python with mpi4py")
FAMILIES = families()


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    array = np.arange(300 * 211 * 3, dtype=">i4").reshape(300, 211, 3)
    np.save("a.npy", array)
    return array


def move(family, ranks, *words, program="longshore.cli", **more):
    return launch(family, ranks, program, "move", *words, timeout=100, **more)


@pytest.mark.parametrize(
    "family, ceiling", [(f, "24MiB") for f in FAMILIES[:1]] + [(f, "40MiB") for f in FAMILIES[-1:]]
)
def test_many_windows_within_the_ceiling(tmp_path, monkeypatch, family, ceiling):
    monkeypatch.chdir(tmp_path)
    array = np.arange(12 << 20, dtype="<i4").reshape(3072, 4096)
    np.save("a.npy", array)
    for words in (
        ["a.npy", "s", "--to", "(CYCLIC(64), CYCLIC(64)) on 2x2"],
        ["s", "t", "--to", "(*, BLOCK) on 3, order=F"],
        ["t", "back.npy", "--axes", "1,0"],
    ):
        done = move(family, 3, *words, "--max-mem", ceiling, "--json", "--verify")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["windows"] > 1 and told["peak_memory_bytes"] <= told["max_mem_bytes"]
    np.testing.assert_array_equal(np.load("back.npy"), array.T)


ERRORS = [
    (["a.npy", "x.npy", "--no-such-option"], 2, "--no-such-option"),
    (["a.npy", "x.npy", "--max-mem", "1MiB"], 3, "at least"),
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("words, code, said", ERRORS, ids=[" ".join(words) for words, _, _ in ERRORS])
def test_errors(source, family, words, code, said):
    done = move(family, 3, *words)
    assert done.returncode == code, done.stderr
    assert done.stderr.count(said) == 1 and done.stderr.count("longshore:") == 1 and "Traceback" not in done.stderr
    assert sorted(os.listdir(".")) == ["a.npy"]


# One process's disk fills up, or its file goes away, in the middle of everything.
SABOTAGE = """
import errno, os, sys
from mpi4py import MPI
from longshore.cli import main
from longshore.errors import StoreError
from longshore.stores import boxes

what, victim = sys.argv[1], int(sys.argv[2])
calls = []

def fail(self, work):
    calls.append(1)
    if len(calls) < 3:
        return (write if what == "write" else read)(self, work)
    raise StoreError(errno.ENOSPC, "No space left on device") if what == "write" else KeyError("surprise")

write, read = boxes.Files.write, boxes.Files.read
if MPI.COMM_WORLD.Get_rank() == victim:
    if what == "write":
        boxes.Files.write = fail
    else:
        boxes.Files.read = fail
main(sys.argv[3:])
"""


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("what, victim, code", [("write", 2, 4), ("read", 0, 1)])
def test_one_process_fails_in_the_middle(tmp_path, monkeypatch, family, victim, what, code):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(12 << 20, dtype="<i4").reshape(3072, 4096))
    (tmp_path / "sabotage.py").write_text(SABOTAGE)
    done = launch(
        family,
        3,
        tmp_path / "sabotage.py",
        what,
        victim,
        "move",
        "a.npy",
        "x",
        "--to",
        "(BLOCK, *) on 4",
        "--max-mem",
        "24MiB",
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and sorted(os.listdir(".")) == ["a.npy", "sabotage.py"]


def test_a_launcher_of_another_mpi_is_noticed(source):
    family = FAMILIES[0]
    code = "import os, sys; os.environ['PMI_SIZE'] = '5'; from longshore.cli import main; main(sys.argv[1:])"
    import subprocess

    done = subprocess.run(
        [interpreters()[family], "-c", code, "move", "a.npy", "x.npy"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PMI_RANK": "0"},
    )
    assert done.returncode != 0 and not os.path.exists("x.npy")
