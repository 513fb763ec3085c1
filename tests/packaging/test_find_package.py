"""The installed C++ package: examples/cpp, built through find_package and run."""

import shutil
import subprocess

import pytest
from launch import families, interpreters
from launch import run as run_under
from shell import ROOT, run

EXAMPLE = ROOT / "examples" / "cpp"

PLAIN_PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(plain LANGUAGES CXX)
set(CMAKE_DISABLE_FIND_PACKAGE_MPI ON)  # looking for MPI would be an error here
find_package(longshore CONFIG REQUIRED)
if(TARGET longshore::mpi OR DEFINED MPI_FOUND OR MPI_CXX_FOUND)
  message(FATAL_ERROR "MPI was looked for")
endif()
add_executable(plain plain.cpp)
target_link_libraries(plain PRIVATE longshore::core)
"""


def build_example(prefix, source, *options):
    """The build directory of examples/cpp, which knows the library only by its installed package."""
    shutil.copytree(EXAMPLE, source, dirs_exist_ok=True)
    build = source / "build"
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", *options)
    run("cmake", "--build", build, timeout=600)
    return build


def test_core_without_a_look_for_mpi(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PLAIN_PROJECT)
    (tmp_path / "plain.cpp").write_text(
        '#include "longshore/core/checked.hpp"\nint main() { return longshore::checked_add(20, 22) == 42 ? 0 : 1; }\n'
    )
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    run(tmp_path / "build" / "plain")


def test_the_examples_run(prefix, tmp_path):
    build = build_example(prefix, tmp_path)
    assert "belongs: yes" in run(build / "redistribute")
    assert "all the heat is still there: 1000.000000" in run(build / "halo")
    assert "as triangle in" in run(build / "rank_module")


@pytest.fixture(scope="session")
def mpi_examples(prefix, tmp_path_factory):
    return build_example(prefix, tmp_path_factory.mktemp("example"), "-DWITH_MPI=ON")


@pytest.mark.skipif("mpich" not in families(), reason="no MPICH here")
@pytest.mark.parametrize("example", ["redistribute_mpi", "virtual_comm", "ghosts_mpi", "strips_mpi"])
@pytest.mark.parametrize("ranks", [1, 4])
def test_the_mpi_examples_run(mpi_examples, example, ranks):
    done = run_under(["mpiexec", "-n", ranks, mpi_examples / example], "mpich")
    assert done.returncode == 0, done.stdout + done.stderr


A_MODULE_OF_A_FAMILY = """
cmake_minimum_required(VERSION 3.25)
project(module LANGUAGES CXX)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
find_package(longshore CONFIG REQUIRED COMPONENTS {family})
add_library(module MODULE module.cpp)
target_link_libraries(module PRIVATE longshore::mpi_{family})
set_target_properties(module PROPERTIES PREFIX "" SKIP_BUILD_RPATH ON)
"""

A_CALL_OF_THE_ENGINE = """
#include <longshore/engines/mpi.hpp>
extern "C" int rank_of_world(unsigned long long bits) {
  return int(longshore::mpi::comm_facts(longshore::mpi::CommHandle::from_bits(bits)).rank);
}
"""


@pytest.mark.parametrize("family", families())
def test_an_extension_module_has_the_engine_of_its_family(prefix, tmp_path, family):
    """Linked by soname, without a run path; the process's MPI is there before it."""
    (tmp_path / "CMakeLists.txt").write_text(A_MODULE_OF_A_FAMILY.format(family=family))
    (tmp_path / "module.cpp").write_text(A_CALL_OF_THE_ENGINE)
    python = interpreters()[family]
    root = f"-DLONGSHORE_{family.upper()}_ROOT={python.parent.parent}"
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", root)
    run("cmake", "--build", tmp_path / "build")
    section = run("readelf", "--wide", "--dynamic", tmp_path / "build" / "module.so")
    assert "RUNPATH" not in section and "RPATH" not in section
    program = (
        "import ctypes, sys; from mpi4py import MPI; of = ctypes.CDLL(sys.argv[1]).rank_of_world; "
        "of.argtypes = [ctypes.c_uint64]; assert of(MPI.COMM_WORLD.handle % 2**64) == MPI.COMM_WORLD.rank"
    )
    command = ["mpiexec", "-n", 2, python, "-c", program, tmp_path / "build" / "module.so"]
    done = run_under(command, family)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_family_that_is_not_there_is_told(prefix, tmp_path):
    needed = "COMPONENTS openmpi"
    optional = f"{needed} OPTIONAL_COMPONENTS mpich abi"  # of what is missing there nothing is said
    project = A_MODULE_OF_A_FAMILY.format(family="openmpi").replace(needed, optional)
    (tmp_path / "CMakeLists.txt").write_text(project)
    (tmp_path / "module.cpp").write_text(A_CALL_OF_THE_ENGINE)
    root = f"-DLONGSHORE_OPENMPI_ROOT={tmp_path}"
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", root]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    words = " ".join(done.stderr.split())
    assert done.returncode != 0
    missing = "headers and the library of openmpi are not found; set LONGSHORE_OPENMPI_ROOT to the prefix"
    assert missing in words or "without its engine for openmpi" in words
