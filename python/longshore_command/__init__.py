"""Where the command `longshore` begins. Nothing of Longshore is imported yet, for that takes a while, in which an
interrupt ends this as it ends any other program."""

import os
import signal
import sys
import warnings
from typing import Any


def main() -> None:
    """Imports the command line and runs it; exits with one of its codes."""
    heeds = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a shell has it ignored in the background
    warnings.showwarning = _tell
    try:
        if heeds:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        from longshore import cli

        if heeds:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        cli.main()
    except KeyboardInterrupt:  # just before or after the command line itself tells of it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def _tell(message: Warning | str, *_: Any, **__: Any) -> None:
    """Says a warning in a line of the command's own: where in the program it was given is nothing to its user."""
    from longshore._words import printable

    if sys.stderr is not None:
        print(f"longshore: warning: {printable(' '.join(str(message).split()))}", file=sys.stderr, flush=True)
