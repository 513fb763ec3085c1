"""What `redistribute(report=)` and `move(report=)` tell: what was predicted beside what was measured."""

import json
import math

import longshore as ls
import numpy as np
import pytest
from longshore import _report, model, tune
from longshore.stores import move, moving, windows

SHAPE = (300, 200)
ROWS, TILES = ls.Layout("(BLOCK, *) on 4", SHAPE), ls.Layout("(CYCLIC(8), BLOCK) on 2x2", SHAPE)


def test_redistribute_tells_who_asks(capsys):
    array = np.arange(math.prod(SHAPE), dtype="f8").reshape(SHAPE)
    told = []
    parts = ls.scatter(array, ROWS)
    out = ls.redistribute(parts, ROWS, TILES, report=told.append)
    ls.redistribute(parts, ROWS, TILES, out=out, threads=1, report=told.append)
    assert np.array_equal(ls.gather(out, TILES), array) and capsys.readouterr().out == ""
    plan = ls.plan(ROWS, TILES, "f8")
    for report, threads in zip(told, (0, 1)):
        assert report.way == "threads" and report.bytes == array.nbytes and report.coarse
        assert report.seconds_predicted == model.predict(plan, tune.coarse_profile(), threads=threads).best.seconds
        assert report.error == report.seconds_predicted / report.seconds_measured - 1
        assert report.megabytes_per_second == array.nbytes / 1e6 / report.seconds_measured
    assert json.loads(json.dumps(report.as_dict()))["error"] == report.error
    ls.redistribute(parts, ROWS, TILES, report=True)
    words = capsys.readouterr().out
    assert words.count("\n") == 1 and "measured" in words and "predicted" in words and "calibrate" in words
    for silent in (False, None):
        ls.redistribute(parts, ROWS, TILES, report=silent)
    assert capsys.readouterr().out == ""
    for wrong in ("yes", 1, [print]):
        with pytest.raises(ls.ArgumentTypeError, match="report is"):
            ls.redistribute(parts, ROWS, TILES, report=wrong)


def test_what_cannot_be_predicted_is_said(tmp_path, monkeypatch, capsys):
    (tmp_path / "broken").write_text("{}")
    monkeypatch.setenv(tune.ENVIRONMENT, str(tmp_path / "broken"))
    told = []
    for report in (told.append, True):
        ls.redistribute(ls.scatter(np.zeros(SHAPE), ROWS), ROWS, TILES, report=report)
    assert told[0].seconds_predicted is None and told[0].error is None and "broken" in told[0].missing
    assert "not predicted: " in capsys.readouterr().out


def test_the_way_is_that_of_most_bytes():
    class Moving:
        path = (
            "900 bytes copied within the process\n30 bytes read straight from the arrays of processes on this node\n"
            "20 bytes sent through shared-memory rings\n20 bytes received through shared-memory rings\n"
            "9 bytes sent in MPI messages\nmemory is not shared as it might be: 100 bytes go through rings here"
        )

    assert _report.way_of(Moving) == (40, "ring")
    Moving.path = "900 bytes copied within the process"
    assert _report.way_of(Moving) == (0, "direct")


@pytest.mark.parametrize(
    "hosts, each",
    [("a", 0), ("aabb", 2), ("aab", 2), ("abc", 1), ("aaabbbcc", 3), ("abab", None), ("aabbb", None), ("aabbaa", None)],
)
def test_ranks_of_a_node(monkeypatch, hosts, each):
    monkeypatch.setattr(_report, "_gathered", lambda *_: list(hosts))
    assert _report.ranks_per_node(None) == each
    told = _report.share_of(ls.plan(ROWS, TILES, "f8"), "messages", 3, each)
    assert (told.seconds is None) == (each is None) == ("follow each other" in told.missing)


@pytest.mark.parametrize("most_bytes", [1 << 30, 20_000])
def test_moves_add_up_their_windows(tmp_path, monkeypatch, most_bytes):
    monkeypatch.chdir(tmp_path)
    choose, seen = windows.choose_window, []

    def smaller(shape, itemsize, source, destination, budget):
        seen[:] = [choose(shape, itemsize, source, destination, min(budget, most_bytes))]
        return seen[0]

    monkeypatch.setattr(moving, "choose_window", smaller)
    np.save("a.npy", np.zeros(SHAPE))
    assert move("a.npy", "rows", str(ROWS)).report is None
    report = move("rows", "tiles", str(TILES), threads=2, report=True)
    assert (report.windows > 1) == (most_bytes < 1 << 30)
    total = 0
    for lo, hi in windows.each_window(SHAPE, seen[0], (0, 1)):
        plan = ls.plan(ROWS.window(lo, hi), TILES.window(lo, hi), "V8")
        total += model.predict(plan, tune.coarse_profile(), threads=2).best.seconds
    told = report.report
    assert told.seconds_predicted == pytest.approx(total) and told.bytes == report.moved_bytes == 8 * math.prod(SHAPE)
    assert 0 < told.seconds_measured < report.seconds and report.read_seconds > 0 and report.write_seconds > 0
    assert json.loads(json.dumps(report.as_dict()))["report"]["seconds_predicted"] == told.seconds_predicted
