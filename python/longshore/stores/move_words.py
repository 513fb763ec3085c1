"""What `move` is asked for where an end is neither a `.npy` file nor a folder of shards: its words, checked."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

from .._mistakes import check, flag
from .._words import size_in_bytes
from ..errors import ArgumentError, ArgumentTypeError
from . import memory
from .chunk_words import Chunks, parse_chunks
from .makers import Wanted
from .move_report import StoreMoveReport
from .moving import Watcher
from .moving_chunks import move_chunks
from .team import Team


def move_between_formats(
    source: Any,
    destination: Any,
    *,
    to: Any,
    axes: Sequence[int] | None,
    chunks: Chunks | None,
    shards: Chunks | None,
    codecs: Sequence[str] | None,
    zarr_format: int | None,
    max_mem: int | str | None,
    verify: bool,
    threads: int | None,
    force: bool,
    resume: bool,
    dry_run: bool,
    lossy: bool,
    report: bool,
    executor: Any,
    team: Team,
    watcher: Watcher,
) -> StoreMoveReport:
    """`move` where an end is neither a `.npy` file nor a folder of shards: its words checked. Collective."""

    def checked() -> tuple[Wanted, int, int]:
        check("axes", axes, "Sequence[int] | None")
        check("threads", threads, "int | None")
        check("zarr_format", zarr_format, "int | None")
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads is {threads}; it must be at least 1")
        if zarr_format not in (None, 2, 3):
            raise ArgumentError(f"zarr_format is {zarr_format}; it can be 2 or 3")
        named = {"verify": verify, "force": force, "resume": resume, "dry_run": dry_run, "lossy": lossy}
        for name, value in named.items():
            flag(value, name)
        if report:
            raise ArgumentError("report= is for moves between .npy files and folders of shards; here dry_run= predicts")
        words = [word for word in codecs.split(",") if word] if isinstance(codecs, str) else codecs
        wanted = Wanted(
            chunks=parse_chunks(chunks),
            shards=parse_chunks(shards),
            codecs=None if words is None else tuple(words),
            to=to,
            zarr_format=zarr_format,
            axes=None if axes is None else tuple(axes),
            lossy=lossy,
        )
        if executor is not None and not isinstance(executor, Executor):
            hint = "; of a Dask client give client.get_executor()" if hasattr(executor, "get_executor") else ""
            raise ArgumentTypeError(
                f"executor must be a concurrent.futures.Executor, not {type(executor).__name__}{hint}"
            )
        each = threads or (1 if executor is not None else min(16, max(1, memory.usable_processors() // team.size)))
        return wanted, memory.default_ceiling(team.size) if max_mem is None else size_in_bytes(max_mem), each

    wanted, limit, each = team.together(checked)
    # Machines, and what a process may have of one, may differ: all plan for the least memory and the most threads.
    limit, each = -team.max(-limit), team.max(each)
    return move_chunks(
        source,
        destination,
        wanted,
        max_mem=limit,
        threads=each,
        team=team,
        verify=verify,
        force=force,
        resume=resume,
        dry_run=dry_run,
        executor=executor,
        watcher=watcher,
    )
