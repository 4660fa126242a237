"""Exchange of changed rows between the ranks of a run, so that all ranks train the same model.

Every rank keeps all matrices, and a copy `synced` of each row after its last exchange, which is the same on all ranks.
In each round, a rank trains some of its chunks. Then, for each row, the changes Δ of the ranks since `synced` are
combined:

    synced ← synced + ΣΔ · (1 - exp(-mx)) / (m (1 - exp(-x))),    m = max(1, ‖ΣΔ‖² / Σ‖Δ‖²)

and every rank adds the contributions of the other ranks to its row.

m, between 1 and the number of ranks, estimates how many changes point in the same direction. Changes in different
directions are added. Equal changes must be treated differently in two cases. If the updates of one rank move the row
only a small part of the way to the point where it converges, equal changes are added, too. If they move it all the way,
the sum would overshoot, and equal changes are averaged. x distinguishes the two cases. It is the learning rate times
the expected number of updates of the row by one rank since the last exchange, times CURVATURE. One rank would move the
row by the part 1 - exp(-x) of the way, and m ranks in sequence by the part 1 - exp(-mx).

The idea to measure agreement by sums of squares comes from the model combiner of Gill et al. 2019, "Distributed
Training of Embeddings using Graph Analytics". The formula here needs only sums over the ranks.

Frequent rows must be exchanged often, rare rows less often. With rows ordered by frequency, the first n are exchanged
in every round, the next n in every second round, the next 2n in every fourth round, and so on. Each round exchanges a
different part of these groups, so all messages have about the same size, which grows with the logarithm of the
vocabulary. All rows are exchanged at the end of an epoch and before a checkpoint.

At the same number of bytes, short rounds with few rows learn better than long rounds with many rows (bench/README.md,
"Several ranks"). But each round costs the time of a message, so long texts have long rounds with n = FREQUENT_ROWS. In
short rounds, n is proportional to the words of a round.

The first n rows are exchanged before the next round begins, because rows that converge within a few rounds would
overshoot without the contributions of the other ranks. The other rows, most of the message, are exchanged while the
next round is trained; at the end of that round, the result is added to the rows as they are then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from w2v._formats import bfloat16
from w2v._losses.loss import Loss
from w2v._training.communicator import Communicator

FREQUENT_ROWS = 256  # rows of a matrix that are exchanged in every round, at most
CURVATURE = Loss.curvature  # the same for all losses
BLOCK_ROWS = 1 << 14  # rows per message when all rows are exchanged
PART_ROWS = 512  # rows that are read, changed and written together, so that they stay in a core's cache


def rows_of_round(number: int, rows: int, frequent: int = FREQUENT_ROWS) -> list[range]:
    """Return which rows to exchange after a round, as ranges of positions in the list of rows sorted by frequency.

    The top of the module explains which rows these are.

    Args:
        number: The number of the round.
        rows: The number of rows of the matrix.
        frequent: The n of the module's description, an even number.

    Returns:
        The first range holds the rows of every round, the others a part of each group of rarer rows.
    """
    ranges = [range(min(frequent, rows))]
    start, interval, share = frequent, 2, frequent // 2
    while start < rows:
        first = start + number % interval * share
        ranges.append(range(min(first, rows), min(first + share, rows)))
        start, interval = 2 * start, 2 * interval
    return ranges


@dataclass
class SharedMatrix:
    """A matrix that all ranks train.

    Attributes:
        rows: The matrix, (R, D).
        synced: The rows after their last exchange, (R, D). They are the same on all ranks.
        frequencies: The expected number of updates of each row per trained word, float64 (R,).
        order: The row numbers, ordered from frequent to rare, (R,).
        weighted_words_at_exchange: The value of Exchange.weighted_words when each row was last exchanged, float64 (R,).
    """

    rows: NDArray[Any]
    synced: NDArray[Any]
    frequencies: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.order = np.argsort(-self.frequencies, kind="stable")
        self.weighted_words_at_exchange = np.zeros(len(self.rows))

    def parts(self, ranges: list[range]) -> list[Part]:
        """Divide the rows in these ranges of the order into parts of at most PART_ROWS rows."""
        pieces = [
            self.order[start : min(start + PART_ROWS, rows.stop)] for rows in ranges for start in rows[::PART_ROWS]
        ]
        return [Part(self, slice_if_contiguous(piece), len(piece)) for piece in pieces]


class Part(NamedTuple):
    """Some rows of a matrix: their row numbers, as a slice if they are contiguous, and their count."""

    matrix: SharedMatrix
    rows: slice | NDArray[np.int64]
    size: int


class PendingPart(NamedTuple):
    """A part of a matrix that is being exchanged.

    Attributes:
        part: The part.
        start: Its offset in the message.
        packed: The values of its rows when they were packed, (N, D).
        x: The x of the module's description, (N, 1).
    """

    part: Part
    start: int
    packed: NDArray[np.float32]
    x: NDArray[np.float64]


def slice_if_contiguous(rows: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Return distinct row numbers as a slice if they are contiguous, because a slice can be read without a gather."""
    first, end = int(rows.min()), int(rows.max()) + 1
    return slice(first, end) if end - first == len(rows) else rows


class Flags(NamedTuple):
    """Flags that the ranks exchange. After an exchange, a flag is True if any rank has set it."""

    stop: bool = False  # a signal has asked the rank to stop
    failed: bool = False  # an exception was raised
    checkpoint: bool = False  # a checkpoint is due after the next round


class Exchange:
    """The exchange of rows between the ranks, for several matrices of the same width.

    Attributes:
        weighted_words: The number of words that one rank has trained, each weighted with its learning rate. It must be
            the same on all ranks.
        bytes: The number of bytes that this rank has given to MPI to be summed.
    """

    def __init__(
        self,
        communicator: Communicator,
        matrices: list[tuple[NDArray[Any], NDArray[np.float64]]],
        seed: int,
        threads: int,
        frequent: int = FREQUENT_ROWS,
    ) -> None:
        """Allocate the copies of the matrices.

        Args:
            communicator: The ranks.
            matrices: Each matrix, (R, D), with the expected number of updates of each row per trained word, (R,).
            seed: The seed of the stochastic rounding to bfloat16, the same on all ranks.
            threads: The number of threads that pack and unpack messages.
            frequent: The number of rows of each matrix that are exchanged in every round.
        """
        self.weighted_words = 0.0
        self._communicator = communicator
        self._frequent = frequent
        self._matrices = [
            SharedMatrix(rows, np.empty(rows.shape, rows.dtype), frequencies) for rows, frequencies in matrices
        ]
        self._width = matrices[0][0].shape[1]
        self._seed, self._exchanges = seed, 0
        # With one thread, the caller's thread does the work: for small parts, a pool would take longer than the work.
        self._map: Callable[..., Iterable[Any]] = ThreadPoolExecutor(threads).map if threads > 1 else map
        self._own = self._total = np.empty(0, np.float32)  # the message of this rank, and the sum of all messages
        self._pending: list[PendingPart] = []
        self._message_size = 0  # the number of values in the pending message; 0 without one
        self._request: Any = None  # of the pending message; None once it has arrived
        self.bytes = 0

    def broadcast_from_root(self) -> None:
        """Copy the matrices of rank 0 to all other ranks."""
        for matrix in self._matrices:
            for start in range(0, len(matrix.rows), BLOCK_ROWS):
                block = bfloat16.as_uint16(matrix.rows)[start : start + BLOCK_ROWS]
                contiguous = np.ascontiguousarray(block)
                self._communicator.broadcast(contiguous)
                block[:] = contiguous
            np.copyto(matrix.synced, matrix.rows)
            matrix.weighted_words_at_exchange[:] = self.weighted_words

    def begin(self, number: int | None, flags: Flags) -> None:
        """Exchange the most frequent rows, and start to exchange the other rows of a round; `finish` ends it.

        Args:
            number: The number of the round; None to exchange only the flags.
            flags: The flags of this rank.
        """
        frequent: list[Part] = []
        others: list[Part] = []
        if number is not None:
            for matrix in self._matrices:
                first, *rest = rows_of_round(number, len(matrix.rows), self._frequent)
                frequent += matrix.parts([first])
                others += matrix.parts(rest)
            self._send(frequent, Flags())
            self.finish()
        self._send(others, flags)

    def exchange_all_rows(self) -> None:
        """Exchange all rows, and wait for the result."""
        for matrix in self._matrices:
            rows = len(matrix.rows)
            for start in range(0, rows, BLOCK_ROWS):
                self._send(matrix.parts([range(start, min(start + BLOCK_ROWS, rows))]), Flags())
                self.finish()

    def poll(self) -> bool:
        """Let MPI make progress, and return True if a message is still pending."""
        if self._request is not None and self._request.Test():
            self._request = None
        return self._request is not None

    def _send(self, parts: list[Part], flags: Flags) -> None:
        """Pack the parts and the flags into a message, and start to sum it over the ranks."""
        starts = np.cumsum([0, *((self._width + 1) * part.size for part in parts)]).tolist()
        size = starts[-1] + len(flags)
        if size > len(self._own):
            self._own, self._total = np.empty(size, np.float32), np.empty(size, np.float32)
        self._pending = list(self._map(self._pack, parts, starts))
        self._own[starts[-1] : size] = flags
        self._request = self._communicator.start_allreduce(self._own[:size], self._total[:size])
        self._message_size = size
        self.bytes += 4 * size

    def finish(self) -> Flags:
        """Wait for the pending message, add the other ranks' contributions, and return the flags of all ranks."""
        if self._request is not None:
            self._communicator.wait(self._request)
        self._exchanges += 1
        list(self._map(self._unpack, self._pending, count()))
        flags = Flags(*map(bool, self._total[self._message_size - len(Flags._fields) : self._message_size]))
        self._request, self._pending, self._message_size = None, [], 0
        return flags

    def _pack(self, part: Part, start: int) -> PendingPart:
        """Write the changes of a part's rows, and their squared lengths, into the message."""
        matrix, rows, _ = part
        packed = matrix.rows[rows].astype(np.float32)  # a copy
        message = self._message_part(self._own, part, start)
        np.subtract(packed, matrix.synced[rows], out=message[:, :-1])
        message[:, -1] = squared_lengths(message[:, :-1])
        words = self.weighted_words - matrix.weighted_words_at_exchange[rows]
        matrix.weighted_words_at_exchange[rows] = self.weighted_words
        x = CURVATURE * matrix.frequencies[rows] * words
        return PendingPart(part, start, packed, x[:, np.newaxis])

    def _unpack(self, pending: PendingPart, index: int) -> None:
        """Add the other ranks' contributions to the rows of a part."""
        (matrix, rows, _), start, packed, x = pending
        seeds = [self._seed, self._exchanges, index]  # the same on all ranks, so that they round the same way
        random = np.random.Generator(np.random.PCG64(seeds)) if bfloat16.is_bfloat16(matrix.rows) else None
        total = self._message_part(self._total, pending.part, start)
        combined = matrix.synced[rows] + combined_change(total[:, :-1], total[:, -1:], x)
        matrix.synced[rows] = stochastically_rounded(combined, random)
        # The change by this rank since the rows were packed; 0 if it has not trained during the exchange.
        own_change = matrix.rows[rows].astype(np.float32) - packed
        matrix.rows[rows] = stochastically_rounded(matrix.synced[rows] + own_change, random)

    def _message_part(self, message: NDArray[np.float32], part: Part, start: int) -> NDArray[np.float32]:
        """Return a view of a part in a message, (rows, D + 1): the changes of the rows and their squared lengths."""
        width = self._width + 1
        return message[start : start + width * part.size].reshape(part.size, width)


def stochastically_rounded(values: NDArray[np.float32], random: np.random.Generator | None) -> NDArray[Any]:
    """Round values stochastically to bfloat16. Without a random generator, return them unchanged."""
    if random is None:
        return values
    noise = random.integers(0, 1 << 16, values.shape, np.uint32)
    bits: NDArray[np.uint16] = ((values.view(np.uint32) + noise) >> np.uint32(16)).astype(np.uint16)
    return bits.view(bfloat16.bfloat16())


def combined_change(
    total: NDArray[np.float32], squares: NDArray[np.float32], x: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Return the combined change of each row, (N, D); see the formula at the top of the module.

    Args:
        total: The sum of the changes of all ranks, ΣΔ, (N, D).
        squares: The sum of the squared lengths of the changes, Σ‖Δ‖², (N, 1).
        x: The x of the formula, (N, 1).
    """
    length = squared_lengths(total)[:, np.newaxis]
    m = np.divide(length, squares, out=np.ones_like(squares), where=length > squares)
    x = np.maximum(x, 1e-6)  # at 0, the scale would be 0 / 0
    scale = (np.expm1(-m * x) / (m * np.expm1(-x))).astype(np.float32)
    change: NDArray[np.float32] = total * scale
    return change


def squared_lengths(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the squared length of each row, (N,), of rows (N, D)."""
    lengths: NDArray[np.float32] = np.einsum("nd,nd->n", rows, rows)
    return lengths
