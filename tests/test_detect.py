"""Files of other kinds and tools are recognised, and the error says how to use or convert them."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import read_text
from w2v import _detect as detect
from w2v._errors import W2VError
from w2v._formats.registry import detect_format
from w2v._text.corpus import Corpus
from w2v._vectors.keyed import load


def error_line(path: Path) -> str:
    """Return the error about a file, after checking that all readers of vectors raise the same."""
    with pytest.raises(W2VError) as caught:
        load(path)
    for read in (lambda: load(path, mmap=True), lambda: w2v.Model.load(path), lambda: detect_format(path)):
        with pytest.raises(W2VError, match=f"^{re.escape(str(caught.value))}$"):
            read()
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message) < 500 + 3 * len(str(path))
    return message


def test_numpy_files_are_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    vectors = np.eye(3, dtype=np.float32)
    np.save("v.npy", vectors)
    assert ": a NumPy array has no words: write them, one per line, to NAME.words.txt" in error_line(tmp_path / "v.npy")
    for save in (np.savez, np.savez_compressed):
        save("v.npz", vectors=vectors)
        advice = f": a NumPy archive: load words and vectors by numpy.load({str(tmp_path / 'v.npz')!r})"
        assert advice in error_line(tmp_path / "v.npz")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PK\x03\x04\x14\0\0\0vectors.txt", "a zip archive: unpack it and give the vector file in it"),
        ("2 3\nthe 1 2 3\nof 4 5 6\n".encode("utf-16"), "UTF-16 or UTF-32 text: convert it to UTF-8: iconv "),
        ("the 1 2 3\nof 4 5 6\n".encode("utf-16-le"), "UTF-16 or UTF-32 text: convert it to UTF-8: iconv "),
        (b"PK\x03\x04" + bytes(26) + b"word/document.xml", "an office document, without vectors"),
        (b"\x89HDF\r\n\x1a\n\0\0\0\0", "an HDF5 file: read its words and vectors, for instance by h5py"),
        (b"\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94.", "a Python pickle, which can run any code when it is loaded"),
        (b"\x80\x02}q\0U" + b"x" * 60 + b"gensim.models.word2vec\nWord2Vec", "a Python pickle"),
    ],
)
def test_files_of_other_tools_are_recognised(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(data)
    assert f"file: {message}" in error_line(tmp_path / "file")


WORDS = [f"w{number}" for number in range(40)]
VECTORS = w2v.KeyedVectors(WORDS, np.linspace(-1, 1, 40 * 30).reshape(40, 30))
# For each kind, functions that write files of this kind.
WRITERS: dict[str, dict[str, Callable[[Path], object]]] = {
    "model": {"m.bin": VECTORS.save, "m.vec": VECTORS.save, "m.safetensors": VECTORS.save, "m.glove.txt": VECTORS.save},
    "questions": {"q.txt": lambda path: path.write_text(": some\n" + 20 * "a b c d\n")},
    "pairs": {
        "p.txt": lambda path: path.write_text("# pairs\n" + 20 * "a b 0.5\n"),
        "p.tsv": lambda path: path.write_text("word\tother\tscore\n" + 20 * "a\tb\t7\n"),
    },
    "vocabulary": {"v.txt": lambda path: w2v.Vocabulary(WORDS, range(40, 0, -1)).save(path, 3)},
    "ids": {"ids": lambda path: write_ids(path)},
    "text": {"t.txt": lambda path: path.write_text("w1 w2 w3\nw4 w5\n" * 20)},
}
# A reader of each kind.
READERS: dict[str, Callable[[Path], object]] = {
    "model": load,
    "questions": lambda path: w2v.analogies(VECTORS, path),
    "pairs": lambda path: w2v.word_pairs(VECTORS, path),
    "vocabulary": w2v.Vocabulary.load,
    "text": lambda path: list(Corpus(path).blocks()),
}


def write_ids(path: Path) -> None:
    (path.parent / "text").write_text("a b c\n" * 9)
    read_text(Corpus(path.parent / "text"), cache=path.parent / "cache").close()
    next((path.parent / "cache").iterdir()).rename(path)


@pytest.mark.parametrize("expected", READERS)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, files in WRITERS.items() for name in files])
def test_readers_refuse_files_of_another_kind(tmp_path: Path, kind: str, name: str, expected: str) -> None:
    WRITERS[kind][name](tmp_path / name)
    if kind == expected:
        READERS[expected](tmp_path / name)
    elif kind == "text" and expected != "model":
        with pytest.raises(W2VError, match=r"no questions|no pairs|is not a word and its count"):
            READERS[expected](tmp_path / name)
    else:
        (description, use), expected_kind = detect._KINDS[kind], detect._KINDS[expected][0]
        message = f"{tmp_path / name}: {description}, not {expected_kind}: {use}"
        with pytest.raises(W2VError, match=f"^{re.escape(message)}$"):
            READERS[expected](tmp_path / name)


@pytest.mark.parametrize(
    "content",
    [
        *("a 3\n", "a b 1\n", ": a\nb c d e\n", "page 8\nline 7\n", "5 2\n1 2 3\n"),  # too short to be a word list
        "".join(f"{n} {n * 7 % 9} {n * 5 % 9}\n" for n in range(40)),  # walks on a graph
        "".join(f"{n % 7} {40 - n}\n" for n in range(40)),
        ": one\n" + 20 * "a b c d e\n",  # five words per line, but questions have four
    ],
)
def test_texts_that_look_like_other_kinds_are_read(tmp_path: Path, content: str) -> None:
    (tmp_path / "text").write_text(content, newline="\n")
    assert b"".join(block.text for block in Corpus(tmp_path / "text").blocks()).strip() == content.strip().encode()


def test_errors_about_binary_files_do_not_suggest_replacing_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"words \0 and\xff\n")
    with pytest.raises(W2VError, match=r"in b'and\\xff', is not UTF-8; it is binary, not text$"):
        read_text(Corpus(tmp_path / "file"))
    (tmp_path / "file").write_bytes(b"1 1\n\0\xff 1234")
    with pytest.raises(W2VError, match=r"is not valid UTF-8: the file is damaged or not a model$"):
        load(tmp_path / "file")


MIN_LINES = 20  # of a file that is recognised where a text is expected: a shorter one may be a text


@pytest.mark.parametrize(
    ("content", "kind", "kind_of_long_file"),
    [
        ("a 3\n", "vocabulary", ""),
        ("a 9223372036854775807\n", "vocabulary", ""),
        ("a 10000000000000000000\n", "", ""),  # more digits than any count
        ("a 0\n", "", ""),
        ("a 3\na 2\n", "", ""),
        ("a 2\nb 3\n", "", ""),
        ("</s> 1\na 3\n", "vocabulary", ""),
        ("a b 1\n", "pairs", ""),
        ("a b 1\nc d word\n", "", ""),
        (20 * "a b 1\n", "pairs", "pairs"),
        (20 * "a\tb\t1\n", "pairs", "pairs"),
        (20 * "a,b,1\n", "pairs", ""),
        (20 * "a;b;1\n", "pairs", ""),
        (20 * "a\tb\tN\t1\n", "pairs", ""),  # a text in columns may look like this, too
        (20 * "a b N 1\n", "", ""),
        (20 * "new york\tb\t1\n", "", ""),
        (20 * "3\tb\t1\n", "", ""),
        ("x\ty\tscore\n" + "a\tb\t1\n", "", ""),  # half of the lines are not pairs
        ("x\ty\tscore\n" + 2 * "a\tb\t1\n", "pairs", ""),
        ("x\ty\tscore\n" + 20 * "a\tb\t1\n", "pairs", "pairs"),
        (": x\na b c d\n", "questions", ""),
        (": x\n" + 19 * "a b c d\n", "questions", "questions"),
        (": x\n: y\n", "", ""),
        ("a b c d\n: x\n", "", ""),
        ("a 0.5 1\n", "model", ""),
        ("a 0.5\n", "", ""),
        ("a 0.5 1\nb 1 2\n", "", ""),
        ("1 2\na 0.5 1\n", "model", "model"),
        ("1 2\na 0.5 1 2\n", "", ""),
        ("1 1\na 0.5\n", "model", "model"),
    ],
)
def test_kinds_are_recognised_by_the_lines(content: str, kind: str, kind_of_long_file: str) -> None:
    assert detect.kind_of(content.encode()) == kind
    assert detect.kind_of(content.encode(), MIN_LINES) == kind_of_long_file
    assert detect.kind_of(("\ufeff" + content).encode()) == kind
    if not content.startswith("1 "):  # a header of vectors is the first line
        assert detect.kind_of(("# words\n\n" + content).encode()) == kind
    assert detect.kind_of(content.encode() + b"a b trunc") == kind  # the last line of the head may be truncated


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"2 4\na 1 2 3 4\nb 5 6 7 8\n", ("text", 2, 4, 4)),
        (b"\xef\xbb\xbf2 4\na 1 2 3 4\nb 5 6 7 8\n", ("text", 2, 4, 7)),
        (b"a 1 2\nb 3 4\n", ("text", None, 2, 0)),
        (b"2 4\na 1234567890123456\nb 1\n", ("binary", 2, 4, 4)),  # these bytes of vectors look like text
        (b"1 2\na \0\0\x80\x3f\0\0\0\x40\n", ("binary", 1, 2, 4)),
    ],
)
def test_layouts_of_word2vec_files_are_recognised(content: bytes, expected: tuple[str, int | None, int, int]) -> None:
    assert detect.recognise_layout("file", content) == expected


def test_headers_with_a_wrong_number_of_values_are_refused() -> None:
    for number in 2, 3, 5:  # at least half as many as in the header
        row = " ".join(["a", *number * ["1"]])
        with pytest.raises(
            W2VError, match=f"^file: wrong header: it says 4 values per row, but the rows have {number}$"
        ):
            detect.recognise_layout("file", f"2 4\n{row}\n{row}\n".encode())
    for header in b"0 4\n", b"4 0\n":
        with pytest.raises(W2VError, match=r"^file: no vectors: its header says "):
            detect.recognise_layout("file", header + b"a 1 2 3 4\n")
