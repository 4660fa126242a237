/* Bit operations for _text.pyx. They read eight bytes at a time, so PADDING must follow every text. */
#pragma once
#include <stdint.h>
#include <string.h>
#include "hash_table.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "w2v packs bytes in little-endian order"
#endif

#define EACH_BYTE(b) (0x0101010101010101u * (uint64_t)(b))

static inline uint64_t load_bytes(const uint8_t *text)
{
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
    return bytes;
}

/* Set bit i of the result if byte i of 64 is ASCII white space: a space, or 9 to 13. */
static inline uint64_t find_spaces(const uint8_t *text)
{
    uint64_t spaces = 0;
    for (int i = 0; i < 8; i++) {
        /* The sum of two 7-bit numbers fits a byte, so nothing carries into the next byte. The top bit is the result. */
        uint64_t bytes = load_bytes(text + 8 * i), low = bytes & EACH_BYTE(0x7f);
        uint64_t control = (low + EACH_BYTE(0x80 - 9)) & ~(low + EACH_BYTE(0x80 - 14));
        uint64_t blank = ~((low ^ EACH_BYTE(' ')) + EACH_BYTE(0x7f));
        uint64_t found = (control | blank) & ~bytes & EACH_BYTE(0x80);
        /* The product moves the top bit of byte i to bit 56 + i. */
        spaces |= ((found >> 7) * 0x0102040810204080u >> 56) << (8 * i);
    }
    return spaces;
}

/* Return the hash table key of a word. The key of a word of up to 8 bytes is the word itself, so words with equal keys
   and lengths are equal. Longer words are hashed. */
static inline uint64_t word_key(const uint8_t *word, int64_t length)
{
    if (length == 0)
        return 0;
    if (length <= 8)
        return load_bytes(word) & (~(uint64_t)0 >> (64 - 8 * length));
    uint64_t key = hash_seed[0];
    int64_t i = 0;
    for (; i < length - 8; i += 8)
        key = multiply_mix(key ^ load_bytes(word + i), 0x9e3779b97f4a7c15u);
    return multiply_mix(key ^ load_bytes(word + length - 8), 0xd6e8feb86659fd93u);
}

/* Return whether two words are equal. They must have the same length, more than 8 bytes. */
static inline int equal_bytes(const uint8_t *word, const uint8_t *other, int64_t length)
{
    for (int64_t i = 0; i < length - 8; i += 8)
        if (load_bytes(word + i) != load_bytes(other + i))
            return 0;
    return load_bytes(word + length - 8) == load_bytes(other + length - 8);
}

static inline int is_ascii(const uint8_t *word, int64_t length)
{
    uint8_t all = 0;
    for (int64_t i = 0; i < length; i++)
        all |= word[i];
    return all < 0x80;
}

static inline int lowest_bit(uint64_t bits) { return __builtin_ctzll(bits); }
static inline void prefetch(const void *address) { __builtin_prefetch(address); }
