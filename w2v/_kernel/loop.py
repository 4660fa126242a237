"""The training loop in plain Python. Read this file to learn what the algorithm does.

It trains the same models as `_kernels.pyx`, which explains the mathematics and the design. This file leaves out copies
of hot rows, deterministic rounds, bfloat16, and windows that are filled ahead of their steps. It has two uses: tests
run it in float64 and compare the Cython kernel with it, and `numba_kernel.py` compiles it together with a loss written
in Python. It does not import Numba.

From the outside in:

    Kernel.run      assigns the chunks of all epochs to the threads
    train_chunk     slides the window over a chunk, and takes a step for each group of context words
    train_examples  does the same for a chunk of texts with labels
    collect_tags    finds the tags of the document in which a chunk begins
    collect         reads the words of a chunk that subsampling keeps; shuffle_long_sentences may shuffle them
    compose         computes the input rows of these words from their subwords; update_subwords changes the subwords
    find_context    finds the context words of a centre word
    step            predicts the centre word from the context words, and updates the rows: see w2v/_losses/rows.py

`step` is a placeholder for the step of the loss; see w2v/_losses/binding.py. Random numbers are hashes, as in
_kernels.pyx. Most functions take `plan`, the data that all threads read (see shared_plan), and `s`, the state of one
thread (see Loss).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v._kernel.plan import Plan
from w2v._kernels import END_OF_SENTENCE
from w2v._losses.binding import Functions, bind, functions_of
from w2v._losses.gradient import dry_run
from w2v._losses.loss import Array, Worker, mistakes_in_loss
from w2v._losses.rows import GOLDEN, below, draw, prefetch, scramble, step, update, update_inputs
from w2v._losses.worker import as_named_tuple, new_worker
from w2v._settings import MAX_INPUTS_PER_STEP
from w2v._text._text import SENTENCE_END_ID
from w2v._text.examples import Examples
from w2v._text.subword_rows import SubwordRows

NO_SUBWORDS, NO_EXAMPLES = SubwordRows.without_ngrams(0), Examples.empty()
# The purpose of a random number: numbers for different purposes are independent.
SUBSAMPLING, WINDOWS = np.uint64(1), np.uint64(2)


# -- random numbers and the learning rate ---------------------------------------------------


def key_of(seed: Any, epoch: int, purpose: Any) -> Any:
    """Return the key with which hash_of computes the random numbers of an epoch for one purpose."""
    return scramble(scramble(seed) + (np.uint64(epoch) << np.uint64(8)) + purpose)


def hash_of(key: Any, counter: int) -> Any:
    """Return the random number that belongs to this key and counter."""
    return scramble(key + np.uint64(counter) * GOLDEN)


def start_random(s: Worker, state: Any) -> None:
    """Seed the thread's random numbers, and draw the numbers that the loss needs in advance."""
    s.random[0] = state
    for k in range(1, len(s.random)):
        s.random[k] = draw(s.random)


def learning_rate(alpha: float, min_alpha: float, progress: float) -> float:
    """Return the learning rate at this progress of the run, 0 to 1: linear from alpha down to min_alpha."""
    return max(min_alpha, alpha + (min_alpha - alpha) * progress)


# -- the words of a chunk -------------------------------------------------------------------


def collect(plan: Any, s: Worker, key: Any, first_token: int, end_token: int) -> int:
    """Collect in s.kept the words of a chunk's tokens that subsampling keeps, and return the index of their end.

    The words begin at index window_size + 1. Before and after them are the words of the neighbouring chunks that a
    window can reach, up to the end of the sentence. END_OF_SENTENCE marks the end of each sentence, and both ends of
    s.kept. Subsampling keeps all tags.
    s.token_number has for each word the number of known tokens of the chunk up to it.
    """
    kept = s.kept
    first = end = plan.window_size + 1
    known = 0
    for token in range(first_token, end_token):
        if plan.ids[token] == SENTENCE_END_ID:
            kept[end] = END_OF_SENTENCE
            end += 1
            continue
        word = plan.word_of_type[plan.ids[token]]
        if word < 0:
            continue
        known += word < plan.words
        kept[end] = word
        s.token_number[end] = known
        if is_kept(plan, key, token, word):
            end += 1
    if end > first:
        collect_neighbours(plan, s, key, first_token - 1, first - 1, -1)
        collect_neighbours(plan, s, key, end_token, end, 1)
    return end


def collect_neighbours(plan: Any, s: Worker, key: Any, token: int, k: int, step: int) -> None:
    """Collect the words next to a chunk that a window can reach, from `token` on; `step` is the direction, 1 or -1.

    The words go to s.kept from index k on, in the same direction, and END_OF_SENTENCE follows them.
    """
    end = k + step * plan.window_size
    while k != end and 0 <= token < len(plan.ids) and plan.ids[token] != SENTENCE_END_ID:
        word = plan.word_of_type[plan.ids[token]]
        if 0 <= word < plan.words and is_kept(plan, key, token, word):
            s.kept[k] = word
            k += step
        token += step
    s.kept[k] = END_OF_SENTENCE


def shuffle_long_sentences(plan: Any, s: Worker, end: int) -> None:
    """Shuffle the words of each sentence that is longer than a window; the words of the chunk end at index `end`.

    Any words near the centre word are then a random sample of its sentence. Only words of the chunk are shuffled.
    """
    kept, first, last = s.kept, plan.window_size + 1, end - 1  # last: the last word of a sentence in the chunk
    right = last  # the last word of the sentence that is kept: up to `window_size` words of the next chunk are
    while last >= first and kept[right + 1] != END_OF_SENTENCE:
        right += 1
    while last >= first:
        left = last + 1
        while 0 <= kept[left - 1] < plan.words:  # tags stay at the start of their sentence
            left -= 1
        start = max(left, first)
        if right - left > plan.window_size:
            for k in range(last, start - 1, -1):  # Fisher-Yates
                other = k - below(draw(s.random), k - start + 1)
                word = kept[k]
                kept[k] = kept[other]
                kept[other] = word
        last = start - 1
        while last >= first and not 0 <= kept[last] < plan.words:
            last -= 1
        right = last


def is_kept(plan: Any, key: Any, token: int, word: int) -> bool:
    """Return True if subsampling keeps a token; frequent words are dropped at random. `token` is its index."""
    return bool(hash_of(key, token) >> np.uint64(32) <= plan.keep_thresholds[word])


def compose(plan: Any, s: Worker, end: int) -> int:
    """Compute the input row of each distinct word in s.kept, the mean of its subwords, and return the number of words.

    s.slots[word] becomes the index of the word's row in s.composed, and s.distinct the word of each row.
    """
    count, k = 0, plan.window_size
    if end > plan.window_size + 1:
        while s.kept[k] != END_OF_SENTENCE:
            k -= 1
        while k < end or s.kept[k] != END_OF_SENTENCE:
            word = s.kept[k]
            if word != END_OF_SENTENCE and not (s.slots[word] < count and s.distinct[s.slots[word]] == word):
                s.slots[word] = count
                s.distinct[count] = word
                count += 1
            k += 1
    width = s.composed.shape[1]
    for k in range(count):
        word = s.distinct[k]
        scale = s.composed.dtype.type(1) / s.composed.dtype.type(plan.subword_counts[word])
        for d in range(width):
            s.composed[k, d] = 0
        for at in range(plan.subword_starts[word], plan.subword_starts[word + 1]):
            row = plan.subword_rows[at]
            for d in range(width):
                s.composed[k, d] += scale * plan.inputs[row, d]
        for d in range(width):
            s.composed_before[k, d] = s.composed[k, d]
    return count


def update_subwords(plan: Any, s: Worker, count: int) -> None:
    """Add to each subword its share of the changes of the first `count` composed rows."""
    for k in range(count):
        word = s.distinct[k]
        for at in range(plan.subword_starts[word], plan.subword_starts[word + 1]):
            row, share = plan.subword_rows[at], plan.shares[at]
            for d in range(s.composed.shape[1]):
                plan.inputs[row, d] += share * (s.composed[k, d] - s.composed_before[k, d])


# -- windows and steps ----------------------------------------------------------------------


def train_chunk(plan: Any, s: Worker, epoch: int, chunk: int) -> tuple[float, int]:
    """Train the centre words of a chunk, and return the summed loss and the number of predictions."""
    if len(plan.chunk_starts):
        return train_examples(plan, s, epoch, chunk)
    first_token, chunks = chunk * plan.chunk_size, len(plan.tokens_before) - 1
    end_token = min(first_token + plan.chunk_size, len(plan.ids))
    tokens_before = epoch * plan.tokens_before[chunks] + plan.tokens_before[chunk]
    tokens_in_run = float(plan.epochs * plan.tokens_before[chunks])
    start_random(s, hash_of(key_of(plan.seed, epoch, WINDOWS), chunk))
    end = collect(plan, s, key_of(plan.seed, epoch, SUBSAMPLING), first_token, end_token)
    if plan.whole_sentences:
        shuffle_long_sentences(plan, s, end)
    has_subwords = len(plan.subword_rows) > 0
    count = compose(plan, s, end) if has_subwords else 0
    inputs = s.composed if has_subwords else plan.inputs
    as_float, one = s.x.dtype.type, s.x.dtype.type(1)
    loss, predictions = 0.0, 0
    s.position[0] = -1
    tags, in_first_document = collect_tags(plan, s, chunk), True
    for centre in range(plan.window_size + 1, end):
        if s.kept[centre] == END_OF_SENTENCE:
            tags, in_first_document = 0, False
        elif s.kept[centre] >= plan.words and not in_first_document:
            s.tags[tags] = s.kept[centre] - plan.words + plan.first_tag_row
            tags += 1
        if not 0 <= s.kept[centre] < plan.words:
            continue
        progress = as_float((tokens_before + s.token_number[centre]) / tokens_in_run)
        alpha = learning_rate(plan.alpha, plan.min_alpha, progress)
        n = find_context(plan, s, centre)
        s.context[n : n + tags] = s.tags[:tags]
        n += tags
        if n == 0:
            continue
        if 0 <= s.kept[centre + plan.window_size] < plan.words and not has_subwords:
            prefetch(inputs, s.kept[centre + plan.window_size])
        s.position[0] += 1
        word = s.kept[centre]
        if len(plan.output_words) > 0:
            word = plan.output_words[word]
        size = n if plan.cbow else plan.inputs_per_step
        gradient_scale = one / as_float(n) if plan.cbow and plan.corrected_gradient else one
        for group in range(0, n, size):
            s.position[1] = group // size
            words = s.context[group : min(group + size, n)]
            rows = 1 if plan.cbow else len(words)
            x, change = s.x[:rows], s.change[:rows]
            gather(inputs, words, plan.cbow, x, change)
            loss += step(s, word, x, change, alpha)
            scatter(inputs, words[n - tags if plan.fixed_words else 0 :], plan.cbow, gradient_scale, change)
            predictions += rows
    update_subwords(plan, s, count)
    return loss, predictions


def collect_tags(plan: Any, s: Worker, chunk: int) -> int:
    """Collect in s.tags the rows of the tags of the document in which a chunk begins, and return their number."""
    tags = 0
    if len(s.tags) and chunk < len(plan.document_starts):
        token = plan.document_starts[chunk]
        while token < len(plan.ids) and plan.ids[token] != SENTENCE_END_ID:
            tag = plan.word_of_type[plan.ids[token]] - plan.words
            if -plan.words <= tag < 0:  # the first word
                break
            if tag >= 0:  # the others are not known
                s.tags[tags] = tag + plan.first_tag_row
                tags += 1
            token += 1
    return tags


def train_examples(plan: Any, s: Worker, epoch: int, chunk: int) -> tuple[float, int]:
    """Train the texts of a chunk to predict their labels, and return the summed loss and the number of predictions."""
    chunks = len(plan.tokens_before) - 1
    if chunk == chunks:  # the empty chunk after the last one, which the Numba kernel compiles with
        return 0.0, 0
    first, end = plan.chunk_starts[chunk], plan.chunk_starts[chunk + 1]
    tokens = plan.tokens_before[chunk + 1] - plan.tokens_before[chunk]
    tokens_before = epoch * plan.tokens_before[chunks] + plan.tokens_before[chunk]
    tokens_in_run = float(plan.epochs * plan.tokens_before[chunks])
    start_random(s, hash_of(key_of(plan.seed, epoch, WINDOWS), chunk))
    as_float, one = s.x.dtype.type, s.x.dtype.type(1)
    has_subwords, count = len(plan.subword_rows) > 0, 0
    if has_subwords:  # compose the rows of the chunk: each of them is a word with one subword, itself
        kept = plan.example_rows[plan.example_starts[first] : plan.example_starts[end]]
        start = plan.window_size + 1
        s.kept[start - 1] = s.kept[start + len(kept)] = END_OF_SENTENCE
        s.kept[start : start + len(kept)] = kept
        count = compose(plan, s, start + len(kept))
    inputs = s.composed if has_subwords else plan.inputs
    loss, predictions = 0.0, 0
    for k in range(first, end):
        progress = as_float((tokens_before + tokens * (k + 1 - first) // (end - first)) / tokens_in_run)
        alpha = plan.importance[k] * learning_rate(plan.alpha, plan.min_alpha, progress)
        labels = plan.labels[plan.label_starts[k] : plan.label_starts[k + 1]]
        s.label_count[0] = len(labels)
        s.labels[: len(labels)] = labels
        label = labels[below(draw(s.random), len(labels))] if len(labels) > 1 else labels[0]
        start, stop = plan.example_starts[k], plan.example_starts[k + 1]
        size = stop - start if plan.cbow else plan.inputs_per_step
        for group in range(start, stop, size):  # in skip-gram, each row predicts the label separately
            n = min(group + size, stop) - group
            rows = 1 if plan.cbow else n
            x, change = s.x[:rows], s.change[:rows]
            change[:] = 0
            x[:] = 0
            for i in range(n):
                row, weight = plan.example_rows[group + i], plan.row_weights[group + i] if plan.cbow else one
                x[0 if plan.cbow else i] += weight * inputs[s.slots[row] if has_subwords else row]
            loss += step(s, label, x, change, alpha)
            for i in range(n):
                row, weight = plan.example_rows[group + i], plan.row_weights[group + i] if plan.cbow else one
                inputs[s.slots[row] if has_subwords else row] += weight * change[0 if plan.cbow else i]
            predictions += rows
    update_subwords(plan, s, count)
    return loss, predictions


def find_context(plan: Any, s: Worker, centre: int) -> int:
    """Find the context words of the centre word at index `centre` of s.kept, and return their number.

    The rows of their input vectors are written to s.context. With `shrink_windows`, the window has a random size, so
    that near words are in it more often.
    """
    kept, has_subwords = s.kept, len(plan.subword_rows) > 0
    size, left, right = plan.window_size, centre, centre
    if plan.shrink_windows:
        size -= below(draw(s.random), plan.window_size)
    while centre - left < plan.sides_by_size[0, size] and 0 <= kept[left - 1] < plan.words:
        left -= 1
    while right - centre < plan.sides_by_size[1, size] and 0 <= kept[right + 1] < plan.words:
        right += 1
    if plan.whole_sentences:  # a window of `window_size` + 1 words, moved so that it stays inside the sentence
        left = max(left, min(centre - plan.window_size // 2, right - plan.window_size))
        right = min(right, left + plan.window_size)
    for k in range(right - left):
        word = kept[left + k] if left + k < centre else kept[left + k + 1]
        s.context[k] = s.slots[word] if has_subwords else word
    return right - left


def gather(inputs: Array, words: Array, pooled: bool, x: Array, change: Array) -> None:
    """Set x to the words' rows of `inputs`, (n, D), or to their mean, (1, D), if `pooled`; set `change` to 0."""
    x[:] = inputs[words].mean(axis=0) if pooled else inputs[words]
    change[:] = 0


def scatter(inputs: Array, words: Array, pooled: bool, gradient_scale: float, change: Array) -> None:
    """Add gradient_scale · change to the words' rows of `inputs`."""
    for i in range(len(words)):
        inputs[words[i]] += gradient_scale * change[0 if pooled else i]


# -- a run ----------------------------------------------------------------------------------


class Kernel:
    """The same interface as w2v._kernels.Kernel, for any loss.

    It takes a mapping of named parameters instead of one output matrix. The matrices may be float64.

    Raises:
        W2VError: If the loss violates the protocol of Loss.

    Attributes:
        position: Number of chunks handed out, in all epochs. While no thread runs, all of them are trained, because a
            thread returns only when it has finished its chunk.
        tokens_trained: Number of known tokens in the chunks trained, in all epochs.
        losses: Summed loss of each epoch, float64 (epochs,).
        predictions: Number of predictions in each epoch, int64 (epochs,).
    """

    position: int
    tokens_trained: int
    losses: NDArray[np.float64]
    predictions: NDArray[np.int64]

    def __init__(self, plan: Plan, inputs: Array, parameters: Mapping[str, Array]) -> None:
        self._loss, self._chunks, self._end = plan.loss, plan.chunks, plan.total_chunks
        self._tokens_before = plan.tokens_before
        self._plan = shared_plan(plan, inputs)
        self._workers = [new_thread(plan, parameters, inputs.shape[1], inputs.dtype) for _ in range(plan.workers)]
        if plan.loss.is_own:
            trial = new_worker(plan.loss, parameters, 2 * plan.settings.window_size, inputs.shape[1], inputs.dtype)
            dry_run(plan.loss, trial, len(inputs))
        frozen = ((update, update_inputs),) if plan.frozen_outputs else ()
        self._train_chunk = self._with_loss(functions_of(plan.loss) + frozen)
        self._lock = threading.Lock()
        self.restore(0, np.zeros(plan.epochs), np.zeros(plan.epochs, np.int64))

    def _with_loss(self, functions: Functions) -> Any:
        """Return train_chunk with these functions in place of their placeholders."""
        return bind(train_chunk, functions)

    def run(self, worker_index: int, end: int | None = None) -> None:
        """Train chunks until position `end`, by default the end of the run, or until `stop` is called.

        Each thread passes a different `worker_index`.

        Raises:
            W2VError: If a user's own loss raises an exception.
        """
        end = self._end if end is None else end
        while not self._stopped:
            with self._lock:
                position = self.position
                self.position = min(position + 1, end)
            if position == end:
                break
            epoch, chunk = divmod(position, self._chunks)
            # Random numbers are integers that wrap around.
            with mistakes_in_loss(self._loss, "training"), np.errstate(over="ignore"):
                loss, predictions = self._train_chunk(self._plan, self._workers[worker_index], epoch, chunk)
            with self._lock:
                self.losses[epoch] += loss
                self.predictions[epoch] += predictions
                self.tokens_trained += int(self._tokens_before[chunk + 1] - self._tokens_before[chunk])

    def stop(self) -> None:
        """Make every `run` return at the end of its chunk; later calls return at once, until `restore`."""
        self._stopped = True

    def restore(self, position: int, losses: NDArray[np.float64], predictions: NDArray[np.int64]) -> None:
        """Make `run` continue after the first `position` chunks, also after `stop`. Call it while no thread runs."""
        epoch, chunk = divmod(position, self._chunks)
        self.position = position
        self.tokens_trained = int(epoch * self._tokens_before[-1] + self._tokens_before[chunk])
        self.losses, self.predictions = losses.copy(), predictions.copy()
        self._stopped = False


def shared_plan(plan: Plan, inputs: Array) -> Any:
    """Return a named tuple with the data of a Plan that all threads read, and the input matrix, which they update.

    Most fields have the same names as in Plan and Settings. The others are corrected_gradient, whether `cbow_gradient`
    is corrected; inputs_per_step, the number of context words that take a step together; and subword_starts,
    subword_rows and subword_counts, which are `starts`, `rows` and `counts` of the SubwordRows. They are empty without
    subwords. output_words is empty if it is None in Plan.
    """
    settings, as_float = plan.settings, inputs.dtype.type
    subwords, shares = (plan.subwords, plan.shares) if plan.subwords else (NO_SUBWORDS, np.empty(0, np.float32))
    examples = plan.examples or NO_EXAMPLES
    names = "ids", "word_of_type", "tokens_before", "keep_thresholds", "sides_by_size", "epochs", "chunk_size"
    fields: dict[str, Any] = {name: getattr(plan, name) for name in names} | {
        "inputs": inputs,
        "words": plan.words,
        "first_tag_row": 0 if plan.tags and plan.tags.are_words else plan.words,
        "document_starts": plan.tags.document_starts if plan.tags else np.empty(0, np.int64),
        "fixed_words": plan.tags is not None and plan.tags.fixed_words,
        "output_words": np.empty(0, np.int32) if plan.output_words is None else plan.output_words,
        "subword_starts": subwords.starts,
        "subword_rows": subwords.rows,
        "subword_counts": subwords.counts,
        "shares": shares,
        "example_starts": examples.starts,
        "example_rows": examples.rows,
        "row_weights": examples.weights,
        "label_starts": examples.label_starts,
        "labels": examples.labels,
        "importance": examples.importance,
        "chunk_starts": np.empty(0, np.int64) if plan.chunk_starts is None else plan.chunk_starts,
        "cbow": settings.model == "cbow",
        "corrected_gradient": settings.cbow_gradient == "corrected",
        "window_size": plan.window_size,
        "whole_sentences": settings.whole_sentences and plan.window_size > 0,
        "shrink_windows": settings.shrink_windows and plan.window_size > 0 and not settings.whole_sentences,
        "inputs_per_step": 1 if settings.per_pair or plan.loss.sequential else MAX_INPUTS_PER_STEP,
        "alpha": as_float(settings.start_alpha),
        "min_alpha": as_float(settings.end_alpha),
        "seed": np.uint64(settings.seed),
    }
    return as_named_tuple("plan", fields)


def new_thread(plan: Plan, parameters: Mapping[str, Array], width: int, dtype: DTypeLike) -> Worker:
    """Return the state of a thread that trains this plan, for rows of this width and type."""
    composed = len(plan.keep_thresholds) if plan.subwords else 0
    labels = 0 if plan.examples is None else int(np.diff(plan.examples.label_starts).max())
    tags = plan.tags.most if plan.tags else 0
    size = max(2 * plan.settings.window_size, 0 if plan.examples is None else MAX_INPUTS_PER_STEP) + tags
    return new_worker(plan.loss, parameters, size, width, dtype, plan.chunk_size, composed, labels, tags)


def worker_bytes(plan: Plan) -> int:
    """Return the bytes of memory that each thread of a Kernel allocates."""
    worker = new_thread(plan, {}, plan.width, np.float32)  # takes almost no memory, since its pages are not written
    return sum(array.nbytes for array in (*worker, *worker.scratch) if isinstance(array, np.ndarray))
