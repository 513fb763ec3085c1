"""A whole array dealt to an XArray and brought back, against slices of it."""

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore import FloorPlan, Region, XArray, regions
from strategies import DTYPES, distinct, same


@st.composite
def floor_plans(draw):
    """Blocks that do not overlap, many or none a rank, with holes between them."""
    dims = draw(st.integers(1, 3))
    lower = draw(st.lists(st.integers(-5, 5), min_size=dims, max_size=dims))
    extents = draw(st.lists(st.sampled_from([0, 1, 2, 3, 7, 11]), min_size=dims, max_size=dims))
    domain = Region(lower, [lo + n for lo, n in zip(lower, extents)])
    pieces = regions.split_to_size(domain, draw(st.integers(1, 5))) if draw(st.booleans()) else [domain]
    pieces = [piece for piece in pieces if draw(st.integers(0, 7))] or [domain]
    pieces = draw(st.permutations(pieces)) if len(pieces) < 20 else pieces
    return FloorPlan(pieces, [draw(st.integers(0, 5)) for _ in pieces])


@given(floor_plans(), DTYPES, st.integers(0, 2), st.sampled_from("CF"), st.sampled_from("CF"), st.booleans())
@settings(max_examples=150, deadline=None)
def test_there_and_back(blocks, dtype, ghost, order, given_order, turned):
    domain = blocks.bounding
    full = np.asarray(distinct(domain.shape, dtype), order=given_order)
    full = full[::-1] if turned else full
    u = XArray(blocks, dtype, ghost, order=order)
    assert ls.scatter(full, u) is u
    hole = np.ones(domain.shape, bool)
    for k, grid in u.items():
        block = blocks[k]
        if block.empty:
            continue
        assert same(np.asarray(grid.interior), full[block.slices(domain)])
        hole[block.slices(domain)] = False
        outside = np.ones(grid.shape, bool)
        outside[block.slices(grid.region)] = False
        assert not np.asarray(grid)[outside].tobytes().strip(b"\0")
    again = ls.gather(u)
    assert again.dtype == full.dtype and again.flags.f_contiguous >= (order == "F")
    assert same(again[~hole], full[~hole]) and not again[hole].tobytes().strip(b"\0")
    other = np.zeros([2 * n for n in domain.shape], dtype)[tuple([slice(None, None, 2)] * full.ndim)]
    other[...] = full[::-1]
    kept = other.copy()
    assert ls.gather(u, out=other) is other
    assert same(other[~hole], full[~hole]) and same(other[hole], kept[hole])


def test_an_array_of_nothing():
    u = XArray(FloorPlan.even((0, 6), 2), float)
    ls.scatter(np.zeros((0, 6)), u)
    assert ls.gather(u).size == 0 and ls.gather(u, out=(out := np.zeros((0, 6)))) is out
    with pytest.raises(ls.ShapeError):
        ls.scatter(np.zeros(0), u)


def test_what_is_wrong_is_told():
    blocks = FloorPlan.even((6, 4), 3)
    u = XArray(blocks, "f8", ghost=1)
    full = np.ones((6, 4))
    for wrong, kind, words in (
        (
            np.ones((4, 6)),
            ls.ShapeError,
            r"shape \(4, 6\), the blocks lie in \[0:6, 0:4\], of shape \(6, 4\)",
        ),
        (np.ones((6, 4), "f4"), ls.DTypeError, "the array has dtype float32, the XArray float64"),
        ("words", ls.ArgumentError, "expected an array"),
    ):
        with pytest.raises(kind, match=words):
            ls.scatter(wrong, u)
    with pytest.raises(ls.ShapeError, match=r"out has shape \(6,\)"):
        ls.gather(u, out=np.ones(6))
    with pytest.raises(ls.DTypeError, match="out has dtype int64"):
        ls.gather(u, out=np.ones((6, 4), int))
    with pytest.raises(ls.LocalArrayError, match="read-only"):
        full.flags.writeable = False
        ls.gather(u, out=full)
    with pytest.raises(ls.ArgumentError, match="leave layout out"):
        ls.gather(u, ls.Layout("(BLOCK, *) on 3", (6, 4)))
    with pytest.raises(ls.ArgumentTypeError, match="layout is None"):
        ls.gather([full])
    with pytest.raises(ls.ArgumentError, match="has the blocks of rank 1 alone"):
        ls.scatter(full, XArray(blocks, "f8", rank=1))
    assert not any(np.asarray(grid).any() for grid in u)
    overlapping = FloorPlan([((0,), (4,)), ((2,), (6,))], [0, 1])
    v = ls.scatter(np.arange(6), XArray(overlapping, int))
    assert [grid.tolist() for grid in v] == [[0, 1, 2, 3], [2, 3, 4, 5]]
    with pytest.raises(ls.ArgumentError, match="write"):
        ls.gather(v)
