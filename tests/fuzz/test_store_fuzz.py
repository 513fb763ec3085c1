"""Fuzzing the store reader: whatever bytes lie on the disk, it answers with a store or with StoreError, soon, in little
memory."""

import json
import os
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from longshore.errors import StoreError
from longshore.stores import layout_json, move, npy, open_store
from longshore.stores.team import Alone

QUICK = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))

numbers = st.one_of(st.integers(-3, 10), st.sampled_from([2**31, 2**62, 2**63, 2**64, -(2**63), 10**30]), st.floats())
scalars = st.one_of(
    st.none(), st.booleans(), numbers, st.text(max_size=12), st.sampled_from(["<f8", "|O", "V0", "a" * 300])
)
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=12,
)

layout_texts = st.one_of(
    st.sampled_from(
        [
            "(BLOCK, *) on 2",
            "(CYCLIC, CYCLIC(2)) on 2x1",
            "(GEN_BLOCK(1, 4), *) on 2, order=F",
            "(*, *) on 1",
            "(BLOCK, *) on 99999999999999999999",
            "(BLOCK, *) on 4611686018427387904",
            "(CYCLIC(0), *) on 2",
            "(BLOCK, *) on 2, ranks=0:4611686018427387904",
            "(BLOCK, *) on REPLICATED(4611686018427387904)x2",
            "(" * 5000,
            "(BLOCK, *) on 2, ranks=[" + "1," * 5000 + "1]",
        ]
    ),
    st.text("(*,)BLOCKYGENx 0123456789=:[]", max_size=40),
)
documents = st.fixed_dictionaries(
    {
        "format": st.one_of(st.just(layout_json.FORMAT), anything),
        "version": st.one_of(st.just(1), anything),
        "layout": st.one_of(layout_texts, anything),
        "shape": st.one_of(st.just([5, 3]), st.lists(numbers, max_size=4), anything),
        "dtype": st.one_of(st.just("<f8"), anything),
        "order": st.one_of(st.sampled_from("CF"), anything),
        "shards": st.one_of(st.just(["a.npy", "b.npy"]), st.lists(st.text(max_size=6), max_size=3), anything),
    }
)


def answers_soon(function, *arguments):
    began = time.process_time()  # others may be at work beside the tests
    try:
        return function(*arguments)
    except StoreError as error:
        assert len(str(error)) < 20_000
        return None
    finally:
        assert time.process_time() - began < 5


@QUICK
@given(documents)
def test_documents(document):
    raw = json.dumps(document).encode()
    read = answers_soon(layout_json.parse_layout_json, raw, "layout.json")
    if read is not None:
        assert len(read.shards) == read.layout.rank_count


@QUICK
@given(st.binary(max_size=200))
def test_any_bytes_as_a_document(raw):
    assert answers_soon(layout_json.parse_layout_json, raw, "layout.json") is None


@QUICK
@given(anything)
def test_any_value_as_an_element_type(value):
    dtype = answers_soon(npy.parse_descr, value)
    assert dtype is None or (not dtype.hasobject and dtype.itemsize > 0)


@QUICK
@given(data=st.data())
def test_damaged_headers(data, tmp_path_factory):
    raw = bytearray(npy.encode_header((3, 4), np.dtype([("x", "<f4"), ("y", "u1", (2,))]), "C") + bytes(72))
    for _ in range(data.draw(st.integers(0, 6))):
        place = data.draw(st.integers(0, len(raw) - 1))
        kind = data.draw(st.sampled_from(["change", "insert", "remove", "cut"]))
        if kind == "change":
            raw[place] = data.draw(st.integers(0, 255))
        elif kind == "insert":
            raw[place:place] = data.draw(st.binary(min_size=1, max_size=20))
        elif kind == "remove" and len(raw) > 1:
            del raw[place]
        elif len(raw) > 1:
            del raw[max(place, 1) :]
    path = tmp_path_factory.getbasetemp() / "damaged.npy"
    path.write_bytes(raw)
    opened = answers_soon(npy.open_npy, path)
    if opened is not None:
        os.close(opened[0])
        # What is accepted, NumPy understands alike.
        read = np.load(path, allow_pickle=False)
        assert read.shape == opened[1].shape and read.dtype == opened[1].dtype


@QUICK
@given(
    raw=st.binary(max_size=300),
    start=st.sampled_from([b"", npy.MAGIC, npy.MAGIC + b"\x01\x00", npy.MAGIC + b"\x03\x00"]),
)
def test_any_bytes_as_a_file(tmp_path_factory, raw, start):
    path = tmp_path_factory.getbasetemp() / "any.npy"
    path.write_bytes(start + raw)
    opened = answers_soon(npy.open_npy, path)
    if opened is not None:
        os.close(opened[0])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_folders(data, tmp_path_factory):
    """A good folder, harmed in one place: it moves as before, or is refused with nothing written."""
    place = tmp_path_factory.mktemp("folder")
    array = np.arange(15.0).reshape(5, 3)
    np.save(place / "a.npy", array)
    move(place / "a.npy", place / "s", "(BLOCK, *) on 2")
    victim = place / "s" / data.draw(st.sampled_from(["layout.json", "rank-00000.npy", "rank-00001.npy"]))
    raw = bytearray(victim.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    victim.write_bytes(raw)
    try:
        move(place / "s", place / "back.npy", verify=True)
    except StoreError:
        assert sorted(os.listdir(place)) == ["a.npy", "s"]
    else:
        assert np.load(place / "back.npy").size == 15


def test_many_deep_documents_stay_small():
    for raw in (
        b"[" * (8 << 20),
        b'{"a":' * (1 << 20),
        b"[],".join([b"["] + [b""] * 100_000) + b"]",
        b'"' + b"\\" * (8 << 20),
    ):
        with pytest.raises(StoreError):
            layout_json.parse_layout_json(raw[: layout_json.MAX_BYTES], "layout.json")


def test_folder_of_nothing(tmp_path):
    with pytest.raises(StoreError):
        open_store(tmp_path, Alone())
