"""Vector files: what is written is read back to the bit, peers agree, damage is refused in one line."""

import bz2
import gzip
import json
import lzma
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file, save_file

from w2v.errors import SettingsError, W2VError
from w2v.formats import _formats, row_blocks
from w2v.formats.bfloat16 import bfloat16
from w2v.formats.native import read_native, write_native
from w2v.formats.table import for_writing, read, recognised, write
from w2v.formats.vector_file import VectorFile
from w2v.system import memory
from w2v.text import decompress
from w2v.text.words import Words

EXTENSIONS = ["bin", "bin.gz", "txt", "vec", "txt.gz", "safetensors"]

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
any_word = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
plain_word = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\r"), min_size=1, max_size=8)


@st.composite
def contents(draw: st.DrawFn, words: st.SearchStrategy[str]) -> VectorFile:
    vocabulary = draw(st.lists(words, min_size=1, max_size=6, unique=True))
    columns = draw(st.integers(3, 9))
    return VectorFile(Words.of(vocabulary), draw(hnp.arrays(np.float32, (len(vocabulary), columns), elements=finite)))


def sample_content(rows: int = 5, columns: int = 4) -> VectorFile:
    vectors = np.random.default_rng(1).standard_normal((rows, columns)).astype(np.float32)
    return VectorFile(Words.of([f"wörd{row}" for row in range(rows)]), vectors)


def assert_same(read_back: VectorFile, written: VectorFile) -> None:
    assert list(read_back.words) == list(written.words)
    assert read_back.vectors.dtype == np.float32
    np.testing.assert_array_equal(read_back.vectors.view(np.uint32), written.vectors.view(np.uint32))


def refused(path: Path, data: bytes, *parts: str) -> str:
    """The one line with which `data` is refused; it names the path and holds all `parts`."""
    path.write_bytes(data)
    with pytest.raises(W2VError) as caught:
        read(path)
    line = str(caught.value)
    assert "\n" not in line
    for part in (str(path), *parts):
        assert part in line
    return line


def read_or_line(path: Path, mmap: bool = False) -> VectorFile | str:
    """What the file holds, or the line with which it is refused."""
    try:
        return read(path, mmap)
    except W2VError as error:
        return str(error)


# -- what is written is read back ---------------------------------------------------------------


@pytest.mark.parametrize("extension", EXTENSIONS)
@given(content=contents(plain_word))
@settings(max_examples=40)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, extension: str, content: VectorFile) -> None:
    path = tmp_path_factory.getbasetemp() / f"round.{extension}"
    write(path, content)
    assert_same(read(path), content)


@given(content=contents(any_word))
@settings(max_examples=40)
def test_native_keeps_any_word(tmp_path_factory: pytest.TempPathFactory, content: VectorFile) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    write(path, content)
    assert_same(read(path), content)
    assert_same(read(path, mmap=True), content)


@given(numbers=st.lists(finite | st.floats(-2, 2, width=32), min_size=1, max_size=50))
@settings(max_examples=200)
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
@settings(max_examples=300)
def test_numbers_are_read_as_python_reads_them(texts: list[str]) -> None:
    vectors = np.empty((1, len(texts)), np.float32)
    line = f"w {' '.join(texts)}\n".encode()
    words, lengths = np.empty(len(line), np.uint8), np.empty(1, np.int64)
    used, wrong = _formats.text_parse(np.frombuffer(line, np.uint8), vectors, words, lengths)
    assert (used, wrong) == (1, -1)
    np.testing.assert_array_equal(vectors[0], np.array([float(text) for text in texts]).astype(np.float32))


@pytest.mark.parametrize("text", ["", "x", "1.2.3", "--1", "1e", "1e+", ".", "e5", "0x10", "1_0", "1,5", "½"])
def test_what_is_no_number_is_refused(tmp_path: Path, text: str) -> None:
    refused(tmp_path / "v.txt", f"2 3\na 1 2 3\nb 1 {text} 3\n".encode(), "row 2", "3 numbers")


@pytest.mark.parametrize("block", [64, 100, 1000])
@pytest.mark.parametrize("extension", EXTENSIONS)
def test_blocks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str, block: int) -> None:
    content = sample_content(rows=500, columns=7)
    write(tmp_path / f"v.{extension}", content)
    monkeypatch.setattr(row_blocks, "BLOCK_BYTES", block)
    monkeypatch.setattr(row_blocks, "HEAD_BYTES", 50)
    assert_same(read(tmp_path / f"v.{extension}"), content)


def test_a_row_longer_than_a_block(tmp_path: Path) -> None:
    content = VectorFile(Words.of(["v", "w" * 500_000]), np.ones((2, 600_000), np.float32))
    for extension in ("bin", "txt"):
        write(tmp_path / f"v.{extension}", content)
        assert_same(read(tmp_path / f"v.{extension}"), content)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_padded_rows_are_written_without_their_padding(tmp_path: Path, extension: str) -> None:
    padded = memory.aligned_rows(5, 4)
    padded[:] = 7
    content = sample_content()
    padded[:, :4] = content.vectors
    write(tmp_path / f"v.{extension}", VectorFile(content.words, padded[:, :4]))
    assert_same(read(tmp_path / f"v.{extension}"), content)


def test_what_only_the_native_format_keeps(tmp_path: Path) -> None:
    content = sample_content()
    outputs = np.arange(12, dtype=np.float32).reshape(3, 4)
    counts = np.array([1 << 40, 4, 3, 2, 1])
    path = tmp_path / "v.safetensors"
    write(path, VectorFile(content.words, content.vectors, counts, {"outputs": outputs}, {"settings": '{"a": 1}'}))
    for mmap in (False, True):
        back = read(path, mmap)
        np.testing.assert_array_equal(back.counts, counts)
        np.testing.assert_array_equal(back.tensors["outputs"], outputs)
        assert list(back.tensors) == ["outputs"]
        assert back.metadata["settings"] == '{"a": 1}'
        assert back.vectors.flags.writeable is not mmap


@pytest.mark.parametrize("name", ["v", "v.model", "v.bin.zip", "v.safetensors.gz", "bin"])
def test_unknown_extension(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match=r"\.safetensors"):
        write(tmp_path / name, sample_content())


@pytest.mark.parametrize("extension", ["bin", "txt"])
@pytest.mark.parametrize("word", ["", "new york", "a\tb", "a\n", "\r"])
def test_words_that_word2vec_files_cannot_hold(tmp_path: Path, extension: str, word: str) -> None:
    with pytest.raises(W2VError, match=r"white space.*\.safetensors"):
        write(tmp_path / f"v.{extension}", VectorFile(Words.of(["a", word]), np.ones((2, 2), np.float32)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("extension", ["bin", "txt", "safetensors"])
def test_content_that_could_not_be_read_back_is_not_written(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"v.{extension}"
    ones = np.ones((2, 2), np.float32)
    for words, vectors, part in [
        (["a", "b"], np.array([[1, 2], [np.nan, 1]], np.float32), "'b'"),
        (["a", "a"], ones, "twice"),
        (["a"], ones, "1 word,"),
        ([], ones[:0], "0 words"),
    ]:
        with pytest.raises(W2VError, match=part):
            write(path, VectorFile(Words.of(words), vectors))
    with pytest.raises(W2VError, match="UTF-8"):
        Words.of(["\ud800"])
    assert not path.exists()


# -- peers --------------------------------------------------------------------------------------


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
def test_text_variants(tmp_path: Path, text: str, words: list[str], packed: bool) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    vectors = np.array([[0.1, -0.2, 3], [0.12346, 1e-05, -1]], np.float32)
    assert_same(read(path), VectorFile(Words.of(words), vectors))


def test_binary_variants(tmp_path: Path) -> None:
    rows = [b"a " + struct.pack("<3f", 1, 2, 3), b"b " + struct.pack("<3f", 4, 5, 6)]
    expected = VectorFile(Words.of(["a", "b"]), np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    for data in (b"\n".join(rows), b"".join(rows), b"\n".join(rows) + b"\n", b"\n" + b"\n\n".join(rows)):
        path = tmp_path / "vectors"
        path.write_bytes(b"2 3\n" + data)
        assert_same(read(path), expected)


def test_gzip_of_several_members(tmp_path: Path) -> None:
    path = tmp_path / "v.gz"
    path.write_bytes(gzip.compress(b"2 2\na 1 2\n", mtime=0) + gzip.compress(b"b 3 4\n", mtime=0) + b"\0" * 10)
    assert list(read(path).words) == ["a", "b"]


def test_safetensors_package_reads_ours(tmp_path: Path) -> None:
    tensors = {
        "bytes": np.arange(3, dtype=np.uint8),
        "longs": np.arange(5),
        "none": np.empty((0, 3), np.float32),
        "half": np.ones((2, 2), np.float16),
        "flags": np.array([True, False, True]),
        "scalar": np.array(2.5),
    }
    path = tmp_path / "v.safetensors"
    write_native(path, tensors, {"note": "é"})
    theirs = load_file(path)
    for mmap in (False, True):
        ours, metadata = read_native(path, mmap)
        assert metadata == {"format": "w2v", "version": "1", "note": "é"}
        for name, array in tensors.items():
            np.testing.assert_array_equal(ours[name], array)
            np.testing.assert_array_equal(theirs[name], array)
            assert ours[name].dtype == array.dtype
            assert ours[name].flags.aligned


def test_we_read_the_safetensors_packages(tmp_path: Path) -> None:
    content = sample_content()
    path = tmp_path / "v.safetensors"
    tensors = {"vectors": content.vectors, "words": content.words.blob, "word_offsets": content.words.offsets}
    save_file(tensors, path, {"format": "w2v", "version": "1"})
    assert_same(read(path), content)
    assert_same(read(path, mmap=True), content)


# -- damaged files ------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, extension: str) -> None:
    content = sample_content(rows=4, columns=3)
    whole = tmp_path / f"v.{extension}"
    write(whole, content)
    data = whole.read_bytes()
    cut = tmp_path / "cut"
    for size in range(len(data)):
        cut.write_bytes(data[:size])
        back = read_or_line(cut)
        if isinstance(back, str):
            assert str(cut) in back
            assert "\n" not in back
        else:  # all that may go unnoticed: the end of the last row
            assert not extension.endswith(".gz")
            assert len(back.words) == 4
            np.testing.assert_array_equal(back.vectors[:3], content.vectors[:3])
            assert len(data) - size < 20


@pytest.mark.parametrize(
    ("extension", "keep", "rows"), [("bin", 0.6, 5), ("bin", 0.99, 9), ("txt", 0.6, 6), ("vec.gz", 0.6, 5)]
)
def test_a_cut_file_says_how_many_rows_are_whole(tmp_path: Path, extension: str, keep: float, rows: int) -> None:
    path = tmp_path / f"v.{extension}"
    write(path, sample_content(rows=10, columns=30))
    data = path.read_bytes()
    line = refused(path, data[: int(len(data) * keep)], "cut", "of 10 rows are whole")
    assert f" {rows} of 10" in line


@pytest.mark.parametrize("kind", ["bin", "txt"])
@pytest.mark.parametrize(
    "header",
    ["1000000000000 4", "5 1000000000000", "999999999999999999 999999999999999999", "6 4", "4 4", "5 5", "0 4", "5 0"],
)
def test_wrong_headers(tmp_path: Path, kind: str, header: str) -> None:
    write(tmp_path / f"v.{kind}", sample_content())
    body = (tmp_path / f"v.{kind}").read_bytes().split(b"\n", 1)[1]
    tracemalloc.start()
    refused(tmp_path / "wrong", header.encode() + b"\n" + body)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("data", "part"),
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
        (gzip.compress(b"a 1\nb 2\n" * 5000, mtime=0)[:-20], "cut after "),
        (b"2 2\na 1 2\nb nan 4\n", "row 2 ('b') holds NaN"),
        (b"2 2\na 1 -Infinity\nb 3 4\n", "row 1 ('a') holds NaN"),
        (b"2 2\na 1 2\nb 3 1e39\n", "row 2 ('b') holds NaN"),
        (b"2 2\na 1 2\na 3 4\n", "'a' appears twice, in rows 1 and 2"),
        (b"2 2\na 1 2\n\xff 3 4\n", '(errors=) "replace"'),
        (b"2 1\n\xc3 1\n\xa9 2\n", '(errors=) "replace"'),  # two halves of one character
        (b"2 2\na 1 2\nb 3", "cut, or its header is wrong: 1 of 2 rows"),
        (b"a 1 2\nb 3", "cut after 1 whole row"),
        (b"2 2\na 1 2\nb 3\n", "row 2 is not a word and 2 numbers"),
        (b"2 2\na 1 2\n 3 4\n", "row 2 is not a word and 2 numbers"),
        (b"\n5 5\n\v\n", "words and their counts, not a model"),
        (b"2 2\na 1 2\nb 3 4\nc 5 6\n", "says 2 rows, but more follow"),
        (b"2 2\na 1 2 3\nb 3 4 5\n", "says 2 values in a row, its rows have 3"),
        (b"2 1\na " + struct.pack("<f", np.nan) + b"b " + struct.pack("<f", 1), "row 1 ('a') holds NaN"),
    ],
)
def test_what_is_refused(tmp_path: Path, data: bytes, part: str) -> None:
    refused(tmp_path / "vectors", data, part)


def test_invalid_utf8_can_be_replaced_or_ignored(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(b"2 1\na\xff 1\nb\xc3 2\n")
    assert list(read(path, errors="replace").words) == ["a\ufffd", "b\ufffd"]
    assert list(read(path, errors="ignore").words) == ["a", "b"]
    path.write_bytes(b"2 1\na\xff 1\na 2\n")
    with pytest.raises(W2VError, match="twice"):
        read(path, errors="ignore")


def test_gzip_that_grows_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.txt.gz"
    path.write_bytes(gzip.compress(b"2 1000000\na" + b" 0" * 1_000_000 + b"\nb" + b" 0" * 1_000_000))
    assert not read(path).vectors.any()
    monkeypatch.setattr(decompress, "MAX_UNPACKED", 0)
    with pytest.raises(W2VError, match="its gzip data grows more than 500:1; if you trust it, unpack it yourself"):
        read(path)


@pytest.mark.parametrize("extension", ["txt.gz", "bin.gz"])
def test_zeros_that_we_pack_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str) -> None:
    path = tmp_path / f"v.{extension}"
    write(path, VectorFile(Words.of(map(str, range(40))), np.zeros((40, 100_000), np.float32)))
    assert 100 * path.stat().st_size < 40 * 100_000 * 2
    monkeypatch.setattr(decompress, "MAX_UNPACKED", 0)  # the ratio alone decides, as it does for larger files
    back = read(path)
    assert back.vectors.shape == (40, 100_000)
    assert not back.vectors.any()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
@pytest.mark.parametrize("extension", ["bin", "txt"])
def test_every_compression_is_read(tmp_path: Path, extension: str, pack: Callable[[bytes], bytes]) -> None:
    content = sample_content(rows=500, columns=30)
    path = tmp_path / f"v.{extension}"
    write(path, content)
    packed = pack(path.read_bytes())
    (tmp_path / "packed").write_bytes(packed)
    assert_same(read(tmp_path / "packed"), content)
    refused(tmp_path / "packed", packed[:-30], "cut")


def test_a_packed_native_file_is_to_be_unpacked(tmp_path: Path) -> None:
    write(tmp_path / "v.safetensors", sample_content())
    packed = gzip.compress((tmp_path / "v.safetensors").read_bytes())
    refused(tmp_path / "v.gz", packed, "a compressed .safetensors file: unpack it first")


def test_the_extension_chooses_and_the_content_tells_the_format(tmp_path: Path) -> None:
    names = [*2 * ["word2vec binary"], *3 * ["word2vec text"], "native"]
    for extension, name in zip(EXTENSIONS, names, strict=True):
        path = tmp_path / f"V.{extension.upper()}"
        assert for_writing(path).name == name
        write(path, sample_content())
        assert recognised(path).name == name
    (tmp_path / "other").write_text("the quick brown fox\n")
    with pytest.raises(W2VError, match="a text, not a model"):
        recognised(tmp_path / "other")


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(W2VError, match=r"cannot read .*none\.bin: No such file"):
        read(tmp_path / "none.bin")
    with pytest.raises(W2VError, match="folder"):
        read(tmp_path)
    with pytest.raises(W2VError, match=r"cannot read x+: File name too long"):
        read("x" * 300)
    with pytest.raises(W2VError, match="device"):
        read("/dev/null")
    write(tmp_path / "v.bin", sample_content())
    with pytest.raises(W2VError, match="w2v convert"):
        read(tmp_path / "v.bin", mmap=True)


@given(data=st.binary(max_size=300), prefix=st.sampled_from([b"", b"3 2\n", b"2 1\na ", b"a 1\n", b"\x1f\x8b\x08\0"]))
@settings(max_examples=300)
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes, prefix: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "noise"
    path.write_bytes(prefix + data)
    try:
        content = read(path)
    except W2VError:
        return
    assert np.isfinite(content.vectors).all()
    assert len(set(content.words)) == len(content.vectors)


@pytest.mark.parametrize("dtype", [np.float32, bfloat16()], ids=["float32", "bfloat16"])
@given(place=st.integers(0, 10_000), value=st.integers(0, 255))
@settings(max_examples=300)
def test_a_native_file_with_a_byte_changed(
    tmp_path_factory: pytest.TempPathFactory, dtype: np.dtype, place: int, value: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.safetensors"
    content = sample_content()
    write(path, VectorFile(content.words, content.vectors.astype(dtype)))
    data = bytearray(path.read_bytes())
    data[place % len(data)] = value
    path.write_bytes(data)
    for mmap in (False, True):
        try:
            list(read(path, mmap).words)
        except W2VError:
            continue


MINE = {"__metadata__": {"format": "w2v", "version": "1"}}


def native_bytes(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def arrays(data: bytes, *arrays: tuple[object, object, object]) -> bytes:
    """A file of arrays a, b …: (type, shape, offsets)."""
    fields = [dict(zip(("dtype", "shape", "data_offsets"), each, strict=True)) for each in arrays]
    return native_bytes(MINE | dict(zip("ab", fields, strict=False)), data)


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (native_bytes({}, length=1 << 31), "cut: a header of 2147483648 bytes"),
        (native_bytes(b"{" + b" " * (2 << 20) + b"}"), "at most"),
        (native_bytes(b"{nonsense"), "header is damaged"),
        (native_bytes(b"{" + b'"a":' + b"[" * 100_000), "header is damaged"),
        (native_bytes(b'{"a": 1, "a": 2}'), "twice"),
        (native_bytes(b"[1, 2]"), "not a vector file"),
        (native_bytes({"__metadata__": {"format": 3}}), "header is damaged"),
        (native_bytes({}), "not a w2v model"),
        (native_bytes({"__metadata__": {"format": "pt"}}), "not a w2v model"),
        (native_bytes({"__metadata__": {"format": "w2v", "version": "2"}}), "upgrade"),
        (native_bytes({"__metadata__": {"format": "w2v"}}), "version"),
        (native_bytes(MINE), "the array 'vectors' is missing"),
        (native_bytes(MINE, b"more"), "after its end"),
        (native_bytes({**MINE, "a": 5}), "header is damaged"),
        (native_bytes({**MINE, "a": {"dtype": "F32", "shape": [1]}}), "header is damaged"),
        (arrays(b"", ("F8_E8M0", [1], [0, 1])), "type 'F8_E8M0'"),
        (arrays(b"", ("BF16", [1], [0, 4])), "fill"),
        (arrays(b"12", ("BF16", [2], [0, 4])), "cut"),
        (arrays(b"", ("F32", [-1], [0, 4])), "not a count"),
        (arrays(b"", ("F32", [True], [0, 4])), "not a count"),
        (arrays(b"1234", ("F32", [2], [0, 4])), "fill"),
        (arrays(b"12345678", ("U8", [4], [4, 8])), "begins"),
        (arrays(b"1234", ("U8", [8], [0, 8])), "cut"),
        (arrays(b"", ("U8", [0] + [1 << 61] * 3, [0, 0])), "impossible shape"),
        (arrays(b"", ("F64", [1 << 40], [0, 1 << 43])), "cut"),
        (arrays(b"123456", ("U8", [4], [0, 4]), ("U8", [4], [2, 6])), "begins at byte 2"),
    ],
)
def test_damaged_native_files(tmp_path: Path, data: bytes, part: str) -> None:
    refused(tmp_path / "v.safetensors", data, part)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"vectors": np.ones((2, 2))}, "are inconsistent"),
        ({"vectors": np.ones(4, np.float32)}, "are inconsistent"),
        ({"vectors": np.ones((0, 2), np.float32), "word_offsets": np.array([2])}, "are inconsistent"),
        ({"vectors": np.array([[1, 2], [3, np.inf]], np.float32)}, "'b'"),
        ({"words": np.frombuffer(b"aa", np.uint8)}, "twice"),
        ({"words": np.frombuffer(b"a\xff", np.uint8)}, "UTF-8"),
        ({"word_offsets": np.array([0, 1, 3])}, "are inconsistent"),
        ({"word_offsets": np.array([0, 5, 2])}, "decrease"),
        ({"counts": np.array([1])}, "are inconsistent"),
    ],
)
def test_native_arrays_that_do_not_fit(tmp_path: Path, change: dict[str, np.ndarray], part: str) -> None:
    good = {
        "vectors": np.ones((2, 2), np.float32),
        "words": np.frombuffer(b"ab", np.uint8),
        "word_offsets": np.array([0, 1, 2]),
    }
    path = tmp_path / "v.safetensors"
    write_native(path, {**good, **change}, {})
    for mmap in (False, True):
        if not mmap or part in ("UTF-8", "decrease"):  # the words of a mapped file are looked at when they are needed
            with pytest.raises(W2VError, match=part):
                read(path, mmap).words.tolist()
    write_native(path, good, {})
    assert list(read(path).words) == ["a", "b"]
