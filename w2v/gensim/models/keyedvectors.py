"""gensim.models.keyedvectors: vectors by key, which can grow and carry attributes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from w2v.errors import W2VError
from w2v.formats import native, table, word2vec
from w2v.formats.vector_file import VectorFile
from w2v.gensim import evaluation
from w2v.gensim.exceptions import gensims_exceptions
from w2v.gensim.sentences import read_bytes
from w2v.system.files import Errors, PathLike, atomic_write
from w2v.text.words import Words
from w2v.vectors import keyed
from w2v.vectors.cosines import Vector, lengths, unit

log = logging.getLogger("w2v")

REAL = np.float32
ATTRIBUTE = "vecattr."  # begins the names of attributes in a file
PATHS = {"code", "point"}  # attributes that follow from the counts

Key = str | int
Neighbours = keyed.Neighbours | Vector  # all scores where topn is None


class Removed:
    """An attribute of gensim 3 that gensim 4 has no more: reading it raises AttributeError, which names the new one."""

    def __init__(self, instead: str) -> None:
        self.instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        raise AttributeError(f"the attribute {self.name} was removed in gensim 4: use {self.instead}")


class KeyedVectors(keyed.KeyedVectors):
    """Keys, most often words, with a vector each, in the manner of gensim 4.

    Attributes:
        vectors: (V, D), of the type given, float32 by default.
        index_to_key: V keys, None where a row is reserved. key_to_index: the row of each key.
        norms: (V,), the lengths of the vectors, or None until they are needed; set it to None after a change.
        expandos: arrays of length V, attributes of the keys.
        vectors_lockf: float32 (1,) or (V,), the share of each change in training that a vector takes.
    """

    norms: Vector | None  # type: ignore[assignment]

    vocab = Removed("key_to_index, index_to_key, or get_vecattr(word, 'count')")
    index2word, index2entity = Removed("index_to_key"), Removed("index_to_key")
    vectors_norm = Removed("get_normed_vectors()")

    def __init__(
        self, vector_size: int, count: int = 0, dtype: DTypeLike = np.float32, mapfile_path: str | None = None
    ) -> None:
        self.vectors = np.zeros((count, vector_size), dtype)
        self.index_to_key: list[Any] = [None] * count
        self.key_to_index: dict[Any, int] = {}
        self.next_index = 0  # where add_vector puts the next vector, if it is reserved
        self.norms = None
        self.expandos: dict[str, NDArray[Any]] = {}
        self.vectors_lockf: Vector = np.ones(1, REAL)
        self.mapfile_path = mapfile_path
        self.metadata, self.tensors = {}, {}

    @property
    def _words(self) -> list[Any]:
        return self.index_to_key

    @property
    def counts(self) -> NDArray[np.int64] | None:
        found = self.expandos.get("count")
        return None if found is None else found.astype(np.int64)

    def __str__(self) -> str:
        return f"{type(self).__name__}<vector_size={self.vector_size}, {len(self)} keys>"

    __repr__ = object.__repr__

    # -- keys, vectors and attributes -----------------------------------------------------------------

    def __iter__(self) -> Iterator[Vector]:
        """The vectors: gensim's objects are iterated by index."""
        return iter(self.vectors)

    def get_index(self, key: Any, default: int | None = None) -> int:
        """The row of a key or row; `default`, or KeyError, if there is none."""
        if key in self:
            return self._rows([key])[0]
        if default is None:
            raise KeyError(f"Key '{key}' not present")
        return default

    def has_index_for(self, key: Any) -> bool:
        return key in self

    def get_vector(self, key: Key, norm: bool = False) -> Vector:
        vector = super().get_vector(key, norm)
        vector.setflags(write=False)
        return vector

    word_vec = get_vector

    def get_mean_vector(
        self,
        keys: Sequence[Any],
        weights: Sequence[float] | NDArray[Any] | None = None,
        pre_normalize: bool = True,
        post_normalize: bool = False,
        ignore_missing: bool = True,
    ) -> Vector:
        if not len(keys):
            raise ValueError("cannot compute mean with no input")
        if ignore_missing and not any(isinstance(key, np.ndarray) or key in self for key in keys):
            return np.zeros(self.vector_size, self.vectors.dtype)
        return super().get_mean_vector(keys, weights, pre_normalize, post_normalize, ignore_missing)

    def add_vector(self, key: Key, vector: ArrayLike) -> int:
        """Put a vector into the next reserved row, or append it; returns its row."""
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
        """Append keys with vectors and the attributes `extras`; known keys are left alone unless `replace`."""
        if isinstance(keys, str | int | np.integer):
            keys, weights = [keys], np.reshape(weights, (1, -1))
        weights = np.asarray(weights)
        if weights.shape != (len(keys), self.vector_size):
            raise ValueError(
                f"weights of shape {weights.shape}: {len(keys)} keys need shape {(len(keys), self.vector_size)}"
            )
        extras = extras or {}
        known = np.array([key in self.key_to_index for key in keys], bool)
        self.allocate_vecattrs(list(extras), [extra.dtype for extra in extras.values()])
        for place in np.flatnonzero(~known).tolist():
            self.key_to_index[keys[place]] = len(self.index_to_key)
            self.index_to_key.append(keys[place])
        self.vectors = np.vstack([self.vectors, weights[~known].astype(self.vectors.dtype)])
        self.allocate_vecattrs()
        rows = [self.key_to_index[key] for key in keys]
        chosen = np.ones(len(keys), bool) if replace else ~known
        for place in np.flatnonzero(chosen).tolist():
            row = rows[place]
            self.vectors[row] = weights[place]
            for name, extra in extras.items():
                self.expandos[name][row] = extra[place]
        self.norms = None

    def __setitem__(self, keys: Any, weights: Any) -> None:
        self.add_vectors(keys, weights, replace=True)

    def allocate_vecattrs(self, attrs: Iterable[str] | None = None, types: Iterable[Any] | None = None) -> None:
        """Make arrays for attributes of these types, or lengthen those there are, to one value for each key."""
        if attrs is None or types is None:
            attrs, types = list(self.expandos), [array.dtype for array in self.expandos.values()]
        for name, kind in zip(attrs, types, strict=True):
            dtype = np.dtype(object if kind is str else kind)
            known = self.expandos.get(name, np.zeros(0, dtype))
            if not np.issubdtype(dtype, known.dtype):
                raise TypeError(
                    f"Can't allocate type {kind} for attribute {name}, conflicts with its existing type {known.dtype}"
                )
            if len(known) != len(self) or name not in self.expandos:
                self.expandos[name] = np.zeros(len(self), known.dtype)
                self.expandos[name][: len(known)] = known[: len(self)]

    def set_vecattr(self, key: Key, attr: str, val: Any) -> None:
        self.allocate_vecattrs([attr], [type(val)])
        self.expandos[attr][self.get_index(key)] = val

    def get_vecattr(self, key: Key, attr: str) -> Any:
        return self.expandos[attr][self.get_index(key)]

    def resize_vectors(self, seed: int = 0) -> None:
        """Give each key a vector, the new ones drawn evenly from ±1 / vector_size."""
        self.vectors = prep_vectors((len(self), self.vector_size), self.vectors, seed, self.vectors.dtype)
        self.allocate_vecattrs()
        self.norms = None

    def sort_by_descending_frequency(self) -> None:
        """Sort by the attribute "count"; equal counts stay in their order reversed, as gensim has them."""
        if not len(self):
            return
        counts = self.expandos["count"].astype(np.int64)
        order = np.lexsort((-np.arange(len(counts)), -counts))
        self.index_to_key = [self.index_to_key[row] for row in order.tolist()]
        self.key_to_index = {key: row for row, key in enumerate(self.index_to_key)}
        self.allocate_vecattrs()
        self.expandos = {name: array[order] for name, array in self.expandos.items()}
        if len(self.vectors):
            self.vectors = self.vectors[order]
        self.norms = None

    def vectors_for_all(
        self, keys: Iterable[Key], allow_inference: bool = True, copy_vecattrs: bool = False
    ) -> KeyedVectors:
        """The known ones among the keys, each once, with their vectors and, if wanted, attributes."""
        known = [key for key in dict.fromkeys(keys) if key in (self if allow_inference else self.key_to_index)]
        rows = self._rows(known)
        made = KeyedVectors(self.vector_size, dtype=self.vectors.dtype)
        made.add_vectors(known, self.vectors[rows], {"count": np.arange(len(known), 0, -1)})
        if copy_vecattrs:
            made.expandos |= {name: array[rows] for name, array in self.expandos.items()}
        return made

    # -- lengths ------------------------------------------------------------------------------------

    def fill_norms(self, force: bool = False) -> None:
        if self.norms is None or force:
            self.norms = lengths(self.vectors)

    def get_normed_vectors(self) -> Vector:
        return unit(self.vectors)

    def unit_normalize_all(self) -> None:
        """Scale all vectors to length 1."""
        self.vectors = unit(self.vectors)
        self.norms = None

    def init_sims(self, replace: bool = False) -> None:
        if replace:
            self.unit_normalize_all()
        self.fill_norms()

    # -- comparing ----------------------------------------------------------------------------------

    def similarity(self, w1: Key, w2: Key) -> np.float32:
        return REAL(super().similarity(w1, w2))

    def distance(self, w1: Key, w2: Key) -> np.float32:
        return REAL(1) - self.similarity(w1, w2)

    def n_similarity(self, ws1: Sequence[Key], ws2: Sequence[Key]) -> np.float32:
        if not (len(ws1) and len(ws2)):
            raise ZeroDivisionError("At least one of the passed list is empty.")
        return REAL(super().n_similarity(ws1, ws2))

    def distances(self, word_or_vector: keyed.Key, other_words: Iterable[Key] = ()) -> Vector:
        return super().distances(word_or_vector, other_words)

    def closer_than(self, key1: Key, key2: Key) -> list[Any]:
        return super().closer_than(key1, key2)

    def words_closer_than(self, word1: Key, word2: Key) -> list[Any]:
        return self.closer_than(word1, word2)

    def rank(self, key1: Key, key2: Key) -> int:
        return super().rank(key1, key2)

    def most_similar_to_given(self, key1: Key, keys_list: Sequence[Key]) -> Any:
        if not len(keys_list):
            raise ValueError("the list of keys is empty")
        return super().most_similar_to_given(key1, keys_list)

    def relative_cosine_similarity(self, wa: Key, wb: Key, topn: int = 10) -> float:
        return float(super().relative_cosine_similarity(wa, wb, topn))

    @staticmethod
    def cosine_similarities(vector_1: Vector, vectors_all: Vector) -> Vector:
        """The cosines of one vector, (D,), with n others, (n, D): (n,)."""
        return unit(np.asarray(vectors_all)) @ unit(np.asarray(vector_1))

    def rank_by_centrality(self, words: Sequence[Key], use_norm: bool = True) -> list[tuple[Any, Key]]:
        """(product with the mean, word) of the known words, highest first."""
        known = [word for word in words if word in self]
        if len(known) < len(words):
            log.warning("not in the vocabulary: %s", set(words) - set(known))
        if not known:
            raise ValueError("cannot select a word from an empty list")
        vectors = self[known]
        vectors = unit(vectors) if use_norm else vectors
        mean = self.get_mean_vector(list(vectors), post_normalize=True)
        return sorted(zip(vectors @ mean, known, strict=True), reverse=True)

    def doesnt_match(self, words: Sequence[Key]) -> Any:
        return self.rank_by_centrality(words)[-1][1]

    def wmdistance(self, document1: Sequence[str], document2: Sequence[str], norm: bool = True) -> float:
        """The word mover's distance of two lists of words (Kusner et al. 2015); inf without known words."""
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
        first, second = (unit(self[list(words)]) if norm else self[list(words)] for words in counts)
        distances = cdist(first, second)
        shares = [np.array([*words.values()]) / words.total() for words in counts]
        return float(emd2(*shares, distances))

    # -- the nearest --------------------------------------------------------------------------------

    def _cosines(self, queries: Vector, rows: int) -> Vector:
        self.fill_norms()
        return super()._cosines(queries, rows)

    def _direction(self, key: keyed.Key) -> Vector:
        """A vector as it is: gensim scales words alone."""
        return self._vector(key, norm=True)

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
        """The nearest keys, as in w2v; all cosines, (V,), where `topn` is None.

        Rows from `clip_start` to `clip_end` are searched, or the first `restrict_vocab`.
        """
        if topn is not None and topn < 1:
            return []
        if restrict_vocab:
            clip_start, clip_end = 0, restrict_vocab
        mean, given = self._query(_listed(positive), _listed(negative))
        if indexer is not None and topn is not None:
            found: Neighbours = indexer.most_similar(mean, topn)
            return found
        scores = self._cosines(mean, min(clip_end or len(self), len(self)))
        if topn is None:
            return scores[clip_start:]
        scores[:clip_start] = -np.inf
        return self._best(scores, given, int(topn))

    def most_similar_cosmul(
        self, positive: Any = None, negative: Any = None, topn: int | None = 10, restrict_vocab: int | None = None
    ) -> Neighbours:
        if topn is not None and topn < 1:
            return []
        if not len(_listed(positive)):
            raise ValueError("cannot compute similarity with no input")
        scores, given = self._cosmul_scores(
            _listed(positive), _listed(negative), min(restrict_vocab or len(self), len(self))
        )
        return scores if topn is None else self._best(scores, given, int(topn))

    def similar_by_key(self, key: Key, topn: int | None = 10, restrict_vocab: int | None = None) -> Neighbours:
        return self.most_similar([key], topn=topn, restrict_vocab=restrict_vocab)

    def similar_by_word(self, word: Key, topn: int | None = 10, restrict_vocab: int | None = None) -> Neighbours:
        return self.similar_by_key(word, topn, restrict_vocab)

    def similar_by_vector(self, vector: Vector, topn: int | None = 10, restrict_vocab: int | None = None) -> Neighbours:
        return self.most_similar([vector], topn=topn, restrict_vocab=restrict_vocab)

    # -- evaluation ---------------------------------------------------------------------------------

    def evaluate_word_analogies(
        self,
        analogies: PathLike,
        restrict_vocab: int = 300_000,
        case_insensitive: bool = True,
        dummy4unknown: bool = False,
        similarity_function: str = "most_similar",
    ) -> tuple[float, list[dict[str, Any]]]:
        """The share answered correctly, and the questions of each section; the last section is "Total accuracy"."""
        method: Literal["add", "mul"] = "mul" if similarity_function == "most_similar_cosmul" else "add"
        accuracy, sections = evaluation.analogies(
            self, analogies, restrict_vocab, case_insensitive, dummy4unknown, method
        )
        for section in sections:
            self.log_accuracy(section)
        return accuracy, sections

    @staticmethod
    def log_accuracy(section: Mapping[str, Any]) -> None:
        """Log the share of the questions of a section that were answered correctly, if it has any."""
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
        """SciPy's results for Pearson's and Spearman's correlation, and the percentage of pairs not found."""
        found = evaluation.word_pairs(self, pairs, delimiter, encoding, restrict_vocab, case_insensitive, dummy4unknown)
        self.log_evaluate_word_pairs(*found, pairs)
        return found

    @staticmethod
    def log_evaluate_word_pairs(pearson: Any, spearman: Any, oov: float, pairs: object) -> None:
        """Log a result of evaluate_word_pairs."""
        log.info("%s: Pearson's correlation %.4f, Spearman's %.4f", pairs, pearson[0], spearman[0])
        log.info("%s: %.1f%% of the pairs have an unknown word", pairs, oov)

    # -- files --------------------------------------------------------------------------------------

    def _content(self) -> VectorFile:
        if not all(isinstance(key, str) for key in self.index_to_key):
            raise W2VError("not written: a key that is not str; save_word2vec_format writes it as text")
        attributes = {ATTRIBUTE + name: array for name, array in self.expandos.items() if array.dtype != object}
        attributes.pop(f"{ATTRIBUTE}count", None)
        for name in self.expandos.keys() - PATHS:
            if self.expandos[name].dtype == object:
                log.warning("not saved: the attribute %s, since its values are not numbers", name)
        return VectorFile(Words.of(self.index_to_key), self.vectors.astype(REAL, copy=False), self.counts, attributes)

    def save(self, fname_or_handle: PathLike, **_: Any) -> None:
        """Write w2v's native format, whatever the name; keyword arguments of gensim's for pickles have no effect."""
        with gensims_exceptions(fname_or_handle):
            native.write(fname_or_handle, self._content())

    @classmethod
    def load(cls, fname: PathLike, mmap: str | None = None) -> Self:
        """Read a file of `save`, of gensim's own `save`, or any other that w2v.load reads."""
        return cls._copied(_loaded(fname, mmap=mmap is not None))

    @classmethod
    def _copied(cls, found: keyed.KeyedVectors) -> Self:
        made = cls(found.vector_size)
        made.vectors = found.vectors
        made.index_to_key = found.index_to_key
        made.key_to_index = found.key_to_index
        made.next_index = len(made)
        if found.counts is not None:
            made.expandos["count"] = found.counts
        for name, array in found.tensors.items():
            if name.startswith(ATTRIBUTE):
                made.expandos[name.removeprefix(ATTRIBUTE)] = array
        return made

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
        """Write the text or binary format of word2vec, sorted by an attribute, and its values to `fvocab`."""
        rows = list(range(len(self)))
        if sort_attr in self.expandos:
            rows.sort(key=lambda row: -self.expandos[sort_attr][row])
        elif fvocab is not None:
            raise ValueError(f"Cannot store vocabulary with '{sort_attr}' because that attribute does not exist")
        keys = [f"{prefix}{self.index_to_key[row]}" for row in rows]
        if fvocab is not None:
            lines = (f"{key} {self.expandos[sort_attr][row]}\n" for key, row in zip(keys, rows, strict=True))
            with _opened(fvocab, append) as file:
                file.writelines(line.encode() for line in lines)
        content = VectorFile(Words.of(keys), self.vectors[rows].astype(REAL, copy=False))
        blocks = word2vec.encoded(fname, content, binary=binary)
        with _opened(fname, append) as plain, word2vec.packed(fname, plain) as out:
            if write_header:
                out.write(f"{len(self) if total_vec is None else total_vec} {self.vector_size}\n".encode())
            for _, block in blocks:
                out.write(block)

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
        """Read the text or binary format of word2vec; its content, not `binary` or `no_header`, tells which it is.

        Raises FileNotFoundError for a missing file, EOFError for one that is cut, UnicodeDecodeError for words that are
        not UTF-8, ValueError for other damage.
        """
        if encoding.lower().replace("-", "") not in ("utf8", "ascii"):
            raise ValueError(f"encoding {encoding!r}: w2v reads UTF-8; convert the file, by iconv for instance")
        try:
            made = cls._copied(_loaded(fname, errors=unicode_errors, limit=limit or None))
        except W2VError as error:
            if isinstance(error.__cause__, UnicodeDecodeError):
                raise error.__cause__ from None
            raise
        made.vectors = made.vectors.astype(datatype, copy=False)
        counts = np.arange(len(made), 0, -1)  # in the place of unknown ones: the most frequent first
        if fvocab is not None:
            lines = read_bytes(fvocab).decode("utf-8", unicode_errors).splitlines()
            known = {word: int(count) for word, count in (line.split() for line in lines)}
            counts = np.array([known.get(word, 0) for word in made.index_to_key])
        made.expandos["count"] = counts
        return made

    def intersect_word2vec_format(
        self,
        fname: PathLike,
        lockf: float = 0.0,
        binary: bool = False,
        encoding: str = "utf8",
        unicode_errors: Errors = "strict",
    ) -> None:
        """Take the vectors of the keys that a file in word2vec's format has, and lock them by `lockf`."""
        given = self.load_word2vec_format(fname, None, binary, encoding, unicode_errors)
        if given.vector_size != self.vector_size:
            raise ValueError(f"incompatible vector size {given.vector_size} in file {fname}")
        shared = [key for key in given.index_to_key if key in self.key_to_index]
        rows = self._rows(shared)
        self.vectors[rows] = given[shared]
        self.norms = None
        if len(self.vectors_lockf) != len(self):
            self.vectors_lockf = np.full(len(self), self.vectors_lockf[0], REAL)
        self.vectors_lockf[rows] = lockf


@contextmanager
def _opened(path: PathLike, append: bool) -> Iterator[BinaryIO]:
    """A file to write, which replaces another only once it is complete, or to append to."""
    with gensims_exceptions(path), Path(path).open("ab") if append else atomic_write(path) as file:
        yield file


def _loaded(path: PathLike, mmap: bool = False, **options: Any) -> keyed.KeyedVectors:
    with gensims_exceptions(path):
        mmap = mmap and table.recognised(path).name != "gensim"  # whose pickles are read
        return keyed.load(path, mmap, **options)


def _listed(keys: Any) -> Any:
    """Keys as a list: one key or vector is a list of one, None is empty."""
    if keys is None:
        return []
    if isinstance(keys, str | bytes | int | np.integer) or (isinstance(keys, np.ndarray) and keys.ndim == 1):
        return [keys]
    return list(keys)


def pseudorandom_weak_vector(size: int, seed_string: str | None = None, hashfxn: Any = hash) -> Vector:
    """A vector drawn evenly from ±0.5 / size: the same for the same `seed_string` and `hashfxn`."""
    seed = hashfxn(seed_string) & 0xFFFFFFFF if seed_string else None
    return ((np.random.default_rng(seed).random(size) - 0.5) / size).astype(REAL)


def prep_vectors(
    target_shape: tuple[int, int],
    prior_vectors: Vector | None = None,
    seed: int = 0,
    dtype: DTypeLike = REAL,
) -> Vector:
    """The prior vectors and below them, up to `target_shape`, new ones drawn evenly from ±1 / their length."""
    prior = np.zeros((0, target_shape[1]), dtype) if prior_vectors is None else prior_vectors
    if prior.shape == target_shape:
        return prior
    drawn = np.random.default_rng(seed).random(target_shape, np.float32)
    vectors = ((drawn * 2 - 1) / target_shape[1]).astype(dtype)
    vectors[: len(prior)] = prior
    return vectors


load_word2vec_format = KeyedVectors.load_word2vec_format
Word2VecKeyedVectors = EuclideanKeyedVectors = KeyedVectors
