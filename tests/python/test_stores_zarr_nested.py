"""Groups of Zarr: an array lies in one, never in another array, and a group has the digest of its arrays."""

import longshore as ls
import numpy as np
import pytest
from zarr_stores import needs_zarr_3


@pytest.mark.parametrize("zarr_format", [2, pytest.param(3, marks=needs_zarr_3)])
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


def test_a_group_has_one_digest_in_whatever_order_formats_have_its_arrays(tmp_path, monkeypatch):
    pytest.importorskip("safetensors")
    from safetensors.numpy import save_file

    monkeypatch.chdir(tmp_path)
    save_file({"weight": np.ones((4, 3)), "bias": np.full(3, 2.0), "step": np.array(7)}, "a.safetensors")
    there = ls.move("a.safetensors", "a.zarr")
    back = ls.move("a.zarr", "b.safetensors")
    assert there.digest == back.digest
    assert [each.name for each in there.arrays] != [each.name for each in back.arrays], "the formats' orders differ"
