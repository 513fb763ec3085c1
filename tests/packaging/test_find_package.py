"""The installed C++ package: examples/cpp, built through find_package and run."""

import shutil

import pytest
from launch import families
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
    assert run(build / "redistribute")
    assert "as triangle in" in run(build / "rank_module")


@pytest.fixture(scope="session")
def mpi_examples(prefix, tmp_path_factory):
    return build_example(prefix, tmp_path_factory.mktemp("example"), "-DWITH_MPI=ON")


@pytest.mark.skipif("mpich" not in families(), reason="no MPICH here")
@pytest.mark.parametrize("example", ["redistribute_mpi", "virtual_comm"])
@pytest.mark.parametrize("ranks", [1, 4])
def test_the_mpi_examples_run(mpi_examples, example, ranks):
    done = run_under(["mpiexec", "-n", ranks, mpi_examples / example], "mpich")
    assert done.returncode == 0, done.stdout + done.stderr
