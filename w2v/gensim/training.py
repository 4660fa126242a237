"""Train gensim's model with w2v: convert its matrices, settings and sentences to w2v's, and copy the results back."""

from __future__ import annotations

import itertools
import logging
import math
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import GeneratorType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from w2v.errors import Diverged, NothingToTrain, text_warnings_to
from w2v.formats.vector_file import WORD_VIEW
from w2v.gensim import utils
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.sentences import Sentences
from w2v.gensim.vocabulary import sample_as_share
from w2v.losses.registry import Settings, loss_for
from w2v.progress import Progress, Report
from w2v.system.files import PathLike, temporary_folder
from w2v.system.schema import Count, Integer, Number
from w2v.text.text_checks import TYPES, FirstWords, size_advice
from w2v.text.vocabulary import Vocabulary
from w2v.training.model import HasVectors, Model, View
from w2v.training.train import train

log = logging.getLogger("gensim.models.word2vec")

OUTPUT_LAYERS = "syn1", "syn1neg"
DIVERGED_FACTOR = 0.25  # on the learning rate of a run that has diverged
LOWEST_SHARE = 1e-4  # of the learning rate
# Private methods of gensim's class that subclasses override, but that this class would never call.
UNSUPPORTED_OVERRIDES = (
    "_do_train_epoch", "_train_epoch", "_worker_loop", "_job_producer", "_get_next_alpha", "_raw_word_count",
)  # fmt: skip


class StoredAttributes:
    """The attributes of a model that its file stores in addition to the arrays."""

    vector_size: Count
    window: Count
    workers: Integer
    epochs: Count
    corpus_count: Count
    corpus_total_words: Count
    seed: Integer | None
    sg: Integer
    hs: Integer
    negative: Integer
    cbow_mean: Integer
    null_word: Integer
    train_count: Integer
    batch_words: Integer
    sorted_vocab: Integer
    alpha: float
    min_alpha: float
    ns_exponent: float
    total_train_time: float
    min_alpha_yet_reached: float
    running_training_loss: float
    min_count: Number
    effective_min_count: Number
    sample: Number
    max_vocab_size: Integer | None
    max_final_vocab: Integer | None
    compute_loss: bool
    shrink_windows: bool
    comment: Any
    # Only a Doc2Vec uses these:
    dbow_words: Integer = 0
    dm_concat: Integer = 0
    dm_tag_count: Integer = 1


class Trainable(StoredAttributes, HasVectors, utils.SaveLoad):
    """The part of Word2Vec that holds the matrices and trains them; see Word2Vec for the attributes."""

    wv: KeyedVectors
    dv: KeyedVectors  # only of a Doc2Vec
    syn1: NDArray[np.float32]
    syn1neg: NDArray[np.float32]
    layer1_size: int
    random: np.random.RandomState
    _cache: str | None = None  # the folder that stores the ids of a text
    _kind: ClassVar = "Word2Vec"  # the name of the class in its files
    _job_sentences: list[Any]  # the sentences of the last call of _do_train_job
    _batches = math.inf  # the number of batches into which gensim would divide an epoch
    _warned = False  # whether training has warned of an unsuitable text: it does so once per model

    # -- the matrices -------------------------------------------------------------------------------

    def _layers(self) -> list[tuple[str, int]]:
        """Return the names of the output layers, and whether each is used."""
        return list(zip(OUTPUT_LAYERS, (self.hs, self.negative), strict=True))

    def prepare_weights(self, update: bool = False) -> None:
        if update:
            self.update_weights()
        else:
            self.init_weights()

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
        self, loss: str, text: list[Path] | NumberedSentences, start: int, end: int, progress: Report | None
    ) -> tuple[int, int]:
        """Train one loss on files or sentences in the epochs from `start` to `end`, without `end` itself.

        Returns:
            The number of words trained, as expected after subsampling, and the number of words read.
        """
        sentences = text if isinstance(text, NumberedSentences) else None
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
                    start_from = Model({WORD_VIEW: model})
                    result = train(
                        self._source(source),
                        continue_from=start_from,
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
                    logging.getLogger("w2v").warning("%s", str(error))
                break
            except Diverged as error:  # gensim goes on, because it skips updates with large scores
                share *= DIVERGED_FACTOR
                if share < LOWEST_SHARE:
                    raise
                logging.getLogger("w2v").warning("%s; trying again with %g", str(error), share * self._alpha_at(start))
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

    def _source(self, source: Any) -> Any:
        """Return what w2v trains from files, or from sentences."""
        return source

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

    def _do_train_job(self, sentences: list[Any], alpha: float, inits: Any) -> tuple[int, int]:
        """Store a batch of sentences for training. A subclass can override this and pass on other sentences."""
        self._job_sentences += sentences
        words = sum(map(len, sentences))
        return words, words

    @property
    def _overrides_train_job(self) -> bool:
        """Whether a subclass overrides _do_train_job."""
        return type(self)._do_train_job is not Trainable._do_train_job

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


class NumberedSentences:
    """Sentences for training: each word is replaced by its row number, and unknown words are left out.

    Models with subwords keep the words themselves.

    Attributes:
        words: The number of words read in the last iteration, including unknown ones.
        file: The file with the same sentences, if `write` has been called.
    """

    words = 0
    file: Path | None = None

    def __init__(self, sentences: Sentences, wv: KeyedVectors) -> None:
        self.sentences = sentences
        self.replacements = {word: word if wv.subwords else str(row) for word, row in wv.key_to_index.items()}

    def __iter__(self) -> Iterator[list[str]]:
        self.words = 0
        for sentence in self.sentences:
            yield self._numbers(sentence)

    def _numbers(self, sentence: Iterable[Any]) -> list[str]:
        words = list(sentence)
        self.words += len(words)
        return [self.replacements[word] for word in words if word in self.replacements]

    @property
    def is_at_end(self) -> bool:
        """Whether the sentences are an iterator, and the last iteration found it at its end."""
        return isinstance(self.sentences, Iterator) and not self.words

    def write(self, path: Path) -> None:
        """Write the sentences to a file, one per line."""
        with path.open("w") as file:
            file.writelines(" ".join(sentence) + "\n" for sentence in self)
        self.file = path


class JobSentences:
    """The sentences that a subclass's _do_train_job makes from batches, such as random walks from their start nodes."""

    def __init__(self, sentences: Sentences, model: Trainable) -> None:
        self.sentences, self.model = sentences, model
        self._counted: Iterator[Any] | None = None  # an iterator that repeats the sentences read by count()

    def count(self) -> int:
        """Return the number of words, or of the first 20 batches if there are more.

        The next iteration repeats the sentences that this method read, so that a generator loses none of them.
        """
        self._counted, sentences = itertools.tee(self._iterate())
        words = 0
        for sentence in sentences:
            words += len(sentence)
            if words > 20 * self.model.batch_words:
                break
        return words

    def __iter__(self) -> Iterator[Any]:
        counted, self._counted = self._counted, None
        return counted or self._iterate()

    def _iterate(self) -> Iterator[Any]:
        batch: list[Any] = []
        words = 0
        for sentence in self.sentences:
            words += len(sentence)  # type: ignore[arg-type]
            if batch and words > self.model.batch_words:
                yield from self._call_train_job(batch)
                batch, words = [], len(sentence)  # type: ignore[arg-type]
            batch.append(sentence)
        if batch:
            yield from self._call_train_job(batch)

    def _call_train_job(self, batch: list[Any]) -> list[Any]:
        self.model._job_sentences = []
        self.model._do_train_job(batch, self.model.alpha, None)
        return self.model._job_sentences


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


def _replace_rows(array: NDArray[Any], rows: Any, values: NDArray[Any]) -> NDArray[Any]:
    """Replace rows of an array in place, or of a copy if the array is read-only. Return the changed array."""
    array = array if array.flags.writeable else array.copy()
    array[rows] = values
    return array
