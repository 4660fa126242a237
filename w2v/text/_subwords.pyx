"""Hash the character n-grams of words into buckets like fastText (Bojanowski et al. 2017, section 3.2)."""

from libc.stdint cimport int32_t, int64_t, int8_t, uint32_t

import numpy as np


cdef inline bint continues(const unsigned char[::1] text, int64_t at) noexcept nogil:
    """Return True if the byte at this position is not the first byte of its UTF-8 character."""
    return text[at] & 0xC0 == 0x80


cdef inline uint32_t hash_character(
    uint32_t fnv, const unsigned char[::1] text, int64_t begin, int64_t end, bint hash_code_points
) noexcept nogil:
    """Continue the FNV-1a hash by the bytes of a character or, if `hash_code_points`, by its code point."""
    cdef uint32_t character = text[begin]
    cdef int64_t at
    if hash_code_points:
        if end - begin > 1:
            character &= 0xFF >> min(end - begin + 1, 8)
        for at in range(begin + 1, end):
            character = character << 6 | text[at] & 0x3F
        return (fnv ^ character) * 16777619
    for at in range(begin, end):
        fnv = (fnv ^ <uint32_t><int8_t>text[at]) * 16777619  # fastText extends the sign of each byte
    return fnv


cdef int64_t list_buckets(
    const unsigned char[::1] text,
    int64_t first,
    int64_t shortest,
    int64_t longest,
    uint32_t buckets,
    bint hash_code_points,
    int32_t *found,
) noexcept nogil:
    """Write the bucket of each n-gram that begins at byte `first` of `text` into `found`. Return their number."""
    cdef int64_t size = text.shape[0], begin, end = first, length, count = 0
    cdef uint32_t fnv = 2166136261  # FNV-1a
    if continues(text, first):
        return 0
    for length in range(1, longest + 1):
        if end == size:
            break
        begin = end
        end += 1
        while end < size and continues(text, end):
            end += 1
        fnv = hash_character(fnv, text, begin, end, hash_code_points)
        if length < shortest or (length == 1 and (first == 0 or end == size)):
            continue  # a single < or > is not an n-gram
        found[count] = fnv % buckets
        count += 1
    return count


def counts_of(const unsigned char[::1] blob, const int64_t[::1] offsets, int64_t shortest, int64_t longest):
    """Return the number of n-grams of each of V words, int64 (V,); see `buckets_of`."""
    cdef int64_t words = offsets.shape[0] - 1, k, at, characters, last
    cdef int64_t[::1] counts = np.zeros(words, np.int64)
    for k in range(words):
        if is_sentence_end(blob[offsets[k] : offsets[k + 1]]):
            continue
        characters = 2  # < and >
        for at in range(offsets[k], offsets[k + 1]):
            characters += not continues(blob, at)
        last = min(longest, characters)
        if shortest <= last:
            # The sum of (characters + 1 - n) over the lengths n, without the single < and >.
            counts[k] = (last - shortest + 1) * (2 * (characters + 1) - shortest - last) // 2 - 2 * (shortest == 1)
    return np.asarray(counts)


cdef inline bint is_sentence_end(const unsigned char[::1] word) noexcept:
    return word.shape[0] == 4 and bytes(word) == b"</s>"


cdef const unsigned char[::1] add_boundaries(const unsigned char[::1] word, unsigned char[::1] buffer):
    """Write <word> into `buffer` and return it. Return an empty array for </s>, fastText's sentence end."""
    cdef int64_t size = word.shape[0]
    buffer[0], buffer[1 : size + 1], buffer[size + 1] = b"<", word, b">"
    return buffer[: 0 if is_sentence_end(word) else size + 2]


def buckets_of(
    const unsigned char[::1] blob,
    const int64_t[::1] offsets,
    int64_t shortest,
    int64_t longest,
    uint32_t buckets,
    bint hash_code_points=False,
):
    """Return the bucket of each character n-gram of <word>, for V words. Word i is blob[offsets[i]:offsets[i + 1]].

    With `hash_code_points`, the hash is computed from characters instead of bytes, as in gensim before 3.7.

    Returns:
        starts, int64 (V + 1,), and buckets, int32 (n,). Word i has buckets[starts[i]:starts[i + 1]], in the order of
        fastText. An n-gram that occurs twice in a word is listed twice.
    """
    cdef int64_t words = offsets.shape[0] - 1, k, first, count = 0
    cdef unsigned char[::1] marked = np.empty(np.diff(offsets).max(initial=0) + 2, np.uint8)
    cdef const unsigned char[::1] word
    cdef int64_t[::1] starts = np.append(0, np.cumsum(counts_of(blob, offsets, shortest, longest)))
    cdef int32_t[::1] found = np.empty(starts[words] + 1, np.int32)  # + 1, since an empty array has no address
    for k in range(words):
        word = add_boundaries(blob[offsets[k] : offsets[k + 1]], marked)
        for first in range(word.shape[0]):
            count += list_buckets(word, first, shortest, longest, buckets, hash_code_points, &found[count])
    return np.asarray(starts), np.asarray(found[: starts[words]])


def compose(
    const unsigned char[::1] blob,
    const int64_t[::1] offsets,
    int64_t shortest,
    int64_t longest,
    const int32_t[::1] row_of_bucket,
    const float[:, ::1] rows,
    float[:, ::1] own,
):
    """Replace the own rows of words, (V, D), by the means of their own rows and the rows of their n-grams.

    `row_of_bucket`, (buckets,), maps a bucket to its row in `rows`, (B, D), or to -1 for a row of zeros. The function
    allocates only O(B) numbers and the longest word. A row that occurs several times in a word is read once.
    """
    cdef int64_t words = offsets.shape[0] - 1, k, first, found, ngrams, touched, i, d
    cdef uint32_t buckets = row_of_bucket.shape[0]
    cdef int32_t row
    cdef float count, subword_count
    cdef unsigned char[::1] marked = np.empty(np.diff(offsets).max(initial=0) + 2, np.uint8)
    cdef const unsigned char[::1] word
    cdef int32_t[::1] found_buckets = np.empty(longest, np.int32)  # of the n-grams that begin at one byte
    cdef int32_t[::1] occurs = np.zeros(rows.shape[0], np.int32)  # how often each row occurs in the word
    cdef int32_t[::1] touched_rows = np.empty(rows.shape[0], np.int32)  # the rows that occur in the word
    for k in range(words):
        word = add_boundaries(blob[offsets[k] : offsets[k + 1]], marked)
        with nogil:
            ngrams = touched = 0
            for first in range(word.shape[0]):
                found = list_buckets(word, first, shortest, longest, buckets, False, &found_buckets[0])
                ngrams += found
                for i in range(found):
                    row = row_of_bucket[found_buckets[i]]
                    if row >= 0:
                        if not occurs[row]:
                            touched_rows[touched] = row
                            touched += 1
                        occurs[row] += 1
            for i in range(touched):
                row = touched_rows[i]
                count = occurs[row]
                occurs[row] = 0
                for d in range(own.shape[1]):
                    own[k, d] += count * rows[row, d]
            subword_count = ngrams + 1
            for d in range(own.shape[1]):
                own[k, d] /= subword_count
