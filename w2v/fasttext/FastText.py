"""fasttext.FastText: models of words with character n-grams, with fastText's names, defaults and results."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from w2v.errors import text_warnings_to
from w2v.formats import fasttext
from w2v.formats.vector_file import VectorFile, as_floats
from w2v.system.files import PathLike, atomic_write, check_files_unchanged
from w2v.system.threads import processors
from w2v.text.subword_rows import own_rows
from w2v.text.subwords import Ngrams, sums_of_rows
from w2v.text.words import Words
from w2v.training.train import train
from w2v.vectors.cosines import unit
from w2v.vectors.keyed import to_keyed_vectors

BOW, EOW, EOS = "<", ">", "</s>"  # the begin and the end of a word, and the end of a line
TOKEN = re.compile("\n|[^ \n\r\t\v\f\0]+")
WORD = re.compile("[^ \n\r\t\v\f]+")  # separated as in C++, so not by other white space of Unicode
Floats = NDArray[np.float32]
Neighbours = list[tuple[float, str]]


class _FastText:
    """A model of words and their n-grams, as in fastText's Python module.

    load_model and train_unsupervised make one. A word that is neither known nor has a known n-gram has a vector of
    zeros.
    """

    def __init__(self, model_path: PathLike | None = None, args: Any = None) -> None:
        if model_path is None:
            raise NotImplementedError("an empty model: use load_model or train_unsupervised")
        with check_files_unchanged(model_path):
            content = fasttext.FORMAT.load(model_path, "replace")
            matrices = fasttext.map_matrices(model_path)
            self._file: NDArray[np.uint8] | None = np.memmap(model_path, np.uint8, "r") if matrices else None
        self._set_content(content, *(matrices or (None, None)))

    @classmethod
    def _of(cls, content: VectorFile) -> _FastText:
        """Return a model with the words, vectors, n-grams and output rows of a file's content."""
        model = cls.__new__(cls)
        model._file = None
        model._set_content(content)
        return model

    def _set_content(self, content: VectorFile, inputs: Floats | None = None, outputs: Floats | None = None) -> None:
        self._content, self._wv = content, to_keyed_vectors(content)
        self._inputs, self._outputs = inputs, outputs

    @property
    def _buckets(self) -> int:
        """The number of rows for n-grams."""
        if self._inputs is not None:
            return len(self._inputs) - len(self.words)
        subwords = self._content.header.subwords
        return subwords.buckets if subwords else 0

    # -- words --------------------------------------------------------------------------------------

    @property
    def words(self) -> list[str]:
        """The words, the most frequent first."""
        return self._wv.index_to_key

    labels = words  # as in fastText, for models without labels

    def get_words(self, include_freq: bool = False, on_unicode_error: str = "strict") -> Any:
        """Return the words; with `include_freq`, also their counts, int64 (V,)."""
        counts = self._content.counts
        return (list(self.words), np.array(counts)) if include_freq else list(self.words)

    get_labels = get_words

    def get_word_id(self, word: str) -> int:
        """Return the row of a word, or -1 if it is unknown."""
        return self._wv.key_to_index.get(word, -1)

    def __contains__(self, word: object) -> bool:
        return self._wv.is_known(word)

    # -- vectors ------------------------------------------------------------------------------------

    def get_dimension(self) -> int:
        return self._wv.vector_size

    @property
    def dim(self) -> int:
        """The number of values of a vector."""
        return self.get_dimension()

    def get_word_vector(self, word: str) -> Floats:
        """Return the vector of a word, (D,); see get_word_vectors."""
        vector: Floats = self.get_word_vectors([word])[0]
        return vector

    def __getitem__(self, word: str) -> Floats:
        return self.get_word_vector(word)

    def get_word_vectors(self, words: Sequence[str]) -> Floats:
        """Return the vectors of n words, (n, D). fastText lacks this method.

        The vector of an unknown word is the mean of the rows of its n-grams, or zeros if it has none.

        Raises:
            TypeError: A word is not a str.
        """
        for word in words:
            if not isinstance(word, str):
                raise TypeError(f"a word must be a str, not {type(word).__name__}: {word!r:.60}")
        rows = np.array([self.get_word_id(word) for word in words], np.int64)
        vectors = np.zeros((len(rows), self.get_dimension()), np.float32)
        known = rows >= 0
        vectors[known] = self._wv.vectors[rows[known]]
        if self._wv.ngrams and not known.all():
            unknown = [word for word, is_known in zip(words, known, strict=True) if not is_known]
            vectors[~known] = self._wv.ngrams.vectors(Words.of(unknown))
        return vectors

    def get_sentence_vector(self, text: str) -> Floats:
        """Return the vector of a line of text, (D,); see get_sentence_vectors."""
        vector: Floats = self.get_sentence_vectors([text])[0]
        return vector

    def get_sentence_vectors(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of n lines, (n, D): the mean of the unit vectors of their words.

        Words with a vector of zeros do not count. fastText lacks this method.

        Raises:
            ValueError: A text has several lines.
        """
        if any("\n" in text for text in texts):
            raise ValueError("a text has several lines: give one line at a time (remove '\\n')")
        lines = [WORD.findall(text) for text in texts]
        vectors = unit(self.get_word_vectors([word for line in lines for word in line]))
        starts = np.append(0, np.cumsum([len(line) for line in lines]))
        counted = np.append(0, np.cumsum(vectors.any(axis=1)))[starts]
        sums = sums_of_rows(vectors, np.arange(len(vectors)), starts)
        means: Floats = sums / np.maximum(np.diff(counted), 1).astype(np.float32)[:, np.newaxis]
        return means

    # -- nearest words ------------------------------------------------------------------------------

    def get_nearest_neighbors(self, word: str, k: int = 10, on_unicode_error: str = "strict") -> Neighbours:
        """Return (cosine, word) of the `k` words nearest to a word."""
        return self._nearest(self.get_word_vector(word), {word}, k)

    def get_analogies(
        self, wordA: str, wordB: str, wordC: str, k: int = 10, on_unicode_error: str = "strict"
    ) -> Neighbours:
        """Return (cosine, word) of the `k` words nearest to A - B + C, the sum of unit vectors."""
        first, second, third = unit(self.get_word_vectors([wordA, wordB, wordC]))
        return self._nearest(first - second + third, {wordA, wordB, wordC}, k)

    def _nearest(self, vector: Floats, left_out: set[str], k: int) -> Neighbours:
        found = self._wv.most_similar([vector], topn=k + len(left_out))
        return [(cosine, word) for word, cosine in found if word not in left_out][:k]

    # -- n-grams ------------------------------------------------------------------------------------

    def get_subwords(self, word: str, on_unicode_error: str = "strict") -> tuple[list[str], NDArray[np.int64]]:
        """Return the subwords of a word, itself first if it is known, and their rows of the input matrix."""
        row, subwords = self.get_word_id(word), self._content.header.subwords
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

    def get_subword_id(self, subword: str) -> int:
        """Return the row of an n-gram in the input matrix.

        Raises:
            ValueError: The model has no n-grams.
        """
        if not self._buckets:
            raise ValueError("the model has no n-grams")
        fnv = 2166136261  # FNV-1a; fastText extends the sign of each byte
        for byte in np.frombuffer(subword.encode(), np.int8).tolist():
            fnv = (fnv ^ byte & 0xFFFFFFFF) * 16777619 & 0xFFFFFFFF
        return len(self.words) + fnv % self._buckets

    # -- matrices and files -------------------------------------------------------------------------

    def get_input_matrix(self) -> Floats:
        """Return the rows of the words, followed by the rows of the buckets: a copy, float32 (V + buckets, D)."""
        if self._inputs is not None:
            return np.array(self._inputs)
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
        inputs, outputs = (np.ascontiguousarray(as_floats(each)) for each in (input_matrix, output_matrix))
        count, subwords = len(self.words), self._content.header.subwords
        rows = len(self._inputs) if self._inputs is not None else count + (subwords.buckets if subwords else 0)
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
            fasttext.FORMAT.save(path, self._content)
        else:
            with atomic_write(path) as file:
                file.write(self._file.data)

    def is_quantized(self) -> bool:
        return False

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("predict", "test", "test_label", "get_meter", "get_line", "get_label_id", "quantize"):
            raise NotImplementedError(f"{name}: {_NO_CLASSIFIERS}")
        raise AttributeError(f"a model of w2v.fasttext has no attribute {name}")


_NO_CLASSIFIERS = "w2v.fasttext has no classifiers and no quantized models: use fastText itself"


def load_model(path: PathLike) -> _FastText:
    """Load a `.bin` file of an unsupervised model.

    Raises:
        ValueError: The file is missing, is damaged, or holds a classifier or a quantized model.
    """
    return _FastText(model_path=path)


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
    verbose have no effect.

    Raises:
        ValueError: The text cannot be used, or an argument is impossible.
    """
    options: dict[str, Any] = {"negative": neg, "ns_exponent": 0.5} if loss == "ns" else {}
    if bucket and maxn >= max(1, minn):
        options |= {"subwords": (max(1, minn), maxn), "buckets": bucket}
    if pretrainedVectors:
        options["init"] = pretrainedVectors
    with text_warnings_to(lambda line: None):
        trained = train(
            Path(input), model=model, loss=loss, vector_size=dim, window=ws, epochs=epoch, min_count=minCount, alpha=lr,
            min_alpha=0.0, sample=t, workers=thread or max(1, processors() - 1), seed=seed, vectors="input",
            **options,
        )  # fmt: skip
    return _FastText._of(trained.to_vector_file())


def tokenize(text: str) -> list[str]:
    """Split a text as fastText reads it: at white space. The end of a line becomes </s>."""
    return [EOS if token == "\n" else token for token in TOKEN.findall(text)]


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError(_NO_CLASSIFIERS)


train_supervised = supervised = _refuse


def _refuse_old_name(*_: Any, **__: Any) -> NoReturn:
    raise ValueError("use train_unsupervised(input, model='skipgram') or model='cbow', as in fastText")


cbow = skipgram = _refuse_old_name


def eprint(*arguments: Any, **options: Any) -> None:
    """Print to standard error. Programs replace this function to silence fastText."""
    print(*arguments, file=sys.stderr, **options)
