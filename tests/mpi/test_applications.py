"""The applications under mpiexec: published results of the NAS benchmarks, serial references for the others, in all variants."""

from pathlib import Path

import pytest
from launch import families, launch

SCRIPT = Path(__file__).parent / "scripts" / "applications.py"

pytestmark = pytest.mark.skipif(not families(), reason="no MPI in this environment")

# One BLAS thread a rank: there are more ranks than cores.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}


def verified(family, ranks, *problems, timeout=250):
    done = launch(family, ranks, SCRIPT, *problems, timeout=timeout, env=ONE_THREAD)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert "all done" in done.stdout
    for problem in problems:
        name = problem.split(":")[0]
        if f"{name} missing" in done.stdout:
            pytest.skip(f"{name} was left out of this build")
        assert f"{problem} verified" in done.stdout


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("family", families())
def test_classes_s_and_w(family, ranks):
    verified(family, ranks, "mg:S", "mg:W", "ft:S", "ft:W")


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("family", families()[:1])
def test_class_a(family, ranks):
    verified(family, ranks, "mg:A", "ft:A")


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("family", families())
def test_against_serial_references(family, ranks):
    verified(family, ranks, "redblack3d:40:10", "redblack3d:17:3", "summa:200:32", "summa:131:17")
