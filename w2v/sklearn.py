"""Estimators for scikit-learn: a transformer from texts to vectors, and a classifier of texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from w2v._errors import optional_package
from w2v._system.files import PathLike
from w2v._text.corpus import python_values
from w2v._text.normalise import Tokenize
from w2v._text.words import is_missing
from w2v._training.classifier import LIKELY
from w2v._training.model import Model
from w2v._training.train import train, train_classifier
from w2v._vectors.cosines import unit
from w2v._vectors.encode import Encoder, Weights, encode
from w2v._vectors.keyed import KeyedVectors, load, vectors_of

with optional_package("w2v.sklearn needs scikit-learn", "sklearn"):
    from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import Tags, check_array, check_consistent_length, column_or_1d
    from sklearn.utils.class_weight import compute_sample_weight
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted

Texts = Iterable[str] | Iterable[Sequence[str]]


class WordVectors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer from n texts, or lists of words, to their vectors, float32 (n, D); see w2v.encode.

    Vectors are scaled to length 1, because linear models penalise the large weights that short vectors need. Training
    skips missing texts (None, NaN), and their vectors are zeros.

    Args:
        model: Word vectors: a file that w2v.load reads, KeyedVectors, or a Model, which is neither copied nor changed.
            None to train word vectors in `fit`.
        weights: "sif", "idf" or "mean"; see w2v._vectors.encode.Encoder. Files without counts need "mean".
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
        return unit(encode(self.vectors_, _check_texts(X), self.weights))

    @property
    def _n_features_out(self) -> int:
        return self.vectors_.vector_size

    def __sklearn_tags__(self) -> Tags:
        tags = _take_texts(super().__sklearn_tags__())
        tags.transformer_tags.preserves_dtype = []
        return tags


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of n texts, or lists of words; see w2v.train_classifier.

    Labels may have any type that scikit-learn accepts. If y is an indicator of 0 and 1, (n, L), texts may have several
    labels: their probabilities are independent, and `predict` returns an indicator of the labels with 0.5 or more.
    Texts without known words get the shares of the labels in the training.

    Args:
        word_ngrams: Use n-grams of up to this many words.
        subwords: Use n-grams of characters, such as "2-4".
        min_count: Leave out words that occur less often.
        epochs: Number of passes over the texts.
        alpha: The learning rate; None for the default of the loss and the model.
        lower: Whether to put the texts in lower case.
        tokenize: How to split texts into words: "spaces", "words" or "words+punctuation".
        class_weight: The weight of each label as a dict; "balanced" for weights that give all labels the same
            influence; None for 1. Not for texts with several labels.
        training: More arguments of w2v.train_classifier, such as {"workers": 1, "seed": 2}.

    Attributes:
        classes_: The L labels in sorted order; 0 to L - 1 for an indicator.
        classifier_: The w2v.Classifier, after `fit`. Its labels are `classes_` as text.
        class_prior_: The shares of the labels in the training, (L,).
    """

    def __init__(
        self,
        word_ngrams: int = 2,
        subwords: str | None = None,
        min_count: int = 1,
        epochs: int = 10,
        alpha: float | None = None,
        lower: bool = False,
        tokenize: Tokenize = "spaces",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        self.word_ngrams = word_ngrams
        self.subwords = subwords
        self.min_count = min_count
        self.epochs = epochs
        self.alpha = alpha
        self.lower = lower
        self.tokenize = tokenize
        self.class_weight = class_weight
        self.training = training

    def fit(self, X: Texts, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on n texts and their labels.

        Args:
            X: The texts.
            y: The label of each text, or an indicator, (n, L).
            sample_weight: The weight of each text, 0 or more, relative to the others; see w2v.train_classifier.

        Raises:
            ValueError: If the input is not a list of texts, the labels do not fit, or `training` has a parameter of
                TextClassifier.
            W2VError: If the texts cannot be trained on.
        """
        own = {name: value for name, value in self.get_params().items() if name not in ("class_weight", "training")}
        if twice := [name for name in self.training or {} if name in own]:
            raise ValueError(f"give {twice[0]} as a parameter of TextClassifier, and not in training")
        texts = _check_texts(X)
        if y is None:
            raise ValueError("TextClassifier requires y to be passed, but the target y is None")
        check_consistent_length(texts, y)
        weights = np.asarray(_check_sample_weight(sample_weight, texts, ensure_non_negative=True))
        check_classification_targets(y)
        self._is_multilabel = type_of_target(y) == "multilabel-indicator"
        if self._is_multilabel:
            if self.class_weight is not None:
                raise ValueError("class_weight needs texts with one label each: give sample_weight instead")
            indicator = check_array(y, accept_sparse="csr")
            indicator = indicator.toarray() if issparse(indicator) else indicator
            self.classes_ = np.arange(indicator.shape[1])
        else:
            self.classes_, numbers = np.unique(column_or_1d(y, warn=True), return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(f"y has one class, {str(self.classes_[0])!r:.60}: at least 2 are needed")
            weights = weights * compute_sample_weight(self.class_weight, y)
            indicator = np.eye(len(self.classes_), dtype=np.int8)[numbers]
        self.class_prior_ = np.average(indicator, axis=0, weights=weights)
        names = [str(label) for label in self.classes_]
        labels = [[names[number] for number in np.flatnonzero(row)] for row in indicator]
        own |= {"several": True} if self._is_multilabel else {}
        self.classifier_ = train_classifier(texts, labels, sample_weight=weights, **own, **self.training or {})
        return self

    def predict_proba(self, X: Texts) -> NDArray[np.float32]:
        """Return the probability of each label in `classes_` for n texts, float32 (n, L).

        Raises:
            ValueError: If the input is not a list of texts.
        """
        check_is_fitted(self)
        found = self.classifier_.predict_proba(_check_texts(X))
        probabilities = np.zeros((len(found), len(self.classes_)), np.float32)
        columns = {str(label): column for column, label in enumerate(self.classes_)}
        probabilities[:, [columns[label] for label in self.classifier_.labels]] = found
        probabilities[np.isnan(found).any(axis=1)] = self.class_prior_
        return probabilities

    def predict(self, X: Texts) -> NDArray[Any]:
        """Return the label of each of n texts, or an indicator of their labels, (n, L).

        Raises:
            ValueError: If the input is not a list of texts.
        """
        probabilities = self.predict_proba(X)
        if self._is_multilabel:
            return (probabilities >= LIKELY).astype(np.int64)
        chosen: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return chosen

    def __sklearn_tags__(self) -> Tags:
        tags = _take_texts(super().__sklearn_tags__())
        tags.classifier_tags.multi_label = True
        tags.non_deterministic = True  # with several workers
        return tags


def _take_texts(tags: Tags) -> Tags:
    tags.input_tags.two_d_array = False
    tags.input_tags.one_d_array = tags.input_tags.string = True
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
