"""Training that diverges: it is noticed, and checkpoints from before stay."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import SMALL, loss_of
from w2v.losses.loss import Loss
from w2v.losses.registry import LOSSES, loss_for
from w2v.training import checkpoint
from w2v.training.divergence import SOUND_RISE, rise, untrained
from w2v.training.run import Run

OPTIONS = SMALL | {"model": "skipgram"}
NS = loss_of([9, 8, 7], negative=2)
NEW = 3 * np.log(2)  # the loss of new vectors


class Own(Loss):
    """A user's own loss."""


@pytest.mark.parametrize(
    ("loss", "means", "predictions", "expected"),
    [
        (NS, [2, 1.8, 1.6, 0, 0], [5000] * 5, 2 / NEW),
        (NS, [2, 1.2, 1.8, 1, 0], [5000] * 5, 1.5),
        (NS, [2, 2, 9, 0], [5000, 5000, 2500, 0], 2.25),  # half an epoch, and already as much as in 2.25 of the best
        (NS, [0.01, 0.6], [5000] * 2, 0.6),  # near 0, little is a multiple
        (NS, [2, 0.01, 30], [20] * 3, 0.6),  # as are few predictions
        (NS, [12], [5000], 12 / NEW),
        (NS, [12, 13], [5000] * 2, 13 / NEW),  # also the second is compared with new vectors
        (Own.__new__(Own), [1e6, 1e6], [5000] * 2, 1),
    ],
)
def test_a_rise_is_that_of_an_epoch_over_the_best_before(
    loss: Loss, means: list[float], predictions: list[int], expected: float
) -> None:
    found = rise(loss, np.array(means, float) * predictions, np.array(predictions))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("alpha", "options", "what"),
    [
        (0.35, {"epochs": 12}, "the mean loss of a prediction is .*"),
        (0.5, {"epochs": 1}, "the mean loss of a prediction is .*"),
        (1000, {"loss": "hs", "cbow_gradient": "faithful", "model": "cbow"}, ".*"),
    ],
)
def test_exploded_training_is_an_error(sample: Path, alpha: float, options: dict[str, Any], what: str) -> None:
    message = rf"^training diverged: after .* words {what}; lower alpha, now {alpha}$"
    with pytest.raises(w2v.W2VError, match=message):
        w2v.train(sample, **OPTIONS | {"alpha": alpha, "min_alpha": alpha} | options)


def test_poor_training_is_a_warning(sample: Path, caplog: pytest.LogCaptureFixture) -> None:
    w2v.train(sample, **OPTIONS | {"alpha": 0.35, "min_alpha": 0.35})
    assert re.search(r"the loss has risen to .* per prediction: .* lower alpha, now 0\.35$", caplog.text, re.MULTILINE)
    caplog.clear()
    w2v.train(sample, **OPTIONS)
    assert not caplog.text


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", LOSSES)
def test_new_vectors_have_the_loss_that_is_estimated(sample: Path, loss: str, model: str) -> None:
    lines = [line.split() for line in sample.read_text("utf-8").splitlines()[:1500]]
    trained = w2v.train(lines, **SMALL | {"loss": loss, "model": model, "alpha": 1e-6, "epochs": 1})
    assert trained.metrics["loss"][0] <= untrained(loss_for(trained.settings, trained.vocabulary)) + 1e-6


def test_checkpoints_from_before_the_rise_stay(sample: Path, tmp_path: Path) -> None:
    options = OPTIONS | {"epochs": 12, "alpha": 0.35, "min_alpha": 0.35, "vectors": "input"}
    with pytest.raises(w2v.W2VError, match=r"^training diverged: .* the mean loss") as failure:
        w2v.train(sample, checkpoint=tmp_path, checkpoint_every="4chunks", **options)
    (only,) = checkpoint.files(tmp_path)
    assert str(failure.value).endswith(f"; the last good checkpoint is {only}")
    assert checkpoint.read(only).rise <= SOUND_RISE


@pytest.mark.parametrize("ending", [float("nan"), float("inf")])
@pytest.mark.parametrize("matrix", ["inputs", "outputs"])
def test_the_last_checkpoint_with_numbers_stays(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: float, matrix: str
) -> None:
    record = Run._record

    def spoil(run: Run, seconds: float) -> None:
        record(run, seconds)
        if checkpoint.files(tmp_path):
            run.parameters[matrix][0, 3] = ending

    monkeypatch.setattr(Run, "_record", spoil)
    message = rf"^training diverged: after [\d,]+ of [\d,]+ words vectors .* lower alpha, now 0\.05; .* is {tmp_path}/"
    with pytest.raises(w2v.W2VError, match=message) as failure:
        w2v.train(sample, checkpoint=tmp_path, checkpoint_every="2chunks", **OPTIONS)
    monkeypatch.undo()
    newest = checkpoint.latest(tmp_path)
    assert str(failure.value).endswith(str(newest.path))
    w2v.train(sample, continue_from=newest.path, alpha=0.01, epochs=1)
