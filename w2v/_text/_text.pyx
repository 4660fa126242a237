"""Split text into tokens and convert the tokens to ids. Items of sessions are tokens that are already split.

Several threads `scan` blocks of text or items. They only read the shared table of types. A token in this table becomes
its id. Any other token is added to a table of the block and becomes PENDING | its number in that table. One thread then
`merge`s the blocks in order: it looks up the pending words again, adds the new words to the shared table, and replaces
the provisional ids. So ids are in first-seen order, for any number of threads and any block size.
"""

cimport cython
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from w2v._text.hash_table cimport (
    MAX_TAG, HashTable, Slot, copy_slots, fill_slot, find_value, hash_of, hash_seed, slot_number, slot_value,
)

import secrets

import numpy as np

cdef extern from "_text.h" nogil:
    uint64_t find_spaces(const uint8_t *text)
    uint64_t word_key(const uint8_t *word, int64_t length)
    bint equal_bytes(const uint8_t *word, const uint8_t *other, int64_t length)
    bint is_ascii(const uint8_t *word, int64_t length)
    int lowest_bit(uint64_t bits)
    void prefetch(const void *address)

PADDING = b" " * GROUP  # must follow every text, since `scan` reads whole groups of 64 bytes
cdef enum:
    GROUP = 64
    MAX_DIGITS = 20  # of a number of 64 bits
    BATCH = 512  # the slots of this many tokens are prefetched before the first token is looked up

hash_seed[0], hash_seed[1] = secrets.randbits(64), secrets.randbits(64)

cdef uint32_t PENDING = 1u << 31
cdef uint32_t DROPPED = 0xFFFFFFFFu  # the id of a word that is empty after errors="ignore"


class Malformed(Exception):
    """Error: a word is not UTF-8. Arguments: the position of the malformed byte in the block, and the word (bytes)."""


cdef struct Word:
    const uint8_t *start
    int64_t length

cdef struct Token:
    Word word  # its length is 0 for a sentence end
    uint64_t key
    uint64_t hash


cdef inline Token token_of(const uint8_t *start, int64_t length) noexcept nogil:
    """Return the token of a word. Eight bytes from its start must be readable."""
    cdef uint64_t key = word_key(start, length)
    return Token(Word(start, length), key, hash_of(key, length & MAX_TAG))


@cython.final
cdef class WordTable:
    """A hash table that maps byte strings to the ids FIRST_TYPE, FIRST_TYPE + 1, …

    One thread may add words while others look words up, since a table never moves its memory: `copy_doubled` returns
    a new table.
    """
    cdef HashTable table  # maps the key of a word and the low bits of its length to its id
    cdef Word *words  # the word of each id
    cdef int64_t max_ids, next_id  # both include the reserved ids
    cdef object memory  # owns the slots and `words`
    cdef object strings  # owns the bytes of the words

    def __cinit__(self, int64_t capacity, strings):
        self.max_ids, self.next_id = capacity // 4 * 3, FIRST_TYPE
        cdef uint64_t[::1] slots = np.zeros(capacity * sizeof(Slot) // sizeof(uint64_t), np.uint64)
        cdef uint64_t[::1] words = np.zeros(self.max_ids * sizeof(Word) // sizeof(uint64_t), np.uint64)
        self.table, self.words = HashTable(<Slot *> &slots[0], capacity - 1), <Word *> &words[0]
        self.memory, self.strings = (slots, words), strings

    cdef inline uint32_t find(self, const Token *token) noexcept nogil:
        """Return the id of the word, or 0 if it is not in the table."""
        cdef uint64_t at = token.hash, tag = token.word.length & MAX_TAG
        cdef uint32_t id = <uint32_t> slot_number(find_value(&self.table, &at, token.key, tag))
        while id and token.word.length > 8 and not self.is_word(id, token.word):  # another word has the same key
            at += 1
            id = <uint32_t> slot_number(find_value(&self.table, &at, token.key, tag))
        return id

    cdef inline bint is_word(self, uint32_t id, Word word) noexcept nogil:
        """Return True if the id belongs to this word. The word must have more than 8 bytes."""
        cdef Word other = self.words[id]
        return other.length == word.length and equal_bytes(other.start, word.start, word.length)

    cdef inline void prefetch(self, uint64_t hash) noexcept nogil:
        prefetch(&self.table.slots[hash & self.table.mask])

    cdef uint32_t add(self, Token token) noexcept nogil:
        """Add a word that is not in the table and return its id. The caller ensures that there is room."""
        cdef uint32_t id = <uint32_t> self.next_id
        cdef uint64_t at = token.hash
        self.words[id] = token.word
        self.next_id += 1
        while self.table.slots[at & self.table.mask].value:
            at += 1
        fill_slot(&self.table.slots[at & self.table.mask], token.key, slot_value(token.word.length & MAX_TAG, id))
        return id

    cdef WordTable copy_doubled(self):
        """Return a table with the same words and twice the capacity."""
        cdef WordTable larger = WordTable(2 * (self.table.mask + 1), self.strings)
        larger.next_id = self.next_id
        with nogil:
            memcpy(larger.words, self.words, self.next_id * sizeof(Word))
            copy_slots(&self.table, &larger.table)
        return larger


@cython.final
cdef class Items:
    """The items of sessions: tokens that are already split, so they may contain white space.

    Args:
        blob: uint8 (n,), the bytes of different items, end to end.
        offsets: int64 (words + 1,), rising from 0 to n.
        lengths: int64 (sessions,), the number of items of each session.
        numbers: int32 (items,), for each item its number among the words; None if each word is one item, in order.

    An item without bytes is left out.

    Raises:
        ValueError: If the arrays do not fit together.
    """
    cdef const uint8_t[::1] blob  # with PADDING
    cdef const int64_t[::1] offsets, lengths
    cdef const int32_t[::1] numbers
    cdef int64_t size

    def __init__(self, const uint8_t[::1] blob not None, const int64_t[::1] offsets not None,
                 const int64_t[::1] lengths not None, const int32_t[::1] numbers=None):
        cdef int64_t i, total = 0, words = offsets.shape[0] - 1
        cdef bint fits = words >= 0
        self.size = words if numbers is None else numbers.shape[0]
        if fits:
            fits = offsets[0] == 0 and offsets[words] == blob.shape[0]
            for i in range(words):
                fits = fits and offsets[i] <= offsets[i + 1]
        for i in range(lengths.shape[0]):
            fits = fits and 0 <= lengths[i] <= self.size
            total += lengths[i]
        if numbers is not None:
            for i in range(self.size):
                fits = fits and 0 <= numbers[i] < words
        if not fits or total != self.size:
            raise ValueError("the offsets or lengths of items are damaged")
        self.blob = np.append(blob, np.frombuffer(PADDING, np.uint8))
        self.offsets, self.lengths, self.numbers = offsets, lengths, numbers

    cdef inline Word word(self, int64_t item) noexcept nogil:
        cdef int64_t number = item if self.numbers is None else self.numbers[item]
        return Word(&self.blob[0] + self.offsets[number], self.offsets[number + 1] - self.offsets[number])


@cython.final
cdef class Scan:
    """The tokens of a block as ids.

    The source of the block is whole words, followed by PADDING, or Items. Any thread may create a Scan; the GIL is
    released.
    """
    cdef object source
    cdef const uint8_t *start
    cdef WordTable known, pending
    cdef int64_t pending_bytes
    cdef uint32_t[::1] ids  # has room for one token per byte, or for all items and ends of sessions
    cdef int64_t size

    def __cinit__(self, source not None, WordTable known):
        cdef Items items
        cdef bytes text
        cdef int64_t length
        self.source, self.known, self.pending = source, known, WordTable(1024, source)
        if isinstance(source, Items):
            items = source
            self.start = &items.blob[0]
            self.ids = np.empty(items.size + items.lengths.shape[0], np.uint32)
            with nogil:
                self.run_items(items)
            return
        text = source
        length = len(text)
        self.start = text
        self.ids = np.empty(length, np.uint32)
        with nogil:
            self.run(self.start, length)

    cdef int run_items(self, Items items) except -1 nogil:
        cdef int64_t session, end, item = 0, count = 0
        cdef Token[BATCH] tokens
        for session in range(items.lengths.shape[0]):
            end = item + items.lengths[session]
            while item <= end:
                if count == BATCH:
                    self.look_up(tokens, count)
                    count = 0
                if item < end:
                    tokens[count].word = items.word(item)
                    count += tokens[count].word.length > 0
                else:
                    tokens[count].word.length = 0
                    count += 1
                item += 1
            item = end
        self.look_up(tokens, count)
        return 0

    cdef int run(self, const uint8_t *text, int64_t length) except -1 nogil:
        cdef const uint8_t *start = text
        cdef const uint8_t *end
        cdef uint64_t spaces
        cdef int64_t group, count = 0
        cdef Token[BATCH + 2 * GROUP] tokens
        for group in range(length // GROUP):
            spaces = find_spaces(text + group * GROUP)
            while spaces:
                end = text + group * GROUP + lowest_bit(spaces)
                spaces &= spaces - 1
                tokens[count].word = Word(start, end - start)
                count += end > start
                tokens[count].word.length = 0
                count += end[0] == c"\n"
                start = end + 1
            if count >= BATCH:
                self.look_up(tokens, count)
                count = 0
        self.look_up(tokens, count)
        return 0

    cdef int look_up(self, Token *tokens, int64_t count) except -1 nogil:
        """Append the ids of a batch of tokens."""
        cdef uint32_t id
        cdef int64_t i
        if self.pending.next_id + count > self.pending.max_ids:
            with gil:
                self.pending = self.pending.copy_doubled()
        for i in range(count):
            if tokens[i].word.length:
                tokens[i].key = word_key(tokens[i].word.start, tokens[i].word.length)
                tokens[i].hash = hash_of(tokens[i].key, tokens[i].word.length & MAX_TAG)
                self.known.prefetch(tokens[i].hash)
        for i in range(count):
            id = SENTENCE_END_ID
            if tokens[i].word.length:
                id = self.known.find(&tokens[i])
                if id == 0:
                    id = self.pending.find(&tokens[i])
                    if id == 0:
                        id = self.pending.add(tokens[i])
                        self.pending_bytes += tokens[i].word.length
                    id |= PENDING
            self.ids[self.size + i] = id
        self.size += count
        return 0


@cython.final
cdef class Types:
    """The types (distinct words) of a corpus: their bytes, ids and counts.

    `errors` says how to treat words that are not UTF-8: "strict" raises Malformed; "replace" and "ignore" are as in
    `bytes.decode`. A word that is empty after "ignore" is dropped.
    """
    cdef str errors
    cdef WordTable known
    cdef list blobs  # uint8 arrays: the bytes of the types, in order of id
    cdef uint8_t *free  # the free part of the last blob, while types are added
    cdef int64_t[::1] counted  # the count of each id, with spare room
    cdef uint32_t last  # the last id of the text merged so far

    def __init__(self, str errors="strict"):
        self.errors, self.blobs = errors, []
        self.known = WordTable(1024, self.blobs)
        self.counted = np.zeros(self.known.max_ids, np.int64)
        self.last = SENTENCE_END_ID

    def __len__(self):
        return self.known.next_id

    def scan(self, source):
        """Scan a block of text, or Items, for `merge`. Any thread may call this."""
        return Scan(source, self.known)

    def merge(self, Scan scan not None):
        """Count the tokens of a block, add its new types, and return its ids: uint32 (tokens,).

        One thread merges the blocks in the order of the text. Sentence ends of empty sentences are left out.
        """
        if scan.known.strings is not self.blobs:  # pruning has changed the ids since the scan
            scan = self.scan(scan.source)
        # "replace" turns a malformed byte into the three bytes of U+FFFD.
        self.open_blob(scan.pending.next_id, scan.pending_bytes * (3 if self.errors == "replace" else 1))
        cdef const uint8_t *text = scan.start
        cdef uint32_t[::1] resolved = np.empty(scan.pending.next_id, np.uint32)
        cdef int64_t *counts = &self.counted[0]
        cdef uint32_t[::1] ids = scan.ids
        cdef int64_t i, kept = 0, size = scan.size
        cdef uint32_t id, last = self.last
        with nogil:
            for i in range(FIRST_TYPE, scan.pending.next_id):
                resolved[i] = self.resolve(scan.pending.words[i], text)
        self.close_blob()
        with nogil:
            for i in range(size):
                id = ids[i]
                if id & PENDING:
                    id = resolved[id ^ PENDING]
                if id == DROPPED or (id == SENTENCE_END_ID and last == SENTENCE_END_ID):
                    continue
                ids[kept] = id
                counts[id] += 1
                last = id
                kept += 1
        self.last = last
        return np.asarray(ids)[:kept]

    cdef int open_blob(self, int64_t types, int64_t length) except -1:
        """Reserve memory for up to `types` new types with up to `length` bytes in total, until `close_blob`."""
        cdef uint8_t[::1] blob = np.empty(length + GROUP, np.uint8)
        while self.known.next_id + types > self.known.max_ids:
            self.known = self.known.copy_doubled()
        if self.counted.shape[0] < self.known.max_ids:
            counted = np.zeros(self.known.max_ids, np.int64)
            counted[:self.counted.shape[0]] = self.counted
            self.counted = counted
        self.blobs.append(np.asarray(blob))
        self.free = &blob[0]
        return 0

    cdef int close_blob(self) except -1:
        cdef const uint8_t[::1] blob = self.blobs.pop()
        self.blobs.append(np.asarray(blob)[:self.free - &blob[0]])
        return 0

    cdef uint32_t resolve(self, Word word, const uint8_t *text) except? 1 nogil:
        """Return the id of a word that was unknown when its block was scanned, or DROPPED. Add it if it is new."""
        cdef Token token = token_of(word.start, word.length)
        cdef uint32_t id = self.known.find(&token)
        if id == 0:
            if is_ascii(word.start, word.length):
                id = self.add(token)
            else:
                with gil:
                    id = self.add_decoded(token, word.start - text)
        return id

    cdef uint32_t add_decoded(self, Token token, int64_t position) except? 1:
        """Add a new word that may be malformed, repaired as `errors` says. Return its id, or DROPPED."""
        cdef Word word = token.word
        try:
            PyUnicode_DecodeUTF8(<const char *> word.start, word.length, NULL)
            return self.add(token)
        except UnicodeDecodeError as error:
            raw = word.start[:word.length]
            if self.errors == "strict":
                raise Malformed(position + error.start, raw) from None
        cdef bytes mended = raw.decode("utf-8", self.errors).encode() + PADDING
        word = Word(mended, len(mended) - GROUP)
        return self.resolve(word, word.start) if word.length else DROPPED

    cdef uint32_t add(self, Token token) noexcept nogil:
        memcpy(self.free, token.word.start, token.word.length)
        token.word.start = self.free
        self.free += token.word.length
        return self.known.add(token)

    def prune(self, int64_t threshold):
        """Drop types that occur at most `threshold` times and renumber the rest.

        Returns the new id of each old one: uint32 (ids,).
        """
        cdef WordTable old = self.known
        cdef uint32_t[::1] renumbered = np.arange(old.next_id, dtype=np.uint32)
        cdef Word word
        cdef int64_t id, count
        kept = np.asarray(self.counted)[:old.next_id] > threshold
        length = self.lengths()[kept].sum()
        self.blobs = []
        self.known = WordTable(1024, self.blobs)
        self.open_blob(np.count_nonzero(kept), length)
        for id in range(FIRST_TYPE, old.next_id):
            word, count = old.words[id], self.counted[id]
            renumbered[id] = PRUNED_TYPE
            if count > threshold:
                renumbered[id] = self.add(token_of(word.start, word.length))
            self.counted[id] = 0
            self.counted[renumbered[id]] += count
        self.close_blob()
        return np.asarray(renumbered)

    def counts(self):
        """Return the count of each id in the text merged so far: int64 (ids,)."""
        return np.asarray(self.counted)[:self.known.next_id]

    def lengths(self):
        """Return the length in bytes of the type of each id: int64 (ids,); 0 for the ids below FIRST_TYPE."""
        cdef int64_t[::1] lengths = np.empty(self.known.next_id, np.int64)
        cdef int64_t id
        for id in range(self.known.next_id):
            lengths[id] = self.known.words[id].length
        return np.asarray(lengths)

    def strings(self):
        """Return the bytes of all types in the order of their ids, as a list of uint8 arrays to concatenate."""
        return self.blobs


def last_space(const uint8_t[::1] text not None):
    """Return the position of the last ASCII white space, or -1."""
    cdef int64_t i = text.shape[0] - 1
    while i >= 0 and text[i] != c" " and not c"\t" <= text[i] <= c"\r":
        i -= 1
    return i


@cython.final
cdef class Lookup:
    """Looks up V different words. Word i is words[offsets[i]:offsets[i + 1]], and PADDING follows the last word.

    The offsets, here and in `rows`, must come from Words, which checks them.
    """
    cdef WordTable known

    def __init__(self, const uint8_t[::1] words not None, const int64_t[::1] offsets not None):
        cdef int64_t count = offsets.shape[0] - 1, i
        self.known = WordTable(max(1024, 1 << int(2 * count).bit_length()), words)
        with nogil:
            for i in range(count):
                self.known.add(token_of(&words[0] + offsets[i], offsets[i + 1] - offsets[i]))

    def find(self, source):
        """Look up the tokens of a block of text, or of Items; see Scan.

        Returns:
            The row of each token, int64 (tokens,): V + k for unknown word k, and -1 for a sentence end. The bytes of
            the U different unknown words, uint8 (n,), and their offsets, int64 (U + 1,).
        """
        cdef Scan scan = Scan(source, self.known)
        cdef uint32_t id
        cdef int64_t[::1] rows = np.empty(scan.size, np.int64)
        cdef int64_t unknown = scan.pending.next_id - FIRST_TYPE, words = self.known.next_id - FIRST_TYPE, i
        cdef uint8_t[::1] blob = np.empty(scan.pending_bytes + 1, np.uint8)  # + 1, since an empty array has no address
        cdef int64_t[::1] offsets = np.zeros(unknown + 1, np.int64)
        cdef Word word
        with nogil:
            for i in range(scan.size):
                id = scan.ids[i]
                if id == SENTENCE_END_ID:
                    rows[i] = -1
                else:
                    rows[i] = words + (id ^ PENDING) - FIRST_TYPE if id & PENDING else <int64_t> id - FIRST_TYPE
            for i in range(unknown):
                word = scan.pending.words[FIRST_TYPE + i]
                memcpy(&blob[offsets[i]], word.start, word.length)
                offsets[i + 1] = offsets[i] + word.length
        return np.asarray(rows), np.asarray(blob)[:scan.pending_bytes], np.asarray(offsets)

    def rows(self, const uint8_t[::1] strings not None, const int64_t[::1] offsets not None):
        """Return the row of each string, or -1 if it is not a known word: int32 (strings,).

        String i is strings[offsets[i]:offsets[i + 1]], and PADDING follows the last. An empty string gets -1.
        """
        cdef int64_t i
        cdef int32_t[::1] found = np.full(offsets.shape[0] - 1, -1, np.int32)
        cdef Token token
        cdef uint32_t id
        with nogil:
            for i in range(found.shape[0]):
                if offsets[i + 1] > offsets[i]:
                    token = token_of(&strings[0] + offsets[i], offsets[i + 1] - offsets[i])
                    id = self.known.find(&token)
                    if id:
                        found[i] = <int32_t> (id - FIRST_TYPE)
        return np.asarray(found)


def decimal_words(const int64_t[::1] numbers not None, bint unsigned=False):
    """Return numbers as text, as `str` writes them: their bytes, uint8 (n,), and offsets, int64 (numbers + 1,).

    With `unsigned`, the numbers are the bits of uint64.
    """
    cdef int64_t i, end = 0
    cdef int size
    cdef uint64_t number
    cdef uint8_t[MAX_DIGITS] digits
    cdef int64_t[::1] offsets = np.zeros(numbers.shape[0] + 1, np.int64)
    cdef uint8_t[::1] text = np.empty(numbers.shape[0] * (MAX_DIGITS + 1) + 1, np.uint8)
    with nogil:
        for i in range(numbers.shape[0]):
            number = <uint64_t> numbers[i]
            if numbers[i] < 0 and not unsigned:
                text[end] = c"-"
                end += 1
                number = 0 - number
            size = 0
            while True:
                digits[size] = c"0" + number % 10
                size += 1
                number //= 10
                if number == 0:
                    break
            while size:
                size -= 1
                text[end] = digits[size]
                end += 1
            offsets[i + 1] = end
    return np.asarray(text)[:end].copy(), np.asarray(offsets)


cdef packed struct Row:
    uint32_t session, item
    double first, second


cdef inline bint precedes(const Row *row, const Row *other) noexcept nogil:
    return row.first < other.first or (row.first == other.first and row.second < other.second)


cdef void sort_rows(Row *rows, Row *other, int64_t n) noexcept nogil:
    """Sort n rows by their order, and leave equal rows in their order; `other` is working memory for n rows."""
    cdef int64_t width = n, start, left, middle, right, end, i
    for i in range(1, n):
        if precedes(&rows[i], &rows[i - 1]):
            width = 1
            break
    while width < n:
        start = 0
        while start < n:
            left, middle, end = start, min(start + width, n), min(start + 2 * width, n)
            right = middle
            for i in range(start, end):
                if left < middle and (right == end or not precedes(&rows[right], &rows[left])):
                    other[i] = rows[left]
                    left += 1
                else:
                    other[i] = rows[right]
                    right += 1
            start = end
        memcpy(rows, other, n * sizeof(Row))
        width *= 2


def sorted_items(Row[::1] rows not None, const int64_t[::1] counts not None):
    """Return the items of the rows of consecutive sessions, sorted by session and then by order: uint32 (rows,).

    Equal rows stay in their order. The GIL is released.

    Args:
        rows: (rows,), with the fields session (numbered from 0), item, first and second; overwritten.
        counts: int64 (sessions,), the number of rows of each session.

    Raises:
        ValueError: If the rows do not fit the counts.
    """
    cdef int64_t i, session, n = rows.shape[0], sessions = counts.shape[0], stop = 0
    cdef bint fits = True
    cdef uint32_t[::1] items = np.empty(n, np.uint32)
    cdef int64_t[::1] ends = np.cumsum(np.append(0, counts))
    cdef Row[::1] by_session = np.empty_like(np.asarray(rows))
    with nogil:
        for i in range(n):
            session = rows[i].session
            fits = session < sessions and ends[session] < n
            if not fits:
                break
            by_session[ends[session]] = rows[i]
            ends[session] += 1
        for session in range(sessions):
            i, stop = stop, stop + counts[session]
            fits = fits and ends[session] == stop
            if fits and counts[session] > 1:
                sort_rows(&by_session[i], &rows[i], counts[session])
        for i in range(n):
            items[i] = by_session[i].item
    if not fits:
        raise ValueError("the rows of sessions are damaged")
    return np.asarray(items)


def take_words(const uint8_t[::1] blob not None, const int64_t[::1] offsets not None, const int64_t[::1] rows not None):
    """Return the words of these rows, in this order: their bytes, uint8 (n,), and offsets, int64 (rows + 1,).

    The offsets must come from Words, which checks them.

    Raises:
        IndexError: If a row does not exist.
    """
    cdef int64_t i
    cdef int64_t[::1] ends = np.zeros(rows.shape[0] + 1, np.int64)
    cdef uint8_t[::1] found
    for i in range(rows.shape[0]):
        if not 0 <= rows[i] < offsets.shape[0] - 1:
            raise IndexError(f"there is no row {rows[i]}")
        ends[i + 1] = ends[i] + offsets[rows[i] + 1] - offsets[rows[i]]
    found = np.empty(ends[rows.shape[0]], np.uint8)
    with nogil:
        for i in range(rows.shape[0]):
            if ends[i + 1] > ends[i]:
                memcpy(&found[ends[i]], &blob[offsets[rows[i]]], ends[i + 1] - ends[i])
    return np.asarray(found), np.asarray(ends)


def word_hashes(const uint8_t[::1] blob not None, const int64_t[::1] offsets not None):
    """Return the hash of each word, uint64 (V,).

    Word i is blob[offsets[i]:offsets[i + 1]]. The offsets must come from Words, which checks them.
    """
    cdef int64_t size = blob.shape[0], begin, length, row
    cdef uint64_t[::1] hashes = np.empty(offsets.shape[0] - 1, np.uint64)
    cdef uint8_t[8] last = [0, 0, 0, 0, 0, 0, 0, 0]  # a copy of a word at the end, since word_key reads eight bytes
    cdef const uint8_t *start
    with nogil:
        for row in range(hashes.shape[0]):
            begin, length = offsets[row], offsets[row + 1] - offsets[row]
            start = &blob[0] + begin if size else last
            if length <= 8 and begin + 8 > size:
                memcpy(last, start, length)
                start = last
            hashes[row] = token_of(start, length).hash
    return np.asarray(hashes)
