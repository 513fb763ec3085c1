"""All the tests, one stage after the other, with a summary at the end: what `make test` runs once things are built.

    scripts/run_tests.py [STAGE...]      with no stage, all of them

Stages: core (C++ units and properties, optimised), python, asan, tsan, packaging.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "reports"
JOBS = os.environ.get("JOBS") or str(os.cpu_count() or 1)
WHEEL_BUILD = "build/wheel"


def run(*command: object, **env: str) -> bool:
    words = [str(word) for word in command]
    print("$", *words, flush=True)
    return subprocess.run(words, cwd=ROOT, env={**os.environ, **env}).returncode == 0


def report(stage: str) -> Path:
    return REPORTS / f"{stage}.xml"


def ctest(stage: str, build: str, **env: str) -> bool:
    built = run("cmake", "--build", build, "--target", "longshore_tests", "--parallel", JOBS)
    return built and run("ctest", "--test-dir", build, "--parallel", JOBS, "--output-on-failure", "--progress",
                         "--no-tests=error", "--output-junit", report(stage), **env)


def pytest(stage: str, *args: str) -> bool:
    return run(sys.executable, "-m", "pytest", "-q", "--junitxml", report(stage), *args)


def core() -> bool:
    return ctest("core", WHEEL_BUILD)


def python() -> bool:
    return pytest("python", "tests", "--ignore=tests/packaging")


def sanitized(preset: str) -> bool:
    # Quick sizes: what a sanitizer finds, it finds in small arrays.
    return run("cmake", "--preset", preset) and ctest(preset, f"build/{preset}", LONGSHORE_TEST_QUICK="1")


def asan() -> bool:
    return sanitized("asan")


def tsan() -> bool:
    return sanitized("tsan")


def packaging() -> bool:
    return pytest("packaging", "tests/packaging")


STAGES = {stage.__name__: stage for stage in (core, python, asan, tsan, packaging)}


def count(stage: str) -> Counter:
    """Passed, failed and skipped tests of a stage's JUnit report."""
    counts = Counter()
    if report(stage).exists():
        for case in ElementTree.parse(report(stage)).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                counts["failed"] += 1
            elif case.find("skipped") is not None:
                counts["skipped"] += 1
            else:
                counts["passed"] += 1
    return counts


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in STAGES]
    if unknown:
        print(f"no such stage: {', '.join(unknown)}; there are {', '.join(STAGES)}", file=sys.stderr)
        return 2
    REPORTS.mkdir(parents=True, exist_ok=True)
    total = Counter()
    lines = []
    for name in names or STAGES:
        print(f"\n== {name}", flush=True)
        report(name).unlink(missing_ok=True)
        start = time.monotonic()
        succeeded = STAGES[name]()
        counts = count(name)
        if not succeeded and not counts["failed"]:
            counts["failed"] += 1  # it did not build, or broke before it could report
        total += counts
        lines.append(f"{name:<10} {counts['passed']:6} passed {counts['failed']:4} failed {counts['skipped']:4} skipped"
                     f" {time.monotonic() - start:7.0f} s")
    print("\n" + "\n".join(lines))
    print(f"{total['passed']} passed, {total['failed']} failed" + f", {total['skipped']} skipped" * bool(total["skipped"]))
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
