"""RelationCache from Python: any hashable key, policies and spills of one's own, threads."""

import os
import subprocess
import sys
import threading
from fractions import Fraction

import longshore as ls
import numpy as np
import pytest


def scattered(seed, n=50):
    return ls.AddressRelation.from_indices(np.random.default_rng(seed).permutation(n), np.arange(n), "i4")


def never():
    raise AssertionError("made again")


def keys(cache):
    return sorted(entry.key for entry in cache.entries())


def bytes_of(n):
    """What n such relations take in a cache, with keys of one letter."""
    cache = ls.RelationCache("1MiB", kind="aapair")
    cache.put("a", scattered(0))
    return n * cache.statistics.bytes


def test_relations_by_any_key():
    cache = ls.RelationCache("16 MiB")
    several = [
        "",
        "a",
        b"a",
        3,
        -(2**70),
        2.5,
        None,
        ("halo", 3, (b"x", None)),
        frozenset({1, 2}),
        Fraction(1, 3),
        float("inf"),
    ]
    for k, key in enumerate(several):
        relation = scattered(k)
        assert cache.get_or_make(key, lambda relation=relation: relation).relation == relation
        assert cache.get_or_make(key, never).relation == relation
        assert key in cache
        assert key in [entry.key for entry in cache.entries()]
    assert len(cache) == 11
    assert cache.get_or_make(3.0, never) and cache.get_or_make(np.int64(3), never) and (True not in cache)
    assert cache.get_or_make(("halo", np.float32(3), (b"x", None)), never)
    with pytest.raises(TypeError):
        cache.get_or_make([1], never)
    with pytest.raises(ls.DTypeError, match="got int"):
        cache.get_or_make("number", lambda: 7)
    assert cache.get("nothing") is None
    assert "11 relations" in repr(cache)


def test_what_is_kept_runs():
    cache = ls.RelationCache("1MiB", kind="dmrlec")
    source, relation = np.arange(50, dtype="i4"), scattered(1)
    expected = np.zeros(50, "i4")
    relation.move(source, expected)
    for keep in ("encoding", "program", "assembler", "disassembler"):
        kept = cache.get_or_make(keep, lambda: relation, keep=keep)
        assert kept.keep == keep and kept.encoding.kind == "dmrlec"
        np.testing.assert_array_equal(kept.program(source, np.zeros(50, "i4")), expected)
        message = kept.assembler(source)
        np.testing.assert_array_equal(kept.disassembler(message, np.zeros(50, "i4")), expected)
    assert {entry.keep: entry.bytes for entry in cache.entries()}["program"] > kept.encoding.encoded_bytes
    program = kept.disassembler
    cache.erase("disassembler")
    del kept, cache
    np.testing.assert_array_equal(program(message, np.zeros(50, "i4")), expected)


def test_ceiling_policies_and_hints():
    cache = ls.RelationCache(bytes_of(3), kind="aapair")
    for k, key in enumerate("abc"):
        cache.get_or_make(key, lambda k=k: scattered(k))
    cache.get("a")
    cache.get_or_make("d", lambda: scattered(9))
    assert keys(cache) == ["a", "c", "d"]
    cache.pin("a"), cache.soon("c"), cache.done("d")
    cache.get_or_make("e", lambda: scattered(9))
    assert keys(cache) == ["a", "c", "e"]
    cache.unpin("a")
    cache.get_or_make("big", lambda: scattered(3, 10000))
    now = cache.statistics
    assert now.not_kept == 1 and now.largest_bytes > now.ceiling_bytes >= now.most_bytes >= now.bytes
    assert (now.hits, now.misses, now.evictions, now.restores) == (1, 6, 2, 0)
    with pytest.raises(ls.ArgumentError, match="mru"):
        ls.RelationCache(1, "mru")
    with pytest.raises(ls.ArgumentError, match="ceiling"):
        ls.RelationCache("much")
    with pytest.raises(ls.ArgumentError, match="keep='all'"):
        cache.get_or_make("x", never, keep="all")


@pytest.mark.parametrize("as_position", [False, True])
def test_a_policy_of_ones_own(as_position):
    seen = []

    def largest(units):
        seen.append([unit.name for unit in units])
        choice = max(units, key=lambda unit: unit.bytes)
        return units.index(choice) if as_position else choice

    cache = ls.RelationCache(4000, largest, kind="aapair")
    cache.get_or_make("a", lambda: scattered(1, 30))
    cache.get_or_make(("b", 1), lambda: scattered(2, 100), group=("g", 2))
    cache.get_or_make("c", lambda: scattered(3, 120))
    assert [entry.key for entry in cache.entries()] == ["a", "c"]
    assert seen == [[("g", 2), "a"]] and cache.policy == "largest"


@pytest.mark.parametrize("answer", [None, 7, -1, "a"])
def test_a_policy_that_answers_nonsense(answer):
    cache = ls.RelationCache(bytes_of(1), lambda units: answer, kind="aapair")
    cache.get_or_make("a", lambda: scattered(1))
    with pytest.raises(ls.ArgumentError, match="policy"):
        cache.get_or_make("b", lambda: scattered(2))
    assert keys(cache) == ["a"]


def test_a_policy_that_raises_and_one_that_calls_back():
    class Policy:
        def __call__(self, units):
            if self.raises:
                raise ZeroDivisionError("oh")
            return self.cache.statistics.hits

    policy = Policy()
    policy.cache, policy.raises = ls.RelationCache(bytes_of(1), policy, kind="aapair"), True
    policy.cache.get_or_make("a", lambda: scattered(1))
    with pytest.raises(ZeroDivisionError):
        policy.cache.get_or_make("b", lambda: scattered(2))
    policy.raises = False
    with pytest.raises(ls.ArgumentError, match="may not call the cache"):
        policy.cache.get_or_make("b", lambda: scattered(2))
    assert keys(policy.cache) == ["a"] and policy.cache.policy == "Policy"
    del policy.cache


def test_makers_raise_and_nest():
    cache = ls.RelationCache("1MiB")
    with pytest.raises(KeyboardInterrupt):
        cache.get_or_make("a", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    assert cache.get_or_make("a", lambda: cache.get_or_make("b", lambda: scattered(3)).encoding).relation == scattered(
        3
    )
    with pytest.raises(ls.ArgumentError, match="needs"):
        cache.get_or_make("c", lambda: cache.get_or_make("c", never).encoding)


def test_a_folder_and_groups(tmp_path):
    folder = tmp_path / "spilled"
    cache = ls.RelationCache(bytes_of(3), spill=folder, kind="aapair")
    for k, key in enumerate("abcd"):
        cache.get_or_make(key, lambda k=k: scattered(k), group="exchange" if key in "ac" else None)
    assert keys(cache) == ["a", "c", "d"]  # the group was used after b
    cache.get("d")
    assert cache.get_or_make("b", never).relation == scattered(1)
    assert keys(cache) == ["b", "d"]
    assert cache.get_or_make("c", never, group="exchange").relation == scattered(2)
    assert keys(cache) == ["a", "b", "c"]
    assert cache.statistics.restores == 3
    cache.flush_all()
    assert len(os.listdir(folder)) == 3

    code = (
        "import sys, longshore as ls; cache = ls.RelationCache('1MiB', spill=sys.argv[1])\n"
        "print(cache.get('a', 'exchange').relation[7], cache.get('b').relation[7], cache.get('z'))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    said = subprocess.run(
        [sys.executable, "-c", code, folder], env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.split("\n")[0] == f"{scattered(0)[7]} {scattered(1)[7]} None"

    for name in os.listdir(folder):
        record = bytearray((folder / name).read_bytes())
        record[len(record) // 2] ^= 1
        (folder / name).write_bytes(record)
    assert cache.get_or_make("a", lambda: scattered(5), group="exchange").relation == scattered(5)
    assert cache.statistics.damaged == 1
    with pytest.raises(ls.ArgumentError, match="make its parent first"):
        ls.RelationCache(1, spill=tmp_path / "no" / "where")


def test_objects_as_keys_do_not_meet_those_of_another_cache(tmp_path):
    one, other = (ls.RelationCache("1MiB", spill=tmp_path) for _ in range(2))
    one.put(frozenset({1}), scattered(1)), one.flush_all()
    assert other.get(frozenset({2})) is None and other.get(frozenset({1})) is None
    assert one.get(frozenset({1})).relation == scattered(1)


def test_keys_that_are_objects_do_not_pile_up():
    cache = ls.RelationCache(bytes_of(2), kind="aapair")
    relation = scattered(1)
    for k in range(5000):
        cache.get_or_make(Fraction(2 * k + 1, 2), lambda: relation)
    assert len(cache) <= 2 and len(cache._keys._objects) < 3000


def test_callables_to_spill_to():
    records = {}
    cache = ls.RelationCache(bytes_of(1), spill=(records.__setitem__, records.get), kind="aapair")
    cache.get_or_make("a", lambda: scattered(1))
    cache.get_or_make("b", lambda: scattered(2))
    assert cache.get_or_make("a", never).relation == scattered(1)
    cache.erase("b")
    assert cache.get("b") is None and cache.statistics.damaged == 0

    class Store:
        def save(self, name, record):
            raise OSError("full")

        def load(self, name):
            return 7 if name == b"k'a'" else None

        def remove(self, name):
            pass

    cache = ls.RelationCache(bytes_of(1), spill=Store(), kind="aapair")
    for key in "aba":
        assert cache.get_or_make(key, lambda: scattered(1)).relation == scattered(1)
    assert cache.statistics.store_failures >= 2
    for nonsense in (7, (print,), object()):
        with pytest.raises(ls.ArgumentError, match="spill is"):
            ls.RelationCache(1, spill=nonsense)


def test_threads_make_a_key_once():
    cache = ls.RelationCache("1MiB")
    made, wrong, barrier = [], [], threading.Barrier(4)

    def ask():
        barrier.wait()
        for key in range(30):

            def maker(key=key):
                made.append(key)
                return scattered(key)

            if cache.get_or_make(key, maker).relation != scattered(key):
                wrong.append(key)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(made) == list(range(30)) and not wrong


def test_threads_with_a_python_policy_and_a_python_store():
    records = {}
    spill = (records.__setitem__, records.get, lambda name: records.pop(name, None))
    cache = ls.RelationCache(bytes_of(3), lambda units: units[0], spill=spill, kind="aapair")
    wrong = []

    def ask(seed):
        for key in np.random.default_rng(seed).integers(0, 8, 200):
            relation = cache.get_or_make(int(key), lambda: scattered(key)).relation
            if relation != scattered(key) or cache.statistics.bytes > bytes_of(3):
                wrong.append(key)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong
