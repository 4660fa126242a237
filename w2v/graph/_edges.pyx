"""Split the lines of an edge list into nodes and weights, and build compressed sparse rows (CSR) from edges.

Rows are built in three steps. `count_degrees` and `scatter` visit the edges twice: first they count the neighbours of
each node, then they write each neighbour to the row of its node. `sort_rows` then sorts the rows, in any number of
threads, and `close_gaps` removes the room of repeated edges.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcpy

from w2v.formats._formats cimport parse_number
from w2v.graph.rows cimport find_neighbour
from w2v.text._text cimport FIRST_TYPE

import numpy as np

cdef enum:
    SMALL_ROW = 24  # a row with at most this many neighbours is sorted by insertion
    WHITE_SPACE = 0  # as a delimiter: any run of white space


class BadLine(Exception):
    """Error: a line is not an edge. Arguments: the position of the line in the text, and the reason."""


cdef struct Field:
    const uint8_t *start
    const uint8_t *end


cdef inline bint is_space(uint8_t byte) noexcept nogil:
    return byte == c" " or c"\t" <= byte <= c"\r"


cdef inline Field next_field(const uint8_t **at, const uint8_t *end, uint8_t delimiter) noexcept nogil:
    """Return the next field of a line without the white space around it, and move `at` behind its delimiter.

    After the last field, `at` is NULL.
    """
    cdef Field field
    cdef const uint8_t *stop = at[0]
    if delimiter == WHITE_SPACE:
        while stop < end and is_space(stop[0]):
            stop += 1
        field.start = stop
        while stop < end and not is_space(stop[0]):
            stop += 1
        field.end = stop
        while stop < end and is_space(stop[0]):
            stop += 1
        at[0] = stop if stop < end else NULL
        return field
    field.start = stop
    stop = <const uint8_t *>memchr(stop, delimiter, end - stop)
    if stop == NULL:
        stop = end
    at[0] = stop + 1 if stop < end else NULL
    field.end = stop
    while field.start < field.end and is_space(field.start[0]):
        field.start += 1
    while field.end > field.start and is_space((field.end - 1)[0]):
        field.end -= 1
    return field


def split_edges(bytes text not None, uint8_t delimiter, bint weighted):
    """Split whole lines into edges. Empty lines and lines that begin with # or % are skipped. The GIL is released.

    Args:
        text: The lines, as bytes, because the parser of numbers reads a zero byte after them.
        delimiter: The character between fields, or 0 for any run of white space.
        weighted: Whether the third field of a line is the weight of its edge.

    Returns:
        The names of the two nodes of each edge, end to end: their bytes, uint8 (n,), and offsets, int64
        (2 · edges + 1,). The weights of the edges, float32 (edges,), or None.

    Raises:
        BadLine: If a line has fewer fields or if its weight is not a positive number.
    """
    cdef int64_t size = len(text), lines = text.count(b"\n") + 1
    cdef uint8_t[::1] names = np.empty(size + 1, np.uint8)  # + 1, since an empty array has no address
    cdef int64_t[::1] offsets = np.zeros(2 * lines + 1, np.int64)
    cdef uint8_t *to = &names[0]
    cdef const uint8_t *begin = text
    cdef float[::1] weights = np.empty(lines if weighted else 0, np.float32)
    cdef const uint8_t *line = begin
    cdef const uint8_t *end
    cdef const uint8_t *at
    cdef const uint8_t *stop = begin + size
    cdef int64_t edges = 0, length = 0
    cdef int k
    cdef float weight = 0
    cdef Field[3] fields
    cdef const char *problem = NULL
    with nogil:
        while line < stop and problem == NULL:
            end = <const uint8_t *>memchr(line, c"\n", stop - line)
            if end == NULL:
                end = stop
            at = line
            while at < end and is_space(at[0]):
                at += 1
            if at == end or at[0] == c"#" or at[0] == c"%":
                line = end + 1
                continue
            at = line
            for k in range(3 if weighted else 2):
                if at == NULL:
                    problem = "weight" if k == 2 else "field"
                    break
                fields[k] = next_field(&at, end, delimiter)
                if fields[k].start == fields[k].end:
                    problem = "empty"
                    break
            if problem != NULL:
                break
            if weighted:
                size = fields[2].end - fields[2].start
                if parse_number(fields[2].start, 0, size, &weight) != size or not 0 <= weight < INFINITY:
                    problem = "number"
                    break
                weights[edges] = weight
            for k in range(2):
                memcpy(to + length, fields[k].start, fields[k].end - fields[k].start)
                length += fields[k].end - fields[k].start
                offsets[2 * edges + k + 1] = length
            edges += 1
            line = end + 1
    if problem != NULL:
        raise BadLine(line - begin, problem.decode())
    found_weights = np.asarray(weights)[:edges] if weighted else None
    return np.asarray(names)[:length], np.asarray(offsets)[:2 * edges + 1], found_weights


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
              int64_t[::1] degrees not None, int64_t first, int64_t last):
    """Sort the rows of the nodes from `first` to `last` − 1, and keep the last weight of a repeated edge.

    Edges of weight 0 are dropped. The GIL is released, and several threads may sort different nodes.

    Args:
        indptr: int64 (nodes + 1,), the start of each row.
        neighbours: uint32 (n,), sorted in place.
        weights: float32 (n,), sorted with the neighbours, or None.
        degrees: int64 (nodes,), filled with the number of neighbours that are left in each row.
        first, last: The nodes.
    """
    cdef int64_t node, start, n, i, kept, largest = 0
    for node in range(first, last):
        largest = max(largest, indptr[node + 1] - indptr[node])
    cdef uint64_t[:, ::1] memory = np.empty((2, largest), np.uint64)
    cdef float[::1] old = np.empty(0 if weights is None else largest, np.float32)
    cdef uint64_t *keys
    cdef float weight = 1
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
                if i + 1 < n and keys[i] >> 32 == keys[i + 1] >> 32:
                    continue
                if weights is not None:
                    weight = old[keys[i] & 0xFFFFFFFFu]
                    weights[start + kept] = weight
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


def is_symmetric(const int64_t[::1] indptr not None, const uint32_t[::1] neighbours not None, const float[::1] weights):
    """Return whether each edge also exists in the other direction, with the same weight. Rows must be sorted."""
    cdef int64_t node, i, start, at
    cdef bint symmetric = True
    with nogil:
        for node in range(indptr.shape[0] - 1):
            for i in range(indptr[node], indptr[node + 1]):
                start = indptr[neighbours[i]]
                at = find_neighbour(&neighbours[0] + start, indptr[neighbours[i] + 1] - start, <uint32_t>node)
                if at < 0 or (weights is not None and weights[start + at] != weights[i]):
                    symmetric = False
                    break
            if not symmetric:
                break
    return symmetric


def count_loops(const int64_t[::1] indptr not None, const uint32_t[::1] neighbours not None):
    """Return the number of edges from a node to itself."""
    cdef int64_t node, i, loops = 0
    with nogil:
        for node in range(indptr.shape[0] - 1):
            for i in range(indptr[node], indptr[node + 1]):
                loops += neighbours[i] == node
    return loops
