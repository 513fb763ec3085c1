"""`longshore calibrate` measures this machine; `longshore profile` shows what was measured."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import NotInstalledError
from .answers import write_json

if TYPE_CHECKING:
    from ..tune import MachineProfile


@click.command(short_help="Measure this machine, so that predictions hold for it.")
@click.option("--quick", is_flag=True, help="Measure less: some seconds, and coarser.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the profile here.  [default: where this machine's is looked for]",
)
@click.option("--no-mpi", is_flag=True, help="Start no mpiexec: leave out what two processes take.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON for programs.")
def calibrate(quick: bool, output: Path | None, no_mpi: bool, as_json: bool) -> None:
    """Measure what this machine takes to move data, in about a minute: copies in every pattern, in each cache and in
    memory, with one thread and with all at once; then, in a job of two processes that it starts itself, what they take
    to exchange data in every way there is. Under mpiexec the processes that there are measure that, of one node and of
    two. Nothing else should run meanwhile.

    \b
    longshore calibrate
    mpiexec -n 4 longshore calibrate    # on two nodes

    The profile, a file of JSON, appears whole or not at all. Predictions use it from then on.
    """
    from .. import tune
    from ..stores.team import find_team
    from ..tune.report import summary

    team, why = find_team(), ""
    path = output or tune.profile_path()
    bar = _Bar() if team.rank == 0 and sys.stderr.isatty() else None
    team.first(lambda: _check_writable(path, output is not None))
    try:
        profile = tune.calibrate(team.comm, quick=quick, progress=bar)
        if team.size == 1:
            profile, why = (profile, "--no-mpi was given") if no_mpi else _with_exchanges(profile, quick, bar)
    finally:
        if bar is not None:
            bar.close()
    path = team.first(lambda: profile.save(output))
    if team.rank != 0:
        return
    facts = profile.facts
    samples = [sample for one in facts["exchanges"] for sample in one["samples"]]
    if as_json:
        told = {
            "file": str(path),
            "machine": profile.machine,
            "seconds": facts["seconds"],
            "copies": len(facts["copies"]),
            "exchanges": len(samples),
            "noisy": sum(one["noisy"] for one in (*facts["copies"], *samples)),
            "ways": [{"way": one["way"], "pair": one["pair"]} for one in facts["exchanges"]],
            "why_no_exchanges": why,
        }
        write_json(told)
        return
    for line in summary(profile):
        click.echo(line)
    if team.size == 1:
        click.echo(f"no two processes were started: {why}" if why else "two processes were started for the exchanges")
    if samples and all(one["pair"] == "same node" for one in facts["exchanges"]):
        click.echo("exchanges with other nodes: none, for all processes are of one node")
    click.echo(f"written to {path}")
    click.echo(f"next: longshore profile show{'' if output is None else ' ' + str(path)}")


@click.group(short_help="What was measured on this machine.")
def profile() -> None:
    """What was measured on this machine, and predictions rest on."""


@profile.command(short_help="Print a machine profile, and draw it.")
@click.argument("file", required=False, metavar="[FILE]", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Write the profile itself, JSON for programs.")
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw throughput by stride and by message size into FILE (png, svg, html).",
)
def show(file: Path | None, as_json: bool, plot: Path | None) -> None:
    """Print a profile that longshore calibrate wrote, this machine's unless FILE says another: how fast copies with
    strided loads and strided stores are, what exchanges of two processes take, and LogGP.

    \b
    longshore profile show
    longshore profile show --plot curves.svg
    """
    from .. import tune
    from ..stores.team import launched_rank
    from ..tune.report import PLOT_SUFFIXES, draw, render

    if plot is not None:
        if plot.suffix.lower() not in PLOT_SUFFIXES:
            raise click.UsageError(f"a plot is written as {', '.join(PLOT_SUFFIXES)}, not {plot.name!r}")
        if importlib.util.find_spec("matplotlib") is None:
            raise NotInstalledError("--plot needs matplotlib: pip install matplotlib")
    shown = tune.profile() if file is None else tune.MachineProfile.load(file)
    if launched_rank() != 0:
        return  # under mpiexec one process is enough
    if plot is not None:
        tune.write_whole(plot, draw(shown, plot))
    click.echo(shown.to_json() if as_json else render(shown), nl=False)


def _with_exchanges(profile: MachineProfile, quick: bool, bar: _Bar | None) -> tuple[MachineProfile, str]:
    """With what two processes take that are started for it, or as it is and why they could not be started."""
    from ..errors import TransportError
    from ..tune.launched import add_exchanges

    if bar is not None:
        bar("exchanges of two processes, under mpiexec", 0.0)
    try:
        return add_exchanges(profile, quick), ""
    except TransportError as error:
        return profile, str(error)


def _check_writable(path: Path, named: bool) -> None:
    """Finds out before a minute is spent whether the profile can be written, and that nothing else is there. A folder
    is made only for a file that nobody has `named`."""
    from .. import tune
    from ..errors import ArgumentError

    if not named:
        tune.kept_status(path)
        path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > 0 and not tune.is_profile(path.read_bytes()):
        raise ArgumentError(f"{path} is no machine profile, and is not overwritten; name another file")
    if path.is_file() or not path.exists():
        try:
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path.parent)) from None


class _Bar:
    """A progress bar on the terminal; what is measured has a bar of its own."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._tasks: dict[str, Any] = {}
        self._progress.start()

    def __call__(self, what: str, part: float) -> None:
        if what not in self._tasks:
            for task in self._tasks.values():
                self._progress.update(task, completed=1.0)
            self._tasks[what] = self._progress.add_task(what, total=1.0)
        self._progress.update(self._tasks[what], completed=part)

    def close(self) -> None:
        self._progress.stop()
