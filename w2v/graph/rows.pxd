"""Search in a row of sorted neighbours."""

from libc.stdint cimport int64_t, uint32_t


cdef inline int64_t find_neighbour(const uint32_t *row, int64_t degree, uint32_t neighbour) noexcept nogil:
    """Return the position of a neighbour in a sorted row, or -1 if the row does not contain it.

    The step of the binary search has no branch, because the processor could not predict it.
    """
    cdef const uint32_t *base = row
    cdef int64_t size = degree, half
    if size == 0:
        return -1
    while size > 1:
        half = size // 2
        base += half if base[half - 1] < neighbour else 0
        size -= half
    return base - row if base[0] == neighbour else -1
