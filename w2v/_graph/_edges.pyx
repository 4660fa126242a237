"""Split the lines of an edge list into nodes and weights, and build compressed sparse rows (CSR) from edges.

Rows are built in three steps. `count_degrees` and `scatter` visit the edges twice: first they count the neighbours of
each node, then they write each neighbour to the row of its node. `sort_rows` then sorts the rows, in any number of
threads, and `close_gaps` removes the room of repeated edges.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcpy

from w2v._formats._formats cimport parse_number
from w2v._text._text cimport FIRST_TYPE

import numpy as np

cdef enum:
    SMALL_ROW = 24  # a row with at most this many neighbours is sorted by insertion
    WHITE_SPACE = 0  # as a delimiter: any run of white space


class BadLine(Exception):
    """Error: a line is not an edge. Arguments: the position of the line in the text, and the reason."""


cdef struct Field:
    const uint8_t *start  # NULL if its quotation marks do not match
    const uint8_t *end
    bint quoted


cdef inline bint is_space(uint8_t byte) noexcept nogil:
    return byte == c" " or c"\t" <= byte <= c"\r"


cdef inline Field next_field(const uint8_t **at, const uint8_t *end, uint8_t delimiter) noexcept nogil:
    """Return the next field of a line without the white space around it, and move `at` behind its delimiter.

    After the last field, `at` is NULL. If the delimiter is a comma or semicolon, a field may have quotation marks
    around it, and two of them inside stand for one.
    """
    cdef Field field
    cdef const uint8_t *stop = at[0]
    while stop < end and is_space(stop[0]) and stop[0] != delimiter:
        stop += 1
    field.start, field.quoted = stop, False
    if delimiter == WHITE_SPACE:
        while stop < end and not is_space(stop[0]):
            stop += 1
        field.end = stop
        while stop < end and is_space(stop[0]):
            stop += 1
        at[0] = stop if stop < end else NULL
        return field
    if stop < end and stop[0] == c'"' and (delimiter == c"," or delimiter == c";"):
        stop += 1
        while stop < end and (stop[0] != c'"' or (stop + 1 < end and stop[1] == c'"')):
            stop += 2 if stop[0] == c'"' else 1
        field = Field(field.start + 1, stop, True)
        stop += 1
        while stop < end and is_space(stop[0]):
            stop += 1
        if field.end >= end or (stop < end and stop[0] != delimiter):
            field.start = NULL
    else:
        while stop < end and stop[0] != delimiter:
            stop += 1
        field.end = stop
        while field.end > field.start and is_space((field.end - 1)[0]):
            field.end -= 1
    at[0] = stop + 1 if stop < end else NULL
    return field


cdef inline int64_t copy_field(uint8_t *to, Field field) noexcept nogil:
    """Copy a field, and return the number of bytes written."""
    cdef int64_t length = field.end - field.start, written = 0, i = 0
    if not field.quoted:
        memcpy(to, field.start, length)
        return length
    while i < length:
        to[written] = field.start[i]
        written += 1
        i += 2 if field.start[i] == c'"' else 1
    return written


def split_edges(bytes text not None, uint8_t delimiter, int fields, int first, int second, int third, bint weighted,
                bytes left not None, bytes right not None):
    """Split whole lines into edges or adjacency lists. Empty lines and lines that begin with # or % are skipped.

    The GIL is released.

    Args:
        text: The lines, as bytes, because the parser of numbers reads a zero byte after them.
        delimiter: The character between fields, or 0 for any run of white space.
        fields: The number of fields of each line. 0 if lines are adjacency lists, whose fields are all nodes.
        first, second: The positions of the fields of an edge with its nodes.
        third: The position of the field with its weight, which must be a number; negative without weights.
        weighted: Whether the weights are used, so they must not be negative.
        left, right: The prefixes of the first and of the other nodes of each line.

    Returns:
        The names of the nodes of all lines, end to end, in the order of the text: their bytes, uint8 (n,), and
        offsets, int64 (names + 1,). The number of names in each line, int64 (lines,), or empty if lines are edges. The
        weights, float32 (lines,) or empty.

    Raises:
        BadLine: If a line has another number of fields, a node without a name, or a weight that is not a number.
    """
    cdef int64_t size = len(text), lines = text.count(b"\n") + 1
    cdef int64_t most = 2 * lines if fields else size // 2 + 1  # names
    # + 1, since an empty array has no address
    cdef uint8_t[::1] names = np.empty(size + most * max(len(left), len(right)) + 1, np.uint8)
    cdef int64_t[::1] offsets = np.zeros(most + 1, np.int64)
    cdef const char *prefixes[2]
    cdef int64_t[2] sizes = [len(left), len(right)]
    cdef bint has_prefixes = len(left) > 0
    prefixes[0], prefixes[1] = left, right
    cdef int64_t[::1] lengths = np.zeros(0 if fields else lines, np.int64)
    cdef float[::1] weights = np.empty(lines if third >= 0 else 0, np.float32)
    cdef const uint8_t *begin = text
    cdef const uint8_t *line = begin
    cdef const uint8_t *stop = begin + size
    cdef const uint8_t *end  # of the line, without white space
    cdef const uint8_t *newline
    cdef const uint8_t *at
    cdef int64_t found = 0, count = 0, used = 0, length
    cdef int k
    cdef float weight
    cdef Field field
    cdef const char *problem = NULL
    with nogil:
        while line < stop:
            newline = <const uint8_t *>memchr(line, c"\n", stop - line)
            if newline == NULL:
                newline = stop
            at, end, k = line, newline, 0
            while end > line and is_space((end - 1)[0]):
                end -= 1
            while at < end and is_space(at[0]) and at[0] != delimiter:
                at += 1
            if at == end or at[0] == c"#" or at[0] == c"%":
                line = newline + 1
                continue
            while at != NULL:
                field = next_field(&at, end, delimiter)
                length = field.end - field.start
                if field.start == NULL or (length == 0 and (fields == 0 or k == first or k == second)):
                    problem = "empty" if field.start else "quotes"
                    break
                if fields == 0 or k == first or k == second:
                    if has_prefixes:
                        memcpy(&names[used], prefixes[k != first], sizes[k != first])
                        used += sizes[k != first]
                    used += copy_field(&names[used], field)
                    count += 1
                    offsets[count] = used
                    if fields == 0:
                        lengths[found] += 1
                elif k == third:
                    if parse_number(field.start, 0, length, &weight) != length:
                        problem = "number"
                    elif weighted and not 0 <= weight < INFINITY:
                        problem = "number"
                    weights[found] = weight
                k += 1
                if k == fields:
                    break
            if problem == NULL and fields and (k != fields or at != NULL):
                problem = "fields"
            if problem != NULL:
                break
            found += 1
            line = newline + 1
    if problem != NULL:
        raise BadLine(line - begin, problem.decode())
    found_weights = np.asarray(weights)[:found]
    return np.asarray(names)[:used], np.asarray(offsets)[:count + 1], np.asarray(lengths)[:found], found_weights


def count_degrees(const uint32_t[::1] ids not None, int64_t[::1] degrees not None, bint directed):
    """Add the edges of a block to the degrees of their nodes: int64 (nodes,).

    Edge i goes from id ids[2 * i] to ids[2 * i + 1]. Node 0 has the id FIRST_TYPE.
    """
    cdef int64_t i
    with nogil:
        for i in range(ids.shape[0] // 2):
            degrees[ids[2 * i] - FIRST_TYPE] += 1
            if not directed and ids[2 * i] != ids[2 * i + 1]:
                degrees[ids[2 * i + 1] - FIRST_TYPE] += 1


def scatter(const uint32_t[::1] ids not None, const float[::1] edge_weights, int64_t[::1] ends not None,
            uint32_t[::1] neighbours not None, float[::1] weights, bint directed):
    """Append the edges of a block to the rows of their nodes.

    Args:
        ids: See `count_degrees`.
        edge_weights: float32 (edges,), or None.
        ends: int64 (nodes,), the end of each row so far; advanced.
        neighbours: uint32 (n,), filled.
        weights: float32 (n,), filled, or None.
        directed: If False, each edge is also appended in the other direction.
    """
    cdef int64_t i, u, v, at
    with nogil:
        for i in range(ids.shape[0] // 2):
            u, v = ids[2 * i] - FIRST_TYPE, ids[2 * i + 1] - FIRST_TYPE
            at = ends[u]
            neighbours[at] = <uint32_t>v
            if weights is not None:
                weights[at] = edge_weights[i]
            ends[u] += 1
            if not directed and u != v:
                at = ends[v]
                neighbours[at] = <uint32_t>u
                if weights is not None:
                    weights[at] = edge_weights[i]
                ends[v] += 1


cdef void sort_keys(uint64_t *keys, uint64_t *other, int64_t n) noexcept nogil:
    """Sort n keys; `other` is working memory for n keys."""
    cdef int64_t i, k, left, right, half
    cdef uint64_t key
    if n <= SMALL_ROW:
        for i in range(1, n):
            key, k = keys[i], i
            while k > 0 and keys[k - 1] > key:
                keys[k] = keys[k - 1]
                k -= 1
            keys[k] = key
        return
    half = n // 2
    sort_keys(keys, other, half)
    sort_keys(keys + half, other, n - half)
    if keys[half - 1] <= keys[half]:
        return
    memcpy(other, keys, half * sizeof(uint64_t))
    left, right, i = 0, half, 0
    while left < half and right < n:
        if other[left] <= keys[right]:
            keys[i] = other[left]
            left += 1
        else:
            keys[i] = keys[right]
            right += 1
        i += 1
    memcpy(keys + i, other + left, (half - left) * sizeof(uint64_t))


def sort_rows(const int64_t[::1] indptr not None, uint32_t[::1] neighbours not None, float[::1] weights,
              int64_t[::1] degrees not None, bint add, int64_t first, int64_t last):
    """Sort the rows of the nodes from `first` to `last` − 1, and make each repeated edge one edge.

    Edges of weight 0 are dropped. The GIL is released, and several threads may sort different nodes.

    Args:
        indptr: int64 (nodes + 1,), the start of each row.
        neighbours: uint32 (n,), sorted in place.
        weights: float32 (n,), sorted with the neighbours, or None.
        degrees: int64 (nodes,), filled with the number of neighbours that are left in each row.
        add: Whether the weight of a repeated edge is the sum of its weights; otherwise it is the last of them.
        first, last: The nodes.
    """
    cdef int64_t node, start, n, i, kept, largest = 0
    for node in range(first, last):
        largest = max(largest, indptr[node + 1] - indptr[node])
    cdef uint64_t[:, ::1] memory = np.empty((2, largest), np.uint64)
    cdef float[::1] old = np.empty(0 if weights is None else largest, np.float32)
    cdef uint64_t *keys
    cdef double weight = 1
    with nogil:
        for node in range(first, last):
            start, n, kept = indptr[node], indptr[node + 1] - indptr[node], 0
            if n == 0:
                degrees[node] = 0
                continue
            # The number of the edge in the row makes the keys different and keeps repeated edges in order.
            keys = &memory[0, 0]
            for i in range(n):
                keys[i] = <uint64_t>neighbours[start + i] << 32 | <uint64_t>i
                if weights is not None:
                    old[i] = weights[start + i]
            sort_keys(keys, &memory[1, 0], n)
            for i in range(n):
                if weights is not None:
                    weight = old[keys[i] & 0xFFFFFFFFu] + (weight if add and i and keys[i] >> 32 == keys[i - 1] >> 32
                                                           else 0)
                if i + 1 < n and keys[i] >> 32 == keys[i + 1] >> 32:
                    continue
                if weights is not None:
                    weights[start + kept] = <float>weight
                neighbours[start + kept] = <uint32_t>(keys[i] >> 32)
                kept += weight > 0
            degrees[node] = kept


def close_gaps(const int64_t[::1] indptr not None, uint32_t[::1] neighbours not None, float[::1] weights,
               const int64_t[::1] degrees not None):
    """Move the rows, each with the first `degrees` neighbours, to the front, and return the new indptr."""
    cdef int64_t[::1] starts = np.zeros(indptr.shape[0], np.int64)
    cdef int64_t node, i, start, to = 0
    with nogil:
        for node in range(degrees.shape[0]):
            start = indptr[node]
            if start > to:
                for i in range(degrees[node]):
                    neighbours[to + i] = neighbours[start + i]
                    if weights is not None:
                        weights[to + i] = weights[start + i]
            to += degrees[node]
            starts[node + 1] = to
    return np.asarray(starts)
