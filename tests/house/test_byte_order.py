"""Machines whose bytes lie the other way round are refused when compiling."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which(os.environ.get("CXX", "c++"))


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("order", ["little", "big"])
def test_big_endian_machines_are_refused(order):
    # As a compiler for such a machine would have it.
    macros = ["-w", "-U__BYTE_ORDER__", f"-D__BYTE_ORDER__=__ORDER_{order.upper()}_ENDIAN__"]
    done = subprocess.run(
        [COMPILER, "-std=gnu++20", "-fsyntax-only", *macros, "-I", ROOT / "include", "-x", "c++", "-"],
        input="#include <longshore/core/checked.hpp>\n",
        capture_output=True,
        text=True,
    )
    assert (done.returncode == 0) == (order == "little"), done.stderr
    assert ("little-endian machines only" in done.stderr) == (order == "big")
