"""Moves that permute dimensions: what a format says of each dimension goes with it."""

from __future__ import annotations

import itertools

import longshore as ls
import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
ARRAY = np.arange(6 * 8 * 5.0).reshape(6, 8, 5)
TURNS = [axes for axes in itertools.permutations(range(3)) if axes != (0, 1, 2)]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("axes", TURNS, ids=str)
def test_hdf5_keeps_scales_labels_extents_and_types(axes):
    with h5py.File("a.h5", "w") as file:
        words = {"maxshape": (None, 20, 5), "chunks": (3, 4, 5), "fillvalue": 7.0, "compression": "gzip"}
        u = file.create_dataset("g/u", data=ARRAY, **words)
        for d, name in enumerate(("x", "y")):
            file[name] = np.arange(float(ARRAY.shape[d]))
            file[name].make_scale(f"scale {name}")
            u.dims[d].attach_scale(file[name])
        u.dims[1].label, u.dims[2].label = "label of y", "z"
        file["named"] = np.dtype("f8")
        file["c"] = np.ones((6, 8, 5))
        file.create_dataset("typed", data=ARRAY, dtype=file["named"])
        colours = h5py.enum_dtype({"RED": 0, "GREEN": 1})
        file["e"] = np.zeros((2, 3, 4), colours)
    assert ls.move("a.h5", "b.h5", axes=axes, verify=True).lost == []
    with h5py.File("a.h5") as file, h5py.File("b.h5") as made:
        turned = made["g/u"]
        assert turned.maxshape == tuple(words["maxshape"][a] for a in axes) and turned.fillvalue == 7
        assert turned.chunks == tuple(words["chunks"][a] for a in axes)
        for d, axis in enumerate(axes):
            assert turned.dims[d].label == ("", "label of y", "z")[axis]
            assert [scale.name for scale in turned.dims[d].values()] == [["/x"], ["/y"], []][axis]
        assert file["typed"].id.get_type().committed() and made["typed"].id.get_type().committed()
        assert made["e"].id.get_type().equal(file["e"].id.get_type())
        assert made["c"].id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_DEFAULT
        np.testing.assert_array_equal(turned[...], ARRAY.transpose(axes))
    ls.move("b.h5", "c.h5", axes=tuple(int(a) for a in np.argsort(axes)), verify=True)
    with ls.open("a.h5") as first, ls.open("c.h5") as back:
        for name, facts in first._facts.arrays():
            turned = back[name].facts
            assert (facts.shape, facts.names, facts.dtype) == (turned.shape, turned.names, turned.dtype)
            assert facts.own.keys() == turned.own.keys()
            assert all(turned.own[key] == value for key, value in facts.own.items() if key != "hdf5.type")


@pytest.mark.parametrize("axes", TURNS, ids=str)
def test_netcdf_keeps_dimensions_and_types(axes):
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset("a.nc", "w") as file:
        for name, length in (("time", None), ("x", 8), ("same", 8)):
            file.createDimension(name, length)
        colours = file.createEnumType("u1", "colours", {"red": 0, "green": 3})
        inner = file.createGroup("inner")
        inner.createDimension("x", 8)  # another one of this name and length
        for group, name in ((file, "u"), (inner, "v")):
            group.createVariable(name, "f8", ("time", "x", "same"))[:] = np.arange(6 * 64.0).reshape(6, 8, 8)
        file.createVariable("e", colours, ("time", "x", "same"))[:] = np.full((6, 8, 8), 3, "u1")
        file.createVariable("time", "f8", ("time",))[:] = np.arange(6.0)
    assert ls.move("a.nc", "b.nc", axes=axes, verify=True).lost == []
    with netcdf4.Dataset("a.nc") as file, netcdf4.Dataset("b.nc") as made:
        assert made.dimensions["time"].isunlimited() and list(made.dimensions) == list(file.dimensions)
        for name in ("u", "e", "inner/v"):
            names = tuple(file[name].dimensions[a] for a in axes)
            assert made[name].dimensions == names
            np.testing.assert_array_equal(made[name][:], file[name][:].transpose(axes))
        assert made["e"].datatype.enum_dict == {"red": 0, "green": 3}
        assert made["inner/v"].get_dims()[names.index("x")].group().name == "inner"


@pytest.mark.parametrize("order", ["C", "F", (1, 2, 0)], ids=str)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_keeps_codecs_and_keys(zarr_format, order):
    zarr = pytest.importorskip("zarr")
    if int(zarr.__version__.split(".")[0]) < 3 or (zarr_format == 2 and order == (1, 2, 0)):
        pytest.skip("made as zarr 3 makes it")
    words = {"order": order} if zarr_format == 2 else {}
    if zarr_format == 3 and order != "C":
        turn = zarr.codecs.TransposeCodec(order=(2, 1, 0) if order == "F" else order)
        words = {"filters": [turn], "chunk_key_encoding": {"name": "v2", "separator": "/"}}
    made = zarr.create_array(
        "a.zarr", shape=ARRAY.shape, dtype="f8", chunks=(3, 4, 5), zarr_format=zarr_format, fill_value=2.5, **words
    )
    made[...] = ARRAY
    for number, axes in enumerate(TURNS):
        told = ls.move("a.zarr", f"{number}.zarr", axes=axes, verify=True, zarr_format=zarr_format)
        turned = zarr.open_array(f"{number}.zarr", mode="r")
        assert told.lost == [] and turned.chunks == tuple((3, 4, 5)[a] for a in axes) and turned.fill_value == 2.5
        if zarr_format == 3:
            assert turned.metadata.chunk_key_encoding == made.metadata.chunk_key_encoding
        np.testing.assert_array_equal(turned[...], ARRAY.transpose(axes))
