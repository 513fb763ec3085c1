"""What the packaging tests test: the wheel and the build directory that `make check` has just made."""

import sys
from pathlib import Path

import pytest
from shell import ROOT, run


@pytest.fixture(scope="session")
def wheel() -> Path:
    wheels = sorted((ROOT / "build" / "packages").glob("longshore-*.whl"))
    if not wheels:
        pytest.fail("there is no wheel in build/packages: run `make build/packages/built`")
    return wheels[-1]


@pytest.fixture(scope="session")
def empty_python(tmp_path_factory, wheel) -> Path:
    """The interpreter of a new environment that has the wheel and what it depends on, and no MPI."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", wheel)
    return python


@pytest.fixture(scope="session")
def prefix(tmp_path_factory) -> Path:
    """Where the C++ library is installed for find_package."""
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--build", ROOT / "build" / "wheel", "--target", "longshore_development")
    run("cmake", "--install", ROOT / "build" / "wheel", "--component", "development", "--prefix", folder)
    return folder
