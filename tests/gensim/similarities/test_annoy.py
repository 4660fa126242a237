"""AnnoyIndexer, which searches with usearch instead of Annoy."""

from pathlib import Path

import numpy as np
import pytest

from w2v._errors import W2VError
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.similarities.annoy import AnnoyIndexer

VECTORS = np.random.default_rng(3).normal(size=(200, 8)).astype(np.float32)


def test_index_answers_and_can_be_saved(tmp_path: Path) -> None:
    vectors = KeyedVectors(8)
    vectors.add_vectors([f"w{row}" for row in range(200)], VECTORS)
    indexer = AnnoyIndexer(vectors, 2)
    found = vectors.most_similar("w7", topn=5, indexer=indexer)
    # Unlike most_similar, an indexer does not leave out the words of the query.
    expected = [("w7", 1.0), *vectors.most_similar("w7", topn=4)]
    assert [word for word, _ in found] == [word for word, _ in expected]
    np.testing.assert_allclose([cosine for _, cosine in found], [cosine for _, cosine in expected], atol=1e-5)
    indexer.save(tmp_path / "index")
    loaded = AnnoyIndexer()
    loaded.load(tmp_path / "index")
    assert loaded.most_similar(VECTORS[7], 5) == indexer.most_similar(VECTORS[7], 5)
    assert loaded.num_trees == 2


def test_invalid_models_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Only a Word2Vec"):
        AnnoyIndexer("a model", 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the index is empty"):
        AnnoyIndexer().most_similar(VECTORS[0], 1)
    with pytest.raises(FileNotFoundError):
        AnnoyIndexer().load(tmp_path / "none")
    (tmp_path / "index").write_text("no index")
    (tmp_path / "index.dict").write_text('{"num_trees": 1, "labels": []}')
    with pytest.raises(W2VError, match="index: not an index of usearch"):
        AnnoyIndexer().load(tmp_path / "index")
