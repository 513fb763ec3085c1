"""Address relations as a user meets them: NumPy says what must come out, and every mistake has words."""

import copy
import pickle

import longshore as ls
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import DTYPES, distinct, redistributions, same

Relation = ls.AddressRelation
KINDS = ls.encoding_kinds()
INDEX_TYPES = [list, "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">i8"]


@st.composite
def index_lists(draw, most=60):
    """Source and destination indices, the latter all different, with some structure or none."""
    n = draw(st.integers(0, most))
    shape = draw(st.sampled_from(["any", "sorted", "backwards", "blocks", "same"]))
    source = np.array(draw(st.lists(st.integers(0, 2 * n), min_size=n, max_size=n)), "i8")
    destination = np.array(draw(st.permutations(range(2 * n)))[:n] if n else [], "i8")
    if shape == "sorted":
        source, destination = np.sort(source), np.sort(destination)
    elif shape == "backwards":
        source, destination = np.arange(n), np.arange(n)[::-1].copy()
    elif shape == "blocks":
        source, destination = np.arange(2 * n).reshape(-1, 2)[::2].ravel()[:n], np.arange(n)
        source, destination = source[: len(destination)], destination[: len(source)]
    elif shape == "same":
        source = np.zeros(n, "i8")
    return source, destination


def as_type(values, kind):
    return values.tolist() if kind is list else values.astype(kind)


def filled(n, dtype):
    return distinct((n,), dtype)


@given(lists=index_lists(), kind=st.sampled_from(INDEX_TYPES), dtype=DTYPES)
def test_indices_mean_what_numpys_do(lists, kind, dtype):
    source, destination = lists
    relation = Relation.from_indices(as_type(source, kind), as_type(destination, kind), dtype)
    size = np.dtype(dtype).itemsize
    assert len(relation) == relation.elements == len(source)
    assert relation.element_bytes == size and relation.bytes == size * len(source)
    assert np.array_equal(relation.pairs(), np.stack([source, destination], 1) * size)
    a, b = filled(130, dtype), np.zeros(130, dtype)
    expected = b.copy()
    expected[destination] = a[source]
    assert same(relation.move(a, b), expected)
    message = relation.assembler()(a)
    assert same(message, a[source])
    assert same(relation.disassembler()(message, np.zeros(130, dtype)), expected)


@given(lists=index_lists(), data=st.data())
def test_slices_are_those_of_the_pairs(lists, data):
    relation = Relation.from_indices(*lists, "f8")
    pairs = relation.pairs()
    cut = slice(data.draw(st.none() | st.integers(-70, 70)), data.draw(st.none() | st.integers(-70, 70)))
    assert np.array_equal(relation[cut].pairs(), pairs[cut])
    assert relation.canonical()[cut] == relation[cut]
    assert [relation[k] for k in range(-len(pairs), 0)] == [tuple(pair) for pair in pairs.tolist()]
    first, last, _ = cut.indices(len(pairs))
    last = max(first, last)
    a = filled(130, "f8")
    part = relation.assembler()(a, first=first, last=last)
    assert same(part, a[lists[0][cut]])
    arrived, expected = np.zeros(130), np.zeros(130)
    expected[lists[1][cut]] = part
    assert same(relation.disassembler()(part, arrived, first, last), expected)


@given(lists=index_lists(), kind=st.sampled_from([*KINDS, "auto"]))
def test_encodings_are_the_relation(lists, kind):
    relation = Relation.from_indices(*lists, "f8")
    encoding = ls.encode(relation, kind)
    assert encoding.decode() == relation and len(encoding) == len(relation)
    assert kind in (encoding.kind, "auto") and encoding.validate() is None
    assert ls.Encoding.from_bytes(encoding.to_bytes()) == encoding == pickle.loads(pickle.dumps(encoding))
    assert hash(ls.Encoding.from_bytes(encoding.to_bytes())) == hash(encoding)
    a, b = filled(130, "f8"), np.zeros(130)
    expected = b.copy()
    expected[lists[1]] = a[lists[0]]
    message = encoding.assemble(a)
    assert same(message, a[lists[0]])
    assert same(encoding.disassemble(message, b), expected)


@given(lists=index_lists())
def test_relations_are_values(lists):
    relation = Relation.from_indices(*lists, "f4")
    for again in (pickle.loads(pickle.dumps(relation)), copy.deepcopy(relation), relation.canonical(), relation[:]):
        assert again == relation and hash(again) == hash(relation) and again.same_pairs(relation)
    assert relation != 3 and relation != Relation.from_indices(*lists, "f8")
    assert Relation.concatenate([relation[:7], relation[7:]]) == relation
    assert Relation.from_segments(relation.source_segments(), relation.destination_segments(), "f4") == relation


@given(move=redistributions(max_ndim=3), dtype=DTYPES)
def test_relations_of_layouts_move_arrays(move, dtype):
    source, destination, axes = move
    whole = distinct(source.shape, dtype)
    parts = ls.scatter(whole, source)
    expected = ls.redistribute(parts, source, destination, axes=axes)
    ranks = source.ranks
    for index, rank in enumerate(destination.ranks):
        out = np.zeros_like(expected[index])
        for k, sender in enumerate(ranks):
            relation = Relation.from_layouts(source, sender, destination, rank, dtype, axes)
            assert pickle.loads(pickle.dumps(relation)) == relation
            if len(relation):
                relation.move(parts[k], out)
        assert same(out, expected[index])


UFUNCS = {
    "add": np.add,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}
NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("reduce", UFUNCS)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_reductions_are_those_of_ufunc_at(reduce, dtype):
    dtype = np.dtype(dtype)
    if (reduce.startswith("bitwise") and dtype.kind in "fc") or (
        reduce in ("minimum", "maximum") and dtype.kind == "c"
    ):
        with pytest.raises(ls.DTypeError, match=f"{reduce} is not defined for elements of {dtype.name}"):
            Relation.from_indices([0], [0], dtype, reduce=reduce)
        return
    rng = np.random.default_rng(7)
    source, destination = rng.integers(0, 50, 300), rng.integers(0, 9, 300)
    a, b = (rng.integers(0, 250, n).astype("u1").view("i1").astype(dtype) for n in (50, 9))
    if dtype.kind in "fc":
        a, b = a / 16, b / 16
        a, b = a.astype(dtype), b.astype(dtype)
        if dtype.kind == "c":
            a *= 1 + 2j
        elif reduce not in ("add", "multiply"):
            a[3] = np.nan
    if reduce == "multiply" and dtype.kind in "fc":
        a /= np.abs(a).max()
    expected = b.copy()
    with np.errstate(all="ignore"):
        UFUNCS[reduce].at(expected, destination, a[source])
    relation = Relation.from_indices(source, destination, dtype, reduce=reduce)
    assert relation.reduce == reduce
    compared = (
        np.testing.assert_allclose if dtype.kind == "c" and reduce == "multiply" else np.testing.assert_array_equal
    )
    compared(relation.move(a, b.copy()), expected)
    message = relation.assembler()(a)
    compared(relation.disassembler()(message, b.copy()), expected)
    for kind in KINDS:
        compared(ls.encode(relation, kind).disassemble(message, b.copy()), expected)
        assert ls.encode(relation, kind).decode().reduce == reduce
    assert pickle.loads(pickle.dumps(relation)) == relation


def test_short_names_of_reductions():
    assert Relation.from_indices([0], [0], "f8", reduce="min").reduce == "minimum"
    assert Relation.from_indices([0], [0], "f8", reduce="max").reduce == "maximum"
    assert Relation.from_indices([0], [0], "f8").reduce is None


def test_scatter_add_of_a_replicated_gather():
    gather = Relation.from_indices([3, 1, 3, 3], [0, 1, 2, 3], "f8")
    with pytest.raises(ls.ArgumentError, match="combining operation"):
        gather.inverse()
    scatter = gather.inverse("f8", "add")
    assert np.array_equal(scatter.move(np.array([1.0, 2, 4, 8]), np.zeros(4)), [0, 2, 0, 13])
    with pytest.raises(ls.DTypeError, match="needs a dtype"):
        gather.inverse(reduce="add")


def test_constructors_agree():
    pairs = np.array([[0, 8], [8, 16], [100, 0]])
    relation = Relation.from_pairs(pairs, "f8")
    assert Relation.from_blocks([[0, 8, 2], [100, 0, 1], [7, 7, 0]], 8) == relation
    assert Relation.from_segments([(0, 16), (100, 8)], [(8, 16), (0, 8)], 8) == relation
    assert relation.source_segments().tolist() == [[0, 16], [100, 8]]
    assert relation.destination_segments().tolist() == [[8, 16], [0, 8]]
    assert relation.source_extent == (0, 108) and relation.destination_extent == (0, 24)
    a = np.arange(12.0).reshape(3, 4)
    box = Relation.strided(a.shape, a.strides, a.T.copy().T.strides, "f8")
    assert same(box.move(a, np.zeros((4, 3))), a.T.copy())
    assert Relation.from_segments([(3, 5)]).pairs().tolist() == [[k + 3, k] for k in range(5)]
    assert Relation.concatenate([]).elements == 0


def test_arrays_in_any_strides():
    line = Relation.strided((3,), (-8,), (16,), "f8")
    a, b = np.arange(5.0), np.zeros(9)
    line.move(a[::-1], b[1:7:2])  # backwards from the last element on, to every other one
    assert b.tolist() == [0, 4, 0, 3, 0, 2, 0, 0, 0]
    plane = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    turned = Relation.strided((2, 3), plane.strides, (24, 8), "f8").move(plane, np.zeros((2, 3)))
    assert np.array_equal(turned, plane)
    assert np.array_equal(Relation.from_indices([0], [1], "f8").move(np.array(7.0), np.zeros(2)), [0, 7])
    assert Relation.from_indices([2, 0], [0, 1], 1).move(b"abc", bytearray(2)) == b"ca"
    records = np.array([(1, 2.0), (3, 4.0)], "i4,f8")
    assert Relation.from_indices([1, 0], [0, 1], records.dtype).move(records, records.copy()).tolist() == [
        (3, 4.0),
        (1, 2.0),
    ]


def refused(error, words, call):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


LINE = Relation.from_indices([0, 1, 2], [2, 1, 0], "f8")


def test_arrays_that_will_not_do():
    a, b = np.zeros(3), np.zeros(3)
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    refused(ls.LocalArrayError, ["[0, 24)", "source", "[0, 16)"], lambda: LINE.move(a[:2], b))
    refused(ls.LocalArrayError, ["destination", "[0, 16)"], lambda: LINE.move(a, b[:2]))
    refused(ls.LocalArrayError, ["destination", "[0, 0)"], lambda: LINE.move(a, b[:0]))
    refused(ls.LocalArrayError, ["read-only"], lambda: LINE.move(a, fixed))
    refused(ls.LocalArrayError, ["read-only"], lambda: LINE.move(a, bytes(24)))
    both = np.zeros(6)
    refused(ls.LocalArrayError, ["overlap"], lambda: LINE.move(both[:3], both[2:5]))
    refused(ls.LocalArrayError, ["overlap"], lambda: LINE.move(a, a))
    refused(
        ls.LocalArrayError,
        ["[-16, 8)", "[-8, 8)"],
        lambda: Relation.strided((3,), (-8,), (8,), "f8").move(a[:2][::-1], b),
    )
    refused(ls.LocalArrayError, ["message", "[0, 16)"], lambda: LINE.assembler()(a, b[:2]))
    refused(ls.LocalArrayError, ["message", "[0, 16)"], lambda: LINE.disassembler()(a[:2], b))
    refused(ls.LocalArrayError, ["overlap"], lambda: LINE.assembler()(a, a))
    refused(ls.ArgumentError, ["expected an array", "list"], lambda: LINE.move([1.0, 2.0, 3.0], b))
    LINE.move(fixed, b)
    LINE.move(both[:3], both[3:])
    Relation.from_indices([], [], "f8").move(a[:0], b[:0])


def test_stretches_that_are_not_there():
    a, b = np.zeros(3), np.zeros(3)
    executors = [LINE.assembler(), ls.encode(LINE, "dmrle").assemble]
    for first, last in [
        (0, 4),
        (-1, 2),
        (2, 1),
        (0, 2**62),
        (-(2**62), 2**62),
        (2**62, 2**62 + 1),
        (0, 2**63 - 1),
        (-(2**63), 0),
    ]:
        words = [f"[{first}, {last})", "[0, 3)"]
        for execute in executors:
            refused(ls.ArgumentError, words, lambda: execute(a, first=first, last=last))
            refused(ls.ArgumentError, words, lambda: execute(a, b, first, last))
        for execute in (LINE.disassembler(), ls.encode(LINE, "nest").disassemble):
            refused(ls.ArgumentError, words, lambda: execute(a, b, first, last))
        refused(ls.ArgumentError, words, lambda: LINE.restrict(first, last))


@pytest.mark.parametrize(
    "error, words, call",
    [
        (ls.ArgumentError, ["pair 0 (0 -> 24)", "pair 1 (8 -> 24)"], lambda: Relation.from_indices([0, 1], [3, 3], 8)),
        (
            ls.ArgumentError,
            ["pair 0 (0 -> -8)", "pair 1 (8 -> -4)"],
            lambda: Relation.from_pairs([[0, -8], [8, -4]], 8),
        ),
        (ls.ShapeError, ["2 source indices", "1 destination"], lambda: Relation.from_indices([0, 1], [3], 8)),
        (ls.ShapeError, ["source", "(1, 1)", "(n,)"], lambda: Relation.from_indices([[0]], [0], 8)),
        (ls.ShapeError, ["source", "()"], lambda: Relation.from_indices(0, 0, 8)),
        (ls.ShapeError, ["(1, 3)", "(n, 2)"], lambda: Relation.from_pairs([[0, 0, 0]], 8)),
        (ls.ShapeError, ["extent -1"], lambda: Relation.strided((-1,), (8,), (8,), 8)),
        (ls.ShapeError, ["1 source strides"], lambda: Relation.strided((1, 2), (8,), (8, 8), 8)),
        (ls.ShapeError, ["8", "12"], lambda: Relation.from_segments([[0, 8]], [[0, 12]], 4)),
        (ls.ArgumentError, ["run 0", "-2"], lambda: Relation.from_blocks([[0, 0, -2]], 8)),
        (ls.DTypeError, ["float64", "integers"], lambda: Relation.from_indices([0.5], [0], 8)),
        (ls.DTypeError, ["bool", "integers"], lambda: Relation.from_indices(np.array([True]), [0], 8)),
        (ls.DTypeError, ["integers"], lambda: Relation.from_indices([2**64], [0], 8)),
        (ls.DTypeError, ["0 bytes"], lambda: Relation.from_indices([0], [0], 0)),
        (ls.DTypeError, ["0 bytes"], lambda: Relation.from_segments([[0, 8]], [[0, 8]], 0)),
        (ls.DTypeError, ["-1 bytes"], lambda: Relation.from_indices([0], [0], -1)),
        (ls.DTypeError, ["0 bytes", "S8"], lambda: Relation.from_indices([0], [0], "S")),
        (ls.DTypeError, ["Python objects"], lambda: Relation.from_indices([0], [0], object)),
        (ls.DTypeError, ["True"], lambda: Relation.from_indices([0], [0], True)),
        (ls.SizeOverflowError, [str(2**70)], lambda: Relation.from_indices([0], [0], 2**70)),
        (ls.SizeOverflowError, [str(2**63)], lambda: Relation.from_indices(np.array([2**63], "u8"), [0], 8)),
        (ls.SizeOverflowError, ["product"], lambda: Relation.from_indices([2**62], [0], 8)),
        (ls.SizeOverflowError, ["2^60"], lambda: Relation.from_indices([2**58], [0], 8)),
        (ls.SizeOverflowError, ["product"], lambda: Relation.strided((2**62,), (8,), (8,), 8)),
        (ls.ArgumentError, ["'plus'", "bitwise_xor"], lambda: Relation.from_indices([0], [0], "f8", reduce="plus")),
        (ls.DTypeError, ["'add'", "8 bytes"], lambda: Relation.from_indices([0], [0], 8, reduce="add")),
        (ls.DTypeError, ["numeric"], lambda: Relation.from_indices([0], [0], "S3", reduce="add")),
        (ls.DTypeError, ["numeric"], lambda: Relation.from_indices([0], [0], ">f8", reduce="add")),
        (ls.ArgumentError, ["by is 'x'", "'source' or 'destination'"], lambda: LINE.sorted("x")),
        (ls.ArgumentError, ["step of 1"], lambda: LINE[::2]),
        (ls.ArgumentError, ["'zip'", "nest"], lambda: ls.encode(LINE, "zip")),
        (ls.ArgumentError, ["2 bytes"], lambda: ls.Encoding.from_bytes(b"no")),
        (ls.DTypeError, ["8-byte", "4-byte"], lambda: LINE.compose(Relation.from_indices([0], [0], 4))),
        (
            ls.DTypeError,
            ["relation 1"],
            lambda: Relation.concatenate([LINE, Relation.from_indices([0], [9], "f8", reduce="add")]),
        ),
        (IndexError, ["outside"], lambda: LINE[3]),
        (IndexError, ["outside"], lambda: LINE[-4]),
        (IndexError, ["outside"], lambda: LINE[2**70]),
        (TypeError, ["integer"], lambda: LINE[1.5]),
        (TypeError, ["integer"], lambda: LINE["a"]),
    ],
)
def test_mistakes_have_words(error, words, call):
    refused(error, words, call)


def test_huge_relations_cost_nothing():
    line = Relation.strided((2**30, 2**10), (2**13, 8), (8, 2**34), "f8")
    assert len(line) == 2**40 and line[2**40 - 1] == (2**43 - 8, 8 * (2**30 - 1) + (2**10 - 1) * 2**34)
    assert line.inverse().inverse() == line and pickle.loads(pickle.dumps(line)) == line
    assert line.sorted("destination")[1] == (2**13, 8)
    assert len(line[5:-7]) == 2**40 - 12 and line[5:-7][0] == line[5]
    assert ls.encode(line).kind == "nest" and ls.encode(line).encoded_bytes < 1000
    source = ls.Layout("(CYCLIC(3), *) on 2", (2**20, 2**20))
    destination = ls.Layout("(*, BLOCK) on 2, order=F", (2**20, 2**20))
    relation = Relation.from_layouts(source, 0, destination, 1, "f8")
    assert pickle.loads(pickle.dumps(relation)) == relation and relation.workspace_bytes < 10000


def test_patterns_and_words():
    assert LINE.source_pattern == {"block_bytes": 24, "loops": [], "regular": True}
    assert LINE.destination_pattern == {"block_bytes": 8, "loops": [(3, -8)], "regular": True}
    assert "3 elements of 8 bytes" in repr(LINE) and "dmrle" in repr(ls.encode(LINE, "dmrle"))
    for executor in (LINE.program(), LINE.assembler(), LINE.disassembler()):
        assert str(executor) and executor.workspace_bytes > 0
