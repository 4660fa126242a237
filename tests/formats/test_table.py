"""The table of formats: each writes and reads words and vectors, keeps what it says, and replaces nothing unasked."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v.errors import SettingsError, W2VError
from w2v.formats import table
from w2v.formats.vector_file import VectorFile
from w2v.text.words import Words

ROOT = Path(__file__).parents[2]
EXTENSIONS = [end for one in table.WRITTEN for end in one.extensions]
WORDS = ["the", "köln", "case", "1", "[UNK]", '"', "a/b", "ﬁ", "大"]


def content(words: list[str] = WORDS, columns: int = 3) -> VectorFile:
    vectors = np.random.default_rng(1).standard_normal((len(words), columns)).astype(np.float32)
    counts = np.arange(len(words), 0, -1)
    metadata = {"settings": json.dumps({"loss": "ns", "model": "skipgram"}), "metrics": "{}"}
    return VectorFile(Words.of(words), vectors, counts, {"outputs": vectors + 1}, metadata)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_what_is_written_is_read_and_kept(tmp_path: Path, extension: str) -> None:
    written, path = content(), tmp_path / f"m{extension}"
    table.write(path, written, replace=False)
    assert sorted(tmp_path.iterdir()) == sorted([path, *table.beside(path)])
    found, kind = table.read(path), table.for_writing(path)
    assert table.recognised(path) == kind
    assert list(found.words) == WORDS
    np.testing.assert_array_equal(found.vectors, written.vectors)
    assert found.vectors.dtype == np.float32
    lost = table.lost(path, written)
    assert (found.counts is None) == ("counts" in lost)
    assert ("outputs" not in found.tensors) == ("outputs" in lost)
    if found.counts is not None:
        np.testing.assert_array_equal(found.counts, written.counts)
    first = table.read(path, limit=2)
    assert list(first.words) == WORDS[:2]
    np.testing.assert_array_equal(first.vectors, written.vectors[:2])


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_more_rows_than_are_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str) -> None:
    for module in ("static", "npy", "fasttext"):
        monkeypatch.setattr(f"w2v.formats.{module}.ROWS_AT_ONCE", 7)
    monkeypatch.setattr("w2v.formats.arrow.VALUES_AT_ONCE", 50)
    monkeypatch.setattr("w2v.formats.word2vec.BLOCK_BYTES", 500)
    written = content([f"w{row}" for row in range(100)], columns=5)
    padded = np.zeros((100, 8), np.float32)
    padded[:, :5] = written.vectors
    table.write(tmp_path / f"m{extension}", VectorFile(written.words, padded[:, :5], written.counts))
    np.testing.assert_array_equal(table.read(tmp_path / f"m{extension}").vectors, written.vectors)


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
    pair = np.ones((2, 2), np.float32)
    for damaged, message in (
        (VectorFile(Words.of(["a", "a"]), pair), "twice"),
        (VectorFile(Words.of(["a", "b"]), pair, np.array([1, -1])), r"row 2 \('b'\) has a negative count, -1"),
    ):
        with pytest.raises(W2VError, match=message):
            table.write(path, damaged)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("extension", "name", "value"),
    [
        *[(".ft.bin", "settings", value) for value in ('{"window": "abc"}', '{"epochs": "x"}', '{"sample": "NaN"}')],
        *[(".ft.bin", "settings", value) for value in ('{"epochs": 1099511627776}', '{"loss": []}')],
        *[(end, "settings", value) for end in (".ft.bin", ".model2vec") for value in ("{oops", "[1]")],
        (".model2vec", "metrics", "nope"),
        (".model2vec", "scores", "[1,2]"),
    ],
)
def test_damaged_metadata_is_refused(tmp_path: Path, extension: str, name: str, value: str) -> None:
    forged = dataclasses.replace(content(), metadata={name: value})
    table.write(tmp_path / "m.safetensors", forged)
    said = run("convert", tmp_path / "m.safetensors", tmp_path / f"o{extension}", code=1).stderr
    assert f"o{extension}: not written: its {name}: damaged: " in said
    assert not (tmp_path / f"o{extension}").exists()


@pytest.mark.parametrize("extension", [end for end in EXTENSIONS if "counts" in table.for_writing(f"m{end}").keeps])
def test_negative_counts_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str) -> None:
    path = tmp_path / f"m{extension}"
    with monkeypatch.context() as patch:
        patch.setattr("w2v.formats.vector_file._check_values", lambda *_: None)
        table.write(path, dataclasses.replace(content(), counts=np.full(len(WORDS), -3)))
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
    assert list(table.read(path).words) == WORDS
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
    with pytest.raises(W2VError, match="it is there already; name another folder"):
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
