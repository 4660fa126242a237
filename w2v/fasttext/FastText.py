"""fasttext.FastText: models of words and classifiers, with fastText's names, defaults and results."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from functools import cached_property, wraps
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from w2v.errors import text_warnings_to
from w2v.evaluation.labels import LabelScore, LabelScores, Predictions, score_labels
from w2v.formats import fasttext
from w2v.formats.vector_file import VectorFile, as_floats
from w2v.losses.fasttext import FLOOR
from w2v.system.files import FASTTEXT, PathLike, atomic_write, check_files_unchanged
from w2v.system.threads import processors
from w2v.text._text import PADDING
from w2v.text.examples import RowCounts
from w2v.text.labels import LabelOptions
from w2v.text.subword_rows import own_rows
from w2v.text.subwords import Ngrams, Subwords
from w2v.text.words import Words
from w2v.training.classifier import SCORES_AT_ONCE, Classifier
from w2v.training.classify import train_classifier
from w2v.training.quantize import quantize
from w2v.training.train import train
from w2v.vectors.cosines import lengths, unit
from w2v.vectors.keyed import KeyedVectors, to_keyed_vectors

BOW, EOW, EOS = "<", ">", "</s>"  # the begin and the end of a word, and the end of a line
TOKEN = re.compile("\n|[^ \n\r\t\v\f\0]+")
WORD = re.compile("[^ \n\r\t\v\f]+")  # separated as in C++, so not by other white space of Unicode
END = re.compile(r"(?:^|[ \r\t\v\f\0])</s>(?:[ \r\t\v\f\0]|$)")  # fastText reads a line up to this word
Floats = NDArray[np.float32]
Neighbours = list[tuple[float, str]]
Word = str | bytes

loss_name = Enum("loss_name", {"hs": 1, "ns": 2, "softmax": 3, "ova": 4})
model_name = Enum("model_name", {"cbow": 1, "skipgram": 2, "supervised": 3})
ARGUMENTS = (
    "lr", "dim", "ws", "epoch", "minCount", "minCountLabel", "minn", "maxn", "neg", "wordNgrams", "loss", "bucket",
    "thread", "lrUpdateRate", "t", "label", "verbose", "pretrainedVectors",
)  # fmt: skip
OTHER_NAMES = {
    "min_count": "minCount",
    "word_ngrams": "wordNgrams",
    "lr_update_rate": "lrUpdateRate",
    "label_prefix": "label",
    "pretrained_vectors": "pretrainedVectors",
}


class _FastText:
    """A model of words and their n-grams, or a classifier, as in fastText's Python module.

    load_model, train_unsupervised and train_supervised make one. A word that is neither known nor has a known n-gram
    has a vector of zeros. A word can also be given as bytes, in UTF-8.

    Attributes:
        lr, dim, ws, epoch, minCount, ...: The arguments of train_unsupervised. A file does not store all of them: of a
            loaded model, the others have their defaults.
    """

    def __init__(self, model_path: PathLike | None = None, args: Any = None) -> None:
        if model_path is None:
            raise NotImplementedError("an empty model: use load_model or train_unsupervised")
        with check_files_unchanged(model_path):
            content = fasttext.FORMAT.load(model_path, "replace")
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
        function = train_supervised if self._classifier else train_unsupervised
        defaults = {name: each.default for name, each in signature(function).parameters.items()}
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
        return SimpleNamespace(**defaults | stored)

    def set_args(self, args: Any = None) -> None:
        """Copy the arguments of training from the attributes of an object, such as `f.getArgs()`, to this object."""
        if args:
            vars(self).update({name: getattr(args, name) for name in ARGUMENTS})

    @property
    def f(self) -> SimpleNamespace:
        """The methods under the names of fastText's compiled class, except those that fill a Vector."""
        return SimpleNamespace(
            predict=lambda text, k=1, threshold=0.0, on_unicode_error="strict": [
                (probability, label) for label, probability in self._predict([text.rstrip("\n")], k, threshold)[0]
            ],
            multilinePredict=lambda texts, *args: self.predict([text.rstrip("\n") for text in texts], *args),
            test=self.test,
            testLabel=self.test_label,
            getLine=lambda text, on_unicode_error="strict": self.get_line(text.rstrip("\n")),
            getLabels=lambda on_unicode_error="strict": self.get_labels(include_freq=True),
            getLabelId=self.get_label_id,
            getArgs=lambda: self._arguments,
            isQuant=self.is_quantized,
            getVocab=lambda on_unicode_error="strict": self.get_words(include_freq=True),
            getWordId=self.get_word_id,
            getSubwordId=self.get_subword_id,
            getSubwords=self.get_subwords,
            getNN=self.get_nearest_neighbors,
            getAnalogies=self.get_analogies,
            getInputMatrix=self.get_input_matrix,
            getOutputMatrix=self.get_output_matrix,
            setMatrices=self.set_matrices,
            saveModel=self.save_model,
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
        _check_line(text)
        if self._classifier:
            pooled: Floats = self._classifier.pooled(self._find([text]))[0]
            return pooled
        row_of, vectors, norms = self._wv.key_to_index, self._wv.vectors, self._wv.norms
        total, counted = np.zeros(vectors.shape[1], np.float32), 0
        for word in WORD.findall(text):
            row = row_of.get(word)
            if row is None:
                vector = self.get_word_vector(word)
                norm = lengths(vector[np.newaxis])[0]
            else:
                vector, norm = vectors[row], norms[row]
            if norm > 0:
                total += vector / norm
                counted += 1
        return total / np.float32(max(1, counted))

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
        _check_line(text)
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
        texts = text if isinstance(text, list) else [text]
        for line in texts:
            _check_line(line)
        found = self._predict(texts, k, threshold)
        labels = [[label for label, _ in pairs] for pairs in found]
        values = [[probability for _, probability in pairs] for pairs in found]
        if isinstance(text, list):
            return labels, [np.array(each, np.float32) for each in values]
        return tuple(labels[0]), np.array(values[0])

    def _predict(self, texts: list[str], k: int, threshold: float) -> list[list[tuple[str, float]]]:
        """Return the labels of each line, and their probabilities."""
        classifier = self._classifier
        if not classifier:
            raise ValueError("Model needs to be supervised for prediction!")
        parts = self._find(texts).parts(max(1, SCORES_AT_ONCE // len(self.labels)))
        limits = _limits(k, threshold)
        return [
            [(self._prefix + label, probability) for label, probability in pairs]
            for part in parts
            for pairs in classifier.most_probable(classifier.probabilities(part), **limits)
        ]

    def test(self, path: PathLike, k: int = 1, threshold: float = 0.0) -> tuple[int, float, float]:
        """Return the number of lines with a known label, and the precision and recall of their predictions.

        A model without labels has no such lines, and NaN.
        """
        scores = self._scores(path, k, threshold)
        return (scores.texts, _number(scores.precision), _number(scores.recall)) if scores else (0, math.nan, math.nan)

    def test_label(self, path: PathLike, k: int = 1, threshold: float = 0.0) -> dict[str, Any]:
        """Return the precision, the recall and the F1 score of each label; NaN if there is nothing to divide by."""
        scores = self._scores(path, k, threshold)
        none = LabelScore("", None, None, None, 0, 0)
        found = scores.labels if scores else [none] * len(self.labels if self._classifier else [])
        return {
            label: {"precision": _number(one.precision), "recall": _number(one.recall), "f1score": _number(one.f1)}
            for label, one in zip(self.labels if found else [], found, strict=True)
        }

    def _scores(self, path: PathLike, k: int, threshold: float) -> LabelScores | None:
        """Return the scores of the lines of a file with words and a known label, or None if there are none."""
        if not Path(path).is_file():
            raise ValueError(f"{path} cannot be opened for test!")
        if not self._classifier:
            return None
        blocks = []
        for block in self._classifier.read_predictions(Path(path), errors="replace", progress=lambda _: None):
            known = block.labels >= 0
            starts = np.append(0, np.cumsum(known))[block.starts]
            scored = (np.diff(starts) > 0) & ~np.isnan(block.probabilities[:, 0])
            chosen = known & np.repeat(scored, np.diff(block.starts))
            starts = np.append(0, np.cumsum(np.diff(starts)[scored]))
            blocks.append(Predictions(block.probabilities[scored], starts, block.labels[chosen]))
        if not sum(len(block.probabilities) for block in blocks):
            return None
        return score_labels(self._classifier.labels, blocks, **_limits(k, threshold))

    def _find(self, texts: list[str]) -> RowCounts:
        """Return the rows of lines."""
        assert self._classifier
        lines = (END.split(text, maxsplit=1)[0].replace("\0", " ") for text in texts)
        return self._classifier.finder.find("".join(f"{line}\n" for line in lines).encode() + PADDING)

    def get_meter(self, path: PathLike, k: int = -1) -> NoReturn:
        raise NotImplementedError("w2v.fasttext has no get_meter: use test_label, or w2v evaluate --labelled")

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


def _check_line(text: str) -> None:
    if text.find("\n") >= 0:
        raise ValueError("a text has several lines: give one line at a time (remove '\\n')")


def load_model(path: PathLike) -> _FastText:
    """Load a `.bin` or `.ftz` file.

    Raises:
        ValueError: The file is missing or damaged.
    """
    return _FastText(model_path=path)


def _with_other_names(function: Callable[..., _FastText]) -> Callable[..., _FastText]:
    """Let a function take the names of OTHER_NAMES, too."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> _FastText:
        for other, name in OTHER_NAMES.items():
            if other in options:
                if name in options:
                    raise TypeError(f"multiple values for argument '{name}'")
                options[name] = options.pop(other)
        return function(*arguments, **options)

    return call


@_with_other_names
def train_unsupervised(
    input: PathLike,
    model: Literal["skipgram", "cbow"] = "skipgram",
    lr: float = 0.05,
    dim: int = 100,
    ws: int = 5,
    epoch: int = 5,
    minCount: int = 5,
    minCountLabel: int = 0,
    minn: int = 3,
    maxn: int = 6,
    neg: int = 5,
    wordNgrams: int = 1,
    loss: str = "ns",
    bucket: int = 2_000_000,
    thread: int | None = None,
    lrUpdateRate: int = 100,
    t: float = 1e-4,
    label: str = "__label__",
    verbose: int = 2,
    pretrainedVectors: PathLike = "",
    seed: int = 0,
) -> _FastText:
    """Train a model on a text file, with fastText's defaults. w2v trains it, without </s> at the ends of lines.

    `thread` is by default one less than there are processors. minCountLabel, wordNgrams, lrUpdateRate, label and
    verbose have no effect. min_count, word_ngrams, lr_update_rate, label_prefix and pretrained_vectors are other names.

    Raises:
        ValueError: The text cannot be used, or an argument is impossible.
    """
    arguments = SimpleNamespace(**locals())
    if loss not in loss_name.__members__ or model not in model_name.__members__:
        raise ValueError(f"loss {loss!r} with model {model!r}: choose ns, hs or softmax, and skipgram or cbow")
    arguments.loss, arguments.model = loss_name[loss], model_name[model]
    arguments.thread = thread = thread or max(1, processors() - 1)
    options: dict[str, Any] = {"negative": neg, "ns_exponent": 0.5} if loss == "ns" else {}
    if bucket and maxn >= max(1, minn):
        options |= {"subwords": (max(1, minn), maxn), "buckets": bucket}
    if pretrainedVectors:
        options["init"] = pretrainedVectors
    with text_warnings_to(lambda line: None):
        trained = train(
            Path(input), model=model, loss=loss, vector_size=dim, window=ws, epochs=epoch, min_count=minCount, alpha=lr,
            min_alpha=0.0, sample=t, workers=thread, seed=seed, vectors="input",
            **options,
        )  # fmt: skip
    return _FastText._of(trained.to_vector_file(), arguments)


@_with_other_names
def train_supervised(
    input: PathLike,
    lr: float = 0.1,
    dim: int = 100,
    ws: int = 5,
    epoch: int = 5,
    minCount: int = 1,
    minCountLabel: int = 0,
    minn: int = 0,
    maxn: int = 0,
    neg: int = 5,
    wordNgrams: int = 1,
    loss: str = "softmax",
    bucket: int = 2_000_000,
    thread: int | None = None,
    lrUpdateRate: int = 100,
    t: float = 1e-4,
    label: str = "__label__",
    verbose: int = 2,
    pretrainedVectors: PathLike = "",
    seed: int = 0,
    autotuneValidationFile: PathLike = "",
    autotuneMetric: str = "f1",
    autotunePredictions: int = 1,
    autotuneDuration: int = 300,
    autotuneModelSize: str | int = "",
) -> _FastText:
    """Train a classifier on a text file whose lines have labels, with fastText's defaults. w2v trains it.

    `thread` is by default one less than there are processors. ws, lrUpdateRate, t and verbose have no effect. See
    train_unsupervised for other names.

    Raises:
        ValueError: The text cannot be used, or an argument is impossible.
        NotImplementedError: minCountLabel is above 1, or an argument asks for autotune.
    """
    arguments = SimpleNamespace(**locals())
    if autotuneValidationFile:
        raise NotImplementedError("w2v.fasttext has no autotune: use w2v tune --classify")
    if minCountLabel > 1:
        raise NotImplementedError("w2v.fasttext has no minCountLabel: leave out rare labels")
    if loss not in loss_name.__members__:
        raise ValueError(f"loss {loss!r}: choose softmax, hs, ns or ova")
    arguments.loss, arguments.model = loss_name[loss], model_name["supervised"]
    arguments.thread = thread = thread or max(1, processors() - 1)
    options: dict[str, Any] = {"negative": neg, "ns_exponent": 0.5} if loss == "ns" else {}
    options |= {"smoothing": 0.0} if loss == "ova" else {}
    if bucket and maxn >= max(1, minn):
        options["subwords"] = max(1, minn), maxn
    if pretrainedVectors:
        options["init"] = pretrainedVectors
    with text_warnings_to(lambda line: None):
        trained = train_classifier(
            Path(input), loss=loss, vector_size=dim, epochs=epoch, min_count=minCount, alpha=lr, min_alpha=0.0,
            word_ngrams=wordNgrams, buckets=max(1, bucket), label_prefix=label, workers=thread, seed=seed,
            pooling="mean", classifier="embedded", large_softmax=True, **options,
        )  # fmt: skip
    own = replace(trained.options, fasttext=True)
    return _FastText._of(replace(trained, temperature=1.0, options=own).to_vector_file(), arguments)


def tokenize(text: str) -> list[str]:
    """Split a text as fastText reads it: at white space. The end of a line becomes </s>."""
    return [EOS if token == "\n" else token for token in TOKEN.findall(text)]


def _refuse_old_name(*_: Any, **__: Any) -> NoReturn:
    raise ValueError("use train_supervised(input), or train_unsupervised(input, model='cbow' or 'skipgram')")


cbow = skipgram = supervised = _refuse_old_name


def eprint(*arguments: Any, **options: Any) -> None:
    """Print to standard error. Programs replace this function to silence fastText."""
    print(*arguments, file=sys.stderr, **options)
