"""`longshore bench communicators` from end to end in a small world, and its cases."""

import io
import json

import longshore as ls
import numpy as np
import pytest
from longshore_lab import BENCHES, BenchError, _loops, communicators
from rich.console import Console

needs_engine = pytest.mark.skipif(not ls.finegrain.available(), reason="this build has no Boost.Context")


def run(**options):
    out = io.StringIO()
    result = BENCHES["communicators"].run(True, console=Console(file=out, width=160), **{"ranks": 2000, **options})
    return result, out.getvalue()


def test_it_is_registered():
    assert BENCHES["communicators"].description


def test_the_communicators_of_the_thesis_have_their_sizes():
    sizes = [len(one.members) for one in communicators.experiments()]
    printed = [
        100_000,
        2_327,
        10_000,
        100_000,
        66_667,
        40_001,
        28_572,
        5_000,
        50_000,
        10_000,
        20_000,
        100_000,
        10_000,
        100_000,
    ]
    assert sizes == [*printed[:5], 40_000, *printed[6:]]
    assert communicators.mesh_of(200_000) == (4, 10, 10, 5, 10, 10)


@pytest.mark.parametrize("world", [200, 2_000, 30_001])
def test_they_are_distinct_ranks_of_any_world(world):
    ascending = []
    for one in communicators.experiments(world):
        assert len(np.unique(one.members)) == len(one.members) > 0
        assert 0 <= one.members.min() and one.members.max() < world
        ascending.append(bool(np.all(np.diff(one.members) > 0)))
    assert ascending[:9] == [True] * 9
    assert world == 200 or ascending[9:] == [False] * 5
    face = communicators.experiments(world)[2].members
    first, *rest = np.unravel_index(face, communicators.mesh_of(world))
    assert not first.any() and not rest[2].any()


@needs_engine
def test_json_has_its_form(tmp_path):
    result, text = run(cases=["1", "10", "13"], repeats=2, json=tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text()) == result
    assert result["bench"] == "communicators" and result["ranks"] == 2000 and result["machine"]["cpu"]
    rows = {(row["case"], row["contender"]): row for row in result["rows"]}
    assert len(rows) == len(result["rows"])
    for (_, contender), row in rows.items():
        assert 0 < row["seconds_min"] <= row["seconds_median"] <= row["seconds_max"]
        assert (row["ranks"], row["threads"], row["processes"]) == (2000, 1, 1) and row["map_bytes"] > 0
        assert (row["payload_bytes"] > 0) == (row["operation"] != "create")
        assert (row["array_ratio"] == 1) == (contender == "int array")
        assert row["repeats"] in (1, 2)
    assert {case for case, _ in rows} == {
        f"{k} {what}" for k in (1, 10, 13) for what in ("create", "messages", "gathers")
    }
    assert rows["1 create", "longshore hybrid"]["representation"] == "stride"
    assert rows["10 gathers", "gap"]["representation"] == "child"  # a set and a wavelet tree
    for title in ("table 6.1", "table 6.2", "table 6.3", "table 6.4", "6.6", "×1"):
        assert title in text
    assert "printed there" not in text  # of another world


@needs_engine
def test_what_cannot_be_held_is_infinite_and_says_why():
    result, text = run(cases=["3", "9"])
    missing = {(m["contender"], case): m["why"] for m in result["missing"] for case in m["cases"]}
    assert missing["stride", "experiment 3"] == "stride: the ranks are no stride"
    assert "nothing to permute" in missing["wavelet", "experiment 9"]
    assert not {row["contender"] for row in result["rows"] if row["experiment"] == 3} & {"stride", "wavelet"}
    assert "∞" in text
    contenders = {row["contender"] for row in result["rows"]} | {m["contender"] for m in result["missing"]}
    assert contenders == set(communicators.CONTENDERS)


@needs_engine
def test_what_is_saved_is_the_arrays_less_the_map():
    result, _ = run(cases=["5"])
    saved = {one["contender"]: one for one in result["saved"]}
    ours = saved["longshore hybrid"]
    assert ours["array_bytes"] == 4 * 667 and ours["saved_bytes"] == (4 * 667 - ours["map_bytes"]) * 40 * 8


@pytest.mark.parametrize("contender", communicators.CONTENDERS)
def test_every_contender_is_the_same_map(contender):
    for one in communicators.experiments(2000):
        try:
            made = communicators.make(contender, one.members, 2000)
        except ls.ArgumentError:
            continue
        assert made.world == 2000 and np.array_equal(made.world_rank(np.arange(len(one.members))), one.members), (
            one.words
        )


@needs_engine
def test_mistakes(tmp_path):
    with pytest.raises(BenchError, match="there is no experiment '15'; there are 1 to 14"):
        run(cases=["15"])
    with pytest.raises(BenchError, match="need 200 at least"):
        run(ranks=100)
    members, one = np.array([3, 1, 2]), np.array([0])
    other = ls.RankMap([3, 2, 1], 5)
    with pytest.raises(ls.LongshoreError, match="gathered number 1 is not what was sent"):
        _loops.communicator_seconds(members, [other], [1], one, one, 1)
    with pytest.raises(ls.ArgumentError, match="outside"):
        _loops.communicator_seconds(members, [other], [1], np.array([3]), one, 1)
    with pytest.raises(ls.ArgumentError, match="1 senders and 2 receivers"):
        _loops.communicator_seconds(members, [other], [1], one, np.array([0, 1]), 1)


@needs_engine
def test_a_plot(tmp_path):
    pytest.importorskip("matplotlib")
    run(cases=["2"], plot=tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    assert "<svg" in page and "table 6.4" in page
