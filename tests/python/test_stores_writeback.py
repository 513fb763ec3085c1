"""What has been written is on its way to the disk before the end of a move."""

import errno
import os

import longshore as ls
import numpy as np
import pytest
from longshore.stores import writeback
from longshore.stores.array import ArrayFacts
from longshore.stores.shards import ShardsWriter

VALUES = np.arange(1 << 18, dtype="i4").reshape(512, 512)


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """The parts of files that the disk was told to begin with, by their inodes."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", VALUES)
    calls = []

    def note(fd, offset, count, how):
        assert how == 2
        calls.append((os.fstat(fd).st_ino, offset, count))
        return 0

    monkeypatch.setattr(writeback, "_sync_file_range", lambda: note)
    return calls


def covered(begun, path):
    return sum(count for inode, _, count in begun if inode == os.stat(path).st_ino)


@pytest.mark.parametrize(
    ("target", "file", "words"),
    [
        ("b.npy", "b.npy", {}),
        ("b.zarr", "b.zarr/c/0/0", {"chunks": (512, 512), "codecs": [], "zarr_format": 3}),
        ("b.zarr", "b.zarr/c/0/0", {"chunks": (256, 512), "shards": (512, 512), "codecs": [], "zarr_format": 3}),
        ("b.safetensors::x", "b.safetensors", {}),
        ("b", "b/rank-00001.npy", {"to": "(BLOCK, *) on 2"}),
    ],
)
def test_all_that_is_written_at_once_is_begun_with(begun, target, file, words):
    ls.move("a.npy", target, **words)
    assert covered(begun, file) == VALUES.nbytes // (2 if "rank" in file else 1)


def test_small_parts_are_left_to_the_system(begun):
    ls.move("a.npy", "b.zarr", chunks=(64, 64), codecs=[], zarr_format=3)
    ls.move("a.npy", "b", "(*, CYCLIC) on 2")
    assert not covered(begun, "b.zarr/c/0/0")


def test_a_system_without_it(begun, monkeypatch):
    monkeypatch.setattr(writeback, "_sync_file_range", lambda: None)
    ls.move("a.npy", "b.npy")
    np.testing.assert_array_equal(np.load("b.npy"), VALUES)
    assert not begun


def test_all_shards_come_to_the_disk_and_what_did_not_is_tried_again(tmp_path, monkeypatch):
    """Files and folders, several at a time."""
    synced, broken = [], []

    def sync(fd):
        if broken:
            raise OSError(errno.EIO, "the disk is gone")
        synced.append(os.fstat(fd).st_ino)

    target = tmp_path / "b"
    target.mkdir()
    writer = ShardsWriter(str(target), ls.Layout("(BLOCK, *) on 24", VALUES.shape))
    writer.create(ArrayFacts(VALUES.shape, VALUES.dtype))
    writer.array().write_box((0, 0), VALUES)
    monkeypatch.setattr(os, "fsync", sync)
    broken.append(True)
    with pytest.raises(ls.StoreError, match="the disk is gone"):
        writer.sync()
    broken.clear()
    writer.finish()
    np.testing.assert_array_equal(ls.open(str(target)).read(), VALUES)
    assert {os.stat(place).st_ino for place in (target, *target.iterdir())} <= set(synced)


def test_what_is_written_at_once_is_not_copied(tmp_path):
    writer = ShardsWriter(str(tmp_path), ls.Layout("(BLOCK, *) on 2", VALUES.shape))
    writer.create(ArrayFacts(VALUES.shape, VALUES.dtype))
    array = writer.array()
    chunk = np.zeros(array.grid.chunks, VALUES.dtype)
    index = next(iter(array.grid.indices()))
    for at_once in (False, True):
        for _, elements in array.encode(index, chunk, at_once=at_once):
            assert np.may_share_memory(elements, chunk) == at_once
