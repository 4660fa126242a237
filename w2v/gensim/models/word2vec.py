"""gensim.models.word2vec: the Word2Vec class, trained by w2v, and the sentence readers."""

from __future__ import annotations

import itertools
import logging
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import GeneratorType
from typing import Any, BinaryIO, ClassVar, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from w2v._errors import Diverged, NothingToTrain, W2VError, text_warnings_to
from w2v._formats import native
from w2v._formats.gensim import TAGS
from w2v._formats.header import GensimObject
from w2v._formats.vector_file import WORD_VIEW, Array, VectorFile
from w2v._losses.registry import Settings, loss_for
from w2v._losses.tree import Tree
from w2v._options import checked_value
from w2v._progress import Progress, Report
from w2v._system.files import PathLike, temporary_folder
from w2v._system.schema import Count, Integer, Number, convert
from w2v._text.text_checks import TYPES, FirstWords, size_advice
from w2v._text.vocabulary import Vocabulary
from w2v._training.model import HasVectors, Model, View
from w2v._training.train import train
from w2v.gensim import files, utils
from w2v.gensim import sentences as texts
from w2v.gensim.models.callbacks import CallbackAny2Vec
from w2v.gensim.models.keyedvectors import KeyedVectors, pseudorandom_weak_vector
from w2v.gensim.sentences import BrownCorpus, LineSentence, PathLineSentences, Sentences, Text8Corpus

__all__ = ["BrownCorpus", "LineSentence", "PathLineSentences", "Text8Corpus", "Word2Vec"]

log = logging.getLogger("gensim.models.word2vec")
own_log = logging.getLogger("w2v")  # gensim's loggers are silent by default, and users must see these messages

CUM_TABLE_DOMAIN = 2**31 - 1
BYTES_PER_WORD = 500, 700  # gensim's estimate of memory for a word, without and with its path in the Huffman tree
FAST_VERSION = CORPUSFILE_VERSION = 1  # tells programs, as in gensim, that compiled code trains the model
OUTPUT_LAYERS = "syn1", "syn1neg"
DIVERGED_FACTOR = 0.25  # on the learning rate of a run that has diverged
LOWEST_SHARE = 1e-4  # of the learning rate
# Private methods of gensim's class that subclasses override, but that this class would never call.
UNSUPPORTED_OVERRIDES = (
    "_do_train_epoch", "_train_epoch", "_worker_loop", "_job_producer", "_get_next_alpha", "_raw_word_count",
)  # fmt: skip


# The attributes of a model that its file stores in addition to the arrays. gensim's files may lack some.
ATTRIBUTE_TYPES: dict[str, Any] = {
    **dict.fromkeys(("vector_size", "window", "epochs", "corpus_count", "corpus_total_words"), Count),
    **dict.fromkeys(("workers", "sg", "hs", "negative", "cbow_mean", "null_word", "sorted_vocab"), Integer),
    **dict.fromkeys(("train_count", "batch_words", "dbow_words", "dm_concat", "dm_tag_count"), Integer),
    **dict.fromkeys(("seed", "max_vocab_size", "max_final_vocab"), Integer | None),
    **dict.fromkeys(("min_count", "effective_min_count", "sample"), Number),
    **dict.fromkeys(("alpha", "min_alpha", "min_alpha_yet_reached", "ns_exponent"), float),
    **dict.fromkeys(("total_train_time", "running_training_loss"), float),
    **dict.fromkeys(("compute_loss", "shrink_windows"), bool),
    "comment": Any,
}
StoredAttributes = TypedDict("StoredAttributes", ATTRIBUTE_TYPES, total=False)  # type: ignore[misc]
MODEL_CLASSES = ("Word2Vec", "FastText", "Doc2Vec")
USER_ATTRIBUTES = "gensim.model"  # prefix of the tensors that hold the user's attributes
LOCKS = "vectors_lockf"
OWN_ATTRIBUTES = {*ATTRIBUTE_TYPES, *OUTPUT_LAYERS, "wv", "dv", "layer1_size", "raw_vocab", "hashfxn", "random", "load"}


class Word2Vec(HasVectors, utils.SaveLoad):
    """A word2vec model with gensim 4's interface, trained by w2v.

    Attributes:
        wv: The vectors, as KeyedVectors. Training continues from wv.vectors, including the program's changes to it.
        syn1: The output rows of hierarchical softmax, float32 (V, vector_size). The last row is unused.
        syn1neg: The output rows of negative sampling, float32 (V, vector_size).
        random: The random generator that chooses the seed of each run if `seed` is None.
    """

    wv: KeyedVectors
    syn1: NDArray[np.float32]
    syn1neg: NDArray[np.float32]
    # Only a Doc2Vec uses these:
    dv: KeyedVectors
    dbow_words = dm_concat = 0
    dm_tag_count = 1
    _cum_table_domain = CUM_TABLE_DOMAIN
    _cache: str | None = None  # the folder that stores the ids of a text
    _kind: ClassVar = "Word2Vec"  # the name of the class in its files
    _job_sentences: list[Any]  # the sentences of the last call of _do_train_job
    _batches = math.inf  # the number of batches into which gensim would divide an epoch
    _warned = False  # whether training has warned of an unsuitable text: it does so once per model

    def __init__(
        self,
        sentences: Sentences | None = None,
        corpus_file: PathLike | None = None,
        vector_size: int = 100,
        alpha: float = 0.025,
        window: int = 5,
        min_count: float = 5,
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
        batch_words: int = texts.MAX_WORDS_IN_BATCH,
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
            self._check_corpus(sentences, corpus_file, passes=self.epochs + 1)
            with self._id_cache():
                self.build_vocab(sentences, corpus_file, trim_rule=trim_rule)
                totals = self.corpus_count, self.corpus_total_words
                self.train(
                    sentences, corpus_file, *totals, self.epochs, compute_loss=self.compute_loss, callbacks=callbacks
                )
        elif trim_rule is not None or callbacks:
            log.warning("trim_rule and callbacks have no effect here: give them to build_vocab and train")
        self.add_lifecycle_event("created", params=str(self))

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
        paths = texts.files_of(corpus_iterable, corpus_file)
        if paths is None:
            assert corpus_iterable is not None
            counts = texts.count_sentences(corpus_iterable, self.max_vocab_size, trim_rule, progress_per)
        else:
            counts = texts.count_files(paths, self.max_vocab_size, self._cache, max(1, workers or self.workers))
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
        lowest = min_count
        if self.max_final_vocab is not None and self.max_final_vocab < len(raw):
            lowest = max(sorted(raw.values(), reverse=True)[self.max_final_vocab] + 1, min_count)
        self.effective_min_count = lowest
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

    # -- the matrices -------------------------------------------------------------------------------

    def _layers(self) -> list[tuple[str, int]]:
        """Return the names of the output layers, and whether each is used."""
        return list(zip(OUTPUT_LAYERS, (self.hs, self.negative), strict=True))

    def prepare_weights(self, update: bool = False) -> None:
        (self.update_weights if update else self.init_weights)()

    def init_weights(self) -> None:
        """Initialise the vectors randomly and the output rows with 0."""
        log.info("resetting layer weights")
        self.wv.vectors = self.wv.vectors[:0]
        self.wv.resize_vectors(self.seed)
        self.wv.vectors_lockf = np.ones(1, np.float32)
        self._resize_outputs(keep=0)

    def update_weights(self) -> None:
        """Add vectors and output rows for the words that the last build_vocab added."""
        log.info("updating layer weights")
        known = len(self.wv.vectors)
        if not known:
            raise RuntimeError(
                "You cannot do an online vocabulary-update of a model which has no prior vocabulary. First build the "
                "vocabulary of your model with a corpus before doing an online update."
            )
        self.wv.resize_vectors(self.seed)
        self._resize_outputs(keep=known)

    def _resize_outputs(self, keep: int) -> None:
        for name, used in self._layers():
            if used:
                rows = np.zeros((len(self.wv), self.vector_size), np.float32)
                if keep:
                    rows[:keep] = getattr(self, name)
                setattr(self, name, rows)

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
        overrides_job = type(self)._do_train_job is not Word2Vec._do_train_job
        locked = bool((self.wv.vectors_lockf != 1).any())
        reads_each_epoch = overrides_job or isinstance(corpus_iterable, Iterator)
        by_epoch = bool(callbacks) or len(losses) > 1 or reads_each_epoch or locked
        spans = list(itertools.pairwise(range(epochs + 1))) if by_epoch else [(0, epochs)]
        jobs = None
        if overrides_job and corpus_iterable is not None:
            jobs = texts.JobSentences(corpus_iterable, self.batch_words, self._call_train_job)
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

    def _text(self, sentences: Sentences | None, corpus_file: PathLike | None) -> list[Path] | texts.NumberedSentences:
        """Return the files that w2v reads itself, or else the sentences with row numbers for their words."""
        files_of_text = texts.files_of(sentences, corpus_file)
        return files_of_text or texts.NumberedSentences(() if sentences is None else sentences, self._names)

    def _source(self, source: Any) -> Any:
        """Return what w2v trains from files, or from sentences."""
        return source

    @property
    def _names(self) -> dict[Any, str]:
        """The words of `wv` as w2v sees them. In gensim, any object can be a word; n-grams need the letters."""
        return {word: word if self.wv.subwords else str(row) for word, row in self.wv.key_to_index.items()}

    def _train_spans(
        self,
        text: list[Path] | texts.NumberedSentences,
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
            if folder and isinstance(text, texts.NumberedSentences):
                text.write(folder / "rows")
            for start, end in spans:
                _call_callbacks(callbacks, "on_epoch_begin", self)
                trained_in_span = read_in_span = 0
                if at_end:
                    log.warning("EPOCH %d: supplied example count (0) did not equal expected count", start)
                else:
                    with tempfile.TemporaryDirectory(dir=temporary_folder()) as span_folder:
                        if not use_cache and isinstance(text, texts.NumberedSentences):
                            text.write(Path(span_folder) / "rows")  # for each loss, and for a second try
                        for loss in losses:
                            trained_in_span, read_in_span = self._run(loss, text, start, end, progress)
                    at_end = isinstance(text, texts.NumberedSentences) and text.is_at_end
                # All losses train the same words, so count the words of the last loss only.
                trained, read = trained + trained_in_span, read + read_in_span
                for epoch in range(start, end):
                    shares = (count // (end - start) for count in (read_in_span, trained_in_span))
                    log.info("EPOCH %d: training on %d raw words (%d effective words)", epoch, *shares)
                self.wv.norms = None
                self.min_alpha_yet_reached = self._alpha_at(end)
                _call_callbacks(callbacks, "on_epoch_end", self)
        if not read:
            own_log.warning(
                "nothing was trained: the text is empty, or an iterator that has been read before; give a list"
            )
        return trained, read

    def get_latest_training_loss(self) -> float:
        """Return the sum of the losses of all predictions in the last call of `train` with compute_loss."""
        return self.running_training_loss

    # -- the settings -------------------------------------------------------------------------------

    def _alpha_at(self, epoch: int) -> float:
        """Return the learning rate after `epoch` epochs, so that training ends with the same rate as in gensim.

        gensim lowers the rate between batches only, so its last batch still has a rate above min_alpha.
        """
        start, batches = max(self.alpha, self.min_alpha), self.epochs * max(1, self._batches)
        return start + (self.min_alpha - start) * (1 - 1 / batches) * epoch / self.epochs

    def _rows_by_count(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of the words, the most frequent first, and their counts, at least 1: int64 (V,) each."""
        counts = np.maximum(1, self.wv.expandos["count"])
        rows = np.argsort(-counts, kind="stable")
        return rows, counts[rows]

    def _model(
        self, loss: str, numbers_as_words: bool = True, start: int = 0, end: int = 1, share: float = 1.0
    ) -> tuple[View, NDArray[np.int64]]:
        """Return a w2v model that trains one loss in the epochs from `start` to `end`, without `end` itself.

        Args:
            numbers_as_words: Use row numbers in `wv` as words, because in gensim any object can be a word. Ignored with
                subwords, which need the letters of the words.
            share: The factor on the learning rate.

        Returns:
            The model, with a vocabulary sorted by count, and the row in `wv` of each of its words, (V,).
        """
        wv, subwords = self.wv, self.wv.subwords
        rows, counts = self._rows_by_count()
        numbers_as_words = numbers_as_words and not subwords
        words = list(map(str, rows.tolist())) if numbers_as_words else [wv.index_to_key[row] for row in rows.tolist()]
        vocabulary = Vocabulary(words, counts)
        options: dict[str, Any] = {"negative": self.negative, "ns_exponent": self.ns_exponent} if loss == "ns" else {}
        if subwords:
            options |= {"subwords": (subwords.shortest, subwords.longest), "buckets": subwords.buckets}
        seed = int(self.random.randint(1 << 31)) if self.seed is None else self.seed
        settings = Settings(
            model="skipgram" if self.sg else "cbow",
            loss=loss,
            vector_size=self.vector_size,
            window=self.window,
            shrink_windows=self.shrink_windows,
            min_count=0,
            sample=sample_as_share(self.sample, vocabulary.tokens),
            epochs=end - start,
            alpha=self._alpha_at(start) * share,
            min_alpha=self._alpha_at(end) * share,
            seed=seed + 1_000_003 * self.train_count + start,  # each call of train and each epoch has its own
            workers=max(1, math.ceil(min(self.workers, self._batches))),  # in gensim, one thread trains a batch
            **options,
        )
        inputs = wv.vectors[rows] * np.float32(self._vector_scale)
        outputs = self.syn1[:-1] if loss == "hs" else self.syn1neg[rows]
        return View(settings, vocabulary, inputs, outputs, loss_for(settings, vocabulary), ngrams=wv.ngrams), rows

    @property
    def _vector_scale(self) -> float:
        """The factor from vectors in `wv` to w2v's vectors. It differs from 1 only with cbow_mean=0.

        With cbow_mean=0, gensim predicts from the sum of the n context vectors, and adds 1/n of the gradient to each.
        w2v predicts from the mean. If every window had n words, w2v would train the same as gensim with vectors
        that are n times as long. The factor uses the mean of 1/n over the window sizes.
        """
        if self.sg or self.cbow_mean:
            return 1.0
        sizes = np.arange(1, self.window + 1) if self.shrink_windows else np.array([self.window])
        return float(1 / np.mean(1 / (2 * sizes)))

    # -- a run --------------------------------------------------------------------------------------

    def _run(
        self, loss: str, text: list[Path] | texts.NumberedSentences, start: int, end: int, progress: Report | None
    ) -> tuple[int, int]:
        """Train one loss on files or sentences in the epochs from `start` to `end`, without `end` itself.

        Returns:
            The number of words trained, as expected after subsampling, and the number of words read.
        """
        sentences = text if isinstance(text, texts.NumberedSentences) else None
        source = text if sentences is None else sentences.file or sentences
        warned, self._warned = self._warned, True
        # w2v sees row numbers instead of the words of sentences, so that its advice would be wrong.
        report = log.warning if not (warned or sentences) else log.debug
        trained: View | None = None
        share = 1.0  # of the learning rate
        while trained is None:
            model, rows = self._model(loss, sentences is not None, start, end, share)
            try:
                with text_warnings_to(report):
                    result = train(
                        self._source(source),
                        continue_from=Model({WORD_VIEW: model}),
                        alpha=model.settings.alpha,
                        min_alpha=model.settings.min_alpha,
                        cache=self._cache,
                        progress=progress,
                    )
                    trained = result.views[WORD_VIEW]
            except NothingToTrain as error:
                if sentences and not sentences.words:
                    log.warning("EPOCH %d: supplied example count (0) did not equal expected count", start)
                else:
                    # Log only the text: a record with the error would keep the memory-mapped ids.
                    own_log.warning("%s", str(error))
                break
            except Diverged as error:  # gensim goes on, because it skips updates with large scores
                share *= DIVERGED_FACTOR
                if share < LOWEST_SHARE:
                    raise
                own_log.warning("%s; trying again with %g", str(error), share * self._alpha_at(start))
        if sentences and not warned:
            words = FirstWords(list(map(str, self.wv.index_to_key[:TYPES])), self.wv.expandos["count"][:TYPES])
            if line := size_advice(words, sentences.words, None):
                log.warning("%s", line)
        if trained is None:
            return 0, sentences.words * (end - start) if sentences else 0
        self._copy_results(loss, trained, model, rows)
        keep_probabilities = model.vocabulary.keep_probabilities(model.settings.sample)
        kept_share = float(keep_probabilities @ model.vocabulary.counts) / model.vocabulary.tokens
        read = sentences.words if sentences else int(trained.metrics["tokens_read"])
        return round(trained.metrics["tokens_trained"] * kept_share), read * (end - start)

    def _copy_results(self, loss: str, trained: View, initial_model: View, rows: NDArray[np.int64]) -> None:
        """Copy the matrices and the loss of a run into this object.

        Args:
            initial_model: The model at the start of the run.
            rows: The row in `wv` of each of its words.
        """
        wv = self.wv
        inputs = np.asarray(trained.inputs, np.float32)
        locks = wv.vectors_lockf[rows if len(wv.vectors_lockf) > 1 else slice(None), None]
        if (locks != 1).any():
            inputs = initial_model.inputs + locks * (inputs - initial_model.inputs)
        wv.vectors = _replace_rows(wv.vectors, rows, inputs / np.float32(self._vector_scale))
        if trained.ngrams:
            wv.ngrams = trained.ngrams
        if loss == "hs":
            self.syn1 = _replace_rows(self.syn1, slice(len(wv) - 1), trained.outputs)
        else:
            self.syn1neg = _replace_rows(self.syn1neg, rows, trained.outputs)
        if self.compute_loss:
            means, counts = trained.metrics["loss"], trained.metrics["predictions"]
            self.running_training_loss += sum(mean * n for mean, n in zip(means, counts, strict=True) if n)

    def _call_train_job(self, batch: list[Any]) -> list[Any]:
        """Return the sentences that _do_train_job makes from a batch."""
        self._job_sentences = []
        self._do_train_job(batch, self.alpha, None)
        return self._job_sentences

    def _do_train_job(self, sentences: list[Any], alpha: float, inits: Any) -> tuple[int, int]:
        """Store a batch of sentences for training. A subclass can override this and pass on other sentences."""
        self._job_sentences += sentences
        words = sum(map(len, sentences))
        return words, words

    @contextmanager
    def _id_cache(self) -> Iterator[Path]:
        """Store the ids of a text for later runs, which then need not read it. Yield the temporary folder."""
        previous = self._cache
        with tempfile.TemporaryDirectory(dir=temporary_folder()) as folder:
            self._cache = previous or folder
            try:
                yield Path(folder)
            finally:
                self._cache = previous

    # -- checks -------------------------------------------------------------------------------------

    def _check_corpus(self, sentences: Any, file: PathLike | None, passes: int = 1) -> None:
        if (sentences is None) == (file is None):
            raise TypeError("give either sentences (corpus_iterable) or corpus_file")
        if file is not None and not Path(file).is_file():
            raise TypeError(f"corpus_file must be the path of a file, not {file!r}")
        if sentences is not None and not isinstance(sentences, Iterable):
            raise TypeError(f"sentences must be an iterable of lists of words, not {sentences!r}")
        if isinstance(sentences, GeneratorType) and passes > 1:
            raise TypeError(f"a generator cannot be read {passes} times: give a list, or an object with __iter__")

    def _check_training(
        self, alpha: float, epochs: int | None, total_examples: int | None, total_words: int | None
    ) -> None:
        if not self.hs and not self.negative:
            raise ValueError("set hs=1 or negative above 0: without either, nothing is trained")
        if self.hs and self.negative:
            log.warning(
                "Both hierarchical softmax and negative sampling are activated. This is probably a mistake: "
                "set hs=0 or negative=0."
            )
        if alpha > self.min_alpha_yet_reached:
            log.warning("Effective 'alpha' higher than previous training cycles")
        if not self.wv.key_to_index:
            raise RuntimeError("you must first build vocabulary before training the model")
        if not len(self.wv.vectors):
            raise RuntimeError("you must initialize vectors before training the model")
        if total_words is None and total_examples is None:
            raise ValueError("give total_examples or total_words, such as total_examples=model.corpus_count")
        if not epochs or epochs < 0:
            raise ValueError("give the number of epochs, such as epochs=model.epochs")
        self._check_matrices()
        for name in UNSUPPORTED_OVERRIDES:
            if hasattr(self, name):
                raise NotImplementedError(
                    f"{type(self).__name__}.{name} would not be called: of gensim's private methods, w2v calls only "
                    "_do_train_job; train this class with gensim"
                )

    def _check_matrices(self) -> None:
        """Raise RuntimeError if the program replaced the words and vectors, but not the counts or output rows."""
        shape = len(self.wv), self.vector_size
        arrays: dict[str, NDArray[Any]] = {"wv.vectors": self.wv.vectors}
        arrays |= {name: getattr(self, name, np.empty((0, 0))) for name, used in self._layers() if used}
        for name, array in arrays.items():
            if array.shape != shape:
                raise RuntimeError(f"{name} has shape {array.shape}, but the words of the model need {shape}")
        if "count" not in self.wv._complete_attributes():
            raise RuntimeError("the words of the model have no counts, which training needs: build_vocab counts them")

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
        content = self.wv.to_vector_file()
        arrays = {LOCKS: self.wv.vectors_lockf} | {name: getattr(self, name, None) for name in OUTPUT_LAYERS}
        for key, array in arrays.items():
            if array is not None and array.shape in _shapes(key, content.vectors):
                content.tensors[key] = array
            elif array is not None:
                files.warn_not_saved(f"{key} of shape {array.shape}, for vectors of shape {content.vectors.shape}")
        if len(getattr(self, "dv", ())):
            tags = native.arrays_of(self.dv.to_vector_file()) | {LOCKS: self.dv.vectors_lockf}
            content.tensors.update({TAGS + name: array for name, array in tags.items()})
        content.tensors.update(files.pack(USER_ATTRIBUTES, files.user_attributes(self, OWN_ATTRIBUTES)))
        settings = {name: getattr(self, name) for name in ATTRIBUTE_TYPES}
        settings = {name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()}
        header = replace(content.header, gensim=GensimObject(self._kind, settings))
        files.write(fname, replace(content, header=header))
        log.info("saved %s", fname)

    @classmethod
    def load(cls, fname: PathLike, mmap: str | None = None, **_: Any) -> Self:
        """Read a file that `save` or gensim's own `save` wrote. From gensim's file, keep numbers, text and arrays.

        Returns:
            A model of the class that was saved: a FastText, for instance, if the file holds a FastText.

        Raises:
            AttributeError: The file holds only vectors.
            NotImplementedError: The file holds a Doc2Vec with dm_concat.
            W2VError: The file is damaged.
        """
        log.info("loading %s object from %s", cls.__name__, fname)
        content = files.read(fname, mmap is not None)
        saved = content.header.gensim
        if saved and saved.kind in MODEL_CLASSES and saved.kind != cls._kind:
            cls = KeyedVectors._classes.get(saved.kind, cls)
        return cls._from_file(fname, content)

    @classmethod
    def _from_file(cls, path: PathLike, content: VectorFile) -> Self:
        stored = content.header.gensim
        if not stored or stored.kind not in MODEL_CLASSES:
            raise AttributeError(f"{path} is not a Word2Vec model: it holds only vectors; use KeyedVectors.load")
        settings = dict(stored.attributes)
        refuse_concatenation(settings.get("dm_concat", 0))
        for name, value in settings.items():
            if isinstance(value, bool) and ATTRIBUTE_TYPES.get(name) is not bool:  # gensim 3 saves some numbers as True
                settings[name] = int(value)
        arrays = {name: content.tensors[name] for name in (LOCKS, *OUTPUT_LAYERS) if name in content.tensors}
        for name, array in arrays.items():
            if array.shape not in _shapes(name, content.vectors) or array.dtype != np.float32:
                raise W2VError(f"{path}: damaged: its arrays do not fit together")
        model = cls.__new__(cls)
        Word2Vec.__init__(model)  # not cls(): the constructor of a subclass may require arguments
        vars(model).update(files.unpack(path, USER_ATTRIBUTES, content.tensors))
        model.wv = type(model.wv)._from_file(path, content)
        model.wv.vectors = model.wv.vectors.astype(np.float32, copy=False)
        model.wv.vectors_lockf = arrays.pop(LOCKS, np.ones(1, np.float32))
        vars(model).update(convert(StoredAttributes, settings, f"{path}: its settings"), **arrays)
        model.vector_size = model.layer1_size = model.wv.vector_size  # some files of gensim 3.2 lack it
        if stored.kind == "Doc2Vec":
            model.dv = _tags_from_file(path, content, model.vector_size)
        model.add_lifecycle_event("loaded", fname=str(path))
        return model


KeyedVectors._classes["Word2Vec"] = Word2Vec


def refuse_concatenation(dm_concat: object) -> None:
    """Raise NotImplementedError if a Doc2Vec concatenates the vectors of a window."""
    if dm_concat:
        raise NotImplementedError(
            f"dm_concat={dm_concat}: w2v does not concatenate the vectors of a window: use dm_mean=1, or gensim"
        )


def _tags_from_file(path: PathLike, content: VectorFile, vector_size: int) -> KeyedVectors:
    """Return the tags of a Doc2Vec that a file holds. Raise W2VError if they are damaged."""
    arrays = {name.removeprefix(TAGS): array for name, array in content.tensors.items() if name.startswith(TAGS)}
    locks, tags = arrays.pop(LOCKS, np.ones(1, np.float32)), KeyedVectors(vector_size)
    if arrays:
        tags = KeyedVectors._from_file(path, native.from_arrays(path, arrays, {}))
    if tags.vectors.shape[1] != vector_size or locks.shape not in _shapes(LOCKS, tags.vectors):
        raise W2VError(f"{path}: damaged: the arrays of its tags do not fit together")
    tags.vectors_lockf = locks
    return tags


def _call_callbacks(callbacks: Iterable[CallbackAny2Vec], name: str, model: Word2Vec) -> None:
    for callback in callbacks:
        getattr(callback, name)(model)


class ProgressLog:
    """A progress callback that logs at most once per `report_delay` seconds."""

    def __init__(self, report_delay: float) -> None:
        self.delay, self.last_time = report_delay, time.perf_counter()

    def __call__(self, progress: Progress) -> None:
        now = time.perf_counter()
        if progress.phase == "train" and progress.total and now - self.last_time >= self.delay:
            self.last_time = now
            log.info(
                "EPOCH %d - PROGRESS: at %.2f%% words, %.0f words/s",
                (progress.epoch or 1) - 1, 100 * progress.done / progress.total, progress.rate or 0,
            )  # fmt: skip


def sample_as_share(sample: float, total: int) -> float:
    """Convert gensim's `sample` to a share of the `total` words. A `sample` of 1 or more is a number of words."""
    # The factor (3 + √5) / 2 is gensim's.
    return sample if sample < 1 else min(1.0, int(sample * (3 + np.sqrt(5)) / 2) / max(1, total))


def effect_on_vocabulary(distinct_words: int, kept_counts: list[int], sample: float) -> dict[str, int]:
    """Return what gensim's prepare_vocab reports: how many words are kept and dropped, and what subsampling leaves.

    Args:
        distinct_words: The number of different words before min_count.
        kept_counts: The counts of the words of the vocabulary.
    """
    counts = np.array(kept_counts, np.int64)
    total = int(counts.sum())
    threshold = sample_as_share(sample, total) * total or total
    share = np.minimum(1, np.sqrt(threshold / counts) + threshold / counts)
    return {
        "drop_unique": distinct_words - len(kept_counts),
        "retain_total": total,
        "downsample_unique": int((share < 1).sum()),
        "downsample_total": int((share * counts).sum()),
        "num_retained_words": len(kept_counts),
    }


def _replace_rows(array: NDArray[Any], rows: Any, values: NDArray[Any]) -> NDArray[Any]:
    """Replace rows of an array in place, or of a copy if the array is read-only. Return the changed array."""
    array = array if array.flags.writeable else array.copy()
    array[rows] = values
    return array


def _shapes(name: str, vectors: Array) -> list[tuple[int, ...]]:
    """Return the shapes that the array `name` of a model with these vectors may have."""
    return [(1,), (len(vectors),)] if name == LOCKS else [vectors.shape]
