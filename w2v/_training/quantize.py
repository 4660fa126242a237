"""Make classifiers smaller: drop the rows that matter least, train the others further, and quantise them."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError
from w2v._formats import bfloat16, fasttext
from w2v._formats.product_quantiser import CENTROIDS
from w2v._options import check_numbers
from w2v._text.corpus import Source
from w2v._text.vocabulary import Vocabulary
from w2v._training.classifier import Classifier
from w2v._training.train import train_classifier

WHERE = "the classifier"  # the beginning of error messages
RETRAINING = 0.1, 5  # the learning rate, as a share of the model's, and the epochs (bench/NOTES.md)
SAVING_LABELS = 300  # from about this number of labels on, quantised output rows are smaller
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def quantize(
    model: Classifier,
    texts: Source | None = None,
    labels: Any = None,
    *,
    cutoff: int | None = None,
    size: int | str | None = None,
    dsub: int = 2,
    norm: bool = False,
    output_layer: bool = False,
    **settings: Any,
) -> Classifier:
    """Return a small classifier for a .ftz file, in which a byte stands for several values. It predicts as fastText.

    N-grams that the training did not have no longer count.

    Args:
        model: The classifier.
        texts: Texts to train on before the rows are quantised, such as those of the training. No rows are added.
        labels: Their labels; see `train_classifier`.
        cutoff: Keep only this number of rows of words and n-grams, the longest ones.
        size: Keep as many rows as fit in a file of this number of bytes, or of "500K" or "2M", with `norm`, and with
            `output_layer` from 300 labels on, where it makes the file smaller.
        dsub: The number of values that a byte stands for.
        norm: Whether the lengths of rows get a byte of their own.
        output_layer: Whether to quantise the output rows, too.
        **settings: Settings for `texts`; see `train_classifier`. `epochs` is 5 by default, and `alpha` is a tenth of
            the model's.

    Raises:
        W2VError: fastText would compute other probabilities, as with idf pooling. `prune` takes any classifier.
        SettingsError: An option is impossible.
    """
    check_numbers(dsub=dsub)
    if dsub > fasttext.MAX_PART_SIZE:
        raise SettingsError(f"dsub {dsub}: it must be at most {fasttext.MAX_PART_SIZE}")
    if size is not None and cutoff is not None:
        raise SettingsError("give either a cutoff or a size")
    if output_layer and len(model.labels) < CENTROIDS:
        raise SettingsError(
            f"output_layer: the model has {len(model.labels)} labels, and output rows are only quantised from "
            f"{CENTROIDS} labels on: leave it out"
        )
    small = Classifier.from_vector_file(fasttext.as_fasttext(WHERE, model.to_vector_file()), WHERE)
    codes: dict[str, Any] = {"part_size": dsub, "normalise": norm or size is not None}
    codes["quantise_outputs"] = output_layer or (size is not None and len(model.labels) >= SAVING_LABELS)
    if size is not None:
        cutoff = _rows_within(small, parse_size(size), codes)
    small = _train(_keep_rows(small, cutoff), texts, labels, settings)
    return Classifier.from_vector_file(fasttext.quantise(WHERE, small.to_vector_file(), **codes), WHERE)


def prune(
    model: Classifier, cutoff: int, texts: Source | None = None, labels: Any = None, **settings: Any
) -> Classifier:
    """Return a classifier with only the rows of words and n-grams that matter most, for any file.

    Args:
        model: The classifier.
        cutoff: The number of rows.
        texts, labels: As for `quantize`.
        **settings: As for `quantize`.

    Raises:
        SettingsError: A setting is impossible.
    """
    return _train(_keep_rows(model, cutoff), texts, labels, settings)


def _train(model: Classifier, texts: Source | None, labels: Any, settings: dict[str, Any]) -> Classifier:
    """Train a pruned classifier further, if there are texts. The arguments are as in `train_classifier`."""
    if texts is None:
        if settings or labels is not None:
            raise SettingsError(f"{next(iter(settings), 'labels')} has no effect without texts")
        return model
    settings = {"alpha": RETRAINING[0] * model.settings.start_alpha, "epochs": RETRAINING[1]} | settings
    # The new temperature is that of a new model with these few epochs.
    trained = train_classifier(texts, labels, continue_from=model, **settings)
    if new := set(trained.labels) - set(model.labels):
        raise SettingsError(f"the texts have the label {min(new)[:60]!r}, which the model does not have")
    return replace(trained, temperature=model.temperature)


def _keep_rows(model: Classifier, cutoff: int | None) -> Classifier:
    """Return a classifier with the most important rows, at most `cutoff`. Further training adds no rows."""
    features, inputs = model.features, cast(NDArray[Any], model.inputs)
    check_numbers(cutoff=cutoff)
    kept = np.sort(_order(model)[:cutoff])
    words, ngrams = np.split(kept, [np.searchsorted(kept, len(features.vocabulary))])
    vocabulary = Vocabulary(features.vocabulary.words.take(words), features.vocabulary.counts[words])
    factors = None if features.factors is None else features.factors[kept]
    buckets = features.buckets[ngrams - len(features.vocabulary)]
    is_pruned = model.options.pruned or len(kept) < features.rows or len(buckets) < features.bucket_count
    chosen = replace(features, vocabulary=vocabulary, buckets=buckets, factors=factors, pruned=is_pruned)
    options = replace(model.options, pruned=is_pruned)
    return replace(model, options=options, features=chosen, inputs=inputs.take(kept, axis=0), quantised=None)


def _order(model: Classifier) -> NDArray[np.int64]:
    """Return the rows by their importance, the most important first: </s> or else a word, and then the longest rows."""
    features, blocks = model.features, bfloat16.float32_blocks(cast(NDArray[Any], model.inputs))
    lengths = np.concatenate([np.linalg.norm(block, axis=1) for _, block in blocks])
    first = features.end_row if features.end_row >= 0 else lengths[: len(features.vocabulary)].argmax()
    lengths[first] = np.inf
    return np.argsort(-lengths, kind="stable")


def _rows_within(model: Classifier, size: int, codes: dict[str, Any]) -> int:
    """Return the number of rows of a model that fit in a file of a size in bytes.

    Raises:
        SettingsError: No row fits.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ftz"
        fasttext.QUANTISED.save(path, fasttext.quantise(path, _keep_rows(model, 1).to_vector_file(), **codes))
        smallest = path.stat().st_size
    words = model.features.vocabulary.words
    sizes = np.full(model.features.rows, 8)  # of the pair of a bucket and its row
    sizes[: len(words)] = np.diff(words.offsets) + fasttext.MIN_ENTRY_BYTES
    sizes += -(-model.inputs.shape[1] // codes["part_size"]) + codes["normalise"]
    sizes = np.cumsum(sizes[_order(model)])
    if smallest > size:
        raise SettingsError(
            f"size {size:,}: even with one row, a file takes {smallest:,} bytes: train a model of fewer dimensions"
        )
    return int(np.searchsorted(sizes, size - smallest + sizes[0], "right"))


def parse_size(size: int | str) -> int:
    """Return a number of bytes, such as 2000000 for "2M". Raise SettingsError for anything else."""
    found = re.fullmatch(r"(\d{1,15})([KMG]?)", str(size).upper())
    if not found or not int(found[1]):
        raise SettingsError(f"size {size!r:.60}: it must be a number of bytes above 0, such as 500K or 2M")
    return int(found[1]) * UNITS[found[2]]
