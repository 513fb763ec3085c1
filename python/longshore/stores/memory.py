"""How much memory this process has, may have, and has used."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_M_MMAP_THRESHOLD, _LARGE_BYTES = -3, 4 << 20
_PROC, _CGROUP = Path("/proc"), Path("/sys/fs/cgroup")


def resident_bytes() -> int:
    return _status("VmRSS")


def peak_resident_bytes() -> int:
    return _status("VmHWM")


def reset_peak() -> None:
    """Starts a new peak at the present size, where the system allows it."""
    try:
        with open(_PROC / "self" / "clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def give_back_at_once() -> None:
    """Has the C library give large blocks back to the system as soon as they are free. Left to itself it keeps blocks
    of up to 32 MiB for the next ones, for each thread, which no ceiling counts. This is for a process of our own: it
    stays so."""
    with contextlib.suppress(OSError, AttributeError):  # not every C library has it
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def available_bytes() -> int | None:
    """What the machine, or a control group this process is in, has left; None where neither says. The page cache counts
    as left: the system takes it back when it is asked for more."""
    found = []
    with contextlib.suppress(OSError), open(_PROC / "meminfo") as file:
        found += [int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:")]
    for folder, limit, usage, cache in _groups():
        try:
            allowed, used = (int((folder / name).read_text()) for name in (limit, usage))
            told = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            found.append(max(0, allowed - used + sum(int(told.get(name, 0)) for name in cache)))
        except (OSError, ValueError):  # no such group, or "max"
            pass
    return min(found, default=None)


def _groups() -> Iterator[tuple[Path, str, str, tuple[str, str]]]:
    """The control groups for memory that this process is in, and what their files are called."""
    try:
        lines = (_PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = _CGROUP, ("memory.max", "memory.current", ("inactive_file", "active_file"))
        elif "memory" in controllers.split(","):
            cache = ("total_inactive_file", "total_active_file")
            root, names = _CGROUP / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", cache)
        else:
            continue
        folder = root / path.lstrip("/")
        for each in (folder, *folder.parents):
            if each.is_relative_to(root):
                yield each, *names


def default_ceiling(processes: int = 1) -> int:
    """A quarter of what is available, at most 1 GiB, divided among the processes of the job. More helps no move that
    was measured: how much of it a move takes is decided by what its windows cost."""
    available = available_bytes()
    whole = 1 << 30 if available is None else min(1 << 30, available // 4)
    return max(whole // processes, 32 << 20)


def usable_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _status(key: str) -> int:
    try:
        with open(_PROC / "self" / "status") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
