"""Differentiated softmax: rarer words have shorter output vectors (Chen et al. 2015, arXiv:1512.04906, section 2.4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v import memory
from w2v.errors import SettingsError
from w2v.losses.full_softmax import SoftmaxSettings
from w2v.losses.loss import Alpha, Array, Loss, Worker, log_softmax
from w2v.losses.rows import exponentials, score, update
from w2v.options import option
from w2v.settings import LOSS


@dataclass(frozen=True, kw_only=True)
class BlockSettings(SoftmaxSettings):
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
    """The full softmax, with output vectors of different lengths for blocks of words; blocks are by frequency.

    As in the paper, each block has its own part of the input row: the first block the first values, the next one those
    that follow. So the lengths add up to vector_size. In memory, rows are padded to whole cache lines; in the model and
    its file, block k is "block_k", (words, length), without padding.
    """

    name = "dsoftmax"
    help = "differentiated softmax"
    alpha = Alpha(0.05, 0.2)
    settings_class = BlockSettings
    settings: BlockSettings
    no_word_outputs = "output rows have fewer values than input rows"

    @classmethod
    def check(cls, settings: Any) -> None:
        block_lengths(settings.blocks, settings.vector_size)

    def prepare(self) -> None:
        self.lengths, self.sizes = blocks_of(self.settings.blocks, len(self.vocabulary), self.settings.vector_size)
        widths = [memory.row_width(length) for length in self.lengths]
        starts, offsets = np.cumsum([0, *self.sizes]), np.cumsum([0, *np.multiply(self.sizes, widths)])
        columns = np.cumsum([0, *self.lengths])
        self.data = {"starts": starts, "offsets": offsets, "columns": columns, "widths": np.array(widths)}
        self.data["identity"] = np.arange(max(self.sizes))

    @property
    def memory_rows(self) -> int:
        return -(-int(self.data["offsets"][-1]) // self.settings.vector_size)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {f"block_{k}": shape for k, shape in enumerate(zip(self.sizes, self.lengths, strict=True))}

    @property
    def max_rank(self) -> int:
        return self.settings.vector_size + 1

    def parameters(self, random: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        return {"blocks": memory.aligned_rows(1, int(self.data["offsets"][-1]))}

    def stored(self, parameters: Mapping[str, Array]) -> dict[str, NDArray[np.float32]]:
        offsets, flat = self.data["offsets"], parameters["blocks"][0]
        return {
            f"block_{k}": flat[offsets[k] : offsets[k + 1]].reshape(size, -1)[:, :length]
            for k, (size, length) in enumerate(zip(self.sizes, self.lengths, strict=True))
        }

    def scratch(self, inputs: int) -> dict[str, Array]:
        width = int(self.data["widths"].sum())
        return {name: memory.aligned_rows(1, inputs * width)[0] for name in ("x", "change")}

    def log_probabilities(self, parameters: Mapping[str, Array], rows: Array) -> Array:
        columns = self.data["columns"]
        parts = [
            rows[:, columns[k] : columns[k + 1]] @ parameters[f"block_{k}"].T.astype(rows.dtype)
            for k in range(len(self.sizes))
        ]
        return log_softmax(np.concatenate(parts, axis=1))

    @staticmethod
    def step(s: Worker, centre: int, x: Array, change: Array, alpha: float) -> float:
        n, flat = len(x), s.parameters.blocks.reshape(-1)
        starts, offsets, columns, widths = s.data.starts, s.data.offsets, s.data.columns, s.data.widths
        at = 0
        for k in range(len(widths)):
            width, size = widths[k], columns[k + 1] - columns[k]
            part = s.scratch.x[at : at + n * width].reshape(n, width)
            for i in range(n):
                for d in range(width):
                    part[i, d] = x[i, columns[k] + d] if d < size else 0
            outputs = flat[offsets[k] : offsets[k + 1]].reshape(-1, width)
            scores = s.scores[n * starts[k] : n * starts[k + 1]].reshape(n, -1)
            score(part, outputs, s.data.identity, s.offset, scores)
            at += n * width
        loss = softmax_of_blocks(s, centre, n, alpha)
        at = 0
        for k in range(len(widths)):
            width, size = widths[k], columns[k + 1] - columns[k]
            part = s.scratch.x[at : at + n * width].reshape(n, width)
            moved = s.scratch.change[at : at + n * width].reshape(n, width)
            moved[:] = 0
            outputs = flat[offsets[k] : offsets[k + 1]].reshape(-1, width)
            scores = s.scores[n * starts[k] : n * starts[k + 1]].reshape(n, -1)
            update(part, moved, outputs, s.data.identity, scores)
            for i in range(n):
                for d in range(size):
                    change[i, columns[k] + d] += moved[i, d]
            at += n * width
        return loss


def softmax_of_blocks(s: Worker, centre: int, n: int, alpha: float) -> float:
    """s.scores, consecutive blocks (n, words), ← alpha (target − softmax); returns −Σ log p."""
    loss, starts = 0.0, s.data.starts
    for i in range(n):
        top, total, target_score = s.scores[n * starts[0]], 0.0, 0.0
        for k in range(len(starts) - 1):
            words = starts[k + 1] - starts[k]
            row = s.scores[n * starts[k] + i * words : n * starts[k] + (i + 1) * words]
            for j in range(words):
                top = max(top, row[j])
            if starts[k] <= centre < starts[k + 1]:
                target_score = row[centre - starts[k]]
        for k in range(len(starts) - 1):
            words = starts[k + 1] - starts[k]
            row = s.scores[n * starts[k] + i * words : n * starts[k] + (i + 1) * words]
            for j in range(words):
                row[j] -= top
            exponentials(row)
            for j in range(words):
                total += row[j]
        loss += np.log(total) + top - target_score
        share = row.dtype.type(-alpha / total)
        for k in range(len(starts) - 1):
            words = starts[k + 1] - starts[k]
            row = s.scores[n * starts[k] + i * words : n * starts[k] + (i + 1) * words]
            for j in range(words):
                row[j] *= share
            if starts[k] <= centre < starts[k + 1]:
                row[centre - starts[k]] += alpha
    return loss


def block_lengths(blocks: str | None, size: int) -> tuple[list[int], list[int]]:
    """The lengths, and the numbers of words if given, in text like "300:1000,150:4000,75". Raises SettingsError.

    By default there are three blocks: half of the vector, a quarter and the rest.
    """
    half, quarter = size - size // 2, size // 2 - size // 4
    found = re.fullmatch(r"\d+(:\d+)?(,\d+(:\d+)?)*", blocks or f"{half},{quarter},{size // 4}")
    if not found:
        raise SettingsError(f"blocks {blocks!r}: write lengths and numbers of words, like 300:1000,150:4000,75")
    parts = [part.split(":") for part in found[0].split(",")]
    lengths, given = [int(part[0]) for part in parts], [int(part[1]) for part in parts[:-1] if len(part) > 1]
    if sum(lengths) != size or 0 in lengths:
        raise SettingsError(
            f"blocks {found[0]}: the lengths add up to {sum(lengths)}; they must add up to vector_size, {size}"
        )
    if len(given) not in (0, len(parts) - 1) or len(parts[-1]) > 1:
        raise SettingsError(
            f"blocks {found[0]}: give a number of words for all blocks but the last, which has the rest"
        )
    return lengths, given


def blocks_of(blocks: str | None, words: int, size: int) -> tuple[list[int], list[int]]:
    """The lengths and numbers of words of all blocks; without numbers, blocks are equal. Raises SettingsError."""
    lengths, given = block_lengths(blocks, size)
    count = len(lengths)
    ends = [words * k // count for k in range(1, count)] if not given else np.cumsum(given).tolist()
    sizes = np.diff([0, *ends, words]).tolist()
    if min(sizes) < 1:
        asked = blocks or ",".join(map(str, lengths))
        raise SettingsError(f"blocks {asked}: the vocabulary has only {words} words, too few")
    return lengths, sizes
