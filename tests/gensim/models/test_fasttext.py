"""w2v.gensim's FastText: vectors of unknown words, continued training, and files shared with gensim."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.faults.fasttext_classifier import File
from tests.helpers import import_gensim
from w2v.data import make
from w2v.gensim.models import FastText, KeyedVectors
from w2v.gensim.models.fasttext import (
    FastTextKeyedVectors,
    ft_ngram_hashes,
    load_facebook_model,
    load_facebook_vectors,
    save_facebook_model,
)

gensim = import_gensim()
SENTENCES = [line.split() for line in make.corpus(20_000, seed=1)]
UNKNOWN = "kingdomish"
gensim_load = gensim.models.fasttext.load_facebook_model


@pytest.fixture(scope="module")
def model() -> FastText:
    return FastText(SENTENCES, vector_size=12, epochs=2, workers=1, bucket=2000, sg=1)


def test_unknown_words_have_vectors(model: FastText) -> None:
    assert UNKNOWN in model.wv
    assert not model.wv.has_index_for(UNKNOWN)
    assert len(model.wv.most_similar(UNKNOWN, topn=3)) == 3
    assert model.wv.get_sentence_vector(["king", UNKNOWN]).shape == (12,)
    assert model.wv.vectors_ngrams.shape == (2000, 12)
    assert "zzzz" not in FastText(SENTENCES, vector_size=4, epochs=1, max_n=0).wv
    unused = FastText(vector_size=4, bucket=50, min_n=2, max_n=3).wv
    assert "word" not in unused  # training has not used its n-grams yet
    assert (unused.vectors_ngrams.shape, unused.buckets_word) == ((50, 4), [])
    assert model.wv.get_index(UNKNOWN, default=-1) == -1
    with pytest.raises(KeyError, match="not present"):
        model.wv.get_index(UNKNOWN)


@pytest.mark.parametrize("options", [{}, {"max_n": 0}])
def test_rows_that_are_copies_cannot_be_changed_in_place(options: dict[str, Any]) -> None:
    """A change would be lost. In gensim, it changes the model."""
    vectors = FastText(SENTENCES, vector_size=4, epochs=1, bucket=50, **options).wv
    for rows in (vectors.vectors_ngrams, vectors.vectors_vocab):
        assert rows is not None
        with pytest.raises(ValueError, match="read-only"):
            rows[0] = 0


def test_files_keep_ngrams(model: FastText, tmp_path: Path) -> None:
    path = str(tmp_path / "model")
    model.save(path)
    for loaded in FastText.load(path), KeyedVectors.load(path):
        assert isinstance(loaded, FastText)
        assert (loaded.min_n, loaded.max_n, loaded.bucket) == (3, 6, 2000)
        np.testing.assert_array_equal(loaded.wv[UNKNOWN], model.wv[UNKNOWN])
    model.wv.save(path)
    np.testing.assert_array_equal(w2v.load(path)[UNKNOWN], model.wv[UNKNOWN])
    for vectors in KeyedVectors.load(path), FastTextKeyedVectors.load(path):
        assert type(vectors) is FastTextKeyedVectors
        np.testing.assert_array_equal(vectors[UNKNOWN], model.wv[UNKNOWN])


def test_new_words_can_be_added_and_trained(model: FastText, tmp_path: Path) -> None:
    model.save(str(tmp_path / "model"))
    more = FastText.load(str(tmp_path / "model"))
    new = [["zebrafish", "king"] * 5] * 10
    more.build_vocab(new, update=True)
    before = more.wv["king"].copy()
    assert more.train(new, total_examples=10, epochs=2)[1] == 200
    assert "zebrafish" in more.wv.key_to_index
    assert np.abs(more.wv["king"] - before).max() > 0


def test_gensim_reads_the_same_vectors(model: FastText, tmp_path: Path) -> None:
    path = str(tmp_path / "model.bin")
    save_facebook_model(model, path)
    theirs, ours = gensim_load(path), load_facebook_model(path)
    for word in ("king", UNKNOWN):
        for other in (theirs.wv, ours.wv, load_facebook_vectors(path)):
            np.testing.assert_allclose(other[word], model.wv[word], atol=1e-6)
    np.testing.assert_allclose(theirs.wv.vectors_vocab, model.wv.vectors_vocab, atol=1e-5)
    np.testing.assert_allclose(theirs.wv.vectors_ngrams, model.wv.vectors_ngrams, atol=1e-6)
    found, expected = (each.wv.get_sentence_vector(["king", UNKNOWN, "queen"]) for each in (model, theirs))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    expected_buckets = [list(buckets) for buckets in theirs.wv.buckets_word]
    assert expected_buckets == [buckets.tolist() for buckets in model.wv.buckets_word]
    np.testing.assert_array_equal(ours.syn1neg, model.syn1neg)
    (tmp_path / "text.bin").write_text("king queen " * 50)
    with pytest.raises(w2v.W2VError, match=r": not a fastText model$"):
        load_facebook_model(str(tmp_path / "text.bin"))
    with pytest.raises(FileNotFoundError):
        load_facebook_model(str(tmp_path / "missing.bin"))


@pytest.mark.parametrize(("shortest", "longest"), [(1, 1), (2, 2), (3, 6), (1, 20), (4, 3)])
def test_buckets_of_n_grams_match_gensim(shortest: int, longest: int) -> None:
    for word in ("night", "a", "straße", "日本語") if shortest <= longest else ():
        expected = gensim.models.fasttext.ft_ngram_hashes(word, shortest, longest, 77)
        assert ft_ngram_hashes(word, shortest, longest, 77) == expected
    assert (FastTextKeyedVectors(3, shortest, longest, 77).subwords is None) == (shortest > longest)
    assert FastTextKeyedVectors(3, 0, 0, 0).subwords is None


def test_model_saved_by_gensim_can_be_loaded_and_trained(tmp_path: Path) -> None:
    path = str(tmp_path / "model")
    theirs = gensim.models.FastText(SENTENCES, vector_size=4, bucket=200, epochs=1, workers=1, sg=1)
    theirs.save(path)
    for loaded in FastText.load(path), KeyedVectors.load(path):
        assert isinstance(loaded, FastText)
        assert (loaded.min_n, loaded.max_n, loaded.bucket, loaded.sg) == (3, 6, 200, 1)
        np.testing.assert_allclose(loaded.wv[UNKNOWN], theirs.wv[UNKNOWN], atol=1e-6)
        np.testing.assert_array_equal(loaded.syn1neg, theirs.syn1neg)
    before = loaded.wv["king"].copy()
    loaded.train(SENTENCES, total_examples=loaded.corpus_count, epochs=1)
    assert np.abs(loaded.wv["king"] - before).max() > 0
    theirs.wv.save(path)
    for vectors in FastTextKeyedVectors.load(path), KeyedVectors.load(path):
        np.testing.assert_allclose(vectors[UNKNOWN], theirs.wv[UNKNOWN], atol=1e-6)


OPTIONS: dict[str, Any] = {  # all different, so that swapped arguments show
    "sg": 1, "hs": 1, "vector_size": 12, "alpha": 0.03, "window": 4, "min_count": 3, "max_vocab_size": 1000,
    "sample": 0.02, "seed": 6, "workers": 2, "min_alpha": 0.002, "negative": 7, "ns_exponent": 0.6, "cbow_mean": 0,
    "epochs": 8, "null_word": 1, "min_n": 2, "max_n": 5, "sorted_vocab": 0, "bucket": 300, "batch_words": 900,
    "max_final_vocab": 40, "shrink_windows": False,
}  # fmt: skip


@pytest.mark.parametrize("options", [{"bucket": 100}, OPTIONS])
def test_new_model_matches_gensim(options: dict[str, Any]) -> None:
    ours, theirs = (kind(**options) for kind in (FastText, gensim.models.FastText))
    of_vectors = {"min_n", "max_n", "bucket"}
    for name in OPTIONS.keys() - of_vectors:
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in of_vectors:
        assert getattr(ours.wv, name) == getattr(ours, name) == getattr(theirs.wv, name), name
    for model in (ours, theirs):
        model.build_vocab(SENTENCES)
    assert ours.wv.index_to_key == theirs.wv.index_to_key
    assert ours.estimate_memory() == theirs.estimate_memory()
    fewer = ours.estimate_memory(10)
    assert fewer["vocab"] * len(ours.wv) == ours.estimate_memory()["vocab"] * 10
    assert fewer["syn0_vocab"] == 10 * ours.vector_size * 4
    with pytest.raises(NotImplementedError, match="word_ngrams=2"):
        FastText(word_ngrams=2)


@pytest.mark.parametrize(
    "options",
    [
        {"sg": 0},
        {"sg": 1, "hs": 1, "negative": 0},
        {"max_n": 0},
        {"window": 3, "negative": 4, "epochs": 2, "min_count": 9, "sample": 0.005, "min_n": 2, "max_n": 4},
    ],
)
def test_settings_in_facebooks_files_are_exchanged_with_gensim(options: dict[str, Any], tmp_path: Path) -> None:
    model = FastText(SENTENCES, **{"vector_size": 4, "epochs": 1, "workers": 1, "bucket": 200} | options)
    save_facebook_model(model, tmp_path / "ours.bin")
    ours, theirs = (load(str(tmp_path / "ours.bin")) for load in (load_facebook_model, gensim_load))
    for name in ("sg", "hs", "window", "epochs", "min_count", "sample", "vector_size", "corpus_total_words"):
        assert getattr(ours, name) == getattr(theirs, name), name
        if name != "corpus_total_words":  # without the words that are left out
            assert getattr(ours, name) == getattr(model, name), name
    assert ours.negative == model.negative
    for name in ("min_n", "max_n", "bucket"):
        assert getattr(ours.wv, name) == getattr(theirs.wv, name), name
    assert ours.wv.index_to_key == theirs.wv.index_to_key == model.wv.index_to_key
    assert ours.wv.expandos["count"].tolist() == theirs.wv.expandos["count"].tolist()
    with pytest.raises(KeyError) if options.get("max_n") == 0 else nullcontext():
        assert ours.wv[UNKNOWN].shape == (4,)
    if model.negative:
        before = ours.wv[0].copy()
        ours.train(SENTENCES, total_examples=len(SENTENCES), epochs=1)
        assert (ours.wv[0] != before).any()
    else:
        assert ours.syn1.shape == (len(ours.wv), 4)
        assert not ours.syn1.any()  # the file lacks it


def test_a_sample_of_words_is_saved_as_a_share(tmp_path: Path) -> None:
    model = FastText(SENTENCES, vector_size=4, epochs=1, workers=1, bucket=50, sample=20)
    save_facebook_model(model, tmp_path / "model.bin")
    tokens = int(model.wv.expandos["count"].sum())
    # gensim multiplies a number of words by (3 + √5) / 2.
    assert load_facebook_model(tmp_path / "model.bin").sample == pytest.approx(20 * (3 + 5**0.5) / 2 / tokens, rel=0.02)


class OwnRows(FastTextKeyedVectors):
    """Vectors like compress-fasttext's, which set the matrices."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.vectors_vocab = None
        self.buckets_seen = 0


@pytest.mark.parametrize("kind", [OwnRows, gensim.models.fasttext.FastTextKeyedVectors])
def test_matrices_of_a_subclass_can_be_set(tmp_path: Path, kind: Any) -> None:
    rows = np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)
    vectors = kind(4, min_n=2, max_n=3, bucket=50)
    vectors.vectors_ngrams = rows
    vectors.index_to_key, vectors.key_to_index = ["one", "two"], {"one": 0, "two": 1}
    vectors.recalc_char_ngram_buckets()
    vectors.vectors_vocab = np.ones((2, 4), np.float32)
    vectors.adjust_vectors()
    buckets = ft_ngram_hashes("one", 2, 3, 50)
    assert np.allclose(vectors["one"], (1 + rows[buckets].sum(axis=0)) / (1 + len(buckets)), atol=1e-6)
    assert np.allclose(vectors["unknown"], rows[ft_ngram_hashes("unknown", 2, 3, 50)].mean(axis=0), atol=1e-6)
    assert (vectors.vectors_ngrams == rows).all()
    assert np.allclose(vectors.vectors_vocab, 1, atol=1e-5)
    if kind is OwnRows:
        vectors.save(tmp_path / "own.kv")
        loaded = OwnRows.load(tmp_path / "own.kv")
        assert type(loaded) is OwnRows
        assert np.allclose(loaded["unknown"], vectors["unknown"])


def test_a_subclass_that_chooses_buckets_is_refused(model: FastText) -> None:
    class OtherBuckets(FastTextKeyedVectors):
        def recalc_char_ngram_buckets(self) -> None:
            self.chosen = [[0]]

    vectors = OtherBuckets(4, bucket=50)
    with pytest.raises(NotImplementedError, match=r"OtherBuckets\.recalc_char_ngram_buckets has no effect"):
        vectors.adjust_vectors()
    other = FastText(SENTENCES, vector_size=4, epochs=1, bucket=50)
    vars(vectors).update(vars(other.wv))
    other.wv = vectors
    with pytest.raises(NotImplementedError, match="has no effect"):
        other.train(SENTENCES, total_examples=len(SENTENCES), epochs=1)


def test_old_names_load_fasttext_files(model: FastText, tmp_path: Path) -> None:
    save_facebook_model(model, tmp_path / "model.bin")
    loaded = FastText.load_fasttext_format(tmp_path / "model.bin")
    other = FastText()
    other.file_name = tmp_path / "model.bin"
    other.load_binary_data()
    for each in (loaded, other):
        assert np.allclose(each.wv[UNKNOWN], model.wv[UNKNOWN], atol=1e-6)
    with pytest.raises(NotImplementedError):
        loaded.wv.similarity_unseen_docs(["one"], ["two"])


def test_classifiers_of_fasttext_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(File().data())
    for load in (load_facebook_model, load_facebook_vectors):
        with pytest.raises(NotImplementedError, match="is a classifier"):
            load(tmp_path / "model.bin")
