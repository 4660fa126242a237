"""Divergence of training: it is detected, and earlier checkpoints are kept."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import ALL_LOSSES, SMALL, make_loss
from w2v._losses.loss import Loss
from w2v._losses.registry import loss_for
from w2v._training import checkpoint, checkpoint_folder
from w2v._training.checkpoint import WARNING_RATIO, loss_ratio, untrained_loss
from w2v._training.run import Run

OPTIONS = SMALL | {"model": "skipgram"}
NS = make_loss([9, 8, 7], negative=2)
UNTRAINED_LOSS = 3 * np.log(2)  # of NS


class OwnLoss(Loss):
    """A user's own loss."""


@pytest.mark.parametrize(
    ("loss", "means", "predictions", "expected"),
    [
        (NS, [2, 1.8, 1.6, 0, 0], [5000] * 5, 2 / UNTRAINED_LOSS),
        (NS, [2, 1.2, 1.8, 1, 0], [5000] * 5, 1.5),
        (NS, [2, 2, 9, 0], [5000, 5000, 2500, 0], 2.25),  # half an epoch, but already 2.25 times the best sum
        (NS, [0.01, 0.6], [5000] * 2, 0.6),  # means below 1 count as 1
        (NS, [2, 0.01, 30], [20] * 3, 0.6),  # few predictions: their sum is divided by MIN_PREDICTIONS
        (NS, [12], [5000], 12 / UNTRAINED_LOSS),
        (NS, [12, 13], [5000] * 2, 13 / UNTRAINED_LOSS),  # the second epoch, too, is compared with untrained vectors
        (OwnLoss.__new__(OwnLoss), [1e6, 1e6], [5000] * 2, 1),
    ],
)
def test_loss_ratio_compares_each_epoch_with_the_best_earlier_one(
    loss: Loss, means: list[float], predictions: list[int], expected: float
) -> None:
    result = loss_ratio(loss, np.array(means, float) * predictions, np.array(predictions))
    assert result == pytest.approx(expected)


@pytest.mark.parametrize(
    ("alpha", "options", "reason"),
    [
        (0.35, {"epochs": 12}, "the mean loss of a prediction is .*"),
        (0.5, {"epochs": 1}, "the mean loss of a prediction is .*"),
        (1000, {"loss": "hs", "cbow_gradient": "faithful", "model": "cbow"}, ".*"),
    ],
)
def test_diverged_training_raises_an_error(sample: Path, alpha: float, options: dict[str, Any], reason: str) -> None:
    message = rf"^training diverged: after .* words {reason}; lower alpha, now {alpha}$"
    with pytest.raises(w2v.W2VError, match=message):
        w2v.train(sample, **OPTIONS | {"alpha": alpha, "min_alpha": alpha} | options)


def test_risen_loss_is_a_warning(sample: Path, caplog: pytest.LogCaptureFixture) -> None:
    w2v.train(sample, **OPTIONS | {"alpha": 0.35, "min_alpha": 0.35})
    assert re.search(r"the loss has risen to .* per prediction: .* lower alpha, now 0\.35$", caplog.text, re.MULTILINE)
    caplog.clear()
    w2v.train(sample, **OPTIONS)
    assert not caplog.text


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_untrained_loss_is_an_upper_bound(sample: Path, loss: str, model: str) -> None:
    lines = [line.split() for line in sample.read_text("utf-8").splitlines()[:1500]]
    trained = w2v.train(lines, **SMALL | {"loss": loss, "model": model, "alpha": 1e-6, "epochs": 1})
    bound = untrained_loss(loss_for(trained.settings, trained.vocabulary))
    assert trained.metrics["loss"][0] <= bound * (1 + 1e-6)  # the sum of float32 losses is rounded


def test_untrained_loss_is_close_to_the_loss_of_zero_scores() -> None:
    """It is log V for a distribution over V words, and log 2 for each independent row, at least 1 nat."""
    counts = np.ones(5000)
    assert untrained_loss(make_loss(counts, "softmax")) == pytest.approx(np.log(5000) + 1, abs=1)
    assert untrained_loss(make_loss(counts, "ns", negative=4)) == pytest.approx(5 * np.log(2))
    assert untrained_loss(make_loss(counts, "hs")) == pytest.approx(np.log(5000), rel=0.05)
    assert untrained_loss(make_loss([1, 1], "ns", negative=1)) == pytest.approx(2 * np.log(2))
    assert untrained_loss(make_loss([1, 1], "hs")) == 1


def test_checkpoint_from_before_the_rise_is_kept(sample: Path, tmp_path: Path) -> None:
    options = OPTIONS | {"epochs": 12, "alpha": 0.35, "min_alpha": 0.35, "vectors": "input"}
    with pytest.raises(w2v.W2VError, match=r"^training diverged: .* the mean loss") as failure:
        w2v.train(sample, checkpoint=tmp_path, checkpoint_every="4chunks", **options)
    (only,) = checkpoint_folder.files(tmp_path)
    assert str(failure.value).endswith(f"; the last good checkpoint is {only}")
    assert checkpoint.read_checkpoint(only).loss_ratio <= WARNING_RATIO


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("matrix", ["inputs", "outputs"])
def test_last_finite_checkpoint_is_kept(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float, matrix: str
) -> None:
    real_record = Run._record

    def spoil(run: Run, seconds: float) -> None:
        real_record(run, seconds)
        if checkpoint_folder.files(tmp_path):
            run.parameters[matrix][0, 3] = value

    monkeypatch.setattr(Run, "_record", spoil)
    folder = re.escape(str(tmp_path))
    message = rf"^training diverged: after [\d,]+ of [\d,]+ words vectors .* lower alpha, now 0\.05; .* is {folder}."
    with pytest.raises(w2v.W2VError, match=message) as failure:
        w2v.train(sample, checkpoint=tmp_path, checkpoint_every="2chunks", **OPTIONS)
    monkeypatch.undo()
    newest = checkpoint_folder.latest(tmp_path)
    assert str(failure.value).endswith(str(newest.path))
    w2v.train(sample, continue_from=newest.path, alpha=0.01, epochs=1)  # it would refuse NaN or infinite values
