"""Machine profiles: what they are read from, where they are kept, and predictions that rest on them."""

import contextlib
import copy
import doctest
import json
import math
import os

import longshore as ls
import pytest
from hypothesis import given
from hypothesis import strategies as st
from longshore import model, tune
from longshore._core import CopyTimer
from longshore.tune import MachineProfile
from longshore.tune.copies import CopyCase, cases, relation

COARSE = tune.coarse_profile()
ROWS, COLUMNS = (ls.Layout(f"({text}) on 4", (64, 48)) for text in ("BLOCK, *", "*, BLOCK"))
PLAN = ls.plan(ROWS, COLUMNS, "float64")


@pytest.mark.parametrize("place", [tune, model.predict, model.predict_node], ids=["tune", "predict", "predict_node"])
def test_docstrings_are_true(place):
    test = doctest.DocTestParser().get_doctest(place.__doc__, dict(vars(model)), "tune", None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_profiles_come_back_from_json_and_files(tmp_path):
    again = MachineProfile.from_json(COARSE.to_json())
    assert again == COARSE and again != 1 and again.facts is not COARSE.facts
    assert again.coarse and again.machine == "a coarse guess" and "coarse" in repr(again)
    path = again.save(tmp_path / "new" / "folder" / "machine.json")
    assert MachineProfile.load(path) == MachineProfile.from_json(path.read_bytes()) == COARSE
    assert [file.name for file in path.parent.iterdir()] == ["machine.json"]
    assert model.predict(PLAN, again).best.seconds == model.predict(PLAN, COARSE).best.seconds


def test_a_profile_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = COARSE.save(tmp_path / "machine.json")
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "full")

    monkeypatch.setattr(type(path), "replace", fail)
    with pytest.raises(OSError, match="full"):
        COARSE.save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_where_this_machines_profile_is(tmp_path, monkeypatch):
    monkeypatch.delenv("LONGSHORE_PROFILE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert tune.profile_path().parent == tmp_path / "config" / "longshore" and tune.profile_path().suffix == ".json"
    assert tune.profile() == COARSE  # there is none yet
    monkeypatch.setenv("HOME", str(tmp_path))
    for unset in ("", None):
        monkeypatch.setenv("XDG_CONFIG_HOME", unset) if unset is not None else monkeypatch.delenv("XDG_CONFIG_HOME")
        assert tune.profile_path().parent == tmp_path / ".config" / "longshore"
    monkeypatch.setenv("LONGSHORE_PROFILE", str(tmp_path / "mine.json"))
    assert tune.profile_path() == tmp_path / "mine.json"
    mine = copy.deepcopy(COARSE.facts)
    mine["machine"] = "mine"
    assert MachineProfile(mine).save() == tmp_path / "mine.json"
    assert tune.profile().machine == "mine"
    (tmp_path / "mine.json").write_text("{}")
    with pytest.raises(ls.ArgumentError, match=r"mine\.json: this is no longshore machine profile"):
        tune.profile()


def changed(path, value):
    """The coarse profile with another value at a place, or without it."""
    facts = copy.deepcopy(COARSE.facts)
    *way, last = path
    at = facts
    for step in way:
        at = at[step]
    if value is KeyError:
        del at[last]
    else:
        at[last] = value
    return json.dumps(facts)


HOSTILE = {
    "no text": (b"\xff\xfe", "no profile"),
    "no JSON": ("{", "no profile"),
    "a list": ("[]", "no longshore machine profile"),
    "nesting": ("[" * 200_000, "no profile"),
    "nesting in place": (changed(["machine"], 0)[:-1] + ', "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "no profile"),
    "digits": (changed(["version"], 1).replace('"version": 1', '"version": ' + "9" * 10_000), "profile"),
    "version": (changed(["version"], 2), "version 2, not 1; calibrate again"),
    "no copies": (changed(["copies"], KeyError), "has no 'copies'"),
    "none of the copies": (changed(["copies"], []), "no table of copies"),
    "copies": (changed(["copies"], {}), "copies is {}; it must be a list"),
    "a copy": (changed(["copies", 3], 7), r"copies\[3\] is 7; it must be an object"),
    "transfer": (changed(["copies", 0, "transfer"], "hello"), "hello"),
    "no transfer": (changed(["copies", 0, "transfer"], KeyError), r"copies\[0\] has no 'transfer'"),
    "loops": (changed(["copies", 0, "loops"], "spirals"), "spirals"),
    "nan": (changed(["copies", 0, "megabytes_per_second"], math.nan), "NaN is no number"),
    "infinity": (changed(["copies", 0, "megabytes_per_second"], math.inf), "Infinity is no number"),
    "zero": (changed(["copies", 0, "megabytes_per_second"], 0), "1C1"),
    "large": (changed(["copies", 0, "megabytes_per_second"], 10**400), "must be a number within"),
    "text": (changed(["copies", 0, "megabytes_per_second"], "9"), "'9'; it must be a number within"),
    "bool": (changed(["copies", 0, "word_bytes"], True), "True; it must be an integer"),
    "words": (changed(["copies", 0, "word_bytes"], 10**30), "too large"),
    "threads": (changed(["copies", 0, "at_once"], 2**40), "too large"),
    "no threads": (changed(["copies", 0, "at_once"], 0), "0 threads at once"),
    "noisy": (changed(["copies", 0, "noisy"], None), "None; it must be true or false"),
    "machine": (changed(["machine"], None), "None; it must be a text"),
    "surrogates": (changed(["machine"], "\ud800"), "a terminal cannot have it"),
    "colours": (changed(["machine"], "\x1b[31mred"), "a terminal cannot have it"),
    "a word nobody knows": (changed(["other"], math.nan), "NaN is no number"),
    "ages": (changed(["calls", "start_seconds"], 1e300), "must be a number within"),
    "calls": (changed(["calls", "start_seconds"], -1), "-1"),
    "no calls": (changed(["calls", "wake_seconds"], KeyError), "calls has no 'wake_seconds'"),
    "samples": (changed(["exchanges", 0, "samples"], []), "no samples of direct"),
    "sizes": (changed(["exchanges", 0, "samples", 1, "bytes"], 1), "must be positive and ascend"),
    "caches": (changed(["caches_bytes"], {"L1": "x"}), "caches_bytes: L1 is 'x'; it must be an integer"),
    "loading in no time": (
        changed(["memory_load_seconds_per_byte"], -1e-9),
        "memory_load_seconds_per_byte is negative",
    ),
    "loading": (
        changed(["memory_load_seconds_per_byte"], "x"),
        "memory_load_seconds_per_byte is 'x'; it must be a num",
    ),
    "loggp": (changed(["loggp"], [{"pair": "same node"}]), "has no 'L_seconds'"),
}


@pytest.mark.parametrize("text, said", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_profile_is_refused(text, said):
    with pytest.raises(ls.ArgumentError, match=said):
        MachineProfile.from_json(text)


PLACES = [[key] for key in COARSE.facts]
PLACES += [["copies", 0, key] for key in COARSE.facts["copies"][0]]
PLACES += [["exchanges", 0, key] for key in COARSE.facts["exchanges"][0]]
PLACES += [["exchanges", 0, "samples", 0, key] for key in COARSE.facts["exchanges"][0]["samples"][0]]
PLACES += [["calls", key] for key in COARSE.facts["calls"]]
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
ANY = st.recursive(SIMPLE, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=9), x, max_size=3))


@given(st.sampled_from(PLACES), ANY | st.just(KeyError))
def test_whatever_stands_somewhere_is_taken_or_refused_and_shown(path, value):
    from longshore.tune.report import render

    try:
        profile = MachineProfile.from_json(changed(path, value))
    except ls.ArgumentError:
        return
    assert render(profile) and repr(profile)
    with contextlib.suppress(ls.ArgumentError):  # it says nothing of what is asked for
        assert all(way.seconds >= 0 for way in model.predict(PLAN, profile).ways)


def test_predictions_count_what_plans_count():
    for rank in range(4):
        told = model.predict(PLAN, COARSE, rank=rank)
        sends = [motion for motion in PLAN.sends(rank) if motion.destination != rank]
        assert told.rank == rank and told.coarse
        assert {way.way for way in told.ways} == {"direct", "ring", "messages", "collective"}
        for way in told.ways:
            assert way.messages == len(sends) and way.bytes == sum(motion.elements * 8 for motion in sends)
            assert 0 < way.seconds < 1 and way.expression_megabytes_per_second > 0
            assert way.bottleneck in str(way.expression)
        assert [way.seconds for way in told.ways] == sorted(way.seconds for way in told.ways)
        assert told.best.way == told.ways[0].way
    assert [way.way for way in model.predict(PLAN, COARSE, threads=2).ways] == ["threads"]
    assert "collective" not in {way.way for way in model.predict(PLAN, COARSE, ranks_per_node=2).ways}


def test_predictions_of_blocks():
    blocks = ls.FloorPlan([ls.Region([16 * k, 0], [16 * k + 16, 64]) for k in range(4)], range(4))
    halo = ls.BlockPlan.halo(blocks, 1)
    told = model.predict(halo, COARSE, rank=1, dtype="float32", ghost=1)
    assert told.best.messages == 2 and told.best.bytes == 2 * 64 * 4
    assert model.predict(halo, COARSE, dtype="float64").best.bytes == 2 * 64 * 8  # rank 1 or 2
    with pytest.raises(ls.ArgumentError, match="give dtype="):
        model.predict(halo, COARSE)


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 9), st.integers(1, 70))
def test_of_a_node_what_is_predicted_is_what_plans_count(ranks, block, rows, each):
    dealt, whole = (
        ls.Layout(f"(CYCLIC({block})) on {ranks}", (97 * rows,)),
        ls.Layout(f"(BLOCK) on {ranks}", (97 * rows,)),
    )
    plan = ls.plan(dealt, whole, "float32")
    for node in {0, (ranks - 1) // each}:
        here = range(node * each, min((node + 1) * each, ranks))
        out = [m for rank in here for m in plan.sends(rank) if m.destination not in here]
        into = [m for rank in here for m in plan.receives(rank) if m.source not in here]
        told = model.predict_node(plan, node, each, COARSE)
        assert (told.node, told.ranks, told.coarse) == (node, len(here), True)
        assert told.bytes_out == sum(4 * m.elements for m in out) and told.messages_out == len(out)
        assert told.bytes_in == sum(4 * m.elements for m in into) and told.messages_in == len(into)
        bytes_per_second = told.bandwidth_megabytes_per_second * 1e6
        assert told.bound_seconds == pytest.approx(max(told.bytes_out, told.bytes_in) / bytes_per_second)
        assert (told.startup_seconds > 0) == bool(out or into)


def test_mistakes_are_named():
    for wrong in ({"rank": -1}, {"rank": 4}, {"threads": -1}, {"ranks_per_node": -2}):
        with pytest.raises(ls.ArgumentError, match=next(iter(wrong))):
            model.predict(PLAN, COARSE, **wrong)
    with pytest.raises(TypeError, match="a plan must be a MotionPlan or a BlockPlan, not str"):
        model.predict("rows to columns", COARSE)
    with pytest.raises(TypeError, match="a plan must be a MotionPlan, not str"):
        model.predict_node("rows to columns", 0, 1, COARSE)
    for node, each in ((4, 1), (-1, 2), (0, 0), (2**62, 2**62)):
        with pytest.raises(ls.LongshoreError, match=r"node|rank|64"):
            model.predict_node(PLAN, node, each, COARSE)
    facts = copy.deepcopy(COARSE.facts)
    facts["exchanges"] = []
    alone = MachineProfile(facts)
    with pytest.raises(ls.ArgumentError, match="calibrate on a machine with MPI"):
        model.predict(PLAN, alone)
    assert model.predict(PLAN, alone, threads=1).best.way == "threads"
    for ask in (lambda: model.predict(PLAN, alone, ranks_per_node=1), lambda: model.predict_node(PLAN, 0, 1, alone)):
        with pytest.raises(ls.ArgumentError, match="other nodes take; calibrate on two nodes"):
            ask()


def test_a_profile_may_say_what_loading_takes():
    """Those of before do not, and are read all the same."""
    from longshore.tune.report import render

    facts = copy.deepcopy(COARSE.facts)
    assert "memory_load_seconds_per_byte" not in facts and "loading" not in render(COARSE)
    with pytest.raises(ls.ArgumentError, match="does not say what loading from memory takes; longshore calibrate"):
        model.memory_load(COARSE)
    facts["memory_load_seconds_per_byte"] = 2.5e-10
    loads = MachineProfile(facts)
    assert model.memory_load(loads) == 2.5e-10 and MachineProfile.from_json(loads.to_json()) == loads
    assert "loading what caches do not hold, one core: 0.250 ns a byte, 4.0 GB/s" in render(loads)
    for each in (0, 1e-9):
        ways = {cost.way: cost.seconds for cost in model.predict(PLAN, loads, work=each, rank=0).ways}
        more = {cost.way: cost.seconds for cost in model.predict(PLAN, COARSE, work=each + 2.5e-10, rank=0).ways}
        less = {cost.way: cost.seconds for cost in model.predict(PLAN, COARSE, work=each, rank=0).ways}
        assert ways == more and all(ways[way] > less[way] for way in ways)
    with pytest.raises(ls.ArgumentError, match="work is -0.000000 seconds a byte"):
        model.predict(PLAN, loads, work=-1e-12)
    plain = [[cost.seconds for cost in model.predict(PLAN, each).ways] for each in (loads, COARSE)]
    assert plain[0] == plain[1]  # where no loop is asked for, nothing is touched


def test_calibrating_tells_what_it_does(monkeypatch):
    monkeypatch.setattr("longshore.tune.copies.cases", lambda quick: [CopyCase("1", "1")])
    before, told = os.sched_getaffinity(0), []
    profile = tune.calibrate(quick=True, threads=1, progress=lambda what, part: told.append((what, part)))
    assert told and {what for what, _ in told} == {"copies"} and all(0 <= part <= 1 for _, part in told)
    assert profile.facts["cores"] == 1 and {one["at_once"] for one in profile.facts["copies"]} == {1}
    assert not profile.coarse and os.sched_getaffinity(0) == before
    assert 1e-12 < model.memory_load(profile) < 1e-7
    assert MachineProfile.from_json(profile.to_json()) == profile
    with pytest.raises(ls.ArgumentError, match="threads is -1"):
        tune.calibrate(threads=-1)


@pytest.mark.parametrize("quick", (False, True))
def test_every_case_fits_arrays_of_twice_what_is_touched(quick):
    touched = 1 << 20
    timer = CopyTimer(1, 2 * touched)
    for case in cases(quick):
        assert min(timer.time(relation(case, touched, touched), samples=1, seconds=0)) > 0


@pytest.mark.parametrize("given", ("measured.json", COARSE.facts))
def test_predictions_want_a_profile(given):
    with pytest.raises(ls.ArgumentTypeError, match="profile must be a tune.MachineProfile, not"):
        model.predict(PLAN, given)
    with pytest.raises(ls.ArgumentTypeError, match="profile must be a tune.MachineProfile, not"):
        model.predict_node(PLAN, 0, 2, given)
