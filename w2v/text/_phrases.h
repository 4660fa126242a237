/* Hashes of joined words, modulo the prime 2^61 - 1: the hash of a joined token is computed from those of its words. */
#pragma once
#include <stdint.h>

#define PRIME ((1ull << 61) - 1)

/* hash * power + tail, for numbers below PRIME: extends the hash of a text by that of the text that follows. */
static inline uint64_t append_hash(uint64_t hash, uint64_t power, uint64_t tail)
{
    unsigned __int128 product = (unsigned __int128)hash * power + tail;
    uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}
