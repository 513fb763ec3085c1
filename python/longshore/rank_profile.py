"""The profile of communicators: a library that is preloaded into any MPI program, and how to find the right one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import ArgumentError

__all__ = ["command_line", "environment", "launcher_family", "library", "run"]

_LAUNCHERS = re.compile(r"(mpiexec|mpirun|prterun|orterun)([.\-].*)?")
_WORDS = {"openmpi": re.compile(r"Open ?MPI|Open ?RTE|PRR?TE"), "mpich": re.compile(r"HYDRA|MPICH|Intel\(R\) MPI")}


def library(family: str) -> Path:
    """The library for programs whose MPI is of this family: mpich, openmpi or abi."""
    built = {
        path.stem.removeprefix("_rank_profile_"): path for path in Path(__file__).parent.glob("_rank_profile_*.so")
    }
    if family not in built:
        there = ", ".join(sorted(built)) or "none"
        raise ArgumentError(f"this Longshore was built without its profile for {family}; there is: {there}")
    return built[family]


def launcher_family(launcher: str) -> str:
    """The family of the MPI that a launcher (mpiexec, mpirun) belongs to, from what it says of its version."""
    path = shutil.which(launcher)
    if path is None:
        raise ArgumentError(f"there is no command {launcher}")
    if _LAUNCHERS.fullmatch(Path(path).name):
        try:
            told = subprocess.run(
                [path, "--version"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=60,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ArgumentError(f"{path} does not tell its version ({error}); name its MPI with --family") from None
        for family, words in _WORDS.items():
            if words.search(told.stdout + told.stderr):
                return family
    raise ArgumentError(f"which MPI {launcher} belongs to is not known; name it with --family")


def environment(
    family: str, json: str | os.PathLike | None = None, inherited: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment in which a program of this family is profiled; its JSON goes to a file if one is named."""
    path = str(library(family))
    if re.search(r"[\s:]", path):
        raise ArgumentError(f"{path} cannot be preloaded: LD_PRELOAD takes blanks and colons for the end of a name")
    preloaded = inherited.get("LD_PRELOAD", "")
    variables = {**inherited, "LD_PRELOAD": f"{path}:{preloaded}" if preloaded else path}
    if json is not None:
        variables["LONGSHORE_RANK_PROFILE"] = str(Path(json).absolute())
    return variables


def command_line(command: Sequence[str], family: str, json: str | os.PathLike | None = None) -> list[str]:
    """The command; where it is a launcher of Open MPI's, told to hand the profile's variables to other nodes, for each
    of several programs between colons. Processes that have the profile would wait for those that have not."""
    if family != "openmpi" or not _LAUNCHERS.fullmatch(Path(command[0]).name):
        return list(command)
    names = ["LD_PRELOAD", *(["LONGSHORE_RANK_PROFILE"] if json is not None else [])]
    told = [word for name in names for word in ("-x", name)]
    return [command[0], *told, *(each for word in command[1:] for each in ([word, *told] if word == ":" else [word]))]


def run(command: Sequence[str], family: str, json: str | os.PathLike | None = None) -> None:
    """Becomes the command, profiled: its exit code and its signals are its own."""
    try:
        words = command_line(command, family, json)
        os.execvpe(words[0], words, environment(family, json))
    except OSError as error:
        raise ArgumentError(f"{command[0]} cannot be run: {error.strerror}") from None
