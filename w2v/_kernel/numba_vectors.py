"""The arithmetic of a step in Numba, with explicit vector instructions. The Cython kernel uses _kernel/step_body.h.

A vector has LANES numbers. If registers are shorter, the compiler uses several. Numba's own loops are slow because they
handle a remainder and check whether arrays overlap. Both are unnecessary here: rows are padded with zeros to a multiple
of LANES.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

Array = Any
LANES = 16


class Vector(types.Type):
    """The Numba type of a vector of LANES numbers."""

    def __init__(self, dtype: types.Float) -> None:
        self.dtype = dtype
        super().__init__(f"Vector({dtype})")


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """The LLVM type of a Vector."""

    def __init__(self, manager: Any, kind: Vector) -> None:
        number = ir.FloatType() if kind.dtype.bitwidth == 32 else ir.DoubleType()
        super().__init__(manager, kind, ir.VectorType(number, LANES))


def _pointer(context: Any, builder: Any, array: Any, kind: Any, at: Any) -> Any:
    """Return a pointer to the vector at element `at` of a contiguous array."""
    pointer = context.make_array(kind)(context, builder, array).data
    vector = context.get_value_type(Vector(kind.dtype))
    return builder.bitcast(builder.gep(pointer, [at]), vector.as_pointer())


@intrinsic
def load(typing: Any, array: Any, at: Any) -> Any:
    """Load the vector at element `at` of a contiguous array."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(_pointer(context, builder, values[0], array, values[1]), align=array.dtype.bitwidth // 8)

    return Vector(array.dtype)(array, types.int64), code


@intrinsic
def store(typing: Any, array: Any, at: Any, vector: Any) -> Any:
    """Store a vector at element `at` of a contiguous array."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = _pointer(context, builder, values[0], array, values[1])
        builder.store(values[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), code


@intrinsic
def splat(typing: Any, number: Any) -> Any:
    """Make a vector that repeats one number."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        first = builder.insert_element(ir.Constant(kind, ir.Undefined), values[0], ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), mask)

    return Vector(number)(number), code


@intrinsic
def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Compute a · b + c."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        product = builder.fmul(values[0], values[1], flags=["contract"])
        return builder.fadd(product, values[2], flags=["contract"])

    return a(a, a, a), code


@intrinsic
def sum_lanes(typing: Any, vector: Any) -> Any:
    """Sum the numbers of a vector."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        int32, sums = ir.IntType(32), values[0]
        for half in (8, 4, 2, 1):
            low, high = (
                ir.Constant(ir.VectorType(int32, half), list(range(first, first + half))) for first in (0, half)
            )
            sums = builder.fadd(builder.shuffle_vector(sums, sums, low), builder.shuffle_vector(sums, sums, high))
        return builder.extract_element(sums, ir.Constant(int32, 0))

    return vector.dtype(vector), code


@intrinsic
def _prefetch_line(typing: Any, array: Any, at: Any) -> Any:
    """Prefetch the cache line of element `at`."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = context.make_array(array)(context, builder, values[0]).data
        line = builder.bitcast(builder.gep(pointer, [values[1]]), ir.IntType(8).as_pointer())
        int32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [line.type, int32, int32, int32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [line, *(ir.Constant(int32, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.int64), code


def prefetch(rows: Array, row: int) -> None:
    """Prefetch a row of a matrix."""
    width = rows.shape[1]
    for at in range(0, width, LANES):
        _prefetch_line(rows, row * width + at)


def score(x: Array, outputs: Array, rows: Array, offset: Array, scores: Array) -> None:
    """Compute scores ← X Yᵀ − offset, in blocks of 2 × 3 rows, so that each block is read once."""
    n, m = scores.shape
    width = x.shape[1]
    zero = splat(x.dtype.type(0))
    for j in range(0, m - 2, 3):
        y0, y1, y2 = rows[j] * width, rows[j + 1] * width, rows[j + 2] * width
        for i in range(0, n - 1, 2):
            a0 = a1 = a2 = b0 = b1 = b2 = zero
            for d in range(0, width, LANES):
                a, b = load(x, i * width + d), load(x, (i + 1) * width + d)
                y = load(outputs, y0 + d)
                a0, b0 = multiply_add(a, y, a0), multiply_add(b, y, b0)
                y = load(outputs, y1 + d)
                a1, b1 = multiply_add(a, y, a1), multiply_add(b, y, b1)
                y = load(outputs, y2 + d)
                a2, b2 = multiply_add(a, y, a2), multiply_add(b, y, b2)
            store_scores(scores, i, j, offset, a0, a1, a2)
            store_scores(scores, i + 1, j, offset, b0, b1, b2)
        if n % 2:
            a0 = a1 = a2 = zero
            for d in range(0, width, LANES):
                a = load(x, (n - 1) * width + d)
                a0 = multiply_add(a, load(outputs, y0 + d), a0)
                a1 = multiply_add(a, load(outputs, y1 + d), a1)
                a2 = multiply_add(a, load(outputs, y2 + d), a2)
            store_scores(scores, n - 1, j, offset, a0, a1, a2)
    for j in range(m - m % 3, m):
        for i in range(n):
            a0 = zero
            for d in range(0, width, LANES):
                a0 = multiply_add(load(x, i * width + d), load(outputs, rows[j] * width + d), a0)
            scores[i, j] = sum_lanes(a0) - offset[j]


def store_scores(scores: Array, i: int, j: int, offset: Array, a0: Any, a1: Any, a2: Any) -> None:
    """Store the sums of three vectors, minus their offsets, as the scores of input row i and output rows from j on."""
    scores[i, j] = sum_lanes(a0) - offset[j]
    scores[i, j + 1] = sum_lanes(a1) - offset[j + 1]
    scores[i, j + 2] = sum_lanes(a2) - offset[j + 2]


def update(x: Array, change: Array, outputs: Array, rows: Array, error: Array) -> None:
    """Compute change ← change + E Y and Y ← Y + Eᵀ X, for 3 rows of Y at a time, which are read and written once."""
    n, m = error.shape
    width = x.shape[1]
    for j in range(0, m - 2, 3):
        y0, y1, y2 = rows[j] * width, rows[j + 1] * width, rows[j + 2] * width
        for d in range(0, width, LANES):
            old0, old1, old2 = load(outputs, y0 + d), load(outputs, y1 + d), load(outputs, y2 + d)
            new0, new1, new2 = old0, old1, old2
            for i in range(n):
                e0, e1, e2 = splat(error[i, j]), splat(error[i, j + 1]), splat(error[i, j + 2])
                at = i * width + d
                a = load(x, at)
                moved = multiply_add(e2, old2, multiply_add(e1, old1, multiply_add(e0, old0, load(change, at))))
                store(change, at, moved)
                new0, new1, new2 = multiply_add(e0, a, new0), multiply_add(e1, a, new1), multiply_add(e2, a, new2)
            store(outputs, y0 + d, new0)
            store(outputs, y1 + d, new1)
            store(outputs, y2 + d, new2)
    for j in range(m - m % 3, m):
        for d in range(0, width, LANES):
            old0 = load(outputs, rows[j] * width + d)
            new0 = old0
            for i in range(n):
                e0, at = splat(error[i, j]), i * width + d
                store(change, at, multiply_add(e0, old0, load(change, at)))
                new0 = multiply_add(e0, load(x, at), new0)
            store(outputs, rows[j] * width + d, new0)


def update_inputs(x: Array, change: Array, outputs: Array, rows: Array, error: Array) -> None:
    """Compute change ← change + E Y, for 3 rows of Y at a time."""
    n, m = error.shape
    width = x.shape[1]
    for i in range(n):
        for j in range(0, m - 2, 3):
            y0, y1, y2 = rows[j] * width, rows[j + 1] * width, rows[j + 2] * width
            e0, e1, e2 = splat(error[i, j]), splat(error[i, j + 1]), splat(error[i, j + 2])
            for d in range(0, width, LANES):
                moved = multiply_add(e0, load(outputs, y0 + d), load(change, i * width + d))
                moved = multiply_add(e2, load(outputs, y2 + d), multiply_add(e1, load(outputs, y1 + d), moved))
                store(change, i * width + d, moved)
        for j in range(m - m % 3, m):
            e0 = splat(error[i, j])
            for d in range(0, width, LANES):
                moved = multiply_add(e0, load(outputs, rows[j] * width + d), load(change, i * width + d))
                store(change, i * width + d, moved)


def gather(inputs: Array, words: Array, pooled: bool, x: Array, change: Array) -> None:
    """Set x to the words' rows of `inputs`, or to their mean if `pooled`; set `change` to 0."""
    width = x.shape[1]
    zero = splat(x.dtype.type(0))
    for at in range(0, x.size, LANES):
        store(change, at, zero)
    if pooled:
        share = splat(x.dtype.type(1) / x.dtype.type(len(words)))
        for d in range(0, width, LANES):
            sums = zero
            for i in range(len(words)):
                sums = multiply_add(share, load(inputs, words[i] * width + d), sums)
            store(x, d, sums)
    else:
        for i in range(len(words)):
            for d in range(0, width, LANES):
                store(x, i * width + d, load(inputs, words[i] * width + d))


def scatter(inputs: Array, words: Array, pooled: bool, gradient_scale: float, change: Array) -> None:
    """Add gradient_scale · change to the words' rows of `inputs`."""
    width = change.shape[1]
    times = splat(gradient_scale)
    for i in range(len(words)):
        row, at = words[i] * width, 0 if pooled else i * width
        for d in range(0, width, LANES):
            store(inputs, row + d, multiply_add(times, load(change, at + d), load(inputs, row + d)))
