"""How much is asked of servers at once of files at URLs, and how much memory that takes."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import longshore as ls
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from longshore.stores import random_access
from web_server import serving

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
h5py = pytest.importorskip("h5py")

MIB = 1 << 20
ARRAY = np.arange(1200, dtype="<f4").reshape(40, 30)
FILTERS = [{}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True, "fletcher32": True}]
_numbers = itertools.count()


def test_chunks_near_each_other_are_one_request(tmp_path):
    """Small chunks would take a round trip each."""
    (tmp_path / "s").mkdir()
    for name in ("a.h5", "a.nc"):
        with h5py.File(tmp_path / "s" / name, "w") as file:
            file.create_dataset("u", data=ARRAY, chunks=(16, 8), compression="gzip", shuffle=True)
    with serving(tmp_path / "s") as (url, handler):
        for name in ("a.h5::u", "a.nc::u"):
            with ls.open(f"{url}/{name}") as opened:
                array = opened._open_reader()
                del handler.asked[:]
                chunks = list(array.grid.indices())
                for index, stored in zip(chunks, array.read_each(chunks)):
                    low = array.grid.start(index)
                    part = ARRAY[tuple(slice(a, a + n) for a, n in zip(low, array.grid.extents(index)))]
                    np.testing.assert_array_equal(array.decode(index, stored), part)
                assert len(handler.asked) == 1 and len(chunks) == 12
                del handler.asked[:]
                np.testing.assert_array_equal(opened.read(), ARRAY)
                assert len(handler.asked) == 1
        with ThreadPoolExecutor(2) as pool:
            for executor, most in ((None, 20), (pool, 60)):
                del handler.asked[:]
                ls.move(f"{url}/a.h5::u", tmp_path / "b.zarr", chunks=(9, 9), executor=executor, force=True)
                assert len(handler.asked) <= most
                with ls.open(tmp_path / "b.zarr") as moved:
                    np.testing.assert_array_equal(moved.read(), ARRAY)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_chunks_that_are_read_together_are_what_each_is(tmp_path_factory, data):
    """Any chunks, in any order, also such as are missing, twice wanted or stored without filters."""
    shape, chunks = (23, 17), data.draw(st.tuples(st.integers(1, 23), st.integers(1, 17)))
    path = tmp_path_factory.mktemp("together") / "a.h5"
    with h5py.File(path, "w", userblock_size=data.draw(st.sampled_from([0, 512]))) as file:
        u = file.create_dataset("u", shape, "<i4", chunks=chunks, fillvalue=7, **data.draw(st.sampled_from(FILTERS)))
        for _ in range(data.draw(st.integers(0, 6))):
            low = [data.draw(st.integers(0, n - 1)) for n in shape]
            high = [data.draw(st.integers(a + 1, n)) for a, n in zip(low, shape)]
            u[low[0] : high[0], low[1] : high[1]] = data.draw(st.integers(0, 99))
            file.create_dataset(f"hole{_}", data=np.zeros(data.draw(st.integers(1, 300)), "u1"))
    url = f"memory://read-together-{next(_numbers)}/a.h5"
    fsspec.filesystem("memory").pipe_file(url.removeprefix("memory:/"), path.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_access, "_GAP_BYTES", data.draw(st.integers(0, 600)))
        patch.setattr(random_access, "_MERGED_BYTES", data.draw(st.integers(1, 4000)))
        with ls.open(f"{url}::u") as ours, ls.open(f"{path}::u") as theirs:
            remote, local = ours._open_reader(), theirs._open_reader()
            some = data.draw(st.lists(st.sampled_from(list(remote.grid.indices())), max_size=30))
            for index, stored in zip(some, remote.read_each(some)):
                wanted = local.read(index)
                assert (stored is None) == (wanted is None)
                if wanted is not None:
                    np.testing.assert_array_equal(remote.decode(index, stored), local.decode(index, wanted))
            np.testing.assert_array_equal(ours.read(), theirs.read())


MEMORY = """
import json, sys
import aiohttp, fsspec, h5py, zarr, longshore as ls, longshore.stores
from fsspec.implementations import http
from longshore.stores import memory
source, destination, warm, ceiling, threads = json.loads(sys.argv[1])
ls.open(warm).read()
memory.reset_peak()
idle = memory.resident_bytes()
told = ls.move(source, destination, chunks=[256, 256], max_mem=ceiling, threads=threads, codecs=[], lossy=True)
print(json.dumps([memory.peak_resident_bytes() - idle, told.predicted["memory_bytes"]]))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """An array of 64 MiB, larger than the ceiling, in several formats."""
    folder = tmp_path_factory.mktemp("large")
    array = np.arange(2048 * 4096, dtype="<f8").reshape(2048, 4096)
    np.save(folder / "large.npy", array)
    with h5py.File(folder / "large.h5", "w") as file:
        file.create_dataset("chunked", data=array, chunks=(1024, 512))
        file.create_dataset("small", data=array, chunks=(64, 64))
        file["plain"] = array
    with h5py.File(folder / "warm.h5", "w") as file:
        file.create_dataset("u", data=ARRAY, chunks=(16, 8), compression="gzip")
    ls.move(folder / "large.npy", folder / "shards", "(BLOCK, BLOCK) on 2x2")
    return folder


@pytest.mark.parametrize("name", ["large.h5::chunked", "large.h5::small", "large.h5::plain", "large.npy", "shards"])
def test_the_ceiling_holds_for_what_is_read_of_urls(large, name, tmp_path):
    ceiling = 40 * MIB
    with serving(large) as (url, _):
        words = [f"{url}/{name}", str(tmp_path / "out.zarr"), f"{url}/warm.h5::u", ceiling, 4]
        done = subprocess.run([sys.executable, "-c", MEMORY, json.dumps(words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    peak, predicted = json.loads(done.stdout)
    assert predicted <= ceiling and peak <= ceiling


def test_loading_counts_what_reads_of_urls_hold(large):
    with serving(large) as (url, _):
        with pytest.raises(ls.MemoryLimitError, match="allow at least") as caught:
            ls.load(f"{url}/large.h5::small", "(BLOCK, *) on 2", max_mem="1MiB", threads=2)
        least = int(str(caught.value).rpartition(" ")[2])
        assert least > 8 * MIB  # the cache of metadata is in it
        parts = ls.load(f"{url}/large.h5::small", "(BLOCK, *) on 2", max_mem=least, threads=2)
    np.testing.assert_array_equal(parts[1], np.arange(1024 * 4096, 2048 * 4096, dtype="<f8").reshape(1024, 4096))
