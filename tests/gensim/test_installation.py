"""w2v.gensim imported as gensim, and its missing modules."""

import copy
import copyreg
import importlib
import importlib.metadata
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import w2v.gensim
from w2v.gensim import fall_through
from w2v.gensim.utils import VERSION

MISSING = "^w2v.gensim has no {}, only word vectors: for it, install gensim itself: pip install gensim$"


@pytest.fixture
def without_gensim(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fall_through, "has_gensim", lambda: False)
    monkeypatch.delitem(sys.modules, "w2v.gensim.models.doc2vec", raising=False)
    yield
    sys.modules.pop("w2v.gensim.models.doc2vec", None)


@pytest.mark.usefixtures("without_gensim")
@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("from w2v.gensim import corpora", "corpora"),
        ("import w2v.gensim.corpora", "corpora"),
        ("from w2v.gensim.corpora import Dictionary", "corpora"),
        ("from w2v.gensim.models import KeyedVectors, LdaModel", "models.LdaModel"),
        ("from w2v.gensim.models.ldamodel import LdaModel", "models.ldamodel"),
        ("from w2v.gensim.utils import simple_preprocess, chunkize", "utils.chunkize"),
        (
            "from w2v.gensim.models.doc2vec import TaggedDocument, TaggedLineDocument",
            "models.doc2vec.TaggedLineDocument",
        ),
    ],
)
def test_error_for_a_missing_gensim_module_is_one_line(
    statement: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.startswith(f"w2v.gensim.{missing.partition('.')[0]}") and not fall_through.has_module(name[11:]):
            monkeypatch.delitem(sys.modules, name)
    vars(w2v.gensim).pop("corpora", None)  # an earlier test may have imported it
    with pytest.raises(ImportError, match=MISSING.format(missing)):
        exec(statement)
    assert not hasattr(w2v.gensim, "corpora")


@pytest.mark.usefixtures("without_gensim")
def test_error_for_a_missing_name_of_a_module_is_one_line() -> None:
    with pytest.raises(AttributeError, match=MISSING.format("utils.chunkize")):
        getattr(w2v.gensim.utils, "chunkize")  # noqa: B009
    with pytest.raises(AttributeError, match="no attribute '__wrapped__'"):
        getattr(w2v.gensim.utils, "__wrapped__")  # noqa: B009
    doc2vec = importlib.import_module("w2v.gensim.models").Doc2Vec
    for use in (doc2vec, doc2vec.load):
        with pytest.raises(NotImplementedError, match="has no Doc2Vec: "):
            use()


def test_gensim_itself_is_not_hidden() -> None:
    assert pytest.importorskip("gensim.corpora").__name__ == "gensim.corpora"
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'gensim\.nothing'$"):
        importlib.import_module("gensim.nothing")


def test_install_is_undone_after_the_with_block() -> None:
    real_gensim = pytest.importorskip("gensim")
    own = {name: module for name, module in sys.modules.items() if name.startswith("gensim")}
    finders = list(sys.meta_path)
    installed = importlib.metadata.version("gensim")
    reducers = dict(copyreg.dispatch_table)
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
        assert importlib.import_module("gensim.corpora") is real_gensim.corpora
        assert Path(w2v.gensim.__path__[0]) == Path(real_gensim.__file__).parent
    assert importlib.import_module("gensim") is real_gensim
    assert {name: module for name, module in sys.modules.items() if name in own} == own
    assert [Path(path) for path in w2v.gensim.__path__] == [package]
    assert importlib.metadata.version("gensim") == installed
    assert sys.meta_path == finders
    assert copyreg.dispatch_table == reducers


TEXTS = [["human", "interface", "computer"], ["graph", "trees", "computer"], ["graph", "minors", "interface"]] * 3


@pytest.fixture
def installed() -> Iterator[None]:
    pytest.importorskip("gensim")
    with w2v.gensim.install():
        yield


@pytest.mark.usefixtures("installed")
def test_names_that_we_lack_come_from_gensim() -> None:
    names = {
        "corpora": "Dictionary",
        "models": "LdaModel",
        "models.ldamodel": "LdaModel",
        "models.coherencemodel": "CoherenceModel",
        "models.basemodel": "BaseTopicModel",
        "models._fasttext_bin": "Model",
        "models.doc2vec": "TaggedDocument",
        "models.word2vec": "Heapitem",
        "parsing.preprocessing": "preprocess_string",
        "similarities": "Similarity",
        "utils": "chunkize",
        "matutils": "corpus2dense",
        "test.utils": "common_corpus",
    }
    for module, name in names.items():
        value = getattr(importlib.import_module(f"gensim.{module}"), name)
        assert getattr(value, "__module__", "gensim").startswith("gensim"), module
        assert getattr(importlib.import_module(f"w2v.gensim.{module}"), name) is value
    for module, name in (("models", "Word2Vec"), ("models.keyedvectors", "KeyedVectors"), ("utils", "SaveLoad")):
        assert getattr(importlib.import_module(f"gensim.{module}"), name).__module__.startswith("w2v.gensim.")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'gensim\.nothing'$"):
        importlib.import_module("gensim.nothing")
    with pytest.raises(AttributeError, match=r"module 'gensim\.utils' has no attribute 'nothing'"):
        getattr(importlib.import_module("gensim.utils"), "nothing")  # noqa: B009


@pytest.mark.usefixtures("installed")
def test_star_imports_give_the_names_of_both_sides() -> None:
    names: dict[str, Any] = {}
    exec("from gensim import *; from gensim.models import *; from gensim.utils import *", names)
    assert {"corpora", "models", "parsing", "word2vec", "LdaModel", "Doc2Vec", "chunkize"} <= names.keys()
    assert {names[name].__module__.partition(".")[0] for name in ("Word2Vec", "Phrases", "simple_preprocess")} == {
        "w2v"
    }


@pytest.mark.usefixtures("without_gensim")
def test_star_imports_without_gensim_give_our_names() -> None:
    names: dict[str, Any] = {}
    exec("from w2v.gensim.models import *; from w2v.gensim.utils import *", names)
    assert {"Word2Vec", "KeyedVectors", "simple_preprocess"} <= names.keys()
    assert not {"LdaModel", "chunkize"} & names.keys()


def test_modules_of_gensim_keep_its_own_classes() -> None:
    """The program runs in a process that has not imported gensim before."""
    pytest.importorskip("gensim")
    program = (
        "import w2v.gensim; installed = w2v.gensim.install()\n"
        "from gensim.models.doc2vec import Doc2Vec; from gensim.models import Word2Vec, ldamodel\n"
        "import gensim; assert ldamodel.utils is not gensim.utils\n"
        "assert Word2Vec.__module__ == 'w2v.gensim.models.word2vec' and not issubclass(Doc2Vec, Word2Vec)\n"
        "installed.close(); import gensim; assert issubclass(Doc2Vec, gensim.models.Word2Vec)\n"
        "import gensim.models.ldamodel; assert ldamodel is gensim.models.ldamodel"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.usefixtures("installed")
def test_objects_of_gensim_work_with_ours(tmp_path: Path) -> None:
    models, corpora, similarities = (
        importlib.import_module(f"gensim.{name}") for name in ("models", "corpora", "similarities")
    )
    model = models.Word2Vec(TEXTS, min_count=1, vector_size=8, seed=1, workers=1)
    dictionary = corpora.Dictionary(TEXTS)
    index = similarities.WordEmbeddingSimilarityIndex(model.wv)
    matrix = similarities.SparseTermSimilarityMatrix(index, dictionary)
    bag = dictionary.doc2bow(TEXTS[0])
    assert matrix.inner_product(bag, bag, normalized=(True, True)) == pytest.approx(1, abs=1e-5)
    assert len(similarities.WmdSimilarity(TEXTS, model.wv, num_best=2)[TEXTS[0]]) == 2
    (tmp_path / "text.txt").write_text("".join(" ".join(text) + "\n" for text in TEXTS))
    own_phrases = fall_through.import_own("gensim.models.phrases").Phrases
    reader = importlib.import_module("gensim.models.word2vec").LineSentence(tmp_path / "text.txt")
    assert own_phrases(reader, min_count=1, threshold=0.1).vocab == models.Phrases(reader, min_count=1).vocab
    documents = [models.doc2vec.TaggedDocument(text, [row]) for row, text in enumerate(TEXTS)]
    saved = models.Doc2Vec(documents, min_count=1, vector_size=8, epochs=1)
    saved.save(str(tmp_path / "doc2vec"))
    loaded = models.Doc2Vec.load(str(tmp_path / "doc2vec"))
    assert type(loaded.wv) is type(saved.wv)
    assert loaded.dv.most_similar(0, topn=1) == saved.dv.most_similar(0, topn=1)
    for copied in (pickle.loads(pickle.dumps(saved)), copy.deepcopy(saved)):
        assert (type(copied), type(copied.wv)) == (type(saved), type(saved.wv))
        assert (copied.dv.vectors == saved.dv.vectors).all()
        assert copied.infer_vector(TEXTS[0]).shape == (8,)
    assert copy.copy(saved.wv).vectors is saved.wv.vectors
    assert b"w2v" not in (tmp_path / "doc2vec").read_bytes()
    assert models.Word2Vec.load(tmp_path / "doc2vec").wv["graph"].tolist() == saved.wv["graph"].tolist()
    assert len(importlib.import_module("gensim.similarities.annoy").AnnoyIndexer(saved, 2).labels) == 9
