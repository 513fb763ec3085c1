"""The bench from end to end at tiny sizes, alone and under this environment's MPI."""

import io
import json
import os
import sys
import time

import longshore_lab.run
import numpy as np
import pytest
from longshore._core import kernel_tables, kernels_name
from longshore_lab import BENCHES, BenchError, launch
from longshore_lab.protocol import Contender, Context
from longshore_lab.redistribute.cases import CASE_TITLES, Case
from longshore_lab.redistribute.contenders import CONTENDERS, COPY_NAMES, Arrays, Move
from rich.console import Console

SECONDS = {"seconds_median", "seconds_min", "seconds_max"}
FIELDS = SECONDS | {"case", "contender", "repeats", "payload_bytes", "ranks", "threads"}


def _empty(side, rank, shape):
    return np.empty(shape)


def _run(**options):
    out = io.StringIO()
    result = BENCHES["redistribute"].run(True, console=Console(file=out, width=200), **options)
    return result, out.getvalue()


def _has_mpi():
    try:
        import mpi4py  # noqa: F401

        launch.find_launcher()
    except (ImportError, BenchError):
        return False
    return True


def _check(result, sizes):
    for row in result["rows"]:
        assert FIELDS <= row.keys()
        assert 0 < row["seconds_min"] <= row["seconds_median"] <= row["seconds_max"]
        if row["payload_bytes"]:
            assert row["verified"] and row["copy_ratio"] > 0
    for m in result["missing"]:
        assert "WRONG" not in m["why"], m
    # Nobody is left out silently: each contender has a row or a reason, at every case and size.
    for contender in CONTENDERS:
        for key in CASE_TITLES:
            for n in sizes:
                if not contender.applies(Case(key, n)):
                    continue
                rows = [r for r in result["rows"] if (r["case"], r["n"], r["contender"]) == (key, n, contender.name)]
                reasons = [
                    m
                    for m in result["missing"]
                    if m["contender"] == contender.name and (f"{key} {n}" in m["cases"] or not m["cases"])
                ]
                assert len(rows) + len(reasons) == 1, (contender.name, key, n, rows, reasons)


def test_without_mpi_the_rest_runs_and_the_reason_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(launch, "find_mpi", lambda mpiexec: (None, {}, "no MPI here"))
    result, text = _run(sizes=[9, 40], repeats=2, json=tmp_path / "r.json")
    _check(result, [9, 40])
    assert json.loads((tmp_path / "r.json").read_text()) == result
    assert result["bench"] == "redistribute" and result["version"] and result["machine"]["mpi"] is None
    assert "no MPI here" in text
    assert {"contender": "MPI Alltoallw", "why": "no MPI here", "cases": []} in result["missing"]
    assert {r["contender"] for r in result["rows"]} >= {"numpy", COPY_NAMES[0]}


@pytest.mark.skipif(not _has_mpi(), reason="no MPI in this environment")
def test_under_mpi_everybody_is_verified_and_timed():
    result, text = _run(sizes=[33, 64], repeats=2)
    _check(result, [33, 64])
    timed = {r["contender"] for r in result["rows"]}
    assert timed >= {"numpy", COPY_NAMES[0], "MPI Alltoallw", "hand-packed isend"}
    assert result["mpi"]["library"] and result["machine"]["mpi"] == result["mpi"]["library"]
    for m in result["missing"]:
        assert m["why"] and m["contender"] in text


@pytest.mark.skipif(not _has_mpi(), reason="no MPI in this environment")
def test_ranks_with_more_and_with_less_than_a_small_part_do_the_same():
    # Of 627 columns two ranks have 210 and one has 207: 1.05 and 1.04 MB, where parts up to 1 MiB run once untimed.
    result, _ = _run(sizes=[627], repeats=1, ranks=3, cases=["irregular-blocks"], contenders=["longshore mpi"])
    assert {r["contender"] for r in result["rows"] if r["payload_bytes"]} > {"longshore mpi"}


@pytest.mark.parametrize("ranks", (1, 3))
def test_other_numbers_of_ranks_are_verified_too(ranks):
    result, _ = _run(sizes=[70], repeats=1, ranks=ranks)
    assert not [m for m in result["missing"] if "WRONG" in m["why"]]
    assert {r["ranks"] for r in result["rows"] if r["payload_bytes"]} == {ranks}


def test_cases_and_contenders_can_be_chosen(monkeypatch):
    monkeypatch.setattr(launch, "find_mpi", lambda mpiexec: (None, {}, "no MPI here"))
    result, _ = _run(sizes=[16], repeats=1, cases=["transpose"], contenders=["numpy"])
    moved = [r for r in result["rows"] if r["payload_bytes"]]
    assert {r["case"] for r in moved} == {"transpose"}
    assert {r["contender"] for r in moved} <= {"numpy", *COPY_NAMES}


def test_every_table_of_kernels_is_measured_where_asked(monkeypatch):
    monkeypatch.setattr(launch, "find_mpi", lambda mpiexec: (None, {}, "no MPI here"))
    result, text = _run(
        sizes=[16], repeats=1, cases=["transpose"], contenders=["longshore threads", "numpy"], tables=True
    )
    timed = {(r["table"], r["contender"]) for r in result["rows"] if r["payload_bytes"]}
    for table in kernel_tables():
        assert (table, "longshore threads") in timed and f"{table} kernels" in text
    assert [table for table, who in timed if who == "numpy"] == [kernels_name()]
    assert all(r["copy_ratio"] > 0 for r in result["rows"] if r["payload_bytes"])


@pytest.mark.parametrize(
    "options, words",
    [
        ({"cases": ["diagonal"]}, "no case 'diagonal'"),
        ({"contenders": ["teleport"]}, "no contender 'teleport'"),
        ({"sizes": [0]}, "sizes"),
        ({"repeats": 0}, "repeats"),
        ({"ranks": 0}, "ranks"),
        ({"mpiexec": "no-such-mpiexec"}, "mpiexec"),
        ({"plot": "p.pdf"}, "p.pdf"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(BenchError, match=words):
        _run(**options)


def test_sizes_beyond_memory_are_named_not_tried(monkeypatch):
    monkeypatch.setattr(launch, "find_mpi", lambda mpiexec: (None, {}, "no MPI here"))
    monkeypatch.setattr(longshore_lab.run, "available_memory", lambda: 10**6)
    result, _ = _run(sizes=[16, 1024], repeats=1)
    assert {r["n"] for r in result["rows"] if r["payload_bytes"]} == {16}
    assert [m for m in result["missing"] if m["contender"] == "all" and "memory" in m["why"]]


def _liar(context, case):
    """Leaves its destination as it is: a wrong contender must never be timed."""
    return Move(lambda: None, Arrays.make(case, [0, 1], _empty), alone=True)


def _thrower(context, case):
    raise RuntimeError("out of luck")


def test_wrong_and_failing_contenders_get_no_row():
    bench, case = BENCHES["redistribute"](), Case("rows-to-columns", 12)
    contenders = [Contender("liar", _liar, needs_mpi=False), Contender("thrower", _thrower, needs_mpi=False)]
    rows, missing = bench.measure(Context(None, 2, 0), case, contenders, 3)
    assert rows == []
    why = {m["contender"]: m["why"] for m in missing}
    assert "WRONG RESULT" in why["liar"] and why["thrower"] == "RuntimeError: out of luck"


def test_a_contender_that_takes_the_run_down_is_named_and_the_others_go_on(monkeypatch):
    calls = []

    def run_child(spec, **options):
        calls.append(spec)
        if "numpy" in spec["contenders"]:
            step, trouble = "transpose 16/numpy/1 of 3", "ended with code -11: gone"
            return launch.ChildEnd({"done": ["transpose 8"]}, step, trouble)
        done = [Case(**facts).name for facts, _ in spec["cases"]]
        return launch.ChildEnd({"done": done, "finished": True}, "", None)

    monkeypatch.setattr(launch, "find_mpi", lambda mpiexec: (None, {}, "no MPI here"))
    monkeypatch.setattr(launch, "run_child", run_child)
    result, _ = _run(sizes=[8, 16], repeats=3, cases=["transpose"], contenders=["numpy"])
    assert not [row for row in result["rows"] if row["payload_bytes"]] and len(calls) == 2
    assert [(Case(**facts).name, rounds) for facts, rounds in calls[1]["cases"]] == [("transpose 16", 3)]
    assert calls[0]["contenders"] == [*COPY_NAMES, "numpy"] and calls[1]["contenders"] == list(COPY_NAMES)
    why = "the run ended with code -11: gone"
    assert result["missing"] == [{"contender": "numpy", "why": why, "cases": ["transpose 16"]}]


def test_a_child_that_fails_tells_its_last_words():
    end = launch.run_child({}, program=(sys.executable, "-m", "longshore_lab.no_such_module"))
    assert end.trouble is not None and "no_such_module" in end.trouble


def test_a_child_that_hangs_is_ended():
    start = time.monotonic()
    sleeper = launch.Launcher(("sh", "-c", "sleep 60"), "unknown")
    end = launch.run_child({}, launcher=sleeper, stall_seconds=0.3)
    assert end.trouble is not None and "no progress" in end.trouble
    assert time.monotonic() - start < 55


def test_what_an_ended_launcher_has_started_ends_too(tmp_path):
    """Hydra's proxy and its ranks have process groups of their own, and outlive an mpiexec that is killed."""
    inner = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    outer = (
        "import signal, subprocess, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True).wait()"
    )
    sleeper = launch.Launcher((sys.executable, "-c", outer, inner), "unknown")
    assert launch.run_child({}, launcher=sleeper, stall_seconds=1.5).trouble is not None
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.kill(pid, 0)
            time.sleep(0.1)
