"""What a plan will do, said before it is done: as a dict for programs (`describe`) and as text for people (`render`).

Nothing here looks at elements. Plans with too many motions to list are told from one rank's view; plans where even one
rank has too many peers are told by bounds.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ._core import Distribution, Layout, Motion
from ._costs import costs, print_costs
from ._mistakes import amount, check, count
from ._words import bytes_of, count_of
from .errors import ArgumentError, NotInstalledError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ._api import MotionPlan

_MOTIONS_AT_MOST = 1 << 16  # that are listed
MATRIX_RANKS = 64  # that the matrix of `describe` covers
_MATRIX_SHOWN = 16  # that the matrix of `render` shows
_RELATIONS_AT_MOST = 256  # that access patterns are taken from
_MAP_CELLS = 8


def describe(
    plan: MotionPlan, rank: int | None = None, *, ranks_per_node: int | None = None, work: float | None = None
) -> dict[str, Any]:
    """The facts of a plan as a dict of numbers, lists and words (JSON can hold it). `ranks_per_node` and `work` are as
    `model.predict` takes them. Raises ArgumentError for a rank that takes no part, and for work that is negative or not
    finite.

    `view` says what the counts cover: "all" motions; those of "one rank" (`rank`), where there are too many to list; or
    "bounds" for one rank, where even its motions are too many: `messages_sent` is then an upper bound.
    """
    asked: dict[str, Any] = {
        "ranks_per_node": None if ranks_per_node is None else count(ranks_per_node, "ranks_per_node"),
        "work": None if work is None else amount(work, "work"),
    }
    source, destination = plan.source, plan.destination
    itemsize = plan.itemsize
    array_bytes = itemsize * source.size
    told: dict[str, Any] = {
        "source": _describe_layout(source),
        "destination": _describe_layout(destination),
        "axes": [int(a) for a in plan.axes],
        "itemsize": itemsize,
        "array_bytes": array_bytes,
        "moved_bytes": array_bytes * destination.replicas,
    }
    peers = [_peers_bound(source, destination, plan.axes), _peers_bound(destination, source, _inverse(plan.axes))]
    if rank is None and source.rank_count * peers[0] <= _MOTIONS_AT_MOST:
        _describe_all(told, plan)
    else:
        check("rank", rank, "int | None")
        rank = source.rank_map[0] if rank is None else int(rank)
        if not 0 <= rank < plan.world_size:
            raise ArgumentError(f"rank {rank} takes no part; the ranks of this plan lie in [0, {plan.world_size})")
        told["rank"] = rank
        if max(peers) <= _MOTIONS_AT_MOST:
            _describe_rank(told, plan, rank)
        else:
            _describe_bounds(told, plan, rank, peers)
    told["relabelling"] = _relabelling(plan) if told["view"] == "all" else None
    told["costs"] = None if told["view"] == "bounds" else costs(plan, told.get("rank"), **asked)
    return told


def render(
    plan: MotionPlan,
    *,
    rank: int | None = None,
    width: int = 100,
    colour: bool = False,
    element: str | None = None,
    **job: Any,
) -> str:
    """The same facts for people, from one rank's view if `rank` is given. `colour` adds terminal colours."""
    told = {"element": element, "rank": rank, **job}
    return printed(lambda console, _: print_to(console, plan, **told), width=width, colour=colour)


def printed(
    print_all: Callable[[Console, Callable[..., None]], None], *, width: int = 100, colour: bool = False
) -> str:
    """What is printed on a rich console, line by line or with the second argument, as text."""
    from rich.console import Console
    from rich.text import Text

    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=colour,
        no_color=not colour,
        legacy_windows=False,
        color_system="standard" if colour else None,
        highlight=False,
    )
    print_all(console, lambda line="": console.print(Text(line), soft_wrap=True))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def print_to(
    console: Console, plan: MotionPlan, *, element: str | None = None, rank: int | None = None, **job: Any
) -> None:
    """Prints the explanation on a rich console."""
    from rich.text import Text

    told = describe(plan, rank, **job)
    shape = " x ".join(f"{n:,}" for n in told["source"]["shape"])
    element = element or str(plan.dtype)
    axes = told["axes"]

    def print_(line: str = "") -> None:
        console.print(Text(line), soft_wrap=True)

    print_(
        f"array {shape} of {element}, {bytes_of(told['array_bytes'])}"
        + ("" if axes == sorted(axes) else f"; axes permuted to {', '.join(map(str, axes))}")
    )
    print_()
    _print_maps(console, plan)
    print_()
    _print_counts(console, print_, told)
    _print_access(print_, told)
    print_costs(print_, told["costs"])


# -- facts ------------------------------------------------------------------------------------------------------------


def _describe_layout(layout: Layout) -> dict[str, Any]:
    first = layout.rank_map[0]
    return {
        "layout": str(layout),
        "shape": list(layout.shape),
        "grid": list(layout.grid_shape),
        "ranks": layout.rank_count,
        "first_rank": first,
        "order": layout.order,
        "replicas": layout.replicas,
        "first_local_shape": list(layout.local_shape(first)),
    }


def _inverse(axes: Sequence[int]) -> list[int]:
    inverse = [0] * len(axes)
    for d, a in enumerate(axes):
        inverse[a] = d
    return inverse


def _peers_bound(a: Layout, b: Layout, axes: Sequence[int]) -> int:
    """At most how many ranks of `b` one rank of `a` shares elements with; b's dimension d is a's dimension axes[d]."""
    peers = 1
    dealt = a.distributions
    for d, to in enumerate(b.distributions):
        of = dealt[axes[d]]
        if to.coordinates == 1:
            continue
        owned = of.largest_count
        if to.kind == "GEN_BLOCK" or of.kind == "GEN_BLOCK":
            peers *= min(to.coordinates, owned)
            continue
        run = min(of.block, owned) if of.coordinates > 1 else owned
        runs = -(-owned // max(run, 1))
        peers *= max(1, min(to.coordinates, owned, runs * (-(-run // to.block) + 1)))
    return peers * max(1, b.replicas)


def _describe_all(told: dict[str, Any], plan: MotionPlan) -> None:
    size = plan.itemsize
    messages = local = 0
    largest: dict[str, int] | None = None
    out: dict[int, int] = {}
    into: dict[int, int] = {}
    cells: dict[tuple[int, int], int] = {}
    sample: list[Motion] = []
    rows, columns = plan.source.ranks, plan.destination.ranks
    for rank in rows:
        for motion in plan.sends(rank):
            n = motion.elements * size
            cells[motion.source, motion.destination] = n
            if len(sample) < _RELATIONS_AT_MOST:
                sample.append(motion)
            if motion.source == motion.destination:
                local += n
                continue
            messages += 1
            out[motion.source] = out.get(motion.source, 0) + n
            into[motion.destination] = into.get(motion.destination, 0) + n
            if largest is None or n > largest["bytes"]:
                largest = {"source": motion.source, "destination": motion.destination, "bytes": n}
    told.update(
        view="all", messages=messages, message_bytes=sum(out.values()), local_bytes=local, largest_message=largest
    )
    ranks = set(out) | set(into)
    busiest = max(sorted(ranks), key=lambda r: out.get(r, 0) + into.get(r, 0), default=-1)
    told["extra_memory"] = _extra(out.get(busiest, 0), into.get(busiest, 0), busiest if ranks else None)
    told["matrix"] = None
    if max(len(rows), len(columns)) <= MATRIX_RANKS:
        told["matrix"] = {
            "source_ranks": list(rows),
            "destination_ranks": list(columns),
            "bytes": [[cells.get((r, c), 0) for c in columns] for r in rows],
        }
    told["access"] = _access(plan, sample)


def _relabelling(plan: MotionPlan) -> dict[str, Any] | None:
    """What the destination's processes would save on other ranks; None where it is nothing, or takes long to find."""
    from . import _relabel

    if max(plan.source.rank_count, plan.destination.rank_count) > MATRIX_RANKS:
        return None
    try:
        found = _relabel.worthwhile(plan)
    except NotInstalledError as error:
        return {"missing": str(error)}
    return None if found is None else {"message_bytes": found.bytes_after, "ranks": list(found.layout.ranks)}


def _describe_rank(told: dict[str, Any], plan: MotionPlan, rank: int) -> None:
    size = plan.itemsize
    sends, receives = list(plan.sends(rank)), list(plan.receives(rank))
    away = [m for m in sends if m.destination != rank]
    here = [m for m in receives if m.source != rank]
    largest = max(away + here, key=lambda m: m.elements, default=None)
    sent, received = (sum(m.elements for m in motions) * size for motions in (away, here))
    told.update(
        view="one rank",
        messages_sent=len(away),
        messages_received=len(here),
        bytes_sent=sent,
        bytes_received=received,
        local_bytes=sum(m.elements for m in sends if m.destination == rank) * size,
        largest_message=largest
        and {"source": largest.source, "destination": largest.destination, "bytes": largest.elements * size},
        extra_memory=_extra(sent, received, rank),
        peers=[{"destination": m.destination, "bytes": m.elements * size} for m in sends[:MATRIX_RANKS]],
        access=_access(plan, sends[:16]),
    )


def _describe_bounds(told: dict[str, Any], plan: MotionPlan, rank: int, peers: list[int]) -> None:
    size = plan.itemsize
    sent, received = plan.source.local_size(rank) * size, plan.destination.local_size(rank) * size
    told.update(
        view="bounds",
        messages_sent=peers[0],
        messages_received=peers[1],
        bytes_sent=sent,
        bytes_received=received,
        extra_memory=_extra(sent, received, rank),
        access=[],
    )


def _extra(sent: int, received: int, rank: int | None) -> dict[str, Any]:
    """`threads` copies straight from array to array. `mpi` packs what is not contiguous: at most everything a rank
    sends and receives, all at once; `max_mem` bounds it."""
    return {"threads_bytes": 0, "mpi_bytes_at_most": sent + received, "rank": rank}


def _access(plan: MotionPlan, motions: Sequence[Motion]) -> list[dict[str, Any]]:
    """The patterns of these motions, equal ones together, most bytes first."""
    groups: dict[str, dict[str, Any]] = {}
    for motion in motions:
        relation = plan.typical_relation_of(motion)
        read, written = relation.source_pattern, relation.destination_pattern
        key = repr((read, written))
        if key not in groups:
            groups[key] = {
                "motions": 0,
                "bytes": 0,
                "example": [motion.source, motion.destination],
                "source": _plain(read),
                "destination": _plain(written),
                "source_words": pattern_words(read, plan.itemsize),
                "destination_words": pattern_words(written, plan.itemsize),
            }
        groups[key]["motions"] += 1
        groups[key]["bytes"] += motion.elements * plan.itemsize
    return sorted(groups.values(), key=lambda group: -group["bytes"])


def _plain(pattern: dict[str, Any]) -> dict[str, Any]:
    return {
        "block_bytes": pattern["block_bytes"],
        "loops": [list(loop) for loop in pattern["loops"]],
        "regular": bool(pattern["regular"]),
    }


def pattern_words(pattern: dict[str, Any], itemsize: int) -> str:
    """An access pattern in plain words, innermost first."""
    block, loops = pattern["block_bytes"], [loop for loop in pattern["loops"] if loop[0] != 1]
    usual = "" if pattern["regular"] else "mostly "
    if not loops:
        return f"{usual}contiguous, {bytes_of(block)}"
    count, stride = loops[0]
    if block == itemsize and stride % itemsize == 0:
        words = f"single elements strided by {stride // itemsize:,}, {count:,} times"
    elif block == itemsize:
        words = f"single elements, one every {bytes_of(stride)}, {count:,} times"
    else:
        words = f"runs of {bytes_of(block)}, one every {bytes_of(stride)}, {count:,} times"
    for count, stride in loops[1:]:
        words += f"; that every {bytes_of(stride)}, {count:,} times"
    levels = len(loops)
    return usual + words + (f" ({levels} levels)" if levels > 1 else "")


# -- owner maps -------------------------------------------------------------------------------------------------------

_COLOURS = ("cyan", "yellow", "green", "magenta", "bright_blue", "bright_red", "white", "bright_green")


def _print_maps(console: Console, plan: MotionPlan) -> None:
    from rich.table import Table

    shown = _interesting(plan.source, plan.destination, plan.axes)
    inverse = _inverse(plan.axes)
    left = _map(plan.source, sorted(shown), "from")
    right = _map(plan.destination, sorted(inverse[d] for d in shown), "to")
    widths = [max((line.cell_len for line in side), default=0) for side in (left, right)]
    if sum(widths) + 4 <= console.width:
        table = Table.grid(padding=(0, 4, 0, 0))
        from rich.text import Text

        table.add_row(Text("\n").join(left), Text("\n").join(right))
        console.print(table)
        return
    for line in [*left, "", *right]:
        console.print(line, soft_wrap=True)


def _interesting(source: Layout, destination: Layout, axes: Sequence[int]) -> list[int]:
    """The (at most two) source dimensions worth drawing: those
    that are dealt to more than one coordinate, then the last."""
    n = source.ndim
    inverse = _inverse(axes)
    from_, to = source.distributions, destination.distributions

    def weight(d: int) -> tuple[int, bool, int]:
        a, b = from_[d], to[inverse[d]]
        return ((a.coordinates > 1) + (b.coordinates > 1), source.shape[d] > 1, d)

    return sorted(sorted(range(n), key=weight, reverse=True)[:2])


def _map(layout: Layout, dims: list[int], word: str) -> list[Text]:
    """Lines of text: rank numbers by the runs of indices that one coordinate owns, along one or two dimensions."""
    from rich.text import Text

    lines = [Text(f"{word}  ", style="bold").append(str(layout), style="bold")]
    if 0 in layout.shape:
        return lines + [Text("  no elements")]
    dealt = layout.distributions
    runs = [_scaled(dealt[d]) for d in dims]
    rows, all_rows = runs[0] if len(dims) == 2 else ([0], True)
    columns, all_columns = runs[-1]
    labels, cells = [], []
    for r, i in enumerate(rows):
        line = []
        for j in columns:
            index = [0] * layout.ndim
            index[dims[-1]] = j
            if len(dims) == 2:
                index[dims[0]] = i
            line.append(layout.owner(index))
        cells.append(line)
        labels.append(str(i) if r == 0 or rows[r - 1] != i else "")
    heads = [str(j) if k == 0 or columns[k - 1] != j else "" for k, j in enumerate(columns)]
    wide = max(len(str(rank)) for line in cells for rank in line)
    cell = max(wide, max(map(len, heads))) + 1
    margin = max(map(len, labels)) if len(dims) == 2 else 0
    indent = "  " + " " * margin + " "
    more = " …" if not all_columns else ""
    lines.append(Text(indent + "".join(f"{head:>{cell}}" for head in heads) + more, style="dim"))
    for label, line in zip(labels, cells):
        text_line = Text().append(f"  {label if len(dims) == 2 else '':>{margin}} ", style="dim")
        for rank in line:
            text_line.append(f"{rank:>{cell}}", style=f"black on {_COLOURS[rank % len(_COLOURS)]}")
        lines.append(text_line.append(more, style="dim"))
    if not all_rows:
        lines.append(Text(f"  {'…':>{margin}}", style="dim"))
    notes = []
    if layout.ndim > len(dims):
        notes.append(f"dimensions {' and '.join(map(str, dims))}; the others at index 0")
    if layout.replicas > 1:
        notes.append(f"the first of {layout.replicas} replicas")
    if notes:
        lines.append(Text("  (" + "; ".join(notes) + ")", style="dim"))
    return lines


def run_starts(dim: Distribution) -> Iterator[int]:
    """Where the runs of indices that one coordinate owns begin."""
    if dim.kind == "GEN_BLOCK":
        position = 0
        for size in dim.sizes:
            if size:
                yield position
            position += size
        return
    block = dim.block if dim.coordinates > 1 else dim.extent
    if dim.extent:
        yield 0
        yield from range(block - (dim.origin % block if dim.coordinates > 1 else 0), dim.extent, block)


def _scaled(dim: Distribution) -> tuple[list[int], bool]:
    """Where the map's cells begin: runs repeated in proportion
    where all fit, else the first ones. (starts, whether these are all)."""
    starts = list(itertools.islice(run_starts(dim), _MAP_CELLS + 1))
    if len(starts) > _MAP_CELLS:
        return starts[:_MAP_CELLS], False
    stops = starts[1:] + [dim.extent]
    cells = min(_MAP_CELLS, dim.extent)
    repeated: list[int] = []
    for start, stop in zip(starts, stops):
        repeated += [start] * max(1, round(cells * (stop - start) / dim.extent))
    return repeated, True


# -- counts -----------------------------------------------------------------------------------------------------------


def _print_counts(console: Console, print_: Callable[..., None], told: dict[str, Any]) -> None:
    if told["view"] == "all":
        if told["matrix"] is not None:
            print_matrix(console, print_, told["matrix"])
            print_()
        ranks = f"{told['source']['ranks']:,} to {told['destination']['ranks']:,} ranks"
        print_(f"messages         {told['messages']:,}, {bytes_of(told['message_bytes'])} in all ({ranks})")
        print_(
            f"stays local      {bytes_of(told['local_bytes'])} of {bytes_of(told['moved_bytes'])}"
            + share(told["local_bytes"], told["moved_bytes"])
        )
        _print_relabelling(print_, told)
        _print_largest(print_, told)
        _print_extra(print_, told)
        return
    rank = told["rank"]
    print_(f"{told['source']['ranks']:,} to {told['destination']['ranks']:,} ranks; the view of rank {rank} alone:")
    bound = "at most " if told["view"] == "bounds" else ""
    print_(
        f"sends            {bound}{count_of(told['messages_sent'], 'message')}, {bound}{bytes_of(told['bytes_sent'])}"
    )
    print_(
        f"receives         {bound}{count_of(told['messages_received'], 'message')}, "
        f"{bound}{bytes_of(told['bytes_received'])}"
    )
    if told["view"] == "one rank":
        print_(f"stays local      {bytes_of(told['local_bytes'])}")
        _print_largest(print_, told)
        peers = ", ".join(f"{peer['destination']}: {bytes_of(peer['bytes'])}" for peer in told["peers"][:8])
        print_(f"goes to          {peers}" + (", …" if len(told["peers"]) > 8 else ""))
    _print_extra(print_, told)


def _print_relabelling(print_: Callable[..., None], told: dict[str, Any]) -> None:
    if (better := told["relabelling"]) is None:
        return
    if "missing" in better:
        print_(f"other ranks      may be better; {better['missing']}")
        return
    ranks = ",".join(map(str, better["ranks"][:_MATRIX_SHOWN])) + ",…" * (len(better["ranks"]) > _MATRIX_SHOWN)
    saved = bytes_of(told["message_bytes"] - better["message_bytes"])
    print_(f"other ranks      save {saved} of messages: ranks=[{ranks}] for the destination, as relabel finds them")


def share(part: int, whole: int) -> str:
    """A part of a whole in per cent: " (25 %)"."""
    return f" ({100 * part / whole:.3g} %)" if whole else ""


def _print_largest(print_: Callable[..., None], told: dict[str, Any]) -> None:
    largest = told["largest_message"]
    words = (
        f"{bytes_of(largest['bytes'])}, rank {largest['source']} to rank {largest['destination']}"
        if largest
        else "none"
    )
    print_(f"largest message  {words}")


def _print_extra(print_: Callable[..., None], told: dict[str, Any]) -> None:
    extra = told["extra_memory"]
    print_("extra memory     threads engine: none, it copies from array to array")
    if extra["rank"] is not None and extra["mpi_bytes_at_most"]:
        print_(
            f"                 mpi engine: at most {bytes_of(extra['mpi_bytes_at_most'])}, on rank {extra['rank']} "
            "(all messages packed); max_mem= bounds it"
        )
    else:
        print_("                 mpi engine: none")


def print_matrix(console: Console, print_: Callable[..., None], matrix: dict[str, Any], unit: str = "bytes") -> None:
    """Prints who sends how much to whom, a row for each source; bytes in a unit of their size."""
    from rich.table import Table

    rows, columns, cells = matrix["source_ranks"], matrix["destination_ranks"], matrix[unit]
    power = 0
    if unit == "bytes":
        unit, power = _unit(max(itertools.chain.from_iterable(cells), default=0))
    shown_rows, shown_columns = rows[:_MATRIX_SHOWN], columns[:_MATRIX_SHOWN]
    if len(shown_rows) == len(rows) - 1:
        shown_rows = rows
    if len(shown_columns) == len(columns) - 1:
        shown_columns = columns

    def cell(n: int, local: bool = False) -> str:
        if not n:
            return "·"
        text = f"{n / (1 << power):.1f}".removesuffix(".0") if power else str(n)
        return f"[{text}]" if local else text

    from rich.text import Text

    print_(f"{unit} from rank (row) to rank (column); [what stays on its rank]")
    table = Table(box=None, pad_edge=False, padding=(0, 0, 0, 2), show_header=True, header_style="dim")
    table.add_column("", justify="right", style="dim", no_wrap=True)
    for c in shown_columns:
        table.add_column(str(c), justify="right", no_wrap=True)
    elided = len(shown_columns) < len(columns)
    if elided:
        table.add_column("…", no_wrap=True)
    table.add_column("total", justify="right", style="dim", no_wrap=True)
    for r, line in zip(shown_rows, cells):
        table.add_row(
            str(r),
            *[Text(cell(n, r == c)) for c, n in zip(shown_columns, line)],
            *(["…"] if elided else []),
            cell(sum(line)),
        )
    if len(shown_rows) < len(rows):
        table.add_row("…")
    sums = [sum(line[k] for line in cells) for k in range(len(shown_columns))]
    table.add_row("total", *map(cell, sums), *(["…"] if elided else []), cell(sum(map(sum, cells))), style="dim")
    table.show_edge = False
    console.print(table, soft_wrap=True)


def _unit(n: int) -> tuple[str, int]:
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if n >= 1 << power:
            return unit, power
    return "bytes", 0


def _print_access(print_: Callable[..., None], told: dict[str, Any]) -> None:
    groups = told["access"]
    if not groups:
        return
    print_()
    print_("access patterns")
    for group in groups[:6]:
        example = group["example"]
        which = f"rank {example[0]} to rank {example[1]}" + (
            f" and {group['motions'] - 1} like it" if group["motions"] > 1 else ""
        )
        print_(f"  {which} ({bytes_of(group['bytes'])})")
        print_(f"    reads   {group['source_words']}")
        print_(f"    writes  {group['destination_words']}")
    if len(groups) > 6:
        print_(f"  … and {len(groups) - 6} more kinds")
