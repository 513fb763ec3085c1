"""`longshore ranks`: what a rank map costs in each representation."""

from __future__ import annotations

import json as json_module
import sys

import click


@click.group(short_help="Rank maps: what each representation costs.")
def ranks():
    """Rank maps: which world rank each member of a group is, kept in few bytes."""


@ranks.command(short_help="Show what each representation of a rank map costs.")
@click.argument("members", nargs=-1, required=True, metavar="MEMBERS...")
@click.option("--world", type=click.IntRange(0, 2**40), metavar="N",
              help="Ranks of the world.  [default: as few as hold the members]")
@click.option("--strategy", type=click.Choice(["time", "space", "hybrid"]), default="hybrid", show_default=True,
              help="What is to be small.")
@click.option("--alpha", type=click.FloatRange(0, 1), default=0.25, show_default=True, help="The weight of time in the hybrid.")
@click.option("--modules", type=click.Choice(["standard", "thesis", "all"]), default="all", show_default=True,
              help="The representations that are looked at.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON for programs.")
def explain(members, world, strategy, alpha, modules, as_json):
    """Show what each representation of a rank map would cost, and which one is taken. MEMBERS are a range, a section of a process
    grid, a list of ranks in order, or a file of them (text, or an array of NumPy's).

    \b
    longshore ranks explain 0:1048576:64
    longshore ranks explain "grid 128x128x64 [:, :, 5]"
    longshore ranks explain 3,1,4,15,9,2,6
    longshore ranks explain members.npy --world 1048576
    """
    from ..ranks import RankMap, explain_ranks, members_of
    from ..stores.team import launched_rank

    found, of = members_of(" ".join(members), world)
    options = {"strategy": strategy, "alpha": alpha, "modules": modules}
    told = found.explain(**options) if isinstance(found, RankMap) else explain_ranks(found, of, **options)
    if launched_rank() != 0:
        return  # under mpiexec one process is enough
    if as_json:
        json_module.dump({"size": told.size, "world": told.world, "structure": told.structure, "strategy": strategy, "alpha": alpha,
                          "rows": told.rows}, sys.stdout)
        print()
        return
    click.echo(str(told), nl=False)
