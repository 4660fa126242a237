"""A dry run estimates words, memory, disk and time from a sample of the text, and writes nothing."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v._text.corpus import Corpus
from w2v._training import estimate as module
from w2v._training.config import RunConfig
from w2v._training.estimate import estimate

SMALL: dict[str, Any] = {"vector_size": 8, "epochs": 3, "workers": 1, "sample": 0}

pytestmark = pytest.mark.filterwarnings("ignore:the text has only")


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a text with Zipf's distribution of words, of which a tenth is the sample."""
    numbers = np.random.default_rng(1).zipf(1.5, 100_000) % 100_000
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in map(" ".join, numbers.astype(str).reshape(-1, 10))))
    monkeypatch.setattr(module, "SAMPLE_BYTES", (tmp_path / "text").stat().st_size // 10)
    monkeypatch.setattr("w2v._text.corpus.BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(module, "TRAINING_SECONDS", 0)
    return tmp_path / "text"


def estimate_of(text: Path) -> dict[str, Any]:
    return estimate(RunConfig.from_options(SMALL), Corpus(text), views="words")


def test_a_sample_gives_the_size_of_the_whole_text(text: Path) -> None:
    found, model = estimate_of(text), w2v.train(text, **SMALL)
    assert found["share_read"] == pytest.approx(0.1, rel=0.1)
    assert found["words"] == pytest.approx(model.metrics["tokens_read"], rel=0.05)
    assert found["vocabulary_size"] == pytest.approx(len(model.vocabulary), rel=0.3)
    assert found["parameter_bytes"] == pytest.approx(2 * 4 * 8 * len(model.vocabulary), rel=0.3)
    assert found["ids_bytes"] == pytest.approx(4 * 110_000, rel=0.05)
    assert found["epochs"] == 3
    assert found["seconds"] > 0


def test_a_whole_text_is_not_an_estimate(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE_BYTES", 1 << 20)
    found, model, needed = estimate_of(text), w2v.train(text, **SMALL), []
    assert (found["share_read"], found["words"]) == (1, model.metrics["tokens_read"])
    assert found["vocabulary_size"] == len(model.vocabulary)
    w2v.train(text, progress=lambda progress: needed.append(progress.memory), **SMALL)
    assert found["memory_bytes"] == pytest.approx(max(filter(None, needed)), rel=0.15)


def test_the_command_writes_nothing(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("train", "text", "--dry-run", "--vector-size=8", "--epochs=3", "--cache=cache")
    shown = run(*command).stdout
    assert re.search(r"share read +0\.1\d+\nwords +(9\d|10\d),\d\d\d\nvocabulary size +\d+\nepochs +3\n", shown)
    assert run_json(*command)["memory_bytes"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["text"]
    for kind in (["--graph"], ["--pairs"], ["--documents", "dbow"]):
        assert f"leave out {kind[0]}" in run("train", "text", "--dry-run", *kind, code=2).stderr


def test_a_pipe_of_unknown_size_is_said_to_be_estimated_in_part(text: Path) -> None:
    said = "w2v: the size of the text is unknown: this is for the part that was read\n"
    assert said in run("train", "-", "--dry-run", "--vector-size=8", stdin=text.read_bytes()).stderr
    assert said not in run("train", "-", "--dry-run", "--vector-size=8", stdin=b"a b c\n" * 100).stderr
