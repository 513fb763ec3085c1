"""The commands of `longshore bench`, which looks for them here."""

import signal

import click

from . import BENCHES

_FILE = {"type": click.Path(dir_okay=False), "metavar": "FILE"}
_COMMON = (
    click.option("--quick", is_flag=True, help="Small sizes and few repetitions: under 30 s."),
    click.option("--json", **_FILE, help="Write the results as JSON to FILE."),
    click.option("--plot", **_FILE, help="Draw the results into FILE (png, svg, html)."),
)
# By name: the word on the command line, what it takes, and what is said of it where the bench says nothing.
_NAMES, _NUMBER = {"multiple": True, "metavar": "NAME"}, {"type": click.IntRange(1), "metavar": "N"}
_PROGRAM = {"metavar": "PROGRAM"}
_OPTIONS = {
    "mpiexec": ("--mpiexec", _PROGRAM, "The launcher.  [default: this environment's own]"),
    "ranks": ("--ranks", _NUMBER, "MPI processes.  [default: 2]"),
    "cases": ("--case", _NAMES, ""),
    "sizes": ("--size", {"multiple": True, **_NUMBER}, ""),
    "contenders": ("--contender", _NAMES, ""),
    "boxes": ("--boxes", _NUMBER, ""),
    "link": ("--link", {"metavar": "RATE"}, "Also between nodes that links of this rate join, such as 1gbit."),
    "maps": ("--maps", _NUMBER, ""),
    "plans": ("--plans", _NUMBER, ""),
    "seed": ("--seed", {"type": click.IntRange(0), "metavar": "N"}, ""),
    "seeds": ("--seeds", {"type": click.IntRange(1), "metavar": "K"}, ""),
    "tables": ("--tables", {"is_flag": True}, "Also with every other set of copy kernels that this processor can run."),
    "repeats": ("--repeats", {**_NUMBER, "metavar": "K"}, "Repetitions of every case."),
    "scale": ("--scale", {"type": click.FloatRange(0, 1, min_open=True), "metavar": "SCALE"}, ""),
    "codecs": ("--codec", _NAMES, ""),
    "folder": ("--folder", {"type": click.Path(file_okay=False), "metavar": "FOLDER"}, ""),
    "limit": ("--limit", {"type": click.FloatRange(0, min_open=True), "metavar": "SECONDS"}, ""),
    "peer_pythons": ("--peer-python", {"multiple": True, **_PROGRAM}, ""),
    "mpi_pythons": ("--mpi-python", {"multiple": True, **_PROGRAM}, ""),
}


def _option(name, words):
    flag, takes, usual = _OPTIONS[name]
    words = words or usual
    return click.option(flag, name, **takes, help=f"{words} (may be repeated)." if takes.get("multiple") else words)


def _stop(number, _):
    raise SystemExit(128 + number)  # in a regular way: what was started is ended


def _command(bench):
    def run(**options):
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _stop)
        # An option that was not given leaves the bench its default.
        bench.run(**{key: value for key, value in options.items() if value not in (None, ())})

    for option in reversed([*_COMMON, *(_option(name, words) for name, words in bench.options.items())]):
        run = option(run)
    sentence = f"{bench.description[0].upper()}{bench.description[1:]}."
    return click.command(bench.name, short_help=bench.description, help=sentence)(run)


COMMANDS = {name: _command(bench) for name, bench in BENCHES.items()}
