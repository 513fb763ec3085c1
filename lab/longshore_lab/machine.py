"""What every bench measures with: the machine in words, statistics, clocks and cores."""

import contextlib
import gc
import os
import platform
import statistics
import time
from pathlib import Path

import numpy as np
from longshore._core import cpu_name, kernel_choice, kernels_name
from longshore.stores.memory import available_bytes

_NAP_SECONDS = 0.0003


def machine(mpi_library=None):
    """Describes the machine and the software that matter to a timing. Names no host, no user and no path."""
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "caches": _caches(),
        "memory_bytes": _bytes("/proc/meminfo", "MemTotal"),
        "system": platform.system(),
        "kernel": platform.release(),
        "copy_kernels": _copy_kernels(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "mpi": mpi_library,
    }


def _copy_kernels():
    profile, by = kernel_choice()
    return {"cpu": cpu_name(), "table": kernels_name(), "profile": profile, "by": by}


def _caches():
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        with contextlib.suppress(OSError):
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            found[f"L{level}{'' if kind == 'Unified' else kind[0].lower()}"] = size
    return found


def _field(file, name):
    lines = Path(file).read_text(errors="replace").splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")


def _bytes(file, name):
    return int(_field(file, name + ":").split()[0]) * 1024


def available_memory():
    """What this process could still be given, in bytes."""
    return available_bytes() or 0


def peak_memory(reset=False):
    """The most that this process has held, since it was last told to begin anew."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    return _bytes("/proc/self/status", "VmHWM")


def summary(seconds):
    ends = {"seconds_min": min(seconds), "seconds_max": max(seconds)}
    return {"seconds_median": statistics.median(seconds), **ends, "repeats": len(seconds)}


def clocked(call, passes=1):
    """The mean seconds of so many calls."""
    start = time.perf_counter()
    for _ in range(passes):
        call()
    return (time.perf_counter() - start) / passes


def nap_barrier(comm):
    """A barrier whose waiting ranks sleep, so that one rank may use every core meanwhile. Collective."""
    if comm is not None:
        request = comm.Ibarrier()
        while not request.Test():
            time.sleep(_NAP_SECONDS)


@contextlib.contextmanager
def on_cores(cores):
    """Lets the calling thread, and the threads it starts, run on other cores for a while; on its own where there are
    none."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def without_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def mapped_mpi_libraries():
    """The MPI libraries in this process: with two of them every answer is wrong, so that is looked at."""
    found = set()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").split(None, 5)[-1]
            if os.path.basename(path).startswith(("libmpi.so", "libmpich.so", "libmpi_abi.so")):
                found.add(os.path.realpath(path))
    return sorted(found)


def describe_mpi():
    """What MPI this process has, in words."""
    import mpi4py
    from mpi4py import MPI

    first = next(filter(str.strip, MPI.Get_library_version().replace("\x00", "").splitlines()))
    return {
        # Open MPI's line goes on with who built it, and where: no host's name belongs into a result.
        "library": " ".join(first.split(", package:")[0].replace("Version:", "").split()),
        "family": "openmpi" if "open mpi" in MPI.get_vendor()[0].lower() else "mpich",
        "mpi4py": mpi4py.__version__,
        "standard": ".".join(map(str, MPI.Get_version())),
        "mapped": mapped_mpi_libraries(),
    }


def row_of_calls(facts, contender, seconds, **more):
    """The row of what one process does by itself and what moves no data: planning, making, encoding."""
    alone = {"payload_bytes": 0, "ranks": 1, "processes": 1, "threads": 1}
    return {**facts, "contender": contender, **summary(seconds), **alone, **more}


def moved(result):
    """The rows that move data."""
    return [row for row in result["rows"] if row["payload_bytes"]]


def grouped(rows, *fields):
    """Rows by one field or several, in the order of the rows."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in fields) if len(fields) > 1 else row[fields[0]], []).append(row)
    return groups


def set_ratios(rows, field, to):
    """Each row's time over the best of those contenders at the same case, size, table and seed; None where there is
    none."""
    told = [{"n": None, "table": None, "seed": None, **row, "row": row} for row in rows]
    for same in grouped(told, "case", "n", "table", "seed").values():
        best = min((row["seconds_median"] for row in same if row["contender"] in to), default=None)
        for row in same:
            row["row"][field] = row["seconds_median"] / best if best else None
