"""The comparison of losses gives the scores of ordinary trainings on the start of the text."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

import w2v
from tests.helpers import run, run_json
from w2v._errors import Diverged, SettingsError
from w2v._losses import full_softmax
from w2v._progress import Progress
from w2v._training import compare_losses as module
from w2v._training.compare_losses import compare_losses
from w2v._training.config import RunConfig
from w2v._training.model import View

RANDOM = Random(1)
LINES = [[f"w{RANDOM.choice((number % 2, RANDOM.randrange(20)))}" for _ in range(9)] for number in range(200)]
TEXTS = [" ".join(line) for line in LINES]
HELD_OUT = 10  # lines at the end: 5 %
SMALL: dict[str, Any] = {"vector_size": 4, "workers": 1, "min_count": 1, "seed": 3}

pytestmark = pytest.mark.filterwarnings("ignore:the text has only")


def test_scores_are_those_of_a_training_on_the_start_of_the_text() -> None:
    reports: list[Progress] = []
    result = compare_losses(TEXTS, losses="ns,hs", negative=3, progress=reports.append, **SMALL)
    counts = w2v.train(TEXTS, epochs=1, **SMALL).vocabulary
    assert (result["vocabulary_size"], result["epochs"]) == (20, 5)
    assert [one["loss"] for one in result["losses"]] == ["ns", "hs"]
    for one, options in zip(result["losses"], ({"negative": 3}, {"loss": "hs"}), strict=True):
        model = w2v.train(TEXTS[:-HELD_OUT], vocabulary=counts, vectors="input", epochs=5, **SMALL, **options)
        expected = w2v.perplexity(model, TEXTS[-HELD_OUT:])
        assert one["perplexity"] == pytest.approx(expected.perplexity, rel=1e-6)
        assert result["unigram_perplexity"] == pytest.approx(expected.unigram_perplexity, rel=1e-6)
        assert (one["alpha"], one["accuracy"]) == (model.settings.start_alpha, None)
    trained = [report.view for report in reports if report.phase == "train" and report.done == report.total]
    assert list(dict.fromkeys(trained)) == ["ns", "hs"]


def test_wrong_settings_are_refused_before_the_first_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(module, "_trained", train)
    monkeypatch.setattr(full_softmax, "MAX_WORDS", 10)
    with pytest.raises(SettingsError, match="lower max_vocab to 10"):
        compare_losses(TEXTS, losses="ns,softmax", **SMALL)
    for losses, message in (("", "no loss ''"), ("ns,objective", "no loss 'objective'"), ("ns,ns", "appears twice")):
        with pytest.raises(SettingsError, match=message):
            compare_losses(TEXTS, losses=losses, **SMALL)
    with pytest.raises(SettingsError, match="unknown setting 'documents'"):
        compare_losses(TEXTS, losses="ns", documents="dbow", model="skipgram", **SMALL)
    with pytest.raises(SettingsError, match="vektor_size"):
        compare_losses(TEXTS, vektor_size=3)


def test_a_loss_that_diverges_is_left_out(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def train(config: RunConfig, *others: Any) -> View:
        if config.settings.loss == "hs":
            raise Diverged("training diverged")
        return trained(config, *others)

    trained = module._trained
    monkeypatch.setattr(module, "_trained", train)
    assert [one["loss"] for one in compare_losses(TEXTS, losses="hs,ns", **SMALL)["losses"]] == ["ns"]
    assert caplog.messages == ["loss hs is left out: training diverged"]
    with pytest.raises(Diverged, match="with every loss"):
        compare_losses(TEXTS, losses="hs", **SMALL)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text").write_text("\n".join(TEXTS))
    return tmp_path / "text"


def test_the_command_prints_a_row_for_each_loss(text: Path) -> None:
    command = ("compare-losses", text, "--vector-size=4", "--min-count=1", "--losses", "hs,class", "--alpha=0.02")
    header, *rows = run(*command).stdout.splitlines()
    assert header.split() == ["loss", "alpha", "seconds", "perplexity", "gaps", "analogies"]
    assert [row.split()[:2] for row in rows[:2]] == [["hs", "0.02"], ["class", "0.02"]]
    found = run_json(*command[:-1])
    assert [one["loss"] for one in found["losses"]] == ["hs", "class"]
    assert "perplexity of word frequencies only: " in rows[2]


def test_the_command_refuses_unknown_losses_and_options_without_effect(text: Path) -> None:
    refused = run("compare-losses", text, "--losses", "hs,clas", code=2).stderr
    assert "clas" in refused
    assert "did you mean class?" in refused
    refused = run("compare-losses", text, "--losses", "hs,class", "--negative=3", code=2).stderr
    assert "--negative has no effect" in refused
