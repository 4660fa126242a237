"""Word vectors made from both matrices of a model, its input rows and its output rows.

Training gives each word two vectors, and input rows alone do not use what the output rows have learnt. Levy, Goldberg
& Dagan (2015, section 3.3) add them: w + c. That also adds the large vector that all output rows share, which makes
rare words neighbours of everything; so the mean is subtracted first (as Mu & Viswanath 2018 do).

For each of both matrices X, with u(·) the row scaled to length 1:

    U = u(X)          R = u(U − A B)          A (V, 1), all ones: B is the mean of the rows of U

If the outputs contain the words' log frequency, A (V, 2) is [1, log count] for them, and B the least-squares solution
of A B ≈ U. The cosines of the concatenation C = [R of inputs, R of outputs], (V, 2D), are the means of both cosines.
The combined vectors are C Q, (V, D), with Q the D leading eigenvectors of CᵀC: no vectors of D values have inner
products nearer to those of C. bench/NOTES.md compares this with other ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.formats import bfloat16
from w2v.settings import WordVectors
from w2v.vectors.cosines import MAX_LENGTH, MIN_LENGTH, Vector, lengths, unit

VALUES_AT_ONCE = 1 << 18  # of a block of rows: 1 MB


def combined(inputs: NDArray[Any], outputs: NDArray[Any], frequencies: NDArray[np.int64] | None = None) -> Vector:
    """The combined vectors, float32 (V, D), of float32 or bfloat16 matrices (V, D).

    `frequencies` are the words' counts (V,), if the outputs contain their logarithm. Rows of zeros stay zeros.
    """
    size = inputs.shape[1]
    matrix = np.zeros((2 * size, 2 * size))  # CᵀC
    parts = _Parts(inputs, outputs, frequencies)
    for _, block in parts:
        matrix += block.T @ block
    directions = np.linalg.eigh(matrix)[1][:, : -size - 1 : -1]  # of the largest eigenvalues, in descending order
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[None], axis=0)
    signs = np.where(largest < 0, -1, 1)  # the sign of an eigenvector is arbitrary
    directions = (directions * signs).astype(np.float32)
    found = np.empty(inputs.shape, np.float32)
    for start, block in parts:
        np.matmul(block, directions, out=found[start : start + len(block)])
    return found


def concatenated(inputs: NDArray[Any], outputs: NDArray[Any], frequencies: NDArray[np.int64] | None = None) -> Vector:
    """C itself, float32 (V, 2D); arguments are those of `combined`."""
    found = np.empty((len(inputs), 2 * inputs.shape[1]), np.float32)
    for start, block in _Parts(inputs, outputs, frequencies):
        found[start : start + len(block)] = block
    return found


def memory_of(kind: WordVectors, words: int, size: int) -> int:
    """About the bytes that making word vectors of this kind takes in addition to both matrices."""
    if kind == "input":
        return 0
    eigenvectors = 4 * 8 * (2 * size) ** 2 if kind == "combined" else 0  # as float64, and LAPACK's work space
    return 4 * words * size * (2 if kind == "concatenated" else 1) + eigenvectors


class _Parts:
    """Blocks of rows of C with the index of the first, computed again in each pass."""

    def __init__(self, inputs: NDArray[Any], outputs: NDArray[Any], frequencies: NDArray[np.int64] | None) -> None:
        constant = np.zeros((len(inputs), 2), np.float32)  # a column of zeros too: BLAS is slow for a single column
        constant[:, 0] = 1
        regressors = constant
        if frequencies is not None:
            logs = np.log(np.maximum(frequencies, 1))
            regressors = np.column_stack([constant[:, 0], logs - logs.mean()]).astype(np.float32)
        self._sides = [
            (matrix, *_scaled(matrix, columns), _coefficients(matrix, columns))
            for matrix, columns in ((inputs, constant), (outputs, regressors))
        ]

    def __iter__(self) -> Iterator[tuple[int, Vector]]:
        words, size = self._sides[0][0].shape
        step = max(1, VALUES_AT_ONCE // size)
        for start in range(0, words, step):
            block = np.empty((min(step, words - start), 2 * size), np.float32)
            for side, half in zip(self._sides, np.hsplit(block, 2), strict=True):
                _residuals(*side, start, half)
            yield start, block


def _coefficients(matrix: NDArray[Any], columns: Vector) -> Vector:
    """B: the least-squares solution of A B ≈ U, float32."""
    products = np.zeros((columns.shape[1], matrix.shape[1]))
    for start, block in bfloat16.blocks(matrix, max(1, VALUES_AT_ONCE // matrix.shape[1])):
        products += columns[start : start + len(block)].T @ unit(block)
    squares = columns.T.astype(np.float64) @ columns
    found: Vector = (np.linalg.pinv(squares, hermitian=True) @ products).astype(np.float32)  # counts may all be equal
    return found


def _scaled(matrix: NDArray[Any], columns: Vector) -> tuple[Vector, NDArray[np.bool_]]:
    """A, each row of it times the length of the same row of X, and which rows of X are too long or short for that."""
    norms = lengths(matrix)
    extreme = (norms > 0) & ~((norms > MIN_LENGTH) & (norms < MAX_LENGTH))
    return columns * np.where(extreme, 1, norms)[:, None], extreme


def _residuals(
    matrix: NDArray[Any], scaled: Vector, extreme: NDArray[np.bool_], coefficients: Vector, start: int, out: Vector
) -> None:
    """Rows of R from `start` on, as u(X − |X| A B): that is the same, and zeros stay zeros."""
    rows = slice(start, start + len(out))
    values = matrix[rows].astype(np.float32, copy=False)
    if extreme[rows].any():
        values = np.where(extreme[rows, None], unit(values), values)
    np.subtract(values, np.matmul(scaled[rows], coefficients, out=out), out=out)
    unit(out, out)
