"""Words and their vectors: look-up, comparison, nearest neighbours.

The methods have gensim's names but w2v's own arguments and rules: a key is a word, never a row number, and `save`
replaces a file only with `force`. `w2v.gensim` has classes with all methods of gensim, and with its arguments and
behaviour. What else can be done with vectors is a function, such as `encode`, `recommend`, `word_map` or `analogies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, Protocol, Self, TypeGuard, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from w2v._display import html_table
from w2v._errors import SettingsError, W2VError, pluralise
from w2v._formats import registry
from w2v._formats.header import ModelHeader
from w2v._formats.storage import CompactMatrix
from w2v._formats.vector_file import VectorFile, as_floats, check_counts
from w2v._options import check_whole
from w2v._progress import Report
from w2v._system import memory
from w2v._system.files import Errors, PathLike
from w2v._text._text import Lookup
from w2v._text.encodings import UTF_8, encoding_name
from w2v._text.normalise import Normaliser, TextOptions
from w2v._text.subwords import Ngrams
from w2v._text.words import INTEGER, Words, as_list, is_number
from w2v._vectors.cosines import EPSILON, Floats, cosine, cosines, lengths, unit
from w2v._vectors.neighbours import complete_vectors, nearest, top_rows
from w2v._vectors.unknown_words import UnknownWordError

Neighbours = list[tuple[Any, float]]  # pairs of a word, or the number of an item, and a score
Key = str | int | NDArray[Any]  # a word, the number of an item, or a vector
Keys = Key | Sequence[Key | tuple[Key, float]]  # a tuple is a key and its weight

SHOWN_WORDS = 10  # rows of the table in a notebook


@cache  # evaluation splits one word at a time
def _normaliser(options: TextOptions) -> Normaliser:
    return Normaliser(options)


class KeyedVectors:
    """V words, each with a vector of D values.

    The keys may also be numbers, such as the ids of items. All methods then accept and return ints, and accept a number
    as text, as on the command line.

    Attributes:
        counts: int64 (V,), how often each word occurs in the training text, or None if unknown.
        header: Metadata of a native file, such as the training settings; see ModelHeader.
        tensors: Other arrays of a native file, such as the output layer.
    """

    def __init__(
        self,
        words: Sequence[Any],
        vectors: ArrayLike,
        counts: ArrayLike | None = None,
        tensors: Mapping[str, NDArray[Any]] | None = None,
        *,
        header: ModelHeader | None = None,
    ) -> None:
        """Check and store the words, or the numbers of items, and their vectors.

        `vectors` are copied, unless they are a read-only array. Nothing may edit its memory later.

        Raises:
            W2VError: If the words are neither all strings nor all ints, if the words, vectors and counts differ in
                number, if a value is beyond float32, if a count is negative, or if the counts add up to 2^63 or more.
        """
        self.header = header or ModelHeader()
        self.tensors = dict(tensors or {})
        if not isinstance(words, Words):
            words = as_list(words)
            if words and all(map(is_number, words)):
                self.header = replace(self.header, key_type="int")
                words = Words.of(map(str, words))
        for row, word in enumerate(words if isinstance(words, list) else ()):
            if not isinstance(word, str):
                raise W2VError(f"word {row} is {word!r:.60}: words are strings, or all are ints of 64 bits")
        self._words: Sequence[str] = words
        self.vectors = cast(Any, vectors)
        self.counts: NDArray[np.int64] | None = None
        if counts is not None:
            numbers = np.asarray(counts)
            if numbers.shape != (len(self),):
                raise W2VError(f"counts of shape {numbers.shape} do not fit {pluralise(len(self), 'word')}")
            check_counts("", self._words, numbers)
            self.counts = numbers.astype(np.int64, copy=False)

    # -- words and vectors --------------------------------------------------------------------------

    @cached_property
    def index_to_key(self) -> list[Any]:
        """The words, or the numbers of the items, in the order of the vectors."""
        if self.header.key_type == "int":
            return Words.of(self._words).to_ints()
        return list(self._words)

    @cached_property
    def key_to_index(self) -> dict[Any, int]:
        """The row of each word, or of the number of each item.

        Raises:
            W2VError: If a word appears twice.
        """
        index = {word: row for row, word in enumerate(self.index_to_key)}
        if len(index) != len(self):
            word = next(word for row, word in enumerate(self.index_to_key) if index[word] != row)
            raise W2VError(f"the word {word!r:.60} appears twice")
        return index

    @cached_property
    def lookup(self) -> Lookup:
        """Finds the rows of the words of a text, without making a str of each."""
        return Words.of(self._words).lookup()

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The vectors, float32 (V, D), read-only.

        They can be replaced, but not edited, because `norms` and searches depend on them. If a memory-mapped file
        stores a smaller type, this is a CompactMatrix, which converts rows to float32 when they are read.
        """
        return self._vectors

    @vectors.setter
    def vectors(self, vectors: ArrayLike | CompactMatrix) -> None:
        matrix: Any = vectors
        if not isinstance(vectors, CompactMatrix):
            # The caller may edit a writable array later.
            is_fixed = isinstance(vectors, np.ndarray) and not vectors.flags.writeable
            numbers = np.asarray(vectors)
            floats = as_floats(numbers, words=self._words)
            matrix = memory.read_only(floats if is_fixed or floats is not numbers else floats.copy())
        if matrix.ndim != 2 or len(matrix) != len(self._words):
            raise W2VError(f"vectors of shape {matrix.shape} do not fit {pluralise(len(self._words), 'word')}")
        self._vectors: NDArray[np.float32] = matrix
        self._norms: Floats | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what cannot be copied or pickled, and is made again when it is used."""
        return {name: value for name, value in vars(self).items() if name != "lookup"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _norms=None)
        if isinstance(self._vectors, np.ndarray):  # a copy by pickle can be edited
            self._vectors.setflags(write=False)

    @property
    def vector_size(self) -> int:
        """The number of values in a vector, D."""
        return int(self.vectors.shape[1])

    @property
    def norms(self) -> Floats:
        """The length of each vector, (V,) float32, read-only."""
        if self._norms is None:
            self._norms = memory.read_only(lengths(self.vectors))
        return self._norms

    def words_in(self, text: str) -> list[str]:
        """Split a text into words with the normalisation and tokenizer used to train these vectors.

        Only the native format stores these options. Without them, words are separated by spaces.
        """
        return _normaliser(self.header.text).words(text)

    @cached_property
    def ngrams(self) -> Ngrams | None:
        """The n-grams that give unknown words a vector, or None.

        None for vectors that combine input and output rows, because an unknown word does not have an output row.

        Raises:
            W2VError: If the n-grams are damaged.
        """
        if "inputs" in self.tensors:
            return None
        where, header = "the n-grams of the vectors", self.header
        return Ngrams.from_file(self.tensors, header.subwords, self.vector_size - header.ngram_offset, where)

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, key: object) -> bool:
        """Return True if a key is a word that has a vector. With n-grams, unknown words may have one, too."""
        if self.is_known(key) or not isinstance(key, str) or self.ngrams is None:
            return self.is_known(key)
        return self.ngrams.vector(key) is not None

    def is_known(self, key: object) -> bool:
        """Return True if a key is a word of the vocabulary."""
        return self.row_of(key) is not None

    def row_of(self, key: Any) -> int | None:
        """Return the row of a key, or None if it is unknown."""
        if isinstance(key, str) and self.header.key_type == "int":
            key = int(key) if INTEGER.fullmatch(key) else None
        try:
            return self.key_to_index.get(key)
        except TypeError:  # a key that cannot be hashed, such as a list
            return None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.index_to_key)

    def __getitem__(self, key: str | int | Iterable[str | int]) -> Floats:
        """Return the vector of a word, (D,), or the vectors of n words, (n, D).

        Raises:
            UnknownWordError: If a word does not have a vector.
        """
        if isinstance(key, str) or not isinstance(key, Iterable):
            return self.get_vector(key)
        return self._look_up_vectors(key)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.vectors, dtype, copy=copy)

    def __sklearn_clone__(self) -> Self:
        return self  # otherwise scikit-learn copies the vectors for each candidate of a parameter search

    def __repr__(self) -> str:
        return f"<KeyedVectors: {pluralise(len(self), 'word')}, {pluralise(self.vector_size, 'value')} each>"

    def _repr_html_(self) -> str:
        columns: dict[str, list[Any]] = {"word": self.first_words(SHOWN_WORDS)}
        if self.counts is not None:
            columns["count"] = self.counts[:SHOWN_WORDS].tolist()
        columns["length"] = self.norms[:SHOWN_WORDS].tolist()
        rows = html_table([*zip(*columns.values(), strict=True)], list(columns))
        return f"<p>{len(self):,} words, {self.vector_size:,} values each</p>{rows}"

    def first_words(self, stop: int) -> list[str]:
        """Return the first `stop` words, without decoding the others. Numbers are returned as text."""
        return list(self._words[:stop])

    def get_vector(self, key: str | int, norm: bool = False) -> Floats:
        """Return the vector of a word, (D,), scaled to length 1 if `norm`.

        Raises:
            UnknownWordError: If the word does not have a vector.
        """
        vector: Floats = self._look_up_vectors([key])[0]
        return unit(vector) if norm else vector

    def get_mean_vector(
        self,
        keys: Iterable[Key],
        weights: Iterable[float] | None = None,
        pre_normalize: bool = True,
        post_normalize: bool = False,
        ignore_missing: bool = True,
    ) -> Floats:
        """Return the weighted mean of words and vectors, (D,).

        The mean is the weighted sum, divided by the sum of the absolute weights.

        Args:
            keys: Words and vectors.
            weights: The weight of each key, by default 1.
            pre_normalize: Scale the vectors of words to length 1 first.
            post_normalize: Scale the mean to length 1.
            ignore_missing: Skip words without a vector, unless no key is left.

        Raises:
            UnknownWordError: If a word that is not skipped does not have a vector.
            W2VError: If `keys` is empty, if it differs from `weights` in number, or if a vector has the wrong shape.
        """
        keys = as_list(keys)
        weights = [1.0] * len(keys) if weights is None else list(weights)
        if len(weights) != len(keys):
            raise W2VError(f"{len(keys)} keys, but {len(weights)} weights")
        weighted = list(zip(keys, weights, strict=True))
        if ignore_missing:
            weighted = [pair for pair in weighted if not self._is_unknown_word(pair[0])] or weighted
        parts = self._vectors_of_keys([key for key, _ in weighted], pre_normalize)  # (n, D)
        share = np.array([weight for _, weight in weighted], np.float64)
        mean = (share @ parts.astype(np.float64) / (np.abs(share).sum() or 1)).astype(parts.dtype)
        return unit(mean) if post_normalize else mean

    def _is_unknown_word(self, key: Key) -> bool:
        """Return True for a word without a vector. An int is a word only if all keys are ints."""
        return isinstance(key, str | int | np.integer if self.header.key_type == "int" else str) and key not in self

    def _look_up_vectors(self, keys: Iterable[str | int]) -> Floats:
        """Return the vectors of n keys, (n, D). Raise UnknownWordError with all unknown keys."""
        keys = list(keys)
        composed: dict[int, Floats] = {}  # by position among the keys
        if self.ngrams:
            for position, key in enumerate(keys):
                if isinstance(key, str) and not self.is_known(key) and (part := self.ngrams.vector(key)) is not None:
                    composed[position] = part
        others = [key for position, key in enumerate(keys) if position not in composed]
        rows = [row for key in others if (row := self.row_of(key)) is not None]
        if len(rows) < len(others):
            raise UnknownWordError([key for key in others if not self.is_known(key)], self.key_to_index)
        if not composed:
            return self.vectors[rows]
        composed = dict(zip(composed, complete_vectors(np.stack(list(composed.values())), self.vectors), strict=True))
        known = iter(rows)
        return np.stack(
            [composed[position] if position in composed else self.vectors[next(known)] for position in range(len(keys))]
        )

    def _vectors_of_keys(self, keys: Sequence[Key], norm: bool) -> Floats:
        """Return the vectors of n words and vectors, (n, D). If `norm`, scale the vectors of words to length 1."""
        if not keys:
            raise W2VError("no words are given")
        of_words = self._look_up_vectors(key for key in keys if is_word(key))
        rest = iter(unit(of_words) if norm else of_words)
        return np.stack([next(rest) if is_word(key) else self._checked_vector(key) for key in keys])

    def _checked_vector(self, key: Key) -> Floats:
        """Return a key that is a vector, as float32 (D,)."""
        try:
            vector = as_floats(key) if np.ndim(key) else None
        except W2VError:
            raise
        except (TypeError, ValueError):
            vector = None
        if vector is None:
            raise W2VError(f"{key!r:.60} is neither a word nor a vector")
        if vector.shape != (self.vector_size,):
            raise W2VError(f"a vector of shape {vector.shape}: the model's vectors have {self.vector_size} values")
        return vector

    # -- comparing ----------------------------------------------------------------------------------

    def similarity(self, word1: str | int, word2: str | int) -> float:
        """Return the cosine of two words.

        Raises:
            UnknownWordError: If a word does not have a vector.
        """
        return cosine(*self[[word1, word2]])

    def doesnt_match(self, words: Iterable[str]) -> str:
        """Return the word that is farthest from the mean of these words. Unknown words are left out.

        Raises:
            UnknownWordError: If all words are unknown.
            W2VError: If `words` is empty.
        """
        words = as_list(words)
        known = [word for word in words if not self._is_unknown_word(word)] or words
        mean = self.get_mean_vector(known, post_normalize=True)
        return known[int(np.argmin(unit(self[known]) @ mean))]

    # -- nearest neighbours -------------------------------------------------------------------------

    def most_similar(
        self, positive: Keys = (), negative: Keys = (), topn: int = 10, restrict_vocab: int | None = None
    ) -> Neighbours:
        """Return the `topn` words nearest by cosine to the sum of `positive` minus the sum of `negative`.

        For king - man + woman this is 3CosAdd (Mikolov et al. 2013).

        Args:
            positive, negative: A word, a vector, or a list of words, vectors and (word or vector, weight) pairs. The
                vectors of words are scaled to length 1. The words themselves are not in the result.
            topn: The number of words to return.
            restrict_vocab: Search only this many words, the first of the vocabulary; by default all.

        Returns:
            Pairs (word, cosine), highest cosine first.

        Raises:
            UnknownWordError: If a word does not have a vector.
            W2VError: If no word is given, or if a vector has the wrong shape.
            SettingsError: If `restrict_vocab` is negative or not a whole number.
        """
        weighted = _weighted(positive, 1.0) + _weighted(negative, -1.0)
        keys, weights = [key for key, _ in weighted], [weight for _, weight in weighted]
        mean = self.get_mean_vector(keys, weights, post_normalize=True, ignore_missing=False)
        rows = _search_size(self, restrict_vocab)
        return self._top_words(cosines(mean, self.vectors[:rows], self.norms[:rows]), keys, topn)

    def most_similar_batch(
        self, words: Iterable[str], topn: int = 10, restrict_vocab: int | None = None
    ) -> list[Neighbours]:
        """Return the `topn` words nearest to each of n words, computed in batches; see `most_similar`.

        Raises:
            UnknownWordError: If a word does not have a vector.
        """
        words, searched = as_list(words), _search_size(self, restrict_vocab)
        rows = [self.row_of(word) for word in words]
        left_out = [[] if row is None or row >= searched else [row] for row in rows]
        queries, vectors, norms = self._look_up_vectors(words), self.vectors[:searched], self.norms[:searched]
        return [_neighbours(self, *found) for found in nearest(queries, vectors, norms, topn, left_out)]

    def most_similar_cosmul(
        self, positive: Keys = (), negative: Keys = (), topn: int = 10, restrict_vocab: int | None = None
    ) -> Neighbours:
        """Return the `topn` words with the highest scores by 3CosMul (Levy & Goldberg 2014).

        Each cosine is shifted to 0..1. The score of a word is the product of its cosines with `positive`, divided by
        the product of its cosines with `negative`. Weights have no effect. The other arguments and the results are as
        in `most_similar`.

        Raises:
            UnknownWordError: If a word does not have a vector.
            W2VError: If no word is given, or if a vector has the wrong shape.
            SettingsError: If `restrict_vocab` is negative or not a whole number.
        """
        rows = _search_size(self, restrict_vocab)
        near = _weighted(positive, 1.0)
        keys = [key for key, _ in near + _weighted(negative, 1.0)]
        products = np.ones((2, rows), np.float32)  # of the cosines with `positive` and with `negative`
        for number, query in enumerate(unit(self._vectors_of_keys(keys, norm=False))):
            products[int(number >= len(near))] *= (1 + cosines(query, self.vectors[:rows], self.norms[:rows])) / 2
        return self._top_words(products[0] / (products[1] + np.float32(EPSILON)), keys, topn)

    def _top_words(self, scores: Floats, left_out: Iterable[Key], topn: int) -> Neighbours:
        """Return the words with the highest scores, highest first; equal scores are in vocabulary order."""
        for key in left_out:
            row = self.row_of(key) if is_word(key) else None
            if row is not None and row < len(scores):
                scores[row] = -np.inf
        rows = top_rows(scores, topn)
        return _neighbours(self, rows, scores[rows])

    # -- files ----------------------------------------------------------------------------------

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write a file atomically, in the format of its extension.

        `w2v convert --help` lists the extensions. The native format, .safetensors, also stores the counts, the header
        and the tensors.

        Raises:
            W2VError: If the file cannot be written, or if it exists and `force` is false.
            SettingsError: If the extension is unknown.
        """
        content = VectorFile(Words.of(self._words), self.vectors, self.counts, self.tensors, self.header)
        registry.write(path, content, force)


class HasWordVectors(Protocol):
    """A model that has word vectors."""

    @property
    def wv(self) -> KeyedVectors: ...


def vectors_of(model: KeyedVectors | HasWordVectors) -> KeyedVectors:
    """Return the word vectors of a model, or the argument itself if it is vectors.

    The vectors of `w2v.gensim` and of gensim are converted. The result shares their memory.

    Raises:
        W2VError: If the argument is anything else, such as a path.
    """
    vectors: Any = getattr(model, "wv", model)
    if hasattr(vectors, "to_vector_file"):
        return to_keyed_vectors(vectors.to_vector_file())
    if not hasattr(vectors, "words_in"):
        if hasattr(vectors, "index_to_key"):  # gensim's
            return KeyedVectors(vectors.index_to_key, vectors.vectors, vectors.expandos.get("count"))
        raise W2VError(f"{model!r:.60} is not a model: give one, such as w2v.load('model.bin')")
    return cast(KeyedVectors, vectors)


def load(
    path: PathLike,
    mmap: bool = False,
    errors: Errors = "strict",
    limit: int | None = None,
    progress: Report | None = None,
    encoding: str = UTF_8,
) -> KeyedVectors:
    """Load a vector file of any format in docs/formats.md, recognised by its content.

    Args:
        path: The file or folder.
        mmap: Map a native file into memory, read-only. A file of any size then opens at once, and its pages are read
            from disk when they are used.
        errors: "strict", "replace" or "ignore": how to treat words that are not in `encoding`. With "replace" and
            "ignore", only the first row of a repeated word is kept.
        limit: Read only the first `limit` rows, and no tensors.
        progress: Called in phase "load".
        encoding: The encoding of the words, such as "cp1251".

    Raises:
        W2VError: If the file cannot be read, is damaged or has an unknown format.
        SettingsError: If `errors` or `encoding` is unknown, or if `limit` is less than 1 or not a whole number.
    """
    return to_keyed_vectors(read(path, mmap, errors, limit, progress, encoding), as_stored=mmap)


def read(
    path: PathLike, mmap: bool, errors: Errors, limit: int | None, progress: Report | None, encoding: str = UTF_8
) -> VectorFile:
    """Read the content of a vector file. `load` has the same arguments and errors."""
    if errors not in get_args(Errors):
        raise SettingsError(f"errors is {errors!r}: it must be strict, replace or ignore")
    if limit is not None:
        check_whole(1, limit=limit)
    return registry.read(path, mmap, errors, limit, progress, encoding_name(encoding))


def to_keyed_vectors(content: VectorFile, as_stored: bool = False) -> KeyedVectors:
    """Return the content of a vector file as KeyedVectors: as float32 or, with `as_stored`, in the file's type."""
    vectors: Any = content.vectors if as_stored else np.asarray(content.vectors, np.float32)
    if as_stored and vectors.dtype != np.float32:
        vectors = CompactMatrix(vectors)
    if isinstance(vectors, np.ndarray):
        vectors = memory.read_only(vectors)
    return KeyedVectors(content.words, vectors, content.counts, tensors=content.tensors, header=content.header)


def _weighted(keys: Keys, weight: float) -> list[tuple[Key, float]]:
    """Return pairs of a key and its weight. Keys without a weight of their own get `weight`."""
    if isinstance(keys, str) or not isinstance(keys, Iterable) or (isinstance(keys, np.ndarray) and keys.ndim == 1):
        keys = [keys]
    return [key if isinstance(key, tuple) else (key, weight) for key in keys]


def _search_size(vectors: KeyedVectors, restrict_vocab: int | None) -> int:
    """Return the number of words to search. Raise SettingsError for an impossible `restrict_vocab`."""
    if restrict_vocab is None:
        return len(vectors)
    check_whole(0, restrict_vocab=restrict_vocab)
    return min(restrict_vocab, len(vectors))


def _neighbours(vectors: KeyedVectors, rows: NDArray[np.int64], scores: Floats) -> Neighbours:
    """Return the words in these rows with their scores, without decoding the other words."""
    keys = vectors.index_to_key if vectors.header.key_type == "int" else vectors._words
    return [(keys[row], score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]


def is_word(key: Key) -> TypeGuard[str | int]:
    """Return True if a key of a query is a word or a number, not a vector."""
    return isinstance(key, str | int | np.integer)
