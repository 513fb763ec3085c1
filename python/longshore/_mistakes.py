"""Arguments of the wrong kind: which one it is, what was given and what is wanted, from the signatures that the core
tells."""

from __future__ import annotations

import ast
import functools
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from . import _core
from ._words import short
from .errors import ArgumentError, ArgumentTypeError, LongshoreError, SizeOverflowError

_LIMIT = 2**63
_NAMES = {
    "int": "an integer",
    "float": "a number",
    "bool": "True or False",
    "str": "text",
    "bytes": "bytes",
    "PathLike": "a path",
    "None": "None",
}
_PLAIN = {"int": int, "bool": bool, "str": str, "bytes": bytes, "None": type(None)}
_MANY = {"int": "integers", "float": "numbers", "bool": "flags (True or False)", "str": "texts", "bytes": "bytes"}


def check(name: str, value: Any, wanted: str) -> None:
    """Raises where an argument's value is not of the kind that an annotation says, such as "int | Sequence[int]"."""
    kind, types = _kind(wanted)
    if isinstance(value, types) and (not isinstance(value, int) or -_LIMIT <= value < _LIMIT):
        return
    if (misfit := _misfit(name, value, kind)) is not None:
        raise misfit


@functools.cache
def _kind(wanted: str) -> tuple[ast.expr, tuple[type, ...]]:
    """An annotation, and the types whose values need no further look, but integers one at their size."""
    kind = ast.parse(wanted, mode="eval").body
    names = [_name(option) for option in _options(kind)]
    types = [_PLAIN.get(name, getattr(_core, name, None)) for name in names]
    return kind, tuple(each for each in types if isinstance(each, type))


def one_of(value: Any, name: str, known: Iterable[str]) -> str:
    """A word that is among those that are known."""
    if not isinstance(value, str) or value not in known:
        raise ArgumentError(f"{name} is {_shown(value)}; it can be " + " or ".join(map(repr, known)))
    return value


def flag(value: Any, name: str) -> bool:
    """True or False."""
    check(name, value, "bool")
    return bool(value)


def count(value: Any, name: str) -> int:
    """An integer that is not negative and has 63 bits."""
    check(name, value, "int")
    if (number := operator.index(value)) < 0:
        raise ArgumentError(f"{name} is {number}; it must be at least 0")
    return number


def amount(value: Any, name: str) -> float:
    """A number that is finite and not negative."""
    check(name, value, "float")
    if not 0 <= value <= sys.float_info.max:
        raise ArgumentError(f"{name} is {short(value)}; it must be finite and not negative")
    return float(value)


def at_least_one(value: Any, name: str) -> int:
    """How many of something there are, where None leaves that to Longshore."""
    check(name, value, "int")
    if (number := operator.index(value)) < 1:
        raise ArgumentError(f"{name} is {number}; it must be at least 1, or None")
    return number


def explain(function: Any, positional: list[Any], named: dict[str, Any]) -> LongshoreError:
    """What is wrong with a call that a function of the core could not make sense of."""
    what = function.__qualname__.removesuffix(".__init__")
    found = [_mistake(what, head, positional, named) for head in _heads(function)]
    # Of several signatures the one that was meant is the one of which most is right.
    return max(found, key=operator.itemgetter(0))[1]


def _heads(function: Any) -> list[ast.FunctionDef]:
    """What a function's signatures say. Those of one argument of the same name are one, of which it has either kind."""
    heads = []
    for signature, *_ in function.__nb_signature__:
        text = re.sub(r"\\\d+", "...", signature[signature.index("def ") :])
        (head,) = ast.parse(text + ": ...").body
        assert isinstance(head, ast.FunctionDef)
        heads.append(head)
    alike = {tuple(argument.arg for argument in (*_ours(head), *head.args.kwonlyargs)) for head in heads}
    if len(heads) > 1 and len(alike) == 1 and len(alike.pop()) == 1 and all(map(_ours, heads)):
        kinds = [kind for head in heads if (kind := _ours(head)[0].annotation) is not None]
        _ours(heads[0])[0].annotation = functools.reduce(lambda a, b: ast.BinOp(a, ast.BitOr(), b), kinds)
        return heads[:1]
    return heads


def _ours(head: ast.FunctionDef) -> list[ast.arg]:
    """The arguments that may be given without a name."""
    return [argument for argument in head.args.posonlyargs + head.args.args if argument.arg != "self"]


def _mistake(
    what: str, head: ast.FunctionDef, positional: list[Any], named: dict[str, Any]
) -> tuple[int, LongshoreError]:
    """How many arguments are right before the first mistake, and that."""
    ours = _ours(head)
    needed = len(ours) - len(head.args.defaults)
    by_name = {argument.arg: argument for argument in ours + head.args.kwonlyargs}
    if len(positional) > len(ours) and head.args.vararg is None:
        takes = f"{len(ours)} argument{'' if len(ours) == 1 else 's'}" + (
            " without a name" if head.args.kwonlyargs else ""
        )
        return len(ours), ArgumentTypeError(f"{what} takes {takes}, not {len(positional)}: {_list(by_name)}")
    given = {argument.arg: value for argument, value in zip(ours, positional)}
    for name in named:
        if name in given:
            return 0, ArgumentTypeError(f"{name} is given twice")
        if name not in by_name and head.args.kwarg is None:
            return 0, ArgumentTypeError(f"{what} has no argument {name!r}; it has {_list(by_name)}")
    given |= named
    right = 0
    for name, argument in by_name.items():
        if name in given:
            if (misfit := _misfit(name, given[name], argument.annotation)) is not None:
                return right, misfit
            right += 1
    for argument in ours[:needed]:
        if argument.arg not in given:
            return right, ArgumentTypeError(f"{argument.arg} is missing; it must be {_words(argument.annotation)}")
    for argument, default in zip(head.args.kwonlyargs, head.args.kw_defaults):
        if default is None and argument.arg not in given:
            return right, ArgumentTypeError(f"{argument.arg}= is missing; it must be {_words(argument.annotation)}")
    for name, value in given.items():  # the core counts some things in fewer bits, or from 0
        number = _integer(value)
        if number is not None and not 0 <= number < 2**31:
            return right, ArgumentTypeError(f"{name} is {number}, which is too {'small' if number < 0 else 'large'}")
    shown = ", ".join(f"{name}={_shown(value)}" for name, value in given.items())
    return right, ArgumentTypeError(f"{what} takes {ast.unparse(head.args)}; it was given {shown}")


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _misfit(name: str, value: Any, kind: ast.expr | None) -> LongshoreError | None:
    """What is wrong with a value of which an annotation says what is wanted."""
    if _fits(value, kind):
        return None
    number = _integer(value)
    if number is not None and not -_LIMIT <= number < _LIMIT and _fits(0, kind):
        return SizeOverflowError(f"{name} is {short(value)}, which does not fit in 64 bits")
    items = _items(value)
    for option in _options(kind):
        if items is not None and (inner := _item(option)) is not None:
            place = next(k for k, each in enumerate(items) if not _fits(each, inner))
            misfit = _misfit(f"{name}[{place}]", items[place], inner)
            if isinstance(misfit, SizeOverflowError):
                return misfit
            return ArgumentTypeError(f"{name}[{place}] is {_shown(items[place])}; {name} must be {_words(kind)}")
    return ArgumentTypeError(f"{name} is {_shown(value)}; it must be {_words(kind)}")


def _options(kind: ast.expr | None) -> Iterator[ast.expr]:
    """What stands between the bars of an annotation."""
    if isinstance(kind, ast.BinOp):
        yield from _options(kind.left)
        yield from _options(kind.right)
    elif kind is not None:
        yield kind


def _name(kind: ast.expr) -> str:
    """The last word of a name: Region of longshore._core.Region."""
    if isinstance(kind, ast.Constant):
        return kind.value.split(".")[-1] if isinstance(kind.value, str) else repr(kind.value)
    return ast.unparse(kind.value if isinstance(kind, ast.Subscript) else kind).split(".")[-1]


def _item(kind: ast.expr) -> ast.expr | None:
    """Of what a sequence is."""
    if isinstance(kind, ast.Subscript) and _name(kind) in ("Sequence", "list", "Iterable"):
        return kind.slice
    return None


def _items(value: Any) -> list[Any] | None:
    """What a list or anything like it has in it."""
    if isinstance(value, (str, bytes, Mapping, Iterator)):  # an iterator could be looked through only once
        return None
    try:
        return list(value)
    except TypeError:
        return None


def _words(kind: ast.expr | None) -> str:
    """An annotation in plain words."""
    *most, last = dict.fromkeys(map(_one, _options(kind))) or ["something else"]
    return f"{', '.join(most)} or {last}" if most else last


def _one(kind: ast.expr) -> str:
    name = _name(kind)
    if (inner := _item(kind)) is not None:
        if _item(inner) is not None:
            return "a sequence of sequences"
        of = " or ".join(_MANY.get(_name(option), f"{_name(option)}s") for option in _options(inner))
        return f"a sequence of {of}"
    return _NAMES.get(name, ("an " if name[:1] in "AEIOUaeiou" else "a ") + name)


def _shown(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    return " ".join(short(value).split())


def _integer(value: Any) -> int | None:
    try:
        return operator.index(value)
    except TypeError:
        return None


def _fits(value: Any, kind: ast.expr | None) -> bool:
    if isinstance(kind, ast.BinOp):
        return any(_fits(value, option) for option in _options(kind))
    if kind is None:
        return True
    if (inner := _item(kind)) is not None:
        items = _items(value)
        return items is not None and all(_fits(each, inner) for each in items)
    name = _name(kind)
    if name in _TESTS:
        return _TESTS[name](value)
    wanted = getattr(_core, name, None)
    return not isinstance(wanted, type) or isinstance(value, wanted)  # of arrays and callables those know who take them


def _fits_integer(value: Any) -> bool:
    number = _integer(value)
    return number is not None and -_LIMIT <= number < _LIMIT


def _fits_number(value: Any) -> bool:
    return hasattr(value, "__float__") or hasattr(value, "__index__")


_TESTS: dict[str, Callable[[Any], bool]] = {
    "int": _fits_integer,
    "float": _fits_number,
    "bool": lambda value: isinstance(value, (bool, np.bool_)),
    "str": lambda value: isinstance(value, str),
    "bytes": lambda value: isinstance(value, bytes),
    "slice": lambda value: isinstance(value, slice),
    "PathLike": lambda value: isinstance(value, os.PathLike),
    "None": lambda value: value is None,
}
