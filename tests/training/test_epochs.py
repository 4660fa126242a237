"""How many epochs there are by default."""

from pathlib import Path

import pytest

import w2v
from tests.helpers import loss_of, run_json
from w2v.losses.registry import Settings
from w2v.training.epochs import epochs_for


@pytest.mark.parametrize(
    ("tokens", "skipgram", "cbow"),
    [
        (1, 50, 50), (60_000, 22, 32), (200_000, 16, 24), (500_000, 13, 19), (1_300_000, 10, 15), (3_000_000, 10, 12),
        (7_000_000, 10, 10), (100_000_000, 10, 10), (100_000_001, 5, 5),
    ],
)  # fmt: skip
def test_fewer_for_more_text(tokens: int, skipgram: int, cbow: int) -> None:
    for loss in ("ns", "nce", "sampled"):
        prepared = loss_of([9, 8, 7], loss, negative=2)
        assert epochs_for(Settings(model="skipgram"), prepared, tokens) == skipgram
        assert epochs_for(Settings(), prepared, tokens) == cbow


@pytest.mark.parametrize("loss", ["hs", "class", "softmax", "mos"])
def test_slow_losses_have_five(loss: str) -> None:
    assert epochs_for(Settings(), loss_of([9, 8, 7], loss), 1000) == 5


def test_a_number_is_obeyed() -> None:
    assert epochs_for(Settings(epochs=3), loss_of([9, 8, 7], negative=2), 1000) == 3


def test_command(sample: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.safetensors"
    found = run_json("train", sample, "-o", output, "--vector-size", 4, "--epochs", "auto")
    assert found["settings"]["epochs"] == len(found["loss"]) == round(10 * (6.6e6 / found["tokens"]) ** 0.25)
    assert w2v.Model.load(output).settings.epochs == found["settings"]["epochs"]
