"""word2vec files: they are read back exactly, files of other programs are read, and damage is refused in one line."""

import bz2
import gzip
import lzma
import os
import re
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import w2v
from tests.helpers import FINITE, assert_memory_grows, assert_refused, assert_same_content, make_content, memory_of
from w2v._errors import SettingsError, W2VError
from w2v._formats import _formats, row_blocks, word2vec
from w2v._formats.registry import read, write
from w2v._formats.vector_file import VectorFile
from w2v._progress import Progress
from w2v._system.threads import NoThread
from w2v._text import decompress
from w2v._text.words import Words

# -- round trips --------------------------------------------------------------------------------


@given(numbers=st.lists(FINITE | st.floats(-2, 2, width=32), min_size=1, max_size=50))
@settings(max_examples=100)
def test_text_numbers_are_short_and_exact(numbers: list[float]) -> None:
    vectors = np.array([numbers], np.float32)
    out = np.empty(17 * len(numbers) + 2, np.uint8)
    words = Words.of(["w"])
    text = out[: _formats.text_format(vectors, words.blob, words.offsets, out)].tobytes()
    fields = text.split()[1:]
    np.testing.assert_array_equal(np.array(fields, np.float64).astype(np.float32), vectors[0])
    for field, value in zip(fields, vectors[0], strict=True):
        assert len(field) <= 16
        if 1e-4 <= abs(value) < 1e6:
            assert len(field) <= len(np.format_float_positional(value, trim="-")) + 1


digits = st.text("0123456789", min_size=1, max_size=25)
mantissas = digits | st.builds("{}.{}".format, digits, digits | st.just("")) | st.builds(".{}".format, digits)
exponents = st.just("") | st.builds("{}{}".format, st.sampled_from(["e", "E+"]), st.integers(0, 12))
exponents |= st.builds("{}-{}".format, st.sampled_from("eE"), st.integers(0, 999))
numerals = st.one_of(
    st.builds(format, st.floats(-1e38, 1e38), st.sampled_from(["", ".6f", ".5g", ".9g", "e", "+.20f"])),
    st.builds("{}{}{}".format, st.sampled_from(["", "+", "-"]), mantissas, exponents),
)


@given(texts=st.lists(numerals, min_size=1, max_size=6))
@settings(max_examples=100)
def test_numbers_are_read_as_python_reads_them(texts: list[str]) -> None:
    check_numbers(texts)


def test_every_power_of_ten_is_read_as_python_reads_it() -> None:
    """A double represents the powers up to 10^22 exactly, and whole numbers up to 2^53."""
    mantissas = ["1", "9", "-1.5", "1234567", "9007199254740991", "9007199254740993", "12345678901234567890"]
    numbers = (f"{mantissa}e{exponent}" for mantissa in mantissas for exponent in range(-60, 39))
    check_numbers([number for number in numbers if abs(float(number)) < 3e38])


def check_numbers(texts: list[str]) -> None:
    """Check that a line with these numbers is read as Python reads them."""
    vectors = np.empty((1, len(texts)), np.float32)
    line = f"w {' '.join(texts)}\n".encode()
    words, lengths = np.empty(len(line), np.uint8), np.empty(1, np.int64)
    used, wrong = _formats.text_parse(np.frombuffer(line, np.uint8), vectors, words, lengths)
    assert (used, wrong) == (1, -1)
    np.testing.assert_array_equal(vectors[0], np.array([float(text) for text in texts]).astype(np.float32))


@pytest.mark.parametrize("text", ["", "x", "1.2.3", "--1", "1e", "1e+", ".", "e5", "0x10", "1_0", "1,5", "½"])
def test_malformed_numbers_are_refused(tmp_path: Path, text: str) -> None:
    assert_refused(tmp_path / "v.txt", "row 2 .* 3 numbers", f"2 3\na 1 2 3\nb 1 {text} 3\n".encode())


@pytest.mark.parametrize("block", [16, 64, 100, 1000])  # a row has more than 30 bytes
@pytest.mark.parametrize("extension", ["bin", "txt", "vec.gz"])
def test_the_size_of_blocks_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str, block: int
) -> None:
    written = make_content(500, 7)
    write(tmp_path / f"v.{extension}", written)
    monkeypatch.setattr(row_blocks, "BLOCK_BYTES", block)
    monkeypatch.setattr(row_blocks, "HEAD_BYTES", 50)
    assert_same_content(read(tmp_path / f"v.{extension}"), written)


# -- files of other programs --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2 3\n</s> 0.1 -0.2 3 \nthe 0.12346 1e-05 -1 \n", ["</s>", "the"]),  # word2vec.c and fastText
        ("2 3\r\n</s> 0.1 -0.2 3\r\nthe 0.12346 1e-05 -1\r\n", ["</s>", "the"]),
        ("</s> 0.1 -0.2 3\nthe 0.12346 1e-05 -1\n", ["</s>", "the"]),  # GloVe, koan
        ("</s>\t0.1\t-0.2\t3\nthe\t0.12346\t1e-05\t-1", ["</s>", "the"]),
        ("\ufeff2 3\n</s> 0.1 -0.2 3\nthe  0.12346  1e-05 -1\n\n\n", ["</s>", "the"]),
        ("2 3\nnew york 0.1 -0.2 3\nroute 66 0.12346 1e-05 -1\n", ["new york", "route 66"]),
        (". . . 0.1 -0.2 3\nthe 0.12346 1e-05 -1\n", [". . .", "the"]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_text_of_other_programs_is_read(tmp_path: Path, text: str, words: list[str], packed: bool) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    vectors = np.array([[0.1, -0.2, 3], [0.12346, 1e-05, -1]], np.float32)
    assert_same_content(read(path), VectorFile(Words.of(words), vectors))


def test_the_shortest_text_without_header_is_read(tmp_path: Path) -> None:
    (tmp_path / "vectors").write_text("a 1 2")
    expected = VectorFile(Words.of(["a"]), np.array([[1, 2]], np.float32))
    assert_same_content(read(tmp_path / "vectors"), expected)


def test_binary_files_of_other_programs_are_read(tmp_path: Path) -> None:
    rows = [b"a " + struct.pack("<3f", 1, 2, 3), b"b " + struct.pack("<3f", 4, 5, 6)]
    expected = VectorFile(Words.of(["a", "b"]), np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    for data in (b"\n".join(rows), b"".join(rows), b"\n".join(rows) + b"\n", b"\n" + b"\n\n".join(rows)):
        path = tmp_path / "vectors"
        path.write_bytes(b"2 3\n" + data)
        assert_same_content(read(path), expected)


# -- damaged files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extension", "keep", "rows"), [("bin", 0.6, 5), ("bin", 0.99, 9), ("txt", 0.6, 6), ("vec.gz", 0.6, 5)]
)
def test_a_cut_file_is_refused_with_the_number_of_complete_rows(
    tmp_path: Path, extension: str, keep: float, rows: int
) -> None:
    path = tmp_path / f"v.{extension}"
    write(path, make_content(10, 30))
    data = path.read_bytes()
    assert_refused(path, f"truncated.* {rows} of 10 rows are complete", data[: int(len(data) * keep)])


@pytest.mark.parametrize("kind", ["bin", "txt"])
@pytest.mark.parametrize(
    "header",
    ["1000000000000 4", "5 1000000000000", "999999999999999999 999999999999999999", "6 4", "4 4", "5 5", "0 4", "5 0"],
)
def test_wrong_headers_are_refused_in_little_memory(tmp_path: Path, kind: str, header: str) -> None:
    write(tmp_path / f"v.{kind}", make_content(5, 4))
    body = (tmp_path / f"v.{kind}").read_bytes().split(b"\n", 1)[1]
    found = [
        (len(body), memory_of(partial(assert_refused, tmp_path / "wrong", "wrong: ", line + b"\n" + body)))
        for line in (b"6 4", header.encode())
    ]
    assert_memory_grows(*found, 0)


def test_first_row_of_a_repeated_word_can_be_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(b"4 2\ncaf\xe9 1 2\nb 3 4\ncaf\xe8 5 6\nb 7 8\n")
    for errors, word in (("replace", "caf\ufffd"), ("ignore", "caf")):
        content = read(path, errors=cast("Any", errors))
        assert (content.words.tolist(), content.vectors.tolist()) == ([word, "b"], [[1, 2], [3, 4]])
        left_out = f"2 rows left out, because an earlier row has the same word, such as {word!r} in row 3"
        assert left_out in caplog.messages[-1]


@pytest.mark.parametrize("encoding", ["cp1251", "gbk", "shift_jis"])
def test_words_in_another_encoding_are_read(tmp_path: Path, encoding: str) -> None:
    words, path = ["слово", "и"], tmp_path / "vectors"
    for rows in ((b" 1 2\n", b" 3 4\n"), (struct.pack("<c2f", b" ", 1, 2), struct.pack("<c2f", b" ", 3, 4))):
        path.write_bytes(b"2 2\n" + words[0].encode(encoding) + rows[0] + words[1].encode(encoding) + rows[1])
        vectors = w2v.load(path, encoding=encoding)
        assert (list(vectors.index_to_key), vectors.vectors.tolist()) == (words, [[1, 2], [3, 4]])
        with pytest.raises(W2VError, match=r"not valid UTF-8: w2v convert --encoding"):
            w2v.load(path)
    with pytest.raises(W2VError, match="is not ascii"):
        w2v.load(path, encoding="ascii")
    with pytest.raises(SettingsError, match="not known to Python"):
        w2v.load(path, encoding="cp999")
    w2v.KeyedVectors(["a"], np.eye(1)).save(tmp_path / "mapped.safetensors")
    with pytest.raises(SettingsError, match="the words of memory-mapped files are UTF-8: leave it out"):
        w2v.load(tmp_path / "mapped.safetensors", mmap=True, encoding=encoding)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR 1 2 3", "not a vector file"),
        (b"%PDF-1.4 hello\n", "a text, not a model"),
        (b"the quick brown fox\n" * 10, "a text, not a model"),
        (b"x" * 3_000_000, "a text, not a model"),
        (b"1 " * 3_000_000, "not a vector file"),
        (b"\n" * 1000, "a text, not a model"),
        (b"-5 300\n\0\0\0", "not a vector file"),
        (b"\x80\x03}q\x00.", "a Python pickle"),
        (gzip.compress(b"hello", mtime=0), "a text, not a model"),
        (gzip.compress(b"", mtime=0), "empty"),
        (b"\x1f\x8b\x08\x00garbage that is long enough", "damaged gzip data"),
        (gzip.compress(b"2 1\na 1\nb 2\n", mtime=0)[:-8] + b"12345678", "damaged gzip data"),
        (gzip.compress(b"a 1\nb 2\n" * 5000, mtime=0)[:-20], "truncated after "),
        (b"2 2\na 1 2\nb nan 4\n", "row 2 ('b') holds NaN"),
        (b"2 2\na 1 -Infinity\nb 3 4\n", "row 1 ('a') holds NaN"),
        (b"2 2\na 1 2\nb 3 1e39\n", "row 2 ('b') holds NaN"),
        (b"2 2\na 1 2\na 3 4\n", "'a' appears twice, in rows 1 and 2: to keep the first row of each word, give --err"),
        (b"2 2\na 1 2\n\xff 3 4\n", '(errors=) "replace"'),
        (b"2 1\n\xc3 1\n\xa9 2\n", '(errors=) "replace"'),  # a character split between two words
        (b"2 2\na 1 2\nb 3", "truncated, or its header is wrong: 1 of 2 rows"),
        (b"9 2\na 1 2\nb 3 4", "truncated, or its header is wrong: 1 of 9 rows"),  # the last number may be cut
        (b"9 2\na 1 2\nb 3 4\n", "truncated, or its header is wrong: 2 of 9 rows"),
        (b"a 1 2\nb 3", "truncated after 1 complete row"),
        (b"2 2\na 1 2\nb 3\n", "row 2 is not a word and 2 numbers"),
        (b"2 2\na 1 2\n 3 4\n", "row 2 is not a word and 2 numbers"),
        (b"\n5 5\n\v\n", "words and their counts, not a model"),
        (b"2 2\na 1 2\nb 3 4\nc 5 6\n", "declares 2 rows, but more follow"),
        (b"2 2\na 1 2 3\nb 3 4 5\n", "says 2 values per row, but the rows have 3"),
        (b"2 2\na 0,5 -1\nb 1,5 2\n", "row 1 is not a word and 2 numbers: 'a 0,5 -1' has decimal commas: replace"),
        (b"a 0,5 -1,5e-3\nb 1,5 2\n", "row 1 is not a word and numbers: 'a 0,5 -1,5e-3' has decimal commas"),
        (b"2 9\na 0:0.5 7:0.25\nb 1:1\n", "has pairs of an index and a value, like a sparse vector"),
        (b"2 2\na [0.1 0.2]\nb [1 2]\n", "has brackets"),
        (b"a [0.1, 0.2]\nb [1, 2]\n", "has brackets"),
        (b"word,x,y\na,0.1,0.2\nb,1,2\n", "row 2 is not a word and numbers: 'a,0.1,0.2' has commas"),
        (b"a 0.1, 0.2, 3\nb 1, 2, 3\n", "has commas or other separators"),
        (b"2 2\na 1 2\nb 3,5 4\n", "row 2 is not a word and 2 numbers: 'b 3,5 4' has decimal commas"),
        (b"2 20\nsome words without numbers\n" + b"and more words\n" * 9, "row 1 is not a word and 20 numbers: 'some"),
        (b"2 90\n" + b"word 1 2 3 4 5 6 7 8 9\n" * 9, "says 90 values per row, but the rows have 9"),
        (b"2 1\na " + struct.pack("<f", np.nan) + b"b " + struct.pack("<f", 1), "row 1 ('a') holds NaN"),
    ],
)
def test_damaged_and_foreign_files_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    assert_refused(tmp_path / "vectors", re.escape(message), data)


@pytest.mark.parametrize("extension", ["txt.gz", "bin.gz"])
@pytest.mark.parametrize("ratio", [0, 500])
def test_compressed_zeros_are_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str, ratio: int
) -> None:
    """A header that says more than can be expected of the size of the file is checked before it is trusted."""
    path = tmp_path / f"v.{extension}"
    write(path, VectorFile(Words.of(map(str, range(40))), np.zeros((40, 20_000), np.float32)))
    assert 100 * path.stat().st_size < 40 * 20_000 * 2
    monkeypatch.setattr(decompress, "MAX_UNPACKED_BYTES", 0)  # only the ratio counts, as for larger files
    monkeypatch.setattr(decompress, "MAX_RATIO", ratio)
    back = read(path)
    assert back.vectors.shape == (40, 20_000)
    assert not back.vectors.any()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
@pytest.mark.parametrize("extension", ["bin", "txt"])
def test_every_compression_is_read(tmp_path: Path, extension: str, pack: Callable[[bytes], bytes]) -> None:
    written = make_content(500, 30)
    path = tmp_path / f"v.{extension}"
    write(path, written)
    packed = pack(path.read_bytes())
    (tmp_path / "packed").write_bytes(packed)
    assert_same_content(read(tmp_path / "packed"), written)
    assert_refused(tmp_path / "packed", "truncated", packed[:-30])


def test_unreadable_paths_are_named(tmp_path: Path) -> None:
    with pytest.raises(W2VError, match=r"cannot read .*none\.bin: No such file"):
        read(tmp_path / "none.bin")
    with pytest.raises(W2VError, match="folder"):
        read(tmp_path)
    with pytest.raises(OSError, match=r"x{300}") as too_long:
        Path("x" * 300).read_bytes()
    with pytest.raises(W2VError, match=f"cannot read x+: {os.strerror(too_long.value.errno)}"):
        read("x" * 300)
    with pytest.raises(W2VError, match="device"):
        read(os.devnull)
    write(tmp_path / "v.bin", make_content(5, 4))
    with pytest.raises(W2VError, match="w2v convert"):
        read(tmp_path / "v.bin", mmap=True)


@given(data=st.binary(max_size=300), prefix=st.sampled_from([b"", b"3 2\n", b"2 1\na ", b"a 1\n", b"\x1f\x8b\x08\0"]))
@settings(max_examples=100)
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes, prefix: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "noise"
    path.write_bytes(prefix + data)
    try:
        found = read(path)
    except W2VError:
        return
    assert np.isfinite(found.vectors).all()
    assert len(set(found.words)) == len(found.vectors)


@pytest.mark.parametrize("extension", ["bin", "vec", "txt.gz"])
def test_each_block_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str) -> None:
    def refuse(*_: object) -> None:
        raise NoThread

    path = tmp_path / f"v.{extension}"
    write(path, make_content(500, 7))
    reports: list[Progress] = []
    read(path, progress=reports.append)
    assert [report.done for report in reports] == [0, 500]
    monkeypatch.setattr(row_blocks, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(row_blocks, "HEAD_BYTES", 1000)
    monkeypatch.setattr(word2vec.Pool, "submit", refuse)  # so that this thread reads every block
    reports.clear()
    read(path, progress=reports.append)
    done = [report.done for report in reports]
    assert len(set(done)) > 10
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, 500)
