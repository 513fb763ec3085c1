"""`layout.json` from honest and hostile hands."""

import json
import os

import numpy as np
import pytest
from longshore import Layout
from longshore.errors import StoreError
from longshore.stores import layout_json

GOOD = {
    "format": "longshore-shards",
    "version": 1,
    "layout": "(BLOCK, *) on 2",
    "shape": [5, 3],
    "dtype": "<f8",
    "order": "C",
    "shards": ["rank-00000.npy", "rank-00001.npy"],
}


def parse(raw):
    return layout_json.parse_layout_json(raw if isinstance(raw, bytes) else raw.encode(), "x/layout.json")


def changed(**changes):
    return json.dumps({**GOOD, **changes})


def test_round_trip():
    layout = Layout("(CYCLIC(2), BLOCK) on 2x1, order=F", (5, 3))
    dtype = np.dtype([("x", ">f4"), ("grün", "<i2", (2,))])
    read = parse(layout_json.encode_layout_json(layout, (5, 3), dtype, "F", ["a.npy", "b.npy"]))
    assert read.layout == layout and read.dtype == dtype and read.shards == ("a.npy", "b.npy")


BAD = {
    "not JSON": ("{", "not JSON"),
    "empty": ("", "not JSON"),
    "not UTF-8": (b"\xff\xfe{}", "UTF-8"),
    "a list": ("[]", "JSON object"),
    "a number": ("3", "JSON object"),
    "nested": ("[" * 100000 + "]" * 100000, "nests"),
    "nested objects": ('{"a":' * 100000 + "1" + "}" * 100000, "nests"),
    "key twice": (changed()[:-1] + ', "version": 1}', "twice"),
    "key unknown": (changed(extra=1), "unknown"),
    "key missing": (json.dumps({k: v for k, v in GOOD.items() if k != "shards"}), "missing"),
    "another format": (changed(format="zarr"), "format"),
    "version 2": (changed(version=2), "version"),
    "version true": (changed(version=True), "version"),
    "a fraction": (changed(shape=[5.0, 3]), "integer"),
    "not a number": (changed(shape=[float("nan"), 3]), "integer"),
    "infinity": (changed(shape=[float("inf"), 3]), "integer"),
    "long number": (json.dumps(GOOD).replace("[5, 3]", "[" + "9" * 10000 + ", 3]"), "digits"),
    "negative": (changed(shape=[-5, 3]), "must lie in"),
    "huge": (changed(shape=[2**63, 3]), "must lie in"),
    "huge product": (changed(shape=[2**40, 2**40]), "64 bits"),
    "shape no list": (changed(shape=5), "not a list"),
    "shape of text": (changed(shape=["5", "3"]), "not an integer"),
    "shape of bool": (changed(shape=[True, 3]), "not an integer"),
    "many dimensions": (changed(shape=[1] * 100), "dimensions"),
    "objects": (changed(dtype="|O"), "Python objects"),
    "no dtype": (changed(dtype=None), "element type"),
    "layout no text": (changed(layout=["(BLOCK, *) on 2"]), "must be text"),
    "layout wrong": (changed(layout="(BLOK, *) on 2"), "layout is wrong"),
    "layout no ASCII": (changed(layout="(BLÖCK, *) on 2"), "ASCII"),
    "layout of others": (changed(layout="(BLOCK) on 2"), "layout is wrong"),
    "order": (changed(order="F"), "order"),
    "order unhashable": (changed(order=["C"]), "order"),
    "too few shards": (changed(shards=["a.npy"]), "1 shards"),
    "shards no list": (changed(shards="ab"), "list of file names"),
    "billions of ranks": (changed(layout="(BLOCK, *) on 1000000000000"), "shards"),
    "up": (changed(shards=["a.npy", "../b.npy"]), "plain file name"),
    "absolute": (changed(shards=["a.npy", "/etc/passwd"]), "plain file name"),
    "dot": (changed(shards=["a.npy", ".."]), "plain file name"),
    "no name": (changed(shards=["a.npy", ""]), "plain file name"),
    "nul": (changed(shards=["a.npy", "b\0.npy"]), "plain file name"),
    "long name": (changed(shards=["a.npy", "b" * 300]), "plain file name"),
    "surrogate": (changed(shards=["a.npy", "\ud800"]), "file name"),
    "itself": (changed(shards=["a.npy", "layout.json"]), "plain file name"),
    "number as name": (changed(shards=["a.npy", 7]), "no file name"),
    "named twice": (changed(shards=["a.npy", "a.npy"]), "twice"),
}


@pytest.mark.parametrize("case", BAD)
def test_hostile(case):
    raw, words = BAD[case]
    with pytest.raises(StoreError, match=words) as caught:
        parse(raw)
    assert caught.value.errno is None
    assert len(str(caught.value)) < 1000


def test_the_file_itself(tmp_path):
    with pytest.raises(StoreError, match="no layout.json"):
        layout_json.read_layout_json(tmp_path)
    path = tmp_path / "layout.json"
    path.write_bytes(b" " * (layout_json.MAX_BYTES + 1))
    with pytest.raises(StoreError, match="larger than"):
        layout_json.read_layout_json(tmp_path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError, match="not a plain file"):
        layout_json.read_layout_json(tmp_path)
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(StoreError, match="symbolic link"):
        layout_json.read_layout_json(tmp_path)
    path.unlink()
    path.write_text(json.dumps(GOOD))
    assert layout_json.read_layout_json(tmp_path).shards == tuple(GOOD["shards"])
