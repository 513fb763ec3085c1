"""Sizes in words: one reading of them, wherever one is taken."""

import longshore as ls
import numpy as np
import pytest
from longshore import _words
from longshore.cli.words import Size

SIZES = [
    (4096, 4096),
    (np.int64(4096), 4096),
    (1e6, 1_000_000),
    ("4096", 4096),
    ("4096B", 4096),
    ("64k", 64 << 10),
    ("64 K", 64 << 10),
    ("64KiB", 64 << 10),
    ("64kB", 64_000),
    ("256MiB", 256 << 20),
    (" 1.5 gib ", 3 << 29),
    ("1.5GB", 1_500_000_000),
    (".5m", 1 << 19),
    ("2t", 2 << 40),
    ("1e3", 1000),
    ("1_000", 1000),
    ("9007199254740993", 9007199254740993),  # 2^53 + 1
    (2**63 - 1, 2**63 - 1),
]
NO_SIZES = [
    "", "MiB", "lots", "1.2.3", "64 potatoes", "64 kk", "-3", "0", "0.4", "0x10", "nan", "inf", "1e99", "8388608T",
    0, -1, 2**63, float("nan"), float("inf"), True, False, np.True_, [64], (1, "k"), b"64k", np.array([1, 2]), 1j,
]  # fmt: skip


@pytest.mark.parametrize("value, size", SIZES)
def test_sizes(value, size):
    assert _words.size_in_bytes(value) == size
    assert Size().convert(value, None, None) == size


@pytest.mark.parametrize("value", NO_SIZES, ids=repr)
def test_no_sizes(value):
    with pytest.raises(ls.ArgumentError, match="ceiling .*is not a (usable )?size"):
        _words.size_in_bytes(value, "ceiling")
    with pytest.raises(Exception, match="is not a (usable )?size"):
        Size().convert(value, None, None)


def places(size):
    """Everything that takes a size, called with this one."""
    blocks = ls.FloorPlan.even((6, 4), 2)
    u = ls.XArray(blocks, float, ghost=1)
    halo = ls.BlockPlan.halo(blocks, 1)
    rows = ls.Layout("(BLOCK, *) on 2", (6, 4))
    parts = ls.scatter(np.zeros((6, 4)), rows)
    yield "bind", lambda: ls.plan(rows, rows, float).bind(parts, ls.empty(rows, float), max_mem=size)
    yield "redistribute", lambda: ls.redistribute(parts, rows, rows, max_mem=size)
    yield "BlockPlan.bind", lambda: halo.bind(u, max_mem=size)
    yield "cache", lambda: ls.RelationCache(size)
    yield "stores.save", lambda: ls.stores.save(u, "u.npy", force=True, max_mem=size)
    yield "stores.move", lambda: ls.stores.move("u.npy", "v.npy", force=True, max_mem=size)
    if ls.finegrain.available():
        yield "finegrain max_mem", lambda: ls.finegrain.move(halo, u, max_mem=size)
        yield "finegrain stack_bytes", lambda: ls.finegrain.move(halo, u, stack_bytes=size)


@pytest.mark.parametrize("place", [place for place, _ in places(None)])
def test_the_same_words_everywhere(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ls.stores.save(ls.XArray(ls.FloorPlan.even((6, 4), 2), float), "u.npy")
    for size in ("65536k", "64MiB", "64 m", 64 << 20, np.int64(64 << 20)):
        dict(places(size))[place]()
    for size in ("64 potatoes", True, [64], 0, -1):
        with pytest.raises(ls.ArgumentError, match="is not a (usable )?size"):
            dict(places(size))[place]()
