/* Sums of rows for _subwords.pyx. */
#pragma once
#include <stdint.h>
#include <string.h>

/* Add a row of floats times its weight to a sum of rows. The row need not be aligned: a mapped file may begin with words
   of any length. */
static inline void add_row(float *restrict sum, const uint8_t *restrict row, float weight, int64_t size)
{
    for (int64_t d = 0; d < size; d++) {
        float value;
        memcpy(&value, row + sizeof value * d, sizeof value);
        sum[d] += weight * value;
    }
}

static inline void prefetch_row(const uint8_t *row, int64_t size)
{
    for (int64_t byte = 0; byte < size; byte += 64)
        __builtin_prefetch(row + byte);
}

/* A sum that several threads use is computed once: by the thread that gets true from `claim`, before it calls `publish`.
   Other threads call `wait_for`. The state is 0 at first. */
static inline int claim(int32_t *state)
{
    int32_t found = __atomic_load_n(state, __ATOMIC_RELAXED);
    return found == 0 && __atomic_compare_exchange_n(state, &found, 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static inline void publish(int32_t *state) { __atomic_store_n(state, 2, __ATOMIC_RELEASE); }

static inline void wait_for(const int32_t *state)
{
    while (__atomic_load_n(state, __ATOMIC_ACQUIRE) != 2)
        ;
}
