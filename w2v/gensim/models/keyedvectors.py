"""gensim.models.keyedvectors: vectors by key; keys can be added, and can have attributes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from w2v._errors import W2VError
from w2v._evaluation.analogies import best_answers
from w2v._evaluation.word_index import index_words
from w2v._formats.vector_file import VectorFile, as_floats
from w2v._system.files import Errors, PathLike
from w2v._vectors.cosines import EPSILON, MAX_LENGTH, MIN_LENGTH, Floats, cosine, cosines, lengths, unit
from w2v._vectors.neighbours import top_rows
from w2v._vectors.query import Method
from w2v._vectors.unknown_words import UnknownWordError
from w2v.gensim import files, utils
from w2v.gensim.sentences import read_bytes

log = logging.getLogger("gensim.models.keyedvectors")

REAL = np.float32
KEY_ATTRIBUTES, USER_ATTRIBUTES = "vecattr", "gensim.vectors"  # prefixes of tensors in a file
TREE_ATTRIBUTES = {"code", "point"}  # not saved: they follow from the counts
INTEGERS, KEY_TYPES = (int, np.integer), (str, int, np.integer)

Key = str | int
Neighbours = list[tuple[Any, float]] | Floats  # with topn=None, only the scores


class Removed:
    """An attribute that gensim 4 removed. Reading it raises AttributeError, which names the replacement."""

    def __init__(self, instead: str) -> None:
        self.instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        raise AttributeError(f"the attribute {self.name} was removed in gensim 4: use {self.instead}")


class KeyedVectors(utils.SaveLoad):
    """A vector for each key, usually a word, with gensim 4's interface.

    The attributes are the whole state, as in gensim: programs edit them, and set `norms` to None after a change of
    `vectors`. Each method finds its vectors with `get_vector`, which a subclass or a program can replace.

    Attributes:
        vectors: The vectors, (V, D), of the dtype of the constructor, float32 by default.
        vector_size: D.
        index_to_key: The V keys; None for a reserved row.
        key_to_index: The row of each key.
        next_index: The row of the next add_vector, if that row is reserved.
        norms: The lengths of the vectors, (V,); None before they are first needed.
        expandos: The attributes of the keys, as arrays of length V.
        mapfile_path: Not used, as in gensim.
        vectors_lockf: The factor on the changes that training makes to each vector, float32 (1,) or (V,).
    """

    subwords: Any = None  # the definition of the n-grams, in a subclass
    ngrams: Any = None  # the rows of the n-grams, in a subclass
    vectors_lockf: Floats = np.broadcast_to(REAL(1), 1)
    _classes: ClassVar[dict[str, Any]] = {}  # the class for each class name that a file stores

    vocab = Removed("key_to_index, index_to_key, or get_vecattr(word, 'count')")
    index2word, index2entity = Removed("index_to_key"), Removed("index_to_key")
    vectors_norm = Removed("get_normed_vectors()")

    def __init__(
        self, vector_size: int, count: int = 0, dtype: DTypeLike = np.float32, mapfile_path: str | None = None
    ) -> None:
        self.vector_size = vector_size
        self.index_to_key: list[Any] = [None] * count
        self.next_index = 0
        self.key_to_index: dict[Any, int] = {}
        self.vectors: NDArray[Any] = np.zeros((count, vector_size), dtype)
        self.norms: Any = None
        self.expandos: dict[str, NDArray[Any]] = {}
        self.mapfile_path = mapfile_path

    def __str__(self) -> str:
        return f"{type(self).__name__}<vector_size={self.vector_size}, {len(self)} keys>"

    def __len__(self) -> int:
        return len(self.index_to_key)

    def __iter__(self) -> Iterator[Floats]:
        """Iterate over the vectors, not the keys: gensim's class has no __iter__, so Python iterates it by row."""
        return iter(self.vectors)

    # -- keys and vectors -----------------------------------------------------------------------------

    def get_index(self, key: Any, default: int | None = None) -> int:
        """Return the row of a key, or `default` if it is unknown. An int that is not a key is a row.

        Raises:
            KeyError: The key is unknown, and there is no `default`.
        """
        row = self.key_to_index.get(key)
        if row is not None:
            return row
        if isinstance(key, INTEGERS) and 0 <= key < len(self.index_to_key):
            return int(key)
        if default is None:
            raise KeyError(f"Key '{key}' not present")
        return default

    def has_index_for(self, key: Any) -> bool:
        return self.get_index(key, -1) >= 0

    def __contains__(self, key: Any) -> bool:
        return self.has_index_for(key)

    def get_vector(self, key: Any, norm: bool = False) -> Floats:
        """Return the vector of a key, (D,), read-only; with `norm`, scaled to length 1.

        Raises:
            UnknownWordError: The key is unknown. It is a KeyError.
        """
        row = self.get_index(key, -1)
        if row < 0:
            raise UnknownWordError([key], self.key_to_index)
        vector: Floats = self.vectors[row]
        if norm:
            self.fill_norms()
            length = self.norms[row]
            vector = vector / length if MIN_LENGTH < length < MAX_LENGTH else unit(vector)
        vector.setflags(write=False)
        return vector

    def word_vec(self, *args: Any, **options: Any) -> Floats:
        """See get_vector."""
        return self.get_vector(*args, **options)

    def __getitem__(self, key_or_keys: Any) -> Floats:
        """Return the vector of a key, (D,), or the vectors of n keys, (n, D)."""
        if isinstance(key_or_keys, KEY_TYPES):
            return self.get_vector(key_or_keys)
        return np.stack([self.get_vector(key) for key in key_or_keys])

    def get_mean_vector(
        self,
        keys: Sequence[Any],
        weights: Sequence[float] | NDArray[Any] | None = None,
        pre_normalize: bool = True,
        post_normalize: bool = False,
        ignore_missing: bool = True,
    ) -> Floats:
        """Return the weighted sum of n keys and vectors, divided by the sum of the absolute weights, (D,).

        Args:
            weights: The n weights, by default 1.
            pre_normalize: Scale the vectors of keys to length 1 first.
            post_normalize: Scale the mean to length 1.
            ignore_missing: Skip unknown keys. If all are unknown, the mean is zero.

        Raises:
            UnknownWordError: A key is unknown, and `ignore_missing` is false.
            ValueError: There is no key, the numbers of keys and weights differ, or a vector has the wrong shape.
        """
        if not len(keys):
            raise ValueError("cannot compute mean with no input")
        weights = [1.0] * len(keys) if weights is None else weights
        if len(weights) != len(keys):
            raise ValueError(f"{len(keys)} keys, but {len(weights)} weights")
        total, mean = 0.0, np.zeros(self.vectors.shape[1])
        for key, weight in zip(keys, weights, strict=True):
            if isinstance(key, np.ndarray):
                vector = key
                if vector.shape != mean.shape:
                    raise ValueError(f"a vector of shape {vector.shape}: the vectors have {len(mean)} values")
            elif not ignore_missing or key in self:
                vector = self.get_vector(key, norm=True) if pre_normalize else self.get_vector(key)
            else:
                continue
            mean += weight * vector
            total += abs(weight)
        result: Floats = (mean / (total or 1)).astype(self.vectors.dtype)
        return unit(result) if post_normalize else result

    def fill_norms(self, force: bool = False) -> None:
        if self.norms is None or force:
            self.norms = lengths(self.vectors)

    def get_normed_vectors(self) -> Floats:
        return unit(self.vectors)

    def unit_normalize_all(self) -> None:
        """Scale all vectors to length 1."""
        self.vectors = unit(self.vectors)
        self.fill_norms(force=True)

    def init_sims(self, replace: bool = False) -> None:
        if replace:
            self.unit_normalize_all()
        self.fill_norms()

    # -- changes ------------------------------------------------------------------------------------

    def add_vector(self, key: Key, vector: ArrayLike) -> int:
        """Put a vector into the next reserved row, or append it. Return its row."""
        row = self.next_index
        if row >= len(self) or self.index_to_key[row] is not None:
            self.add_vectors([key], [vector])
            self.next_index = len(self)
            return self.key_to_index[key]
        self.vectors[row] = vector
        self.index_to_key[row] = key
        self.key_to_index[key] = row
        self.norms = None
        self.next_index += 1
        return row

    def add_vectors(
        self, keys: Any, weights: Any, extras: Mapping[str, NDArray[Any]] | None = None, replace: bool = False
    ) -> None:
        """Append keys with vectors and the attributes `extras`. Change known keys only with `replace`."""
        if isinstance(keys, KEY_TYPES):
            keys, weights = [keys], np.reshape(weights, (1, -1))
        vectors = self.vectors if len(self.vectors) else np.zeros((0, self.vector_size), self.vectors.dtype)
        weights = as_floats(weights, words=keys, dtype=vectors.dtype)
        if weights.shape != (len(keys), vectors.shape[1]):
            raise ValueError(
                f"weights of shape {weights.shape}: {len(keys)} keys need shape {(len(keys), vectors.shape[1])}"
            )
        extras = extras or {}
        new = np.array([key not in self.key_to_index for key in keys], bool)
        self.allocate_vecattrs(list(extras), [extra.dtype for extra in extras.values()])
        for position in np.flatnonzero(new).tolist():
            self.key_to_index[keys[position]] = len(self.index_to_key)
            self.index_to_key.append(keys[position])
        self.vectors = np.vstack([vectors, weights[new]])
        self.allocate_vecattrs()
        written = new | bool(replace)
        rows = [self.key_to_index[key] for key, is_written in zip(keys, written, strict=True) if is_written]
        self.vectors[rows] = weights[written]
        for name, extra in extras.items():
            self.expandos[name][rows] = extra[written]
        self.norms = None

    def __setitem__(self, keys: Any, weights: Any) -> None:
        self.add_vectors(keys, weights, replace=True)

    def resize_vectors(self, seed: int | None = 0) -> None:
        """Give each key a vector. The new ones have uniform values in ±1 / vector_size."""
        self.vectors = prep_vectors((len(self), self.vector_size), self.vectors, seed, self.vectors.dtype)
        self.allocate_vecattrs()
        self.norms = None

    def vectors_for_all(
        self, keys: Iterable[Key], allow_inference: bool = True, copy_vecattrs: bool = False
    ) -> KeyedVectors:
        """Return the vectors and, with `copy_vecattrs`, the attributes of the known keys. Repeated keys count once."""
        known = [key for key in dict.fromkeys(keys) if key in (self if allow_inference else self.key_to_index)]
        subset = KeyedVectors(self.vectors.shape[1], dtype=self.vectors.dtype)
        counts = np.arange(len(known), 0, -1)  # as in gensim: not real counts, they only keep the order
        if known:
            subset.add_vectors(known, self[known], {"count": counts})
        if copy_vecattrs:
            rows = [self.get_index(key) for key in known]
            subset.expandos |= {name: array[rows] for name, array in self.expandos.items()}
        return subset

    # -- attributes of keys -------------------------------------------------------------------------

    def allocate_vecattrs(self, attrs: Iterable[str] | None = None, types: Iterable[Any] | None = None) -> None:
        """Create arrays for attributes `attrs` of `types`, one value per key. Without arguments, extend all arrays.

        Raises:
            TypeError: An attribute already has another type.
        """
        if attrs is None or types is None:
            attrs, types = list(self.expandos), [array.dtype for array in self.expandos.values()]
        for name, kind in zip(attrs, types, strict=True):
            dtype = np.dtype(object if kind is str else kind)
            existing = self.expandos.get(name, np.zeros(0, dtype))
            if not np.issubdtype(dtype, existing.dtype):
                raise TypeError(
                    f"Can't allocate type {kind} for attribute {name}, conflicts with its existing type "
                    f"{existing.dtype}"
                )
            if len(existing) != len(self) or name not in self.expandos:
                self.expandos[name] = np.zeros(len(self), existing.dtype)
                self.expandos[name][: len(existing)] = existing[: len(self)]

    def set_vecattr(self, key: Key, attr: str, val: Any) -> None:
        self.allocate_vecattrs([attr], [type(val)])
        self.expandos[attr][self.get_index(key)] = val

    def get_vecattr(self, key: Key, attr: str) -> Any:
        return self.expandos[attr][self.get_index(key)]

    def sort_by_descending_frequency(self) -> None:
        """Sort the keys by the attribute "count", highest first. Keys of equal count are reversed, as in gensim."""
        if not len(self):
            return
        counts = self.expandos["count"].astype(np.int64)
        order = np.lexsort((-np.arange(len(counts)), -counts))
        self._set_keys([self.index_to_key[row] for row in order.tolist()])
        self.allocate_vecattrs()
        self.expandos = {name: array[order] for name, array in self.expandos.items()}
        if len(self.vectors):
            self.vectors = self.vectors[order]
        self.norms = None

    def _set_keys(self, keys: list[Any]) -> None:
        self.index_to_key, self.key_to_index = keys, {key: row for row, key in enumerate(keys)}

    def _complete_attributes(self) -> dict[str, NDArray[Any]]:
        """Return the attributes with one value per key: a program may have replaced the keys but not the attributes."""
        return {name: array for name, array in self.expandos.items() if len(array) == len(self)}

    # -- comparing ----------------------------------------------------------------------------------

    def similarity(self, w1: Key, w2: Key) -> np.float32:
        return REAL(cosine(self[w1], self[w2]))

    def distance(self, w1: Key, w2: Key) -> np.float32:
        return REAL(1) - self.similarity(w1, w2)

    def n_similarity(self, ws1: Sequence[Key], ws2: Sequence[Key]) -> np.float32:
        if not (len(ws1) and len(ws2)):
            raise ZeroDivisionError("At least one of the passed list is empty.")
        return REAL(cosine(*(self.get_mean_vector(words, pre_normalize=False) for words in (ws1, ws2))))

    def distances(self, word_or_vector: Any, other_words: Iterable[Key] = ()) -> Floats:
        """Return 1 minus the cosine of a key or vector with each of n other keys, by default all: float32 (n,)."""
        vector = self.get_vector(word_or_vector) if isinstance(word_or_vector, KEY_TYPES) else word_or_vector
        rows = [self.get_index(key) for key in other_words]
        return 1 - self.cosine_similarities(vector, self.vectors[rows] if rows else self.vectors)

    @staticmethod
    def cosine_similarities(vector_1: Floats, vectors_all: Floats) -> Floats:
        """Return the cosines, (n,), of one vector (D,) with n others (n, D)."""
        vectors = np.asarray(vectors_all)
        return cosines(unit(np.asarray(vector_1)), vectors, lengths(vectors))

    def closer_than(self, key1: Key, key2: Key) -> list[Any]:
        """Return the keys nearer to `key1` than `key2` is, in the order of the vectors."""
        distances = self.distances(key1)
        closer = distances < distances[self.get_index(key2)]
        closer[self.get_index(key1)] = False
        return [self.index_to_key[row] for row in np.flatnonzero(closer).tolist()]

    def words_closer_than(self, word1: Key, word2: Key) -> list[Any]:
        return self.closer_than(word1, word2)

    def rank(self, key1: Key, key2: Key) -> int:
        """Return the position of `key2` among the neighbours of `key1`; the nearest is 1."""
        return len(self.closer_than(key1, key2)) + 1

    def most_similar_to_given(self, key1: Key, keys_list: Sequence[Key]) -> Any:
        if not len(keys_list):
            raise ValueError("the list of keys is empty")
        return keys_list[int(np.argmax([self.similarity(key1, key) for key in keys_list]))]

    def relative_cosine_similarity(self, wa: Key, wb: Key, topn: int = 10) -> float:
        """Return the cosine of two keys, divided by the sum of the cosines of the `topn` keys nearest to `wa`.

        Keys with a value above 1 / topn are more likely synonyms (Leeuwenberg et al. 2016).
        """
        return float(self.similarity(wa, wb) / sum(cosine for _, cosine in self.similar_by_word(wa, topn)))

    def rank_by_centrality(self, words: Sequence[Key], use_norm: bool = True) -> list[tuple[Any, Key]]:
        """Return (dot product with the mean vector, word) of the known words, the highest first."""
        known = [word for word in words if word in self]
        if len(known) < len(words):
            log.warning("not in the vocabulary: %s", set(words) - set(known))
        if not known:
            raise ValueError("cannot select a word from an empty list")
        vectors = np.stack([self.get_vector(word, norm=use_norm) for word in known])
        mean = self.get_mean_vector(list(vectors), post_normalize=True)
        return sorted(zip(vectors @ mean, known, strict=True), reverse=True)

    def doesnt_match(self, words: Sequence[Key]) -> Any:
        return self.rank_by_centrality(words)[-1][1]

    def similarity_unseen_docs(self, *args: Any, **options: Any) -> NoReturn:
        """Raise NotImplementedError, as in gensim."""
        raise NotImplementedError("use most_similar(positive=[...]), or Doc2Vec.similarity_unseen_docs")

    def wmdistance(self, document1: Sequence[str], document2: Sequence[str], norm: bool = True) -> float:
        """Return the word mover's distance of two lists of words (Kusner et al. 2015); inf if one has no known word."""
        try:
            from ot import emd2
            from scipy.spatial.distance import cdist  # slow to import
        except ImportError:
            raise ImportError("wmdistance needs POT: pip install POT") from None
        counts = [Counter(word for word in document if word in self) for document in (document1, document2)]
        if not all(counts):
            log.warning("at least one of the documents has no known word")
            return float("inf")
        if counts[0] == counts[1]:
            return 0.0
        first, second = ([self.get_vector(word, norm=norm) for word in words] for words in counts)
        distances = cdist(first, second)
        shares = [np.array([*words.values()]) / words.total() for words in counts]
        return float(emd2(*shares, distances))

    # -- nearest neighbours -------------------------------------------------------------------------

    def most_similar(
        self,
        positive: Any = None,
        negative: Any = None,
        topn: int | None = 10,
        clip_start: int = 0,
        clip_end: int | None = None,
        restrict_vocab: int | None = None,
        indexer: Any = None,
    ) -> Neighbours:
        """Return the nearest keys and their cosines, as in w2v; if `topn` is None, all cosines, (V,).

        Search the rows from `clip_start` to `clip_end`, or the first `restrict_vocab`.
        """
        if topn is not None and topn < 1:
            return []
        if restrict_vocab:
            clip_start, clip_end = 0, restrict_vocab
        weighted = _weighted(positive, 1.0) + _weighted(negative, -1.0)
        keys = [key for key, _ in weighted]
        mean = self.get_mean_vector(keys, [weight for _, weight in weighted], True, True, ignore_missing=False)
        if indexer is not None and topn is not None:
            neighbours: Neighbours = indexer.most_similar(mean, topn)
            return neighbours
        rows = slice(clip_start, clip_end or len(self))
        self.fill_norms()
        return self._top_keys(cosines(mean, self.vectors[rows], self.norms[rows]), keys, topn, clip_start)

    def most_similar_cosmul(
        self, positive: Any = None, negative: Any = None, topn: int | None = 10, restrict_vocab: int | None = None
    ) -> Neighbours:
        """Return the keys with the highest scores by 3CosMul (Levy & Goldberg 2014); if `topn` is None, all scores.

        As in gensim, vectors among `positive` and `negative` are not scaled to length 1.
        """
        if topn is not None and topn < 1:
            return []
        sides = _as_list(positive), _as_list(negative)
        if not sides[0]:
            raise ValueError("cannot compute similarity with no input")
        rows = slice(restrict_vocab or len(self))
        self.fill_norms()
        vectors, norms = self.vectors[rows], self.norms[rows]
        products = [np.ones(len(vectors), REAL), np.ones(len(vectors), REAL)]
        for product, side in zip(products, sides, strict=True):
            for key in side:
                query = self.get_vector(key, norm=True) if isinstance(key, KEY_TYPES) else key
                product *= (1 + cosines(query, vectors, norms)) / 2
        scores = products[0] / (products[1] + REAL(EPSILON))
        return self._top_keys(scores, [*sides[0], *sides[1]], topn, 0)

    def _top_keys(self, scores: Floats, left_out: Iterable[Any], topn: int | None, start: int) -> Neighbours:
        """Return the keys with the highest scores, highest first, or all scores if `topn` is None.

        Args:
            scores: The scores of the rows from `start` on.
            left_out: Keys that are left out of the result, and vectors, which have no effect.
        """
        if topn is None:
            return scores
        for key in left_out:
            row = self.get_index(key, -1) - start if isinstance(key, KEY_TYPES) else -1
            if 0 <= row < len(scores):
                scores[row] = -np.inf
        best = top_rows(scores, int(topn))
        keys = [self.index_to_key[row + start] for row in best.tolist()]
        return list(zip(keys, scores[best].tolist(), strict=True))

    def similar_by_key(self, key: Key, topn: int | None = 10, restrict_vocab: int | None = None) -> Neighbours:
        return self.most_similar([key], topn=topn, restrict_vocab=restrict_vocab)

    def similar_by_word(self, word: Key, topn: int | None = 10, restrict_vocab: int | None = None) -> Neighbours:
        return self.similar_by_key(word, topn, restrict_vocab)

    def similar_by_vector(self, vector: Floats, topn: int | None = 10, restrict_vocab: int | None = None) -> Neighbours:
        return self.most_similar([vector], topn=topn, restrict_vocab=restrict_vocab)

    # -- evaluation with gensim's file rules and result formats -----------------------------------------

    def evaluate_word_analogies(
        self,
        analogies: PathLike,
        restrict_vocab: int = 300_000,
        case_insensitive: bool = True,
        dummy4unknown: bool = False,
        similarity_function: str = "most_similar",
    ) -> tuple[float, list[dict[str, Any]]]:
        """Return the accuracy, 0 to 1, and the correct and incorrect questions by section.

        The last section, "Total accuracy", has the questions of all sections.

        Raises:
            ValueError: A question comes before the first section header.
        """
        fold = str.upper if case_insensitive else str
        keys = (fold(str(key)) for key in self.index_to_key[:restrict_vocab])
        row_of, first_rows, next_same_word = index_words(keys)
        sections: list[dict[str, Any]] = []
        questions: list[tuple[dict[str, Any], tuple[str, ...]]] = []
        for number, line in enumerate(read_bytes(analogies).decode().splitlines()):
            words = tuple(map(fold, line.split()))
            if line.startswith(": "):
                sections.append({"section": line.removeprefix(": ").strip(), "correct": [], "incorrect": []})
            elif not sections:
                raise ValueError(f"Missing section header before line #{number} in {analogies}")
            elif len(words) == 4 and (dummy4unknown or all(word in row_of for word in words)):
                questions.append((sections[-1], words))
        rows = np.array([[row_of.get(word, -1) for word in words] for _, words in questions], np.int32)
        rows = rows.reshape(-1, 4)  # without questions, the array has no columns yet
        known = np.all(rows >= 0, axis=1)
        correct = np.zeros(len(rows), bool)
        method: Method = "mul" if similarity_function == "most_similar_cosmul" else "add"
        best = best_answers(self.vectors, rows[known, :3], next_same_word, method)
        correct[known] = first_rows[best] == rows[known, 3]
        for (section, words), is_correct in zip(questions, correct.tolist(), strict=True):
            section["correct" if is_correct else "incorrect"].append(words)
        total = {name: [each for part in sections for each in part[name]] for name in ("correct", "incorrect")}
        sections.append({"section": "Total accuracy", **total})
        for section in sections:
            self.log_accuracy(section)
        return float(correct.mean()) if len(rows) else 0.0, sections

    @staticmethod
    def log_accuracy(section: Mapping[str, Any]) -> None:
        """Log the accuracy of a section, unless the section is empty."""
        correct = len(section["correct"])
        if total := correct + len(section["incorrect"]):
            log.info("%s: %.1f%% (%d/%d)", section["section"], 100 * correct / total, correct, total)

    def evaluate_word_pairs(
        self,
        pairs: PathLike,
        delimiter: str = "\t",
        encoding: str = "utf8",
        restrict_vocab: int = 300_000,
        case_insensitive: bool = True,
        dummy4unknown: bool = False,
    ) -> tuple[Any, Any, float]:
        """Return the correlations of the cosines with the scores of a file of word pairs.

        Returns:
            SciPy's results for Pearson's and Spearman's correlation, and the percentage of pairs with an unknown word.

        Raises:
            ValueError: The file has no pair to score.
        """
        from scipy import stats  # slow to import

        fold = str.upper if case_insensitive else str
        row_of = index_words(fold(str(key)) for key in self.index_to_key[:restrict_vocab])[0]
        scores, cosines = [], []
        unknown = 0
        for line in read_bytes(pairs).decode(encoding).splitlines():
            try:
                first, second, rating = map(fold, line.split(delimiter))
                score = float(rating)
            except ValueError:
                continue
            if line.startswith("#"):
                continue
            known = first in row_of and second in row_of
            unknown += not known
            if known or dummy4unknown:
                scores.append(score)
                cosines.append(cosine(*self.vectors[[row_of[first], row_of[second]]]) if known else 0.0)
        if not scores:
            raise ValueError(f"No valid similarity judgements found in {pairs}: invalid format, or all words unknown")
        total = len(scores) if dummy4unknown else len(scores) + unknown
        oov = 100 * unknown / total
        result = stats.pearsonr(scores, cosines), stats.spearmanr(scores, cosines), oov
        self.log_evaluate_word_pairs(*result, pairs)
        return result

    @staticmethod
    def log_evaluate_word_pairs(pearson: Any, spearman: Any, oov: float, pairs: object) -> None:
        """Log the result of evaluate_word_pairs; `oov` is the percentage of pairs with an unknown word."""
        log.info("%s: Pearson's correlation %.4f, Spearman's %.4f", pairs, pearson[0], spearman[0])
        log.info("%s: %.1f%% of the pairs have an unknown word", pairs, oov)

    # -- files --------------------------------------------------------------------------------------

    def to_vector_file(self) -> VectorFile:
        """Return the content of a native file: keys, vectors, counts, and what `files.pack` can store.

        Sparse matrices and other objects with a vector per row become arrays.
        """
        words, tensors = files.keys_to_words(self.index_to_key)
        complete = self._complete_attributes()
        for name in self.expandos.keys() - complete.keys():
            files.warn_not_saved(f"the attribute {name}: {len(self.expandos[name])} values for {len(self)} keys")
        saved = {name: complete[name] for name in complete.keys() - {"count", *TREE_ATTRIBUTES}}
        tensors |= files.pack(KEY_ATTRIBUTES, saved)
        tensors |= files.pack(USER_ATTRIBUTES, files.user_attributes(self, vars(KeyedVectors(1))))
        vectors = files.as_matrix(self.vectors, words)
        counts = complete.get("count")
        return VectorFile(words, vectors, None if counts is None else counts.astype(np.int64), tensors)

    def save(self, fname_or_handle: PathLike | BinaryIO, **_: Any) -> None:
        """Write w2v's native format, whatever the name of the file. gensim's arguments for pickles have no effect.

        gensim cannot open the file: for gensim, use save_word2vec_format.
        """
        self.add_lifecycle_event("saving", fname_or_handle=str(fname_or_handle))
        files.write(fname_or_handle, self.to_vector_file())

    @classmethod
    def load(cls, fname: PathLike, mmap: str | None = None) -> Any:
        """Read a file that `save` or gensim's own `save` wrote, or any other file that w2v.load reads.

        Returns:
            An object of the class that was saved: a Word2Vec, for instance, if the file holds a Word2Vec.
        """
        content = files.read(fname, mmap is not None)
        header = content.header
        kind = header.gensim.kind if header.gensim else ""
        if not header.gensim and header.subwords and not header.ngram_offset:
            kind = "FastTextKeyedVectors"  # our files of vectors do not store the name of a class
        saved_class = cls._classes.get(kind, cls)
        return (cls if issubclass(cls, saved_class) else saved_class)._from_file(fname, content)

    @classmethod
    def _from_file(cls, path: PathLike, content: VectorFile) -> Self:
        vectors = cls.__new__(cls)
        KeyedVectors.__init__(vectors, content.vectors.shape[1])  # the constructor of a subclass may require arguments
        vars(vectors).update(files.unpack(path, USER_ATTRIBUTES, content.tensors))
        dtype = np.float16 if content.vectors.dtype == np.float16 else np.float32
        vectors.vectors = np.asarray(content.vectors, dtype)
        vectors._set_keys(files.words_to_keys(path, content))
        vectors.next_index = len(vectors)
        for name, value in files.unpack(path, KEY_ATTRIBUTES, content.tensors).items():
            objects = value if isinstance(value, list) else ()
            vectors.expandos[name] = value if isinstance(value, np.ndarray) else np.fromiter(objects, object)
        if content.counts is not None:
            vectors.expandos["count"] = content.counts
        if any(array.shape[:1] != (len(vectors),) for array in vectors.expandos.values()):
            raise W2VError(f"{path}: damaged: its attributes do not fit its keys")
        return vectors

    def save_word2vec_format(
        self,
        fname: PathLike,
        fvocab: PathLike | None = None,
        binary: bool = False,
        total_vec: int | None = None,
        write_header: bool = True,
        prefix: str = "",
        append: bool = False,
        sort_attr: str = "count",
    ) -> None:
        """Write word2vec's text or binary format, sorted by the attribute `sort_attr`.

        Write the values of this attribute to `fvocab`, if given.
        """
        values = self._complete_attributes().get(sort_attr)
        rows = np.arange(len(self)) if values is None else np.argsort(-values, kind="stable")
        names = [self.index_to_key[row] for row in rows.tolist()]
        counts = None
        if fvocab is not None:
            if values is None:
                raise ValueError(f"Cannot store vocabulary with '{sort_attr}' because that attribute does not exist")
            counts = fvocab, values[rows]
        vectors = np.stack([self.get_vector(name) for name in names]) if names else self.vectors
        total = len(self) if total_vec is None else total_vec  # it can differ, for a file written in parts
        head = b"%d %d\n" % (total, vectors.shape[1]) if write_header else b""
        files.write_word2vec(fname, [f"{prefix}{name}" for name in names], vectors, binary, head, append, counts)

    @classmethod
    def load_word2vec_format(
        cls,
        fname: PathLike,
        fvocab: PathLike | None = None,
        binary: bool = False,
        encoding: str = "utf8",
        unicode_errors: Errors = "strict",
        limit: int | None = None,
        datatype: DTypeLike = REAL,
        no_header: bool = False,
    ) -> Self:
        """Read word2vec's text or binary format. The reader recognises it, whatever `binary` and `no_header` say.

        If a key occurs twice, its first vector counts.

        Args:
            fvocab: A file with the count of each key. Without it, the counts only keep the order of the keys.
            limit: The number of vectors to read; None for all.

        Raises:
            FileNotFoundError: The file is missing.
            EOFError: The file is truncated.
            UnicodeDecodeError: A word is not in this encoding.
            ValueError: The file has other damage.
        """
        log.info("loading projection weights from %s", fname)
        vectors = cls._from_file(fname, files.read_word2vec(fname, encoding, unicode_errors, limit or None))
        vectors.vectors = vectors.vectors.astype(datatype, copy=False)
        counts = np.arange(len(vectors), 0, -1)  # the counts are unknown: these keep the order, most frequent first
        if fvocab is not None:
            lines = read_bytes(fvocab).decode("utf-8", unicode_errors).splitlines()
            known = {word: int(count) for word, count in (line.rsplit(maxsplit=1) for line in lines)}
            counts = np.array([known.get(word, 0) for word in vectors.index_to_key])
        vectors.expandos["count"] = counts
        vectors.add_lifecycle_event("load_word2vec_format", msg=f"loaded {vectors.vectors.shape} matrix from {fname}")
        return vectors

    def intersect_word2vec_format(
        self,
        fname: PathLike,
        lockf: float = 0.0,
        binary: bool = False,
        encoding: str = "utf8",
        unicode_errors: Errors = "strict",
    ) -> None:
        """Replace the vectors of the keys that occur in a word2vec file, and set their vectors_lockf to `lockf`."""
        other = self.load_word2vec_format(fname, None, binary, encoding, unicode_errors)
        if other.vector_size != self.vector_size:
            raise ValueError(
                f"incompatible vector size {other.vector_size} in file {fname}: these vectors have "
                f"{self.vector_size} values"
            )
        shared = [key for key in other.index_to_key if key in self.key_to_index]
        rows = [self.key_to_index[key] for key in shared]
        self.vectors[rows] = other.vectors[[other.key_to_index[key] for key in shared]]
        self.norms = None
        if len(self.vectors_lockf) != len(self):
            self.vectors_lockf = np.full(len(self), self.vectors_lockf[0], REAL)
        self.vectors_lockf[rows] = lockf


def _as_list(keys: Any) -> Any:
    """Return keys as a list: one key or vector becomes a list of one, None an empty list."""
    if keys is None:
        return []
    if isinstance(keys, KEY_TYPES) or (isinstance(keys, np.ndarray) and keys.ndim == 1):
        return [keys]
    return list(keys)


def _weighted(keys: Any, weight: float) -> list[tuple[Any, float]]:
    """Return pairs of a key or vector and its weight. Keys without a weight of their own get `weight`."""
    pairs: list[tuple[Any, float]] = []
    for key in _as_list(keys):
        if isinstance(key, (*KEY_TYPES, np.ndarray)):
            pairs.append((key, weight))
        elif len(key) == 2:
            pairs.append((key[0], key[1]))
        else:
            pairs.append((np.asarray(key, REAL), weight))
    return pairs


def pseudorandom_weak_vector(size: int, seed_string: str | None = None, hashfxn: Any = hash) -> Floats:
    """Return a vector with uniform values in ±0.5 / size, determined by `seed_string` and `hashfxn`."""
    seed = hashfxn(seed_string) & 0xFFFFFFFF if seed_string else None
    return ((np.random.default_rng(seed).random(size) - 0.5) / size).astype(REAL)


def prep_vectors(
    target_shape: tuple[int, int], prior_vectors: Floats | None = None, seed: int | None = 0, dtype: DTypeLike = REAL
) -> Floats:
    """Return the prior vectors, extended to `target_shape` by vectors with uniform values in ±1 / D."""
    prior = np.zeros((0, target_shape[1]), dtype) if prior_vectors is None else prior_vectors
    if prior.shape == target_shape:
        return prior
    uniform = np.random.default_rng(seed).random(target_shape, np.float32)
    vectors = ((uniform * 2 - 1) / target_shape[1]).astype(dtype)
    vectors[: len(prior)] = prior
    return vectors


load_word2vec_format = KeyedVectors.load_word2vec_format
Word2VecKeyedVectors = Doc2VecKeyedVectors = EuclideanKeyedVectors = KeyedVectors
