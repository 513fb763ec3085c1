"""What has been written is on its way to the disk before the end of a move."""

import os

import longshore as ls
import numpy as np
import pytest
from longshore.stores import writeback

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
        ("b.zarr", "b.zarr/c/0/0", {"chunks": (512, 512), "codecs": []}),
        ("b.zarr", "b.zarr/c/0/0", {"chunks": (256, 512), "shards": (512, 512), "codecs": []}),
        ("b.safetensors::x", "b.safetensors", {}),
        ("b", "b/rank-00001.npy", {"to": "(BLOCK, *) on 2"}),
    ],
)
def test_all_that_is_written_at_once_is_begun_with(begun, target, file, words):
    ls.move("a.npy", target, **words)
    assert covered(begun, file) == VALUES.nbytes // (2 if "rank" in file else 1)


def test_small_parts_are_left_to_the_system(begun):
    ls.move("a.npy", "b.zarr", chunks=(64, 64), codecs=[])
    ls.move("a.npy", "b", "(*, CYCLIC) on 2")
    assert not covered(begun, "b.zarr/c/0/0")


def test_a_system_without_it(begun, monkeypatch):
    monkeypatch.setattr(writeback, "_sync_file_range", lambda: None)
    ls.move("a.npy", "b.npy")
    np.testing.assert_array_equal(np.load("b.npy"), VALUES)
    assert not begun
