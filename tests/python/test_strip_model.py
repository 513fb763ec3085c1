"""Strip mining by LogGP from Python: schedules as values, the recurrence and the simulator. Numbers are checked in
tests/model."""

import doctest
import subprocess
import sys

import longshore as ls
import pytest
from hypothesis import given
from hypothesis import strategies as st
from longshore import model, tune
from longshore.model import LogGP, RankSteps, StripSchedule, simulate, strip_cost, strip_steps, strip_waits

NET = LogGP(L=1e-6, o_s=4e-6, o_r=2e-6, g=5e-6, G=6e-9)
PLACES = [StripSchedule, RankSteps, strip_cost, strip_waits, simulate]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_docstrings_are_true(place):
    test = doctest.DocTestParser().get_doctest(place.__doc__, dict(vars(model)), "model", None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def schedules():
    size, depth = st.integers(1, 2**40), st.integers(1, 9)
    growth = st.floats(model.StripSchedule.variable(1, 1e-6).growth, 9)
    return st.one_of(
        st.builds(StripSchedule.small),
        st.builds(StripSchedule.vectorized),
        st.builds(StripSchedule.fixed, size, depth),
        st.builds(StripSchedule.variable, size, growth, depth),
    )


@given(schedules(), st.integers(0, 500))
def test_schedules_are_values(schedule, elements):
    assert StripSchedule(str(schedule)) == schedule == eval(repr(schedule)) != str(schedule)
    assert hash(StripSchedule(str(schedule))) == hash(schedule)
    strips = list(schedule.strips(elements))
    assert len(strips) == schedule.count(elements)
    assert [first for first, _ in strips] == [0, *(last for _, last in strips)][: len(strips)]
    assert sum(last - first for first, last in strips) == elements
    assert schedule.buffer(elements, 1) == max((last - first for first, last in strips), default=0)
    assert schedule.kind in ("small", "vectorized", "fixed", "variable")
    for link in "independent", "shared":
        cost = strip_cost(schedule, elements, NET, compute=3e-9, memory=1e-9, link=link)
        assert cost.strips == len(strips)
        assert cost.seconds == pytest.approx(cost.communication + cost.computing)
        assert cost.computing == pytest.approx(8 * elements * 4e-9)
        waits = strip_waits(schedule, elements, NET, compute=4e-9, link=link)
        assert min(waits, default=0) >= 0 and sum(waits) == pytest.approx(cost.waiting)
        steps = strip_steps(schedule, elements, "one-to-one", 2, compute=4e-9)
        assert simulate(steps, NET, link=link).seconds == pytest.approx(cost.seconds)


def test_as_much_as_there_can_be_is_no_more_work():
    for schedule in "small", "fixed(1, 3)", "variable(1, 0.1)", "vectorized":
        cost = strip_cost(schedule, 2**63 - 1, NET)
        assert cost.communication >= 2**63 * 8 * NET.G * (0.4 if schedule != "small" else 1)


def test_a_simulation_says_where_the_time_goes():
    halo = ls.BlockPlan.halo(ls.FloorPlan.even(ls.Region([0, 0], [64, 64]), 16), 1)
    told = simulate(halo, NET, dtype="float64", copy=1e-10)
    assert [(of.ranks, of.messages_out) for of in sorted(told.classes, key=lambda of: of.messages_out)] == [
        (4, 3),
        (8, 5),
        (4, 8),
    ]
    shares = told.critical_shares
    parts = [getattr(shares, name) for name in dir(shares) if not name.startswith("_")]
    assert sum(parts) == pytest.approx(told.seconds)
    assert told.messages == 84 and told.bytes == 8 * (24 * 16 * 2 + 36)
    assert "rank" in repr(told) and "issuing" in repr(told) and "messages out" in repr(told.classes)
    slow = LogGP(o_s=1e-6, G=1e-7)
    one, many = (simulate(halo, slow, dtype="float64", queue=queue) for queue in (1, 0))
    assert one.seconds > many.seconds and one.shares.queue > 0 == many.shares.queue


def test_a_profile_has_the_parameters_of_its_pairs():
    facts = dict(tune.coarse_profile().facts)
    names = {"L": 1e-6, "o_s": 2e-6, "o_r": 3e-6, "g": 4e-6}
    facts["loggp"] = [
        {
            "pair": "same node",
            **{f"{name}_seconds": value for name, value in names.items()},
            "G_seconds_per_byte": 1e-10,
        }
    ]
    profile = tune.MachineProfile(facts)
    found = model.loggp(profile, "same node")
    assert found == LogGP(**names, G=1e-10) == eval(repr(found))
    assert model.smallest_strip(found) == pytest.approx(5e4)
    with pytest.raises(ls.ArgumentError, match="no LogGP parameters of the pair 'other node'"):
        model.loggp(profile)


MILLION = """
import resource, time
import longshore as ls
from longshore.model import LogGP, simulate
begin = time.process_time()
halo = ls.BlockPlan.halo(ls.FloorPlan.even(ls.Region([0] * 3, [3200] * 3), 10**6), 1)
told = simulate(halo, LogGP(L=2e-6, o_s=1e-6, o_r=1e-6, g=1e-6, G=1e-10), dtype="float64")
seconds, kilobytes = time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert told.messages == 25_463_592 and sum(ranks.ranks for ranks in told.classes) == 10**6, told.classes
assert seconds < 60 and kilobytes < 4e6, (seconds, kilobytes)
"""


@pytest.mark.slow
def test_a_halo_of_a_million_ranks_takes_less_than_a_minute_and_four_gigabytes():
    done = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_mistakes_are_named():
    with pytest.raises(ls.ArgumentError, match="expected small, vectorized"):
        strip_cost("auto", 1, NET)
    with pytest.raises(ls.ArgumentError, match="G is -1"):
        LogGP(G=-1)
    with pytest.raises(ls.ArgumentError, match='link is "slow"'):
        strip_cost("small", 1, NET, link="slow")
    with pytest.raises(ls.ArgumentError, match='pattern is "all"'):
        strip_steps("small", 1, "all", 2)
    with pytest.raises(ls.ArgumentError, match="give dtype="):
        simulate(ls.BlockPlan.halo(ls.FloorPlan.even(ls.Region([0], [8]), 2), 1), NET)
    with pytest.raises(ls.ArgumentTypeError, match="not int"):
        simulate(3, NET)
    with pytest.raises(ls.ArgumentError, match="queue is -1"):
        simulate(RankSteps(1), NET, queue=-1)
    lonely = RankSteps(2)
    lonely.receive(1)
    with pytest.raises(ls.DeadlockError, match="rank 0 waits for 1 more messages of stage 0"):
        simulate(lonely, NET)
