"""w2v.gensim has gensim's public names and arguments. `make compat` also runs gensim's own tests against it."""

import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest

CLASSES = {
    "models.word2vec": ["Word2Vec", "LineSentence", "PathLineSentences", "Text8Corpus", "BrownCorpus"],
    "models.doc2vec": ["Doc2Vec", "TaggedDocument", "TaggedLineDocument", "TaggedBrownCorpus"],
    "models.keyedvectors": ["KeyedVectors"],
    "models.phrases": ["Phrases", "FrozenPhrases"],
    "models.callbacks": ["CallbackAny2Vec"],
}
PICKLES = "only needed to read gensim's pickles"
MISSING = {  # the reason why w2v.gensim lacks a name
    "CompatVocab": PICKLES,
    "Vocab": PICKLES,
    "docvecs": "gensim 3's name of dv",
    "Doctag": PICKLES,
    "Doc2VecVocab": PICKLES,
    "Doc2VecTrainables": PICKLES,
    "Word2VecVocab": PICKLES,
    "Word2VecTrainables": PICKLES,
    "Heapitem": "a node of gensim's Huffman tree while it is built",
}


def both(module: str) -> list[Any]:
    return [importlib.import_module(f"w2v.gensim.{module}"), pytest.importorskip(f"gensim.{module}")]


def parameters(function: Any) -> dict[str, tuple[Any, int]]:
    """Return the defaults and positions of a function's named parameters."""
    found = inspect.signature(function).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {each.name: (each.default, position) for position, each in enumerate(found) if each.kind not in variadic}


def assert_same_parameters(name: str, ours: Any, theirs: Any) -> None:
    """Assert that our function has all parameters of gensim's, in the same order and with the same defaults."""
    variadic = {each.kind for each in inspect.signature(theirs).parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in variadic:
        return
    found, expected = parameters(ours), parameters(theirs)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in inspect.signature(ours).parameters.values())
    if takes_any:
        expected = {name: value for name, value in expected.items() if name in found}
    assert {name: found.get(name) for name in expected} == expected, name


def public(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.startswith("_") and name not in MISSING]


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in CLASSES for name in CLASSES[module]])
def test_methods_and_arguments_match_gensim(module: str, name: str) -> None:
    ours, theirs = (getattr(one, name) for one in both(module))
    assert_same_parameters(name, ours, theirs)
    for member in public(dir(theirs)):
        assert hasattr(ours, member), f"{name}.{member}"
        # callbacks come after compute_loss in our Doc2Vec.train, which is Word2Vec.train; gensim's lacks compute_loss.
        if inspect.isroutine(getattr(theirs, member)) and (name, member) != ("Doc2Vec", "train"):
            assert_same_parameters(f"{name}.{member}", getattr(ours, member), getattr(theirs, member))


# models.callbacks is left out, because gensim's also has callbacks of topic models.
@pytest.mark.parametrize("module", sorted(CLASSES.keys() - {"models.callbacks"}))
def test_modules_have_the_functions_and_classes_of_gensim(module: str) -> None:
    ours, theirs = both(module)
    for name in public(vars(theirs)):
        if getattr(getattr(theirs, name), "__module__", None) == theirs.__name__:
            assert name in vars(ours), f"{module}.{name}"
            if inspect.isfunction(getattr(theirs, name)):
                assert_same_parameters(name, getattr(ours, name), getattr(theirs, name))


def test_arguments_of_utils_match_gensim() -> None:
    ours, theirs = both("utils")
    common = [name for name in public(vars(theirs)) if inspect.isfunction(getattr(ours, name, None))]
    assert {"any2unicode", "simple_preprocess", "simple_tokenize", "tokenize", "to_utf8"} <= set(common)
    for name in common:
        assert_same_parameters(name, getattr(ours, name), getattr(theirs, name))


def test_scripts_run_with_other_imports_and_without_gensim() -> None:
    """Scripts use `import gensim`, and then gensim.models.Word2Vec or gensim.utils.simple_preprocess."""
    program = (
        "import sys; sys.modules['gensim'] = None\n"
        "from w2v import gensim; gensim.models.word2vec.LineSentence; gensim.models.phrases.Phraser\n"
        "gensim.models.callbacks.CallbackAny2Vec; gensim.utils.simple_preprocess\n"
        "from w2v.gensim.models import Word2Vec; from w2v.gensim.models.keyedvectors import KeyedVectors\n"
        "assert gensim.__version__ >= '4' and gensim.models.word2vec.FAST_VERSION > -1\n"
        "model = gensim.models.Word2Vec(min_count=1, vector_size=2); assert type(model) is Word2Vec\n"
        "model.build_vocab(['plain', 'text']); model.wv.note = len; model.wv.save('/dev/null')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "not saved: the attribute note, which is neither an array of numbers nor JSON\n"


def test_arguments_of_fasttext_match_gensim() -> None:
    ours, theirs = both("models.fasttext")
    for name in ["FastText", "ft_ngram_hashes", "load_facebook_model", "load_facebook_vectors", "save_facebook_model"]:
        assert_same_parameters(name, getattr(ours, name), getattr(theirs, name))
    ours, theirs = (one.FastText for one in both("models.fasttext"))
    for member in public(dir(ours)):
        if inspect.isroutine(getattr(ours, member)) and hasattr(theirs, member):
            assert_same_parameters(f"FastText.{member}", getattr(ours, member), getattr(theirs, member))
