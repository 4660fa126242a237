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

typedef float lanes __attribute__((vector_size(16)));

static inline lanes load_lanes(const void *address)
{
    lanes values;
    memcpy(&values, address, sizeof values);
    return values;
}

/* Write the products of a row of floats with `count` other rows, which follow each other. Two of them are multiplied at a
   time, so that the row is read half as often. */
static inline void multiply_row(float *restrict products, const uint8_t *restrict row, const float *restrict others,
                                int64_t count, int64_t size)
{
    enum { LANES = sizeof(lanes) / sizeof(float) };
    for (int64_t k = 0; k < count; k += 2) {
        const float *one = others + k * size, *two = k + 1 < count ? one + size : one;
        lanes sums = {0}, other_sums = {0};
        int64_t d = 0;
        for (; d + LANES <= size; d += LANES) {
            lanes values = load_lanes(row + sizeof *one * d);
            sums += values * load_lanes(one + d);
            other_sums += values * load_lanes(two + d);
        }
        for (; d < size; d++) {
            float value;
            memcpy(&value, row + sizeof value * d, sizeof value);
            sums[0] += value * one[d];
            other_sums[0] += value * two[d];
        }
        products[k] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        if (k + 1 < count)
            products[k + 1] = (other_sums[0] + other_sums[1]) + (other_sums[2] + other_sums[3]);
    }
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
