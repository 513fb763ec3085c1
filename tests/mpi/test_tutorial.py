"""The programs of the tutorial that run under mpiexec."""

import re
from pathlib import Path

import pytest
from launch import families, launch

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
PROGRAMS = [
    text for text in re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(), re.S) if "mpi4py import MPI" in text
]


@pytest.mark.skipif(not families(), reason="no MPI in this environment")
@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_program(tmp_path, program):
    script = tmp_path / "program.py"
    script.write_text(program)
    done = launch(families()[0], 4, script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"rank (\d):", done.stdout)) == list("0123")  # lines may come out mixed
