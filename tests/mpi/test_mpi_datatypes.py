"""MPI's derived datatypes and address relations, with every MPI that is there."""

import subprocess
import sys
from pathlib import Path

import pytest
from launch import families, launch

SCRIPTS = Path(__file__).parent / "scripts"

needs_mpi = pytest.mark.skipif(not families(), reason="no MPI in this environment")


def run(family, ranks, script, *args, timeout=150):
    done = launch(family, ranks, SCRIPTS / script, *args, timeout=timeout)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@needs_mpi
@pytest.mark.parametrize(
    "family, seed", [(f, seed) for f in families() for seed in ((1, 2, 3) if f in families()[:1] else (1, 2))]
)
def test_random_datatypes(family, seed):
    assert "1500 datatypes" in run(family, 1, "datatypes.py", seed, 1500)


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("family", families())
def test_edges(family, ranks):
    assert "edges ok" in run(family, ranks, "datatype_edges.py")


@pytest.mark.parametrize("call", ["from_mpi_datatype(None)", "to_mpi_datatype(None)"])
def test_without_mpi4py(call):
    program = f"""
import sys
sys.modules["mpi4py"] = None
import longshore
try:
    longshore.{call}
except longshore.ArgumentError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert call.split("(")[0] in done.stdout and "pip install 'longshore[mpi]'" in done.stdout, (
        done.stdout + done.stderr
    )
