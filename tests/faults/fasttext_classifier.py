"""Small classifiers in fastText's layout, written without w2v's code."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
WORDS, LABELS = {"</s>": 9, "ab": 7, "köln": 5, "c": 5, "dé": 1}, {"x": 6, "y": 3, "z": 3}


@dataclass
class File:
    """A small classifier in fastText's layout.

    Attributes:
        loss: 1 hs, 2 ns, 3 softmax, 4 ova.
        word_ngrams, shortest, longest: The lengths of n-grams.
        kept: The buckets of a pruned model, in the order of their rows, or None.
        part_size: The number of values that a code of a quantized model stands for, or None.
        is_normalised, quantized_outputs: Whether norms have codes of their own, and whether output rows are quantized.
        changes: Other values of fields of the head.
    """

    loss: int = 3
    word_ngrams: int = 2
    shortest: int = 2
    longest: int = 3
    kept: Sequence[int] | None = None
    part_size: int | None = None
    is_normalised: bool = False
    quantized_outputs: bool = False
    prefix: str = "__label__"
    changes: dict[str, float] = field(default_factory=dict)
    size: int = 5
    buckets: int = 31

    def data(self) -> bytes:
        """Return the bytes of the file. Its matrices become attributes: inputs and outputs."""
        self.random = np.random.default_rng(1)
        pairs = b"".join(struct.pack("<2i", bucket, row) for row, bucket in enumerate(self.kept or []))
        fields = {
            "magic": 793712314, "version": 12, "dim": self.size, "window": 5, "epochs": 7, "min_count": 1, "neg": 6,
            "word_ngrams": self.word_ngrams, "loss": self.loss, "model": 3, "buckets": self.buckets,
            "shortest": self.shortest, "longest": self.longest, "update_rate": 100, "sample": 1e-4,
            "entries": len(WORDS) + len(LABELS), "words": len(WORDS), "labels": len(LABELS), "tokens": 39,
            "pruned": -1 if self.kept is None else len(self.kept),
        } | self.changes  # fmt: skip
        entries = [(word, count, 0) for word, count in WORDS.items()]
        entries += [(self.prefix + label, count, 1) for label, count in LABELS.items()]
        dictionary = b"".join(word.encode() + b"\0" + struct.pack("<qb", count, kind) for word, count, kind in entries)
        rows = len(WORDS) + (self.buckets if self.kept is None else len(self.kept))
        first, self.inputs = self.matrix(rows, self.part_size is not None)
        second, self.outputs = self.matrix(len(LABELS), self.quantized_outputs)
        return struct.pack("<14id3i2q", *fields.values()) + dictionary + pairs + first + second

    def matrix(self, rows: int, is_quantized: bool) -> tuple[bytes, Matrix]:
        """Return a random matrix as bytes, and its values."""
        if not is_quantized:
            values = self.random.normal(size=(rows, self.size)).astype("<f4")
            return struct.pack("<?qq", False, rows, self.size) + values.tobytes(), values
        part_size = self.part_size or 2
        parts = -(-self.size // part_size)
        codes = self.random.integers(256, size=(rows, parts), dtype=np.uint8)
        data = struct.pack("<??qqi", True, self.is_normalised, rows, self.size, codes.size) + codes.tobytes()
        columns = []
        data += struct.pack("<4i", self.size, parts, part_size, self.size - (parts - 1) * part_size)
        for part in range(parts):
            width = min(part_size, self.size - part * part_size)
            centroids = self.random.normal(size=(256, width)).astype("<f4")
            data += centroids.tobytes()
            columns.append(centroids[codes[:, part]])
        values = np.concatenate(columns, axis=1)
        if self.is_normalised:
            norm_codes = self.random.integers(256, size=rows, dtype=np.uint8)
            norms = self.random.uniform(0.5, 2, size=256).astype("<f4")
            data += norm_codes.tobytes() + struct.pack("<4i", 1, 1, 1, 1) + norms.tobytes()
            values = values * norms[norm_codes][:, None]
        return data, values
