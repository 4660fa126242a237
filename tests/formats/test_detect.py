"""Files of other tools are named as what they are, and what is said to convert them does."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import gensim
import numpy as np
import pytest
from gensim.models import Doc2Vec, FastText, Word2Vec
from gensim.models.doc2vec import TaggedDocument

import w2v
from tests.helpers import read_text
from w2v.errors import W2VError
from w2v.formats.table import content_format
from w2v.text.corpus import Corpus
from w2v.vectors.keyed import load

SENTENCES = [["some", "words", "and", "others"], ["words", "and", "more"]] * 9
SETTINGS = {"vector_size": 4, "min_count": 1, "workers": 1, "epochs": 1}


def line(path: Path) -> str:
    """What is said of a file, the same by all that read vectors."""
    with pytest.raises(W2VError) as caught:
        load(path)
    for read in (lambda: load(path, mmap=True), lambda: w2v.Model.load(path), lambda: content_format(path)):
        with pytest.raises(W2VError, match=f"^{re.escape(str(caught.value))}$"):
            read()
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert said.isprintable()
    assert len(said) < 500 + 3 * len(str(path))
    return said


def documents() -> Doc2Vec:
    return Doc2Vec([TaggedDocument(words, [row]) for row, words in enumerate(SENTENCES)], **SETTINGS)


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Word2Vec(SENTENCES, **SETTINGS), "Word2Vec"),
        (lambda: FastText(SENTENCES, bucket=9, **SETTINGS), "FastText"),
        (lambda: Word2Vec(SENTENCES, **SETTINGS).wv, "KeyedVectors"),
        (lambda: FastText(SENTENCES, bucket=9, **SETTINGS).wv, "FastTextKeyedVectors"),
        (documents, "Doc2Vec"),
    ],
)
def test_files_of_gensim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], gensim.utils.SaveLoad], name: str, protocol: int
) -> None:
    monkeypatch.chdir(tmp_path)
    model = make()
    model.save(str(tmp_path / "it's.kv"), pickle_protocol=protocol)
    said = line(tmp_path / "it's.kv")
    assert f": a gensim {name}: convert it with gensim: " in said
    exec(said.split("with gensim: ")[1], {"gensim": gensim})
    vectors = getattr(model, "wv", model)
    converted = load(Path("vectors.bin"))
    assert converted.index_to_key == vectors.index_to_key
    np.testing.assert_array_equal(converted.vectors, vectors.vectors)


def test_a_file_of_fasttext(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = FastText(SENTENCES, bucket=9, **SETTINGS)
    gensim.models.fasttext.save_facebook_model(model, "model.bin")
    assert int.from_bytes(Path("model.bin").read_bytes()[:4], "little") == 793712314
    said = line(tmp_path / "model.bin")
    assert ": a fastText model: " in said
    assert f"fasttext print-word-vectors '{tmp_path}/model.bin' < words.txt" in said
    exec(said.split("with gensim: ")[1], {"gensim": gensim})
    np.testing.assert_allclose(load(Path("vectors.bin"))["words"], model.wv["words"], atol=1e-6)


def test_files_of_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    vectors = np.eye(3, dtype=np.float32)
    np.save("v.npy", vectors)
    said = line(tmp_path / "v.npy")
    assert ": a NumPy array, without words: use w2v.KeyedVectors(" in said
    exec(said.split(": use ")[1], {"w2v": w2v, "numpy": np, "words": ["a", "b", "c"]})
    np.testing.assert_array_equal(load(Path("vectors.bin")).vectors, vectors)
    for save in (np.savez, np.savez_compressed):
        save("v.npz", vectors=vectors)
        assert f": a NumPy archive: load words and vectors by numpy.load('{tmp_path}/v.npz')" in line(
            tmp_path / "v.npz"
        )


def archive() -> bytes:
    import zipfile

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("vectors.txt", "a 1 2\nb 3 4\n")
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (archive(), "a zip archive: unpack it and give the vector file in it"),
        ("2 3\nthe 1 2 3\nof 4 5 6\n".encode("utf-16"), "UTF-16 or UTF-32 text: convert it to UTF-8: iconv "),
        ("the 1 2 3\nof 4 5 6\n".encode("utf-16-le"), "UTF-16 or UTF-32 text: convert it to UTF-8: iconv "),
        (b"\x89HDF\r\n\x1a\n\0\0\0\0", "an HDF5 file: read its words and vectors, by h5py"),
        (b"\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94.", "a Python pickle, which can run any code when it is loaded"),
        (b"\x80\x02cgensim.models.phrases\nPhrases\nq\0.", "a Python pickle"),
        (b"\x80\x02}q\0U" + b"x" * 60 + b"gensim.models.word2vec\nWord2Vec", "a Python pickle"),
    ],
)
def test_other_files(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(data)
    assert f"file: {message}" in line(tmp_path / "file")


def test_ids_of_a_text(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b c\n")
    read_text(Corpus(tmp_path / "text"), cache=tmp_path / "cache").close()
    (path,) = (tmp_path / "cache").iterdir()
    assert f"{path}: the ids of a text, a file of `w2v train --cache`" in line(path)


@pytest.mark.parametrize(
    "data", [b"\xba\x16\x4f\x2f\x0c\0\0\0", b"\x89HDF\r\n\x1a\n", b"\x80\x04\x95", b"\x93NUMPY\1\0"]
)
def test_they_are_not_text_either(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "file").write_bytes(data + b" more words" * 9)
    with pytest.raises(W2VError, match=r"file is binary, not text$"):
        list(Corpus(tmp_path / "file").blocks())
