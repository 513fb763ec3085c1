"""MPI's derived datatypes without an MPI. With one, they see scripts/datatypes.py and scripts/datatype_edges.py."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("call", ["from_mpi_datatype(None)", "to_mpi_datatype(None)"])
def test_without_mpi4py(call):
    program = f"""
import sys
sys.modules["mpi4py"] = None
import longshore
try:
    longshore.{call}
except longshore.NotInstalledError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert call.split("(")[0] in done.stdout and "pip install 'longshore[mpi]'" in done.stdout, (
        done.stdout + done.stderr
    )
