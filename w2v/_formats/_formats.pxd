"""The parser of decimal numbers, which other modules share."""

from libc.stdint cimport uint8_t

cdef Py_ssize_t parse_number(
    const uint8_t *data, Py_ssize_t begin, Py_ssize_t end, float *value
) noexcept nogil
