"""Build the `Plan` of a run: its chunks, learning rates and epochs. Estimate the memory that the run needs."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from w2v._errors import NothingToTrain, SettingsError
from w2v._formats import bfloat16
from w2v._kernel import loop
from w2v._kernel.kernels import numba_kernel, own_instruction_set
from w2v._kernel.plan import Plan, thresholds
from w2v._kernels import MAX_CHUNK_SIZE, chunk_size, step_for, worker_bytes
from w2v._losses.registry import Settings, loss_for
from w2v._text.examples import Examples
from w2v._text.idstore import IdStore
from w2v._text.subword_rows import SubwordRows
from w2v._training.documents import find_documents
from w2v._training.schedule import epochs_for
from w2v._training.start import Initialisation
from w2v._vectors.combine_matrices import memory_of

log = logging.getLogger("w2v")

# With subwords, all changes of a chunk are computed from the values before the chunk, so chunks must be small: the text
# is divided into SUBWORD_CHUNKS chunks, unless they would be smaller or larger than these limits in ids.
SUBWORD_CHUNKS, MIN_SUBWORD_CHUNK, MAX_SUBWORD_CHUNK = 600, 256, 4096
# Ids per round, and limits of ids per chunk, with `deterministic`. Each thread copies the rows that several chunks of a
# round use, so rounds are short.
DETERMINISTIC_ROUND, MIN_DETERMINISTIC_CHUNK, MAX_DETERMINISTIC_CHUNK = 2048, 64, 256
# The rows of texts with labels are divided into LABEL_CHUNKS chunks for each thread, unless they would be smaller.
LABEL_CHUNKS, MIN_LABEL_CHUNK = 16, 512
# Ids per chunk with frozen words. A chunk changes copies of the frozen rows and discards them at its end, so chunks are
# short.
FROZEN_CHUNK = 512
# A subword's row receives at most this many whole changes per chunk; see `update_shares`. With more, the rows of single
# letters, which most words contain, diverge.
MAX_SUMMED_CHANGES = 8
COMPILER_BYTES = 200_000_000  # that Numba needs to compile the first kernel of a process
DAMPING = 0.25  # the exponent of the share of each change; see `update_shares`


def plan_run(
    settings: Settings,
    initial: Initialisation,
    store: IdStore,
    sum_over_ranks: Callable[[int], int] = int,
    max_chunk: int = MAX_CHUNK_SIZE,
    ignore_memory: bool = False,
) -> Plan:
    """Build the plan of a run.

    Args:
        settings: The settings of the run.
        initial: The vocabulary and the loss.
        store: The ids of the text, or of this rank's part of it.
        sum_over_ranks: A function that sums a number over all ranks.
        max_chunk: The largest number of ids in a chunk.
        ignore_memory: Whether to build a table of subwords even if memory looks insufficient.

    Raises:
        W2VError: The vocabulary or the text is too small to train on.
    """
    vocabulary = initial.vocabulary
    if len(vocabulary) < 2:
        raise NothingToTrain(
            f"the vocabulary has one {store.noun}, {vocabulary.words[0][:60]!r}: at least 2 are needed; "
            "lower min_count or give more text"
        )
    loss = initial.loss or loss_for(settings, vocabulary)
    chunk = min(max_chunk, chunk_size(loss.expected_rows, settings.vector_size, settings.window_size))
    keep = vocabulary.keep_probabilities(settings.sample, settings.sample_formula)
    subwords, shares = None, None
    if settings.deterministic:
        ids_per_thread = DETERMINISTIC_ROUND // settings.threads
        chunk = min(chunk, max(MIN_DETERMINISTIC_CHUNK, min(ids_per_thread, MAX_DETERMINISTIC_CHUNK)))
    if settings.ngrams:
        ids_per_subword_chunk = sum_over_ranks(len(store.ids)) // SUBWORD_CHUNKS
        chunk = min(chunk, max(MIN_SUBWORD_CHUNK, min(ids_per_subword_chunk, MAX_SUBWORD_CHUNK)))
        subwords = SubwordRows.of(settings.ngrams, vocabulary.words, ignore_memory)
        presence = -np.expm1(-chunk * keep * vocabulary.counts / vocabulary.tokens)
        shares = update_shares(subwords, presence)
    elif initial.frozen is not None:
        chunk = min(chunk, FROZEN_CHUNK)
        subwords, shares = frozen_rows(initial.frozen)
    words = store.remap(vocabulary.words)
    tokens_before = store.cumulative_known_counts(words, chunk)
    tags = None
    if initial.tags or initial.also_context:
        words, tags = find_documents(store, words, vocabulary.words, initial.tags, chunk)
        keep = np.append(keep, np.ones(tags.count if tags else 0, np.float32))
    elif settings.documents:
        raise SettingsError(f"documents {settings.documents}: only train learns vectors of documents: leave it out")
    if not (tokens := sum_over_ranks(int(tokens_before[-1]))):
        raise NothingToTrain(
            f"no {store.noun} of the corpus is in the vocabulary that was given: are language, --lower and --tokenize "
            "the same?"
        )
    return Plan(
        settings=settings,
        ids=store.ids,
        word_of_type=words,
        tokens_before=tokens_before,
        keep_thresholds=thresholds(keep),
        loss=loss,
        epochs=epochs_for(settings, loss, tokens),
        workers=settings.threads,
        chunk_size=chunk,
        instruction_set=_instruction_set(initial.instruction_set, settings.kernel),
        subwords=subwords,
        shares=shares,
        frozen_outputs=bool(initial.coordinates),
        output_words=initial.output_words,
        tags=tags,
    )


def plan_examples(
    settings: Settings, initial: Initialisation, examples: Examples, rows: int, frozen_outputs: bool, max_chunk: int
) -> Plan:
    """Build the plan of a run that predicts labels.

    Args:
        settings: The settings of the run.
        initial: The labels and the loss.
        examples: The texts.
        rows: The number of input rows.
        frozen_outputs: Whether output rows stay unchanged.
        max_chunk: The largest number of rows in a chunk of more than one text.
    """
    loss = initial.loss or loss_for(settings, initial.vocabulary)
    chunk = min(max_chunk, max(MIN_LABEL_CHUNK, len(examples.rows) // (LABEL_CHUNKS * settings.threads)))
    if settings.deterministic:
        chunk = DETERMINISTIC_ROUND // settings.threads
    subwords, shares = None, None
    if initial.frozen is not None:
        chunk = min(chunk, FROZEN_CHUNK)
        subwords, shares = frozen_rows(initial.frozen)
    starts = examples.chunk_starts(chunk)
    return Plan(
        settings=settings,
        ids=np.empty(0, np.uint32),
        word_of_type=np.empty(0, np.int32),
        tokens_before=examples.starts[starts],
        keep_thresholds=np.zeros(rows, np.uint32),
        loss=loss,
        epochs=epochs_for(settings, loss, len(examples.rows)),
        workers=settings.threads,
        chunk_size=int(np.diff(examples.starts[starts]).max(initial=1)),
        instruction_set=_instruction_set(initial.instruction_set, settings.kernel),
        subwords=subwords,
        shares=shares,
        frozen_outputs=frozen_outputs,
        examples=examples,
        chunk_starts=starts,
    )


def frozen_rows(frozen: NDArray[np.bool_]) -> tuple[SubwordRows, NDArray[np.float32]]:
    """Return the subwords, and their shares of the changes, of a run that keeps some input rows.

    Each row has one subword: itself. A chunk trains copies of the rows, and a frozen row receives a share of 0.
    """
    return SubwordRows.without_ngrams(len(frozen)), (~frozen).astype(np.float32)


def update_shares(subwords: SubwordRows, presence: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the share of a word's change that each row of the word receives.

    If about m words of a chunk contain a subword, the subword's row receives the fraction m^-DAMPING of each word's
    change, or less, so that the fractions add up to at most MAX_SUMMED_CHANGES. A row that is the sum of several
    subwords receives the changes of all of them. A word's own row receives the whole change.

    Args:
        subwords: The rows of each word.
        presence: The probability that a word occurs in a chunk, (V,).

    Returns:
        float32 (n,), in the order of subwords.rows.
    """
    expected_words = np.maximum(1, subwords.totals(presence))
    expected_words[: len(presence)] = 1  # the own rows of the words
    row_shares = subwords.members * np.minimum(expected_words**-DAMPING, MAX_SUMMED_CHANGES / expected_words)
    shares: NDArray[np.float32] = row_shares[subwords.rows].astype(np.float32)
    return shares


def _instruction_set(original: str, kernel: str) -> str:
    """Return the instruction set that the run began with, because other sets round differently.

    If this machine does not support it, warn and return the machine's own.
    """
    own = own_instruction_set(kernel)
    if not original or original == own or (kernel == "cython" and step_for(original)):
        return original or own
    log.warning("the run began with %s, and this machine uses %s: last bits will differ", original, own)
    return own


def memory_needed(plan: Plan, settings: Settings, copies: int = 0, later: int = 0) -> int:
    """Return the bytes that a run needs.

    They include the matrices, `copies` copies of the matrices, the threads, the compiler of a Numba kernel, and what
    Run.view computes: the word vectors, and rows that are not rows of the run. `later` bytes are needed only after the
    run, when its temporary rows are freed.
    """
    rows = plan.input_rows + plan.loss.memory_rows
    value_bytes = bfloat16.dtype_of(settings.storage).itemsize
    row_bytes = settings.vector_size * value_bytes  # of rows without padding
    words, new_rows, temporary = len(plan.keep_thresholds), 0, 0
    if plan.output_words is not None:
        new_rows += words
    if settings.ngrams and plan.subwords:
        new_rows += words + len(plan.subwords.buckets)
        temporary = len(plan.subwords.buckets) * row_bytes  # the n-gram rows are computed and then sorted
    vectors = memory_of(settings.word_vectors, words, settings.vector_size)
    is_compiled = settings.kernel != "numba" or numba_kernel().compile_function.cache_info().currsize
    needed = rows * (1 + copies) * plan.width * value_bytes + new_rows * row_bytes + max(temporary, vectors + later)
    return needed + threads_memory(plan, settings.kernel) + (0 if is_compiled else COMPILER_BYTES)


def threads_memory(plan: Plan, kernel: str) -> int:
    """Return the bytes that the threads of a run need in addition to the matrices."""
    bytes_per_worker = loop.worker_bytes if kernel == "numba" else worker_bytes
    return int(plan.workers * bytes_per_worker(plan))
