"""Hostile files: loading them is quick, and takes memory in proportion to their size.

Each kind of file is loaded in two sizes. The memory of libraries, and what any file may take, cancels out.
"""

import json
import re
import string
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import w2v
from tests.helpers import assert_memory_grows, assert_refused
from w2v._errors import W2VError
from w2v._formats import fasttext
from w2v._formats.native import read_native, write_native
from w2v._losses.hierarchical_softmax import build_tree
from w2v._text import decompress
from w2v._text.vocabulary import Vocabulary
from w2v._training import checkpoint, checkpoint_folder

SIZE = 24 << 20  # the approximate size of a hostile file in bytes, more than a line of a text may have
LOAD = """
import os, sys
import scipy.stats
from w2v._system import memory
from w2v._errors import W2VError
from w2v._evaluation.analogies import analogies
from w2v._evaluation.similarity import word_pairs
from w2v._vectors.keyed import KeyedVectors, load
from w2v._text.vocabulary import Vocabulary
some = KeyedVectors(["a", "b", "c", "d"], [[1, 0], [0, 1], [1, 1], [1, 2]])
loaders = {"model": load, "vocabulary": Vocabulary.load}
loaders |= {"questions": lambda path: analogies(some, path), "pairs": lambda path: word_pairs(some, path)}
def attempt(name, path):
    try:
        loaders[name](path)
        return "loaded"
    except W2VError as error:
        return str(error)
for loader in loaders:
    attempt(loader, sys.argv[1])  # once, so that its imports are not repeated in every child
for line in sys.stdin:
    name, path = line.strip().split("\\t")
    if not os.fork():
        print(attempt(name, path), memory.peak_resident_bytes(), sep="\\t", flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.fixture(scope="module")
def attempt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, Path], tuple[str, int]]]:
    """Yield a function that loads a file in a forked process; it returns "loaded" or the error, and the peak memory.

    Its arguments are the name of a loader and the path of the file.
    """
    text = tmp_path_factory.mktemp("loading") / "text"
    text.write_bytes(b"a b c d\na b 1\n")
    command = [sys.executable, "-c", LOAD, str(text)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        reader, writer = process.stdout, process.stdin

        def attempt(name: str, path: Path) -> tuple[str, int]:
            print(name, path, sep="\t", file=writer, flush=True)
            output, peak = reader.readline().split("\t")
            return output, int(peak)

        yield attempt
        writer.close()


def words(length: int, count: int) -> np.ndarray:
    """Return `count` different words of `length` letters, as rows of bytes."""
    letters = np.frombuffer((string.ascii_letters + string.digits).encode(), np.uint8)
    return letters[np.stack(np.unravel_index(np.arange(count), length * [len(letters)]), axis=1)]


def lines_of_words(ending: bytes, size: int, length: int = 4) -> bytes:
    """Return about `size` bytes of lines. Each starts with another word and ends with `ending`."""
    count = size // (length + len(ending))
    return np.hstack([words(length, count), np.tile(np.frombuffer(ending, np.uint8), (count, 1))]).tobytes()


def fasttext_bytes(entries: bytes, count: int, longest: int) -> bytes:
    """Return a fastText model with these dictionary entries, vectors of one value, and n-grams up to `longest`."""
    numbers = fasttext.DEFAULTS | {"vector_size": 1, "window": 1, "negative": 1, "loss": 2, "model": 2, "buckets": 1}
    numbers |= {"shortest": 1, "longest": longest, "entries": count, "words": count, "tokens": count}
    rows = fasttext.DENSE + fasttext.MATRIX_HEAD.pack(count + 1, 1) + np.ones(count + 1, np.float32).tobytes()
    outputs = fasttext.DENSE + fasttext.MATRIX_HEAD.pack(count, 1) + np.ones(count, np.float32).tobytes()
    return fasttext.HEAD.pack(*(numbers[name] for name in fasttext.FIELDS)) + entries + rows + outputs


ENTRY = b"\0" + fasttext.ENTRY.pack(1, 0)


def short_words_of_fasttext(size: int) -> bytes:
    entries = lines_of_words(ENTRY, size // 9)
    return fasttext_bytes(entries, len(entries) // (len(ENTRY) + 4), 6)


def long_words_of_fasttext(size: int) -> bytes:
    count = size >> 20
    return fasttext_bytes(b"".join(b"%c" % (65 + k) + b"w" * (1 << 18) + ENTRY for k in range(count)), count, 9)


# The loader, the content of at most n bytes before compression by Parquet, Arrow or gzip, and the expected result.
FILES: dict[str, tuple[str, Callable[[int], bytes], str]] = {
    "numbers of one digit": ("model", lambda n: lines_of_words(b" 0\n", n), "loaded"),
    "a row of numbers of one digit": ("model", lambda n: b"1 %d\nw" % (n // 2) + b" 1" * (n // 2), "loaded"),
    "a row of numbers": ("model", lambda n: b"1 %d\nw " % (n // 4) + bytes(n), "loaded"),
    "a long word": ("model", lambda n: b"1 1\n" + b"w" * n + b" 1\n", "loaded"),
    "a long word in binary": ("model", lambda n: b"2 3\na " + bytes(12) + b"w" * n + b" " + bytes(12), "loaded"),
    "short rows": ("model", lambda n: b"%d 1\n" % (n // 27) + lines_of_words(b" \1\2\3\4", n // 3), "loaded"),
    "empty words": ("model", lambda n: b"%d 1\n" % (n // 15) + b" \1\2\3\4" * (n // 15), "appears twice"),
    "the same long word": ("model", lambda n: b"aaaaaa 1\n" * (n // 9), "appears twice"),
    "more columns than bytes": ("model", lambda n: b"9 %d\n" % n + bytes(n), "truncated"),
    "digits without end": ("model", lambda n: b"1 1\na 0." + b"7" * n + b"\n", "loaded"),
    "short lines": ("vocabulary", lambda n: lines_of_words(b" 12345678\n", n // 3, 5), "loaded"),
    "one line": ("vocabulary", lambda n: b"a " * (n // 2), "longer than 16777216 bytes"),
    "one word": ("vocabulary", lambda n: b"w" * (n // 2) + b" 5", "has 12,582,912 bytes: at most 524,288 fit"),
    "questions without end": ("questions", lambda n: b"a b c d\n" * (n // 96), "loaded"),
    "unknown questions": ("questions", lambda n: b"bb c d %s\n" * (n // 96), "loaded"),
    "malformed questions": ("questions", lambda n: b"a\n" * (n // 96) + b"a b c d\n", "loaded"),
    "one question": ("questions", lambda n: b"a b " * (n // 4), "longer than 16777216 bytes"),
    "long words in questions": ("questions", lambda n: (b"w" * (n // 8) + b" a b c\n") * 8, "loaded"),
    "pairs without end": ("pairs", lambda n: b"a b 1\n" * (n // 18), "more than 100000 pairs"),
    "short words of fastText": ("model", short_words_of_fasttext, "loaded"),
    "long words of fastText": ("model", long_words_of_fasttext, "loaded"),
    "long n-grams": (
        "model",
        lambda n: fasttext_bytes(b"w" * (n >> 10) + ENTRY, 1, n >> 10),
        "n-grams of 24,576 characters",
    ),
}


# The content of a .tsv file, the content of its words file, and the expected result.
TSV_FILES: dict[str, tuple[Callable[[int], bytes], Callable[[int], bytes], str]] = {
    "many words": (lambda n: b"1\n" * (n // 30), lambda n: lines_of_words(b"\n", n // 6), "loaded"),
    "many counts": (
        lambda n: b"1\n" * (n // 42),
        lambda n: b"word\tcount\n" + lines_of_words(b"\t1\n", n // 6),
        "loaded",
    ),
    "columns without end": (lambda _: b"1\n" * 5, lambda n: b"\t" * n, "0 words for 5 vectors"),
    "a row without end": (lambda n: b"1\t" * (n // 2) + b"1\n", lambda _: b"a\n", "loaded"),
}


def static_folder(folder: Path, matrix: np.ndarray, vocabulary: bytes) -> None:
    folder.mkdir()
    save_file({"embeddings": matrix}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes(b'{"model": {"vocab": %s}}' % vocabulary)


ONE_VALUE, FEW_WORDS = np.ones((1, 1), np.float32), lines_of_words(b"\n", 5 * 5000)
FOLDERS: dict[str, tuple[Callable[[Path, int], None], str]] = {
    "many tokens": (
        lambda path, n: static_folder(path, ONE_VALUE, b'{"' + lines_of_words(b'":0,"', n // 9) + b'x":0}'),
        "loaded",
    ),
    "many listed tokens": (
        lambda path, n: static_folder(
            path, np.ones((n // 24, 1), np.float16), b'[["' + lines_of_words(b'",0],["', n // 9) + b'x",0]]'
        ),
        "loaded",
    ),
}

# The bytes of memory for each byte of a file. Files with the shortest or longest words or numbers may need more.
MEMORY_PER_BYTE = 3
EXCEPTIONS = {"a long word": 4, "numbers of one digit": 4, "many words": 4, "many counts": 4, "short lines": 4}
EXCEPTIONS |= {
    "empty words": 4,
    "many tokens": 35,
    "many listed tokens": 35,
    "one word": 5,
    "questions without end": 5,
    "unknown questions": 5,
}

needs_peak = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak memory in Linux's /proc")


def size_of(folder: Path) -> int:
    """Return the size of all files in a folder; of a compressed file, as far as w2v unpacks it."""
    total = 0
    for path in filter(Path.is_file, folder.rglob("*")):
        with path.open("rb") as file:
            packed = decompress.is_compressed(file.read(16))
        total += decompress.max_unpacked(path.stat().st_size) if packed else path.stat().st_size
    return total


@needs_peak
@pytest.mark.parametrize(
    "name", [*FOLDERS, *(pytest.param(name, marks=pytest.mark.slow) for name in (*FILES, *TSV_FILES))]
)
def test_memory_of_files_is_bounded(tmp_path: Path, attempt: Callable[[str, Path], tuple[str, int]], name: str) -> None:
    found, loader = [], "model"
    for size in SIZE // 4, SIZE:
        folder = tmp_path / str(size)
        path = folder / ("m" if name in FOLDERS else "m.tsv")
        folder.mkdir()
        if name in FOLDERS:
            write, expected = FOLDERS[name]
            write(path, size)
        elif name in TSV_FILES:
            content, words, expected = TSV_FILES[name]
            (folder / "m.metadata.tsv").write_bytes(words(size))
            path.write_bytes(content(size))
        else:
            loader, content, expected = FILES[name]
            path.write_bytes(content(size))
        output, peak = attempt(loader, path)
        found.append((size_of(folder), peak))
    assert expected in output
    assert len(output) < 1000
    assert_memory_grows(*found, EXCEPTIONS.get(name, MEMORY_PER_BYTE))


def test_a_large_tree_that_is_not_full_is_refused_before_it_is_built(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    codes = ["".join(map(str, code)) for code in random.integers(0, 2, (600, 1024))]
    (tmp_path / "tree").write_text("".join(f"w{row} {code}\n" for row, code in enumerate(codes)))
    vocabulary = Vocabulary([f"w{row}" for row in range(600)], np.ones(600, np.int64))
    with pytest.raises(W2VError, match="tree: the tree is not full: codes have more than 1200 prefixes"):
        build_tree(vocabulary, str(tmp_path / "tree"))


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


def test_a_file_that_settings_name_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    w2v.train(
        [["a", "b", "c"]] * 9, min_count=1, vector_size=2, negative=1, sample=0, epochs=1, checkpoint=tmp_path
    ).save(path)
    for file, reader in ((path, w2v.Model.load), (checkpoint_folder.files(tmp_path)[0], checkpoint.read_checkpoint)):
        arrays, metadata = read_native(file)
        changes = {"kernel": "", "loss": "hs", "tree": "/dev/zero", "vectors": "input"}
        settings = json.dumps(json.loads(metadata["settings"]) | changes)
        changed = {"settings": settings, "checksum": checkpoint.checksum(arrays, settings)}
        write_native(file, arrays, metadata | changed)
        with pytest.raises(W2VError, match=rf"^{re.escape(str(file))}: .*tree_parents is missing"):
            reader(file)
