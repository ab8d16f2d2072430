# Needs make and Python 3.11 or newer with venv; everything else goes into .venv.
PYTHON ?= python3

BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check install

.DEFAULT_GOAL := help
.PHONY: help demo test fuzz validation lint bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' Makefile

demo: .venv/.core ## let a free-flying arm reach, and write figures and a report to build/demo
	@mkdir -p build
	@$(BIN)/python -m phipsi.cli demo --output build/demo --force

# Bytecode is kept, whatever the shell says: the tests start dozens of processes.
test fuzz validation: export PYTHONDONTWRITEBYTECODE :=

test: .venv/.dev ## run the tests (up to twenty minutes on two cores the first time)
	@$(BIN)/python -m pytest -q -n auto --dist worksteal

MINUTES ?= 5

fuzz: .venv/.dev ## hand mutated files and random graphs to phipsi (MINUTES=5); see docs/fuzzing.md
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

validation: .venv/.dev ## run the long checks (an hour), and write docs/validation.md
	@$(BIN)/python -m tests.validation

lint: .venv/.dev ## check style, types, layers and import cycles
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/lint-imports --no-logo

bench: .venv/.dev ## time phipsi beside its peers, and write BENCHMARKS.md (a few minutes)
	@$(BIN)/python -m benchmarks

clean: ## remove caches and build results (.venv stays)
	@rm -rf build dist .hypothesis .pytest_cache .ruff_cache .import_linter_cache
	@find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

.venv/.core: pyproject.toml | $(BIN)/python
	@echo "Installing phipsi into .venv (once) ..."
	@$(PIP) --editable ".[plot]"
	@touch $@

.venv/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing phipsi and its development tools into .venv (once, a minute or two) ..."
	@$(PIP) --editable ".[dev]"
	@touch .venv/.core $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "phipsi needs Python 3.11 or newer, and there is no $(PYTHON): install it, or say make PYTHON=/path/to/python3." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "phipsi needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1): say make PYTHON=/path/to/python3.11 or newer." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments: install its venv module (Debian, Ubuntu: apt install python3-venv)." >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }
