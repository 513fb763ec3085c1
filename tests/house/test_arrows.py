"""The rules of the house that a program can check: who includes whom, how long files are, what no file may say."""

import getpass
import platform
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Each room and the rooms it may include, straight from the architecture's drawing.
MAY_INCLUDE = {
    "core": set(),
    "sequences": {"core"},
    "ranks": {"core", "sequences"},
    "regions": {"core", "sequences"},
    "relations": {"core", "sequences"},
    "layouts": {"core", "sequences", "regions", "ranks"},
    "plans": {"core", "sequences", "ranks", "regions", "relations", "layouts"},
}
MAY_INCLUDE["model"] = {*MAY_INCLUDE, "plans"}
MAY_INCLUDE["movers"] = {*MAY_INCLUDE} - {"model"}
MAY_INCLUDE["tune"] = {*MAY_INCLUDE}

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
    folders = ["include", "src", "bindings", "python", "tests", "bench", "docs", "examples", "apps", "cmake", "scripts"]
    return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]


FILES = tracked()
CPP = [path for path in FILES if path.suffix in {".hpp", ".cpp", ".h"}]


def room_of(path: Path) -> str | None:
    """The room a header or a source stands in: include/longshore/<room>/ or src/<room>/."""
    parts = path.relative_to(ROOT).parts
    if parts[:2] == ("include", "longshore") and len(parts) > 3:
        return parts[2]
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return None


def included_room(path: Path, name: str) -> str | None:
    """The room that an #include leads to, or None where it leads out of the house."""
    if name.startswith("longshore/"):
        parts = name.split("/")
        return parts[1] if len(parts) > 2 else None
    for base in (path.parent, ROOT / "src"):
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
            if other is not None and other != room and other not in MAY_INCLUDE[room]:
                wrong.append(f"{path.relative_to(ROOT)} ({room}) includes {name} ({other})")
    assert not wrong, "\n".join(wrong)


def test_mpi_is_included_in_its_engine_only():
    wrong = [
        f"{path.relative_to(ROOT)} includes {name}"
        for path in CPP
        if path.relative_to(ROOT).parts[0] in {"include", "src", "bindings"}
        and path.relative_to(ROOT).parts[:3] != ("src", "movers", "mpi")
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
    assert named == [Path("src/movers/finegrain/fibers.cpp")]


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
