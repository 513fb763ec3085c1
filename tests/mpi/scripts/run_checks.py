"""Runs checks one after the other in one MPI job.

    mpiexec -n P python run_checks.py CHECK...

A CHECK is `script.function`, `script.function(1, 2)` where the function takes numbers, or a script's name for all
those of it that take none. Scripts lie beside this one or on PYTHONPATH. Rank 0 says when a check begins and when it
is done. A rank that fails says where, and ends the job: the others may be waiting for it. Who hangs for
LONGSHORE_CHECK_LIMIT_S says where.
"""

import ast
import faulthandler
import gc
import importlib
import os
import sys
import time
import traceback

from checks import CHECKS, ME, WORLD, P

LIMIT_S = float(os.environ.get("LONGSHORE_CHECK_LIMIT_S", 600))


def say(*words):
    if ME == 0:
        sys.stdout.write(" ".join((">>>", *words)) + "\n")  # at once: another rank may end the job at any time
        sys.stdout.flush()


def named(words):
    """One check, or all of a script."""
    if "." in words:
        return [words]
    importlib.import_module(words)
    return [name for name, f in CHECKS.items() if name.startswith(f"{words}.") and not f.__code__.co_argcount]


def run(words):
    name, _, numbers = words.partition("(")
    importlib.import_module(name.partition(".")[0])
    CHECKS[name](*ast.literal_eval(f"({numbers[:-1]},)") if numbers else ())


for words in [name for given in sys.argv[1:] for name in named(given)]:
    say("begins", words)
    WORLD.Barrier()  # whoever ends the job ends it in this check
    begin = time.monotonic()
    faulthandler.dump_traceback_later(LIMIT_S)
    try:
        run(words)
        gc.collect()  # what it held is no burden of the next
    except BaseException:
        sys.stderr.write(f"rank {ME} of {P}: {words} failed\n{traceback.format_exc()}")
        sys.stderr.flush()
        time.sleep(0.2)  # a launcher may drop what it has not passed on when the job ends
        WORLD.Abort(1)
        os._exit(1)  # Abort may return, and the next barrier is not the one that the others wait in
    WORLD.Barrier()
    faulthandler.cancel_dump_traceback_later()
    say("done", words, f"{time.monotonic() - begin:.2f} s")
