"""The extension modules: what they ask of the machine. Everything is looked at as it is installed."""

import subprocess
from pathlib import Path

import longshore_lab
import pytest

SONAMES = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40"}
MODULES = {path.name.split(".")[0]: path for path in Path(longshore_lab.__file__).parent.glob("_*.so")}


def dynamic_section(path):
    return subprocess.run(["readelf", "--wide", "--dynamic", path], capture_output=True, text=True, check=True).stdout


def test_the_loops_are_there():
    assert "_loops" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_no_module_has_a_run_path(name):
    section = dynamic_section(MODULES[name])
    assert "RPATH" not in section and "RUNPATH" not in section


@pytest.mark.parametrize("name", MODULES)
def test_each_module_asks_for_its_own_mpi_by_soname(name):
    needed = [line for line in dynamic_section(MODULES[name]).splitlines() if "(NEEDED)" in line and "libmpi" in line]
    kind, _, family = name[1:].rpartition("_")
    assert len(needed) == (kind in {"halo", "apps"})
    assert all(f"[{SONAMES[family]}]" in line for line in needed)
