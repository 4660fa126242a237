"""fastText model files: fastText and gensim read the files that w2v writes, and w2v reads the files of fastText."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import SMALL, assert_refused, import_gensim, limit_disk_space, run, run_json
from w2v._formats import fasttext as ours
from w2v._formats import registry
from w2v._progress import Progress
from w2v._settings import MAX_SENTENCE_CONTEXT

UNKNOWN = ["kingdomly", "qüeens", "zzz", "x"]
OPTIONS: dict[str, Any] = SMALL | {"vector_size": 20, "epochs": 1, "workers": 1, "max_vocab": 400}


@pytest.fixture(scope="module")
def fasttext() -> Any:
    return pytest.importorskip("fasttext", reason="fastText has no wheel for this Python")


@pytest.fixture(scope="module")
def model_file(fasttext: Any, sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a model that fastText trained."""
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
    gensim = import_gensim("gensim.models.fasttext").load_facebook_vectors(str(path))
    loaded = fasttext.load_model(str(path))
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


def test_writing_checks_the_disk_space_for_all_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [["one", "two", "three", "four"]] * 9
    model = w2v.train(lines, vector_size=3, min_count=1, epochs=1, subwords="3-4", buckets=(1 << 31) - 1, sample=0)
    limit_disk_space(monkeypatch, 1 << 30)
    refused = "a row for each of 2,147,483,647 buckets needs about 25,770 MB more on disk, but .* has only 1,074 MB"
    with pytest.raises(w2v.W2VError, match=refused):
        model.save(tmp_path / "m.ft.bin")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("window", "expected"), [("5,0", 5), ("all", MAX_SENTENCE_CONTEXT)])
def test_settings_are_translated_to_fasttext_settings(
    window: str, expected: int, fasttext: Any, sample: Path, tmp_path: Path
) -> None:
    path = tmp_path / "m.ft.bin"
    w2v.train(sample, **SMALL | {"window": window, "sample": 0, "loss": "hs"}).save(path)
    shown = run_json("info", path)["settings"]
    assert (shown["window"], shown["sample"], shown["loss"]) == (expected, 0, "hs")
    loaded = fasttext.load_model(str(path))
    np.testing.assert_allclose(loaded.get_word_vector("king"), w2v.load(path)["king"], atol=1e-6)


def test_output_rows_are_stored_only_with_input_vectors(sample: Path, tmp_path: Path) -> None:
    for vectors, has_outputs in (("input", True), ("combined", False)):
        model = w2v.train(sample, vectors=vectors, vector_size=8, epochs=1, max_vocab=100)
        model.save(tmp_path / f"{vectors}.ft.bin")
        stored = registry.read(tmp_path / f"{vectors}.ft.bin")
        np.testing.assert_allclose(stored.vectors, model.vectors, atol=1e-6)
        assert ("outputs" in stored.tensors) == has_outputs
        assert ("outputs" in registry.lost_parts("x.ft.bin", model.to_vector_file())) != has_outputs


def test_vectors_without_counts_and_settings_get_counts_of_1_and_the_defaults_of_fasttext(tmp_path: Path) -> None:
    path = tmp_path / "m.ft.bin"
    w2v.KeyedVectors(["a", "b"], [[1, 2], [3, 4]]).save(path)
    settings = registry.read(path).header.settings
    assert settings == {
        "model": "skipgram", "loss": "ns", "vector_size": 2, "window": 5, "epochs": 5, "min_count": 1, "negative": 5,
        "sample": 1e-4, "vectors": "input",
    }  # fmt: skip
    assert ours.HEAD.unpack(path.read_bytes()[: ours.HEAD.size])[ours.FIELDS.index("tokens")] == 2
    counts = w2v.load(path).counts
    assert counts is not None
    assert counts.tolist() == [1, 1]


def handmade(**changes: float) -> bytes:
    """Return a model of two words and three buckets, in the layout of fastText's format version 12."""
    fields = {
        "magic": 793712314, "version": 12, "dim": 2, "window": 4, "epochs": 7, "min_count": 3, "negative": 6,
        "word_ngrams": 1, "loss": 2, "model": 2, "buckets": 3, "shortest": 3, "longest": 3, "update_rate": 100,
        "sample": 0.25, "entries": 2, "words": 2, "labels": 0, "tokens": 12, "pruned": -1,
    } | changes  # fmt: skip
    data = struct.pack("<14id3i2q", *fields.values())
    data += b"ab\0" + struct.pack("<qb", 9, 0) + b"c\0" + struct.pack("<qb", 3, 0)
    rows = 2 + int(fields["buckets"])
    data += struct.pack("<?qq", False, rows, 2) + np.arange(2 * rows, dtype="<f4").tobytes()
    return data + struct.pack("<?qq", False, 2, 2) + np.array([5, 6, 7, 8], "<f4").tobytes()


def test_every_field_of_a_model_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(handmade())
    found = registry.read(path)
    assert found.header.settings == {
        "vector_size": 2, "window": 4, "epochs": 7, "min_count": 3, "sample": 0.25, "model": "skipgram", "loss": "ns",
        "negative": 6, "vectors": "input", "subwords": "3-3", "buckets": 3,
    }  # fmt: skip
    assert (list(found.words), found.counts.tolist()) == (["ab", "c"], [9, 3])
    np.testing.assert_array_equal(found.tensors["outputs"], [[5, 6], [7, 8]])
    np.testing.assert_array_equal(found.tensors["ngram_buckets"], [0, 1, 2])
    np.testing.assert_array_equal(found.tensors["ngrams"], [[4, 5], [6, 7], [8, 9]])
    registry.write(tmp_path / "again.ft.bin", found)
    again = registry.read(tmp_path / "again.ft.bin")
    assert again.header == found.header
    np.testing.assert_allclose(again.vectors, found.vectors, atol=1e-6)
    np.testing.assert_array_equal(again.tensors["outputs"], found.tensors["outputs"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"loss": 1}, {"loss": "hs"}),
        ({"loss": 3, "model": 1}, {"loss": "softmax", "model": "cbow"}),
        ({"loss": 4}, {"loss": "ova"}),
        ({"negative": 1}, {"negative": 1}),
        ({"negative": 0}, {"negative": 1}),  # w2v requires a positive number even if the loss does not use it
        ({"shortest": 0, "longest": 99}, {"subwords": "1-99"}),
        ({"longest": 2}, {"subwords": None, "buckets": None}),
        ({"buckets": 0}, {"subwords": None, "buckets": None}),
        ({"version": 11, "min_count": 0, "epochs": 0}, {"min_count": 0, "epochs": 0}),
    ],
    ids=str,
)
def test_fields_of_other_models_are_read(tmp_path: Path, changes: dict[str, int], expected: dict[str, Any]) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(handmade(**changes))
    found = registry.read(path)
    assert found.header.settings
    assert {name: found.header.settings.get(name) for name in expected} == expected
    assert (found.header.subwords is None) == ("subwords" in expected and expected["subwords"] is None)
    assert ("outputs" in found.tensors) == (found.header.settings["loss"] != "hs")
    registry.write(tmp_path / "again.ft.bin", found)
    again = registry.read(tmp_path / "again.ft.bin").header.settings
    assert again
    assert {name: again.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"longest": 100}, "refused: n-grams of 100 characters; at most 99 are read"),
        ({"version": 10}, "a fastText model of version 10: this w2v reads version 12"),
        ({"version": 13}, "a fastText model of version 13: this w2v reads version 12"),
        ({"labels": 1}, "damaged: a model of words with 1 labels and -1 pruned n-grams"),
        ({"pruned": 0}, "damaged: a model of words with 0 labels and 0 pruned n-grams"),
        ({"model": 3}, "damaged: a classifier with 0 labels and -1 pruned n-grams"),
        ({"model": 4}, "damaged: model 4 and loss 2, which fastText lacks"),
        ({"loss": 5}, "damaged: model 2 and loss 5, which fastText lacks"),
        ({"words": 0}, "damaged: it declares 0 words and 2 values per word"),
        ({"dim": 0}, "damaged: it declares 2 words and 0 values per word"),
        ({"dim": (1 << 20) + 1}, "damaged: it declares 2 words and 1048577 values per word"),
        ({"words": 3}, "truncated|damaged"),
    ],
    ids=str,
)
def test_impossible_fields_are_refused(tmp_path: Path, changes: dict[str, int], message: str) -> None:
    data = handmade()
    path = tmp_path / "m.bin"
    head = handmade(**changes)[: ours.HEAD.size]
    assert_refused(path, message, head + data[ours.HEAD.size :])


def test_progress_counts_words_and_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "BLOCK_ROWS", 1)
    (tmp_path / "m.bin").write_bytes(handmade())
    reports: list[Progress] = []
    content = registry.read(tmp_path / "m.bin", progress=reports.append)
    # The file has rows of 2 words, 3 buckets and 2 outputs.
    assert [(report.done, report.total) for report in reports] == [(done, 7) for done in (2, 2, 3, 4, 7)]
    reports.clear()
    registry.write(tmp_path / "n.ft.bin", content, progress=reports.append)
    assert [(report.done, report.total) for report in reports] == [(done, 5) for done in (0, 1, 2, 3, 4, 5)]
