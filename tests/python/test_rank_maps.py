"""Rank maps from Python, beside NumPy's arrays and Python's lists."""

import json
import pickle
from collections.abc import Iterable

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore.cli import run
from longshore.ranks import grid_section, members_of

WORLD = 1 << 12


@st.composite
def members(draw, world=WORLD):
    """Ranges, boxes, sets and lists: what groups look like, and what nobody would expect."""
    kind = draw(st.sampled_from(["list", "set", "runs", "nest", "permutation", "nodes"]))
    if kind in ("list", "set"):
        ranks = draw(st.lists(st.integers(0, world - 1), unique=True, max_size=300))
        return sorted(ranks) if kind == "set" else ranks
    if kind == "permutation":
        return draw(st.permutations(range(draw(st.integers(0, 200)))))
    if kind == "nodes":
        size = draw(st.sampled_from([4, 16, 24]))
        nodes = draw(st.lists(st.integers(0, world // size - 1), unique=True, max_size=20))
        return [node * size + k for node in nodes for k in range(size)]
    if kind == "runs":
        ranks, at = [], 0
        for gap, length in draw(st.lists(st.tuples(st.integers(1, 99), st.integers(1, 99)), max_size=20)):
            ranks += range(at + gap, at + gap + length)
            at += gap + length
        return ranks
    shape = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    grid = np.arange(int(np.prod(shape))).reshape(shape)
    return [int(rank) for rank in grid.transpose(draw(st.permutations(range(len(shape))))).reshape(-1)]


def check(rank_map, expected, world=WORLD):
    assert len(rank_map) == rank_map.size == len(expected)
    assert rank_map.world == world
    assert rank_map.ascending == (sorted(expected) == list(expected))
    assert list(rank_map) == list(expected)
    assert rank_map.to_array().tolist() == list(expected)
    positions = {rank: k for k, rank in enumerate(expected)}
    asked = np.arange(-1, world + 1)
    assert rank_map.rank(asked).tolist() == [positions.get(int(rank), -1) for rank in asked]
    assert rank_map.validate() is None


@given(members(), st.sampled_from(["time", "space", "hybrid"]), st.sampled_from(["none", "lazy", "hash", "shortcuts"]))
def test_holds_what_it_was_given(ranks, strategy, lookup):
    rank_map = ls.RankMap(ranks, WORLD, strategy=strategy, lookup=lookup)
    check(rank_map, ranks)
    again = pickle.loads(pickle.dumps(rank_map))
    assert again == rank_map and hash(again) == hash(rank_map)
    assert again.representation == rank_map.representation


@settings(max_examples=30)
@given(members(), st.data())
def test_every_module_that_is_possible_holds_it(ranks, data):
    rows = ls.explain_ranks(ranks, WORLD, modules="all").rows
    assert {row["module"] for row in rows} == set(ls.rank_modules("all"))
    possible = [row["module"] for row in rows if row["possible"]]
    if possible:
        check(ls.RankMap(ranks, WORLD, module=data.draw(st.sampled_from(possible)), lookup="hash"), ranks)
    assert [row["score"] for row in rows if row["possible"]] == sorted(row["score"] for row in rows if row["possible"])
    assert sum(row["chosen"] for row in rows) == min(1, len(possible))


@given(members(), members())
def test_algebra_is_that_of_lists(a, b):
    x, y = ls.RankMap(a, WORLD), ls.RankMap(b, WORLD)
    in_a, in_b = set(a), set(b)
    assert list(x.union(y)) == [*a, *(w for w in b if w not in in_a)]
    assert list(x.intersection(y)) == [w for w in a if w in in_b]
    assert list(x.difference(y)) == [w for w in a if w not in in_b]
    assert list(x.union(y, sort=True)) == list(x | y) == sorted(in_a | in_b)
    assert list(x.intersection(y, sort=True)) == list(x & y) == sorted(in_a & in_b)
    assert list(x.difference(y, sort=True)) == list(x - y) == sorted(in_a - in_b)
    assert x.compare(y) == ("identical" if list(a) == list(b) else "similar" if in_a == in_b else "unequal")
    assert (x == y) == (list(a) == list(b))
    where = {w: k for k, w in enumerate(b)}
    assert x.translate(y).tolist() == [where.get(w, -1) for w in a]


@given(members(), st.data())
def test_parts_of_a_map(ranks, data):
    rank_map = ls.RankMap(ranks, WORLD)
    n = len(ranks)
    slices = data.draw(st.slices(n))
    assert list(rank_map[slices]) == list(ranks)[slices]
    positions = data.draw(st.lists(st.integers(0, n - 1), unique=True)) if n else []
    assert list(rank_map.incl(positions)) == [ranks[k] for k in positions]
    assert list(rank_map.excl(positions)) == [w for k, w in enumerate(ranks) if k not in set(positions)]
    colours = data.draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    keys = data.draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n))
    expected = {}
    for k in sorted(range(n), key=lambda k: (colours[k], keys[k], k)):
        if colours[k] >= 0:
            expected.setdefault(colours[k], []).append(ranks[k])
    assert {colour: list(part) for colour, part in rank_map.by_colour(colours, keys).items()} == expected


def test_numpys_integers_are_integers():
    some = ls.RankMap([4, 0, 2], 5)
    assert np.int64(4) in some and np.array(2) in some and np.int32(3) not in some
    assert some.rank(np.int64(2)) == 2 and some.rank(np.uint8(3)) is None
    assert 2**70 not in some and some.rank(2**70) is None and -(2**70) not in some
    assert "4" not in some and 4.0 not in some


def test_positions_are_integers_or_slices():
    some = ls.RankMap([4, 0, 2], 5)
    assert isinstance(some, Iterable) and [*iter(some)] == [4, 0, 2]
    for wrong in ("a", 1.5, None):
        with pytest.raises(ls.ArgumentTypeError, match=r"position is .*; it must be an integer or a slice"):
            some[wrong]
    with pytest.raises(ls.LongshoreError, match="does not fit in 64 bits"):
        some[2**70]


def test_slices_of_nothing_are_empty():
    assert len(ls.RankMap([], 5)[::-1]) == len(ls.RankMap(range(5), 5)[-100::-1]) == 0


def test_ranges_of_huge_worlds_are_closed_forms():
    world = 2**40
    rank_map = ls.RankMap(range(5, world, 3), world)
    assert rank_map.representation == "stride" and rank_map.bytes < 100
    assert rank_map[-1] == range(5, world, 3)[-1]
    assert rank_map.rank(8) == 1 and rank_map.rank(9) is None and 8 in rank_map and 9 not in rank_map
    assert rank_map.range_incl([(0, 8, 4)]).to_array().tolist() == [5, 17, 29]
    for pick in (rank_map.range_incl, rank_map.range_excl):
        with pytest.raises(ls.ArgumentError, match=r"a range is \(first, last, stride\), not 1 numbers"):
            pick([1, 2])
    assert rank_map.range_excl([(0, rank_map.size - 3, 1)]).size == 2


def test_arrays_of_any_integers_and_shapes():
    rank_map = ls.RankMap(np.array([[3, 1], [4, 9]], dtype=np.uint16), 10)
    assert rank_map.world_rank(np.array([[0, 3]])).tolist() == [[3, 9]]
    assert rank_map.rank([[9], [2]]).tolist() == [[3], [-1]]
    assert rank_map.world_rank(2) == 4 and isinstance(rank_map.world_rank(2), int)


def test_mistakes():
    with pytest.raises(ls.ArgumentError, match="rank 7 comes twice, at positions 1 and 2"):
        ls.RankMap([1, 7, 7], 8)
    with pytest.raises(ls.ArgumentError, match=r"rank 8 at position 0 is outside \[0, 8\)"):
        ls.RankMap([8], 8)
    with pytest.raises(ls.ArgumentError, match="integers, not float64"):
        ls.RankMap([1.5], 8)
    with pytest.raises(ls.ArgumentError, match="strategy"):
        ls.RankMap([1], 8, strategy="fast")
    with pytest.raises(ls.ArgumentError, match="there is no representation"):
        ls.RankMap([1], 8, module="zip")
    rank_map = ls.RankMap([4, 2], 8)
    with pytest.raises(IndexError):
        rank_map[2]
    with pytest.raises(ls.ArgumentError, match="position 5"):
        rank_map.world_rank([0, 5])
    with pytest.raises(ls.ArgumentError, match=r"position 1180591620717411303424 is outside \[0, 2\)"):
        rank_map.world_rank(2**70)
    with pytest.raises(ls.ArgumentError, match="sort"):
        rank_map.union(rank_map, sort="alphabetical")
    stored = bytearray(rank_map.to_bytes())
    stored[20] ^= 1
    with pytest.raises(ls.ArgumentError, match="checksum"):
        ls.RankMap.from_bytes(bytes(stored))
    with pytest.raises(ls.ArgumentError, match="number of members"):
        ls.RankMap.from_bytes(ls.RankMap.whole(1000).to_bytes(), 999)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_sections_of_grids_are_those_of_arrays(shape, data):
    grid = np.arange(int(np.prod(shape))).reshape(shape)
    dimensions = data.draw(st.integers(0, len(shape)))
    section = tuple(
        data.draw(st.one_of(st.integers(-extent, extent - 1), st.slices(extent))) for extent in shape[:dimensions]
    )
    rank_map = grid_section(shape, section)
    assert rank_map.to_array().tolist() == grid[section].reshape(-1).tolist()
    assert rank_map.world == grid.size


@pytest.mark.parametrize(
    "shape, section, kind, words",
    [
        ((4, 4), (slice(None, None, 0),), ls.ArgumentError, "zero, in dimension 0"),
        ((4, 4), (0, slice("a", None)), ls.ArgumentTypeError, "integers.*, in dimension 1"),
        ((4, 4), ("a",), ls.ArgumentTypeError, "dimension 0 is 'a'"),
        ((4, 4), (1.5,), ls.ArgumentTypeError, "dimension 0 is 1.5"),
        ((4, 4), (None,), ls.ArgumentTypeError, "dimension 0 is None"),
        ((4, 4), 3, ls.ArgumentTypeError, "section is 3"),
        ((4, 4), slice(None), ls.ArgumentTypeError, "section is slice"),
        ((4, 4), (4,), ls.ArgumentError, "index 4 of dimension 0"),
        ((4, 4), (0, 0, 0), ls.ArgumentError, "3 dimensions, the grid 2"),
        ((4, 0), (), ls.ArgumentError, "at least 1"),
        ((4, "b"), (), ls.ArgumentTypeError, "shape"),
        (4, (), ls.ArgumentTypeError, "shape"),
        ((2**70,), (), ls.LongshoreError, "shape"),
        ((2**40, 2**40), (), ls.LongshoreError, "fit in 64 bits"),
    ],
)
def test_what_is_no_section_of_a_grid_is_refused(shape, section, kind, words):
    with pytest.raises(kind, match=words):
        grid_section(shape, section)


def test_words_for_members(tmp_path):
    assert members_of("0:1048576:64") == (range(0, 1048576, 64), 1048576)
    assert members_of("10::-2", 20) == (range(10, -1, -2), 20)
    assert members_of("grid 4x3 [:, 1]")[0].to_array().tolist() == [1, 4, 7, 10]
    assert members_of("grid 4x3")[0].size == 12
    listed, world = members_of("3, 1 4")
    assert listed.tolist() == [3, 1, 4] and world == 5
    np.save(tmp_path / "ranks.npy", np.array([5, 2], dtype=np.int32))
    assert members_of(str(tmp_path / "ranks.npy"))[0].tolist() == [5, 2]
    (tmp_path / "ranks.txt").write_text("5\n2\n")
    assert members_of(str(tmp_path / "ranks.txt"))[0].tolist() == [5, 2]
    (tmp_path / "words.txt").write_text("5 two")
    for wrong in (
        "grid 4x3 [:, 3]",
        "grid 4 [a]",
        "grid 4x4 [::0, :]",
        "grid 4x4 [:, 1::-0]",
        "grid 4 [::99999999999999999999]",
        "grid 4 [99999999999999999999]",
        "grid 99999999999999999999x4",
        "grid 9999999999x9999999999",
        "1:",
        "0:9:0",
        "nowhere.npy",
        str(tmp_path / "words.txt"),
        "grid 4 [1, 2]",
    ):
        with pytest.raises(ls.LongshoreError):
            members_of(wrong)


def test_the_command_explains(capsys):
    assert run(["ranks", "explain", "0:1048576:64"]) == 0
    table = capsys.readouterr().out
    assert table.startswith("16384 members of a world of 1048576") and "* " in table and "elias-fano" in table
    assert run(["ranks", "explain", "grid 128x128x64 [:, :, 5]", "--json", "--modules", "standard"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["size"] == 128 * 128 and told["world"] == 2**20
    assert [row["module"] for row in told["rows"] if row["chosen"]] == ["nest"]
    assert run(["ranks", "explain", "grid", "8x8", "[:,", "3]"]) == 0  # words need no quotes
    assert "8 members" in capsys.readouterr().out
    for wrong, words in (("1,1", "comes twice"), ("grid 4x4 [::0, :]", "step cannot be zero")):
        assert run(["ranks", "explain", wrong]) == 2
        assert words in capsys.readouterr().err


def test_what_is_no_map_is_told():
    for make in (ls.ranks.create_comm, ls.ranks.to_group):
        with pytest.raises(ls.ArgumentError, match=r"map is a list; it must be a RankMap"):
            make([0, 1], None)
