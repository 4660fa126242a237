"""gensim.models.keyedvectors: vectors by key, which can grow and carry attributes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from w2v.errors import W2VError
from w2v.formats.vector_file import VectorFile
from w2v.gensim import attributes, utils, vector_files
from w2v.gensim.evaluation import EvaluatedVectors
from w2v.gensim.sentences import read_bytes
from w2v.gensim.vocabulary_update import REAL, Key
from w2v.system.files import Errors, PathLike
from w2v.vectors import keyed
from w2v.vectors.cosines import Vector, unit

log = logging.getLogger("gensim.models.keyedvectors")

OF_KEYS, OF_ALL = "vecattr", "gensim.vectors"  # in a file: attributes of the keys, and others
PATHS = {"code", "point"}  # attributes that follow from the counts

Neighbours = keyed.Neighbours | Vector  # all scores where topn is None


class KeyedVectors(EvaluatedVectors, utils.SaveLoad):
    """Keys, most often words, with a vector each, in the manner of gensim 4.

    Attributes:
        vectors: (V, D), of the type given, float32 by default.
        index_to_key: V keys, None where a row is reserved. key_to_index: the row of each key.
        norms: (V,), the lengths of the vectors, or None until they are needed; set it to None after a change.
        expandos: arrays of length V, attributes of the keys.
        vectors_lockf: float32 (1,) or (V,), the share of each change in training that a vector takes.
    """

    subwords: Any = None  # of words that have n-grams
    models: ClassVar[dict[str, Any]] = {}  # the classes of objects in files, by name

    def resize_vectors(self, seed: int | None = 0) -> None:
        """Give each key a vector, the new ones drawn evenly from ±1 / vector_size."""
        self.vectors = prep_vectors((len(self), self.vector_size), self.vectors, seed, self.vectors.dtype)
        self.allocate_vecattrs()
        self.norms = None

    def vectors_for_all(
        self, keys: Iterable[Key], allow_inference: bool = True, copy_vecattrs: bool = False
    ) -> KeyedVectors:
        """The known ones among the keys, each once, with their vectors and, if wanted, attributes."""
        known = [key for key in dict.fromkeys(keys) if key in (self if allow_inference else self.key_to_index)]
        made = KeyedVectors(self.vector_size, dtype=self.vectors.dtype)
        made.add_vectors(known, self[known], {"count": np.arange(len(known), 0, -1)})
        if copy_vecattrs:
            rows = self._rows(known)
            made.expandos |= {name: array[rows] for name, array in self.expandos.items()}
        return made

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
        vectors = unit(self[known]) if use_norm else self[known]
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

    # -- files --------------------------------------------------------------------------------------

    def _content(self) -> VectorFile:
        words, tensors = vector_files.words_of(self.index_to_key)
        fitting = self._fitting()
        for name in self.expandos.keys() - fitting.keys():
            attributes.warn_not_saved(f"the attribute {name}: {len(self.expandos[name])} values for {len(self)} keys")
        tensors |= attributes.packed(OF_KEYS, {name: fitting[name] for name in fitting.keys() - {"count", *PATHS}})
        tensors |= attributes.packed(OF_ALL, attributes.set_by_programs(self, vars(KeyedVectors(1))))
        return VectorFile(words, self.vectors.astype(REAL, copy=False), self.counts, tensors)

    def save(self, fname_or_handle: PathLike | BinaryIO, **_: Any) -> None:
        """Write w2v's native format, whatever the name; keyword arguments of gensim's for pickles have no effect."""
        self.add_lifecycle_event("saving", fname_or_handle=str(fname_or_handle))
        vector_files.write(fname_or_handle, self._content())

    @classmethod
    def load(cls, fname: PathLike, mmap: str | None = None) -> Any:
        """Read a file of `save`, of which a Word2Vec's gives a Word2Vec, of gensim's own `save`, or any other that
        w2v.load reads.
        """
        found = vector_files.read(fname, mmap is not None)
        saved = found.header.gensim
        kind = cls.models.get(saved.kind, cls) if saved else cls
        return kind._from_file(fname, found)

    @classmethod
    def _from_file(cls, path: PathLike, found: VectorFile) -> Self:
        made = cls.__new__(cls)
        KeyedVectors.__init__(made, found.vectors.shape[1])  # a subclass may require arguments
        made.vectors = np.asarray(found.vectors)  # those of a smaller type become float32
        made._set_keys(vector_files.keys_of(path, found))
        made.next_index = len(made)
        for name, value in attributes.unpacked(path, OF_KEYS, found.tensors).items():
            objects = value if isinstance(value, list) else ()
            made.expandos[name] = value if isinstance(value, np.ndarray) else np.fromiter(objects, object)
        if found.counts is not None:
            made.expandos["count"] = found.counts
        if any(array.shape[:1] != (len(made),) for array in made.expandos.values()):
            raise W2VError(f"{path}: damaged: its attributes do not fit its keys")
        attributes.restore(made, vars(KeyedVectors(1)), attributes.unpacked(path, OF_ALL, found.tensors))
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
        values = self._fitting().get(sort_attr)
        rows = np.arange(len(self)) if values is None else np.argsort(-values, kind="stable")
        keys = [f"{prefix}{self.index_to_key[row]}" for row in rows.tolist()]
        vocabulary = None
        if fvocab is not None:
            if values is None:
                raise ValueError(f"Cannot store vocabulary with '{sort_attr}' because that attribute does not exist")
            vocabulary = fvocab, values[rows]
        total = len(self) if total_vec is None else total_vec
        vectors = self.vectors[rows]
        vector_files.write_word2vec(fname, keys, vectors, binary, total, write_header, append, vocabulary)

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

        Of a key that stands there twice, the first is kept. Raises FileNotFoundError for a missing file, EOFError for
        one that is cut, UnicodeDecodeError for words that are not in this encoding, ValueError for other damage.
        """
        log.info("loading projection weights from %s", fname)
        made = cls._from_file(fname, vector_files.read_word2vec(fname, encoding, unicode_errors, limit or None))
        made.vectors = made.vectors.astype(datatype, copy=False)
        counts = np.arange(len(made), 0, -1)  # in the place of unknown ones: the most frequent first
        if fvocab is not None:
            lines = read_bytes(fvocab).decode("utf-8", unicode_errors).splitlines()
            known = {word: int(count) for word, count in (line.rsplit(maxsplit=1) for line in lines)}
            counts = np.array([known.get(word, 0) for word in made.index_to_key])
        made.expandos["count"] = counts
        made.add_lifecycle_event("load_word2vec_format", msg=f"loaded {made.vectors.shape} matrix from {fname}")
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
    seed: int | None = 0,
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
