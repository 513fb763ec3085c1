#!/usr/bin/env python3
"""Runs a command that compiles, and says how far it is in a line of its own; all that it says goes to a file.

    scripts/progress.py LOG TEXT COMMAND...

Ninja counts its steps, "[12/80] Building ...", wherever in the output that stands. Where the output is no terminal,
each tenth of them is a line. A command that fails has the last lines of its log printed, and its exit code is ours."""

import re
import subprocess
import sys
import time
from pathlib import Path

STEP = re.compile(r"\[(\d+)/(\d+)\]")
LINES_OF_A_FAILURE = 60


def main(log: str, text: str, *command: str) -> int:
    begin, shown = time.monotonic(), 0
    terminal = sys.stdout.isatty()
    print(f"{text} (its words go to {log})", flush=True)
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    with open(log, "w") as file, subprocess.Popen(command, **said) as process:
        for line in process.stdout:
            file.write(line)
            file.flush()
            if step := STEP.search(line):
                done, all_steps = map(int, step.groups())
                seconds = f"{time.monotonic() - begin:.0f} s"
                if terminal:
                    print(f"\r  {done} of {all_steps}, {seconds} ", end="", flush=True)
                elif done * 10 // all_steps != shown:
                    shown = done * 10 // all_steps
                    print(f"  {done} of {all_steps}, {seconds}", flush=True)
    if terminal:
        print()
    if process.returncode:
        lines = Path(log).read_text(errors="replace").splitlines()
        errors = [i for i, line in enumerate(lines) if "error:" in line or "FAILED" in line]
        first = max(0, min(errors[0] - 2 if errors else len(lines), len(lines) - LINES_OF_A_FAILURE))
        print(*lines[first : first + LINES_OF_A_FAILURE], sep="\n", file=sys.stderr)
        print(f"{text}: failed with exit code {process.returncode}; all of it is in {log}", file=sys.stderr)
    return process.returncode


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
