"""The conversion of GloVe's files, compared with gensim's."""

from pathlib import Path

import pytest

from w2v.gensim.scripts.glove2word2vec import glove2word2vec


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")  # gensim's
def test_converted_file_matches_gensim(tmp_path: Path) -> None:
    theirs = pytest.importorskip("gensim.scripts.glove2word2vec")
    (tmp_path / "glove.txt").write_text("the 0.25 -1.5\n. 1.5 2.5\n")
    for name, convert in (("ours", glove2word2vec), ("theirs", theirs.glove2word2vec)):
        assert convert(str(tmp_path / "glove.txt"), str(tmp_path / name)) == (2, 2)
    assert (tmp_path / "ours").read_text().split() == (tmp_path / "theirs").read_text().split()
