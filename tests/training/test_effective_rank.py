"""The effective rank of a model's predictions, and the softmax bottleneck."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v._losses.loss import by_tensor_name
from w2v._losses.registry import loss_for
from w2v._progress import Progress
from w2v._training.effective_rank import effective_rank
from w2v._training.model import View, matrix_arguments


def random_model(loss: Any, size: int, **options: Any) -> View:
    vocabulary = w2v.Vocabulary([f"word{number}" for number in range(300)], 10_000 // np.arange(1, 301))
    settings = w2v.Settings(loss=loss, vector_size=size, **options)
    built_loss = loss_for(settings, vocabulary)
    random = np.random.default_rng(1)
    sizes = {"inputs": (len(vocabulary), size)} | by_tensor_name(built_loss.shapes)
    learnt = {name: random.standard_normal(shape, np.float32) for name, shape in sizes.items()}
    return View(settings, vocabulary, loss=built_loss, **matrix_arguments(learnt))


@pytest.fixture(scope="module")
def models() -> dict[str, View]:
    return {loss: random_model(loss, 5) for loss in ("softmax", "hs", "mos")}


def test_singular_values_match_all_predictions(models: dict[str, View]) -> None:
    for model in models.values():
        found, logs = effective_rank(model), model.log_probabilities(model.inputs.astype(np.float64))
        assert found.contexts == found.words == len(model.vocabulary)
        assert sum(np.square(found.singular_values)) == pytest.approx((logs**2).sum())
    assert effective_rank(models["mos"], 10, 20).rank == 10
    assert len(effective_rank(models["mos"], 10, 20).singular_values) == 10


def test_command_shows_the_rank_and_its_limit(models: dict[str, View], tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    for loss, limit in (("mos", "none"), ("softmax", "6")):
        w2v.Model({"words": models[loss]}).save(path, force=True)
        shown = run("rank", path).stdout
        assert re.search(f"^highest rank with this loss.* {limit}$", shown, re.MULTILINE)
    assert re.search("^rank +6 of 300$", shown, re.MULTILINE)
    facts = run_json("rank", path, "--contexts", 50, "--targets", 60)
    assert (facts["rank"], facts["contexts"], facts["words"], facts["vector_size"]) == (6, 50, 60, 5)
    assert len(facts["singular_values"]) == 50


# The limit is the 12 values of a vector, plus 1 for the normaliser; ns adds 1 for the noise distribution, and class has
# a normaliser for each of its 8 classes.
@pytest.mark.parametrize(
    ("loss", "limit"),
    [("ns", 14), ("nce", 13), ("sampled", 13), ("softmax", 13), ("class", 20), ("dsoftmax", 13), ("charcnn", 13),
     ("hs", None), ("mos", None)],
)  # fmt: skip
def test_rank_reaches_the_limit_of_the_loss(loss: str, limit: int | None) -> None:
    found = effective_rank(random_model(loss, 12, **{"classes": 8} if loss == "class" else {}))
    assert found.max_rank == limit
    assert found.rank == limit if limit else found.rank > 100


def test_predictions_that_are_not_numbers_are_refused(models: dict[str, View]) -> None:
    model = random_model("softmax", 5)
    model = replace(model, inputs=np.where(np.arange(300)[:, None] == 7, np.nan, model.inputs))
    with pytest.raises(w2v.W2VError, match="predictions are not numbers: its training has diverged"):
        effective_rank(model)
    effective_rank(model, contexts=7)  # without the context that has diverged


def test_contexts_and_targets_are_the_first_words(models: dict[str, View]) -> None:
    model = models["softmax"]
    logs = model.log_probabilities(model.inputs.astype(np.float64))
    for contexts, targets in ((300, 2), (2, 300), (40, 70)):
        found = effective_rank(model, contexts, targets)
        assert (found.contexts, found.words) == (contexts, targets)
        expected = np.linalg.svd(logs[:contexts, :targets], compute_uv=False)
        np.testing.assert_allclose(found.singular_values, expected, rtol=1e-6, atol=1e-9)
    for number, message in ((301, "at most 300"), (1, ".*2 or more")):
        for name in ("contexts", "targets"):
            with pytest.raises(w2v.SettingsError, match=f"^{name} {number}: it must be {message}"):
                effective_rank(model, **{name: number})


def test_predictions_are_computed_in_batches(models: dict[str, View], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = effective_rank(models["softmax"], 30, 40)
    for rows, batches in ((7, 5), (29, 2), (30, 1)):  # each row has the scores of 300 words
        monkeypatch.setattr("w2v._training.effective_rank.MAX_SCORES", 300 * rows)
        reports: list[Progress] = []
        found = effective_rank(models["softmax"], 30, 40, progress=reports.append)
        np.testing.assert_allclose(found.singular_values, expected.singular_values)
        assert len({report.done for report in reports} - {0}) == batches
        assert (reports[-1].phase, reports[-1].done, reports[-1].total) == ("predict", 30, 30)


def test_by_default_the_matrix_has_as_many_rows_and_columns_as_the_help_says() -> None:
    shown = re.findall(r"\[default: ([\d,]+)\]", run("rank", "--help").stdout)
    size = int(shown[0].replace(",", ""))
    vocabulary = w2v.Vocabulary([f"word{number}" for number in range(size + 1)], [5] * (size + 1))
    settings = w2v.Settings(loss="softmax", vector_size=2)
    loss, vectors = loss_for(settings, vocabulary), np.eye(size + 1, 2, dtype=np.float32)
    model = View(settings, vocabulary, vectors, vectors, loss)
    for options in ({"contexts": 2}, {"targets": 2}):
        found = effective_rank(model, **options)
        assert sorted([found.contexts, found.words]) == [2, size]
