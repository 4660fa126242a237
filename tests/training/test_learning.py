"""Every model and loss learns the known structure of generated corpora."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import train_on_pairs

# Skip-gram with hs predicts a centre word from one context word after the other, and later predictions profit from the
# earlier updates. With a high learning rate this lowers the loss of the first epochs, so the learning rate is low here.
MODELS: list[dict[str, Any]] = [
    {"model": "skipgram", "loss": "ns"},
    {"model": "skipgram", "loss": "hs", "alpha": 0.001},
    {"model": "cbow", "loss": "ns"},
    {"model": "cbow", "loss": "hs"},
]
GENERAL_OPTIONS: list[dict[str, Any]] = [
    {"shrink_windows": False},
    {"window": 1},
    {"sample": 1e-2},
    {"sample": 1e-2, "sample_formula": "paper"},
]
SPECIAL_OPTIONS: list[dict[str, Any]] = [
    {"model": "skipgram", "loss": "ns", "per_pair": True},
    {"model": "skipgram", "loss": "ns", "negative": 1},
    {"model": "skipgram", "loss": "ns", "negative": 39},  # every other word
    {"model": "skipgram", "loss": "ns", "ns_exponent": 0.0},
    {"model": "cbow", "loss": "ns", "ns_exponent": 1.0},
    {"model": "cbow", "loss": "ns", "cbow_gradient": "faithful", "alpha": 0.025},
    {"model": "cbow", "loss": "hs", "cbow_gradient": "faithful", "alpha": 0.025},
]
TOPICS, TOPIC_WORDS = 4, 10
SHARES = 1 / np.arange(2, TOPIC_WORDS + 2)
SHARES /= SHARES.sum()


@cache
def topics() -> list[list[str]]:
    """Return sentences of one topic each. "2.7" is word 7 of topic 2. Word k has the share SHARES[k] of the tokens."""
    words = np.random.default_rng(1).choice(TOPIC_WORDS, (5000, 10), p=SHARES)
    return [[f"{number % TOPICS}.{word}" for word in sentence] for number, sentence in enumerate(words.tolist())]


def train(corpus: list[list[str]], **options: Any) -> w2v.Model:
    defaults = {"vector_size": 12, "window": 3, "min_count": 1, "sample": 0, "epochs": 5, "workers": 1}
    return w2v.train(corpus, **(defaults | options))


def same_topic_share(model: w2v.Model) -> float:
    """Return the share of words of the same topic among the TOPIC_WORDS - 1 nearest neighbours of each word."""
    near = {word: model.wv.most_similar(word, topn=TOPIC_WORDS - 1) for word in model.vocabulary.words}
    assert len(near) == TOPICS * TOPIC_WORDS
    return float(np.mean([word[0] == other[0] for word, others in near.items() for other, _ in others]))


@pytest.mark.parametrize(
    "options",
    [*MODELS, *(model | options for model in (MODELS[0], MODELS[2]) for options in GENERAL_OPTIONS), *SPECIAL_OPTIONS],
    ids=str,
)
def test_words_of_a_topic_become_neighbours(options: dict[str, Any]) -> None:
    trained = train(topics(), **options)
    losses = trained.metrics["loss"]
    assert same_topic_share(trained) > 0.95
    assert np.argmax(losses) == 0  # later epochs differ by little more than chance
    assert trained.metrics["tokens_trained"] == 5 * trained.metrics["tokens"] == 5 * 50_000


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
def test_hierarchical_softmax_reaches_the_entropy_of_a_topic(model: str) -> None:
    """A word depends only on its topic, so the entropy of the words of a topic is the lowest possible loss."""
    loss = train(topics(), model=model, loss="hs").metrics["loss"][-1]
    assert loss == pytest.approx(-(SHARES * np.log(SHARES)).sum(), rel=0.02)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_several_workers_learn_the_same(model: dict[str, Any]) -> None:
    one, three = (train(topics() * 2, **model, workers=workers) for workers in (1, 3))
    assert same_topic_share(three) > 0.95
    assert three.metrics["loss"][-1] == pytest.approx(one.metrics["loss"][-1], rel=0.02)
    assert three.metrics["tokens_trained"] == one.metrics["tokens_trained"]


EFFECTS = [
    ({"model": "skipgram", "loss": "ns"}, ["negative", "ns_exponent", "per_pair"], ["cbow_gradient"]),
    ({"model": "skipgram", "loss": "hs"}, [], ["negative", "ns_exponent", "cbow_gradient"]),
    ({"model": "cbow", "loss": "ns"}, ["negative", "ns_exponent", "cbow_gradient"], ["per_pair"]),
    ({"model": "cbow", "loss": "hs"}, ["cbow_gradient"], ["negative", "ns_exponent", "per_pair"]),
]


@pytest.mark.parametrize(("model", "effective", "ineffective"), EFFECTS, ids=str)
def test_settings_have_an_effect_only_where_they_apply(
    model: dict[str, Any], effective: list[str], ineffective: list[str]
) -> None:
    special: dict[str, Any] = {"negative": 3, "ns_exponent": 0.25, "per_pair": True, "cbow_gradient": "corrected"}
    general: dict[str, Any] = {"window": 2, "shrink_windows": False, "sample": 0.01, "alpha": 0.01, "min_alpha": 0.001}
    default = train(topics()[:300], **model, epochs=1).views["words"].inputs
    for name in [*general, *effective, *ineffective]:
        changed = {name: (special | general)[name]}
        same = np.array_equal(default, train(topics()[:300], **model, epochs=1, **changed).views["words"].inputs)
        assert same == (name in ineffective), name


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
def test_negative_sampling_scores_are_shifted_pmi(model: str) -> None:
    """v'_o · v_i = PMI(o, i) − log K (Levy & Goldberg 2014), apart from negatives that equal the centre word."""
    _, scores, counts = train_on_pairs(model=model, negative=5, ns_exponent=1.0)
    share = counts.sum(axis=0) / counts.sum()
    pmi = np.log(counts / counts.sum() / np.outer(share, share))
    assert np.corrcoef(scores.ravel(), pmi.ravel())[0, 1] > 0.95
    assert (scores - pmi).mean() == pytest.approx(-np.log(5), abs=0.05)


@pytest.mark.parametrize("loss", ["ns", "nce", "sampled"])
def test_wide_window_does_not_diverge(loss: str) -> None:
    """With few words and wide windows, each window updates the same output rows many times."""
    shares = 1 / np.arange(1, 201)
    words = np.random.default_rng(1).choice(200, 5000, p=shares / shares.sum())
    trained = train([[str(word) for word in words]], loss=loss, model="skipgram", window=100, vector_size=20)
    assert 1 < np.abs(trained.views["words"].outputs).max() < 10


@pytest.mark.parametrize("architecture", ["cbow", "skipgram"])
def test_one_sided_window_learns_the_word_order(architecture: str) -> None:
    """In text made of "a b" and "c d", a predicts b only with a window to the left, b predicts a only to the right."""
    words = np.random.default_rng(1).permutation(np.repeat(["a b", "c d"], 3000))
    options: dict[str, Any] = {"model": architecture, "vector_size": 8, "negative": 1, "min_count": 1, "alpha": 0.05}
    trained = {
        window: train([" ".join(words).split()], window=window, epochs=5, sample=0, workers=1, **options)
        for window in ("1,0", "0,1")
    }
    for window, context, expected in ("1,0", "a", "b"), ("0,1", "b", "a"):
        model = trained[window]
        scores = model.views["words"].outputs @ model.views["words"].inputs[model.words.index(context)]
        assert model.words[int(scores.argmax())] == expected
        assert w2v.perplexity(model, [" ".join(words[:500]).split()]).perplexity < 2.5
