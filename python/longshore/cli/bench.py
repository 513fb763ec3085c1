"""`longshore bench`: the benches that ship with the library."""

from __future__ import annotations

import click


@click.command(short_help="Run a benchmark; without a name, list them.")
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help="Small sizes and few repetitions.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Write the results as JSON to FILE.")
@click.option("--plot", "plot_path", type=click.Path(dir_okay=False), metavar="FILE", help="Draw the results into FILE.")
def bench(name, quick, json_path, plot_path):
    """Run the benchmark NAME and print its table. Without NAME, list the benchmarks."""
    from ..bench import BENCHES

    if name is None:
        width = max(map(len, BENCHES))
        for key, entry in BENCHES.items():
            click.echo(f"{key:<{width}}  {entry.description}")
        return
    if name not in BENCHES:
        raise click.UsageError(f"there is no bench {name!r}; there are: {', '.join(BENCHES)}")
    BENCHES[name].run(quick=quick, json=json_path, plot=plot_path)
