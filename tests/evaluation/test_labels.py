"""Scores of predicted labels, compared with scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics

from w2v._errors import W2VError
from w2v._evaluation.labels import Predictions, evaluate_labels, predicted_labels, score_labels, wilson_interval

LABELS = ["sport", "politics", "science", "art"]


def predictions(texts: int = 300, most: int = 1, seed: int = 1) -> Predictions:
    """Return random predictions that are often right."""
    random = np.random.default_rng(seed)
    counts = random.integers(1, most + 1, texts)
    gold = np.concatenate([random.choice(len(LABELS), count, replace=False) for count in counts])
    starts = np.append(0, np.cumsum(counts))
    scores = random.normal(size=(texts, len(LABELS)))
    scores[np.arange(texts), gold[starts[:-1]]] += 1
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return Predictions(probabilities.astype(np.float32), starts, gold.astype(np.int32))


def matrix(block: Predictions) -> np.ndarray:
    """Return the true labels as an indicator matrix."""
    indicator = np.zeros(block.probabilities.shape, int)
    indicator[np.repeat(np.arange(len(indicator)), np.diff(block.starts)), block.labels] = 1
    return indicator


def test_scores_of_single_labels_match_scikit_learn() -> None:
    block = predictions()
    gold, best = block.labels, block.probabilities.argmax(axis=1)
    halves = [
        Predictions(block.probabilities[:100], block.starts[:101], block.labels[:100]),
        Predictions(block.probabilities[100:], block.starts[100:] - 100, block.labels[100:]),
    ]
    for blocks in ([block], halves):
        scores = score_labels(LABELS, blocks)
        assert scores.texts == 300
        assert scores.accuracy == scores.precision == scores.recall == pytest.approx(metrics.accuracy_score(gold, best))
        assert scores.macro_f1 == pytest.approx(metrics.f1_score(gold, best, average="macro"))
        assert scores.log_loss == pytest.approx(-np.log(block.probabilities[np.arange(300), gold]).mean())
        assert scores.confusion is not None
        np.testing.assert_array_equal(scores.confusion, metrics.confusion_matrix(gold, best))
        expected = metrics.precision_recall_fscore_support(gold, best)
        found = [(each.precision, each.recall, each.f1, each.texts) for each in scores.labels]
        np.testing.assert_allclose(np.array(found, float).T, expected)


@pytest.mark.parametrize(("k", "threshold"), [(2, 0.0), (None, 0.3), (3, 0.2)])
def test_scores_of_several_labels_match_scikit_learn(k: int | None, threshold: float) -> None:
    block = predictions(most=3)
    scores = score_labels(LABELS, [block], k, threshold)
    chosen = predicted_labels(block.probabilities, k, threshold)
    assert chosen.sum(axis=1).max() <= (k or len(LABELS))
    for name, average in [("f1", "micro"), ("macro_f1", "macro")]:
        assert getattr(scores, name) == pytest.approx(metrics.f1_score(matrix(block), chosen, average=average))
    assert scores.precision == pytest.approx(metrics.precision_score(matrix(block), chosen, average="micro"))
    assert scores.recall == pytest.approx(metrics.recall_score(matrix(block), chosen, average="micro"))


def test_labels_of_independent_probabilities_count_if_a_text_lacks_them() -> None:
    block = Predictions(np.array([[0.9, 0.6, 0.1, 0.2]], np.float32), np.array([0, 2]), np.array([0, 1], np.int32))
    scores = score_labels(LABELS, [block], None, 0.5, several=True)
    assert scores.log_loss == pytest.approx(-np.log([0.9, 0.6, 0.9, 0.8]).sum(), rel=1e-5)
    assert scores.confusion is not None
    assert scores.confusion.tolist() == np.diag([1, 1, 0, 0]).tolist()  # both labels are right


def test_texts_without_words_and_unknown_labels_count_as_wrong() -> None:
    probabilities = np.array([[0.9, 0.1, 0, 0], [np.nan] * 4, [0.2, 0.8, 0, 0]], np.float32)
    scores = score_labels(LABELS, [Predictions(probabilities, np.arange(4), np.array([0, 0, -1], np.int32))])
    assert (scores.texts, scores.without_words, scores.unknown_labels) == (3, 1, 1)
    assert scores.accuracy == scores.recall == pytest.approx(1 / 3)
    assert scores.precision == 1 / 2
    assert scores.correct.tolist() == [True, False, False]
    assert scores.labels[2].f1 is None
    with pytest.raises(W2VError, match="no texts"):
        score_labels(LABELS, [])


def test_calibration_error_is_the_gap_between_probability_and_accuracy() -> None:
    probabilities = np.array([[0.9, 0.1]] * 10 + [[0.61, 0.39]] * 10, np.float32)
    gold = np.array([0] * 9 + [1] + [0] * 5 + [1] * 5, np.int32)
    scores = score_labels(["a", "b"], [Predictions(probabilities, np.arange(21), gold)])
    assert scores.calibration_error == pytest.approx((0 + 0.11) / 2, abs=1e-6)


def test_two_classifiers_are_compared_on_the_same_texts() -> None:
    first, second = score_labels(LABELS, [predictions()]), score_labels(LABELS, [predictions(seed=2)])
    accuracy = evaluate_labels(["one", "same", "other"], [first, first, second])[0]
    one, same, other = accuracy.scores
    assert (one.difference, same.difference, same.p) == (None, 0, 1)
    assert (other.low, other.high) == second.interval
    assert other.difference == pytest.approx(second.accuracy - first.accuracy)
    assert accuracy.chance == max(label.texts for label in first.labels) / 300
    # McNemar's exact test is the binomial test of the texts that only one of them labels correctly.
    only = int((first.correct & ~second.correct).sum()), int((second.correct & ~first.correct).sum())
    coins = np.random.default_rng(0).binomial(sum(only), 0.5, 200_000)
    extreme = (coins <= min(only)) | (coins >= max(only))
    assert other.p == pytest.approx(extreme.mean(), abs=0.01)
    with pytest.raises(W2VError, match="300 and 10 texts"):
        evaluate_labels(["one", "other"], [first, score_labels(LABELS, [predictions(10)])])


def test_wilson_interval() -> None:
    assert wilson_interval(0, 10) == pytest.approx((0, 0.2775), abs=1e-4)
    assert wilson_interval(80, 100) == pytest.approx((0.7112, 0.8666), abs=1e-4)
