"""What the whole-program tests share: a small sample corpus, and a model trained on it."""

import os
import signal
from pathlib import Path
from typing import Any

# Before NumPy is imported: pytest-xdist has a process for each core, and more threads of these wait in busy loops.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import pytest
from hypothesis import HealthCheck, settings

import w2v
from tests.faults.variants import assert_origin
from w2v.data import make

pytest.register_assert_rewrite("tests.helpers")

# The checks of a variant must not pass with the ordinary modules; see faults/variants.py.
assert_origin()

# No test measures time: on a busy machine or with a sanitizer, all takes long. The same examples are tried on each run;
# HYPOTHESIS_PROFILE=random tries others.
PATIENT: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, **PATIENT)
settings.register_profile("random", **PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# What a shell runs in the background ignores Ctrl-C, and under nohup the end of the terminal; the programs that tests
# start and stop would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text of 100,000 words."""
    path = tmp_path_factory.mktemp("sample") / "corpus.txt"
    path.write_text("".join(make.corpus(100_000, seed=1)), "utf-8")
    return path


@pytest.fixture(scope="session")
def model(sample: Path) -> Path:
    """A model of 300,000 words, with the words of all bundled questions, and all that the native format keeps."""
    path = sample.with_name("model.safetensors")
    sentences = (line.split() for line in make.corpus(300_000, seed=1))
    w2v.train(sentences, model="skipgram", epochs=5, vector_size=50, alpha=0.1, sample=3e-4, workers=1).save(path)
    return path
