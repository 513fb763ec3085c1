"""Fill values in HDF5 and NetCDF-4 files, byte for byte, of every type: what was never written reads as them."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from longshore.errors import StoreError
from longshore.stores import hdf5_writer
from longshore.stores.array import ArrayFacts, GroupFacts
from longshore.stores.hdf5_reader import Hdf5Reader
from longshore.stores.netcdf import NetcdfReader, NetcdfWriter
from store_copies import RANDOM, copy, elements, make

h5py = pytest.importorskip("h5py")
pytest.importorskip("numcodecs")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def never_written(path):
    """What the HDF5 library reads where nothing was written: the bytes of the first element of `x`."""
    with h5py.File(path) as file:
        dataset = file["x"].id
        assert dataset.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED
        whole = np.zeros((*dataset.shape, dataset.get_type().get_size()), "u1")
        dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, whole, dataset.get_type())
        return whole.reshape(-1, whole.shape[-1])[0].tobytes()


def carried_on(fill):
    """Whether a file of nothing but fill values, a.h5, reads as them, and so do its copies."""
    copy("a.h5", "b.h5", lambda facts: replace(facts, chunks=(3,), codecs=("gzip:1",)))
    copy("b.h5", "c.h5", lambda facts: replace(facts, chunks=None, codecs=()))
    for path in ("a.h5", "b.h5", "c.h5"):
        reader = Hdf5Reader(path)
        assert reader.tree.children["x"].fill == fill and elements(reader, "x").tobytes() == 7 * fill
        reader.close()
        assert never_written(path) == fill


@pytest.mark.parametrize("chunks", [None, (3,)])
@pytest.mark.parametrize("length", range(1, 21))
def test_texts_of_fixed_length(length, chunks):
    texts = [
        b"abcdefghijklmnopqrst"[:length],
        b"x",
        b"\xff" * length,
        b"a\0b"[:length],
        b"\0z"[:length],
        b"c  "[:length],
    ]
    for text in [*texts, RANDOM.bytes(length)]:
        fill = text.ljust(length, b"\0")
        make(ArrayFacts((7,), np.dtype(f"S{length}"), chunks, fill=fill))
        if chunks is None:  # whose elements the writer leaves to the mover
            reader = Hdf5Reader("a.h5")
            assert reader.tree.children["x"].fill == fill
            reader.close()
        else:
            carried_on(fill)


def a_text(length, padding):
    type_id = h5py.h5t.C_S1.copy()
    type_id.set_size(length)
    type_id.set_strpad(padding)
    return type_id


PADDINGS = {"zero at the end": h5py.h5t.STR_NULLTERM, "zeros": h5py.h5t.STR_NULLPAD, "spaces": h5py.h5t.STR_SPACEPAD}


@pytest.mark.parametrize("padding", PADDINGS)
def test_texts_padded_in_each_way(padding):
    """Another program's file, whose fill value is what its elements look like."""
    for length in (1, 2, 5, 20):
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((3,))
        plist.set_fill_value(np.array(b"qrs"[: max(1, length - 2)], h5py.string_dtype("ascii")))
        with h5py.File("a.h5", "w") as file:
            type_id = a_text(length, PADDINGS[padding])
            h5py.h5d.create(file.id, b"x", type_id, h5py.h5s.create_simple((7,)), plist)
        carried_on(never_written("a.h5"))
        source = {"hdf5.type": type_id.encode()}
        make(ArrayFacts((7,), np.dtype(f"S{length}"), (3,), fill=b"w" * length, own=source))
        carried_on(b"w" * length)


BFLOAT16 = h5py.h5t.IEEE_F16LE.copy()
BFLOAT16.set_fields(15, 7, 8, 0, 7)
BFLOAT16.set_ebias(127)
TYPES = ["f2", ">f4", "f8", "i1", ">i2", "u8", "?", "c8", ">c16", "V3", "g"]
TYPES += [
    [("a", "i1"), ("s", "S3")],
    [("s", "S2"), ("b", ">f8", (2,))],
    [("o", [("s", "S4"), ("i", "i2")]), ("?", "?")],
]
TYPES += [np.dtype([("a", "i1"), ("b", "f8")], align=True), h5py.opaque_dtype("M8[ns]")]
TYPES += [h5py.enum_dtype({"RED": 0, "BLUE": 7}, ">i2")]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_other_type(dtype):
    dtype = np.dtype(dtype)
    for _ in range(5):
        fill = RANDOM.bytes(dtype.itemsize) if dtype.kind != "b" else b"\1"
        make(ArrayFacts((7,), dtype, (3,), fill=fill))
        carried_on(fill)


@pytest.mark.parametrize("kind", ["bfloat16", "an array", "an integer of 12 bits"])
def test_types_that_numpy_has_not(kind):
    type_id = BFLOAT16
    if kind == "an array":
        type_id = h5py.h5t.array_create(h5py.h5t.IEEE_F32BE, (3,))
    elif kind == "an integer of 12 bits":
        type_id = h5py.h5t.STD_I16LE.copy()
        type_id.set_precision(12)
    size = type_id.get_size()
    make(ArrayFacts((7,), np.dtype(f"V{size}"), (3,), type_name="bfloat16" if size == 2 else "an array",
                    fill=b"\x21\x04" * (size // 2), own={"hdf5.type": type_id.encode()}))  # fmt: skip
    carried_on(b"\x21\x04" * (size // 2))


def test_bfloat16_of_another_program():
    with h5py.File("a.h5", "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((3,))
        plist.set_fill_value(np.array(1.5, "f4"))
        h5py.h5d.create(file.id, b"x", BFLOAT16, h5py.h5s.create_simple((7,)), plist)
    carried_on(b"\xc0\x3f")


def test_a_fill_value_that_the_library_changes_is_refused(monkeypatch):
    monkeypatch.setattr(hdf5_writer, "set_fill", lambda plist, type_id, fill: plist.set_fill_value(np.array(3, "i4")))
    with pytest.raises(
        StoreError, match=r"a.h5::/x cannot have the fill value 0x07000000: the HDF5 library made 0x0300"
    ):
        make(ArrayFacts((7,), np.dtype("i4"), (3,), fill=b"\7\0\0\0"))


@pytest.mark.parametrize("options", [{}, {"zlib": True, "chunksizes": (2, 2)}], ids=["whole", "chunks"])
@pytest.mark.parametrize("letter", [b"z", b"\xe9", b" "])
def test_characters_of_netcdf(letter, options):
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset("a.nc", "w") as file:
        file.createDimension("n", 5), file.createDimension("time", None)
        file.createVariable("never", "S1", ("n", "n"), fill_value=letter, **options)
        file.createVariable("some", "S1", ("time", "n"), fill_value=letter, **options)[3, 1:3] = np.array([b"a", b"b"])
        file.createVariable("plain", "S1", ("time", "n"), **options)
    for change in (lambda facts: facts, lambda facts: replace(facts, chunks=(1, 3), codecs=("shuffle",))):
        copy("a.nc", "b.nc", change, NetcdfReader, NetcdfWriter)
        found = []
        shutil.copy("a.nc", "longer.nc")
        for path in ("longer.nc", "b.nc"):
            with netcdf4.Dataset(path, "a") as file:
                file["some"][9, 0] = np.array(b"q")  # and rows between, which are not written
                for name in ("never", "some", "plain"):
                    variable = file[name]
                    variable.set_auto_mask(False), variable.set_auto_chartostring(False)
                    found.append((variable[...].tobytes(), variable.shape, getattr(variable, "_FillValue", None)))
        assert found[:3] == found[3:]
        assert found[0] == (25 * letter, (5, 5), letter)
        assert found[1][0] == 16 * letter + b"ab" + 27 * letter + b"q" + 4 * letter


def test_characters_of_netcdf_from_elsewhere():
    tree = GroupFacts({"x": ArrayFacts((7,), np.dtype("S1"), (3,), names=("n",), attributes={"_FillValue": "z"})})
    open("a.nc", "wb").close()
    writer = NetcdfWriter("a.nc")
    writer.create(tree)
    writer.finish()
    assert never_written("a.nc") == b"z"
    reader = NetcdfReader("a.nc")
    assert elements(reader, "x").tobytes() == 7 * b"z"
    reader.close()
