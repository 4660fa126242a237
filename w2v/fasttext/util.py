"""fasttext.util: nearest vectors, and fewer dimensions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from w2v.fasttext.FastText import _FastText

MAPPING_ROWS = 100_000  # fastText computes the axes from at most this many rows of the input matrix


def find_nearest_neighbor(
    query: NDArray[np.float32],
    vectors: NDArray[np.float32],
    ban_set: Collection[int],
    cossims: NDArray[np.float32] | None = None,
) -> int:
    """Return the row of `vectors`, (n, D), with the largest product with `query`, (D,), and not in `ban_set`.

    Args:
        cossims: An array, (n,), that receives the products.
    """
    products = np.matmul(vectors, query, out=cossims)
    allowed = products.copy()
    allowed[list(ban_set)] = -np.inf
    return int(allowed.argmax())


def reduce_model(ft_model: _FastText, target_dim: int) -> _FastText:
    """Project the vectors of a model to their first `target_dim` principal components, in place. Return the model.

    As in fastText, the axes come from the first 100,000 rows of the input matrix, after their mean is subtracted.
    """
    inputs = ft_model.get_input_matrix()
    if not 1 <= target_dim <= inputs.shape[1]:
        raise ValueError(f"target_dim {target_dim}: it must be from 1 to {inputs.shape[1]}, the size of the vectors")
    rows = inputs[:MAPPING_ROWS] - inputs[:MAPPING_ROWS].mean(axis=0, dtype=np.float32)
    axes = np.linalg.eigh(rows.T @ rows)[1][:, : -target_dim - 1 : -1].astype(np.float32)  # largest eigenvalue first
    ft_model.set_matrices(inputs @ axes, ft_model.get_output_matrix() @ axes)
    return ft_model


def download_model(*_: Any, **__: Any) -> NoReturn:
    """Raise NotImplementedError: w2v downloads nothing."""
    raise NotImplementedError("w2v.fasttext downloads nothing: get the .bin file from https://fasttext.cc")
