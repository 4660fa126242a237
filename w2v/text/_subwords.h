/* Sums of rows for _subwords.pyx. */
#pragma once
#include <stdint.h>

/* Add a row times its weight to a sum of rows. */
static inline void add_row(float *restrict sum, const float *restrict row, float weight, int64_t size)
{
    for (int64_t d = 0; d < size; d++)
        sum[d] += weight * row[d];
}

static inline void prefetch_row(const float *row, int64_t size)
{
    for (int64_t d = 0; d < size; d += 16)
        __builtin_prefetch(row + d);
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
