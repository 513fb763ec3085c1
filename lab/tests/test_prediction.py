"""`longshore bench model` from end to end: plans drawn from a seed, predicted and timed in every way."""

import io
import json

import longshore as ls
import numpy as np
import pytest
from longshore import tune
from longshore_lab import BENCHES, BenchError, launch
from longshore_lab.prediction import (
    CONTENDERS,
    IN_THREADS,
    ITSELF,
    KINDS,
    THREADS,
    WAYS,
    LocalParts,
    ModelCase,
    _profile,
    _summary,
)
from longshore_lab.protocol import Context, WrongResult
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


@pytest.mark.parametrize(
    "text", ["(CYCLIC(5), CYCLIC(2)) on 2x2", "(CYCLIC(2), *, BLOCK) on 2x2", "(*, CYCLIC(3)) on 3"]
)
def test_expected_parts_are_those_that_are_dealt(text):
    shape = (29, 14, 6)[: text.count(",") + 1]
    plan = ls.plan(ls.Layout("(" + "*, " * (len(shape) - 1) + "CYCLIC) on 2", shape), ls.Layout(text, shape), "int16")
    sides = [
        {rank: np.zeros(layout.local_shape(rank), plan.dtype) for rank in layout.ranks}
        for layout in (plan.source, plan.destination)
    ]
    parts = LocalParts(plan, *sides)
    plan.bind(*sides)()
    parts.look()
    whole = np.arange(np.prod(shape)).reshape(shape) + 1
    for layout, arrays in zip((plan.source, plan.destination), sides):
        for array, dealt in zip(arrays.values(), ls.scatter(whole, layout)):
            assert (array == dealt).all()
    parts.spoil()
    with pytest.raises(WrongResult, match="rank 0"):
        parts.look()


def test_errors_and_choices_are_summed_up():
    def row(number, way, predicted, measured):
        ratio = {"predicted_ratio": predicted / measured}
        return {"case": "halos", "number": number, "contender": way, "seconds_predicted": predicted, **ratio} | {
            "seconds_median": measured
        }

    rows = [row(0, "a", 1, 2), row(0, "b", 2, 1), row(1, "a", 1, 1.05), row(1, "b", 2, 1), row(2, "a", 3, 1)]
    told = _summary(rows)
    assert told["rows"] == 5 and told["right_choices"] == 0.5 and told["right_movers"] is None
    assert told["median_error"] == 1 and told["error_90"] == 2
    # What movers choose themselves is no way of its own.
    told = _summary([*rows, row(0, ITSELF, 0.5, 1.05), row(1, ITSELF, 0.5, 3)])
    assert told["right_choices"] == 0.5 and told["right_movers"] == 0.5


@needs_mpi
@pytest.mark.parametrize("ranks", (1, 2, 3))
def test_everybody_is_verified_predicted_and_timed(ranks, tmp_path):
    plot = tmp_path / "m.svg" if ranks == 2 else None
    result, text = run(ranks=ranks, seed=3, json=tmp_path / "m.json", plot=plot)
    assert json.loads((tmp_path / "m.json").read_text()) == result
    assert result["missing"] == [] and not any(row["calibrated_first"] for row in result["rows"])
    for key in KINDS:
        for n in range(2):
            rows = [row for row in result["rows"] if (row["case"], row["number"]) == (key, n)]
            assert [row["contender"] for row in rows] == ([IN_THREADS] if key == THREADS else list(WAYS))
            for row in rows:
                assert row["verified"] and row["seconds_predicted"] > 0 and row["expression"] and row["bottleneck"]
                assert row["predicted_ratio"] == row["seconds_predicted"] / row["seconds_median"]
    assert result["summary"]["all"]["rows"] == len(result["rows"]) == 2 * (3 * len(WAYS) + 1)
    assert "drawn from the seed 3" in text and (plot is None or plot.stat().st_size > 0)
    assert {contender.name for contender in CONTENDERS} == {row["contender"] for row in result["rows"]}


def test_a_profile_without_exchanges_is_measured_anew_where_they_are_asked_for(tmp_path, monkeypatch):
    path = tmp_path / "alone.json"
    tune.MachineProfile(tune.coarse_profile().facts | {"coarse": False, "exchanges": []}).save(path)
    monkeypatch.setenv("LONGSHORE_PROFILE", str(path))
    monkeypatch.setattr(tune, "calibrate", lambda comm, quick: tune.coarse_profile())
    told = []
    context = Context(step=told.append)
    assert not _profile(context, True).facts["exchanges"] and told == []
    assert _profile(context, True, "ring").facts["exchanges"] and len(told) == 1
    assert _profile(context, True, "direct").facts["exchanges"] and len(told) == 1
    row = {"case": "halos", "number": 0, "contender": ITSELF, "seconds_predicted": 1, "seconds_median": 1}
    result = {"rows": [row | {"calibrated_first": context.pool["calibrated_first"]}], "notes": []}
    BENCHES["model"](True).finish(result)
    assert result["notes"] == ["Its profile said nothing of exchanges: the machine was calibrated first."]
