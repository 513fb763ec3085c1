"""`longshore bench first-call` from end to end at tiny sizes."""

import io
import json

import longshore_lab.run
import pytest
from longshore_lab import BENCHES, BenchError, launch, report
from longshore_lab.first_call import CONTENDERS, HALO, IMPORTS, MOVE, MPI, THREADS, FirstCase
from rich.console import Console

FIELDS = {"case", "contender", "seconds_median", "seconds_min", "seconds_max", "repeats", "payload_bytes", "ranks"}
FIELDS |= {"threads"}


def run(**options):
    out = io.StringIO()
    options = {"sizes": [6, 33], "boxes": 2, "repeats": 2, **options}
    result = BENCHES["first-call"].run(True, console=Console(file=out, width=160), **options)
    return result, out.getvalue()


def _has_mpi():
    try:
        launch.find_launcher()
    except BenchError:
        return False
    return True


needs_mpi = pytest.mark.skipif(not _has_mpi(), reason="no MPI in this environment")


# Importing in processes of their own has nothing to do with ranks and sizes: it is measured where it is looked at.
NO_IMPORTS = [contender.name for contender in CONTENDERS]


def no_mpi_there(monkeypatch):
    monkeypatch.setattr(launch, "find_mpi", lambda mpiexec: (None, {}, "no MPI here"))


@pytest.fixture
def no_mpi(monkeypatch):
    no_mpi_there(monkeypatch)


@pytest.fixture(scope="module")
def without_mpi(tmp_path_factory):
    """What the whole bench makes without MPI: its result, its tables, and where its files are."""
    folder = tmp_path_factory.mktemp("without-mpi")
    with pytest.MonkeyPatch.context() as monkeypatch:
        no_mpi_there(monkeypatch)
        return *run(json=folder / "f.json"), folder


def _check(result):
    for row in result["rows"]:
        assert FIELDS <= row.keys() and row["repeats"] == 2
        assert 0 < row["seconds_min"] <= row["seconds_median"] <= row["seconds_max"]
    assert not [m for m in result["missing"] if "WRONG" in m["why"]], result["missing"]


def test_it_is_registered():
    assert BENCHES["first-call"].description


def test_without_mpi_one_process_and_importing_remain(without_mpi):
    result, text, folder = without_mpi
    _check(result)
    assert json.loads((folder / "f.json").read_text()) == result
    assert {row["case"] for row in result["rows"]} == {THREADS, "import"}
    assert {"contender": "ScaLAPACK", "why": "no MPI here", "cases": []} in result["missing"] and "no MPI here" in text
    assert {row["contender"] for row in result["rows"] if row["case"] == "import"} == set(IMPORTS)
    for row in result["rows"]:
        planned = "plan" in row["contender"] or "bind" in row["contender"] or row["case"] == "import"
        assert (row["payload_bytes"] == 0) == planned
        assert row["ranks"] == (1 if row["case"] == "import" else 4)


@needs_mpi
@pytest.mark.parametrize("ranks", (1, 2, 3))
def test_everybody_is_verified_and_timed(ranks):
    result, _ = run(ranks=ranks, contenders=None if ranks == 1 else NO_IMPORTS)
    _check(result)
    assert {row["case"] for row in result["rows"]} == {MPI, THREADS, HALO} | ({"import"} if ranks == 1 else set())
    cases = [FirstCase(key, n, 4 if key == THREADS else ranks) for key in (MPI, THREADS) for n in (6, 33)]
    for case in (*cases, FirstCase(HALO, 2, ranks)):
        rows = [row for row in result["rows"] if (row["case"], row["n"]) == (case.key, case.n)]
        absent = [m["contender"] for m in result["missing"] if case.name in m["cases"]]
        assert {row["ranks"] for row in rows} == {case.ranks} and all(row["verified"] for row in rows)
        there = [row["contender"] for row in rows]
        assert set(there) | set(absent) == {c.name for c in CONTENDERS if c.applies(case)}
        assert set(absent) <= {"ScaLAPACK", "COSTA"}
    for row in result["rows"]:
        if row["contender"] == MOVE:
            seconds = row["seconds_median"]
            assert row["bound_ratio"] == pytest.approx(seconds / (seconds + 1e-4))
        if row["contender"] in ("longshore halo bind", "numpy import"):
            assert row["bind_ratio" if row["case"] == HALO else "numpy_ratio"] == 1


@needs_mpi
def test_a_size_that_leaves_a_rank_nothing_is_no_mistake():
    result, _ = run(sizes=[2], ranks=3, cases=["redistribute"], contenders=NO_IMPORTS)
    _check(result)
    absent = {m["contender"]: m["why"] for m in result["missing"]}
    assert "nothing" in absent["MPI Alltoallw, types anew"]
    assert "longshore one call (any array)" in {row["contender"] for row in result["rows"]}


def test_cases_and_contenders_can_be_chosen(no_mpi):
    result, _ = run(cases=["in-process"], contenders=["numpy", "numpy import"])
    assert {row["contender"] for row in result["rows"]} == {"numpy", "numpy import"}


def test_what_cannot_be_imported_is_missing(no_mpi, monkeypatch):
    monkeypatch.setitem(IMPORTS, "longshore import", ("", "longshore.nowhere"))
    result, _ = run(contenders=list(IMPORTS))
    (absent,) = result["missing"]
    assert absent["contender"] == "longshore import" and "No module named" in absent["why"]


@pytest.mark.parametrize("suffix", ("png", "html"))
def test_the_plot_appears(without_mpi, suffix, tmp_path):
    pytest.importorskip("matplotlib")
    target = tmp_path / f"f.{suffix}"
    report.write(BENCHES["first-call"](True), without_mpi[0], None, target)
    assert target.read_bytes().startswith({"png": b"\x89PNG", "html": b"<!DOCTYPE html>"}[suffix])


def test_sizes_beyond_memory_are_named_not_tried(no_mpi, monkeypatch):
    monkeypatch.setattr(longshore_lab.run, "available_memory", lambda: 10**5)
    result, _ = run(contenders=NO_IMPORTS)
    assert {row["n"] for row in result["rows"] if row["case"] == THREADS} == {6}
    assert [m for m in result["missing"] if m["contender"] == "all" and "memory" in m["why"]]


@pytest.mark.parametrize(
    "options, words",
    [
        ({"cases": ["diagonal"]}, "no case 'diagonal'"),
        ({"contenders": ["teleport"]}, "no contender 'teleport'"),
        ({"sizes": [0]}, "sizes"),
        ({"boxes": 1}, "boxes"),
        ({"repeats": 0}, "repeats"),
        ({"ranks": 0}, "ranks"),
        ({"mpiexec": "no-such-mpiexec"}, "mpiexec"),
        ({"plot": "p.pdf"}, "p.pdf"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(BenchError, match=words):
        run(**options)
