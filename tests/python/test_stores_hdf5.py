"""XArrays saved into HDF5 files that are there already: everything else that such a file holds is kept."""

import os
import subprocess
import sys

import longshore as ls
import numpy as np
import pytest
from longshore import Region, stores
from longshore.errors import StoreError
from test_stores_blocks import DOMAIN, WHOLE, filled, rows, same

h5py = pytest.importorskip("h5py")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def everything(path):
    """All objects of an HDF5 file with their attributes and elements, and where its links lead."""
    found = {}

    def look(group, where):
        found[where, "attributes"] = {name: np.asarray(value).tolist() for name, value in group.attrs.items()}
        for name in group:
            link, here = group.get(name, getlink=True), f"{where}{name}"
            if not isinstance(link, h5py.HardLink):
                found[here] = (type(link).__name__, link.path)
            elif isinstance(group[name], h5py.Group):
                look(group[name], here + "/")
            elif isinstance(group[name], h5py.Dataset):
                found[here] = (group[name].dtype.str, group[name][...].tolist(), group[name].chunks)
                found[here, "attributes"] = dict(group[name].attrs)

    with h5py.File(path) as file:
        look(file, "/")
    return found


def a_full_file(path):
    """An HDF5 file with something of everything, beside the dataset some/field."""
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "mine"
        file["a"] = np.arange(5)
        file["a"].attrs["unit"] = "m"
        file.create_dataset("some/other", data=WHOLE, chunks=(3, 17), compression="gzip")
        file["some"].attrs["step"] = 7
        file.create_group("empty/within")
        file["same as a"] = file["a"]
        file["soft"] = h5py.SoftLink("/some/other")
        file["elsewhere"] = h5py.ExternalLink("b.h5", "u")
        file["some/field"] = np.zeros(3)
        file["some/field"].attrs["gone with"] = "the dataset"


@pytest.mark.parametrize("dataset", ["b", "some/field", "some/new/group/b", "/a", "soft", "same as a"])
def test_hdf5_keeps_everything_else(dataset):
    a_full_file("a.h5")
    os.chmod("a.h5", 0o640)
    before = everything("a.h5")
    u = filled(rows(), WHOLE)
    with pytest.raises(StoreError, match="exists already"):
        stores.save(u, "a.h5", dataset=dataset)
    assert everything("a.h5") == before
    stores.save(u, "a.h5", dataset=dataset, force=True)
    after = everything("a.h5")
    where = "/" + dataset.strip("/")
    assert after.pop(where) == ("<f8", WHOLE.tolist(), None) and after.pop((where, "attributes")) == {}
    before.pop(where, None), before.pop((where, "attributes"), None)
    new_groups = {k: v for k, v in after.items() if k not in before}
    assert set(new_groups) <= {("/some/new/", "attributes"), ("/some/new/group/", "attributes")}
    assert {k: v for k, v in after.items() if k not in new_groups} == before
    assert os.stat("a.h5").st_mode & 0o777 == 0o640 and os.listdir() == ["a.h5"]
    v = ls.XArray(rows(ranks=5), float)
    stores.load("a.h5", v, dataset=dataset)
    for k, grid in v.items():
        same(np.asarray(grid), WHOLE[v.blocks[k].slices(DOMAIN)])
    if dataset != "some/other":
        stores.load("a.h5", v, dataset="some/other")


def test_hdf5_datasets_side_by_side():
    u, v, w = filled(rows(), WHOLE), filled(rows(), 2 * WHOLE), ls.XArray(rows(), float)
    stores.save(u, "a.h5", dataset="a")
    put = stores.bind(v, "a.h5", dataset="b", force=True)
    sizes = []
    for _ in range(6):
        put()
        sizes.append(os.path.getsize("a.h5"))
        for dataset, factor in (("a", 1), ("b", 2)):
            stores.load("a.h5", w, dataset=dataset)
            for k, grid in w.items():
                same(np.asarray(grid), factor * WHOLE[w.blocks[k].slices(DOMAIN)])
    assert sizes[-1] - sizes[0] < WHOLE.nbytes  # the room of the old dataset is used again


def test_hdf5_takes_no_group_away():
    a_full_file("a.h5")
    before = everything("a.h5")
    u = filled(rows(), WHOLE)
    with h5py.File("b.h5", "w") as file:
        file["u"] = WHOLE
        file.create_group("group")
    with h5py.File("a.h5", "r+") as file:
        file["out"] = h5py.ExternalLink("b.h5", "group")
        file["out through soft"] = h5py.SoftLink("/out")
        file["dangling"] = h5py.SoftLink("/none")
        file["type"] = np.dtype("f8")
    before, other = everything("a.h5"), everything("b.h5")
    for dataset, words in [
        ("some", "a.h5/some is no dataset but a group"),
        ("empty/within", "a.h5/empty/within is no dataset but a group"),
        ("type", "is no dataset but a group or a type"),
        ("a/b", "a.h5/a is no group"),
        ("out/new", "a.h5/out leads to another file"),
        ("out through soft/new", "leads to another file"),
        ("dangling/new", "a.h5/dangling is no group"),
    ]:
        with pytest.raises(StoreError, match=words):
            stores.save(u, "a.h5", dataset=dataset, force=True)
        assert everything("a.h5") == before and everything("b.h5") == other
    assert sorted(os.listdir()) == ["a.h5", "b.h5"]
    stores.save(u, "a.h5", dataset="out", force=True)  # the link is what goes
    assert everything("b.h5") == other and everything("a.h5")["/out"][1] == WHOLE.tolist()


def test_what_is_no_hdf5_file_is_not_replaced():
    u = filled(rows(), WHOLE)
    for content in (b"", b"my diary", b"\x89HDF\r\n\x1a\n and no more"):
        with open("a.h5", "wb") as file:
            file.write(content)
        with pytest.raises(StoreError, match=r"cannot open .*a.h5, to keep what else it holds"):
            stores.save(u, "a.h5", dataset="b", force=True)
        assert open("a.h5", "rb").read() == content and os.listdir() == ["a.h5"]


def test_hdf5_files_that_others_write_meanwhile():
    a_full_file("a.h5")
    mover = stores.bind(filled(rows(), WHOLE), "a.h5", dataset="b", force=True)
    mover.start()
    with h5py.File("a.h5", "r+") as file:
        file["late"] = 1
    before = everything("a.h5")
    with pytest.raises(StoreError, match="has been changed meanwhile"):
        mover.wait()
    assert everything("a.h5") == before and os.listdir() == ["a.h5"]
    with h5py.File("a.h5", "r+"), pytest.raises(StoreError, match="cannot open"):
        mover()
    mover()
    assert set(everything("a.h5")) - set(before) == {"/b", ("/b", "attributes")}


KILLED = """
import sys, time
import numpy as np
import longshore as ls
from longshore import stores
from longshore.stores import blocks, ends, publish

def stop(*args, **kwargs):
    print("stopped", flush=True)
    time.sleep(600)

moment = sys.argv[1]
if moment == "copied":
    ends.Hdf5End._clear = stop
elif moment == "half written":
    blocks._PIECE_BYTES = 400
    plain, calls = ends.Hdf5File.transfer, []
    def transfer(self, *box):
        plain(self, *box)
        calls.append(1)
        if len(calls) == 3:
            stop()
    ends.Hdf5File.transfer = transfer
else:
    publish.Publication.publish = stop
u = ls.XArray(ls.FloorPlan.even((13, 17), 3), float)
stores.save(u, "a.h5", dataset="some/field", force=True)
"""


@pytest.mark.parametrize("moment", ["copied", "half written", "end"])
def test_killed_while_an_hdf5_file_is_replaced(moment):
    a_full_file("a.h5")
    raw = open("a.h5", "rb").read()
    process = subprocess.Popen([sys.executable, "-c", KILLED, moment], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "stopped\n"
    process.kill()
    process.wait()
    assert open("a.h5", "rb").read() == raw and len(os.listdir()) == 2
    v = ls.XArray(rows(Region.of_shape((13, 17))), float)
    stores.load("a.h5", v, dataset="some/other")
    stores.save(v, "a.h5", dataset="b", force=True)  # and takes away what was left
    assert os.listdir() == ["a.h5"] and everything("a.h5")["/b"][1] == WHOLE.tolist()
