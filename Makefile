# Two commands for newcomers: `make book` and `make test`. Everything else is a thin call of `relength`.

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready
LANGUAGE := $(VENV)/.language

# `make book RESULTS=some/folder` builds the book from other records.
RESULTS ?=

# An interpreter can be named (`make book PYTHON=/path/to/python3.11`); else the first that is new enough.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3 python; do \
  if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
  then echo "$$python"; break; fi; done)

.PHONY: help book pdf editions test test-all env clean
.DEFAULT_GOAL := help

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1  /p' $(MAKEFILE_LIST) | while read -r name text; do printf '  make %-8s %s\n' "$$name" "$$text"; done

book: $(READY) ## Execute the notebooks from the recorded runs and build the book
	$(BIN)/relength render $(if $(RESULTS),--results "$(RESULTS)")

pdf: $(READY) ## Build the book and print it as one PDF (needs Chromium)
	$(BIN)/relength render --pdf $(if $(RESULTS),--results "$(RESULTS)")

editions: $(READY) ## Build what a release carries: the PDF, an archive of the pages, their checksums
	$(BIN)/relength render --pdf --archive $(if $(RESULTS),--results "$(RESULTS)")

# What `make test` leaves out are the tests marked `weekly`, and the notebooks in kernels of their own
# but for one: it compares what `make book` has executed.
# Files are taken in the order that tests/conftest.py gives them, not in that of their numbers of
# tests, by so many processes at the same time (`make test WORKERS=4`).
WORKERS ?= 2
# The hundred processes that tests start share compiled modules, also where Python is told to keep none.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest \
  --nbval-lax --nbval-current-env --nbval-cell-timeout 300 -n $(WORKERS) --dist loadfile --no-loadscope-reorder tests

test: $(READY) $(LANGUAGE) ## Run the tests, the notebooks' stored outputs and the smallest trainings
	$(PYTEST) notebooks/panm_cost.ipynb -m "not weekly"

# Its kernels are tested where there is a build of Triton for the machine; a gigabyte, so only here.
test-all: $(READY) $(LANGUAGE) ## Run all tests: every page in a browser, every guide, every training
	$(BIN)/python -m pip install --disable-pip-version-check --quiet triton==3.9.0 || echo "Triton has no build for this machine: its kernels are not tested." >&2
	$(PYTEST) notebooks

env: $(READY) ## Create the environment in .venv and nothing else

clean: ## Remove the environment and everything that was built
	rm -rf $(VENV) _build book/executed .relength .test-output .pytest_cache .ruff_cache .hypothesis

$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer with its venv module was found: install one (on Debian or Ubuntu: python3 and python3-venv), or name one with 'make PYTHON=/path/to/python3.11 book'." >&2; exit 1; }
	"$(PYTHON)" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q lib  # pip does so for packages, but for none that is editable
	@touch $@

# Language models are trained and tested with these; no page needs them, and few of their modules are ever loaded.
$(LANGUAGE): $(READY) requirements-language.lock
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-compile --requirement requirements-language.lock
	@touch $@
