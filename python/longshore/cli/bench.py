"""`longshore bench`: the benches that ship with the library."""

from __future__ import annotations

import click

_COMMON = (
    click.option("--quick", is_flag=True, help="Small sizes and few repetitions: under 30 s."),
    click.option("--json", type=click.Path(dir_okay=False), metavar="FILE", help="Write the results as JSON to FILE."),
    click.option(
        "--plot", type=click.Path(dir_okay=False), metavar="FILE", help="Draw the results into FILE (png, svg, html)."
    ),
)
# What single benches take besides.
_OWN = {
    "redistribute": (
        click.option("--mpiexec", metavar="PROGRAM", help="The launcher.  [default: this environment's own]"),
        click.option("--ranks", type=click.IntRange(1), default=2, show_default=True, help="MPI processes."),
        click.option("--case", "cases", multiple=True, metavar="NAME", help="Only this case (may be repeated)."),
        click.option(
            "--size",
            "sizes",
            multiple=True,
            type=click.IntRange(1),
            metavar="N",
            help="Only N x N arrays (may be repeated).",
        ),
        click.option(
            "--contender",
            "contenders",
            multiple=True,
            metavar="NAME",
            help="Only this contender, and the memory copies (may be repeated).",
        ),
        click.option("--repeats", type=click.IntRange(1), metavar="K", help="Repetitions of every case."),
    ),
    "halo": (
        click.option("--mpiexec", metavar="PROGRAM", help="The launcher.  [default: this environment's own]"),
        click.option("--ranks", type=click.IntRange(1), default=2, show_default=True, help="MPI processes."),
        click.option(
            "--case",
            "cases",
            multiple=True,
            metavar="NAME",
            help="Only this case, such as 27-point-1-64-x: stencil, width, boxes, axis (may be repeated).",
        ),
        click.option(
            "--size",
            "sizes",
            multiple=True,
            type=click.IntRange(1),
            metavar="N",
            help="Only N x N x N cells a rank (may be repeated).",
        ),
        click.option(
            "--contender",
            "contenders",
            multiple=True,
            metavar="NAME",
            help="Only this contender, and the copies (may be repeated).",
        ),
        click.option("--repeats", type=click.IntRange(1), metavar="K", help="Repetitions of every case."),
    ),
    "apps": (
        click.option("--mpiexec", metavar="PROGRAM", help="The launcher.  [default: this environment's own]"),
        click.option("--ranks", type=click.IntRange(1), default=2, show_default=True, help="MPI processes."),
        click.option("--case", "cases", multiple=True, metavar="NAME", help="Only this application (may be repeated)."),
        click.option("--repeats", type=click.IntRange(1), metavar="K", help="Repetitions of every case."),
    ),
    "assembly": (
        click.option(
            "--case", "cases", multiple=True, metavar="NAME", help="Only this case, such as R4 (may be repeated)."
        ),
        click.option(
            "--size",
            "sizes",
            multiple=True,
            type=click.IntRange(2),
            metavar="N",
            help="Every case at this size, in what it counts: extents, or entries of a list (may be repeated).",
        ),
        click.option(
            "--contender",
            "contenders",
            multiple=True,
            metavar="NAME",
            help="Only this contender, memcpy and the hand-written loop (may be repeated).",
        ),
        click.option("--repeats", type=click.IntRange(1), metavar="K", help="Repetitions of every case."),
        click.option(
            "--mpi-python",
            "mpi_pythons",
            multiple=True,
            metavar="PROGRAM",
            help="An interpreter with another MPI (may be repeated).  [default: environments beside this one]",
        ),
    ),
    "breakeven": (
        click.option(
            "--case",
            "cases",
            multiple=True,
            metavar="NAME",
            help="Only `dependent` or only `independent` instructions (may be repeated).",
        ),
        click.option(
            "--size",
            "sizes",
            multiple=True,
            type=click.IntRange(4),
            metavar="N",
            help="Only messages of N words, a power of two (may be repeated).",
        ),
        click.option("--repeats", type=click.IntRange(1), metavar="K", help="Repetitions of every case."),
    ),
    "ranks": (
        click.option(
            "--case",
            "cases",
            multiple=True,
            metavar="NAME",
            help="Only this class (A to E), this map, or `named` maps (may be repeated).",
        ),
        click.option(
            "--maps", type=click.IntRange(1), metavar="N", help="Maps of each class.  [default: 1000, 1 with --quick]"
        ),
        click.option("--repeats", type=click.IntRange(1), metavar="K", help="Repetitions of every timing."),
    ),
    "communicators": (
        click.option(
            "--ranks",
            type=click.IntRange(1),
            metavar="N",
            help="Ranks of the world.  [default: 200000, 20000 with --quick]",
        ),
        click.option(
            "--case", "cases", multiple=True, metavar="NUMBER", help="Only this experiment, 1 to 14 (may be repeated)."
        ),
        click.option("--repeats", type=click.IntRange(1), metavar="K", help="Repetitions of every timing."),
    ),
}


class _Benches(click.Group):
    def resolve_command(self, context, words):
        if words[0] not in self.commands:
            context.fail(f"there is no bench {words[0]!r}; there are: {', '.join(self.list_commands(context))}")
        return super().resolve_command(context, words)


@click.group(cls=_Benches, short_help="Run a benchmark; without a name, list them.", invoke_without_command=True)
@click.pass_context
def bench(context):
    """Run a benchmark and print its table. Without a name, list the benchmarks."""
    if context.invoked_subcommand is None:
        for name in context.command.list_commands(context):
            click.echo(f"{name}  {context.command.get_command(context, name).short_help}")


def _command(name, entry):
    def run(**options):
        # An option that was not given leaves the bench its default.
        entry.run(**{key: value for key, value in options.items() if value not in (None, ())})

    for option in reversed(_COMMON + _OWN.get(name, ())):
        run = option(run)
    return click.command(
        name, short_help=entry.description, help=f"{entry.description[0].upper()}{entry.description[1:]}."
    )(run)


def _commands():
    from ..bench import BENCHES

    for name, entry in BENCHES.items():
        bench.add_command(_command(name, entry))


_commands()
