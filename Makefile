# Everything sets itself up: `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test lint unit docs bench clean

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --editable . --group dev
	@touch $@

demo: $(READY) ## sketch a real health survey and show the release
	$(BIN)/python examples/demo.py

test: lint docs unit ## every check

lint: $(READY) ## style, types, the wall, the repository's habits
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/repo-review .

unit: $(READY) ## unit, contract, property, statistical, golden, end-to-end and documentation tests
	$(BIN)/pytest --numprocesses $(WORKERS)

docs: $(READY) ## build the site; a warning is an error
	$(BIN)/sphinx-build --fail-on-warning --quiet -b html docs docs/_build/html

bench: $(READY) ## throughput against the plain float32 path; results go to benchmarks/results
	$(BIN)/python benchmarks/throughput.py

clean: ## remove everything that can be made again
	rm -rf $(VENV) docs/_build demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
