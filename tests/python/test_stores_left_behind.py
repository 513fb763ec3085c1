"""`--lossy`: arrays that the destination's format cannot hold are left behind and told, and the others are moved."""

from __future__ import annotations

import os
import pathlib

import longshore as ls
import numpy as np
import pytest
from longshore.errors import StoreError
from longshore.stores.array import ArrayFacts, GroupFacts
from zarr_stores import ZARR_3, write

h5py = pytest.importorskip("h5py")

FINE = np.arange(4.0)
FIELDS = np.zeros(3, [("x", "<f4", (3,))])


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def make_hdf5(name="a.h5", fine=True):
    """A file with an array that every format can hold, if `fine`, and with others beside it and below it."""
    with h5py.File(name, "w") as file:
        if fine:
            file["below/fine"] = FINE
        file["below/complex"] = np.ones(3, "c16")
        file["fields"] = FIELDS
        file["texts"] = ["a", "b"]
        with h5py.File(f"other of {name}", "w") as other:
            other["x"] = np.arange(5.0)
        layout = h5py.VirtualLayout((5,), "f8")
        layout[:] = h5py.VirtualSource(f"other of {name}", "x", (5,))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external", (4,), "f8", external=[(f"{name}.raw", 0, 32)])[...] = 7
        file["virtual"].make_scale("v")
        file["external"].dims[0].attach_scale(file["virtual"])


def names_of(path):
    """Every array of a store, with the group that it is in."""
    with ls.open(path) as opened:
        return {name for name, _ in opened._facts.arrays()}


def read(path, name="below/fine"):
    with ls.open(path) as opened:
        return opened[name].read()


EVERYTHING = {"below/fine", "below/complex", "fields", "texts", "virtual", "external"}


@pytest.mark.parametrize(
    ("destination", "words", "left"),
    [
        ("b.zarr", {"zarr_format": 2}, {"texts", "virtual", "external"}),
        ("b.zarr", {"zarr_format": 3}, {"fields", "texts", "virtual", "external"}),
        ("b.h5", {}, {"virtual", "external"}),
        ("b.nc", {}, {"below/complex", "fields", "virtual", "external"}),
        ("b.safetensors", {}, {"below/complex", "fields", "texts", "virtual", "external"}),
        ("b", {"to": "(BLOCK) on 2"}, {"texts", "virtual", "external"}),
    ],
    ids=["Zarr 2", "Zarr 3", "HDF5", "NetCDF", "safetensors", "shards"],
)
def test_arrays_that_a_format_cannot_hold_are_left_behind_and_told(destination, words, left):
    make_hdf5()
    with pytest.raises(StoreError, match="cannot hold .*--lossy"):
        ls.move("a.h5", destination, **words)
    planned = ls.move("a.h5", destination, lossy=True, dry_run=True, **words)
    told = ls.move("a.h5", destination, lossy=True, verify=True, **words)
    assert planned.lost == told.lost
    assert names_of(destination) == EVERYTHING - left
    for name in EVERYTHING:
        assert any(name in phrase for phrase in told.lost) == (name in left), name
    np.testing.assert_array_equal(read(destination), FINE)
    assert {array.name for array in told.arrays} == EVERYTHING - left - {"texts"}


def test_what_a_format_holds_is_not_told_as_lost():
    with h5py.File("a.h5", "w") as file:
        file["fields"] = FIELDS
    assert ls.move("a.h5", "b.zarr", zarr_format=2, verify=True).lost == []
    np.testing.assert_array_equal(read("b.zarr", "fields"), FIELDS)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_whose_names_cannot_be_keys_are_left_behind(zarr_format):
    with h5py.File("a.h5", "w") as file:
        for name in ("below/fine", "zarr.json", "below/.zarray/x"):
            file[name] = FINE
    told = ls.move("a.h5", "b.zarr", zarr_format=zarr_format, lossy=True, verify=True)
    assert names_of("b.zarr") == {"below/fine"} and len(told.lost) == 2
    np.testing.assert_array_equal(read("b.zarr"), FINE)


@pytest.mark.parametrize("destination", ["b.h5", "b.nc", "b.safetensors"])
def test_texts_of_zarr_are_left_behind(destination):
    tree = GroupFacts({"fine": ArrayFacts((4,), FINE.dtype), "texts": ArrayFacts((2,), np.dtype("<U3"))})
    write(pathlib.Path("a.zarr"), tree, {"fine": FINE, "texts": np.array(["a", "b"], "<U3")}, 2)
    told = ls.move("a.zarr", destination, lossy=True, verify=True)
    assert names_of(destination) == {"fine"} and [phrase for phrase in told.lost if "texts" in phrase]


@pytest.mark.skipif(not ZARR_3, reason="made as zarr 3 makes it")
def test_elements_of_variable_length_leave_no_empty_array_behind(tmp_path):
    import zarr

    group = zarr.open_group("a.zarr", mode="w", zarr_format=3)
    group.create_array("fine", data=FINE)
    group.create_array("texts", shape=(2,), dtype=str, chunks=(2,))[:] = ["a", "b"]
    told = ls.move("a.zarr", "b.zarr", lossy=True, verify=True)
    assert names_of("b.zarr") == {"fine"} and [phrase for phrase in told.lost if "texts" in phrase]


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        ("a.h5", "b.nc"),
        ("a.h5", "b.safetensors"),
        ("a.h5::/below", "b.nc"),
        ("a.h5::/below/complex", "b.nc::/x"),
        ("a.h5::/below/complex", "b.safetensors"),
        ("a.h5::/virtual", "b.h5::/x"),
        ("a.h5::/virtual", "b.zarr"),
        ("a.h5::/texts", "b.zarr/x"),
        ("a.h5::/texts", "b.npy"),
    ],
)
def test_where_nothing_would_be_left_nothing_is_made(source, destination):
    make_hdf5(fine=False)
    with h5py.File("a.h5", "r+") as file:
        del file["texts" if destination == "b.nc" else "fields"]
    before = sorted(os.listdir())
    for more in ({}, {"dry_run": True}):
        with pytest.raises(StoreError, match="no array would be left"):
            ls.move(source, destination, lossy=True, **more)
    assert sorted(os.listdir()) == before


def test_other_names_of_what_is_left_behind_are_told():
    """Each object of a file is moved under the name that is met first, and its other names lead there."""
    with h5py.File("a.h5", "w") as file:
        file["fine"] = FINE
        file["other name"] = file["fine"]
        regions = file.create_dataset("below/regions", (2,), h5py.regionref_dtype)
        regions.make_scale("r")
        file["fine"].dims[0].attach_scale(regions)
        file["above"] = file["within/below/regions"] = regions
    with pytest.raises(StoreError, match="cannot hold .*elements of above.* hard link below/regions, another name of "):
        ls.move("a.h5", "b.h5")
    told = ls.move("a.h5", "b.h5", lossy=True, verify=True).lost
    assert told == [
        "the elements of above, of type region reference",
        "the hard link below/regions, another name of above",
        "the scale above of dimension 0 of fine",
        "the hard link within/below/regions, another name of above",
    ]
    with h5py.File("b.h5") as file:
        assert sorted(file) == ["below", "fine", "other name", "within"] and file["fine"] == file["other name"]
        assert not list(file["below"]) and not list(file["within/below"])


COLOURS = h5py.enum_dtype({"RED": 0, "GREEN": 1}, "u1")
TARGETS = {
    "b.npy": {},
    "b": {"to": "(BLOCK) on 2"},
    "b.zarr": {"zarr_format": 3},
    "c.zarr/u": {"zarr_format": 2},
    "b.safetensors::u": {},
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [COLOURS, np.dtype([("x", COLOURS), ("y", "f4")])], ids=["enum", "field"])
def test_the_names_of_an_enums_values_are_told(target, dtype):
    with h5py.File("a.h5", "w") as file:
        file["u"] = np.zeros(5, dtype)
    with pytest.raises(StoreError, match=r"cannot hold (the names of the values of .* \(RED, GREEN\)|the elements)"):
        ls.move("a.h5::u", target, **TARGETS[target])
    if dtype is not COLOURS and "safetensors" in target:
        return
    told = ls.move("a.h5::u", target, lossy=True, verify=True, **TARGETS[target])
    assert len(told.lost) == 1 and told.lost[0].endswith("(RED, GREEN)")
    with ls.open(target) as moved:
        assert moved.read().tolist() == np.zeros(5, dtype).tolist()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("target", TARGETS)
def test_texts_and_times_of_h5py_are_no_loss(target):
    """Their dtypes have notes of h5py's, which NumPy warns of."""
    with h5py.File("a.h5", "w") as file:
        file.create_dataset("u", data=np.array([b"ab", b"c"], h5py.string_dtype("utf-8", 4)))
        file["t"] = np.arange(5).astype("M8[s]").astype(h5py.opaque_dtype("M8[s]"))
    if "safetensors" in target:
        return
    for name in "ut":
        assert ls.move(f"a.h5::{name}", target, verify=True, force=name == "t", **TARGETS[target]).lost == []


@pytest.mark.parametrize("target", ["b.npy", "b"])
def test_fields_that_lie_in_another_order_are_left_behind(target):
    dtype = np.dtype({"names": ["a", "b"], "formats": ["u2", "u1"], "offsets": [3, 1], "itemsize": 9})
    with h5py.File("a.h5", "w") as file:
        file["u"], file["v"] = np.zeros(3, dtype), FINE
    source = "a.h5::u" if target == "b.npy" else "a.h5"
    with pytest.raises(StoreError, match="cannot hold the elements of "):
        ls.move(source, target, **TARGETS[target])
    if target == "b":
        ls.move(source, target, lossy=True, **TARGETS[target])
        assert names_of("b") == {"v"}


def test_groups_without_arrays_are_moved_as_before():
    with h5py.File("a.h5", "w") as file:
        file.create_group("below").attrs["a"] = 1
        file["soft"] = h5py.SoftLink("/none")
    assert ls.move("a.h5", "b.zarr", lossy=True).lost == ["the soft link soft to /none"]
    with ls.open("b.zarr") as opened:
        assert dict(opened["below"].attributes) == {"a": 1}


def test_links_to_what_is_left_behind_are_told_and_left_out():
    """They would lead to nothing in the file that is made."""
    make_hdf5()
    with h5py.File("a.h5", "r+") as file:
        for name, target in {
            "direct": "/virtual",
            "below/relative": "more/deep",
            "by a link": "/direct",
            "through": "/below",
            "into": "/through/more/deep",
            "fine": "/below/fine",
            "nowhere": "/nothing",
            "a circle": "/a circle",
        }.items():
            file[name] = h5py.SoftLink(target)
        file["below"].create_group("more")["deep"] = h5py.SoftLink("/external")
        file["below/hard"] = file["external"]
    with pytest.raises(StoreError, match="the soft link direct, which leads to virtual"):
        ls.move("a.h5", "b.h5")
    lost = ls.move("a.h5", "b.h5", lossy=True).lost
    for name, end in {
        "direct": "virtual",
        "below/relative": "below/hard",  # which was met before its other name
        "by a link": "virtual",
        "into": "below/hard",
        "below/more/deep": "below/hard",
    }.items():
        assert f"the soft link {name}, which leads to {end}" in lost
    with h5py.File("b.h5") as file:
        assert {name for name in file if isinstance(file.get(name, getlink=True), h5py.SoftLink)} == {
            *("through", "fine", "nowhere", "a circle"),
        }
        assert list(file["below"]) == ["complex", "fine", "more"] and not list(file["below/more"])
        np.testing.assert_array_equal(file["fine"][...], FINE)
    assert sum("link" in phrase for phrase in lost) == 6  # one of them is hard
