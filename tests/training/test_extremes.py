"""Training with extreme settings, tiny vocabularies and huge counts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v

MANY_WORDS = [[f"w{i % 150}" for i in range(start, start + 40)] for start in range(0, 6000, 40)]


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
@pytest.mark.parametrize(
    "options",
    [
        *({"vector_size": size} for size in (1, 7, 16, 17, 1000)),
        *({name: value} for name in ("window", "negative") for value in (1, 100)),
        *({"sample": value} for value in (0, 1e-9)),
        {"loss": "hs", "window": 100},
        {"workers": 64},
    ],
    ids=str,
)
def test_extreme_settings_train_finite_vectors(model: str, options: dict[str, Any]) -> None:
    values = {"min_count": 1, "epochs": 2, "sample": 0, "vector_size": 10} | options
    if values["sample"] == 1e-9:
        with pytest.raises(w2v.W2VError, match="nothing to learn"):
            w2v.train(MANY_WORDS, model=model, **values)
        return
    trained = w2v.train(MANY_WORDS, model=model, **values)
    assert trained.metrics["tokens_trained"] == 2 * 6000
    assert np.isfinite(trained.views["words"].inputs).all()
    assert np.isfinite(trained.views["words"].outputs).all()
    assert trained.views["words"].inputs.shape == (150, values["vector_size"])


@pytest.mark.parametrize("loss", ["ns", "nce", "sampled", "hs", "class", "softmax"])
@pytest.mark.parametrize("model", ["skipgram", "cbow"])
@pytest.mark.parametrize("words", ["a b", "a b c"])
def test_corpora_of_two_words_train_finite_vectors(loss: str, words: str, model: str) -> None:
    options = {"min_count": 1, "negative": 1, "sample": 0, "vector_size": 3, "epochs": 5}
    trained = w2v.train([words.split()], loss=loss, model=model, **options)
    assert trained.metrics["tokens_trained"] == 5 * len(words.split())
    assert np.isfinite(trained.views["words"].inputs).all()
    with pytest.raises(w2v.W2VError, match="the vocabulary has one word, 'a'"):
        w2v.train([["a", "a"]], loss=loss, **options)


@pytest.mark.parametrize("loss", ["ns", "nce", "sampled", "hs", "class"])
def test_training_supports_counts_beyond_32_bits(tmp_path: Path, loss: str) -> None:
    (tmp_path / "words").write_text("".join(f"w{i} {(1 << 40) // (i + 1)}\n" for i in range(150)))
    vocabulary = w2v.Vocabulary.load(tmp_path / "words")
    assert vocabulary.tokens > 1 << 42
    trained = w2v.train(MANY_WORDS, vocabulary=vocabulary, loss=loss, sample=0, epochs=2, vector_size=10)
    assert trained.metrics["tokens_trained"] == 2 * 6000
    assert np.isfinite(trained.views["words"].outputs).all()
