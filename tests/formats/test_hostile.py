"""Hostile files: loading them is quick and takes at most twice their uncompressed size plus 64 MB of memory."""

import bz2
import gzip
import io
import json
import lzma
import re
import string
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
import zstandard
from pyarrow import feather, parquet
from safetensors.numpy import save_file

import w2v
from tests.helpers import assert_memory_below, assert_refused
from w2v.errors import W2VError
from w2v.formats import fasttext
from w2v.formats.native import read_native, write_native
from w2v.losses.hierarchical_softmax import build_tree
from w2v.losses.loss import PREFIX
from w2v.losses.registry import Settings, loss_for
from w2v.losses.tree import Tree
from w2v.text import decompress
from w2v.text.corpus import Corpus
from w2v.text.vocabulary import Vocabulary
from w2v.training import checkpoint, checkpoint_folder
from w2v.training.model import Model

SIZE = 8 << 20  # the approximate size of a hostile file of many rows in bytes
LONG_SIZE = 24 << 20  # of one with a line longer than allowed in a text, or whose reader takes 8 MB for any size
LOAD = """
import contextlib, io, os, sys
import importlib.util, pyarrow.compute, pyarrow.parquet, scipy.stats
if importlib.util.find_spec("spacy"):
    import spacy
from w2v.cli.commands import evaluation, training, vectors
from w2v.cli.main import main
from w2v.system import memory
from w2v.errors import W2VError
from w2v.evaluation.analogies import analogies
from w2v.evaluation.similarity import word_pairs
from w2v.vectors.keyed import KeyedVectors, load
from w2v.text.corpus import Corpus
from w2v.text.vocabulary import Vocabulary
some = KeyedVectors(["a", "b", "c", "d"], [[1, 0], [0, 1], [1, 1], [1, 2]])
loaders = {"model": load, "vocabulary": Vocabulary.load}
loaders["column"] = lambda path: list(Corpus(path).blocks(column="word"))
loaders |= {"questions": lambda path: analogies(some, path), "pairs": lambda path: word_pairs(some, path)}
def attempt(name, path):
    try:
        if name in loaders:
            loaders[name](path)
            return "loaded"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as output:
            main([part.replace("MODEL", path).replace("OUT", path + ".out") for part in name.split()], prog_name="w2v")
    except W2VError as error:
        return str(error)
    except SystemExit as end:
        return output.getvalue().replace("\\n", "") if end.code else "done"
# Each loader first reads small files, so that its imports and caches are not measured.
small_files = dict.fromkeys(loaders, sys.argv[1:2]) | {"model": sys.argv[1:], "column": sys.argv[2:]}
for loader, paths in small_files.items():
    for path in paths:
        attempt(loader, path)
for line in os.fdopen(os.dup(0)):  # not sys.stdin: commands set its encoding, which fails after it was read
    name, *paths = line.strip().split("\\t")
    if not os.fork():
        if name in loaders:  # a forked process has not touched the pages of the libraries
            for path in small_files[name]:
                attempt(name, path)
        else:  # first a valid model, so that imports of the command are not measured
            print(attempt(name, paths.pop(0)), end=" ")
        before = memory.peak_resident_bytes()
        print(*(attempt(name, path) for path in paths), flush=True)
        print(memory.peak_resident_bytes() - before, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.fixture(scope="module")
def attempt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., tuple[str, int]]]:
    """Yield a function that loads files in a forked process, and returns its output and the memory that it took.

    Its arguments are the name of a loader or a command, and the paths of the files.
    """
    small = tmp_path_factory.mktemp("loading") / "small"
    small.write_bytes(b"a b c d\na b 1\n")
    parquet_file, arrow_file = small.with_name("table.parquet"), small.with_name("table.arrow")
    columns = {"word": ["a b", "c"], "vector": zero_vectors(1, 1)}
    parquet_file.write_bytes(parquet_bytes(columns))
    arrow_file.write_bytes(arrow_bytes(columns))
    command = [sys.executable, "-c", LOAD, str(small), str(parquet_file), str(arrow_file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        reader, writer = process.stdout, process.stdin

        def attempt(name: str, *paths: Path) -> tuple[str, int]:
            print(name, *paths, sep="\t", file=writer, flush=True)
            return reader.readline(), int(reader.readline())

        yield attempt
        writer.close()


def words(length: int, count: int) -> np.ndarray:
    """Return `count` different words of `length` letters, as rows of bytes."""
    letters = np.frombuffer((string.ascii_letters + string.digits).encode(), np.uint8)
    return letters[np.stack(np.unravel_index(np.arange(count), length * [len(letters)]), axis=1)]


def lines_of_words(ending: bytes, length: int = 4, size: int = SIZE) -> bytes:
    """Return about `size` bytes of lines. Each starts with another word and ends with `ending`."""
    count = size // (length + len(ending))
    return np.hstack([words(length, count), np.tile(np.frombuffer(ending, np.uint8), (count, 1))]).tobytes()


def compressed_zeros(compress: Callable[[bytes], bytes]) -> bytes:
    """Return a row of more than 64 MB of zeros, compressed in several streams, which is faster than one."""
    return compress(b"1 99999999\nw") + compress(b" 0" * (1 << 22)) * 9


def with_header(rows: bytes, columns: int) -> bytes:
    return b"%d %d\n" % (rows.count(b"\n"), columns) + rows


def zero_vectors(*lengths: int) -> Any:
    """Return a column of lists of zeros with these lengths."""
    return pa.ListArray.from_arrays(np.cumsum([0, *lengths]).astype(np.int32), np.zeros(sum(lengths), np.float32))


def one_word_repeated(rows: int) -> dict[str, Any]:
    """Return a table with the same long word in every row, stored once."""
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["w" * (1 << 20)])
    return {"word": words, "vector": pa.FixedSizeListArray.from_arrays(np.ones(rows, np.float32), 1)}


def parquet_bytes(columns: dict[str, Any], **options: Any) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file, compression="zstd", **options)
    return file.getvalue()


def arrow_bytes(columns: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    feather.write_feather(pa.table(columns), file, compression="zstd")
    return file.getvalue()


def footer_of_columns() -> bytes:
    """Return a Parquet file with a row group of a million columns that have nothing but positions."""
    column, count = b"\x26\x00\x00", 1 << 20
    schema = b"\x29\x2c\x48\x01r\x15\x02\x00" + b"\x15\x0c\x25\x00\x18\x04word\x25\x00\x00"
    groups = b"\x19\x1c\x19\xfc\x80\x80\x40" + column * count + b"\x16\x00\x16\x00\x00"
    footer = b"\x15\x02" + schema[:1].replace(b"\x29", b"\x19") + schema[1:] + b"\x16\x00" + groups + b"\x00"
    return b"PAR1\x15" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def fasttext_bytes(entries: bytes, count: int, longest: int) -> bytes:
    """Return a fastText model with these dictionary entries, vectors of one value, and n-grams up to `longest`."""
    numbers = fasttext.DEFAULTS | {"vector_size": 1, "window": 1, "negative": 1, "loss": 2, "model": 2, "buckets": 1}
    numbers |= {"shortest": 1, "longest": longest, "entries": count, "words": count, "tokens": count}
    rows = fasttext.MATRIX_HEAD.pack(False, count + 1, 1) + np.ones(count + 1, np.float32).tobytes()
    outputs = fasttext.MATRIX_HEAD.pack(False, count, 1) + np.ones(count, np.float32).tobytes()
    return fasttext.HEAD.pack(*(numbers[name] for name in fasttext.FIELDS)) + entries + rows + outputs


ENTRY = b"\0" + fasttext.ENTRY.pack(1, 0)
SHORT_ENTRIES = SIZE // 3 // (len(ENTRY) + 4 + 8)
LONG_WORD = {"word": ["w" * (99 << 20), "b"], "vector": zero_vectors(1, 1)}
LONG_ROW = {"word": ["a", "b"], "vector": zero_vectors(1, 25 << 20)}
UNUSED = {"word": ["a", "b"], "vector": zero_vectors(1, 1), "other": ["w" * (99 << 20), "b"]}
TOO_MUCH = "to more than 500 times its size"

FILES: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "numbers of one digit": ("model", lambda: lines_of_words(b" 0\n", size=LONG_SIZE), "loaded"),
    "two numbers of one digit": ("model", lambda: with_header(lines_of_words(b" 1 2\n"), 2), "loaded"),
    "a row of numbers of one digit": (
        "model",
        lambda: b"1 %d\nw" % (LONG_SIZE // 2) + b" 1" * (LONG_SIZE // 2),
        "loaded",
    ),
    "a row of numbers": ("model", lambda: b"1 %d\nw " % (LONG_SIZE // 4) + bytes(LONG_SIZE), "loaded"),
    "a long word": ("model", lambda: b"1 1\n" + b"w" * LONG_SIZE + b" 1\n", "loaded"),
    "a long word in binary": ("model", lambda: b"2 3\na " + bytes(12) + b"w" * LONG_SIZE + b" " + bytes(12), "loaded"),
    "short rows": ("model", lambda: b"%d 1\n" % (SIZE // 9) + lines_of_words(b" \1\2\3\4"), "loaded"),
    "empty words": ("model", lambda: b"%d 1\n" % (SIZE // 5) + b" \1\2\3\4" * (SIZE // 5), "too short to hold"),
    "the same word": ("model", lambda: b"a 1\n" * (SIZE // 4), "too short to hold"),
    "the same long word": ("model", lambda: b"aaaaaa 1\n" * (LONG_SIZE // 9), "appears twice"),
    "a million columns": ("model", lambda: b"9 1000000\n" + bytes(LONG_SIZE), "truncated"),
    "a million million rows": (
        "model",
        lambda: b"1000000000000 9\n" + lines_of_words(b" 1 2 3 4 5 6 7 8 9\n"),
        "truncated",
    ),
    "digits without end": ("model", lambda: b"1 1\na 0." + b"7" * LONG_SIZE + b"\n", "loaded"),
    "packed zeros": ("model", lambda: compressed_zeros(gzip.compress), "more than 500:1"),
    "zeros packed by xz": ("model", lambda: compressed_zeros(lzma.compress), "more than 500:1"),
    "empty counts": ("vocabulary", lambda: lines_of_words(b"\n"), "line 1: b'aaaa' is not a word and its count"),
    "empty lines": ("vocabulary", lambda: b"\n" * (SIZE // 4), "holds no words"),
    "short lines": ("vocabulary", lambda: lines_of_words(b" 12345678\n", 5), "loaded"),
    "one line": ("vocabulary", lambda: b"a " * (LONG_SIZE // 2), "longer than 16777216 bytes"),
    "one word": ("vocabulary", lambda: b"w" * (LONG_SIZE // 2) + b" 5", "has 12,582,912 bytes: at most 524,288 fit"),
    "questions without end": ("questions", lambda: b"a b c d\n" * (SIZE // 256), "loaded"),
    "unknown questions": ("questions", lambda: b"bb c d %s\n" * (SIZE // 256), "loaded"),
    "malformed questions": ("questions", lambda: b"a\n" * (SIZE // 32) + b"a b c d\n", "loaded"),
    "one question": ("questions", lambda: b"a b " * (LONG_SIZE // 4), "longer than 16777216 bytes"),
    "long words in questions": ("questions", lambda: (b"w" * (3 << 20) + b" a b c\n") * 8, "loaded"),
    "pairs without end": ("pairs", lambda: b"a b 1\n" * (SIZE // 6), "more than 100000 pairs"),
    "unknown pairs": ("pairs", lambda: lines_of_words(b" no 1\n", size=LONG_SIZE), "more than 100000 pairs"),
    "the largest allowed number of pairs": ("pairs", lambda: b"a b 1\na c 2\n" * 50_000, "loaded"),
    "a long page": ("model", lambda: parquet_bytes(LONG_WORD, use_dictionary=False), TOO_MUCH),
    "a long dictionary": ("model", lambda: parquet_bytes(LONG_WORD, dictionary_pagesize_limit=1 << 30), TOO_MUCH),
    "a long buffer": ("model", lambda: arrow_bytes(LONG_WORD), TOO_MUCH),
    "references to one word": ("model", lambda: parquet_bytes(one_word_repeated(1 << 16)), TOO_MUCH),
    "references to one word in Arrow": ("model", lambda: arrow_bytes(one_word_repeated(1 << 16)), TOO_MUCH),
    "references to one text": ("column", lambda: parquet_bytes(one_word_repeated(1 << 16)), TOO_MUCH),
    "words that begin alike": (
        "model",
        lambda: parquet_bytes(
            {"word": ["w" * (1 << 20)] * 99, "vector": zero_vectors(*[1] * 99)},
            use_dictionary=False,
            column_encoding={"word": "DELTA_BYTE_ARRAY"},
        ),
        TOO_MUCH,
    ),
    "a long row": ("model", lambda: parquet_bytes(LONG_ROW), TOO_MUCH),
    "a long row in Arrow": ("model", lambda: arrow_bytes(LONG_ROW), TOO_MUCH),
    "a long column that is not used": ("model", lambda: parquet_bytes(UNUSED, use_dictionary=False), "loaded"),
    "a long column of Arrow that is not used": ("model", lambda: arrow_bytes(UNUSED), "loaded"),
    "a million columns of Parquet": ("model", footer_of_columns, "describes too many columns"),
    "short words of fastText": (
        "model",
        lambda: fasttext_bytes(lines_of_words(ENTRY, 4, SHORT_ENTRIES * (len(ENTRY) + 4)), SHORT_ENTRIES, 6),
        "loaded",
    ),
    "long words of fastText": (
        "model",
        lambda: fasttext_bytes(b"".join(b"%c" % k + b"w" * (1 << 18) + ENTRY for k in range(65, 85)), 20, 9),
        "loaded",
    ),
    "long n-grams": ("model", lambda: fasttext_bytes(b"w" * 20_000 + ENTRY, 1, 20_000), "n-grams of 20,000 characters"),
    "one pair": ("pairs", lambda: b"a\t" * (LONG_SIZE // 2), "longer than 16777216 bytes"),
}


# The content of a .tsv file, the content of its words file, and the expected result.
HALF = SIZE // 2
TSV_FILES: dict[str, tuple[Callable[[], bytes], Callable[[], bytes], str]] = {
    "many words": (lambda: b"1\n" * (HALF // 5), lambda: lines_of_words(b"\n", size=HALF), "loaded"),
    "many counts": (
        lambda: b"1\n" * (HALF // 7),
        lambda: b"word\tcount\n" + lines_of_words(b"\t1\n", size=HALF),
        "loaded",
    ),
    "one word for all": (lambda: b"1\n" * (HALF // 4), lambda: b"a\n" * (HALF // 4), "too short for"),
    "columns without end": (lambda: b"1\n" * 5, lambda: b"\t" * LONG_SIZE, "0 words for 5 vectors"),
    "a row without end": (lambda: b"1\t" * (LONG_SIZE // 2) + b"1\n", lambda: b"a\n", "loaded"),
}


def static_folder(folder: Path, matrix: np.ndarray, vocabulary: bytes) -> None:
    folder.mkdir()
    save_file({"embeddings": matrix}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes(b'{"model": {"vocab": %s}}' % vocabulary)


def spacy_folder(folder: Path, matrix: np.ndarray, words: bytes, keys: dict[int, int]) -> None:
    """Write a spaCy folder with these words, one per line, and these rows by key."""
    (folder / "vocab").mkdir(parents=True)
    with (folder / "vocab" / "vectors").open("wb") as file:
        np.save(file, matrix)
    (folder / "vocab" / "key2row").write_bytes(msgspec.msgpack.encode(keys))
    (folder / "vocab" / "strings.json").write_bytes(b'["' + words.rstrip(b"\n").replace(b"\n", b'","') + b'"]')


def spacy_keys(words: bytes) -> dict[int, int]:
    """Return the spaCy keys of words, all with row 0."""
    strings = pytest.importorskip("spacy").strings
    return {strings.hash_string(word): 0 for word in words.decode().split()}


# As large as the keys of spaCy, which are hashes of 64 bits; each takes 10 bytes in a file.
HASHES = range(1 << 63, (1 << 63) + SIZE // 20)
ONE_ROW, ONE_VALUE = np.ones((1, 1 << 20), np.float32), np.ones((1, 1), np.float32)
FEW_WORDS = lines_of_words(b"\n", size=5 * 5000)
FOLDERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a vector of many tokens": (
        lambda folder: static_folder(folder, ONE_ROW, b'{"' + FEW_WORDS.replace(b"\n", b'":0,"') + b'x":0}'),
        "5,001 words share 1 vector: a copy for each word would take more than 50 times the size of the file",
    ),
    "many tokens": (
        lambda folder: static_folder(folder, ONE_VALUE, b'{"' + lines_of_words(b'":0,"', size=SIZE // 3) + b'x":0}'),
        "loaded",
    ),
    "many listed tokens": (
        lambda folder: static_folder(
            folder, np.ones((1 << 20, 1), np.float16), b'[["' + lines_of_words(b'",0],["', size=SIZE // 3) + b'x",0]]'
        ),
        "loaded",
    ),
    "a vector of many keys": (
        lambda folder: spacy_folder(folder, ONE_ROW, FEW_WORDS, spacy_keys(FEW_WORDS)),
        "5,000 words share 1 vector: a copy for each word would take more than 50 times the size of the file",
    ),
    "many strings": (
        lambda folder: spacy_folder(folder, ONE_VALUE, lines_of_words(b"\n", size=SIZE // 3), spacy_keys(b"aaaa aaab")),
        "loaded",
    ),
    "many keys": (lambda folder: spacy_folder(folder, ONE_VALUE, b"a", dict.fromkeys(HASHES, 0)), "0 words"),
    "small keys": (
        lambda folder: spacy_folder(folder, ONE_VALUE, b"a", dict.fromkeys(range(9999), 0)),
        "too many",
    ),
}


def slack(size: int) -> int:
    """Return how much memory a file of this size may take in addition to twice its size.

    It is 64 MB for files of 24 MB. A file of about SIZE gets 4 MB that do not depend on the size, and a third of the
    rest. Files below 1 MB expand to sizes that do not depend on SIZE.
    """
    return (24 if 1 << 20 <= size < LONG_SIZE // 2 else 64) << 20


needs_peak = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak memory in Linux's /proc")


@needs_peak
@pytest.mark.parametrize("name", FOLDERS)
def test_memory_of_folders_is_bounded(tmp_path: Path, attempt: Callable[..., tuple[str, int]], name: str) -> None:
    write, expected = FOLDERS[name]
    write(tmp_path / "folder")
    output, peak = attempt("model", tmp_path / "folder")
    assert expected in output
    size = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert peak <= 2 * size + slack(size)


@pytest.mark.slow
@needs_peak
@pytest.mark.parametrize("name", [*FILES, *TSV_FILES])
def test_memory_of_files_is_bounded(tmp_path: Path, attempt: Callable[..., tuple[str, int]], name: str) -> None:
    path = tmp_path / "m.tsv"
    if name in TSV_FILES:
        content, words, expected = TSV_FILES[name]
        loader = "model"
        (tmp_path / "m.metadata.tsv").write_bytes(words())
    else:
        loader, content, expected = FILES[name]
    path.write_bytes(content())
    output, peak = attempt(loader, path)
    assert expected in output
    assert len(output) < 1000
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    with path.open("rb") as file:
        packed = decompress.is_compressed(file.read(16))
    extra = 13 << 20 if loader == "questions" else slack(size)  # these files are small, since each question takes long
    assert peak <= 2 * (decompress.max_unpacked(size) if packed else size) + extra


COMPRESSIONS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstandard": zstandard.compress}


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_compressed_text_that_expands_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    path, size = tmp_path / "text", 20_000_000
    path.write_bytes(COMPRESSIONS[compression]((b"0" * 99_999 + b" ") * 200))  # fast to compress
    assert sum(len(block.text) for block in Corpus(path).blocks()) > size
    monkeypatch.setattr(decompress, "MAX_UNPACKED_BYTES", 10_000_000)
    refused = rf"text: refused: its {compression} data grows more than 500:1; if you "
    with assert_memory_below(size), pytest.raises(W2VError, match=refused):
        for _ in Corpus(path).blocks():
            pass


def test_streams_that_expand_greatly_are_decompressed_in_pieces(tmp_path: Path) -> None:
    """Streams of 50 bytes expand to 45 MB each: the size of pieces must not depend on earlier streams."""
    path = tmp_path / "text"
    noise = np.random.default_rng(1).bytes(400_000)
    path.write_bytes(bz2.compress(noise) + bz2.compress(bytes(45_000_000)) * 4)
    with assert_memory_below(16 << 20):
        longest = max(len(chunk) for chunk in decompress.decompress("text", iter([path.read_bytes()])))
        assert longest <= decompress.PIECE_BYTES


def test_a_large_tree_that_is_not_full_is_refused_in_little_memory(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    codes = ["".join(map(str, code)) for code in random.integers(0, 2, (600, 1024))]
    (tmp_path / "tree").write_text("".join(f"w{row} {code}\n" for row, code in enumerate(codes)))
    vocabulary = Vocabulary([f"w{row}" for row in range(600)], np.ones(600, np.int64))
    refused = "tree: the tree is not full: codes have more than 1200 prefixes"
    with assert_memory_below(8 << 20), pytest.raises(W2VError, match=refused):
        build_tree(vocabulary, str(tmp_path / "tree"))


def test_a_tree_with_too_many_levels_is_refused() -> None:
    size = 1200
    # Each inner node has a word and the previous inner node as children; the first has two words. Words come before
    # inner nodes in both arrays.
    inner_nodes = np.arange(size, 2 * size - 1)
    parents = np.concatenate([inner_nodes[:1], inner_nodes, inner_nodes[1:]]).astype(np.int32)
    bits = np.concatenate([[0], np.ones(size - 1), np.zeros(size - 2)]).astype(np.int8)
    with pytest.raises(W2VError, match="the tree has 1199 levels: at most 1024 are possible"):
        Tree.from_tensors({"tree_parents": parents, "tree_bits": bits}, size)


LONG, LONG_INVALID = b"w" * 50_000, b"w\xfe" * 50_000  # \xfe is not UTF-8
BROKEN = {
    "an invalid word in binary": b"1 1\n" + LONG_INVALID + b" \1\2\3\4",
    "an invalid word in text": b"1 1\n" + LONG_INVALID + b" 1\n",
    "a word twice": b"2 1\n" + 2 * (LONG + b" 1\n"),
    "not a number": b"1 1\n" + LONG + b" nan\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_messages_about_long_words_are_short(tmp_path: Path, name: str) -> None:
    assert_refused(tmp_path / "m", r"^[^\n]{1,500}$", BROKEN[name])


def test_messages_about_long_words_in_lists_are_short() -> None:
    for words in ([["w" * 100_000] * 9], [["w" * 100_000]], [["w\ud800 " * 100_000]]):
        with pytest.raises(W2VError, match=r"^[^\n]{1,500}$"):
            w2v.train(words)


def forged_settings(metadata: dict[str, str], changes: dict[str, object]) -> str:
    """Return the settings of a file with these changes, and with the default kernel of the loss if they name none."""
    return json.dumps(json.loads(metadata["settings"]) | {"kernel": ""} | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"\x1b[2J\n" * 50_000: 1}, "its settings: w2v .* does not know "),
        ({"model": "z\n" * 50_000}, "model 'z"),
        ({"objective": "z" * 50_000 + ":z", "loss": "objective", "kernel": "numba"}, "the model's objective is zzz"),
        ({"objective": "z\n:z"}, "objective"),
        ({"loss": "dsoftmax", "kernel": "numba", "blocks": "z\n" * 50_000}, "blocks"),
        ({"loss": "hs", "tree": "/dev/zero", "vectors": "input"}, "tree_parents is missing"),
        ({"loss": "class"}, "class_starts is missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_forged_settings_are_refused_in_one_line(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    path = tmp_path / "m.safetensors"
    w2v.train(
        [["a", "b", "c"]] * 9, min_count=1, vector_size=2, negative=1, sample=0, epochs=1, checkpoint=tmp_path
    ).save(path)
    for file, reader in ((path, w2v.Model.load), (checkpoint_folder.files(tmp_path)[0], checkpoint.read_checkpoint)):
        arrays, metadata = read_native(file)
        settings = forged_settings(metadata, changes)
        kept = {"settings": settings, "checksum": checkpoint.checksum(arrays, settings)}
        write_native(file, arrays, metadata | kept)
        with pytest.raises(W2VError) as caught:
            reader(file)
        error = str(caught.value)
        assert re.search(message, error)
        assert error.startswith(str(file))
        assert len(error) < 500


COMMANDS = {
    "query": "query MODEL a",
    "info": "info MODEL",
    "convert": "convert MODEL OUT.bin --force",
    "analogy": "analogy MODEL",
    "similarity": "similarity MODEL",
    "perplexity": "perplexity MODEL CORPUS",
    "rank": "rank MODEL --contexts 2 --targets 2",
    "continue": "train CORPUS --continue MODEL -o OUT.safetensors --force",
    "tree": "tree CORPUS --tree clustered --tree-vectors MODEL --min-count 1",
    "vector": "query MODEL a --vector",
    "evaluate": "evaluate MODEL MODEL",
    "compare": "compare MODEL MODEL",
    "change": "change MODEL MODEL --min-count 1",
    "align": "align MODEL MODEL -o OUT.aligned --force",
    "config": "train CORPUS --config MODEL -o OUT.safetensors --force",
}


HOSTILE: dict[str, dict[str, object]] = {  # settings that promise more than the file holds
    "mixtures": {"loss": "mos", "mixtures": 1024},
    "large mixtures": {"loss": "mos", "mixtures": 128, "vector_size": 1024},
    "long mixtures": {"loss": "mos", "mixtures": 1024, "vector_size": 100_000},
    "long vectors": {"vector_size": 1 << 20},
    "classes": {"loss": "class", "classes": 1 << 40},
    "draws": {"loss": "charcnn", "negative": 1 << 14},
    "blocks": {"loss": "dsoftmax", "blocks": "1," * 999 + "25", "vector_size": 1024},
    "a tree": {"loss": "hs"},
    "a softmax": {"loss": "softmax"},
    "parameters of another loss": {},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the paths of a valid model and of a model with each of the settings in HOSTILE."""
    valid = tmp_path_factory.mktemp("models") / "valid.safetensors"
    w2v.train([["a", "b", "c"]] * 9, min_count=1, vector_size=4, negative=2, sample=0, epochs=1, workers=1).save(valid)
    arrays, metadata = read_native(valid)
    paths = [valid]
    for number, changed in enumerate(HOSTILE.values()):
        size = changed.get("vector_size", 4)
        if isinstance(size, int) and size <= 100_000:  # otherwise the vectors contradict the settings
            arrays["vectors"] = np.ones((3, size), np.float32)
        learnt = {PREFIX + name: np.zeros((3, 3), np.float32) for name in ("projections", "gates", "block_0")}
        settings = forged_settings(metadata, changed)
        paths.append(valid.with_name(f"{number}.safetensors"))
        write_native(paths[-1], arrays | learnt, metadata | {"settings": settings})
    return paths


@needs_peak
@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=[pytest.mark.slow] * (name == "config")) for name in COMMANDS]
)
def test_memory_of_commands_is_bounded(
    tmp_path: Path, attempt: Callable[..., tuple[str, int]], models: list[Path], command: str
) -> None:
    (tmp_path / "corpus").write_text("a b c\n" * 9)
    output, peak = attempt(COMMANDS[command].replace("CORPUS", str(tmp_path / "corpus")), *models)
    assert output.startswith("done ")
    assert "internal error" not in output
    assert peak <= 2 * max(path.stat().st_size for path in models) + (64 << 20)


CHARACTERS = """
import sys
from w2v.system import memory
from w2v.training.model import Model
small, medium, large = sys.argv[1:]
for path in small, medium:
    before = memory.peak_resident_bytes()
    model = Model.load(path)
    assert model.log_probabilities(model.inputs[:1]).shape == (1, len(model.vocabulary))
computed = memory.peak_resident_bytes() - before
before = memory.resident_bytes()
Model.load(large)
print(computed, memory.peak_resident_bytes() - before)
"""


@pytest.mark.slow
@needs_peak
def test_memory_of_output_vectors_from_characters_is_bounded(tmp_path: Path) -> None:
    """The memory is proportional to the number of bytes in all words."""
    for length in 500, 1 << 19:  # one after the other, so that only the first program compiles with Numba
        paths = [tmp_path / f"{length} {name}.safetensors" for name in ("small", "medium", "large")]
        # Computing all vectors of the large model would take minutes.
        medium = min(length, 1 << 17)
        sizes = 4, (1 << 17) // medium, LONG_SIZE // length
        for path, size, each in zip(paths, sizes, (4, medium, length), strict=True):
            vocabulary = Vocabulary(
                [bytes(word).decode().ljust(each, "x") for word in words(4, size)], np.full(size, 5)
            )
            save_model_of_characters(path, vocabulary)
        program = [sys.executable, "-c", CHARACTERS, *map(str, paths)]
        done = subprocess.run(program, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        for path, peak in zip(paths[1:], map(int, done.stdout.split()), strict=True):
            assert peak <= 2 * path.stat().st_size + (64 << 20)


def save_model_of_characters(path: Path, vocabulary: Vocabulary) -> None:
    """Save a model that computes its output vectors from characters. Its parameters are random."""
    settings = Settings(loss="charcnn", vector_size=4, negative=2)
    loss = loss_for(settings, vocabulary)
    random = np.random.default_rng(1)
    learnt = {part: random.normal(size=shape).astype(np.float32) for part, shape in loss.shapes.items()}
    inputs = np.ones((len(vocabulary), 4), np.float32)
    Model(settings, vocabulary, inputs, np.empty((0, 4), np.float32), loss, {}, learnt).save(path)
