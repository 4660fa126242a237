"""Output layers: from the vocabulary's counts to the arrays that say which output rows predict a word.

negative sampling      one row per word; negatives are drawn from an alias table
hierarchical softmax   one row per inner node of a binary tree; a word's path through it is a flat slice
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from w2v import _outputs
from w2v.errors import SettingsError


@dataclass(frozen=True)
class NegativeSampling:
    """The noise distribution q(w) ∝ count(w)^exponent (Mikolov et al. 2013b, section 2.2) as an alias table.

    Attributes:
        negative: negatives drawn for each prediction, K.
        cells: uint32 (V, 2), a threshold and an alias: cell i gives i for a uniform 32-bit number up to the
            threshold, and the alias otherwise.
    """

    negative: int
    cells: NDArray[np.uint32]

    @property
    def rows(self) -> int:
        return len(self.cells)

    @classmethod
    def build(cls, counts: NDArray[np.int64], negative: int, exponent: float = 0.75) -> NegativeSampling:
        """Raises SettingsError where the vocabulary has too few words for `negative` different negatives."""
        size = len(counts)
        if negative >= size:
            raise SettingsError(
                f"negative {negative}: needs at least {negative + 1} words to draw from, "
                f"but the vocabulary has {size}; lower negative or min_count"
            )
        weights = counts.astype(np.float64) ** exponent
        weights /= weights.mean()
        layer = cls(negative, np.empty((size, 2), np.uint32))
        _outputs.fill_alias(weights, layer.cells, np.empty(size, np.int64))
        return layer


@dataclass(frozen=True)
class HierarchicalSoftmax:
    """A binary tree with the words as leaves (Morin & Bengio 2005; Huffman's, Mikolov et al. 2013a, section 3.3).

    Attributes:
        starts: int64 (V + 1,): word w's path is nodes[starts[w]:starts[w + 1]], from the root down.
        nodes: int32: output row of each inner node on the path.
        codes: int8: the branch taken there, 0 or 1.
    """

    starts: NDArray[np.int64]
    nodes: NDArray[np.int32]
    codes: NDArray[np.int8]

    @property
    def rows(self) -> int:
        return len(self.starts) - 2

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Code lengths, int64 (V,), in bits."""
        return np.diff(self.starts)

    @classmethod
    def build(cls, counts: NDArray[np.int64]) -> HierarchicalSoftmax:
        """Huffman's tree. `counts` is int64 (V,), falling, V >= 2."""
        size = len(counts)
        parents, bits = np.empty(2 * size - 2, np.int32), np.empty(2 * size - 2, np.int8)
        _outputs.fill_huffman(counts, np.empty(size - 1, np.int64), parents, bits)
        depths = np.empty(2 * size - 1, np.int64)
        _outputs.fill_depths(parents, depths)
        starts = np.concatenate([[0], np.cumsum(depths[:size])])
        layer = cls(starts, np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int8))
        _outputs.fill_paths(parents, bits, layer.starts, layer.nodes, layer.codes)
        return layer


OutputLayer = NegativeSampling | HierarchicalSoftmax
