"""`longshore move`: a real array from one store to another, out of core, published atomically."""

from __future__ import annotations

import json as json_module
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from ..stores.moving import MoveReport, Watcher
from .words import Axes, Size

if TYPE_CHECKING:
    from rich.progress import TaskID


@click.command(short_help="Move an array between stores: .npy files and folders of shards.")
@click.argument("source", metavar="SRC", type=click.Path())
@click.argument("destination", metavar="DST", type=click.Path())
@click.option("--to", "layout", metavar="LAYOUT", help="Layout of DST, if it is a folder.")
@click.option(
    "--axes",
    type=Axes(),
    metavar="A,B...",
    help="Permute dimensions, as numpy.transpose does: DST's dimension d is SRC's dimension AXES[d].",
)
@click.option(
    "--max-mem",
    type=Size(),
    metavar="SIZE",
    help="Stay within this much memory, such as 256MiB; under mpiexec, each process.  [default: a quarter of what is "
    "free, at most 1GiB, divided among the processes]",
)
@click.option("--verify", is_flag=True, help="Read both stores back and compare them before DST appears.")
@click.option("--threads", type=click.IntRange(1, 1024), metavar="N", help="Threads to use.  [default: the processors]")
@click.option("--force", is_flag=True, help="Replace DST, if it is a .npy file or a folder of shards.")
@click.option("--report", is_flag=True, help="Tell what was predicted of the copies beside what they took.")
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON for programs.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def move(
    source: str,
    destination: str,
    layout: str | None,
    axes: tuple[int, ...] | None,
    max_mem: int | None,
    verify: bool,
    threads: int | None,
    force: bool,
    report: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Move an array from one store to another. A store is one .npy file, or a folder of one .npy a rank with a
    layout.json; a DST that ends in .npy is one file and gathers everything, any other is a folder and needs --to.

    \b
    longshore move elevation.npy shards/ --to "(BLOCK, *) on 4"
    longshore move shards/ other/ --to "(CYCLIC(64), CYCLIC(64)) on 2x2" --max-mem 256MiB --verify
    mpiexec -n 4 longshore move other/ back.npy

    DST appears whole or not at all; SRC is never touched. Under mpiexec all processes share the work.
    """
    from ..stores import moving
    from ..stores.team import find_team

    team = find_team()
    watcher = None
    first = team.rank == 0
    if first and not quiet and sys.stderr.isatty():
        watcher = _Bar()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        told = moving.move(
            source,
            destination,
            layout,
            axes=axes,
            max_mem=max_mem,
            verify=verify,
            threads=threads,
            force=force,
            report=report,
            team=team,
            watcher=watcher,
        )
    except SystemExit:
        team.abort(143)
        raise
    finally:
        if watcher is not None:
            watcher.close()
    if not first:
        return
    for name in told.removed_partials:
        print(f"longshore: removed {name}, which a killed run had left", file=sys.stderr)
    if as_json:
        json_module.dump(told.as_dict(), sys.stdout)
        print()
    elif not quiet:
        print(tell(told))


def tell(report: MoveReport) -> str:
    """A `MoveReport` in plain words."""
    from .._words import bytes_of, count_of, seconds_of

    shape = " x ".join(f"{n:,}" for n in report.shape)
    rate = f"{bytes_of(report.moved_bytes / report.seconds)}/s" if report.seconds > 0 else ""
    predicted = f"{report.predicted_bytes:,} bytes"
    if report.predicted_messages is not None and report.predicted_local_bytes is not None:
        predicted += (
            f", {count_of(report.predicted_messages, 'message')}, {bytes_of(report.predicted_local_bytes)} stay local"
        )
    who = f"{count_of(report.threads, 'thread')}" if report.processes == 1 else f"{report.processes} MPI processes"
    window = " x ".join(map(str, report.window_shape))
    windows = f"{count_of(report.windows, 'window')} of at most {window}" if report.windows > 1 else "one window"
    lines = [
        f"moved {shape} {report.dtype} ({bytes_of(report.array_bytes)}) from {report.source} to {report.destination}",
        f"  layout     {report.source_layout}  ->  {report.destination_layout}",
        f"  predicted  {predicted}",
        f"  moved      {report.moved_bytes:,} bytes in {windows}, by {who}",
        f"  time       {report.seconds:.2f} s, {rate} ({report.sync_seconds:.2f} s of it until the disk had it all)",
        f"  memory     peak {bytes_of(report.peak_memory_bytes)} above idle, ceiling {bytes_of(report.max_mem_bytes)}",
    ]
    if report.report is not None:
        files = ", ".join(
            f"{what} {seconds_of(seconds)}"
            for what, seconds in (
                ("reading", report.read_seconds),
                ("writing", report.write_seconds),
                ("until the disk had it", report.sync_seconds),
            )
        )
        lines += [f"  copies     {report.report}", f"  files      {files}; not predicted"]
    if report.verified:
        lines.append(f"  verified   read back and equal, {report.verify_seconds:.2f} s")
    return "\n".join(lines)


def _stop(number: int, frame: object) -> NoReturn:
    # An exit rather than a death: what was begun is removed on the way out.
    raise SystemExit(128 + number)


class _Bar(Watcher):
    """A progress bar on the terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task: TaskID | None = None

    def begin(self, report: MoveReport) -> None:
        self._progress.start()

    def phase(self, name: str, total_bytes: int) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(name, total=total_bytes or None)

    def advance(self, done_bytes: int) -> None:
        if self._task is not None:
            self._progress.advance(self._task, done_bytes)

    def close(self) -> None:
        self._progress.stop()
