"""w2v.gensim imported as gensim, and its missing modules."""

import importlib
import importlib.metadata
import sys
from pathlib import Path

import pytest

import w2v.gensim
from w2v.gensim.utils import VERSION

MISSING = "^w2v.gensim has no {}, only word vectors: import it from gensim itself$"


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("from w2v.gensim import corpora", "corpora"),
        ("import w2v.gensim.corpora", "corpora"),
        ("from w2v.gensim.corpora import Dictionary", "corpora"),
        ("from w2v.gensim.models import KeyedVectors, LdaModel", "models.LdaModel"),
        ("from w2v.gensim.models.ldamodel import LdaModel", "models.ldamodel"),
    ],
)
def test_error_for_a_missing_gensim_module_is_one_line(statement: str, missing: str) -> None:
    with pytest.raises(ImportError, match=MISSING.format(missing)):
        exec(statement)
    assert not hasattr(w2v.gensim, "corpora")


def test_gensim_itself_is_not_hidden() -> None:
    assert importlib.import_module("gensim.corpora").__name__ == "gensim.corpora"
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'gensim\.nothing'$"):
        importlib.import_module("gensim.nothing")


def test_install_is_undone_after_the_with_block() -> None:
    real_gensim = pytest.importorskip("gensim")
    own = [module for name, module in sys.modules.items() if name.startswith("gensim")]
    finders = list(sys.meta_path)
    installed = importlib.metadata.version("gensim")
    with w2v.gensim.install():
        assert importlib.import_module("gensim") is w2v.gensim
        for name in ("models.word2vec", "models", "utils", "downloader", "similarities.annoy", "test.utils"):
            assert importlib.import_module(f"gensim.{name}") is importlib.import_module(f"w2v.gensim.{name}")
        assert importlib.metadata.version("gensim") == w2v.gensim.__version__ == VERSION
        assert importlib.metadata.version("numpy") != VERSION
        package = Path(w2v.gensim.__file__).parent
        found = [importlib.metadata.distribution("gensim"), next(importlib.metadata.distributions())]
        for distribution in found:
            assert (distribution.metadata["Name"], distribution.version) == ("gensim", VERSION)
            assert distribution.locate_file("models") == package / "models"
            assert distribution.read_text("RECORD") is None
        assert "numpy" in {distribution.name for distribution in importlib.metadata.distributions()}
        with pytest.raises(ModuleNotFoundError, match=MISSING.format("corpora")):
            importlib.import_module("gensim.corpora")
    assert importlib.import_module("gensim") is real_gensim
    assert [module for name, module in sys.modules.items() if name.startswith("gensim")] == own
    assert importlib.metadata.version("gensim") == installed
    assert sys.meta_path == finders
