"""Names of arrays, groups and attributes from a hostile hand: nothing is written outside of the destination, no
terminal gets a control character, and what cannot be is an error in words."""

import contextlib
import json
import os
import re
import struct

import longshore as ls
import numpy as np
import pytest
from longshore.cli import run
from longshore.errors import LongshoreError

h5py = pytest.importorskip("h5py")

VALUES = np.arange(6, dtype="f4").reshape(2, 3)
NAMES = [
    *("..", ".", "a/../../b", "../b", "/tmp/b", "//b", "a//b", "a/", "/", "./a", ""),
    *("\x1b[31mred", "new\nline", "cr\rx", "nul\0x", "\x07", "\x9b31m", "\u202eevil", "\x7f", "\u2028x"),
    *("\ud800", "\udc80", "x" * 300, "é" * 200, "y" * 5000),
    *(" ", "-rf", "a:b", "a::b", "0", "0.0", "zarr.json", ".zarray", "__metadata__", "layout.json", "x.safetensors"),
]
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]")
ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [2, 3],
    "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}


def make_safetensors(path, name, attribute):
    raw = json.dumps(
        {"__metadata__": {attribute: "v"}, name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
    )
    path.write_bytes(struct.pack("<Q", len(raw)) + raw.encode() + VALUES.tobytes())


def make_hdf5(path, name, attribute):
    if "\0" in name + attribute or "/" in name or name == "." or "" in (name, attribute):
        pytest.skip("no library makes such a name")
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple((2, 3))
        h5py.h5d.create(file.id, name.encode("utf-8", "surrogatepass"), h5py.h5t.IEEE_F32LE, space)
        h5py.h5a.create(
            file.id, attribute.encode("utf-8", "surrogatepass"), h5py.h5t.STD_I8LE, h5py.h5s.create_simple((1,))
        )


def make_zarr(path, name, attribute):
    path.mkdir()
    array = {**ARRAY, "attributes": {attribute: 1}}
    consolidated = {"kind": "inline", "must_understand": False, "metadata": {name: array}}
    group = {"zarr_format": 3, "node_type": "group", "consolidated_metadata": consolidated}
    (path / "zarr.json").write_text(json.dumps(group))


MAKERS = {"s.safetensors": make_safetensors, "s.h5": make_hdf5, "s.zarr": make_zarr}
TARGETS = {
    "t.zarr": [],
    "two.zarr": ["--zarr-format", "2"],
    "t.h5": [],
    "t.nc": [],
    "t.safetensors": [],
    "shards": ["--to", "(BLOCK, *) on 2"],
}


def around(folder):
    return {os.path.join(place, name) for place, folders, files in os.walk(folder) for name in folders + files}


@pytest.mark.parametrize("source", MAKERS)
@pytest.mark.parametrize("of", ["array", "attribute"])
@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[1:20])
def test_hostile_names(tmp_path, monkeypatch, capfd, source, of, name):
    folder = tmp_path / "in" / "here"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    MAKERS[source](folder / source, *((name, "ok") if of == "array" else ("ok", name)))
    for target, words in TARGETS.items():
        there = around(tmp_path)
        assert run(["move", source, target, *words, "--lossy"]) in (0, 2)
        new = around(tmp_path) - there
        assert all(f"{path}/".startswith(f"{folder / target}/") for path in new)
        if new:
            assert run(["info", target]) == 0
    assert run(["info", source]) in (0, 2)
    out, err = capfd.readouterr()
    assert not RAW.search(out) and not RAW.search(err) and "internal error" not in err
    with contextlib.suppress(LongshoreError), ls.open(source) as group:
        assert not RAW.search(repr(group)) and not RAW.search("".join(map(repr, group.values())))
        with pytest.raises(LongshoreError) as caught:
            group[name + "\x1b"]
        assert not RAW.search(str(caught.value))
    with pytest.raises(LongshoreError) as caught:
        ls.move(source, f"{name}\x1b/t.zarr".replace("\0", ""))
    assert not RAW.search(str(caught.value))


def test_an_empty_name_is_refused(tmp_path):
    make_safetensors(tmp_path / "s.safetensors", "", "ok")
    with pytest.raises(LongshoreError, match="s.safetensors has something without a name"):
        ls.move(tmp_path / "s.safetensors", tmp_path / "t.zarr")
