"""The input of a kernel: the text, the loss and the schedule. The Cython, Python and Numba kernels all read it.

This module also chooses the instruction set of the compiled step, and the initial input rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from w2v._errors import SettingsError
from w2v._formats import bfloat16
from w2v._kernels import step_for
from w2v._losses.loss import Loss
from w2v._losses.registry import Settings
from w2v._system import memory
from w2v._text.examples import Examples
from w2v._text.subword_rows import SubwordRows

INIT_BLOCK = 1 << 17  # initial values in a block of rows
INSTRUCTION_SETS = ("avx512", "avx2", "neon", "baseline")  # fastest first


@dataclass(frozen=True)
class Tags:
    """The tags of documents, or the items of `also_context` of sessions. A document begins with its tags.

    Tags have the numbers after the words. Their input rows follow the rows of the words, or are these rows.

    Attributes:
        count: The number of tags.
        most: The highest number of tags of a document.
        document_starts: int64 (chunks,), the index in Plan.ids at which the document begins that contains the first
            id of each chunk.
        fixed_words: Whether the input rows of words stay unchanged.
        are_words: Whether tag k has the input row of word k.
    """

    count: int
    most: int
    document_starts: NDArray[np.int64]
    fixed_words: bool = False
    are_words: bool = False


@dataclass(frozen=True)
class Plan:
    """A training run, before its matrices are allocated. V is the size of the vocabulary.

    Attributes:
        settings: The settings of the run. The kernels read them here, so an option reaches them under its own name.
        ids: uint32 (tokens + sentences,), the corpus; 0 ends a sentence.
        word_of_type: int32 (types,), the word of each id; -1 for ids outside the vocabulary. A tag has its number.
        tokens_before: int64 (chunks + 1,), number of known tokens before each chunk in an epoch; the last entry is the
            total.
        keep_thresholds: uint32 (V,), a token is kept if a uniform 32-bit random number is <= keep_thresholds[word].
            With tags, it also has the highest threshold for each of them.
        loss: See Loss.
        examples: Texts with labels to train instead of windows, or None. Then `ids`, `word_of_type` and the window have
            no meaning, V is the number of input rows, and `loss` predicts labels.
        tags: The tags of documents, or None.
        chunk_starts: int64 (chunks + 1,), the first example of each chunk, and their number; None without examples.
        epochs, workers: The numbers of epochs and of threads. The settings may leave both to w2v.
        chunk_size: Number of ids in a chunk; the highest number of rows in a chunk of examples.
        instruction_set: The target of the machine code: one of INSTRUCTION_SETS for the Cython kernel, the compiler
            and processor for the Numba kernel.
        subwords: The subwords of each word, or None.
        shares: float32 (n,), the share of a word's change that each of subwords.rows receives, or None.
        frozen_outputs: Whether only input rows are trained, and output rows stay unchanged.
        output_words: int32 (V,), the word with the output row that predicts each word, or None: each word its own.
    """

    settings: Settings
    ids: NDArray[np.uint32]
    word_of_type: NDArray[np.int32]
    tokens_before: NDArray[np.int64]
    keep_thresholds: NDArray[np.uint32]
    loss: Loss
    epochs: int
    workers: int
    chunk_size: int
    instruction_set: str
    subwords: SubwordRows | None = None
    shares: NDArray[np.float32] | None = None
    frozen_outputs: bool = False
    output_words: NDArray[np.int32] | None = None
    examples: Examples | None = None
    chunk_starts: NDArray[np.int64] | None = None
    tags: Tags | None = None

    def first(self, share: float) -> Plan:
        """Return the plan of a run over the first `share` of the ids or examples, 0 to 1, but at least one."""
        if self.examples is not None and self.chunk_starts is not None:
            examples = self.examples.part(0, max(1, int(share * len(self.examples))))
            starts = np.append(self.chunk_starts[self.chunk_starts < len(examples)], len(examples))
            return replace(self, examples=examples, chunk_starts=starts, tokens_before=examples.starts[starts])
        stop = max(1, int(share * len(self.ids)))
        last = (stop - 1) // self.chunk_size  # index of the last chunk
        words = self.word_of_type.take(self.ids[last * self.chunk_size : stop])
        tokens_in_last = np.count_nonzero((words >= 0) & (words < self.words))
        before = self.tokens_before[: last + 1]
        return replace(self, ids=self.ids[:stop], tokens_before=np.append(before, before[-1] + tokens_in_last))

    @property
    def words(self) -> int:
        """The number of words, without tags."""
        return len(self.keep_thresholds) - (self.tags.count if self.tags else 0)

    @property
    def input_rows(self) -> int:
        """The number of input rows: one per word, followed by the rows of tags or of n-grams."""
        own = self.words if self.tags and self.tags.are_words else len(self.keep_thresholds)
        return own + (self.subwords.shared if self.subwords else 0)

    @property
    def sides_by_size(self) -> NDArray[np.int32]:
        """The number of words before and after the centre, for sizes 0 to `window_size`: int32 (2, window_size + 1)."""
        largest = self.settings.window_size
        sizes = np.arange(largest + 1)
        return np.array([-(-sizes * side // largest) for side in self.settings.window_sides], np.int32)

    @property
    def max_context(self) -> int:
        """The maximum number of context words and tags in a window, or of rows in an example."""
        if self.examples is not None:
            return int(np.diff(self.examples.starts).max(initial=1))
        return self.window_size * (1 if self.settings.whole_sentences else 2) + (self.tags.most if self.tags else 0)

    @property
    def window_size(self) -> int:
        """The maximum number of context words on one side: 0 for examples, and if only tags predict words."""
        has_context = self.examples is None and self.settings.documents != "dbow"
        return self.settings.window_size if has_context else 0

    @property
    def max_windows(self) -> int:
        """The maximum number of windows or examples in a chunk."""
        return self.chunk_size if self.chunk_starts is None else int(np.diff(self.chunk_starts).max(initial=1))

    @property
    def mean_context(self) -> float:
        """The mean number of context words in a window that the sentence does not limit."""
        if self.settings.whole_sentences:
            return self.settings.window_size
        if self.settings.shrink_windows:
            return float(self.sides_by_size[:, 1:].mean(axis=1).sum())
        return sum(self.settings.window_sides)

    @property
    def width(self) -> int:
        """The number of values in a row of a matrix, with padding."""
        return memory.row_width(self.settings.vector_size, bfloat16.dtype_of(self.settings.storage))

    @property
    def tokens(self) -> int:
        """The number of known tokens in an epoch."""
        return int(self.tokens_before[-1])

    @property
    def chunks(self) -> int:
        """The number of chunks in an epoch."""
        return len(self.tokens_before) - 1

    @property
    def total_chunks(self) -> int:
        """The number of chunks in all epochs."""
        return self.epochs * self.chunks


def available_sets() -> list[str]:
    """Return the instruction sets that this machine supports, fastest first."""
    return [name for name in INSTRUCTION_SETS if step_for(name)]


def instruction_set() -> str:
    """Return the instruction set to use: the value of W2V_SIMD, by default the fastest that this machine supports.

    Raises:
        SettingsError: If the machine does not support the value of W2V_SIMD.
    """
    available = available_sets()
    chosen = os.environ.get("W2V_SIMD") or available[0]
    if chosen not in available:
        raise SettingsError(f"W2V_SIMD={chosen}: this machine supports {', '.join(available)}")
    return chosen


def thresholds(probabilities: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return uint32 thresholds such that a uniform 32-bit number is <= the threshold with the given probability."""
    scaled = np.ceil(probabilities.astype(np.float64) * 2.0**32) - 1
    limited: NDArray[np.float64] = np.clip(scaled, 0, 2**32 - 1)
    return limited.astype(np.uint32)


def initial_inputs(rows: int, size: int, seed: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Return new input rows, drawn uniformly from ±0.5 / size as in word2vec.c: (rows, size padded with zeros)."""
    inputs = memory.aligned_rows(rows, size, dtype)
    generator = np.random.Generator(np.random.PCG64(seed))
    block_rows = -(-INIT_BLOCK // size)
    for start in range(0, rows, block_rows):
        block = inputs[start : start + block_rows, :size]
        block[:] = (generator.random(block.shape, np.float32) - 0.5) / size
    return inputs
