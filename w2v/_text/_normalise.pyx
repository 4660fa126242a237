"""Convert text to lower case, and split it into words by the rules of Unicode.

Both functions take and return UTF-8 followed by PADDING, release the GIL, and raise ValueError for malformed UTF-8.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

cdef extern from "_normalise.h" nogil:
    uint64_t load_bytes(const uint8_t *text)
    void store_bytes(uint8_t *text, uint64_t bytes)
    uint64_t lower_ascii(uint64_t bytes)
    int ascii_before(uint64_t bytes)
    int decode(const uint8_t *text, uint32_t *point)
    int encode(uint8_t *text, uint32_t point)

BREAK_CLASSES = {
    "CR": NEWLINE, "LF": NEWLINE, "Newline": NEWLINE, "Extend": EXTEND, "Format": EXTEND, "ZWJ": JOINER,
    "Regional_Indicator": REGIONAL, "Katakana": KATAKANA, "Hebrew_Letter": HEBREW, "ALetter": LETTER,
    "Single_Quote": SINGLE_QUOTE, "Double_Quote": DOUBLE_QUOTE, "MidNumLet": MID_NUM_LET, "MidLetter": MID_LETTER,
    "MidNum": MID_NUM, "Numeric": NUMERIC, "ExtendNumLet": EXTEND_NUM_LET, "WSegSpace": SPACE,
}  # keys: values of the Unicode property Word_Break

cpdef enum:
    PICTOGRAPHIC_FLAG = 16
    WORD_FLAG = 32  # a letter or digit; a segment with such a character is a word
    BLANK_FLAG = 64  # white space or an invisible character; a segment of only such characters is dropped

cdef enum:
    PADDING_BYTES = 64
    FIRST_TWO_BYTES = 0xC280  # the first character of two bytes
    TWO_BYTE_COUNT = 0x1D40  # the number of 16-bit values from FIRST_TWO_BYTES to 0xDFBF, the last such character
    # The low four bits of a character's class. Rule WB4 treats Format like Extend, WB3 treats CR and LF like Newline.
    OTHER = 0
    NEWLINE, EXTEND, JOINER, REGIONAL, KATAKANA, HEBREW, LETTER, SINGLE_QUOTE, DOUBLE_QUOTE
    MID_NUM_LET, MID_LETTER, MID_NUM, NUMERIC, EXTEND_NUM_LET, SPACE
    BREAK_MASK = 15

cdef uint32_t needs_str_lower = 0xFFFFFFFFu
NEEDS_STR_LOWER = needs_str_lower

cdef struct Segment:
    int left  # the class of the last character except EXTEND and JOINER, which rule WB4 skips
    int last  # the class of the last character
    bint bridge  # `left` is punctuation between two letters or two digits; the second of them comes next
    bint odd_regional  # the number of REGIONAL characters so far is odd


def lower(bytes text not None, const uint32_t[::1] table not None):
    """Convert text to lower case, like str.lower.

    table[c] is the lower case of the character c, or NEEDS_STR_LOWER. A word with such a character is passed to
    str.lower, because its length may change or the result depends on neighbouring characters. The table has at least
    0x800 characters; characters beyond the table are not changed.
    """
    cdef const uint8_t *source = text
    cdef int64_t length = len(text), written
    cdef uint8_t[::1] target = np.empty(length + length // 2 + 8, np.uint8)  # no character grows by more than half
    with nogil:
        written = lower_into(&target[0], source, length, &table[0], table.shape[0])
    return bytes(target[:written])


cdef int64_t lower_into(
    uint8_t *target, const uint8_t *source, int64_t length, const uint32_t *table, int64_t table_size,
) except -1 nogil:
    cdef int64_t i = 0, written = 0, end, size
    cdef uint64_t ascii
    cdef uint32_t point, pair
    cdef int count
    cdef uint8_t[4] lower
    # The lower case of a character of two bytes if it also has two bytes; 0 for all others, which are decoded below.
    cdef uint16_t[TWO_BYTE_COUNT] lower_of_two_bytes
    memset(lower_of_two_bytes, 0, sizeof(lower_of_two_bytes))
    for point in range(0x80, 0x800):
        if 0x80 <= table[point] < 0x800:
            encode(lower, table[point])
            pair = ((0xC0 | point >> 6) << 8 | 0x80 | point & 0x3F) - FIRST_TWO_BYTES
            lower_of_two_bytes[pair] = lower[0] | lower[1] << 8
    while i + 8 <= length:
        ascii = load_bytes(source + i)
        store_bytes(target + written, lower_ascii(ascii))
        count = ascii_before(ascii)
        i += count
        written += count
        while source[i] >= 0x80:
            pair = (<uint32_t> source[i] << 8 | source[i + 1]) - FIRST_TWO_BYTES
            if pair < TWO_BYTE_COUNT and lower_of_two_bytes[pair]:
                memcpy(target + written, &lower_of_two_bytes[pair], 2)
                written += 2
                i += 2
                continue
            count = decode(source + i, &point)
            if count == 0:
                raise ValueError("not UTF-8")
            if point >= table_size or table[point] == point:
                store_bytes(target + written, load_bytes(source + i))
                written += count
                i += count
            elif table[point] != needs_str_lower:
                written += encode(target + written, table[point])
                i += count
            else:  # write the whole word again, from its start
                while i > 0 and not is_space(source[i - 1]):
                    i -= 1
                while written > 0 and not is_space(target[written - 1]):
                    written -= 1
                end = i
                while end < length and not is_space(source[end]):
                    end += 1
                with gil:
                    word = source[i:end].decode("utf-8").lower().encode()
                    size = len(word)
                    memcpy(target + written, <const uint8_t *> word, size)
                written += size
                i = end
    memcpy(target + written, source + i, length - i)  # the rest is padding
    return written + length - i


cdef inline bint is_space(uint8_t byte) noexcept nogil:
    return byte == c" " or c"\t" <= byte <= c"\r"


def split_words(bytes text not None, const uint8_t[::1] classes not None, bint punctuation):
    """Split text at the default word boundaries of Unicode (UAX #29). Return the words, separated by white space.

    The text is first divided at ASCII white space, then into segments at word boundaries. Segments with a letter or
    digit are kept. With `punctuation`, all other visible segments are kept, too. classes[c] is the class of the
    character c: one of BREAK_CLASSES and flags. Characters beyond the array have the class OTHER.
    """
    cdef const uint8_t *source = text
    cdef int64_t length = len(text), written
    cdef uint8_t[::1] target = np.empty(2 * length + PADDING_BYTES, np.uint8)  # a space follows each word
    with nogil:
        written = split_words_into(
            &target[0], source, length, &classes[0], classes.shape[0], 0 if punctuation else WORD_FLAG
        )
        memset(&target[written], c" ", PADDING_BYTES)
    return bytes(target[:written + PADDING_BYTES])


cdef int64_t split_words_into(
    uint8_t *target, const uint8_t *source, int64_t length, const uint8_t *classes, int64_t table_size, int needed,
) except -1 nogil:
    cdef int64_t i = 0, start = 0, written = 0
    cdef uint32_t point
    # any_flags has the flags of any character since `start`; all_flags has the flags that all of them share.
    cdef int count, kind, any_flags = 0, all_flags = BLANK_FLAG
    cdef Segment segment = Segment(OTHER, OTHER, False, False)
    while i < length:
        count = decode(source + i, &point)
        if count == 0:
            raise ValueError("not UTF-8")
        kind = classes[point] if point < table_size else OTHER
        if count == 1 and is_space(source[i]):
            written += write_segment(target + written, source + start, i - start, any_flags, all_flags, needed)
            if source[i] == c"\n":
                target[written] = c"\n"
                written += 1
            start = i + 1
            any_flags, all_flags = 0, BLANK_FLAG
        elif i == start or not continues_segment(&segment, kind, source + i + count, classes, table_size):
            written += write_segment(target + written, source + start, i - start, any_flags, all_flags, needed)
            start = i
            any_flags, all_flags = kind, kind
            segment = Segment(kind & BREAK_MASK, kind & BREAK_MASK, False, kind & BREAK_MASK == REGIONAL)
        else:
            any_flags |= kind
            all_flags &= kind
        i += count
    return written


cdef inline int64_t write_segment(
    uint8_t *target, const uint8_t *source, int64_t length, int any_flags, int all_flags, int needed,
) noexcept nogil:
    """Write a segment and a space, unless the segment is dropped. Return the number of bytes written."""
    if length == 0 or all_flags & BLANK_FLAG or (any_flags & needed) != needed:
        return 0
    memcpy(target, source, length)
    target[length] = c" "
    return length + 1


cdef inline bint is_letter(int kind) noexcept nogil:
    return kind == LETTER or kind == HEBREW


cdef bint continues_segment(
    Segment *segment, int kind, const uint8_t *rest, const uint8_t *classes, int64_t table_size,
) noexcept nogil:
    """Return True, and add the next character to the segment, if there is no boundary before it."""
    cdef int left = segment.left, last = segment.last, right = kind & BREAK_MASK
    cdef bint bridge = False, joined
    if left == NEWLINE or right == NEWLINE:  # WB3a, WB3b
        return False
    if right == EXTEND or right == JOINER:  # WB4
        segment.last = right
        return True
    if last == JOINER and kind & PICTOGRAPHIC_FLAG:  # WB3c
        joined = True
    elif right == SPACE:  # WB3d
        joined = last == SPACE
    elif segment.bridge:  # the second half of WB7, WB7c and WB11
        joined = True
    elif right == NUMERIC:  # WB8, WB9, WB13b
        joined = left == NUMERIC or is_letter(left) or left == EXTEND_NUM_LET
    elif is_letter(right):  # WB5, WB10, WB13b
        joined = is_letter(left) or left == NUMERIC or left == EXTEND_NUM_LET
    elif right == KATAKANA:  # WB13, WB13b
        joined = left == KATAKANA or left == EXTEND_NUM_LET
    elif right == EXTEND_NUM_LET:  # WB13a
        joined = is_letter(left) or left == NUMERIC or left == KATAKANA or left == EXTEND_NUM_LET
    elif right == REGIONAL:  # WB15, WB16
        joined = left == REGIONAL and segment.odd_regional
    else:
        if is_letter(left) and (right == MID_LETTER or right == MID_NUM_LET or right == SINGLE_QUOTE):  # WB6
            bridge = is_letter(class_ahead(rest, classes, table_size))
        elif left == HEBREW and right == DOUBLE_QUOTE:  # WB7b
            bridge = class_ahead(rest, classes, table_size) == HEBREW
        elif left == NUMERIC and (right == MID_NUM or right == MID_NUM_LET or right == SINGLE_QUOTE):  # WB12
            bridge = class_ahead(rest, classes, table_size) == NUMERIC
        joined = bridge or (left == HEBREW and right == SINGLE_QUOTE)  # WB7a
    if joined:
        segment.odd_regional = right == REGIONAL and not segment.odd_regional
        segment.left = segment.last = right
        segment.bridge = bridge
    return joined


cdef int class_ahead(const uint8_t *rest, const uint8_t *classes, int64_t table_size) noexcept nogil:
    """Return the class of the next character that is not EXTEND or JOINER."""
    cdef uint32_t point
    cdef int count, kind = EXTEND
    while kind == EXTEND or kind == JOINER:
        count = decode(rest, &point)
        if count == 0:
            return OTHER
        kind = classes[point] & BREAK_MASK if point < table_size else OTHER
        rest += count
    return kind
