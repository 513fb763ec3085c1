"""The rules of the house that a program can check: who includes whom, how long files are, what no file may say."""

import getpass
import platform
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def arrows() -> dict[str, set[str]]:
    """Each room and the rooms it may include, those that these may include among them: the architecture's table."""
    row = re.compile(r"^\| `([\w/]+)` \| .* \| (.*) \|$", re.MULTILINE)
    table = (ROOT / "docs" / "architecture.md").read_text().split("## The rooms", 1)[1]
    direct = {room: set(re.findall(r"`([\w/]+)`", others)) for room, others in row.findall(table)}
    assert len(direct) > 10, "docs/architecture.md has no table of rooms"

    def reached(room: str) -> set[str]:
        return direct[room].union(*(reached(other) for other in direct[room]))

    return {room: reached(room) for room in direct}


MAY_INCLUDE = arrows()
# Where mpi.h may be included, and the header that does it for all of them.
MPI_ROOMS = {"mpi", "engines/mpi", "profile"}
MPI_HEADER = "mpi/mpi_header.hpp"

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)


def tracked() -> list[Path]:
    """The checkout's files, those not yet committed too; a source archive without git falls back to the folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    folders = ["include", "src", "bindings", "python", "tests", "lab", "docs", "examples", "apps", "cmake", "scripts"]
    return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]


FILES = tracked()
CPP = [path for path in FILES if path.suffix in {".hpp", ".cpp", ".h"}]


def room_of(path: Path) -> str | None:
    """The room a header or a source stands in: include/longshore/<room>/ or src/<room>/.

    An engine's public headers begin with its name: engines/mpi.hpp.
    """
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[:2] == ("include", "longshore"):
        parts = parts[2:]
    elif parts[0] == "src":
        parts = parts[1:]
    else:
        return None
    if len(parts) < 2:
        return None
    return f"engines/{parts[1].split('_')[0]}" if parts[0] == "engines" else parts[0]


def included_room(path: Path, name: str) -> str | None:
    """The room that an #include leads to, or None where it leads out of the house."""
    for base in (path.parent, ROOT / "src", ROOT / "include"):
        if (base / name).is_file():
            return room_of((base / name).resolve())
    return None


def test_there_is_something_to_check():
    assert len(CPP) > 10


def test_rooms_include_along_the_arrows():
    wrong = []
    for path in CPP:
        room = room_of(path)
        if room is None:
            continue
        assert room in MAY_INCLUDE, f"{path.relative_to(ROOT)}: there is no room {room!r}"
        for name in INCLUDE.findall(path.read_text()):
            other = included_room(path, name)
            if name == MPI_HEADER and room in MPI_ROOMS:
                continue
            if other is not None and other != room and other not in MAY_INCLUDE[room]:
                wrong.append(f"{path.relative_to(ROOT)} ({room}) includes {name} ({other})")
    assert not wrong, "\n".join(wrong)


def test_the_representations_of_the_thesis_use_what_users_modules_use():
    """They see the public headers of ranks, and sequences; and nobody else sees them but by their names."""
    thesis = ROOT / "src" / "ranks" / "thesis"
    may = re.compile(r"[\w]+|longshore/(ranks|sequences|core)/\w+\.h(pp)?|(sequences|core|ranks/thesis)/\w+\.hpp")
    wrong, inside = [], 0
    for path in CPP:
        if path.relative_to(ROOT).parts[0] not in {"include", "src"}:
            continue
        inside += path.parent == thesis
        for name in INCLUDE.findall(path.read_text()):
            if may.fullmatch(name) is None if path.parent == thesis else "ranks/thesis/" in name:
                wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    assert inside > 5
    assert not wrong, "\n".join(wrong)


def test_mpi_is_included_in_its_engine_only():
    wrong = [
        f"{path.relative_to(ROOT)} includes {name}"
        for path in CPP
        if path.relative_to(ROOT).parts[0] in {"include", "src", "bindings"}
        and not (path.is_relative_to(ROOT / "src") and room_of(path) in MPI_ROOMS)
        for name in INCLUDE.findall(path.read_text())
        if name in {"mpi.h", "mpi_abi.h"}
    ]
    assert not wrong, "\n".join(wrong)


def test_boost_is_included_where_stacks_are_made_only():
    named = [
        path.relative_to(ROOT)
        for path in CPP
        if any(name.startswith("boost/") for name in INCLUDE.findall(path.read_text()))
    ]
    assert named == [Path("src/engines/finegrain/fibers.cpp")]


def test_instructions_are_named_in_kernels_only():
    """What the language has no word for stands in folders called kernels; `relax` is the one that every room needs."""
    instruction = re.compile(
        r"#\s*include\s*<(\w*intrin|arm_\w+)\.h>|\b(_mm\d*_|__builtin_(ia32|aarch64|neon)_)\w+|\b(__asm__|asm)\b\s*(volatile|\()"
    )
    named = {
        path.relative_to(ROOT)
        for path in CPP
        if path.relative_to(ROOT).parts[0] in {"include", "src", "bindings"}
        if path.parent.name != "kernels" and instruction.search(path.read_text())
    }
    assert named == {Path("src/core/relax.hpp")}


def test_files_stay_short():
    too_long = []
    for path in FILES:
        limit = {".hpp": 400, ".h": 400, ".cpp": 600, ".py": 600}.get(path.suffix)
        if limit is not None:
            lines = len(path.read_text().splitlines())
            if lines > limit:
                too_long.append(f"{path.relative_to(ROOT)}: {lines} lines, at most {limit}")
    assert not too_long, "\n".join(too_long)


def test_every_header_says_its_idea_and_is_guarded():
    wrong = []
    for path in CPP:
        if room_of(path) is None or path.suffix != ".hpp":
            continue
        text = path.read_text()
        if not text.startswith("//"):
            wrong.append(f"{path.relative_to(ROOT)}: the first line is no comment")
        if "#pragma once" not in text:
            wrong.append(f"{path.relative_to(ROOT)}: no #pragma once")
    assert not wrong, "\n".join(wrong)


def test_one_header_includes_all_that_need_no_engine():
    public = ROOT / "include" / "longshore"
    umbrella = public / "longshore.hpp"
    wanted = {
        f"longshore/{path.relative_to(public)}"
        for path in FILES
        if path.is_relative_to(public) and path.suffix == ".hpp" and room_of(path) is not None
        if room_of(path) != "mpi" and not room_of(path).startswith("engines/")
    }
    assert set(INCLUDE.findall(umbrella.read_text())) == wanted


def private_words() -> list[str]:
    """What would give this machine away: where the checkout and the home folder are, and the machine's name."""
    words = [str(ROOT), str(Path.home()), platform.node()]
    if getpass.getuser() != "root":
        words.append(f"/home/{getpass.getuser()}")
    # Short or general ones stand in honest text too.
    general = {"/root", "/", "localhost", "runner", "/work", "/src", "/app", "/build", "/home", "/tmp"}
    return [word for word in words if len(word) > 4 and word not in general]


@pytest.mark.parametrize("word", private_words())
def test_no_file_names_this_machine(word):
    whole = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])")
    named = []
    for path in FILES:
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue  # an image or an array
        if whole.search(text):
            named.append(str(path.relative_to(ROOT)))
    assert not named, f"{word!r} stands in " + ", ".join(named)
