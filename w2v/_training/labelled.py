"""Read texts that have labels from files, and score the predictions for them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np

from w2v._errors import W2VError, pluralise
from w2v._evaluation.labels import LabelScores, Predictions, score_labels
from w2v._progress import Report
from w2v._system.files import Errors
from w2v._text._text import PADDING
from w2v._text.columns import PLAIN
from w2v._text.corpus import Corpus
from w2v._text.encodings import UTF_8
from w2v._text.idstore import ReadingOptions
from w2v._text.labels import LabelledTexts, LabelOptions, label_of
from w2v._text.lines import read_whole_lines
from w2v._text.normalise import TextOptions
from w2v._text.words import OWN_PREFIX
from w2v._training.classifier import Classifier

log = logging.getLogger("w2v")


def score_file(
    model: Classifier,
    texts: Corpus,
    k: int | None = 1,
    threshold: float | None = None,
    *,
    labels: str | None = None,
    column: str | None = None,
    encoding: str = UTF_8,
    errors: Errors = "strict",
    progress: Report | None = None,
) -> LabelScores:
    """Score a classifier on the texts of a file that have a label. Log how many have none.

    Args:
        model: The classifier.
        texts: Lines with label words, as in training, or a table.
        k, threshold: See Classifier.predict.
        labels: The column of the table with the labels; None if they are words of the texts.
        column, encoding, errors: See Corpus.blocks.
        progress: Called regularly with a Progress of phase "predict".

    Raises:
        SettingsError: `labels` is given without a `column`.
        W2VError: The file cannot be read, or no text has a label.
    """
    source = texts if labels is None else LabelledTexts.of_table(texts, column, labels, encoding, errors)
    scored = skipped = 0

    def blocks() -> Iterator[Predictions]:
        nonlocal scored, skipped
        for block in model.read_predictions(source, column, encoding, errors, progress):
            sizes = np.diff(block.starts)
            has_label = sizes > 0
            scored += int(np.count_nonzero(has_label))
            skipped += int(np.count_nonzero(~has_label))
            starts = np.cumsum([0, *sizes[has_label]], dtype=np.int64)
            yield Predictions(block.probabilities[has_label], starts, block.labels)
        _check_labels(texts, scored, skipped, labels, model.options.label_prefix)

    return score_labels(model.labels, blocks(), **model.limits(k, threshold), several=model.several)


def read_labelled(texts: Corpus, options: LabelOptions, reading: ReadingOptions) -> tuple[list[str], list[list[str]]]:
    """Return the texts of a file that have labels, and the labels of each. Log how many have none.

    Raises:
        SettingsError, W2VError: As in `score_file`.
    """
    corpus, column, encoding, prefix = texts, reading.column, reading.encoding, options.label_prefix
    texts.header = reading.header
    if options.labels is not None:
        corpus = LabelledTexts.of_table(texts, column, options.labels, encoding, reading.errors).corpus
        column, encoding, prefix = PLAIN, UTF_8, OWN_PREFIX
    found, labels, skipped = list[str](), list[list[str]](), 0
    for block in read_whole_lines(corpus, TextOptions(), column, encoding, reading.errors):
        for line in block[: -len(PADDING)].split(b"\n")[:-1]:
            words = [word.decode() for word in line.split()]
            own = [label_of(word, prefix) for word in words if word.startswith(prefix) and word != prefix]
            if own:
                found.append(" ".join(word for word in words if not word.startswith(prefix)))
                labels.append(own)
            skipped += not own
    _check_labels(texts, len(found), skipped, options.labels, prefix)
    return found, labels


def _check_labels(texts: Corpus, found: int, skipped: int, labels: str | None, prefix: str) -> None:
    """Log the number of texts without a label. Raise W2VError if no text has one."""
    if not found:
        wanted = f"column {labels}" if labels else f"words that begin with {prefix}"
        others = "" if labels else "; --column and --labels (column=, labels=) name the columns of a table"
        raise W2VError(f"{texts} has no text with a label: they are the {wanted}{others}")
    if skipped:
        log.warning("%s: skipped %s without a label", texts, pluralise(skipped, "text"))
