"""Checks that share a job: each is told by its name, and one that goes wrong harms none of the others."""

import time

import pytest
from launch import families
from shared_jobs import ENDS, Jobs, checks_of
from test_launch import running

SCRIPT = """
import os, pathlib, signal, time
from checks import ME, WORLD, check

@check
def fine():
    assert WORLD.allreduce(1) == 2
    print("a word", end=" ")  # a line that the runner's comes into

@check
def fails():
    assert ME == 0, "it is not so"
    WORLD.Barrier()

@check
def sums(a, b):
    assert WORLD.allreduce(a) == b

def no_check():
    raise AssertionError

@check
def hangs():
    pathlib.Path(f"hangs-{os.getpid()}").touch()
    if ME == 0:
        WORLD.recv(source=1)  # never sent
    time.sleep(600)

@check
def dies():
    if ME == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)

@check
def leaves():
    time.sleep(0.5)  # a launcher may drop what it has not passed on when the job ends
    os._exit(0)
"""


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    (tmp_path / "tiny.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_names_are_found_without_importing(scripts):
    names = ["fine", "fails", "sums", "hangs", "dies", "leaves"]
    assert checks_of("tiny", scripts) == [f"tiny.{name}" for name in names]


@pytest.mark.parametrize("family", families())
def test_what_goes_wrong_is_told_by_name_and_the_others_are_run(scripts, family):
    wrong = {
        "tiny.fails": "rank 1 of 2: tiny.fails failed",
        "tiny.hangs": "took more than 2 s",
        "tiny.dies": "its job ended with exit code",
    }
    if family == families()[0]:  # whatever the launcher
        wrong["tiny.sums(1, 3)"] = "AssertionError"
        wrong["tiny.unknown"] = "KeyError: 'tiny.unknown'"
        wrong["nowhere.fine"] = "No module named 'nowhere'"
    checks = ["tiny.fine", "tiny.fails", "tiny.hangs", "tiny.sums(1, 2)", *list(wrong)[2:], "tiny.sums(2, 4)", ENDS]
    jobs = Jobs({(family, 2): checks}, scripts, limit_s=2, scripts=scripts)
    for check in checks:
        if check in wrong:
            with pytest.raises(AssertionError) as told:
                jobs.expect(family, 2, check)
            assert str(told.value).startswith(check) and wrong[check] in str(told.value)
            if check == "tiny.fails":
                assert "it is not so" in str(told.value)
            if check == "tiny.hangs":  # where each rank is
                assert " in hangs" in str(told.value), str(told.value)
        else:
            jobs.expect(family, 2, check)
    jobs.close()
    ranks = [int(path.name.removeprefix("hangs-")) for path in scripts.glob("hangs-*")]
    assert len(ranks) == 2
    deadline = time.monotonic() + 60
    while alive := [pid for pid in ranks if running(pid)]:
        assert time.monotonic() < deadline, f"still running: {alive}"
        time.sleep(0.1)


# Where a rank has left without MPI_Finalize, mpiexec now and then waits for the other, which waits for it.
BADLY = "all checks are done, but the job (ended with exit code|did not end within)"


def test_a_job_that_does_not_end_well(scripts):
    family = families()[0]
    jobs = Jobs({(family, 2): ["tiny.leaves", "tiny.fine", ENDS]}, scripts, scripts=scripts)
    with pytest.raises(AssertionError, match="tiny.leaves: its job ended with exit code"):
        jobs.expect(family, 2, "tiny.leaves")
    jobs.expect(family, 2, ENDS)  # runs what comes before it
    (scripts / "bad.py").write_text(  # rank 0: another one's end might come before it has told the check's
        "import atexit, os\nfrom checks import ME, check\n@check\ndef bad():\n    ME or atexit.register(os._exit, 3)"
    )
    jobs = Jobs({(family, 2): ["bad.bad", ENDS]}, scripts, end_limit_s=10, scripts=scripts)
    jobs.expect(family, 2, "bad.bad")
    with pytest.raises(AssertionError, match=BADLY):
        jobs.expect(family, 2, ENDS)
    jobs = Jobs({(family, 2): ["bad.bad"]}, scripts, end_limit_s=10, scripts=scripts)
    jobs.expect(family, 2, "bad.bad")
    with pytest.raises(AssertionError, match=BADLY):
        jobs.close()  # where nobody asks for the end


def test_a_launch_that_cannot_start_is_tried_once(scripts, monkeypatch):
    family = families()[0]
    (scripts / "mpi4py.py").write_text("raise ImportError('no MPI today')")
    jobs = Jobs({(family, 2): ["tiny.fine", "tiny.sums(1, 2)", ENDS]}, scripts, scripts=scripts)
    for check in ("tiny.fine", "tiny.sums(1, 2)", ENDS):
        with pytest.raises(AssertionError, match="before it began(.|\n)*no MPI today"):
            jobs.expect(family, 2, check)
    assert len(list(scripts.glob("*.stderr"))) == 1
