"""Zarr stores that are being written: shards that grow in any order and over several runs, and what is on the disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import longshore as ls
import numpy as np
import pytest
from longshore.errors import ArgumentError
from longshore.stores import keys
from longshore.stores.array import ArrayFacts, Grid, GroupFacts
from longshore.stores.zarr_reader import ZarrReader
from longshore.stores.zarr_writer import ZarrWriter
from zarr_stores import ZARR_3, make, opened, read, same, sample, values, write, write_array, write_chunk


@pytest.mark.parametrize("location", ["start", "end"])
def test_shards_are_gone_on_with(tmp_path, location):
    array = sample("<i4", (20, 20))
    facts = ArrayFacts((20, 20), array.dtype, chunks=(3, 4), shards=(12, 12), codecs=("zstd:1",))
    facts = replace(facts, own={"zarr.index_location": location})
    path = tmp_path / "a"
    path.mkdir()
    indices = list(Grid(facts.shape, facts.chunks).indices())
    np.random.default_rng(0).shuffle(indices)
    for part in (indices[:10], indices[5:20], indices[:1], indices[20:]):  # some are written again
        writer = ZarrWriter(str(path))
        writer.create(facts)
        for index in part:
            write_chunk(writer.array(), array, tuple(index))
        writer.sync()
        writer.close()
    assert sorted(p.name for p in (path / "c/0").iterdir()) == ["0", "0.index", "1", "1.index"]
    size = (path / "c/0/0").stat().st_size
    for turn in range(2):  # the second time over what is finished
        writer = ZarrWriter(str(path))
        writer.create(facts)
        if turn:
            write_chunk(writer.array(), array, (0, 0))
            assert (writer.array().read((1, 1)) == array[3:6, 4:8]).all()
        else:
            (path / "c/0/.0.0123456789abcdef.partial").write_bytes(b"left by a killed run")
        writer.finish()
        assert sorted(p.name for p in (path / "c/0").iterdir()) == ["0", "1"]
        assert same(values(opened(path)) if ZARR_3 else read(path)[1], array) and same(read(path)[1], array)
    assert (path / "c/0/0").stat().st_size == size + (16 * 12 + 4) * (location == "end")


def test_a_killed_writer_of_shards(tmp_path):
    script = """
import sys, numpy as np
from longshore.stores.array import ArrayFacts
from longshore.stores.zarr_writer import ZarrWriter
facts = ArrayFacts((4096,), np.dtype("<i4"), chunks=(4,), shards=(4096,), codecs=("crc32c",))
writer = ZarrWriter(sys.argv[1]); writer.create(facts); array = writer.array()
for n in range(1024):
    array.write((n,), array.encode((n,), np.arange(4 * n, 4 * n + 4, dtype="<i4")))
    print(n, flush=True)
writer.finish()
"""
    path = tmp_path / "a"
    path.mkdir()
    for stop in (1, 200, None):
        process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            if stop is not None and int(line) >= stop:
                process.send_signal(signal.SIGKILL)
                break
        process.stdout.close()
        process.wait()
    assert same(read(path)[1], np.arange(4096, dtype="i4"))
    # Nothing is there twice; what was under way at each of the two kills may leave a gap.
    assert 0 <= (path / "c/0").stat().st_size - (1024 * 20 + 1024 * 16 + 4) <= 2 * 20
    if ZARR_3:
        assert same(values(opened(path)), np.arange(4096, dtype="i4"))


def test_many_threads_write_few_shards(tmp_path):
    array = sample("<i4", (64, 64))
    facts = ArrayFacts((64, 64), array.dtype, chunks=(4, 4), shards=(32, 32), codecs=("crc32c",))
    path = tmp_path / "a"
    path.mkdir()
    writer = ZarrWriter(str(path))
    writer.create(facts)
    indices = list(writer.array().grid.indices())
    np.random.default_rng(1).shuffle(indices)
    before = len(os.listdir("/proc/self/fd"))
    threads = [
        threading.Thread(target=lambda part=indices[n::8]: [write_chunk(writer.array(), array, tuple(i)) for i in part])
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(os.listdir("/proc/self/fd")) <= before
    writer.finish()
    assert same(read(path)[1], array)
    assert sum(p.stat().st_size for p in (path / "c").rglob("*") if p.is_file()) == 256 * 68 + 4 * (64 * 16 + 4)


def test_what_was_written_is_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    path = tmp_path / "a"
    path.mkdir()
    writer = ZarrWriter(str(path))
    facts = ArrayFacts((6,), np.dtype("f4"), chunks=(2,))
    writer.create(GroupFacts({"x": facts, "y": replace(facts, shards=(4,))}))
    array = np.zeros(6, "f4")
    write_array(writer.array("x"), array)
    write_array(writer.array("y"), array)
    assert not synced, "chunks are not synced one by one"
    writer.array("x").sync((1,))
    assert set(synced) == {str(path), *(str(path / name) for name in ("x", "x/c", "x/c/1"))}
    synced.clear()
    writer.sync()
    assert {str(path / name) for name in ("x/c/0", "y/c/0", "y/c/0.index", "x/zarr.json", "zarr.json")} <= set(synced)
    synced.clear()
    writer.sync()
    assert not synced, "nothing has been written since"
    monkeypatch.setattr(keys, "_sync_file_system", lambda fd, name: False)  # as where there is no syncfs
    writer.finish()
    there = {str(p) for p in path.rglob("*") if p.is_file()}
    assert there <= set(synced)


def test_a_changed_source_has_another_fingerprint(tmp_path):
    make(tmp_path / "g/x", sample("<f4"), (4, 3))
    (tmp_path / "g/.zgroup").write_text('{"zarr_format":2}')
    reader = ZarrReader(str(tmp_path / "g"))
    first = reader.fingerprint()
    assert first == ZarrReader(str(tmp_path / "g")).fingerprint()
    (tmp_path / "g/x/.zarray").write_bytes((tmp_path / "g/x/.zarray").read_bytes())
    assert reader.fingerprint() != first


@pytest.mark.parametrize(
    "facts",
    [
        ArrayFacts((8, 6), np.dtype("<i4"), chunks=(2, 3), own={"zarr.format": 2, "zarr.separator": "."}),
        ArrayFacts((8, 6), np.dtype("<i4"), chunks=(2, 3)),
        ArrayFacts((8, 6), np.dtype("<i4"), chunks=(2, 3), shards=(4, 6)),
    ],
    ids=["a folder of chunks", "chunks in nested folders", "shards"],
)
def test_a_changed_chunk_gives_the_source_another_fingerprint(tmp_path, facts):
    array = sample("<i4", (8, 6))
    tree = GroupFacts({"x": facts, "below": GroupFacts({"y": facts})})
    write(tmp_path / "g", tree, {"x": array, "below/y": array}, 2 if facts.own else 3)
    whole, one = ZarrReader(str(tmp_path / "g")), ZarrReader(str(tmp_path / "g"), "x")
    first, of_one = whole.fingerprint(), one.fingerprint()
    if ZARR_3 or facts.own:
        values(opened(tmp_path / "g", "x"))
    assert (whole.fingerprint(), one.fingerprint()) == (first, of_one), "reading changes nothing"
    seen = {first}
    for name in ("below/y", "x"):
        *_, path = sorted(p for p in (tmp_path / "g" / name).rglob("*") if p.is_file() and p.name[0].isdigit())
        times = path.stat()
        path.write_bytes(path.read_bytes()[::-1])  # as many bytes as before, and at the time that they had
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        seen.add(whole.fingerprint())
        assert (one.fingerprint() != of_one) == (name == "x"), "what lies beside the array is not its own"
        path.unlink()
        seen.add(whole.fingerprint())
    assert len(seen) == 5


def test_a_chunk_that_vanishes_while_chunks_are_looked_at(tmp_path, monkeypatch):
    make(tmp_path / "x", sample("<f4"), (4, 3))
    reader = ZarrReader(str(tmp_path / "x"))
    first, files = reader.fingerprint(), keys.LocalKeys.files

    def vanishing(self, key=""):
        for name, entry in files(self, key):
            if name == "0.0":
                (tmp_path / "x/0.0").unlink()
            yield name, entry

    monkeypatch.setattr(keys.LocalKeys, "files", vanishing)
    assert reader.fingerprint() != first


@pytest.mark.parametrize("shards", [(300, 256), (64, 64), (997, 13), (1000, 700), (2000, 800)], ids=str)
@pytest.mark.parametrize("source", ["a.npy", "save"])
def test_shards_of_what_has_no_chunks_have_a_whole_number_of_them(tmp_path, monkeypatch, source, shards):
    monkeypatch.chdir(tmp_path)
    array = np.arange(1000 * 700.0).reshape(1000, 700)
    if source == "save":
        layout = ls.Layout("(BLOCK, *) on 2", array.shape)
        ls.save(ls.scatter(array, layout), layout, "b.zarr", shards=shards, zarr_format=3)
    else:
        np.save(source, array)
        assert ls.move(source, "b.zarr", shards=shards, zarr_format=3, verify=True).verified
    with ls.open("b.zarr") as made:
        assert made.shards == shards and not any(n % c for n, c in zip(shards, made.chunks))
        assert np.prod(made.chunks) * 8 <= 4 << 20
        np.testing.assert_array_equal(made.read(), array)


def test_shards_that_the_sources_chunks_do_not_divide_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(63.0).reshape(7, 9))
    ls.move("a.npy", "a.zarr", chunks=(2, 4))
    with pytest.raises(ArgumentError, match=r"shards \(3, 4\) are no whole number of chunks \(2, 4\).*say chunks that"):
        ls.move("a.zarr", "b.zarr", shards=(3, 4), zarr_format=3)
    assert ls.move("a.zarr", "b.zarr", shards=(3, 4), chunks=(3, 2), zarr_format=3, verify=True).verified
