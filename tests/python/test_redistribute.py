"""The threads engine against NumPy."""

import gc
import json
import pickle
import sys
import threading
import weakref

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore import _bind
from strategies import DTYPES, distinct, layouts, redistributions, same


def deal(array, layout):
    """A layout's local arrays by the plainest means: one element at a time, owner by owner."""
    parts = ls.empty(layout, array.dtype)
    by_rank = dict(zip(layout.ranks, parts))
    for index in np.ndindex(array.shape):
        local = layout.global_to_local(index)[1]
        for rank in layout.owners(index):
            by_rank[rank][local] = array[index]
    return parts


@given(redistributions(), DTYPES, st.integers(1, 3))
@settings(max_examples=300, deadline=None)
def test_every_element_arrives(case, dtype, threads):
    source, destination, axes = case
    a = distinct(source.shape, dtype)
    moved = ls.redistribute(ls.scatter(a, source), source, destination, axes=axes, threads=threads)
    assert [part.shape for part in moved] == [destination.local_shape(rank) for rank in destination.ranks]
    assert same(ls.gather(moved, destination), a.transpose(axes))


@given(redistributions(max_ndim=3))
@settings(max_examples=60, deadline=None)
def test_against_owners_element_by_element(case):
    source, destination, axes = case
    a = distinct(source.shape, "i4")
    moved = ls.redistribute(deal(a, source), source, destination, axes=axes)
    for got, wanted in zip(moved, deal(a.transpose(axes), destination)):
        assert same(got, wanted)


@given(redistributions(max_ndim=3), st.sampled_from(["f8", "f4", "c16", "c8", "i4", "u1"]), st.booleans())
@settings(max_examples=100, deadline=None)
def test_alpha_beta_conjugate(case, dtype, conjugate):
    source, destination, axes = case
    dtype = np.dtype(dtype)
    a = np.arange(int(np.prod(source.shape))).reshape(source.shape).astype(dtype)
    b = np.full(destination.shape, 7, dtype)
    if dtype.kind == "c":
        a += 1j * a
    alpha, beta = dtype.type(3), dtype.type(2)
    out = ls.scatter(b, destination)
    parts = ls.scatter(a, source)
    ls.redistribute(parts, source, destination, axes=axes, out=out, alpha=alpha, beta=beta, conjugate=conjugate)
    op = a.conj() if conjugate else a
    np.testing.assert_allclose(ls.gather(out, destination), beta * b + alpha * op.transpose(axes), rtol=1e-6)


def test_beta_zero_ignores_what_was_there():
    source, destination = ls.Layout("(BLOCK) on 2", 8), ls.Layout("(CYCLIC) on 2", 8)
    out = [np.full(4, np.nan), np.full(4, np.nan)]
    ls.redistribute(ls.scatter(np.arange(8.0), source), source, destination, out=out, alpha=2, beta=0)
    assert ls.gather(out, destination).tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_windows(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 20), min_size=1, max_size=3)))
    layout = data.draw(layouts(shape, disjoint=False))
    lo = tuple(data.draw(st.integers(0, n)) for n in shape)
    hi = tuple(data.draw(st.integers(a, n)) for a, n in zip(lo, shape))
    a = distinct(shape, "i8")
    window = layout.window(lo, hi)
    box = a[tuple(slice(x, y) for x, y in zip(lo, hi))]
    for rank, part, wanted in zip(layout.ranks, ls.scatter(a, layout), ls.scatter(box, window)):
        start = layout.local_start(rank, lo)
        assert same(part[tuple(slice(s, s + n) for s, n in zip(start, window.local_shape(rank)))], wanted)


@pytest.mark.parametrize("n", [2053, 6144])
@pytest.mark.parametrize(
    "words, axes",
    [
        (("(BLOCK, *) on 2", "(*, BLOCK) on 2"), (0, 1)),
        (("(CYCLIC(32), CYCLIC(32)) on 1x2", "(CYCLIC(100), CYCLIC(100)) on 2x1"), (0, 1)),
        (("(*, CYCLIC) on 2", "(*, BLOCK) on 2"), (0, 1)),
        (("(*, BLOCK) on 3", "(*, CYCLIC) on 3"), (0, 1)),
        (("(*, CYCLIC(3)) on 5", "(*, CYCLIC(7)) on 4"), (0, 1)),
        (("(BLOCK, *) on 2", "(BLOCK, *) on 2"), (1, 0)),
        (("(CYCLIC(64), CYCLIC(64)) on 1x2", "(CYCLIC(64), CYCLIC(64)) on 2x1"), (1, 0)),
    ],
)
def test_beyond_the_cache(n, words, axes):
    """Large enough for streaming stores, joint copies and several tasks a thread."""
    source, destination = (ls.Layout(text, (n, n)) for text in words)
    a = np.arange(n * n, dtype="f8").reshape(n, n)
    moved = ls.redistribute(ls.scatter(a, source), source, destination, axes=axes, threads=2)
    assert (ls.gather(moved, destination) == a.transpose(axes)).all()


@pytest.mark.parametrize(
    "words",
    [("(BLOCK) on 2", "(CYCLIC) on 2"), ("(CYCLIC) on 3", "(BLOCK) on 2"), ("(CYCLIC(5)) on 2", "(CYCLIC(3)) on 3")],
)
@pytest.mark.parametrize("dtype", ["f8", "u1", "S24"])
def test_one_long_dimension(words, dtype):
    n = 6_000_011
    source, destination = (ls.Layout(text, n) for text in words)
    a = distinct((n,), dtype)
    moved = ls.redistribute(ls.scatter(a, source), source, destination, threads=2)
    assert same(ls.gather(moved, destination), a)


def test_eight_dimensions():
    shape = (2, 3, 2, 3, 2, 3, 2, 3)
    source = ls.Layout("(BLOCK, *, CYCLIC, *, *, BLOCK, *, CYCLIC) on 2x2x3x2", shape)
    destination = ls.Layout("(*, CYCLIC, *, BLOCK, *, *, CYCLIC(2), *) on 2x3x1, order=F", shape)
    a = distinct(shape, "i2")
    assert same(ls.gather(ls.redistribute(ls.scatter(a, source), source, destination), destination), a)


def test_a_mover_is_reusable_and_two_may_fly():
    source, destination = ls.Layout("(BLOCK, *) on 2", (500, 300)), ls.Layout("(*, BLOCK) on 3", (500, 300))
    plan = ls.plan(source, destination, "f8")
    parts, more = (ls.scatter(np.random.rand(500, 300), source) for _ in range(2))
    out, other = ls.empty(destination, "f8"), ls.empty(destination, "f8")
    first, second = plan.bind(parts, out), plan.bind(more, other, threads=1)
    for _ in range(3):
        for part in parts + more:
            part += 1
        first.start()
        second.start()
        while not first.test():
            pass
        second.wait()
        first.wait()
        assert (ls.gather(out, destination) == ls.gather(parts, source)).all()
        assert (ls.gather(other, destination) == ls.gather(more, source)).all()
    assert first.moved_bytes == 500 * 300 * 8


def test_a_mover_keeps_its_arrays_alive_and_lets_go_of_them():
    source, destination = ls.Layout("(BLOCK) on 2", 100), ls.Layout("(CYCLIC) on 2", 100)
    parts, out = ls.scatter(np.arange(100), source), ls.empty(destination, "i8")
    alive = [weakref.ref(a) for a in parts]
    mover = ls.plan(source, destination, "i8").bind(parts, out)
    del parts
    gc.collect()
    assert all(ref() is not None for ref in alive)
    mover()
    assert ls.gather(out, destination).tolist() == list(range(100))
    del mover
    gc.collect()
    assert all(ref() is None for ref in alive)


def test_buffers_and_dlpack():
    class Tensor:  # nothing but DLPack
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    source, destination = ls.Layout("(BLOCK) on 2", 8), ls.Layout("(CYCLIC) on 2", 8)
    parts = [memoryview(np.arange(4.0)), Tensor(np.arange(4.0, 8.0))]
    out = [np.zeros(4), bytearray(32)]
    out[1] = memoryview(out[1]).cast("d")
    ls.plan(source, destination, "f8").bind(parts, out)()
    assert out[0].tolist() == [0, 2, 4, 6] and list(out[1]) == [1, 3, 5, 7]


def test_padding_is_left_alone():
    source = ls.Layout("(BLOCK, *) on 2", (10, 6))
    destination = ls.Layout("(CYCLIC(2), CYCLIC(2)) on 2x2, order=F, ld=9", (10, 6))
    a = distinct((10, 6), "i8")
    out = ls.empty(destination, "i8")
    for part in out:
        part.base.view(np.uint8)[...] = 255  # -1 everywhere
    ls.redistribute(ls.scatter(a, source), source, destination, out=out)
    assert same(ls.gather(out, destination), a)
    for part in out:
        assert part.strides == (8, 72)
        padding = np.lib.stride_tricks.as_strided(part, (9, part.shape[1]))[part.shape[0] :]
        assert (padding == -1).all()


def test_plans_are_values():
    source, destination = ls.Layout("(BLOCK, *) on 2", (4, 6)), ls.Layout("(BLOCK, CYCLIC) on 2x2", (6, 4))
    plan = ls.plan(source, destination, "i4,f8", axes=(1, 0))
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan == ls.MotionPlan.from_json(plan.to_json()) and hash(again) == hash(plan)
    assert plan.dtype == again.dtype
    assert plan != ls.plan(source, destination, "S12", axes=(-1, 0))
    assert plan.axes == ls.plan(source, destination, "S12", axes=(-1, 0)).axes
    assert pickle.loads(pickle.dumps(source)) == source and len({source, ls.Layout(str(source), source.shape)}) == 1


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "longshore-plan", "version": 2}', "[" * 100000, '{"format": 1e999}']
)
def test_not_a_plan(text):
    with pytest.raises(ls.LayoutError) as caught:
        ls.MotionPlan.from_json(text)
    assert "Error" not in str(caught.value)  # words, not the name of a class of Python's


@pytest.mark.parametrize(
    "way, value, said",
    [
        (("source", "shape"), "46", "source: shape is '46'; it must be a list"),
        (("destination", "shape", 1), "x", r"destination: shape\[1\] is 'x'; it must be an integer"),
        (("source", "shape", 0), 2.5, r"source: shape\[0\] is 2.5; it must be an integer"),
        (("source", "shape", 0), float("inf"), r"source: shape\[0\] is inf; it must be an integer"),
        (("source", "shape", 0), 2**70, "does not fit in 64 bits"),
        (("source", "layout"), 3, "source: layout is 3; it must be a text"),
        (("destination",), [], r"destination is \[\]; it must be an object"),
        (("axes", 0), None, r"axes\[0\] is None; it must be an integer"),
        (("axes",), {}, "axes is {}; it must be a list"),
        (("dtype",), ["a"], r"dtype is \['a'\]; it must be as numpy"),
        (("dtype",), 3, "dtype is 3; it must be as numpy"),
        (("dtype",), "no such", "dtype is 'no such'; it must be as numpy"),
    ],
)
def test_what_is_wrong_with_a_plans_text_is_named(way, value, said):
    source, destination = ls.Layout("(BLOCK, *) on 2", (4, 6)), ls.Layout("(BLOCK, CYCLIC) on 2x2", (6, 4))
    told = json.loads(ls.plan(source, destination, "f8", axes=(1, 0)).to_json())
    at = told
    for key in way[:-1]:
        at = at[key]
    at[way[-1]] = value
    with pytest.raises(ls.LongshoreError, match=said):
        ls.MotionPlan.from_json(json.dumps(told))


# -- the same call again ----------------------------------------------------------------------------------------------


@pytest.fixture
def bound(monkeypatch):
    """Whatever has been bound by `redistribute`, in a list."""
    made, bind = [], _bind.bind_plan
    monkeypatch.setattr(_bind, "bind_plan", lambda *arguments: made.append(arguments) or bind(*arguments))
    return made


def test_the_same_call_binds_once(bound):
    src, dst = ls.Layout("(BLOCK, *) on 3", (9, 8)), ls.Layout("(*, CYCLIC) on 2", (9, 8))
    parts, out = ls.scatter(np.zeros((9, 8)), src), ls.empty(dst, float)
    for turn in range(4):
        array = np.arange(72.0).reshape(9, 8) + turn
        for to, of in zip(parts, ls.scatter(array, src)):
            to[...] = of
        told = ls.redistribute(parts, ls.Layout("(BLOCK, *) on 3", (9, 8)), "(*, CYCLIC) on 2", out=out)
        assert told is out
        np.testing.assert_array_equal(ls.gather(out, dst), array)
    assert sum(arguments[1] is parts for arguments in bound) == 1
    ls.redistribute(parts, src, "(*, CYCLIC) on 2", out=out, again=False)
    ls.redistribute(parts, src, "(*, CYCLIC) on 2", out=out, threads=1)
    assert sum(arguments[1] is parts for arguments in bound) == 3
    with pytest.raises(ls.ArgumentTypeError, match="again"):
        ls.redistribute(parts, src, dst, out=out, again=2)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1 << 30))
def test_calls_on_arrays_that_come_and_go(seed):
    chance = np.random.default_rng(seed)
    texts = ["(BLOCK, *) on 3", "(*, CYCLIC(2)) on 2", "(CYCLIC, BLOCK) on 2x2", "(*, *) on 1, order=F"]
    shapes = [(4, 6), (6, 4), (1, 1), (0, 3), (24, 1)]
    for _ in range(12):
        shape, dtype = shapes[chance.integers(5)], ("f8", "i8", "i4")[chance.integers(3)]
        src, dst = (ls.Layout(texts[chance.integers(4)], shape) for _ in range(2))
        array = chance.integers(0, 1000, shape).astype(dtype)
        for _ in range(chance.integers(1, 4)):
            out = ls.empty(dst, dtype)
            ls.redistribute(ls.scatter(array, src), src, dst, out=out)
            np.testing.assert_array_equal(ls.gather(out, dst), array)


def test_what_has_changed_is_seen(bound):
    src, dst = ls.Layout("(BLOCK, *) on 2", (4, 4)), ls.Layout("(*, BLOCK) on 2", (4, 4))
    parts, out = ls.scatter(np.arange(16.0).reshape(4, 4), src), ls.empty(dst, float)
    ls.redistribute(parts, src, dst, out=out)
    out[1].flags.writeable = False
    with pytest.raises(ls.LocalArrayError):
        ls.redistribute(parts, src, dst, out=out)
    out[1].flags.writeable = True
    with pytest.raises(ls.ShapeError):
        ls.redistribute([part.reshape(1, 8) for part in parts], src, dst, out=out)
    with pytest.raises(ls.DTypeError):
        ls.redistribute([part.view("i8") for part in parts], src, dst, out=out)
    ls.redistribute(parts, src, dst, out=out)
    ls.redistribute([part.view("i8") for part in parts], src, dst, out=[part.view("i8") for part in out])
    before = [sys.getrefcount(part) for part in parts]
    ls.redistribute(parts, src, dst, out=out)
    assert [sys.getrefcount(part) for part in parts] == before, "arrays are held"
    np.testing.assert_array_equal(ls.gather(out, dst), np.arange(16.0).reshape(4, 4))


def test_threads_have_movers_of_their_own():
    src, dst = ls.Layout("(BLOCK, *) on 2", (64, 64)), ls.Layout("(*, BLOCK) on 2", (64, 64))
    parts, wrong = ls.scatter(np.arange(4096.0).reshape(64, 64), src), []

    def work():
        out = ls.empty(dst, float)
        for _ in range(200):
            ls.redistribute(parts, src, dst, out=out)
            if out[1][3, 5] != 3 * 64 + 32 + 5:
                wrong.append(out)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_bytes_of_a_rank():
    plan = ls.plan(ls.Layout("(BLOCK, *) on 2", (5, 4)), ls.Layout("(*, BLOCK) on 3", (5, 4)), "f4")
    sides = plan.source, plan.destination
    assert [plan.local_bytes(rank) for rank in range(4)] == [
        4 * sum(side.local_size(rank) for side in sides) for rank in range(4)
    ]
    assert plan.local_bytes(0) == 4 * (3 * 4 + 5 * 2) and plan.local_bytes(3) == 0
