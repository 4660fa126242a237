# make demo: build, train on the sample corpus, try the vectors.    make test: build and check everything.
# make demo-real CORPUS=text.txt: the same with real text, and the scores to expect of so much text.
# make bench CORPUS=... QUESTIONS=... PAIRS=...: measure speed and quality beside gensim's.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
PIP := $(RUN)/python -m pip install --quiet --disable-pip-version-check
# Prints the packages that w2v needs: they are installed while it is compiled.
DEPENDENCIES := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")
SOURCES := setup.py pyproject.toml $(shell find w2v -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name '*.c')
export PATH := $(abspath $(RUN)):$(PATH)

.PHONY: build demo demo-real test cluster browser compat docs faults faults-short fuzz sanitize bench wheels wheels-test wheels-test-arm64 clean
build: $(VENV)/.built

# Each thing that a machine may lack is named in one line.
$(VENV)/.built: $(SOURCES)
	@command -v $(PYTHON) >/dev/null || { echo "w2v needs Python: $(PYTHON) is not there; install it, or name another: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "w2v needs Python 3.11 or newer, and this is `$(PYTHON) -V 2>&1`; name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "w2v needs Python's venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@command -v $(firstword $(CC)) >/dev/null || { echo "w2v needs a C compiler: $(firstword $(CC)) is not there; on Debian and Ubuntu: apt install gcc" >&2; exit 1; }
	@test -e "`$(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))'`/Python.h" || { echo "w2v needs Python's C headers: Python.h is not there; on Debian and Ubuntu: apt install python3-dev" >&2; exit 1; }
	@test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	@echo "building w2v in $(VENV): about a minute"
	@$(RUN)/python -c '$(DEPENDENCIES)' | $(PIP) --requirement /dev/stdin & others=$$!; \
	$(PIP) --no-deps --editable . && wait $$others
	@touch $@

# What the checks need, without building again: w2v itself is installed already.
$(VENV)/.checks: $(VENV)/.built
	@echo "installing what the checks need"
	@$(PIP) 'w2v[dev]'
	@touch $@

sample.txt: $(VENV)/.built $(wildcard w2v/data/*)
	@$(RUN)/python -m w2v.data.make corpus --force -o $@

demo: sample.txt
	w2v train sample.txt -o sample.bin --force
	w2v analogy sample.bin
	w2v query sample.bin king - man + woman --topn 5
	w2v query sample.bin france --topn 5 --restrict-vocab 1000

# A text of yours, or one of ../shared; with QUESTIONS and PAIRS, as make bench takes them, if there are any.
demo-real: $(VENV)/.built
	@$(PIP) 'w2v[tokenize]'
	@python bench/demo.py $(CORPUS) $(if $(QUESTIONS),--questions $(QUESTIONS)) $(if $(PAIRS),--pairs $(PAIRS))

test: $(VENV)/.checks
	ruff check .
	ruff format --check .
	cython-lint w2v
	mypy
	python -m pytest -n auto --maxprocesses 8 --dist worksteal

# Several ranks under mpiexec: all that they share, and what happens when one fails; about ten minutes.
cluster: $(VENV)/.checks
	python -m pytest -m cluster tests/training/test_distributed.py

# The page of w2v explore in a real browser. Without one, Debian's is installed; if that fails, one line says so.
browser: $(VENV)/.checks
	python tests/browser/run.py

# gensim's own tests, and libraries that use gensim, run against w2v.gensim.
compat: $(VENV)/.checks
	python tests/compat/run.py
	python tests/compat/libraries.py

# Builds that look for mistakes, each in a tree of its own: checked, sanitize (addresses, undefined behaviour), thread.
# Its folders are real and hold a link for each source: through a linked folder the modules would land beside the sources.
build/%/.built: $(SOURCES) $(shell find w2v -type d ! -name __pycache__) $(VENV)/.checks
	@echo "building the variant $*: about a minute"
	@rm -rf build/$*/w2v
	@find w2v -type d ! -name __pycache__ -exec mkdir -p build/$*/{} ';'
	@find w2v -type f ! -name '*.so' ! -path '*/__pycache__/*' -exec ln -s $(CURDIR)/{} build/$*/{} ';'
	@ln -sfn $(addprefix $(CURDIR)/,tests docs bench README.md CONTRIBUTING.md CHANGELOG.md LICENSE MANIFEST.in Makefile pyproject.toml setup.py) build/$*
	@W2V_BUILD=$* $(RUN)/python setup.py --quiet build_ext --build-lib build/$* --build-temp build/$*/temp
	@touch $@

# The site, in build/docs: every snippet is run, and a warning or a broken link fails.
docs: $(VENV)/.docs
	python -m sphinx -q -W --keep-going -j auto -b html docs build/docs
	@echo "the site: build/docs/index.html"

$(VENV)/.docs: $(VENV)/.built
	@$(PIP) 'w2v[docs]'
	@touch $@

# Failures of the system, kills, forged files and fuzzing, for some hours: make faults KILLS=1000 SECONDS=60
KILLS ?= 1000
SECONDS ?= 60
faults: $(VENV)/.faults
	HYPOTHESIS_PROFILE=random python tests/faults/run.py --kills $(KILLS) --seconds $(SECONDS)

# Some of each of them, in two to three minutes, and the same each time.
faults-short: $(VENV)/.faults
	FAULTS_SEED=1 python tests/faults/run.py --short

fuzz: $(VENV)/.faults
	python tests/faults/fuzz.py $(SECONDS)

$(VENV)/.faults: $(VENV)/.checks
	@$(PIP) 'w2v[faults]'
	@mkdir -p build
	@touch $@

# Every index checked, in all tests; then addresses and undefined behaviour; then races of threads.
sanitize: build/checked/.built build/sanitize/.built build/thread/.built
	python tests/faults/variants.py checked sanitize thread

# Twenty minutes on a quiet machine. The whole table of quality takes longer: see bench/quality.py.
bench: build
	@test -n "$(CORPUS)" -a -n "$(QUESTIONS)" -a -n "$(PAIRS)" || { echo "name the files: make bench CORPUS=text8.txt QUESTIONS=questions-words.txt PAIRS='WS-353.txt SimLex.txt'" >&2; exit 1; }
	@$(PIP) 'w2v[bench]'
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

# The source distribution and wheels for Linux in dist/, then their tests with every Python in PATH, or with those named:
# make wheels-test PYTHONS='python3.11 python3.13'. tests/wheels/debian.sh gets more of them.
wheels: build/tools/.built
	build/tools/bin/python tests/wheels/build.py

PYTHONS ?=
wheels-test: build/tools/.built
	build/tools/bin/python tests/wheels/run.py $(PYTHONS)

# The wheel for arm64 under qemu: the tests of the compiled step, formats and training. As root, on Debian or Ubuntu.
ARM64 := build/arm64/usr/bin/w2v-python3.13
wheels-test-arm64: build/tools/.built $(ARM64)
	build/tools/bin/python tests/wheels/run.py --part $(abspath $(ARM64))

$(ARM64):
	sh tests/wheels/debian.sh build/arm64 arm64 trixie python3.13

build/tools/.built: tests/wheels/requirements.txt
	@$(PYTHON) -m venv build/tools
	@build/tools/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

clean:
	rm -rf build dist *.egg-info sample.txt sample.bin real.safetensors
	find w2v -name '*.so' -delete
