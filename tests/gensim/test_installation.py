"""w2v.gensim under the name gensim."""

import importlib
import importlib.metadata
import sys

import pytest

import w2v.gensim
from w2v.gensim.utils import VERSION


def test_a_block_has_our_gensim_and_then_the_one_before() -> None:
    before = pytest.importorskip("gensim")
    own = [module for name, module in sys.modules.items() if name.startswith("gensim")]
    installed = importlib.metadata.version("gensim")
    with w2v.gensim.install():
        assert importlib.import_module("gensim") is w2v.gensim
        for name in ("models.word2vec", "models", "utils", "downloader", "similarities.annoy", "test.utils"):
            assert importlib.import_module(f"gensim.{name}") is importlib.import_module(f"w2v.gensim.{name}")
        assert importlib.metadata.version("gensim") == w2v.gensim.__version__ == VERSION
        assert importlib.metadata.version("numpy") != VERSION
        with pytest.raises(ModuleNotFoundError, match=r"gensim\.corpora"):
            importlib.import_module("gensim.corpora")
    assert importlib.import_module("gensim") is before
    assert [module for name, module in sys.modules.items() if name.startswith("gensim")] == own
    assert importlib.metadata.version("gensim") == installed
