"""w2v.gensim's KeyedVectors, compared with gensim's."""

import bz2
import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import w2v
from tests.helpers import import_gensim
from w2v.gensim import files
from w2v.gensim.models import keyedvectors
from w2v.gensim.models.keyedvectors import KeyedVectors

# gensim warns about its own deprecated members.
pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")

gensim = import_gensim()
WORDS = [f"w{row}" for row in range(40)]
VECTORS = np.random.default_rng(3).normal(size=(len(WORDS), 8)).astype(np.float32)


def make_vectors(kind: Any) -> Any:
    vectors = kind(8)
    vectors.add_vectors(WORDS, VECTORS.copy())
    return vectors


@pytest.fixture
def ours() -> KeyedVectors:
    return make_vectors(KeyedVectors)


@pytest.fixture
def theirs() -> Any:
    return make_vectors(gensim.models.KeyedVectors)


QUERIES_OF_WORDS: list[Callable[[Any], Any]] = [
    lambda wv: wv.similarity("w1", "w2"),
    lambda wv: wv.distance(w1="w1", w2="w2"),
    lambda wv: wv.n_similarity(ws1=["w1", "w2"], ws2=["w3"]),
    lambda wv: wv[["w1", "w2"]],
    lambda wv: wv["w1"],
    lambda wv: wv.word_vec("w1"),
    lambda wv: wv.most_similar("w1"),
    lambda wv: wv.most_similar(["w1", VECTORS[2]], ["w3"]),
    lambda wv: wv.most_similar_cosmul(["w1"], ["w3"]),
    lambda wv: wv.distances("w1"),
    lambda wv: wv.distances(word_or_vector="w1", other_words=["w2", "w3"]),
    lambda wv: wv.get_mean_vector(["w1", "w2"]),
    lambda wv: wv.doesnt_match(["w1", "w2", "w3", "w4"]),
    lambda wv: wv.rank(key1="w1", key2="w2"),
    lambda wv: wv.wmdistance(["w1", "w2", "w2"], ["w3", "w4"]),
    lambda wv: wv.vectors_for_all(["w1", "w2"]).vectors,
]
QUERIES: list[Callable[[Any], Any]] = [
    lambda wv: wv.most_similar(positive=["w1", ("w2", 0.5)], negative=["w3"], topn=4),
    lambda wv: wv.most_similar(positive=[VECTORS[5], 7], topn=4),
    lambda wv: wv.most_similar(positive=[["w1", 2.0], [VECTORS[5], 0.5]], negative=[("w3", -0.5)], topn=4),
    lambda wv: wv.most_similar("w1", topn=5, clip_start=10, clip_end=30),
    lambda wv: wv.most_similar("w1", restrict_vocab=7),
    lambda wv: wv.most_similar("w1", restrict_vocab=0),
    lambda wv: wv.most_similar("w1", topn=0),
    lambda wv: wv.most_similar_cosmul(["w1", VECTORS[2]], ["w3"], topn=5),
    lambda wv: wv.similar_by_key(4, 2),
    lambda wv: wv.similar_by_vector(VECTORS[4], 2),
    lambda wv: wv.rank_by_centrality(["w1", "w2", "w3"]),
    lambda wv: wv.most_similar("w1", topn=None),
    lambda wv: wv.most_similar_cosmul("w1", topn=None),
    lambda wv: wv.cosine_similarities(VECTORS[0], VECTORS[1:]),
    lambda wv: wv.get_mean_vector(["w1", 2, "unknown"], weights=[1, 2, 3]),
    lambda wv: wv.get_mean_vector(["unknown"]),
    lambda wv: wv.get_vector("w1", norm=True),
    lambda wv: wv.get_normed_vectors(),
    lambda wv: wv.vectors_for_all(["w3", "unknown", "w1", "w3"]).vectors,
    lambda wv: wv.vectors_for_all(["w1", "unknown", "w3"], copy_vecattrs=True).expandos["count"],
    lambda wv: wv.most_similar("w1", negative="w3"),
    lambda wv: wv.most_similar(negative=["w3"]),
    lambda wv: wv.most_similar(VECTORS[5]),
    lambda wv: wv.most_similar(VECTORS[:2]),
    lambda wv: wv.most_similar(np.int64(3)),
    lambda wv: wv.most_similar("w1", topn=-3),
    lambda wv: wv.most_similar("w1", topn=None, clip_start=5, clip_end=20),
    lambda wv: wv.most_similar("w1", topn=None, restrict_vocab=7),
    lambda wv: wv.most_similar_cosmul(VECTORS[5], "w3"),
    lambda wv: wv.most_similar_cosmul("w1", topn=0),
    lambda wv: wv.similar_by_word("w1", 3, restrict_vocab=9),
    lambda wv: wv.similar_by_vector(VECTORS[4], restrict_vocab=9),
    lambda wv: wv.most_similar_to_given("w1", ["w2", "w3", "w9"]),
    lambda wv: wv.closer_than("w1", "w2"),
    lambda wv: wv.doesnt_match(["w1", "w2", "w3", "unknown"]),
    lambda wv: wv.rank_by_centrality(["w1", "w2", "w3", "unknown"], use_norm=False),
    lambda wv: wv.relative_cosine_similarity("w1", "w2", topn=3),
    lambda wv: wv.get_mean_vector(["w1", "w2"], pre_normalize=False),
    lambda wv: wv.get_mean_vector(["w1", "w2"], post_normalize=True),
    lambda wv: wv.get_mean_vector(["w1", VECTORS[4]], weights=[2, 3]),
    lambda wv: wv.wmdistance(["w1", "w2", "w2"], ["w3", "w1", "unknown"], norm=False),
    lambda wv: wv.wmdistance(["w1", "w2"], ["w2", "w1"]),
    lambda wv: wv.wmdistance(["w1"], ["unknown"]),
    lambda wv: wv.vectors_for_all(["w3", "unknown", 5], allow_inference=False).vectors,
    lambda wv: [wv.get_index("w3"), wv.get_index("unknown", 7), wv.get_index(5, 1)],
    lambda wv: [int(key in wv) for key in ("w1", 0, 39, 40, -1, "unknown", np.int64(3))],
]


def assert_same(found: Any, expected: Any) -> None:
    """Assert that two answers have the same type, the same words, and almost the same numbers."""
    assert type(found) is type(expected)
    parts: list[list[Any]] = []
    for answer in (found, expected):
        items = answer if isinstance(answer, list) else [answer]
        parts.append([part for item in items for part in (item if isinstance(item, tuple) else [item])])
    words, expected_words = ([part for part in each if isinstance(part, str)] for each in parts)
    assert words == expected_words
    numbers, expected_numbers = ([part for part in each if not isinstance(part, str)] for each in parts)
    np.testing.assert_allclose(numbers, expected_numbers, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("query", [*QUERIES_OF_WORDS, *QUERIES])
def test_answers_match_gensim(ours: KeyedVectors, theirs: Any, query: Callable[[Any], Any]) -> None:
    assert_same(query(ours), query(theirs))


@pytest.mark.parametrize(
    ("error", "query"),
    [
        (KeyError, lambda wv: wv["unknown"]),
        (KeyError, lambda wv: wv[40]),
        (KeyError, lambda wv: wv.most_similar("unknown")),
        (KeyError, lambda wv: wv.get_index("unknown")),
        (ValueError, lambda wv: wv.most_similar_to_given("w1", [])),
        (KeyError, lambda wv: wv.get_vecattr("w1", "unknown")),
        (KeyError, lambda wv: wv.get_mean_vector(["unknown"], ignore_missing=False)),
        (ValueError, lambda wv: wv.get_mean_vector([])),
        (ValueError, lambda wv: wv.get_mean_vector(["w1"], weights=[1, 2])),
        (ValueError, lambda wv: wv.doesnt_match(["unknown"])),
        (ZeroDivisionError, lambda wv: wv.n_similarity([], ["w1"])),
        (ValueError, lambda wv: wv.get_vector("w1").__setitem__(0, 1)),
    ],
)
def test_exceptions_match_gensim(
    ours: KeyedVectors, theirs: Any, error: type[Exception], query: Callable[[Any], Any]
) -> None:
    for vectors in (theirs, ours):
        with pytest.raises(error):
            query(vectors)


def test_keys_can_be_added_and_changed(ours: KeyedVectors) -> None:
    ours.set_vecattr("w3", "topic", 7)
    ours.most_similar("w1")
    ours["new"] = 9 * VECTORS[1]
    assert ours.most_similar("w1")[0] == ("new", pytest.approx(1))
    ours.add_vectors(["w1", "newer"], [np.zeros(8), np.ones(8)])
    assert len(ours) == len(WORDS) + 2
    assert (ours["w1"] == VECTORS[1]).all()  # known keys are not changed
    topics = {"topic": np.array([5, 6])}
    ours.add_vectors(["w1", "w2"], [np.zeros(8), VECTORS[2]], topics, replace=True)
    assert not ours["w1"].any()
    assert [ours.get_vecattr(word, "topic") for word in ("w1", "w2", "w3", "newer")] == [5, 6, 7, 0]
    assert ours.get_index("newer") == ours.add_vector("newer", np.ones(8)) == len(WORDS) + 1
    assert ours.add_vector("w1", np.ones(8)) == 1  # not the last row
    with pytest.raises(TypeError, match="topic"):
        ours.set_vecattr("w3", "topic", "text")


def test_reserved_rows_are_filled_first() -> None:
    vectors = KeyedVectors(2, count=2)
    assert [vectors.add_vector(word, [row, 1]) for row, word in enumerate("abc")] == [0, 1, 2]
    assert vectors.index_to_key == ["a", "b", "c"]
    assert vectors.vectors.tolist() == [[0, 1], [1, 1], [2, 1]]


def test_lengths_are_computed_again_after_each_change() -> None:
    changes: list[Callable[[KeyedVectors], object]] = [
        lambda vectors: vectors.add_vector("b", [3, 4]),  # in the reserved row
        lambda vectors: vectors.add_vector("c", [5, 12]),
        lambda vectors: vectors.add_vectors(["a"], [[8, 6]], replace=True),
        lambda vectors: vectors.sort_by_descending_frequency(),
        lambda vectors: vectors.unit_normalize_all(),
        lambda vectors: vectors.resize_vectors(),
    ]
    vectors = KeyedVectors(2, count=2)
    vectors.add_vector("a", [1, 0])
    for change in changes:
        vectors.fill_norms()
        change(vectors)
        vectors.allocate_vecattrs(["count"], [int])
        vectors.expandos["count"] += np.arange(len(vectors))
        vectors.fill_norms()
        np.testing.assert_allclose(vectors.norms, np.linalg.norm(vectors.vectors, axis=1), rtol=1e-6)


def test_vectors_of_wrong_size_change_nothing(ours: KeyedVectors) -> None:
    for vectors in (ours, KeyedVectors(8, count=2)):
        before = list(vectors.index_to_key), dict(vectors.key_to_index), vectors.vectors.shape
        with pytest.raises(ValueError, match="shape"):
            vectors.add_vector("new", [1.0, 2.0])
        with pytest.raises(ValueError, match="shape"):
            vectors.add_vectors(["new", "more"], np.ones((1, 8)))
        with pytest.raises(ValueError, match=r"row 2 \('more'\) holds 1e\+300, beyond"):
            vectors.add_vectors(["new", "more"], [[1.0] * 8, [1e300] * 8])
        assert (vectors.index_to_key, vectors.key_to_index, vectors.vectors.shape) == before


@pytest.mark.parametrize("name", ["vocab", "index2word", "index2entity", "vectors_norm"])
def test_removed_attributes_of_gensim_3_name_their_replacements(ours: KeyedVectors, theirs: Any, name: str) -> None:
    assert not hasattr(theirs, name)
    with pytest.raises(AttributeError, match=f"{name} was removed in gensim 4: use"):
        getattr(ours, name)


def test_files_keep_user_attributes(
    ours: KeyedVectors, theirs: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for vectors in (ours, theirs):
        vectors.expandos |= {"count": np.arange(40, 0, -1), "number": np.arange(40)}
        vectors.set_vecattr("w1", "topic", "sport")
        vectors.language, vectors.weights = {"name": "de", "years": [1990, None]}, np.arange(3)
        vectors.nothing, vectors.half, vectors.share = np.zeros((0, 3)), np.ones(2, np.float16), np.float64(0.5)
        vectors.save(str(tmp_path / "any.kv"))
        loaded = type(vectors).load(str(tmp_path / "any.kv"), mmap="r")
        np.testing.assert_array_equal(loaded.vectors, vectors.vectors)
        assert [loaded.get_vecattr(row, "topic") for row in (0, 1)] == [0, "sport"]
        assert loaded.get_vecattr("w7", "number") == 7
        assert loaded.language == vectors.language
        assert loaded.weights.tolist() == [0, 1, 2]
        assert (loaded.nothing.shape, loaded.half.dtype, loaded.share) == ((0, 3), np.float16, 0.5)
        assert {event["event"] for event in loaded.lifecycle_events} >= {"saving"}
        with (tmp_path / "open.kv").open("wb") as file:
            vectors.save(file)
        assert type(vectors).load(str(tmp_path / "open.kv")).language == vectors.language
    assert "not saved" not in caplog.text
    ours.set_vecattr("w1", "topic", {"a set"})
    ours.function = len
    ours.save(tmp_path / "any.kv")
    for name in ("topic", "function"):  # cannot be stored in a file
        assert f"not saved: the attribute {name}" in caplog.text
    assert w2v.load(tmp_path / "any.kv").counts.tolist() == list(range(40, 0, -1))


def test_aligned_vectors_are_saved(
    ours: KeyedVectors, theirs: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Scripts that align two models replace words and vectors, but not the other attributes."""
    words = WORDS[30:10:-1]
    for vectors in (ours, theirs):
        vectors.expandos["count"] = np.arange(40, 0, -1)
        vectors.vectors = vectors[words]
        vectors.index_to_key, vectors.key_to_index = words, {word: row for row, word in enumerate(words)}
        vectors.save(str(path := tmp_path / type(vectors).__module__))
        loaded = type(vectors).load(str(path))
        assert loaded.index_to_key == words
        np.testing.assert_array_equal(loaded["w20"], VECTORS[20])
    assert "not saved: the attribute count: 40 values for 20 keys" in caplog.text
    ours.save_word2vec_format(tmp_path / "any.txt")
    assert KeyedVectors.load_word2vec_format(tmp_path / "any.txt").index_to_key == words
    ours.vectors = ours.vectors[:5]
    with pytest.raises(w2v.W2VError, match="not written: 20 words, vectors of shape"):
        ours.save(tmp_path / "any.kv")
    assert not (tmp_path / "any.kv").exists()


def test_keys_can_be_ints(tmp_path: Path, theirs: Any) -> None:
    """An int is a key or, as in gensim, a row; in w2v.load, where words are strings, it is neither."""
    for kind in (KeyedVectors, type(theirs)):
        vectors = kind(2)
        vectors.add_vectors([7, "a", np.int64(3)], np.eye(3, 2))
        vectors.save(str(tmp_path / "any.kv"))
        loaded = kind.load(str(tmp_path / "any.kv"))
        assert loaded.index_to_key == [7, "a", 3]
        assert loaded.key_to_index == {7: 0, "a": 1, 3: 2}
        for key, row in ((7, 0), (3, 2), (1, 1), (0, 0)):
            np.testing.assert_array_equal(loaded[key], vectors.vectors[row])
            assert key in loaded
        assert 5 not in loaded
        assert loaded.get_mean_vector(["a", 5]).tolist() == [0, 1]  # unknown keys are left out
    vectors = KeyedVectors(2)
    vectors.add_vectors([7, "a", 3], np.eye(3, 2))
    vectors.save(tmp_path / "any.kv")
    opened = w2v.load(tmp_path / "any.kv")
    assert opened.index_to_key == ["7", "a", "3"]
    np.testing.assert_array_equal(opened["3"], vectors.vectors[2])
    for key, hint in ((3, "did you mean '3'"), (1, r"row 1 is .vectors\[1\]")):
        with pytest.raises(w2v.UnknownWordError, match=rf"^not in the vocabulary: {key} \(words are strings.* {hint}"):
            opened.most_similar(key)
    vectors = KeyedVectors(2)
    vectors.add_vector((1, 2), [1, 2])
    with pytest.raises(w2v.W2VError, match=r"the key \(1, 2\) is neither str nor int"):
        vectors.save(tmp_path / "any.kv")


def test_word_pairs_are_looked_up_as_keys(tmp_path: Path) -> None:
    """Integer words must not be taken as rows, which can belong to other keys."""
    (tmp_path / "pairs").write_text("0\t1\t5\n1\t2\t3\n2\t0\t1\n")
    found = []
    for kind in (int, str):
        vectors = KeyedVectors(3)
        vectors.add_vectors([kind(key) for key in (2, 0, 1)], VECTORS[:3, :3])
        found.append(vectors.evaluate_word_pairs(tmp_path / "pairs"))
    assert found[0] == found[1]


def test_text_format_allows_keys_with_spaces(tmp_path: Path) -> None:
    """node2vec writes vectors of edges, and the keys of edges are pairs."""
    vectors = KeyedVectors(3)
    vectors.add_vectors(["('1', '2')", "a 1 2", "plain"], np.eye(3) / 3)
    vectors.save_word2vec_format(tmp_path / "edges.txt")
    loaded = KeyedVectors.load_word2vec_format(tmp_path / "edges.txt")
    assert loaded.index_to_key == vectors.index_to_key
    np.testing.assert_array_equal(loaded.vectors, vectors.vectors)
    with pytest.raises(w2v.W2VError, match="cannot store"):
        vectors.save_word2vec_format(tmp_path / "edges.bin", binary=True)
    vectors.add_vector("end ", [1, 2, 3])
    with pytest.raises(w2v.W2VError, match="ends with white space"):
        vectors.save_word2vec_format(tmp_path / "edges.txt")


@pytest.mark.parametrize("content", ["3 2\ncaf\xe9 1 2\nb 3 4\ncaf\xe9 5 6\n", "3 2\na 1 2\na 3 4\nb 5 6\n"])
def test_other_encodings_and_repeated_words_match_gensim(
    tmp_path: Path, theirs: Any, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(content.encode("latin1"))
    found, expected = (kind.load_word2vec_format(str(path), encoding="latin1") for kind in (KeyedVectors, type(theirs)))
    assert [*found.index_to_key, None] == expected.index_to_key  # gensim leaves an empty row
    assert found.vectors.tolist() == expected.vectors[:2].tolist()
    assert "duplicate word" in caplog.text  # theirs
    assert "1 row left out, because an earlier row has the same word" in caplog.text


def test_vector_size_can_be_set(ours: KeyedVectors, theirs: Any) -> None:
    for vectors in (ours, theirs):
        vectors.vectors = vectors.vectors[:, :3]
        vectors.vector_size = 3
        assert vectors.vector_size == 3
    empty = KeyedVectors(8)
    empty.vector_size = 2
    empty.add_vector("a", [1, 2])
    assert empty["a"].tolist() == [1, 2]


def test_attributes_are_those_of_gensim(ours: KeyedVectors, theirs: Any) -> None:
    for vectors in (ours, theirs):
        vectors.most_similar("w1")
    assert vars(ours).keys() == vars(theirs).keys()


@pytest.mark.parametrize("kind", [KeyedVectors, gensim.models.KeyedVectors])
def test_vectors_can_be_made_from_gensims_fields(kind: Any) -> None:
    vectors = kind.__new__(kind)
    vectors.index_to_key, vectors.key_to_index = WORDS, {word: row for row, word in enumerate(WORDS)}
    vectors.vectors, vectors.norms, vectors.vector_size = VECTORS.copy(), None, 8
    assert vectors.most_similar("w1", topn=1)[0][0] == make_vectors(KeyedVectors).most_similar("w1", topn=1)[0][0]
    assert vectors["w3"].tolist() == VECTORS[3].tolist()


def test_a_vector_shows_later_changes_as_in_gensim(ours: KeyedVectors, theirs: Any) -> None:
    for vectors in (ours, theirs):
        row = vectors["w1"]
        vectors.vectors[1] = 5
        assert row.tolist() == [5] * 8
        with pytest.raises(ValueError, match="read-only"):
            row[0] = 1


class Rows:
    """A matrix that is not an array, as in libraries that compress vectors."""

    shape = VECTORS.shape

    def __len__(self) -> int:
        return len(VECTORS)

    def __getitem__(self, row: int) -> np.ndarray:
        return VECTORS[row]


@pytest.mark.parametrize("make", [csr_array, Rows, list])
def test_vectors_of_other_types_are_saved_as_an_array(ours: KeyedVectors, tmp_path: Path, make: Any) -> None:
    ours.vectors = Rows() if make is Rows else make(VECTORS)
    ours.save(tmp_path / "any.kv")
    np.testing.assert_array_equal(KeyedVectors.load(tmp_path / "any.kv").vectors, VECTORS)


def test_float16_stays_float16(tmp_path: Path) -> None:
    for kind in (KeyedVectors, gensim.models.KeyedVectors):
        vectors = kind(8, dtype=np.float16)
        vectors.add_vectors(WORDS, VECTORS)
        vectors.save(str(tmp_path / "any.kv"))
        loaded = kind.load(str(tmp_path / "any.kv"))
        subset, again = loaded.vectors_for_all(["w1", "w2"]), KeyedVectors.load(tmp_path / "any.kv")
        for each in (loaded.vectors, loaded["w1"], loaded.get_mean_vector(["w1", "w2"]), subset.vectors, again.vectors):
            assert each.dtype == np.float16
        np.testing.assert_array_equal(again.vectors, VECTORS.astype(np.float16))


def test_a_query_can_be_a_list_of_numbers(ours: KeyedVectors) -> None:
    assert ours.most_similar([VECTORS[4].tolist()]) == ours.similar_by_vector(VECTORS[4])
    with pytest.raises(ValueError, match=r"a vector of shape \(3,\): the vectors have 8 values"):
        ours.most_similar([[1.0, 2.0, 3.0]])


def test_functions_of_w2v_take_these_vectors(ours: KeyedVectors) -> None:
    plain = w2v.KeyedVectors(WORDS, VECTORS)
    np.testing.assert_array_equal(w2v.encode(ours, ["w1 w2"], "mean"), w2v.encode(plain, ["w1 w2"], "mean"))
    trained = [w2v.train([WORDS] * 5, init=each, workers=1, epochs=1, views="words").wv for each in (ours, plain)]
    np.testing.assert_array_equal(*[each.vectors for each in trained])


def test_missing_folders_raise_file_not_found_error(ours: KeyedVectors, tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "any.kv"
    for use in (ours.save, ours.save_word2vec_format, KeyedVectors.load, KeyedVectors.load_word2vec_format):
        with pytest.raises(FileNotFoundError, match=r"missing[/\\]+any\.kv"):
            use(missing)


@pytest.mark.parametrize("binary", [True, False])
def test_word2vec_files_are_exchanged_with_gensim(
    tmp_path: Path, ours: KeyedVectors, theirs: Any, binary: bool
) -> None:
    files = tmp_path / "ours", tmp_path / "theirs"
    for vectors, file in zip((ours, theirs), files, strict=True):
        vectors.expandos["count"] = np.array([row % 7 + 1 for row in range(40)])
        vectors.save_word2vec_format(str(file), f"{file}.vocab", binary, prefix="x_")
    assert (tmp_path / "ours.vocab").read_text() == (tmp_path / "theirs.vocab").read_text()
    for file in files:
        found, expected = (
            type(vectors).load_word2vec_format(str(file), f"{file}.vocab", binary=binary) for vectors in (ours, theirs)
        )
        assert found.index_to_key == expected.index_to_key
        np.testing.assert_array_equal(found.vectors, expected.vectors)
        assert found.expandos["count"].tolist() == expected.expandos["count"].tolist()


def test_file_can_be_written_in_parts(tmp_path: Path, ours: KeyedVectors) -> None:
    path = tmp_path / "parts.txt"
    for start in (0, 20):
        part = ours.vectors_for_all(WORDS[start : start + 20])
        part.save_word2vec_format(path, total_vec=40, write_header=start == 0, append=start > 0)
    np.testing.assert_array_equal(KeyedVectors.load_word2vec_format(path).vectors, VECTORS)


def test_damaged_files_raise_specific_errors(tmp_path: Path, ours: KeyedVectors) -> None:
    path = tmp_path / "vectors.txt"
    ours.save_word2vec_format(path)
    path.write_bytes(path.read_bytes().replace(b"40 8", b"41 8", 1))
    with pytest.raises(EOFError):
        KeyedVectors.load_word2vec_format(path)
    path.write_bytes(b"1 2\n\xff 1 2\n")
    with pytest.raises(UnicodeDecodeError):
        KeyedVectors.load_word2vec_format(path)
    with pytest.raises(w2v.W2VError, match="UTF-8"):
        KeyedVectors.load(path)


def test_files_without_questions_or_pairs_are_refused(tmp_path: Path, ours: KeyedVectors) -> None:
    questions, pairs = tmp_path / "questions.txt", tmp_path / "pairs.tsv"
    questions.write_text("a b c d\n")
    pairs.write_text("a b 1\nunknown\tw1\t2\n")
    for evaluate, file in ((ours.evaluate_word_analogies, questions), (ours.evaluate_word_pairs, pairs)):
        message = f"(Missing section header before line #0|No valid .* found) in {re.escape(str(file))}"
        with pytest.raises(ValueError, match=message):
            evaluate(file)


def test_intersect_replaces_and_locks_vectors(tmp_path: Path, ours: KeyedVectors) -> None:
    other = KeyedVectors(3)
    other.add_vectors(["w1"], np.ones((1, 3)))
    other.save_word2vec_format(tmp_path / "other")
    with pytest.raises(ValueError, match=r"incompatible vector size 3 in file .*other"):
        ours.intersect_word2vec_format(tmp_path / "other")
    ours.vectors_for_all(["w7"]).save_word2vec_format(tmp_path / "other")
    ours.intersect_word2vec_format(tmp_path / "other")
    assert np.flatnonzero(ours.vectors_lockf == 0).tolist() == [7]  # by default
    np.testing.assert_array_equal(ours.vectors, VECTORS)
    ours.most_similar("w1")  # computes the norms of the old vectors
    pretrained = ours.vectors_for_all(["w2", "w5"])
    pretrained.vectors[:] = 9
    pretrained["other"] = np.ones(8)
    pretrained.save_word2vec_format(tmp_path / "pretrained.txt")
    ours.intersect_word2vec_format(tmp_path / "pretrained.txt", lockf=0.25)
    assert np.flatnonzero((ours.vectors == 9).all(axis=1)).tolist() == [2, 5]
    assert np.flatnonzero(ours.vectors_lockf == 0.25).tolist() == [2, 5]
    assert len(ours) == len(WORDS)
    assert ours.most_similar("w2")[0] == ("w5", pytest.approx(1))
    np.testing.assert_allclose(ours.norms, np.linalg.norm(ours.vectors, axis=1), rtol=1e-6)


def test_new_rows_are_initialised_as_in_gensim(ours: KeyedVectors, theirs: Any) -> None:
    for options in ({}, {"seed": 0}, {"seed": 3}):
        for vectors in (ours, theirs):
            vectors.fill_norms()
            vectors.set_vecattr("w1", "topic", 5)
            for word in ("new", "newer"):
                vectors.key_to_index[f"{word}{options}"] = len(vectors.index_to_key)
                vectors.index_to_key.append(f"{word}{options}")
            vectors.resize_vectors(**options)
            assert vectors.norms is None
            assert vectors.get_vecattr("w1", "topic") == 5
        np.testing.assert_array_equal(ours.vectors, theirs.vectors)
        assert ours.expandos["topic"].tolist() == theirs.expandos["topic"].tolist()
    for arguments in ({"prior_vectors": np.ones((2, 3), np.float32)}, {"seed": 2}):
        modules = keyedvectors, gensim.models.keyedvectors
        np.testing.assert_array_equal(*(module.prep_vectors((4, 3), **arguments) for module in modules))


def test_search_for_products_can_be_restricted(ours: KeyedVectors) -> None:
    """gensim ignores restrict_vocab here, although it documents it."""
    found = [word for word, _ in ours.most_similar_cosmul("w1", restrict_vocab=7, topn=20)]
    everywhere = [word for word, _ in ours.most_similar_cosmul("w1", topn=40)]
    assert found == [word for word in everywhere if word in WORDS[:7]]
    assert ours.most_similar_cosmul("w1", topn=None, restrict_vocab=7).shape == (7,)  # type: ignore[union-attr]


@pytest.mark.parametrize("force", [True, False])
def test_norms_are_recomputed_only_by_force_or_after_a_reset(ours: KeyedVectors, theirs: Any, force: bool) -> None:
    for vectors in (ours, theirs):
        vectors.fill_norms()
        vectors.vectors = 2 * vectors.vectors
        vectors.fill_norms(force=force)
    np.testing.assert_allclose(ours.norms, theirs.norms, rtol=1e-6)
    for vectors in (ours, theirs):
        vectors.init_sims(replace=False)
        assert np.linalg.norm(vectors.vectors[3]) == pytest.approx(2 * np.linalg.norm(VECTORS[3]))
        vectors.norms = None
        vectors.init_sims()
        assert vectors.norms[3] == pytest.approx(np.linalg.norm(vectors.vectors[3]))
        vectors.unit_normalize_all()
        np.testing.assert_allclose(np.linalg.norm(vectors.vectors, axis=1), 1, rtol=1e-5)
        np.testing.assert_allclose(vectors.norms, 1, rtol=1e-5)


def test_attributes_of_keys_match_gensim(ours: KeyedVectors, theirs: Any) -> None:
    for vectors in (ours, theirs):
        vectors.allocate_vecattrs(["number", "text", "flag"], [np.int64, str, bool])
        vectors.set_vecattr("w1", "text", "sport")
        vectors.add_vectors(["new"], np.ones((1, 8)))
        vectors.set_vecattr("new", "number", 7)
        vectors.set_vecattr("w2", "share", 0.5)
    for name in ("number", "text", "flag", "share"):
        assert ours.expandos[name].dtype == theirs.expandos[name].dtype, name
        values, expected = (vectors.expandos[name].tolist() for vectors in (ours, theirs))
        assert len(values) == 41
        assert values[: len(expected)] == expected, name  # gensim extends some arrays only when they are set
    for attribute, kind in (("number", str), ("flag", float), ("text", int), ("share", object)):
        for vectors in (theirs, ours):
            with pytest.raises(TypeError, match=attribute):
                vectors.allocate_vecattrs([attribute], [kind])
            vectors.allocate_vecattrs([attribute], [vectors.expandos[attribute].dtype])


def test_keys_of_equal_counts_are_sorted_as_in_gensim(ours: KeyedVectors, theirs: Any) -> None:
    for vectors in (ours, theirs):
        vectors.expandos["count"] = np.array([row % 5 for row in range(len(vectors))])
        vectors.expandos["number"] = np.arange(len(vectors))
        vectors.fill_norms()
        vectors.sort_by_descending_frequency()
        assert vectors.most_similar("w1", topn=1)[0][0] == "w26"
    assert (ours.index_to_key, ours.key_to_index) == (theirs.index_to_key, theirs.key_to_index)
    assert ours.expandos["number"].tolist() == theirs.expandos["number"].tolist()
    np.testing.assert_array_equal(ours.vectors, theirs.vectors)


def test_words_of_a_vocabulary_file_may_contain_spaces(tmp_path: Path, theirs: Any) -> None:
    counts = {"new york": 7, "plain": 5, "absent": 3}
    (tmp_path / "vocabulary").write_text("".join(f"{word} {count}\n" for word, count in counts.items()))
    for kind in (KeyedVectors, type(theirs)):
        vectors = kind(2)
        vectors.add_vectors(["plain", "new york", "other"], np.eye(3, 2))
        vectors.save_word2vec_format(str(tmp_path / "vectors"))
    found = KeyedVectors.load_word2vec_format(tmp_path / "vectors", tmp_path / "vocabulary")
    assert [found.get_vecattr(word, "count") for word in found.index_to_key] == [5, 7, 0]
    found = KeyedVectors.load_word2vec_format(tmp_path / "vectors")
    assert found.expandos["count"].tolist() == [3, 2, 1]


@pytest.mark.parametrize(("encoding", "word"), [("latin1", "cafÃ©"), ("utf8", "café"), ("UTF-8", "café")])
def test_words_are_decoded_from_the_given_encoding(tmp_path: Path, theirs: Any, encoding: str, word: str) -> None:
    """The bytes are valid in both encodings."""
    (tmp_path / "vectors.txt").write_bytes("2 2\ncafé 1 2\nb 3 4\n".encode())
    for kind in (KeyedVectors, type(theirs)):
        found = kind.load_word2vec_format(str(tmp_path / "vectors.txt"), encoding=encoding)
        assert found.index_to_key == [word, "b"]


@pytest.mark.parametrize("options", [{"datatype": np.float64}, {"datatype": np.float16}, {"limit": 2}, {"limit": 99}])
@pytest.mark.parametrize("binary", [True, False])
def test_reading_options_match_gensim(
    tmp_path: Path, ours: KeyedVectors, theirs: Any, options: dict[str, Any], binary: bool
) -> None:
    ours.save_word2vec_format(tmp_path / "vectors", binary=binary)
    found, expected = (
        kind.load_word2vec_format(str(tmp_path / "vectors"), binary=binary, **options)
        for kind in (KeyedVectors, type(theirs))
    )
    assert found.index_to_key == expected.index_to_key
    assert found.vectors.dtype == expected.vectors.dtype
    np.testing.assert_allclose(found.vectors, expected.vectors, rtol=1e-3)
    assert found.lifecycle_events[-1]["event"] == expected.lifecycle_events[-1]["event"]


@pytest.mark.parametrize("limit", [-1, 1.5, "2"])
def test_invalid_limits_are_refused(tmp_path: Path, ours: KeyedVectors, limit: Any) -> None:
    ours.save_word2vec_format(tmp_path / "vectors")
    with pytest.raises(w2v.SettingsError, match=f"limit {limit!r}: it must be a whole number, 1 or more"):
        KeyedVectors.load_word2vec_format(tmp_path / "vectors", limit=limit)


@pytest.mark.parametrize(
    "options",
    [{"sort_attr": "number"}, {"sort_attr": "absent"}, {"write_header": False}, {"total_vec": 99}, {"append": True}],
)
def test_word2vec_files_match_gensim(tmp_path: Path, ours: KeyedVectors, theirs: Any, options: dict[str, Any]) -> None:
    for name, vectors in (("ours", ours), ("theirs", theirs)):
        (tmp_path / name).write_bytes(b"before\n" if options.get("append") else b"")
        vectors.vectors[:] = np.round(VECTORS, 2)  # written alike
        vectors.expandos |= {"count": np.array([row % 7 for row in range(40)]), "number": np.arange(40)}
        vectors.save_word2vec_format(str(tmp_path / name), **options)
    found, expected = ((tmp_path / name).read_bytes() for name in ("ours", "theirs"))
    lines, expected_lines = ([line.split() for line in content.splitlines()] for content in (found, expected))
    assert [line[:1] for line in lines] == [line[:1] for line in expected_lines]
    assert [[*map(float, line[1:])] for line in lines] == [[*map(float, line[1:])] for line in expected_lines]
    with pytest.raises(ValueError, match="Cannot store vocabulary with 'absent'"):
        ours.save_word2vec_format(tmp_path / "any", tmp_path / "vocabulary", sort_attr="absent")


@pytest.mark.parametrize(
    "options", [{}, {"restrict_vocab": 20}, {"case_insensitive": False}, {"dummy4unknown": True}], ids=str
)
def test_evaluation_matches_gensim(
    tmp_path: Path, ours: KeyedVectors, theirs: Any, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    random = np.random.default_rng(1)
    questions = [" ".join(f"W{row}" for row in random.choice(42, 4, replace=False)) for _ in range(60)]
    best = [ours.most_similar(["w2", f"w{row}"], ["w1"], restrict_vocab=20)[0][0] for row in range(3, 12)]
    questions += [f"w1 w2 w{row} {word}" for row, word in enumerate(best, 3)]
    lines = "\n".join([": one", *questions, ":two", "w1 w2", ": empty", ""])
    (tmp_path / "questions").write_text(lines)
    (tmp_path / "questions.gz").write_bytes(gzip.compress(lines.encode()))
    pairs = (f"w{row};W{row + 1};{row % 5}\nw{row};w{row + 2};{row % 7}\n" for row in range(41))
    (tmp_path / "pairs").write_text("# pairs\n" + "".join(pairs))
    found, logged = [], []
    for wv in (ours, theirs):
        found.append(wv.evaluate_word_analogies(str(tmp_path / "questions.gz"), **options))
        logged.append([line for line in caplog.messages if re.fullmatch(r".*: [\d.]+% \(\d+/\d+\)", line)])
        caplog.clear()
        found.append(wv.evaluate_word_pairs(str(tmp_path / "pairs"), delimiter=";", **options))
        pearson, spearman, unknown = found[-1]
        assert f"{pearson[0]:.4f}" in caplog.text
        assert f"{spearman[0]:.4f}" in caplog.text
        assert f"{unknown:.1f}%" in caplog.text
    assert found[0] == found[2]
    assert logged[0] == logged[1]  # the accuracy of each section that has answers
    assert len(logged[0]) == 2
    assert 0 < found[0][0] < 1
    for one, other in zip(found[1], found[3], strict=True):
        np.testing.assert_allclose(one, other, 1e-5)
    for method, function in (("add", "most_similar"), ("mul", "most_similar_cosmul")):  # gensim has only the first
        score, _ = ours.evaluate_word_analogies(tmp_path / "questions", 20, similarity_function=function)
        assert score == w2v.analogies(ours, tmp_path / "questions", 20, method).accuracy  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["subclass", "assigned"])
def test_a_replaced_get_vector_is_used_as_in_gensim(kind: str) -> None:
    def replace_get_vector(base: Any) -> Any:
        class Shifted(base):
            def get_vector(self, key: Any, norm: bool = False) -> Any:
                return super().get_vector(key, norm=norm) + 1

        if kind == "subclass":
            return make_vectors(Shifted)
        vectors = make_vectors(base)
        stored = vectors.get_vector
        vectors.get_vector = lambda key, norm=False: stored(key, norm=norm) + 1
        return vectors

    ours, theirs = (replace_get_vector(base) for base in (KeyedVectors, type(gensim.models.KeyedVectors(8))))
    plain = make_vectors(KeyedVectors)
    for query in QUERIES_OF_WORDS:
        assert_same(query(ours), query(theirs))
    assert not np.allclose(ours.similarity("w1", "w2"), plain.similarity("w1", "w2"))


def test_a_replaced_get_vector_is_saved_as_in_gensim(tmp_path: Path) -> None:
    saved = []
    for base in (KeyedVectors, gensim.models.KeyedVectors):
        vectors = make_vectors(base)
        vectors.get_vector = lambda key, norm=False: np.full(8, float(key[1:]), np.float32)
        vectors.save_word2vec_format(tmp_path / "vectors.txt")
        saved.append(w2v.load(tmp_path / "vectors.txt").vectors)
    assert (saved[0] == saved[1]).all()
    assert saved[0][3, 0] == 3


def test_a_get_vector_without_the_argument_norm_serves_comparisons() -> None:
    class Stored(KeyedVectors):
        def get_vector(self, key: Any) -> Any:
            return super().get_vector(key)

    vectors, plain = make_vectors(Stored), make_vectors(KeyedVectors)
    assert vectors.similarity("w1", "w2") == plain.similarity("w1", "w2")
    assert (vectors.distances("w1") == plain.distances("w1")).all()


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(("extension", "opener"), [("gz", gzip.open), ("bz2", bz2.open), ("xz", lzma.open)])
def test_word2vec_files_are_compressed_as_their_extension_says(
    tmp_path: Path, ours: KeyedVectors, extension: str, opener: Any, binary: bool
) -> None:
    path = tmp_path / f"vectors.{extension}"
    ours.save_word2vec_format(path, binary=binary)
    with opener(path) as file:
        assert file.readline() == b"40 8\n"
    for loader in (KeyedVectors, gensim.models.KeyedVectors):
        assert np.allclose(loader.load_word2vec_format(str(path), binary=binary).vectors, VECTORS)


def test_only_large_files_are_mapped_read_only(
    tmp_path: Path, ours: KeyedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours.save(tmp_path / "any.kv")
    small = KeyedVectors.load(tmp_path / "any.kv", mmap="r")
    small.vectors[0] = 1
    monkeypatch.setattr(files, "MAPPED_BYTES", 100)
    large = KeyedVectors.load(tmp_path / "any.kv", mmap="r")
    assert not large.vectors.flags.writeable
