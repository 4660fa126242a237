"""gensim.models.word2vec: the Word2Vec class, trained by w2v, and the sentence readers."""

from __future__ import annotations

import itertools
import logging
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from w2v.formats.vector_file import VectorFile
from w2v.gensim import model_file, utils, vector_files
from w2v.gensim.models.callbacks import CallbackAny2Vec
from w2v.gensim.models.keyedvectors import KeyedVectors, pseudorandom_weak_vector
from w2v.gensim.sentences import (
    MAX_WORDS_IN_BATCH,
    BrownCorpus,
    LineSentence,
    PathLineSentences,
    Sentences,
    Text8Corpus,
    files_of,
)
from w2v.gensim.training import JobSentences, NumberedSentences, ProgressLog, Trainable
from w2v.gensim.vocabulary import count_files, count_sentences, effect_on_vocabulary, effective_min_count
from w2v.losses.registry import Settings
from w2v.losses.tree import Tree
from w2v.options import checked_value
from w2v.progress import Report
from w2v.system.files import PathLike, temporary_folder
from w2v.training.model import View

__all__ = ["BrownCorpus", "LineSentence", "PathLineSentences", "Text8Corpus", "Word2Vec"]

log = logging.getLogger("gensim.models.word2vec")

CUM_TABLE_DOMAIN = 2**31 - 1
BYTES_PER_WORD = 500, 700  # gensim's estimate of memory for a word, without and with its path in the Huffman tree
FAST_VERSION = CORPUSFILE_VERSION = 1  # tells programs, as in gensim, that compiled code trains the model


class Word2Vec(Trainable):
    """A word2vec model with gensim 4's interface, trained by w2v.

    Attributes:
        wv: The vectors, as KeyedVectors. Training continues from wv.vectors, including the program's changes to it.
        syn1: The output rows of hierarchical softmax, float32 (V, vector_size). The last row is unused.
        syn1neg: The output rows of negative sampling, float32 (V, vector_size).
        random: The random generator that chooses the seed of each run if `seed` is None.
    """

    _cum_table_domain = CUM_TABLE_DOMAIN

    def __init__(
        self,
        sentences: Sentences | None = None,
        corpus_file: PathLike | None = None,
        vector_size: int = 100,
        alpha: float = 0.025,
        window: int = 5,
        min_count: int = 5,
        max_vocab_size: int | None = None,
        sample: float | None = 1e-3,
        seed: int | None = 1,
        workers: int = 3,
        min_alpha: float = 0.0001,
        sg: int = 0,
        hs: int = 0,
        negative: int = 5,
        ns_exponent: float = 0.75,
        cbow_mean: int = 1,
        hashfxn: Callable[[Any], int] = hash,
        epochs: int = 5,
        null_word: int = 0,
        trim_rule: utils.TrimRule | None = None,
        sorted_vocab: int = 1,
        batch_words: int = MAX_WORDS_IN_BATCH,
        compute_loss: bool = False,
        callbacks: Iterable[CallbackAny2Vec] = (),
        comment: str | None = None,
        max_final_vocab: int | None = None,
        shrink_windows: bool = True,
    ) -> None:
        """Create a model. Given sentences or a corpus file, also build the vocabulary and train.

        The arguments mean the same as in gensim, with these exceptions: `hashfxn` and `comment` have no effect.
        `batch_words` only determines the final learning rate, which equals the rate of gensim's last batch. A `seed` of
        None gives a different seed to each run. With cbow_mean=0, training approximates gensim's sum of context
        vectors by the mean of longer vectors.
        """
        if hashfxn is not hash:
            log.warning("hashfxn has no effect: initial vectors do not depend on a hash of the words")
        self.vector_size = self.layer1_size = int(vector_size)
        self.alpha, self.min_alpha = float(alpha), float(min_alpha)
        self.window, self.shrink_windows = int(window), bool(shrink_windows)
        self.min_count, self.effective_min_count = min_count, min_count
        self.max_vocab_size, self.max_final_vocab = max_vocab_size, max_final_vocab
        self.sample, self.seed, self.workers, self.epochs = sample or 0, seed, int(workers), epochs
        self.sg, self.hs, self.negative, self.ns_exponent = int(sg), int(hs), int(negative), ns_exponent
        self.cbow_mean, self.null_word, self.sorted_vocab = int(cbow_mean), null_word, sorted_vocab
        self.hashfxn, self.batch_words, self.comment = hashfxn, batch_words, comment
        self.compute_loss, self.running_training_loss = bool(compute_loss), 0.0
        self.min_alpha_yet_reached = self.alpha
        self.corpus_count = self.corpus_total_words = self.train_count = 0
        self.total_train_time = 0.0
        self.raw_vocab: dict[Any, int] = {}
        self.wv = self._new_vectors()
        self.random = np.random.RandomState(seed)
        self.load = utils.refuse_load_of_model  # type: ignore[method-assign, assignment]
        if sentences is not None or corpus_file is not None:
            self._build_and_train(sentences, corpus_file, trim_rule, callbacks)
        elif trim_rule is not None or callbacks:
            log.warning("trim_rule and callbacks have no effect here: give them to build_vocab and train")
        self.add_lifecycle_event("created", params=str(self))

    def _build_and_train(
        self,
        sentences: Sentences | None,
        corpus_file: PathLike | None,
        trim_rule: utils.TrimRule | None,
        callbacks: Iterable[CallbackAny2Vec],
    ) -> None:
        self._check_corpus(sentences, corpus_file, passes=self.epochs + 1)
        with self._id_cache():
            self.build_vocab(sentences, corpus_file, trim_rule=trim_rule)
            totals = self.corpus_count, self.corpus_total_words
            self.train(
                sentences, corpus_file, *totals, self.epochs, compute_loss=self.compute_loss, callbacks=callbacks
            )

    def _new_vectors(self) -> KeyedVectors:
        return KeyedVectors(self.vector_size)

    def __str__(self) -> str:
        return f"{type(self).__name__}<vocab={len(self.wv)}, vector_size={self.wv.vector_size}, alpha={self.alpha}>"

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes of a pickle of this class, or of gensim's, which holds the table that w2v computes."""
        vars(self).update({name: value for name, value in state.items() if name != "cum_table"})
        self.load = utils.refuse_load_of_model  # type: ignore[method-assign, assignment]

    # -- vocabulary ---------------------------------------------------------------------------------

    def build_vocab(
        self,
        corpus_iterable: Sentences | None = None,
        corpus_file: PathLike | None = None,
        update: bool = False,
        progress_per: int = 10_000,
        keep_raw_vocab: bool = False,
        trim_rule: utils.TrimRule | None = None,
        **prepare: Any,
    ) -> None:
        """Count the words, choose the vocabulary and initialise the vectors; with `update`, add words to the model."""
        self.corpus_total_words, self.corpus_count = self.scan_vocab(
            corpus_iterable, corpus_file, progress_per, trim_rule=trim_rule
        )
        report = self.prepare_vocab(update, keep_raw_vocab, trim_rule, **prepare)
        self.estimate_memory(report["num_retained_words"])
        self.prepare_weights(update)
        self.add_lifecycle_event("build_vocab", update=update, trim_rule=str(trim_rule))

    def build_vocab_from_freq(
        self,
        word_freq: Mapping[Any, int],
        keep_raw_vocab: bool = False,
        corpus_count: int | None = None,
        trim_rule: utils.TrimRule | None = None,
        update: bool = False,
    ) -> None:
        """Build the vocabulary from counts of words; see build_vocab."""
        self.raw_vocab = dict(word_freq)
        self.corpus_count = corpus_count or 0
        self.prepare_vocab(update, keep_raw_vocab, trim_rule)
        self.prepare_weights(update)

    def scan_vocab(
        self,
        corpus_iterable: Sentences | None = None,
        corpus_file: PathLike | None = None,
        progress_per: int = 10_000,
        workers: int | None = None,
        trim_rule: utils.TrimRule | None = None,
    ) -> tuple[int, int]:
        """Count the words into raw_vocab. Return the numbers of words and sentences."""
        self._check_corpus(corpus_iterable, corpus_file)
        log.info("collecting all words and their counts")
        files = files_of(corpus_iterable, corpus_file)
        if files is None:
            assert corpus_iterable is not None
            counts = count_sentences(corpus_iterable, self.max_vocab_size, trim_rule, progress_per)
        else:
            counts = count_files(files, self.max_vocab_size, self._cache, max(1, workers or self.workers))
        self.raw_vocab, words, n_sentences = counts
        log.info(
            "collected %d word types from a corpus of %d raw words and %d sentences",
            len(self.raw_vocab), words, n_sentences,
        )  # fmt: skip
        return words, n_sentences

    def prepare_vocab(
        self,
        update: bool = False,
        keep_raw_vocab: bool = False,
        trim_rule: utils.TrimRule | None = None,
        min_count: float | None = None,
        sample: float | None = None,
        dry_run: bool = False,
    ) -> dict[str, int]:
        """Choose the vocabulary from raw_vocab, or with `dry_run` only report the effect.

        Returns:
            The numbers of words that are kept, dropped, and left by subsampling; see effect_on_vocabulary.
        """
        raw, wv = self.raw_vocab, self.wv
        min_count, sample = min_count or self.min_count, sample or self.sample
        if sample < 0:
            raise ValueError(f"sample {sample}: it must be 0 or higher")
        lowest = self.effective_min_count = effective_min_count(raw, min_count, self.max_final_vocab)
        kept = [word for word, count in raw.items() if utils.keep_vocab_item(word, count, lowest, trim_rule)]
        log.info("Updating model with new vocabulary" if update else "Creating a fresh vocabulary")
        report = effect_on_vocabulary(len(raw), [raw[word] for word in kept], sample)
        words, tokens = report["num_retained_words"], report["retain_total"]
        for msg in (
            f"effective_min_count={lowest} retains {words} unique words (drops {report['drop_unique']})",
            f"effective_min_count={lowest} leaves {tokens} word corpus",
            f"downsampling leaves estimated {report['downsample_total']} word corpus of prior {tokens}",
        ):
            self.add_lifecycle_event("prepare_vocab", msg=msg)
        log.info("sample=%g downsamples %d most-common words", sample, report["downsample_unique"])
        if dry_run:
            return report
        if not update:
            self.min_count, self.sample = min_count, sample
            wv.index_to_key, wv.key_to_index, wv.expandos = [], {}, {}
            wv.vectors = wv.vectors[:0]  # init_weights will create the new ones
        counts = np.array([raw.get(word, 0) for word in wv.index_to_key], np.int64) + wv.expandos.get("count", 0)
        new = [word for word in kept if word not in wv.key_to_index]
        wv._set_keys(wv.index_to_key + new)
        wv.expandos = wv.expandos | {"count": np.append(counts, [raw[word] for word in new]).astype(np.int64)}
        if self.null_word and "\0" not in wv.key_to_index:
            self.add_null_word()
        wv.allocate_vecattrs()
        if self.sorted_vocab and not update:
            wv.sort_by_descending_frequency()
        if self.hs:
            self.create_binary_tree()
        if not keep_raw_vocab:
            log.info("deleting the raw counts dictionary of %d items", len(raw))
            self.raw_vocab = {}
        return report

    def add_null_word(self) -> None:
        """Add gensim's null word, "\\0", with a count of 1."""
        wv = self.wv
        wv.key_to_index["\0"] = len(wv)
        wv.index_to_key.append("\0")
        wv.set_vecattr("\0", "count", 1)

    def create_binary_tree(self) -> None:
        """Set the attributes "point" and "code": the nodes and the bits of each word's path in the Huffman tree."""
        if len(self.wv) < 2:
            return
        rows, counts = self._rows_by_count()
        tree = Tree.huffman(counts)
        for name, values, kind in (("code", tree.codes, np.uint8), ("point", tree.nodes, np.uint32)):
            paths = self.wv.expandos[name] = np.zeros(len(self.wv), object)
            for row, path in zip(rows.tolist(), np.split(values, tree.starts[1:-1]), strict=True):
                paths[row] = path.astype(kind)

    @property
    def cum_table(self) -> NDArray[np.uint32]:
        """The cumulative distribution of negative sampling, times 2^31 - 1: uint32 (V,)."""
        weights = np.cumsum(self.wv.expandos["count"].astype(np.float64) ** self.ns_exponent)
        table: NDArray[np.uint32] = np.round(weights / weights[-1] * self._cum_table_domain).astype(np.uint32)
        return table

    def make_cum_table(self, domain: int = CUM_TABLE_DOMAIN) -> None:
        """Set the last value of cum_table. Each access computes the table; training does not use it."""
        self._cum_table_domain = domain

    def seeded_vector(self, seed_string: str, vector_size: int) -> NDArray[np.float32]:
        """Return a vector with uniform values in ±0.5 / vector_size, determined by the string and hashfxn."""
        return pseudorandom_weak_vector(vector_size, seed_string, self.hashfxn)

    def estimate_memory(self, vocab_size: int | None = None, report: dict[str, int] | None = None) -> dict[str, int]:
        """Return gensim's estimate of the bytes for the dictionary, for each matrix, and in total.

        Training needs more memory, for the text.

        Args:
            vocab_size: The number of words; by default, the size of the vocabulary.
            report: Other bytes by name, which the result and its total include.
        """
        words = vocab_size or len(self.wv)
        matrix = words * self.vector_size * np.dtype(np.float32).itemsize
        report = report or {}
        report |= {"vocab": words * BYTES_PER_WORD[bool(self.hs)], "vectors": matrix}
        report |= {name: matrix for name, used in self._layers() if used}
        report["total"] = sum(report.values())
        log.info(
            "estimated required memory for %d words and %d dimensions: %d bytes",
            words, self.vector_size, report["total"],
        )  # fmt: skip
        return report

    def init_sims(self, replace: bool = False) -> None:
        """See KeyedVectors.init_sims."""
        self.wv.init_sims(replace)

    def reset_from(self, other_model: Word2Vec) -> None:
        """Copy the vocabulary of another model, and initialise new vectors."""
        self.wv = self._new_vectors()
        self.wv.index_to_key, self.wv.key_to_index = other_model.wv.index_to_key, other_model.wv.key_to_index
        self.wv.expandos = other_model.wv.expandos
        self.corpus_count = other_model.corpus_count
        self.init_weights()

    # -- training -----------------------------------------------------------------------------------

    def train(
        self,
        corpus_iterable: Sentences | None = None,
        corpus_file: PathLike | None = None,
        total_examples: int | None = None,
        total_words: int | None = None,
        epochs: int | None = None,
        start_alpha: float | None = None,
        end_alpha: float | None = None,
        word_count: int = 0,
        queue_factor: int = 2,
        report_delay: float = 1.0,
        compute_loss: bool = False,
        callbacks: Iterable[CallbackAny2Vec] = (),
        **_: Any,
    ) -> tuple[int, int]:
        """Train from the current vectors, with a learning rate that falls linearly.

        The sentences are read once, unless a subclass overrides _do_train_job: then each epoch passes them through
        that method. An iterator, such as map(…), is read in each epoch, as in gensim: all but the first find it at its
        end and train nothing. With both `hs` and `negative`, each epoch trains first one loss and then the other.

        Args:
            total_examples: The number of sentences.
            total_words: The number of words. As in gensim, one of the two is required: it gives the number of gensim's
                batches, which determines the final learning rate.

        Returns:
            The number of words trained, as expected after subsampling, and the number of words read.
        """
        alpha, min_alpha = float(start_alpha or self.alpha), float(end_alpha or self.min_alpha)
        checked_value(Settings, "alpha", alpha or min_alpha)  # gensim trains with the higher one, too
        checked_value(Settings, "min_alpha", min_alpha)
        self._check_corpus(corpus_iterable, corpus_file, passes=epochs or 1)
        self._check_training(alpha, epochs, total_examples, total_words)
        assert epochs is not None
        self.alpha, self.min_alpha, self.epochs = alpha, min_alpha, epochs
        self.compute_loss, self.running_training_loss = compute_loss, 0.0
        callbacks = list(callbacks)
        losses = [name for name, used in (("hs", self.hs), ("ns", self.negative)) if used]
        overrides_job, locked = self._overrides_train_job, bool((self.wv.vectors_lockf != 1).any())
        reads_each_epoch = overrides_job or isinstance(corpus_iterable, Iterator)
        by_epoch = bool(callbacks) or len(losses) > 1 or reads_each_epoch or locked
        spans = list(itertools.pairwise(range(epochs + 1))) if by_epoch else [(0, epochs)]
        jobs = JobSentences(corpus_iterable, self) if overrides_job and corpus_iterable is not None else None
        estimated_words = self.corpus_total_words * (total_examples or 0) / max(1, self.corpus_count)
        self._batches = (jobs.count() if jobs else total_words or estimated_words) / self.batch_words or math.inf
        sentences = corpus_iterable if jobs is None else jobs
        text = self._text(sentences, corpus_file)
        self.add_lifecycle_event(
            "train",
            msg=f"training model with {self.workers} workers on {len(self.wv)} vocabulary and {self.vector_size} "
            f"features, using sg={self.sg} hs={self.hs} sample={self.sample} negative={self.negative} "
            f"window={self.window} shrink_windows={self.shrink_windows}",
        )
        started = time.perf_counter()
        progress = ProgressLog(report_delay) if log.isEnabledFor(logging.INFO) else None  # None: notebooks show a bar
        _call_callbacks(callbacks, "on_train_begin", self)
        trained, read = self._train_spans(text, losses, spans, callbacks, progress, use_cache=not reads_each_epoch)
        seconds = time.perf_counter() - started
        self.total_train_time += seconds
        self.add_lifecycle_event(
            "train",
            msg=f"training on {read} raw words ({trained} effective words) took {seconds:.1f}s, "
            f"{trained / max(seconds, 1e-9):.0f} effective words/s",
        )
        self.train_count += 1
        _call_callbacks(callbacks, "on_train_end", self)
        return trained, read

    def _text(self, sentences: Sentences | None, corpus_file: PathLike | None) -> list[Path] | NumberedSentences:
        """Return the files that w2v reads itself, or else the sentences with row numbers for their words."""
        return files_of(sentences, corpus_file) or NumberedSentences(() if sentences is None else sentences, self.wv)

    def _train_spans(
        self,
        text: list[Path] | NumberedSentences,
        losses: list[str],
        spans: list[tuple[int, int]],
        callbacks: list[CallbackAny2Vec],
        progress: Report | None,
        use_cache: bool,
    ) -> tuple[int, int]:
        """Train each span of epochs, (start, end) without `end` itself, with each loss.

        Args:
            use_cache: Read the text only once, and store its ids for all spans.

        Returns:
            The number of words trained, as expected after subsampling, and the number of words read.
        """
        trained = read = 0
        at_end = False  # whether the sentences are an iterator that an epoch has found at its end
        with self._id_cache() if use_cache and len(spans) * len(losses) > 1 else nullcontext() as folder:
            if folder and isinstance(text, NumberedSentences):
                text.write(folder / "rows")
            for start, end in spans:
                _call_callbacks(callbacks, "on_epoch_begin", self)
                trained_in_span = read_in_span = 0
                if at_end:
                    log.warning("EPOCH %d: supplied example count (0) did not equal expected count", start)
                else:
                    with tempfile.TemporaryDirectory(dir=temporary_folder()) as span_folder:
                        if not use_cache and isinstance(text, NumberedSentences):
                            text.write(Path(span_folder) / "rows")  # for each loss, and for a second try
                        for loss in losses:
                            trained_in_span, read_in_span = self._run(loss, text, start, end, progress)
                    at_end = isinstance(text, NumberedSentences) and text.is_at_end
                # All losses train the same words, so count the words of the last loss only.
                trained, read = trained + trained_in_span, read + read_in_span
                for epoch in range(start, end):
                    shares = (count // (end - start) for count in (read_in_span, trained_in_span))
                    log.info("EPOCH %d: training on %d raw words (%d effective words)", epoch, *shares)
                self.wv.norms = None
                self.min_alpha_yet_reached = self._alpha_at(end)
                _call_callbacks(callbacks, "on_epoch_end", self)
        if not read:
            logging.getLogger("w2v").warning(
                "nothing was trained: the text is empty, or an iterator that has been read before; give a list"
            )
        return trained, read

    def get_latest_training_loss(self) -> float:
        """Return the sum of the losses of all predictions in the last call of `train` with compute_loss."""
        return self.running_training_loss

    # -- predicting ---------------------------------------------------------------------------------

    def score(
        self,
        sentences: Sentences,
        total_sentences: int = 1_000_000,
        chunksize: int = 100,
        queue_factor: int = 2,
        report_delay: float = 1,
    ) -> NDArray[np.float32]:
        """Return the natural log probability of each sentence, float32 (n,), from windows of full size.

        Raises:
            RuntimeError: The model has no hierarchical softmax, or no vocabulary.
        """
        if not self.wv.key_to_index:
            raise RuntimeError("you must first build vocabulary before scoring new data")
        if not self.hs:
            raise RuntimeError("score needs hierarchical softmax: train with hs=1 and negative=0")
        model, rows = self._model("hs")
        model_rows = np.argsort(rows)  # model_rows[r] is the model's row for row r of wv
        index = self.wv.key_to_index
        known = ([index[word] for word in sentence if word in index] for sentence in sentences)
        return np.array(
            [self._score(model, model_rows[words]) for words in itertools.islice(known, total_sentences)], np.float32
        )

    def _score(self, model: View, words: NDArray[np.int64]) -> float:
        """Return the log probability of one sentence, given as rows of `model`: int64 (n,)."""
        distance = np.abs(np.subtract.outer(np.arange(len(words)), np.arange(len(words))))
        context = (distance > 0) & (distance <= self.window)  # (n, n)
        if self.sg:
            centres, input_rows = np.nonzero(context)
            inputs = model.inputs[words]
        else:
            centres = np.flatnonzero(context.any(axis=1))
            input_rows = centres
            divisors = np.maximum(1, context.sum(axis=1)) if self.cbow_mean else np.full(len(words), self._vector_scale)
            inputs = (context @ model.inputs[words] / divisors[:, None]).astype(np.float32)
        return float(model.log_probabilities_of(inputs, input_rows, words[centres]).sum()) if len(centres) else 0.0

    def predict_output_word(
        self, context_words_list: Iterable[Any], topn: int = 10
    ) -> list[tuple[Any, np.float32]] | None:
        """Return the `topn` most probable centre words as (word, probability), or None if all words are unknown.

        Raises:
            RuntimeError: The model was not trained with negative sampling.
        """
        if not self.negative:
            raise RuntimeError("predict_output_word needs negative sampling: train with negative above 0")
        if not len(self.wv) or not hasattr(self, "syn1neg"):
            raise RuntimeError("Parameters required for predicting the output words not found.")
        rows = [self.wv.get_index(word) for word in context_words_list if word in self.wv]
        if not rows:
            log.warning("none of the context words is in the vocabulary")
            return None
        context = self.wv.vectors[rows].sum(axis=0) / (len(rows) if self.cbow_mean else 1)
        scores = self.syn1neg @ context
        probabilities = np.exp(scores - scores.max())
        probabilities /= probabilities.sum()
        best = np.argsort(-probabilities, kind="stable")[:topn].tolist()
        return [(self.wv.index_to_key[row], probabilities[row]) for row in best]

    # -- files --------------------------------------------------------------------------------------

    def save(self, fname: PathLike | BinaryIO, **_: Any) -> None:
        """Write w2v's native format, whatever the name of the file. gensim's arguments for pickles have no effect.

        gensim cannot open the file: for gensim, use wv.save_word2vec_format. The file keeps your own attributes if they
        are arrays of numbers or JSON values. A warning names all others.
        """
        self.add_lifecycle_event("saving", fname_or_handle=str(fname))
        vector_files.write(fname, model_file.content_of(self))
        log.info("saved %s", fname)

    @classmethod
    def load(cls, fname: PathLike, mmap: str | None = None, **_: Any) -> Self:
        """Read a file that `save` or gensim's own `save` wrote. From gensim's file, keep numbers, text and arrays.

        Returns:
            A model of the class that was saved: a FastText, for instance, if the file holds a FastText.

        Raises:
            AttributeError: The file holds only vectors.
            W2VError: The file is damaged.
        """
        log.info("loading %s object from %s", cls.__name__, fname)
        content = vector_files.read(fname, mmap is not None)
        saved = content.header.gensim
        if saved and saved.kind in model_file.MODEL_CLASSES and saved.kind != cls._kind:
            cls = KeyedVectors._classes.get(saved.kind, cls)
        return cls._from_file(fname, content)

    @classmethod
    def _from_file(cls, path: PathLike, content: VectorFile) -> Self:
        model = cls.__new__(cls)
        Word2Vec.__init__(model)  # not cls(): the constructor of a subclass may require arguments
        model_file.restore(model, path, content)
        model.add_lifecycle_event("loaded", fname=str(path))
        return model


KeyedVectors._classes["Word2Vec"] = Word2Vec


def _call_callbacks(callbacks: Iterable[CallbackAny2Vec], name: str, model: Word2Vec) -> None:
    for callback in callbacks:
        getattr(callback, name)(model)
