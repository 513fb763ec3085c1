"""`longshore move` by all ranks of a job: the same words, the same bytes, the same errors on every rank, and no hang.

    mpiexec -n P python run_checks.py moves

What a whole job prints and exits with is seen by tests/python/test_cli_mpi.py.
"""

import contextlib
import errno
import filecmp
import io
import json
import os
import shutil
import signal

import numpy as np
from checks import ME, WORLD, P, check, new_folder, raises_everywhere
from longshore import ArgumentError, DisagreementError, Layout, MemoryLimitError, StoreError
from longshore.cli import run
from longshore.stores import VerificationError, boxes, memory, moving
from longshore.stores.team import Alone
from mpi4py import MPI

ERRORS = [
    (["a.npy", "x", "--to", "(BLOK, *, *) on 2"], 2, "^"),
    (["a.npy", "x"], 2, "needs a layout"),
    (["none.npy", "x.npy"], 2, "does not exist"),
    (["a.npy", "x.npy", "--axes", "1,0"], 2, "permutation"),
    (["a.npy", "x.npy", "--no-such-option"], 2, "--no-such-option"),
    (["a.npy", "x.npy", "--max-mem", "1MiB"], 3, "at least"),
    (["broken", "x.npy"], 2, "rank-00002.npy"),
]


def move(*words):
    """The exit code, which is the same on all ranks, and what all of them said on stdout and on stderr."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = run(["move", *words])
    for number, handler in handlers.items():
        signal.signal(number, handler)
    codes, outs, errs = zip(*WORLD.allgather((code, out.getvalue(), err.getvalue())))
    assert len(set(codes)) == 1, (codes, errs)
    return code, "".join(outs), "".join(errs)


@contextlib.contextmanager
def folder_with(array):
    """A new folder with a.npy in it."""
    with new_folder():
        if ME == 0:
            np.save("a.npy", array)
        WORLD.Barrier()
        yield


def names():
    WORLD.Barrier()
    return sorted(os.listdir("."))


def small():
    return np.arange(300 * 211 * 3, dtype=">i4").reshape(300, 211, 3)


@check
def the_same_result_as_threads():
    first, second = "(CYCLIC(3), BLOCK, *) on 2x3", "(BLOCK, *, CYCLIC) on 2x2, order=F, ranks=3:7"
    array = small()
    with folder_with(array):
        if ME == 0:
            moving.move("a.npy", "s0", first, team=Alone())
            moving.move("s0", "d0", second, axes=(1, 2, 0), team=Alone())
        code, out, err = move("a.npy", "s", "--to", first)
        assert code == 0, err
        assert out.count("predicted") == 1 and f"moved      {array.nbytes:,} bytes" in out
        code, out, err = move("s", "d", "--to", second, "--axes", "1,2,0", "--verify", "--max-mem", "16MiB", "--json")
        assert code == 0, err
        told = json.loads(out)
        assert told["moved_bytes"] == told["predicted_bytes"] == array.nbytes and told["processes"] == P
        assert told["engine"] == ("mpi" if P > 1 else "threads") and told["peak_memory_bytes"] <= 16 << 20
        assert told["report"] is None
        code, out, err = move(
            "s", "again", "--to", second, "--axes", "1,2,0", "--max-mem", "16MiB", "--json", "--report"
        )
        assert code == 0, err
        report = json.loads(out)["report"]
        assert report["bytes"] == array.nbytes and report["seconds_measured"] > 0
        assert (report["seconds_predicted"] is None) == (1 < P < 7), report  # ranks up to 6
        assert ("7 ranks of the layouts share" in report["missing"]) == (1 < P < 7), report
        if ME == 0:
            shutil.rmtree("again")
        WORLD.Barrier()
        code, out, err = move("d", "back.npy", "--axes", "2,0,1", "--quiet")
        assert (code, out) == (0, ""), err
        np.testing.assert_array_equal(np.load("back.npy"), array)
        assert names() == ["a.npy", "back.npy", "d", "d0", "s", "s0"]
        for one, other in (("s", "s0"), ("d", "d0")):
            files = sorted(os.listdir(one))
            assert files == sorted(os.listdir(other))
            assert filecmp.cmpfiles(one, other, files, shallow=False) == (files, [], [])


@check
def errors():
    with folder_with(small()):
        if ME == 0:
            moving.move("a.npy", "broken", "(BLOCK, *, *) on 4", team=Alone())
            os.truncate("broken/rank-00002.npy", 300)
        WORLD.Barrier()
        for words, expected, said in ERRORS:
            code, _, err = move(*words)
            assert code == expected, (words, err)
            assert err.count(said) == 1 and err.count("longshore:") == 1 and "Traceback" not in err, (words, err)
            assert names() == ["a.npy", "broken"], words


@check
def one_process_fails_in_the_middle():
    """Its disk fills up, or its file goes away. With three ranks each has several pieces of this array."""
    for what, expected, error in (
        ("write", 4, StoreError(errno.ENOSPC, "No space left on device")),
        ("read", 1, KeyError("surprise")),
    ):
        for victim in (0, P - 1):
            with folder_with(np.arange(12 << 20, dtype="<i4").reshape(3072, 4096)):
                usual, calls = getattr(boxes.Files, what), []

                def failing(self, work):
                    calls.append(1)
                    if len(calls) < 3:
                        return usual(self, work)
                    raise error

                if ME == victim:
                    setattr(boxes.Files, what, failing)
                code, _, err = move("a.npy", "x", "--to", "(BLOCK, *) on 4", "--max-mem", "24MiB")
                setattr(boxes.Files, what, usual)
                assert code == expected, (what, victim, err)
                assert "Traceback" not in err and names() == ["a.npy"], (what, victim, err)


@check
def ranks_of_unlike_machines():
    """What each may take of its machine differs; all plan for the same, and fail alike."""
    usual = memory.usable_processors, memory.available_bytes
    memory.usable_processors = lambda: 2 + 30 * ME
    memory.available_bytes = lambda: (8 << 30) >> (5 * ME)
    try:
        with folder_with(np.arange(4096 * 2048.0).reshape(4096, 2048)):
            for to, max_mem in (("b", None), ("c", "24MiB")):
                report = moving.move("a.npy", to, f"(*, BLOCK) on {P}", comm=WORLD, max_mem=max_mem)
                assert len(set(WORLD.allgather((report.max_mem_bytes, report.window_shape)))) == 1
                np.testing.assert_array_equal(
                    np.load(f"{to}/rank-{ME:05}.npy"), np.array_split(np.load("a.npy"), P, axis=1)[ME]
                )
            raises_everywhere(
                MemoryLimitError,
                lambda: moving.move("a.npy", "d", f"(*, BLOCK) on {P}", comm=WORLD, max_mem="9MiB"),
                "it needs at least",
                within_s=20,
            )
    finally:
        memory.usable_processors, memory.available_bytes = usual


@check
def asked_for_in_python():
    """comm= shares a move; without it a job of several ranks is refused. A mistake of one rank is told to all."""

    def refused(kind, *words, **arguments):
        usual = {"destination": "b", "to": "(BLOCK, *, *) on 3", "comm": WORLD}
        raises_everywhere(kind, lambda: moving.move("a.npy", **{**usual, **arguments}), *words, within_s=20)
        assert names() == ["a.npy"], words

    one = ME == 1
    with folder_with(small()):
        refused(ArgumentError, f"one of {P} processes", "comm=MPI.COMM_WORLD to share", "comm=MPI.COMM_SELF", comm=None)
        refused(DisagreementError, "rank 1 is moving a.npy to b", "rank 0 is", to=f"(BLOCK, *, *) on {1 + one}")
        refused(DisagreementError, "rank 1 is moving", max_mem="64MiB" if one else None)
        refused(DisagreementError, "rank 1 is moving", "report=True", report=one)
        refused(ArgumentError, "report is 1; it must be True or False", report=1 if one else True)
        refused(ArgumentError, "max_mem 'x' is not a size", max_mem="x" if one else None)
        refused(ArgumentError, "to is 4; it must be a Layout, text or None", to=4 if one else "(BLOCK, *, *) on 3")
        usual = moving._same_bytes
        moving._same_bytes = lambda *arrays: not one and usual(*arrays)
        refused(VerificationError, "verification failed", verify=True, max_mem="16MiB")
        moving._same_bytes = usual

        layout = Layout("(BLOCK, *, *) on 3, order=F", (300, 211, 3))
        report = moving.move("a.npy", "b", layout, comm=WORLD, max_mem="48 MiB", verify=True)
        assert (report.processes, report.engine, report.max_mem_bytes) == (P, "mpi", 48 << 20)
        if one:
            assert moving.move("b", "c.npy", comm=MPI.COMM_SELF).processes == 1
            np.testing.assert_array_equal(np.load("c.npy"), small())
