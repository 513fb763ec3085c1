"""What commands write for programs."""

from __future__ import annotations

import json
import sys
from typing import Any

from ..errors import ArgumentError


def write_json(told: Any) -> None:
    """Writes a value to the standard output, as one line of JSON. Raises ArgumentError, with nothing written, where it
    has a number that is not finite."""
    try:
        text = json.dumps(told, allow_nan=False)
    except ValueError:
        raise ArgumentError("what is to be told has a number that is not finite, which JSON cannot hold") from None
    sys.stdout.write(text + "\n")
