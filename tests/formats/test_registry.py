"""Properties of all formats: round trips, atomic replacement, and refusal of damaged files in one line."""

import dataclasses
import os
import re
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
from tests.helpers import FINITE, VOCABULARY, assert_refused, assert_same_content, make_content, run, run_json
from w2v._errors import SettingsError, W2VError
from w2v._formats import registry
from w2v._formats.bfloat16 import bfloat16
from w2v._formats.header import ModelHeader
from w2v._formats.vector_file import VectorFile
from w2v._progress import Progress
from w2v._text.words import Words

ROOT = Path(__file__).parents[2]
EXTENSIONS = [end for one in registry.writable_formats() for end in one.extensions]
FILES = [end for one in registry.writable_formats() for end in one.extensions if not one.folder]
COUNTED = [end for end in FILES if "glove" not in end]  # formats that store the number of rows

ANY_WORD = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN_WORD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0 \t\n\r"), min_size=1, max_size=8)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_content_is_read_back_as_written(tmp_path: Path, extension: str) -> None:
    end = extension.upper() if extension in FILES else extension  # the case of a file's extension does not matter
    written, path = make_content(), tmp_path / f"m{end}"
    registry.write(path, written, replace=False)
    assert sorted(tmp_path.iterdir()) == sorted([path, *registry.companion_files_to_write(path)])
    found, kind = registry.read(path), registry.format_for(path)
    assert registry.detect_format(path) == kind
    assert_same_content(found, written)
    lost = registry.lost_parts(path, written)
    assert (found.counts is None) == ("counts" in lost)
    assert ("outputs" not in found.tensors) == ("outputs" in lost)
    if found.counts is not None:
        np.testing.assert_array_equal(found.counts, written.counts)
    assert_same_content(registry.read(path, limit=2), written.head(2))


@pytest.mark.parametrize(("extension", "words"), [*((end, PLAIN_WORD) for end in COUNTED), (".safetensors", ANY_WORD)])
@given(data=st.data())
@settings(max_examples=15)
def test_any_words_and_numbers_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, extension: str, words: st.SearchStrategy[str], data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{extension}"
    vocabulary = data.draw(st.lists(words, min_size=1, max_size=6, unique=True))
    shape = len(vocabulary), data.draw(st.integers(3, 9))
    written = VectorFile(Words.of(vocabulary), data.draw(hnp.arrays(np.float32, shape, elements=FINITE)))
    registry.write(path, written)
    assert_same_content(registry.read(path), written)
    if extension == ".safetensors":
        assert_same_content(registry.read(path, mmap=True), written)


def make_blocks_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let readers and writers of all formats process a few rows at a time."""
    for module in ("static", "npy", "fasttext", "sqlite"):
        monkeypatch.setattr(f"w2v._formats.{module}.BLOCK_ROWS", 7)
    for name in ("native.BLOCK_BYTES", "word2vec.BLOCK_BYTES", "row_blocks.BLOCK_BYTES", "row_blocks.HEAD_BYTES"):
        monkeypatch.setattr(f"w2v._formats.{name}", 500)
    monkeypatch.setattr("w2v._formats.arrow.BATCH_VALUES", 50)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_several_blocks_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str) -> None:
    """The matrix has padded rows, or is of type bfloat16."""
    make_blocks_small(monkeypatch)
    written = make_content(100, columns=5)
    padded = np.zeros((100, 8), np.float32)
    padded[:, :5] = written.vectors
    rounded = written.vectors.astype(bfloat16())
    for name, vectors, expected in (("m", padded[:, :5], written.vectors), ("n", rounded, rounded.astype(np.float32))):
        path = tmp_path / f"{name}{extension}"
        registry.write(path, VectorFile(written.words, vectors, written.counts))
        np.testing.assert_array_equal(registry.read(path).vectors, expected)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_existing_files_are_not_replaced_by_default(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"m{extension}"
    for existing in (path, *registry.companion_files_to_write(path)):
        existing.write_text("mine")
        with pytest.raises(W2VError, match=f"cannot write {re.escape(str(existing))}: "):
            registry.write(path, make_content(), replace=False)
        assert [each.read_text() for each in tmp_path.iterdir()] == ["mine"]
        run("convert", ROOT / "pyproject.toml", path, code=1)
        existing.unlink()


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
def test_content_that_readers_would_refuse_is_not_written(
    tmp_path: Path, extension: str, words: list[str], changed: dict[str, np.ndarray], message: str
) -> None:
    written = dataclasses.replace(VectorFile(Words.of(words), np.ones((2, 2), np.float32)), **changed)
    with pytest.raises(W2VError, match=message):
        registry.write(tmp_path / f"m{extension}", written)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("extension", "word", "message"),
    [
        *(
            (end, word, f"not written: the word {re.escape(repr(word))} is empty or contains white space")
            for end in (".bin", ".txt")
            for word in ("", " cd", "new york", "cd ", "\tcd", "a\n", "\r")
        ),
        *((end, "a\tb", "a word holds a tab or a line break") for end in (".npy", ".tsv")),
        (".ft.bin", "a\0b", "a word holds a NUL"),
    ],
)
def test_words_that_a_format_cannot_store_are_refused(tmp_path: Path, extension: str, word: str, message: str) -> None:
    for row in range(3):
        words = ["ab", "ef", "gh"]
        words[row] = word
        with pytest.raises(W2VError, match=message):
            registry.write(tmp_path / f"m{extension}", make_content(words))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "vectors"),
    [
        (["\ufeffthe", "b"], [[1, 2], [3, 4]]),  # starts with a byte order mark
        (["2", "b"], [[1], [3]]),  # looks like a header
        (["7", "3"], [[9], [5]]),  # looks like a header and then words with counts
        (["the", "of"], [[9], [5]]),  # looks like words with counts
        ([":", "a", "b"], [[1, 2, 3]] * 3),  # looks like analogy questions
        (["\x01a", "b"], [[1, 2], [3, 4]]),  # looks like binary data
        (["a", "b\0c"], [[1, 2], [3, 4]]),
        (["BZh91AY&SY", "b"], [[1, 2], [3, 4]]),  # looks like compressed data
        (["PK\x03\x04", "b"], [[1, 2], [3, 4]]),  # looks like an archive
        (["PAR1\x15", "b"], [[1, 2], [3, 4]]),  # looks like a table
    ],
)
@pytest.mark.parametrize("extension", [".glove.txt", ".glove.txt.gz"])
def test_glove_text_that_would_be_misread_is_not_written(
    tmp_path: Path, extension: str, words: list[str], vectors: list[list[float]]
) -> None:
    written = VectorFile(Words.of(words), np.array(vectors, np.float32))
    with pytest.raises(W2VError, match=r"not written: this format has no header, and a file that starts with '.* use"):
        registry.write(tmp_path / f"m{extension}", written)
    assert not list(tmp_path.iterdir())
    registry.write(tmp_path / "m.vec", written)
    assert_same_content(registry.read(tmp_path / "m.vec"), written)
    order = [*range(1, len(words)), 0]
    # After the first row, the other words are harmless.
    if "\0" not in "".join(words) and len(vectors[0]) > 1 and ":" not in words:
        written = VectorFile(Words.of(words[row] for row in order), written.vectors[order])
        registry.write(tmp_path / f"m{extension}", written)
        assert_same_content(registry.read(tmp_path / f"m{extension}"), written)


def read_or_none(path: Path, mmap: bool = False) -> VectorFile | None:
    """Read a file. Return None if it is refused, and check that the message is one short line."""
    try:
        return registry.read(path, mmap)
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
    """A change of any of its files is noticed. Otherwise the vectors could be a mixture of two models."""
    path = tmp_path / f"m{extension}"
    registry.write(path, make_content())
    kind = registry.detect_format(path)

    def load(changing: Path) -> VectorFile:
        def read(*arguments: Any) -> VectorFile:
            change(changing)
            return kind.read(*arguments)

        monkeypatch.setattr(registry, "detect_format", lambda path: dataclasses.replace(kind, read=read))
        return registry.read(path)

    for file in [*([] if kind.folder else [path]), *kind.companion_files(path)]:
        with pytest.raises(
            W2VError, match=f"^{re.escape(str(file))} changed while it was read: try again when nothing writes to it$"
        ):
            load(file)
    other = tmp_path / "other"
    other.touch()
    assert_same_content(load(other), make_content())


@pytest.mark.slow
@pytest.mark.parametrize("extension", COUNTED)
def test_a_cut_file_is_refused(tmp_path: Path, extension: str) -> None:
    path, written = tmp_path / f"m{extension}", make_content()
    registry.write(path, written)
    data = path.read_bytes()
    for size in range(0, len(data), max(1, len(data) // 500)):
        path.write_bytes(data[:size])
        found = read_or_none(path)
        if found:  # the only cut that may go unnoticed is in the last row of text
            assert registry.format_for(path).name in ("word2vec binary", "word2vec text", "projector")
            assert not extension.endswith(".gz")
            assert len(data) - size < 20
            assert list(found.words) == VOCABULARY
            np.testing.assert_array_equal(found.vectors[:-1], written.vectors[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*FILES, " with bfloat16.safetensors", " with n-grams.ft.bin"])
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, kind: str) -> None:
    path, written = tmp_path / f"m{kind}", make_content()
    if "bfloat16" in kind:
        written = dataclasses.replace(written, vectors=written.vectors.astype(bfloat16()))
    if "n-grams" in kind:
        options = {"vector_size": 3, "min_count": 1, "epochs": 1, "subwords": "3-4", "buckets": 20, "sample": 0}
        written = w2v.train([["one", "two", "three", "four"]] * 9, **options).to_vector_file()
    registry.write(path, written)
    original, random = path.read_bytes(), np.random.default_rng(1)
    for number, start in enumerate(random.integers(len(original), size=300)):
        noise = random.bytes(random.choice([1, 1, 1, 8]))
        path = tmp_path / f"m{number}{kind}"  # Windows cannot write to a file that is still mapped
        path.write_bytes((original[:start] + noise + original[start + len(noise) :])[: len(original)])
        for mmap in (False, True) if path.suffix == ".safetensors" else (False,):
            try:
                found = read_or_none(path, mmap)
                if found:
                    found.words.tolist()
            except W2VError:
                assert mmap  # words of mapped files are decoded on access
            except MemoryError:
                assert path.suffix in (".parquet", ".arrow")  # pyarrow before 24 trusts a wrong length


@pytest.mark.parametrize(
    ("extension", "package", "format_name"),
    [
        (".parquet", "pyarrow", "Parquet and Arrow"),
        (".spark", "pyarrow", "folders of Spark"),
        (".spacy", "spacy", "folders of spaCy"),
    ],
)
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str, package: str, format_name: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(W2VError, match=rf"m\{extension}: {format_name} need one more package: pip install"):
        registry.write(tmp_path / f"m{extension}", make_content())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "settings",
    [{"window": "abc"}, {"epochs": "x"}, {"sample": "NaN"}, {"epochs": 1 << 40}, {"loss": []}],
)
def test_settings_that_fasttext_cannot_store_are_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    registry.write(tmp_path / "m.safetensors", dataclasses.replace(make_content(), header=ModelHeader(settings)))
    error = run("convert", tmp_path / "m.safetensors", tmp_path / "o.ft.bin", code=1).stderr
    assert "o.ft.bin: not written: its settings: damaged: " in error
    assert not (tmp_path / "o.ft.bin").exists()


@pytest.mark.parametrize("extension", [end for end in EXTENSIONS if "counts" in registry.format_for(f"m{end}").stores])
def test_negative_counts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str) -> None:
    path = tmp_path / f"m{extension}"
    with monkeypatch.context() as patch:
        patch.setattr("w2v._formats.vector_file._check_values", lambda *_: None)
        registry.write(path, dataclasses.replace(make_content(), counts=np.full(len(VOCABULARY), -3)))
    with pytest.raises(W2VError, match=r"negative count, -3|its count is not a number"):
        registry.read(path)


@pytest.mark.parametrize("extension", [end for end in EXTENSIONS if registry.format_for(f"m{end}").words_suffix])
def test_a_matrix_and_its_word_list_are_replaced_together_or_not_at_all(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"m{extension}"
    registry.write(path, make_content())

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        registry.write(path, make_content(["other", "words"]), progress=stop)
    assert list(registry.read(path).words) == VOCABULARY
    assert sorted(tmp_path.iterdir()) == sorted([path, *registry.companion_files_to_write(path)])


def test_a_matrix_without_its_words_is_refused(tmp_path: Path) -> None:
    registry.write(tmp_path / "m.tsv", make_content())
    registry.companion_files_to_write(tmp_path / "m.tsv")[0].unlink()
    with pytest.raises(W2VError, match=r"m\.tsv: it has vectors but no words .*\.metadata\.tsv"):
        registry.read(tmp_path / "m.tsv")


@pytest.mark.parametrize("extension", [one.extensions[0] for one in registry.writable_formats() if one.folder])
def test_a_folder_is_never_replaced(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"m{extension}"
    path.mkdir()
    (path / "mine").write_text("mine")
    with pytest.raises(W2VError, match="it exists already; name another folder"):
        registry.write(path, make_content(), replace=True)
    w2v.KeyedVectors(["a", "b"], np.eye(2)).save(tmp_path / "m.bin")
    assert "is a folder" in run("convert", tmp_path / "m.bin", path, "--force", code=1).stderr
    assert sorted(tmp_path.rglob("*")) == sorted([tmp_path / "m.bin", path, path / "mine"])
    with pytest.raises(W2VError, match="it is a folder"):
        w2v.load(path)


@pytest.mark.parametrize(
    ("extension", "name"),
    [
        *((".model2vec", name) for name in ("model.safetensors", "tokenizer.json")),
        *((".spacy", f"vocab/{name}") for name in ("vectors", "key2row", "strings.json")),
        (".spark", "data/part-00000.parquet"),
        (".spark", "metadata/part-00000"),
    ],
)
def test_a_pipe_in_a_folder_is_named_as_a_pipe(tmp_path: Path, extension: str, name: str) -> None:
    path = tmp_path / f"m{extension}"
    registry.write(path, make_content())
    (path / name).unlink()
    os.mkfifo(path / name)
    assert_refused(path, f"cannot read {path / name}: it is a pipe")


def test_commands_read_and_write_every_format(tmp_path: Path, sample: Path) -> None:
    last = tmp_path / "m.tsv"
    run("train", sample, "--epochs", 1, "--vector-size", 4, "-o", last)
    for extension in (".npy", ".parquet", ".model2vec", ".spacy", ".spark", ".safetensors"):
        found = run_json("convert", last, tmp_path / f"m{extension}")
        assert found["format"] == registry.format_for(tmp_path / f"m{extension}").name
        about = run_json("info", tmp_path / f"m{extension}")
        assert about["format"] == found["format"]
        assert about["bytes"] > found["vocabulary_size"] * found["vector_size"] * 4
        last = tmp_path / f"m{extension}"
    np.testing.assert_array_equal(w2v.load(last).vectors, w2v.load(tmp_path / "m.tsv").vectors)
    (tmp_path / "other.metadata.tsv").write_text("mine")
    assert "exists" in run("convert", last, tmp_path / "other.tsv", code=1).stderr


def test_help_errors_and_docs_list_every_format() -> None:
    help_text, docs = run("convert", "--help").stdout, (ROOT / "docs" / "formats.md").read_text("utf-8")
    with pytest.raises(SettingsError) as error:
        registry.format_for("m.unknown")
    for one in registry.own_formats():
        extensions = ", ".join(f"`{end}`" for end in one.extensions)
        assert f"| {extensions} | {one.name} |" in docs
        for end in one.extensions:
            if one.for_classifiers:
                assert end not in help_text
            elif one.write:
                assert end in help_text
                assert end in str(error.value)
            else:
                with pytest.raises(SettingsError, match=f"m{end}: w2v reads {one.name} files, but cannot write them: "):
                    registry.format_for(f"m{end}")


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_progress_rises_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str) -> None:
    make_blocks_small(monkeypatch)
    path = tmp_path / f"m{extension}"
    reports: dict[str, list[Progress]] = {"write": [], "read": []}
    registry.write(path, make_content(100, columns=5), progress=reports["write"].append)
    registry.read(path, progress=reports["read"].append)
    assert bool(reports["write"]) == (extension != ".spacy")  # spaCy itself writes and reads the file
    assert bool(reports["read"]) == (extension not in (".safetensors", ".npy", ".model2vec", ".spacy"))
    assert len({report.done for report in reports["write"]}) >= 5 or extension == ".spacy"
    for each in filter(None, reports.values()):
        done = [report.done for report in each]
        assert done == sorted(done)
        assert done[0] >= 0
        assert {report.total for report in each} == {done[-1]}
