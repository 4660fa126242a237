"""Hash n-grams into buckets like fastText: the n-grams of characters (Bojanowski et al. 2017, section 3.2), and the
word n-grams of texts (Joulin et al. 2017, section 2.2)."""

cimport cython
from libc.math cimport log, sqrt
from libc.stdint cimport int32_t, int64_t, int8_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from w2v._text._text cimport SENTENCE_END_ID

import numpy as np

cdef extern from "_text.h" nogil:
    void prefetch(const void *address)

cdef extern from "_subwords.h" nogil:
    void add_row(float *sum, const uint8_t *row, float weight, int64_t size)
    void multiply_row(float *products, const uint8_t *row, const float *others, int64_t count, int64_t size)
    void prefetch_row(const uint8_t *row, int64_t size)
    bint claim(int32_t *state)
    int32_t load(const int32_t *number)
    void store(int32_t *number, int32_t value)
    int64_t next_number(int64_t *number)

cdef enum:
    AHEAD = 8  # rows to prefetch before they are added
    QUEUE = 16  # rows that wait until they are in the cache; a power of 2
    PUBLISHED = 2  # the state of a sum that other threads may use: see `claim`

cpdef enum:
    NO_LABEL = -1       # the label of a word
    IGNORED_LABEL = -2  # a label that the model does not have


cdef inline bint continues(const uint8_t *text, int64_t at) noexcept nogil:
    """Return True if the byte at this position is not the first byte of its UTF-8 character."""
    return text[at] & 0xC0 == 0x80


cdef inline uint32_t hash_character(
    uint32_t fnv, const uint8_t *text, int64_t begin, int64_t end, bint hash_code_points
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
    const uint8_t *text,
    int64_t size,
    int64_t first,
    int64_t shortest,
    int64_t longest,
    uint32_t buckets,
    bint hash_code_points,
    int32_t *found,
) noexcept nogil:
    """Write the bucket of each n-gram that begins at byte `first` of a text into `found`. Return their number."""
    cdef int64_t begin, end = first, length, count = 0
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


def counts_of(const uint8_t[::1] blob, const int64_t[::1] offsets, int64_t shortest, int64_t longest):
    """Return the number of n-grams of each of V words, int64 (V,); see `buckets_of`."""
    cdef int64_t words = offsets.shape[0] - 1, k, at, characters, last
    cdef int64_t[::1] counts = np.zeros(words, np.int64)
    cdef const uint8_t *text = &blob[0] if blob.shape[0] else NULL
    for k in range(words):
        if is_sentence_end(text + offsets[k], offsets[k + 1] - offsets[k]):
            continue
        characters = 2  # < and >
        for at in range(offsets[k], offsets[k + 1]):
            characters += not continues(text, at)
        last = min(longest, characters)
        if shortest <= last:
            # The sum of (characters + 1 - n) over the lengths n, without the single < and >.
            counts[k] = (last - shortest + 1) * (2 * (characters + 1) - shortest - last) // 2 - 2 * (shortest == 1)
    return np.asarray(counts)


cdef inline bint is_sentence_end(const uint8_t *word, int64_t size) noexcept nogil:
    """Return True for </s>, which has no n-grams in fastText."""
    return size == 4 and memcmp(word, b"</s>", 4) == 0


cdef int64_t add_boundaries(const uint8_t *word, int64_t size, uint8_t *buffer) noexcept nogil:
    """Write <word> into `buffer`. Return its size, or 0 for </s>."""
    buffer[0], buffer[size + 1] = c"<", c">"
    memcpy(buffer + 1, word, size)
    return 0 if is_sentence_end(word, size) else size + 2


cdef bytearray buffer_for(const int64_t[::1] offsets):
    """Return a buffer for the longest of these words with its boundaries."""
    cdef int64_t k, longest = 0
    for k in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[k + 1] - offsets[k])
    return bytearray(longest + 2)


def buckets_of(
    const uint8_t[::1] blob,
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
    cdef int64_t words = offsets.shape[0] - 1, k, first, size, count = 0
    cdef bytearray buffer = buffer_for(offsets)
    cdef uint8_t *marked = <uint8_t *><char *>buffer
    cdef const uint8_t *text = &blob[0] if blob.shape[0] else NULL
    cdef int64_t[::1] starts = np.append(0, np.cumsum(counts_of(blob, offsets, shortest, longest)))
    cdef int32_t[::1] found = np.empty(starts[words] + 1, np.int32)  # + 1, since an empty array has no address
    for k in range(words):
        size = add_boundaries(text + offsets[k], offsets[k + 1] - offsets[k], marked)
        for first in range(size):
            count += list_buckets(
                marked, size, first, shortest, longest, buckets, hash_code_points, &found[count]
            )
    return np.asarray(starts), np.asarray(found[: starts[words]])


def compose(
    const uint8_t[::1] blob,
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
    cdef int64_t words = offsets.shape[0] - 1, k, first, size, found, ngrams, row, i, d, added = 0
    cdef float subword_count
    cdef bytearray buffer = buffer_for(offsets)
    cdef uint8_t *marked = <uint8_t *><char *>buffer
    cdef const uint8_t *text = &blob[0] if blob.shape[0] else NULL
    cdef bytearray memory = bytearray(longest * sizeof(int32_t))
    cdef int32_t *found_buckets = <int32_t *><char *>memory  # of the n-grams that begin at one byte
    with nogil:
        for k in range(words):
            size, ngrams = add_boundaries(text + offsets[k], offsets[k + 1] - offsets[k], marked), 0
            for first in range(size):
                found = list_buckets(marked, size, first, shortest, longest, buckets, False, found_buckets)
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


def hashes_of(const uint8_t[::1] blob, const int64_t[::1] offsets):
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
    cdef int64_t k, i
    with nogil:
        for k in range(sums.shape[0]):
            for i in range(starts[k], starts[k + 1]):
                if i + AHEAD < chosen.shape[0]:
                    prefetch(&rows[chosen[i + AHEAD], 0])
                add_row(&sums[k, 0], <const uint8_t *>&rows[chosen[i], 0], weights[i], sums.shape[1])
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


cdef struct Type:
    int32_t label, own, hash
    int32_t state, rows, size  # of the sum of its rows: see `claim`; how many have a row; how many count
    int32_t[2] unused          # so that no record crosses a cache line


@cython.final
cdef class TextTypes:
    """The types of texts.

    Args:
        blob, offsets: The bytes of T types: see `buckets_of`.
        own: int32 (T,), the row of each type in the vocabulary, or -1.
        labels: int32 (T,), the label of each type, NO_LABEL or IGNORED_LABEL.
        width: D, to let `TextRows.pool` store the sum of the rows of each type that it meets; or 0.
    """

    cdef const uint8_t[::1] blob
    cdef const int64_t[::1] offsets
    cdef int32_t[:, ::1] records  # a Type each
    cdef float[:, ::1] sums       # (T, D)
    cdef int64_t longest          # the bytes of the longest type

    def __init__(
        self,
        const uint8_t[::1] blob not None,
        const int64_t[::1] offsets not None,
        const int32_t[::1] own not None,
        const int32_t[::1] labels not None,
        int64_t width=0,
    ):
        records = np.zeros((len(labels), sizeof(Type) // sizeof(int32_t)), np.int32)
        records[:, 0], records[:, 1], records[:, 2] = labels, own, hashes_of(blob, offsets)
        self.blob, self.offsets, self.records = blob, offsets, records
        self.longest = np.diff(offsets).max(initial=0)
        self.sums = np.zeros((len(labels), width), np.float32)


cdef inline Type *type_at(TextTypes types, int64_t id) noexcept nogil:
    return <Type *>&types.records[id, 0]


cdef inline Type *type_of(TextTypes known, TextTypes new, int64_t id) noexcept nogil:
    """Return a type of `known` or, beyond its end, of `new`."""
    cdef int64_t types = known.records.shape[0]
    return type_at(known, id) if id < types else type_at(new, id - types)


@cython.final
cdef class Addends:
    """What `TextRows.pool` adds up: the R rows of a matrix, or their products with the rows of an output layer.

    A row is multiplied when a text has it for the first time. All threads share the products, which are in the order of
    first use, because rows that are used are often used again.

    Args:
        rows: (R, 4 D), the bytes of float32.
        outputs: (L, D), or (0, D) to add up the rows themselves.
    """

    cdef const uint8_t[:, ::1] rows
    cdef const float[:, ::1] outputs
    cdef int32_t[::1] places     # (R,): 1 + the place of the product of a row; 0 if there is none
    cdef float[:, ::1] products  # (R, L)
    cdef int64_t used            # products
    cdef readonly int64_t width  # D or L

    def __init__(self, const uint8_t[:, ::1] rows not None, const float[:, ::1] outputs not None):
        self.rows, self.outputs, self.width = rows, outputs, len(outputs) or rows.shape[1] // 4
        self.places = np.zeros(rows.shape[0] if len(outputs) else 0, np.int32)
        self.products = np.empty((len(self.places), len(outputs)), np.float32)


cdef struct Waiting:
    const uint8_t *row
    float *sum
    int32_t *place  # where to store the place of its product; NULL to add the row itself


@cython.final
cdef class TextRows:
    """Finds the rows of texts: of their words, their word n-grams and the character n-grams of their words.

    The first rows belong to the words of a vocabulary. A bucket of n-grams has a row only if one of its n-grams
    occurred in the texts of the training.

    Args:
        word_ngrams: The maximum number of words of an n-gram; 1 for none.
        shortest, longest: The numbers of characters of an n-gram; 1 and 0 for none.
        row_of_bucket: int32 (buckets,), the row of each bucket, or -1. With `add`, this class gives the next row to
            each bucket without a row that it meets.
        row_count: The number of rows.
        add: Whether to add rows.
        pruned: Whether n-grams without a row do not count for the size of a text.
    """

    cdef int64_t word_ngrams, shortest, longest
    cdef int32_t[::1] row_of_bucket
    cdef bint add_rows, pruned
    cdef readonly int64_t row_count
    cdef Addends addends
    cdef float[::1] product
    cdef int32_t end_row
    # The texts of a call, as in the results of `find` and `pool`:
    cdef int64_t[::1] starts, sizes, label_starts
    cdef int32_t[::1] rows, counts, labels
    cdef uint8_t[::1] known
    # The current text:
    cdef int64_t text, start, end, tokens, label_end  # its number, and where its rows begin and all others end
    cdef int32_t[::1] hashes         # of its tokens
    cdef float *mean                 # the sum of its rows; NULL if they are counted
    cdef int64_t[::1] slots          # a hash table: the places of its rows; less than `start` for an empty slot
    cdef int shift                   # the number of bits of a hash that are not used
    cdef uint8_t[::1] marked         # a word with its boundaries
    cdef int32_t[::1] buckets        # of the n-grams of a word, or of the text
    cdef Waiting[QUEUE] queue        # rows that are being prefetched, and the sums that they belong to
    cdef int64_t queued

    def __init__(
        self,
        int64_t word_ngrams,
        int64_t shortest,
        int64_t longest,
        int32_t[::1] row_of_bucket not None,
        int64_t row_count,
        bint add=False,
        bint pruned=False,
    ):
        self.word_ngrams, self.shortest, self.longest = word_ngrams, shortest, longest
        self.row_of_bucket, self.row_count = row_of_bucket, row_count
        self.add_rows, self.pruned = add, pruned

    def find(self, const uint32_t[::1] ids not None, TextTypes known not None, TextTypes new not None):
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
        cdef int64_t size = 0, start = 0, longest = 0, bits = 1, k, id
        with nogil:
            for k in range(ids.shape[0]):
                id = ids[k] - known.records.shape[0]
                if id < 0:
                    size += self.most_ngrams(known.offsets[ids[k] + 1] - known.offsets[ids[k]])
                else:
                    size += self.most_ngrams(new.offsets[id + 1] - new.offsets[id])
                size += self.word_ngrams
                longest = max(longest, size - start)
                if ids[k] == SENTENCE_END_ID:
                    start = size
        while bits < 32 and (<int64_t>1 << bits) < 2 * longest:
            bits += 1
        self.rows, self.counts = np.empty(size, np.int32), np.empty(size, np.int32)
        self.slots, self.shift = np.full(<int64_t>1 << bits, -1, np.int64), 32 - bits
        self.read(ids, known, new, None)
        return (np.asarray(self.starts), np.asarray(self.rows)[: self.end], np.asarray(self.counts)[: self.end],
                np.asarray(self.sizes), np.asarray(self.label_starts), np.asarray(self.labels)[: self.label_end])

    def pool(
        self,
        const uint32_t[::1] ids not None,
        TextTypes known not None,
        TextTypes new not None,
        Addends addends not None,
    ):
        """Return the mean of the rows of each text, with repeats: see `find`. Several threads may share `known`.

        Args:
            ids, known, new: As in `find`.
            addends: The rows, or their products.

        Returns:
            means, float32 (texts, width). known, bool (texts,): whether a text has a row other than the row of </s>.
            sizes, label_starts and labels, as in `find`.
        """
        self.addends, self.product = addends, np.empty(addends.width, np.float32)
        means = np.zeros((np.count_nonzero(np.asarray(ids) == SENTENCE_END_ID), addends.width), np.float32)
        self.read(ids, known, new, means)
        sizes = np.asarray(self.sizes)
        means /= np.maximum(sizes, 1)[:, np.newaxis].astype(np.float32)
        has_words, label_starts = np.asarray(self.known).view(bool), np.asarray(self.label_starts)
        return means, has_words, sizes, label_starts, np.asarray(self.labels)[: self.label_end]

    cdef read(self, const uint32_t[::1] ids, TextTypes known, TextTypes new, float[:, ::1] means):
        """Count the rows of texts or, if `means` has a row for each text, add them up. List the labels."""
        cdef int64_t types = known.records.shape[0], longest = max(known.longest, new.longest), texts, k
        texts = np.count_nonzero(np.asarray(ids) == SENTENCE_END_ID)
        self.starts, self.label_starts = np.zeros((2, texts + 1), np.int64)
        self.sizes, self.known = np.zeros(texts, np.int64), np.zeros(texts, np.uint8)
        self.labels, self.hashes = np.empty((2, len(ids)), np.int32)
        self.marked = np.empty(longest + 2, np.uint8)
        most = max(self.most_ngrams(longest), len(ids) * (self.word_ngrams - 1))
        self.buckets = np.empty(most + 1, np.int32)
        self.end_row = type_at(known, SENTENCE_END_ID).own
        self.text = self.start = self.end = self.tokens = self.label_end = self.queued = 0
        for k in range(QUEUE):
            self.queue[k].row = NULL
        with nogil:
            if means is not None and known.sums.shape[1]:
                self.sum_types(ids, known, new)
            for k in range(ids.shape[0]):
                self.mean = NULL if means is None else &means[self.text, 0]
                if k + AHEAD < ids.shape[0]:
                    prefetch(type_of(known, new, ids[k + AHEAD]))
                if ids[k] >= types:
                    self.use(new, ids[k] - types)
                elif ids[k] != SENTENCE_END_ID or self.tokens:
                    self.use(known, ids[k])
                if ids[k] == SENTENCE_END_ID:
                    self.use_word_ngrams()
                    self.text += 1
                    self.start, self.tokens = self.end, 0
                    self.starts[self.text], self.label_starts[self.text] = self.end, self.label_end
            self.add_queued()

    cdef void sum_types(self, const uint32_t[::1] ids, TextTypes known, TextTypes new) noexcept nogil:
        """Add up the rows of each type that no thread has added up before."""
        cdef int64_t types = known.records.shape[0], claims = 0, k
        cdef Type *type
        for k in range(ids.shape[0]):
            if k + AHEAD < ids.shape[0]:
                prefetch(type_of(known, new, ids[k + AHEAD]))
            type = type_of(known, new, ids[k])
            if type.label == NO_LABEL and claim(&type.state):
                if ids[k] < types:
                    type.rows = self.use_rows(known, ids[k], &known.sums[ids[k], 0], &type.size)
                else:
                    type.rows = self.use_rows(new, ids[k] - types, &new.sums[ids[k] - types, 0], &type.size)
                self.hashes[claims] = ids[k]  # there is room for all ids, and hashes come later
                claims += 1
        self.add_queued()
        for k in range(claims):
            store(&type_of(known, new, self.hashes[k]).state, PUBLISHED)

    cdef inline int64_t most_ngrams(self, int64_t size) noexcept nogil:
        """Return a limit for the number of n-grams of a word of this many bytes, and its own row."""
        return 1 + max(0, min(self.longest, size + 2) - self.shortest + 1) * (size + 2)

    cdef inline void use(self, TextTypes types, int64_t id) noexcept nogil:
        """Use a token of the current text."""
        cdef Type *type = type_at(types, id)
        cdef int32_t rows, size = 0
        if type.label >= 0:
            self.labels[self.label_end] = type.label
            self.label_end += 1
        if type.label != NO_LABEL:
            return
        self.hashes[self.tokens] = type.hash
        self.tokens += 1
        if self.mean == NULL or types.sums.shape[1] == 0:
            rows = self.use_rows(types, id, self.mean, &size)
        else:
            while load(&type.state) != PUBLISHED:
                pass
            rows, size = type.rows, type.size
            self.add(<const uint8_t *>&types.sums[id, 0], self.mean, NULL)
        self.sizes[self.text] += size
        self.known[self.text] |= rows > 0 and type.own != self.end_row

    cdef int32_t use_rows(self, TextTypes types, int64_t id, float *sum, int32_t *size) noexcept nogil:
        """Count the rows of a type, or add them to a sum. Return their number, and in `size` how many count."""
        cdef int32_t own = type_at(types, id).own, rows = own >= 0, ngrams = self.list_ngrams(types, id)
        if own >= 0:
            self.use_row(own, sum)
        size[0] = rows + ngrams
        rows += self.use_buckets(ngrams, sum)
        if self.pruned:
            size[0] = rows
        return rows

    cdef int32_t list_ngrams(self, TextTypes types, int64_t id) noexcept nogil:
        """List the buckets of the n-grams of characters of a type. Return their number."""
        cdef int64_t begin = types.offsets[id], size, first, ngrams = 0, k
        if self.longest == 0:
            return 0
        size = add_boundaries(&types.blob[0] + begin, types.offsets[id + 1] - begin, &self.marked[0])
        for first in range(size):
            ngrams += list_buckets(
                &self.marked[0],
                size,
                first,
                self.shortest,
                self.longest,
                <uint32_t>self.row_of_bucket.shape[0],
                False,
                &self.buckets[ngrams],
            )
        for k in range(ngrams):
            prefetch(&self.row_of_bucket[self.buckets[k]])
        return <int32_t>ngrams

    cdef void use_word_ngrams(self) noexcept nogil:
        """Use the word n-grams of the current text."""
        cdef int64_t i, j, ngrams = 0, rows
        cdef uint64_t fnv
        for i in range(self.tokens):
            fnv = <uint64_t><int64_t>self.hashes[i]
            for j in range(i + 1, min(self.tokens, i + self.word_ngrams)):
                fnv = fnv * 116049371 + <uint64_t><int64_t>self.hashes[j]
                self.buckets[ngrams] = <int32_t>(fnv % <uint64_t>self.row_of_bucket.shape[0])
                prefetch(&self.row_of_bucket[self.buckets[ngrams]])
                ngrams += 1
        rows = self.use_buckets(ngrams, self.mean)
        self.sizes[self.text] += rows if self.pruned else ngrams
        self.known[self.text] |= rows > 0

    cdef int32_t use_buckets(self, int64_t ngrams, float *sum) noexcept nogil:
        """Use the rows of the listed buckets. Return their number."""
        cdef int64_t k
        cdef int32_t row, rows = 0
        for k in range(ngrams):
            row = self.row_of_bucket[self.buckets[k]]
            if row < 0 and self.add_rows:
                row = self.row_of_bucket[self.buckets[k]] = <int32_t>self.row_count
                self.row_count += 1
            if row >= 0:
                self.buckets[rows] = row
                rows += 1
                if sum != NULL and self.addends.places.shape[0]:
                    prefetch(&self.addends.places[row])
        for k in range(rows):
            self.use_row(self.buckets[k], sum)
        return rows

    cdef inline void use_row(self, int32_t row, float *sum) noexcept nogil:
        """Count a row of the current text, or add it to a sum."""
        if sum == NULL:
            self.count(row)
        elif self.addends.places.shape[0]:
            self.add(&self.addends.rows[row, 0], sum, &self.addends.places[row])
        else:
            self.add(&self.addends.rows[row, 0], sum, NULL)

    cdef inline void add(self, const uint8_t *row, float *sum, int32_t *place) noexcept nogil:
        """Prefetch a row, or its product, and add what was prefetched QUEUE calls ago."""
        cdef Waiting *oldest = &self.queue[self.queued & (QUEUE - 1)]
        cdef int32_t found = 0 if place == NULL else load(place)
        self.add_waiting(oldest)
        if found:
            row, place = <const uint8_t *>&self.addends.products[found - 1, 0], NULL
        prefetch_row(row, 4 * self.addends.width if place == NULL else self.addends.rows.shape[1])
        oldest.row, oldest.sum, oldest.place = row, sum, place
        self.queued += 1

    cdef inline void add_queued(self) noexcept nogil:
        """Add what is being prefetched."""
        cdef int64_t k
        for k in range(self.queued, self.queued + QUEUE):
            self.add_waiting(&self.queue[k & (QUEUE - 1)])
            self.queue[k & (QUEUE - 1)].row = NULL

    cdef inline void add_waiting(self, Waiting *oldest) noexcept nogil:
        """Add a row, or its product, to its sum. Compute the product if no thread has stored it."""
        cdef float *products = &self.product[0]
        cdef int64_t place
        if oldest.row == NULL:
            return
        if oldest.place != NULL:
            place = next_number(&self.addends.used)
            if place < self.addends.places.shape[0]:  # or else other threads have stored some products, too
                products = &self.addends.products[place, 0]
            multiply_row(
                products, oldest.row, &self.addends.outputs[0, 0], self.addends.width, self.addends.outputs.shape[1]
            )
            if place < self.addends.places.shape[0]:
                store(oldest.place, <int32_t>(place + 1))
            oldest.row = <const uint8_t *>products
        add_row(oldest.sum, oldest.row, 1, self.addends.width)

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
