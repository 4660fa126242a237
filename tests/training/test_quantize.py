"""Small classifiers: rows are dropped, trained further and quantised."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json

NAMES = ["red", "green", "blue"]
TEXTS = [f"{NAMES[n % 3]}{n % 4} thing{n % 11} is other{n % 7}" for n in range(240)]
LABELS = [NAMES[n % 3] for n in range(240)]
SMALL: dict[str, Any] = {"workers": 1, "epochs": 20, "buckets": 5000}
MEAN = {"pooling": "mean", "vector_size": 5, "alpha": 0.5} | SMALL


@pytest.fixture(scope="module")
def model() -> w2v.Classifier:
    return w2v.train_classifier(TEXTS, LABELS, **MEAN)


def test_the_longest_rows_of_a_model_with_idf_are_kept(tmp_path: Path) -> None:
    texts = [f"{'good' if n % 2 else 'bad'} rare{n} odd{n}" for n in range(60)]
    model = w2v.train_classifier(texts, ["bad", "good"] * 30, **SMALL)
    assert {*w2v.prune(model, 3).features.vocabulary.words} >= {"good", "bad"}


@pytest.mark.parametrize("options", [{}, {"norm": True}, {"dsub": 3}, {"cutoff": 60}], ids=str)
def test_quantised_models_predict_as_before(model: w2v.Classifier, options: dict[str, Any], tmp_path: Path) -> None:
    small = w2v.quantize(model, **options)
    assert small.features.rows == options.get("cutoff", model.features.rows)
    assert small.evaluate(TEXTS, LABELS).accuracy == 1
    small.save(tmp_path / "m.ftz")
    again = w2v.Classifier.load(tmp_path / "m.ftz")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), small.predict_proba(TEXTS))


def test_the_end_and_the_longest_rows_are_kept(model: w2v.Classifier) -> None:
    lengths = np.linalg.norm(model.inputs, axis=1)
    lengths[model.features.end_row] = np.inf
    small = w2v.prune(model, 40)
    np.testing.assert_array_equal(small.inputs, model.inputs[np.sort(np.argsort(-lengths)[:40])])
    assert "</s>" in small.features.vocabulary.words


@pytest.mark.parametrize("pooling", ["mean", "idf"])
def test_pruned_models_are_trained_further_without_new_rows(pooling: str, tmp_path: Path) -> None:
    options = MEAN if pooling == "mean" else SMALL
    trained = w2v.train_classifier(TEXTS, LABELS, **options | {"epochs": 2})
    small = w2v.prune(trained, 12)
    further = w2v.prune(trained, 12, [f"{text} new" for text in TEXTS], LABELS, epochs=10)
    assert further.features.rows == small.features.rows == 12
    assert further.options.classifier == ("embedded" if pooling == "mean" else "direct")
    assert not np.array_equal(np.asarray(further.inputs), np.asarray(small.inputs))
    default = w2v.prune(trained, 12, TEXTS, LABELS).settings
    assert (default.epochs, default.start_alpha) == (5, pytest.approx(trained.settings.start_alpha / 10))
    further.save(tmp_path / "m.safetensors")
    again = w2v.Classifier.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), further.predict_proba(TEXTS))


@pytest.mark.parametrize("size", [7000, "8K"])
def test_files_are_as_large_as_asked(model: w2v.Classifier, size: Any, tmp_path: Path) -> None:
    w2v.quantize(model, size=size).save(tmp_path / "m.ftz")
    assert 0 <= int(str(size).replace("K", "000")) - (tmp_path / "m.ftz").stat().st_size < 40


def test_direct_models_with_mean_pooling_are_quantised(tmp_path: Path) -> None:
    model = w2v.train_classifier(TEXTS, LABELS, pooling="mean", classifier="direct", loss="ova", **SMALL)
    small = w2v.quantize(model)
    assert (small.options.classifier, small.settings.loss) == ("embedded", "softmax")
    np.testing.assert_allclose(small.predict_proba(TEXTS), model.predict_proba(TEXTS), atol=0.05)


def test_output_rows_are_quantised_from_256_labels_on(model: w2v.Classifier, tmp_path: Path) -> None:
    labels = [f"l{n}" for n in range(256)]
    many = w2v.train_classifier([f"w{n}" for n in range(256)], labels, **MEAN | {"alpha": 5.0})
    small = w2v.quantize(many, output_layer=True)
    assert small.quantised
    assert small.quantised[1]
    small.save(tmp_path / "small.ftz")
    again = w2v.Classifier.load(tmp_path / "small.ftz")
    np.testing.assert_array_equal(again.outputs, small.outputs)
    with pytest.raises(w2v.SettingsError, match="the model has 3 labels"):
        w2v.quantize(model, output_layer=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dsub": 0}, "dsub"),
        ({"dsub": 65}, "dsub 65: it must be at most 64"),
        ({"cutoff": 0}, "cutoff"),
        ({"cutoff": 5, "size": 5}, "give either a cutoff or a size"),
        ({"size": "2T"}, "size '2T': it must be a number of bytes above 0, such as 500K or 2M"),
        ({"size": 100}, "size 100: even with one row, a file takes 6,.* bytes: train a model of fewer dimensions"),
        ({"epochs": 3}, "epochs has no effect without texts"),
        ({"texts": TEXTS[:9], "labels": ["red", "new", "blue"] * 3}, "the texts have the label 'new', which the model"),
    ],
)
def test_impossible_options_are_refused(model: w2v.Classifier, options: dict[str, Any], message: str) -> None:
    with pytest.raises(w2v.SettingsError, match=message):
        w2v.quantize(model, **options)


def test_the_command_prints_the_accuracy_before_and_after(tmp_path: Path) -> None:
    texts, idf, mean = tmp_path / "texts.txt", tmp_path / "idf.safetensors", tmp_path / "mean.safetensors"
    texts.write_text("".join(f"__label__{own} {text}\n" for own, text in zip(LABELS, TEXTS, strict=True)))
    for path, options in ((idf, SMALL), (mean, MEAN)):
        w2v.train_classifier(texts, **options).save(path)
    more = ["--cutoff", 30, "--retrain", texts, "--epochs", 3, "--labelled", texts]
    found = run_json("quantize", mean, "-o", tmp_path / "m.ftz", "--dsub", 2, *more)
    assert (found["accuracy_before"], found["accuracy"], found["rows"]) == (1, 1, 30)
    assert found["bytes"] == (tmp_path / "m.ftz").stat().st_size < found["bytes_before"]
    printed = run("quantize", idf, "-o", tmp_path / "small.safetensors", *more).stdout
    assert "accuracy before" in printed
    assert w2v.Classifier.load(tmp_path / "small.safetensors").features.rows == 30
    table = tmp_path / "table.csv"
    table.write_text("".join(f"{own},{text}\n" for own, text in zip(LABELS, TEXTS, strict=True)))
    more = ["--cutoff", 30, "--labelled", table, "--labels", 1, "--column", 2, "--no-header"]
    assert run_json("quantize", idf, "-o", tmp_path / "table.safetensors", *more)["accuracy_before"] == 1
    for name, given, code, message in (
        ("m.ftz", (), 1, "exists"),
        ("new.ftz", ("--labels", "topic"), 2, "--labels has no effect without --retrain or --labelled"),
        ("new.ftz", (), 1, "cannot store the weights of idf pooling: train with --pooling mean"),
        ("new.bin", (), 2, "w2v quantize writes .ftz or .safetensors"),
        ("new.safetensors", ("--cutoff", 9, "--norm"), 2, "give --cutoff, and none of"),
    ):
        assert message in run("quantize", idf, "-o", tmp_path / name, *given, code=code).stderr
