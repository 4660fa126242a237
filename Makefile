# make demo: build, train on the sample corpus, and query the vectors.
# make test: build, and check style, types and behaviour, without the slow tests. make test-slow: run the slow tests.
# make demo-real CORPUS=text.txt: the same with your text, and the scores to expect from a text of its size.
# make lock: renew requirements.lock. make test-newest: make test with the newest versions of all packages.
# make bench CORPUS=... QUESTIONS=... PAIRS=...: measure speed and quality, and compare them with gensim's.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
PIP := -m pip install --quiet --disable-pip-version-check
# pip checks the versions and hashes of all packages that it installs, also to build others, and refuses packages that
# requirements.lock does not have.
LOCKED := --constraint requirements.lock --build-constraint requirements.lock
INSTALL := $(RUN)/python $(PIP) $(LOCKED)
# Creates the environment $(1), with the pip of requirements.lock: older ones do not take hashes from a constraints file.
define CREATE
@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
@sed -n '/^pip==/,/# via/p' requirements.lock | $(1)/bin/python $(PIP) --require-hashes --requirement /dev/stdin
endef
# Prints the dependencies of w2v. The build installs them while it compiles w2v.
DEPENDENCIES := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")
SOURCES := setup.py pyproject.toml requirements.lock $(shell find w2v -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name '*.c')
export PATH := $(abspath $(RUN)):$(PATH)
# make 3.81, which macOS has, looks for simple commands in the old PATH, unless SHELL differs from the default.
ifeq ($(MAKE_VERSION),3.81)
SHELL := /bin/bash
endif
# Keep compiled bytecode even where this variable forbids it: the tests start many programs, and each would compile w2v.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: build demo demo-real lock test test-newest test-slow cluster browser compat docs faults faults-short fuzz mutants sanitize same-bits bench wheels wheels-test wheels-test-arm64 wheels-test-windows clean
build: $(VENV)/.built

# If the machine lacks a tool, one line names it.
$(VENV)/.built: $(SOURCES)
	@command -v $(PYTHON) >/dev/null || { echo "w2v needs Python: $(PYTHON) is not installed; install it, or name another: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "w2v needs Python 3.11 or newer, and this is `$(PYTHON) -V 2>&1`; name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "w2v needs Python's venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@command -v $(firstword $(CC)) >/dev/null || { echo "w2v needs a C compiler: $(firstword $(CC)) is not installed; on Debian and Ubuntu: apt install gcc" >&2; exit 1; }
	@test -e "`$(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))'`/Python.h" || { echo "w2v needs Python's C headers: Python.h is missing; on Debian and Ubuntu: apt install python3-dev" >&2; exit 1; }
	@echo "building w2v in $(VENV): about a minute"
	$(call CREATE,$(VENV))
	@$(RUN)/python -c '$(DEPENDENCIES)' | $(INSTALL) --requirement /dev/stdin & others=$$!; \
	$(RUN)/python $(PIP) --no-deps --build-constraint requirements.lock --editable . && wait $$others
	@touch $@

# The dependencies of the checks. w2v itself is already installed, so this does not build it again.
$(VENV)/.checks: $(VENV)/.built
	@echo "installing the dependencies of the checks"
	@$(INSTALL) 'w2v[dev]'
	@touch $@

sample.txt: $(VENV)/.built $(wildcard w2v/data/*)
	@$(RUN)/python -m w2v.data.make corpus --force -o $@

demo: sample.txt
	w2v train sample.txt -o sample.bin --force
	w2v analogy sample.bin
	w2v query sample.bin king - man + woman --topn 5
	w2v query sample.bin france --topn 5 --restrict-vocab 1000

# CORPUS is your text; by default, a text in ../shared. QUESTIONS and PAIRS are optional, as in make bench.
demo-real: $(VENV)/.built
	@$(INSTALL) 'w2v[tokenize]'
	@python bench/demo.py $(CORPUS) $(if $(QUESTIONS),--questions $(QUESTIONS)) $(if $(PAIRS),--pairs $(PAIRS))

PYTEST = python -m pytest -n auto --maxprocesses 8 --dist worksteal

# With NUMBA_OPT, Numba compiles quickly and optimises less. The slow tests compile as users do.
test: $(VENV)/.checks
	ruff check .
	ruff format --check .
	{ cython-lint w2v && mypy; } & types=$$!; \
	NUMBA_OPT=1 $(PYTEST) -m 'not slow and not cluster'; tests=$$?; \
	wait $$types && exit $$tests

# Write the newest versions of all packages to requirements.lock, for Python 3.11 to 3.14, Linux, macOS and Windows. The
# second command adds libraries that ask for other versions of some packages. tests/wheels/oldest.lock has the oldest
# versions that pyproject.toml allows for users, and the newest ones of the packages of the tests, for Python 3.11.
COMPILE := build/lock/bin/python -m uv pip compile --quiet --upgrade --python-version 3.11 --generate-hashes \
--no-emit-index-url --custom-compile-command 'make lock'
OLDEST := tests/wheels/oldest.lock
lock: build/lock/.built
	@echo "looking for the newest versions of all packages"
	@$(COMPILE) pyproject.toml --all-extras --group pip --group lock --group tools --group locked \
	--universal --output-file build/lock/new.lock
	@$(COMPILE) --group libraries --no-deps --constraint build/lock/new.lock --universal --no-header >>build/lock/new.lock
	@mv build/lock/new.lock requirements.lock
	@$(COMPILE) pyproject.toml --extra all --python-platform linux --resolution lowest-direct --output-file $(OLDEST)
	@$(COMPILE) pyproject.toml --extra dev --python-platform linux --constraint $(OLDEST) --output-file $(OLDEST)

# Run make test with the newest versions of all packages, in a copy of the files that git knows.
test-newest:
	@rm -rf build/newest && mkdir -p build/newest
	@git ls-files -z | tar -c --null -T - | tar -x -C build/newest
	$(MAKE) -C build/newest lock
	$(MAKE) -C build/newest test

# The tests that take some seconds each or compile a loss with Numba, which `make test` leaves out.
test-slow: $(VENV)/.checks
	$(PYTEST) -m 'slow and not cluster'

# Tests with several ranks under mpiexec: communication, and failures of a rank. They take about ten minutes.
cluster: $(VENV)/.checks
	python -m pytest -m cluster tests/training/test_distributed.py

# Tests of w2v explore in a real browser. They install Debian's Chromium if necessary, or print one line if that fails.
browser: $(VENV)/.checks
	@$(INSTALL) 'w2v[browser]'
	python tests/browser/run.py

# Run gensim's own tests, libraries and programs that use gensim, with w2v.gensim; compare w2v.fasttext with fastText;
# exchange models with Spark, for which it installs Java if it can.
compat: $(VENV)/.checks build/libraries/.built
	@$(INSTALL) 'w2v[spark]'
	python tests/compat/run.py
	python tests/compat/libraries.py
	python tests/compat/programs.py
	python tests/compat/fasttext_calls.py
	python tests/compat/spark.py

build/libraries/.built: $(VENV)/.checks
	@$(INSTALL) --no-deps --upgrade --target build/libraries --group libraries
	@touch $@

# Builds that detect errors: checked, sanitize (addresses, undefined behaviour), thread. Each has its own tree of real
# folders with links to the source files. If the folders were links, the modules would be built among the sources.
build/%/.built: $(SOURCES) $(shell find w2v -type d ! -name __pycache__) $(VENV)/.checks
	@echo "building the variant $*: about a minute"
	@rm -rf build/$*/w2v
	@find w2v -type d ! -name __pycache__ -exec mkdir -p build/$*/{} ';'
	@find w2v -type f ! -name '*.so' ! -path '*/__pycache__/*' -exec ln -s $(CURDIR)/{} build/$*/{} ';'
	@ln -sfn $(addprefix $(CURDIR)/,tests docs bench README.md CONTRIBUTING.md CHANGELOG.md LICENSE MANIFEST.in Makefile pyproject.toml requirements.lock setup.py) build/$*
	@W2V_BUILD=$* $(RUN)/python setup.py --quiet build_ext --build-lib build/$* --build-temp build/$*/temp
	@touch $@

# Compare the bits that this version trains with those of OTHER, a checkout of another version with its extensions built.
same-bits: $(VENV)/.checks
	python bench/same_bits.py $(OTHER) --python python

# Build the documentation in build/docs. It runs every snippet, and fails on a warning or a broken link.
docs: $(VENV)/.docs
	python -m sphinx -q -W --keep-going -j auto -b html docs build/docs
	@echo "the site: build/docs/index.html"

$(VENV)/.docs: $(VENV)/.built
	@$(INSTALL) 'w2v[docs]'
	@touch $@

# Inject system failures and kills, and fuzz files, for some hours: make faults KILLS=1000 SECONDS=60
KILLS ?= 1000
SECONDS ?= 60
faults: $(VENV)/.faults
	HYPOTHESIS_PROFILE=random python tests/faults/run.py --kills $(KILLS) --seconds $(SECONDS)

# A short, reproducible selection of these tests: two to three minutes.
faults-short: $(VENV)/.faults
	FAULTS_SEED=1 python tests/faults/run.py --short

fuzz: $(VENV)/.faults
	python tests/faults/fuzz.py $(SECONDS)

# Plant 100 small faults in the Python code, one at a time, and count how many the tests find. If stopped, it continues.
mutants: $(VENV)/.checks
	python tests/faults/mutants.py

$(VENV)/.faults: $(VENV)/.checks
	@$(INSTALL) 'w2v[faults]'
	@mkdir -p build
	@touch $@

# Run all tests with checks of every index, then check for address errors and undefined behaviour, then for data races.
sanitize: build/checked/.built build/sanitize/.built build/thread/.built
	python tests/faults/variants.py checked sanitize thread

# Measure speed and quality, in twenty minutes on an idle machine. The full quality table takes longer: bench/quality.py.
bench: build
	@test -n "$(CORPUS)" -a -n "$(QUESTIONS)" -a -n "$(PAIRS)" || { echo "name the files: make bench CORPUS=text8.txt QUESTIONS=questions-words.txt PAIRS='WS-353.txt SimLex.txt'" >&2; exit 1; }
	@$(INSTALL) 'w2v[bench]'
	@mkdir -p build/bench
	python bench/step.py --json build/bench/step.json
	python bench/limit.py $(CORPUS) --share 0.25 --json build/bench/limit.json
	python bench/variants.py $(CORPUS) threads --share 0.25 --json build/bench/threads.json
	python bench/variants.py $(CORPUS) deterministic --share 0.25 --json build/bench/deterministic.json
	python bench/train.py $(CORPUS) --share 0.25 --only sg-ns-300 sg-ns-100 sg-hs-300 cbow-ns-300 cbow-hs-300 --json build/bench/train.json
	python bench/train.py $(CORPUS) --repeats 2 --only whole --json build/bench/whole.json
	python bench/memory.py $(CORPUS) --json build/bench/memory.json
	python bench/variants.py $(CORPUS) storage --share 0.25 --repeats 3 --json build/bench/storage.json
	python bench/checkpoint.py $(CORPUS) --json build/bench/checkpoint.json
	python bench/reader.py $(CORPUS) --json build/bench/reader.json
	python bench/phrases.py $(CORPUS) --share 0.25 --json build/bench/phrases.json
	python bench/load.py --json build/bench/load.json
	python bench/startup.py --json build/bench/startup.json
	w2v train $(CORPUS) -o build/bench/model.bin --force --quiet --vector-size 300 --epochs 1
	python bench/evaluate.py build/bench/model.bin $(QUESTIONS) --json build/bench/evaluate.json
	python bench/quality.py $(CORPUS) --questions $(QUESTIONS) --pairs $(PAIRS) --tools w2v --seeds 1 --json build/bench/quality.json
	python bench/report.py build/bench/*.json --picture build/bench/speed.svg > build/bench/tables.md

# `make wheels` builds the source distribution and wheels for Linux, Windows and macOS in dist/. `make wheels-test` tests
# those for this machine with every Python in PATH, or with the named ones: make wheels-test PYTHONS='python3.11
# python3.13'. tests/wheels/debian.sh unpacks other Pythons.
wheels: build/tools/.built
	build/tools/bin/python tests/wheels/build.py

PYTHONS ?=
wheels-test: build/tools/.built
	build/tools/bin/python tests/wheels/run.py $(PYTHONS)

# Test the arm64 wheel under qemu: the compiled step, formats and training. Run as root on Debian or Ubuntu.
ARM64 := build/arm64/usr/bin/w2v-python3.13
wheels-test-arm64: build/tools/.built $(ARM64)
	build/tools/bin/python tests/wheels/run.py --part $(abspath $(ARM64))

# Test the wheel for Windows with Windows' Python under Wine: all tests, or make wheels-test-windows TESTS='tests/text -x'.
TESTS ?=
wheels-test-windows: build/tools/.built
	build/tools/bin/python tests/wheels/windows.py $(TESTS)

$(ARM64):
	sh tests/wheels/debian.sh build/arm64 arm64 trixie python3.13

build/lock/.built build/tools/.built: build/%/.built: requirements.lock
	$(call CREATE,build/$*)
	@build/$*/bin/python $(PIP) $(LOCKED) --group $*
	@touch $@

clean:
	rm -rf build dist *.egg-info sample.txt sample.bin real.safetensors
	find w2v -name '*.so' -delete
