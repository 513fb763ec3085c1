"""Stored relations in a bounded amount of memory: `RelationCache`, with any hashable keys."""

from __future__ import annotations

import ast
import itertools
import numbers
import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._core import AddressRelation, CachedRelation, CacheStatistics, Encoding
from ._words import size_in_bytes
from .errors import ArgumentError, DTypeError

__all__ = ["CacheEntry", "CacheStatistics", "CachedRelation", "FlushUnit", "RelationCache"]


class FlushUnit(NamedTuple):
    """What a cache flushes in one piece, as a policy sees it: a group, or a relation without one."""

    name: Hashable
    """The group, or the relation's key."""
    group: bool
    """True for a group."""
    relations: int
    bytes: int
    make_ns: float
    """Nanoseconds that making its relations took, all together."""
    uses: int
    """Since they were stored."""
    stored: int
    """The cache's operation in which the first of them was stored."""
    last_use: int
    """The cache's operation in which they were last used."""


class CacheEntry(NamedTuple):
    """A relation that a cache keeps."""

    key: Hashable
    group: Hashable | None
    kind: str
    keep: str
    elements: int
    bytes: int
    uses: int
    make_ns: float
    pinned: bool
    soon: bool
    done: bool


class RelationCache:
    """Address relations by key, in at most `ceiling` bytes: what the paper's section 6 (Dinda & O'Hallaron) asks for.

    `ceiling` is a number of bytes or words such as "64MiB"; it counts encodings, programs that are kept, and keys. When
    it is in use and a new relation needs to be stored, `policy` chooses what is flushed: "lru", "fifo", "lfu", "cost"
    (time to make again for the bytes, and lately used), or a callable that is given a list of `FlushUnit` and returns
    one of them (or its position). `kind` is the encoding of what makers return (see `encode`).

    `spill` is where flushed relations can be had again: a folder's path (made if its parent is there; each record one
    file, which appears whole or not at all), a pair of callables save(name, record) and load(name) -> record or None, a
    triple with remove(name) as well, or an object with methods of these names; names and records are bytes. Records
    prove themselves whole: a damaged one is a miss. A spill that raises costs time, nothing else. A folder serves later
    processes too, for keys that are numbers, strings, bytes, None or tuples of these. They must mean the same there:
    put all that a relation depends on in its key.

    Threads may share a cache; one key is made by one thread, and others that
    ask for it wait. Makers may use the cache; policies and spills may not.

    >>> cache = RelationCache("1MiB")
    >>> transpose = lambda: AddressRelation.strided((3, 5), (40, 8), (8, 24), "f8")
    >>> cache.get_or_make(("transpose", 3, 5), transpose).relation == transpose()
    True
    >>> cache.statistics.misses, ("transpose", 3, 5) in cache
    (1, True)
    """

    def __init__(
        self,
        ceiling: int | str,
        policy: str | Callable[[list[FlushUnit]], FlushUnit | int] = "lru",
        spill: Any = None,
        kind: str = "auto",
    ):
        if kind != "auto" and kind not in _core.encoding_kinds():
            raise ArgumentError(f"there is no encoding {kind!r}; there are auto, {', '.join(_core.encoding_kinds())}")
        self._keys = _Keys()
        self._kind = kind
        chosen = policy if isinstance(policy, str) else _PolicyOfUnits(policy, self._keys)
        self._core = _core.RelationCache(size_in_bytes(ceiling, "ceiling"), chosen, _store(spill))

    def get_or_make(
        self,
        key: Hashable,
        maker: Callable[[], AddressRelation | Encoding],
        *,
        group: Hashable | None = None,
        keep: str = "encoding",
        pin: bool = False,
        soon: bool = False,
        expected_uses: int = 0,
    ) -> CachedRelation:
        """The relation of a key: kept, restored, or else made by `maker` (a relation or an encoding of one).

        `group`: relations of one collective operation, which are flushed and restored together. `keep`: what is
        compiled and kept beside the encoding: "encoding" (nothing), "program", "assembler" or "disassembler". Hints:
        `pin` it until unpinned; it is needed `soon`; after `expected_uses` uses, this one included, it is done. A
        relation that does not fit is returned and not kept. What the maker raises goes on."""
        relation = self._core.get_or_make(
            self._keys.name(key),
            lambda: self._encoded(maker()),
            self._keys.group(group),
            keep,
            pin,
            soon,
            expected_uses,
        )
        if self._keys.crowded():
            self._keys.forget_all_but(e.key_bytes for e in self._core.entries())
        return relation

    def get(self, key: Hashable, group: Hashable | None = None) -> CachedRelation | None:
        """The relation if it is kept or can be restored (for which
        the group is needed, where there is one), else None."""
        return self._core.get(self._keys.name(key), self._keys.group(group))

    def put(
        self,
        key: Hashable,
        relation: AddressRelation | Encoding,
        *,
        group: Hashable | None = None,
        keep: str = "encoding",
        pin: bool = False,
        soon: bool = False,
        expected_uses: int = 0,
        make_ns: float = 0.0,
    ) -> bool:
        """Stores a relation in the place of one with this key; `make_ns`
        is what making it took. False where it does not fit."""
        return self._core.put(
            self._keys.name(key),
            self._encoded(relation),
            self._keys.group(group),
            keep,
            pin,
            soon,
            expected_uses,
            make_ns,
        )

    def __contains__(self, key: Hashable) -> bool:
        return self._core.contains(self._keys.name(key))

    def __len__(self) -> int:
        return self._core.statistics().relations

    def pin(self, key: Hashable) -> None:
        """Never flushed to make room, with its group, until `unpin`."""
        self._core.pin(self._keys.name(key), True)

    def unpin(self, key: Hashable) -> None:
        """May be flushed again."""
        self._core.pin(self._keys.name(key), False)

    def soon(self, key: Hashable) -> None:
        """Flushed after all others, until its next use."""
        self._core.soon(self._keys.name(key))

    def done(self, key: Hashable) -> None:
        """Flushed before all others."""
        self._core.done(self._keys.name(key))

    def flush(self, key: Hashable) -> None:
        """Flushes a relation with its group now, pinned or not."""
        self._core.flush(self._keys.name(key))

    def flush_all(self) -> None:
        """Flushes all there is: with a folder to spill to, a later process finds it there."""
        self._core.flush_all()

    def erase(self, key: Hashable, group: Hashable | None = None) -> None:
        """Forgets a relation, here and where it was spilled to (there with its group)."""
        self._core.erase(self._keys.name(key), self._keys.group(group))

    @property
    def statistics(self) -> CacheStatistics:
        """Hits, misses, evictions, restores and sizes up to now."""
        return self._core.statistics()

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self._core.policy

    def entries(self) -> list[CacheEntry]:
        """What is kept."""
        return [
            CacheEntry(
                self._keys.key(e.key_bytes), self._keys.key(e.group_bytes) if e.group_bytes else None,
                e.kind, e.keep, e.elements, e.bytes, e.uses, e.make_ns, e.pinned, e.soon, e.done,
            )
            for e in self._core.entries()
        ]  # fmt: skip

    def __repr__(self) -> str:
        now = self.statistics
        return (
            f"<longshore.RelationCache: {now.relations} relations, {now.bytes} of {now.ceiling_bytes} bytes, "
            f"{self.policy}>"
        )

    def _encoded(self, made: AddressRelation | Encoding) -> Encoding:
        if isinstance(made, Encoding):
            return made
        if isinstance(made, AddressRelation):
            return _core.encode(made, self._kind)
        raise DTypeError(f"expected an AddressRelation or an Encoding, got {type(made).__name__}")


class _Keys:
    """Hashable keys as bytes and back. Literals are their own text, the
    same in every process; other objects get numbers of this one."""

    _FEW = 1024

    def __init__(self) -> None:
        import secrets  # here, for it takes a while

        self._token = secrets.token_hex(8)
        self._serial = itertools.count()
        self._numbers: dict[Hashable, bytes] = {}
        self._objects: dict[bytes, Hashable] = {}
        self._limit = self._FEW

    def name(self, key: Hashable) -> bytes:
        hash(key)  # raises TypeError for what is no key
        try:
            return repr(_literal(key)).encode()
        except _NoLiteral:
            pass
        name = self._numbers.get(key)
        if name is None:
            name = self._numbers.setdefault(key, f"#{self._token}:{next(self._serial)}".encode())
            self._objects[name] = key
        return name

    def group(self, group: Hashable | None) -> bytes:
        return b"" if group is None else self.name(group)

    def key(self, name: bytes) -> Hashable:
        return self._objects.get(name, name) if name.startswith(b"#") else ast.literal_eval(name.decode())

    def crowded(self) -> bool:
        return len(self._objects) > self._limit

    def forget_all_but(self, names: Any) -> None:
        """Objects whose relations are not kept get a new number when they are asked for again: at worst a miss."""
        kept = set(names)
        for name in [name for name in list(self._objects) if name not in kept]:
            key = self._objects.pop(name, None)
            self._numbers.pop(key, None)
        self._limit = max(self._FEW, 2 * len(kept))


class _NoLiteral(Exception):
    pass


def _literal(key: Any) -> Any:
    """A key as a literal such that equal keys have one text: 1, 1.0 and True are equal in Python."""
    if key is None or type(key) in (str, bytes):
        return key
    if isinstance(key, (numbers.Integral, np.bool_)):
        return int(key)
    if isinstance(key, (float, np.floating)) and np.isfinite(key) and float(key) == key:
        return int(key) if float(key).is_integer() else float(key)
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, bytes):
        return bytes(key)
    if isinstance(key, tuple):
        return tuple(_literal(part) for part in key)
    raise _NoLiteral


class _PolicyOfUnits:
    """A callable on `FlushUnit`s as the core calls it: from its units to a position."""

    def __init__(self, choose: Callable[[list[FlushUnit]], Any], keys: _Keys):
        if not callable(choose):
            raise ArgumentError(f"a policy is a name or a callable, not {type(choose).__name__}")
        self._choose, self._keys = choose, keys
        self.__name__ = getattr(choose, "__name__", type(choose).__name__)

    def __call__(self, units: Sequence[_core.FlushUnit]) -> Any:
        shown = [
            FlushUnit(self._keys.key(u.name), u.group, u.relations, u.bytes, u.make_ns, u.uses, u.stored, u.last_use)
            for u in units
        ]
        choice = self._choose(shown)
        return next((k for k, unit in enumerate(shown) if unit is choice), choice)


class _Callables:
    """A store from two or three callables; without remove, an empty record stands for none."""

    def __init__(self, save: Callable, load: Callable, remove: Callable | None = None):
        self.save, self._load, self._remove = save, load, remove

    def load(self, name: bytes) -> bytes | None:
        record = self._load(name)
        return bytes(record) if record else None

    def remove(self, name: bytes) -> None:
        if self._remove is None:
            self.save(name, b"")
        else:
            self._remove(name)


def _store(spill: Any) -> Any:
    if spill is None:
        return None
    if isinstance(spill, (str, os.PathLike)):
        return os.path.abspath(os.fspath(spill))
    if isinstance(spill, Sequence) and len(spill) in (2, 3) and all(map(callable, spill)):
        return _Callables(*spill)
    if all(callable(getattr(spill, name, None)) for name in ("save", "load", "remove")):
        return _Callables(spill.save, spill.load, spill.remove)
    raise ArgumentError("spill is a folder's path, callables (save, load[, remove]), or an object with such methods")
