"""The examples in Python under mpiexec: each compares its result with NumPy's."""

from pathlib import Path

import pytest
from launch import families, launch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = pytest.mark.skipif(not families(), reason="no MPI in this environment")

# One BLAS thread a rank: there are more ranks than cores.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("family", families())
@pytest.mark.parametrize("name, options, words", [
    ("redblack3d.py", ["--size", "13", "--iterations", "3"], "bit by bit"),
    ("summa.py", ["--size", "50", "--panel", "16"], "As NumPy has it."),
    ("mesh.py", ["--side", "23"], "the area is right"),
])  # fmt: skip
def test_examples_in_python(family, ranks, name, options, words):
    done = launch(family, ranks, EXAMPLES / name, *options, timeout=100, env=ONE_THREAD)
    assert done.returncode == 0 and words in done.stdout, f"{done.stdout}\n{done.stderr[-4000:]}"
