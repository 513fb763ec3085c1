"""`longshore bench breakeven` from end to end on few words, and its loops."""

import io
import json
import math

import longshore as ls
import longshore_lab.run
import numpy as np
import pytest
from longshore_lab import BENCHES, BenchError, _loops, breakeven
from rich.console import Console

SECONDS = {"seconds_median", "seconds_min", "seconds_max", "seconds_predicted", "seconds_predicted_fitted"}
FIELDS = SECONDS | {"case", "n", "n_g", "contender", "repeats", "payload_bytes", "ranks", "threads"}
N_G = [1, 5, 40]


def run(width=120, **options):
    out = io.StringIO()
    tiny = {"sizes": [16, 64], "instructions": N_G, "repeats": 3}
    result = BENCHES["breakeven"].run(True, console=Console(file=out, width=width), **{**tiny, **options})
    return result, out.getvalue()


def test_it_is_registered():
    assert BENCHES["breakeven"].description


def test_json_has_its_form(tmp_path):
    result, text = run(json=tmp_path / "b.json")
    assert json.loads((tmp_path / "b.json").read_text()) == result
    assert result["bench"] == "breakeven" and result["version"] and result["machine"]["cpu"] and result["missing"] == []
    assert len(result["rows"]) == 2 * 2 * len(N_G) * 3
    for row in result["rows"]:
        assert FIELDS <= row.keys()
        assert 0 < row["seconds_min"] <= row["seconds_median"] <= row["seconds_max"]
        assert row["seconds_predicted"] > 0 and math.isfinite(row["seconds_predicted_fitted"])
        assert row["payload_bytes"] == 8 * row["n"] and row["repeats"] == 3 and row["ranks"] == row["threads"] == 1
        assert row["contender"] in {"longshore decode", "longshore encode", "recompute"}
        if row["n_g"] == N_G[0]:  # what the fit is made at
            assert row["seconds_predicted_fitted"] == pytest.approx(row["seconds_median"])
    assert "threshold: actual" in text and "differ from the actual ones by" in text


def test_tables_follow_from_rows_and_model():
    result, _ = run()
    assert [(t["case"], t["n"]) for t in result["tables"]] == [(k, n) for n in (16, 64) for k in breakeven.KINDS]
    for table in result["tables"]:
        rates = ls.model.MachineRates(**table["rates"])
        costs = ls.model.LoopCosts(
            decode_instructions=table["costs"]["counted"]["n_ac"],
            recompute_instructions=table["costs"]["counted"]["n_au"],
            encode_instructions=table["costs"]["counted"]["n_o"],
        )
        assert (costs.decode_instructions, costs.recompute_instructions, costs.encode_instructions) == (4, 3, 3)
        assert table["threshold"]["counted"] == ls.model.threshold_instructions(rates, costs)
        for point in table["points"]:
            median = {
                row["contender"]: row["seconds_median"]
                for row in result["rows"]
                if (row["case"], row["n"], row["n_g"]) == (table["case"], table["n"], point["n_g"])
            }
            decode, recompute = median["longshore decode"], median["recompute"]
            assert point["speedup"]["actual"] == recompute / decode
            assert point["speedup"]["actual_quartiles"] == sorted(point["speedup"]["actual_quartiles"])
            assert point["speedup"]["counted"] == ls.model.assembly_speedup(rates, costs, point["n_g"])
            uses = point["break_even"]["actual"]
            assert (uses is None) == (recompute <= decode)
            if uses is not None:
                assert median["longshore encode"] / uses + decode <= recompute * (1 + 1e-9)
            assert point["break_even"]["counted"] == ls.model.break_even_uses(rates, costs, point["n_g"])
    # Forty instructions that wait for each other cost more than reading two words on any machine.
    assert result["tables"][2]["points"][-1]["speedup"]["actual"] > 1


@pytest.mark.parametrize("width, quartiles", [(60, False), (80, False), (100, True)])
def test_the_tables_are_shown(width, quartiles):
    _, text = run(width, cases=["independent"], sizes=[32])
    assert "independent instructions, 32 words (1.2 KiB" in text and "dependent instructions, 16" not in text
    assert ("quartiles" in text) == quartiles
    assert "r_i" in text and "n_au" in text
    if width >= 80:
        assert "break-even" in text and text.count("(counted)") >= 2


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_the_plot_appears(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    target = tmp_path / f"b.{suffix}"
    run(plot=target, sizes=[16])
    content = target.read_bytes()
    assert content.startswith({"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!DOCTYPE html>"}[suffix])
    if suffix == "html":
        assert b"<svg" in content and b"threshold: actual" in content


def point(n_g, uses):
    return {"n_g": n_g, "break_even": {"actual": uses}}


def test_the_measured_threshold_is_where_decoding_wins_for_good():
    threshold = breakeven._measured_threshold
    assert threshold([point(1, None), point(2, 9), point(3, None), point(4, 5), point(8, 2)]) == [3, 4]
    assert threshold([point(1, 3), point(2, 2)]) == [None, 1]
    assert threshold([point(1, None), point(2, None)]) == [2, None]


def test_the_cache_that_holds_the_loops_is_named():
    caches = {"L1d": "48K", "L1i": "32K", "L2": "2048K", "L3": "260M"}
    assert breakeven._where(48 << 10, caches) == ", fits L1"
    assert breakeven._where((48 << 10) + 1, caches) == ", fits L2"
    assert breakeven._where(260 << 20, caches) == ", fits L3"
    assert breakeven._where((260 << 20) + 1, caches) == ", beyond the caches"
    assert breakeven._where(1, {}) == ""


def test_a_quick_run_begins_no_round_after_its_time(monkeypatch):
    monkeypatch.setattr(breakeven, "_QUICK_SECONDS_A_CASE", 0.0)
    result, _ = run(repeats=None, sizes=[16])
    assert {row["repeats"] for row in result["rows"]} == {1}


def test_sizes_beyond_memory_are_named_not_tried(monkeypatch):
    monkeypatch.setattr(longshore_lab.run, "available_memory", lambda: 2000)
    result, text = run()
    assert {row["n"] for row in result["rows"]} == {16}
    assert result["missing"][0]["cases"] == ["dependent 64", "independent 64"] and "memory" in text


@pytest.mark.parametrize(
    "options, words",
    [
        ({"cases": ["nop"]}, "no case 'nop'"),
        ({"sizes": [48]}, "powers of two"),
        ({"sizes": [2]}, "at least 4"),
        ({"instructions": [0]}, "1 to 64"),
        ({"instructions": [65]}, "1 to 64"),
        ({"instructions": []}, "nothing"),
        ({"repeats": 0}, "repeats"),
        ({"plot": "p.pdf"}, "p.pdf"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(BenchError, match=words):
        run(**options)


@pytest.mark.parametrize("kind", breakeven.KINDS)
def test_every_loop_makes_the_identity(kind):
    n, places = 8, np.arange(8)
    for n_g in range(1, _loops.most_instructions + 1):
        loops = _loops.AssemblyLoops(n)
        assert loops.encode(kind, n_g, 2) > 0
        np.testing.assert_array_equal(loops.pairs, np.stack([places, places], axis=1))
        assert loops.recompute(kind, n_g, 2) > 0
        np.testing.assert_array_equal(loops.message, np.stack([places, places + 2**32], axis=1))
        loops.clear()
        assert not loops.message.any() and not loops.pairs.any()


def test_a_loop_that_does_not_do_its_work_is_not_timed():
    class Lazy:
        """Recomputes nothing."""

        def __init__(self, n):
            self._loops = _loops.AssemblyLoops(n)

        def __getattr__(self, name):
            return getattr(self._loops, name) if name != "recompute" else lambda *_: 1.0

    class Module:
        AssemblyLoops = Lazy

    with pytest.raises(BenchError, match="WRONG RESULT: recompute"):
        breakeven._verify(Module, "dependent", [1], Lazy(16))


def test_loops_refuse_what_they_cannot_do():
    with pytest.raises(ls.ArgumentError, match="48 words; it must be a power of two"):
        _loops.AssemblyLoops(48)
    with pytest.raises(ls.SizeOverflowError):
        _loops.AssemblyLoops(2**62)
    loops = _loops.AssemblyLoops(4)
    for rate in (loops.read, loops.write, loops.random_read, loops.random_write):
        assert 0 < rate(3) < 1
    with pytest.raises(ls.ArgumentError, match="n_g is 65"):
        loops.encode("dependent", 65, 1)
    with pytest.raises(ls.ArgumentError, match="nop"):
        loops.recompute("nop", 1, 1)
    with pytest.raises(ls.ArgumentError, match="passes is 0"):
        loops.decode(0)
    with pytest.raises(ValueError):
        loops.message[0, 0] = 1
