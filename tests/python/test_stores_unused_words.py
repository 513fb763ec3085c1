"""What is asked for and would change nothing is refused before anything is written."""

import numpy as np
import pytest
from longshore.errors import ArgumentError
from longshore.stores import move

zarr = pytest.importorskip("zarr")


@pytest.fixture
def named(tmp_path, monkeypatch):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    monkeypatch.chdir(tmp_path)
    values = {"t": (("time", "lat"), np.arange(12.0).reshape(3, 4)), "p": (("time",), np.ones(3))}
    xarray.Dataset(values).to_netcdf("model.nc")
    np.save("plain.npy", np.arange(64.0).reshape(8, 8))


@pytest.mark.parametrize(
    "source, target, options, said",
    [
        (
            "model.nc",
            "o.zarr",
            {"chunks": "tiem=2"},
            "no array of model.nc has a dimension 'tiem'; there are time",
        ),
        ("model.nc", "o.zarr", {"chunks": {"tiem": 2, "lat": 1}}, "'tiem'; there are time, lat"),
        ("model.nc", "o.zarr", {"axes": (2, 0, 1)}, "axes 2,0,1: no array of model.nc has 3 dimensions"),
        ("plain.npy", "o.zarr", {"chunks": "foo=4"}, "'foo'; its dimensions have no names"),
        ("plain.npy", "o.npy", {"chunks": "4x4"}, "o.npy: a .npy file holds elements as they are, without chunks"),
        ("plain.npy", "o", {"chunks": "4x4", "to": "(BLOCK, *) on 2"}, "o: a folder of shards holds elements"),
        ("plain.npy", "o.npy", {"shards": "4x4"}, "o.npy: shards are for Zarr 3, and this is a .npy file"),
        ("plain.npy", "o.zarr", {"shards": "4x4", "zarr_format": 2}, "shards are for Zarr 3, and this is Zarr 2"),
    ],
)
def test_words_that_nothing_takes_are_refused(named, tmp_path, source, target, options, said):
    with pytest.raises(ArgumentError, match=said):
        move(source, target, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.nc", "plain.npy"]


def test_words_that_some_array_takes_are_not(named):
    move("model.nc", "a.zarr", chunks="lat=2")
    move("model.nc", "b.zarr", axes=(1, 0))
    assert zarr.open("a.zarr", mode="r")["t"].chunks == (3, 2) and zarr.open("b.zarr", mode="r")["t"].shape == (4, 3)
    assert zarr.open("b.zarr", mode="r")["p"].shape == (3,)
