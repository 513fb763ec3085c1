"""A process has one profile of its copy kernels, whichever of Longshore's modules copies."""

import json
from pathlib import Path

import pytest
from launch import families, launch

FIRST_STREAMS = Path(__file__).parent / "scripts" / "first_streams.py"
SLOW = [pytest.param(family, marks=pytest.mark.slow) for family in families()[1:]]


@pytest.mark.parametrize("family", families()[:1] + SLOW)
def test_the_mpi_engine_has_the_profile_of_its_process(family, tmp_path):
    env = {"LONGSHORE_PROFILE": "", "XDG_CONFIG_HOME": str(tmp_path), "LONGSHORE_KERNEL_PROBE": "always"}
    done = launch(family, 2, FIRST_STREAMS, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    ranks = json.loads(done.stdout)
    assert [(before, after) for before, after, *_ in ranks] == [(True, False)] * 2
    assert all("at first use" in by for *_, by in ranks)
    # Of several that have found everything at the same time one has kept it.
    kept = [path.name for path in tmp_path.rglob("*.json*")]
    assert len(kept) <= 1 and not any(name.startswith(".") for name in kept)
