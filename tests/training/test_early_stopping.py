"""Early stopping: when training ends, and that it keeps the vectors of the best epoch, also after resuming."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import full_disk
from w2v._evaluation.held_out import GapTest
from w2v._training.checkpoint_folder import BEST_FILE_NAME, CheckpointFolder
from w2v._training.run import best_epoch

SETTINGS: dict[str, Any] = {"workers": 1, "vector_size": 10, "epochs": 9, "stop_early": 2}


@pytest.fixture
def scored_vectors(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Return a list. Each epoch appends the vectors that it scores, and the second epoch gets the best score."""
    scored: list[np.ndarray] = []

    def score(_: GapTest, vectors: np.ndarray) -> float:
        scored.append(vectors.copy())
        return 0.7 if len(scored) == 2 else 0.6

    monkeypatch.setattr(GapTest, "score", score)
    return scored


@pytest.mark.parametrize("options", [{}, {"subwords": "3-4"}, {"vectors": "concatenated"}], ids=str)
def test_model_has_the_vectors_of_the_best_epoch(
    sample: Path, scored_vectors: list[np.ndarray], options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "w2v")
    model = w2v.train(sample, **SETTINGS, **options)
    assert model.metrics["held_out_scores"] == [0.6, 0.7, 0.6, 0.6]
    np.testing.assert_allclose(model.vectors, scored_vectors[1], atol=1e-6)
    message = "training ended after epoch 4: using the vectors of epoch 2, score on held-out text 0.7000"
    assert message in caplog.messages


@pytest.mark.parametrize("epoch", [2, 3])
def test_resume_is_bit_identical(sample: Path, tmp_path: Path, scored_vectors: list[np.ndarray], epoch: int) -> None:
    def stop(now: w2v.Progress) -> None:
        if now.epoch == epoch:
            raise KeyboardInterrupt

    uninterrupted = w2v.train(sample, **SETTINGS)
    scored_vectors.clear()
    with pytest.raises(KeyboardInterrupt):
        w2v.train(sample, **SETTINGS, checkpoint=tmp_path, checkpoint_every="1chunks", progress=stop)
    for _ in range(2):  # the second time nothing is left to train
        model = w2v.resume(tmp_path, sample)
        assert model.metrics["held_out_scores"] == uninterrupted.metrics["held_out_scores"]
        assert model.vectors.tobytes() == uninterrupted.vectors.tobytes()
    assert len(scored_vectors) == 4


def test_warning_if_the_best_state_cannot_be_written(
    sample: Path,
    tmp_path: Path,
    scored_vectors: list[np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fsync(file: int) -> None:
        if len(scored_vectors) == 2:
            full_disk()

    monkeypatch.setattr(os, "fsync", fsync)
    model = w2v.train(sample, **SETTINGS, checkpoint=tmp_path, checkpoint_every="never")
    assert model.vectors.tobytes() == scored_vectors[3].tobytes()
    assert "using the vectors of the last epoch, 4, instead of the best, 2" in caplog.text


@pytest.mark.parametrize("other", [{"seed": 2}, {"vector_size": 12}, None], ids=str)
def test_best_vectors_of_another_run_are_not_used(
    sample: Path,
    tmp_path: Path,
    scored_vectors: list[np.ndarray],
    caplog: pytest.LogCaptureFixture,
    other: dict[str, Any] | None,
) -> None:
    """Without another run, it is the best checkpoint of an earlier epoch of the same run."""
    states, best = tmp_path / "states", tmp_path / BEST_FILE_NAME
    if other:
        w2v.train(sample, **SETTINGS | other, checkpoint=states)
        shutil.copy(states / BEST_FILE_NAME, best)
        scored_vectors.clear()

    def exchange(now: w2v.Progress) -> None:
        if len(scored_vectors) == 1 and not best.exists():
            shutil.copy(states / BEST_FILE_NAME, best)
        if now.epoch == 4:
            shutil.copy(best, states / BEST_FILE_NAME)

    model = w2v.train(
        sample, **SETTINGS, checkpoint=CheckpointFolder(states, "1epoch", replace=True), progress=exchange
    )
    assert model.vectors.tobytes() == scored_vectors[3].tobytes()
    assert "using the vectors of the last epoch, 4, instead of the best, 2" in caplog.text
    reason = "belongs to another run" if other else "was not written after epoch 2 of this run"
    assert f"{BEST_FILE_NAME} {reason}: using" in caplog.text


def test_end_of_the_text_is_held_out(sample: Path) -> None:
    all_tokens, trained = (
        w2v.train(sample, **(SETTINGS | {"stop_early": patience})).metrics["tokens"] for patience in (None, 9)
    )
    assert trained == pytest.approx(0.95 * all_tokens, rel=0.01)


def test_run_without_a_checkpoint_folder_writes_no_checkpoint_and_leaves_no_file(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CheckpointFolder, "write", lambda *_: pytest.fail("a checkpoint was written"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    w2v.train(sample, **SETTINGS)
    assert list(tmp_path.iterdir()) == []


def test_last_epoch_can_be_the_best(sample: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "w2v")
    model = w2v.train(sample, **(SETTINGS | {"epochs": 1}))
    assert len(model.metrics["held_out_scores"]) == 1
    assert "the last epoch, 1, was the best" in caplog.text


def test_impossible_early_stopping_is_refused(sample: Path, tmp_path: Path) -> None:
    with pytest.raises(w2v.SettingsError, match="stop_early has no effect on tuning"):
        w2v.tune(sample, time="1m", stop_early=2)
    with pytest.raises(w2v.W2VError, match="the held-out text is too short"):
        w2v.train([["one", "two"], ["two", "one"]], min_count=1, stop_early=2)


def test_of_epochs_with_the_same_score_the_first_is_the_best() -> None:
    assert best_epoch([0.5, 0.7, 0.6, 0.7]) == 2
