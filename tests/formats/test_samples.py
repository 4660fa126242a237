"""The files of all formats, as written before, load with all their content: see samples/make.py."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import run_json
from w2v._formats import registry
from w2v._losses.registry import LOSSES, settings_from
from w2v._training.config import read_options
from w2v.gensim.models.fasttext import FastText, FastTextKeyedVectors
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.models.phrases import Phrases
from w2v.gensim.models.word2vec import Word2Vec

SAMPLES = Path(__file__).parent / "samples"
EXPECTED: dict[str, dict[str, Any]] = json.loads((SAMPLES / "expected.json").read_text("utf-8"))
MODELS = [name for name, expected in EXPECTED.items() if name.endswith(".safetensors") and "settings" in expected]
VECTOR_FILES = [name for name, expected in EXPECTED.items() if "vectors" in expected and not name.startswith("gensim")]
GENSIM = {
    "gensim-word2vec.model": Word2Vec,
    "gensim-word2vec-hs.model": Word2Vec,
    "gensim-fasttext.model": FastText,
}


def assert_content(found: Any, expected: dict[str, Any]) -> None:
    """Check the first and last words, and their vectors and counts."""
    rows = [0, 1, 2, -1] if expected["size"] > 2 else [0, 1, 1]
    assert len(found.index_to_key) == expected["size"]
    assert [found.index_to_key[row] for row in rows] == expected["words"]
    np.testing.assert_allclose(np.asarray(found.vectors)[rows], expected["vectors"], atol=6e-5)
    counts = found.expandos.get("count") if isinstance(found, KeyedVectors) else found.counts
    if expected["counts"] is not None and counts is not None:
        assert counts[rows].tolist() == expected["counts"]


def test_every_kind_of_file_has_a_sample() -> None:
    assert {f"{loss}.safetensors" for loss in LOSSES} <= EXPECTED.keys()
    for one in registry.writable_formats():
        assert any(f"plain{end}" in EXPECTED or end == ".safetensors" for end in one.extensions), one.name


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mmap", [False, True])
def test_models_load_with_settings_metrics_and_text_options(name: str, mmap: bool) -> None:
    expected, model = EXPECTED[name], w2v.Model.load(SAMPLES / name, mmap)
    assert_content(model.wv, expected)
    assert model.wv.counts is not None
    assert model.settings.as_dict() == expected["settings"] | {"workers": model.settings.threads}
    assert {key: model.metrics[key] for key in expected["metrics"]} == expected["metrics"]
    assert asdict(model.text) == expected["text"]
    np.testing.assert_array_equal(w2v.load(SAMPLES / name, mmap).vectors, model.wv.vectors)
    for view in model.views.values():
        rows = np.ones((1, view.settings.vector_size), np.float32)
        assert view.log_probabilities(rows).shape == (1, expected["size"])


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if "unknown" in expected])
@pytest.mark.parametrize("mmap", [False, True])
def test_unknown_words_have_the_same_vectors(name: str, mmap: bool) -> None:
    for vectors in (w2v.load(SAMPLES / name, mmap), w2v.Model.load(SAMPLES / name, mmap).wv):
        for word, vector in EXPECTED[name]["unknown"].items():
            np.testing.assert_allclose(vectors[word], vector, atol=6e-5)


@pytest.mark.parametrize("name", MODELS)
def test_info_shows_the_settings_of_models(name: str) -> None:
    expected, shown = EXPECTED[name], run_json("info", SAMPLES / name)
    in_effect = settings_from(expected["settings"], name).in_effect()
    assert shown["settings"] == {name: in_effect[name] for name in expected["settings"] if name in in_effect}
    assert shown["settings"].keys() >= {"model", "loss", "alpha", "window", "epochs", "vector_size"}
    assert shown["text"] == (expected["text"] if name == "text-options.safetensors" else {})


@pytest.mark.parametrize("name", VECTOR_FILES)
def test_vectors_of_all_formats_load(name: str) -> None:
    if name.endswith((".parquet", ".arrow", ".spark")):
        pytest.importorskip("pyarrow")
    if name.endswith(".spacy"):
        pytest.importorskip("spacy")
    assert_content(w2v.load(SAMPLES / name), EXPECTED[name])


@pytest.mark.parametrize("name", ["subwords.safetensors", "subwords.ft.bin", "f16.safetensors", "int8.safetensors"])
def test_unknown_words_get_vectors_from_stored_ngrams(name: str) -> None:
    expected = w2v.load(SAMPLES / "subwords.safetensors")["kingdom"]
    np.testing.assert_allclose(w2v.load(SAMPLES / name)["kingdom"], expected, atol=0.02)


def test_queries_use_stored_text_options_and_phrases() -> None:
    assert w2v.load(SAMPLES / "text-options.safetensors").words_in("A King, 12") == ["a", "king", "one", "two"]
    found = run_json("query", SAMPLES / "phrases.safetensors", "walk", "in")
    assert found["positive"] == ["walk_in"]


def test_a_reduced_file_keeps_settings_metrics_and_scores() -> None:
    content = registry.read(SAMPLES / "dims.safetensors")
    assert {"settings", "metrics", "scores"} <= set(registry.part_names(content))
    assert run_json("info", SAMPLES / "dims.safetensors")["settings"]["vector_size"] == 3


@pytest.mark.parametrize("name", GENSIM)
def test_models_of_w2v_gensim_load_and_train(name: str) -> None:
    expected, kind = EXPECTED[name], GENSIM[name]
    model = KeyedVectors.load(str(SAMPLES / name))
    assert type(model) is kind
    assert_content(model.wv, expected)
    assert {key: getattr(model, key) for key in expected["attributes"]} == expected["attributes"]
    model.train([["the", "king", "is", "new"]] * 9, total_examples=9, epochs=1)
    assert_content(w2v.load(SAMPLES / name), expected)


def test_vectors_and_phrases_of_w2v_gensim_load(tmp_path: Path) -> None:
    vectors = KeyedVectors.load(str(SAMPLES / "gensim-keyedvectors.kv"))
    assert_content(vectors, EXPECTED["gensim-keyedvectors.kv"])
    assert vectors.get_vecattr(2, "kind") == 8
    assert type(FastText.load(str(SAMPLES / "gensim-fasttext.model")).wv) is FastTextKeyedVectors
    assert (
        Phrases.load(str(SAMPLES / "gensim-phrases.json"))[["walk", "in", "new", "york"]]
        == (EXPECTED["gensim-phrases.json"]["sentence"])
    )


def test_phrases_vocabulary_and_settings_load() -> None:
    phrases = w2v.Phrases.load(SAMPLES / "phrases.txt")
    assert [list(each) for each in phrases.passes] == EXPECTED["phrases.txt"]["phrases"]
    expected, vocabulary = EXPECTED["vocabulary.txt"], w2v.Vocabulary.load(SAMPLES / "vocabulary.txt")
    assert [vocabulary.words[row] for row in (0, 1, 2, -1)] == expected["words"]
    assert vocabulary.counts[[0, 1, 2, -1]].tolist() == expected["counts"]
    options = read_options(SAMPLES / "settings.toml")
    assert options | EXPECTED["settings.toml"] == options
    assert read_options(SAMPLES / "hs.safetensors")["loss"] == "hs"


@pytest.mark.parametrize("name", ["ns.safetensors", "subwords.safetensors", "views.safetensors"])
def test_training_continues_from_models(name: str) -> None:
    model = w2v.train(SAMPLES / "corpus.txt", continue_from=SAMPLES / name, epochs=1, workers=1)
    assert model.settings.loss == EXPECTED[name]["settings"]["loss"]


def test_training_starts_from_vectors() -> None:
    started = w2v.train(SAMPLES / "corpus.txt", init=SAMPLES / "text-options.safetensors", epochs=1, min_count=1)
    assert started.text.lower
    assert "one" in started.wv


@pytest.mark.parametrize("mmap", [False, True])
def test_a_classifier_predicts_as_when_it_was_written(mmap: bool) -> None:
    expected, model = EXPECTED["classifier.safetensors"], w2v.Classifier.load(SAMPLES / "classifier.safetensors", mmap)
    assert model.labels == expected["labels"]
    np.testing.assert_allclose(model.predict_proba(["Good film"]), expected["probabilities"], atol=6e-5)
