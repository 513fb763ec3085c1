"""Sections by indices of every kind, of one array and of arrays in parts, against what NumPy has by the same ones."""

import longshore as ls
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import distinct, layouts

SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 7]), min_size=1, max_size=4).map(tuple)
STEPS = st.sampled_from([None, 1, 2, 3, 9, -1, -2, -3, -9])


@st.composite
def slices(draw, extent):
    ends = st.none() | st.integers(-extent - 2, extent + 2)
    return slice(draw(ends), draw(ends), draw(STEPS))


@st.composite
def lists(draw, extent, repeats):
    """A mask, or a list of indices as one of the kinds that may be given; with repeats or without."""
    if draw(st.booleans()):
        return np.array(draw(st.lists(st.booleans(), min_size=extent, max_size=extent)), bool)
    some = draw(st.lists(st.integers(0, max(extent - 1, 0)), max_size=6 if extent else 0, unique=not repeats))
    some = [each - extent if draw(st.booleans()) else each for each in some]
    return draw(st.sampled_from([list, lambda each: np.array(each, np.int32)]))(some)


@st.composite
def keys(draw, shape, listed=True, repeats=True):
    """Slices, integers, None, `...` and at most one list or mask, at any place."""
    first = draw(st.integers(0, len(shape)))
    last = draw(st.integers(first, len(shape))) if draw(st.booleans()) else len(shape)
    wanted = [*range(first), *range(last, len(shape))]
    dim = draw(st.sampled_from(wanted)) if listed and wanted and draw(st.integers(0, 3)) else None
    made = []
    for d in wanted:
        if d == dim:
            made.append(draw(lists(shape[d], repeats)))
        elif shape[d] and draw(st.booleans()):
            made.append(draw(st.integers(-shape[d], shape[d] - 1)))
        else:
            made.append(draw(slices(shape[d])))
    if last < len(shape) or draw(st.booleans()):
        made.insert(first, ...)
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        made.insert(draw(st.integers(0, len(made))), None)
    return tuple(made)


@st.composite
def opened(draw):
    """An array, a section of the same elements, what else must hold the same, and whether it lies in parts."""
    full = distinct(draw(SHAPES), "i4")
    kind = draw(st.sampled_from(["array", "layout", "blocks"]))
    if kind == "blocks" and full.size:
        blocks = ls.FloorPlan.even(ls.Region.of_shape(full.shape), draw(st.integers(1, 5)))
        x = ls.XArray(blocks, "i4", ghost=draw(st.integers(0, 1)))
        for _, grid in x.items():
            grid.interior[...] = full[grid.block.slices(blocks.bounding)]

        def gathered():
            again = np.empty_like(full)
            for _, grid in x.items():
                again[grid.block.slices(blocks.bounding)] = grid.interior
            return again

        return full, ls.Window(x).whole, gathered, True
    if kind == "layout":
        layout = draw(layouts(full.shape, disjoint=False).filter(lambda each: each.replicas == 1))
        parts = ls.scatter(full, layout)
        return full, ls.Window(parts, layout=layout).whole, lambda: ls.gather(parts, layout), True
    strided = np.zeros([2 * n for n in full.shape], "i4")[tuple(slice(None, None, -2) for _ in full.shape)]
    strided[...] = full
    return full, ls.Window([strided])[0], lambda: strided, False


@given(st.data())
@settings(max_examples=600, deadline=None)
def test_what_is_got_is_what_numpy_has(data):
    full, section, _, in_parts = data.draw(opened())
    if data.draw(st.booleans()):  # a section of a section
        key = data.draw(keys(full.shape, listed=in_parts))
        full, section = full[key], section[key]
    key = data.draw(keys(full.shape))
    expected, section = full[key], section[key]
    assert section.shape == expected.shape and str(expected.shape) in repr(section)
    np.testing.assert_array_equal(section.get(), expected)
    into = np.empty(expected.shape, expected.dtype)
    assert section.get(into) is into
    np.testing.assert_array_equal(into, expected)
    if expected.ndim:
        rows = [strip.data.copy() for strip in ls.strips(section, "fixed(2)")]
        np.testing.assert_array_equal(np.concatenate([*rows, expected[:0]]), expected)


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_what_is_put_is_what_numpy_assigns(data):
    full, section, gathered, _ = data.draw(opened())
    view = full
    if data.draw(st.booleans()):
        key = data.draw(keys(full.shape, listed=False))
        view, section = full[key if ... in key else (*key, ...)], section[key]
    key = data.draw(keys(view.shape, repeats=False))
    values = -1 - distinct(view[key].shape, "i4")
    view[key] = values
    section[key].put(values)
    np.testing.assert_array_equal(gathered(), full)
