"""The applications under mpiexec in all variants: published results of NAS, serial references for the others."""

from pathlib import Path

import pytest
from launch import families, launch

SCRIPT = Path(__file__).parent / "scripts" / "applications.py"

pytestmark = pytest.mark.skipif(not families(), reason="no MPI in this environment")

# One BLAS thread a rank: there are more ranks than cores.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}


ALL = "longshore,overlapped,twin"


def verified(family, ranks, variants, *problems):
    done = launch(family, ranks, SCRIPT, variants, *problems, timeout=250, env=ONE_THREAD)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert "all done" in done.stdout
    for problem in problems:
        name = problem.split(":")[0]
        if f"{name} missing" in done.stdout:
            pytest.skip(f"{name} was left out of this build")
        assert f"{problem} verified" in done.stdout


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_nas_classes(ranks):
    verified(families()[0], ranks, ALL, "mg:S", "ft:S")
    verified(families()[0], ranks, "longshore", "mg:W", "ft:W", "mg:A", "ft:A")


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_mg_from_windows(ranks):
    verified(families()[0], ranks, "windows,windows/3,windows/8", "mg:S", "mg:W")


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_against_serial_references(ranks):
    verified(families()[0], ranks, ALL, "redblack3d:40:10", "redblack3d:17:3", "summa:200:32", "summa:131:17")


@pytest.mark.parametrize("family", families()[1:])
def test_with_another_mpi(family):
    verified(family, 2, ALL, "mg:W", "ft:W", "redblack3d:40:10", "summa:131:17")
