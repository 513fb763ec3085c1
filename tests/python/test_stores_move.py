"""Moves between stores: every kind of array, layout, order and window, compared with NumPy; broken sources;
verification."""

import itertools
import json
import os

import numpy as np
import pytest
from dense_layout import DenseLayout, count, selector
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore import Layout
from longshore.errors import ArgumentError, LayoutError, MemoryLimitError, ShapeError, StoreError
from longshore.explain import run_starts
from longshore.stores import VerificationError, boxes, memory, move, moving, open_store, windows
from longshore.stores.team import Alone


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=[None, 1000, 64], ids=["one window", "windows of 1000 bytes", "windows of 64 bytes"])
def small_windows(request, monkeypatch):
    """Makes the out-of-core loop go round many times without large files."""
    if request.param is not None:
        choose = windows.choose_window

        def smaller(shape, itemsize, source, destination, budget):
            return choose(shape, itemsize, source, destination, min(budget, request.param))

        monkeypatch.setattr(moving, "choose_window", smaller)


def sample(shape, dtype="<f8"):
    dtype = np.dtype(dtype)
    raw = np.random.default_rng(7).integers(0, 2, size=int(np.prod(shape)) * dtype.itemsize, dtype=np.uint8)
    return raw.view(dtype).reshape(shape)


def parts_of(array, text):
    """What the shards must hold, by the plain twin."""
    dense = DenseLayout.parse(text, array.shape)
    zeros = (0,) * array.ndim
    return [array[selector(dense.owned(p, zeros, array.shape), zeros)] for p in range(dense.processes)]


LAYOUTS = [
    ("(BLOCK, *, *) on 3", "(*, *, CYCLIC(2)) on 4, order=F"),
    ("(CYCLIC, CYCLIC(2), BLOCK) on 2x2x2", "(BLOCK, BLOCK, *) on 2x3, rank_order=F"),
    ("(GEN_BLOCK(0, 10, 3), *, *) on 3", "(CYCLIC(5), *, *) on 2, source=1"),
    ("(*, BLOCK, *) on 20", "(BLOCK(9), *, CYCLIC) on 2x2, ranks=3:7"),
    ("(BLOCK, *, *) on REPLICATED(2)x2", "(*, CYCLIC, *) on 2xREPLICATED(3)"),
    ("(*, *, *) on 1, order=F", "(*, BLOCK, *) on 2, ranks=[5,1]"),
]


@pytest.mark.parametrize("source, destination", LAYOUTS)
def test_layouts(here, small_windows, source, destination):
    array = sample((13, 7, 11), "<i4")
    np.save("a.npy", array)
    move("a.npy", "s", source, verify=True)
    report = move("s", "d", destination, verify=True)
    assert report.moved_bytes == report.predicted_bytes == array.nbytes * Layout(destination, array.shape).replicas
    for name, text in (("s", source), ("d", destination)):
        told = json.load(open(f"{name}/layout.json"))
        order = Layout(text, array.shape).order
        for shard, part in zip(told["shards"], parts_of(array, text), strict=True):
            read = np.load(f"{name}/{shard}")
            np.testing.assert_array_equal(read, part)
            assert read.flags[f"{order}_CONTIGUOUS"]
    move("d", "back.npy", verify=True)
    np.testing.assert_array_equal(np.load("back.npy"), array)
    assert sorted(os.listdir(".")) == ["a.npy", "back.npy", "d", "s"]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (2, 1, 0), (0, 2, 1)])
def test_axes_and_orders(here, small_windows, axes, order):
    array = sample((6, 5, 9), ">i2")
    np.save("a.npy", np.asarray(array, order=order))
    permuted = array.transpose(axes)
    move("a.npy", "s", "(CYCLIC(2), *, BLOCK) on 2x2, order=F", axes=axes, verify=True)
    move("s", "t.npy", f"(*, *, *) on 1, order={order}", verify=True)
    read = np.load("t.npy")
    np.testing.assert_array_equal(read, permuted)
    assert read.flags[f"{order}_CONTIGUOUS"] and read.dtype == array.dtype
    move("s", "back.npy", axes=np.argsort(axes).tolist(), verify=True)
    np.testing.assert_array_equal(np.load("back.npy"), array)


@pytest.mark.parametrize(
    "dtype",
    [
        "u1",
        "?",
        ">f8",
        "<c16",
        "S5",
        "<U3",
        "V7",
        "<M8[s]",
        [("x", ">f4"), ("inner", [("a", "u1"), ("b", "<i8", (2,))])],
    ],
    ids=str,
)
def test_element_types(here, small_windows, dtype):
    array = sample((9, 8), dtype)
    np.save("a.npy", array)
    move("a.npy", "s", "(CYCLIC(2), BLOCK) on 2x2", verify=True)
    assert np.load("s/rank-00000.npy").dtype == array.dtype
    move("s", "back.npy", verify=True)
    assert open("a.npy", "rb").read()[-array.nbytes :] == open("back.npy", "rb").read()[-array.nbytes :]
    assert np.load("back.npy").dtype == array.dtype


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (0, 4), (4, 0, 3), (1, 1), (2,) * 8])
def test_shapes(here, small_windows, shape):
    array = sample(shape)
    np.save("a.npy", array)
    dims = ", ".join(["CYCLIC"] + ["*"] * (len(shape) - 1))
    move("a.npy", "s", f"({dims}) on 3", verify=True)
    dims = ", ".join(["*"] * (len(shape) - 1) + ["BLOCK"])
    move("s", "d", f"({dims}) on 7, order=F", verify=True)
    move("d", "back.npy", verify=True)
    np.testing.assert_array_equal(np.load("back.npy"), array)
    assert np.load("back.npy").shape == shape


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_window_covers_everything_once(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)))
    budget = data.draw(st.integers(1, 200))
    n = len(shape)

    def side():
        order = data.draw(st.sampled_from(["C", "F"]))
        words = [data.draw(st.sampled_from(["*", "BLOCK", "CYCLIC", "CYCLIC(3)"])) for _ in shape]
        grid = "x".join(str(data.draw(st.integers(1, 3))) for word in words if word != "*") or "1"
        axes = data.draw(st.permutations(range(n)))
        text = f"({', '.join(words)}) on {grid}, order={order}"
        return windows.Side.of(Layout(text, [shape[a] for a in axes]), axes)

    source, destination = side(), side()
    window = windows.choose_window(shape, 1, source, destination, budget)
    assert 0 in shape or np.prod(window) <= budget
    seen = np.zeros(shape, int)
    found = 0
    for lo, hi in windows.each_window(shape, window, tuple(reversed(destination.fastest_first))):
        found += 1
        assert all(0 < b - a <= w for a, b, w in zip(lo, hi, window))
        seen[tuple(slice(a, b) for a, b in zip(lo, hi))] += 1
    assert (seen == 1).all() and found == windows.count_windows(shape, window)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_boxes_read_and_write_as_numpy_does(data, tmp_path_factory):
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    start = tuple(data.draw(st.integers(0, n)) for n in shape)
    extent = tuple(data.draw(st.integers(0, n - a)) for n, a in zip(shape, start))
    order = data.draw(st.sampled_from(["C", "F"]))
    threads = data.draw(st.sampled_from([1, 3]))
    array = np.asarray(sample(shape, "<i2"), order=order)
    path = tmp_path_factory.getbasetemp() / "box.bin"
    path.write_bytes(b"head" + array.tobytes(order=order))
    box = boxes.Box(boxes.FileArray(str(path), 4, shape, order, 2), start, extent)
    part = tuple(slice(a, a + n) for a, n in zip(start, extent))
    buffer = np.full(int(np.prod(extent)) * 2, 99, np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "_PIECE_BYTES", data.draw(st.sampled_from([4, 64, 1 << 20])))
        patch.setattr(boxes, "_OFFSETS_AT_ONCE", data.draw(st.sampled_from([1, 3, 100])))
        with boxes.Files(threads) as files:
            files.read([(box, memoryview(buffer))])
            assert buffer.tobytes() == array[part].tobytes(order=order)
            buffer[:] = 77
            files.write([(box, memoryview(buffer))])
    array[part] = np.frombuffer(b"MM", "<i2")[0]
    assert path.read_bytes() == b"head" + array.tobytes(order=order)


def test_few_descriptors_are_enough(here, monkeypatch):
    np.save("a.npy", array := sample((600, 3)))
    with boxes.Files(2, limit=8) as few:
        monkeypatch.setattr(moving, "Files", lambda threads: few)
        move("a.npy", "s", "(CYCLIC, *) on 100", verify=True)
        move("s", "back.npy")
        assert len(few._open) <= 8
    np.testing.assert_array_equal(np.load("back.npy"), array)


# -- broken sources ---------------------------------------------------------------------------------------------------


def remove(folder):
    os.unlink(f"{folder}/rank-00001.npy")


def truncate(folder):
    os.truncate(f"{folder}/rank-00001.npy", os.path.getsize(f"{folder}/rank-00001.npy") - 1)


def lengthen(folder):
    with open(f"{folder}/rank-00001.npy", "ab") as file:
        file.write(b"x")


def reshape(folder):
    np.save(f"{folder}/rank-00001.npy", np.zeros((3, 4)))


def retype(folder):
    np.save(f"{folder}/rank-00001.npy", np.zeros((4, 5), "<f4"))


def reorder(folder):
    np.save(f"{folder}/rank-00001.npy", np.zeros((4, 5), order="F"))


def link(folder):
    os.rename(f"{folder}/rank-00001.npy", "elsewhere.npy")
    os.symlink("../elsewhere.npy", f"{folder}/rank-00001.npy")


def pickle(folder):
    np.save(f"{folder}/rank-00001.npy", np.array([[None] * 5] * 4, dtype=object), allow_pickle=True)


def unfinish(folder):
    os.unlink(f"{folder}/layout.json")


def descriptor_points_out(folder):
    text = open(f"{folder}/layout.json").read()
    open(f"{folder}/layout.json", "w").write(text.replace("rank-00001.npy", "../a.npy"))


@pytest.mark.parametrize(
    "harm, words",
    [
        (remove, "rank-00001.npy is missing"),
        (truncate, "truncated"),
        (lengthen, "follow"),
        (reshape, r"shape \(3, 4\)"),
        (retype, "float32"),
        (reorder, "F order"),
        (link, "symbolic link"),
        (pickle, "Python objects"),
        (unfinish, "layout.json"),
        (descriptor_points_out, "plain file name"),
    ],
)
def test_broken_sources_are_refused(here, harm, words):
    np.save("a.npy", sample((8, 5)))
    move("a.npy", "s", "(BLOCK, *) on 2")
    harm("s")
    before = sorted(os.listdir("."))
    with pytest.raises(StoreError, match=words) as caught:
        move("s", "d", "(*, BLOCK) on 2")
    assert caught.value.errno is None
    assert sorted(os.listdir(".")) == before


def test_arguments(here):
    np.save("a.npy", sample((8, 5)))
    for error, destination, to, more in [
        (ArgumentError, "d", None, {}),
        (ArgumentError, "d.npy", "(BLOCK, *) on 2", {}),
        (ArgumentError, "d.npy", None, {"axes": (0, 0)}),
        (LayoutError, "d", "(BLOCK, *) on 2, ld=9", {}),
        (LayoutError, "d", "(BLOCK, *", {}),
        (MemoryLimitError, "d", "(BLOCK, *) on 2", {"max_mem": 1000}),
        (StoreError, "a.npy", None, {}),
        (StoreError, "none/d.npy", None, {}),
    ]:
        with pytest.raises(error):
            move("a.npy", destination, to, **more)
    assert os.listdir(".") == ["a.npy"]


def test_source_that_shrinks_meanwhile(here, monkeypatch):
    np.save("a.npy", sample((8, 5)))
    begin = moving.Watcher.begin
    monkeypatch.setattr(moving.Watcher, "begin", lambda *args: (begin(*args), os.truncate("a.npy", 200)))
    with pytest.raises(StoreError, match="has been changed"):
        move("a.npy", "d.npy")
    assert os.listdir(".") == ["a.npy"]


# -- verification -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["s", "b.npy"])
def test_verification_finds_one_flipped_bit(here, monkeypatch, target):
    np.save("a.npy", sample((50, 40)))

    def spoil(self, watcher, verify=moving._Job.verify):
        path = self.target.arrays[-1].path
        with open(path, "r+b") as file:
            file.seek(-9, os.SEEK_END)
            byte = file.read(1)[0]
            file.seek(-9, os.SEEK_END)
            file.write(bytes([byte ^ 16]))
        verify(self, watcher)

    monkeypatch.setattr(moving._Job, "verify", spoil)
    with pytest.raises(VerificationError, match="differs"):
        move("a.npy", target, "(CYCLIC(3), BLOCK) on 2x2" if target == "s" else None, verify=True)
    assert os.listdir(".") == ["a.npy"]


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_the_plain_twin_agrees_with_the_core(data):
    words, grid, shape = [], [], []
    for _ in range(data.draw(st.integers(1, 3))):
        n, p = data.draw(st.integers(0, 20)), data.draw(st.integers(1, 4))
        shape.append(n)
        word = data.draw(st.sampled_from(["*", "BLOCK", f"BLOCK({n + 1})", "CYCLIC", "CYCLIC(3)", "GEN_BLOCK"]))
        if word == "GEN_BLOCK":
            cuts = sorted(data.draw(st.lists(st.integers(0, n), min_size=p - 1, max_size=p - 1)))
            word = f"GEN_BLOCK({', '.join(str(b - a) for a, b in zip([0, *cuts], [*cuts, n]))})"
        if word != "*":
            grid.append(p)
        words.append(word)
    source = "x".join(str(data.draw(st.integers(0, p - 1))) for p in grid)
    extents = [str(p) for p in grid]
    if data.draw(st.booleans()):
        extents.insert(data.draw(st.integers(0, len(grid))), "REPLICATED(2)")
    text = f"({', '.join(words)}) on {'x'.join(extents) or '1'}, rank_order={data.draw(st.sampled_from('CF'))}"
    if source and "GEN_BLOCK" not in text:
        text += f", source={source}"
    if data.draw(st.booleans()):
        text += f", ranks=3:{3 + int(np.prod([2 if 'R' in e else int(e) for e in extents]))}"
    layout = Layout(text, shape)
    for dim, dealt in zip(DenseLayout.of(layout).dimensions, layout.distributions):
        assert (dealt.kind, dealt.extent, dealt.coordinates) == (dim.kind, dim.extent, dim.coordinates)
        assert (dealt.block or dealt.extent == 0 or dealt.kind == "GEN_BLOCK") and tuple(dealt.sizes) == dim.sizes
        owned = [count(dim.owned(c, 0, dim.extent)) for c in range(dim.coordinates)]
        assert dealt.largest_count == max(owned)
        assert list(run_starts(dealt)) == dim.boundaries(1000)[0]
    lo = [data.draw(st.integers(0, n)) for n in shape]
    hi = [data.draw(st.integers(a, n)) for a, n in zip(lo, shape)]
    window = layout.window(lo, hi)
    dense, dense_window = DenseLayout.of(layout), DenseLayout.of(window)
    zeros = [0] * len(shape)
    for p, rank in enumerate(layout.ranks):
        assert dense.rank_of_process(p) == rank
        owned = dense.owned(p, lo, hi)
        assert tuple(map(count, owned)) == window.local_shape(rank)
        plain = np.arange(window.size).reshape(window.shape)
        np.testing.assert_array_equal(plain[window.indices(rank)], plain[selector(owned, lo)])
        assert dense.local_start(p, lo) == layout.local_start(rank, lo)
        again = dense_window.owned(p, zeros, window.shape)
        assert [np.arange(99)[a].tolist() if isinstance(a, slice) else a.tolist() for a in owned] == [
            (np.arange(99)[a] + low).tolist() if isinstance(a, slice) else (a + low).tolist()
            for a, low in zip(again, lo)
        ]
    if layout.size:
        index = [data.draw(st.integers(0, n - 1)) for n in shape]
        owner = [int(dim.owner(i)) for dim, i in zip(dense.dimensions, index)]
        assert dense.rank_of_process(dense.process_at(owner)) == layout.owner(index)


def test_layouts_and_sizes_in_words(here):
    array = sample((8, 5))
    np.save("a.npy", array)
    layout = Layout("(CYCLIC, *) on 2, ranks=3:5", (8, 5))
    report = move("a.npy", "s", layout, max_mem="64MiB")
    assert report.max_mem_bytes == 64 << 20 and str(open_store("s").layout) == str(layout)
    np.testing.assert_array_equal(np.load("s/rank-00004.npy"), array[1::2])
    move("s", "t", Layout("(*, BLOCK) on 2", (5, 8)), axes=(1, 0), max_mem="20000 k")
    np.testing.assert_array_equal(np.load("t/rank-00000.npy"), array.T[:, :4])
    np.testing.assert_array_equal(np.load("t/rank-00001.npy"), array.T[:, 4:])
    move("t", "back.npy", Layout("(*, *) on 1, order=F", (8, 5)), axes=np.array([1, 0]))
    assert np.load("back.npy").flags.f_contiguous


@pytest.mark.parametrize(
    "error, words, arguments",
    [
        (ArgumentError, "to is 4; it must be a Layout, text or None", {"to": 4}),
        (ArgumentError, "axes is 1; it must be a sequence of integers", {"axes": 1}),
        (ArgumentError, r"axes\[1\] is '0'", {"axes": [1, "0"]}),
        (ArgumentError, "axes 1,1 is no permutation", {"axes": [1, 1]}),
        (ArgumentError, "max_mem '64 potatoes' is not a size", {"max_mem": "64 potatoes"}),
        (ArgumentError, "threads is '2'; it must be an integer or None", {"threads": "2"}),
        (ArgumentError, "threads is 0; it must be at least 1", {"threads": 0}),
        (ArgumentError, "comm must be a communicator of mpi4py, not int", {"comm": 3}),
        (ArgumentError, "destination is 5; it must be text", {"destination": 5}),
        (StoreError, "is a folder", {"destination": "folder.npy", "force": True}),
    ],
)
def test_mistakes_are_told(here, error, words, arguments):
    np.save("a.npy", sample((8, 5)))
    os.mkdir("folder.npy")
    if "comm" in arguments:
        pytest.importorskip("mpi4py")
    with pytest.raises(error, match=words):
        move(**{"source": "a.npy", "destination": "b.npy", **arguments})
    assert sorted(os.listdir()) == ["a.npy", "folder.npy"]


def test_a_layout_of_another_shape(here):
    np.save("a.npy", sample((8, 5)))
    with pytest.raises(ShapeError, match=r"to= has shape \(5, 8\), the array .* \(8, 5\)"):
        move("a.npy", "b.npy", Layout("(*, *) on 1", (5, 8)))
    assert os.listdir() == ["a.npy"]


@pytest.mark.parametrize("precious", ["precious.npy", "layout.json.bak", "sub/folder.npy"])
def test_force_takes_no_data_away(here, precious):
    np.save("a.npy", sample((8, 5)))
    os.mkdir("d")
    os.makedirs(os.path.dirname(os.path.join("d", precious)), exist_ok=True)
    with open(os.path.join("d", precious), "w") as file:
        file.write("mine")
    name = precious.split("/")[0]
    for _ in range(2):
        with pytest.raises(StoreError, match=f"holds '{name}'"):
            move("a.npy", "d", "(BLOCK, *) on 2", force=True)
        assert open(os.path.join("d", precious)).read() == "mine" and sorted(os.listdir()) == ["a.npy", "d"]
        if not os.path.exists("d/layout.json"):  # nor beside a store
            move("a.npy", "e", "(BLOCK, *) on 2")
            for shard in os.listdir("e"):
                os.rename(f"e/{shard}", f"d/{shard}")
            os.rmdir("e")


def test_flags_and_names_are_checked(here):
    np.save("a.npy", sample((8, 5)))
    for wrong in ({"force": "no"}, {"verify": "no"}):
        with pytest.raises(ArgumentError, match="is 'no'; it must be True or False"):
            move("a.npy", "b.npy", **wrong)
    for name in ("b\0.npy", "b\ud800.npy"):
        with pytest.raises(StoreError, match="is no file name"):
            move("a.npy", name)
    assert os.listdir() == ["a.npy"]


def test_windows_are_the_cheapest(here):
    """What is chosen with more memory is hardly ever thought to be slower, and no more is taken than helps."""
    for shape, itemsize, source, destination, axes in [
        ((16384, 8192), 8, "(*, *) on 1", "(*, *) on 1", (1, 0)),
        ((64,) * 5, 1, "(*, *, *, *, *) on 1", "(*, *, *, *, *) on 1", (4, 3, 2, 1, 0)),
        ((16384, 16384), 4, "(*, CYCLIC) on 256", "(BLOCK, *) on 256", (0, 1)),
        ((16384, 16384), 4, "(CYCLIC, *) on 64", "(*, CYCLIC) on 64", (0, 1)),
        ((16384, 8192), 8, "(BLOCK, *) on 4", "(CYCLIC(64), CYCLIC(64)) on 2x2", (0, 1)),
        ((400, 300, 200), 4, "(GEN_BLOCK(400, 0), *, *) on 2", "(CYCLIC(7), *, BLOCK) on 2x4", (2, 0, 1)),
    ]:
        sides = (
            windows.Side.of(Layout(source, shape)),
            windows.Side.of(Layout(destination, [shape[a] for a in axes]), axes),
        )
        costs = []
        for power in range(16, 31):
            window = windows.choose_window(shape, itemsize, *sides, 1 << power)
            assert np.prod(window) * itemsize <= 1 << power
            costs.append(windows._nanoseconds(shape, itemsize, *sides, window))
        assert all(more <= 1.05 * less for less, more in itertools.pairwise(costs)) and costs[-1] < costs[0] / 4
        assert np.prod(window) * itemsize <= 256 << 20


def test_memory_that_is_left(tmp_path, monkeypatch):
    """Control groups of both versions, nested; the page cache is left, too."""

    def group(folder, limit, usage, files, stat):
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in zip(files, (limit, usage)):
            (folder / name).write_text(f"{value}\n")
        (folder / "memory.stat").write_text("".join(f"{name} {value}\n" for name, value in stat.items()))

    v2, v1 = ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable: 8000000 kB\n")
    told = tmp_path / "proc" / "self" / "cgroup"
    told.write_text("0::/a/b\n")
    monkeypatch.setattr(memory, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path / "cgroup")
    assert memory.available_bytes() == 8_000_000 * 1024 and memory.default_ceiling() == 1 << 30
    group(tmp_path / "cgroup" / "a" / "b", "max", 10, v2, {})
    assert memory.available_bytes() == 8_000_000 * 1024
    stat = {"anon": 5, "inactive_file": 600 << 20, "active_file": 300 << 20}
    group(tmp_path / "cgroup" / "a", 1 << 30, 1000 << 20, v2, stat)
    assert memory.available_bytes() == 924 << 20 and memory.default_ceiling(4) == (924 << 20) // 16
    told.write_text("5:cpu,cpuacct:/x\n4:memory:/job\n")
    assert memory.available_bytes() == 8_000_000 * 1024
    group(tmp_path / "cgroup" / "memory" / "job", 2 << 30, 2 << 30, v1, {"total_inactive_file": 1 << 30})
    assert memory.available_bytes() == 1 << 30 and memory.default_ceiling() == 1 << 28


def test_open_store_says_what_is_there(here):
    np.save("a.npy", sample((8, 5)))
    move("a.npy", "s", "(BLOCK, *) on 2")
    assert str(open_store("s", Alone()).layout) == "(BLOCK, *) on 2"
    assert open_store("a.npy", Alone()).shape == (8, 5)


@pytest.mark.parametrize("chunks", [(2, 1, 1), (3, 1, 2), (1, 1, 1)])
def test_arrays_without_elements_get_chunks_that_cut_what_they_have(here, chunks):
    zarr = pytest.importorskip("zarr")
    np.save("none.npy", np.zeros((3, 0, 2), "f4"))
    move("none.npy", "none.zarr", chunks=chunks)
    assert zarr.open("none.zarr", mode="r")[...].shape == (3, 0, 2)
