"""Word vectors that combine both matrices of a model, its input rows and its output rows.

combine_models.py combines the word vectors of several models.

Training gives each word two vectors, an input row w and an output row c. Word vectors that are made only from w lose
what c has learnt. Levy, Goldberg & Dagan (2015, section 3.3) add the rows: w + c. But all output rows share a large
common vector, and adding it makes rare words neighbours of everything. So the mean is subtracted first (Mu & Viswanath
2018).

Each of the two matrices X becomes R, where u(·) scales each row to length 1:

    U = u(X)          R = u(U − A B)          A (V, 1), all ones: B is the mean of the rows of U

If the output rows contain the words' log frequency, their A (V, 2) is [1, log count], and B is the least-squares
solution of A B ≈ U. The concatenation is C = [R of inputs, R of outputs], (V, 2D). Each of its cosines is the mean of
the two cosines of R. The combined vectors are C Q, (V, D), where Q holds the D leading eigenvectors of CᵀC. No other
vectors of D values approximate the inner products of C better. bench/NOTES.md compares this with other methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._formats import bfloat16
from w2v._settings import WordVectors
from w2v._vectors.cosines import Floats, imprecise_lengths, lengths, unit

VALUES_AT_ONCE = 1 << 18  # values in a block of rows: 1 MB


def combine_matrices(
    inputs: NDArray[Any], outputs: NDArray[Any], frequencies: NDArray[np.int64] | None = None
) -> Floats:
    """Return the combined vectors C Q, float32 (V, D), of float32 or bfloat16 matrices (V, D).

    `frequencies` are the words' counts (V,) if the outputs contain their logarithm. Rows of zeros stay zeros.
    """
    size = inputs.shape[1]
    products = np.zeros((2 * size, 2 * size))  # CᵀC
    concatenation = _Concatenation(inputs, outputs, frequencies)
    for _, block in concatenation:
        products += block.T @ block
    eigenvectors = np.linalg.eigh(products)[1][:, : -size - 1 : -1]  # largest eigenvalue first
    largest = np.take_along_axis(eigenvectors, np.abs(eigenvectors).argmax(axis=0)[None], axis=0)
    signs = np.where(largest < 0, -1, 1)  # LAPACK's signs are arbitrary: make the largest entry positive
    eigenvectors = (eigenvectors * signs).astype(np.float32)
    vectors = np.empty(inputs.shape, np.float32)
    for start, block in concatenation:
        np.matmul(block, eigenvectors, out=vectors[start : start + len(block)])
    return vectors


def concatenate_matrices(
    inputs: NDArray[Any], outputs: NDArray[Any], frequencies: NDArray[np.int64] | None = None
) -> Floats:
    """Return the concatenation C, float32 (V, 2D). The arguments are the same as for `combine_matrices`."""
    vectors = np.empty((len(inputs), 2 * inputs.shape[1]), np.float32)
    for start, block in _Concatenation(inputs, outputs, frequencies):
        vectors[start : start + len(block)] = block
    return vectors


def memory_of(kind: WordVectors, words: int, size: int) -> int:
    """Estimate the bytes needed to make word vectors of this kind, in addition to both matrices."""
    if kind == "input":
        return 0
    eigenvectors = 4 * 8 * (2 * size) ** 2 if kind == "combined" else 0  # float64, with LAPACK's work space
    return 4 * words * size * (2 if kind == "concatenated" else 1) + eigenvectors


class _Concatenation:
    """An iterable over C: yields (index of the first row, block of rows), computed again in each pass."""

    def __init__(self, inputs: NDArray[Any], outputs: NDArray[Any], frequencies: NDArray[np.int64] | None) -> None:
        constant = np.zeros((len(inputs), 2), np.float32)  # with a column of zeros: BLAS is slow for a single column
        constant[:, 0] = 1
        regressors = constant
        if frequencies is not None:
            logs = np.log(np.maximum(frequencies, 1))
            regressors = np.column_stack([constant[:, 0], logs - logs.mean()]).astype(np.float32)
        self._sides = []
        for matrix, columns in ((inputs, constant), (outputs, regressors)):
            norms = lengths(matrix)
            if imprecise_lengths(norms[norms > 0]).any():  # then |X| is not precise enough
                matrix, norms = unit(np.asarray(matrix, np.float32)), np.sign(norms)
            self._sides.append((matrix, columns * norms[:, np.newaxis], _coefficients(matrix, columns)))

    def __iter__(self) -> Iterator[tuple[int, Floats]]:
        words, size = self._sides[0][0].shape
        step = max(1, VALUES_AT_ONCE // size)
        for start in range(0, words, step):
            rows = slice(start, min(start + step, words))
            block = np.empty((rows.stop - start, 2 * size), np.float32)
            for (matrix, scaled, coefficients), half in zip(self._sides, np.hsplit(block, 2), strict=True):
                # u(X - |X| A B) equals u(U - A B), and keeps rows of zeros.
                values = matrix[rows].astype(np.float32, copy=False)
                np.subtract(values, np.matmul(scaled[rows], coefficients, out=half), out=half)
                unit(half, half)
            yield start, block


def _coefficients(matrix: NDArray[Any], columns: Floats) -> Floats:
    """Return B, float32: the least-squares solution of A B ≈ U."""
    products = np.zeros((columns.shape[1], matrix.shape[1]))
    for start, block in bfloat16.float32_blocks(matrix, max(1, VALUES_AT_ONCE // matrix.shape[1])):
        products += columns[start : start + len(block)].T @ unit(block)
    squares = columns.T.astype(np.float64) @ columns
    # Use the pseudo-inverse, because the matrix is singular if all counts are equal.
    coefficients: Floats = (np.linalg.pinv(squares, hermitian=True) @ products).astype(np.float32)
    return coefficients
