"""N-grams of words: their buckets, their rows, and the vectors of unknown words."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import w2v
from tests.helpers import SMALL, bucket_of, ngrams_of, run
from w2v._system import memory
from w2v._text import subwords as subwords_module
from w2v._text.subword_rows import SubwordRows
from w2v._text.subwords import Ngrams, Subwords
from w2v._text.words import Words

OPTIONS: dict[str, Any] = SMALL | {"subwords": (3, 4), "buckets": 3000, "workers": 1}


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<>"), max_size=12)),
    st.integers(1, 4), st.integers(0, 4), st.sampled_from([1, 7, 2_000_000, 2**31 - 1]),
)  # fmt: skip
def test_buckets_match_the_definition(words: list[str], shortest: int, more: int, buckets: int) -> None:
    starts, found = Subwords(shortest, shortest + more, buckets).ngram_buckets(Words.of(words))
    for k, word in enumerate(words):
        expected = [bucket_of(each, buckets) for each in ngrams_of(word, shortest, shortest + more)]
        assert found[starts[k] : starts[k + 1]].tolist() == expected


@given(st.lists(st.binary(max_size=8) | st.just(b"</s>")), st.integers(1, 4), st.integers(0, 4))
def test_ngrams_of_malformed_words_are_counted_correctly(words: list[bytes], shortest: int, more: int) -> None:
    """The count is exact even for malformed words, since it is the size of the array of n-grams."""
    kind, encoded = Subwords(shortest, shortest + more, 50), Words.of(words)
    starts, found = kind.ngram_buckets(encoded)
    assert kind.count(encoded) == starts[-1] == len(found)
    characters = [2 + sum(byte & 0xC0 != 0x80 for byte in word) for word in words]
    lengths = range(shortest, shortest + more + 1)
    assert np.diff(starts).tolist() == [
        0 if word == b"</s>" else sum(max(0, size - length + 1 - 2 * (length == 1)) for length in lengths)
        for word, size in zip(words, characters, strict=True)
    ]


@pytest.mark.parametrize(("count", "length"), [(300, 400), (30_000, 8)])
@pytest.mark.parametrize("kind", [Subwords(3, 6, 2_000_000), Subwords(3, 3, 50), Subwords(1, 1, 5)])
def test_the_memory_estimate_covers_the_peak(
    count: int, length: int, kind: Subwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = np.random.default_rng(1).integers(ord("a"), ord("z") + 1, (count, length), np.uint8)
    words = Words.of(sorted({word.tobytes() for word in letters}))
    estimates: list[int] = []
    monkeypatch.setattr(memory, "check", lambda needed, *_: estimates.append(needed))
    tracemalloc.start()
    try:
        SubwordRows.of(kind, words)
        assert tracemalloc.get_traced_memory()[1] <= estimates[0] <= 4 * tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_checked_before_ngrams_are_built(
    model: w2v.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1000)
    calls: list[bool] = []
    of = subwords_module.buckets_of
    monkeypatch.setattr(subwords_module, "buckets_of", lambda *arguments: calls.append(True) or of(*arguments))
    lines = [["king", "queen", "kingship"], ["queen", "kingship", "king"]] * 20
    runs: list[dict[str, Any]] = [
        OPTIONS | {"sample": 0},
        {"continue_from": model, "epochs": 1, "vocab": "union", "sample": 0},
    ]
    for options in runs:
        with pytest.raises(
            w2v.W2VError, match=r"^the table of [\d,]+ n-grams needs about .* MB are available: raise min_"
        ):
            w2v.train(lines, **options)
    assert not calls
    for options in runs:
        w2v.train(lines, **options, ignore_memory=True)
    assert calls


@given(st.lists(st.text("abü", min_size=1, max_size=6), min_size=1, max_size=20, unique=True))
def test_rows_round_trip_through_compose_and_decompose(words: list[str]) -> None:
    kind = Subwords(2, 3, 40)
    rows = SubwordRows.of(kind, Words.of(words))
    random = np.random.default_rng(1)
    own, ngrams = (random.normal(size=(n, 5)).astype(np.float32) for n in (len(words), len(rows.buckets)))
    sums = rows.sum_by_row(ngrams)
    shared = sums[len(words) :]
    composed = rows.compose(own + sums[: len(words)], shared)
    members: dict[tuple[int, ...], list[int]] = {}  # for each set of words, the rows of subwords in exactly these words
    buckets = [[bucket_of(ngram, 40) for ngram in ngrams_of(word, 2, 3)] for word in words]
    for k, word in enumerate(words):
        chosen = [rows.buckets.tolist().index(bucket) for bucket in buckets[k]]
        np.testing.assert_allclose(
            composed[k], np.vstack([own[k], ngrams[chosen]]).mean(axis=0), atol=1e-5, err_msg=word
        )
        members[(k,)] = [k]
    for bucket, row in zip(rows.buckets.tolist(), rows.row_of_bucket.tolist(), strict=True):
        members.setdefault(tuple(k for k in range(len(words)) for each in buckets[k] if each == bucket), []).append(row)
    assert sorted(row for shared_by in members.values() for row in set(shared_by)) == list(range(len(rows.members)))
    assert rows.members.tolist() == [len(members[k]) for k in sorted(members, key=lambda k: members[k])]
    np.testing.assert_allclose(rows.decompose(composed, shared), own + sums[: len(words)], atol=1e-4)
    joined = rows.sum_by_row(rows.divide_by_row(own, shared))
    np.testing.assert_allclose(joined[len(words) :], shared, atol=1e-5)
    sizes = rows.members[: len(words), np.newaxis]
    np.testing.assert_allclose(joined[: len(words)], own * (sizes - 1) / sizes, atol=1e-5)


@given(st.lists(st.text("abü", max_size=6) | st.just("</s>"), min_size=1, max_size=20), st.sampled_from([1, 7, 40]))
def test_ngrams_compose_matches_the_definition(words: list[str], buckets: int) -> None:
    random = np.random.default_rng(1)
    used = np.flatnonzero(random.random(buckets) < 0.7).astype(np.int32)
    own, rows = (random.normal(size=(n, 5)).astype(np.float32) for n in (len(words), len(used)))
    table = np.zeros((buckets, 5))
    table[used] = rows
    found = [[] if word == "</s>" else [bucket_of(each, buckets) for each in ngrams_of(word, 2, 3)] for word in words]
    expected = [np.vstack([one, table[each]]).mean(axis=0) for one, each in zip(own, found, strict=True)]
    Ngrams(Subwords(2, 3, buckets), used, rows).compose(Words.of(words), own)
    np.testing.assert_allclose(own, expected, atol=1e-5)


@given(
    st.lists(st.text("abü", max_size=6) | st.just("</s>"), min_size=1, max_size=20),
    st.sampled_from([1, 7, 40, 2**31 - 1]),
    st.sampled_from(["float32", "float16"]),
)
def test_vectors_of_unknown_words_match_the_definition(words: list[str], buckets: int, kind: str) -> None:
    found = [[] if word == "</s>" else [bucket_of(each, buckets) for each in ngrams_of(word, 2, 3)] for word in words]
    random = np.random.default_rng(1)
    used = np.unique([*(bucket for each in found for bucket in each if random.random() < 0.7), 0, buckets - 1])
    rows = random.normal(size=(len(used), 5)).astype(kind)
    row_of = dict(zip(used.tolist(), rows, strict=True))
    expected = [
        sum((row_of.get(bucket, 0) for bucket in each), start=np.zeros(5)) / max(1, len(each)) for each in found
    ]
    ngrams = Ngrams(Subwords(2, 3, buckets), used.astype(np.int32), rows)
    np.testing.assert_allclose(ngrams.vectors(Words.of(words)), expected, atol=1e-5)
    for word, mean, each in zip(words, expected, found, strict=True):
        vector = ngrams.vector(word)
        assert (vector is not None) == any(bucket in row_of for bucket in each)
        np.testing.assert_allclose(0 if vector is None else vector, mean, atol=1e-5)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> w2v.Model:
    return w2v.train(sample, **OPTIONS)


def test_the_vector_of_an_unknown_word_is_the_mean_of_its_ngrams(model: w2v.Model, tmp_path: Path) -> None:
    assert np.abs(model.views["words"].ngrams.rows).max() > 0.05
    rows = dict(zip(model.views["words"].ngrams.buckets.tolist(), model.views["words"].ngrams.rows, strict=True))
    word, zero = "kingdomes", np.zeros(model.settings.vector_size, np.float32)
    parts = [rows.get(bucket_of(each, 3000), zero) for each in ngrams_of(word, 3, 4)]
    path = tmp_path / "m.safetensors"
    model.save(path)
    loaded = w2v.Model.load(path)
    np.testing.assert_array_equal(loaded.views["words"].ngrams.rows, model.views["words"].ngrams.rows)
    for vectors in model.wv, loaded.wv, w2v.load(path), w2v.load(path, mmap=True):
        assert word in vectors
        assert not vectors.is_known(word)
        np.testing.assert_allclose(vectors[word], np.mean(parts, axis=0), atol=1e-6)
        np.testing.assert_array_equal(vectors[["king", word, "the"]][1], vectors[word])
        assert vectors.similarity(word, "king") == pytest.approx(vectors.similarity("king", word))
        assert len(vectors.most_similar(word, topn=3)) == 3
        with pytest.raises(w2v.UnknownWordError, match="not in the vocabulary: ''"):
            vectors[""]
    w2v.load(path).save(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(w2v.load(tmp_path / "again.safetensors")[word], model.wv[word])
    model.save(tmp_path / "plain.bin")
    assert word not in w2v.load(tmp_path / "plain.bin")


@pytest.mark.parametrize("kind", ["combined", "concatenated"])
def test_combined_vectors_have_no_vectors_for_unknown_words(model: w2v.Model, kind: Any, tmp_path: Path) -> None:
    other = model.with_vectors(kind)
    other.save(tmp_path / "m.safetensors")
    for vectors in other.wv, w2v.load(tmp_path / "m.safetensors"), w2v.Model.load(tmp_path / "m.safetensors").wv:
        assert "kingdomes" not in vectors
        np.testing.assert_array_equal(vectors["king"], other.vectors[model.words.index("king")])


@pytest.mark.parametrize("words", ["old", "union"])
def test_training_can_be_continued(model: w2v.Model, words: str, tmp_path: Path) -> None:
    lines = [["king", "queen", "kingship"], ["queen", "kingship", "king"]] * 20
    again = w2v.train(lines, continue_from=model, vocab=words, epochs=1, alpha=1e-9, min_alpha=0)
    assert ("kingship" in again.vocabulary.words) == (words == "union")
    before, after = model.wv, again.wv
    np.testing.assert_allclose(after["france"], before["france"], atol=1e-5)
    np.testing.assert_allclose(after["kingly"], before["kingly"], atol=1e-5)


@pytest.mark.parametrize("wrong", ["3", 3, True, "", "4-3", "0-3", "a-b", (3,), (3, 6, 7), "3-100"])
def test_wrong_ngram_lengths_are_refused(wrong: Any) -> None:
    with pytest.raises(w2v.SettingsError, match="write the shortest and longest n-gram, as in 3-6"):
        w2v.Settings(subwords=wrong)


def test_the_command_trains_and_queries_subwords(sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    run("train", sample, "-o", path, "--subwords", "3-4", "--vector-size", 20, "--epochs", 2)
    assert "queen" in run("query", path, "queenish", "--restrict-vocab", 300, "--topn", 20).stdout
    assert "not in the vocabulary" in run("plot", path, "queenish", "-o", tmp_path / "p.svg", code=1).stderr


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1000])
def test_groups_keep_all_words_in_order(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(subwords_module, "NGRAMS_AT_ONCE", size)
    subwords, words = Subwords(3, 4, 50), ["", "a", "ab", "abcdef", "köln", "", "x"]
    counts = [len(ngrams_of(word, 3, 4)) for word in words]
    assert counts == [0, 1, 3, 11, 7, 0, 1]
    groups = [group.tolist() for group in subwords.groups(Words.of(words))]
    assert sum(map(len, groups)) == len(words)
    assert [word for group in groups for word in group] == words
    totals = [subwords.count(Words.of(group)) for group in groups]
    assert sum(totals) == sum(counts)
    assert all(total <= size or len(group) == 1 for total, group in zip(totals, groups, strict=True))
    assert len(groups) == {1: 5, 7: 4, 8: 3, 9: 3, 1000: 1}[size]
