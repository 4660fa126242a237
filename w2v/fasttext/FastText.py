"""fasttext.FastText: models of words and classifiers, with fastText's names, defaults and results."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from functools import cached_property, wraps
from inspect import Parameter, Signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from w2v._errors import text_warnings_to
from w2v._evaluation import labels as scoring
from w2v._formats import fasttext
from w2v._formats.product_quantiser import CENTROIDS
from w2v._formats.vector_file import VectorFile, as_floats
from w2v._losses.fasttext import FLOOR
from w2v._system.files import FASTTEXT, PathLike, atomic_write, check_files_unchanged
from w2v._system.threads import processors
from w2v._text._text import PADDING
from w2v._text.corpus import Corpus
from w2v._text.idstore import ReadingOptions
from w2v._text.labels import LabelOptions
from w2v._text.subword_rows import own_rows
from w2v._text.subwords import Ngrams, Subwords
from w2v._text.words import Words
from w2v._training.classifier import Classifier
from w2v._training.labelled import read_labelled
from w2v._training.quantize import parse_size, quantize
from w2v._training.train import train, train_classifier
from w2v._training.tune_labels import VECTOR_SIZES, search_labels
from w2v._vectors.cosines import unit
from w2v._vectors.keyed import KeyedVectors, to_keyed_vectors

BOW, EOW, EOS = "<", ">", "</s>"  # the begin and the end of a word, and the end of a line
TOKEN = re.compile("\n|[^ \n\r\t\v\f\0]+")
WORD = re.compile("[^ \n\r\t\v\f]+")  # separated as in C++, so not by other white space of Unicode
END = re.compile(r"(?:^|[ \r\t\v\f\0])</s>(?:[ \r\t\v\f\0]|$)")  # fastText reads a line up to this word
TEXTS_AT_ONCE = 1 << 12  # lines that a thread predicts at a time
Floats = NDArray[np.float32]
Neighbours = list[tuple[float, str]]
Word = str | bytes

loss_name = Enum("loss_name", {"hs": 1, "ns": 2, "softmax": 3, "ova": 4})
model_name = Enum("model_name", {"cbow": 1, "skipgram": 2, "supervised": 3})


def _snake(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()


# The arguments of training with their defaults, in fastText's order; train_supervised has other defaults for some.
ARGUMENTS: dict[str, Any] = {
    "lr": 0.05,
    "dim": 100,
    "ws": 5,
    "epoch": 5,
    "minCount": 5,
    "minCountLabel": 0,
    "minn": 3,
    "maxn": 6,
    "neg": 5,
    "wordNgrams": 1,
    "loss": "ns",
    "bucket": 2_000_000,
    "thread": None,
    "lrUpdateRate": 100,
    "t": 1e-4,
    "label": "__label__",
    "verbose": 2,
    "pretrainedVectors": "",
}
SUPERVISED = ARGUMENTS | {"lr": 0.1, "minCount": 1, "minn": 0, "maxn": 0, "loss": "softmax"}
AUTOTUNE = {
    "autotuneValidationFile": "",
    "autotuneMetric": "f1",
    "autotunePredictions": 1,
    "autotuneDuration": 300,
    "autotuneModelSize": "",
}
OTHER_NAMES = {_snake(name): name for name in ARGUMENTS | AUTOTUNE} | {"label_prefix": "label"}
TUNED = {"epoch": "epochs", "dim": "vector_size", "wordNgrams": "word_ngrams", "lr": "alpha", "minCount": "min_count"}


class _FastText:
    """A model of words and their n-grams, or a classifier, as in fastText's Python module.

    load_model, train_unsupervised and train_supervised make one. A word that is neither known nor has a known n-gram
    has a vector of zeros. A word can also be given as bytes, in UTF-8.

    Attributes:
        lr, dim, ws, epoch, minCount, ...: The arguments of train_unsupervised. A file does not store all of them: of a
            loaded model, the others have their defaults.
        allow_newlines: Whether the end of a line is a space in texts; by default, it is an error, as in fastText. Set
            it on a model, or on this class.
        clip_probabilities: Whether probabilities are at most 1. fastText's are up to 1.00001.
    """

    allow_newlines = False
    clip_probabilities = False

    def __init__(self, model_path: PathLike | None = None, args: Any = None, mmap: bool = False) -> None:
        if model_path is None:
            raise NotImplementedError("an empty model: use load_model or train_unsupervised")
        with check_files_unchanged(model_path):
            load = fasttext.read_mapped if mmap else fasttext.FORMAT.load
            content = load(model_path, "replace")
            file = np.memmap(model_path, np.uint8, "r")
            # A compressed file, or one of an old version, is written again by save_model.
            self._file = file if re.match(FASTTEXT, file[: fasttext.HEAD.size].tobytes()) else None
            has_matrices = self._file is not None and not content.header.labels
            matrices = fasttext.map_matrices(model_path) if has_matrices else (None, None)
        self._set_content(content, *matrices)
        self._arguments = self._stored_arguments()
        self.set_args(args or self._arguments)

    @classmethod
    def _of(cls, content: VectorFile, arguments: SimpleNamespace) -> _FastText:
        """Return a model with the words, vectors, n-grams and output rows of a file's content."""
        model = cls.__new__(cls)
        model._file = None
        model._set_content(content)
        model._arguments = arguments
        model.set_args(arguments)
        return model

    def _set_content(self, content: VectorFile, inputs: Floats | None = None, outputs: Floats | None = None) -> None:
        self._content, self._inputs, self._outputs = content, inputs, outputs
        labels = content.header.labels
        self._classifier = Classifier.from_vector_file(content, "the model") if labels else None
        vars(self).pop("_wv", None)

    @cached_property
    def _wv(self) -> KeyedVectors:
        """The vectors of words, and the n-grams for unknown words."""
        if not self._classifier:
            return to_keyed_vectors(self._content)
        content, features = replace(self._content, tensors={}), self._classifier.features
        if features.subwords:
            if features.pruned:
                raise NotImplementedError("w2v.fasttext has no word vectors of a model with pruned n-grams")
            order = np.argsort(features.buckets)
            rows = self._classifier.inputs[len(features.vocabulary) :][order]
            ngrams = Ngrams(features.subwords, features.buckets[order], rows)
            vectors = np.array(content.vectors)
            ngrams.compose(content.words, vectors)
            header = replace(content.header, subwords=features.subwords)
            content = replace(content, vectors=vectors, tensors=ngrams.tensors, header=header)
        return to_keyed_vectors(content)

    @property
    def _subwords(self) -> Subwords | None:
        return self._classifier.features.subwords if self._classifier else self._content.header.subwords

    def _stored_arguments(self) -> SimpleNamespace:
        """Return the arguments that the file of this model stores, and the defaults of all others."""
        settings, subwords = self._content.header.settings or {}, self._subwords
        names = {"ws": "window", "epoch": "epochs", "minCount": "min_count", "neg": "negative"}
        names |= {} if self._classifier else {"t": "sample"}
        stored = {name: settings[ours] for name, ours in names.items() if ours in settings}
        stored["minn"], stored["maxn"] = (subwords.shortest, subwords.longest) if subwords else (0, 0)
        stored |= {"dim": self.get_dimension(), "bucket": self._buckets}
        stored["loss"] = loss_name[settings.get("loss", "ns")]
        stored["model"] = model_name[settings.get("model", "skipgram")]
        if self._classifier:
            stored |= {"model": model_name["supervised"], "wordNgrams": self._classifier.options.word_ngrams}
            stored["label"] = self._prefix
        return SimpleNamespace(**(SUPERVISED if self._classifier else ARGUMENTS) | stored)

    def set_args(self, args: Any = None) -> None:
        """Copy the arguments of training from the attributes of an object, such as `f.getArgs()`, to this object."""
        if args:
            vars(self).update({name: getattr(args, name) for name in ARGUMENTS})

    @property
    def f(self) -> SimpleNamespace:
        """The methods under the names of fastText's compiled class, except those that fill a Vector."""
        same = (
            "test testLabel getLabelId getWordId getSubwordId getSubwords getAnalogies getInputMatrix getMeter quantize"
        )
        return SimpleNamespace(
            **{name: getattr(self, _snake(name)) for name in f"{same} getOutputMatrix saveModel".split()},
            predict=lambda text, k=1, threshold=0.0, on_unicode_error="strict": [
                (probability, label)
                for label, probability in zip(*self.predict(text.rstrip("\n"), k, threshold), strict=True)
            ],
            multilinePredict=lambda texts, *args: self.predict([text.rstrip("\n") for text in texts], *args),
            getLine=lambda text, on_unicode_error="strict": self.get_line(text.rstrip("\n")),
            getLabels=lambda on_unicode_error="strict": self.get_labels(include_freq=True),
            getArgs=lambda: self._arguments,
            isQuant=self.is_quantized,
            getVocab=lambda on_unicode_error="strict": self.get_words(include_freq=True),
            getNN=self.get_nearest_neighbors,
            tokenize=tokenize,
        )

    @property
    def _buckets(self) -> int:
        """The number of rows for n-grams."""
        if self._inputs is not None:
            return len(self._inputs) - len(self.words)
        if self._classifier and self._classifier.options.word_ngrams > 1:
            return self._classifier.features.bucket_count
        return self._subwords.buckets if self._subwords else 0

    # -- words --------------------------------------------------------------------------------------

    @cached_property
    def words(self) -> list[str]:
        """The words, the most frequent first."""
        return self._content.words.tolist()

    @cached_property
    def labels(self) -> list[str]:
        """The labels with their prefix, the most frequent first; the words of a model without labels."""
        return [self._prefix + label for label in self._classifier.labels] if self._classifier else self.words

    @property
    def _prefix(self) -> str:
        return self._classifier.features.label_prefix if self._classifier else LabelOptions.label_prefix

    def get_words(self, include_freq: bool = False, on_unicode_error: str = "strict") -> Any:
        """Return the words; with `include_freq`, also their counts, int64 (V,)."""
        counts = self._content.counts
        return (list(self.words), np.array(counts)) if include_freq else list(self.words)

    def get_labels(self, include_freq: bool = False, on_unicode_error: str = "strict") -> Any:
        """Return the labels, or the words of a model without labels; with `include_freq`, also their counts, int64."""
        if not self._classifier:
            return self.get_words(include_freq)
        counts = self._classifier.features.labels.counts
        return (list(self.labels), np.array(counts)) if include_freq else list(self.labels)

    def get_word_id(self, word: Word) -> int:
        """Return the row of a word, or -1 if it is unknown."""
        word = word if isinstance(word, str) else _text(word)
        return self._content.words.index(word) if word in self._content.words else -1

    def get_label_id(self, label: Word) -> int:
        """Return the number of a label, or -1 if it is unknown."""
        return self.labels.index(_text(label)) if self._classifier and _text(label) in self.labels else -1

    def __contains__(self, word: object) -> bool:
        return word in self._content.words

    # -- vectors ------------------------------------------------------------------------------------

    def get_dimension(self) -> int:
        return int(self._content.vectors.shape[1])

    def get_word_vector(self, word: Word) -> Floats:
        """Return the vector of a word, (D,).

        The vector of an unknown word is the mean of the rows of its n-grams, or zeros if it has none.

        Raises:
            TypeError: The word is neither str nor bytes.
        """
        row = self.get_word_id(word)
        if row >= 0:
            known: Floats = self._wv.vectors[row].copy()
            return known
        ngrams = self._wv.ngrams
        vector = ngrams.vector(_text(word)) if ngrams else None
        return np.zeros(self.get_dimension(), np.float32) if vector is None else vector

    def __getitem__(self, word: Word) -> Floats:
        return self.get_word_vector(word)

    def get_word_vectors(self, words: Sequence[Word]) -> Floats:
        """Return the vectors of n words, (n, D). fastText lacks this method."""
        vectors = [self.get_word_vector(word) for word in words]
        return np.array(vectors, np.float32).reshape(len(vectors), self.get_dimension())

    def get_sentence_vector(self, text: str) -> Floats:
        """Return the vector of a line of text, (D,): the mean of the unit vectors of its words.

        Words with a vector of zeros do not count. In a classifier, it is the mean of the rows of words and n-grams.

        Raises:
            ValueError: The text has several lines.
        """
        if self._classifier:
            pooled: Floats = self._classifier.pool_lines(self._lines([text])).rows[0]
            return pooled
        words, row_of = WORD.findall(self._line(text)), self._wv.key_to_index
        rows = [row_of.get(word, -1) for word in words]
        if not rows:
            return np.zeros(self.get_dimension(), np.float32)
        vectors, norms = self._wv.vectors.take(rows, axis=0), self._wv.norms.take(rows)
        for place in [place for place, row in enumerate(rows) if row < 0]:
            vectors[place] = self.get_word_vector(words[place])
            norms[place] = np.linalg.norm(vectors[place])
        counted = int(np.count_nonzero(norms))
        if counted < len(rows):
            norms[norms == 0] = np.inf  # these words add nothing
        norms *= max(1, counted)
        mean: Floats = np.reciprocal(norms) @ vectors
        return mean

    def get_sentence_vectors(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of n lines, (n, D); see get_sentence_vector. fastText lacks this method."""
        vectors = [self.get_sentence_vector(text) for text in texts]
        return np.array(vectors, np.float32).reshape(len(vectors), self.get_dimension())

    def get_line(self, text: str | list[str], on_unicode_error: str = "strict") -> Any:
        """Return the words of a line and its labels; for a list of lines, a list of each.

        Unknown words with the prefix of labels are left out.
        """
        if isinstance(text, list):
            pairs = [self.get_line(line) for line in text]
            return [words for words, _ in pairs], [labels for _, labels in pairs]
        text = self._line(text)
        tokens, known = tokenize(f"{END.split(text, maxsplit=1)[0]}\n"), set(self.labels) if self._classifier else set()
        words = [
            token
            for token in tokens
            if token not in known and (not token.startswith(self._prefix) or self.get_word_id(token) >= 0)
        ]
        return words, [token for token in tokens if token in known]

    # -- nearest words ------------------------------------------------------------------------------

    def get_nearest_neighbors(self, word: Word, k: int = 10, on_unicode_error: str = "strict") -> Neighbours:
        """Return (cosine, word) of the `k` words nearest to a word."""
        return self._nearest(self.get_word_vector(word), {_text(word)}, k)

    def get_analogies(
        self, wordA: Word, wordB: Word, wordC: Word, k: int = 10, on_unicode_error: str = "strict"
    ) -> Neighbours:
        """Return (cosine, word) of the `k` words nearest to A - B + C, the sum of unit vectors."""
        words = [_text(word) for word in (wordA, wordB, wordC)]
        first, second, third = unit(self.get_word_vectors(words))
        return self._nearest(first - second + third, set(words), k)

    def _nearest(self, vector: Floats, left_out: set[str], k: int) -> Neighbours:
        found = self._wv.most_similar([vector], topn=k + len(left_out))
        return [(cosine, word) for word, cosine in found if word not in left_out][:k]

    # -- n-grams ------------------------------------------------------------------------------------

    def get_subwords(self, word: Word, on_unicode_error: str = "strict") -> tuple[list[str], NDArray[np.int64]]:
        """Return the subwords of a word, itself first if it is known, and their rows of the input matrix."""
        word = _text(word)
        row, subwords = self.get_word_id(word), self._subwords
        names, rows = ([word], [row]) if row >= 0 else ([], [])
        if subwords and word != EOS:
            text = f"{BOW}{word}{EOW}"
            spans = [
                (start, start + size)
                for start in range(len(text))
                for size in range(subwords.shortest, subwords.longest + 1)
                if start + size <= len(text) and (size > 1 or 0 < start < len(text) - 1)
            ]
            names += [text[start:stop] for start, stop in spans]
            rows += (len(self.words) + subwords.ngram_buckets(Words.of([word]))[1].astype(np.int64)).tolist()
        return names, np.array(rows, np.int64)

    def get_subword_id(self, subword: Word) -> int:
        """Return the row of an n-gram in the input matrix.

        Raises:
            ValueError: The model has no n-grams.
        """
        if not self._buckets:
            raise ValueError("the model has no n-grams")
        fnv = 2166136261  # FNV-1a; fastText extends the sign of each byte
        for byte in np.frombuffer(_text(subword).encode(), np.int8).tolist():
            fnv = (fnv ^ byte & 0xFFFFFFFF) * 16777619 & 0xFFFFFFFF
        return len(self.words) + fnv % self._buckets

    # -- matrices and files -------------------------------------------------------------------------

    def get_input_matrix(self) -> Floats:
        """Return the rows of the words, followed by the rows of the buckets: a copy, float32 (V + buckets, D)."""
        if self._inputs is not None:
            return np.array(self._inputs)
        if self._classifier:
            self._check_dense()
            inputs, buckets = self._classifier.inputs, self._classifier.features.buckets
            rows = np.zeros((len(self.words) + self._buckets, inputs.shape[1]), np.float32)
            rows[: len(self.words)], rows[len(self.words) + buckets] = np.split(inputs, [len(self.words)])
            return rows
        wv = self._wv
        if not wv.ngrams:
            return np.array(wv.vectors)
        buckets = np.arange(wv.ngrams.subwords.buckets, dtype=np.int32)
        rows = own_rows(wv.vectors, self._content.words, wv.ngrams)
        return np.concatenate([rows, wv.ngrams.rows_of(buckets).astype(np.float32)])

    def get_output_matrix(self) -> Floats:
        """Return the rows of the output layer, a copy, float32 (V, D)."""
        if self._outputs is not None:
            return np.array(self._outputs)
        if self._classifier:
            self._check_dense()
            return fasttext.output_rows(self._content)
        rows = np.zeros_like(self._wv.vectors)  # hierarchical softmax has a row less than there are words
        outputs = self._content.tensors.get("outputs", rows[:0])
        rows[: len(outputs)] = outputs
        return rows

    def get_input_vector(self, ind: int) -> Floats:
        """Return a row of the input matrix, (D,)."""
        return np.array((self.get_input_matrix() if self._inputs is None else self._inputs)[ind])

    def set_matrices(self, input_matrix: ArrayLike, output_matrix: ArrayLike) -> None:
        """Replace the input and the output matrix. The vectors may have another size than before.

        Raises:
            ValueError: The numbers of rows differ from the model's.
        """
        if self._classifier:
            raise NotImplementedError("w2v.fasttext cannot replace the matrices of a classifier")
        inputs, outputs = (np.ascontiguousarray(as_floats(each)) for each in (input_matrix, output_matrix))
        count, subwords = len(self.words), self._content.header.subwords
        rows = count + self._buckets
        if inputs.ndim != 2 or outputs.shape != (count, inputs.shape[1]) or len(inputs) != rows:
            raise ValueError(
                f"matrices of shape {inputs.shape} and {outputs.shape}: the model has {rows} and {count} rows"
            )
        vectors, tensors = inputs[:count].copy(), {"outputs": outputs}
        if subwords:
            used = np.flatnonzero(inputs[count:].any(axis=1))
            ngrams = Ngrams(subwords, used.astype(np.int32), inputs[count + used])
            ngrams.compose(self._content.words, vectors)
            tensors |= ngrams.tensors
        settings = {**(self._content.header.settings or {}), "vector_size": inputs.shape[1]}
        header = replace(self._content.header, settings=settings)
        self._file = None
        self._set_content(replace(self._content, vectors=vectors, tensors=tensors, header=header), inputs, outputs)

    def save_model(self, path: PathLike) -> None:
        """Write a file that fastText loads. A model that was trained with hs lacks its output rows there."""
        if self._file is None:
            (fasttext.QUANTISED if self.is_quantized() else fasttext.FORMAT).save(path, self._content)
        else:
            with atomic_write(path) as file:
                file.write(self._file.data)

    def is_quantized(self) -> bool:
        return self._content.quantised is not None

    def _check_dense(self) -> None:
        if self.is_quantized():
            raise ValueError("Can't get quantized Matrix")

    # -- classifiers ----------------------------------------------------------------------------------

    def predict(
        self, text: str | list[str], k: int = 1, threshold: float = 0.0, on_unicode_error: str = "strict"
    ) -> Any:
        """Return the labels of a line with the highest probabilities, as a tuple, and these, float64 (n,).

        For a list of lines, return a list of lists of labels, and a list of float32 (n,).

        Args:
            text: A line, or a list of lines.
            k: The maximum number of labels; -1 for no limit.
            threshold: The lowest probability.
            on_unicode_error: Has no effect: labels are UTF-8.

        Raises:
            ValueError: The model has no labels, a text has several lines, or `k` is impossible.
        """
        labels, values = self._predict(text if isinstance(text, list) else [text], k, threshold)
        if self.clip_probabilities:
            values = [np.minimum(own, np.float32(1)) for own in values]
        return (labels, values) if isinstance(text, list) else (tuple(labels[0]), values[0].astype(np.float64))

    def _predict(self, texts: list[str], k: int, threshold: float) -> tuple[list[list[str]], list[Floats]]:
        """Return the labels of each line, and their probabilities."""
        blocks = [self._lines(texts[first : first + TEXTS_AT_ONCE]) for first in range(0, len(texts), TEXTS_AT_ONCE)]
        classifier = self._classifier
        if not classifier:
            raise ValueError("Model needs to be supervised for prediction!")
        limits, names = _limits(k, threshold), np.array(self.labels, object)
        labels, probabilities = list[list[str]](), list[Floats]()
        for block in classifier.predictions(blocks):
            best, values = scoring.best_labels(block.probabilities, limits["k"])
            width, sizes = best.shape[1], np.count_nonzero(values >= limits["threshold"], axis=1)
            labels += scoring.shorten(names[best].tolist(), width, sizes)
            probabilities += scoring.shorten(list(values), width, sizes)
        return labels, probabilities

    def test(self, path: PathLike, k: int = 1, threshold: float = 0.0) -> tuple[int, float, float]:
        """Return the number of lines with a known label, and the precision and recall of their predictions.

        A model without labels has no such lines, and NaN.
        """
        scores = self._scores(path, k, threshold)
        return (scores.texts, _number(scores.precision), _number(scores.recall)) if scores else (0, math.nan, math.nan)

    def test_label(self, path: PathLike, k: int = 1, threshold: float = 0.0) -> dict[str, Any]:
        """Return the precision, the recall and the F1 score of each label; NaN if there is nothing to divide by."""
        scores = self._scores(path, k, threshold)
        none = scoring.LabelScore("", None, None, None, 0, 0)
        found = scores.labels if scores else [none] * len(self.labels if self._classifier else [])
        return {
            label: {"precision": _number(one.precision), "recall": _number(one.recall), "f1score": _number(one.f1)}
            for label, one in zip(self.labels if found else [], found, strict=True)
        }

    def _scores(self, path: PathLike, k: int, threshold: float) -> scoring.LabelScores | None:
        """Return the scores of the lines of a file with words and a known label, or None if there are none."""
        blocks = self._test_predictions(path)
        if not self._classifier or not sum(len(block.probabilities) for block in blocks):
            return None
        return scoring.score_labels(self._classifier.labels, blocks, **_limits(k, threshold))

    def _test_predictions(self, path: PathLike) -> list[scoring.Predictions]:
        """Return the predictions for the lines of a file with words and a known label."""
        if not Path(path).is_file():
            raise ValueError(f"{path} cannot be opened for test!")
        blocks = []
        predicted = self._classifier.read_predictions(Path(path), errors="replace") if self._classifier else ()
        for block in predicted:
            known = block.labels >= 0
            starts = np.append(0, np.cumsum(known))[block.starts]
            scored = (np.diff(starts) > 0) & ~np.isnan(block.probabilities[:, 0])
            chosen = known & np.repeat(scored, np.diff(block.starts))
            starts = np.append(0, np.cumsum(np.diff(starts)[scored]))
            blocks.append(scoring.Predictions(block.probabilities[scored], starts, block.labels[chosen]))
        return blocks

    def get_meter(self, path: PathLike, k: int = -1) -> _Meter:
        """Return the precision and recall of the predictions for the lines of a file at any threshold."""
        return _Meter(self, self._test_predictions(path), k)

    def _line(self, text: str) -> str:
        """Return a text without ends of lines. Raise ValueError if it has some, and they are not allowed."""
        if text.find("\n") >= 0 and not self.allow_newlines:
            raise ValueError("a text has several lines: remove '\\n', or set allow_newlines = True")
        return text.replace("\n", " ")

    def _lines(self, texts: list[str]) -> bytes:
        """Return lines as w2v reads them. Each ends before the word </s>, as in fastText."""
        joined = "\n".join([*texts, ""])
        if joined.count("\n") > len(texts) or EOS in joined:
            joined = "\n".join([*(END.split(self._line(text), maxsplit=1)[0] for text in texts), ""])
        return joined.replace("\0", " ").encode() + PADDING

    def quantize(
        self,
        input: PathLike | None = None,
        qout: bool = False,
        cutoff: int = 0,
        retrain: bool = False,
        epoch: int | None = None,
        lr: float | None = None,
        thread: int | None = None,
        verbose: int | None = None,
        dsub: int = 2,
        qnorm: bool = False,
    ) -> None:
        """Quantize the model. As in fastText, `retrain` has an effect only with a cutoff; `verbose` has none.

        Raises:
            ValueError: The model has no labels, or an argument is impossible.
        """
        if not self._classifier:
            raise ValueError("For now we only support quantization of supervised models")
        if retrain and not input:
            raise ValueError("Need input file path if retraining")
        options: dict[str, Any] = {"cutoff": cutoff or None, "dsub": dsub, "norm": qnorm, "output_layer": qout}
        if retrain and input and 0 < cutoff < self._classifier.features.rows:
            own = vars(self)
            options |= {"texts": Path(input), "epochs": epoch or own["epoch"], "alpha": lr or own["lr"]}
            options["workers"] = thread or own["thread"]
        self._file = None
        with text_warnings_to(lambda line: None):
            self._set_content(quantize(self._classifier, **options).to_vector_file())


class _Meter:
    """The precision and recall of predictions: of a label, or of all labels together."""

    def __init__(self, model: _FastText, blocks: list[scoring.Predictions], k: int) -> None:
        self._model, self._blocks, self._limits = model, blocks, _limits(k, 0.0)

    def _number(self, label: str | None) -> dict[str, Any]:
        number = self._model.get_label_id(label) if label else -1
        return self._limits | {"label": None if number < 0 else number}

    def score_vs_true(self, label: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the probability and the truth of each prediction, the lowest first; -1 for what was not predicted."""
        scores, is_true = scoring.scores_of_labels(self._blocks, **self._number(label))
        order = np.lexsort((is_true, scores))
        return scores[order].astype(np.float64), is_true[order].astype(np.float64)

    def precision_recall_curve(self, label: str | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the precision and the recall above each threshold, the highest first."""
        return scoring.precision_recall_curve(self._blocks, **self._number(label))

    def precision_at_recall(self, recall: float, label: str | None = None) -> float:
        """Return the highest precision of a threshold with this recall or more."""
        precisions, recalls = self.precision_recall_curve(label)
        return float(precisions[recalls >= recall].max(initial=0.0))

    def recall_at_precision(self, precision: float, label: str | None = None) -> float:
        """Return the highest recall of a threshold with this precision or more."""
        precisions, recalls = self.precision_recall_curve(label)
        return float(recalls[precisions >= precision].max(initial=0.0))


def _limits(k: int, threshold: float) -> dict[str, Any]:
    """Return which labels are predicted. fastText compares probabilities before it adds FLOOR."""
    if k < 1 and k != -1:
        raise ValueError("k needs to be 1 or higher!")
    return {"k": None if k == -1 else k, "threshold": threshold + FLOOR}


def _number(score: float | None) -> float:
    return math.nan if score is None else score


def _text(word: Word) -> str:
    """Return a word as a str. Bytes that are not UTF-8 are replaced, as in the words of a loaded model."""
    if not isinstance(word, str | bytes):
        raise TypeError(f"a word must be a str or bytes, not {type(word).__name__}: {word!r:.60}")
    return word if isinstance(word, str) else word.decode(errors="replace")


def load_model(path: PathLike, mmap: bool = False) -> _FastText:
    """Load a `.bin` or `.ftz` file. With `mmap`, a classifier's rows are read from disk when they are used.

    Raises:
        ValueError: The file is missing or damaged.
    """
    return _FastText(model_path=path, mmap=mmap)


def _with_arguments(names: dict[str, Any]) -> Callable[[Callable[..., _FastText]], Callable[..., _FastText]]:
    """Let a function take arguments by fastText's names or OTHER_NAMES. Call it with all, and with those given."""
    defaults = {"input": Parameter.empty} | names
    own = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default) for name, default in defaults.items()]
    signature = Signature(own)

    def decorate(function: Callable[..., _FastText]) -> Callable[..., _FastText]:
        @wraps(function)
        def train(*values: Any, **options: Any) -> _FastText:
            for other in OTHER_NAMES.keys() & options.keys() - names.keys():
                if OTHER_NAMES[other] in options:
                    raise TypeError(f"multiple values for argument '{OTHER_NAMES[other]}'")
                options[OTHER_NAMES[other]] = options.pop(other)
            bound = signature.bind(*values, **options)
            given = dict(bound.arguments)
            bound.apply_defaults()
            return function(SimpleNamespace(**bound.arguments), given)

        vars(train)["__signature__"] = signature
        return train

    return decorate


def _resolve(arguments: SimpleNamespace) -> dict[str, Any]:
    """Check the loss and the model, and count the threads. Return the options of w2v that both kinds of models have.

    Raises:
        ValueError: The loss or the model is unknown.
    """
    a, models = arguments, ("skipgram", "cbow", "supervised")
    if a.loss not in loss_name.__members__ or a.model not in models:
        raise ValueError(f"loss {a.loss!r} with model {a.model!r}: choose ns, hs, softmax or ova, and skipgram or cbow")
    options: dict[str, Any] = {"negative": a.neg, "ns_exponent": 0.5} if a.loss == "ns" else {}
    if a.bucket and a.maxn >= max(1, a.minn):
        options["subwords"] = max(1, a.minn), a.maxn
    if a.pretrainedVectors:
        options["init"] = a.pretrainedVectors
    a.thread = a.thread or max(1, processors() - 1)
    options |= {"vector_size": a.dim, "epochs": a.epoch, "min_count": a.minCount, "alpha": a.lr, "min_alpha": 0.0}
    options |= {"loss": a.loss, "workers": a.thread, "seed": a.seed}
    a.loss, a.model = loss_name[a.loss], model_name[a.model]
    return options


@_with_arguments({"model": "skipgram"} | ARGUMENTS | {"seed": 0})
def train_unsupervised(arguments: Any, given: dict[str, Any]) -> _FastText:
    """Train a model on a text file, with fastText's defaults. w2v trains it, without </s> at the ends of lines.

    `thread` is by default one less than there are processors. minCountLabel, wordNgrams, lrUpdateRate, label and
    verbose have no effect. Names in snake case, such as min_count and pretrained_vectors, are accepted, too.

    Raises:
        ValueError: The text cannot be used, or an argument is impossible.
    """
    model, options = arguments.model, _resolve(arguments)
    if "subwords" in options:
        options["buckets"] = arguments.bucket
    own = {"model": model, "window": arguments.ws, "sample": arguments.t, "vectors": "input"}
    with text_warnings_to(lambda line: None):
        trained = train(Path(arguments.input), **own, **options)
    return _FastText._of(trained.to_vector_file(), arguments)


@_with_arguments(SUPERVISED | {"seed": 0} | AUTOTUNE)
def train_supervised(arguments: Any, given: dict[str, Any]) -> _FastText:
    """Train a classifier on a text file whose lines have labels, with fastText's defaults. w2v trains it.

    `thread` is by default one less than there are processors. ws, lrUpdateRate, t and verbose have no effect. With
    autotuneValidationFile, w2v searches for the arguments that are not given, for autotuneDuration seconds. With
    autotuneModelSize, it then quantizes the model to this size. See train_unsupervised for other names.

    Raises:
        ValueError: The text cannot be used, or an argument is impossible.
    """
    arguments.model = "supervised"
    if arguments.autotuneValidationFile and arguments.minn and "maxn" not in given:
        arguments.maxn = arguments.minn + 3  # as in fastText
    options = _resolve(arguments)
    options |= {"pooling": "mean", "classifier": "embedded", "large_softmax": True, "calibrated": False}
    options |= {"smoothing": 0.0} if arguments.loss is loss_name.ova else {}
    options |= {"word_ngrams": arguments.wordNgrams, "buckets": max(1, arguments.bucket)}
    options |= {"label_prefix": arguments.label, "min_count_label": arguments.minCountLabel}
    with text_warnings_to(lambda line: None):
        if arguments.autotuneValidationFile:
            options = _tuned(arguments, options, given)
        trained = train_classifier(Path(arguments.input), **options)
        if arguments.autotuneValidationFile and arguments.autotuneModelSize:
            trained = quantize(trained, Path(arguments.input), size=arguments.autotuneModelSize)
    own = replace(trained.options, fasttext=True)
    model = _FastText._of(replace(trained, options=own).to_vector_file(), arguments)
    if arguments.autotuneValidationFile:
        found = model._stored_arguments()
        vars(arguments).update({name: getattr(found, name) for name in (*TUNED, "minn", "maxn")})
        arguments.lr = trained.settings.start_alpha
        model.set_args(arguments)
    return model


def _tuned(arguments: SimpleNamespace, options: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a classifier, those that are not given with the best values for the validation file."""
    a = arguments
    tuned = TUNED | {"minn": "subwords", "maxn": "subwords"}
    kept = {ours for name, ours in tuned.items() if name in given} | ({"min_alpha"} if "lr" in given else set())
    free = {*tuned.values(), "min_alpha"} - kept
    how = LabelOptions(label_prefix=a.label), ReadingOptions()
    size = parse_size(a.autotuneModelSize) if a.autotuneModelSize else math.inf
    texts, held_out = (read_labelled(Corpus(Path(path)), *how) for path in (a.input, a.autotuneValidationFile))
    most = size / (4 * (CENTROIDS + len({label for own in texts[1] for label in own})))  # values of a row
    if most < (a.dim if "dim" in given else 1):
        raise ValueError(f"autotuneModelSize {a.autotuneModelSize}: at most {int(most)} dimensions fit in such a file")
    if most / 2 < max(VECTOR_SIZES) and "dim" not in given:  # half of the file for rows
        options["vector_size"] = max(1, min(a.dim, int(most / 2)))
        free.remove("vector_size")
    metric = a.autotuneMetric
    if at := re.fullmatch(r"(precisionAtRecall|recallAtPrecision):([0-9.]+)(:.*)?", metric):
        metric = f"{_snake(at[1])}:{float(at[2]) / 100:g}{at[3] or ''}"
    tuner = search_labels(
        *texts,
        held_out=held_out,
        metric=metric.replace(f":{a.label}", ":", 1),
        k=a.autotunePredictions,
        time=f"{a.autotuneDuration}s",
        progress=lambda _: None,
        **{name: value for name, value in options.items() if name not in free},
    )
    return {**tuner.fixed, **tuner.settings_for(tuner.best)}


def tokenize(text: str) -> list[str]:
    """Split a text as fastText reads it: at white space. The end of a line becomes </s>."""
    return [EOS if token == "\n" else token for token in TOKEN.findall(text)]


def _refuse_old_name(*_: Any, **__: Any) -> NoReturn:
    raise ValueError("use train_supervised(input), or train_unsupervised(input, model='cbow' or 'skipgram')")


cbow = skipgram = supervised = _refuse_old_name


def eprint(*arguments: Any, **options: Any) -> None:
    """Print to standard error. Programs replace this function to silence fastText."""
    print(*arguments, file=sys.stderr, **options)
