"""Zarr stores from a hostile hand: metadata that contradict themselves, damaged chunks, links and pipes. All that comes
of them is a StoreError that names what is wrong."""

from __future__ import annotations

import bz2
import contextlib
import copy
import gzip
import json
import lzma
import os
import re
import resource
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from longshore.errors import NotInstalledError, StoreError
from longshore.stores.array import ArrayFacts
from longshore.stores.zarr_codecs import pipeline_v2
from longshore.stores.zarr_compressors import _with_size
from longshore.stores.zarr_reader import ZarrReader
from zarr_stores import read, sample, whole, write

numcodecs = pytest.importorskip("numcodecs")

V3 = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [10, 7],
    "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 6]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": "NaN",
    "codecs": [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [4, 3],
                "codecs": [
                    {"name": "transpose", "configuration": {"order": [1, 0]}},
                    {"name": "bytes", "configuration": {"endian": "little"}},
                    {
                        "name": "blosc",
                        "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4},
                    },
                    {"name": "crc32c"},
                ],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                "index_location": "end",
            },
        }
    ],
    "attributes": {"units": "K", "list": [1, {"deep": None}]},
    "dimension_names": ["t", None],
    "storage_transformers": [],
}
V2 = {
    "zarr_format": 2,
    "shape": [10, 7],
    "chunks": [4, 3],
    "dtype": "<f4",
    "fill_value": "NaN",
    "order": "F",
    "filters": [{"id": "shuffle", "elementsize": 4}, {"id": "delta", "dtype": "<i4", "astype": "<i4"}],
    "compressor": {"id": "zstd", "level": 3},
    "dimension_separator": ".",
}
GONE = object()
HOSTILE_V3 = [
    (("zarr_format",), 4, '"zarr_format" is 4, not 3'),
    (("zarr_format",), True, "not 3"),
    (("node_type",), "leaf", "\"node_type\" is 'leaf'"),
    (("shape",), GONE, '"shape" is missing'),
    (("shape",), [10], "chunk shape is"),
    (("shape",), [10, -7], "extent 1 of its shape is -7"),
    (("shape",), [10, 7.0], "not an integer"),
    (("shape",), [1 << 62, 1 << 62], "more bytes than 64 bits can count"),
    (("shape",), [1] * 1000, "1000 dimensions"),
    (("shape",), "10x7", "not a list"),
    (("data_type",), 7, "names no type"),
    (("data_type",), "r7", "no whole number of bytes"),
    (("data_type",), "r9999999992", "no whole number of bytes"),
    (("data_type",), {"name": "raw_bytes", "configuration": {"length_bytes": 1 << 62}}, "no number of bytes"),
    (("data_type",), {"name": "numpy.datetime64", "configuration": {"unit": "eons"}}, "no unit of time"),
    (("data_type",), {"name": "structured", "configuration": {"fields": [["a", "int8"], ["a", "int8"]]}}, "NumPy"),
    (("chunk_grid", "name"), "rectilinear", "only regular ones"),
    (("chunk_grid", "configuration", "chunk_shape"), [8, 0], r"every extent must lie in \[1"),
    (("chunk_grid", "configuration", "chunk_shape"), [1 << 40, 1 << 40], "chunks each|no whole number|bytes; at most"),
    (("chunk_grid", "configuration", "chunk_shape"), [8, 7], "no whole number of chunks"),
    (("chunk_key_encoding", "name"), "suffix", "chunk key encoding is 'suffix'"),
    (("chunk_key_encoding", "configuration", "separator"), "/../", "neither . nor /"),
    (("fill_value",), None, "fill value is null"),
    (("fill_value",), "0x12", "is no value of the type float32"),
    (("fill_value",), [1, 2], "is no value of the type float32"),
    (("fill_value",), 10**399, "is no value of the type float32"),
    (("codecs",), [], "makes bytes"),
    (("codecs",), "bytes", "not a list"),
    (("codecs",), [{"name": "bytes", "configuration": {"endian": "middle"}}], "neither little nor big"),
    (("codecs",), [{"name": "bytes"}], "does not say the byte order"),
    (("codecs",), [{"name": "gzip", "configuration": {"level": 3}}], "comes before one that makes bytes"),
    (("codecs",), [{"name": "crc32c"}] * 100, "100 codecs"),
    (("codecs", 0, "configuration", "chunk_shape"), [3, 3], "no whole number of chunks"),
    (("codecs", 0, "configuration", "chunk_shape"), [4], "not a list of 2 extents"),
    (("codecs", 0, "configuration", "index_location"), "middle", "neither start nor end"),
    (("codecs", 0, "configuration", "index_codecs"), ["gzip"], "makes bytes"),
    (("codecs", 0, "configuration", "codecs", 0, "configuration", "order"), [0, 0], "none of 2 dimensions"),
    (("codecs", 0, "configuration", "codecs", 2, "configuration", "cname"), "lz9", "'lz9' for cname"),
    (("codecs", 0, "configuration", "codecs", 2, "configuration", "clevel"), 1e9, "for clevel"),
    (("codecs", 0, "configuration", "codecs", 2, "configuration", "secret"), 1, "unknown option 'secret'"),
    (("codecs", 0, "configuration", "codecs", 2, "name"), 5, "is no codec"),
    (("attributes",), [1], "must be an object"),
    (("dimension_names",), ["t"], "not a list of 2"),
    (("dimension_names",), ["t", 5], "each must be text, or null"),
    (("storage_transformers",), [{"name": "x"}], "storage transformers"),
    (("extra",), {"must_understand": True}, "'extra', which must be understood"),
]
HOSTILE_V2 = [
    (("chunks",), [4, -3], "every extent"),
    (("chunks",), [1 << 62, 1 << 62], "at most 1099511627776"),
    (("dtype",), "<f99", "element type"),
    (("dtype",), [["a", "<i4"]] * 5000, "fields"),
    (("dtype",), "<U0", "no bytes"),
    (("dtype",), None, "element type"),
    (("order",), "A", "neither C nor F"),
    (("filters",), {"id": "delta"}, "not a list of codecs"),
    (("filters", 0, "elementsize"), 5, "elements of 5 bytes"),
    (("filters", 0, "elementsize"), -1, "for elementsize"),
    (("filters", 1, "dtype"), "<U1000000", "for dtype"),
    (("filters", 1, "dtype"), "|O", "for dtype"),
    (("compressor",), "zstd", "is no codec"),
    (("compressor",), {"id": "lzma", "format": 3, "filters": [{"id": 33, "dict_size": 1 << 31}]}, "dict_size"),
    (("compressor",), {"id": "fixedscaleoffset", "scale": 0, "offset": 0, "dtype": "<f4"}, "for scale"),
    (("dimension_separator",), "..", "neither . nor /"),
    (("fill_value",), "AAAA", "is no value of the type"),
]


def changed(document, path, value):
    document = copy.deepcopy(document)
    node = document
    for step in path[:-1]:
        node = node[step]
    if value is GONE:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return document


def put(folder, document):
    folder.mkdir(exist_ok=True)
    raw = document if isinstance(document, (bytes, str)) else json.dumps(document)
    name = ".zarray" if isinstance(document, dict) and document.get("zarr_format") == 2 else "zarr.json"
    (folder / name).write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return folder


@pytest.mark.parametrize(("path", "value", "message"), HOSTILE_V3, ids=range(len(HOSTILE_V3)))
def test_hostile_metadata_of_format_3(tmp_path, path, value, message):
    put(tmp_path / "a", V3)
    assert ZarrReader(str(tmp_path / "a")).tree.codecs == ("blosc:lz4:5:shuffle", "crc32c")
    put(tmp_path / "a", changed(V3, path, value))
    with pytest.raises(StoreError, match=f"a cannot be used: .*({message})"):
        ZarrReader(str(tmp_path / "a"))


@pytest.mark.parametrize(("path", "value", "message"), HOSTILE_V2, ids=range(len(HOSTILE_V2)))
def test_hostile_metadata_of_format_2(tmp_path, path, value, message):
    put(tmp_path / "a", V2)
    assert ZarrReader(str(tmp_path / "a")).tree.codecs == ("shuffle", "delta", "zstd:3")
    put(tmp_path / "a", changed(V2, path, value))
    with pytest.raises(StoreError, match=f"a cannot be used: .*({message})"):
        ZarrReader(str(tmp_path / "a"))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "it is not JSON"),
        (b"\xff{}", "not UTF-8: byte 0"),
        (b"[1]", "not a JSON object"),
        (b'{"shape":[1],"shape":[2]}', "'shape' appears twice"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nests deeper"),
        (b'{"a":' * 70 + b"1" + b"}" * 70, "nests deeper than 64"),
        (b'{"shape":[' + b"9" * 5000 + b"]}", "a number of 5000 digits"),
        (b'{"a":"\\ud800"}', "UTF-8 cannot hold"),
        (b" " * (17 << 20), "17825792 bytes, where at most"),
        (b'{"zarr_format":3,"node_type":"group","consolidated_metadata":{"metadata":[]}}', "no documents by name"),
        (b'{"zarr_format":3,"node_type":"group","consolidated_metadata":{"metadata":{"../x":{}}}}', "out of the store"),
        (b'{"zarr_format":3,"node_type":"group","consolidated_metadata":{"metadata":{"a//b":{}}}}', "out of the store"),
        (
            b'{"zarr_format":3,"node_type":"group","consolidated_metadata":{"metadata":{"' + b"a/" * 99 + b'a":{}}}}',
            "deeper than 64 groups",
        ),
    ],
)
def test_hostile_json(tmp_path, raw, message):
    put(tmp_path / "a", raw)
    with pytest.raises(StoreError, match=f"a(/zarr.json)? .*{message}|{message}"):
        ZarrReader(str(tmp_path / "a"))


def test_an_array_in_an_array(tmp_path):
    group = {"zarr_format": 3, "node_type": "group"}
    entries = {"x": V3, "x/y": V3}
    put(tmp_path / "a", {**group, "consolidated_metadata": {"kind": "inline", "metadata": entries}})
    with pytest.raises(StoreError, match="a/x/y lies below 'x', an array"):
        ZarrReader(str(tmp_path / "a"))


def test_unknown_codecs_and_types_are_told_and_not_read(tmp_path):
    put(
        tmp_path / "a",
        changed(V3, ("codecs",), ["bytes", "imagecodecs.jpeg"]) | {"data_type": "uint8", "fill_value": 0},
    )
    reader = ZarrReader(str(tmp_path / "a"))
    assert reader.tree.codecs == ("imagecodecs.jpeg",)
    with pytest.raises(StoreError, match="a cannot be read: the codec 'imagecodecs.jpeg' is unknown"):
        reader.array()
    put(tmp_path / "b", changed(V2, ("filters",), [{"id": "pickle"}]))
    with pytest.raises(StoreError, match="the codec pickle is for objects"):
        ZarrReader(str(tmp_path / "b")).array()
    put(tmp_path / "c", changed(V3, ("data_type",), "quaternion128"))
    facts = ZarrReader(str(tmp_path / "c")).tree
    assert facts.dtype is None and facts.type_name == "quaternion128"


def test_links_pipes_and_folders_are_no_chunks(tmp_path):
    plain = changed(V2, ("filters",), None) | {"compressor": None, "fill_value": 0}
    folder = put(tmp_path / "a", plain)
    (tmp_path / "secret").write_bytes(b"\0" * 48)
    (folder / "0.0").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "0.1")
    (folder / "0.2").mkdir()
    array = ZarrReader(str(folder)).array()
    for index, message in (((0, 0), "symbolic link"), ((0, 1), "not a plain file"), ((0, 2), "not a plain file")):
        with pytest.raises(StoreError, match=rf"a: chunk \[{index[0]}, {index[1]}\], in 0.{index[1]}.*{message}"):
            array.read(index)
    # A folder on the way to a chunk, and a group, are not followed either.
    nested = put(tmp_path / "b", plain | {"dimension_separator": "/"})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/0").write_bytes(b"\0" * 48)
    (nested / "0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="symbolic link"):
        ZarrReader(str(nested)).array().read((0, 0))
    put(tmp_path / "g", {"zarr_format": 3, "node_type": "group"})
    (tmp_path / "g/x").symlink_to(folder)
    found = ZarrReader(str(tmp_path / "g")).tree.children["x"]
    assert (found.kind, found.target) == ("soft", str(folder))
    (tmp_path / "h").mkdir()
    (tmp_path / "h/zarr.json").symlink_to(folder / ".zarray")
    with pytest.raises(StoreError, match="symbolic link"):
        ZarrReader(str(tmp_path / "h"))
    os.unlink(tmp_path / "h/zarr.json")
    os.mkfifo(tmp_path / "h/zarr.json")
    with pytest.raises(StoreError, match="not a plain file"):
        ZarrReader(str(tmp_path / "h"))


def zstd_frame(content, blocks):
    """A frame that says it holds so many bytes: blocks of 128 KiB of zeros."""
    head = b"\x28\xb5\x2f\xfd" + (b"\xe0" + struct.pack("<Q", content) if content is not None else b"\x00\x88")
    return head + b"".join(struct.pack("<I", 131072 << 3 | 2 | (n == blocks - 1))[:3] + b"\0" for n in range(blocks))


BOMBS = {
    "zlib": (zlib.compress(bytes(64 << 20)), "more than the 48 bytes"),
    "gzip": (gzip.compress(bytes(64 << 20)), "more than the 48 bytes"),
    "bz2": (bz2.compress(bytes(64 << 20)), "more than the 48 bytes"),
    "lzma": (lzma.compress(bytes(64 << 20)), "more than the 48 bytes"),
    "zstd": (zstd_frame(512 << 17, 512), "67108864 bytes where 48 belong"),
    "zstd ": (zstd_frame(None, 512), "fails"),
    "zstd  ": (zstd_frame(48, 512), "fails"),
    "lz4": (struct.pack("<I", 0x7FFFFFFF) + b"\0" * 20, "2147483647 bytes where 48 belong"),
    "blosc": (struct.pack("<BBBBIII", 2, 1, 0x13, 4, 1 << 31, 1 << 20, 40) + b"\0" * 24, "2147483648 bytes where 48"),
    "blosc ": (
        struct.pack("<BBBBIII", 2, 1, 0x13, 4, 48, 48, 1 << 20) + b"\0" * 24,
        "promises 1048576 bytes, it has 40",
    ),
    "base64": (b"A" * 72, "72 bytes where 64 belong"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_chunks_that_decode_to_far_more(tmp_path, name):
    raw, message = BOMBS[name]
    document = changed(V2, ("filters",), None)
    folder = put(tmp_path / "a", document | {"compressor": {"id": name.strip()}})
    (folder / "0.0").write_bytes(raw)
    array = ZarrReader(str(folder)).array()
    tracemalloc.start()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with pytest.raises(StoreError, match=rf"a: chunk \[0, 0\].*{message}"):
            array.decode((0, 0), raw)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10
    finally:
        tracemalloc.stop()


def test_zstd_frames_that_do_not_say_their_size(tmp_path):
    """As TensorStore writes them, and older numcodecs do not read them."""
    stages = {"shape": [256, 128], "chunks": [256, 128], "dtype": "<f4", "filters": None}
    folder = put(tmp_path / "a", V2 | stages | {"compressor": {"id": "zstd", "level": 1}})
    array = ZarrReader(str(folder)).array()
    frame = zstd_frame(None, 1)
    for raw in (frame, zstd_frame(131072, 1)):
        decoded = array.decode((0, 0), raw)
        assert decoded.shape == (256, 128) and not decoded.any()
    told = _with_size(np.frombuffer(frame, "u1"), 131072)
    assert len(numcodecs.Zstd().decode(told)) == 131072
    for raw in (zstd_frame(None, 2), frame[:-1], b"\x28\xb5\x2f\xfd\x03\x88"):
        with pytest.raises(StoreError, match=r"a: chunk \[0, 0\].*(fails|it has 0 bytes)"):
            array.decode((0, 0), raw)


def test_a_chunk_file_that_is_far_too_large(tmp_path):
    folder = put(tmp_path / "a", V2)
    with open(folder / "0.0", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StoreError, match=r"chunk \[0, 0\].*1099511627776 bytes, where at most"):
        ZarrReader(str(folder)).array().read((0, 0))


def sharded(tmp_path, **more):
    """A store of one shard and what is in it."""
    array = sample("<i4", (6, 6))
    facts = ArrayFacts((6, 6), array.dtype, chunks=(3, 3), shards=(6, 6), codecs=("crc32c",), own=more)
    write(tmp_path / "a", facts, {"": array})
    return tmp_path / "a", array


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ((1 << 40, 40), "40 bytes from byte 1099511627776 on; the shard has"),
        ((2**64 - 1, 40), "the shard has"),
        ((40, 2**64 - 1), "the shard has"),
        ((0, 4 * 40 + 68), "228 bytes; at most 40 can be right"),
        ((0, 7), "has 7 bytes where 40 belong"),
        ((0, 40), "its crc32c is"),
    ],
)
def test_a_shard_index_that_lies(tmp_path, entry, message):
    import google_crc32c

    path, _ = sharded(tmp_path)
    raw = bytearray((path / "c/0/0").read_bytes())
    index = raw[-68:]
    index[16:32] = struct.pack("<QQ", *entry)
    if message.startswith("its crc32c"):
        raw[3] ^= 1
    index[64:] = struct.pack("<I", google_crc32c.value(bytes(index[:64])))
    (path / "c/0/0").write_bytes(bytes(raw[:-68] + index))
    array = ZarrReader(str(path)).array()
    with pytest.raises(StoreError, match=rf"a: chunk \[0, 1\], in c/0/0,.*{re.escape(message)}"):
        array.decode((0, 1), array.read((0, 1)))
    assert array.decode((1, 1), array.read((1, 1))).shape == (3, 3)


def test_a_shard_that_ends_too_early(tmp_path):
    path, _ = sharded(tmp_path)
    for size in (0, 10, 67, 100):
        os.truncate(path / "c/0/0", size)
        with pytest.raises(StoreError, match=r"chunk \[1, 0\], in c/0/0, cannot be read: .*(index|truncated)"):
            ZarrReader(str(path)).array().read((1, 0))


@pytest.mark.parametrize("location", ["start", "end"])
def test_flipped_bits_in_shards_are_found(tmp_path, location):
    path, array = sharded(tmp_path, **{"zarr.index_location": location})
    assert (read(path)[1] == array).all()
    raw = (path / "c/0/0").read_bytes()
    for bit in np.random.default_rng(0).permutation(8 * len(raw))[:300]:
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        (path / "c/0/0").write_bytes(damaged)
        with pytest.raises(StoreError, match=r"a: chunk \[\d, \d\], in c/0/0, cannot be (read|decoded)"):
            read(path)


@pytest.mark.parametrize("words", [("crc32c",), ("zstd:3:checksum",), ("shuffle", "zstd:1", "crc32c"), ("zlib:4",)])
def test_flipped_bits_in_chunks_are_found(tmp_path, words):
    array = np.cumsum(sample("<i4", (40, 40)), axis=0).astype("<i4")
    write(tmp_path / "a", ArrayFacts(array.shape, array.dtype, chunks=(20, 40), codecs=words), {"": array})
    raw = (tmp_path / "a/c/1/0").read_bytes()
    reader = ZarrReader(str(tmp_path / "a")).array()
    wrong = 0
    for bit in np.random.default_rng(0).permutation(8 * len(raw))[:300]:
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            chunk = reader.decode((1, 0), bytes(damaged))
        except StoreError as error:
            assert f"{tmp_path / 'a'}: chunk [1, 0], in c/1/0, cannot be decoded" in str(error)
        else:
            wrong += not (chunk == array[20:]).all()
    assert wrong == 0


# -- fuzz -------------------------------------------------------------------------------------------------------------

WEIRD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30]),
    st.floats(allow_nan=True),
    st.sampled_from(
        ["", "NaN", "little", "C", "float64", "zstd", "gzip", "bytes", "..", "\0", "complex64", "r16", "|O"]
    ),
    st.sampled_from([[], {}, [1], [[1]], {"name": "bytes"}, {"id": "zlib"}, [3, 2], [1, 0], ["a", "b"], [None, None]]),
    st.text(max_size=5),
)


@st.composite
def mutated(draw, document):
    """A document with some of its values replaced, removed or put elsewhere."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 4))):
        places = []
        waiting = [document]
        while waiting:
            node = waiting.pop()
            for key in list(node) if isinstance(node, dict) else range(len(node)):
                places.append((node, key))
                if isinstance(node[key], (dict, list)):
                    waiting.append(node[key])
        if not places:
            break
        node, key = draw(st.sampled_from(places))
        action = draw(st.integers(0, 3))
        if action == 0:
            del node[key]
        elif action == 1:
            node[key] = copy.deepcopy(draw(st.sampled_from(places))[0])
        else:
            node[key] = copy.deepcopy(draw(WEIRD))
    return document


def use(folder):
    """Opens a store and reads some of its chunks: a StoreError, or nothing to complain of."""
    try:
        reader = ZarrReader(str(folder))
        reader.fingerprint()
        for path, facts in list(reader.tree.arrays()) if hasattr(reader.tree, "arrays") else [("", reader.tree)]:
            array = reader.array(path)
            assert facts.dtype is None or facts.fill is None or len(facts.fill) == facts.dtype.itemsize
            for _, index in zip(range(4), array.grid.indices()):
                stored = array.read(index)
                if stored is not None:
                    chunk = array.decode(index, stored)
                    assert chunk.dtype == facts.dtype and chunk.shape == array.grid.extents(index)
        reader.close()
    except (StoreError, NotInstalledError) as error:
        assert str(error)


FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.parametrize("document", [V2, V3], ids=["2", "3"])
def test_mutated_metadata(tmp_path, document):
    folder = put(tmp_path / "a", document)
    for key in ("0.0", "0.1", "c/0/0", "c/0/1", "0/0"):
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        if not (folder / key).exists():
            (folder / key).write_bytes(np.random.default_rng(1).bytes(300))

    @FUZZ
    @given(mutated(document))
    def check(values):
        name = ".zarray" if document is V2 else "zarr.json"
        (folder / name).write_text(json.dumps(values))
        use(folder)

    check()


def test_mutated_consolidated_metadata(tmp_path):
    small = changed(V3, ("codecs",), [{"name": "bytes", "configuration": {"endian": "big"}}])
    group = {"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}}
    metadata = {"g": group, "g/x": small, "y": V3}
    document = {**group, "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": metadata}}
    folder = put(tmp_path / "a", document)

    @FUZZ
    @given(mutated(document))
    def check(values):
        (folder / "zarr.json").write_text(json.dumps(values))
        use(folder)

    check()


@pytest.mark.parametrize("document", [V2, V3], ids=["2", "3"])
def test_mutated_bytes_of_metadata(tmp_path, document):
    folder = put(tmp_path / "a", document)
    raw = json.dumps(document).encode()

    @FUZZ
    @given(st.integers(0, len(raw) - 1), st.binary(max_size=4), st.integers(0, 4))
    def check(place, new, gone):
        name = ".zarray" if document is V2 else "zarr.json"
        (folder / name).write_bytes(raw[:place] + new + raw[place + gone :])
        use(folder)

    check()


CODECS = [
    *(
        {"id": "blosc", "cname": name, "shuffle": shuffle}
        for name in ("lz4", "zstd", "blosclz")
        for shuffle in (0, 1, 2)
    ),
    *({"id": name} for name in ("lz4", "zstd", "gzip", "zlib", "bz2", "lzma", "fletcher32", "base64")),
]


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: "-".join(map(str, codec.values())))
def test_mutated_chunks(tmp_path, codec):
    array = np.cumsum(sample("<i4", (40, 12)), axis=0).astype("<i4")
    pipeline = pipeline_v2(array.dtype, array.shape, "C", [codec], None)
    raw = bytes(pipeline.encode(array))
    random = np.random.default_rng(3)
    for turn in range(150):
        damaged = bytearray(raw)
        for _ in range(random.integers(1, 9)):
            damaged[random.integers(min(len(damaged), (40, len(damaged))[turn % 2]))] = random.integers(256)
        if turn % 3 == 0:
            damaged = damaged[: random.integers(len(damaged))]
        with contextlib.suppress(StoreError):
            assert pipeline.decode(bytes(damaged)).shape == array.shape
    assert (pipeline.decode(raw) == array).all()


def test_the_reader_is_whole_again(tmp_path):
    """What the mutations start from can be read."""
    put(tmp_path / "a", V3)
    assert np.isnan(whole(ZarrReader(str(tmp_path / "a")))).all()
