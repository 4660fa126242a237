"""WordVectors with scikit-learn's own checks and tools."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks as checks

import w2v
from w2v.sklearn import WordVectors

TEXTS = ["the king and his queen", "a prince", "paris is in france", "rome is in italy"] * 3
KINDS = ["people", "people", "places", "places"] * 3


@pytest.mark.filterwarnings("ignore:Can't test estimator")  # scikit-learn's checks that call fit use tables of numbers
@pytest.mark.parametrize("estimator", [WordVectors(), WordVectors("m.bin", "mean", {"vector_size": 5})], ids=str)
def test_estimator_passes_scikit_learns_checks(estimator: WordVectors) -> None:
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
        check("WordVectors", estimator)


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
    np.testing.assert_array_equal(found.to_numpy(), w2v.encode(w2v.load(model), TEXTS))


def test_fit_trains_on_the_texts() -> None:
    training = {"vector_size": 4, "min_count": 1, "epochs": 1, "workers": 1}
    words = [text.split() for text in TEXTS]
    found = WordVectors(training=training).fit_transform(words)
    np.testing.assert_array_equal(found, w2v.encode(w2v.train(words, **training), words))
    assert found.shape == (12, 4)


def test_missing_texts_are_skipped_in_training_and_get_zeros() -> None:
    training = {"vector_size": 4, "min_count": 1, "epochs": 1, "workers": 1}
    texts = pd.Series([*TEXTS, None, float("nan")])
    with pytest.warns(w2v.TextWarning) as caught:
        found = WordVectors(training=training).fit_transform(texts)
    messages = [str(warning.message) for warning in caught if "missing" in str(warning.message)]
    kinds = "(None, NaN, or an empty field of CSV)"
    assert messages == [f"skipped 2 missing texts {kinds}", f"gave zeros to 2 missing texts {kinds}"]
    np.testing.assert_array_equal(found[:12], w2v.encode(w2v.train(TEXTS, **training), TEXTS))
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


def test_missing_scikit_learn_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(w2v.W2VError, match=r"^w2v\.sklearn needs scikit-learn: pip install"):
        runpy.run_path(str(w2v.sklearn.__file__))
