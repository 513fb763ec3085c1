"""safetensors files and checkpoints: read as the `safetensors` package writes them, and the other way round; hostile
headers and indices."""

import itertools
import json
import os
import shutil
import struct
import tempfile
import tracemalloc

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore.errors import ArgumentError, StoreError
from longshore.stores import dense, safetensors_header
from longshore.stores.array import ArrayFacts, GroupFacts, LinkFacts
from longshore.stores.safetensors import SafetensorsFileWriter, SafetensorsFolderWriter, SafetensorsReader
from strategies import distinct, same

official = pytest.importorskip("safetensors")
official_numpy = pytest.importorskip("safetensors.numpy")

TYPES = ["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "c8"]
SHAPES = st.lists(st.sampled_from([0, 1, 2, 5, 9]), max_size=4).map(tuple)
NAMES = st.sampled_from(["a", "a.weight", "layer.0/weight", "/x", "grün", "日本", "a b", "\n", '"', "dtype", "shape"])
TENSORS = st.dictionaries(NAMES, st.tuples(SHAPES, st.sampled_from(TYPES)), max_size=6)
TEXTS = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), st.text(st.characters(codec="utf-8")))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(dense, "CHUNK_BYTES", 200)


def read_all(array):
    out = np.empty(array.facts.shape, array.facts.dtype)
    for index in array.grid.indices():
        start, extents = array.grid.start(index), array.grid.extents(index)
        out[tuple(slice(a, a + n) for a, n in zip(start, extents))] = array.decode(index, array.read(index))
    return out


def write_all(array, full):
    written = 0
    for index in array.grid.indices():
        chunk = np.zeros(array.grid.chunks, full.dtype)
        box = [slice(a, a + n) for a, n in zip(array.grid.start(index), array.grid.extents(index))]
        chunk[tuple(slice(b.stop - b.start) for b in box)] = full[tuple(box)]
        written += array.write(index, array.encode(index, chunk))
        assert same(array.read(index), full[(..., *box)])
    return written


@settings(max_examples=60, deadline=None)
@given(TENSORS, TEXTS)
def test_what_the_package_writes_is_read(tensors, metadata):
    arrays = {name: distinct(shape, code) for name, (shape, code) in tensors.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.safetensors")
        official_numpy.save_file(arrays, path, metadata=metadata or None)
        reader = SafetensorsReader(path)
        assert dict(reader.tree.attributes) == metadata
        assert set(reader.tree.children) == set(arrays)
        for name, array in arrays.items():
            facts = reader.tree.children[name]
            assert facts.shape == array.shape and facts.dtype == array.dtype and facts.type_name == ""
            assert facts.stored_bytes == array.nbytes
            assert same(read_all(reader.array(name)), array)
            if array.size:
                lo, extents = [n // 3 for n in array.shape], [n - n // 3 for n in array.shape]
                wanted = array[(..., *[slice(n // 3, None) for n in array.shape])]
                assert same(reader.array(name).read_box(lo, extents), wanted)
            one = SafetensorsReader(path, name)
            assert one.tree == facts and same(read_all(one.array()), array)
        reader.close()


@settings(max_examples=60, deadline=None)
@given(TENSORS, TEXTS, st.booleans(), st.integers(1, 3000))
def test_what_is_written_the_package_reads(tensors, metadata, swapped, file_bytes):
    arrays = {
        name: distinct(shape, np.dtype(code).newbyteorder(">" if swapped else "<"))
        for name, (shape, code) in tensors.items()
    }
    tree = GroupFacts({name: ArrayFacts(a.shape, a.dtype) for name, a in arrays.items()}, metadata)
    assert SafetensorsFileWriter.losses(tree) == SafetensorsFolderWriter.losses(tree) == []
    with tempfile.TemporaryDirectory() as folder:
        single, several = os.path.join(folder, "x.safetensors"), os.path.join(folder, "several")
        open(single, "xb").close()
        os.mkdir(several)
        for writer in (SafetensorsFileWriter(single), SafetensorsFolderWriter(several, file_bytes=file_bytes)):
            writer.create(tree)
            for name, array in arrays.items():
                assert write_all(writer.array(name), array) == array.nbytes
            writer.finish()
        with official.safe_open(single, "numpy") as file:
            assert (file.metadata() or {}) == metadata
            assert set(file.keys()) == set(arrays)
            for name, array in arrays.items():
                assert same(file.get_tensor(name), array.astype(array.dtype.newbyteorder("=")))
        index = json.loads(open(os.path.join(several, "model.safetensors.index.json")).read())
        texts = {} if arrays else metadata  # which are in the files, where there are any
        assert index["metadata"] == {"total_size": sum(a.nbytes for a in arrays.values()), **texts}
        assert set(index["weight_map"]) == set(arrays)
        files = sorted(name for name in os.listdir(several) if name.endswith(".safetensors"))
        assert files == [f"model-{k + 1:05d}-of-{len(files):05d}.safetensors" for k in range(len(files))]
        found = {}
        for file in files:
            held = official_numpy.load_file(os.path.join(several, file))
            assert sum(a.nbytes for a in held.values()) <= file_bytes or sum(a.nbytes > 0 for a in held.values()) == 1
            assert {index["weight_map"][name] for name in held} <= {file}
            found |= held
        assert all(same(found[name], a.astype(a.dtype.newbyteorder("="))) for name, a in arrays.items())
        for path in (several, os.path.join(several, "model.safetensors.index.json")):
            reader = SafetensorsReader(path)
            assert dict(reader.tree.attributes) == metadata
            for name, array in arrays.items():
                assert same(read_all(reader.array(name)), array.astype(array.dtype.newbyteorder("<")))
            reader.close()


def make(path, header, data=b"", length=None):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw) if length is None else length) + raw + data)
    return str(path)


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_types_that_numpy_lacks_are_bytes(tmp_path):
    """bfloat16 and floats of eight bits move as they are, by name."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = [1.5, -2, 0.25, 3]
    kinds = {
        "BF16": ml_dtypes.bfloat16,
        "F8_E4M3": ml_dtypes.float8_e4m3fn,
        "F8_E5M2": ml_dtypes.float8_e5m2,
        "F8_E8M0": ml_dtypes.float8_e8m0fnu,
    }
    header, data = {}, b""
    for name, kind in kinds.items():
        raw = np.abs(np.array(values)).astype(kind).tobytes()
        header[name] = entry(name, (2, 2), (len(data), len(data) + len(raw)))
        data += raw
    source = SafetensorsReader(make(tmp_path / "a.safetensors", header, data))
    target = SafetensorsFileWriter(str(tmp_path / "b.safetensors"))
    assert target.losses(source.tree) == []
    target.create(source.tree)
    for name, kind in kinds.items():
        facts = source.tree.children[name]
        assert facts.type_name == name and facts.dtype == np.dtype((np.void, np.dtype(kind).itemsize))
        elements = read_all(source.array(name))
        assert np.array_equal(elements.view(kind).astype("f8").ravel(), np.abs(values).astype(kind).astype("f8"))
        write_all(target.array(name), elements)
    target.finish()
    with official.safe_open(tmp_path / "b.safetensors", "numpy") as file:
        told = {name: file.get_slice(name) for name in kinds}
        assert {name: (each.get_dtype(), each.get_shape()) for name, each in told.items()} == {
            name: (name, [2, 2]) for name in kinds
        }
    again = SafetensorsReader(str(tmp_path / "b.safetensors"))
    assert all(same(read_all(again.array(n)), read_all(source.array(n))) for n in kinds)
    # What other formats call them, and what ml_dtypes does.
    for facts in (
        ArrayFacts((2,), np.dtype("V2"), type_name="bfloat16"),
        ArrayFacts((2,), np.dtype(ml_dtypes.bfloat16)),
    ):
        one = SafetensorsFileWriter(str(tmp_path / "c.safetensors"), "w")
        one.create(facts)
        assert one.losses(facts) == []
        assert SafetensorsReader(str(tmp_path / "c.safetensors")).tree.children["w"].type_name == "BF16"


def test_types_whose_elements_share_bytes_are_told(tmp_path):
    reader = SafetensorsReader(make(tmp_path / "a.safetensors", {"x": entry("F4", (3, 4), (0, 6))}, bytes(6)))
    facts = reader.tree.children["x"]
    assert facts.dtype is None and facts.type_name == "F4" and facts.shape == (3, 4)
    assert any("F4" in loss for loss in SafetensorsFileWriter.losses(reader.tree))
    with pytest.raises(StoreError, match="F4"):
        reader.array("x")


HOSTILE = {
    "empty": (b"", None, b"", "too short|does not begin"),
    "a list": (b"[]", None, b"", "brace"),
    "not JSON": (b"{,}", None, b"", "not JSON"),
    "not UTF-8": (b'{"\xff": 1}', None, b"", "not UTF-8"),
    "a space first": (b" {}", None, b"", "brace"),
    "nested": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", None, b"", "nests"),
    "nested objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, None, b"", "nests|many objects"),
    "many objects": (b"{" + b",".join(b'"%d":{}' % k for k in range(99)) + b"}", None, b"", "many objects"),
    "header too long": (b"{}", 100_000_001, b"", "at most 100000000"),
    "length of 2^64-1": (b"{}", 2**64 - 1, b"", "at most"),
    "truncated header": (b"{}", 3, b"", "truncated"),
    "name twice": (b'{"a":%(e)s,"a":%(e)s}' % {b"e": json.dumps(entry()).encode()}, None, bytes(8), "twice"),
    "metadata of numbers": ({"__metadata__": {"a": 1}}, None, b"", "texts"),
    "metadata nested": ({"__metadata__": {"a": {}}}, None, b"", "texts"),
    "metadata a list": ({"__metadata__": []}, None, b"", "texts"),
    "surrogate name": (b'{"\\ud800":' + json.dumps(entry()).encode() + b"}", None, bytes(8), "Unicode"),
    "surrogate metadata": (b'{"__metadata__":{"a":"\\udfff"}}', None, b"", "Unicode"),
    "entry a number": ({"a": 1}, None, b"", "not an object"),
    "entry lacks": ({"a": {"dtype": "F32", "shape": [2]}}, None, bytes(8), "not an object"),
    "unknown type": ({"a": entry("F80")}, None, bytes(8), "F80"),
    "type a list": ({"a": entry(["F32"])}, None, bytes(8), "F32"),
    "negative extent": ({"a": entry(shape=[-2])}, None, bytes(8), "must lie in"),
    "negative extents": ({"a": entry(shape=[-1, -2])}, None, bytes(8), "must lie in"),
    "huge extent": ({"a": entry(shape=[2**63])}, None, bytes(8), "must lie in"),
    "overflow": ({"a": entry("U8", shape=[2**32, 2**32, 8], offsets=[0, 0])}, None, b"", "64 bits"),
    "shape a text": ({"a": {**entry(), "shape": "2"}}, None, bytes(8), "list"),
    "shape of booleans": ({"a": entry(shape=[True])}, None, bytes(8), "integer"),
    "shape of fractions": ({"a": entry(shape=[2.0])}, None, bytes(8), "integer"),
    "many dimensions": ({"a": entry(shape=[1] * 99)}, None, bytes(8), "dimensions"),
    "infinite extent": (b'{"a":{"dtype":"F32","shape":[Infinity],"data_offsets":[0,8]}}', None, bytes(8), "integer"),
    "long number": (b'{"a":{"dtype":"F32","shape":[' + b"9" * 9999 + b'],"data_offsets":[0,8]}}', None, b"", "digits"),
    "three offsets": ({"a": entry(offsets=[0, 8, 8])}, None, bytes(8), "two integers"),
    "offsets of texts": ({"a": entry(offsets=["0", "8"])}, None, bytes(8), "two integers"),
    "negative offset": ({"a": entry(offsets=[-8, 0])}, None, bytes(8), "no range"),
    "offsets backwards": ({"a": entry(offsets=[8, 0])}, None, bytes(8), "no range"),
    "offset of 2^64": ({"a": entry(offsets=[2**64, 2**64 + 8])}, None, bytes(8), "no range"),
    "wrong size": ({"a": entry(shape=[3])}, None, bytes(8), "takes 12"),
    "half a byte": ({"a": entry("F4", [3], [0, 2])}, None, bytes(2), "takes 1.5"),
    "overlap": ({"a": entry(), "b": entry(offsets=[4, 12])}, None, bytes(12), "overlaps"),
    "the same bytes": ({"a": entry(), "b": entry()}, None, bytes(8), "overlaps"),
    "a hole": ({"a": entry(), "b": entry(offsets=[12, 20])}, None, bytes(20), "leaves 4 bytes"),
    "a hole at the start": ({"a": entry(offsets=[4, 12])}, None, bytes(12), "leaves 4 bytes"),
    "truncated data": ({"a": entry()}, None, bytes(7), "truncated"),
    "bytes behind": ({"a": entry()}, None, bytes(9), "bytes follow"),
    "only bytes": ({}, None, bytes(9), "bytes follow"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_headers_are_refused(tmp_path, case):
    header, length, data, words = HOSTILE[case]
    path = make(tmp_path / "x.safetensors", header, data, length)
    with pytest.raises(StoreError, match=words) as caught:
        SafetensorsReader(path)
    assert "x.safetensors" in str(caught.value) and len(str(caught.value)) < 600


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_changed_bytes_are_read_as_something_valid_or_refused(data):
    tensors = {"a": distinct((3, 4), "f4"), "b.c": distinct((5,), "i2")}
    raw = bytearray(official_numpy.save(tensors, {"k": "v"}))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.one_of(st.just(len(raw)), st.integers(0, len(raw))))]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.safetensors")
        with open(path, "wb") as file:
            file.write(raw)
        try:
            reader = SafetensorsReader(path)
        except StoreError:
            return
        for name, facts in reader.tree.arrays():
            if facts.dtype is not None:
                assert read_all(reader.array(name)).nbytes == facts.nbytes <= len(raw)
        reader.close()


def test_a_header_that_says_too_much_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(safetensors_header, "MAX_TENSORS", 1000)
    cases = [
        b'{"a":[' + b"[]," * 500_000 + b"0]}",
        b'{"__metadata__":{' + b",".join(b'"%d":""' % k for k in range(200_000)) + b"}}",
        b"{" + b",".join(b'"%d":{}' % k for k in range(200_000)) + b"}",
    ]
    for raw in cases:
        path = make(tmp_path / "x.safetensors", raw)
        tracemalloc.start()
        with pytest.raises(StoreError, match="1000 tensors"):
            SafetensorsReader(path)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(raw) + (1 << 20)
        tracemalloc.stop()


def checkpoint(folder, index=None, **files):
    folder.mkdir(exist_ok=True)
    for name, tensors in files.items():
        official_numpy.save_file(tensors, folder / f"{name}.safetensors")
    weight_map = {tensor: f"{name}.safetensors" for name, tensors in files.items() for tensor in tensors}
    told = {"metadata": {"total_size": 1}, "weight_map": weight_map} if index is None else index
    (folder / "model.safetensors.index.json").write_text(told if isinstance(told, str) else json.dumps(told))
    return str(folder)


X, Y = distinct((3,), "f4"), distinct((4,), "i8")

HOSTILE_INDICES = {
    "no JSON": ("{", "not JSON"),
    "a list": ([], "weight_map"),
    "no map": ({"metadata": {}}, "weight_map"),
    "a map of lists": ({"weight_map": {"x": ["a.safetensors"]}}, "file of 'x'"),
    "metadata a list": ({"metadata": [], "weight_map": {}}, "metadata"),
    "up": ({"weight_map": {"x": "../a.safetensors"}}, "plain file name"),
    "absolute": ({"weight_map": {"x": "/etc/passwd"}}, "plain file name"),
    "dots": ({"weight_map": {"x": ".."}}, "plain file name"),
    "nul": ({"weight_map": {"x": "a\0"}}, "plain file name"),
    "missing file": ({"weight_map": {"x": "c.safetensors"}}, "c.safetensors is missing"),
    "missing tensor": ({"weight_map": {"x": "a.safetensors", "z": "a.safetensors"}}, "does not hold the tensor 'z'"),
    "tensor of another file": ({"weight_map": {"x": "b.safetensors", "y": "b.safetensors"}}, "not hold the tensor 'x'"),
    "a tensor more": ({"weight_map": {"y": "a.safetensors"}}, "not hold|holds"),
    "name twice": ('{"weight_map": {"x": "a.safetensors", "x": "a.safetensors"}}', "twice"),
    "surrogate": ('{"weight_map": {"\\ud800": "a.safetensors"}}', "Unicode"),
    "nested": ('{"metadata":' + "[" * 100_000, "nests"),
    "not a number": ('{"metadata": {"a": NaN}, "weight_map": {}}', "NaN"),
}


@pytest.mark.parametrize("case", HOSTILE_INDICES)
def test_hostile_indices_are_refused(tmp_path, case):
    index, words = HOSTILE_INDICES[case]
    folder = checkpoint(tmp_path / "c", index, a={"x": X}, b={"y": Y})
    with pytest.raises(StoreError, match=words):
        SafetensorsReader(folder)


def test_a_checkpoint(tmp_path):
    index = {
        "metadata": {"total_size": 44.0, "total_parameters": 7, "nested": {"a": [1.5]}},
        "weight_map": {"x": "a.safetensors", "y": "b.safetensors"},
    }
    folder = checkpoint(tmp_path / "c", index, a={"x": X}, b={"y": Y})
    reader = SafetensorsReader(folder)
    assert same(read_all(reader.array("x")), X) and same(read_all(reader.array("y")), Y)
    assert dict(reader.tree.attributes) == {"total_parameters": 7, "nested": {"a": [1.5]}}
    # What an index can say beyond texts is carried over to another index, and told where there is none.
    assert SafetensorsFolderWriter.losses(reader.tree) == []
    assert len(SafetensorsFileWriter.losses(reader.tree)) == 2
    (tmp_path / "d").mkdir()
    writer = SafetensorsFolderWriter(str(tmp_path / "d"))
    writer.create(reader.tree)
    writer.finish()
    again = SafetensorsReader(str(tmp_path / "d"))
    assert again.tree == reader.tree
    before = reader.fingerprint()
    os.utime(tmp_path / "c" / "b.safetensors", ns=(1, 1))
    assert reader.fingerprint() != before
    with pytest.raises(ArgumentError, match=r"'xx'.*is it 'x'"):
        reader.array("xx")
    with pytest.raises(ArgumentError, match="no tensor"):
        SafetensorsReader(folder, "nothing like it")


def test_files_that_differ_in_what_they_say(tmp_path):
    folder = checkpoint(tmp_path / "c", a={"x": X}, b={"y": Y})
    official_numpy.save_file({"x": X}, tmp_path / "c" / "a.safetensors", {"format": "pt", "part": "1"})
    official_numpy.save_file({"y": Y}, tmp_path / "c" / "b.safetensors", {"format": "pt", "part": "2"})
    told = SafetensorsReader(folder).tree.attributes
    assert told == {"format": "pt", "part": {"a.safetensors": "1", "b.safetensors": "2"}}


def test_folders_without_an_index(tmp_path):
    with pytest.raises(StoreError, match="no safetensors file"):
        SafetensorsReader(str(tmp_path))
    official_numpy.save_file({"x": X}, tmp_path / "one.safetensors")
    assert list(SafetensorsReader(str(tmp_path)).tree.children) == ["x"]
    official_numpy.save_file({"x": X}, tmp_path / "two.safetensors")
    with pytest.raises(StoreError, match="several safetensors files and no index"):
        SafetensorsReader(str(tmp_path))
    for name in ("a", "b"):
        (tmp_path / f"{name}.safetensors.index.json").write_text('{"weight_map": {}}')
    with pytest.raises(StoreError, match="several indices"):
        SafetensorsReader(str(tmp_path))
    assert SafetensorsReader(str(tmp_path / "a.safetensors.index.json")).tree == GroupFacts()
    with pytest.raises(StoreError, match="missing"):
        SafetensorsReader(str(tmp_path / "nothing.safetensors"))


def test_links_and_fifos(tmp_path):
    """The hub's cache is folders of links to files beside them; nothing else may lead out of a folder."""
    repository = tmp_path / "models--a--b"
    snapshot = repository / "snapshots" / "0123"
    os.makedirs(snapshot)
    os.mkdir(repository / "blobs")
    official_numpy.save_file({"x": X}, repository / "blobs" / "aa")
    official_numpy.save_file({"y": Y}, repository / "blobs" / "bb")
    weight_map = {"x": "a.safetensors", "y": "b.safetensors"}
    (repository / "blobs" / "ii").write_text(json.dumps({"weight_map": weight_map}))
    for name, blob in (("a.safetensors", "aa"), ("b.safetensors", "bb"), ("model.safetensors.index.json", "ii")):
        os.symlink(f"../../blobs/{blob}", snapshot / name)
    assert same(read_all(SafetensorsReader(str(snapshot)).array("y")), Y)
    os.symlink(snapshot, tmp_path / "link")  # what the caller names may be a link itself
    assert same(read_all(SafetensorsReader(str(tmp_path / "link")).array("y")), Y)
    official_numpy.save_file({"y": Y}, tmp_path / "elsewhere.safetensors")
    os.unlink(snapshot / "b.safetensors")
    os.symlink(tmp_path / "elsewhere.safetensors", snapshot / "b.safetensors")
    with pytest.raises(StoreError, match="symbolic link .* out of its folder"):
        SafetensorsReader(str(snapshot))
    os.unlink(snapshot / "b.safetensors")
    os.mkfifo(snapshot / "b.safetensors")
    with pytest.raises(StoreError, match="not a plain file"):
        SafetensorsReader(str(snapshot))


def test_what_cannot_be_held_is_told(tmp_path):
    tree = GroupFacts(
        {
            "fine": ArrayFacts((2,), np.dtype("f4")),
            "complex": ArrayFacts((2,), np.dtype("c16")),
            "texts": ArrayFacts((2,), np.dtype("U3")),
            "records": ArrayFacts((2,), np.dtype("i2,f4")),
            "bytes": ArrayFacts((2,), np.dtype("V2")),
            "vlen": ArrayFacts((2,), None, type_name="vlen string"),
            "told": ArrayFacts((2,), np.dtype("f4"), attributes={"units": "K"}, names=("x",), unlimited=(0,)),
            "link": LinkFacts("soft", "/fine"),
            "group": GroupFacts({"inner": ArrayFacts((2,), np.dtype("f4"))}, {"a": 1}),
        },
        {"text": "fine", "number": 1, "array": np.arange(3), "half": "\ud800", "total_size": 3},
    )
    words = SafetensorsFileWriter.losses(tree)
    for name in ("complex", "texts", "records", "bytes", "vlen", "units", "dimension names of told", "may grow"):
        assert sum(name in loss for loss in words) == 1, name
    for name in ("soft link link", "the group group", "number", "array, which", "half", "total_size"):
        assert sum(name in loss for loss in words) == 1, name
    assert len(words) == 14 and not any("fine," in loss or "inner" in loss for loss in words)
    fewer = SafetensorsFolderWriter.losses(tree)
    assert set(words) - set(fewer) == {"the attribute number, which is 1"}
    os.mkdir(tmp_path / "out")
    for writer in (
        SafetensorsFileWriter(str(tmp_path / "x.safetensors")),
        SafetensorsFolderWriter(str(tmp_path / "out")),
    ):
        writer.create(tree)  # what can be held
        writer.finish()
    for path in ("x.safetensors", "out"):
        made = SafetensorsReader(str(tmp_path / path)).tree
        assert set(made.children) == {"fine", "told", "group/inner"} and made.attributes["text"] == "fine"


REFUSED = [
    (GroupFacts({"a": ArrayFacts((2,), np.dtype("f4"), codecs=("zstd",))}), "", "zstd"),
    (GroupFacts({"__metadata__": ArrayFacts((2,), np.dtype("f4"))}), "", "__metadata__"),
    (GroupFacts({"\ud800": ArrayFacts((2,), np.dtype("f4"))}), "", "Unicode"),
    (GroupFacts({"a": ArrayFacts((2,), np.dtype("f4"))}), "w", "cannot hold a group"),
    (
        GroupFacts({"a/b": ArrayFacts((), np.dtype("f4")), "a": GroupFacts({"b": ArrayFacts((), np.dtype("f4"))})}),
        "",
        "both become",
    ),
]


@pytest.mark.parametrize(("tree", "inner", "words"), REFUSED)
def test_what_cannot_be_made_is_refused(tmp_path, tree, inner, words):
    with pytest.raises(ArgumentError, match=words):
        SafetensorsFileWriter(str(tmp_path / "x.safetensors"), inner).create(tree)
    assert os.listdir(tmp_path) == []


def test_tensors_are_aligned_and_never_split(tmp_path):
    facts = {f"{k}{code}": ArrayFacts((k,), np.dtype(code)) for k, code in itertools.product((3, 5), TYPES)}
    writer = SafetensorsFolderWriter(str(tmp_path), file_bytes=100)
    writer.create(GroupFacts(facts))
    writer.finish()
    files = [name for name in os.listdir(tmp_path) if name.endswith(".safetensors")]
    assert len(files) > 2
    for name in files:
        data, tensors, *_ = safetensors_header.read_header(str(tmp_path / name))
        assert data % 8 == 0
        for tensor in tensors:
            assert tensor.start % tensor.facts().dtype.itemsize == 0


def test_a_checkpoint_that_was_left_is_gone_on_with(tmp_path):
    tree = GroupFacts({"x": ArrayFacts(X.shape, X.dtype), "y": ArrayFacts(Y.shape, Y.dtype)})
    left = SafetensorsFolderWriter(str(tmp_path), file_bytes=20)
    left.create(tree)
    write_all(left.array("x"), X)
    left.finish()
    again = SafetensorsFolderWriter(str(tmp_path), resume=True, file_bytes=20)
    again.create(tree)
    with pytest.raises(ArgumentError, match="no tensor"):
        again.array("z")
    write_all(again.array("y"), Y)
    again.finish()
    reader = SafetensorsReader(str(tmp_path))
    assert same(read_all(reader.array("x")), X) and same(read_all(reader.array("y")), Y)


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        ("c/model.safetensors.index.json", "c/b.safetensors"),
        ("c/model.safetensors.index.json::x", "c/b.safetensors::x"),
        ("hub/snapshots/1", "hub/blobs/b.safetensors"),
        ("hub/snapshots/1", "hub/blobs"),
        ("hub/snapshots/1/a.safetensors", "hub/blobs/a.safetensors"),
    ],
)
def test_no_file_of_a_checkpoint_is_replaced_by_what_is_made_of_it(tmp_path, monkeypatch, source, destination):
    monkeypatch.chdir(tmp_path)
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    checkpoint(tmp_path / "c", index, a={"x": X}, b={"y": Y})
    shutil.copytree("c", "hub/blobs")
    os.makedirs("hub/snapshots/1")
    for name in os.listdir("c"):
        os.symlink(f"../../blobs/{name}", f"hub/snapshots/1/{name}")
    before = {path: path.read_bytes() for path in tmp_path.glob("**/*.*")}
    with pytest.raises(StoreError, match="is the source itself|holds the source"):
        ls.move(source, destination, force=True)
    assert {path: path.read_bytes() for path in tmp_path.glob("**/*.*")} == before
    ls.move(source, "c/new.safetensors")  # beside them it may lie
