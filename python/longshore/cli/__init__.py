"""The command `longshore`: explain a redistribution or a rank map, move a real array, measure the machine,
estimate, run the benches."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from typing import NoReturn

try:
    import click

    from .. import __version__, errors
    from .._words import printable
    from ..stores.team import TeamError, launched_rank, launched_size
    from ..stores.worker_threads import in_words
    from . import bench, explain, info, model, move, profile, ranks
except KeyboardInterrupt:  # nothing has begun that anybody would have to be told of
    if {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"} & os.environ.keys():
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as below, in `_leave`
        os.kill(os.getpid(), signal.SIGINT)
    sys.exit(130)

FINE, FAILED, WRONG_INPUT, MEMORY, IO, NOT_INSTALLED = 0, 1, 2, 3, 4, 5

# A launcher ends a whole job once one process leaves with an error, and drops what the others have not said yet, or
# have only just said: the first process, which speaks, lets its words go out, and the others let it speak.
_FIRST_LINGERS_S, _OTHERS_LINGER_S = 0.1, 1.0

_EPILOG = """\b
Exit codes:
  0  fine
  1  the move or its verification failed; nothing was published
  2  wrong usage or wrong input
  3  the memory ceiling is impossible
  4  the disk or file system failed (full, no permission)
  5  what was asked for is not installed
"""


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EPILOG,
    no_args_is_help=True,
)
@click.version_option(__version__, "--version", message="longshore %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(debug: bool) -> None:
    """Move distributed arrays from the layout they are in to the layout they are wanted in.

    Layouts are written as HPF writes them: "(BLOCK, *) on 4", "(CYCLIC(64), CYCLIC(64)) on 2x2".
    """


for _subcommand in (
    explain.explain,
    move.move,
    info.info,
    profile.calibrate,
    profile.profile,
    ranks.ranks,
    model.model,
    bench.bench,
):
    _subcommand.epilog = _subcommand.epilog or _EPILOG
    command.add_command(_subcommand)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line; returns nothing, exits with one of the codes in `--help`."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):  # names of files may have what a terminal cannot show
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:] if arguments is None else list(arguments))
    if code != FINE:
        _let_the_first_speak()
    sys.exit(code)


def _open_closed_streams() -> None:
    """Lets what is written to a standard stream that is closed go nowhere."""
    # By number, too: else a file that is opened later gets the number of a stream, and what libraries write there.
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))


def run(arguments: list[str]) -> int:
    """Runs the command line and returns the exit code. Every error becomes words on stderr."""
    # An option of any subcommand, up to where the words of somebody else's program may begin.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    if [word for word in arguments if word != "--debug"][:2] == ["ranks", "profile"]:
        end = arguments.index("profile")
    debug = "--debug" in arguments[:end]
    arguments = [word for word in arguments[:end] if word != "--debug"] + arguments[end:]
    try:
        # Not command.main(): it would turn a reader that goes away into exit code 1.
        with command.make_context("longshore", arguments) as context:
            command.invoke(context)
        sys.stdout.flush()
        return FINE
    except getattr(click.exceptions, "NoArgsIsHelpError", ()) as error:  # click 8.2 and later
        _tell(error.format_message())
        return WRONG_INPUT
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.UsageError as error:
        usage = error.ctx.get_usage() + "\n" if error.ctx is not None else ""
        where = f"; see '{error.ctx.command_path} --help'" if error.ctx is not None else ""
        words = error.format_message()
        _tell(f"{usage}longshore: {words.rstrip('.') if where else words}{where}")
        return WRONG_INPUT
    except click.ClickException as error:
        _tell(f"longshore: {error.format_message()}")
        return WRONG_INPUT
    except (click.Abort, KeyboardInterrupt):
        _tell("longshore: interrupted; nothing was published")
        _let_the_first_speak()
        return _leave(130)
    except BrokenPipeError:
        # Whoever read our output went away, as `head` does: not a failure of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at exit
        return FINE
    except Exception as error:
        if debug:
            traceback.print_exc()
        code, text = judge(error)
        if isinstance(error, (errors.LongshoreError, OSError, MemoryError, TeamError)):
            _tell(f"longshore: {text}")
            return code
        # An error that the processes did not agree on may be this one's alone, and would leave the others waiting.
        rank = launched_rank()
        _tell(f"longshore: rank {rank}: {text}" if rank else f"longshore: {text}", alone=True)
        return _leave(code)


def judge(error: BaseException) -> tuple[int, str]:
    """The exit code of an error and its words."""
    error = in_words(error)
    text = str(error)
    if isinstance(error, errors.VerificationError):
        return FAILED, text
    if isinstance(error, errors.NotInstalledError):
        return NOT_INSTALLED, text
    if isinstance(error, errors.MemoryLimitError):
        return MEMORY, text
    if isinstance(error, errors.StoreError):
        return (WRONG_INPUT, text) if error.errno is None else (IO, error.strerror or text)
    if isinstance(error, (errors.DisagreementError, errors.TransportError)):
        return FAILED, text
    if isinstance(error, errors.LongshoreError):
        return WRONG_INPUT, text
    if isinstance(error, MemoryError):
        return MEMORY, "out of memory; set a lower --max-mem"
    if isinstance(error, OSError):
        return IO, f"{error.filename}: {error.strerror}" if error.filename else text
    surprise = text if isinstance(error, TeamError) else f"{type(error).__name__}: {text}"
    return FAILED, f"internal error, {surprise} (run again with --debug for the place, and please report it)"


def _tell(text: str, alone: bool = False) -> None:
    """Says something on stderr, once in a job of many processes unless it may be this one's alone."""
    if alone or launched_rank() == 0:
        print(printable(text.rstrip("\n"), keep="\n"), file=sys.stderr, flush=True)
        if launched_size() != 1:
            _linger(_FIRST_LINGERS_S)


def _let_the_first_speak() -> None:
    if launched_rank() != 0:
        _linger(_OTHERS_LINGER_S)


def _linger(seconds: float) -> None:
    """Waits; an interrupt ends the waiting and nothing else."""
    with contextlib.suppress(KeyboardInterrupt):
        time.sleep(seconds)


def _leave(code: int) -> int:
    """Ends the whole MPI job, if there is one: the other processes may be waiting for this one."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized() and mpi.COMM_WORLD.Get_size() > 1:
        mpi.COMM_WORLD.Abort(code)
    if (mpi is None or not mpi.Is_initialized()) and launched_size() != 1:
        # Others may be in MPI_Init, which waits for this one. A launcher ends them where one of them ends by a signal,
        # not where one leaves that MPI has not heard of.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return code
