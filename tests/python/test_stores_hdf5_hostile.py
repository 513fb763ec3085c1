"""HDF5 files that are damaged, truncated or made by a hostile hand, and writers that are killed."""

import os
import signal
import struct
import subprocess
import sys
import tracemalloc
import zlib
from dataclasses import replace

import numpy as np
import pytest
from longshore.errors import StoreError
from longshore.stores import hdf5_filters
from longshore.stores.array import ArrayFacts, GroupFacts, LinkFacts
from longshore.stores.hdf5_reader import Hdf5Reader
from longshore.stores.hdf5_writer import Hdf5Writer
from store_copies import RANDOM, box, make

h5py = pytest.importorskip("h5py")
pytest.importorskip("numcodecs")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "words", [("gzip:4",), ("fletcher32",), ("shuffle", "zstd:1"), ("shuffle", "lz4", "fletcher32")]
)
def test_flipped_bits_are_found(words):
    values = RANDOM.integers(0, 50, (12, 64)).astype("i4")
    make(ArrayFacts((12, 64), np.dtype("i4"), (4, 32), codecs=words), values)
    with h5py.File("a.h5") as file:
        chunks = [file["x"].id.get_chunk_info(k) for k in range(6)]
    good = open("a.h5", "rb").read()
    tried = 0
    for bit in RANDOM.choice(8 * 6 * min(chunk.size for chunk in chunks), 150, replace=False).tolist():
        chunk, place = chunks[bit % 6], bit // 6
        data = bytearray(good)
        data[chunk.byte_offset + place // 8] ^= 1 << place % 8
        open("b.h5", "wb").write(data)
        reader = Hdf5Reader("b.h5")
        index = tuple(start // n for start, n in zip(chunk.chunk_offset, (4, 32)))
        array = reader.array("x")
        try:
            found = array.decode(index, array.read(index))
        except StoreError as error:
            assert str(error).startswith(f"b.h5::/x: chunk {index} is damaged: ")
            tried += 1
        else:  # a bit that means nothing, as deflate and Zstandard have some
            assert (found == values[box(array.grid, index)]).all()
        reader.close()
    assert tried > 130


def test_truncated_files():
    values = np.arange(40 * 50, dtype="f4").reshape(40, 50)
    with h5py.File("good.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(10, 50), compression="gzip")
        file["y"] = values
    good = open("good.h5", "rb").read()
    for length in [0, 1, 7, 50, 500, *range(1000, len(good), 997), len(good) - 1]:
        open("a.h5", "wb").write(good[:length])
        with pytest.raises(StoreError, match="a.h5"):
            Hdf5Reader("a.h5")
    open("a.h5", "wb").write(good)
    reader = Hdf5Reader("a.h5")
    arrays = [reader.array(name) for name in "xy"]
    os.truncate("a.h5", 100)
    for array in arrays:
        with pytest.raises(StoreError, match="ends behind the end of a.h5, which has become shorter"):
            array.read((0, 0))
    reader.close()


def test_chunks_and_datasets_beyond_the_file():
    with h5py.File("good.h5", "w") as file:
        made = file.create_dataset("x", (100, 100), "u1", chunks=(50, 100), compression="gzip")
        made[...] = RANDOM.integers(0, 256, (100, 100))
        file["y"] = np.arange(5000.0)
        file.flush()
        info, offset = made.id.get_chunk_info(1), file["y"].id.get_offset()
    good = open("good.h5", "rb").read()
    key = struct.pack("<IIQQ", info.size, 0, 50, 0)
    for old, new, words in [
        (struct.pack("<Q", info.byte_offset), struct.pack("<Q", 1 << 40), "ends behind the end of the file"),
        (struct.pack("<Q", info.byte_offset), struct.pack("<Q", (1 << 63) + 5), "beyond 2\\^63 bytes"),
        (key, struct.pack("<IIQQ", 0xFFFFFF00, 0, 50, 0), "chunk \\(1, 0\\), 4294967040 bytes at offset"),
    ]:
        assert good.count(old) == 1
        open("a.h5", "wb").write(good.replace(old, new))
        reader = Hdf5Reader("a.h5")
        with pytest.raises(StoreError, match=words):
            reader.array("x")
        reader.close()
    assert good.count(struct.pack("<Q", offset)) == 1
    open("a.h5", "wb").write(good.replace(struct.pack("<Q", offset), struct.pack("<Q", len(good) - 39_999)))
    with pytest.raises(StoreError, match=r"a.h5::/y(, 40000 bytes at offset \d+, ends behind|.*invalid dataset size)"):
        Hdf5Reader("a.h5").array("y")


def test_bombs_take_no_memory():
    pytest.importorskip("hdf5plugin")
    from numcodecs import blosc, lz4, zstd

    zeros = bytes(60 << 20)
    bombs = {"gzip:1": zlib.compress(zeros), "zstd:1": zstd.compress(zeros), "blosc": blosc.compress(zeros, b"lz4", 5),
             "bz2:9": __import__("bz2").compress(zeros)}  # fmt: skip
    bombs["lz4"] = struct.pack(">QII", len(zeros), len(zeros), 1000) + lz4.compress(zeros[:250_000])[4:1004]
    del zeros
    with h5py.File("a.h5", "w") as file:
        for word, bomb in bombs.items():
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk((600_000,))
            hdf5_filters.set_filters(plist, hdf5_filters.filters_from([word], 1, 600_000))
            made = h5py.h5d.create(file.id, word.encode(), h5py.h5t.STD_U8LE, h5py.h5s.create_simple((600_000,)), plist)
            made.write_direct_chunk((0,), bomb)
    reader = Hdf5Reader("a.h5")
    for word in bombs:
        array = reader.array(word)
        tracemalloc.start()
        with pytest.raises(StoreError, match=r"chunk \(0,\) is damaged"):
            array.decode((0,), array.read((0,)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 5 << 20, word
    reader.close()


def test_hostile_files():
    with h5py.File("other.h5", "w") as file:
        file["v"] = np.zeros(3)
    with h5py.File("a.h5", "w") as file:
        layout = h5py.VirtualLayout((3,), "f8")
        layout[:] = h5py.VirtualSource("other.h5", "v", (3,))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("outside", (3,), "f8", external=[("raw.bin", 0, 24)])
        file["link"] = h5py.ExternalLink("other.h5", "/v")
        file.create_dataset("huge", (1 << 40, 1 << 20), "u1", chunks=(1 << 10, 1 << 10))
        file.create_group("a/b/c")
        file["a/b/c/up"] = file["a"]
    reader = Hdf5Reader("a.h5")
    for name in ("virtual", "outside"):
        assert reader.tree.children[name].dtype is None
        with pytest.raises(StoreError, match=f"a.h5::/{name} cannot be read: it has elements that lie in other files"):
            reader.array(name)
    assert Hdf5Writer.losses(reader.tree) == [
        f"the elements of {name}, of type elements that lie in other files" for name in ("outside", "virtual")
    ]
    huge = reader.array("huge")
    assert huge.read((5, 5)) is None and huge.grid.counts == (1 << 30, 1 << 10)
    assert reader.tree.children["a"].children["b"].children["c"].children["up"] == LinkFacts("hard", "../..")
    reader.close()
    for inner, words in [
        ("none", "has no 'none'"),
        ("link", "leads to another file, .*other.h5"),
        ("a/x", "has no 'a/x'"),
    ]:
        with pytest.raises(StoreError, match=words):
            Hdf5Reader("a.h5", inner)
    with h5py.File("deep.h5", "w") as file:
        file.create_group("/".join("g" * 500))
    with pytest.raises(StoreError, match="groups in groups deeper than 64"):
        Hdf5Reader("deep.h5")
    with h5py.File("over.h5", "w") as file:
        file.create_dataset("x", (1 << 40, 1 << 40), "f8", chunks=(1, 1))
    with pytest.raises(StoreError, match="over.h5::/x cannot be used: its shape has more bytes than 64 bits can count"):
        Hdf5Reader("over.h5")
    with h5py.File("wide.h5", "w") as file:
        file.create_dataset("x", (2,), "V2000000000", chunks=(1,))
    with pytest.raises(StoreError, match="wide.h5::/x has elements of 2000000000 bytes; the file has"):
        Hdf5Reader("wide.h5")
    os.mkfifo("fifo.h5")
    open("text.h5", "w").write("my diary")
    open("old.nc", "wb").write(b"CDF\x01" + bytes(100))
    for name, words in [("fifo.h5", "is not a plain file"), ("text.h5", "cannot open text.h5"),
                        ("gone.h5", "is missing"),
                        ("old.nc", "convert it first: nccopy -k nc4 old.nc new.nc")]:  # fmt: skip
        with pytest.raises(StoreError, match=words):
            Hdf5Reader(name)
    with h5py.File("a.h5", "r+"), pytest.raises(StoreError, match="open"):
        Hdf5Reader("a.h5")


RESUMED = """
import sys, time, numpy as np
from longshore.stores.hdf5_writer import Hdf5Writer
from longshore.stores.netcdf import NetcdfWriter
from longshore.stores.array import ArrayFacts, GroupFacts
write = NetcdfWriter if sys.argv[1] == "nc" else Hdf5Writer
writer = write("a.h5", resume=sys.argv[2] != "0")
x = ArrayFacts((6000, 16), np.dtype("i4"), (1, 16), codecs=("gzip:1", "fletcher32"), names=("t", "s"))
writer.create(GroupFacts({"g": GroupFacts({"x": x, "y": ArrayFacts((6000,), np.dtype("f8"))})}))
x, y = writer.array("g/x"), writer.array("g/y")
for index in y.grid.indices():
    y.write(index, y.encode(index, np.arange(6000.0)))
begin = int(sys.argv[2])
for i in range(begin):
    assert (x.read((i, 0)) == i).all()
print(begin, flush=True)
for i in range(begin, 6000):
    x.write((i, 0), x.encode((i, 0), np.full((1, 16), i, "i4")))
    if i % 250 == 249:
        writer.sync()
        print(i + 1, flush=True)
        time.sleep(0.01)
writer.finish()
"""


@pytest.mark.parametrize("kind", ["h5", "nc"])
def test_writing_goes_on_after_kills(kind):
    open("a.h5", "wb").close()
    done = 0
    for kills in range(5):
        command = [sys.executable, "-c", RESUMED, kind, str(done)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
            for line in run.stdout:
                done = int(line)
                if kills < 4 and done >= 1200 * (kills + 1):
                    run.send_signal(signal.SIGKILL)
        assert run.returncode == (-9 if kills < 4 else 0)
    with h5py.File("a.h5") as file:
        assert (file["g/x"][...] == np.arange(6000)[:, None]).all() and (file["g/y"][...] == np.arange(6000)).all()


def test_what_cannot_be_gone_on_with():
    facts = ArrayFacts((10, 10), np.dtype("f4"), (5, 5))
    make(facts)
    for other in (replace(facts, shape=(10, 11)), replace(facts, chunks=(5, 2)), replace(facts, dtype=np.dtype("f8")),
                  replace(facts, chunks=None)):  # fmt: skip
        writer = Hdf5Writer("a.h5", resume=True)
        with pytest.raises(StoreError, match="cannot go on with a.h5, start again .*: a.h5::/x is not as it is to be"):
            writer.create(GroupFacts({"x": other}))
        writer.close()
    for content in (b"garbage", open("a.h5", "rb").read()[:300]):
        open("a.h5", "wb").write(content)
        with pytest.raises(
            StoreError, match="cannot open a.h5; it cannot be gone on with: start again without --resume"
        ):
            Hdf5Writer("a.h5", resume=True)
