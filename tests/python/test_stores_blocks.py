"""XArrays saved to files and loaded from them, against NumPy's own files; broken files, interrupted moves, mistakes."""

import contextlib
import doctest
import os
import sys

import longshore as ls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from longshore import FloorPlan, Region, regions, stores
from longshore.errors import ArgumentError, DTypeError, MemoryLimitError, ShapeError, StoreError
from longshore.stores import blocks as moves
from longshore.stores import ends
from strategies import DTYPES

try:
    import h5py
except ImportError:
    h5py = None

needs_h5py = pytest.mark.skipif(h5py is None, reason="h5py is missing")
KINDS = ["npy", "raw", pytest.param("h5", marks=needs_h5py)]
DOMAIN = Region((-2, 3), (11, 20))
WHOLE = np.arange(13 * 17.0).reshape(13, 17)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@contextlib.contextmanager
def pieces_of(size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moves, "_PIECE_BYTES", size)
        yield


def options(kind, order="C"):
    return {"npy": {"order": order}, "raw": {"order": order, "offset": 7}, "h5": {"dataset": "some/field"}}[kind]


def reading(kind, order="C"):
    return {} if kind == "npy" else options(kind, order)


def put(path, kind, array, order="C"):
    """Writes a file without Longshore."""
    if kind == "npy":
        np.save(path, np.asarray(array, order=order))
    elif kind == "raw":
        with open(path, "wb") as file:
            file.write(b"HEADER:" + array.tobytes(order) + b"and more")
    else:
        with h5py.File(path, "w") as file:
            file.create_dataset(
                "some/field", data=array, chunks=tuple(max(1, n // 3) for n in array.shape), compression="gzip"
            )


def take(path, kind, shape, dtype, order="C"):
    """Reads a file without Longshore."""
    if kind == "npy":
        found = np.load(path)
        assert found.flags[f"{order}_CONTIGUOUS"]
        return found
    if kind == "raw":
        raw = open(path, "rb").read()
        assert raw[:7] == bytes(7)
        return np.frombuffer(raw, dtype, offset=7).reshape(shape, order=order)
    with h5py.File(path) as file:
        assert sorted(file) == ["some"]
        return file["some/field"][...]


def filled(blocks, whole, domain=None, ghost=0, **how):
    """An XArray of these values, and -1 (all bits set) in its ghost cells."""
    u = ls.XArray(blocks, whole.dtype, ghost, **how)
    for k, grid in u.items():
        np.asarray(grid)[...] = np.frombuffer(b"\xff" * whole.itemsize, whole.dtype)[0]
        np.asarray(grid.interior)[...] = whole[blocks[k].slices(domain or blocks.bounding)]
    return u


def same(a, b):
    assert a.shape == b.shape and a.dtype == b.dtype
    assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def rows(domain=DOMAIN, ranks=3):
    return FloorPlan.even(domain, ranks)


@st.composite
def plans(draw, domain):
    """Blocks that cover a domain once, on few ranks."""
    if draw(st.booleans()):
        return FloorPlan.even(domain, draw(st.integers(1, 6)))
    pieces = regions.split_to_size(domain, draw(st.integers(1, 7)))
    return FloorPlan(pieces, draw(st.lists(st.integers(0, 3), min_size=len(pieces), max_size=len(pieces))))


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_there_and_back(kind, tmp_path_factory, data):
    dims = data.draw(st.integers(1, 4))
    lower = data.draw(st.lists(st.integers(-5, 5), min_size=dims, max_size=dims))
    domain = Region(lower, [lo + data.draw(st.integers(1, 9)) for lo in lower])
    dtype = np.dtype(data.draw(DTYPES))
    if kind == "h5" and dtype.kind == "M":
        dtype = np.dtype("f8")  # HDF5 has no dates
    whole = (
        np.random.default_rng(1)
        .integers(0, 2, domain.size * dtype.itemsize, np.uint8)
        .view(dtype)
        .reshape(domain.shape)
    )
    order = "C" if kind == "h5" else data.draw(st.sampled_from("CF"))
    ghost, piece = data.draw(st.integers(0, 2)), data.draw(st.sampled_from([1, 40, 300, 1 << 20]))
    path = tmp_path_factory.mktemp("files") / f"a.{kind}"
    source, target = data.draw(plans(domain)), data.draw(plans(domain))
    with pieces_of(piece):
        stores.save(
            filled(source, whole, ghost=ghost, order=data.draw(st.sampled_from("CF"))), path, **options(kind, order)
        )
        same(take(path, kind, domain.shape, dtype, order), whole)
        assert os.listdir(path.parent) == [path.name]
        v = ls.XArray(target, dtype, ghost, order=data.draw(st.sampled_from("CF")))
        into_ghosts = data.draw(st.booleans())
        stores.load(path, v, ghost=into_ghosts, threads=data.draw(st.integers(1, 3)), **reading(kind, order))
    padded = np.zeros(domain.grow(ghost).shape, dtype)
    padded[domain.slices(domain.grow(ghost))] = whole
    for k, grid in v.items():
        want = padded[grid.region.slices(domain.grow(ghost))].copy()
        if not into_ghosts:
            want[...] = np.zeros((), dtype)
            want[target[k].slices(grid.region)] = whole[target[k].slices(domain)]
        same(np.asarray(grid), want)


def test_files_of_others(kind):
    put("a", kind, WHOLE, "F" if kind != "h5" else "C")
    os.rename("a.npy" if kind == "npy" else "a", f"a.{kind}")
    v = ls.XArray(rows(), float)
    stores.load(f"a.{kind}", v, **reading(kind, "F" if kind != "h5" else "C"))
    for k, grid in v.items():
        same(np.asarray(grid), WHOLE[v.blocks[k].slices(DOMAIN)])


def test_a_part_of_the_array_and_a_part_of_the_file(kind):
    """Saved is what lies in the domain, whatever the blocks have beyond; loaded is what the blocks have of the file."""
    inner = Region((0, 5), (7, 12))
    with pieces_of(100):
        stores.save(filled(rows(), WHOLE), f"a.{kind}", domain=inner, **options(kind))
        same(take(f"a.{kind}", kind, (7, 7), WHOLE.dtype), WHOLE[inner.slices(DOMAIN)])
        v = filled(rows(), 0 * WHOLE)
        stores.load(f"a.{kind}", v, domain=inner, **reading(kind))
        want = 0 * WHOLE
        want[inner.slices(DOMAIN)] = WHOLE[inner.slices(DOMAIN)]
        for k, grid in v.items():
            same(np.asarray(grid), want[v.blocks[k].slices(DOMAIN)])
        stores.save(filled(rows(), WHOLE), f"b.{kind}", **options(kind))
        some = FloorPlan([Region((1, 4), (3, 6)), Region((2, 5), (9, 7)), Region((4, 4), (4, 9))], [0, 1, 1])
        few = ls.XArray(some, float, ghost=4)
        stores.load(f"b.{kind}", few, domain=DOMAIN, ghost=True, **reading(kind))
    for grid in few:
        seen = grid.region & DOMAIN
        same(grid.on(seen), WHOLE[seen.slices(DOMAIN)])
        assert np.count_nonzero(grid) == np.count_nonzero(grid.on(seen))


def test_only_what_is_needed_is_read(monkeypatch):
    np.save("a.npy", np.arange(1000.0).reshape(100, 10))
    read = []
    plain = ends.ElementsFile.transfer
    monkeypatch.setattr(ends.ElementsFile, "transfer", lambda self, *box: (read.append(box[1].size), plain(self, *box)))
    u = ls.XArray(FloorPlan([Region((40, 2), (42, 4)), Region((90, 2), (91, 3))], [0, 0]), float)
    with pieces_of(5 * 8):
        stores.load("a.npy", u, domain=Region.of_shape((100, 10)))
    assert u[0].tolist() == [[402, 403], [412, 413]] and u[1][0, 0] == 902 and sum(read) < 20


def test_empty_arrays(kind):
    nothing = FloorPlan([Region((0, 3), (0, 5))], [0])
    u = ls.XArray(nothing, "int16", ghost=1)
    stores.save(u, f"a.{kind}", domain=Region((0, 3), (0, 5)), **options(kind))
    assert take(f"a.{kind}", kind, (0, 2), np.dtype("int16")).shape == (0, 2)
    stores.load(f"a.{kind}", u, domain=Region((0, 3), (0, 5)), **reading(kind))


@pytest.mark.parametrize("proxy", [False, True])
def test_movers_go_again_and_again(kind, proxy):
    u, v = ls.XArray(rows(), float, ghost=1), ls.XArray(rows(ranks=5), float)
    with pieces_of(200):
        put_ = stores.bind(u, f"a.{kind}", force=True, proxy=proxy, **options(kind))
        for step in (put_.wait, put_.test):
            with pytest.raises(ArgumentError, match="without start"):
                step()
        assert os.listdir() == []
        get = None
        for step in range(4):
            for k, grid in u.items():
                grid.interior[...] = step + WHOLE[u.blocks[k].slices(DOMAIN)]
            put_.start()
            with pytest.raises(ArgumentError, match="started already"):
                put_.start()
            while step % 2 and not put_.test():
                pass
            if step:
                assert (
                    take(f"a.{kind}", kind, WHOLE.shape, WHOLE.dtype)[0, 0] == step - 1
                )  # the last whole one, until wait()
            put_.wait()
            assert os.listdir() == [f"a.{kind}"]
            get = get or stores.bind(f"a.{kind}", v, proxy=proxy, **reading(kind))
            get.start()
            while step % 2 and not get.test():
                pass
            get.wait()
            for k, grid in v.items():
                same(np.asarray(grid), step + WHOLE[v.blocks[k].slices(DOMAIN)])
    assert put_.moved_bytes == get.moved_bytes == WHOLE.nbytes and 200 <= get.workspace_bytes < 1 << 20
    assert f"a.{kind} in " in repr(put_) and "threads engine" in get.path


def fail_at(monkeypatch, kind, error, nth=3):
    """Makes the n-th access to a file fail."""
    file = ends.Hdf5File if kind == "h5" else ends.ElementsFile
    plain, calls = file.transfer, []

    def transfer(self, *box):
        calls.append(box)
        if len(calls) == nth:
            raise error
        plain(self, *box)

    monkeypatch.setattr(file, "transfer", transfer)
    return calls


@pytest.mark.parametrize("proxy", [False, True])
def test_whole_or_not_at_all(kind, proxy, monkeypatch):
    u = filled(rows(), WHOLE)
    stores.save(u, f"a.{kind}", **options(kind))
    calls = fail_at(monkeypatch, kind, StoreError(28, "No space left on device"))
    with pieces_of(200):
        mover = stores.bind(filled(rows(), 2 * WHOLE), f"a.{kind}", force=True, proxy=proxy, **options(kind))
        with pytest.raises(StoreError, match="No space left") as caught:
            mover()
        assert caught.value.errno == 28 and len(calls) == 3
        assert os.listdir() == [f"a.{kind}"]
        same(take(f"a.{kind}", kind, WHOLE.shape, WHOLE.dtype), WHOLE)
        mover()
        same(take(f"a.{kind}", kind, WHOLE.shape, WHOLE.dtype), 2 * WHOLE)


def test_an_interrupted_save_is_not_published(monkeypatch):
    fail_at(monkeypatch, "npy", KeyboardInterrupt())
    with pieces_of(200):
        mover = stores.bind(filled(rows(), WHOLE), "a.npy")
    mover.start()
    with pytest.raises(KeyboardInterrupt):
        while not mover.test():
            pass
    with pytest.raises(KeyboardInterrupt):
        mover.wait()
    assert os.listdir() == []
    mover()
    assert os.listdir() == ["a.npy"]


@pytest.mark.parametrize("proxy", [False, True])
def test_a_mover_given_up_leaves_nothing(kind, proxy):
    with pieces_of(200):
        mover = stores.bind(filled(rows(), WHOLE), f"a.{kind}", proxy=proxy, **options(kind))
    mover.start()
    mover.test()
    assert len(os.listdir()) == 1
    del mover
    assert os.listdir() == []


def test_an_existing_file_stays(kind):
    u, name = filled(rows(), WHOLE), f"a.{kind}"
    mover = stores.bind(u, name, **options(kind))
    mover.start()
    with open(name, "w") as file:
        file.write("mine")
    with pytest.raises(StoreError, match="has appeared meanwhile"):
        mover.wait()
    with pytest.raises(StoreError, match="exists already"):
        mover.start()
    with pytest.raises(StoreError, match="exists already"):
        stores.save(u, name, **options(kind))
    assert open(name).read() == "mine" and os.listdir() == [name]


def test_a_file_that_shrinks_while_it_is_read():
    np.save("a.npy", WHOLE)
    with pieces_of(200):
        mover = stores.bind("a.npy", ls.XArray(rows(), float))
    mover.start()
    os.truncate("a.npy", 500)
    with pytest.raises(StoreError, match="changed while it was read"):
        mover.wait()
    np.save("a.npy", np.asfortranarray(WHOLE))
    with pytest.raises(StoreError, match="is in F order; it was in C order"):
        mover.start()
    np.save("a.npy", WHOLE[1:])
    with pytest.raises(ShapeError, match="12 indices in dimension 0, the domain has 13"):
        mover.start()
    np.save("a.npy", WHOLE)
    mover()


def test_pieces_are_whole_chunks():
    domain = Region((5, 7, 0), (45, 35, 13))
    whole = FloorPlan([domain], [0])
    for grain in (1, 1, 1), (10, 8, 4), (40, 28, 13), (7, 1, 9):
        for order in "CF":
            for ranks, size in (1, 5000), (3, 1 << 30), (4, 1):
                pieces = moves._cut(whole, domain, grain, order, 8, ranks, size)
                assert sum(piece.size for piece in pieces) == domain.size
                assert all(8 * piece.size <= max(size, 8 * np.prod(grain)) for piece in pieces)
                assert len(pieces) >= min(ranks, np.prod([-(-n // g) for n, g in zip(domain.shape, grain)]))
                places = [domain.offset_of(piece.lower, order) for piece in pieces]
                assert places == sorted(places)
                for piece in pieces:
                    assert all(
                        (a - lo) % g == 0 and ((b - lo) % g == 0 or b == hi)
                        for a, b, lo, hi, g in zip(piece.lower, piece.upper, domain.lower, domain.upper, grain)
                    )


def test_what_cannot_be_saved():
    half = FloorPlan([Region((0, 0), (4, 3)), Region((4, 0), (8, 2))], [0, 1])
    with pytest.raises(ArgumentError, match=r"no block has the points \[4:8, 2:3\] of the domain \[0:8, 0:3\]"):
        stores.save(ls.XArray(half, float), "a.npy")
    with pytest.raises(ArgumentError, match=r"no block has the points \[8:9, 0:2\]"):
        stores.save(ls.XArray(half, float), "a.npy", domain=Region((0, 0), (9, 2)))
    twice = FloorPlan([Region((0,), (4,)), Region((8,), (9,)), Region((2,), (8,))], [0, 1, 1])
    with pytest.raises(ArgumentError, match=r"blocks 0 and 2 both have the points \[2:4\]"):
        stores.save(ls.XArray(twice, float), "a.npy")
    stores.save(ls.XArray(twice, float), "a.npy", domain=Region((4,), (9,)))
    assert np.load("a.npy").shape == (5,)


MISTAKES = [
    (ArgumentError, "one of source and destination", lambda u: stores.bind(u, u)),
    (ArgumentError, "one of source and destination", lambda u: stores.bind("a.npy", "b.npy")),
    (ArgumentError, "does not say what is in the file", lambda u: stores.save(u, "a.dat")),
    (ArgumentError, 'must be "C" or "F"', lambda u: stores.save(u, "a.npy", order="A")),
    (ArgumentError, "must begin at 0", lambda u: stores.save(u, "a.dat", offset=-1)),
    (ArgumentError, "before 2\\^63", lambda u: stores.save(u, "a.dat", offset=2**63 - 8)),
    (ArgumentError, "ghost cells are not saved", lambda u: stores.save(u, "b.npy", ghost=True)),
    (ArgumentError, "force= is for saving", lambda u: stores.load("a.npy", u, force=True)),
    (ArgumentError, "no offset=", lambda u: stores.load("a.h5", u, dataset="u", offset=3)),
    (ArgumentError, "in C order", lambda u: stores.load("a.h5", u, dataset="u", order="F")),
    (ArgumentError, "blocks of rank 1 alone", lambda u: stores.load("a.npy", ls.XArray(u.blocks, float, rank=1))),
    (
        ShapeError,
        "17 indices in dimension 1, .* has 16",
        lambda u: stores.load("a.npy", u, domain=Region((0, 0), (13, 16))),
    ),
    (ShapeError, "2 dimensions, the domain has 1", lambda u: stores.load("a.npy", u, domain=Region((0,), (13,)))),
    (DTypeError, "dtype float64, the XArray has float32", lambda u: stores.load("a.npy", ls.XArray(u.blocks, "f4"))),
    (DTypeError, "dtype float64, the XArray has >f8", lambda u: stores.load("a.npy", ls.XArray(u.blocks, ">f8"))),
    (StoreError, "is missing", lambda u: stores.load("b.npy", u)),
    (StoreError, "does not exist; make it first", lambda u: stores.save(u, "none/b.npy")),
    (StoreError, "truncated", lambda u: (os.truncate("a.npy", 1000), stores.load("a.npy", u))),
    (StoreError, r"1896 bytes; .*begins at 129 ends at 1897", lambda u: stores.load("a.npy", u, offset=129)),
    (StoreError, "not a plain file", lambda u: (os.mkfifo("f"), stores.load("f", u, offset=0))),
    (StoreError, "symbolic link", lambda u: (os.symlink("a.npy", "l.npy"), stores.save(u, "l.npy"))),
    (StoreError, "disk of .* is full", lambda u: stores.save(u, "a.dat", offset=2**62)),
    (MemoryLimitError, "max_mem allows 100; allow", lambda u: stores.load("a.npy", u, max_mem=100)),
]


@pytest.mark.parametrize("error, words, work", MISTAKES, ids=[words for _, words, _ in MISTAKES])
def test_mistakes_are_told(error, words, work):
    np.save("a.npy", WHOLE)
    with pytest.raises(error, match=words):
        work(ls.XArray(rows(), float))
    assert not [name for name in os.listdir() if "partial" in name]


def test_within_the_memory_allowed():
    shape = (300, 40, 20)
    whole = np.random.default_rng(3).random(shape)
    u = filled(FloorPlan.even(Region.of_shape(shape), 6), whole)
    mover = stores.bind(u, "a.npy", max_mem="256KiB")
    assert mover.workspace_bytes <= 256 << 10 < whole.nbytes // 7
    mover()
    same(np.load("a.npy"), whole)


@needs_h5py
def test_hdf5_files_that_are_not_what_they_should_be():
    u = ls.XArray(rows(), float)
    with h5py.File("a.h5", "w") as file:
        file["u"] = WHOLE
        file["group/u"] = WHOLE
        file["words"] = ["a", "b"]
        file["nothing"] = h5py.Empty("f8")
        file["elsewhere"] = h5py.ExternalLink("b.h5", "u")
        file["nowhere"] = h5py.SoftLink("/none")
        layout = h5py.VirtualLayout(WHOLE.shape, float)
        layout[...] = h5py.VirtualSource("b.h5", "u", WHOLE.shape)
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external", WHOLE.shape, float, external="secrets.bin")
    with h5py.File("b.h5", "w") as file:
        file["u"] = WHOLE
    for dataset, error, words in [
        ("none", StoreError, r"no dataset 'none'; at its top are \['elsewhere', 'external', 'group'"),
        ("group", StoreError, "no dataset 'group'"),
        ("nowhere", StoreError, "no dataset 'nowhere'"),
        ("nothing", StoreError, "neither a shape"),
        ("words", ShapeError, "a.h5: words has 1 dimensions"),
        ("elsewhere", StoreError, "lie in other files"),
        ("virtual", StoreError, "lie in other files"),
        ("external", StoreError, "lie in other files"),
    ]:
        with pytest.raises(error, match=words):
            stores.load("a.h5", u, dataset=dataset)
    with pytest.raises(ArgumentError, match="say with dataset= which"):
        stores.load("a.h5", u)
    stores.load("a.h5", u, dataset="/group/u")
    raw = bytearray(open("a.h5", "rb").read())
    for broken in (b"", b"\x89HDF\r\n\x1a\n", raw[:300], b"x" * 3000):
        with open("c.h5", "wb") as file:
            file.write(broken)
        with pytest.raises(StoreError, match="cannot (open|read)"):
            stores.load("c.h5", u, dataset="u")
    with pytest.raises(StoreError, match="HDF5 cannot hold 'u' of dtype datetime64"):
        stores.save(ls.XArray(rows(), "M8[s]"), "d.h5", dataset="u")
    with pytest.raises(StoreError, match="cannot read .*a.h5"):
        with h5py.File("a.h5", "r+") as file:
            file.create_dataset("z", data=WHOLE, chunks=(13, 17), compression="gzip")
            offset = file["z"].id.get_chunk_info(0).byte_offset
        with open("a.h5", "r+b") as file:
            file.seek(offset)
            file.write(b"not what gzip wrote")
        stores.load("a.h5", u, dataset="z")


def test_without_h5py(monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ArgumentError, match="pip install h5py"):
        stores.save(ls.XArray(rows(), float), "a.h5", dataset="u")


def test_docstrings():
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for what in (stores.bind, stores.load, stores.save):
        words = {"np": np, "stores": stores, "load": stores.load, "save": stores.save, "path": f"{what.__name__}.npy"}
        for test in finder.find(what, globs={**vars(ls), **words}):
            runner.run(test)
    assert runner.summarize() == doctest.TestResults(failed=0, attempted=12)


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"force": "no"}, "force is 'no'; it must be True or False"),
        ({"proxy": 1}, "proxy is 1; it must be True or False"),
        ({"domain": (8, 8)}, r"domain is \(8, 8\); it must be a Region or None"),
        ({"offset": "12"}, "offset is '12'; it must be an integer or None"),
        ({"offset": 1.5}, "offset is 1.5"),
        ({"threads": "two"}, "threads is 'two'"),
        ({"dataset": 3}, "dataset is 3"),
    ],
)
def test_arguments_that_make_no_sense(wrong, words):
    u = filled(rows(), WHOLE)
    with pytest.raises(ArgumentError, match=words):
        stores.save(u, "keep.npy", **wrong)
    assert os.listdir() == []


@needs_h5py
@pytest.mark.parametrize("name", ["x\0y", ".", "./b", "g/../c"])
def test_names_that_are_no_datasets(name):
    with pytest.raises(ArgumentError, match="is no name of a dataset"):
        stores.save(filled(rows(), WHOLE), "a.h5", dataset=name)
    assert os.listdir() == []
