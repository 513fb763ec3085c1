"""The memory ceiling of `longshore move`, measured from outside: peak resident size above the size after the
imports."""

import json
import os
import subprocess
import sys

import longshore
import numpy as np
import pytest

MIB = 1 << 20

# The move in a process of its own, which says its size before and its peak after. Nothing is imported in between.
PROGRAM = """
import json, sys
import longshore, longshore.cli, longshore.stores
from longshore.stores import memory
source, destination, to, axes, ceiling, threads = json.loads(sys.argv[1])
memory.reset_peak()
idle = memory.resident_bytes()
report = longshore.stores.move(source, destination, to, axes=axes, max_mem=ceiling, threads=threads, verify=True)
print(json.dumps([memory.peak_resident_bytes() - idle, report.windows]))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    array = np.arange(48 * MIB // 4, dtype="<i4").reshape(3072, 4096)
    np.save(folder / "a.npy", array)
    return folder, array


CASES = [
    ("(BLOCK, *) on 4", None),
    ("(CYCLIC(64), CYCLIC(64)) on 2x2", None),
    ("(CYCLIC, CYCLIC) on 8x8", None),
    ("(*, BLOCK) on 3, order=F", None),
    ("(BLOCK, *) on 4", [1, 0]),
    ("(CYCLIC(5), *) on 300", None),
    ("(*, CYCLIC(7)) on 2xREPLICATED(2)", None),
]


def measured(folder, words):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(words)], cwd=folder, capture_output=True, text=True
    )
    return done, json.loads(done.stdout) if done.returncode == 0 else None


@pytest.mark.parametrize(
    "to, axes, ceiling",
    [(*case, 12 * MIB) for case in CASES]
    + [(*CASES[1], 32 * MIB)]
    + [pytest.param(*case, 32 * MIB, marks=pytest.mark.slow) for case in (CASES[0], *CASES[2:])],
)
def test_peak_stays_within_the_ceiling(large, tmp_path, to, axes, ceiling):
    folder, array = large
    done, told = measured(folder, [str(folder / "a.npy"), str(tmp_path / "d"), to, axes, ceiling, 2])
    assert told, done.stderr
    peak, windows = told
    assert windows > 1 and peak <= ceiling
    done, told = measured(tmp_path, ["d", "back.npy", None, axes and np.argsort(axes).tolist(), ceiling, 2])
    assert told, done.stderr
    assert told[0] <= ceiling
    np.testing.assert_array_equal(np.load(tmp_path / "back.npy", mmap_mode="r"), array)


def test_the_smallest_ceiling_told_is_enough(large, tmp_path):
    folder, _ = large
    words = [str(folder / "a.npy"), str(tmp_path / "d"), "(CYCLIC, CYCLIC) on 8x8", None, 1, 2]
    done, _ = measured(folder, words)
    assert done.returncode != 0 and "MemoryLimitError" in done.stderr and not list(tmp_path.iterdir())
    least = int(done.stderr.split("--max-mem ")[-1].split("MiB")[0]) * MIB
    words[4] = least
    done, told = measured(folder, words)
    assert told, done.stderr
    assert told[0] <= least


# Between chunks that hardly get smaller. The allocator gives back at once what is freed: what it keeps is its own.
CODECS = """
import json, sys
import h5py, numcodecs, numcodecs.zstd, numpy as np, zarr, longshore as ls
from longshore.stores import memory
source, destination, codecs, ceiling = json.loads(sys.argv[1])
np.save("warm.npy", np.zeros((8, 8), "f4"))
for name in (source, destination):  # the libraries do what they do once
    ls.move("warm.npy", f"warm_{name}", chunks=(4, 8), codecs=codecs)
    ls.move(f"warm_{name}", f"back_{name}", chunks=(8, 4), codecs=codecs)
memory.reset_peak()
idle = memory.resident_bytes()
told = ls.move(source, destination, chunks=(2048, 1024), codecs=codecs, max_mem=ceiling, threads=2)
print(json.dumps([memory.peak_resident_bytes() - idle, told.predicted["memory_bytes"]]))
"""


@pytest.mark.parametrize("kind", ["zarr/x", "h5::x"])
@pytest.mark.parametrize("codecs", [["gzip:1"], ["shuffle", "zstd:1"], ["shuffle", "gzip:1", "a checksum"]])
def test_what_codecs_hold_between_each_other_is_counted(tmp_path, kind, codecs):
    codecs = [("fletcher32" if "h5" in kind else "crc32c") if word == "a checksum" else word for word in codecs]
    array = np.random.default_rng(0).integers(0, 1 << 32, (2048, 4096), "u4").view("f4")
    np.save(tmp_path / "a.npy", array)
    longshore.move(tmp_path / "a.npy", tmp_path / f"a.{kind}", chunks=(512, 4096), codecs=codecs)
    words = [f"a.{kind}", f"b.{kind}", codecs, 96 * MIB]
    done = subprocess.run(
        [sys.executable, "-c", CODECS, json.dumps(words)],
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": str(MIB)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    peak, predicted = json.loads(done.stdout)
    assert peak <= predicted <= 96 * MIB


def test_the_command_keeps_no_blocks_that_are_free(tmp_path):
    """The allocator would keep those of chunks of this size for later ones, several of them."""
    array = np.random.default_rng(0).integers(0, 1 << 32, (4096, 4096), "u4").view("f4")
    np.save(tmp_path / "a.npy", array)
    codecs = "shuffle,gzip:1,crc32c"
    longshore.move(tmp_path / "a.npy", tmp_path / "a.zarr", chunks=(1024, 4096), codecs=codecs.split(","))
    words = ["move", "a.zarr", "b.zarr", "--chunks", "4096x1024", "--codec", codecs, "--max-mem", "96MiB", "--json"]
    program = "import h5py, numcodecs, zarr; from longshore.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["peak_memory_bytes"] <= 96 * MIB
