"""`longshore ranks`: what a rank map costs in each representation, and what the communicators of a program are."""

from __future__ import annotations

from pathlib import Path

import click

from .answers import write_json


@click.group(short_help="Rank maps: what they cost, in general and in a program.")
def ranks() -> None:
    """Rank maps: which world rank each member of a group is, kept in few bytes."""


@ranks.command(short_help="Show what each representation of a rank map costs.")
@click.argument("members", nargs=-1, required=True, metavar="MEMBERS...")
@click.option(
    "--world",
    type=click.IntRange(0, 2**40),
    metavar="N",
    help="Ranks of the world.  [default: as few as hold the members]",
)
@click.option(
    "--strategy",
    type=click.Choice(["time", "space", "hybrid"]),
    default="hybrid",
    show_default=True,
    help="What is to be small.",
)
@click.option(
    "--alpha", type=click.FloatRange(0, 1), default=0.25, show_default=True, help="The weight of time in the hybrid."
)
@click.option(
    "--modules",
    type=click.Choice(["standard", "thesis", "all"]),
    default="all",
    show_default=True,
    help="The representations that are looked at.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON for programs.")
def explain(
    members: tuple[str, ...], world: int | None, strategy: str, alpha: float, modules: str, as_json: bool
) -> None:
    """Show what each representation of a rank map would cost, and which one is taken. MEMBERS are a range, a section of
    a process grid, a list of ranks in order, or a file of them (text, or an array of NumPy's).

    \b
    longshore ranks explain 0:1048576:64
    longshore ranks explain "grid 128x128x64 [:, :, 5]"
    longshore ranks explain 3,1,4,15,9,2,6
    longshore ranks explain members.npy --world 1048576
    """
    from ..ranks import RankMap, explain_ranks, members_of
    from ..stores.team import launched_rank

    found, of = members_of(" ".join(members), world)
    if isinstance(found, RankMap):
        told = found.explain(strategy=strategy, alpha=alpha, modules=modules)
    else:
        told = explain_ranks(found, of, strategy=strategy, alpha=alpha, modules=modules)
    if launched_rank() != 0:
        return  # under mpiexec one process is enough
    if as_json:
        write_json(
            {
                "size": told.size,
                "world": told.world,
                "structure": told.structure,
                "strategy": strategy,
                "alpha": alpha,
                "rows": told.rows,
            }
        )
        return
    click.echo(str(told), nl=False)


@ranks.command(
    short_help="Show the communicators of any MPI program and what their members cost.",
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--json", "json_file", metavar="FILE", type=click.Path(dir_okay=False), help="Write JSON to this file, too."
)
@click.option(
    "--family",
    type=click.Choice(["auto", "mpich", "openmpi", "abi"]),
    default="auto",
    show_default=True,
    help="The program's MPI; auto asks the launcher.",
)
@click.option("--library", "only_library", is_flag=True, help="Print the library to preload by hand, and run nothing.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND...")
def profile(json_file: str | None, family: str, only_library: bool, command: tuple[str, ...]) -> None:
    """Run COMMAND, an MPI program with its launcher, and show at its end, on the standard error, which communicators
    and groups it created: their members' structure, what the MPI library's lists of them cost on all processes
    together, and what compact maps would. The program is not rebuilt; its exit code is passed on. One that ends without
    MPI_Finalize gets no report, nor do communicators of the Sessions model.

    \b
    longshore ranks profile -- mpiexec -n 4 ./program
    longshore ranks profile --json profile.json -- mpirun -n 4 python program.py
    LD_PRELOAD=$(longshore ranks profile --library --family openmpi) mpirun -x LD_PRELOAD -n 4 ./program

    The library gets to the processes by their environment. Every process must have it, else the program hangs:
    launchers hand it to other nodes (Open MPI's are told to, with -x), but programs that are linked statically or
    change their user do not load it. By hand, LONGSHORE_RANK_PROFILE names the file for JSON."""
    from .. import rank_profile

    if not command and not only_library:
        raise click.UsageError("there is no command to run")
    if family == "auto":
        family = rank_profile.launcher_family(command[0] if command else "mpiexec")
    if only_library:
        click.echo(str(rank_profile.library(family)))
        return
    if json_file is not None and not Path(json_file).absolute().parent.is_dir():
        raise click.UsageError(f"there is no folder for {json_file}")
    rank_profile.run(command, family, json_file)
