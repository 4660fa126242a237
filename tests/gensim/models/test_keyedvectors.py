"""w2v.gensim's KeyedVectors, compared with gensim's."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gensim.models
import numpy as np
import pytest

import w2v
from w2v.formats import native
from w2v.gensim.models.keyedvectors import KeyedVectors

# gensim warns about its own deprecated members.
pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")

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


@pytest.mark.parametrize(
    "query",
    [
        lambda wv: wv.most_similar("w1", topn=3),
        lambda wv: wv.most_similar(positive=["w1", ("w2", 0.5)], negative=["w3"], topn=4),
        lambda wv: wv.most_similar(positive=[VECTORS[5], 7], topn=4),
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
        lambda wv: wv.similarity("w1", "w2"),
        lambda wv: wv.distance(w1="w1", w2="w2"),
        lambda wv: wv.n_similarity(ws1=["w1", "w2"], ws2=["w3"]),
        lambda wv: wv.distances(word_or_vector="w1", other_words=["w2", "w3"]),
        lambda wv: wv.cosine_similarities(VECTORS[0], VECTORS[1:]),
        lambda wv: wv.rank(key1="w1", key2="w2"),
        lambda wv: wv.relative_cosine_similarity("w1", "w2"),
        lambda wv: wv.get_mean_vector(["w1", 2, "unknown"], weights=[1, 2, 3]),
        lambda wv: wv.get_mean_vector(["unknown"]),
        lambda wv: wv.get_vector("w1", norm=True),
        lambda wv: wv.get_normed_vectors(),
        lambda wv: wv[["w1", "w2"]],
        lambda wv: wv.vectors_for_all(["w3", "unknown", "w1", "w3"]).vectors,
        lambda wv: wv.vectors_for_all(["w1", "unknown", "w3"], copy_vecattrs=True).expandos["count"],
    ],
)
def test_answers_match_gensim(ours: KeyedVectors, theirs: Any, query: Callable[[Any], Any]) -> None:
    found, expected = query(ours), query(theirs)
    assert type(found) is type(expected)
    if isinstance(found, list):  # of words and numbers
        flat = [[part for pair in answer for part in pair] for answer in (found, expected)]
        words = [[part for part in parts if isinstance(part, str)] for parts in flat]
        assert words[0] == words[1]
        found, expected = ([part for part in parts if not isinstance(part, str)] for parts in flat)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


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


def test_vectors_of_wrong_size_change_nothing(ours: KeyedVectors) -> None:
    for vectors in (ours, KeyedVectors(8, count=2)):
        before = list(vectors.index_to_key), dict(vectors.key_to_index), vectors.vectors.shape
        with pytest.raises(ValueError, match="shape"):
            vectors.add_vector("new", [1.0, 2.0])
        with pytest.raises(ValueError, match="shape"):
            vectors.add_vectors(["new", "more"], np.ones((1, 8)))
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


def test_forged_file_cannot_set_other_attributes(ours: KeyedVectors, tmp_path: Path) -> None:
    ours.other = 1
    content = ours._content()
    forged = b'{"most_similar":1,"_words":2,"vectors":3,"good":4}'
    content.tensors["gensim.vectors"] = np.frombuffer(forged, np.uint8)
    native.write(tmp_path / "forged", content)
    loaded = KeyedVectors.load(tmp_path / "forged")
    assert loaded.good == 4
    assert loaded.most_similar("w1")
    assert loaded.vectors.shape == (40, 8)


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
    assert caplog.text.count("duplicate word") == 2  # ours and theirs


def test_vector_size_can_be_set(ours: KeyedVectors, theirs: Any) -> None:
    for vectors in (ours, theirs):
        vectors.vectors = vectors.vectors[:, :3]
        vectors.vector_size = 3
        assert vectors.vector_size == 3
    empty = KeyedVectors(8)
    empty.vector_size = 2
    empty.add_vector("a", [1, 2])
    assert empty["a"].tolist() == [1, 2]


def test_missing_folders_raise_file_not_found_error(ours: KeyedVectors, tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "any.kv"
    for use in (ours.save, ours.save_word2vec_format, KeyedVectors.load, KeyedVectors.load_word2vec_format):
        with pytest.raises(FileNotFoundError, match=r"missing/any\.kv"):
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
        for limit in (None, 5):
            found, expected = (
                type(vectors).load_word2vec_format(str(file), f"{file}.vocab", binary=binary, limit=limit)
                for vectors in (ours, theirs)
            )
            assert found.index_to_key == expected.index_to_key
            np.testing.assert_array_equal(found.vectors, expected.vectors)
            assert found.expandos["count"].tolist() == expected.expandos["count"].tolist()
            assert len(found) == (limit or 40)


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


@pytest.mark.parametrize("mmap", [None, "r"])
def test_file_saved_by_gensim_can_be_loaded(tmp_path: Path, theirs: Any, mmap: str | None) -> None:
    theirs.save(str(tmp_path / "theirs.kv"))
    found = KeyedVectors.load(tmp_path / "theirs.kv", mmap=mmap)
    assert found.index_to_key == theirs.index_to_key
    np.testing.assert_array_equal(found.vectors, theirs.vectors)
    assert found.vectors.flags.writeable


def test_evaluation_matches_gensim(tmp_path: Path, ours: KeyedVectors, theirs: Any) -> None:
    random = np.random.default_rng(1)
    lines = [" ".join(f"W{row}" for row in random.choice(42, 4, replace=False)) for _ in range(60)]
    answered = f"w1 w2 w3 {ours.most_similar(['w2', 'w3'], ['w1'])[0][0]}"
    questions, packed, pairs = (tmp_path / name for name in ("questions.txt", "questions.txt.gz", "pairs.tsv"))
    questions.write_text("\n".join([": one", *lines[:30], ": two", answered, *lines[30:]]) + "\n")
    packed.write_bytes(gzip.compress(questions.read_bytes()))
    pairs.write_text("# pairs\n" + "".join(f"w{row}\tW{row + 1}\t{row % 5}\n" for row in range(41)))
    for unknown in (False, True):
        options = {"dummy4unknown": unknown}
        found, expected = (
            (wv.evaluate_word_analogies(str(packed), **options), wv.evaluate_word_pairs(str(pairs), **options))
            for wv in (ours, theirs)
        )
        assert found[0] == expected[0]
        assert found[0][0] > 0
        for one, other in zip(found[1], expected[1], strict=True):
            np.testing.assert_allclose(one, other, 1e-5)
    questions.write_text("a b c d\n")
    pairs.write_text("a b 1\nunknown\tw1\t2\n")
    for evaluate, file in ((ours.evaluate_word_analogies, questions), (ours.evaluate_word_pairs, pairs)):
        with pytest.raises(ValueError, match=f"(Missing section header before line #0|No valid .* found) in {file}"):
            evaluate(file)


def test_intersect_replaces_and_locks_vectors(tmp_path: Path, ours: KeyedVectors) -> None:
    pretrained = ours.vectors_for_all(["w2", "w5"])
    pretrained.vectors[:] = 1
    pretrained["other"] = np.ones(8)
    pretrained.save_word2vec_format(tmp_path / "pretrained.txt")
    ours.intersect_word2vec_format(tmp_path / "pretrained.txt", lockf=0.25)
    assert np.flatnonzero((ours.vectors == 1).all(axis=1)).tolist() == [2, 5]
    assert np.flatnonzero(ours.vectors_lockf == 0.25).tolist() == [2, 5]
    assert len(ours) == len(WORDS)


def test_word_movers_distance_of_single_words_is_euclidean(ours: KeyedVectors) -> None:
    pytest.importorskip("ot")
    assert ours.wmdistance(["w1", "w2"], ["w2", "w1"]) == 0
    assert ours.wmdistance(["w1"], ["w2"], norm=False) == pytest.approx(np.linalg.norm(VECTORS[1] - VECTORS[2]))
    assert ours.wmdistance(["w1"], ["unknown"]) == np.inf


def test_intersecting_changes_the_nearest_words(tmp_path: Path, ours: KeyedVectors) -> None:
    ours.most_similar("w1")  # computes the lengths of the old vectors
    given = make_vectors(KeyedVectors)
    given.vectors *= np.arange(1, len(WORDS) + 1, dtype=np.float32)[:, None]
    given.save_word2vec_format(tmp_path / "given.txt")
    ours.intersect_word2vec_format(tmp_path / "given.txt")
    assert [word for word, _ in ours.most_similar("w1")] == [word for word, _ in given.most_similar("w1")]
    np.testing.assert_allclose(ours.norms, given.norms, rtol=1e-6)
