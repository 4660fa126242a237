# make demo: build, train on the sample corpus, try the vectors.    make test: build and check everything.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
SOURCES := setup.py pyproject.toml $(wildcard w2v/*.pyx w2v/*.h w2v/_step.c)

.PHONY: build demo test clean
build: $(VENV)/.built

# Each thing that a machine may lack is named in one line.
$(VENV)/.built: $(SOURCES)
	@command -v $(PYTHON) >/dev/null || { echo "w2v needs Python: $(PYTHON) is not there; install it, or name another: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "w2v needs Python 3.11 or newer, and this is `$(PYTHON) -V`; name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "w2v needs Python's venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@command -v "$${CC:-cc}" >/dev/null || { echo "w2v needs a C compiler: $${CC:-cc} is not there; on Debian and Ubuntu: apt install gcc python3-dev" >&2; exit 1; }
	@test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing w2v and what its tests need into $(VENV)"
	@$(RUN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: build
	@$(RUN)/python data/make.py corpus --force -o sample.txt
	@$(RUN)/w2v train sample.txt -o sample.bin --force --sample 1e-3
	@$(RUN)/w2v analogy sample.bin
	@$(RUN)/w2v query sample.bin king - man + woman
	@$(RUN)/w2v query sample.bin france

test: build
	@$(RUN)/ruff check .
	@$(RUN)/ruff format --check .
	@$(RUN)/cython-lint w2v
	@$(RUN)/mypy
	@$(RUN)/python -m pytest

clean:
	rm -rf build dist *.egg-info w2v/*.so w2v/_*[a-z].c.bak sample.txt sample.bin
