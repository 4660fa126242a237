"""Vector files with fewer words and dimensions."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD

import w2v
from tests.helpers import run, run_json
from w2v._cli.commands import vectors
from w2v._formats import registry
from w2v._formats.header import ModelHeader
from w2v._formats.vector_file import VectorFile
from w2v._text.words import Words
from w2v._vectors import reduce

WORDS = [f"w{row}" for row in range(40)]
SUBWORDS = {"vector_size": 12, "subwords": "2-3", "buckets": 500, "epochs": 1, "workers": 1, "max_vocab": 300}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a model of 40 words, and return its path. Four of its six principal components are large."""
    rows = np.random.default_rng(1).standard_normal((40, 6)) * [9, 5, 3, 1, 0.1, 0.1]
    outputs = {"outputs": np.ones((40, 6), np.float32)}
    vectors = w2v.KeyedVectors(WORDS, rows @ np.linalg.qr(np.random.default_rng(2).standard_normal((6, 6)))[0],
                            np.arange(40, 0, -1), tensors=outputs)  # fmt: skip
    vectors.save(tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def test_top_takes_the_first_words(path: Path, tmp_path: Path) -> None:
    found = run_json("convert", path, tmp_path / "o.safetensors", "--max-vocab", 7)
    assert (found["vocabulary_size"], found["lost"]) == (7, ["output layer"])
    reduced = w2v.load(tmp_path / "o.safetensors")
    assert reduced.index_to_key == WORDS[:7]
    assert reduced.counts.tolist() == [*range(40, 33, -1)]
    np.testing.assert_array_equal(reduced.vectors, w2v.load(path).vectors[:7])


@pytest.mark.parametrize("lines", ["w9\n\nw2\nno\nw9\n", "w9 5\nw2 3\n", "w2\tverb\nw9\n"])
def test_words_option_takes_listed_words(path: Path, tmp_path: Path, lines: str) -> None:
    (tmp_path / "words").write_text(lines)
    run("convert", path, tmp_path / "o.bin", "--words", tmp_path / "words")
    reduced = w2v.load(tmp_path / "o.bin")
    assert reduced.index_to_key == ["w2", "w9"]
    np.testing.assert_array_equal(reduced.vectors, w2v.load(path)[["w2", "w9"]])
    (tmp_path / "words").write_text("other\n")
    error = run("convert", path, tmp_path / "n.bin", "--words", tmp_path / "words", code=1).stderr
    assert "words: none of its words has a vector" in error
    assert not (tmp_path / "n.bin").exists()


def test_fewer_dimensions_are_principal_components(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduce, "ROWS_AT_ONCE", 7)
    run("convert", path, tmp_path / "o.safetensors", "--dims", 3)
    rows, reduced = w2v.load(path).vectors, w2v.load(tmp_path / "o.safetensors").vectors
    expected = TruncatedSVD(3, algorithm="arpack").fit_transform(rows.astype(np.float64))
    np.testing.assert_allclose(reduced @ reduced.T, expected @ expected.T, atol=1e-3)


def test_ngrams_are_reduced_with_the_vectors(sample: Path, tmp_path: Path) -> None:
    model = w2v.train(sample, vectors="input", **SUBWORDS)
    model.save(tmp_path / "m.safetensors")
    for extension in ("safetensors", "ft.bin"):
        run("convert", tmp_path / "m.safetensors", tmp_path / f"o.{extension}", "--max-vocab", 50, "--dims", 11)
        reduced = w2v.load(tmp_path / f"o.{extension}")
        assert len(reduced) == 50
        words = ["kingdomly", "the", "queens"]
        cosines = [reduced.similarity(words[0], word) - model.wv.similarity(words[0], word) for word in words[1:]]
        np.testing.assert_allclose(cosines, 0, atol=0.1)
    content = registry.read(tmp_path / "m.safetensors")
    assert "inputs" not in content.tensors


def test_settings_describe_the_reduced_vectors(sample: Path, tmp_path: Path) -> None:
    path, reduced = tmp_path / "m.safetensors", tmp_path / "o.safetensors"
    w2v.train(sample, vectors="concatenated", **SUBWORDS).save(path)
    shown = run("convert", path, reduced, "--dims", 7, "--storage", "int8").stdout
    assert re.search(r"^lost .*input rows.*n-grams", shown, re.MULTILINE)
    settings = run_json("info", reduced)["settings"]
    assert settings["vector_size"] == 7
    assert not {"storage", "vectors"} & settings.keys()
    run("train", sample, "--config", reduced, "-o", tmp_path / "again.safetensors")
    assert w2v.load(tmp_path / "again.safetensors").vector_size == 7
    assert not re.search("^lost", run("convert", path, tmp_path / "copy.safetensors").stdout, re.MULTILINE)


def test_check_reports_the_loss_of_quality(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "compare", partial(w2v.compare, restrict_vocab=50))  # faster than all words
    shown = run("convert", model, tmp_path / "o.bin", "--dims", 20, "--check").stdout
    assert "same among the 10 nearest" in shown
    assert "differ most" not in shown
    found = run_json("convert", model, tmp_path / "p.model2vec", "--max-vocab", 3000, "--check")["check"]
    card = (tmp_path / "p.model2vec" / "README.md").read_text("utf-8")
    assert "## Scores" in card
    assert "trained by w2v" in card
    assert (found["shared"], found["only_first"]) == (3000, len(w2v.load(model)) - 3000)
    assert {one["measure"] for one in found["results"]} >= {"accuracy"}


def test_empty_lines_of_a_list_are_not_unknown_words(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "words").write_text("w9\n\n  \nno\nw2\n\n")
    assert reduce.keep_listed_words(registry.read(path), tmp_path / "words").words == ["w2", "w9"]
    assert caplog.messages == [f"{tmp_path / 'words'}: 1 line not in the vocabulary"]


def test_a_line_is_a_whole_word_before_its_first_field_is(tmp_path: Path) -> None:
    content = VectorFile(Words.of(["new", "new york", "york"]), np.eye(3, dtype=np.float32))
    (tmp_path / "words").write_text("new york\nyork 5\n")
    found = reduce.keep_listed_words(content, tmp_path / "words")
    assert found.words == ["new york", "york"]
    np.testing.assert_array_equal(found.vectors, np.eye(3)[1:])


@pytest.mark.parametrize("storage", ["int8", "f16", "bf16"])
def test_rows_of_every_type_are_taken_with_their_counts(tmp_path: Path, storage: Any) -> None:
    rows = np.arange(1, 13).reshape(4, 3) * np.array([[1], [100], [10], [1000]], np.float32)
    content = VectorFile(Words.of(list("abcd")), rows, np.array([4, 3, 2, 1]))
    stored = reduce.change_storage(content, storage)
    (tmp_path / "words").write_text("d\nb\n")
    found = reduce.keep_listed_words(stored, tmp_path / "words")
    assert found.words == ["b", "d"]
    assert found.counts is not None
    assert found.counts.tolist() == [3, 1]
    np.testing.assert_allclose(np.asarray(found.vectors, np.float32), rows[[1, 3]], rtol=0.01)
    first = np.asarray(reduce.keep_first_words(stored, 3).vectors, np.float32)
    np.testing.assert_allclose(first, rows[:3], rtol=0.01)
    assert len(reduce.keep_first_words(stored, 9).words) == 4


def test_steps_that_are_not_asked_for_change_nothing(path: Path) -> None:
    content = registry.read(path)
    assert reduce.reduce_file(content) is content
    assert reduce.reduce_file(content, dims=5).vectors.shape == (40, 5)
    with pytest.raises(w2v.SettingsError, match=r"^dims 6: the vectors have 6 values: choose fewer$"):
        reduce.reduce_file(content, dims=6)
    for wrong in ("max_vocab", "dims"):
        with pytest.raises(w2v.SettingsError, match=f"^{wrong} 0: "):
            reduce.reduce_file(content, **{wrong: 0})


@pytest.mark.parametrize(("kind", "kept"), [("input", {"vectors": "input"}), ("combined", {})])
def test_smaller_vectors_keep_the_setting_of_input_rows_only(path: Path, kind: str, kept: dict[str, str]) -> None:
    content = replace(registry.read(path), header=ModelHeader(settings={"vectors": kind, "vector_size": 6}))
    assert reduce.reduce_dimensions(content, 3).header.settings == {"vector_size": 3, **kept}
