"""The start of a run: its words, and its matrices, which are new, given, continued from a model, or resumed."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import NothingToTrain, SettingsError, W2VError, pluralise
from w2v._formats import bfloat16
from w2v._losses.loss import DATA_PREFIX, Loss
from w2v._losses.registry import Settings, loss_for
from w2v._losses.sampling import SamplingLoss, share_outputs
from w2v._settings import Freeze
from w2v._text._text import FIRST_TYPE
from w2v._text.idstore import TypeCounts
from w2v._text.subword_rows import SubwordRows
from w2v._text.tagging import TaggedTexts
from w2v._text.vocabulary import Vocabulary, extend_vocabulary
from w2v._text.words import Words
from w2v._training.checkpoint import Checkpoint, all_finite
from w2v._training.config import RunConfig
from w2v._training.documents import ROWS
from w2v._training.model import View
from w2v._training.reading import ReadText
from w2v._training.source import CONTINUED_ALPHA, Vocab
from w2v._vectors.keyed import KeyedVectors

log = logging.getLogger("w2v")

SMALL_SHARE = 0.5  # a text with fewer words than this share of the text of a continued model is small


@dataclass(frozen=True)
class Initialisation:
    """The vocabulary, the loss and the initial matrices of a run.

    Attributes:
        vocabulary: The words of the run.
        loss: The loss; by default, a new loss according to the settings.
        parameters: Initial matrices by name, without padding. Matrices that are missing get new values.
        rows: int64 (n,): row i of the matrices in `parameters` becomes row `rows[i]` of the run; by default, row i.
            Other rows get new values. N-gram rows already have the order of the run.
        frozen: Bool, (input rows,): True for rows that stay unchanged during training; by default, none.
        coordinates: The name of the coordinate system of output rows that stay unchanged (see ModelHeader); "" if the
            output rows are trained.
        output_words: See Plan. The loss must draw only words that have their own output row.
        instruction_set: The instruction set that the run began with; "" for a new run.
        tags: The tags of documents, or None. The first of them have rows in `parameters`, if any.
        also_context: Whether the ids have items of `also_context`.
    """

    vocabulary: Vocabulary
    loss: Loss | None = None
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    rows: NDArray[np.int64] | None = None
    frozen: NDArray[np.bool_] | None = None
    coordinates: str = ""
    output_words: NDArray[np.int32] | None = None
    instruction_set: str = ""
    tags: Words | None = None
    also_context: bool = False


def initialise(
    config: RunConfig,
    text: ReadText,
    source: View | KeyedVectors | None = None,
    vocabulary: Vocabulary | None = None,
    checkpoint: Checkpoint | None = None,
) -> Initialisation:
    """Return the vocabulary and the matrices of a run at its start, or at the checkpoint that it resumes from.

    Args:
        config: The description of the run.
        text: The text of the run.
        source: The view that the run continues, or the vectors to initialise words with.
        vocabulary: The words to train; by default, the words of the text.
        checkpoint: The checkpoint to resume from.

    Raises:
        W2VError: The source cannot be used.
    """
    settings, types = config.settings, text.types
    if isinstance(source, View) and source.contexts:
        raise W2VError("the model was trained on pairs: train it with pairs, or choose another model")
    if checkpoint is not None:
        initial = Initialisation(
            checkpoint.vocabulary,
            checkpoint.loss,
            checkpoint.parameters,
            frozen=checkpoint.frozen,
            coordinates=checkpoint.resume_info.coordinates,
            instruction_set=checkpoint.resume_info.instruction_set,
            tags=checkpoint.tags,
        )
    elif isinstance(source, View) and config.freeze == "outputs":
        initial = _initialise_from_compass(source, settings, types, str(text.corpus))
    elif isinstance(source, View):
        initial = initialise_from_model(source, config.vocab, settings, types, config.ignore_memory)
        if source.documents and text.tags:
            old = source.documents.tags
            tags = old.concat(text.tags.take(np.flatnonzero(old.rows_of(text.tags) < 0)))
            initial = replace(initial, tags=tags, parameters={**initial.parameters, ROWS: source.documents.rows})
    else:
        if vocabulary is None:
            min_count = max(settings.min_count, 1 if text.tags else 0)  # the counts of tags are 0
            vocabulary = Vocabulary.from_store(types, min_count, settings.max_vocab)
        else:
            vocabulary = vocabulary.with_key_type(types.key_type)
        initial = Initialisation(vocabulary, tags=text.tags)
        if source is not None:
            initial = replace(initialise_from_vectors(source, vocabulary, config.freeze), tags=text.tags)
    initial = replace(initial, also_context=config.reading.also_context is not None)
    if not isinstance(text.corpus, TaggedTexts):
        return initial
    # The tagged forms of a word share an output row.
    loss = initial.loss or loss_for(settings, initial.vocabulary)
    if not isinstance(loss, SamplingLoss):
        raise SettingsError(f"tag_words: with loss {settings.loss}, words cannot share outputs: choose ns")
    output_words = text.corpus.output_words(initial.vocabulary)
    return replace(initial, loss=share_outputs(loss, output_words), output_words=output_words)


def initialise_from_vectors(
    vectors: KeyedVectors, vocabulary: Vocabulary, freeze: Freeze | None, more_rows: int = 0
) -> Initialisation:
    """Initialise matching words from these vectors; all other words and the output layer start with new values.

    Args:
        vectors: The vectors.
        vocabulary: The words of the run.
        freeze: "inputs" if the matching words keep their vectors.
        more_rows: The number of input rows after the rows of the words, which are not frozen.

    Raises:
        W2VError: No word has a vector, or a vector has NaN or infinite values.
    """
    row_of_word = {word: row for row, word in enumerate(vocabulary.words)}
    words = vectors.first_words(len(vectors))
    matches = [(row_of_word[word], row) for row, word in enumerate(words) if word in row_of_word]
    if not matches:
        raise W2VError("init has no vector for any word of this text: are language, --lower and --tokenize the same?")
    rows, vector_rows = np.array(matches, np.int64).T
    inputs = vectors.vectors[vector_rows]
    if not all_finite([inputs]):
        raise W2VError("the vectors of init have NaN or infinite values")
    all_match = len(rows) == len(row_of_word)
    others = "" if all_match else "; the other words get new vectors"
    log.info("%s of %s words start with their vectors in init%s", f"{len(rows):,}", f"{len(row_of_word):,}", others)
    if freeze and all_match:
        log.warning("freeze: all words keep their vectors, so training changes only the output layer")
    frozen = np.zeros(len(vocabulary) + more_rows, bool)
    frozen[rows] = True
    return Initialisation(vocabulary, None, {"inputs": inputs}, rows, frozen if freeze else None)


def initialise_from_model(
    model: View, vocab: Vocab, settings: Settings, types: TypeCounts, ignore_memory: bool
) -> Initialisation:
    """Initialise a run from a model that is continued.

    Args:
        model: The model, or the view of it that the run trains.
        vocab: "old" keeps the vocabulary, counts and tree of the model. "union" adds the counts of the text, and adds
            words of the text that occur at least min_count times, up to max_vocab words in total.
        settings: The settings of the run.
        types: The types of the text.
        ignore_memory: Whether to build a table of n-grams even if memory looks insufficient.

    Raises:
        SettingsError: The loss does not allow "union".
        W2VError: The model has NaN or infinite values, or there is not enough memory for a table of n-grams.
    """
    parameters = {"inputs": model.inputs} | model.output_parameters
    if not all_finite(parameters.values()):
        raise W2VError("the continued model has NaN or infinite values")
    if types.tokens < SMALL_SHARE * model.vocabulary.tokens and settings.start_alpha > CONTINUED_ALPHA:
        log.warning(
            "the new text has %s, and the model has learnt from %s: with alpha %g it forgets them; leave out alpha",
            *(pluralise(each.tokens, types.noun) for each in (types, model.vocabulary)), settings.start_alpha,
        )  # fmt: skip
    if vocab == "old":
        vocabulary = model.vocabulary.copy()  # because the trained model keeps it
        # The data of a user's own loss may depend on settings that have changed.
        tensors = {
            name: tensor.copy() for name, tensor in model.loss.tensors.items() if not name.startswith(DATA_PREFIX)
        }
        loss = loss_for(settings, vocabulary, tensors | model.output_parameters)
        parameters |= _subword_rows(model, vocabulary, slice(None), ignore_memory)
        return Initialisation(vocabulary, loss, parameters)
    if model.loss.fixed_vocabulary:
        raise SettingsError(
            f"vocab union: with loss {settings.loss}, {model.loss.fixed_vocabulary}: choose old, or train a new model"
        )
    old, words = model.vocabulary, types.words(np.arange(FIRST_TYPE, len(types.counts)))
    key_type = old.key_type if old.key_type == types.key_type else "str"
    limits = settings.min_count, settings.max_vocab
    vocabulary, rows = extend_vocabulary(old, words, types.counts[FIRST_TYPE:], *limits, key_type)
    return Initialisation(vocabulary, None, parameters | _subword_rows(model, vocabulary, rows, ignore_memory), rows)


def _initialise_from_compass(compass: View, settings: Settings, types: TypeCounts, text: str) -> Initialisation:
    """Initialise a run that trains input rows against the frozen output rows of a model (TWEC, Di Carlo et al. 2019).

    The words are the words of the model that occur in the text at least min_count times. Another word of the model
    would keep its vector, as if the text used the word in the same way as the text of the model.

    Args:
        compass: The model, or the view of it that the run trains.
        settings: The settings of the run.
        types: The types of the text.
        text: The text, as in error messages.

    Raises:
        NothingToTrain: No word of the model is frequent enough in the text.
        W2VError: The model has NaN or infinite values.
    """
    if not all_finite(compass.output_parameters.values()):
        raise W2VError("the model of init has NaN or infinite values")
    for array in compass.output_parameters.values():
        if not bfloat16.stores_exactly(array, settings.storage):
            raise SettingsError(
                f"storage {settings.storage}: it would round the output rows that freeze keeps: choose float32"
            )
    row_of_type = types.remap(compass.vocabulary.words)[FIRST_TYPE:]
    is_known = row_of_type >= 0
    counts = np.zeros(len(compass.vocabulary), np.int64)
    counts[row_of_type[is_known]] = types.counts[FIRST_TYPE:][is_known]
    rows = np.argsort(-counts, kind="stable")
    rows = rows[counts[rows] >= max(1, settings.min_count)][: settings.max_vocab]
    if not len(rows):
        raise NothingToTrain(
            f"no {types.noun} of the model of init occurs at least {pluralise(settings.min_count, 'time')} in {text}: "
            "are language, --lower and --tokenize the same?"
        )
    words = [compass.vocabulary.words[row] for row in rows.tolist()]
    vocabulary = Vocabulary(words, counts[rows])
    # Input rows get new values, as in CADE. If they started from the rows of the model, rare words would stay near them
    # and seem unchanged (bench/NOTES.md).
    parameters = {name: array[rows] for name, array in compass.output_parameters.items()}
    coordinates = compass.coordinates or coordinates_of(compass.outputs)
    return Initialisation(vocabulary, None, parameters, coordinates=coordinates)


def coordinates_of(outputs: NDArray[Any]) -> str:
    """Return the name of the coordinate system that output rows define: a part of their SHA-256."""
    return hashlib.sha256(np.ascontiguousarray(outputs).view(np.uint8).data).hexdigest()[:16]


def _subword_rows(
    model: View, vocabulary: Vocabulary, rows: NDArray[np.int64] | slice, ignore_memory: bool
) -> dict[str, NDArray[Any]]:
    """Return the word and n-gram rows that the input rows are composed of, if the model has n-grams.

    Args:
        model: The model.
        vocabulary: The words of the run.
        rows: The rows in `vocabulary` of the model's words.
        ignore_memory: Whether to build a table of n-grams even if memory looks insufficient.
    """
    if not model.ngrams:
        return {}
    subwords = SubwordRows.of(model.ngrams.subwords, vocabulary.words, ignore_memory)
    shared = subwords.sum_by_row(model.ngrams.rows_of(subwords.buckets))[len(vocabulary) :]
    return {"inputs": subwords.decompose(model.inputs, shared, rows), "ngrams": shared}
