"""What can be told from nothing but its value is copied and pickled as one; arrays are copied with what they hold."""

import copy
import pickle

import longshore as ls
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from longshore import model, tune

POSITIVE = st.floats(1e-6, 1e12)
NOT_NEGATIVE = st.floats(0, 1e12)
RATES = st.dictionaries(
    st.sampled_from(["1C1", "64C1", "1C64", "wC1", "1S0", "0D1", "Nd", "Nd@2", "Nadp@4.5"]), POSITIVE
)
CONSTRAINTS = st.builds(
    model.ResourceConstraint,
    st.text(st.characters(codec="utf-8"), min_size=1),
    st.dictionaries(st.sampled_from(["C", "S", "R", "Nd"]), POSITIVE, min_size=1),
    megabytes_per_second=POSITIVE,
)
VALUES = {
    "LogGP": st.builds(model.LogGP, **dict.fromkeys(("L", "o_s", "o_r", "g", "G"), NOT_NEGATIVE)),
    "StripSchedule": st.one_of(
        st.sampled_from([model.StripSchedule.small(), model.StripSchedule.vectorized()]),
        st.builds(model.StripSchedule.fixed, st.integers(1, 2**40), st.integers(1, 9)),
        st.builds(model.StripSchedule.variable, st.integers(1, 2**40), st.floats(1e-3, 0.99), st.integers(1, 9)),
    ),
    "TransferExpression": st.builds(
        lambda pattern, network, congestion, other: model.TransferExpression(
            f"{pattern}C1 o (1S0 || {network}@{congestion!r} || 0D1) o 1C{other}"
        ),
        st.sampled_from(["64", "w", "1024[256]"]),
        st.sampled_from(["Nd", "Nadp"]),
        st.floats(1, 100),
        st.integers(1, 2**40),
    ),
    "MachineRates": st.builds(
        model.MachineRates,
        **{
            f"{name}_per_second": POSITIVE
            for name in ("instructions", "read_words", "random_read_words", "write_words", "random_write_words")
        },
    ),
    "LoopCosts": st.builds(
        model.LoopCosts, **{f"{name}_instructions": NOT_NEGATIVE for name in ("decode", "recompute", "encode")}
    ),
    "ResourceConstraint": CONSTRAINTS,
    "ThroughputTable": st.builds(
        model.ThroughputTable,
        st.text(st.characters(codec="utf-8")),
        RATES,
        congestion=st.floats(1, 100).filter(lambda congestion: congestion != 2),  # then Nd would be Nd@2
        constraints=st.lists(CONSTRAINTS, max_size=2),
    ),
}


def again(value, oldest=0):
    """The value as it is copied and pickled, in every way there is."""
    yield from (copy.copy(value), copy.deepcopy(value), copy.deepcopy([value])[0])
    for protocol in range(oldest, pickle.HIGHEST_PROTOCOL + 1):
        yield pickle.loads(pickle.dumps(value, protocol))


@pytest.mark.parametrize("kind", VALUES)
@given(st.data())
def test_a_copy_of_a_value_equals_it(kind, data):
    value = data.draw(VALUES[kind])
    assert type(value) is getattr(model, kind)
    for made in again(value):
        assert type(made) is type(value) and made == value


@pytest.mark.parametrize(
    "text, more",
    [
        ("(*, BLOCK) on 3", {}),
        ("(BLOCK, *) on 3", {}),
        ("(BLOCK, *) on 3", {"origin": (1, 0)}),
        ("(BLOCK(7), *) on 3", {"source": (1,), "origin": (2, 0)}),
        ("(CYCLIC, *) on 3", {"source": (2,)}),
        ("(CYCLIC(3), *) on 3", {"origin": (2, 0)}),
        ("(GEN_BLOCK(4, 0, 6), *) on 3", {}),
    ],
)
def test_a_distribution_is_copied_and_compared(text, more):
    value = ls.Layout(text, (10, 2), **more).distributions[0]
    for made in (ls.Layout(text, (10, 2), **more).distributions[0], *again(value, oldest=2)):
        assert type(made) is type(value) and made == value and hash(made) == hash(value) and str(made) == str(value)
        for name in ("kind", "extent", "coordinates", "block", "origin", "sizes", "largest_count"):
            assert getattr(made, name) == getattr(value, name)
    assert value != ls.Layout("(CYCLIC(2), *) on 3", (10, 2)).distributions[0] and value != text


def test_motions_of_a_plan_are_copied_and_compared():
    rows, tiles = ls.Layout("(BLOCK, *) on 4", (12, 9)), ls.Layout("(CYCLIC(2), CYCLIC(3)) on 2x2", (12, 9))
    plan = ls.plan(rows, tiles, "f8")
    motions = [motion for rank in range(4) for motion in plan.sends(rank)]
    assert len(set(motions)) == len(motions) > 4
    for motion, same in zip(motions, [motion for rank in range(4) for motion in plan.sends(rank)]):
        for made in (same, *again(motion, oldest=2)):
            assert type(made) is ls.Motion and made == motion and hash(made) == hash(motion)
            assert repr(made) == repr(motion) and plan.relation_of(made) == plan.relation_of(motion)
    assert motions[0] != motions[1] and motions[0] != repr(motions[0])


def test_motions_between_blocks_are_copied():
    blocks = ls.FloorPlan.even(ls.Region.of_shape((8, 6)), 4)
    turned = ls.FloorPlan.even(ls.Region.of_shape((6, 8)), 4)
    plans = [
        ls.BlockPlan.halo(blocks, 1),
        ls.BlockPlan.transpose(blocks, turned),
        ls.BlockPlan.gather_points(ls.FloorPlan.even(12, 3), [[4, 8, 5], [3, 11], []]),
    ]
    for plan in plans:
        motions = [motion for rank in range(4) for motion in plan.receives(rank)]
        assert motions
        for motion in motions:
            for made in again(motion, oldest=2):
                assert type(made) is ls.BlockMotion and made == motion and hash(made) == hash(motion)
                assert str(made) == str(motion) and made.axes == motion.axes


def test_an_explanation_of_ranks_is_copied():
    for members in (range(0, 64, 4), [5, 1, 9, 2]):
        told = ls.explain_ranks(members, 64)
        for made in again(told, oldest=2):
            assert type(made) is ls.RankExplanation and made.rows == told.rows and str(made) == str(told)
            assert (made.size, made.world, made.structure) == (told.size, told.world, told.structure)


def told(value):
    """All that a value of the core's tells, in words."""
    if isinstance(value, list):
        return [told(each) for each in value]
    names = [name for name, kind in vars(type(value)).items() if isinstance(kind, property)]
    return {name: told(getattr(value, name)) for name in names} if names else repr(value)


def test_what_models_and_caches_tell_is_copied():
    rows, columns = ls.Layout("(BLOCK, *) on 4", (64, 64)), ls.Layout("(*, CYCLIC(4)) on 4", (64, 64))
    net = model.LogGP(L=1, o_s=0.25, o_r=0.5, g=0.25, G=0.125)
    steps = model.strip_steps("fixed(8)", 40, "all-to-one", 3)
    values = [
        model.predict(ls.plan(rows, columns, "f8"), tune.coarse_profile()),
        model.strip_cost("fixed(8)", 40, net),
        model.simulate(steps, net),
        model.evaluate("1C1 o (1S0 || Nd || 0D1) o 1C64", model.cray_t3d),
        ls.RelationCache(1 << 20).statistics,
    ]
    values += [values[0].best, values[2].shares, values[2].classes[0], values[3].bottleneck]
    for value in values:
        for made in again(value, oldest=2):
            assert type(made) is type(value) and told(made) == told(value)


def values_with_states():
    rows, dealt = ls.Layout("(BLOCK, *) on 4", (64, 64)), ls.Layout("(*, CYCLIC(4)) on 4", (64, 64))
    plan = ls.plan(rows, dealt, "f8")
    blocks = ls.FloorPlan.even(ls.Region.of_shape((8, 6)), 4)
    turned = ls.BlockPlan.transpose(blocks, ls.FloorPlan.even(ls.Region.of_shape((6, 8)), 4))
    listed = ls.BlockPlan.gather_points(ls.FloorPlan.even(12, 3), [[4, 8, 5], [3, 11], []])
    yield from (plan.sends(0)[1], rows.distributions[0], dealt.distributions[1])
    yield ls.Layout("(GEN_BLOCK(4, 0, 6), *) on 3", (10, 2)).distributions[0]
    yield from (of.receives(0)[0] for of in (ls.BlockPlan.halo(blocks, 1), turned, listed))
    yield ls.explain_ranks([5, 1, 9, 2], 64)
    yield model.predict(plan, tune.coarse_profile())
    yield model.evaluate("1C1 o (1S0 || Nd || 0D1) o 1C64", model.cray_t3d)
    yield model.evaluate("64C1", model.cray_t3d).bottleneck


WRONG = [None, -1, 10**6, 2**62, -(2**63), 2**70, "x", b"x", (), (1,), [], [2**62, 2**62], [[1], [2, 3]], ((1,),), 1.5]


@pytest.mark.parametrize("value", [*values_with_states()], ids=lambda value: type(value).__name__)
def test_a_state_that_no_value_has_is_refused(value):
    """Or makes a value that can be asked anything."""
    state = value.__getstate__()
    states = [*WRONG, *(state[:n] for n in range(len(state))), (*state, 1), list(state)]
    states += [(*state[:k], wrong, *state[k + 1 :]) for k in range(len(state)) for wrong in WRONG]
    refused = 0
    for wrong in states:
        made = type(value).__new__(type(value))
        try:
            made.__setstate__(wrong)
        except (ls.LongshoreError, TypeError):
            refused += 1
        else:
            told(made)
    assert refused > len(states) / 3


def test_a_motion_of_another_plan_has_no_relation():
    plans = [
        ls.plan(ls.Layout(source, shape), ls.Layout(destination, shape), "f8")
        for shape, source, destination in [
            ((64,), "(BLOCK) on 3", "(CYCLIC) on 2"),
            ((64, 64), "(BLOCK, *) on 4", "(*, CYCLIC(4)) on 5"),
            ((64, 64), "(*, BLOCK) on 7", "(*, CYCLIC(4)) on 4"),
        ]
    ]
    for plan in plans:
        for other in plans:
            motion = other.sends(2)[-1]
            if other is plan:
                assert plan.relation_of(motion).elements == plan.typical_relation_of(motion).elements == motion.elements
                continue
            for relation in (plan.relation_of, plan.typical_relation_of):
                with pytest.raises(
                    ls.ArgumentError, match=rf"from rank 2 to rank {motion.destination} is none of move"
                ):
                    relation(motion)


def test_the_tables_of_the_paper_can_be_copied():
    for made in again(model.cray_t3d):
        assert made == model.cray_t3d and made.to_json() == model.cray_t3d.to_json()


@pytest.mark.parametrize(
    "ghost, order, rank, dtype", [(0, "C", None, "f8"), (((0, 2), 1), "F", None, "i4,f8"), (1, "C", 1, "S3")]
)
def test_a_deep_copy_of_an_xarray_has_its_elements_and_memory_of_its_own(ghost, order, rank, dtype):
    x = ls.XArray(ls.FloorPlan.even(ls.Region.of_shape((5, 4)), 3), dtype, ghost, order=order, rank=rank)
    for k, grid in x.items():
        grid[...] = np.full(grid.shape, k + 1).astype("i4").astype(dtype)
    made, twice = copy.deepcopy([x, x])
    assert made is twice and made is not x
    for name in ("blocks", "dtype", "ghost", "order", "rank", "owned"):
        assert getattr(made, name) == getattr(x, name)
    for k, grid in made.items():
        assert isinstance(grid, ls.Grid) and grid.region == x[k].region and grid.strides == x[k].strides
        np.testing.assert_array_equal(np.asarray(grid), np.asarray(x[k]))
        before = np.array(x[k])
        grid[...] = np.zeros((), dtype)
        np.testing.assert_array_equal(np.asarray(x[k]), before)
    same = copy.copy(x)
    assert all(same[k] is x[k] for k in x.owned)


def test_an_xarray_that_is_pickled_says_what_to_do_instead():
    x = ls.XArray(ls.FloorPlan.even(8, 2), "f8")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match=r"XArray .* longshore\.save"):
            pickle.dumps(x, protocol)


def test_grids_of_an_xarray_are_found_by_what_they_are_not_by_what_they_hold():
    x = ls.XArray(ls.FloorPlan.even(ls.Region.of_shape((8, 3)), 4), "f8")
    for k, grid in x.items():
        assert grid in x and x.index(grid) == k and x.count(grid) == 1
        assert grid.copy() not in x and np.asarray(grid) not in x and x.count(grid.copy()) == 0
    assert 0 not in x and None not in x and x.count(0.0) == 0
    assert x.index(x[2], 1, 3) == x.index(x[2], -3) == x.index(x[2], 0, -1) == 2
    for wrong in (lambda: x.index(x[2], 3), lambda: x.index(x[2], 0, 2), lambda: x.index(x[3], 0, -1)):
        with pytest.raises(ValueError, match="is no grid of this XArray"):
            wrong()
    with pytest.raises(ValueError, match="is no grid of this XArray"):
        x.index(np.zeros((2, 3)))
    mine = ls.XArray(x.blocks, "f8", rank=2)  # of which only one block has storage
    assert mine[2] in mine and mine.index(mine[2]) == 2 and x[2] not in mine and mine.count(x[0]) == 0


def test_a_profile_is_copied_and_pickled():
    profile = tune.coarse_profile()
    for made in (copy.deepcopy(profile), copy.copy(profile), pickle.loads(pickle.dumps(profile))):
        assert made.facts == profile.facts and made.core is not None
