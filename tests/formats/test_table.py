"""The contract of all formats: each writes and reads words and vectors, keeps what it says, and replaces nothing
unasked; damaged files are refused in one line.
"""

import dataclasses
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import w2v
from tests.helpers import VOCABULARY, assert_same_content, content, run, run_json
from w2v.errors import SettingsError, W2VError
from w2v.formats import table
from w2v.formats.bfloat16 import bfloat16
from w2v.formats.header import ModelHeader
from w2v.formats.vector_file import VectorFile
from w2v.text.words import Words

ROOT = Path(__file__).parents[2]
EXTENSIONS = [end for one in table.WRITTEN for end in one.extensions]
FILES = [end for one in table.WRITTEN for end in one.extensions if not one.folder]
COUNTED = [end for end in FILES if "glove" not in end]  # files that say how many rows they have

ANY_WORD = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN_WORD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0 \t\n\r"), min_size=1, max_size=8)
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_what_is_written_is_read_and_kept(tmp_path: Path, extension: str) -> None:
    written, path = content(), tmp_path / f"m{extension.upper() if extension in FILES else extension}"
    table.write(path, written, replace=False)
    assert sorted(tmp_path.iterdir()) == sorted([path, *table.beside(path)])
    found, kind = table.read(path), table.for_writing(path)
    assert table.recognised(path) == kind
    assert_same_content(found, written)
    lost = table.lost(path, written)
    assert (found.counts is None) == ("counts" in lost)
    assert ("outputs" not in found.tensors) == ("outputs" in lost)
    if found.counts is not None:
        np.testing.assert_array_equal(found.counts, written.counts)
    assert_same_content(table.read(path, limit=2), written.first(2))


@pytest.mark.parametrize(("extension", "words"), [*((end, PLAIN_WORD) for end in COUNTED), (".safetensors", ANY_WORD)])
@given(data=st.data())
@settings(max_examples=30)
def test_any_words_and_numbers(
    tmp_path_factory: pytest.TempPathFactory, extension: str, words: st.SearchStrategy[str], data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{extension}"
    vocabulary = data.draw(st.lists(words, min_size=1, max_size=6, unique=True))
    shape = len(vocabulary), data.draw(st.integers(3, 9))
    written = VectorFile(Words.of(vocabulary), data.draw(hnp.arrays(np.float32, shape, elements=FINITE)))
    table.write(path, written)
    assert_same_content(table.read(path), written)
    if extension == ".safetensors":
        assert_same_content(table.read(path, mmap=True), written)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_more_rows_than_are_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str) -> None:
    """Of a matrix with padded rows, and of bfloat16."""
    for module in ("static", "npy", "fasttext"):
        monkeypatch.setattr(f"w2v.formats.{module}.ROWS_AT_ONCE", 7)
    monkeypatch.setattr("w2v.formats.arrow.VALUES_AT_ONCE", 50)
    monkeypatch.setattr("w2v.formats.word2vec.BLOCK_BYTES", 500)
    written = content(100, columns=5)
    padded = np.zeros((100, 8), np.float32)
    padded[:, :5] = written.vectors
    rounded = written.vectors.astype(bfloat16())
    for name, vectors, expected in (("m", padded[:, :5], written.vectors), ("n", rounded, rounded.astype(np.float32))):
        path = tmp_path / f"{name}{extension}"
        table.write(path, VectorFile(written.words, vectors, written.counts))
        np.testing.assert_array_equal(table.read(path).vectors, expected)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_nothing_is_replaced_unasked(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"m{extension}"
    for there in (path, *table.beside(path)):
        there.write_text("mine")
        with pytest.raises(W2VError, match=f"cannot write {there}: "):
            table.write(path, content(), replace=False)
        assert [each.read_text() for each in tmp_path.iterdir()] == ["mine"]
        run("convert", ROOT / "pyproject.toml", path, code=1)
        there.unlink()


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize(
    ("words", "changed", "message"),
    [
        (["a", "a"], {}, "twice"),
        (["a"], {}, "1 word,"),
        ([], {"vectors": np.ones((0, 2), np.float32)}, "0 words"),
        (["a", "b"], {"vectors": np.array([[1, 2], [np.nan, 1]], np.float32)}, r"row 2 \('b'\) holds NaN"),
        (["a", "b"], {"counts": np.array([1, -1])}, r"row 2 \('b'\) has a negative count, -1"),
        (["a", "b"], {"counts": np.array([1])}, r"2 words, counts of shape \(1,\)"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, extension: str, words: list[str], changed: dict[str, np.ndarray], message: str
) -> None:
    written = dataclasses.replace(VectorFile(Words.of(words), np.ones((2, 2), np.float32)), **changed)
    with pytest.raises(W2VError, match=message):
        table.write(tmp_path / f"m{extension}", written)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("extension", "word", "message"),
    [
        *((end, word, "white space") for end in (".bin", ".txt") for word in ("", "new york", "a\tb", "a\n", "\r")),
        *((end, "a\tb", "a word holds a tab or the end of a line") for end in (".npy", ".tsv")),
        (".ft.bin", "a\0b", "a word holds a NUL"),
    ],
)
def test_words_that_a_format_cannot_hold(tmp_path: Path, extension: str, word: str, message: str) -> None:
    with pytest.raises(W2VError, match=message):
        table.write(tmp_path / f"m{extension}", content(["a", word]))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "vectors"),
    [
        (["\ufeffthe", "b"], [[1, 2], [3, 4]]),  # begins like text with a byte order mark
        (["2", "b"], [[1], [3]]),  # like a header
        (["7", "3"], [[9], [5]]),  # like a header, and then words with their counts
        (["the", "of"], [[9], [5]]),  # like words with their counts
        ([":", "a", "b"], [[1, 2, 3]] * 3),  # like analogy questions
        (["\x01a", "b"], [[1, 2], [3, 4]]),  # like binary data
        (["a", "b\0c"], [[1, 2], [3, 4]]),
        (["BZh91AY&SY", "b"], [[1, 2], [3, 4]]),  # like compressed data
        (["PK\x03\x04", "b"], [[1, 2], [3, 4]]),  # like an archive
        (["PAR1\x15", "b"], [[1, 2], [3, 4]]),  # like a table
    ],
)
@pytest.mark.parametrize("extension", [".glove.txt", ".glove.txt.gz"])
def test_text_without_a_header_is_read_as_it_was_written_or_not_written(
    tmp_path: Path, extension: str, words: list[str], vectors: list[list[float]]
) -> None:
    written = VectorFile(Words.of(words), np.array(vectors, np.float32))
    with pytest.raises(W2VError, match=r"not written: in this format, which has no header, what begins with '.* use"):
        table.write(tmp_path / f"m{extension}", written)
    assert not list(tmp_path.iterdir())
    table.write(tmp_path / "m.vec", written)
    assert_same_content(table.read(tmp_path / "m.vec"), written)
    order = [*range(1, len(words)), 0]
    if "\0" not in "".join(words) and len(vectors[0]) > 1 and ":" not in words:  # in other rows, it does no harm
        written = VectorFile(Words.of(words[row] for row in order), written.vectors[order])
        table.write(tmp_path / f"m{extension}", written)
        assert_same_content(table.read(tmp_path / f"m{extension}"), written)


def read_or_none(path: Path, mmap: bool = False) -> VectorFile | None:
    """What a file holds; None if it is refused, in one short line."""
    try:
        return table.read(path, mmap)
    except W2VError as error:
        line = str(error)
    assert str(path.with_suffix("")) in line
    assert "\n" not in line
    assert len(line) < 600 + len(str(path))
    return None


def write_again(path: Path) -> None:
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(0, 1))


def replace_by_a_copy(path: Path) -> None:
    shutil.copy2(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("change", [write_again, replace_by_a_copy])
def test_a_file_that_changes_while_it_is_loaded_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str, change: Callable[[Path], None]
) -> None:
    """Whichever of its files it is, or else the vectors may be a mixture of two models."""
    path = tmp_path / f"m{extension}"
    table.write(path, content())
    kind = table.recognised(path)

    def load(changing: Path) -> VectorFile:
        def read(*arguments: Any) -> VectorFile:
            change(changing)
            return kind.read(*arguments)

        monkeypatch.setattr(table, "recognised", lambda path: kind._replace(read=read))
        return table.read(path)

    for file in [*([] if kind.folder else [path]), *kind.other_files(path)]:
        with pytest.raises(W2VError, match=f"^{file} changed while it was read: try again when nothing writes to it$"):
            load(file)
    other = tmp_path / "other"
    other.touch()
    assert_same_content(load(other), content())


@pytest.mark.parametrize("extension", COUNTED)
def test_a_cut_file_is_refused(tmp_path: Path, extension: str) -> None:
    path, written = tmp_path / f"m{extension}", content()
    table.write(path, written)
    data = path.read_bytes()
    for size in range(0, len(data), max(1, len(data) // 500)):
        path.write_bytes(data[:size])
        found = read_or_none(path)
        if found:  # all that may go unnoticed: the end of the last row of text
            assert table.for_writing(path).name in ("word2vec binary", "word2vec text", "projector")
            assert not extension.endswith(".gz")
            assert len(data) - size < 20
            assert list(found.words) == VOCABULARY
            np.testing.assert_array_equal(found.vectors[:-1], written.vectors[:-1])


@pytest.mark.parametrize("kind", [*FILES, " with bfloat16.safetensors", " with n-grams.ft.bin"])
def test_a_damaged_file_does_no_harm(tmp_path: Path, kind: str) -> None:
    path, written = tmp_path / f"m{kind}", content()
    if "bfloat16" in kind:
        written = dataclasses.replace(written, vectors=written.vectors.astype(bfloat16()))
    if "n-grams" in kind:
        options = {"vector_size": 3, "min_count": 1, "epochs": 1, "subwords": "3-4", "buckets": 20, "sample": 0}
        written = w2v.train([["one", "two", "three", "four"]] * 9, **options).content()
    table.write(path, written)
    whole, random = path.read_bytes(), np.random.default_rng(1)
    for place in random.integers(len(whole), size=300):
        noise = random.bytes(random.choice([1, 1, 1, 8]))
        path.write_bytes((whole[:place] + noise + whole[place + len(noise) :])[: len(whole)])
        for mmap in (False, True)[: 1 + path.name.endswith(".safetensors")]:
            try:
                found = read_or_none(path, mmap)
                if found:
                    found.words.tolist()
            except W2VError:
                assert mmap  # whose words are decoded when they are needed
            except MemoryError:
                assert path.suffix in (".parquet", ".arrow")  # pyarrow before 24: as much as a wrong length says


@pytest.mark.parametrize(
    ("extension", "package", "what"),
    [(".parquet", "pyarrow", "Parquet and Arrow"), (".spacy", "spacy", "folders of spaCy")],
)
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str, package: str, what: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(W2VError, match=rf"m\{extension}: {what} need one more package: pip install"):
        table.write(tmp_path / f"m{extension}", content())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "settings",
    [{"window": "abc"}, {"epochs": "x"}, {"sample": "NaN"}, {"epochs": 1 << 40}, {"loss": []}],
)
def test_settings_that_fasttext_cannot_have_are_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    table.write(tmp_path / "m.safetensors", dataclasses.replace(content(), header=ModelHeader(settings)))
    said = run("convert", tmp_path / "m.safetensors", tmp_path / "o.ft.bin", code=1).stderr
    assert "o.ft.bin: not written: its settings: damaged: " in said
    assert not (tmp_path / "o.ft.bin").exists()


@pytest.mark.parametrize("extension", [end for end in EXTENSIONS if "counts" in table.for_writing(f"m{end}").keeps])
def test_negative_counts_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str) -> None:
    path = tmp_path / f"m{extension}"
    with monkeypatch.context() as patch:
        patch.setattr("w2v.formats.vector_file._check_values", lambda *_: None)
        table.write(path, dataclasses.replace(content(), counts=np.full(len(VOCABULARY), -3)))
    with pytest.raises(W2VError, match=r"negative count, -3|its count no number"):
        table.read(path)


@pytest.mark.parametrize("extension", [end for end in EXTENSIONS if table.for_writing(f"m{end}").beside])
def test_two_files_change_together(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"m{extension}"
    table.write(path, content())

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.write(path, content(["other", "words"]), progress=stop)
    assert list(table.read(path).words) == VOCABULARY
    assert sorted(tmp_path.iterdir()) == sorted([path, *table.beside(path)])


def test_numbers_alone_are_no_vectors_of_words(tmp_path: Path) -> None:
    table.write(tmp_path / "m.tsv", content())
    table.beside(tmp_path / "m.tsv")[0].unlink()
    with pytest.raises(W2VError, match=r"m\.tsv: vectors without words, .*\.metadata\.tsv"):
        table.read(tmp_path / "m.tsv")


@pytest.mark.parametrize("extension", [".model2vec", ".spacy"])
def test_a_folder_is_never_replaced(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"m{extension}"
    path.mkdir()
    (path / "mine").write_text("mine")
    with pytest.raises(W2VError, match="it exists already; name another folder"):
        table.write(path, content(), replace=True)
    w2v.KeyedVectors(["a", "b"], np.eye(2)).save(tmp_path / "m.bin")
    assert "is a folder" in run("convert", tmp_path / "m.bin", path, "--force", code=1).stderr
    assert sorted(tmp_path.rglob("*")) == sorted([tmp_path / "m.bin", path, path / "mine"])
    with pytest.raises(W2VError, match="it is a folder"):
        w2v.load(path)


def test_commands_take_every_format(tmp_path: Path, sample: Path) -> None:
    last = tmp_path / "m.tsv"
    run("train", sample, "--epochs", 1, "--vector-size", 4, "-o", last)
    for extension in (".npy", ".parquet", ".model2vec", ".spacy", ".safetensors"):
        found = run_json("convert", last, tmp_path / f"m{extension}")
        assert found["format"] == table.for_writing(tmp_path / f"m{extension}").name
        about = run_json("info", tmp_path / f"m{extension}")
        assert about["format"] == found["format"]
        assert about["bytes"] > found["vocabulary_size"] * found["vector_size"] * 4
        last = tmp_path / f"m{extension}"
    np.testing.assert_array_equal(w2v.load(last).vectors, w2v.load(tmp_path / "m.tsv").vectors)
    (tmp_path / "other.metadata.tsv").write_text("mine")
    assert "exists" in run("convert", last, tmp_path / "other.tsv", code=1).stderr


def test_help_errors_and_docs_are_made_from_it() -> None:
    help_text, docs = run("convert", "--help").stdout, (ROOT / "docs" / "formats.md").read_text("utf-8")
    with pytest.raises(SettingsError) as error:
        table.for_writing("m.unknown")
    for one in table.FORMATS:
        ends = ", ".join(f"`{end}`" for end in one.extensions)
        assert f"| {ends} | {one.name} |" in docs
        assert one.write is None or all(
            f"{end}" in help_text and f"{end}" in str(error.value) for end in one.extensions
        )
        if one.write is None:
            for end in one.extensions:
                with pytest.raises(SettingsError, match=f"m{end}: {one.name}'s own files are only read, not written: "):
                    table.for_writing(f"m{end}")
