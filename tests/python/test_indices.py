"""What a rank owns, as something to index the whole array with."""

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import EXTENTS, distinct, layouts, same


@st.composite
def placed_layouts(draw):
    """Layouts of everything, some more ranks than indices, and windows, whose array begins inside its blocks."""
    shape = tuple(draw(st.lists(EXTENTS, min_size=1, max_size=4)))
    layout = draw(layouts(shape, max_ranks=draw(st.sampled_from([3, 7, 31]))))
    if draw(st.booleans()):
        lower = [draw(st.integers(0, n)) for n in shape]
        layout = layout.window(lower, [draw(st.integers(a, n)) for a, n in zip(lower, shape)])
    return layout


def evenly_spaced(indices):
    return len(set(np.diff(indices))) <= 1


@given(placed_layouts(), st.integers(0, 1 << 30))
@settings(max_examples=300, deadline=None)
def test_they_select_what_scatter_deals(layout, nobody):
    full = distinct(layout.shape, "i8")
    again = np.zeros_like(full)
    parts = dict(zip(layout.ranks, ls.scatter(full, layout)))
    for rank in [*list(parts)[:40], max(parts) + 1 + nobody]:
        indices = layout.indices(rank)
        assert isinstance(indices, tuple) and len(indices) == layout.ndim
        local = parts.get(rank, np.empty([0] * layout.ndim, full.dtype))
        assert same(full[indices], local) and full[indices].shape == layout.local_shape(rank)
        again[indices] = local
        owned = [
            [first + k * step + i for first, length, count, step in runs for k in range(count) for i in range(length)]
            for runs in layout.owned(rank)
        ]
        arrays = [not evenly_spaced(each) for each in owned]
        for d, index in enumerate(indices):
            if arrays[d] or sum(arrays) > 1:
                assert index.dtype == np.int64 and index.ravel().tolist() == owned[d]
                assert index.shape == (np.ix_(*owned)[d].shape if sum(arrays) > 1 else (len(owned[d]),))
            else:
                assert list(range(layout.shape[d])[index]) == owned[d]
    if len(parts) <= 40:
        assert same(again, full)


@pytest.mark.parametrize(
    "text, shape, rank, wanted",
    [
        ("(BLOCK, *) on 3", (10, 6), 2, (slice(8, 10), slice(0, 6))),
        ("(BLOCK) on 13", 7, 12, (slice(0, 0),)),
        ("(CYCLIC) on 3", 8, 1, (slice(1, 8, 3),)),
        ("(CYCLIC, BLOCK) on 2x2", (4, 3), 9, (slice(0, 0), slice(0, 0))),
        ("(GEN_BLOCK(2, 0, 5), *) on 3", (7, 2), 1, (slice(0, 0), slice(0, 2))),
        ("(CYCLIC(2)) on 2, origin=1", 4, 0, (slice(0, 4, 3),)),
        ("(BLOCK) on 2xREPLICATED(2)", 4, 1, (slice(0, 2),)),
    ],
)
def test_slices_where_the_indices_are_evenly_spaced(text, shape, rank, wanted):
    assert ls.Layout(text, shape).indices(rank) == wanted


def test_arrays_where_they_are_not():
    rows, columns = ls.Layout("(CYCLIC(2), *) on 2", (7, 3)).indices(0)
    assert rows.tolist() == [0, 1, 4, 5] and columns == slice(0, 3)
    tiles = ls.Layout("(CYCLIC(2), *, CYCLIC(2)) on 2x2", (6, 2, 6)).indices(0)
    for index, wanted in zip(tiles, np.ix_([0, 1, 4, 5], [0, 1], [0, 1, 4, 5])):
        assert index.dtype == np.int64 and np.array_equal(index, wanted) and index.shape == wanted.shape


def test_no_index_of_long_slices_is_listed():
    assert ls.Layout("(CYCLIC, *) on 3", (10**15, 2)).indices(2) == (slice(2, 10**15 - 1, 3), slice(0, 2))
