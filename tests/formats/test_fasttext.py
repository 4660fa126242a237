"""fastText model files: fastText and gensim read the files that w2v writes, and w2v reads the files of fastText."""

import shutil
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gensim.models.fasttext import load_facebook_vectors

import w2v
from tests.helpers import SMALL, assert_refused, run, run_json
from w2v.formats import fasttext as ours
from w2v.formats import table

UNKNOWN = ["kingdomly", "qüeens", "zzz", "x"]
OPTIONS: dict[str, Any] = SMALL | {"vector_size": 20, "epochs": 1, "workers": 1, "max_vocab": 400}


@pytest.fixture(scope="module")
def fasttext() -> Any:
    return pytest.importorskip("fasttext", reason="fastText has no wheel for this Python")


@pytest.fixture(scope="module")
def model_file(fasttext: Any, sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a model model_file by fastText."""
    path = tmp_path_factory.mktemp("fasttext") / "model.bin"
    options = {"dim": 12, "epoch": 1, "bucket": 900, "minCount": 5, "thread": 1, "verbose": 0}
    fasttext.train_unsupervised(str(sample), **options).save_model(str(path))
    return path


@pytest.mark.parametrize(
    "options",
    [
        {"subwords": "3-6", "buckets": 5000},
        {"subwords": "2-3", "buckets": 700, "model": "cbow", "loss": "hs"},
        {"subwords": "3-4", "buckets": 700, "loss": "softmax"},
        {},
    ],
    ids=str,
)
def test_fasttext_and_gensim_load_written_models(
    fasttext: Any, sample: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    model = w2v.train(sample, **OPTIONS | options)
    path = tmp_path / "model.ft.bin"
    model.save(path)
    loaded, gensim = fasttext.load_model(str(path)), load_facebook_vectors(str(path))
    again = w2v.load(path)
    assert loaded.get_words() == gensim.index_to_key == again.index_to_key == model.words
    for word in [*model.words[:50], *(UNKNOWN if options else [])]:
        if word not in model.wv:
            assert not loaded.get_word_vector(word).any()  # the text has none of its n-grams
            continue
        expected = model.wv[word]
        np.testing.assert_allclose(loaded.get_word_vector(word), expected, atol=1e-6)
        np.testing.assert_allclose(again[word], expected, atol=1e-6)
        if len(word) > 1:  # for single letters, gensim expects n-grams of the word's own length, too
            np.testing.assert_allclose(gensim[word], expected, atol=1e-6)
    for word in [model.words[9], *(UNKNOWN[:1] if options else [])]:
        nearest = loaded.get_nearest_neighbors(word, 5)
        scores = [score for _, score in again.most_similar(word, topn=5)]
        assert [score for score, _ in nearest] == pytest.approx(scores, abs=1e-4)  # some words have almost equal scores
        assert [again.similarity(word, found) for _, found in nearest] == pytest.approx(scores, abs=1e-4)
    assert again.counts is not None
    np.testing.assert_array_equal(again.counts, model.vocabulary.counts)


def test_models_of_fasttext_are_read_and_continued(
    fasttext: Any, model_file: Path, sample: Path, tmp_path: Path
) -> None:
    loaded, model = fasttext.load_model(str(model_file)), w2v.load(model_file)
    assert model.index_to_key == loaded.get_words()
    assert "</s>" in model.index_to_key
    for word in [*model.index_to_key[:50], *UNKNOWN]:  # fastText has rows for all n-grams, random for unseen ones
        np.testing.assert_allclose(model[word], loaded.get_word_vector(word), atol=1e-6)
    assert w2v.load(model_file, limit=3).index_to_key == model.index_to_key[:3]
    run("convert", model_file, tmp_path / "m.safetensors")
    np.testing.assert_allclose(w2v.load(tmp_path / "m.safetensors")["zzz"], model["zzz"], atol=1e-7)
    assert "fasttext" in run("info", model_file).stdout
    full = w2v.Model.load(model_file)
    assert (full.settings.window, full.settings.subwords, full.settings.model) == (5, "3-6", "skipgram")
    further = w2v.train(sample, continue_from=full, epochs=1, workers=1)
    assert further.metrics["loss"][0] < w2v.train(sample, settings=further.settings).metrics["loss"][0]
    full.save(tmp_path / "back.ft.bin")
    again = fasttext.load_model(str(tmp_path / "back.ft.bin"))
    for word in ["king", *UNKNOWN]:
        np.testing.assert_allclose(again.get_word_vector(word), loaded.get_word_vector(word), atol=1e-6)
    shown = run_json("info", model_file)["settings"]  # only the settings in the file
    assert "window" in shown
    assert not {"alpha", "seed", "shrink_windows"} & shown.keys()


def test_classifiers_and_quantized_models_are_refused(fasttext: Any, model_file: Path, tmp_path: Path) -> None:
    text = tmp_path / "labelled.txt"
    text.write_text("__label__a one two three\n__label__b four five six\n" * 50)
    model = fasttext.train_supervised(str(text), dim=4, epoch=1, verbose=0, thread=1)
    path = tmp_path / "m.bin"
    model.save_model(str(path))
    assert_refused(path, "a fastText classifier")
    content = bytearray(model_file.read_bytes())
    content[ours.HEAD.size - 8 : ours.HEAD.size] = struct.pack("<q", 3)  # n-grams were pruned
    assert_refused(path, "a quantized fastText model", bytes(content))


def test_models_that_fasttext_cannot_represent_are_refused(tmp_path: Path) -> None:
    path, lines = tmp_path / "m.ft.bin", [["one", "two", "three", "four"]] * 9
    model = w2v.train(lines, vector_size=3, min_count=1, epochs=1, subwords="3-4", buckets=20, sample=0)
    model.save(path)
    with pytest.raises(
        w2v.W2VError,
        match="fastText computes vectors from input rows and n-grams, not from output rows: add --vectors input",
    ):
        model.with_vectors("combined").save(tmp_path / "other.ft.bin")
    assert sorted(tmp_path.iterdir()) == [path]
    content = path.read_bytes()
    assert_refused(path, "version 10: this w2v reads version 12", content[:4] + struct.pack("<i", 10) + content[8:])
    longest = content[: 4 * 12] + struct.pack("<i", 100) + content[4 * 13 :]
    assert_refused(path, "n-grams of 100 characters; at most 99 are read", longest)


def test_writing_checks_the_disk_space_for_all_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [["one", "two", "three", "four"]] * 9
    model = w2v.train(lines, vector_size=3, min_count=1, epochs=1, subwords="3-4", buckets=(1 << 31) - 1, sample=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1 << 30))
    refused = "with a row for each of 2,147,483,647 buckets, it takes 25,769,803,860 bytes, but only 1,073,741,824 are"
    with pytest.raises(w2v.W2VError, match=refused):
        model.save(tmp_path / "m.ft.bin")
    assert not list(tmp_path.iterdir())


def test_settings_are_translated_to_fasttext_settings(fasttext: Any, sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.ft.bin"
    w2v.train(sample, **SMALL | {"window": "5,0", "sample": 0, "loss": "hs"}).save(path)
    shown = run_json("info", path)["settings"]
    assert (shown["window"], shown["sample"], shown["loss"]) == (5, 0, "hs")
    loaded = fasttext.load_model(str(path))
    np.testing.assert_allclose(loaded.get_word_vector("king"), w2v.load(path)["king"], atol=1e-6)


def test_output_rows_are_stored_only_with_input_vectors(sample: Path, tmp_path: Path) -> None:
    for vectors, has_outputs in (("input", True), ("combined", False)):
        model = w2v.train(sample, vectors=vectors, vector_size=8, epochs=1, max_vocab=100)
        model.save(tmp_path / f"{vectors}.ft.bin")
        stored = table.read(tmp_path / f"{vectors}.ft.bin")
        np.testing.assert_allclose(stored.vectors, model.vectors, atol=1e-6)
        assert ("outputs" in stored.tensors) == has_outputs
        assert ("outputs" in table.lost_parts("x.ft.bin", model.to_vector_file())) != has_outputs


@pytest.mark.parametrize("model", ["cbow", "skipgram"])
def test_the_kind_of_a_model_is_kept(tmp_path: Path, model: Any) -> None:
    lines = [["one", "two", "three", "four"]] * 9
    w2v.train(lines, model=model, vector_size=3, min_count=1, epochs=1, sample=0).save(tmp_path / "m.ft.bin")
    content = table.read(tmp_path / "m.ft.bin")
    assert content.header.settings
    assert content.header.settings["model"] == model
