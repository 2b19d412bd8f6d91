# Two commands matter: `make run` parses the samples, `make test` runs the tests.
PYTHON ?= python3
VENV ?= .venv
OUT ?= out
BIN := $(VENV)/bin

.PHONY: run test lint typecheck samples system-packages clean

run: $(VENV)/.installed system-packages
	$(BIN)/pagemill parse samples --recursive -o $(OUT) --fresh
	@echo "Open $(OUT)/report.html, or read $(OUT)/documents/report.md"

test: $(VENV)/.installed-test system-packages
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(VENV)/.installed-test
	$(BIN)/mypy

# Tesseract reads Korean; it is the one system package, and only Korean pages need it.
system-packages:
	@sh scripts/install-system-packages

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml hatch_build.py
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed pyproject.toml
	$(BIN)/python -m pip install --quiet --group test --group lint
	@touch $@

clean:
	rm -rf $(VENV) $(OUT) build dist .mypy_cache .ruff_cache .pytest_cache
