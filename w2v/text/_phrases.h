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

static inline uint64_t mix(uint64_t key, uint64_t gap)
{
    unsigned __int128 product = (unsigned __int128)(key ^ 0x9e3779b97f4a7c15u) * (gap ^ 0xd6e8feb86659fd93u);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline void prefetch_slot(const void *address) { __builtin_prefetch(address, 1); }
