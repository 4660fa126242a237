"""What a model of gensim's needs to be trained by w2v: both matrices, its settings as w2v's, sentences as rows."""

from __future__ import annotations

import itertools
import logging
import math
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import GeneratorType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from w2v.errors import NothingToTrain, TextWarning, warn_of_text
from w2v.gensim import utils
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.sentences import Sentences
from w2v.gensim.vocabulary import sample_share
from w2v.losses.registry import Settings, loss_for
from w2v.progress import Progress, Report
from w2v.system.files import PathLike, temporary_folder
from w2v.system.schema import Count, Integer, Number
from w2v.text.text_checks import TYPES, FirstWords, size_advice
from w2v.text.vocabulary import Vocabulary
from w2v.training.model import HasVectors, Model
from w2v.training.train import train

log = logging.getLogger("gensim.models.word2vec")

OUTPUT_LAYERS = "syn1", "syn1neg"
# Private methods of gensim's that subclasses override, and that are not called here.
NOT_CALLED = "_do_train_epoch", "_train_epoch", "_worker_loop", "_job_producer", "_get_next_alpha", "_raw_word_count"


class Saved:
    """The attributes of a model that its file keeps besides arrays."""

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


class Trainable(Saved, HasVectors, utils.SaveLoad):
    """The part of Word2Vec that holds both matrices and trains them; see there for the attributes."""

    wv: KeyedVectors
    syn1: NDArray[np.float32]
    syn1neg: NDArray[np.float32]
    layer1_size: int
    random: np.random.RandomState
    _cache: str | None = None  # a folder that keeps the ids of files
    _kind: ClassVar = "Word2Vec"  # names the class in its files
    _taken: list[Any]  # the sentences that _do_train_job was given
    _batches = math.inf  # in an epoch, of gensim's
    _warned = False  # of the text: once for each model

    # -- the matrices -------------------------------------------------------------------------------

    def _layers(self) -> list[tuple[str, int]]:
        """The names of the output layers, and whether each is used."""
        return list(zip(OUTPUT_LAYERS, (self.hs, self.negative), strict=True))

    def prepare_weights(self, update: bool = False) -> None:
        if update:
            self.update_weights()
        else:
            self.init_weights()

    def init_weights(self) -> None:
        """Draw new vectors, and set the output rows to 0."""
        log.info("resetting layer weights")
        self.wv.vectors = self.wv.vectors[:0]
        self.wv.resize_vectors(self.seed)
        self._resize_outputs(keep=0)

    def update_weights(self) -> None:
        """Make vectors and output rows for words that have been added."""
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
        """The learning rate after so many epochs. It ends at that of gensim's last batch, in which it does not fall."""
        start, batches = max(self.alpha, self.min_alpha), self.epochs * max(1, self._batches)
        return start + (self.min_alpha - start) * (1 - 1 / batches) * epoch / self.epochs

    def _by_count(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of the words, the most frequent first, and their counts, at least 1, both (V,)."""
        counts = np.maximum(1, self.wv.expandos["count"])
        rows = np.argsort(-counts, kind="stable")
        return rows, counts[rows]

    def _model(self, loss: str, as_rows: bool = True, first: int = 0, last: int = 1) -> tuple[Model, NDArray[np.int64]]:
        """w2v's model with one loss, to train from epoch `first` to `last`, and the rows here of its words, (V,).

        Its words are sorted by count, as a Vocabulary has them; with `as_rows` they are row numbers, for any object may
        be a word here.
        """
        wv, subwords = self.wv, self.wv.subwords
        rows, counts = self._by_count()
        as_rows = as_rows and not subwords
        words = list(map(str, rows.tolist())) if as_rows else [wv.index_to_key[row] for row in rows.tolist()]
        vocabulary = Vocabulary(words, counts)
        others: dict[str, Any] = {"negative": self.negative, "ns_exponent": self.ns_exponent} if loss == "ns" else {}
        if subwords:
            others |= {"subwords": (subwords.shortest, subwords.longest), "buckets": subwords.buckets}
        seed = int(self.random.randint(1 << 31)) if self.seed is None else self.seed
        settings = Settings(
            model="skipgram" if self.sg else "cbow",
            loss=loss,
            vector_size=self.vector_size,
            window=self.window,
            shrink_windows=self.shrink_windows,
            min_count=0,
            sample=sample_share(self.sample, vocabulary.tokens),
            epochs=last - first,
            alpha=self._alpha_at(first),
            min_alpha=self._alpha_at(last),
            seed=seed + 1_000_003 * self.train_count + first,
            workers=max(1, math.ceil(min(self.workers, self._batches))),  # one thread trains a batch in gensim
            **others,
        )
        inputs = wv.vectors[rows] * np.float32(self._length)
        outputs = self.syn1[:-1] if loss == "hs" else self.syn1neg[rows]
        return Model(settings, vocabulary, inputs, outputs, loss_for(settings, vocabulary), ngrams=wv.ngrams), rows

    @property
    def _length(self) -> float:
        """The length of w2v's vectors as a multiple of those here, which only differ with cbow_mean=0.

        gensim then predicts from the sum of n context vectors, each of which receives 1/n of its gradient. That is what
        w2v does with the mean of vectors n times as long, were n the same in all windows. Here, 1/n is its mean.
        """
        if self.sg or self.cbow_mean:
            return 1.0
        reaches = np.arange(1, self.window + 1) if self.shrink_windows else np.array([self.window])
        return float(1 / np.mean(1 / (2 * reaches)))

    # -- a run --------------------------------------------------------------------------------------

    def _run(
        self, loss: str, text: list[Path] | Rows, first: int, last: int, progress: Report | None
    ) -> tuple[int, int]:
        """Train from one epoch to another with one loss, on files or sentences; returns (words trained, words read).

        Trained are those that subsampling keeps: their expected number.
        """
        sentences = text if isinstance(text, Rows) else None
        model, rows = self._model(loss, sentences is not None, first, last)
        if sentences and not self._warned:  # w2v gets the rows of their words, and so can say nothing about the words
            words = FirstWords(list(map(str, self.wv.index_to_key[:TYPES])), self.wv.expandos["count"][:TYPES])
            if line := size_advice(words, sentences.words, None):
                warn_of_text(line)
        try:
            with warnings.catch_warnings():
                if self._warned or sentences:
                    warnings.simplefilter("ignore", TextWarning)
                self._warned = True
                source = sentences.file or sentences if sentences else text
                found = train(source, continue_from=model, cache=self._cache, progress=progress)
        except NothingToTrain as error:
            logging.getLogger("w2v").warning("%s", error)
            return 0, sentences.words * (last - first) if sentences else 0
        self._take(loss, found, model, rows)
        keep = model.vocabulary.keep_probabilities(model.settings.sample)
        kept = float(keep @ model.vocabulary.counts) / model.vocabulary.tokens
        read = sentences.words if sentences else int(found.metrics["tokens_read"])
        return round(found.metrics["tokens_trained"] * kept), read * (last - first)

    def _take(self, loss: str, found: Model, model: Model, rows: NDArray[np.int64]) -> None:
        """Take the matrices and the loss of a run that began with `model`, whose words are these rows here."""
        wv = self.wv
        changed = np.asarray(found.inputs, np.float32)
        locks = wv.vectors_lockf[rows if len(wv.vectors_lockf) > 1 else slice(None), None]
        if (locks != 1).any():
            changed = model.inputs + locks * (changed - model.inputs)
        wv.vectors = _written(wv.vectors, rows, changed / np.float32(self._length))
        if found.ngrams:
            vars(wv)["ngrams"] = found.ngrams
        if loss == "hs":
            self.syn1 = _written(self.syn1, slice(len(wv) - 1), found.outputs)
        else:
            self.syn1neg = _written(self.syn1neg, rows, found.outputs)
        if self.compute_loss:
            means, counts = found.metrics["loss"], found.metrics["predictions"]
            self.running_training_loss += sum(mean * n for mean, n in zip(means, counts, strict=True) if n)

    def _do_train_job(self, sentences: list[Any], alpha: float, inits: Any) -> tuple[int, int]:
        """Take a batch of sentences, to be trained later. A subclass that overrides this hands others on."""
        self._taken += sentences
        words = sum(map(len, sentences))
        return words, words

    @property
    def _hands_on(self) -> bool:
        """Whether a subclass overrides _do_train_job."""
        return type(self)._do_train_job is not Trainable._do_train_job

    @contextmanager
    def _ids_kept(self) -> Iterator[Path]:
        """Keep the ids of a text from run to run, so that it is read once; yields a temporary folder."""
        before = self._cache
        with tempfile.TemporaryDirectory(dir=temporary_folder()) as folder:
            self._cache = before or folder
            try:
                yield Path(folder)
            finally:
                self._cache = before

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
            raise ValueError("set hs=1 or negative above 0: without both, nothing is trained")
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
        for name in NOT_CALLED:
            if hasattr(self, name):
                raise NotImplementedError(
                    f"{type(self).__name__}.{name} would not be called: of gensim's private methods, w2v calls "
                    "_do_train_job alone; train this class with gensim"
                )

    def _check_matrices(self) -> None:
        """Raise RuntimeError if the vectors were replaced by those of other words, without their counts and outputs."""
        shape = len(self.wv), self.vector_size
        arrays: dict[str, NDArray[Any]] = {"wv.vectors": self.wv.vectors}
        arrays |= {name: getattr(self, name, np.empty((0, 0))) for name, used in self._layers() if used}
        for name, array in arrays.items():
            if array.shape != shape:
                raise RuntimeError(f"{name} has shape {array.shape}, where the words of the model need {shape}")
        if self.wv.counts is None:
            raise RuntimeError("the words of the model have no counts, which training needs: build_vocab counts them")


class Rows:
    """Sentences without unknown words, and with the numbers of rows in the place of words that have no subwords.

    Attributes:
        words: how many were read in the last iteration, unknown ones too.
        file: a file to read instead, once it is written.
    """

    words = 0
    file: Path | None = None

    def __init__(self, sentences: Sentences, wv: KeyedVectors) -> None:
        self.sentences = sentences
        self.names = {word: word if wv.subwords else str(row) for word, row in wv.key_to_index.items()}

    def __iter__(self) -> Iterator[list[str]]:
        self.words = 0
        for sentence in self.sentences:
            words = list(sentence)
            self.words += len(words)
            yield [self.names[word] for word in words if word in self.names]

    def write(self, path: Path) -> None:
        """Write the file."""
        with path.open("w") as file:
            file.writelines(" ".join(sentence) + "\n" for sentence in self)
        self.file = path


class Jobs:
    """Sentences as a subclass's _do_train_job hands them on: walks, for instance, in the place of their first nodes."""

    def __init__(self, sentences: Sentences, model: Trainable) -> None:
        self.sentences, self.model = sentences, model
        self._begun: Iterator[Any] | None = None

    def count(self) -> int:
        """The number of words, counted no further than to 20 batches; they are kept for the iteration that follows."""
        self._begun, counted = itertools.tee(self._all())
        words = 0
        for sentence in counted:
            words += len(sentence)
            if words > 20 * self.model.batch_words:
                break
        return words

    def __iter__(self) -> Iterator[Any]:
        begun, self._begun = self._begun, None
        return begun or self._all()

    def _all(self) -> Iterator[Any]:
        batch: list[Any] = []
        words = 0
        for sentence in self.sentences:
            words += len(sentence)  # type: ignore[arg-type]
            if batch and words > self.model.batch_words:
                yield from self._handed_on(batch)
                batch, words = [], len(sentence)  # type: ignore[arg-type]
            batch.append(sentence)
        if batch:
            yield from self._handed_on(batch)

    def _handed_on(self, batch: list[Any]) -> list[Any]:
        self.model._taken = []
        self.model._do_train_job(batch, self.model.alpha, None)
        return self.model._taken


class ProgressLog:
    """Logs the progress of training, at most once in so many seconds."""

    def __init__(self, report_delay: float) -> None:
        self.delay, self.last = report_delay, time.perf_counter()

    def __call__(self, progress: Progress) -> None:
        now = time.perf_counter()
        if progress.phase == "train" and progress.total and now - self.last >= self.delay:
            self.last = now
            log.info(
                "EPOCH %d - PROGRESS: at %.2f%% words, %.0f words/s",
                (progress.epoch or 1) - 1, 100 * progress.done / progress.total, progress.rate or 0,
            )  # fmt: skip


def _written(array: NDArray[Any], rows: Any, values: NDArray[Any]) -> NDArray[Any]:
    """The array with these rows replaced: in place, or in a copy of one that is read-only."""
    array = array if array.flags.writeable else array.copy()
    array[rows] = values
    return array
