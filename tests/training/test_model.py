"""A model's word vectors: the same from every file and from Python; training continues from both matrices."""

import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import QUICK, SMALL, assert_same, run, run_json
from w2v._losses.registry import LOSSES, Settings
from w2v._vectors.combine_matrices import combine_matrices, concatenate_matrices
from w2v.gensim.models.word2vec import Word2Vec

FORMATS = ["m.safetensors", "m.bin", "m.txt", "m.vec.gz"]
OPTIONS: dict[str, Any] = SMALL | {"epochs": 1, "max_vocab": 300}
LOSSES_WITHOUT_WORD_OUTPUTS = ["hs", "dsoftmax", "mos", "charcnn"]


@pytest.mark.parametrize("loss", ["ns", "nce", "sampled", "class", "softmax"])
def test_vectors_combine_both_matrices(sample: Path, loss: str) -> None:
    model = w2v.train(sample, loss=loss, **OPTIONS)
    counts, view = model.vocabulary.counts if loss in ("nce", "sampled", "softmax") else None, model.views["words"]
    np.testing.assert_array_equal(model.wv.vectors, combine_matrices(view.inputs, view.outputs[:300], counts))


@pytest.mark.parametrize("vectors", ["combined", "concatenated", "input"])
@pytest.mark.parametrize("storage", ["float32", "bf16"])
def test_all_formats_store_the_same_vectors(sample: Path, tmp_path: Path, vectors: Any, storage: Any) -> None:
    model = w2v.train(sample, vectors=vectors, storage=storage, **OPTIONS)
    assert model.wv.vectors.shape == (300, 32 if vectors == "concatenated" else 16)
    for name in FORMATS:
        model.save(tmp_path / name)
        np.testing.assert_array_equal(w2v.load(tmp_path / name).vectors, model.wv.vectors)
    for mmap in (False, True):
        loaded = w2v.Model.load(tmp_path / "m.safetensors", mmap)
        assert_same(loaded, model)
    vectors = w2v.load(tmp_path / "m.safetensors", mmap=True)
    assert vectors.counts.tolist() == model.vocabulary.counts.tolist()
    assert {"settings", "metrics"} <= set(vectors.header.non_empty_fields)
    vectors.save(tmp_path / "again.safetensors")
    again = w2v.Model.load(tmp_path / "again.safetensors")
    assert_same(again, model)


@pytest.mark.parametrize("name", ["m.safetensors", "m.model2vec"])
def test_same_run_writes_the_same_bytes(sample: Path, tmp_path: Path, name: str) -> None:
    """Files store neither times nor whether the text was read from a cache."""
    options = [sample, "--cache", tmp_path / "cache.ids", "--deterministic", "--workers", 2, *QUICK]
    contents = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        run("train", "-o", folder / name, *options)
        contents.append({path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()})
    assert contents[0] == contents[1]


@pytest.mark.parametrize("kind", [w2v.train, Word2Vec])
def test_error_hints_at_the_attribute_of_the_word_vectors(kind: Any) -> None:
    model = kind([["king", "queen", "man", "woman"] * 9] * 9, min_count=1, vector_size=4, epochs=1)
    for call, error, hint in (
        (lambda: model["king"], TypeError, r"model\.wv\['king'\]"),
        (lambda: "king" in model, TypeError, r"'king' in model\.wv"),
        (lambda: list(model), TypeError, r"model\.wv\['king'\]"),
        (lambda: model.most_similar("king"), AttributeError, r"model\.wv\.most_similar"),
        (lambda: model.index_to_key, AttributeError, r"model\.wv\.index_to_key"),
        (lambda: model.nothing, AttributeError, "'nothing'"),
    ):
        with pytest.raises(error, match=rf"^a (Model|Word2Vec) has no .*{hint}$"):
            call()
    assert not hasattr(model, "most_similar")
    assert (copy := pickle.loads(pickle.dumps(model))).wv.vectors.tolist() == model.wv.vectors.tolist()
    assert type(copy) is type(model)


def test_kind_of_vectors_does_not_change_training(sample: Path) -> None:
    default, inputs = w2v.train(sample, **OPTIONS), w2v.train(sample, vectors="input", **OPTIONS)
    np.testing.assert_array_equal(default.views["words"].inputs, inputs.views["words"].inputs)
    np.testing.assert_array_equal(default.views["words"].outputs, inputs.views["words"].outputs)
    np.testing.assert_array_equal(inputs.wv.vectors, inputs.views["words"].inputs)
    assert not np.array_equal(default.wv.vectors, inputs.wv.vectors)


def test_continued_training_starts_from_both_matrices(sample: Path, tmp_path: Path) -> None:
    model = w2v.train(sample, **OPTIONS)
    model.save(tmp_path / "m.safetensors")
    more: list[list[str]] = [model.vocabulary.words[:5]] * 50
    one, other = (w2v.train(more, continue_from=start, sample=0) for start in (model, tmp_path / "m.safetensors"))
    np.testing.assert_array_equal(one.views["words"].inputs, other.views["words"].inputs)
    np.testing.assert_array_equal(one.views["words"].inputs[50:], model.views["words"].inputs[50:])
    assert one.settings.word_vectors == "combined"


@pytest.mark.parametrize("vectors", ["combined", "concatenated"])
@pytest.mark.parametrize("loss", LOSSES_WITHOUT_WORD_OUTPUTS)
def test_losses_without_word_outputs_refuse_combined_vectors(loss: str, vectors: Any) -> None:
    reason = LOSSES[loss].no_word_outputs
    with pytest.raises(w2v.SettingsError, match=f"^vectors {vectors}: with loss {loss} {reason}; choose input$"):
        Settings(loss=loss, vectors=vectors)
    assert Settings(loss=loss).word_vectors == Settings(loss=loss, vectors="input").word_vectors == "input"


def test_convert_changes_the_kind_of_vectors(sample: Path, tmp_path: Path) -> None:
    model, inputs = tmp_path / "m.safetensors", tmp_path / "inputs.bin"
    run("train", sample, "-o", model, *QUICK)
    trained = w2v.Model.load(model)
    assert run_json("convert", model, inputs, "--vectors", "input")["vector_size"] == 8
    view = trained.views["words"]
    np.testing.assert_array_equal(w2v.load(inputs).vectors, view.inputs)
    both = tmp_path / "both.safetensors"
    assert run_json("convert", model, both, "--vectors", "concatenated")["vector_size"] == 16
    np.testing.assert_array_equal(w2v.load(both).vectors, concatenate_matrices(view.inputs, view.outputs))
    run("convert", both, model, "--vectors", "combined", "--force")
    np.testing.assert_array_equal(w2v.load(model).vectors, trained.wv.vectors)
    stderr = run("convert", inputs, tmp_path / "x.bin", "--vectors", "combined", code=1).stderr
    assert "only words and vectors" in stderr


def test_command_explains_why_vectors_cannot_be_combined(sample: Path, tmp_path: Path) -> None:
    model = tmp_path / "tree.safetensors"
    stderr = run("train", sample, "-o", model, *QUICK, "--hs", "--vectors", "combined", code=2).stderr
    assert "output rows belong to nodes of the tree" in stderr
    run("train", sample, "-o", model, *QUICK, "--hs")
    assert w2v.load(model).vectors.tobytes() == w2v.Model.load(model).views["words"].inputs.tobytes()
    stderr = run("convert", model, tmp_path / "x.bin", "--vectors", "concatenated", code=2).stderr
    assert "output rows belong to nodes of the tree" in stderr


def test_matrices_of_a_model_cannot_be_edited(sample: Path) -> None:
    model = w2v.train(sample, **SMALL)
    assert np.shares_memory(model.wv.vectors, model.vectors)
    with_ngrams = w2v.train(sample, **SMALL, subwords="3-4", buckets=99)
    view = replace(with_ngrams.views["words"], parameters={"scale": np.ones((2, 2), np.float32)})
    with_ngrams = w2v.Model({"words": view})
    for each in (model, with_ngrams, *pickle.loads(pickle.dumps([model, with_ngrams]))):
        view = each.views["words"]
        rows = [view.ngrams.rows] if view.ngrams else []
        for matrix in (view.inputs, view.outputs, each.vectors, *view.parameters.values(), *rows):
            with pytest.raises(ValueError, match="read-only"):
                matrix[0] = 1
    with pytest.raises(FrozenInstanceError):
        view.inputs = view.outputs  # type: ignore[misc]
