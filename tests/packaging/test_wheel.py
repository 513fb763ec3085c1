"""The wheel: what is in it, what its modules ask of the machine, and that it works where there is no MPI."""

import os
import subprocess
import zipfile

import pytest
from shell import run

SONAMES = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40", "abi": "libmpi_abi.so.1"}

A_TINY_MOVE = """
import numpy as np
import longshore as ls

array = np.arange(60.0).reshape(6, 10)
source = ls.Layout("(BLOCK, *) on 4", shape=array.shape)
destination = ls.Layout("(CYCLIC(2), CYCLIC) on 2x2", shape=array.shape)
moved = ls.redistribute(ls.scatter(array, source), source, destination)
np.testing.assert_array_equal(ls.gather(moved, destination), array)
assert "libmpi" not in open("/proc/self/maps").read(), "an MPI library was loaded"
assert ls.tune.coarse_profile().coarse, "the profile of no machine in particular is not there"
print("moved", ls.__version__)
"""


@pytest.fixture(scope="session")
def contents(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder / "longshore"


def modules(contents):
    return {path.name.split(".")[0]: path for path in contents.glob("_*.so")}


def dynamic_section(path):
    return subprocess.run(["readelf", "--wide", "--dynamic", path], capture_output=True, text=True, check=True).stdout


def test_it_has_the_modules_of_the_families_that_were_there(contents):
    expected = {
        "_core",
        "_mpi_mpich",
        "_rank_profile_mpich",
        "_mpi_abi",
        "_rank_profile_abi",
    }
    if os.path.exists(os.environ.get("LONGSHORE_OPENMPI_PYTHON", "")):
        expected |= {"_mpi_openmpi", "_rank_profile_openmpi"}
    assert set(modules(contents)) == expected
    assert not [path for path in contents.rglob("*") if "bench" in path.name and path.name != "bench.py"]


def test_it_is_small(contents, wheel):
    assert wheel.stat().st_size <= 12e6
    # Each module has what it needs of the core in it, and so does each tool that profiles ranks.
    assert sum(path.stat().st_size for path in contents.parent.rglob("*") if path.is_file()) <= 18e6


def test_the_licences_of_what_it_contains_are_in_it(contents):
    names = {path.name for path in contents.parent.rglob("licenses/*")}
    assert names == {"LICENSE", "THIRD_PARTY.md"}


def test_it_has_types(contents):
    assert (contents / "py.typed").is_file()
    stub = (contents / "_core.pyi").read_text()
    assert "class " in stub
    compile(stub, "_core.pyi", "exec")


def test_no_module_has_a_run_path(contents):
    for name, path in modules(contents).items():
        section = dynamic_section(path)
        assert "RPATH" not in section and "RUNPATH" not in section, name


def test_each_module_asks_for_its_own_mpi_by_soname(contents):
    for name, path in modules(contents).items():
        needed = [line for line in dynamic_section(path).splitlines() if "(NEEDED)" in line and "libmpi" in line]
        kind, _, family = name[1:].rpartition("_")
        assert len(needed) == (kind == "mpi"), name
        assert all(f"[{SONAMES[family]}]" in line for line in needed), name


def test_it_carries_no_mpi(contents):
    assert not list(contents.parent.rglob("libmpi*"))
    assert not list(contents.parent.rglob("mpi*.h"))


def test_it_imports_and_moves_without_mpi(empty_python):
    run(empty_python, "-c", "import importlib.util as u; assert not u.find_spec('mpi4py')")
    assert "moved" in run(empty_python, "-c", A_TINY_MOVE)


def test_the_command_works_without_mpi(empty_python):
    layouts = ["--from", "(BLOCK, *) on 4", "--to", "(CYCLIC(64), CYCLIC(64)) on 2x2"]
    command = [empty_python.parent / "longshore", "explain", "--shape", "512x512", "--dtype", "float64", *layouts]
    assert run(*command)


def test_the_version_is_the_package_s(empty_python, wheel):
    import_it = "import importlib.metadata as m, longshore; print(longshore.__version__, m.version('longshore'))"
    version = wheel.name.split("-")[1]
    assert run(empty_python, "-c", import_it).split() == [version, version]


def test_each_mpi_module_loads_with_its_mpi(contents):
    """A missing symbol shows here, not at a user's: bind everything at load, one process a family."""
    from launch import interpreters

    homes = dict(interpreters())
    if "mpich" in homes:
        homes["abi"] = homes["mpich"]  # the mpich package carries the standard ABI's library too
    program = "import importlib, sys; importlib.import_module('longshore._mpi_' + sys.argv[1])"
    for family, python in homes.items():
        libraries = str(python.parent.parent / "lib")
        environment = {
            **os.environ,
            "PYTHONPATH": str(contents.parent),
            "LD_BIND_NOW": "1",
            "LD_LIBRARY_PATH": libraries,
        }
        done = subprocess.run(
            [python, "-c", program, family], env=environment, cwd="/", capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{family}: {done.stderr}"
