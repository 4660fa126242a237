"""The computations of each loss: in plain Python and float64, to check gradients, and compiled."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import new_plan
from w2v._kernel import loop
from w2v._kernel.numba_kernel import Kernel
from w2v._losses import charcnn
from w2v._losses.charcnn import CharacterCNN
from w2v._losses.dsoftmax import blocks_of
from w2v._losses.gradient import Trial, check_gradient
from w2v._losses.loss import Loss
from w2v._losses.registry import LOSSES
from w2v._system import memory
from w2v._text.vocabulary import Vocabulary
from w2v.data import make

WORDS = Vocabulary(["the", "a", "of", "cat", "cats", "élan", "q"], np.array([9, 7, 4, 4, 2, 1, 1]))
SIZE = 5
CASES: dict[str, dict[str, Any]] = {
    "ns": {"loss": "ns", "negative": 3},
    "hs": {"loss": "hs"},
    "nce": {"loss": "nce", "negative": 5},
    "sampled": {"loss": "sampled", "negative": 5},
    "adaptive": {"loss": "sampled", "negative": 3, "adaptive_samples": True},
    "class": {"loss": "class"},
    "softmax": {"loss": "softmax"},
    "dsoftmax": {"loss": "dsoftmax", "blocks": "2:3,2:1,1"},
    "mos": {"loss": "mos", "mixtures": 3},
    "sampled mos": {"loss": "mos", "mixtures": 2, "sampled_mixtures": True, "negative": 4},
    "charcnn": {"loss": "charcnn", "negative": 4},
}
EXACT = "softmax", "dsoftmax", "mos"


def new_loss(case: str, small: bool = True) -> Loss:
    """Return the loss of a case.

    If `small`, the character CNN has few filters, so its gradient is quick to check in plain Python. The vectors of
    compiled code need multiples of 16.
    """
    loss = LOSSES[CASES[case]["loss"]]()
    if isinstance(loss, CharacterCNN):
        loss.filters, loss.length, loss.correction = (4, 2, 2) if small else (16, 16, 16)
    return loss


def prepared_loss(case: str, small: bool = True) -> Loss:
    return new_loss(case, small).prepared(WORDS, w2v.Settings(vector_size=SIZE, **CASES[case]))


@pytest.mark.parametrize("case", CASES)
def test_updates_follow_the_gradient(case: str) -> None:
    largest = check_gradient(new_loss(case), vocabulary=WORDS, tolerance=2e-6, **CASES[case])
    assert min(largest.values()) > 1e-3, largest
    if case in EXACT:
        loss = prepared_loss(case)
        trial, centre = Trial(loss, np.random.default_rng(4)), 3
        logs = loss.log_probabilities(loss.stored(trial.parameters), trial.matrices["x"])
        assert trial.predict(centre) == pytest.approx(-logs[:, centre].sum())


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("spans", [1, 9, 1 << 14])
def test_character_cnn_computes_the_output_vectors_of_training(spans: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charcnn, "SPANS_AT_ONCE", spans)
    loss = prepared_loss("charcnn")
    assert isinstance(loss, CharacterCNN)
    trial = Trial(loss, np.random.default_rng(4), inputs=1)
    worker = trial.worker()
    for word, vector in enumerate(loss.outputs(loss.stored(trial.parameters))):
        trial.step(worker, word, trial.x, np.zeros_like(trial.x), 0.0)
        np.testing.assert_allclose(worker.scratch.outputs[0, :SIZE], vector)


@pytest.mark.parametrize("case", CASES)
def test_steps_leave_nothing_behind_that_the_next_step_reads(case: str) -> None:
    """After several steps, the padding is still zero, and exact losses are still −log p of the parameters."""
    loss = prepared_loss(case)
    trial = Trial(loss, np.random.default_rng(4))
    worker, stored = trial.worker(), trial.matrices
    with np.errstate(over="ignore"):
        for centre in (2, 0, 6, 2):
            value = trial.step(worker, centre, trial.x, np.zeros_like(trial.x), 0.0)
            if case in EXACT:
                logs = loss.log_probabilities(stored, trial.matrices["x"])
                assert value == pytest.approx(-logs[:, centre].sum())
            trial.step(worker, centre, trial.x, np.zeros_like(trial.x), 0.3)
            parameters = worker.parameters._asdict()
            stored = loss.stored(parameters)
            own, padded = (sum(np.abs(each).sum() for each in arrays.values()) for arrays in (stored, parameters))
            assert own == pytest.approx(padded)


@pytest.mark.parametrize("case", ["sampled", "sampled mos", "charcnn"])
def test_sampled_losses_correct_for_how_often_words_are_drawn(case: str) -> None:
    """The softmax is over the centre word and the K drawn words. Each of them has the weight exp(s) / (K q)."""
    loss = prepared_loss(case)
    trial, draws = Trial(loss, np.random.default_rng(4), inputs=1), loss.options.negative
    worker, row, stored = trial.worker(), trial.matrices["x"][0], loss.stored(trial.parameters)
    expected_draws = draws * np.sqrt(WORDS.counts) / np.sqrt(WORDS.counts).sum()
    most = 0
    for centre in [0, 3, 6] * 5:
        with np.errstate(over="ignore"):
            value = trial.step(worker, centre, trial.x, np.zeros_like(trial.x), 0.0)
        times = worker.weight.cumsum().tolist()
        words = worker.rows[: times.index(draws + 1) + 1]  # the centre word, and K draws
        assert words[0] == centre
        shares = worker.weight[: len(words)] / expected_draws[words]
        if case == "sampled mos":
            projected = np.tanh(np.split(stored["projections"], 2) @ row)
            gates = np.exp(stored["gates"] @ row)
            parts = np.exp(projected @ stored["outputs"][words].T) * shares
            p = (gates / gates.sum()) @ (parts[:, 0] / parts.sum(axis=1))
        else:
            outputs = loss.outputs(stored) if isinstance(loss, CharacterCNN) else stored["outputs"]
            parts = np.exp(outputs[words] @ row) * shares
            p = parts[0] / parts.sum()
        assert value == pytest.approx(-np.log(p), rel=1e-6)
        most = max(most, int(worker.weight[1 : len(words)].max(initial=0)))
    assert most > 1


def test_rare_characters_share_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charcnn, "MAX_CHARACTERS", 3)
    words = Vocabulary(["aab", "éb", "zqa"], np.array([3, 2, 1]))  # only a, b and q get numbers
    loss = CharacterCNN().prepared(words, w2v.Settings(loss="charcnn"))
    spelt = loss.data["spelt"].tolist()
    assert loss.data["starts"].tolist() == [0, 5, 9, 14]
    edge, a, b, e, z, q = (spelt[position] for position in (0, 1, 3, 6, 10, 11))
    assert spelt == [edge, a, a, b, edge, edge, e, b, edge, edge, z, q, a, edge]
    assert e == z
    assert len({edge, a, b, q, e}) == 5
    assert loss.shapes["characters"][0] == 5
    assert max(spelt) < 5


def test_initial_filters_have_values_of_unit_variance() -> None:
    loss = CharacterCNN().prepared(WORDS, w2v.Settings(loss="charcnn", vector_size=50))
    initial = loss.parameters(np.random.default_rng(1))
    spans = np.random.default_rng(2).normal(size=(500, 48))  # three characters of 16 values each
    assert initial["filters"].mean() == pytest.approx(0, abs=0.01)
    assert (spans @ initial["filters"].T).std() == pytest.approx(1, abs=0.05)
    corrections = np.random.default_rng(3).normal(size=(500, 16)) @ initial["projection"][:50, 128:].T
    assert corrections.std() == pytest.approx(1, abs=0.1)
    assert not initial["projection"][:, :128].any()
    assert not initial["corrections"].any()
    assert initial["characters"].std() == pytest.approx(1, abs=0.1)


def test_pieces_are_as_long_as_possible() -> None:
    lengths = [3, 3, 4, 1, 12, 2, 8, 1]
    found = list(charcnn.pieces(np.cumsum([0, *lengths]), 10))
    assert found == [(0, 3), (3, 4), (4, 5), (5, 7), (7, 8)]


COMPILED = ["dsoftmax", "mos", "sampled mos", "charcnn"]


@pytest.mark.slow
@pytest.mark.parametrize("case", COMPILED)
def test_compiled_loop_trains_what_plain_python_trains(case: str) -> None:
    """Compare the compiled loop in float32 with the same code in plain Python and float64."""
    loss, random = prepared_loss(case, small=False), np.random.default_rng(8)
    ids = np.append(random.integers(1, 8, 40), 0).astype(np.uint32)
    ids.flags.writeable = False  # as for a text, so that Numba compiles the loop for one array type only
    plan = new_plan(
        loss, alpha=0.05, min_alpha=0.01, ids=ids, word_of_type=np.arange(-1, 7, dtype=np.int32), window=2,
        seed=3, vector_size=SIZE, chunk_size=100,
    )  # fmt: skip
    exact = Trial(loss, random).parameters
    rounded = loss.new_parameters()
    for name, array in rounded.items():
        array[:] = exact[name]
    inputs = memory.aligned_rows(7, SIZE)
    inputs[:, :SIZE] = random.normal(0, 1, (7, SIZE))
    doubles = inputs.astype(np.float64)
    in_python, compiled = loop.Kernel(plan, doubles, exact), Kernel(plan, inputs, rounded)
    for kernel in in_python, compiled:
        kernel.run(0)
    assert compiled.predictions.tolist() == in_python.predictions.tolist()
    assert compiled.losses == pytest.approx(in_python.losses, rel=1e-5)
    np.testing.assert_allclose(inputs, doubles, atol=1e-4)
    for name, array in rounded.items():
        np.testing.assert_allclose(array, exact[name], atol=1e-4, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("case", COMPILED)
def test_model_learns_and_can_be_saved_and_resumed(case: str, tmp_path: Path) -> None:
    text = [line.split() for line in "".join(make.corpus(3000, seed=2)).splitlines()]
    options: dict[str, Any] = {"min_count": 1, "sample": 1e-3, "epochs": 3, "vector_size": SIZE, "workers": 1}
    options |= CASES[case]
    options |= {"blocks": "3:50,2"} if case == "dsoftmax" else {}
    model = w2v.train(text, checkpoint=tmp_path / "states", **options)
    assert model.settings.kernel == "numba"
    assert model.metrics["loss"][0] > model.metrics["loss"][2]
    model.save(tmp_path / "m.safetensors")
    view = model.views["words"]
    loaded = w2v.Model.load(tmp_path / "m.safetensors").views["words"]
    for found in loaded, w2v.resume(tmp_path / "states", text).views["words"]:
        assert found.output_parameters.keys() == view.output_parameters.keys()
        for name, array in view.output_parameters.items():
            np.testing.assert_array_equal(found.output_parameters[name], array)
    expected = view.log_probabilities(view.inputs[:9])
    np.testing.assert_allclose(loaded.log_probabilities(loaded.inputs[:9]), expected, rtol=1e-5)
    assert w2v.perplexity(loaded, text).perplexity < len(model.vocabulary)


@pytest.mark.parametrize(
    ("blocks", "size", "expected"),
    [
        ("50:10,30:20,20", 100, ([50, 30, 20], [10, 20, 70])),
        ("60,40", 100, ([60, 40], [50, 50])),
        (None, 100, ([50, 25, 25], [33, 33, 34])),
        (None, 7, ([4, 2, 1], [33, 33, 34])),
        (None, 3, ([2, 1], [50, 50])),
        (None, 2, ([1, 1], [50, 50])),
        (None, 1, ([1], [100])),
    ],
)
def test_blocks_get_their_lengths_and_numbers_of_words(
    blocks: str | None, size: int, expected: tuple[list[int], list[int]]
) -> None:
    assert blocks_of(blocks, 100, size) == expected


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ("50;50", "write lengths and numbers"),
        ("50,40", "add up to 90"),
        ("100,0", "add up to 100"),
        ("50:10,30,20", "all blocks but the last"),
        ("50:10,50:90", "all blocks but the last"),
        ("50:100,50", "each block needs a word, and the vocabulary has 100 words"),
        ("1" * 5000, "write lengths and numbers"),
    ],
)
def test_impossible_blocks_are_refused(blocks: str, expected: str) -> None:
    with pytest.raises(w2v.SettingsError, match=expected):
        blocks_of(blocks, 100, 100)
