"""Groups of arrays as folders of shards: written from stores of every format, read back, replaced, gone on with."""

import json
import os
import subprocess
import sys

import longshore as ls
import numpy as np
import pytest
from longshore.errors import ArgumentError, LayoutError, LongshoreError, ShapeError, StoreError
from longshore.stores.array import ArrayFacts, GroupFacts
from longshore.stores.moving import Watcher
from longshore.stores.opened import StoredGroup
from longshore.stores.shards import ShardsReader, ShardsWriter, layout_for
from store_files import tensors_file, touch

TO = "(BLOCK, *) on 3"


def tensors():
    random = np.random.default_rng(2)
    return {
        "layers.0.weight": random.normal(size=(10, 6)).astype("f4"),
        "layers.0.bias": random.normal(size=7).astype("f4"),
        "vision/conv": random.normal(size=(8, 3, 2)).astype("f4"),
        "vision/deep/ids": np.arange(12),
        "steps": np.array(5),
    }


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def checkpoint(here):
    """Two safetensors files with an index."""
    arrays, where = tensors(), {}
    for k, names in enumerate((list(arrays)[:2], list(arrays)[2:])):
        file = f"model-{k + 1:05}-of-00002.safetensors"
        tensors_file(here / "checkpoint" / file, **{name: arrays[name] for name in names})
        where |= dict.fromkeys(names, file)
    touch(here / "checkpoint/model.safetensors.index.json", json.dumps({"metadata": {}, "weight_map": where}).encode())
    return arrays


def command(*words):
    run = [sys.executable, "-m", "longshore.cli", *map(str, words)]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout


def shards(folder):
    return [np.load(path) for path in sorted(folder.glob("rank-*.npy"))]


def assert_holds(path, arrays):
    """Whether a group has these arrays, by their paths, and no others."""
    with ls.open(path) as group:
        found = {}

        def look(node, prefix):
            for name, child in node.items():
                if isinstance(child, StoredGroup):
                    look(child, f"{prefix}{name}/")
                else:
                    found[prefix + name] = child.read()

        look(group, "")
    assert sorted(found) == sorted(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert (found[name] == array).all()


def below(folder):
    """Every file and folder, with a file's bytes."""
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def test_a_checkpoint_goes_to_ranks_with_one_command(here, checkpoint):
    words = ["checkpoint/", "out/", "--to", TO, "--max-mem", "256MiB"]
    dry = json.loads(command("move", *words, "--dry-run", "--json"))
    assert os.listdir() == ["checkpoint"]
    told = json.loads(command("move", *words, "--verify", "--json"))
    assert told["verified"] and len(told["arrays"]) == 5
    assert told["predicted"]["bytes_written"] == dry["predicted"]["bytes_written"] == told["bytes_written"]
    parts = shards(here / "out/layers.0.weight")
    assert [len(part) for part in parts] == [4, 4, 2]
    assert (np.concatenate(parts) == checkpoint["layers.0.weight"]).all()
    assert [len(part) for part in shards(here / "out/layers.0.bias")] == [3, 3, 1]
    assert [part.shape for part in shards(here / "out/vision/conv")] == [(3, 3, 2), (3, 3, 2), (2, 3, 2)]
    assert np.load("out/steps.npy") == 5
    assert_holds("out", checkpoint)


def test_a_checkpoint_there_and_back(here, checkpoint):
    there = ls.move("checkpoint", "out", TO)
    ls.move("out", "back.safetensors", verify=True)
    other = ls.move("out", "other", "(*, BLOCK) on 2")
    assert {one.name: one.digest for one in there.arrays} == {one.name: one.digest for one in other.arrays}
    assert_holds("other", checkpoint)
    with ls.open("back.safetensors") as group:
        assert sorted(group) == sorted(checkpoint)
        assert all((group[name].read() == array).all() for name, array in checkpoint.items())


@pytest.mark.parametrize("suffix", [".zarr", ".h5", ".nc"])
def test_a_group_of_any_format(here, checkpoint, suffix):
    for library in ("zarr", "h5py"):
        pytest.importorskip(library)
    ls.move("checkpoint", "plain", TO)
    ls.move("plain", f"a{suffix}")
    ls.move(f"a{suffix}", "out", "(BLOCK, BLOCK) on 2x2", lossy=True, verify=True)  # NetCDF names dimensions
    assert_holds("out", checkpoint)
    ls.move("out", f"b{suffix}", verify=True)
    with ls.open(f"b{suffix}") as group:
        assert (group["vision/deep/ids"].read() == np.arange(12)).all()
        assert group["steps"].read() == 5


def test_what_shards_cannot_hold_is_named(here):
    h5py = pytest.importorskip("h5py")
    with h5py.File("a.h5", "w") as file:
        file.attrs["title"] = "run"
        file["g/u"] = np.arange(4.0)
        file["g/u"].attrs["units"] = "K"
        file["g"].attrs["of"] = 1
        file["text"] = h5py.Empty("f4")
        file["soft"] = h5py.SoftLink("/g/u")
        file.create_group("empty")
    words = (
        "attribute title",
        "attributes of the group g",
        "attributes of g/u",
        "soft link soft",
        "group empty",
        "text",
    )
    with pytest.raises(StoreError) as caught:
        ls.move("a.h5", "out", "(BLOCK) on 2")
    assert all(word in str(caught.value) for word in words)
    assert os.listdir() == ["a.h5"]
    told = ls.move("a.h5", "out", "(BLOCK) on 2", lossy=True)
    assert len(told.lost) >= len(words)
    assert_holds("out", {"g/u": np.arange(4.0)})
    with h5py.File("empty.h5", "w") as file:
        file.create_group("g")
    with pytest.raises(ArgumentError, match="would have no array"):
        ls.move("empty.h5", "none", "(BLOCK) on 2", lossy=True)
    assert sorted(os.listdir()) == ["a.h5", "empty.h5", "out"]


LAYOUTS = [
    ("(BLOCK, *) on 3", (7,), "(BLOCK) on 3"),
    ("(BLOCK, *) on 3", (7, 4), "(BLOCK, *) on 3"),
    ("(BLOCK, *) on 3", (7, 4, 2), "(BLOCK, *, *) on 3"),
    ("(*, BLOCK) on 3", (7,), "(*) on REPLICATED(3)"),
    ("(BLOCK, CYCLIC(2)) on 2x3", (7,), "(BLOCK) on 2xREPLICATED(3)"),
    (
        "(BLOCK, *, CYCLIC) on 2xREPLICATED(2)x3, order=F",
        (7, 4),
        "(BLOCK, *) on 2xREPLICATED(2)xREPLICATED(3), order=F",
    ),
    (" ( * , block( 4 ) )  on  3 , ranks=[2,0,1]", (3, 9, 2), "(*, BLOCK(4), *) on 3, ranks=[2,0,1]"),
    ("(GEN_BLOCK(4, 3), *) on 2", (7,), "(GEN_BLOCK(4, 3)) on 2"),
    ("(*, *) on 1", (7,), "(*) on 1"),
]


@pytest.mark.parametrize(("text", "shape", "wanted"), LAYOUTS)
def test_a_layout_for_arrays_of_other_dimensions(text, shape, wanted):
    assert layout_for(text, shape, of_group=True) == ls.Layout(wanted, shape)
    assert layout_for(text, (), of_group=True) is None
    if wanted.count("BLOCK") + wanted.count("*") != len(shape):
        return
    with pytest.raises(LongshoreError):
        layout_for(text, (*shape, *shape, *shape), of_group=False)


REFUSED = [
    (
        {"a": (4, 2), "b": (7, 2)},
        "(GEN_BLOCK(2, 2), *) on 2",
        LayoutError,
        r"does not fit b, of shape \(7, 2\).*by itself",
    ),
    ({"a": (4, 2)}, "(BLOK, *) on 2", LayoutError, "BLOK"),
    ({"a": (4,), "a/b": (4,)}, TO, ArgumentError, "a/b cannot be in a folder where another"),
    ({"a/b": (4,), "a": (4,)}, TO, ArgumentError, "a cannot be in a folder where another"),
    ({"a.npy": (4,), "a": ()}, TO, ArgumentError, "a cannot be in a folder where another"),
    ({"a/../b": (4,)}, TO, ArgumentError, "no array can be"),
    ({"/a": (4,)}, TO, ArgumentError, "no array can be"),
    ({".a": (4,)}, TO, ArgumentError, "means another thing"),
    ({"zarr.json": (4,)}, TO, ArgumentError, "means another thing"),
    ({"x.safetensors": (4,)}, TO, ArgumentError, "means another thing"),
    ({"layout.json/a": (4,)}, TO, ArgumentError, "no array can be"),
    ({"n" * 300: (4,)}, TO, ArgumentError, "no array can be"),
    ({"/".join("a" * 70): (4,)}, TO, ArgumentError, "deeper than 64 groups"),
]


@pytest.mark.parametrize(("shapes", "to", "error", "words"), REFUSED)
def test_what_cannot_be_in_one_folder_is_refused(here, shapes, to, error, words):
    tensors_file(here / "a.safetensors", **{name: np.zeros(shape, "f4") for name, shape in shapes.items()})
    with pytest.raises(error, match=words):
        ls.move("a.safetensors", "out", to)
    assert os.listdir() == ["a.safetensors"]


def test_a_layout_that_is_no_text_is_for_arrays_of_its_shape(here):
    layout = ls.Layout("(BLOCK) on 2", (4,))
    for other in (4, 7):
        tensors_file(here / "a.safetensors", a=np.arange(4.0, dtype="f4"), b=np.zeros(other, "f4"))
        if other == 4:
            ls.move("a.safetensors", "out", layout)
    assert [len(part) for part in shards(here / "out/b")] == [2, 2]
    with pytest.raises(ShapeError, match=r"does not fit b, of shape \(7,\)"):
        ls.move("a.safetensors", "other", layout)


def test_one_array_of_other_dimensions_is_refused_as_before(here):
    np.save("a.npy", np.zeros((4, 3)))
    tensors_file(here / "a.safetensors", a=np.zeros((4, 3), "f4"))
    for source in ("a.npy", "a.safetensors::a"):
        with pytest.raises(ShapeError, match="3 dimensions"):
            ls.move(source, "out", "(BLOCK, *, *) on 2")


def test_force_replaces_such_a_folder_and_nothing_else(here, checkpoint):
    ls.move("checkpoint", "out", TO)
    with pytest.raises(StoreError, match="exists already"):
        ls.move("checkpoint", "out", TO)
    ls.move("checkpoint", "out", "(BLOCK, *) on 2", force=True)
    assert len(shards(here / "out/layers.0.weight")) == 2 and sorted(os.listdir()) == ["checkpoint", "out"]
    before = below(here / "out")
    for foreign in ("notes.txt", "vision/notes.txt", "vision/conv/notes.txt", "vision/other.npy", "vision/g/notes.txt"):
        path = here / "out" / foreign
        path.parent.mkdir(exist_ok=True)
        np.save(path, np.zeros(3)) if foreign.endswith(".npy") else path.write_text("mine")
        with pytest.raises(StoreError, match=f"holds '{path.name}'.*move that away first"):
            ls.move("checkpoint", "out", TO, force=True)
        path.unlink()
        if foreign.startswith("vision/g"):
            path.parent.rmdir()
        assert below(here / "out") == before
    os.symlink("conv", here / "out/vision/link")
    with pytest.raises(StoreError, match="'link'"):
        ls.move("checkpoint", "out", TO, force=True)
    os.unlink(here / "out/vision/link")
    # One array takes the place of several, and several that of one.
    np.save("a.npy", np.arange(4.0))
    ls.move("a.npy", "out", "(BLOCK) on 2", force=True)
    ls.move("checkpoint", "out", TO, force=True)
    assert_holds("out", checkpoint)
    assert sorted(os.listdir()) == ["a.npy", "checkpoint", "out"]


class Stops(Watcher):
    """Ends a run after so many bytes."""

    def __init__(self, most):
        self._left = most

    def advance(self, count):
        self._left -= count
        if self._left < 0:
            raise RuntimeError("stopped")


def test_a_stopped_run_is_gone_on_with_or_leaves_nothing(here, checkpoint):
    with pytest.raises(RuntimeError):
        ls.move("checkpoint", "out", TO, watcher=Stops(300))
    assert os.listdir() == ["checkpoint"]
    with pytest.raises(RuntimeError):
        ls.move("checkpoint", "out", TO, watcher=Stops(300), resume=True)
    assert not (here / "out").exists() and len(os.listdir()) > 1
    told = ls.move("checkpoint", "out", TO, resume=True, verify=True)
    assert told.resumed_chunks >= 1
    assert_holds("out", checkpoint)
    assert sorted(os.listdir()) == ["checkpoint", "out"]


def test_what_a_killed_run_has_left_is_removed(here, checkpoint):
    with pytest.raises(RuntimeError):
        ls.move("checkpoint", "out", TO, watcher=Stops(300), resume=True)
    (partial,) = here.glob(".out.longshore-partial-????????????????")
    assert (partial / "steps.npy").exists() and not list(partial.rglob("layout.json"))
    told = ls.move("checkpoint", "out", TO)
    assert len(told.removed_partials) == 1 and sorted(os.listdir()) == ["checkpoint", "out"]


def test_a_folder_that_was_finished_and_not_published_is_gone_on_with(tmp_path):
    tree = GroupFacts({"g": GroupFacts({"a": ArrayFacts((4, 2), np.dtype("f8")), "s": ArrayFacts((), np.dtype("i4"))})})
    writer = ShardsWriter(str(tmp_path), TO)
    writer.create(tree)
    writer.finish()
    assert ShardsReader(str(tmp_path)).tree.children["g"].children["a"].shape == (4, 2)
    again = ShardsWriter(str(tmp_path), TO, resume=True)
    again.create(tree)
    assert not (tmp_path / "g/a/layout.json").exists()
    again.finish()
    assert ShardsReader(str(tmp_path)).array("g/s").read(()) == 0
    with pytest.raises(ArgumentError, match="has no array 'g/b'"):
        ShardsReader(str(tmp_path)).array("g/b")


def test_opened_and_told(here, checkpoint):
    ls.move("checkpoint", "out", "(BLOCK, BLOCK) on 2x2")
    with ls.open("out") as group:
        assert sorted(group) == ["layers.0.bias", "layers.0.weight", "steps", "vision"]
        weight = group["layers.0.weight"]
        assert weight.layout == ls.Layout("(BLOCK, BLOCK) on 2x2", (10, 6)) and group["steps"].layout is None
        assert (group["vision/conv"][2:5, 1] == checkpoint["vision/conv"][2:5, 1]).all()
    for path in ("out/vision/conv", "out::vision/conv"):
        with ls.open(path) as array:
            assert (array.read() == checkpoint["vision/conv"]).all()
    assert (ls.load("out/layers.0.weight", "(*, BLOCK) on 2")[0] == checkpoint["layers.0.weight"][:, :3]).all()
    with pytest.raises(StoreError, match="does not exist"):
        ls.open("out::vision/other")
    with pytest.raises(ArgumentError, match="no path within"):
        ls.open("out::../checkpoint")
    told = json.loads(command("info", "out/", "--json"))
    layouts = {array["name"]: array["layout"] for array in told["arrays"]}
    assert told["format"] == "shards" and layouts["layers.0.bias"] == "(BLOCK) on 2xREPLICATED(2)"
    output = command("info", "out/")
    assert all(name in output for name in checkpoint) and "(BLOCK, BLOCK, *) on 2x2" in output


def test_others_files_beside_them_are_no_arrays(here, checkpoint):
    ls.move("checkpoint", "out", TO)
    touch(here / "out/config.json", b"{}")
    touch(here / "out/.hidden/anything")
    touch(here / "out/vision/README.md")
    assert_holds("out", checkpoint)


def test_groups_that_are_none(here, checkpoint):
    def tried(path, make, words):
        ls.move("checkpoint", "out", TO, force=True)
        made = here / "out" / path
        make(made)
        with pytest.raises(StoreError, match=words):
            ls.open("out")
        if made.is_dir() and not made.is_symlink():
            made.rmdir()
        else:
            made.unlink()

    tried("z", os.mkdir, "out/z holds no layout.json and no folder that has one")
    tried("vision/z", lambda path: os.symlink(here / "out/layers.0.bias", path), "symbolic link")
    tried("z.npy", lambda path: np.save(path, np.zeros(3)), r"z.npy has the shape \(3,\)")
    tried("vision.npy", lambda path: np.save(path, 1.0), "two arrays or groups with the name 'vision'")
    (here / "out/vision/conv/layout.json").unlink()
    with pytest.raises(StoreError, match=r"rank-00000.npy has the shape"):
        ls.open("out")
    deep = here / "deep"
    np.save("a.npy", np.zeros(4))
    (deep / "/".join("a" * 70)).mkdir(parents=True)
    ls.move("a.npy", deep / "/".join("a" * 70) / "u", "(BLOCK) on 2")
    with pytest.raises(StoreError, match="lies deeper"):
        ls.open(deep)
    for empty in ("none", "none/a/b"):
        os.makedirs(empty, exist_ok=True)
        with pytest.raises(StoreError, match="is not a Zarr store"):
            ls.open("none")


def test_at_a_url(here, checkpoint):
    fsspec = pytest.importorskip("fsspec")
    url, fs = "memory://groups-of-shards/out", fsspec.filesystem("memory")

    def keys():
        return {key.partition("out/")[2] for key in fs.find("/groups-of-shards/out")}

    ls.move("checkpoint", "out", TO)
    ls.move("checkpoint", url, TO, verify=True)
    assert keys() == {name for name, raw in below(here / "out").items() if raw is not False}
    with pytest.raises(StoreError, match="exists already"):
        ls.move("checkpoint", url, TO)
    ls.move("checkpoint", url, "(BLOCK, *) on 2", force=True)
    assert "layers.0.bias/rank-00002.npy" not in keys() and "steps.npy" in keys()
    for name, raw in (
        ("vision/notes.txt", b"mine"),
        ("vision/mine.npy", (here / "out/layers.0.bias/rank-00000.npy").read_bytes()),
    ):
        fs.pipe_file(f"/groups-of-shards/out/{name}", raw)
        with pytest.raises(StoreError, match=f"holds '{name}'"):
            ls.move("checkpoint", url, TO, force=True)
        fs.rm_file(f"/groups-of-shards/out/{name}")
    # What a killed upload has left is replaced: a marker, and shards without what says how they are dealt.
    fs.pipe_file("/groups-of-shards/out/.longshore-upload", b"")
    fs.rm_file("/groups-of-shards/out/layers.0.bias/layout.json")
    ls.move("checkpoint", url, TO, force=True)
    assert keys() == {name for name, raw in below(here / "out").items() if raw is not False}
