/* A hash table that maps a key and a tag to a number.
 *
 * It has 2^n slots and uses linear probing. The caller keeps at most 3/4 of the slots full. A slot is published by one
 * atomic store of its value, so one thread may add entries while others look entries up. The caller owns the memory and
 * must set it to zero. */
#pragma once
#include <stdint.h>

enum { NUMBER_BITS = 36, TAG_BITS = 64 - NUMBER_BITS };
#define MAX_NUMBER ((1ull << NUMBER_BITS) - 1)
#define MAX_TAG ((1ull << TAG_BITS) - 1)

typedef struct {
    uint64_t key;
    uint64_t value; /* the tag in the high bits and the number in the low bits; 0 if the slot is empty */
} Slot;

typedef struct {
    Slot *slots;
    uint64_t mask; /* number of slots - 1 */
} HashTable;

/* Two secret random numbers, set when a module is loaded, so that an attacker cannot choose colliding keys. */
static uint64_t hash_seed[2];

static inline uint64_t multiply_mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_of(uint64_t key, uint64_t tag)
{
    return multiply_mix(key ^ hash_seed[0], tag ^ hash_seed[1]);
}

static inline uint64_t slot_tag(uint64_t value) { return value >> NUMBER_BITS; }
static inline uint64_t slot_number(uint64_t value) { return value & MAX_NUMBER; }
static inline uint64_t slot_value(uint64_t tag, uint64_t number) { return tag << NUMBER_BITS | number; }

/* Return the value of the first slot from position `*at` on that contains the key and the tag, or 0 if an empty slot
   comes first. `*at` becomes its position. The value is read once: another thread may fill the empty slot with another
   key at any time. */
static inline uint64_t find_value(const HashTable *table, uint64_t *at, uint64_t key, uint64_t tag)
{
    for (;; ++*at) {
        const Slot *slot = &table->slots[*at & table->mask];
        uint64_t value = __atomic_load_n(&slot->value, __ATOMIC_ACQUIRE);
        if (value == 0 || (slot->key == key && slot_tag(value) == tag))
            return value;
    }
}

/* Return the first slot from position `at` on that contains the key and the tag, or is empty. No other thread may add
   entries meanwhile. */
static inline Slot *find_slot(const HashTable *table, uint64_t at, uint64_t key, uint64_t tag)
{
    find_value(table, &at, key, tag);
    return &table->slots[at & table->mask];
}

/* Fill an empty slot. */
static inline void fill_slot(Slot *slot, uint64_t key, uint64_t value)
{
    slot->key = key;
    __atomic_store_n(&slot->value, value, __ATOMIC_RELEASE);
}

/* Copy all entries into a larger, empty table. */
static inline void copy_slots(const HashTable *from, const HashTable *to)
{
    for (uint64_t i = 0; i <= from->mask; i++) {
        Slot slot = from->slots[i];
        if (slot.value) {
            uint64_t at = hash_of(slot.key, slot_tag(slot.value));
            while (to->slots[at & to->mask].value)
                at++;
            fill_slot(&to->slots[at & to->mask], slot.key, slot.value);
        }
    }
}
