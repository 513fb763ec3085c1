"""The options of movers: what `bind` of plans between layouts, `bind` of plans between blocks and `bind_together` take,
written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from ._words import short
from .errors import ArgumentTypeError

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack

F = TypeVar("F", bound=Callable[..., Any])


class FieldOptions(TypedDict, total=False):
    """What is done where a field is written."""

    alpha: Any
    beta: Any
    conjugate: bool
    reduce: str | None


class BlockFieldOptions(FieldOptions, total=False):
    """The same between blocks, and what there is to say of their arrays."""

    visit: str | None
    phases: bool | None
    ghost: int | Sequence[int | tuple[int, int]] | None
    destination_ghost: int | Sequence[int | tuple[int, int]] | None


class MoverOptions(TypedDict, total=False):
    """What all fields of a mover have in common."""

    threads: int | None
    max_mem: int | str | None
    proxy: bool
    checked: bool
    placement: str | None
    node: str | None
    aggregate: bool | None
    packet_bytes: int | str | None
    preallocate: bool | None
    exchange: str | None


class OnceOptions(MoverOptions, total=False):
    """Of a mover that moves once; `report`: whether all ranks will be asked what that took."""

    report: bool


class BindOptions(FieldOptions, MoverOptions, total=False):
    """Of one plan between layouts."""


class BlockBindOptions(BlockFieldOptions, MoverOptions, total=False):
    """Of one plan between blocks."""


def takes(options: Any) -> Callable[[F], F]:
    """Whose **options are these: help() shows their names. What is not given is False or None."""

    def shown(function: F) -> F:
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[:-1]
        for name, kind in options.__annotations__.items():
            words = kind if isinstance(kind, str) else kind.__forward_arg__
            default = False if words == "bool" else None
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=words)
            )
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return shown


def check_names(options: Mapping[str, Any], *kinds: Any) -> None:
    """Raises ArgumentTypeError for what is no option of these kinds."""
    if unknown := [name for name in options if not any(name in kind.__annotations__ for kind in kinds)]:
        known = [name for kind in kinds for name in kind.__annotations__]
        raise ArgumentTypeError(f"bind has no option {short(unknown[0])}; it has {', '.join(known)}")


def of_field_and_mover(options: Mapping[str, Any], of_field: Any) -> tuple[Any, Any]:
    """The options of the field, and all others, of which `check_names` tells whether they are the mover's."""
    if not options:
        return {}, {}
    own = {name: value for name, value in options.items() if name in of_field.__annotations__}
    return own, {name: value for name, value in options.items() if name not in own}
