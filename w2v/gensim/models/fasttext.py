"""gensim.models.fasttext: word vectors with character n-grams, trained by w2v; reads and writes fastText's files."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v._errors import W2VError
from w2v._formats import fasttext
from w2v._formats.vector_file import VectorFile
from w2v._system.files import PathLike, check_files_unchanged
from w2v._text.subword_rows import own_rows
from w2v._text.subwords import Ngrams, Subwords
from w2v._text.words import Words
from w2v._vectors.cosines import Floats, unit
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.models.word2vec import Word2Vec, sample_as_share
from w2v.gensim.sentences import Sentences
from w2v.gensim.utils import gensim_exceptions


def ft_ngram_hashes(word: str, minn: int, maxn: int, num_buckets: int) -> list[int]:
    """Return the buckets of a word's n-grams of `minn` to `maxn` characters, in fastText's order."""
    _, buckets = Subwords(minn, maxn, num_buckets).ngram_buckets(Words.of([word]))
    return list(buckets.tolist())


class FastTextKeyedVectors(KeyedVectors):
    """Word vectors with n-grams, as in gensim 4. An unknown word has a vector too: it comes from its n-grams.

    Attributes:
        min_n, max_n: The shortest and the longest n-grams, in characters.
        bucket: The number of rows into which n-grams are hashed.
        ngrams: The n-gram rows that training has used; None before training.
    """

    min_n, max_n, bucket = 3, 6, 2_000_000
    ngrams: Ngrams | None = None
    _word_rows: Floats | None = None  # the words' own rows, if the program has set them
    compatible_hash = True
    vectors_vocab_lockf = vectors_ngrams_lockf = np.broadcast_to(np.float32(1), 1)  # cannot be changed

    def __init__(
        self,
        vector_size: int,
        min_n: int = min_n,
        max_n: int = max_n,
        bucket: int = bucket,
        count: int = 0,
        dtype: DTypeLike = np.float32,
    ) -> None:
        super().__init__(vector_size, count, dtype)
        self.min_n, self.max_n, self.bucket = int(min_n), int(max_n), int(bucket)
        self.ngrams = None
        self._word_rows = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes of a pickle of this class or of gensim's, which has a row for each bucket."""
        computed = {"vectors_ngrams", "vectors_vocab", "buckets_word"}
        vars(self).update({name: value for name, value in state.items() if name not in computed})
        if "vectors_ngrams" in state:
            self.vectors_ngrams = state["vectors_ngrams"]

    def __contains__(self, word: Any) -> bool:
        """Return True if a word is known. If training has used n-grams, each str has a vector."""
        return (self.ngrams is not None and isinstance(word, str)) or self.has_index_for(word)

    def get_vector(self, word: Any, norm: bool = False) -> Floats:
        """Return the vector of a word, as KeyedVectors does.

        The vector of an unknown word is the mean of the rows of its n-grams, or zeros if training used none of them.
        """
        if self.ngrams is None or not isinstance(word, str) or word in self.key_to_index:
            return super().get_vector(word, norm)
        vector = self.ngrams.vector(word)
        if vector is None:
            return np.zeros(self.ngrams.rows.shape[1], np.float32)
        return unit(vector) if norm else vector

    @property
    def subwords(self) -> Subwords | None:
        """The n-gram settings; None if words have no n-grams."""
        return Subwords(self.min_n, self.max_n, self.bucket) if self.bucket and 0 < self.min_n <= self.max_n else None

    @property
    def vectors_ngrams(self) -> Floats:
        """A read-only copy of all n-gram rows, float32 (bucket, vector_size). Rows that training has not used are zero.

        It can be set, also to another object that gives a row for each bucket.
        """
        rows = np.zeros((self.bucket, self.vector_size), np.float32)
        if self.ngrams:
            rows[self.ngrams.buckets] = self.ngrams.rows
        rows.setflags(write=False)
        return rows

    @vectors_ngrams.setter
    def vectors_ngrams(self, rows: Any) -> None:
        self.ngrams = None
        if rows is not None and self.subwords:
            used = [bucket for bucket in range(self.bucket) if np.any(rows[bucket])]
            values = np.array([rows[bucket] for bucket in used], np.float32).reshape(len(used), self.vector_size)
            self.ngrams = Ngrams(self.subwords, np.array(used, np.int32), values)

    @property
    def vectors_vocab(self) -> Floats | None:
        """A read-only copy of the words' own rows, without their n-grams: float32 (V, vector_size).

        It can be set; adjust_vectors then computes `vectors` from these rows and the n-grams.
        """
        if self._word_rows is not None:
            return self._word_rows
        rows = own_rows(self.vectors, Words.of(self.index_to_key), self.ngrams) if self.ngrams else self.vectors.copy()
        rows.setflags(write=False)
        return rows

    @vectors_vocab.setter
    def vectors_vocab(self, rows: Floats | None) -> None:
        self._word_rows = rows

    @property
    def buckets_word(self) -> list[NDArray[np.int32]]:
        """The buckets of each word's n-grams."""
        if not self.subwords:
            return [np.empty(0, np.int32)] * len(self)
        starts, buckets = self.subwords.ngram_buckets(Words.of(self.index_to_key))
        return np.split(buckets, starts[1:-1]) if len(self) else []

    def get_sentence_vector(self, sentence: list[str]) -> Floats:
        """Return the mean of the words' unit vectors, (vector_size,)."""
        return self.get_mean_vector(sentence)

    def adjust_vectors(self) -> None:
        """Compute `vectors` from the rows that the program has set. Training itself does so at its end."""
        self._check_overrides()
        if self._word_rows is not None:
            self.vectors, self._word_rows = np.array(self._word_rows, np.float32), None
            if self.ngrams:
                self.ngrams.compose(Words.of(self.index_to_key), self.vectors)
            self.norms = None

    def recalc_char_ngram_buckets(self) -> None:
        """Do nothing: `buckets_word` is computed when it is read."""

    def _check_overrides(self) -> None:
        """Raise NotImplementedError if a subclass chooses the buckets of n-grams, because w2v does so itself."""
        if type(self).recalc_char_ngram_buckets is not FastTextKeyedVectors.recalc_char_ngram_buckets:
            raise NotImplementedError(
                f"{type(self).__name__}.recalc_char_ngram_buckets has no effect: w2v hashes n-grams as fastText does; "
                "use gensim for other n-grams"
            )

    def to_vector_file(self) -> VectorFile:
        content = super().to_vector_file()
        if self.ngrams:
            content.tensors.update(self.ngrams.tensors)
            return replace(content, header=replace(content.header, subwords=self.ngrams.subwords))
        return content

    @classmethod
    def _from_file(cls, path: PathLike, content: VectorFile) -> Self:
        vectors = super()._from_file(path, content)
        vectors._word_rows = None
        if content.header.ngram_offset:
            raise W2VError(
                f"{path}: n-grams make only a part of its vectors: load it with w2v.load, or convert its view of "
                "subwords to .ft.bin with w2v convert"
            )
        vectors.ngrams = Ngrams.from_file(content.tensors, content.header.subwords, vectors.vector_size, path)
        if vectors.ngrams:
            subwords = vectors.ngrams.subwords
            vectors.min_n, vectors.max_n, vectors.bucket = subwords.shortest, subwords.longest, subwords.buckets
        return vectors


class FastText(Word2Vec):
    """A word2vec model with subwords (Bojanowski et al. 2017), with gensim 4's interface. Words must be str.

    Attributes:
        wv: The vectors, as FastTextKeyedVectors.

    Word2Vec documents the other attributes.
    """

    wv: FastTextKeyedVectors
    min_n, max_n, bucket = (property(attrgetter(f"wv.{name}")) for name in ("min_n", "max_n", "bucket"))
    word_ngrams = 1
    file_name: PathLike  # read by load_binary_data
    _kind: ClassVar = "FastText"
    _ngram_options = FastTextKeyedVectors.min_n, FastTextKeyedVectors.max_n, FastTextKeyedVectors.bucket

    def __init__(
        self,
        sentences: Sentences | None = None,
        corpus_file: PathLike | None = None,
        sg: int = 0,
        hs: int = 0,
        vector_size: int = 100,
        alpha: float = 0.025,
        window: int = 5,
        min_count: int = 5,
        max_vocab_size: int | None = None,
        word_ngrams: int = 1,
        sample: float = 1e-3,
        seed: int | None = 1,
        workers: int = 3,
        min_alpha: float = 0.0001,
        negative: int = 5,
        ns_exponent: float = 0.75,
        cbow_mean: int = 1,
        hashfxn: Any = hash,
        epochs: int = 5,
        null_word: int = 0,
        min_n: int = _ngram_options[0],
        max_n: int = _ngram_options[1],
        sorted_vocab: int = 1,
        bucket: int = _ngram_options[2],
        **options: Any,
    ) -> None:
        """Create a model as Word2Vec does, with n-grams of `min_n` to `max_n` characters hashed to `bucket` rows.

        Args:
            max_n: 0 for a model without n-grams.
            options: Further arguments of Word2Vec.
        """
        if word_ngrams != 1:
            raise NotImplementedError(f"word_ngrams={word_ngrams}: only classifiers have n-grams of words; use 1")
        self._ngram_options = min_n, max_n, bucket
        super().__init__(
            sentences, corpus_file, vector_size, alpha, window, min_count, max_vocab_size, sample, seed, workers,
            min_alpha, sg, hs, negative, ns_exponent, cbow_mean, hashfxn, epochs, null_word,
            sorted_vocab=sorted_vocab, **options,
        )  # fmt: skip

    def _new_vectors(self) -> FastTextKeyedVectors:
        return FastTextKeyedVectors(self.vector_size, *self._ngram_options)

    def estimate_memory(self, vocab_size: int | None = None, report: dict[str, int] | None = None) -> dict[str, int]:
        """Return gensim's estimate of bytes for the dictionary, each matrix and the n-grams, and their total."""
        words = vocab_size or len(self.wv)
        ngrams = sum(map(len, self.wv.buckets_word))
        row_bytes = self.vector_size * np.dtype(np.float32).itemsize
        estimate = super().estimate_memory(vocab_size, report)
        estimate["syn0_vocab"] = estimate.pop("vectors")
        del estimate["total"]
        estimate |= {"syn0_ngrams": self.bucket * row_bytes, "buckets_word": 64 + 100 * words + 4 * ngrams}
        return estimate | {"total": sum(estimate.values())}

    def init_weights(self) -> None:
        self.wv.ngrams = self.wv._word_rows = None
        super().init_weights()

    def _check_training(self, *arguments: Any) -> None:
        super()._check_training(*arguments)
        self.wv._check_overrides()

    @classmethod
    def load_fasttext_format(cls, model_file: PathLike, encoding: str = "utf8") -> FastText:
        """See load_facebook_model."""
        return load_facebook_model(model_file, encoding)

    def load_binary_data(self, encoding: str = "utf8") -> None:
        """Load the `.bin` file that the attribute `file_name` of this model names, into this model."""
        vars(self).update(vars(self.load_fasttext_format(self.file_name, encoding)))


KeyedVectors._classes |= {"FastText": FastText, "FastTextKeyedVectors": FastTextKeyedVectors}


def load_facebook_model(path: PathLike, encoding: str = "utf-8") -> FastText:
    """Load a model, which can be trained further, from a `.bin` file of fastText.

    Raises:
        FileNotFoundError: The file is missing.
        NotImplementedError: The file is a classifier.
        W2VError: The file is not one of fastText, or is damaged.
    """
    with gensim_exceptions(path), check_files_unchanged(path):
        content = fasttext.FORMAT.load(path, None)
    if content.header.labels:
        raise NotImplementedError(f"{path} is a classifier: w2v.load reads it")
    content = replace(content, words=content.words.to_utf8("backslashreplace", encoding))
    settings = content.header.settings or {}
    wv = FastTextKeyedVectors._from_file(path, content)
    if "subwords" not in settings:
        wv.min_n, wv.max_n, wv.bucket = 0, 0, 0
    model = FastText(
        vector_size=wv.vector_size,
        sg=int(settings["model"] == "skipgram"),
        hs=int(settings["loss"] == "hs"),
        negative=settings["negative"] if settings["loss"] == "ns" else 0,
        min_n=wv.min_n,
        max_n=wv.max_n,
        bucket=wv.bucket,
        **{name: settings[name] for name in ("window", "min_count", "epochs", "sample") if name in settings},
    )
    model.wv = wv
    if "outputs" in content.tensors:
        model.syn1neg = content.tensors["outputs"]
    else:
        model._resize_outputs(keep=0)
    model.corpus_total_words = int(wv.expandos["count"].sum())
    return model


def load_facebook_vectors(path: PathLike, encoding: str = "utf-8") -> FastTextKeyedVectors:
    """Load the vectors from a `.bin` file of fastText.

    Raises:
        FileNotFoundError: The file is missing.
        NotImplementedError: The file is a classifier.
        W2VError: The file is not one of fastText, or is damaged.
    """
    return load_facebook_model(path, encoding).wv


def save_facebook_model(model: FastText, path: PathLike, encoding: str = "utf-8", *_: Any, **__: Any) -> None:
    """Write a file that fastText loads. It lacks the output rows of hierarchical softmax."""
    content = model.wv.to_vector_file()
    if model.negative:
        content.tensors["outputs"] = model.syn1neg
    settings = {name: getattr(model, name) for name in ("window", "epochs", "min_count", "negative")}
    settings |= {"model": "skipgram" if model.sg else "cbow", "loss": "ns" if model.negative else "hs"}
    settings["sample"] = sample_as_share(model.sample, int(model.wv.expandos["count"].sum()))
    fasttext.FORMAT.save(path, replace(content, header=replace(content.header, settings=settings)))
