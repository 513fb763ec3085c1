"""Sources at URLs, of formats other than Zarr: in fsspec's memory, on a web server and an S3 server of this machine."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import longshore as ls
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from longshore.errors import ArgumentError, LongshoreError, NotInstalledError, StoreError
from longshore.stores.places import open_reader, parse_place
from s3_server import empty_bucket
from web_server import serving

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
h5py = pytest.importorskip("h5py")

ARRAY = np.random.default_rng(1).integers(0, 50, (40, 30)).astype("f4")
_numbers = itertools.count()


# -- sources ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a source of every kind, all of the same elements."""
    folder = tmp_path_factory.mktemp("sources")
    np.save(folder / "a.npy", ARRAY)
    np.save(folder / "f.npy", np.asfortranarray(ARRAY))
    np.save(folder / "noname", ARRAY)
    (folder / "noname.npy").rename(folder / "noname")
    ls.move(folder / "a.npy", folder / "shards", "(BLOCK, CYCLIC) on 2x2")
    ls.move(folder / "a.npy", folder / "x.safetensors::w")
    with h5py.File(folder / "run.h5", "w", userblock_size=512) as file:
        file.attrs["title"] = "a run"
        group = file.create_group("g")
        group.create_dataset("chunked", data=ARRAY, chunks=(16, 8), compression="gzip", shuffle=True, fletcher32=True)
        group.create_dataset("plain", data=ARRAY)
        space = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        space.set_layout(h5py.h5d.COMPACT)
        compact = h5py.h5d.create(group.id, b"compact", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple(ARRAY.shape), space)
        compact.write(h5py.h5s.ALL, h5py.h5s.ALL, ARRAY)
        group["soft"] = h5py.SoftLink("/g/chunked")
        group["out"] = h5py.ExternalLink("other.h5", "/g/chunked")
        group["over"] = h5py.SoftLink("/g/out")
        group["round"] = h5py.SoftLink("/g/round")
        group.create_dataset("text", data=["one", "two"], dtype=h5py.string_dtype())
        group.create_dataset("references", data=[group["chunked"].ref], dtype=h5py.ref_dtype)
    with h5py.File(folder / "other.h5", "w") as file:
        file["g/chunked"] = ARRAY
    with h5py.File(folder / "by-library.h5", "w") as file:
        file.create_dataset("u", data=ARRAY, chunks=(16, 8), scaleoffset=2)
    with h5py.File(folder / "a.nc", "w") as file:
        for name, extent in (("y", 40), ("x", 30)):
            file[name] = np.arange(float(extent))
            file[name].make_scale(name)
        file.create_dataset("u", data=ARRAY, chunks=(16, 8), compression="gzip")
        for d, name in enumerate(("y", "x")):
            file["u"].dims[d].attach_scale(file[name])
        file.attrs["_NCProperties"] = "version=2"
    shutil.copy(folder / "a.nc", folder / "nc-by-content")
    checkpoint = folder / "checkpoint"
    ls.move(folder / "a.npy", folder / "one.safetensors::w")
    ls.move(folder / "f.npy", folder / "two.safetensors::v")
    checkpoint.mkdir()
    for name in ("one.safetensors", "two.safetensors"):
        (folder / name).rename(checkpoint / name)
    index = {"metadata": {}, "weight_map": {"w": "one.safetensors", "v": "two.safetensors"}}
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "single").mkdir()
    shutil.copy(folder / "x.safetensors", folder / "single" / "model.safetensors")
    return folder


KINDS = {
    "a.npy": ".npy",
    "f.npy": ".npy",
    "noname": ".npy",
    "shards": "shards",
    "x.safetensors::w": "safetensors",
    "checkpoint::w": "safetensors",
    "checkpoint::v": "safetensors",
    "checkpoint/model.safetensors.index.json::v": "safetensors",
    "single::w": "safetensors",
    "run.h5::/g/chunked": "HDF5",
    "run.h5/g/chunked": "HDF5",
    "by-library.h5::u": "HDF5",
    "run.h5::/g/plain": "HDF5",
    "run.h5::/g/compact": "HDF5",
    "run.h5::/g/soft": "HDF5",
    "a.nc::u": "NetCDF-4",
    "nc-by-content::u": "NetCDF-4",
}


def uploaded(folder, url):
    """Copies what is in a folder to a URL."""
    fs, root = fsspec.core.url_to_fs(url)
    for path in folder.rglob("*"):
        if path.is_file():
            fs.pipe_file(f"{root}/{path.relative_to(folder)}", path.read_bytes())
    fs.invalidate_cache()
    return url


@pytest.fixture(scope="module")
def memory(made):
    return uploaded(made, "memory://read-sources")


@pytest.fixture(scope="module")
def web(made):
    with serving(made) as (url, _):
        yield url


@pytest.fixture(scope="module")
def bucket(made):
    with empty_bucket("longshore-sources") as url:
        yield uploaded(made, f"{url}/d")


@pytest.fixture(params=["memory", "web", "bucket"])
def base(request):
    return request.getfixturevalue(request.param)


# -- every format at every place --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_every_format_is_read(base, name, tmp_path):
    with ls.open(f"{base}/{name}") as opened:
        assert opened.format == KINDS[name] and opened.shape == ARRAY.shape
        np.testing.assert_array_equal(opened.read(), ARRAY)
        np.testing.assert_array_equal(opened[5:39:7, 29:3:-2], ARRAY[5:39:7, 29:3:-2])
    told = ls.move(f"{base}/{name}", tmp_path / "a.npy", verify=True, lossy=True)
    assert told.verified
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), ARRAY)
    ls.move(
        f"{base}/{name}", tmp_path / "b.h5::/u", chunks=(7, 11), axes=(1, 0), codecs=(), max_mem="64MiB", lossy=True
    )
    with h5py.File(tmp_path / "b.h5") as file:
        np.testing.assert_array_equal(file["u"][...], ARRAY.T)
    parts = ls.load(f"{base}/{name}", "(BLOCK, *) on 2")
    np.testing.assert_array_equal(np.concatenate([parts[rank] for rank in (0, 1)]), ARRAY)


@pytest.mark.parametrize("name", ["checkpoint", "run.h5", "a.nc", "x.safetensors", "run.h5::/g"])
def test_groups_are_moved_and_are_what_they_are_on_a_disk(base, made, name, tmp_path):
    words = {} if name == "a.nc" else {"lossy": True}
    suffix = {"a.nc": "nc", "run.h5": "h5", "run.h5::/g": "h5"}.get(name, "zarr")
    ls.move(f"{base}/{name}", tmp_path / f"url.{suffix}", **words)
    ls.move(made / name, tmp_path / f"disk.{suffix}", **words)
    with ls.open(tmp_path / f"url.{suffix}") as ours, ls.open(tmp_path / f"disk.{suffix}") as theirs:
        compare(ours, theirs)
    with ls.open(f"{base}/{name}") as ours, ls.open(made / name) as theirs:
        compare(ours, theirs)
    if name == "run.h5":
        with h5py.File(tmp_path / "url.h5") as file:
            assert file["g/text"].asstr()[...].tolist() == ["one", "two"] and file.attrs["title"] == "a run"
            assert file[file["g/references"][0]].name == "/g/chunked"


def compare(ours, theirs):
    """Two groups hold the same."""
    assert list(ours) == list(theirs) and ours.links.keys() == theirs.links.keys()
    assert dict(ours.attributes) == dict(theirs.attributes)
    for name, child in ours.items():
        if isinstance(child, type(ours)):
            compare(child, theirs[name])
        elif child.facts.dtype is not None:
            assert child.facts.shape == theirs[name].facts.shape and child.codecs == theirs[name].codecs
            np.testing.assert_array_equal(child.read(), theirs[name].read())


def cli(*words):
    return subprocess.run(
        [sys.executable, "-m", "longshore.cli", *map(str, words)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", ["a.npy", "shards", "checkpoint", "run.h5", "a.nc::u"])
def test_commands_take_them(web, name, tmp_path):
    told = cli("info", f"{web}/{name}", "--json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["arrays"][0]["shape"] == [40, 30]
    if name in ("a.npy", "shards", "a.nc::u"):
        moved = cli("move", f"{web}/{name}", tmp_path / "b.npy", "--verify", "--lossy")
        assert moved.returncode == 0, moved.stderr
        np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), ARRAY)


def test_groups_of_shards(tmp_path, made):
    with h5py.File(tmp_path / "g.h5", "w") as file:
        file["p/u"], file["p/one"], file["v"] = ARRAY, np.float64(3), ARRAY[:5]
    ls.move(tmp_path / "g.h5", tmp_path / "g", "(BLOCK, *) on 2")
    base = uploaded(tmp_path / "g", "memory://read-groups/g")
    with ls.open(base) as ours, ls.open(tmp_path / "g") as theirs:
        compare(ours, theirs)
    for name in ("/p/u", "::p/u"):
        with ls.open(base + name) as opened:
            np.testing.assert_array_equal(opened.read(), ARRAY)
    with serving(tmp_path) as (url, _):
        with ls.open(f"{url}/g/p/u") as opened:
            np.testing.assert_array_equal(opened.read(), ARRAY)
        with pytest.raises(LongshoreError):
            ls.open(f"{url}/g")  # a web server does not say what is in it


def test_a_signed_url_keeps_its_query_and_tells_nobody(web, tmp_path):
    for name in ("a.npy?X=secret/../x", "shards?sig=secret", "checkpoint?sig=secret::w", "run.h5?sig=secret::g/plain"):
        with ls.open(f"{web}/{name}") as opened:
            np.testing.assert_array_equal(opened.read(), ARRAY)
            assert "secret" not in opened.where
    with pytest.raises(LongshoreError) as caught:
        ls.open(f"{web}/none.npy?sig=secret")
    assert "secret" not in str(caught.value) and "none.npy" in str(caught.value)


def test_passwords_are_in_no_message(made):
    with serving(made) as (url, handler):
        there = url.replace("http://", "http://me:secret@")
        for name in ("a.npy", "shards", "checkpoint::w", "run.h5::g/chunked", "a.nc::u"):
            with ls.open(f"{there}/{name}") as opened:
                np.testing.assert_array_equal(opened.read(), ARRAY)
                assert "secret" not in f"{opened.where} {opened!r}"
            told = ls.move(f"{there}/{name}", made.parent / "none.npy", dry_run=True, lossy=True)
            assert "secret" not in str(told) + repr(told)
        handler.cut = 1
        for name in ("a.npy", "shards", "checkpoint::w", "run.h5::g/chunked", "a.nc::u", "none", "run.h5::nothing"):
            with pytest.raises(LongshoreError) as caught:
                ls.open(f"{there}/{name}")
            assert "secret" not in str(caught.value)
    for name in ("a.npy", "run.h5", "shards", "x.safetensors"):
        with pytest.raises(LongshoreError) as caught:
            ls.open(f"https://me:secret@127.0.0.1:1/{name}")
        assert "me@127.0.0.1" in str(caught.value) and "secret" not in str(caught.value)


def test_what_is_not_installed_is_named(monkeypatch):
    for library in ("fsspec", "obstore"):
        monkeypatch.setitem(sys.modules, library, None)
    for name in ("a.npy", "run.h5::u", "x.safetensors", "folder"):
        with pytest.raises(NotInstalledError, match=r"needs .*pip install 'longshore\[cloud\]'"):
            ls.open(f"s3://bucket/{name}")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("none.npy", StoreError, "none.npy does not exist"),
        ("none.h5/g", StoreError, "no Zarr group"),
        ("none", StoreError, "no Zarr group"),
        ("run.h5::/g/none", StoreError, "has no"),
        ("run.h5::/g/out", StoreError, r"leads to another file, other\.h5"),
        ("run.h5::/g/over", StoreError, r"leads to another file, other\.h5"),
        ("run.h5::/g/round", StoreError, "more than 64 links"),
        ("a.npy::u", ArgumentError, "one array without a name"),
        ("x.safetensors::none", ArgumentError, "no tensor"),
        ("checkpoint::none", ArgumentError, "no tensor"),
    ],
)
def test_what_is_not_there(base, name, error, message):
    with pytest.raises(error, match=message):
        ls.open(f"{base}/{name}").read()


def test_what_is_damaged_or_of_another_format(tmp_path):
    base = f"memory://read-damaged-{next(_numbers)}"
    fs = fsspec.filesystem("memory")
    buffer = io.BytesIO()
    np.savez(buffer, a=ARRAY)
    for name, data, message in (
        ("a.npz", buffer.getvalue(), "ZIP"),
        ("a.nc", b"CDF\x01" + bytes(40), "nccopy"),
        ("a.npy", b"\x93NUMPY\x01\x00\xff\xff", "ends inside its header"),
        ("b.npy", b"", "is empty|missing"),
        ("text", b"hello", "is not a Zarr store, an HDF5"),
        ("a.safetensors", b"\xff" * 30, "claims"),
        ("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(90), "cannot open"),
        ("s/layout.json", b"[" * 5000, "layout.json cannot be used"),
        ("i/model.safetensors.index.json", b'{"weight_map": {"a": "../b.safetensors"}}', "no plain file name"),
    ):
        fs.pipe_file(f"/{base.partition('://')[2]}/{name}", data)
        with pytest.raises(StoreError, match=message):
            ls.open(f"{base}/{name.partition('/')[0]}")


# -- servers that err -------------------------------------------------------------------------------------------------

NAMES = ["a.npy", "shards", "checkpoint::w", "run.h5::/g/chunked", "run.h5::/g/plain", "a.nc::u"]


@pytest.fixture
def erring(made):
    with serving(made) as served:
        yield served


@pytest.mark.parametrize("name", ["shards", "checkpoint::w", "checkpoint", "single::w"])
def test_a_server_that_has_pages_for_folders(erring, name):
    url, handler = erring
    handler.lists_folders = True
    with ls.open(f"{url}/{name}") as opened:
        np.testing.assert_array_equal((opened["w"] if name == "checkpoint" else opened).read(), ARRAY)
    assert any(path.split("/")[-1] == name.partition("::")[0] for path, _ in handler.asked)
    with pytest.raises(LongshoreError):
        ls.open(f"{url}/")


@pytest.mark.parametrize("name", NAMES)
def test_a_server_without_ranges_is_refused_and_sends_little(erring, name):
    url, handler = erring
    handler.ranges = False
    with pytest.raises(StoreError, match="sends the whole file where a part of it is asked for; copy the file"):
        ls.open(f"{url}/{name}").read()


def test_a_busy_server_is_named_by_the_file(erring, monkeypatch):
    from longshore.stores import object_places

    monkeypatch.setattr(object_places, "_FIRST_WAIT", 0.001)
    url, handler = erring
    handler.busy = 1000
    with pytest.raises(StoreError, match=r"cannot look at http\S*/run.h5: 503"):
        ls.open(f"{url}/run.h5::g/chunked")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", [{"cut": 1}, {"cut": 10_000}, {"more": b"x"}, {"shift": 4}])
def test_servers_that_send_something_else_are_errors(erring, name, fault):
    url, handler = erring
    opened = ls.open(f"{url}/{name}")
    for key, value in fault.items():
        setattr(handler, key, value)
    with pytest.raises(StoreError, match="server"):
        opened.read()
    with pytest.raises(LongshoreError):
        ls.open(f"{url}/{name}").read()
    opened.close()


@pytest.mark.parametrize("name", NAMES)
def test_what_changes_while_it_is_read_is_noticed(made, name, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "s")
    file = tmp_path / "s" / name.partition("::")[0]
    file = {"shards": file / "rank-00003.npy", "checkpoint": file / "one.safetensors"}.get(file.name, file)
    from longshore.stores import moving_chunks

    plain = moving_chunks._Job._copy_others

    def change(self, writer):
        os.utime(file, ns=(1, 1))
        return plain(self, writer)

    monkeypatch.setattr(moving_chunks._Job, "_copy_others", change)
    with serving(tmp_path / "s") as (url, _), pytest.raises(StoreError, match="has been changed while it was read"):
        ls.move(f"{url}/{name}", tmp_path / "out.npy", lossy=True)
    assert sorted(os.listdir(tmp_path)) == ["s"]


def test_a_file_that_changes_below_an_open_reader_is_noticed(made, tmp_path):
    shutil.copy(made / "run.h5", tmp_path)
    with serving(tmp_path) as (url, _), ls.open(f"{url}/run.h5::g/chunked") as opened:
        os.utime(tmp_path / "run.h5", ns=(1, 1))
        with pytest.raises(StoreError, match="has been changed"):
            opened.read()


@pytest.mark.parametrize("name", ["a.npy", "shards", "checkpoint::w", "x.safetensors::w"])
@pytest.mark.parametrize("kind", ["memory", "web", "bucket"])
def test_a_file_that_takes_the_place_of_an_opened_one_is_noticed(kind, name, made, tmp_path):
    """Parts of both would make an array that nobody has written."""
    place = tmp_path / "s"
    shutil.copytree(made, place)
    with contextlib.ExitStack() as held:
        if kind == "web":
            url = held.enter_context(serving(place))[0]
        else:
            root = f"memory://replaced-{next(_numbers)}"
            url = uploaded(
                place, held.enter_context(empty_bucket(f"replaced-{next(_numbers)}")) if kind == "bucket" else root
            )
        opened = held.enter_context(ls.open(f"{url}/{name}"))
        time.sleep(0.01)
        changed = [path for path in place.rglob("*") if path.suffix in (".npy", ".safetensors")]
        for path in changed:
            path.write_bytes(path.read_bytes()[:-1] + b"?")
            os.utime(path, ns=(1, 1))
        if kind != "web":
            uploaded(place, url)
        with pytest.raises(StoreError, match=r"(npy|safetensors) has been changed while it was read"):
            opened.read()


def test_a_change_in_memory_is_noticed(made, tmp_path, monkeypatch):
    from longshore.stores import moving_chunks

    base = uploaded(made, f"memory://read-changing-{next(_numbers)}")
    plain = moving_chunks._Job._copy_others

    def change(self, writer):
        time.sleep(0.01)
        fsspec.filesystem("memory").pipe_file(f"{base.partition('://')[2]}/a.npy", (made / "a.npy").read_bytes())
        return plain(self, writer)

    monkeypatch.setattr(moving_chunks._Job, "_copy_others", change)
    with pytest.raises(StoreError, match="has been changed while it was read"):
        ls.move(f"{base}/a.npy", tmp_path / "out.h5::u")


# -- executors, kills -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_executors_move_them(web, name, tmp_path):
    from executors import processes

    with processes(2) as executor:
        ls.move(f"{web}/{name}", tmp_path / "out.zarr", chunks=(7, 30), executor=executor, verify=True, lossy=True)
    with ls.open(tmp_path / "out.zarr") as opened:
        np.testing.assert_array_equal(opened.read(), ARRAY)


@pytest.mark.parametrize("name", NAMES)
def test_places_are_pickled(memory, name):
    place = parse_place(f"{memory}/{name}", destination=False)
    reader = open_reader(pickle.loads(pickle.dumps(place)))
    array = reader.array("")
    first = tuple(map(slice, array.grid.extents((0, 0))))
    np.testing.assert_array_equal(array.decode((0, 0), array.read((0, 0))), ARRAY[first])
    assert reader.fingerprint() == reader.fingerprint()
    reader.close()


def test_a_killed_move_goes_on(tmp_path):
    big = np.random.default_rng(2).integers(0, 1 << 30, (512, 256, 16), dtype=np.int32)
    (tmp_path / "s").mkdir()
    with h5py.File(tmp_path / "s/a.h5", "w") as file:
        file.create_dataset("u", data=big, chunks=(8, 64, 16))
    with serving(tmp_path / "s") as (url, _):
        words = ["move", f"{url}/a.h5::u", tmp_path / "b.zarr", "--chunks", "4x32x16", "--threads", "1", "--resume"]
        process = subprocess.Popen([sys.executable, "-m", "longshore.cli", *map(str, words)], stderr=subprocess.DEVNULL)
        while process.poll() is None and not any(path.stat().st_size > 28 * 80 for path in tmp_path.glob(".*.journal")):
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL and not (tmp_path / "b.zarr").exists()
        done = cli(*words, "--json", "--verify")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["resumed_chunks"] > 0
    with ls.open(tmp_path / "b.zarr") as opened:
        np.testing.assert_array_equal(opened.read(), big)


# -- threads -----------------------------------------------------------------------------------------------------------


def test_threads_open_files_with_user_blocks_at_once(made, memory):
    from longshore.stores import hdf5_files

    places = [str(made / "run.h5"), f"{memory}/run.h5"]

    def read(number):
        hdf5_files._forgets_user_blocks.cache_clear()
        with ls.open(f"{places[number % 2]}::g/chunked") as opened:
            return bool((opened.read() == ARRAY).all())

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(read, range(40)))


def test_chunks_are_read_by_their_own_ranges_side_by_side(made):
    """Of a chunked dataset nothing is asked for twice, and chunks not through the library."""
    with serving(made) as (url, handler), ls.open(f"{url}/run.h5::g/chunked") as opened:
        array = opened._open_reader()
        del handler.asked[:]
        with ThreadPoolExecutor(4) as pool:
            chunks = list(pool.map(array.read, array.grid.indices()))
        ranges = [asked for _, asked in handler.asked]
        assert len(ranges) == len(set(ranges)) == len(chunks) == 12


# -- a disk and a URL -----------------------------------------------------------------------------------------------

SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_readers_are_the_same_of_a_disk_and_of_a_url(tmp_path_factory, data):
    shape = data.draw(SHAPES)
    dtype = data.draw(st.sampled_from(["<i2", ">f4", "<f8", "|u1"]))
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    folder = tmp_path_factory.mktemp("readers")
    kind = data.draw(st.sampled_from(["a.npy", "shards", "a.safetensors::w", "a.h5::u", "a.nc::u"]))
    np.save(folder / "source.npy", array if data.draw(st.booleans()) else np.asfortranarray(array))
    words = {}
    if kind == "shards":
        dealt = [data.draw(st.sampled_from(["BLOCK", "CYCLIC", "CYCLIC(2)"])) for _ in shape]
        grid = [str(data.draw(st.integers(1, 3))) for _ in shape]
        words["to"] = f"({', '.join(dealt)}) on {'x'.join(grid)}"
    if kind in ("a.h5::u", "a.nc::u") and data.draw(st.booleans()):
        words["chunks"] = tuple(data.draw(st.integers(1, n)) for n in shape)
        words["codecs"] = data.draw(st.sampled_from([(), ("gzip:1",), ("shuffle", "gzip:1")]))
    (folder / "out").mkdir()
    ls.move(folder / "source.npy", folder / "out" / kind, **words)
    base = uploaded(folder / "out", f"memory://read-readers-{next(_numbers)}")
    with ls.open(folder / "out" / kind) as theirs, ls.open(f"{base}/{kind}") as ours:
        assert ours.facts == theirs.facts and ours.layout == theirs.layout
        region = tuple(slice(*sorted((data.draw(st.integers(0, n)), data.draw(st.integers(0, n))))) for n in shape)
        assert ours.read(region).tobytes() == theirs.read(region).tobytes()
        np.testing.assert_array_equal(ours.read(region), array[region])
