"""Where the command `longshore` begins. Nothing of Longshore is imported yet, for that takes a while, in which an
interrupt ends this as it ends any other program."""

import os
import signal


def main() -> None:
    """Imports the command line and runs it; exits with one of its codes."""
    heeds = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a shell has it ignored in the background
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
