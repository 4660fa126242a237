"""Draw the confusion matrix of a classifier."""

from __future__ import annotations

import numpy as np

from w2v._errors import W2VError
from w2v._evaluation.labels import MAX_CONFUSED_LABELS, LabelScores
from w2v._plotting.figure import Picture, TextFormatter, set_title

MAX_SHOWN = 40  # labels in a picture, the most frequent of the texts
MAX_WITH_NUMBERS = 25  # labels in a picture whose cells also have numbers
INCHES_PER_LABEL, MARGIN = 0.42, 2.2  # the size of a picture


def confusion_matrix(scores: LabelScores, name: str = "") -> Picture:
    """Draw how often each label was taken for each other one. A row has the texts of a label, as shares and numbers.

    Args:
        scores: The scores of a classifier. A picture has at most MAX_SHOWN labels, the most frequent of the texts.
        name: The name of the classifier, for the title.

    Raises:
        W2VError: There are more than MAX_CONFUSED_LABELS labels.
    """
    if scores.confusion is None:
        raise W2VError(
            f"{len(scores.labels):,} labels are too many for a confusion matrix: it has {MAX_CONFUSED_LABELS:,}"
        )
    shown = np.argsort([-each.texts for each in scores.labels], kind="stable")[:MAX_SHOWN]
    numbers = scores.confusion[np.ix_(shown, shown)]
    shares = numbers / np.maximum(scores.confusion[shown].sum(axis=1, keepdims=True), 1)
    names = [scores.labels[number].label for number in shown]
    size = MARGIN + INCHES_PER_LABEL * len(shown)
    picture = Picture(size + 1, size)
    picture.words, picture.labels = scores.texts, len(shown)
    axes = picture.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    picture.colorbar(image, ax=axes, label="share of the texts of a label", shrink=0.8)
    formatter = TextFormatter(names)
    for axis, rotation in (axes.xaxis, 90), (axes.yaxis, 0):
        axis.set_ticks(range(len(names)), [*map(formatter, names)], rotation=rotation, fontsize=8, **formatter.style)
    axes.set_xlabel("predicted")
    axes.set_ylabel("label")
    if len(names) <= MAX_WITH_NUMBERS:
        for row, column in np.argwhere(numbers):
            colour = "white" if shares[row, column] > 0.5 else "black"
            number = f"{numbers[row, column]:,}"
            axes.text(column, row, number, ha="center", va="center", fontsize=7, color=colour)
    total = len(scores.labels)
    more = f", the {len(shown)} most frequent of {total:,} labels" if len(shown) < total else ""
    set_title(axes, f"{name}: accuracy {scores.accuracy:.1%}{more}")
    return picture
