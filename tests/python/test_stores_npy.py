"""The `.npy` header: what NumPy writes is read, what nobody should send is refused in words."""

import os
import struct

import numpy as np
import pytest
from longshore.errors import StoreError
from longshore.stores.npy import MAGIC, encode_header, open_npy, parse_descr

DTYPES = [
    "u1",
    "<i2",
    ">i4",
    "<f8",
    ">f8",
    "<c16",
    "?",
    "S7",
    "<U3",
    ">U2",
    "V5",
    "<M8[ns]",
    ">m8[25s]",
    "<f2",
    [("x", "<f4"), ("n", ">i8")],
    [("pixel", "u1", (3,)), ("inner", [("a", "<f8", (2, 2)), ("b", "S3")])],
    [(("a title", "name"), "<i4"), ("grün", "<f8")],
    np.dtype([("a", "u1"), ("b", "<f8")], align=True),
]


def write(path, array, version):
    with open(path, "wb") as file:
        np.lib.format.write_array(file, array, version=version)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numpys_files_are_read(tmp_path, dtype, order, version):
    array = np.zeros((3, 4, 2), dtype=dtype, order=order)
    path = tmp_path / "a.npy"
    if version < (3, 0) and "grün" in str(dtype):
        version = (3, 0)
    write(path, array, version)
    fd, header = open_npy(path)
    os.close(fd)
    assert header.shape == array.shape
    assert header.dtype == array.dtype
    assert header.order == order
    assert header.data_offset + header.data_bytes == path.stat().st_size


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numpy_reads_our_files(tmp_path, dtype, order):
    array = np.zeros((2, 3), dtype=dtype, order=order)
    raw = np.frombuffer(array.tobytes(order=order), np.uint8).copy()
    raw[:] = np.arange(len(raw)) % 2
    header = encode_header(array.shape, array.dtype, order)
    assert len(header) % 64 == 0
    path = tmp_path / "a.npy"
    path.write_bytes(header + raw.tobytes())
    back = np.load(path, allow_pickle=False)
    assert back.dtype == array.dtype and back.shape == array.shape
    assert back.tobytes(order=order) == raw.tobytes()


def test_many_fields_need_version_2(tmp_path):
    dtype = np.dtype([(f"field_with_a_long_name_{i:05d}", "<f8") for i in range(2000)])
    header = encode_header((1,), dtype, "C")
    assert header[6] == 2
    (tmp_path / "a.npy").write_bytes(header + bytes(dtype.itemsize))
    fd, read = open_npy(tmp_path / "a.npy")
    os.close(fd)
    assert read.dtype == dtype


def file_of(header, data=b"", version=1):
    raw = header.encode("latin-1") if isinstance(header, str) else header
    length = struct.pack("<H", len(raw)) if version == 1 else struct.pack("<I", len(raw))
    return MAGIC + bytes([version, 0]) + length + raw + data


GOOD = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n"

BAD = {
    "empty": (b"", "empty"),
    "not a npy file": (b"hello world, hello", "does not start"),
    "a pickle": (b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00", "pickle"),
    "an archive": (b"PK\x03\x04" + bytes(30), "npz"),
    "version 4": (MAGIC + b"\x04\x00" + bytes(20), "version 4.0"),
    "short header": (MAGIC + b"\x01\x00\xff\x00abc", "ends inside"),
    "huge header": (MAGIC + b"\x02\x00\xff\xff\xff\x7f" + bytes(50), "claims"),
    "objects": (file_of("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", bytes(16)), "Python objects"),
    "objects in a field": (
        file_of("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (2,)}", bytes(16)),
        "Python objects",
    ),
    "no bytes": (file_of("{'descr': '|S0', 'fortran_order': False, 'shape': (2,)}"), "no bytes"),
    "truncated": (file_of(GOOD, bytes(15)), "truncated"),
    "trailing": (file_of(GOOD, bytes(17)), "follow the array"),
    "negative": (file_of(GOOD.replace("(2,)", "(-2,)"), bytes(16)), "must lie in"),
    "a float extent": (file_of(GOOD.replace("(2,)", "(2.5,)"), bytes(16)), "cannot be read|has|bracket"),
    "a bool extent": (file_of(GOOD.replace("(2,)", "(True,)"), bytes(16)), "not an integer"),
    "beyond 64 bits": (file_of(GOOD.replace("(2,)", f"({2**40}, {2**40})"), bytes(16)), "64 bits"),
    "a long number": (file_of(GOOD.replace("(2,)", f"({'9' * 400},)"), bytes(16)), "digits"),
    "scalar shape": (file_of(GOOD.replace("(2,)", "2"), bytes(16)), "not a list"),
    "a key twice": (file_of("{'descr': '<f8', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"), "twice"),
    "a key missing": (file_of("{'descr': '<f8', 'shape': (2,)}"), "must say"),
    "a key too many": (file_of("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'x': 1}"), "must say"),
    "order is no bool": (file_of(GOOD.replace("False", "0"), bytes(16)), "not True or False"),
    "deep brackets": (file_of("{'descr': " + "(" * 5000 + ")" * 5000 + "}"), "nests deeper"),
    "deep lists": (file_of("{'descr': " + "[" * 5000 + "]" * 5000 + "}"), "nests deeper"),
    "a call": (file_of("{'descr': exit(1), 'fortran_order': False, 'shape': (2,)}"), "where a value belongs"),
    "minus signs": (file_of("{'descr': " + "-" * 5000 + "1}"), "cannot be read"),
    "unknown type": (file_of(GOOD.replace("<f8", "<q8"), bytes(16)), "no element type"),
    "comma type": (file_of(GOOD.replace("<f8", "f8,f8"), bytes(32)), "no element type"),
    "huge element": (file_of(GOOD.replace("<f8", "|V99999999999999999")), "element type|64 bits|truncated"),
    "not UTF-8": (file_of(b"{'descr': '\xff\xfe'}", version=3), "UTF-8"),
    "goes on": (file_of(GOOD.strip() + " + 1", bytes(16)), "goes on"),
    "goes on with a null": (file_of(GOOD.strip() + "\0", bytes(16)), "goes on"),
    "fields clash": (
        file_of("{'descr': [('a', '<f8'), ('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", bytes(16)),
        "does not accept",
    ),
    "33 dimensions": (file_of(GOOD.replace("(2,)", "(" + "1," * 33 + ")"), bytes(8)), "dimensions"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused(tmp_path, case):
    raw, words = BAD[case]
    path = tmp_path / "bad.npy"
    path.write_bytes(raw)
    with pytest.raises(StoreError, match=words) as caught:
        open_npy(path)
    assert "bad.npy" in str(caught.value)
    assert caught.value.errno is None


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "fifo.npy")
    with pytest.raises(StoreError, match="not a plain file"):
        open_npy(tmp_path / "fifo.npy")
    with pytest.raises(StoreError, match="not a plain file"):
        open_npy(tmp_path)
    with pytest.raises(StoreError, match="missing"):
        open_npy(tmp_path / "none.npy")
    (tmp_path / "real.npy").write_bytes(file_of(GOOD, bytes(16)))
    (tmp_path / "link.npy").symlink_to("real.npy")
    os.close(open_npy(tmp_path / "link.npy")[0])
    with pytest.raises(StoreError, match="symbolic link"):
        open_npy(tmp_path / "link.npy", follow_links=False)


def test_descr_from_json():
    assert parse_descr([["x", "<f4"], ["n", [["a", "<i8", [2, 3]]]]]) == np.dtype(
        [("x", "<f4"), ("n", [("a", "<i8", (2, 3))])]
    )
    for bad in (
        None,
        3,
        [],
        {},
        [["x"]],
        [["x", "<f4", [-1]]],
        [["x", "<f4", "3"]],
        [[1, "<f4"]],
        True,
        [["x", "<f4", [2**40]]],
        ["<f8", [2]],
    ):
        with pytest.raises(StoreError):
            parse_descr(bad)
