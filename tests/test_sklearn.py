"""WordVectors and TextClassifier with scikit-learn's own checks and tools."""

import copy
import pickle
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks as checks
from sklearn.utils.validation import check_is_fitted, validate_data

import w2v
from w2v._vectors.cosines import unit
from w2v.sklearn import TextClassifier, WordVectors

TEXTS = ["the king and his queen", "a prince", "paris is in france", "rome is in italy"] * 3
KINDS = ["people", "people", "places", "places"] * 3
BOTH = np.array([[1, 0], [1, 1], [0, 1], [0, 1]] * 3)
ESTIMATORS = [
    WordVectors(), WordVectors("m.bin", "mean", {"vector_size": 5}),
    TextClassifier(), TextClassifier(1, epochs=5, class_weight="balanced", training={"workers": 1}),
]  # fmt: skip


class TableClassifier(TextClassifier):
    """A TextClassifier of tables of numbers, which become words, so that all checks of scikit-learn can run."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "TableClassifier":
        if y is not None:
            X, y = validate_data(self, X, y, multi_output=True)
        super().fit(self._words(X), y, sample_weight)
        return self

    def predict_proba(self, X: Any) -> Any:
        check_is_fitted(self)
        return super().predict_proba(self._words(validate_data(self, X, reset=False)))

    def _words(self, X: Any) -> list[list[str]]:
        return [[f"{column}:{value:.0f}" for column, value in enumerate(3 * row)] for row in X]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.non_deterministic = True, False, False
        return tags


@pytest.mark.filterwarnings("ignore:Can't test estimator")  # scikit-learn's checks that call fit use tables of numbers
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_estimator_passes_scikit_learns_checks(estimator: WordVectors | TextClassifier) -> None:
    checks.check_estimator(estimator)
    for check in (
        checks.check_no_attributes_set_in_init,
        checks.check_get_params_invariance,
        checks.check_set_params,
        checks.check_estimator_repr,
        checks.check_mixin_order,
        checks.check_parameters_default_constructible,
        checks.check_valid_tag_types,
    ):
        check(type(estimator).__name__, estimator)


def test_grid_search_over_a_pipeline_shares_the_vectors(model: Path) -> None:
    vectors = w2v.load(model)
    steps = make_pipeline(WordVectors(vectors), LogisticRegression(C=100))
    search = GridSearchCV(steps, {"wordvectors__weights": ["mean", "idf", "sif"]}, cv=3).fit(np.array(TEXTS), KINDS)
    assert search.best_score_ == 1
    assert search.best_estimator_[0].vectors_ is vectors  # not copied


def test_output_can_be_a_data_frame(model: Path) -> None:
    table = pd.DataFrame({"text": TEXTS, "kind": KINDS}, index=range(100, 112))
    steps = make_column_transformer((WordVectors(model), "text")).set_output(transform="pandas")
    found = steps.fit_transform(table)
    assert list(found.columns[:2]) == ["wordvectors__wordvectors0", "wordvectors__wordvectors1"]
    assert list(found.index) == list(table.index)
    np.testing.assert_array_equal(found.to_numpy(), unit(w2v.encode(w2v.load(model), TEXTS)))


def test_fit_trains_on_the_texts() -> None:
    training = {"vector_size": 4, "min_count": 1, "epochs": 1, "workers": 1}
    words = [text.split() for text in TEXTS]
    found = WordVectors(training=training).fit_transform(words)
    np.testing.assert_array_equal(found, unit(w2v.encode(w2v.train(words, **training), words)))
    assert found.shape == (12, 4)


def test_missing_texts_are_skipped_in_training_and_get_zeros() -> None:
    training = {"vector_size": 4, "min_count": 1, "epochs": 1, "workers": 1}
    texts = pd.Series([*TEXTS, None, float("nan")])
    with pytest.warns(w2v.TextWarning) as caught:
        found = WordVectors(training=training).fit_transform(texts)
    messages = [str(warning.message) for warning in caught if "missing" in str(warning.message)]
    kinds = "(None, NaN, or an empty field of CSV)"
    assert messages == [f"skipped 2 missing texts {kinds}", f"gave zeros to 2 missing texts {kinds}"]
    np.testing.assert_array_equal(found[:12], unit(w2v.encode(w2v.train(TEXTS, **training), TEXTS)))
    assert not found[12:].any()
    estimator = WordVectors(w2v.train(TEXTS, **training))
    with pytest.warns(w2v.TextWarning, match="gave zeros to 1 missing text"):
        np.testing.assert_array_equal(estimator.fit_transform(pyarrow.array([*TEXTS, None])), found[:13])


def test_texts_are_not_opened_as_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("king").mkdir()
    texts = ["king queen", "king"] * 99
    found = WordVectors(training={"vector_size": 4, "min_count": 1, "epochs": 1, "sample": 0}).fit(texts)
    assert set(found.vectors_.index_to_key) == {"king", "queen"}


def test_invalid_input_is_refused(model: Path) -> None:
    with pytest.raises(NotFittedError):
        WordVectors().transform(TEXTS)
    for texts in ("one text", pd.DataFrame({"text": TEXTS}), 5, iter(TEXTS), set(TEXTS), dict.fromkeys(TEXTS)):
        with pytest.raises(ValueError, match="a list of texts is needed, such as one column of a table"):
            WordVectors(model).fit(texts)
    with pytest.raises(ValueError, match=r"each text must be a str, a list of words, or missing \(None, NaN\)"):
        WordVectors(model).fit(pd.Series(["a", 5]))
    with pytest.raises(ValueError, match="training has no effect with a model"):
        WordVectors(model, training={"epochs": 1}).fit(TEXTS)
    with pytest.raises(w2v.W2VError, match="5 is not a model"):
        WordVectors(5).fit(TEXTS)


def test_weights_that_need_counts_are_refused_by_fit(model: Path, tmp_path: Path) -> None:
    w2v.load(model).save(tmp_path / "m.bin")  # without counts
    for weights in "sif", "idf":
        with pytest.raises(w2v.SettingsError, match=weights):
            WordVectors(tmp_path / "m.bin", weights).fit(TEXTS)
    assert WordVectors(tmp_path / "m.bin", "mean").fit_transform(TEXTS).shape == (12, 50)


def test_classifier_passes_the_checks_that_use_tables() -> None:
    weights = "check_sample_weight_equivalence_on_dense_data"
    expected = {weights: "a weight is a factor of the learning rate, and idf counts each text once"}
    estimator = TableClassifier(training={"workers": 1})
    results = checks.check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
    assert sum(result["status"] == "passed" for result in results) > 50
    assert [result["check_name"] for result in results if result["status"] == "xfail"] == [weights]


@pytest.mark.parametrize(
    "labels",
    [KINDS, np.array([7, 7, -1, -1] * 3), np.array(KINDS) == "people", pd.Series(KINDS), ["a b", "a b", "c", "c"] * 3],
)
def test_classifier_keeps_labels_and_their_order(labels: Any) -> None:
    classifier = TextClassifier().fit(TEXTS, labels)
    np.testing.assert_array_equal(classifier.classes_, np.unique(labels))
    np.testing.assert_array_equal(classifier.predict(TEXTS), labels)
    assert classifier.predict(TEXTS).dtype == classifier.classes_.dtype
    found = classifier.predict_proba(TEXTS)
    assert found.shape == (12, 2)
    np.testing.assert_array_equal(classifier.classes_[found.argmax(axis=1)], labels)
    assert classifier.score(TEXTS, labels) == 1


def test_classifier_predicts_as_train_classifier_does() -> None:
    classifier = TextClassifier(training={"workers": 1}).fit(TEXTS, KINDS)
    model = w2v.train_classifier(TEXTS, KINDS, workers=1)
    assert classifier.classifier_.labels == model.labels
    order = [model.labels.index(label) for label in classifier.classes_]
    np.testing.assert_array_equal(classifier.predict_proba(TEXTS), model.predict_proba(TEXTS)[:, order])
    assert classifier.classifier_.settings == model.settings


def test_classifier_gives_texts_without_known_words_the_prior() -> None:
    classifier = TextClassifier().fit(TEXTS[:11], KINDS[:11], sample_weight=[1] * 8 + [2, 1, 0])
    found = classifier.predict_proba(["", "paris"])
    np.testing.assert_allclose(found[0], [7 / 11, 4 / 11])
    assert not np.isnan(found).any()
    assert classifier.predict([""]) == "people"


@pytest.mark.parametrize("indicator", [BOTH, csr_array(BOTH), BOTH.tolist()], ids=["array", "sparse", "list"])
def test_classifier_predicts_an_indicator(indicator: Any) -> None:
    classifier = TextClassifier().fit(TEXTS, indicator)
    assert classifier.classifier_.several
    np.testing.assert_array_equal(classifier.predict(TEXTS), BOTH)
    np.testing.assert_allclose(classifier.predict_proba([""])[0], [0.5, 0.75])
    assert classifier.score(TEXTS, BOTH) == 1
    with pytest.raises(ValueError, match="class_weight needs texts with one label each"):
        TextClassifier(class_weight="balanced").fit(TEXTS, BOTH)


def test_an_indicator_gives_texts_several_labels_even_if_each_has_one() -> None:
    one = np.eye(2, dtype=int)[[0, 0, 1, 1] * 3]
    classifier = TextClassifier().fit(TEXTS, one)
    assert classifier.classifier_.several
    np.testing.assert_array_equal(classifier.predict(TEXTS), one)


def test_class_weights_act_like_weights_of_texts() -> None:
    texts, kinds = ["king france", "king rome", "king italy"] * 4, ["people", "places", "places"] * 4
    settings: dict[str, Any] = {"word_ngrams": 1, "epochs": 1, "alpha": 0.1, "training": {"workers": 1}}
    of_classes = TextClassifier(class_weight={"people": 3, "places": 1}, **settings).fit(texts, kinds)
    of_texts = TextClassifier(**settings).fit(texts, kinds, [3, 1, 1] * 4)
    np.testing.assert_array_equal(of_classes.predict_proba(texts), of_texts.predict_proba(texts))
    plain = TextClassifier(**settings).fit(texts, kinds)
    balanced = TextClassifier(class_weight="balanced", **settings).fit(texts, kinds)
    assert balanced.predict_proba(["king"])[0, 0] > plain.predict_proba(["king"])[0, 0]
    assert balanced.class_prior_ == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("processes", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_classifier_works_in_pipelines_and_searches(processes: int | None) -> None:
    steps = make_pipeline(FunctionTransformer(), TextClassifier(training={"workers": 1}))
    search = GridSearchCV(steps, {"textclassifier__word_ngrams": [1, 2]}, cv=3, n_jobs=processes)
    search.fit(np.array(TEXTS), KINDS)
    assert search.best_score_ == 1
    log_losses = cross_val_score(clone(search.best_estimator_), TEXTS, KINDS, cv=3, scoring="neg_log_loss")
    assert log_losses.min() > -0.7


def test_fitted_classifier_can_be_pickled_and_copied() -> None:
    fitted = TextClassifier().fit(TEXTS, KINDS)
    for same in pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted):
        np.testing.assert_array_equal(same.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_invalid_input_of_the_classifier_is_refused() -> None:
    with pytest.raises(NotFittedError):
        TextClassifier().predict(TEXTS)
    for texts, labels, message in (
        ("one text", ["a"], "a list of texts is needed"),
        (TEXTS, KINDS[:-1], "inconsistent numbers of samples"),
        (TEXTS, np.linspace(0, 1, 12), "Unknown label type"),
        (TEXTS, [["a"], ["b", "c"]] * 6, "Unknown label type|legacy multi-label"),
        (TEXTS, ["a"] * 12, "y has one class, 'a': at least 2 are needed"),
        (["", ""], ["a", "b"], "has no text with both words and a label"),
    ):
        with pytest.raises(ValueError, match=message):
            TextClassifier().fit(texts, labels)
    with pytest.raises(ValueError, match="Negative values"):
        TextClassifier().fit(TEXTS, KINDS, [-1] * 12)
    with pytest.raises(ValueError, match="give epochs as a parameter of TextClassifier, and not in training"):
        TextClassifier(training={"epochs": 1}).fit(TEXTS, KINDS)


def test_missing_scikit_learn_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(w2v.W2VError, match=r"^w2v\.sklearn needs scikit-learn: pip install"):
        runpy.run_path(str(w2v.sklearn.__file__))
