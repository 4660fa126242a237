"""Conversion of rows of vector files from bytes to matrices and back, many rows at a time.

A block of bytes is read in two steps. `*_split` counts the complete rows in the block and finds their end. It is fast,
but needs to know where the previous block ended. `*_parse` turns these rows into numbers and words. It is slow, but
several threads can parse several blocks. Both release the GIL, except for rare numbers that are hard to round.
"""

from libc.math cimport floor, llround, log10
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcpy, strlen

cdef extern from "Python.h":
    double PyOS_string_to_double(const char *text, char **end, void *overflow) except? -1.0
    char *PyOS_double_to_string(double value, char code, int precision, int flags, int *kind) except NULL
    void PyMem_Free(void *block)

cdef double[23] POWERS  # the powers of ten that a double represents exactly
POWERS[:] = [10.0 ** exponent for exponent in range(23)]

cdef enum:
    EXPONENT_MASK = 0x7F800000  # the exponent bits of a float32; all are set in infinities and NaN

cdef uint8_t[1] NOTHING  # pointers to empty arrays point here: memchr and memcpy must not get a null pointer


cdef inline const uint8_t *data_pointer(const uint8_t[::1] bytes) noexcept nogil:
    return &bytes[0] if bytes.shape[0] else NOTHING


# -- binary: word, space, columns × float32, and in some files a newline --------------------------------

cdef inline Py_ssize_t skip_newlines(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    while at < end and data[at] == c"\n":
        at += 1
    return at


cdef inline Py_ssize_t word_end(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t near = min(at + 16, end)  # most words end within 16 bytes: look there before calling memchr
    cdef const void *space
    while at < near:
        if data[at] == c" ":
            return at
        at += 1
    space = memchr(data + at, c" ", end - at)
    return end if space == NULL else <const uint8_t *>space - data


def binary_split(const uint8_t[::1] data, Py_ssize_t columns, int64_t limit, bint final):
    """Return the number of complete rows at the start of `data`, at most `limit`, and the position of their end."""
    cdef const uint8_t *bytes = data_pointer(data)
    cdef Py_ssize_t size = data.shape[0], at = 0, done = 0
    cdef int64_t rows = 0
    with nogil:
        while rows < limit:
            at = word_end(bytes, skip_newlines(bytes, done, size), size)
            if size - at - 1 < 4 * columns:
                break
            done = at + 1 + 4 * columns
            rows += 1
    return rows, done


def binary_parse(const uint8_t[::1] data, float[:, ::1] vectors, uint8_t[::1] words, int64_t[::1] lengths):
    """Parse R complete rows into vectors (R, columns), words (end to end) and their lengths (R,).

    Returns:
        The number of bytes written to `words`, and the first wrong row (one with a NaN or an infinity), or -1.
    """
    cdef const uint8_t *bytes = data_pointer(data)
    cdef Py_ssize_t size = data.shape[0], columns = vectors.shape[1], begin, at = 0, used = 0
    cdef int64_t row, wrong = -1
    with nogil:
        for row in range(vectors.shape[0]):
            begin = skip_newlines(bytes, at, size)
            at = word_end(bytes, begin, size)
            memcpy(&words[0] + used, bytes + begin, at - begin)
            used += at - begin
            lengths[row] = at - begin
            memcpy(&vectors[row, 0], bytes + at + 1, 4 * columns)
            at += 1 + 4 * columns
            if wrong < 0 and not finite(&vectors[row, 0], columns):
                wrong = row
    return used, wrong


cdef inline bint finite(const float *values, Py_ssize_t count) noexcept nogil:
    cdef const uint32_t *bits = <const uint32_t *>values
    cdef uint32_t found = 0
    cdef Py_ssize_t i
    for i in range(count):
        found |= (bits[i] & EXPONENT_MASK) == EXPONENT_MASK
    return not found


def first_non_finite_row(const float[:, :] vectors):
    """Return the first row of vectors (V, D) with a NaN or an infinity, or -1. The rows must be contiguous."""
    cdef int64_t row, wrong = -1
    with nogil:
        for row in range(vectors.shape[0]):
            if not finite(&vectors[row, 0], vectors.shape[1]):
                wrong = row
                break
    return wrong


def binary_format(
    const float[:, ::1] vectors, const uint8_t[::1] blob, const int64_t[::1] offsets, uint8_t[::1] out
):
    """Write R rows like word2vec.c. Return the bytes written to `out`. Word i is blob[offsets[i]:offsets[i + 1]]."""
    cdef Py_ssize_t row, length, at = 0, columns = vectors.shape[1]
    with nogil:
        for row in range(vectors.shape[0]):
            length = offsets[row + 1] - offsets[row]
            memcpy(&out[at], data_pointer(blob) + offsets[row], length)
            at += length
            out[at] = c" "
            memcpy(&out[at + 1], &vectors[row, 0], 4 * columns)
            at += 4 * columns + 2
            out[at - 1] = c"\n"
    return at


# -- text: word, columns × number, separated by spaces, one row per line ------------------------------

cdef inline bint blank(uint8_t byte) noexcept nogil:
    return byte == c" " or byte == c"\t" or byte == c"\r"


cdef inline Py_ssize_t line_end(const uint8_t *data, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    cdef const void *newline = memchr(data + at, c"\n", size - at)
    return size if newline == NULL else <const uint8_t *>newline - data


cdef inline Py_ssize_t trim_end(const uint8_t *data, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    while end > begin and blank(data[end - 1]):
        end -= 1
    return end


def text_split(const uint8_t[::1] data, Py_ssize_t columns, int64_t limit, bint final):
    """Return the number of complete lines at the start of `data`, at most `limit`, and the position of their end.

    Blank lines are not counted. If the data is `final`, the last line needs no newline.
    """
    cdef const uint8_t *bytes = data_pointer(data)
    cdef Py_ssize_t size = data.shape[0], end, done = 0
    cdef int64_t rows = 0
    with nogil:
        while rows < limit and done < size:
            end = line_end(bytes, done, size)
            if end == size and not final:
                break
            rows += trim_end(bytes, done, end) > done
            done = min(end + 1, size)
    return rows, done


def text_parse(const uint8_t[::1] data, float[:, ::1] vectors, uint8_t[::1] words, int64_t[::1] lengths):
    """Parse R = len(vectors) lines like binary_parse, but stop at the first wrong row.

    A malformed line is also a wrong row; its length is -1.
    """
    cdef const uint8_t *bytes = data_pointer(data)
    cdef Py_ssize_t size = data.shape[0], columns = vectors.shape[1], begin = 0, end, stop, used = 0
    cdef int64_t row, wrong = -1
    with nogil:
        for row in range(vectors.shape[0]):
            while True:
                stop = line_end(bytes, begin, size)
                end = trim_end(bytes, begin, stop)
                if end > begin:
                    break
                begin = stop + 1
            lengths[row] = parse_line(bytes, begin, end, &vectors[row, 0], columns)
            if lengths[row] >= 0:
                memcpy(&words[0] + used, bytes + begin, lengths[row])
                used += lengths[row]
            if lengths[row] < 0 or not finite(&vectors[row, 0], columns):
                wrong = row
                break
            begin = stop + 1
    return used, wrong


cdef Py_ssize_t parse_line(
    const uint8_t *data, Py_ssize_t begin, Py_ssize_t end, float *values, Py_ssize_t columns
) noexcept nogil:
    """Parse the numbers at the end of a line. Return the length of the word before them, or -1.

    Few words contain spaces. So the first attempt ends the word at the first space, and only the second attempt counts
    numbers from the right.
    """
    cdef Py_ssize_t at = begin
    while at < end and not blank(data[at]):
        at += 1
    if at > begin and parse_numbers(data, at, end, values, columns):
        return at - begin
    at = end
    for _ in range(columns):
        while at > begin and not blank(data[at - 1]):
            at -= 1
        at = trim_end(data, begin, at)
    if at > begin and parse_numbers(data, at, end, values, columns):
        return at - begin
    return -1


cdef bint parse_numbers(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, float *values, Py_ssize_t columns
) noexcept nogil:
    cdef Py_ssize_t column
    for column in range(columns):
        while at < end and blank(data[at]):
            at += 1
        at = parse_number(data, at, end, values + column)
        if at < 0:
            return False
    return at == end


cdef Py_ssize_t parse_number(
    const uint8_t *data, Py_ssize_t begin, Py_ssize_t end, float *value
) noexcept nogil:
    """Parse the decimal number at `begin`, rounded to the nearest double, then to float32. Return its end, or -1.

    An integer up to 2^53, multiplied or divided by a power of ten up to 10^22, takes one correctly rounded operation
    (Clinger 1990). Python converts other numbers; it stops at the space or newline after the number.
    """
    cdef Py_ssize_t at = begin, digits_begin, fraction_begin, digit_count
    cdef uint64_t mantissa = 0
    cdef int64_t exponent = 0, explicit_exponent = 0  # the whole power of ten, and the number after the letter e
    cdef bint negative = False, exponent_is_negative
    cdef double result
    if at < end and (data[at] == c"-" or data[at] == c"+"):
        negative = data[at] == c"-"
        at += 1
    digits_begin = at
    while at < end and data[at] - c"0" < 10u:
        mantissa = mantissa * 10 + (data[at] - c"0")
        at += 1
    digit_count = at - digits_begin
    if at < end and data[at] == c".":
        at += 1
        fraction_begin = at
        while at < end and data[at] - c"0" < 10u:
            mantissa = mantissa * 10 + (data[at] - c"0")
            at += 1
        exponent = fraction_begin - at
        digit_count -= exponent
    if 0 < digit_count < 20 and at < end and (data[at] | 32) == c"e":
        at += 1
        exponent_is_negative = at < end and data[at] == c"-"
        if at < end and (data[at] == c"-" or data[at] == c"+"):
            at += 1
        if at == end or data[at] - c"0" >= 10u:
            return -1
        while at < end and data[at] - c"0" < 10u:
            explicit_exponent = min(explicit_exponent * 10 + (data[at] - c"0"), 100000)
            at += 1
        exponent += -explicit_exponent if exponent_is_negative else explicit_exponent
    if digit_count == 0 or digit_count > 19 or mantissa > <uint64_t>1 << 53 or exponent < -22 or exponent > 22:
        return parse_with_python(data, begin, end, value)
    if at < end and not blank(data[at]):
        return -1
    result = mantissa * POWERS[exponent] if exponent > 0 else mantissa / POWERS[-exponent]
    value[0] = <float>(-result if negative else result)
    return at


cdef Py_ssize_t parse_with_python(
    const uint8_t *data, Py_ssize_t begin, Py_ssize_t end, float *value
) noexcept with gil:
    cdef Py_ssize_t at = begin
    cdef char *stop = NULL
    while at < end and not blank(data[at]):
        at += 1
    try:
        value[0] = <float>PyOS_string_to_double(<const char *>data + begin, &stop, NULL)
    except (ValueError, MemoryError):
        return -1
    return at if stop == <char *>data + at else -1


def text_format(
    const float[:, ::1] vectors, const uint8_t[::1] blob, const int64_t[::1] offsets, uint8_t[::1] out
):
    """Write R rows with the fewest digits that read back as the same float32. Return the bytes written to `out`."""
    cdef Py_ssize_t row, column, length, at = 0
    with nogil:
        for row in range(vectors.shape[0]):
            length = offsets[row + 1] - offsets[row]
            memcpy(&out[at], data_pointer(blob) + offsets[row], length)
            at += length
            for column in range(vectors.shape[1]):
                out[at] = c" "
                at += 1 + format_number(vectors[row, column], &out[at + 1])
            out[at] = c"\n"
            at += 1
    return at


cdef Py_ssize_t format_number(float value, uint8_t *out) noexcept nogil:
    """Write a float32 and return the number of bytes, at most 16: sign, 9 digits, point, zeros or exponent."""
    cdef uint8_t[24] digits
    cdef double magnitude = -<double>value if value < 0 else value, read_back
    cdef int64_t mantissa = 0
    cdef int precision, scale = 0, count = 0, point, exponent, i
    cdef Py_ssize_t at = 0
    if not (1e-14 <= magnitude < 1e22):
        return format_with_python(value, out)
    exponent = <int>floor(log10(magnitude))
    for precision in range(6, 10):  # 6 digits may be enough; 9 always are
        scale = precision - 1 - exponent
        mantissa = llround(magnitude * POWERS[scale] if scale >= 0 else magnitude / POWERS[-scale])
        read_back = mantissa / POWERS[scale] if scale >= 0 else mantissa * POWERS[-scale]
        if <float>read_back == <float>magnitude:
            break
    while mantissa % 10 == 0:
        mantissa //= 10
        scale -= 1
    while mantissa:
        digits[count] = <uint8_t>(c"0" + mantissa % 10)
        mantissa //= 10
        count += 1
    point = count - scale  # digits before the decimal point
    if value < 0:
        out[at] = c"-"
        at += 1
    exponent = 0
    if not (-5 < point <= 9):
        exponent = point - 1
        point = 1
    if point <= 0:
        memcpy(out + at, b"0.0000", 2 - point)
        at += 2 - point
    for i in range(max(point, count)):
        if 0 < i == point:
            out[at] = c"."
            at += 1
        out[at] = digits[count - 1 - i] if i < count else c"0"
        at += 1
    if exponent != 0:
        memcpy(out + at, b"e+" if exponent > 0 else b"e-", 2)
        exponent = exponent if exponent > 0 else -exponent
        out[at + 2] = <uint8_t>(c"0" + exponent // 10)
        out[at + 3] = <uint8_t>(c"0" + exponent % 10)
        at += 4
    return at


cdef Py_ssize_t format_with_python(float value, uint8_t *out) noexcept with gil:
    """Write zero, or a number beyond the range where powers of ten are exact. Return the number of bytes."""
    cdef char *text = PyOS_double_to_string(value, c"g", 9, 0, NULL)
    cdef Py_ssize_t length = strlen(text)
    memcpy(out, text, length)
    PyMem_Free(text)
    return length
