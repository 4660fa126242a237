"""Find the best answers to analogy questions from precomputed cosines.

The 3CosAdd and 3CosMul scores of a candidate for a : b :: c : ? only depend on its cosines with a, b and c. So the
caller computes one matrix product, with one row for each distinct word in the questions. There are far fewer of these
words than questions, and each question only needs one pass over three rows.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

cdef enum:
    CANDIDATES = 1024  # candidates in a batch: the scores of a question fit in the first-level cache
    LANES = 16  # number of separate maxima, so that the compiler uses vector registers

WIDTH = CANDIDATES


def update_best(
    const float[:, ::1] cosines,
    const int32_t[:, ::1] questions,
    const int32_t[::1] rows,
    const int32_t[::1] next_variant,
    int64_t first,
    bint multiply,
    float epsilon,
    float[::1] best_scores,
    int64_t[::1] best_rows,
):
    """Update the best answers with W <= WIDTH candidates: rows `first` to `first` + W of the vocabulary.

    Args:
        cosines: (U, W), the cosine of each word in the questions with each candidate, shifted to 0..1 if `multiply`.
        questions: (Q, 3), a, b and c as rows of `cosines`.
        rows: (U,), the vocabulary row of each word in the questions.
        next_variant: (V,), the next row with a word that differs only in case, or -1. Variants of a, b and c cannot be
            answers.
        first: The vocabulary row of the first candidate.
        multiply: Use 3CosMul instead of 3CosAdd.
        epsilon: Added to the divisor in 3CosMul.
        best_scores, best_rows: (Q,), the best score and row so far. Both are updated.
    """
    cdef Py_ssize_t question, i, width = cosines.shape[1]
    cdef const float *a
    cdef const float *b
    cdef const float *c
    cdef float[CANDIDATES] scores
    cdef float best
    cdef int64_t row
    cdef int side
    with nogil:
        for i in range(width, CANDIDATES):
            scores[i] = -INFINITY
        for question in range(questions.shape[0]):
            a = &cosines[questions[question, 0], 0]
            b = &cosines[questions[question, 1], 0]
            c = &cosines[questions[question, 2], 0]
            if multiply:
                for i in range(width):
                    scores[i] = b[i] * c[i] / (a[i] + epsilon)
            else:
                for i in range(width):
                    scores[i] = b[i] - a[i] + c[i]
            for side in range(3):
                row = rows[questions[question, side]]
                while row >= 0:
                    if first <= row < first + width:
                        scores[row - first] = -INFINITY
                    row = next_variant[row]
            best = largest(scores)
            if best > best_scores[question]:
                best_scores[question] = best
                i = 0
                while scores[i] != best:
                    i += 1
                best_rows[question] = first + i


cdef inline float largest(const float *values) noexcept nogil:
    """Return the largest of CANDIDATES values."""
    cdef float[LANES] lanes
    cdef float result = -INFINITY
    cdef int lane
    for lane in range(LANES):
        lanes[lane] = -INFINITY
    for _ in range(CANDIDATES // LANES):
        for lane in range(LANES):
            lanes[lane] = values[lane] if values[lane] > lanes[lane] else lanes[lane]
        values += LANES
    for lane in range(LANES):
        result = lanes[lane] if lanes[lane] > result else result
    return result
