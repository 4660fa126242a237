"""The vocabulary: selection and order of words, subsampling, and files."""

import math
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import w2v
from tests.helpers import full_disk, read_text
from w2v._detect import kind_of, read_head
from w2v._errors import SettingsError, W2VError
from w2v._text.corpus import Corpus
from w2v._text.vocabulary import Vocabulary
from w2v._text.words import MAX_WORD_BYTES
from w2v._vectors import keyed
from w2v._vectors.keyed import KeyedVectors


def vocabulary(sentences: list[list[str]], **limits: Any) -> Vocabulary:
    with read_text(Corpus(sentences)) as store:
        return Vocabulary.from_store(store, **limits)


ONE = Vocabulary(["a"], np.array([1]))
SENTENCES = st.lists(st.lists(st.sampled_from([*"abcdefghij", "é", "大"]), max_size=20), max_size=10)


@given(SENTENCES.filter(any), st.integers(0, 5), st.none() | st.integers(1, 5))
def test_frequent_words_are_chosen_in_order(sentences: list[list[str]], min_count: int, max_vocab: int | None) -> None:
    counts = Counter(word for sentence in sentences for word in sentence)  # in the order first seen
    expected = [(word, n) for word, n in counts.most_common() if n >= min_count][:max_vocab]
    if not expected:
        with pytest.raises(W2VError, match=f"no word occurs {min_count} times"):
            vocabulary(sentences, min_count=min_count, max_vocab=max_vocab)
        return
    found = vocabulary(sentences, min_count=min_count, max_vocab=max_vocab)
    assert list(zip(found.words, found.counts.tolist(), strict=True)) == expected
    assert found.counts.dtype == np.int64
    assert found.tokens == sum(n for _, n in expected)
    assert len(found) == len(expected)


def test_an_empty_vocabulary_is_refused() -> None:
    message = "^no word occurs 5 times: the most frequent, 'b', occurs 2 times; lower --min-count or give more text$"
    with pytest.raises(W2VError, match=message):
        vocabulary([["a", "b", "b"]])
    with pytest.raises(W2VError, match=r"^all words were pruned: raise --max-types$"):
        Vocabulary.from_store(read_text(Corpus([["a", "b"]]), max_types=1), min_count=1)


@pytest.mark.parametrize(
    ("words", "counts", "message"),
    [
        ([], [], "do not fit 0 words"),
        (["a", "b"], [2], r"counts of shape \(1,\) and type int64 do not fit 2 words$"),
        (["a"], [2, 1], r"counts of shape \(2,\) and type int64 do not fit 1 word$"),
        (["a"], [[2]], "do not fit"),
        (["a"], [2.0], "type float64"),
        (["a"], ["2"], "do not fit"),
        (["a", "b"], [1, 2], "in descending order"),
        (["a", "b"], [1, 0], "must be 1 or more"),
        (["a"], [np.uint64(2**63)], "must be 1 or more"),
        (["a", "b"], [2**63 - 1, 2**63 - 1], "add up to more"),
        (["a", ""], [2, 1], "must not be empty"),
        (["a", 5], [2, 1], "must be str"),
        (["a", "b", "a"], [3, 2, 1], "contains the word 'a' twice"),
    ],
)
def test_invalid_words_and_counts_are_refused(words: Any, counts: Any, message: str) -> None:
    with pytest.raises(W2VError, match=message):
        Vocabulary(words, counts)


def test_items_with_white_space_are_words_that_a_vocabulary_file_cannot_hold(tmp_path: Path) -> None:
    found = Vocabulary(["a", "new\tyork"], [2, 1])
    assert found.words == ["a", "new\tyork"]
    with pytest.raises(W2VError, match=r"words.txt: not written: the item 'new\\tyork' contains white space"):
        found.save(tmp_path / "words.txt", 1)
    assert not (tmp_path / "words.txt").exists()


def test_repr_is_short() -> None:
    found = Vocabulary([f"w{i}" for i in range(10_000)], np.full(10_000, 3))
    assert repr(found) == "<Vocabulary: 10,000 words, 30,000 tokens>"
    assert repr(found.words) == "<Words: 10,000 words>"


def test_counts_of_any_integer_type_are_accepted() -> None:
    found = Vocabulary(("a", "no\u00a0break"), np.array([2, 1], np.uint8))
    assert found.words == ["a", "no\u00a0break"]
    assert (found.counts.dtype, found.tokens) == (np.int64, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vocabulary([["a"] * 9], min_count=-1), "min_count -1: it must be a whole number, 0 or more"),
        (lambda: vocabulary([["a"] * 9], max_vocab=0), "max_vocab 0: it must be a whole number, 1 or more"),
        (lambda: vocabulary([["a"] * 9], max_vocab=-3), "max_vocab -3: it must be a whole number, 1 or more"),
        (lambda: ONE.keep_probabilities(-1e-3), "sample is"),
        (lambda: ONE.keep_probabilities(math.nan), "sample is"),
        (lambda: ONE.keep_probabilities(math.inf), "sample is"),
        (lambda: ONE.keep_probabilities(1e-3, "gensim"), "'gensim': it must be word2vec or paper"),
    ],
)
def test_impossible_settings_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        call()


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=20), st.floats(1e-6, 1e-1))
def test_keep_probabilities_match_the_formulas(counts: list[int], sample: float) -> None:
    counts.sort(reverse=True)
    found = Vocabulary([f"w{i}" for i in range(len(counts))], np.array(counts))
    shares = [count / sum(counts) for count in counts]
    word2vec = [min(1, (math.sqrt(f / sample) + 1) * sample / f) for f in shares]  # the formula in word2vec.c
    paper = [1 - max(0, 1 - math.sqrt(sample / f)) for f in shares]
    np.testing.assert_allclose(found.keep_probabilities(sample), word2vec, rtol=1e-6)
    np.testing.assert_allclose(found.keep_probabilities(sample, "paper"), paper, rtol=1e-6)
    assert found.keep_probabilities(sample).dtype == np.float32
    assert (found.keep_probabilities(0) == 1).all()


# -- files --


@given(SENTENCES.filter(any), st.integers(0, 5))
def test_files_round_trip(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[list[str]], sentence_ends: int
) -> None:
    path = tmp_path_factory.mktemp("vocabulary") / "words"
    saved = vocabulary([*sentences, ["</s>"]], min_count=1)
    saved.save(path, sentence_ends)
    assert path.read_text().startswith(f"</s> {sentence_ends}\n{saved.words[0]} {saved.counts[0]}\n")
    loaded = Vocabulary.load(path)
    assert loaded.words == saved.words
    assert loaded.counts.tolist() == saved.counts.tolist()


def load(tmp_path: Path, content: bytes, **limits: Any) -> Vocabulary:
    (tmp_path / "words").write_bytes(content)
    return Vocabulary.load(tmp_path / "words", **limits)


def test_loading_sorts_and_selects_words(tmp_path: Path) -> None:
    content = f"rare 2\r\nmany {2**40}\n\nrare2\t2\n  few 7 \nx\0 3".encode()
    assert load(tmp_path, content).words == ["many", "few", "x\0", "rare", "rare2"]
    assert load(tmp_path, content, min_count=3).words == ["many", "few", "x\0"]
    assert load(tmp_path, content, max_vocab=1).counts.tolist() == [2**40]
    with pytest.raises(W2VError, match=r"words holds no word that occurs 3 times$"):
        load(tmp_path, b"rare 2", min_count=3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"words holds no words$"),
        (b"\n\n", r"words holds no words$"),
        (b"</s> 7\n", r"words holds no words$"),
        (b"a 1\nb\n", r"words, line 2: b'b' is not a word and its count$"),
        (b"a 1\nb c 2\n", r"words, line 2: b'b c 2' is not a word and its count$"),
        (b"</s> 1\na -1\n", r"words, line 2: b'a -1' is not a word and its count$"),
        (b"a 1.5\n", r"words, line 1: b'a 1.5' is not a word and its count$"),
        (b"a 1_0\n", r"words, line 1: b'a 1_0' is not a word and its count$"),
        (b"a 0\n", r"words, line 1: the count is 0$"),
        (b"a 2\nb 1\n\na 1\n", r"words: the word 'a' appears twice, with counts 2 and 1$"),
        (b"a 2\ncaf\xe9 1\n", r"words, line 2: b'caf\\xe9' is not UTF-8$"),
        (b"a 9223372036854775807\nb 1\n", r"words: the counts add up to more than 9223372036854775807$"),
        (b"a 9223372036854775808\n", r"words, line 1: the count is more than 9223372036854775807$"),
        (b"a " + b"9" * 5000, r"words, line 1: Exceeds the limit"),
        (b"a " + b"1 " * (1 << 24), r"words, line 1: longer than 16777216 bytes$"),
        ("a 1\n".encode("utf-16"), r"words is UTF-16 or UTF-32: convert it to UTF-8"),
        (b"\x1f\x8b\x08", r"words is compressed: unpack it first$"),
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(W2VError, match=message):
        load(tmp_path, content)


def test_system_errors_leave_files_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(W2VError, match=r"^cannot read .*nowhere: No such file or directory$"):
        Vocabulary.load(tmp_path / "nowhere")
    found = Vocabulary(["a"], np.array([1]))
    with pytest.raises(W2VError, match=r"cannot write .*: No such file or directory"):
        found.save(tmp_path / "nowhere" / "words", 0)
    found.save(tmp_path / "words", 0)
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(W2VError, match="No space left on device"):
        Vocabulary(["b"], np.array([1])).save(tmp_path / "words", 0, force=True)
    assert (tmp_path / "words").read_text() == "</s> 0\na 1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["words"]


def test_the_longest_word_round_trips_through_every_format(tmp_path: Path) -> None:
    for size in (1, MAX_WORD_BYTES):
        words, counts = ["w" * size, "é" * ((size - 1) // 2) + "b", "c"], [3, 2, 1]
        vocabulary = Vocabulary(words, counts)
        vocabulary.save(tmp_path / "vocab", 9, force=True)
        assert kind_of(read_head(tmp_path / "vocab")) == "vocabulary"
        assert Vocabulary.load(tmp_path / "vocab").words == words
        for columns in (1, 3, 100):
            vectors = np.random.default_rng(1).normal(size=(3, columns)).astype(np.float32)
            for name in ("m.bin", "m.txt", "m.vec.gz", "m.safetensors"):
                KeyedVectors(words, vectors).save(tmp_path / name, force=True)
                assert keyed.load(tmp_path / name).index_to_key == words, (name, columns)
        (tmp_path / "vocab").unlink()


def test_a_word_too_long_for_files_is_refused(tmp_path: Path) -> None:
    word = "w" * (MAX_WORD_BYTES + 1)
    message = r"the word 'w{60}'… has 524,289 bytes: at most 524,288 fit$"
    with pytest.raises(W2VError, match="^" + message):
        Vocabulary(["a", word], [2, 1])
    with pytest.raises(W2VError, match="^" + message):
        w2v.train([[word, "a"]] * 9, min_count=1, vector_size=2)
    vectors = KeyedVectors(["a", word], np.eye(2, dtype=np.float32))
    for name in ("m.bin", "m.txt"):
        with pytest.raises(W2VError, match=r"not written: " + message):
            vectors.save(tmp_path / name)
    vectors.save(tmp_path / "m.safetensors")
    assert keyed.load(tmp_path / "m.safetensors").index_to_key == ["a", word]
