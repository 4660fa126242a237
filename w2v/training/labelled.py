"""Predict the labels of texts in a file that also has the true labels, and score the predictions."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from w2v.errors import SettingsError, W2VError, pluralise
from w2v.evaluation.labels import LabelScores, Predictions, score_labels
from w2v.progress import Meter, Report
from w2v.system.files import Errors
from w2v.text._text import PADDING
from w2v.text.columns import has_columns
from w2v.text.corpus import Corpus
from w2v.text.encodings import UTF_8
from w2v.text.labels import labels_of, words_of
from w2v.text.lines import read_lines
from w2v.text.normalise import TextOptions
from w2v.training.classifier import Classifier

TEXTS_AT_ONCE = 4096  # rows of a table that are predicted at a time

log = logging.getLogger("w2v")


def score_file(
    model: Classifier,
    texts: Corpus,
    k: int | None = 1,
    threshold: float | None = None,
    progress: Report | None = None,
    **reading: Any,
) -> LabelScores:
    """Score a classifier on the texts of a file.

    Args:
        model: The classifier.
        texts: The texts, as in `labelled_predictions`.
        k, threshold: See Classifier.predict.
        progress: Called regularly with a Progress of phase "predict".
        reading: The arguments `labels`, `column`, `encoding` and `errors` of `labelled_predictions`.

    Raises:
        W2VError, SettingsError: As in `labelled_predictions`.
    """
    blocks = labelled_predictions(model, texts, progress=progress, **reading)
    return score_labels(model.labels, blocks, **model.limits(k, threshold))


def labelled_predictions(
    model: Classifier,
    texts: Corpus,
    labels: str | None = None,
    column: str | None = None,
    encoding: str = UTF_8,
    errors: Errors = "strict",
    progress: Report | None = None,
) -> Iterator[Predictions]:
    """Yield predictions for the texts that have a label, in blocks. Log how many texts have none.

    Args:
        model: The classifier.
        texts: Lines with label words, as in training, or a table.
        labels: The column of the table with the labels; None if they are words of the texts.
        column, encoding, errors: See Corpus.blocks.
        progress: See `score_file`.

    Raises:
        SettingsError: `labels` is given without a `column`.
        W2VError: The file cannot be read, or no text has a label.
    """
    if labels is None:
        blocks = model.read_predictions(texts, column, encoding, errors, progress)
    else:
        blocks = _table_predictions(model, _table_rows(texts, labels, column, encoding, errors), progress)
    scored = skipped = 0
    for block in blocks:
        sizes = np.diff(block.starts)
        has_label = sizes > 0
        scored += int(np.count_nonzero(has_label))
        skipped += int(np.count_nonzero(~has_label))
        starts = np.cumsum([0, *sizes[has_label]], dtype=np.int64)
        yield Predictions(block.probabilities[has_label], starts, block.labels)
    if not scored:
        wanted = f"column {labels}" if labels else f"words that begin with {model.options.label_prefix}"
        others = "" if labels else "; --column and --labels (column=, labels=) name the columns of a table"
        raise W2VError(f"{texts} has no text with a label: they are the {wanted}{others}")
    if skipped:
        log.warning("%s: skipped %s without a label", texts, pluralise(skipped, "text"))


def _table_predictions(
    model: Classifier, rows: Iterator[tuple[str, list[str]]], progress: Report | None
) -> Iterator[Predictions]:
    """Yield predictions for the rows of a table, which have a text and its labels each."""
    meter, done = Meter(progress, "predict", unit="texts"), 0
    while batch := list(islice(rows, TEXTS_AT_ONCE)):
        yield model.predictions([text for text, _ in batch], [own for _, own in batch])
        done += len(batch)
        meter(done, None)


def _table_rows(
    table: Corpus, labels: str, column: str | None, encoding: str, errors: Errors
) -> Iterator[tuple[str, list[str]]]:
    """Yield the text and the labels of each row. The arguments are those of `labelled_predictions`."""
    if column is None or not has_columns(column):
        raise SettingsError(f"--labels {labels} (labels=) needs --column (column=), the column of the text")
    for number, (text, own) in enumerate(table.cells([column, labels], encoding, errors), 1):
        where = f"{table}, row {number}"
        yield words_of(text, where), labels_of(own, where)


def read_labelled(
    texts: Corpus, labels: str | None, prefix: str, column: str | None, encoding: str, errors: Errors
) -> tuple[list[str], list[list[str]]]:
    """Return the texts that have labels, and the labels of each. The arguments are those of `labelled_predictions`.

    Args:
        prefix: What a label word begins with, without the column `labels`.

    Raises:
        W2VError: The file cannot be read, or no text has a label.
    """
    if labels is not None:
        pairs = list(_table_rows(texts, labels, column, encoding, errors))
    else:
        lines = [re.split("[ \t\v\f\r]+", line) for line in lines_of(texts, column, encoding, errors)]
        pairs = [
            (
                " ".join(word for word in line if not word.startswith(prefix)),
                [word.removeprefix(prefix) for word in line if word.startswith(prefix)],
            )
            for line in lines
        ]
    pairs = [(text, own) for text, own in pairs if own]
    if not pairs:
        raise W2VError(f"{texts} has no text with a label: --column and --labels name the columns of a table")
    return [text for text, _ in pairs], [own for _, own in pairs]


def lines_of(texts: Corpus, column: str | None, encoding: str, errors: Errors) -> Iterator[str]:
    """Yield the texts of a file as they are, a line or a cell of the column each."""
    rest = b""
    for block, _ in read_lines(texts, TextOptions(), column, encoding, errors):
        if not isinstance(block, bytes):
            raise W2VError(f"{texts} has lists of items: give texts, or lists of words")
        *lines, rest = (rest + block[: -len(PADDING)]).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
