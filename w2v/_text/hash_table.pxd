"""Cython declarations for hash_table.h."""

from libc.stdint cimport uint64_t

cdef extern from "hash_table.h" nogil:
    const uint64_t MAX_TAG
    ctypedef struct Slot:
        uint64_t key
        uint64_t value
    ctypedef struct HashTable:
        Slot *slots
        uint64_t mask
    uint64_t[2] hash_seed
    uint64_t hash_of(uint64_t key, uint64_t tag)
    uint64_t slot_tag(uint64_t value)
    uint64_t slot_number(uint64_t value)
    uint64_t slot_value(uint64_t tag, uint64_t number)
    uint64_t find_value(const HashTable *table, uint64_t *at, uint64_t key, uint64_t tag)
    Slot *find_slot(const HashTable *table, uint64_t at, uint64_t key, uint64_t tag)
    void fill_slot(Slot *slot, uint64_t key, uint64_t value)
    void copy_slots(const HashTable *from_, const HashTable *to)
