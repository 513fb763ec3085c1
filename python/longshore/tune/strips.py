"""What was found about loops over remote strips, kept beside the machine profile so that the next run need not search.

The file is the profile's with ".strips.json" for ".json": a list of choices, each with its `pattern`, `rows` (a power
of two), `row_bytes`, `schedule`, and the `seconds` a row that it and "vectorized" took."""

from __future__ import annotations

import json
import os
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

from .. import _core
from .._words import short
from ..errors import ArgumentError, LongshoreError
from . import ENVIRONMENT, profile_path, write_whole

FORMAT, VERSION = "longshore strip choices", 1
_MOST_CHOICES = 4096


def choices_path() -> Path:
    """Where they are kept."""
    return profile_path().with_suffix(".strips.json")


def tuner() -> _core.StripTuner:
    """This process's, with what was kept. A file that cannot be read is a warning."""
    return _tuner(os.environ.get(ENVIRONMENT), os.environ.get("XDG_CONFIG_HOME"))


@lru_cache(1)  # of all that the path depends on: finding that takes ten times as long
def _tuner(*_: str | None) -> _core.StripTuner:
    path, made = choices_path(), _core.StripTuner()
    try:
        for choice in load(path):
            made.remember(**choice)
    except FileNotFoundError:
        pass
    except (OSError, LongshoreError) as error:
        if path.exists():
            warnings.warn(f"what was found about strips before is not used: {error}", stacklevel=4)
    return made


def load(path: Path) -> list[dict[str, Any]]:
    """The choices in a file. Raises OSError, and ArgumentError where it holds something else."""
    try:
        data = json.loads(path.read_bytes())
        if data["format"] != FORMAT or data["version"] != VERSION:
            raise ArgumentError(f"{path} is of format {short(data['format'])}, version {short(data['version'])}")
        made: list[dict[str, Any]] = []
        checked = _core.StripTuner()
        for one in data["choices"]:
            seconds = [float(one[name]) for name in ("seconds", "vectorized_seconds")]
            if not all(0 <= each < 1e9 for each in seconds):
                raise ArgumentError(f"{path}: a row takes no {seconds} seconds")
            made.append(
                {
                    "pattern": str(one["pattern"]),
                    "rows": int(one["rows"]),
                    "row_bytes": int(one["row_bytes"]),
                    "schedule": _core.StripSchedule(str(one["schedule"])),
                    "seconds": seconds[0],
                    "vectorized_seconds": seconds[1],
                }
            )
            checked.remember(**made[-1])
        return made
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, LongshoreError):
            raise
        raise ArgumentError(f"{path} holds no choices of strips: {error}") from None


def keep(of: _core.StripTuner) -> None:
    """Writes all that is settled, with what others have written meanwhile. Where it cannot be written, or where the
    file holds something else, that is a warning."""
    path = choices_path()
    names = ("pattern", "rows", "row_bytes", "schedule", "seconds", "vectorized_seconds")
    mine = [dict(zip(names, choice)) for choice in of.choices()]
    try:
        theirs = load(path) if path.exists() and path.stat().st_size > 0 else []
    except (OSError, LongshoreError) as error:  # it may be somebody's who wants it back
        warnings.warn(f"what was found about strips is not kept: {error}", stacklevel=4)
        return
    known = {(each["pattern"], each["rows"], each["row_bytes"]) for each in mine}
    all_ = [each for each in theirs if (each["pattern"], each["rows"], each["row_bytes"]) not in known] + mine
    told = [{**each, "schedule": str(each["schedule"])} for each in all_[-_MOST_CHOICES:]]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"format": FORMAT, "version": VERSION, "choices": told}, indent=1).encode())
    except OSError as error:
        warnings.warn(f"what was found about strips is not kept: {error}", stacklevel=4)
