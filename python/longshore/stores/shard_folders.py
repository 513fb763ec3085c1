"""Folders of shards on a disk, and groups: folders that hold such folders, and `.npy` files of single elements."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..errors import StoreError
from .layout_json import NAME as LAYOUT_JSON
from .layout_json import SHARD_NAME, read_layout_json
from .npy import npy_header
from .random_access import entries_in

_MOST_DEPTH = 1024
SINGLE = ".npy"
"""What the name of a file ends in that holds a group's array without dimensions."""


def is_group(path: str | os.PathLike) -> bool:
    """Whether a folder is a group of folders of shards, as the first of its folders tells or, where it has none, its
    first `.npy` file."""
    here = os.fspath(path)
    for _ in range(_MOST_DEPTH):
        try:
            found = entries_in(here)
        except OSError:
            return False
        if any(entry.name == LAYOUT_JSON for entry in found):
            return here != os.fspath(path)
        folders = [entry.place for entry in found if entry.is_folder and not entry.is_link]
        if not folders:
            singles = [entry.place for entry in found if entry.name.endswith(SINGLE)]
            return bool(singles) and is_single(singles[0])
        here = folders[0]
    return False


def is_single(path: str) -> bool:
    """Whether a file is a `.npy` of one element without dimensions."""
    try:
        return npy_header(path, follow_links=False).shape == ()
    except StoreError:
        return False


def owned_folders(
    path: str, called: str, only: str = "", *, unfinished: bool = False
) -> Iterator[tuple[str, list[str]]]:
    """The folders of a folder of shards or of a group of them, those within others first, each with its files,
    `layout.json` last. Raises StoreError, which names it, where there is anything else; `called`: what messages call
    the folder, `only`: what they say it must be. `unfinished`: what a killed run has left of one is one too."""
    with os.scandir(path) as entries:
        found = sorted(entries, key=lambda entry: (entry.name == LAYOUT_JSON, entry.name))
    own = {LAYOUT_JSON}
    is_array = any(entry.name == LAYOUT_JSON for entry in found)
    if is_array:
        try:
            own |= set(read_layout_json(path).shards)
        except StoreError as error:
            if error.errno is not None:
                raise
            if not unfinished:
                raise StoreError(f"{error}; {only}") from None
    files = []
    for entry in found:
        name = entry.name
        if not is_array and entry.is_dir(follow_symlinks=False):
            yield from owned_folders(entry.path, f"{called}/{name}", only, unfinished=unfinished)
            continue
        killed = unfinished and (SHARD_NAME.fullmatch(name) or (not is_array and name.endswith(SINGLE)))
        if name not in own and not killed and (is_array or not is_single(entry.path)):
            what = f"no shard that its {LAYOUT_JSON} names" if is_array else "no folder of shards"
            raise StoreError(f"{called} holds {name!r}, which is {what}; {only}, so move that away first")
        if not entry.is_file(follow_symlinks=False):
            raise StoreError(f"{called} holds {name!r}, which is not a plain file; move that away first")
        files.append(name)
    yield path, files
