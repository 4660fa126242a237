"""Combine the word vectors of several models: side by side, each scaled to length 1 and multiplied by a weight.

Let u_m(w) be the vector of word w in model m, scaled to length 1, and f_m the weight of the model. The combination is
[f_1 u_1(w), f_2 u_2(w), …], so the cosine of two words is the mean of their cosines in the models, with weights f_m².
combine_matrices.py combines the two matrices of a single model.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, W2VError, pluralise
from w2v._formats.header import ModelHeader
from w2v._system import memory
from w2v._text.words import as_list
from w2v._vectors.cosines import unit
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of

log = logging.getLogger("w2v")

Selection = Literal["intersection", "union"]

MIN_WEIGHT, MAX_WEIGHT = 0.001, 1000  # beyond these limits, float32 cosines would lose one of the parts
ROWS_AT_ONCE = 1 << 14  # rows in a block
HINT = "make the models smaller first, with w2v convert --max-vocab or --dims, or end other programs"


def combine(
    models: Sequence[KeyedVectors | HasWordVectors],
    weights: Iterable[float] | None = None,
    words: Selection = "intersection",
) -> KeyedVectors:
    """Combine the word vectors of several models into longer vectors.

    Each vector is scaled to length 1 and multiplied by the weight of its model. Then the vectors of each word are
    concatenated. So the cosine of two words is the mean of their cosines in the models, with squared weights.

    Args:
        models: At least two models or vectors.
        weights: The weight of each model, by default 1.
        words: "intersection" takes the words that all models have; "union" takes all words, and a word that a model
            lacks has zeros in the model's part.

    Returns:
        Vectors with the sum of the dimensions of the models. A word has its count in the first model that has counts
        and this word, and the words are sorted by count. If a word does not have a count, no counts are stored, and the
        words are in the order of the models. Text options are kept if they are the same in all models. N-grams are left
        out, so unknown words do not have a vector.

    Raises:
        SettingsError: If there are fewer than two models, if the weights are not one number from 0.001 to 1000 for each
            model, or if `words` is unknown.
        W2VError: If an object is not a model, if a model has a word twice, if no word is in all models, or if the
            vectors do not fit in memory.
    """
    sources = [vectors_of(model) for model in as_list(models)]
    if len(sources) < 2:
        raise SettingsError(f"{pluralise(len(sources), 'model')} to combine: give at least two")
    factors = _checked_weights(weights, len(sources))
    if words not in get_args(Selection):
        raise SettingsError(f'words is {words!r}: it must be "intersection" or "union"')
    chosen = _choose_words(sources, words)
    counts = _counts_of(sources, chosen)
    if counts is not None:
        order = np.argsort(-counts, kind="stable")
        chosen, counts = [chosen[row] for row in order.tolist()], counts[order]
    size = sum(source.vector_size for source in sources)
    memory.check(4 * len(chosen) * size, f"combining {pluralise(len(chosen), 'word')}", HINT)
    rows = [_rows_of(source, chosen) for source in sources]
    combined = concatenate_unit_vectors([source.vectors for source in sources], rows, factors)
    if any(source.ngrams for source in sources):
        log.warning("the n-grams of the models are left out: in the combination, unknown words do not have a vector")
    texts = [source.header.text for source in sources]
    header = ModelHeader(text=texts[0]) if all(text == texts[0] for text in texts) else ModelHeader()
    return KeyedVectors(chosen, memory.read_only(combined), counts, header=header)


def _checked_weights(weights: Iterable[float] | None, models: int) -> NDArray[np.float32]:
    """Return the weights, by default 1. Raise SettingsError unless there is one number in range for each model."""
    given = [1.0] * models if weights is None else list(weights)
    if len(given) != models:
        raise SettingsError(f"{pluralise(len(given), 'weight')} for {pluralise(models, 'model')}: give one for each")
    for number, weight in enumerate(given, 1):
        if not isinstance(weight, int | float | np.number) or not MIN_WEIGHT <= weight <= MAX_WEIGHT:
            raise SettingsError(
                f"weight {number} is {weight!r:.60}: weights are numbers from {MIN_WEIGHT:g} to {MAX_WEIGHT:,}"
            )
    return np.array(given, np.float32)


def _choose_words(sources: Sequence[KeyedVectors], words: Selection) -> list[str]:
    """Return the words of all models or, for "intersection", the common ones, in the order of the models."""
    if words == "union":
        return list(dict.fromkeys(chain.from_iterable(source.key_to_index for source in sources)))
    first, *others = (source.key_to_index for source in sources)
    common = [word for word in first if all(word in other for other in others)]
    if not common:
        raise W2VError(
            'no word is in all models: check that they agree in language and capital letters, or choose words "union"'
        )
    return common


def _counts_of(sources: Sequence[KeyedVectors], words: Sequence[str]) -> NDArray[np.int64] | None:
    """Return each word's count in the first model with counts that has the word, or None if a word has no count."""
    counts = np.full(len(words), -1, np.int64)
    for source in sources:
        if source.counts is None:
            continue
        rows = _rows_of(source, words)
        missing = (counts < 0) & (rows >= 0)
        counts[missing] = source.counts[rows[missing]]
    return None if np.any(counts < 0) else counts


def _rows_of(source: KeyedVectors, words: Sequence[str]) -> NDArray[np.int64]:
    """Return the row of each word, or -1 if it is unknown."""
    rows = source.key_to_index
    return np.fromiter((rows.get(word, -1) for word in words), np.int64, len(words))


def concatenate_unit_vectors(
    matrices: Sequence[NDArray[Any]], rows: Sequence[NDArray[np.int64]], factors: Sequence[float] | NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the concatenations of rows of M matrices, each scaled to length 1 and then by its matrix's factor.

    Args:
        matrices: M matrices, (V_m, D_m), float32 or bfloat16.
        rows: For each matrix, the row that each of the n results takes from it, (n,); -1 for zeros.
        factors: The factor of each matrix, (M,).

    Returns:
        (n, sum of all D_m).
    """
    sizes = [matrix.shape[1] for matrix in matrices]
    combined = memory.zeros((len(rows[0]), sum(sizes)))
    parts = np.split(combined, np.cumsum(sizes)[:-1], axis=1)
    for matrix, matrix_rows, factor, part in zip(matrices, rows, factors, parts, strict=True):
        for start in range(0, len(matrix_rows), ROWS_AT_ONCE):
            block, target = matrix_rows[start : start + ROWS_AT_ONCE], part[start : start + ROWS_AT_ONCE]
            known = block >= 0
            target[known] = np.float32(factor) * unit(np.asarray(matrix[block[known]], np.float32))
    return combined
