"""w2v.gensim's Phrases, compared with gensim's."""

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gensim.models import phrases as theirs

from w2v import W2VError
from w2v.gensim.models.phrases import (
    ENGLISH_CONNECTOR_WORDS,
    FrozenPhrases,
    Phraser,
    Phrases,
    npmi_scorer,
    original_scorer,
)

RANDOM = np.random.default_rng(2)
WORDS = ["new", "york", "of", "the", "times", "a", "state", "city", "and", "x"]
SENTENCES = [[WORDS[k] for k in RANDOM.zipf(1.3, 9) % len(WORDS)] + ["new", "york"] for _ in range(80)]


@pytest.mark.parametrize(
    "options",
    [
        {"min_count": 1, "threshold": 0.1},
        {"min_count": 3, "threshold": 0.1, "connector_words": ENGLISH_CONNECTOR_WORDS},
        {"min_count": 1, "threshold": -0.2, "scoring": "npmi", "delimiter": " "},
    ],
)
def test_phrases_match_gensim(options: dict[str, Any]) -> None:
    assert theirs.ENGLISH_CONNECTOR_WORDS - {""} == ENGLISH_CONNECTOR_WORDS
    ours, expected = Phrases(SENTENCES, **options), theirs.Phrases(SENTENCES, **options)
    assert ours.vocab == expected.vocab
    assert ours.export_phrases() == pytest.approx(expected.export_phrases())
    assert ours.export_phrases()
    joined = ours[SENTENCES]
    assert list(joined) == list(joined) == list(ours[iter(SENTENCES)]) == list(expected[SENTENCES])
    assert len(joined) == len(SENTENCES)
    assert joined[1] == expected[SENTENCES][1]
    assert ours[SENTENCES[0]] == ours.freeze()[SENTENCES[0]] == expected.freeze()[SENTENCES[0]]
    assert ours.find_phrases(SENTENCES) == pytest.approx(expected.find_phrases(SENTENCES))
    for model in (ours, expected):
        model.add_vocab(SENTENCES[:10])
    assert ours.vocab == expected.vocab


def constant_scorer(
    worda_count: int, wordb_count: int, bigram_count: int, len_vocab: int, min_count: int, corpus_word_count: int
) -> float:
    return 1.0


def test_undefined_scores_are_negative_infinity() -> None:
    numbers = {"len_vocab": 10, "min_count": 2, "corpus_word_count": 9}
    for scorer in (original_scorer, npmi_scorer):
        assert scorer(worda_count=0, wordb_count=3, bigram_count=3, **numbers) == -math.inf
    for count in (0, 1, 9):  # no pair, fewer than min_count, and the whole text
        assert npmi_scorer(3, 3, count, **numbers) == -math.inf
    assert type(npmi_scorer(3, 4, 3, **numbers)) is type(original_scorer(3, 4, 3, **numbers)) is float


@pytest.mark.parametrize("scoring", ["default", "npmi", constant_scorer])
def test_saved_phrases_are_loaded_and_other_files_refused(tmp_path: Path, scoring: Any) -> None:
    model = Phrases(SENTENCES, min_count=1, threshold=0.1, scoring=scoring, connector_words={"of"})
    for kind, phrases in ((Phrases, pickle.loads(pickle.dumps(model))), (FrozenPhrases, Phraser(model))):
        phrases.save(tmp_path / "phrases")
        loaded = kind.load(tmp_path / "phrases")
        assert list(loaded[SENTENCES]) == list(phrases[SENTENCES])
        assert loaded.scoring is model.scoring
        assert loaded.connector_words == {"of"}
    assert isinstance(Phrases.load(tmp_path / "phrases"), FrozenPhrases)  # as gensim's
    with (tmp_path / "phrases").open("wb") as file:
        model.save(file)
    assert isinstance(FrozenPhrases.load(tmp_path / "phrases"), Phrases)
    for content in (b"\x80\x04 a pickle", b"[]", b'{"class": "Other"}', b'{"class": []}', b'{"class": "Phrases"}'):
        (tmp_path / "phrases").write_bytes(content)
        with pytest.raises(W2VError, match=r"phrases: not a file of Phrases\.save; pickles of gensim are not opened"):
            Phrases.load(tmp_path / "phrases")


def test_pruning_becomes_stricter_each_time() -> None:
    found = Phrases(([f"w{number // 2}", f"v{number // 2}"] for number in range(120)), max_vocab_size=20)
    assert len(found.vocab) <= 20
    assert found.min_reduce > 2
