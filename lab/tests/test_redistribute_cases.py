"""The bench's own owner formula and pieces: every element goes from its owner to its owner exactly once."""

import numpy as np
import pytest
from longshore_lab.protocol import Context, WrongResult
from longshore_lab.redistribute.cases import CASE_TITLES, Case, Spread, strided_pieces
from longshore_lab.redistribute.contenders import Arrays, memory_copy, numpy_copy

SIZES = (1, 2, 3, 5, 32, 33, 64, 101, 230)
RANKS = (1, 2, 3, 5)


def _empty(side, rank, shape):
    return np.empty(shape)


@pytest.mark.parametrize("procs", RANKS)
@pytest.mark.parametrize("block", (1, 3, 32, 100))
def test_a_spread_deals_out_every_index_once(procs, block):
    for extent in (0, 1, 2, 31, 32, 33, 200):
        spread = Spread(extent, procs, block)
        owned = [spread.indices(c) for c in range(procs)]
        assert sorted(np.concatenate(owned).tolist()) == list(range(extent))
        for coordinate, indices in enumerate(owned):
            assert all((i // block) % procs == coordinate for i in indices.tolist())
            assert np.all(np.diff(indices) > 0)


@pytest.mark.parametrize("key", CASE_TITLES)
@pytest.mark.parametrize("ranks", RANKS)
def test_pieces_move_every_element_to_its_owner(key, ranks):
    for n in SIZES:
        case = Case(key, n, ranks)
        arrays = Arrays.make(case, list(range(ranks)), _empty)
        moved = 0
        for s in arrays.sources:
            for d in arrays.destinations:
                for s_view, d_view, shape in strided_pieces(case, s.rank, d.rank, s.array, d.array):
                    assert s_view.shape == d_view.shape == shape
                    assert np.isnan(d_view).all(), "an element is written twice"
                    d_view[...] = s_view
                    moved += s_view.size
        assert moved == n * n
        for d in arrays.destinations:
            d.check(0.0)


@pytest.mark.parametrize("key", CASE_TITLES)
def test_the_expected_values_are_the_global_array(key):
    n, ranks = 37, 2
    case = Case(key, n, ranks)
    whole = np.arange(n * n, dtype=np.float64).reshape(n, n)
    for rank in range(ranks):
        assert np.array_equal(case.source_values(rank), whole[np.ix_(*case.source.indices(rank))])
        turned = whole.transpose(case.axes)
        assert np.array_equal(case.destination_values(rank), turned[np.ix_(*case.destination.indices(rank))])


def test_unknown_cases_are_named():
    with pytest.raises(ValueError, match="sideways.*rows-to-columns"):
        Case("sideways", 8)


@pytest.mark.parametrize("key", CASE_TITLES)
def test_numpy_and_the_copies_pass_their_verification_with_rewritten_sources(key):
    context = Context(None, 2, 0)
    case = Case(key, 66)
    copies = [memory_copy(context, case, how) for how in ("temporal", "non-temporal", "prefetched")]
    for ready in (numpy_copy(context, case), *copies):
        for _ in range(3):
            ready.refresh()
            ready.run()
            ready.check()
        ready.close()


def test_verification_sees_one_wrong_element_and_stale_data():
    context = Context(None, 2, 0)
    case = Case("transpose", 10)
    ready = numpy_copy(context, case)
    ready.run()
    ready.check()
    ready.arrays.destinations[1].array[4, 9] += 1.0
    with pytest.raises(WrongResult, match=r"rank 1, local element \(4, 9\)"):
        ready.check()
    ready.run()
    ready.refresh()
    with pytest.raises(WrongResult):
        ready.check()
