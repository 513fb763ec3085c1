"""`longshore explain`: what a redistribution will do, without data, MPI or a cluster."""

from __future__ import annotations

import sys
from typing import Any

import click
import numpy as np

from .answers import write_json
from .words import Axes, ElementType, Finite, Shape


@click.command(short_help="Show what a redistribution will do. Needs no data.")
@click.option(
    "--shape", type=Shape(), required=True, metavar="NxM...", help="Extents of the whole array, such as 8192x8192."
)
@click.option(
    "--dtype", type=ElementType(), default="float64", show_default=True, help="Element type, as NumPy names it."
)
@click.option("--from", "source", required=True, metavar="LAYOUT", help="The layout the array is in.")
@click.option("--to", "destination", required=True, metavar="LAYOUT", help="The layout it is wanted in.")
@click.option(
    "--axes",
    type=Axes(),
    metavar="A,B...",
    help="Permute dimensions, as numpy.transpose does: destination dimension d is source dimension AXES[d].",
)
@click.option("--rank", type=click.IntRange(min=0), help="Tell it from this rank's view only.")
@click.option(
    "--relabel",
    is_flag=True,
    help="Put the destination's processes on those ranks that least has to be sent to.",
)
@click.option(
    "--ranks-per-node", type=click.IntRange(min=1), help="Predict for so many consecutive ranks on each node."
)
@click.option(
    "--work",
    type=Finite(min=0),
    metavar="NS",
    help="Predict with a loop that computes NS nanoseconds a byte with what arrives, and can also get it in strips.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON for programs.")
def explain(
    shape: tuple[int, ...],
    dtype: np.dtype,
    source: str,
    destination: str,
    axes: tuple[int, ...] | None,
    rank: int | None,
    relabel: bool,
    ranks_per_node: int | None,
    work: float | None,
    as_json: bool,
) -> None:
    """Show what a redistribution will do: who sends how many bytes to whom, what stays where it is, and how each side's
    memory is read and written. Needs no data, no MPI and no cluster, and plans of millions of ranks are no trouble.

    \b
    longshore explain --shape 8192x8192 --from "(BLOCK, *) on 4" --to "(CYCLIC(64), CYCLIC(64)) on 2x2"
    """
    from .. import Layout, plan
    from .._relabel import relabel as relabelled
    from ..explain import describe, print_to, render
    from ..stores.team import launched_rank

    if axes is not None and len(axes) != len(shape):
        raise click.UsageError(f"--axes names {len(axes)} dimensions, --shape {len(shape)}")
    if launched_rank() != 0:
        return  # under mpiexec one process is enough
    from_layout = Layout(source, shape)
    to_layout = Layout(destination, shape if axes is None else tuple(shape[a] for a in axes))
    if relabel:
        to_layout = relabelled(from_layout, to_layout, dtype, axes).layout
    made = plan(from_layout, to_layout, dtype, axes=axes)
    job: dict[str, Any] = {"rank": rank, "ranks_per_node": ranks_per_node}
    if work is not None:
        job["work"] = work * 1e-9
    if as_json:
        write_json({"dtype": str(dtype), **describe(made, **job)})
        return
    if not sys.stdout.isatty():
        click.echo(render(made, element=str(dtype), **job), nl=False)
        return
    from rich.console import Console

    print_to(Console(highlight=False), made, element=str(dtype), **job)
