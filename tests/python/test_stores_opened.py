"""`longshore.open`, and `longshore info`, on stores of every format."""

import json
import tracemalloc

import longshore as ls
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore.cli import info as info_module
from longshore.cli.info import info
from longshore.errors import ArgumentError, ArgumentTypeError, LongshoreError, StoreError
from longshore.stores.array import ArrayFacts, ArrayReader, Grid, GroupFacts, LinkFacts, StoreReader
from longshore.stores.opened import StoredArray, StoredGroup
from longshore.stores.opened import open as ls_open
from store_files import dense_stores, tensors_file
from strategies import distinct, same


@pytest.fixture
def stores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dense_stores(tmp_path)
    return tmp_path


class Chunked(ArrayReader):
    """An array in chunks, in memory, some of which may be missing; it notes what is read."""

    def __init__(self, full, chunks, *, missing=(), fill=None, addressable=False):
        self.where, self.sparse, self.addressable = "memory/x", bool(missing), addressable
        self.facts = ArrayFacts(full.shape, full.dtype, chunks, codecs=("shuffle", "zstd:3"), fill=fill)
        self.grid, self._full, self._missing = Grid(full.shape, chunks), full, set(missing)
        self.read_chunks = []

    def read(self, index):
        self.read_chunks.append(index)
        return None if index in self._missing else index

    def decode(self, index, stored):
        return self._box(self.grid.start(index), self.grid.extents(index))

    def read_box(self, start, extents):
        assert all(0 <= a and n > 0 and a + n <= m for a, n, m in zip(start, extents, self._full.shape))
        self.read_chunks.append(tuple(a // c for a, c in zip(start, self.grid.chunks)))
        return self._box(start, extents)

    def _box(self, start, extents):
        return self._full[(..., *[slice(a, a + n) for a, n in zip(start, extents)])]


class Memory(StoreReader):
    """A store of such arrays."""

    format, path = "Memory", "memory"

    def __init__(self, tree, **arrays):
        self.tree, self.closed, self._arrays = tree, 0, arrays

    def array(self, path=""):
        return self._arrays[path.replace("/", "_") or "x"]

    def fingerprint(self):
        return ""

    def close(self):
        self.closed += 1


def opened(reader):
    return StoredArray(Memory(reader.facts, x=reader), "memory/x", "", reader.facts, True)


@st.composite
def keys(draw, shape):
    def one(n):
        if n and draw(st.integers(0, 2)) == 0:
            return draw(st.integers(-n, n - 1))
        ends = st.one_of(st.none(), st.integers(-n - 3, n + 3))
        step = draw(st.sampled_from([None, None, 1, 2, 3, 7, -1, -2, -5]))
        return slice(draw(ends), draw(ends), step)

    key = [one(n) for n in shape[: draw(st.integers(0, len(shape)))]]
    if draw(st.booleans()):
        after = draw(st.integers(0, len(key)))
        key[after:] = [Ellipsis, *[one(n) for n in shape[len(shape) - len(key[after:]) :]]]
    return key[0] if len(key) == 1 and draw(st.booleans()) else tuple(key)


@st.composite
def readings(draw):
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 3, 8, 13]), max_size=3)))
    return shape, [draw(st.integers(1, 6)) for _ in shape], draw(keys(shape)), draw(st.booleans())


@settings(max_examples=400, deadline=None)
@given(readings())
def test_read_is_numpys_slicing(case):
    shape, chunks, key, addressable = case
    full = distinct(shape, "i4")
    reader = Chunked(full, tuple(chunks), addressable=addressable)
    array, wanted = opened(reader), full[key]
    found = array.read(key)
    read_once = sorted(reader.read_chunks)
    assert isinstance(found, np.ndarray) and same(found, np.asarray(wanted))
    assert type(array[key]) is type(wanted) and np.array_equal(array[key], wanted)
    # No chunk without anything of it, and none twice.
    marked = np.zeros(shape, bool)
    marked[key] = True
    needed = {
        index
        for index in reader.grid.indices()
        if marked[tuple(slice(a, a + n) for a, n in zip(reader.grid.start(index), reader.grid.extents(index)))].any()
    }
    assert read_once == sorted(needed)


def test_read_regions():
    full = distinct((9, 7), "f8")
    array = opened(Chunked(full, (4, 3)))
    assert same(array.read(ls.Region((2, 3), (9, 5))), full[2:9, 3:5])
    assert same(array.read(), full) and same(np.asarray(array), full) and same(array.read(...), full)
    assert array.read(ls.Region((5, 5), (5, 7))).shape == (0, 2)
    assert [row[0] for row in array] == full[:, 0].tolist() and len(array) == 9
    assert np.asarray(array, "f4").dtype == np.float32
    with pytest.raises(IndexError, match=r"\[2, 10\) in dimension 0 lies beyond \[0, 9\) of memory/x"):
        array.read(ls.Region((2, 0), (10, 7)))
    with pytest.raises(IndexError, match="region of 1 dimensions"):
        array.read(ls.Region((2,), (3,)))
    with pytest.raises(ArgumentError, match="copy"):
        np.asarray(array, copy=False)


BAD_KEYS = [
    (9, IndexError, "index 9 is out of bounds for dimension 0 with extent 9"),
    ((0, -8), IndexError, "index -8 is out of bounds for dimension 1 with extent 7"),
    ((0, 0, 0), IndexError, "too many indices.* 2 dimensions, 3"),
    ((..., ...), IndexError, "single ellipsis"),
    (slice(0, 9, 0), ValueError, "step of the slice in dimension 0 is 0"),
    (slice(0, 9.5), TypeError, "dimension 0"),
    ("a", TypeError, "index in dimension 0 is 'a'"),
    (True, TypeError, "True"),
    ((0, None), TypeError, "index in dimension 1 is None"),
    ([0, 1], TypeError, "dimension 0"),
    (0.5, TypeError, "0.5"),
]


@pytest.mark.parametrize(("key", "error", "words"), BAD_KEYS)
def test_bad_indices(key, error, words):
    array = opened(Chunked(distinct((9, 7), "f8"), (4, 3)))
    with pytest.raises(error, match=words) as caught:
        array.read(key)
    assert isinstance(caught.value, ArgumentError)


def test_missing_chunks_are_the_fill_value():
    full = distinct((9, 7), ">f4")
    reader = Chunked(full, (4, 3), missing=[(1, 1), (2, 2)], fill=np.array(np.nan, ">f4").tobytes())
    array = opened(reader)
    wanted = full.copy()
    wanted[4:8, 3:6] = wanted[8:, 6:] = np.nan
    assert np.array_equal(array.read(), wanted, equal_nan=True)
    assert np.array_equal(array[::-3, 1::2], wanted[::-3, 1::2], equal_nan=True)
    assert np.isnan(array.fill) and array.chunks == (4, 3) and array.codecs == ("shuffle", "zstd:3")
    none = opened(Chunked(full, (4, 3), missing=[(0, 0)]))
    assert none.fill is None and not none[:4, :3].any()


def test_an_error_in_a_thread_comes_out():
    class Bad(Chunked):
        def decode(self, index, stored):
            if index == (1, 1):
                raise StoreError("chunk (1, 1) of memory/x cannot be decoded")
            return super().decode(index, stored)

    with pytest.raises(StoreError, match=r"chunk \(1, 1\)"):
        opened(Bad(distinct((9, 7), "f8"), (4, 3))).read()


def test_what_is_held_in_memory_is_bounded():
    """A strided read of an array that is larger than what may be held."""

    class Large(Chunked):
        def decode(self, index, stored):
            return np.full(self.grid.extents(index), index[0], "f8")

    reader = Large(np.broadcast_to(np.float64(0), (1 << 30, 2)), (1 << 13, 2))
    tracemalloc.start()
    found = opened(reader).read((slice(None, None, 1 << 22), 0))
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
    assert np.array_equal(found, np.arange(256) * 512) and len(reader.read_chunks) == 256


def test_open_arrays(stores):
    with ls_open("a.npy") as array:
        assert (
            array.shape == (3, 4)
            and array.dtype == np.float64
            and (array.ndim, array.size, array.nbytes) == (2, 12, 96)
        )
        assert array.chunks is None and array.shards is None and array.codecs == () and array.fill is None
        assert array.layout == ls.Layout("(*, *) on 1", (3, 4)) and array.names is None and dict(array.attributes) == {}
        assert same(array[1:, ::2], np.arange(12.0).reshape(3, 4)[1:, ::2])
    with ls_open("shards") as array:
        assert array.layout == ls.Layout("(BLOCK) on 2", (5,)) and array[3] == 3 and array.format == "shards"
    np.save("f.npy", np.asfortranarray(np.ones((2, 3))))
    np.save("one.npy", np.array(3.5))
    assert ls_open("f.npy").layout == ls.Layout("(*, *) on 1, order=F", (2, 3))
    one = ls_open("one.npy")
    assert one.layout is None and one[()] == 3.5 and one.read().shape == ()
    for mistake in (len, iter):
        with pytest.raises(TypeError, match="no dimensions"):
            list(mistake(one)) if mistake is iter else mistake(one)
    with pytest.raises(StoreError, match="none does not exist"):
        ls_open("none")


@pytest.mark.parametrize(
    "array",
    [
        np.array("ab"),
        np.array(b"ab"),
        np.array(3.5),
        np.array((1, 2), [("a", "i4"), ("b", "i4")]),
        np.array(b"1234567").view("V7"),
        np.array("2026-11-28", "M8[D]"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_open_arrays_without_dimensions(stores, array):
    np.save("one.npy", array)
    with ls_open("one.npy") as one:
        for found in (one.read(), one[...], np.asarray(one)):
            assert isinstance(found, np.ndarray) and same(found, array)
        assert type(one[()]) is type(array[()]) and one[()] == array[()]


def test_open_groups(stores):
    with ls_open("x.safetensors") as group:
        assert list(group) == ["layer.0.weight", "a/b"] and len(group) == 2 and "a/b" in group and "a" not in group
        assert same(group["a/b"].read(), np.arange(4)) and group["a/b"].where == "x.safetensors/a/b"
        with pytest.raises(KeyError, match="is it 'layer.0.weight'") as caught:
            group["layer.0.weights"]
        assert isinstance(caught.value, ArgumentError) and not str(caught.value).startswith(("'", '"'))
        with pytest.raises(TypeError, match="text"):
            group[0]


def zarr_store(path, full):
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(str(path), mode="w")
    made = root.create_array if hasattr(root, "create_array") else root.create_dataset
    made("u", shape=full.shape, chunks=(4, 3), dtype=full.dtype, fill_value=7)[:] = full
    root.attrs["title"] = "a store"


def hdf5_store(path, full):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=full, chunks=(4, 3), compression="gzip", fillvalue=7)
        file.attrs["title"] = "a store"


def netcdf_store(path, full):
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(path, "w") as file:
        file.title = "a store"
        for name, extent in zip("yx", full.shape):
            file.createDimension(name, extent)
        file.createVariable("u", full.dtype, ("y", "x"), chunksizes=(4, 3), fill_value=7)[:] = full


STORES = {"a.zarr": zarr_store, "b": zarr_store, "a.h5": hdf5_store, "c": hdf5_store, "a.nc": netcdf_store}


@pytest.mark.parametrize("name", STORES)
def test_open_stores_of_other_libraries(tmp_path, monkeypatch, name):
    """What zarr, h5py and netCDF4 have written is recognised and read, with and without a name that says what it is."""
    monkeypatch.chdir(tmp_path)
    full = distinct((9, 7), "i4")
    STORES[name](tmp_path / name, full)
    with ls_open(name) as group:
        assert list(group) == ["u"] and group.attributes["title"] == "a store"
        array = group["u"]
        assert array.chunks == (4, 3) and array.fill == 7 and array.layout == ls.Layout("(*, *) on 1", (9, 7))
        assert same(array[::-2, 2:6], full[::-2, 2:6])
    for typed in (f"{name}/u", f"{name}::u", f"{name}::/u"):
        with ls_open(typed) as array:
            assert same(array.read(), full)
    for typed in (f"{name}/v", f"{name}::u/v"):
        with pytest.raises(LongshoreError, match="v"):
            ls_open(typed)
    told = json.loads(CliRunner().invoke(info, [name, "--json"], catch_exceptions=False).stdout)
    (array,) = told["arrays"]
    assert array["chunks"] == [4, 3] and array["fill"] == 7 and array["memory_bytes"] == full.nbytes
    assert 0 < told["stored_bytes"] < 4096 and told["attributes"] == 1


def nested():
    u = Chunked(distinct((9, 7), "f8"), (4, 3))
    odd = ArrayFacts((3,), None, type_name="variable \x1b[31mtext")
    inner = GroupFacts({"u": u.facts, "a/b": u.facts}, {"k": 1})
    tree = GroupFacts(
        {"g": GroupFacts({"h": inner}, {}), "odd": odd, "link": LinkFacts("soft", "/g"), "u": u.facts},
        {"title": "x"},
        {"time": (9, True)},
    )
    return Memory(tree, u=u, g_h_u=u, g_h_a_b=u)


def test_groups_are_mappings():
    store = nested()
    with StoredGroup(store, "memory", "", store.tree, True) as group:
        assert list(group) == ["g", "odd", "u"] and len(group) == 3 and dict(group.attributes) == {"title": "x"}
        assert list(group.links) == ["link"] and group.dimensions == {"time": (9, True)}
        for path in ("g/h/u", "/g/h/u/", "g/h/a/b"):
            assert group[path].shape == (9, 7) and path in group
        assert group["g"]["h"]["u"].where == "memory/g/h/u" == group["g/h"]["u"].where
        assert same(group["g"]["h/a/b"].read(), distinct((9, 7), "f8"))
        for name in ("g/x", "h", "u/x", "", "link/x", "link"):
            assert name not in group
        with pytest.raises(KeyError, match="soft link to /g"):
            group["link/h"]
        with pytest.raises(StoreError, match="text, which are not read"):
            group["odd"].read()
        group["g"].close()
        assert store.closed == 0
    assert store.closed == 1


# -- info -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def call(stores):
    def call(*words):
        done = CliRunner().invoke(info, list(words), catch_exceptions=False)
        assert done.exit_code == 0
        return done.stdout

    return call


def test_info_of_an_array(call):
    told = json.loads(call("shards/", "--json"))
    (array,) = told["arrays"]
    assert told["kind"] == "array" and told["format"] == "shards" and told["path"] == "shards/"
    assert array == {
        "name": "",
        "shape": [5],
        "dtype": "int32",
        "type_name": None,
        "movable": True,
        "order": "C",
        "chunks": None,
        "shards": None,
        "codecs": [],
        "layout": "(BLOCK) on 2",
        "names": None,
        "unlimited": [],
        "fill": None,
        "attributes": 0,
        "stored_bytes": 20,
        "memory_bytes": 20,
    }
    assert told["stored_bytes"] == told["memory_bytes"] == 20
    said = call("a.npy")
    assert "a.npy: an array (.npy)" in said and "3 x 4" in said and "float64" in said and "96 B" in said


def test_info_of_a_group(call):
    told = json.loads(call("x.safetensors", "--json"))
    assert [array["name"] for array in told["arrays"]] == ["layer.0.weight", "a/b"]
    assert told["kind"] == "group" and told["stored_bytes"] == 24 + 32 and told["links"] == []
    lines = call("x.safetensors").splitlines()
    assert "2 arrays" in lines[0] and len(lines) == 4
    assert lines[1].split() == ["array", "shape", "type", "stored", "in", "memory"]
    assert lines[2].split() == ["layer.0.weight", "2", "x", "3", "float32", "24", "B", "24", "B"]
    one = json.loads(call("x.safetensors::a/b", "--json"))
    assert one["kind"] == "array" and one["arrays"][0]["shape"] == [4]


def test_info_tells_of_links_and_of_what_cannot_be_moved(call, monkeypatch):
    monkeypatch.setattr("longshore.stores.opened.open_reader", lambda place: nested())
    told = json.loads(call("a.npy", "--json"))
    assert told["links"] == [{"name": "link", "kind": "soft", "target": "/g"}]
    assert {"name": "g/h", "attributes": 1} in told["groups"] and told["stored_bytes"] is None
    assert told["dimensions"] == {"time": {"extent": 9, "unlimited": True}}
    by_name = {array["name"]: array for array in told["arrays"]}
    assert set(by_name) == {"g/h/u", "g/h/a/b", "odd", "u"}
    assert by_name["odd"]["movable"] is False and by_name["odd"]["dtype"] is by_name["odd"]["memory_bytes"] is None
    assert by_name["u"]["chunks"] == [4, 3] and by_name["u"]["codecs"] == ["shuffle", "zstd:3"]
    said = call("a.npy")
    assert "link link: soft, to /g" in said and "not movable" in said and "dimension time: 9, unlimited" in said
    assert "\x1b" not in said and "group g/h: 1 attribute" in said and "shuffle, zstd:3" in said


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.float32(1.5), 1.5),
        (np.float64("nan"), "nan"),
        (np.float64("-inf"), "-inf"),
        (np.int8(-3), -3),
        (np.bool_(True), True),
        (np.complex64(1 + 2j), "(1+2j)"),
        (np.bytes_(b"a\xff"), "aÿ"),
        (np.datetime64("2000-01-01"), "2000-01-01"),
        (np.frombuffer(b"\x01\x02", "V2")[0], "0x0102"),
        (np.zeros(1, "i2,f4")[0], "(0, 0.0)"),
        (np.longdouble(0.5), "0.5"),
    ],
)
def test_fill_values_in_json(value, told):
    assert info_module._plain_value(value) == told
    json.dumps(info_module._plain_value(value), allow_nan=False)


def test_info_of_many_arrays_is_cut(stores, call):
    tensors_file(stores / "many.safetensors", **{f"t{k}": np.zeros(1, "f4") for k in range(300)})
    lines = call("many.safetensors").splitlines()
    assert len(lines) == 203 and "100 more" in lines[-1]
    assert len(json.loads(call("many.safetensors", "--json"))["arrays"]) == 300


def test_another_dimension_is_no_index(tmp_path):
    """NumPy's None would make one."""
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(2, 3))
    with ls.open(tmp_path / "a.npy") as array:
        with pytest.raises(ArgumentTypeError, match="dimension 0 is None; it must be an integer"):
            array[None]
        assert (array.read(None) == np.load(tmp_path / "a.npy")).all()
