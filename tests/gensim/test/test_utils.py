"""gensim.test.utils, compared with gensim's own."""

from pathlib import Path

import pytest

from w2v.gensim.test import utils


def test_texts_and_paths_match_gensim() -> None:
    theirs = pytest.importorskip("gensim.test.utils")
    assert utils.common_texts == theirs.common_texts
    assert utils.datapath("questions-words.txt") == theirs.datapath("questions-words.txt")
    with pytest.raises(FileNotFoundError, match="none: gensim's test data"):
        utils.datapath("none")
    assert Path(utils.get_tmpfile("name")).parent.is_dir()
    with utils.temporary_file("name") as path:
        Path(path).write_text("text")
    assert not Path(path).exists()
