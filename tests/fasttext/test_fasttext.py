"""w2v.fasttext without fastText itself; `make compat` compares the two."""

import importlib
import pickle
import struct
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import w2v.fasttext
from tests.faults.fasttext_classifier import LABELS, WORDS, File
from w2v import Classifier, W2VError
from w2v._vectors.cosines import unit
from w2v.data import make
from w2v.fasttext import FastText, util
from w2v.fasttext.FastText import _FastText

OPTIONS: dict[str, Any] = {"dim": 8, "bucket": 300, "thread": 1, "lr": 0.2, "minCount": 2, "epoch": 2}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fasttext") / "text.txt"
    path.write_text("".join(make.corpus(20_000, seed=1)))
    return path


@pytest.fixture(scope="module")
def model(text: Path) -> _FastText:
    return w2v.fasttext.train_unsupervised(text, **OPTIONS)


@pytest.mark.parametrize(
    "options", [{}, {"model": "cbow"}, {"maxn": 0}, {"loss": "hs"}, {"loss": "softmax", "epoch": 1}]
)
def test_trained_models_can_be_saved_and_loaded(text: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    trained = w2v.fasttext.train_unsupervised(text, **OPTIONS | options)
    trained.save_model(tmp_path / "model.bin")
    loaded = w2v.fasttext.load_model(tmp_path / "model.bin")
    assert loaded.words == trained.labels == trained.get_labels()
    assert np.allclose(loaded.get_word_vector("the"), trained["the"], atol=1e-6)
    assert np.allclose(loaded["kingdomish"], trained["kingdomish"], atol=1e-6)
    assert np.allclose(loaded.get_input_matrix(), trained.get_input_matrix(), atol=1e-5)
    if options.get("loss") != "hs":
        assert np.allclose(loaded.get_output_matrix(), trained.get_output_matrix())
    loaded.save_model(tmp_path / "copy.bin")
    assert (tmp_path / "copy.bin").read_bytes() == (tmp_path / "model.bin").read_bytes()
    assert trained.get_dimension() == trained.dim == 8
    assert not trained.is_quantized()


def test_vectors_are_means_of_the_rows_of_subwords(model: _FastText) -> None:
    rows = model.get_input_matrix()
    for word in ("the", "kingdomish", "東京"):
        subwords, numbers = model.get_subwords(word)
        assert len(subwords) == len(numbers)
        assert np.allclose(model[word], rows[numbers].mean(axis=0), atol=1e-5)
        for subword, number in list(zip(subwords, numbers.tolist(), strict=True))[word in model :]:
            assert model.get_subword_id(subword) == number
    assert model.get_subwords("the")[0][0] == "the"
    assert (model.get_input_vector(3) == rows[3]).all()
    assert (model.get_word_vectors(["the", "kingdomish", "of"])[1] == model["kingdomish"]).all()
    assert not model[""].any()
    assert model.get_subword_id("") == len(model.words) + 2166136261 % 300
    assert model.get_subword_id("</s>") == len(model.words) + 3617362777 % 300
    for word in (3, None):
        with pytest.raises(TypeError, match=r"^a word must be a str or bytes, not (int|NoneType): "):
            model.get_word_vector(word)  # type: ignore[arg-type]


def test_words_can_be_bytes(model: _FastText) -> None:
    for word in ("the", "kingdomish", "東京"):
        encoded = word.encode()
        np.testing.assert_array_equal(model[encoded], model[word])
        assert model.get_word_id(encoded) == model.get_word_id(word)
        assert model.get_subwords(encoded)[0] == model.get_subwords(word)[0]
        assert model.get_nearest_neighbors(encoded, k=3) == model.get_nearest_neighbors(word, k=3)
        assert model.get_subword_id(encoded) == model.get_subword_id(word)
    assert model.get_analogies(b"the", b"of", b"and", k=3) == model.get_analogies("the", "of", "and", k=3)
    assert b"the" not in model  # as in fastText


def test_words_without_known_ngrams_have_zeros(text: Path) -> None:
    longer = w2v.fasttext.train_unsupervised(text, **OPTIONS | {"minn": 5, "maxn": 3})  # as in fastText
    assert not longer["kingdomish"].any()
    whole = w2v.fasttext.train_unsupervised(text, **OPTIONS | {"maxn": 0})
    assert not whole["kingdomish"].any()
    assert np.allclose(whole.get_sentence_vector("the kingdomish"), unit(whole.get_word_vectors(["the"]))[0], atol=1e-6)
    assert "kingdomish" not in whole
    assert whole.get_subwords("kingdomish")[0] == []
    with pytest.raises(ValueError, match="the model has no n-grams"):
        whole.get_subword_id("ing")


def test_sentence_vector_is_the_mean_of_unit_vectors(model: _FastText) -> None:
    expected = unit(model.get_word_vectors(["the", "kingdomish"])).mean(axis=0)
    assert np.allclose(model.get_sentence_vector("the  kingdomish"), expected, atol=1e-6)
    assert not model.get_sentence_vector("").any()
    assert model.get_sentence_vectors(["the", "", "of the"]).shape == (3, 8)
    words = model.get_sentence_vector("the\u00a0of \x1cthe\v\r\fof")  # only ASCII white space separates words
    assert np.allclose(words, unit(model.get_word_vectors(["the\u00a0of", "\x1cthe", "of"])).mean(axis=0), atol=1e-6)
    with pytest.raises(ValueError, match="a text has several lines"):
        model.get_sentence_vector("the\nof")


def test_neighbours_are_pairs_of_cosine_and_word(model: _FastText) -> None:
    cosine, word = model.get_nearest_neighbors("the", k=3)[0]
    assert cosine == pytest.approx(float(unit(model["the"]) @ unit(model[word])), abs=1e-5)
    assert len(model.get_nearest_neighbors("the", k=3)) == 3
    assert {"the", "of", "and"}.isdisjoint(word for _, word in model.get_analogies("the", "of", "and"))
    words, counts = model.get_words(include_freq=True)
    assert words == model.words
    assert (np.diff(counts) <= 0).all()
    assert model.get_word_id(words[5]) == 5
    assert model.get_word_id("kingdomish") == -1


def test_util_reduces_models_and_finds_neighbours(text: Path) -> None:
    model = w2v.fasttext.train_unsupervised(text, **OPTIONS)
    before = model.get_input_matrix()
    assert util.reduce_model(model, 3) is model
    assert model["the"].shape == model["kingdomish"].shape == (3,)
    assert model.get_input_matrix().shape == (len(before), 3)
    rows, numbers = model.get_input_matrix(), model.get_subwords("kingdomish")[1]
    assert np.allclose(model["kingdomish"], rows[numbers].mean(axis=0), atol=1e-5)
    vectors = np.array([[1, 0], [0, 2], [3, 0]], np.float32)
    assert util.find_nearest_neighbor(np.array([1, 0], np.float32), vectors, {2}) == 0
    with pytest.raises(ValueError, match="it must be from 1 to 3"):
        util.reduce_model(model, 4)
    with pytest.raises(ValueError, match="the model has"):
        model.set_matrices(rows[1:], model.get_output_matrix())


def test_tokens_are_separated_by_white_space_and_lines_end_with_a_word() -> None:
    assert w2v.fasttext.tokenize("a b\n\tc\vd\n") == ["a", "b", "</s>", "c", "d", "</s>"]


def test_functions_that_are_missing_raise_one_line(model: _FastText) -> None:
    for old in (w2v.fasttext.skipgram, w2v.fasttext.supervised):
        with pytest.raises(ValueError, match="use train_supervised"):
            old("text.txt")
    with pytest.raises(NotImplementedError, match="downloads nothing"):
        util.download_model("en")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(model, "nothing")  # noqa: B009


def test_models_without_labels_answer_as_fasttext_does(model: _FastText, text: Path) -> None:
    assert hasattr(model, "predict")
    for given in ("text", ["text", "other"]):
        with pytest.raises(ValueError, match=r"^Model needs to be supervised for prediction!$"):
            model.predict(given)
    with pytest.raises(ValueError, match="a text has several lines"):
        model.predict("two\nlines")
    with pytest.raises(ValueError, match="only support quantization of supervised models"):
        model.quantize()
    number, precision, recall = model.test(text)
    assert (number, np.isnan(precision), np.isnan(recall), model.test_label(text)) == (0, True, True, {})
    with pytest.raises(ValueError, match="missing cannot be opened"):
        model.test("missing")
    assert model.get_line("the  of a") == (["the", "of", "a", "</s>"], [])
    assert model.get_line(["the of", "a"]) == ([["the", "of", "</s>"], ["a", "</s>"]], [[], []])
    assert model.get_label_id("__label__x") == -1


def test_arguments_of_training_are_attributes(text: Path, tmp_path: Path) -> None:
    options = {"ws": 3, "neg": 4, "t": 0.01, "minn": 2, "maxn": 4, "wordNgrams": 2, "label": "__l__"}
    trained = w2v.fasttext.train_unsupervised(str(text), "cbow", **OPTIONS | options)
    expected = OPTIONS | options | {"minCountLabel": 0, "lrUpdateRate": 100, "verbose": 2, "pretrainedVectors": ""}
    assert {name: getattr(trained, name) for name in expected} == expected
    assert str(trained.loss) == "loss_name.ns"
    assert trained.f.getArgs().model is FastText.model_name.cbow
    assert trained.f.getNN("the", 3) == trained.get_nearest_neighbors("the", 3)
    assert trained.f.getVocab()[0] == trained.words
    assert not trained.f.isQuant()
    trained.save_model(tmp_path / "model.bin")
    loaded = w2v.fasttext.load_model(tmp_path / "model.bin")
    for name in ("dim", "ws", "epoch", "minCount", "neg", "t", "minn", "maxn", "bucket", "loss"):
        assert getattr(loaded, name) == getattr(trained, name), name
    loaded.set_args(SimpleNamespace(**vars(trained.f.getArgs()) | {"lr": 0.7}))
    assert (loaded.lr, loaded.label) == (0.7, "__l__")
    loaded.set_args()  # has no effect
    assert loaded.lr == 0.7


def test_arguments_can_have_names_in_snake_case(text: Path) -> None:
    options = {name: value for name, value in OPTIONS.items() if name != "minCount"}
    trained = w2v.fasttext.train_unsupervised(
        text, **options, min_count=2, word_ngrams=3, lr_update_rate=50, label_prefix="l", pretrained_vectors=""
    )
    found = trained.minCount, trained.wordNgrams, trained.lrUpdateRate, trained.label, trained.pretrainedVectors
    assert found == (2, 3, 50, "l", "")
    with pytest.raises(TypeError, match="multiple values for argument 'minCount'"):
        w2v.fasttext.train_unsupervised(text, minCount=2, min_count=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        w2v.fasttext.train_unsupervised(text, nothing=2)
    for options in ({"loss": "nce"}, {"model": "supervisedly"}):
        with pytest.raises(ValueError, match="choose ns, hs, softmax or ova, and skipgram or cbow"):
            w2v.fasttext.train_unsupervised(text, **options)


def test_floret_is_reported_as_what_it_is(model: _FastText, tmp_path: Path) -> None:
    model.save_model(tmp_path / "model.bin")
    content = (tmp_path / "model.bin").read_bytes()
    # floret stores its mode and its number of hashes before lrUpdateRate.
    (tmp_path / "floret.bin").write_bytes(content[:52] + struct.pack("<2i", 2, 4) + content[52:])
    with pytest.raises(W2VError, match=r"floret\.bin: a floret model: save its vectors as \.vec"):
        w2v.fasttext.load_model(tmp_path / "floret.bin")
    with pytest.raises(ValueError, match="No such file"):
        w2v.fasttext.load_model(tmp_path / "missing.bin")


def test_installed_as_fasttext() -> None:
    before = {name: module for name, module in sys.modules.items() if name.startswith("fasttext")}
    with w2v.fasttext.install():
        assert importlib.import_module("fasttext") is w2v.fasttext
        assert importlib.import_module("fasttext.util") is util
        assert importlib.import_module("fasttext.FastText")._FastText is _FastText
    assert {name: module for name, module in sys.modules.items() if name.startswith("fasttext")} == before


# -- classifiers -------------------------------------------------------------------------------------

LINES = ["ab köln c", "", "unknown", "c c"]


@pytest.fixture
def classifier(tmp_path: Path) -> _FastText:
    (tmp_path / "file.bin").write_bytes(File().data())
    return _FastText(str(tmp_path / "file.bin"))


def test_predictions_have_the_types_of_fasttext(classifier: _FastText, tmp_path: Path) -> None:
    expected = Classifier.load(tmp_path / "file.bin").predict(LINES, k=None)
    for line, pairs in zip(LINES, expected, strict=True):
        labels, values = classifier.predict(line, k=-1)
        assert labels == tuple(f"__label__{label}" for label, _ in pairs)
        assert values.dtype == np.float64
        assert values.tolist() == pytest.approx([value for _, value in pairs], abs=1e-6)
        assert classifier.f.predict(f"{line}\n", 1) == [(values[0], labels[0])]
    all_labels, all_values = classifier.predict(LINES, k=2)
    assert all_labels == [[f"__label__{label}" for label, _ in pairs[:2]] for pairs in expected]
    assert {each.dtype for each in all_values} == {np.dtype(np.float32)}
    assert np.allclose(all_values, [[value for _, value in pairs[:2]] for pairs in expected])
    assert classifier.f.multilinePredict([f"{line}\n" for line in LINES], 2)[0] == all_labels
    assert classifier.predict([]) == ([], [])
    np.testing.assert_array_equal(classifier.predict("ab\0c </s> köln")[1], classifier.predict("ab c")[1])
    highest = float(classifier.predict(LINES[0])[1][0])
    assert len(classifier.predict(LINES[0], threshold=highest - 2e-5)[0]) == 1
    labels, values = classifier.predict(LINES[0], threshold=highest)
    assert (labels, values.tolist()) == ((), [])
    for given, message in ((("two\nlines",), "several lines"), (("a", 0), "k needs to be 1 or higher!")):
        with pytest.raises(ValueError, match=message):
            classifier.predict(*given)


def test_labels_and_words_of_a_classifier(classifier: _FastText) -> None:
    labels, counts = classifier.get_labels(include_freq=True)
    assert labels == classifier.labels == classifier.get_labels() == [f"__label__{label}" for label in LABELS]
    assert (counts.tolist(), counts.dtype) == ([*LABELS.values()], np.int64)
    assert (classifier.words, classifier.get_words()) == ([*WORDS], [*WORDS])
    assert (classifier.get_label_id("__label__y"), classifier.get_label_id("y")) == (1, -1)
    assert "köln" in classifier
    line = "ab __label__y other __label__unknown"
    assert classifier.get_line(line) == (["ab", "other", "</s>"], ["__label__y"])
    assert classifier.get_line("ab </s> c") == (["ab", "</s>"], [])
    assert classifier.get_line([line, "c"]) == ([["ab", "other", "</s>"], ["c", "</s>"]], [["__label__y"], []])
    arguments = classifier.f.getArgs()
    assert (str(arguments.model), str(arguments.loss)) == ("model_name.supervised", "loss_name.softmax")
    assert (classifier.wordNgrams, classifier.minn, classifier.maxn, classifier.bucket) == (2, 2, 3, 31)


def test_vectors_of_a_classifier(classifier: _FastText, tmp_path: Path) -> None:
    file = File()
    file.data()
    np.testing.assert_array_equal(classifier.get_input_matrix(), file.inputs)
    np.testing.assert_array_equal(classifier.get_output_matrix(), file.outputs)
    for word in ("ab", "unknown"):
        names, rows = classifier.get_subwords(word)
        assert len(names) == len(rows)
        np.testing.assert_allclose(classifier[word], file.inputs[rows].mean(axis=0), atol=1e-6)
    end = classifier.get_word_id("</s>")
    np.testing.assert_array_equal(classifier.get_sentence_vector(""), file.inputs[end])
    assert classifier.get_nearest_neighbors("ab", k=2)[0][0] <= 1
    with pytest.raises(NotImplementedError, match="cannot replace the matrices of a classifier"):
        classifier.set_matrices(file.inputs, file.outputs)
    pruned = File(kept=[4, 2], part_size=2)
    (tmp_path / "model.ftz").write_bytes(pruned.data())
    quantized = w2v.fasttext.load_model(tmp_path / "model.ftz")
    assert (quantized.is_quantized(), classifier.is_quantized()) == (True, False)
    with pytest.raises(ValueError, match="Can't get quantized Matrix"):
        quantized.get_input_matrix()
    with pytest.raises(NotImplementedError, match="no word vectors of a model with pruned n-grams"):
        quantized["ab"]
    quantized.save_model(tmp_path / "copy.ftz")
    assert (tmp_path / "copy.ftz").read_bytes() == pruned.data()


def test_quantize_has_the_arguments_and_results_of_fasttext(tmp_path: Path) -> None:
    train = tmp_path / "train.txt"
    train.write_text("".join(f"__label__{n % 2} w{n % 2} other{n % 9}\n" for n in range(300)))
    options = {"wordNgrams": 2, "bucket": 100, "dim": 4, "lr": 0.5, "epoch": 10, "thread": 1}
    dense, small, further = (w2v.fasttext.train_supervised(train, **options) for _ in range(3))
    with pytest.raises(ValueError, match="Need input file path if retraining"):
        small.quantize(retrain=True)
    small.quantize(cutoff=12, qnorm=True)
    further.quantize(str(train), cutoff=12, retrain=True, epoch=3, lr=0.1, verbose=0, qnorm=True)
    assert (dense.is_quantized(), small.is_quantized(), further.is_quantized()) == (False, True, True)
    assert small.test(train) == further.test(train) == dense.test(train)
    assert small.predict("w1", k=2)[1].tolist() != further.predict("w1", k=2)[1].tolist()
    small.save_model(tmp_path / "small.ftz")
    again = w2v.fasttext.load_model(tmp_path / "small.ftz")
    assert again.predict(["w1", "w0"], k=2)[0] == small.predict(["w1", "w0"], k=2)[0]
    np.testing.assert_array_equal(again.predict("w1 w0", k=2)[1], small.predict("w1 w0", k=2)[1])


def test_files_with_labels_are_scored(classifier: _FastText, tmp_path: Path) -> None:
    path = tmp_path / "test.txt"
    lines = ["__label__x ab", "__label__y __label__z c c", "__label__unknown ab", "no label", "__label__x"]
    path.write_text("\n".join(lines) + "\n")
    best = [label for line in ("ab", "c c", "") for label in classifier.predict(line)[0]]
    own = [["__label__x"], ["__label__y", "__label__z"], ["__label__x"]]
    hits = [label in labels for label, labels in zip(best, own, strict=True)]
    assert classifier.test(path) == (3, sum(hits) / 3, sum(hits) / 4)
    found = classifier.test_label(path)
    assert [*found] == classifier.labels
    for label, scores in found.items():
        predicted, true = best.count(label), sum(label in labels for labels in own)
        right = sum(hit and each == label for hit, each in zip(hits, best, strict=True))
        expected = [right / predicted if predicted else np.nan, right / true, 2 * right / (predicted + true)]
        assert [*scores.values()] == pytest.approx(expected, nan_ok=True)
    path.write_text("no label\n")
    assert (classifier.test(path)[0], np.isnan(classifier.test(path)[1])) == (0, True)
    assert all(np.isnan(scores["f1score"]) for scores in classifier.test_label(path).values())
    with pytest.raises(ValueError, match="missing cannot be opened"):
        classifier.test("missing")


@pytest.mark.parametrize("loss", ["softmax", "hs", "ns", "ova"])
def test_classifiers_are_trained_saved_and_loaded(loss: str, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("__label__sport a great match\n__label__film a dull film\n__label__home tea\n" * 30)
    trained = w2v.fasttext.train_supervised(
        str(path), loss=loss, dim=6, epoch=20, lr=0.5, word_ngrams=2, minn=1, maxn=2, bucket=50, thread=1
    )
    lines = ["a match", "the film", "tea"]
    assert trained.predict(lines)[0] == [["__label__sport"], ["__label__film"], ["__label__home"]]
    assert trained.test(path)[1:] == (1, 1)
    trained.save_model(tmp_path / "model.bin")
    loaded = w2v.fasttext.load_model(tmp_path / "model.bin")
    np.testing.assert_allclose(loaded.predict(lines)[1], trained.predict(lines)[1], atol=1e-6)
    np.testing.assert_array_equal(loaded.get_input_matrix(), trained.get_input_matrix())
    np.testing.assert_array_equal(loaded.get_output_matrix(), trained.get_output_matrix())
    for name in ("dim", "epoch", "minCount", "neg", "wordNgrams", "minn", "maxn", "bucket", "loss"):
        assert getattr(loaded, name) == getattr(trained, name), name


TEXTS = {"sport": "match team goal ball", "film": "actor scene plot film", "home": "tea house bed garden"}


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    random, path = np.random.default_rng(1), tmp_path / "labelled.txt"
    lines = (f"__label__{label} {' '.join(random.choice(words.split(), 3))} the\n" for label, words in TEXTS.items())
    path.write_text("".join([*lines] * 8) + "__label__rare match\n")
    return path


@pytest.mark.parametrize(
    ("metric", "ours"),
    [
        ("f1:__label__film", "f1:film"),
        ("precisionAtRecall:80", "precision_at_recall:0.8"),
        ("recallAtPrecision:7.5:__label__film", "recall_at_precision:0.075:film"),
    ],
)
def test_autotune_searches_for_the_arguments_that_are_not_given(
    labelled: Path, monkeypatch: pytest.MonkeyPatch, metric: str, ours: str
) -> None:
    calls = list[dict[str, Any]]()

    def search(texts: list[str], labels: list[list[str]], **given: Any) -> Any:
        calls.append(given)
        return SimpleNamespace(fixed={name: given[name] for name in FIXED}, settings_for=lambda best: best, best=BEST)

    FIXED = ("loss", "vector_size", "workers", "seed", "pooling", "classifier", "label_prefix")
    BEST = {"epochs": 7, "alpha": 0.75, "word_ngrams": 3, "subwords": "2-4", "min_count": 2}
    monkeypatch.setattr(FastText, "search_labels", search)
    model = w2v.fasttext.train_supervised(
        str(labelled), dim=5, thread=1, autotune_validation_file=labelled, autotuneMetric=metric, autotuneDuration=9
    )
    (given,) = calls
    assert {"epochs", "alpha", "min_alpha", "word_ngrams", "subwords", "min_count"}.isdisjoint(given)
    assert (given["vector_size"], given["loss"], given["pooling"]) == (5, "softmax", "mean")
    assert (given["metric"], given["time"], given["k"], len(given["held_out"][0])) == (ours, "9s", 1, 25)
    found = model.epoch, model.lr, model.dim, model.wordNgrams, model.minn, model.maxn, model.minCount
    assert found == (7, 0.75, 5, 3, 2, 4, 2)


def test_autotune_trains_with_the_best_arguments(labelled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("w2v._training.tune_labels.CHOICES", {"epochs": (10, 30)})
    monkeypatch.setattr("w2v._training.tune_labels.VECTOR_SIZES", (100,))
    model = w2v.fasttext.train_supervised(labelled, minn=2, maxn=3, thread=1, autotuneValidationFile=labelled)
    assert model.epoch in (10, 30)
    assert (model.minn, model.maxn) == (2, 3)
    assert model.test(labelled)[1] > 0.9


def test_autotune_keeps_a_minn_without_maxn(labelled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("w2v._training.tune_labels.CHOICES", {"epochs": (10,)})
    monkeypatch.setattr("w2v._training.tune_labels.VECTOR_SIZES", (100,))
    model = w2v.fasttext.train_supervised(labelled, minn=2, thread=1, autotuneValidationFile=labelled)
    assert (model.minn, model.maxn) == (2, 5)


def test_autotune_quantizes_to_a_size(labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("w2v._training.tune_labels.CHOICES", {"epochs": (10,)})
    monkeypatch.setattr("w2v._training.tune_labels.VECTOR_SIZES", (100,))
    small = {"autotuneValidationFile": labelled, "autotuneModelSize": "120K"}
    model = w2v.fasttext.train_supervised(labelled, minn=2, maxn=3, thread=1, **small)
    assert model.is_quantized()
    model.save_model(tmp_path / "small.ftz")
    assert model.get_dimension() == 57  # vectors for which half of the file has room
    assert 60_000 < (tmp_path / "small.ftz").stat().st_size <= 120_000
    assert model.test(labelled)[1] > 0.8
    monkeypatch.setattr(FastText, "search_labels", pytest.fail)  # a wrong size is refused before the search
    for size, given, message in (
        ("2T", {}, "size '2T'"),
        ("1K", {}, "autotuneModelSize 1K: at most 0 dimensions fit"),
        ("50K", {"dim": 100}, "autotuneModelSize 50K: at most 48 dimensions fit"),
    ):
        with pytest.raises(ValueError, match=message):
            w2v.fasttext.train_supervised(labelled, autotuneValidationFile=labelled, autotuneModelSize=size, **given)


def test_rare_labels_are_left_out(labelled: Path) -> None:
    model = w2v.fasttext.train_supervised(labelled, minCountLabel=2, thread=1)
    assert sorted(model.labels) == [f"__label__{label}" for label in sorted(TEXTS)]
    assert model.minCountLabel == 2
    assert model.test(labelled)[0] == 24  # the line of the rare label does not count


@pytest.mark.parametrize("kind", ["classifier", "classifier file", "words", "words file"])
def test_models_can_be_pickled(labelled: Path, text: Path, tmp_path: Path, kind: str) -> None:
    if kind.startswith("classifier"):
        model = w2v.fasttext.train_supervised(labelled, dim=4, thread=1, wordNgrams=2, bucket=50)
    else:
        model = w2v.fasttext.train_unsupervised(text, **OPTIONS)
    if "file" in kind:
        model.save_model(tmp_path / "model.bin")
        model = w2v.fasttext.load_model(tmp_path / "model.bin")
    model.allow_newlines = True
    copy = pickle.loads(pickle.dumps(model))
    (tmp_path / "model.bin").unlink(missing_ok=True)
    np.testing.assert_array_equal(copy["match"], model["match"])
    np.testing.assert_array_equal(copy.get_output_matrix(), model.get_output_matrix())
    assert (copy.epoch, copy.allow_newlines, copy.words) == (model.epoch, True, model.words)
    if copy.f.getArgs().model is FastText.model_name.supervised:
        np.testing.assert_array_equal(copy.predict("a match", k=-1)[1], model.predict("a match", k=-1)[1])
    copy.save_model(tmp_path / "copy.bin")
    model.save_model(tmp_path / "again.bin")
    assert (tmp_path / "copy.bin").read_bytes() == (tmp_path / "again.bin").read_bytes()


@pytest.mark.parametrize("loss", ["softmax", "hs", "ns", "ova"])
def test_training_twice_gives_the_same_bits(labelled: Path, tmp_path: Path, loss: str) -> None:
    """fastText gives other bits on each run, even with one thread and a seed."""
    for name in ("one.bin", "two.bin"):
        model = w2v.fasttext.train_supervised(labelled, loss=loss, wordNgrams=2, maxn=3, bucket=99, dim=8, thread=1)
        model.save_model(tmp_path / name)
    assert (tmp_path / "one.bin").read_bytes() == (tmp_path / "two.bin").read_bytes()


def test_newlines_and_probabilities_up_to_one_are_settings(classifier: _FastText) -> None:
    expected = classifier.predict("ab köln", k=-1)
    classifier.allow_newlines = True
    assert classifier.predict("ab\nköln\n", k=-1)[0] == expected[0]
    np.testing.assert_array_equal(classifier.predict("ab\nköln\n", k=-1)[1], expected[1])
    assert classifier.get_line("ab\nköln") == classifier.get_line("ab köln")
    np.testing.assert_array_equal(classifier.get_sentence_vector("ab\nc"), classifier.get_sentence_vector("ab c"))
    assert not _FastText.allow_newlines
    sure = replace(classifier._classifier, temperature=1e-6) if classifier._classifier else None
    classifier._classifier = sure
    assert classifier.predict("ab")[1] > 1
    classifier.clip_probabilities = True
    assert classifier.predict("ab")[1] == 1


def test_meter_has_the_precision_and_recall_at_each_threshold(labelled: Path) -> None:
    model = w2v.fasttext.train_supervised(labelled, dim=4, epoch=25, lr=0.5, thread=1)
    meter = model.get_meter(labelled)
    labels, values = model.predict([line.split(" ", 1)[1] for line in labelled.read_text().splitlines()], k=-1)
    for label in model.labels:
        scores, is_true = meter.score_vs_true(label)
        own = sorted(min(1.0, float(each[names.index(label)])) for names, each in zip(labels, values, strict=True))
        np.testing.assert_allclose(scores, own)
        assert is_true.sum() == dict(zip(*model.get_labels(include_freq=True), strict=True))[label]
    precision, recall = meter.precision_recall_curve()
    assert (precision[-1], recall[-1], recall[-2]) == (1, 0, 1)
    assert meter.precision_at_recall(0.5) == precision[:-1][recall[:-1] >= 0.5].max()
    assert meter.recall_at_precision(0.9) == recall[precision >= 0.9].max()
    assert meter.precision_at_recall(0.5, "__label__film") == 1
    labelled.write_text("__label__home match team goal\n")
    scores, is_true = model.get_meter(labelled, k=1).score_vs_true("__label__home")
    assert (scores.tolist(), is_true.tolist()) == ([-1], [1])  # it was not predicted
    with pytest.raises(ValueError, match="k needs to be 1 or higher"):
        model.get_meter(labelled, k=0)
    with pytest.raises(ValueError, match="missing cannot be opened"):
        model.get_meter("missing")
