"""The mpi engine under mpiexec, with every MPI that is there, at 1, 2, 3, 4, 7 and 8 ranks."""

from pathlib import Path

import pytest
from launch import RANKS, families, launch

SCRIPTS = Path(__file__).parent / "scripts"

pytestmark = pytest.mark.skipif(not families(), reason="no MPI in this environment")


def run(family, ranks, script, *args, timeout=150):
    done = launch(family, ranks, SCRIPTS / script, *args, timeout=timeout)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.stdout


# Fewer plans where ranks outnumber the processors of a small machine.
@pytest.mark.parametrize("ranks, plans", [(1, 150), (2, 250), (3, 200), (4, 150), (7, 60), (8, 60)])
@pytest.mark.parametrize("family", families())
def test_random_plans(family, ranks, plans):
    assert f"{plans} plans moved" in run(family, ranks, "random_plans.py", ranks, plans)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("family", families())
def test_behaviour(family, ranks):
    out = run(family, ranks, "behaviour.py")
    assert "destroyed_in_flight ok" in out, out


@pytest.mark.parametrize("ranks, trials", [(1, 40), (2, 120), (3, 50), (4, 40), (7, 12), (8, 12)])
@pytest.mark.parametrize("family", families())
def test_blocks(family, ranks, trials):
    assert f"{trials} trials moved" in run(family, ranks, "blocks.py", trials)


@pytest.mark.parametrize("ranks, trials", [(1, 30), (2, 150), (3, 60), (4, 40), (8, 15)])
@pytest.mark.parametrize("family", families())
def test_block_kinds(family, ranks, trials):
    assert f"{trials} trials moved" in run(family, ranks, "block_kinds.py", trials)


@pytest.mark.parametrize("family", families())
def test_the_module_of_another_family_is_refused(family):
    assert "refused" in run(family, 2, "wrong_family.py")
