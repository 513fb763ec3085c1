"""XArrays and files under mpiexec, with every MPI that is there."""

from pathlib import Path

import pytest
from launch import families, launch

SCRIPT = Path(__file__).parent / "scripts" / "block_files.py"

pytestmark = pytest.mark.skipif(not families(), reason="no MPI in this environment")


@pytest.mark.parametrize("ranks, trials", [(1, 20), (2, 40), (3, 25), (4, 20), (7, 8)])
@pytest.mark.parametrize("family", families())
def test_block_files(family, ranks, trials, tmp_path):
    done = launch(family, ranks, SCRIPT, trials, tmp_path, timeout=150)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    assert f"{trials} trials moved: npy, raw" in done.stdout
