"""What every model and loss learns from corpora with a known answer."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import learnt_pairs

# Sequential steps predict a centre word several times, so later context words profit from the updates by earlier ones:
# with a high learning rate this lowers the loss of the first epochs.
MODELS: list[dict[str, Any]] = [
    {"model": "skipgram", "loss": "ns"},
    {"model": "skipgram", "loss": "hs", "alpha": 0.001},
    {"model": "cbow", "loss": "ns"},
    {"model": "cbow", "loss": "hs"},
]
GENERAL: list[dict[str, Any]] = [
    {"shrink_windows": False},
    {"window": 1},
    {"sample": 1e-2},
    {"sample": 1e-2, "sample_formula": "paper"},
]
SPECIAL: list[dict[str, Any]] = [
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
    """Sentences of one topic each: "2.7" is word 7 of topic 2. In each, word k's share of the tokens is SHARES[k]."""
    words = np.random.default_rng(1).choice(TOPIC_WORDS, (5000, 10), p=SHARES)
    return [[f"{number % TOPICS}.{word}" for word in sentence] for number, sentence in enumerate(words.tolist())]


def train(corpus: list[list[str]], **options: Any) -> w2v.Model:
    defaults = {"vector_size": 12, "window": 3, "min_count": 1, "sample": 0, "epochs": 5, "workers": 1}
    return w2v.train(corpus, **(defaults | options))


def topical(model: w2v.Model) -> float:
    """The share of same-topic words among each word's nearest, as many as its topic has others."""
    near = {word: model.wv.most_similar(word, topn=TOPIC_WORDS - 1) for word in model.vocabulary.words}
    assert len(near) == TOPICS * TOPIC_WORDS
    return float(np.mean([word[0] == other[0] for word, found in near.items() for other, _ in found]))


@pytest.mark.parametrize(
    "options", [*MODELS, *(MODELS[0] | general for general in GENERAL), *(MODELS[2] | general for general in GENERAL),
    *SPECIAL], ids=str
)  # fmt: skip
def test_words_of_a_topic_end_near_each_other(options: dict[str, Any]) -> None:
    trained = train(topics(), **options)
    losses = trained.metrics["loss"]
    assert topical(trained) > 0.95
    assert np.argmax(losses) == 0  # later epochs differ by little more than chance
    assert trained.metrics["tokens_trained"] == 5 * trained.metrics["tokens"] == 5 * 50_000


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
def test_hierarchical_softmax_reaches_the_entropy_of_a_topic(model: str) -> None:
    """Nothing but its topic says what a word is, so the entropy of the words of a topic is the least loss."""
    loss = train(topics(), model=model, loss="hs").metrics["loss"][-1]
    assert loss == pytest.approx(-(SHARES * np.log(SHARES)).sum(), rel=0.02)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_more_workers_learn_the_same(model: dict[str, Any]) -> None:
    one, three = (train(topics() * 2, **model, workers=workers) for workers in (1, 3))
    assert topical(three) > 0.95
    assert three.metrics["loss"][-1] == pytest.approx(one.metrics["loss"][-1], rel=0.02)
    assert three.metrics["tokens_trained"] == one.metrics["tokens_trained"]


HEEDED = [
    ({"model": "skipgram", "loss": "ns"}, ["negative", "ns_exponent", "per_pair"], ["cbow_gradient"]),
    ({"model": "skipgram", "loss": "hs"}, [], ["negative", "ns_exponent", "cbow_gradient"]),
    ({"model": "cbow", "loss": "ns"}, ["negative", "ns_exponent", "cbow_gradient"], ["per_pair"]),
    ({"model": "cbow", "loss": "hs"}, ["cbow_gradient"], ["negative", "ns_exponent", "per_pair"]),
]


@pytest.mark.parametrize(("model", "heeded", "unused"), HEEDED, ids=str)
def test_settings_are_heeded_where_they_matter(model: dict[str, Any], heeded: list[str], unused: list[str]) -> None:
    special: dict[str, Any] = {"negative": 3, "ns_exponent": 0.25, "per_pair": True, "cbow_gradient": "corrected"}
    general: dict[str, Any] = {"window": 2, "shrink_windows": False, "sample": 0.01, "alpha": 0.01, "min_alpha": 0.001}
    usual = train(topics()[:300], **model, epochs=1).inputs
    for name in [*general, *heeded, *unused]:
        changed = {name: (special | general)[name]}
        same = np.array_equal(usual, train(topics()[:300], **model, epochs=1, **changed).inputs)
        assert same == (name in unused), name


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
def test_negative_sampling_scores_are_shifted_pmi(model: str) -> None:
    """v'_o · v_i = PMI(o, i) − log K (Levy & Goldberg 2014), but for negatives that are the centre or repeat."""
    _, scores, counts = learnt_pairs(model=model, negative=5, ns_exponent=1.0)
    share = counts.sum(axis=0) / counts.sum()
    pmi = np.log(counts / counts.sum() / np.outer(share, share))
    assert np.corrcoef(scores.ravel(), pmi.ravel())[0, 1] > 0.95
    assert (scores - pmi).mean() == pytest.approx(-np.log(5), abs=0.05)


@pytest.mark.parametrize("loss", ["ns", "nce", "sampled"])
def test_a_wide_window_does_not_diverge(loss: str) -> None:
    """A few words, each in every window many times, push the same output rows again and again."""
    shares = 1 / np.arange(1, 201)
    words = np.random.default_rng(1).choice(200, 5000, p=shares / shares.sum())
    trained = train([[str(word) for word in words]], loss=loss, model="skipgram", window=100, vector_size=20)
    assert 1 < np.abs(trained.outputs).max() < 10
