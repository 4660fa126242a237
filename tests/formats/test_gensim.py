"""gensim files of every version in its test data are read as gensim reads them, without running code."""

import gzip
import pickle
import shutil
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import w2v
from tests.helpers import assert_refused, run
from w2v._formats import fasttext, pickles, registry
from w2v._formats import gensim as ours
from w2v._formats.pickles import PickledObject
from w2v._text.subwords import Subwords
from w2v._text.words import Words
from w2v._vectors.keyed import to_keyed_vectors
from w2v.gensim.models.keyedvectors import KeyedVectors as OurVectors
from w2v.gensim.models.word2vec import Word2Vec as OurWord2Vec

gensim = pytest.importorskip("gensim")
FastText, Word2Vec, GensimVectors = gensim.models.FastText, gensim.models.Word2Vec, gensim.models.KeyedVectors
SENTENCES = [["some", "wörds", "and", "others"], ["wörds", "and", "more"]] * 9
SETTINGS: dict[str, Any] = {"vector_size": 4, "min_count": 1, "workers": 1, "epochs": 1}
SHIPPED = Path(gensim.__file__).parent / "test" / "test_data"
OLD = [
    *("w2v-lee-v0.12.0", "word2vec_3.3", "word2vec_old", "word2vec_old_sep", "model-from-gensim-3.8.0.w2v"),
    *("word2vec_pre_kv_py2", "word2vec_pre_kv_py3", "word2vec_pre_kv_py3_4", "word2vec_pre_kv_sep_py2"),
    *("word2vec_pre_kv_sep_py3_4", "old_keyedvectors_320.dat", "doc2vec_old_sep"),
]
# The files of models with negative sampling, which have output rows.
NEGATIVE = [name for name in OLD if name not in ("w2v-lee-v0.12.0", "old_keyedvectors_320.dat")]


@pytest.mark.parametrize("options", [{}, {"separately": ["vectors", "syn1neg"]}, {"sep_limit": 1}], ids=str)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["Word2Vec", "KeyedVectors", "Doc2Vec"])
def test_files_of_gensim_4_are_read(tmp_path: Path, kind: str, protocol: int, options: dict[str, Any]) -> None:
    documents = [gensim.models.doc2vec.TaggedDocument(words, [row]) for row, words in enumerate(SENTENCES)]
    model = gensim.models.Doc2Vec(documents, **SETTINGS) if kind == "Doc2Vec" else Word2Vec(SENTENCES, sg=1, **SETTINGS)
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
    np.testing.assert_array_equal(whole.views["words"].outputs, model.syn1neg)
    assert (whole.settings.model, whole.settings.vector_size) == ("skipgram" if model.sg else "cbow", 4)
    assert (whole.settings.window, whole.settings.alpha) == (model.window, model.alpha)
    w2v.train(SENTENCES, continue_from=whole, epochs=1)


def test_integer_keys_are_read(tmp_path: Path) -> None:
    model = Word2Vec([[3, 1, "a", 2] * 5] * 20, **SETTINGS)
    for saved in (model, model.wv):
        saved.save(str(tmp_path / "any"))
        kind = type(saved).__name__
        loaded = {"Word2Vec": OurWord2Vec, "KeyedVectors": OurVectors}[kind].load(tmp_path / "any")
        assert (loaded.wv if kind == "Word2Vec" else loaded).key_to_index == model.wv.key_to_index
        assert w2v.load(tmp_path / "any").index_to_key == [*map(str, model.wv.index_to_key)]
    model.wv.index_to_key[0] = (1, 2)
    model.wv.save(str(tmp_path / "any"))
    with pytest.raises(w2v.W2VError, match=r"its keys are neither words nor integers$"):
        w2v.load(tmp_path / "any")


@pytest.mark.parametrize("name", OLD)
def test_files_of_older_versions_are_read(name: str) -> None:
    found = w2v.load(SHIPPED / name)
    assert found.counts is not None
    assert (found.counts > 0).all()
    assert ("outputs" in found.tensors) == (name in NEGATIVE)
    loaders = [Word2Vec.load, GensimVectors.load]
    for load in loaders:
        try:
            theirs = load(str(SHIPPED / name))
        except (AttributeError, TypeError):  # gensim 4 no longer reads some of these
            continue
        vectors = getattr(theirs, "wv", theirs)
        assert found.index_to_key == vectors.index_to_key
        np.testing.assert_array_equal(found.vectors, vectors.vectors)
        np.testing.assert_array_equal(found.counts, vectors.expandos["count"])
        if name in NEGATIVE:
            np.testing.assert_array_equal(found.tensors["outputs"], theirs.syn1neg)
        break


class Logger:
    """A class that readers of the file do not have, like the callbacks in some published models."""


def test_objects_of_other_packages_are_ignored(tmp_path: Path) -> None:
    model = Word2Vec(SENTENCES, **SETTINGS)
    model.callbacks, model.trim_rule, model.random = [Logger()], print, np.random.default_rng(1)
    model.save(str(tmp_path / "m.model"))
    assert w2v.load(tmp_path / "m.model").index_to_key == model.wv.index_to_key


def test_training_continues_from_a_gensim_model(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Word2Vec(SENTENCES, **SETTINGS).save(str(tmp_path / "m.model"))
    (tmp_path / "text").write_text("some wörds and others and more\n" * 50)
    run("train", tmp_path / "text", "--continue", tmp_path / "m.model", "--epochs", 1, "-o", tmp_path / "n.bin")
    Word2Vec(SENTENCES, hs=1, negative=0, **SETTINGS).save(str(tmp_path / "m.model"))
    with pytest.raises(w2v.W2VError, match="give it as --init"):
        w2v.train(tmp_path / "text", continue_from=tmp_path / "m.model")
    assert "the output rows of hierarchical softmax are left out" in caplog.text


def test_missing_and_damaged_array_files_are_named(tmp_path: Path) -> None:
    for path in SHIPPED.glob("word2vec_pre_kv_sep_py3*"):
        if "py3_4" not in path.name:
            shutil.copy(path, tmp_path)
    path, array_path = tmp_path / "word2vec_pre_kv_sep_py3", tmp_path / "word2vec_pre_kv_sep_py3.syn0.npy"
    assert len(w2v.load(path)) == 9
    assert array_path in registry.detect_format(path).companion_files(path)  # so changes during reading are noticed
    content = array_path.read_bytes()
    for damage, message in (
        (content[:-1], r"syn0\.npy: truncated: an array of type float32 and shape \(9, 2\) in 71 bytes"),
        (content.replace(b"'<f4'", b"'|O8'"), r"syn0\.npy: an array of type object"),
        (content.replace(b"(9, 2)", b"(8, 2)"), r"py3: damaged: 9 words, vectors of shape \(8, 2\)"),
        (content.replace(b"(9, 2)", b"9**9**9"), r"syn0\.npy: not a NumPy array"),
        (content[:-4] + b"\0\0\xc0\x7f", r"py3: row 9 \('.*'\) holds NaN"),
        (None, r"its syn0 are in .*py3\.syn0\.npy, which is missing: keep the files together"),
    ):
        array_path.unlink()
        if damage is not None:
            array_path.write_bytes(damage)
        assert_refused(path, message)
        array_path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("phrases-3.6.0.model", "a gensim Phrases, without word vectors"),
        ("tfidf_model.tst", "a gensim TfidfModel, without word vectors"),
    ],
)
def test_other_gensim_classes_are_refused(name: str, message: str) -> None:
    assert_refused(SHIPPED / name, message)


def test_attributes_get_their_names_in_gensim_4() -> None:
    attributes = ours.read_saved(SHIPPED / "old_w2v_models" / "w2v_1.0.0.mdl").header.gensim.attributes
    assert (attributes["epochs"], attributes["vector_size"], attributes["hs"]) == (5, 4, 0)


# -- FastText -------------------------------------------------------------------------------

UNKNOWN = ["wörd", "somewhere", "zzz", "мороз"]  # words with some n-grams of SENTENCES, and with none


@pytest.mark.parametrize("options", [{}, {"separately": ["vectors_ngrams"]}, {"sep_limit": 1}], ids=str)
@pytest.mark.parametrize("protocol", [2, 5])
def test_fasttext_of_gensim_4_is_read(tmp_path: Path, protocol: int, options: dict[str, Any]) -> None:
    path, model = tmp_path / "it's.model", FastText(SENTENCES, sg=1, bucket=50, **SETTINGS)
    for saved in model, model.wv:
        saved.save(str(path), pickle_protocol=protocol, **options)
        found = w2v.load(path)
        assert found.index_to_key == model.wv.index_to_key
        np.testing.assert_allclose(found.vectors, model.wv.vectors, atol=1e-6)
        np.testing.assert_array_equal(found.counts, model.wv.expandos["count"])
        for word in UNKNOWN:
            np.testing.assert_allclose(found[word], model.wv[word], atol=1e-6)
        assert found.header.subwords == Subwords(3, 6, 50)
    model.save(str(path), pickle_protocol=protocol, **options)
    whole = w2v.Model.load(path)
    np.testing.assert_array_equal(whole.views["words"].outputs, model.syn1neg)
    np.testing.assert_array_equal(whole.views["words"].ngrams.rows, model.wv.vectors_ngrams)
    w2v.train(SENTENCES, continue_from=whole, epochs=1)


def test_fasttext_without_ngrams_is_read(tmp_path: Path) -> None:
    model = FastText(SENTENCES, max_n=0, **SETTINGS)
    model.save(str(tmp_path / "m.model"))
    found = w2v.load(tmp_path / "m.model")
    np.testing.assert_array_equal(found.vectors, model.wv.vectors)
    assert found.ngrams is None


@pytest.mark.parametrize(
    ("name", "buckets", "rows"),
    [
        ("ft_model_2.3.0", 2_000_000, 16946),  # 17,016 n-grams, but some share a bucket
        ("lee_fasttext", 1000, 1000),
        ("fasttext_old", 2_000_000, 202),
        ("fasttext_old_sep", 2_000_000, 202),
        ("ft_kv_3.6.0.model.gz", 5, 5),
        ("compatible-hash-true.model", 100, 85),
    ],
)
def test_fasttext_of_older_versions_is_read(tmp_path: Path, name: str, buckets: int, rows: int) -> None:
    path = SHIPPED / name
    if path.suffix == ".gz":
        path = tmp_path / "unpacked"
        path.write_bytes(gzip.decompress((SHIPPED / name).read_bytes()))
    found = w2v.load(path)
    assert found.counts is not None
    assert (found.counts > 0).all()
    assert found.ngrams is not None
    assert (found.ngrams.subwords, found.ngrams.rows.shape) == (Subwords(3, 6, buckets), (rows, found.vector_size))
    root = ours._Part(path, pickles.read(path))
    word_rows = (root.part("wv") if "wv" in root.values else root).matrix(*ours.WORD_ROWS)
    if word_rows is not None:  # gensim computed the vectors from these rows in the same way
        found.ngrams.compose(Words.of(found.index_to_key), word_rows)
        np.testing.assert_allclose(word_rows, found.vectors, atol=1e-6)
    if name == "lee_fasttext":
        theirs = to_keyed_vectors(fasttext.FORMAT.load(SHIPPED / "lee_fasttext.bin"))
        for word in ["rejecting", "nights"]:
            np.testing.assert_array_equal(found[word], theirs[word])
    if name.startswith("compatible"):
        np.testing.assert_array_equal(found.vectors, FastText.load(str(path)).wv.vectors)
        assert w2v.Model.load(path).settings.subwords == "3-6"


class OldObject:
    """An object of a gensim 2 or 3 class; OldPickler writes the name of that class."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


class OldVectors(OldObject):
    pass


class OldWord(OldObject):
    pass


class OldPickler(pickle._Pickler):
    """A pickler that writes these classes under their names in gensim."""

    NAMES: ClassVar = {
        OldVectors: b"cgensim.models.keyedvectors\nFastTextKeyedVectors\n",
        OldWord: b"cgensim.models.keyedvectors\nVocab\n",
    }

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if obj in self.NAMES:
            self.write(self.NAMES[obj])
            self.memoize(obj)
        else:
            super().save_global(obj, name)

    dispatch: ClassVar = {**pickle._Pickler.dispatch, type: save_global}


def old_hash(text: str) -> int:
    """Return the hash of gensim before 3.7, by its definition."""
    value = 2166136261
    for character in text:
        value = (value ^ ord(character)) * 16777619 % 2**32
    return value


def old_ngrams(word: str) -> list[str]:
    return [f"<{word}>"[at : at + 3] for at in range(len(word))]


def old_fasttext(path: Path, layout: str, words: list[str], buckets: int) -> dict[str, np.ndarray]:
    """Write a model in the layout of a version before 3.7, and return the row of each n-gram of its words."""
    ngrams = list(dict.fromkeys(ngram for word in words for ngram in old_ngrams(word)))
    index = {hashed: row for row, hashed in enumerate(dict.fromkeys(old_hash(ngram) % buckets for ngram in ngrams))}
    random = np.random.default_rng(1)
    rows = random.normal(size=(len(index), 4)).astype(np.float32)
    found = {ngram: rows[index[old_hash(ngram) % buckets]] for ngram in ngrams}
    vectors = random.normal(size=(len(words), 4)).astype(np.float32)
    vocabulary = {word: OldWord(index=row, count=9 - row) for row, word in enumerate(words)}
    model = OldVectors(index2word=words, vocab=vocabulary, min_n=3, max_n=3, bucket=buckets)
    if layout == "3.3":
        vars(model).update(vectors=vectors, vectors_ngrams=rows, hash2index=index)
    elif layout == "3.0":
        vars(model).update(
            syn0=vectors, syn0_ngrams=rows, hash2index={np.uint32(key): row for key, row in index.items()}
        )
    else:
        texts = {ngram: row for row, ngram in enumerate(ngrams)}
        vars(model).update(syn0=vectors, syn0_all=np.stack([found[ngram] for ngram in ngrams]), ngrams=texts)
    with path.open("wb") as file:
        OldPickler(file, 2).dump(model)
    return found


@pytest.mark.parametrize("layout", ["3.3", "3.0", "2"])
@pytest.mark.parametrize("buckets", [5, 2000])
def test_ngrams_under_the_old_hash_keep_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, buckets: int
) -> None:
    monkeypatch.setattr("w2v._text.subwords.NGRAMS_AT_ONCE", 20)
    words = ["übß", "bßя", "the", "𝒳大", "те"]
    rows = old_fasttext(tmp_path / "m", layout, words, buckets)
    found = w2v.load(tmp_path / "m")
    assert found.index_to_key == words
    assert found.counts.tolist() == [9, 8, 7, 6, 5]
    for word in ["übßя", "übß", "те", "𝒳大"]:
        expected = np.mean([rows[ngram] for ngram in old_ngrams(word)], axis=0)
        np.testing.assert_allclose(found.ngrams.vector(word), expected, atol=1e-6)
    found.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(w2v.load(tmp_path / "m.safetensors")["übßя"], found["übßя"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_n": None}, "damaged: the lengths and buckets of its n-grams are missing"),
        ({"max_n": 10**20}, "damaged: n-grams of up to 100,000,000,000,000,000,000 characters in 50 buckets"),
        ({"max_n": 10**60}, "damaged: the lengths and buckets of its n-grams are missing"),
        ({"max_n": 100}, "damaged: n-grams of up to 100 characters in 50 buckets"),
        ({"bucket": 1 << 31}, "damaged: n-grams of up to 6 characters in 2,147,483,648 buckets"),
        ({"bucket": -1}, "damaged: n-grams of up to 6 characters in -1 buckets"),
        ({"bucket": 51}, "its n-grams: 50 rows for 51 buckets"),
        ({"hash2index": {1: 50}}, "its n-grams: a bucket or row number is too large"),
        ({"hash2index": {50: 1}}, "its n-grams: a bucket or row number is too large"),
        ({"hash2index": {"a": 1}}, "its n-grams: a value is not an integer from 0 to"),
        ({"hash2index": {1: 1 << 40}}, "its n-grams: a value is not an integer from 0 to"),
        ({"hash2index": {1: 0, 2: 0}, "vectors_ngrams": np.ones((1, 4))}, "its n-grams: 2 buckets have only 1 rows"),
        ({"ngrams": {"a" * 100: 1}}, "its n-grams: one has 100 characters"),
        ({"ngrams": {("a",): 1}}, "its n-grams: a value of type tuple instead of text"),
        (
            {"vectors_ngrams": np.ones((50, 3))},
            "damaged: the shapes of its vectors, word rows and n-gram rows do not match",
        ),
        ({"vectors_ngrams": np.full((50, 4), np.nan)}, "holds NaN or infinite values"),
        ({"vectors_ngrams": np.ones(50)}, "damaged: a matrix of shape"),
        (
            {"vectors_vocab": np.ones((2, 4))},
            "damaged: the shapes of its vectors, word rows and n-gram rows do not match",
        ),
        ({"index_to_key": ["a" * 200_000, "b", "c", "d"]}, "word 1, of 200,000 bytes, has more than 524,288 n-grams"),
    ],
)
def test_damaged_fasttext_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    vectors = FastText(SENTENCES, bucket=50, **SETTINGS).wv
    vars(vectors).update(change)
    vectors.save(str(tmp_path / "m.kv"))
    assert_refused(tmp_path / "m.kv", message)


# -- damaged pickles ------------------------------------------------------------------------

# Values that are already pickled: the type float32, an array, and a list of one word.
DTYPE = b"cnumpy\ndtype\nU\2f4K\0K\1\x87R"
ONE = pickle.dumps(np.ones((1, 2), np.float32), 2)[2:-1]  # without the opcodes that start and end a pickle
WORD = b"]U\1aa"


def kv(**attributes: bytes) -> bytes:
    """Return a pickle of KeyedVectors with attributes that are already pickled."""
    pairs = b"".join(b"U%c%s%s" % (len(name), name.encode(), value) for name, value in attributes.items())
    return b"\x80\x02cgensim.models.keyedvectors\nKeyedVectors\n)\x81}(" + pairs + b"ub."


def array_part(
    dtype: bytes = DTYPE, shape: bytes = b"K\1K\2\x86", order: bytes = b"U\1C", content: bytes = b"U\x08abcdefgh"
) -> bytes:
    """Return the part of a pickle that is an array. The arguments are already pickled."""
    return b"cnumpy._core.numeric\n_frombuffer\n(" + content + dtype + shape + order + b"tR"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (kv(index_to_key=WORD, vectors=b")"), "not an array"),
        (kv(index_to_key=WORD, vectors=array_part(dtype=b"cnumpy\ndtype\n)\x85R")), "a value of type tuple instead"),
        *(
            (kv(index_to_key=WORD, vectors=array_part(dtype=dtype)), f"damaged: not an array of numbers: {message}")
            for dtype, message in (
                (b"U\2f4", "not a type"),
                (b"ccollections\nOrderedDict\n)R", "not a type"),
                (b"cnumpy\ndtype\nU\2O8K\0K\1\x87R", "type 'O8'"),
                (b"cnumpy\ndtype\nU\2c8K\0K\1\x87R", "type 'c8'"),
            )
        ),
        (kv(index_to_key=WORD, vectors=array_part(shape=b"N")), "a shape that is not a tuple of lengths"),
        (kv(index_to_key=WORD, vectors=array_part(shape=b"\x8a\x10" + b"\x7f" * 16 + b"K\1\x86")), "of lengths"),
        (kv(index_to_key=b"])a", vectors=ONE), "its keys are neither words"),
        (
            kv(
                index_to_key=WORD,
                vectors=ONE,
                min_n=b"K\1",
                max_n=b"K\2",
                bucket=b"J\0\0\0\4",
                vectors_ngrams=array_part(shape=b"J\0\0\0\4K\0\x86", content=b"U\0"),
            ),
            r"a matrix of shape \(67108864, 0\)",
        ),
        (
            kv(index_to_key=b"](U\1aU\1be", vectors=ONE, vocab=b"}(NcX\nY\n)\x81}(U\5indexK\0U\5countK\1ubq\0K\0h\0u"),
            "two words have the row 0",
        ),
    ],
)
def test_damaged_attributes_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    assert_refused(tmp_path / "m.kv", message, data)


def test_a_word_without_an_entry_in_the_vocabulary_of_gensim_3_has_a_count_of_0() -> None:
    def entry(row: object, count: object) -> PickledObject:
        saved: PickledObject = PickledObject()
        saved.state = {"index": row, "count": count}
        return saved

    words = Words.of(["a", "b", "c"])
    entries = {"c": entry(2, 5), "a": entry(0, 7)}
    counts = ours._counts_of_gensim_3("m.kv", entries, words)
    assert counts is not None
    assert counts.tolist() == [7, 0, 5]
    for row, count in ((0, 1), (3, 1), (-1, 1), (1, -1), (1, 1 << 63), (True, 1), (1, 1.5)):
        with pytest.raises(w2v.W2VError, match=r"^m\.kv: damaged: (two words have the row 0|a word has no valid row)"):
            ours._counts_of_gensim_3("m.kv", entries | {"b": entry(row, count)}, words)


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4"])
def test_counts_of_all_integer_types_are_read(tmp_path: Path, kind: str) -> None:
    vectors = GensimVectors(2)
    vectors.add_vectors(["a", "b"], np.eye(2, dtype=np.float32))
    vectors.expandos["count"] = np.array([100, 3], kind)
    vectors.save(str(tmp_path / "m.kv"))
    found = w2v.load(tmp_path / "m.kv")
    assert found.counts.tolist() == [100, 3]
    assert found.counts.dtype == np.int64


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f4"])
def test_vectors_of_all_float_types_are_read(tmp_path: Path, kind: str) -> None:
    vectors = GensimVectors(3)
    vectors.add_vectors(["a", "b"], np.ones((2, 3), np.float32))
    vectors.vectors = np.asfortranarray(np.array([[1, 2, 3], [4, 5, 0.5]], kind))
    vectors.save(str(tmp_path / "m.kv"))
    np.testing.assert_array_equal(w2v.load(tmp_path / "m.kv").vectors, [[1, 2, 3], [4, 5, 0.5]])


def test_ngrams_under_the_old_hash_are_read_up_to_the_limit_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = old_fasttext(tmp_path / "m", "3.3", ["wörd", "bäd"], 2000)
    # A new row counts as 48 bytes: its four values, its bucket and temporary numbers. The limit is the slack plus twice
    # the 16 bytes of each old row.
    slack = 48 * len(rows) - 2 * 16 * len(rows)
    monkeypatch.setattr(ours, "NGRAM_SLACK", slack)
    assert len(w2v.load(tmp_path / "m").ngrams.rows) == len(rows) == 7
    monkeypatch.setattr(ours, "NGRAM_SLACK", slack - 1)
    assert w2v.load(tmp_path / "m").ngrams is None
    assert "m: its n-grams are left out: with fastText's hash, they need too many rows" in caplog.text
