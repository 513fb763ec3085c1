"""`longshore bench ranks` from end to end on few maps, and its cases."""

import io
import json

import longshore as ls
import numpy as np
import pytest
from longshore_lab import BENCHES, BenchError, _loops, ranks
from rich.console import Console


def run(**options):
    out = io.StringIO()
    result = BENCHES["ranks"].run(True, console=Console(file=out, width=140), **{"maps": 1, "repeats": 1, **options})
    return result, out.getvalue()


def test_it_is_registered():
    assert BENCHES["ranks"].description


def test_json_has_its_form(tmp_path):
    result, text = run(cases=["B", "sub-mesh"], json=tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text()) == result
    assert result["bench"] == "ranks" and result["world"] == 2**20 and result["machine"]["cpu"]
    contenders = {row["contender"] for row in result["rows"]}
    assert {"int array", "longshore nest", "longshore elias-fano", "thesis gap", *ranks.STRATEGIES} <= contenders
    assert "thesis hybrid, no stride" in contenders
    for peer in ("sdsl-lite", "CRoaring"):
        assert (peer in contenders) != any(m["contender"] == peer for m in result["missing"])
    without = next(row for row in result["rows"] if row["contender"] == "thesis hybrid, no stride")
    assert without["case"] == "B" and without["representation"] != "stride" and without["build_ns"] > 0
    for row in result["rows"]:
        assert (
            row["seconds_min"] <= row["seconds_median"] <= row["seconds_max"]
            and row["payload_bytes"] == 8 * row["questions"]
        )
        assert row["bytes"] > 0 and row["select_ns"] > 0 and row["select_dependent_ns"] > 0 and row["bound_bytes"] > 0
    assert len(result["groups"]["operations_ns"]) == 10 and min(result["groups"]["operations_ns"].values()) > 0
    assert "class B" in text and "sub-mesh" in text and "aims" in text
    assert {aim["aim"] for aim in result["aims"]} >= {"bytes of nested loops", "SELECT of nested loops"}
    assert next(aim for aim in result["aims"] if aim["aim"] == "bytes of nested loops")["met"]


def test_the_bound_is_that_of_counting():
    few = ranks.RankCase("A", "few", np.array([3, 5]))
    assert ranks.bound_bytes(few) == pytest.approx(np.log2(2**20 * (2**20 - 1) / 2) / 8)
    listed = ranks.RankCase("A", "list", np.array([5, 3]))
    assert ranks.bound_bytes(listed) == pytest.approx(np.log2(2**20 * (2**20 - 1)) / 8)


@pytest.mark.parametrize("letter", ranks.CLASSES)
def test_classes_are_distinct_ranks_of_the_world(letter):
    for case in ranks.class_maps(letter, 3):
        assert len(np.unique(case.members)) == len(case.members) > 0
        assert 0 <= case.members.min() and case.members.max() < ranks.WORLD
        ascending = bool(np.all(np.diff(case.members) > 0))
        assert ascending == (letter != "E") or len(case.members) == 1
    again = [case.members for case in ranks.class_maps(letter, 2)]
    assert all(np.array_equal(a, b.members) for a, b in zip(again, ranks.class_maps(letter, 3)))


@pytest.fixture(scope="module")
def named():
    return {case.name: case.members for case in ranks.named_maps()}


def test_curves_go_from_neighbour_to_neighbour(named):
    row, column = np.divmod(named["Hilbert order"], 1024)
    assert np.all(np.abs(np.diff(row)) + np.abs(np.diff(column)) == 1)
    assert np.array_equal(np.sort(named["Morton order"]), np.arange(ranks.WORLD))
    for name, members in named.items():
        assert len(np.unique(members)) == len(members), name


def test_what_is_structured(named):
    maps = [("A", "A0"), ("B", "B0"), ("D", "D7"), *(("named", name) for name in named)]
    structured = {name for group, name in maps if ranks.is_structured(group, name)}
    assert {"B0", "D7", "Hilbert order", "shuffled nodes", *ranks.NESTED} <= structured
    assert not structured & {"A0", "random 10k", "random graph", "random permutation", "leaders of shuffled nodes"}


def test_peers_answer_as_ours():
    peers = pytest.importorskip("longshore_lab._peers")
    members = np.array([3, 4, 70000, 2**20 - 1])
    for name in peers.peers():
        peer = peers.make(name, members)
        assert peer.size == 4 and peer.bytes > 0
        assert [peer.select(i) for i in range(4)] == members.tolist()
        assert [peer.rank(w) for w in (3, 4, 5, 70000, 2**20 - 1, 2**20)] == [0, 1, -1, 2, 3, -1]
        assert peer.select_seconds(np.array([0, 3]), "dependent") > 0
        with pytest.raises(ls.ArgumentError, match="ascending"):
            peers.make(name, np.array([4, 3]))


def test_an_unknown_case_is_refused():
    with pytest.raises(BenchError, match="there is no case 'Z'"):
        run(cases=["Z"])


def test_loops_refuse_what_is_no_question():
    with pytest.raises(ls.ArgumentError, match="outside"):
        _loops.rank_select_seconds(ls.RankMap.whole(5), np.array([5]), "independent")
    with pytest.raises(ls.ArgumentError, match="questions"):
        _loops.rank_select_seconds(ls.RankMap.whole(5), np.array([4]), "often")
