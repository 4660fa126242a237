"""Count pairs of words in a text stored as ids, join phrases in it, and convert it to text.

A pair is a word, the next word that is not a connector word, and the connector words between them (the gap). No pair
spans a sentence end or a pruned word.

Two pairs are the same phrase if their joined text is the same ("a_b c" and "a b_c"), so all pairs with the same joined
text must be counted together. The hash of the joined text divides the pairs into parts, and each part is counted by
one PairCounter. So its table stays small, and other threads can count other parts. A part that does not fit the table
is divided in two.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from w2v._text._text cimport SENTENCE_END_ID
from w2v._text.hash_table cimport (
    HashTable, Slot, copy_slots, find_slot, hash_of, hash_seed, slot_number, slot_tag, slot_value,
)

import secrets

import numpy as np

from w2v._errors import W2VError

cdef extern from "_text.h" nogil:
    void prefetch(const void *address)

cdef extern from "_phrases.h" nogil:
    uint64_t append_hash(uint64_t hash, uint64_t power, uint64_t tail)

hash_seed[0], hash_seed[1] = secrets.randbits(64), secrets.randbits(64)

cpdef enum:  # kinds of ids for counting pairs
    SEPARATOR = 1  # a sentence end or a pruned word
    CONNECTOR = 2

cdef enum:  # flags of ids for joining phrases
    STARTS = 1  # some phrase begins with this word
    CONTINUES = 2  # some phrase contains this word after its first word

cdef enum:
    BATCH = 256  # the slots of this many pairs are prefetched before the first pair is looked up
    MAX_GAPS = 1 << 22

# A pair: the ids of its words, the gap between them, and how often it occurs.
PAIR = np.dtype([("first", np.uint32), ("last", np.uint32), ("gap", np.uint32), ("count", np.int64)])

cdef packed struct Pair:
    uint32_t first, last, gap
    int64_t count


cdef struct AppendedHash:
    # The hash of a text followed by the delimiter and this word is append_hash(hash of the text, power, tail).
    uint64_t power
    uint64_t tail  # the hash of the delimiter and the word


cdef inline uint64_t key_of(uint64_t first, uint64_t second) noexcept nogil:
    return first << 32 | second


@cython.final
cdef class PairTable:
    """A growing hash table that maps two numbers and a gap (the tag of the slot) to a number."""
    cdef HashTable table
    cdef int64_t size  # number of keys
    cdef int64_t room  # number of keys that fit
    cdef object memory  # the owner of the slots: uint64 (slots, 2)

    def __cinit__(self, int64_t room):
        self.set_capacity(1 << int(max(room, 96) * 4 // 3 - 1).bit_length())

    cdef int set_capacity(self, int64_t capacity) except -1:
        """Replace the table by empty slots."""
        cdef uint64_t[:, ::1] slots = np.zeros((capacity, 2), np.uint64)
        self.memory, self.table = slots, HashTable(<Slot *> &slots[0, 0], capacity - 1)
        self.room = capacity // 4 * 3
        return 0

    cdef inline Slot *find(self, uint64_t key, uint64_t gap) noexcept nogil:
        """Return the slot of the key, or the empty slot where it belongs."""
        return find_slot(&self.table, hash_of(key, gap), key, gap)

    cdef inline void prefetch(self, uint64_t key, uint64_t gap) noexcept nogil:
        prefetch(&self.table.slots[hash_of(key, gap) & self.table.mask])

    cdef inline void add(self, Slot new) noexcept nogil:
        """Add the number in `new` to the number stored for its key. The caller ensures that there is room."""
        cdef Slot *slot = self.find(new.key, slot_tag(new.value))
        if slot.value:
            slot.value += slot_number(new.value)
        else:
            slot[0] = new
            self.size += 1

    cdef uint32_t child_or_add(self, uint32_t node, uint32_t word, uint32_t new) except? 0 nogil:
        """Return the child of a tree node for this word. If it does not exist, add node number `new` as this child."""
        cdef uint64_t key = key_of(node, word)
        cdef uint64_t found = self.find(key, 0).value
        if found:
            return <uint32_t> found
        if self.size == self.room:
            with gil:
                self.grow()
        self.add(Slot(key, new))
        return new

    cdef int grow(self) except -1:
        cdef HashTable old = self.table
        cdef object owner = self.memory
        self.set_capacity(2 * (old.mask + 1))
        copy_slots(&old, &self.table)
        del owner  # it owns the old slots, which copy_slots needs
        return 0


@cython.final
cdef class PairCounter:
    """Counts one part of the pairs of a text. The text is passed piece by piece.

    A pair belongs to the part if the lowest `bits` of the hash of its joined text equal `part`. If the pairs do not fit
    a table of `room` pairs, the PairCounter keeps one half of the part and drops the other. `remaining_parts` lists the
    dropped halves, as (bits, part), for other PairCounters.
    """
    cdef readonly int bits
    cdef readonly uint64_t part
    cdef readonly list remaining_parts
    cdef const uint8_t[::1] kinds  # (types,)
    cdef const AppendedHash *hashes  # (types,), see `appended_hashes`
    cdef object memory  # the owner of `hashes`
    cdef PairTable table
    cdef PairTable gaps  # a tree: maps a gap (0 is the empty gap) and a connector word to the gap extended by this word
    cdef int64_t first  # the last word that is not a connector word; -1 if the sentence has none so far
    cdef uint32_t gap  # the connector words after `first`
    cdef uint64_t hash  # the hash of the joined text of `first` and the gap

    def __init__(self, const uint8_t[::1] kinds, const uint64_t[:, ::1] hashes, int64_t room, int bits,
                 uint64_t part):
        self.kinds, self.memory, self.hashes = kinds, hashes, <const AppendedHash *> &hashes[0, 0]
        self.bits, self.part, self.remaining_parts = bits, part, []
        self.table, self.gaps, self.first = PairTable(max(room, 2 * BATCH)), PairTable(0), -1

    def count(self, const uint32_t[::1] ids not None):
        """Count the pairs of the next piece of the text. The GIL is released."""
        with nogil:
            self.run(ids)

    cdef int run(self, const uint32_t[::1] ids) except -1 nogil:
        cdef Slot[BATCH] pairs
        cdef uint64_t hash = self.hash, key, gap = self.gap
        cdef int64_t first = self.first, i
        cdef uint32_t id
        cdef int count = 0
        cdef uint8_t kind
        for i in range(ids.shape[0]):
            id = ids[i]
            kind = self.kinds[id]
            if kind == SEPARATOR:
                first = -1
            elif kind == CONNECTOR:
                if first >= 0:
                    hash = self.append(hash, id)
                    gap = self.gaps.child_or_add(<uint32_t> gap, id, <uint32_t> self.gaps.size + 1)
                    if gap >= MAX_GAPS:
                        with gil:
                            raise W2VError(
                                f"the text has more than {MAX_GAPS:,} different sequences of connector words: "
                                "give fewer connectors"
                            )
            else:
                if first >= 0 and self.is_in_part(self.append(hash, id)):
                    key = key_of(first, id)
                    pairs[count] = Slot(key, slot_value(gap, 1))
                    self.table.prefetch(key, gap)
                    count += 1
                    if count == BATCH:
                        self.flush(pairs, count)
                        count = 0
                first, gap, hash = id, 0, self.hashes[id].tail
        self.flush(pairs, count)
        self.first, self.gap, self.hash = first, <uint32_t> gap, hash
        return 0

    cdef inline bint is_in_part(self, uint64_t hash) noexcept nogil:
        return hash & ((1ull << self.bits) - 1) == self.part

    cdef inline uint64_t append(self, uint64_t hash, uint32_t word) noexcept nogil:
        return append_hash(hash, self.hashes[word].power, self.hashes[word].tail)

    cdef int flush(self, const Slot *pairs, int count) except -1 nogil:
        """Add a batch of pairs, and make room for the next one."""
        cdef int i
        for i in range(count):
            self.table.add(pairs[i])
        while self.table.size + BATCH > self.table.room:
            with gil:
                self.halve()
        return 0

    cdef int halve(self) except -1:
        """Drop the pairs of one half of the part."""
        cdef const Pair[::1] pairs
        cdef const uint64_t[::1] hashes
        cdef Pair pair
        cdef int64_t i
        pairs, hashes = self.pairs()
        self.remaining_parts.append((self.bits + 1, self.part | 1ull << self.bits))
        self.bits += 1
        self.table = PairTable(self.table.room)
        for i in range(pairs.shape[0]):
            if self.is_in_part(hashes[i]):
                pair = pairs[i]
                self.table.add(Slot(key_of(pair.first, pair.last), slot_value(pair.gap, pair.count)))
        return 0

    def pairs(self):
        """Return the pairs in any order, PAIR (N,), and the hashes of their joined texts, uint64 (N,)."""
        found = np.empty(self.table.size, PAIR)
        cdef Pair[::1] pairs = found
        cdef uint64_t[::1] hashes = np.empty(self.table.size, np.uint64)
        cdef const uint64_t[::1] gap_keys = self.gap_keys()
        cdef uint64_t i, k = 0, gap, power, tail
        cdef Slot slot
        cdef AppendedHash word
        with nogil:
            for i in range(self.table.table.mask + 1):
                slot = self.table.table.slots[i]
                if slot.value == 0:
                    continue
                gap = slot_tag(slot.value)
                pairs[k] = Pair(
                    <uint32_t> (slot.key >> 32), <uint32_t> slot.key, <uint32_t> gap, slot_number(slot.value)
                )
                word = self.hashes[pairs[k].last]
                power, tail = word.power, word.tail
                while gap:  # walk from the last connector word to the first
                    word = self.hashes[gap_keys[gap] & 0xFFFFFFFFu]
                    tail = append_hash(word.tail, power, tail)
                    power = append_hash(word.power, power, 0)
                    gap = gap_keys[gap] >> 32
                hashes[k] = append_hash(self.hashes[pairs[k].first].tail, power, tail)
                k += 1
        return found, np.asarray(hashes)

    def gap_keys(self):
        """Return the keys of the gaps, uint64 (gaps + 1,). Gap 0 is empty.

        The low 32 bits of a key are the last word of the gap. The high bits are the gap without this word.
        """
        slots = np.asarray(self.gaps.memory)
        keys = np.zeros(self.gaps.size + 1, np.uint64)
        keys[slots[:, 1]] = slots[:, 0]
        return keys


@cython.final
cdef class Joiner:
    """Replaces each phrase, a tuple of two or more ids, by one id.

    `phrases` lists the tuples and `ids`, uint32 (phrases,), the new ids. All ids are below `types`. Several threads may
    use one Joiner.
    """
    cdef uint8_t[::1] kinds
    # The tree of phrases. The node of a first word is its id, the node of a whole phrase is its new id, and all other
    # nodes have higher numbers.
    cdef PairTable nodes
    cdef uint32_t types

    def __init__(self, uint32_t types, list phrases, const uint32_t[::1] ids not None):
        cdef uint32_t node, word, last, id
        self.kinds, self.nodes, self.types = np.zeros(types, np.uint8), PairTable(len(phrases)), types
        for (node, *between, last), id in zip(phrases, ids, strict=True):
            self.kinds[node] |= STARTS
            for word in between:
                self.kinds[word] |= CONTINUES
                node = self.nodes.child_or_add(node, word, types + <uint32_t> self.nodes.size)
            self.kinds[last] |= CONTINUES
            self.nodes.child_or_add(node, last, id)

    def next_boundary(self, const uint32_t[::1] ids not None, int64_t start):
        """Return the first position, at or after `start`, where the text may be divided.

        This is a position before a word that cannot continue a phrase. It is not before a sentence end.
        """
        while start < ids.shape[0] and (self.kinds[ids[start]] & CONTINUES or ids[start] == SENTENCE_END_ID):
            start += 1
        return min(start, ids.shape[0])

    def join(self, const uint32_t[::1] ids not None):
        """Join the phrases in a piece of text from left to right: uint32 (tokens,). The GIL is released."""
        cdef uint32_t[::1] joined = np.empty(ids.shape[0], np.uint32)
        cdef int64_t i, size = 0, start = -1  # position in `joined` of the word that may start a phrase
        cdef uint32_t id, node = 0
        cdef uint8_t kind
        with nogil:
            for i in range(ids.shape[0]):
                id = ids[i]
                kind = self.kinds[id]
                if start >= 0:
                    node = <uint32_t> self.nodes.find(key_of(node, id), 0).value if kind & CONTINUES else 0
                    if node == 0:
                        start = -1
                    elif node < self.types:
                        joined[start] = node
                        size, start = start + 1, -1
                        continue
                if start < 0 and kind & STARTS:
                    start, node = size, id
                joined[size] = id
                size += 1
        return np.asarray(joined)[:size]


def renumber(uint32_t[::1] ids not None, uint32_t[::1] numbers not None, int64_t[::1] counts not None, uint32_t size):
    """Replace the ids of the next piece of a text by numbers in first-seen order, in place, and count the numbers.

    `numbers` maps each id to its number, which is below `size`, or to 0 if the id has not been seen. `counts` has the
    count of each number. Returns the new size.
    """
    cdef int64_t i
    cdef uint32_t id
    with nogil:
        for i in range(ids.shape[0]):
            id = ids[i]
            if id and numbers[id] == 0:
                numbers[id] = size
                size += 1
            ids[i] = numbers[id]
            counts[ids[i]] += 1
    return size


def appended_hashes(const uint8_t[::1] blob not None, const int64_t[::1] offsets not None, bytes delimiter not None,
                    uint64_t base):
    """Return the AppendedHash of each of V words, which `PairCounter` needs to hash joined texts: uint64 (V, 2).

    Word i is blob[offsets[i]:offsets[i + 1]]. `base` is a random number from 256 to 2^61.
    """
    cdef uint64_t[:, ::1] found = np.empty((offsets.shape[0] - 1, 2), np.uint64)
    cdef uint64_t delimiter_power = 1, delimiter_hash = 0, power, hash
    cdef uint8_t byte
    cdef int64_t i, k
    for byte in delimiter:
        delimiter_power = append_hash(delimiter_power, base, 0)
        delimiter_hash = append_hash(delimiter_hash, base, byte + 1)
    with nogil:
        for i in range(found.shape[0]):
            power, hash = delimiter_power, delimiter_hash
            for k in range(offsets[i], offsets[i + 1]):
                power = append_hash(power, base, 0)
                hash = append_hash(hash, base, blob[k] + 1)
            found[i, 0], found[i, 1] = power, hash
    return np.asarray(found)


def ids_to_text(const uint32_t[::1] ids not None, const uint8_t[::1] blob not None,
                const int64_t[::1] offsets not None):
    """Convert ids to text, uint8 (bytes,). Words are separated by spaces, and each sentence ends with a newline.

    Id i is the word blob[offsets[i]:offsets[i + 1]]. An empty word is not written.
    """
    cdef int64_t i, length, size = 0
    for i in range(ids.shape[0]):
        size += offsets[ids[i] + 1] - offsets[ids[i]] + 1
    cdef uint8_t[::1] text = np.empty(size + 1, np.uint8)
    size = 0
    with nogil:
        for i in range(ids.shape[0]):
            length = offsets[ids[i] + 1] - offsets[ids[i]]
            if ids[i] == SENTENCE_END_ID:
                size -= size > 0 and text[size - 1] == c" "
                text[size] = c"\n"
                size += 1
            elif length:
                memcpy(&text[size], &blob[offsets[ids[i]]], length)
                text[size + length] = c" "
                size += length + 1
    return np.asarray(text)[:size]
