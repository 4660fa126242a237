"""Fixtures of all tests: a small sample corpus, and a model trained on one like it."""

import gc
import os
import signal
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Set before NumPy is imported. pytest-xdist runs one process per core; more BLAS threads would only wait in busy loops.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import pytest
from hypothesis import HealthCheck, settings

import w2v
from tests.faults.variants import assert_modules_of_variant
from w2v.data import make

pytest.register_assert_rewrite("tests.helpers")

# The tests of a build variant must not pass with the modules of the ordinary build; see faults/variants.py.
assert_modules_of_variant()

# Tests must not depend on speed, so Hypothesis gets no time limits: a busy machine or a sanitizer can make them slow.
# By default, each run tries the same examples. HYPOTHESIS_PROFILE=random tries others, and more of them.
NO_TIME_LIMITS: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, max_examples=30, **NO_TIME_LIMITS)
settings.register_profile("random", **NO_TIME_LIMITS)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# In the background, a shell makes programs ignore Ctrl-C, and nohup makes them ignore the end of the terminal. The
# programs that tests start would inherit this, but the tests must be able to stop them.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # Windows has none
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Search for garbage once, after all tests are imported: repeated searches would take a quarter of the time.

    Later searches leave out what was imported.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that cannot run on Windows."""
    if sys.platform != "win32":
        return
    content = (Path(__file__).parent / "wheels" / "windows.toml").read_text("utf-8")
    for reason, tests in tomllib.loads(content).items():
        for item in items:
            if item.nodeid.removeprefix("tests/").startswith(tuple(tests)):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a text of 100,000 words."""
    path = tmp_path_factory.mktemp("sample") / "corpus.txt"
    path.write_text("".join(make.corpus(100_000, seed=1)), "utf-8")
    return path


@pytest.fixture(scope="session")
def short_text(sample: Path) -> Path:
    """Return a text of 10,000 words, for tests that need only some text."""
    path = sample.with_name("short.txt")
    path.write_text("".join(make.corpus(10_000, seed=1)), "utf-8")
    return path


@pytest.fixture(scope="session")
def model(sample: Path) -> Path:
    """Return a native file of a model trained on 300,000 words. It knows the words of all bundled questions."""
    path = sample.with_name("model.safetensors")
    sentences = (line.split() for line in make.corpus(300_000, seed=1))
    w2v.train(sentences, model="skipgram", epochs=5, vector_size=50, alpha=0.1, sample=3e-4, workers=1).save(path)
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `tune` try few candidates, so that it ends long before its time is up."""
    monkeypatch.setattr("w2v._training.search.SEEDS", (1,))
    monkeypatch.setattr("w2v._training.search.CHOICES", {"window": (2, 3)})
