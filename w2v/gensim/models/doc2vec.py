"""gensim.models.doc2vec: vectors of documents by tag (Le & Mikolov 2014), trained by w2v, and readers of documents."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from w2v._system.files import PathLike
from w2v._text.corpus import Corpus
from w2v._text.idstore import ReadingOptions
from w2v._text.labels import LabelledTexts
from w2v._text.words import OWN_PREFIX, Words
from w2v._training.documents import Documents
from w2v._training.infer import Inference
from w2v._training.model import View
from w2v._vectors.cosines import Floats, cosine
from w2v.gensim import utils
from w2v.gensim.models.callbacks import CallbackAny2Vec
from w2v.gensim.models.keyedvectors import INTEGERS, KEY_TYPES, KeyedVectors
from w2v.gensim.models.word2vec import CORPUSFILE_VERSION as CORPUSFILE_VERSION
from w2v.gensim.models.word2vec import FAST_VERSION as FAST_VERSION
from w2v.gensim.models.word2vec import Word2Vec, refuse_concatenation
from w2v.gensim.sentences import BrownCorpus, LineSentence, NumberedSentences, files_of

log = logging.getLogger("gensim.models.doc2vec")

TAG_SEED = 7919  # gensim adds it to the seed of the words, so that tags get other initial vectors
BYTES_PER_TAG = 200  # gensim's estimate of the memory for the look-up of a tag


class TaggedDocument(NamedTuple):
    """A document: its words, and its tags, str or int."""

    words: Sequence[Any]
    tags: Sequence[Any]

    def __str__(self) -> str:
        return f"{type(self).__name__}<{self.words}, {self.tags}>"


class TaggedLineDocument(LineSentence):
    """The lines of a file as documents. The tag of a document is the number of its line, from 0.

    Args:
        source: The path of a file, which may be compressed, or an open binary file.
    """

    def _sentences(self, lines: Iterable[str | bytes]) -> Iterator[TaggedDocument]:
        for number, line in enumerate(lines):
            yield TaggedDocument(utils.to_unicode(line).split(), [number])


class TaggedBrownCorpus(BrownCorpus):
    """The lines of all files of a folder in the format of the Brown corpus, as documents; see BrownCorpus."""

    def __iter__(self) -> Iterator[TaggedDocument]:
        for name, words in self.named_sentences():
            yield TaggedDocument(words, [name])


class NumberedDocuments(NumberedSentences):
    """Documents for training: their tags, as row numbers after OWN_PREFIX, and then their words, as row numbers.

    Unknown tags are left out, as in gensim.
    """

    def __init__(self, documents: Iterable[Any], names: Mapping[Any, str], dv: KeyedVectors) -> None:
        super().__init__(documents, names)
        self.dv = dv

    def __iter__(self) -> Iterator[list[str]]:
        self.words = 0
        documents: Iterable[Any] = self.sentences
        for document in documents:
            tags = (self.dv.get_index(tag, -1) for tag in document.tags)
            yield [f"{OWN_PREFIX}{tag}" for tag in tags if tag >= 0] + self._numbers(document.words)


class Doc2Vec(Word2Vec):
    """A model of paragraph vectors with gensim 4's interface, trained by w2v.

    Attributes:
        dv: The vectors of the tags, as KeyedVectors. Training continues from dv.vectors.
        wv: The vectors of the words. With dm=0 and dbow_words=0, they keep their random initial values, as in gensim.

    Word2Vec documents the other attributes.
    """

    dv: KeyedVectors
    dm, dbow = property(lambda self: not self.sg), property(attrgetter("sg"))
    _kind: ClassVar = "Doc2Vec"
    # By tag, the numbers of documents and words that the last scan_vocab found; None after prepare_weights
    _scanned: tuple[Counter[Any], Counter[Any]] | None = None
    _inference: tuple[list[Any], list[Any], Inference] | None = None  # see infer_vector

    def __init__(
        self,
        documents: Iterable[Any] | None = None,
        corpus_file: PathLike | None = None,
        vector_size: int = 100,
        dm_mean: int | None = None,
        dm: int = 1,
        dbow_words: int = 0,
        dm_concat: int = 0,
        dm_tag_count: int = 1,
        dv: KeyedVectors | None = None,
        dv_mapfile: str | None = None,
        comment: str | None = None,
        trim_rule: utils.TrimRule | None = None,
        callbacks: Iterable[CallbackAny2Vec] = (),
        window: int = 5,
        epochs: int = 10,
        shrink_windows: bool = True,
        **options: Any,
    ) -> None:
        """Create a model. Given documents or a corpus file, also build the vocabulary and train.

        Args:
            documents: Objects with `words` and `tags`, such as TaggedDocument.
            corpus_file: A file with a document in each line. The tag of a document is the number of its line, from 0.
            dm_mean: Whether dm=1 predicts a word from the mean (1) or the sum (0) of the vectors; see Word2Vec for the
                sum. gensim 4 ignores it.
            dm: 1 predicts a word from the vectors of its context and of the tags (distributed memory), and 0 only from
                each tag (distributed bag of words).
            dbow_words: Whether dm=0 trains the vectors of words, too, as skip-gram.
            dm_concat: Must be 0.
            dm_tag_count: No effect: gensim uses it only with dm_concat.
            dv: The vectors of tags to start from.
            options: Further arguments of Word2Vec.
        """
        refuse_concatenation(dm_concat)
        self.dbow_words, self.dm_concat, self.dm_tag_count = int(dbow_words), int(dm_concat), int(dm_tag_count)
        self.dv = KeyedVectors(int(vector_size), mapfile_path=dv_mapfile) if dv is None else dv
        options |= {} if dm_mean is None else {"cbow_mean": dm_mean}
        super().__init__(
            documents, corpus_file, vector_size, window=window, sg=int(not dm), epochs=epochs, trim_rule=trim_rule,
            callbacks=callbacks, comment=comment, shrink_windows=shrink_windows, **options,
        )  # fmt: skip

    def __str__(self) -> str:
        words = "dbow+w" if self.dbow_words else "dbow"
        parts = {
            f'"{self.comment}"': self.comment,
            words if self.sg else "dm/m" if self.cbow_mean else "dm/s": True,
            f"d{self.vector_size}": True,
            f"n{self.negative}": self.negative,
            "hs": self.hs,
            f"w{self.window}": self.dm or self.dbow_words,
            f"mc{self.min_count}": self.min_count > 1,
            f"s{self.sample:g}": self.sample > 0,
            f"t{self.workers}": self.workers > 1,
        }
        return f"{type(self).__name__}<{','.join(name for name, is_shown in parts.items() if is_shown)}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_inference": None}

    def __getitem__(self, tag: Any) -> Floats:
        """Return the vector of a word or, if there is no such word, of a tag: (D,); of n of them, (n, D)."""
        if isinstance(tag, KEY_TYPES):
            return (self.wv if tag in self.wv else self.dv)[tag]
        return np.stack([self[each] for each in tag])

    # -- vocabulary and tags ------------------------------------------------------------------------

    def scan_vocab(
        self,
        corpus_iterable: Iterable[Any] | None = None,
        corpus_file: PathLike | None = None,
        progress_per: int = 100_000,
        trim_rule: utils.TrimRule | None = None,
    ) -> tuple[int, int]:
        """Count the words into raw_vocab, and find the tags. Return the numbers of words and documents."""
        self._check_corpus(corpus_iterable, corpus_file)
        document_counts, word_counts = self._scanned = Counter[Any](), Counter[Any]()
        if files := _files(corpus_iterable, corpus_file):
            words, _ = super().scan_vocab(None, files[0], progress_per, trim_rule=trim_rule)
            documents = sum(1 for _ in LineSentence(files[0]).lines())
            document_counts.update(range(documents))
            return words, documents

        def count_tags() -> Iterator[list[Any]]:
            assert corpus_iterable is not None
            for number, document in enumerate(corpus_iterable):
                if not number and isinstance(document.words, str):
                    log.warning("Each 'words' should be a list of words (usually unicode strings). The first is a str")
                words = list(document.words)
                document_counts.update(document.tags)
                for tag in document.tags:
                    word_counts[tag] += len(words)
                yield words

        return super().scan_vocab(count_tags(), None, progress_per, trim_rule=trim_rule)

    def prepare_weights(self, update: bool = False) -> None:
        """Initialise the vectors of words and tags; with `update`, only of new ones.

        As in gensim, a tag that is an int is the number of a row, and only other tags have counts.
        """
        if self._scanned:
            (documents, words), self._scanned, dv = self._scanned, None, self.dv
            numbers = [int(tag) for tag in documents if isinstance(tag, INTEGERS)]
            texts = [tag for tag in documents if not isinstance(tag, INTEGERS)]
            highest = max(numbers, default=-1)
            if highest > self.corpus_count:
                log.warning("Highest int doctag (%d) larger than count of documents (%d)", highest, self.corpus_count)
            known = dv.index_to_key if update else []
            keys = list(dict.fromkeys([*known, *range(highest + 1), *texts]))
            if keys[: len(dv)] != dv.index_to_key:
                dv.vectors = dv.vectors[:0]  # of other tags
            dv.index_to_key, dv.key_to_index = keys, {key: row for row, key in enumerate(keys) if key != row}
            dv.expandos = dv.expandos if update else {}
            for name, counts in (("word_count", words), ("doc_count", documents)) if texts else ():
                dv.allocate_vecattrs([name], [int])
                dv.expandos[name] += [0 if isinstance(key, INTEGERS) else counts[key] for key in keys]
        super().prepare_weights(update)

    def _resize_outputs(self, keep: int) -> None:
        super()._resize_outputs(keep)
        self.dv.resize_vectors(None if self.seed is None else self.seed + TAG_SEED)

    def reset_from(self, other_model: Doc2Vec) -> None:
        """Copy the vocabulary and the tags of another model, and initialise new vectors."""
        self.dv = KeyedVectors(self.vector_size)
        self.dv.index_to_key, self.dv.key_to_index = other_model.dv.index_to_key, other_model.dv.key_to_index
        self.dv.expandos = other_model.dv.expandos
        super().reset_from(other_model)

    def estimated_lookup_memory(self) -> int:
        """Return gensim's estimate of the bytes for the look-up of tags."""
        return BYTES_PER_TAG * len(self.dv)

    def estimate_memory(self, vocab_size: int | None = None, report: dict[str, int] | None = None) -> dict[str, int]:
        """Return gensim's estimate of bytes for the dictionary, each matrix and the tags, and their total."""
        tags = {"doctag_lookup": self.estimated_lookup_memory()}
        tags["doctag_syn0"] = len(self.dv) * self.vector_size * np.dtype(np.float32).itemsize
        return super().estimate_memory(vocab_size, (report or {}) | tags)

    def init_sims(self, replace: bool = False) -> None:
        """See KeyedVectors.init_sims; for the tags."""
        self.dv.init_sims(replace)

    # -- training -----------------------------------------------------------------------------------

    def _text(self, sentences: Iterable[Any] | None, corpus_file: PathLike | None) -> list[Path] | NumberedSentences:
        documents = () if sentences is None else sentences
        return _files(sentences, corpus_file) or NumberedDocuments(documents, self._names, self.dv)

    def _source(self, source: Any) -> Any:
        if isinstance(source, list):  # files, of which each line is a document
            return LabelledTexts.of_documents(source, None, ReadingOptions())
        texts = LabelledTexts(())
        texts.corpus = Corpus(source)
        return texts

    def _check_training(self, *arguments: Any) -> None:
        super()._check_training(*arguments)
        if type(self)._do_train_job is not Word2Vec._do_train_job:
            raise NotImplementedError(f"{type(self).__name__}._do_train_job would not be called: use gensim")
        if self.dv.vectors.shape != (len(self.dv), self.vector_size):
            raise RuntimeError(f"dv.vectors has shape {self.dv.vectors.shape}, but the model has {len(self.dv)} tags")

    def _model(self, *arguments: Any, **options: Any) -> tuple[View, NDArray[np.int64]]:
        view, rows = super()._model(*arguments, **options)
        settings = replace(view.settings, documents="dm" if self.dm else "dbow+words" if self.dbow_words else "dbow")
        vectors = self.dv.vectors * np.float32(self._vector_scale)
        documents = Documents(Words.of(map(str, range(len(vectors)))), vectors)
        return replace(view, settings=settings, documents=documents), rows

    def _copy_results(self, loss: str, trained: View, initial_model: View, rows: NDArray[np.int64]) -> None:
        super()._copy_results(loss, trained, initial_model, rows)
        if trained.documents and initial_model.documents:
            before, after = initial_model.documents.rows, trained.documents.rows
            vectors = before + self.dv.vectors_lockf[:, None] * (after - before)
            self.dv.vectors = (vectors / np.float32(self._vector_scale)).astype(np.float32)
            self.dv.norms = None

    # -- new documents ------------------------------------------------------------------------------

    def similarity_unseen_docs(
        self,
        doc_words1: Sequence[Any],
        doc_words2: Sequence[Any],
        alpha: float | None = None,
        min_alpha: float | None = None,
        epochs: int | None = None,
    ) -> np.float32:
        """Return the cosine of the vectors of two new documents; see infer_vector."""
        return np.float32(
            cosine(*(self.infer_vector(each, alpha, min_alpha, epochs) for each in (doc_words1, doc_words2)))
        )

    def infer_vector(
        self,
        doc_words: Sequence[Any],
        alpha: float | None = None,
        min_alpha: float | None = None,
        epochs: int | None = None,
    ) -> Floats:
        """Return the vector of a new document, (vector_size,), by training it while the model stays as it is.

        The same words give the same vector; in gensim, they do not. A document without known words gets zeros. Set
        wv.norms to None after you change the matrices in place.

        Args:
            doc_words: The words of the document.
            alpha, min_alpha: The learning rate at the start and at the end; by default, as in the training.
            epochs: The number of passes over the document; by default, as in the training.
        """
        if isinstance(doc_words, str):
            raise TypeError(f"doc_words must be a list of words, not the string {doc_words[:60]!r}")
        if not self.wv.key_to_index:
            raise RuntimeError("you must first build vocabulary before inferring vectors")
        self._check_matrices()
        self.wv.fill_norms()
        arrays = [self.wv.vectors, self.wv.norms, self.syn1neg if self.negative else self.syn1]
        alpha, min_alpha, epochs = alpha or self.alpha, min_alpha or self.min_alpha, epochs or self.epochs
        key = [alpha, min_alpha, epochs, *map(id, arrays)]
        if self._inference is None or self._inference[0] != key:  # copy the matrices once
            view, _ = self._model("ns" if self.negative else "hs")
            settings = replace(view.settings, alpha=alpha, min_alpha=min_alpha, epochs=epochs)
            self._inference = key, arrays, Inference(replace(view, settings=settings))
        index = self.wv.key_to_index
        text = " ".join(str(index[word]) for word in doc_words if word in index)
        (vectors,) = self._inference[2].blocks(Corpus([text]))
        vector: Floats = vectors[0] / np.float32(self._vector_scale)
        return vector

    # -- files --------------------------------------------------------------------------------------

    def save_word2vec_format(
        self,
        fname: PathLike,
        doctag_vec: bool = False,
        word_vec: bool = True,
        prefix: str = "*dt_",
        fvocab: PathLike | None = None,
        binary: bool = False,
    ) -> None:
        """Write the vectors of words, of tags (`doctag_vec`), or both, in word2vec's format.

        Args:
            prefix: The start of the name of each tag.
            fvocab: A second file, for the counts.
        """
        if word_vec:
            total = len(self.wv) + len(self.dv) if doctag_vec else None
            self.wv.save_word2vec_format(fname, fvocab, binary, total)
        if doctag_vec:
            self.dv.save_word2vec_format(
                fname, fvocab, binary, None, not word_vec, prefix, append=word_vec, sort_attr="doc_count"
            )


KeyedVectors._classes["Doc2Vec"] = Doc2Vec


def _files(documents: Iterable[Any] | None, corpus_file: PathLike | None) -> list[Path] | None:
    """Return the file of which each line is a document, if w2v's own reader can read it."""
    is_file = documents is None or isinstance(documents, TaggedLineDocument)
    return files_of(documents, corpus_file) if is_file else None
