"""Differentiated softmax: the output vectors of rare words are shorter.

Source: Chen et al. 2015, arXiv:1512.04906, section 2.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from w2v._errors import SettingsError, pluralise
from w2v._losses.full_softmax import SoftmaxOptions
from w2v._losses.loss import Alpha, Array, Loss, Worker, log_softmax
from w2v._losses.rows import score, softmax, update
from w2v._options import option
from w2v._settings import LOSS, GeneralOptions
from w2v._system import memory

BLOCK = "[0-9]{1,9}(:[0-9]{1,9})?"  # a regular expression: a length, and optionally a number of words


@dataclass(frozen=True, kw_only=True)
class BlockOptions(SoftmaxOptions):
    blocks: str | None = option(
        None,
        "Lengths of the output vectors by word frequency, with numbers of words, such as 300:1000,150:4000,75: 300 "
        "values for the first 1000 words, 150 for the next 4000, 75 for the rest. The lengths must add up to "
        "--vector-size; without numbers all blocks have the same number of words.",
        LOSS,
        default_text="half of the vector, a quarter and the rest",
        fixed=True,
    )


class DifferentiatedSoftmax(Loss):
    """The full softmax, with blocks of words by frequency, and shorter output vectors in later blocks.

    As in the paper, each block uses its own part of the input row: the first block uses the first values, the second
    block the next values, and so on. So the lengths of the blocks add up to vector_size. In memory, rows are padded to
    full cache lines. In the model and its file, block k is "block_k", (words, length), without padding.
    """

    name = "dsoftmax"
    help = "differentiated softmax"
    alpha = Alpha(0.05, 0.2)
    options_class = BlockOptions
    options: BlockOptions
    no_word_outputs = "output rows have fewer values than input rows"
    rank_above_size = 1

    @classmethod
    def check(cls, settings: GeneralOptions, options: BlockOptions) -> None:
        block_lengths(options.blocks, settings.vector_size)

    def prepare(self) -> None:
        self.lengths, self.sizes = blocks_of(self.options.blocks, len(self.vocabulary), self.settings.vector_size)
        widths = [memory.row_width(length) for length in self.lengths]
        sizes = {"starts": self.sizes, "offsets": np.multiply(self.sizes, widths), "columns": self.lengths}
        sizes["padded_columns"] = widths
        self.data = {name: np.cumsum([0, *each]) for name, each in sizes.items()}
        self.data["identity"] = np.arange(max(self.sizes))
        self.memory_rows = -(-int(self.data["offsets"][-1]) // self.settings.vector_size)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {f"block_{k}": shape for k, shape in enumerate(zip(self.sizes, self.lengths, strict=True))}

    def parameters(self, random: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        return {"blocks": memory.aligned_rows(1, int(self.data["offsets"][-1]))}

    def stored(self, parameters: Mapping[str, Array]) -> dict[str, NDArray[np.float32]]:
        blocks = np.split(parameters["blocks"][0], self.data["offsets"][1:-1])
        shapes = self.shapes.items()
        return {
            name: block.reshape(size, -1)[:, :length]
            for block, (name, (size, length)) in zip(blocks, shapes, strict=True)
        }

    def scratch(self, inputs: int) -> dict[str, Array]:
        width = int(self.data["padded_columns"][-1])
        return {name: memory.aligned_rows(1, inputs * width)[0] for name in ("x", "change")}

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        parts = enumerate(np.split(rows, self.data["columns"][1:-1], axis=1))
        scores = [part @ parameters[f"block_{k}"].T.astype(rows.dtype) for k, part in parts]
        return log_softmax(np.concatenate(scores, axis=1))

    @staticmethod
    def step(s: Worker, centre: int, x: Array, change: Array, alpha: float) -> float:
        n, starts, columns = len(x), s.data.starts, s.data.columns
        scores = s.scores[: n * starts[-1]].reshape(n, starts[-1])
        for k in range(len(starts) - 1):
            part, size = part_of(s, s.scratch.x, k, n), columns[k + 1] - columns[k]
            part[:] = 0
            for i in range(n):
                for d in range(size):
                    part[i, d] = x[i, columns[k] + d]
            score(part, outputs_of(s, k), s.data.identity, s.offset, scores[:, starts[k] : starts[k + 1]])
        s.target[centre] = 1
        loss = softmax(s, scores)
        s.target[centre] = 0
        for k in range(n * starts[-1]):
            s.scores[k] *= alpha
        for k in range(len(starts) - 1):
            moved, size = part_of(s, s.scratch.change, k, n), columns[k + 1] - columns[k]
            moved[:] = 0
            error = scores[:, starts[k] : starts[k + 1]]
            update(part_of(s, s.scratch.x, k, n), moved, outputs_of(s, k), s.data.identity, error)
            for i in range(n):
                for d in range(size):
                    change[i, columns[k] + d] += moved[i, d]
        return loss


def part_of(s: Worker, flat: Array, k: int, n: int) -> Array:
    """Return the part of n rows that belongs to block k, (n, width)."""
    return flat[n * s.data.padded_columns[k] : n * s.data.padded_columns[k + 1]].reshape(n, -1)


def outputs_of(s: Worker, k: int) -> Array:
    """Return the output rows of block k, (words, width)."""
    flat = s.parameters.blocks.reshape(-1)[s.data.offsets[k] : s.data.offsets[k + 1]]
    return flat.reshape(s.data.starts[k + 1] - s.data.starts[k], -1)


def block_lengths(blocks: str | None, size: int) -> tuple[list[int], list[int]]:
    """Return the lengths of the blocks, and the numbers of words of all blocks but the last, or [] without numbers.

    Args:
        blocks: Text such as "300:1000,150:4000,75". By default there are up to three blocks: half of the vector, a
            quarter and the rest.
        size: vector_size.

    Raises:
        SettingsError: The text is malformed, or does not fit vector_size.
    """
    parts = size - size // 2, size // 2 - size // 4, size // 4
    text = blocks or ",".join(str(part) for part in parts if part)
    if not re.fullmatch(f"{BLOCK}(,{BLOCK})*", text):
        raise SettingsError(f"blocks {text[:60]!r}: write lengths and numbers of words, like 300:1000,150:4000,75")
    *others, last = (list(map(int, block.split(":"))) for block in text.split(","))
    lengths, counts = [block[0] for block in (*others, last)], [block[1] for block in others if len(block) > 1]
    if sum(lengths) != size or 0 in lengths:
        total = f"{sum(lengths)}; they must add up to vector_size, {size}, and none may be 0"
        raise SettingsError(f"blocks {text[:60]}: the lengths add up to {total}")
    if len(counts) not in (0, len(others)) or len(last) > 1:
        rest = "all blocks but the last, which has the rest"
        raise SettingsError(f"blocks {text[:60]}: give a number of words for {rest}")
    return lengths, counts


def blocks_of(blocks: str | None, words: int, size: int) -> tuple[list[int], list[int]]:
    """Return the lengths and the numbers of words of all blocks. Without numbers, blocks have equally many words.

    Args:
        blocks, size: See block_lengths.
        words: The number of words in the vocabulary.

    Raises:
        SettingsError: The text is malformed, or does not fit vector_size or the vocabulary.
    """
    lengths, counts = block_lengths(blocks, size)
    ends = np.cumsum(counts).tolist() if counts else [words * k // len(lengths) for k in range(1, len(lengths))]
    sizes = np.diff([0, *ends, words]).tolist()
    if min(sizes) < 1:
        text = blocks or ",".join(map(str, lengths))
        raise SettingsError(
            f"blocks {text}: each block needs a word, and the vocabulary has {pluralise(words, 'word')}"
        )
    return lengths, sizes
