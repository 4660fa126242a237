"""w2v.gensim's Phrases, compared with gensim's."""

import math
import pickle
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import import_gensim
from w2v import W2VError
from w2v.gensim.models import phrases as ours_module
from w2v.gensim.models.phrases import (
    ENGLISH_CONNECTOR_WORDS,
    FrozenPhrases,
    Phraser,
    Phrases,
    npmi_scorer,
    original_scorer,
)

theirs, datapath = import_gensim("gensim.models.phrases"), import_gensim("gensim.test.utils").datapath
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
    ours, expected = Phrases(SENTENCES, **options), theirs.Phrases(SENTENCES, **options)
    assert theirs.ENGLISH_CONNECTOR_WORDS - {""} == ENGLISH_CONNECTOR_WORDS
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
        with pytest.raises(W2VError, match=r"phrases: not a file of Phrases\.save: "):
            Phrases.load(tmp_path / "phrases")


def test_pruning_becomes_stricter_each_time() -> None:
    found = Phrases(([f"w{number // 2}", f"v{number // 2}"] for number in range(120)), max_vocab_size=20)
    assert len(found.vocab) <= 20
    assert found.min_reduce > 2


def scorer_of_all_arguments(
    worda_count: int, wordb_count: int, bigram_count: int, len_vocab: int, min_count: int, corpus_word_count: int
) -> float:
    """Return a number that differs if any argument does: each argument has decimal digits of its own."""
    return (
        worda_count * 1e5 + wordb_count * 1e3 + bigram_count * 1e1 + len_vocab / 1e3 + min_count / 1e5
    ) + corpus_word_count / 1e9


@pytest.mark.parametrize("scoring", ["default", "npmi", scorer_of_all_arguments])
@pytest.mark.parametrize("min_count", [1, 4])
def test_scores_match_gensim(scoring: Any, min_count: int) -> None:
    sentences = [["a", "b", "c", "a", "b"], ["b", "a", "of", "b"], ["c", "a", "b"], ["d", "d", "d", "x", "y"]] * 3
    options = {"min_count": min_count, "threshold": -1 if scoring == "npmi" else 1e-9, "scoring": scoring}
    ours, expected = (kind(sentences, **options, connector_words=["of"]) for kind in (Phrases, theirs.Phrases))
    assert ours.export_phrases() == pytest.approx(expected.export_phrases(), rel=1e-12)
    assert ours.corpus_word_count == expected.corpus_word_count == 3 * 17
    assert ours.score_candidate("a", "b", []) == pytest.approx(expected.score_candidate("a", "b", []))
    assert ours.score_candidate("a", "b", ["of"])[0] == expected.score_candidate("a", "b", ["of"])[0]
    for candidate in (("a", "z"), ("z", "a"), ("y", "x")):  # an unknown word, and an unknown pair
        assert ours.score_candidate(*candidate, []) == expected.score_candidate(*candidate, []) == (None, None)
    frozen, expected_frozen = ours.freeze(), expected.freeze()
    assert frozen.phrasegrams == pytest.approx(expected_frozen.phrasegrams, rel=1e-12)
    assert (frozen.min_count, frozen.threshold, frozen.delimiter) == (min_count, options["threshold"], "_")
    assert frozen.find_phrases(sentences) == pytest.approx(expected_frozen.find_phrases(sentences))


def incomplete_scorer(worda_count: int, bigram_count: int) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 0}, "min_count"),
        ({"min_count": 0.5}, None),
        ({"threshold": 0}, "threshold"),
        ({"threshold": 0.1}, None),
        ({"threshold": 0, "scoring": constant_scorer}, None),
        ({"threshold": 1.01, "scoring": "npmi"}, "threshold"),
        ({"threshold": 1, "scoring": "npmi"}, None),
        ({"threshold": -1, "scoring": "npmi"}, None),
        ({"threshold": -1.01, "scoring": "npmi"}, "threshold"),
        ({"scoring": "other"}, "scoring"),
        ({"scoring": incomplete_scorer}, "missing expected parameters"),
    ],
)
def test_invalid_options_are_refused_as_by_gensim(options: dict[str, Any], message: str | None) -> None:
    for kind in (Phrases, theirs.Phrases):
        with pytest.raises(ValueError, match=message) if message else nullcontext():
            kind(**options)


@pytest.mark.parametrize("limit", [6, 20, 21, 40])
def test_limited_vocabulary_matches_gensim(limit: int) -> None:
    sentences = [[f"w{number * place % 17}" for place in range(1, 7)] for number in range(60)]
    ours, expected = (kind(sentences, max_vocab_size=limit) for kind in (Phrases, theirs.Phrases))
    assert ours.vocab == expected.vocab
    assert str(ours) == str(expected)
    assert str(ours.freeze()) == str(expected.freeze())


@pytest.mark.parametrize(
    "sentence",
    [
        [], ["of"], ["new"], ["of", "the", "new", "york", "of"], ["new", "of", "the", "york", "york"],
        ["new", "york", "new", "york"], ["new", "new", "york", "times", "of", "new"], ["unknown", "new", "york"],
    ],
)  # fmt: skip
def test_sentences_are_analysed_as_by_gensim(sentence: list[str]) -> None:
    text = [[*SENTENCES[0], "new", "of", "the", "york"], *SENTENCES]
    options: dict[str, Any] = {"min_count": 1, "threshold": 0.05, "connector_words": {"of", "the"}}
    ours, expected = (kind(text, **options) for kind in (Phrases, theirs.Phrases))
    for found, wanted in ((ours, expected), (ours.freeze(), expected.freeze())):
        pairs, wanted_pairs = (list(each.analyze_sentence(sentence)) for each in (found, wanted))
        assert [token for token, _ in pairs] == [token for token, _ in wanted_pairs] == found[sentence]
        assert [score for _, score in pairs] == pytest.approx([score for _, score in wanted_pairs])


def test_a_scorer_unknown_in_this_process_is_named(tmp_path: Path) -> None:
    Phrases(SENTENCES, scoring=constant_scorer).save(tmp_path / "phrases")
    text = (tmp_path / "phrases").read_text()
    assert "constant_scorer" in text
    (tmp_path / "phrases").write_text(text.replace("constant_scorer", "another_scorer" + "x" * 500))
    with pytest.raises(W2VError, match=r"its scorer .{1,100} is unknown: import the module that defines it"):
        Phrases.load(tmp_path / "phrases")


def test_joined_corpus_can_be_indexed_as_the_sentences() -> None:
    model = Phrases(SENTENCES, min_count=1, threshold=0.1)
    joined = model[SENTENCES]
    assert [joined[number] for number in range(len(joined))] == list(joined)
    assert model[[]] == []
    assert model[iter([])] == []
    assert list(model[([word] for word in ("new", "york"))]) == [["new"], ["york"]]


PARTS_OF_OLD_FILES = ("no-common-terms", "no-scoring", "scoring-str")
OLD_FILES = ["phrases-3.6.0.model", "phraser-3.6.0.model"]
OLD_FILES += [f"{kind}-{part}.pkl" for kind in ("phrases", "phraser") for part in PARTS_OF_OLD_FILES]


@pytest.mark.parametrize("name", OLD_FILES)
def test_phrases_of_old_gensim_are_loaded_as_by_gensim(name: str) -> None:
    path = datapath(name)
    ours, expected = (module.Phrases.load(path) for module in (ours_module, theirs))
    assert type(ours).__name__ == type(expected).__name__
    assert (ours.threshold, ours.min_count, ours.delimiter) == (expected.threshold, expected.min_count, "_")
    assert ours.connector_words == expected.connector_words
    if isinstance(ours, FrozenPhrases):
        assert ours.phrasegrams == expected.phrasegrams
    else:
        assert ours.vocab == expected.vocab
        assert ours.export_phrases() == pytest.approx(expected.export_phrases())


@pytest.mark.parametrize("scoring", ["default", "npmi", constant_scorer])
@pytest.mark.parametrize("name", ["phrases", "phrases.gz"])
def test_phrases_saved_by_gensim_are_loaded(tmp_path: Path, scoring: Any, name: str) -> None:
    model = theirs.Phrases(SENTENCES, min_count=1, threshold=0.1, scoring=scoring, connector_words=frozenset({"of"}))
    for saved, kind in ((model, Phrases), (theirs.Phraser(model), Phraser)):
        saved.save(str(tmp_path / name))
        loaded = kind.load(tmp_path / name)
        assert type(loaded) is kind
        assert list(loaded[SENTENCES]) == list(saved[SENTENCES])
        assert loaded.connector_words == {"of"}


def test_our_phrases_are_compressed_as_their_extension_says(tmp_path: Path) -> None:
    model = Phrases(SENTENCES, min_count=1, threshold=0.1)
    model.save(tmp_path / "phrases.bz2")
    assert (tmp_path / "phrases.bz2").read_bytes()[:3] == b"BZh"
    assert Phrases.load(tmp_path / "phrases.bz2").vocab == model.vocab
    with pytest.raises(FileNotFoundError):
        Phrases.load(tmp_path / "missing")
