# Every target sets up what it needs by itself: a virtual environment in .venv, made quietly and used again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test lint ci bench clean

help:
	@echo "make demo   watch an agent work offline, with a gate that asks you"
	@echo "make test   run the test suite"
	@echo "make lint   ruff, mypy --strict, the layering rule"
	@echo "make ci     what continuous integration runs"
	@echo "make bench  measure what recording costs"
	@echo "make clean  remove the virtual environment and caches"

$(STAMP): pyproject.toml
	@echo "Setting up $(VENV) (once, about a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/grace-kp demo

test: $(STAMP)
	@$(BIN)/python -m pytest -n 2 --dist loadfile -q

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

ci:
	@bash .ci/run

bench: $(STAMP)
	@$(BIN)/python benchmarks/run_all.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist build
