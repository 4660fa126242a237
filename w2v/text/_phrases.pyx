"""Ids → counts of pairs of words; ids → ids with phrases joined; ids → text.

A pair is a word, the next word that is not a connector word, and the connector words between them (the gap). No pair
spans a sentence end or a pruned word.

Two pairs are the same phrase if their joined text is the same ("a_b c" and "a b_c"), so all pairs of a joined text
must be counted together. The pairs are divided into parts by the hash of their joined text. A Counter counts one part,
so its table stays small and other threads can count other parts; a part that does not fit its table is divided in two.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from w2v.errors import W2VError

cdef extern from "_phrases.h" nogil:
    uint64_t append_hash(uint64_t hash, uint64_t power, uint64_t tail)
    uint64_t mix(uint64_t key, uint64_t gap)
    void prefetch_slot(const void *address)

SEPARATOR = IS_SEPARATOR
CONNECTOR = IS_CONNECTOR
STARTS = STARTS_PHRASE
ENDS = ENDS_PHRASE
cdef enum:  # bits of the kind of an id
    IS_SEPARATOR = 1  # a sentence end or a pruned word
    IS_CONNECTOR = 2
    STARTS_PHRASE = 4  # some phrase begins with this word
    ENDS_PHRASE = 8

cdef enum:
    BATCH = 256  # pairs whose slots are prefetched before any of them is looked up
    PART_BITS = 24  # lowest bits of a hash that name its part; those above choose the slot
    VALUE_BITS = 36  # of a slot's `value`; those above are the gap
    MAX_GAPS = 1 << 22

cdef uint64_t VALUE = (1ull << VALUE_BITS) - 1


cdef struct Slot:
    uint64_t key  # two ids
    uint64_t value  # 0: empty

cdef struct Pair:
    uint64_t hash
    uint64_t key
    uint64_t gap

cdef struct Spelling:
    uint64_t head  # the hash of the word alone
    uint64_t power  # append_hash(hash, power, tail) is the hash of a text followed by the delimiter and the word
    uint64_t tail


@cython.final
cdef class Table:
    """A hash table from a key and a gap to a number. It probes linearly; at most 3/4 of its slots may be full."""
    cdef Slot *slots
    cdef uint64_t mask
    cdef int64_t size, room
    cdef object memory  # the owner of `slots`

    def __cinit__(self, int64_t room):
        cdef int64_t capacity = 1 << int(max(room, 96) * 4 // 3 - 1).bit_length()
        cdef uint64_t[::1] slots = np.zeros(capacity * sizeof(Slot) // sizeof(uint64_t), np.uint64)
        self.slots, self.memory = <Slot *> &slots[0], slots
        self.mask, self.room = capacity - 1, capacity // 4 * 3

    cdef inline Slot *first(self, uint64_t hash) noexcept nogil:
        return &self.slots[(hash >> PART_BITS) & self.mask]

    cdef inline Slot *find(self, uint64_t hash, uint64_t key, uint64_t gap) noexcept nogil:
        """The slot of the key, or the empty slot where it belongs."""
        cdef uint64_t i = (hash >> PART_BITS) & self.mask
        while self.slots[i].value and (self.slots[i].key != key or self.slots[i].value >> VALUE_BITS != gap):
            i = (i + 1) & self.mask
        return &self.slots[i]

    cdef inline void fill(self, Slot *slot, uint64_t key, uint64_t gap, uint64_t value) noexcept nogil:
        """Fill an empty slot. The caller makes sure that there is room."""
        slot.key, slot.value = key, gap << VALUE_BITS | value
        self.size += 1


cdef inline uint64_t key_of(uint64_t first, uint64_t second) noexcept nogil:
    return first << 32 | second


@cython.final
cdef class Gaps:
    """The sequences of connector words between two words, numbered. 0 is empty; any other extends one by a word."""
    cdef Table table  # from (the number of all but the last word, the last word)
    cdef uint64_t[::1] keys  # by number
    cdef uint32_t size

    def __cinit__(self):
        self.table, self.keys, self.size = Table(64), np.zeros(64, np.uint64), 1

    cdef inline uint32_t find(self, uint32_t gap, uint32_t word) noexcept nogil:
        """The number of a gap and one more word, or 0 if it is unknown."""
        cdef uint64_t key = key_of(gap, word)
        return <uint32_t> self.table.find(mix(key, 0), key, 0).value

    cdef uint32_t add(self, uint32_t gap, uint32_t word) except 0 nogil:
        """The number of a gap and one more word."""
        cdef uint32_t found = self.find(gap, word)
        cdef uint64_t key = key_of(gap, word)
        if found:
            return found
        if self.size == self.keys.shape[0]:
            with gil:
                self.grow()
        found = self.size
        self.table.fill(self.table.find(mix(key, 0), key, 0), key, 0, found)
        self.keys[found] = key
        self.size += 1
        return found

    cdef int grow(self) except -1:
        if self.size >= MAX_GAPS:
            raise W2VError(
                f"more than {MAX_GAPS:,} different sequences of connector words stand between words: "
                "give fewer connectors"
            )
        keys = np.zeros(2 * self.size, np.uint64)
        keys[:self.size] = self.keys
        self.keys, self.table = keys, Table(2 * self.size)
        cdef uint32_t gap
        for gap in range(1, self.size):
            self.table.fill(self.table.find(mix(self.keys[gap], 0), self.keys[gap], 0), self.keys[gap], 0, gap)
        return 0

    cdef list words(self, uint32_t gap):
        found = []
        while gap:
            found.append(self.keys[gap] & 0xFFFFFFFFu)
            gap = self.keys[gap] >> 32
        return found[::-1]


@cython.final
cdef class Counter:
    """Counts one part of the pairs of a text, which is given piece by piece.

    A pair belongs to the part if the lowest `bits` of the hash of its joined text are `part`. If there are more than
    fit a table of `room` pairs, only half of them are counted; `left` lists the halves left for other Counters, as
    (bits, part).
    """
    cdef readonly int bits
    cdef readonly uint64_t part
    cdef readonly list left
    cdef const uint8_t[::1] kinds  # (types,)
    cdef const Spelling *spellings
    cdef object memory  # the owner of `spellings`
    cdef Table table
    cdef Gaps gaps
    cdef int64_t first  # the last word that is not a connector word; -1 if there is none in the sentence
    cdef uint32_t gap  # connector words since
    cdef uint64_t hash  # of the joined text of both

    def __init__(self, const uint8_t[::1] kinds, const uint64_t[:, ::1] spellings, int64_t room, int bits,
                 uint64_t part):
        if spellings.shape[0] != kinds.shape[0] or spellings.shape[1] != 3:
            raise ValueError("spellings do not fit kinds")
        self.kinds, self.memory, self.spellings = kinds, spellings, <const Spelling *> &spellings[0, 0]
        self.bits, self.part, self.left = bits, part, []
        self.table, self.gaps, self.first = Table(max(room, 2 * BATCH)), Gaps(), -1

    def count(self, const uint32_t[::1] ids not None):
        """Count the pairs of the next piece of the text. The GIL is released."""
        with nogil:
            self.run(ids)

    cdef int run(self, const uint32_t[::1] ids) except -1 nogil:
        cdef Pair[BATCH] pairs
        cdef uint64_t mask = (1ull << self.bits) - 1, hash = self.hash, joined
        cdef int64_t first = self.first, i
        cdef uint32_t gap = self.gap, id
        cdef int count = 0
        cdef uint8_t kind
        for i in range(ids.shape[0]):
            id = ids[i]
            kind = self.kinds[id]
            if kind & IS_SEPARATOR:
                first = -1
            elif kind & IS_CONNECTOR:
                if first >= 0:
                    hash = self.append(hash, id)
                    gap = self.gaps.add(gap, id)
            else:
                if first >= 0:
                    joined = self.append(hash, id)
                    if joined & mask == self.part:
                        pairs[count] = Pair(joined, key_of(first, id), gap)
                        prefetch_slot(self.table.first(joined))
                        count += 1
                        if count == BATCH:
                            self.add(pairs, count)
                            mask = (1ull << self.bits) - 1
                            count = 0
                first, gap, hash = id, 0, self.spellings[id].head
        self.add(pairs, count)
        self.first, self.gap, self.hash = first, gap, hash
        return 0

    cdef inline uint64_t append(self, uint64_t hash, uint32_t word) noexcept nogil:
        return append_hash(hash, self.spellings[word].power, self.spellings[word].tail)

    cdef int add(self, Pair *pairs, int count) except -1 nogil:
        cdef Slot *slot
        cdef int i
        if self.table.size + count > self.table.room:
            with gil:
                self.halve()
        for i in range(count):
            if pairs[i].hash & ((1ull << self.bits) - 1) == self.part:
                slot = self.table.find(pairs[i].hash, pairs[i].key, pairs[i].gap)
                if slot.value:
                    slot.value += 1
                else:
                    self.table.fill(slot, pairs[i].key, pairs[i].gap, 1)
        return 0

    cdef int halve(self) except -1:
        """Drop the pairs of one half of the part until there is room for a batch."""
        cdef Table old
        cdef Slot slot
        cdef uint64_t hash, i
        while self.table.size + BATCH > self.table.room:
            self.left.append((self.bits + 1, self.part | 1ull << self.bits))
            self.bits += 1
            old = self.table
            self.table = Table(old.room)
            for i in range(old.mask + 1):
                slot = old.slots[i]
                if slot.value:
                    hash = self.hash_of(slot)
                    if hash & ((1ull << self.bits) - 1) == self.part:
                        self.table.find(hash, slot.key, slot.value >> VALUE_BITS)[0] = slot
                        self.table.size += 1
        return 0

    cdef uint64_t hash_of(self, Slot slot) noexcept nogil:
        """The hash of the joined text of a pair, computed from its last word to its first."""
        cdef Spelling word = self.spellings[slot.key & 0xFFFFFFFFu]
        cdef uint64_t gap = slot.value >> VALUE_BITS, power = word.power, tail = word.tail
        while gap:
            word = self.spellings[self.gaps.keys[gap] & 0xFFFFFFFFu]
            tail = append_hash(word.tail, power, tail)
            power = append_hash(word.power, power, 0)
            gap = self.gaps.keys[gap] >> 32
        return append_hash(self.spellings[slot.key >> 32].head, power, tail)

    def pairs(self):
        """The pairs, in any order, as arrays (N,): hash uint64, first and second id and gap uint32, count int64."""
        cdef int64_t size = self.table.size, found = 0
        cdef uint64_t[::1] hashes = np.empty(size, np.uint64)
        cdef uint32_t[::1] first = np.empty(size, np.uint32)
        cdef uint32_t[::1] second = np.empty(size, np.uint32)
        cdef uint32_t[::1] gaps = np.empty(size, np.uint32)
        cdef int64_t[::1] counts = np.empty(size, np.int64)
        cdef uint64_t i
        cdef Slot slot
        with nogil:
            for i in range(self.table.mask + 1):
                slot = self.table.slots[i]
                if slot.value:
                    hashes[found] = self.hash_of(slot)
                    first[found], second[found] = <uint32_t> (slot.key >> 32), <uint32_t> (slot.key & 0xFFFFFFFFu)
                    gaps[found], counts[found] = <uint32_t> (slot.value >> VALUE_BITS), <int64_t> (slot.value & VALUE)
                    found += 1
        return np.asarray(hashes), np.asarray(first), np.asarray(second), np.asarray(gaps), np.asarray(counts)

    def gap_words(self, uint32_t gap):
        """The ids of the connector words of a gap, as a list."""
        if gap >= self.gaps.size:
            raise ValueError("a gap is out of range")
        return self.gaps.words(gap)


@cython.final
cdef class Joiner:
    """Replaces phrases by single ids.

    `kinds` says which ids start and end a phrase. `phrases` lists tuples of word ids, connector words inside; `ids` are
    the new ids, uint32 (phrases,). Any number of threads may use one Joiner.
    """
    cdef const uint8_t[::1] kinds
    cdef Table table
    cdef Gaps gaps

    def __init__(self, const uint8_t[::1] kinds not None, list phrases, const uint32_t[::1] ids not None):
        cdef uint32_t gap, word
        cdef uint64_t key
        cdef Slot *slot
        self.kinds, self.table, self.gaps = kinds, Table(len(phrases)), Gaps()
        for (first, *between, last), id in zip(phrases, ids, strict=True):
            gap = 0
            for word in between:
                gap = self.gaps.add(gap, word)
            key = key_of(first, last)
            slot = self.table.find(mix(key, gap), key, gap)
            if slot.value == 0:
                self.table.fill(slot, key, gap, id)

    def cut(self, const uint32_t[::1] ids not None, int64_t start):
        """The first position from `start` (above 0) on at which the text can be divided without dividing a phrase."""
        cdef int64_t i
        for i in range(start, ids.shape[0]):
            if self.kinds[ids[i - 1]] & IS_SEPARATOR:
                return i
            if not self.kinds[ids[i]] & (ENDS_PHRASE | IS_CONNECTOR | IS_SEPARATOR):
                return i
        return ids.shape[0]

    def join(self, const uint32_t[::1] ids not None):
        """The ids of a piece of text, phrases joined from left to right: uint32 (tokens,). The GIL is released."""
        cdef uint32_t[::1] joined = np.empty(ids.shape[0], np.uint32)
        cdef int64_t i, size = 0, start = -1  # position in `joined` of the word that may start a phrase
        cdef uint32_t id, first = 0, gap = 0
        cdef uint64_t key
        cdef uint8_t kind
        cdef Slot *slot
        with nogil:
            for i in range(ids.shape[0]):
                id = ids[i]
                kind = self.kinds[id]
                if kind & IS_CONNECTOR:
                    if start >= 0:
                        gap = self.gaps.find(gap, id)
                        if gap == 0:  # in no phrase
                            start = -1
                elif start >= 0 and kind & ENDS_PHRASE:
                    key = key_of(first, id)
                    slot = self.table.find(mix(key, gap), key, gap)
                    if slot.value:
                        joined[start] = <uint32_t> (slot.value & VALUE)
                        size = start + 1
                        start = -1
                        continue
                    start = -1
                else:
                    start = -1
                if kind & STARTS_PHRASE:
                    start, first, gap = size, id, 0
                joined[size] = id
                size += 1
        return np.asarray(joined)[:size]


@cython.final
cdef class Numbering:
    """Gives the ids of a text new numbers, in the order in which they are first seen, and counts them.

    The first `fixed` ids keep their numbers. `size` is the number of all new ids.
    """
    cdef uint32_t[::1] numbers, order
    cdef int64_t[::1] counted
    cdef readonly uint32_t size

    def __init__(self, int64_t types, uint32_t fixed):
        self.numbers, self.order = np.zeros(types, np.uint32), np.zeros(types, np.uint32)
        self.counted = np.zeros(types, np.int64)
        self.size = fixed
        cdef uint32_t id
        for id in range(fixed):
            self.numbers[id] = self.order[id] = id

    def renumber(self, uint32_t[::1] ids not None):
        """Replace the ids of the next piece of the text by their new numbers."""
        cdef int64_t i
        cdef uint32_t id, number
        with nogil:
            for i in range(ids.shape[0]):
                id = ids[i]
                number = self.numbers[id]
                if number == 0 and id:
                    number = self.numbers[id] = self.size
                    self.order[number] = id
                    self.size += 1
                ids[i] = number
                self.counted[number] += 1

    def old_ids(self):
        """The old id of each new one: uint32 (size,)."""
        return np.asarray(self.order)[:self.size]

    def counts(self):
        """The count of each new id: int64 (size,)."""
        return np.asarray(self.counted)[:self.size]


def spellings(const uint8_t[::1] blob not None, const int64_t[::1] offsets not None, bytes delimiter not None,
              uint64_t base):
    """The Spelling of each of V words, for `Counter` to hash joined texts: uint64 (V, 3).

    Word i is blob[offsets[i]:offsets[i + 1]]. `base` is a random number from 256 to 2^61.
    """
    cdef uint64_t[:, ::1] found = np.empty((offsets.shape[0] - 1, 3), np.uint64)
    cdef uint64_t delimiter_hash = 0, delimiter_power = 1, hash, power
    cdef uint8_t byte
    cdef int64_t i, k
    for byte in delimiter:
        delimiter_hash = append_hash(delimiter_hash, base, byte + 1)
        delimiter_power = append_hash(delimiter_power, base, 0)
    with nogil:
        for i in range(offsets.shape[0] - 1):
            hash, power = 0, 1
            for k in range(offsets[i], offsets[i + 1]):
                hash = append_hash(hash, base, blob[k] + 1)
                power = append_hash(power, base, 0)
            found[i, 0] = hash
            found[i, 1] = append_hash(delimiter_power, power, 0)
            found[i, 2] = append_hash(delimiter_hash, power, hash)
    return np.asarray(found)


def spell(const uint32_t[::1] ids not None, uint32_t sentence_end, const uint8_t[::1] blob not None,
          const int64_t[::1] offsets not None):
    """The text of these ids: uint8 (bytes,). Words are followed by a space, and the last of a sentence by a newline.

    Id i is the word blob[offsets[i]:offsets[i + 1]]; if it is empty, nothing is written.
    """
    cdef int64_t i, length, size = 0
    for i in range(ids.shape[0]):
        size += offsets[ids[i] + 1] - offsets[ids[i]] + 1
    cdef uint8_t[::1] text = np.empty(size + 1, np.uint8)
    size = 0
    with nogil:
        for i in range(ids.shape[0]):
            length = offsets[ids[i] + 1] - offsets[ids[i]]
            if ids[i] == sentence_end:
                size -= size > 0 and text[size - 1] == c" "
                text[size] = c"\n"
                size += 1
            elif length:
                memcpy(&text[size], &blob[offsets[ids[i]]], length)
                text[size + length] = c" "
                size += length + 1
    return np.asarray(text)[:size]
