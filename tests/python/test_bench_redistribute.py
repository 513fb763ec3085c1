"""The bench from end to end at tiny sizes, alone and under this environment's MPI."""

import io
import json
import time

import pytest
from longshore.bench import BenchError, harness, redistribute
from longshore.bench.cases import CASE_TITLES, make_case
from longshore.bench.contenders import CONTENDERS, COPY_NAMES
from longshore.bench.contenders.base import Arrays, Contender, Context, Prepared, ordinary
from longshore.bench.worker import Bench, Recorder
from rich.console import Console

SECONDS = {"seconds_median", "seconds_min", "seconds_max"}
FIELDS = SECONDS | {"case", "contender", "repeats", "payload_bytes", "ranks", "threads"}


def _run(**options):
    out = io.StringIO()
    result = redistribute.run(True, console=Console(file=out, width=200), **options)
    return result, out.getvalue()


def _has_mpi():
    try:
        import mpi4py  # noqa: F401

        harness.find_launcher()
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
                if not contender.applies(make_case(key, n)):
                    continue
                rows = [r for r in result["rows"] if (r["case"], r["n"], r["contender"]) == (key, n, contender.name)]
                reasons = [
                    m
                    for m in result["missing"]
                    if m["contender"] == contender.name and (f"{key} {n}" in m["cases"] or not m["cases"])
                ]
                assert len(rows) + len(reasons) == 1, (contender.name, key, n, rows, reasons)


def test_without_mpi_the_rest_runs_and_the_reason_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(redistribute, "_launcher", lambda mpiexec: (None, {}, "no MPI here"))
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
@pytest.mark.parametrize("ranks", (1, 3))
def test_other_numbers_of_ranks_are_verified_too(ranks):
    result, _ = _run(sizes=[70], repeats=1, ranks=ranks)
    assert not [m for m in result["missing"] if "WRONG" in m["why"]]
    assert {r["ranks"] for r in result["rows"] if r["payload_bytes"]} == {ranks}


def test_cases_and_contenders_can_be_chosen(monkeypatch):
    monkeypatch.setattr(redistribute, "_launcher", lambda mpiexec: (None, {}, "no MPI here"))
    result, _ = _run(sizes=[16], repeats=1, cases=["transpose"], contenders=["numpy"])
    moved = [r for r in result["rows"] if r["payload_bytes"]]
    assert {r["case"] for r in moved} == {"transpose"}
    assert {r["contender"] for r in moved} <= {"numpy", *COPY_NAMES}


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
    monkeypatch.setattr(redistribute, "_launcher", lambda mpiexec: (None, {}, "no MPI here"))
    monkeypatch.setattr(redistribute, "available_memory", lambda: 10**6)
    result, _ = _run(sizes=[16, 1024], repeats=1)
    assert {r["n"] for r in result["rows"] if r["payload_bytes"]} == {16}
    assert [m for m in result["missing"] if m["contender"] == "all" and "memory" in m["why"]]


class _Liar(Contender):
    """Leaves its destination as it is: a wrong contender must never be timed."""

    name = "liar"
    needs_mpi = False

    def prepare(self, context, case):
        return Prepared(lambda: None, Arrays.make(case, [0, 1], ordinary), root_only=True)


class _Thrower(Contender):
    name = "thrower"
    needs_mpi = False

    def prepare(self, context, case):
        raise RuntimeError("out of luck")


def test_wrong_and_failing_contenders_get_no_row(tmp_path):
    recorder = Recorder(tmp_path, True)
    bench = Bench(Context(None, 2, 0), set(), recorder)
    bench.case(make_case("rows-to-columns", 12), [_Liar(), _Thrower()], 3, {})
    assert recorder.result["rows"] == []
    why = {m["contender"]: m["why"] for m in recorder.result["missing"]}
    assert "WRONG RESULT" in why["liar"] and why["thrower"] == "RuntimeError: out of luck"


def test_a_contender_that_takes_the_run_down_is_named_and_the_others_go_on(monkeypatch):
    calls = []

    def run_child(module, spec, **options):
        calls.append(spec)
        if "numpy" in spec["contenders"]:
            step, trouble = "transpose 16/numpy/1 of 3", "ended with code -11: gone"
            return harness.ChildEnd({"done": ["transpose 8"]}, step, trouble)
        return harness.ChildEnd({"done": [f"{k} {n}" for k, n, _ in spec["cases"]], "finished": True}, "", None)

    monkeypatch.setattr(redistribute, "run_child", run_child)
    wanted = [("transpose", 8, 3), ("transpose", 16, 3)]
    rows, missing = redistribute._measure(None, {}, 2, wanted, ["numpy", "other"], 1.0, None)
    assert rows == [] and len(calls) == 2
    assert calls[1]["cases"] == [("transpose", 16, 3)] and calls[1]["contenders"] == ["other"]
    assert missing == [{"contender": "numpy", "why": "the run ended with code -11: gone", "cases": ["transpose 16"]}]


def test_a_child_that_fails_tells_its_last_words():
    end = harness.run_child("longshore.bench.no_such_module", {}, launcher=None)
    assert end.trouble is not None and "no_such_module" in end.trouble


def test_a_child_that_hangs_is_ended():
    start = time.monotonic()
    sleeper = harness.Launcher(("sh", "-c", "sleep 60"), "unknown")
    end = harness.run_child("this", {}, launcher=sleeper, stall_seconds=0.3)
    assert end.trouble is not None and "no progress" in end.trouble
    assert time.monotonic() - start < 55
