"""Find the best answers to analogy questions, and the nearest vectors, from precomputed cosines.

The 3CosAdd and 3CosMul scores of a candidate for a : b :: c : ? only depend on its cosines with a, b and c. So the
caller computes one matrix product, with one row for each distinct word in the questions. There are far fewer of these
words than questions, and each question only needs one pass over three rows.

The nearest vectors of a query are kept in a heap. Only scores above the lowest score in the heap are looked at one by
one: after the first block of scores, few are.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

cdef enum:
    CANDIDATES = 1024  # candidates in a batch: the scores of a question fit in the first-level cache
    LANES = 16  # number of separate maxima, so that the compiler uses vector registers
    SCANNED = 64  # scores compared at once; GCC unrolls loops of up to 16 steps, and then uses no vector registers

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


def keep_best(
    const float[:, ::1] scores,
    int64_t first,
    const int64_t[::1] left_out,
    const int64_t[::1] starts,
    float[:, ::1] best_scores,
    int64_t[:, ::1] best_rows,
):
    """Update the best candidates of each query with W candidates: rows `first` to `first` + W of the vocabulary.

    Among equal scores, the first row is the best. Call this for the rows in ascending order.

    Args:
        scores: (Q, W), the score of each candidate. NaN and -inf are ignored.
        first: The vocabulary row of the first candidate.
        left_out: (m,), rows that are not candidates of query q: left_out[starts[q] : starts[q + 1]].
        starts: (Q + 1,).
        best_scores, best_rows: (Q, K), the best scores and rows of each query so far, as a heap with the worst first.
            At the beginning, all scores are -inf. Both are updated.
    """
    cdef Py_ssize_t query, i, j, end, width = scores.shape[1], size = best_scores.shape[1]
    cdef const float *values
    cdef float *heap
    cdef float worst
    cdef int lane, above
    if not size or not width:
        return
    with nogil:
        for query in range(scores.shape[0]):
            values = &scores[query, 0]
            heap = &best_scores[query, 0]
            worst = heap[0]
            i = 0
            while i < width:
                end = i + SCANNED if i + SCANNED < width else width
                if end - i == SCANNED:
                    above = 0
                    for lane in range(SCANNED):
                        above |= values[i + lane] > worst
                    if not above:
                        i = end
                        continue
                for j in range(i, end):
                    if values[j] > worst and not contains(left_out, starts[query], starts[query + 1], first + j):
                        replace_worst(heap, &best_rows[query, 0], size, values[j], first + j)
                        worst = heap[0]
                i = end


cdef inline bint contains(const int64_t[::1] rows, int64_t start, int64_t end, int64_t row) noexcept nogil:
    """Return True if rows[start : end] contains a row."""
    cdef int64_t i
    for i in range(start, end):
        if rows[i] == row:
            return True
    return False


cdef inline void replace_worst(
    float *scores, int64_t *rows, Py_ssize_t size, float score, int64_t row
) noexcept nogil:
    """Replace the first entry of a heap, which is the worst. Among equal scores, the last row is the worst."""
    cdef Py_ssize_t hole = 0, child = 1
    while child < size:
        if child + 1 < size and (
            scores[child + 1] < scores[child]
            or (scores[child + 1] == scores[child] and rows[child + 1] > rows[child])
        ):
            child += 1
        if scores[child] > score or (scores[child] == score and rows[child] < row):
            break
        scores[hole] = scores[child]
        rows[hole] = rows[child]
        hole = child
        child = 2 * hole + 1
    scores[hole] = score
    rows[hole] = row
