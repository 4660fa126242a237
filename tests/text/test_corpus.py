"""Reading text from every kind of source, and the errors for sources that cannot be read."""

import bz2
import glob
import gzip
import hashlib
import io
import lzma
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import w2v
from w2v._errors import W2VError, install_command
from w2v._text import corpus
from w2v._text._text import PADDING
from w2v._text.corpus import Corpus
from w2v._text.paths import looks_like_path

COMPRESS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": zstandard.compress,
}
compressions = pytest.mark.parametrize("compression", COMPRESS)
compressed_only = pytest.mark.parametrize("compression", [name for name in COMPRESS if name != "plain"])


def text(source: Any, **options: Any) -> bytes:
    blocks = list((source if isinstance(source, Corpus) else Corpus(source)).blocks(**options))
    assert all(block.text.endswith(PADDING) for block in blocks)
    return b"".join(block.text.removesuffix(PADDING) for block in blocks)


def with_final_newline(content: bytes) -> bytes:
    """Return the content of a file as the reader yields it, with a newline at the end."""
    return content if content[-1:] in (b"", b"\n") else content + b"\n"


def assert_refused(source: Any, message: str, **options: Any) -> None:
    with pytest.raises(W2VError, match=message):
        text(source, **options)


@compressions
@pytest.mark.parametrize("size", [0, 1, 1000, 1_200_000])
def test_compression_is_recognised_by_content(tmp_path: Path, compression: str, size: int) -> None:
    content = np.random.default_rng(1).bytes(size).replace(b"\n", b" ")
    (tmp_path / "file.txt").write_bytes(COMPRESS[compression](content))
    assert text(tmp_path / "file.txt") == with_final_newline(content)


@compressed_only
def test_concatenated_and_padded_streams_are_decompressed(tmp_path: Path, compression: str) -> None:
    pack = COMPRESS[compression]
    content = pack(b"one two") + pack(b"") + bytes(8) + pack(b" three " * 100_000) + bytes(5000)
    (tmp_path / "file").write_bytes(content)
    assert text(tmp_path / "file") == b"one two" + b" three " * 100_000 + b"\n"


@compressed_only
def test_truncated_or_damaged_streams_are_refused(tmp_path: Path, compression: str) -> None:
    letters = np.random.default_rng(1).integers(ord("a"), ord("z") + 1, 20_000, np.uint8).tobytes()
    long, content = (COMPRESS[compression](data) for data in (letters, b"some words " * 1000))
    flipped = bytes(byte ^ 255 for byte in content[len(content) // 2 :])
    damaged, truncated = f"damaged {compression} data: ", f"the {compression} data is truncated"
    for data, message in [
        *((long[:size], truncated) for size in (12, len(long) // 2, len(long) - 1)),
        (content + b"this is not a stream", damaged),
        (content[: len(content) // 2] + flipped, f"({damaged}|{truncated})"),
    ]:
        (tmp_path / "file").write_bytes(data)
        assert_refused(tmp_path / "file", f"file: {message}")


@compressed_only
def test_highly_compressed_text_is_read_in_small_blocks(tmp_path: Path, compression: str) -> None:
    (tmp_path / "file").write_bytes(COMPRESS[compression](b"many many words\n" * 150_000))
    assert max(len(block.text) for block in Corpus(tmp_path / "file").blocks()) < 3 * corpus.BLOCK_BYTES


def test_zstandard_files_without_the_package_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(zstandard.compress(b"a"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert_refused(tmp_path / "file", re.escape(install_command("zstd")))


@compressions
def test_a_byte_order_mark_is_removed(tmp_path: Path, compression: str) -> None:
    (tmp_path / "file").write_bytes(COMPRESS[compression]("\ufeffword\ufeff".encode()))
    assert text(tmp_path / "file") == "word\ufeff\n".encode()
    assert next(Corpus(tmp_path / "file").blocks()).locate(0)[1] == 3


WIDE = "file is UTF-16 or UTF-32: add --encoding utf-16"


@pytest.mark.parametrize(
    ("head", "message"),
    [
        *(("\ufeffword".encode(f"utf-{kind}"), WIDE) for kind in ("16-le", "16-be", "32-le", "32-be")),
        *(("plain words\n".encode(f"utf-{kind}"), WIDE) for kind in ("16-le", "16-be")),
        (b"PK\x03\x04", "file is a zip archive: unpack it and give the text file in it"),
        *(
            (b"PK\x03\x04" + bytes(26) + name, "file is an office document: save it as plain text in UTF-8, or a sp")
            for name in (b"[Content_Types].xml", b"word/styles.xml", b"mimetypeapplication/vnd.oasis.opendocument.text")
        ),
        (b"7z\xbc\xaf\x27\x1c", "file is an archive"),
        (bytes(257) + b"ustar", "file is an archive"),
        (b"%PDF-1.7\n", "file is a formatted document: save it as plain text"),
        (b"{\\rtf1 words", "file is a formatted document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "file is a formatted document"),
        (b"\x7fELF", "file is binary, not text"),
        (b"\x89PNG\r\n", "file is binary, not text"),
        (b"\xff\xd8\xff", "file is binary, not text"),
        *((data, "file is binary, not text") for data in (b"SQLite format 3\0", b"\xba\x16\x4f\x2f\x0c\0\0\0")),
        *((data, "file is binary, not text") for data in (b"\x89HDF\r\n\x1a\n", b"\x80\x04\x95", b"\x93NUMPY\1\0")),
        (gzip.compress(b"words " * 9, mtime=0), "file is compressed: unpack it first"),  # compressed twice
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_files_that_are_not_text_are_refused(
    tmp_path: Path, head: bytes, message: str, pack: Callable[[bytes], bytes]
) -> None:
    content = head + b" more words" * 100
    if message.startswith("file is compressed") and pack is bytes:
        content = gzip.compress(head)
    (tmp_path / "file").write_bytes(pack(content))
    assert_refused(tmp_path / "file", message)


def test_folders_patterns_and_lists_of_paths_are_read(tmp_path: Path) -> None:
    for name in ["b.txt", "a/z.txt", "a/b/c.txt", "a.log", ".hidden", ".git/x.txt", "d/e.txt"]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    assert text(tmp_path).split() == [b"a/b/c.txt", b"a/z.txt", b"a.log", b"b.txt", b"d/e.txt"]
    assert text(str(tmp_path / "*.txt")).split() == [b"b.txt"]
    assert text(str(tmp_path / "**" / "?.txt")).split() == [b"a/b/c.txt", b"a/z.txt", b"b.txt", b"d/e.txt"]
    assert text(str(tmp_path / "[ad]")).split() == [b"a/b/c.txt", b"a/z.txt", b"d/e.txt"]
    assert text([tmp_path / "b.txt", tmp_path / "d", tmp_path / "b.txt"]) == b"b.txt\nd/e.txt\nb.txt\n"
    (tmp_path / "[ad]").write_text("a file of that name")
    assert text(str(tmp_path / "[ad]")) == b"a file of that name\n"


def test_linked_folders_and_pipes_in_folders_are_left_out(tmp_path: Path) -> None:
    for name in ["a/b.txt", "d/e.txt"]:
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name)
    (tmp_path / "d/link").symlink_to(tmp_path / "a")
    os.mkfifo(tmp_path / "pipe")
    assert text(tmp_path).split() == [b"a/b.txt", b"d/e.txt"]


@pytest.mark.parametrize(
    "pattern", ["**", "**/", "**/*", "**/**", "./**", "[a-z]*", "a/**/../**", "**/*.txt", "{}", "{}/**", "{}/**/*.txt"]
)
def test_each_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    """Links that form cycles give each file 2 ** 40 paths."""
    monkeypatch.chdir(tmp_path)
    for name in ["a/1.txt", "a/b/2.txt", "a/b/c/3.txt"]:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    for folder in ("a", "a/b"):
        Path(folder, "x").symlink_to(".")
        Path(folder, "y").symlink_to(".")
    Path("a/other.txt").symlink_to("b/2.txt")
    Path("a/third.txt").hardlink_to("a/b/2.txt")
    Path("a/w2v-1.w2v-ids").write_text("not text")
    assert sorted(text(pattern.format(tmp_path)).split()) == [b"a/1.txt", b"a/b/2.txt", b"a/b/c/3.txt"]


def test_patterns_match_the_same_files_as_glob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ["a/1.txt", "a/b/2.txt", "a/b/c/3.log", "a[b/b/4.txt", "5.txt", ".h/6.txt", "a/.h/7.txt", "a/b/.8.txt"]:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    patterns = ["**/*.txt", "a/**/*.txt", "*/**/?.*", "**/b/*", "**/b/**/*.log", "a[[]b/**/*.txt", "**.txt", "a/**b/*"]
    for pattern in patterns:
        expected = [file for match in glob.glob(pattern, recursive=True) for file in Corpus(match).files]  # noqa: PTH207
        assert {*map(Path, Corpus(pattern).files)} == {*map(Path, expected)}, pattern


@cache
def compressed_squares(compression: str) -> bytes:
    return COMPRESS[compression](b"".join(b"%d " % (number * number) for number in range(90_000)))


@compressions
@pytest.mark.parametrize("change", ["cut", "grown", "replaced"])
def test_a_change_while_a_file_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str, change: str
) -> None:
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 1000)
    path = tmp_path / "text"
    path.write_bytes(compressed_squares(compression))
    blocks = Corpus(path).blocks()
    next(blocks)
    with path.open("r+b") as file:
        if change == "cut":
            file.truncate(path.stat().st_size // 2)
        else:
            file.seek(0, os.SEEK_END if change == "grown" else os.SEEK_SET)
            file.write(path.read_bytes()[:2000])
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    with pytest.raises(W2VError, match=r"text changed while it was read|truncated|damaged"):
        for _ in blocks:
            pass


def test_a_change_before_a_file_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a b")
    earlier = Corpus(path)
    path.write_text("a b c")
    with pytest.raises(W2VError, match=r"text changed while it was read: it had 3 bytes, and has 5 now"):
        list(earlier.blocks())


def test_missing_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused("no.txt", "^corpus file 'no.txt' does not exist$")
    hint = r"; a single string is a path: for one text, give \[text\]$"
    assert_refused("the cat sat", "'the cat sat' does not exist" + hint)
    assert_refused("king", "'king' does not exist" + hint)
    assert_refused(Path("king"), "'king' does not exist$")  # a Path is not a text
    assert_refused("", "^the path of a corpus is empty$")
    assert_refused("*.txt", r"^no file matches \*.txt$")
    Path("empty").mkdir()
    Path("empty/.hidden").write_text("x")
    assert_refused("empty", "^folder empty contains no files to read$")
    Path("file").write_text("x")
    # The second message is for Windows.
    assert_refused("file/more", "^(cannot read file/more: Not a directory|corpus file 'file/more' does not exist)$")


def test_broken_links_in_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to("nowhere")
    assert_refused(tmp_path, f"^corpus file {re.escape(repr(str(tmp_path / 'gone')))} does not exist$")


def test_unreadable_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    with monkeypatch.context() as patch:  # the superuser may read files of any mode
        patch.setattr(os, "access", lambda path, mode: False)
        assert_refused(tmp_path / "file", "^cannot read .*file: permission denied$")
    earlier = Corpus(tmp_path / "file")
    (tmp_path / "file").unlink()
    with pytest.raises(W2VError, match=r"^cannot read .*file: No such file or directory$"):
        list(earlier.blocks())


@pytest.mark.parametrize("wrong", [None, 7, b"bytes", {"a": 1}, [b"bytes"], [1]])
def test_sources_of_a_wrong_type_are_refused(wrong: Any) -> None:
    assert_refused(wrong, "(a corpus is|sentence 0 is of type)")


@compressions
def test_standard_input_is_read_and_decompressed(monkeypatch: pytest.MonkeyPatch, compression: str) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(COMPRESS[compression](b"a b\nc"))))
    assert text("-") == b"a b\nc\n"
    assert Corpus("-").sizes is None
    assert Corpus("-").total_bytes is None
    assert str(Corpus("-")) == "standard input"


def test_a_pipe_is_read_byte_by_byte(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    content = gzip.compress(b"slow words")

    def write() -> None:
        with (tmp_path / "pipe").open("wb", buffering=0) as pipe:
            for byte in content:
                pipe.write(bytes([byte]))

    writer = threading.Thread(target=write)
    writer.start()
    assert text(tmp_path / "pipe") == b"slow words\n"
    writer.join()
    assert Corpus(tmp_path / "pipe").sizes is None


def test_lists_of_tokens_become_lines() -> None:
    sentences = [["a", "b"], [], ("c\u00a0d", "\u2003", "\x1c"), iter(["e\x85"])]
    assert text(sentences) == "a b\n\nc\u00a0d \u2003 \x1c\ne\x85\n".encode()
    assert text(iter(sentences[:1])) == b"a b\n"
    assert text([["\ud800"]]) == b"\xed\xa0\x80\n"
    assert text([[b"caf\xe9".decode("utf-8", "surrogateescape")]]) == b"caf\xe9\n"
    assert Corpus(sentences).sizes is None


class Frame:
    """A table like a DataFrame, with a missing text."""

    columns = ("id", "text")

    def __getitem__(self, name: str) -> list[Any]:
        return {"id": [1, 2, 3], "text": ["the cat", None, "a dog"]}[name]


def test_texts_are_read_from_any_iterable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = ["The cat sat. On a\nmat", "", "-", "x" * 5000, "\0", "那是"]
    expected = "".join(each + "\n" for each in texts).encode()
    for source in (texts, tuple(texts), iter(texts), dict.fromkeys(texts).keys(), np.array(texts, object)):
        assert text(source) == expected
    assert text(iter(["one", "two.txt"])) == b"one\ntwo.txt\n"
    assert text(["<b>in</b>"] * 2 + ["a b"], strip_markup=True) == b"in\nin\na b\n"
    with pytest.warns(w2v.TextWarning, match="^skipped 1 missing text "):
        assert text(Frame(), column="text") == b"the cat\na dog\n"
    assert_refused(Frame(), "^a table with the columns id, text: name the column of the text with column=$")
    assert_refused(Frame(), "^the table has no column 'texts'; its columns are id, text$", column="texts")


def test_pandas_tables_and_series_are_read() -> None:
    frame = pandas.DataFrame({"id": range(4), "text": ["the cat", None, float("nan"), "a dog"]})
    for source, column in ((frame, "text"), (frame["text"], None), (frame["text"].astype("string"), None)):
        with pytest.warns(w2v.TextWarning, match="^skipped 2 missing texts "):
            assert text(source, column=column) == b"the cat\na dog\n"


@pytest.mark.parametrize("chunks", [1, 2])
def test_pyarrow_arrays_are_read_like_a_series(chunks: int) -> None:
    array = pyarrow.array(["the cat", None, "a\ndog"])
    array = array if chunks == 1 else pyarrow.chunked_array([array[:2], array[2:]])
    for source, column in ((array, None), (array.dictionary_encode(), None), (pyarrow.table({"t": array}), "t")):
        with pytest.warns(w2v.TextWarning, match="^skipped 1 missing text "):
            assert text(source, column=column) == b"the cat\na\ndog\n"


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pandas.NA, pandas.NaT], ids=repr)
def test_missing_texts_are_counted(missing: Any) -> None:
    for source, line in ((["a b", missing, "c"], b"c"), ([["a", "b"], missing, ["c"]], b"c"), ([missing, "a b"], b"")):
        read = Corpus(source)
        with pytest.warns(w2v.TextWarning, match=r"^skipped 1 missing text \(None, NaN, or an empty field of CSV\)$"):
            assert text(read) == b"a b\n" + line + b"\n" * bool(line)
        with pytest.warns(w2v.TextWarning, match=r"^gave zeros to 1 missing text "):
            lines = text(read, as_lines=True, action="gave zeros to").split(b"\n")
        assert lines.count(b"") == 2  # the other one is after the last newline
        assert read.missing == 1


@pytest.mark.parametrize(
    "strings", [["good", "bad"], ["国王统治这片土地。"], ["one.", "two.txt"], ["and/or", "either or"]]
)
def test_short_texts_are_not_taken_for_paths(strings: list[str]) -> None:
    assert text(strings) == "".join(f"{string}\n" for string in strings).encode()


@pytest.mark.parametrize("strings", [["one.txt"], ["data/one", "two.txt"], ["my text.txt"], ["./there", "here.txt.gz"]])
def test_a_list_of_strings_is_read_as_texts_even_if_files_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strings: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").write_text("a file")
    with pytest.warns(w2v.TextWarning) as caught:
        assert text(strings) == "".join(f"{string}\n" for string in strings).encode()
    (warning,) = caught
    assert str(warning.message) == (
        f"the strings of this list look like paths, such as {strings[0]!r}, but are read as texts: for files, give a "
        "list of pathlib.Path"
    )
    assert text([*strings, "the king rules"]).endswith(b"the king rules\n")  # no warning: only some look like paths


def test_a_list_of_paths_is_read_as_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").write_text("a file")
    assert text([Path("there")]) == text((Path("there"),)) == b"a file\n"
    assert_refused([Path("there"), Path("the cat")], "^corpus file 'the cat' does not exist$")
    assert_refused(
        [Path("there"), "a b"], "^item 1 of a list of paths is 'a b', of type str: give pathlib.Path objects only, or"
    )
    assert_refused(["there", Path("there")], "^item 0 of a list of paths is 'there', of type str")


# Strings that cannot be the path of a file, or of a readable file.
IMPOSSIBLE = {
    "long": "x" * 300,
    "longer": "d/" * 3000,
    "zero": "a\0b",
    "surrogate": "\ud800",
    "loop": "loop/x",
    "in a file": "file/x",
}
READERS = {
    "train": lambda path, _: w2v.train(path),
    "paths": lambda path, _: w2v.train([Path(path)]),
    "cache": lambda path, _: w2v.train([["a"]], cache=path),
    "checkpoint": lambda path, _: w2v.train([["a"]], checkpoint=path),
    "continue": lambda path, _: w2v.train([["a"]], continue_from=path),
    "phrases": lambda path, _: w2v.train([["a"]], phrases=path),
    "tree": lambda path, _: w2v.train([["a", "b"]] * 9, loss="hs", tree=path),
    "resume": lambda path, _: w2v.resume(path),
    "tune": lambda path, _: w2v.tune([["a", "b"]] * 900, state=path, pairs=["pairs"]),
    "load": lambda path, _: w2v.load(path),
    "mmap": lambda path, _: w2v.load(path, mmap=True),
    "model": lambda path, _: w2v.Model.load(path),
    "native": lambda path, vectors: vectors.save(path + ".safetensors"),
    "vocabulary": lambda path, _: w2v.Vocabulary.load(path),
    "phrase file": lambda path, _: w2v.Phrases.load(path),
    "questions": lambda path, vectors: w2v.analogies(vectors, path),
    "pairs": lambda path, vectors: w2v.word_pairs(vectors, path),
}


@pytest.mark.parametrize("path", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_impossible_paths_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, reader: Callable[[str, w2v.KeyedVectors], object]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    Path("file").write_text("x")
    with pytest.raises(W2VError) as caught:
        reader(path, w2v.KeyedVectors(["a"], [[1]]))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([["a"], "the cat"], r"^sentence 1 is of type str: give a list of tokens, such as text.split\(\)$"),
        ([["a"], 7], r"^sentence 1 is of type int: give a list of items for each session$"),
        (["the cat", ["a"]], "^text 1 is of type list: give str$"),
        (iter(["the cat", 5]), "^text 1 is of type int: give str$"),
        (iter([Path("a")]), r"^paths are accepted only in a list: give list\(paths\)$"),
        ([["a"], 3], "^sentence 1 is of type int"),
        ([{"text": "a"}], "^sentence 0 is of type dict"),
    ],
)
def test_malformed_lists_of_tokens_are_refused(sentences: Any, message: str) -> None:
    assert_refused(sentences, message)


def test_errors_of_the_iterable_are_not_changed() -> None:
    def sentences() -> Iterator[list[str]]:
        yield ["a"]
        raise FileNotFoundError("mine")

    with pytest.raises(FileNotFoundError, match="mine"):
        text(sentences())


@given(st.lists(st.text("ab \n", max_size=30).map(str.encode), min_size=1, max_size=6), st.integers(1, 20))
def test_blocks_have_whole_words_and_locate_their_bytes(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], size: int
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    for i, content in enumerate(contents):
        (folder / f"{i}.txt").write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "BLOCK_BYTES", size)
        blocks = [(block, block.text.removesuffix(PADDING)) for block in Corpus(folder).blocks()]
    assert b"".join(piece for _, piece in blocks) == b"".join(map(with_final_newline, contents))
    for block, piece in blocks:
        assert piece[-1:].isspace()
        # Less than `size` bytes, the rest of a word, and one more piece, which is at most a whole file.
        assert len(piece) < size + 3 + max(map(len, b" ".join(contents).split()), default=0) + max(map(len, contents))
        for position, byte in enumerate(piece):
            name, offset = block.locate(position)
            assert (Path(name).read_bytes() + b"\n")[offset] == byte


def test_a_long_word_is_read_in_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 100)
    (tmp_path / "file").write_bytes(b"x" * 5_000_000)
    assert [len(block.text) for block in Corpus(tmp_path / "file").blocks()] == [5_000_001 + len(PADDING)]


@pytest.mark.parametrize("strip_markup", [False, True])
@pytest.mark.parametrize("letter", [b"\0", b"ACGT"])
def test_a_text_without_white_space_is_refused_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, letter: bytes, strip_markup: bool
) -> None:
    monkeypatch.setattr(corpus, "MAX_RUN_BYTES", 3 << 20)
    read = []
    pieces = Corpus._read
    monkeypatch.setattr(Corpus, "_read", lambda *args: (read.append(len(piece)) or piece for piece in pieces(*args)))
    with (tmp_path / "text").open("wb") as file:
        file.write(b"two words " + letter * (20 << 20) + b" end")
    message = r"text(, without markup)?: no white space in 3 MB from byte 10 on"
    assert_refused(tmp_path / "text", message, strip_markup=strip_markup)
    assert sum(read) < 5 << 20


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs the device of endless zeros")
def test_an_endless_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "MAX_RUN_BYTES", 3 << 20)
    assert_refused("/dev/zero", "^/dev/zero: no white space in 3 MB from byte 0 on")


def test_progress_counts_bytes_on_disk(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(gzip.compress(b"word " * 1_000_000))
    (tmp_path / "b").write_bytes(b"word " * 1_000_000)
    source = Corpus(tmp_path)
    done = [block.bytes_done for block in source.blocks()]
    assert done == sorted(done)
    assert done[-1] == source.total_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert source.sizes == [(str(tmp_path / name), (tmp_path / name).stat().st_size) for name in "ab"]
    assert str(source) == f"{tmp_path / 'a'} and 1 more"


@pytest.mark.parametrize("size", [0, 1, 4096, 5000, 1_000_000])
def test_a_checksum_covers_the_content(tmp_path: Path, size: int) -> None:
    path = tmp_path / "text"
    content = b"w" * size
    path.write_bytes(content)
    whole, samples = (Corpus(path).checksum(sampled) for sampled in (False, True))
    assert whole == Corpus(path).checksum() == hashlib.sha256(content).hexdigest()
    assert Corpus(path).checksum(sampled=True) == samples
    for position in {0, size // 2, size - 1} if size else set():
        path.write_bytes(content[:position] + b"v" + content[position + 1 :])
        assert Corpus(path).checksum() != whole, position
        assert (Corpus(path).checksum(sampled=True) == samples) == (position == 500_000), position


def test_the_checksum_of_a_part_covers_only_its_bytes(tmp_path: Path) -> None:
    lines = [b"three four\n", b"one two\n"]
    (tmp_path / "text").write_bytes(b"".join(lines))
    parts = [Corpus(tmp_path / "text").part(number, 2) for number in range(2)]
    assert [part.checksum() for part in parts] == [hashlib.sha256(line).hexdigest() for line in lines]


# -- parts ------------------------------------------------------------------------------


def parts_of(paths: Any, count: int) -> list[bytes]:
    return [text(Corpus(paths).part(number, count)) for number in range(count)]


@given(st.lists(st.text("ab \n", max_size=30).map(str.encode), min_size=1, max_size=4), st.integers(1, 7))
def test_parts_contain_every_word_once_in_order(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], count: int
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    for number, content in enumerate(contents):
        (folder / f"{number}.txt").write_bytes(content)
    paths = [folder / f"{number}.txt" for number in range(len(contents))]
    for longest in (1, 1 << 16):  # lines are divided at spaces, or not at all
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(corpus, "LONG_LINE", longest)
            parts = parts_of(paths, count)
        assert b" ".join(parts).split() == b" ".join(contents).split()
    lines = [line.split() for content in contents for line in content.split(b"\n") if line.split()]
    assert [line.split() for part in parts for line in part.split(b"\n") if line.split()] == lines


def test_parts_have_about_the_same_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one two three\n" * 1000)
    (tmp_path / "b").write_bytes(b"four\n" * 2000)
    parts = [Corpus(tmp_path).part(number, 3) for number in range(3)]
    assert [len(part.files) for part in parts] == [1, 2, 1]
    assert sum(part.total_bytes for part in parts) == 24_000
    assert all(abs(part.total_bytes - 8000) < 20 for part in parts)
    assert [len(text(part).split()) for part in parts] == [1716, 1284 + 400, 1600]


@pytest.mark.parametrize("kind", ["compressed", "columns"])
def test_a_file_that_cannot_be_divided_belongs_to_one_part(tmp_path: Path, kind: str) -> None:
    table = kind == "columns"
    for number in range(3):
        content = b"text\n" + b"%d\n" % number * 100
        (tmp_path / f"{number}.csv").write_bytes(content if table else gzip.compress(content.removeprefix(b"text")))
    parts = [Corpus(tmp_path).part(number, 2, is_table=table) for number in range(2)]
    assert [set(text(part, column="text" if table else None).split()) for part in parts] == [{b"0", b"1"}, {b"2"}]
    message = "has columns and cannot be divided among 2 ranks: give the text in more"
    if not table:
        message = "is compressed and cannot be divided among 2 ranks: unpack it"
    with pytest.raises(W2VError, match=rf"0\.csv {message}"):
        Corpus(tmp_path / "0.csv").part(0, 2, is_table=table)


def test_a_column_of_an_empty_part_is_empty(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    assert list(Corpus(tmp_path).part(0, 2, is_table=True).blocks("text")) == []


@pytest.mark.parametrize("source", ["-", [["a", "b"]]], ids=["standard input", "lists"])
def test_sources_that_can_be_read_only_once_are_not_divided(source: Any) -> None:
    with pytest.raises(W2VError, match="cannot be divided among several ranks: give files"):
        Corpus(source).part(0, 2)


def test_only_strings_that_are_short_enough_look_like_paths() -> None:
    name, longest = "a" * 255, ("a" * 31 + "/") * 128
    assert looks_like_path(f"data/{name}")
    assert not looks_like_path(f"data/{name}a")
    assert looks_like_path(longest[:4095])
    assert not looks_like_path(longest)
    assert looks_like_path("text.txt")
    assert not looks_like_path("text.t23456789x")
    assert looks_like_path("text.t23456789")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot tell whether a pipe has more bytes")
@pytest.mark.parametrize(("column", "form"), [(None, "{}\n"), ("none", "{}\n"), ("text", '{{"text": "{}"}}\n')])
def test_lines_of_a_pipe_come_before_the_next_ones(
    column: str | None, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as output:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        late = threading.Timer(60, output.close)  # the test fails rather than wait for ever
        late.start()
        blocks = Corpus("-").blocks(column, as_lines=True)
        for word in ("one", "two"):
            output.write(form.format(word).encode())
            assert next(blocks).text == f"{word}\n".encode() + PADDING
        last = form.format("four").encode()
        output.write(form.format("three").encode() + last[:2])
        assert next(blocks).text == b"three\n" + PADDING
        output.write(last[2:])
        assert next(blocks).text == b"four\n" + PADDING
        late.cancel()
        output.close()
        assert list(blocks) == []
