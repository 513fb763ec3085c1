"""What was found about loops over remote strips, kept beside the machine profile so that the next run need not search.

The file is the profile's with ".strips.json" for ".json": a list of choices, each with its `pattern`, `rows` (a power
of two), `row_bytes`, `schedule`, and the `seconds` a row that it and "vectorized" took. The tuner reads and writes it,
which is the same for programs in C++ (`longshore/tune/strip_choices.hpp`)."""

from __future__ import annotations

import os
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

from .. import _core
from . import ENVIRONMENT

NAMES = ("pattern", "rows", "row_bytes", "schedule", "seconds", "vectorized_seconds")


def choices_path() -> Path:
    """Where they are kept."""
    return Path(_core.strip_choices_path())


def tuner() -> _core.StripTuner:
    """This process's, with what was kept. A file that cannot be read is a warning."""
    return _tuner(os.environ.get(ENVIRONMENT), os.environ.get("XDG_CONFIG_HOME"))


@lru_cache(1)  # of all that the path depends on: finding that takes ten times as long
def _tuner(*_: str | None) -> _core.StripTuner:
    made = _core.StripTuner(file=str(choices_path()))
    warn(made, stacklevel=5)
    return made


def warn(of: _core.StripTuner, stacklevel: int = 4) -> None:
    """Where choices could not be read or kept, that is a warning."""
    if trouble := of.trouble():
        warnings.warn(trouble, stacklevel=stacklevel)


def load(path: Path) -> list[dict[str, Any]]:
    """The choices in a file, none where there is none. Raises TransportError where it cannot be read, ArgumentError
    where it holds something else."""
    return [dict(zip(NAMES, each)) for each in _core.read_strip_choices(str(path))]
