"""Runs a command as a process of its own and measures all processes that it starts, from outside.

Between us and the command stands a small helper, which is this file run as a program: it starts the command, waits for
it and for the disk, and tells what they took. Its own memory is that of an interpreter without modules, so that the
kernel's peak of the command, which begins with what its parent held, is not that of a large bench. It reads
next to nothing, so that what /proc/self/io counts for it are the processes that it has waited for.
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

_INTERVAL = 0.02  # between two looks at the memory of all processes
_PATIENCE = 60.0  # for the disk, beyond the limit of the command
_PAGE = resource.getpagesize()


class Measured:
    """What a command took, and how it ended."""

    def __init__(self, told, watch, output, errors):
        self.seconds, self.run_seconds = told["seconds"], told["run_seconds"]
        self.code, self.stopped = told["code"], told["stopped"]
        self.bytes_read, self.bytes_written = told["io"]["rchar"], told["io"]["wchar"]
        self.disk_read, self.disk_written = told["io"]["read_bytes"], told["io"]["write_bytes"]
        self.peak_bytes, self.held_too_much = max(told["peak_bytes"], watch.most), watch.too_much
        self.output, self.errors = output, errors

    def why(self):
        """Why it has failed, in one line; empty where it has not."""
        if self.held_too_much:
            return f"stopped when it held {self.peak_bytes / 1e9:.1f} GB, which is nearly all there is"
        if self.stopped:
            return f"stopped after {self.run_seconds:.0f} s"
        if self.code == 0:
            return ""
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        ended = f"killed by signal {-self.code}" if self.code < 0 else f"exit status {self.code}"
        return f"{lines[-1][:300]} ({ended})" if lines else ended


def measure(command, *, seconds=None, most_bytes=None, group=None):
    """Runs a command and returns what it took. After so many seconds, or when it holds so many bytes, it is killed with
    all that it has started. `group`: the folder of a cgroup that it is to run in."""
    with tempfile.TemporaryDirectory(prefix="longshore-measure-") as beside:
        told, output, errors = (os.path.join(beside, name) for name in ("told", "output", "errors"))
        helper = [sys.executable, "-I", "-S", os.path.abspath(__file__), told, str(seconds or 0), group or "", *command]
        with open(output, "wb") as out, open(errors, "wb") as err:
            process = subprocess.Popen(helper, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            watch = _Watch(process, most_bytes)
            try:
                process.wait(None if seconds is None else seconds + _PATIENCE)
            finally:
                process.terminate()  # whoever interrupts us ends the command too
                process.wait()
                watch.end()
        words = [_text(name) for name in (output, errors)]
        if not os.path.exists(told):
            raise OSError(f"the command could not be measured: {words[1].strip()[-300:]}")
        with open(told, encoding="utf-8") as file:
            return Measured(json.load(file), watch, *words)


def _text(name):
    with open(name, encoding="utf-8", errors="replace") as file:
        return file.read()


class _Watch:
    """A thread that adds up, again and again, what the descendants of a process hold, and ends it where they hold more
    than they may."""

    def __init__(self, process, most_bytes):
        self.most, self.too_much = 0, False
        self._process, self._limit, self._end = process, most_bytes, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self):
        self._end.set()
        self._thread.join()

    def _run(self):
        while not self._end.wait(_INTERVAL):
            self.most = max(self.most, sum(map(_resident, descendants(self._process.pid))))
            if self._limit is not None and self.most > self._limit and not self.too_much:
                self.too_much = True
                self._process.terminate()


def _resident(pid):
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE
    return 0


def descendants(pid):
    """The processes that a process has started, and those that they have started."""
    found = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                for child in map(int, file.read().split()):
                    found += [child, *descendants(child)]
    return found


# --- groups whose memory is limited

_FIRST_LIMIT = "memory.limit_in_bytes"  # as cgroup v1 calls it


def limited_groups():
    """The folder in which groups with a limit of memory can be made, or None and why there is none."""
    with contextlib.suppress(OSError):
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
        if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            place = next((f"/sys/fs/cgroup{own}".rstrip("/") for number, _, own in lines if number == "0"), "")
            while place.startswith("/sys/fs/cgroup"):
                with open(f"{place}/cgroup.subtree_control", encoding="utf-8") as file:
                    if "memory" in file.read().split() and os.access(place, os.W_OK):
                        return place, ""
                place = os.path.dirname(place)
            return None, "cgroup v2 lets this process limit no group's memory"
        place = "/sys/fs/cgroup/memory"  # version 1, where every controller has a tree of its own
        if os.access(place, os.W_OK) and os.path.exists(f"{place}/{_FIRST_LIMIT}"):
            return place, ""
    return None, "no group of processes can be limited here: that takes root, or cgroup v2 and its memory controller"


@contextlib.contextmanager
def limited_group(place, most_bytes):
    """A group of processes below `place` that may hold so many bytes, without swap; gives its folder."""
    group = tempfile.mkdtemp(prefix="longshore-bench-", dir=place)
    try:
        if os.path.exists(f"{place}/{_FIRST_LIMIT}"):
            limit, with_swap, swap = _FIRST_LIMIT, "memory.memsw.limit_in_bytes", most_bytes
        else:
            limit, with_swap, swap = "memory.max", "memory.swap.max", 0
        _put(f"{group}/{limit}", most_bytes)
        with contextlib.suppress(OSError):  # a kernel without swap has no such file
            _put(f"{group}/{with_swap}", swap)
        yield group
    finally:
        for _ in range(50):
            try:
                os.rmdir(group)
                break
            except OSError:  # its last process has not gone yet
                time.sleep(0.1)


def killed_in(group):
    """How many processes of a group the kernel has killed for their memory."""
    name = "memory.events" if os.path.exists(f"{group}/memory.events") else "memory.oom_control"
    with open(f"{group}/{name}", encoding="utf-8") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)


def _put(name, value):
    with open(name, "w", encoding="utf-8") as file:
        file.write(f"{value}\n")


# --- the helper


def _io():
    with open("/proc/self/io", encoding="utf-8") as file:
        return {name: int(value) for name, value in (line.split(": ") for line in file)}


def _help(told, seconds, group, command):
    if group:
        _put(f"{group}/cgroup.procs", os.getpid())
    stopped, ended, child, bench = [], [], None, os.getppid()
    before, begun = _io(), time.perf_counter()
    end = begun + (seconds or float("inf"))

    def kill():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)

    def look(number=None, frame=None):
        """Kills the command if its time is over, if it is told to, or if whoever measures it has gone."""
        left = end - time.perf_counter()
        if left <= 0 or ended or os.getppid() != bench:
            stopped.append(left <= 0)
            kill()
        signal.setitimer(signal.ITIMER_REAL, max(0.001, min(0.5, left)))

    def give_up(number, frame):
        ended.append(number)
        signal.setitimer(signal.ITIMER_REAL, 0.001)

    # Not before the command has been started does anybody look: nothing is there to be killed.
    signal.signal(signal.SIGTERM, give_up)
    signal.signal(signal.SIGINT, give_up)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    signal.signal(signal.SIGALRM, look)
    handled = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM]
    child = os.posix_spawnp(command[0], command, os.environ, setpgroup=0, setsigmask=[], setsigdef=handled)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    look()
    _, status, _ = os.wait4(child, 0)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    run_seconds = time.perf_counter() - begun
    os.sync()
    taken = time.perf_counter() - begun
    kill()  # what it has left behind
    after = _io()
    told_of = {
        "seconds": taken,
        "run_seconds": run_seconds,
        "code": os.waitstatus_to_exitcode(status),
        "stopped": any(stopped),
        "io": {name: after[name] - before[name] for name in after},
        "peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
    }
    with open(told + ".new", "w", encoding="utf-8") as file:
        json.dump(told_of, file)
    os.replace(told + ".new", told)


if __name__ == "__main__":
    _help(sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4:])
