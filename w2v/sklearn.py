"""A scikit-learn transformer from texts to vectors, for Pipeline, GridSearchCV and ColumnTransformer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from w2v.errors import optional_package
from w2v.system.files import PathLike
from w2v.text.corpus import python_values
from w2v.text.words import is_missing
from w2v.training.model import Model
from w2v.training.train import train
from w2v.vectors.encode import Encoder, Weights, encode
from w2v.vectors.keyed import KeyedVectors, load, vectors_of

with optional_package("w2v.sklearn needs scikit-learn", "sklearn"):
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_is_fitted

Texts = Iterable[str] | Iterable[Sequence[str]]


class WordVectors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer from n texts, or lists of words, to their vectors, float32 (n, D); see w2v.encode.

    Training skips missing texts (None, NaN), and their vectors are zeros.

    Args:
        model: Word vectors: a file that w2v.load reads, KeyedVectors, or a Model, which is neither copied nor changed.
            None to train word vectors in `fit`.
        weights: "sif", "idf" or "mean"; see w2v.vectors.encode.Encoder. Files without counts need "mean".
        training: Arguments of w2v.train for `fit` without a model, such as {"vector_size": 50, "seed": 2}.

    Attributes:
        vectors_: The KeyedVectors, after `fit`.
    """

    def __init__(
        self,
        model: KeyedVectors | Model | PathLike | None = None,
        weights: Weights = "sif",
        training: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.weights = weights
        self.training = training

    def fit(self, X: Texts, y: object = None) -> Self:
        """Load the model or, without one, train word vectors on the texts.

        Raises:
            W2VError: If the file of the model cannot be read, its vectors lack the counts that `weights` needs, or the
                texts cannot be trained on.
            ValueError: If the input is not a list of texts, or `training` is given with a model.
        """
        texts = _check_texts(X)
        if self.model is not None and self.training is not None:
            raise ValueError("training has no effect with a model: give only one of them")
        if self.model is None:
            self.vectors_ = train(texts, **self.training or {}).wv
        else:
            self.vectors_ = load(self.model) if isinstance(self.model, str | os.PathLike) else vectors_of(self.model)
        Encoder(self.vectors_, self.weights)  # raises an error if the vectors lack the counts that the weights need
        return self

    def transform(self, X: Texts) -> NDArray[np.float32]:
        """Return the vectors of the texts, float32 (n, D).

        Raises:
            ValueError: If the input is not a list of texts.
        """
        check_is_fitted(self)
        return encode(self.vectors_, _check_texts(X), self.weights)

    @property
    def _n_features_out(self) -> int:
        return self.vectors_.vector_size

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _check_texts(texts: Texts) -> list[Any]:
    """Return the texts as a list.

    Raises:
        ValueError: If `texts` is a single text, a table, an iterator, a set or a mapping, or if an item is neither a
            text nor a list of words.
    """
    refused = isinstance(texts, str | Mapping | Set | Iterator)
    if refused or getattr(texts, "ndim", 1) != 1 or not isinstance(texts, Iterable):
        raise ValueError("a list of texts is needed, such as one column of a table")
    checked = list(python_values(texts))
    if not all(isinstance(text, str | list | tuple) or is_missing(text) for text in checked):
        raise ValueError("each text must be a str, a list of words, or missing (None, NaN)")
    return checked
