"""The Cython kernel, compared with the loop in plain Python for every model and loss."""

import copy
import threading
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import SETS, copy_matrices, make_loss, new_plan, run_threads, train_in_python
from w2v import _settings as settings
from w2v._errors import W2VError
from w2v._formats import bfloat16
from w2v._kernel.plan import Plan, thresholds
from w2v._kernels import MAX_CHUNK_SIZE, Kernel
from w2v._losses.sampling import share_outputs
from w2v._settings import MAX_INPUTS_PER_STEP
from w2v._system import memory
from w2v._text.subword_rows import SubwordRows
from w2v._text.subwords import Subwords
from w2v._text.words import Words

TYPES = 60


def corpus(size: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ids with sentence ends and unknown types, the word of each id, and the counts in descending order."""
    random = np.random.default_rng(seed)
    ids = random.zipf(1.3, size) % TYPES
    ids[random.random(size) < 0.05] = 0
    counts = np.bincount(ids, minlength=TYPES)
    counts[[0, 1, 7]] = 0  # 0 is the sentence end, 1 and 7 are unknown
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    words = np.full(TYPES, -1, np.int32)
    words[order] = np.arange(len(order))
    return ids.astype(np.uint32), words, counts[order].astype(np.int64)


LOSSES: list[dict[str, Any]] = [
    *({"loss": loss} for loss in ("ns", "nce", "sampled", "hs", "class", "softmax")),
    *({"loss": "class", "classes": classes} for classes in (6, 1)),
    {"loss": "sampled", "adaptive_samples": True, "negative": 3},
    {"loss": "hs", "tree": "balanced"},
]


def run_arguments(
    loss: str | dict[str, Any], size: int = 150, dimensions: int = 21, sample: float = 0.02, **others: Any
) -> dict[str, Any]:
    """Return the arguments of a training run for both kernels, with matrices far from zero."""
    ids, words, counts = corpus(size)
    chosen = make_loss(counts, **loss) if isinstance(loss, dict) else make_loss(counts, loss)
    share = counts / counts.sum()
    random = np.random.default_rng(4)
    inputs = memory.aligned_rows(len(counts), dimensions)
    outputs = memory.aligned_rows(chosen.rows, dimensions)
    for matrix in inputs, outputs:
        matrix[:, :dimensions] = random.normal(0, 0.5, (len(matrix), dimensions))
    arguments = {
        "ids": ids, "word_of_type": words, "inputs": inputs, "outputs": outputs, "loss": chosen,
        "keep_thresholds": thresholds(np.minimum(1, np.sqrt(sample / share) + sample / share).astype(np.float32)),
        "window": 4, "alpha": 0.1, "min_alpha": 0.001, "epochs": 2, "seed": 5, "chunk_size": MAX_CHUNK_SIZE,
        "vector_size": dimensions,
    }  # fmt: skip
    return arguments | others


def make_plan(arguments: dict[str, Any], workers: int = 1, instruction_set: str = SETS[0]) -> Plan:
    fields = {name: value for name, value in arguments.items() if name not in ("inputs", "outputs")}
    return new_plan(**fields, workers=workers, instruction_set=instruction_set)


def new_kernel(arguments: dict[str, Any], workers: int = 1, instruction_set: str = SETS[0]) -> Kernel:
    return Kernel(make_plan(arguments, workers, instruction_set), arguments["inputs"], arguments["outputs"])


def train(arguments: dict[str, Any], workers: int = 1, instruction_set: str = SETS[0]) -> Kernel:
    kernel = new_kernel(arguments, workers, instruction_set)
    run_threads(kernel, workers)
    return kernel


def assert_equals_loop(arguments: dict[str, Any], instruction_sets: Sequence[str] = SETS[:1], workers: int = 1) -> None:
    exact = arguments | {name: arguments[name].astype(np.float64) for name in ("inputs", "outputs")}
    before = exact["inputs"].copy()
    slow = train_in_python(make_plan(exact, workers), exact["inputs"], {"outputs": exact["outputs"]})
    assert np.abs(exact["inputs"] - before).max() > 0.1  # training changed the matrix
    for name in instruction_sets:
        compiled = copy_matrices(arguments)
        kernel = train(compiled, workers, name)
        np.testing.assert_allclose(compiled["inputs"], exact["inputs"], atol=2e-4, err_msg=name)
        np.testing.assert_allclose(compiled["outputs"], exact["outputs"], atol=2e-4, err_msg=name)
        size = arguments["vector_size"]
        assert not compiled["inputs"][:, size:].any()  # the padding stays zero
        assert not compiled["outputs"][:, size:].any()
        if arguments.get("frozen_outputs"):
            np.testing.assert_array_equal(compiled["outputs"], arguments["outputs"])
            np.testing.assert_array_equal(exact["outputs"], arguments["outputs"])
        np.testing.assert_allclose(kernel.losses, slow.losses, rtol=1e-5, err_msg=name)
        np.testing.assert_array_equal(kernel.predictions, slow.predictions)
        assert kernel.tokens_trained == slow.tokens_trained


MODELS = [
    {"model": "skipgram"},
    {"model": "skipgram", "per_pair": True},
    {"model": "cbow", "cbow_gradient": "corrected"},
    {"model": "cbow", "cbow_gradient": "faithful"},
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_kernel_equals_loop(loss: dict[str, Any], model: dict[str, Any]) -> None:
    assert_equals_loop(run_arguments(loss, **model), SETS)


# The losses with an output row for each word: only these rows can be frozen.
WORD_ROWS = ["ns", "nce", "sampled", "softmax"]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("loss", WORD_ROWS)
def test_kernel_equals_loop_with_frozen_outputs(loss: str, model: dict[str, Any]) -> None:
    for dimensions, window in ((21, 4), *(((1, 7), (16, 1), (33, 7), (148, 1)) if loss == "ns" else ())):
        arguments = run_arguments(loss, frozen_outputs=True, dimensions=dimensions, window=window, **model)
        assert_equals_loop(arguments, SETS)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("loss", ["ns", "nce", "sampled"])
def test_kernel_equals_loop_where_words_share_output_rows(loss: str, model: dict[str, Any]) -> None:
    arguments = run_arguments(loss, **model)
    words = np.arange(len(arguments["inputs"]), dtype=np.int32)
    words[[5, 9, 12]] = 1
    arguments |= {"output_words": words, "loss": share_outputs(arguments["loss"], words)}
    before = arguments["outputs"].copy()
    assert_equals_loop(arguments, SETS)
    train(arguments)
    np.testing.assert_array_equal(arguments["outputs"][[5, 9, 12]], before[[5, 9, 12]])
    assert (arguments["outputs"][1] != before[1]).any()


def add_subwords(arguments: dict[str, Any], chunk_size: int) -> dict[str, Any]:
    """Add n-grams to the words of a run; words share some of them."""
    words = len(arguments["inputs"])
    subwords = SubwordRows.of(Subwords(1, 2, 50), Words.of(f"{number:x}" for number in range(words)))
    inputs = memory.aligned_rows(len(subwords.members), arguments["vector_size"])
    random = np.random.default_rng(6)
    inputs[:, : arguments["vector_size"]] = random.normal(0, 0.5, (len(inputs), arguments["vector_size"]))
    shares = random.random(len(subwords.rows), np.float32)
    return arguments | {"inputs": inputs, "subwords": subwords, "shares": shares, "chunk_size": chunk_size}


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("loss", [{"loss": "ns"}, {"loss": "hs"}], ids=str)
def test_kernel_equals_loop_with_subwords(loss: dict[str, Any], model: dict[str, Any]) -> None:
    assert_equals_loop(add_subwords(run_arguments(loss, **model), chunk_size=64), SETS)


@pytest.mark.parametrize("sides", [(5, 0), (0, 3), (2, 5)], ids=str)
def test_kernel_equals_loop_for_uneven_windows(sides: tuple[int, int]) -> None:
    for model in MODELS:
        assert_equals_loop(run_arguments({"loss": "ns"}, window=sides, **model), SETS)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_kernel_equals_loop_for_windows_of_whole_sentences(
    loss: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some sentences of the text are longer than the windows, some are shorter, and some cross the ends of chunks."""
    for model, (context, chunk) in product(MODELS, [(3, 1000), (20, 1000), (6, 7), (1, 40)]):
        monkeypatch.setattr(settings, "MAX_SENTENCE_CONTEXT", context)
        assert_equals_loop(run_arguments(loss, epochs=1, alpha=0.2, window="all", chunk_size=chunk, **model))


def test_kernel_equals_loop_for_whole_sentences_with_subwords_and_deterministic_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "MAX_SENTENCE_CONTEXT", 6)
    arguments = run_arguments("ns", alpha=0.03, window="all", deterministic=True)
    arguments["loss"].curvature = 0
    assert_equals_loop(add_subwords(arguments, chunk_size=25), workers=3)


def count_pairs(sentences: Sequence[Sequence[int]], window: int, chunk_size: int, epochs: int = 1) -> np.ndarray:
    """Return how often skip-gram predicts each word from each context word in whole sentences: (V, V).

    The input matrix is the identity and the output matrix is 0. At a tiny learning rate, output row o then changes at
    column i by alpha × (how often o is predicted from i − how often any word is predicted from i / V).
    """
    size, alpha = 1 + max(map(max, sentences)), 1e-4
    ids = np.array([word + 1 for sentence in sentences for word in (*sentence, -1)], np.uint32)
    inputs, outputs = memory.aligned_rows(size, size), memory.aligned_rows(size, size)
    inputs[:, :size] = np.eye(size)
    arguments = {
        "ids": ids, "word_of_type": np.arange(-1, size, dtype=np.int32), "inputs": inputs, "outputs": outputs,
        "loss": make_loss(np.ones(size, np.int64), "softmax"), "per_pair": True, "window": "all", "alpha": alpha,
        "epochs": epochs, "seed": 1, "chunk_size": chunk_size, "vector_size": size,
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "MAX_SENTENCE_CONTEXT", window)
        kernel = train(arguments)
    changes = outputs[:, :size].T.astype(np.float64) / alpha  # (context word, predicted word)
    uniform = -changes.min(axis=1, keepdims=True)  # the column of a word that is never predicted, such as itself
    counts = changes + uniform
    np.testing.assert_allclose(counts.sum(), kernel.predictions.sum(), rtol=1e-2)
    return counts


@pytest.mark.parametrize("chunk_size", [1000, 7, 1])
@pytest.mark.parametrize("window", [8, 9, 40])
def test_every_pair_of_a_short_session_is_trained_once_per_epoch(window: int, chunk_size: int) -> None:
    sessions = [range(9), range(9, 11), range(11, 12), range(12, 17)]
    expected = np.zeros((17, 17))
    for session in sessions:
        expected[np.ix_(session, session)] = 1
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(count_pairs(sessions, window, chunk_size), expected, atol=0.05)
    np.testing.assert_allclose(count_pairs(sessions, window, chunk_size, epochs=3), 3 * expected, atol=0.05)


@pytest.mark.parametrize("window", [2, 5])
def test_items_of_a_long_session_are_drawn_equally_often(window: int) -> None:
    """The chi-square of the counts of all pairs. Without shuffling it is above 10,000."""
    items, epochs = 12, 400
    counts = count_pairs([range(items), range(items, items + 2)], window, 1000, epochs)[:items, :items]
    np.testing.assert_allclose(counts.sum(axis=0), epochs * window, rtol=0.01)  # each item is predicted as often
    others = counts[~np.eye(items, dtype=bool)]
    expected = epochs * window / (items - 1)
    chi_square = ((others - expected) ** 2 / expected).sum()
    freedom = items * (items - 2)
    assert chi_square < freedom + 4 * np.sqrt(2 * freedom)


@pytest.mark.slow
@pytest.mark.parametrize(("dimensions", "sides"), list(product([1, 16, 33, 48], [(1, 1), (7, 7)])))
def test_kernel_equals_loop_in_other_shapes(dimensions: int, sides: tuple[int, int]) -> None:
    for loss in LOSSES:
        assert_equals_loop(
            run_arguments(loss, size=80, dimensions=dimensions, window=sides, shrink_windows=False), SETS
        )


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_kernel_equals_loop_where_windows_take_several_steps(loss: dict[str, Any], model: dict[str, Any]) -> None:
    arguments = run_arguments(loss, window=(MAX_INPUTS_PER_STEP + 3, 2), **model)
    assert_equals_loop(arguments | {"ids": arguments["ids"][arguments["ids"] != 0]})


@pytest.mark.parametrize("negative", [1, 2, 11, 40])
def test_kernel_equals_loop_for_any_number_of_negatives(negative: int) -> None:
    arguments = run_arguments("ns")
    counts = np.arange(len(arguments["inputs"]), 0, -1)
    arguments["loss"] = make_loss(counts, negative=negative)
    assert_equals_loop(arguments, SETS)


def test_kernel_equals_loop_where_the_same_negative_is_always_drawn() -> None:
    """After too many draws of the last word, the next words are taken, from the first on."""
    arguments = run_arguments("ns")
    counts = np.append(np.full(len(arguments["inputs"]) - 1, 1000), 1)
    assert_equals_loop(arguments | {"loss": make_loss(counts, "ns", negative=5, ns_exponent=-10.0)})


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
def test_kernel_equals_loop_for_paths_of_any_length(model: str) -> None:
    """Counts halve at every second word, so paths have every length."""
    arguments = run_arguments("hs", size=400, model=model)
    loss = make_loss(2 ** (np.arange(len(arguments["inputs"]), 0, -1) // 2), "hs")
    assert set(np.diff(loss.data["starts"])) >= set(range(4, 26))
    assert_equals_loop(arguments | {"loss": loss}, SETS)


@pytest.mark.slow
def test_windows_cross_chunk_borders() -> None:
    assert_equals_loop(run_arguments("ns", size=MAX_CHUNK_SIZE + 500, dimensions=3, epochs=1, alpha=0.01))
    assert_equals_loop(run_arguments("nce", chunk_size=7))
    assert_equals_loop(run_arguments("hs", chunk_size=1))


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_every_token_is_trained_once_per_epoch(workers: int) -> None:
    arguments = run_arguments("ns", size=5 * MAX_CHUNK_SIZE + 77, dimensions=2, epochs=3)
    kernel = train(arguments, workers)
    known = int((arguments["word_of_type"][arguments["ids"]] >= 0).sum())
    assert kernel.tokens_trained == 3 * known
    assert np.isfinite(kernel.losses / kernel.predictions).all()


@pytest.mark.parametrize("loss", ["ns", "nce", "sampled", "hs"])
@pytest.mark.parametrize(("workers", "chunk", "minimum"), [(2, 250, 0.6), (8, 100, 0.2), (8, 20_000, 0.9)])
def test_several_workers_learn_like_one(loss: str, workers: int, chunk: int, minimum: float) -> None:
    """With many chunks, each worker copies some output rows, and a share of its changes is merged."""
    one = run_arguments(loss, size=60_000, chunk_size=chunk, alpha=0.02)
    many, before = copy_matrices(one), one["outputs"].copy()
    single, kernel = train(one), train(many, workers)
    np.testing.assert_allclose(kernel.losses / kernel.predictions, single.losses / single.predictions, rtol=0.05)
    change_of_one, change_of_many = (np.linalg.norm(run["outputs"] - before, axis=1).mean() for run in (one, many))
    assert minimum < change_of_many / change_of_one < 1.1


@pytest.mark.parametrize("loss", ["ns", "nce", "sampled", "hs"])
def test_worker_merges_a_share_of_the_changes_of_hot_rows(loss: str) -> None:
    """The rows of the 16 most frequent words receive one and a half times the mean of the changes, nodes the mean."""
    workers = 16
    one = run_arguments(loss, size=2700, chunk_size=5)
    many, before = copy_matrices(one), one["outputs"].copy()
    for arguments, count in ((one, 1), (many, workers)):
        new_kernel(arguments, count).run(0, 1)  # only one chunk
    hot = slice(-512 // workers, None) if loss == "hs" else slice(16)
    expected = one["outputs"] - before
    assert np.abs(expected[hot]).max() > 0.01
    expected[hot] *= (1 if loss == "hs" else 1.5) / workers
    np.testing.assert_allclose(many["outputs"] - before, expected, atol=1e-6)


# The losses that several deterministic workers can train.
DETERMINISTIC = ["ns", "nce", "sampled", "hs"]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("loss", DETERMINISTIC)
def test_deterministic_workers_equal_loop(loss: str, model: dict[str, Any]) -> None:
    """All workers compute their changes from the matrices at the beginning of a round. Then the changes are added."""
    workers, chunk = (2, 16) if model["model"] == "cbow" else (5, 45)
    arguments = run_arguments(loss, chunk_size=chunk, alpha=0.05, deterministic=True, **model)
    arguments["loss"].curvature = 0  # changes are added in full
    assert_equals_loop(arguments, workers=workers)


@pytest.mark.parametrize("loss", DETERMINISTIC)
def test_deterministic_workers_equal_loop_with_subwords(loss: str) -> None:
    arguments = add_subwords(run_arguments(loss, alpha=0.03, deterministic=True), chunk_size=25)
    arguments["loss"].curvature = 0
    assert_equals_loop(arguments, workers=3)


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
def test_equal_changes_of_deterministic_workers_shrink(model: str) -> None:
    """Three workers train the same sentence. Each change is scaled by the part of the way that earlier ones left."""
    alpha, window = 0.05, 4
    sentence = np.unique(corpus(300)[0])[[2, 3, 4, 5, 2, 6, 3]]
    chunk = np.array([0, *sentence, 0], np.uint32)
    chosen: dict[str, Any] = {"ids": np.tile(chunk, 3), "chunk_size": len(chunk), "shrink_windows": False}
    chosen |= {"epochs": 1, "alpha": alpha, "min_alpha": alpha, "model": model, "deterministic": True}
    one = run_arguments("hs", sample=1, **chosen)  # no subsampling
    many, before = copy_matrices(one), copy_matrices(one)
    new_kernel(one).run(0, 1)
    train(many, 3)
    updates = {name: np.zeros(len(one[name])) for name in ("inputs", "outputs")}
    tree = one["loss"].tree
    for position, word in enumerate(one["word_of_type"][sentence].tolist()):
        updates["inputs"][word] += window
        context = min(position, window) + min(len(sentence) - 1 - position, window)
        updates["outputs"][tree.nodes[tree.starts[word] : tree.starts[word + 1]]] += 1 if model == "cbow" else context
    for name, count in updates.items():
        left = np.exp(-one["loss"].curvature * alpha * count)[:, np.newaxis]
        change = one[name] - before[name]
        assert np.abs(change).max() > 0.01
        np.testing.assert_allclose(many[name] - before[name], change * (1 + left + left**2), atol=1e-6, err_msg=name)


@pytest.mark.parametrize("loss", DETERMINISTIC)
def test_many_deterministic_workers_learn_like_one(loss: str) -> None:
    """The sum of changes in one direction does not overshoot."""
    one = run_arguments(loss, size=60_000, chunk_size=100, alpha=0.02)
    many = copy_matrices(one | {"deterministic": True})
    single, kernel = train(one), train(many, 8)
    ratios = (kernel.losses / kernel.predictions) / (single.losses / single.predictions)
    assert 0.99 < ratios[0] < 1.05
    assert 0.99 < ratios[1] < 1.01


@pytest.mark.parametrize("storage", ["float32", "bf16"])
@pytest.mark.parametrize("subwords", [False, True])
@pytest.mark.parametrize("loss", DETERMINISTIC)
def test_deterministic_workers_give_the_same_bits(loss: str, subwords: bool, storage: str) -> None:
    arguments = run_arguments(loss, size=3000, chunk_size=40, deterministic=True, storage=storage)
    if subwords:
        arguments = add_subwords(arguments, chunk_size=40)
    runs = [convert_storage(copy_matrices(arguments)) for _ in range(3)]
    kernels = [train(run, workers=4) for run in runs]
    for run, kernel in zip(runs[1:], kernels[1:], strict=True):
        np.testing.assert_array_equal(run["inputs"], runs[0]["inputs"])
        np.testing.assert_array_equal(run["outputs"], runs[0]["outputs"])
        np.testing.assert_array_equal(kernel.losses, kernels[0].losses)


@pytest.mark.parametrize("storage", ["float32", "bf16"])
@pytest.mark.parametrize("model", ["skipgram", "cbow"])
@pytest.mark.parametrize(
    ("loss", "deterministic"), [*product(WORD_ROWS, [False]), ("ns", True), ("nce", True), ("sampled", True)]
)
def test_several_workers_leave_frozen_outputs_unchanged(
    loss: str, model: str, storage: str, deterministic: bool
) -> None:
    chosen = {"model": model, "storage": storage, "deterministic": deterministic, "frozen_outputs": True}
    arguments = run_arguments(loss, size=3000, chunk_size=40 if deterministic else 10, **chosen)
    one, other, before = (convert_storage(copy_matrices(arguments)) for _ in range(3))
    train(one, workers=4)
    train(other, workers=4)
    np.testing.assert_array_equal(one["outputs"], before["outputs"])
    assert (one["inputs"] != before["inputs"]).any()
    assert not deterministic or np.array_equal(one["inputs"], other["inputs"])


def convert_storage(arguments: dict[str, Any]) -> dict[str, Any]:
    """Convert the matrices of a run to its storage type."""
    if arguments.get("storage") == "bf16":
        for name in ("inputs", "outputs"):
            rows = memory.aligned_rows(*arguments[name].shape, bfloat16.bfloat16())
            rows[:, : arguments[name].shape[1]] = arguments[name]
            arguments[name] = bfloat16.as_uint16(rows)
    return arguments


@pytest.mark.slow
@given(st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_deterministic_workers_can_be_interrupted_anywhere(ends: list[int]) -> None:
    """`run` finishes the round that contains its end. Splitting a run does not change its result."""
    arguments = run_arguments("ns", size=600, chunk_size=20, deterministic=True)  # 60 chunks: 30 in each of 2 epochs
    whole, parts = copy_matrices(arguments), copy_matrices(arguments)
    train(whole, 3)
    kernel = new_kernel(parts, 3)
    for end in [*sorted(ends), 60]:
        run_threads(kernel, 3, end)
        assert end <= kernel.position < end + 3
        kernel.restore(kernel.position, kernel.losses, kernel.predictions)
    assert kernel.position == 60
    np.testing.assert_array_equal(parts["inputs"], whole["inputs"])


def test_stop_ends_the_wait_for_other_deterministic_workers() -> None:
    kernel = new_kernel(run_arguments("ns", chunk_size=20, deterministic=True), workers=2)
    waiting = threading.Thread(target=kernel.run, args=(0,))
    waiting.start()
    kernel.stop()
    waiting.join()
    kernel.run(1)
    assert kernel.tokens_trained == 0
    kernel.restore(0, kernel.losses, kernel.predictions)
    run_threads(kernel, 2)
    assert kernel.position == 2 * 8  # all chunks of two epochs


@pytest.mark.parametrize("loss", ["ns", "nce", "sampled", "hs", "class", "softmax"])
def test_one_worker_gives_the_same_bits(loss: str) -> None:
    arguments = run_arguments(loss, size=1500, chunk_size=700)
    runs = [copy_matrices(arguments) for _ in range(2)]
    for run in runs:
        train(run)
    assert np.array_equal(runs[0]["inputs"], runs[1]["inputs"])
    assert np.array_equal(runs[0]["outputs"], runs[1]["outputs"])
    other_seed = copy_matrices(arguments | {"seed": 6})
    train(other_seed)
    assert not np.array_equal(runs[0]["inputs"], other_seed["inputs"])


def test_rows_beyond_two_to_the_31_values_are_trained() -> None:
    """Rows beyond 2³¹ values change as in small matrices. Only these rows of the matrices take memory."""
    dimensions = 1 << 13
    beyond = (1 << 31) // dimensions
    small = run_arguments("hs", size=80, dimensions=dimensions, epochs=1)
    loss = copy.copy(small["loss"])
    loss.data = {
        "starts": np.concatenate([np.zeros(beyond, np.int64), loss.data["starts"]]),
        "nodes": loss.data["nodes"] + np.int32(beyond),
        "codes": loss.data["codes"],
    }
    large = small | {
        "word_of_type": np.where(small["word_of_type"] < 0, -1, small["word_of_type"] + beyond).astype(np.int32),
        "keep_thresholds": np.concatenate([np.zeros(beyond, np.uint32), small["keep_thresholds"]]),
        "loss": loss,
    }
    try:
        large |= {name: memory.aligned_rows(beyond + len(small[name]), dimensions) for name in ("inputs", "outputs")}
    except W2VError:
        pytest.skip("the system does not overcommit memory")
    before = small["inputs"].copy()
    for name in ("inputs", "outputs"):
        large[name][beyond:] = small[name]
    train(small)
    train(large)
    assert np.abs(small["inputs"] - before).max() > 0.01
    np.testing.assert_array_equal(large["inputs"][beyond:], small["inputs"])
    np.testing.assert_array_equal(large["outputs"][beyond:], small["outputs"])


def test_stopped_kernel_does_not_train() -> None:
    kernel = new_kernel(run_arguments("ns"))
    kernel.stop()
    kernel.run(0)
    assert kernel.tokens_trained == 0
