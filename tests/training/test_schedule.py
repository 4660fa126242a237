"""The schedule of a run: rounds, chunks, epochs and the learning rate."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import w2v
from tests.helpers import make_loss, make_schedule, run_json
from w2v._losses.registry import Settings
from w2v._training.schedule import epochs_for

SMALL = st.integers(1, 20)


@given(SMALL, st.integers(0, 50), SMALL)
def test_rounds_divide_each_epoch_into_whole_chunks(epochs: int, chunks: int, rounds: int) -> None:
    schedule = make_schedule(rounds, epochs=epochs, chunks=chunks)
    positions = [schedule.chunks_after(done) for done in range(schedule.total_rounds + 1)]
    assert positions == sorted(positions)
    assert (positions[0], positions[-1]) == (0, epochs * chunks)
    for done, position in enumerate(positions):
        if schedule.ends_epoch(done):
            assert position == done // rounds * chunks
        assert 0 <= done * chunks - position * rounds < rounds


def test_epoch_and_learning_rate_follow_the_position() -> None:
    settings = Settings(alpha=0.05, min_alpha=0.01)
    schedule = make_schedule(1, epochs=2, chunks=5, tokens=100, settings=settings)
    assert [schedule.epoch(position) for position in (0, 4, 5, 9, 10)] == [0, 0, 1, 1, 1]
    assert [round(schedule.alpha_after(tokens), 9) for tokens in (0, 50, 200)] == [0.05, 0.04, 0.01]
    empty = make_schedule(3, epochs=2, chunks=0, tokens=0, settings=settings)
    assert (empty.epoch(0), round(empty.alpha_after(0), 9), empty.chunks_after(empty.total_rounds)) == (1, 0.01, 0)


@pytest.mark.parametrize(
    ("tokens", "skipgram", "cbow"),
    [
        (1, 50, 50), (60_000, 22, 32), (200_000, 16, 24), (500_000, 13, 19), (1_300_000, 10, 15), (3_000_000, 10, 12),
        (7_000_000, 10, 10), (100_000_000, 10, 10), (100_000_001, 5, 5),
    ],
)  # fmt: skip
def test_longer_texts_have_fewer_epochs(tokens: int, skipgram: int, cbow: int) -> None:
    for loss in ("ns", "nce", "sampled"):
        prepared = make_loss([9, 8, 7], loss, negative=2)
        assert epochs_for(Settings(model="skipgram"), prepared, tokens) == skipgram
        assert epochs_for(Settings(), prepared, tokens) == cbow
        assert epochs_for(Settings(epochs=3), prepared, tokens) == 3
    for loss in ("hs", "class", "softmax", "mos"):  # slow losses
        assert epochs_for(Settings(), make_loss([9, 8, 7], loss), tokens) == 5


def test_model_has_the_computed_number_of_epochs(sample: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.safetensors"
    found = run_json("train", sample, "-o", output, "--vector-size", 4, "--epochs", "auto")
    assert found["settings"]["epochs"] == len(found["loss"]) == round(10 * (6.6e6 / found["tokens"]) ** 0.25)
    assert w2v.Model.load(output).settings.epochs == found["settings"]["epochs"]
