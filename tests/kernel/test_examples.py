"""Training texts with labels: both kernels give the same results, and deterministic threads the same bits."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers import SETS, copy_matrices, make_loss, run_threads, train_in_python
from w2v._kernel.plan import Plan
from w2v._kernels import Kernel
from w2v._losses.registry import Settings
from w2v._system import memory
from w2v._text.examples import Examples
from w2v._training.planning import frozen_rows

LABELS, ROWS, DIMENSIONS = 9, 70, 21
LOSSES: list[dict[str, Any]] = [
    *({"loss": loss} for loss in ("softmax", "ova", "hs", "ns", "nce", "sampled")),
    {"loss": "class", "classes": 3},
    {"loss": "ova", "smoothing": 0.1},
]


def texts(count: int = 60, most_labels: int = 1, seed: int = 3) -> Examples:
    """Return texts of 1 to 12 rows."""
    random = np.random.default_rng(seed)
    lengths, label_counts = random.integers(1, 13, count), random.integers(1, most_labels + 1, count)
    starts, label_starts = (np.append(0, np.cumsum(sizes)) for sizes in (lengths, label_counts))
    rows = [random.choice(ROWS, length, replace=False) for length in lengths]
    labels = [random.choice(LABELS, labels, replace=False) for labels in label_counts]
    return Examples(
        starts,
        np.concatenate(rows).astype(np.int32),
        random.uniform(0.1, 0.5, starts[-1]).astype(np.float32),
        label_starts,
        np.concatenate(labels).astype(np.int32),
        random.uniform(0.5, 2, count).astype(np.float32),
    )


def run_of(
    loss: dict[str, Any], examples: Examples, workers: int = 1, frozen: bool = False, **settings: Any
) -> tuple[Plan, dict[str, np.ndarray]]:
    """Return the plan of a run that trains texts, and matrices far from zero."""
    chosen = make_loss(-np.sort(-np.bincount(examples.labels, minlength=LABELS)), **loss)
    matrices = {
        name: memory.aligned_rows(rows, DIMENSIONS) for name, rows in [("inputs", ROWS), ("outputs", chosen.rows)]
    }
    random = np.random.default_rng(4)
    for matrix in matrices.values():
        matrix[:, :DIMENSIONS] = random.normal(0, 0.5, (len(matrix), DIMENSIONS))
    chunks = examples.chunk_starts(50)
    options = {"model": "cbow", "alpha": 0.1, "min_alpha": 0.001, "seed": 5, "vector_size": DIMENSIONS}
    plan = Plan(
        settings=Settings(**options | settings),
        ids=np.empty(0, np.uint32),
        word_of_type=np.empty(0, np.int32),
        tokens_before=2 * examples.starts[chunks],
        keep_thresholds=np.zeros(ROWS, np.uint32),
        loss=chosen,
        epochs=2,
        chunk_size=int(np.diff(examples.starts[chunks]).max()),
        workers=workers,
        instruction_set=SETS[0],
        frozen_outputs=frozen,
        examples=examples,
        chunk_starts=chunks,
    )
    return plan, matrices


@pytest.mark.parametrize("settings", [{"most_labels": 1}, {"most_labels": 3}, {"most_labels": 1, "model": "skipgram"}])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_kernels_train_examples_alike(loss: dict[str, Any], settings: dict[str, Any]) -> None:
    examples = texts(most_labels=settings["most_labels"])
    model = settings.get("model", "cbow")
    plan, matrices = run_of(loss, examples, model=model)
    exact = {name: matrix.astype(np.float64) for name, matrix in matrices.items()}
    slow = train_in_python(plan, exact["inputs"], {"outputs": exact["outputs"]})
    assert np.abs(exact["inputs"] - matrices["inputs"]).max() > 0.1
    for name in SETS:
        compiled = copy_matrices(matrices)
        kernel = Kernel(replace(plan, instruction_set=name), compiled["inputs"], compiled["outputs"])
        run_threads(kernel, 1)
        np.testing.assert_allclose(compiled["inputs"], exact["inputs"], atol=2e-4, err_msg=name)
        np.testing.assert_allclose(compiled["outputs"], exact["outputs"], atol=2e-4, err_msg=name)
        np.testing.assert_allclose(kernel.losses, slow.losses, rtol=1e-5, err_msg=name)
        assert kernel.predictions.tolist() == slow.predictions.tolist()
        assert kernel.predictions.tolist() == [60 if model == "cbow" else len(examples.rows)] * 2
        assert kernel.tokens_trained == 2 * plan.tokens


def test_frozen_rows_stay_and_both_kernels_train_the_others_alike() -> None:
    plan, matrices = run_of({"loss": "softmax"}, texts(most_labels=2))
    frozen = np.arange(ROWS) % 3 == 0
    subwords, shares = frozen_rows(frozen)
    plan = replace(plan, subwords=subwords, shares=shares)
    exact = {name: matrix.astype(np.float64) for name, matrix in matrices.items()}
    train_in_python(plan, exact["inputs"], {"outputs": exact["outputs"]})
    results = []
    for workers in (1, 3, 3):
        changed = copy_matrices(matrices)
        settings = replace(plan.settings, deterministic=True)
        run_threads(Kernel(replace(plan, settings=settings, workers=workers), *changed.values()), workers)
        np.testing.assert_array_equal(changed["inputs"][frozen], matrices["inputs"][frozen])
        results.append(changed)
    for name in matrices:
        np.testing.assert_allclose(results[0][name], exact[name], atol=2e-4)
        np.testing.assert_array_equal(results[1][name], results[2][name])
    assert np.abs(exact["inputs"] - matrices["inputs"])[~frozen].max(axis=1).min() > 1e-3


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_deterministic_threads_train_texts_to_the_same_bits(loss: dict[str, Any], frozen: bool) -> None:
    results = []
    for _ in range(3):
        options: dict[str, Any] = {"deterministic": True, "alpha": 0.02}
        plan, matrices = run_of(loss, texts(200, 2), workers=3, frozen=frozen, **options)
        kernel = Kernel(plan, matrices["inputs"], matrices["outputs"])
        run_threads(kernel, 3)
        assert kernel.predictions.tolist() == [200, 200]
        results.append((*matrices.values(), kernel.losses))
    for result in results[1:]:
        for array, first in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(array, first)
