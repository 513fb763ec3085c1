"""`longshore bench strips` from end to end at small sizes, and what follows from its rows."""

import io
import json

import numpy as np
import pytest
from longshore import model
from longshore_lab import BENCHES, BenchError, launch, strips
from longshore_lab.protocol import WrongResult
from longshore_lab.strip_loops import (
    ALL_TO_ALL,
    ALL_TO_ONE,
    NETWORK_WORDS,
    ONE_TO_ONE,
    Reduction,
    Vector,
    computing_seconds,
    partner_of,
)
from longshore_lab.strips import AUTO, CONTENDERS, SMALL, VECTORIZED, Strips, StripsCase
from rich.console import Console

FIELDS = {"case", "contender", "seconds_median", "seconds_min", "seconds_max", "repeats", "payload_bytes", "ranks"}
FIELDS |= {"threads", "n", "verified"}


def run(**options):
    out = io.StringIO()
    options = {"sizes": [300], "repeats": 2, "seed": 7, **options}
    result = BENCHES["strips"].run(True, console=Console(file=out, width=250), **options)
    return result, out.getvalue()


def _has_mpi():
    try:
        launch.find_launcher()
    except BenchError:
        return False
    return True


needs_mpi = pytest.mark.skipif(not _has_mpi(), reason="no MPI in this environment")


@pytest.mark.parametrize("rate", ["nope", "", "0gbit", "-1gbit", "1 gbit", "1gbyte", "1e400", "gbit"])
def test_a_link_of_no_rate_is_found_at_once(rate):
    with pytest.raises(BenchError, match="as tc does, such as 1gbit"):
        Strips(True, link=rate)


@pytest.mark.parametrize("rate", ["1gbit", "1.5Gbit", "200mbit", "1000000", "0.5mbps", "10kibit"])
def test_rates_of_links_are_as_tc_writes_them(rate):
    assert Strips(True, link=rate).link == rate


def test_everybody_gets_from_somebody_else():
    assert [partner_of(ONE_TO_ONE, rank, 3) for rank in range(3)] == [1, None, None]
    assert [partner_of(ALL_TO_ONE, rank, 3) for rank in range(3)] == [2, 2, None]
    assert [partner_of(ALL_TO_ALL, rank, 3) for rank in range(3)] == [1, 2, 0]


@pytest.mark.parametrize("body", (Reduction, Vector))
@pytest.mark.parametrize("passes", (1, 3))
def test_loops_are_right_in_any_strips_and_wrong_elements_are_seen(body, passes):
    n = 9000
    elements = np.arange(float(n)) % 1000
    loop = body(n, passes)
    for schedule in "vectorized", "fixed(700, 2)", "variable(16, 0.3, 1)":
        loop.spoil()
        loop.begin()
        for first, last in model.StripSchedule(schedule).strips(n):
            loop(elements[first:last], first)
        loop.check(elements)
        assert computing_seconds(body(n, passes), model.StripSchedule(schedule), n) > 0
    elements[-1] += 1
    with pytest.raises(WrongResult):
        loop.check(elements)


def _row(contender, seconds, halves=None, **more):
    row = {"case": "vector-one-to-one-link", "loop": "vector", "pattern": "one-to-one", "network": "link", "n": 1000}
    row |= {"seed": 7, "title": "one-to-one, over a link", "contender": contender, "seconds_median": seconds}
    row["seconds_min"] = seconds
    row |= {"halves": halves or [seconds, seconds], "schedule": contender.removeprefix("longshore ")}
    return row | {"strip_size": None} | more


def _finished(rows):
    result = {"rows": rows, "notes": []}
    Strips(True).finish(result)
    return result


def test_the_best_is_chosen_by_some_repetitions_and_compared_by_the_others():
    rows = [_row(VECTORIZED, 10.0, seconds_predicted=9.0), _row("longshore fixed(N/4, 1)", 6.0, [5.0, 7.0])]
    rows += [_row("longshore variable(0.3, 1)", 6.0, [6.0, 6.0]), _row(AUTO, 7.0, schedule="fixed(250, 1)")]
    result = _finished(rows)
    (told,) = result["loops"]
    # By the first half the fixed ones, which take 7 in the other; by the second those that grow, which take 6.
    assert (told["best_seconds"], told["fixed"], told["auto"]) == (6.5, 0.6, 0.7)
    assert told["auto_best"] == pytest.approx(sum(rows[3]["halves"]) / 13)
    of = result["summary"]["link"]
    assert (of["searched"], of["within"], of["behind"], of["worst_vectorized"]) == (1, 1, 0, 0.7)
    assert of["median_error"] == pytest.approx(0.1) and rows[3]["vectorized_ratio"] == 0.7


def test_overlap_is_a_part_of_what_is_possible():
    rows = [_row(VECTORIZED, 10.0), _row("longshore fixed(N/10, 1)", 7.0, strip_size=100, link_ratio=1.04)]
    rows += [_row(AUTO, 8.0), _row(strips.GET_ONLY, 6.0), _row(strips.COMPUTE_ONLY, 5.0)]
    (told,) = [one["overlap"] for one in _finished(rows)["loops"]]
    assert told["share"] == pytest.approx(3 / 4) and told["auto_share"] == pytest.approx(2 / 4)
    assert told["over_ideal"] == pytest.approx(7 / 6.5) and told["link_ratio"] == 1.04 and told["here_share"] is None
    (told,) = [one["overlap"] for one in _finished([*rows, _row(strips.BESIDE, 7.5)])["loops"]]
    assert told["here_share"] == pytest.approx(2 / 2.5)
    rows[-1] |= {"seconds_min": 0.5}
    assert _finished(rows)["loops"][0]["overlap"] is None


def test_networks_and_interference_are_compared():
    rows = [_row("longshore get", 8e-6, loop="parameters", loggp={"o_s": 1e-6, "o_r": 2e-6, "L": 0, "g": 0, "G": 1e-9})]
    rows[0] |= {"payload_bytes": 8000, "progress": "a thread"}
    rows += [_row("vector reduction", 2e-6, loop="parameters", payload_bytes=8000)]
    pair = (("alone", 4), ("the other gets", 5))
    rows += [_row(f"stride one, {words}", seconds, loop="interference") for words, seconds in pair]
    result = _finished(rows)
    (network,), (disturbed,) = result["networks"], result["interference"]
    assert network["ratio"] == pytest.approx(0.25) and network["network_kilobyte"] == pytest.approx(1.024e-6)
    assert network["o"] == pytest.approx(3e-6) and disturbed["slowdown"] == pytest.approx(0.25)


def test_without_mpi_everybody_is_missing(monkeypatch):
    monkeypatch.setattr(launch, "find_mpi", lambda mpiexec: (None, {}, "no MPI here"))
    result, text = run()
    assert result["rows"] == [] and "no MPI here" in text
    assert {m["contender"] for m in result["missing"]} == {contender.name for contender in CONTENDERS}


@needs_mpi
@pytest.mark.parametrize("ranks, cases", [(2, None), (3, ["all-to-one"])])
def test_everybody_is_verified_predicted_and_timed(ranks, cases, tmp_path):
    plot = tmp_path / "s.svg" if ranks == 2 else None
    result, text = run(ranks=ranks, cases=cases, json=tmp_path / "s.json", plot=plot)
    assert json.loads((tmp_path / "s.json").read_text()) == result
    assert {m["contender"] for m in result["missing"]} <= {SMALL}
    timed = {case for m in result["missing"] for case in m["cases"]}
    for case in Strips(True, ranks=ranks, cases=cases, sizes=[300], seed=7).cases:
        rows = {row["contender"]: row for row in result["rows"] if (row["case"], row["n"]) == (case.key, case.n)}
        wanted = [c.name for c in CONTENDERS if c.applies(case)]
        assert list(rows) == [name for name in wanted if name != SMALL or case.name not in timed]
        for name, row in rows.items():
            assert FIELDS <= row.keys() and row["verified"] and (row["ranks"], row["repeats"]) == (ranks, 2)
            assert 0 < row["seconds_min"] <= row["seconds_median"] <= row["seconds_max"]
            if case.is_loop and name.startswith("longshore") and name != strips.GET_ONLY:
                assert row["seconds_predicted"] > 0 and row["strips"] >= 1 and row["payload_bytes"] == 8 * case.n
        if case.is_loop:
            assert rows[VECTORIZED]["vectorized_ratio"] == 1 and rows[AUTO]["search_loops"] >= 1
    assert result["summary"]["all"]["searched"] == len(result["loops"])
    assert "over 1 seed and 1 size auto is within 10%" in text
    if cases is None:
        assert list(NETWORK_WORDS.values())[:3] == [network["network"] for network in result["networks"]]
        assert len(result["interference"]) == 6 and [mg["speedup"] > 0 for mg in result["mg"]] == [True]
    assert plot is None or plot.stat().st_size > 0


@needs_mpi
def test_each_seed_draws_loops_anew_and_all_are_summed_up(tmp_path):
    options = {"cases": ["reduction-one-to-one-seen", "interference-one-to-one-seen"], "sizes": [100, 300]}
    contenders = ["longshore fixed(N/4, 1)", AUTO, "indirect, alone", "indirect, the other gets"]
    result, text = run(**options, seeds=3, contenders=contenders, json=tmp_path / "s.json")
    assert result["missing"] == [] and {row["seed"] for row in result["rows"]} == {7, 8, 9}
    assert json.loads((tmp_path / "s.json").read_text()) == result
    assert [(one["n"], one["seed"]) for one in result["loops"]] == [(n, seed) for n in (100, 300) for seed in (7, 8, 9)]
    assert [one["seed"] for one in result["interference"]] == [7, 8, 9]
    for one in result["loops"]:  # each is compared with what had the same seed
        rows = [row for row in result["rows"] if (row["case"], row["n"]) == (one["case"], one["n"])]
        (whole,) = [row for row in rows if row["seed"] == one["seed"] and row["contender"] == VECTORIZED]
        assert one["vectorized_seconds"] == whole["seconds_median"] and whole["vectorized_ratio"] == 1
    of = result["summary"]["all"]
    assert (of["searched"], of["seeds"], of["sizes"]) == (6, [7, 8, 9], [100, 300])
    assert "all: over 3 seeds and 2 sizes auto is within 10%" in text and "--seed 7 --seeds 3" in " ".join(text.split())


def test_the_same_seed_draws_the_same_and_others_do_not():
    cases = [Strips(True, cases=["reduction"], seed=seed, seeds=2).cases for seed in (5, 5, 6)]
    drawn = [[case.first for case in of] for of in cases]
    assert drawn[0] == drawn[1] and len(set(drawn[0])) > len(drawn[0]) // 2
    assert drawn[0][1::2] == drawn[2][::2] and drawn[0] != drawn[2]
    assert len({case.name for case in cases[0]}) == len(cases[0])
    assert Strips(True).seed != 0 and Strips(True, seed=3).seeds == [3]


def test_who_was_furthest_behind_is_named():
    rows = [
        _row(name, seconds, seed=seed)
        for seed, auto in ((7, 1.0), (8, 1.3))
        for name, seconds in ((VECTORIZED, 1.0), (AUTO, auto))
    ]
    of = _finished(rows)["summary"]["all"]
    assert (of["searched"], of["within"], of["behind"]) == (2, 1, 1)
    assert of["worst_vectorized"] == 1.3 and of["worst_case"] == "vector-one-to-one-link 1000, seed 8"


@needs_mpi
def test_nodes_with_a_link_take_part(tmp_path):
    nodes = pytest.importorskip("longshore_lab.nodes")
    try:
        with nodes.Nodes(2, rate="1gbit"):
            pass
    except nodes.CannotMakeNodes as why:
        pytest.skip(str(why))
    result, text = run(link="1gbit", cases=["even-one-to-one-link"], sizes=[1 << 14])
    assert {m["contender"] for m in result["missing"]} <= {SMALL}
    (told,) = result["loops"]
    assert told["network"] == "link" and told["best_seconds"] > 0
    got = [row for row in result["rows"] if row["contender"] != strips.COMPUTE_ONLY]
    assert all(1 <= row["link_ratio"] < 1.3 for row in got)
    assert "MPI over a link of 1gbit" in text


@needs_mpi
def test_where_no_nodes_can_be_made_that_is_said(monkeypatch):
    nodes = pytest.importorskip("longshore_lab.nodes")

    def refused(*_, **__):
        raise nodes.CannotMakeNodes("not here")

    monkeypatch.setattr(nodes, "Nodes", refused)
    result, text = run(link="1gbit", cases=["link"], sizes=[64])
    assert result["rows"] == [] and "no nodes can be made here: not here" in text
    assert len(result["missing"][0]["cases"]) == 3 + 2 * 3


@pytest.mark.parametrize(
    "options, words",
    [
        ({"cases": ["diagonal"]}, "no case 'diagonal'"),
        ({"cases": ["link"]}, "--link"),
        ({"contenders": ["teleport"]}, "no contender 'teleport'"),
        ({"sizes": [0]}, "sizes"),
        ({"repeats": 0}, "repeats"),
        ({"ranks": 1}, "2 at least"),
        ({"seed": -1}, "seed"),
        ({"seeds": 0}, "seeds"),
        ({"mpiexec": "no-such-mpiexec"}, "mpiexec"),
        ({"plot": "p.pdf"}, "p.pdf"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(BenchError, match=words):
        run(**options)


def test_cases_are_chosen_by_their_parts():
    keys = {case.key for case in Strips(True, cases=["reduction"]).cases}
    patterns, networks = (ONE_TO_ONE, ALL_TO_ALL), ("seen", "kernel", "messages")
    assert keys == {f"reduction-{pattern}-{network}" for pattern in patterns for network in networks}
    (case,) = Strips(True, cases=["vector-all-to-all-seen"], sizes=[5], seed=3).cases
    assert case == StripsCase("vector", ALL_TO_ALL, "seen", 5, quick=True, seed=3)
