"""How close does the step, with its rows in cache, come to the processor's limit?

    python bench/step.py [--size 300] [--rows 12] [--repeats 30] [--other COMPILER] [--json FILE]

For each instruction set that this machine runs, calls of the step alternate with the multiply-add peak of the same
instruction set. The rows of a call are drawn at random from a pool of --rows inputs and as many outputs, which fit into
the first-level cache. 6 inputs × 6 outputs is the mean window; the other shape draws the number of inputs of each call
as in windows of 5: 2, 4, 6, 8 or 10. The limit is 3 · inputs · outputs · size multiply-adds, with size rounded up to
whole registers. The goal is 90% of it at 6 × 6. With --other, the step of that compiler alternates with ours; the goal
for the ratio of times, other / ours, is at most 1.03.
"""

from __future__ import annotations

import ctypes
import time
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from common import (
    BENCH,
    KERNEL,
    LANES,
    Peaks,
    Summary,
    alternate,
    benchmark_parser,
    compile_library,
    report_results,
    round_ratios,
    summarise,
    time_call,
)
from numpy.typing import NDArray

from w2v._kernel.plan import INSTRUCTION_SETS
from w2v._kernels import step_for
from w2v._system import memory

OUTPUTS = 6
MAX_ROWS = 32  # inputs or outputs in one call
SHAPES = 1024  # number of calls after which the choices of rows repeat
CALLS = 20_000
SHAPE_NAMES = ("6 × 6", "2 to 10 × 6")


def load_step(library: ctypes.CDLL) -> Any:
    """Return the function take_steps of step.c."""
    library.take_steps.restype = ctypes.c_double
    return library.take_steps


class Steps:
    """Calls of the step on rows that are drawn beforehand."""

    def __init__(
        self, library: ctypes.CDLL, name: str, size: int, rows: int, inputs: NDArray[np.int32], pooled: bool = False
    ) -> None:
        random = np.random.default_rng(1)
        self.function, self.name, self.inputs, self.size = load_step(library), name.encode(), inputs, size
        self.pooled = pooled
        self.pool = memory.aligned_rows(2 * rows, size)
        self.pool[:, :size] = random.normal(0, 0.1, (2 * rows, size))
        self.choices = np.zeros((SHAPES, 2, MAX_ROWS), np.int32)
        for choice in self.choices:
            choice[0, : min(rows, MAX_ROWS)] = random.permutation(rows)[:MAX_ROWS]
            choice[1, : min(rows, MAX_ROWS)] = rows + random.permutation(rows)[:MAX_ROWS]
        self.target, self.offset = memory.aligned_rows(2, 16)  # one panel holds all columns
        self.target[0], self.offset[OUTPUTS:] = 1, 1e30  # the offset gives the unused columns a probability of 0
        self.scratch = memory.empty((1 << 16,))

    def take(self, calls: int, alpha: float = 1e-6) -> float:
        """Call the step this many times; return the total loss."""
        arrays = (self.pool, self.choices, self.inputs, self.target, self.offset, self.scratch)
        pool, choices, inputs, target, offset, scratch = (ctypes.c_void_p(array.ctypes.data) for array in arrays)
        stride, size, count = (ctypes.c_int64(n) for n in (self.pool.shape[1], self.size, len(self.inputs)))
        return float(
            self.function(self.name, pool, stride, size, choices, inputs, count, ctypes.c_int64(OUTPUTS),
                          ctypes.c_int(self.pooled), ctypes.c_float(alpha), target, offset, scratch,
                          ctypes.c_int64(calls))
        )  # fmt: skip

    def validate(self) -> None:
        """Check some steps against NumPy in double precision."""
        pool, loss, alpha, calls = self.pool.astype(np.float64), 0.0, 0.05, 40
        for (inputs, outputs), n in zip(self.choices[:calls], self.inputs, strict=False):
            x, y = pool[inputs[:n]], pool[outputs[:OUTPUTS]]
            scores = x @ y.T
            error = alpha * (self.target[:OUTPUTS] - 1 / (1 + np.exp(-scores)))
            loss += float((np.log1p(np.exp(scores)) - self.target[:OUTPUTS] * scores).sum())
            pool[inputs[:n]], pool[outputs[:OUTPUTS]] = x + error @ y, y + error.T @ x
        taken_loss = self.take(calls, alpha)
        np.testing.assert_allclose(self.pool, pool, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(taken_loss, loss, rtol=1e-5)

    def multiply_adds(self) -> float:
        """Return the mean number of multiply-adds that a call needs."""
        lanes = LANES[self.name.decode()]
        return 3 * float(self.inputs.mean()) * OUTPUTS * -(-self.size // lanes) * lanes

    def nanoseconds(self) -> float:
        """Measure the nanoseconds of a call."""
        return time_call(lambda: self.take(CALLS), time.thread_time) / CALLS * 1e9


def main() -> None:
    parser = benchmark_parser(__doc__, 30)
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--rows", type=int, default=12)
    parser.add_argument("--other", metavar="COMPILER", help="command of another compiler to compare with")
    options = parser.parse_args()
    if options.rows < 10:
        parser.error("--rows must be 10 or more")
    sources = BENCH / "step.c", KERNEL / "step.c"
    library = compile_library(*sources)
    other = compile_library(*sources, compiler=options.other) if options.other else None
    mixed = np.random.default_rng(2).choice(np.arange(2, 11, 2), SHAPES).astype(np.int32)
    times: dict[str, Summary] = {}
    peaks: dict[str, Summary] = {}
    fractions: dict[str, Summary] = {}
    ratios: dict[str, Summary] = {}
    for name in filter(step_for, INSTRUCTION_SETS):
        candidates = {"peak": Peaks(name).multiply_adds_per_second}
        steps_of_shape = {}
        for shape, inputs in zip(SHAPE_NAMES, (np.full(SHAPES, 6, np.int32), mixed), strict=True):
            steps = steps_of_shape[shape] = Steps(library, name, options.size, options.rows, inputs)
            steps.validate()
            candidates[shape] = partial(Steps.nanoseconds, steps)
            if other:
                other_steps = copy(steps)  # uses the same rows, because their addresses matter
                other_steps.function = load_step(other)
                candidates[f"{shape}, other"] = other_steps.nanoseconds
        results = alternate(candidates, options.repeats)
        peaks[name] = summarise(peak / 1e9 for peak in results["peak"])
        for shape, steps in steps_of_shape.items():
            assert np.isfinite(steps.pool).all(), "some rows are not finite"
            limits = [steps.multiply_adds() / peak * 1e9 for peak in results["peak"]]
            times[f"{name}, {shape}"] = summarise(results[shape])
            is_fastest_set = not fractions
            goal = 0.9 if shape == SHAPE_NAMES[0] and is_fastest_set and options.size == 300 else None
            fractions[f"{name}, {shape}"] = summarise(round_ratios(limits, results[shape]), goal)
            if other:
                ratios[f"{name}, {shape}"] = summarise(round_ratios(results[f"{shape}, other"], results[shape]), 1.03)
    report_results(
        options,
        "The step",
        f"One thread, processor time; size {options.size}, {2 * options.rows} rows in cache.",
        nanoseconds_of_a_step=times,
        giga_multiply_adds_a_second_at_the_peak=peaks,
        fraction_of_the_peak=fractions,
        time_of_the_other_compiler_by_ours=ratios,
    )


if __name__ == "__main__":
    main()
