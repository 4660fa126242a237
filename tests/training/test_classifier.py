"""Classifiers: what they learn, resumed and continued runs, determinism, files, and wrong input."""

import copy
import json
import pickle
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import Stop, memory_of, stop_at
from w2v._evaluation.labels import LabelScores, Predictions, score_labels
from w2v._formats import registry
from w2v._formats.storage import SparseMatrix
from w2v._text.corpus import Corpus
from w2v._text.labels import LabelledTexts
from w2v._training import classifier
from w2v._training import labels as labels_of_texts
from w2v._training.checkpoint_folder import latest
from w2v._training.labelled import score_file
from w2v._training.train import open_training
from w2v._vectors.keyed import load

FILMS = ["a good film", "a bad film", "great great film", "awful movie", "a good movie", "bad bad"]
OPINIONS = ["pro", "contra", "pro", "contra", "pro", "contra"]
TEXTS, LABELS = FILMS * 10, OPINIONS * 10
LOSSES = ["ova", "softmax", "hs", "ns", "nce", "sampled", "class"]
SMALL = {"classifier": "embedded", "vector_size": 8, "epochs": 50, "workers": 1}


def train(texts: Any = TEXTS, labels: Any = LABELS, **settings: Any) -> w2v.Classifier:
    return w2v.train_classifier(texts, labels, **{"workers": 1, **settings})


def best(model: w2v.Classifier, texts: list[str]) -> list[str]:
    return [found[0][0] if found else "" for found in model.predict(texts)]


@pytest.mark.filterwarnings("ignore::w2v.TextWarning")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("pooling", ["idf", "mean"])
def test_every_loss_learns_labels(loss: str, pooling: Any) -> None:
    labels = ["pro", "contra", "pro", "other", "pro", "contra"] * 10
    model = train(TEXTS, labels, loss=loss, pooling=pooling, **SMALL)
    assert best(model, ["good movie", "bad film", "awful"]) == ["pro", "contra", "other"]
    sums = model.predict_proba(["good", "film bad"]).sum(axis=1)
    assert sums == pytest.approx(np.ones(2), abs=1e-4)


def test_few_labels_have_a_direct_model() -> None:
    model = train()
    assert model.options.classifier == "direct"
    assert model.inputs.shape == (model.features.rows, 2)
    assert model.labels == ["pro", "contra"]
    assert best(model, ["good film", "awful film", "", "unknown words"]) == ["pro", "contra", "", ""]
    probabilities = model.predict_proba(["good", ""])
    assert np.isnan(probabilities[1]).all()
    assert probabilities[0].sum() == pytest.approx(1)


@pytest.mark.parametrize("pooling", ["idf", "mean"])
@pytest.mark.parametrize("loss", ["ova", "softmax"])
@pytest.mark.parametrize("classifier", ["direct", "embedded"])
def test_steps_follow_the_numerical_gradient(
    classifier: Any, loss: Any, pooling: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An epoch over two texts at a constant rate is two steps along the gradient of the loss in float64."""
    monkeypatch.setattr(labels_of_texts, "compact_scores", lambda scores: scores)
    texts, labels = {"a": "x y x", "b": "y z"}, ["a", "b"]
    size: dict[str, Any] = {"vector_size": 3} if classifier == "embedded" else {}
    settings = {"word_ngrams": 1, "seed": 3, "loss": loss, "pooling": pooling, "classifier": classifier, **size}
    settings |= {"smoothing": 0.1} if loss == "ova" else {}
    model = train([*texts.values()], labels, epochs=1, alpha=0.5, min_alpha=0.5, **settings)
    before = train([*texts.values()], labels, epochs=1, alpha=1e-12, min_alpha=1e-12, **settings)
    words, idf = model.features.vocabulary.words.tolist(), model.features.factors
    inputs, outputs = before.inputs.astype(np.float64), before.outputs.astype(np.float64)

    def weights(text: str) -> np.ndarray[Any, Any]:
        counts = np.array([[*text.split(), "</s>"].count(word) for word in words], np.float64)
        if pooling == "mean":
            return counts / counts.sum()
        unscaled = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * np.asarray(idf, np.float64)
        return unscaled / np.sqrt((unscaled**2).sum())

    def loss_of(label: str) -> float:
        scores = outputs @ (weights(texts[label]) @ inputs)
        gold = model.labels.index(label)
        if loss == "softmax":
            return float(np.log(np.exp(scores).sum()) - scores[gold])
        target = np.where(np.arange(2) == gold, 0.95, 0.05)
        return float((np.log1p(np.exp(scores)) - target * scores).sum())

    trained = [inputs] if classifier == "direct" else [inputs, outputs]
    for text in np.random.default_rng(3).permutation(2):
        gradients = [np.zeros_like(array) for array in trained]
        for array, gradient in zip(trained, gradients, strict=True):
            for place in np.ndindex(array.shape):
                kept = array[place]
                values = []
                for step in (1e-5, -1e-5):
                    array[place] = kept + step
                    values.append(loss_of(labels[text]))
                array[place] = kept
                gradient[place] = (values[0] - values[1]) / 2e-5
        for array, gradient in zip(trained, gradients, strict=True):
            array -= 0.5 * gradient
    np.testing.assert_allclose(model.inputs, inputs, atol=2e-5)
    np.testing.assert_allclose(model.outputs, outputs, atol=2e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"deterministic": True, "workers": 2},
        {"classifier": "embedded", "loss": "softmax"},
        {"classifier": "embedded", "loss": "hs", "pooling": "mean", "subwords": "2-3", "lower": True},
    ],
    ids=str,
)
def test_a_resumed_run_has_the_same_bits(settings: dict[str, Any], tmp_path: Path) -> None:
    texts = [
        f"__label__{label} {text} number{n % 50}" for n, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    corpus = tmp_path / "train.txt"
    corpus.write_text("\n".join(texts * 5))

    options: dict[str, Any] = {"workers": 1, **settings}
    whole = w2v.train_classifier(corpus, **options)
    folder = tmp_path / "checkpoints"
    with pytest.raises(Stop):
        w2v.train_classifier(corpus, checkpoint=folder, checkpoint_every="1chunk", progress=stop_at(0.4), **options)
    info = latest(folder).resume_info
    assert 0 < info.done < info.end
    resumed = w2v.resume(folder, corpus)
    np.testing.assert_array_equal(resumed.inputs, whole.inputs)
    assert resumed.parameters.keys() == whole.parameters.keys()
    for name, array in whole.parameters.items():
        np.testing.assert_array_equal(resumed.parameters[name], array)
    assert resumed.temperature == whole.temperature
    assert (
        resumed.metrics["tokens_trained"]
        == whole.metrics["tokens_trained"]
        == whole.metrics["tokens"] * len(whole.metrics["loss"])
    )


def test_a_classifier_of_lists_resumes_with_them(tmp_path: Path) -> None:
    weights = np.linspace(0.5, 1, len(TEXTS))
    whole = train(sample_weight=weights, checkpoint=tmp_path)
    resumed = w2v.resume(tmp_path, TEXTS, labels=LABELS, sample_weight=weights)
    np.testing.assert_array_equal(resumed.inputs, whole.inputs)
    with pytest.raises(w2v.W2VError, match="belongs to another run, with different text"):
        w2v.resume(tmp_path, TEXTS, labels=LABELS[::-1])


def test_deterministic_threads_give_the_same_bits() -> None:
    one, other = (train(deterministic=True, workers=2) for _ in range(2))
    np.testing.assert_array_equal(one.inputs, other.inputs)
    assert one.temperature == other.temperature


def test_texts_with_several_labels_get_all_that_are_likely(caplog: pytest.LogCaptureFixture) -> None:
    labels = [["pro", "short"], ["contra"], ["pro"], ["contra", "short"], ["pro"], ["contra", "short"]] * 10
    model = train(TEXTS, labels)
    assert "texts have several labels: each has a probability of its own" in caplog.text
    found = [{name for name, _ in each} for each in model.predict(["great great film", "awful movie"])]
    assert found == [{"pro"}, {"contra", "short"}]
    scores = model.evaluate(TEXTS, labels)
    assert scores.k is None
    assert scores.threshold == 0.5
    assert scores.f1 == pytest.approx(1)


def test_sample_weights_and_balance_count(caplog: pytest.LogCaptureFixture) -> None:
    texts, labels = ["x", "x"] * 20, ["often", "rare"] * 20
    weights = [1.0 if label == "often" else 0.1 for label in labels]
    assert best(train(texts, labels, sample_weight=weights), ["x"]) == ["often"]
    assert best(train(texts, labels, sample_weight=weights[::-1]), ["x"]) == ["rare"]
    without = train(texts, labels, sample_weight=[0.0 if label == "rare" else 1.0 for label in labels])
    assert without.metrics["texts"] == 20
    assert "skipped 20 texts of weight 0" in caplog.text
    assert "without words" not in caplog.text
    uneven = ["often"] * 30 + ["rare"] * 10
    plain, balanced = (train(["x"] * 40, uneven, balanced=balanced) for balanced in (False, True))
    assert balanced.predict_proba(["x"])[0, 1] > plain.predict_proba(["x"])[0, 1] + 0.1


def test_only_ratios_of_sample_weights_count() -> None:
    weights = np.linspace(0.1, 1, len(TEXTS), dtype=np.float32)
    one, other = (train(sample_weight=weights * factor) for factor in (1, 1024))
    np.testing.assert_array_equal(one.inputs, other.inputs)
    np.testing.assert_array_equal(train(sample_weight=np.full(len(TEXTS), 7)).inputs, train().inputs)


def test_a_continued_classifier_adds_up_all_counts() -> None:
    model = train(["a a b", "b c"], ["x", "y"])
    more = train(["a new new", "b d"], ["x", "z"], continue_from=model, min_count=2)
    words, labels = more.features.vocabulary, more.features.labels
    assert dict(zip(words.words, words.counts.tolist(), strict=True)) == {"</s>": 4, "a": 3, "b": 3, "new": 2, "c": 1}
    assert dict(zip(labels.words, labels.counts.tolist(), strict=True)) == {"x": 2, "y": 1, "z": 1}


@pytest.mark.parametrize("settings", [{}, {**SMALL, "loss": "softmax"}], ids=["direct", "embedded"])
def test_a_classifier_learns_new_words_and_labels(settings: dict[str, Any], tmp_path: Path) -> None:
    model = train(**settings)
    model.save(tmp_path / "model.safetensors")
    more = train(
        ["so boring", "boring plot", "a dull one"] * 20, ["yawn"] * 60, continue_from=tmp_path / "model.safetensors"
    )
    assert set(more.labels) == {"pro", "contra", "yawn"}
    assert best(more, ["dull plot", "boring"]) == ["yawn", "yawn"]
    assert more.options == model.options
    old = model.features.vocabulary.words.index("great"), more.features.vocabulary.words.index("great")
    if not settings:  # a score of a word that the new texts do not have stays
        assert more.inputs[old[1], more.labels.index("pro")] == model.inputs[old[0], model.labels.index("pro")]


def test_hierarchical_softmax_refuses_new_labels() -> None:
    model = train(loss="hs")
    with pytest.raises(w2v.SettingsError, match=r"^loss hs cannot learn the new label 'yawn': train a new"):
        train(["so boring"] * 9, ["yawn"] * 9, continue_from=model)
    assert train(TEXTS, LABELS, continue_from=model).labels == model.labels


def test_words_may_start_with_vectors() -> None:
    vectors = w2v.KeyedVectors(["good", "bad"], np.eye(2, 16, dtype=np.float32))
    model = train(init=vectors)
    assert model.options.classifier == "embedded"
    assert model.inputs.shape[1] == 16
    assert best(model, ["good", "bad"]) == ["pro", "contra"]


@pytest.mark.parametrize("settings", [{}, {"deterministic": True, "workers": 2}, {"pooling": "mean"}], ids=str)
def test_frozen_words_keep_their_vectors(settings: dict[str, Any], tmp_path: Path) -> None:
    vectors = w2v.KeyedVectors(["good", "bad"], np.eye(2, 16, dtype=np.float32))
    model = train(init=vectors, freeze="inputs", checkpoint=tmp_path, **settings)
    for word, vector in zip(vectors.index_to_key, vectors.vectors, strict=True):
        np.testing.assert_array_equal(model.vectors[word], vector)
    assert np.abs(model.vectors["great"]).max() > 0.1
    assert best(model, ["good", "bad", "great", "awful"]) == ["pro", "contra", "pro", "contra"]
    resumed = w2v.resume(tmp_path, TEXTS, labels=LABELS)
    np.testing.assert_array_equal(resumed.vectors["good"], vectors["good"])
    assert resumed.temperature == model.temperature
    with pytest.raises(w2v.SettingsError, match="freeze outputs: only words have such rows: choose inputs"):
        train(init=vectors, freeze="outputs")
    with pytest.raises(w2v.SettingsError, match="freeze has no effect without init"):
        train(freeze="inputs")


@pytest.mark.parametrize("resume", [False, True])
def test_a_continued_run_that_diverges_keeps_the_rows_it_began_with(
    resume: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = train()
    texts, labels = ["good"] * 60, ["pro", "contra"] * 30
    if resume:
        train(texts, labels, continue_from=model, checkpoint=tmp_path)
        end = latest(tmp_path)
        config = replace(end.config, settings=replace(end.settings, alpha=1000))
        start = replace(
            end,
            config=config,
            resume_info=replace(end.resume_info, done=0),
            losses=np.zeros_like(end.losses),
            predictions=np.zeros_like(end.predictions),
        )
        with open_training(config, LabelledTexts.of_lists(texts, labels), resume_from={"words": start}) as training:
            training.train()
            more = training.classifier()
    else:
        more = train(texts, labels, continue_from=model, alpha=1000)
    assert "with alpha 250" in caplog.text
    np.testing.assert_array_equal(more.vectors["great"], model.vectors["great"])


def test_a_diverging_rate_is_lowered(caplog: pytest.LogCaptureFixture) -> None:
    model = train(**SMALL, loss="softmax", alpha=900)
    assert "starting again with alpha 225" in caplog.text
    assert model.settings.start_alpha < 900
    assert best(model, ["good", "bad"]) == ["pro", "contra"]


def test_training_stops_early_by_accuracy() -> None:
    model = train(stop_early=2, epochs=40)
    assert 3 <= len(model.metrics["held_out_scores"]) < 40
    assert max(model.metrics["held_out_scores"]) == 1


def test_held_out_texts_end_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts, labels = ["good"] * 20 + ["bad"] * 20, ["pro"] * 20 + ["contra"] * 20
    held_out = [*texts, "unknown", "good"], [*labels, "pro", "other"]
    options: dict[str, Any] = {"stop_early": 3, "epochs": 40, "held_out": held_out}
    model = train(texts, labels, checkpoint=tmp_path / "states", **options)
    assert "the list of texts: skipped 2 texts without known words or without a known label" in caplog.text
    assert model.metrics["held_out_scores"] == [1.0] * 4
    assert model.metrics["texts"] == model.metrics["tokens_trained"] // 4 // 3 == 40  # all texts are trained
    wrong = train(texts, labels, **options | {"held_out": (texts, labels[::-1])})
    assert wrong.metrics["held_out_scores"] == [0.0] * 4
    with pytest.raises(w2v.W2VError, match="another run, with held-out texts: name its text and other files"):
        w2v.resume(tmp_path / "states", texts, labels=labels)
    again = w2v.resume(tmp_path / "states", texts, labels=labels, held_out=held_out)
    np.testing.assert_array_equal(again.inputs, model.inputs)


def test_held_out_texts_may_be_a_file(tmp_path: Path) -> None:
    for name, label in (("right", "pro"), ("wrong", "contra")):
        (tmp_path / name).write_text(f"A GOOD film __label__{label}\n")
    settings: dict[str, Any] = {"stop_early": 2, "epochs": 4, "lower": True}
    right, wrong = (train(held_out=tmp_path / name, **settings) for name in ("right", "wrong"))
    assert right.metrics["held_out_scores"] == [1.0] * 3
    assert wrong.metrics["held_out_scores"] == [0.0] * 3
    with pytest.raises(w2v.SettingsError, match="held_out has no effect without stop_early"):
        train(held_out=tmp_path / "right")
    (tmp_path / "other").write_text("unknown words __label__pro\n")
    with pytest.raises(w2v.W2VError, match="other has no text with both known words and a known label"):
        train(held_out=tmp_path / "other", **settings)


def test_parts_of_an_explanation_add_up() -> None:
    model = train()
    explained = model.explain("A good film")
    assert explained.label == "pro"
    assert explained.parts[0][0] == "good"
    assert {name for name, _ in explained.parts} >= {"good", "film", "good film", "film </s>"}
    assert sum(part for _, part in explained.parts) == pytest.approx(explained.score, rel=1e-5)
    assert model.explain("good", "contra").score < 0
    with pytest.raises(w2v.W2VError, match=r"no label .prop.: did you mean pro\?"):
        model.explain("good", "prop")


def test_copies_and_files_predict_the_same(tmp_path: Path) -> None:
    for model in (train(), train(subwords="2-3", **SMALL), train(loss="hs", tokenize="words", lower=True)):
        path = tmp_path / f"{model.settings.loss}-{model.options.classifier}.safetensors"
        model.save(path)
        loaded = w2v.load(path)
        assert isinstance(loaded, w2v.Classifier)
        texts = [*FILMS, "Good!", ""]
        expected = model.predict_proba(texts)
        for other in (loaded, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(other.predict_proba(texts), expected)
            assert other.labels == model.labels
        vectors = load(path)
        assert "good" in vectors
        with pytest.raises(w2v.W2VError, match="is a classifier"):
            w2v.Model.load(path)


def test_a_direct_model_leaves_out_scores_that_hardly_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    topics = rng.integers(30, size=600)
    texts = [" ".join(f"w{topic}.{rng.integers(9)}" for _ in range(6)) + f" of {topic % 4}" for topic in topics]
    labels = [f"topic {topic}" for topic in topics]
    model = train(texts, labels)
    monkeypatch.setattr(labels_of_texts, "compact_scores", lambda scores: scores)
    dense = train(texts, labels)
    assert isinstance(model.inputs, SparseMatrix)
    assert isinstance(dense.inputs, np.ndarray)
    assert len(model.inputs.rows) < dense.inputs.size / 5
    np.testing.assert_allclose(model.predict_proba(texts), dense.predict_proba(texts), atol=0.02)
    assert model.explain(texts[0]).parts[0][0] == dense.explain(texts[0]).parts[0][0]
    assert model.vectors["of"].shape == (30,)
    model.save(tmp_path / "sparse.safetensors")
    dense.save(tmp_path / "dense.safetensors")
    assert (tmp_path / "sparse.safetensors").stat().st_size < (tmp_path / "dense.safetensors").stat().st_size / 2
    loaded = w2v.Classifier.load(tmp_path / "sparse.safetensors", mmap=True)
    assert loaded.predict_proba(texts).tobytes() == model.predict_proba(texts).tobytes()
    with pytest.raises(w2v.SettingsError, match=r"words\.bin: this format cannot store a classifier"):
        model.save(tmp_path / "words.bin")
    with pytest.raises(w2v.W2VError, match="several labels, but the classifier to continue was trained with one"):
        train(["a b", "b c"], [["topic 1", "topic 2"], ["topic 3"]], continue_from=model)
    more = train(texts, labels, continue_from=model, epochs=1, alpha=1e-9)
    np.testing.assert_allclose(more.predict_proba(texts), model.predict_proba(texts), atol=0.05)


def test_threads_predict_the_same() -> None:
    model, results = train(), list[Any]()
    expected = model.predict_proba(TEXTS)

    def predict() -> None:
        results.extend(np.array_equal(model.predict_proba(TEXTS), expected) for _ in range(20))

    threads = [threading.Thread(target=predict) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 80


def test_labels_of_lines_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text(
        "".join(f"Some {text.upper()}! __label__{label.title()}-7\n" for text, label in zip(TEXTS, LABELS, strict=True))
    )
    model = w2v.train_classifier(path, lower=True, tokenize="words", digits="zero", workers=1)
    assert model.labels == ["Pro-7", "Contra-7"]
    assert best(model, ["GOOD film?"]) == ["Pro-7"]
    assert "good" in model.vectors
    assert "GOOD" not in model.vectors


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_labels_come_from_a_column(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"table.{suffix}"
    names = [f"very {label}" for label in LABELS]  # with white space
    if suffix == "csv":
        path.write_text("topic,text\n" + "".join(f'{name},"{text}"\n' for name, text in zip(names, TEXTS, strict=True)))
    elif suffix == "json":
        rows = ({"text": text, "topic": [name]} for name, text in zip(names, TEXTS, strict=True))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"topic": names, "text": TEXTS}), path)
    model = w2v.train_classifier(path, "topic", column="text", workers=1)
    assert model.labels == ["very pro", "very contra"]
    np.testing.assert_array_equal(model.inputs, train(TEXTS, names).inputs)


def test_a_table_in_memory_has_columns() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"text": [*TEXTS, None], "topic": [*LABELS, "pro"]})
    model = w2v.train_classifier(table, "topic", column="text", workers=1)
    np.testing.assert_array_equal(model.inputs, train([*TEXTS, None], [*LABELS, "pro"]).inputs)


@pytest.mark.parametrize(
    ("texts", "labels", "settings", "message"),
    [
        (["a", "b"], ["x"], {}, "there are more texts than 1 label: give one label, or list, for each"),
        (["a"], ["x", "y"], {}, "there are more labels than 1 text: give one label, or list, for each"),
        (["a", "b"], ["x", "x"], {}, "the list of texts has one label, 'x': at least 2 are needed"),
        (["a", "b"], ["x", 1.5], {}, "row 2: the label or tag 1.5 is neither text nor a whole number"),
        (["a", 3], ["x", "y"], {}, "row 2: the text 3 is neither text nor a list of words"),
        (["", ""], ["x", "y"], {}, "has no text with both words and a label"),
        (["a", "b"], [None, None], {}, "no text has a label: all of them are missing"),
        (["a", "b"], ["x", "y"], {"min_count": 9}, "no word occurs at least 9 times: lower --min-count"),
        (["__label__ a", "b"], None, {}, "no word begins with __label__: write the labels into the lines"),
        (["a", "b"], None, {}, "no word begins with __label__: write the labels into the lines"),
        (["a", "b"], ["x", "y"], {"sample_weight": [1.0]}, "1 sample weights, and 2 texts"),
        (["a", "b"], ["x", "y"], {"sample_weight": [1, -1]}, "sample_weight must have one number for each text"),
        (["a", "b"], ["x", "y"], {"sample_weight": ["a", 1]}, "sample_weight must have one number for each text"),
        (["a", "b"], ["x", "y"], {"sample_weight": [0, 0]}, "no text with both words and a label and a weight above 0"),
        (["a", "b"], ["x", "y"], {"classifier": "direct", "loss": "hs"}, "classifier direct: it has no loss hs"),
        (["a", "b"], ["x", "y"], {"loss": "mos"}, "loss mos cannot learn labels: choose ova, softmax, hs or ns"),
        (["a", "b"], ["x", "y"], {"min_alpha": 0.1}, "min_alpha needs alpha: the default of alpha is chosen after"),
        (["a", "b"], ["x", "y"], {"word_ngram": 2}, "unknown setting 'word_ngram': did you mean word_ngrams"),
        ({"text": ["a"]}, ["x"], {}, "a list of texts is needed with a list of labels or tags, not dict"),
        ("a b", ["x"], {}, "a list of texts is needed with a list of labels or tags, not str"),
    ],
)
def test_wrong_input_has_one_line(texts: Any, labels: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(w2v.W2VError, match=message) as error:
        train(texts, labels, **settings)
    assert "\n" not in str(error.value)


def test_impossible_thresholds_are_refused() -> None:
    model = train()
    for threshold in (2, -0.1, float("nan"), "x"):
        with pytest.raises(w2v.SettingsError, match=r"threshold is .*: it must be a number from 0 to 1"):
            model.predict(["a film"], threshold=threshold)  # type: ignore[arg-type]


def test_a_given_loss_is_kept() -> None:
    model = train(loss="ova", pooling="mean")
    assert (model.settings.loss, model.options.classifier) == ("ova", "embedded")
    assert train(pooling="mean").settings.loss == "softmax"


def test_labels_have_probabilities_of_their_own_if_asked() -> None:
    texts, labels = ["a x", "b x", "c x"] * 10, ["a", "b", "c"] * 10
    model = train(texts, labels, several=True)
    assert (model.several, model.options.several) == (True, True)
    assert model.predict(["x"]) == [[]]
    assert train(texts, labels).predict_proba(["x"]).sum() == pytest.approx(1)


def test_many_labels_name_faster_losses(caplog: pytest.LogCaptureFixture) -> None:
    texts = [f"word{number}" for number in range(5001)]
    train(texts, texts, loss="softmax", **SMALL | {"epochs": 1})
    assert "5,001 labels: each step scores all of them; loss hs or ns is faster" in caplog.text


def test_unknown_labels_of_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "test.txt"
    path.write_text("__label__pro a good film\n__label__new bad\n")
    model = train()
    scores = score_labels(model.labels, model.read_predictions(path))
    assert (scores.texts, scores.unknown_labels, scores.accuracy) == (2, 1, 0.5)


def test_labels_may_be_arrays() -> None:
    labels = [np.array([label]) for label in LABELS]
    np.testing.assert_array_equal(train(TEXTS, labels).inputs, train().inputs)


def test_the_temperature_of_a_continued_classifier_is_measured_without_it() -> None:
    random = np.random.default_rng(5)
    texts = [" ".join(words) for words in random.choice([f"word{number}" for number in range(50)], (400, 5))]
    labels = random.choice(["pro", "contra"], 400).tolist()  # which no model can predict
    model = train(texts, labels)
    assert train(texts, labels, continue_from=model).temperature == model.temperature > 1
    as_trained = train(texts, labels, calibrated=False)
    assert as_trained.temperature == 1
    np.testing.assert_array_equal(as_trained.inputs, model.inputs)


def test_a_resumed_run_knows_that_texts_have_several_labels(tmp_path: Path) -> None:
    both = [["pro", "short"] if label == "pro" else [label] for label in LABELS]
    train(TEXTS, LABELS, continue_from=train(TEXTS, both), checkpoint=tmp_path)
    assert w2v.resume(tmp_path, TEXTS, labels=LABELS).several


def test_impossible_values_are_refused(tmp_path: Path) -> None:
    model = train()
    with pytest.raises(w2v.SettingsError, match="k 0: it must be a whole number, 1 or more"):
        model.predict(["good"], k=0)
    with pytest.raises(w2v.W2VError, match="there are no texts to score"):
        model.evaluate([], [])
    replace(model, temperature=float("nan")).save(tmp_path / "nan.safetensors")
    with pytest.raises(w2v.W2VError, match="damaged: its temperature or its loss is impossible"):
        w2v.load(tmp_path / "nan.safetensors")
    replace(model, options=replace(model.options, pooling="mean")).save(tmp_path / "mean.safetensors")
    with pytest.raises(w2v.W2VError, match="damaged: it has pooling mean, and an idf"):
        w2v.load(tmp_path / "mean.safetensors")


def test_an_explanation_and_a_prediction_leave_out_labels_alike() -> None:
    model = train(tokenize="words")
    explained = model.explain("a good __label__x film")
    assert explained.probability == model.predict(["a good film"])[0][0][1]
    assert "good film" in {name for name, _ in explained.parts}


def test_texts_without_words_or_labels_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    model = train([*TEXTS, "", None, "some words"], [*LABELS, "pro", "pro", None])
    assert "skipped 3 texts without words or without a label" in caplog.text
    assert model.metrics["texts"] == 60


def test_messages_name_the_file_and_its_row(tmp_path: Path) -> None:
    for name, label in (("a", '"pro"'), ("b", "1.5")):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"text": "x", "label": {label}}}\n')
    message = r"b\.jsonl, row 1: the label or tag 1\.5 is neither text nor a whole number"
    with pytest.raises(w2v.W2VError, match=message):
        w2v.train_classifier(tmp_path, "label", column="text")
    with pytest.raises(w2v.W2VError, match=message):
        score_file(train(), Corpus(tmp_path), labels="label", column="text")


def test_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train().save(tmp_path / "model.safetensors")
    calls, read = list[Any](), registry.read
    monkeypatch.setattr(registry, "read", lambda *given: calls.append(given) or read(*given))
    assert isinstance(w2v.load(tmp_path / "model.safetensors"), w2v.Classifier)
    assert len(calls) == 1
    assert isinstance(w2v.load(tmp_path / "model.safetensors", limit=3), w2v.KeyedVectors)


def test_texts_are_scored_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = list[int]()

    def score(labels: list[str], blocks: Iterable[Predictions], **limits: Any) -> LabelScores:
        return score_labels(labels, (sizes.append(len(one.probabilities)) or one for one in blocks), **limits)

    monkeypatch.setattr(classifier, "SCORES_AT_ONCE", 14)
    monkeypatch.setattr(classifier, "score_labels", score)
    assert train().evaluate(TEXTS, LABELS).accuracy == 1
    assert (max(sizes), sum(sizes)) == (7, len(TEXTS))


@pytest.mark.parametrize("settings", [{}, {"classifier": "embedded", "vector_size": 3}], ids=["direct", "embedded"])
def test_a_prediction_needs_no_memory_for_the_whole_vocabulary(settings: dict[str, Any]) -> None:
    words = [f"word{number}" for number in range(50_000)]
    texts = [" ".join(words[start : start + 200]) for start in range(0, len(words), 200)]
    model = train(texts, ["pro", "contra"] * 125, word_ngrams=1, epochs=1, **settings)
    model.predict(["word1 new"])  # prepares the model
    assert memory_of(lambda: model.predict(["word1 new"])) < len(words)
