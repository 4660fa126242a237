/* Hashes modulo the prime 2^61 - 1. The hash of a joined token is computed from the hashes of its words. */
#pragma once
#include <stdint.h>

#define PRIME ((1ull << 61) - 1)

/* Return the hash of a text with hash `hash` followed by a text with hash `tail`: hash * power + tail, modulo PRIME.
`power` is the base to the power of the length of the second text. All arguments are below PRIME. */
static inline uint64_t append_hash(uint64_t hash, uint64_t power, uint64_t tail)
{
    unsigned __int128 product = (unsigned __int128)hash * power + tail;
    uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}
