"""`longshore move`: arrays from one store to another, out of core, published atomically."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from ..stores.move_report import MoveReport
from ..stores.moving import Watcher
from .answers import write_json
from .words import Axes, Size

if TYPE_CHECKING:
    from rich.progress import TaskID


@click.command(short_help="Move arrays between stores: .npy, shards, Zarr, HDF5, NetCDF, safetensors.")
@click.argument("source", metavar="SRC", type=click.Path())
@click.argument("destination", metavar="DST", type=click.Path())
@click.option(
    "--to", "layout", metavar="LAYOUT", help="Layout of DST, if it is a folder of shards, or of each array in it."
)
@click.option(
    "--axes",
    type=Axes(),
    metavar="A,B...",
    help="Permute dimensions, as numpy.transpose does: DST's dimension d is SRC's dimension AXES[d].",
)
@click.option("--chunks", metavar="CHUNKS", help="Chunks of DST: 8760x8x8, by name, time=8760,lat=8,lon=8, or none.")
@click.option("--shards", metavar="SHARDS", help="What lies in one file of DST, in the same words (Zarr 3).")
@click.option("--codec", metavar="CODECS", help="Codecs of DST, the first applied first: shuffle,zstd:3; none.")
@click.option(
    "--zarr-format",
    type=click.IntRange(2, 3),
    metavar="2|3",
    help="Of a Zarr DST.  [default: that of a store it goes into, else 3, or 2 with zarr 2]",
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
@click.option("--force", is_flag=True, help="Replace DST; of an HDF5 or NetCDF file only the dataset that DST names.")
@click.option(
    "--dry-run", is_flag=True, help="Tell what would be read, written and held, and for how long; write nothing."
)
@click.option("--resume", is_flag=True, help="Go on where a killed run has been; keep what there is if this one fails.")
@click.option("--lossy", is_flag=True, help="Leave behind what DST's format cannot hold, and tell it.")
@click.option("--report", is_flag=True, help="Tell what was predicted of the copies beside what they took.")
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON for programs.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def move(
    source: str,
    destination: str,
    layout: str | None,
    axes: tuple[int, ...] | None,
    chunks: str | None,
    shards: str | None,
    codec: str | None,
    zarr_format: int | None,
    max_mem: int | None,
    verify: bool,
    threads: int | None,
    force: bool,
    dry_run: bool,
    resume: bool,
    lossy: bool,
    report: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Move an array, or a group with all that is in it, from one store to another. A store is one .npy file, a folder
    of one .npy a rank with a layout.json, a Zarr group or array, an HDF5 or NetCDF file, or safetensors; SRC is known
    by what is there, DST by its name, and any other DST is a folder of shards, or of such a folder for each array, and
    needs --to. Within a file or group a name follows: era5.zarr/t2m, run.h5::/fields/u. SRC and DST may be URLs: s3://,
    gs://, memory://, SRC also https://, of which ranges of bytes are read.

    \b
    longshore move era5.zarr/t2m series.zarr/t2m --chunks 8760x8x8 --max-mem 1GiB --verify
    longshore move model.nc out.zarr --chunks time=8760,lat=8,lon=8 --dry-run
    longshore move shards/ run.h5::/fields/u --chunks 64x64x64 --codec shuffle,gzip:4
    longshore move elevation.npy shards/ --to "(BLOCK, *) on 4"
    longshore move checkpoint/ ranks/ --to "(BLOCK, *) on 8"
    longshore move shards/ other/ --to "(CYCLIC(64), CYCLIC(64)) on 2x2" --max-mem 256MiB --verify
    longshore move s3://bucket/model.nc::t2m t2m.zarr --chunks time=8760,lat=8,lon=8
    mpiexec -n 4 longshore move other/ back.npy

    DST appears whole or not at all; SRC is never touched. Under mpiexec all processes share the work.
    """
    from .._words import printable
    from ..stores import memory, moving
    from ..stores.move_report import tell as tell_chunks
    from ..stores.team import find_team

    memory.give_back_at_once()
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
            chunks=chunks,
            shards=shards,
            codecs=None if codec is None else [word for word in codec.split(",") if word not in ("", "none")],
            zarr_format=zarr_format,
            max_mem=max_mem,
            verify=verify,
            threads=threads,
            force=force,
            dry_run=dry_run,
            resume=resume,
            lossy=lossy,
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
        print(f"longshore: removed {printable(name)}, which a killed run had left", file=sys.stderr)
    if as_json:
        write_json(told.as_dict())
    elif not quiet:
        print(printable(tell(told) if isinstance(told, MoveReport) else tell_chunks(told), keep="\n"))


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
        try:
            self._progress.start()
        except RuntimeError:  # there is no thread that would draw it
            self._progress.live.auto_refresh = False
            self._progress.stop()
            self._progress.disable = True

    def phase(self, name: str, total_bytes: int) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(name, total=total_bytes or None)

    def advance(self, done_bytes: int) -> None:
        if self._task is not None:
            self._progress.advance(self._task, done_bytes)

    def close(self) -> None:
        self._progress.stop()
