"""Hash n-grams into buckets like fastText: the n-grams of characters (Bojanowski et al. 2017, section 3.2), and the
word n-grams of texts (Joulin et al. 2017, section 2.2)."""

cimport cython
from libc.math cimport log, sqrt
from libc.stdint cimport int32_t, int64_t, int8_t, uint32_t, uint64_t

from w2v.text._text cimport SENTENCE_END_ID

import numpy as np

cdef extern from "_text.h" nogil:
    void prefetch(const void *address)

cdef enum:
    AHEAD = 8  # rows to prefetch before they are added

cpdef enum:
    NO_LABEL = -1       # the label of a word
    IGNORED_LABEL = -2  # a label that the model does not have


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


cdef unsigned char[::1] buffer_for(const int64_t[::1] offsets):
    """Return a buffer for the longest of these words with its boundaries."""
    cdef int64_t size = 0, k
    for k in range(offsets.shape[0] - 1):
        size = max(size, offsets[k + 1] - offsets[k])
    return bytearray(size + 2)


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
    cdef unsigned char[::1] marked = buffer_for(offsets)
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
    uint32_t buckets,
    const int32_t[::1] used,
    const float[:, ::1] rows,
    float[:, ::1] vectors,
    bint known,
):
    """Replace the own rows of words, (V, D), by the means of their own rows and the rows of their n-grams.

    Args:
        blob, offsets, shortest, longest, buckets: As in `buckets_of`.
        used: (B,), the buckets with a row, ascending. All others have a row of zeros.
        rows: (B, D).
        vectors: (V, D), the own rows of the words.
        known: False for words without own rows. Their `vectors` must be zeros, which then do not count.

    Returns:
        The number of n-grams with a row.
    """
    cdef int64_t words = offsets.shape[0] - 1, k, first, found, ngrams, row, i, d, added = 0
    cdef float subword_count
    cdef unsigned char[::1] marked = buffer_for(offsets)
    cdef const unsigned char[::1] word
    cdef bytearray memory = bytearray(longest * sizeof(int32_t))
    cdef int32_t *found_buckets = <int32_t *><char *>memory  # of the n-grams that begin at one byte
    for k in range(words):
        word = add_boundaries(blob[offsets[k] : offsets[k + 1]], marked)
        with nogil:
            ngrams = 0
            for first in range(word.shape[0]):
                found = list_buckets(word, first, shortest, longest, buckets, False, found_buckets)
                ngrams += found
                for i in range(found):
                    row = find_row(used, found_buckets[i], buckets)
                    if row >= 0:
                        added += 1
                        for d in range(vectors.shape[1]):
                            vectors[k, d] += rows[row, d]
            subword_count = max(1, ngrams + known)
            for d in range(vectors.shape[1]):
                vectors[k, d] /= subword_count
    return added


cdef inline int64_t find_row(const int32_t[::1] used, int32_t bucket, uint32_t buckets) noexcept nogil:
    """Return the position of a bucket among the ascending ones in `used`, or -1.

    Hashes are spread evenly. So the search begins near the position, and moves away from there in growing steps.
    """
    cdef int64_t size = used.shape[0], low = bucket * size // buckets, high = min(low + 1, size), middle, step = 1
    while low > 0 and used[low] > bucket:
        high, low, step = low, max(0, low - step), 2 * step
    while high < size and used[high] <= bucket:
        low, high, step = high, min(size, high + step), 2 * step
    while low + 1 < high:
        middle = (low + high) >> 1
        if used[middle] <= bucket:
            low = middle
        else:
            high = middle
    return low if low < size and used[low] == bucket else -1


def hashes_of(const unsigned char[::1] blob, const int64_t[::1] offsets):
    """Return the FNV-1a hash of each of V words, int32 (V,), which fastText's hashes of word n-grams are made of."""
    cdef int64_t k, at
    cdef uint32_t fnv
    cdef int32_t[::1] hashes = np.empty(offsets.shape[0] - 1, np.int32)
    for k in range(hashes.shape[0]):
        fnv = 2166136261
        for at in range(offsets[k], offsets[k + 1]):
            fnv = (fnv ^ <uint32_t><int8_t>blob[at]) * 16777619
        hashes[k] = <int32_t>fnv
    return np.asarray(hashes)


def idf_weights(
    const int32_t[::1] rows, const int32_t[::1] counts, const int64_t[::1] starts, const float[::1] factors, double tiny
):
    """Return the weights of the rows of texts, float32 (n,): (1 + ln count) · factor, scaled to length 1 in each text.

    Text k has rows[starts[k] : starts[k + 1]]. `tiny` replaces the length 0.
    """
    cdef float[::1] weights = np.empty(rows.shape[0], np.float32)
    cdef int64_t k, i
    cdef double weight, squares
    with nogil:
        for k in range(starts.shape[0] - 1):
            squares = 0
            for i in range(starts[k], starts[k + 1]):
                weight = factors[rows[i]]
                if counts[i] > 1:
                    weight *= 1 + log(<double>counts[i])
                weights[i] = <float>weight
                squares += weight * weight
            weight = 1 / max(sqrt(squares), tiny)
            for i in range(starts[k], starts[k + 1]):
                weights[i] = <float>(weights[i] * weight)
    return np.asarray(weights)


def sum_rows(
    const float[:, :] rows, const int32_t[::1] chosen, const int64_t[::1] starts, const float[::1] weights
):
    """Return weighted sums of rows with adjacent values, float32 (n, D): see `sums_of_rows`."""
    cdef float[:, ::1] sums = np.zeros((starts.shape[0] - 1, rows.shape[1]), np.float32)
    cdef int64_t k, i, d
    cdef const float *row
    with nogil:
        for k in range(sums.shape[0]):
            for i in range(starts[k], starts[k + 1]):
                if i + AHEAD < chosen.shape[0]:
                    prefetch(&rows[chosen[i + AHEAD], 0])
                row = &rows[chosen[i], 0]
                for d in range(sums.shape[1]):
                    sums[k, d] += weights[i] * row[d]
    return np.asarray(sums)


def sum_sparse_rows(
    const float[::1] values,
    const int32_t[::1] columns,
    const int64_t[::1] row_starts,
    int64_t width,
    const int32_t[::1] chosen,
    const int64_t[::1] starts,
    const float[::1] weights,
):
    """Return weighted sums of sparse rows, float32 (n, width): see `sums_of_rows`.

    Row r has values[row_starts[r] : row_starts[r + 1]] in these columns.
    """
    cdef float[:, ::1] sums = np.zeros((starts.shape[0] - 1, width), np.float32)
    cdef int64_t k, i, j
    with nogil:
        for k in range(sums.shape[0]):
            for i in range(starts[k], starts[k + 1]):
                if i + 2 * AHEAD < chosen.shape[0]:
                    prefetch(&row_starts[chosen[i + 2 * AHEAD]])
                    j = row_starts[chosen[i + AHEAD]]
                    prefetch(&values[j])
                    prefetch(&columns[j])
                for j in range(row_starts[chosen[i]], row_starts[chosen[i] + 1]):
                    sums[k, columns[j]] += weights[i] * values[j]
    return np.asarray(sums)


@cython.final
cdef class TypeRows:
    """The labels, the hashes and the rows of T types.

    Args:
        labels: int32 (T,), the label of each type, NO_LABEL or IGNORED_LABEL.
        hashes: int32 (T,): see `hashes_of`.
        starts: int64 (T + 1,), where the rows of each type begin in `rows`.
        rows: int32 (n,), the row of a type that is in the vocabulary, and the rows of its n-grams of characters; -1 for
            n-grams without a row.
    """

    cdef const int32_t[::1] labels, hashes, rows
    cdef const int64_t[::1] starts

    def __init__(
        self,
        const int32_t[::1] labels not None,
        const int32_t[::1] hashes not None,
        const int64_t[::1] starts not None,
        const int32_t[::1] rows not None,
    ):
        self.labels, self.hashes, self.starts, self.rows = labels, hashes, starts, rows


cdef struct Type:
    int32_t label, hash
    int64_t size
    const int32_t *rows


cdef inline Type type_of(TypeRows known, TypeRows new, int64_t id) noexcept nogil:
    """Return a type of `known` or, beyond its end, of `new`."""
    cdef int64_t count = known.labels.shape[0]
    if id < count:
        return Type(
            known.labels[id], known.hashes[id], known.starts[id + 1] - known.starts[id], &known.rows[known.starts[id]]
        )
    id -= count
    return Type(new.labels[id], new.hashes[id], new.starts[id + 1] - new.starts[id], &new.rows[new.starts[id]])


@cython.final
cdef class TextRows:
    """Finds the rows of texts: of their words, their word n-grams and the character n-grams of their words.

    The first rows belong to the words of a vocabulary. A bucket of n-grams has a row only if one of its n-grams
    occurred in the texts of the training.

    Args:
        word_ngrams: The maximum number of words of an n-gram; 1 for none.
        row_of_bucket: int32 (buckets,), the row of each bucket, or -1. With `add`, this class gives the next row to
            each bucket without a row that it meets.
        row_count: The number of rows.
        add: Whether to add rows.
    """

    cdef int32_t[::1] row_of_bucket
    cdef int64_t word_ngrams
    cdef bint add
    cdef readonly int64_t row_count
    cdef int32_t[::1] rows, counts  # the rows found in a call of `find`, and how often their text has them
    cdef int64_t start, end         # where the rows of the current text begin and end
    cdef int64_t[::1] slots         # a hash table: the places of the text's rows; less than `start` for an empty slot
    cdef int shift                  # the number of bits of a hash that are not used

    def __init__(self, int64_t word_ngrams, int32_t[::1] row_of_bucket, int64_t row_count, bint add):
        self.word_ngrams, self.row_of_bucket, self.row_count, self.add = word_ngrams, row_of_bucket, row_count, add

    def find(self, const uint32_t[::1] ids not None, TypeRows known not None, TypeRows new not None):
        """Find the rows and labels of whole texts. A text without words has no rows.

        Args:
            ids: The types of the tokens: an index into `known` or, beyond its end, into `new`. SENTENCE_END_ID ends a
                text, and its rows count for the end of each text, the word </s> of fastText.
            known: Types that many texts have.
            new: Further types.

        Returns:
            starts, int64 (texts + 1,), and rows, int32 (n,): the distinct rows of each text, in order of first
            occurrence. counts, int32 (n,): how often the text has each row. sizes, int64 (texts,): the number of rows
            of each text with repeats, and with n-grams without a row. label_starts, int64 (texts + 1,), and labels,
            int32 (m,).
        """
        cdef int64_t texts = np.count_nonzero(np.asarray(ids) == SENTENCE_END_ID), k, text = 0, tokens = 0
        cdef int64_t[::1] starts = np.zeros(texts + 1, np.int64), label_starts = np.zeros(texts + 1, np.int64)
        cdef int64_t[::1] sizes = np.zeros(texts, np.int64)
        cdef int32_t[::1] labels = np.empty(len(ids), np.int32), hashes = np.empty(len(ids), np.int32)
        cdef int64_t found_labels = 0
        cdef Type type
        self.allocate(ids, known, new)
        with nogil:
            for k in range(ids.shape[0]):
                type = type_of(known, new, ids[k])
                if type.label >= 0:
                    labels[found_labels] = type.label
                    found_labels += 1
                if type.label != NO_LABEL:
                    continue
                if ids[k] != SENTENCE_END_ID or tokens:
                    hashes[tokens] = type.hash
                    tokens += 1
                    sizes[text] += type.size
                    self.count_rows(type)
                if ids[k] == SENTENCE_END_ID:
                    sizes[text] += self.count_word_ngrams(hashes, tokens)
                    text += 1
                    self.start, tokens = self.end, 0
                    starts[text], label_starts[text] = self.end, found_labels
        return (np.asarray(starts), np.asarray(self.rows)[: self.end], np.asarray(self.counts)[: self.end],
                np.asarray(sizes), np.asarray(label_starts), np.asarray(labels)[:found_labels])

    cdef allocate(self, const uint32_t[::1] ids, TypeRows known, TypeRows new):
        """Allocate memory for the rows of these tokens, and a hash table for twice the rows of the longest text."""
        cdef int64_t size = 0, start = 0, longest = 0, bits = 1, k
        for k in range(ids.shape[0]):
            size += self.word_ngrams + type_of(known, new, ids[k]).size
            longest = max(longest, size - start)
            if ids[k] == SENTENCE_END_ID:
                start = size
        while bits < 32 and (<int64_t>1 << bits) < 2 * longest:
            bits += 1
        self.rows, self.counts = np.empty(size, np.int32), np.empty(size, np.int32)
        self.slots, self.shift, self.start, self.end = np.full(<int64_t>1 << bits, -1, np.int64), 32 - bits, 0, 0

    cdef int64_t count_word_ngrams(self, const int32_t[::1] hashes, int64_t tokens) noexcept nogil:
        """Count the rows of the word n-grams of a text. Return the number of n-grams."""
        cdef int64_t i, j, ngrams = 0
        cdef uint64_t fnv
        for i in range(tokens):
            fnv = <uint64_t><int64_t>hashes[i]
            for j in range(i + 1, min(tokens, i + self.word_ngrams)):
                fnv = fnv * 116049371 + <uint64_t><int64_t>hashes[j]
                self.count_bucket(<int32_t>(fnv % <uint64_t>self.row_of_bucket.shape[0]))
                ngrams += 1
        return ngrams

    cdef inline void count_rows(self, Type type) noexcept nogil:
        cdef int64_t k
        for k in range(type.size):
            if type.rows[k] >= 0:
                self.count(type.rows[k])

    cdef inline void count_bucket(self, int32_t bucket) noexcept nogil:
        if self.row_of_bucket[bucket] < 0 and self.add:
            self.row_of_bucket[bucket] = <int32_t>self.row_count
            self.row_count += 1
        if self.row_of_bucket[bucket] >= 0:
            self.count(self.row_of_bucket[bucket])

    cdef inline void count(self, int32_t row) noexcept nogil:
        """Count a row of the current text."""
        cdef int64_t last = self.slots.shape[0] - 1, slot = (<uint32_t>row * <uint32_t>2654435769) >> self.shift
        while self.slots[slot] >= self.start:
            if self.rows[self.slots[slot]] == row:
                self.counts[self.slots[slot]] += 1
                return
            slot = (slot + 1) & last
        self.slots[slot] = self.end
        self.rows[self.end], self.counts[self.end] = row, 1
        self.end += 1
