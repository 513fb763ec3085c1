"""`layout.json`: what a folder of shards says about itself, written, and read from an untrusted hand."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from .._core import Layout
from .._words import short
from ..errors import LongshoreError, StoreError
from .npy import check_shape, descr_of, parse_descr
from .object_places import is_url, without_password
from .random_access import LocalFile, RandomAccess, RemoteFile, joined

NAME = "layout.json"
SHARD_NAME = re.compile(r"rank-\d{5,19}\.npy")
"""What the shards of a store that we make are called; those of others may have any name."""
FORMAT = "longshore-shards"
VERSION = 1
MAX_BYTES = 8 << 20
_KEYS = ("format", "version", "layout", "shape", "dtype", "order", "shards")


@dataclass(frozen=True)
class ShardFolder:
    """The contents of a `layout.json`, checked as far as they can be without looking at the shards."""

    layout: Layout
    dtype: np.dtype
    shards: tuple[str, ...]


def read_layout_json(folder: str | os.PathLike) -> ShardFolder:
    """Reads and checks `folder/layout.json`."""
    folder = os.fspath(folder)
    return parse_layout_json(read_bounded(folder), without_password(joined(folder, NAME)))


def parse_layout_json(raw: bytes, path: str) -> ShardFolder:
    """Checks the bytes of a `layout.json`; the path is for messages."""
    try:
        return _parse(raw)
    except StoreError as error:
        raise StoreError(f"{path} cannot be used: {error}") from None


def encode_layout_json(
    layout: Layout, shape: Sequence[int], dtype: np.dtype, order: str, shards: Sequence[str]
) -> bytes:
    """The bytes of a `layout.json`, one key a line so that people and diffs can read it."""
    values = {
        "format": FORMAT,
        "version": VERSION,
        "layout": str(layout),
        "shape": [int(n) for n in shape],
        "dtype": descr_of(dtype),
        "order": order,
        "shards": list(shards),
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def read_bounded(folder: str) -> bytes:
    """The bytes of a folder's `layout.json`, if there are not too many."""
    path = joined(folder, NAME)
    if is_url(path):
        remote = RemoteFile(path)
        file: RandomAccess | None = remote if remote.exists() else None
    else:
        file = _opened(path)
    if file is None:
        raise StoreError(
            f"{without_password(folder) or '.'} holds no {NAME}, so it is no folder of shards (or an unfinished one)"
        )
    with file:
        if file.size() > MAX_BYTES:
            raise StoreError(f"{file.name} is larger than {MAX_BYTES} bytes")
        return file.start(MAX_BYTES)


def _opened(path: str) -> LocalFile | None:
    """A plain file of a disk; None where there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        if os.path.islink(path):
            raise StoreError(f"{path} is a symbolic link; it must be a plain file") from None
        raise StoreError(error.errno, f"cannot open {path}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StoreError(f"{path} is not a plain file")
    return LocalFile(path, fd)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise StoreError(f"the key {short(key)} appears twice")
        values[key] = value
    return values


def _integer(text: str) -> int:
    if len(text) > 20:
        raise StoreError(f"it holds a number of {len(text)} digits")
    return int(text)


def _no_fraction(text: str) -> NoReturn:
    raise StoreError(f"it holds {short(text)}; every number in it is an integer")


def _parse(raw: bytes) -> ShardFolder:
    try:
        values = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_int=_integer,
            parse_float=_no_fraction,
            parse_constant=_no_fraction,
        )
    except UnicodeDecodeError as error:
        raise StoreError(f"it is not UTF-8: byte {error.start} cannot be read") from None
    except RecursionError:
        raise StoreError("it nests too deeply") from None
    except json.JSONDecodeError as error:
        raise StoreError(f"it is not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    if not isinstance(values, dict):
        raise StoreError("it must be a JSON object")
    if values.get("format") != FORMAT:
        raise StoreError(f'its "format" must be "{FORMAT}", not {short(values.get("format"))}')
    if type(values.get("version")) is not int or values["version"] != VERSION:
        raise StoreError(f"its version is {short(values.get('version'))}; this longshore reads version {VERSION}")
    for key in _KEYS:
        if key not in values:
            raise StoreError(f'"{key}" is missing')
    for key in values:
        if key not in _KEYS:
            raise StoreError(f"the key {short(key)} is unknown")
    dtype = parse_descr(values["dtype"])
    shape = check_shape(values["shape"], dtype.itemsize)
    if not isinstance(values["layout"], str):
        raise StoreError(f'"layout" must be text, not {short(values["layout"])}')
    if not isinstance(values["shards"], list):
        raise StoreError(f'"shards" must be a list of file names, not {short(values["shards"])}')
    try:
        values["layout"].encode("ascii")
    except UnicodeEncodeError:
        raise StoreError(f'"layout" is {short(values["layout"])}, which is not plain ASCII') from None
    try:
        layout = Layout(values["layout"], shape)
    except LongshoreError as error:
        raise StoreError(f"its layout is wrong:\n{error}") from None
    if values["order"] not in ("C", "F") or values["order"] != layout.order:
        raise StoreError(f'"order" is {short(values["order"])} but its layout says {layout.order}')
    if len(values["shards"]) != layout.rank_count:
        raise StoreError(f"it names {len(values['shards'])} shards, but its layout has {layout.rank_count} ranks")
    seen: set[str] = set()
    for name in values["shards"]:
        check_shard_name(name)
        if name in seen:
            raise StoreError(f"the shard {short(name)} is named twice")
        seen.add(name)
    return ShardFolder(layout, dtype, tuple(values["shards"]))


def check_shard_name(name: Any) -> None:
    """A shard is a plain file name inside the folder: no path leads out of it."""
    if not isinstance(name, str):
        raise StoreError(f"{short(name)} is no file name")
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError:
        raise StoreError(f"{short(name)} is no file name") from None
    if (
        not 0 < len(encoded) <= 255
        or "/" in name
        or "\\" in name
        or "\0" in name
        or name in (".", "..")
        or name == NAME
    ):
        raise StoreError(f"{short(name)} is no plain file name inside the folder")
