"""What a move did, or would do, as fields and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._report import TimeReport
from .._words import bytes_of
from .phases import add_seconds, seconds_told
from .rechunk import Counts
from .rechunk_plan import RechunkPlan


@dataclass
class MoveReport:
    """What a move between layouts on disk did. Bytes are counted in destination elements written, replicas included."""

    source: str
    destination: str
    source_layout: str
    destination_layout: str
    shape: tuple[int, ...]
    dtype: str
    engine: str
    processes: int
    threads: int
    array_bytes: int
    predicted_bytes: int
    predicted_local_bytes: int | None
    predicted_messages: int | None
    moved_bytes: int = 0
    windows: int = 0
    window_shape: tuple[int, ...] = ()
    seconds: float = 0.0
    sync_seconds: float = 0.0
    verified: bool = False
    verify_seconds: float = 0.0
    max_mem_bytes: int = 0
    peak_memory_bytes: int = 0
    removed_partials: list[str] = field(default_factory=list)
    #: with `report`: what the copies from layout to layout took, all windows together, beside what was predicted
    report: TimeReport | None = None
    read_seconds: float = 0.0
    write_seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """The fields, as JSON can hold them."""
        told = {key: list(value) if isinstance(value, tuple) else value for key, value in self.__dict__.items()}
        return {**told, "report": self.report and self.report.as_dict()}


_WRAP = (1 << 64) - 1


@dataclass
class ArrayReport:
    """What became of one array."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    chunks: tuple[int, ...]
    to_chunks: tuple[int, ...]
    codecs: tuple[str, ...]
    array_bytes: int
    plan: RechunkPlan
    written_chunks: int = 0
    resumed_chunks: int = 0
    digest: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The fields, as JSON can hold them."""
        plan = self.plan
        told = {key: list(value) if isinstance(value, tuple) else value for key, value in self.__dict__.items()}
        return {
            **told,
            "plan": {
                "way": plan.way,
                "order": list(plan.order),
                "boxes": [list(box) for box in plan.boxes],
                "threads": plan.threads,
                "read_bytes": plan.read_bytes,
                "written_bytes": plan.written_bytes,
                "spilled_bytes": plan.spilled_bytes,
                "floor_bytes": plan.floor_bytes,
                "memory_bytes": plan.memory_bytes,
                "least_memory_bytes": plan.least_bytes,
                "others": [other._asdict() for other in plan.others],
                "over_floor": plan.total_bytes / plan.floor_bytes if plan.floor_bytes else 1.0,
            },
        }


@dataclass
class StoreMoveReport:
    """What a move between stores did, or, of a dry run, would do. Bytes are those of files."""

    source: str
    destination: str
    source_format: str
    destination_format: str
    arrays: list[ArrayReport]
    max_mem_bytes: int
    threads: int
    predicted: dict[str, int]
    dry_run: bool = False
    bytes_read: int = 0
    bytes_written: int = 0
    bytes_spilled: int = 0
    bytes_copied: int = 0
    """Of the file that something is added to: it comes into a copy, which then takes the file's place."""
    floor_bytes: int = 0
    array_bytes: int = 0
    seconds: float = 0.0
    seconds_by_phase: dict[str, float] = field(default_factory=dict)
    """What threads were in, added up over threads and processes; of a dry run what they are expected to be in."""
    seconds_predicted: float | None = None
    """Of a dry run: how long the move would take, as far as samples of it tell. None where they do not."""
    sync_seconds: float = 0.0
    verified: bool = False
    verify_seconds: float = 0.0
    peak_memory_bytes: int = 0
    resumed_chunks: int = 0
    chunks: int = 0
    digest: str = ""
    """Of all arrays' elements but those of the fill value, whatever their chunks: equal digests, equal arrays."""
    lost: list[str] = field(default_factory=list)
    made_in: str = ""
    """Of a destination at a URL: the local folder where it is made before it is uploaded, in its stored size."""
    removed_partials: list[str] = field(default_factory=list)

    def sum_up(self, done: Sequence[tuple[Counts, np.ndarray]]) -> None:
        """Takes for each array what was done of it, and the digests of its chunks."""
        for of_array, (counts, digests) in zip(self.arrays, done):
            digest = int(digests.sum(dtype=np.uint64))
            of_array.digest, of_array.written_chunks = f"{digest:016x}", counts.chunks
            self.bytes_read += counts.read_bytes
            self.bytes_written += counts.written_bytes
            self.bytes_spilled += counts.spilled_bytes
            self.chunks += counts.chunks
            self.resumed_chunks += of_array.resumed_chunks
            add_seconds(self.seconds_by_phase, counts.seconds)
        whole = 0
        for of_array in sorted(self.arrays, key=lambda each: each.name):  # formats have arrays in orders of their own
            whole = (whole * 31 + int(of_array.digest, 16)) & _WRAP
        self.digest = f"{whole:016x}"

    def as_dict(self) -> dict[str, Any]:
        """The fields, as JSON can hold them."""
        return {**self.__dict__, "arrays": [array.as_dict() for array in self.arrays]}


def tell(report: StoreMoveReport) -> str:
    """A `StoreMoveReport` in plain words."""
    what = "would move" if report.dry_run else "moved"
    arrays = report.arrays
    if len(arrays) == 1:
        shape = " x ".join(f"{n:,}" for n in arrays[0].shape) or "one element"
        subject = f"{shape} {'' if arrays[0].shape else 'of '}{arrays[0].dtype} ({bytes_of(report.array_bytes)})"
    else:
        subject = f"{len(arrays)} arrays ({bytes_of(report.array_bytes)})"
    lines = [
        f"{what} {subject} from {report.source} ({report.source_format}) to {report.destination} "
        f"({report.destination_format})"
    ]
    for array in arrays[:8]:
        chunks = " -> ".join("x".join(map(str, grid)) or "one element" for grid in (array.chunks, array.to_chunks))
        codecs = ", ".join(array.codecs) or "as they are"
        name = f"{array.name}: " if array.name else ""
        lines += [f"  {name}chunks {chunks}, stored {codecs}", f"    {array.plan}"]
    if len(arrays) > 8:
        lines.append(f"  and {len(arrays) - 8} more")
    predicted = report.predicted
    over = sum(predicted[f"bytes_{w}"] for w in ("read", "written", "spilled")) / max(1, report.floor_bytes)
    lines.append(
        f"  predicted  {bytes_of(predicted['bytes_read'])} read, {bytes_of(predicted['bytes_written'])} written, "
        f"{bytes_of(predicted['bytes_spilled'])} to scratch files and back: {over:.2f} of the least there is"
    )
    copied = predicted["bytes_copied"] if report.dry_run else report.bytes_copied
    if copied:
        lines.append(f"  copied     {bytes_of(copied)} of the file that this is added to")
    if not report.dry_run:
        rate = f", {bytes_of(report.array_bytes / report.seconds)}/s" if report.seconds > 0 else ""
        resumed = f"; {report.resumed_chunks:,} chunks were there already" if report.resumed_chunks else ""
        lines += [
            f"  measured   {bytes_of(report.bytes_read)} read, {bytes_of(report.bytes_written)} written, "
            f"{bytes_of(report.bytes_spilled)} to scratch files and back{resumed}",
            f"  time       {report.seconds:.2f} s{rate} ({report.sync_seconds:.2f} s of it until the disk had it all)",
            *([f"  threads    {threads}"] if (threads := seconds_told(report.seconds_by_phase)) else []),
            f"  memory     peak {bytes_of(report.peak_memory_bytes)} above idle, ceiling "
            f"{bytes_of(report.max_mem_bytes)}",
            f"  digest     {report.digest}, equal for source and destination",
        ]
    else:
        if report.seconds_predicted is not None:
            lines += [
                f"  time       about {report.seconds_predicted:.2g} s by samples, with {report.threads} threads",
                *([f"  threads    {threads}"] if (threads := seconds_told(report.seconds_by_phase)) else []),
            ]
        lines.append(
            f"  memory     {bytes_of(predicted['memory_bytes'])}, ceiling {bytes_of(report.max_mem_bytes)}; the least "
            f"that would do is {bytes_of(max((array.plan.least_bytes for array in arrays), default=0))}"
        )
    if report.made_in:
        lines.append(f"  made in    {report.made_in} first, {bytes_of(predicted['bytes_written'])}, and uploaded")
    if report.lost:
        lines.append(f"  lost       {'; '.join(report.lost[:8])}{'; ...' if len(report.lost) > 8 else ''}")
    if report.verified:
        lines.append(f"  verified   read back and equal, {report.verify_seconds:.2f} s")
    return "\n".join(lines)
