# `make demo` and `make test` do their own set-up in .venv and do nothing twice.
PYTHON ?= python3
BIN := .venv/bin
# files are compiled when they are first imported (most never are), and only then: some hundred processes follow
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

MACHINE := $(shell uname -m)

.PHONY: demo test suite test-full test-busy test-arithmetic coverage lint format docs gallery bench clean

PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal --durations=25 --durations-min=3

# What every answer passes through, whichever method found it: `make coverage` has a floor for it. It is no part of
# `make test`: on Python 3.11 tracing costs about half as much time again.
CORE := core run coupling
QUICK := tests/core tests/run tests/coupling
# one point below what was measured when this was written: new code here comes with tests
FLOOR := 94

demo: .venv/.core
	$(BIN)/dovetail demo

# mypy shares the two cores with the tests, so that no core waits for it
test: .venv/.dev
	$(MAKE) --jobs 2 lint suite

suite: .venv/.dev
	$(PYTEST)

test-full: export DOVETAIL_FULL = 1
test-full: .venv/.full
	$(MAKE) --jobs 2 lint coverage
	$(PYTEST) $(QUICK:%=--ignore=%)

# The suite with busy processes beside it: no test may hang on how fast the machine is. See CONTRIBUTING.md.
BUSY ?= 4

test-busy: .venv/.dev
	$(BIN)/python -m tests.busy $(BUSY) $(PYTEST)

coverage: .venv/.dev
	$(PYTEST) $(QUICK) $(CORE:%=--cov=dovetail.%) --cov-report=term:skip-covered --cov-fail-under=$(FLOOR)

# The same tests with other last digits: other vector units, other kernels, two threads, and "shaken" products of
# matrices (tests/shaken.py), which do on any machine what another processor might. See CONTRIBUTING.md.
# Only what asks a network; engines, files and the command line rest on no comparison of two routes.
ROUTES := tests/core tests/coupling tests/linearised tests/methods tests/nn tests/structure tests/reformulations tests/run \
	tests/predictors/scikit_learn tests/predictors/test_register.py \
	tests/conformance/test_methods.py tests/conformance/test_nn_solvers.py tests/conformance/test_predictors.py \
	tests/differential/test_row_by_row.py tests/study/problems tests/study/big_m tests/study/test_single_step_gradient.py \
	tests/predictors/torch
CORETYPE := $(if $(filter x86_64,$(MACHINE)),Haswell,ARMV8)
# unsteady predictors shake by themselves
UNSHAKEN := --deselect tests/core/test_steadiness.py
VARIATIONS := ATEN_CPU_CAPABILITY=default OPENBLAS_CORETYPE=$(CORETYPE) DOVETAIL_TEST_THREADS=2 \
	DOVETAIL_TEST_SHAKEN=1 DOVETAIL_TEST_SHAKEN=6 $(if $(filter x86_64,$(MACHINE)),ATEN_CPU_CAPABILITY=avx2)

test-arithmetic: .venv/.dev
	set -e; for variation in $(VARIATIONS); do echo "--- $$variation"; \
	env $$variation $(BIN)/python -m pytest -n 2 --dist worksteal $(ROUTES) $$(case $$variation in *SHAKEN*) echo '$(UNSHAKEN)';; esac); done

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site, into build/site; a broken link, a page or an anchor that is not there are errors. tests/test_site.py builds it too.
docs: .venv/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# The pages of the gallery, run again (minutes); they are kept, so that the site is built in seconds.
gallery: .venv/.dev
	$(BIN)/python -m website.run_gallery

# Side-by-side measurements; nothing here passes or fails.
bench: .venv/.dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv build dist src/*.egg-info

.venv/.core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) "setuptools>=77" wheel "torch>=2.10,<2.14"
	$(PIP) --no-build-isolation --editable .
	touch $@

# Torch's files are compiled by their first import, which takes many seconds: on one core while the other installs,
# rather than by both workers of the first tests.
.venv/.dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) "setuptools>=77" wheel "torch>=2.10,<2.14"
	$(BIN)/python -c "import torch._dynamo" 2> /dev/null & $(PIP) --no-build-isolation --editable ".[dev]" && wait
	touch .venv/.core $@

# Libraries that are too heavy for every run.
.venv/.full: .venv/.dev
	$(PIP) --no-build-isolation --editable ".[full]"
	touch $@
