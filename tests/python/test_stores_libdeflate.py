"""libdeflate against zlib and gzip: each reads what the other writes, and what one refuses the other does not take."""

from __future__ import annotations

import gzip
import threading
import zlib

import numpy as np
import pytest
from longshore.stores import hdf5_filters, libdeflate

needed = pytest.mark.skipif(libdeflate._library() is None, reason="the system has no libdeflate")
SIZES = [1, 2, 3, 100, 257, 4096, 65537, 1_000_003]


def contents():
    random = np.random.default_rng(7)
    for size in SIZES:
        yield np.zeros(size, "u1")
        yield random.integers(0, 256, size).astype("u1")
        yield np.cumsum(random.integers(-1, 2, size)).astype("u1")


@needed
@pytest.mark.parametrize("level", [-1, 1, 4, 6, 9])
def test_what_is_compressed_is_what_zlib_and_gzip_read(level):
    for data in contents():
        stream, member = (libdeflate.compress(data, level, kind) for kind in (False, True))
        assert zlib.decompress(stream) == gzip.decompress(member) == data.tobytes()
        assert libdeflate.decompress(stream, data.size).tobytes() == data.tobytes()
        assert libdeflate.decompress(member, data.size + 99, True).tobytes() == data.tobytes()


@needed
def test_what_zlib_and_gzip_write_is_read():
    for data in contents():
        for level in range(10):
            assert libdeflate.decompress(zlib.compress(data, level), data.size).tobytes() == data.tobytes()
        assert libdeflate.decompress(gzip.compress(data), data.size, True).tobytes() == data.tobytes()


@needed
def test_what_is_not_one_whole_stream_within_the_bound_is_left_to_zlib():
    data = np.arange(1000, dtype="u4").view("u1")
    stream = zlib.compress(data)
    member = gzip.compress(data)
    assert libdeflate.decompress(stream, data.size - 1) is None
    assert libdeflate.decompress(stream + b"\0", data.size) is None
    assert libdeflate.decompress(member + member, 2 * data.size, True) is None
    assert libdeflate.decompress(stream, data.size, True) is None
    assert libdeflate.decompress(b"", data.size) is None and libdeflate.decompress(stream, 0) is None
    assert libdeflate.compress(data, 0) is None and libdeflate.compress(b"", 6) is None
    for cut in range(1, len(stream)):
        assert libdeflate.decompress(stream[:cut], data.size) is None
    for bit in range(8 * len(stream)):
        damaged = bytearray(stream)
        damaged[bit // 8] ^= 1 << bit % 8
        found = libdeflate.decompress(damaged, data.size)
        assert found is None or found.tobytes() == data.tobytes()  # bits of the head that say nothing of the content


@needed
def test_a_bound_that_no_stream_can_reach_takes_no_memory():
    assert libdeflate.decompress(zlib.compress(b"abc"), 1 << 50).tobytes() == b"abc"


@needed
def test_threads_have_compressors_of_their_own_and_give_them_back():
    data, found = np.random.default_rng(1).integers(0, 9, 300_000).astype("u1"), []

    def work():
        for level in (1, 6, 9):
            stream = libdeflate.compress(data, level)
            found.append(libdeflate.decompress(stream, data.size).tobytes() == data.tobytes())

    for _ in range(5):
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 120 and all(found)


@pytest.mark.parametrize("there", [True, False])
def test_filters_of_hdf5_are_the_same_with_it_and_without(monkeypatch, there):
    if not there:
        monkeypatch.setattr(libdeflate, "_library", lambda: None)
    for data in contents():
        for level in (0, 1, 6, 9):
            stored = hdf5_filters._deflate(data, (level,))
            assert zlib.decompress(stored) == data.tobytes()
            assert bytes(hdf5_filters._inflate(stored, data.size, ())) == data.tobytes()
        assert len(hdf5_filters._inflate(stored, data.size - 1, ())) == data.size  # the caller sees that it is more
        with pytest.raises(hdf5_filters.DamagedError):
            hdf5_filters._inflate(stored[:-5], data.size, ())
