"""`longshore bench model` from end to end: plans drawn from a seed, predicted and timed in every way."""

import io
import json

import pytest
from longshore import tune
from longshore_lab import BENCHES, BenchError, launch
from longshore_lab.prediction import CONTENDERS, IN_THREADS, KINDS, THREADS, WAYS, ModelCase, _summary
from rich.console import Console


def run(**options):
    out = io.StringIO()
    result = BENCHES["model"].run(True, console=Console(file=out, width=200), **{"repeats": 2, "plans": 2, **options})
    return result, out.getvalue()


def _has_mpi():
    try:
        launch.find_launcher()
    except BenchError:
        return False
    return True


needs_mpi = pytest.mark.skipif(not _has_mpi(), reason="no MPI in this environment")


@pytest.fixture(autouse=True)
def calibrated(tmp_path, monkeypatch):
    """A profile that says it was measured, so that nobody measures."""
    path = tmp_path / "profile.json"
    tune.MachineProfile(tune.coarse_profile().facts | {"coarse": False, "machine": "this one"}).save(path)
    monkeypatch.setenv("LONGSHORE_PROFILE", str(path))


def test_the_same_seed_draws_the_same_plans():
    for key in KINDS:
        drawn = [[ModelCase(key, n, seed).facts() for n in range(4)] for seed in (5, 5, 6)]
        assert drawn[0] == drawn[1] and drawn[0] != [{**facts, "seed": 5} for facts in drawn[2]]


def test_errors_and_choices_are_summed_up():
    def row(number, way, predicted, measured):
        ratio = {"predicted_ratio": predicted / measured}
        return {"case": "halos", "number": number, "contender": way, "seconds_predicted": predicted, **ratio} | {
            "seconds_median": measured
        }

    rows = [row(0, "a", 1, 2), row(0, "b", 2, 1), row(1, "a", 1, 1.05), row(1, "b", 2, 1), row(2, "a", 3, 1)]
    told = _summary(rows)
    assert told["rows"] == 5 and told["right_choices"] == 0.5
    assert told["median_error"] == 1 and told["error_90"] == 2


@needs_mpi
@pytest.mark.parametrize("ranks", (1, 2, 3))
def test_everybody_is_verified_predicted_and_timed(ranks, tmp_path):
    result, text = run(ranks=ranks, seed=3, json=tmp_path / "m.json", plot=tmp_path / "m.svg")
    assert json.loads((tmp_path / "m.json").read_text()) == result
    assert result["missing"] == []
    for key in KINDS:
        for n in range(2):
            rows = [row for row in result["rows"] if (row["case"], row["number"]) == (key, n)]
            assert [row["contender"] for row in rows] == ([IN_THREADS] if key == THREADS else list(WAYS))
            for row in rows:
                assert row["verified"] and row["seconds_predicted"] > 0 and row["expression"] and row["bottleneck"]
                assert row["predicted_ratio"] == row["seconds_predicted"] / row["seconds_median"]
    assert result["summary"]["all"]["rows"] == len(result["rows"]) == 2 * (3 * len(WAYS) + 1)
    assert "drawn from the seed 3" in text and (tmp_path / "m.svg").stat().st_size > 0
    assert {contender.name for contender in CONTENDERS} == {row["contender"] for row in result["rows"]}
