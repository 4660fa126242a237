"""The rows and labels of texts: as fastText computes them, and weighted."""

import dataclasses
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import w2v._text.examples as examples_module
from tests.helpers import bucket_of, ngrams_of
from w2v._errors import W2VError
from w2v._system.threads import map_in_order
from w2v._text._subwords import Addends
from w2v._text._text import PADDING
from w2v._text.corpus import Corpus
from w2v._text.examples import Examples, Features, RowCounts, TextFinder
from w2v._text.idstore import IdStore, read_corpus
from w2v._text.labels import LabelOptions
from w2v._text.subwords import Subwords, sums_of_rows

TEXTS = [
    "__label__a the cat sat on the mat",
    "the dog __label__b barked",
    "__label__a __label__b cats and dogs and",
    "__label__b",
    "no label here",
    "köln __label__a köln </s> köln",
]


def store_of(texts: list[str]) -> IdStore:
    return read_corpus(Corpus([text.split() for text in texts]))


def hash_of(word: str) -> int:
    """Return the hash of a word as a signed number of 32 bits."""
    return (bucket_of(word, 2**32) + 2**31) % 2**32 - 2**31


def rows_of(text: str, features: Features) -> tuple[Counter[int], int]:
    """Return how often a text has each row, and the number of its rows with n-grams that have none, as in fastText."""
    words = [word for word in text.split() if not word.startswith(features.label_prefix)]
    if not words:
        return Counter(), 0
    words.append("</s>")
    row_of_word = {word: row for row, word in enumerate(features.vocabulary.words)}
    buckets = []
    for first in range(len(words)):
        value = hash_of(words[first])
        for word in words[first + 1 : first + features.word_ngrams]:
            value = (value * 116049371 + hash_of(word)) % 2**64
            buckets.append(value % features.bucket_count)
    if features.subwords:
        lengths = features.subwords.shortest, features.subwords.longest
        for word in words:
            if word != "</s>":
                buckets += [bucket_of(ngram, features.bucket_count) for ngram in ngrams_of(word, *lengths)]
    row_of_bucket = {bucket: len(row_of_word) + k for k, bucket in enumerate(features.buckets.tolist())}
    rows = Counter(row_of_word[word] for word in words if word in row_of_word)
    size = rows.total() + len(buckets)
    rows.update(row_of_bucket[bucket] for bucket in buckets if bucket in row_of_bucket)
    return rows, size


def read_examples(store: IdStore, pooling: Any = "idf", word_ngrams: int = 2, **more: Any) -> tuple[Features, Examples]:
    options = LabelOptions(pooling=pooling, word_ngrams=word_ngrams)
    features, found = find_features(store, options, **more)
    return features, features.examples(found)


def find_features(store: IdStore, options: LabelOptions, **more: Any) -> tuple[Features, RowCounts]:
    chosen, rows, _ = Features.choose(store, options, **more)
    features, found = chosen.find(store, add=True)
    return features.with_idf(found, store, None, rows, np.asarray) if options.pooling == "idf" else features, found


@pytest.mark.parametrize("pooling", ["idf", "mean"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"word_ngrams": 1},
        {"word_ngrams": 3, "buckets": 7},
        {"subwords": Subwords(2, 3, 50), "buckets": 50},
        {"min_count": 2},
    ],
    ids=str,
)
def test_rows_are_as_in_fasttext(options: dict[str, Any], pooling: Any) -> None:
    with store_of(TEXTS) as store:
        features, examples = read_examples(store, pooling=pooling, **options)
        assert features.labels.words == ["a", "b"]
        assert len(examples) == 4  # one text has no words, and one no label
        used = [text for text in TEXTS if "__label__" in text and text != "__label__b"]
        for k, text in enumerate(used):
            expected, size = rows_of(text, features)
            part = slice(*examples.starts[k : k + 2])
            found = dict(zip(examples.rows[part].tolist(), examples.weights[part].tolist(), strict=True))
            assert found.keys() == expected.keys()
            if pooling == "mean":
                assert found == pytest.approx({row: count / size for row, count in expected.items()})
            else:
                assert features.factors is not None
                weights = {row: (1 + math.log(n)) * float(features.factors[row]) for row, n in expected.items()}
                norm = sum(weight**2 for weight in weights.values()) ** 0.5
                assert found == pytest.approx({row: weight / norm for row, weight in weights.items()}, rel=1e-5)
            labels = examples.labels[slice(*examples.label_starts[k : k + 2])].tolist()
            assert labels == ["ab".index(word[-1]) for word in text.split() if word.startswith("__label__")]


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b", "c", "__label__x", "__label__y", "__label__z", "</s>"]), max_size=6),
        min_size=1,
    )
)
def test_other_texts_have_only_known_rows_and_labels(texts: list[list[str]]) -> None:
    with store_of(["__label__x a b", "__label__y b a"]) as store:
        features, _ = read_examples(store, pooling="mean")
    lines = [" ".join(words) for words in texts if words]
    if not lines:
        return
    with store_of(lines) as store:
        same, found = features.find(store)
    assert same.rows == features.rows
    for k, line in enumerate(lines):
        rows, size = rows_of(line, features)
        part = slice(*found.starts[k : k + 2])
        assert dict(zip(found.rows[part].tolist(), found.counts[part].tolist(), strict=True)) == rows
        assert found.sizes[k] == size
        labels = found.labels[slice(*found.label_starts[k : k + 2])].tolist()
        assert labels == ["xy".index(word[-1]) for word in line.split() if word in ("__label__x", "__label__y")]


def test_idf_is_small_for_rows_of_all_texts() -> None:
    with store_of(["__label__x a b", "__label__y a c"]) as store:
        features, _ = read_examples(store)
    assert features.factors is not None
    factors = dict(zip(features.vocabulary.words, features.factors.tolist(), strict=False))
    assert factors["</s>"] == factors["a"] == pytest.approx(np.log(3 / 2))
    assert factors["b"] == pytest.approx(np.log(3))


def test_texts_without_labels_are_refused() -> None:
    with (
        store_of(["a b", "c"]) as store,
        pytest.raises(W2VError, match="no word begins with __label__: write the labels"),
    ):
        read_examples(store)


def test_pieces_of_ids_may_divide_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    with store_of(TEXTS) as store:
        features, _ = read_examples(store)
        _, whole = features.find(store)
        for size in (1, 2, 5):
            monkeypatch.setattr(examples_module, "IDS_AT_ONCE", size)
            _, found = features.find(store)
            for one, other in zip(found, whole, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("subwords", [None, Subwords(2, 3, 50)], ids=str)
def test_finder_finds_what_reading_finds(subwords: Subwords | None) -> None:
    options = LabelOptions(word_ngrams=3)
    with store_of(TEXTS) as store:
        features, found = find_features(store, options, subwords=subwords, buckets=50)
    finder = TextFinder(features, 1)
    lines = "".join(f"{text}\n" for text in [*TEXTS, "", "unknown a b", "__label__new a"]).encode()
    again = finder.find(lines + PADDING)
    assert len(again.sizes) == len(TEXTS) + 3
    for one, other in zip(again, found, strict=True):
        np.testing.assert_array_equal(one[: len(other)], other)
    assert again.sizes[len(TEXTS)] == 0  # the empty line
    assert again.labels[-1] == -1  # an unknown label
    assert features.have_words(again)[len(TEXTS) :].tolist() == [False, True, True]


@pytest.mark.parametrize("labels", [0, 3])
@pytest.mark.parametrize("pruned", [False, True])
@pytest.mark.parametrize("subwords", [None, Subwords(2, 3, 50)], ids=str)
def test_texts_are_pooled_by_the_shares_of_their_rows(subwords: Subwords | None, pruned: bool, labels: int) -> None:
    with store_of(TEXTS) as store:
        features, _ = find_features(store, LabelOptions(pooling="mean"), subwords=subwords, buckets=50)
    features = dataclasses.replace(features, pruned=pruned, buckets=features.buckets[:-3])
    rows = np.random.default_rng(1).normal(size=(features.rows, 11)).astype(np.float32)
    lines = [*TEXTS, "", "unknown a cat </s>", "__label__new cats"] * 20
    text = "".join(f"{line}\n" for line in lines).encode() + PADDING
    finder = TextFinder(features, labels or 11)
    found = finder.find(text)
    outputs = np.random.default_rng(2).normal(size=(labels, 11)).astype(np.float32)
    addends = Addends(rows.view(np.uint8), outputs)
    expected = sums_of_rows(rows, found.rows, found.starts, features.weights(found))
    for pooled in map_in_order(lambda text: finder.pool(text, None, addends), [text] * 4, 2):
        np.testing.assert_allclose(pooled.rows, expected @ outputs.T if labels else expected, atol=1e-5)
        np.testing.assert_array_equal(pooled.known, features.have_words(found))
        for name in ("sizes", "label_starts", "labels"):
            np.testing.assert_array_equal(getattr(pooled, name), getattr(found, name))


def test_balanced_texts_give_all_labels_the_same_sum() -> None:
    with store_of(["__label__x a", "__label__x b", "__label__x c", "__label__y a"]) as store:
        _, examples = read_examples(store)
    balanced = examples.balanced(2, np.asarray)
    sums = np.bincount(balanced.labels, balanced.importance)
    assert sums.tolist() == pytest.approx([2, 2])


def test_ngrams_have_smaller_weights_than_words() -> None:
    with store_of(["__label__x ab", "__label__y cd ef"]) as store:
        features, _ = find_features(store, LabelOptions(), subwords=Subwords(2, 2, 1000), buckets=1000)
    assert features.factors is not None
    shares = features.factors[len(features.vocabulary) :] / np.log(3)
    assert sorted(set(np.round(shares, 3))) == pytest.approx([0.25, 0.6])
