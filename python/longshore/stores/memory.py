"""How much memory this process has, may have, and has used."""

from __future__ import annotations

import os


def resident_bytes():
    return _status("VmRSS")


def peak_resident_bytes():
    return _status("VmHWM")


def reset_peak():
    """Starts a new peak at the present size, where the system allows it."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def available_bytes():
    """What the machine, or the control group this process is in, has left; None where neither says."""
    found = []
    try:
        with open("/proc/meminfo") as file:
            found += [int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:")]
    except OSError:
        pass
    for limit, usage in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            with open(limit) as file, open(usage) as used:
                found.append(max(0, int(file.read()) - int(used.read())))
        except (OSError, ValueError):  # no such group, or "max"
            pass
    return min(found, default=None)


def default_ceiling(processes=1):
    """A quarter of what is available, at most 1 GiB, shared by the processes of this machine."""
    available = available_bytes()
    whole = 1 << 30 if available is None else min(1 << 30, available // 4)
    return max(whole // processes, 32 << 20)


def usable_processors():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _status(key):
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
