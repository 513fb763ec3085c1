"""Attributes that mean something to a format, types that NumPy has not, and other odd things that stores survive."""

import errno
import json
import os
import subprocess
import sys

import longshore as ls
import numpy as np
import pytest
from longshore.errors import ArgumentTypeError, StoreError
from longshore.stores import object_places
from longshore.stores.hdf5_values import told

h5py = pytest.importorskip("h5py")
REFERENCES = h5py.vlen_dtype(h5py.ref_dtype)
ODD = {
    "integers": ("DIMENSION_LIST", np.arange(4), None),
    "a short text": ("DIMENSION_LIST", np.array(["a"], "S9"), None),
    "compounds": ("DIMENSION_LIST", np.zeros(2, "i8,f8"), None),
    "lists of integers": ("DIMENSION_LIST", np.array([np.arange(3), np.arange(2)], object), h5py.vlen_dtype("i8")),
    "empty lists": ("DIMENSION_LIST", np.array([np.array([], h5py.ref_dtype)] * 2, object), REFERENCES),
    "null references": (
        "DIMENSION_LIST",
        np.array([np.array([h5py.Reference()] * n) for n in (1, 2)], object),
        REFERENCES,
    ),
    "labels of integers": ("DIMENSION_LABELS", np.arange(2), None),
    "labels of fixed length": ("DIMENSION_LABELS", np.array(["a", "b"], "S1"), None),
}
ODD_NAMES = {
    "compounds": (np.zeros(2, "i8,f8"), None),
    "many texts": (np.array(["a" * 5] * 9, "S5"), None),
    "texts of variable length": (["x" * 40] * 4, h5py.string_dtype()),
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def alone(code):
    """Runs this in a process of its own, which may crash."""
    ran = subprocess.run([sys.executable, "-c", f"import longshore as ls\n{code}"], capture_output=True, text=True)
    assert ran.returncode == 0, (ran.returncode, ran.stderr[-500:])
    return ran.stdout.strip()


@pytest.mark.parametrize("suffix", ["h5", "nc"])
@pytest.mark.parametrize("odd", ODD)
def test_odd_attributes_of_dimensions_are_no_names(odd, suffix):
    name, value, dtype = ODD[odd]
    with h5py.File(f"a.{suffix}", "w") as file:
        file.create_dataset("x", data=np.ones((4, 4))).attrs.create(name, value, dtype=dtype)
    assert alone(f"x = ls.open('a.{suffix}::x'); print(x.names, x.read().sum())") == "None 16.0"


@pytest.mark.parametrize("suffix", ["h5", "nc"])
@pytest.mark.parametrize("odd", ODD_NAMES)
def test_scales_with_odd_names_have_that_of_their_dataset(odd, suffix):
    value, dtype = ODD_NAMES[odd]
    with h5py.File(f"a.{suffix}", "w") as file:
        scale, x = file.create_dataset("t", data=np.ones(4)), file.create_dataset("x", data=np.ones((4, 4)))
        scale.make_scale("t")
        x.dims[0].attach_scale(scale)
        scale.attrs.create("NAME", value, dtype=dtype)
    assert alone(f"x = ls.open('a.{suffix}::x'); print(x.names, x.read().sum())") == "('t', None) 16.0"


def zarr_array(attributes):
    np.save("ones.npy", np.ones(4, "f4"))
    ls.move("ones.npy", "a.zarr", chunks=(2,), zarr_format=3)
    document = json.load(open("a.zarr/zarr.json"))
    json.dump({**document, "attributes": {"kept": 1, **attributes}}, open("a.zarr/zarr.json", "w"))


FORMATS_OWN = [{"DIMENSION_LIST": "z"}, {"REFERENCE_LIST": [1]}, {"DIMENSION_LABELS": "z"}, {"": 1}]
NETCDFS_OWN = [{"_Netcdf4Dimid": 7}, {"_Netcdf4Coordinates": [1, 2]}, {"_NCProperties": "z"}, {"NAME": "z"}]


@pytest.mark.parametrize(
    ("destination", "attributes"),
    [(to, each) for to in ("b.h5::x", "b.nc::x") for each in [*FORMATS_OWN, {"r": [[1], [2, 3]]}]]
    + [(to, {"CLASS": "DIMENSION_SCALE", "NAME": "z"}) for to in ("b.h5::x", "b.nc::x")]
    + [("b.nc::x", each) for each in NETCDFS_OWN],
)
def test_attributes_that_are_the_formats_own_are_lost(destination, attributes):
    zarr_array(attributes)
    for name in attributes:
        with pytest.raises(StoreError, match=f"cannot hold .*the attribute '{name}'"):
            ls.move("a.zarr", destination)
    code = f"print(len(ls.move('a.zarr', {destination!r}, lossy=True).lost), list(ls.open({destination!r}).attributes))"
    assert alone(code) == f"{len(attributes)} ['kept']"
    if ".nc" in destination:
        with pytest.importorskip("netCDF4").Dataset("b.nc") as file:
            assert (file["x"][:] == 1).all() and file["x"].ncattrs() == ["kept"]


def test_other_classes_and_names_are_kept():
    """As programs that write images and tables have them."""
    zarr_array({"CLASS": "IMAGE", "NAME": "z"})
    assert not ls.move("a.zarr", "b.h5::x").lost
    assert not ls.move("b.h5", "c.h5").lost
    with h5py.File("c.h5") as file:
        assert dict(file["x"].attrs) == {"kept": 1, "CLASS": "IMAGE", "NAME": "z"}


@pytest.mark.parametrize(
    ("name", "held"), [("bfloat16", "zarr h5 safetensors"), ("float8_e5m2", "zarr safetensors"), ("int4", "zarr")]
)
def test_types_that_numpy_has_not_are_saved_by_name(name, held):
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), name))
    values = (np.arange(35) % 7).astype(dtype).reshape(5, 7)
    layout = ls.Layout("(BLOCK, *) on 2", (5, 7))
    for destination in ("a.zarr", "a.h5::x", "a.safetensors::x", "a.npy"):
        chunked = (
            {"chunks": (2, 3), "codecs": ["gzip:1"]} if "safet" not in destination and "npy" not in destination else {}
        )
        if not any(word in destination for word in held.split()):
            with pytest.raises(StoreError, match=f"cannot hold .*{name}"):
                ls.save(ls.scatter(values, layout), layout, destination, **chunked)
            continue
        ls.save(ls.scatter(values, layout), layout, destination, **chunked)
        with ls.open(destination) as array:
            assert array.type_name in (name, "BF16", "F8_E5M2") and array.read().tobytes() == values.tobytes()
            assert array.dtype == array.read().dtype == np.asarray(array).dtype == dtype
            assert (array[::-2, 1] == values[::-2, 1]).all() and array[4, 6] == values[4, 6]
        loaded = ls.load(destination, layout)
        assert [part.tobytes() for part in loaded] == [part.tobytes() for part in ls.scatter(values, layout)]
        assert {part.dtype for part in loaded} == {dtype}
        for of_array in (dtype, np.dtype(f"V{dtype.itemsize}")):
            blocks = ls.XArray(ls.FloorPlan([ls.Region((0, 0), (5, 7))], [0]), of_array)
            ls.load(destination, blocks)
            assert blocks[0].tobytes() == values.tobytes()


def test_types_that_numpy_has_not_are_bytes_without_ml_dtypes(monkeypatch):
    dtype = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    values, layout = np.arange(35).astype(dtype).reshape(5, 7), ls.Layout("(BLOCK, *) on 2", (5, 7))
    ls.save(ls.scatter(values, layout), layout, "a.zarr")
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    loaded = ls.load("a.zarr", layout)
    assert {part.dtype for part in loaded} == {np.dtype("V2")}
    assert b"".join(part.tobytes() for part in loaded) == values.tobytes()
    with ls.open("a.zarr") as array:
        assert array.dtype == np.dtype("V2") and array.read().tobytes() == values.tobytes()


def test_bfloat16_in_big_endian_order_is_no_bfloat16_elsewhere():
    """Its bytes would be taken for other numbers."""
    kind = h5py.h5t.IEEE_F16BE.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_ebias(127)
    with h5py.File("a.h5", "w") as file:
        h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((7,)))
    with pytest.raises(StoreError, match="cannot hold .*big-endian bfloat16"):
        ls.move("a.h5::x", "a.safetensors::x")
    ls.move("a.h5::x", "b.h5::x")
    with h5py.File("b.h5") as file:
        assert file["x"].id.get_type().equal(kind)


class Answers:
    """obstore, with one object."""

    version = 1

    def get(self, store, path, *, options=None):
        start, end = (options or {}).get("range", (0, 100))
        self.part = bytes(100)[start:end]
        self.meta = {"e_tag": f'"{self.version}"', "last_modified": "today", "size": 100}
        return self

    def stream(self):
        return [self.part]

    def bytes(self):
        return self.part


def test_obstore_tells_of_a_change_between_two_requests():
    place = object_places._Obstore.__new__(object_places._Obstore)
    place._library, place._url, place._store, place._last = Answers(), "s3://b/a.npy", None, "a.npy"
    assert len(place.get("", 10)) == 100 and len(place.get_range("", 5, 7)) == 7
    place._library.version = 2
    assert len(place.get_range("c/0", 5, 7)) == 7
    for ask in (lambda: place.get("", 10), lambda: place.get_range("", 5, 7)):
        with pytest.raises(StoreError, match="^s3://b/a.npy has been changed while it was read"):
            ask()


def test_the_systems_own_words_are_told():
    said = (
        f"[Errno {errno.ENOSPC}] Can't synchronously write data (file write failed: time = Sat Nov 28 11:17:00 2026\n, "
        "filename = 'a.h5', errno = 28, error message = 'No space left on device', buf = 0x7fbfb471deb0)"
    )
    with pytest.raises(StoreError) as caught, told("cannot write a.h5"):
        raise OSError(errno.ENOSPC, said.partition("] ")[2])
    assert str(caught.value).endswith(
        f"cannot write a.h5: {os.strerror(errno.ENOSPC)} (Can't synchronously write data, file write failed)"
    )
    with pytest.raises(StoreError) as caught, told("cannot write a.h5"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert str(caught.value).endswith("cannot write a.h5: No space left on device")


@pytest.mark.parametrize("key", [np.array([1]), (0, np.array([1, 2])), np.bool_(True), "a"])
def test_what_is_no_index_is_told(key):
    np.save("a.npy", np.ones((3, 3)))
    with ls.open("a.npy") as array, pytest.raises(ArgumentTypeError, match="must be an integer, a slice"):
        array.read(key)


@pytest.mark.parametrize("odd", ["name", "list"])
def test_a_dataset_with_odd_scales_is_replaced(tmp_path, odd):
    path = tmp_path / "odd.h5"
    with h5py.File(path, "w") as file:
        dataset, scale = file.create_dataset("y", data=np.ones(3)), file.create_dataset("s", data=np.arange(3.0))
        scale.make_scale("s")
        dataset.dims[0].attach_scale(scale)
        owner, name = (scale, "NAME") if odd == "name" else (dataset, "DIMENSION_LIST")
        del owner.attrs[name]
        owner.attrs[name] = np.arange(4 if odd == "name" else 1)
    np.save(tmp_path / "y.npy", np.zeros(4))
    ls.move(tmp_path / "y.npy", f"{path}::y", force=True)
    with h5py.File(path) as file:
        assert file["y"].shape == (4,)
