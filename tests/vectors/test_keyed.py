"""KeyedVectors: comparison with gensim, and w2v's own features."""

import copy
import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import w2v
from tests.helpers import import_gensim
from w2v._errors import SettingsError, W2VError
from w2v._formats.header import ModelHeader
from w2v._formats.storage import CompactMatrix
from w2v._formats.vector_file import VectorFile
from w2v._text.vocabulary import Vocabulary
from w2v._text.words import Words
from w2v._vectors.encode import encode
from w2v._vectors.keyed import KeyedVectors, load, to_keyed_vectors
from w2v._vectors.unknown_words import UnknownWordError
from w2v.gensim.models.keyedvectors import KeyedVectors as FacadeVectors

GensimVectors = import_gensim("gensim.models").KeyedVectors
WORDS = [f"w{row}" for row in range(200)]


@pytest.mark.parametrize("number", [-1e300, np.finfo(np.longdouble).max, 10**39, 10**400], ids=str)
def test_numbers_beyond_float32_are_refused(number: Any) -> None:
    beyond = r"beyond 3\.4e\+38, the largest float32: scale the vectors"
    for make in (KeyedVectors, FacadeVectors(2).add_vectors):
        with pytest.raises(W2VError, match=rf"^(row 2 \('b'\) holds -?1\S+,|a number is) {beyond}"):
            make(["a", "b"], [[1, 2], [3, number]])
    with pytest.raises(W2VError, match=beyond):
        KeyedVectors(["a", "b"], np.eye(2)).most_similar([np.array([1, number])])


@pytest.fixture(scope="module")
def ours() -> KeyedVectors:
    vectors = np.random.default_rng(3).standard_normal((200, 12)).astype(np.float32)
    return KeyedVectors(WORDS, vectors)


@pytest.fixture(scope="module")
def theirs(ours: KeyedVectors) -> GensimVectors:
    vectors = GensimVectors(12)
    vectors.add_vectors(WORDS, ours.vectors)
    return vectors


def assert_same_neighbours(found: list[tuple[str, float]], expected: list[tuple[str, float]]) -> None:
    assert [word for word, _ in found] == [word for word, _ in expected]
    np.testing.assert_allclose([score for _, score in found], [score for _, score in expected], atol=1e-5)


def test_words_and_vectors_can_be_looked_up(ours: KeyedVectors) -> None:
    assert len(ours) == 200
    assert ours.vector_size == 12
    assert ours.index_to_key == WORDS == list(ours)
    assert ours.key_to_index["w7"] == 7
    assert "w7" in ours
    assert "x" not in ours
    np.testing.assert_array_equal(ours["w7"], ours.vectors[7])
    np.testing.assert_array_equal(ours[["w7", "w3"]], ours.vectors[[7, 3]])
    np.testing.assert_array_equal(np.asarray(ours), ours.vectors)
    assert np.shares_memory(np.asarray(ours), ours.vectors)
    assert np.asarray(ours, np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(ours), ours.vectors)
    assert np.linalg.norm(ours.get_vector("w7", norm=True)) == pytest.approx(1)
    assert ours.first_words(3) == ["w0", "w1", "w2"]


def test_a_string_is_not_a_list_of_words(ours: KeyedVectors) -> None:
    for ask in (
        ours.most_similar_batch,
        ours.get_mean_vector,
        ours.doesnt_match,
        lambda words: KeyedVectors(words, np.ones((2, 2))),
        lambda words: Vocabulary(words, [1, 1]),
    ):
        with pytest.raises(W2VError, match=r"^a list of words is needed, not the string 'ab': write 'ab'\.split\(\)$"):
            ask("ab")


def test_objects_that_are_not_words_or_vectors_are_refused(ours: KeyedVectors) -> None:
    for call in (
        lambda key: ours.most_similar([key]),
        lambda key: ours.most_similar_cosmul([key]),
        lambda key: ours.get_mean_vector([key]),
        lambda key: ours.doesnt_match([key]),
    ):
        for key in (["w1"], None, 3.5):
            with pytest.raises(W2VError, match=f"^{re.escape(repr(key))} is neither a word nor a vector$"):
                call(key)
    with pytest.raises(W2VError, match=r"^3.5 is neither a word nor a vector$"):
        ours.most_similar(3.5)  # type: ignore[arg-type]
    for ask in (ours.most_similar_batch, ours.get_mean_vector, ours.doesnt_match):
        with pytest.raises(W2VError, match=r"^a list of words is needed, not an object of type int$"):
            ask(3)  # type: ignore[arg-type]


def test_signatures_are_short_in_help() -> None:
    """A type that is a union of several others would fill lines; signatures name it instead."""
    for value in [*vars(KeyedVectors).values(), load, Vocabulary.__init__]:
        if inspect.isfunction(value):
            assert len(str(inspect.signature(value))) < 250


def test_all_unknown_words_are_named(ours: KeyedVectors) -> None:
    for ask in (
        lambda: ours[["w1", "no", "w2", "neither"]],
        lambda: ours.most_similar_cosmul(["no", "w1"], "neither"),
        lambda: ours.get_mean_vector(["w1", "no", "neither"], ignore_missing=False),
    ):
        with pytest.raises(UnknownWordError, match=r"^not in the vocabulary: 'no', 'neither'$") as caught:
            ask()
        assert isinstance(caught.value, KeyError)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: KeyedVectors(["a"], np.ones((2, 2))), "shape"),
        (lambda _: KeyedVectors(["a"], np.ones((1, 2)), counts=[1, 2]), "counts"),
        (lambda _: KeyedVectors(["a", "b"], np.eye(2), [1 << 62, 1 << 62]), "^the counts add up to more than 9223372"),
        (lambda _: KeyedVectors(["a"], np.ones((1, 2)), [1 << 64]), "^the counts add up to more than 9223372036854775"),
        (lambda _: KeyedVectors(["a"], np.ones((1, 2)), [-1]), r"^row 1 \('a'\) has a negative count, -1$"),
        (lambda _: KeyedVectors(["a"], np.ones((1, 2)), ["x"]), "^counts of type <U1: they must be whole numbers$"),
        (lambda _: KeyedVectors(["a", "b", "a"], np.ones((3, 2)))["a"], "'a' appears twice"),
        (lambda ours: ours.most_similar([np.ones(3)]), "shape"),
        (lambda ours: ours.get_mean_vector(["no", "neither"]), "not in the vocabulary: 'no', 'neither'"),
        (lambda ours: ours.get_mean_vector([]), "no words are given"),
        (lambda ours: ours.most_similar_cosmul(), "no words are given"),
        (lambda _: KeyedVectors(["a", 1], np.ones((2, 2))), "word 1 is 1: words are strings"),
        (lambda ours: ours.doesnt_match([]), "no word"),
        (lambda ours: ours.get_mean_vector(["w1", "w2"], [1]), "weights"),
        (lambda ours: ours.most_similar("w1", restrict_vocab=-1), "restrict_vocab -1: it must be"),
        (lambda ours: ours.most_similar_cosmul("w1", restrict_vocab=-1), "restrict_vocab -1: it must be"),
    ],
)
def test_unsuitable_arguments_are_refused(
    ours: KeyedVectors, call: Callable[[KeyedVectors], object], message: str
) -> None:
    with pytest.raises(W2VError, match=message):
        call(ours)


def test_unknown_error_handler_is_refused(ours: KeyedVectors, tmp_path: Path) -> None:
    ours.save(tmp_path / "m.bin")
    with pytest.raises(SettingsError, match="errors is 'pass'"):
        load(tmp_path / "m.bin", errors="pass")  # type: ignore[arg-type]


words = st.sampled_from(WORDS)


@given(
    positive=st.lists(words, min_size=1, max_size=3),
    negative=st.lists(words, max_size=2),
    topn=st.integers(1, 250),
    restrict=st.none() | st.integers(1, 200),
)
@settings(max_examples=60)
def test_neighbours_equal_gensim(
    ours: KeyedVectors, theirs: GensimVectors, positive: list[str], negative: list[str], topn: int, restrict: int | None
) -> None:
    if sorted(positive) == sorted(negative):
        return  # nothing is left to be near to
    arguments = {"topn": topn, "restrict_vocab": restrict}
    searched = restrict or 200
    given_words = {word for word in positive + negative if int(word[1:]) < searched}
    found = ours.most_similar(positive, negative, **arguments)
    assert len(found) == min(topn, searched - len(given_words))
    assert_same_neighbours(found, theirs.most_similar(positive, negative, **arguments)[: len(found)])
    found = ours.most_similar_cosmul(positive, negative, **arguments)
    cosines = {word: (2 - theirs.distances(word).astype(np.float64)) / 2 for word in {*positive, *negative}}
    upper, lower = (np.prod([cosines[word] for word in side], axis=0) for side in (positive, negative))
    scores = dict(zip(WORDS, upper / (lower + 1e-6), strict=True))
    left = sorted((scores[word] for word in WORDS[:searched] if word not in given_words), reverse=True)
    np.testing.assert_allclose([score for _, score in found], left[:topn], rtol=1e-3)
    np.testing.assert_allclose([scores[word] for word, _ in found], left[:topn], rtol=1e-3)


SOME = ["w1", "w5", "w9", "w30"]
COMPARISONS: list[tuple[Any, ...]] = [
    ("similarity", "w1", "w2"), ("doesnt_match", SOME),
    *(("get_mean_vector", SOME, *more) for more in [(), (None, False), (None, True, True), ([1, -2, 0.5, 3],)]),
]  # fmt: skip


@pytest.mark.parametrize("comparison", COMPARISONS, ids=str)
def test_comparisons_equal_gensim(ours: KeyedVectors, theirs: GensimVectors, comparison: tuple[Any, ...]) -> None:
    found, expected = (getattr(each, comparison[0])(*comparison[1:]) for each in (ours, theirs))
    if isinstance(expected, str):
        assert found == expected
    else:
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_queries_may_be_vectors_and_unknown_words_are_left_out(ours: KeyedVectors, theirs: GensimVectors) -> None:
    assert ours.similarity("w1", "w1") == 1
    assert ours.doesnt_match([*SOME, "unknown"]) == theirs.doesnt_match(SOME)
    weighted = [("w1", 2.0), "w2", (ours["w3"], 0.5)]
    assert_same_neighbours(ours.most_similar(weighted), theirs.most_similar(weighted))
    vector = ours["w4"] + ours["w5"]
    assert_same_neighbours(ours.most_similar(vector), theirs.similar_by_vector(vector))


def test_batches_equal_single_queries(ours: KeyedVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("w2v._vectors.neighbours.QUERIES_AT_ONCE", 3)
    some = ["w0", "w49", "w49", "w50", "w199"]
    batch = ours.most_similar_batch(some, topn=60, restrict_vocab=50)
    assert [len(found) for found in batch] == [49, 49, 49, 50, 50]
    for word, found in zip(some, batch, strict=True):
        assert_same_neighbours(found, ours.most_similar(word, topn=60, restrict_vocab=50))
    assert ours.most_similar_batch([]) == []
    assert ours.most_similar_batch(["w7"], restrict_vocab=0) == [ours.most_similar("w7", restrict_vocab=0)] == [[]]


def test_vectors_can_be_replaced_but_not_edited(tmp_path: Path) -> None:
    matrix = np.random.default_rng(4).standard_normal((5, 3)).astype(np.float32)
    vectors = KeyedVectors(WORDS[:5], matrix)
    found = vectors.most_similar("w1")
    vectors.save(tmp_path / "vectors.safetensors")
    matrix *= np.arange(1, 6, dtype=np.float32)[:, None]  # the vectors are a copy
    assert_same_neighbours(vectors.most_similar("w1"), found)
    loaded = [load(tmp_path / "vectors.safetensors", mmap) for mmap in (False, True)]
    for each in (vectors, copy.deepcopy(vectors), pickle.loads(pickle.dumps(vectors)), *loaded):
        for array in (each.vectors, each.norms):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 9
        each.vectors = matrix[::-1]
        np.testing.assert_allclose(each.norms, np.linalg.norm(matrix[::-1], axis=1), rtol=1e-5)
        assert_same_neighbours(each.most_similar("w1"), KeyedVectors(WORDS[:5], matrix[::-1]).most_similar("w1"))
        with pytest.raises(W2VError, match=r"^vectors of shape \(4, 3\) do not fit 5 words$"):
            each.vectors = matrix[:4]


def test_zero_vectors_have_cosine_zero_and_ties_keep_their_order() -> None:
    vectors = KeyedVectors(list("abcde"), [[0, 0], [1, 0], [1, 0], [2, 0], [0, 1]])
    assert vectors.most_similar("b", topn=3) == [("c", 1), ("d", 1), ("a", 0)]
    assert vectors.most_similar("a", topn=2) == [("b", 0), ("c", 0)]
    assert vectors.similarity("a", "b") == 0
    assert vectors.most_similar("b", topn=0) == []
    assert vectors.most_similar([("b", 0.0)], topn=1) == [("a", 0)]
    assert not vectors.vectors[0].any()


@pytest.mark.parametrize("name", ["v.bin", "v.txt", "v.txt.gz", "v.safetensors"])
def test_limit_reads_the_first_words(tmp_path: Path, ours: KeyedVectors, name: str) -> None:
    counts = np.arange(200, 0, -1)
    KeyedVectors(WORDS, ours.vectors, counts, tensors={"outputs": ours.vectors}).save(tmp_path / name)
    found = load(tmp_path / name, limit=3)
    assert found.index_to_key == WORDS[:3]
    np.testing.assert_array_equal(found.vectors, ours.vectors[:3])
    assert found.tensors == {}
    if name == "v.safetensors":
        assert found.counts.tolist() == [200, 199, 198]
    assert len(load(tmp_path / name, limit=1000)) == 200
    (tmp_path / "glove.txt").write_text("a 1 2\nb 3 4\nc 5 6\n")  # without a header
    assert load(tmp_path / "glove.txt", limit=2).vectors.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(SettingsError, match="limit 0: it must be a whole number, 1 or more"):
        load(tmp_path / name, limit=0)


def test_vectors_of_gensim_are_models() -> None:
    theirs = pytest.importorskip("gensim.models.keyedvectors").KeyedVectors(2)
    theirs.add_vectors(["a", "b"], np.eye(2))
    assert w2v.compare(theirs, KeyedVectors(["b", "a", "c"], np.eye(3))).shared == 2


def test_paths_and_plain_vectors_are_refused_as_models(model: Path) -> None:
    for call in (w2v.analogies, w2v.word_pairs, w2v.evaluate, lambda path: w2v.compare(path, path)):
        with pytest.raises(w2v.W2VError, match=r" is not a model: give one, such as w2v.load"):
            call(model)
    for call in (w2v.effective_rank, lambda vectors: w2v.perplexity(vectors, "text.txt")):
        with pytest.raises(w2v.W2VError, match="word vectors have no output layer"):
            call(w2v.load(model))


def test_searches_return_ten_words_by_default(ours: KeyedVectors) -> None:
    for found in (ours.most_similar("w1"), ours.most_similar_cosmul("w1"), *ours.most_similar_batch(["w1", "w2"])):
        assert len(found) == 10


def test_vectors_of_a_file_are_float32_unless_asked_as_stored() -> None:
    rows = np.array([[1.5, 2.5], [3, 4]], np.float16)
    content = VectorFile(Words.of(["a", "b"]), rows)
    assert to_keyed_vectors(content).vectors.dtype == np.float32
    np.testing.assert_array_equal(to_keyed_vectors(content).vectors, rows)
    assert type(to_keyed_vectors(content).vectors) is np.ndarray
    assert type(to_keyed_vectors(content, as_stored=True).vectors) is CompactMatrix


# -- numbers as keys --------------------------------------------------------------------------------


@pytest.fixture
def numbered(tmp_path: Path) -> KeyedVectors:
    """Return vectors of the items 1193, -5 and 2^64 - 1, saved and loaded."""
    vectors = KeyedVectors([1193, np.int8(-5), (1 << 64) - 1], [[1, 0], [1, 1], [0, 1]], [3, 2, 1])
    vectors.save(tmp_path / "items.safetensors")
    return load(tmp_path / "items.safetensors")


def test_numbers_stay_numbers_in_a_file(numbered: KeyedVectors) -> None:
    assert numbered.header.key_type == "int"
    assert numbered.index_to_key == [1193, -5, (1 << 64) - 1] == list(numbered)
    assert numbered.key_to_index[-5] == 1
    np.testing.assert_array_equal(numbered[1193], [1, 0])
    np.testing.assert_array_equal(numbered[[np.int64(-5), 1193]], [[1, 1], [1, 0]])
    assert 1193 in numbered and 1194 not in numbered  # noqa: PT018


def test_searches_accept_and_return_numbers(numbered: KeyedVectors) -> None:
    assert [key for key, _ in numbered.most_similar(1193)] == [-5, (1 << 64) - 1]
    assert [key for key, _ in numbered.most_similar(positive=[1193], negative=["-5"], topn=1)] == [(1 << 64) - 1]
    assert [key for key, _ in numbered.most_similar_batch([-5])[0]] == [1193, (1 << 64) - 1]
    assert numbered.doesnt_match([1193, -5, 7]) in (1193, -5)  # 7 is unknown, and left out
    np.testing.assert_array_equal(numbered.get_mean_vector([1193, 7]), [1, 0])


def test_a_number_as_text_names_the_same_item(numbered: KeyedVectors) -> None:
    np.testing.assert_array_equal(numbered["-5"], numbered[-5])
    for text in ("05", "-05", "+5", " 5", "5.0", "", "a", "\u0665"):  # the last is a digit of another script
        assert text not in numbered


def test_unknown_numbers_are_named_without_advice_on_words(numbered: KeyedVectors) -> None:
    with pytest.raises(UnknownWordError, match=r"^not in the vocabulary: 1$"):
        numbered[[1, 1193]]


@pytest.mark.parametrize("words", [[1, "a"], [True, 2], [1.0], [1 << 64]])
def test_words_that_are_neither_all_text_nor_all_numbers_are_refused(words: list[object]) -> None:
    with pytest.raises(W2VError, match=r"words are strings, or all are ints of 64 bits$"):
        KeyedVectors(words, np.eye(len(words)))


@pytest.mark.parametrize("word", ["a", "01", "1" * 21])
def test_damaged_numbers_are_refused(word: str) -> None:
    damaged = KeyedVectors([word], [[1.0]], header=ModelHeader(key_type="int"))
    with pytest.raises(W2VError, match=f"^the key '{word}' is not a whole number$"):
        damaged.index_to_key  # noqa: B018


def test_vectors_are_copied_and_pickled_after_they_have_encoded_texts(ours: KeyedVectors) -> None:
    expected = encode(ours, ["w3 w4"], "mean")
    for copied in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert np.array_equal(encode(copied, ["w3 w4"], "mean"), expected)
