"""What JSON documents must hold, and where one holds something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ._words import short
from .errors import LongshoreError

Check = Callable[[Any], None]
_WORDS = {int: "an integer", str: "a text", bool: "true or false", type(None): "null"}


class Wrong(Exception):
    """What is wrong with a value, and from the inside out where it is."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.path: list[str] = []

    def place(self) -> str:
        """Where it is: "", or such as ": copies[3]: transfer"."""
        return "".join(reversed(self.path))


def check_of(shape: Any) -> Check:
    """What raises Wrong where a value is not of this shape: a dict of keys, of which those that end in "?" may be
    absent, a list of one shape for all of its items, types, `object` for whatever there is, or such a check."""
    if isinstance(shape, dict):
        return _object([(key.removesuffix("?"), key[-1] == "?", check_of(inner)) for key, inner in shape.items()])
    if isinstance(shape, list):
        return _list(check_of(shape[0]))
    if shape is object:
        return lambda value: None
    if not isinstance(shape, (type, tuple)):
        return shape
    kinds = shape if isinstance(shape, tuple) else (shape,)

    def plain(value: Any) -> None:
        if type(value) not in kinds:
            raise Wrong(f"is {short(value)}; it must be {' or '.join(_WORDS[kind] for kind in kinds)}")
        if type(value) is str and not value.isprintable():
            raise Wrong(f"is {short(value)}; a terminal cannot have it as it is")

    return plain


def _object(fields: list[tuple[str, bool, Check]]) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, dict):
            raise Wrong(f"is {short(value)}; it must be an object")
        for key, optional, inner in fields:
            if key not in value:
                if optional:
                    continue
                raise Wrong(f"has no {key!r}")
            try:
                inner(value[key])
            except Wrong as wrong:
                wrong.path.append(f": {key}")
                raise

    return check


def _list(inner: Check) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, list):
            raise Wrong(f"is {short(value)}; it must be a list")
        for k, item in enumerate(value):
            try:
                inner(item)
            except Wrong as wrong:
                wrong.path.append(f"[{k}]")
                raise

    return check


_check_format = check_of({"format": object, "version": object})


def read(text: Any, what: str, name: str, check: Check, error: type[LongshoreError]) -> Any:
    """What a document holds that is `what`: it has the format of this name, in version 1, and passes the check. Raises
    an error of the type that says where it does not."""
    try:
        data = json.loads(text)
    except RecursionError:
        raise error(f"not {what}: it is nested too deeply") from None
    except (ValueError, TypeError) as wrong:
        raise error(f"not {what}: it is no JSON: {wrong}") from None
    try:
        _check_format(data)
        if data["format"] != name or data["version"] != 1:
            raise error(f"format {short(data['format'])} version {short(data['version'])} is not {name} version 1")
        check(data)
    except Wrong as wrong:
        raise error(f"not {what}: {wrong.place().removeprefix(': ') or 'it'} {wrong}") from None
    return data
