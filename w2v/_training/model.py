"""`Model`: a trained model. It has one view of its words or several, and each `View` has its own matrices and loss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from w2v._display import html_curve, html_table
from w2v._errors import SettingsError, VectorsWithoutModel, W2VError, pluralise, translate_errors
from w2v._evaluation.analogies import AnalogyResult, analogies
from w2v._formats import bfloat16, registry
from w2v._formats.header import ModelHeader, ViewHeader
from w2v._formats.vector_file import NGRAM_TENSORS, SUBWORD_VIEW, WORD_VIEW, VectorFile, view_prefix
from w2v._losses.loss import PREFIX, Array, Integers, Loss, by_tensor_name, is_parameter
from w2v._losses.registry import Settings, loss_for, settings_from
from w2v._settings import WordVectors
from w2v._system import memory
from w2v._system.files import PathLike
from w2v._text.normalise import TextOptions
from w2v._text.subwords import Ngrams
from w2v._text.vocabulary import LABEL_TENSORS, Vocabulary, label_tensors, labels_of_file
from w2v._text.words import Words
from w2v._training.documents import Documents
from w2v._training.views import whole_settings
from w2v._vectors.combine_matrices import combine_matrices, concatenate_matrices
from w2v._vectors.combine_models import concatenate_unit_vectors
from w2v._vectors.encode import encode_lines
from w2v._vectors.keyed import KeyedVectors

# A tensor in the file: mean losses, float64 (epochs,), NaN for epochs without predictions.
LOSS_BY_EPOCH = "loss_by_epoch"
# Metrics that differ from run to run are not stored, so that runs with the same result write the same bytes.
NOT_STORED = {"seconds", "words_per_second", "cache_reused", "exchange"}
SHOWN_METRICS = ("tokens", "tokens_trained", "words_per_second", "seconds", "loss")
# Metrics that a model with several views has for each view.
METRICS_OF_VIEWS = ("loss", "predictions", "held_out_scores")
# What a .safetensors file has in addition to words and vectors; the end of a sentence in messages.
SAFETENSORS_ALSO_KEEPS = "also keeps the counts, settings and output layer that --continue, perplexity and rank need"
INPUTS_TENSOR = "inputs"  # the name of the input rows in a file, if its "vectors" are not the input rows


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


def _described(model: View | Model) -> str:
    """Return the size, the kind and the loss of a model in words."""
    words = pluralise(len(model.vocabulary), model.metrics.get("noun", "word"))
    size = pluralise(model.vectors.shape[1], "value")
    return f"{words}, {size} each, {model.settings.model} with loss {model.settings.loss}"


@dataclass(repr=False, frozen=True)
class View(HasVectors):
    """A view of a model: what one run has trained. A model of whole words, or of n-grams, has only this view.

    Its matrices cannot be edited, because `vectors` and `wv` are computed from them.

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
            pruned (types dropped because of max_types), noun (what messages call the words: word, item or node),
            cache_reused and instruction_set; also phrases (number found,
            delimiter) if phrases were joined, held_out_scores (by epoch) with stop_early, and ranks and exchange with
            several ranks. Files do not store words_per_second, seconds, cache_reused and exchange.
        history: The progress of the training, float64 (n, 4): words trained, seconds of training, summed loss and
            number of predictions, each since the start of the run. Files do not store it.
        ngrams: The n-gram rows that the input rows are composed of, if settings.subwords is set.
        coordinates: See ModelHeader. Models with the same frozen output rows have the same name here.
        documents: The tags of documents and their rows, if settings.documents is set.
        contexts: The words that the output layer predicts, if they are not `vocabulary`: in a model of pairs with two
            vocabularies.
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
    coordinates: str = ""
    documents: Documents | None = None
    contexts: Vocabulary | None = None

    def __repr__(self) -> str:
        return f"<View: {_described(self)}>"

    def __post_init__(self) -> None:
        parameters = {name: memory.read_only(array) for name, array in self.parameters.items()}
        ngrams = self.ngrams and replace(self.ngrams, rows=memory.read_only(self.ngrams.rows))
        inputs, outputs = memory.read_only(self.inputs), memory.read_only(self.outputs)
        vars(self).update(inputs=inputs, outputs=outputs, parameters=parameters, ngrams=ngrams)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for array in (*state.values(), *self.parameters.values(), self.ngrams and self.ngrams.rows):
            if isinstance(array, np.ndarray):  # a copy by pickle can be edited
                array.setflags(write=False)

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
        """The word vectors, in the dtype of `inputs`: (V, D), or (V, 2D) where settings.vectors is "concatenated".

        With documents "dbow", words have no trained input rows, and the vectors are the output rows.
        """
        kind = self.settings.word_vectors
        if self.settings.documents == "dbow" and not self.loss.no_word_outputs:
            return memory.read_only(self.outputs[: len(self.inputs)])
        if kind == "input":
            return self.inputs
        make = combine_matrices if kind == "combined" else concatenate_matrices
        counts = self.vocabulary.counts if self.loss.log_frequencies else None
        vectors = make(self.inputs, self.outputs[: len(self.inputs)], counts)
        return memory.read_only(vectors.astype(self.inputs.dtype, copy=False))

    @cached_property
    def wv(self) -> KeyedVectors:
        """The word vectors by word, float32; bfloat16 vectors are copied and converted."""
        ngrams = self.ngrams.tensors if self.ngrams and self.vectors is self.inputs else {}
        words, counts = self.vocabulary.words, self.vocabulary.counts
        return KeyedVectors(words, self.vectors, counts, tensors=ngrams, header=self._text_header)

    def context_vectors(self) -> KeyedVectors:
        """Return the output rows as vectors of the words that they predict, float32.

        Raises:
            SettingsError: The loss has no output row for each word.
        """
        if self.loss.no_word_outputs:
            raise SettingsError(f"loss {self.settings.loss}: {self.loss.no_word_outputs}: contexts have no vectors")
        contexts = self.contexts or self.vocabulary
        header = ModelHeader(key_type=contexts.key_type)
        return KeyedVectors(contexts.words, self.outputs[: len(contexts)], contexts.counts, header=header)

    @property
    def _text_header(self) -> ModelHeader:
        subwords = self.ngrams.subwords if self.ngrams else None
        return ModelHeader(
            text=self.text, subwords=subwords, key_type=self.vocabulary.key_type, coordinates=self.coordinates
        )

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
        """Return the same view with float32 matrices instead of bfloat16."""
        inputs, outputs = bfloat16.to_float32(self.inputs), bfloat16.to_float32(self.outputs)
        ngrams = replace(self.ngrams, rows=bfloat16.to_float32(self.ngrams.rows)) if self.ngrams else None
        settings = replace(self.settings, storage="float32")
        return replace(self, settings=settings, inputs=inputs, outputs=outputs, ngrams=ngrams)

    @classmethod
    def from_vector_file(cls, stored: VectorFile, path: PathLike) -> Self:
        """Return the view in the content of a file of one view.

        Raises:
            W2VError: It holds only word vectors, or it is damaged.
        """
        output_parameters = {name: stored.tensors.pop(name) for name in list(stored.tensors) if is_parameter(name)}
        header = stored.header
        if header.labels is not None:
            raise VectorsWithoutModel(f"{path} is a classifier, and this needs a model of words: use w2v predict")
        if not output_parameters or stored.counts is None or header.settings is None:
            raise VectorsWithoutModel(
                f"{path}: it has only words and vectors: train with -o model.safetensors "
                f'(model.save("model.safetensors")), which {SAFETENSORS_ALSO_KEEPS}'
            )
        settings = replace(settings_from(header.settings, f"{path}: its settings"), workers=None)
        metrics = dict(header.metrics)
        if LOSS_BY_EPOCH in stored.tensors:
            metrics["loss"] = _without_nan(stored.tensors.pop(LOSS_BY_EPOCH), path)
        vocabulary = Vocabulary(stored.words, stored.counts, header.key_type)
        inputs = stored.tensors.pop(INPUTS_TENSOR, stored.vectors)
        if not bfloat16.is_training_dtype(inputs) or inputs.shape != (len(vocabulary), settings.vector_size):
            raise W2VError(f"{path}: damaged: its input rows have shape {inputs.shape} and type {inputs.dtype}")
        with translate_errors(str(path), W2VError):
            is_of_pairs = LABEL_TENSORS.keys() & stored.tensors.keys()
            contexts = labels_of_file(stored.tensors, header.key_type) if is_of_pairs else None
            loss = loss_for(settings, contexts or vocabulary, stored.tensors | output_parameters)
        matrices = matrix_arguments({"inputs": inputs} | output_parameters)
        ngrams = Ngrams.from_file(stored.tensors, header.subwords, settings.vector_size, path)
        if (ngrams.subwords if ngrams else None) != settings.ngrams:
            raise W2VError(f"{path}: damaged: its n-grams do not fit its settings")
        others: dict[str, Any] = {"text": header.text, "ngrams": ngrams, "coordinates": header.coordinates}
        others["documents"] = Documents.from_file(stored.tensors, settings.vector_size, path)
        if bool(others["documents"]) != bool(settings.documents):
            raise W2VError(f"{path}: damaged: its documents do not fit its settings")
        others["contexts"] = contexts
        view = cls(settings, vocabulary, loss=loss, metrics=metrics, **others, **matrices)
        if inputs is not stored.vectors:
            # Vectors computed again may differ in the last bits.
            vars(view)["vectors"] = memory.read_only(stored.vectors)
        return view

    def to_vector_file(self) -> VectorFile:
        """Return the content of the file. It includes the input rows only if they are not the word vectors."""
        tensors = {} if self.vectors is self.inputs else {INPUTS_TENSOR: self.inputs}
        tensors |= self.output_parameters | self.loss.tensors | (label_tensors(self.contexts) if self.contexts else {})
        metrics = {name: value for name, value in self.metrics.items() if name not in NOT_STORED}
        if "loss" in metrics:
            tensors[LOSS_BY_EPOCH] = np.array(metrics.pop("loss"), np.float64)  # None becomes NaN
        header = replace(self._text_header, settings=self.settings.as_dict(), metrics=metrics)
        tensors |= self.ngrams.tensors if self.ngrams else {}
        tensors |= self.documents.tensors if self.documents else {}
        words = Words.of(self.vocabulary.words)
        return VectorFile(words, self.vectors, self.vocabulary.counts, tensors, header)

    def with_vectors(self, kind: WordVectors) -> Self:
        """Return the same view with another kind of word vectors; see settings.vectors.

        Raises:
            SettingsError: The loss of the model does not allow this kind.
        """
        self.loss.check_vectors(settings := replace(self.settings, vectors=kind))
        if self.contexts and kind != "input":
            raise SettingsError(f"vectors {kind}: the inputs and contexts of pairs are different words: choose input")
        # Vectors that combine input and output rows have another coordinate system.
        return replace(self, settings=settings, coordinates=self.coordinates if kind == "input" else "")


@dataclass(repr=False, frozen=True)
class Model(HasVectors):
    """A trained model.

    With several views of the words, which were trained separately on the same text, the vector of a word is the
    concatenation of its vectors in all views, each scaled to length 1. An unknown word has the vector that its n-grams
    give it in the view of subwords; see `w2v._vectors.neighbours.complete_vectors` for the view of words.

    Attributes:
        views: The views by name: "words" and perhaps "subwords". Each has its own matrices, loss and settings.
    """

    views: dict[str, View]

    def __repr__(self) -> str:
        sizes = " and ".join(f"{name} ({view.vectors.shape[1]})" for name, view in self.views.items())
        return f"<Model: {_described(self)}" + (f", views of {sizes}>" if len(self.views) > 1 else ">")

    def _repr_html_(self) -> str:
        """Return an HTML table of settings, metrics, accuracy on the bundled analogies, and loss curves."""
        facts: dict[str, object] = {"settings": html_table(list(self.settings.in_effect().items()))}
        facts |= {name: self.metrics[name] for name in SHOWN_METRICS if name in self.metrics}
        if self._analogies.answered:
            facts["analogies"] = f"{self._analogies.accuracy:.1%} of {self._analogies.answered:,} bundled questions"
        for name, view in self.views.items():
            if len(curve := view.loss_curve) > 1:
                of_view = f"{name}: " if len(self.views) > 1 else ""
                label = f"{of_view}loss per prediction, from {curve[0][1]:.4g} to {curve[-1][1]:.4g}"
                facts[label] = html_curve(curve, label)
        rows = [(name.replace("_", " "), value) for name, value in facts.items()]
        return f"<p>{escape(repr(self).strip('<>'))}</p>{html_table(rows)}"

    @cached_property
    def _analogies(self) -> AnalogyResult:
        return analogies(self.wv, progress=lambda _: None)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with a hint if each view has an attribute of this name."""
            if name in View.__dataclass_fields__ or (hasattr(View, name) and not name.startswith("_")):
                hint = f"each view has its own: use model.views['words'].{name}"
                raise AttributeError(f"a Model has no attribute {name!r}: {hint}", name=name, obj=self)
            return super().__getattr__(name)

    @property
    def _words(self) -> View:
        return self.views[WORD_VIEW]

    @property
    def settings(self) -> Settings:
        """The settings of the view of words, with the vector_size of the model.

        If views have different windows, `window` is None, its default.
        """
        return whole_settings([view.settings for view in self.views.values()])

    @property
    def vocabulary(self) -> Vocabulary:
        """The words and their counts, which are the same in all views."""
        return self._words.vocabulary

    @cached_property
    def words(self) -> list[str]:
        """The words of the vocabulary, the most frequent first."""
        return self.vocabulary.words.tolist()

    @property
    def text(self) -> TextOptions:
        """How the text was normalised and split into words. Queries and other texts are treated the same way."""
        return self._words.text

    @property
    def coordinates(self) -> str:
        """See ModelHeader. Models with the same frozen output rows have the same name here."""
        return self._words.coordinates

    @property
    def vectors(self) -> NDArray[Any]:
        """The word vectors, (V, D); bfloat16 after training one view with storage "bf16", else float32."""
        return self._words.vectors if len(self.views) == 1 else self.wv.vectors

    @cached_property
    def wv(self) -> KeyedVectors:
        """The word vectors by word, float32; bfloat16 vectors are copied and converted."""
        if len(self.views) == 1:
            return self._words.wv
        words, counts, rows = self.vocabulary.words, self.vocabulary.counts, np.arange(len(self.vocabulary))
        matrices = [view.vectors for view in self.views.values()]
        vectors = concatenate_unit_vectors(matrices, [rows] * len(matrices), [1.0] * len(matrices))
        vectors = memory.read_only(vectors)
        return KeyedVectors(words, vectors, counts, tensors=self._ngrams.tensors, header=self._vectors_header)

    @cached_property
    def contexts(self) -> KeyedVectors:
        """The output rows as vectors of the contexts that they predict; see `train_pairs`."""
        return self._words.context_vectors()

    @property
    def documents(self) -> KeyedVectors:
        """The vectors of the training documents by tag, float32; without tags, by the number of the line from 0.

        Raises:
            SettingsError: The model was trained without `documents`.
        """
        if not (documents := self._words.documents):
            raise SettingsError("the model has no documents: train with --documents (documents=)")
        return documents.keyed_vectors

    def infer(
        self,
        texts: Iterable[str | None] | Iterable[Sequence[str] | None],
        *,
        epochs: int | None = None,
        alpha: float | None = None,
    ) -> NDArray[np.float32]:
        """Return the vectors of N new texts or lists of words, float32 (N, D), in the space of `documents`.

        The vector of a text does not depend on the other texts or on the number of threads: the same text always has
        the same bits. A text without a known word gets zeros.

        Args:
            texts: The texts, which are split into words as in the training.
            epochs: The number of passes over each text; by default, as in the training.
            alpha: The learning rate at the start; by default, as in the training.

        Raises:
            SettingsError: The model was trained without `documents`, or a value is impossible.
            W2VError: `texts` is not a list of texts.
        """
        return encode_lines(self._inference.with_schedule(epochs, alpha), texts)

    @cached_property
    def _inference(self) -> Any:
        """The copy of the model that infers vectors of texts."""
        from w2v._training.infer import Inference  # the kernel is imported only when it is needed

        return Inference(self._words)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_inference"}

    @property
    def _ngrams(self) -> Ngrams:
        ngrams = self.views[SUBWORD_VIEW].ngrams
        assert ngrams
        return ngrams

    @property
    def _vectors_header(self) -> ModelHeader:
        offset = sum(view.vectors.shape[1] for name, view in self.views.items() if name != SUBWORD_VIEW)
        return ModelHeader(
            text=self.text,
            subwords=self._ngrams.subwords,
            ngram_offset=offset,
            key_type=self.vocabulary.key_type,
            coordinates=self.coordinates,
        )

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the whole run, as in View.metrics. With several views, "views" has the metrics of each."""
        metrics = {name: view.metrics for name, view in self.views.items()}
        if len(metrics) == 1:
            return metrics[WORD_VIEW]
        total = {name: value for name, value in metrics[WORD_VIEW].items() if name not in METRICS_OF_VIEWS}
        total["tokens_trained"] = sum(view["tokens_trained"] for view in metrics.values())
        if all("seconds" in view for view in metrics.values()):  # files do not store them
            seconds = sum(view["seconds"]["train"] for view in metrics.values())
            total["seconds"] = metrics[WORD_VIEW]["seconds"] | {"train": seconds}
            total["words_per_second"] = total["tokens_trained"] / seconds if seconds else 0.0
        names = METRICS_OF_VIEWS
        total["views"] = {name: {key: view[key] for key in names if key in view} for name, view in metrics.items()}
        return total

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write the model to a file, atomically. Only the format .safetensors stores the whole model.

        Args:
            path: The file; its extension chooses the format.
            force: Whether to replace an existing file.

        Raises:
            W2VError: The file cannot be written, or it exists and `force` is false.
            SettingsError: The extension is unknown.
        """
        registry.write(path, self.to_vector_file(), force)

    @classmethod
    def of(cls, model: Model | KeyedVectors | PathLike, mmap: bool = False) -> Model:
        """Return the model itself, or load it from a file; see `load`.

        Raises:
            W2VError: `model` is a KeyedVectors, or the file cannot be used.
        """
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
        stored = registry.read(path, mmap and Path(path).suffix == ".safetensors")
        if not (names := [*stored.header.views]):
            return cls({WORD_VIEW: View.from_vector_file(stored, path)})
        if names != [WORD_VIEW, SUBWORD_VIEW]:
            raise W2VError(f"{path}: damaged: its views are {', '.join(names)[:60]}")
        model = cls({name: View.from_vector_file(stored.view(name, path), path) for name in names})
        if [bool(view.ngrams) for view in model.views.values()] != [False, True]:
            raise W2VError(f"{path}: damaged: its n-grams do not fit its views")
        if stored.vectors.shape[1] != sum(view.vectors.shape[1] for view in model.views.values()):
            raise W2VError(f"{path}: damaged: its vectors do not fit the vectors of its views")
        return model

    def to_vector_file(self) -> VectorFile:
        """Return the content of the model's file: with several views, the word vectors and the content of each view."""
        if len(self.views) == 1:
            return self._words.to_vector_file()
        tensors: dict[str, NDArray[Any]] = {}
        views = {}
        for name, view in self.views.items():
            content = view.to_vector_file()
            own = {key: array for key, array in content.tensors.items() if key not in NGRAM_TENSORS}
            own["vectors"] = content.vectors
            tensors |= {view_prefix(name) + key: array for key, array in own.items()}
            views[name] = ViewHeader(dict(content.header.settings or {}), dict(content.header.metrics))
        metrics = {name: value for name, value in self.metrics.items() if name not in {*NOT_STORED, "views"}}
        header = replace(self._vectors_header, settings=self.settings.as_dict(), metrics=metrics, views=views)
        words = Words.of(self.vocabulary.words)
        return VectorFile(words, self.vectors, self.vocabulary.counts, tensors | self._ngrams.tensors, header)

    def with_vectors(self, kind: WordVectors) -> Self:
        """Return the same model with another kind of vectors in the view of words; see settings.vectors.

        Raises:
            SettingsError: The loss of the model does not allow this kind.
        """
        return replace(self, views=self.views | {WORD_VIEW: self._words.with_vectors(kind)})


AnyModel: TypeAlias = Model | View | PathLike


def view_of_words(model: AnyModel) -> View:
    """Return the view of words of a model or of its file. A view is returned unchanged.

    Raises:
        W2VError: The file cannot be read or has no output layer, or this layer predicts other words.
    """
    view = model if isinstance(model, View) else Model.of(model).views[WORD_VIEW]
    if view.contexts:
        raise W2VError("the model was trained on pairs, so its output layer predicts contexts, and not its words")
    return view


def matrix_arguments(matrices: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Convert matrices, by their names in a file, into the arguments `inputs`, `outputs` and `parameters` of View."""
    inputs = matrices["inputs"]
    outputs = matrices.get("outputs", np.empty((0, inputs.shape[1]), np.float32))  # a loss may have no outputs
    others = {name.removeprefix(PREFIX): array for name, array in matrices.items() if name.startswith(PREFIX)}
    return {"inputs": inputs, "outputs": outputs, "parameters": others}


def _without_nan(losses: NDArray[Any], path: PathLike) -> list[float | None]:
    """Return mean losses with None instead of NaN. Raise W2VError for an array of the wrong shape or dtype."""
    if losses.ndim != 1 or losses.dtype != np.float64:
        raise W2VError(f"{path}: damaged: its losses have shape {losses.shape} and type {losses.dtype}")
    return [None if math.isnan(loss) else loss for loss in losses.tolist()]
