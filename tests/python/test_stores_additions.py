"""Arrays and groups that are added to HDF5 and NetCDF files that are there: all else in the file stays as it is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import longshore as ls
import numpy as np
import pytest
from longshore.errors import LongshoreError, StoreError
from longshore.stores import hdf5_additions
from longshore.stores.hdf5_chunks import allocated_end
from test_stores_netcdf import a_full_file as a_full_netcdf

h5py = pytest.importorskip("h5py")

U = np.random.default_rng(5).normal(size=(24, 30, 17)).astype("f4")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("u.npy", U)


def full_file(path="run.h5", **options):
    """An HDF5 file with something of everything."""
    with h5py.File(path, "w", **options) as file:
        file.attrs["title"] = "mine"
        lat, v = file.create_dataset("lat", data=np.arange(30.0)), None
        lat.make_scale("latitude")
        v = file.create_dataset("fields/v", data=U, chunks=(5, 30, 4), compression="gzip", shuffle=True)
        v.attrs["unit"] = "m/s"
        v.dims[1].attach_scale(lat)
        file.create_dataset("fields/grows", data=U[:3], maxshape=(None, 30, 17), fletcher32=True)
        file.create_dataset("fields/old", data=U[0]).dims[0].attach_scale(lat)
        file["plain"], file["texts"] = U, ["a", "", "ccc"]
        file["pairs"] = np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])
        file["type"] = np.dtype([("a", "i4")])
        file["references"] = np.array([file["plain"].ref, v.ref], h5py.ref_dtype)
        file["fields"].attrs["of"] = v.ref
        file["same"], file["soft"] = file["plain"], h5py.SoftLink("/fields/v")
        file["out"], file["dangling"] = h5py.ExternalLink("other.h5", "/g"), h5py.SoftLink("/none")
        file.create_group("empty/within")
    return path


def content(path):
    """All that an HDF5 file holds, as texts and bytes."""

    def plain(value, file):
        if isinstance(value, h5py.Reference):
            return file[value].name if value else None
        if isinstance(value, np.ndarray) and value.dtype.hasobject:
            return [plain(one, file) for one in value.reshape(-1).tolist()]
        if isinstance(value, tuple):
            return [plain(one, file) for one in value]
        return value.tobytes() if isinstance(value, (np.ndarray, np.generic)) else value

    def look(group, where, file):
        yield where, sorted((name, plain(value, file)) for name, value in group.attrs.items())
        for name in group:
            link, below = group.get(name, getlink=True), f"{where}{name}"
            if not isinstance(link, h5py.HardLink):
                yield below, (type(link).__name__, link.path)
                continue
            found = group[name]
            if isinstance(found, h5py.Group):
                yield from look(found, below + "/", file)
                continue
            yield below, (str(found.dtype), h5py.h5g.get_objinfo(found.id).objno)
            if isinstance(found, h5py.Dataset):
                attributes = sorted((key, plain(value, file)) for key, value in found.attrs.items())
                form = (found.shape, found.maxshape, found.chunks, found.compression, found.shuffle, found.fletcher32)
                yield below + " ", (form, attributes, plain(found[()], file))

    with h5py.File(path, "r") as file:
        return dict(look(file, "/", file))


def only_this_is_new(before, after, *names):
    """Asserts that a file holds what it held, and these."""
    assert {key: value for key, value in after.items() if key.strip().rstrip("/") not in names} == before


def raw(path="run.h5"):
    with open(path, "rb") as file:
        return file.read()


@pytest.mark.parametrize(
    "options",
    [{}, {"userblock_size": 512}, {"libver": "latest"}, {"track_order": True}, {"fs_strategy": "page"}],
    ids=lambda options: "".join(options) or "plain",
)
@pytest.mark.parametrize(
    "words", [{}, {"chunks": (24, 8, 8), "codecs": ("shuffle", "gzip:1")}], ids=["whole", "chunks"]
)
def test_a_file_keeps_everything_else(options, words):
    full_file(**options)
    os.chmod("run.h5", 0o640)
    before, bits, size = content("run.h5"), raw(), os.path.getsize("run.h5")
    planned = ls.move("u.npy", "run.h5::/fields/deep/u", dry_run=True, **words)
    assert planned.predicted["bytes_copied"] == size and planned.bytes_copied == 0
    assert raw() == bits and sorted(os.listdir()) == ["run.h5", "u.npy"]
    told = ls.move("u.npy", "run.h5::/fields/deep/u", verify=True, **words)
    assert told.bytes_copied == size and told.verified
    only_this_is_new(before, content("run.h5"), "/fields/deep", "/fields/deep/u")
    with h5py.File("run.h5") as file:
        made = file["fields/deep/u"]
        assert (made[...] == U).all() and made.chunks == words.get("chunks")
        assert file.userblock_size == options.get("userblock_size", 0)
    assert os.stat("run.h5").st_mode & 0o777 == 0o640 and sorted(os.listdir()) == ["run.h5", "u.npy"]


def test_the_command_tells_what_it_copies():
    full_file()
    words = [sys.executable, "-m", "longshore.cli", "move", "u.npy", "run.h5::/u", "--chunks", "8x8x8"]
    for more in (["--dry-run"], []):
        done = subprocess.run([*words, *more], capture_output=True, text=True)
        assert done.returncode == 0 and "of the file that this is added to" in done.stdout, done.stderr
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2 and "run.h5::/u exists already" in done.stderr and "--force" in done.stderr


def test_force_replaces_a_dataset_and_nothing_else():
    full_file()
    before = content("run.h5")
    ls.move("u.npy", "run.h5::/fields/old", force=True, chunks=(8, 8, 8))
    after = content("run.h5")
    with h5py.File("run.h5") as file:
        assert (file["fields/old"][...] == U).all()
        assert [file[to].name for to, _ in file["lat"].attrs["REFERENCE_LIST"]] == ["/fields/v"]
    changed = ("/fields/old", "/lat")
    rest = [{k: v for k, v in each.items() if k.strip() not in changed} for each in (before, after)]
    assert rest[0] == rest[1]
    with h5py.File("run.h5", "r+") as file:
        file["fields/second"] = file["fields/v"]
    ls.move("u.npy", "run.h5::/fields/second", force=True)
    with h5py.File("run.h5") as file:
        assert file["fields/v"].dims[1][0] == file["lat"] and file["fields/second"].chunks is None
    for link, target in (("soft", "fields/v"), ("same", "plain"), ("dangling", None)):
        ls.move("u.npy", f"run.h5::/{link}", force=True, axes=(1, 0, 2))
        with h5py.File("run.h5") as file:
            assert (file[link][...] == U.transpose(1, 0, 2)).all() and (
                target is None or (file[target][...] == U).all()
            )


@pytest.mark.parametrize(
    ("place", "force", "words"),
    [
        ("fields/v", False, r"run.h5::/fields/v exists already.*--force"),
        ("soft", False, "exists already"),
        ("fields", True, "no dataset but a group"),
        ("type", True, "a group or a type"),
        ("lat", True, "scale of dimensions"),
        ("plain/u", True, "plain is no group but a dataset"),
        ("fields/v/deep/u", False, "v is no group but a dataset"),
        ("out/u", False, "leads to another file"),
        ("dangling/u", False, "is no group"),
        ("type/u", False, "is no group"),
    ],
)
def test_what_would_be_lost_is_refused(place, force, words):
    full_file()
    with h5py.File("other.h5", "w") as file:
        file.create_group("g")
    bits, names = raw(), sorted(os.listdir())
    with pytest.raises(StoreError, match=words):
        ls.move("u.npy", f"run.h5::/{place}", force=force)
    assert raw() == bits and sorted(os.listdir()) == names


def test_files_that_nothing_can_be_added_to():
    np.save("no.npy", U)
    os.rename("no.npy", "no.h5")
    full_file("cut.h5")
    os.truncate("cut.h5", os.path.getsize("cut.h5") // 2)
    with open("empty.h5", "wb"):
        pass
    full_file("there.h5")
    os.symlink("there.h5", "link.h5")
    for name, words in (("no", "no HDF5 file"), ("cut", "cannot open"), ("empty", "cannot open"), ("link", "symbolic")):
        bits = raw(f"{name}.h5")
        with pytest.raises(StoreError, match=words):
            ls.move("u.npy", f"{name}.h5::/u", force=True)
        assert raw(f"{name}.h5") == bits
    with pytest.raises(StoreError, match="source itself"):
        ls.move("there.h5::/plain", "there.h5::/copy")
    assert sorted(os.listdir()) == ["cut.h5", "empty.h5", "link.h5", "no.h5", "there.h5", "u.npy"]


OPENED = "import h5py, sys; file = h5py.File('run.h5', 'r+', locking=True); print(flush=True); sys.stdin.read()"


def test_a_file_that_somebody_writes_is_refused():
    full_file()
    with h5py.File("run.h5", "r+"), pytest.raises(StoreError, match="this process has it open for writing"):
        ls.move("u.npy", "run.h5::/u")
    process = subprocess.Popen([sys.executable, "-c", OPENED], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    bits = raw()
    with pytest.raises(StoreError, match="another process has it open for writing"):
        ls.move("u.npy", "run.h5::/u")
    assert raw() == bits and sorted(os.listdir()) == ["run.h5", "u.npy"]
    process.communicate()


@pytest.mark.parametrize(
    ("moment", "how"),
    [
        ("while it is copied", "changed"),
        ("while it is copied", "removed"),
        ("before it is replaced", "changed"),
        ("before it is replaced", "removed"),
        ("before it is replaced", "open"),
    ],
)
def test_a_file_that_changes_meanwhile_stays_as_it_is(monkeypatch, moment, how):
    full_file()
    opened = []

    def change():
        if how == "changed":
            os.utime("run.h5", (1, 1))
        elif how == "removed":
            os.unlink("run.h5")
        else:
            opened.append(h5py.File("run.h5", "r+"))

    function = "copy_file" if moment == "while it is copied" else "Addition.publish"
    owner = hdf5_additions if moment == "while it is copied" else hdf5_additions.Addition
    plain = getattr(owner, function.rpartition(".")[2])

    def changing(*words):
        change()
        return plain(*words)

    monkeypatch.setattr(owner, function.rpartition(".")[2], changing)
    with pytest.raises(StoreError, match="changed meanwhile|open for writing|is missing|cannot copy"):
        ls.move("u.npy", "run.h5::/u")
    for file in opened:
        file.close()
    assert sorted(os.listdir()) == (["u.npy"] if how == "removed" else ["run.h5", "u.npy"])
    assert how == "removed" or "/u" not in content("run.h5")


def test_a_failure_leaves_the_file_and_nothing_else():
    full_file()
    with h5py.File("bad.h5", "w") as file:
        chunk = file.create_dataset("u", data=U, chunks=(8, 30, 17), compression="gzip").id.get_chunk_info(2)
    with open("bad.h5", "r+b") as file:
        file.seek(chunk.byte_offset + chunk.size // 2)
        file.write(b"\0" * 64)
    bits = raw()
    with pytest.raises(LongshoreError, match="chunk"):
        ls.move("bad.h5::/u", "run.h5::/u", chunks=(24, 8, 8))
    assert raw() == bits and sorted(os.listdir()) == ["bad.h5", "run.h5", "u.npy"]


def test_room_for_the_copy_is_looked_for_first(monkeypatch):
    full_file()
    status = os.statvfs(".")
    free = os.path.getsize("run.h5") + U.nbytes - 1

    def full(path):
        return type("statvfs", (), {"f_bavail": free, "f_frsize": 1, "f_blocks": status.f_blocks})

    monkeypatch.setattr(os, "statvfs", full)
    with pytest.raises(StoreError, match="disk of .* is full"):
        ls.move("u.npy", "run.h5::/u")
    free += 1
    ls.move("u.npy", "run.h5::/u")


def test_files_are_copied_where_the_system_cannot_share_blocks(monkeypatch):
    full_file()
    bits = raw()

    def refused(*words):
        raise OSError(hdf5_additions.errno.EXDEV, "across")

    for broken in (refused, lambda *words: 0):
        monkeypatch.setattr(os, "copy_file_range", broken, raising=False)
        monkeypatch.setattr(hdf5_additions, "_COPIED_AT_ONCE", 1000)
        with open("copy", "wb"):
            pass
        told = []
        hdf5_additions.copy_file("run.h5", "copy", told.append)
        assert raw("copy") == bits and sum(told) == len(bits) and len(told) > 1
        assert os.stat("copy").st_mtime_ns == os.stat("run.h5").st_mtime_ns


# -- kills ------------------------------------------------------------------------------------------------------------

KILLED = """
import sys, time
import longshore as ls
from longshore.stores import hdf5_additions, hdf5_array_writers, journal

def stop(*args, **kwargs):
    print("stopped", flush=True)
    time.sleep(600)

moment, resume = sys.argv[1], sys.argv[2] == "resume"
writer = hdf5_array_writers.ChunkWriter
if moment == "copying":
    hdf5_additions.shutil.copystat = stop
elif moment == "half written":
    plain, calls = writer.write, []
    def write(self, *chunk):
        calls.append(1)
        if len(calls) == 20:
            stop()
        return plain(self, *chunk)
    writer.write = write
    journal._LEAST_PAUSE_S = journal._PAUSE_OF_SYNC = 0  # all chunks but the last are on the disk
else:
    hdf5_additions.Addition.publish = stop
source, destination = sys.argv[3:]
ls.move(source, destination, chunks=(8, 8, 8), codecs=("gzip:1",), threads=1, resume=resume)
"""


def killed(moment, resume, source="u.npy", destination="run.h5::/u"):
    words = [sys.executable, "-c", KILLED, moment, resume, source, destination]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "stopped\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("moment", ["copying", "half written", "end"])
@pytest.mark.parametrize("resume", ["resume", "anew"])
def test_a_kill_leaves_the_file_as_it_was(moment, resume):
    full_file()
    before, bits = content("run.h5"), raw()
    killed(moment, resume)
    assert raw() == bits and len(os.listdir()) > 2
    told = ls.move("u.npy", "run.h5::/u", chunks=(8, 8, 8), codecs=("gzip:1",), resume=resume == "resume")
    if (resume, moment) == ("resume", "half written"):
        assert told.resumed_chunks == 19
    assert told.chunks + told.resumed_chunks == 36 and (resume == "resume" or told.removed_partials)
    only_this_is_new(before, content("run.h5"), "/u")
    with h5py.File("run.h5") as file:
        assert (file["u"][...] == U).all()
    assert sorted(os.listdir()) == ["run.h5", "u.npy"]


def hidden_copy():
    (name,) = (name for name in os.listdir() if "partial" in name and not name.endswith((".journal", ".work")))
    return name


def test_chunks_that_a_kill_has_lost_are_written_again():
    full_file()
    killed("half written", "resume")
    with h5py.File(hidden_copy(), "r") as file:
        chunks = [file["u"].id.get_chunk_info(k) for k in range(3)]
    with open(hidden_copy(), "r+b") as file:
        for chunk in chunks:
            file.seek(chunk.byte_offset)
            file.write(bytes(chunk.size))
    told = ls.move("u.npy", "run.h5::/u", chunks=(8, 8, 8), codecs=("gzip:1",), resume=True)
    assert told.resumed_chunks == 19 - 3 and told.chunks == 36 - 19 + 3
    with h5py.File("run.h5") as file:
        assert (file["u"][...] == U).all()


@pytest.mark.parametrize("options", [{}, {"userblock_size": 1024}, {"libver": "v108"}, {"libver": "latest"}])
def test_where_what_a_file_has_given_away_ends(options):
    full_file(**options)
    with open("run.h5", "rb") as file:
        assert allocated_end(file.fileno(), options.get("userblock_size", 0)) == os.path.getsize("run.h5")


def test_chunks_beyond_what_the_file_says_it_has_given_away_are_not_gone_on_with():
    full_file()
    before, words = content("run.h5"), {"chunks": (8, 8, 8), "codecs": ("gzip:1",)}
    killed("half written", "resume")
    with h5py.File(hidden_copy(), "r") as file:
        last = max(file["u"].id.get_chunk_info(k).byte_offset for k in range(19))
    with open(hidden_copy(), "r+b") as file:
        file.seek(40)  # as if the process had been killed before it wrote where that ends
        file.write(last.to_bytes(8, "little"))
    with pytest.raises(StoreError, match=r"start again without --resume: .*chunk .* ends behind the end"):
        ls.move("u.npy", "run.h5::/u", **words, resume=True)
    ls.move("u.npy", "run.h5::/u", **words)
    only_this_is_new(before, content("run.h5"), "/u")


def test_a_file_of_the_newest_format_is_begun_anew_after_a_kill():
    full_file(libver="latest")  # HDF5 marks it while it is open for writing
    before = content("run.h5")
    killed("half written", "resume")
    words = {"chunks": (8, 8, 8), "codecs": ("gzip:1",)}
    with pytest.raises(StoreError, match=r"run.h5; it cannot be gone on with: start again without --resume"):
        ls.move("u.npy", "run.h5::/u", **words, resume=True)
    ls.move("u.npy", "run.h5::/u", **words)
    only_this_is_new(before, content("run.h5"), "/u")


def test_a_killed_run_is_not_gone_on_with_for_another_file_or_place():
    full_file()
    killed("half written", "resume")
    words = {"chunks": (8, 8, 8), "codecs": ("gzip:1",), "resume": True}
    with pytest.raises(StoreError, match="belongs to another move"):
        ls.move("u.npy", "run.h5::/v", **words)
    os.utime("run.h5", (1, 1))
    with pytest.raises(StoreError, match="belongs to another move"):
        ls.move("u.npy", "run.h5::/u", **words)
    ls.move("u.npy", "run.h5::/u", **{**words, "resume": False})
    assert sorted(os.listdir()) == ["run.h5", "u.npy"]


# -- groups, and arrays over ranks ------------------------------------------------------------------------------------


def test_a_group_comes_into_a_file_with_all_that_is_in_it():
    full_file()
    before = content("run.h5")
    with h5py.File("more.h5", "w") as file:
        file["g/u"], file["g/texts"], file["g/type"] = U, ["a", "bc"], np.dtype([("b", "f8")])
        file["g/n"] = file["g/u"]
        file["g"].attrs["note"] = "a group"
    ls.move("more.h5::/g", "run.h5::/new/g")
    only_this_is_new(before, content("run.h5"), "/new", *(f"/new/g{n}" for n in ("", "/u", "/texts", "/type", "/n")))
    with h5py.File("run.h5") as file:
        assert (file["new/g/u"][...] == U).all() and file["new/g/n"] == file["new/g/u"]
        assert file["new/g/texts"].asstr()[...].tolist() == ["a", "bc"] and file["new/g"].attrs["note"] == "a group"
    with pytest.raises(StoreError, match="no dataset but a group"):
        ls.move("more.h5::/g", "run.h5::/new/g", force=True)


def test_an_array_over_ranks_is_saved_into_a_file_that_is_there():
    full_file()
    before, layout = content("run.h5"), ls.Layout("(BLOCK, *, *) on 5", U.shape)
    parts = ls.load("u.npy", layout)
    ls.save(parts, layout, "run.h5::/step/u", chunks=(8, 8, 8))
    only_this_is_new(before, content("run.h5"), "/step", "/step/u")
    with pytest.raises(StoreError, match="exists already"):
        ls.save(parts, layout, "run.h5::/step/u")
    ls.save(parts, layout, "run.h5::/step/u", names=("x", "y", "z"), force=True)
    with h5py.File("run.h5") as file:
        assert (file["step/u"][...] == U).all() and [dim.label for dim in file["step/u"].dims] == ["x", "y", "z"]
    assert sorted(os.listdir()) == ["run.h5", "u.npy"]


# -- NetCDF -----------------------------------------------------------------------------------------------------------


def netcdf_content(path):
    """All that the NetCDF library finds in a file."""
    netcdf4 = pytest.importorskip("netCDF4")

    def look(group, where):
        yield where, {name: str(group.getncattr(name)) for name in group.ncattrs()}
        for name, dimension in group.dimensions.items():
            yield f"{where}{name} (dimension)", (dimension.size, dimension.isunlimited())
        for name, variable in group.variables.items():
            variable.set_auto_maskandscale(False)
            attributes = {key: str(variable.getncattr(key)) for key in variable.ncattrs()}
            elements = [str(one) for one in np.ravel(variable[...]).tolist()]
            form = (variable.dimensions, variable.shape, str(variable.dtype), variable.chunking(), variable.filters())
            yield f"{where}{name}", (form, attributes, elements)
        for name, child in group.groups.items():
            yield from look(child, f"{where}{name}/")

    with netcdf4.Dataset(path) as file:
        return dict(look(file, "/"))


def source_of(name, dims, shape, path="new.nc", **more):
    """A NetCDF file with one variable."""
    xarray = pytest.importorskip("xarray")
    data = np.random.default_rng(6).normal(size=shape)
    xarray.Dataset({name: (dims, data, {"units": "K"})}).to_netcdf(path, engine="netcdf4", **more)
    return data


@pytest.mark.parametrize("place", ["u", "inner/u", "another/group/u"])
def test_a_variable_with_dimensions_that_the_file_has(place):
    a_full_netcdf("a.nc")
    before = netcdf_content("a.nc")
    data = source_of("u", ("time", "lon"), (12, 7))
    told = ls.move("new.nc::/u", f"a.nc::/{place}", verify=True)
    after = netcdf_content("a.nc")
    form, attributes, _ = after[f"/{place}"]
    assert form[:2] == (("time", "lon"), (12, 7)) and attributes["units"] == "K" and told.verified
    created = {f"/{place}", "/another/", "/another/group/"}
    assert {key: value for key, value in after.items() if key not in created} == before
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset("a.nc", "a") as file:  # and it grows with the others
        assert (file[place][...] == data).all()
        file["time"][12] = 12.0
        assert file[place].shape == (13, 7)
    xarray = pytest.importorskip("xarray")
    words = {"group": os.path.dirname(place) or None, "decode_times": False, "drop_variables": "nv"}
    with xarray.open_dataset("a.nc", **words) as dataset:
        assert dataset["u"].sizes == {"time": 13, "lon": 7}


def test_dimensions_that_are_new_or_of_another_size():
    a_full_netcdf("a.nc")
    before, bits = netcdf_content("a.nc"), raw("a.nc")
    source_of("u", ("time", "lat"), (12, 6))
    with pytest.raises(StoreError, match=r"u cannot be added: it has 6 indices in its dimension lat, .*lat.* has 5"):
        ls.move("new.nc::/u", "a.nc::/u")
    with pytest.raises(StoreError, match=r"dimension inner/lat of the file has 3"):
        ls.move("new.nc::/u", "a.nc::/inner/u")
    assert raw("a.nc") == bits and sorted(os.listdir()) == ["a.nc", "new.nc", "u.npy"]
    source_of("w", ("level", "lat"), (4, 5))
    ls.move("new.nc::/w", "a.nc::/w", chunks="level=2", codecs=["shuffle", "gzip:4"])
    ls.move("u.npy", "a.nc::/bare")
    after = netcdf_content("a.nc")
    assert after["/level (dimension)"] == (4, False) and after["/w"][0][:2] == (("level", "lat"), (4, 5))
    assert after["/bare"][0][1] == U.shape
    new = {"/level (dimension)", "/w", "/bare", *(f"/phony_dim_{k} (dimension)" for k in range(3))}
    assert {key: value for key, value in after.items() if key not in new} == before
    source_of("level", ("level",), (4,))
    ls.move("new.nc::/level", "a.nc::/level")
    source_of("again", ("level", "time"), (4, 12), unlimited_dims=["time"])
    ls.move("new.nc::/again", "a.nc::/again")
    again = netcdf_content("a.nc")
    assert again["/level"][0][0] == ("level",) and again["/again"][0][0] == ("level", "time")
    assert {key: value for key, value in again.items() if key not in {"/level", "/again"}} == after


def test_a_dimension_gets_its_variable_and_keeps_those_that_have_it():
    netcdf4 = pytest.importorskip("netCDF4")
    for resume in (False, True):
        a_full_netcdf("a.nc")
        with netcdf4.Dataset("a.nc", "a") as file:
            file.createVariable("many", "f4", ("nchar", "time", "nchar"))[:] = 1
        before = netcdf_content("a.nc")
        source_of("nchar", ("nchar",), (10,))
        ls.move("new.nc::/nchar", "a.nc::/nchar", resume=resume)
        after = netcdf_content("a.nc")
        assert after.pop("/nchar")[0][:2] == (("nchar",), (10,)) and after == before
        with h5py.File("a.nc") as file:
            assert file["letters"].dims[1][0] == file["nchar"]
            assert "This is a netCDF dimension" not in file["nchar"].attrs["NAME"].decode()


def test_a_variable_is_replaced_in_a_netcdf_file():
    a_full_netcdf("a.nc")
    before = netcdf_content("a.nc")
    source_of("flags", ("lon", "nv"), (7, 2))
    with pytest.raises(StoreError, match="exists already"):
        ls.move("new.nc::/flags", "a.nc::/flags")
    ls.move("new.nc::/flags", "a.nc::/flags", force=True)
    source_of("nv", ("lat",), (5,))  # which is no variable of the dimension nv
    with pytest.raises(StoreError, match="exists already"):
        ls.move("new.nc::/nv", "a.nc::/nv")
    ls.move("new.nc::/nv", "a.nc::/nv", force=True)
    after = netcdf_content("a.nc")
    assert after["/flags"][0][0] == ("lon", "nv") and after["/nv"][0][0] == ("lat",)
    rest = [{k: v for k, v in each.items() if k not in ("/flags", "/nv")} for each in (before, after)]
    assert rest[0] == rest[1]
    source_of("lat", ("lat",), (5,))
    with pytest.raises(StoreError, match="scale of dimensions"):
        ls.move("new.nc::/lat", "a.nc::/lat", force=True)


def test_what_is_there_is_not_changed_any_more_when_chunks_are_written():
    a_full_netcdf("a.nc")
    before, bits = netcdf_content("a.nc"), raw("a.nc")
    data = source_of("u", ("time", "lat", "far"), (12, 5, 99))
    killed("half written", "resume", "new.nc::/u", "a.nc::/u")
    assert raw("a.nc") == bits
    copied = content(hidden_copy())
    told = ls.move("new.nc::/u", "a.nc::/u", chunks=(8, 8, 8), codecs=("gzip:1",), resume=True)
    assert told.chunks + told.resumed_chunks == 26
    after = netcdf_content("a.nc")
    assert {key: value for key, value in after.items() if key not in ("/u", "/far (dimension)")} == before
    made = content("a.nc")
    assert {key: value for key, value in made.items() if key.strip() != "/u"} == {
        key: value for key, value in copied.items() if key.strip() != "/u"
    }
    with h5py.File("a.nc") as file:
        assert (file["u"][...] == data).all() and file["u"].dims[0][0] == file["time"]


def test_a_group_brings_its_own_dimensions():
    a_full_netcdf("a.nc")
    shutil.copy("a.nc", "b.nc")
    before = netcdf_content("a.nc")
    ls.move("b.nc", "a.nc::/copy", chunks="time=12", lossy=True)
    after = netcdf_content("a.nc")
    assert {key: value for key, value in after.items() if not key.startswith("/copy/")} == before
    copied = {key.removeprefix("/copy"): value for key, value in after.items() if key.startswith("/copy/")}
    assert copied.keys() == before.keys() and copied["/time (dimension)"] == (12, True)
    assert copied["/t2m"][0][0] == ("time", "lat", "lon") and copied["/t2m"][2] == before["/t2m"][2]
