"""gensim's modules with w2v's classes, after w2v.gensim.install()."""

import importlib
import importlib.metadata
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import w2v.gensim
from w2v.gensim.installation import MODULES

TEXTS = [["human", "interface", "computer"], ["graph", "trees", "computer"], ["graph", "minors", "interface"]] * 3


def gensim_module(name: str) -> Any:
    return importlib.import_module(f"gensim.{name}")


def word2vec_package() -> str:
    """Return the package of the class that a program imports from gensim."""
    names: dict[str, Any] = {}
    exec("from gensim.models import Word2Vec", names)
    return str(names["Word2Vec"].__module__).partition(".")[0]


@pytest.fixture
def installed() -> Iterator[None]:
    pytest.importorskip("gensim")
    with w2v.gensim.install():
        yield


def run_program(program: str) -> str:
    """Run a program in a process that has imported neither gensim nor w2v.gensim. Return what it prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=1000, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


def test_without_gensim_one_line_refuses() -> None:
    program = "import sys; sys.modules['gensim'] = None; import w2v.gensim\ntry: w2v.gensim.install()\n"
    printed = run_program(f"{program}except ImportError as error: print(error)")
    assert printed.startswith("w2v.gensim.install() changes gensim, which cannot be imported: ")
    assert printed.endswith(". Install it, or import w2v.gensim instead of gensim\n")
    assert printed.count("\n") == 1


def test_names_that_we_lack_are_not_in_our_modules() -> None:
    for statement in ("from w2v.gensim import corpora", "from w2v.gensim.models import LdaModel"):
        with pytest.raises(ImportError, match="cannot import name"):
            exec(statement)


def test_install_is_undone_after_the_with_block() -> None:
    pytest.importorskip("gensim")
    gensim_module("similarities.annoy")
    own = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "gensim"}
    attributes = {name: (type(module), dict(vars(module))) for name, module in own.items()}
    finders = list(sys.meta_path)
    with w2v.gensim.install():
        assert {name: module for name, module in sys.modules.items() if name in own} == own
        assert sys.meta_path == finders
        for name in MODULES:
            ours = importlib.import_module(f"w2v.gensim.{name}")
            for key in ("Word2Vec", "FastText", "KeyedVectors", "Phrases", "Phraser", "LineSentence", "AnnoyIndexer"):
                if key in vars(ours) and (name, key) != ("models.doc2vec", "LineSentence"):
                    assert getattr(gensim_module(name), key) is vars(ours)[key]
        assert importlib.metadata.version("gensim") == importlib.import_module("gensim").__version__
    assert {name: (type(module), dict(vars(module))) for name, module in own.items()} == attributes
    for name in ("Word2Vec", "KeyedVectors"):
        assert getattr(gensim_module("models"), name).__module__ == f"gensim.models.{name.lower()}"
    assert sys.meta_path == finders


def test_calls_can_be_nested() -> None:
    pytest.importorskip("gensim")
    outer = w2v.gensim.install()
    with w2v.gensim.install():
        assert word2vec_package() == "w2v"
    assert word2vec_package() == "w2v"
    inner = w2v.gensim.install()
    outer.close()
    outer.close()  # has no effect
    assert word2vec_package() == "w2v"
    inner.close()
    assert word2vec_package() == "gensim"


def test_threads_can_install_and_import_at_once() -> None:
    pytest.importorskip("gensim")
    program = (
        "import sys, threading; sys.setswitchinterval(1e-5); found = []\n"
        "def work(number):\n"
        "    import w2v.gensim\n"
        "    with w2v.gensim.install():\n"
        "        from gensim.models import Word2Vec\n"
        "        found.append(Word2Vec.__module__)\n"
        "threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]\n"
        "import gensim; print(sorted(set(found)), gensim.models.Word2Vec.__module__, len(found))"
    )
    assert run_program(program) == "['w2v.gensim.models.word2vec'] gensim.models.word2vec 8\n"


@pytest.mark.usefixtures("installed")
def test_names_that_we_lack_are_gensims() -> None:
    names = {
        "corpora": "Dictionary",
        "models": "LdaModel",
        "models.ldamodel": "LdaModel",
        "models.coherencemodel": "CoherenceModel",
        "models.basemodel": "BaseTopicModel",
        "models._fasttext_bin": "Model",
        "models.word2vec": "Heapitem",
        "similarities": "Similarity",
        "utils": "chunkize",
    }
    for module, name in names.items():
        assert getattr(gensim_module(module), name).__module__.startswith("gensim"), module
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'gensim\.nothing'$"):
        gensim_module("nothing")
    with pytest.raises(AttributeError, match=r"module 'gensim\.models\.word2vec' has no attribute 'nothing'"):
        getattr(gensim_module("models.word2vec"), "nothing")  # noqa: B009


@pytest.mark.usefixtures("installed")
def test_star_imports_give_the_names_of_both_sides() -> None:
    names: dict[str, Any] = {}
    exec("from gensim import *; from gensim.models import *; from gensim.models.phrases import *", names)
    assert {"corpora", "models", "parsing", "word2vec", "LdaModel", "Doc2Vec"} <= names.keys()
    assert {names[name].__module__.partition(".")[0] for name in ("Word2Vec", "Phrases", "FrozenPhrases")} == {"w2v"}


@pytest.mark.usefixtures("installed")
def test_a_program_can_replace_names_of_gensim(monkeypatch: pytest.MonkeyPatch) -> None:
    models = gensim_module("models")
    monkeypatch.setattr(models, "Word2Vec", dict)
    assert models.Word2Vec is dict
    monkeypatch.undo()
    assert models.Word2Vec is w2v.gensim.models.Word2Vec
    assert isinstance(models, ModuleType)


def test_modules_of_gensim_keep_its_own_classes_and_an_import_changes_nothing() -> None:
    pytest.importorskip("gensim")
    program = (
        "import sys; before = list(sys.meta_path); import w2v.gensim\n"
        "assert sys.meta_path == before and 'gensim' not in sys.modules\n"
        "installed = w2v.gensim.install()\n"
        "from gensim.models.doc2vec import Doc2Vec; from gensim.models import Word2Vec, ldamodel\n"
        "assert Word2Vec.__module__ == 'w2v.gensim.models.word2vec' and issubclass(Doc2Vec, Word2Vec)\n"
        "installed.close(); import gensim; assert not issubclass(gensim.models.Doc2Vec, Word2Vec)\n"
        "import gensim.models.ldamodel; assert ldamodel is gensim.models.ldamodel"
    )
    run_program(program)


def train_doc2vec() -> Any:
    module = gensim_module("models.doc2vec")
    documents = [module.TaggedDocument(text, [row]) for row, text in enumerate(TEXTS)]
    return module.Doc2Vec(documents, min_count=1, vector_size=8, epochs=1)


@pytest.mark.usefixtures("installed")
def test_objects_of_gensim_work_with_ours(tmp_path: Path) -> None:
    models, corpora, similarities = (gensim_module(name) for name in ("models", "corpora", "similarities"))
    model = models.Word2Vec(TEXTS, min_count=1, vector_size=8, seed=1, workers=1)
    dictionary = corpora.Dictionary(TEXTS)
    index = similarities.WordEmbeddingSimilarityIndex(model.wv)
    matrix = similarities.SparseTermSimilarityMatrix(index, dictionary)
    bag = dictionary.doc2bow(TEXTS[0])
    assert matrix.inner_product(bag, bag, normalized=(True, True)) == pytest.approx(1, abs=1e-5)
    assert len(similarities.WmdSimilarity(TEXTS, model.wv, num_best=2)[TEXTS[0]]) == 2
    (tmp_path / "text.txt").write_text("".join(" ".join(text) + "\n" for text in TEXTS))
    own_phrases = vars(gensim_module("models.phrases"))["Phrases"]
    assert own_phrases.__module__ == "gensim.models.phrases"
    reader = gensim_module("models.word2vec").LineSentence(tmp_path / "text.txt")
    assert own_phrases(reader, min_count=1, threshold=0.1).vocab == models.Phrases(reader, min_count=1).vocab
    assert len(gensim_module("similarities.annoy").AnnoyIndexer(train_doc2vec(), 2).labels) == 9


def test_gensims_own_classes_load_their_files_meanwhile(tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    saved = train_doc2vec()
    saved.save(str(tmp_path / "doc2vec"))
    with w2v.gensim.install():
        loaded = type(saved).load(str(tmp_path / "doc2vec"))
    assert (type(loaded), type(loaded.wv)) == (type(saved), type(saved.wv))
    assert (loaded.dv.vectors == saved.dv.vectors).all()


def test_pickle_refuses_other_objects_of_gensims_classes() -> None:
    pytest.importorskip("gensim")
    phrases = gensim_module("models.phrases").Phrases(TEXTS, min_count=1)
    with w2v.gensim.install(), pytest.raises(pickle.PicklingError, match=r"gensim\.models\.phrases\.Phrases"):
        pickle.dumps(phrases)
    assert pickle.loads(pickle.dumps(phrases)).vocab == phrases.vocab
