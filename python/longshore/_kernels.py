"""Where it is kept how copy kernels are best on a model of CPU. It is looked at when Longshore is imported, so that
nothing here takes long."""

from __future__ import annotations

import os
import re

from . import _core

ENVIRONMENT = "LONGSHORE_PROFILE"


def profile_folder() -> str:
    """Of the user's machine profiles."""
    return os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "longshore")


def kept_path() -> str:
    """The kernel profile of this model of CPU, for all machines that share the folder."""
    return os.path.join(profile_folder(), "kernels", re.sub("[^A-Za-z0-9]+", "-", _core.cpu_name()) + ".json")


def choose_kept() -> None:
    """What LONGSHORE_PROFILE says, else what was kept, if anything; else what a probe finds will be kept."""
    given = os.environ.get(ENVIRONMENT)
    path = given or kept_path()
    if os.path.isfile(path):
        from .tune.kernels import choose

        choose(path, whole=bool(given))
    elif not given:
        _core.keep_kernel_probe(path)
