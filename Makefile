# Each target makes .venv and installs by itself; when nothing changed that costs a fraction of a second. Packages come
# from the indexes that pip is given, and from nowhere else: PIP_EXTRA_INDEX_URL adds one, such as PyTorch's for CPUs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
# One worker per core; each takes a run of neighbouring tests, so that a fixture of a module is made once.
PYTEST := $(BIN)/python -m pytest --numprocesses logical --maxprocesses 8 --dist worksteal

.PHONY: quickstart check test test-long fuzz mutants lint bench market docs clean
.NOTPARALLEL: # two pips in one environment would disturb each other

quickstart: $(VENV)/.experts
	$(BIN)/marlab quickstart

# While you work: lint, types and the fast tests; two minutes are the aim.
check: $(VENV)/.dev $(VENV)/.experts lint
	$(PYTEST) -m "not slow and not long"

# Before you commit: all tests but the long ones; ten minutes on two idle cores at most. Types are checked beside the
# tests: without its cache mypy takes a minute and a half of one core.
test: $(VENV)/.dev $(VENV)/.experts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy & types=$$!; $(PYTEST) -m "not long"; tests=$$?; wait $$types && exit $$tests

# Kills, fuzz, replays, clusters and big worlds.
test-long: $(VENV)/.dev $(VENV)/.experts
	$(PYTEST) -m long

# 20,000 damaged files and 10,000 lines and presets with one fault; ends with the count of tracebacks.
fuzz: $(VENV)/.dev $(VENV)/.experts
	$(BIN)/python -m tests.fuzz

# Faults put into the core modules one at a time: how many do the tests catch? Takes an hour or more on one core.
mutants: $(VENV)/.dev $(VENV)/.experts
	$(BIN)/python -m tests.mutants

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# One benchmark: make bench NAME=ppo_vs_sb3
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/$(NAME).py

# The documentation as a site in build/site, without a network.
docs: $(VENV)/.docs
	$(BIN)/python docs/reference/generate.py
	$(BIN)/zensical build --strict

# What `marlab market` needs: the simulator and the entrants of past years.
market: $(VENV)/.experts

# A user of fish or hunt needs only this: no scml, no cluster libraries.
$(VENV)/.core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

# The market: the SCML simulator, and PenguinAgent with the other entrants. scml-agents asks for TensorFlow, xgboost,
# torch and more (4 GB), of which no agent of the Standard league imports anything, so it comes without them.
$(VENV)/.experts: $(VENV)/.core
	$(PIP) --editable '.[market]'
	$(PIP) --no-deps scml-agents
	touch $@

$(VENV)/.docs: $(VENV)/.experts
	$(PIP) --editable '.[docs]'
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) --editable '.[dev,ray,dask,docs]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
