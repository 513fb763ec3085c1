"""Keys of stores: files that are whole or absent, and never outside; objects below URLs, of memory and of a server."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from longshore.errors import ArgumentError, NotInstalledError, StoreError
from longshore.stores.array import ArrayFacts, GroupFacts
from longshore.stores.keys import LocalKeys, UrlKeys, open_keys
from longshore.stores.object_places import is_url
from longshore.stores.zarr_reader import ZarrReader
from longshore.stores.zarr_writer import ZarrWriter
from web_server import serving


@pytest.fixture
def keys(tmp_path):
    (tmp_path / "root").mkdir()
    opened = open_keys(str(tmp_path / "root"))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "key", ["../x", "a/../../x", "/etc/passwd", "a//b", "a/", ".", "a/.", "a\0b", "x" * 300, "\ud800"]
)
def test_keys_that_lead_out_of_the_store(keys, key):
    for use in (
        lambda: keys.get(key, 10),
        lambda: keys.get_range(key, 0, 1),
        lambda: keys.put(key, b""),
        lambda: keys.size(key),
        lambda: keys.stamp(key),
        lambda: keys.folders(key, 10),
        lambda: keys.remove(key),
    ):
        with pytest.raises(StoreError, match="plain names|cannot be a file name"):
            use()
    assert os.listdir(keys.name) == []


def test_files(keys):
    assert keys.get("a/b/c", 10) is None and keys.size("a/b/c") is None and not keys.exists("a/b/c")
    assert keys.put("a/b/c", b"hello") == 5 and keys.put("a/d", np.arange(3, dtype="<i4")) == 12
    assert keys.get("a/b/c", 5) == b"hello" and keys.get_range("a/b/c", 1, 3) == b"ell" and keys.size("a/d") == 12
    assert keys.folders("", 9) == {"a": None} and keys.folders("a", 9) == {"b": None} and keys.folders("zz", 9) == {}
    assert sorted(key for key, _ in keys.files()) == ["a/b/c", "a/d"]
    before = keys.stamp("a/d")
    keys.put("a/d", b"new")
    assert keys.get("a/d", 10) == b"new" and keys.stamp("a/d") != before
    with pytest.raises(StoreError, match="a/b/c has 5 bytes, where at most 4 can be right"):
        keys.get("a/b/c", 4)
    with pytest.raises(StoreError, match="a/b/c is truncated: it ends at byte 5, where 7 are needed"):
        keys.get_range("a/b/c", 3, 4)
    with pytest.raises(StoreError, match="a/b is not a plain file"):
        keys.get("a/b", 4)
    with pytest.raises(StoreError, match="more than 0 folders"):
        keys.folders("", 0)
    assert not [name for name in os.listdir(f"{keys.name}/a") if name.endswith(".partial")]


def test_links_are_not_followed(keys, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x").write_bytes(b"secret")
    os.symlink(tmp_path / "outside", f"{keys.name}/link")
    os.symlink(tmp_path / "outside/x", f"{keys.name}/x")
    for use in (
        lambda: keys.get("link/x", 10),
        lambda: keys.get("x", 10),
        lambda: keys.put("link/y", b""),
        lambda: keys.open_for_writing("link/y", True),
        lambda: keys.folders("link", 5),
    ):
        with pytest.raises(StoreError, match="symbolic link"):
            use()
    assert keys.folders("", 5) == {"link": str(tmp_path / "outside")}
    keys.put("x", b"mine")  # takes the link's place
    assert (tmp_path / "outside/x").read_bytes() == b"secret" and keys.get("x", 9) == b"mine"
    assert os.listdir(tmp_path / "outside") == ["x"]


def test_what_cannot_be_written_leaves_nothing(keys, monkeypatch):
    keys.put("a/x", b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreError, match="cannot write .*a/x: No space left on device") as caught:
        keys.put("a/x", b"newer")
    assert caught.value.errno == 28
    assert os.listdir(f"{keys.name}/a") == ["x"] and keys.get("a/x", 9) == b"old"


def test_roots(tmp_path):
    with pytest.raises(StoreError, match="nothing does not exist"):
        LocalKeys(tmp_path / "nothing")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="file is not a folder"):
        LocalKeys(tmp_path / "file")
    assert is_url("s3://bucket/x") and is_url("memory://x") and not is_url("a/b:c") and not is_url("/a//b")


# -- URLs -------------------------------------------------------------------------------------------------------------


def small_store(place, zarr_format=3, shards=None):
    """A group with an array, one chunk of which is missing."""
    array = np.arange(24, dtype="<i4").reshape(4, 6)
    facts = ArrayFacts((4, 6), array.dtype, chunks=(2, 2), shards=shards, fill=b"\xff" * 4, attributes={"n": 1})
    writer = ZarrWriter(place, zarr_format=zarr_format)
    writer.create(GroupFacts({"g": GroupFacts({"x": facts})}, {"title": "small"}))
    made = writer.array("g/x")
    for index in made.grid.indices():
        if index != (1, 1):
            stored = made.encode(index, np.ascontiguousarray(array[2 * index[0] :][:2, 2 * index[1] :][:, :2]))
            made.write(index, stored)
    writer.sync()
    assert made.read((1, 1)) is None and (made.read((0, 1)) == array[:2, 2:4]).all()
    writer.finish()
    array[2:, 2:4] = -1
    return array


def check_small_store(place, array, inner="g/x"):
    reader = ZarrReader(place, inner)
    found = reader.array()
    for index in found.grid.indices():
        stored = found.read(index)
        if index == (1, 1):
            assert stored is None
        else:
            assert (found.decode(index, stored) == array[2 * index[0] :][:2, 2 * index[1] :][:, :2]).all()
    assert reader.fingerprint() == ZarrReader(place, inner).fingerprint()
    reader.close()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_memory(zarr_format):
    fsspec = pytest.importorskip("fsspec")
    place = f"memory://longshore-{zarr_format}/a.zarr"
    array = small_store(place, zarr_format)
    tree = ZarrReader(place).tree
    assert tree.attributes == {"title": "small"} and tree.children["g"].children["x"].attributes == {"n": 1}
    check_small_store(place, array)
    check_small_store(place + "/g", array, "x")
    check_small_store(place + "/g/x", array, "")
    keys = UrlKeys(place)
    assert keys.get("nothing", 5) is None and keys.size("g") is None and keys.folders("", 9) == {"g": None}
    chunk = "g/x/0.0" if zarr_format == 2 else "g/x/c/0/0"
    assert keys.size(chunk) == 16 and keys.get_range(chunk, 4, 4) == (1).to_bytes(4, "little")
    with pytest.raises(StoreError, match="more than the 15 bytes"):
        keys.get(chunk, 15)
    with pytest.raises(StoreError, match="is truncated: 8 bytes from 12 on were 4"):
        keys.get_range(chunk, 12, 8)
    with pytest.raises(StoreError, match="out of the store"):
        keys.get("../x", 5)
    # Without its root's document, which is written last, there is no store.
    fsspec.filesystem("memory").rm(f"longshore-{zarr_format}/a.zarr/{'.zgroup' if zarr_format == 2 else 'zarr.json'}")
    if zarr_format == 3:
        with pytest.raises(StoreError, match="no Zarr group or array"):
            ZarrReader(place)


def test_shards_below_a_url_are_refused():
    pytest.importorskip("fsspec")
    with pytest.raises(ArgumentError, match="cannot be written in shards"):
        small_store("memory://longshore-s/a.zarr", shards=(4, 6))


@pytest.fixture
def server(tmp_path):
    with serving(tmp_path) as served:
        yield served


def needs_http():
    for library in ("aiohttp", "obstore"):
        try:
            __import__(library)
            return
        except ImportError:
            continue
    pytest.skip("neither fsspec with aiohttp nor obstore")


@pytest.mark.parametrize("shards", [None, (4, 6)])
def test_a_server(tmp_path, server, shards):
    needs_http()
    url, handler = server
    (tmp_path / "a.zarr").mkdir()
    array = small_store(str(tmp_path / "a.zarr"), shards=shards)
    check_small_store(f"{url}/a.zarr", array)
    check_small_store(f"{url}/a.zarr/g/x", array, "")
    assert dict(ZarrReader(f"{url}/a.zarr").tree.arrays())["g/x"].shards == shards
    with pytest.raises(StoreError, match="b.zarr is no Zarr group or array"):
        ZarrReader(f"{url}/b.zarr")
    document = json.loads((tmp_path / "a.zarr/zarr.json").read_bytes())
    del document["consolidated_metadata"]
    (tmp_path / "a.zarr/zarr.json").write_text(json.dumps(document))
    with pytest.raises(StoreError, match="cannot be listed over HTTP, and has no consolidated metadata"):
        ZarrReader(f"{url}/a.zarr")
    check_small_store(f"{url}/a.zarr", array)
    if shards:
        handler.ranges = False
        with pytest.raises(StoreError, match=r"g/x: chunk \[0, 0\]"):
            check_small_store(f"{url}/a.zarr", array)


def test_a_server_that_is_not_there():
    needs_http()
    with pytest.raises(StoreError, match="cannot read http://127.0.0.1:9/a.zarr/zarr.json"):
        UrlKeys("http://127.0.0.1:9/a.zarr").get("zarr.json", 5)


def test_what_is_not_installed_is_named(monkeypatch):
    import sys

    for library in ("fsspec", "obstore"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(NotInstalledError, match=r"s3://bucket/a.zarr needs .*pip install 'longshore\[cloud\]'"):
        ZarrReader("s3://bucket/a.zarr")
    monkeypatch.undo()
    with pytest.raises((StoreError, NotInstalledError), match="what://x"):
        ZarrReader("what://x")
