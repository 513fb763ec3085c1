"""Stores at gs:// URLs, on a server of this machine."""

import longshore as ls
import numpy as np
import pytest
from gcs_server import empty_bucket
from longshore.errors import StoreError

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("zarr")
pytest.importorskip("h5py")

ARRAY = np.random.default_rng(3).integers(0, 50, (300, 200)).astype("f8")


@pytest.fixture(scope="module")
def bucket():
    with empty_bucket("longshore-tests") as url:
        yield url


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "a.npy"
    np.save(path, ARRAY)
    return path


@pytest.mark.parametrize(
    "name, how",
    [
        ("a.zarr", {"chunks": (130, 110), "codecs": ["zstd:3"]}),
        ("b.npy", {}),
        ("c.h5::/u", {"chunks": (40, 30), "codecs": ["gzip:1"]}),
        ("shards/", {"to": "(BLOCK, CYCLIC) on 2x2"}),
        ("d.safetensors::w", {}),
    ],
)
def test_every_format_is_written_and_read(bucket, source, name, how, tmp_path):
    place = f"{bucket}/d/{name}"
    for force in [False] if "::/" in name else [False, True]:  # a file of several arrays is not replaced for one
        assert ls.move(source, place, force=force, verify=True, **how).verified
    with ls.open(place) as opened:
        np.testing.assert_array_equal(opened[7:290:9, 3:150], ARRAY[7:290:9, 3:150])
    assert ls.move(place, tmp_path / "back.npy", verify=True).verified
    np.testing.assert_array_equal(np.load(tmp_path / "back.npy"), ARRAY)
    with pytest.raises(StoreError, match="exists already"):
        ls.move(source, place, **how)


def test_what_is_not_there_is_told(bucket, source):
    with pytest.raises(StoreError, match="longshore-tests/none.npy does not exist"):
        ls.open(f"{bucket}/none.npy")
    with pytest.raises(StoreError, match="cannot write gs://nonesuch-bucket/a.npy"):
        ls.move(source, "gs://nonesuch-bucket/a.npy")
