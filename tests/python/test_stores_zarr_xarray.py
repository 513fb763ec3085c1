"""Datasets of xarray moved between Zarr 2, Zarr 3 and NetCDF are the same to xarray: values, missing ones, names."""

import longshore as ls
import numpy as np
import pytest

xarray = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")
pytest.importorskip("h5netcdf")
if not zarr.__version__.startswith("3"):
    pytest.skip("xarray needs zarr-python 3", allow_module_level=True)

ENDINGS = {2: "2.zarr", 3: "3.zarr", "netcdf": ".nc"}


def dataset():
    field = np.arange(60, dtype="f8").reshape(10, 6)
    field[3, 2:] = np.nan
    counts = np.arange(60, dtype="i4").reshape(10, 6)
    zeros = np.zeros((10, 6), "i2")
    return xarray.Dataset(
        {
            "field": (("t", "x"), field, {"units": "K"}),
            "packed": (("t", "x"), np.where(counts == 7, np.nan, counts * 0.5)),
            "counts": (("t", "x"), counts),
            "zeros": (("t", "x"), zeros),
        },
        {"x": np.linspace(0, 1, 6)},
        {"title": "all"},
    )


ENCODING = {
    "field": {"_FillValue": -999.0},
    "packed": {"_FillValue": -1, "dtype": "i4", "scale_factor": 0.5},
    "counts": {"_FillValue": None},
}


def save(data, path, kind):
    if kind == "netcdf":
        data.to_netcdf(path, engine="h5netcdf", encoding=ENCODING)
    else:
        data.to_zarr(path, zarr_format=kind, encoding=ENCODING, consolidated=kind == 2)


def load(path, kind):
    if kind == "netcdf":
        return xarray.load_dataset(path, engine="h5netcdf")
    return xarray.load_dataset(path, engine="zarr", consolidated=kind == 2)


@pytest.mark.parametrize("target", ENDINGS)
@pytest.mark.parametrize("source", ENDINGS)
def test_a_dataset_is_the_same_wherever_it_goes(tmp_path, source, target):
    data = dataset()
    before, after = tmp_path / f"a{ENDINGS[source]}", tmp_path / f"b{ENDINGS[target]}"
    save(data, before, source)
    words = {} if target == "netcdf" else {"zarr_format": target}
    ls.move(before, after, chunks={"t": 4, "x": 6}, **words)
    moved = load(after, target)
    xarray.testing.assert_identical(load(before, source), moved)
    xarray.testing.assert_identical(data, moved)
    for name, encoding in ENCODING.items():
        assert moved[name].encoding.get("_FillValue") == encoding["_FillValue"]


@pytest.mark.parametrize("target", ENDINGS)
def test_chunks_that_are_not_there_hold_no_missing_values(tmp_path, target):
    """A format 3 array has zeros in chunks that are not there, and another value that means missing."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    field = group.create_array("f", shape=(8, 6), chunks=(4, 3), dtype="f4", fill_value=0, dimension_names=("t", "x"))
    field[:4] = 7
    ls.move(tmp_path / "a.zarr" / "f", tmp_path / "n.zarr", zarr_format=2)
    field.attrs["_FillValue"] = "AAAAAAAAFEA="  # 5.0, of which a single holds all digits
    whole = np.where(np.arange(8)[:, None] < 4, np.float32(7), np.float32(0)) * np.ones((8, 6), "f4")
    assert (load(tmp_path / "a.zarr", 3)["f"].to_numpy() == whole).all()
    words = {} if target == "netcdf" else {"zarr_format": target}
    ls.move(tmp_path / "a.zarr", tmp_path / f"b{ENDINGS[target]}", **words)
    moved = load(tmp_path / f"b{ENDINGS[target]}", target)["f"]
    assert (moved.to_numpy() == whole).all() and moved.encoding["_FillValue"] == 5
