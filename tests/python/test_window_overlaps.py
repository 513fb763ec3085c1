"""What is got into, or put from, the memory of a window's own arrays comes out as NumPy's assignments do."""

import longshore as ls
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def halves(draw):
    """Two slices of equal length of one dimension, of any steps."""
    extent = draw(st.integers(0, 12))
    count = draw(st.integers(0, extent))

    def part():
        step = draw(st.sampled_from([-3, -2, -1, 1, 2, 3]))
        reach = (count - 1) * abs(step) if count else 0
        if reach >= extent:
            step, reach = (1 if step > 0 else -1), max(count - 1, 0)
        first = draw(st.integers(0, max(extent - 1 - reach, 0))) + (reach if step < 0 else 0)
        last = first + count * step
        return slice(first, None if last < 0 else last, step) if count else slice(0, 0)

    return extent, part(), part()


@given(halves(), halves())
def test_sections_of_a_window_are_put_and_got_within_its_array(one, other):
    array = np.arange(float(one[0] * other[0])).reshape(one[0], other[0])
    to, values = (one[1], other[1]), (one[2], other[2])
    expected = array.copy()
    expected[to] = array[values]
    for by in (lambda a, w: w[0][to].put(a[values]), lambda a, w: w[0][to].nbput(a[values]).wait()):
        mine = array.copy()
        by(mine, ls.Window([mine]))
        np.testing.assert_array_equal(mine, expected)
    # Only what is C-contiguous is got into: rows of the array.
    rows = slice(one[2].start, one[2].stop, 1) if one[2].step in (None, 1) else slice(0, 0)
    mine, wanted = array.copy(), array.copy()
    key = (one[1] if wanted[one[1]].shape == wanted[rows].shape else rows, slice(None, None, -1))
    wanted[rows] = array[key]
    window = ls.Window([mine])
    window[0][key].get(out=mine[rows])
    np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("size", [7, 100_000])
def test_a_list_of_places_and_a_whole_that_is_turned(size):
    array = np.arange(float(size))
    order = np.roll(np.arange(size), 3)
    mine = array.copy()
    ls.Window([mine])[0][order].put(mine)
    np.testing.assert_array_equal(mine[order], array)
    mine = array.copy()
    handle = ls.Window([mine])[0][::-1].nbget(out=mine)
    while not handle.test():
        pass
    np.testing.assert_array_equal(mine, array[::-1])
    layout = ls.Layout("(BLOCK) on 2", (size,))
    parts = ls.scatter(array, layout)
    ls.Window(parts, layout=layout).whole[: parts[0].size][::-1].put(parts[0])
    np.testing.assert_array_equal(parts[0], array[: parts[0].size][::-1])
