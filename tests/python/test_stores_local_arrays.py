"""Arrays over ranks, saved to stores of every format and loaded from them, against `scatter`; mistakes."""

import json
import os
import tempfile
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore import FloorPlan, Region
from longshore.errors import ArgumentError, DTypeError, LayoutError, MemoryLimitError, ShapeError, StoreError
from longshore.stores import local_arrays
from longshore.stores import rows as file_rows
from strategies import EXTENTS, layouts

PLACES = ["a.npy", "shards"]
PLACES += ["a.zarr", "a.zarr/deep/er"] if find_spec("zarr") else []
PLACES += ["a.h5::/fields/u"] if find_spec("h5py") else []


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def values(shape, dtype="f8"):
    return np.arange(int(np.prod(shape)), dtype="i8").reshape(shape).astype(dtype)


def words_for(place, shape, draw):
    """Chunks and what else a format takes."""
    words = {}
    if ".zarr" in place or ".h5" in place:
        words["chunks"] = draw(st.none() | st.tuples(*(st.integers(1, 9) for _ in shape)))
    if ".zarr" in place and words["chunks"] and draw(st.booleans()):
        words["shards"] = tuple(c * draw(st.integers(1, 3)) for c in words["chunks"])
        words["chunks"] = tuple(map(int, words["chunks"]))
        if any(c > n for c, n in zip(words["chunks"], shape)):
            del words["shards"]  # chunks are cut to the array then
    if ".zarr" in place:
        words["zarr_format"] = 3 if "shards" in words else draw(st.sampled_from([2, 3]))
        words["codecs"] = draw(st.sampled_from([None, ["zstd:1"], ["shuffle", "gzip:1"]]))
    return words


def rows(shape, order, draw):
    """The text of a layout that deals out the dimension in which neighbours lie farthest from each other."""
    words = ["*"] * len(shape)
    words[0 if order == "C" else -1] = draw(st.sampled_from(["BLOCK", "CYCLIC", "CYCLIC(3)"]))
    return f"({', '.join(words)}) on {draw(st.integers(1, 5))}"


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_there_and_back(data):
    shape = tuple(data.draw(st.lists(EXTENTS, min_size=1, max_size=3)))
    name = data.draw(st.sampled_from(PLACES))
    dtype = data.draw(st.sampled_from(["f8", "i1", "u2", ">i4", "?", "c16"]))
    from_layout, to_layout = data.draw(layouts(shape)), data.draw(layouts(shape))
    max_mem, threads = data.draw(st.sampled_from([None, "2MiB"])), data.draw(st.integers(1, 3))
    words = words_for(name, shape, data.draw)
    whole = values(shape, dtype)
    folder = tempfile.mkdtemp(dir=".")
    place = f"{folder}/{name}"
    ls.save(ls.scatter(whole, from_layout), from_layout, place, max_mem=max_mem, **words)
    with ls.open(place) as stored:
        found = stored.read()
    assert found.dtype == whole.dtype and found.shape == shape and (found == whole).all()
    if data.draw(st.booleans()):  # of what the file has in rows each rank reads its own, some at a time
        to_layout = ls.Layout(f"{rows(shape, from_layout.order, data.draw)}, order={from_layout.order}", shape)
    with (
        patch.object(file_rows, "LEAST_BYTES", data.draw(st.sampled_from([1, 100]))),
        patch.object(file_rows, "MOST_BYTES", data.draw(st.sampled_from([1, 50, 1000]))),
    ):
        parts = ls.load(place, to_layout, max_mem=max_mem, threads=threads)
    wanted = ls.scatter(whole, to_layout)
    assert len(parts) == len(wanted)
    for part, expected in zip(parts, wanted):
        assert part.dtype == expected.dtype and part.shape == expected.shape and (part == expected).all()
    assert os.listdir(folder) == [name.split("/")[0].split("::")[0]]


@pytest.mark.parametrize("place", ["a.npy", "shards"])
def test_rows_are_read_to_where_they_belong(place, monkeypatch):
    """Without a plan, which nobody is asked for then."""
    whole, layout = values((6000, 30)), ls.Layout("(CYCLIC(700), *) on 3", (6000, 30))
    ls.save(ls.scatter(whole, layout), layout, place)
    monkeypatch.setattr(local_arrays, "plan", None)
    for part, expected in zip(ls.load(place, layout), ls.scatter(whole, layout)):
        assert (part == expected).all()


@pytest.mark.parametrize("place", PLACES)
def test_many_small_windows(place, monkeypatch):
    from longshore.stores import chunk_windows

    monkeypatch.setattr(chunk_windows, "_PIECE_BYTES", 300)
    whole = values((40, 30))
    words = {"chunks": (7, 4)} if "." in place and ".npy" not in place else {}
    layout = ls.Layout("(CYCLIC(3), BLOCK) on 2x2", whole.shape)
    ls.save(ls.scatter(whole, layout), layout, place, **words)
    parts = ls.load(place, "(GEN_BLOCK(1, 39), *) on 2, order=F")
    assert (parts[0] == whole[:1]).all() and (parts[1] == whole[1:]).all()


@pytest.mark.parametrize("place", [place for place in PLACES if place != "shards"])
def test_blocks(place):
    whole = values((12, 10))
    plan = FloorPlan.even(Region((5, 5), (17, 15)), 3)
    u = ls.XArray(plan, "f8", ghost=1)
    for k, grid in u.items():
        grid[...] = -1
        grid.interior[...] = whole[plan[k].slices(Region((5, 5), (17, 15)))]
    words = {"chunks": (5, 4)} if ".npy" not in place else {}
    ls.save(u, place, **words)
    with ls.open(place) as stored:
        assert (stored.read() == whole).all()
    v = ls.XArray(FloorPlan.even(Region.of_shape((12, 10)), 2), "f8", ghost=1)
    for _, grid in v.items():
        grid[...] = -2
    assert ls.load(place, v) is None
    for k, grid in v.items():
        assert (grid.interior == whole[v.blocks[k].slices(Region.of_shape((12, 10)))]).all()
        assert (grid == -2).sum() == grid.size - grid.interior.size  # ghost cells keep what they hold


@pytest.mark.skipif("a.zarr" not in PLACES, reason="zarr is missing")
def test_names_attributes_and_chunks_that_are_not_there():
    zarr = pytest.importorskip("zarr", "3", reason="zarr 2 knows no names of dimensions")
    layout = ls.Layout("(BLOCK, *) on 2", (6, 4))
    parts = ls.scatter(values((6, 4)), layout)
    ls.save(parts, layout, "a.zarr", chunks="t=2,x=4", names=("t", "x"), attributes={"units": "K"})
    made = zarr.open_array("a.zarr", mode="r")
    assert made.chunks == (2, 4) and made.metadata.dimension_names == ("t", "x") and dict(made.attrs) == {"units": "K"}
    few = zarr.create_array("few.zarr", shape=(6, 4), chunks=(2, 2), dtype="f4", fill_value=9.5)
    few[2:4, :2] = 1
    assert (np.concatenate(ls.load("few.zarr", layout)) == few[...]).all()


def test_mappings_are_by_rank():
    whole = values((6, 4))
    for layout in (ls.Layout("(BLOCK, *) on 2", (6, 4)), ls.Layout("(BLOCK, *) on 2", (6, 4), ranks=[1, 0])):
        parts = dict(zip(layout.ranks, ls.scatter(whole, layout)))
        for order in ([0, 1], [1, 0]):
            ls.save({rank: parts[rank] for rank in order}, layout, "a.npy", force=True)
            assert (np.load("a.npy") == whole).all()


def test_mistakes():
    layout = ls.Layout("(BLOCK, *) on 2", (6, 4))
    parts = ls.scatter(values((6, 4)), layout)
    ls.save(parts, layout, "a.npy")
    before = sorted(os.listdir("."))
    rows = "(BLOCK, *) on 2"
    for kind, words, work in [
        (StoreError, "exists already", lambda: ls.save(parts, layout, "a.npy")),
        (ArgumentError, "2 arrays here, and 1 are given", lambda: ls.save(parts[:1], layout, "b.npy")),
        (ArgumentError, "2 arrays here, and 1 are given", lambda: ls.save([*parts, None][1:], layout, "b.npy")),
        (ArgumentError, "no array of rank 1 of", lambda: ls.save([parts[0], None, parts[1]], layout, "b.npy")),
        (ArgumentError, "no array of rank 0 of", lambda: ls.save({7: parts[0], 1: parts[1]}, layout, "b.npy")),
        (ArgumentError, "zarr_format is 0", lambda: ls.save(parts, layout, "b.npy", zarr_format=0)),
        (ShapeError, "rank 0's array has shape", lambda: ls.save([parts[0][:1], parts[1]], layout, "b.npy")),
        (DTypeError, "the dtypes", lambda: ls.save([parts[0], parts[1].astype("f4")], layout, "b.npy")),
        (ArgumentError, "not with str", lambda: ls.save(parts, rows, "b.npy")),
        (ArgumentError, "without gzip", lambda: ls.save(parts, layout, "b.npy", codecs=["gzip"])),
        (ArgumentError, "dataset: not for arrays", lambda: ls.save(parts, layout, "b.npy", dataset="u")),
        (ArgumentError, "threads is 0", lambda: ls.save(parts, layout, "b.npy", threads=0)),
        (ArgumentError, "over HTTP", lambda: ls.save(parts, layout, "http://localhost:1/b.zarr")),
        (ArgumentError, "is the text", lambda: ls.save(parts, layout, "b.npy", codecs="gzip")),
        (ArgumentError, "names", lambda: ls.save(parts, layout, "b.npy", names=5)),
        (ArgumentError, "1 names are given", lambda: ls.save(parts, layout, "b.npy", names=("t",))),
        (ArgumentError, "must be a mapping", lambda: ls.save(parts, layout, "b.npy", attributes=5)),
        (ArgumentError, "its name must be text", lambda: ls.save(parts, layout, "b.zarr/x", attributes={1: 2})),
        (ArgumentError, "the source is None; give", lambda: ls.save(None, layout, "b.npy")),
        (ArgumentError, "the source is 3; give", lambda: ls.save(3, layout, "b.npy")),
        (StoreError, "does not exist", lambda: ls.load("nothing.npy", rows)),
        (ShapeError, "has shape", lambda: ls.load("a.npy", ls.Layout(rows, (6, 5)))),
        (ArgumentError, "not int", lambda: ls.load("a.npy", 5)),
        (LayoutError, "ld=", lambda: ls.load("a.npy", ls.Layout("(BLOCK, *) on 2, ld=9", (6, 4)))),
        (MemoryLimitError, "one chunk has", lambda: ls.load("a.npy", rows, max_mem=100)),
        (
            ShapeError,
            "bounding region",
            lambda: ls.load("shards", ls.XArray(FloorPlan.even(Region.of_shape((6, 5)), 2), "f8")),
        ),
    ]:
        if "shards" in repr(work.__code__.co_consts):
            ls.save(parts, layout, "shards")
        with pytest.raises(kind, match=words):
            work()
    assert sorted(os.listdir(".")) == sorted([*before, "shards"])


@pytest.mark.parametrize(
    ("name", "words", "options"),
    [
        ("b.npy", "without chunks", {"chunks": (2, 2)}),
        ("folder", "without chunks", {"chunks": "2x2"}),
        ("b.safetensors::x", "without chunks", {"chunks": (2, 2)}),
        ("b.h5::x", "shards are for Zarr 3, and this is HDF5", {"shards": (2, 2)}),
        ("b.zarr/x", "shards are for Zarr 3, and this is Zarr 2", {"shards": (2, 2), "zarr_format": 2}),
        ("b.zarr/x", "cannot be without chunks: Zarr has chunks", {"chunks": "none"}),
        ("b.h5::x", "cannot be without chunks: codecs need", {"chunks": "none", "codecs": ["shuffle"]}),
        ("b.zarr/x", "the array has no dimension 't'; its dimensions have no names", {"chunks": {"t": 2}}),
        ("b.zarr/x", "the array has no dimension 't'; there are y, x", {"chunks": "t=2", "names": ("y", "x")}),
    ],
)
def test_chunks_that_a_format_does_not_have_are_not_left_out_in_silence(name, words, options):
    layout = ls.Layout("(BLOCK, *) on 2", (6, 4))
    with pytest.raises(ArgumentError, match=words):
        ls.save(ls.scatter(values((6, 4)), layout), layout, name, **options)
    assert os.listdir(".") == []


@pytest.mark.skipif("a.zarr" not in PLACES, reason="zarr is missing")
def test_a_broken_chunk_leaves_nothing_half_done():
    layout = ls.Layout("(BLOCK, *) on 2", (6, 4))
    ls.save(ls.scatter(values((6, 4)), layout), layout, "a.zarr", chunks=(2, 2), codecs=["zstd:1"], zarr_format=3)
    victim = os.path.join("a.zarr", "c", "1", "0")
    raw = open(victim, "rb").read()
    open(victim, "wb").write(raw[:-3])
    with pytest.raises(StoreError, match=r"chunk \[1, 0\]"):
        ls.load("a.zarr", layout)


@pytest.mark.skipif("a.zarr" not in PLACES, reason="zarr is missing")
def test_errors_name_the_destination_and_not_its_hidden_place():
    layout = ls.Layout("(BLOCK, *) on 2", (6, 4))
    parts = ls.scatter(values((6, 4)), layout)
    np.save("a.npy", values((6, 4)))
    for work in (
        lambda: ls.save(parts, layout, "b.zarr", chunks=(4, 2), shards=(5, 2), zarr_format=3),
        lambda: ls.move("a.npy", "b.zarr", chunks=(4, 2), shards=(5, 2), zarr_format=3),
    ):
        with pytest.raises(ArgumentError, match=r"[^.]b.zarr cannot be made") as caught:
            work()
        assert "partial" not in str(caught.value)
    assert os.listdir(".") == ["a.npy"]


@pytest.mark.parametrize("place", ["a.safetensors", "checkpoint.safetensors/"])
def test_the_only_tensor_needs_no_name(place):
    whole, layout = values((5, 7)), ls.Layout("(BLOCK, *) on 2", (5, 7))
    ls.save(ls.scatter(whole, layout), layout, place)
    np.testing.assert_array_equal(ls.gather(ls.load(place, layout), layout), whole)
    blocks = ls.XArray(FloorPlan([Region((0, 0), (5, 7))], [0]), "f8")
    ls.load(place, blocks)
    np.testing.assert_array_equal(blocks[0], whole)
    Path("folder").mkdir()
    Path(place).rename("folder/model.safetensors")
    np.testing.assert_array_equal(ls.gather(ls.load("folder", layout), layout), whole)


@pytest.mark.parametrize(
    "tensors, said", [((), "it has no array"), (("a", "b"), "name one of its arrays: a, b")], ids=["none", "two"]
)
def test_of_several_tensors_the_names_are_told(tensors, said):
    entries = {name: {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for name in tensors}
    header = json.dumps(entries).encode()
    Path("a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ArgumentError, match=f"a.safetensors is a group; {said}$"):
        ls.load("a.safetensors", "(BLOCK) on 2")
