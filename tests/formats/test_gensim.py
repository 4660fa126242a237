"""gensim's own files: read as gensim reads them, those of every version that it ships, and without running code."""

import shutil
from pathlib import Path
from typing import Any

import gensim
import numpy as np
import pytest
from gensim.models import Doc2Vec, Word2Vec
from gensim.models import KeyedVectors as GensimVectors
from gensim.models.doc2vec import TaggedDocument

import w2v
from tests.helpers import assert_refused, run
from w2v.formats import gensim as ours
from w2v.formats import table
from w2v.gensim.models.keyedvectors import KeyedVectors as OurVectors
from w2v.gensim.models.word2vec import Word2Vec as OurWord2Vec

SENTENCES = [["some", "wörds", "and", "others"], ["wörds", "and", "more"]] * 9
SETTINGS: dict[str, Any] = {"vector_size": 4, "min_count": 1, "workers": 1, "epochs": 1}
SHIPPED = Path(gensim.__file__).parent / "test" / "test_data"
OLD = [
    *("w2v-lee-v0.12.0", "word2vec_3.3", "word2vec_old", "word2vec_old_sep", "model-from-gensim-3.8.0.w2v"),
    *("word2vec_pre_kv_py2", "word2vec_pre_kv_py3", "word2vec_pre_kv_py3_4", "word2vec_pre_kv_sep_py2"),
    *("word2vec_pre_kv_sep_py3_4", "old_keyedvectors_320.dat", "doc2vec_old_sep"),
]
NEGATIVE = [name for name in OLD if name not in ("w2v-lee-v0.12.0", "old_keyedvectors_320.dat")]


@pytest.mark.parametrize("options", [{}, {"separately": ["vectors", "syn1neg"]}, {"sep_limit": 1}], ids=str)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["Word2Vec", "KeyedVectors", "Doc2Vec"])
def test_files_of_gensim_4(tmp_path: Path, kind: str, protocol: int, options: dict[str, Any]) -> None:
    documents = [TaggedDocument(words, [row]) for row, words in enumerate(SENTENCES)]
    model = Doc2Vec(documents, **SETTINGS) if kind == "Doc2Vec" else Word2Vec(SENTENCES, sg=1, **SETTINGS)
    saved = model.wv if kind == "KeyedVectors" else model
    saved.save(str(tmp_path / "it's.kv"), pickle_protocol=protocol, **options)
    found = w2v.load(tmp_path / "it's.kv")
    assert found.index_to_key == model.wv.index_to_key
    np.testing.assert_array_equal(found.vectors, model.wv.vectors)
    assert found.counts is not None
    np.testing.assert_array_equal(found.counts, model.wv.expandos["count"])
    assert w2v.load(tmp_path / "it's.kv", limit=2).index_to_key == model.wv.index_to_key[:2]
    if kind == "KeyedVectors":
        return
    whole = w2v.Model.load(tmp_path / "it's.kv")
    np.testing.assert_array_equal(whole.outputs, model.syn1neg)
    assert (whole.settings.model, whole.settings.vector_size) == ("skipgram" if model.sg else "cbow", 4)
    assert (whole.settings.window, whole.settings.alpha) == (model.window, model.alpha)
    w2v.train(SENTENCES, continue_from=whole, epochs=1)


def test_keys_that_are_numbers(tmp_path: Path) -> None:
    model = Word2Vec([[3, 1, "a", 2] * 5] * 20, **SETTINGS)
    for saved in (model, model.wv):
        saved.save(str(tmp_path / "any"))
        kind = type(saved).__name__
        loaded = {"Word2Vec": OurWord2Vec, "KeyedVectors": OurVectors}[kind].load(tmp_path / "any")
        assert (loaded.wv if kind == "Word2Vec" else loaded).key_to_index == model.wv.key_to_index
        assert w2v.load(tmp_path / "any").index_to_key == [*map(str, model.wv.index_to_key)]
    model.wv.index_to_key[0] = (1, 2)
    model.wv.save(str(tmp_path / "any"))
    with pytest.raises(w2v.W2VError, match=r"its keys are neither words nor whole numbers$"):
        w2v.load(tmp_path / "any")


@pytest.mark.parametrize("name", OLD)
def test_files_of_older_versions(name: str) -> None:
    found = w2v.load(SHIPPED / name)
    assert found.counts is not None
    assert (found.counts > 0).all()
    assert ("outputs" in found.tensors) == (name in NEGATIVE)
    loaders = [Word2Vec.load, GensimVectors.load]
    for load in loaders:
        try:
            theirs = load(str(SHIPPED / name))
        except (AttributeError, TypeError):  # gensim 4 reads no more all of these
            continue
        vectors = getattr(theirs, "wv", theirs)
        assert found.index_to_key == vectors.index_to_key
        np.testing.assert_array_equal(found.vectors, vectors.vectors)
        np.testing.assert_array_equal(found.counts, vectors.expandos["count"])
        if name in NEGATIVE:
            np.testing.assert_array_equal(found.tensors["outputs"], theirs.syn1neg)
        break


class Logger:
    """As the callbacks of some published models: of a class that whoever reads them lacks."""


def test_objects_of_other_packages_come_to_no_harm(tmp_path: Path) -> None:
    model = Word2Vec(SENTENCES, **SETTINGS)
    model.callbacks, model.trim_rule, model.random = [Logger()], print, np.random.default_rng(1)
    model.save(str(tmp_path / "m.model"))
    assert w2v.load(tmp_path / "m.model").index_to_key == model.wv.index_to_key


def test_the_command_continues_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Word2Vec(SENTENCES, **SETTINGS).save(str(tmp_path / "m.model"))
    (tmp_path / "text").write_text("some wörds and others and more\n" * 50)
    run("train", tmp_path / "text", "--continue", tmp_path / "m.model", "--epochs", 1, "-o", tmp_path / "n.bin")
    Word2Vec(SENTENCES, hs=1, negative=0, **SETTINGS).save(str(tmp_path / "m.model"))
    with pytest.raises(w2v.W2VError, match="give it as --init"):
        w2v.train(tmp_path / "text", continue_from=tmp_path / "m.model")
    assert "the output rows of hierarchical softmax are left out" in caplog.text


def test_the_command_converts_them(tmp_path: Path) -> None:
    path = SHIPPED / "word2vec_old_sep"
    assert "gensim" in run("info", path).stdout
    run("convert", path, tmp_path / "m.safetensors")
    model = w2v.Model.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(model.outputs, w2v.load(path).tensors["outputs"])


def test_files_that_are_not_there_or_damaged(tmp_path: Path) -> None:
    for path in SHIPPED.glob("word2vec_pre_kv_sep_py3*"):
        if "py3_4" not in path.name:
            shutil.copy(path, tmp_path)
    path, beside = tmp_path / "word2vec_pre_kv_sep_py3", tmp_path / "word2vec_pre_kv_sep_py3.syn0.npy"
    assert len(w2v.load(path)) == 9
    assert beside in table.recognised(path).other_files(path)  # whose changes are noticed while they are read
    content = beside.read_bytes()
    for damage, message in (
        (content[:-1], r"syn0\.npy: cut: an array of type float32 and shape \(9, 2\) in 71 bytes"),
        (content.replace(b"'<f4'", b"'|O8'"), r"syn0\.npy: an array of type object"),
        (content.replace(b"(9, 2)", b"(8, 2)"), r"py3: damaged: 9 words, vectors of shape \(8, 2\)"),
        (content.replace(b"(9, 2)", b"9**9**9"), r"syn0\.npy: no NumPy array"),
        (content[:-4] + b"\0\0\xc0\x7f", r"py3: row 9 \('.*'\) holds NaN"),
        (None, r"its syn0 are in .*py3\.syn0\.npy, which is not there: keep them together"),
    ):
        beside.unlink()
        if damage is not None:
            beside.write_bytes(damage)
        assert_refused(path, message)
        beside.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("phrases-3.6.0.model", "a gensim Phrases, without word vectors"),
        ("tfidf_model.tst", "refused: its pickle holds a call of functools.partial; no model of gensim does"),
    ],
)
def test_other_classes(name: str, message: str) -> None:
    assert_refused(SHIPPED / name, message)


def test_attributes_are_those_of_gensim_4() -> None:
    numbers = ours.read_saved(SHIPPED / "old_w2v_models" / "w2v_1.0.0.mdl").numbers
    assert (numbers["epochs"], numbers["vector_size"], numbers["hs"]) == (5, 4, 0)
