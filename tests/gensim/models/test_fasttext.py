"""w2v.gensim's FastText: vectors of unknown words, continued training, and files shared with gensim."""

from pathlib import Path

import gensim
import numpy as np
import pytest

import w2v
from w2v.data import make
from w2v.gensim.models import FastText, KeyedVectors
from w2v.gensim.models.fasttext import (
    FastTextKeyedVectors,
    ft_ngram_hashes,
    load_facebook_model,
    load_facebook_vectors,
    save_facebook_model,
)

pytestmark = pytest.mark.filterwarnings("ignore::w2v.TextWarning")
SENTENCES = [line.split() for line in make.corpus(20_000, seed=1)]
UNKNOWN = "kingdomish"


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


def test_files_keep_ngrams(model: FastText, tmp_path: Path) -> None:
    path = str(tmp_path / "model")
    model.save(path)
    for loaded in FastText.load(path), KeyedVectors.load(path):
        assert isinstance(loaded, FastText)
        assert (loaded.min_n, loaded.max_n, loaded.bucket) == (3, 6, 2000)
        np.testing.assert_array_equal(loaded.wv[UNKNOWN], model.wv[UNKNOWN])
    model.wv.save(path)
    np.testing.assert_array_equal(w2v.load(path)[UNKNOWN], model.wv[UNKNOWN])


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
    theirs, ours = gensim.models.fasttext.load_facebook_model(path), load_facebook_model(path)
    for word in ("king", UNKNOWN):
        for other in (theirs.wv, ours.wv, load_facebook_vectors(path)):
            np.testing.assert_allclose(other[word], model.wv[word], atol=1e-6)
    np.testing.assert_allclose(theirs.wv.vectors_vocab, model.wv.vectors_vocab, atol=1e-5)
    expected_buckets = [list(buckets) for buckets in theirs.wv.buckets_word]
    assert expected_buckets == [buckets.tolist() for buckets in model.wv.buckets_word]
    np.testing.assert_array_equal(ours.syn1neg, model.syn1neg)
    (tmp_path / "text.bin").write_text("king queen " * 50)
    with pytest.raises(w2v.W2VError, match=r": not a fastText model$"):
        load_facebook_model(str(tmp_path / "text.bin"))


@pytest.mark.parametrize("word", ["night", "a", "straße", "日本語"])
def test_buckets_match_gensim(word: str) -> None:
    assert ft_ngram_hashes(word, 3, 6, 1000) == gensim.models.fasttext.ft_ngram_hashes(word, 3, 6, 1000)


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
