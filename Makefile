# `make demo` and `make test` do their own set-up in .venv and do nothing twice.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-full lint format bench clean

demo: .venv/.core
	$(BIN)/dovetail demo

test: .venv/.dev lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-full: .venv/.dev lint
	DOVETAIL_FULL=1 $(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

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

.venv/.dev: .venv/.core
	$(PIP) --no-build-isolation --editable ".[dev]"
	touch $@
