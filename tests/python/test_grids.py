"""Grids and what is made of them: at(), on() and interior are right in the domain's indices, or say that they cannot
be."""

import copy
import pickle

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore import FloorPlan, Region

ONES = 1 << 10  # values are the points themselves, a digit a dimension


def value_at(point):
    return sum((x + ONES // 2) * ONES**d for d, x in enumerate(point))


def a_grid(region, ghost, order="C", dtype=np.int64):
    u = ls.XArray(FloorPlan([region], [0]), dtype, ghost, order=order)
    grid = u[0]
    for index in np.ndindex(grid.shape):
        np.asarray(grid)[index] = value_at([lo + i for lo, i in zip(grid.region.lower, index)])
    return u, grid


@st.composite
def grids(draw):
    dims = draw(st.integers(1, 4))
    lower = draw(st.lists(st.integers(-4, 4), min_size=dims, max_size=dims))
    extents = draw(st.lists(st.sampled_from([1, 1, 2, 3, 3]), min_size=dims, max_size=dims))
    region = Region(lower, [lo + n for lo, n in zip(lower, extents)])
    ghost = draw(st.lists(st.integers(0, 1), min_size=dims, max_size=dims))
    return a_grid(region, ghost, draw(st.sampled_from("CF")))


def swap(dims, a, b):
    axes = list(range(dims))
    axes[a], axes[b] = axes[b], axes[a]
    return axes


# Each gives an array, and the dimensions of the grid that its dimensions are. Where it is not said what they are, the
# array must not claim to know its place.
OTHER = {
    "slice": lambda g: g[::-1],
    "part": lambda g: g[..., :1],
    "newaxis": lambda g: g[None],
    "mask": lambda g: g[g > 0],
    "flip": np.flip,
    "roll": lambda g: np.roll(g, 1, 0),
    "take": lambda g: g.take(range(g.shape[0])[::-1], axis=0),
    "repeat": lambda g: g.repeat(1, axis=0),
    "reshape": lambda g: g.reshape(g.shape[::-1]),
    "ravel": lambda g: g.ravel(),
    "flat": lambda g: g.flatten(),
    "squeeze": lambda g: g[None].squeeze(),
    "broadcast": lambda g: np.broadcast_to(g, (2, *g.shape), subok=True),
    "einsum": lambda g: np.einsum("...->...", g.T),
    "einsum of two": lambda g: np.einsum("i...->...i", g),
    "ndarray.transpose": lambda g: np.ndarray.transpose(g),
    "ndarray.swapaxes": lambda g: np.ndarray.swapaxes(g, 0, -1),
    "as_strided": lambda g: np.lib.stride_tricks.as_strided(g, g.shape, g.strides[::-1], subok=True),
    "dot": lambda g: g.dot(np.ones((g.shape[-1], g.shape[-1]), g.dtype)),
    "sum": lambda g: g.sum(axis=0, keepdims=True),
    "cumsum": lambda g: g.cumsum(axis=0),
    "argsort": lambda g: g.argsort(axis=0),
    "arithmetic": lambda g: g + 1,
    "empty_like": np.empty_like,
    "view of bytes": lambda g: g.copy().view(np.uint8),
    "stack": lambda g: np.stack([g, g]),
    "asarray": np.asarray,
}
SAME = {
    "itself": lambda g: g,
    "copy": lambda g: g.copy(),
    "copy in Fortran order": lambda g: g.copy("F"),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda g: pickle.loads(pickle.dumps(g)),
    "view": lambda g: g.view(),
    "view of another type": lambda g: g.view(np.uint64),
    "astype": lambda g: g.astype(np.uint64),
}


def permutations(dims):
    """Ways to permute dimensions, and how they do."""
    back = list(range(dims))[::-1]
    yield "T", lambda g: g.T, back
    yield "transpose", lambda g: g.transpose(), back
    yield "transpose(None)", lambda g: g.transpose(None), back
    yield "np.transpose", np.transpose, back
    turned = back[1:] + back[:1]
    yield "transpose(axes)", lambda g: g.transpose(turned), turned
    yield "transpose(*axes)", lambda g: g.transpose(*turned), turned
    yield "transpose(an array)", lambda g: g.transpose(np.array(turned)), turned
    yield "np.transpose(axes)", lambda g: np.transpose(g, turned), turned
    yield "negative axes", lambda g: g.transpose([a - dims for a in turned]), turned
    if dims > 1:
        yield "swapaxes", lambda g: g.swapaxes(0, -1), swap(dims, 0, -1)
        yield "np.swapaxes", lambda g: np.swapaxes(g, -2, -1), swap(dims, -2, -1)
        yield "mT", lambda g: g.mT, swap(dims, -2, -1)
        yield "moveaxis", lambda g: np.moveaxis(g, 0, -1), [*range(1, dims), 0]
        yield "rollaxis", lambda g: np.rollaxis(g, dims - 1), [dims - 1, *range(dims - 1)]


def check_right(grid, axes):
    """That a grid whose dimension d was dimension axes[d] is right everywhere."""

    def at(point):
        where = [0] * len(axes)
        for a, x in zip(axes, point):
            where[a] = x
        return value_at(where)

    region = grid.region
    assert grid.shape == region.shape
    for index in np.ndindex(grid.shape):
        point = tuple(lo + i for lo, i in zip(region.lower, index))
        assert grid.at[point] == at(point)
        if point in grid.block:
            assert grid.interior[tuple(x - lo for x, lo in zip(point, grid.block.lower))] == at(point)
            assert grid.on(Region(point, [x + 1 for x in point])).ravel().tolist() == [at(point)]
    assert grid.interior.shape == grid.block.shape
    everything = grid.at[...]
    assert everything.shape == grid.shape and np.array_equal(everything, np.asarray(grid))


def check_says_no(array):
    if not isinstance(array, ls.Grid):
        return
    assert array.region is None and array.block is None
    for ask in (lambda: array.at, lambda: array.interior, lambda: array.on(Region.of_shape(array.shape))):
        with pytest.raises(ls.ArgumentError, match="has no place in the domain"):
            ask()


@settings(max_examples=150, deadline=None)
@given(grids(), st.data())
def test_right_or_an_error(made, data):
    _, grid = made
    dims = grid.ndim
    axes = list(range(dims))
    for _ in range(data.draw(st.integers(0, 3))):
        ways = [(name, way, None) for name, way in SAME.items()] + list(permutations(dims))
        _, way, permuted = data.draw(st.sampled_from(ways))
        grid = way(grid)
        axes = axes if permuted is None else [axes[a] for a in permuted]
    check_right(grid, axes)
    _, way = data.draw(st.sampled_from(list(OTHER.items())))
    check_says_no(way(grid))


@pytest.mark.parametrize("way", OTHER.values(), ids=OTHER)
def test_what_is_made_of_a_square_grid(way):
    check_says_no(way(a_grid(Region((2, 5), (5, 8)), 1)[1]))


@pytest.mark.parametrize("bounds", [((0, 3), (1, 4)), ((2, 5), (5, 8)), ((0, 3), (0, 3))])
@pytest.mark.parametrize("name", [name for name, *_ in permutations(2)])
def test_transposes_of_square_grids(bounds, name):
    region = Region(*bounds)
    _, grid = a_grid(region, 0)
    way, axes = {n: (w, a) for n, w, a in permutations(2)}[name]
    turned = way(grid)
    assert turned.region == region.transpose(axes) and turned.block == region.transpose(axes)
    check_right(turned, axes)


def test_writing_through_a_transpose():
    u, grid = a_grid(Region((2, 5), (5, 8)), 1)
    grid.T.at[6, 2] = -7
    grid.T.interior[1:, 2] = -8
    assert u[0].at[2, 6] == -7 and u[0].at[4, 6:8].tolist() == [-8, -8]


def test_arithmetic_in_place_keeps_the_place():
    _, grid = a_grid(Region((2, 5), (5, 8)), 1)
    same = grid
    same += 1
    np.multiply(grid, 2, out=grid)
    assert same is grid and grid.interior[0, 0] == 2 * (value_at((2, 5)) + 1)
    assert type(grid + 1) is np.ndarray and np.isscalar(grid.sum())


def test_a_shape_of_its_own():
    _, grid = a_grid(Region((0, 0), (4, 4)), 0)
    turned = grid.view()
    turned.shape = (2, 8)
    for made in (turned, turned.T, turned.copy()):
        with pytest.raises(ls.ArgumentError, match="has no place"):
            _ = made.interior


def test_complex_parts():
    _, grid = a_grid(Region((2, 5), (5, 8)), 1, dtype=complex)
    check_right(grid.real, [0, 1])
    check_right(np.real(grid.T), [1, 0])
    assert (grid.imag.interior == 0).all()
    grid.imag = 3
    grid.real = 4
    assert (grid.interior == 4 + 3j).all()


def test_what_makes_no_sense_is_told():
    blocks = FloorPlan.even(Region.of_shape((6, 4)), 2)
    u = ls.XArray(blocks, "f8", ghost=np.array(1))
    assert u.ghost == (1, 1)
    for ghost in ((), (1, 1, 1)):
        with pytest.raises(ls.ShapeError, match="the blocks have 2 dimensions"):
            ls.XArray(blocks, "f8", ghost=ghost)
    for ghost in ((1, (1, 2, 3)), (1, "x"), ((1, 2.5), 1), {0: 1}):
        with pytest.raises(ls.ArgumentTypeError, match=r"ghost is .* in dimension [01]; .* a pair \(below, above\)"):
            ls.XArray(blocks, "f8", ghost=ghost)
    with pytest.raises(ls.ArgumentError, match="-1 ghost cells in dimension 1"):
        ls.XArray(blocks, "f8", ghost=(0, (2, -1)))
    with pytest.raises(ls.ArgumentTypeError, match="ghost is <generator"):
        ls.XArray(blocks, "f8", ghost=(1 for _ in range(2)))
    with pytest.raises(ls.ArgumentError, match="rank is -1"):
        ls.XArray(blocks, "f8", rank=-1)
    grid = u[0]
    for key in (1.5, None, "x", np.array([1, 2]), slice(0, 2, 1.5), slice("a", None)):
        with pytest.raises(ls.ArgumentTypeError, match="in dimension 0"):
            grid.at[key]
    with pytest.raises(ls.ArgumentError, match="more than one ellipsis"):
        grid.at[..., ...]
    for call, words in (
        (lambda: grid.on((2, 2)), "region is"),
        (lambda: u[0:2], "block is"),
        (lambda: u[[0]], "block"),
    ):
        with pytest.raises(ls.ArgumentTypeError, match=words):
            call()


def test_a_proxy_may_be_dropped_while_it_moves():
    one, other = (FloorPlan.even(Region.of_shape((400, 400)), n) for n in (4, 2))
    u, v = ([np.ones(region.shape, order="F") for region in blocks] for blocks in (one, other))
    for _ in range(100):
        mover = ls.BlockPlan.copy_between(one, other).bind(u, v, proxy=True)
        mover.start()
        del mover
