"""`longshore info`: what a store holds, and how."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from .._words import bytes_of, count_of, printable
from .answers import write_json

if TYPE_CHECKING:
    from ..stores.array import LinkFacts
    from ..stores.opened import StoredArray, StoredGroup

_ROWS_SHOWN = 200
_FILL_SHOWN = 20
_MOST_COLUMNS = 100_000  # what is written is as wide as it is; a terminal breaks its lines


@click.command(short_help="Show what a store holds: shapes, types, chunks, codecs, sizes.")
@click.argument("path", metavar="PATH")
@click.option("--json", "as_json", is_flag=True, help="Write JSON for programs.")
def info(path: str, as_json: bool) -> None:
    """Show what a store holds, or one array or group of it: shape, element type, chunks and shards, codecs, layout,
    names of dimensions, fill value, attributes, and the bytes that are stored and that it takes in memory. No chunk is
    read.

    \b
    longshore info era5.zarr
    longshore info run.h5::/fields/u
    longshore info s3://bucket/model.nc::t2m
    longshore info shards/ --json
    """
    from ..stores.opened import StoredArray
    from ..stores.opened import open as open_store
    from ..stores.team import launched_rank

    if launched_rank() != 0:
        return  # under mpiexec one process is enough
    with open_store(path) as opened:
        told = _describe(opened)
    if as_json:
        write_json(told)
    elif isinstance(opened, StoredArray):
        _print_array(told)
    else:
        _print_group(told)


# -- what is told -----------------------------------------------------------------------------------------------------


def _describe(opened: StoredArray | StoredGroup) -> dict[str, Any]:
    """All that is told of a store, as JSON can hold it."""
    from ..stores.array import LinkFacts
    from ..stores.opened import StoredArray

    told: dict[str, Any] = {"path": opened.where, "format": opened.format}
    if isinstance(opened, StoredArray):
        arrays = [_describe_array("", opened)]
        told |= {"kind": "array", "arrays": arrays}
    else:
        arrays, groups, links = [], [], []
        for name, node in _nodes(opened):
            if isinstance(node, StoredArray):
                arrays.append(_describe_array(name, node))
            elif isinstance(node, LinkFacts):
                links.append({"name": name, "kind": node.kind, "target": node.target})
            elif name:
                groups.append({"name": name, "attributes": len(node.attributes)})
        dimensions = {
            name: {"extent": extent, "unlimited": grows} for name, (extent, grows) in opened.dimensions.items()
        }
        told |= {"kind": "group", "attributes": len(opened.attributes), "dimensions": dimensions}
        told |= {"arrays": arrays, "groups": groups, "links": links}
    stored = [array["stored_bytes"] for array in arrays]
    told["stored_bytes"] = None if None in stored else sum(stored)
    told["memory_bytes"] = sum(array["memory_bytes"] or 0 for array in arrays)
    return told


def _nodes(group: StoredGroup, prefix: str = "") -> Iterator[tuple[str, StoredGroup | StoredArray | LinkFacts]]:
    """A group, and all arrays, groups and links below, each with its path."""
    from ..stores.opened import StoredGroup

    yield prefix.rstrip("/"), group
    for name, child in group.items():
        if isinstance(child, StoredGroup):
            yield from _nodes(child, f"{prefix}{name}/")
        else:
            yield prefix + name, child
    for name, link in group.links.items():
        yield prefix + name, link


def _describe_array(name: str, array: StoredArray) -> dict[str, Any]:
    facts = array.facts
    movable = facts.dtype is not None
    return {
        "name": name,
        "shape": list(facts.shape),
        "dtype": str(facts.dtype) if movable else None,
        "type_name": facts.type_name or None,
        "movable": movable,
        "order": facts.order,
        "chunks": _list(facts.chunks),
        "shards": _list(facts.shards),
        "codecs": list(facts.codecs),
        "layout": None if array.layout is None else str(array.layout),
        "names": _list(facts.names),
        "unlimited": list(facts.unlimited),
        "fill": None if not movable or facts.fill is None else _plain_value(array.fill),
        "attributes": len(facts.attributes),
        "stored_bytes": facts.stored_bytes,
        "memory_bytes": facts.nbytes if movable else None,
    }


def _list(values: Any) -> list[Any] | None:
    return None if values is None else list(values)


def _plain_value(value: Any) -> Any:
    """An element as JSON can say it: what JSON has no numbers for is text."""
    if value.dtype.kind == "V" and not value.dtype.names:
        return "0x" + value.tobytes().hex()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return str(value)
    plain = value.item()
    if isinstance(plain, bytes):
        return plain.decode("latin-1")
    if isinstance(plain, float) and not math.isfinite(plain):
        return str(plain)
    return plain if isinstance(plain, (bool, int, float, str)) else str(plain)


# -- for people -------------------------------------------------------------------------------------------------------


def _extents(extents: list[int] | None) -> str:
    if extents is None:
        return ""
    return " x ".join(f"{n:,}" for n in extents) if extents else "one element"


def _type(array: dict[str, Any]) -> str:
    return printable(array["type_name"] or array["dtype"] or "unknown") + ("" if array["movable"] else " (not movable)")


def _names(array: dict[str, Any]) -> str:
    return ", ".join("-" if name is None else printable(name) for name in array["names"] or ())


def _fill(value: Any) -> str:
    text = printable(value)
    return text if len(text) <= _FILL_SHOWN else text[: _FILL_SHOWN - 3] + "..."


def _size(n: int | None) -> str:
    return "unknown" if n is None else bytes_of(n)


def _print_array(told: dict[str, Any]) -> None:
    (array,) = told["arrays"]
    chunks = _extents(array["chunks"]) or "none"
    if array["chunks"]:
        counts = math.prod(-(-n // chunk) for n, chunk in zip(array["shape"], array["chunks"]))
        chunks += f" ({count_of(counts, 'chunk')})"
    stored = _size(array["stored_bytes"])
    if array["stored_bytes"] and array["memory_bytes"]:
        stored += f" (1 : {array['memory_bytes'] / array['stored_bytes']:.2f})"
    lines = {
        "shape": _extents(array["shape"]),
        "type": _type(array),
        "dimensions": _names(array),
        "unlimited": ", ".join(map(str, array["unlimited"])),
        "chunks": chunks,
        "shards": _extents(array["shards"]),
        "codecs": printable(", ".join(array["codecs"])) or "none",
        "layout": array["layout"] or "",
        "fill": "" if array["fill"] is None else _fill(array["fill"]),
        "attributes": str(array["attributes"]),
        "stored": stored,
        "in memory": _size(array["memory_bytes"]),
    }
    click.echo(f"{printable(told['path'])}: an array ({told['format']})")
    for name, value in lines.items():
        if value:
            click.echo(f"  {name:<11} {value}")


def _print_group(told: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    arrays = told["arrays"]
    click.echo(
        f"{printable(told['path'])}: {count_of(len(arrays), 'array')} ({told['format']}), "
        f"{count_of(told['attributes'], 'attribute')}; stored {_size(told['stored_bytes'])}, in memory "
        f"{_size(told['memory_bytes'])}"
    )
    rows = [
        {
            "array": printable(array["name"]),
            "shape": _extents(array["shape"]),
            "type": _type(array),
            "dimensions": _names(array),
            "chunks": _extents(array["chunks"]),
            "shards": _extents(array["shards"]),
            "layout": array["layout"] if told["format"] == "shards" and array["layout"] else "",
            "codecs": printable(", ".join(array["codecs"])),
            "fill": "" if array["fill"] is None else _fill(array["fill"]),
            "attributes": str(array["attributes"] or ""),
            "stored": _size(array["stored_bytes"]),
            "in memory": "" if array["memory_bytes"] is None else _size(array["memory_bytes"]),
        }
        for array in arrays[:_ROWS_SHOWN]
    ]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    columns = [name for name in (rows[0] if rows else ()) if any(row[name] for row in rows)]
    for name in columns:
        table.add_column(name, no_wrap=True, justify="right" if name in ("stored", "in memory") else "left")
    for row in rows:
        table.add_row(*[Text(row[name]) for name in columns])
    if rows:
        Console(highlight=False, width=_MOST_COLUMNS).print(table, soft_wrap=True)
    if len(arrays) > len(rows):
        click.echo(f"… and {len(arrays) - len(rows):,} more; --json tells of all")
    for group in told["groups"]:
        click.echo(f"group {printable(group['name'])}: {count_of(group['attributes'], 'attribute')}")
    for name, dimension in told["dimensions"].items():
        grows = ", unlimited" if dimension["unlimited"] else ""
        click.echo(f"dimension {printable(name)}: {dimension['extent']:,}{grows}")
    for link in told["links"]:
        click.echo(f"link {printable(link['name'])}: {printable(link['kind'])}, to {printable(link['target'])}")
