# Everything sets itself up: `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH := $(VENV)/.bench
PEERS := .venv-peers
SMARTNOISE := .venv-smartnoise
TABLES := $(BIN)/python benchmarks/tables.py
QUERIES := $(BIN)/python benchmarks/queries.py
COMPARE := $(BIN)/python benchmarks/compare.py
IMAGES := $(BIN)/python benchmarks/images.py
DEVICE ?= cpu
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test lint unit docs bench bench-throughput bench-tables bench-queries bench-compare bench-images bench-pages bench-scale results results-quick screens clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --editable '.[checkpoint,evaluate,images,learn,spark,sql,web]' --group dev
	.ci/packages
	@touch $@

demo: $(READY) ## sketch a real health survey, draw a synthetic table from the release and judge it
	$(BIN)/python examples/demo.py

test: lint docs unit ## every check

lint: $(READY) ## style, types, the wall, the repository's habits
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/repo-review .

unit: $(READY) ## unit, contract, property, statistical, golden, end-to-end and documentation tests
	$(BIN)/pytest --numprocesses $(WORKERS) --dist loadgroup

docs: $(READY) ## build the site; a warning is an error
	$(BIN)/sphinx-build --fail-on-warning --quiet -b html docs docs/_build/html

bench: bench-throughput bench-tables bench-queries bench-compare bench-images bench-pages bench-scale ## every benchmark; results go to benchmarks/results and the docs

bench-throughput: $(READY) ## throughput against the plain float32 path
	$(BIN)/python benchmarks/throughput.py

bench-tables: $(BENCH) $(PEERS)/.ready ## synthetic tables beside AIM, MST and the papers: a day; goes on where it was
	$(TABLES) adult
	$(TABLES) mixture
	$(TABLES) marginals
	$(TABLES) development
	$(TABLES) unseen
	$(TABLES) papers
	$(TABLES) render

bench-queries: $(BENCH) $(PEERS)/.ready ## questions to a release: accuracy, coverage, SQL on Adult, time
	$(QUERIES) tasks
	$(QUERIES) coverage
	$(QUERIES) sql
	$(QUERIES) speed
	$(QUERIES) hostile
	$(QUERIES) learn
	$(QUERIES) dp_erm
	$(QUERIES) render

bench-compare: $(BENCH) ## two-sample tests: power, level, real tables, time
	$(COMPARE) power
	$(COMPARE) level
	$(COMPARE) splits
	$(COMPARE) adult
	$(COMPARE) speed
	$(COMPARE) render

bench-images: $(BENCH) ## private images beside the papers; with DEVICE=cuda also those that need a GPU
	$(IMAGES) merf
	$(IMAGES) hp
	$(IMAGES) gaussian
	$(IMAGES) alone
	$(IMAGES) centred
	$(IMAGES) mepf --device $(DEVICE)
	$(IMAGES) cifar --device $(DEVICE)
	$(IMAGES) render

results: $(BENCH) $(PEERS)/.ready ## every table and figure of the papers: days; goes on where it was
	$(BIN)/python benchmarks/book.py run
	$(BIN)/python benchmarks/scoreboard.py

results-quick: $(BENCH) ## a few of these figures made anew and compared with those committed: minutes
	$(BIN)/python benchmarks/book.py quick

bench-scale: $(READY) $(PEERS)/.ready $(SMARTNOISE)/.ready ## a hundred million rows, memory, wide tables, databases, runs that are killed
	$(BIN)/python benchmarks/scale_peers.py run
	$(BIN)/python benchmarks/scale.py all

bench-pages: $(BENCH) ## how long the analyst's page takes on Adult, in a browser
	$(BIN)/python benchmarks/pages.py

screens: $(READY) ## take the pictures of the pages again, for the README and the docs
	$(BIN)/pytest tests/e2e/test_browser.py tests/e2e/test_report_browser.py -q
	$(BIN)/python docs/screens.py

$(BENCH): $(READY)
	$(BIN)/pip install --quiet --group bench
	@touch $@

$(PEERS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(PEERS)/bin/pip install --quiet --group peers
	@touch $@

$(SMARTNOISE)/.ready: pyproject.toml
	$(PYTHON) -m venv $(SMARTNOISE)
	$(SMARTNOISE)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(SMARTNOISE)/bin/pip install --quiet --group smartnoise
	@touch $@

clean: ## remove everything that can be made again
	rm -rf $(VENV) $(PEERS) $(SMARTNOISE) docs/_build demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
