"""Many checks in one MPI job, a test each: starting Python on eight ranks takes longer than most checks.

    jobs = Jobs({("mpich", 4): ["behaviour.disagreements", "blocks.halos_and_copies(10)"]}, folder)
    jobs.expect("mpich", 4, "behaviour.disagreements")  # AssertionError where it failed, with what the ranks said

The checks of one family and number of ranks are run one after the other by `scripts/run_checks.py`. Where one fails,
ends the process or takes too long, that one has failed: its job is ended with all ranks, and a new one goes on with
the rest.
"""

from __future__ import annotations

import ast
import queue
import subprocess
import threading
import time
from pathlib import Path

from launch import end, mpiexec, start

SCRIPTS = Path(__file__).parent / "scripts"
START_LIMIT_S, CHECK_LIMIT_S = 140, 150  # together less than pytest allows a test
ENDS = "ends"  # what is expected of a job after its last check: that it ends, and well
MOST_WORDS = 8000  # of a failure


def checks_of(script: str, folder: Path = SCRIPTS) -> list[str]:
    """The names of a script's checks, in their order. Nothing is imported: an MPI would be loaded into this process."""
    return [
        f"{script}.{f.name}"
        for f in ast.parse((folder / f"{script}.py").read_text()).body
        if isinstance(f, ast.FunctionDef) and any(ast.unparse(mark) == "check" for mark in f.decorator_list)
    ]


class Job:
    """A launch that is running."""

    def __init__(self, family, ranks, checks: list[str], folder: Path, limit_s, end_limit_s, scripts: Path, mpiexec):
        self.left, self._limit_s, self._end_limit_s = checks, limit_s, end_limit_s
        self.started = False  # the first check has begun
        self._stderr = folder / f"{family}-{ranks}-{time.monotonic_ns()}.stderr"
        self._said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        env = {
            "PYTHONPATH": str(scripts),
            "TMPDIR": str(folder),
            "LONGSHORE_LAUNCHED": f"{family} {ranks}",
            "LONGSHORE_CHECK_LIMIT_S": str(limit_s),
        }
        command = mpiexec(family, ranks, SCRIPTS / "run_checks.py", *checks)
        with open(self._stderr, "w") as stderr:
            self._process = start(command, family, env, stdout=subprocess.PIPE, stderr=stderr)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _next(self, limit_s: float) -> str:
        """What the runner says next; nothing where the job has ended."""
        deadline = time.monotonic() + limit_s
        while (line := self._lines.get(timeout=max(0, deadline - time.monotonic()))) is not None:
            before, mark, words = line.partition(">>> ")  # another rank may have begun a line
            if mark:
                return words
            self._said.append(before)
        return ""

    def follow(self) -> str:
        """Waits until the next check is done; what went wrong, or nothing. Where something did, the job is over."""
        check, begun = self.left[0], False
        self._said.clear()
        try:
            while line := self._next(self._limit_s if begun else START_LIMIT_S):
                begun = begun or line.startswith(f"begins {check}")
                self.started |= begun
                if line.startswith(f"done {check} "):
                    self.left.pop(0)
                    return ""
            why = f"its job ended with exit code {self._process.wait()}"
        except queue.Empty:
            time.sleep(1)  # the ranks say where they are
            why = f"took more than {self._limit_s} s" if begun else f"nothing within {START_LIMIT_S} s"
        self.end()
        return self._told(f"{check}: {why}{'' if begun else ', before it began'}")

    def ended(self) -> str:
        """Waits for the end of the job after its last check; what went wrong, or nothing."""
        try:
            code = self._process.wait(self._end_limit_s)
            return self._told(f"all checks are done, but the job ended with exit code {code}") if code else ""
        except subprocess.TimeoutExpired:
            self.end()
            return self._told(f"all checks are done, but the job did not end within {self._end_limit_s} s")

    def end(self) -> None:
        end(self._process)
        self._reader.join(10)

    def _told(self, why: str) -> str:
        said = "".join(self._said)
        return f"{why}\n{said[-MOST_WORDS:]}\n{self._stderr.read_text(errors='replace')[-MOST_WORDS:]}"


class Jobs:
    """The jobs of a session: for each (family, ranks), the checks that are going to be asked for, in their order.
    `ranks` is what `mpiexec` takes."""

    def __init__(
        self, planned, folder: Path, limit_s=CHECK_LIMIT_S, end_limit_s=START_LIMIT_S, scripts=SCRIPTS, mpiexec=mpiexec
    ):
        self._planned, self._how = planned, (folder, limit_s, end_limit_s, scripts, mpiexec)
        self._running: dict[tuple, Job] = {}
        self._outcomes: dict[tuple, dict[str, str]] = {key: {} for key in planned}

    def expect(self, family: str, ranks, check: str) -> None:
        """That a check is well, or the job's end after all of them. Runs those before it, too."""
        key, outcomes = (family, ranks), self._outcomes[family, ranks]
        while check not in outcomes:
            if (job := self._running.get(key)) is None:
                left = [each for each in self._planned[key] if each != ENDS and each not in outcomes]
                job = self._running[key] = Job(family, ranks, left, *self._how)
            now = job.left[0] if job.left else ENDS
            outcomes[now] = job.follow() if job.left else job.ended()
            if outcomes[now] and not job.started:  # nor would another launch
                outcomes |= {each: outcomes.get(each, outcomes[now]) for each in self._planned[key]}
            if outcomes[now] or now == ENDS:
                del self._running[key]
        assert not outcomes[check], outcomes[check]

    def close(self) -> None:
        """Ends what is still running, because some checks, or the ends, were not asked for."""
        told = [job.end() if job.left else job.ended() for job in self._running.values()]
        assert not any(told), "\n".join(filter(None, told))
