"""`layout.json`: what a folder of shards says about itself, written, and read from an untrusted hand."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass

import numpy as np

from ..errors import LongshoreError, StoreError
from .npy import check_shape, parse_descr

NAME = "layout.json"
FORMAT = "longshore-shards"
VERSION = 1
MAX_BYTES = 8 << 20
_KEYS = ("format", "version", "layout", "shape", "dtype", "order", "shards")


@dataclass(frozen=True)
class ShardFolder:
    """The contents of a `layout.json`, checked as far as they can be without looking at the shards."""

    layout: object
    dtype: np.dtype
    shards: tuple


def read_layout_json(folder, make_layout):
    """Reads and checks `folder/layout.json`. `make_layout(text, shape)` is the core's `Layout`."""
    path = os.path.join(folder, NAME)
    return parse_layout_json(_read_bounded(path), path, make_layout)


def parse_layout_json(raw, path, make_layout):
    try:
        return _parse(raw, make_layout)
    except StoreError as error:
        raise StoreError(f"{path} cannot be used: {error}") from None


def encode_layout_json(layout, shape, dtype, order, shards):
    """The bytes of a `layout.json`, one key a line so that people and diffs can read it."""
    values = {
        "format": FORMAT,
        "version": VERSION,
        "layout": str(layout),
        "shape": [int(n) for n in shape],
        "dtype": np.lib.format.dtype_to_descr(dtype),
        "order": order,
        "shards": list(shards),
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _read_bounded(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise StoreError(
            f"{os.path.dirname(path) or '.'} holds no {NAME}, so it is no folder of shards (or an unfinished one)"
        ) from None
    except OSError as error:
        if os.path.islink(path):
            raise StoreError(f"{path} is a symbolic link; it must be a plain file") from None
        raise StoreError(error.errno, f"cannot open {path}: {error.strerror}") from None
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise StoreError(f"{path} is not a plain file")
        try:
            raw = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise StoreError(error.errno, f"cannot read {path}: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise StoreError(f"{path} is larger than {MAX_BYTES} bytes")
    return raw


def _unique(pairs):
    values = {}
    for key, value in pairs:
        if key in values:
            raise StoreError(f"the key {_short(key)} appears twice")
        values[key] = value
    return values


def _integer(text):
    if len(text) > 20:
        raise StoreError(f"it holds a number of {len(text)} digits")
    return int(text)


def _no_fraction(text):
    raise StoreError(f"it holds {_short(text)}; every number in it is an integer")


def _parse(raw, make_layout):
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
        raise StoreError(f'its "format" must be "{FORMAT}", not {_short(values.get("format"))}')
    if type(values.get("version")) is not int or values["version"] != VERSION:
        raise StoreError(f"its version is {_short(values.get('version'))}; this longshore reads version {VERSION}")
    for key in _KEYS:
        if key not in values:
            raise StoreError(f'"{key}" is missing')
    for key in values:
        if key not in _KEYS:
            raise StoreError(f"the key {_short(key)} is unknown")
    dtype = parse_descr(values["dtype"])
    shape = check_shape(values["shape"], dtype.itemsize)
    if not isinstance(values["layout"], str):
        raise StoreError(f'"layout" must be text, not {_short(values["layout"])}')
    if not isinstance(values["shards"], list):
        raise StoreError(f'"shards" must be a list of file names, not {_short(values["shards"])}')
    try:
        values["layout"].encode("ascii")
    except UnicodeEncodeError:
        raise StoreError(f'"layout" is {_short(values["layout"])}, which is not plain ASCII') from None
    try:
        layout = make_layout(values["layout"], shape)
    except LongshoreError as error:
        raise StoreError(f"its layout is wrong:\n{error}") from None
    if values["order"] not in ("C", "F") or values["order"] != layout.order:
        raise StoreError(f'"order" is {_short(values["order"])} but its layout says {layout.order}')
    if len(values["shards"]) != layout.rank_count:
        raise StoreError(f"it names {len(values['shards'])} shards, but its layout has {layout.rank_count} ranks")
    seen = set()
    for name in values["shards"]:
        check_shard_name(name)
        if name in seen:
            raise StoreError(f"the shard {_short(name)} is named twice")
        seen.add(name)
    return ShardFolder(layout, dtype, tuple(values["shards"]))


def check_shard_name(name):
    """A shard is a plain file name inside the folder: no path leads out of it."""
    if not isinstance(name, str):
        raise StoreError(f"{_short(name)} is no file name")
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError:
        raise StoreError(f"{_short(name)} is no file name") from None
    if (
        not 0 < len(encoded) <= 255
        or "/" in name
        or "\\" in name
        or "\0" in name
        or name in (".", "..")
        or name == NAME
    ):
        raise StoreError(f"{_short(name)} is no plain file name inside the folder")


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
