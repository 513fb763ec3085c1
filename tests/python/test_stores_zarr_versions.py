"""What becomes of Zarr stores with one zarr-python or another installed, or none."""

import importlib.metadata
import os

import longshore as ls
import numpy as np
import pytest
from longshore.errors import ArgumentError, NotInstalledError

pytest.importorskip("numcodecs")


def test_shards_with_zarr_2_are_asked_for_by_the_format(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: {"zarr": "2.18.7"}[name])
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(3, 4))
    words = {"chunks": (1, 4), "shards": (2, 4)}
    for target in ("b.zarr", "b.zarr/x"):
        with pytest.raises(ArgumentError, match=r"this is Zarr 2, as zarr 2\.18\.7 reads no other; say zarr_format 3"):
            ls.move(tmp_path / "a.npy", tmp_path / target, **words)
    ls.move(tmp_path / "a.npy", tmp_path / "b.zarr", **words, zarr_format=3)
    with ls.open(tmp_path / "b.zarr") as made:
        assert made.shards == (2, 4)


@pytest.mark.parametrize("version", ["2.18.7", "3.1.0"])
@pytest.mark.parametrize(
    ("group", "words", "made"),
    [(".zgroup", '{"zarr_format":2}', ".zarray"), ("zarr.json", '{"zarr_format":3,"node_type":"group"}', "zarr.json")],
    ids=["2", "3"],
)
def test_what_comes_into_a_store_has_the_stores_format(tmp_path, monkeypatch, version, group, words, made):
    monkeypatch.setattr("importlib.metadata.version", lambda name: {"zarr": version}[name])
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(3, 4))
    (tmp_path / "s.zarr").mkdir()
    (tmp_path / "s.zarr" / group).write_text(words)
    layout = ls.Layout("(BLOCK, *) on 2", (3, 4))
    ls.move(tmp_path / "a.npy", tmp_path / "s.zarr/x")
    ls.save(ls.scatter(np.load(tmp_path / "a.npy"), layout), layout, tmp_path / "s.zarr/y")
    assert sorted(os.listdir(tmp_path / "s.zarr")) == sorted([group, "x", "y"])
    assert all((tmp_path / "s.zarr" / name / made).exists() for name in "xy")
    ls.move(tmp_path / "a.npy", tmp_path / "s.zarr", force=True)  # another store in its place
    assert os.path.exists(tmp_path / "s.zarr" / (".zarray" if version[0] == "2" else "zarr.json"))


@pytest.mark.parametrize(
    ("version", "zarr_format", "words"),
    [
        ("2.18.7", 3, r"needs zarr 3, for Python 3\.11 and newer: pip install 'zarr>=3' \(here is 2\.18\.7\)"),
        (None, 3, r"needs zarr: pip install 'longshore\[zarr\]'"),
        (None, 2, r"needs zarr: pip install 'longshore\[zarr\]'"),
    ],
)
def test_metadata_in_one_place_that_nothing_here_brings_up_to_date(tmp_path, monkeypatch, version, zarr_format, words):
    """It is found out before anything is written."""

    def installed(name):
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr("importlib.metadata.version", installed)
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(3, 4))
    ls.move(tmp_path / "a.npy", tmp_path / "s.zarr/g/x", zarr_format=zarr_format)
    before = sorted(tmp_path.rglob("*"))
    layout = ls.Layout("(BLOCK, *) on 2", (3, 4))
    for work in (
        lambda: ls.move(tmp_path / "a.npy", tmp_path / "s.zarr/g/y"),
        lambda: ls.move(tmp_path / "a.npy", tmp_path / "s.zarr/g/x", force=True, zarr_format=zarr_format),
        lambda: ls.save(ls.scatter(np.ones((3, 4)), layout), layout, tmp_path / "s.zarr/y"),
    ):
        with pytest.raises(NotInstalledError, match=f"s.zarr has its metadata in one place.*{words}"):
            work()
    assert sorted(tmp_path.rglob("*")) == before
    ls.move(tmp_path / "a.npy", tmp_path / "s.zarr", force=True)
