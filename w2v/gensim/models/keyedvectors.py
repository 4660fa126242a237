"""gensim.models.keyedvectors: vectors by key; keys can be added, and can have attributes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import DTypeLike

from w2v.errors import W2VError
from w2v.formats.vector_file import VectorFile, as_floats
from w2v.gensim import attributes, utils, vector_files
from w2v.gensim.editable_vectors import REAL, Key
from w2v.gensim.evaluation import EvaluationMethods
from w2v.gensim.sentences import read_bytes
from w2v.system.files import Errors, PathLike
from w2v.vectors import keyed
from w2v.vectors.cosines import Floats, cosine, unit

log = logging.getLogger("gensim.models.keyedvectors")

KEY_ATTRIBUTES, USER_ATTRIBUTES = "vecattr", "gensim.vectors"  # prefixes of tensors in a file
TREE_ATTRIBUTES = {"code", "point"}  # not saved: they follow from the counts

Neighbours = keyed.Neighbours | Floats  # with topn=None, only the scores


class KeyedVectors(EvaluationMethods, utils.SaveLoad):
    """A vector for each key, usually a word, with gensim 4's interface.

    Attributes:
        vectors: The vectors, (V, D), of the dtype of the constructor, float32 by default.
        index_to_key: The V keys; None for a reserved row.
        key_to_index: The row of each key.
        norms: The lengths of the vectors, (V,); None before they are first needed. Set it to None after a change.
        expandos: The attributes of the keys, as arrays of length V.
        vectors_lockf: The factor on the changes that training makes to each vector, float32 (1,) or (V,).
    """

    subwords: Any = None  # the n-gram settings, in a subclass
    _classes: ClassVar[dict[str, Any]] = {}  # the class for each class name that a file stores

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes of a pickle of this class or of gensim's."""
        KeyedVectors.__init__(self, 1)
        # The class has properties for the attributes that are left out.
        vars(self).update(
            {name: value for name, value in state.items() if not isinstance(getattr(type(self), name, None), property)}
        )

    def similarity_unseen_docs(self, *args: Any, **options: Any) -> NoReturn:
        """Raise NotImplementedError, as in gensim."""
        raise NotImplementedError("use most_similar(positive=[...]), or a Doc2Vec of gensim")

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
        subset = KeyedVectors(self.vector_size, dtype=self.vectors.dtype)
        counts = np.arange(len(known), 0, -1)  # as in gensim: not real counts, they only keep the order
        subset.add_vectors(known, self[known], {"count": counts})
        if copy_vecattrs:
            rows = self._look_up_rows(known)
            subset.expandos |= {name: array[rows] for name, array in self.expandos.items()}
        return subset

    # -- comparing ----------------------------------------------------------------------------------

    def similarity(self, w1: Key, w2: Key) -> np.float32:
        return REAL(cosine(self[w1], self[w2]))

    def distance(self, w1: Key, w2: Key) -> np.float32:
        return REAL(1) - self.similarity(w1, w2)

    def n_similarity(self, ws1: Sequence[Key], ws2: Sequence[Key]) -> np.float32:
        if not (len(ws1) and len(ws2)):
            raise ZeroDivisionError("At least one of the passed list is empty.")
        return REAL(cosine(*(self.get_mean_vector(words, pre_normalize=False) for words in (ws1, ws2))))

    def distances(self, word_or_vector: keyed.Key, other_words: Iterable[Key] = ()) -> Floats:
        """Return 1 minus the cosine of a key or vector with each of n other keys, by default all: float32 (n,)."""
        others = list(other_words)
        vector = unit(self._vector(word_or_vector, norm=False))
        if not others:
            return 1 - self._cosines(vector, len(self))
        if self._overrides_get_vector:  # as in gensim, only the first vector comes from get_vector
            return 1 - unit(self.vectors[self._look_up_rows(others)]) @ vector
        return 1 - unit(self._look_up_vectors(others)) @ vector

    def closer_than(self, key1: Key, key2: Key) -> list[Any]:
        """Return the keys nearer to `key1` than `key2` is, in the order of the vectors."""
        distances = self.distances(key1)
        first, second = self._look_up_rows([key1, key2])
        closer = distances < distances[second]
        closer[first] = False
        return [self.index_to_key[row] for row in np.flatnonzero(closer).tolist()]

    def words_closer_than(self, word1: Key, word2: Key) -> list[Any]:
        return self.closer_than(word1, word2)

    def rank(self, key1: Key, key2: Key) -> int:
        """Return the position of `key2` among the neighbours of `key1`; the nearest is 1."""
        return len(self.closer_than(key1, key2)) + 1

    def most_similar_to_given(self, key1: Key, keys_list: Sequence[Key]) -> Any:
        if not len(keys_list):
            raise ValueError("the list of keys is empty")
        return keys_list[int(np.argmin(self.distances(key1, keys_list)))]

    def relative_cosine_similarity(self, wa: Key, wb: Key, topn: int = 10) -> float:
        """Return the cosine of two keys, divided by the sum of the cosines of the `topn` keys nearest to `wa`.

        Keys with a value above 1 / topn are more likely synonyms (Leeuwenberg et al. 2016).
        """
        return float(self.similarity(wa, wb) / sum(cosine for _, cosine in self.similar_by_word(wa, topn)))

    @staticmethod
    def cosine_similarities(vector_1: Floats, vectors_all: Floats) -> Floats:
        """Return the cosines, (n,), of one vector (D,) with n others (n, D)."""
        return unit(np.asarray(vectors_all)) @ unit(np.asarray(vector_1))

    def rank_by_centrality(self, words: Sequence[Key], use_norm: bool = True) -> list[tuple[Any, Key]]:
        """Return (dot product with the mean vector, word) of the known words, the highest first."""
        known = [word for word in words if word in self]
        if len(known) < len(words):
            log.warning("not in the vocabulary: %s", set(words) - set(known))
        if not known:
            raise ValueError("cannot select a word from an empty list")
        vectors = self._vectors_of_keys(known, use_norm)
        mean = self.get_mean_vector(list(vectors), post_normalize=True)
        return sorted(zip(vectors @ mean, known, strict=True), reverse=True)

    def doesnt_match(self, words: Sequence[Key]) -> Any:
        return self.rank_by_centrality(words)[-1][1]

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
        first, second = (self._vectors_of_keys(list(words), norm) for words in counts)
        distances = cdist(first, second)
        shares = [np.array([*words.values()]) / words.total() for words in counts]
        return float(emd2(*shares, distances))

    # -- nearest neighbours -------------------------------------------------------------------------

    def _cosines(self, queries: Floats, rows: int) -> Floats:
        self.fill_norms()
        return super()._cosines(queries, rows)

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
        query, mean = self._query(_as_list(positive), _as_list(negative))
        if indexer is not None and topn is not None:
            neighbours: Neighbours = indexer.most_similar(mean, topn)
            return neighbours
        scores = self._cosines(mean, min(clip_end or len(self), len(self)))
        if topn is None:
            return scores[clip_start:]
        scores[:clip_start] = -np.inf
        return self._top_words(scores, query, int(topn))

    def most_similar_cosmul(
        self, positive: Any = None, negative: Any = None, topn: int | None = 10, restrict_vocab: int | None = None
    ) -> Neighbours:
        if topn is not None and topn < 1:
            return []
        if not len(_as_list(positive)):
            raise ValueError("cannot compute similarity with no input")
        rows = min(restrict_vocab or len(self), len(self))
        query, scores = keyed.cosmul_scores(self, _as_list(positive), _as_list(negative), rows, scale_vectors=False)
        return scores if topn is None else self._top_words(scores, query, int(topn))

    def similar_by_key(self, key: Key, topn: int | None = 10, restrict_vocab: int | None = None) -> Neighbours:
        return self.most_similar([key], topn=topn, restrict_vocab=restrict_vocab)

    def similar_by_word(self, word: Key, topn: int | None = 10, restrict_vocab: int | None = None) -> Neighbours:
        return self.similar_by_key(word, topn, restrict_vocab)

    def similar_by_vector(self, vector: Floats, topn: int | None = 10, restrict_vocab: int | None = None) -> Neighbours:
        return self.most_similar([vector], topn=topn, restrict_vocab=restrict_vocab)

    # -- files --------------------------------------------------------------------------------------

    def _content(self) -> VectorFile:
        words, tensors = vector_files.keys_to_words(self.index_to_key)
        complete = self._complete_attributes()
        for name in self.expandos.keys() - complete.keys():
            attributes.warn_not_saved(f"the attribute {name}: {len(self.expandos[name])} values for {len(self)} keys")
        saved = {name: complete[name] for name in complete.keys() - {"count", *TREE_ATTRIBUTES}}
        tensors |= attributes.pack(KEY_ATTRIBUTES, saved)
        tensors |= attributes.pack(USER_ATTRIBUTES, attributes.user_attributes(self, vars(KeyedVectors(1))))
        return VectorFile(words, as_floats(self.vectors, words=words), self.counts, tensors)

    def save(self, fname_or_handle: PathLike | BinaryIO, **_: Any) -> None:
        """Write w2v's native format, whatever the name of the file. gensim's arguments for pickles have no effect.

        gensim cannot open the file: for gensim, use save_word2vec_format.
        """
        self.add_lifecycle_event("saving", fname_or_handle=str(fname_or_handle))
        vector_files.write(fname_or_handle, self._content())

    @classmethod
    def load(cls, fname: PathLike, mmap: str | None = None) -> Any:
        """Read a file that `save` or gensim's own `save` wrote, or any other file that w2v.load reads.

        Returns:
            An object of the class that was saved: a Word2Vec, for instance, if the file holds a Word2Vec.
        """
        content = vector_files.read(fname, mmap is not None)
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
        vectors.vectors = np.asarray(content.vectors)  # converts vectors of a smaller type to float32
        vectors._set_keys(vector_files.words_to_keys(path, content))
        vectors.next_index = len(vectors)
        for name, value in attributes.unpack(path, KEY_ATTRIBUTES, content.tensors).items():
            objects = value if isinstance(value, list) else ()
            vectors.expandos[name] = value if isinstance(value, np.ndarray) else np.fromiter(objects, object)
        if content.counts is not None:
            vectors.expandos["count"] = content.counts
        if any(array.shape[:1] != (len(vectors),) for array in vectors.expandos.values()):
            raise W2VError(f"{path}: damaged: its attributes do not fit its keys")
        user_attributes = attributes.unpack(path, USER_ATTRIBUTES, content.tensors)
        attributes.restore(vectors, vars(KeyedVectors(1)), user_attributes)
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
        vocabulary = None
        if fvocab is not None:
            if values is None:
                raise ValueError(f"Cannot store vocabulary with '{sort_attr}' because that attribute does not exist")
            vocabulary = fvocab, values[rows]
        total = len(self) if total_vec is None else total_vec
        vectors = self._look_up_vectors(names) if self._overrides_get_vector else self.vectors[rows]
        keys = [f"{prefix}{name}" for name in names]
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
        vectors = cls._from_file(fname, vector_files.read_word2vec(fname, encoding, unicode_errors, limit or None))
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
        rows = self._look_up_rows(shared)
        self.vectors[rows] = other[shared]
        self.norms = None
        if len(self.vectors_lockf) != len(self):
            self.vectors_lockf = np.full(len(self), self.vectors_lockf[0], REAL)
        self.vectors_lockf[rows] = lockf


def _as_list(keys: Any) -> Any:
    """Return keys as a list: one key or vector becomes a list of one, None an empty list."""
    if keys is None:
        return []
    if isinstance(keys, str | bytes | int | np.integer) or (isinstance(keys, np.ndarray) and keys.ndim == 1):
        return [keys]
    return list(keys)


def pseudorandom_weak_vector(size: int, seed_string: str | None = None, hashfxn: Any = hash) -> Floats:
    """Return a vector with uniform values in ±0.5 / size, determined by `seed_string` and `hashfxn`."""
    seed = hashfxn(seed_string) & 0xFFFFFFFF if seed_string else None
    return ((np.random.default_rng(seed).random(size) - 0.5) / size).astype(REAL)


def prep_vectors(
    target_shape: tuple[int, int],
    prior_vectors: Floats | None = None,
    seed: int | None = 0,
    dtype: DTypeLike = REAL,
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
Word2VecKeyedVectors = EuclideanKeyedVectors = KeyedVectors
