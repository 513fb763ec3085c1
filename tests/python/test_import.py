"""What `import longshore` brings along, and what it leaves until it is wanted."""

import subprocess
import sys

LATER = ("longshore.stores", "concurrent.futures", "decimal", "hashlib", "logging", "mpi4py", "rich", "click")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_what_takes_long_is_imported_when_it_is_used():
    show = f"import sys; print(*[name for name in {LATER} if name in sys.modules])"
    before = set(run(f"import numpy; {show}"))
    assert set(run(f"import numpy, longshore; {show}")) == before
    assert "longshore.stores" in run(f"import longshore; longshore.stores.move; {show}")


def test_nothing_is_missing():
    assert run("from longshore import *; print(stores.__name__)") == ["longshore.stores"]
    assert run("import longshore as ls; print(all(hasattr(ls, n) and n in dir(ls) for n in ls.__all__))") == ["True"]
    wrong = "import longshore\ntry: longshore.store\nexcept AttributeError as error: print('store' in str(error))"
    assert run(wrong) == ["True"]


def test_a_program_that_ends_while_a_thread_has_something_of_ours_says_nothing():
    program = """
import threading, longshore as ls

def wait(begun):
    kept = ls.Layout("(BLOCK) on 2", (4,))
    begun.set()
    threading.Event().wait()

begun = threading.Event()
threading.Thread(target=wait, args=(begun,), daemon=True).start()
begun.wait()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == ended.stderr == ""
