"""The bench of the applications from end to end, at small sizes."""

import importlib.util
import io
import json

import pytest
from longshore_lab import BENCHES, BenchError, apps, launch, report
from rich.console import Console

there = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None
    or not any(importlib.util.find_spec(f"longshore_lab._apps_{family}") for family in ("mpich", "openmpi")),
    reason="no MPI in this environment, or no applications built for it",
)


def run(**options):
    out = io.StringIO()
    result = BENCHES["apps"].run(True, console=Console(file=out, width=110), **options)
    return result, out.getvalue()


def test_it_is_registered():
    assert "Redblack3D" in BENCHES["apps"].description


@there
def test_rows_tables_and_pictures(tmp_path, monkeypatch):
    small = (apps.App("redblack3d", "Redblack3D 24³", size=24, iterations=2), apps.App("mg", "NAS-MG class S", "S"))
    monkeypatch.setattr(apps, "QUICK", small)
    result, text = run(repeats=1, json=tmp_path / "a.json", plot=tmp_path / "a.png")
    for suffix in ("svg", "html"):
        report.write(BENCHES["apps"](True), result, None, tmp_path / f"a.{suffix}")
    for suffix in ("png", "svg", "html"):
        assert (tmp_path / f"a.{suffix}").stat().st_size > 1000
    assert json.loads((tmp_path / "a.json").read_text()) == result
    assert not result["missing"]
    rows = {(row["case"], row["contender"]): row for row in result["rows"]}
    assert rows.keys() == {(app.name, name) for app in small for name in apps.VARIANTS}
    for (name, contender), row in rows.items():
        assert 0 < row["seconds_min"] <= row["seconds_median"] <= row["seconds_max"]
        assert row["payload_bytes"] > 0 and row["ranks"] == 2 and row["error"] <= row["tolerance"]
        assert 0 < rows[name, "longshore"]["lines"] < rows[name, apps.TWIN]["lines"]
        assert row["twin_ratio"] > 0 and contender in text
    assert "communication" in text and "NAS-MG class S" in text


@there
def test_one_application_alone():
    result, _ = run(cases=["mg"], repeats=1)
    assert {row["case"] for row in result["rows"]} == {"mg"}


def test_wrong_options_are_told(tmp_path):
    for options, words in (
        ({"cases": ["chess"]}, "no application 'chess'"),
        ({"ranks": 0}, "must be positive"),
        ({"repeats": 0}, "must be positive"),
        ({"plot": tmp_path / "a.pdf"}, "a plot is written as"),
    ):
        with pytest.raises(BenchError, match=words):
            run(**options)


def test_without_mpi_the_reason_is_told(monkeypatch):
    monkeypatch.setattr(launch, "find_mpi", lambda mpiexec: (None, {}, "no MPI here"))
    result, text = run()
    assert (
        not result["rows"]
        and {m["contender"] for m in result["missing"]} == set(apps.VARIANTS)
        and "no MPI here" in text
    )
