"""Vectors of unknown words whose n-grams make only the last values of a vector."""

import numpy as np

from w2v.vectors.compose import complete_vectors


def test_whole_vectors_are_returned_unchanged() -> None:
    vectors = np.array([[3, 4], [0, 0]], np.float32)
    assert complete_vectors(vectors, np.ones((5, 2), np.float32)) is vectors


def test_the_first_values_are_the_mean_of_the_ten_nearest_words() -> None:
    """Both parts of a vector have length 1."""
    random = np.random.default_rng(1)
    first, last = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in random.normal(size=(2, 15, 3)))
    words = np.hstack([first[:, :2] / np.linalg.norm(first[:, :2], axis=1, keepdims=True), last]).astype(np.float32)
    ngrams = np.array([[0, 3, 4], [0, 0, 0], [-1, 1, 0]], np.float32)
    expected = np.zeros((3, 5))
    for row in (0, 2):
        unit = ngrams[row] / np.linalg.norm(ngrams[row])
        nearest = np.argsort(-(last @ unit))[:10]
        mean = words[nearest, :2].mean(axis=0)
        expected[row] = [*mean / np.linalg.norm(mean), *unit]
    np.testing.assert_allclose(complete_vectors(ngrams, words), expected, atol=1e-6)


def test_fewer_words_than_ten_are_enough() -> None:
    words = np.array([[1, 0, 1], [-1, 1, 0], [1, 0.5, 0.5]], np.float32)
    np.testing.assert_allclose(complete_vectors(np.array([[0, 2]], np.float32), words), [[1, 0, 1]])
