"""`longshore calibrate` under mpiexec: one profile, written once. What each rank has is a check of
scripts/calibration.py."""

import json
from pathlib import Path

import pytest
from launch import families, launch
from longshore import tune

FEW_COPIES = Path(__file__).parent / "scripts" / "few_copies.py"
SLOW = [pytest.param(family, marks=pytest.mark.slow) for family in families()[1:]]


@pytest.mark.parametrize("family", families()[:1] + SLOW)
def test_two_processes_measure_what_they_exchange(family, tmp_path):
    path = tmp_path / "machine.json"
    done = launch(family, 2, FEW_COPIES, "calibrate", "--quick", env={"LONGSHORE_PROFILE": str(path)}, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("written to") == 1 and "exchanges with other nodes: none" in done.stdout
    profile = tune.MachineProfile.load(path)
    assert {one["way"] for one in profile.facts["exchanges"]} == {"direct", "ring", "messages", "collective", "gets"}
    assert profile.facts["memory_load_seconds_per_byte"] > 0
    assert profile.facts["mpi"].split()[0] == {"mpich": "MPICH", "openmpi": "Open"}[family]
    done = launch(family, 2, "longshore.cli", "profile", "show", path, "--json")
    assert done.returncode == 0 and json.loads(done.stdout) == profile.facts
    done = launch(family, 2, "longshore.cli", "calibrate", "-o", tmp_path / "machine.json" / "x")
    assert done.returncode == 4 and done.stderr.count("longshore:") == 1
