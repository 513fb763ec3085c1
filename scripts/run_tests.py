"""Tests, one stage after the other, with a summary at the end: what `make test` and `make check` run.

    make stages STAGES="core python+mpich"       # the last two side by side

Of `make test`: style (clang-format, ruff, mypy), core (C++ units and properties, optimised), python, stores (Python's
tests of files and formats), remote (those of URLs and of executors), and the tests under MPI: mpich (with those that
need no MPI to be launched) and openmpi. Of `make check`: slow (what of Python's tests takes long), asan, tsan, aarch64
(the C++ tests, cross-compiled and emulated), packaging, lab (the benches). A stage for which this machine lacks
something is skipped by name; where CI=true that is a failure.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "reports"
JOBS = os.environ.get("JOBS") or str(os.cpu_count() or 1)
WHEEL_BUILD = "build/wheel"
STORES = "tests/python/test_stores*.py"
REMOTE = ("tests/python/test_stores_urls*.py", "tests/python/test_stores_executor*.py")
COMMAND_LIMIT_S = 1200
LINES_OF_A_FAILURE = 12


class Skipped(Exception):
    """This machine lacks what the stage needs."""


OUTPUT = threading.local()  # .file: what this thread's stage says, where another stage has the terminal


def say(*words: object) -> None:
    print(*words, file=getattr(OUTPUT, "file", sys.stdout), flush=True)


def run(*command: object, **env: str) -> bool:
    """Runs a command from the checkout's root; False where it failed or outlived its time and was ended."""
    words = [str(word) for word in command]
    say("$", *words)
    file = getattr(OUTPUT, "file", None)
    where = {"stdout": file, "stderr": file and subprocess.STDOUT}
    process = subprocess.Popen(words, cwd=ROOT, env={**os.environ, **env}, start_new_session=True, **where)
    try:
        return process.wait(COMMAND_LIMIT_S) == 0
    except subprocess.TimeoutExpired:
        say(f"ended after {COMMAND_LIMIT_S} s")
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def succeeds(*command: str) -> bool:
    return shutil.which(command[0]) is not None and subprocess.run(command, capture_output=True).returncode == 0


def report(stage: str) -> Path:
    return REPORTS / f"{stage}.xml"


def compiled(build: str, *targets: str) -> bool:
    """Compiles targets of a build folder, saying how far it is."""
    words = [word for target in targets for word in ("--target", target)]
    return run(
        ROOT / "scripts" / "progress.py",
        f"{build}.log",
        f"compiling {', '.join(targets)}",
        "cmake",
        "--build",
        build,
        *words,
        "--parallel",
        JOBS,
    )


def ctest(stage: str, build: str, *prefix: str, **env: str) -> bool:
    if "GTest_DIR-NOTFOUND" in (ROOT / build / "CMakeCache.txt").read_text():
        raise Skipped("GoogleTest is missing (Debian: libgtest-dev)")
    return compiled(build, "longshore_tests") and run(
        *prefix,
        "ctest",
        "--test-dir",
        build,
        "--parallel",
        JOBS,
        "--output-on-failure",
        "--no-tests=error",
        "--quiet",
        "--output-junit",
        report(stage),
        **env,
    )


def pytest(stage: str, *args: str, **env: str) -> bool:
    return run(sys.executable, "-m", "pytest", "-q", "--junitxml", report(stage), *args, **env)


def files(*patterns: str) -> list[str]:
    """The checkout's files, those not yet committed too."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def style() -> bool:
    """Each tool is a test of its own in the report."""
    tools = {
        "clang-format": ["clang-format", "--dry-run", "-Werror", *files("*.cpp", "*.hpp", "*.h")],
        "ruff-check": ["ruff", "check", "."],
        "ruff-format": ["ruff", "format", "--check", "."],
        "mypy": ["mypy"],
    }
    suite = ElementTree.Element("testsuite")
    for name, command in tools.items():
        begin = time.monotonic()
        done = subprocess.run(
            command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        seconds = f"{time.monotonic() - begin:.1f}"
        case = ElementTree.SubElement(suite, "testcase", classname="style", name=name, time=seconds)
        say(f"{name}: {'clean' if done.returncode == 0 else done.stdout}")
        if done.returncode:
            ElementTree.SubElement(case, "failure", message=f"{name} found something").text = done.stdout
    ElementTree.ElementTree(suite).write(report("style"))
    return all(case.find("failure") is None for case in suite)


def core() -> bool:
    # The wheel's build folder, which has the core compiled already.
    return run("cmake", "-DLONGSHORE_TESTS=ON", WHEEL_BUILD) and ctest("core", WHEEL_BUILD)


def python() -> bool:
    elsewhere = ("--ignore=tests/packaging", "--ignore=tests/mpi", f"--ignore-glob={STORES}")
    return pytest("python", "tests", *elsewhere)


def stores() -> bool:
    return pytest("stores", *sorted(set(files(STORES)) - set(files(*REMOTE))))


def remote() -> bool:
    return pytest("remote", *files(*REMOTE))


def mpich() -> bool:
    return pytest("mpich", "tests/mpi", "-k", "not openmpi")


def openmpi() -> bool:
    return pytest("openmpi", "tests/mpi", "-k", "openmpi")


def slow() -> bool:
    return pytest("slow", "tests", "--ignore=tests/packaging", "-m", "slow", LONGSHORE_TEST_SLOW="1")


def sanitized(preset: str, sanitizer: str, *prefix: str) -> bool:
    probe = f"echo 'int main() {{}}' | ${{CXX:-c++}} -x c++ - -o /dev/null -fsanitize={sanitizer}"
    if not succeeds("sh", "-c", probe):
        raise Skipped(f"the compiler cannot link -fsanitize={sanitizer}")
    # Quick sizes: what a sanitizer finds, it finds in small arrays.
    return run("cmake", "--preset", preset) and ctest(preset, f"build/{preset}", *prefix, LONGSHORE_TEST_QUICK="1")


def asan() -> bool:
    return sanitized("asan", "address,undefined")


def tsan() -> bool:
    # Older ThreadSanitizers cannot live with all the address randomisation of newer kernels.
    fixed_addresses = ("setarch", platform.machine(), "-R")
    return sanitized("tsan", "thread", *(fixed_addresses if succeeds(*fixed_addresses, "true") else ()))


def aarch64() -> bool:
    for program, package in (("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"), ("qemu-aarch64", "qemu-user")):
        if shutil.which(program) is None:
            raise Skipped(f"{program} is missing (Debian: {package})")
    if not (ROOT / ".deps" / "aarch64" / "complete").exists():
        raise Skipped("the tests' libraries for aarch64 are missing (scripts/setup check-libraries)")
    few = {"LONGSHORE_TEST_QUICK": "1", "RC_PARAMS": "max_success=5"}
    return run("cmake", "--preset", "aarch64") and ctest("aarch64", "build/aarch64", **few)


def packaging() -> bool:
    return run("cmake", "-DLONGSHORE_MPI=ON", WHEEL_BUILD) and pytest("packaging", "tests/packaging")


def lab() -> bool:
    return pytest("lab", "lab/tests")


STAGES = {
    stage.__name__: stage
    for stage in (style, core, python, stores, remote, mpich, openmpi, slow, asan, tsan, aarch64, packaging, lab)
}


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


def failures(stage: str) -> list[str]:
    """The failed tests of a stage's report by name, each with the end of what it said."""
    told = []
    for case in ElementTree.parse(report(stage)).iter("testcase") if report(stage).exists() else ():
        fault = next((found for kind in ("failure", "error") if (found := case.find(kind)) is not None), None)
        if fault is not None:
            words = (fault.text or "").strip() or fault.get("message") or (case.findtext("system-out") or "").strip()
            name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
            told.append(
                f"FAILED {stage}: {name}\n"
                + "\n".join(f"    {line}" for line in words.splitlines()[-LINES_OF_A_FAILURE:])
            )
    return told


def carry_out(stage: str) -> tuple[Counter, str]:
    """Runs a stage; its counts, and its line of the summary."""
    say(f"\n== {stage}")
    report(stage).unlink(missing_ok=True)
    start = time.monotonic()
    try:
        succeeded, note = STAGES[stage](), ""
    except Skipped as reason:
        say(f"skipped: {reason}")
        succeeded, note = os.environ.get("CI") != "true", f"  SKIPPED: {reason}"
    counts = count(stage)
    if not succeeded and not counts["failed"]:
        counts["failed"] += 1  # it did not build, or broke before it could report
    line = " ".join(f"{counts[kind]:6} {kind}" for kind in ("passed", "failed", "skipped"))
    return counts, f"{stage:<10}{line} {time.monotonic() - start:6.0f} s{note}"


def carry_out_beside(stage: str) -> tuple[Counter, str]:
    """Runs a stage while another one has the terminal; it says what it has to say at its end."""
    with tempfile.TemporaryFile("w+") as OUTPUT.file:
        result = carry_out(stage)
        OUTPUT.file.seek(0)
        print(OUTPUT.file.read(), end="", flush=True)
    return result


def side_by_side(stages: list[str]) -> list[tuple[Counter, str]]:
    with ThreadPoolExecutor() as threads:
        others = [threads.submit(carry_out_beside, stage) for stage in stages[1:]]
        return [carry_out(stages[0]), *(other.result() for other in others)]


def main(groups: list[str]) -> int:
    names = [name for group in groups for name in group.split("+")]
    unknown = [name for name in names if name not in STAGES]
    if not names:
        sys.exit(__doc__)
    if unknown:
        print(f"no such stage: {', '.join(unknown)}; there are {', '.join(STAGES)}", file=sys.stderr)
        return 2
    REPORTS.mkdir(parents=True, exist_ok=True)
    results = [result for group in groups for result in side_by_side(group.split("+"))]
    total = sum((counts for counts, _ in results), Counter())
    # Last, where whoever sees only the end of this finds it.
    print("", *(told for name in names for told in failures(name)), sep="\n")
    print("", *(line for _, line in results), sep="\n")
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"{total['passed']} passed, {total['failed']} failed{skipped}")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
