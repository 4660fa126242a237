"""`Model`: the settings, the vocabulary, the matrices and the loss of a trained model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from w2v.display import Page, html_curve, html_table
from w2v.errors import VectorsWithoutModel, W2VError, one_line, pluralise
from w2v.evaluation.analogies import AnalogyResult, analogies
from w2v.formats import bfloat16, table
from w2v.formats.header import ModelHeader
from w2v.formats.vector_file import VectorFile
from w2v.losses.loss import PREFIX, Array, Integers, Loss, by_tensor_name, is_parameter
from w2v.losses.registry import Settings, loss_for, settings_from
from w2v.settings import WordVectors
from w2v.system.files import PathLike
from w2v.text.normalise import TextOptions
from w2v.text.subwords import Ngrams
from w2v.text.vocabulary import Vocabulary
from w2v.text.words import Words
from w2v.vectors.combine import combine_rows, concatenate_rows
from w2v.vectors.keyed import KeyedVectors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A tensor in the file: mean losses, float64 (epochs,), NaN for epochs without predictions.
LOSS_BY_EPOCH = "loss_by_epoch"
# Metrics that differ from run to run are not stored, so that runs with the same result write the same bytes.
NOT_STORED = {"seconds", "words_per_second", "cache_reused", "exchange"}
SHOWN_METRICS = ("tokens", "tokens_trained", "words_per_second", "seconds", "loss")
# What a .safetensors file has in addition to words and vectors; the end of a sentence in messages.
SAFETENSORS_ALSO_KEEPS = "also keeps the counts, settings and output layer that --continue, perplexity and rank need"
INPUTS_TENSOR = "inputs"  # the name of the input rows in a file, if its "vectors" are not the input rows

# Old names of attributes and methods of Model, which version 0.3 will remove.
RENAMED_ATTRIBUTES = {"learnt": "output_parameters", "widened": "to_float32", "content": "to_vector_file"}


class HasVectors:
    """A model with word vectors `wv`.

    If a caller uses an attribute of the word vectors on the model itself, the error names the right expression.
    """

    if not TYPE_CHECKING:  # because type checkers would assume that every attribute exists

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with a hint if `wv` has an attribute of this name."""
            hint = f": use model.wv.{name}" if hasattr(KeyedVectors, name) else ""
            raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}{hint}", name=name, obj=self)

    def __getitem__(self, key: object) -> NoReturn:
        """Raise TypeError with the hint to index `wv`."""
        word = key if isinstance(key, str) else "king"
        raise TypeError(f"a {type(self).__name__} has no items: use model.wv[{word[:60]!r}]")

    def __contains__(self, key: object) -> NoReturn:
        """Raise TypeError with the hint to search `wv`."""
        raise TypeError(f"a {type(self).__name__} has no items: use {key!r:.60} in model.wv")


@dataclass(repr=False)
class Model(HasVectors):
    """A trained model.

    Attributes:
        settings: The settings of the run.
        vocabulary: The words and their counts.
        inputs: The input rows, (V, D), float32; bfloat16 after training with storage "bf16".
        outputs: The rows of the output layer, (R, D), in the dtype of `inputs`. Continued training starts from inputs
            and outputs.
        loss: The loss that the model was trained with.
        text: How the text was normalised and split into words. Queries and other texts are treated the same way.
        parameters: All other matrices of the loss, float32, by name.
        metrics: Measurements of the run: tokens, tokens_trained, words_per_second, seconds (by phase), loss (mean per
            prediction, by epoch), predictions (number, by epoch), sentences, tokens_read (including unknown words),
            pruned (types dropped because of max_types) and cache_reused; also phrases (number found, delimiter) if
            phrases were joined. Files do not store words_per_second, seconds and cache_reused.
        history: The progress of the training, float64 (n, 4): words trained, seconds of training, summed loss and
            number of predictions, each since the start of the run. Files do not store it.
        ngrams: The n-gram rows that the input rows are composed of, if settings.subwords is set.
    """

    settings: Settings
    vocabulary: Vocabulary
    inputs: NDArray[Any]
    outputs: NDArray[Any]
    loss: Loss
    metrics: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, NDArray[Any]] = field(default_factory=dict)
    text: TextOptions = field(default_factory=TextOptions)
    history: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 4)))
    ngrams: Ngrams | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return an attribute by its old name, with a DeprecationWarning. Otherwise raise AttributeError."""
            if name not in RENAMED_ATTRIBUTES:
                return super().__getattr__(name)
            new = RENAMED_ATTRIBUTES[name]
            warnings.warn(f"Model.{name} is now Model.{new}", DeprecationWarning, stacklevel=2)
            return getattr(self, new)

    def __repr__(self) -> str:
        rows, size = self.inputs.shape
        return (
            f"<Model: {pluralise(rows, 'word')}, {pluralise(size, 'value')} each, {self.settings.model} with loss "
            f"{self.settings.loss}>"
        )

    def _repr_html_(self) -> str:
        """Return an HTML table of settings, metrics, accuracy on the bundled analogies, and the loss curve."""
        facts: dict[str, object] = {"settings": html_table(list(self.settings.in_effect().items()))}
        facts |= {name: self.metrics[name] for name in SHOWN_METRICS if name in self.metrics}
        if self._analogies.answered:
            facts["analogies"] = f"{self._analogies.accuracy:.1%} of {self._analogies.answered:,} bundled questions"
        if len(curve := self.loss_curve) > 1:
            label = f"loss per prediction, from {curve[0][1]:.4g} to {curve[-1][1]:.4g}"
            facts[label] = html_curve(curve, label)
        rows = [(name.replace("_", " "), value) for name, value in facts.items()]
        return f"<p>{escape(repr(self).strip('<>'))}</p>{html_table(rows)}"

    @cached_property
    def _analogies(self) -> AnalogyResult:
        return analogies(self.wv, progress=lambda _: None)

    @property
    def loss_curve(self) -> list[tuple[float, float]]:
        """Points (words trained, mean loss per prediction since the previous point).

        The points are the rows of `history`. A loaded model, or a model of a very short run, has one point per epoch.
        """
        words, _, losses, predictions = self.history.T
        new = np.diff(predictions, prepend=0)
        means = np.diff(losses, prepend=0)[new > 0] / new[new > 0]
        recorded = list(zip(words[new > 0].tolist(), means.tolist(), strict=True))
        tokens, by_epoch = self.metrics.get("tokens", 1), enumerate(self.metrics.get("loss", []), 1)
        return max(recorded, [(epoch * tokens, loss) for epoch, loss in by_epoch if loss is not None], key=len)

    @cached_property
    def vectors(self) -> NDArray[Any]:
        """The word vectors, in the dtype of `inputs`: (V, D), or (V, 2D) where settings.vectors is "concatenated"."""
        kind = self.settings.word_vectors
        if kind == "input":
            return self.inputs
        make = combine_rows if kind == "combined" else concatenate_rows
        counts = self.vocabulary.counts if self.loss.log_frequencies else None
        return make(self.inputs, self.outputs[: len(self.inputs)], counts).astype(self.inputs.dtype, copy=False)

    @cached_property
    def words(self) -> list[str]:
        """The words of the vocabulary, the most frequent first."""
        return self.vocabulary.words.tolist()

    @cached_property
    def wv(self) -> KeyedVectors:
        """The word vectors by word, float32; bfloat16 vectors are copied and converted."""
        ngrams = self.ngrams.tensors if self.ngrams and self.vectors is self.inputs else {}
        words, counts = self.vocabulary.words, self.vocabulary.counts
        return KeyedVectors(words, self.vectors, counts, tensors=ngrams, header=self._text_header)

    @property
    def _text_header(self) -> ModelHeader:
        return ModelHeader(text=self.text, subwords=self.ngrams.subwords if self.ngrams else None)

    def plot(self, words: Iterable[str] | Mapping[str, Sequence[str]] | None = None, **options: Any) -> Figure:
        """Plot a map of words; see KeyedVectors.plot."""
        return self.wv.plot(words, **options)

    def explore(self, other: Model | None = None, **options: Any) -> Page:
        """Return a page for the browser about one or two models; see KeyedVectors.explore."""
        return self.wv.explore(other.wv if other else None, **options)

    @property
    def output_parameters(self) -> dict[str, NDArray[Any]]:
        """The matrices of the output layer and of the loss, by their names in a file."""
        outputs = {"outputs": self.outputs} if len(self.outputs) else {}
        return by_tensor_name(outputs | self.parameters)

    def log_probabilities(self, rows: Array) -> Array:
        """Return ln p(word | row) for each word of the vocabulary.

        Args:
            rows: (N, D). With skip-gram, a row is the input vector of a word; with CBOW, the mean of the input vectors
                of the context words.

        Returns:
            (N, V), in the dtype of `rows`.
        """
        return self.loss.distribution(self._parameters, rows)

    def log_probabilities_of(self, rows: Array, indices: Integers, words: Integers) -> Array:
        """Return ln p(words[k] | rows[indices[k]]) for each k, (N,).

        Hierarchical softmax scores only the nodes on a word's path. Class-based softmax scores the classes, and the
        words in the word's class. Other losses score all words.

        Args:
            rows: (M, D); see `log_probabilities`.
            indices: (N,), row numbers.
            words: (N,), word numbers.
        """
        return self.loss.log_probabilities_of(self._parameters, rows, indices, words, np.zeros(0, np.int64))[0]

    @property
    def _parameters(self) -> dict[str, Array]:
        return {"outputs": self.outputs} | self.parameters

    def to_float32(self) -> Self:
        """Return the same model with float32 matrices instead of bfloat16."""
        inputs, outputs = bfloat16.to_float32(self.inputs), bfloat16.to_float32(self.outputs)
        ngrams = replace(self.ngrams, rows=bfloat16.to_float32(self.ngrams.rows)) if self.ngrams else None
        settings = replace(self.settings, storage="float32")
        return replace(self, settings=settings, inputs=inputs, outputs=outputs, ngrams=ngrams)

    @classmethod
    def of(cls, model: Model | PathLike, mmap: bool = False) -> Model:
        """Return the model itself, or load it from a file; see `load`. Raise W2VError for KeyedVectors."""
        if isinstance(model, KeyedVectors):
            raise W2VError("word vectors have no output layer: give the model that training returned, or its file")
        return model if isinstance(model, Model) else cls.load(model, mmap)

    @classmethod
    def load(cls, path: PathLike, mmap: bool = False) -> Self:
        """Load a model from a .safetensors file.

        `settings.workers` of the loaded model is None, because the number of threads depends on the machine.

        Args:
            path: The file.
            mmap: Whether to memory-map the matrices instead of reading them.

        Raises:
            W2VError: The file cannot be read, or it holds only word vectors, without the output layer.
        """
        stored = table.read(path, mmap and Path(path).suffix == ".safetensors")
        output_parameters = {name: stored.tensors.pop(name) for name in list(stored.tensors) if is_parameter(name)}
        header = stored.header
        if not output_parameters or stored.counts is None or header.settings is None:
            raise VectorsWithoutModel(
                f"{path}: it has only words and vectors: train with -o model.safetensors "
                f'(model.save("model.safetensors")), which {SAFETENSORS_ALSO_KEEPS}'
            )
        settings = replace(settings_from(header.settings, f"{path}: its settings", vectors="input"), workers=None)
        metrics = dict(header.metrics)
        if LOSS_BY_EPOCH in stored.tensors:
            metrics["loss"] = _without_nan(stored.tensors.pop(LOSS_BY_EPOCH), path)
        vocabulary = Vocabulary(stored.words, stored.counts)
        inputs = stored.tensors.pop(INPUTS_TENSOR, stored.vectors)
        if not bfloat16.is_training_dtype(inputs) or inputs.shape != (len(vocabulary), settings.vector_size):
            raise W2VError(f"{path}: damaged: its input rows have shape {inputs.shape} and type {inputs.dtype}")
        try:
            loss = loss_for(settings, vocabulary, stored.tensors | output_parameters)
        except W2VError as error:
            raise W2VError(f"{path}: {one_line(error)}") from error
        matrices = matrix_arguments({"inputs": inputs} | output_parameters)
        ngrams = Ngrams.from_file(stored.tensors, header.subwords, settings.vector_size, path)
        if (ngrams.subwords if ngrams else None) != settings.ngrams:
            raise W2VError(f"{path}: damaged: its n-grams do not fit its settings")
        model = cls(settings, vocabulary, loss=loss, metrics=metrics, text=header.text, ngrams=ngrams, **matrices)
        if inputs is not stored.vectors:
            model.vectors = stored.vectors  # vectors computed again may differ in the last bits
        return model

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write the model to a file, atomically. Only the format .safetensors stores the whole model.

        Args:
            path: The file; its extension chooses the format.
            force: Whether to replace an existing file.

        Raises:
            W2VError: The file cannot be written, or it exists and `force` is false.
            SettingsError: The extension is unknown.
        """
        table.write(path, self.to_vector_file(), force)

    def to_vector_file(self) -> VectorFile:
        """Return the content of the model's file. It includes the input rows only if they are not the word vectors."""
        tensors = {} if self.vectors is self.inputs else {INPUTS_TENSOR: self.inputs}
        tensors |= self.output_parameters | self.loss.tensors
        metrics = {name: value for name, value in self.metrics.items() if name not in NOT_STORED}
        if "loss" in metrics:
            tensors[LOSS_BY_EPOCH] = np.array(metrics.pop("loss"), np.float64)  # None becomes NaN
        header = replace(self._text_header, settings=self.settings.as_dict(), metrics=metrics)
        tensors |= self.ngrams.tensors if self.ngrams else {}
        words = Words.of(self.vocabulary.words)
        return VectorFile(words, self.vectors, self.vocabulary.counts, tensors, header)

    def with_vectors(self, kind: WordVectors) -> Self:
        """Return the same model with another kind of word vectors; see settings.vectors.

        Raises:
            SettingsError: The loss of the model does not allow this kind.
        """
        self.loss.check_vectors(settings := replace(self.settings, vectors=kind))
        return replace(self, settings=settings)


def matrix_arguments(matrices: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Convert matrices, by their names in a file, into the arguments `inputs`, `outputs` and `parameters` of Model."""
    inputs = matrices["inputs"]
    outputs = matrices.get("outputs", np.empty((0, inputs.shape[1]), np.float32))  # a loss may have no outputs
    others = {name.removeprefix(PREFIX): array for name, array in matrices.items() if name.startswith(PREFIX)}
    return {"inputs": inputs, "outputs": outputs, "parameters": others}


def _without_nan(losses: NDArray[Any], path: PathLike) -> list[float | None]:
    """Return mean losses with None instead of NaN. Raise W2VError for an array of the wrong shape or dtype."""
    if losses.ndim != 1 or losses.dtype != np.float64:
        raise W2VError(f"{path}: damaged: its losses have shape {losses.shape} and type {losses.dtype}")
    return [None if math.isnan(loss) else loss for loss in losses.tolist()]
