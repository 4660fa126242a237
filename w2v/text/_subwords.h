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

/* Return the product of a row of floats and another vector. Partial sums let the compiler use vector instructions. */
static inline float product(const uint8_t *restrict row, const float *restrict other, int64_t size)
{
    enum { LANES = 8 };
    float sums[LANES] = {0}, values[LANES];
    int64_t d = 0;
    for (; d + LANES <= size; d += LANES) {
        memcpy(values, row + sizeof *values * d, sizeof values);
        for (int k = 0; k < LANES; k++) sums[k] += values[k] * other[d + k];
    }
    for (; d < size; d++) {
        memcpy(values, row + sizeof *values * d, sizeof *values);
        sums[d % LANES] += values[0] * other[d];
    }
    for (int k = 1; k < LANES; k++) sums[0] += sums[k];
    return sums[0];
}

static inline void prefetch_row(const uint8_t *row, int64_t size)
{
    for (int64_t byte = 0; byte < size; byte += 64)
        __builtin_prefetch(row + byte);
    __builtin_prefetch(row + size - 1);
}

/* A sum that several threads use is computed once: by the thread that gets true from `claim`, before it stores the state
   PUBLISHED. Other threads wait for this state. It is 0 at first. */
static inline int claim(int32_t *state)
{
    int32_t found = __atomic_load_n(state, __ATOMIC_RELAXED);
    return found == 0 && __atomic_compare_exchange_n(state, &found, 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* A thread that loads a number sees what another thread wrote before it stored the number. */
static inline int32_t load(const int32_t *number) { return __atomic_load_n(number, __ATOMIC_ACQUIRE); }
static inline void store(int32_t *number, int32_t value) { __atomic_store_n(number, value, __ATOMIC_RELEASE); }
static inline int64_t next_number(int64_t *number) { return __atomic_fetch_add(number, 1, __ATOMIC_RELAXED); }
