"""Search in a row of sorted neighbours, with few branches, because the processor could not predict them."""

from libc.stdint cimport int64_t, uint32_t

cdef enum:
    SCANNED = 32  # this many neighbours are compared one by one, which vector instructions do


cdef inline int64_t find_neighbour(const uint32_t *row, int64_t degree, uint32_t neighbour) noexcept nogil:
    """Return the position of a neighbour in a sorted row, or -1 if the row does not contain it."""
    cdef const uint32_t *base = row
    cdef int64_t size = degree, half
    if size == 0:
        return -1
    while size > 1:
        half = size // 2
        base += half if base[half - 1] < neighbour else 0
        size -= half
    return base - row if base[0] == neighbour else -1


cdef inline bint has_neighbour(
    const uint32_t *row, int64_t degree, const uint32_t *end, uint32_t neighbour
) noexcept nogil:
    """Return whether a sorted row contains a neighbour. `end` is the end of all rows.

    SCANNED neighbours are compared even if the row has fewer, since a loop of a fixed length needs no branches.
    """
    cdef int64_t size = degree, half
    cdef uint32_t found = 0, i, count
    while size > SCANNED:
        half = size // 2
        row += half if row[half - 1] < neighbour else 0
        size -= half
    count = <uint32_t>size
    if end - row >= SCANNED:
        for i in range(<uint32_t>SCANNED):
            found |= (row[i] == neighbour) & (i < count)
    else:
        for i in range(count):
            found |= row[i] == neighbour
    return found
