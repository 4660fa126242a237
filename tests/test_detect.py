"""Files of other tools are named as what they are, and what is said to convert them does."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import read_text, run
from w2v import detect
from w2v.errors import W2VError
from w2v.formats.table import detect_format
from w2v.text.corpus import Corpus
from w2v.vectors.keyed import load


def line(path: Path) -> str:
    """What is said of a file, the same by all that read vectors."""
    with pytest.raises(W2VError) as caught:
        load(path)
    for read in (lambda: load(path, mmap=True), lambda: w2v.Model.load(path), lambda: detect_format(path)):
        with pytest.raises(W2VError, match=f"^{re.escape(str(caught.value))}$"):
            read()
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert said.isprintable()
    assert len(said) < 500 + 3 * len(str(path))
    return said


def test_files_of_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    vectors = np.eye(3, dtype=np.float32)
    np.save("v.npy", vectors)
    assert ": a NumPy array, without words: write them beside it, one on each line" in line(tmp_path / "v.npy")
    for save in (np.savez, np.savez_compressed):
        save("v.npz", vectors=vectors)
        assert f": a NumPy archive: load words and vectors by numpy.load('{tmp_path}/v.npz')" in line(
            tmp_path / "v.npz"
        )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PK\x03\x04\x14\0\0\0vectors.txt", "a zip archive: unpack it and give the vector file in it"),
        ("2 3\nthe 1 2 3\nof 4 5 6\n".encode("utf-16"), "UTF-16 or UTF-32 text: convert it to UTF-8: iconv "),
        ("the 1 2 3\nof 4 5 6\n".encode("utf-16-le"), "UTF-16 or UTF-32 text: convert it to UTF-8: iconv "),
        (b"PK\x03\x04" + bytes(26) + b"word/document.xml", "an office document, without vectors"),
        (b"\x89HDF\r\n\x1a\n\0\0\0\0", "an HDF5 file: read its words and vectors, by h5py"),
        (b"\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94.", "a Python pickle, which can run any code when it is loaded"),
        (b"\x80\x02}q\0U" + b"x" * 60 + b"gensim.models.word2vec\nWord2Vec", "a Python pickle"),
    ],
)
def test_other_files(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(data)
    assert f"file: {message}" in line(tmp_path / "file")


WORDS = [f"w{number}" for number in range(40)]
VECTORS = w2v.KeyedVectors(WORDS, np.linspace(-1, 1, 40 * 30).reshape(40, 30))
# The files of each kind.
MAKE: dict[str, dict[str, Callable[[Path], object]]] = {
    "model": {
        "m.bin": VECTORS.save,
        "m.vec": VECTORS.save,
        "m.safetensors": VECTORS.save,
        "m.glove.txt": VECTORS.save,
    },
    "questions": {"q.txt": lambda path: path.write_text(": some\n" + 20 * "a b c d\n")},
    "pairs": {
        "p.txt": lambda path: path.write_text("# pairs\n" + 20 * "a b 0.5\n"),
        "p.tsv": lambda path: path.write_text("word\tother\tscore\n" + 20 * "a\tb\t7\n"),
    },
    "vocabulary": {"v.txt": lambda path: w2v.Vocabulary(WORDS, range(40, 0, -1)).save(path, 3)},
    "ids": {"ids": lambda path: cached(path)},
    "text": {"t.txt": lambda path: path.write_text("w1 w2 w3\nw4 w5\n" * 20)},
}
# What reads them, and the kind that it wants.
READ: dict[str, Callable[[Path], object]] = {
    "model": load,
    "questions": lambda path: w2v.analogies(VECTORS, path),
    "pairs": lambda path: w2v.word_pairs(VECTORS, path),
    "vocabulary": w2v.Vocabulary.load,
    "text": lambda path: list(Corpus(path).blocks()),
}


def cached(path: Path) -> None:
    (path.parent / "text").write_text("a b c\n" * 9)
    read_text(Corpus(path.parent / "text"), cache=path.parent / "cache").close()
    next((path.parent / "cache").iterdir()).rename(path)


@pytest.mark.parametrize("wanted", READ)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, files in MAKE.items() for name in files])
def test_files_of_another_kind(tmp_path: Path, kind: str, name: str, wanted: str) -> None:
    MAKE[kind][name](tmp_path / name)
    if kind == wanted:
        READ[wanted](tmp_path / name)
    elif kind == "text" and wanted != "model":
        with pytest.raises(W2VError, match=r"no questions|no pairs|is not a word and its count"):
            READ[wanted](tmp_path / name)
    else:
        (holds, use), wants = detect._KINDS[kind], detect._KINDS[wanted][0]
        with pytest.raises(W2VError, match=f"^{re.escape(f'{tmp_path / name}: {holds}, not {wants}: {use}')}$"):
            READ[wanted](tmp_path / name)


@pytest.mark.parametrize(
    "content",
    [
        *("a 3\n", "a b 1\n", ": a\nb c d e\n", "page 8\nline 7\n", "5 2\n1 2 3\n"),  # too short to be anything else
        "".join(f"{n} {n * 7 % 9} {n * 5 % 9}\n" for n in range(40)),  # walks on a graph
        "".join(f"{n % 7} {40 - n}\n" for n in range(40)),
        ": one\n" + 20 * "a b c d e\n",  # not four words, as questions have
    ],
)
def test_what_is_a_text(tmp_path: Path, content: str) -> None:
    (tmp_path / "text").write_text(content)
    assert b"".join(block.text for block in Corpus(tmp_path / "text").blocks()).strip() == content.strip().encode()


def test_nobody_is_told_to_replace_bytes_of_a_binary_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"words \0 and\xff\n")
    with pytest.raises(W2VError, match=r"in b'and\\xff', is not UTF-8; it is binary, not text$"):
        read_text(Corpus(tmp_path / "file"))
    (tmp_path / "file").write_bytes(b"1 1\n\0\xff 1234")
    with pytest.raises(W2VError, match=r"is not valid UTF-8: the file is damaged or not a model$"):
        load(tmp_path / "file")


def test_the_command_says_which_argument_is_which(tmp_path: Path) -> None:
    for files in MAKE.values():
        for name, make in files.items():
            make(tmp_path / name)
    model, pairs, questions, text = (tmp_path / name for name in ("m.bin", "p.txt", "q.txt", "t.txt"))
    for arguments, said in (
        (["train", model], "m.bin: a model, not a text: give it to"),
        (["similarity", pairs, model], "p.txt: scored word pairs, not a model: give"),
        (["analogy", questions, model], "q.txt: analogy questions, not a model: give"),
        (["analogy", model, pairs], "p.txt: scored word pairs, not analogy questions"),
        (["perplexity", text, model], "t.txt: a text, not a model: w2v train CORPUS learns"),
        (["train", text, "--read-vocab", model, "-o", tmp_path / "n.bin"], "m.bin: a model, not words and their count"),
    ):
        assert said in run(*arguments, code=1).stderr
