/* The limits of the machine, for each instruction set: multiply-adds with operands in registers, and matrix rows read
 * and written at random. The caller measures the time. */

#include <stdint.h>

enum {
    CHAINS = 12, /* independent sums: more than latency × units, so that no unit waits, and fewer than 16 registers */
    LINE = 16    /* floats of a cache line */
};

#define PEAKS(name, lanes, target)                                                                                      \
    typedef float vec_##name __attribute__((vector_size(4 * lanes), may_alias));                                        \
                                                                                                                        \
    /* Does rounds × CHAINS × lanes multiply-adds. The sums differ: otherwise the compiler would compute one. */        \
    target float multiply_adds_##name(int64_t rounds, float factor, float term) {                                       \
        vec_##name sums[CHAINS], factors = factor - (vec_##name){0}, terms = term - (vec_##name){0};                    \
        float total = 0;                                                                                                \
        for (int k = 0; k < CHAINS; k++) sums[k] = (float)k - (vec_##name){0};                                          \
        while (rounds--) {                                                                                              \
            _Pragma("GCC unroll 12") for (int k = 0; k < CHAINS; k++) sums[k] = sums[k] * factors + terms;              \
        }                                                                                                               \
        for (int k = 0; k < CHAINS; k++) total += sums[k][0];                                                           \
        return total;                                                                                                   \
    }                                                                                                                   \
                                                                                                                        \
    /* Adds to each of `count` rows; `order` holds `distance` more rows, which are only prefetched. */                  \
    target void move_rows_##name(float *matrix, int64_t width, const int32_t *order, int64_t count, int64_t distance) { \
        for (int64_t k = 0; k < count; k++) {                                                                           \
            float *row = matrix + order[k] * width, *next = matrix + order[k + distance] * width;                       \
            for (int64_t d = 0; d < width; d += LINE) {                                                                 \
                __builtin_prefetch(next + d, 1);                                                                        \
                for (int part = 0; part < LINE; part += lanes) *(vec_##name *)(row + d + part) += 1e-6f;                \
            }                                                                                                           \
        }                                                                                                               \
    }

PEAKS(baseline, 4, )
#if defined(__x86_64__)
PEAKS(avx2, 8, __attribute__((target("avx2,fma"))))
PEAKS(avx512, 16, __attribute__((target("avx512f"))))
#endif
