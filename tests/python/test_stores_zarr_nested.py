"""An array of a Zarr store lies in a group, never in another array."""

import longshore as ls
import numpy as np
import pytest

pytest.importorskip("zarr")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_nothing_is_put_inside_an_array(tmp_path, monkeypatch, zarr_format):
    monkeypatch.chdir(tmp_path)
    whole = np.arange(12.0).reshape(3, 4)
    np.save("a.npy", whole)
    layout = ls.Layout("(BLOCK, *) on 2", whole.shape)
    ls.move("a.npy", "s.zarr/g/t", zarr_format=zarr_format)
    ls.move("a.npy", "alone.zarr", zarr_format=zarr_format)
    for inside in ("s.zarr/g/t/u", "s.zarr/g/t/u/v", "alone.zarr/u"):
        for put in (
            lambda place, how: ls.move("a.npy", place, **how),
            lambda place, how: ls.save(ls.scatter(whole, layout), layout, place, **how),
        ):
            for how in ({}, {"force": True}, {"zarr_format": zarr_format}):
                with pytest.raises(ls.errors.StoreError, match=r"lies inside the array .*(t|alone\.zarr);"):
                    put(inside, how)
    ls.move("a.npy", "s.zarr/g/u", zarr_format=zarr_format)
    for place in ("s.zarr/g/t", "s.zarr/g/u", "alone.zarr"):
        np.testing.assert_array_equal(ls.open(place)[...], whole)
