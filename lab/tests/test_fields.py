"""`longshore bench fields` from end to end at tiny sizes, and the halos that several benches share."""

import io
import json

import pytest
from longshore_lab import BENCHES, BenchError, launch
from longshore_lab.boxes import HaloField, halo_of
from longshore_lab.fields import ALLTOALLW, CONTENDERS, TITLES, FieldsCase
from longshore_lab.protocol import Context, WrongResult
from rich.console import Console

FIELDS = {"case", "contender", "seconds_median", "seconds_min", "seconds_max", "repeats", "payload_bytes", "ranks"}
FIELDS |= {"threads"}


def run(**options):
    out = io.StringIO()
    options = {"sizes": [9, 70], "repeats": 2, **options}
    result = BENCHES["fields"].run(True, console=Console(file=out, width=160), **options)
    return result, out.getvalue()


def _has_mpi():
    try:
        launch.find_launcher()
    except BenchError:
        return False
    return True


needs_mpi = pytest.mark.skipif(not _has_mpi(), reason="no MPI in this environment")


def test_it_is_registered():
    assert BENCHES["fields"].description


def test_payloads_are_those_of_three_fields():
    halo, columns, mixed = (FieldsCase(key, 64).payload_bytes for key in ("halo", "columns", "mixed"))
    assert halo == 3 * 16 * 8 * (10**3 - 8**3) and columns == 3 * 8 * 64**2
    assert mixed == halo // 3 + 2 * columns // 3


def test_without_mpi_everybody_is_missing(monkeypatch):
    monkeypatch.setattr(launch, "find_mpi", lambda mpiexec: (None, {}, "no MPI here"))
    result, text = run()
    assert result["rows"] == [] and "no MPI here" in text
    assert {m["contender"] for m in result["missing"]} == {contender.name for contender in CONTENDERS}


@needs_mpi
@pytest.mark.parametrize("ranks", (1, 2, 3))
def test_everybody_is_verified_and_timed(ranks, tmp_path):
    result, text = run(ranks=ranks, json=tmp_path / "f.json")
    assert json.loads((tmp_path / "f.json").read_text()) == result
    assert result["missing"] == []
    for key in TITLES:
        for n in (9, 70):
            case = FieldsCase(key, n, ranks)
            rows = [row for row in result["rows"] if (row["case"], row["n"]) == (key, n)]
            assert [row["contender"] for row in rows] == [c.name for c in CONTENDERS if c.applies(case)]
            for row in rows:
                assert FIELDS <= row.keys() and row["verified"] and (row["ranks"], row["repeats"]) == (ranks, 2)
                assert row["payload_bytes"] == case.payload_bytes > 0
                assert 0 < row["seconds_min"] <= row["seconds_median"] <= row["seconds_max"]
                if "together" in row["contender"]:
                    assert row["together_ratio"] == 1
    assert ALLTOALLW in text and "three of 70 × 70" in text


@needs_mpi
@pytest.mark.parametrize("suffix", ("png", "html"))
def test_the_plot_appears(suffix, tmp_path):
    pytest.importorskip("matplotlib")
    target = tmp_path / f"f.{suffix}"
    result, _ = run(sizes=[9], cases=["transpose"], contenders=["longshore at once (ring)"], plot=target)
    assert [(row["contender"], row["together_ratio"]) for row in result["rows"]] == [("longshore at once (ring)", None)]
    assert target.read_bytes().startswith({"png": b"\x89PNG", "html": b"<!DOCTYPE html>"}[suffix])


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
        run(**options)


@pytest.mark.parametrize("across, extent", [((2, 2, 2), 3), ((1, 3, 2), 1), ((4,), 2)])
def test_ghost_cells_that_are_wrong_are_seen(across, extent):
    field = HaloField(Context(), halo_of(Context(rank=None), across, extent), 100.0)
    plan, array = field.spec
    with pytest.raises(WrongResult, match="nan"):
        field.check()
    mover = plan.bind(array, threads=1)
    for _ in range(2):
        field.refresh()
        mover()
        field.check()
    with pytest.raises(WrongResult, match="belongs"):
        field.refresh()
        field.check()
