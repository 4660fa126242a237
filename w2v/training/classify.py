"""`train_classifier`: train a model that predicts the labels of texts."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from numpy.typing import ArrayLike

from w2v.errors import SettingsError
from w2v.losses.registry import Settings
from w2v.options import refuse_unknown, with_parameters_of
from w2v.settings import RENAMED
from w2v.system.files import PathLike
from w2v.text.corpus import Source
from w2v.text.idstore import ReadingOptions
from w2v.text.labels import LabelledTexts, LabelOptions, with_labels
from w2v.training.classifier import Classifier
from w2v.training.communicator import OneProcess
from w2v.training.config import RunConfig
from w2v.training.model import Model
from w2v.training.source import vectors_to_start
from w2v.training.train import RunArguments, open_training
from w2v.vectors.keyed import KeyedVectors


@dataclass(frozen=True, kw_only=True)
class Arguments(RunArguments, ReadingOptions, LabelOptions, Settings):
    """The keyword arguments of `train_classifier`."""

    labels: Any = field(default=None, kw_only=False)
    sample_weight: ArrayLike | None = None
    held_out: Any = None
    continue_from: Classifier | PathLike | None = None


@with_parameters_of(Arguments)
def train_classifier(texts: Source, labels: Any = None, **given: Any) -> Classifier:
    """Train a model that predicts the labels of texts, and return it.

    Args:
        texts: The texts, as for `train`. In files, and in texts without `labels`, words that begin with `label_prefix`
            are the labels of their line. An iterable is read once.
        labels: The labels of the texts: a string, or a list of strings, for each. For a table, the name of its column.
        sample_weight: The weight of each text, 0 or more, relative to the others: weights are scaled to a mean of 1,
            and then are factors of the learning rate. Texts of weight 0 are left out.
        continue_from: A classifier to continue, or its .safetensors file, with more texts and perhaps new labels. The
            run has its settings, unless you give others.
        held_out: With stop_early, texts that score the classifier after each epoch, instead of a tenth of the texts: a
            pair of texts and their labels, or texts with labels as in `texts`.
        init: KeyedVectors, or a file in any format, with vectors for words of an embedded classifier to start with.
        freeze: "inputs" keeps the vectors from `init` unchanged, and trains only the other rows and the output layer.
        column: The column of a table with the texts.
        checkpoint, checkpoint_every, notes, ignore_memory, progress, communicator: See `train`.

    The other arguments are settings, which `w2v classify --help-all` describes.

    Raises:
        W2VError: The texts cannot be used, or the matrices do not fit in memory.
        SettingsError: A setting is impossible.
    """
    refuse_unknown(given, [each.name for each in fields(Arguments)], RENAMED)
    sample_weight = given.pop("sample_weight", None)
    ranks = given.pop("communicator", None) or OneProcess()
    opened: dict[str, Any] = {"checkpoint": given.get("checkpoint"), "progress": given.pop("progress", None)}
    opened["held_out"] = with_labels(given.pop("held_out", None), given.get("column"))
    corpus: Any = texts
    if isinstance(labels, str):
        given["labels"] = labels
    elif labels is not None:
        corpus = LabelledTexts.of_lists(texts, labels, sample_weight, given.pop("column", None))
    if sample_weight is not None and not isinstance(corpus, LabelledTexts):
        raise SettingsError("sample_weight needs labels: give a list of them")
    given |= {"notes": dict(given.get("notes") or {}), "held_out": opened["held_out"] is not None}
    with ranks.collective_errors():
        source = open_label_source(given.get("continue_from"), given.get("init"))
        config = RunConfig.from_options({**given, "classify": True}, source)
    with open_training(config, corpus, views="words", source=source, ranks=ranks, **opened) as training:
        training.train(opened["progress"])
        return training.classifier()


def open_label_source(
    continue_from: Classifier | PathLike | None, init: KeyedVectors | Model | PathLike | None
) -> Classifier | KeyedVectors | None:
    """Open the classifier to continue, or the vectors to start words with; see `train_classifier`."""
    if continue_from is None:
        return vectors_to_start(init)
    return continue_from if isinstance(continue_from, Classifier) else Classifier.load(continue_from, mmap=True)
