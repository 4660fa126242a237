"""A trained model: its settings, vocabulary and both matrices."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError, one_line
from w2v.files import PathLike
from w2v.formats import bfloat16, table
from w2v.formats.vector_file import VectorFile
from w2v.losses.loss import PREFIX, Array, Integers, Loss, file_names
from w2v.losses.registry import Settings, loss_for
from w2v.text.vocabulary import Vocabulary
from w2v.text.words import Words
from w2v.vectors.keyed import KeyedVectors


@dataclass(repr=False)
class Model:
    """What training returns.

    Attributes:
        settings, vocabulary: what the model was made with.
        inputs: (V, D), the word vectors. outputs: (R, D), the output layer's rows. Both float32, or bfloat16 after
            training with storage "bf16".
        loss: which of them predict a word.
        parameters: float32 matrices by name, what the loss has learnt beside these.
        metrics: what was measured: tokens, tokens_trained, words_per_second (tokens trained a second),
            seconds (of each phase), loss (mean of a prediction, by epoch), predictions (number of them, by epoch),
            sentences, pruned (types that fell to max_types), cache_reused.
    """

    settings: Settings
    vocabulary: Vocabulary
    inputs: NDArray[Any]
    outputs: NDArray[Any]
    loss: Loss
    metrics: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        rows, size = self.inputs.shape
        return f"<Model: {rows} words, {size} values each, {self.settings.model} with loss {self.settings.loss}>"

    @cached_property
    def wv(self) -> KeyedVectors:
        """The word vectors by word, float32: a copy of those that are bfloat16."""
        return KeyedVectors(self.vocabulary.words, self.inputs, self.vocabulary.counts)

    @property
    def learnt(self) -> dict[str, NDArray[Any]]:
        """Outputs and parameters, by the names that they have in a file."""
        outputs = {"outputs": self.outputs} if len(self.outputs) else {}
        return file_names(outputs | self.parameters)

    def log_probabilities(self, rows: Array) -> Array:
        """log p(word | row), natural, of each word of the vocabulary: (N, V) for rows (N, D), in their dtype.

        A row is a word's input vector in skip-gram, the mean of the context words' in CBOW.
        """
        return self.loss.distribution(self._parameters, rows)

    def log_probabilities_of(self, rows: Array, numbers: Integers, words: Integers) -> Array:
        """log p(words[k] | rows[numbers[k]]), natural: (N,) for rows (M, D) and `numbers` and `words`, both (N,).

        Hierarchical softmax takes the nodes on the word's path, class-based softmax the classes and the words of its
        own; the other losses take all words.
        """
        return self.loss.log_probabilities_of(self._parameters, rows, numbers, words)

    @property
    def _parameters(self) -> dict[str, Array]:
        return {"outputs": self.outputs} | self.parameters

    def widened(self) -> Self:
        """The same model with float32 matrices in place of bfloat16 ones."""
        inputs, outputs = bfloat16.widened(self.inputs), bfloat16.widened(self.outputs)
        settings = replace(self.settings, storage="float32")
        return replace(self, settings=settings, inputs=inputs, outputs=outputs)

    @classmethod
    def load(cls, path: PathLike, mmap: bool = False) -> Self:
        """The model of a .safetensors file; with `mmap`, its matrices are read when they are used.

        Raises W2VError for a file that cannot be read or keeps no output layer, as those with vectors only.
        """
        stored = table.read(path, mmap and Path(path).suffix == ".safetensors")
        learnt = {
            name: stored.tensors.pop(name)
            for name in list(stored.tensors)
            if name == "outputs" or name.startswith(PREFIX)
        }
        if not learnt or stored.counts is None or "settings" not in stored.metadata:
            raise W2VError(
                f"{path}: it has no output layer, only vectors: name a .safetensors file that training has written"
            )
        try:
            settings = Settings(**json.loads(stored.metadata["settings"]))
            metrics = dict(json.loads(stored.metadata.get("metrics") or stored.metadata.get("figures", "{}")))
        except (SettingsError, TypeError, ValueError, RecursionError) as error:
            raise W2VError(f"{path}: damaged: its settings: {one_line(error)}") from error
        vocabulary = Vocabulary(stored.words, stored.counts)
        if stored.vectors.shape[1] != settings.vector_size:
            raise W2VError(f"{path}: damaged: vectors of {stored.vectors.shape[1]} values, not {settings.vector_size}")
        try:
            loss = loss_for(settings, vocabulary, stored.tensors)
        except W2VError as error:
            raise W2VError(f"{path}: {one_line(error)}") from error
        for name, shape in file_names(loss.shapes).items():
            array = learnt.get(name, np.empty(0))
            if not bfloat16.is_kept(array) or array.shape != shape:
                what = "output matrix" if name == "outputs" else name
                raise W2VError(f"{path}: damaged: its {what} has shape {array.shape} and type {array.dtype}")
        return cls(settings, vocabulary, loss=loss, metrics=metrics, **split({"inputs": stored.vectors} | learnt))

    def save(self, path: PathLike, *, replace: bool = True) -> None:
        """Write the model, atomically, in the format that the extension names; only .safetensors keeps all of it.

        Raises W2VError where the file cannot be written, or is there already and not to `replace`; SettingsError
        for an unknown extension.
        """
        table.write(
            path,
            VectorFile(
                Words.of(self.vocabulary.words),
                self.inputs,
                self.vocabulary.counts,
                self.learnt | self.loss.tensors,
                {"settings": json.dumps(self.settings.as_dict()), "metrics": json.dumps(self.metrics)},
            ),
            replace,
        )


def split(learnt: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Matrices by their names in a file, as arguments of Model: a loss may have no "outputs"."""
    inputs = learnt["inputs"]
    outputs = learnt.get("outputs", np.empty((0, inputs.shape[1]), np.float32))
    others = {name.removeprefix(PREFIX): array for name, array in learnt.items() if name.startswith(PREFIX)}
    return {"inputs": inputs, "outputs": outputs, "parameters": others}
