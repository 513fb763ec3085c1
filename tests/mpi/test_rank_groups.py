"""Rank maps with MPI's groups and communicators, with every MPI that is there. A world of 8 is cut into communicators of 1, 2, 3,
4, 7 and 8 ranks."""

from pathlib import Path

import pytest
from launch import families, launch

SCRIPT = Path(__file__).parent / "scripts" / "rank_groups.py"

pytestmark = pytest.mark.skipif(not families(), reason="no MPI in this environment")


@pytest.mark.parametrize("family", families())
def test_rank_groups(family):
    done = launch(family, 8, SCRIPT, timeout=100)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    assert "44 checks ok" in done.stdout
