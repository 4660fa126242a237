"""`Classifier`: a trained model that predicts the labels of texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial, wraps
from itertools import chain, islice
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from w2v._display import Result
from w2v._errors import SettingsError, W2VError, translate_errors
from w2v._evaluation.labels import LabelScores, Predictions, best_labels, score_labels, shorten
from w2v._formats import bfloat16, registry
from w2v._formats.header import LabelHeader, ModelHeader
from w2v._formats.product_quantiser import QuantisedMatrix
from w2v._formats.storage import SparseMatrix, join_rows
from w2v._formats.vector_file import VectorFile
from w2v._losses.fasttext import label_probabilities
from w2v._losses.full_softmax import OneVsAll
from w2v._losses.loss import Loss, is_parameter, softmax
from w2v._losses.registry import Settings, loss_for, settings_from
from w2v._options import check_whole, suggestion
from w2v._progress import Meter, Report
from w2v._system import memory
from w2v._system.files import Errors, PathLike
from w2v._system.threads import map_in_order, one_blas_thread, processors
from w2v._text._subwords import Addends
from w2v._text._text import PADDING
from w2v._text.columns import PLAIN
from w2v._text.corpus import Corpus, Source
from w2v._text.encodings import UTF_8
from w2v._text.examples import NGRAM_ROWS, Examples, Features, PooledTexts, TextFinder
from w2v._text.labels import DIRECT_LOSSES, LabelledTexts, LabelOptions, words_of
from w2v._text.lines import read_whole_lines
from w2v._text.normalise import TextOptions
from w2v._text.subwords import sums_of_rows
from w2v._text.vocabulary import Vocabulary
from w2v._text.words import OWN_PREFIX, Words
from w2v._training.model import NOT_STORED
from w2v._vectors import keyed
from w2v._vectors.keyed import KeyedVectors, to_keyed_vectors

SCORES_AT_ONCE = 1 << 22  # probabilities of labels computed at a time
TEXTS_AT_ONCE = 1 << 8  # texts of a list joined at a time, because Corpus reads few long texts faster
MAPPABLE = (".safetensors", ".bin")  # the extensions of files with rows that can be memory-mapped
LINEAR_LOSSES = ("softmax", "ova", "ns")  # the losses that see the input rows only in products with an output row
MIN_SAVING = 4  # products of rows are stored if they are shorter than the rows by this factor
LIKELY = 0.5  # the threshold of a label where a text may have several


@dataclass(frozen=True)
class Explanation(Result):
    """The parts of a label's score.

    Attributes:
        label: The label.
        probability: Its probability.
        score: Its score before the temperature: the sum of the parts.
        parts: The words and n-grams of the text, each with what it adds to the score, the largest first. N-grams that
            share a row are named together.
    """

    label: str
    probability: float
    score: float
    parts: list[tuple[str, float]]


@dataclass(repr=False, frozen=True)
class Classifier:
    """A model that predicts the L labels of texts, made by `train_classifier`.

    Attributes:
        settings: The settings of the run.
        options: The options of the classifier; `classifier` is "direct" or "embedded".
        features: The words, n-grams and labels that the model knows.
        inputs: (R, D), the rows of the words and n-grams, float32. In a direct model, they are scores of the L labels,
            in a SparseMatrix if that is smaller.
        loss: The loss that the model was trained with.
        parameters: The matrices of the output layer and of the loss, by name; none in a direct model.
        several: Whether texts of the training had several labels. Then the probabilities of labels are independent.
        temperature: Scores are divided by this number (Guo et al. 2017), so that probabilities are right on average.
        text: How the texts were normalised and split into words. `predict` treats texts in the same way.
        metrics: Measurements of the run; see View. `words` in their names are words and n-grams.
        quantised: The codes of the rows of a quantised model; see VectorFile.
    """

    settings: Settings
    options: LabelOptions
    features: Features
    inputs: NDArray[Any] | SparseMatrix
    loss: Loss
    parameters: dict[str, NDArray[Any]] = field(default_factory=dict)
    several: bool = False
    temperature: float = 1.0
    text: TextOptions = field(default_factory=TextOptions)
    metrics: dict[str, Any] = field(default_factory=dict)
    quantised: tuple[QuantisedMatrix, QuantisedMatrix | None] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.inputs, np.ndarray):
            # The rows of a run may be padded, and sums of such rows would copy all of them for each prediction.
            object.__setattr__(self, "inputs", memory.read_only(np.ascontiguousarray(self.inputs)))

    def __repr__(self) -> str:
        size = f"{len(self.labels):,} labels, {len(self.features.vocabulary):,} words"
        return f"<Classifier: {size}, {self.options.classifier}, loss {self.settings.loss}>"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is computed, which cannot be pickled."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    @property
    def labels(self) -> list[str]:
        """The names of the L labels, the most frequent first."""
        return self.features.labels.words.tolist()

    @property
    def vectors(self) -> KeyedVectors:
        """The rows of the words as word vectors."""
        return to_keyed_vectors(self.to_vector_file())

    # -- predictions --------------------------------------------------------------------------------

    def predict(
        self, texts: Iterable[Any], k: int | None = 1, threshold: float | None = None
    ) -> list[list[tuple[str, float]]]:
        """Return the labels of N texts with their probabilities, the most probable first.

        Args:
            texts: Texts, or lists of words. Missing texts, and texts without known words, get no labels.
            k: The maximum number of labels of a text; None for no limit. If texts have several labels, 1 means no
                limit, too.
            threshold: The lowest probability of a label; by default 0, and 0.5 if texts have several labels.
        """
        limits, names, found = self.limits(k, threshold), np.array(self.labels, object), list[Any]()
        for probabilities in self._blocks(texts):
            best, values = best_labels(probabilities, limits["k"])
            pairs = zip(names[best].tolist(), values.tolist(), strict=True)
            sizes = np.count_nonzero(values >= limits["threshold"], axis=1)  # 0 for NaN
            found += shorten([list(zip(*pair, strict=True)) for pair in pairs], best.shape[1], sizes)
        return found

    def predict_proba(self, texts: Iterable[Any]) -> NDArray[np.float32]:
        """Return the probability of each label for N texts, float32 (N, L); NaN for texts without known words."""
        return np.concatenate([np.empty((0, len(self.labels)), np.float32), *self._blocks(texts)])

    def evaluate(
        self, texts: Iterable[Any], labels: Iterable[Any], k: int | None = 1, threshold: float | None = None
    ) -> LabelScores:
        """Compare predictions for N texts with their labels, each a label or a list of labels; see LabelScores."""
        blocks = self.read_predictions(LabelledTexts.of_lists(texts, labels), progress=lambda _: None)
        return score_labels(self.labels, blocks, **self.limits(k, threshold), several=self.several)

    def limits(self, k: int | None = 1, threshold: float | None = None) -> dict[str, Any]:
        """Return the values of `k` and `threshold` that `predict` uses."""
        if k is not None:
            check_whole(1, k=k)
        if threshold is not None and not (isinstance(threshold, Real) and 0 <= threshold <= 1):
            raise SettingsError(f"threshold is {threshold!r:.60}: it must be a number from 0 to 1")
        if threshold is not None or not self.several:
            return {"k": k, "threshold": threshold or 0.0}
        return {"k": None if k == 1 else k, "threshold": LIKELY}

    def read_predictions(
        self,
        texts: Source | Corpus | LabelledTexts,
        column: str | None = PLAIN,
        encoding: str = UTF_8,
        errors: Errors = "strict",
        progress: Report | None = None,
    ) -> Iterator[Predictions]:
        """Yield predictions for the lines of a text, or for the cells in a column of a table, in blocks.

        A line may have labels, as in training. They are not used for the prediction. The lines of a pipe or terminal
        are predicted as soon as they are there (not on Windows).

        Raises:
            W2VError: The text cannot be read.
        """
        if not isinstance(texts, Corpus | LabelledTexts):
            texts = Corpus(texts)
        blocks = self._read(texts, column, encoding, errors, progress)
        if isinstance(texts, LabelledTexts):
            yield from self.predictions(blocks, OWN_PREFIX)
        else:
            yield from self.predictions(blocks, must_wait=texts.must_wait)

    def predictions(
        self, blocks: Iterable[bytes], prefix: str | None = None, must_wait: Callable[[], bool] = lambda: False
    ) -> Iterator[Predictions]:
        """Yield predictions for blocks of whole lines, each followed by PADDING. Several threads compute them.

        Args:
            blocks: The blocks. Those with many lines are divided, so that their probabilities fit in memory.
            prefix: What labels begin with in these lines; by default, as in training.
            must_wait: See map_in_order.
        """
        most = max(1, SCORES_AT_ONCE // len(self.labels))

        def pieces() -> Iterator[bytes]:
            for block in blocks:
                if block.count(b"\n") <= most:
                    yield block
                    continue
                lines = block[: -len(PADDING)].split(b"\n")[:-1]
                for first in range(0, len(lines), most):
                    yield b"\n".join([*lines[first : first + most], PADDING])

        rest = pieces()
        start = list(islice(rest, 1))
        start += () if must_wait() else islice(rest, 1)
        workers = processors() if len(start) > 1 or must_wait() else 1  # a single block needs no other threads
        with one_blas_thread() if workers > 1 else nullcontext():
            yield from map_in_order(partial(self.predict_lines, prefix=prefix), chain(start, rest), workers, must_wait)

    def read_explanations(
        self, texts: Corpus, column: str | None = PLAIN, encoding: str = UTF_8, errors: Errors = "strict"
    ) -> Iterator[Explanation | None]:
        """Yield what decided the best label of each text; None if the model knows no word of it.

        The arguments and errors are those of `read_predictions`.
        """
        for lines in self._read(texts, column, encoding, errors, progress=lambda _: None):
            yield from (self._explanation(line, None) for line in lines[: -len(PADDING)].split(b"\n")[:-1])

    def _read(
        self, texts: Corpus | LabelledTexts, column: str | None, encoding: str, errors: Errors, progress: Report | None
    ) -> Iterator[bytes]:
        """Yield blocks of whole lines, normalised as in training. See `read_predictions`."""
        prefix = self.features.label_prefix
        if isinstance(texts, LabelledTexts):
            corpus, source, column, encoding, prefix = texts.corpus, texts.source, PLAIN, UTF_8, OWN_PREFIX
        else:
            corpus = source = texts
        meter = Meter(progress, "predict", unit="bytes")
        for lines in read_whole_lines(corpus, self.text, column, encoding, errors, prefix, "gave no label to"):
            yield lines
            if source:
                meter(source.bytes_read, source.total_bytes)
        if source:
            meter(source.bytes_read, source.bytes_read)

    def _blocks(self, texts: Iterable[Any]) -> Iterator[NDArray[np.float32]]:
        if isinstance(texts, str | Mapping) or not isinstance(texts, Iterable):
            raise W2VError(f"a list of texts is needed, not {type(texts).__name__}: write [{texts!r:.60}]")
        lines = map(words_of, texts)
        joined = ("\n".join(some) for some in iter(lambda: list(islice(lines, TEXTS_AT_ONCE)), []))
        return (block.probabilities for block in self.read_predictions(Corpus(joined), progress=lambda _: None))

    def explain(self, text: Any, label: str | None = None) -> Explanation:
        """Return how much each word and n-gram of a text adds to the score of a label.

        Args:
            text: A text, or a list of words.
            label: A label; by default, the most probable one.

        Raises:
            W2VError: The label is unknown, the text has no known words, or the loss has no output row for each label.
        """
        if label is not None and label not in self.labels:
            raise W2VError(f"the model has no label {label[:60]!r}: {suggestion(label, self.labels)}")
        lines, *_ = self._read(Corpus([words_of(text)]), None, UTF_8, "strict", progress=lambda _: None)
        explanation = self._explanation(lines[: -len(PADDING)].rstrip(b"\n"), label)
        if explanation is None:
            raise W2VError(f"the model knows no word of {str(text)[:60]!r}")
        return explanation

    def _explanation(self, line: bytes, label: str | None) -> Explanation | None:
        """Return the explanation of a normalised line. See `explain` and `read_explanations`."""
        if self.loss.no_word_outputs:
            raise W2VError(f"loss {self.settings.loss} has no score for each label: train with ova or softmax")
        text = line + b"\n" + PADDING
        found, probabilities = self.finder.find(text), self.predict_lines(text).probabilities[0]
        if np.isnan(probabilities[0]):
            return None
        number = int(probabilities.argmax()) if label is None else self.labels.index(label)
        parts = self.features.weights(found) * (self.inputs[found.rows] @ self.outputs[number])
        prefix = self.features.label_prefix.encode()
        names = self.finder.names_of_rows([word for word in line.split() if not word.startswith(prefix)])
        named = [(names.get(row, "?"), part) for row, part in zip(found.rows.tolist(), parts.tolist(), strict=True)]
        named.sort(key=lambda pair: -abs(pair[1]))
        return Explanation(self.labels[number], float(probabilities[number]), float(parts.sum()), named)

    @cached_property
    def finder(self) -> TextFinder:
        """Finds the rows of new texts."""
        return TextFinder(self.features, self._addends.width if self._addends else 0)

    @cached_property
    def _addends(self) -> Addends | None:
        """The rows, float32, for mean pooling; or with few labels, their products with the output rows: the scores."""
        inputs = self.inputs
        if self.features.factors is not None or not isinstance(inputs, np.ndarray) or inputs.dtype != np.float32:
            return None
        is_linear = self.loss.name in LINEAR_LOSSES and MIN_SAVING * len(self.labels) <= inputs.shape[1]
        return Addends(inputs.view(np.uint8), self.outputs[: len(self.labels) if is_linear else 0].astype(np.float32))

    def pool_lines(self, lines: bytes, prefix: str | None = None, is_score: bool = False) -> PooledTexts:
        """Return the weighted sum of the rows of each line; see TextFinder.find.

        With `is_score`, return the scores of labels instead if they are the sums of stored products.
        """
        inputs, features = self.inputs, self.features
        if is_score and self._addends:
            pooled = self.finder.pool(lines, prefix, self._addends)
        else:
            found = self.finder.find(lines, prefix)
            rows = self._sums(found.rows, found.starts, features.weights(found))
            pooled = PooledTexts(rows, features.have_words(found), *found[3:])
        if self.options.fasttext and features.end_row >= 0:  # </s> is a word like others: a text without words has it
            end = inputs[features.end_row]
            pooled.rows[pooled.sizes == 0] = end if pooled.rows.shape[1] == len(end) else self.outputs @ end
            pooled.known[:] = True
        return pooled

    def predict_lines(self, lines: bytes, prefix: str | None = None) -> Predictions:
        """Return the predictions for lines, which end with a newline and PADDING; see `predictions`."""
        pooled = self.pool_lines(lines, prefix, is_score=True)
        rows = pooled.rows / np.float32(self.temperature)
        if len(rows) == 1:
            rows = rows.repeat(2, axis=0)  # because products of a matrix and a single row differ in the last bits
        outputs = None if rows.shape[1] == self.inputs.shape[1] else np.eye(len(self.labels), dtype=np.float32)
        probabilities = self.probabilities_of(rows, outputs)[: len(pooled.rows)]
        probabilities[~pooled.known] = np.nan
        return Predictions(probabilities, pooled.label_starts, pooled.labels)

    def pool(self, examples: Examples) -> NDArray[np.float32]:
        """Return the weighted sum of the rows of each of N texts, (N, D)."""
        return self._sums(examples.rows, examples.starts, examples.weights)

    @property
    def _sums(self) -> Callable[..., NDArray[np.float32]]:
        """The function that adds rows; its arguments are those of `sums_of_rows` after the first."""
        return self.inputs.sums if isinstance(self.inputs, SparseMatrix) else partial(sums_of_rows, self.inputs)

    def probabilities_of(
        self, pooled: NDArray[np.float32], outputs: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """Return the probability of each label for pooled rows, (N, D), divided by the temperature: (N, L).

        `outputs` replaces the rows of the output layer.
        """
        outputs = self.outputs if outputs is None else outputs
        parameters = {**self.parameters, "outputs": outputs}
        if self.options.fasttext:
            return label_probabilities(self.loss, parameters, pooled)
        if not isinstance(self.loss, OneVsAll):
            return np.exp(self.loss.distribution(parameters, pooled))
        scores = pooled if self.options.classifier == "direct" else pooled @ outputs.T
        if not self.several:
            return softmax(scores)
        from scipy.special import expit  # slow to import

        probabilities: NDArray[np.float32] = expit(scores)
        return probabilities

    @cached_property
    def outputs(self) -> NDArray[np.float32]:
        """The rows of the output layer: (L, D), or the rows of the nodes or classes of the loss."""
        if self.options.classifier == "direct":
            return np.eye(len(self.labels), dtype=np.float32)
        return self.parameters["outputs"]

    # -- files --------------------------------------------------------------------------------------

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write the model to a file, atomically: .safetensors, or .ft.bin or the small .ftz for fastText.

        `vectors.save` writes the word vectors in other formats.

        Args:
            path: The file; its extension chooses the format.
            force: Whether to replace an existing file.

        Raises:
            W2VError: The file cannot be written, or it exists and `force` is false.
            SettingsError: The extension is unknown, or the format cannot store a classifier.
        """
        content = self.to_vector_file()
        if "labels" in registry.lost_parts(path, content):
            raise SettingsError(f"{path}: this format cannot store a classifier: write .safetensors")
        registry.write(path, content, force)

    def to_vector_file(self) -> VectorFile:
        """Return the content of the file: the rows of the words as vectors, and the rest as tensors."""
        words = self.features.vocabulary
        tensors = {NGRAM_ROWS: self.inputs[len(words) :], **self.features.tensors, **self.parameters}
        tensors |= self.loss.tensors
        header = ModelHeader(
            self.settings.as_dict(),
            {name: value for name, value in self.metrics.items() if name not in NOT_STORED},
            text=self.text,
            labels=LabelHeader(asdict(self.options), self.several, self.temperature),
        )
        rows = self.inputs[: len(words)]
        return VectorFile(Words.of(words.words), rows, words.counts, tensors, header, self.quantised)

    @classmethod
    def load(cls, path: PathLike, mmap: bool = False) -> Self:
        """Load a classifier from a .safetensors file, or from a .bin or .ftz file of fastText.

        Args:
            path: The file.
            mmap: Whether to memory-map the rows instead of reading them. The rows of .ftz files are always read.

        Raises:
            W2VError: The file cannot be read, or it is not a classifier.
        """
        return cls.from_vector_file(registry.read(path, mmap and Path(path).suffix in MAPPABLE), path)

    @classmethod
    def from_vector_file(cls, stored: VectorFile, path: PathLike) -> Self:
        """Return the classifier in the content of a file. Raise W2VError if it has none, or if it is damaged."""
        header, tensors = stored.header, stored.tensors
        if header.labels is None or header.settings is None or stored.counts is None:
            raise W2VError(f"{path} is not a classifier: train one with w2v classify")
        settings = settings_from(header.settings, f"{path}: its settings")
        with translate_errors(f"{path}: damaged", TypeError):
            options = LabelOptions(**header.labels.options)
        with translate_errors(str(path), W2VError):
            vocabulary = Vocabulary(stored.words, stored.counts)
            features = Features.from_file(vocabulary, tensors, options, settings.ngrams, settings.buckets)
            rows = tensors.get(NGRAM_ROWS, np.empty(0))
            is_direct = options.classifier == "direct"
            size = len(features.labels) if is_direct else settings.vector_size
            if not 0 < header.labels.temperature < math.inf or (is_direct and settings.loss not in DIRECT_LOSSES):
                raise W2VError("damaged: its temperature or its loss is impossible")
            if (
                rows.shape != (len(features.buckets), size) or stored.vectors.shape[1] != size
                or not bfloat16.is_training_dtype(rows) or settings.vector_size != size
            ):  # fmt: skip
                raise W2VError("damaged: its rows do not fit its labels")
            parameters = {name: array for name, array in tensors.items() if is_parameter(name)}
            others = {"outputs": np.eye(size, dtype=np.float32)} if is_direct else {}
            loss = loss_for(settings, features.labels, {**tensors, **others})
        inputs = join_rows([stored.vectors, rows])
        own: dict[str, Any] = {"several": header.labels.several, "temperature": header.labels.temperature}
        own |= {"text": header.text, "metrics": dict(header.metrics), "quantised": stored.quantised}
        return cls(settings, options, features, inputs, loss, parameters, **own)


@wraps(keyed.load)
def load(
    path: PathLike,
    mmap: bool = False,
    errors: Errors = "strict",
    limit: int | None = None,
    progress: Any = None,
    encoding: str = UTF_8,
) -> KeyedVectors | Any:
    """Load a vector file as keyed.load does, but a classifier as a Classifier."""
    stored = keyed.read(path, mmap, errors, limit, progress, encoding)
    return to_keyed_vectors(stored, mmap) if stored.header.labels is None else Classifier.from_vector_file(stored, path)
