"""NetCDF-4 files as stores: what other programs write is read, and what is written they read as the same."""

import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from longshore.errors import StoreError
from longshore.stores.array import ArrayFacts, GroupFacts, LinkFacts
from longshore.stores.hdf5_reader import Hdf5Reader
from longshore.stores.netcdf import NetcdfReader, NetcdfWriter, is_netcdf
from store_copies import RANDOM, copy, elements, put

h5py = pytest.importorskip("h5py")
pytest.importorskip("numcodecs")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def copied(source, target, change=lambda facts: facts, losses=()):
    copy(source, target, change, NetcdfReader, NetcdfWriter, losses)


def rechunked(facts):
    """Other chunks and codecs, where there were chunks."""
    if facts.chunks is None or facts.dtype is None:
        return facts
    return replace(facts, chunks=tuple(max(1, c // 2 + 1) for c in facts.chunks), codecs=("shuffle", "gzip:1"))


def header(path, *options):
    """What `ncdump` says of a file, but its name."""
    said = subprocess.run(["ncdump", *options, path], capture_output=True, text=True, check=True).stdout
    return said.splitlines()[1:]


def a_full_file(path):
    """A NetCDF-4 file with something of everything, by the NetCDF library."""
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(path, "w") as file:
        file.title, file.number, file.row, file.empty = "a title", np.int32(4), np.array([1.0, 2.0]), ""
        file.setncattr("näme", "é")
        file.setncattr_string("string", "of variable length")
        file.setncattr("strings", ["a", "bc"])
        file.createDimension("time", None)
        for name, length in (("lat", 5), ("lon", 7), ("nv", 2), ("nchar", 10)):
            file.createDimension(name, length)
        time = file.createVariable("time", "f8", ("time",), chunksizes=(512,))
        time.units, time.calendar = "days since 2000-01-01", "standard"
        time[:] = np.arange(12)
        options = {"zlib": True, "complevel": 4, "shuffle": True, "fletcher32": True}
        t2m = file.createVariable(
            "t2m", "f4", ("time", "lat", "lon"), chunksizes=(5, 3, 4), fill_value=-999.0, **options
        )
        t2m.zz, t2m.aa, t2m.valid_range = 1.5, "x", np.array([0, 9], "f4")
        t2m[:] = RANDOM.normal(size=(12, 5, 7))
        t2m[3] = np.ma.masked
        lat = file.createVariable("lat", "f8", ("lat",))
        lat.bounds, lat[:] = "lat_bnds", np.arange(5)
        file.createVariable("lat_bnds", "f8", ("lat", "nv"))[:] = RANDOM.normal(size=(5, 2))
        file.createVariable("lon", ">i4", ("lon",), endian="big")[:] = np.arange(7)
        file.createVariable("crs", "i4", ()).grid_mapping_name = "latitude_longitude"
        file.createVariable("names", str, ("lat",))[:] = np.array(["a", "", "ccc", "d", "é"], object)
        letters = np.array(["ab", "cd", "e", "", "f"], "S10").view("S1").reshape(5, 10)
        file.createVariable("letters", "S1", ("lat", "nchar"), fill_value="x")[:] = letters
        file.createVariable("flags", "u1", ("lon",), zlib=True)[:] = 4
        file.createVariable("never", "i2", ("time", "lat"))
        file.createVariable("nv", "i4", ())[...] = 3  # has the name of a dimension that it has not
        group = file.createGroup("inner")
        group.createDimension("lat", 3)
        group.note = "in a group"
        group.createVariable("x", "f8", ("time", "lat"))[:] = RANDOM.normal(size=(12, 3))
        group.createVariable("y", "i8", ("lon",))[:] = np.arange(7)


def the_users_types(path):
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(path, "a") as file:
        colour = file.createEnumType("i1", "colour", {"red": 0, "blue": 1})
        file.createVariable("colours", colour, ("lat",))[:] = 1
        pair = file.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")], align=True), "pair")
        file.createVariable("pairs", pair, ("lat",))[:] = np.array([(k, k / 2) for k in range(5)], pair.dtype)
        ragged = file.createVLType("i4", "ragged")
        file.createVariable("lists", ragged, ("lat",))[0] = np.arange(3, dtype="i4")


def test_tree():
    a_full_file("a.nc")
    reader = NetcdfReader("a.nc")
    tree = reader.tree
    names = "time t2m lat lat_bnds lon crs names letters flags never nv inner"
    assert list(tree.children) == names.split()
    dimensions = [
        ("time", (12, True)),
        ("lat", (5, False)),
        ("lon", (7, False)),
        ("nv", (2, False)),
        ("nchar", (10, False)),
    ]
    assert list(tree.dimensions.items()) == dimensions
    assert tree.children["inner"].dimensions == {"lat": (3, False)}
    attributes = {name: np.asarray(value).tolist() for name, value in tree.attributes.items()}
    assert attributes == {"title": "a title", "number": 4, "row": [1, 2], "empty": "", "näme": "é",
                               "string": "of variable length", "strings": ["a", "bc"]}  # fmt: skip
    t2m = tree.children["t2m"]
    assert (t2m.names, t2m.unlimited, t2m.shape) == (("time", "lat", "lon"), (0,), (12, 5, 7))
    assert t2m.fill == np.float32(-999).tobytes() and list(t2m.attributes) == ["_FillValue", "zz", "aa", "valid_range"]
    assert tree.children["inner"].children["x"].names == ("time", "lat")
    assert tree.children["lon"].dtype == ">i4" and tree.children["names"].dtype is None
    assert tree.children["never"].shape == (12, 5)  # as long as the dimension is, though nothing was written to it
    assert reader.array("nv").where == "a.nc::/nv" and (elements(reader, "never") == -32767).all()
    reader.close()
    inner = NetcdfReader("a.nc", "inner")
    assert inner.tree.dimensions == {"time": (12, True), "lon": (7, False), "lat": (3, False)}
    inner.close()
    time = NetcdfReader("a.nc", "time")
    assert time.tree.names == ("time",) and time.tree.shape == (12,)
    time.close()
    variable = NetcdfReader("a.nc", "/nv")
    assert elements(variable, "")[()] == 3
    variable.close()
    with pytest.raises(StoreError, match="a.nc::/inner/lat is a dimension without a variable"):
        NetcdfReader("a.nc", "inner/lat")


@pytest.mark.parametrize("change", [lambda facts: facts, rechunked], ids=["as it is", "rechunked"])
def test_the_same_for_the_netcdf_library(change):
    a_full_file("a.nc")
    the_users_types("a.nc")
    copied("a.nc", "b.nc", change)
    copied("b.nc", "c.nc", change)
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset("a.nc") as one, netcdf4.Dataset("c.nc") as two:
        for a, b in ((one, two), (one["inner"], two["inner"])):
            assert list(a.dimensions) == list(b.dimensions) and list(a.variables) == list(b.variables)
            assert all(len(a.dimensions[n]) == len(b.dimensions[n]) for n in a.dimensions)
            assert all(a.dimensions[n].isunlimited() == b.dimensions[n].isunlimited() for n in a.dimensions)
            assert a.ncattrs() == b.ncattrs()
            for name, variable in a.variables.items():
                variable.set_auto_mask(False), b[name].set_auto_mask(False)
                assert variable.dimensions == b[name].dimensions and variable.ncattrs() == b[name].ncattrs()
                assert repr(variable[...]) == repr(b[name][...])
    if shutil.which("ncdump"):
        assert header("a.nc", "-h") == header("c.nc", "-h") and header("a.nc") == header("c.nc")


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_the_same_for_xarray(engine):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    a_full_file("a.nc")
    data = xarray.Dataset(
        {
            "t": (("time", "x"), RANDOM.normal(size=(6, 4)), {"units": "K"}),
            "b": (("x",), np.array([True, False, True, True])),
            "s": (("x",), np.array(["a", "bb", "", "é"], object)),
            "f": ((), 3.5),
        },
        {"time": np.array("2001-01-01", "M8[ns]") + np.arange(6) * np.timedelta64(1, "D"), "x": [1.0, 2.0, 3.0, 4.0],
         "label": ("x", list("abcd"))},
        {"title": "of xarray", "n": 3},
    )  # fmt: skip
    encoding = {"t": {"zlib": True, "_FillValue": -1e30, "chunksizes": (2, 4)}}
    data.to_netcdf("x.nc", engine=engine, unlimited_dims=["time"], encoding=encoding)
    for name in ("a", "x"):
        copied(f"{name}.nc", f"{name}2.nc", rechunked)
        for read in ("netcdf4", "h5netcdf"):
            one, two = (xarray.load_dataset(p, engine=read, drop_variables="nv") for p in (f"{name}.nc", f"{name}2.nc"))
            xarray.testing.assert_identical(one, two)
    with xarray.open_dataset("x2.nc", engine=engine) as found:
        assert found.encoding["unlimited_dims"] == {"time"} and found.t.encoding["chunksizes"] == (2, 3)
        assert found.t.encoding["_FillValue"] == -1e30


def a_tree():
    """A tree that came from no NetCDF file."""
    x = ArrayFacts((4,), np.dtype("f8"), names=("x",), attributes={"units": "m"})
    u = ArrayFacts((6, 4), np.dtype("f4"), (2, 4), codecs=("gzip:1",), names=("t", "x"),
                   attributes={"_FillValue": -1, "long_name": "ü", "bits": [True, False], "nested": {}})  # fmt: skip
    v = ArrayFacts((4, 4, 9), np.dtype("?"), names=("x", None, None))
    w = ArrayFacts((3, 6), np.dtype("i2"), (3, 2), names=("x", "t"), unlimited=(1,))
    attributes = {"title": "plain", "pi": 3.25, "levels": [1, 2, 3], "grid": np.eye(2)}
    return GroupFacts({"x": x, "u": u, "v": v, "g": GroupFacts({"w": w, "z": replace(x, names=None)})}, attributes)


def test_trees_that_came_from_elsewhere():
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    tree = a_tree()
    assert NetcdfWriter.losses(tree) == [
        "the shape of the attribute 'grid' of the file",
        "the attribute 'nested' of u (a mapping)",
    ]
    writer = NetcdfWriter("a.nc")
    writer.create(tree)
    u = RANDOM.normal(size=(6, 4)).astype("f4")
    values = {"x": np.arange(4.0), "u": u, "v": RANDOM.integers(0, 2, (4, 4, 9)).astype(bool),
              "g/w": np.arange(18, dtype="i2").reshape(3, 6), "g/z": np.arange(4.0)}  # fmt: skip
    for path, whole in values.items():
        put(writer.array(path), whole)
    writer.finish()
    with xarray.open_dataset("a.nc", engine="netcdf4") as found:
        assert found.u.dims == ("t", "x") and (found.u.values == u).all() and found.u.encoding["_FillValue"] == -1
        assert (
            found.u.attrs["long_name"] == "ü"
            and found.u.attrs["bits"].tolist() == [1, 0]
            and "nested" not in found.u.attrs
        )
        assert found.v.dtype == bool and (found.v.values == values["v"]).all()
        assert found.v.dims == ("x", "phony_dim_0", "phony_dim_1") and "x" in found.coords
        assert found.attrs["levels"].tolist() == [1, 2, 3] and found.attrs["title"] == "plain"
    with xarray.open_dataset("a.nc", group="g", engine="h5netcdf") as found:
        assert found.w.dims == ("x", "t") and (found.w.values == values["g/w"]).all()
        assert found.encoding["unlimited_dims"] == set() and found.z.dims == ("phony_dim_0",)
    reader = NetcdfReader("a.nc")
    assert all((elements(reader, path).astype(whole.dtype) == whole).all() for path, whole in values.items())
    reader.close()


def test_what_netcdf_cannot_hold_is_named():
    facts = ArrayFacts((3,), np.dtype("f4"))
    tree = GroupFacts(
        {
            "half": replace(facts, dtype=np.dtype("f2")),
            "complex": replace(facts, dtype=np.dtype("c8")),
            "text": replace(facts, dtype=np.dtype("S5")),
            "objects": replace(facts, dtype=None, type_name="object"),
            "-name": facts,
            "a": replace(facts, names=("n",)),
            "b": replace(facts, shape=(4,), names=("n",), attributes={"_FillValue": "none", "z": 1j}),
            "c": replace(facts, names=("a/b",)),
            "link": LinkFacts("soft", "/a"),
        }
    )
    assert NetcdfWriter.losses(tree) == [
        "the elements of half, of type float16",
        "the elements of complex, of type complex64",
        "the elements of text, of type |S5",
        "the elements of objects, of type object",
        "the name '-name' (a NetCDF name begins with a letter, a digit or an underscore)",
        "the attribute '_FillValue' of b, which is no value of its type float32",
        "the attribute 'z' of b (values of dtype complex128)",
        "the soft link link, which leads to /a",
        "the dimension name n of b, which has 4 indices there and 3 elsewhere",
        "the dimension name 'a/b' of c",
    ]
    writer = NetcdfWriter("a.nc")
    del tree.children["-name"], tree.children["link"]
    writer.create(tree)
    for name, extent in (("a", 3), ("b", 4), ("c", 3)):
        put(writer.array(name), np.arange(extent, dtype="f4"))
    writer.finish()
    reader = NetcdfReader("a.nc")
    assert {name: child.names for name, child in reader.tree.children.items()} == {
        "a": ("n",), "b": ("n_4",), "c": ("phony_dim_0",)}  # fmt: skip
    reader.close()


def test_fill_values_as_xarray_has_those_of_zarr():
    attributes = {"_FillValue": "AAAAAAAA+H8="}  # NaN
    writer = NetcdfWriter("a.nc")
    writer.create(GroupFacts({"x": ArrayFacts((3,), np.dtype("f4"), (2,), attributes=attributes)}))
    writer.finish()
    with h5py.File("a.nc") as file:
        assert np.isnan(file["x"].attrs["_FillValue"]) and file["x"].attrs["_FillValue"].dtype == "f4"
        assert np.isnan(file["x"].fillvalue) and np.isnan(file["x"][...]).all()


def test_netcdf_and_hdf5():
    a_full_file("a.nc")
    copy("a.nc", "b.h5", read=NetcdfReader, losses=[])
    with h5py.File("b.h5") as file:
        assert file["t2m"].dims[0][0] == file["time"] and [d.label for d in file["lat_bnds"].dims] == ["", ""]
        assert (file["inner/x"].dims[0][0] == file["time"]) and "_Netcdf4Dimid" not in file["time"].attrs
    copy("b.h5", "c.nc", read=Hdf5Reader, write=NetcdfWriter)
    one, two = NetcdfReader("a.nc"), NetcdfReader("c.nc")
    for name in ("time", "t2m", "lat", "lon"):
        assert (elements(one, name) == elements(two, name)).all()
        assert one.tree.children[name].names == two.tree.children[name].names
    one.close(), two.close()


def test_which_files_are_netcdf():
    a_full_file("a.nc")
    shutil.copy("a.nc", "a.h5")
    with h5py.File("b.h5", "w") as file:
        file["x"] = 1
    open("c.h5", "wb").write(b"CDF\x02" + bytes(50))
    open("d.h5", "w").write("text")
    assert all(map(is_netcdf, ("a.nc", "a.h5", "new.nc", "new.NC4", "x.netcdf", "c.h5")))
    assert not any(map(is_netcdf, ("b.h5", "d.h5", "new.h5", "new.zarr", ".")))
    with pytest.raises(StoreError, match="c.h5 is a NetCDF-3 file, which is no HDF5; convert it first: nccopy -k nc4"):
        NetcdfReader("c.h5")


def test_files_that_only_h5py_made():
    """Without dimension scales, or with some that are damaged."""
    with h5py.File("a.nc", "w") as file:
        file["x"], file["y"] = np.arange(6.0).reshape(2, 3), np.arange(3)
    copied("a.nc", "b.nc")
    reader = NetcdfReader("b.nc")
    assert reader.tree.children["x"].names == ("phony_dim_0", "phony_dim_1")
    assert reader.tree.children["y"].names == ("phony_dim_1",)
    reader.close()
    with h5py.File("a.nc", "r+") as file:
        file["n"] = 1
        file["n"].make_scale("n")
    with pytest.raises(StoreError, match="cannot read|has no extent"):
        NetcdfReader("a.nc")
