"""relation_of_views does what destination_view[...] = source_view does."""

import longshore as ls
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import distinct


@st.composite
def views(draw):
    """(shape of an array, a function to a view of it) for a view of any slices, in any order of dimensions."""
    shape = tuple(draw(st.lists(st.integers(0, 7), min_size=1, max_size=4)))
    cuts = []
    for n in shape:
        start, stop = draw(st.integers(-n - 1, n)), draw(st.integers(-n - 1, n))
        cuts.append(slice(start, stop, draw(st.sampled_from([1, 1, 2, 3, -1, -2]))))
    axes = draw(st.permutations(range(len(shape))))
    return shape, lambda array: array[tuple(cuts)].transpose(axes)


@given(views(), views(), st.sampled_from(["f8", "u1", "S3", "c16"]), st.sampled_from("CF"))
def test_as_numpy_assigns(source, destination, dtype, order):
    array = np.asarray(distinct(source[0], dtype), order=order)
    out = np.zeros(destination[0], dtype)
    from_view, to_view = source[1](array), destination[1](out)
    if from_view.shape != to_view.shape:
        common = tuple(map(min, from_view.shape, to_view.shape)) if from_view.ndim == to_view.ndim else ()
        cut = tuple(slice(n) for n in common)
        from_view, to_view = (from_view[cut], to_view[cut]) if common else (array[:0], out[:0])
        if from_view.shape != to_view.shape:
            with pytest.raises(ls.ShapeError):
                ls.relation_of_views(array, from_view, out, to_view)
            return
    relation = ls.relation_of_views(array, from_view, out, to_view)
    assert relation.elements == from_view.size
    if relation.elements:
        relation.move(array, out)
    np.testing.assert_array_equal(to_view, from_view)
    to_view[...] = np.zeros((), dtype)
    assert out.tobytes() == bytes(out.nbytes)  # nothing else was written


def test_broadcasts_and_reductions():
    row, square = np.arange(5.0), np.zeros((4, 5))
    relation = ls.relation_of_views(row, np.broadcast_to(row, (4, 5)), square, square)
    np.testing.assert_array_equal(relation.move(row, square), np.broadcast_to(row, (4, 5)))
    with pytest.raises(ls.ArgumentError, match="write the same bytes"):
        ls.relation_of_views(square, square, row, np.broadcast_to(row, (4, 5)))
    total = np.zeros(5)
    relation = ls.relation_of_views(square, square, total, np.broadcast_to(total, (4, 5)), reduce="add")
    np.testing.assert_array_equal(relation.move(square, total), square.sum(0))


def test_mistakes():
    a, b = np.zeros((3, 4)), np.zeros((4, 3))
    with pytest.raises(ls.ShapeError, match=r"\(3, 4\).*\(4, 3\)"):
        ls.relation_of_views(a, a, b, b)
    with pytest.raises(ls.DTypeError):
        ls.relation_of_views(a, a, b, b.T.astype("f4"))
    with pytest.raises(ls.LocalArrayError, match="destination's view"):
        ls.relation_of_views(a, a[:2], b, np.zeros((2, 4)))
    with pytest.raises(ls.LocalArrayError, match="source's view"):
        ls.relation_of_views(a[1:2], a[:2], b, b.T[:2])
    assert ls.relation_of_views(a, a[:0], b, b.T[:0]).elements == 0
