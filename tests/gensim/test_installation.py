"""w2v.gensim under the name gensim."""

import importlib
import importlib.metadata
import sys

import pytest

import w2v.gensim
from w2v.gensim.utils import VERSION

NOT_HERE = "^w2v.gensim has no {}, only word vectors: import it from gensim itself$"


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("from w2v.gensim import corpora", "corpora"),
        ("import w2v.gensim.corpora", "corpora"),
        ("from w2v.gensim.corpora import Dictionary", "corpora"),
        ("from w2v.gensim.models import KeyedVectors, LdaModel", "models.LdaModel"),
        ("from w2v.gensim.models.ldamodel import LdaModel", "models.ldamodel"),
    ],
)
def test_gensims_other_modules_are_named_in_one_line(statement: str, wanted: str) -> None:
    with pytest.raises(ImportError, match=NOT_HERE.format(wanted)):
        exec(statement)
    assert not hasattr(w2v.gensim, "corpora")


def test_gensim_itself_is_not_hidden() -> None:
    assert importlib.import_module("gensim.corpora").__name__ == "gensim.corpora"
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'gensim\.nothing'$"):
        importlib.import_module("gensim.nothing")


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
        with pytest.raises(ModuleNotFoundError, match=NOT_HERE.format("corpora")):
            importlib.import_module("gensim.corpora")
    assert importlib.import_module("gensim") is before
    assert [module for name, module in sys.modules.items() if name.startswith("gensim")] == own
    assert importlib.metadata.version("gensim") == installed
