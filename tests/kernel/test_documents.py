"""Training documents with tags: steps follow the gradient, both kernels agree, and threads give the same bits."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers import SETS, copy_matrices, log_probability, make_loss, new_plan, run_threads, train_in_python
from w2v._kernel.plan import Plan, Tags
from w2v._kernels import Kernel
from w2v._losses.gradient import numerical_gradient
from w2v._settings import MAX_INPUTS_PER_STEP
from w2v._system import memory

COUNTS = np.array([9, 7, 4, 4, 2, 1, 1])
TAGS, SIZE, WINDOW = 5, 21, 2
MODELS: dict[str, dict[str, Any]] = {
    "dbow": {"model": "skipgram"},
    "dm": {"model": "cbow"},
    "dbow+words": {"model": "skipgram"},
}
SESSIONS: dict[str, dict[str, Any]] = {  # models whose tags are words
    "also_context skipgram": {"model": "skipgram", "documents": None},
    "also_context cbow": {"model": "cbow", "documents": None},
}
LOSSES = ["ns", "nce", "sampled", "hs", "class", "softmax"]


def texts(count: int = 12, longest: int = 9, seed: int = 3) -> list[tuple[list[int], list[int]]]:
    """Return documents of up to `longest` words, each with no tag, one or several, which documents share."""
    random = np.random.default_rng(seed)
    tags = [random.choice(TAGS, size, replace=False) for size in random.integers(0, 4, count)]
    words = [random.integers(0, len(COUNTS), size) for size in random.integers(0, longest + 1, count)]
    return [(list(map(int, own)), list(map(int, text))) for own, text in zip(tags, words, strict=True)]


def plan_of(
    documents: str,
    loss: str = "ns",
    chunk_size: int = 1000,
    count: int = 12,
    most: int = 3,
    size: int = SIZE,
    longest: int = 9,
    **given: Any,
) -> tuple[Plan, dict[str, np.ndarray]]:
    """Return a plan and matrices far from zero. Id 0 ends a document, 1 is unknown, then come words and tags."""
    first_tag, ids, starts = 2 + len(COUNTS), list[int](), list[int]()
    for tags, words in texts(count, longest):
        start = len(ids)
        ids += [each for tag in tags for each in [1] * (tag % 2) + [first_tag + tag]]  # 1: a tag that is not known
        ids += [2 + word for word in words]
        ids += [1, 0]
        starts += [start] * (len(ids) - start)
    chosen = make_loss(COUNTS, loss, **({"negative": 3} if loss in ("ns", "nce", "sampled") else {}))
    rows = np.append([-1, -1], np.arange(len(COUNTS) + TAGS)).astype(np.int32)
    tags_of_plan = Tags(TAGS, most, np.array(starts[::chunk_size], np.int64), are_words=documents in SESSIONS)
    settings: dict[str, Any] = {
        "window": WINDOW,
        "alpha": 0.1,
        "epochs": 2,
        "vector_size": size,
        "documents": documents,
    }
    settings |= (
        {"keep_thresholds": np.full(len(COUNTS) + TAGS, 3 << 30, np.uint32)} | (MODELS | SESSIONS)[documents] | given
    )
    settings["keep_thresholds"][len(COUNTS) :] = 2**32 - 1
    plan = new_plan(
        chosen, ids=np.array(ids, np.uint32), word_of_type=rows, chunk_size=chunk_size, tags=tags_of_plan,
        **{"instruction_set": SETS[0]} | settings,
    )  # fmt: skip
    random, matrices = np.random.default_rng(4), dict[str, np.ndarray]()
    for name, number in ("inputs", plan.input_rows), ("outputs", chosen.rows):
        matrices[name] = memory.aligned_rows(number, size)
        matrices[name][:, :size] = random.normal(0, 0.5, (number, size))
    return plan, matrices


def assert_kernels_agree(plan: Plan, matrices: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Compare the compiled kernels with the loop in float64, and return the changes of the loop."""
    exact = {name: matrix.astype(np.float64) for name, matrix in matrices.items()}
    slow = train_in_python(plan, exact["inputs"], {"outputs": exact["outputs"]})
    for name in SETS:
        compiled = copy_matrices(matrices)
        kernel = Kernel(replace(plan, instruction_set=name), *compiled.values())
        run_threads(kernel, 1)
        for each in matrices:
            np.testing.assert_allclose(compiled[each], exact[each], atol=2e-4, err_msg=name)
        np.testing.assert_allclose(kernel.losses, slow.losses, rtol=1e-5)
        assert kernel.predictions.tolist() == slow.predictions.tolist()
        assert kernel.tokens_trained == slow.tokens_trained == plan.epochs * plan.tokens
    return {name: exact[name] - matrices[name] for name in matrices}


@pytest.mark.parametrize("chunk_size", [1, 7, 1000])  # chunks begin anywhere, also between the tags of a document
@pytest.mark.parametrize("documents", MODELS)
@pytest.mark.parametrize("loss", LOSSES)
def test_kernels_train_documents_alike(loss: str, documents: str, chunk_size: int) -> None:
    changes = assert_kernels_agree(*plan_of(documents, loss, chunk_size))
    assert np.abs(changes["inputs"][len(COUNTS) :]).max(axis=1).min() > 1e-3  # every tag was trained
    assert changes["inputs"][: len(COUNTS)].any() == (documents != "dbow")


@pytest.mark.parametrize("chunk_size", [7, 1000])
@pytest.mark.parametrize("model", SESSIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_kernels_train_sessions_whose_tags_are_words_alike(loss: str, model: str, chunk_size: int) -> None:
    changes = assert_kernels_agree(*plan_of(model, loss, chunk_size))
    assert np.abs(changes["inputs"]).max(axis=1).min() > 1e-3


@pytest.mark.parametrize(
    "others",
    [
        {"per_pair": True},
        {"window": MAX_INPUTS_PER_STEP - 1},
        {"window": "all"},
        {"window": "all", "longest": 100, "alpha": 0.02},
    ],
    ids=str,
)
@pytest.mark.parametrize("documents", ["dbow", "dbow+words", "also_context skipgram"])
def test_kernels_agree_if_tags_and_words_need_several_steps(documents: str, others: dict[str, Any]) -> None:
    assert_kernels_agree(*plan_of(documents, shrink_windows=False, **others))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("documents", ["dbow", "dm"])
def test_fixed_rows_stay_and_tags_train_as_in_the_loop(documents: str, loss: str) -> None:
    plan, matrices = plan_of(documents, loss, frozen_outputs=True)
    assert plan.tags
    changes = assert_kernels_agree(replace(plan, tags=replace(plan.tags, fixed_words=True)), matrices)
    assert not changes["inputs"][: len(COUNTS)].any()
    assert not changes["outputs"].any()
    assert np.abs(changes["inputs"]).max() > 0.1


@pytest.mark.parametrize("documents", [*MODELS, "also_context cbow"])
@pytest.mark.parametrize("loss", ["hs", "class", "softmax"])  # losses without random draws
def test_changes_are_the_gradient_of_the_reported_loss(loss: str, documents: str) -> None:
    options: dict[str, Any] = {"alpha": 1e-8, "epochs": 1, "shrink_windows": False, "size": 3, "count": 6}
    plan, matrices = plan_of(
        documents, loss, **options, keep_thresholds=np.full(len(COUNTS) + TAGS, 2**32 - 1, np.uint32)
    )
    inputs, outputs = (matrix[:, :3].astype(np.float64) for matrix in matrices.values())
    moved = {"inputs": inputs.copy(), "outputs": outputs.copy()}
    kernel = train_in_python(plan, moved["inputs"], {"outputs": moved["outputs"]})

    def total_loss() -> float:
        total = 0.0
        for tags, words in texts(6):
            rows = tags if documents in SESSIONS else [len(COUNTS) + tag for tag in tags]
            for at, centre in enumerate(words):
                context = words[max(0, at - WINDOW) : at] + words[at + 1 : at + 1 + WINDOW]
                chosen = rows if documents == "dbow" else context + rows
                pooled = (
                    [chosen] * bool(chosen) if documents in ("dm", "also_context cbow") else [[row] for row in chosen]
                )
                total -= sum(log_probability(plan.loss, outputs, inputs[each].mean(axis=0), centre) for each in pooled)
        return total

    assert kernel.losses[0] == pytest.approx(total_loss())
    for name, matrix in ("inputs", inputs), ("outputs", outputs):
        expected = -numerical_gradient(total_loss, matrix)
        assert np.abs(expected).max() > 0.5
        np.testing.assert_allclose((moved[name] - matrix) / 1e-8, expected, atol=1e-6)


@pytest.mark.parametrize("documents", [*MODELS, *SESSIONS])
def test_deterministic_threads_give_the_same_bits(documents: str) -> None:
    results = []
    for _ in range(2):
        plan, matrices = plan_of(documents, count=100, chunk_size=40, deterministic=True, workers=3)
        run_threads(Kernel(plan, *matrices.values()), 3)
        results.append(matrices)
    slow = {name: matrix.astype(np.float64) for name, matrix in plan_of(documents)[1].items()}
    for name in slow:
        np.testing.assert_array_equal(results[0][name], results[1][name])
        assert np.abs(results[0][name] - slow[name]).max() > 0.1
