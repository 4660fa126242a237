/* Compiles the step for each instruction set of the processor family and chooses among them at run time.
 * The sets are entered by a pragma, not by compiler flags, so that one object file holds all of them. */

#include "step.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

#if defined(__clang__)
#define SHUFFLE(bits, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define BEGIN_TARGET(list) PRAGMA(clang attribute push(__attribute__((target(list))), apply_to = function))
#define END_TARGET PRAGMA(clang attribute pop)
#else
#define SHUFFLE(bits, a, b, ...) __builtin_shuffle(a, b, (bits){__VA_ARGS__})
#define BEGIN_TARGET(list) PRAGMA(GCC push_options) PRAGMA(GCC target(list))
#define END_TARGET PRAGMA(GCC pop_options)
#endif
#define PRAGMA(...) _Pragma(#__VA_ARGS__)
/* Keeps a vector that is used several times in a register: it is not loaded anew each time, for loads are the narrower
 * gate (bench/NOTES.md). */
#if defined(__x86_64__)
#define IN_REGISTER(vector) __asm__("" : "+v"(vector))
#elif defined(__aarch64__)
#define IN_REGISTER(vector) __asm__("" : "+w"(vector))
#else
#define IN_REGISTER(vector)
#endif

/* Factors between 1 and 2 that a lane's product collects: all lanes' together stay below 2^960. */
#define LOSS_FACTORS 120
#define LEAST(a, b) ((a) < (b) ? (a) : (b))

/* Whether rows are fetched into the first level of cache or the second: on Intel's processors the first measured better,
 * on AMD's the second (bench/NOTES.md). */
static int into_first_level = 0;

/* What the lanes' streams of random bits differ by. */
static const uint32_t STREAMS[16] __attribute__((aligned(64))) = {
    0x3c6ef372, 0xdaa66d2b, 0x78dde6e4, 0x1715609d, 0xb54cda56, 0x5384540f, 0xf1bbcdc8, 0x8ff34781,
    0x2e2ac13a, 0xcc623af3, 0x6a99b4ac, 0x08d12e65, 0xa708a81e, 0x454021d7, 0xe3779b90, 0x81af1549};

/* Floats in a panel of n rows: whole cache lines. */
static int64_t step_panel(int64_t n) { return (n * PANEL + ROW_ALIGNMENT - 1) & -ROW_ALIGNMENT; }

/* The next of `left` rows in as few blocks of at most `most` as they take, all of about one size. */
static inline int64_t share(int64_t left, int64_t most) {
    const int64_t blocks = (left + most - 1) / most;
    return (left + blocks - 1) / blocks;
}

/* Targets and offsets for blocks of another size, one panel for each. */
static void place(const Step *s, int64_t block, int64_t columns, float *target, float *offset) {
    for (int64_t j = 0, column = 0; column < columns; column++) {
        const int used = column % PANEL < block && j < s->m;
        target[column] = used ? s->target[step_column(j)] : 0;
        offset[column] = used ? s->offset[step_column(j)] : NO_SCORE;
        j += used;
    }
}

/* Floats that so many pointers take: whole cache lines. */
static int64_t step_pointers(int64_t count) { return (2 * count + ROW_ALIGNMENT - 1) & -ROW_ALIGNMENT; }

int64_t step_scratch(int64_t n, int64_t m, int64_t width, int pooled, int bfloat16) {
    const int64_t widened = bfloat16 ? step_pointers(n + m) + (n + m) * width : 0, rows = pooled ? 1 : n;
    const int64_t columns = step_columns(m), panels = (columns + step_columns(rows)) / PANEL;
    return widened + 2 * width + step_panel(rows) * panels + 2 * columns + rows * width + step_pointers(rows);
}

void step_loss_start(StepLoss *loss) {
    *loss = (StepLoss){.effective = INFINITY};
    for (int k = 0; k < PANEL; k++) loss->product[k] = 1;
}

double step_loss_total(StepLoss *loss) {
    double product = 1;
    for (int k = 0; k < PANEL; k++) {
        loss->total += loss->linear[k];
        product *= loss->product[k];
        loss->linear[k] = 0;
        loss->product[k] = 1;
    }
    loss->factors = 0;
    return loss->total += log(product);
}

#define LANES 4
#define NAME(x) x##_baseline
#if defined(__aarch64__)
#define REGISTERS 32
#else
#define REGISTERS 16
#endif
#include "step_body.h"

#if defined(__x86_64__)
BEGIN_TARGET("avx2,fma")
#define LANES 8
#define REGISTERS 16
#define NAME(x) x##_avx2
#include "step_body.h"
END_TARGET

BEGIN_TARGET("avx512f,avx512dq,avx512vl,avx2,fma")
#define LANES 16
#define REGISTERS 32
#define NAME(x) x##_avx512
#include "step_body.h"
END_TARGET
#endif

StepFunction step_choose(const char *name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    into_first_level = __builtin_cpu_is("intel");
    if (!strcmp(name, "avx512") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return step_avx512;
    if (!strcmp(name, "avx2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return step_avx2;
#endif
#if defined(__aarch64__)
    if (!strcmp(name, "neon")) return step_baseline;
#endif
    return strcmp(name, "baseline") ? NULL : step_baseline;
}
