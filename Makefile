# Everything runs in a virtual environment of its own, built on first use and again whenever
# pyproject.toml changes. Another Python or place: make test PYTHON=python3.12 VENV=.venv312

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
BIN := $(VENV)/bin

.PHONY: help demo test lint docs notebooks clean

help:
	@echo "make demo       solve small instances, print a table, save plots (about a minute)"
	@echo "make test       run all tests; a part of them: make test PYTEST_ARGS='-m \"not slow\"'"
	@echo "make lint       check style, formatting and types"
	@echo "make docs       build the site, build/docs/index.html"
	@echo "make notebooks  run all notebooks and keep their outputs (about two minutes)"
	@echo "make clean      remove $(VENV), build/ and dist/"

demo: $(VENV)/.with-plot
	$(BIN)/python -m experiments.quickstart

test: $(VENV)/.with-test
	$(BIN)/python -m pytest -n 2 --dist loadfile $(PYTEST_ARGS)  # a file's tests share programs

lint: $(VENV)/.with-test $(VENV)/.with-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: $(VENV)/.with-docs
	$(BIN)/sphinx-build -E -W --keep-going -n --quiet -d build/doctrees docs build/docs

notebooks: $(VENV)/.with-docs
	$(BIN)/python -m experiments.notebooks

clean:
	rm -rf $(VENV) build dist

# An environment that was made here is made anew; one that a person made is only added to.
$(VENV)/.created: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "$(PYTHON) is missing or older than Python 3.11; name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(if $(wildcard $@),--clear) $(VENV)
	@touch $@

$(VENV)/.with-%: $(VENV)/.created
	@echo "Installing jaxopt_search[$*] into $(VENV)"
	@$(BIN)/python -m pip install --quiet --quiet --editable ".[$*]"
	@touch $@
